/*
 * What to do after an attempt failed: pure policy over what was tried so far.
 * A live turn goes on to the next target at once; it waits only when no
 * target is left: min(cap, 2^a + U(0,1)), never below a provider's own hint,
 * within the turn's one deadline.
 */
#ifndef HF_GATEWAY_TURN_PLAN_H
#define HF_GATEWAY_TURN_PLAN_H

#include "base/backoff.h"
#include "base/conf.h"
#include "gateway/provider/provider.h"

#define HF_PLAN_TARGETS 16 /* most targets of a route */

struct hf_plan_target {
	bool tried;	       /* in this round */
	bool put_off;	       /* likewise */
	bool slow;	       /* lost a race that it led */
	enum hf_class last;    /* class of its last failure */
	bool timed_out;	       /* that failure was a deadline */
	bool limited;	       /* it was a 429 */
	bool small;	       /* cannot hold what must be kept */
	bool shrunk;	       /* was asked again with less */
	int64_t window;	       /* tokens; 0: not known */
	int64_t not_before_us; /* the provider's hint; 0: none */
};

struct hf_plan {
	struct hf_plan_target target[HF_PLAN_TARGETS];
	unsigned n_target;
	unsigned attempts; /* failed so far */
	unsigned waits;	   /* rounds begun by waiting */
	unsigned max_waits;
	bool early; /* one of them was not for the first hint */
	int64_t unit_ms, cap_ms;
	int64_t deadline_us; /* monotonic */
	enum hf_action action[HF_N_CLASS];
	/* When target 't' can be asked: 0, now; INT64_MAX: not known.  NULL:
	 * always. */
	int64_t (*opens)(void *arg, unsigned t, int64_t now_us);
	/* And when there is room for a call of it: 0, now.  NULL: always. */
	int64_t (*paced)(void *arg, unsigned t, int64_t now_us);
	/* Disabled by hand: neither asked nor waited for.  NULL: none is. */
	bool (*is_disabled)(void *arg, unsigned t);
	void *opens_arg; /* of all three */
	/* Targets in the order of this turn's preference, which is the route's
	 * unless its session stays elsewhere. */
	unsigned order[HF_PLAN_TARGETS];
	unsigned first; /* the target that is asked first */
	/* Somebody could not hold so many tokens: larger ones come first. */
	int64_t holds;
	hf_random_fn rnd;
	void *rnd_arg;
};

/* How an attempt failed. */
struct hf_plan_failure {
	enum hf_class cls;
	bool timed_out;	 /* by a deadline of ours */
	bool limited;	 /* the provider said 429 */
	int64_t hint_ms; /* its own wait; -1: none */
	int64_t holds;	 /* too long: it holds less than so many tokens */
	bool shrinks;	 /* ... and could be asked again with less */
	bool uncalled;	 /* it was not even called: the next is the first */
};

enum hf_plan_kind { HF_PLAN_CALL, HF_PLAN_WAIT, HF_PLAN_GIVE_UP };

struct hf_plan_step {
	enum hf_plan_kind kind;
	unsigned target;	  /* CALL */
	int64_t wait_ms;	  /* WAIT */
	enum hf_answer_id answer; /* GIVE_UP: for the client */
	int64_t retry_after_ms;	  /* GIVE_UP: least hint; -1 */
};

void hf_plan_init(
    struct hf_plan *p, const struct hf_conf_route *r, int64_t deadline_us);
/* The session stays with target 'home', if it is to be asked at all; 'lead' is
 * asked before it (the same: nobody is).  Before hf_plan_first(). */
void hf_plan_stay(struct hf_plan *p, unsigned home, unsigned lead);
/* The first target to call; whatever was chosen before is forgotten. */
struct hf_plan_step hf_plan_first(struct hf_plan *p, int64_t now_us);
/* Or this one: it was answering, and the call was lost by our fault; if it was
 * 'late', rather another one. */
struct hf_plan_step hf_plan_begin(
    struct hf_plan *p, unsigned t, bool late, int64_t now_us);
/* There is no room at the chosen target, and others can be asked: it may be
 * chosen again when those failed, once in a round. */
void hf_plan_put_off(struct hf_plan *p, unsigned t, int64_t now_us);
/* Target 't', which was chosen, is not asked. */
struct hf_plan_step hf_plan_skipped(
    struct hf_plan *p, unsigned t, int64_t now_us);
/* Target 't' failed. */
struct hf_plan_step hf_plan_failed(struct hf_plan *p, unsigned t,
    const struct hf_plan_failure *f, int64_t now_us);
/* Would that failure end the turn, whoever else could be asked? */
bool hf_plan_is_final(
    const struct hf_plan *p, unsigned t, const struct hf_plan_failure *f);

/*
 * Two calls at a time.  The target to be called beside the one that is being
 * called; -1: none is left in this round.
 */
int hf_plan_beside(struct hf_plan *p, int64_t now_us);
/* One of two calls failed, and the other one goes on. */
void hf_plan_failed_beside(struct hf_plan *p, unsigned t,
    const struct hf_plan_failure *f, int64_t now_us);
/* A call was ended because the other one answers.  That is no failure: the
 * target may be asked again in this round; if it was the one that was 'slow',
 * after those that were not asked yet. */
void hf_plan_lost(struct hf_plan *p, unsigned t, bool slow);

/* A wait is over: which target begins the round. */
struct hf_plan_step hf_plan_resume(struct hf_plan *p, int64_t now_us);
/* How many targets this round has not tried yet and might; those that are too
 * small are none. */
unsigned hf_plan_left(const struct hf_plan *p, int64_t now_us);
/* Is there a target that this round has not tried yet?  Likewise. */
bool hf_plan_has_next(const struct hf_plan *p, int64_t now_us);

#endif
