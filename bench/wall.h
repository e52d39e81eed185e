/*
 * Judging how a gateway met the fault wall (suite_wall.c): for each of its
 * sixteen scenarios
 *
 *   pass      the whole answer, once, in time, with no more calls than need be
 *             (of s13: the provider's own refusal, at once)
 *   partial   the whole answer, but late, or by calls that should not be
 *   safe      the client was told that it failed, in time
 *   fail      an answer that is not whole ended as if it were, or another
 *             one, or no end
 *
 * of which the worst of its clients counts.
 */
#ifndef HF_BENCH_WALL_H
#define HF_BENCH_WALL_H

#include <stdio.h>

#include <jansson.h>

#include "base/err.h"
#include "bench/play.h"

#define HF_WALL_SCENARIOS 16

struct hf_suite *hf_suite_wall(uint64_t seed, unsigned size) HF_MUST_CHECK;
/* Is scenario number n (from 0) also met with nobody to fall back on? */
bool hf_wall_is_met_alone(unsigned n);

/* [{"scenario","name","verdict","clients":{"stream":{"verdict","why",
 * "calls","fallbacks","took_s"}}}]; 'log': the providers'.  New. */
int hf_wall_judge(json_t **out, const struct hf_play_conf *c,
    const struct hf_plays *p, const char *log,
    struct hf_error *e) HF_MUST_CHECK;
void hf_wall_text(FILE *f, json_t *wall);
/* How many of its scenarios have this verdict. */
unsigned hf_wall_count(json_t *wall, const char *verdict);

#endif
