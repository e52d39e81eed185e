/*
 * HTTP answers, incrementally: a head, then a body of known length or in
 * chunks.  Bytes of a stream go through two small matchers, for perfmock's
 * marks and for [DONE]; a plain body is kept to be looked at when whole.
 */
#include <config.h>

#include "bench/perf/reader.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_SIZE, CHUNK_EXT, CHUNK_DATA, CHUNK_END, CHUNK_TRAILER };

void
hf_reader_start(struct hf_reader *r)
{
	/* Not the text: 16 KB a request would be the client's largest cost. */
	r->size = 0;
	memset((char *)r + offsetof(struct hf_reader, size), 0,
	    sizeof(*r) - offsetof(struct hf_reader, size));
}

static void
match_mark(struct hf_reader *r, char ch, hf_reader_mark_fn *mark, void *arg)
{
	bool digit = ch >= '0' && ch <= '9';

	if (ch == '#') {
		r->mark_at = 1;
		r->index = 0;
		r->sent_ns = 0;
	} else if (r->mark_at == 1 && digit) {
		r->index = r->index * 10 + (ch - '0');
	} else if (r->mark_at == 1 && ch == ':') {
		r->mark_at = 2;
	} else if (r->mark_at == 2 && digit) {
		r->sent_ns = r->sent_ns * 10 + (ch - '0');
	} else {
		if (r->mark_at == 2 && ch == ';') {
			if (r->index != r->expected)
				r->jumbled = true;
			r->expected = r->index + 1;
			mark(arg, r->sent_ns);
		}
		r->mark_at = 0;
	}
}

static void
feed(struct hf_reader *r, const char *s, size_t size, hf_reader_mark_fn *mark,
    void *arg)
{
	static const char done[] = "[DONE]";
	size_t i;

	if (size <= sizeof(r->text) - 1 - r->size) {
		memcpy(r->text + r->size, s, size);
		r->size += size;
	}
	if (mark == NULL)
		return;
	for (i = 0; i < size; i++) {
		if (r->mark_at != 0 || s[i] == '#')
			match_mark(r, s[i], mark, arg);
		if (s[i] != done[r->done_at])
			r->done_at = s[i] == '[';
		else if (done[++r->done_at] == '\0') {
			r->done = true;
			r->done_at = 0;
		}
	}
}

/* The value of a header of a head that ends in '\0', or NULL. */
static const char *
header(const char *head, const char *name)
{
	const char *at = strcasestr(head, name);

	return at != NULL ? at + strlen(name) : NULL;
}

static enum hf_reader_step
take_head(struct hf_reader *r, const char *s, size_t size, size_t *used)
{
	size_t n = sizeof(r->text) - 1 - r->size, before = r->size;
	const char *v;
	char *end;

	if (n > size)
		n = size;
	memcpy(r->text + r->size, s, n);
	r->text[before + n] = '\0';
	end = strstr(r->text + (before > 3 ? before - 3 : 0), "\r\n\r\n");
	if (end == NULL) {
		r->size += n;
		*used = n;
		return r->size < sizeof(r->text) - 1 ? HF_READER_MORE :
						       HF_READER_BAD;
	}
	*used = (size_t)(end - r->text) + 4 - before;
	*end = '\0';
	r->size = 0; /* from here on the body */
	if (strncmp(r->text, "HTTP/1.1 ", 9) != 0)
		return HF_READER_BAD;
	r->status = atoi(r->text + 9);
	v = header(r->text, "\r\nconnection:");
	r->keep = v == NULL || strncasecmp(v, " close", 6) != 0;
	r->chunked = header(r->text, "\r\ntransfer-encoding: chunked") != NULL;
	v = header(r->text, "\r\ncontent-length:");
	if (v == NULL && !r->chunked)
		return HF_READER_BAD;
	r->left = v != NULL ? strtoll(v, NULL, 10) : 0;
	r->in_body = true;
	return !r->chunked && r->left == 0 ? HF_READER_DONE : HF_READER_MORE;
}

static int
hex_value(char ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	ch = (char)tolower((unsigned char)ch);
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

static size_t
take_data(struct hf_reader *r, const char *s, size_t size,
    hf_reader_mark_fn *mark, void *arg)
{
	size_t n = size;

	if ((int64_t)n > r->left)
		n = (size_t)r->left;
	feed(r, s, n, mark, arg);
	r->left -= (int64_t)n;
	return n;
}

/* One byte of what is between chunks. */
static enum hf_reader_step
chunk_byte(struct hf_reader *r, char ch)
{
	if (r->chunk_at == CHUNK_SIZE && hex_value(ch) >= 0) {
		r->left = r->left * 16 + hex_value(ch);
		return HF_READER_MORE;
	}
	if (r->chunk_at == CHUNK_SIZE && ch != '\n')
		r->chunk_at = CHUNK_EXT;
	if (ch != '\n')
		return HF_READER_MORE;
	switch (r->chunk_at) {
	case CHUNK_SIZE:
	case CHUNK_EXT:
		r->chunk_at = r->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
		return HF_READER_MORE;
	case CHUNK_END:
		r->chunk_at = CHUNK_SIZE;
		return HF_READER_MORE;
	default:
		return HF_READER_DONE; /* perfmock and proxies send no trailers
					*/
	}
}

static enum hf_reader_step
take_chunks(struct hf_reader *r, const char *s, size_t size, size_t *used,
    hf_reader_mark_fn *mark, void *arg)
{
	enum hf_reader_step step = HF_READER_MORE;
	size_t i = 0;

	while (i < size && step == HF_READER_MORE) {
		if (r->chunk_at != CHUNK_DATA) {
			step = chunk_byte(r, s[i++]);
			continue;
		}
		i += take_data(r, s + i, size - i, mark, arg);
		if (r->left == 0)
			r->chunk_at = CHUNK_END;
	}
	*used = i;
	return step;
}

enum hf_reader_step
hf_reader_take(struct hf_reader *r, const char *s, size_t size, size_t *used,
    hf_reader_mark_fn *mark, void *arg)
{
	enum hf_reader_step step = HF_READER_MORE;
	size_t n = 0;

	*used = 0;
	if (!r->in_body) {
		step = take_head(r, s, size, used);
		if (step != HF_READER_MORE || !r->in_body)
			return step;
	}
	if (r->chunked) {
		step = take_chunks(r, s + *used, size - *used, &n, mark, arg);
	} else {
		n = take_data(r, s + *used, size - *used, mark, arg);
		if (r->left == 0)
			step = HF_READER_DONE;
	}
	*used += n;
	return step;
}

bool
hf_reader_plain_ok(const struct hf_reader *r)
{
	static const char words[] = "\"#0:";

	return memmem(r->text, r->size, words, sizeof(words) - 1) != NULL;
}
