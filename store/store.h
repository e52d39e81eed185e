/*
 * The store as the gateway sees it: sessions, turns, items, parts, attempts,
 * leases and API keys on disk.  It knows no HTTP and no JSON (bodies are
 * opaque bytes), and this header no database library.
 *
 * Threads.  One struct hf_store per worker.  Functions marked "read" run at
 * once on the loop thread's read-only connection and are short.  Functions
 * marked "write" enqueue a job for the store thread and return; all their
 * input is copied before they return.  The completion runs later on the loop
 * thread, inside hf_store_dispatch(), exactly once, in order of submission
 * for one turn.  A write's completion means that its commit is durable.
 *
 * Group commit: the store thread takes the writer mutex, then drains its
 * queue (up to 64 jobs), runs them in one transaction, commits, completes.  A
 * job that fails is left out of it; a failed commit fails all.
 *
 * The dead.  A turn whose owner died is settled (interrupted, or out of the
 * queue) by whoever comes across it, unless the hold says that its connection
 * lives: then it waits for hf_store_adopt().
 *
 * Fencing.  Every write of a turn names its fence; if the session's lease is
 * no longer {this process, this fence, this turn}, nothing changes and the
 * completion gets HF_EFENCED.
 */
#ifndef HF_STORE_STORE_H
#define HF_STORE_STORE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hf.h"
#include "base/hold.h"
#include "base/id.h"
#include "base/shm.h"

#define HF_DIGEST_SIZE 32

struct hf_store;

struct hf_store_conf {
	const char *path;	    /* database file */
	const char *key_file;	    /* master key file, or NULL */
	const char *key_credential; /* path of a credential, or NULL */
	bool sync_full;		    /* synchronous=FULL, else NORMAL */
	int lock_timeout_ms;	    /* writer mutex; 0: 5000 */
	unsigned queue_limit;	    /* turns waiting per session; 0: 32 */
	struct hf_shm *shm;	    /* borrowed; outlives the store */
	const struct hf_hold *hold; /* borrowed, likewise; NULL: nobody's
				     * turns are taken over */
};

/* Opens both connections and starts the store thread.  The database must
 * have been migrated (keep.h).  HF_ETOONEW, HF_ECORRUPT, HF_EPERM... */
int hf_store_open(struct hf_store **out, const struct hf_store_conf *c,
    struct hf_error *e) HF_MUST_CHECK;
/* Finishes queued jobs (their completions still run), joins the thread. */
void hf_store_close(struct hf_store *st);
/* Makes the JSON body and the normal form of an assistant message of 'text'
 * and 'refusal' (mostly empty), because the store knows no JSON; either may be
 * NULL: not wanted now.  Runs on the store thread (or in the keeper); 0 or
 * HF_E*. */
typedef int (*hf_make_body_fn)(void *arg, struct hf_str text,
    struct hf_str refusal, struct hf_buf *body, struct hf_buf *norm);
/* Once, before the first hf_store_begin(): needed where T1 settles the open
 * turn of a dead owner, whose stored text becomes its answer, and for the text
 * of a long answer. */
void hf_store_set_make_body(struct hf_store *st, hf_make_body_fn fn, void *arg);
/* Readable (poll it) when completions wait; then call dispatch. */
int hf_store_event_fd(const struct hf_store *st);
void hf_store_dispatch(struct hf_store *st);
/* Writes are kept back so that they share a commit: 'later' is called when
 * one begins to wait, and hf_store_submit() must follow once what is ready
 * now has been served, at the latest before the loop thread sleeps.  NULL, as
 * at first: each goes at once. */
void hf_store_set_later(
    struct hf_store *st, void (*later)(void *arg), void *arg);
void hf_store_submit(struct hf_store *st);
/* Jobs submitted and not yet completed. */
unsigned hf_store_pending(const struct hf_store *st);

/* --- items ---------------------------------------------------------- */

enum hf_item_kind {
	HF_ITEM_MESSAGE = 1,
	HF_ITEM_TOOL_CALL = 2,
	HF_ITEM_TOOL_RESULT = 3
};

enum hf_role {
	HF_ROLE_SYSTEM = 1,
	HF_ROLE_DEVELOPER = 2,
	HF_ROLE_USER = 3,
	HF_ROLE_ASSISTANT = 4, /* messages and tool calls */
	HF_ROLE_TOOL = 5       /* tool results */
};

enum hf_origin {
	HF_ORIGIN_CLIENT = 1, /* sent by the client */
	HF_ORIGIN_MODEL = 2,  /* made by a provider through us */
	HF_ORIGIN_GATEWAY = 3 /* made by us (last resort) */
};

struct hf_item {
	int64_t row;	  /* 0: not stored yet */
	int64_t turn_row; /* set on reading */
	enum hf_item_kind kind;
	enum hf_role role;
	enum hf_origin origin;
	bool lead;			/* a leading system/developer message;
					 * only the newest turn's group of them
					 * is in force, and none is part of
					 * the view chain */
	int64_t anchor_row;		/* not 0: inserted before that item */
	uint8_t digest[HF_DIGEST_SIZE]; /* of the normal form */
	uint8_t heard_digest[HF_DIGEST_SIZE]; /* if has_heard */
	bool has_heard;	    /* 'heard' replaces 'body' in history;
			     * empty, and heard_digest all zero: it
			     * was not heard at all, and is no part
			     * of the effective view */
	struct hf_str body; /* JSON, opaque to the store */
	struct hf_str heard;
	struct hf_str sidecar;	  /* what only 'sidecar_of' can use */
	struct hf_str sidecar_of; /* provider name */
};

/* Digest of an item's normal form, keyed per session so that short contents
 * cannot be guessed or matched between sessions.  read. */
struct hf_session_key {
	uint8_t k[32];
};
void hf_store_digest(const struct hf_session_key *k, struct hf_str norm,
    uint8_t out[HF_DIGEST_SIZE]);
/* out = H(k, prev || digest); 'prev' all zero for the first item. */
void hf_store_chain(const struct hf_session_key *k,
    const uint8_t prev[HF_DIGEST_SIZE], const uint8_t digest[HF_DIGEST_SIZE],
    uint8_t out[HF_DIGEST_SIZE]);
/* A fresh random key for a session that does not exist yet. */
void hf_store_new_session_key(struct hf_session_key *k);

/* --- reading a session ----------------------------------------------- */

enum hf_turn_state {
	HF_TURN_QUEUED = 1, /* waits for the session's lease */
	HF_TURN_OPEN = 2,   /* being served */
	HF_TURN_COMPLETE = 3,
	HF_TURN_INCOMPLETE = 4,	 /* ended early, said so to the client */
	HF_TURN_FAILED = 5,	 /* no answer; error to the client */
	HF_TURN_INTERRUPTED = 6, /* its process or the box died */
	HF_TURN_CANCELED = 7	 /* the client left */
};

struct hf_head {
	bool found; /* else only 'key' is set (fresh) */
	int64_t session_row;
	struct hf_id session; /* ses_... */
	struct hf_session_key key;
	int64_t rev;		 /* moves whenever the head moves */
	int64_t head_turn_row;	 /* 0: no turn yet */
	int64_t head_parent_row; /* parent of the head turn */
	enum hf_turn_state head_state;
	uint8_t view[HF_DIGEST_SIZE];	     /* chain over the effective view:
					      * items of the path without lead ones,
					      * heard digests where heard */
	int64_t view_items;		     /* how many items that is */
	uint8_t lead_digest[HF_DIGEST_SIZE]; /* chain over the lead
					      * group in force; zero: none */
	uint8_t head_input_digest[HF_DIGEST_SIZE]; /* chain over the
						    * head turn's own new input
						    * items */
	bool busy;	  /* a live owner holds the lease */
	bool has_request; /* the next two are known */
	uint8_t head_request[HF_DIGEST_SIZE];
	bool head_delivered; /* its end was given to the client */
};

/* read.  'name' is what the client calls the session, or the ses_ id of one of
 * this tenant's sessions; found=false is OK. */
int hf_store_head(struct hf_store *st, const char *tenant, struct hf_str name,
    struct hf_head *out, struct hf_error *e) HF_MUST_CHECK;

/* read.  The target that answered the session last, in one of its last turns;
 * empty: nobody did.  One that failed did not, one whose client left did. */
int hf_store_answered_by(struct hf_store *st, int64_t session_row,
    struct hf_arena *a, struct hf_str *target,
    struct hf_error *e) HF_MUST_CHECK;

/* read.  Is that turn the session's head, and does nobody hold its lease? */
int hf_store_is_idle_at(struct hf_store *st, int64_t session_row,
    int64_t turn_row, bool *idle, struct hf_error *e) HF_MUST_CHECK;

struct hf_history {
	struct hf_item *item; /* in order of the effective view; for
			       * hf_store_history() the lead group in
			       * force stands in front */
	unsigned n;
};

/* read.  The items on the path from the root to 'turn_row' (inclusive, input
 * and output) without bodies: kind, role, digests, heard flag.  Lead items
 * are left out.  For alignment. */
int hf_store_view(struct hf_store *st, int64_t session_row, int64_t turn_row,
    struct hf_arena *a, struct hf_history *out,
    struct hf_error *e) HF_MUST_CHECK;
/* read.  The same with bodies opened, the lead group in force first, items
 * with an empty 'heard' left out, anchored items in their places: what a
 * provider must hear when 'turn_row' is answered.  HF_ECORRUPT names the turn
 * and index of a row that does not open or an item that is missing: never a
 * shorter history. */
int hf_store_history(struct hf_store *st, int64_t session_row, int64_t turn_row,
    struct hf_arena *a, struct hf_history *out,
    struct hf_error *e) HF_MUST_CHECK;

/* read.  Append the text that hf_store_part() has stored of an open turn. */
int hf_store_text(struct hf_store *st, int64_t session_row, int64_t turn_row,
    int64_t seq, struct hf_buf *out, struct hf_error *e) HF_MUST_CHECK;

/* --- the life of a turn ---------------------------------------------- */

enum hf_begin_result {
	HF_BEGIN_OPEN,	 /* lease owned; go on */
	HF_BEGIN_QUEUED, /* another turn is running; wait for a grant */
	HF_BEGIN_MOVED	 /* the head is not 'rev' any more: align again */
};

/* What was heard of an item. */
struct hf_heard {
	int64_t item_row;
	bool whole;	    /* all of it: no mark; else: */
	struct hf_str body; /* empty: not heard at all */
	uint8_t digest[HF_DIGEST_SIZE];
};

struct hf_begin {
	const char *tenant;
	struct hf_str name; /* session name; size 0: nameless */
	/* What the alignment was made against. */
	bool session_found;
	int64_t session_row;
	int64_t rev;
	struct hf_id session;	   /* minted by the caller if new; that of
				    * a nameless one is made of the turn's, see
				    * hf_nameless_session() */
	struct hf_session_key key; /* if new */
	/* The turn. */
	struct hf_id turn; /* minted by the caller */
	int64_t turn_row;  /* != 0: a queued turn that was granted
			    * (then 'fence' is its fence) */
	uint64_t fence;
	int64_t parent_row;	    /* 0: root */
	int64_t retry_of_row;	    /* 0, or the turn this one repeats */
	const struct hf_item *item; /* new input items, digests filled */
	unsigned n_item;
	const struct hf_heard *heard;
	unsigned n_heard;
	uint8_t view[HF_DIGEST_SIZE]; /* effective chain after these
				       * items (path + new) */
	int64_t view_items;
	uint8_t lead_digest[HF_DIGEST_SIZE]; /* group now in force */
	uint8_t input_digest[HF_DIGEST_SIZE];
	struct hf_str params;  /* JSON: tools, sampling...; sealed */
	struct hf_str request; /* kept (sealed) while queued only */
	struct hf_str route;
	bool stream;
	struct hf_str target; /* of attempt 1; empty: none yet */
	int64_t created_us;   /* wall time; 0: now */
	bool read_history;    /* see hf_begun */
	/* Retries, see below. */
	bool has_idem;
	uint8_t idem[HF_DIGEST_SIZE];
	bool has_request;
	uint8_t request_digest[HF_DIGEST_SIZE];
};

struct hf_begun {
	enum hf_begin_result result;
	int64_t session_row;
	int64_t turn_row;
	int64_t seq; /* 1, 2, ... within the session */
	uint64_t fence;
	struct hf_id session;
	/* OPEN, if it was asked for: what hf_store_history() says of the turn,
	 * read after the commit.  NULL: it is long, or could not be read; ask
	 * for it.  Until the completion returns. */
	const struct hf_history *history;
	int64_t joins_row; /* QUEUED: the same request is running
			    * or waiting as this turn; 0: none */
};

/* The session of a turn without a session name: it is found by the turn. */
void hf_nameless_session(const struct hf_id *turn, struct hf_id *session);

typedef void (*hf_begun_fn)(
    void *arg, int rc, const struct hf_error *e, const struct hf_begun *b);
typedef void (*hf_done_fn)(void *arg, int rc, const struct hf_error *e);

/*
 * write: T1.  In one commit, on condition that session.rev is still 'rev':
 * create the session if new; settle a dead owner's lease; take the lease with
 * a new fence; insert turn, items, attempt 1; move the head to this turn.
 * Lease held by a live owner, or live turns queued before: store the turn as
 * queued (row order is order of arrival).  Over queue_limit: HF_ELIMIT.
 * Session of another tenant cannot be named by construction.
 */
int hf_store_begin(struct hf_store *st, const struct hf_begin *b,
    hf_begun_fn cb, void *arg, struct hf_error *e) HF_MUST_CHECK;

/* read.  Turns of this process that wait and have been granted the lease;
 * call it when the own wake eventfd fired.  Calls 'cb' for each. */
typedef void (*hf_granted_fn)(void *arg, int64_t turn_row, uint64_t fence);
int hf_store_granted(struct hf_store *st, hf_granted_fn cb, void *arg,
    struct hf_error *e) HF_MUST_CHECK;

/* write: a queued turn whose client left or whose deadline passed.  If it was
 * granted meanwhile the lease is passed on. */
int hf_store_cancel_queued(struct hf_store *st, int64_t turn_row, hf_done_fn cb,
    void *arg, struct hf_error *e) HF_MUST_CHECK;

struct hf_attempt_end {
	int n;			/* 1, 2, ...; 0: nothing to close */
	const char *cls;	/* "ok" or an error class name */
	const char *reason;	/* "http_503", "connect_timeout", ... */
	int http_status;	/* 0: none seen */
	int64_t called_us;	/* wall time of the call; 0: none made */
	int64_t first_token_us; /* since the call; 0: none */
	int64_t total_us;
	int64_t bytes_out, bytes_in;   /* payload, response body */
	int64_t tokens_in, tokens_out; /* -1: unknown */
	int64_t tokens_estimated;      /* of the payload, by us; 0: not */
	/* Turns and items of the history that it was not told. */
	int64_t omitted_turns, omitted_items;
	/* Of the conversation that the payload held, and that there were; 0:
	 * not noted. */
	int64_t items, items_of;
};

struct hf_attempt_begin {
	int n;		      /* 0: nothing to open */
	struct hf_str target; /* "provider/model" */
	int64_t from_bytes;   /* of the answer's text were there, which it
			       * goes on with */
};

/* write: close attempt k and open k+1 in one commit, under the fence. */
int hf_store_attempts(struct hf_store *st, int64_t session_row,
    int64_t turn_row, uint64_t fence, const struct hf_attempt_end *close,
    const struct hf_attempt_begin *open, hf_done_fn cb, void *arg,
    struct hf_error *e) HF_MUST_CHECK;

/* write: append text of a stream under way, sealed, under the fence. */
int hf_store_part(struct hf_store *st, int64_t session_row, int64_t turn_row,
    uint64_t fence, int64_t part_seq, struct hf_str text, hf_done_fn cb,
    void *arg, struct hf_error *e) HF_MUST_CHECK;

struct hf_finish {
	int64_t session_row, turn_row;
	uint64_t fence;
	enum hf_turn_state state;
	/* Items of the answer, digests filled, with what was heard where that
	 * is less.  Parts of the turn are dropped in the same commit. */
	const struct hf_item *item;
	unsigned n_item;
	uint8_t view[HF_DIGEST_SIZE]; /* with the output */
	int64_t view_items;
	/* A long answer: before 'item' stands a message that is made here, of
	 * the text in the first n_part parts and text_rest, text_size bytes in
	 * all (else HF_ECORRUPT), and of the refusal.  The view is continued
	 * here too: the two above are not looked at. */
	bool from_parts;
	int64_t n_part;
	size_t text_size;
	struct hf_str text_rest, refusal;
	int64_t said;	 /* bytes of text in the answer */
	int64_t heard;	 /* of them given to the client; -1: not known */
	int64_t gone_us; /* wall time when the client left; 0: not yet */
	/* Nobody waits for it: other turns' writes may go before it. */
	bool unhurried;
	/* FAILED because the input itself was refused: the head goes back to
	 * the parent, so that later turns do not carry it. */
	bool drop_from_history;
	struct hf_attempt_end attempt;
	/* COMPLETE: other attempts may still be open, and are closed as not
	 * recorded; in the other states they always are, and 'attempt' need
	 * not exist: the commit that was to open or close it may be what
	 * failed. */
	bool close_rest;
	int64_t tokens_in, tokens_out, tokens_cached,
	    tokens_reasoning;	   /* as told to the client; -1 */
	const char *finish_reason; /* "stop", ...; NULL: none */
	const char *error_class;   /* NULL: none */
	int status;		   /* HTTP status told to the client */
};

/* write: T2.  In one commit under the fence: output items, turn closed,
 * attempt closed, lease released or granted to the next live queued turn
 * (whose worker is woken after the commit). */
int hf_store_finish(struct hf_store *st, const struct hf_finish *f,
    hf_done_fn cb, void *arg, struct hf_error *e) HF_MUST_CHECK;

/* --- taking a turn over ------------------------------------------------ */

struct hf_adopt {
	const char *tenant;
	struct hf_str name; /* session name; size 0: nameless */
	struct hf_id turn;
	bool has_idem;
	uint8_t idem[HF_DIGEST_SIZE];
};

struct hf_adopted {
	bool found;
	enum hf_turn_state state; /* QUEUED, OPEN: ours from now on */
	int64_t session_row, turn_row, seq;
	struct hf_id session;
	struct hf_session_key key;
	int64_t created_us;
	/* QUEUED: not 0 if it was granted the lease.  OPEN: our fence. */
	uint64_t fence;
	int64_t joins_row; /* QUEUED: as in hf_begun, or it ended since */
	/* OPEN. */
	uint8_t view[HF_DIGEST_SIZE]; /* with the turn's input */
	int64_t view_items;
	bool stream;
	unsigned attempts;    /* all closed by now */
	bool calling;	      /* one was under way: the call of 'target' */
	struct hf_str target; /* of that one, or of the last */
	int64_t called_us;    /* wall; since when that one is called, again
			       * and again by processes that died */
	int64_t parts;	      /* of the text of a stream */
	/* Ended without an answer. */
	int status; /* told to the client; 0: none */
};

typedef void (*hf_adopted_fn)(
    void *arg, int rc, const struct hf_error *e, const struct hf_adopted *a);

/*
 * write: this process serves the request of a turn whose owner died.  In one
 * commit: the turn is ours, with a new fence where it holds the session's
 * lease; attempts that were under way are closed as lost; parts of an answer
 * that is not a stream are dropped.  A turn that ended is only described, and
 * one that never came on disk is not found.  HF_EFENCED: its owner lives.
 */
int hf_store_adopt(struct hf_store *st, const struct hf_adopt *a,
    hf_adopted_fn cb, void *arg, struct hf_error *e) HF_MUST_CHECK;

/* --- retries ----------------------------------------------------------- */

/*
 * The same request is one turn and one bill.  A turn keeps a keyed digest of
 * its request and, if the client named one, of its Idempotency-Key (unique:
 * the newest turn of that key stands for it).  T1 answers HF_BEGIN_MOVED when
 * the key's turn is complete (look it up again and replay), HF_BEGIN_QUEUED
 * with joins_row when the key's turn, or one with the same request digest,
 * is still running; a key whose turn ended without an answer moves to the
 * new turn.
 */
void hf_store_request_digest(const struct hf_store *st, const char *tenant,
    struct hf_str what, struct hf_str bytes, uint8_t out[HF_DIGEST_SIZE]);

struct hf_earlier {
	bool found;
	int64_t session_row, turn_row;
	struct hf_id session;
	enum hf_turn_state state;
	bool same; /* its request digest is 'request' */
};
/* read.  The turn that stands for a key. */
int hf_store_earlier(struct hf_store *st, const uint8_t idem[HF_DIGEST_SIZE],
    const uint8_t request[HF_DIGEST_SIZE], struct hf_earlier *out,
    struct hf_error *e) HF_MUST_CHECK;

struct hf_stored_answer {
	struct hf_id turn, session;
	int64_t seq;
	enum hf_turn_state state;
	int64_t created_us;
	struct hf_str finish_reason, target, route;
	int status; /* HTTP status told to the client; 0: none */
	unsigned attempts;
	int64_t omitted_turns, omitted_items; /* its provider was not told */
	int64_t tokens_in, tokens_out, tokens_cached, tokens_reasoning;
	int64_t said, heard;	   /* bytes of text; -1: not noted */
	struct hf_session_key key; /* the session's */
	struct hf_item *item;	   /* its output */
	unsigned n_item;
};
/* read.  How a turn ended and what it answered: if it is not complete, what
 * there is of it. */
int hf_store_answer(struct hf_store *st, int64_t session_row, int64_t turn_row,
    struct hf_arena *a, struct hf_stored_answer *out,
    struct hf_error *e) HF_MUST_CHECK;

/* --- following a turn --------------------------------------------------- */

/* read.  The row of a session's turn, by its number or its id (turn_...);
 * HF_ENOTFOUND. */
int hf_store_find_turn(struct hf_store *st, int64_t session_row,
    struct hf_str which, int64_t *turn_row, struct hf_error *e) HF_MUST_CHECK;
/* read.  Text of an open turn's stream from part *part on, some 'most' bytes
 * of it, appended to 'text'; *part moves on.  Of a turn that has ended only its
 * state: the parts are gone, see hf_store_answer(). */
int hf_store_follow(struct hf_store *st, int64_t session_row, int64_t turn_row,
    int64_t *part, size_t most, enum hf_turn_state *state, struct hf_buf *text,
    struct hf_error *e) HF_MUST_CHECK;

/* --- what was handed over ------------------------------------------------ */

/* write.  The whole responses of these turns were given to the kernel.  'cb'
 * may be NULL: what a crash forgets is answered once more to the same
 * request. */
int hf_store_delivered(struct hf_store *st, const int64_t *turn_row, unsigned n,
    hf_done_fn cb, void *arg, struct hf_error *e) HF_MUST_CHECK;

/* --- what was heard ------------------------------------------------------ */

/* How much of an answer its client was given. */
struct hf_heard_note {
	int64_t session_row, turn_row;
	bool delivered;	 /* the whole response; else the client left */
	int64_t heard;	 /* bytes of text */
	int64_t gone_us; /* wall time when it left; 0: it did not */
	/* Of items of the answer, in their order, and the effective chain
	 * with them.  They count if no later turn goes on from this one, whose
	 * history says something else already. */
	const struct hf_heard *mark;
	unsigned n_mark;
	uint8_t view[HF_DIGEST_SIZE];
	int64_t view_items;
};
/* write, under the fence: the client of an open turn left, and the answer is
 * made all the same.  If this process dies its text is marked so. */
int hf_store_gone(struct hf_store *st, const struct hf_heard_note *n,
    uint64_t fence, hf_done_fn cb, void *arg, struct hf_error *e) HF_MUST_CHECK;
/* write.  Of a turn that has ended: it was told again and heard to the end, or
 * its client left before that.  Changes nothing if it was delivered before.
 * Later turns are aligned with it (rev moves).  'cb' may be NULL. */
int hf_store_heard(struct hf_store *st, const struct hf_heard_note *n,
    hf_done_fn cb, void *arg, struct hf_error *e) HF_MUST_CHECK;

/* --- API keys --------------------------------------------------------- */

#define HF_TENANT_DEFAULT "default"
#define HF_SECRET_PREFIX "hfk_" /* what every secret of ours begins with */

/* read.  Was any key ever made?  Revoking the last one opens no door.  (Cached;
 * a key that was made by another process is seen within a second.) */
int hf_store_any_key(
    struct hf_store *st, bool *any, struct hf_error *e) HF_MUST_CHECK;
/* read.  The tenant of a presented secret; HF_EPERM if unknown or revoked.
 * Compared in constant time.  'tenant' gets a NUL-terminated name. */
int hf_store_authenticate(struct hf_store *st, struct hf_str secret,
    char *tenant, size_t size, struct hf_error *e) HF_MUST_CHECK;

#endif
