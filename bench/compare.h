/*
 * Several gateways' reports side by side.
 */
#ifndef HF_BENCH_COMPARE_H
#define HF_BENCH_COMPARE_H

#include <stdio.h>

#include <jansson.h>

/* Tables in Markdown of {"suites":{NAME:{TARGET:report or null}}}. */
void hf_compare_text(FILE *f, json_t *all);

#endif
