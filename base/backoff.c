/*
 * Retry waits.
 */
#include <config.h>

#include "base/backoff.h"

#include <sodium.h>

double
hf_backoff_random(void *arg)
{
	(void)arg;
	return (double)randombytes_random() / 4294967296.0;
}

int64_t
hf_backoff_ms(unsigned a, int64_t unit_ms, int64_t cap_ms, int64_t floor_ms,
    hf_random_fn rnd, void *arg)
{
	double u = rnd(arg);
	double wait;

	wait = a >= 32 ? (double)cap_ms :
			 ((double)((int64_t)1 << a) + u) * (double)unit_ms;
	if (wait > (double)cap_ms)
		wait = (double)cap_ms;
	if (wait < (double)floor_ms)
		wait = (double)floor_ms + u * (double)unit_ms;
	return (int64_t)wait;
}
