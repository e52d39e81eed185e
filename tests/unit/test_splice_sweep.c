/*
 * Every text cut at every place and gone on with in every manner: the client
 * has the text again, no word twice and none missing.
 *
 * What the client has of a text cut at some byte is what the release gate let
 * pass.  The judge of what must be recognised knows nothing of the code: it
 * counts words between white space (must be seen) and runs of letters (fewer
 * of them must not be seen).
 */
#include <config.h>

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <cmocka.h>

#include "gateway/turn/splice.h"

struct text {
	const char *name;
	const char *p;
	bool wide; /* a character is a word */
};

static const struct text texts[] = {
	{ "english",
	    "Hello Zelmira, order 42 is packed and leaves today. Would you "
	    "like "
	    "a message (by mail or by phone) as soon as it is on its way? It "
	    "is "
	    "about 3.14 kg, costs $1,000 and isn't insured: that's up to you; "
	    "well-known carriers, e.g. Acme, do that at 12:30.",
	    false },
	{ "german",
	    "Gr\xc3\xbc\xc3\x9f"
	    "e aus M\xc3\xbcnchen! Die \xc3\x84nderung ist "
	    "\xc3\xbc"
	    "bern\xc3\xa4"
	    "chste Woche f\xc3\xa4llig, \xe2\x80\x9e"
	    "sp\xc3\xa4testens\xe2\x80\x9c am 3. M\xc3\xa4rz \xe2\x80\x93 das "
	    "hei\xc3\x9ft: bitte \xc3\xb6"
	    "ffnen Sie das Paket erst danach.",
	    false },
	/* The package arrives at 3 pm tomorrow.  Is GPT-4 fine? */
	{ "japanese",
	    "\xe8\x8d\xb7\xe7\x89\xa9\xe3\x81\xaf\xe6\x98\x8e\xe6\x97\xa5\xe3"
	    "\x81\xae\xe5\x8d\x88\xe5\xbe\x8c"
	    "3\xe6\x99\x82\xe3\x81\xab\xe5"
	    "\xb1\x8a\xe3\x81\x8d\xe3\x81\xbe\xe3\x81\x99\xe3\x80\x82"
	    "GPT-4"
	    "\xe3\x81\xa7\xe3\x82\x88\xe3\x82\x8d\xe3\x81\x97\xe3\x81\x84\xe3"
	    "\x81\xa7\xe3\x81\x99\xe3\x81\x8b\xef\xbc\x9f",
	    true },
	{ "emoji",
	    "All done \xf0\x9f\x8e\x89\xf0\x9f\x8e\x89 see you soon "
	    "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb and bring the "
	    "\xf0\x9f\x8e\x82 with you \xe2\x9d\xa4\xef\xb8\x8f bye",
	    false },
	{ "code",
	    "for (i = 0; i < n; i++) {\n\tif (a[i] == key)\n\t\treturn i;\n\t"
	    "sum += a[i] * 2;\n}\n\nprintf(\"%d items\\n\", n);\n  /* done */\n"
	    "return found ? -1 : sum;\n",
	    false },
	{ "list",
	    "You need three things:\n\n1. A ticket (paper, not a copy)\n2. "
	    "Some "
	    "patience\n   - at least an hour\n   - better two\n3. Luck\n\n"
	    "| name | price |\n|---|---|\n| tea | 1,000 |\n\nThen call "
	    "+1-555-0100.",
	    false },
	{ "ha", "ha ha ha ha", false },
	{ "repeats",
	    "No, no, no, no, no! Ha ha ha ha ha ha ha, that is very, very, "
	    "very "
	    "good, I don't, I don't, I can't say more. Bye bye bye bye bye.",
	    false },
	{ "numbers",
	    "pi is 3.14 or 3.1416 and 1,000 is 10 times 100, not 1,0 or .5 of "
	    "2.71 at 10:45:30 on 2026-11-29",
	    false },
	{ "long",
	    "The quick brown fox jumps over the lazy dog while seven wizards "
	    "quietly boil hot elixirs in a cauldron behind some old barn. "
	    "Nobody knows why they chose that place, although rumours about "
	    "buried treasure have circulated among villagers ever since "
	    "grandma "
	    "Edith found an antique coin under her porch. Meanwhile, the fox "
	    "sleeps. Later on, when autumn winds blow golden leaves across "
	    "empty "
	    "fields, every creature there prepares for winter: squirrels hide "
	    "nuts, bears fatten themselves, swallows depart southwards, and "
	    "only "
	    "stubborn wizards remain, stirring endlessly, hoping that tonight "
	    "their potion will finally turn blue.",
	    false },
};

struct sweep {
	const struct text *text;
	struct hf_str all;
	struct hf_str before; /* what the client has */
	struct hf_str rest;
	struct hf_buf q;
	struct hf_buf out;
	unsigned long cut, said, any, runs;
};

enum verdict { MUST_NOT, EITHER, MUST };

static bool
is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t';
}

/* --- the judge ------------------------------------------------------------ */

/* White space folded, none at the ends; none at all if 'wide'. */
static void
normal(struct hf_buf *to, const struct hf_str *part, size_t n, bool wide)
{
	bool space = false;

	hf_buf_reset(to);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < part[i].size; k++) {
			if (is_space(part[i].p[k])) {
				space = true;
				continue;
			}
			if (space && to->size > 0 && !wide)
				hf_buf_putc(to, ' ');
			space = false;
			hf_buf_putc(to, part[i].p[k]);
		}
}

static bool
is_letter(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

static unsigned
add_distinct(struct hf_str *set, unsigned n, const char *p, size_t size)
{
	for (unsigned i = 0; i < n; i++)
		if (set[i].size == size && strncasecmp(set[i].p, p, size) == 0)
			return n;
	if (size == 0 || n == 64)
		return n;
	set[n] = (struct hf_str){ p, size };
	return n + 1;
}

/* Words between white space, marks at their ends left out. */
static unsigned
words(struct hf_str s)
{
	struct hf_str set[64];
	unsigned n = 0;
	size_t from, to;

	for (size_t i = 0; i < s.size; i = to) {
		for (; i < s.size && is_space(s.p[i]); i++)
			;
		for (to = i; to < s.size && !is_space(s.p[to]); to++)
			;
		from = i;
		i = to;
		while (from < i && !is_letter(s.p[from]))
			from++;
		while (i > from && !is_letter(s.p[i - 1]))
			i--;
		n = add_distinct(set, n, s.p + from, i - from);
	}
	return n;
}

/* Runs of letters, or single characters. */
static unsigned
runs(struct hf_str s, bool wide)
{
	struct hf_str set[64];
	unsigned n = 0;
	size_t to;

	for (size_t i = 0; i < s.size; i = to) {
		to = i + 1;
		if (!is_letter(s.p[i]))
			continue;
		if (wide && (unsigned char)s.p[i] >= 0x80)
			while (to < s.size &&
			    ((unsigned char)s.p[to] & 0xc0) == 0x80)
				to++;
		else
			while (to < s.size && is_letter(s.p[to]) &&
			    (!wide || (unsigned char)s.p[to] < 0x80))
				to++;
		n = add_distinct(set, n, s.p + i, to - i);
	}
	return n;
}

/* A dash or a quotation mark that is not ASCII. */
static bool
has_mark(struct hf_str s)
{
	for (size_t i = 0; i + 1 < s.size; i++)
		if (s.p[i] == '\xe2' && s.p[i + 1] == '\x80')
			return true;
	return false;
}

/* Must 'said' again be recognised? */
static enum verdict
judge(const struct sweep *w, struct hf_str said)
{
	enum verdict v = MUST_NOT;
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	normal(&b, &said, 1, false);
	if (said.size > 0 && is_space(said.p[said.size - 1]))
		hf_buf_putc(&b, ' ');
	if (b.size >= 12 && runs(said, w->text->wide) >= 3)
		v = !w->text->wide && words(said) < 3 ? EITHER : MUST;
	/* Among what counts as letters here, marks may be. */
	if (v == MUST && w->text->wide && runs(said, true) < 5)
		v = EITHER;
	if (v == MUST && has_mark(said) && words(said) < 4)
		v = EITHER;
	hf_buf_free(&b);
	return v;
}

/* --- one continuation ----------------------------------------------------- */

static void
splice(struct sweep *w, enum hf_splice_mode mode, unsigned how)
{
	struct hf_str q = hf_buf_str(&w->q);
	uint32_t seed = 2463534242u + how * 7919u;
	struct hf_splice s;
	size_t n;

	hf_buf_reset(&w->out);
	hf_splice_init(&s, mode, w->before);
	while (q.size > 0) {
		seed ^= seed << 13;
		seed ^= seed >> 17;
		seed ^= seed << 5;
		n = how == 0 ? q.size : how == 1 ? 1 : 1 + seed % 9;
		n = n < q.size ? n : q.size;
		hf_splice_feed(&s, (struct hf_str){ q.p, n }, &w->out);
		q.p += n;
		q.size -= n;
	}
	hf_splice_end(&s, &w->out);
	hf_splice_free(&s);
	w->runs++;
}

static bool
client_has(struct sweep *w, struct hf_str a, struct hf_str b)
{
	struct hf_str is[2] = { w->before, hf_buf_str(&w->out) };
	struct hf_str want[3] = { a, HF_STR(" "), b };
	struct hf_buf x, y;
	bool same;

	hf_buf_init(&x, HF_BUF_NOCAP);
	hf_buf_init(&y, HF_BUF_NOCAP);
	normal(&x, is, 2, w->text->wide);
	normal(&y, want, 3, w->text->wide);
	same = hf_str_eq(hf_buf_str(&x), hf_buf_str(&y));
	hf_buf_free(&x);
	hf_buf_free(&y);
	return same;
}

/* w->q in every split; the client has the text again, or else P and Q. */
static void
go_on(struct sweep *w, enum hf_splice_mode mode, enum verdict v)
{
	bool text = false, both = false;

	for (unsigned how = 0; how < 4; how++) {
		splice(w, mode, how);
		text = client_has(w, w->all, HF_STR(""));
		both = client_has(w, w->before, hf_buf_str(&w->q));
		if (v == MUST ? !text : v == MUST_NOT ? !both : !text && !both)
			fail_msg("mode %d verdict %d split %u: '%.*s' + "
				 "'%.*s' -> '%.*s'",
			    (int)mode, (int)v, how, HF_STR_ARG(w->before),
			    (int)w->q.size, w->q.data, (int)w->out.size,
			    w->out.data);
	}
	w->cut += v == MUST;
	w->said += v == MUST_NOT;
	w->any += v == EITHER;
}

static void
put_changed(struct hf_buf *q, struct hf_str s, bool change)
{
	static const char *const other[] = { " ", "\n", "  ", "\t", " \n" };
	size_t n = 0;

	for (size_t i = 0; i < s.size; i++) {
		if (!change || !is_space(s.p[i]))
			hf_buf_putc(q, s.p[i]);
		else if (i + 1 == s.size || !is_space(s.p[i + 1]))
			hf_buf_puts(q, other[n++ % hf_countof(other)]);
	}
}

/* Where the last 'k' words of P begin; 0 if it has no more than that. */
static size_t
last_words(const struct sweep *w, unsigned k)
{
	const char *p = w->before.p;
	size_t at = w->before.size;

	while (k-- > 0 && at > 0) {
		while (at > 0 && is_space(p[at - 1]))
			at--;
		if (w->text->wide && at > 0 && (unsigned char)p[at - 1] >= 0x80)
			while (((unsigned char)p[--at] & 0xc0) == 0x80)
				;
		else
			while (at > 0 && !is_space(p[at - 1]) &&
			    (!w->text->wide || (unsigned char)p[at - 1] < 0x80))
				at--;
	}
	return at;
}

static void
repeat(struct sweep *w, unsigned k, bool change, const char *lead)
{
	size_t from = last_words(w, k);
	struct hf_str said = { w->before.p + from, w->before.size - from };

	hf_buf_reset(&w->q);
	if (lead[0] != '\0' && said.p[0] == '.')
		return; /* that would be the ellipsis's */
	hf_buf_puts(&w->q, lead);
	put_changed(&w->q, said, change);
	hf_buf_putstr(&w->q, w->rest);
	/* An ellipsis is cut in any case, so that then "both" is not P + Q. */
	if (lead[0] == '\0' || judge(w, said) == MUST)
		go_on(w, HF_SPLICE_INSTRUCTION, judge(w, said));
}

static void
rest(struct sweep *w, const char *lead)
{
	hf_buf_reset(&w->q);
	hf_buf_puts(&w->q, lead);
	hf_buf_putstr(&w->q, w->rest);
	go_on(w, HF_SPLICE_INSTRUCTION, MUST);
}

static void
again(struct sweep *w, bool change)
{
	hf_buf_reset(&w->q);
	put_changed(&w->q, w->all, change);
	go_on(w, HF_SPLICE_HIDDEN, MUST);
	go_on(w, HF_SPLICE_INSTRUCTION, judge(w, w->before));
}

static void
all_styles(struct sweep *w)
{
	hf_buf_reset(&w->q);
	hf_buf_putstr(&w->q, w->rest);
	for (unsigned how = 0; how < 4; how++) {
		splice(w, HF_SPLICE_PREFILL, how);
		/* White space may look as if it was said again. */
		if (w->rest.size > 0 && is_space(w->rest.p[0]))
			assert_true(client_has(w, w->all, HF_STR("")));
		else
			assert_true(hf_str_eq(hf_buf_str(&w->out), w->rest));
	}
	rest(w, "");
	rest(w, " ");
	if (w->before.size == 0)
		return;
	rest(w, "\xe2\x80\xa6");
	rest(w, "... ");
	for (unsigned k = 1; k <= 8; k++) {
		repeat(w, k, false, "");
		repeat(w, k, true, "");
		repeat(w, k, true, " \xe2\x80\xa6");
		repeat(w, k, false, "...");
	}
	again(w, false);
	again(w, true);
}

static void
test_sweep(void **state)
{
	const struct text *t = *state;
	struct sweep w = { .text = t, .all = hf_str(t->p) };
	size_t had = SIZE_MAX;

	hf_buf_init(&w.q, HF_BUF_NOCAP);
	hf_buf_init(&w.out, HF_BUF_NOCAP);
	for (size_t cut = 0; cut <= w.all.size; cut++) {
		w.before = (struct hf_str){ t->p, cut };
		w.before.size = hf_release_pass(HF_RELEASE_WORD, w.before);
		if (w.before.size == had)
			continue; /* the same cut again */
		had = w.before.size;
		w.rest = (struct hf_str){ t->p + had, w.all.size - had };
		all_styles(&w);
	}
	print_message("# %zu bytes: %lu runs; must be cut %lu, must be said "
		      "%lu, either %lu\n",
	    w.all.size, w.runs, w.cut, w.said, w.any);
	assert_true(w.cut > 15 && w.said > 10);
	hf_buf_free(&w.q);
	hf_buf_free(&w.out);
}

int
main(void)
{
	struct CMUnitTest t[hf_countof(texts)];

	for (size_t i = 0; i < hf_countof(texts); i++)
		t[i] = (struct CMUnitTest){ .name = texts[i].name,
			.test_func = test_sweep,
			.initial_state = (void *)(uintptr_t)&texts[i] };
	return _cmocka_run_group_tests(
	    "splice_sweep", t, hf_countof(texts), NULL, NULL);
}
