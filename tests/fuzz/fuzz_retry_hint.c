/*
 * Retry hints and limits: in range whatever the headers are; other headers
 * around them change nothing; the later it is, the shorter the wait.
 */
#include <config.h>

#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "retry_hint";

static int64_t
hint_around(
    struct hf_str h, const char *before, const char *after, int64_t wall_us)
{
	struct hf_buf b;
	int64_t ms;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_puts(&b, before);
	hf_buf_putstr(&b, h);
	hf_buf_puts(&b, after);
	ms = hf_retry_hint(hf_buf_str(&b), wall_us);
	hf_buf_free(&b);
	return ms;
}

static void
check_count(const struct hf_quota_count *c, const struct hf_quota_count *same)
{
	FUZZ_CHECK(c->limit >= -1 && c->limit <= 1000000000);
	FUZZ_CHECK(c->left >= -1 && c->left <= 1000000000);
	FUZZ_CHECK(c->reset_ms >= -1 && c->reset_ms <= 3600000);
	FUZZ_CHECK(c->limit == same->limit && c->left == same->left &&
	    c->reset_ms == same->reset_ms);
}

static void
check_limits(struct hf_str h, int64_t wall_us)
{
	struct hf_quota_said said, around;
	struct hf_buf b;

	hf_quota_headers(h, wall_us, &said);
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_puts(&b, "x-ratelimit: 1\r\n");
	hf_buf_putstr(&b, h);
	hf_buf_puts(&b, "\r\nx-ratelimit-limit: 2\r\n");
	hf_quota_headers(hf_buf_str(&b), wall_us, &around);
	check_count(&said.calls, &around.calls);
	check_count(&said.tokens, &around.tokens);
	hf_buf_free(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t size)
{
	int64_t wall_us = 0, ms, later;
	struct hf_str h;

	if (size < 4)
		return 0;
	memcpy(&wall_us, p, 4);
	wall_us *= 1000000;
	h = (struct hf_str){ (const char *)p + 4, size - 4 };
	ms = hf_retry_hint(h, wall_us);
	FUZZ_CHECK(ms >= -1 && ms <= 3600000);
	FUZZ_CHECK(hint_around(h, "x: y\r\n", "\r\nz: 1\r\n", wall_us) == ms);
	FUZZ_CHECK(hint_around(h, "\n", "\n", wall_us) == ms);
	later = hf_retry_hint(h, wall_us + 7000000);
	FUZZ_CHECK((later < 0) == (ms < 0) && later <= ms);
	check_limits(h, wall_us);
	return 0;
}
