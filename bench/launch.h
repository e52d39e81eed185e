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
	int alarm; /* where alarms of providers come; -1: none */
	int guard; /* keeps the gateway's port while it is down; -1: none */
	unsigned port;
	char *program; /* of the gateway */
	char **proxy;  /* or, of the reference proxy, what starts it, ended by
			* NULL */
	char url[80];  /* of the gateway, with /v1 */
};

/* 'keep_dir': use and keep this directory instead of a temporary one. */
int hf_launch_open(struct hf_launch *l, const char *keep_dir,
    struct hf_error *e) HF_MUST_CHECK;
struct hf_provider_options {
	const char *suite; /* NULL: a published set: */
	const char *conversations, *manifest;
	unsigned long seed, size;
	const char *const *listen; /* "NAME=ADDR:PORT", or the kernel's */
	unsigned n_listen;
	const char *knobs; /* of the suite, or NULL */
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
/* Has the daemon named points at which it can be told to die?  The reference
 * proxy has none. */
bool hf_launch_has_points(struct hf_launch *l);
/* Starts it again where it listened before, to die at this point (NULL: none)
 * when it finds the file 'token'; does not wait.  It must be dead, and the
 * suite one that kills. */
int hf_launch_restart(struct hf_launch *l, const char *point, const char *token,
    struct hf_error *e) HF_MUST_CHECK;
/* "holdfastctl sessions verify --all" against the running gateway, its output
 * in DIR/verify.log: its exit status as of waitpid(), or -1: there is no such
 * program, or it has no such verb. */
int hf_launch_verify(struct hf_launch *l);
/* "continuitybench proxy" for the same suite, in the gateway's place, with its
 * journal at DIR/proxy.journal. */
int hf_launch_proxy(struct hf_launch *l, const struct hf_suite *s,
    const struct hf_provider_options *o, unsigned patience_ms, const char *bug,
    struct hf_error *e) HF_MUST_CHECK;

/* --- for whoever starts a gateway of another kind --------------------------
 */

/* Chooses l->port and keeps it for a gateway that will be started again. */
int hf_launch_reserve_port(
    struct hf_launch *l, struct hf_error *e) HF_MUST_CHECK;
/* A child that ends with us; stderr goes to DIR/log, stdout to 'out' (-1:
 * nowhere). */
int hf_launch_child(struct hf_launch *l, const char *program,
    char *const argv[], int out, const char *log, pid_t *pid,
    struct hf_error *e) HF_MUST_CHECK;
/* One that is waited for, with all that it says in DIR/log: 0, or that it
 * failed. */
int hf_launch_and_wait(struct hf_launch *l, char *const argv[], const char *log,
    struct hf_error *e) HF_MUST_CHECK;
/* 'given', or the program of this name beside this one, in ../sbin, or in
 * PATH; caller frees. */
char *hf_launch_program(const char *given, const char *name) HF_MUST_CHECK;
/* Ends the gateway by TERM; its exit status, as from waitpid(). */
int hf_launch_stop_gateway(struct hf_launch *l);
/* Stops what runs; removes the directory unless it is kept. */
void hf_launch_close(struct hf_launch *l);
/* DIR/name; caller frees. */
char *hf_launch_path(const struct hf_launch *l, const char *name);

#endif
