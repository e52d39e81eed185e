/*
 * "continuitybench calibrate": is this model fit to judge?
 */
#include <config.h>

#include "bench/cmd.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/gate.h"
#include "bench/option.h"

static const char usage[] =
    "usage: continuitybench calibrate --judge URL --judge-model M [options]\n"
    "Ask a model to judge 20 answers that people have labelled, and say how\n"
    "often it agrees.  Exits 1 below 90 %: such a judge is refused, here and\n"
    "before any run.\n"
    "\n" HF_JUDGE_USAGE "  --json FILE            write what it said as JSON\n"
    "  --progress, --quiet    progress also without a terminal; never\n";

enum { OPT_JSON = 256, OPT_PROGRESS, OPT_QUIET, OPT_HELP };

static const struct option longopts[] = { HF_JUDGE_LONGOPTS,
	{ "json", required_argument, NULL, OPT_JSON },
	{ "progress", no_argument, NULL, OPT_PROGRESS },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	{ "help", no_argument, NULL, OPT_HELP }, { 0 } };

struct options {
	struct hf_judge_options judge;
	const char *json;
	enum hf_progress_mode progress;
};

/* -1: go on; else the exit code. */
static int
parse(struct options *o, int argc, char **argv)
{
	const char *wrong = NULL;
	int c, taken = 1;

	while (taken == 1 &&
	    (c = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		taken = hf_judge_option(&o->judge, c, optarg);
		if (taken != 0)
			continue;
		taken = 1;
		if (c == OPT_HELP) {
			fputs(usage, stdout);
			return HF_EXIT_OK;
		}
		if (c == OPT_JSON)
			o->json = optarg;
		else if (c == OPT_PROGRESS)
			o->progress = HF_PROGRESS_ON;
		else if (c == OPT_QUIET)
			o->progress = HF_PROGRESS_OFF;
		else
			taken = 0;
	}
	if (taken == 1 && optind == argc)
		wrong = o->judge.url == NULL ?
		    "there is no --judge" :
		    hf_judge_options_wrong(&o->judge);
	if (taken == 1 && optind == argc && wrong == NULL)
		return -1;
	if (wrong != NULL)
		fprintf(stderr, "continuitybench: %s\n", wrong);
	fputs(usage, stderr);
	return HF_EXIT_USAGE;
}

int
hf_cmd_calibrate(int argc, char **argv)
{
	struct options o = { .judge = HF_JUDGE_DEFAULTS };
	json_t *calibration = NULL;
	int rc = parse(&o, argc, argv);

	if (rc >= 0)
		return rc;
	rc = hf_gate(&o.judge, o.progress, &calibration);
	if (calibration != NULL)
		hf_calibration_text(stdout, calibration);
	if (calibration != NULL && o.json != NULL &&
	    json_dump_file(calibration, o.json, JSON_INDENT(1)) != 0) {
		fprintf(stderr, "continuitybench: cannot write %s\n", o.json);
		rc = HF_EXIT_FAILED;
	}
	json_decref(calibration);
	return rc;
}
