/*
 * Wilson's interval, quantiles and means.  Pure.
 */
#include <config.h>

#include "bench/stats.h"

#include <math.h>
#include <stdlib.h>

#define Z95 1.959963984540054

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
