/*
 * A child has died: its last words, its obituary, its place in the
 * scoreboard, its connections and leases, and whether another takes its
 * place.
 */
#include <config.h>

#include "workers/master_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define MS ((int64_t)1000)

/* Shared memory of a dead process: take nothing on trust. */
static void
panic_text(const struct hf_slot *sl, char out[sizeof(sl->panic)])
{
	memcpy(out, sl->panic, sizeof(sl->panic));
	out[sizeof(sl->panic) - 1] = '\0';
	for (char *p = out; *p != '\0'; p++)
		if (*p < 0x20 || *p > 0x7e || *p == '"')
			*p = *p == '\n' && p[1] == '\0' ? '\0' : '\'';
}

static void
obituary(struct hf_master *m, unsigned slot, int status)
{
	const struct hf_child *c = &m->child[slot];
	const struct hf_slot *sl = &m->shm.h->slot[slot];
	bool asked =
	    c->life.cur == HF_LIFE_DRAINING || c->life.cur == HF_LIFE_STOPPING;
	bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	char panic[sizeof(sl->panic)], how[48];

	panic_text(sl, panic);
	if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "signal=%d core=%s",
		    WTERMSIG(status), WCOREDUMP(status) ? "yes" : "no");
	else
		snprintf(how, sizeof(how), "exit=%d", WEXITSTATUS(status));
	hf_log(asked && clean ? HF_LOG_INFO : HF_LOG_WARN,
	    "master: child "
	    "%s role=%s slot=%u pid=%d inc=%" PRIu64 " %s worked=%" PRIu64
	    " up_ms=%" PRId64 "%s%s%s",
	    asked && clean ? "ended" : "died", hf_child_role(slot), slot,
	    (int)c->pid, c->inc, how, atomic_load(&sl->worked),
	    (hf_now_us() - c->started_us) / MS,
	    panic[0] != '\0' ? " panic=\"" : "", panic,
	    panic[0] != '\0' ? "\"" : "");
}

static void
judge(struct hf_master *m, unsigned slot, int status, bool worked)
{
	struct hf_child *c = &m->child[slot];
	int64_t now = hf_now_us();
	bool in_next = slot != HF_SHM_KEEPER && m->next.conf != NULL &&
	    c->generation == m->next.number;
	struct hf_death d = { .status = status,
		.worked = worked,
		.was_ready = c->was_ready,
		.blamed = c->killed,
		.failures = c->failures,
		.early_kills = c->early_kills,
		.up_us = now - c->started_us,
		.starting = slot == HF_SHM_KEEPER ?
		    m->boot == 0 :
		    in_next || m->phase.cur < HF_PHASE_RUNNING };
	struct hf_decision v;

	hf_supervise(&d, now, hf_backoff_random, NULL, &v);
	c->failures = v.failures;
	c->early_kills = v.early_kills;
	if (v.verdict == HF_GIVE_UP) {
		hf_sm_move(&c->life, HF_LIFE_NONE);
		c->failures = c->early_kills = 0;
		if (in_next)
			hf_reload_abandon(m, v.reason);
		else
			hf_master_fail(m, v.exit_code);
		return;
	}
	hf_log(HF_LOG_INFO,
	    "master: child restarts role=%s slot=%u "
	    "after_ms=%" PRId64 " reason=%s failures=%u",
	    hf_child_role(slot), slot, v.after_ms, v.reason, v.failures);
	hf_sm_move(&c->life, HF_LIFE_WAITING);
	c->restart_us = v.at_us;
}

static void
died(struct hf_master *m, unsigned slot, int status)
{
	struct hf_child *c = &m->child[slot];
	uint64_t inc = c->inc;
	bool worked, last;

	/* Its last words first, so that none is taken for its successor's. */
	hf_child_receive(m, slot);
	obituary(m, slot, status);
	worked = atomic_load(&m->shm.h->slot[slot].worked) != 0;
	hf_shm_retire(&m->shm, slot);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	/* Its heirs first: a lease of a turn that goes on is not settled. */
	hf_inherit_death(m, slot, inc, hf_death_own_fault(status, c->killed));
	if (slot != HF_SHM_KEEPER)
		hf_keeper_reap(m, slot, inc);
	last = c->life.cur == HF_LIFE_DRAINING ||
	    c->life.cur == HF_LIFE_STOPPING ||
	    m->phase.cur >= HF_PHASE_DRAINING;
	if (!last) {
		judge(m, slot, status, worked);
		return;
	}
	hf_sm_move(&c->life, HF_LIFE_NONE);
	c->failures = c->early_kills = 0;
}

void
hf_children_reap(struct hf_master *m)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (unsigned i = 0; i < HF_SHM_SLOTS; i++) {
			if (hf_child_lives(&m->child[i]) &&
			    m->child[i].pid == pid) {
				died(m, i, status);
				break;
			}
		}
	}
}
