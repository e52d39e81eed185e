/*
 * The strict checks of the faithful providers, as tables of what is taken and
 * what is refused with which words; and the bytes of answers.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/dialect.h"

static const struct hf_bench_headers good = {
	.authorization = { "Bearer k", 8 },
	.x_api_key = { "k", 1 },
	.anthropic_version = { "2023-06-01", 10 },
	.content_type = { "application/json; charset=utf-8", 31 },
};

/* NULL: taken; else the message it was refused with. */
static const char *
check(const struct hf_bench_dialect *d, const struct hf_bench_headers *h,
    const char *text, int *status)
{
	static struct hf_refusal r;
	json_t *body = json_loads(text, 0, NULL);
	int rc = d->check(h, body, &r);

	json_decref(body);
	*status = rc == 0 ? 200 : r.status;
	return rc == 0 ? NULL : r.message;
}

struct row {
	const char *body, *says;
};

static void
check_rows(const struct hf_bench_dialect *d, const struct row *t, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int status;
		const char *msg = check(d, &good, t[i].body, &status);

		if (t[i].says == NULL && msg != NULL)
			fail_msg("refused: %s: %s", t[i].body, msg);
		if (t[i].says == NULL)
			continue;
		if (msg == NULL)
			fail_msg("taken: %s", t[i].body);
		assert_int_equal(status, 400);
		if (strstr(msg, t[i].says) == NULL)
			fail_msg("%s: says \"%s\", not \"%s\"", t[i].body, msg,
			    t[i].says);
	}
}

#define O(rest) "{\"model\":\"m\",\"messages\":[" rest "]}"
#define OP(rest) "{\"model\":\"m\",\"messages\":[" USER "]," rest "}"
#define USER "{\"role\":\"user\",\"content\":\"u\"}"
#define CALL(id)                                    \
	"{\"id\":\"" id "\",\"type\":\"function\"," \
	"\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"
#define CALLS(c)                                    \
	"{\"role\":\"assistant\",\"content\":null," \
	"\"tool_calls\":[" c "]}"
#define RESULT(id)                                        \
	"{\"role\":\"tool\",\"tool_call_id\":\"" id "\"," \
	"\"content\":\"r\"}"

static void
openai_requests(void **state)
{
	static const struct row t[] = {
		{ O(USER), NULL },
		{ O("{\"role\":\"system\",\"content\":\"s\"}," USER), NULL },
		{ O("{\"role\":\"developer\",\"content\":[{\"type\":\"text\","
		    "\"text\":\"s\"}]}," USER "," USER),
		    NULL },
		{ O("{\"role\":\"user\",\"content\":\"\"}"), NULL },
		{ O(USER "," CALLS(CALL("a") "," CALL("b")) "," RESULT(
		      "b") "," RESULT("a")),
		    NULL },
		{ OP("\"tools\":[{\"type\":\"function\",\"function\":{"
		     "\"name\":\"f\",\"parameters\":{}}}],\"tool_choice\":"
		     "\"auto\",\"parallel_tool_calls\":false"),
		    NULL },
		{ OP("\"stream\":true,\"stream_options\":{\"include_usage\":"
		     "true},\"user\":\"x\",\"temperature\":0.5,\"stop\":[\"a\"]"
		     ",\"seed\":7,\"max_completion_tokens\":9"),
		    NULL },
		{ "[]", "could not parse" },
		{ "{\"messages\":[" USER "]}", "must provide a model" },
		{ "{\"model\":\"m\"}", "Missing required parameter" },
		{ O(""), "empty array" },
		{ OP("\"session_id\":\"s\""),
		    "Unrecognized request argument "
		    "supplied: session_id" },
		{ OP("\"system\":\"s\""), "Unrecognized" },
		{ O("{\"role\":\"user\",\"content\":\"u\",\"heard\":1}"),
		    "Unknown parameter: 'messages[0].heard'" },
		{ O("{\"role\":\"human\",\"content\":\"u\"}"),
		    "Invalid value: 'human'" },
		{ O("{\"role\":\"user\",\"content\":null}"), "Invalid type" },
		{ O("{\"role\":\"user\",\"content\":[]}"), "empty array" },
		{ O("{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}"),
		    "Invalid type" },
		{ O("{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\""
		    "}]}"),
		    "Invalid value for a content part" },
		{ O("{\"role\":\"assistant\",\"content\":null}"),
		    "expected a string, got null" },
		{ O(USER "," RESULT("a")), "must be a response" },
		{ O(USER "," CALLS(CALL("a"))), "must be followed by" },
		{ O(USER "," CALLS(CALL("a")) "," USER), "must be followed" },
		{ O(USER "," CALLS(CALL("a") "," CALL("b")) "," RESULT(
		      "a") "," USER),
		    "did not have response messages: b" },
		{ O(USER "," CALLS(CALL("a")) "," RESULT("a") "," RESULT("a")),
		    "must be a response" },
		{ O(USER "," CALLS("")), "empty array" },
		{ O(USER "," CALLS(CALL("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
					"aaaaaaaaaaa")) "," RESULT("a")),
		    "string too long" },
		{ O("{\"role\":\"tool\",\"content\":\"r\"}"),
		    "Missing required parameter" },
		{ OP("\"temperature\":2.5"), "'temperature'" },
		{ OP("\"top_p\":-1"), "'top_p'" },
		{ OP("\"max_tokens\":0"), "'max_tokens'" },
		{ OP("\"max_tokens\":5,\"max_completion_tokens\":5"),
		    "at the same time" },
		{ OP("\"stop\":[\"1\",\"2\",\"3\",\"4\",\"5\"]"), "'stop'" },
		{ OP("\"stream_options\":{}"), "only allowed when 'stream'" },
		{ OP("\"tool_choice\":\"auto\""), "only allowed when" },
		{ OP("\"parallel_tool_calls\":true"), "only allowed when" },
		{ OP("\"tools\":[{\"type\":\"function\",\"function\":{"
		     "\"name\":\"a b\"}}]"),
		    "does not match pattern" },
		{ OP("\"tools\":[{\"name\":\"f\",\"input_schema\":{}}]"),
		    "Unknown parameter" },
	};

	(void)state;
	check_rows(&hf_bench_openai, t, hf_countof(t));
}

#define A(msgs) "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[" msgs "]}"
#define AP(rest) \
	"{\"model\":\"m\",\"max_tokens\":9,\"messages\":[" USER "]," rest "}"
#define AT(msgs)                                                    \
	"{\"model\":\"m\",\"max_tokens\":9,\"tools\":["             \
	"{\"name\":\"f\",\"input_schema\":{\"type\":\"object\"}}]," \
	"\"messages\":[" msgs "]}"
#define BOT "{\"role\":\"assistant\",\"content\":\"b\"}"
#define USES(b) "{\"role\":\"assistant\",\"content\":[" b "]}"
#define USE(id)                                     \
	"{\"type\":\"tool_use\",\"id\":\"" id "\"," \
	"\"name\":\"f\",\"input\":{}}"
#define GIVES(b) "{\"role\":\"user\",\"content\":[" b "]}"
#define GIVE(id)                                          \
	"{\"type\":\"tool_result\",\"tool_use_id\":\"" id \
	"\",\"content\":\"r\"}"
#define TEXT(t) "{\"type\":\"text\",\"text\":\"" t "\"}"

static void
anthropic_requests(void **state)
{
	static const struct row t[] = {
		{ A(USER), NULL },
		{ A(USER "," BOT "," USER), NULL },
		{ A(USER "," USER), NULL },
		{ AP("\"system\":\"s\",\"stream\":true,\"temperature\":1,"
		     "\"metadata\":{\"user_id\":\"x\"}"),
		    NULL },
		{ AP("\"system\":[" TEXT("s") "]"), NULL },
		{ AT(USER "," USES(USE("a") "," USE("b")) "," GIVES(
		      GIVE("b") "," GIVE("a") "," TEXT("t"))),
		    NULL },
		/* two user messages in a row are one to the service */
		{ AT(USER "," USES(USE("a") "," USE("b")) "," GIVES(
		      GIVE("a")) "," GIVES(GIVE("b"))),
		    NULL },
		{ "[]", "not valid JSON" },
		{ "{\"max_tokens\":9,\"messages\":[" USER "]}",
		    "model: Field required" },
		{ "{\"model\":\"m\",\"messages\":[" USER "]}",
		    "max_tokens: Field required" },
		{ "{\"model\":\"m\",\"max_tokens\":0,\"messages\":[" USER "]}",
		    "greater than or equal to 1" },
		{ "{\"model\":\"m\",\"max_tokens\":9}",
		    "messages: Field required" },
		{ A(""), "at least one message" },
		{ AP("\"user\":\"x\""), "user: Extra inputs" },
		{ AP("\"stream_options\":{}"), "stream_options: Extra" },
		{ AP("\"metadata\":{\"session\":\"x\"}"),
		    "metadata.session: Extra" },
		{ AP("\"temperature\":1.5"), "range: 0..1" },
		{ AP("\"temperature\":1,\"top_p\":1"), "cannot both" },
		{ AP("\"stop_sequences\":[\" \"]"), "non-whitespace" },
		{ AP("\"system\":[" TEXT("") "]"), "must be non-empty" },
		{ AP("\"tool_choice\":{\"type\":\"auto\"}"),
		    "while providing tools" },
		{ AP("\"tool_choice\":\"auto\""), "tool_choice" },
		{ AP("\"tools\":[{\"name\":\"f\"}]"), "input_schema" },
		{ AP("\"tools\":[{\"name\":\"f\",\"input_schema\":{}}]"),
		    "should be 'object'" },
		{ A("{\"role\":\"system\",\"content\":\"s\"}," USER),
		    "Unexpected role \"system\"" },
		{ A(BOT "," USER), "first message must use" },
		{ A(USER "," BOT), "prefill" },
		{ A("{\"role\":\"user\",\"content\":\"u\",\"name\":\"n\"}"),
		    "name: Extra inputs" },
		{ A("{\"role\":\"user\",\"content\":\"\"}"),
		    "non-empty content" },
		{ A("{\"role\":\"user\",\"content\":[]}"),
		    "non-empty content" },
		{ A("{\"role\":\"user\",\"content\":null}"), "valid list" },
		{ A(GIVES(TEXT(""))), "must be non-empty" },
		{ A(GIVES(TEXT(" \\n"))), "non-whitespace" },
		{ AT(USER "," USES(USE("a"))), "prefill" },
		{ AT(USER "," USES(USE("a")) "," USER),
		    "without `tool_result` blocks immediately after: a" },
		{ AT(USER "," USES(USE("a") "," USE("b")) "," GIVES(GIVE("a"))),
		    "immediately after: b" },
		{ AT(USER
		      "," USES(USE("a")) "," GIVES(TEXT("t") "," GIVE("a"))),
		    "immediately after: a" },
		{ AT(USER "," USES(USE("a") "," USE("b")) "," GIVES(
		      GIVE("a") "," TEXT("t") "," GIVE("b"))),
		    "immediately after: b" },
		{ AT(GIVES(GIVE("a"))), "unexpected `tool_use_id`" },
		{ AT(USER
		      "," USES(USE("a")) "," GIVES(GIVE("a") "," GIVE("c"))),
		    "unexpected `tool_use_id`" },
		{ A(USER "," USES(USE("a")) "," GIVES(GIVE("a"))),
		    "must define tools" },
		{ AT(USER "," USES(USE("a.b")) "," GIVES(GIVE("a.b"))),
		    "should match pattern" },
		{ A(USER "," USES("{\"type\":\"thinking\",\"thinking\":\"t\","
				  "\"signature\":\"s\"}") "," USER),
		    "Invalid `signature`" },
		{ A(GIVES(USE("a"))), "Input tag 'tool_use'" },
	};

	(void)state;
	check_rows(&hf_bench_anthropic, t, hf_countof(t));
}

static void
headers(void **state)
{
	static const char *const ok_o = O(USER), *const ok_a = A(USER);
	struct hf_bench_headers h = good;
	int status;

	(void)state;
	h.authorization = HF_STR_NONE;
	check(&hf_bench_openai, &h, ok_o, &status);
	assert_int_equal(status, 401);
	check(&hf_bench_anthropic, &h, ok_a, &status);
	assert_int_equal(status, 200);
	h.authorization = HF_STR("Basic abcdefg");
	check(&hf_bench_openai, &h, ok_o, &status);
	assert_int_equal(status, 401);
	h.x_api_key = HF_STR_NONE;
	check(&hf_bench_anthropic, &h, ok_a, &status);
	assert_int_equal(status, 401);
	h.authorization = HF_STR("Bearer k");
	check(&hf_bench_anthropic, &h, ok_a, &status);
	assert_int_equal(status, 200);
	h.anthropic_version = HF_STR_NONE;
	check(&hf_bench_anthropic, &h, ok_a, &status);
	assert_int_equal(status, 400);
	h = good;
	h.content_type = HF_STR("text/plain");
	check(&hf_bench_openai, &h, ok_o, &status);
	assert_int_equal(status, 400);
	check(&hf_bench_anthropic, &h, ok_a, &status);
	assert_int_equal(status, 400);
}

/* The same conversation in both dialects has the same view. */
static void
views(void **state)
{
	json_t *o = json_loads(
	    O("{\"role\":\"system\",\"content\":\"s\"}," USER
	      "," CALLS(CALL("a") "," CALL("b")) "," RESULT("b") "," RESULT(
		  "a") ",{\"role\":\"user\",\"content\":"
		       "[" TEXT("x") "," TEXT("y") "]}"),
	    0, NULL);
	json_t *a = json_loads(
	    "{\"system\":[" TEXT("s") "],\"messages\":[" USER
				      "," USES(USE("a") "," USE("b")) "," GIVES(
					  GIVE("b") "," GIVE("a") "," TEXT(
					      "x") "," TEXT("y")) "]}",
	    0, NULL);
	json_t *vo, *va;

	(void)state;
	assert_non_null(o);
	assert_non_null(a);
	vo = hf_bench_openai.view(o);
	va = hf_bench_anthropic.view(a);
	assert_int_equal(json_array_size(vo), 6);
	assert_true(json_equal(vo, va));
	json_decref(o);
	json_decref(a);
	json_decref(vo);
	json_decref(va);
}

/* Texts of all data lines of a stream, joined by the pointer 'path'. */
static void
collect(struct hf_buf *out, struct hf_str sse, const char *a, const char *b)
{
	const char *p = sse.p;

	while ((p = strstr(p, "data: ")) != NULL) {
		const char *end = strchr(p, '\n');
		json_t *o = json_loadb(p + 6, (size_t)(end - p) - 6, 0, NULL);
		json_t *d = json_array_get(json_object_get(o, "choices"), 0);
		json_t *t;

		if (d == NULL)
			d = o;
		t = json_object_get(json_object_get(d, a), b);
		if (json_is_string(t))
			hf_buf_putstr(out, hf_json_str(t));
		json_decref(o);
		p = end;
	}
}

static void
streams(void **state)
{
	static const struct {
		const struct hf_bench_dialect *d;
		const char *a, *b, *end;
	} t[] = {
		{ &hf_bench_openai, "delta", "content", "data: [DONE]\n\n" },
		{ &hf_bench_anthropic, "delta", "text",
		    "data: {\"type\":\"message_stop\"}\n\n" },
	};
	char text[] = "Two words, \xc3\xa9 and \"quotes\".";
	struct hf_answer ans = { .text = text };
	struct hf_reply r = { .id_tail = "1", .model = "m", .answer = &ans };

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		struct hf_stream s;
		struct hf_buf all, got, plain;
		json_t *o;

		hf_stream_init(&s);
		hf_buf_init(&all, HF_BUF_NOCAP);
		hf_buf_init(&got, HF_BUF_NOCAP);
		hf_buf_init(&plain, HF_BUF_NOCAP);
		t[i].d->stream(&s, &r);
		assert_int_equal(s.n_piece, 5);
		hf_buf_putstr(&all, hf_buf_str(&s.head));
		assert_null(strstr(all.data, "words"));
		for (unsigned k = 0; k < s.n_piece; k++)
			hf_buf_putstr(&all, hf_buf_str(&s.piece[k].bytes));
		hf_buf_putstr(&all, hf_buf_str(&s.finish));
		hf_buf_putstr(&all, hf_buf_str(&s.tail));
		collect(&got, hf_buf_str(&all), t[i].a, t[i].b);
		assert_string_equal(got.data, text);
		assert_string_equal(
		    all.data + all.size - strlen(t[i].end), t[i].end);
		t[i].d->plain(&plain, &r);
		o = json_loadb(plain.data, plain.size, 0, NULL);
		assert_non_null(o);
		json_decref(o);
		hf_buf_free(&all);
		hf_buf_free(&got);
		hf_buf_free(&plain);
		hf_stream_free(&s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(openai_requests),
		cmocka_unit_test(anthropic_requests),
		cmocka_unit_test(headers),
		cmocka_unit_test(views),
		cmocka_unit_test(streams),
	};

	return cmocka_run_group_tests_name("bench dialect", tests, NULL, NULL);
}
