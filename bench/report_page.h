/*
 * The parts of a report's page; see report.h for the whole.  All of them read
 * the JSON only, and leave out what it does not have.
 */
#ifndef HF_BENCH_REPORT_PAGE_H
#define HF_BENCH_REPORT_PAGE_H

#include "bench/html.h"

/* The class of a system's colour, "s0" to "s5": what is compared with is always
 * the first, the control the last, the others go by their order. */
const char *hf_page_colour(json_t *systems, const char *name);
/* A line of a chart: the rate of this system, in the grid of class "bars". */
void hf_page_bar(
    struct hf_buf *b, const char *colour, const char *label, json_t *ratio);
/* The scale under such lines. */
void hf_page_bar_axis(struct hf_buf *b);

/* A rate's bar, with its interval. */
void hf_page_track(struct hf_buf *b, json_t *ratio);
/* "750/750  100.0 % [99.5, 100.0]" */
void hf_page_figures(struct hf_buf *b, json_t *ratio);
/* Rates of all systems, pooled and by run. */
void hf_page_cpr(struct hf_buf *b, json_t *report);
/* How long the turn with the failure took, in each system and paired. */
void hf_page_times(struct hf_buf *b, json_t *report);
/* Rates by each axis. */
void hf_page_axes(struct hf_buf *b, json_t *report);
/* Counts of streams, texts and marks. */
void hf_page_streams(struct hf_buf *b, json_t *report);
/* How a storm went over. */
void hf_page_storm(struct hf_buf *b, json_t *report);
/* What must not be, with its bounds; blame; all counts. */
void hf_page_checks(struct hf_buf *b, json_t *report);
/* Right after a failover of right without; how a model judged. */
void hf_page_conditional(struct hf_buf *b, json_t *report);
void hf_page_judge(struct hf_buf *b, json_t *report);
/* Streams that were gone on with, and what went wrong. */
void hf_page_seams(struct hf_buf *b, json_t *report);
void hf_page_misses(struct hf_buf *b, json_t *report);

#endif
