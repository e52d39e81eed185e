/*
 * The rows of targets in the scoreboard.
 */
#include <config.h>

#include "base/target.h"

#include "base/check.h"

#define FULL_US 10000 /* max_in_flight: when to look again */
#define SLACK_MS 1000 /* of a probe's lease */

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

int64_t
hf_target_in_flight(const struct hf_target_row *r)
{
	int64_t n = 0;

	for (unsigned i = 0; i < HF_SHM_SLOTS; i++)
		n += atomic_load_explicit(
		    &r->in_flight[i], memory_order_acquire);
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
	int64_t n = 0;

	for (unsigned i = 0; i < HF_SHM_SLOTS; i++)
		n += atomic_load_explicit(&r->waiting[i], memory_order_relaxed);
	return n;
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

static int
shadows(const struct hf_target_row *r)
{
	int n = 0;

	for (unsigned i = 0; i < HF_SHM_SLOTS; i++)
		n += atomic_load_explicit(&r->shadows[i], memory_order_acquire);
	return n;
}

bool
hf_target_shadow_take(struct hf_shm *s, struct hf_target_row *r,
    const struct hf_conf_call *c, int64_t now_us)
{
	int64_t due;

	if (r == NULL || !hf_target_is_quiet(r) ||
	    hf_target_opens_us(r, now_us) != 0 ||
	    hf_breaker_view(&r->breaker).state != HF_BREAKER_CLOSED)
		return false;
	atomic_fetch_add(&r->shadows[s->self], 1);
	if (shadows(r) <= c->warm_in_flight &&
	    hf_target_reserve(r, c, now_us, now_us, &due) == HF_ADMIT_CALL)
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

enum hf_admit
hf_target_reserve(struct hf_target_row *r, const struct hf_conf_call *c,
    int64_t now_us, int64_t latest_us, int64_t *due_us)
{
	const struct hf_pace_limits l = { .n = c->rpm,
		.window_ms = c->rpm_window_ms };

	*due_us = now_us;
	if (r == NULL)
		return HF_ADMIT_CALL;
	if (!hf_pace_take(&r->pace, &l, now_us, latest_us, due_us))
		return HF_ADMIT_REFUSE;
	return *due_us > now_us ? HF_ADMIT_WAIT : HF_ADMIT_CALL;
}

/* The own cell is counted up before all are summed, so that two workers may
 * both be refused, and never both be let through where one fits. */
enum hf_admit
hf_target_take(struct hf_shm *s, struct hf_target_row *r,
    const struct hf_conf_call *c, bool forced, int64_t now_us,
    struct hf_ticket *k, int64_t *due_us)
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
	n = hf_target_in_flight(r);
	if (c->max_in_flight > 0 && n > c->max_in_flight) {
		*due_us = now_us + FULL_US;
		how = HF_ADMIT_WAIT;
	} else if (!hf_breaker_take(
		       &r->breaker, &l, s->self, n, forced, now_us, &k->pass)) {
		how = HF_ADMIT_REFUSE;
	}
	if (how != HF_ADMIT_CALL) {
		atomic_fetch_sub(&r->in_flight[s->self], 1);
		return how;
	}
	atomic_fetch_add_explicit(&r->calls, 1, memory_order_relaxed);
	k->row = r;
	return HF_ADMIT_CALL;
}

/* The clock is the same for all workers, and who is late by a moment may win:
 * it is only looked at in terms of minutes. */
static void
note_trouble(struct hf_target_row *r, int64_t now_us)
{
	atomic_store_explicit(&r->trouble_us, now_us, memory_order_relaxed);
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

void
hf_target_end(struct hf_shm *s, struct hf_ticket *k,
    const struct hf_conf_call *c, enum hf_health v, int64_t now_us)
{
	const struct hf_breaker_limits l = limits_of(c);

	if (k->row == NULL)
		return;
	if (v == HF_HEALTH_FAILED) {
		atomic_fetch_add_explicit(
		    &k->row->failures, 1, memory_order_relaxed);
		note_trouble(k->row, now_us);
	}
	hf_breaker_tell(&k->row->breaker, &l, &k->pass, v, now_us);
	HF_CHECK(atomic_fetch_sub(&k->row->in_flight[s->self], 1) > 0);
	*k = (struct hf_ticket){ 0 };
}

void
hf_target_limited(const struct hf_ticket *k, int64_t hint_ms, int64_t now_us)
{
	if (k->row == NULL)
		return;
	atomic_fetch_add_explicit(&k->row->limited, 1, memory_order_relaxed);
	note_trouble(k->row, now_us);
	if (hint_ms > 0)
		hf_pace_block(&k->row->pace, now_us + hint_ms * 1000);
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
