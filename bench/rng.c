/*
 * splitmix64 and what the suites draw from it.  Pure.
 */
#include <config.h>

#include "bench/rng.h"

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

void
hf_rng_init(struct hf_rng *r, uint64_t seed)
{
	r->state = seed;
}

uint64_t
hf_rng_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t
hf_rng_next(struct hf_rng *r)
{
	r->state += GOLDEN;
	return hf_rng_mix(r->state);
}

unsigned
hf_rng_below(struct hf_rng *r, unsigned n)
{
	uint64_t limit = UINT64_MAX - UINT64_MAX % n;
	uint64_t x;

	do
		x = hf_rng_next(r);
	while (x >= limit);
	return (unsigned)(x % n);
}

void
hf_rng_shuffle(struct hf_rng *r, unsigned *v, unsigned n)
{
	for (unsigned i = n; i > 1; i--) {
		unsigned j = hf_rng_below(r, i);
		unsigned t = v[i - 1];

		v[i - 1] = v[j];
		v[j] = t;
	}
}
