/*
 * The anthropic dialect coming back: answers, errors and streams in every
 * split.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tests/unit/wire_util.h"

#define SSE "content-type: text/event-stream\r\n"
#define JSON "Content-Type: application/json\r\n"
#define E(type, rest) \
	"event: " type "\ndata: {\"type\":\"" type "\"" rest " }\n\n"
#define START                                                        \
	E("message_start",                                           \
	    ",\"message\":{\"id\":\"msg_1\",\"usage\":{"             \
	    "\"input_tokens\":31,\"cache_creation_input_tokens\":5," \
	    "\"cache_read_input_tokens\":4,\"output_tokens\":1}}")
#define TEXT(i)                  \
	E("content_block_start", \
	    ",\"index\":" i ","  \
	    "\"content_block\":{\"type\":\"text\",\"text\":\"\"}")
#define TD(i, t)                           \
	E("content_block_delta",           \
	    ",\"index\":" i ",\"delta\":{" \
	    "\"type\":\"text_delta\",\"text\":\"" t "\"}")
#define TOOL(i, id, name)                                                 \
	E("content_block_start",                                          \
	    ",\"index\":" i ","                                           \
	    "\"content_block\":{\"type\":\"tool_use\",\"id\":\"" id "\"," \
	    "\"name\":\"" name "\",\"input\":{}}")
#define JD(i, t)                           \
	E("content_block_delta",           \
	    ",\"index\":" i ",\"delta\":{" \
	    "\"type\":\"input_json_delta\",\"partial_json\":\"" t "\"}")
#define BSTOP(i) E("content_block_stop", ",\"index\":" i)
#define DELTA(reason)                             \
	E("message_delta",                        \
	    ",\"delta\":{\"stop_reason\":" reason \
	    ",\"stop_sequence\":null},\"usage\":{\"output_tokens\":22}")
#define STOP E("message_stop", "")
#define PING E("ping", "")
#define USED "usage(40,22,4,-1)"
#define EOF_ERROR "error(network,eof,200,-1,,,)"

static const struct wire_case streams[] = {
	{ "text", 200, SSE,
	    S(START TEXT("0") PING TD("0", "Let me ") TD("0", "look.")
		    BSTOP("0") DELTA("\"end_turn\"") STOP),
	    true,
	    "begin text(Let me ) text(look.) finish(stop) " USED " done" },
	{ "text and two tools", 200, SSE,
	    S(START TEXT("0") TD("0", "Hm.") BSTOP("0") TOOL(
		"1", "toolu_1", "f") JD("1", "") JD("1", "{\\\"id\\\":")
		    JD("1", "42}") BSTOP("1") TOOL("2", "toolu_2", "g")
			BSTOP("2") DELTA("\"tool_use\"") STOP),
	    true,
	    "begin text(Hm.) tool(toolu_1,f,{\"id\":42}) tool(toolu_2,g,{}) "
	    "finish(tool_calls) " USED " done" },
	{ "no space after the colon", 200, SSE,
	    S("event:message_start\ndata:{\"type\":\"message_start\"}\n\n"
	      "event:content_block_delta\ndata:{\"type\":\"content_block_"
	      "delta\","
	      "\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}"
	      "\n\n"
	      "event:message_delta\ndata:{\"type\":\"message_delta\",\"delta\":"
	      "{"
	      "\"stop_reason\":\"end_turn\"}}\n\n"
	      "event:message_stop\ndata:{\"type\":\"message_stop\"}\n\n"),
	    true, "begin text(a) finish(stop) done" },
	{ "type only in the event", 200, SSE,
	    S("event: message_start\ndata: {}\n\nevent: content_block_delta\n"
	      "data: {\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":"
	      "\"a\"}}\n\nevent: message_delta\ndata: {\"delta\":{"
	      "\"stop_reason\":\"end_turn\"}}\n\nevent: message_stop\n"
	      "data: {}\n\n"),
	    true, "begin text(a) finish(stop) done" },
	{ "type only in the data", 200, SSE,
	    S("data: {\"type\":\"message_start\"}\n\ndata: {\"type\":"
	      "\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"}}"
	      "\n\n"
	      "data: {\"type\":\"message_stop\"}\n\ndata: [DONE]\n\n"),
	    true, "begin finish(length) done" },
	{ "thinking is left aside", 200, SSE,
	    S(START E("content_block_start",
		",\"index\":0,\"content_block\":{"
		"\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}")
		    E("content_block_delta",
			",\"index\":0,\"delta\":{\"type\":"
			"\"thinking_delta\",\"thinking\":\"hm\"}")
			E("content_block_delta",
			    ",\"index\":0,\"delta\":{\"type\":"
			    "\"signature_delta\",\"signature\":\"s\"}")
			    BSTOP("0") E("content_block_start",
				",\"index\":1,\"content_block\":{"
				"\"type\":\"redacted_thinking\",\"data\":"
				"\"x\"}") BSTOP("1") TEXT("2") TD("2", "a")
				BSTOP("2") DELTA("\"stop_sequence\"") STOP),
	    true, "begin text(a) finish(stop) " USED " done" },
	{ "unknown events and deltas", 200, SSE,
	    S(START E("shiny_new", ",\"x\":1") E("content_block_delta",
		",\"index\":9,\"delta\":{\"type\":\"new_delta\",\"x\":1}")
		    DELTA("\"end_turn\"") STOP),
	    true, "begin finish(stop) " USED " done" },
	{ "refusal", 200, SSE, S(START DELTA("\"refusal\"") STOP), true,
	    "begin finish(content_filter) " USED " done" },
	{ "window exceeded", 200, SSE,
	    S(START DELTA("\"model_context_window_exceeded\"") STOP), true,
	    "begin finish(length) " USED " done" },
	{ "pause", 200, SSE, S(START DELTA("\"pause_turn\"") STOP), true,
	    "begin finish(stop) " USED " done" },
	{ "unknown reason", 200, SSE, S(START DELTA("\"odd\"") STOP), true,
	    "begin error(provider,bad_finish,200,-1,,,)" },
	{ "no reason", 200, SSE, S(START DELTA("null") STOP), true,
	    "begin error(provider,no_finish,200,-1,,,)" },
	{ "corrected usage", 200, SSE,
	    S(START E("message_delta",
		",\"delta\":{\"stop_reason\":\"end_turn\"}"
		",\"usage\":{\"input_tokens\":7,\"cache_creation_input_"
		"tokens\":0,"
		"\"cache_read_input_tokens\":1,\"output_tokens\":3,"
		"\"output_tokens_details\":{\"thinking_tokens\":2}}") STOP),
	    true, "begin finish(stop) usage(8,3,1,2) done" },
	{ "no usage", 200, SSE,
	    S(E("message_start", ",\"message\":{}") E("message_delta",
		",\"delta\":{\"stop_reason\":\"end_turn\"}") STOP),
	    true, "begin finish(stop) done" },
	{ "no message_stop, clean", 200, SSE,
	    S(START TEXT("0") TD("0", "a") BSTOP("0") DELTA("\"end_turn\"")),
	    true, "begin text(a) " EOF_ERROR },
	{ "no message_stop, cut", 200, SSE, S(START TEXT("0") TD("0", "a")),
	    false, "begin text(a) " EOF_ERROR },
	{ "message_stop without blank line", 200, SSE,
	    S(START DELTA("\"end_turn\"") "event: message_stop\n"
					  "data: {\"type\":\"message_stop\"}"),
	    true, "begin finish(stop) " USED " done" },
	{ "comments at the end", 200, SSE,
	    S(START DELTA("\"end_turn\"") STOP ": bye\n\n"), true,
	    "begin finish(stop) " USED " done" },
	{ "error event", 200, SSE,
	    S(START TEXT("0") TD("0", "a") E("error",
		",\"error\":{\"type\":"
		"\"overloaded_error\",\"message\":\"Overloaded\"}")),
	    true,
	    "begin text(a) error(capacity,overloaded,200,-1,Overloaded,,"
	    "overloaded_error)" },
	{ "error first", 200, SSE,
	    S(E("error",
		",\"error\":{\"type\":\"api_error\",\"message\":"
		"\"m\"}")),
	    true, "error(provider,error_in_200,200,-1,m,,api_error)" },
	{ "error after the reason", 200, SSE,
	    S(START DELTA("\"end_turn\"") E("error",
		",\"error\":{\"type\":"
		"\"api_error\",\"message\":\"m\"}")),
	    true, "begin error(provider,error_in_200,200,-1,m,,api_error)" },
	{ "broken JSON", 200, SSE,
	    S(START "event: content_block_delta\ndata: {\"type\":\n\n" STOP),
	    true, "begin error(provider,bad_json,200,-1,,,)" },
	{ "ill-formed UTF-8", 200, SSE, S(START TEXT("0") TD("0", "\xff")),
	    true, "begin error(provider,bad_json,200,-1,,,)" },
	{ "half a character", 200, SSE, S(START TEXT("0") TD("0", "a\xe6\x97")),
	    true, "begin error(provider,bad_json,200,-1,,,)" },
	{ "lone surrogates", 200, SSE,
	    S(START TEXT("0") TD("0", "a\\ud83d") TD("0", "\\ude42b") BSTOP("0")
		    DELTA("\"end_turn\"") STOP),
	    true,
	    "begin text(a\xef\xbf\xbd) text(\xef\xbf\xbd"
	    "b) finish(stop) " USED " done" },
	{ "tool cut by the limit", 200, SSE,
	    S(START TOOL("0", "toolu_1", "f") JD("0", "{\\\"a\\\":") BSTOP("0")
		    DELTA("\"max_tokens\"") STOP),
	    true, "begin finish(length) " USED " done" },
	{ "tool cut by the stream", 200, SSE,
	    S(START TOOL("0", "t1", "f") JD("0", "{}") BSTOP("0")
		    TOOL("1", "t2", "f") JD("1", "{\\\"a\\\":")),
	    false, "begin tool(t1,f,{}) " EOF_ERROR },
	{ "odd arguments", 200, SSE,
	    S(START TOOL("0", "t1", "f") JD("0", "[1]") BSTOP("0")
		    DELTA("\"tool_use\"") STOP),
	    true, "begin tool(t1,f,[1]) finish(tool_calls) " USED " done" },
	{ "arguments cut inside an escape", 200, SSE,
	    S(START TOOL("0", "t1", "f") JD("0", "{\\\"a\\\":\\\"\\\\u00")
		    JD("0", "e9\\\"}") BSTOP("0") DELTA("\"tool_use\"") STOP),
	    true,
	    "begin tool(t1,f,{\"a\":\"\\u00e9\"}) finish(tool_calls) " USED
	    " done" },
	{ "input in the start", 200, SSE,
	    S(START E("content_block_start",
		",\"index\":0,\"content_block\":{"
		"\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"f\",\"input\":{"
		"\"a\": 1}}") BSTOP("0") DELTA("\"tool_use\"") STOP),
	    true,
	    "begin tool(t1,f,{\"a\":1}) finish(tool_calls) " USED " done" },
	{ "tool without name", 200, SSE,
	    S(START TOOL("0", "t1", "") BSTOP("0") DELTA("\"tool_use\"") STOP),
	    true, "begin error(provider,bad_tool_call,200,-1,,,)" },
	{ "blocks without index", 200, SSE,
	    S(START E("content_block_start",
		",\"content_block\":{\"type\":"
		"\"tool_use\",\"id\":\"t1\",\"name\":\"f\",\"input\":{}}")
		    E("content_block_delta",
			",\"delta\":{\"type\":"
			"\"input_json_delta\",\"partial_json\":\"{}\"}")
			E("content_block_stop", "") DELTA("\"tool_use\"") STOP),
	    true, "begin tool(t1,f,{}) finish(tool_calls) " USED " done" },
	{ "delta without block", 200, SSE,
	    S(START JD("3", "{}") E("content_block_delta",
		",\"delta\":{"
		"\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}")
		    DELTA("\"end_turn\"") STOP),
	    true, "begin finish(stop) " USED " done" },
};

static const struct wire_case plain[] = {
	{ "answer", 200, JSON,
	    S("{\"id\":\"msg\",\"type\":\"message\",\"role\":\"assistant\","
	      "\"content\":[{\"type\":\"text\",\"text\":\"Let me look.\"},"
	      "{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"f\","
	      "\"input\":"
	      "{\"id\": "
	      "42}},{\"type\":\"tool_use\",\"id\":\"toolu_2\",\"name\":"
	      "\"g\",\"input\":{}}],\"stop_reason\":\"tool_use\",\"usage\":{"
	      "\"input_tokens\":31,\"output_tokens\":22}}"),
	    true,
	    "begin text(Let me look.) tool(toolu_1,f,{\"id\":42}) "
	    "tool(toolu_2,g,{}) finish(tool_calls) usage(31,22,-1,-1) done" },
	{ "thinking", 200, JSON,
	    S("{\"content\":[{\"type\":\"thinking\",\"thinking\":\"x\","
	      "\"signature\":\"s\"},{\"type\":\"text\",\"text\":\"a\"}],"
	      "\"stop_reason\":\"end_turn\"}"),
	    true, "begin text(a) finish(stop) done" },
	{ "nothing said", 200, JSON,
	    S("{\"content\":[],\"stop_reason\":\"end_turn\"}"), true,
	    "begin finish(stop) done" },
	{ "no reason", 200, JSON, S("{\"content\":[],\"stop_reason\":null}"),
	    true, "begin error(provider,no_finish,200,-1,,,)" },
	{ "something else", 200, JSON, S("{\"choices\":[]}"), true,
	    "error(provider,no_content,200,-1,,,)" },
	{ "error in a 200", 200, JSON,
	    S("{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\","
	      "\"message\":\"m\"}}"),
	    true, "error(capacity,rate_limit,200,-1,m,,rate_limit_error)" },
	{ "cut", 200, JSON, S("{\"content\":[{\"type\":\"te"), false,
	    EOF_ERROR },
	{ "HTML", 200, "content-type: text/html\r\n", S("<html>"), true,
	    "error(provider,html,200,-1,,,)" },
};

#define ERR(type, msg)                                      \
	S("{\"type\":\"error\",\"error\":{\"type\":\"" type \
	  "\",\"message\":\"" msg "\"},\"request_id\":\"req_1\"}")

/* One row for each rule of the table. */
static const struct wire_case errors[] = {
	{ "too large type", 400, JSON, ERR("request_too_large", "m"), true,
	    "error(context,request_too_large,400,-1,m,,request_too_large)" },
	{ "413", 413, "", S(""), true, "error(context,http_413,413,-1,,,)" },
	{ "prompt", 400, JSON,
	    ERR("invalid_request_error", "prompt is too long: 9 > 8"), true,
	    "error(context,context_length,400,-1,prompt is too long: 9 > 8,,"
	    "invalid_request_error)" },
	{ "limit", 400, JSON,
	    ERR("invalid_request_error",
		"input length and max_tokens exceed context limit"),
	    true,
	    "error(context,context_length,400,-1,"
	    "input length and max_tokens exceed context limit,,"
	    "invalid_request_error)" },
	{ "window", 400, JSON,
	    ERR("invalid_request_error", "the context window"), true,
	    "error(context,context_length,400,-1,the context window,,"
	    "invalid_request_error)" },
	{ "policy", 400, JSON,
	    ERR("invalid_request_error",
		"Output blocked by content filtering policy"),
	    true,
	    "error(policy,content_policy,400,-1,"
	    "Output blocked by content filtering policy,,"
	    "invalid_request_error)" },
	{ "credit", 400, JSON,
	    ERR("invalid_request_error", "Your credit balance is too low"),
	    true,
	    "error(auth,insufficient_quota,400,-1,"
	    "Your credit balance is too low,,invalid_request_error)" },
	{ "401", 401, JSON, ERR("authentication_error", "m"), true,
	    "error(auth,authentication_error,401,-1,m,,authentication_error)" },
	{ "402", 402, JSON, ERR("billing_error", "m"), true,
	    "error(auth,billing_error,402,-1,m,,billing_error)" },
	{ "403", 403, JSON, ERR("permission_error", "m"), true,
	    "error(auth,permission_error,403,-1,m,,permission_error)" },
	{ "404", 404, JSON, ERR("not_found_error", "model: x"), true,
	    "error(auth,model_not_found,404,-1,model: x,,not_found_error)" },
	{ "403 of a proxy", 403, "", S("<html>"), true,
	    "error(auth,http_403,403,-1,,,)" },
	{ "429", 429, JSON "retry-after: 3\r\n", ERR("rate_limit_error", "m"),
	    true, "error(capacity,http_429,429,3000,m,,rate_limit_error)" },
	{ "503", 503, "", S(""), true, "error(provider,http_503,503,-1,,,)" },
	{ "529", 529, JSON, ERR("overloaded_error", "Overloaded"), true,
	    "error(capacity,http_529,529,-1,Overloaded,,overloaded_error)" },
	{ "overloaded elsewhere", 500, JSON, ERR("overloaded_error", "m"), true,
	    "error(capacity,overloaded,500,-1,m,,overloaded_error)" },
	{ "rate limit elsewhere", 400, JSON, ERR("rate_limit_error", "m"), true,
	    "error(capacity,rate_limit,400,-1,m,,rate_limit_error)" },
	{ "408", 408, "", S(""), true, "error(provider,http_408,408,-1,,,)" },
	{ "409", 409, JSON, ERR("conflict_error", "m"), true,
	    "error(provider,http_409,409,-1,m,,conflict_error)" },
	{ "425", 425, "", S(""), true, "error(provider,http_425,425,-1,,,)" },
	{ "400 of a proxy", 400, "", S("<html>"), true,
	    "error(provider,http_400,400,-1,,,)" },
	{ "400", 400, JSON, ERR("invalid_request_error", "messages.1: bad"),
	    true,
	    "error(caller,http_400,400,-1,messages.1: bad,,"
	    "invalid_request_error)" },
	{ "invalid in a 200", 200, JSON, ERR("invalid_request_error", "m"),
	    true,
	    "error(caller,invalid_request,200,-1,m,,"
	    "invalid_request_error)" },
	{ "500", 500, JSON, ERR("api_error", "m"), true,
	    "error(provider,http_500,500,-1,m,,api_error)" },
	{ "502", 502, "content-type: text/html\r\n", S("<html>"), true,
	    "error(provider,http_502,502,-1,,,)" },
	{ "504", 504, JSON, ERR("timeout_error", "m"), true,
	    "error(provider,http_504,504,-1,m,,timeout_error)" },
};

static void
check_all(const struct wire_case *c, size_t n)
{
	for (; n > 0; n--, c++)
		wire_check(hf_dialect(HF_DIALECT_ANTHROPIC), c);
}

static void
test_streams(void **state)
{
	(void)state;
	check_all(streams, hf_countof(streams));
}

static void
test_plain(void **state)
{
	(void)state;
	check_all(plain, hf_countof(plain));
}

static void
test_errors(void **state)
{
	(void)state;
	check_all(errors, hf_countof(errors));
}

/* Complete only with the whole message_stop. */
static void
test_cut_everywhere(void **state)
{
	const struct wire_case *c = &streams[1];
	size_t n, end = c->body.size - 2; /* its newlines may be missing */

	(void)state;
	for (n = 0; n <= c->body.size; n++) {
		struct wire_case cut = *c;
		struct hf_buf out;
		bool done;

		hf_buf_init(&out, HF_BUF_NOCAP);
		cut.body.size = n;
		cut.clean = n % 2 == 0;
		wire_decode(hf_dialect(HF_DIALECT_ANTHROPIC), &cut, 0,
		    SIZE_MAX / 2, &out);
		done = strstr(out.data, " done") != NULL;
		assert_int_equal(done, n >= end);
		assert_int_equal(!done, strstr(out.data, "error(") != NULL);
		hf_buf_free(&out);
	}
}

static void
count_events(void *arg, const struct hf_event *ev)
{
	unsigned *n = arg;

	n[ev->type]++;
	if (ev->type == HF_EV_TOOL_CALL)
		n[15] = (unsigned)ev->tool.arguments.size;
}

static void
test_large_arguments(void **state)
{
	const struct hf_dialect *dl = hf_dialect(HF_DIALECT_ANTHROPIC);
	unsigned n[16] = { 0 }, i, k;
	struct hf_decoder *d =
	    dl->decoder_new(&wire_target, true, count_events, n);
	struct hf_buf b;
	int64_t t0 = hf_now_us();

	(void)state;
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_decoder_headers(d, 200, hf_str(SSE));
	hf_decoder_data(
	    d, hf_str(START TOOL("0", "t", "f") JD("0", "{\\\"a\\\":\\\"")));
	for (i = 0; i < 20000; i++) {
		hf_buf_reset(&b);
		hf_buf_puts(&b,
		    "event: content_block_delta\ndata: {\"type\":"
		    "\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
		    "\"input_json_delta\",\"partial_json\":\"");
		for (k = 0; k < 10; k++)
			hf_buf_puts(&b, "0123456789");
		hf_buf_puts(&b, "\"}}\n\n");
		hf_decoder_data(d, hf_buf_str(&b));
	}
	hf_decoder_data(
	    d, hf_str(JD("0", "\\\"}") BSTOP("0") DELTA("\"tool_use\"") STOP));
	assert_true(hf_decoder_finished(d));
	assert_int_equal(n[HF_EV_TOOL_CALL], 1);
	assert_int_equal(n[HF_EV_PROGRESS], 20003);
	assert_int_equal(n[15], 2000008);
	assert_true(hf_now_us() - t0 < 10 * 1000000);
	hf_decoder_free(d);
	hf_buf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_cut_everywhere),
		cmocka_unit_test(test_large_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
