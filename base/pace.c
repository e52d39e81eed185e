/*
 * Pacing of a target.
 */
#include <config.h>

#include "base/pace.h"

#define LAP_MASK ((UINT64_C(1) << 6) - 1)
#define GONE (UINT64_C(1) << 6)
#define DROPPED (UINT64_C(1) << 7)
#define TOKENS_SHIFT 8
#define TOKENS_MASK ((UINT64_C(1) << 16) - 1)
#define TOKENS_UNIT 16 /* a million and more are as many as fit */
#define TIME_SHIFT 24
#define TIME_MASK (~((UINT64_C(1) << TIME_SHIFT) - 1))

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

/* Rounded up: never earlier than it was. */
static uint64_t
time_bits(int64_t us)
{
	return (uint64_t)((us + 999) / 1000) << TIME_SHIFT;
}

static uint64_t
token_bits(int64_t tokens)
{
	uint64_t n = tokens <= 0 ?
	    0 :
	    ((uint64_t)tokens + TOKENS_UNIT - 1) / TOKENS_UNIT;

	return (n < TOKENS_MASK ? n : TOKENS_MASK) << TOKENS_SHIFT;
}

static int64_t
tokens_of(uint64_t w)
{
	return (int64_t)(w >> TOKENS_SHIFT & TOKENS_MASK) * TOKENS_UNIT;
}

static struct hf_pace_place
place_of(uint64_t w)
{
	return (struct hf_pace_place){
		.at_us = (int64_t)(w >> TIME_SHIFT) * 1000,
		.tokens = tokens_of(w),
		.gone = (w & GONE) != 0,
		.dropped = (w & DROPPED) != 0,
	};
}

bool
hf_pace_look(const struct hf_pace *p, uint64_t i, struct hf_pace_place *place)
{
	uint64_t w = load(p, i);

	if ((w & LAP_MASK) != lap_of(i))
		return false;
	*place = place_of(w);
	return true;
}

/* --- when there is room ----------------------------------------------------
 */

/* The limits as they are kept to. */
struct rule {
	int64_t n, n_us; /* calls in a window of theirs */
	int64_t tokens, us;
};

static struct rule
rule_of(const struct hf_pace_limits *l)
{
	struct rule r = { .n = l->n, .tokens = l->tokens };

	r.us = (int64_t)l->window_ms * 1000;
	r.us += r.us / MARGIN_DIV + MARGIN_US;
	r.n_us = r.us;
	if (r.n > HF_PACE_RING - 1) {
		/* In as many parts as none of them is too large. */
		int64_t parts = (r.n + HF_PACE_RING - 2) / (HF_PACE_RING - 1);

		r.n /= parts;
		r.n_us /= parts;
	}
	return r;
}

/* Would place 'i' fit at 't'?  0: yes; else when to look again, which is later
 * than 't': the first of those that are in the way has left the window then.
 * Of those behind it the ones count that went before it all the same. */
static int64_t
in_the_way(const struct hf_pace *p, const struct rule *r, uint64_t i,
    int64_t tokens, int64_t t)
{
	uint64_t end = atomic_load_explicit(&p->next, memory_order_acquire);
	int64_t calls = 0, sum = 0, call = INT64_MAX, token = INT64_MAX;
	struct hf_pace_place at;
	int64_t later = 0;

	end = end < i ? i : end;
	for (uint64_t j = end; j-- > 0 && end - j < HF_PACE_RING;) {
		if (!hf_pace_look(p, j, &at) || at.dropped || j == i ||
		    (j > i && !at.gone))
			continue;
		if (at.at_us + r->n_us > t) {
			calls++;
			call = at.at_us < call ? at.at_us : call;
		}
		if (at.at_us + r->us > t && at.tokens > 0) {
			sum += at.tokens;
			token = at.at_us < token ? at.at_us : token;
		}
	}
	if (r->n > 0 && calls >= r->n)
		later = call + r->n_us;
	/* One that is larger than all goes when nothing else is there. */
	if (r->tokens > 0 && sum > 0 && sum + tokens > r->tokens &&
	    token + r->us > later)
		later = token + r->us;
	return later;
}

/* The n-th last call before place 'i' leaves the window: not before that. */
static int64_t
nth_leaves(const struct hf_pace *p, const struct rule *r, uint64_t i)
{
	struct hf_pace_place at;
	int64_t n = 0;

	for (uint64_t j = i; r->n > 0 && j-- > 0 && i - j < HF_PACE_RING;) {
		if (!hf_pace_look(p, j, &at))
			break;
		if (!at.dropped && ++n == r->n)
			return at.at_us + r->n_us;
	}
	return 0;
}

static int64_t
fits_at(const struct hf_pace *p, const struct rule *r, uint64_t i,
    int64_t tokens, int64_t t)
{
	int64_t later = nth_leaves(p, r, i);

	if (later > t)
		t = later;
	while ((later = in_the_way(p, r, i, tokens, t)) > t)
		t = later;
	return t;
}

static int64_t
not_before(const struct hf_pace *p, int64_t now_us)
{
	int64_t t = atomic_load_explicit(&p->blocked_us, memory_order_relaxed);

	return t < now_us ? now_us : t;
}

static bool
is_limited(const struct hf_pace_limits *l)
{
	return l->n > 0 || l->tokens > 0;
}

/* When a new place 'i' would be due: never before the one that came before. */
static int64_t
plan(const struct hf_pace *p, const struct hf_pace_limits *l, uint64_t i,
    int64_t tokens, int64_t now_us)
{
	const struct rule r = rule_of(l);
	int64_t t = not_before(p, now_us);
	struct hf_pace_place at;

	if (!is_limited(l))
		return t;
	if (i > 0 && hf_pace_look(p, i - 1, &at) && !at.dropped && !at.gone &&
	    at.at_us - 1000 >= t) /* it was rounded up */
		t = at.at_us;
	return fits_at(p, &r, i, tokens, t);
}

int64_t
hf_pace_peek_us(
    const struct hf_pace *p, const struct hf_pace_limits *l, int64_t now_us)
{
	uint64_t i = atomic_load_explicit(&p->next, memory_order_acquire);

	if ((load(p, i) & LAP_MASK) == lap_of(i))
		i++; /* taken a moment ago */
	return plan(p, l, i, 0, now_us);
}

int64_t
hf_pace_due_us(const struct hf_pace *p, const struct hf_pace_limits *l,
    uint64_t i, int64_t now_us)
{
	const struct rule r = rule_of(l);
	int64_t t = not_before(p, now_us);
	struct hf_pace_place at;

	/* So many came after it that nobody knows: as it was planned. */
	if (!is_limited(l) || !hf_pace_look(p, i, &at))
		return t;
	return fits_at(p, &r, i, at.tokens, t);
}

/* --- places ----------------------------------------------------------------
 */

bool
hf_pace_take(struct hf_pace *p, const struct hf_pace_limits *l, int64_t tokens,
    int64_t now_us, int64_t latest_us, uint64_t *out, int64_t *due_us)
{
	uint64_t i, seen, made;

	for (;;) {
		_Atomic uint64_t *place;
		bool mine = false;

		i = atomic_load_explicit(&p->next, memory_order_acquire);
		place = &p->place[i % HF_PACE_RING];
		seen = atomic_load_explicit(place, memory_order_acquire);
		if (atomic_load_explicit(&p->next, memory_order_acquire) != i)
			continue; /* 'seen' may be of a later lap */
		if ((seen & LAP_MASK) != lap_of(i)) {
			*due_us = plan(p, l, i, tokens, now_us);
			if (*due_us > latest_us)
				return false;
			made =
			    time_bits(*due_us) | token_bits(tokens) | lap_of(i);
			mine = atomic_compare_exchange_strong_explicit(place,
			    &seen, made, memory_order_acq_rel,
			    memory_order_acquire);
		}
		*out = i;
		/* Whoever took it may have died since. */
		(void)atomic_compare_exchange_strong_explicit(&p->next, &i,
		    i + 1, memory_order_acq_rel, memory_order_acquire);
		if (mine)
			return true;
	}
}

/* Change the bits of 'mask' in place 'i', if it is still that one. */
static void
change(struct hf_pace *p, uint64_t i, uint64_t mask, uint64_t bits)
{
	_Atomic uint64_t *place = &p->place[i % HF_PACE_RING];
	uint64_t w = load(p, i);

	while ((w & LAP_MASK) == lap_of(i) &&
	    !atomic_compare_exchange_weak_explicit(place, &w,
		(w & ~mask) | bits, memory_order_acq_rel, memory_order_acquire))
		;
}

void
hf_pace_move(struct hf_pace *p, uint64_t i, int64_t due_us)
{
	change(p, i, TIME_MASK, time_bits(due_us));
}

void
hf_pace_go(struct hf_pace *p, uint64_t i, int64_t now_us)
{
	change(p, i, TIME_MASK | GONE, time_bits(now_us) | GONE);
}

void
hf_pace_drop(struct hf_pace *p, uint64_t i)
{
	change(p, i, DROPPED, DROPPED);
}

void
hf_pace_used(struct hf_pace *p, uint64_t i, int64_t tokens)
{
	change(p, i, TOKENS_MASK << TOKENS_SHIFT, token_bits(tokens));
}

void
hf_pace_count(const struct hf_pace *p, const struct hf_pace_limits *l,
    int64_t now_us, unsigned *admitted, unsigned *reserved)
{
	int64_t since = now_us - (int64_t)l->window_ms * 1000;

	*admitted = *reserved = 0;
	for (unsigned i = 0; i < HF_PACE_RING; i++) {
		struct hf_pace_place at = place_of(load(p, i));

		if (at.dropped)
			continue;
		if (at.gone && at.at_us > since)
			++*admitted;
		else if (!at.gone && at.at_us > now_us)
			++*reserved;
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
