/*
 * Rows of sessions, turns and items.
 */
#include <config.h>

#include "store/row.h"

#include "base/clock.h"

/* Index of a turn's blobs (turn_blob.kind). */
#define BLOB_PARAMS 1
#define BLOB_REQUEST 2

int
hf_row_session_columns(const struct hf_seal *seal,
    struct hf_seal_opened *opened, sqlite3_stmt *st, struct hf_session_row *s,
    struct hf_error *e)
{
	int rc;

	memset(s, 0, sizeof(*s));
	s->id = sqlite3_column_int64(st, 0);
	hf_db_id(st, 2, &s->public);
	s->rev = sqlite3_column_int64(st, 5);
	s->n_turns = sqlite3_column_int64(st, 6);
	s->head = sqlite3_column_int64(st, 7);
	s->owner_slot = (unsigned)sqlite3_column_int64(st, 8);
	s->owner_inc = (uint64_t)sqlite3_column_int64(st, 9);
	s->fence = (uint64_t)sqlite3_column_int64(st, 10);
	s->lease_turn = sqlite3_column_int64(st, 11);
	s->waited = true;
	rc = hf_seal_unwrap(seal, opened, hf_db_str(st, 4),
	    sqlite3_column_int64(st, 3), sqlite3_column_int64(st, 1),
	    &s->public, &s->key);
	if (rc < 0)
		return hf_fail(
		    e, rc, "session %s: its key does not open", s->public.s);
	s->key.session = s->id;
	return 0;
}

void
hf_row_turn_columns(sqlite3_stmt *st, int at, struct hf_turn_row *t)
{
	memset(t, 0, sizeof(*t));
	t->id = sqlite3_column_int64(st, at);
	t->session = sqlite3_column_int64(st, at + 1);
	t->seq = sqlite3_column_int64(st, at + 2);
	t->parent = sqlite3_column_int64(st, at + 3);
	t->state = sqlite3_column_int(st, at + 4);
	t->n_items = sqlite3_column_int64(st, at + 5);
	t->view_items = sqlite3_column_int64(st, at + 6);
	/* A digest of another size reads as zero: the chain breaks there. */
	hf_db_digest(st, at + 7, t->chain);
	hf_db_digest(st, at + 8, t->view);
	t->owner_slot = (unsigned)sqlite3_column_int64(st, at + 9);
	t->owner_inc = (uint64_t)sqlite3_column_int64(st, at + 10);
	t->heard = sqlite3_column_int64(st, at + 11);
	hf_db_id(st, at + 12, &t->public);
}

static int
one_session(struct hf_writer *w, sqlite3_stmt *st, struct hf_session_row *s,
    struct hf_error *e)
{
	int rc = hf_db_step(&w->db, st, e);

	if (rc <= 0)
		return rc;
	rc = hf_row_session_columns(w->seal, w->opened, st, s, e);
	s->waited = sqlite3_column_int(st, HF_ROW_SESSION_COLUMNS) != 0;
	hf_db_reset(st);
	return rc < 0 ? rc : 1;
}

int
hf_row_session(struct hf_writer *w, int64_t id, struct hf_session_row *s,
    struct hf_error *e)
{
	sqlite3_stmt *st = hf_db_bind(&w->db, HF_SQL_SESSION_GET, e, "i", id);

	return st == NULL ? e->code : one_session(w, st, s, e);
}

int
hf_row_session_named(struct hf_writer *w, int64_t tenant, struct hf_str name,
    struct hf_session_row *s, struct hf_error *e)
{
	sqlite3_stmt *st =
	    hf_db_bind(&w->db, HF_SQL_SESSION_NAMED, e, "it", tenant, name);

	return st == NULL ? e->code : one_session(w, st, s, e);
}

int
hf_row_session_public(struct hf_writer *w, const struct hf_id *id,
    struct hf_session_row *s, struct hf_error *e)
{
	sqlite3_stmt *st =
	    hf_db_bind(&w->db, HF_SQL_INFO_BY_PUBLIC, e, "z", id->s);

	return st == NULL ? e->code : one_session(w, st, s, e);
}

int
hf_row_turn(
    struct hf_writer *w, int64_t id, struct hf_turn_row *t, struct hf_error *e)
{
	sqlite3_stmt *st = hf_db_bind(&w->db, HF_SQL_TURN_GET, e, "i", id);
	int rc;

	if (st == NULL)
		return e->code;
	rc = hf_db_step(&w->db, st, e);
	if (rc <= 0)
		return rc;
	hf_row_turn_columns(st, 0, t);
	hf_db_reset(st);
	return 1;
}

int
hf_row_tenant(
    struct hf_writer *w, const char *name, int64_t *id, struct hf_error *e)
{
	sqlite3_stmt *st = hf_db_bind(&w->db, HF_SQL_TENANT_FIND, e, "z", name);
	int rc;

	if (st == NULL)
		return e->code;
	rc = hf_db_step(&w->db, st, e);
	if (rc <= 0)
		return rc;
	*id = sqlite3_column_int64(st, 0);
	hf_db_reset(st);
	return 1;
}

int
hf_row_tenant_add(
    struct hf_writer *w, const char *name, int64_t *id, struct hf_error *e)
{
	int rc = hf_row_tenant(w, name, id, e);

	if (rc != 0)
		return rc;
	rc = hf_db_run(&w->db, HF_SQL_TENANT_ADD, e, "zi", name, hf_wall_us());
	if (rc < 0)
		return rc;
	*id = sqlite3_last_insert_rowid(w->db.h);
	return 1;
}

int
hf_row_held(struct hf_writer *w, int64_t session, int64_t turn, uint64_t fence,
    struct hf_session_row *s, struct hf_turn_row *t, struct hf_error *e)
{
	const int at = HF_ROW_SESSION_COLUMNS + 1;
	sqlite3_stmt *st = hf_db_bind(&w->db, HF_SQL_SESSION_HELD, e, "iiiii",
	    session, (int64_t)w->slot, (int64_t)w->inc, (int64_t)fence, turn);
	int rc;

	if (st == NULL)
		return e->code;
	rc = hf_db_step(&w->db, st, e);
	if (rc == 0)
		return hf_fail(e, HF_EFENCED, "turn %lld: its lease is lost",
		    (long long)turn);
	if (rc < 0)
		return rc;
	rc = hf_row_session_columns(w->seal, w->opened, st, s, e);
	s->waited = sqlite3_column_int(st, at - 1) != 0;
	hf_row_turn_columns(st, at, t);
	t->has_parts = sqlite3_column_int(st, at + HF_ROW_TURN_COLUMNS) != 0;
	hf_db_reset(st);
	return rc;
}

int
hf_row_heard(struct hf_writer *w, const struct hf_seal_key *key, int64_t seq,
    const struct hf_heard *h, struct hf_error *e)
{
	struct hf_seal_at at = { HF_SEAL_HEARD, seq,
		h->item_row & (HF_ROW_MAX - 1) };
	int rc = 0;

	if (!h->whole)
		rc = hf_seal_put(w->seal, key, at, h->body, &w->scratch[0]);
	if (rc < 0)
		return hf_fail(e, rc, "heard of %zu bytes", h->body.size);
	rc = h->whole ?
	    hf_db_run(&w->db, HF_SQL_ITEM_HEARD_ALL, e, "i", h->item_row) :
	    hf_db_run(&w->db, HF_SQL_ITEM_HEARD, e, "idb", h->item_row,
		h->digest, hf_buf_str(&w->scratch[0]));
	if (rc == 0)
		return hf_fail(e, HF_EINVAL, "heard: no such item");
	return rc < 0 ? rc : 0;
}

void
hf_row_extend_view(const struct hf_seal_key *key, struct hf_turn_row *t,
    const struct hf_item *item)
{
	uint8_t next[HF_DIGEST_SIZE];

	if (item->has_heard && item->heard.size == 0)
		return; /* not heard at all */
	hf_store_chain(&key->digest, t->view,
	    item->has_heard ? item->heard_digest : item->digest, next);
	memcpy(t->view, next, sizeof(next));
	t->view_items++;
}

static int
add_heard(struct hf_writer *w, const struct hf_seal_key *key,
    const struct hf_turn_row *t, const struct hf_item *it, struct hf_error *e)
{
	struct hf_heard h = { .item_row = hf_row_child(t->id, t->n_items),
		.body = it->heard };

	memcpy(h.digest, it->heard_digest, sizeof(h.digest));
	return hf_row_heard(w, key, t->seq, &h, e);
}

static int
add_item(struct hf_writer *w, const struct hf_seal_key *key,
    struct hf_turn_row *t, const struct hf_item *it, bool output,
    struct hf_error *e)
{
	struct hf_str side = HF_STR_NONE, side_of = HF_STR_NONE;
	uint8_t chain[HF_DIGEST_SIZE];
	struct hf_seal_at at = { HF_SEAL_BODY, t->seq, t->n_items };
	int rc;

	if (t->n_items >= HF_ROW_MAX)
		return hf_fail(e, HF_ELIMIT, "more than %lld items in a turn",
		    (long long)HF_ROW_MAX);
	rc = hf_seal_put(w->seal, key, at, it->body, &w->scratch[0]);
	if (rc == 0 && it->sidecar.size > 0) {
		at.kind = HF_SEAL_SIDECAR;
		rc = hf_seal_put(w->seal, key, at, it->sidecar, &w->scratch[1]);
		side = hf_buf_str(&w->scratch[1]);
		side_of = it->sidecar_of;
	}
	if (rc < 0)
		return hf_fail(e, rc, "item of %zu bytes", it->body.size);
	hf_store_chain(&key->digest, t->chain, it->digest, chain);
	rc = hf_db_run(&w->db, HF_SQL_ITEM_ADD, e, "iiiiiiiddtbb",
	    hf_row_child(t->id, t->n_items), (int64_t)output, (int64_t)it->kind,
	    (int64_t)it->role, (int64_t)it->origin, (int64_t)it->lead,
	    it->anchor_row, it->digest, chain, side_of, side,
	    hf_buf_str(&w->scratch[0]));
	if (rc >= 0 && it->has_heard)
		rc = add_heard(w, key, t, it, e);
	if (rc < 0)
		return rc;
	memcpy(t->chain, chain, sizeof(chain));
	t->n_items++;
	return 0;
}

int
hf_row_add_items(struct hf_writer *w, const struct hf_seal_key *key,
    struct hf_turn_row *t, const struct hf_item *item, unsigned n, bool output,
    struct hf_error *e)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n; i++)
		rc = add_item(w, key, t, &item[i], output, e);
	return rc;
}

int
hf_row_add_blob(struct hf_writer *w, const struct hf_seal_key *key,
    const struct hf_turn_row *t, enum hf_seal_kind kind, struct hf_str plain,
    struct hf_error *e)
{
	struct hf_seal_at at = { kind, t->seq, 0 };
	int64_t idx = kind == HF_SEAL_PARAMS ? BLOB_PARAMS : BLOB_REQUEST;
	int rc;

	if (plain.size == 0)
		return 0;
	rc = hf_seal_put(w->seal, key, at, plain, &w->scratch[0]);
	if (rc < 0)
		return hf_fail(e, rc, "request of %zu bytes", plain.size);
	rc = hf_db_run(&w->db, HF_SQL_BLOB_ADD, e, "ib",
	    hf_row_child(t->id, idx), hf_buf_str(&w->scratch[0]));
	return rc < 0 ? rc : 0;
}

int
hf_row_drop_request(struct hf_writer *w, int64_t turn, struct hf_error *e)
{
	int rc = hf_db_run(
	    &w->db, HF_SQL_BLOB_DROP, e, "i", hf_row_child(turn, BLOB_REQUEST));

	return rc < 0 ? rc : 0;
}
