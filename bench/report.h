/*
 * What a run found, as a table for people and as JSON.
 */
#ifndef HF_BENCH_REPORT_H
#define HF_BENCH_REPORT_H

#include <stdio.h>

#include <jansson.h>

#include "base/hf.h"
#include "bench/judge.h"
#include "bench/play.h"

struct hf_report {
	const struct hf_play_conf *conf;
	const struct hf_plays *plays;
	struct hf_counts counts;
	json_t *examples; /* bad payloads; borrowed */
	bool log_judged;  /* the providers were ours */
	bool verified;	  /* the store was, after kills */
	int verify_exit;  /* of holdfastctl; -1: by a signal */
};

/* {schema:1, run, suite, systems, clo_ms, counts, misses, ...}; new. */
json_t *hf_report_json(const struct hf_report *r) HF_MUST_CHECK;
/* The table, from that JSON alone. */
void hf_report_text(FILE *f, json_t *report);

/* The words of the paper: "timeout", "api_error", "rate_limit". */
const char *hf_failure_name(enum hf_fault_kind k);

#endif
