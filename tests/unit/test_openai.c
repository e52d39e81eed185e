/*
 * The openai dialect coming back: answers, errors and streams in every split.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tests/unit/wire_util.h"

#define SSE "content-type: text/event-stream; charset=utf-8\r\n"
#define JSON "Content-Type: application/json\r\n"
#define D(json) "data: " json "\n\n"
#define CH(delta, finish)                                          \
	D("{\"id\":\"x\",\"object\":\"chat.completion."            \
	  "chunk\",\"choices\":[{\"index\":0,\"delta\":" delta "," \
	  "\"finish_reason\":" finish "}],\"usage\":null}")
#define USAGE                                                \
	D("{\"choices\":[],\"usage\":{\"prompt_tokens\":31," \
	  "\"completion_tokens\":6,\"total_tokens\":37,"     \
	  "\"prompt_tokens_details\":{\"cached_tokens\":4}," \
	  "\"completion_tokens_details\":{\"reasoning_tokens\":2}}}")
#define DONE D("[DONE]")
#define ROLE                                           \
	CH("{\"role\":\"assistant\",\"content\":\"\"," \
	   "\"refusal\":null}",                        \
	    "null")
#define TC(call) CH("{\"tool_calls\":[" call "]}", "null")
#define EOF_ERROR "error(network,eof,200,-1,,,)"

static const struct wire_case streams[] = {
	{ "plain text", 200, SSE,
	    S(ROLE CH("{\"content\":\"Your \"}", "null")
		    CH("{\"content\":\"order\"}", "null") CH("{}", "\"stop\"")
			USAGE DONE),
	    true,
	    "begin text(Your ) text(order) finish(stop) usage(31,6,4,2) done" },
	{ "CRLF and comments", 200, SSE,
	    S(": hi\r\n\r\ndata: "
	      "{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}"
	      "\r\n\r\n:\r\ndata: "
	      "{\"choices\":[{\"delta\":{},\"finish_reason\":"
	      "\"stop\"}]}\r\n\r\ndata: [DONE]\r\n\r\n"),
	    true, "begin text(a) finish(stop) done" },
	{ "no DONE, clean end", 200, SSE,
	    S(CH("{\"content\":\"a\"}", "\"stop\"")), true,
	    "begin text(a) finish(stop) done" },
	{ "no DONE, cut", 200, SSE, S(CH("{\"content\":\"a\"}", "\"stop\"")),
	    false, "begin text(a) finish(stop) done" },
	{ "DONE without blank line", 200, SSE,
	    S(CH("{\"content\":\"a\"}", "\"stop\"") "data: [DONE]"), true,
	    "begin text(a) finish(stop) done" },
	{ "finish without blank line", 200, SSE,
	    S(CH("{\"content\":\"a\"}",
		"null") "data: {\"choices\":[{\"delta\":"
			"{},\"finish_reason\":\"stop\"}]}"),
	    true, "begin text(a) finish(stop) done" },
	{ "half an event at the end", 200, SSE,
	    S(CH("{\"content\":\"a\"}", "null") "data: {\"choices\":[{\"del"),
	    false, "begin text(a) " EOF_ERROR },
	{ "clean end without finish", 200, SSE,
	    S(ROLE CH("{\"content\":\"a\"}", "null")), true,
	    "begin text(a) " EOF_ERROR },
	{ "DONE without finish", 200, SSE,
	    S(ROLE CH("{\"content\":\"a\"}", "null") DONE), true,
	    "begin text(a) error(provider,no_finish,200,-1,,,)" },
	{ "headers only", 200, SSE, S(""), true,
	    "error(provider,empty,200,-1,,,)" },
	{ "headers only, cut", 200, SSE, S(""), false, EOF_ERROR },
	{ "comments only", 200, SSE, S(": a\n\n: b\n\n"), true, EOF_ERROR },
	{ "leading chunk without choices", 200, SSE,
	    S(D("{\"id\":\"\",\"model\":\"\",\"choices\":[],"
		"\"prompt_filter_results\":[]}")
		    CH("{\"content\":\"a\"}", "\"stop\"") DONE),
	    true, "begin text(a) finish(stop) done" },
	{ "usage in each chunk", 200, SSE,
	    S(D("{\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":"
		"{\"prompt_tokens\":1,\"completion_tokens\":1}}")
		    D("{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]"
		      ","
		      "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}"
		      "}") DONE),
	    true, "begin text(a) finish(stop) usage(1,2,-1,-1) done" },
	{ "escapes", 200, SSE,
	    S(CH("{\"content\":\"\\u00e9\\ud83d\\ude42\\n\\\"\"}", "\"stop\"")
		    DONE),
	    true,
	    "begin text(\xc3\xa9\xf0\x9f\x99\x82\n\") finish(stop) done" },
	{ "raw UTF-8", 200, SSE,
	    S(CH("{\"content\":\"\xe6\x97\xa5\xe6\x9c\xac\xf0\x9f\x99\x82\"}",
		"\"stop\"") DONE),
	    true,
	    "begin text(\xe6\x97\xa5\xe6\x9c\xac\xf0\x9f\x99\x82) finish(stop) "
	    "done" },
	{ "content as parts", 200, SSE,
	    S(CH("{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":"
		 "\"text\",\"text\":\"b\"}]}",
		"\"stop\"") DONE),
	    true, "begin text(a) text(b) finish(stop) done" },
	{ "refusal", 200, SSE,
	    S(ROLE CH("{\"refusal\":\"No.\"}", "null") CH("{}", "\"stop\"")
		    DONE),
	    true, "begin refusal(No.) finish(stop) done" },
	{ "reasoning is left aside", 200, SSE,
	    S(CH("{\"reasoning_content\":\"hm\"}", "null")
		    CH("{\"content\":\"a\"}", "\"length\"") DONE),
	    true, "begin text(a) finish(length) done" },
	{ "filter", 200, SSE, S(ROLE CH("{}", "\"content_filter\"") DONE), true,
	    "begin finish(content_filter) done" },
	{ "unknown finish", 200, SSE,
	    S(CH("{\"content\":\"a\"}", "\"abort\"") DONE), true,
	    "begin text(a) error(provider,bad_finish,200,-1,,,)" },
	{ "empty finish word", 200, SSE,
	    S(CH("{\"content\":\"a\"}", "\"\"") CH("{}", "\"stop\"") DONE),
	    true, "begin text(a) finish(stop) done" },
	{ "content after the finish is ignored", 200, SSE,
	    S(CH("{\"content\":\"a\"}", "\"stop\"")
		    CH("{\"content\":\"b\"}", "\"stop\"") DONE),
	    true, "begin text(a) finish(stop) done" },
	{ "other choices are ignored", 200, SSE,
	    S(D("{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"no\"},"
		"\"finish_reason\":\"stop\"},{\"index\":0,\"delta\":{"
		"\"content\":"
		"\"a\"}}]}") CH("{}", "\"stop\"") DONE),
	    true, "begin text(a) finish(stop) done" },
	{ "broken JSON", 200, SSE,
	    S(CH(
		"{\"content\":\"a\"}", "null") "data: {\"choices\":[{\"delta\":"
					       "\n\n" CH("{}", "\"stop\"")),
	    true, "begin text(a) error(provider,bad_json,200,-1,,,)" },
	{ "broken JSON after the finish", 200, SSE,
	    S(CH("{\"content\":\"a\"}", "\"stop\"") "data: {{\n\n" DONE), true,
	    "begin text(a) finish(stop) done" },
	{ "ill-formed UTF-8", 200, SSE,
	    S("data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n"),
	    true, "error(provider,bad_json,200,-1,,,)" },
	{ "half a character", 200, SSE,
	    S("data: "
	      "{\"choices\":[{\"delta\":{\"content\":\"a\xe6\x97\"}}]}\n\n"),
	    true, "error(provider,bad_json,200,-1,,,)" },
	{ "lone surrogates", 200, SSE,
	    S(CH("{\"content\":\"a\\ud83d\"}", "null")
		    CH("{\"content\":\"\\ude42b\"}", "\"stop\"") DONE),
	    true,
	    "begin text(a\xef\xbf\xbd) text(\xef\xbf\xbd"
	    "b) finish(stop) done" },
	{ "not an object", 200, SSE, S(D("17")), true,
	    "error(provider,bad_event,200,-1,,,)" },
	{ "empty data", 200, SSE,
	    S("data:\n\ndata: \n\n" CH("{\"content\":\"a\"}", "\"stop\"")),
	    true, "begin text(a) finish(stop) done" },
	{ "NUL byte", 200, SSE,
	    S(CH("{\"content\":\"a\"}", "null") "data: \0\n\n"), true,
	    "begin text(a) error(provider,bad_stream,200,-1,,,)" },
	{ "stream without content type", 200, "",
	    S(CH("{\"content\":\"a\"}", "\"stop\"") DONE), true,
	    "begin text(a) finish(stop) done" },
	{ "stream called JSON", 200, JSON,
	    S(CH("{\"content\":\"a\"}", "\"stop\"") DONE), true,
	    "begin text(a) finish(stop) done" },
	/* tool calls */
	{ "two calls", 200, SSE,
	    S(CH(
		"{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{"
		"\"index\":0,\"id\":\"c1\",\"type\":\"function\",\"function\":{"
		"\"name\":\"f\",\"arguments\":\"\"}}]}",
		"null") TC("{\"index\":0,\"function\":{\"arguments\":\"{"
			   "\\\"id\\\":\"}}")
		    TC("{\"index\":0,\"function\":{\"arguments\":\"42}\"}}")
			TC("{\"index\":1,\"id\":\"c2\",\"type\":\"function\","
			   "\"function\":{"
			   "\"name\":\"f\",\"arguments\":\"{\\\"id\\\":43}\"}}")
			    CH("{}", "\"tool_calls\"") DONE),
	    true,
	    "begin tool(c1,f,{\"id\":42}) tool(c2,f,{\"id\":43}) "
	    "finish(tool_calls) done" },
	{ "text, then a call; reason stop", 200, SSE,
	    S(CH("{\"content\":\"Hm.\"}", "null") TC(
		"{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"f\","
		"\"arguments\":\"{}\"}}") CH("{}", "\"stop\"") DONE),
	    true, "begin text(Hm.) tool(c1,f,{}) finish(tool_calls) done" },
	{ "no call but the reason", 200, SSE,
	    S(CH("{\"content\":\"a\"}", "\"tool_calls\"") DONE), true,
	    "begin text(a) finish(stop) done" },
	{ "no arguments", 200, SSE,
	    S(TC("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"f\","
		 "\"arguments\":\"\"}}") CH("{}", "\"tool_calls\"") DONE),
	    true, "begin tool(c1,f,{}) finish(tool_calls) done" },
	{ "arguments missing", 200, SSE,
	    S(TC("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"f\"}}")
		    CH("{}", "\"tool_calls\"") DONE),
	    true, "begin tool(c1,f,{}) finish(tool_calls) done" },
	{ "interleaved", 200, SSE,
	    S(TC("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"f\","
		 "\"arguments\":\"{\\\"a\\\":\"}},{\"index\":1,\"id\":\"c2\","
		 "\"function\":{\"name\":\"g\",\"arguments\":\"{\\\"b\\\"\"}}")
		    TC("{\"index\":0,\"function\":{\"arguments\":\"1}\"}}")
			TC("{\"index\":1,\"function\":{\"arguments\":\":2}\"}}")
			    CH("{}", "\"tool_calls\"") DONE),
	    true,
	    "begin tool(c1,f,{\"a\":1}) tool(c2,g,{\"b\":2}) "
	    "finish(tool_calls) done" },
	{ "without index, by id", 200, SSE,
	    S(TC("{\"id\":\"c1\",\"function\":{\"name\":\"f\",\"arguments\":"
		 "\"{\\\"a\\\"\"}},{\"id\":\"c2\",\"function\":{\"name\":\"g\","
		 "\"arguments\":\"{\"}}")
		    TC("{\"id\":\"c1\",\"function\":{\"arguments\":\":1}\"}}")
			TC("{\"id\":\"c2\",\"function\":{\"arguments\":\"}\"}}")
			    CH("{}", "\"tool_calls\"") DONE),
	    true,
	    "begin tool(c1,f,{\"a\":1}) tool(c2,g,{}) finish(tool_calls) "
	    "done" },
	{ "without index and id, by place", 200, SSE,
	    S(TC("{\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}")
		    TC("{\"function\":{\"arguments\":\"}\"}}")
			TC("{\"function\":{\"name\":\"g\",\"arguments\":{\"x\":"
			   " [1]}}}") CH("{}", "\"tool_calls\"") DONE),
	    true,
	    "begin tool(,f,{}) tool(,g,{\"x\":[1]}) finish(tool_calls) done" },
	{ "every call is number 0", 200, SSE,
	    S(TC("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"f\","
		 "\"arguments\":\"{}\"}}")
		    TC("{\"index\":0,\"id\":\"c2\","
		       "\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}")
			CH("{}", "\"tool_calls\"") DONE),
	    true, "begin tool(c1,f,{}) tool(c2,g,{}) finish(tool_calls) done" },
	{ "name and id repeated", 200, SSE,
	    S(TC("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"f\","
		 "\"arguments\":\"{\"}}")
		    TC("{\"index\":0,\"id\":\"c1\","
		       "\"function\":{\"name\":\"f\",\"arguments\":\"}\"}}")
			CH("{}", "\"tool_calls\"") DONE),
	    true, "begin tool(c1,f,{}) finish(tool_calls) done" },
	{ "arguments cut inside an escape", 200, SSE,
	    S(TC("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"f\","
		 "\"arguments\":\"{\\\"a\\\":\\\"\\\\u00\"}}")
		    TC("{\"index\":0,\"function\":{\"arguments\":\"e9\\\"}\"}}")
			CH("{}", "\"tool_calls\"") DONE),
	    true,
	    "begin tool(c1,f,{\"a\":\"\\u00e9\"}) finish(tool_calls) done" },
	{ "cut call is not a call", 200, SSE,
	    S(TC("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"f\","
		 "\"arguments\":\"{\\\"a\\\":\"}}") CH("{}", "\"length\"")
		    DONE),
	    true, "begin finish(length) done" },
	{ "cut stream delivers no half call", 200, SSE,
	    S(TC("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"f\","
		 "\"arguments\":\"{\\\"a\\\":1}\"}}")
		    TC("{\"index\":1,\"id\":\"c2\","
		       "\"function\":{\"name\":\"g\",\"arguments\":\"{\"}}")),
	    false, "begin tool(c1,f,{\"a\":1}) " EOF_ERROR },
	{ "invalid arguments are passed on", 200, SSE,
	    S(TC("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"f\","
		 "\"arguments\":\"{oops\"}}") CH("{}", "\"tool_calls\"") DONE),
	    true, "begin tool(c1,f,{oops) finish(tool_calls) done" },
	{ "call without name", 200, SSE,
	    S(TC("{\"index\":0,\"id\":\"c1\",\"function\":{\"arguments\":"
		 "\"{}\"}}") CH("{}", "\"tool_calls\"") DONE),
	    true, "begin error(provider,bad_tool_call,200,-1,,,)" },
	{ "more after a whole call", 200, SSE,
	    S(TC("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"f\","
		 "\"arguments\":\"{}\"}}") TC("{\"index\":1,\"id\":\"c2\","
					      "\"function\":{\"name\":\"g\","
					      "\"arguments\":\"\"}}")
		    TC("{\"index\":0,\"function\":{\"arguments\":\" x\"}}")),
	    true,
	    "begin tool(c1,f,{}) error(provider,bad_tool_call,200,-1,,,)" },
	{ "old function_call", 200, SSE,
	    S(CH("{\"function_call\":{\"name\":\"f\",\"arguments\":\"\"}}",
		"null") CH("{\"function_call\":{\"arguments\":\"{}\"}}", "null")
		    CH("{}", "\"function_call\"") DONE),
	    true, "begin tool(,f,{}) finish(tool_calls) done" },
	/* errors inside a 200 */
	{ "first event is an error", 200, SSE,
	    S(D("{\"error\":{\"message\":\"slow\",\"type\":\"requests\","
		"\"code\":\"rate_limit_exceeded\"}}")),
	    true,
	    "error(capacity,rate_limit,200,-1,slow,rate_limit_exceeded,"
	    "requests)" },
	{ "later event is an error", 200, SSE,
	    S(CH("{\"content\":\"a\"}", "null") D(
		"{\"error\":{\"message\":"
		"\"boom\",\"type\":\"server_error\",\"code\":null}}") DONE),
	    true,
	    "begin text(a) error(provider,error_in_200,200,-1,boom,,"
	    "server_error)" },
	{ "numeric code", 200, SSE,
	    S(D("{\"error\":{\"message\":\"m\",\"code\":429}}")), true,
	    "error(capacity,http_429,200,-1,m,429,)" },
	{ "error is a string", 200, SSE, S(D("{\"error\":\"it broke\"}")), true,
	    "error(provider,error_in_200,200,-1,it broke,,)" },
	{ "error in an array", 200, SSE,
	    S(D("[{\"error\":{\"message\":\"m\",\"code\":503}}]")), true,
	    "error(provider,http_503,200,-1,m,503,)" },
	{ "object says error", 200, SSE,
	    S(D("{\"object\":\"error\",\"message\":\"m\",\"type\":\"Bad\","
		"\"code\":40303}")),
	    true, "error(provider,error_in_200,200,-1,m,40303,Bad)" },
	{ "error after the finish is ignored", 200, SSE,
	    S(CH("{\"content\":\"a\"}", "\"stop\"") D("{\"error\":\"x\"}")
		    DONE),
	    true, "begin text(a) finish(stop) done" },
	{ "null error is none", 200, SSE,
	    S(D("{\"error\":null,\"choices\":[{\"delta\":{\"content\":\"a\"},"
		"\"finish_reason\":\"stop\"}]}")),
	    true, "begin text(a) finish(stop) done" },
};

static const struct wire_case plain[] = {
	{ "answer", 200, JSON,
	    S("{\"id\":\"x\",\"choices\":[{\"index\":0,\"finish_reason\":"
	      "\"stop\",\"message\":{\"role\":\"assistant\",\"content\":\"Tue."
	      "\","
	      "\"refusal\":null}}],\"usage\":{\"prompt_tokens\":31,"
	      "\"completion_tokens\":6,\"total_tokens\":37}}"),
	    true, "begin text(Tue.) finish(stop) usage(31,6,-1,-1) done" },
	{ "white space before", 200, "",
	    S(" \r\n\t{\"choices\":[{\"message\":{\"content\":\"a\"},"
	      "\"finish_reason\":\"stop\"}]}\n"),
	    true, "begin text(a) finish(stop) done" },
	{ "tool calls, content null", 200, JSON,
	    S("{\"choices\":[{\"finish_reason\":\"tool_calls\",\"message\":{"
	      "\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":"
	      "\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
	      "\"{\\\"a\\\": 1}\"}},{\"id\":\"c2\",\"type\":\"function\","
	      "\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}"),
	    true,
	    "begin tool(c1,f,{\"a\": 1}) tool(c2,f,{}) finish(tool_calls) "
	    "done" },
	{ "calls without ids", 200, JSON,
	    S("{\"choices\":[{\"finish_reason\":\"stop\",\"message\":{"
	      "\"content\":[],\"tool_calls\":[{\"function\":{\"name\":\"f\","
	      "\"arguments\":\"{}\"}},{\"function\":{\"name\":\"g\","
	      "\"arguments\":"
	      "{}}}]}}]}"),
	    true, "begin tool(,f,{}) tool(,g,{}) finish(tool_calls) done" },
	{ "refusal", 200, JSON,
	    S("{\"choices\":[{\"finish_reason\":\"stop\",\"message\":{"
	      "\"content\":null,\"refusal\":\"No.\"}}]}"),
	    true, "begin refusal(No.) finish(stop) done" },
	{ "nothing said", 200, JSON,
	    S("{\"choices\":[{\"finish_reason\":\"stop\",\"message\":{"
	      "\"content\":\"\"}}]}"),
	    true, "begin finish(stop) done" },
	{ "no finish", 200, JSON,
	    S("{\"choices\":[{\"finish_reason\":null,\"message\":{\"content\":"
	      "\"a\"}}]}"),
	    true, "begin text(a) error(provider,no_finish,200,-1,,,)" },
	{ "no choices", 200, JSON, S("{\"choices\":[]}"), true,
	    "error(provider,no_choices,200,-1,,,)" },
	{ "something else", 200, JSON, S("{\"hello\":1}"), true,
	    "error(provider,no_choices,200,-1,,,)" },
	{ "error in a 200", 200, JSON,
	    S("{\"error\":{\"message\":\"m\",\"type\":\"insufficient_quota\","
	      "\"code\":\"insufficient_quota\"}}"),
	    true,
	    "error(auth,insufficient_quota,200,-1,m,insufficient_quota,"
	    "insufficient_quota)" },
	{ "cut", 200, JSON, S("{\"choices\":[{\"message\":{\"content\":\"a"),
	    false, EOF_ERROR },
	{ "broken", 200, JSON, S("{\"choices\":[}"), true,
	    "error(provider,bad_json,200,-1,,,)" },
	{ "HTML", 200, "content-type: text/html\r\n", S("<html>"), true,
	    "error(provider,html,200,-1,,,)" },
	{ "HTML called JSON", 200, JSON, S("\n<!doctype html><p>hi"), true,
	    "error(provider,html,200,-1,,,)" },
	{ "garbage", 200, JSON, S("OK"), true,
	    "error(provider,garbage,200,-1,,,)" },
	{ "empty", 200, JSON, S(""), true, "error(provider,empty,200,-1,,,)" },
	{ "white space only", 200, JSON, S(" \n "), true,
	    "error(provider,empty,200,-1,,,)" },
	{ "no content", 204, "", S(""), true,
	    "error(provider,empty,204,-1,,,)" },
};

#define ERR(msg, type, code)                     \
	S("{\"error\":{\"message\":\"" msg "\"," \
	  "\"type\":\"" type "\",\"param\":null,\"code\":" code "}}")

/* One row for each rule of the table. */
static const struct wire_case errors[] = {
	{ "content filter", 400, JSON, ERR("m", "t", "\"content_filter\""),
	    true, "error(policy,content_policy,400,-1,m,content_filter,t)" },
	{ "policy violation", 400, JSON,
	    ERR("m", "t", "\"content_policy_violation\""), true,
	    "error(policy,content_policy,400,-1,m,content_policy_violation,"
	    "t)" },
	{ "policy type", 400, JSON,
	    ERR("m", "content_policy_violation", "null"), true,
	    "error(policy,content_policy,400,-1,m,,content_policy_violation)" },
	{ "context", 400, JSON, ERR("m", "t", "\"context_length_exceeded\""),
	    true,
	    "error(context,context_length,400,-1,m,"
	    "context_length_exceeded,t)" },
	{ "context type", 400, JSON,
	    ERR("m", "exceed_context_size_error", "400"), true,
	    "error(context,context_length,400,-1,m,400,"
	    "exceed_context_size_error)" },
	{ "413", 413, JSON, ERR("m", "t", "null"), true,
	    "error(context,http_413,413,-1,m,,t)" },
	{ "413 by a proxy", 413, "", S("<html>413</html>"), true,
	    "error(context,http_413,413,-1,,,)" },
	{ "context text", 400, JSON,
	    ERR("This model's Maximum Context Length is 8", "t", "null"), true,
	    "error(context,context_length,400,-1,"
	    "This model's Maximum Context Length is 8,,t)" },
	{ "prompt text", 400, JSON, ERR("prompt is too long", "t", "null"),
	    true,
	    "error(context,context_length,400,-1,prompt is too long,,t)" },
	{ "window text", 400, JSON, ERR("the context window", "t", "null"),
	    true,
	    "error(context,context_length,400,-1,the context window,,t)" },
	{ "quota", 429, JSON, ERR("m", "t", "\"insufficient_quota\""), true,
	    "error(auth,insufficient_quota,429,-1,m,insufficient_quota,t)" },
	{ "quota type", 429, JSON, ERR("m", "insufficient_quota", "null"), true,
	    "error(auth,insufficient_quota,429,-1,m,,"
	    "insufficient_quota)" },
	{ "billing limit", 400, JSON,
	    ERR("m", "t", "\"billing_hard_limit_reached\""), true,
	    "error(auth,insufficient_quota,400,-1,m,"
	    "billing_hard_limit_reached,t)" },
	{ "billing off", 429, JSON, ERR("m", "t", "\"billing_not_active\""),
	    true,
	    "error(auth,insufficient_quota,429,-1,m,billing_not_active,"
	    "t)" },
	{ "key", 401, JSON, ERR("m", "t", "\"invalid_api_key\""), true,
	    "error(auth,invalid_api_key,401,-1,m,invalid_api_key,t)" },
	{ "key type", 400, JSON, ERR("m", "authentication_error", "null"), true,
	    "error(auth,invalid_api_key,400,-1,m,,"
	    "authentication_error)" },
	{ "model", 404, JSON, ERR("m", "t", "\"model_not_found\""), true,
	    "error(auth,model_not_found,404,-1,m,model_not_found,t)" },
	{ "401", 401, "", S(""), true, "error(auth,http_401,401,-1,,,)" },
	{ "402", 402, JSON, ERR("m", "t", "null"), true,
	    "error(auth,http_402,402,-1,m,,t)" },
	{ "403", 403, "", S("<html>"), true, "error(auth,http_403,403,-1,,,)" },
	{ "404", 404, JSON, S("{\"detail\":\"Not Found\"}"), true,
	    "error(auth,http_404,404,-1,Not Found,,)" },
	{ "405", 405, "", S(""), true, "error(auth,http_405,405,-1,,,)" },
	{ "429", 429, JSON, ERR("m", "tokens", "\"rate_limit_exceeded\""), true,
	    "error(capacity,http_429,429,-1,m,rate_limit_exceeded,"
	    "tokens)" },
	{ "429 with a hint", 429, JSON "Retry-After: 2\r\n",
	    ERR("m", "requests", "null"), true,
	    "error(capacity,http_429,429,2000,m,,requests)" },
	{ "429 bare", 429, "", S(""), true,
	    "error(capacity,http_429,429,-1,,,)" },
	{ "498", 498, JSON, ERR("m", "t", "\"capacity_exceeded\""), true,
	    "error(capacity,http_498,498,-1,m,capacity_exceeded,t)" },
	{ "503", 503, "retry-after-ms: 40\r\n", S("<html>"), true,
	    "error(provider,http_503,503,40,,,)" },
	{ "529", 529, JSON, ERR("m", "t", "null"), true,
	    "error(capacity,http_529,529,-1,m,,t)" },
	{ "rate code", 400, JSON, ERR("m", "t", "\"rate_limit_exceeded\""),
	    true, "error(capacity,rate_limit,400,-1,m,rate_limit_exceeded,t)" },
	{ "rate type", 500, JSON, ERR("m", "rate_limit_error", "null"), true,
	    "error(capacity,rate_limit,500,-1,m,,rate_limit_error)" },
	{ "overloaded type", 500, JSON, ERR("m", "overloaded_error", "null"),
	    true, "error(capacity,overloaded,500,-1,m,,overloaded_error)" },
	{ "overloaded code", 500, JSON, ERR("m", "t", "\"server_overloaded\""),
	    true, "error(capacity,overloaded,500,-1,m,server_overloaded,t)" },
	{ "overloaded text", 500, JSON,
	    ERR("We are Overloaded now", "server_error", "null"), true,
	    "error(capacity,overloaded,500,-1,We are Overloaded now,,"
	    "server_error)" },
	{ "408", 408, "", S(""), true, "error(provider,http_408,408,-1,,,)" },
	{ "409", 409, JSON, ERR("m", "t", "null"), true,
	    "error(provider,http_409,409,-1,m,,t)" },
	{ "425", 425, "", S(""), true, "error(provider,http_425,425,-1,,,)" },
	{ "400 of a proxy", 400, "content-type: text/html\r\n",
	    S("<html>Bad Request</html>"), true,
	    "error(provider,http_400,400,-1,,,)" },
	{ "400", 400, JSON, ERR("m", "invalid_request_error", "null"), true,
	    "error(caller,http_400,400,-1,m,,invalid_request_error)" },
	{ "400 in a string", 400, JSON, S("{\"error\":\"no\"}"), true,
	    "error(caller,http_400,400,-1,no,,)" },
	{ "400 in an array", 400, JSON,
	    S("[{\"error\":{\"message\":\"m\",\"code\":400,\"status\":"
	      "\"INVALID_ARGUMENT\"}}]"),
	    true, "error(caller,http_400,400,-1,m,400,)" },
	{ "400 of old vLLM", 400, JSON,
	    S("{\"object\":\"error\",\"message\":\"m\",\"type\":"
	      "\"BadRequestError\",\"param\":null,\"code\":400}"),
	    true, "error(caller,http_400,400,-1,m,400,BadRequestError)" },
	{ "422", 422, JSON, S("{\"detail\":[{\"loc\":[\"body\"]}]}"), true,
	    "error(caller,http_422,422,-1,,,)" },
	{ "invalid in a 200", 200, JSON,
	    ERR("m", "invalid_request_error", "null"), true,
	    "error(caller,invalid_request,200,-1,m,,invalid_request_error)" },
	{ "500", 500, JSON, ERR("m", "server_error", "null"), true,
	    "error(provider,http_500,500,-1,m,,server_error)" },
	{ "502", 502, "content-type: text/html\r\n",
	    S("<html><h1>502 Bad Gateway</h1>"), true,
	    "error(provider,http_502,502,-1,,,)" },
	{ "504, cut", 504, "", S("{\"error\":"), false,
	    "error(provider,http_504,504,-1,,,)" },
	{ "redirect", 302, "location: /x\r\n", S(""), true,
	    "error(provider,http_302,302,-1,,,)" },
};

static void
test_streams(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < hf_countof(streams); i++)
		wire_check(hf_dialect(HF_DIALECT_OPENAI), &streams[i]);
}

static void
test_plain(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < hf_countof(plain); i++)
		wire_check(hf_dialect(HF_DIALECT_OPENAI), &plain[i]);
}

static void
test_errors(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < hf_countof(errors); i++)
		wire_check(hf_dialect(HF_DIALECT_OPENAI), &errors[i]);
}

/* A stream cut after any byte: complete only from the finish on, and what was
 * said is a prefix. */
static void
test_cut_everywhere(void **state)
{
	const struct wire_case *c = &streams[0];
	const char *finish = strstr(c->body.p, "\"finish_reason\":\"stop\"");
	size_t n, end = (size_t)(strchr(finish, '\n') - c->body.p);

	(void)state;
	for (n = 0; n <= c->body.size; n++) {
		struct wire_case cut = *c;
		struct hf_buf out;
		bool done;

		hf_buf_init(&out, HF_BUF_NOCAP);
		cut.body.size = n;
		cut.clean = n % 2 == 0;
		wire_decode(
		    hf_dialect(HF_DIALECT_OPENAI), &cut, 0, SIZE_MAX / 2, &out);
		done = strstr(out.data, " done") != NULL;
		/* Without its newline the finish chunk is taken at the end. */
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

/* 2 MB of arguments in 20,000 deltas: linear. */
static void
test_large_arguments(void **state)
{
	const struct hf_dialect *dl = hf_dialect(HF_DIALECT_OPENAI);
	unsigned n[16] = { 0 }, i, k;
	struct hf_decoder *d =
	    dl->decoder_new(&wire_target, true, count_events, n);
	struct hf_buf b;
	int64_t t0 = hf_now_us();

	(void)state;
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_decoder_headers(d, 200, hf_str(SSE));
	hf_decoder_data(d,
	    hf_str(TC(
		"{\"index\":0,\"id\":\"a\",\"function\":{"
		"\"name\":\"f\",\"arguments\":\"[\\\"\"}},{\"index\":1,\"id\":"
		"\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"[\\\"\"}"
		"}")));
	for (i = 0; i < 20000; i++) {
		hf_buf_reset(&b);
		hf_buf_printf(&b,
		    "data: {\"choices\":[{\"delta\":{"
		    "\"tool_calls\":[{\"index\":%u,\"function\":{"
		    "\"arguments\":\"",
		    i % 2);
		for (k = 0; k < 10; k++)
			hf_buf_puts(&b, "0123456789");
		hf_buf_puts(&b, "\"}}]}}]}\n\n");
		hf_decoder_data(d, hf_buf_str(&b));
	}
	hf_decoder_data(d, hf_str(CH("{}", "\"tool_calls\"") DONE));
	assert_true(hf_decoder_finished(d));
	assert_int_equal(n[HF_EV_TOOL_CALL], 2);
	assert_int_equal(n[HF_EV_PROGRESS], 20002);
	assert_int_equal(n[15], 1000002);
	assert_int_equal(n[HF_EV_DONE], 1);
	assert_true(hf_now_us() - t0 < 10 * 1000000);
	hf_decoder_free(d);
	hf_buf_free(&b);
}

static void
test_caps(void **state)
{
	const struct hf_dialect *dl = hf_dialect(HF_DIALECT_OPENAI);
	struct hf_decoder *d;
	struct hf_buf out, b;
	unsigned i;

	(void)state;
	hf_buf_init(&out, HF_BUF_NOCAP);
	hf_buf_init(&b, HF_BUF_NOCAP);
	/* A line without end. */
	for (i = 0; i < 1024 * 1024; i++)
		hf_buf_put(&b, "data: xx", 8);
	hf_buf_puts(&b, "x");
	d = dl->decoder_new(&wire_target, true, wire_record, &out);
	hf_decoder_headers(d, 200, hf_str(SSE));
	hf_decoder_data(d, hf_buf_str(&b));
	assert_string_equal(out.data, "error(provider,bad_stream,200,-1,,,)");
	hf_decoder_free(d);
	/* A whole answer without end. */
	hf_buf_reset(&out);
	d = dl->decoder_new(&wire_target, false, wire_record, &out);
	hf_decoder_headers(d, 200, hf_str(JSON));
	hf_decoder_data(d, HF_STR("{"));
	for (i = 0; i < 5; i++)
		hf_decoder_data(d, hf_buf_str(&b));
	assert_string_equal(out.data, "error(provider,too_large,200,-1,,,)");
	hf_decoder_free(d);
	/* An error body is cut, not failed. */
	hf_buf_reset(&out);
	d = dl->decoder_new(&wire_target, false, wire_record, &out);
	hf_decoder_headers(d, 500, hf_str(""));
	hf_decoder_data(d, hf_buf_str(&b));
	hf_decoder_end(d, true);
	assert_string_equal(out.data, "error(provider,http_500,500,-1,,,)");
	hf_decoder_free(d);
	/* Too many calls. */
	hf_buf_reset(&out);
	hf_buf_reset(&b);
	for (i = 0; i < 200; i++)
		hf_buf_printf(&b,
		    "data: {\"choices\":[{\"delta\":{"
		    "\"tool_calls\":[{\"index\":%u,\"function\":{\"name\":"
		    "\"f\",\"arguments\":\"\"}}]}}]}\n\n",
		    i);
	d = dl->decoder_new(&wire_target, true, wire_record, &out);
	hf_decoder_headers(d, 200, hf_str(SSE));
	hf_decoder_data(d, hf_buf_str(&b));
	assert_string_equal(
	    out.data, "begin error(provider,too_many_tool_calls,200,-1,,,)");
	hf_decoder_free(d);
	hf_buf_free(&out);
	hf_buf_free(&b);
}

static void
test_classes(void **state)
{
	(void)state;
	assert_string_equal(hf_class_name(HF_CLASS_NONE), "ok");
	assert_string_equal(hf_class_name(HF_CLASS_CAPACITY), "capacity");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_cut_everywhere),
		cmocka_unit_test(test_large_arguments),
		cmocka_unit_test(test_caps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
