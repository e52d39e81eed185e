/*
 * Windows of targets: the room of an answer, what refusals say, which result
 * belongs to which call, and what is learned from a provider's counts.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/target.h"
#include "gateway/provider/provider.h"

static int64_t
room(const char *params, int most, int64_t window)
{
	struct hf_conf_target t = { .call.max_output_tokens = most };
	struct hf_json v;

	assert_int_equal(hf_json_check(hf_str(params), &v, NULL, NULL), 0);
	return hf_output_room(&t, v, window);
}

static void
test_output_room(void **state)
{
	(void)state;
	assert_int_equal(room("{}", 4096, 0), 4096);
	assert_int_equal(room("{}", 0, 0), 4096);
	assert_int_equal(room("{}", 4096, 200000), 4096);
	assert_int_equal(room("{}", 4096, 8192), 2048);
	assert_int_equal(room("{}", 4096, 1), 1);
	/* What the client wants is kept free whole. */
	assert_int_equal(room("{\"max_tokens\":9000}", 4096, 8192), 9000);
	assert_int_equal(
	    room("{\"max_tokens\":9,\"max_completion_tokens\":7}", 4096, 8192),
	    7);
}

static void
test_refusals(void **state)
{
	static const struct {
		const char *text;
		int64_t window, sent;
	} row[] = {
		{ "This model's maximum context length is 8192 tokens. "
		  "However, your messages resulted in 9417 tokens. Please "
		  "reduce the length of the messages.",
		    8192, 9417 },
		{ "This model's maximum context length is 4096 tokens. "
		  "However, you requested 4500 tokens (3500 in the messages, "
		  "1000 in the completion).",
		    4096, 3500 },
		{ "prompt is too long: 210543 tokens > 200000 maximum", 200000,
		    210543 },
		{ "input length and `max_tokens` exceed context limit: 190000 "
		  "+ 20000 > 200000, decrease input length or `max_tokens` and "
		  "try again",
		    200000, 190000 },
		{ "request (5012 tokens) exceeds the available context size "
		  "(4096 tokens), try increasing it",
		    4096, 5012 },
		{ "The input token count (1200000) exceeds the maximum number "
		  "of tokens allowed (1048576).",
		    1048576, 1200000 },
		{ "too long", 0, 0 },
		{ "", 0, 0 },
		{ "maximum context length is", 0, 0 },
		{ "maximum context length is large", 0, 0 },
		{ "maximum context length is 99999999999999999999 tokens", 0,
		    0 },
		{ "x in the messages", 0, 0 },
		{ "99999999999999999999 in the messages", 0, 0 },
		{ "maximum context length is 10 tokens", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < hf_countof(row); i++) {
		int64_t window, sent;

		hf_window_refusal(hf_str(row[i].text), &window, &sent);
		assert_int_equal(window, row[i].window);
		assert_int_equal(sent, row[i].sent);
	}
}

#define ITEM(k, r, b)                                       \
	{                                                   \
		.kind = HF_ITEM_##k, .role = HF_ROLE_##r,   \
		.body = { b, sizeof(b) - 1 }, .turn_row = 1 \
	}

static void
test_links(void **state)
{
	const struct hf_item item[] = {
		ITEM(MESSAGE, USER, "{\"content\":\"a\"}"),
		ITEM(TOOL_CALL, ASSISTANT,
		    "{\"id\":\"x\",\"name\":\"f\",\"arguments\":\"{}\"}"),
		ITEM(TOOL_CALL, ASSISTANT,
		    "{\"id\":\"y\",\"name\":\"f\",\"arguments\":\"{}\"}"),
		ITEM(TOOL_RESULT, TOOL, "{\"id\":\"y\",\"content\":\"1\"}"),
		ITEM(TOOL_RESULT, TOOL, "{\"id\":\"x\",\"content\":\"2\"}"),
		ITEM(TOOL_RESULT, TOOL, "{\"id\":\"z\",\"content\":\"3\"}"),
		ITEM(TOOL_CALL, ASSISTANT,
		    "{\"id\":\"x\",\"name\":\"f\",\"arguments\":\"{}\"}"),
		ITEM(TOOL_RESULT, TOOL,
		    "{\"id\":\"\\u0078\",\"content\":\"4\"}"),
	};
	static const uint32_t want[] = { UINT32_MAX, UINT32_MAX, UINT32_MAX, 2,
		1, UINT32_MAX, UINT32_MAX, 6 };
	uint32_t call[hf_countof(item)];
	struct hf_item bad = ITEM(MESSAGE, USER, "{");
	struct hf_error e = { 0 };

	(void)state;
	assert_int_equal(hf_history_links(item, hf_countof(item), call, &e), 0);
	for (size_t i = 0; i < hf_countof(item); i++)
		assert_int_equal(call[i], want[i]);
	assert_int_equal(hf_history_links(&bad, 1, call, &e), HF_EINVAL);
	assert_int_equal(hf_history_links(item, 0, call, &e), 0);
}

static void
learn(struct hf_target_row *r, int64_t estimated, int64_t tokens)
{
	hf_target_learn_tokens(r, estimated, tokens, false);
}

static void
test_windows(void **state)
{
	struct hf_conf_call known = { .context_window = 5000 }, unknown = { 0 };
	struct hf_target_row r = { 0 };

	(void)state;
	assert_int_equal(hf_target_window(&r, &known, 1), 5000);
	assert_int_equal(hf_target_window(NULL, &known, 1), 5000);
	assert_int_equal(hf_target_window(&r, &unknown, 1), 0);
	hf_target_set_window(&r, 4096, 1);
	hf_target_set_window(NULL, 4096, 1);
	assert_int_equal(hf_target_window(&r, &unknown, 1), 4096);
	/* What the operator says is believed. */
	assert_int_equal(hf_target_window(&r, &known, 1), 5000);
	hf_target_set_window(&r, 0, 1);
	hf_target_set_window(&r, (int64_t)1 << 40, 1);
	assert_int_equal(hf_target_window(&r, &unknown, 1), 4096);
	/* It is asked again some day, and at once when the operator says so. */
	assert_int_equal(
	    hf_target_window(&r, &unknown, (int64_t)600 * 1000000), 4096);
	assert_int_equal(
	    hf_target_window(&r, &unknown, (int64_t)600 * 1000000 + 1), 0);
	learn(&r, 10000, 15000);
	hf_target_reset(&r, 1);
	assert_int_equal(hf_target_window(&r, &unknown, 1), 0);
	assert_int_equal(hf_target_tokens(&r, 1000), 1000);
}

static void
test_ratio(void **state)
{
	struct hf_target_row r = { 0 };

	(void)state;
	assert_int_equal(hf_target_tokens(NULL, 1234), 1234);
	assert_int_equal(hf_target_tokens(&r, 1234), 1234);
	/* Too few to say anything; unknown; perhaps not all. */
	learn(&r, 100, 1000);
	learn(&r, 5000, -1);
	learn(&r, 5000, 2500);
	learn(NULL, 5000, 6000);
	assert_int_equal(hf_target_tokens(&r, 1000), 1000);
	learn(&r, 5000, 6000);
	assert_int_equal(hf_target_tokens(&r, 1000), 1200);
	/* Down slowly. */
	learn(&r, 5000, 5000);
	assert_in_range(hf_target_tokens(&r, 1000), 1150, 1199);
	for (unsigned i = 0; i < 500; i++)
		learn(&r, 5000, 100);
	assert_int_equal(hf_target_tokens(&r, 1000), 1000);
	for (unsigned i = 0; i < 500; i++)
		hf_target_learn_tokens(&r, 5000, 3500, true);
	assert_int_equal(hf_target_tokens(&r, 1000), 700);
	for (unsigned i = 0; i < 500; i++)
		hf_target_learn_tokens(&r, 5000, 1, true);
	assert_int_equal(hf_target_tokens(&r, 1000), 500);
	learn(&r, 5000, INT64_MAX / 2000);
	assert_int_equal(hf_target_tokens(&r, 1000), 2000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_output_room),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_ratio),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
