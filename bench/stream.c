/*
 * Where streams are broken off.  Pure.
 */
#include <config.h>

#include "bench/stream.h"

#include <stdlib.h>

#include "base/check.h"

void
hf_stream_init(struct hf_stream *s)
{
	memset(s, 0, sizeof(*s));
	hf_buf_init(&s->head, HF_BUF_NOCAP);
	hf_buf_init(&s->finish, HF_BUF_NOCAP);
	hf_buf_init(&s->tail, HF_BUF_NOCAP);
}

void
hf_stream_free(struct hf_stream *s)
{
	for (unsigned i = 0; i < s->n_piece; i++)
		hf_buf_free(&s->piece[i].bytes);
	free(s->piece);
	hf_buf_free(&s->head);
	hf_buf_free(&s->finish);
	hf_buf_free(&s->tail);
	memset(s, 0, sizeof(*s));
}

struct hf_buf *
hf_stream_add(struct hf_stream *s, bool call, size_t end)
{
	struct hf_piece *p;

	p = reallocarray(s->piece, s->n_piece + 1, sizeof(*p));
	HF_CHECK(p != NULL);
	s->piece = p;
	p = &s->piece[s->n_piece++];
	p->call = call;
	p->end = end;
	hf_buf_init(&p->bytes, HF_BUF_NOCAP);
	return &p->bytes;
}

size_t
hf_piece_size(const char *text, size_t at, size_t split)
{
	size_t n = strcspn(text + at, " ");

	n += strspn(text + at + n, " ");
	return split > at && split < at + n ? split - at : n;
}

/* --- places in a text ----------------------------------------------------- */

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A place between two letters, the next from 'at' on, else the last; 0: there
 * is none. */
static size_t
within_word(const char *text, size_t at)
{
	size_t size = strlen(text), found = 0;

	for (size_t i = 1; i < size; i++) {
		if (!is_letter(text[i - 1]) || !is_letter(text[i]))
			continue;
		found = i;
		if (i >= at)
			break;
	}
	return found;
}

static bool
continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

struct hf_split
hf_stream_split(const struct hf_answer *a, const struct hf_bench_fault *f)
{
	struct hf_split s = { 0, 0 };
	struct hf_str args;

	if (f->phase == HF_PHASE_WORD && a->text != NULL)
		s.text = within_word(a->text, f->at);
	if (f->phase == HF_PHASE_ARGS) {
		args = hf_json_str(
		    json_object_get(json_array_get(a->calls, 0), "arguments"));
		s.args = f->at < args.size ? f->at : args.size / 2;
		while (s.args > 0 && s.args < args.size &&
		    continues(args.p[s.args]))
			s.args++;
	}
	return s;
}

/* --- cuts ----------------------------------------------------------------- */

/* Whole pieces that end at or before 'at', of text or of calls. */
static unsigned
pieces_to(const struct hf_stream *s, bool call, size_t at)
{
	unsigned n = 0;

	while (n < s->n_piece &&
	    (s->piece[n].call < call ||
		(s->piece[n].call == call && s->piece[n].end <= at)))
		n++;
	return n;
}

/* The first byte from 'from' on that begins a character of several bytes, as
 * piece and offset behind that byte; false: there is none. */
static bool
find_wide(const struct hf_stream *s, unsigned from, struct hf_cut *c)
{
	for (unsigned i = from; i < s->n_piece; i++) {
		const struct hf_buf *b = &s->piece[i].bytes;

		for (size_t k = 0; k < b->size; k++) {
			if ((unsigned char)b->data[k] < 0xc0)
				continue;
			c->pieces = i;
			c->bytes = k + 1;
			return true;
		}
	}
	return false;
}

static void
half_of_next(const struct hf_stream *s, struct hf_cut *c)
{
	if (c->pieces == s->n_piece && c->pieces > 0)
		c->pieces--;
	if (c->pieces < s->n_piece)
		c->bytes = s->piece[c->pieces].bytes.size / 2;
}

struct hf_cut
hf_stream_cut(const struct hf_stream *s, const struct hf_bench_fault *f,
    const struct hf_split *split)
{
	struct hf_cut c = { .head = f->phase != HF_PHASE_HEADERS };

	switch (f->phase) {
	case HF_PHASE_HEADERS:
	case HF_PHASE_ROLE:
	case HF_PHASE_RECEIVED:
	case HF_PHASE_COUNT:
		break;
	case HF_PHASE_CHUNKS:
		c.pieces = f->chunks < s->n_piece ? f->chunks : s->n_piece;
		break;
	case HF_PHASE_FIRST:
		c.pieces = s->n_piece > 0;
		break;
	case HF_PHASE_WORD:
		c.pieces = pieces_to(s, false, split->text);
		break;
	case HF_PHASE_EVENT:
	case HF_PHASE_CHAR:
		c.pieces = pieces_to(s, false, f->at);
		if (f->phase == HF_PHASE_EVENT ||
		    (f->phase == HF_PHASE_CHAR && !find_wide(s, c.pieces, &c) &&
			!find_wide(s, 0, &c)))
			half_of_next(s, &c);
		break;
	case HF_PHASE_ARGS:
		c.pieces = pieces_to(s, true, split->args);
		break;
	case HF_PHASE_CONTENT:
	case HF_PHASE_FINISH:
	case HF_PHASE_DONE:
		c.pieces = s->n_piece;
		c.finish = f->phase != HF_PHASE_CONTENT;
		break;
	}
	for (unsigned i = 0; i < c.pieces; i++)
		if (!s->piece[i].call)
			c.text = s->piece[i].end;
	return c;
}
