/*
 * Rows of targets as text:
 *
 *	holdfast-targets 1 WALL_US
 *	row KEY STATE N AT BLOCKED QUOTA SINCE SAID TOKENS TYPICAL SEEN ROOM
 *	call AT TOKENS			of that row, the oldest first
 *	end SUM				of all that stands before
 *
 * Numbers are decimal; times are milliseconds from the moment of writing.
 */
#include <config.h>

#include "base/target_save.h"

#include <inttypes.h>

#define MAGIC "holdfast-targets 1 "
#define N_ROW 12
#define TIME_LEAST_US 1000

static uint64_t
fnv(uint64_t h, const void *p, size_t size)
{
	const unsigned char *c = p;

	for (size_t i = 0; i < size; i++)
		h = (h ^ c[i]) * 0x100000001b3;
	return h;
}

#define FNV_START UINT64_C(0xcbf29ce484222325)

static uint64_t
load64(const _Atomic uint64_t *w)
{
	return atomic_load_explicit(w, memory_order_acquire);
}

static int64_t
load_i64(const _Atomic int64_t *w)
{
	return atomic_load_explicit(w, memory_order_acquire);
}

uint64_t
hf_targets_digest(const struct hf_shm *s)
{
	uint64_t h = FNV_START;

	for (unsigned i = 0; i < HF_SHM_TARGETS; i++) {
		const struct hf_target_row *r = &s->h->target[i];
		const uint64_t w[] = { load64(&r->key), load64(&r->breaker),
			load64(&r->quota.word),
			(uint64_t)load_i64(&r->quota.tokens),
			(uint64_t)load_i64(&r->pace.blocked_us),
			load64(&r->pace.next) };

		if (w[0] != 0)
			h = fnv(h, w, sizeof(w));
	}
	return h;
}

/* --- writing ---------------------------------------------------------------
 */

static int64_t
from_now(int64_t us, int64_t now_us)
{
	return (us - now_us) / 1000;
}

static void
save_calls(const struct hf_pace *p, int64_t now_us, struct hf_buf *out)
{
	uint64_t next = load64(&p->next);
	uint64_t i = next > HF_PACE_RING ? next - HF_PACE_RING : 0;
	struct hf_pace_place at;

	for (; i < next; i++)
		if (hf_pace_look(p, i, &at) && at.gone && !at.dropped)
			hf_buf_printf(out, "call %" PRId64 " %" PRId64 "\n",
			    from_now(at.at_us, now_us), at.tokens);
}

static void
save_row(const struct hf_target_row *r, int64_t now_us, struct hf_buf *out)
{
	struct hf_breaker_view b = hf_breaker_view(&r->breaker);

	if (b.state == HF_BREAKER_PROBED) {
		b.state = HF_BREAKER_OPEN;
		b.at_us = now_us;
		b.n = 0;
	}
	hf_buf_printf(out,
	    "row %" PRIu64 " %u %u %" PRId64 " %" PRId64 " %" PRIu64 " %" PRId64
	    " %" PRId64 " %" PRId64 " %d %d %d\n",
	    load64(&r->key), (unsigned)b.state, b.n, from_now(b.at_us, now_us),
	    from_now(load_i64(&r->pace.blocked_us), now_us),
	    load64(&r->quota.word), from_now(load_i64(&r->quota.at_us), now_us),
	    from_now(load_i64(&r->quota.said_us), now_us),
	    load_i64(&r->quota.tokens), (int)atomic_load(&r->quota.typical),
	    (int)atomic_load(&r->quota.seen), (int)atomic_load(&r->quota.room));
	save_calls(&r->pace, now_us, out);
}

void
hf_targets_save(
    const struct hf_shm *s, int64_t now_us, int64_t wall_us, struct hf_buf *out)
{
	hf_buf_printf(out, MAGIC "%" PRId64 "\n", wall_us);
	for (unsigned i = 0; i < HF_SHM_TARGETS; i++)
		if (load64(&s->h->target[i].key) != 0)
			save_row(&s->h->target[i], now_us, out);
	if (hf_buf_ok(out))
		hf_buf_printf(out, "end %" PRIu64 "\n",
		    fnv(FNV_START, out->data, out->size));
}

/* --- reading ---------------------------------------------------------------
 */

struct cursor {
	const char *p, *end;
};

static bool
take_word(struct cursor *c, const char *z)
{
	size_t n = strlen(z);

	if ((size_t)(c->end - c->p) < n || memcmp(c->p, z, n) != 0)
		return false;
	c->p += n;
	return true;
}

/* A number and the character behind it.  Those without a sign are as large as
 * 64 bits are, so all are read as such. */
static bool
take_number(struct cursor *c, char behind, uint64_t *out)
{
	bool minus = take_word(c, "-");
	const char *start = c->p;
	uint64_t n = 0;

	while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
		n = n * 10 + (uint64_t)(*c->p++ - '0');
	if (c->p == start || c->p == c->end || *c->p != behind)
		return false;
	c->p++;
	*out = minus ? -n : n;
	return true;
}

static bool
take_numbers(struct cursor *c, uint64_t *out, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!take_number(c, i + 1 < n ? ' ' : '\n', &out[i]))
			return false;
	return true;
}

/* Is it all there?  Then it is read up to its end. */
static bool
is_whole(struct hf_str text)
{
	size_t i = text.size;
	struct cursor c;
	uint64_t sum;

	if (i == 0 || text.p[i - 1] != '\n')
		return false;
	for (i--; i > 0 && text.p[i - 1] != '\n'; i--)
		;
	c = (struct cursor){ text.p + i, text.p + text.size };
	return take_word(&c, "end ") && take_number(&c, '\n', &sum) &&
	    sum == fnv(FNV_START, text.p, i);
}

/* Where a time of the text lies on our clock, which may have begun since. */
static int64_t
time_of(uint64_t ms, int64_t saved_us)
{
	int64_t us = saved_us + (int64_t)ms * 1000;

	return us < TIME_LEAST_US ? TIME_LEAST_US : us;
}

static struct hf_target_row *
free_row(struct hf_shm *s, uint64_t key)
{
	for (unsigned i = 0; key != 0 && i < HF_SHM_TARGETS; i++) {
		struct hf_target_row *r =
		    &s->h->target[(key + i) % HF_SHM_TARGETS];
		uint64_t seen = 0;

		if (atomic_compare_exchange_strong(&r->key, &seen, key))
			return r;
		if (seen == key)
			return NULL;
	}
	return NULL;
}

static struct hf_target_row *
load_row(struct hf_shm *s, const uint64_t v[N_ROW], int64_t saved_us)
{
	struct hf_target_row *r = free_row(s, v[0]);

	if (r == NULL)
		return NULL;
	hf_breaker_put(&r->breaker,
	    &(struct hf_breaker_view){
		.state = (enum hf_breaker_state)(v[1] & 3),
		.n = (unsigned)v[2],
		.at_us = time_of(v[3], saved_us) });
	hf_pace_block(&r->pace, time_of(v[4], saved_us));
	atomic_store(&r->quota.word, v[5]);
	atomic_store(&r->quota.at_us, time_of(v[6], saved_us));
	atomic_store(&r->quota.said_us, time_of(v[7], saved_us));
	atomic_store(&r->quota.tokens, (int64_t)v[8]);
	atomic_store(&r->quota.typical, (int32_t)v[9]);
	atomic_store(&r->quota.seen, (int32_t)v[10]);
	atomic_store(&r->quota.room, (int32_t)v[11]);
	return r;
}

static void
load_call(struct hf_target_row *r, const uint64_t v[2], int64_t saved_us)
{
	static const struct hf_pace_limits none;
	int64_t at = time_of(v[0], saved_us), due;
	uint64_t place;

	if (hf_pace_take(
		&r->pace, &none, (int64_t)v[1], at, INT64_MAX, &place, &due))
		hf_pace_go(&r->pace, place, at);
}

int
hf_targets_load(
    struct hf_shm *s, struct hf_str text, int64_t now_us, int64_t wall_us)
{
	struct cursor c = { text.p, text.p + text.size };
	struct hf_target_row *r = NULL;
	uint64_t v[N_ROW];
	int64_t saved_us;
	int n = 0;

	if (!is_whole(text) || !take_word(&c, MAGIC) ||
	    !take_number(&c, '\n', v))
		return -1;
	/* How long ago it was, if the wall clock was not set back. */
	saved_us = wall_us - (int64_t)v[0];
	if (saved_us < 0 || saved_us > HF_TARGETS_STALE_S * INT64_C(1000000))
		return -1;
	saved_us = now_us - saved_us;
	for (;;) {
		if (take_word(&c, "row ") && take_numbers(&c, v, N_ROW)) {
			r = load_row(s, v, saved_us);
			n += r != NULL;
		} else if (take_word(&c, "call ") && take_numbers(&c, v, 2)) {
			if (r != NULL)
				load_call(r, v, saved_us);
		} else {
			return n;
		}
	}
}
