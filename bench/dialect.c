/*
 * What all dialects of the faithful providers need.  Pure.
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
	r->prefill = false;
	r->hint = HF_HINT_NONE;
	r->retry_ms = 0;
	r->window = 0;
	snprintf(r->type, sizeof(r->type), "%s", type);
	snprintf(r->code, sizeof(r->code), "%s", code == NULL ? "" : code);
	snprintf(r->param, sizeof(r->param), "%s", param == NULL ? "" : param);
	va_start(ap, fmt);
	vsnprintf(r->message, sizeof(r->message), fmt, ap);
	va_end(ap);
	return -1;
}

struct hf_str
hf_body_model(const struct hf_bench_headers *h, json_t *body)
{
	(void)h;
	return hf_json_str(json_object_get(body, "model"));
}

bool
hf_body_streams(const struct hf_bench_headers *h, json_t *body)
{
	(void)h;
	return json_is_true(json_object_get(body, "stream"));
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

unsigned
hf_fragments(struct hf_str args, size_t i, const struct hf_split *split,
    size_t end[HF_FRAGMENTS])
{
	size_t half = args.size / 2;
	unsigned n = 0;

	/* Split between characters. */
	while (half < args.size && ((unsigned char)args.p[half] & 0xc0) == 0x80)
		half++;
	if (i == 0 && split->args > 0 && split->args < half)
		end[n++] = split->args;
	if (half > 0 && half < args.size)
		end[n++] = half;
	if (i == 0 && split->args > half && split->args < args.size)
		end[n++] = split->args;
	end[n++] = args.size;
	return n;
}
