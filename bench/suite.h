/*
 * A suite: conversations, what a whole history makes a faithful provider
 * answer on each turn, the failures that providers produce and where, and the
 * routes that a gateway needs for it.  Made from a seed, or read from a
 * published set.  Immutable once made; the caller owns it.
 *
 * A new suite is one file with one function that makes it and one row of the
 * table in suite.c.
 */
#ifndef HF_BENCH_SUITE_H
#define HF_BENCH_SUITE_H

#include <jansson.h>

#include "base/err.h"
#include "base/hf.h"
#include "bench/manifest.h"
#include "bench/words.h"

#define HF_CONV_ID 41	/* with its NUL */
#define HF_MAX_TURNS 32 /* of a conversation */
#define HF_MAX_AXES 6
#define HF_MAX_MORE 4
#define HF_MAX_LABEL 32
#define HF_MAX_LISTENERS 4
#define HF_MAX_TARGETS 4

/* A failure of one provider on one turn. */
struct hf_conv_fault {
	const char *provider; /* name of a listener */
	unsigned turn;
	unsigned attempt; /* from 1, at this provider; 0: each */
	struct hf_bench_fault fault;
};

/* How a turn is asked for. */
enum hf_manner {
	HF_ONCE,
	HF_AGAIN,    /* and, when it was answered, again: the same body */
	HF_TOGETHER, /* twice at the same time */
	HF_GROWING,  /* before it with beginnings of its text, which are not
		      * waited for */
	HF_LEAVING   /* the client leaves in the middle of the answer */
};

/* Who of the gateway's processes dies by SIGKILL. */
enum hf_victim { HF_KILL_NOBODY, HF_KILL_WORKER, HF_KILL_MASTER, HF_KILL_TREE };

/* When: the turn was sent; a provider has come to a place of its answer; the
 * client has the answer. */
enum hf_moment { HF_AT_SENT, HF_AT_PROVIDER, HF_AT_ANSWER };

struct hf_kill_plan {
	enum hf_victim victim;
	unsigned turn;
	enum hf_moment moment;
	enum hf_cut_phase phase; /* AT_PROVIDER */
	unsigned at;		 /* ... WORD */
	const char *point;	 /* instead, where the daemon has it; or NULL */
};

/* Turn k: user[k] is sent, an answer comes. */
struct hf_conv {
	char id[HF_CONV_ID];		/* "p001"; letters, digits, _ and - */
	const struct hf_template *tmpl; /* NULL: of a published set */
	const char *fact_type;
	char *fact;
	const char *mark;	 /* in no other conversation's mouth:
				  * where it turns up there is bleed */
	char *more[HF_MAX_MORE]; /* further such marks, owned */
	unsigned n_more;
	char *system; /* said in the system message, behind what all have
		       * there, or NULL */
	char *user[HF_MAX_TURNS]; /* what the caller says, in order */
	bool tool[HF_MAX_TURNS];  /* that is not said: it is the result of
				   * the call that the turn before made */
	const char *assistant[HF_MAX_TURNS]; /* what a faithful provider says
					      * to a whole history, or NULL */
	char *exact[HF_MAX_TURNS];	/* to the byte, where that is judged */
	json_t *calls[HF_MAX_TURNS];	/* ... and calls, as in hf_answer */
	const char *asks[HF_MAX_TURNS]; /* the answer (or a call) must hold
					 * this, or NULL; borrowed */
	const char *denies[HF_MAX_TURNS]; /* ... and must not hold this */
	enum hf_manner manner[HF_MAX_TURNS];
	unsigned start_ms;		 /* after the run's beginning */
	bool plain;			 /* not as a stream, where others are */
	unsigned leave_at[HF_MAX_TURNS]; /* bytes of text, when leaving */
	unsigned reads_back[HF_MAX_TURNS]; /* 1 + the turn whose answer must
					    * be told again, as far as the
					    * client heard it */
	bool keyed;	     /* each turn with an Idempotency-Key */
	bool full;	     /* the client sends all that it knows, */
	bool tells;	     /* ... and says so: X-Holdfast-History: full */
	const char *tools;   /* JSON of what each request declares */
	unsigned n_user;     /* turns */
	unsigned n_messages; /* 2 * n_user - 1 */
	unsigned probe;	     /* the turn whose time is compared */
	enum hf_fault_kind failure;  /* of the first target on it */
	struct hf_conv_fault *fault; /* all of them */
	unsigned n_fault;
	struct hf_kill_plan kill;
	unsigned route;			       /* of the suite */
	char label[HF_MAX_AXES][HF_MAX_LABEL]; /* its place on each axis */
};

/* A server of the faithful providers, which speaks both dialects. */
struct hf_listener_plan {
	const char *name;
	bool fails; /* so that it is left after the short deadlines */
	unsigned rpm, rpm_window_ms; /* that the gateway is told; 0: none */
};

/* All fail over at once onto a provider that admits so many calls in any
 * window. */
struct hf_storm {
	unsigned quota; /* 0: it is none */
	unsigned window_ms;
	unsigned longest; /* per cent of what the quota takes by itself */
};

struct hf_target_plan {
	unsigned listener;
	const char *dialect; /* "openai" */
	char model[56];	     /* its ending tells what it can: answer.h */
	bool prefill;	     /* the gateway is told that it can */
	unsigned window;     /* ... how many tokens it holds; 0: it is not */
	unsigned max_output; /* ... how many an answer has; 0: it is not */
};

/* Targets in order of preference; asked for as SYSTEM, or SYSTEM-NAME. */
struct hf_route_plan {
	char name[HF_CONV_ID + 8]; /* "": the suite's only one */
	struct hf_target_plan target[HF_MAX_TARGETS];
	unsigned n_target;
	const char *continuation; /* "instruction", ...; NULL: default */
};

/*
 * What a faithful provider of a published set goes by: look-ups over the set,
 * because its wording follows no grammar that could be parsed.
 */
struct hf_lore {
	json_t *reply; /* user text -> assistant text */
	json_t *fact;  /* probe -> {text that states it: fact} */
};

struct hf_suite {
	const char *name;
	uint64_t seed;
	struct hf_lore *lore; /* NULL: made from templates */
	json_t *source;	      /* owns texts of a published set */
	struct hf_conv *conv;
	unsigned n_conv;
	bool stream; /* is about streams: clients ask for them */
	bool exact;  /* answers are known to the byte */
	const char *axis[HF_MAX_AXES]; /* what labels are of */
	unsigned n_axis;
	struct hf_listener_plan listener[HF_MAX_LISTENERS];
	unsigned n_listener;
	struct hf_route_plan *route;
	unsigned n_route;
	unsigned concurrency; /* conversations at once; 0: as usual */
	unsigned chunk_ms;    /* pause of providers between deltas */
	unsigned backoff_ms;  /* unit of the gateway's waits; 0: its own */
	unsigned deadline_ms; /* of a turn; 0: half a minute */
	struct hf_storm storm;
	struct hf_fault_row limit; /* of a provider, for all; or NONE */
	unsigned retries;	   /* that clients need, unless it is told, */
	unsigned pause_ms;   /* ... and the longest pause before; 0: usual */
	bool alone;	     /* there is nothing to compare a system with */
	bool kills;	     /* conversations have plans for that, */
	bool kills_optional; /* ... and can be played without */
	unsigned first_token_ms; /* at least so long those that fail are waited
				  * for */
	/* Of the same target by the gateway; 0: its own. */
	unsigned max_retries;
	unsigned unit_ms; /* of the wall: one of its seconds */
};

/* What can be set of a suite beside its size. */
struct hf_knob {
	const char *name;
	unsigned value, lo, hi; /* by itself; at least, at most */
	const char *help;
};
#define HF_MAX_KNOBS 8

struct hf_suite_kind {
	const char *name;
	const char *help;
	/* 'size': conversations, 0: as many as it has by itself; NULL: it has
	 * no such size. */
	struct hf_suite *(*make)(uint64_t seed, unsigned size);
	unsigned runs; /* how often it is played by default */
	bool sized;    /* takes another size than its own */
	/* Where there are knobs, instead of make: their values in order. */
	struct hf_suite *(*make_with)(
	    uint64_t seed, unsigned size, const unsigned *knob);
	const struct hf_knob *knob;
	unsigned n_knob;
};
extern const struct hf_suite_kind hf_suite_kinds[];
extern const unsigned hf_n_suite_kinds;

/* NULL: no suite of that name. */
const struct hf_suite_kind *hf_suite_kind(const char *name);
/* NULL: no suite of that name and size.  Knows also "wall" (wall.h). */
struct hf_suite *hf_suite_make(
    const char *name, uint64_t seed, unsigned size) HF_MUST_CHECK;
/* 'knobs': "NAME=N,..." or NULL; 'lenient': those of other suites are passed
 * over.  NULL: told why. */
struct hf_suite *hf_suite_make_with(const char *name, uint64_t seed,
    unsigned size, const char *knobs, bool lenient,
    struct hf_error *e) HF_MUST_CHECK;
int hf_knobs_parse(const struct hf_suite_kind *k, const char *knobs,
    bool lenient, unsigned value[HF_MAX_KNOBS],
    struct hf_error *e) HF_MUST_CHECK;
void hf_suite_free(struct hf_suite *s);
const struct hf_conv *hf_suite_find(const struct hf_suite *s, struct hf_str id);
/* Index of the turn on which the caller says this, or -1. */
int hf_conv_turn(const struct hf_conv *c, struct hf_str text);
/* Is this a beginning, and not all, of what is said on this turn, which is
 * asked for with growing text?  It may be one of several turns'. */
bool hf_conv_grows(const struct hf_conv *c, unsigned turn, struct hf_str text);
/* Index of the turn that a view (answer.h) asks for, or -1. */
int hf_conv_view_turn(const struct hf_conv *c, json_t *view);
/* A row of the conversation's failures, to be filled further. */
struct hf_conv_fault *hf_conv_add_fault(struct hf_conv *c, const char *provider,
    unsigned turn, enum hf_fault_kind kind);
/* The rows that make providers fail. */
void hf_suite_manifest(const struct hf_suite *s, struct hf_manifest *m);
bool hf_conv_is_to_fail(const struct hf_conv *c, unsigned turn);
/* Index of a listener of this name, or -1. */
int hf_suite_listener(const struct hf_suite *s, struct hf_str name);

#define HF_CANARY_START "CB-"
#define HF_CANARY_SIZE 16
/* "CB-" and 12 characters that belong to one play (system, run,
 * conversation) and to nothing else. */
void hf_suite_canary(const struct hf_suite *s, unsigned system, unsigned run,
    unsigned conv, char out[HF_CANARY_SIZE]);
/* The system message of a play, holding its canary and what the conversation
 * says there; caller frees. */
char *hf_suite_system(
    const struct hf_conv *c, const char *canary) HF_MUST_CHECK;

/* The words of the paper: "timeout", "api_error", "rate_limit". */
const char *hf_failure_name(enum hf_fault_kind k);

struct hf_suite *hf_suite_paper(uint64_t seed, unsigned size) HF_MUST_CHECK;
struct hf_suite *hf_suite_midstream(uint64_t seed, unsigned size) HF_MUST_CHECK;
struct hf_suite *hf_suite_rolling(uint64_t seed, unsigned size) HF_MUST_CHECK;
struct hf_suite *hf_suite_updates(uint64_t seed, unsigned size) HF_MUST_CHECK;
struct hf_suite *hf_suite_carriers(uint64_t seed, unsigned size) HF_MUST_CHECK;
struct hf_suite *hf_suite_oblique(uint64_t seed, unsigned size) HF_MUST_CHECK;
struct hf_suite *hf_suite_crowd(uint64_t seed, unsigned size) HF_MUST_CHECK;
struct hf_suite *hf_suite_retries(uint64_t seed, unsigned size) HF_MUST_CHECK;
struct hf_suite *hf_suite_bargein(uint64_t seed, unsigned size) HF_MUST_CHECK;
struct hf_suite *hf_suite_failback(uint64_t seed, unsigned size) HF_MUST_CHECK;
struct hf_suite *hf_suite_kill(uint64_t seed, unsigned size) HF_MUST_CHECK;
struct hf_suite *hf_suite_ivr(uint64_t seed, unsigned size) HF_MUST_CHECK;
#define HF_STORM_KNOBS 4
extern const struct hf_knob hf_storm_knobs[HF_STORM_KNOBS];
struct hf_suite *hf_suite_storm(
    uint64_t seed, unsigned size, const unsigned *knob) HF_MUST_CHECK;
/* The time that the quota alone takes for n calls. */
unsigned hf_storm_least_ms(const struct hf_storm *s, unsigned n);
struct hf_suite *hf_suite_window(uint64_t seed, unsigned size) HF_MUST_CHECK;

/*
 * A published set: conversations and, for each, the failure of its probe's
 * turn.  What is wrong with a file is told with file, conversation and
 * member.  'seed' fixes canaries only.
 */
int hf_suite_published(struct hf_suite **out, const char *conversations,
    const char *manifest, uint64_t seed, struct hf_error *e) HF_MUST_CHECK;

#endif
