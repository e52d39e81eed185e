/*
 * The restart policy: pure functions of how a child died and what it had
 * done, without fork, clock or log.  After Postfix: a child that fails by its
 * own fault before doing any work is a structural fault and waits (1 s to
 * 60 s, doubling, with jitter); one that did work, or was killed from
 * outside, comes back at once.
 */
#ifndef HF_WORKERS_SUPERVISE_H
#define HF_WORKERS_SUPERVISE_H

#include "base/backoff.h"
#include "base/hf.h"

/* How often in a row a child may crash before the service was ever ready,
 * and how often one may be killed from outside before it was ready, until
 * that counts as a fault of its own (the kernel's OOM killer looks so). */
#define HF_SUPERVISE_START_TRIES 5
#define HF_SUPERVISE_EARLY_KILLS 16

struct hf_death {
	int status;  /* as waitpid() gave it */
	bool worked; /* it did some work */
	bool was_ready;
	bool blamed;	      /* we killed it: its heartbeat stood */
	bool starting;	      /* the service was never ready yet */
	unsigned failures;    /* own faults in a row before this */
	unsigned early_kills; /* killed before ready, in a row */
	int64_t up_us;	      /* how long it lived */
};

enum hf_verdict {
	HF_RESTART_NOW,
	HF_RESTART_AFTER,
	HF_GIVE_UP /* the service cannot start */
};

struct hf_decision {
	enum hf_verdict verdict;
	int64_t at_us;	   /* when to restart */
	int64_t after_ms;  /* the same as a wait, for the log */
	unsigned failures; /* to keep for the next death */
	unsigned early_kills;
	int exit_code;	    /* HF_GIVE_UP: what we end with */
	const char *reason; /* a word for the log; static */
};

void hf_supervise(const struct hf_death *d, int64_t now_us, hf_random_fn rnd,
    void *arg, struct hf_decision *out);

/* True if the signal is one that people and the kernel send from outside,
 * not one that a process brings upon itself. */
bool hf_death_outside(int status);
/* Neither killed from outside nor ended in order.  'blamed': as above. */
bool hf_death_own_fault(int status, bool blamed);

/*
 * One heartbeat as its watcher sees it.  Time counts as standing only as far
 * as the watcher itself ran: a machine that was paused as a whole does not
 * make every child look dead.
 */
struct hf_beat {
	uint64_t last;
	int64_t looked_us; /* 0: not yet */
	int64_t stale_us;  /* how long it has stood */
};

void hf_beat_reset(struct hf_beat *b);
/* Look at the value; true when it has stood for 'limit_us'.  'step_us' is the
 * most that one look may add. */
bool hf_beat_stale(struct hf_beat *b, uint64_t value, int64_t now_us,
    int64_t step_us, int64_t limit_us);

#endif
