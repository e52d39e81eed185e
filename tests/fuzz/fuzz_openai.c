/*
 * Responses of the openai dialect; the invariants are in decoder_check.c.
 */
#include <config.h>

#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "openai";

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t size)
{
	fuzz_decoder(HF_DIALECT_OPENAI, p, size);
	return 0;
}
