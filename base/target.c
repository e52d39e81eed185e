/*
 * The rows of targets in the scoreboard.
 */
#include <config.h>

#include "base/target.h"

#include "base/check.h"

#define SLACK_MS 1000 /* of a probe's lease */
/* A hint of so long speaks of a quota of a day.  What is used of it slides out
 * long before, and nobody is to be left alone for that long. */
#define HINT_DAY_MS 3600000

struct hf_target_row *
hf_target_row(struct hf_shm *s, const char *name)
{
	uint64_t key = hf_shm_key(name), seen;

	for (unsigned i = 0; i < HF_SHM_TARGETS; i++) {
		struct hf_target_row *r =
		    &s->h->target[(key + i) % HF_SHM_TARGETS];

		seen = atomic_load_explicit(&r->key, memory_order_relaxed);
		if (seen == 0 &&
		    atomic_compare_exchange_strong_explicit(&r->key, &seen, key,
			memory_order_relaxed, memory_order_relaxed))
			return r;
		if (seen == key)
			return r;
	}
	return NULL;
}

const struct hf_target_row *
hf_target_find(const struct hf_shm *s, const char *name)
{
	uint64_t key = hf_shm_key(name);

	for (unsigned i = 0; i < HF_SHM_TARGETS; i++) {
		const struct hf_target_row *r =
		    &s->h->target[(key + i) % HF_SHM_TARGETS];
		uint64_t seen =
		    atomic_load_explicit(&r->key, memory_order_relaxed);

		if (seen == key)
			return r;
		if (seen == 0)
			return NULL;
	}
	return NULL;
}

static int64_t
sum(const _Atomic int32_t cell[HF_SHM_SLOTS])
{
	int64_t n = 0;

	for (unsigned i = 0; i < HF_SHM_SLOTS; i++)
		n += atomic_load_explicit(&cell[i], memory_order_acquire);
	return n;
}

bool
hf_target_is_disabled_as(const struct hf_shm *s, const char *name)
{
	const struct hf_target_row *r;

	if (atomic_load_explicit(&s->h->any_disabled, memory_order_relaxed) ==
	    0)
		return false;
	r = hf_target_find(s, name);
	return r != NULL &&
	    atomic_load_explicit(&r->disabled, memory_order_relaxed) != 0;
}

bool
hf_target_is_disabled(const struct hf_shm *s, const struct hf_conf_target *t)
{
	return hf_target_is_disabled_as(s, t->name) ||
	    hf_target_is_disabled_as(s, t->provider->name);
}

int
hf_target_disable(
    struct hf_shm *s, const char *name, bool disabled, struct hf_error *e)
{
	struct hf_target_row *r = hf_target_row(s, name);
	uint32_t any = 0;

	if (r == NULL)
		return hf_fail(e, HF_ELIMIT,
		    "%s: more than %d targets in the life of a daemon", name,
		    HF_SHM_TARGETS);
	atomic_store(&r->disabled, disabled ? 1 : 0);
	for (unsigned i = 0; i < HF_SHM_TARGETS; i++)
		any |= atomic_load(&s->h->target[i].disabled);
	atomic_store(&s->h->any_disabled, any);
	return 0;
}

void
hf_target_reset(struct hf_target_row *r, int64_t now_us)
{
	hf_breaker_reset(&r->breaker, now_us);
	atomic_store_explicit(&r->pace.blocked_us, 0, memory_order_relaxed);
	atomic_store_explicit(&r->window, 0, memory_order_relaxed);
	atomic_store_explicit(&r->token_ratio, 0, memory_order_relaxed);
	hf_quota_forget(&r->quota);
}

void
hf_target_wait(struct hf_shm *s, struct hf_target_row *r, bool begins)
{
	if (r != NULL)
		atomic_fetch_add_explicit(&r->waiting[s->self], begins ? 1 : -1,
		    memory_order_relaxed);
}

int64_t
hf_target_waiting(const struct hf_target_row *r)
{
	return sum(r->waiting);
}

int64_t
hf_target_in_flight(const struct hf_target_row *r)
{
	return sum(r->in_flight);
}

static struct hf_breaker_limits
limits_of(const struct hf_conf_call *c)
{
	return (struct hf_breaker_limits){
		.failures = c->breaker_failures,
		.open_ms = c->breaker_open_ms,
		.ramp = c->breaker_ramp,
		/* A call that has said nothing by then has failed. */
		.lease_ms = SLACK_MS + c->connect_ms +
		    (c->first_token_ms > 0 &&
				c->upstream_stream == HF_STREAM_ALWAYS ?
			    c->first_token_ms :
			    c->total_ms),
	};
}

int64_t
hf_target_opens_us(const struct hf_target_row *r, int64_t now_us)
{
	int64_t opens, blocked;

	if (r == NULL)
		return 0;
	if (atomic_load_explicit(&r->disabled, memory_order_relaxed) != 0)
		return INT64_MAX;
	opens =
	    hf_breaker_opens_us(&r->breaker, hf_target_in_flight(r), now_us);
	blocked =
	    atomic_load_explicit(&r->pace.blocked_us, memory_order_relaxed);
	return blocked > now_us && blocked > opens ? blocked : opens;
}

bool
hf_target_is_quiet(const struct hf_target_row *r)
{
	return hf_target_in_flight(r) == 0;
}

bool
hf_target_shadow_take(struct hf_shm *s, struct hf_target_row *r,
    const struct hf_conf_call *c, int64_t now_us)
{
	if (r == NULL || !hf_target_is_quiet(r) ||
	    hf_target_opens_us(r, now_us) != 0 ||
	    hf_breaker_view(&r->breaker).state != HF_BREAKER_CLOSED)
		return false;
	atomic_fetch_add(&r->shadows[s->self], 1);
	if (sum(r->shadows) <= c->warm_in_flight &&
	    hf_target_slip_in(r, c, now_us))
		return true;
	hf_target_shadow_end(s, r);
	return false;
}

void
hf_target_shadow_end(struct hf_shm *s, struct hf_target_row *r)
{
	HF_CHECK(atomic_fetch_sub(&r->shadows[s->self], 1) > 0);
}

bool
hf_target_is_healthy(const struct hf_shm *s, const struct hf_target_row *r,
    int64_t for_ms, int64_t now_us)
{
	int64_t since = s->h->started_us, trouble = 0;

	if (r != NULL)
		trouble =
		    atomic_load_explicit(&r->trouble_us, memory_order_relaxed);
	if (trouble > since)
		since = trouble;
	return now_us - since >= for_ms * 1000 &&
	    hf_target_opens_us(r, now_us) <= now_us;
}

bool
hf_target_is_blocked(const struct hf_target_row *r, int64_t now_us)
{
	return r != NULL &&
	    atomic_load_explicit(&r->pace.blocked_us, memory_order_relaxed) >
	    now_us;
}

/* --- before a call -------------------------------------------------------- */

static bool
is_configured(const struct hf_conf_call *c)
{
	return c->rpm > 0 || c->tpm > 0;
}

static bool
is_learned(const struct hf_conf_call *c)
{
	return !is_configured(c) && c->slow_start > 0;
}

enum hf_quota_source
hf_target_limits(const struct hf_target_row *r, const struct hf_conf_call *c,
    int64_t now_us, struct hf_pace_limits *l)
{
	*l = (struct hf_pace_limits){
		.n = c->rpm, .tokens = c->tpm, .window_ms = c->rpm_window_ms
	};
	if (is_configured(c))
		return HF_QUOTA_CONFIGURED;
	return is_learned(c) ? hf_quota_limits(&r->quota, now_us, l) :
			       HF_QUOTA_UNKNOWN;
}

int64_t
hf_target_paced_us(
    const struct hf_target_row *r, const struct hf_conf_call *c, int64_t now_us)
{
	struct hf_pace_limits l;
	int64_t due;

	if (r == NULL || !is_learned(c) ||
	    hf_target_limits(r, c, now_us, &l) == HF_QUOTA_UNKNOWN)
		return 0;
	due = hf_pace_peek_us(&r->pace, &l, now_us);
	return due > now_us ? due : 0;
}

/* What a call counts for when nobody counted its tokens. */
static int64_t
tokens_of(const struct hf_target_row *r, int64_t tokens)
{
	return tokens >= 0 ?
	    tokens :
	    atomic_load_explicit(&r->quota.typical, memory_order_relaxed);
}

enum hf_admit
hf_target_reserve(struct hf_target_row *r, const struct hf_conf_call *c,
    struct hf_claim *claim, int64_t tokens, int64_t now_us, int64_t latest_us,
    int64_t *due_us)
{
	struct hf_pace_limits l;
	bool limited;

	*due_us = now_us;
	if (claim->row != r)
		hf_target_unclaim(claim);
	if (r == NULL)
		return HF_ADMIT_CALL;
	limited = hf_target_limits(r, c, now_us, &l) != HF_QUOTA_UNKNOWN;
	if (claim->row == r) {
		*due_us = hf_pace_due_us(&r->pace, &l, claim->place, now_us);
		if (*due_us > now_us)
			hf_pace_move(&r->pace, claim->place, *due_us);
	} else if (!limited) {
		*due_us = hf_pace_peek_us(&r->pace, &l, now_us);
	} else if (hf_pace_take(&r->pace, &l, tokens_of(r, tokens), now_us,
		       latest_us, &claim->place, due_us)) {
		claim->row = r;
	}
	if (*due_us > latest_us) {
		hf_target_unclaim(claim);
		return HF_ADMIT_REFUSE;
	}
	return *due_us > now_us ? HF_ADMIT_WAIT : HF_ADMIT_CALL;
}

void
hf_target_unclaim(struct hf_claim *claim)
{
	if (claim->row != NULL)
		hf_pace_drop(&claim->row->pace, claim->place);
	*claim = (struct hf_claim){ 0 };
}

bool
hf_target_slip_in(
    struct hf_target_row *r, const struct hf_conf_call *c, int64_t now_us)
{
	struct hf_claim claim = { 0 };
	int64_t due;

	if (hf_target_reserve(r, c, &claim, -1, now_us, now_us, &due) !=
	    HF_ADMIT_CALL)
		return false;
	if (claim.row != NULL)
		hf_pace_go(&r->pace, claim.place, now_us);
	return true;
}

/* --- slow start ------------------------------------------------------------
 * Calls that are asking are counted by when they began, so that one that says
 * nothing for long, or whose worker died, is in nobody's way: a target that
 * refuses says so at once.
 */

static int64_t
asking(
    const struct hf_target_row *r, const struct hf_conf_call *c, int64_t now_us)
{
	return is_learned(c) ?
	    hf_rate_sum(&r->asking, c->slow_start_ms, 0, now_us).calls :
	    0;
}

/* Those that asked for so long in vain were admitted. */
static void
begin_asking(
    struct hf_target_row *r, const struct hf_conf_call *c, int64_t now_us)
{
	int64_t silent;

	if (!is_learned(c))
		return;
	silent = hf_rate_add(&r->asking, c->slow_start_ms, false, now_us);
	if (silent > 0)
		hf_quota_admitted(&r->quota, c->slow_start, silent,
		    now_us - (int64_t)c->slow_start_ms * 1000);
}

static void
end_asking(
    struct hf_target_row *r, const struct hf_conf_call *c, int64_t begun_us)
{
	if (is_learned(c))
		hf_rate_undo(&r->asking, c->slow_start_ms, begun_us);
}

/* So many are in flight, so many of them asking, the one that wants to be let
 * through among them. */
static bool
fits(const struct hf_target_row *r, const struct hf_conf_call *c, int64_t n,
    int64_t asking, int64_t now_us)
{
	if (c->max_in_flight > 0 && n > c->max_in_flight)
		return false;
	return !is_learned(c) ||
	    hf_quota_has_room(&r->quota, c->slow_start, asking, now_us);
}

bool
hf_target_has_room(
    const struct hf_target_row *r, const struct hf_conf_call *c, int64_t now_us)
{
	return fits(
	    r, c, sum(r->in_flight) + 1, asking(r, c, now_us) + 1, now_us);
}

/* The place of a call that is made: its claim, or the next one. */
static uint64_t
go(struct hf_target_row *r, struct hf_claim *claim, int64_t now_us)
{
	static const struct hf_pace_limits none;
	uint64_t place = claim->place;
	int64_t due;

	if (claim->row != r)
		(void)hf_pace_take(
		    &r->pace, &none, 0, now_us, INT64_MAX, &place, &due);
	*claim = (struct hf_claim){ 0 };
	hf_pace_go(&r->pace, place, now_us);
	return place;
}

/* What is counted is counted up before all is summed, so that two workers may
 * both be refused, and never both be let through where one fits. */
enum hf_admit
hf_target_take(struct hf_shm *s, struct hf_target_row *r,
    const struct hf_conf_call *c, bool forced, int64_t now_us,
    struct hf_claim *claim, struct hf_ticket *k)
{
	const struct hf_breaker_limits l = limits_of(c);
	enum hf_admit how = HF_ADMIT_CALL;
	int64_t n;

	*k = (struct hf_ticket){ 0 };
	if (r == NULL)
		return HF_ADMIT_CALL;
	if (atomic_load_explicit(&r->disabled, memory_order_relaxed) != 0)
		return HF_ADMIT_REFUSE;
	atomic_fetch_add(&r->in_flight[s->self], 1);
	begin_asking(r, c, now_us);
	n = sum(r->in_flight);
	if (!fits(r, c, n, asking(r, c, now_us), now_us))
		how = HF_ADMIT_WAIT;
	else if (!hf_breaker_take(
		     &r->breaker, &l, s->self, n, forced, now_us, &k->pass))
		how = HF_ADMIT_REFUSE;
	if (how != HF_ADMIT_CALL) {
		atomic_fetch_sub(&r->in_flight[s->self], 1);
		end_asking(r, c, now_us);
		return how;
	}
	atomic_fetch_add_explicit(&r->calls, 1, memory_order_relaxed);
	k->row = r;
	k->asking = is_learned(c);
	k->place = go(r, claim, now_us);
	return HF_ADMIT_CALL;
}

/* The clock is the same for all workers, and who is late by a moment may win:
 * it is only looked at in terms of minutes. */
static void
note_trouble(struct hf_target_row *r, int64_t now_us)
{
	atomic_store_explicit(&r->trouble_us, now_us, memory_order_relaxed);
}

/* --- while it goes on ------------------------------------------------------
 */

static void
is_heard(struct hf_ticket *k, const struct hf_conf_call *c)
{
	if (k->asking)
		end_asking(k->row, c, k->pass.begun_us);
	k->asking = false;
}

void
hf_target_admitted(struct hf_ticket *k, const struct hf_conf_call *c)
{
	if (k->row == NULL || !k->asking)
		return;
	is_heard(k, c);
	hf_quota_admitted(&k->row->quota, c->slow_start, 1, k->pass.begun_us);
}

void
hf_target_said(const struct hf_ticket *k, const struct hf_conf_call *c,
    const struct hf_quota_said *said, int64_t now_us)
{
	if (k->row != NULL && is_learned(c))
		hf_quota_said(&k->row->quota, &k->row->pace, said,
		    c->rpm_window_ms, now_us);
}

void
hf_target_unseen(const struct hf_ticket *k)
{
	if (k->row != NULL)
		hf_pace_drop(&k->row->pace, k->place);
}

void
hf_target_used(const struct hf_ticket *k, int64_t tokens)
{
	if (k->row == NULL || tokens <= 0)
		return;
	hf_pace_used(&k->row->pace, k->place, tokens);
	hf_quota_tokens(&k->row->quota, tokens);
}

void
hf_target_answers(
    const struct hf_ticket *k, const struct hf_conf_call *c, int64_t now_us)
{
	const struct hf_breaker_limits l = limits_of(c);

	if (k->row != NULL && k->pass.probe)
		hf_breaker_tell(
		    &k->row->breaker, &l, &k->pass, HF_HEALTH_ANSWERED, now_us);
}

/* Too many of the calls since the breaker closed failed. */
static bool
fails_too_often(
    const struct hf_target_row *r, const struct hf_conf_call *c, int64_t now_us)
{
	struct hf_breaker_view v = hf_breaker_view(&r->breaker);
	struct hf_rate_sum n;

	if (c->breaker_failures <= 0 || c->breaker_rate_percent <= 0 ||
	    v.state != HF_BREAKER_CLOSED)
		return false;
	n = hf_rate_sum(&r->rate, c->breaker_rate_window_ms, v.at_us, now_us);
	return n.calls >= c->breaker_rate_calls &&
	    n.failures * 100 >= n.calls * c->breaker_rate_percent;
}

static void
tell_health(const struct hf_ticket *k, const struct hf_conf_call *c,
    enum hf_health v, int64_t now_us)
{
	const struct hf_breaker_limits l = limits_of(c);
	struct hf_target_row *r = k->row;

	hf_breaker_tell(&r->breaker, &l, &k->pass, v, now_us);
	if (v == HF_HEALTH_NEUTRAL)
		return;
	if (c->breaker_rate_percent > 0)
		hf_rate_add(&r->rate, c->breaker_rate_window_ms,
		    v == HF_HEALTH_FAILED, now_us);
	if (v != HF_HEALTH_FAILED)
		return;
	atomic_fetch_add_explicit(&r->failures, 1, memory_order_relaxed);
	note_trouble(r, now_us);
	if (fails_too_often(r, c, now_us))
		hf_breaker_open(&r->breaker, &l, &k->pass, now_us);
}

void
hf_target_end(struct hf_shm *s, struct hf_ticket *k,
    const struct hf_conf_call *c, enum hf_health v, int64_t now_us)
{
	if (k->row == NULL)
		return;
	is_heard(k, c);
	tell_health(k, c, v, now_us);
	HF_CHECK(atomic_fetch_sub(&k->row->in_flight[s->self], 1) > 0);
	*k = (struct hf_ticket){ 0 };
}

void
hf_target_limited(const struct hf_ticket *k, const struct hf_conf_call *c,
    int64_t hint_ms, bool others, int64_t now_us)
{
	struct hf_quota_refusal refusal = {
		.place = k->place, .sent_us = k->pass.begun_us, .others = others
	};

	if (k->row == NULL)
		return;
	if (hint_ms >= HINT_DAY_MS)
		hint_ms = -1;
	refusal.hint_ms = hint_ms;
	atomic_fetch_add_explicit(&k->row->limited, 1, memory_order_relaxed);
	note_trouble(k->row, now_us);
	if (hint_ms > 0)
		hf_pace_block(&k->row->pace, now_us + hint_ms * 1000);
	if (is_learned(c))
		hf_quota_refused(&k->row->quota, &k->row->pace, &refusal,
		    c->rpm_window_ms, now_us);
}

/* --- windows -------------------------------------------------------------- */

#define RATIO_ONE 1000
#define RATIO_MIN 500
#define RATIO_MAX 2000
#define LEARN_FROM 1000 /* of fewer, what a provider adds is too much */
/* A window that a provider named may be wrong, or be another one tomorrow; then
 * it costs one refused call to hear of it again. */
#define WINDOW_US ((int64_t)600 * 1000000)

int64_t
hf_target_window(
    const struct hf_target_row *r, const struct hf_conf_call *c, int64_t now_us)
{
	if (c->context_window > 0 || r == NULL ||
	    atomic_load_explicit(&r->window_until_us, memory_order_relaxed) <=
		now_us)
		return c->context_window;
	return atomic_load_explicit(&r->window, memory_order_relaxed);
}

void
hf_target_set_window(struct hf_target_row *r, int64_t tokens, int64_t now_us)
{
	if (r == NULL || tokens <= 0 || tokens > INT32_MAX)
		return;
	atomic_store_explicit(
	    &r->window, (uint32_t)tokens, memory_order_relaxed);
	atomic_store_explicit(
	    &r->window_until_us, now_us + WINDOW_US, memory_order_relaxed);
}

static int64_t
ratio_of(const struct hf_target_row *r)
{
	uint32_t ratio = r == NULL ?
	    0 :
	    atomic_load_explicit(&r->token_ratio, memory_order_relaxed);

	return ratio == 0 ? RATIO_ONE : ratio;
}

int64_t
hf_target_tokens(const struct hf_target_row *r, int64_t estimated)
{
	return (estimated * ratio_of(r) + RATIO_ONE - 1) / RATIO_ONE;
}

/* Up at once, down slowly: too small a ratio is refused, too large a one only
 * leaves room.  Two workers may learn at a time; one of them is forgotten. */
void
hf_target_learn_tokens(
    struct hf_target_row *r, int64_t estimated, int64_t tokens, bool whole)
{
	int64_t ratio, seen, least = whole ? RATIO_MIN : RATIO_ONE;

	if (r == NULL || estimated < LEARN_FROM || tokens <= 0)
		return;
	ratio = tokens / estimated >= RATIO_MAX / RATIO_ONE ?
	    RATIO_MAX :
	    (tokens * RATIO_ONE + estimated - 1) / estimated;
	if (ratio < least)
		ratio = least;
	seen = ratio_of(r);
	if (ratio < seen)
		ratio = seen - (seen - ratio + 15) / 16;
	if (ratio != seen)
		atomic_store_explicit(
		    &r->token_ratio, (uint32_t)ratio, memory_order_relaxed);
}
