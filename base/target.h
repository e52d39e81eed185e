/*
 * What all workers know of a target: its breaker, its pace, its quota, and how
 * many calls are in flight, as a cell per slot that ends with its worker, so
 * that a death leaks none.  A row of the scoreboard, found by the target's
 * name, so that it survives a reload and the death of every worker.  Lock-free;
 * any thread.
 */
#ifndef HF_BASE_TARGET_H
#define HF_BASE_TARGET_H

#include "base/conf.h"
#include "base/shm.h"

/* A place in a target's pace, of a call that is to be made.  All zero: none. */
struct hf_claim {
	struct hf_target_row *row;
	uint64_t place;
};

/* A call that was let through.  All zero: none. */
struct hf_ticket {
	struct hf_target_row *row;
	struct hf_breaker_pass pass;
	uint64_t place; /* in the pace */
	bool asking;	/* nothing was heard of it yet, and that counts */
};

enum hf_admit {
	HF_ADMIT_CALL,	/* the ticket is to be given back */
	HF_ADMIT_WAIT,	/* for *due_us: then the breaker is to be asked */
	HF_ADMIT_REFUSE /* another target, or later */
};

/* NULL: the table is full; everything below lets that pass. */
struct hf_target_row *hf_target_row(struct hf_shm *s, const char *name);
/* The same, but never made: NULL if nobody asked for it yet. */
const struct hf_target_row *hf_target_find(
    const struct hf_shm *s, const char *name);
int64_t hf_target_in_flight(const struct hf_target_row *r);

/* Disabled by hand, or its provider is.  That is a row by the provider's name,
 * so that targets which a reload adds are disabled too. */
bool hf_target_is_disabled(
    const struct hf_shm *s, const struct hf_conf_target *t);
/* Is this the name by which something is disabled? */
bool hf_target_is_disabled_as(const struct hf_shm *s, const char *name);
/* Of a target or a provider by name; keeper only.  HF_ELIMIT: the table is
 * full. */
int hf_target_disable(struct hf_shm *s, const char *name, bool disabled,
    struct hf_error *e) HF_MUST_CHECK;
/* What was learned of it is forgotten: its breaker is closed, nothing that its
 * provider asked for holds, how it counts tokens, how many it can hold and what
 * its quota is are not known.  Figures and calls under way stay. */
void hf_target_reset(struct hf_target_row *r, int64_t now_us);
/* A turn of this process waits for it; no more.  'r' may be NULL. */
void hf_target_wait(struct hf_shm *s, struct hf_target_row *r, bool begins);
int64_t hf_target_waiting(const struct hf_target_row *r);

/* When its breaker lets a call through: 0, now; INT64_MAX: not known. */
int64_t hf_target_opens_us(const struct hf_target_row *r, int64_t now_us);
/* May it be asked now, and has it had no trouble for that long?  What was
 * before the daemon began is not known, and counts as trouble. */
bool hf_target_is_healthy(const struct hf_shm *s, const struct hf_target_row *r,
    int64_t for_ms, int64_t now_us);
/* The limits that its calls keep to: those that are configured, else what was
 * learned of them, and where they come from.  UNKNOWN: there are none. */
enum hf_quota_source hf_target_limits(const struct hf_target_row *r,
    const struct hf_conf_call *c, int64_t now_us, struct hf_pace_limits *l);
/* The same for a plan: 0, now; else when there is room in a quota that was
 * learned, which holds no turn that can go elsewhere. */
int64_t hf_target_paced_us(const struct hf_target_row *r,
    const struct hf_conf_call *c, int64_t now_us);
/* A place in the target's pace, for a call of so many tokens (-1: not known);
 * or, if there is one already, when its time is.  WAIT if that is later; REFUSE
 * if it is later than 'latest_us' (there is no place then). */
enum hf_admit hf_target_reserve(struct hf_target_row *r,
    const struct hf_conf_call *c, struct hf_claim *claim, int64_t tokens,
    int64_t now_us, int64_t latest_us, int64_t *due_us);
/* The same for a call that is made now or not at all, and of which breaker and
 * quota are told nothing. */
bool hf_target_slip_in(
    struct hf_target_row *r, const struct hf_conf_call *c, int64_t now_us);
/* The call will not be made. */
void hf_target_unclaim(struct hf_claim *claim);
/* The call is made now, if breaker, slow start and max_in_flight let it; that
 * ends the claim.  WAIT: as many as may be are in flight. */
enum hf_admit hf_target_take(struct hf_shm *s, struct hf_target_row *r,
    const struct hf_conf_call *c, bool forced, int64_t now_us,
    struct hf_claim *claim, struct hf_ticket *k);
/* Would it, by max_in_flight and slow start? */
bool hf_target_has_room(const struct hf_target_row *r,
    const struct hf_conf_call *c, int64_t now_us);
/* The provider has begun to respond, and did not refuse it. */
void hf_target_admitted(struct hf_ticket *k, const struct hf_conf_call *c);
/* What its response says of its limits. */
void hf_target_said(const struct hf_ticket *k, const struct hf_conf_call *c,
    const struct hf_quota_said *said, int64_t now_us);
/* No provider saw it: it counts in no quota. */
void hf_target_unseen(const struct hf_ticket *k);
/* So many tokens it took. */
void hf_target_used(const struct hf_ticket *k, int64_t tokens);
/* It has begun to answer: a probe is decided by that. */
void hf_target_answers(
    const struct hf_ticket *k, const struct hf_conf_call *c, int64_t now_us);
/* It is over; the ticket is empty afterwards.  Empty ones are ignored. */
void hf_target_end(struct hf_shm *s, struct hf_ticket *k,
    const struct hf_conf_call *c, enum hf_health v, int64_t now_us);
/* No call is in flight there. */
bool hf_target_is_quiet(const struct hf_target_row *r);
/* May a call be made that is nobody's turn?  Only where the breaker is closed,
 * no call is in flight and, over all workers, fewer than warm_in_flight of its
 * kind are; with rpm, it takes a place that is free now.  NULL: never. */
bool hf_target_shadow_take(struct hf_shm *s, struct hf_target_row *r,
    const struct hf_conf_call *c, int64_t now_us);
void hf_target_shadow_end(struct hf_shm *s, struct hf_target_row *r);
/* Its provider asked to be left alone for longer than now. */
bool hf_target_is_blocked(const struct hf_target_row *r, int64_t now_us);
/* It said 429, and how long it wants to be left alone (-1: it did not; an hour
 * or more is not believed); 'others': not for the number of calls. */
void hf_target_limited(const struct hf_ticket *k, const struct hf_conf_call *c,
    int64_t hint_ms, bool others, int64_t now_us);

/* Its window in tokens: as configured, else as its provider has said in the
 * last ten minutes; 0: not known. */
int64_t hf_target_window(const struct hf_target_row *r,
    const struct hf_conf_call *c, int64_t now_us);
/* Its provider said that it is this. */
void hf_target_set_window(
    struct hf_target_row *r, int64_t tokens, int64_t now_us);
/* What its provider will count for so many tokens that are estimated. */
int64_t hf_target_tokens(const struct hf_target_row *r, int64_t estimated);
/* It counted 'tokens' for them; 'whole': surely all of them.  Servers that
 * count only what was not in their cache would teach that there are fewer. */
void hf_target_learn_tokens(
    struct hf_target_row *r, int64_t estimated, int64_t tokens, bool whole);

#endif
