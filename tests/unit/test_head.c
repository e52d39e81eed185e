/*
 * The strict reader of request heads: what it lets through, what not, and
 * that the way the bytes are cut does not matter.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/front/head.h"

#define H "Host: x\r\n"

struct row {
	int status;
	const char *bytes;
	size_t size;
};
#define ROW(status, z)                   \
	{                                \
		status, z, sizeof(z) - 1 \
	}

static const struct row table[] = {
	ROW(0, "GET / HTTP/1.1\r\n" H "\r\n"),
	ROW(0, "GET / HTTP/1.0\r\n\r\n"),
	ROW(0, "GET /a?b=%20c HTTP/1.1\r\nhost:x:80\r\nA:\r\n\r\n"),
	ROW(0, "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\n"),
	ROW(0, "POST / HTTP/1.1\r\nHost: [::1]:80\r\nA: \xc3\xa4\t b \r\n\r\n"),
	/* request line */
	ROW(400, "\r\n"),
	ROW(400, "GET\r\n\r\n"),
	ROW(400, "GET /\r\n" H "\r\n"),
	ROW(400, "GET  / HTTP/1.1\r\n" H "\r\n"),
	ROW(400, "GET / HTTP/1.1 \r\n" H "\r\n"),
	ROW(400, "GET /a b HTTP/1.1\r\n" H "\r\n"),
	ROW(400, "GET / HTTP/1.9\r\n" H "\r\n"),
	ROW(400, "GET / HTTP/2.0\r\n" H "\r\n"),
	ROW(400, "GET / http/1.1\r\n" H "\r\n"),
	ROW(400, "G(T / HTTP/1.1\r\n" H "\r\n"),
	ROW(400, "GET //h/a HTTP/1.1\r\n" H "\r\n"),
	ROW(400, "GET http://h/a HTTP/1.1\r\n" H "\r\n"),
	ROW(400, "OPTIONS * HTTP/1.1\r\n" H "\r\n"),
	ROW(400, "GET a HTTP/1.1\r\n" H "\r\n"),
	ROW(400, "GET /%zz HTTP/1.1\r\n" H "\r\n"),
	ROW(400, "GET /%4 HTTP/1.1\r\n" H "\r\n"),
	ROW(400, "GET /%00 HTTP/1.1\r\n" H "\r\n"),
	ROW(400, "GET /a?%00 HTTP/1.1\r\n" H "\r\n"),
	ROW(400, "GET /a#b HTTP/1.1\r\n" H "\r\n"),
	ROW(400, "GET /\xc3\xa4 HTTP/1.1\r\n" H "\r\n"),
	ROW(400, "GET /a\0b HTTP/1.1\r\n" H "\r\n"),
	/* lines */
	ROW(400, "GET / HTTP/1.1\n" H "\r\n"),
	ROW(400, "GET / HTTP/1.1\r\nHost: x\n\r\n"),
	ROW(400, "GET / HTTP/1.1\r\n" H "\n"),
	ROW(400, "GET / HTTP/1.1\r\n" H "A: b\rc\r\n\r\n"),
	ROW(400, "GET / HTTP/1.1\r\n" H "A: b\0c\r\n\r\n"),
	ROW(400, "GET / HTTP/1.1\r\n" H "A: b\x01\r\n\r\n"),
	ROW(400, "GET / HTTP/1.1\r\n" H "A: b\r\n folded\r\n\r\n"),
	ROW(400, "GET / HTTP/1.1\r\n" H "A: b\r\n\tfolded\r\n\r\n"),
	ROW(400, "GET / HTTP/1.1\r\n" H "no colon\r\n\r\n"),
	ROW(400, "GET / HTTP/1.1\r\n" H ": empty\r\n\r\n"),
	ROW(400, "GET / HTTP/1.1\r\n" H "A : b\r\n\r\n"),
	ROW(400, "GET / HTTP/1.1\r\n" H "A\x80: b\r\n\r\n"),
	/* host */
	ROW(400, "GET / HTTP/1.1\r\n\r\n"),
	ROW(400, "GET / HTTP/1.1\r\n" H H "\r\n"),
	ROW(400, "GET / HTTP/1.0\r\n" H H "\r\n"),
	ROW(400, "GET / HTTP/1.1\r\nHost:\r\n\r\n"),
	ROW(400, "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"),
	ROW(400, "GET / HTTP/1.1\r\nHost: u@h\r\n\r\n"),
	/* length and encoding */
	ROW(400, "POST / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\n"),
	ROW(400, "POST / HTTP/1.1\r\n" H "Content-Length: -5\r\n\r\n"),
	ROW(400, "POST / HTTP/1.1\r\n" H "Content-Length: 5, 5\r\n\r\n"),
	ROW(400, "POST / HTTP/1.1\r\n" H "Content-Length: 0x5\r\n\r\n"),
	ROW(400, "POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n"),
	ROW(400,
	    "POST / HTTP/1.1\r\n" H
	    "Content-Length: 9999999999999999999\r\n\r\n"),
	ROW(400,
	    "POST / HTTP/1.1\r\n" H
	    "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"),
	ROW(400,
	    "POST / HTTP/1.1\r\n" H
	    "Content-Length: 5\r\ncontent-length: 6\r\n\r\n"),
	ROW(400, "HEAD / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\n"),
	ROW(411, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"),
	ROW(411, "POST / HTTP/1.1\r\n" H "transfer-encoding: Chunked\r\n\r\n"),
	ROW(400,
	    "POST / HTTP/1.1\r\n" H
	    "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"),
	ROW(400, "POST / HTTP/1.1\r\n" H "Transfer-Encoding : chunked\r\n\r\n"),
	ROW(400,
	    "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n"),
	ROW(400,
	    "POST / HTTP/1.1\r\n" H "Transfer-Encoding: \x0b"
	    "chunked\r\n\r\n"),
	ROW(400,
	    "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n"),
	ROW(400, "POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n"),
	ROW(400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
};

static void
feed_all(struct hf_http_head *h, const struct row *r, size_t step)
{
	size_t at = 0;

	hf_http_head_init(h);
	while (at < r->size && !h->done) {
		size_t n = r->size - at < step ? r->size - at : step;
		/* A copy of the exact size, so that ASan sees over-reads. */
		char *copy = malloc(n);

		assert_non_null(copy);
		memcpy(copy, r->bytes + at, n);
		at += hf_http_head_feed(h, (struct hf_str){ copy, n });
		free(copy);
	}
}

static void
test_table(void **state)
{
	struct hf_http_head *h = malloc(sizeof(*h));

	(void)state;
	for (size_t i = 0; i < hf_countof(table); i++) {
		for (size_t step = 1; step <= 4096; step *= 4) {
			feed_all(h, &table[i], step);
			if (!h->done || h->status != table[i].status)
				fail_msg("row %zu step %zu: %d (%s)\n%s", i,
				    step, h->status,
				    h->why == NULL ? "" : h->why,
				    table[i].bytes);
			hf_http_head_free(h);
		}
	}
	free(h);
}

static void
test_fields(void **state)
{
	static const struct row r = ROW(0,
	    "POST /a%20b/c?x=1&y HTTP/1.1\r\nHost: h\r\nA:  1 \t\r\nb: 2\r\n"
	    "a: 3\r\nConnection: TE, close\r\nContent-Length: 7\r\n\r\nbody");
	struct hf_http_head *h = malloc(sizeof(*h));

	(void)state;
	hf_http_head_init(h);
	/* The body is left to its reader. */
	assert_int_equal(
	    hf_http_head_feed(h, (struct hf_str){ r.bytes, r.size }),
	    r.size - 4);
	assert_true(h->done && h->status == 0);
	assert_true(hf_str_is(h->method, "POST"));
	assert_true(hf_str_is(h->path, "/a%20b/c"));
	assert_true(hf_str_is(h->query, "x=1&y"));
	assert_true(hf_str_is(hf_http_head_find(h, "a"), "1"));
	assert_true(hf_str_is(hf_http_head_find(h, "B"), "2"));
	assert_int_equal(hf_http_head_count(h, "A"), 2);
	assert_null(hf_http_head_find(h, "c").p);
	assert_int_equal(h->body_size, 7);
	assert_true(h->close);
	assert_int_equal(hf_http_head_feed(h, HF_STR("more")), 0);
	hf_http_head_free(h);
	free(h);
}

static void
test_limits(void **state)
{
	struct hf_http_head *h = malloc(sizeof(*h));

	(void)state;
	hf_http_head_init(h);
	hf_http_head_feed(h, HF_STR("GET / HTTP/1.1\r\n" H));
	for (int i = 0; i < HF_HTTP_HEAD_FIELDS && !h->done; i++)
		hf_http_head_feed(h, HF_STR("A: b\r\n"));
	hf_http_head_feed(h, HF_STR("\r\n"));
	assert_true(h->done && h->status == 400);
	hf_http_head_free(h);
	hf_http_head_init(h);
	for (int i = 0; i < HF_HTTP_HEAD_MAX / 8 + 1 && !h->done; i++)
		hf_http_head_feed(h, HF_STR("AAAAAAAA"));
	assert_true(h->done && h->status == 400);
	hf_http_head_free(h);
	free(h);
}

static void
test_path(void **state)
{
	static const struct {
		const char *in, *out;
	} good[] = {
		{ "/", "/" },
		{ "/a/b", "/a/b" },
		{ "/a%2Fb", "/a/b" },
		{ "/%41%c3%a4", "/A\xc3\xa4" },
		{ "/..a/.b", "/..a/.b" },
		{ "/%252e%252e", "/%2e%2e" },
		{ "/a+b", "/a+b" },
	};
	static const char *const bad[] = { "/..", "/a/../b", "/%2e%2e/x",
		"/a/%2E.", "/a%2f..%2fb", "/%00", "/%", "/%4", "/%4x" };
	char out[64];

	(void)state;
	for (size_t i = 0; i < hf_countof(good); i++) {
		long n = hf_path_decode(hf_str(good[i].in), out);

		assert_int_equal(n, strlen(good[i].out));
		assert_string_equal(out, good[i].out);
	}
	for (size_t i = 0; i < hf_countof(bad); i++)
		assert_int_equal(hf_path_decode(hf_str(bad[i]), out), -1);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_path),
	};

	return cmocka_run_group_tests_name("head", tests, NULL, NULL);
}
