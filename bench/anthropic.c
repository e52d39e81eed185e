/*
 * The messages protocol, from the server's side.  Pure.
 */
#include <config.h>

#include <stdlib.h>

#include "base/check.h"
#include "bench/dialect.h"

static void
view_add(json_t *out, struct hf_str role, const char *text, json_t *calls)
{
	json_t *v =
	    json_pack("{s:s%,s:s}", "role", role.p, role.size, "text", text);

	HF_CHECK(v != NULL);
	if (json_array_size(calls) > 0)
		json_object_set(v, "calls", calls);
	json_array_append_new(out, v);
}

/* Tool calls of an assistant message: input becomes argument text. */
static json_t *
view_calls(json_t *blocks)
{
	json_t *out = json_array(), *b;
	size_t i;

	json_array_foreach(blocks, i, b)
	{
		struct hf_buf args;

		if (!hf_str_is(
			hf_json_str(json_object_get(b, "type")), "tool_use"))
			continue;
		hf_buf_init(&args, HF_BUF_NOCAP);
		hf_buf_json(&args, json_object_get(b, "input"));
		json_array_append_new(out,
		    json_pack("{s:O,s:O,s:s}", "id", json_object_get(b, "id"),
			"name", json_object_get(b, "name"), "arguments",
			args.data));
		hf_buf_free(&args);
	}
	return out;
}

static void
view_results(json_t *out, json_t *blocks)
{
	json_t *b;
	size_t i;

	json_array_foreach(blocks, i, b)
	{
		char *text;

		if (!hf_str_is(
			hf_json_str(json_object_get(b, "type")), "tool_result"))
			continue;
		text = hf_parts_text(json_object_get(b, "content"));
		json_array_append_new(out,
		    json_pack("{s:s,s:s,s:O}", "role", "tool", "text", text,
			"call_id", json_object_get(b, "tool_use_id")));
		free(text);
	}
}

static json_t *
anthropic_view(json_t *body)
{
	json_t *out = json_array(), *m;
	json_t *system = json_object_get(body, "system");
	size_t i;

	if (system != NULL) {
		char *text = hf_parts_text(system);

		view_add(out, HF_STR("system"), text, NULL);
		free(text);
	}
	json_array_foreach(json_object_get(body, "messages"), i, m)
	{
		json_t *c = json_object_get(m, "content");
		struct hf_str role = hf_json_str(json_object_get(m, "role"));
		size_t before = json_array_size(out);
		json_t *calls = view_calls(c);
		char *text = hf_parts_text(c);

		view_results(out, c);
		/* Results alone are not a message of the user's. */
		if (text[0] != '\0' || json_array_size(out) == before)
			view_add(out, role, text, calls);
		json_decref(calls);
		free(text);
	}
	return out;
}

static json_t *
anthropic_tools(json_t *body)
{
	json_t *tools = json_object_get(body, "tools"), *out, *t;
	size_t i;

	if (tools == NULL)
		return NULL;
	out = json_array();
	json_array_foreach(tools, i, t)
	    json_array_append(out, json_object_get(t, "name"));
	return out;
}

static struct hf_str
anthropic_user(json_t *body)
{
	return hf_json_str(
	    json_object_get(json_object_get(body, "metadata"), "user_id"));
}

static json_t *
error_object(const struct hf_refusal *r)
{
	return json_pack("{s:s,s:{s:s,s:s}}", "type", "error", "error", "type",
	    r->type, "message", r->message);
}

static void
anthropic_error(struct hf_buf *out, const struct hf_refusal *r, const char *id)
{
	json_t *o = error_object(r);

	json_object_set_new(o, "request_id", json_pack("s+", "req_", id));
	hf_buf_json(out, o);
	json_decref(o);
}

/* One event; 'o' is taken and names its type. */
static void
put_event(struct hf_buf *out, json_t *o)
{
	HF_CHECK(o != NULL);
	hf_buf_printf(out,
	    "event: %s\ndata: ", json_string_value(json_object_get(o, "type")));
	hf_buf_json(out, o);
	hf_buf_puts(out, "\n\n");
	json_decref(o);
}

static void
anthropic_error_event(struct hf_buf *out, const struct hf_refusal *r)
{
	put_event(out, error_object(r));
}

static json_t *
usage_object(const struct hf_reply *p, unsigned output)
{
	return json_pack("{s:i,s:i,s:i,s:i}", "input_tokens",
	    (int)p->input_tokens, "cache_creation_input_tokens", 0,
	    "cache_read_input_tokens", 0, "output_tokens", (int)output);
}

static void
call_id(struct hf_buf *b, const struct hf_reply *p, size_t i)
{
	hf_buf_init(b, HF_BUF_NOCAP);
	hf_buf_printf(b, "toolu_%s%02zu", p->id_tail, i);
}

static json_t *
call_input(json_t *call)
{
	struct hf_str a = hf_json_str(json_object_get(call, "arguments"));

	return json_loadb(a.p, a.size, 0, NULL);
}

static void
anthropic_plain(struct hf_buf *out, const struct hf_reply *p)
{
	const struct hf_answer *a = p->answer;
	json_t *content = json_array(), *c, *o;
	size_t i;

	if (a->text != NULL && a->text[0] != '\0')
		json_array_append_new(content,
		    json_pack("{s:s,s:s}", "type", "text", "text", a->text));
	json_array_foreach(a->calls, i, c)
	{
		struct hf_buf id;

		call_id(&id, p, i);
		json_array_append_new(content,
		    json_pack("{s:s,s:s,s:O,s:o}", "type", "tool_use", "id",
			id.data, "name", json_object_get(c, "name"), "input",
			call_input(c)));
		hf_buf_free(&id);
	}
	o = json_pack("{s:s+,s:s,s:s,s:s,s:o,s:s,s:n,s:o}", "id", "msg_",
	    p->id_tail, "type", "message", "role", "assistant", "model",
	    p->model, "content", content, "stop_reason",
	    a->calls == NULL ? "end_turn" : "tool_use", "stop_sequence",
	    "usage", usage_object(p, p->output_tokens));
	HF_CHECK(o != NULL);
	hf_buf_json(out, o);
	json_decref(o);
}

static void
put_start(struct hf_buf *out, unsigned index, json_t *block)
{
	put_event(out,
	    json_pack("{s:s,s:i,s:o}", "type", "content_block_start", "index",
		(int)index, "content_block", block));
}

static void
put_stop(struct hf_buf *out, unsigned index)
{
	put_event(out,
	    json_pack("{s:s,s:i}", "type", "content_block_stop", "index",
		(int)index));
}

/* Block 0; it ends behind the last piece of text where calls follow. */
static void
put_text(struct hf_stream *out, const struct hf_reply *p)
{
	const char *text = p->answer->text;
	struct hf_buf *end = &out->finish;

	put_start(
	    &out->head, 0, json_pack("{s:s,s:s}", "type", "text", "text", ""));
	put_event(&out->head, json_pack("{s:s}", "type", "ping"));
	for (size_t at = 0, n; text[at] != '\0'; at += n) {
		struct hf_buf *b;

		n = hf_piece_size(text, at, p->split.text);
		b = hf_stream_add(out, false, at + n);
		put_event(b,
		    json_pack("{s:s,s:i,s:{s:s,s:s%}}", "type",
			"content_block_delta", "index", 0, "delta", "type",
			"text_delta", "text", text + at, n));
		if (p->answer->calls != NULL)
			end = b;
	}
	put_stop(end, 0);
}

static void
put_call(struct hf_stream *out, const struct hf_reply *p, size_t i, json_t *c)
{
	struct hf_str args = hf_json_str(json_object_get(c, "arguments"));
	size_t end[HF_FRAGMENTS], at = 0;
	unsigned n = hf_fragments(args, i, &p->split, end);
	unsigned index = (unsigned)i + (p->answer->text != NULL);
	struct hf_buf id, *b;

	call_id(&id, p, i);
	put_start(hf_stream_add(out, true, i == 0 ? 0 : args.size), index,
	    json_pack("{s:s,s:s,s:O,s:{}}", "type", "tool_use", "id", id.data,
		"name", json_object_get(c, "name"), "input"));
	hf_buf_free(&id);
	for (unsigned k = 0; k < n; at = end[k++]) {
		b = hf_stream_add(out, true, end[k]);
		put_event(b,
		    json_pack("{s:s,s:i,s:{s:s,s:s%}}", "type",
			"content_block_delta", "index", (int)index, "delta",
			"type", "input_json_delta", "partial_json", args.p + at,
			end[k] - at));
		if (k + 1 == n)
			put_stop(b, index);
	}
}

static void
anthropic_stream(struct hf_stream *out, const struct hf_reply *p)
{
	const struct hf_answer *a = p->answer;
	json_t *c;
	size_t i;

	put_event(&out->head,
	    json_pack("{s:s,s:{s:s+,s:s,s:s,s:s,s:[],s:n,s:n,s:o}}", "type",
		"message_start", "message", "id", "msg_", p->id_tail, "type",
		"message", "role", "assistant", "model", p->model, "content",
		"stop_reason", "stop_sequence", "usage", usage_object(p, 1)));
	if (a->text != NULL)
		put_text(out, p);
	json_array_foreach(a->calls, i, c) put_call(out, p, i, c);
	put_event(&out->finish,
	    json_pack("{s:s,s:{s:s,s:n},s:{s:i}}", "type", "message_delta",
		"delta", "stop_reason",
		a->calls == NULL ? "end_turn" : "tool_use", "stop_sequence",
		"usage", "output_tokens", (int)p->output_tokens));
	put_event(&out->tail, json_pack("{s:s}", "type", "message_stop"));
}

static void
anthropic_failure(int status, struct hf_refusal *r)
{
	static const struct {
		int status;
		const char *type, *text;
	} t[] = {
		{ 400, "invalid_request_error", "the request is not valid" },
		{ 401, "authentication_error", "invalid x-api-key" },
		{ 404, "not_found_error", "model not found" },
		{ 429, "rate_limit_error", "rate limit exceeded" },
		{ 529, "overloaded_error", "Overloaded" },
	};

	for (unsigned i = 0; i < hf_countof(t); i++) {
		if (t[i].status == status) {
			hf_refuse(r, status, t[i].type, NULL, NULL,
			    "Injected: %s", t[i].text);
			return;
		}
	}
	hf_refuse(r, status, "api_error", NULL, NULL,
	    "Injected: internal server error");
}

static bool
anthropic_is_path(struct hf_str path)
{
	return hf_str_is(path, "/v1/messages");
}

const struct hf_bench_dialect hf_bench_anthropic = {
	.name = "anthropic",
	.is_path = anthropic_is_path,
	.model = hf_body_model,
	.streams = hf_body_streams,
	.check = hf_anthropic_check,
	.view = anthropic_view,
	.tools = anthropic_tools,
	.user = anthropic_user,
	.error = anthropic_error,
	.error_event = anthropic_error_event,
	.plain = anthropic_plain,
	.stream = anthropic_stream,
	.failure = anthropic_failure,
};
