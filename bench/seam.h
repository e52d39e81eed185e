/*
 * Two texts of which one should be the other: which words came twice, are
 * missing, or stuck together.  Words are what stands between white space.
 * Pure.
 */
#ifndef HF_BENCH_SEAM_H
#define HF_BENCH_SEAM_H

#include "base/hf.h"

struct hf_seam {
	unsigned duplicated; /* words of the text, once too often */
	unsigned missing;    /* words of the text */
	unsigned glued;	     /* places where the white space is missing, */
	unsigned split;	     /* ... or where there is some within a word */
	unsigned added;	     /* words that the text does not have */
	unsigned spaces;     /* 1: only the white space is another */
	bool other;	     /* less than half of it is there */
};

/* True: the same, to the byte; then all of 's' is 0. */
bool hf_seam_compare(struct hf_seam *s, const char *expected, const char *got);
/* Adds up counts. */
void hf_seam_add(struct hf_seam *sum, const struct hf_seam *s);

#endif
