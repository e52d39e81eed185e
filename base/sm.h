/*
 * Table-driven state machines: a state is a row {name, mask of states that
 * may follow}.  Moving along an edge that is not in the table is a bug of
 * ours and aborts; state fields change only through hf_sm_move().
 * After dqlite's src/lib/sm.
 */
#ifndef HF_BASE_SM_H
#define HF_BASE_SM_H

#include "base/hf.h"

struct hf_sm_state {
	const char *name;
	uint32_t next; /* HF_SM_BIT() of each follower */
};

#define HF_SM_BIT(s) ((uint32_t)1 << (s))

struct hf_sm {
	const struct hf_sm_state *table;
	unsigned n;
	unsigned cur;
	/* Called after each move; may be NULL.  Must not move again. */
	void (*moved)(struct hf_sm *sm, unsigned from, void *arg);
	void *arg;
};

void hf_sm_init(struct hf_sm *sm, const struct hf_sm_state *table, unsigned n,
    unsigned initial);
void hf_sm_move(struct hf_sm *sm, unsigned to);
bool hf_sm_may(const struct hf_sm *sm, unsigned to);
const char *hf_sm_name(const struct hf_sm *sm);

#endif
