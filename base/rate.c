/*
 * Calls and failures in a window.  A slice: its number (24 bits), calls and
 * failures (20 bits each); counting stops where a count is full.
 */
#include <config.h>

#include "base/rate.h"

#define NUMBER_MASK ((UINT64_C(1) << 24) - 1)
#define COUNT_MASK ((UINT64_C(1) << 20) - 1)
#define ONE_CALL (UINT64_C(1) << 20)

static int64_t
slice_us(int64_t window_ms)
{
	return window_ms * 1000 / HF_RATE_SLICES;
}

static uint64_t
number_of(int64_t window_ms, int64_t at_us)
{
	return (uint64_t)(at_us / slice_us(window_ms)) & NUMBER_MASK;
}

static _Atomic uint64_t *
slice_of(struct hf_rate *r, int64_t window_ms, int64_t at_us)
{
	return &r->slice[at_us / slice_us(window_ms) % HF_RATE_SLICES];
}

static int64_t
calls_in(uint64_t w)
{
	return (int64_t)(w >> 20 & COUNT_MASK);
}

int64_t
hf_rate_add(struct hf_rate *r, int64_t window_ms, bool failed, int64_t now_us)
{
	uint64_t number = number_of(window_ms, now_us);
	_Atomic uint64_t *s = slice_of(r, window_ms, now_us);
	uint64_t w = atomic_load_explicit(s, memory_order_relaxed), to;
	bool same;

	do {
		same = w >> 40 == number;
		to = same ? w : number << 40;
		if (calls_in(to) == COUNT_MASK)
			return 0;
		to += ONE_CALL + failed;
	} while (!atomic_compare_exchange_weak(s, &w, to));
	return same ? 0 : calls_in(w);
}

void
hf_rate_undo(struct hf_rate *r, int64_t window_ms, int64_t then_us)
{
	uint64_t number = number_of(window_ms, then_us);
	_Atomic uint64_t *s = slice_of(r, window_ms, then_us);
	uint64_t w = atomic_load_explicit(s, memory_order_relaxed);

	while (w >> 40 == number && calls_in(w) > 0 &&
	    !atomic_compare_exchange_weak(s, &w, w - ONE_CALL))
		;
}

struct hf_rate_sum
hf_rate_sum(const struct hf_rate *r, int64_t window_ms, int64_t since_us,
    int64_t now_us)
{
	int64_t slice = slice_us(window_ms), last = now_us / slice;
	struct hf_rate_sum sum = { 0 };

	for (int64_t i = last; i > last - HF_RATE_SLICES && i > 0; i--) {
		uint64_t w = atomic_load(&r->slice[i % HF_RATE_SLICES]);

		if (i * slice < since_us ||
		    w >> 40 != ((uint64_t)i & NUMBER_MASK))
			continue;
		sum.calls += calls_in(w);
		sum.failures += (int64_t)(w & COUNT_MASK);
	}
	return sum;
}
