/*
 * Sessions, turns and items as rows, inside a transaction that is open.
 */
#ifndef HF_STORE_ROW_H
#define HF_STORE_ROW_H

#include "store/writer.h"

/* Children of a turn are numbered turn << 20 | index (0001_init.sql). */
#define HF_ROW_SHIFT 20
#define HF_ROW_MAX ((int64_t)1 << HF_ROW_SHIFT)

static inline int64_t
hf_row_child(int64_t turn, int64_t idx)
{
	return (int64_t)((uint64_t)turn << HF_ROW_SHIFT | (uint64_t)idx);
}

struct hf_session_row {
	int64_t id;
	struct hf_id public;
	int64_t rev, n_turns, head;
	unsigned owner_slot;
	uint64_t owner_inc, fence;
	int64_t lease_turn;
	bool waited; /* a turn is queued for it, dead or alive */
	struct hf_seal_key key;
};

struct hf_turn_row {
	int64_t id, session, seq, parent;
	int state;
	int64_t n_items, view_items;
	uint8_t chain[HF_DIGEST_SIZE], view[HF_DIGEST_SIZE];
	unsigned owner_slot;
	uint64_t owner_inc;
	int64_t heard; /* -1: not noted */
	struct hf_id public;
	bool has_parts; /* hf_row_held() only */
};

/* Read the columns of SESSION_COLUMNS ('waited' is set), or of TURN_COLUMNS
 * from column 'at' on.  'opened' may be NULL.  HF_ECORRUPT when the session's
 * key does not open. */
int hf_row_session_columns(const struct hf_seal *seal,
    struct hf_seal_opened *opened, sqlite3_stmt *st, struct hf_session_row *s,
    struct hf_error *e) HF_MUST_CHECK;
void hf_row_turn_columns(sqlite3_stmt *st, int at, struct hf_turn_row *t);
#define HF_ROW_SESSION_COLUMNS 12 /* how many those are */
#define HF_ROW_TURN_COLUMNS 13

/* 1: found.  0: not.  Negative: failed. */
int hf_row_session(struct hf_writer *w, int64_t id, struct hf_session_row *s,
    struct hf_error *e) HF_MUST_CHECK;
int hf_row_session_named(struct hf_writer *w, int64_t tenant,
    struct hf_str name, struct hf_session_row *s,
    struct hf_error *e) HF_MUST_CHECK;
/* By the id that clients are told; of any tenant. */
int hf_row_session_public(struct hf_writer *w, const struct hf_id *id,
    struct hf_session_row *s, struct hf_error *e) HF_MUST_CHECK;
int hf_row_turn(struct hf_writer *w, int64_t id, struct hf_turn_row *t,
    struct hf_error *e) HF_MUST_CHECK;
int hf_row_tenant(struct hf_writer *w, const char *name, int64_t *id,
    struct hf_error *e) HF_MUST_CHECK;
/* The same, made if it is missing. */
int hf_row_tenant_add(struct hf_writer *w, const char *name, int64_t *id,
    struct hf_error *e) HF_MUST_CHECK;

/* The session and its lease's turn, if this process holds exactly that lease;
 * else HF_EFENCED. */
int hf_row_held(struct hf_writer *w, int64_t session, int64_t turn,
    uint64_t fence, struct hf_session_row *s, struct hf_turn_row *t,
    struct hf_error *e) HF_MUST_CHECK;

/* Append items to 't' (its n_items and chain move on; the caller writes the
 * turn's row). */
int hf_row_add_items(struct hf_writer *w, const struct hf_seal_key *key,
    struct hf_turn_row *t, const struct hf_item *item, unsigned n, bool output,
    struct hf_error *e) HF_MUST_CHECK;
/* The effective view goes on with an item, as it was heard. */
void hf_row_extend_view(const struct hf_seal_key *key, struct hf_turn_row *t,
    const struct hf_item *item);
/* Set or take away an item's mark of what was heard of it. */
int hf_row_heard(struct hf_writer *w, const struct hf_seal_key *key,
    int64_t seq, const struct hf_heard *h, struct hf_error *e) HF_MUST_CHECK;
/* Seal 'plain' as blob 'kind' (HF_SEAL_PARAMS or _REQUEST) of a turn; an empty
 * one is not stored. */
int hf_row_add_blob(struct hf_writer *w, const struct hf_seal_key *key,
    const struct hf_turn_row *t, enum hf_seal_kind kind, struct hf_str plain,
    struct hf_error *e) HF_MUST_CHECK;
int hf_row_drop_request(
    struct hf_writer *w, int64_t turn, struct hf_error *e) HF_MUST_CHECK;

#endif
