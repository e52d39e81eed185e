/*
 * Pacing of a target.
 */
#include <config.h>

#include "base/pace.h"

#define LAP_BITS 12
#define LAP_MASK ((UINT64_C(1) << LAP_BITS) - 1)

/* What lies between our clock and the provider's: calls that leave late are
 * followed by some that do not. */
#define MARGIN_DIV 25
#define MARGIN_US 40000

static uint64_t
lap_of(uint64_t i)
{
	return (i / HF_PACE_RING + 1) & LAP_MASK;
}

static uint64_t
load(const struct hf_pace *p, uint64_t i)
{
	return atomic_load_explicit(
	    &p->place[i % HF_PACE_RING], memory_order_acquire);
}

/* The time of reservation 'i'; 0: it was never made, or is long gone. */
static int64_t
time_of(const struct hf_pace *p, uint64_t i)
{
	uint64_t w = load(p, i);

	return (w & LAP_MASK) == lap_of(i) ? (int64_t)(w >> LAP_BITS) : 0;
}

static int64_t
due(const struct hf_pace *p, const struct hf_pace_limits *l, uint64_t i,
    int64_t now_us)
{
	int64_t t = atomic_load_explicit(&p->blocked_us, memory_order_relaxed);
	uint64_t k = (uint64_t)l->n < HF_PACE_RING - 1 ? (uint64_t)l->n :
							 HF_PACE_RING - 1;
	int64_t window = (int64_t)l->window_ms * 1000;
	int64_t old;

	window += window / MARGIN_DIV + MARGIN_US;
	if (t < now_us)
		t = now_us;
	if (i >= k && (old = time_of(p, i - k)) > 0 &&
	    old + window * (int64_t)k / l->n > t)
		t = old + window * (int64_t)k / l->n;
	/* Never before the one that came before. */
	if (i >= 1 && (old = time_of(p, i - 1)) > t)
		t = old;
	return t;
}

int64_t
hf_pace_peek_us(
    const struct hf_pace *p, const struct hf_pace_limits *l, int64_t now_us)
{
	uint64_t i;

	if (l->n <= 0) {
		int64_t t =
		    atomic_load_explicit(&p->blocked_us, memory_order_relaxed);
		return t > now_us ? t : now_us;
	}
	i = atomic_load_explicit(&p->next, memory_order_acquire);
	if ((load(p, i) & LAP_MASK) == lap_of(i))
		i++; /* taken a moment ago */
	return due(p, l, i, now_us);
}

bool
hf_pace_take(struct hf_pace *p, const struct hf_pace_limits *l, int64_t now_us,
    int64_t latest_us, int64_t *due_us)
{
	uint64_t i, seen, made;

	if (l->n <= 0) {
		*due_us = hf_pace_peek_us(p, l, now_us);
		return *due_us <= latest_us;
	}
	for (;;) {
		_Atomic uint64_t *place;
		bool mine = false;

		i = atomic_load_explicit(&p->next, memory_order_acquire);
		place = &p->place[i % HF_PACE_RING];
		seen = atomic_load_explicit(place, memory_order_acquire);
		if (atomic_load_explicit(&p->next, memory_order_acquire) != i)
			continue; /* 'seen' may be of a later lap */
		if ((seen & LAP_MASK) != lap_of(i)) {
			*due_us = due(p, l, i, now_us);
			if (*due_us > latest_us)
				return false;
			made = (uint64_t)*due_us << LAP_BITS | lap_of(i);
			mine = atomic_compare_exchange_strong_explicit(place,
			    &seen, made, memory_order_acq_rel,
			    memory_order_acquire);
		}
		/* Whoever took it may have died since. */
		(void)atomic_compare_exchange_strong_explicit(&p->next, &i,
		    i + 1, memory_order_acq_rel, memory_order_acquire);
		if (mine)
			return true;
	}
}

void
hf_pace_count(const struct hf_pace *p, const struct hf_pace_limits *l,
    int64_t now_us, unsigned *admitted, unsigned *reserved)
{
	int64_t since = now_us - (int64_t)l->window_ms * 1000;

	*admitted = *reserved = 0;
	for (unsigned i = 0; i < HF_PACE_RING; i++) {
		int64_t t = (int64_t)(load(p, i) >> LAP_BITS);

		if (t > now_us)
			++*reserved;
		else if (t > since && t > 0)
			++*admitted;
	}
}

void
hf_pace_block(struct hf_pace *p, int64_t until_us)
{
	int64_t t = atomic_load_explicit(&p->blocked_us, memory_order_relaxed);

	while (t < until_us &&
	    !atomic_compare_exchange_weak_explicit(&p->blocked_us, &t, until_us,
		memory_order_relaxed, memory_order_relaxed))
		;
}
