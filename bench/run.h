/*
 * What "continuitybench run" was asked for.
 */
#ifndef HF_BENCH_RUN_H
#define HF_BENCH_RUN_H

#include "base/hf.h"
#include "bench/endpoint.h"
#include "bench/option.h"

struct hf_run_options {
	const char *suite, *systems, *holdfast, *target, *model;
	const char *conversations, *manifest; /* a published set */
	const char *control_model;	      /* that does not fail, or NULL */
	const char *api_key_env, *json, *keep;
	const char *knobs;  /* "NAME=N,..." */
	bool all;	    /* of them, and only those that a suite has */
	unsigned long runs; /* 0: as the suite says */
	unsigned long size; /* of the suite; 0: its own */
	unsigned long concurrency, seed, workers, first_token_ms, idle_ms;
	unsigned long timeout_ms, retries;
	unsigned long kill_ms; /* 0: nothing is killed */
	struct hf_judge_options judge;
	json_t *calibration; /* of that judge, which has passed; owned */
	enum hf_progress_mode progress;
	double require;
	bool paper; /* its tables, too */
	bool full_history, stream, idempotency_key;
	bool history_given; /* on the command line */
	/* A gateway that is not ours: */
	const char *profile, *dialect;
	const char *header[HF_MAX_HEADERS];
	unsigned n_header;
	const char *listen[HF_MAX_LISTENERS]; /* of our providers */
	unsigned n_listen;
	bool no_user;
	/* The reference proxy: */
	bool proxy;
	const char *bug;
};

/* Reads the command line over the defaults in 'o'; tells what is wrong with
 * it.  -1: go on; else the exit code. */
int hf_run_options(struct hf_run_options *o, int argc, char **argv);

#endif
