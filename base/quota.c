/*
 * Learning a target's quota.
 */
#include <config.h>

#include "base/quota.h"

#define SEC ((int64_t)1000000)
#define SAID_US (3600 * SEC)
#define HOLDS_WINDOWS 10
#define GROWS_WINDOWS 10
#define GROWS_DIV 8
#define LEAST 3 /* fewer admitted calls are no quota */
#define SURE 3	/* refusals; of fewer it may have been the moment */

#define WINDOW_BITS 30
#define WINDOW_MASK ((UINT64_C(1) << WINDOW_BITS) - 1)
#define ROOM_MOST (1 << 20)

/* So much two clocks and a way may differ. */
#define SLACK_DIV 50
#define SLACK_US 20000

struct known {
	enum hf_quota_source source;
	int64_t n, window_ms;
};

static uint64_t
pack(const struct known *k)
{
	uint64_t n = k->n < UINT32_MAX ? (uint64_t)k->n : UINT32_MAX;

	return n << 32 | ((uint64_t)k->window_ms & WINDOW_MASK) << 2 |
	    (uint64_t)k->source;
}

static struct known
unpack(uint64_t w)
{
	return (struct known){
		.source = (enum hf_quota_source)(w & 3),
		.n = (int64_t)(w >> 32),
		.window_ms = (int64_t)(w >> 2 & WINDOW_MASK),
	};
}

static int64_t
since_us(const struct hf_quota *q)
{
	return atomic_load_explicit(&q->at_us, memory_order_relaxed);
}

static int64_t
said_us(const struct hf_quota *q)
{
	return atomic_load_explicit(&q->said_us, memory_order_relaxed);
}

/* What of it holds now. */
static struct known
known_now(const struct hf_quota *q, int64_t now_us)
{
	struct known k =
	    unpack(atomic_load_explicit(&q->word, memory_order_acquire));
	int64_t windows;
	bool sure;

	if (k.source == HF_QUOTA_SAID && now_us - said_us(q) > SAID_US)
		return (struct known){ 0 };
	if (k.source != HF_QUOTA_FOUND)
		return k;
	if (k.window_ms < 1)
		return (struct known){ 0 };
	windows = (now_us - since_us(q)) / (k.window_ms * 1000);
	sure = atomic_load_explicit(&q->seen, memory_order_relaxed) >= SURE;
	if (windows >= (sure ? HOLDS_WINDOWS + GROWS_WINDOWS : 1))
		return (struct known){ 0 };
	for (; windows >= HOLDS_WINDOWS; windows--)
		k.n += (k.n + GROWS_DIV - 1) / GROWS_DIV;
	return k;
}

enum hf_quota_source
hf_quota_limits(
    const struct hf_quota *q, int64_t now_us, struct hf_pace_limits *l)
{
	struct known k = known_now(q, now_us);

	*l = (struct hf_pace_limits){ .n = k.n, .window_ms = (int)k.window_ms };
	if (k.source == HF_QUOTA_SAID)
		l->tokens =
		    atomic_load_explicit(&q->tokens, memory_order_relaxed);
	return k.source;
}

/* Whoever learns at the same moment knows about as much. */
static void
learn(struct hf_quota *q, const struct known *k, int64_t now_us)
{
	atomic_store_explicit(&q->at_us, now_us, memory_order_relaxed);
	atomic_store_explicit(&q->word, pack(k), memory_order_release);
}

/* --- from what a response says -------------------------------------------- */

/* When the n-th last call went; 0: there were not so many. */
static int64_t
nth_last(const struct hf_pace *p, int64_t n)
{
	uint64_t next = atomic_load_explicit(&p->next, memory_order_acquire);
	struct hf_pace_place at;

	for (uint64_t i = next; i-- > 0 && next - i < HF_PACE_RING;)
		if (hf_pace_look(p, i, &at) && at.gone && !at.dropped &&
		    --n <= 0)
			return at.at_us;
	return 0;
}

/* The window that it speaks of.  When all is used, the oldest of the calls
 * that used it is as far back as the window is long, less what is left until
 * all is there again. */
static int64_t
window_said(const struct hf_pace *p, const struct hf_quota_count *c,
    int64_t window_ms, int64_t now_us)
{
	int64_t oldest, ms;

	if (c->limit <= 0 || c->left != 0 || c->reset_ms <= 0)
		return window_ms;
	oldest = nth_last(p, c->limit);
	if (oldest == 0)
		return window_ms;
	ms = c->reset_ms + (now_us - oldest) / 1000;
	return ms < window_ms ? ms : window_ms;
}

/* What takes longer than the window to be there again is counted by something
 * else, most often by the day. */
static int64_t
believed(const struct hf_quota_count *c, int window_ms)
{
	return c->limit > 0 && c->reset_ms <= (int64_t)window_ms * 5 / 4 ?
	    c->limit :
	    0;
}

void
hf_quota_said(struct hf_quota *q, const struct hf_pace *p,
    const struct hf_quota_said *s, int window_ms, int64_t now_us)
{
	int64_t calls = believed(&s->calls, window_ms);
	int64_t tokens = believed(&s->tokens, window_ms);
	struct known old = known_now(q, now_us);
	struct known k = { .source = HF_QUOTA_SAID, .n = calls };

	if (calls == 0 && tokens == 0)
		return;
	/* A 429 knows better. */
	if (old.source == HF_QUOTA_FOUND && (calls == 0 || old.n <= calls))
		return;
	k.window_ms = old.source == HF_QUOTA_SAID ? old.window_ms : window_ms;
	k.window_ms = window_said(p, &s->calls, k.window_ms, now_us);
	atomic_store_explicit(&q->tokens, tokens, memory_order_relaxed);
	atomic_store_explicit(&q->said_us, now_us, memory_order_relaxed);
	if (k.source != old.source || k.n != old.n ||
	    k.window_ms != old.window_ms)
		learn(q, &k, now_us);
}

/* --- from a 429 ------------------------------------------------------------
 */

static int64_t
slack_us(int64_t window_us)
{
	return window_us / SLACK_DIV + SLACK_US;
}

/* The calls that were made and not refused since 'from_us'. */
static int64_t
made_since(
    const struct hf_pace *p, int64_t from_us, int64_t now_us, int64_t *oldest)
{
	uint64_t next = atomic_load_explicit(&p->next, memory_order_acquire);
	struct hf_pace_place at;
	int64_t n = 0;

	*oldest = now_us;
	for (uint64_t i = next; i-- > 0 && next - i < HF_PACE_RING;) {
		if (!hf_pace_look(p, i, &at) || !at.gone || at.dropped ||
		    at.at_us < from_us)
			continue;
		n++;
		if (at.at_us < *oldest)
			*oldest = at.at_us;
	}
	return n;
}

/* Nothing is known of the window but when a place frees: then the oldest call
 * of the burst that used it up leaves it.  The burst is as far back as there
 * is no pause in it that is longer than what came after. */
static struct known
by_burst(const struct hf_pace *p, int64_t frees_us, int64_t longest_us,
    int64_t now_us)
{
	uint64_t next = atomic_load_explicit(&p->next, memory_order_acquire);
	struct known k = { .source = HF_QUOTA_FOUND };
	int64_t oldest = now_us;
	struct hf_pace_place at;

	for (uint64_t i = next; i-- > 0 && next - i < HF_PACE_RING;) {
		if (!hf_pace_look(p, i, &at) || !at.gone || at.dropped)
			continue;
		if (frees_us - at.at_us > longest_us ||
		    (k.n > 0 && oldest - at.at_us > frees_us - oldest))
			break;
		k.n++;
		if (at.at_us < oldest)
			oldest = at.at_us;
	}
	k.window_ms = (frees_us - oldest + 999) / 1000;
	return k;
}

/* How many calls were admitted in which window. */
static struct known
find(const struct hf_pace *p, int64_t hint_ms, int64_t window_ms,
    int64_t longest_ms, int64_t now_us)
{
	struct known k = { .source = HF_QUOTA_FOUND, .window_ms = window_ms };
	int64_t window = window_ms * 1000, slack = slack_us(window);
	int64_t frees = now_us + hint_ms * 1000, oldest;

	k.n = made_since(p, frees - window - slack, now_us, &oldest);
	/* Nobody leaves that window when the place frees: it is shorter. */
	if (k.n == 0 || oldest > frees - window + slack)
		k = by_burst(p, frees, longest_ms * 1000 + slack, now_us);
	return k;
}

static bool
is_less(const struct known *a, const struct known *b)
{
	return a->n * b->window_ms < b->n * a->window_ms;
}

static void
set_seen(struct hf_quota *q, int32_t n)
{
	atomic_store_explicit(
	    &q->seen, n < SURE ? n : SURE, memory_order_relaxed);
}

/* What the refusal tells of the quota; no calls: nothing. */
static struct known
told_by(const struct hf_pace *p, const struct hf_quota_refusal *r,
    const struct known *old, int window_ms, int64_t now_us)
{
	bool found = old->source == HF_QUOTA_FOUND;
	struct known k = *old;

	if (r->hint_ms > 0)
		k = find(p, r->hint_ms,
		    old->source == HF_QUOTA_UNKNOWN ? window_ms :
						      old->window_ms,
		    window_ms, now_us);
	if (!found && k.n < LEAST)
		return (struct known){ 0 };
	/* Others may have used it up for once. */
	if (found && k.n < old->n / 2)
		k.n = old->n / 2;
	k.n = k.n < 1 ? 1 : k.n;
	k.window_ms = k.window_ms < 1 ? 1 : k.window_ms;
	return k;
}

void
hf_quota_refused(struct hf_quota *q, struct hf_pace *p,
    const struct hf_quota_refusal *r, int window_ms, int64_t now_us)
{
	struct known old = known_now(q, now_us), k;
	bool found = old.source == HF_QUOTA_FOUND;
	bool fresh = r->sent_us > since_us(q);
	int32_t seen =
	    found ? atomic_load_explicit(&q->seen, memory_order_relaxed) : 0;

	hf_pace_drop(p, r->place);
	if (fresh)
		atomic_store_explicit(&q->room, 1, memory_order_relaxed);
	/* One that says no time may mean anything, and holds for nobody else;
	 * unless it is about what is known. */
	if (r->others || (r->hint_ms <= 0 && (!found || !fresh)))
		return;
	k = told_by(p, r, &old, window_ms, now_us);
	if (k.n == 0)
		return;
	if (old.n > 0 && !is_less(&k, &old)) {
		if (found && !fresh)
			set_seen(q, seen + 1); /* one more of the same */
		if (!fresh)
			return;
		k = old;
		k.source = HF_QUOTA_FOUND;
		k.n = old.n > 1 ? old.n / 2 : 1;
		seen = 0; /* a guess */
	}
	set_seen(q, seen + 1);
	learn(q, &k, now_us);
}

/* --- slow start ------------------------------------------------------------
 */

bool
hf_quota_has_room(
    const struct hf_quota *q, int start, int64_t asking, int64_t now_us)
{
	int32_t room = atomic_load_explicit(&q->room, memory_order_relaxed);

	if (known_now(q, now_us).source == HF_QUOTA_SAID)
		return true;
	return asking <= (room > 0 ? room : start);
}

void
hf_quota_admitted(struct hf_quota *q, int start, int64_t n, int64_t sent_us)
{
	int32_t room = atomic_load_explicit(&q->room, memory_order_relaxed);
	int64_t to;

	/* What went before the last 429 says nothing of what may go now. */
	if (sent_us <= since_us(q))
		return;
	do {
		to = (room > 0 ? room : start) + n;
		to = to < ROOM_MOST ? to : ROOM_MOST;
	} while (!atomic_compare_exchange_weak_explicit(&q->room, &room,
	    (int32_t)to, memory_order_relaxed, memory_order_relaxed));
}

const char *
hf_quota_name(enum hf_quota_source s)
{
	static const char *const name[] = { "none", "said", "found",
		"configured" };

	return name[s & 3];
}

void
hf_quota_forget(struct hf_quota *q)
{
	atomic_store_explicit(&q->word, 0, memory_order_release);
	atomic_store_explicit(&q->room, 0, memory_order_relaxed);
}

void
hf_quota_tokens(struct hf_quota *q, int64_t tokens)
{
	int32_t old = atomic_load_explicit(&q->typical, memory_order_relaxed);
	int64_t to = old == 0 ? tokens : ((int64_t)old * 7 + tokens) / 8;

	if (tokens > 0)
		atomic_store_explicit(&q->typical,
		    (int32_t)(to < INT32_MAX ? to : INT32_MAX),
		    memory_order_relaxed);
}
