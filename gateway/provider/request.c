/*
 * The parts of an outbound request that every dialect needs.
 */
#include <config.h>

#include "gateway/provider/request.h"

/* A whole history with its tools; far above any provider's own limit. */
#define BODY_MAX ((size_t)256 * 1024 * 1024)
#define HEADERS_MAX ((size_t)64 * 1024)

void
hf_http_request_init(struct hf_http_request *r)
{
	hf_buf_init(&r->url, HEADERS_MAX);
	hf_buf_init(&r->headers, HEADERS_MAX);
	hf_buf_init(&r->body, BODY_MAX);
}

void
hf_http_request_free(struct hf_http_request *r)
{
	/* The secret does not stay behind in freed memory. */
	if (r->headers.data != NULL)
		explicit_bzero(r->headers.data, r->headers.size);
	hf_buf_free(&r->url);
	hf_buf_free(&r->headers);
	hf_buf_free(&r->body);
}

/* True if 's' may stand in a header line. */
static bool
clean(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

int
hf_request_header(struct hf_http_request *r, const char *name,
    const char *before, const char *value, struct hf_error *e)
{
	if (value == NULL || *value == '\0')
		return 0;
	if (!clean(value))
		return hf_fail(e, HF_EINVAL,
		    "control character in the value of header %s", name);
	hf_buf_puts(&r->headers, name);
	hf_buf_puts(&r->headers, ": ");
	hf_buf_puts(&r->headers, before);
	hf_buf_puts(&r->headers, value);
	hf_buf_putc(&r->headers, '\n');
	return 0;
}

int
hf_request_common(struct hf_http_request *r, bool stream, struct hf_error *e)
{
	int rc;

	rc = hf_request_header(r, "Content-Type", "", "application/json", e);
	if (rc == 0)
		rc = hf_request_header(r, "Accept", "",
		    stream ? "text/event-stream" : "application/json", e);
	if (rc == 0)
		rc = hf_request_header(r, "Accept-Encoding", "", "identity", e);
	return rc;
}

void
hf_request_url(struct hf_http_request *r, const char *base, const char *path)
{
	size_t n = base == NULL ? 0 : strlen(base);

	while (n > 0 && base[n - 1] == '/')
		n--;
	hf_buf_put(&r->url, base, n);
	hf_buf_puts(&r->url, path);
}

int
hf_request_check(const struct hf_http_request *r, struct hf_error *e)
{
	if (!hf_buf_ok(&r->url) || !hf_buf_ok(&r->headers) ||
	    !hf_buf_ok(&r->body))
		return hf_fail(e, HF_ELIMIT, "request is too large");
	return 0;
}

/* --- prefill ---------------------------------------------------------------
 */

/* When a target can be asked to go on with a partial answer: the rules are
 * those of the strictest maker, since a refusal costs an attempt in the middle
 * of a stream. */

/* A tool must be called: what would follow the text is no text. */
static bool
is_forced(struct hf_json params)
{
	struct hf_json tools = hf_json_get(params, "tools"), first;
	struct hf_json choice = hf_json_get(params, "tool_choice");
	size_t pos = 0;

	if (!hf_json_next_element(tools, &pos, &first))
		return false; /* the choice means nothing without tools */
	if (hf_json_string_is(hf_json_get(choice, "type"), "allowed_tools"))
		choice = hf_json_path(choice, "allowed_tools", "mode", NULL);
	return choice.type == HF_JSON_OBJECT ||
	    hf_json_string_is(choice, "required");
}

/* An output grammar begins anew with the continuation. */
static bool
is_structured(struct hf_json params)
{
	struct hf_json f = hf_json_get(params, "response_format");

	return f.type != HF_JSON_NONE && f.type != HF_JSON_NULL &&
	    !hf_json_string_is(hf_json_get(f, "type"), "text");
}

const char *
hf_prefill_refusal(const struct hf_conf_target *target, struct hf_json params)
{
	int way = target->call.prefill;

	if (way == HF_PREFILL_NONE)
		return "this target cannot go on with an answer";
	if (target->provider->dialect == HF_DIALECT_ANTHROPIC &&
	    way != HF_PREFILL_PLAIN)
		return "this way of prefill is not for dialect anthropic";
	if (is_forced(params))
		return "not with a tool_choice that forces a call";
	if (is_structured(params))
		return "not with a response_format other than text";
	return NULL;
}

int
hf_prefill_check(const struct hf_payload_input *in,
    const struct hf_said_list *l, struct hf_error *e)
{
	const struct hf_said *last = l->n == 0 ? NULL : &l->line[l->n - 1];
	const char *why;

	if (!in->prefill)
		return 0;
	why = hf_prefill_refusal(in->target, in->params);
	if (why == NULL && in->instruction.size > 0)
		why = "not with an instruction behind the answer";
	if (why == NULL &&
	    (last == NULL || last->kind != HF_SAID_MESSAGE ||
		last->role != HF_ROLE_ASSISTANT ||
		hf_content_empty(last->content, true) ||
		!hf_text_blank(last->refusal)))
		why = "the history does not end with an answer's text";
	if (why == NULL)
		return 0;
	return hf_fail(e, HF_EINVAL, "prefill: %s", why);
}
