/*
 * The judge: from what clients were answered and what providers received,
 * says for each play whether its fact was preserved and whether anything was
 * said to a provider that was not that conversation's own history.
 */
#ifndef HF_BENCH_JUDGE_H
#define HF_BENCH_JUDGE_H

#include <jansson.h>

#include "base/err.h"
#include "base/hf.h"
#include "bench/play.h"

/* Looks for any mark of the suite and for canaries in a text. */
struct hf_bleed;
struct hf_bleed *hf_bleed_new(const struct hf_suite *s);
void hf_bleed_free(struct hf_bleed *b);
/* How many marks and canaries in 'text' are not this conversation's. */
unsigned hf_bleed_count(const struct hf_bleed *b, struct hf_str text,
    const struct hf_conv *own, const char *canary);

struct hf_counts {
	unsigned payloads;	      /* read from the providers' log */
	unsigned unattributed;	      /* of no play of ours */
	unsigned refused;	      /* by a strict provider: our fault */
	unsigned bad_payloads;	      /* not exactly the history */
	unsigned doubled;	      /* of these: with a turn twice */
	unsigned bleed;		      /* foreign facts and canaries, in
				       * payloads and answers */
	unsigned duplicates;	      /* second answers of one provider to
				       * one turn, without a retry */
	unsigned repeated;	      /* with one */
	unsigned broken;	      /* connections of clients, refused or
				       * broken */
	unsigned retries;	      /* requests sent again for that */
	unsigned retried;	      /* turns that needed it */
	unsigned most_retries;	      /* of one turn */
	unsigned kills;		      /* of workers, by us */
	unsigned late;		      /* turns that both providers answered:
				       * the first was given up as too slow */
	unsigned failed_over;	      /* probes that the fallback answered */
	unsigned unasked;	      /* of these: the primary was given up
				       * before the request reached it */
	unsigned not_failed_over;     /* probes that did not */
	unsigned answered_by_primary; /* probes: the run is not valid */
	unsigned errors;	      /* plays that ended early */
};

/* The answers alone; fills 'preserved', 'foreign' and counts. */
void hf_judge_answers(
    const struct hf_play_conf *c, struct hf_plays *p, struct hf_counts *n);
/* The providers' log; 'examples' (an array) gets up to 20 bad payloads. */
int hf_judge_log(const struct hf_play_conf *c, struct hf_plays *p,
    const char *path, struct hf_counts *n, json_t *examples,
    struct hf_error *e) HF_MUST_CHECK;
/* NULL: the payload of turn 'turn' at 'provider' is right; else what is
 * wrong with it.  'view' as in answer.h. */
const char *hf_judge_payload(const struct hf_play_conf *c,
    const struct hf_play *p, unsigned turn, bool fallback, json_t *view);

#endif
