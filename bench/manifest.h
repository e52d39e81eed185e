/*
 * The manifest: which provider fails how, for which conversation, turn and
 * attempt.  It decides failures only; nothing in it reaches an answer.
 */
#ifndef HF_BENCH_MANIFEST_H
#define HF_BENCH_MANIFEST_H

#include <jansson.h>

#include "base/err.h"
#include "base/hf.h"

/* enumerator, name in manifests, HTTP status (0: not a status) */
#define HF_FAULT_KINDS(X)                                                    \
	X(NONE, "none", 0)                                                   \
	X(SILENCE, "silence", 0)	   /* reads, says nothing */         \
	X(HEADERS, "headers", 0)	   /* status line, no body */        \
	X(CLOSE, "close", 0)		   /* FIN before any byte */         \
	X(RESET, "reset", 0)		   /* RST before any byte */         \
	X(SLOW, "slow", 0)		   /* delay_ms, then right */        \
	X(CUT, "cut", 0)		   /* FIN after 'chunks' */          \
	X(CUT_RESET, "cut_reset", 0)	   /* RST after 'chunks' */          \
	X(STALL, "stall", 0)		   /* silence after 'chunks' */      \
	X(STREAM_ERROR, "stream_error", 0) /* error event after them */      \
	X(NO_END, "no_end", 0)		   /* all text, no terminal mark */  \
	X(GARBAGE, "garbage", 0)	   /* 200 with broken JSON */        \
	X(HTTP_400, "http_400", 400)                                         \
	X(HTTP_401, "http_401", 401)                                         \
	X(HTTP_404, "http_404", 404)                                         \
	X(HTTP_429, "http_429", 429)                                         \
	X(HTTP_500, "http_500", 500)                                         \
	X(HTTP_502, "http_502", 502) /* an HTML page, as proxies */          \
	X(HTTP_503, "http_503", 503)                                         \
	X(HTTP_529, "http_529", 529)                                         \
	X(GARBLE, "garble", 0) /* bytes that are no event in a stream */     \
	X(HTTP_403, "http_403", 403)                                         \
	X(HTTP_408, "http_408", 408)                                         \
	X(HTTP_504, "http_504", 504)                                         \
	X(CONTEXT, "context", 400)   /* longer than the model's window */    \
	X(POLICY, "policy", 400)     /* refused for what it says */          \
	X(ERROR_200, "error_200", 0) /* 200 with an error in it */           \
	X(HTML, "html", 0)	     /* 200 with a page */                   \
	X(EMPTY, "empty", 0)	     /* an answer without a word */          \
	X(DRIBBLE, "dribble", 0)     /* right, delay_ms between deltas */    \
	X(BROKEN_EVENT, "broken_event", 0) /* one is, the rest is right */   \
	X(REFUSED, "refused", 0)	   /* the connection, or the next    \
					    * ones for delay_ms */           \
	X(RATE_LIMIT, "rate_limit", 429)   /* those beyond n in window_ms */ \
	X(ALARM, "alarm", 0) /* right; but tells when it is at its place */  \
	X(LATE, "late", 0)   /* headers, delay_ms, then right */

enum hf_fault_kind {
#define HF_FAULT_ENUM(id, name, status) HF_FAULT_##id,
	HF_FAULT_KINDS(HF_FAULT_ENUM)
#undef HF_FAULT_ENUM
	    HF_FAULT_COUNT
};

const char *hf_fault_name(enum hf_fault_kind k);
int hf_fault_status(enum hf_fault_kind k); /* 0: not an HTTP status */
int hf_fault_parse(const char *name, enum hf_fault_kind *out) HF_MUST_CHECK;

/* Does this kind happen within a stream, and so at a place of it? */
bool hf_fault_in_stream(enum hf_fault_kind k);
/* Is the answer right in the end? */
bool hf_fault_is_harmless(enum hf_fault_kind k);

/*
 * Where in its stream a provider fails: after what.  'at' is a place in the
 * text (in the arguments of the first call, for ARGS) of this provider's own
 * answer; a place behind its end is its end.
 * enumerator, name in manifests and reports
 */
#define HF_CUT_PHASES(X)                                                      \
	X(CHUNKS, "chunks")   /* so many deltas */                            \
	X(HEADERS, "headers") /* the status line and headers */               \
	X(ROLE, "role")	      /* what comes before the first delta */         \
	X(FIRST, "first")     /* the first delta */                           \
	X(WORD, "word")	      /* a delta that ends within the word at 'at' */ \
	X(EVENT, "event")     /* half the event of the delta at 'at' */       \
	X(CHAR, "char")	      /* a byte of the first character of several     \
			       * bytes from 'at' on */                        \
	X(ARGS, "args")	      /* a delta of arguments that ends at 'at' */    \
	X(CONTENT, "content") /* all deltas */                                \
	X(FINISH, "finish") /* the finish reason, before the terminal mark */ \
	X(RECEIVED, "received") /* the request, before any byte */            \
	X(DONE, "done")		/* all of it; both only of "alarm" */

enum hf_cut_phase {
#define HF_PHASE_ENUM(id, name) HF_PHASE_##id,
	HF_CUT_PHASES(HF_PHASE_ENUM)
#undef HF_PHASE_ENUM
	    HF_PHASE_COUNT
};

const char *hf_phase_name(enum hf_cut_phase p);
int hf_phase_parse(const char *name, enum hf_cut_phase *out) HF_MUST_CHECK;

/* How a refusal tells when to ask again.
 * enumerator, name in manifests */
#define HF_HINTS(X)                                                        \
	X(DEFAULT, "")		    /* as the dialect usually does */      \
	X(NONE, "none")		    /* not at all */                       \
	X(SECONDS, "seconds")	    /* Retry-After: 2 */                   \
	X(DATE, "date")		    /* Retry-After: Wed, 21 Oct ... */     \
	X(MS, "ms")		    /* retry-after-ms: 1500 */             \
	X(RESET, "reset")	    /* the headers of limits that reset */ \
	X(RETRY_INFO, "retry_info") /* google.rpc.RetryInfo in the body */ \
	X(TEXT, "text")		    /* "Please try again in 1.5s." */

enum hf_hint {
#define HF_HINT_ENUM(id, name) HF_HINT_##id,
	HF_HINTS(HF_HINT_ENUM)
#undef HF_HINT_ENUM
	    HF_HINT_COUNT
};
int hf_hint_parse(const char *name, enum hf_hint *out) HF_MUST_CHECK;

struct hf_bench_fault {
	enum hf_fault_kind kind;
	enum hf_cut_phase phase; /* of kinds within a stream */
	unsigned delay_ms;	 /* SLOW, LATE, DRIBBLE, REFUSED */
	unsigned chunks;	 /* CHUNKS */
	unsigned at;		 /* WORD, EVENT, CHAR, ARGS */
	unsigned retry_after_s;	 /* with an HTTP status; and */
	unsigned retry_after_ms; /* ... both 0: no hint */
	enum hf_hint hint;
	unsigned n, window_ms; /* RATE_LIMIT */
};

struct hf_fault_row {
	char provider[16];     /* "": any */
	char model[64];	       /* that is asked for; "": any */
	char conversation[64]; /* "": any */
	char contains[96];     /* in the last user text; "": any */
	int turn;	       /* user messages before it; -1: any */
	int attempt;	       /* from 1, at this provider, for this
				* conversation and turn; 0: any */
	unsigned for_ms;       /* since it matched first; 0: always */
	struct hf_bench_fault fault;
};

struct hf_manifest {
	struct hf_fault_row *row;
	unsigned n_row;
};

void hf_manifest_init(struct hf_manifest *m);
void hf_manifest_free(struct hf_manifest *m);
void hf_manifest_add(struct hf_manifest *m, const struct hf_fault_row *r);
/*
 * {"faults":[{"provider":"primary","model":"m","conversation":"p001","turn":3,
 *   "attempt":1,"contains":"text","for_ms":0,"fault":"http_429",
 *   "retry_after_s":1,"retry_after_ms":0,"hint":"seconds","delay_ms":0,
 *   "phase":"chunks","chunks":0,"at":0,"n":15,"window_ms":60000}]}; all but
 * "fault" may be left out.  "no_end" without a phase is at "content".
 */
int hf_manifest_parse(
    struct hf_manifest *m, json_t *root, struct hf_error *e) HF_MUST_CHECK;
int hf_manifest_load(
    struct hf_manifest *m, const char *path, struct hf_error *e) HF_MUST_CHECK;

struct hf_fault_query {
	struct hf_str provider, model, conversation, last_user;
	int turn; /* -1: not known */
	int attempt;
};
/* The index of the first row from 'from' on that matches, or n_row. */
unsigned hf_manifest_find(
    const struct hf_manifest *m, const struct hf_fault_query *q, unsigned from);
/* The failure of the first row that matches; kind NONE without one. */
struct hf_bench_fault hf_manifest_match(
    const struct hf_manifest *m, const struct hf_fault_query *q);
/* Does this row refuse whatever comes to its provider? */
bool hf_fault_row_is_dead(const struct hf_fault_row *r);

#endif
