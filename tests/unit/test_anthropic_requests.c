/*
 * The anthropic dialect going out: requests from items and parameters.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/unit/wire_util.h"

#define ID "call_Q7r2Zk9LmN4pT6vX8yB1cD3e"
#define CALL(id, args) \
	"{\"id\":\"" id "\",\"name\":\"f\",\"arguments\":\"" args "\"}"
#define RESULT(id, c) "{\"id\":\"" id "\",\"content\":" c "}"
#define SAID(c) "{\"content\":\"" c "\"}"
#define T(t) "{\"type\":\"text\",\"text\":\"" t "\"}"
#define USER(blocks) "{\"role\":\"user\",\"content\":[" blocks "]}"
#define ASST(blocks) "{\"role\":\"assistant\",\"content\":[" blocks "]}"
#define USE(id, input)                                       \
	"{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":" \
	"\"f\",\"input\":" input "}"
#define RES(id, more) \
	"{\"type\":\"tool_result\",\"tool_use_id\":\"" id "\"" more "}"

static void
expect(const struct hf_item *item, unsigned n, const char *params,
    const char *member, const char *want)
{
	wire_expect(
	    hf_dialect(HF_DIALECT_ANTHROPIC), item, n, params, member, want);
}

static void
test_golden(void **state)
{
	const struct hf_item item[] = {
		wire_message(
		    HF_ROLE_SYSTEM, SAID("You are the Acme phone line.")),
		wire_message(HF_ROLE_ASSISTANT, SAID("Acme, how can I help?")),
		wire_message(HF_ROLE_USER, SAID("Where is order 42?")),
		wire_call(1, CALL(ID, "{\\\"id\\\":42}")),
		wire_result(RESULT(ID, "\"packed\"")),
	};
	char *body = wire_build(hf_dialect(HF_DIALECT_ANTHROPIC), item, 5,
	    "{\"max_completion_tokens\":200,\"tools\":[{\"type\":\"function\","
	    "\"function\":{\"name\":\"f\",\"description\":\"Order state\","
	    "\"parameters\":{\"type\":\"object\",\"properties\":{\"id\":{"
	    "\"type\":\"integer\"}},\"required\":[\"id\"]}}}]}",
	    true);

	(void)state;
	assert_string_equal(body,
	    "{\"model\":\"m\",\"max_tokens\":200,"
	    "\"system\":[" T(
		"You are the Acme phone line.") "],\"messages\":"
						"[" USER(T(
						    "(call "
						    "connec"
						    "ted)")) "," ASST(T("Acme, "
									"how "
									"can I "
									"help"
									"?")) "," USER(T("Where is "
											 "order "
											 "42?")) "," ASST(USE(ID,
						    "{\"id\":42}")) "," USER(RES(ID,
						    ",\"content\":"
						    "\"packed\"")) "],"
								   "\"tools\":["
								   "{"
								   "\"name\":"
								   "\"f\","
								   "\"descripti"
								   "on\":"
								   "\"Order "
								   "state\","
								   "\"input_"
								   "schema\":{"
								   "\"type\":"
								   "\"object\","
								   "\"propertie"
								   "s\":{"
								   "\"id\":{"
								   "\"type\":"
								   "\"integer\""
								   "}"
								   "},"
								   "\"required"
								   "\":[\"id\"]"
								   "}}],"
								   "\"stream\":"
								   "true}");
	free(body);
}

static void
test_parallel_tools(void **state)
{
	/* Text and two calls in one message, both results in the next, in the
	 * order of the calls and before the user's text. */
	const struct hf_item item[] = {
		wire_message(HF_ROLE_USER, SAID("q")),
		wire_message(HF_ROLE_ASSISTANT, SAID("Hm.")),
		wire_call(1, CALL("a", "{ \\\"x\\\" : 1.10 }")),
		wire_call(1, CALL("b", "")),
		wire_result(RESULT("b",
		    "[{\"type\":\"text\",\"text\":\"rb\"},"
		    "{\"type\":\"text\",\"text\":\"\"}]")),
		wire_result(RESULT("a", "\"\"")),
		wire_message(HF_ROLE_USER, SAID("and?")),
		wire_message(HF_ROLE_USER, SAID("hello?")),
	};

	(void)state;
	expect(item, hf_countof(item), "{}", "messages",
	    "[" USER(T("q")) "," ASST(
		T("Hm.") "," USE("a", "{ \"x\" : 1.10 }") "," USE(
		    "b", "{}")) "," USER(RES("a", "") "," RES("b",
		",\"content\":[" T(
		    "rb") "]") "," T("and?") "," T("hello?")) "]");
}

static void
test_orphans(void **state)
{
	const struct hf_item item[] = {
		wire_message(HF_ROLE_USER, SAID("q")),
		wire_call(1, CALL("a", "{}")),
		wire_result(RESULT("zz", "\"orphan\"")),
		wire_message(HF_ROLE_USER, SAID("q2")),
	};

	(void)state;
	expect(item, hf_countof(item), "{}", "messages",
	    "[" USER(T("q")) "," ASST(USE("a", "{}")) "," USER(RES("a",
		",\"content\":"
		"\"call interrupted, no result\",\"is_error\":true") "," T("q"
									   "2")) "]");
}

static void
test_arguments(void **state)
{
	static const struct {
		const char *body, *input;
	} row[] = {
		{ CALL("a", ""), "{}" },
		{ CALL("a", " \\n"), "{}" },
		{ CALL("a", "{}"), "{}" },
		{ CALL("a", "{\\\"a\\\":\\\"\\\\u00e9\\\"}"),
		    "{\"a\":\"\\u00e9\"}" },
		{ CALL("a", "{\\\"n\\\":2512292042121000001}"),
		    "{\"n\":2512292042121000001}" },
		{ CALL("a", "{\\\"a\\\":\\\"\\\\ud800\\\"}"),
		    "{\"a\":\"\\ufffd\"}" },
		{ CALL("a", "{oops"), "{\"_raw\":\"{oops\"}" },
		{ CALL("a", "[1]"), "{\"_raw\":\"[1]\"}" },
		{ CALL("a", "\\\"s\\\""), "{\"_raw\":\"\\\"s\\\"\"}" },
		{ "{\"id\":\"a\",\"name\":\"f\"}", "{}" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < hf_countof(row); i++) {
		struct hf_item item = wire_call(1, row[i].body);
		char *body = wire_build(
		    hf_dialect(HF_DIALECT_ANTHROPIC), &item, 1, "{}", false);
		struct hf_json v;

		assert_int_equal(
		    hf_json_check(hf_str(body), &v, NULL, NULL), 0);
		v = hf_json_path(
		    v, "messages", "1", "content", "0", "input", NULL);
		if (!hf_str_is(v.raw, row[i].input))
			fail_msg("row %zu: %.*s", i, HF_STR_ARG(v.raw));
		free(body);
	}
}

static void
test_system(void **state)
{
	const struct hf_item item[] = {
		wire_message(HF_ROLE_SYSTEM, SAID("one")),
		wire_message(HF_ROLE_SYSTEM, SAID(" ")),
		wire_message(HF_ROLE_DEVELOPER,
		    "{\"content\":[" T("two") "," T("three") "]}"),
		wire_message(HF_ROLE_USER, SAID("q")),
		wire_message(HF_ROLE_ASSISTANT, SAID("a")),
		wire_message(HF_ROLE_SYSTEM, SAID("late \\u00e9")),
		wire_message(HF_ROLE_USER, SAID("q2")),
	};

	(void)state;
	expect(item, hf_countof(item), "{}", "system",
	    "[" T("one") "," T("two") "," T("three") "]");
	expect(item, hf_countof(item), "{}", "messages",
	    "[" USER(T("q")) "," ASST(T("a")) "," USER(
		T("[system note] late \\u00e9") "," T("q2")) "]");
	/* A note last, and no system at all. */
	expect(item + 3, 3, "{}", "messages",
	    "[" USER(T("q")) "," ASST(T("a")) "," USER(
		T("[system note] late \\u00e9")) "]");
	expect(item + 3, 3, "{}", "system", NULL);
	expect(item + 3, 1, "{\"response_format\":{\"type\":\"json_object\"}}",
	    "system",
	    "[" T("Answer with one JSON object and nothing else.") "]");
	/* System alone. */
	expect(item, 1, "{}", "messages", "[" USER(T("(call connected)")) "]");
}

static void
test_empty_and_last(void **state)
{
	const struct hf_item item[] = {
		wire_message(HF_ROLE_USER, SAID("q")),
		wire_message(HF_ROLE_ASSISTANT, SAID(" \\n\\u00a0\\u3000")),
		wire_message(HF_ROLE_USER, SAID("")),
		wire_message(
		    HF_ROLE_USER, "{\"content\":[" T("") "," T("r") "]}"),
		wire_message(HF_ROLE_ASSISTANT,
		    "{\"content\":null,"
		    "\"refusal\":\"No.\"}"),
		wire_message(HF_ROLE_ASSISTANT, SAID("more ")),
	};

	(void)state;
	expect(item, hf_countof(item), "{}", "messages",
	    "[" USER(T("q") "," T("r")) "," ASST(
		T("No.") "," T("more ")) "," USER(T("(continue)")) "]");
	expect(
	    item + 1, 2, "{}", "messages", "[" USER(T("(call connected)")) "]");
	expect(item, 0, "{}", "messages", "[" USER(T("(call connected)")) "]");
}

static void
test_params(void **state)
{
	static const struct {
		const char *params, *member, *want;
	} row[] = {
		{ "{}", "max_tokens", "512" },
		{ "{\"max_tokens\":7}", "max_tokens", "7" },
		{ "{\"max_tokens\":7,\"max_completion_tokens\":8}",
		    "max_tokens", "8" },
		{ "{\"max_tokens\":0}", "max_tokens", "512" },
		{ "{\"max_tokens\":1.5}", "max_tokens", "512" },
		{ "{\"temperature\":0.70}", "temperature", "0.70" },
		{ "{\"temperature\":2}", "temperature", "1" },
		{ "{\"temperature\":null}", "temperature", NULL },
		{ "{\"top_p\":0.9}", "top_p", "0.9" },
		{ "{\"top_p\":0.9,\"temperature\":0}", "top_p", NULL },
		{ "{\"top_p\":0.9,\"temperature\":0}", "temperature", "0" },
		{ "{\"stop\":\"END\"}", "stop_sequences", "[\"END\"]" },
		{ "{\"stop\":[\"a\",\"\\n\",\"b\"]}", "stop_sequences",
		    "[\"a\",\"b\"]" },
		{ "{\"stop\":[]}", "stop_sequences", NULL },
		{ "{\"stop\":\" \"}", "stop_sequences", NULL },
		{ "{\"stop\":[\"\\n\"]}", "stop_sequences", NULL },
		{ "{\"user\":\"u\"}", "metadata", "{\"user_id\":\"u\"}" },
		{ "{\"user\":\"u\",\"safety_identifier\":\"s\"}", "metadata",
		    "{\"user_id\":\"s\"}" },
		{ "{\"metadata\":{\"a\":\"b\"}}", "metadata", NULL },
		{ "{\"seed\":1}", "seed", NULL },
		{ "{\"frequency_penalty\":1}", "frequency_penalty", NULL },
		{ "{\"reasoning_effort\":\"low\"}", "reasoning_effort", NULL },
		{ "{\"response_format\":{\"type\":\"json_schema\","
		  "\"json_schema\":{\"name\":\"n\",\"schema\":{\"type\":"
		  "\"object\"}}}}",
		    "output_config",
		    "{\"format\":{\"type\":"
		    "\"json_schema\",\"schema\":{\"type\":\"object\"}}}" },
		{ "{\"response_format\":{\"type\":\"text\"}}", "output_config",
		    NULL },
	};
	struct hf_item item = wire_message(HF_ROLE_USER, SAID("q"));
	size_t i;

	(void)state;
	for (i = 0; i < hf_countof(row); i++)
		expect(&item, 1, row[i].params, row[i].member, row[i].want);
	/* The later API version knows no sampling. */
	wire_provider.api_version = (char *)(uintptr_t) "2026-10-21";
	expect(
	    &item, 1, "{\"temperature\":1,\"top_p\":1}", "temperature", NULL);
	wire_provider.api_version = NULL;
}

#define F(name, more) \
	"{\"type\":\"function\",\"function\":{\"name\":\"" name "\"" more "}}"

static void
test_tools(void **state)
{
	static const struct {
		const char *params, *tools, *choice;
	} row[] = {
		{ "{}", NULL, NULL },
		{ "{\"tools\":[],\"tool_choice\":\"none\"}", NULL, NULL },
		{ "{\"tools\":[" F("a", "") "]}",
		    "[{\"name\":\"a\","
		    "\"input_schema\":{\"type\":\"object\",\"properties\":{}}}"
		    "]",
		    NULL },
		{ "{\"tools\":[" F("a",
		      ",\"parameters\":{},\"strict\":true,"
		      "\"description\":\"\"") "],\"tool_choice\":\"auto\"}",
		    "[{\"name\":\"a\",\"input_schema\":{\"type\":\"object\","
		    "\"properties\":{}},\"strict\":true}]",
		    "{\"type\":\"auto\"}" },
		{ "{\"tools\":[" F("a",
		      ",\"parameters\":{\"properties\":{}}") "],\"tool_"
							     "choice\":"
							     "\"required\","
							     "\"parallel_tool_"
							     "calls\":false"
							     "}",
		    "[{\"name\":\"a\",\"input_schema\":{\"type\":\"object\","
		    "\"properties\":{}}}]",
		    "{\"type\":\"any\","
		    "\"disable_parallel_tool_use\":true}" },
		{ "{\"tools\":[" F("a",
		      ",\"parameters\":{\"type\":\"object\","
		      "\"x\":1.0}") "],\"tool_choice\":\"none\","
				    "\"parallel_tool_calls\":false}",
		    "[{\"name\":\"a\",\"input_schema\":{\"type\":\"object\","
		    "\"x\":1.0}}]",
		    "{\"type\":\"none\"}" },
		{ "{\"tools\":[" F("a", "") "],\"parallel_tool_calls\":false}",
		    "[{\"name\":\"a\",\"input_schema\":{\"type\":\"object\","
		    "\"properties\":{}}}]",
		    "{\"type\":\"auto\","
		    "\"disable_parallel_tool_use\":true}" },
		{ "{\"tools\":[" F("a", "") "," F(
		      "b", "") "],\"tool_choice\":" F("b", "") "}",
		    "[{\"name\":\"a\",\"input_schema\":{"
		    "\"type\":\"object\",\"properties\":{}}},{\"name\":\"b\","
		    "\"input_schema\":{\"type\":\"object\",\"properties\":{}}}"
		    "]",
		    "{\"type\":\"tool\",\"name\":\"b\"}" },
		{ "{\"tools\":[" F("a", "") "," F("b",
		      "") "],\"tool_choice\":"
			  "{\"type\":\"allowed_tools\",\"allowed_tools\":{"
			  "\"mode\":"
			  "\"required\",\"tools\":[" F("\\u0062", "") "]}}}",
		    "[{\"name\":\"b\",\"input_schema\":{\"type\":\"object\","
		    "\"properties\":{}}}]",
		    "{\"type\":\"any\"}" },
	};
	struct hf_item item[] = {
		wire_message(HF_ROLE_USER, SAID("q")),
		wire_call(1, CALL("a", "{}")),
		wire_call(1, CALL("b", "{}")),
	};
	struct hf_error e = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < hf_countof(row); i++) {
		expect(item, 1, row[i].params, "tools", row[i].tools);
		expect(item, 1, row[i].params, "tool_choice", row[i].choice);
	}
	/* Called before, not offered now. */
	expect(item, 3, "{}", "tools",
	    "[{\"name\":\"f\",\"input_schema\":{"
	    "\"type\":\"object\",\"properties\":{}}}]");
	expect(item, 3, "{}", "tool_choice", "{\"type\":\"none\"}");
	assert_int_equal(wire_build_rc(hf_dialect(HF_DIALECT_ANTHROPIC), item,
			     1, "{\"tools\":[{\"type\":\"custom\"}]}", &e),
	    HF_EINVAL);
	assert_int_equal(
	    wire_build_rc(hf_dialect(HF_DIALECT_ANTHROPIC), item, 1,
		"{\"tools\":[" F("a", "") "],\"tool_choice\":{\"type\":"
					  "\"custom\"}}",
		&e),
	    HF_EINVAL);
}

static void
test_ids(void **state)
{
	const struct hf_item item[] = {
		wire_call(1, CALL("functions.Bash:0", "{}")),
		wire_result(RESULT("functions.Bash:0", "\"r1\"")),
		wire_call(2, CALL("functions.Bash:0", "{}")),
		wire_result(RESULT("functions.Bash:0", "\"r2\"")),
	};
	char *body =
	    wire_build(hf_dialect(HF_DIALECT_ANTHROPIC), item, 4, "{}", false);
	struct hf_json v, a, b, ra, rb;

	(void)state;
	assert_int_equal(hf_json_check(hf_str(body), &v, NULL, NULL), 0);
	v = hf_json_get(v, "messages");
	a = hf_json_path(v, "1", "content", "0", "id", NULL);
	ra = hf_json_path(v, "2", "content", "0", "tool_use_id", NULL);
	b = hf_json_path(v, "3", "content", "0", "id", NULL);
	rb = hf_json_path(v, "4", "content", "0", "tool_use_id", NULL);
	assert_int_equal(a.raw.size, 32);
	assert_true(hf_str_eq(a.raw, ra.raw));
	assert_true(hf_str_eq(b.raw, rb.raw));
	assert_false(hf_str_eq(a.raw, b.raw));
	free(body);
}

static void
test_request(void **state)
{
	static const struct {
		const char *base, *url;
	} row[] = {
		{ "http://h", "http://h/v1/messages" },
		{ "http://h/", "http://h/v1/messages" },
		{ "http://h/v1", "http://h/v1/messages" },
		{ "http://h/v1//", "http://h/v1/messages" },
		{ "http://h/x", "http://h/x/v1/messages" },
	};
	struct hf_item item = wire_message(HF_ROLE_USER, SAID("q"));
	struct hf_payload_input in = { .item = &item,
		.n_item = 1,
		.target = &wire_target,
		.stream = true };
	char *base = wire_provider.base_url;
	struct hf_error e = { 0 };
	size_t i;

	(void)state;
	assert_int_equal(hf_json_check(HF_STR("{}"), &in.params, NULL, &e), 0);
	for (i = 0; i < hf_countof(row); i++) {
		struct hf_http_request rq;

		wire_provider.base_url = (char *)(uintptr_t)row[i].base;
		hf_http_request_init(&rq);
		assert_int_equal(
		    hf_dialect(HF_DIALECT_ANTHROPIC)->build(&in, &rq, &e), 0);
		assert_string_equal(rq.url.data, row[i].url);
		assert_string_equal(rq.headers.data,
		    "Content-Type: application/json\n"
		    "Accept: text/event-stream\n"
		    "Accept-Encoding: identity\n"
		    "x-api-key: sk-test\n"
		    "anthropic-version: 2023-06-01\n");
		hf_http_request_free(&rq);
	}
	wire_provider.base_url = base;
}

/* What a target is kept warm with. */
static void
test_warm(void **state)
{
	const struct hf_dialect *dl = hf_dialect(HF_DIALECT_ANTHROPIC);

	(void)state;
	wire_limit(dl, "{}", "\"max_tokens\":1");
	wire_limit(dl, "{\"max_completion_tokens\":7,\"max_tokens\":8}",
	    "\"max_tokens\":1");
	wire_models(
	    dl, "http://h", "http://h/v1/models", "x-api-key: sk-test\n");
	wire_models(dl, "http://h/v1/", "http://h/v1/models",
	    "anthropic-version: 2023-06-01\n");
}

static void
expect_in(struct hf_payload_input *in, const char *want)
{
	char *body = wire_build_in(hf_dialect(HF_DIALECT_ANTHROPIC), in, "{}");
	struct hf_json v;

	assert_int_equal(hf_json_check(hf_str(body), &v, NULL, NULL), 0);
	v = hf_json_get(v, "messages");
	if (!hf_str_is(v.raw, want))
		fail_msg("\n got %.*s\nwant %s", HF_STR_ARG(v.raw), want);
	free(body);
}

/* The partial answer last, without white space at its end; no "(continue)". */
static void
test_prefill(void **state)
{
	static const struct {
		const char *body, *blocks;
	} row[] = {
		{ SAID("One, two"), T("One, two") },
		{ SAID("One\\u002c \\n"), T("One,") },
		{ SAID("\\u00e9 \\u00a0\\u3000\\t"), T("\u00e9") },
		{ SAID(" a\\u00e0"), T(" a\\u00e0") },
		{ SAID("\\\"\\\\ "), T("\\\"\\\\") },
		/* Only the very end is stripped. */
		{ "{\"content\":[" T("a ") "," T("b ") "," T(" ") "]}",
		    T("a ") "," T("b") },
	};
	struct hf_item item[] = {
		wire_message(HF_ROLE_SYSTEM, SAID("s")),
		wire_message(HF_ROLE_USER, SAID("q ")),
		wire_message(HF_ROLE_ASSISTANT, SAID("x")),
	};
	struct hf_conf_target target = wire_target;
	struct hf_payload_input in = {
		.item = item, .n_item = 3, .target = &target, .prefill = true
	};
	char want[300];

	(void)state;
	target.call.prefill = HF_PREFILL_PLAIN;
	for (size_t i = 0; i < hf_countof(row); i++) {
		item[2].body = hf_str(row[i].body);
		snprintf(want, sizeof(want),
		    "[" USER(T("q ")) "," ASST("%s") "]", row[i].blocks);
		expect_in(&in, want);
	}
	/* Behind a greeting of the same role, and alone. */
	item[1] = wire_message(HF_ROLE_ASSISTANT, SAID("Hello. "));
	item[2].body = HF_STR(SAID("One "));
	expect_in(&in,
	    "[" USER(T("(call connected)")) "," ASST(
		T("Hello. ") "," T("One")) "]");
	in.prefill = false;
	expect_in(&in,
	    "[" USER(T("(call connected)")) "," ASST(
		T("Hello. ") "," T("One ")) "," USER(T("(continue)")) "]");
}

static void
test_prefill_refused(void **state)
{
	const struct hf_dialect *dl = hf_dialect(HF_DIALECT_ANTHROPIC);
	struct hf_item item[] = {
		wire_message(HF_ROLE_USER, SAID("q")),
		wire_message(HF_ROLE_ASSISTANT, SAID("One")),
	};
	struct hf_conf_provider provider = wire_provider;
	struct hf_conf_target target = wire_target;
	struct hf_payload_input in = {
		.item = item, .n_item = 2, .target = &target, .prefill = true
	};

	(void)state;
	provider.dialect = HF_DIALECT_ANTHROPIC;
	target.provider = &provider;
	wire_refused_in(
	    dl, &in, "{}", "prefill: this target cannot go on with an answer");
	for (int way = HF_PREFILL_VLLM; way <= HF_PREFILL_PARTIAL; way++) {
		target.call.prefill = way;
		wire_refused_in(dl, &in, "{}",
		    "prefill: this way of prefill "
		    "is not for dialect anthropic");
	}
	target.call.prefill = HF_PREFILL_PLAIN;
	wire_refused_in(dl, &in,
	    "{\"tools\":[" F("a", "") "],"
				      "\"tool_choice\":\"required\"}",
	    "prefill: not with a tool_choice that forces a call");
	wire_refused_in(dl, &in,
	    "{\"response_format\":{\"type\":"
	    "\"json_object\"}}",
	    "prefill: not with a response_format other than text");
	item[1].body = HF_STR(SAID(" "));
	wire_refused_in(dl, &in, "{}",
	    "prefill: the history does not end with an answer's text");
	in.n_item = 1;
	wire_refused_in(dl, &in, "{}",
	    "prefill: the history does not end with an answer's text");
}

static void
test_instruction(void **state)
{
	const struct hf_item item[] = {
		wire_message(HF_ROLE_USER, SAID("q")),
		wire_message(HF_ROLE_ASSISTANT, SAID("One ")),
	};
	struct hf_payload_input in = { .item = item,
		.n_item = 2,
		.target = &wire_target,
		.instruction = HF_STR("Say \"on\",\nÄ.") };

	(void)state;
	expect_in(&in,
	    "[" USER(T("q")) "," ASST(T("One ")) "," USER(
		T("Say \\\"on\\\",\\nÄ.")) "]");
	in.n_item = 1;
	expect_in(&in, "[" USER(T("q") "," T("Say \\\"on\\\",\\nÄ.")) "]");
	in.n_item = 0;
	expect_in(&in, "[" USER(T("Say \\\"on\\\",\\nÄ.")) "]");
	/* Blank words are refused by the API; they say nothing. */
	in.n_item = 2;
	in.instruction = HF_STR(" ");
	expect_in(&in,
	    "[" USER(T("q")) "," ASST(T("One ")) "," USER(T("(continue)")) "]");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_parallel_tools),
		cmocka_unit_test(test_orphans),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_system),
		cmocka_unit_test(test_empty_and_last),
		cmocka_unit_test(test_params),
		cmocka_unit_test(test_tools),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_warm),
		cmocka_unit_test(test_prefill),
		cmocka_unit_test(test_prefill_refused),
		cmocka_unit_test(test_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
