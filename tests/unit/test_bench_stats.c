/*
 * Wilson's interval against published values, quantiles against R's type 7, the
 * rule of three against the exact bound, and the bootstrap against the list of
 * all resamples that there are.
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

/* The exact upper bound solves (1 - p)^n = 0.05; the rule of three is a little
 * above it, by less than a sixteenth from 30 tries on. */
static void
three(void **state)
{
	(void)state;
	NEAR(hf_rule_of_three(0), 1, 1e-12);
	NEAR(hf_rule_of_three(2), 1, 1e-12);
	NEAR(hf_rule_of_three(750), 0.004, 1e-12);
	for (unsigned n = 30; n < 100000; n *= 3) {
		double exact = 1 - pow(0.05, 1.0 / n);

		assert_true(hf_rule_of_three(n) > exact);
		assert_true(hf_rule_of_three(n) < 1.0625 * exact);
	}
}

/* --- bootstrap -------------------------------------------------------------
 */

#define FEW 6
#define ALL 46656 /* FEW to the FEW */

/* Statistic 'which' (0 mean, 1 median, 2 P95) of each resample of 'v', sorted.
 */
static double *
all_resamples(const double v[FEW], int which)
{
	double *out = calloc(ALL, sizeof(*out));

	assert_non_null(out);
	for (unsigned i = 0; i < ALL; i++) {
		double one[FEW];
		struct hf_summary s;

		for (unsigned k = 0, left = i; k < FEW; k++, left /= FEW)
			one[k] = v[left % FEW];
		s = hf_summarize(one, FEW);
		out[i] = which == 0 ? s.mean : which == 1 ? s.p50 : s.p95;
	}
	hf_sort_doubles(out, ALL);
	return out;
}

/* 2000 draws find a quantile of all resamples to within three standard
 * deviations of the share below it. */
static void
check_interval(const double v[FEW], int which, struct hf_interval i)
{
	double *all = all_resamples(v, which);
	double off = 3 * sqrt(0.025 * 0.975 / 2000);

	assert_true(i.lo >= hf_quantile(all, ALL, 0.025 - off));
	assert_true(i.lo <= hf_quantile(all, ALL, 0.025 + off));
	assert_true(i.hi >= hf_quantile(all, ALL, 0.975 - off));
	assert_true(i.hi <= hf_quantile(all, ALL, 0.975 + off));
	assert_true(i.lo < i.hi);
	free(all);
}

static void
bootstrap(void **state)
{
	static const double v[FEW] = { 3.1, -2.4, 8.25, 0.5, 41, 5.75 };
	static const size_t from[FEW + 1] = { 0, 1, 2, 3, 4, 5, 6 };
	struct hf_bootstrap a = hf_bootstrap(v, from, FEW, 42), b;

	(void)state;
	check_interval(v, 0, a.mean);
	check_interval(v, 1, a.median);
	check_interval(v, 2, a.p95);
	b = hf_bootstrap(v, from, FEW, 42);
	assert_memory_equal(&a, &b, sizeof(a));
	b = hf_bootstrap(v, from, FEW, 43);
	assert_memory_not_equal(&a, &b, sizeof(a));
}

/* Five equal runs of a conversation say no more than one; drawn value by value
 * they would seem to. */
static void
clusters(void **state)
{
	static const double v[FEW] = { 3.1, -2.4, 8.25, 0.5, 41, 5.75 };
	double five[5 * FEW];
	size_t one[FEW + 1], whole[FEW + 1], each[5 * FEW + 1];
	struct hf_bootstrap a, b, c;

	(void)state;
	for (unsigned i = 0; i < 5 * FEW; i++)
		five[i] = v[i / 5];
	for (unsigned i = 0; i <= FEW; i++) {
		one[i] = i;
		whole[i] = 5 * (size_t)i;
	}
	for (unsigned i = 0; i <= 5 * FEW; i++)
		each[i] = i;
	a = hf_bootstrap(v, one, FEW, 7);
	b = hf_bootstrap(five, whole, FEW, 7);
	NEAR(a.mean.lo, b.mean.lo, 1e-9);
	NEAR(a.mean.hi, b.mean.hi, 1e-9);
	c = hf_bootstrap(five, each, 5 * FEW, 7);
	assert_true(c.mean.hi - c.mean.lo < 0.6 * (a.mean.hi - a.mean.lo));
}

/* A conversation without a value on either side is a cluster without any. */
static void
empty_clusters(void **state)
{
	static const double v[] = { 4 };
	static const size_t from[] = { 0, 0, 1, 1 };
	struct hf_bootstrap a = hf_bootstrap(v, from, 3, 1);

	(void)state;
	NEAR(a.mean.lo, 4, 1e-12);
	NEAR(a.p95.hi, 4, 1e-12);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wilson),
		cmocka_unit_test(quantiles),
		cmocka_unit_test(three),
		cmocka_unit_test(bootstrap),
		cmocka_unit_test(clusters),
		cmocka_unit_test(empty_clusters),
	};

	return cmocka_run_group_tests_name("bench stats", tests, NULL, NULL);
}
