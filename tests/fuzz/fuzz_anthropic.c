/*
 * Responses of the anthropic dialect; the invariants are in decoder_check.c.
 */
#include <config.h>

#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "anthropic";

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t size)
{
	fuzz_decoder(HF_DIALECT_ANTHROPIC, p, size);
	return 0;
}
