/*
 * Splicing the continuation of an answer to what was delivered of it.
 *
 * Two comparisons run side by side while Q comes in.  "Again" walks through
 * the whole of P and Q with two cursors.  "Overlap" looks at the last
 * HF_SPLICE_HEAD bytes of P, white space folded, and drops one by one the
 * starts of ends of P that Q does not begin with.  What is dropped stays
 * dropped and what matched stays matched when more of Q comes; so Q is let go
 * at the first byte that decides, and how it was split makes no difference.
 */
#include <config.h>

#include "gateway/turn/splice.h"

#include <strings.h>

#include "gateway/turn/chars.h"

#define OVERLAP_BYTES ((size_t)12)
#define OVERLAP_WORDS 3
/* Raw bytes of P that are folded into the tail. */
#define TAIL_RAW (4 * HF_SPLICE_HEAD)

enum answer { NO, MAYBE, YES };

/* What is known of Q: 'over' if that is all, 'full' if no more is waited
 * for. */
struct known {
	struct hf_str q;
	bool over;
	bool full;
};

/* Where Q begins. */
struct lead {
	size_t raw;  /* after an ellipsis, or 0 */
	size_t text; /* the first word */
	bool ellipsis;
};

static size_t
skip_space(struct hf_str s, size_t at)
{
	struct hf_char c;

	for (; at < s.size; at += c.size) {
		c = hf_char_at(s, at);
		if (c.kind != HF_CHAR_SPACE)
			break;
	}
	return at;
}

static size_t
skip_blanks(struct hf_str s, size_t at)
{
	while (at < s.size && (s.p[at] == ' ' || s.p[at] == '\t'))
		at++;
	return at;
}

/* White space, perhaps an ellipsis and white space. */
static struct lead
find_lead(struct hf_str q)
{
	struct lead l = { 0, skip_space(q, 0), false };
	size_t at = l.text, n = 0;
	struct hf_char c;
	uint32_t dot = 0;

	for (; at < q.size; at += c.size, n++) {
		c = hf_char_at(q, at);
		if (n == 0)
			dot = c.cp;
		if (c.cp != dot || (dot != '.' && dot != 0x2026))
			break;
	}
	l.ellipsis = n >= (dot == '.' ? 3 : 1);
	if (l.ellipsis) {
		l.raw = at;
		l.text = skip_space(q, at);
	} else if (at == q.size) {
		l.text = at; /* dots that may become one */
	}
	return l;
}

/* Fold white space; whole characters, up to 'cap' bytes. */
static size_t
fold(struct hf_str s, size_t from, char *to, size_t cap)
{
	struct hf_char c;
	bool space = false;
	size_t n = 0;

	for (size_t at = from; at < s.size; at += c.size) {
		c = hf_char_at(s, at);
		if (c.kind == HF_CHAR_SPACE && space)
			continue;
		space = c.kind == HF_CHAR_SPACE;
		if (n + (space ? 1 : c.size) > cap)
			break;
		if (space)
			to[n++] = ' ';
		else
			for (uint32_t i = 0; i < c.size; i++)
				to[n++] = s.p[at + i];
	}
	return n;
}

/* The offset in 's' after 'n' bytes of what fold() made of it; 0 if that is
 * inside of a character. */
static size_t
unfold(struct hf_str s, size_t from, size_t n)
{
	bool space = false, was;
	struct hf_char c;
	size_t at;

	for (at = from; at < s.size && n > 0; at += c.size) {
		c = hf_char_at(s, at);
		was = space;
		space = c.kind == HF_CHAR_SPACE;
		if (!space && c.size > n)
			return 0;
		n -= space ? !was : c.size;
	}
	return at;
}

/* --- what is enough of an overlap ----------------------------------------- */

/* Stands inside of words and numbers: isn't, 3.14, 12:30, and/or. */
static bool
is_inner(uint32_t cp)
{
	return cp < 0x80 ? cp != 0 && strchr("'-.,:/@&", (int)cp) != NULL :
			   cp == 0x2019 || cp == 0x2010 || cp == 0x2011;
}

/* The letters at 'at', perhaps with marks between them, or one character of
 * any other kind; the end of that. */
static size_t
word_end(struct hf_str s, size_t at)
{
	struct hf_char c = hf_char_at(s, at);
	bool letter = c.kind == HF_CHAR_LETTER;

	at += c.size;
	while (letter && at < s.size) {
		c = hf_char_at(s, at);
		letter = c.kind == HF_CHAR_LETTER ||
		    (is_inner(c.cp) && at + c.size < s.size &&
			hf_char_at(s, at + c.size).kind == HF_CHAR_LETTER);
		if (letter)
			at += c.size;
	}
	return at;
}

static bool
seen(const struct hf_str *word, size_t n, struct hf_str w)
{
	for (size_t i = 0; i < n; i++)
		if (word[i].size == w.size &&
		    strncasecmp(word[i].p, w.p, w.size) == 0)
			return true;
	return false;
}

/* 'more' bytes of white space follow. */
static bool
enough(struct hf_str s, size_t more)
{
	struct hf_str word[OVERLAP_WORDS], w;
	size_t bytes = more, words = 0, at = 0, end;
	enum hf_char_kind kind;

	while (
	    at < s.size && (bytes < OVERLAP_BYTES || words < OVERLAP_WORDS)) {
		kind = hf_char_at(s, at).kind;
		if (kind == HF_CHAR_SPACE) {
			at = skip_space(s, at);
			bytes++;
			continue;
		}
		end = word_end(s, at);
		w = (struct hf_str){ s.p + at, end - at };
		if ((kind == HF_CHAR_LETTER || kind == HF_CHAR_WIDE) &&
		    words < OVERLAP_WORDS && !seen(word, words, w))
			word[words++] = w;
		bytes += end - at;
		at = end;
	}
	return bytes >= OVERLAP_BYTES && words == OVERLAP_WORDS;
}

/* --- boundaries ----------------------------------------------------------- */

/* Is 'at', neither end of 's', between letters of a word, or next to a mark
 * that stands between such? */
static bool
inside_word(struct hf_str s, size_t at)
{
	struct hf_char before = hf_char_before(s, at), c = hf_char_at(s, at);

	if (before.kind == HF_CHAR_LETTER && is_inner(c.cp)) {
		at += c.size;
		return at < s.size && hf_char_at(s, at).kind == HF_CHAR_LETTER;
	}
	if (c.kind == HF_CHAR_LETTER && is_inner(before.cp)) {
		at -= before.size;
		return at > 0 && hf_char_before(s, at).kind == HF_CHAR_LETTER;
	}
	return before.kind == HF_CHAR_LETTER && c.kind == HF_CHAR_LETTER;
}

/* Does a word or a mark begin at 'at' of the tail? */
static bool
starts_word(const struct hf_splice *s, size_t at)
{
	struct hf_str tail = { s->tail, s->tail_size };
	struct hf_char c;

	if (((unsigned char)tail.p[at] & 0xc0) == 0x80)
		return false;
	c = hf_char_at(tail, at);
	if (c.kind == HF_CHAR_SPACE)
		return false;
	/* At 0 it is all of P, which find_again() finds, or was cut there. */
	return at > 0 && !inside_word(tail, at);
}

/* May Q be cut at 'at', so that its words stay whole?  Also waits for what
 * follows the white space there, as that is told apart then. */
static enum answer
may_cut(const struct known *k, size_t at)
{
	enum answer unknown = k->over ? YES : MAYBE;
	struct hf_char c;

	if (at == k->q.size)
		return unknown;
	c = hf_char_at(k->q, at);
	if (c.kind == HF_CHAR_SPACE)
		return skip_space(k->q, at) == k->q.size ? unknown : YES;
	/* A mark at the end of what is known may have a letter after it. */
	if (at + c.size == k->q.size && is_inner(c.cp) &&
	    hf_char_before(k->q, at).kind == HF_CHAR_LETTER)
		return unknown;
	return inside_word(k->q, at) ? NO : YES;
}

/* --- the two comparisons -------------------------------------------------- */

/* Is Q, from its first word on, all of P again?  Goes on where it was. */
static enum answer
find_again(struct hf_splice *s, const struct known *k)
{
	struct hf_char p, q;

	while (s->before_at < s->before_end) {
		if (s->head_at == k->q.size)
			return k->over ? NO : MAYBE;
		p = hf_char_at(s->before, s->before_at);
		q = hf_char_at(k->q, s->head_at);
		if (q.kind == HF_CHAR_SPACE &&
		    (s->in_space || p.kind == HF_CHAR_SPACE)) {
			if (!s->in_space)
				s->before_at =
				    skip_space(s->before, s->before_at);
			s->in_space = true;
			s->head_at += q.size;
			continue;
		}
		s->in_space = false;
		if (p.size != q.size ||
		    memcmp(s->before.p + s->before_at, k->q.p + s->head_at,
			p.size) != 0)
			return NO;
		s->before_at += p.size;
		s->head_at += q.size;
	}
	/* Without white space at the end of P, that may be half a word, and
	 * Q has the rest of it. */
	if (s->before_end == s->before.size)
		return YES;
	return may_cut(k, s->head_at);
}

/* Which end of P does Q begin with?  The longest is the one that starts
 * first. */
static enum answer
find_overlap(
    struct hf_splice *s, const struct known *k, size_t text, size_t *cut)
{
	char head[HF_SPLICE_HEAD];
	size_t n = fold(k->q, text, head, sizeof(head));
	enum answer a;
	size_t m;

	for (; s->start < s->stop; s->start++) {
		m = s->tail_size - s->start;
		if (!starts_word(s, s->start) ||
		    memcmp(s->tail + s->start, head, m < n ? m : n) != 0)
			continue;
		if (n < m) {
			a = k->over ? NO : MAYBE;
		} else {
			*cut = unfold(k->q, text, m);
			a = *cut == 0 ? NO : may_cut(k, *cut);
		}
		if (a == YES || (a == MAYBE && !k->full))
			return a;
	}
	return NO;
}

/* --- what is let go ------------------------------------------------------- */

static bool
has_line_end(struct hf_str s)
{
	struct hf_char c;

	for (size_t at = 0; at < s.size; at += c.size) {
		c = hf_char_at(s, at);
		if (hf_char_is_line_end(c))
			return true;
	}
	return false;
}

static bool
closes(struct hf_char c)
{
	return c.cp < 0x80 ?
	    c.cp != 0 && strchr(".,;:!?)]}%", (int)c.cp) :
	    c.cp == 0xbb || c.cp == 0x2019 || c.cp == 0x201d || c.cp == 0x2026;
}

static bool
opens(struct hf_char c)
{
	return c.cp < 0x80 ?
	    c.cp != 0 && strchr("([{", (int)c.cp) :
	    c.cp == 0xab || c.cp == 0xa1 || c.cp == 0xbf || c.cp == 0x2018 ||
		(c.cp >= 0x201a && c.cp <= 0x201c) || c.cp == 0x201e;
}

static struct hf_str
rest_of(const struct hf_splice *s, size_t from)
{
	return (struct hf_str){ s->head.data + from, s->head.size - from };
}

static struct hf_str
space_after(const struct hf_splice *s)
{
	return (struct hf_str){ s->before.p + s->before_end,
		s->before.size - s->before_end };
}

static bool
starts_with(struct hf_str s, struct hf_str start)
{
	return s.size >= start.size &&
	    (start.size == 0 || memcmp(s.p, start.p, start.size) == 0);
}

/* After a cut: white space that P ends with is not said twice. */
static void
put_cut(const struct hf_splice *s, size_t cut, struct hf_buf *out)
{
	struct hf_str space = space_after(s), rest = rest_of(s, cut);
	size_t from = 0;

	if (starts_with(rest, space))
		from = space.size;
	if (space.size > 0 && (from == 0 || !has_line_end(space)))
		from = skip_blanks(rest, from);
	hf_buf_put(out, rest.p + from, rest.size - from);
}

/* Nothing was cut but perhaps an ellipsis: P and Q as neighbours.  Blanks are
 * left out up to 'known' only: more of the head is there or not, as Q was
 * split. */
static void
put_joined(const struct hf_splice *s, const struct lead *l, size_t known,
    struct hf_buf *out)
{
	struct hf_str space = space_after(s), rest = rest_of(s, l->raw);
	struct hf_char first, last;
	size_t from = 0;

	if (rest.size == 0)
		return;
	if (space.size > 0) {
		if (l->ellipsis || !has_line_end(space))
			from = skip_blanks(
			    (struct hf_str){ rest.p, known - l->raw }, 0);
	} else {
		first = hf_char_at(rest, 0);
		last = hf_char_before(s->before, s->before.size);
		if (first.kind != HF_CHAR_SPACE && !closes(first) &&
		    !opens(last) && !hf_char_is_wide(first) &&
		    !hf_char_is_wide(last))
			hf_buf_putc(out, ' ');
	}
	hf_buf_put(out, rest.p + from, rest.size - from);
}

/* After a prefill.  The white space that P ends with may not have reached the
 * model, which then begins with it: it is not said twice.  Anything else, such
 * as the indentation of the next line, is Q's own. */
static void
put_prefilled(const struct hf_splice *s, size_t known, struct hf_buf *out)
{
	struct hf_str space = space_after(s), rest = rest_of(s, 0);
	struct hf_str lead = { rest.p,
		skip_space((struct hf_str){ rest.p, known }, 0) };
	size_t from = 0;

	if (starts_with(lead, space))
		from = space.size;
	else if (starts_with(space, lead))
		from = lead.size;
	else if (!has_line_end(space))
		from = skip_blanks(lead, 0);
	hf_buf_put(out, rest.p + from, rest.size - from);
}

/* The most of Q that is held: twice P, as its white space may be longer. */
static size_t
head_max(const struct hf_splice *s)
{
	return s->again ? 2 * s->before.size + HF_SPLICE_HEAD : HF_SPLICE_HEAD;
}

static enum answer
look_for_again(struct hf_splice *s, bool over, size_t text)
{
	struct known all = { hf_buf_str(&s->head), over, false };
	enum answer a;

	if (!s->again)
		return NO;
	if (!over)
		all.q.size = hf_char_whole(all.q);
	if (s->head_at == 0)
		s->head_at = text;
	a = find_again(s, &all);
	if (a == MAYBE && s->head.size >= head_max(s))
		a = NO;
	s->again = a != NO;
	return a;
}

static struct known
what_is_known(const struct hf_splice *s, bool over)
{
	struct known k = { hf_buf_str(&s->head), over, false };

	if (k.q.size > HF_SPLICE_HEAD || (k.q.size == HF_SPLICE_HEAD && !over))
		k = (struct known){ { k.q.p, HF_SPLICE_HEAD }, false, true };
	if (!k.over)
		k.q.size = hf_char_whole(k.q);
	return k;
}

static bool
decide_prefilled(
    const struct hf_splice *s, const struct known *k, struct hf_buf *out)
{
	if (skip_space(k->q, 0) == k->q.size && !k->over && !k->full)
		return false;
	put_prefilled(s, k->q.size, out);
	return true;
}

static bool
decide_joined(
    struct hf_splice *s, const struct known *k, bool over, struct hf_buf *out)
{
	struct lead lead = find_lead(k->q);
	enum answer a;
	size_t cut;

	if (lead.text == k->q.size) {
		if (!k->over && !k->full)
			return false;
		put_joined(s, &lead, k->q.size, out);
		return true;
	}
	a = look_for_again(s, over, lead.text);
	cut = s->head_at;
	if (a == NO)
		a = find_overlap(s, k, lead.text, &cut);
	if (a == YES)
		put_cut(s, cut, out);
	else if (a == NO)
		put_joined(s, &lead, k->q.size, out);
	return a != MAYBE;
}

/* Let the head go if it is clear what it is. */
static void
decide(struct hf_splice *s, bool over, struct hf_buf *out)
{
	struct known k = what_is_known(s, over);

	s->decided = s->mode == HF_SPLICE_PREFILL ?
	    decide_prefilled(s, &k, out) :
	    decide_joined(s, &k, over, out);
	if (s->decided)
		hf_buf_free(&s->head);
}

/* --- the interface -------------------------------------------------------- */

static void
set_tail(struct hf_splice *s)
{
	struct hf_str p = { s->before.p, s->before_end };
	char folded[TAIL_RAW];
	size_t from = p.size > TAIL_RAW ? p.size - TAIL_RAW : 0;
	size_t n, drop;

	while (from > 0 && from < p.size &&
	    ((unsigned char)p.p[from] & 0xc0) == 0x80)
		from++;
	n = fold(p, from, folded, sizeof(folded));
	drop = n > sizeof(s->tail) ? n - sizeof(s->tail) : 0;
	s->tail_size = n - drop;
	memcpy(s->tail, folded + drop, s->tail_size);
	for (size_t at = s->tail_size; at-- > 0 && s->stop == 0;)
		if (starts_word(s, at) &&
		    enough((struct hf_str){ s->tail + at, s->tail_size - at },
			s->before_end < s->before.size))
			s->stop = at + 1;
}

void
hf_splice_init(
    struct hf_splice *s, enum hf_splice_mode mode, struct hf_str before)
{
	struct hf_char c;

	memset(s, 0, sizeof(*s));
	s->mode = mode;
	s->before = before;
	hf_buf_init(&s->head, HF_BUF_NOCAP);
	for (size_t at = 0; at < before.size; at += c.size) {
		c = hf_char_at(before, at);
		if (c.kind != HF_CHAR_SPACE)
			s->before_end = at + c.size;
	}
	s->decided = before.size == 0 ||
	    (mode == HF_SPLICE_PREFILL && s->before_end == before.size);
	if (s->decided || mode == HF_SPLICE_PREFILL)
		return;
	set_tail(s);
	s->before_at = find_lead(before).text;
	s->again = s->before_at < s->before_end &&
	    (mode == HF_SPLICE_HIDDEN ||
		enough((struct hf_str){ before.p, s->before_end },
		    s->before_end < before.size));
}

void
hf_splice_free(struct hf_splice *s)
{
	hf_buf_free(&s->head);
}

void
hf_splice_feed(struct hf_splice *s, struct hf_str text, struct hf_buf *out)
{
	size_t room, n;

	if (text.size == 0)
		return;
	if (!s->decided) {
		room = head_max(s) - s->head.size;
		n = text.size < room ? text.size : room;
		hf_buf_put(&s->head, text.p, n);
		text = (struct hf_str){ text.p + n, text.size - n };
		if (hf_buf_ok(&s->head)) {
			decide(s, false, out);
		} else {
			out->failed = true;
			s->decided = true;
		}
	}
	if (s->decided && text.size > 0)
		hf_buf_putstr(out, text);
}

void
hf_splice_end(struct hf_splice *s, struct hf_buf *out)
{
	if (s->decided)
		return;
	if (s->head.size > 0)
		decide(s, true, out);
	s->decided = true;
}
