/*
 * Growable bytes with a hard cap and a sticky failure.
 */
#include <config.h>

#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST 256 /* bytes: most buffers need no second piece */
#define KEEP 8192 /* of a buffer that is trimmed */

void
hf_buf_init(struct hf_buf *b, size_t max)
{
	*b = (struct hf_buf){ .max = max };
}

void
hf_buf_free(struct hf_buf *b)
{
	free(b->data);
	*b = (struct hf_buf){ 0 };
}

void
hf_buf_reset(struct hf_buf *b)
{
	b->size = 0;
	b->failed = false;
	if (b->data != NULL)
		b->data[0] = '\0';
}

void
hf_buf_trim(struct hf_buf *b)
{
	size_t max = b->max;

	if (b->cap > KEEP) {
		hf_buf_free(b);
		hf_buf_init(b, max);
	} else {
		hf_buf_reset(b);
	}
}

static bool
grow(struct hf_buf *b, size_t need)
{
	size_t cap = b->cap == 0 ? FIRST : b->cap;
	char *p;

	while (cap < need)
		cap *= 2;
	p = realloc(b->data, cap);
	if (p == NULL)
		return false;
	b->data = p;
	b->cap = cap;
	return true;
}

char *
hf_buf_reserve_more(struct hf_buf *b, size_t size)
{
	char *p;

	if (b->failed || size > b->max || b->size > b->max - size) {
		b->failed = true;
		return NULL;
	}
	if (b->size + size + 1 > b->cap && !grow(b, b->size + size + 1)) {
		b->failed = true;
		return NULL;
	}
	p = b->data + b->size;
	b->size += size;
	b->data[b->size] = '\0';
	return p;
}

void
hf_buf_room(struct hf_buf *b, size_t size)
{
	if (hf_buf_reserve(b, size) != NULL) {
		b->size -= size;
		b->data[b->size] = '\0';
	}
}

void
hf_buf_printf(struct hf_buf *b, const char *fmt, ...)
{
	char small[256];
	char *to;
	int n;
	va_list ap;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->failed = true;
		return;
	}
	if ((size_t)n < sizeof(small)) {
		hf_buf_put(b, small, (size_t)n);
		return;
	}
	to = hf_buf_reserve(b, (size_t)n);
	if (to == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(to, (size_t)n + 1, fmt, ap);
	va_end(ap);
}

void
hf_buf_consume(struct hf_buf *b, size_t size)
{
	if (size >= b->size) {
		b->size = 0;
	} else if (size > 0) {
		memmove(b->data, b->data + size, b->size - size);
		b->size -= size;
	}
	if (b->data != NULL)
		b->data[b->size] = '\0';
}

bool
hf_buf_ok(const struct hf_buf *b)
{
	return !b->failed;
}

char *
hf_buf_take(struct hf_buf *b, size_t *size)
{
	char *p = b->data;

	if (size != NULL)
		*size = b->size;
	*b = (struct hf_buf){ .max = b->max };
	return p;
}
