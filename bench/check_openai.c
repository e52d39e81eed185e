/*
 * Strict checks of chat completion requests: what the real service answers
 * with 400 or 401 is answered so here, in its words' shape.  Pure.
 */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "bench/dialect.h"
#include "bench/resume.h"

#define INVALID "invalid_request_error"

static int HF_PRINTF(4, 5) bad(struct hf_refusal *r, const char *code,
    const char *param, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return hf_refuse(r, 400, INVALID, code, param, "%s", text);
}

static int
bad_type(struct hf_refusal *r, const char *param, const char *expected)
{
	return bad(r, "invalid_type", param,
	    "Invalid type for '%s': expected %s.", param, expected);
}

static int
only(struct hf_refusal *r, json_t *o, const char *where,
    const char *const *known)
{
	const char *key = hf_unknown_key(o, known);
	char param[80];

	if (key == NULL)
		return 0;
	snprintf(param, sizeof(param), "%s.%s", where, key);
	return bad(
	    r, "unknown_parameter", param, "Unknown parameter: '%s'.", param);
}

/* --- content ------------------------------------------------------------ */

static int
check_part(struct hf_refusal *r, json_t *p, const char *where, const char *role)
{
	static const char *const text_keys[] = { "type", "text",
		"prompt_cache_breakpoint", NULL };
	static const char *const refusal_keys[] = { "type", "refusal", NULL };
	struct hf_str type = hf_json_str(json_object_get(p, "type"));
	bool user = strcmp(role, "user") == 0;

	if (hf_str_is(type, "text")) {
		if (!json_is_string(json_object_get(p, "text")))
			return bad_type(r, where, "a text part with a string");
		return only(r, p, where, text_keys);
	}
	if (strcmp(role, "assistant") == 0 && hf_str_is(type, "refusal")) {
		if (!json_is_string(json_object_get(p, "refusal")))
			return bad_type(r, where, "a string");
		return only(r, p, where, refusal_keys);
	}
	if (user &&
	    (hf_str_is(type, "image_url") || hf_str_is(type, "input_audio") ||
		hf_str_is(type, "file")))
		return 0;
	return bad(r, "invalid_value", where,
	    "Invalid value for a content "
	    "part of a %s message at '%s'.",
	    role, where);
}

static int
check_content(
    struct hf_refusal *r, json_t *c, const char *where, const char *role)
{
	char at[72];
	json_t *p;
	size_t i;

	if (json_is_string(c))
		return 0;
	if (!json_is_array(c))
		return bad_type(r, where, "a string or an array of parts");
	if (json_array_size(c) == 0)
		return bad(r, "empty_array", where,
		    "Invalid '%s': empty "
		    "array. Expected an array with minimum length 1.",
		    where);
	json_array_foreach(c, i, p)
	{
		snprintf(at, sizeof(at), "%s[%zu]", where, i);
		if (check_part(r, p, at, role) != 0)
			return -1;
	}
	return 0;
}

/* --- messages ----------------------------------------------------------- */

static int
check_calls(struct hf_refusal *r, json_t *calls, const char *where)
{
	static const char *const keys[] = { "id", "type", "function", NULL };
	static const char *const fkeys[] = { "name", "arguments", NULL };
	json_t *c;
	size_t i;

	if (!json_is_array(calls))
		return bad_type(r, where, "an array of tool calls");
	if (json_array_size(calls) == 0)
		return bad(r, "empty_array", where,
		    "Invalid '%s': empty "
		    "array. Expected an array with minimum length 1.",
		    where);
	json_array_foreach(calls, i, c)
	{
		json_t *f = json_object_get(c, "function");
		struct hf_str id = hf_json_str(json_object_get(c, "id"));

		if (only(r, c, where, keys) != 0 ||
		    only(r, f, where, fkeys) != 0)
			return -1;
		if (!hf_str_is(
			hf_json_str(json_object_get(c, "type")), "function"))
			return bad(r, "invalid_value", where,
			    "Invalid type "
			    "of a tool call at '%s'.",
			    where);
		if (id.size == 0)
			return bad_type(r, where, "tool calls with an id");
		if (id.size > 40)
			return bad(r, "string_above_max_length", where,
			    "Invalid '%s[%zu].id': string too long. Expected "
			    "a string with maximum length 40, but got a "
			    "string with length %zu instead.",
			    where, i, id.size);
		if (!hf_is_token(hf_json_str(json_object_get(f, "name")), 64))
			return bad(r, "invalid_value", where,
			    "Invalid "
			    "function name at '%s'.",
			    where);
		if (!json_is_string(json_object_get(f, "arguments")))
			return bad_type(r, where, "arguments as a string");
	}
	return 0;
}

static int
check_assistant(struct hf_refusal *r, json_t *m, const char *where)
{
	json_t *content = json_object_get(m, "content");
	json_t *calls = json_object_get(m, "tool_calls");
	char at[64];

	if (calls != NULL) {
		snprintf(at, sizeof(at), "%s.tool_calls", where);
		if (check_calls(r, calls, at) != 0)
			return -1;
	}
	snprintf(at, sizeof(at), "%s.content", where);
	if (content != NULL && !json_is_null(content))
		return check_content(r, content, at, "assistant");
	if (calls != NULL || json_is_string(json_object_get(m, "refusal")))
		return 0;
	return bad(r, NULL, at,
	    "Invalid value for 'content': expected a "
	    "string, got null.");
}

static int
check_message(struct hf_refusal *r, json_t *m, size_t i)
{
	static const char *const plain[] = { "role", "content", "name", NULL };
	static const char *const assistant[] = { "role", "content", "name",
		"refusal", "tool_calls", "audio", NULL };
	static const char *const tool[] = { "role", "content", "tool_call_id",
		NULL };
	struct hf_str role;
	char where[32], at[64];

	snprintf(where, sizeof(where), "messages[%zu]", i);
	snprintf(at, sizeof(at), "%s.content", where);
	if (!json_is_object(m))
		return bad_type(r, where, "an object");
	role = hf_json_str(json_object_get(m, "role"));
	if (hf_str_is(role, "assistant")) {
		if (only(r, m, where, assistant) != 0)
			return -1;
		return check_assistant(r, m, where);
	}
	if (hf_str_is(role, "tool")) {
		if (only(r, m, where, tool) != 0)
			return -1;
		if (!json_is_string(json_object_get(m, "tool_call_id")))
			return bad(r, "missing_required_parameter", where,
			    "Missing required parameter: "
			    "'%s.tool_call_id'.",
			    where);
		return check_content(
		    r, json_object_get(m, "content"), at, "tool");
	}
	if (!hf_str_is(role, "system") && !hf_str_is(role, "developer") &&
	    !hf_str_is(role, "user"))
		return bad(r, "invalid_value", where,
		    "Invalid value: '%.*s'. "
		    "Supported values are: 'system', 'assistant', 'user', "
		    "'tool', and 'developer'.",
		    HF_STR_ARG(role));
	if (only(r, m, where, plain) != 0)
		return -1;
	return check_content(r, json_object_get(m, "content"), at,
	    hf_str_is(role, "user") ? "user" : "system");
}

/* Each call is answered by exactly one tool message before anything else. */
static int
check_tool_order(struct hf_refusal *r, json_t *messages)
{
	json_t *open = NULL, *m;
	size_t i, k;
	int rc = 0;

	json_array_foreach(messages, i, m)
	{
		struct hf_str id =
		    hf_json_str(json_object_get(m, "tool_call_id"));
		size_t n = json_array_size(open);

		if (id.p == NULL && n > 0)
			break;
		if (id.p != NULL) {
			for (k = 0; k < n; k++)
				if (hf_str_eq(id,
					hf_json_str(json_array_get(open, k))))
					break;
			if (k == n) {
				rc = bad(r, NULL, "messages",
				    "Invalid "
				    "parameter: messages with role 'tool' "
				    "must be a response to a preceeding "
				    "message with 'tool_calls'.");
				goto out;
			}
			json_array_remove(open, k);
			continue;
		}
		json_decref(open);
		open = json_array();
		{
			json_t *calls = json_object_get(m, "tool_calls"), *c;

			json_array_foreach(calls, k, c)
			    json_array_append(open, json_object_get(c, "id"));
		}
	}
	if (json_array_size(open) > 0)
		rc = bad(r, NULL, "messages",
		    "An assistant message with "
		    "'tool_calls' must be followed by tool messages "
		    "responding to each 'tool_call_id'. The following "
		    "tool_call_ids did not have response messages: %s",
		    json_string_value(json_array_get(open, 0)));
out:
	json_decref(open);
	return rc;
}

/* Some servers take no assistant's message at the end. */
static int
check_last(struct hf_refusal *r, json_t *body)
{
	json_t *messages = json_object_get(body, "messages");
	json_t *last = json_array_get(messages, json_array_size(messages) - 1);

	if (!hf_str_is(
		hf_json_str(json_object_get(last, "role")), "assistant") ||
	    !hf_model_refuses(hf_json_str(json_object_get(body, "model"))))
		return 0;
	bad(r, NULL, "messages",
	    "Expected last role User or Tool (or Assistant with prefix True) "
	    "for serving but got assistant");
	r->prefill = true;
	return -1;
}

static int
check_messages(struct hf_refusal *r, json_t *messages)
{
	json_t *m;
	size_t i;

	if (messages == NULL)
		return bad(r, "missing_required_parameter", "messages",
		    "Missing required parameter: 'messages'.");
	if (!json_is_array(messages))
		return bad_type(r, "messages", "an array of objects");
	if (json_array_size(messages) == 0)
		return bad(r, "empty_array", "messages",
		    "Invalid "
		    "'messages': empty array. Expected an array with minimum "
		    "length 1, but got an empty array instead.");
	json_array_foreach(
	    messages, i, m) if (check_message(r, m, i) != 0) return -1;
	return check_tool_order(r, messages);
}

/* --- parameters --------------------------------------------------------- */

static int
check_tools(struct hf_refusal *r, json_t *body)
{
	static const char *const keys[] = { "type", "function", NULL };
	static const char *const fkeys[] = { "name", "description",
		"parameters", "strict", NULL };
	json_t *tools = json_object_get(body, "tools"), *t;
	size_t i;

	if (tools == NULL) {
		if (json_object_get(body, "tool_choice") != NULL)
			return bad(r, NULL, "tool_choice",
			    "Invalid value for "
			    "'tool_choice': 'tool_choice' is only allowed "
			    "when 'tools' are specified.");
		if (json_object_get(body, "parallel_tool_calls") != NULL)
			return bad(r, NULL, "parallel_tool_calls",
			    "Invalid "
			    "value for 'parallel_tool_calls': "
			    "'parallel_tool_calls' is only allowed when "
			    "'tools' are specified.");
		return 0;
	}
	if (!json_is_array(tools))
		return bad_type(r, "tools", "an array");
	if (json_array_size(tools) == 0 || json_array_size(tools) > 128)
		return bad(r, "empty_array", "tools",
		    "Invalid 'tools': "
		    "expected an array with 1 to 128 elements.");
	json_array_foreach(tools, i, t)
	{
		json_t *f = json_object_get(t, "function"), *p;

		if (only(r, t, "tools[]", keys) != 0 ||
		    only(r, f, "tools[].function", fkeys) != 0)
			return -1;
		if (!hf_str_is(
			hf_json_str(json_object_get(t, "type")), "function"))
			return bad(r, "invalid_value", "tools[].type",
			    "Invalid value for 'tools[].type'.");
		if (!hf_is_token(hf_json_str(json_object_get(f, "name")), 64))
			return bad(r, "invalid_value", "tools[].function.name",
			    "Invalid 'tools[%zu].function.name': string does "
			    "not match pattern '^[a-zA-Z0-9_-]+$'.",
			    i);
		p = json_object_get(f, "parameters");
		if (p != NULL && !json_is_object(p))
			return bad_type(
			    r, "tools[].function.parameters", "an object");
	}
	return 0;
}

static int
check_number(
    struct hf_refusal *r, json_t *body, const char *key, double lo, double hi)
{
	json_t *v = json_object_get(body, key);

	if (v == NULL || json_is_null(v))
		return 0;
	if (!json_is_number(v))
		return bad_type(r, key, "a number");
	if (json_number_value(v) < lo || json_number_value(v) > hi)
		return bad(r, "decimal_out_of_range", key,
		    "Invalid '%s': "
		    "expected a value from %g to %g.",
		    key, lo, hi);
	return 0;
}

static int
check_count(struct hf_refusal *r, json_t *body, const char *key, int64_t hi)
{
	json_t *v = json_object_get(body, key);

	if (v == NULL || json_is_null(v))
		return 0;
	if (!json_is_integer(v))
		return bad_type(r, key, "an integer");
	if (json_integer_value(v) < 1 || json_integer_value(v) > hi)
		return bad(r, "integer_below_min_value", key,
		    "Invalid '%s': "
		    "integer out of range.",
		    key);
	return 0;
}

static int
check_limits(struct hf_refusal *r, json_t *body)
{
	json_t *stop = json_object_get(body, "stop");

	if (check_number(r, body, "temperature", 0, 2) != 0 ||
	    check_number(r, body, "top_p", 0, 1) != 0 ||
	    check_number(r, body, "frequency_penalty", -2, 2) != 0 ||
	    check_number(r, body, "presence_penalty", -2, 2) != 0 ||
	    check_count(r, body, "n", 128) != 0 ||
	    check_count(r, body, "max_tokens", 1 << 24) != 0 ||
	    check_count(r, body, "max_completion_tokens", 1 << 24) != 0)
		return -1;
	if (json_object_get(body, "max_tokens") != NULL &&
	    json_object_get(body, "max_completion_tokens") != NULL)
		return bad(r, "invalid_parameter_combination", NULL,
		    "Setting 'max_tokens' and 'max_completion_tokens' at the "
		    "same time is not supported.");
	if (json_is_array(stop) &&
	    (json_array_size(stop) < 1 || json_array_size(stop) > 4))
		return bad(r, "array_above_max_length", "stop",
		    "Invalid 'stop': expected 1 to 4 strings.");
	return 0;
}

static int
check_params(struct hf_refusal *r, json_t *body)
{
	static const char *const keys[] = { "model", "messages",
		"max_completion_tokens", "max_tokens", "temperature", "top_p",
		"stop", "stream", "stream_options", "tools", "tool_choice",
		"parallel_tool_calls", "response_format", "reasoning_effort",
		"verbosity", "n", "seed", "frequency_penalty",
		"presence_penalty", "logit_bias", "logprobs", "top_logprobs",
		"modalities", "audio", "prediction", "user",
		"safety_identifier", "prompt_cache_key", "prompt_cache_options",
		"prompt_cache_retention", "metadata", "store", "service_tier",
		"moderation", "web_search_options", "functions",
		"function_call", NULL };
	const char *key = hf_unknown_key(body, keys);
	json_t *v;

	if (key != NULL)
		return hf_refuse(r, 400, INVALID, NULL, NULL,
		    "Unrecognized "
		    "request argument supplied: %s",
		    key);
	v = json_object_get(body, "model");
	if (hf_json_str(v).size == 0)
		return bad(r, "missing_required_parameter", "model",
		    "you must provide a model parameter");
	v = json_object_get(body, "stream");
	if (v != NULL && !json_is_boolean(v) && !json_is_null(v))
		return bad_type(r, "stream", "a boolean");
	if (json_object_get(body, "stream_options") != NULL && !json_is_true(v))
		return bad(r, NULL, "stream_options",
		    "The 'stream_options' "
		    "parameter is only allowed when 'stream' is enabled.");
	v = json_object_get(body, "user");
	if (v != NULL && !json_is_string(v))
		return bad_type(r, "user", "a string");
	if (check_limits(r, body) != 0)
		return -1;
	return check_tools(r, body);
}

int
hf_openai_check(
    const struct hf_bench_headers *h, json_t *body, struct hf_refusal *r)
{
	if (h->authorization.size <= 7 ||
	    strncasecmp(h->authorization.p, "Bearer ", 7) != 0)
		return hf_refuse(r, 401, INVALID, "invalid_api_key", NULL,
		    "You didn't provide an API key.");
	if (h->content_type.p == NULL || h->content_type.size < 16 ||
	    strncasecmp(h->content_type.p, "application/json", 16) != 0)
		return hf_refuse(r, 400, INVALID, NULL, NULL,
		    "Unsupported content type: expected application/json.");
	if (!json_is_object(body))
		return hf_refuse(r, 400, INVALID, NULL, NULL,
		    "We could not "
		    "parse the JSON body of your request.");
	if (check_params(r, body) != 0)
		return -1;
	if (check_messages(r, json_object_get(body, "messages")) != 0)
		return -1;
	return check_last(r, body);
}
