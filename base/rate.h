/*
 * How many calls there were lately, and how many of them failed: counts in a
 * few slices of a window, each one word that is changed by compare-and-swap. Of
 * a slice that began before 'since' nothing is heard.  Lock-free; any thread of
 * any process.
 */
#ifndef HF_BASE_RATE_H
#define HF_BASE_RATE_H

#include <stdatomic.h>

#include "base/hf.h"

#define HF_RATE_SLICES 10

struct hf_rate {
	_Atomic uint64_t slice[HF_RATE_SLICES]; /* number, calls, failures */
};

struct hf_rate_sum {
	int64_t calls, failures;
};

/* One call.  Returns how many stood in the slice of an earlier lap whose place
 * its own one has taken. */
int64_t hf_rate_add(
    struct hf_rate *r, int64_t window_ms, bool failed, int64_t now_us);
/* One that was added then, and did not fail, is not to count. */
void hf_rate_undo(struct hf_rate *r, int64_t window_ms, int64_t then_us);
struct hf_rate_sum hf_rate_sum(const struct hf_rate *r, int64_t window_ms,
    int64_t since_us, int64_t now_us);

#endif
