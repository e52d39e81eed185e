/*
 * A growable byte buffer with a hard cap.  Appending past the cap or out of
 * memory marks it failed; later appends do nothing, so that writers check
 * once, at the end, with hf_buf_ok().  Always NUL-terminated after the data.
 * Not thread-safe; the struct that holds it owns its memory.
 */
#ifndef HF_BASE_BUF_H
#define HF_BASE_BUF_H

#include "base/hf.h"

#define HF_BUF_NOCAP ((size_t)1 << 40)

struct hf_buf {
	char *data;
	size_t size; /* bytes in use */
	size_t cap;  /* bytes allocated */
	size_t max;  /* hard cap for size */
	bool failed;
};

void hf_buf_init(struct hf_buf *b, size_t max);
void hf_buf_free(struct hf_buf *b);  /* also zeroes the struct */
void hf_buf_reset(struct hf_buf *b); /* keeps the memory */
/* The same, but keeps no more than some KB: for what lives as long as a
 * stream and may have held something big once. */
void hf_buf_trim(struct hf_buf *b);
void hf_buf_printf(struct hf_buf *b, const char *fmt, ...) HF_PRINTF(2, 3);
/* The same where there is no room yet. */
char *hf_buf_reserve_more(struct hf_buf *b, size_t size) HF_MUST_CHECK;
/* Room for 'size' more bytes at the end, or NULL (failed). */
static inline char *
hf_buf_reserve(struct hf_buf *b, size_t size)
{
	char *p;

	if (b->failed || size >= b->cap - b->size || size > b->max - b->size)
		return hf_buf_reserve_more(b, size);
	p = b->data + b->size;
	b->size += size;
	b->data[b->size] = '\0';
	return p;
}

/* Allocate for 'size' more bytes, so that appending them copies nothing. */
void hf_buf_room(struct hf_buf *b, size_t size);
/* Drop 'size' bytes from the front. */
void hf_buf_consume(struct hf_buf *b, size_t size);
bool hf_buf_ok(const struct hf_buf *b) HF_MUST_CHECK;
/* Give the bytes away (caller frees); *size may be NULL.  Buffer is empty. */
char *hf_buf_take(struct hf_buf *b, size_t *size) HF_MUST_CHECK;

static inline void
hf_buf_put(struct hf_buf *b, const void *p, size_t size)
{
	char *to = hf_buf_reserve(b, size);

	if (to != NULL && size > 0)
		memcpy(to, p, size);
}

/* Inline for the size of a literal. */
static inline void
hf_buf_puts(struct hf_buf *b, const char *z)
{
	hf_buf_put(b, z, strlen(z));
}

static inline void
hf_buf_putstr(struct hf_buf *b, struct hf_str s)
{
	hf_buf_put(b, s.p, s.size);
}

static inline void
hf_buf_putc(struct hf_buf *b, char c)
{
	if (!b->failed && b->size + 1 < b->cap && b->size < b->max) {
		b->data[b->size++] = c;
		b->data[b->size] = '\0';
	} else {
		hf_buf_put(b, &c, 1);
	}
}

static inline struct hf_str
hf_buf_str(const struct hf_buf *b)
{
	return (struct hf_str){ b->data, b->size };
}

#endif
