/*
 * Pacing of a target: at most 'n' calls in any window.  The times of its last
 * admissions stand in a ring in shared memory; the next one is due a window
 * after the n-th last.  A reservation is a place in that ring, so they are
 * served in order of arrival over all workers, a burst as large as the quota
 * allows goes at once, and the next one exactly when its place is free.
 *
 * Lock-free: a place is taken by one compare-and-swap; whoever finds it taken
 * moves the counter on, so that a death in between holds up nobody.  A
 * reservation that is not used is lost.  Any thread of any process.
 */
#ifndef HF_BASE_PACE_H
#define HF_BASE_PACE_H

#include <stdatomic.h>

#include "base/hf.h"

/* A larger quota is spread: so many of it in their share of the window. */
#define HF_PACE_RING 256

struct hf_pace {
	_Atomic uint64_t next;	    /* number of the next reservation */
	_Atomic int64_t blocked_us; /* none is due before: a provider's hint */
	_Atomic uint64_t place[HF_PACE_RING]; /* time << 12 | lap */
};

struct hf_pace_limits {
	int n; /* 0: no limit */
	int window_ms;
};

/* When the next reservation would be due (now_us at the least). */
int64_t hf_pace_peek_us(
    const struct hf_pace *p, const struct hf_pace_limits *l, int64_t now_us);
/* Reserve; false: it would be due after 'latest_us'. */
bool hf_pace_take(struct hf_pace *p, const struct hf_pace_limits *l,
    int64_t now_us, int64_t latest_us, int64_t *due_us);
/* For operators: how many of the reservations lie in the window that ends now,
 * and how many after now. */
void hf_pace_count(const struct hf_pace *p, const struct hf_pace_limits *l,
    int64_t now_us, unsigned *admitted, unsigned *reserved);
/* The provider wants nothing before 'until_us'. */
void hf_pace_block(struct hf_pace *p, int64_t until_us);

#endif
