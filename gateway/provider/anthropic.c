/*
 * The anthropic dialect: messages requests from items.  Every message is
 * written as an array of blocks, and neighbours of one role share a message,
 * so that roles alternate by construction.
 */
#include <config.h>

#include "gateway/provider/anthropic_decode.h"
#include "gateway/provider/anthropic_tools.h"
#include "gateway/provider/history.h"
#include "gateway/provider/request.h"

#define ID_MAX 64 /* of a tool call */
#define API_VERSION "2023-06-01"

#define FIRST_USER "(call connected)" /* before a greeting */
#define LAST_USER "(continue)"	      /* newer models refuse prefill */
#define NOTE "[system note] "
#define JSON_ONLY "Answer with one JSON object and nothing else."

struct writer {
	struct hf_buf *b;
	enum hf_role role; /* of the open message */
	bool open;	   /* a message is open */
	bool any;	   /* a message was begun */
	bool any_block;	   /* the open one has a block */
};

/* --- messages ------------------------------------------------------------- */

static void
close_message(struct writer *w)
{
	if (w->open)
		hf_buf_puts(w->b, "]}");
	w->open = false;
}

/* Begin a block in a message of 'role', in the open one if it is of that
 * role. */
static void
begin_block(struct writer *w, enum hf_role role)
{
	bool user = role == HF_ROLE_USER;

	if (!w->any && !user)
		hf_buf_puts(w->b,
		    "{\"role\":\"user\",\"content\":[{\"type\":"
		    "\"text\",\"text\":\"" FIRST_USER "\"}]},");
	if (!w->open || w->role != role) {
		close_message(w);
		if (w->any)
			hf_buf_putc(w->b, ',');
		hf_buf_puts(w->b,
		    user ? "{\"role\":\"user\",\"content\":[" :
			   "{\"role\":\"assistant\",\"content\":[");
		w->role = role;
		w->open = w->any = true;
		w->any_block = false;
	}
	if (w->any_block)
		hf_buf_putc(w->b, ',');
	w->any_block = true;
}

/* A text block of 'prefix' and the raw string; nothing if it is blank. */
static void
put_text(struct writer *w, enum hf_role role, const char *prefix,
    struct hf_json text)
{
	if (hf_text_blank(text))
		return;
	begin_block(w, role);
	hf_buf_puts(w->b, "{\"type\":\"text\",\"text\":\"");
	hf_buf_puts(w->b, prefix);
	hf_buf_put(w->b, text.raw.p + 1, text.raw.size - 1);
	hf_buf_putc(w->b, '}');
}

static void
put_words(struct writer *w, const char *words)
{
	begin_block(w, HF_ROLE_USER);
	hf_buf_puts(w->b, "{\"type\":\"text\",\"text\":\"");
	hf_buf_puts(w->b, words);
	hf_buf_puts(w->b, "\"}");
}

static void
put_said(struct writer *w, const struct hf_said *s)
{
	bool user = s->role != HF_ROLE_ASSISTANT;
	enum hf_role role = user ? HF_ROLE_USER : HF_ROLE_ASSISTANT;
	struct hf_json content = s->content, text;
	bool note = s->role == HF_ROLE_SYSTEM || s->role == HF_ROLE_DEVELOPER;
	size_t pos = 0;

	while (hf_content_next(content, &pos, &text))
		put_text(w, role, note ? NOTE : "", text);
	if (!user)
		put_text(w, role, "", s->refusal);
}

/* The answer that is to be gone on with; its last text may not end in white
 * space. */
static void
put_partial(struct writer *w, const struct hf_said *s)
{
	struct hf_json content = s->content, text;
	struct hf_json last = { 0 };
	size_t pos = 0;

	while (hf_content_next(content, &pos, &text)) {
		if (hf_text_blank(text))
			continue;
		put_text(w, HF_ROLE_ASSISTANT, "", last);
		last = text;
	}
	begin_block(w, HF_ROLE_ASSISTANT);
	hf_buf_puts(w->b, "{\"type\":\"text\",\"text\":");
	hf_text_put_stripped(w->b, last);
	hf_buf_putc(w->b, '}');
}

/* The arguments as an object, whatever the text is. */
static void
put_input(struct hf_buf *b, struct hf_json args)
{
	struct hf_json v;
	struct hf_buf text;

	if (hf_text_blank(args)) {
		hf_buf_puts(b, "{}");
		return;
	}
	hf_buf_init(&text, HF_BUF_NOCAP);
	hf_json_decode(args, &text);
	if (hf_buf_ok(&text) &&
	    hf_json_check(hf_buf_str(&text), &v, NULL, NULL) == 0 &&
	    v.type == HF_JSON_OBJECT) {
		hf_json_put_repaired(b, v);
	} else {
		hf_buf_puts(b, "{\"_raw\":");
		hf_buf_putstr(b, args.raw);
		hf_buf_putc(b, '}');
	}
	hf_buf_free(&text);
}

static void
put_call(struct writer *w, const struct hf_said *s)
{
	struct hf_json name = s->name;

	begin_block(w, HF_ROLE_ASSISTANT);
	hf_buf_puts(w->b, "{\"type\":\"tool_use\",\"id\":\"");
	hf_buf_putstr(w->b, s->id);
	hf_buf_puts(w->b, "\",\"name\":");
	hf_buf_putstr(
	    w->b, name.type == HF_JSON_STRING ? name.raw : HF_STR("\"\""));
	hf_buf_puts(w->b, ",\"input\":");
	put_input(w->b, s->arguments);
	hf_buf_putc(w->b, '}');
}

/* Content of a result: a string as it is, parts as text blocks. */
static void
put_result_content(struct hf_buf *b, struct hf_json content)
{
	struct hf_json text;
	const char *before = ",\"content\":[";
	size_t pos = 0;

	if (hf_content_empty(content, true))
		return;
	if (content.type == HF_JSON_STRING) {
		hf_buf_puts(b, ",\"content\":");
		hf_buf_putstr(b, content.raw);
		return;
	}
	while (hf_content_next(content, &pos, &text)) {
		if (hf_text_blank(text))
			continue;
		hf_buf_puts(b, before);
		hf_buf_puts(b, "{\"type\":\"text\",\"text\":");
		hf_buf_putstr(b, text.raw);
		hf_buf_putc(b, '}');
		before = ",";
	}
	hf_buf_putc(b, ']');
}

static void
put_result(struct writer *w, const struct hf_said *s)
{
	begin_block(w, HF_ROLE_USER);
	hf_buf_puts(w->b, "{\"type\":\"tool_result\",\"tool_use_id\":\"");
	hf_buf_putstr(w->b, s->id);
	hf_buf_putc(w->b, '"');
	if (s->body.type == HF_JSON_NONE)
		hf_buf_puts(w->b,
		    ",\"content\":\"" HF_NO_RESULT "\","
		    "\"is_error\":true");
	else
		put_result_content(w->b, s->content);
	hf_buf_putc(w->b, '}');
}

static void
put_instruction(struct writer *w, struct hf_str words)
{
	struct hf_buf text;

	hf_buf_init(&text, HF_BUF_NOCAP);
	hf_json_put_string(&text, words);
	put_text(w, HF_ROLE_USER, "",
	    (struct hf_json){ HF_JSON_STRING, hf_buf_str(&text), NULL });
	hf_buf_free(&text);
}

static void
put_messages(struct hf_buf *b, const struct hf_said_list *l,
    const struct hf_payload_input *in)
{
	struct writer w = { .b = b };
	unsigned i;

	hf_buf_puts(b, ",\"messages\":[");
	for (i = 0; i < l->n; i++) {
		if (l->line[i].lead)
			continue;
		switch (l->line[i].kind) {
		case HF_SAID_MESSAGE:
			if (in->prefill && i + 1 == l->n)
				put_partial(&w, &l->line[i]);
			else
				put_said(&w, &l->line[i]);
			break;
		case HF_SAID_CALL:
			put_call(&w, &l->line[i]);
			break;
		case HF_SAID_RESULT:
			put_result(&w, &l->line[i]);
			break;
		}
	}
	if (in->instruction.size > 0)
		put_instruction(&w, in->instruction);
	if (!w.any)
		put_words(&w, FIRST_USER);
	else if (w.role == HF_ROLE_ASSISTANT && !in->prefill)
		put_words(&w, LAST_USER);
	close_message(&w);
	hf_buf_putc(b, ']');
}

/* --- system --------------------------------------------------------------- */

static void
put_system_block(struct hf_buf *b, struct hf_str text, bool *any)
{
	hf_buf_puts(b, *any ? "," : ",\"system\":[");
	hf_buf_puts(b, "{\"type\":\"text\",\"text\":");
	hf_buf_putstr(b, text);
	hf_buf_putc(b, '}');
	*any = true;
}

static void
put_system(
    struct hf_buf *b, const struct hf_said_list *l, struct hf_json params)
{
	struct hf_json text, format;
	bool any = false;
	size_t pos;
	unsigned i;

	for (i = 0; i < l->n && l->line[i].lead; i++) {
		pos = 0;
		while (hf_content_next(l->line[i].content, &pos, &text))
			if (!hf_text_blank(text))
				put_system_block(b, text.raw, &any);
	}
	format = hf_json_path(params, "response_format", "type", NULL);
	if (hf_json_string_is(format, "json_object"))
		put_system_block(b, HF_STR("\"" JSON_ONLY "\""), &any);
	if (any)
		hf_buf_putc(b, ']');
}

/* --- parameters ----------------------------------------------------------- */

static void
put_raw(struct hf_buf *b, const char *before, struct hf_json v)
{
	hf_buf_puts(b, before);
	hf_buf_putstr(b, v.raw);
}

static void
put_max_tokens(struct hf_buf *b, const struct hf_payload_input *in)
{
	int64_t n = in->max_tokens > 0 ?
	    in->max_tokens :
	    hf_output_room(in->target, in->params, in->window);

	hf_buf_printf(b, ",\"max_tokens\":%lld", (long long)n);
}

/* The API versions after the first refuse sampling parameters altogether; and
 * temperature beside top_p is refused by some models, so it goes alone. */
static void
put_sampling(struct hf_buf *b, const struct hf_payload_input *in)
{
	const char *version = in->target->provider->api_version;
	struct hf_json t = hf_json_get(in->params, "temperature");
	struct hf_json p = hf_json_get(in->params, "top_p");
	double v;

	if (version != NULL && strcmp(version, API_VERSION) > 0)
		return;
	if (hf_json_double(t, &v)) {
		if (v > 1)
			hf_buf_puts(b, ",\"temperature\":1");
		else
			put_raw(b, ",\"temperature\":", t);
	} else if (p.type == HF_JSON_NUMBER) {
		put_raw(b, ",\"top_p\":", p);
	}
}

static void
put_stop(struct hf_buf *b, struct hf_json stop)
{
	struct hf_json s;
	const char *before = ",\"stop_sequences\":[";
	size_t pos = 0;

	if (stop.type == HF_JSON_STRING && !hf_text_blank(stop)) {
		put_raw(b, before, stop);
		hf_buf_putc(b, ']');
		return;
	}
	while (hf_json_next_element(stop, &pos, &s)) {
		if (hf_text_blank(s))
			continue;
		put_raw(b, before, s);
		before = ",";
	}
	if (*before == ',' && before[1] == '\0')
		hf_buf_putc(b, ']');
}

static void
put_user(struct hf_buf *b, struct hf_json params)
{
	struct hf_json id = hf_json_get(params, "safety_identifier");

	if (hf_text_blank(id))
		id = hf_json_get(params, "user");
	if (hf_text_blank(id))
		return;
	put_raw(b, ",\"metadata\":{\"user_id\":", id);
	hf_buf_putc(b, '}');
}

static void
put_format(struct hf_buf *b, struct hf_json params)
{
	struct hf_json f = hf_json_get(params, "response_format");
	struct hf_json schema = hf_json_path(f, "json_schema", "schema", NULL);

	if (!hf_json_string_is(hf_json_get(f, "type"), "json_schema") ||
	    schema.type != HF_JSON_OBJECT)
		return;
	put_raw(b,
	    ",\"output_config\":{\"format\":{\"type\":\"json_schema\","
	    "\"schema\":",
	    schema);
	hf_buf_puts(b, "}}");
}

/* --- the request ---------------------------------------------------------- */

/* The base is written with or without /v1, as the SDKs differ too. */
static void
put_url(struct hf_http_request *out, const char *base, const char *path)
{
	static const char version[] = "/v1";
	size_t n = base == NULL ? 0 : strlen(base);
	bool versioned;

	while (n > 0 && base[n - 1] == '/')
		n--;
	versioned = n >= 3 && memcmp(base + n - 3, version, 3) == 0;
	hf_request_url(out, base, versioned ? "" : version);
	hf_buf_puts(&out->url, path);
}

static int
put_headers(const struct hf_conf_provider *p, const char *path, bool stream,
    struct hf_http_request *out, struct hf_error *e)
{
	const char *version = p->api_version;
	int rc = hf_request_common(out, stream, e);

	put_url(out, p->base_url, path);
	if (rc == 0)
		rc = hf_request_header(out, "x-api-key", "", p->api_key, e);
	if (rc == 0)
		rc = hf_request_header(out, "anthropic-version", "",
		    version == NULL || *version == '\0' ? API_VERSION : version,
		    e);
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
		rc = put_headers(
		    in->target->provider, "/messages", in->stream, out, e);
	if (rc != 0)
		goto out;
	hf_buf_puts(b, "{\"model\":");
	hf_json_put_string(b, hf_str(in->target->model));
	put_max_tokens(b, in);
	put_system(b, &l, in->params);
	put_messages(b, &l, in);
	rc = hf_anthropic_put_tools(b, &l, in->params, e);
	if (rc != 0)
		goto out;
	put_stop(b, hf_json_get(in->params, "stop"));
	put_sampling(b, in);
	put_user(b, in->params);
	put_format(b, in->params);
	if (in->stream)
		hf_buf_puts(b, ",\"stream\":true");
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

const struct hf_dialect hf_dialect_anthropic = {
	.name = "anthropic",
	.build = build,
	.models = models,
	.decoder_new = hf_anthropic_decoder_new,
};
