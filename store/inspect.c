/*
 * Read-only views for operators.  A page of rows is walked with one
 * statement; the callback must not use the store.
 */
#include <config.h>

#include "store/inspect_int.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/check.h"
#include "store/history.h"
#include "store/master.h"
#include "store/migrate.h"
#include "store/row.h"

#define LIST_DEFAULT 50

static const char *const turn_states[] = { "?", "queued", "open", "complete",
	"incomplete", "failed", "interrupted", "canceled" };
static const char *const item_kinds[] = { "?", "message", "tool_call",
	"tool_result" };
static const char *const item_roles[] = { "?", "system", "developer", "user",
	"assistant", "tool" };
static const char *const item_origins[] = { "?", "client", "model", "gateway" };

#define NAME_OF(table, n) \
	((size_t)(n) < hf_countof(table) ? (table)[(size_t)(n)] : (table)[0])

int
hf_inspect_open(
    struct hf_inspect **out, const struct hf_store_conf *c, struct hf_error *e)
{
	struct hf_error local;
	struct hf_inspect *in;
	int rc;

	*out = NULL;
	e = e == NULL ? &local : e;
	if (sodium_init() < 0)
		return hf_fail(e, HF_ESYS, "libsodium does not start");
	in = hf_xcalloc(1, sizeof(*in));
	in->shm = c->shm;
	in->path = hf_xstrdup(c->path);
	rc = c->shm == NULL ? hf_offline_open(&in->db, c->path, e) :
			      hf_db_open(&in->db, c->path, HF_DB_READ, true, e);
	if (rc == 0)
		rc = hf_migrate_check(
		    &in->db, hf_migrations, hf_n_migrations, e);
	if (rc < 0) {
		hf_inspect_close(in);
		return rc;
	}
	in->no_key.code = hf_master_load(&in->seal, c, &in->db, &in->no_key);
	*out = in;
	return 0;
}

void
hf_inspect_close(struct hf_inspect *in)
{
	if (in == NULL)
		return;
	hf_db_close(&in->db);
	hf_seal_clear(&in->seal);
	free(in->path);
	free(in);
}

int
hf_inspect_boot(struct hf_inspect *in, uint64_t *boot, struct hf_error *e)
{
	sqlite3_stmt *st = hf_db_bind(&in->db, HF_SQL_META_GET, e, "z", "boot");
	int rc;

	*boot = 0;
	if (st == NULL)
		return e->code;
	rc = hf_db_step(&in->db, st, e);
	if (rc <= 0)
		return rc;
	*boot = (uint64_t)sqlite3_column_int64(st, 0);
	hf_db_reset(st);
	return 0;
}

enum hf_owner
hf_inspect_owner(
    const struct hf_inspect *in, uint64_t boot, unsigned slot, uint64_t inc)
{
	if (inc == 0 || inc >> 32 != boot)
		return HF_OWNER_DEAD;
	if (in->shm == NULL)
		return HF_OWNER_UNKNOWN;
	return hf_shm_alive(in->shm, slot, inc) ? HF_OWNER_ALIVE :
						  HF_OWNER_DEAD;
}

const char *
hf_inspect_state(int state)
{
	return NAME_OF(turn_states, state);
}

static const char *
text(sqlite3_stmt *st, int col)
{
	return (const char *)sqlite3_column_text(st, col);
}

/* --- sessions ----------------------------------------------------------- */

static int
tell_session(
    struct hf_inspect *in, sqlite3_stmt *st, hf_session_fn cb, void *arg)
{
	struct hf_session_info s = { 0 };
	int state = sqlite3_column_int(st, 6);

	hf_db_id(st, 0, &s.id);
	s.tenant = text(st, 1);
	s.name = text(st, 2);
	s.created_us = sqlite3_column_int64(st, 3);
	s.updated_us = sqlite3_column_int64(st, 4);
	s.turns = sqlite3_column_int64(st, 5);
	s.last_state = hf_inspect_state(state);
	s.last_target = text(st, 7);
	s.owner_slot = (unsigned)sqlite3_column_int64(st, 8);
	s.owner_inc = (uint64_t)sqlite3_column_int64(st, 9);
	s.fence = (uint64_t)sqlite3_column_int64(st, 10);
	s.lock_since_us = sqlite3_column_int64(st, 11);
	s.queued = sqlite3_column_int64(st, 12);
	s.locked = in->shm == NULL ?
	    s.owner_inc != 0 :
	    hf_shm_alive(in->shm, s.owner_slot, s.owner_inc);
	return cb(arg, &s);
}

/* The row of a session by its public id, or 0. */
static int64_t
row_before(struct hf_inspect *in, const char *public, struct hf_error *e)
{
	sqlite3_stmt *st =
	    hf_db_bind(&in->db, HF_SQL_INFO_BY_PUBLIC, e, "z", public);
	int64_t row;
	int rc;

	if (st == NULL)
		return e->code;
	rc = hf_db_step(&in->db, st, e);
	if (rc <= 0)
		return rc;
	row = sqlite3_column_int64(st, 0);
	hf_db_reset(st);
	return row;
}

int
hf_inspect_sessions(struct hf_inspect *in, const struct hf_session_filter *f,
    struct hf_cursor *at, hf_session_fn cb, void *arg, struct hf_error *e)
{
	struct hf_error local;
	int64_t before = INT64_MAX, limit;
	sqlite3_stmt *st;
	int rc;

	e = e == NULL ? &local : e;
	if (at->a != 0) {
		before = at->a;
	} else if (f->before != NULL) {
		before = row_before(in, f->before, e);
		if (before == 0)
			return hf_fail(e, HF_ENOTFOUND,
			    "session %s: not "
			    "found",
			    f->before);
		if (before < 0)
			return (int)before;
	}
	limit = f->limit > 0 ? f->limit : LIST_DEFAULT;
	st = hf_db_bind(
	    &in->db, HF_SQL_INFO_LIST, e, "zii", f->tenant, before, limit);
	if (st == NULL)
		return e->code;
	while ((rc = hf_db_step(&in->db, st, e)) > 0) {
		at->a = sqlite3_column_int64(st, 13);
		if (tell_session(in, st, cb, arg) != 0) {
			hf_db_reset(st);
			return 0;
		}
	}
	return rc;
}

/* Tell the one session that the bound statement finds. */
static int
tell_only(struct hf_inspect *in, enum hf_sql q, const char *key,
    const char *end, const char *tenant, hf_session_fn cb, void *arg,
    struct hf_error *e)
{
	sqlite3_stmt *st = q == HF_SQL_INFO_PREFIX ?
	    hf_db_bind(&in->db, q, e, "zzz", key, end, tenant) :
	    hf_db_bind(&in->db, q, e, "zz", key, tenant);
	int rc, n = 0;

	if (st == NULL)
		return e->code;
	while ((rc = hf_db_step(&in->db, st, e)) > 0)
		n++;
	if (rc < 0)
		return rc;
	if (n == 0)
		return hf_fail(e, HF_ENOTFOUND, "session: not found");
	if (n > 1)
		return hf_fail(e, HF_ECONFLICT, "session: ambiguous");
	rc = hf_db_step(&in->db, st, e);
	if (rc == 0)
		return hf_fail(e, HF_ENOTFOUND, "session: not found");
	if (rc < 0)
		return rc;
	tell_session(in, st, cb, arg);
	hf_db_reset(st);
	return 0;
}

int
hf_inspect_session(struct hf_inspect *in, const char *tenant, const char *key,
    hf_session_fn cb, void *arg, struct hf_error *e)
{
	struct hf_error local;
	char end[HF_ID_SIZE + 2];
	int rc = HF_ENOTFOUND;

	e = e == NULL ? &local : e;
	if (strncmp(key, "ses_", 4) == 0 && strlen(key) < HF_ID_SIZE) {
		snprintf(end, sizeof(end), "%s\x7f", key);
		rc = tell_only(
		    in, HF_SQL_INFO_PREFIX, key, end, tenant, cb, arg, e);
	}
	if (rc == HF_ENOTFOUND)
		rc = tell_only(
		    in, HF_SQL_INFO_NAMED, key, NULL, tenant, cb, arg, e);
	return rc;
}

/* --- one session's insides ---------------------------------------------- */

int
hf_inspect_find(struct hf_inspect *in, const struct hf_id *session,
    int64_t *row, struct hf_seal_key *key, struct hf_error *e)
{
	struct hf_session_row s;
	sqlite3_stmt *st =
	    hf_db_bind(&in->db, HF_SQL_INFO_BY_PUBLIC, e, "z", session->s);
	int rc;

	if (st == NULL)
		return e->code;
	rc = hf_db_step(&in->db, st, e);
	if (rc == 0)
		return hf_fail(
		    e, HF_ENOTFOUND, "session %s: not found", session->s);
	if (rc < 0)
		return rc;
	*row = sqlite3_column_int64(st, 0);
	rc = 0;
	if (key != NULL) {
		rc = hf_row_session_columns(&in->seal, NULL, st, &s, e);
		*key = s.key;
	}
	hf_db_reset(st);
	return rc;
}

static int
tell_turn(sqlite3_stmt *st, hf_turn_fn cb, void *arg)
{
	struct hf_turn_info t = { 0 };
	int state = sqlite3_column_int(st, 4);
	int64_t first = sqlite3_column_int64(st, 15);

	hf_db_id(st, 0, &t.id);
	t.seq = sqlite3_column_int64(st, 1);
	t.parent_seq = sqlite3_column_int64(st, 2);
	t.retry_of_seq = sqlite3_column_int64(st, 3);
	t.state = hf_inspect_state(state);
	t.on_path = sqlite3_column_int(st, 5) != 0;
	t.route = text(st, 6);
	t.stream = sqlite3_column_int(st, 7) != 0;
	t.started_us = sqlite3_column_int64(st, 8);
	t.ended_us = sqlite3_column_int64(st, 9);
	t.finish_reason = text(st, 10);
	t.error_class = text(st, 11);
	t.status = sqlite3_column_int(st, 12);
	t.attempts = sqlite3_column_int64(st, 13);
	t.target = text(st, 14);
	/* Of the answer: of the attempt that others may have gone on from. */
	if (first > 0)
		t.first_token_us = first - t.started_us;
	if (t.ended_us != 0)
		t.total_us = t.ended_us - t.started_us;
	t.said = sqlite3_column_int64(st, 16);
	t.heard = sqlite3_column_int64(st, 17);
	t.gone_us = sqlite3_column_int64(st, 18);
	if (sqlite3_column_int64(st, 19) > 0)
		t.delivered_us = sqlite3_column_int64(st, 19);
	return cb(arg, &t);
}

int
hf_inspect_turns(struct hf_inspect *in, const struct hf_id *session,
    struct hf_cursor *at, hf_turn_fn cb, void *arg, struct hf_error *e)
{
	struct hf_error local;
	sqlite3_stmt *st;
	int64_t row;
	int rc;

	e = e == NULL ? &local : e;
	rc = hf_inspect_find(in, session, &row, NULL, e);
	if (rc < 0)
		return rc;
	st = hf_db_bind(&in->db, HF_SQL_INFO_TURNS, e, "ii", row, at->a);
	if (st == NULL)
		return e->code;
	while ((rc = hf_db_step(&in->db, st, e)) > 0) {
		at->a = sqlite3_column_int64(st, 1);
		if (tell_turn(st, cb, arg) != 0) {
			hf_db_reset(st);
			return 0;
		}
	}
	return rc;
}

/* 1: stop.  Negative: it does not open. */
static int
tell_item(sqlite3_stmt *st, const struct hf_seal_key *key, hf_item_fn cb,
    void *arg, struct hf_error *e)
{
	struct hf_item_info i = { 0 };
	uint8_t chain[HF_DIGEST_SIZE];
	struct hf_item it = { 0 };
	struct hf_arena a;
	int rc;

	hf_arena_init(&a, 0);
	i.turn_seq = sqlite3_column_int64(st, 15);
	rc = hf_item_columns(st, key, i.turn_seq, true, &a, &it, chain, e);
	if (rc == 0) {
		i.idx = it.row & (HF_ROW_MAX - 1);
		i.kind = NAME_OF(item_kinds, it.kind);
		i.role = NAME_OF(item_roles, it.role);
		i.origin = NAME_OF(item_origins, it.origin);
		i.output = sqlite3_column_int(st, 1) != 0;
		i.lead = it.lead;
		i.has_heard = it.has_heard;
		i.body = it.body;
		i.heard = it.heard;
		rc = cb(arg, &i) != 0;
	}
	hf_arena_free(&a);
	return rc;
}

int
hf_inspect_items(struct hf_inspect *in, const struct hf_id *session,
    struct hf_cursor *at, hf_item_fn cb, void *arg, struct hf_error *e)
{
	struct hf_error local;
	struct hf_seal_key key;
	sqlite3_stmt *st;
	int64_t row;
	int rc;

	e = e == NULL ? &local : e;
	if (in->no_key.code < 0) {
		*e = in->no_key;
		return e->code;
	}
	rc = hf_inspect_find(in, session, &row, &key, e);
	if (rc < 0)
		return rc;
	st =
	    hf_db_bind(&in->db, HF_SQL_INFO_ITEMS, e, "iii", row, at->a, at->b);
	if (st == NULL)
		return e->code;
	while ((rc = hf_db_step(&in->db, st, e)) > 0) {
		at->a = sqlite3_column_int64(st, 15);
		at->b = sqlite3_column_int64(st, 0);
		rc = tell_item(st, &key, cb, arg, e);
		if (rc != 0) {
			hf_db_reset(st);
			return rc < 0 ? rc : 0;
		}
	}
	return rc;
}

static int
tell_attempt(sqlite3_stmt *st, hf_attempt_fn cb, void *arg)
{
	struct hf_attempt_info a = { 0 };

	a.turn_seq = sqlite3_column_int64(st, 0);
	a.n = sqlite3_column_int(st, 1);
	a.target = text(st, 2);
	a.cls = text(st, 3);
	a.reason = text(st, 4);
	a.http_status = sqlite3_column_int(st, 5);
	a.started_us = sqlite3_column_int64(st, 6);
	a.first_token_us = sqlite3_column_int64(st, 7);
	a.total_us = sqlite3_column_int64(st, 8);
	a.bytes_out = sqlite3_column_int64(st, 9);
	a.bytes_in = sqlite3_column_int64(st, 10);
	a.tokens_in = sqlite3_column_int64(st, 11);
	a.tokens_out = sqlite3_column_int64(st, 12);
	a.called_us = sqlite3_column_int64(st, 14);
	a.from_bytes = sqlite3_column_int64(st, 15);
	a.tokens_estimated = sqlite3_column_int64(st, 16);
	a.omitted_turns = sqlite3_column_int64(st, 17);
	a.omitted_items = sqlite3_column_int64(st, 18);
	a.items = sqlite3_column_int64(st, 19);
	a.items_of = sqlite3_column_int64(st, 20);
	return cb(arg, &a);
}

int
hf_inspect_attempts(struct hf_inspect *in, const struct hf_id *session,
    struct hf_cursor *at, hf_attempt_fn cb, void *arg, struct hf_error *e)
{
	struct hf_error local;
	sqlite3_stmt *st;
	int64_t row;
	int rc;

	e = e == NULL ? &local : e;
	rc = hf_inspect_find(in, session, &row, NULL, e);
	if (rc < 0)
		return rc;
	st = hf_db_bind(
	    &in->db, HF_SQL_INFO_ATTEMPTS, e, "iii", row, at->a, at->b);
	if (st == NULL)
		return e->code;
	while ((rc = hf_db_step(&in->db, st, e)) > 0) {
		at->a = sqlite3_column_int64(st, 0);
		at->b = sqlite3_column_int64(st, 13);
		if (tell_attempt(st, cb, arg) != 0) {
			hf_db_reset(st);
			return 0;
		}
	}
	return rc;
}

/* --- leases --------------------------------------------------------------- */

static int
tell_lock(struct hf_inspect *in, uint64_t boot, sqlite3_stmt *st, hf_lock_fn cb,
    void *arg)
{
	static const char *const owners[] = { [HF_OWNER_ALIVE] = "alive",
		[HF_OWNER_DEAD] = "dead",
		[HF_OWNER_UNKNOWN] = "unknown" };
	struct hf_lock_info l = { 0 };

	hf_db_id(st, 0, &l.session);
	l.tenant = text(st, 1);
	l.name = text(st, 2);
	l.owner_slot = (unsigned)sqlite3_column_int64(st, 3);
	l.owner_inc = (uint64_t)sqlite3_column_int64(st, 4);
	l.fence = (uint64_t)sqlite3_column_int64(st, 5);
	l.owner = owners[hf_inspect_owner(in, boot, l.owner_slot, l.owner_inc)];
	l.lock_since_us = sqlite3_column_int64(st, 6);
	hf_db_id(st, 7, &l.turn);
	l.turn_seq = sqlite3_column_int64(st, 8);
	if (l.turn_seq != 0)
		l.turn_state = hf_inspect_state(sqlite3_column_int(st, 9));
	l.queued = sqlite3_column_int64(st, 10);
	return cb(arg, &l);
}

int
hf_inspect_locks(struct hf_inspect *in, struct hf_cursor *at, hf_lock_fn cb,
    void *arg, struct hf_error *e)
{
	struct hf_error local;
	sqlite3_stmt *st;
	uint64_t boot;
	int rc;

	e = e == NULL ? &local : e;
	rc = hf_inspect_boot(in, &boot, e);
	if (rc < 0)
		return rc;
	st = hf_db_bind(&in->db, HF_SQL_INFO_LOCKS, e, "i", at->a);
	if (st == NULL)
		return e->code;
	while ((rc = hf_db_step(&in->db, st, e)) > 0) {
		at->a = sqlite3_column_int64(st, 11);
		if (tell_lock(in, boot, st, cb, arg) != 0) {
			hf_db_reset(st);
			return 0;
		}
	}
	return rc;
}

/* --- keys and figures ----------------------------------------------------- */

int
hf_inspect_keys(
    struct hf_inspect *in, hf_key_fn cb, void *arg, struct hf_error *e)
{
	struct hf_error local;
	struct hf_key_info k;
	sqlite3_stmt *st;
	int rc;

	e = e == NULL ? &local : e;
	st = hf_db_bind(&in->db, HF_SQL_KEY_LIST, e, "");
	if (st == NULL)
		return e->code;
	while ((rc = hf_db_step(&in->db, st, e)) > 0) {
		hf_db_id(st, 0, &k.id);
		k.tenant = text(st, 1);
		k.label = text(st, 2);
		k.created_us = sqlite3_column_int64(st, 3);
		k.revoked_us = sqlite3_column_int64(st, 4);
		if (cb(arg, &k) != 0) {
			hf_db_reset(st);
			return 0;
		}
	}
	return rc;
}

static int64_t
size_of(const char *path, const char *suffix)
{
	size_t size = strlen(path) + strlen(suffix) + 1;
	char *name = hf_xcalloc(1, size);
	struct stat sb;
	int rc;

	snprintf(name, size, "%s%s", path, suffix);
	rc = stat(name, &sb);
	free(name);
	return rc < 0 ? 0 : (int64_t)sb.st_size;
}

int
hf_inspect_stats(
    struct hf_inspect *in, struct hf_store_stats *s, struct hf_error *e)
{
	struct hf_error local;
	sqlite3_stmt *st;
	int64_t version = 0;
	int rc;

	e = e == NULL ? &local : e;
	memset(s, 0, sizeof(*s));
	st = hf_db_bind(&in->db, HF_SQL_INFO_STATS, e, "");
	if (st == NULL)
		return e->code;
	rc = hf_db_step(&in->db, st, e);
	if (rc <= 0)
		return rc;
	s->sessions = sqlite3_column_int64(st, 0);
	s->turns = sqlite3_column_int64(st, 1);
	s->items = sqlite3_column_int64(st, 2);
	s->open_turns = sqlite3_column_int64(st, 3);
	s->queued_turns = sqlite3_column_int64(st, 4);
	s->boot = (uint64_t)sqlite3_column_int64(st, 5);
	hf_db_reset(st);
	rc = hf_db_number(&in->db, "PRAGMA user_version", &version, e);
	s->schema_version = (int)version;
	s->db_bytes = size_of(in->path, "");
	s->wal_bytes = size_of(in->path, "-wal");
	return rc;
}
