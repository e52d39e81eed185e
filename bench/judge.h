/*
 * The judge: from what clients were answered and what providers received,
 * says for each play whether its fact was preserved, whether its streams are
 * whole, and whether anything was said to a provider that was not that
 * conversation's own history.
 */
#ifndef HF_BENCH_JUDGE_H
#define HF_BENCH_JUDGE_H

#include <jansson.h>

#include "base/err.h"
#include "base/hf.h"
#include "bench/play.h"
#include "bench/seam.h"

/* Looks for any mark of the suite and for canaries in a text. */
struct hf_bleed;
struct hf_bleed *hf_bleed_new(const struct hf_suite *s);
void hf_bleed_free(struct hf_bleed *b);
/* How many marks and canaries in 'text' are not this conversation's. */
unsigned hf_bleed_count(const struct hf_bleed *b, struct hf_str text,
    const struct hf_conv *own, const char *canary);

/* What came of a turn on which a provider was to fail. */
#define HF_OUTCOMES(X)                                                         \
	X(WHOLE, "whole")	  /* the text that was to come, to the byte */ \
	X(FLAWED, "flawed")	  /* that text with a bad seam */              \
	X(OTHER, "other")	  /* an answer, but another one */             \
	X(ERROR, "error")	  /* the client was told that it failed */     \
	X(UNREACHED, "unreached") /* an earlier turn had ended in one */

/* How a request that was not the first of its turn went on, as seen from the
 * providers. */
#define HF_JOINS(X)                                                           \
	X(RESTART, "restart")	      /* nothing had been said */             \
	X(PREFILL, "prefill")	      /* behind the assistant's last words */ \
	X(OVERLAP, "overlap")	      /* told to; it said some words again */ \
	X(INSTRUCTION, "instruction") /* told to; it did not */               \
	X(HIDDEN, "hidden")	      /* the whole answer once more */

/* What is to blame for what is wrong with a play; the first that fits.  The
 * names stand in reports and are not changed. */
#define HF_BLAMES(X)                                                           \
	X(NOBODY, "nobody")	  /* all is well */                            \
	X(FOREIGN, "foreign")	  /* words of another conversation */          \
	X(DIALECT, "dialect")	  /* what the real service refuses, or another \
				   * call or result than was made */           \
	X(DUPLICATE, "duplicate") /* a turn, a call or an answer twice */      \
	X(STORE, "store")	  /* a provider was not told what was said */  \
	X(FIT, "fit")		  /* ... of the oldest turns, so cut off */    \
	X(RECONCILE, "reconcile") /* it was told what was not said or heard    \
				   * so, or in another order */                \
	X(STREAM, "stream")	  /* it broke off, ended as whole before its   \
				   * end, or has not one of each mark */       \
	X(ERROR, "error")	  /* there is none but an error */             \
	X(STATELESS, "stateless") /* not told what was said, by design */      \
	X(SEAM, "seam")		  /* right parts, wrongly joined */            \
	X(MODEL, "model")	  /* right history, wrong answer */            \
	X(UNSEEN, "unseen")	  /* a wrong answer to who knows what */

enum hf_outcome {
#define X(id, name) HF_OUTCOME_##id,
	HF_OUTCOMES(X)
#undef X
	    HF_OUTCOME_COUNT
};
enum hf_join {
#define X(id, name) HF_JOIN_##id,
	HF_JOINS(X)
#undef X
	    HF_JOIN_COUNT
};
enum hf_blame {
#define X(id, name) HF_BLAME_##id,
	HF_BLAMES(X)
#undef X
	    HF_BLAME_COUNT
};
const char *hf_outcome_name(enum hf_outcome o);
const char *hf_join_name(enum hf_join j);
const char *hf_blame_name(enum hf_blame b);

/* Of one system. */
struct hf_tally {
	unsigned failures; /* that providers produced */
	unsigned by_kind[HF_FAULT_COUNT];
	unsigned by_phase[HF_PHASE_COUNT]; /* of those within streams */
	unsigned joins[HF_JOIN_COUNT];
	unsigned outcomes[HF_OUTCOME_COUNT];
	unsigned texts;	      /* that were compared, also of other turns */
	struct hf_seam words; /* what is wrong with them */
	unsigned differing;   /* answers to the same request that were others */
	unsigned calls_wrong; /* turns without just the calls they need */
	unsigned streams;     /* answered */
	struct hf_marks marks;
	unsigned bad_marks; /* streams that do not have one of each */
	unsigned blames[HF_BLAME_COUNT];
	unsigned storm_calls, storm_refused; /* of who has a quota */
};

struct hf_counts {
	unsigned payloads;	   /* read from the providers' log */
	unsigned unattributed;	   /* of no play of ours */
	unsigned refused;	   /* by a strict provider: our fault */
	unsigned refused_prefills; /* by targets that are there to do it */
	unsigned refused_windows;  /* likewise, as too long */
	unsigned fitted;	   /* payloads without the oldest turns, which
				    * their target could not hold */
	unsigned bad_payloads;	   /* not exactly the history */
	unsigned doubled;	   /* of these: with a turn twice */
	unsigned ghosts;	   /* ... or with what was never said */
	unsigned reexecuted;	   /* turns that call a tool once more than was
				    * to be; of systems with a memory */
	unsigned bleed;		   /* foreign facts and canaries, in
				    * payloads and answers */
	unsigned duplicates;	   /* second answers of one provider to
				    * one turn, without a retry */
	unsigned repeated;	   /* with one, or while workers were killed */
	unsigned broken;	   /* connections of clients, refused or
				    * broken */
	unsigned retries;	   /* requests sent again for that */
	unsigned retried;	   /* turns that needed it */
	unsigned most_retries;	   /* of one turn */
	unsigned kills;		   /* of workers, or as planned, by us */
	unsigned restarts;	   /* of the gateway, by us */
	unsigned missed_kills;	   /* planned, and did not come about */
	unsigned late;		   /* turns that two providers answered:
				    * the first was given up as too slow */
	unsigned failed_over;	   /* turns on which a provider was to
				    * fail and another answered */
	unsigned unasked;	   /* of these: nobody failed: it was given
				    * up before the request reached it */
	unsigned not_failed_over;  /* such turns that nobody answered */
	unsigned answered_by_primary; /* ... or one that was to fail did: the
				       * run is not valid */
	unsigned errors;	      /* plays that ended early */
	struct hf_tally tally[HF_MAX_SYSTEMS];
};

/* The answers alone; fills what the play found and counts. */
void hf_judge_answers(
    const struct hf_play_conf *c, struct hf_plays *p, struct hf_counts *n);
/* The providers' log; 'examples' (an array) gets up to 20 bad payloads. */
int hf_judge_log(const struct hf_play_conf *c, struct hf_plays *p,
    const char *path, struct hf_counts *n, json_t *examples,
    struct hf_error *e) HF_MUST_CHECK;
/* After both, or, without a log, the first alone ('seen' tells which): who is
 * to blame. */
void hf_judge_blame(const struct hf_play_conf *c, struct hf_plays *p, bool seen,
    struct hf_counts *n);
/* Does the answer to this turn hold what it must, by its words or by a model's
 * verdict, and nothing that it must not? */
bool hf_play_right(const struct hf_play *p, unsigned turn);
/* Is this in the answer to that turn, in its text or in its calls? */
bool hf_play_holds(const struct hf_play *p, unsigned turn, const char *fact);
/* Something is wrong on this turn. */
void hf_play_wrong(struct hf_play *p, unsigned turn);

/* What is wrong with a payload; 'what' NULL: nothing, and NOBODY. */
struct hf_wrong {
	enum hf_blame blame;
	const char *what;
	bool ghost; /* it has a message that was not said or heard so */
};
/*
 * Of the payload of turn 'turn'.  'view' as in answer.h; what asks to go on
 * with an answer that broke off is no part of the history, but must be the
 * beginning of what the client has.  'later': not the route's first target.
 */
struct hf_wrong hf_judge_payload(const struct hf_play_conf *c,
    const struct hf_play *p, unsigned turn, bool later, json_t *view);

/* The first n messages of 'view' are not the first 'want' of the history: in
 * which way. */
struct hf_wrong hf_judge_history(
    const struct hf_play *p, json_t *view, size_t n, size_t want);
/* Of a target that holds 'window' tokens, where the oldest turns are missing:
 * whether just they are, and no more of them than had to be. */
struct hf_wrong hf_judge_fit(
    const struct hf_play *p, unsigned turn, json_t *view, unsigned window);
/* Is message number i of the view number k of the history?  'loose': but for
 * its calls. */
bool hf_is_message(
    json_t *view, size_t i, const struct hf_play *p, size_t k, bool loose);

/* Are just these calls made, with these arguments?  Either may be NULL. */
bool hf_same_calls(json_t *expected, json_t *calls);

#endif
