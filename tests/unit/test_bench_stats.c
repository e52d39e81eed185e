/*
 * Wilson's interval against published values, quantiles against R's type 7.
 */
#include <config.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/stats.h"

#define NEAR(a, b, eps) assert_true(fabs((a) - (b)) < (eps))

static void
wilson(void **state)
{
	/* k, n, lower, upper; 81 of 263 is Newcombe's example of 1998 */
	static const struct {
		unsigned k, n;
		double lo, hi;
	} t[] = {
		{ 0, 10, 0.0, 0.277533 },
		{ 1, 10, 0.017876, 0.404150 },
		{ 5, 10, 0.236593, 0.763407 },
		{ 10, 10, 0.722467, 1.0 },
		{ 81, 263, 0.255289, 0.366210 },
		{ 744, 750, 0.982657, 0.996329 },
		{ 750, 750, 0.994904, 1.0 },
		{ 0, 750, 0.0, 0.005096 },
	};

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		struct hf_wilson w = hf_wilson(t[i].k, t[i].n);

		NEAR(w.p, (double)t[i].k / t[i].n, 1e-12);
		NEAR(w.lo, t[i].lo, 2e-6);
		NEAR(w.hi, t[i].hi, 2e-6);
	}
	NEAR(hf_wilson(0, 0).hi, 1, 1e-12);
}

static void
quantiles(void **state)
{
	double v[] = { 7, 1, 3, 10, 5 }, one[] = { 4 };
	struct hf_summary s = hf_summarize(v, 5);

	(void)state;
	NEAR(s.mean, 5.2, 1e-12);
	NEAR(s.min, 1, 1e-12);
	NEAR(s.p25, 3, 1e-12);
	NEAR(s.p50, 5, 1e-12);
	NEAR(s.p75, 7, 1e-12);
	NEAR(s.p95, 9.4, 1e-12);
	NEAR(s.p99, 9.88, 1e-12);
	NEAR(s.max, 10, 1e-12);
	NEAR(hf_quantile(v, 5, 0.1), 1.8, 1e-12);
	NEAR(hf_quantile(v, 5, 0), 1, 1e-12);
	NEAR(hf_quantile(one, 1, 0.99), 4, 1e-12);
	assert_int_equal(hf_summarize(v, 0).n, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wilson),
		cmocka_unit_test(quantiles),
	};

	return cmocka_run_group_tests_name("bench stats", tests, NULL, NULL);
}
