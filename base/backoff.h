/*
 * Retry waits: min(cap, 2^a + U(0,1)) seconds, a from 0, after the failover
 * paper's loop; the random source is injected so that tests are exact.
 */
#ifndef HF_BASE_BACKOFF_H
#define HF_BASE_BACKOFF_H

#include "base/hf.h"

/* Uniform in [0, 1); hf_backoff_random() uses libsodium. */
typedef double (*hf_random_fn)(void *arg);
double hf_backoff_random(void *arg);

/*
 * Milliseconds to wait before retry number 'a' (0, 1, ...).  'unit_ms' is the
 * length of "1" in the formula (1000 in production), 'cap_ms' the ceiling of
 * the formula's value, 'floor_ms' the provider's own hint (0: none): the
 * result is never below it; when the hint wins, jitter of up to one unit is
 * added above it so that many callers do not return at the same instant.
 */
int64_t hf_backoff_ms(unsigned a, int64_t unit_ms, int64_t cap_ms,
    int64_t floor_ms, hf_random_fn rnd, void *arg);

#endif
