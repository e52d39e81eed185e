/*
 * The SSE parser against the vectors of the WHATWG rules; each one whole,
 * byte by byte, and cut in two at every place.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "gateway/upstream/sse.h"

#define S(lit)                         \
	{                              \
		(lit), sizeof(lit) - 1 \
	}
#define BOM "\xef\xbb\xbf"

/* Events are written as "type|data|id;" so that one string compares all. */
static const struct {
	struct hf_str bytes;
	const char *events;
	int64_t retry_ms;
	const char *rest;
} vector[] = {
	{ S("data: a\n\n"), "message|a|;", -1, "" },
	{ S("data: a\r\n\r\n"), "message|a|;", -1, "" },
	{ S("data:a\n\n"), "message|a|;", -1, "" },
	{ S("data: a\r\rdata: b\r\r"), "message|a|;message|b|;", -1, "" },
	{ S("data: a\r\n\ndata: b\n\r\n"), "message|a|;message|b|;", -1, "" },
	{ S("data: a\n\rdata: b\r\r\n"), "message|a|;message|b|;", -1, "" },
	{ S(BOM "data: a\n\n"), "message|a|;", -1, "" },
	{ S("data: a\n\n" BOM "data: b\n\n"), "message|a|;", -1, "" },
	{ S(BOM BOM "data: a\n\n"), "", -1, "" },
	{ S(BOM "\ndata: a\n\n"), "message|a|;", -1, "" },
	{ S("data:  a\n\n"), "message| a|;", -1, "" },
	{ S("data: {\"a\":\ndata: 1}\n\n"), "message|{\"a\":\n1}|;", -1, "" },
	{ S("data\n\n"), "message||;", -1, "" },
	{ S("data:\n\n"), "message||;", -1, "" },
	{ S("data\ndata\n\n"), "message|\n|;", -1, "" },
	{ S("data:\ndata:\n\n"), "message|\n|;", -1, "" },
	{ S(": x\n\ndata: a\n\n"), "message|a|;", -1, "" },
	{ S(":\n\n: ping\ndata: a\n:\n: b\ndata: c\n\n"), "message|a\nc|;", -1,
	    "" },
	{ S("event: ping\n\ndata: a\n\n"), "message|a|;", -1, "" },
	{ S("event: x\ndata: a\n\ndata: b\n\n"), "x|a|;message|b|;", -1, "" },
	{ S("event:x\ndata:a\n\n"), "x|a|;", -1, "" },
	{ S("event: a\nevent: b\ndata: 1\n\n"), "b|1|;", -1, "" },
	{ S("event: a\nevent\ndata: 1\n\n"), "message|1|;", -1, "" },
	{ S("id: 7\ndata: a\n\ndata: b\n\n"), "message|a|7;message|b|7;", -1,
	    "" },
	{ S("id: 7\ndata: a\n\nid\ndata: b\n\n"), "message|a|7;message|b|;", -1,
	    "" },
	{ S("id: 9\n\ndata: b\n\n"), "message|b|9;", -1, "" },
	{ S("retry: 1500\ndata: a\n\n"), "message|a|;", 1500, "" },
	{ S("retry: 1.5\ndata: a\n\n"), "message|a|;", -1, "" },
	{ S("retry:\ndata: a\n\n"), "message|a|;", -1, "" },
	{ S("retry: -1\ndata: a\n\n"), "message|a|;", -1, "" },
	{ S("retry: 99999999999999999999\ndata: a\n\n"), "message|a|;", -1,
	    "" },
	{ S("data: a\n\ndata: lost"), "message|a|;", -1, "lost" },
	{ S("data: a\n\ndata: lost\n"), "message|a|;", -1, "lost" },
	{ S("data: a\n\ndata: lo\ndata: st"), "message|a|;", -1, "lo\nst" },
	{ S("data: a\n\n: lost"), "message|a|;", -1, "" },
	{ S("data: a\n\nevent: lost"), "message|a|;", -1, "" },
	{ S("data: [DONE]"), "", -1, "[DONE]" },
	{ S(" data: a\n\n"), "", -1, "" },
	{ S("Data: a\n\nDATA: b\n\n"), "", -1, "" },
	{ S("data : a\n\n"), "", -1, "" },
	{ S("datax: a\n\ndat: b\n\n"), "", -1, "" },
	{ S("\n\n\n"), "", -1, "" },
	{ S("\r\n\r\n\r\n"), "", -1, "" },
	{ S(""), "", -1, "" },
	{ S("data: a:b: c\n\n"), "message|a:b: c|;", -1, "" },
	{ S("data: \xe6\x97\xa5\xe6\x9c\xac\xf0\x9f\x99\x82\n\n"),
	    "message|\xe6\x97\xa5\xe6\x9c\xac\xf0\x9f\x99\x82|;", -1, "" },
	{ S("data: a\r\n\r\ndata: b\r\n\r\ndata: c\r\n\r\n"),
	    "message|a|;message|b|;message|c|;", -1, "" },
	{ S("data: a\r\ndata: b\r\n\r\n"), "message|a\nb|;", -1, "" },
};

static void
record(void *arg, const struct hf_sse_event *ev)
{
	hf_buf_putstr(arg, ev->type);
	hf_buf_putc(arg, '|');
	hf_buf_putstr(arg, ev->data);
	hf_buf_putc(arg, '|');
	hf_buf_putstr(arg, ev->id);
	hf_buf_putc(arg, ';');
}

static bool
feed_copy(struct hf_sse *s, const char *p, size_t size)
{
	char *copy = malloc(size == 0 ? 1 : size);
	bool ok;

	assert_non_null(copy);
	memcpy(copy, p, size);
	ok = hf_sse_feed(s, (struct hf_str){ copy, size });
	free(copy);
	return ok;
}

/* Feed in steps of 'step' bytes after a first piece of 'first'. */
static void
check_vector(size_t i, size_t first, size_t step)
{
	struct hf_str in = vector[i].bytes;
	struct hf_sse s;
	struct hf_buf got;
	size_t at, n;

	hf_buf_init(&got, HF_BUF_NOCAP);
	hf_buf_puts(&got, "");
	hf_sse_init(&s, 4096, record, &got);
	assert_true(feed_copy(&s, in.p, first));
	for (at = first; at < in.size; at += n) {
		n = in.size - at < step ? in.size - at : step;
		assert_true(feed_copy(&s, in.p + at, n));
	}
	if (!hf_str_is(hf_buf_str(&got), vector[i].events) ||
	    s.retry_ms != vector[i].retry_ms)
		fail_msg(
		    "vector %zu, cut %zu/%zu: %s", i, first, step, got.data);
	if (!hf_str_is(hf_sse_rest(&s), vector[i].rest))
		fail_msg("vector %zu, cut %zu/%zu: rest", i, first, step);
	hf_sse_free(&s);
	hf_buf_free(&got);
}

static void
test_vectors(void **state)
{
	size_t i, cut;

	(void)state;
	for (i = 0; i < hf_countof(vector); i++) {
		for (cut = 0; cut <= vector[i].bytes.size; cut++)
			check_vector(i, cut, SIZE_MAX / 2);
		for (cut = 1; cut < 4; cut++)
			check_vector(i, 0, cut);
	}
}

static void
test_caps(void **state)
{
	static const struct {
		const char *bytes;
		bool ok;
		const char *ev;
	} row[] = {
		{ "data: 0123456789\n\n", true, "message|0123456789|;" },
		{ "data: 01234567890\n\n", false, "" }, /* line of 17 */
		{ "data: a\n\nxxxxxxxxxxxxxxxxx", false, "message|a|;" },
		{ "data: 0123456\ndata: 01234567\n\n", false, "" },
		{ "data: 0123456\ndata: 0123456\n\n", true,
		    "message|0123456\n0123456|;" },
		{ "data: a\n\n:0123456789abcdef\ndata: b\n\n", false,
		    "message|a|;" },
	};
	size_t i, cut, size;

	(void)state;
	for (i = 0; i < hf_countof(row); i++) {
		size = strlen(row[i].bytes);
		for (cut = 0; cut <= size; cut++) {
			struct hf_sse s;
			struct hf_buf got;

			hf_buf_init(&got, HF_BUF_NOCAP);
			hf_buf_puts(&got, "");
			hf_sse_init(&s, 16, record, &got);
			hf_sse_feed(&s, (struct hf_str){ row[i].bytes, cut });
			assert_int_equal(
			    hf_sse_feed(&s,
				(struct hf_str){
				    row[i].bytes + cut, size - cut }),
			    row[i].ok);
			assert_string_equal(got.data, row[i].ev);
			if (!row[i].ok) {
				assert_false(
				    hf_sse_feed(&s, HF_STR("data: z\n\n")));
				assert_string_equal(got.data, row[i].ev);
				assert_int_equal(hf_sse_rest(&s).size, 0);
			}
			hf_sse_free(&s);
			hf_buf_free(&got);
		}
	}
}

static void
test_nul(void **state)
{
	static const char in[] = "data: a\n\ndata: b\0\n\ndata: c\n\n";
	size_t cut, size = sizeof(in) - 1;

	(void)state;
	for (cut = 0; cut <= size; cut++) {
		struct hf_sse s;
		struct hf_buf got;

		hf_buf_init(&got, HF_BUF_NOCAP);
		hf_sse_init(&s, 64, record, &got);
		hf_sse_feed(&s, (struct hf_str){ in, cut });
		assert_false(
		    hf_sse_feed(&s, (struct hf_str){ in + cut, size - cut }) &&
		    cut < size);
		assert_true(s.failed);
		assert_string_equal(got.data, "message|a|;");
		hf_sse_free(&s);
		hf_buf_free(&got);
	}
}

struct stopper {
	struct hf_sse *s;
	unsigned n;
};

static void
stop_at_once(void *arg, const struct hf_sse_event *ev)
{
	struct stopper *st = arg;

	(void)ev;
	st->n++;
	hf_sse_stop(st->s);
}

static void
test_stop(void **state)
{
	struct hf_sse s;
	struct stopper st = { &s, 0 };

	(void)state;
	hf_sse_init(&s, 64, stop_at_once, &st);
	assert_true(hf_sse_feed(&s, HF_STR("data: a\n\ndata: b\n\ndata: c")));
	assert_true(hf_sse_feed(&s, HF_STR("\n\n")));
	assert_int_equal(st.n, 1);
	assert_int_equal(hf_sse_rest(&s).size, 0);
	hf_sse_free(&s);
}

static void
count(void *arg, const struct hf_sse_event *ev)
{
	(void)ev;
	(*(unsigned *)arg)++;
}

/* Many lines that end in CR only, in LF only, and one long line in single
 * bytes: linear each. */
static void
test_linear(void **state)
{
	static const char *const eol[] = { "\n", "\r", "\r\n" };
	int64_t t0 = hf_now_us();
	struct hf_sse s;
	struct hf_buf in;
	unsigned n;
	size_t i, k;

	(void)state;
	for (i = 0; i < hf_countof(eol); i++) {
		n = 0;
		hf_buf_init(&in, HF_BUF_NOCAP);
		for (k = 0; k < 200000; k++)
			hf_buf_printf(&in, "data: a%s%s", eol[i], eol[i]);
		hf_sse_init(&s, 4096, count, &n);
		assert_true(hf_sse_feed(&s, hf_buf_str(&in)));
		assert_int_equal(n, 200000);
		hf_sse_free(&s);
		hf_buf_free(&in);
	}
	n = 0;
	hf_sse_init(&s, 4000000, count, &n);
	assert_true(hf_sse_feed(&s, HF_STR("data: ")));
	for (k = 0; k < 2000000; k++)
		assert_true(hf_sse_feed(&s, HF_STR("x")));
	assert_true(hf_sse_feed(&s, HF_STR("\n\n")));
	assert_int_equal(n, 1);
	hf_sse_free(&s);
	assert_true(hf_now_us() - t0 < 20 * 1000000);
}

static void
test_comments(void **state)
{
	struct hf_sse s;
	unsigned n = 0;

	(void)state;
	hf_sse_init(&s, 64, count, &n);
	assert_true(hf_sse_feed(&s, HF_STR(":\n\n: x\n:y\n\ndata\n\n")));
	assert_int_equal(s.comments, 3);
	assert_int_equal(n, 1);
	hf_sse_free(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_comments),
		cmocka_unit_test(test_linear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
