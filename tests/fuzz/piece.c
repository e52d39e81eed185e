/*
 * Cutting inputs into pieces.
 */
#include <config.h>

#include "tests/fuzz/fuzz.h"

char *
fuzz_piece(uint32_t *seed, const char *p, size_t left, size_t *size)
{
	uint32_t r = fuzz_next(seed);
	size_t n = r % 8 < 5 ? 1 + r / 8 % 4 : 1 + r / 8 % 200;
	char *copy;

	*size = n < left ? n : left;
	copy = malloc(*size == 0 ? 1 : *size);
	FUZZ_CHECK(copy != NULL);
	memcpy(copy, p, *size);
	return copy;
}
