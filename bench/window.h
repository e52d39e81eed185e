/*
 * Providers with a context window, told by the end of the model's name:
 * "...-w4096" holds 4096 tokens, and a gateway that is started for a run is
 * told so; "...-u4096" likewise, but the gateway is not told.  What is longer
 * is refused as the real services do, who count the room that is asked for the
 * answer as well.  Pure.
 */
#ifndef HF_BENCH_WINDOW_H
#define HF_BENCH_WINDOW_H

#include <jansson.h>

#include "base/hf.h"
#include "bench/dialect.h"

/* Tokens; 0: as many as come. */
unsigned hf_model_window(struct hf_str model);
/* Is a gateway told? */
bool hf_model_window_is_told(struct hf_str model);

/* Tokens of a text: words in pieces of seven letters, three digits, each other
 * character that is no white space. */
unsigned hf_count_text(struct hf_str text);
/* Of a request's messages: the same, and four for each. */
unsigned hf_count_view(json_t *view);

/* 0, or -1: the request is longer than its model's window, and 'r' says so. */
int hf_window_check(const struct hf_bench_dialect *d, struct hf_str model,
    json_t *body, json_t *view, struct hf_refusal *r);

#endif
