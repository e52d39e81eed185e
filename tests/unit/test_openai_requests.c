/*
 * The openai dialect going out: requests from items and parameters.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tests/unit/wire_util.h"

#define LONG_ID "call_Q7r2Zk9LmN4pT6vX8yB1cD3e"
#define CALL(id, args) \
	"{\"id\":\"" id "\",\"name\":\"f\",\"arguments\":\"" args "\"}"
#define RESULT(id, c) "{\"id\":\"" id "\",\"content\":" c "}"
#define SAID(c) "{\"content\":\"" c "\"}"
#define WIRE_CALL(id, args)                         \
	"{\"id\":\"" id "\",\"type\":\"function\"," \
	"\"function\":{\"name\":\"f\",\"arguments\":\"" args "\"}}"
#define WIRE_RESULT(id, c) \
	"{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":" c "}"

static void
expect_messages(const struct hf_item *item, unsigned n, const char *want)
{
	wire_expect(
	    hf_dialect(HF_DIALECT_OPENAI), item, n, "{}", "messages", want);
}

static void
test_messages(void **state)
{
	const struct hf_item item[] = {
		wire_message(HF_ROLE_SYSTEM, SAID("Be \\u00e9\\/ brief.")),
		wire_message(HF_ROLE_DEVELOPER, SAID("d")),
		wire_message(HF_ROLE_USER,
		    "{\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
		    "{\"type\":\"text\",\"text\":\"\"},{\"type\":\"text\","
		    "\"text\":\"b\",\"cache_control\":{}}],\"name\":\"Z\","
		    "\"x\":1}"),
		wire_message(HF_ROLE_ASSISTANT, SAID("Hm.")),
		wire_call(1, CALL(LONG_ID, "{\\\"id\\\":42}")),
		wire_result(RESULT(LONG_ID,
		    "[{\"type\":\"text\",\"text\":"
		    "\"ok\"}]")),
		wire_message(HF_ROLE_ASSISTANT,
		    "{\"content\":\"\","
		    "\"refusal\":\"No.\"}"),
		wire_message(HF_ROLE_SYSTEM, SAID("late")),
		wire_message(HF_ROLE_USER, SAID("bye")),
	};

	(void)state;
	expect_messages(item, hf_countof(item),
	    "["
	    "{\"role\":\"system\",\"content\":\"Be \\u00e9\\/ brief.\"},"
	    "{\"role\":\"developer\",\"content\":\"d\"},"
	    "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
	    "\"a\"},{\"type\":\"text\",\"text\":\"b\"}],\"name\":\"Z\"},"
	    "{\"role\":\"assistant\",\"content\":\"Hm.\",\"tool_calls\":"
	    "[" WIRE_CALL(LONG_ID, "{\\\"id\\\":42}") "]}," WIRE_RESULT(LONG_ID,
		"[{\"type\":\"text\",\"text\":\"ok\"}]") ","
							 "{\"role\":"
							 "\"assistant\","
							 "\"content\":\"No.\"},"
							 "{\"role\":\"system\","
							 "\"content\":\"late\"}"
							 ","
							 "{\"role\":\"user\","
							 "\"content\":\"bye\"}"
							 "]");
}

static void
test_tool_order(void **state)
{
	/* Results in another order, one late, one orphan, one missing, one
	 * twice; an empty message; calls without text. */
	const struct hf_item item[] = {
		wire_message(HF_ROLE_USER, SAID("q")),
		wire_call(1, CALL("a", "")),
		wire_call(1, CALL("b", "{}")),
		wire_call(1, CALL("c", "{}")),
		wire_result(RESULT("c", "\"rc\"")),
		wire_result(RESULT("a", "\"ra\"")),
		wire_result(RESULT("a", "\"ra again\"")),
		wire_result(RESULT("zz", "\"orphan\"")),
		wire_message(HF_ROLE_ASSISTANT, SAID("")),
		wire_message(HF_ROLE_USER, SAID("q2")),
	};

	(void)state;
	expect_messages(item, hf_countof(item),
	    "["
	    "{\"role\":\"user\",\"content\":\"q\"},"
	    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":"
	    "[" WIRE_CALL("a", "{}") "," WIRE_CALL("b", "{}") "," WIRE_CALL(
		"c", "{}") "]}," WIRE_RESULT("a", "\"ra\"") "," WIRE_RESULT("b",
		"\"call interrupted, no result\"") "," WIRE_RESULT("c",
		"\"rc\"") ","
			  "{\"role\":\"user\",\"content\":\"q2\"}]");
}

static void
test_answers_apart(void **state)
{
	/* Calls of two answers make two messages; text of another answer is
	 * not joined with them. */
	const struct hf_item item[] = {
		wire_message(HF_ROLE_ASSISTANT, SAID("t1")),
		wire_call(2, CALL("a", "{}")),
		wire_call(3, CALL("b", "{}")),
		wire_result(RESULT("b", "\"rb\"")),
	};

	(void)state;
	expect_messages(item, hf_countof(item),
	    "["
	    "{\"role\":\"assistant\",\"content\":\"t1\"},"
	    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":"
	    "[" WIRE_CALL("a", "{}") "]}," WIRE_RESULT("a",
		"\"call interrupted, no result\"") ","
						   "{\"role\":\"assistant\","
						   "\"content\":null,\"tool_"
						   "calls\":[" WIRE_CALL("b",
						       "{}") "]}," WIRE_RESULT("b",
						       "\"rb\"") "]");
}

static void
test_ids(void **state)
{
	/* The same id twice, an id that is too long, one of odd characters:
	 * changed, alike for call and result, the same every time. */
	const struct hf_item item[] = {
		wire_call(1, CALL("call_0", "{}")),
		wire_result(RESULT("call_0", "\"r1\"")),
		wire_call(2, CALL("call_0", "{}")),
		wire_result(RESULT("call_0", "\"r2\"")),
		wire_call(
		    3, CALL("0123456789012345678901234567890123456789x", "{}")),
		wire_result(RESULT(
		    "0123456789012345678901234567890123456789x", "\"r3\"")),
		wire_call(4, CALL("functions.Bash:0", "{}")),
		wire_result(RESULT("functions.Bash:0", "\"r4\"")),
	};
	const struct hf_dialect *dl = hf_dialect(HF_DIALECT_OPENAI);
	char *one = wire_build(dl, item, hf_countof(item), "{}", false);
	char *two = wire_build(dl, item, hf_countof(item), "{}", false);
	struct hf_json v, m[8], id[4];
	size_t pos = 0, i, k;

	(void)state;
	assert_string_equal(one, two);
	assert_int_equal(hf_json_check(hf_str(one), &v, NULL, NULL), 0);
	v = hf_json_get(v, "messages");
	for (i = 0; i < 8; i++)
		assert_true(hf_json_next_element(v, &pos, &m[i]));
	for (i = 0; i < 4; i++) {
		id[i] = hf_json_path(m[2 * i], "tool_calls", "0", "id", NULL);
		assert_true(hf_str_eq(
		    id[i].raw, hf_json_get(m[2 * i + 1], "tool_call_id").raw));
		assert_int_equal(id[i].raw.size, i == 0 ? 8 : 32);
		for (k = 0; k < i; k++)
			assert_false(hf_str_eq(id[i].raw, id[k].raw));
	}
	assert_true(hf_json_string_is(id[0], "call_0"));
	free(one);
	free(two);
}

/* The id at 'i' in the calls of the first message; caller frees. */
static char *
call_id(const char *built, unsigned i)
{
	char at[12];
	struct hf_json v;

	snprintf(at, sizeof(at), "%u", i);
	assert_int_equal(hf_json_check(hf_str(built), &v, NULL, NULL), 0);
	v = hf_json_path(v, "messages", "0", "tool_calls", at, "id", NULL);
	assert_int_equal(v.type, HF_JSON_STRING);
	return strndup(v.raw.p + 1, v.raw.size - 2);
}

/* Whoever learned what replaces an id cannot make two calls of one id. */
static void
test_ids_like_replacements(void **state)
{
	struct hf_item item[] = {
		wire_call(1, CALL("a", "{}")),
		wire_call(1, CALL("a", "{}")),
		wire_call(1, CALL("b", "{}")),
	};
	const struct hf_dialect *dl = hf_dialect(HF_DIALECT_OPENAI);
	char *built = wire_build(dl, item, 3, "{}", false), *body, *id[3];

	(void)state;
	id[1] = call_id(built, 1);
	free(built);
	assert_int_equal(strlen(id[1]), 30);
	assert_true(asprintf(&body,
			"{\"id\":\"%s\",\"name\":\"f\","
			"\"arguments\":\"{}\"}",
			id[1]) > 0);
	item[2].body = hf_str(body);
	free(id[1]);
	built = wire_build(dl, item, 3, "{}", false);
	for (unsigned i = 0; i < 3; i++)
		id[i] = call_id(built, i);
	assert_string_equal(id[0], "a");
	assert_string_not_equal(id[1], id[2]);
	for (unsigned i = 0; i < 3; i++)
		free(id[i]);
	free(body);
	free(built);
}

static void
test_heard(void **state)
{
	struct hf_item item[] = {
		wire_message(HF_ROLE_USER, SAID("q")),
		wire_message(HF_ROLE_ASSISTANT, SAID("long answer")),
		wire_message(HF_ROLE_ASSISTANT, SAID("never heard")),
		wire_message(HF_ROLE_USER, SAID("go on")),
	};

	(void)state;
	item[1].has_heard = item[2].has_heard = true;
	item[1].heard = HF_STR(SAID("long"));
	expect_messages(item, hf_countof(item),
	    "["
	    "{\"role\":\"user\",\"content\":\"q\"},"
	    "{\"role\":\"assistant\",\"content\":\"long\"},"
	    "{\"role\":\"user\",\"content\":\"go on\"}]");
}

static void
test_params(void **state)
{
	const struct hf_item item[] = {
		wire_message(HF_ROLE_USER, SAID("q")),
	};
	char *body = wire_build(hf_dialect(HF_DIALECT_OPENAI), item, 1,
	    "{\"temperature\":0.10,\"max_tokens\":7,\"seed\":"
	    "2512292042121000001,"
	    "\"stop\":[],\"top_p\":null,\"n\":3,\"logprobs\":true,"
	    "\"session_id\":\"s\",\"store\":true,\"metadata\":{\"a\":\"b\"},"
	    "\"user\":\"u\",\"response_format\":{\"type\":\"json_object\"},"
	    "\"tools\":[{\"type\":\"function\",\"cache_control\":{},"
	    "\"function\":{\"name\":\"f\",\"description\":\"d\","
	    "\"parameters\":{\"a\":1.0},\"strict\":true,\"x\":1}}],"
	    "\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":"
	    "\"f\",\"y\":2}},\"parallel_tool_calls\":false}",
	    true);

	(void)state;
	assert_string_equal(body,
	    "{\"model\":\"m\",\"messages\":[{\"role\":"
	    "\"user\",\"content\":\"q\"}],\"max_tokens\":7,"
	    "\"temperature\":0.10,"
	    "\"response_format\":{\"type\":\"json_object\"},"
	    "\"seed\":2512292042121000001,\"user\":\"u\","
	    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","
	    "\"description\":\"d\",\"parameters\":{\"a\":1.0},"
	    "\"strict\":true}}],\"tool_choice\":{\"type\":\"function\","
	    "\"function\":{\"name\":\"f\"}},\"parallel_tool_calls\":false,"
	    "\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
	free(body);
	/* Choices mean nothing without tools. */
	body = wire_build(hf_dialect(HF_DIALECT_OPENAI), item, 1,
	    "{\"tools\":[],\"tool_choice\":\"auto\",\"parallel_tool_calls\":"
	    "true,\"max_completion_tokens\":5}",
	    false);
	assert_string_equal(body,
	    "{\"model\":\"m\",\"messages\":[{\"role\":"
	    "\"user\",\"content\":\"q\"}],\"max_completion_tokens\":5}");
	free(body);
}

static void
test_refused(void **state)
{
	const struct hf_dialect *dl = hf_dialect(HF_DIALECT_OPENAI);
	struct hf_item item = wire_message(HF_ROLE_USER, SAID("q"));
	struct hf_error e = { 0 };

	(void)state;
	assert_int_equal(wire_build_rc(dl, &item, 1,
			     "{\"tools\":[{\"type\":"
			     "\"custom\",\"custom\":{\"name\":\"x\"}}]}",
			     &e),
	    HF_EINVAL);
	assert_int_equal(wire_build_rc(dl, &item, 1,
			     "{\"tools\":[{\"type\":"
			     "\"function\",\"function\":{}}]}",
			     &e),
	    HF_EINVAL);
	item.body = HF_STR("{\"content\":");
	assert_int_equal(wire_build_rc(dl, &item, 1, "{}", &e), HF_EINVAL);
	item.body = HF_STR("[]");
	assert_int_equal(wire_build_rc(dl, &item, 1, "{}", &e), HF_EINVAL);
	item.body = HF_STR(SAID("q"));
	wire_provider.api_key = (char *)(uintptr_t) "a\r\nX-Evil: 1";
	assert_int_equal(wire_build_rc(dl, &item, 1, "{}", &e), HF_EINVAL);
	wire_provider.api_key = (char *)(uintptr_t) "sk-test";
}

static void
test_request(void **state)
{
	struct hf_item item = wire_message(HF_ROLE_USER, SAID("q"));
	struct hf_payload_input in = {
		.item = &item, .n_item = 1, .target = &wire_target
	};
	struct hf_http_request rq;
	struct hf_error e = { 0 };

	(void)state;
	assert_int_equal(hf_json_check(HF_STR("{}"), &in.params, NULL, &e), 0);
	hf_http_request_init(&rq);
	assert_int_equal(hf_dialect(HF_DIALECT_OPENAI)->build(&in, &rq, &e), 0);
	assert_string_equal(
	    rq.url.data, "http://127.0.0.1:1/v1/chat/completions");
	assert_string_equal(rq.headers.data,
	    "Content-Type: application/json\n"
	    "Accept: application/json\n"
	    "Accept-Encoding: identity\n"
	    "Authorization: Bearer sk-test\n");
	hf_http_request_free(&rq);
}

/* What a target is kept warm with. */
static void
test_warm(void **state)
{
	const struct hf_dialect *dl = hf_dialect(HF_DIALECT_OPENAI);

	(void)state;
	wire_limit(dl, "{}", "\"max_tokens\":1");
	wire_limit(dl, "{\"max_tokens\":7}", "\"max_tokens\":1");
	wire_limit(
	    dl, "{\"max_completion_tokens\":7}", "\"max_completion_tokens\":1");
	wire_models(dl, "http://h/v1/", "http://h/v1/models",
	    "Authorization: Bearer sk-test\n");
}

#define ASKED                                                     \
	"{\"model\":\"m\",\"messages\":[{\"role\":\"user\","      \
	"\"content\":\"q\"},{\"role\":\"assistant\",\"content\":" \
	"\"One, two \""
#define TOOL                                              \
	"\"tools\":[{\"type\":\"function\",\"function\":" \
	"{\"name\":\"f\"}}]"

/* The partial answer last, asked for in each way. */
static void
test_prefill(void **state)
{
	static const struct {
		int way;
		const char *body;
	} row[] = {
		{ HF_PREFILL_PLAIN, ASKED "}],\"seed\":1}" },
		{ HF_PREFILL_VLLM,
		    ASKED "}],\"continue_final_message\":true,"
			  "\"add_generation_prompt\":false,\"seed\":1}" },
		{ HF_PREFILL_MISTRAL,
		    ASKED ",\"prefix\":true}],"
			  "\"seed\":1}" },
		{ HF_PREFILL_DEEPSEEK,
		    ASKED ",\"prefix\":true}],"
			  "\"seed\":1}" },
		{ HF_PREFILL_PARTIAL,
		    ASKED ",\"partial\":true}],"
			  "\"seed\":1}" },
	};
	const struct hf_item item[] = {
		wire_message(HF_ROLE_USER, SAID("q")),
		wire_message(HF_ROLE_ASSISTANT, SAID("One, two ")),
	};
	const struct hf_dialect *dl = hf_dialect(HF_DIALECT_OPENAI);
	struct hf_conf_target target = wire_target;
	struct hf_payload_input in = {
		.item = item, .n_item = 2, .target = &target, .prefill = true
	};
	char *body, *without;

	(void)state;
	for (size_t i = 0; i < hf_countof(row); i++) {
		target.call.prefill = row[i].way;
		in.prefill = true;
		body = wire_build_in(dl, &in, "{\"seed\":1}");
		assert_string_equal(body, row[i].body);
		free(body);
		/* The way changes nothing where it is not asked for. */
		in.prefill = false;
		without = wire_build_in(dl, &in, "{\"seed\":1}");
		assert_string_equal(without, row[0].body);
		free(without);
	}
	/* Tools may be on offer. */
	in.prefill = true;
	body = wire_build_in(dl, &in,
	    "{" TOOL ",\"tool_choice\":\"auto\","
	    "\"response_format\":{\"type\":\"text\"}}");
	assert_non_null(strstr(body, ASKED ",\"partial\":true}]"));
	free(body);
}

#define NO_ANSWER "prefill: the history does not end with an answer's text"
#define FORCED "prefill: not with a tool_choice that forces a call"
#define FORMAT "prefill: not with a response_format other than text"

static void
test_prefill_refused(void **state)
{
	static const struct {
		const char *params, *why;
	} row[] = {
		{ "{" TOOL ",\"tool_choice\":\"required\"}", FORCED },
		{ "{" TOOL ",\"tool_choice\":{\"type\":\"function\","
		  "\"function\":{\"name\":\"f\"}}}",
		    FORCED },
		{ "{" TOOL ",\"tool_choice\":{\"type\":\"allowed_tools\","
		  "\"allowed_tools\":{\"mode\":\"required\"}}}",
		    FORCED },
		{ "{\"response_format\":{\"type\":\"json_object\"}}", FORMAT },
		{ "{\"response_format\":{\"type\":\"json_schema\"}}", FORMAT },
		{ "{" TOOL ",\"tool_choice\":{\"type\":\"allowed_tools\","
		  "\"allowed_tools\":{\"mode\":\"auto\"}}}",
		    NULL },
		{ "{\"tool_choice\":\"required\",\"response_format\":null}",
		    NULL },
	};
	static const char *const last[] = { SAID(""), SAID(" \\n"),
		"{\"content\":null}", "{\"content\":\"\",\"refusal\":\"No\"}",
		"{\"content\":\"a\",\"refusal\":\"No\"}" };
	struct hf_item item[] = {
		wire_message(HF_ROLE_USER, SAID("q")),
		wire_message(HF_ROLE_ASSISTANT, SAID("One")),
		wire_call(1, CALL("a", "{}")),
	};
	const struct hf_dialect *dl = hf_dialect(HF_DIALECT_OPENAI);
	struct hf_conf_target target = wire_target;
	struct hf_payload_input in = {
		.item = item, .n_item = 2, .target = &target, .prefill = true
	};
	const char *why;

	(void)state;
	wire_refused_in(
	    dl, &in, "{}", "prefill: this target cannot go on with an answer");
	target.call.prefill = HF_PREFILL_VLLM;
	for (size_t i = 0; i < hf_countof(row); i++) {
		if (row[i].why != NULL)
			wire_refused_in(dl, &in, row[i].params, row[i].why);
		else
			free(wire_build_in(dl, &in, row[i].params));
		why = hf_prefill_refusal(&target, in.params);
		assert_true((why == NULL) == (row[i].why == NULL));
	}
	in.n_item = 0;
	wire_refused_in(dl, &in, "{}", NO_ANSWER);
	in.n_item = 1;
	wire_refused_in(dl, &in, "{}", NO_ANSWER);
	in.n_item = 3;
	wire_refused_in(dl, &in, "{}", NO_ANSWER);
	in.n_item = 2;
	for (size_t i = 0; i < hf_countof(last); i++) {
		item[1].body = hf_str(last[i]);
		wire_refused_in(dl, &in, "{}", NO_ANSWER);
	}
	item[1].body = HF_STR(SAID("One"));
	in.instruction = HF_STR("go on");
	wire_refused_in(dl, &in, "{}",
	    "prefill: not with an instruction behind the answer");
}

/* The words behind the history, as one user message more. */
static void
test_instruction(void **state)
{
	struct hf_item item[] = {
		wire_message(HF_ROLE_USER, SAID("q")),
		wire_message(HF_ROLE_ASSISTANT, SAID("One")),
	};
	const struct hf_dialect *dl = hf_dialect(HF_DIALECT_OPENAI);
	struct hf_payload_input in = { .item = item,
		.n_item = 2,
		.target = &wire_target,
		.instruction = HF_STR("Say \"on\",\nÄ.") };
	char *body;

	(void)state;
	body = wire_build_in(dl, &in, "{\"seed\":1}");
	assert_string_equal(body,
	    "{\"model\":\"m\",\"messages\":["
	    "{\"role\":\"user\",\"content\":\"q\"},"
	    "{\"role\":\"assistant\",\"content\":\"One\"},"
	    "{\"role\":\"user\",\"content\":\"Say \\\"on\\\",\\nÄ.\"}],"
	    "\"seed\":1}");
	free(body);
	/* No empty answer stands before it. */
	item[1].body = HF_STR(SAID(""));
	body = wire_build_in(dl, &in, "{}");
	assert_string_equal(body,
	    "{\"model\":\"m\",\"messages\":["
	    "{\"role\":\"user\",\"content\":\"q\"},"
	    "{\"role\":\"user\",\"content\":\"Say \\\"on\\\",\\nÄ.\"}]}");
	free(body);
	in.n_item = 0;
	body = wire_build_in(dl, &in, "{}");
	assert_string_equal(body,
	    "{\"model\":\"m\",\"messages\":["
	    "{\"role\":\"user\",\"content\":\"Say \\\"on\\\",\\nÄ.\"}]}");
	free(body);
}

/* 20,000 calls that nobody answered and as many results that match none, all
 * with different ids: linear. */
static void
test_many_tools(void **state)
{
	enum { N = 20000 };
	struct hf_item *item = calloc(2 * N, sizeof(*item));
	char(*body)[64] = calloc(2 * N, sizeof(*body));
	int64_t t0 = hf_now_us();
	unsigned i;
	char *out;

	(void)state;
	assert_non_null(item);
	assert_non_null(body);
	for (i = 0; i < N; i++) {
		snprintf(body[i], sizeof(body[i]), CALL("c%u", ""), i);
		item[i] = wire_call(1, body[i]);
		snprintf(
		    body[N + i], sizeof(body[i]), RESULT("r%u", "\"\""), i);
		item[N + i] = wire_result(body[N + i]);
	}
	out =
	    wire_build(hf_dialect(HF_DIALECT_OPENAI), item, 2 * N, "{}", false);
	assert_null(strstr(out, "\"r1\""));
	assert_non_null(strstr(out, "\"c19999\""));
	assert_true(hf_now_us() - t0 < 10 * 1000000);
	free(out);
	free(body);
	free(item);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_tool_order),
		cmocka_unit_test(test_answers_apart),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_ids_like_replacements),
		cmocka_unit_test(test_heard),
		cmocka_unit_test(test_params),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_warm),
		cmocka_unit_test(test_prefill),
		cmocka_unit_test(test_prefill_refused),
		cmocka_unit_test(test_instruction),
		cmocka_unit_test(test_many_tools),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
