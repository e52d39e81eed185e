/*
 * What was learned of a target's quota, where the configuration says none.
 *
 *   unknown --a response names its limits--> said
 *	|					|
 *	+------------ 429 --> found <-- 429 ----+
 *
 * Unknown is no limit but a slow start: so many calls may be on their way that
 * nothing was heard of yet, and with each that is admitted, or says nothing for
 * slow_start_ms, one more.  A 429 tells how many calls the target admitted and,
 * by its hint, in which window: its place frees when the oldest of them leaves
 * that.  Another 429 to a call that was made by that knowledge halves it.
 * After it the slow start begins with one call.  Of so few calls that they can
 * be no quota, and of a 429 without a hint, which may mean anything, nothing is
 * learned but that.
 *
 * What was found by three refusals or more holds for ten windows, grows by an
 * eighth with each of the next ten, and is forgotten then; what was found by
 * fewer, or is half of what was, after one window, because a provider that had
 * too much to do for a moment says the same; what was said, after an hour.
 * Lock-free; any thread of any process.
 */
#ifndef HF_BASE_QUOTA_H
#define HF_BASE_QUOTA_H

#include "base/pace.h"

enum hf_quota_source {
	HF_QUOTA_UNKNOWN,
	HF_QUOTA_SAID,
	HF_QUOTA_FOUND,
	HF_QUOTA_CONFIGURED, /* nothing is learned */
};

struct hf_quota {
	_Atomic uint64_t word;	 /* calls (32), window in ms (30), source */
	_Atomic int64_t at_us;	 /* it has been so since */
	_Atomic int64_t said_us; /* the last response that said it */
	_Atomic int64_t tokens;	 /* said, in that window; 0: not */
	_Atomic int32_t seen;	 /* refusals that say the same */
	_Atomic int32_t room;	 /* of the slow start; 0: not begun */
	_Atomic int32_t typical; /* tokens of a call; 0: not known */
};

/* A limit as a response says it; -1: it does not. */
struct hf_quota_count {
	int64_t limit, left;
	int64_t reset_ms; /* until all of it is there again */
};

struct hf_quota_said {
	struct hf_quota_count calls, tokens; /* in a window */
};

/* A call that got a 429. */
struct hf_quota_refusal {
	uint64_t place;	 /* in the pace */
	int64_t sent_us; /* when it went */
	int64_t hint_ms; /* how long it is to wait; <= 0: not said */
	bool others;	 /* it says that calls are left: it is not for them */
};

/* What is known: its limits, all 0 if nothing is. */
enum hf_quota_source hf_quota_limits(
    const struct hf_quota *q, int64_t now_us, struct hf_pace_limits *l);
/* 'window_ms': what a window is if nothing tells. */
void hf_quota_said(struct hf_quota *q, const struct hf_pace *p,
    const struct hf_quota_said *s, int window_ms, int64_t now_us);
void hf_quota_refused(struct hf_quota *q, struct hf_pace *p,
    const struct hf_quota_refusal *r, int window_ms, int64_t now_us);

/* May one more call be made, with so many on their way (it included) that
 * nothing was heard of?  'start': how many at first. */
bool hf_quota_has_room(
    const struct hf_quota *q, int start, int64_t asking, int64_t now_us);
/* So many were admitted that went then. */
void hf_quota_admitted(
    struct hf_quota *q, int start, int64_t n, int64_t sent_us);
/* "none", "said", "found" or "configured". */
const char *hf_quota_name(enum hf_quota_source s);
/* By hand: nothing is known, and the slow start begins anew. */
void hf_quota_forget(struct hf_quota *q);
/* So many tokens a call took: the mean of the last ones. */
void hf_quota_tokens(struct hf_quota *q, int64_t tokens);

#endif
