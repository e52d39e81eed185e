/*
 * The table of error classes, row by row: the policy does what it says, with
 * and without what a route changes.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "gateway/turn/plan.h"

#define SEC ((int64_t)1000000)

static struct hf_plan
plan(enum hf_class c, enum hf_action a)
{
	struct hf_conf_route r = { .n_target = 2,
		.max_retries = 1,
		.backoff_unit_ms = 1,
		.backoff_cap_ms = 1 };
	struct hf_plan p;

	r.on_error[c] = (unsigned char)a;
	hf_plan_init(&p, &r, 600 * SEC);
	assert_int_equal(hf_plan_first(&p, 0).target, 0);
	return p;
}

/* Both targets fail with this class for as long as they are asked; the last
 * step is left in *s.  How often the first and the second were asked. */
static void
fail_all(struct hf_plan *p, const struct hf_plan_failure *f, unsigned asked[2],
    struct hf_plan_step *s)
{
	unsigned t = 0;

	asked[0] = asked[1] = 0;
	for (unsigned i = 0; i < 10; i++) {
		asked[t]++;
		*s = hf_plan_failed(p, t, f, SEC);
		if (s->kind == HF_PLAN_WAIT)
			*s = hf_plan_resume(p, SEC);
		if (s->kind != HF_PLAN_CALL)
			return;
		t = s->target;
	}
	fail_msg("it never ends");
}

static void
check_action(enum hf_class c, enum hf_action chosen, enum hf_action want)
{
	const struct hf_plan_failure f = { .cls = c, .hint_ms = -1 };
	struct hf_plan p = plan(c, chosen);
	struct hf_plan_step s;
	unsigned asked[2];

	fail_all(&p, &f, asked, &s);
	assert_int_equal(s.kind, HF_PLAN_GIVE_UP);
	assert_int_equal(s.answer, hf_class_row(c)->answer);
	assert_int_equal(asked[0], want == HF_ACTION_RETRY ? 2 : 1);
	assert_int_equal(asked[1],
	    want == HF_ACTION_RETRY    ? 2 :
		want == HF_ACTION_NEXT ? 1 :
					 0);
}

static void
test_rows(void **state)
{
	(void)state;
	for (unsigned c = HF_CLASS_NONE + 1; c < HF_N_CLASS; c++)
		check_action((enum hf_class)c, HF_ACTION_DEFAULT,
		    hf_class_row((enum hf_class)c)->action);
}

static void
test_routes_override(void **state)
{
	(void)state;
	for (unsigned c = HF_CLASS_NONE + 1; c < HF_N_CLASS; c++)
		for (int a = HF_ACTION_END; a <= HF_ACTION_RETRY; a++)
			check_action((enum hf_class)c, (enum hf_action)a,
			    (enum hf_action)a);
}

/* Only what the first target says of the request itself ends the turn. */
static void
test_later_target(void **state)
{
	(void)state;
	for (unsigned c = HF_CLASS_NONE + 1; c < HF_N_CLASS; c++) {
		const struct hf_plan_failure f = { .cls = (enum hf_class)c,
			.hint_ms = -1 };
		const struct hf_plan_failure before = { .cls = HF_CLASS_NETWORK,
			.hint_ms = -1 };
		struct hf_plan p = plan(HF_CLASS_NETWORK, HF_ACTION_DEFAULT);
		bool ends = hf_class_row(f.cls)->action == HF_ACTION_END;

		assert_int_equal(
		    hf_plan_failed(&p, 0, &before, SEC).kind, HF_PLAN_CALL);
		assert_int_equal(hf_plan_failed(&p, 1, &f, SEC).kind,
		    ends ? HF_PLAN_GIVE_UP : HF_PLAN_WAIT);
	}
}

/* All were rate limited, or all were late. */
static void
test_special_answers(void **state)
{
	(void)state;
	for (unsigned c = HF_CLASS_NONE + 1; c < HF_N_CLASS; c++) {
		struct hf_plan_failure f = { .cls = (enum hf_class)c,
			.limited = c == HF_CLASS_CAPACITY,
			.timed_out = c == HF_CLASS_NETWORK,
			.hint_ms = -1 };
		struct hf_plan p = plan(f.cls, HF_ACTION_DEFAULT);
		struct hf_plan_step s;
		unsigned asked[2];

		fail_all(&p, &f, asked, &s);
		assert_int_equal(s.answer, hf_class_row(f.cls)->all);
	}
}

/* Targets that failed in different ways: nobody's words are the answer. */
static void
test_mixed_answers(void **state)
{
	(void)state;
	for (unsigned c = HF_CLASS_CALLER; c < HF_N_CLASS; c++) {
		const struct hf_plan_failure one = { .cls = HF_CLASS_AUTH,
			.hint_ms = -1 };
		const struct hf_plan_failure two = { .cls = (enum hf_class)c,
			.hint_ms = -1 };
		struct hf_plan p = plan(two.cls, HF_ACTION_NEXT);

		(void)hf_plan_failed(&p, 0, &one, SEC);
		assert_int_equal(
		    hf_plan_failed(&p, 1, &two, SEC).answer, HF_ANSWER_NOBODY);
	}
}

static void
test_names(void **state)
{
	(void)state;
	for (unsigned c = HF_CLASS_NONE + 1; c < HF_N_CLASS; c++) {
		const struct hf_class_row *r = hf_class_row((enum hf_class)c);

		assert_int_equal(hf_class_find(hf_str(r->name)), c);
		assert_true(r->action != HF_ACTION_DEFAULT);
		assert_true(hf_answer_error(r->answer)->type != NULL);
		assert_true(r->meaning[0] != '\0');
	}
	assert_string_equal(hf_class_name(HF_CLASS_NONE), "ok");
	assert_int_equal(hf_class_find(HF_STR("ok")), HF_CLASS_NONE);
	assert_int_equal(hf_class_find(HF_STR("")), HF_CLASS_NONE);
	assert_int_equal(hf_action_find(HF_STR("retry")), HF_ACTION_RETRY);
	assert_int_equal(hf_action_find(HF_STR("first")), HF_ACTION_DEFAULT);
	assert_int_equal(hf_action_find(HF_STR("default")), HF_ACTION_DEFAULT);
	/* What the breaker must not take for a dead target. */
	assert_int_equal(
	    hf_class_row(HF_CLASS_CAPACITY)->breaker, HF_BREAKER_NEUTRAL);
	assert_int_equal(
	    hf_class_row(HF_CLASS_NETWORK)->breaker, HF_BREAKER_YES);
	assert_int_equal(hf_class_row(HF_CLASS_CALLER)->breaker, HF_BREAKER_NO);
}

int
main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_routes_override),
		cmocka_unit_test(test_later_target),
		cmocka_unit_test(test_special_answers),
		cmocka_unit_test(test_mixed_answers),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests_name("class", t, NULL, NULL);
}
