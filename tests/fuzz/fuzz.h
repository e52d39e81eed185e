/*
 * What a fuzz target is: a name (of its corpus folder) and the entry point
 * that libFuzzer calls.  A broken invariant aborts.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/hf.h"
#include "gateway/provider/provider.h"

#define FUZZ_CHECK(e)                                                    \
	do {                                                             \
		if (!(e)) {                                              \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, \
			    __LINE__, #e);                               \
			abort();                                         \
		}                                                        \
	} while (0)

extern const char fuzz_name[];
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t size);

/* A small generator for sizes of pieces; the same seed, the same pieces. */
static inline uint32_t
fuzz_next(uint32_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 17;
	*s ^= *s << 5;
	return *s;
}

/* The next piece of 'left' bytes: mostly small, copied to the heap so that
 * the sanitizer sees every bound; to be freed. */
char *fuzz_piece(uint32_t *seed, const char *p, size_t left, size_t *size);

/* One dialect's decoder on one response (decoder_check.c). */
void fuzz_decoder(enum hf_conf_dialect d, const uint8_t *p, size_t size);

#endif
