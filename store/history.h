/*
 * Items of a path, read and checked; shared by the gateway's reads and the
 * operators' views.
 */
#ifndef HF_STORE_HISTORY_H
#define HF_STORE_HISTORY_H

#include "store/db.h"
#include "store/seal.h"

/* Read the columns of ITEM_COLUMNS, or without 'bodies' those of
 * ITEM_VIEW_COLUMNS, opening into 'a'.  'seq' is the turn's.  'chain' gets the
 * stored chain. */
#define HF_ITEM_COLUMNS 15
int hf_item_columns(sqlite3_stmt *st, const struct hf_seal_key *key,
    int64_t seq, bool bodies, struct hf_arena *a, struct hf_item *it,
    uint8_t chain[HF_DIGEST_SIZE], struct hf_error *e) HF_MUST_CHECK;

/* What hf_store_history() says, or without 'bodies' hf_store_view(), inside a
 * transaction of 'db'. */
int hf_history_read(struct hf_db *db, const struct hf_seal_key *key,
    int64_t turn, bool bodies, struct hf_arena *a, struct hf_history *out,
    struct hf_error *e) HF_MUST_CHECK;

/* The keys of a session, by its row.  Loop thread. */
int hf_store_session_key(struct hf_store *st, int64_t session,
    struct hf_seal_key *key, struct hf_error *e) HF_MUST_CHECK;

#endif
