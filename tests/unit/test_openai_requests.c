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

#define LONG_ID	"call_Q7r2Zk9LmN4pT6vX8yB1cD3e"
#define CALL(id, args) "{\"id\":\"" id "\",\"name\":\"f\",\"arguments\":\"" \
	args "\"}"
#define RESULT(id, c) "{\"id\":\"" id "\",\"content\":" c "}"
#define SAID(c)	"{\"content\":\"" c "\"}"
#define WIRE_CALL(id, args) "{\"id\":\"" id "\",\"type\":\"function\"," \
	"\"function\":{\"name\":\"f\",\"arguments\":\"" args "\"}}"
#define WIRE_RESULT(id, c) "{\"role\":\"tool\",\"tool_call_id\":\"" id \
	"\",\"content\":" c "}"

static void
expect_messages(const struct hf_item *item, unsigned n, const char *want)
{
	wire_expect(hf_dialect(HF_DIALECT_OPENAI), item, n, "{}", "messages",
	    want);
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
		wire_result(RESULT(LONG_ID, "[{\"type\":\"text\",\"text\":"
		    "\"ok\"}]")),
		wire_message(HF_ROLE_ASSISTANT, "{\"content\":\"\","
		    "\"refusal\":\"No.\"}"),
		wire_message(HF_ROLE_SYSTEM, SAID("late")),
		wire_message(HF_ROLE_USER, SAID("bye")),
	};

	(void)state;
	expect_messages(item, hf_countof(item), "["
	    "{\"role\":\"system\",\"content\":\"Be \\u00e9\\/ brief.\"},"
	    "{\"role\":\"developer\",\"content\":\"d\"},"
	    "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
	    "\"a\"},{\"type\":\"text\",\"text\":\"b\"}],\"name\":\"Z\"},"
	    "{\"role\":\"assistant\",\"content\":\"Hm.\",\"tool_calls\":["
	    WIRE_CALL(LONG_ID, "{\\\"id\\\":42}") "]},"
	    WIRE_RESULT(LONG_ID, "[{\"type\":\"text\",\"text\":\"ok\"}]") ","
	    "{\"role\":\"assistant\",\"content\":\"No.\"},"
	    "{\"role\":\"system\",\"content\":\"late\"},"
	    "{\"role\":\"user\",\"content\":\"bye\"}]");
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
	expect_messages(item, hf_countof(item), "["
	    "{\"role\":\"user\",\"content\":\"q\"},"
	    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
	    WIRE_CALL("a", "{}") "," WIRE_CALL("b", "{}") ","
	    WIRE_CALL("c", "{}") "]},"
	    WIRE_RESULT("a", "\"ra\"") ","
	    WIRE_RESULT("b", "\"call interrupted, no result\"") ","
	    WIRE_RESULT("c", "\"rc\"") ","
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
	expect_messages(item, hf_countof(item), "["
	    "{\"role\":\"assistant\",\"content\":\"t1\"},"
	    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
	    WIRE_CALL("a", "{}") "]},"
	    WIRE_RESULT("a", "\"call interrupted, no result\"") ","
	    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
	    WIRE_CALL("b", "{}") "]},"
	    WIRE_RESULT("b", "\"rb\"") "]");
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
		wire_call(3, CALL("0123456789012345678901234567890123456789x",
		    "{}")),
		wire_result(RESULT("0123456789012345678901234567890123456789x",
		    "\"r3\"")),
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
		assert_true(hf_str_eq(id[i].raw,
		    hf_json_get(m[2 * i + 1], "tool_call_id").raw));
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
	assert_true(asprintf(&body, "{\"id\":\"%s\",\"name\":\"f\","
	    "\"arguments\":\"{}\"}", id[1]) > 0);
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
	expect_messages(item, hf_countof(item), "["
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
	    "{\"temperature\":0.10,\"max_tokens\":7,\"seed\":2512292042121000001,"
	    "\"stop\":[],\"top_p\":null,\"n\":3,\"logprobs\":true,"
	    "\"session_id\":\"s\",\"store\":true,\"metadata\":{\"a\":\"b\"},"
	    "\"user\":\"u\",\"response_format\":{\"type\":\"json_object\"},"
	    "\"tools\":[{\"type\":\"function\",\"cache_control\":{},"
	    "\"function\":{\"name\":\"f\",\"description\":\"d\","
	    "\"parameters\":{\"a\":1.0},\"strict\":true,\"x\":1}}],"
	    "\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":"
	    "\"f\",\"y\":2}},\"parallel_tool_calls\":false}", true);

	(void)state;
	assert_string_equal(body, "{\"model\":\"m\",\"messages\":[{\"role\":"
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
	    "true,\"max_completion_tokens\":5}", false);
	assert_string_equal(body, "{\"model\":\"m\",\"messages\":[{\"role\":"
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
	assert_int_equal(wire_build_rc(dl, &item, 1, "{\"tools\":[{\"type\":"
	    "\"custom\",\"custom\":{\"name\":\"x\"}}]}", &e), HF_EINVAL);
	assert_int_equal(wire_build_rc(dl, &item, 1, "{\"tools\":[{\"type\":"
	    "\"function\",\"function\":{}}]}", &e), HF_EINVAL);
	item.body = HF_STR("{\"content\":");
	assert_int_equal(wire_build_rc(dl, &item, 1, "{}", &e), HF_EINVAL);
	item.body = HF_STR("[]");
	assert_int_equal(wire_build_rc(dl, &item, 1, "{}", &e), HF_EINVAL);
	item.body = HF_STR(SAID("q"));
	wire_provider.api_key = (char *)(uintptr_t)"a\r\nX-Evil: 1";
	assert_int_equal(wire_build_rc(dl, &item, 1, "{}", &e), HF_EINVAL);
	wire_provider.api_key = (char *)(uintptr_t)"sk-test";
}

static void
test_request(void **state)
{
	struct hf_item item = wire_message(HF_ROLE_USER, SAID("q"));
	struct hf_payload_input in = { .item = &item, .n_item = 1,
	    .target = &wire_target };
	struct hf_http_request rq;
	struct hf_error e = { 0 };

	(void)state;
	assert_int_equal(hf_json_check(HF_STR("{}"), &in.params, NULL, &e), 0);
	hf_http_request_init(&rq);
	assert_int_equal(hf_dialect(HF_DIALECT_OPENAI)->build(&in, &rq, &e),
	    0);
	assert_string_equal(rq.url.data,
	    "http://127.0.0.1:1/v1/chat/completions");
	assert_string_equal(rq.headers.data,
	    "Content-Type: application/json\n"
	    "Accept: application/json\n"
	    "Accept-Encoding: identity\n"
	    "Authorization: Bearer sk-test\n");
	hf_http_request_free(&rq);
}

/* 20,000 calls that nobody answered and as many results that match none, all
 * with different ids: linear. */
static void
test_many_tools(void **state)
{
	enum { N = 20000 };
	struct hf_item *item = calloc(2 * N, sizeof(*item));
	char (*body)[64] = calloc(2 * N, sizeof(*body));
	int64_t t0 = hf_now_us();
	unsigned i;
	char *out;

	(void)state;
	assert_non_null(item);
	assert_non_null(body);
	for (i = 0; i < N; i++) {
		snprintf(body[i], sizeof(body[i]), CALL("c%u", ""), i);
		item[i] = wire_call(1, body[i]);
		snprintf(body[N + i], sizeof(body[i]), RESULT("r%u", "\"\""),
		    i);
		item[N + i] = wire_result(body[N + i]);
	}
	out = wire_build(hf_dialect(HF_DIALECT_OPENAI), item, 2 * N, "{}",
	    false);
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
		cmocka_unit_test(test_many_tools),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
