/*
 * A model as judge: any endpoint that takes OpenAI's chat completions is asked
 * for a verdict on each of a list of questions, so many at once, each again for
 * a while when nothing useful came.
 */
#ifndef HF_BENCH_MODEL_JUDGE_H
#define HF_BENCH_MODEL_JUDGE_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"
#include "base/hf.h"
#include "bench/play.h"
#include "bench/progress.h"
#include "bench/verdict.h"

struct hf_judge_conf {
	const char *url; /* ".../v1" */
	const char *model;
	const char *api_key; /* or NULL */
	unsigned concurrency;
	unsigned retries; /* of one question */
	long timeout_ms;  /* of one call */
};

struct hf_judgement {
	struct hf_question q; /* borrowed */
	/* what came of it */
	enum hf_verdict verdict; /* RIGHT, WRONG or UNDECIDED */
	char *reason;		 /* owned, or NULL */
	char error[160];	 /* why it is undecided */
};

struct hf_judge_calls {
	unsigned calls, retries;
	enum hf_verdict_form form; /* that the endpoint took */
};

/* Asks them all.  Fails only if nothing could be asked at all; a question that
 * got no verdict is UNDECIDED. */
int hf_judge_ask(const struct hf_judge_conf *c, struct hf_judgement *j,
    unsigned n, struct hf_judge_calls *calls, struct hf_progress *progress,
    struct hf_error *e) HF_MUST_CHECK;
void hf_judgements_free(struct hf_judgement *j, unsigned n);

/*
 * Judges the answers of these plays that must hold something.  Those that hold
 * it to the letter, or what they must not, need no model; the same question is
 * asked once.  Fills 'verdict' and 'reason' of the plays.  *out (new):
 * {"url","model","form","substring","denied","asked","right","wrong",
 * "undecided","calls","retries"}, also when it fails.
 */
int hf_judge_plays(const struct hf_judge_conf *c, struct hf_plays *plays,
    struct hf_progress *progress, json_t **out,
    struct hf_error *e) HF_MUST_CHECK;

/* --- calibration ---------------------------------------------------------- */

/*
 * A judge is worth nothing until it agrees with people.  The set: [{"id",
 * "kind", "expected_fact", "probe", "answer", "preserved"}], labelled by hand;
 * 'path' NULL: our own, bench/calibration.json.  New.
 */
int hf_calibration_load(
    json_t **out, const char *path, struct hf_error *e) HF_MUST_CHECK;
/* Asks for all of them; *out (new): {"n","k","needed","passed","p","lo","hi",
 * "cases"}.  No short cuts: each case goes to the model. */
int hf_calibrate(const struct hf_judge_conf *c, json_t *cases,
    struct hf_progress *progress, json_t **out,
    struct hf_error *e) HF_MUST_CHECK;
/* A table of what it says. */
void hf_calibration_text(FILE *f, json_t *calibration);

#endif
