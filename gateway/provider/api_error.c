/*
 * Reading errors of providers and classifying them by a dialect's table.
 */
#include <config.h>

#include "gateway/provider/api_error.h"

#include <stdio.h>
#include <strings.h>

#define MESSAGE_MAX ((size_t)2000)
#define WORD_MAX ((size_t)256)

void
hf_api_error_init(struct hf_api_error *a, int status)
{
	*a = (struct hf_api_error){ .status = status, .retry_after_ms = -1 };
	hf_buf_init(&a->message, HF_BUF_NOCAP);
	hf_buf_init(&a->code, HF_BUF_NOCAP);
	hf_buf_init(&a->type, HF_BUF_NOCAP);
	hf_buf_init(&a->param, HF_BUF_NOCAP);
}

void
hf_api_error_free(struct hf_api_error *a)
{
	hf_buf_free(&a->message);
	hf_buf_free(&a->code);
	hf_buf_free(&a->type);
	hf_buf_free(&a->param);
}

/* A string as it is decoded, a number as it is written; cut at 'max' bytes,
 * between characters. */
static void
read_text(struct hf_buf *b, struct hf_json v, size_t max)
{
	hf_buf_reset(b);
	if (v.type == HF_JSON_STRING)
		hf_json_decode(v, b);
	else if (v.type == HF_JSON_NUMBER)
		hf_buf_putstr(b, v.raw);
	if (b->size <= max)
		return;
	b->size = max;
	while (b->size > 0 && (b->data[b->size] & 0xc0) == 0x80)
		b->size--;
	b->data[b->size] = '\0';
}

static void
read_fields(struct hf_api_error *a, struct hf_json v)
{
	struct hf_json code = hf_json_get(v, "code");
	int64_t n;

	a->retry_after_ms = hf_retry_info(v);
	read_text(&a->message, hf_json_get(v, "message"), MESSAGE_MAX);
	read_text(&a->code, code, WORD_MAX);
	read_text(&a->type, hf_json_get(v, "type"), WORD_MAX);
	read_text(&a->param, hf_json_get(v, "param"), WORD_MAX);
	if (a->status >= 200 && a->status < 300 && hf_json_int(code, &n) &&
	    n >= 400 && n <= 599)
		a->status = (int)n;
	a->found = true;
}

/* Some servers wrap the object into an array. */
static struct hf_json
unwrap(struct hf_json v)
{
	struct hf_json first;
	size_t pos = 0;

	if (v.type == HF_JSON_ARRAY && hf_json_next_element(v, &pos, &first))
		return first;
	return v;
}

static bool
truthy(struct hf_json v)
{
	return v.type == HF_JSON_OBJECT || v.type == HF_JSON_ARRAY ||
	    v.type == HF_JSON_TRUE || v.type == HF_JSON_NUMBER ||
	    (v.type == HF_JSON_STRING && v.raw.size > 2);
}

bool
hf_api_error_is(struct hf_json v)
{
	v = unwrap(v);
	return truthy(hf_json_get(v, "error")) ||
	    hf_json_string_is(hf_json_get(v, "object"), "error") ||
	    hf_json_string_is(hf_json_get(v, "type"), "error");
}

void
hf_api_error_read(struct hf_api_error *a, struct hf_json v)
{
	struct hf_json error, detail;

	v = unwrap(v);
	error = unwrap(hf_json_get(v, "error"));
	if (error.type == HF_JSON_OBJECT) {
		read_fields(a, error);
	} else if (truthy(error)) {
		read_fields(a, v);
		if (a->message.size == 0)
			read_text(&a->message, error, MESSAGE_MAX);
	} else if (hf_json_get(v, "message").type == HF_JSON_STRING) {
		read_fields(a, v);
	} else if ((detail = hf_json_get(v, "detail")).type != HF_JSON_NONE) {
		read_fields(a, v);
		read_text(&a->message, detail, MESSAGE_MAX);
	}
}

static bool
contains(struct hf_str text, const char *word)
{
	size_t n = strlen(word), i;

	for (i = 0; i + n <= text.size; i++)
		if (strncasecmp(text.p + i, word, n) == 0)
			return true;
	return false;
}

static bool
matches(const struct hf_api_error *a, const struct hf_error_rule *r)
{
	if (a->status < r->from || a->status > r->to)
		return false;
	switch (r->match) {
	case HF_MATCH_ANY:
		return true;
	case HF_MATCH_CODE:
		return hf_str_is(hf_buf_str(&a->code), r->word);
	case HF_MATCH_TYPE:
		return hf_str_is(hf_buf_str(&a->type), r->word);
	case HF_MATCH_TEXT:
		return contains(hf_buf_str(&a->message), r->word);
	case HF_MATCH_FOREIGN:
		return !a->found;
	}
	return false;
}

enum hf_class
hf_api_error_class(const struct hf_api_error *a,
    const struct hf_error_rule *rule, const char **reason)
{
	while (!matches(a, rule))
		rule++;
	*reason =
	    rule->reason != NULL ? rule->reason : hf_http_reason(a->status);
	return rule->cls;
}

const char *
hf_http_reason(int status)
{
	static char text[500][9]; /* filled when first asked for */
	char *t;

	if (status >= 200 && status < 300)
		return "error_in_200";
	if (status < 100 || status > 599)
		return "http_status";
	t = text[status - 100];
	if (t[0] == '\0')
		snprintf(t, sizeof(text[0]), "http_%03d", status);
	return t;
}
