/*
 * Pacing of a target: at most so many calls, and so many tokens, in any
 * window.  Its last calls stand in a ring in shared memory, and so do those
 * that are to come: a reservation is a place in that ring, so they are served
 * in order of arrival over all workers, a burst as large as the quota allows
 * goes at once, and the next one exactly when there is room for it.
 *
 * A place is asked again when its time has come, because what stands before it
 * may have gone later than it was planned, or the quota have turned out to be
 * smaller.  What did not count after all (a client that left, a call that was
 * refused) is dropped.
 *
 * Lock-free: a place is taken by one compare-and-swap; whoever finds it taken
 * moves the counter on, so that a death in between holds up nobody.  A
 * reservation whose worker died is lost.  Any thread of any process.
 */
#ifndef HF_BASE_PACE_H
#define HF_BASE_PACE_H

#include <stdatomic.h>

#include "base/hf.h"

/* A larger quota is spread, in equal parts of the window. */
#define HF_PACE_RING 1024

struct hf_pace {
	_Atomic uint64_t next;	    /* number of the next reservation */
	_Atomic int64_t blocked_us; /* none is due before: a provider's hint */
	/* time in ms (40 bits), tokens (16), dropped, gone, lap (6) */
	_Atomic uint64_t place[HF_PACE_RING];
};

struct hf_pace_limits {
	int64_t n;	/* calls; 0: no limit */
	int64_t tokens; /* 0: no limit */
	int window_ms;
};

struct hf_pace_place {
	int64_t at_us; /* when it went, or is to go */
	int64_t tokens;
	bool gone, dropped;
};

/* When the next reservation would be due (now_us at the least). */
int64_t hf_pace_peek_us(
    const struct hf_pace *p, const struct hf_pace_limits *l, int64_t now_us);
/* Reserve for a call of so many tokens; *i is the number of the place.  False:
 * it would be due after 'latest_us', nothing is reserved. */
bool hf_pace_take(struct hf_pace *p, const struct hf_pace_limits *l,
    int64_t tokens, int64_t now_us, int64_t latest_us, uint64_t *i,
    int64_t *due_us);
/* For operators: how many calls went in the window that ends now, and how many
 * are to go. */
void hf_pace_count(const struct hf_pace *p, const struct hf_pace_limits *l,
    int64_t now_us, unsigned *admitted, unsigned *reserved);
/* When place 'i' is due by what is known now (now_us at the least). */
int64_t hf_pace_due_us(const struct hf_pace *p, const struct hf_pace_limits *l,
    uint64_t i, int64_t now_us);
/* It is not to go before that: those behind it should know. */
void hf_pace_move(struct hf_pace *p, uint64_t i, int64_t due_us);
/* Its call is made. */
void hf_pace_go(struct hf_pace *p, uint64_t i, int64_t now_us);
/* It does not count: no call was made, or none that the provider counts. */
void hf_pace_drop(struct hf_pace *p, uint64_t i);
/* So many tokens it were. */
void hf_pace_used(struct hf_pace *p, uint64_t i, int64_t tokens);
/* A place that is not long gone; false: it is, or was never taken. */
bool hf_pace_look(
    const struct hf_pace *p, uint64_t i, struct hf_pace_place *place);
/* The provider wants nothing before 'until_us'. */
void hf_pace_block(struct hf_pace *p, int64_t until_us);

#endif
