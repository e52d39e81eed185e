/*
 * What a run found, as a table for people and as JSON.
 */
#ifndef HF_BENCH_REPORT_H
#define HF_BENCH_REPORT_H

#include <stdio.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/hf.h"
#include "bench/judge.h"
#include "bench/play.h"

struct hf_report {
	const struct hf_play_conf *conf;
	const struct hf_plays *plays;
	struct hf_counts counts;
	json_t *examples; /* bad payloads; borrowed */
	json_t *judge;	  /* the model that judged, as model_judge.h tells;
			   * borrowed; NULL: no model did */
	bool log_judged;  /* the providers were ours */
	bool verified;	  /* the store was, after kills */
	int verify_exit;  /* of holdfastctl; -1: by a signal */
};

/* As docs/report.schema.json has it, told in docs/report.md; new. */
json_t *hf_report_json(const struct hf_report *r) HF_MUST_CHECK;
/* Made from that JSON alone, of one suite or, but for the table, of many: */
/* the table, of one; */
void hf_report_text(FILE *f, json_t *report);
/* the paper's tables, of one; -1: it is one without messages' counts; */
int hf_report_paper(FILE *f, json_t *report) HF_MUST_CHECK;
/* a page that needs nothing else, for any browser; */
void hf_report_html(struct hf_buf *out, json_t *file);
/* a line for each measure, RFC 4180. */
void hf_report_csv(struct hf_buf *out, json_t *file);
/* {title: report} of what "run" or "compare" wrote: one suite, all of them, or
 * several targets' ("paper: target"), without those that were not played; new.
 */
json_t *hf_report_each(json_t *file) HF_MUST_CHECK;
/* 0, or what of it is no report of ours. */
int hf_report_check(json_t *file, struct hf_error *e) HF_MUST_CHECK;

/* --- parts of it ---------------------------------------------------------- */

/* At most so many calls for an answer, in a gateway that is told of the quota.
 */
#define HF_STORM_CALLS 1.02
/* What came of a storm; new. */
json_t *hf_report_storm(const struct hf_report *r, unsigned system);
void hf_report_storm_text(FILE *f, json_t *systems);
bool hf_storm_passed(json_t *storm);
/* What failed and how streams were gone on with, and how well; new. */
json_t *hf_report_streams(const struct hf_tally *t);
/* {"label": plays}, without 0; new. */
json_t *hf_report_blames(const struct hf_tally *t);
void hf_report_streams_text(FILE *f, json_t *systems);
/* {n, k, p, lo, hi}: k of n with Wilson's interval; new. */
json_t *hf_report_ratio(unsigned k, unsigned n);
/* How often what must not be was seen, of how many, and what that bounds; new.
 */
json_t *hf_report_bounds(const struct hf_report *r);
/* And the next one, and how the model judged. */
void hf_report_bounds_text(FILE *f, json_t *report);
/* Right after a failover, of those that are right without one; null without a
 * control; new. */
json_t *hf_report_conditional(const struct hf_report *r);
/* All plays, a line each, with what was asked and answered; new. */
json_t *hf_report_plays(const struct hf_report *r);
/* Some streams that were gone on with, a line each way; new. */
json_t *hf_report_seams(const struct hf_report *r);
/* Plays with something wrong: who is to blame, and where; new. */
json_t *hf_report_misses(const struct hf_report *r);
void hf_report_misses_text(FILE *f, json_t *report);
/* Adds to the misses and seams what providers received on that turn, from their
 * log. */
int hf_report_transcripts(
    json_t *report, const char *log, struct hf_error *e) HF_MUST_CHECK;

#endif
