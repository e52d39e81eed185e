/*
 * Long answers: some sentences of our own words with the fact in one of
 * them.  Made so that a seam in them can be judged: no three words in a row
 * occur twice, there are characters of two to four bytes, a text without
 * spaces between words, and a paragraph's end.  A function of the fact and of
 * 'salt', so that a provider needs the fact from the messages to say it, and
 * the suite knows each word beforehand.  Pure.
 */
#ifndef HF_BENCH_RECITAL_H
#define HF_BENCH_RECITAL_H

#include "base/hf.h"

/* What a probe ends with that is to be answered so. */
#define HF_AT_LENGTH " Please answer at length."
/* Asks for the last such answer once more. */
#define HF_ECHO_PROBE "Please read your last long answer back to me."
/* Each of them begins so. */
#define HF_RECITAL_OPENING "Gladly, here it is in full. "

/* Caller frees. */
char *hf_recital(struct hf_str fact, unsigned salt) HF_MUST_CHECK;
/* A few words, for arguments of calls.  Caller frees. */
char *hf_recital_note(struct hf_str fact) HF_MUST_CHECK;

#endif
