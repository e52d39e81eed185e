/*
 * The release gate: what passes, what is held, and that no UTF-8 sequence is
 * ever cut.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "gateway/turn/splice.h"

#define TOK HF_RELEASE_TOKEN
#define WRD HF_RELEASE_WORD
#define CLS HF_RELEASE_CLAUSE

#define X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define KI "\xe6\x9c\xa8" /* a character without spaces */
#define OE "\xc3\xb6"
#define SMILE "\xf0\x9f\x98\x80"

/* 'pass' may go, 'hold' may not. */
static const struct row {
	enum hf_release_mode mode;
	const char *pass;
	const char *hold;
} rows[] = {
	{ TOK, "", "" },
	{ TOK, "pac", "" },
	{ TOK, "a" OE SMILE KI, "" },
	{ TOK, "a", "\xc3" },
	{ TOK, "a", "\xf0" },
	{ TOK, "a", "\xf0\x9f" },
	{ TOK, "a", "\xf0\x9f\x98" },
	{ TOK, "a", "\xe6\x9c" },
	{ TOK, "a\xff", "" }, /* never becomes a character */
	{ TOK, "a\xe0\x80", "" },
	{ TOK, "a\x80", "" },
	{ WRD, "", "" },
	{ WRD, "", "pac" },
	{ WRD, " ", "pac" },
	{ WRD, "is ", "" },
	{ WRD, "order 42 is ", "pac" },
	{ WRD, "so\n", "(foo" },
	{ WRD, "pi is ", "3." },
	{ WRD, "pi is ", "3.14" },
	{ WRD, "about ", "1,0" },
	{ WRD, "I ", "don'" },
	{ WRD, "see ", "x->y" },
	{ WRD, "gr" OE OE "n ", OE "l" },
	{ WRD, "a\xc2\xa0", "b" }, /* a space that does not break */
	{ WRD, KI KI, "" },
	{ WRD, KI, "GPT" },
	{ WRD, "GPT" KI, "" },
	{ WRD, KI "\xe3\x80\x82", "" },
	{ WRD, KI, "\xe6\x9c" },
	{ WRD, "so ", SMILE },
	{ WRD, "so ", SMILE "\xe2\x80\x8d\xf0\x9f" },
	{ WRD, "see ", "https://example.org/a/path/that/is/long?x=1&y=2" },
	{ CLS, "", "" },
	{ CLS, "", "Hello Zelmira" },
	{ CLS, "", "Hello Zelmira," },
	{ CLS, "Hello Zelmira, ", "" },
	{ CLS, "Hello Zelmira, ", "order 42 is pac" },
	{ CLS, "Done. Really?\n ", "Y" },
	{ CLS, "one; two: ", "three" },
	{ CLS, "Stop! ", "or" },
	{ CLS, "", "pi is 3.14 and 1,000" },
	{ CLS, "line\n", "two words" },
	{ CLS, "line\n\n  ", "two words" },
	{ CLS, "He said \"no.\" ", "Then" },
	{ CLS, "(So it is.) ", "Then" },
	{ CLS, "", "say \"no\" then" },
	{ CLS, KI "\xe3\x80\x82", KI KI },
	{ CLS, KI "\xef\xbc\x8c", KI },
	{ CLS, "a\xe2\x80\xa6 ", "b" },
};

static void
test_rows(void **state)
{
	char text[256];
	size_t n;

	(void)state;
	for (size_t i = 0; i < hf_countof(rows); i++) {
		snprintf(
		    text, sizeof(text), "%s%s", rows[i].pass, rows[i].hold);
		n = hf_release_pass(rows[i].mode, hf_str(text));
		if (n != strlen(rows[i].pass))
			fail_msg("row %zu '%s': %zu pass", i, text, n);
	}
	assert_int_equal(hf_release_pass(WRD, HF_STR_NONE), 0);
}

/* The longest word that is waited for, and one byte more; half a character is
 * not counted. */
static void
test_word_limit(void **state)
{
	char text[2 + HF_RELEASE_WORD_MAX + 3] = "a ";
	size_t n = 2 + HF_RELEASE_WORD_MAX;

	(void)state;
	memset(text + 2, 'x', sizeof(text) - 2);
	assert_int_equal(hf_release_pass(WRD, (struct hf_str){ text, n }), 2);
	assert_int_equal(
	    hf_release_pass(WRD, (struct hf_str){ text, n + 1 }), n + 1);
	memcpy(text + n, OE, 2);
	assert_int_equal(
	    hf_release_pass(WRD, (struct hf_str){ text, n + 1 }), 2);
	assert_int_equal(
	    hf_release_pass(WRD, (struct hf_str){ text, n + 2 }), n + 2);
}

/* 400 bytes without a clause's end are held, then words pass. */
static void
test_clause_limit(void **state)
{
	char text[512];
	size_t n = 0;

	(void)state;
	while (n < 400) {
		memcpy(text + n, "abc ", 4);
		n += 4;
		assert_int_equal(
		    hf_release_pass(CLS, (struct hf_str){ text, n }), 0);
	}
	memcpy(text + n, "ab", 2);
	assert_int_equal(
	    hf_release_pass(CLS, (struct hf_str){ text, n + 1 }), 400);
	assert_int_equal(
	    hf_release_pass(CLS, (struct hf_str){ text, n + 2 }), 400);
	/* A clause's end in it counts from there. */
	text[2] = '.';
	assert_int_equal(
	    hf_release_pass(CLS, (struct hf_str){ text, n + 2 }), 4);
}

static const char *const texts[] = {
	"Hello, w" OE "rld. " KI KI "GPT" KI "\xe3\x80\x82 " SMILE SMILE
	"\xe2\x80\x8d" SMILE " pi is 3.14, or 1,000!\r\n\r\nNext: (a) b.",
	SMILE SMILE SMILE SMILE SMILE SMILE SMILE SMILE SMILE SMILE SMILE,
	"\xff\xc3\x28\xe2\x82 a \xf0\x9f b. \xed\xa0\x80",
	"a " X50 X50 X50 X50 X50 X50 OE " b. " X50 X50,
	OE OE OE OE OE OE OE OE OE OE OE OE OE OE OE OE OE OE OE OE " " OE,
};

static bool
starts_sequence(const char *p)
{
	return ((unsigned char)*p & 0xc0) != 0x80;
}

/* A stream of pieces of 'step' bytes: the bytes go through unchanged and in
 * order, and every stop is at a sequence's start (of valid text). */
static void
stream(enum hf_release_mode mode, const char *text, size_t step, bool valid)
{
	size_t end = strlen(text), got = 0, sent = 0, n;

	while (got < end) {
		got = got + step < end ? got + step : end;
		n = hf_release_pass(
		    mode, (struct hf_str){ text + sent, got - sent });
		assert_true(n <= got - sent);
		sent += n;
		if (valid)
			assert_true(starts_sequence(text + sent));
		/* What is held stays held until more comes. */
		n = hf_release_pass(
		    mode, (struct hf_str){ text + sent, got - sent });
		assert_int_equal(n, 0);
		assert_true(got - sent <=
		    (mode == TOK	? 3 :
			    mode == WRD ? HF_RELEASE_WORD_MAX + 3 :
					  400 + 3));
	}
}

static void
test_streams(void **state)
{
	(void)state;
	for (size_t i = 0; i < hf_countof(texts); i++)
		for (size_t step = 1; step <= 60; step++) {
			stream(TOK, texts[i], step, i != 2);
			stream(WRD, texts[i], step, i != 2);
			stream(CLS, texts[i], step, i != 2);
		}
}

int
main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_word_limit),
		cmocka_unit_test(test_clause_limit),
		cmocka_unit_test(test_streams),
	};

	return cmocka_run_group_tests_name("release", t, NULL, NULL);
}
