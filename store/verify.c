/*
 * Verification: does the disk hold what was put there, all of it, and nothing
 * else?  Each session is read in one snapshot.
 *
 * What is proved: every item, part and parameter opens under its session's
 * key at its own place; every item's chain hash follows from its digest and
 * its predecessor's; turns and items are numbered without a gap and as many
 * as their owners say; what a turn says of its input follows from its items.
 * Kind, role and origin of an item stand beside its sealed body and are
 * proved only where the view's chain covers them (lead, anchor, heard).  Of
 * the figures in a turn's row, how much was said and heard, it is looked for
 * whether they can be.
 */
#include <config.h>

#include "store/verify_int.h"

#include <stdarg.h>
#include <stdio.h>

#define FINDINGS_MOST 200  /* of one session */
#define STRAYS_AT_ONCE 500 /* owners looked at in one call */

void
hf_verify_add(struct hf_verify *v, bool corrupt, const char *what, int64_t seq,
    int64_t idx, const char *fmt, ...)
{
	struct hf_finding f = { .severity = corrupt ? "corrupt" : "odd",
		.what = what,
		.turn_seq = seq,
		.idx = idx };
	char text[400];
	va_list ap;

	if (corrupt)
		v->sum->corrupt++;
	else
		v->sum->odd++;
	if (++v->n_found > FINDINGS_MOST)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	f.session = v->s.public.s[0] == '\0' ? NULL : v->s.public.s;
	f.text = v->n_found == FINDINGS_MOST ? "there is more, which is "
					       "counted only" :
					       text;
	v->cb(v->arg, &f);
}

struct hf_vturn *
hf_vturn_find(const struct hf_verify *v, int64_t id)
{
	struct hf_vturn *t;
	size_t n;

	t = hf_vturns(v, &n);
	if (!v->shuffled) {
		size_t lo = 0, hi = n;

		while (lo < hi) {
			size_t mid = lo + (hi - lo) / 2;

			if (t[mid].id == id)
				return &t[mid];
			if (t[mid].id < id)
				lo = mid + 1;
			else
				hi = mid;
		}
		return NULL;
	}
	for (size_t i = n; i > 0; i--)
		if (t[i - 1].id == id)
			return &t[i - 1];
	return NULL;
}

/* --- turns ---------------------------------------------------------------- */

static int
read_turns(struct hf_verify *v)
{
	sqlite3_stmt *st =
	    hf_db_bind(&v->in->db, HF_SQL_VERIFY_TURNS, v->e, "i", v->s.id);
	int64_t last = INT64_MIN;
	int rc;

	if (st == NULL)
		return v->e->code;
	while ((rc = hf_db_step(&v->in->db, st, v->e)) > 0) {
		struct hf_vturn t = { 0 };

		t.id = sqlite3_column_int64(st, 0);
		t.seq = sqlite3_column_int64(st, 1);
		t.parent = sqlite3_column_int64(st, 2);
		t.retry_of = sqlite3_column_int64(st, 3);
		t.state = sqlite3_column_int(st, 4);
		t.n_items = sqlite3_column_int64(st, 5);
		t.view_items = sqlite3_column_int64(st, 6);
		if (!hf_db_digest(st, 7, t.chain) ||
		    !hf_db_digest(st, 8, t.view) ||
		    !hf_db_digest(st, 9, t.lead) ||
		    !hf_db_digest(st, 10, t.input))
			hf_verify_add(v, true, "turn_row", t.seq, -1,
			    "a "
			    "digest in its row has the wrong size");
		t.started_us = sqlite3_column_int64(st, 11);
		t.owner_inc = (uint64_t)sqlite3_column_int64(st, 12);
		/* There may be none: zero. */
		(void)hf_db_digest(st, 13, t.request);
		t.delivered = sqlite3_column_int64(st, 14) > 0;
		t.said = sqlite3_column_int64(st, 15);
		t.heard = sqlite3_column_int64(st, 16);
		t.gone_us = sqlite3_column_int64(st, 17);
		v->shuffled = v->shuffled || t.id < last;
		last = t.id;
		hf_buf_put(&v->turns, &t, sizeof(t));
	}
	if (rc == 0 && !hf_buf_ok(&v->turns))
		rc = hf_fail(v->e, HF_ENOMEM, "turns of a session");
	return rc;
}

/* Numbers 1 to n_turns, each once. */
static void
check_sequence(struct hf_verify *v)
{
	struct hf_vturn *t;
	int64_t want = 1;
	size_t n;

	t = hf_vturns(v, &n);
	for (size_t i = 0; i < n; i++) {
		if (t[i].seq > want)
			hf_verify_add(v, true, "turn_missing", want, -1,
			    t[i].seq == want + 1 ?
				"the turn is missing" :
				"turns %lld to %lld are missing",
			    (long long)want, (long long)t[i].seq - 1);
		else if (t[i].seq < want)
			hf_verify_add(v, true, "turn_number", t[i].seq, -1,
			    "its number is not 1 or more");
		want = t[i].seq + 1;
	}
	if (want - 1 < v->s.n_turns)
		hf_verify_add(v, true, "turn_missing", want, -1,
		    "the last "
		    "turn is %lld, but %lld were begun",
		    (long long)want - 1, (long long)v->s.n_turns);
	else if (want - 1 > v->s.n_turns)
		hf_verify_add(v, true, "turn_number", want - 1, -1,
		    "only "
		    "%lld turns were begun",
		    (long long)v->s.n_turns);
}

static void
note_children(struct hf_verify *v)
{
	struct hf_vturn *t, *parent;
	size_t n;

	t = hf_vturns(v, &n);
	for (size_t i = 0; i < n; i++) {
		parent =
		    t[i].parent == 0 ? NULL : hf_vturn_find(v, t[i].parent);
		if (parent != NULL)
			parent->has_child = true;
	}
}

/* --- leases --------------------------------------------------------------- */

static void
check_owner(struct hf_verify *v, const struct hf_vturn *t)
{
	unsigned long long boot = v->s.owner_inc >> 32;

	if (boot != v->boot)
		hf_verify_add(v, true, "stale_lease", t == NULL ? 0 : t->seq,
		    -1, "its lease is of start %llu, this is start %llu", boot,
		    (unsigned long long)v->boot);
	else if (hf_inspect_owner(v->in, v->boot, v->s.owner_slot,
		     v->s.owner_inc) == HF_OWNER_DEAD)
		hf_verify_add(v, false, "dead_lease", t == NULL ? 0 : t->seq,
		    -1, "the owner of its lease is dead; any turn settles it");
	if (t == NULL || t->state > HF_TURN_OPEN)
		hf_verify_add(v, true, "lease_turn", t == NULL ? 0 : t->seq, -1,
		    "its lease is held for a turn that %s",
		    t == NULL ? "is not there" : "has ended");
}

static void
check_lease(struct hf_verify *v)
{
	const struct hf_vturn *leased =
	    v->s.lease_turn == 0 ? NULL : hf_vturn_find(v, v->s.lease_turn);
	struct hf_vturn *t;
	size_t n;

	if (v->s.owner_inc != 0)
		check_owner(v, leased);
	else if (v->s.lease_turn != 0)
		hf_verify_add(v, true, "lease_turn", 0, -1,
		    "its lease is "
		    "free but names a turn");
	t = hf_vturns(v, &n);
	for (size_t i = 0; i < n; i++) {
		if (t[i].state == HF_TURN_OPEN &&
		    (v->s.owner_inc == 0 || &t[i] != leased))
			hf_verify_add(v, true, "open_turn", t[i].seq, -1,
			    "the turn is open without the session's lease");
		if (t[i].state == HF_TURN_QUEUED &&
		    t[i].owner_inc >> 32 != v->boot)
			hf_verify_add(v, true, "stale_turn", t[i].seq, -1,
			    "it waits for a process of an earlier start");
	}
}

/* --- a session ------------------------------------------------------------ */

/* 1: it has a row and its key opens. */
static int
read_session(struct hf_verify *v, int64_t row)
{
	sqlite3_stmt *st =
	    hf_db_bind(&v->in->db, HF_SQL_SESSION_GET, v->e, "i", row);
	int rc;

	if (st == NULL)
		return v->e->code;
	rc = hf_db_step(&v->in->db, st, v->e);
	if (rc <= 0)
		return rc;
	rc = hf_row_session_columns(&v->in->seal, NULL, st, &v->s, v->e);
	hf_db_reset(st);
	v->sum->sessions++;
	if (rc == HF_ECORRUPT)
		hf_verify_add(v, true, "session_key", 0, -1,
		    "its key does "
		    "not open: nothing in it can be read");
	return rc == HF_ECORRUPT ? 0 : rc < 0 ? rc : 1;
}

static int
check_tenant(struct hf_verify *v)
{
	sqlite3_stmt *st =
	    hf_db_bind(&v->in->db, HF_SQL_VERIFY_TENANT, v->e, "i", v->s.id);
	int rc;

	if (st == NULL)
		return v->e->code;
	rc = hf_db_step(&v->in->db, st, v->e);
	if (rc == 0)
		hf_verify_add(v, true, "tenant", 0, -1,
		    "its tenant is "
		    "missing");
	hf_db_reset(st);
	return rc < 0 ? rc : 0;
}

static int
verify_row(struct hf_verify *v, int64_t row)
{
	struct hf_vturn *t;
	size_t n;
	int rc = read_session(v, row);

	if (rc <= 0)
		return rc;
	rc = check_tenant(v);
	if (rc == 0)
		rc = read_turns(v);
	if (rc < 0)
		return rc;
	check_sequence(v);
	note_children(v);
	hf_verify_path(v);
	t = hf_vturns(v, &n);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = hf_verify_turn(v, &t[i]);
	if (rc == 0 && !hf_buf_ok(&v->items))
		rc = hf_fail(v->e, HF_ENOMEM, "items of a session");
	if (rc < 0)
		return rc;
	check_lease(v);
	hf_verify_view(v);
	return 0;
}

static int
begin(struct hf_verify *v)
{
	int rc;

	if (v->in->no_key.code < 0) {
		*v->e = v->in->no_key;
		return v->e->code;
	}
	if (hf_db_run(&v->in->db, HF_SQL_BEGIN_READ, v->e, "") < 0)
		return v->e->code;
	rc = hf_inspect_boot(v->in, &v->boot, v->e);
	if (rc < 0)
		hf_db_rollback(&v->in->db);
	return rc;
}

/* In one snapshot.  Damage of the file itself, where rows cannot even be
 * read, is a finding too. */
static int
verify_in_snapshot(struct hf_verify *v, int64_t row)
{
	int rc = begin(v);

	if (rc < 0)
		return rc;
	hf_buf_init(&v->turns, HF_BUF_NOCAP);
	hf_buf_init(&v->items, HF_BUF_NOCAP);
	rc = verify_row(v, row);
	if (rc == HF_ECORRUPT) {
		hf_verify_add(v, true, "unreadable", 0, -1, "%s", v->e->text);
		rc = 0;
	}
	hf_buf_free(&v->turns);
	hf_buf_free(&v->items);
	hf_db_rollback(&v->in->db);
	return rc;
}

int
hf_verify_session(struct hf_inspect *in, const struct hf_id *session,
    hf_finding_fn cb, void *arg, struct hf_verified *sum, struct hf_error *e)
{
	struct hf_error local = { 0 };
	struct hf_verify v = { .in = in,
		.cb = cb,
		.arg = arg,
		.sum = sum,
		.e = e == NULL ? &local : e };
	sqlite3_stmt *st =
	    hf_db_bind(&in->db, HF_SQL_INFO_BY_PUBLIC, v.e, "z", session->s);
	int64_t row;
	int rc;

	if (st == NULL)
		return v.e->code;
	rc = hf_db_step(&in->db, st, v.e);
	if (rc == 0)
		return hf_fail(
		    e, HF_ENOTFOUND, "session %s: not found", session->s);
	if (rc < 0)
		return rc;
	row = sqlite3_column_int64(st, 0);
	hf_db_reset(st);
	return verify_in_snapshot(&v, row);
}

/* --- all ------------------------------------------------------------------ */

static const struct {
	enum hf_sql q;
	const char *rows, *owner;
} strays[] = {
	{ HF_SQL_STRAY_TURN, "turns", "session" },
	{ HF_SQL_STRAY_ITEM, "items", "turn" },
	{ HF_SQL_STRAY_PART, "text of a stream", "turn" },
	{ HF_SQL_STRAY_BLOB, "parameters", "turn" },
	{ HF_SQL_STRAY_ATTEMPT, "attempts", "turn" },
};

/* The next owner that rows of this table name.  1: there is one. */
static int
next_owner(struct hf_verify *v, size_t table, int64_t *from)
{
	sqlite3_stmt *st =
	    hf_db_bind(&v->in->db, strays[table].q, v->e, "i", *from);
	int64_t owner;
	bool lost;
	int rc;

	if (st == NULL)
		return v->e->code;
	rc = hf_db_step(&v->in->db, st, v->e);
	if (rc <= 0)
		return rc;
	owner = sqlite3_column_int64(st, 0);
	lost = sqlite3_column_type(st, 1) == SQLITE_NULL;
	hf_db_reset(st);
	if (lost)
		hf_verify_add(v, true, "stray", 0, -1,
		    "%s of %s row %lld, "
		    "which does not exist",
		    strays[table].rows, strays[table].owner, (long long)owner);
	*from = owner + 1;
	return 1;
}

/* Tables are numbered from 1 in at->a once the sessions are done: negative,
 * so that they cannot be taken for a session's row. */
static int
verify_strays(struct hf_verify *v, struct hf_cursor *at)
{
	int rc = begin(v);

	if (rc < 0)
		return rc;
	for (int i = 0; rc == 0 && i < STRAYS_AT_ONCE; i++) {
		size_t table = (size_t)-at->a - 1;

		if (table == hf_countof(strays))
			break;
		rc = next_owner(v, table, &at->b);
		if (rc == 0)
			*at = (struct hf_cursor){ at->a - 1, INT64_MIN >> 20 };
		else if (rc > 0)
			rc = 0;
	}
	hf_db_rollback(&v->in->db);
	if (rc < 0)
		return rc;
	return (size_t)-at->a <= hf_countof(strays);
}

int
hf_verify_next(struct hf_inspect *in, struct hf_cursor *at, hf_finding_fn cb,
    void *arg, struct hf_verified *sum, struct hf_error *e)
{
	struct hf_error local = { 0 };
	struct hf_verify v = { .in = in,
		.cb = cb,
		.arg = arg,
		.sum = sum,
		.e = e == NULL ? &local : e };
	sqlite3_stmt *st;
	int rc;

	if (at->a < 0)
		return verify_strays(&v, at);
	st = hf_db_bind(&in->db, HF_SQL_VERIFY_NEXT, v.e, "i", at->a);
	if (st == NULL)
		return v.e->code;
	rc = hf_db_step(&in->db, st, v.e);
	if (rc < 0)
		return rc;
	if (rc == 0) {
		*at = (struct hf_cursor){ -1, INT64_MIN >> 20 };
		return 1;
	}
	at->a = sqlite3_column_int64(st, 0);
	hf_db_reset(st);
	rc = verify_in_snapshot(&v, at->a);
	return rc < 0 ? rc : 1;
}
