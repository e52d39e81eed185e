/*
 * Reading a session on the loop thread: its head, the client's view of it,
 * and the history that a provider must hear.
 *
 * A history is complete or an error, never shorter: the path must reach the
 * root, every turn must hold as many items as its row says, numbered without
 * a gap, and the chain over all of them must be the one that was stored.
 */
#include <config.h>

#include "store/history.h"

#include <stdlib.h>

#include "store/internal.h"
#include "store/parts.h"
#include "store/row.h"

#define LAST_TURNS 16 /* that may have failed, one after the other */

/* Did the end of the head's answer reach the client?  What is not noted yet is
 * known while its worker lives: it lists what it has not told. */
static bool
was_delivered(const struct hf_store *st, int64_t turn, int64_t delivered_us,
    unsigned slot, uint64_t inc)
{
	if (delivered_us != 0)
		return delivered_us > 0;
	return hf_shm_alive(st->shm, slot, inc) &&
	    !hf_shm_telling(st->shm, slot, turn);
}

static int
head_row(struct hf_store *st, sqlite3_stmt *q, struct hf_head *out,
    struct hf_error *e)
{
	struct hf_session_row s;
	int at = HF_ROW_SESSION_COLUMNS;
	int rc = hf_row_session_columns(&st->seal, st->opened, q, &s, e);

	if (rc < 0)
		return rc;
	out->found = true;
	out->session_row = s.id;
	out->session = s.public;
	out->key = s.key.digest;
	out->rev = s.rev;
	out->head_turn_row = s.head;
	out->busy = hf_shm_alive(st->shm, s.owner_slot, s.owner_inc);
	if (s.head == 0)
		return 0;
	out->head_parent_row = sqlite3_column_int64(q, at);
	out->head_state = (enum hf_turn_state)sqlite3_column_int(q, at + 1);
	out->view_items = sqlite3_column_int64(q, at + 3);
	if (!hf_db_digest(q, at + 2, out->view) ||
	    !hf_db_digest(q, at + 4, out->lead_digest) ||
	    !hf_db_digest(q, at + 5, out->head_input_digest))
		return hf_fail(e, HF_ECORRUPT,
		    "session %s: its head is "
		    "missing",
		    s.public.s);
	out->has_request = hf_db_digest(q, at + 6, out->head_request);
	out->head_delivered =
	    was_delivered(st, s.head, sqlite3_column_int64(q, at + 7),
		(unsigned)sqlite3_column_int64(q, at + 8),
		(uint64_t)sqlite3_column_int64(q, at + 9));
	return 0;
}

int
hf_store_head(struct hf_store *st, const char *tenant, struct hf_str name,
    struct hf_head *out, struct hf_error *e)
{
	struct hf_error local;
	sqlite3_stmt *q;
	int rc = 0;

	e = e == NULL ? &local : e;
	memset(out, 0, sizeof(*out));
	if (name.size > 0) {
		q = hf_db_bind(&st->read,
		    hf_id_valid(name, "ses_") ? HF_SQL_SESSION_HEAD_ID :
						HF_SQL_SESSION_HEAD,
		    e, "zt", tenant, name);
		if (q == NULL)
			return e->code;
		rc = hf_db_step(&st->read, q, e);
		if (rc > 0) {
			rc = head_row(st, q, out, e);
			hf_db_reset(q);
		}
	}
	if (rc == 0 && !out->found)
		hf_store_new_session_key(&out->key);
	return rc;
}

int
hf_store_answered_by(struct hf_store *st, int64_t session_row,
    struct hf_arena *a, struct hf_str *target, struct hf_error *e)
{
	struct hf_error local;
	sqlite3_stmt *q;
	int rc;

	e = e == NULL ? &local : e;
	*target = HF_STR_NONE;
	q = hf_db_bind(&st->read, HF_SQL_SESSION_ANSWERED_BY, e, "ii",
	    session_row, (int64_t)LAST_TURNS);
	if (q == NULL)
		return e->code;
	rc = hf_db_step(&st->read, q, e);
	if (rc <= 0)
		return rc;
	*target = hf_arena_dup(a, hf_db_str(q, 0));
	hf_db_reset(q);
	return target->p == NULL ? hf_fail(e, HF_ENOMEM, "target") : 0;
}

int
hf_store_is_idle_at(struct hf_store *st, int64_t session_row, int64_t turn_row,
    bool *idle, struct hf_error *e)
{
	struct hf_error local;
	sqlite3_stmt *q;
	int rc;

	e = e == NULL ? &local : e;
	*idle = false;
	q = hf_db_bind(
	    &st->read, HF_SQL_SESSION_IDLE_AT, e, "ii", session_row, turn_row);
	if (q == NULL)
		return e->code;
	rc = hf_db_step(&st->read, q, e);
	if (rc <= 0)
		return rc;
	*idle = sqlite3_column_int(q, 0) != 0;
	hf_db_reset(q);
	return 0;
}

/* --- the path ------------------------------------------------------------ */

struct node {
	struct hf_item item;
	uint8_t chain[HF_DIGEST_SIZE]; /* as stored */
	bool skip;		       /* not part of the effective view */
	struct node *after;	       /* in its turn */
	struct node *next;	       /* in the effective view */
	struct node **place;	       /* what points at it there */
};

struct path_turn {
	int64_t id, seq, n_items, parent;
	uint8_t chain[HF_DIGEST_SIZE];
	struct node *first, *last;
};

struct reader {
	struct hf_db *db;
	const struct hf_seal_key *key;
	struct hf_arena *arena;
	bool bodies;
	struct path_turn *turn; /* leaf first */
	size_t n, cap;
	size_t n_items;	   /* of all turns */
	int64_t lead_turn; /* whose lead group is in force */
};

static int
open_blobs(sqlite3_stmt *st, const struct hf_seal_key *key,
    struct hf_seal_at at, struct hf_arena *a, struct hf_item *it)
{
	struct hf_str s;
	int rc;

	at.kind = HF_SEAL_BODY;
	rc = hf_seal_open(key, at, hf_db_str(st, 14), a, &it->body);
	if (rc == 0 && it->has_heard) {
		at.kind = HF_SEAL_HEARD;
		rc = hf_seal_open(key, at, hf_db_str(st, 12), a, &it->heard);
	}
	s = hf_db_str(st, 13);
	if (rc == 0 && s.size > 0) {
		at.kind = HF_SEAL_SIDECAR;
		rc = hf_seal_open(key, at, s, a, &it->sidecar);
		it->sidecar_of = hf_arena_dup(a, hf_db_str(st, 11));
		if (rc == 0 && it->sidecar_of.p == NULL)
			rc = HF_ENOMEM;
	}
	return rc;
}

int
hf_item_columns(sqlite3_stmt *st, const struct hf_seal_key *key, int64_t seq,
    bool bodies, struct hf_arena *a, struct hf_item *it,
    uint8_t chain[HF_DIGEST_SIZE], struct hf_error *e)
{
	struct hf_seal_at at = { HF_SEAL_BODY, seq, 0 };
	int rc = 0;

	it->row = sqlite3_column_int64(st, 0);
	it->turn_row = it->row >> HF_ROW_SHIFT;
	at.idx = it->row & (HF_ROW_MAX - 1);
	it->kind = (enum hf_item_kind)sqlite3_column_int(st, 2);
	it->role = (enum hf_role)sqlite3_column_int(st, 3);
	it->origin = (enum hf_origin)sqlite3_column_int(st, 4);
	it->lead = sqlite3_column_int(st, 5) != 0;
	it->anchor_row = sqlite3_column_int64(st, 6);
	it->has_heard = sqlite3_column_type(st, 10) != SQLITE_NULL;
	if (!hf_db_digest(st, 7, it->digest) || !hf_db_digest(st, 8, chain) ||
	    (it->has_heard && !hf_db_digest(st, 9, it->heard_digest)))
		rc = HF_ECORRUPT;
	if (rc == 0 && bodies)
		rc = open_blobs(st, key, at, a, it);
	if (rc < 0)
		return hf_fail(e, rc, "turn %lld: item %lld does not open",
		    (long long)seq, (long long)at.idx);
	return 0;
}

/* The turn that the current row is of, behind the columns of an item. */
static int
add_turn(struct reader *r, sqlite3_stmt *q, struct hf_error *e)
{
	const int at = HF_ITEM_COLUMNS;
	struct path_turn *t;

	if (sqlite3_column_int64(q, at + 1) != r->key->session)
		return hf_fail(e, r->n == 0 ? HF_ENOTFOUND : HF_ECORRUPT,
		    "turn %lld: not of this session",
		    (long long)sqlite3_column_int64(q, at));
	if (r->n == r->cap) {
		t = hf_arena_bytes(r->arena, 2 * r->cap * sizeof(*t));
		if (t == NULL)
			return hf_fail(
			    e, HF_ENOMEM, "path of over %zu turns", r->cap);
		memcpy(t, r->turn, r->n * sizeof(*t));
		r->turn = t;
		r->cap *= 2;
	}
	t = &r->turn[r->n];
	t->id = sqlite3_column_int64(q, at);
	t->seq = sqlite3_column_int64(q, at + 2);
	t->parent = sqlite3_column_int64(q, at + 3);
	t->n_items = sqlite3_column_int64(q, at + 4);
	if (t->n_items < 0 || t->n_items > HF_ROW_MAX ||
	    !hf_db_digest(q, at + 5, t->chain))
		return hf_fail(e, HF_ECORRUPT, "turn %lld: its row is damaged",
		    (long long)t->seq);
	t->first = t->last = NULL;
	r->n++;
	return 0;
}

static int
add_item(struct reader *r, sqlite3_stmt *q, int64_t idx, struct hf_error *e)
{
	struct path_turn *t = &r->turn[r->n - 1];
	struct node *n;
	int rc;

	if (idx >= t->n_items ||
	    sqlite3_column_int64(q, 0) != hf_row_child(t->id, idx))
		return hf_fail(e, HF_ECORRUPT,
		    "turn %lld: item %lld is "
		    "missing or one too many",
		    (long long)t->seq, (long long)idx);
	n = hf_arena_alloc(r->arena, sizeof(*n));
	if (n == NULL)
		return hf_fail(
		    e, HF_ENOMEM, "history of over %zu items", r->n_items);
	rc = hf_item_columns(
	    q, r->key, t->seq, r->bodies, r->arena, &n->item, n->chain, e);
	if (rc < 0)
		return rc;
	/* An item that was not heard at all has an empty sealed 'heard'. */
	n->skip = n->item.lead ||
	    (n->item.has_heard &&
		sqlite3_column_int64(q, 10) <= HF_SEAL_OVERHEAD);
	if (t->last == NULL)
		t->first = n;
	else
		t->last->after = n;
	t->last = n;
	r->n_items++;
	return 0;
}

/* One turn with its items: a row for each, or one without an item. */
static int
read_turn(struct reader *r, int64_t turn, struct hf_error *e)
{
	sqlite3_stmt *q = hf_db_bind(r->db,
	    r->bodies ? HF_SQL_PATH_READ : HF_SQL_PATH_VIEW, e, "i", turn);
	int64_t idx = 0;
	bool any = false;
	int rc;

	if (q == NULL)
		return e->code;
	while ((rc = hf_db_step(r->db, q, e)) > 0) {
		rc = any ? 0 : add_turn(r, q, e);
		any = true;
		if (rc == 0 && sqlite3_column_type(q, 0) != SQLITE_NULL)
			rc = add_item(r, q, idx++, e);
		if (rc < 0) {
			hf_db_reset(q);
			return rc;
		}
	}
	if (rc < 0)
		return rc;
	if (!any && r->n > 0)
		return hf_fail(e, HF_ECORRUPT,
		    "turn %lld: the turn before it is missing",
		    (long long)r->turn[r->n - 1].seq);
	if (!any)
		return hf_fail(e, HF_ENOTFOUND, "turn row %lld: not found",
		    (long long)turn);
	if (idx != r->turn[r->n - 1].n_items)
		return hf_fail(e, HF_ECORRUPT,
		    "turn %lld: item %lld is missing",
		    (long long)r->turn[r->n - 1].seq, (long long)idx);
	return 0;
}

/* From the leaf to the root. */
static int
read_path(struct reader *r, int64_t turn, struct hf_error *e)
{
	const struct path_turn *t;
	int rc = 0;

	while (rc == 0 && turn != 0) {
		rc = read_turn(r, turn, e);
		if (rc < 0)
			break;
		t = &r->turn[r->n - 1];
		/* Parents are older than their children. */
		if (t->parent >= turn)
			rc = hf_fail(e, HF_ECORRUPT,
			    "turn %lld: the turn before it is younger",
			    (long long)t->seq);
		turn = t->parent;
	}
	return rc;
}

/* Does every item follow what is before it, from the root on?  Also finds the
 * lead group in force. */
static int
check_chain(struct reader *r, struct hf_error *e)
{
	uint8_t chain[HF_DIGEST_SIZE] = { 0 }, next[HF_DIGEST_SIZE];

	for (size_t i = r->n; i > 0; i--) {
		const struct path_turn *t = &r->turn[i - 1];
		const struct node *n;

		for (n = t->first; n != NULL; n = n->after) {
			hf_store_chain(
			    &r->key->digest, chain, n->item.digest, next);
			if (memcmp(next, n->chain, sizeof(next)) != 0)
				return hf_fail(e, HF_ECORRUPT,
				    "turn %lld: item %lld does not follow "
				    "what is before it",
				    (long long)t->seq,
				    (long long)(n->item.row &
					(HF_ROW_MAX - 1)));
			memcpy(chain, next, sizeof(chain));
			if (n->item.lead)
				r->lead_turn = t->id;
		}
		if (memcmp(chain, t->chain, sizeof(chain)) != 0)
			return hf_fail(e, HF_ECORRUPT,
			    "turn %lld: item %lld is not the one that was "
			    "stored",
			    (long long)t->seq, (long long)t->n_items);
	}
	return 0;
}

/* --- the effective view -------------------------------------------------- */

static struct node *
find_node(struct reader *r, int64_t row)
{
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		struct node *n = r->turn[mid].first;

		if (r->turn[mid].id == row >> HF_ROW_SHIFT) {
			while (n != NULL && n->item.row != row)
				n = n->after;
			return n;
		}
		if (r->turn[mid].id > row >> HF_ROW_SHIFT)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* As stored, but an item with an anchor stands before it (after others with
 * the same anchor). */
static void
link_node(struct reader *r, struct node *n, struct node ***tail)
{
	struct node *anchor =
	    n->item.anchor_row == 0 ? NULL : find_node(r, n->item.anchor_row);

	/* Off this branch, or not before itself: as stored. */
	if (anchor != NULL && anchor->item.row < n->item.row) {
		n->place = anchor->place;
		anchor->place = &n->next;
	} else {
		n->place = *tail;
		*tail = &n->next;
	}
	n->next = *n->place;
	*n->place = n;
}

static struct node *
link_nodes(struct reader *r)
{
	struct node *first = NULL, **tail = &first, *n;

	for (size_t i = r->n; i > 0; i--)
		for (n = r->turn[i - 1].first; n != NULL; n = n->after)
			link_node(r, n, &tail);
	return first;
}

static void
collect_lead(struct reader *r, struct hf_history *out)
{
	const struct node *n;

	for (size_t i = 0; i < r->n; i++)
		if (r->turn[i].id == r->lead_turn)
			for (n = r->turn[i].first; n != NULL; n = n->after)
				if (n->item.lead)
					out->item[out->n++] = n->item;
}

static int
collect(struct reader *r, struct hf_history *out, struct hf_error *e)
{
	out->item =
	    hf_arena_bytes(r->arena, (r->n_items + 1) * sizeof(*out->item));
	if (out->item == NULL)
		return hf_fail(
		    e, HF_ENOMEM, "history of %zu items", r->n_items);
	if (r->bodies && r->lead_turn != 0)
		collect_lead(r, out);
	for (struct node *n = link_nodes(r); n != NULL; n = n->next)
		if (!n->skip)
			out->item[out->n++] = n->item;
	return 0;
}

int
hf_store_session_key(struct hf_store *st, int64_t session,
    struct hf_seal_key *key, struct hf_error *e)
{
	struct hf_session_row s;
	sqlite3_stmt *q =
	    hf_db_bind(&st->read, HF_SQL_SESSION_GET, e, "i", session);
	int rc;

	if (q == NULL)
		return e->code;
	rc = hf_db_step(&st->read, q, e);
	if (rc == 0)
		return hf_fail(e, HF_ENOTFOUND, "session row %lld: not found",
		    (long long)session);
	if (rc < 0)
		return rc;
	rc = hf_row_session_columns(&st->seal, st->opened, q, &s, e);
	hf_db_reset(q);
	*key = s.key;
	return rc;
}

int
hf_history_read(struct hf_db *db, const struct hf_seal_key *key, int64_t turn,
    bool bodies, struct hf_arena *a, struct hf_history *out, struct hf_error *e)
{
	struct path_turn few[16];
	struct reader r = { .db = db,
		.key = key,
		.arena = a,
		.bodies = bodies,
		.turn = few,
		.cap = hf_countof(few) };
	int rc;

	memset(out, 0, sizeof(*out));
	rc = read_path(&r, turn, e);
	if (rc == 0)
		rc = check_chain(&r, e);
	return rc == 0 ? collect(&r, out, e) : rc;
}

/* All of it in one snapshot; the statements are done when it returns. */
static int
read_history(struct hf_store *st, int64_t session, int64_t turn, bool bodies,
    struct hf_arena *a, struct hf_history *out, struct hf_error *e)
{
	struct hf_seal_key key;
	struct hf_error local;
	int rc;

	e = e == NULL ? &local : e;
	memset(out, 0, sizeof(*out));
	rc = hf_read_begin(st, e);
	if (rc < 0)
		return rc;
	rc = hf_store_session_key(st, session, &key, e);
	if (rc == 0)
		rc = hf_history_read(&st->read, &key, turn, bodies, a, out, e);
	return hf_read_end(st, rc, e);
}

int
hf_store_view(struct hf_store *st, int64_t session_row, int64_t turn_row,
    struct hf_arena *a, struct hf_history *out, struct hf_error *e)
{
	return read_history(st, session_row, turn_row, false, a, out, e);
}

int
hf_store_history(struct hf_store *st, int64_t session_row, int64_t turn_row,
    struct hf_arena *a, struct hf_history *out, struct hf_error *e)
{
	return read_history(st, session_row, turn_row, true, a, out, e);
}

int
hf_store_text(struct hf_store *st, int64_t session_row, int64_t turn_row,
    int64_t seq, struct hf_buf *out, struct hf_error *e)
{
	struct hf_error local;
	struct hf_seal_key key;
	int rc;

	e = e == NULL ? &local : e;
	rc = hf_store_session_key(st, session_row, &key, e);
	return rc < 0 ?
	    rc :
	    hf_parts_read(&st->read, &key, turn_row, seq, HF_PARTS_ALL, out, e);
}

static int
turn_by(struct hf_store *st, sqlite3_stmt *q, int64_t *row, struct hf_error *e)
{
	int rc = q == NULL ? e->code : hf_db_step(&st->read, q, e);

	if (rc <= 0)
		return rc < 0 ? rc : hf_fail(e, HF_ENOTFOUND, "no such turn");
	*row = sqlite3_column_int64(q, 0);
	hf_db_reset(q);
	return 0;
}

int
hf_store_find_turn(struct hf_store *st, int64_t session_row,
    struct hf_str which, int64_t *turn_row, struct hf_error *e)
{
	struct hf_error local;
	struct hf_id id = { 0 };
	int64_t seq = 0;

	e = e == NULL ? &local : e;
	if (hf_id_valid(which, "turn_")) {
		memcpy(id.s, which.p, which.size);
		return turn_by(st,
		    hf_db_bind(&st->read, HF_SQL_TURN_PUBLIC, e, "iz",
			session_row, id.s),
		    turn_row, e);
	}
	for (size_t i = 0; i < which.size; i++) {
		if (which.p[i] < '0' || which.p[i] > '9' || i > 15)
			return hf_fail(e, HF_ENOTFOUND, "no such turn");
		seq = seq * 10 + (which.p[i] - '0');
	}
	return turn_by(st,
	    hf_db_bind(&st->read, HF_SQL_TURN_SEQ, e, "ii", session_row, seq),
	    turn_row, e);
}

int
hf_store_follow(struct hf_store *st, int64_t session_row, int64_t turn_row,
    int64_t *part, size_t most, enum hf_turn_state *state, struct hf_buf *text,
    struct hf_error *e)
{
	struct hf_error local;
	struct hf_seal_key key;
	struct hf_turn_row t = { 0 };
	sqlite3_stmt *q;
	int rc;

	e = e == NULL ? &local : e;
	q = hf_db_bind(&st->read, HF_SQL_TURN_GET, e, "i", turn_row);
	if (q == NULL)
		return e->code;
	rc = hf_db_step(&st->read, q, e);
	if (rc > 0) {
		hf_row_turn_columns(q, 0, &t);
		hf_db_reset(q);
	}
	if (rc == 0 || (rc > 0 && t.session != session_row))
		return hf_fail(e, HF_ENOTFOUND, "no such turn");
	if (rc < 0)
		return rc;
	*state = (enum hf_turn_state)t.state;
	if (t.state != HF_TURN_OPEN)
		return 0;
	rc = hf_store_session_key(st, session_row, &key, e);
	return rc < 0 ? rc :
			hf_parts_read_on(&st->read, &key, turn_row, t.seq, part,
			    most, text, e);
}

int
hf_store_granted(
    struct hf_store *st, hf_granted_fn cb, void *arg, struct hf_error *e)
{
	struct hf_error local;
	struct grant {
		int64_t turn;
		uint64_t fence;
	} *g = NULL;
	size_t n = 0, cap = 0;
	sqlite3_stmt *q;
	int rc;

	e = e == NULL ? &local : e;
	q = hf_db_bind(&st->read, HF_SQL_TURN_GRANTED, e, "ii",
	    (int64_t)st->slot, (int64_t)st->inc);
	if (q == NULL)
		return e->code;
	/* The callback may use the store: end the statement first. */
	while ((rc = hf_db_step(&st->read, q, e)) > 0) {
		if (n == cap) {
			struct grant *more =
			    realloc(g, (cap + 16) * sizeof(*g));

			if (more == NULL) {
				hf_db_reset(q);
				rc = hf_fail(e, HF_ENOMEM, "grants");
				break;
			}
			g = more;
			cap += 16;
		}
		g[n].turn = sqlite3_column_int64(q, 0);
		g[n++].fence = (uint64_t)sqlite3_column_int64(q, 1);
	}
	for (size_t i = 0; rc == 0 && i < n; i++)
		cb(arg, g[i].turn, g[i].fence);
	free(g);
	return rc;
}
