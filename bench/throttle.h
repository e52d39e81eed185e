/*
 * Keeping to a quota: at most so many calls of a provider in any window of
 * time.  Who comes when none is left waits its turn.  A call counts from its
 * start until a window after the provider has shown that it has it: so no more
 * than the quota are with the provider in any window by its own clock either,
 * however long a call was on its way.  The loop's thread.
 */
#ifndef HF_BENCH_THROTTLE_H
#define HF_BENCH_THROTTLE_H

#include <event2/event.h>

#include "base/hf.h"

struct hf_throttle;

/* One call; the caller's, zeroed at first. */
struct hf_pass {
	struct hf_throttle *throttle; /* NULL: it neither waits nor counts */
	void (*go)(void *arg);
	void *arg;
	bool goes;	      /* else it waits */
	unsigned slot;	      /* when it goes */
	struct hf_pass *next; /* when it waits */
};

/* 'n' calls, at least 1, in any 'window_ms'. */
struct hf_throttle *hf_throttle_new(
    struct event_base *base, unsigned n, unsigned window_ms);
/* No pass of it is in use any more. */
void hf_throttle_free(struct hf_throttle *p);

/* Calls 'go' of the pass, now or later. */
void hf_throttle_ask(struct hf_throttle *p, struct hf_pass *pass);
/* The provider has the call, or it was given up; or the pass is not wanted any
 * more.  May be told more than once, and starts nothing by itself. */
void hf_throttle_settle(struct hf_pass *pass);

#endif
