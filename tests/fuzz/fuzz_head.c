/*
 * The strict reader of request heads: the cut does not matter; what is let
 * through can be said again in the plainest form and is understood the same;
 * decoded paths hold nothing that could climb or cut.
 */
#include <config.h>

#include "gateway/front/head.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "head";

static struct hf_http_head *
read_head(const char *p, size_t size, uint32_t seed, size_t *taken)
{
	struct hf_http_head *h = malloc(sizeof(*h));

	FUZZ_CHECK(h != NULL);
	hf_http_head_init(h);
	*taken = 0;
	while (*taken < size && !h->done) {
		size_t n, got;
		char *piece = fuzz_piece(&seed, p + *taken, size - *taken, &n);

		got = hf_http_head_feed(h, (struct hf_str){ piece, n });
		FUZZ_CHECK(got <= n && (got == n || h->done));
		*taken += got;
		free(piece);
	}
	return h;
}

static void
end(struct hf_http_head *h)
{
	hf_http_head_free(h);
	free(h);
}

static void
check_path(const struct hf_http_head *h)
{
	char *out = malloc(h->path.size + 1);
	long n;

	FUZZ_CHECK(out != NULL && h->path.size > 0 && h->path.p[0] == '/');
	n = hf_path_decode(h->path, out);
	FUZZ_CHECK(n <= (long)h->path.size);
	if (n >= 0) {
		FUZZ_CHECK(strlen(out) == (size_t)n);
		FUZZ_CHECK(strstr(out, "/../") == NULL);
		FUZZ_CHECK(n < 3 || strcmp(out + n - 3, "/..") != 0);
	}
	free(out);
}

static void
check_again(const struct hf_http_head *h)
{
	struct hf_buf b;
	struct hf_http_head *h2;
	size_t taken;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_putstr(&b, h->method);
	hf_buf_putc(&b, ' ');
	hf_buf_putstr(&b, h->path);
	if (h->query.p != NULL) {
		hf_buf_putc(&b, '?');
		hf_buf_putstr(&b, h->query);
	}
	hf_buf_printf(&b, " HTTP/1.%d\r\n", h->minor);
	for (unsigned i = 0; i < h->n_field; i++) {
		hf_buf_putstr(&b, h->field[i].name);
		hf_buf_putc(&b, ':');
		hf_buf_putstr(&b, h->field[i].value);
		hf_buf_puts(&b, "\r\n");
	}
	hf_buf_puts(&b, "\r\n");
	FUZZ_CHECK(hf_buf_ok(&b) && strlen(b.data) == b.size);
	h2 = read_head(b.data, b.size, 7, &taken);
	FUZZ_CHECK(h2->done && h2->status == 0 && taken == b.size);
	FUZZ_CHECK(h2->body_size == h->body_size && h2->close == h->close &&
	    h2->n_field == h->n_field && hf_str_eq(h2->path, h->path) &&
	    hf_str_eq(h2->query, h->query));
	FUZZ_CHECK(hf_http_head_count(h, "transfer-encoding") == 0);
	FUZZ_CHECK(hf_http_head_count(h, "host") == 1 || h->minor == 0);
	end(h2);
	hf_buf_free(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t size)
{
	const char *c = (const char *)p;
	size_t taken, taken2;
	struct hf_http_head *h, *h2;
	uint32_t seed = 1 + (uint32_t)size;

	h = malloc(sizeof(*h));
	FUZZ_CHECK(h != NULL);
	hf_http_head_init(h);
	taken = hf_http_head_feed(h, (struct hf_str){ c, size });
	h2 = read_head(c, size, seed, &taken2);
	FUZZ_CHECK(h->done == h2->done && h->status == h2->status);
	FUZZ_CHECK(h->why == h2->why && h->body_size == h2->body_size);
	/* Only a head that is too large may end within a piece. */
	FUZZ_CHECK(taken == taken2 || taken > HF_HTTP_HEAD_MAX / 2);
	if (h->done && h->status == 0) {
		FUZZ_CHECK(
		    taken >= 4 && memcmp(c + taken - 4, "\r\n\r\n", 4) == 0);
		check_path(h);
		check_again(h);
	}
	end(h);
	end(h2);
	return 0;
}
