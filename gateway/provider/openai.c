/*
 * The openai dialect: chat completions requests from items.  Only fields of
 * the lists in this file are ever sent; strings are spliced as they are.
 */
#include <config.h>

#include "gateway/provider/history.h"
#include "gateway/provider/openai_decode.h"
#include "gateway/provider/request.h"

#define ID_MAX 40   /* of a tool call */
#define PER_LINE 64 /* bytes of a message beside its content */

/* Parameters that are passed on under their own name. */
static const char *const passed[] = {
	"temperature",
	"top_p",
	"stop",
	"response_format",
	"reasoning_effort",
	"verbosity",
	"seed",
	"frequency_penalty",
	"presence_penalty",
	"logit_bias",
	"user",
	"safety_identifier",
	"prompt_cache_key",
	"service_tier",
	"prediction",
};

static const char *
role_name(enum hf_role r)
{
	switch (r) {
	case HF_ROLE_SYSTEM:
		return "system";
	case HF_ROLE_DEVELOPER:
		return "developer";
	case HF_ROLE_USER:
		return "user";
	case HF_ROLE_ASSISTANT:
		return "assistant";
	case HF_ROLE_TOOL:
		return "tool";
	}
	return "user";
}

/* --- messages ------------------------------------------------------------- */

/* A string as it is, an array with its text parts, else "". */
static void
put_content(struct hf_buf *b, struct hf_json content)
{
	struct hf_json text;
	size_t pos = 0;
	bool any = false;

	if (content.type == HF_JSON_STRING) {
		hf_buf_putstr(b, content.raw);
		return;
	}
	if (hf_content_empty(content, false)) {
		hf_buf_puts(b, "\"\"");
		return;
	}
	hf_buf_putc(b, '[');
	while (hf_content_next(content, &pos, &text)) {
		if (text.raw.size <= 2)
			continue;
		hf_buf_puts(b,
		    any ? ",{\"type\":\"text\",\"text\":" :
			  "{\"type\":\"text\",\"text\":");
		hf_buf_putstr(b, text.raw);
		hf_buf_putc(b, '}');
		any = true;
	}
	hf_buf_putc(b, ']');
}

static void
put_member(struct hf_buf *b, const char *name, struct hf_json v)
{
	if (v.type == HF_JSON_NONE || v.type == HF_JSON_NULL)
		return;
	hf_buf_puts(b, ",\"");
	hf_buf_puts(b, name);
	hf_buf_puts(b, "\":");
	hf_buf_putstr(b, v.raw);
}

/* "content" of a message; an assistant that only refused said the refusal. */
static void
put_said(struct hf_buf *b, const struct hf_said *s)
{
	struct hf_json content = s->content;
	struct hf_json refusal = s->refusal;
	struct hf_json name = s->name;

	if (s->role != HF_ROLE_ASSISTANT || hf_text_blank(refusal)) {
		put_content(b, content);
	} else if (hf_content_empty(content, false)) {
		hf_buf_putstr(b, refusal.raw);
	} else {
		put_content(b, content);
		put_member(b, "refusal", refusal);
	}
	if (name.type == HF_JSON_STRING && name.raw.size > 2)
		put_member(b, "name", name);
}

static void
put_call(struct hf_buf *b, const struct hf_said *s)
{
	struct hf_json name = s->name;
	struct hf_json args = s->arguments;

	hf_buf_puts(b, "{\"id\":\"");
	hf_buf_putstr(b, s->id);
	hf_buf_puts(b, "\",\"type\":\"function\",\"function\":{\"name\":");
	hf_buf_putstr(
	    b, name.type == HF_JSON_STRING ? name.raw : HF_STR("\"\""));
	hf_buf_puts(b, ",\"arguments\":");
	hf_buf_putstr(b, hf_text_blank(args) ? HF_STR("\"{}\"") : args.raw);
	hf_buf_puts(b, "}}");
}

/* The calls from 'i' on that belong to one message; returns the index behind
 * them. */
static unsigned
put_calls(struct hf_buf *b, const struct hf_said_list *l, unsigned i)
{
	unsigned from = i;

	hf_buf_puts(b, ",\"tool_calls\":[");
	do {
		if (i > from)
			hf_buf_putc(b, ',');
		put_call(b, &l->line[i++]);
	} while (
	    i < l->n && l->line[i].kind == HF_SAID_CALL && l->line[i].joined);
	hf_buf_putc(b, ']');
	return i;
}

static bool
is_empty(const struct hf_said *s)
{
	return hf_content_empty(s->content, false) &&
	    (s->role != HF_ROLE_ASSISTANT || hf_text_blank(s->refusal));
}

/* In the message that is to be gone on with. */
static const char *
prefill_member(const struct hf_payload_input *in)
{
	switch (in->prefill ? in->target->call.prefill : HF_PREFILL_NONE) {
	case HF_PREFILL_MISTRAL:
	case HF_PREFILL_DEEPSEEK:
		return ",\"prefix\":true";
	case HF_PREFILL_PARTIAL:
		return ",\"partial\":true";
	default:
		return "";
	}
}

/* One message from line 'i' on; returns the index behind its lines.  'last'
 * is for the last of all lines. */
static unsigned
put_message(struct hf_buf *b, const struct hf_said_list *l, unsigned i,
    const char *last)
{
	const struct hf_said *s = &l->line[i];
	bool calls;

	hf_buf_puts(b, "{\"role\":\"");
	hf_buf_puts(b, role_name(s->role));
	hf_buf_putc(b, '"');
	if (s->kind == HF_SAID_RESULT) {
		hf_buf_puts(b, ",\"tool_call_id\":\"");
		hf_buf_putstr(b, s->id);
		hf_buf_puts(b, "\",\"content\":");
		if (s->body.type == HF_JSON_NONE)
			hf_buf_puts(b, "\"" HF_NO_RESULT "\"");
		else
			put_content(b, s->content);
		i++;
	} else if (s->kind == HF_SAID_CALL) {
		hf_buf_puts(b, ",\"content\":null");
		i = put_calls(b, l, i);
	} else {
		calls = i + 1 < l->n && l->line[i + 1].kind == HF_SAID_CALL &&
		    l->line[i + 1].joined;
		hf_buf_puts(b, ",\"content\":");
		if (calls && is_empty(s))
			hf_buf_puts(b, "null");
		else
			put_said(b, s);
		i = calls ? put_calls(b, l, i + 1) : i + 1;
	}
	if (i == l->n)
		hf_buf_puts(b, last);
	hf_buf_putc(b, '}');
	return i;
}

/* An empty message says nothing, unless it is what is to be answered. */
static bool
is_left_out(const struct hf_said_list *l, unsigned i, bool instructed)
{
	const struct hf_said *s = &l->line[i];

	return s->kind == HF_SAID_MESSAGE && is_empty(s) &&
	    (i + 1 < l->n ? !l->line[i + 1].joined : instructed);
}

static void
put_messages(
    struct hf_buf *b, struct hf_said_list *l, const struct hf_payload_input *in)
{
	bool any = false, instructed = in->instruction.size > 0;
	size_t room = 1024 + in->instruction.size; /* parameters and so on */
	unsigned i = 0;

	for (i = 0; i < l->n; i++)
		room += l->line[i].body.raw.size + PER_LINE;
	hf_buf_room(b, room);
	i = 0;
	hf_buf_puts(b, ",\"messages\":[");
	while (i < l->n) {
		if (is_left_out(l, i, instructed)) {
			i++;
		} else {
			if (any)
				hf_buf_putc(b, ',');
			any = true;
			i = put_message(b, l, i, prefill_member(in));
		}
	}
	if (instructed) {
		hf_buf_puts(b,
		    any ? ",{\"role\":\"user\",\"content\":" :
			  "{\"role\":\"user\",\"content\":");
		hf_json_put_string(b, in->instruction);
		hf_buf_putc(b, '}');
	}
	hf_buf_putc(b, ']');
}

/* --- parameters ----------------------------------------------------------- */

static int
put_tool(struct hf_buf *b, struct hf_json tool, struct hf_error *e)
{
	struct hf_json type = hf_json_get(tool, "type");
	struct hf_json f = hf_json_get(tool, "function");
	struct hf_json name = hf_json_get(f, "name");

	if ((type.type != HF_JSON_NONE &&
		!hf_json_string_is(type, "function")) ||
	    name.type != HF_JSON_STRING)
		return hf_fail(
		    e, HF_EINVAL, "tools: only named functions can be offered");
	hf_buf_puts(b, "{\"type\":\"function\",\"function\":{\"name\":");
	hf_buf_putstr(b, name.raw);
	put_member(b, "description", hf_json_get(f, "description"));
	put_member(b, "parameters", hf_json_get(f, "parameters"));
	put_member(b, "strict", hf_json_get(f, "strict"));
	hf_buf_puts(b, "}}");
	return 0;
}

static int
put_choice(struct hf_buf *b, struct hf_json choice, struct hf_error *e)
{
	struct hf_json type = hf_json_get(choice, "type");
	struct hf_json name;

	if (choice.type == HF_JSON_STRING ||
	    hf_json_string_is(type, "allowed_tools")) {
		put_member(b, "tool_choice", choice);
		return 0;
	}
	if (choice.type != HF_JSON_OBJECT)
		return 0;
	name = hf_json_path(choice, "function", "name", NULL);
	if (!hf_json_string_is(type, "function") || name.type != HF_JSON_STRING)
		return hf_fail(
		    e, HF_EINVAL, "tool_choice: only a function can be chosen");
	hf_buf_puts(b,
	    ",\"tool_choice\":{\"type\":\"function\","
	    "\"function\":{\"name\":");
	hf_buf_putstr(b, name.raw);
	hf_buf_puts(b, "}}");
	return 0;
}

static int
put_tools(struct hf_buf *b, struct hf_json params, struct hf_error *e)
{
	struct hf_json tools = hf_json_get(params, "tools"), tool;
	size_t pos = 0;
	int rc;

	if (!hf_json_next_element(tools, &pos, &tool))
		return 0; /* the choice means nothing without tools */
	hf_buf_puts(b, ",\"tools\":[");
	rc = put_tool(b, tool, e);
	while (rc == 0 && hf_json_next_element(tools, &pos, &tool)) {
		hf_buf_putc(b, ',');
		rc = put_tool(b, tool, e);
	}
	hf_buf_putc(b, ']');
	if (rc == 0)
		rc = put_choice(b, hf_json_get(params, "tool_choice"), e);
	put_member(b, "parallel_tool_calls",
	    hf_json_get(params, "parallel_tool_calls"));
	return rc;
}

/* Of the two names that the limit has, the one that the client knows. */
static void
put_limit(struct hf_buf *b, const struct hf_payload_input *in)
{
	struct hf_json old = hf_json_get(in->params, "max_tokens");
	struct hf_json v = hf_json_get(in->params, "max_completion_tokens");

	if (in->max_tokens == 0) {
		put_member(b, "max_tokens", old);
		put_member(b, "max_completion_tokens", v);
	} else {
		hf_buf_printf(b, ",\"%s\":%d",
		    v.type == HF_JSON_NUMBER ? "max_completion_tokens" :
					       "max_tokens",
		    in->max_tokens);
	}
}

static void
put_params(struct hf_buf *b, const struct hf_payload_input *in)
{
	struct hf_json params = in->params, v, first;
	size_t i, pos;

	put_limit(b, in);
	for (i = 0; i < hf_countof(passed); i++) {
		v = hf_json_get(params, passed[i]);
		pos = 0;
		if (v.type == HF_JSON_ARRAY &&
		    !hf_json_next_element(v, &pos, &first))
			continue; /* an empty list is no list */
		put_member(b, passed[i], v);
	}
}

/* --- the request ---------------------------------------------------------- */

static int
put_headers(const struct hf_conf_provider *p, const char *path, bool stream,
    struct hf_http_request *out, struct hf_error *e)
{
	int rc = hf_request_common(out, stream, e);

	hf_request_url(out, p->base_url, path);
	if (rc == 0)
		rc = hf_request_header(
		    out, "Authorization", "Bearer ", p->api_key, e);
	return rc;
}

static int
build(const struct hf_payload_input *in, struct hf_http_request *out,
    struct hf_error *e)
{
	struct hf_buf *b = &out->body;
	struct hf_said_list l;
	int rc;

	rc = hf_said_make(&l, in, ID_MAX, e);
	if (rc != 0)
		return rc;
	rc = hf_prefill_check(in, &l, e);
	if (rc == 0)
		rc = put_headers(in->target->provider, "/chat/completions",
		    in->stream, out, e);
	if (rc != 0)
		goto out;
	hf_buf_puts(b, "{\"model\":");
	hf_json_put_string(b, hf_str(in->target->model));
	put_messages(b, &l, in);
	if (in->prefill && in->target->call.prefill == HF_PREFILL_VLLM)
		hf_buf_puts(b,
		    ",\"continue_final_message\":true,"
		    "\"add_generation_prompt\":false");
	put_params(b, in);
	rc = put_tools(b, in->params, e);
	if (rc != 0)
		goto out;
	if (in->stream)
		hf_buf_puts(b,
		    ",\"stream\":true,"
		    "\"stream_options\":{\"include_usage\":true}");
	hf_buf_putc(b, '}');
	rc = hf_request_check(out, e);
out:
	hf_said_free(&l);
	return rc;
}

static int
models(const struct hf_conf_provider *p, struct hf_http_request *out,
    struct hf_error *e)
{
	int rc = put_headers(p, "/models", false, out, e);

	return rc == 0 ? hf_request_check(out, e) : rc;
}

const struct hf_dialect hf_dialect_openai = {
	.name = "openai",
	.build = build,
	.models = models,
	.decoder_new = hf_openai_decoder_new,
};
