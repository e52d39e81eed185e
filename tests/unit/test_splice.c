/*
 * The seam of a continued answer, one row a rule: what the client has, what
 * the next target says, and what the client must have then.  Each row is fed
 * whole, byte by byte and cut in two at every place.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "gateway/turn/splice.h"

#define PRE HF_SPLICE_PREFILL
#define INS HF_SPLICE_INSTRUCTION
#define HID HF_SPLICE_HIDDEN

struct row {
	enum hf_splice_mode mode;
	const char *before;
	const char *q;
	const char *out;
};

static const struct row rows[] = {
	/* The worked examples. */
	{ INS, "Hello Zelmira, order 42 is ", "packed and leaves today.",
	    "packed and leaves today." },
	{ INS, "Hello Zelmira, order 42 is ",
	    "order 42 is packed and leaves today.",
	    "packed and leaves today." },
	{ INS, "Hello Zelmira, order 42 is ",
	    "Hello Zelmira, order 42 is packed.", "packed." },
	{ INS, "Hello Zelmira, order 42 is ", "\xe2\x80\xa6packed.",
	    "packed." },
	/* After a prefill, and without a P, bytes are bytes. */
	{ PRE, "Hello Zelmira, order 42 is pac", "ked.", "ked." },
	{ PRE, "a b c d e f g", " e f g", " e f g" },
	{ PRE, "a b c d e f g ", "...h", "...h" },
	/* ... but white space is not said twice. */
	{ PRE, "one ", " two", "two" },
	{ PRE, "one ", "two", "two" },
	{ PRE, "one ", "\n\ntwo", "\n\ntwo" },
	{ PRE, "one ", "   two", "  two" },
	{ PRE, "one  ", " two", "two" },
	{ PRE, "one \t", "  two", "two" },
	{ PRE, "one", " two", " two" },
	{ PRE, "one ", "", "" },
	{ PRE, "one ", " ", "" },
	{ PRE, "if (x) {\n", "\n\treturn", "\treturn" },
	{ PRE, "if (x) {\n", "\treturn", "\treturn" },
	{ PRE, "if (x) {\n\t", "\n\treturn", "return" },
	{ PRE, "if (x) {\n\t", "return", "return" },
	{ PRE, "Sure.\n\n", "\nFine", "Fine" },
	{ PRE, "Sure.\n", "\n\nFine", "\nFine" },
	{ PRE, "one\xc2\xa0", "\xc2\xa0two", "two" },
	{ INS, "", "... well", "... well" },
	{ HID, "", " Hello", " Hello" },
	/* One space, and only where it belongs. */
	{ INS, "order 42 is", "packed", " packed" },
	{ INS, "order 42 is", " packed", " packed" },
	{ INS, "order 42 is", "\npacked", "\npacked" },
	{ INS, "order 42 is ", " packed", "packed" },
	{ INS, "order 42 is ", " \n- packed", "\n- packed" },
	{ INS, "order 42", ", packed", ", packed" },
	{ INS, "order 42", "?", "?" },
	{ INS, "order (", "packed)", "packed)" },
	{ INS, "order \xe2\x80\x9e", "packed", "packed" },
	{ INS, "order:\n", "packed", "packed" },
	{ INS, "if (x) {\n", "\treturn 1;\n", "\treturn 1;\n" },
	{ INS, "if (x) {\n  ", "  return 1;\n", "  return 1;\n" },
	{ INS, "\xe4\xbb\x8a\xe5\xa4\xa9", "\xe5\xa4\xa9\xe6\xb0\x94",
	    "\xe5\xa4\xa9\xe6\xb0\x94" },
	{ INS, "\xe4\xbb\x8a\xe5\xa4\xa9", "GPT", "GPT" },
	{ INS, "GPT", "\xe5\xa4\xa9\xe6\xb0\x94", "\xe5\xa4\xa9\xe6\xb0\x94" },
	{ INS, "one", "", "" },
	{ INS, "one", " ", " " },
	{ INS, "one ", " ", "" },
	{ INS, " ", " Hello", "Hello" },
	/* An ellipsis goes, before an overlap too; two dots are none. */
	{ INS, "order 42 is", "...packed", " packed" },
	{ INS, "order 42 is", "\xe2\x80\xa6 packed", " packed" },
	{ INS, "order 42 is ", " ....\n packed", "\n packed" },
	{ INS, "order 42 is ", "..", ".." },
	{ INS, "order 42 is ", "../packed", "../packed" },
	{ INS, "order 42 is ", "...", "" },
	{ INS, "Hello, order 42 is ", "\xe2\x80\xa6 order 42 is packed.",
	    "packed." },
	{ INS, "... order 42 is here ", "order 42 is here now", "now" },
	{ INS, "about ", "\xe2\x80\xa6.5", ".5" },
	/* The longest overlap, white space folded, case kept. */
	{ INS, "a b c d e f g a b c d e f g ", "a b c d e f g h", "h" },
	{ INS, "so one two three and one two three ",
	    "one two three and one two three four", "four" },
	{ INS, "we go\n to  the old house ", "to the\told  house now", "now" },
	{ INS, "we go to the old house ", "to The old house now",
	    "to The old house now" },
	{ INS, "we go to the old house", "the old house.", "." },
	{ INS, "we go to the old house", "the old house", "" },
	{ INS, "we go to the old house\n", "the old house\n  now", "  now" },
	{ INS, "we go to the old house\n\n", "the old house\n\nnow", "now" },
	/* Half a character at the end of P is no end of one in Q. */
	{ INS, "see how we go to \xe6\x98", "how we go to \xe6\x98\x8e",
	    " how we go to \xe6\x98\x8e" },
	/* 12 bytes and 3 distinct words. */
	{ INS, "it is in an ox ", "in an ox stall", "in an ox stall" },
	{ INS, "it is in an oxbow ", "is in an oxbow", "" },
	{ INS, "see abcd in of ", "abcd in of us", "abcd in of us" },
	{ INS, "see abcde in of ", "abcde in of us", "us" },
	{ INS, "see abcdefgh abcdefgh the ", "abcdefgh abcdefgh the end",
	    "abcdefgh abcdefgh the end" },
	{ INS, "ha ha ha ha ha ha ", "ha ha ha ha ha ha!",
	    "ha ha ha ha ha ha!" },
	{ INS, "No, no, NO, no, No, ", "No, no, NO, no, No, never",
	    "No, no, NO, no, No, never" },
	{ INS, "I don't, I don't, ", "I don't, I don't, I can't",
	    "I don't, I don't, I can't" },
	{ INS, "So I don't, I don't, ", "I don't, I don't, I can't",
	    "I don't, I don't, I can't" },
	{ INS, "very, very, very, ", "very, very, very, good",
	    "very, very, very, good" },
	{ INS, "\xe4\xbb\x8a\xe5\xa4\xa9\xe5\xa4\xa9\xe6\xb0\x94",
	    "\xe4\xbb\x8a\xe5\xa4\xa9\xe5\xa4\xa9\xe6\xb0\x94\xe5\xa5\xbd",
	    "\xe5\xa5\xbd" },
	/* Word boundaries at both ends. */
	{ INS, "we go to the old ", "go to the older house",
	    "go to the older house" },
	{ INS, "we ago to the old ", "go to the old house",
	    "go to the old house" },
	{ INS, "we go to the old", "go to the older house",
	    " go to the older house" },
	{ INS, "we say pi is about 3 ", "pi is about 3.14",
	    "pi is about 3.14" },
	{ INS, "we say pi is about 3 ", "pi is about 3. Or so", ". Or so" },
	{ INS, "to see that it isn", "see that it isn't",
	    " see that it isn't" },
	{ INS, "order 42, as it is, is ", "as it is, is, well", ", well" },
	{ INS, "call foo of bar baz(", "foo of bar baz(x)", "x)" },
	{ INS, "we go to the old ", "go to the old-fashioned house",
	    "go to the old-fashioned house" },
	/* All of P again, also when it is long or ends in half a word. */
	{ INS, "one two three four", "one two three fourteen", "teen" },
	{ INS, "ha ", "ha ha ha", "ha ha ha" },
	{ HID, "ha ", "ha ha ha", "ha ha" },
	{ HID, "I ", "In fact", "In fact" },
	{ HID, "I ", "I'm fine", "I'm fine" },
	{ HID, "Sure. ", "Sure.\n\nFine", "\n\nFine" },
	{ HID, "Sure. ", "Sure.", "" },
	{ HID, "Sure. ", " Sure. Fine", "Fine" },
	/* Not told of P: other words stay, whatever they are. */
	{ HID, "Hello Zelmira, order 42 ", "Hello Zelmira, your order",
	    "Hello Zelmira, your order" },
	{ HID, "Hello Zelmira", "Hello you", " Hello you" },
};

static void
feed(struct hf_splice *s, const char *p, size_t n, struct hf_buf *out)
{
	/* An exact copy, so that the sanitizer sees a read past the end. */
	char *copy = malloc(n == 0 ? 1 : n);

	assert_non_null(copy);
	memcpy(copy, p, n);
	hf_splice_feed(s, (struct hf_str){ copy, n }, out);
	free(copy);
}

/* Pieces of 'step' bytes after a first one of 'first'. */
static void
run(enum hf_splice_mode mode, struct hf_str before, struct hf_str q,
    size_t first, size_t step, struct hf_buf *out)
{
	struct hf_splice s;
	size_t n = first;

	hf_buf_reset(out);
	hf_splice_init(&s, mode, before);
	while (q.size > 0) {
		n = n < q.size ? n : q.size;
		feed(&s, q.p, n, out);
		q.p += n;
		q.size -= n;
		n = step;
	}
	hf_splice_end(&s, out);
	hf_splice_free(&s);
	assert_true(hf_buf_ok(out));
}

static void
check(enum hf_splice_mode mode, struct hf_str before, struct hf_str q,
    struct hf_str want)
{
	struct hf_buf out;

	hf_buf_init(&out, HF_BUF_NOCAP);
	for (size_t first = 0; first <= q.size; first += 1 + q.size / 99) {
		run(mode, before, q, first, first == 0 ? 1 : q.size, &out);
		if (!hf_str_eq(hf_buf_str(&out), want))
			fail_msg("'%.*s' + '%.*s' (first %zu): '%.*s'",
			    HF_STR_ARG(before), HF_STR_ARG(q), first,
			    (int)out.size, out.data);
	}
	hf_buf_free(&out);
}

static void
test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < hf_countof(rows); i++)
		check(rows[i].mode, hf_str(rows[i].before), hf_str(rows[i].q),
		    hf_str(rows[i].out));
}

/* Distinct words: "w0 w1 w2 ... ". */
static void
put_words(struct hf_buf *b, unsigned from, unsigned to, const char *sep)
{
	for (unsigned i = from; i < to; i++)
		hf_buf_printf(b, "w%u%s", i, sep);
}

/* P far longer than what is looked at of it. */
static void
test_long_again(void **state)
{
	struct hf_buf p, q;

	(void)state;
	hf_buf_init(&p, HF_BUF_NOCAP);
	hf_buf_init(&q, HF_BUF_NOCAP);
	put_words(&p, 0, 400, " ");
	put_words(&q, 0, 400, "  ");
	hf_buf_puts(&q, "and more");
	check(HID, hf_buf_str(&p), hf_buf_str(&q), HF_STR("and more"));
	check(INS, hf_buf_str(&p), hf_buf_str(&q), HF_STR("and more"));
	/* The last word differs: nothing of it is lost. */
	hf_buf_reset(&q);
	put_words(&q, 0, 399, " ");
	hf_buf_puts(&q, "other");
	check(HID, hf_buf_str(&p), hf_buf_str(&q), hf_buf_str(&q));
	/* It ends in the middle. */
	q.size = 1200;
	check(HID, hf_buf_str(&p), hf_buf_str(&q), hf_buf_str(&q));
	hf_buf_free(&p);
	hf_buf_free(&q);
}

/* The longest overlap that can be seen, and what is longer. */
static void
test_long_overlap(void **state)
{
	struct hf_buf p, q;
	size_t from = 0;

	(void)state;
	hf_buf_init(&p, HF_BUF_NOCAP);
	hf_buf_init(&q, HF_BUF_NOCAP);
	put_words(&p, 0, 400, " ");
	for (unsigned i = 0; i < 400; i++) {
		hf_buf_reset(&q);
		hf_buf_put(&q, p.data + from, p.size - from);
		hf_buf_puts(&q, "and more");
		if (p.size - from <= HF_SPLICE_HEAD - 1 && i <= 397)
			check(INS, hf_buf_str(&p), hf_buf_str(&q),
			    HF_STR("and more"));
		else if (i > 0 && (i % 8 == 0 || i > 397))
			check(INS, hf_buf_str(&p), hf_buf_str(&q),
			    hf_buf_str(&q));
		from = (size_t)(strchr(p.data + from, ' ') - p.data) + 1;
	}
	/* All that is looked at, from within a word. */
	p.size--;
	hf_buf_puts(&p, "!?");
	hf_buf_reset(&q);
	hf_buf_putc(&q, ' ');
	hf_buf_put(&q, p.data + p.size - HF_SPLICE_HEAD, HF_SPLICE_HEAD);
	assert_true(q.data[1] != ' ' && q.data[1] != 'w');
	check(INS, hf_buf_str(&p),
	    (struct hf_str){ q.data + 1, HF_SPLICE_HEAD }, hf_buf_str(&q));
	hf_buf_free(&p);
	hf_buf_free(&q);
}

/* Q goes on at the first byte that decides; nothing is held longer. */
static void
test_is_let_go_early(void **state)
{
	static const struct {
		enum hf_splice_mode mode;
		const char *before, *held, *next, *out;
	} r[] = {
		{ INS, "Hello Zelmira, order 42 is ", "", "p", "p" },
		{ INS, "Hello Zelmira, order 42 is ", "o", "f", "of" },
		{ INS, "Hello Zelmira, order 42 is ", "order 42 is", "n",
		    "order 42 isn" },
		{ INS, "Hello Zelmira, order 42 is ", "order 42 is ", "p",
		    "p" },
		{ INS, "no ", "", "n", "n" },
		{ HID, "no ", "no", "t", "not" },
		{ INS, "Hello ", "..", "a", "..a" },
		{ INS, "Hello ", "...  ", "a", "a" },
		{ PRE, "Hello Zelmira, order 42 is ", "", "o", "o" },
		{ PRE, "Hello Zelmira, order 42 is ", " ", "o", "o" },
	};
	struct hf_splice s;
	struct hf_buf out;

	(void)state;
	hf_buf_init(&out, HF_BUF_NOCAP);
	for (size_t i = 0; i < hf_countof(r); i++) {
		hf_buf_reset(&out);
		hf_splice_init(&s, r[i].mode, hf_str(r[i].before));
		for (const char *p = r[i].held; *p != '\0'; p++)
			hf_splice_feed(&s, (struct hf_str){ p, 1 }, &out);
		assert_int_equal(out.size, 0);
		assert_false(s.decided && r[i].held[0] != '\0');
		hf_splice_feed(&s, hf_str(r[i].next), &out);
		assert_true(s.decided);
		assert_true(hf_str_eq(hf_buf_str(&out), hf_str(r[i].out)));
		hf_splice_free(&s);
	}
	hf_buf_free(&out);
}

/* White space or dots without end are not held without end. */
static void
test_bounds(void **state)
{
	static char fill[100000];
	static const char set[] = " .\n";
	struct hf_splice s;
	struct hf_buf out;

	(void)state;
	hf_buf_init(&out, HF_BUF_NOCAP);
	for (const char *c = set; *c != '\0'; c++) {
		memset(fill, *c, sizeof(fill));
		hf_splice_init(&s, INS, HF_STR("one two three four"));
		hf_splice_feed(&s, (struct hf_str){ fill, 399 }, &out);
		assert_false(s.decided);
		hf_splice_feed(&s, (struct hf_str){ fill, 1 }, &out);
		assert_true(s.decided);
		hf_splice_free(&s);
		/* Between words that match, too. */
		hf_splice_init(&s, HID, HF_STR("one two"));
		hf_splice_feed(&s, HF_STR("one"), &out);
		hf_splice_feed(
		    &s, (struct hf_str){ fill, 7 + 7 + 400 - 3 }, &out);
		assert_true(s.decided);
		hf_splice_free(&s);
		/* Never glued. */
		hf_buf_reset(&out);
		hf_splice_init(&s, INS, HF_STR("one"));
		hf_splice_feed(&s, (struct hf_str){ fill, sizeof(fill) }, &out);
		hf_splice_feed(&s, HF_STR("two"), &out);
		hf_splice_end(&s, &out);
		assert_true(out.size > 3 && out.data[0] == *c);
		hf_splice_free(&s);
	}
	hf_buf_free(&out);
}

/* Blanks past what is looked at are the same, however they come: what comes
 * after the decision is passed on. */
static void
test_blanks(void **state)
{
	char q[HF_SPLICE_HEAD + 32];
	struct hf_str rest = { q + HF_SPLICE_HEAD, 0 };

	(void)state;
	memset(q, ' ', sizeof(q));
	for (size_t n = 0; n < sizeof(q); n++) {
		rest.size = n > HF_SPLICE_HEAD ? n - HF_SPLICE_HEAD : 0;
		check(HID, HF_STR("one two "), (struct hf_str){ q, n }, rest);
		check(INS, HF_STR("one two "), (struct hf_str){ q, n }, rest);
		check(PRE, HF_STR("one two\t"), (struct hf_str){ q, n }, rest);
	}
	/* The last byte begins a character. */
	q[HF_SPLICE_HEAD + 31] = (char)0xe6;
	check(HID, HF_STR("one two "), (struct hf_str){ q, sizeof(q) },
	    (struct hf_str){ rest.p, 32 });
}

int
main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_long_again),
		cmocka_unit_test(test_long_overlap),
		cmocka_unit_test(test_is_let_go_early),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_blanks),
	};

	return cmocka_run_group_tests_name("splice", t, NULL, NULL);
}
