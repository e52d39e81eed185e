/*
 * What the reference proxy sends to its clients: completions, plain and
 * streamed.
 */
#include <config.h>

#include <jansson.h>

#include "base/check.h"
#include "bench/dialect.h"
#include "bench/proxy.h"
#include "bench/server.h"

static json_t *
tool_calls(json_t *calls, bool indexed)
{
	json_t *out = json_array(), *c, *o;
	size_t i;

	json_array_foreach(calls, i, c)
	{
		o = json_pack("{s:O,s:s,s:{s:O,s:O}}", "id",
		    json_object_get(c, "id"), "type", "function", "function",
		    "name", json_object_get(c, "name"), "arguments",
		    json_object_get(c, "arguments"));
		HF_CHECK(o != NULL);
		if (indexed)
			json_object_set_new(
			    o, "index", json_integer((json_int_t)i));
		json_array_append_new(out, o);
	}
	return out;
}

json_t *
hf_said_message(struct hf_str text, json_t *calls)
{
	json_t *m = json_pack("{s:s}", "role", "assistant");

	json_object_set_new(m, "content",
	    text.size == 0 && calls != NULL ?
		json_null() :
		json_stringn(text.size == 0 ? "" : text.p, text.size));
	if (calls != NULL)
		json_object_set_new(m, "tool_calls", tool_calls(calls, false));
	return m;
}

/* --- streams -------------------------------------------------------------- */

/* One event; 'delta' is taken. */
static void
put_event(
    struct hf_said *o, struct hf_sreq *rq, json_t *delta, const char *finish)
{
	json_t *e = json_pack("{s:s,s:s,s:i,s:s,s:[{s:i,s:o,s:s?}]}", "id",
	    o->id, "object", "chat.completion.chunk", "created", 1790000000,
	    "model", o->model, "choices", "index", 0, "delta", delta,
	    "finish_reason", finish);
	struct hf_buf b;

	HF_CHECK(e != NULL);
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_puts(&b, "data: ");
	hf_buf_json(&b, e);
	hf_buf_puts(&b, "\n\n");
	hf_sreq_chunk(rq, hf_buf_str(&b));
	hf_buf_free(&b);
	json_decref(e);
}

static void
begin(struct hf_said *o, struct hf_sreq *rq)
{
	if (o->begun)
		return;
	o->begun = true;
	hf_sreq_start(rq, 200, "", "text/event-stream; charset=utf-8");
	put_event(o, rq,
	    json_pack("{s:s,s:s}", "role", "assistant", "content", ""), NULL);
}

void
hf_said_text(struct hf_said *o, struct hf_sreq *rq, struct hf_str text)
{
	if (text.size == 0)
		return;
	begin(o, rq);
	put_event(
	    o, rq, json_pack("{s:s%}", "content", text.p, text.size), NULL);
}

static void
end_stream(
    struct hf_said *o, struct hf_sreq *rq, struct hf_str text, json_t *calls)
{
	begin(o, rq);
	hf_said_text(o, rq, text);
	if (calls != NULL)
		put_event(o, rq,
		    json_pack("{s:o}", "tool_calls", tool_calls(calls, true)),
		    NULL);
	put_event(o, rq, json_object(), calls != NULL ? "tool_calls" : "stop");
	hf_sreq_chunk(rq, HF_STR("data: [DONE]\n\n"));
	hf_sreq_end(rq);
}

/* --- both ----------------------------------------------------------------- */

void
hf_said_end(
    struct hf_said *o, struct hf_sreq *rq, struct hf_str text, json_t *calls)
{
	struct hf_buf b;
	json_t *body;

	if (o->stream) {
		end_stream(o, rq, text, calls);
		return;
	}
	body = json_pack("{s:s,s:s,s:i,s:s,s:[{s:i,s:o,s:s}]}", "id", o->id,
	    "object", "chat.completion", "created", 1790000000, "model",
	    o->model, "choices", "index", 0, "message",
	    hf_said_message(text, calls), "finish_reason",
	    calls != NULL ? "tool_calls" : "stop");
	HF_CHECK(body != NULL);
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_json(&b, body);
	hf_sreq_reply(rq, 200, "", "application/json", hf_buf_str(&b));
	hf_buf_free(&b);
	json_decref(body);
}

void
hf_said_error(struct hf_said *o, struct hf_sreq *rq)
{
	static const char error[] =
	    "{\"error\":{\"message\":\"All targets failed.\",\"type\":"
	    "\"server_error\",\"param\":null,\"code\":null}}";

	if (!o->begun) {
		hf_sreq_reply(rq, 502, "", "application/json", HF_STR(error));
		return;
	}
	hf_sreq_chunk(rq, HF_STR("data: "));
	hf_sreq_chunk(rq, HF_STR(error));
	hf_sreq_chunk(rq, HF_STR("\n\n"));
	hf_sreq_end(rq);
}
