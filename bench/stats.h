/*
 * Statistics of a run.  Pure.
 */
#ifndef HF_BENCH_STATS_H
#define HF_BENCH_STATS_H

#include "base/hf.h"

struct hf_wilson {
	double p, lo, hi;
};

/* Wilson's score interval at 95 % for k of n; n = 0 gives 0, 0, 1. */
struct hf_wilson hf_wilson(unsigned k, unsigned n);

/* Sort in place; then quantiles by linear interpolation between the two
 * nearest ranks (Hyndman and Fan's type 7).  n > 0. */
void hf_sort_doubles(double *v, size_t n);
double hf_quantile(const double *sorted, size_t n, double q);
double hf_mean(const double *v, size_t n);

struct hf_summary {
	size_t n; /* 0: the rest is meaningless */
	double mean, min, p25, p50, p75, p95, p99, max;
};
/* Sorts 'v'. */
struct hf_summary hf_summarize(double *v, size_t n);

/* Upper bound at 95 % of a rate of which nothing was seen in n tries: the rule
 * of three, 3 / n; at most 1. */
double hf_rule_of_three(unsigned n);

struct hf_interval {
	double lo, hi;
};
struct hf_bootstrap {
	struct hf_interval mean, median, p95;
};
/*
 * Percentile bootstrap at 95 % over clusters: n_cluster of them are drawn with
 * replacement, each with all its values, because what repeats one conversation
 * is not independent of it.  Cluster c has the values from[c] .. from[c + 1] -
 * 1 of 'v'.  The same seed gives the same intervals everywhere.  There must be
 * a value.
 */
struct hf_bootstrap hf_bootstrap(
    const double *v, const size_t *from, size_t n_cluster, uint64_t seed);

#endif
