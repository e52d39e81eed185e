/*
 * The gate that a judge must pass before it judges anything.
 */
#ifndef HF_BENCH_GATE_H
#define HF_BENCH_GATE_H

#include "bench/option.h"

/* The exit code of the program: 0, it may judge; 1, it agrees too seldom; 2,
 * the set of cases is none; 4, it cannot be asked.  Tells why on stderr.
 * *calibration (new) stays NULL if there is none. */
int hf_gate(const struct hf_judge_options *o, enum hf_progress_mode mode,
    json_t **calibration) HF_MUST_CHECK;

#endif
