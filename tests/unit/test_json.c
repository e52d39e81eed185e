/*
 * The JSON scanner: which texts are accepted, what the spans are, and that
 * bytes survive.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "gateway/json/bytes.h"
#include "gateway/json/scan.h"

#define S(lit)                         \
	{                              \
		(lit), sizeof(lit) - 1 \
	}

/* Accepted (y) and refused (n) texts, in the manner of public test suites. */
static const struct {
	char want;
	struct hf_str text;
} grammar[] = {
	/* arrays */
	{ 'y', S("[]") },
	{ 'y', S("[[]   ]") },
	{ 'y', S("[\"\"]") },
	{ 'y', S("[null, 1, \"1\", {}]") },
	{ 'y', S("[1\n]") },
	{ 'y', S(" [1]") },
	{ 'y', S("[2] ") },
	{ 'y', S("[1,null,null,2]") },
	{ 'n', S("[1 true]") },
	{ 'n', S("[a]") },
	{ 'n', S("[\"\": 1]") },
	{ 'n', S("[\"\"],") },
	{ 'n', S("[,1]") },
	{ 'n', S("[1,,2]") },
	{ 'n', S("[\"x\",,]") },
	{ 'n', S("[\"x\"]]") },
	{ 'n', S("[\"\",]") },
	{ 'n', S("[\"x\"") },
	{ 'n', S("[x") },
	{ 'n', S("[3[4]]") },
	{ 'n', S("[\xff]") },
	{ 'n', S("[1:2]") },
	{ 'n', S("[,]") },
	{ 'n', S("[-]") },
	{ 'n', S("[   , \"\"]") },
	{ 'n', S("[1,") },
	{ 'n', S("[1,\n1\n,1") },
	{ 'n', S("[*]") },
	{ 'n', S("[1}") },
	{ 'n', S("[") },
	{ 'n', S("]") },
	{ 'n', S("[{}") },
	{ 'n', S("[\x0b\"a\"]") },
	{ 'n', S("[\f]") },
	{ 'n', S("[1]x") },
	{ 'n', S("[1][2]") },
	{ 'n', S("[\xe2\x81\xa0]") },
	/* objects */
	{ 'y', S("{}") },
	{ 'y', S("{\"a\":[]}") },
	{ 'y', S("{\"\":0}") },
	{ 'y', S("{\"a\":\"b\",\"a\":\"c\"}") },
	{ 'y', S("{\"foo\\u0000bar\": 42}") },
	{ 'y', S("{\n\"a\": \"b\"\n}") },
	{ 'y', S("\t{ \"a\" : 1 }\r\n") },
	{ 'n', S("{\"x\", null}") },
	{ 'n', S("{\"x\"::\"b\"}") },
	{ 'n', S("{\"a\":\"a\" 123}") },
	{ 'n', S("{key: 'value'}") },
	{ 'n', S("{\"a\" b}") },
	{ 'n', S("{:\"b\"}") },
	{ 'n', S("{\"a\" \"b\"}") },
	{ 'n', S("{\"a\":") },
	{ 'n', S("{\"a\"") },
	{ 'n', S("{1:1}") },
	{ 'n', S("{null:null}") },
	{ 'n', S("{\"id\":0,,}") },
	{ 'n', S("{'a':0}") },
	{ 'n', S("{\"id\":0,}") },
	{ 'n', S("{\"a\":1") },
	{ 'n', S("{\"a\":\"b\"}/**/") },
	{ 'n', S("{\"a\":\"b\"}#") },
	{ 'n', S("{\"a\":1]") },
	{ 'n', S("{") },
	{ 'n', S("}") },
	{ 'n', S("{\"a\":\"b\",,\"c\":1}") },
	{ 'n', S("{a:\"b\"}") },
	{ 'n', S("{\"a\":\"a") },
	{ 'n', S("{ \"foo\" : \"bar\", \"a\" }") },
	{ 'n', S("{[: \"x\"}") },
	{ 'n', S("{,}") },
	{ 'n', S("{\"a\":}") },
	/* numbers */
	{ 'y', S("0") },
	{ 'y', S("-0") },
	{ 'y', S("123") },
	{ 'y', S("123e65") },
	{ 'y', S("0e+1") },
	{ 'y', S("0e1") },
	{ 'y', S("-0.0") },
	{ 'y', S("20e1") },
	{ 'y', S("1E22") },
	{ 'y', S("1E-2") },
	{ 'y', S("1E+2") },
	{ 'y', S("123.456e78") },
	{ 'y', S("1e400") },
	{ 'y', S("-1e-400") },
	{ 'y', S("1.10") },
	{ 'y', S("2512292042121000001") },
	{ 'y', S("100000000000000000000000000000000000000000000000000001") },
	{ 'n', S("++1234") },
	{ 'n', S("+1") },
	{ 'n', S("+Inf") },
	{ 'n', S("-01") },
	{ 'n', S("-1.0.") },
	{ 'n', S("-2.") },
	{ 'n', S("-NaN") },
	{ 'n', S(".-1") },
	{ 'n', S(".2e-3") },
	{ 'n', S("0.1.2") },
	{ 'n', S("0.3e+") },
	{ 'n', S("0.3e") },
	{ 'n', S("0.e1") },
	{ 'n', S("0E") },
	{ 'n', S("0E+") },
	{ 'n', S("1.0e+") },
	{ 'n', S("1.0e-") },
	{ 'n', S("1.0e") },
	{ 'n', S("1 000.0") },
	{ 'n', S("1eE2") },
	{ 'n', S("2.e+3") },
	{ 'n', S("2.e3") },
	{ 'n', S("9.e+") },
	{ 'n', S("Inf") },
	{ 'n', S("NaN") },
	{ 'n', S("\xef\xbc\x91") },
	{ 'n', S("1+2") },
	{ 'n', S("0x1") },
	{ 'n', S("0x42") },
	{ 'n', S("Infinity") },
	{ 'n', S("0e+-1") },
	{ 'n', S("-123.123foo") },
	{ 'n', S("123\xe5") },
	{ 'n', S("012") },
	{ 'n', S("-foo") },
	{ 'n', S("- 1") },
	{ 'n', S("1ea") },
	{ 'n', S("1a") },
	{ 'n', S(".123") },
	{ 'n', S("1.") },
	{ 'n', S("1.8011670033376514H-308") },
	{ 'n', S("1.2a-3") },
	{ 'n', S("00") },
	{ 'n', S("1_000") },
	/* strings */
	{ 'y', S("\"\"") },
	{ 'y', S("\" \"") },
	{ 'y', S("\"a/*b*/c/*d//e\"") },
	{ 'y', S("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"") },
	{ 'y', S("\"\\u0060\\u012a\\u12AB\"") },
	{ 'y', S("\"\\uD801\\udc37\"") },
	{ 'y', S("\"\\ud83d\\ude39\"") },
	{ 'y', S("\"\\\\u0000\"") },
	{ 'y', S("\"\\u0000\"") },
	{ 'y', S("\"asd \"") },
	{ 'y', S("\"\\uDBFF\\uDFFF\"") },
	{ 'y', S("\"\xf4\x8f\xbf\xbf\"") },
	{ 'y', S("\"\xef\xbf\xbf\"") },
	{ 'y', S("\"\x7f\"") },
	{ 'y', S("\"\xc2\x80\"") },
	{ 'y', S("\"\xe2\x80\xa8\"") },
	{ 'y', S("\"\xf0\x9d\x84\x9e\"") },
	{ 'y', S("\"\xe6\x97\xa5\xe6\x9c\xac\"") },
	{ 'y', S("\"\\uFFFE\"") },
	/* lone surrogates are let through, and counted elsewhere */
	{ 'y', S("\"\\uD800\"") },
	{ 'y', S("\"\\uDC00\"") },
	{ 'y', S("\"\\uD800\\n\"") },
	{ 'y', S("\"\\uD800\\uD800\\uDC00\"") },
	{ 'n', S("\"\\uD800\\u\"") },
	{ 'n', S("\"\\uD800\\u1\"") },
	{ 'n', S("\"\\uD800\\u1x\"") },
	{ 'n', S("\"\\ud800\\uzzzz\"") },
	{ 'n', S("\"\\x00\"") },
	{ 'n', S("\"\\\xf0\x9f\x8c\x80\"") },
	{ 'n', S("\"\\\"") },
	{ 'n', S("\"\\a\"") },
	{ 'n', S("\"\\u00A\"") },
	{ 'n', S("\"\\uqqqq\"") },
	{ 'n', S("\"\\'\"") },
	{ 'n', S("\"\\U0041\"") },
	{ 'n', S("\"") },
	{ 'n', S("'x'") },
	{ 'n', S("abc") },
	{ 'n', S("\"new\nline\"") },
	{ 'n', S("\"\t\"") },
	{ 'n', S("\"\x1f\"") },
	{ 'n', S("\"a\0b\"") },
	{ 'n', S("\"x\"x") },
	{ 'n', S("\"\\") },
	{ 'n', S("\"\\\0\"") },
	{ 'n', S("\\u0020\"asd\"") },
	/* UTF-8 */
	{ 'n', S("\"\xc0\xaf\"") },
	{ 'n', S("\"\xc1\xbf\"") },
	{ 'n', S("\"\xe0\x80\xaf\"") },
	{ 'n', S("\"\xe0\x9f\xbf\"") },
	{ 'n', S("\"\xf0\x80\x80\xaf\"") },
	{ 'n', S("\"\xf0\x8f\xbf\xbf\"") },
	{ 'n', S("\"\xed\xa0\x80\"") },
	{ 'n', S("\"\xed\xbf\xbf\"") },
	{ 'n', S("\"\xf4\x90\x80\x80\"") },
	{ 'n', S("\"\xf5\x80\x80\x80\"") },
	{ 'n', S("\"\x80\"") },
	{ 'n', S("\"\xbf\"") },
	{ 'n', S("\"\xff\"") },
	{ 'n', S("\"\xc2\"") },
	{ 'n', S("\"\xe6\x97\"") },
	{ 'n', S("\"\xf0\x9f\x98\"") },
	{ 'n', S("\"\xe9\"") },
	{ 'n', S("{\"\xff\":1}") },
	{ 'n', S("\"\xf8\x88\x80\x80\x80\"") },
	/* words and structure */
	{ 'y', S("true") },
	{ 'y', S("false") },
	{ 'y', S("null") },
	{ 'y', S(" \t\r\nnull \t\r\n") },
	{ 'n', S("True") },
	{ 'n', S("nul") },
	{ 'n', S("nulll") },
	{ 'n', S("fals") },
	{ 'n', S("tru e") },
	{ 'n', S("truefalse") },
	{ 'n', S("") },
	{ 'n', S(" ") },
	{ 'n', S("\0") },
	{ 'n', S("<.>") },
	{ 'n', S("\xef\xbb\xbf{}") },
	{ 'n', S("\xc2\xa0null") },
	{ 'n', S("{}}") },
	{ 'n', S("//x\n1") },
	{ 'n', S("1\0") },
	{ 'n', S("{\"a\":true} \"x\"") },
	{ 'n', S("\xff\xfe\x7b\0}\0") },
};

static int
check_copy(struct hf_str text, struct hf_json *v, unsigned *repairs,
    char **copy, struct hf_error *e)
{
	/* An exact heap copy, so that ASan sees a read past the end. */
	*copy = malloc(text.size == 0 ? 1 : text.size);
	assert_non_null(*copy);
	memcpy(*copy, text.p, text.size);
	return hf_json_check(
	    (struct hf_str){ *copy, text.size }, v, repairs, e);
}

static void
test_grammar(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < hf_countof(grammar); i++) {
		struct hf_json v;
		struct hf_error e = { 0 };
		char *copy;
		int rc = check_copy(grammar[i].text, &v, NULL, &copy, &e);

		if ((rc == 0) != (grammar[i].want == 'y'))
			fail_msg("row %zu: rc %d for %.*s", i, rc,
			    HF_STR_ARG(grammar[i].text));
		if (rc == 0) {
			assert_true(v.raw.p >= copy);
			assert_true(v.type != HF_JSON_NONE);
		} else {
			assert_int_equal(rc, HF_EINVAL);
			assert_int_equal(v.type, HF_JSON_NONE);
			assert_non_null(strstr(e.text, "line "));
		}
		free(copy);
	}
}

static struct hf_json
parse(const char *z)
{
	struct hf_json v;
	struct hf_error e = { 0 };

	if (hf_json_check(hf_str(z), &v, NULL, &e) != 0)
		fail_msg("%s: %s", z, e.text);
	return v;
}

static void
test_truncated_everywhere(void **state)
{
	static const char whole[] =
	    "{\"a\":[1,-2.5e+3,\"x\\ud83d\\ude39\xe6\x97\xa5\",true,false,"
	    "null,{}],\"b\":{\"c\":[[],[{}]]},\"\":\"\\u0000\"}";
	size_t n;

	(void)state;
	for (n = 0; n < sizeof(whole) - 1; n++) {
		struct hf_json v;
		char *copy;

		assert_int_equal(check_copy((struct hf_str){ whole, n }, &v,
				     NULL, &copy, NULL),
		    HF_EINVAL);
		free(copy);
	}
	parse(whole);
}

static void
test_nesting(void **state)
{
	struct hf_json v;
	struct hf_error e = { 0 };
	char *t = malloc(20000);
	size_t n;

	(void)state;
	assert_non_null(t);
	for (n = 62; n <= 66; n++) {
		memset(t, '[', n);
		memset(t + n, ']', n);
		assert_int_equal(
		    hf_json_check((struct hf_str){ t, 2 * n }, &v, NULL, &e),
		    n <= HF_JSON_MAX_DEPTH ? 0 : HF_ELIMIT);
	}
	memset(t, '[', 10000);
	memset(t + 10000, ']', 10000);
	assert_int_equal(
	    hf_json_check((struct hf_str){ t, 20000 }, &v, NULL, &e),
	    HF_ELIMIT);
	assert_string_equal(e.text, "line 1, column 65: nested too deep");
	for (n = 0; n + 5 <= 20000; n += 5)
		memcpy(t + n, "{\"a\":", 5);
	assert_int_equal(
	    hf_json_check((struct hf_str){ t, n }, &v, NULL, &e), HF_ELIMIT);
	free(t);
}

static void
test_position(void **state)
{
	static const struct {
		const char *text, *want;
	} row[] = {
		{ "", "line 1, column 1: text ends too early" },
		{ "{\"a\":1,\n \"b\":x}", "line 2, column 6: a value was" },
		{ "{\"a\" 1}", "line 1, column 6: ':' was expected" },
		{ "[1\n\n2]", "line 3, column 1: ',' or ']' was" },
		{ "[\"ab\\q\"]", "line 1, column 5: bad escape" },
		{ "{} {}", "line 1, column 4: something follows" },
		{ "[\"a", "line 1, column 2: string without end" },
		{ "\"a\xff\"", "line 1, column 3: ill-formed UTF-8" },
		{ "{x}", "line 1, column 2: a key in quotes" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < hf_countof(row); i++) {
		struct hf_json v;
		struct hf_error e = { 0 };

		assert_int_equal(
		    hf_json_check(hf_str(row[i].text), &v, NULL, &e),
		    HF_EINVAL);
		if (strncmp(e.text, row[i].want, strlen(row[i].want)) != 0)
			fail_msg("row %zu: %s", i, e.text);
	}
}

static void
expect_raw(struct hf_json v, enum hf_json_type type, const char *raw)
{
	assert_int_equal(v.type, type);
	if (!hf_str_is(v.raw, raw))
		fail_msg("got %.*s, want %s", HF_STR_ARG(v.raw), raw);
}

static void
test_spans(void **state)
{
	struct hf_json v = parse(
	    " {\"n\":2512292042121000001 ,\"m\" : 1.10,"
	    "\"e\":1e400,\"s\":\"\\u0041\",\"\":[ ],\"o\":{\"x\":[1,[2],3]},"
	    "\"n\":-0} ");

	(void)state;
	expect_raw(hf_json_get(v, "m"), HF_JSON_NUMBER, "1.10");
	expect_raw(hf_json_get(v, "e"), HF_JSON_NUMBER, "1e400");
	expect_raw(hf_json_get(v, "s"), HF_JSON_STRING, "\"\\u0041\"");
	expect_raw(hf_json_get(v, ""), HF_JSON_ARRAY, "[ ]");
	expect_raw(hf_json_get(v, "n"), HF_JSON_NUMBER, "-0");
	expect_raw(
	    hf_json_path(v, "o", "x", "1", "0", NULL), HF_JSON_NUMBER, "2");
	expect_raw(hf_json_path(v, "o", "x", "2", NULL), HF_JSON_NUMBER, "3");
	assert_int_equal(hf_json_path(v, "o", "x", "3", NULL).type, 0);
	assert_int_equal(hf_json_path(v, "o", "x", "y", NULL).type, 0);
	assert_int_equal(hf_json_path(v, "o", "x", "", NULL).type, 0);
	assert_int_equal(hf_json_path(v, "n", "x", NULL).type, 0);
	assert_int_equal(hf_json_get(v, "nn").type, HF_JSON_NONE);
	assert_int_equal(hf_json_get(hf_json_get(v, "s"), "a").type, 0);
	/* What is absent has nothing in it. */
	assert_int_equal(hf_json_get(hf_json_get(v, "-"), "a").type, 0);
	assert_false(hf_json_int(hf_json_get(v, "-"), &(int64_t){ 0 }));
	assert_false(hf_json_string_is(hf_json_get(v, "-"), ""));
}

static void
expect_same(struct hf_json a, struct hf_json b)
{
	assert_int_equal(a.type, b.type);
	assert_ptr_equal(a.raw.p, b.raw.p);
	assert_int_equal(a.raw.size, b.raw.size);
}

/* A map answers as the text does: the last of equal keys, escaped keys, what
 * is inside containers, and two texts that share one map while it grows. */
static void
test_map(void **state)
{
	static const char one[] = "{\"a\":1,\"\\u0062\":[2,{\"x\":[]},3],"
				  "\"a\":3,\"\":{}}";
	static const char *const key[] = { "a", "b", "", "c", "\\u0062" };
	struct hf_json plain = parse(one), v, big, w, k, k2, w2;
	struct hf_json_map map = { 0 };
	size_t pos = 0, pos2 = 0;
	struct hf_buf text;
	uint32_t first;

	(void)state;
	assert_int_equal(
	    hf_json_check_map(hf_str(one), &v, NULL, &map, NULL), 0);
	assert_non_null(v.node);
	assert_int_equal(map.n, 14);
	hf_buf_init(&text, HF_BUF_NOCAP);
	for (int i = 0; i < 5000; i++)
		hf_buf_printf(&text, "%s\"k%d\":%d", i == 0 ? "{" : ",", i, i);
	hf_buf_putc(&text, '}');
	first = map.n;
	assert_int_equal(
	    hf_json_check_map(hf_buf_str(&text), &big, NULL, &map, NULL), 0);
	assert_int_equal(map.n, first + 10001);
	hf_json_remap(&v, &map, 0);
	hf_json_remap(&big, &map, first);
	for (size_t i = 0; i < hf_countof(key); i++)
		expect_same(hf_json_get(v, key[i]), hf_json_get(plain, key[i]));
	while (hf_json_next_member(plain, &pos, &k, &w)) {
		assert_true(hf_json_next_member(v, &pos2, &k2, &w2));
		expect_same(k, k2);
		expect_same(w, w2);
	}
	assert_false(hf_json_next_member(v, &pos2, &k2, &w2));
	expect_raw(hf_json_path(v, "b", "2", NULL), HF_JSON_NUMBER, "3");
	expect_raw(hf_json_path(v, "b", "1", "x", NULL), HF_JSON_ARRAY, "[]");
	expect_raw(hf_json_get(big, "k4999"), HF_JSON_NUMBER, "4999");
	/* Nothing is left in the map of a text that is wrong. */
	first = map.n;
	assert_int_equal(
	    hf_json_check_map(HF_STR("[1,[2}"), &w, NULL, &map, NULL),
	    HF_EINVAL);
	assert_int_equal(map.n, first);
	assert_null(w.node);
	hf_json_map_free(&map);
	hf_buf_free(&text);
}

/* Several keys in one walk are each what they are alone, mapped or not. */
static void
test_get_all(void **state)
{
	static const char *const text[] = { "{}", "[1]", "7",
		"{\"a\":1,\"bc\":[{\"a\":2}],\"a\":{\"bc\":3},\"d\":null}",
		"{\"\\u0061\":1,\"b\\u0063\":\"x\",\"\":true}",
		"{ \"bc\" : 1 , \"ab\" : 2 , \"a\\\"\" : 3 , \"bc\" : 4 }" };
	static const struct hf_str key[] = { HF_STR("a"), HF_STR("bc"),
		HF_STR("d"), HF_STR(""), HF_STR("a\"") };
	struct hf_json v, out[hf_countof(key)];
	struct hf_json_map map = { 0 };

	(void)state;
	for (size_t i = 0; i < 2 * hf_countof(text); i++) {
		hf_json_map_reset(&map);
		assert_int_equal(hf_json_check_map(hf_str(text[i / 2]), &v,
				     NULL, i % 2 == 0 ? &map : NULL, NULL),
		    0);
		hf_json_get_all(v, key, hf_countof(key), out);
		for (size_t k = 0; k < hf_countof(key); k++)
			expect_same(out[k], hf_json_get(v, key[k].p));
	}
	assert_int_equal(
	    hf_json_check_map(HF_STR("[1,[2,3],{}]"), &v, NULL, &map, NULL), 0);
	hf_json_remap(&v, &map, map.n - 6);
	assert_int_equal(hf_json_count(v, 10), 3);
	assert_int_equal(hf_json_count(v, 2), 2);
	v.node = NULL;
	assert_int_equal(hf_json_count(v, 10), 0);
	hf_json_map_free(&map);
}

/* A text with more values than a map may hold is read without one. */
static void
test_map_bound(void **state)
{
	size_t n = HF_JSON_MAP_MAX + 1;
	struct hf_json_map map = { 0 };
	char *text = malloc(2 * n + 1);
	struct hf_json v, x;
	size_t pos = 0, seen = 0;

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < n; i++)
		memcpy(text + 2 * i, i == 0 ? "[1" : ",1", 2);
	text[2 * n] = ']';
	assert_int_equal(hf_json_check_map((struct hf_str){ text, 2 * n + 1 },
			     &v, NULL, &map, NULL),
	    0);
	assert_null(v.node);
	assert_int_equal(map.n, 0);
	while (hf_json_next_element(v, &pos, &x))
		seen++;
	assert_int_equal(seen, n);
	hf_json_map_free(&map);
	free(text);
}

static void
test_iterate(void **state)
{
	struct hf_json v = parse("[ 1 ,\"]\\\"\" , [ ] ,{ } , { \"a\":[{}] } , "
				 "true,false,null,-1.5e3]"),
		       x, k;
	static const char *const want[] = { "1", "\"]\\\"\"", "[ ]", "{ }",
		"{ \"a\":[{}] }", "true", "false", "null", "-1.5e3" };
	size_t pos = 0, i = 0;

	(void)state;
	while (hf_json_next_element(v, &pos, &x)) {
		assert_true(i < hf_countof(want));
		assert_true(hf_str_is(x.raw, want[i]));
		i++;
	}
	assert_int_equal(i, hf_countof(want));
	assert_false(hf_json_next_element(v, &pos, &x));
	v = parse("{ \"a\" : 1 , \"\\u0062\":\"}\",\"\":{}}");
	pos = 0;
	assert_true(hf_json_next_member(v, &pos, &k, &x));
	assert_true(hf_json_key_is(k, "a"));
	expect_raw(x, HF_JSON_NUMBER, "1");
	assert_true(hf_json_next_member(v, &pos, &k, &x));
	assert_true(hf_json_key_is(k, "b"));
	assert_false(hf_json_key_is(k, "bb"));
	assert_false(hf_json_key_is(k, ""));
	expect_raw(x, HF_JSON_STRING, "\"}\"");
	assert_true(hf_json_next_member(v, &pos, &k, &x));
	assert_true(hf_json_key_is(k, ""));
	expect_raw(x, HF_JSON_OBJECT, "{}");
	assert_false(hf_json_next_member(v, &pos, &k, &x));
	/* Of the wrong type: nothing. */
	pos = 0;
	assert_false(hf_json_next_element(v, &pos, &x));
	assert_false(hf_json_next_member(parse("[]"), &pos, &k, &x));
	assert_false(hf_json_next_element(parse("[ ]"), &pos, &x));
	assert_false(hf_json_next_member(parse("{ }"), &pos, &k, &x));
}

static void
test_strings(void **state)
{
	static const struct {
		const char *raw;
		struct hf_str text;
		unsigned repairs;
		const char *repaired;
	} row[] = {
		{ "\"\"", S(""), 0, "\"\"" },
		{ "\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"", S("a\"\\/\b\f\n\r\tz"), 0,
		    "\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"" },
		{ "\"a\\u0000b\"", S("a\0b"), 0, "\"a\\u0000b\"" },
		{ "\"\\u00e9\\u20AC\"", S("\xc3\xa9\xe2\x82\xac"), 0,
		    "\"\\u00e9\\u20AC\"" },
		{ "\"\\ud83d\\ude42\"", S("\xf0\x9f\x99\x82"), 0,
		    "\"\\ud83d\\ude42\"" },
		{ "\"\\uDBFF\\uDFFF\"", S("\xf4\x8f\xbf\xbf"), 0,
		    "\"\\uDBFF\\uDFFF\"" },
		{ "\"x\\ud83dy\"", S("x\xef\xbf\xbdy"), 1, "\"x\\ufffdy\"" },
		{ "\"\\ude42\\ud83d\"", S("\xef\xbf\xbd\xef\xbf\xbd"), 2,
		    "\"\\ufffd\\ufffd\"" },
		{ "\"\\ud800\\ud83d\\ude42\"",
		    S("\xef\xbf\xbd\xf0\x9f\x99\x82"), 1,
		    "\"\\ufffd\\ud83d\\ude42\"" },
		{ "\"\\ud800\\\\udc00\"", S("\xef\xbf\xbd\\udc00"), 1,
		    "\"\\ufffd\\\\udc00\"" },
		{ "\"\\\\ud800\"", S("\\ud800"), 0, "\"\\\\ud800\"" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < hf_countof(row); i++) {
		struct hf_json v;
		struct hf_buf b;
		unsigned repairs = 99;

		hf_buf_init(&b, HF_BUF_NOCAP);
		assert_int_equal(
		    hf_json_check(hf_str(row[i].raw), &v, &repairs, NULL), 0);
		assert_int_equal(repairs, row[i].repairs);
		hf_json_decode(v, &b);
		assert_true(hf_str_eq(hf_buf_str(&b), row[i].text));
		hf_buf_reset(&b);
		hf_json_put_repaired(&b, v);
		assert_true(hf_str_is(hf_buf_str(&b), row[i].repaired));
		if (memchr(row[i].text.p, '\0', row[i].text.size) == NULL &&
		    repairs == 0)
			assert_true(hf_json_string_is(v, row[i].text.p));
		assert_int_equal(
		    hf_json_is_plain(v), strchr(row[i].raw, '\\') == NULL);
		hf_buf_free(&b);
	}
	assert_false(hf_json_string_is(parse("\"a\\u0000b\""), "a"));
	assert_false(hf_json_string_is(parse("\"ab\""), "a"));
	assert_false(hf_json_string_is(parse("\"a\""), "ab"));
	assert_false(hf_json_string_is(parse("1"), "1"));
}

static void
test_repairs_everywhere(void **state)
{
	struct hf_json v;
	struct hf_buf b;
	unsigned repairs = 0;

	(void)state;
	hf_buf_init(&b, HF_BUF_NOCAP);
	assert_int_equal(hf_json_check(HF_STR("{\"\\udc00\":[\"\\ud800\", 1],"
					      "\"b\":\"\\ud83d\\ude42\"}"),
			     &v, &repairs, NULL),
	    0);
	assert_int_equal(repairs, 2);
	hf_json_put_repaired(&b, v);
	assert_string_equal(b.data,
	    "{\"\\ufffd\":[\"\\ufffd\", 1],"
	    "\"b\":\"\\ud83d\\ude42\"}");
	hf_buf_free(&b);
}

static void
test_numbers(void **state)
{
	static const struct {
		const char *raw;
		bool ok;
		int64_t v;
	} row[] = {
		{ "0", true, 0 },
		{ "-0", true, 0 },
		{ "42", true, 42 },
		{ "-7", true, -7 },
		{ "2512292042121000001", true, 2512292042121000001 },
		{ "9223372036854775807", true, INT64_MAX },
		{ "-9223372036854775808", true, INT64_MIN },
		{ "9223372036854775808", false, 0 },
		{ "-9223372036854775809", false, 0 },
		{ "99999999999999999999", false, 0 },
		{ "1.0", false, 0 },
		{ "1e2", false, 0 },
		{ "\"1\"", false, 0 },
		{ "true", false, 0 },
	};
	double d = 0;
	int64_t v;
	size_t i;

	(void)state;
	for (i = 0; i < hf_countof(row); i++) {
		v = 0;
		assert_int_equal(hf_json_int(parse(row[i].raw), &v), row[i].ok);
		assert_int_equal(v, row[i].v);
	}
	assert_true(hf_json_double(parse("1.5e2"), &d) && d == 150.0);
	assert_true(hf_json_double(parse("0.000000000000000000000000000000000"
					 "0000000000000000000000000000000000000"
					 "0000000000000000000001"),
			&d) &&
	    d > 0);
	assert_false(hf_json_double(parse("1e400"), &d));
	assert_false(hf_json_double(parse("\"1\""), &d));
}

static void
test_put_string(void **state)
{
	static const struct {
		struct hf_str text;
		const char *want;
	} row[] = {
		{ S(""), "\"\"" },
		{ S("plain text that is longer than sixteen"),
		    "\"plain text that is longer than sixteen\"" },
		{ S("\"\\/\b\f\n\r\t"),
		    "\"\\\"\\\\/\\u0008\\u000c\\n\\r\\t\"" },
		{ S("a\0\x1f\x7f"), "\"a\\u0000\\u001f\x7f\"" },
		{ S("\xe6\x97\xa5\xf0\x9f\x99\x82"),
		    "\"\xe6\x97\xa5\xf0\x9f\x99\x82\"" },
		{ S("a\xff"
		    "b\xc3"),
		    "\"a\xef\xbf\xbd"
		    "b\xef\xbf\xbd\"" },
		{ S("\xed\xa0\x80"),
		    "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < hf_countof(row); i++) {
		struct hf_json v;
		struct hf_buf b;

		hf_buf_init(&b, HF_BUF_NOCAP);
		hf_json_put_string(&b, row[i].text);
		if (!hf_str_is(hf_buf_str(&b), row[i].want))
			fail_msg("row %zu: %s", i, b.data);
		assert_int_equal(
		    hf_json_check(hf_buf_str(&b), &v, NULL, NULL), 0);
		hf_buf_free(&b);
	}
}

static void
test_compact(void **state)
{
	struct hf_buf b;

	(void)state;
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_json_put_compact(&b,
	    parse(" { \"a b\" : [ 1 , \"\\\" x \" ] ,\n"
		  "\t\"c\":{ } } "));
	assert_string_equal(b.data, "{\"a b\":[1,\"\\\" x \"],\"c\":{}}");
	hf_buf_free(&b);
}

/* Both ways to skip plain bytes agree with the plain definition, for every
 * byte value at every place of a window. */
static void
test_skip_plain(void **state)
{
	char t[40];
	int c, at, from;

	(void)state;
	for (c = 0; c < 256; c++) {
		for (at = 0; at < (int)sizeof(t); at++) {
			memset(t, 'a', sizeof(t));
			t[at] = (char)c;
			for (from = 0; from <= at && from < 17; from++) {
				const char *end = t + sizeof(t), *want = t + at;

				if (hf_json_plain_byte((unsigned char)c))
					want = end;
				assert_ptr_equal(
				    hf_json_skip_plain(t + from, end), want);
				assert_ptr_equal(
				    hf_json_skip_plain_swar(t + from, end),
				    want);
			}
		}
	}
}

/* 8 MB of text, members and nesting: must stay linear (a quadratic scanner
 * would need minutes). */
static void
test_linear(void **state)
{
	struct hf_buf b;
	struct hf_json v, k, x;
	size_t pos = 0, n = 0;
	int64_t t0 = hf_now_us();

	(void)state;
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_puts(&b, "{\"text\":\"");
	while (b.size < 4000000)
		hf_buf_puts(&b, "some words \\n and \xe6\x97\xa5\xe6\x9c\xac ");
	hf_buf_puts(&b, "\"");
	while (b.size < 8000000)
		hf_buf_puts(&b, ",\"k\":[[{\"a\":\"b\"}],1,null]");
	hf_buf_puts(&b, "}");
	assert_int_equal(hf_json_check(hf_buf_str(&b), &v, NULL, NULL), 0);
	while (hf_json_next_member(v, &pos, &k, &x))
		n++;
	assert_true(n > 100000);
	assert_true(hf_now_us() - t0 < 20 * 1000000);
	hf_buf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grammar),
		cmocka_unit_test(test_truncated_everywhere),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_position),
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_get_all),
		cmocka_unit_test(test_map_bound),
		cmocka_unit_test(test_iterate),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_repairs_everywhere),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_put_string),
		cmocka_unit_test(test_compact),
		cmocka_unit_test(test_skip_plain),
		cmocka_unit_test(test_linear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
