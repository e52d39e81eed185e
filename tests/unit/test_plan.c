/*
 * Failover policy: next target at once, wait only when none is left, never
 * under a hint, never past the deadline, and what the client is told.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "gateway/turn/plan.h"

#define SEC ((int64_t)1000000)

static double
half(void *arg)
{
	(void)arg;
	return 0.5;
}

static struct hf_plan
plan(unsigned n_target, int64_t deadline_s)
{
	struct hf_conf_route r = { .n_target = n_target,
		.max_retries = 5,
		.backoff_unit_ms = 1000,
		.backoff_cap_ms = 30000 };
	struct hf_plan p;

	hf_plan_init(&p, &r, deadline_s * SEC);
	p.rnd = half;
	assert_int_equal(hf_plan_first(&p, 0).target, 0);
	return p;
}

static struct hf_plan_step
failed(struct hf_plan *p, unsigned t, enum hf_class c, int64_t now_s)
{
	struct hf_plan_failure f = { .cls = c, .hint_ms = -1 };

	return hf_plan_failed(p, t, &f, now_s * SEC);
}

static struct hf_plan_step
limited(struct hf_plan *p, unsigned t, int64_t hint_ms)
{
	struct hf_plan_failure f = {
		.cls = HF_CLASS_CAPACITY, .limited = true, .hint_ms = hint_ms
	};

	return hf_plan_failed(p, t, &f, SEC);
}

static void
test_next_at_once(void **state)
{
	static const enum hf_class next[] = { HF_CLASS_NETWORK,
		HF_CLASS_PROVIDER, HF_CLASS_CAPACITY, HF_CLASS_AUTH,
		HF_CLASS_CONTEXT, HF_CLASS_GATEWAY };

	(void)state;
	for (size_t i = 0; i < hf_countof(next); i++) {
		struct hf_plan p = plan(2, 60);
		struct hf_plan_step s = failed(&p, 0, next[i], 1);

		assert_int_equal(s.kind, HF_PLAN_CALL);
		assert_int_equal(s.target, 1);
	}
}

static void
test_caller_is_told(void **state)
{
	struct hf_plan p = plan(2, 60);
	struct hf_plan_step s = failed(&p, 0, HF_CLASS_CALLER, 1);

	(void)state;
	assert_int_equal(s.kind, HF_PLAN_GIVE_UP);
	assert_int_equal(s.answer, HF_ANSWER_WORDS);
	p = plan(2, 60);
	s = failed(&p, 0, HF_CLASS_POLICY, 1);
	assert_int_equal(s.kind, HF_PLAN_GIVE_UP);
	assert_int_equal(s.answer, HF_ANSWER_CONTENT);
}

/* A 400 from a later target is our translation's fault: go on. */
static void
test_later_caller_goes_on(void **state)
{
	struct hf_plan p = plan(3, 60);
	struct hf_plan_step s;

	(void)state;
	failed(&p, 0, HF_CLASS_NETWORK, 1);
	s = failed(&p, 1, HF_CLASS_CALLER, 1);
	assert_int_equal(s.kind, HF_PLAN_CALL);
	assert_int_equal(s.target, 2);
}

static void
test_waits_grow(void **state)
{
	static const int64_t want[] = { 1500, 2500, 4500, 8500, 16500 };
	struct hf_plan p = plan(1, 1000);
	struct hf_plan_step s;

	(void)state;
	for (size_t i = 0; i < hf_countof(want); i++) {
		s = failed(&p, 0, HF_CLASS_PROVIDER, 1);
		assert_int_equal(s.kind, HF_PLAN_WAIT);
		assert_int_equal(s.wait_ms, want[i]);
		s = hf_plan_resume(&p, 1 * SEC);
		assert_int_equal(s.kind, HF_PLAN_CALL);
	}
	s = failed(&p, 0, HF_CLASS_PROVIDER, 1);
	assert_int_equal(s.kind, HF_PLAN_GIVE_UP);
	assert_int_equal(s.answer, HF_ANSWER_NOBODY);
	assert_int_equal(p.attempts, 6);
}

static void
test_hint_is_a_floor(void **state)
{
	struct hf_plan p = plan(1, 100);
	struct hf_plan_step s;

	(void)state;
	s = limited(&p, 0, 7000);
	assert_int_equal(s.kind, HF_PLAN_WAIT);
	assert_true(s.wait_ms >= 7000 && s.wait_ms <= 8000);
	/* Not a moment earlier. */
	s = hf_plan_resume(&p, 1 * SEC + 6900 * 1000);
	assert_int_equal(s.kind, HF_PLAN_WAIT);
}

/* With two targets the one that may be asked first decides the wait, and
 * only it is called while the other's hint runs. */
static void
test_least_hint_first(void **state)
{
	struct hf_plan p = plan(2, 100);
	struct hf_plan_step s;

	(void)state;
	limited(&p, 0, 20000);
	s = limited(&p, 1, 3000);
	assert_int_equal(s.kind, HF_PLAN_WAIT);
	assert_true(s.wait_ms >= 3000 && s.wait_ms < 5000);
	s = hf_plan_resume(&p, 1 * SEC + s.wait_ms * 1000);
	assert_int_equal(s.kind, HF_PLAN_CALL);
	assert_int_equal(s.target, 1);
}

/* When the targets can be asked, as the breakers and paces say. */
static int64_t opens_at[3], paced_at[3];

static int64_t
opens_then(void *arg, unsigned t, int64_t now_us)
{
	(void)arg;
	(void)now_us;
	return opens_at[t];
}

static int64_t
paced_then(void *arg, unsigned t, int64_t now_us)
{
	(void)arg;
	(void)now_us;
	return paced_at[t];
}

/* As long as somebody said when to come back, nobody is asked before its
 * breaker opens, and the turn is not given up before that. */
static void
test_hint_beside_a_breaker(void **state)
{
	struct hf_plan p = plan(2, 100);
	struct hf_plan_step s;
	int64_t now = 1 * SEC;

	(void)state;
	p.opens = opens_then;
	opens_at[0] = INT64_MAX; /* somebody probes it */
	opens_at[1] = 0;
	failed(&p, 0, HF_CLASS_PROVIDER, 1);
	s = limited(&p, 1, 60000);
	assert_int_equal(s.kind, HF_PLAN_WAIT);
	assert_true(s.wait_ms >= 60000);
	/* It may open before: then it is asked, as often as turns wait. */
	for (int i = 0; i < 5; i++) {
		opens_at[0] = now + 2 * SEC;
		now += 2 * SEC;
		if (i > 0) {
			s = hf_plan_failed(&p, 0,
			    &(struct hf_plan_failure){
				.cls = HF_CLASS_PROVIDER, .hint_ms = -1 },
			    now);
			assert_int_equal(s.kind, HF_PLAN_WAIT);
			assert_true(s.wait_ms < 20000);
		}
		s = hf_plan_resume(&p, now);
		if (i > 0)
			assert_int_equal(s.target, 0);
	}
	/* All waits are used up: one more for the hint, also if somebody probes
	 * the other one just then. */
	opens_at[0] = INT64_MAX;
	s = hf_plan_failed(&p, 0,
	    &(struct hf_plan_failure){
		.cls = HF_CLASS_PROVIDER, .hint_ms = -1 },
	    now);
	assert_int_equal(s.kind, HF_PLAN_WAIT);
	assert_true(now + s.wait_ms * 1000 >= 61 * SEC);
	s = hf_plan_resume(&p, 62 * SEC);
	assert_int_equal(s.kind, HF_PLAN_CALL);
}

/* It was full when its turn came, and somebody else could be asked: who fails,
 * too.  Then there is the line. */
static void
test_put_off(void **state)
{
	struct hf_plan p = plan(2, 100);
	struct hf_plan_step s;

	(void)state;
	p.opens = opens_then;
	p.paced = paced_then;
	opens_at[0] = opens_at[1] = paced_at[1] = 0;
	paced_at[0] = 30 * SEC;
	hf_plan_put_off(&p, 0, SEC);
	s = hf_plan_skipped(&p, 0, SEC);
	assert_int_equal(s.target, 1);
	s = failed(&p, 1, HF_CLASS_PROVIDER, 1);
	assert_int_equal(s.kind, HF_PLAN_CALL);
	assert_int_equal(s.target, 0);
	/* Once. */
	hf_plan_put_off(&p, 0, SEC);
	assert_int_equal(hf_plan_skipped(&p, 0, SEC).kind, HF_PLAN_WAIT);
	paced_at[0] = 0;
}

/* A line is better than an open breaker, and a shorter one than a longer. */
static void
test_lines(void **state)
{
	struct hf_plan p = plan(3, 100);

	(void)state;
	p.opens = opens_then;
	p.paced = paced_then;
	opens_at[0] = opens_at[2] = 0;
	opens_at[1] = 3 * SEC;
	paced_at[0] = 30 * SEC;
	paced_at[1] = 0;
	paced_at[2] = 20 * SEC;
	assert_false(hf_plan_has_next(&p, SEC));
	assert_int_equal(hf_plan_resume(&p, SEC).target, 2);
	assert_int_equal(failed(&p, 2, HF_CLASS_PROVIDER, 1).target, 0);
	assert_int_equal(failed(&p, 0, HF_CLASS_PROVIDER, 1).target, 1);
	assert_int_equal(hf_plan_resume(&p, 4 * SEC).target, 1);
	opens_at[0] = opens_at[1] = opens_at[2] = 0;
	paced_at[0] = paced_at[1] = paced_at[2] = 0;
}

static void
test_deadline(void **state)
{
	struct hf_plan p = plan(1, 2);
	struct hf_plan_step s;

	(void)state;
	/* 1 s left, 1.5 s to wait: no use. */
	s = failed(&p, 0, HF_CLASS_PROVIDER, 1);
	assert_int_equal(s.kind, HF_PLAN_GIVE_UP);
	assert_int_equal(s.answer, HF_ANSWER_LATE);
	/* Past it, no target is called any more. */
	p = plan(2, 2);
	s = failed(&p, 0, HF_CLASS_PROVIDER, 3);
	assert_int_equal(s.kind, HF_PLAN_GIVE_UP);
	assert_int_equal(s.answer, HF_ANSWER_LATE);
}

static void
test_status(void **state)
{
	const struct hf_plan_failure late = {
		.cls = HF_CLASS_NETWORK, .timed_out = true, .hint_ms = -1
	};
	struct hf_plan p = plan(2, 2);
	struct hf_plan_step s;

	(void)state;
	limited(&p, 0, 9000);
	s = limited(&p, 1, 5000);
	assert_int_equal(s.answer, HF_ANSWER_LIMITED);
	assert_int_equal(s.retry_after_ms, 5000);
	p = plan(2, 60);
	failed(&p, 0, HF_CLASS_CONTEXT, 1);
	s = failed(&p, 1, HF_CLASS_CONTEXT, 1);
	assert_int_equal(s.answer, HF_ANSWER_WINDOW);
	p = plan(2, 60);
	failed(&p, 0, HF_CLASS_AUTH, 1);
	s = failed(&p, 1, HF_CLASS_AUTH, 1);
	assert_int_equal(s.kind, HF_PLAN_GIVE_UP);
	assert_int_equal(s.answer, HF_ANSWER_NOBODY);
	p = plan(2, 2);
	hf_plan_failed(&p, 0, &late, 1 * SEC);
	s = hf_plan_failed(&p, 1, &late, 1 * SEC);
	assert_int_equal(s.answer, HF_ANSWER_LATE);
	/* Overloaded is not rate limited. */
	p = plan(2, 2);
	limited(&p, 0, 9000);
	s = hf_plan_failed(&p, 1,
	    &(struct hf_plan_failure){
		.cls = HF_CLASS_CAPACITY, .hint_ms = 5000 },
	    1 * SEC);
	assert_int_equal(s.answer, HF_ANSWER_NOBODY);
}

/* Targets whose failure waiting cannot mend are not asked again. */
static void
test_only_retryable_again(void **state)
{
	struct hf_plan p = plan(2, 100);
	struct hf_plan_step s;

	(void)state;
	failed(&p, 0, HF_CLASS_AUTH, 1);
	s = failed(&p, 1, HF_CLASS_PROVIDER, 1);
	assert_int_equal(s.kind, HF_PLAN_WAIT);
	s = hf_plan_resume(&p, 3 * SEC);
	assert_int_equal(s.kind, HF_PLAN_CALL);
	assert_int_equal(s.target, 1);
	assert_false(hf_plan_has_next(&p, 3 * SEC));
}

static void
failed_beside(struct hf_plan *p, unsigned t, enum hf_class c)
{
	struct hf_plan_failure f = { .cls = c, .hint_ms = -1 };

	hf_plan_failed_beside(p, t, &f, SEC);
}

/* One of two calls fails, then the other: on with the rest. */
static void
test_both_of_two_fail(void **state)
{
	struct hf_plan_step s;

	(void)state;
	for (unsigned first = 0; first < 2; first++) {
		struct hf_plan p = plan(3, 60);

		assert_int_equal(hf_plan_beside(&p, SEC), 1);
		failed_beside(&p, first, HF_CLASS_PROVIDER);
		assert_true(hf_plan_has_next(&p, SEC));
		s = failed(&p, 1 - first, HF_CLASS_NETWORK, 1);
		assert_int_equal(s.kind, HF_PLAN_CALL);
		assert_int_equal(s.target, 2);
		s = failed(&p, 2, HF_CLASS_PROVIDER, 1);
		assert_int_equal(s.kind, HF_PLAN_WAIT);
		s = hf_plan_resume(&p, SEC);
		assert_int_equal(s.target, 0);
		assert_int_equal(p.attempts, 3);
	}
}

static void
test_nobody_beside(void **state)
{
	struct hf_plan p = plan(1, 60);

	(void)state;
	assert_int_equal(hf_plan_beside(&p, SEC), -1);
	p = plan(2, 60);
	assert_int_equal(hf_plan_beside(&p, SEC), 1);
	assert_int_equal(hf_plan_beside(&p, SEC), -1);
	/* Not one that asked not to be asked yet. */
	p = plan(2, 60);
	limited(&p, 0, 3000);
	limited(&p, 1, 2000);
	assert_int_equal(hf_plan_resume(&p, 4 * SEC).target, 0);
	p.target[1].not_before_us = 6 * SEC;
	assert_int_equal(hf_plan_beside(&p, 5 * SEC), -1);
	assert_int_equal(hf_plan_beside(&p, 6 * SEC), 1);
}

/* The answer breaks off: who lost the race can go on with it, but who was too
 * slow comes after those that were not asked. */
static void
test_losers_are_asked_again(void **state)
{
	struct hf_plan p = plan(3, 60);
	struct hf_plan_step s;

	(void)state;
	assert_int_equal(hf_plan_beside(&p, SEC), 1);
	hf_plan_lost(&p, 1, false);
	s = failed(&p, 0, HF_CLASS_NETWORK, 1);
	assert_int_equal(s.target, 1);
	p = plan(3, 60);
	assert_int_equal(hf_plan_beside(&p, SEC), 1);
	hf_plan_lost(&p, 0, true);
	s = failed(&p, 1, HF_CLASS_NETWORK, 1);
	assert_int_equal(s.target, 2);
	s = failed(&p, 2, HF_CLASS_NETWORK, 1);
	assert_int_equal(s.kind, HF_PLAN_CALL);
	assert_int_equal(s.target, 0);
	s = failed(&p, 0, HF_CLASS_NETWORK, 1);
	assert_int_equal(s.kind, HF_PLAN_WAIT);
}

/* The first target's 400 is told also if the one beside it failed before; the
 * other one's never. */
static void
test_caller_beside(void **state)
{
	const struct hf_plan_failure caller = { .cls = HF_CLASS_CALLER },
				     policy = { .cls = HF_CLASS_POLICY };
	struct hf_plan p = plan(3, 60);
	struct hf_plan_step s;

	(void)state;
	assert_int_equal(hf_plan_beside(&p, SEC), 1);
	assert_true(hf_plan_is_final(&p, 0, &caller));
	assert_true(hf_plan_is_final(&p, 0, &policy));
	assert_false(hf_plan_is_final(&p, 1, &caller));
	failed_beside(&p, 1, HF_CLASS_CALLER);
	s = failed(&p, 0, HF_CLASS_CALLER, 1);
	assert_int_equal(s.kind, HF_PLAN_GIVE_UP);
	assert_int_equal(s.answer, HF_ANSWER_WORDS);
	p = plan(3, 60);
	assert_int_equal(hf_plan_beside(&p, SEC), 1);
	failed_beside(&p, 0, HF_CLASS_PROVIDER);
	s = failed(&p, 1, HF_CLASS_CALLER, 1);
	assert_int_equal(s.kind, HF_PLAN_CALL);
	assert_int_equal(s.target, 2);
}

static void
test_begin(void **state)
{
	struct hf_plan p;
	struct hf_plan_failure f = { .cls = HF_CLASS_NETWORK, .hint_ms = -1 };
	struct hf_plan_step s;

	(void)state;
	hf_plan_init(&p, &(struct hf_conf_route){ .n_target = 3 }, INT64_MAX);
	(void)hf_plan_first(&p, 0);
	s = hf_plan_begin(&p, 1, false, 0);
	assert_int_equal(s.kind, HF_PLAN_CALL);
	assert_int_equal(s.target, 1);
	/* What was before it was not tried, as far as this plan knows. */
	s = hf_plan_failed(&p, 1, &f, 0);
	assert_int_equal(s.target, 0);
	s = hf_plan_failed(&p, 0, &f, 0);
	assert_int_equal(s.target, 2);
	s = hf_plan_failed(&p, 2, &f, 0);
	assert_int_equal(s.kind, HF_PLAN_GIVE_UP);
	/* One that was late is asked only when nobody else is left; it was the
	 * first that was asked all the same. */
	hf_plan_init(&p, &(struct hf_conf_route){ .n_target = 3 }, INT64_MAX);
	(void)hf_plan_first(&p, 0);
	assert_int_equal(hf_plan_begin(&p, 0, true, 0).target, 1);
	f.cls = HF_CLASS_CALLER;
	assert_int_equal(hf_plan_failed(&p, 1, &f, 0).target, 2);
	hf_plan_init(&p, &(struct hf_conf_route){ .n_target = 1 }, INT64_MAX);
	assert_int_equal(hf_plan_begin(&p, 0, true, 0).target, 0);
}

/* The order in which a plan asks, when everybody fails. */
static void
assert_order(unsigned home, unsigned lead, const unsigned want[4])
{
	struct hf_plan_failure f = { .cls = HF_CLASS_NETWORK, .hint_ms = -1 };
	struct hf_plan_step s;
	struct hf_plan p;

	hf_plan_init(&p, &(struct hf_conf_route){ .n_target = 4 }, INT64_MAX);
	(void)hf_plan_first(&p, 0);
	hf_plan_stay(&p, home, lead);
	s = hf_plan_first(&p, 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(s.kind, HF_PLAN_CALL);
		assert_int_equal(s.target, want[i]);
		s = hf_plan_failed(&p, s.target, &f, 0);
	}
	assert_int_equal(s.kind, HF_PLAN_GIVE_UP);
}

/* Home first, or behind the one that has its session back; then the route's
 * order. */
static void
test_stays(void **state)
{
	(void)state;
	assert_order(2, 2, (const unsigned[]){ 2, 0, 1, 3 });
	assert_order(0, 0, (const unsigned[]){ 0, 1, 2, 3 });
	assert_order(3, 1, (const unsigned[]){ 1, 3, 0, 2 });
	assert_order(2, 0, (const unsigned[]){ 0, 2, 1, 3 });
}

static int64_t
opens(void *arg, unsigned t, int64_t now_us)
{
	(void)now_us;
	return ((const int64_t *)arg)[t];
}

/* Home is skipped while its breaker is open, like everybody. */
static void
test_home_is_closed(void **state)
{
	int64_t at[3] = { 0, 0, INT64_MAX };
	struct hf_plan_failure f = { .cls = HF_CLASS_CALLER, .hint_ms = -1 };
	struct hf_plan p;

	(void)state;
	hf_plan_init(&p, &(struct hf_conf_route){ .n_target = 3 }, INT64_MAX);
	p.opens = opens;
	p.opens_arg = at;
	hf_plan_stay(&p, 2, 2);
	assert_int_equal(hf_plan_first(&p, 1).target, 0);
	hf_plan_stay(&p, 1, 1);
	assert_int_equal(hf_plan_first(&p, 1).target, 1);
	/* It is the first that was asked, so its 400 is the caller's. */
	assert_int_equal(hf_plan_failed(&p, 1, &f, 1).kind, HF_PLAN_GIVE_UP);
	at[0] = 9 * SEC;
	at[1] = 5 * SEC;
	hf_plan_stay(&p, 2, 2);
	assert_int_equal(hf_plan_first(&p, 1).target, 1);
}

static double
given(void *arg)
{
	return *(double *)arg;
}

/* Each form of a hint, given at a moment of a fake clock: the target is not
 * asked a millisecond before, the jitter lies above. */
static void
test_forms_of_hints(void **state)
{
	static const struct {
		const char *headers;
		int64_t hint_ms;
	} form[] = {
		{ "retry-after-ms: 2500\r\n", 2500 },
		{ "x-ms-retry-after-ms: 2600\r\n", 2600 },
		{ "Retry-After: 3\r\n", 3000 },
		{ "Retry-After: Sat, 01 Jun 2024 00:00:09 GMT\r\n", 9000 },
		{ "x-ratelimit-reset-tokens: 6m0s\r\n", 360000 },
		{ "anthropic-ratelimit-tokens-reset: 2024-06-01T00:00:20Z\r\n",
		    20000 },
		{ "{\"details\":[{\"@type\":\"x/google.rpc.RetryInfo\","
		  "\"retryDelay\":\"34.5s\"}]}",
		    34500 },
	};
	const int64_t wall_us = INT64_C(1717200000) * SEC, now = 7 * SEC;

	(void)state;
	for (size_t i = 0; i < hf_countof(form); i++) {
		struct hf_str h = hf_str(form[i].headers);
		int64_t ms = hf_retry_hint(h, wall_us);
		struct hf_json v;

		if (ms < 0)
			ms = hf_reset_hint(h, wall_us);
		if (ms < 0 && hf_json_check(h, &v, NULL, NULL) == 0)
			ms = hf_retry_info(v);
		assert_int_equal(ms, form[i].hint_ms);
		for (double u = 0; u < 1; u += 0.25) {
			const struct hf_plan_failure f = {
				.cls = HF_CLASS_CAPACITY,
				.limited = true,
				.hint_ms = ms
			};
			struct hf_plan p = plan(1, 1000);
			struct hf_plan_step s;

			p.rnd = given;
			p.rnd_arg = &u;
			s = hf_plan_failed(&p, 0, &f, now);
			assert_int_equal(s.kind, HF_PLAN_WAIT);
			assert_int_equal(s.wait_ms, ms + (int64_t)(u * 1000));
			s = hf_plan_resume(&p, now + ms * 1000 - 1000);
			assert_int_equal(s.kind, HF_PLAN_WAIT);
			s = hf_plan_resume(&p, now + ms * 1000);
			assert_int_equal(s.kind, HF_PLAN_CALL);
		}
	}
}

/* --- windows --------------------------------------------------------------
 */

static struct hf_plan_step
too_long(struct hf_plan *p, unsigned t, int64_t holds, bool shrinks)
{
	struct hf_plan_failure f = { .cls = HF_CLASS_CONTEXT,
		.hint_ms = -1,
		.holds = holds,
		.shrinks = shrinks };

	return hf_plan_failed(p, t, &f, SEC);
}

static void
calls(struct hf_plan_step s, unsigned target)
{
	assert_int_equal(s.kind, HF_PLAN_CALL);
	assert_int_equal(s.target, target);
}

static void
test_larger_first(void **state)
{
	struct hf_plan p = plan(5, 60);
	static const int64_t window[] = { 8000, 4000, 8000, 9000, 0 };

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		p.target[i].window = window[i];
	calls(too_long(&p, 0, 8000, true), 3);
	/* Not known is not smaller. */
	calls(too_long(&p, 3, 9000, true), 4);
	/* Nobody is larger: the same with less, once, then the rest. */
	calls(too_long(&p, 4, 10000, true), 4);
	calls(too_long(&p, 4, 10000, true), 1);
	calls(too_long(&p, 1, 10000, false), 2);
	assert_int_equal(
	    too_long(&p, 2, 10000, false).answer, HF_ANSWER_WINDOW);
}

static void
test_shrinks_once(void **state)
{
	struct hf_plan p = plan(1, 60);
	struct hf_plan_step s;

	(void)state;
	calls(too_long(&p, 0, 500, true), 0);
	s = too_long(&p, 0, 400, true);
	assert_int_equal(s.kind, HF_PLAN_GIVE_UP);
	assert_int_equal(s.answer, HF_ANSWER_WINDOW);
	p = plan(1, 60);
	assert_int_equal(too_long(&p, 0, 500, false).kind, HF_PLAN_GIVE_UP);
}

/* One that is too small is asked for the record, and counts for nothing. */
static void
test_small(void **state)
{
	struct hf_plan p = plan(3, 60);

	(void)state;
	p.target[1].small = p.target[2].small = true;
	assert_int_equal(hf_plan_left(&p, 0), 0);
	assert_false(hf_plan_has_next(&p, 0));
	assert_int_equal(hf_plan_beside(&p, 0), -1);
	calls(failed(&p, 0, HF_CLASS_NETWORK, 1), 1);
	p.target[2].small = false;
	assert_int_equal(hf_plan_left(&p, 0), 1);
	assert_int_equal(hf_plan_beside(&p, 0), 2);
}

/* The first that is called has the word on what is the caller's fault. */
static void
test_small_first(void **state)
{
	struct hf_plan_failure f = {
		.cls = HF_CLASS_CONTEXT, .hint_ms = -1, .uncalled = true
	};
	struct hf_plan p = plan(3, 60);
	struct hf_plan_step s;

	(void)state;
	calls(hf_plan_failed(&p, 0, &f, SEC), 1);
	s = failed(&p, 1, HF_CLASS_CALLER, 1);
	assert_int_equal(s.kind, HF_PLAN_GIVE_UP);
	assert_int_equal(s.answer, HF_ANSWER_WORDS);
}

/* --- disabled by hand --- */

static bool
is_off(void *arg, unsigned t)
{
	const bool *off = arg;

	return off[t];
}

/* When a disabled target can be asked is not known. */
static int64_t
opens_if_on(void *arg, unsigned t, int64_t now_us)
{
	const bool *off = arg;

	(void)now_us;
	return off[t] ? INT64_MAX : 0;
}

static struct hf_plan
plan_without(bool *off)
{
	struct hf_plan p = plan(3, 600);

	p.is_disabled = is_off;
	p.opens = opens_if_on;
	p.opens_arg = off;
	for (unsigned i = 0; i < 3; i++)
		p.target[i].tried = false;
	return p;
}

static void
test_disabled_is_passed_over(void **state)
{
	bool off[] = { true, false, true };
	struct hf_plan p = plan_without(off);
	struct hf_plan_step s = hf_plan_first(&p, SEC);

	(void)state;
	assert_int_equal(s.target, 1);
	assert_int_equal(hf_plan_left(&p, SEC), 0);
	assert_false(hf_plan_has_next(&p, SEC));
	/* The one that is left is waited for, and no other. */
	s = failed(&p, 1, HF_CLASS_NETWORK, 1);
	assert_int_equal(s.kind, HF_PLAN_WAIT);
	s = hf_plan_resume(&p, 5 * SEC);
	assert_int_equal(s.kind, HF_PLAN_CALL);
	assert_int_equal(s.target, 1);
	/* What it says last decides what the client is told. */
	p.waits = p.max_waits;
	s = limited(&p, 1, 7000);
	assert_int_equal(s.kind, HF_PLAN_GIVE_UP);
	assert_int_equal(s.answer, HF_ANSWER_LIMITED);
	assert_int_equal(s.retry_after_ms, 7000);
}

static void
test_all_disabled_is_the_end(void **state)
{
	bool off[] = { true, true, true };
	struct hf_plan p = plan_without(off);
	struct hf_plan_step s;

	(void)state;
	assert_int_equal(hf_plan_first(&p, SEC).kind, HF_PLAN_CALL);
	s = hf_plan_skipped(&p, 0, SEC);
	assert_int_equal(s.kind, HF_PLAN_GIVE_UP);
	assert_int_equal(s.answer, HF_ANSWER_NOBODY);
}

/* The first was refused by its breaker or pace in the last moment: then the
 * next one is the first that is asked, and has the word on what is the caller's
 * fault.  A later one has not. */
static void
test_skipped_first(void **state)
{
	struct hf_plan p = plan(3, 600);
	struct hf_plan_step s = hf_plan_skipped(&p, 0, SEC);

	(void)state;
	assert_int_equal(s.target, 1);
	s = failed(&p, 1, HF_CLASS_CALLER, 1);
	assert_int_equal(s.kind, HF_PLAN_GIVE_UP);
	assert_int_equal(s.answer, HF_ANSWER_WORDS);
	p = plan(3, 600);
	calls(failed(&p, 0, HF_CLASS_NETWORK, 1), 1);
	calls(hf_plan_skipped(&p, 1, SEC), 2);
	assert_int_not_equal(
	    failed(&p, 2, HF_CLASS_CALLER, 1).kind, HF_PLAN_GIVE_UP);
}

int
main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_skipped_first),
		cmocka_unit_test(test_forms_of_hints),
		cmocka_unit_test(test_stays),
		cmocka_unit_test(test_home_is_closed),
		cmocka_unit_test(test_both_of_two_fail),
		cmocka_unit_test(test_nobody_beside),
		cmocka_unit_test(test_losers_are_asked_again),
		cmocka_unit_test(test_caller_beside),
		cmocka_unit_test(test_next_at_once),
		cmocka_unit_test(test_disabled_is_passed_over),
		cmocka_unit_test(test_all_disabled_is_the_end),
		cmocka_unit_test(test_caller_is_told),
		cmocka_unit_test(test_later_caller_goes_on),
		cmocka_unit_test(test_waits_grow),
		cmocka_unit_test(test_hint_is_a_floor),
		cmocka_unit_test(test_least_hint_first),
		cmocka_unit_test(test_hint_beside_a_breaker),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_put_off),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_only_retryable_again),
		cmocka_unit_test(test_begin),
		cmocka_unit_test(test_larger_first),
		cmocka_unit_test(test_shrinks_once),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_small_first),
	};

	return cmocka_run_group_tests_name("plan", t, NULL, NULL);
}
