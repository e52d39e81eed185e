/*
 * What is known of a target, as JSON.
 */
#include <config.h>

#include "workers/figures.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/params.h"
#include "base/target.h"

/* Times of the row are of the monotonic clock; people want the day's. */
struct clocks {
	int64_t now_us, wall_us;
};

static json_int_t
wall_of(const struct clocks *k, int64_t at_us)
{
	return at_us == 0 || at_us == INT64_MAX ?
	    0 :
	    (json_int_t)(k->wall_us + at_us - k->now_us);
}

static void
set(json_t *o, const char *name, json_int_t v)
{
	json_object_set_new(o, name, json_integer(v));
}

static int64_t
load(const _Atomic int64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

static void
add_breaker(json_t *o, const struct hf_target_row *r, const struct clocks *k)
{
	struct hf_breaker_view b = hf_breaker_view(&r->breaker);
	bool until = b.state == HF_BREAKER_OPEN || b.state == HF_BREAKER_PROBED;

	json_object_set_new(
	    o, "breaker", json_string(hf_breaker_name(b.state)));
	set(o, "breaker_since_us", until ? 0 : wall_of(k, b.at_us));
	set(o, "breaker_until_us", until ? wall_of(k, b.at_us) : 0);
	set(o, "failures_in_row", b.state == HF_BREAKER_CLOSED ? b.n : 0);
	set(o, "ramp_answers", b.state == HF_BREAKER_RAMP ? b.n : 0);
}

static void
add_pace(json_t *o, const struct hf_target_row *r, const struct hf_conf_call *c,
    const struct clocks *k)
{
	struct hf_pace_limits l;
	enum hf_quota_source from = hf_target_limits(r, c, k->now_us, &l);
	int64_t blocked = load(&r->pace.blocked_us);
	unsigned admitted = 0, reserved = 0;
	bool limited = from != HF_QUOTA_UNKNOWN;

	if (limited)
		hf_pace_count(&r->pace, &l, k->now_us, &admitted, &reserved);
	set(o, "in_flight", hf_target_in_flight(r));
	set(o, "waiting", hf_target_waiting(r));
	json_object_set_new(o, "quota_from", json_string(hf_quota_name(from)));
	set(o, "quota_calls", l.n > 0 ? l.n : -1);
	set(o, "quota_tokens", l.tokens > 0 ? l.tokens : -1);
	set(o, "quota_window_ms", limited ? l.window_ms : -1);
	set(o, "admitted", limited ? (json_int_t)admitted : -1);
	set(o, "reserved", limited ? (json_int_t)reserved : -1);
	set(o, "limited_until_us",
	    blocked > k->now_us ? wall_of(k, blocked) : 0);
}

static void
add_calls(json_t *o, const struct hf_target_row *r)
{
	const struct hf_figures *f = &r->figures;
	const struct hf_last_error last = hf_figures_last(f);
	json_t *failed = json_object();
	json_int_t n, all = 0;

	for (unsigned c = HF_CLASS_NONE + 1; c < HF_N_CLASS; c++) {
		n = load(&f->ended[c]);
		all += n;
		set(failed, hf_class_name((enum hf_class)c), n);
	}
	set(o, "calls", load(&r->calls));
	set(o, "answered", load(&f->ended[HF_CLASS_NONE]));
	set(o, "failed", all);
	json_object_set_new(o, "failed_by_class", failed);
	set(o, "cut", load(&f->cut));
	set(o, "limited", load(&r->limited));
	json_object_set_new(o, "last_error",
	    last.cls == HF_CLASS_NONE ? json_null() :
					json_string(hf_class_name(last.cls)));
	set(o, "last_error_status", last.status);
	set(o, "last_error_at_us", last.at_us);
}

static json_int_t
quantile_us(const uint64_t n[HF_HIST_CELLS], unsigned permille)
{
	int64_t ms = hf_hist_quantile(n, permille);

	return ms < 0 ? -1 : ms * 1000;
}

static void
add_first_token(
    json_t *o, const struct hf_target_row *r, const struct clocks *k)
{
	uint64_t n[HF_HIST_CELLS], all = 0;

	hf_hist_read(&r->figures.first_token, k->now_us, n);
	for (unsigned i = 0; i < HF_HIST_CELLS; i++)
		all += n[i];
	set(o, "first_tokens", (json_int_t)all);
	set(o, "first_token_p50_us", quantile_us(n, 500));
	set(o, "first_token_p99_us", quantile_us(n, 990));
}

/* In one word, why it is not asked now. */
static const char *
state_of(const struct hf_target_row *r, bool disabled, int64_t now_us)
{
	enum hf_breaker_state b = hf_breaker_view(&r->breaker).state;

	if (disabled)
		return "disabled";
	if (b != HF_BREAKER_CLOSED)
		return hf_breaker_name(b);
	return hf_target_is_blocked(r, now_us) ? "limited" : "ok";
}

void
hf_figures_json(
    json_t *o, const struct hf_shm *shm, const struct hf_conf_target *t)
{
	static const struct hf_target_row none;
	const struct clocks k = { hf_now_us(), hf_wall_us() };
	const struct hf_target_row *r = hf_target_find(shm, t->name);
	bool disabled = hf_target_is_disabled(shm, t);

	if (r == NULL) /* nobody asked for it yet */
		r = &none;
	json_object_set_new(
	    o, "state", json_string(state_of(r, disabled, k.now_us)));
	json_object_set_new(o, "disabled", json_boolean(disabled));
	json_object_set_new(o, "disabled_as",
	    hf_target_is_disabled_as(shm, t->name) ? json_string("target") :
		hf_target_is_disabled_as(shm, t->provider->name) ?
						     json_string("provider") :
						     json_null());
	add_breaker(o, r, &k);
	add_pace(o, r, &t->call, &k);
	add_calls(o, r);
	add_first_token(o, r, &k);
}

/* --- settings ------------------------------------------------------------- */

static json_t *
choice(const struct hf_param *p, int i)
{
	const char *c = p->choices;

	for (; i > 0 && c != NULL; i--) {
		c = strchr(c, '|');
		c = c == NULL ? NULL : c + 1;
	}
	return c == NULL ? json_null() : json_stringn(c, strcspn(c, "|"));
}

json_t *
hf_settings_json(const struct hf_conf_target *t)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < hf_n_params && o != NULL; i++) {
		const struct hf_param *p = &hf_params[i];
		const void *at = (const char *)t + p->offset;

		if (strcmp(p->block, "target") != 0)
			continue;
		if (p->type == HF_PARAM_MS || p->type == HF_PARAM_COUNT)
			set(o, p->key, *(const int *)at);
		else if (p->type == HF_PARAM_ENUM)
			json_object_set_new(
			    o, p->key, choice(p, *(const int *)at));
	}
	return o;
}
