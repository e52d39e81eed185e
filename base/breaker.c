/*
 * The breaker of a target.  The word: state (2 bits), count (14), slot (8),
 * time in ms (40 bits of the monotonic clock, which all processes share).
 */
#include <config.h>

#include "base/breaker.h"

#define N_MOST 0x3fffu
#define TIME_MASK ((UINT64_C(1) << 40) - 1)

static uint64_t
pack(enum hf_breaker_state s, unsigned n, unsigned slot, int64_t at_us)
{
	if (n > N_MOST)
		n = N_MOST;
	return (uint64_t)s << 62 | (uint64_t)n << 48 |
	    (uint64_t)(slot & 0xff) << 40 |
	    ((uint64_t)(at_us / 1000) & TIME_MASK);
}

static struct hf_breaker_view
unpack(uint64_t w)
{
	return (struct hf_breaker_view){
		.state = (enum hf_breaker_state)(w >> 62),
		.n = (unsigned)(w >> 48) & N_MOST,
		.slot = (unsigned)(w >> 40) & 0xff,
		.at_us = (int64_t)(w & TIME_MASK) * 1000,
	};
}

static bool
change(_Atomic uint64_t *b, uint64_t *seen, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(
	    b, seen, to, memory_order_acq_rel, memory_order_acquire);
}

struct hf_breaker_view
hf_breaker_view(const _Atomic uint64_t *b)
{
	return unpack(atomic_load_explicit(b, memory_order_acquire));
}

/* With each answer one call more may be in flight. */
static bool
ramp_admits(const struct hf_breaker_view *v, int64_t in_flight)
{
	return in_flight <= (int64_t)v->n + 1;
}

int64_t
hf_breaker_opens_us(
    const _Atomic uint64_t *b, int64_t in_flight, int64_t now_us)
{
	struct hf_breaker_view v = hf_breaker_view(b);

	switch (v.state) {
	case HF_BREAKER_CLOSED:
		return 0;
	case HF_BREAKER_OPEN:
		return v.at_us <= now_us ? 0 : v.at_us;
	case HF_BREAKER_PROBED:
		return v.at_us <= now_us ? 0 : INT64_MAX;
	case HF_BREAKER_RAMP:
		return ramp_admits(&v, in_flight + 1) ? 0 : INT64_MAX;
	}
	return 0;
}

bool
hf_breaker_take(_Atomic uint64_t *b, const struct hf_breaker_limits *l,
    unsigned slot, int64_t in_flight, bool forced, int64_t now_us,
    struct hf_breaker_pass *pass)
{
	uint64_t w = atomic_load_explicit(b, memory_order_acquire);

	*pass = (struct hf_breaker_pass){ .begun_us = now_us };
	for (;;) {
		struct hf_breaker_view v = unpack(w);
		bool early = forced && v.state == HF_BREAKER_OPEN;

		if (v.state == HF_BREAKER_CLOSED)
			return true;
		if (v.state == HF_BREAKER_RAMP)
			return forced || ramp_admits(&v, in_flight);
		if (v.at_us > now_us && !early)
			return false;
		pass->word = pack(HF_BREAKER_PROBED, 0, slot,
		    now_us + (int64_t)l->lease_ms * 1000);
		if (change(b, &w, pass->word)) {
			pass->probe = true;
			return true;
		}
	}
}

static uint64_t
open_word(const struct hf_breaker_limits *l, int64_t now_us)
{
	return pack(HF_BREAKER_OPEN, 0, 0, now_us + (int64_t)l->open_ms * 1000);
}

/* Did that call begin before the state did? */
static bool
is_stale(const struct hf_breaker_pass *pass, const struct hf_breaker_view *v)
{
	return pass->begun_us / 1000 * 1000 < v->at_us;
}

/* What becomes of 'w' when a call that has passed ends; the same: nothing. */
static uint64_t
next_word(uint64_t w, const struct hf_breaker_limits *l,
    const struct hf_breaker_pass *pass, enum hf_health verdict, int64_t now_us)
{
	struct hf_breaker_view v = unpack(w);
	uint64_t open = open_word(l, now_us);
	uint64_t closed = pack(HF_BREAKER_CLOSED, 0, 0, now_us);
	bool stale = is_stale(pass, &v);

	switch (v.state) {
	case HF_BREAKER_CLOSED:
		if (verdict == HF_HEALTH_ANSWERED && v.n > 0)
			return pack(v.state, 0, 0, v.at_us);
		if (verdict != HF_HEALTH_FAILED || l->failures <= 0 || stale)
			return w;
		return v.n + 1 >= (unsigned)l->failures ?
		    open :
		    pack(v.state, v.n + 1, 0, v.at_us);
	case HF_BREAKER_OPEN:
		return w;
	case HF_BREAKER_PROBED:
		if (!pass->probe || pass->word != w)
			return w;
		if (verdict == HF_HEALTH_FAILED)
			return open;
		if (verdict == HF_HEALTH_NEUTRAL) /* the next one may try */
			return pack(HF_BREAKER_OPEN, 0, 0, now_us);
		return l->ramp <= 0 ? closed :
				      pack(HF_BREAKER_RAMP, 0, 0, now_us);
	case HF_BREAKER_RAMP:
		if (verdict == HF_HEALTH_FAILED)
			return stale && !pass->probe ? w : open;
		if (verdict == HF_HEALTH_NEUTRAL)
			return w;
		return v.n + 1 >= (unsigned)l->ramp ?
		    closed :
		    pack(v.state, v.n + 1, 0, v.at_us);
	}
	return w;
}

void
hf_breaker_tell(_Atomic uint64_t *b, const struct hf_breaker_limits *l,
    const struct hf_breaker_pass *pass, enum hf_health v, int64_t now_us)
{
	uint64_t w = atomic_load_explicit(b, memory_order_acquire), to;

	do {
		to = next_word(w, l, pass, v, now_us);
	} while (to != w && !change(b, &w, to));
}

void
hf_breaker_open(_Atomic uint64_t *b, const struct hf_breaker_limits *l,
    const struct hf_breaker_pass *pass, int64_t now_us)
{
	uint64_t w = atomic_load_explicit(b, memory_order_acquire);
	struct hf_breaker_view v;

	do {
		v = unpack(w);
		if (v.state != HF_BREAKER_CLOSED || is_stale(pass, &v))
			return;
	} while (!change(b, &w, open_word(l, now_us)));
}

void
hf_breaker_died(_Atomic uint64_t *b, unsigned slot, int64_t now_us)
{
	uint64_t w = atomic_load_explicit(b, memory_order_acquire);
	struct hf_breaker_view v = unpack(w);

	/* Only that slot could have made another lease of it. */
	if (v.state == HF_BREAKER_PROBED && v.slot == slot)
		(void)change(b, &w, pack(HF_BREAKER_OPEN, 0, 0, now_us));
}

void
hf_breaker_trip(_Atomic uint64_t *b, int64_t until_us)
{
	atomic_store_explicit(
	    b, pack(HF_BREAKER_OPEN, 0, 0, until_us), memory_order_release);
}

void
hf_breaker_reset(_Atomic uint64_t *b, int64_t now_us)
{
	atomic_store_explicit(
	    b, pack(HF_BREAKER_CLOSED, 0, 0, now_us), memory_order_release);
}

void
hf_breaker_put(_Atomic uint64_t *b, const struct hf_breaker_view *v)
{
	atomic_store_explicit(
	    b, pack(v->state, v->n, 0, v->at_us), memory_order_release);
}

const char *
hf_breaker_name(enum hf_breaker_state s)
{
	static const char *const name[] = { "closed", "open", "probed",
		"ramp" };

	return name[s];
}
