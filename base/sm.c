/*
 * Table-driven state machines.
 */
#include <config.h>

#include "base/sm.h"

#include "base/check.h"
#include "base/log.h"

void
hf_sm_init(struct hf_sm *sm, const struct hf_sm_state *table, unsigned n,
    unsigned initial)
{
	HF_CHECK(n <= 32 && initial < n);
	*sm = (struct hf_sm){ .table = table, .n = n, .cur = initial };
}

bool
hf_sm_may(const struct hf_sm *sm, unsigned to)
{
	return to < sm->n && (sm->table[sm->cur].next & HF_SM_BIT(to)) != 0;
}

void
hf_sm_move(struct hf_sm *sm, unsigned to)
{
	unsigned from = sm->cur;

	if (!hf_sm_may(sm, to)) {
		hf_log(HF_LOG_ERROR, "sm: no edge from=%s to=%s",
		    sm->table[from].name,
		    to < sm->n ? sm->table[to].name : "?");
		HF_BUG("edge of a state machine");
	}
	sm->cur = to;
	if (sm->moved != NULL)
		sm->moved(sm, from, sm->arg);
}

const char *
hf_sm_name(const struct hf_sm *sm)
{
	return sm->table[sm->cur].name;
}
