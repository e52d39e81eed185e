/*
 * Retry hints and limits: each known form, and that anything else is none.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "gateway/provider/provider.h"

/* 1994-11-06T08:49:37Z, the date of the RFC's examples. */
#define RFC_S INT64_C(784111777)

static const struct {
	const char *headers;
	int64_t now_s;
	int64_t want_ms;
} row[] = {
	{ "", 0, -1 },
	{ "Content-Type: text/html\r\n", 0, -1 },
	{ "Retry-After: 2\r\n", 0, 2000 },
	{ "retry-after:2\r\n", 0, 2000 },
	{ "RETRY-AFTER: \t 2 \t\r\n", 0, 2000 },
	{ "Retry-After: 2", 0, 2000 },
	{ "a: b\nRetry-After: 2\nc: d\n", 0, 2000 },
	{ "HTTP/1.1 429 Too Many\r\nx: y\r\nRetry-After: 7\r\n\r\n", 0, 7000 },
	{ "Retry-After: 0\r\n", 0, 0 },
	{ "Retry-After: 1.5\r\n", 0, 1500 },
	{ "Retry-After: 0.0004\r\n", 0, 1 },
	{ "Retry-After: 1.0000000000000000000000000\r\n", 0, 1000 },
	{ "Retry-After: 0.999\r\n", 0, 999 },
	{ "Retry-After: -5\r\n", 0, 0 },
	{ "Retry-After: 86400\r\n", 0, 3600000 },
	{ "Retry-After: 99999999999999999999999999\r\n", 0, 3600000 },
	{ "retry-after-ms: 250\r\n", 0, 250 },
	{ "retry-after-ms: 250.2\r\n", 0, 251 },
	{ "x-ms-retry-after-ms: 300\r\n", 0, 300 },
	{ "retry-after-ms: 99999999999999999999\r\n", 0, 3600000 },
	{ "retry-after-ms: -1\r\n", 0, 0 },
	/* the finer one wins, wherever it stands */
	{ "Retry-After: 9\r\nretry-after-ms: 250\r\n", 0, 250 },
	{ "x-ms-retry-after-ms: 1\r\nretry-after-ms: 250\r\n", 0, 250 },
	{ "retry-after-ms: soon\r\nRetry-After: 3\r\n", 0, 3000 },
	{ "retry-after-ms: soon\r\nx-ms-retry-after-ms: 4\r\n", 0, 4 },
	/* garbage */
	{ "Retry-After:\r\n", 0, -1 },
	{ "Retry-After: soon\r\n", 0, -1 },
	{ "Retry-After: 1e3\r\n", 0, -1 },
	{ "Retry-After: 0x10\r\n", 0, -1 },
	{ "Retry-After: +5\r\n", 0, -1 },
	{ "Retry-After: 5s\r\n", 0, -1 },
	{ "Retry-After: 5.\r\n", 0, -1 },
	{ "Retry-After: .5\r\n", 0, -1 },
	{ "Retry-After: 5 6\r\n", 0, -1 },
	{ "Retry-After: nan\r\n", 0, -1 },
	{ "Retry-After: inf\r\n", 0, -1 },
	{ "Retry-After: -\r\n", 0, -1 },
	{ "X-Retry-After: 5\r\n", 0, -1 },
	{ "Retry-After-Ms-X: 5\r\n", 0, -1 },
	/* dates */
	{ "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", RFC_S - 20, 20000 },
	{ "Retry-After: Sunday, 06-Nov-94 08:49:37 GMT\r\n", RFC_S - 20,
	    20000 },
	{ "Retry-After: Sun Nov  6 08:49:37 1994\r\n", RFC_S - 20, 20000 },
	{ "Retry-After: Wed Nov 16 08:49:37 1994\r\n", RFC_S + 864000 - 5,
	    5000 },
	{ "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", RFC_S, 0 },
	{ "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", RFC_S + 1, 0 },
	{ "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 0, 3600000 },
	{ "Retry-After: Thu, 29 Feb 2024 00:00:00 GMT\r\n", 1709164800 - 3,
	    3000 },
	{ "Retry-After: Sat, 01 Mar 2025 00:00:00 GMT\r\n", 1740787200 - 3,
	    3000 },
	{ "Retry-After: Fri, 31 Dec 1999 23:59:60 GMT\r\n", 946684800 - 3,
	    3000 },
	{ "Retry-After: Thursday, 01-Jan-70 00:01:00 GMT\r\n", 50, 10000 },
	/* two digits more than 50 years ahead are the past */
	{ "Retry-After: Sunday, 06-Nov-94 08:49:37 GMT\r\n", 1700000000, 0 },
	{ "Retry-After: Sunday, 06-Nov-44 08:49:37 GMT\r\n", 1700000000,
	    3600000 },
	{ "Retry-After: Fri, 29 Feb 2023 00:00:00 GMT\r\n", 0, -1 },
	{ "Retry-After: Sun, 06 Nov 1994 08:49:37\r\n", 0, -1 },
	{ "Retry-After: Sun, 06 Nov 1994 08:49:37 UTC\r\n", 0, -1 },
	{ "Retry-After: Sun, 06 Nov 1994 24:49:37 GMT\r\n", 0, -1 },
	{ "Retry-After: Sun, 06 Nov 1994 08:60:37 GMT\r\n", 0, -1 },
	{ "Retry-After: Sun, 6 Nov 1994 08:49:37 GMT\r\n", 0, -1 },
	{ "Retry-After: Sun, 00 Nov 1994 08:49:37 GMT\r\n", 0, -1 },
	{ "Retry-After: Sun, 06 Nix 1994 08:49:37 GMT\r\n", 0, -1 },
	{ "Retry-After: Son, 06 Nov 1994 08:49:37 GMT\r\n", 0, -1 },
	{ "Retry-After: Sun, 06 Nov 0000 08:49:37 GMT\r\n", 0, -1 },
	{ "Retry-After: Sun Nov 6 08:49:37 1994\r\n", 0, -1 },
	{ "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT x\r\n", 0, -1 },
	{ "Retry-After: 1994-11-06T08:49:37Z\r\n", 0, -1 },
};

/* 2024-06-01T00:00:00Z */
#define JUNE_S INT64_C(1717200000)

static const struct {
	const char *headers;
	int64_t want_ms;
} reset[] = {
	{ "", -1 },
	{ "x-ratelimit-reset-requests: 1s\r\n", 1000 },
	{ "X-RateLimit-Reset-Requests: 20ms\r\n", 20 },
	{ "x-ratelimit-reset-tokens: 6m0s\r\n", 360000 },
	{ "x-ratelimit-reset-tokens: 1m2.5s\r\n", 62500 },
	{ "x-ratelimit-reset-tokens: 7.66s\r\n", 7660 },
	{ "x-ratelimit-reset-tokens: 59m59s999ms\r\n", 3599999 },
	{ "x-ratelimit-reset-tokens: 12\r\n", 12000 },
	{ "x-ratelimit-reset-tokens: 0s\r\n", 0 },
	{ "x-ratelimit-reset-tokens: -5s\r\n", 0 },
	/* a day's quota */
	{ "x-ratelimit-reset-requests: 8h24m0s\r\n", -1 },
	{ "x-ratelimit-reset-requests: 1h\r\n", -1 },
	{ "x-ratelimit-reset-requests: 1d\r\n", -1 },
	{ "x-ratelimit-reset-requests: 99999999999999999999s\r\n", -1 },
	{ "x-ratelimit-reset-requests: 8h24m0s\r\n"
	  "x-ratelimit-reset-tokens: 2s\r\n",
	    2000 },
	/* what is spent decides */
	{ "x-ratelimit-remaining-requests: 10\r\n"
	  "x-ratelimit-reset-requests: 1s\r\n"
	  "x-ratelimit-remaining-tokens: 0\r\n"
	  "x-ratelimit-reset-tokens: 9s\r\n",
	    9000 },
	{ "x-ratelimit-remaining-requests: 0\r\n"
	  "x-ratelimit-reset-requests: 1s\r\n"
	  "x-ratelimit-remaining-tokens: 7\r\n"
	  "x-ratelimit-reset-tokens: 9s\r\n",
	    1000 },
	{ "x-ratelimit-reset-requests: 1s\r\n"
	  "x-ratelimit-reset-tokens: 9s\r\n",
	    1000 },
	{ "anthropic-ratelimit-requests-reset: 2024-06-01T00:00:10Z\r\n",
	    10000 },
	{ "anthropic-ratelimit-tokens-reset: 2024-06-01T00:00:10.25Z\r\n",
	    10250 },
	{ "anthropic-ratelimit-tokens-reset: 2024-06-01T02:00:10+02:00\r\n",
	    10000 },
	{ "anthropic-ratelimit-tokens-reset: 2024-05-31T22:30:10-01:30\r\n",
	    10000 },
	{ "anthropic-ratelimit-input-tokens-reset: 2024-05-31T23:59:00Z\r\n",
	    0 },
	{ "anthropic-ratelimit-output-tokens-remaining: 0\r\n"
	  "anthropic-ratelimit-output-tokens-reset: 2024-06-01T00:00:30Z\r\n"
	  "anthropic-ratelimit-requests-remaining: 49\r\n"
	  "anthropic-ratelimit-requests-reset: 2024-06-01T00:00:02Z\r\n",
	    30000 },
	{ "anthropic-ratelimit-requests-reset: 2024-06-02T00:00:00Z\r\n", -1 },
	/* garbage */
	{ "x-ratelimit-reset-requests:\r\n", -1 },
	{ "x-ratelimit-reset-requests: soon\r\n", -1 },
	{ "x-ratelimit-reset-requests: 1x\r\n", -1 },
	{ "x-ratelimit-reset-requests: s\r\n", -1 },
	{ "x-ratelimit-reset-requests: 1s 2s\r\n", -1 },
	{ "x-ratelimit-reset-requests: 1..2s\r\n", -1 },
	{ "x-ratelimit-reset-requests: --1s\r\n", -1 },
	{ "x-ratelimit-reset-requests: -\r\n", -1 },
	{ "anthropic-ratelimit-requests-reset: 10s\r\n", -1 },
	{ "anthropic-ratelimit-requests-reset: 2024-13-01T00:00:10Z\r\n", -1 },
	{ "anthropic-ratelimit-requests-reset: 2024-06-01 00:00:10\r\n", -1 },
	{ "anthropic-ratelimit-requests-reset: 2024-06-01T00:00:10\r\n", -1 },
	{ "anthropic-ratelimit-requests-reset: 2024-06-01T00:00:10.Z\r\n", -1 },
	{ "anthropic-ratelimit-requests-reset: 2024-06-01T00:00:10Zx\r\n", -1 },
};

static void
test_resets(void **state)
{
	(void)state;
	for (size_t i = 0; i < hf_countof(reset); i++) {
		const char *z = reset[i].headers;
		int64_t got = hf_reset_hint(hf_str(z), JUNE_S * 1000000);

		if (got != reset[i].want_ms)
			fail_msg("row %zu: %lld, want %lld: %s", i,
			    (long long)got, (long long)reset[i].want_ms, z);
		for (size_t n = 0; n < strlen(z); n++)
			assert_in_range(
			    hf_reset_hint((struct hf_str){ z, n }, 0) + 1, 0,
			    3600000);
	}
}

#define INFO "{\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\","
#define QUOTA "{\"@type\":\"type.googleapis.com/google.rpc.QuotaFailure\","

static void
test_retry_info(void **state)
{
	static const struct {
		const char *text;
		int64_t want_ms;
	} info[] = {
		{ "{}", -1 },
		{ "{\"details\":7}", -1 },
		{ "{\"details\":[]}", -1 },
		{ "{\"details\":[" INFO "\"retryDelay\":\"34.5s\"}]}", 34500 },
		{ "{\"details\":[" INFO "\"retryDelay\":\"0s\"}]}", 0 },
		{ "{\"details\":[" INFO "\"retryDelay\":\"-3s\"}]}", 0 },
		{ "{\"details\":[" INFO "\"retryDelay\":\"90000s\"}]}",
		    3600000 },
		{ "{\"details\":[" INFO "\"retryDelay\":34}]}", -1 },
		{ "{\"details\":[" INFO "\"retryDelay\":\"\"}]}", -1 },
		{ "{\"details\":[{\"@type\":\"x\",\"retryDelay\":\"1s\"}]}",
		    -1 },
		{ "{\"details\":[" QUOTA "\"violations\":[{\"quotaId\":"
		  "\"RequestsPerMinute\"}]}," INFO "\"retryDelay\":\"2s\"}]}",
		    2000 },
		/* It comes back at midnight, whatever it says. */
		{ "{\"details\":[" INFO "\"retryDelay\":\"2s\"}," QUOTA
		  "\"violations\":[{\"quotaId\":\"RequestsPerDayPerProject\"}"
		  "]}]}",
		    -1 },
	};
	struct hf_json v;

	(void)state;
	for (size_t i = 0; i < hf_countof(info); i++) {
		assert_int_equal(
		    hf_json_check(hf_str(info[i].text), &v, NULL, NULL), 0);
		if (hf_retry_info(v) != info[i].want_ms)
			fail_msg("row %zu: %lld, want %lld", i,
			    (long long)hf_retry_info(v),
			    (long long)info[i].want_ms);
	}
}

static void
test_rows(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < hf_countof(row); i++) {
		int64_t got = hf_retry_hint(
		    hf_str(row[i].headers), row[i].now_s * 1000000);

		if (got != row[i].want_ms)
			fail_msg("row %zu: %lld, want %lld: %s", i,
			    (long long)got, (long long)row[i].want_ms,
			    row[i].headers);
	}
}

/* Cut anywhere, a header block gives a sane answer. */
static void
test_truncated(void **state)
{
	size_t i, n;

	(void)state;
	for (i = 0; i < hf_countof(row); i++) {
		for (n = 0; n <= strlen(row[i].headers); n++) {
			int64_t got = hf_retry_hint(
			    (struct hf_str){ row[i].headers, n }, 0);

			assert_in_range(got + 1, 0, 3600001);
		}
	}
	assert_int_equal(hf_retry_hint(HF_STR_NONE, 0), -1);
}

static const struct {
	const char *headers;
	struct hf_quota_count calls, tokens;
} limits[] = {
	{ "", { -1, -1, -1 }, { -1, -1, -1 } },
	{ "retry-after: 2\r\n", { -1, -1, -1 }, { -1, -1, -1 } },
	{ "x-ratelimit-limit-requests: 60\r\n"
	  "X-RateLimit-Remaining-Requests: 59\r\n"
	  "x-ratelimit-reset-requests: 1m2s\r\n"
	  "x-ratelimit-limit-tokens: 150000\r\n"
	  "x-ratelimit-remaining-tokens: 149984\r\n"
	  "x-ratelimit-reset-tokens: 6ms\r\n",
	    { 60, 59, 62000 }, { 150000, 149984, 6 } },
	{ "anthropic-ratelimit-requests-limit: 50\r\n"
	  "anthropic-ratelimit-requests-remaining: 0\r\n"
	  "anthropic-ratelimit-requests-reset: 1970-01-01T00:00:09Z\r\n"
	  "anthropic-ratelimit-tokens-limit: 40000\r\n",
	    { 50, 0, 9000 }, { 40000, -1, -1 } },
	/* each by itself; what is no number is none */
	{ "x-ratelimit-limit-tokens: 7\n", { -1, -1, -1 }, { 7, -1, -1 } },
	{ "x-ratelimit-limit-requests: many\r\n"
	  "x-ratelimit-remaining-requests: -1\r\n"
	  "x-ratelimit-reset-requests: soon\r\n",
	    { -1, -1, -1 }, { -1, -1, -1 } },
	{ "x-ratelimit-limit-requests: 6.5\r\n", { -1, -1, -1 },
	    { -1, -1, -1 } },
	{ "x-ratelimit-limit-requests: 99999999999999999999\r\n",
	    { 1000000000, -1, -1 }, { -1, -1, -1 } },
	/* not in the middle of a name or of a line */
	{ "a: x-ratelimit-limit-requests: 5\r\n"
	  "y-x-ratelimit-limit-requests: 5\r\n"
	  "x-ratelimit-limit-requests-more: 5\r\n",
	    { -1, -1, -1 }, { -1, -1, -1 } },
};

static bool
is_same(const struct hf_quota_count *a, const struct hf_quota_count *b)
{
	return a->limit == b->limit && a->left == b->left &&
	    a->reset_ms == b->reset_ms;
}

static void
test_limits(void **state)
{
	struct hf_quota_said said;

	(void)state;
	for (size_t i = 0; i < hf_countof(limits); i++) {
		hf_quota_headers(hf_str(limits[i].headers), 0, &said);
		if (!is_same(&said.calls, &limits[i].calls) ||
		    !is_same(&said.tokens, &limits[i].tokens))
			fail_msg("row %zu: calls %lld %lld %lld", i,
			    (long long)said.calls.limit,
			    (long long)said.calls.left,
			    (long long)said.calls.reset_ms);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_resets),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_retry_info),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
