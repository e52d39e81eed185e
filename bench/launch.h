/*
 * The programs that a run needs: the faithful providers and the gateway, as
 * children in a private directory.  Children end with us, whatever happens.
 */
#ifndef HF_BENCH_LAUNCH_H
#define HF_BENCH_LAUNCH_H

#include <sys/types.h>

#include "base/err.h"
#include "base/hf.h"
#include "bench/suite.h"

struct hf_launch {
	char *dir; /* made by hf_launch_open() */
	bool keep;
	pid_t providers, gateway;	     /* 0: not started */
	char listener[HF_MAX_LISTENERS][64]; /* base URLs without path, in the
					      * suite's order */
	char url[80];			     /* of the gateway, with /v1 */
};

/* 'keep_dir': use and keep this directory instead of a temporary one. */
int hf_launch_open(struct hf_launch *l, const char *keep_dir,
    struct hf_error *e) HF_MUST_CHECK;
struct hf_provider_options {
	const char *suite; /* NULL: a published set: */
	const char *conversations, *manifest;
	unsigned long seed, size;
};
/* "continuitybench providers" with a log at DIR/payloads.jsonl.  's': the
 * suite that these options name. */
int hf_launch_providers(struct hf_launch *l, const struct hf_suite *s,
    const struct hf_provider_options *o, struct hf_error *e) HF_MUST_CHECK;

struct hf_gateway_options {
	const char *program; /* NULL: beside this program */
	unsigned workers;
	unsigned first_token_ms, idle_ms;
};
/* Writes DIR/holdfast.conf with the routes of both systems, starts the daemon
 * and waits until it is ready. */
int hf_launch_gateway(struct hf_launch *l, const struct hf_suite *s,
    const struct hf_gateway_options *o, struct hf_error *e) HF_MUST_CHECK;
/* "holdfastctl sessions verify --all" against the running gateway, its output
 * in DIR/verify.log: its exit status as of waitpid(), or -1: there is no such
 * program, or it has no such verb. */
int hf_launch_verify(struct hf_launch *l);
/* Ends the gateway by TERM; its exit status, as from waitpid(). */
int hf_launch_stop_gateway(struct hf_launch *l);
/* Stops what runs; removes the directory unless it is kept. */
void hf_launch_close(struct hf_launch *l);
/* DIR/name; caller frees. */
char *hf_launch_path(const struct hf_launch *l, const char *name);

#endif
