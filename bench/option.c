/*
 * Reading the values of options that verbs share.
 */
#include <config.h>

#include "bench/option.h"

#include <errno.h>
#include <stdlib.h>

bool
hf_option_number(
    const char *text, unsigned long lo, unsigned long hi, unsigned long *out)
{
	char *end;

	errno = 0;
	*out = strtoul(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && text[0] != '-' &&
	    *out >= lo && *out <= hi;
}

int
hf_judge_option(struct hf_judge_options *o, int c, const char *arg)
{
	switch (c) {
	case HF_OPT_JUDGE:
		o->url = arg;
		return 1;
	case HF_OPT_JUDGE_MODEL:
		o->model = arg;
		return 1;
	case HF_OPT_JUDGE_KEY:
		o->key_env = arg;
		return 1;
	case HF_OPT_CALIBRATION:
		o->calibration = arg;
		return 1;
	case HF_OPT_JUDGE_CONCURRENCY:
		return hf_option_number(arg, 1, 1000, &o->concurrency) ? 1 : -1;
	case HF_OPT_JUDGE_RETRIES:
		return hf_option_number(arg, 0, 100, &o->retries) ? 1 : -1;
	case HF_OPT_JUDGE_TIMEOUT:
		return hf_option_number(arg, 1, 3600000, &o->timeout_ms) ? 1 :
									   -1;
	default:
		return 0;
	}
}

const char *
hf_judge_options_wrong(const struct hf_judge_options *o)
{
	if ((o->url == NULL) != (o->model == NULL))
		return "--judge and --judge-model go together";
	if (o->url == NULL && (o->key_env != NULL || o->calibration != NULL))
		return "there is no --judge";
	if (o->key_env != NULL && getenv(o->key_env) == NULL)
		return "the variable of --judge-key-env is not set";
	return NULL;
}

void
hf_judge_options_conf(const struct hf_judge_options *o, struct hf_judge_conf *c)
{
	*c = (struct hf_judge_conf){ .url = o->url,
		.model = o->model,
		.api_key = o->key_env == NULL ? NULL : getenv(o->key_env),
		.concurrency = (unsigned)o->concurrency,
		.retries = (unsigned)o->retries,
		.timeout_ms = (long)o->timeout_ms };
}
