/*
 * Retry hints: each known form, and that anything else is none.
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_truncated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
