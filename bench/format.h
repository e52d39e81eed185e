/*
 * A formatted text of its own.
 */
#ifndef HF_BENCH_FORMAT_H
#define HF_BENCH_FORMAT_H

#include "base/hf.h"

/* Caller frees. */
char *hf_format(const char *fmt, ...) HF_PRINTF(1, 2) HF_MUST_CHECK;

#endif
