/*
 * Values of options that verbs share.
 */
#ifndef HF_BENCH_OPTION_H
#define HF_BENCH_OPTION_H

#include <getopt.h>

#include "base/hf.h"
#include "bench/model_judge.h"

/* A whole number between these; false: it is not. */
bool hf_option_number(const char *text, unsigned long lo, unsigned long hi,
    unsigned long *out) HF_MUST_CHECK;

/* A model as judge. */
struct hf_judge_options {
	const char *url, *model, *key_env, *calibration;
	unsigned long concurrency, retries, timeout_ms;
};
#define HF_JUDGE_DEFAULTS                                           \
	{                                                           \
		.concurrency = 8, .retries = 3, .timeout_ms = 60000 \
	}

enum {
	HF_OPT_JUDGE = 1024,
	HF_OPT_JUDGE_MODEL,
	HF_OPT_JUDGE_KEY,
	HF_OPT_JUDGE_CONCURRENCY,
	HF_OPT_JUDGE_RETRIES,
	HF_OPT_JUDGE_TIMEOUT,
	HF_OPT_CALIBRATION
};
#define HF_JUDGE_LONGOPTS                                                   \
	{ "judge", required_argument, NULL, HF_OPT_JUDGE },                 \
	    { "judge-model", required_argument, NULL, HF_OPT_JUDGE_MODEL }, \
	    { "judge-key-env", required_argument, NULL, HF_OPT_JUDGE_KEY }, \
	    { "judge-concurrency", required_argument, NULL,                 \
		    HF_OPT_JUDGE_CONCURRENCY },                             \
	    { "judge-retries", required_argument, NULL,                     \
		    HF_OPT_JUDGE_RETRIES },                                 \
	    { "judge-timeout-ms", required_argument, NULL,                  \
		    HF_OPT_JUDGE_TIMEOUT },                                 \
	{                                                                   \
		"calibration", required_argument, NULL, HF_OPT_CALIBRATION  \
	}
/* Their lines of a usage text. */
#define HF_JUDGE_USAGE                                                       \
	"  --judge URL            ask a model behind this endpoint "         \
	"(\".../v1\")\n"                                                     \
	"                         whether answers hold their facts, where\n" \
	"                         their words alone do not say so\n"         \
	"  --judge-model M        the model\n"                               \
	"  --judge-key-env VAR    variable with the judge's key\n"           \
	"  --judge-concurrency N  questions at once, default 8\n"            \
	"  --judge-retries N      of a question, default 3\n"                \
	"  --judge-timeout-ms N   of one call, default 60000\n"              \
	"  --calibration FILE     cases with labels instead of our own\n"

/* Takes option 'c' if it is one of these: 1; 0: it is not; -1: a bad value. */
int hf_judge_option(struct hf_judge_options *o, int c, const char *arg);
/* What one says about another; NULL: all is well. */
const char *hf_judge_options_wrong(const struct hf_judge_options *o);
/* What they ask for; borrows from 'o' and the environment. */
void hf_judge_options_conf(
    const struct hf_judge_options *o, struct hf_judge_conf *c);

#endif
