/*
 * Reading chat completions requests: what is refused, with which code and
 * place; what is kept byte for byte; which session is meant.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <cmocka.h>

#include "gateway/surface/surface.h"

/* The request's headers, in place of the front room. */
static struct hf_header headers[4];
static unsigned n_headers;

struct hf_str
hf_req_header(const struct hf_req *rq, const char *name)
{
	(void)rq;
	for (unsigned i = 0; i < n_headers; i++)
		if (strcasecmp(headers[i].name, name) == 0)
			return headers[i].value;
	return HF_STR_NONE;
}

unsigned
hf_req_header_count(const struct hf_req *rq, const char *name)
{
	unsigned n = 0;

	(void)rq;
	for (unsigned i = 0; i < n_headers; i++)
		n += strcasecmp(headers[i].name, name) == 0;
	return n;
}

static struct hf_conf *conf;

static int
setup_conf(void **state)
{
	static const char text[] = "provider p { dialect = \"openai\" "
				   "base_url = \"http://127.0.0.1:9/v1\" }\n"
				   "route m { targets = { \"p/x\" } }\n";
	struct hf_error e;

	(void)state;
	return hf_conf_parse("test", text, &conf, &e);
}

static int
teardown_conf(void **state)
{
	(void)state;
	hf_conf_free(conf);
	return 0;
}

static int
parse(const char *body, struct hf_turn_input *in, struct hf_refusal *r)
{
	struct hf_req rq = { .method = HF_POST, .body = hf_str(body) };
	struct hf_chat_options o = { 0 };

	memset(r, 0, sizeof(*r));
	return hf_chat_parse(conf, &rq, in, &o, r);
}

static void
release(struct hf_turn_input *in)
{
	hf_draft_free(&in->draft);
	hf_arena_free(in->arena);
	free(in->arena);
}

#define MSG "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static const struct {
	const char *body;
	int status;
	const char *code, *param;
} bad[] = {
	{ "", 400, "invalid_json", "" },
	{ "{", 400, "invalid_json", "" },
	{ "[]", 400, "invalid_type", "" },
	{ "{" MSG "}", 400, "missing_required_parameter", "model" },
	{ "{\"model\":7," MSG "}", 400, "invalid_type", "model" },
	{ "{\"model\":\"no\"," MSG "}", 404, "model_not_found", "model" },
	{ "{\"model\":\"m\"}", 400, "missing_required_parameter", "messages" },
	{ "{\"model\":\"m\",\"messages\":{}}", 400, "invalid_type",
	    "messages" },
	{ "{\"model\":\"m\",\"messages\":[]}", 400, "empty_array", "messages" },
	{ "{\"model\":\"m\",\"messages\":[7]}", 400, "invalid_value",
	    "messages[0].role" },
	{ "{\"model\":\"m\",\"messages\":[{\"role\":\"king\"}]}", 400,
	    "invalid_value", "messages[0].role" },
	{ "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"}]}", 400,
	    "invalid_value", "messages[0].content" },
	{ "{\"model\":\"m\",\"messages\":[{\"role\":\"tool\","
	  "\"content\":\"x\"}]}",
	    400, "invalid_value", "messages[0].tool_call_id" },
	{ "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":"
	  "[{\"type\":\"image_url\"}]}]}",
	    400, "invalid_value", "messages[0].content[0].type" },
	{ "{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\","
	  "\"tool_calls\":[{\"id\":\"a\"}]}]}",
	    400, "invalid_value", "messages[0].tool_calls[0]" },
	{ "{\"model\":\"m\",\"stream\":\"yes\"," MSG "}", 400, "invalid_type",
	    "stream" },
	{ "{\"model\":\"m\",\"temperature\":\"hot\"," MSG "}", 400,
	    "invalid_value", "temperature" },
	{ "{\"model\":\"m\",\"temperature\":1e400," MSG "}", 400,
	    "invalid_value", "temperature" },
	{ "{\"model\":\"m\",\"max_tokens\":0," MSG "}", 400, "invalid_value",
	    "max_tokens" },
	{ "{\"model\":\"m\",\"max_tokens\":1.5," MSG "}", 400, "invalid_value",
	    "max_tokens" },
	{ "{\"model\":\"m\",\"n\":2," MSG "}", 400, "unsupported_value", "n" },
	{ "{\"model\":\"m\",\"logprobs\":true," MSG "}", 400,
	    "unsupported_parameter", "logprobs" },
	{ "{\"model\":\"m\",\"functions\":[{}]," MSG "}", 400,
	    "unsupported_parameter", "functions" },
	{ "{\"model\":\"m\",\"tools\":[{\"type\":\"custom\"}]," MSG "}", 400,
	    "unsupported_value", "tools[0]" },
	{ "{\"model\":\"m\",\"tool_choice\":\"maybe\"," MSG "}", 400,
	    "invalid_value", "tool_choice" },
	{ "{\"model\":\"m\",\"stop\":[\"1\",\"2\",\"3\",\"4\",\"5\"]," MSG "}",
	    400, "invalid_value", "stop" },
	{ "{\"model\":\"m\",\"session_id\":7," MSG "}", 400, "invalid_session",
	    "session_id" },
	{ "{\"model\":\"m\",\"session_id\":\"a\\u0001\"," MSG "}", 400,
	    "invalid_session", "session_id" },
	{ "{\"model\":\"m\",\"session_id\":\"a\",\"conversation\":"
	  "{\"id\":\"b\"}," MSG "}",
	    400, "session_conflict", "conversation.id" },
};

static void
test_refusals(void **state)
{
	struct hf_turn_input in;
	struct hf_refusal r;

	(void)state;
	for (size_t i = 0; i < hf_countof(bad); i++) {
		assert_int_not_equal(parse(bad[i].body, &in, &r), 0);
		assert_int_equal(r.status, bad[i].status);
		assert_string_equal(r.code, bad[i].code);
		assert_string_equal(r.param, bad[i].param);
		assert_true(r.message[0] != '\0');
	}
}

static void
test_deep_nesting(void **state)
{
	struct hf_turn_input in;
	struct hf_refusal r;
	struct hf_buf body;

	(void)state;
	hf_buf_init(&body, HF_BUF_NOCAP);
	hf_buf_puts(&body, "{\"model\":\"m\",\"x\":");
	for (unsigned i = 0; i < 10000; i++)
		hf_buf_putc(&body, '[');
	assert_int_not_equal(parse(body.data, &in, &r), 0);
	assert_int_equal(r.status, 400);
	hf_buf_free(&body);
}

static void
test_params_are_kept(void **state)
{
	struct hf_turn_input in;
	struct hf_refusal r;

	(void)state;
	assert_int_equal(
	    parse("{\"model\":\"m\",\"temperature\":1.10,"
		  "\"seed\":2512292042121000001,\"stop\":null,\"tools\":[],"
		  "\"unknown\":{\"a\":1e400},\"store\":true,"
		  "\"tool_choice\":\"auto\"," MSG "}",
		&in, &r),
	    0);
	assert_true(hf_str_is(in.params,
	    "{\"temperature\":1.10,"
	    "\"tool_choice\":\"auto\",\"seed\":2512292042121000001}"));
	assert_int_equal(in.draft.n, 1);
	assert_int_equal(in.session.size, 0);
	release(&in);
}

static void
test_assistant_variants(void **state)
{
	static const char *const content[] = { "", "\"content\":null,",
		"\"content\":\"\",", "\"content\":[]," };
	struct hf_turn_input in;
	struct hf_refusal r;
	char body[512];

	(void)state;
	for (size_t i = 0; i < hf_countof(content); i++) {
		snprintf(body, sizeof(body),
		    "{\"model\":\"m\",\"messages\":["
		    "{\"role\":\"assistant\",%s\"tool_calls\":[{\"id\":\"a\","
		    "\"type\":\"function\",\"function\":{\"name\":\"f\","
		    "\"arguments\":\"\"}}]}]}",
		    content[i]);
		assert_int_equal(parse(body, &in, &r), 0);
		assert_int_equal(in.draft.n, 1);
		assert_int_equal(in.draft.item[0].kind, HF_ITEM_TOOL_CALL);
		assert_non_null(
		    strstr(in.draft.item[0].body.p, "\"arguments\":\"{}\""));
		release(&in);
	}
}

static void
test_session_names(void **state)
{
	static const char *const body[] = {
		"{\"model\":\"m\",\"session_id\":\"s\"," MSG "}",
		"{\"model\":\"m\",\"conversation_id\":\"s\"," MSG "}",
		"{\"model\":\"m\",\"conversation\":\"s\"," MSG "}",
		"{\"model\":\"m\",\"conversation\":{\"id\":\"s\"}," MSG "}",
		"{\"model\":\"m\",\"metadata\":{\"session_id\":\"s\"}," MSG "}",
		"{\"model\":\"m\",\"metadata\":{\"call_id\":\"s\"}," MSG "}",
		"{\"model\":\"m\",\"metadata\":{\"conversation_id\":\"s\"}," MSG
		"}",
		"{\"model\":\"m\",\"call\":{\"id\":\"s\"}," MSG "}",
		"{\"model\":\"m\",\"litellm_session_id\":\"s\"," MSG "}",
	};
	static const char *const name[] = { "X-Holdfast-Session",
		"x-session-id", "X-Conversation-ID", "x-call-id",
		"x-litellm-session-id", "x-bf-session-id",
		"Helicone-Session-Id", "agent-session-id", "X-Chat-ID" };
	struct hf_turn_input in;
	struct hf_refusal r;

	(void)state;
	for (size_t i = 0; i < hf_countof(body); i++) {
		assert_int_equal(parse(body[i], &in, &r), 0);
		assert_true(hf_str_is(in.session, "s"));
		release(&in);
	}
	for (size_t i = 0; i < hf_countof(name); i++) {
		headers[0] = (struct hf_header){ name[i], HF_STR("s") };
		n_headers = 1;
		/* The same name twice is no conflict. */
		assert_int_equal(parse(body[0], &in, &r), 0);
		assert_true(hf_str_is(in.session, "s"));
		release(&in);
		headers[0].value = HF_STR("t");
		assert_int_not_equal(parse(body[0], &in, &r), 0);
		assert_string_equal(r.code, "session_conflict");
		n_headers = 0;
	}
}

static void
test_history_header(void **state)
{
	static const struct {
		const char *v;
		int mode;
	} row[] = {
		{ "auto", HF_HISTORY_AUTO },
		{ "full", HF_HISTORY_FULL },
		{ "delta", HF_HISTORY_DELTA },
		{ "some", -1 },
	};
	struct hf_turn_input in;
	struct hf_refusal r;

	(void)state;
	n_headers = 1;
	for (size_t i = 0; i < hf_countof(row); i++) {
		headers[0] = (struct hf_header){ "X-Holdfast-History",
			hf_str(row[i].v) };
		if (row[i].mode < 0) {
			assert_int_not_equal(
			    parse("{\"model\":\"m\"," MSG "}", &in, &r), 0);
			continue;
		}
		assert_int_equal(
		    parse("{\"model\":\"m\"," MSG "}", &in, &r), 0);
		assert_int_equal(in.mode, row[i].mode);
		release(&in);
	}
	n_headers = 0;
}

/* What a provider of 'dialect' would be sent of the request. */
static struct hf_buf
payload(const struct hf_turn_input *in, enum hf_conf_dialect dialect)
{
	char url[] = "http://127.0.0.1:9", model[] = "x";
	struct hf_conf_provider provider = { .dialect = dialect,
		.base_url = url };
	struct hf_conf_target target = { .provider = &provider,
		.model = model };
	struct hf_payload_input p = { .item = in->draft.item,
		.n_item = in->draft.n,
		.body = in->draft.body,
		.target = &target };
	struct hf_http_request rq;
	struct hf_error e = { 0 };
	struct hf_buf out;

	assert_int_equal(hf_json_check(in->params, &p.params, NULL, NULL), 0);
	hf_http_request_init(&rq);
	assert_int_equal(hf_dialect(dialect)->build(&p, &rq, &e), 0);
	out = rq.body;
	hf_buf_init(&rq.body, HF_BUF_NOCAP);
	hf_http_request_free(&rq);
	return out;
}

/* Messages that stay in the request, as those of turns that are not stored do,
 * are said to the provider as the copies of stored turns are. */
static void
test_messages_left_in_place(void **state)
{
	static const struct {
		const char *messages;
		unsigned left; /* how many stay in place */
	} row[] = {
		{ "{\"role\":\"user\",\"content\":\"hi\"}", 1 },
		{ "{\"role\":\"system\",\"content\":\"be\"},"
		  "{\"content\":\"\\\"a\\\"\\n\\u00e9\", \"role\" : \"user\"},"
		  "{\"role\":\"assistant\",\"content\":\"b\"},"
		  "{\"role\":\"user\",\"content\":\"\"}",
		    4 },
		/* Of what else a message says, only what is known and an
		 * assistant's is passed on. */
		{ "{\"role\":\"user\",\"content\":\"a\",\"name\":\"me\","
		  "\"refusal\":\"no\",\"x\":[{\"content\":1}],"
		  "\"tool_calls\":[1]},"
		  "{\"role\":\"assistant\",\"content\":\"\","
		  "\"refusal\":\"never\",\"audio\":null},"
		  "{\"role\":\"assistant\",\"content\":\"c\","
		  "\"refusal\":{\"a\":1},\"name\":7}",
		    3 },
		{ "{\"role\":\"user\",\"content\":[1],\"content\":\"last\"},"
		  "{\"role\":\"user\",\"\\u0063ontent\":\"name\"}",
		    2 },
		/* Not in place: parts, calls, results. */
		{ "{\"role\":\"user\",\"content\":[{\"type\":\"text\","
		  "\"text\":\"a\"}]},"
		  "{\"role\":\"assistant\",\"content\":\"I do\","
		  "\"tool_calls\":[{\"id\":\"i\",\"function\":"
		  "{\"name\":\"f\",\"arguments\":\"{}\"}}]},"
		  "{\"role\":\"tool\",\"tool_call_id\":\"i\","
		  "\"content\":\"r\"},{\"role\":\"user\",\"content\":\"b\"}",
		    2 },
		/* Nothing is, when there is something to be repaired. */
		{ "{\"role\":\"user\",\"content\":\"a\"},"
		  "{\"role\":\"user\",\"content\":\"\\ud800\"}",
		    0 },
	};
	static const enum hf_conf_dialect dialect[] = { HF_DIALECT_OPENAI,
		HF_DIALECT_ANTHROPIC };
	struct hf_turn_input in, copied;
	struct hf_refusal r;
	struct hf_buf a, b;
	unsigned left;
	char body[1024];

	(void)state;
	for (size_t i = 0; i < hf_countof(row); i++) {
		snprintf(body, sizeof(body),
		    "{\"model\":\"m\",\"messages\":[%s]}", row[i].messages);
		assert_int_equal(parse(body, &in, &r), 0);
		headers[0] = (struct hf_header){ "X-Session-Id", HF_STR("s") };
		n_headers = 1;
		assert_int_equal(parse(body, &copied, &r), 0);
		n_headers = 0;
		left = 0;
		for (unsigned k = 0; k < in.draft.n; k++) {
			left += in.draft.body[k].type != HF_JSON_NONE;
			assert_int_equal(
			    copied.draft.body[k].type, HF_JSON_NONE);
		}
		assert_int_equal(left, row[i].left);
		for (size_t k = 0; k < hf_countof(dialect); k++) {
			a = payload(&in, dialect[k]);
			b = payload(&copied, dialect[k]);
			assert_string_equal(a.data, b.data);
			hf_buf_free(&a);
			hf_buf_free(&b);
		}
		release(&in);
		release(&copied);
	}
}

int
main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_deep_nesting),
		cmocka_unit_test(test_params_are_kept),
		cmocka_unit_test(test_assistant_variants),
		cmocka_unit_test(test_session_names),
		cmocka_unit_test(test_history_header),
		cmocka_unit_test(test_messages_left_in_place),
	};

	return cmocka_run_group_tests_name(
	    "chat_request", t, setup_conf, teardown_conf);
}
