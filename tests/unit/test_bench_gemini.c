/*
 * The faithful provider's gemini dialect: what it takes and what it refuses
 * with which words, what it makes of contents, and the bytes of its answers.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/gemini.h"
#include "bench/resume.h"

#define PATH(model) "/v1beta/models/" model ":generateContent"

static struct hf_bench_headers
headers_for(const char *path)
{
	return (struct hf_bench_headers){
		.x_goog_api_key = HF_STR("k"),
		.content_type = HF_STR("application/json"),
		.path = hf_str(path),
	};
}

/* NULL: taken; else the message it was refused with. */
static const char *
check(const struct hf_bench_headers *h, const char *text, int *status)
{
	static struct hf_refusal r;
	json_t *body = json_loads(text, 0, NULL);
	int rc = hf_bench_gemini.check(h, body, &r);

	json_decref(body);
	*status = rc == 0 ? 200 : r.status;
	return rc == 0 ? NULL : r.message;
}

struct row {
	const char *body, *says;
};

static void
check_rows(const char *path, const struct row *t, size_t n)
{
	struct hf_bench_headers h = headers_for(path);

	for (size_t i = 0; i < n; i++) {
		int status;
		const char *msg = check(&h, t[i].body, &status);

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

#define C(contents) "{\"contents\":[" contents "]}"
#define CP(rest) "{\"contents\":[" USER "]," rest "}"
#define OF(role, parts) "{\"role\":\"" role "\",\"parts\":[" parts "]}"
#define TEXT(t) "{\"text\":\"" t "\"}"
#define USER OF("user", TEXT("u"))
#define MODEL OF("model", TEXT("m"))
#define CALL(name) \
	"{\"functionCall\":{\"name\":\"" name "\",\"args\":{\"a\":1}}}"
#define CALL_ID(id, name)                                             \
	"{\"functionCall\":{\"id\":\"" id "\",\"name\":\"" name "\"," \
	"\"args\":{}}}"
#define GIVE(name)                                      \
	"{\"functionResponse\":{\"name\":\"" name "\"," \
	"\"response\":{\"output\":\"r\"}}}"
#define GIVE_ID(id, name)                                                 \
	"{\"functionResponse\":{\"id\":\"" id "\",\"name\":\"" name "\"," \
	"\"response\":{\"output\":\"" id "\"}}}"
#define TOOL(f) "\"tools\":[{\"functionDeclarations\":[" f "]}]"
#define F(rest) "{\"name\":\"f\"" rest "}"

static void
turns(void **state)
{
	static const struct row t[] = {
		{ C(USER), NULL },
		{ C("{\"parts\":[" TEXT("u") "]}"), NULL },
		{ C(USER "," MODEL "," USER), NULL },
		{ C(USER "," OF("model", CALL("f")) "," OF("user", GIVE("f"))),
		    NULL },
		{ C(USER "," OF("model", TEXT("m") "," CALL("f")) "," OF(
		      "user", GIVE("f")) "," MODEL "," USER),
		    NULL },
		{ C(USER "," OF("model", CALL("f")) "," OF(
		      "user", GIVE("f")) "," USER),
		    NULL },
		{ C(USER "," OF("model", CALL("f") "," CALL("g")) "," OF(
		      "user", GIVE("f") "," GIVE("g"))),
		    NULL },
		{ C(USER "," OF("model",
		      CALL_ID("1", "f") "," CALL_ID("2", "g")) "," OF("user",
		      GIVE_ID("2", "g") "," GIVE_ID("1", "f"))),
		    NULL },
		{ "[]", "Expected an object" },
		{ "{}", "contents is not specified" },
		{ C(""), "contents is not specified" },
		{ C(OF("assistant", TEXT("m"))), "use a valid role" },
		{ C(USER ",{\"parts\":[" TEXT("m") "]}"), "use a valid role" },
		{ C(OF("system", TEXT("s")) "," USER), "use a valid role" },
		{ C("{\"role\":\"user\",\"parts\":[]}"), "must not be empty" },
		{ C("{\"role\":\"user\",\"content\":\"u\"}"),
		    "Unknown name \"content\" at 'contents[0]'" },
		{ C(OF("user", "{}")), "must have one initialized field" },
		{ C(OF("user", "{\"text\":\"u\",\"inlineData\":{}}")),
		    "must have one initialized field" },
		{ C(OF("user", "{\"text\":1}")), "TYPE_STRING" },
		{ C(OF("user", TEXT(""))), "must have a text parameter" },
		{ C(OF("user", "{\"type\":\"text\",\"text\":\"u\"}")),
		    "Unknown name \"type\" at 'contents[0].parts[0]'" },
		{ C(MODEL "," USER), "start with a user role" },
		{ C(USER "," USER), "alternate between user and model" },
		{ C(USER "," MODEL "," MODEL "," USER), "alternate" },
		{ C(USER "," MODEL), "end with a user role" },
		{ C(USER "," OF("model", CALL("f"))),
		    "followed by a function response turn" },
		{ C(USER "," OF("model", CALL("f")) "," USER),
		    "number of function response parts is equal" },
		{ C(USER "," OF("model", CALL("f") "," CALL("g")) "," OF(
		      "user", GIVE("f"))),
		    "number of function response parts is equal" },
		{ C(USER "," OF("model", CALL("f")) "," OF("user", GIVE("g"))),
		    "names of the function call parts" },
		{ C(USER "," OF("model", CALL("f") "," CALL("g")) "," OF(
		      "user", GIVE("g") "," GIVE("f"))),
		    "in their order" },
		{ C(USER "," OF("model", CALL_ID("1", "f")) "," OF(
		      "user", GIVE_ID("2", "f"))),
		    "names of the function call parts" },
		{ C(USER "," OF("model", CALL("f")) "," OF(
		      "user", GIVE("f") "," TEXT("t"))),
		    "no other parts" },
		{ C(OF("user", GIVE("f"))),
		    "immediately after a function call turn" },
		{ C(OF("user", CALL("f"))), "of the model" },
		{ C(USER "," OF("model", GIVE("f")) "," USER), "of the user" },
		{ C(USER "," OF("model",
		      "{\"functionCall\":{\"name\":\"f\",\"args\":\"{}"
		      "\"}}") "," OF("user", GIVE("f"))),
		    "function_call.args" },
		{ C(USER "," OF("model", "{\"functionCall\":{\"args\":{}}}")),
		    "Name cannot be empty" },
		{ C(USER "," OF("model", CALL("f")) "," OF("user",
		      "{\"functionResponse\":{\"name\":\"f\",\"response\":"
		      "\"r\"}}")),
		    "function_response.response" },
	};

	(void)state;
	check_rows(PATH("m"), t, hf_countof(t));
}

static void
settings(void **state)
{
	static const struct row t[] = {
		{ CP("\"systemInstruction\":{\"parts\":[" TEXT("s") "]}"),
		    NULL },
		{ CP("\"system_instruction\":{\"role\":\"user\",\"parts\":"
		     "[" TEXT("s") "]}"),
		    NULL },
		{ CP(TOOL(F(
		      ",\"parameters\":{\"type\":\"OBJECT\",\"properties\""
		      ":{\"a\":{\"type\":\"STRING\"}},\"required\":["
		      "\"a\"]}")) ",\"toolConfig\":{"
				  "\"functionCallingConfig\":{\"mode\":\"ANY\","
				  "\"allowedFunctionNames\":[\"f\"]}}"),
		    NULL },
		{ CP(TOOL(F(",\"parametersJsonSchema\":{\"type\":\"object\","
			    "\"additionalProperties\":false}"))),
		    NULL },
		{ CP("\"generationConfig\":{\"temperature\":2,\"topP\":1,"
		     "\"max_output_tokens\":9,\"stopSequences\":[\"a\"],"
		     "\"seed\":7,\"thinkingConfig\":{\"thinkingBudget\":0}}"),
		    NULL },
		{ CP("\"messages\":[]"), "Unknown name \"messages\"" },
		{ CP("\"stream\":true"), "Unknown name \"stream\"" },
		{ CP("\"user\":\"x\""), "Unknown name \"user\"" },
		{ CP("\"systemInstruction\":\"s\""), "v1beta.Content" },
		{ CP("\"systemInstruction\":{\"parts\":[]}"),
		    "must not be empty" },
		{ CP("\"systemInstruction\":{\"parts\":[{\"inlineData\":{}}]}"),
		    "text only" },
		{ CP("\"tools\":[{\"name\":\"f\"}]"), "Unknown name \"name\"" },
		{ CP("\"tools\":[{}]"), "'tool_type'" },
		{ CP(TOOL("{\"name\":\"1f\"}")), "Invalid function name" },
		{ CP(TOOL("{\"name\":\"a b\"}")), "Invalid function name" },
		{ CP(TOOL(F("") "," F(""))), "Duplicate function declaration" },
		{ CP(TOOL(F(",\"parameters\":{\"type\":\"object\","
			    "\"additionalProperties\":false}"))),
		    "Unknown name \"additionalProperties\"" },
		{ CP(TOOL(F(",\"parameters\":{\"type\":\"OBJECT\","
			    "\"properties\":{}}"))),
		    "should be non-empty for OBJECT type" },
		{ CP(TOOL(F(",\"parameters\":{\"type\":\"ARRAY\"}"))),
		    "items: missing field" },
		{ CP(TOOL(
		      F(",\"parameters\":{\"type\":[\"string\",\"null\"]}"))),
		    "Invalid value at" },
		{ CP(TOOL(
		      F(",\"parameters\":{\"type\":\"OBJECT\",\"properties\""
			":{\"a\":{\"$ref\":\"#/x\"}}}"))),
		    "Unknown name \"$ref\"" },
		{ CP(TOOL(
		      F(",\"parameters\":{\"type\":\"OBJECT\",\"properties\""
			":{\"a\":{\"type\":\"STRING\"}},\"required\":["
			"\"b\"]}"))),
		    "property is not defined" },
		{ CP(TOOL(F(",\"parameters\":{},\"parametersJsonSchema\":{}"))),
		    "mutually exclusive" },
		{ CP("\"toolConfig\":{\"functionCallingConfig\":{\"mode\":"
		     "\"ANY\"}}"),
		    "without function_declarations" },
		{ CP(TOOL(F("")) ",\"toolConfig\":{\"functionCallingConfig\":{"
				 "\"mode\":\"AUTO\",\"allowedFunctionNames\":["
				 "\"f\"]}}"),
		    "ANY or VALIDATED" },
		{ CP(TOOL(F("")) ",\"toolConfig\":{\"functionCallingConfig\":{"
				 "\"mode\":\"ANY\",\"allowedFunctionNames\":["
				 "\"g\"]}}"),
		    "not declared" },
		{ CP(TOOL(F("")) ",\"toolConfig\":{\"functionCallingConfig\":{"
				 "\"mode\":\"auto\"}}"),
		    "function_calling_config.mode" },
		{ CP("\"generationConfig\":{\"temperature\":2.5}"), "[0, 2]" },
		{ CP("\"generationConfig\":{\"maxOutputTokens\":0}"),
		    "maxOutputTokens" },
		{ CP("\"generationConfig\":{\"maxOutputTokens\":1.5}"),
		    "TYPE_INT32" },
		{ CP("\"generationConfig\":{\"max_tokens\":5}"),
		    "Unknown name \"max_tokens\" at 'generation_config'" },
		{ CP("\"generationConfig\":{\"stopSequences\":[\"1\",\"2\","
		     "\"3\",\"4\",\"5\",\"6\"]}"),
		    "stop sequences" },
		{ CP("\"generationConfig\":{\"responseSchema\":{}}"),
		    "is unsupported" },
		{ CP("\"generationConfig\":{\"thinkingConfig\":{"
		     "\"thinkingBudget\":0,\"thinkingLevel\":\"LOW\"}}"),
		    "only set one of" },
		{ CP("\"safetySettings\":[{\"category\":\"X\"}]"),
		    "safety_settings[0]" },
	};

	(void)state;
	check_rows(PATH("m"), t, hf_countof(t));
}

/* Newer models want a signature on the first call of each step since the
 * user's last words; the one that came with it, or one that stands for none. */
static void
signatures(void **state)
{
	static const char own[] = "{\"name\":\"f\",\"args\":{\"a\":1}}";
	struct hf_bench_headers h = headers_for(PATH("gemini-3-x"));
	json_t *call = json_loads(own, 0, NULL);
	char text[512], sign[25];
	int status;

	(void)state;
	hf_gemini_sign(call, sign);
	json_decref(call);
	assert_int_equal(strlen(sign), 24);
#define SIGNED(s)                                                  \
	"{\"contents\":[" USER ",{\"role\":\"model\",\"parts\":[{" \
	"\"functionCall\":%s,\"thoughtSignature\":\"" s            \
	"\"}]}," OF("user", GIVE("f")) "%s]}"
#define TRY(s, more)                                               \
	(snprintf(text, sizeof(text), SIGNED("%s"), own, s, more), \
	    check(&h, text, &status))
	assert_null(TRY(sign, ""));
	assert_null(TRY(HF_GEMINI_FOREIGN, ""));
	assert_null(TRY(HF_GEMINI_FOREIGN64, ""));
	assert_non_null(strstr(TRY("", ""), "missing a thought_signature"));
	sign[3] = sign[3] == 'A' ? 'B' : 'A';
	assert_non_null(strstr(TRY(sign, ""), "not valid"));
	/* Earlier turns are not looked at; older models do not look. */
	assert_null(TRY("", "," USER));
	h = headers_for(PATH("gemini-2.5-x"));
	assert_null(TRY("", ""));
#undef TRY
#undef SIGNED
}

static void
headers(void **state)
{
	static const char body[] = C(USER), last[] = C(USER "," MODEL);
	struct hf_bench_headers h = headers_for(PATH("m"));
	json_t *o = json_loads(last, 0, NULL);
	struct hf_refusal r;
	int status;

	(void)state;
	h.x_goog_api_key = HF_STR_NONE;
	check(&h, body, &status);
	assert_int_equal(status, 403);
	h.query = HF_STR("alt=sse&key=k");
	check(&h, body, &status);
	assert_int_equal(status, 200);
	h.content_type = HF_STR("text/plain");
	check(&h, body, &status);
	assert_int_equal(status, 400);
	h = headers_for("/v1beta/models/m:countTokens");
	check(&h, body, &status);
	assert_int_equal(status, 404);
	/* Which model goes on with its own words. */
	h = headers_for(PATH("m" HF_MODEL_PREFILLS));
	assert_int_equal(hf_bench_gemini.check(&h, o, &r), 0);
	h = headers_for(PATH("m" HF_MODEL_REFUSES));
	assert_int_equal(hf_bench_gemini.check(&h, o, &r), -1);
	assert_true(r.prefill);
	json_decref(o);
	assert_true(hf_bench_gemini.is_path(hf_str(PATH("m"))));
	assert_false(hf_bench_gemini.is_path(HF_STR("/v1beta/models/m")));
	assert_false(hf_bench_gemini.is_path(HF_STR("/v1/models/m:x")));
	h = headers_for("/v1beta/models/a:b:streamGenerateContent");
	assert_true(hf_str_is(hf_bench_gemini.model(&h, NULL), "a:b"));
	assert_true(hf_bench_gemini.streams(&h, NULL));
}

/* The same conversation as in chat completions has the same view. */
static void
views(void **state)
{
	json_t *o = json_loads(
	    "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},"
	    "{\"role\":\"user\",\"content\":\"u\"},"
	    "{\"role\":\"assistant\",\"content\":\"m\",\"tool_calls\":["
	    "{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},"
	    "{\"id\":\"2\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}"
	    "]},{\"role\":\"tool\",\"tool_call_id\":\"2\",\"content\":\"2\"},"
	    "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"1\"},"
	    "{\"role\":\"user\",\"content\":\"u\"}]}",
	    0, NULL);
	json_t *g = json_loads(
	    "{\"systemInstruction\":{\"parts\":[" TEXT(
		"s") "]},\"contents\":[" USER "," OF("model",
		TEXT("m") "," CALL_ID("1", "f") "," CALL_ID(
		    "2", "g")) "," OF("user",
		GIVE_ID("2", "g") "," GIVE_ID("1", "f")) "," USER "]}",
	    0, NULL);
	json_t *vo, *vg, *v;

	(void)state;
	assert_non_null(o);
	assert_non_null(g);
	vo = hf_bench_openai.view(o);
	vg = hf_bench_gemini.view(g);
	assert_true(json_equal(vo, vg));
	json_decref(o);
	json_decref(g);
	json_decref(vo);
	json_decref(vg);
	/* Without ids results go by their order; objects stay objects. */
	g = json_loads(
	    C(USER "," OF("model", CALL("f") "," CALL("g")) "," OF("user",
		GIVE(
		    "f") ",{\"functionResponse\":{\"name\":\"g\",\"response\":{"
			 "\"n\":[1]}}}")),
	    0, NULL);
	vg = hf_bench_gemini.view(g);
	assert_int_equal(json_array_size(vg), 4);
	for (size_t i = 0; i < 2; i++) {
		v = json_array_get(
		    json_object_get(json_array_get(vg, 1), "calls"), i);
		assert_true(json_equal(json_object_get(v, "id"),
		    json_object_get(json_array_get(vg, 2 + i), "call_id")));
	}
	assert_string_equal(
	    json_string_value(json_object_get(json_array_get(vg, 3), "text")),
	    "{\"n\":[1]}");
	json_decref(g);
	json_decref(vg);
}

/* Text and calls of all chunks; the count of finish reasons. */
static unsigned
collect(struct hf_buf *text, json_t *calls, json_t *chunk)
{
	json_t *c = json_array_get(json_object_get(chunk, "candidates"), 0);
	json_t *parts = json_object_get(json_object_get(c, "content"), "parts"),
	       *p;
	size_t i;

	json_array_foreach(parts, i, p)
	{
		json_t *call = json_object_get(p, "functionCall");

		hf_buf_putstr(text, hf_json_str(json_object_get(p, "text")));
		if (call != NULL)
			json_array_append(calls, call);
	}
	return json_object_get(c, "finishReason") != NULL;
}

static void
all_of(struct hf_buf *out, const struct hf_reply *r)
{
	struct hf_stream s;

	hf_stream_init(&s);
	hf_bench_gemini.stream(&s, r);
	hf_buf_putstr(out, hf_buf_str(&s.head));
	for (unsigned k = 0; k < s.n_piece; k++)
		hf_buf_putstr(out, hf_buf_str(&s.piece[k].bytes));
	hf_buf_putstr(out, hf_buf_str(&s.finish));
	if (s.tail.size > 0)
		hf_buf_putstr(out, hf_buf_str(&s.tail));
	hf_stream_free(&s);
}

static void
answers(void **state)
{
	char words[] = "Two words, \xc3\xa9.";
	struct hf_answer a = { .text = words,
		.calls = json_pack("[{s:s,s:s},{s:s,s:s}]", "name", "f",
		    "arguments", "{\"a\":1}", "name", "g", "arguments", "{}") };
	struct hf_reply r = {
		.id_tail = "1", .model = "gemini-3", .answer = &a
	};

	(void)state;
	for (unsigned way = 0; way < 3; way++) {
		json_t *calls = json_array(), *o, *all = json_array();
		struct hf_buf b, text;
		unsigned finishes = 0;
		size_t i;

		hf_buf_init(&b, HF_BUF_NOCAP);
		hf_buf_init(&text, HF_BUF_NOCAP);
		r.array = way == 1;
		if (way == 2)
			hf_bench_gemini.plain(&b, &r);
		else
			all_of(&b, &r);
		if (way == 0) {
			/* No [DONE]: a blank line ends the last event. */
			assert_null(strstr(b.data, "[DONE]"));
			assert_string_equal(b.data + b.size - 4, "\r\n\r\n");
			for (char *p = b.data;
			     (p = strstr(p, "data: ")) != NULL; p++)
				json_array_append_new(all,
				    json_loads(
					p + 6, JSON_DISABLE_EOF_CHECK, NULL));
		} else {
			o = json_loadb(b.data, b.size, 0, NULL);
			assert_non_null(o);
			if (way == 1)
				json_array_extend(all, o);
			else
				json_array_append(all, o);
			json_decref(o);
		}
		json_array_foreach(all, i, o)
		{
			assert_non_null(o);
			finishes += collect(&text, calls, o);
		}
		assert_int_equal(finishes, 1);
		assert_string_equal(text.data, words);
		assert_int_equal(json_array_size(calls), 2);
		hf_buf_free(&b);
		hf_buf_free(&text);
		json_decref(calls);
		json_decref(all);
	}
	json_decref(a.calls);
}

/* What it answers, sent back to it with its signature, is taken. */
static void
comes_back(void **state)
{
	struct hf_answer a = { .calls = json_pack("[{s:s,s:s}]", "name", "f",
				   "arguments", "{\"b\":2,\"a\":1}") };
	struct hf_reply r = {
		.id_tail = "1", .model = "gemini-3", .answer = &a
	};
	struct hf_bench_headers h = headers_for(PATH("gemini-3"));
	json_t *o, *content, *body;
	struct hf_refusal no;
	struct hf_buf b;

	(void)state;
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_bench_gemini.plain(&b, &r);
	o = json_loadb(b.data, b.size, 0, NULL);
	content = json_object_get(
	    json_array_get(json_object_get(o, "candidates"), 0), "content");
	body = json_loads(C(USER "," USER "," OF("user", GIVE("f"))), 0, NULL);
	json_array_set(json_object_get(body, "contents"), 1, content);
	if (hf_bench_gemini.check(&h, body, &no) != 0)
		fail_msg("%s", no.message);
	json_decref(body);
	json_decref(o);
	json_decref(a.calls);
	hf_buf_free(&b);
}

static void
errors(void **state)
{
	static const struct {
		int status;
		const char *has[3];
	} t[] = {
		{ 401,
		    { "\"code\":400", "INVALID_ARGUMENT", "API_KEY_INVALID" } },
		{ 429,
		    { "\"code\":429", "RESOURCE_EXHAUSTED",
			"\"retryDelay\":\"1.500s\"" } },
		{ 503, { "\"code\":503", "UNAVAILABLE", "overloaded" } },
		{ 500, { "\"code\":500", "INTERNAL", "Injected" } },
	};

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		struct hf_refusal r;
		struct hf_buf b;

		hf_bench_gemini.failure(t[i].status, &r);
		if (t[i].status == 429) {
			r.hint = HF_HINT_RETRY_INFO;
			r.retry_ms = 1500;
		}
		hf_buf_init(&b, HF_BUF_NOCAP);
		hf_bench_gemini.error(&b, &r, "1");
		for (unsigned k = 0; k < 3; k++)
			if (strstr(b.data, t[i].has[k]) == NULL)
				fail_msg("%s: no %s", b.data, t[i].has[k]);
		hf_buf_free(&b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns),
		cmocka_unit_test(settings),
		cmocka_unit_test(signatures),
		cmocka_unit_test(headers),
		cmocka_unit_test(views),
		cmocka_unit_test(answers),
		cmocka_unit_test(comes_back),
		cmocka_unit_test(errors),
	};

	return cmocka_run_group_tests_name("bench gemini", tests, NULL, NULL);
}
