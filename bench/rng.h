/*
 * A small seeded generator (splitmix64), so that a suite is the same on every
 * machine and in every version that does not change its wording.
 * Not for secrets.
 */
#ifndef HF_BENCH_RNG_H
#define HF_BENCH_RNG_H

#include "base/hf.h"

struct hf_rng {
	uint64_t state;
};

void hf_rng_init(struct hf_rng *r, uint64_t seed);
uint64_t hf_rng_next(struct hf_rng *r);
/* Uniform in [0, n), n > 0, without modulo bias. */
unsigned hf_rng_below(struct hf_rng *r, unsigned n);
/* Fisher-Yates over n unsigned numbers. */
void hf_rng_shuffle(struct hf_rng *r, unsigned *v, unsigned n);
/* One step of the mixing function: a hash of 'x'. */
uint64_t hf_rng_mix(uint64_t x);

#endif
