/*
 * What both dialects of the faithful providers need.  Pure.
 */
#include <config.h>

#include "bench/dialect.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

int
hf_refuse(struct hf_refusal *r, int status, const char *type, const char *code,
    const char *param, const char *fmt, ...)
{
	va_list ap;

	r->status = status;
	snprintf(r->type, sizeof(r->type), "%s", type);
	snprintf(r->code, sizeof(r->code), "%s", code == NULL ? "" : code);
	snprintf(r->param, sizeof(r->param), "%s", param == NULL ? "" : param);
	va_start(ap, fmt);
	vsnprintf(r->message, sizeof(r->message), fmt, ap);
	va_end(ap);
	return -1;
}

void
hf_stream_init(struct hf_stream *s)
{
	memset(s, 0, sizeof(*s));
	hf_buf_init(&s->head, HF_BUF_NOCAP);
	hf_buf_init(&s->tail, HF_BUF_NOCAP);
}

void
hf_stream_free(struct hf_stream *s)
{
	for (unsigned i = 0; i < s->n_piece; i++)
		hf_buf_free(&s->piece[i]);
	free(s->piece);
	hf_buf_free(&s->head);
	hf_buf_free(&s->tail);
	memset(s, 0, sizeof(*s));
}

struct hf_buf *
hf_stream_add(struct hf_stream *s)
{
	struct hf_buf *p;

	p = reallocarray(s->piece, s->n_piece + 1, sizeof(*p));
	HF_CHECK(p != NULL);
	s->piece = p;
	hf_buf_init(&s->piece[s->n_piece], HF_BUF_NOCAP);
	return &s->piece[s->n_piece++];
}

const char *
hf_unknown_key(json_t *o, const char *const *known)
{
	const char *key;
	json_t *v;

	json_object_foreach(o, key, v)
	{
		const char *const *k = known;

		while (*k != NULL && strcmp(*k, key) != 0)
			k++;
		if (*k == NULL)
			return key;
	}
	return NULL;
}

bool
hf_is_token(struct hf_str s, size_t max)
{
	static const char ok[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "abcdefghijklmnopqrstuvwxyz0123456789_-";

	if (s.size == 0 || s.size > max)
		return false;
	for (size_t i = 0; i < s.size; i++)
		if (s.p[i] == '\0' || strchr(ok, s.p[i]) == NULL)
			return false;
	return true;
}

static int
append(const char *p, size_t size, void *arg)
{
	hf_buf_put(arg, p, size);
	return 0;
}

void
hf_buf_json(struct hf_buf *b, json_t *o)
{
	if (json_dump_callback(o, append, b, JSON_COMPACT | JSON_ENCODE_ANY) !=
	    0)
		b->failed = true;
}

char *
hf_parts_text(json_t *content)
{
	struct hf_buf b;
	bool first = true;
	json_t *p;
	size_t i;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_puts(&b, "");
	if (json_is_string(content))
		hf_buf_putstr(&b, hf_json_str(content));
	json_array_foreach(content, i, p)
	{
		struct hf_str t = hf_json_str(json_object_get(p, "text"));

		if (t.p == NULL)
			continue;
		if (!first)
			hf_buf_putc(&b, '\n');
		first = false;
		hf_buf_putstr(&b, t);
	}
	HF_CHECK(hf_buf_ok(&b));
	return hf_buf_take(&b, NULL);
}

size_t
hf_piece_size(const char *text)
{
	size_t n = strcspn(text, " ");

	return n + strspn(text + n, " ");
}
