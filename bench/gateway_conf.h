/*
 * The configuration of a gateway that a suite is played through.
 */
#ifndef HF_BENCH_GATEWAY_CONF_H
#define HF_BENCH_GATEWAY_CONF_H

#include <stdio.h>

#include "bench/suite.h"

/* The environment variable that providers' keys are taken from. */
#define HF_BENCH_KEY_ENV "HF_BENCH_KEY"

struct hf_gateway_conf {
	const char *dir;		   /* database and control socket */
	const char *url[HF_MAX_LISTENERS]; /* of the suite's listeners,
					    * without path */
	unsigned workers;
	unsigned port;			  /* 0: the kernel's choice */
	unsigned first_token_ms, idle_ms; /* of those that fail */
};

/*
 * Blocks for each listener and dialect ("primary-openai"), for targets with
 * abilities of their own, and two routes for each of the suite's: "holdfast"
 * and "baseline" (with "-NAME" behind), which differ in one key.
 */
void hf_gateway_conf_write(
    FILE *f, const struct hf_gateway_conf *c, const struct hf_suite *s);

#endif
