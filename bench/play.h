/*
 * Playing a suite: every conversation of every run once a system, each turn
 * a request over HTTP, many conversations at once.
 */
#ifndef HF_BENCH_PLAY_H
#define HF_BENCH_PLAY_H

#include "base/err.h"
#include "base/hf.h"
#include "bench/suite.h"

#define HF_MAX_SYSTEMS 4

struct hf_play_system {
	const char *name;  /* "holdfast" */
	const char *model; /* the route that is asked for */
	bool stateless;	   /* by design, the fallback is told the
			    * last user message only */
};

struct hf_play_conf {
	const struct hf_suite *suite;
	struct hf_play_system system[HF_MAX_SYSTEMS];
	unsigned n_system;
	unsigned n_run, concurrency;
	const char *url;     /* ".../v1" */
	const char *api_key; /* or NULL */
	bool full_history;   /* clients send all they know */
	bool stream;
	bool local;		 /* the endpoint is a child of ours */
	unsigned retries;	 /* of a request whose connection broke */
	bool idempotency_key;	 /* one for each turn */
	void (*tick)(void *arg); /* each tick_ms while it plays */
	void *tick_arg;
	unsigned tick_ms;
	long timeout_ms;
	bool quiet;
};

/* One conversation of one run with one system. */
struct hf_play {
	unsigned system, run, conv; /* indexes, from 0 */
	const struct hf_conv *c;    /* borrowed from the suite */
	char canary[HF_CANARY_SIZE];
	char session[112];
	char user[80]; /* end user's id: "p001.r1.holdfast" */
	char *system_text;
	char *answer[HF_MAX_TURNS]; /* what was answered to each */
	unsigned n_answered;
	double turn_ms[HF_MAX_TURNS], first_ms[HF_MAX_TURNS];
	unsigned broken[HF_MAX_TURNS];	/* connections under each */
	unsigned retries[HF_MAX_TURNS]; /* times it was sent again */
	char error[200];		/* why it ended early, or "" */
	/* what the judge finds */
	bool preserved; /* the probe got its fact */
	unsigned primary_failed, primary_answered, fallback_answered;
	unsigned bad_payloads, foreign;
};

struct hf_plays {
	struct hf_play *play;
	unsigned n_play;
	double wall_s;
};

/* The index of play (run, conv, system). */
unsigned hf_play_index(
    const struct hf_play_conf *c, unsigned run, unsigned conv, unsigned system);
int hf_play_all(const struct hf_play_conf *c, struct hf_plays *out,
    struct hf_error *e) HF_MUST_CHECK;
void hf_plays_free(struct hf_plays *p);

#endif
