/*
 * Chat completions coming back: chunks or one whole answer, from OpenAI and
 * from the many servers that speak nearly the same.
 */
#include <config.h>

#include "gateway/provider/openai_decode.h"

#include <limits.h>

/* First match wins; the last row takes everything. */
static const struct hf_error_rule errors[] = {
	{ 0, INT_MAX, HF_MATCH_CODE, "content_filter", HF_CLASS_POLICY,
	    "content_policy" },
	{ 0, INT_MAX, HF_MATCH_CODE, "content_policy_violation",
	    HF_CLASS_POLICY, "content_policy" },
	{ 0, INT_MAX, HF_MATCH_TYPE, "content_policy_violation",
	    HF_CLASS_POLICY, "content_policy" },
	{ 0, INT_MAX, HF_MATCH_CODE, "context_length_exceeded",
	    HF_CLASS_CONTEXT, "context_length" },
	{ 0, INT_MAX, HF_MATCH_TYPE, "exceed_context_size_error",
	    HF_CLASS_CONTEXT, "context_length" },
	{ 413, 413, HF_MATCH_ANY, NULL, HF_CLASS_CONTEXT, "http_413" },
	{ 200, 499, HF_MATCH_TEXT, "maximum context length", HF_CLASS_CONTEXT,
	    "context_length" },
	{ 200, 499, HF_MATCH_TEXT, "prompt is too long", HF_CLASS_CONTEXT,
	    "context_length" },
	{ 200, 499, HF_MATCH_TEXT, "context window", HF_CLASS_CONTEXT,
	    "context_length" },
	{ 200, 499, HF_MATCH_TEXT, "available context size", HF_CLASS_CONTEXT,
	    "context_length" },
	{ 200, 499, HF_MATCH_TEXT, "input token count", HF_CLASS_CONTEXT,
	    "context_length" },
	{ 200, 499, HF_MATCH_TEXT, "maximum prompt length", HF_CLASS_CONTEXT,
	    "context_length" },
	{ 0, INT_MAX, HF_MATCH_CODE, "insufficient_quota", HF_CLASS_AUTH,
	    "insufficient_quota" },
	{ 0, INT_MAX, HF_MATCH_TYPE, "insufficient_quota", HF_CLASS_AUTH,
	    "insufficient_quota" },
	{ 0, INT_MAX, HF_MATCH_CODE, "billing_hard_limit_reached",
	    HF_CLASS_AUTH, "insufficient_quota" },
	{ 0, INT_MAX, HF_MATCH_CODE, "billing_not_active", HF_CLASS_AUTH,
	    "insufficient_quota" },
	{ 0, INT_MAX, HF_MATCH_CODE, "invalid_api_key", HF_CLASS_AUTH,
	    "invalid_api_key" },
	{ 0, INT_MAX, HF_MATCH_TYPE, "authentication_error", HF_CLASS_AUTH,
	    "invalid_api_key" },
	{ 0, INT_MAX, HF_MATCH_CODE, "model_not_found", HF_CLASS_AUTH,
	    "model_not_found" },
	{ 401, 405, HF_MATCH_ANY, NULL, HF_CLASS_AUTH, NULL },
	{ 429, 429, HF_MATCH_ANY, NULL, HF_CLASS_CAPACITY, NULL },
	{ 498, 498, HF_MATCH_ANY, NULL, HF_CLASS_CAPACITY, NULL },
	{ 529, 529, HF_MATCH_ANY, NULL, HF_CLASS_CAPACITY, NULL },
	{ 0, INT_MAX, HF_MATCH_CODE, "rate_limit_exceeded", HF_CLASS_CAPACITY,
	    "rate_limit" },
	{ 0, INT_MAX, HF_MATCH_TYPE, "rate_limit_error", HF_CLASS_CAPACITY,
	    "rate_limit" },
	{ 0, INT_MAX, HF_MATCH_TYPE, "overloaded_error", HF_CLASS_CAPACITY,
	    "overloaded" },
	{ 0, INT_MAX, HF_MATCH_CODE, "server_overloaded", HF_CLASS_CAPACITY,
	    "overloaded" },
	{ 500, 599, HF_MATCH_TEXT, "overloaded", HF_CLASS_CAPACITY,
	    "overloaded" },
	{ 408, 409, HF_MATCH_ANY, NULL, HF_CLASS_PROVIDER, NULL },
	{ 425, 425, HF_MATCH_ANY, NULL, HF_CLASS_PROVIDER, NULL },
	/* A 4xx that the API did not write says nothing about the caller. */
	{ 400, 499, HF_MATCH_FOREIGN, NULL, HF_CLASS_PROVIDER, NULL },
	{ 400, 499, HF_MATCH_ANY, NULL, HF_CLASS_CALLER, NULL },
	{ 200, 299, HF_MATCH_TYPE, "invalid_request_error", HF_CLASS_CALLER,
	    "invalid_request" },
	{ 0, INT_MAX, HF_MATCH_ANY, NULL, HF_CLASS_PROVIDER, NULL },
};

static const struct {
	const char *word;
	enum hf_finish_reason finish;
} finishes[] = {
	{ "stop", HF_FINISH_STOP },
	{ "eos", HF_FINISH_STOP },
	{ "eos_token", HF_FINISH_STOP },
	{ "end_turn", HF_FINISH_STOP },
	{ "stop_sequence", HF_FINISH_STOP },
	{ "STOP", HF_FINISH_STOP },
	{ "length", HF_FINISH_LENGTH },
	{ "max_tokens", HF_FINISH_LENGTH },
	{ "model_length", HF_FINISH_LENGTH },
	{ "MAX_TOKENS", HF_FINISH_LENGTH },
	{ "tool_calls", HF_FINISH_TOOL_CALLS },
	{ "tool_use", HF_FINISH_TOOL_CALLS },
	{ "function_call", HF_FINISH_TOOL_CALLS },
	{ "content_filter", HF_FINISH_CONTENT_FILTER },
	{ "safety", HF_FINISH_CONTENT_FILTER },
	{ "SAFETY", HF_FINISH_CONTENT_FILTER },
};

/* --- usage and finish ------------------------------------------------------*/

static void
read_usage(struct hf_decoder *d, struct hf_json u)
{
	unsigned i;

	if (u.type != HF_JSON_OBJECT)
		return;
	for (i = 0; i < hf_countof(d->usage); i++)
		d->usage[i] = -1;
	hf_json_int(hf_json_get(u, "prompt_tokens"), &d->usage[0]);
	hf_json_int(hf_json_get(u, "completion_tokens"), &d->usage[1]);
	hf_json_int(
	    hf_json_path(u, "prompt_tokens_details", "cached_tokens", NULL),
	    &d->usage[2]);
	hf_json_int(hf_json_path(u, "completion_tokens_details",
			"reasoning_tokens", NULL),
	    &d->usage[3]);
	d->usage_new = true;
}

/* Some servers count in every chunk: only the last figure is told. */
static void
tell_usage(struct hf_decoder *d)
{
	if (d->usage_new && d->finished)
		hf_decode_usage(d);
	d->usage_new = d->usage_new && !d->finished;
}

static void
read_finish(struct hf_decoder *d, struct hf_json reason)
{
	size_t i;

	if (reason.type != HF_JSON_STRING || reason.raw.size <= 2)
		return;
	for (i = 0; i < hf_countof(finishes); i++) {
		if (hf_json_string_is(reason, finishes[i].word)) {
			hf_decode_finish(d, finishes[i].finish);
			return;
		}
	}
	/* "error", "abort", "insufficient_system_resource", ... */
	hf_decode_fail(d, HF_CLASS_PROVIDER, "bad_finish");
}

/* --- tool calls ----------------------------------------------------------- */

static bool
text_equals(struct hf_decoder *d, struct hf_json string, struct hf_buf *b)
{
	hf_buf_reset(&d->scratch);
	hf_json_decode(string, &d->scratch);
	return hf_str_eq(hf_buf_str(&d->scratch), hf_buf_str(b));
}

static struct hf_tool *
find_by_id(struct hf_decoder *d, struct hf_json id)
{
	unsigned i;

	for (i = d->n_tool; i > 0; i--)
		if (text_equals(d, id, &d->tool[i - 1].id))
			return &d->tool[i - 1];
	return NULL;
}

static bool
is_text(struct hf_json v)
{
	return v.type == HF_JSON_STRING && v.raw.size > 2;
}

/*
 * The call that a delta belongs to, or NULL for a new one: by index; without
 * one by id; without that a delta with a name begins a call and any other
 * continues the last.  The same index with another id is another call: some
 * servers number every call 0.
 */
static struct hf_tool *
which(struct hf_decoder *d, int64_t index, struct hf_json id, bool named)
{
	struct hf_tool *t;

	if (index >= 0) {
		t = hf_tool_find(d, index);
		if (t != NULL && named && is_text(id) && t->id.size > 0 &&
		    !text_equals(d, id, &t->id))
			return NULL;
		return t;
	}
	if (is_text(id))
		return find_by_id(d, id);
	return named || d->n_tool == 0 ? NULL : &d->tool[d->n_tool - 1];
}

static void
set_once(struct hf_buf *b, struct hf_json v)
{
	if (b->size == 0)
		hf_json_decode(v, b);
}

static void
read_tool(struct hf_decoder *d, struct hf_json call, struct hf_json function)
{
	struct hf_json id = hf_json_get(call, "id");
	struct hf_json name = hf_json_get(function, "name");
	struct hf_tool *t;
	int64_t index;

	if (call.type != HF_JSON_OBJECT || d->terminal)
		return;
	if (!hf_json_int(hf_json_get(call, "index"), &index) || index < 0)
		index = -1;
	t = which(d, index, id, is_text(name));
	if (t == NULL) {
		hf_tools_emit_whole(d);
		t = hf_tool_add(d, index);
		if (t == NULL)
			return;
	}
	set_once(&t->id, id);
	set_once(&t->name, name);
	hf_tool_arguments(d, t, hf_json_get(function, "arguments"));
}

static void
read_tools(struct hf_decoder *d, struct hf_json message)
{
	struct hf_json calls = hf_json_get(message, "tool_calls"), call;
	struct hf_json old = hf_json_get(message, "function_call");
	size_t pos = 0;

	while (hf_json_next_element(calls, &pos, &call))
		read_tool(d, call, hf_json_get(call, "function"));
	if (old.type == HF_JSON_OBJECT)
		read_tool(d,
		    (struct hf_json){ .type = HF_JSON_OBJECT,
			.raw = HF_STR("{\"index\":0}") },
		    old);
}

/* --- contents ------------------------------------------------------------- */

/* A delta or a whole message: content (a string, or parts), refusal, tools. */
static void
read_message(struct hf_decoder *d, struct hf_json m)
{
	struct hf_json content = hf_json_get(m, "content"), part;
	size_t pos = 0;

	hf_decode_text(d, HF_EV_TEXT, content);
	while (hf_json_next_element(content, &pos, &part))
		hf_decode_text(d, HF_EV_TEXT, hf_json_get(part, "text"));
	hf_decode_text(d, HF_EV_REFUSAL, hf_json_get(m, "refusal"));
	read_tools(d, m);
}

/* The choice with index 0 or none. */
static bool
first_choice(struct hf_json v, struct hf_json *choice)
{
	struct hf_json choices = hf_json_get(v, "choices");
	size_t pos = 0;
	int64_t index;

	while (hf_json_next_element(choices, &pos, choice))
		if (choice->type == HF_JSON_OBJECT &&
		    (!hf_json_int(hf_json_get(*choice, "index"), &index) ||
			index == 0))
			return true;
	return false;
}

static void
on_event(struct hf_decoder *d, const struct hf_sse_event *ev, struct hf_json v)
{
	struct hf_json choice;

	(void)ev;
	if (hf_json_get(v, "choices").type == HF_JSON_ARRAY)
		hf_decode_begin(d);
	read_usage(d, hf_json_get(v, "usage"));
	if (!d->finished && first_choice(v, &choice)) {
		read_message(d, hf_json_get(choice, "delta"));
		read_finish(d, hf_json_get(choice, "finish_reason"));
	}
	tell_usage(d);
}

static bool
on_marker(struct hf_decoder *d, struct hf_str data)
{
	while (data.size > 0 && data.p[data.size - 1] == ' ')
		data.size--;
	if (!hf_str_is(data, "[DONE]"))
		return false;
	if (d->finished)
		hf_decode_done(d);
	else
		hf_decode_fail(d, HF_CLASS_PROVIDER, "no_finish");
	return true;
}

static bool
on_end(struct hf_decoder *d)
{
	if (d->finished)
		hf_decode_done(d);
	return d->finished;
}

static void
on_whole(struct hf_decoder *d, struct hf_json v)
{
	struct hf_json choice;

	if (!first_choice(v, &choice)) {
		hf_decode_fail(d, HF_CLASS_PROVIDER, "no_choices");
		return;
	}
	hf_decode_begin(d);
	read_message(d, hf_json_get(choice, "message"));
	read_usage(d, hf_json_get(v, "usage"));
	read_finish(d, hf_json_get(choice, "finish_reason"));
	tell_usage(d);
	if (d->finished)
		hf_decode_done(d);
	else
		hf_decode_fail(d, HF_CLASS_PROVIDER, "no_finish");
}

static const struct hf_decoder_ops ops = {
	.errors = errors,
	.event = on_event,
	.marker = on_marker,
	.whole = on_whole,
	.ended = on_end,
};

struct hf_decoder *
hf_openai_decoder_new(
    const struct hf_conf_target *t, bool stream, hf_event_fn fn, void *arg)
{
	(void)t;
	(void)stream; /* what came back decides */
	return hf_decode_new(&ops, fn, arg);
}
