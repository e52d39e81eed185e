/*
 * The share of failures.  A slice: its number (24 bits), calls and failures
 * (20 bits each); counting stops where a count is full.
 */
#include <config.h>

#include "base/rate.h"

#define NUMBER_MASK ((UINT64_C(1) << 24) - 1)
#define COUNT_MASK ((UINT64_C(1) << 20) - 1)

static int64_t
slice_us(int64_t window_ms)
{
	return window_ms * 1000 / HF_RATE_SLICES;
}

void
hf_rate_add(struct hf_rate *r, int64_t window_ms, bool failed, int64_t now_us)
{
	uint64_t number = (uint64_t)(now_us / slice_us(window_ms));
	_Atomic uint64_t *s = &r->slice[number % HF_RATE_SLICES];
	uint64_t w = atomic_load_explicit(s, memory_order_relaxed), to;

	do {
		to = w >> 40 == (number & NUMBER_MASK) ?
		    w :
		    (number & NUMBER_MASK) << 40;
		if ((to >> 20 & COUNT_MASK) == COUNT_MASK)
			return;
		to += (UINT64_C(1) << 20) + failed;
	} while (!atomic_compare_exchange_weak_explicit(
	    s, &w, to, memory_order_relaxed, memory_order_relaxed));
}

struct hf_rate_sum
hf_rate_sum(const struct hf_rate *r, int64_t window_ms, int64_t since_us,
    int64_t now_us)
{
	int64_t slice = slice_us(window_ms), last = now_us / slice;
	struct hf_rate_sum sum = { 0 };

	for (int64_t i = last; i > last - HF_RATE_SLICES && i > 0; i--) {
		uint64_t w = atomic_load_explicit(
		    &r->slice[i % HF_RATE_SLICES], memory_order_relaxed);

		if (i * slice < since_us ||
		    w >> 40 != ((uint64_t)i & NUMBER_MASK))
			continue;
		sum.calls += (int64_t)(w >> 20 & COUNT_MASK);
		sum.failures += (int64_t)(w & COUNT_MASK);
	}
	return sum;
}
