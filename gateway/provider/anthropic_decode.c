/*
 * Anthropic messages coming back: named events or one whole message.
 * Thinking is left aside; message_stop alone makes an answer complete.
 */
#include <config.h>

#include "gateway/provider/anthropic_decode.h"

#include <limits.h>

/* First match wins; the last row takes everything. */
static const struct hf_error_rule errors[] = {
	{ 0, INT_MAX, HF_MATCH_TYPE, "request_too_large", HF_CLASS_CONTEXT,
	    "request_too_large" },
	{ 413, 413, HF_MATCH_ANY, NULL, HF_CLASS_CONTEXT, NULL },
	{ 200, 499, HF_MATCH_TEXT, "prompt is too long", HF_CLASS_CONTEXT,
	    "context_length" },
	{ 200, 499, HF_MATCH_TEXT, "exceed context limit", HF_CLASS_CONTEXT,
	    "context_length" },
	{ 200, 499, HF_MATCH_TEXT, "context window", HF_CLASS_CONTEXT,
	    "context_length" },
	{ 200, 499, HF_MATCH_TEXT, "content filtering policy", HF_CLASS_POLICY,
	    "content_policy" },
	{ 200, 499, HF_MATCH_TEXT, "credit balance is too low", HF_CLASS_AUTH,
	    "insufficient_quota" },
	{ 0, INT_MAX, HF_MATCH_TYPE, "authentication_error", HF_CLASS_AUTH,
	    "authentication_error" },
	{ 0, INT_MAX, HF_MATCH_TYPE, "billing_error", HF_CLASS_AUTH,
	    "billing_error" },
	{ 0, INT_MAX, HF_MATCH_TYPE, "permission_error", HF_CLASS_AUTH,
	    "permission_error" },
	{ 0, INT_MAX, HF_MATCH_TYPE, "not_found_error", HF_CLASS_AUTH,
	    "model_not_found" },
	{ 401, 405, HF_MATCH_ANY, NULL, HF_CLASS_AUTH, NULL },
	{ 429, 429, HF_MATCH_ANY, NULL, HF_CLASS_CAPACITY, NULL },
	{ 529, 529, HF_MATCH_ANY, NULL, HF_CLASS_CAPACITY, NULL },
	{ 0, INT_MAX, HF_MATCH_TYPE, "overloaded_error", HF_CLASS_CAPACITY,
	    "overloaded" },
	{ 0, INT_MAX, HF_MATCH_TYPE, "rate_limit_error", HF_CLASS_CAPACITY,
	    "rate_limit" },
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
	{ "end_turn", HF_FINISH_STOP },
	{ "stop_sequence", HF_FINISH_STOP },
	{ "pause_turn", HF_FINISH_STOP },
	{ "max_tokens", HF_FINISH_LENGTH },
	{ "model_context_window_exceeded", HF_FINISH_LENGTH },
	{ "tool_use", HF_FINISH_TOOL_CALLS },
	{ "refusal", HF_FINISH_CONTENT_FILTER },
};

/* The parts of the input are disjoint here and summed for our words. */
enum { IN_FRESH, IN_WRITTEN, IN_READ, IN_PARTS };

/* --- usage and finish ------------------------------------------------------*/

/* Figures replace those of an earlier event; what is missing stays. */
static void
read_usage(struct hf_decoder *d, struct hf_json u)
{
	int i;

	hf_json_int(hf_json_get(u, "input_tokens"), &d->counted[IN_FRESH]);
	hf_json_int(hf_json_get(u, "cache_creation_input_tokens"),
	    &d->counted[IN_WRITTEN]);
	hf_json_int(
	    hf_json_get(u, "cache_read_input_tokens"), &d->counted[IN_READ]);
	hf_json_int(hf_json_get(u, "output_tokens"), &d->usage[1]);
	hf_json_int(
	    hf_json_path(u, "output_tokens_details", "thinking_tokens", NULL),
	    &d->usage[3]);
	d->usage[2] = d->counted[IN_READ];
	for (i = 0; i < IN_PARTS; i++) {
		if (d->counted[i] < 0)
			continue;
		if (i == IN_FRESH || d->usage[0] < 0)
			d->usage[0] = 0;
		if (__builtin_add_overflow(
			d->usage[0], d->counted[i], &d->usage[0]))
			d->usage[0] = INT64_MAX;
	}
}

static void
read_finish(struct hf_decoder *d, struct hf_json reason)
{
	size_t i;

	if (reason.type != HF_JSON_STRING)
		return;
	for (i = 0; i < hf_countof(finishes); i++) {
		if (hf_json_string_is(reason, finishes[i].word)) {
			d->finish = finishes[i].finish;
			d->have_finish = true;
			return;
		}
	}
	hf_decode_fail(d, HF_CLASS_PROVIDER, "bad_finish");
}

/* The answer is whole: what was held back, usage, finish, done. */
static void
complete(struct hf_decoder *d)
{
	if (d->terminal)
		return;
	if (!d->have_finish) {
		hf_decode_fail(d, HF_CLASS_PROVIDER, "no_finish");
		return;
	}
	if (!hf_decode_finish(d, d->finish))
		return;
	if (d->usage[0] >= 0 || d->usage[1] >= 0)
		hf_decode_usage(d);
	hf_decode_done(d);
}

/* --- blocks --------------------------------------------------------------- */

/* The start of a block in a stream, or a whole one of a plain answer. */
static void
read_block(struct hf_decoder *d, struct hf_json block, int64_t index)
{
	struct hf_json type = hf_json_get(block, "type");
	struct hf_json input = hf_json_get(block, "input");
	struct hf_tool *t;

	d->in_tool = false;
	if (hf_json_string_is(type, "text")) {
		hf_decode_text(d, HF_EV_TEXT, hf_json_get(block, "text"));
		return;
	}
	if (!hf_json_string_is(type, "tool_use"))
		return; /* thinking, tools that ran at the server */
	t = hf_tool_add(d, index);
	if (t == NULL)
		return;
	d->in_tool = true;
	hf_json_decode(hf_json_get(block, "id"), &t->id);
	hf_json_decode(hf_json_get(block, "name"), &t->name);
	/* In a stream the input comes in deltas, and {} stands here. */
	hf_tool_arguments(
	    d, t, input.raw.size > 2 ? input : (struct hf_json){ 0 });
}

static void
read_delta(struct hf_decoder *d, struct hf_json v)
{
	struct hf_json delta = hf_json_get(v, "delta");
	struct hf_json type = hf_json_get(delta, "type");
	struct hf_tool *t;
	int64_t index;

	if (hf_json_string_is(type, "text_delta")) {
		hf_decode_text(d, HF_EV_TEXT, hf_json_get(delta, "text"));
	} else if (hf_json_string_is(type, "input_json_delta")) {
		t = NULL;
		if (hf_json_int(hf_json_get(v, "index"), &index))
			t = hf_tool_find(d, index);
		else if (d->in_tool)
			t = &d->tool[d->n_tool - 1];
		if (t != NULL)
			hf_tool_arguments(
			    d, t, hf_json_get(delta, "partial_json"));
	}
}

/* --- events --------------------------------------------------------------- */

static void
message_start(struct hf_decoder *d, struct hf_json v)
{
	hf_decode_begin(d);
	read_usage(d, hf_json_path(v, "message", "usage", NULL));
}

static void
block_start(struct hf_decoder *d, struct hf_json v)
{
	int64_t index;

	hf_decode_begin(d);
	if (!hf_json_int(hf_json_get(v, "index"), &index))
		index = -1;
	read_block(d, hf_json_get(v, "content_block"), index);
}

static void
block_stop(struct hf_decoder *d, struct hf_json v)
{
	(void)v;
	d->in_tool = false;
	hf_tools_emit_whole(d);
}

static void
message_delta(struct hf_decoder *d, struct hf_json v)
{
	read_usage(d, hf_json_get(v, "usage"));
	read_finish(d, hf_json_path(v, "delta", "stop_reason", NULL));
}

static void
message_stop(struct hf_decoder *d, struct hf_json v)
{
	(void)v;
	complete(d);
}

static const struct {
	const char *type;
	void (*fn)(struct hf_decoder *d, struct hf_json v);
} events[] = {
	{ "content_block_delta", read_delta },
	{ "content_block_start", block_start },
	{ "content_block_stop", block_stop },
	{ "message_start", message_start },
	{ "message_delta", message_delta },
	{ "message_stop", message_stop },
};

static void
on_event(struct hf_decoder *d, const struct hf_sse_event *ev, struct hf_json v)
{
	struct hf_json type = hf_json_get(v, "type");
	size_t i;

	for (i = 0; i < hf_countof(events); i++) {
		if (type.type == HF_JSON_STRING ?
			hf_json_string_is(type, events[i].type) :
			hf_str_is(ev->type, events[i].type)) {
			events[i].fn(d, v);
			return;
		}
	}
}

static bool
on_marker(struct hf_decoder *d, struct hf_str data)
{
	(void)d;
	/* Some gateways add it; it means nothing here. */
	return hf_str_is(data, "[DONE]");
}

static bool
on_end(struct hf_decoder *d)
{
	(void)d;
	return false;
}

static void
on_whole(struct hf_decoder *d, struct hf_json v)
{
	struct hf_json content = hf_json_get(v, "content"), block;
	size_t pos = 0;

	if (content.type != HF_JSON_ARRAY) {
		hf_decode_fail(d, HF_CLASS_PROVIDER, "no_content");
		return;
	}
	hf_decode_begin(d);
	while (hf_json_next_element(content, &pos, &block))
		read_block(d, block, -1);
	read_usage(d, hf_json_get(v, "usage"));
	read_finish(d, hf_json_get(v, "stop_reason"));
	complete(d);
}

static const struct hf_decoder_ops ops = {
	.errors = errors,
	.event = on_event,
	.marker = on_marker,
	.whole = on_whole,
	.ended = on_end,
};

struct hf_decoder *
hf_anthropic_decoder_new(
    const struct hf_conf_target *t, bool stream, hf_event_fn fn, void *arg)
{
	(void)t;
	(void)stream; /* what came back decides */
	return hf_decode_new(&ops, fn, arg);
}
