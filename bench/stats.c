/*
 * Wilson's interval, quantiles and means.  Pure.
 */
#include <config.h>

#include "bench/stats.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/rng.h"

#define Z95 1.959963984540054
#define RESAMPLES 2000

struct hf_wilson
hf_wilson(unsigned k, unsigned n)
{
	double nn = n, p, z2 = Z95 * Z95, mid, half;

	if (n == 0)
		return (struct hf_wilson){ 0, 0, 1 };
	p = k / nn;
	mid = (p + z2 / (2 * nn)) / (1 + z2 / nn);
	half =
	    Z95 / (1 + z2 / nn) * sqrt(p * (1 - p) / nn + z2 / (4 * nn * nn));
	return (struct hf_wilson){ p, k == 0 ? 0 : fmax(0, mid - half),
		k == n ? 1 : fmin(1, mid + half) };
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void
hf_sort_doubles(double *v, size_t n)
{
	if (n > 0)
		qsort(v, n, sizeof(*v), compare);
}

double
hf_quantile(const double *sorted, size_t n, double q)
{
	double at = q * (double)(n - 1);
	size_t i = (size_t)at;

	if (i + 1 >= n)
		return sorted[n - 1];
	return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

double
hf_mean(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return n == 0 ? 0 : sum / (double)n;
}

struct hf_summary
hf_summarize(double *v, size_t n)
{
	struct hf_summary s = { .n = n };

	if (n == 0)
		return s;
	hf_sort_doubles(v, n);
	s.mean = hf_mean(v, n);
	s.min = v[0];
	s.p25 = hf_quantile(v, n, 0.25);
	s.p50 = hf_quantile(v, n, 0.50);
	s.p75 = hf_quantile(v, n, 0.75);
	s.p95 = hf_quantile(v, n, 0.95);
	s.p99 = hf_quantile(v, n, 0.99);
	s.max = v[n - 1];
	return s;
}

double
hf_rule_of_three(unsigned n)
{
	return n <= 3 ? 1 : 3.0 / n;
}

/* --- bootstrap ------------------------------------------------------------ */

/* Draws clusters; the number of values that they have. */
static size_t
resample(struct hf_rng *r, const double *v, const size_t *from,
    size_t n_cluster, double *out)
{
	size_t n = 0;

	for (size_t i = 0; i < n_cluster; i++) {
		size_t c = hf_rng_below(r, (unsigned)n_cluster);

		for (size_t k = from[c]; k < from[c + 1]; k++)
			out[n++] = v[k];
	}
	return n;
}

static struct hf_interval
middle(double *v, size_t n)
{
	hf_sort_doubles(v, n);
	return (struct hf_interval){ hf_quantile(v, n, 0.025),
		hf_quantile(v, n, 0.975) };
}

struct hf_bootstrap
hf_bootstrap(
    const double *v, const size_t *from, size_t n_cluster, uint64_t seed)
{
	double *mean = hf_xcalloc(RESAMPLES, sizeof(*mean));
	double *median = hf_xcalloc(RESAMPLES, sizeof(*median));
	double *p95 = hf_xcalloc(RESAMPLES, sizeof(*p95));
	struct hf_bootstrap out;
	size_t most = 0;
	double *drawn;
	struct hf_rng r;

	HF_CHECK(n_cluster > 0 && from[n_cluster] > from[0]);
	for (size_t c = 0; c < n_cluster; c++)
		if (from[c + 1] - from[c] > most)
			most = from[c + 1] - from[c];
	drawn = hf_xcalloc(most * n_cluster, sizeof(*drawn));
	hf_rng_init(&r, seed);
	for (unsigned i = 0; i < RESAMPLES; i++) {
		size_t n;

		do /* clusters may be empty */
			n = resample(&r, v, from, n_cluster, drawn);
		while (n == 0);
		hf_sort_doubles(drawn, n);
		mean[i] = hf_mean(drawn, n);
		median[i] = hf_quantile(drawn, n, 0.5);
		p95[i] = hf_quantile(drawn, n, 0.95);
	}
	out.mean = middle(mean, RESAMPLES);
	out.median = middle(median, RESAMPLES);
	out.p95 = middle(p95, RESAMPLES);
	free(drawn);
	free(mean);
	free(median);
	free(p95);
	return out;
}
