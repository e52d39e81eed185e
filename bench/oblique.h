/*
 * The check behind the suite "oblique".  Pure.
 */
#ifndef HF_BENCH_OBLIQUE_H
#define HF_BENCH_OBLIQUE_H

#include "base/hf.h"

/* Have these texts a word in common that is of some length and not one that
 * every sentence has?  Case aside. */
bool hf_oblique_shares(const char *a, const char *b);

#endif
