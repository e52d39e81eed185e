/*
 * The chat completions protocol, from the server's side.  Pure.
 */
#include <config.h>

#include <stdlib.h>

#include "base/check.h"
#include "bench/dialect.h"

static json_t *
view_calls(json_t *calls)
{
	json_t *out = json_array(), *c;
	size_t i;

	json_array_foreach(calls, i, c)
	{
		json_t *f = json_object_get(c, "function");

		json_array_append_new(out,
		    json_pack("{s:O,s:O,s:O}", "id", json_object_get(c, "id"),
			"name", json_object_get(f, "name"), "arguments",
			json_object_get(f, "arguments")));
	}
	return out;
}

static json_t *
openai_view(json_t *body)
{
	json_t *out = json_array(), *m;
	size_t i;

	json_array_foreach(json_object_get(body, "messages"), i, m)
	{
		json_t *calls = json_object_get(m, "tool_calls");
		json_t *id = json_object_get(m, "tool_call_id");
		struct hf_str role = hf_json_str(json_object_get(m, "role"));
		char *text = hf_parts_text(json_object_get(m, "content"));
		json_t *v;

		if (hf_str_is(role, "developer"))
			role = HF_STR("system");
		v = json_pack(
		    "{s:s%,s:s}", "role", role.p, role.size, "text", text);
		HF_CHECK(v != NULL);
		free(text);
		if (calls != NULL)
			json_object_set_new(v, "calls", view_calls(calls));
		if (id != NULL)
			json_object_set(v, "call_id", id);
		json_array_append_new(out, v);
	}
	return out;
}

static json_t *
openai_tools(json_t *body)
{
	json_t *tools = json_object_get(body, "tools"), *out, *t;
	size_t i;

	if (tools == NULL)
		return NULL;
	out = json_array();
	json_array_foreach(tools, i, t) json_array_append(
	    out, json_object_get(json_object_get(t, "function"), "name"));
	return out;
}

static struct hf_str
openai_user(json_t *body)
{
	return hf_json_str(json_object_get(body, "user"));
}

static json_t *
error_object(const struct hf_refusal *r)
{
	return json_pack("{s:{s:s,s:s,s:o,s:o}}", "error", "message",
	    r->message, "type", r->type, "param",
	    r->param[0] ? json_string(r->param) : json_null(), "code",
	    r->code[0] ? json_string(r->code) : json_null());
}

static void
openai_error(struct hf_buf *out, const struct hf_refusal *r, const char *id)
{
	json_t *o = error_object(r);

	(void)id;
	hf_buf_json(out, o);
	json_decref(o);
}

static void
openai_error_event(struct hf_buf *out, const struct hf_refusal *r)
{
	json_t *o = error_object(r);

	hf_buf_puts(out, "data: ");
	hf_buf_json(out, o);
	hf_buf_puts(out, "\n\n");
	json_decref(o);
}

static json_t *
usage_object(const struct hf_reply *p)
{
	return json_pack("{s:i,s:i,s:i,s:{s:i,s:i},s:{s:i,s:i}}",
	    "prompt_tokens", (int)p->input_tokens, "completion_tokens",
	    (int)p->output_tokens, "total_tokens",
	    (int)(p->input_tokens + p->output_tokens), "prompt_tokens_details",
	    "cached_tokens", 0, "audio_tokens", 0, "completion_tokens_details",
	    "reasoning_tokens", 0, "audio_tokens", 0);
}

static void
call_id(struct hf_buf *b, const struct hf_reply *p, size_t i)
{
	hf_buf_printf(b, "call_%s%02zu", p->id_tail, i);
}

static json_t *
full_calls(const struct hf_reply *p)
{
	json_t *out = json_array(), *c;
	size_t i;

	json_array_foreach(p->answer->calls, i, c)
	{
		struct hf_buf id;

		hf_buf_init(&id, HF_BUF_NOCAP);
		call_id(&id, p, i);
		json_array_append_new(out,
		    json_pack("{s:s,s:s,s:{s:O,s:O}}", "id", id.data, "type",
			"function", "function", "name",
			json_object_get(c, "name"), "arguments",
			json_object_get(c, "arguments")));
		hf_buf_free(&id);
	}
	return out;
}

static void
openai_plain(struct hf_buf *out, const struct hf_reply *p)
{
	const struct hf_answer *a = p->answer;
	json_t *msg, *o;

	msg = json_pack("{s:s,s:o,s:n,s:[]}", "role", "assistant", "content",
	    a->text == NULL ? json_null() : json_string(a->text), "refusal",
	    "annotations");
	if (a->calls != NULL)
		json_object_set_new(msg, "tool_calls", full_calls(p));
	o = json_pack("{s:s+,s:s,s:I,s:s,s:s,s:[{s:i,s:o,s:n,s:s}],s:o}", "id",
	    "chatcmpl-", p->id_tail, "object", "chat.completion", "created",
	    (json_int_t)p->created_s, "model", p->model, "service_tier",
	    "default", "choices", "index", 0, "message", msg, "logprobs",
	    "finish_reason", a->calls == NULL ? "stop" : "tool_calls", "usage",
	    usage_object(p));
	HF_CHECK(o != NULL);
	hf_buf_json(out, o);
	json_decref(o);
}

/* One chunk; 'delta' is taken. */
static void
put_chunk(struct hf_buf *out, const struct hf_reply *p, json_t *delta,
    const char *finish)
{
	json_t *o = json_pack("{s:s+,s:s,s:I,s:s,s:[{s:i,s:o,s:n,s:s?}]}", "id",
	    "chatcmpl-", p->id_tail, "object", "chat.completion.chunk",
	    "created", (json_int_t)p->created_s, "model", p->model, "choices",
	    "index", 0, "delta", delta, "logprobs", "finish_reason", finish);

	HF_CHECK(o != NULL);
	if (p->usage)
		json_object_set_new(o, "usage", json_null());
	hf_buf_puts(out, "data: ");
	hf_buf_json(out, o);
	hf_buf_puts(out, "\n\n");
	json_decref(o);
}

static void
put_call(struct hf_stream *out, const struct hf_reply *p, size_t i, json_t *c)
{
	struct hf_str args = hf_json_str(json_object_get(c, "arguments"));
	size_t end[HF_FRAGMENTS], at = 0;
	unsigned n = hf_fragments(args, i, &p->split, end);
	struct hf_buf id;

	hf_buf_init(&id, HF_BUF_NOCAP);
	call_id(&id, p, i);
	put_chunk(hf_stream_add(out, true, i == 0 ? 0 : args.size), p,
	    json_pack("{s:[{s:i,s:s,s:s,s:{s:O,s:s}}]}", "tool_calls", "index",
		(int)i, "id", id.data, "type", "function", "function", "name",
		json_object_get(c, "name"), "arguments", ""),
	    NULL);
	hf_buf_free(&id);
	for (unsigned k = 0; k < n; at = end[k++])
		put_chunk(hf_stream_add(out, true, end[k]), p,
		    json_pack("{s:[{s:i,s:{s:s%}}]}", "tool_calls", "index",
			(int)i, "function", "arguments", args.p + at,
			end[k] - at),
		    NULL);
}

static void
openai_stream(struct hf_stream *out, const struct hf_reply *p)
{
	const struct hf_answer *a = p->answer;
	json_t *c;
	size_t i;

	put_chunk(&out->head, p,
	    json_pack("{s:s,s:o,s:n}", "role", "assistant", "content",
		a->calls == NULL ? json_string("") : json_null(), "refusal"),
	    NULL);
	for (size_t at = 0, n; a->text != NULL && a->text[at] != '\0';
	     at += n) {
		n = hf_piece_size(a->text, at, p->split.text);
		put_chunk(hf_stream_add(out, false, at + n), p,
		    json_pack("{s:s%}", "content", a->text + at, n), NULL);
	}
	json_array_foreach(a->calls, i, c) put_call(out, p, i, c);
	put_chunk(&out->finish, p, json_object(),
	    a->calls == NULL ? "stop" : "tool_calls");
	if (p->usage) {
		json_t *o = json_pack("{s:s+,s:s,s:I,s:s,s:[],s:o}", "id",
		    "chatcmpl-", p->id_tail, "object", "chat.completion.chunk",
		    "created", (json_int_t)p->created_s, "model", p->model,
		    "choices", "usage", usage_object(p));

		hf_buf_puts(&out->tail, "data: ");
		hf_buf_json(&out->tail, o);
		hf_buf_puts(&out->tail, "\n\n");
		json_decref(o);
	}
	hf_buf_puts(&out->tail, "data: [DONE]\n\n");
}

static void
openai_failure(int status, struct hf_refusal *r)
{
	switch (status) {
	case 400:
		hf_refuse(r, 400, "invalid_request_error", NULL, NULL,
		    "Injected: the request is not valid.");
		break;
	case 401:
		hf_refuse(r, 401, "invalid_request_error", "invalid_api_key",
		    NULL, "Injected: incorrect API key provided.");
		break;
	case 404:
		hf_refuse(r, 404, "invalid_request_error", "model_not_found",
		    NULL, "Injected: the model does not exist.");
		break;
	case 429:
		hf_refuse(r, 429, "requests", "rate_limit_exceeded", NULL,
		    "Injected: rate limit reached. Please try again later.");
		break;
	default:
		hf_refuse(r, status, "server_error", NULL, NULL,
		    "Injected: the server had an error while processing your "
		    "request.");
		break;
	}
}

static bool
openai_is_path(struct hf_str path)
{
	return hf_str_is(path, "/v1/chat/completions");
}

const struct hf_bench_dialect hf_bench_openai = {
	.name = "openai",
	.is_path = openai_is_path,
	.model = hf_body_model,
	.streams = hf_body_streams,
	.check = hf_openai_check,
	.view = openai_view,
	.tools = openai_tools,
	.user = openai_user,
	.error = openai_error,
	.error_event = openai_error_event,
	.plain = openai_plain,
	.stream = openai_stream,
	.failure = openai_failure,
};
