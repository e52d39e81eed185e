/*
 * Items: bodies keep the client's bytes, normal forms do not depend on how a
 * thing was written, and differ when it differs.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "gateway/turn/items.h"

struct both {
	struct hf_arena a;
	struct hf_draft d;
};

static int
setup(void **state)
{
	static struct both b;

	hf_arena_init(&b.a, 0);
	hf_draft_init(&b.d, &b.a);
	*state = &b;
	return 0;
}

static int
teardown(void **state)
{
	struct both *b = *state;

	hf_arena_free(&b->a);
	return 0;
}

static struct hf_json
json(const char *text)
{
	struct hf_json v = { 0 };

	if (text != NULL)
		assert_int_equal(
		    hf_json_check(hf_str(text), &v, NULL, NULL), 0);
	return v;
}

static int
user(struct hf_draft *d, const char *content, struct hf_error *e)
{
	return hf_draft_message(d, HF_ROLE_USER, HF_ORIGIN_CLIENT,
	    json(content), json(NULL), json(NULL), e);
}

static bool
same_norm(const struct hf_draft *d, unsigned i, unsigned j)
{
	return hf_str_eq(d->norm[i], d->norm[j]);
}

static void
test_bytes_are_kept(void **state)
{
	struct hf_draft *d = &((struct both *)*state)->d;

	assert_int_equal(user(d, "\"caf\\u00e9 \\/ 1.10\"", NULL), 0);
	assert_true(hf_str_is(
	    d->item[0].body, "{\"content\":\"caf\\u00e9 \\/ 1.10\"}"));
	assert_int_equal(
	    hf_draft_tool_call(d, HF_ORIGIN_CLIENT, json("\"call_1\""),
		json("\"f\""),
		json("\"{\\\"n\\\": 2512292042121000001, \\\"p\\\":1.10}\""),
		NULL),
	    0);
	assert_true(hf_str_is(d->item[1].body,
	    "{\"id\":\"call_1\","
	    "\"name\":\"f\",\"arguments\":\"{\\\"n\\\": 2512292042121000001, "
	    "\\\"p\\\":1.10}\"}"));
}

static void
test_same_thing_same_norm(void **state)
{
	struct hf_draft *d = &((struct both *)*state)->d;

	assert_int_equal(user(d, "\"caf\\u00e9\"", NULL), 0);
	assert_int_equal(user(d, "\"caf\xc3\xa9\"", NULL), 0);
	assert_int_equal(
	    user(d, "[{\"type\":\"text\",\"text\":\"caf\xc3\xa9\"}]", NULL), 0);
	assert_int_equal(user(d,
			     "[{\"type\":\"text\",\"text\":\"caf\"},"
			     "{\"type\":\"text\",\"text\":\"\xc3\xa9\"}]",
			     NULL),
	    0);
	assert_true(
	    same_norm(d, 0, 1) && same_norm(d, 0, 2) && same_norm(d, 0, 3));
	/* Arguments written with other white space are the same call. */
	assert_int_equal(hf_draft_answer_call(d, hf_str("c"), hf_str("f"),
			     hf_str("{\"a\":1,\"b\":\"x y\"}"), NULL),
	    0);
	assert_int_equal(
	    hf_draft_tool_call(d, HF_ORIGIN_CLIENT, json("\"c\""),
		json("\"f\""),
		json("\"{ \\\"a\\\": 1, \\\"b\\\": \\\"x y\\\" }\""), NULL),
	    0);
	assert_true(same_norm(d, 4, 5));
	/* What we said is what a client sends back. */
	assert_int_equal(
	    hf_draft_answer_text(d, hf_str("h\xc3\xa9llo"), HF_STR_NONE, NULL),
	    0);
	assert_int_equal(
	    hf_draft_message(d, HF_ROLE_ASSISTANT, HF_ORIGIN_CLIENT,
		json("\"h\\u00e9llo\""), json(NULL), json(NULL), NULL),
	    0);
	assert_true(same_norm(d, 6, 7));
}

static void
test_other_thing_other_norm(void **state)
{
	struct hf_draft *d = &((struct both *)*state)->d;

	assert_int_equal(user(d, "\"ab\"", NULL), 0);
	assert_int_equal(user(d, "\"ab \"", NULL), 0);
	assert_int_equal(
	    hf_draft_answer_text(d, hf_str("ab"), HF_STR_NONE, NULL), 0);
	assert_int_equal(
	    hf_draft_answer_text(d, HF_STR_NONE, hf_str("ab"), NULL), 0);
	assert_int_equal(
	    hf_draft_tool_result(d, json("\"c1\""), json("\"ab\""), NULL), 0);
	assert_int_equal(
	    hf_draft_tool_result(d, json("\"c2\""), json("\"ab\""), NULL), 0);
	assert_int_equal(
	    hf_draft_tool_result(d, json("\"c\""), json("\"1ab\""), NULL), 0);
	for (unsigned i = 0; i < d->n; i++)
		for (unsigned j = 0; j < i; j++)
			assert_false(same_norm(d, i, j));
}

static void
test_lead_items(void **state)
{
	struct hf_draft *d = &((struct both *)*state)->d;

	assert_int_equal(hf_draft_message(d, HF_ROLE_SYSTEM, HF_ORIGIN_CLIENT,
			     json("\"a\""), json(NULL), json(NULL), NULL),
	    0);
	assert_int_equal(
	    hf_draft_message(d, HF_ROLE_DEVELOPER, HF_ORIGIN_CLIENT,
		json("\"b\""), json(NULL), json(NULL), NULL),
	    0);
	assert_int_equal(user(d, "\"c\"", NULL), 0);
	assert_int_equal(hf_draft_message(d, HF_ROLE_SYSTEM, HF_ORIGIN_CLIENT,
			     json("\"d\""), json(NULL), json(NULL), NULL),
	    0);
	assert_int_equal(d->n_lead, 2);
	assert_true(d->item[0].lead && d->item[1].lead);
	assert_false(d->item[2].lead || d->item[3].lead);
}

static void
test_errors_say_where(void **state)
{
	struct hf_draft *d = &((struct both *)*state)->d;
	struct hf_error e;

	assert_int_equal(user(d, "7", &e), HF_EINVAL);
	assert_non_null(strstr(e.text, "content: expected"));
	assert_int_equal(user(d,
			     "[{\"type\":\"text\",\"text\":\"a\"},"
			     "{\"type\":\"image_url\"}]",
			     &e),
	    HF_EINVAL);
	assert_non_null(strstr(e.text, "content[1].type: \"image_url\""));
	assert_int_equal(user(d, "[{\"type\":\"text\"}]", &e), HF_EINVAL);
	assert_non_null(strstr(e.text, "content[0].text"));
	assert_int_equal(user(d, "[3]", &e), HF_EINVAL);
	assert_int_equal(d->n, 0);
}

/* A lone surrogate becomes U+FFFD in what is stored. */
static void
test_repair(void **state)
{
	struct hf_draft *d = &((struct both *)*state)->d;

	assert_int_equal(user(d, "\"a\\ud800b\"", NULL), 0);
	assert_null(strstr(d->item[0].body.p, "\\ud800"));
	assert_int_equal(user(d,
			     "\"a\xef\xbf\xbd"
			     "b\"",
			     NULL),
	    0);
	assert_true(same_norm(d, 0, 1));
}

int
main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test_setup_teardown(
		    test_bytes_are_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_same_thing_same_norm, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_other_thing_other_norm, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_lead_items, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_errors_say_where, setup, teardown),
		cmocka_unit_test_setup_teardown(test_repair, setup, teardown),
	};

	return cmocka_run_group_tests_name("items", t, NULL, NULL);
}
