/*
 * Read-only views for operators: the keeper's control socket and
 * holdfastctl.  One connection, opened read-only; short reads; rows are
 * handed to a callback one by one (spans valid during the call only).
 *
 * Long lists are read in pieces: return nonzero from the callback to stop,
 * and call again with the same cursor to go on behind the row that was told
 * last.  No statement stays open between the calls.
 */
#ifndef HF_STORE_INSPECT_H
#define HF_STORE_INSPECT_H

#include "store/store.h"

struct hf_inspect;
struct hf_cursor {
	int64_t a, b;
}; /* zero: the beginning */

/* Without a scoreboard in 'c' ("offline") nothing at all is written, not
 * even an index of the log, whatever became of the daemon; whether the owner
 * of a lease lives is then not always known. */
int hf_inspect_open(struct hf_inspect **out, const struct hf_store_conf *c,
    struct hf_error *e) HF_MUST_CHECK;
void hf_inspect_close(struct hf_inspect *in);

struct hf_session_info {
	struct hf_id id;
	const char *tenant;
	const char *name;		/* NULL: nameless */
	int64_t created_us, updated_us; /* wall time */
	int64_t turns;
	const char *last_state;	 /* state name of the newest turn */
	const char *last_target; /* NULL: none */
	bool locked;		 /* lease held */
	unsigned owner_slot;
	uint64_t owner_inc, fence;
	int64_t lock_since_us;
	int64_t queued;
};
typedef int (*hf_session_fn)(void *arg, const struct hf_session_info *s);
struct hf_session_filter {
	const char *tenant; /* NULL: all */
	int64_t limit;	    /* 0: 50 */
	const char *before; /* page: id of the last one seen */
};
int hf_inspect_sessions(struct hf_inspect *in,
    const struct hf_session_filter *f, struct hf_cursor *at, hf_session_fn cb,
    void *arg, struct hf_error *e) HF_MUST_CHECK;
/* By id, unique id prefix, or name (tenant NULL: unique over tenants).
 * HF_ENOTFOUND; HF_ECONFLICT when ambiguous. */
int hf_inspect_session(struct hf_inspect *in, const char *tenant,
    const char *key, hf_session_fn cb, void *arg,
    struct hf_error *e) HF_MUST_CHECK;

struct hf_turn_info {
	struct hf_id id;
	int64_t seq;
	int64_t parent_seq;   /* 0: root */
	int64_t retry_of_seq; /* 0: none */
	const char *state;
	bool on_path; /* part of the current history */
	const char *route;
	bool stream;
	int64_t started_us, ended_us;
	const char *finish_reason, *error_class;
	int status;
	int64_t attempts;
	const char *target; /* that answered, or of the last try */
	int64_t first_token_us, total_us;
	/* Bytes of text in the answer, and of them given to the client; -1:
	 * not noted. */
	int64_t said, heard;
	int64_t gone_us;      /* the client left before the end; 0: no */
	int64_t delivered_us; /* the end was given to it; 0: not noted */
};
typedef int (*hf_turn_fn)(void *arg, const struct hf_turn_info *t);
int hf_inspect_turns(struct hf_inspect *in, const struct hf_id *session,
    struct hf_cursor *at, hf_turn_fn cb, void *arg,
    struct hf_error *e) HF_MUST_CHECK;

struct hf_item_info {
	int64_t turn_seq;
	int64_t idx; /* within the turn */
	const char *kind, *role, *origin;
	bool output, lead, has_heard;
	struct hf_str body, heard; /* opened; JSON */
};
typedef int (*hf_item_fn)(void *arg, const struct hf_item_info *i);
int hf_inspect_items(struct hf_inspect *in, const struct hf_id *session,
    struct hf_cursor *at, hf_item_fn cb, void *arg,
    struct hf_error *e) HF_MUST_CHECK;

struct hf_attempt_info {
	int64_t turn_seq;
	int n;
	const char *target, *cls, *reason;
	int http_status;
	int64_t started_us, first_token_us, total_us;
	int64_t called_us;  /* wall time; 0: not, or under way */
	int64_t from_bytes; /* of the answer were there, which it goes on
			     * with */
	int64_t bytes_out, bytes_in, tokens_in, tokens_out;
	int64_t tokens_estimated;	      /* of the payload; 0: not */
	int64_t omitted_turns, omitted_items; /* it was not told */
	int64_t items, items_of; /* sent, and there; 0: not noted */
};
typedef int (*hf_attempt_fn)(void *arg, const struct hf_attempt_info *a);
int hf_inspect_attempts(struct hf_inspect *in, const struct hf_id *session,
    struct hf_cursor *at, hf_attempt_fn cb, void *arg,
    struct hf_error *e) HF_MUST_CHECK;

/* What happened in a turn; see holdfastctl(1) for the events. */
struct hf_event_info {
	int64_t turn_seq;
	int64_t at_us;	  /* wall time */
	int64_t after_us; /* since the turn was received */
	const char *event;
	int attempt; /* 0: of none */
	const char *target;
	const char *state; /* of the turn that is finished */
	const char *cls, *reason;
	int status;	   /* HTTP; 0: none */
	int64_t bytes, of; /* -1: does not apply, or is not known */
	int64_t omitted_turns, omitted_items;
};
typedef int (*hf_event_fn)(void *arg, const struct hf_event_info *e);
/* In order of time, of turn 'seq' or of all turns (0). */
int hf_inspect_timeline(struct hf_inspect *in, const struct hf_id *session,
    int64_t seq, struct hf_cursor *at, hf_event_fn cb, void *arg,
    struct hf_error *e) HF_MUST_CHECK;
/* The number of the turn that 'key' names: its number, its id or the unique
 * beginning of one.  HF_ENOTFOUND, HF_ECONFLICT. */
int hf_inspect_turn_number(struct hf_inspect *in, const struct hf_id *session,
    const char *key, int64_t *seq, struct hf_error *e) HF_MUST_CHECK;

/* --- failovers ------------------------------------------------------------ */

/* An attempt that followed another one of its turn.  Turns without a row
 * leave no trace here. */
struct hf_failover_info {
	int64_t row;   /* falls from one to the next */
	int64_t at_us; /* wall time when the one before had ended */
	struct hf_id session, turn;
	const char *tenant, *name;
	int64_t turn_seq;
	const char *route;
	int n; /* its number in the turn */
	const char *from, *to;
	const char *cls, *reason; /* how the one before ended */
	int status;		  /* of that; HTTP, 0: none */
	int64_t gap_us;		  /* from there to its first useful delta; -1:
				   * none came */
	int64_t from_bytes; /* of the answer that the client had by then */
	int64_t items, items_of;
	const char *outcome; /* its own class; NULL: under way */
};
typedef int (*hf_failover_fn)(void *arg, const struct hf_failover_info *f);
struct hf_failover_filter {
	int64_t since_us; /* turns received since this wall time */
	int64_t before;	  /* page: row of the last one seen; 0: the newest */
};
/* Newest first, by index, so many as are looked at in a moment.  1: there may
 * be more, call again; 0: that was all. */
int hf_inspect_failovers(struct hf_inspect *in,
    const struct hf_failover_filter *f, struct hf_cursor *at, hf_failover_fn cb,
    void *arg, struct hf_error *e) HF_MUST_CHECK;

/* The same added up by target that was left and class. */
struct hf_failover_group {
	const char *target, *cls;
	int64_t failovers;
	int64_t answered;  /* the next one answered */
	int64_t in_stream; /* the client had a part of the answer */
	int64_t shortened; /* the next one heard less than all */
	int64_t gap_p50_us, gap_p99_us; /* -1: no first token came */
	int64_t last_us;
};
typedef int (*hf_failover_group_fn)(
    void *arg, const struct hf_failover_group *g);
struct hf_failover_sum;
struct hf_failover_sum *hf_failover_sum_new(int64_t since_us);
void hf_failover_sum_free(struct hf_failover_sum *s);
/* Add some more.  1: there are more; 0: that was all. */
int hf_failover_sum_more(struct hf_inspect *in, struct hf_failover_sum *s,
    struct hf_error *e) HF_MUST_CHECK;
/* Most frequent first. */
void hf_failover_sum_tell(
    struct hf_failover_sum *s, hf_failover_group_fn cb, void *arg);

/* --- what is disabled by hand --------------------------------------------- */

typedef int (*hf_disabled_fn)(
    void *arg, const char *name, int64_t since_us, int64_t uid);
int hf_inspect_disabled(struct hf_inspect *in, hf_disabled_fn cb, void *arg,
    struct hf_error *e) HF_MUST_CHECK;

struct hf_key_info {
	struct hf_id id;
	const char *tenant, *label;
	int64_t created_us, revoked_us; /* 0: in force */
};
typedef int (*hf_key_fn)(void *arg, const struct hf_key_info *k);
int hf_inspect_keys(struct hf_inspect *in, hf_key_fn cb, void *arg,
    struct hf_error *e) HF_MUST_CHECK;

struct hf_store_stats {
	int64_t sessions, turns, items, open_turns, queued_turns;
	int64_t db_bytes, wal_bytes; /* by stat, never by opening */
	int schema_version;
	uint64_t boot;
};
int hf_inspect_stats(struct hf_inspect *in, struct hf_store_stats *s,
    struct hf_error *e) HF_MUST_CHECK;

/* --- leases ------------------------------------------------------------- */

struct hf_lock_info {
	struct hf_id session;
	const char *tenant, *name;
	unsigned owner_slot;
	uint64_t owner_inc, fence;
	const char *owner; /* "alive", "dead"; offline "unknown" */
	int64_t lock_since_us;
	struct hf_id turn; /* that it was taken for */
	int64_t turn_seq;  /* 0: there is no such turn */
	const char *turn_state;
	int64_t queued; /* turns that wait behind it */
};
typedef int (*hf_lock_fn)(void *arg, const struct hf_lock_info *l);
/* Leases that are held. */
int hf_inspect_locks(struct hf_inspect *in, struct hf_cursor *at, hf_lock_fn cb,
    void *arg, struct hf_error *e) HF_MUST_CHECK;

/* --- verification ------------------------------------------------------- */

struct hf_finding {
	const char *session;  /* id; NULL: of no session */
	const char *severity; /* "corrupt", or "odd" */
	const char *what;     /* one word of what is wrong */
	int64_t turn_seq;     /* 0: of no turn */
	int64_t idx;	      /* of an item or part; -1: of none */
	const char *text;     /* for people; no contents */
};
typedef void (*hf_finding_fn)(void *arg, const struct hf_finding *f);
struct hf_verified { /* added up over calls */
	int64_t sessions, turns, items;
	int64_t corrupt, odd; /* findings */
};
/* Prove of a session, in one snapshot, that nothing was altered or lost.
 * Without the master key: HF_EPERM. */
int hf_verify_session(struct hf_inspect *in, const struct hf_id *session,
    hf_finding_fn cb, void *arg, struct hf_verified *sum,
    struct hf_error *e) HF_MUST_CHECK;
/* The same of the next session, then of rows that belong to none, a piece at
 * a time.  1: there is more; 0: that was all. */
int hf_verify_next(struct hf_inspect *in, struct hf_cursor *at,
    hf_finding_fn cb, void *arg, struct hf_verified *sum,
    struct hf_error *e) HF_MUST_CHECK;

/* --- the members of the views, for whoever shows them --------------------- */

enum hf_field_type {
	HF_FIELD_ID,   /* struct hf_id */
	HF_FIELD_TEXT, /* const char *, NULL: null */
	HF_FIELD_STR,  /* struct hf_str, .p NULL: null */
	HF_FIELD_INT,
	HF_FIELD_UINT,
	HF_FIELD_I64,
	HF_FIELD_U64,
	HF_FIELD_BOOL
};
struct hf_field {
	const char *name;
	enum hf_field_type type;
	size_t offset;
};
struct hf_view {
	const char *kind; /* "session", "turn", ... */
	const struct hf_field *field;
	size_t n;
};
extern const struct hf_view hf_view_session, hf_view_turn, hf_view_item,
    hf_view_contents /* an item with its body */, hf_view_attempt,
    hf_view_event, hf_view_failover, hf_view_failover_group, hf_view_key,
    hf_view_lock, hf_view_stats, hf_view_finding, hf_view_verified;

#endif
