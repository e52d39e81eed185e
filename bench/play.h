/*
 * Playing a suite: every conversation of every run once a system, each turn
 * a request over HTTP, many conversations at once.
 */
#ifndef HF_BENCH_PLAY_H
#define HF_BENCH_PLAY_H

#include "base/buf.h"
#include "base/err.h"
#include "base/hf.h"
#include "bench/progress.h"
#include "bench/reader.h"
#include "bench/suite.h"

#define HF_MAX_SYSTEMS 4

struct hf_endpoint;

/* How it was found out whether an answer holds what it must. */
#define HF_VERDICTS(X)                                                   \
	X(EXACT, "exact")	  /* no model judges */                  \
	X(SUBSTRING, "substring") /* it holds the fact's very words */   \
	X(DENIED, "substring")	  /* ... or those of what it must not */ \
	X(RIGHT, "model")                                                \
	X(WRONG, "model")                                                \
	X(UNDECIDED, "undecided") /* the model gave no verdict: wrong */

enum hf_verdict {
#define X(id, name) HF_VERDICT_##id,
	HF_VERDICTS(X)
#undef X
};
const char *hf_verdict_name(enum hf_verdict v);

struct hf_play_system {
	const char *name;  /* "holdfast" */
	const char *model; /* the route that is asked for, or its beginning */
	bool stateless;	   /* by design, later targets are told the last user
			    * message only */
	bool any_route;	   /* ask for 'model' whatever route is named */
	bool control;	   /* the same conversations, without failures: those
			    * of no conversation of a manifest */
};

struct hf_play;

struct hf_play_conf {
	const struct hf_suite *suite;
	struct hf_play_system system[HF_MAX_SYSTEMS];
	unsigned n_system;
	unsigned n_run, concurrency;
	const char *url;		    /* ".../v1" */
	const struct hf_endpoint *endpoint; /* of a gateway that is not ours,
					     * or NULL */
	const char *api_key;		    /* or NULL */
	bool full_history;		    /* clients send all they know */
	bool stream;
	bool local;		 /* the endpoint is a child of ours */
	unsigned retries;	 /* of a request whose connection broke */
	bool idempotency_key;	 /* one for each turn */
	void (*tick)(void *arg); /* each tick_ms while it plays */
	void *tick_arg;
	unsigned tick_ms;
	/* Around a turn that the gateway is to be killed in; one such turn at
	 * a time, others wait for it.  NULL: nothing is killed. */
	void (*before)(void *arg, const struct hf_play *p);
	void (*after)(void *arg, const struct hf_play *p);
	void (*watch)(void *arg); /* when watch_fd can be read */
	void *kill_arg;		  /* of these three */
	int watch_fd;
	long timeout_ms;
	enum hf_progress_mode progress;
};

/* One conversation of one run with one system. */
struct hf_play {
	unsigned system, run, conv; /* indexes, from 0 */
	const struct hf_conv *c;    /* borrowed from the suite */
	char canary[HF_CANARY_SIZE];
	char session[112];
	char user[80]; /* end user's id: "p001.r1.holdfast" */
	char *system_text;
	char *answer[HF_MAX_TURNS];  /* what was answered to each */
	json_t *calls[HF_MAX_TURNS]; /* ... with which tool calls, or NULL */
	bool left[HF_MAX_TURNS];     /* ... until the client left */
	unsigned differing[HF_MAX_TURNS]; /* answers to the same request that
					   * were others */
	char *partial; /* what came of the answer that failed */
	struct hf_marks marks[HF_MAX_TURNS]; /* of streams */
	unsigned n_answered;
	double turn_ms[HF_MAX_TURNS], first_ms[HF_MAX_TURNS];
	double silence_ms[HF_MAX_TURNS]; /* longest pause within the text */
	unsigned broken[HF_MAX_TURNS];	 /* connections under each */
	unsigned retries[HF_MAX_TURNS];	 /* times it was sent again */
	char error[200];		 /* why it ended early, or "" */
	int status;			 /* ... after which HTTP status, or 0 */
	/* what a model that judges finds */
	enum hf_verdict verdict[HF_MAX_TURNS];
	char *reason[HF_MAX_TURNS]; /* why, in its words, or NULL */
	bool silent;	/* ... of which the client is told nothing */
	char model[80]; /* that is said to have answered last */
	/* what the judge finds */
	bool preserved; /* all probes got their facts */
	unsigned bad_payloads, foreign, refused;
	unsigned wrong_texts, other_texts, wrong_calls, bad_marks;
	unsigned short_texts;	/* that ended as whole before their end */
	unsigned twice;		/* answers of a provider to the same turn */
	int first_wrong;	/* turn on which something is, or -1 */
	unsigned blame, wrong;	/* enum hf_blame; of the first bad payload */
	const char *wrong_what; /* what is wrong with it, or NULL */
};

struct hf_plays {
	struct hf_play *play;
	unsigned n_play;
	double wall_s;
};

/* A conversation's tool call, as it was answered: id of the first; or "". */
const char *hf_play_call_id(const struct hf_play *p, unsigned turn);
/* The request for the next turn; 'said' instead of what the caller says, or
 * NULL. */
void hf_play_body(const struct hf_play_conf *conf, const struct hf_play *p,
    const char *said, struct hf_buf *out);
/* Is a provider to fail on this turn of this play? */
bool hf_play_is_to_fail(
    const struct hf_play_conf *c, const struct hf_play *p, unsigned turn);
/* The index of play (run, conv, system). */
unsigned hf_play_index(
    const struct hf_play_conf *c, unsigned run, unsigned conv, unsigned system);
int hf_play_all(const struct hf_play_conf *c, struct hf_plays *out,
    struct hf_error *e) HF_MUST_CHECK;
void hf_plays_free(struct hf_plays *p);

#endif
