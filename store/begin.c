/*
 * T1: a turn begins, waits, or is told to align again.  hf_store_begin() runs
 * on the loop thread and copies; the rest runs on the store thread inside a
 * transaction.
 */
#include <config.h>

#include "store/store.h"

#include <stdlib.h>

#include "base/clock.h"
#include "store/history.h"
#include "store/internal.h"
#include "store/lease.h"
#include "store/queue.h"

/* A longer history would keep the others of its group waiting. */
#define READ_ITEMS_MAX 64
#define READ_BYTES_MAX ((size_t)256 * 1024)

struct begin_job {
	struct hf_job job;
	struct hf_arena arena; /* owns everything in 'b' */
	struct hf_begin b;
	struct hf_begun out;
	struct hf_seal_key key;	 /* OPEN */
	struct hf_arena reading; /* owns 'history' */
	struct hf_history history;
	hf_begun_fn cb;
	void *arg;
};

static const uint8_t zero[HF_DIGEST_SIZE];

/* --- in the transaction ----------------------------------------------- */

static int
apply_heard(struct hf_writer *w, const struct hf_seal_key *key,
    const struct hf_heard *h, struct hf_error *e)
{
	struct hf_turn_row t;
	int rc = hf_row_turn(w, h->item_row >> HF_ROW_SHIFT, &t, e);

	if (rc == 0 || (rc > 0 && t.session != key->session))
		return hf_fail(e, HF_EINVAL,
		    "heard: not an item of this "
		    "session");
	return rc < 0 ? rc : hf_row_heard(w, key, t.seq, h, e);
}

/* An anchor is an item of this session. */
static int
check_anchors(struct hf_writer *w, const struct hf_session_row *s,
    const struct hf_begin *b, struct hf_error *e)
{
	struct hf_turn_row t;
	int rc;

	for (unsigned i = 0; i < b->n_item; i++) {
		if (b->item[i].anchor_row == 0)
			continue;
		rc = hf_row_turn(
		    w, b->item[i].anchor_row >> HF_ROW_SHIFT, &t, e);
		if (rc < 0)
			return rc;
		if (rc == 0 || t.session != s->id ||
		    (b->item[i].anchor_row & (HF_ROW_MAX - 1)) >= t.n_items)
			return hf_fail(e, HF_EINVAL,
			    "anchor: not an item of "
			    "this session");
	}
	return 0;
}

/* Where the path of the new turn goes on: the chain of its parent. */
static int
parent_chain(struct hf_writer *w, const struct hf_session_row *s,
    int64_t parent, uint8_t chain[HF_DIGEST_SIZE], struct hf_error *e)
{
	struct hf_turn_row t;
	int rc;

	memset(chain, 0, HF_DIGEST_SIZE);
	if (parent == 0)
		return 0;
	rc = hf_row_turn(w, parent, &t, e);
	if (rc < 0)
		return rc;
	if (rc == 0 || t.session != s->id || t.state < HF_TURN_COMPLETE)
		return hf_fail(e, HF_EINVAL,
		    "parent: not a turn of this "
		    "session that has ended");
	memcpy(chain, t.chain, HF_DIGEST_SIZE);
	return 0;
}

/* Everything of an opened turn but its own row and the session's. */
static int
add_contents(struct hf_writer *w, const struct hf_seal_key *key,
    struct hf_turn_row *t, const struct hf_begin *b, struct hf_error *e)
{
	int rc = hf_row_add_items(w, key, t, b->item, b->n_item, false, e);

	for (unsigned i = 0; rc == 0 && i < b->n_heard; i++)
		rc = apply_heard(w, key, &b->heard[i], e);
	if (rc == 0)
		rc = hf_row_add_blob(w, key, t, HF_SEAL_PARAMS, b->params, e);
	if (rc < 0 || b->target.size == 0)
		return rc;
	rc = hf_db_run(&w->db, HF_SQL_ATTEMPT_ADD, e, "itii",
	    hf_row_child(t->id, 1), b->target, hf_wall_us(), (int64_t)0);
	return rc < 0 ? rc : 0;
}

/* What the turn's row says of its items is known only after their chain was
 * computed; so the chain is computed ahead of the row, the rows follow. */
static void
chain_ahead(const struct hf_seal_key *key, const struct hf_begin *b,
    uint8_t chain[HF_DIGEST_SIZE])
{
	uint8_t next[HF_DIGEST_SIZE];

	for (unsigned i = 0; i < b->n_item; i++) {
		hf_store_chain(&key->digest, chain, b->item[i].digest, next);
		memcpy(chain, next, HF_DIGEST_SIZE);
	}
}

static struct hf_str
digest_str(const uint8_t d[HF_DIGEST_SIZE])
{
	return (struct hf_str){ (const char *)d, HF_DIGEST_SIZE };
}

/* 'idem': this turn stands for its idempotency key. */
static int
insert_turn(struct hf_writer *w, const struct hf_session_row *s,
    const struct hf_begin *b, enum hf_turn_state state, bool idem,
    const uint8_t chain[HF_DIGEST_SIZE], struct hf_turn_row *t,
    struct hf_error *e)
{
	static const struct hf_str none = { NULL, 0 };
	bool open = state == HF_TURN_OPEN;
	int64_t now = hf_wall_us();
	int rc;

	memset(t, 0, sizeof(*t));
	t->session = s->id;
	t->seq = s->n_turns + 1;
	rc = hf_db_run(&w->db, HF_SQL_TURN_ADD, e, "ziiiiiitiiiiddddiibb",
	    b->turn.s, s->id, t->seq, open ? b->parent_row : (int64_t)0,
	    b->retry_of_row, (int64_t)state, (int64_t)b->stream,
	    b->route.p == NULL ? HF_STR("") : b->route, (int64_t)w->slot,
	    (int64_t)w->inc, open ? (int64_t)b->n_item : (int64_t)0,
	    open ? b->view_items : (int64_t)0, open ? chain : zero,
	    open ? b->view : zero, open ? b->lead_digest : zero,
	    open ? b->input_digest : zero,
	    b->created_us != 0 ? b->created_us : now, open ? now : (int64_t)0,
	    idem ? digest_str(b->idem) : none,
	    b->has_request ? digest_str(b->request_digest) : none);
	if (rc < 0)
		return rc;
	t->id = sqlite3_last_insert_rowid(w->db.h);
	return 0;
}

static int
open_turn(struct hf_writer *w, struct hf_session_row *s, struct begin_job *bj,
    struct hf_error *e)
{
	const struct hf_begin *b = &bj->b;
	uint8_t before[HF_DIGEST_SIZE], after[HF_DIGEST_SIZE];
	struct hf_turn_row t;
	int rc = parent_chain(w, s, b->parent_row, before, e);

	if (rc == 0)
		rc = check_anchors(w, s, b, e);
	if (rc < 0)
		return rc;
	memcpy(after, before, sizeof(after));
	chain_ahead(&s->key, b, after);
	rc = insert_turn(w, s, b, HF_TURN_OPEN, b->has_idem, after, &t, e);
	if (rc < 0)
		return rc;
	memcpy(t.chain, before, sizeof(before));
	rc = add_contents(w, &s->key, &t, b, e);
	if (rc < 0)
		return rc;
	rc = hf_db_run(&w->db, HF_SQL_SESSION_TAKE, e, "iiiiiiii", s->id,
	    s->rev, (int64_t)w->slot, (int64_t)w->inc, (int64_t)(s->fence + 1),
	    hf_wall_us(), t.id, t.seq);
	if (rc < 0)
		return rc;
	if (rc != 1)
		return hf_fail(e, HF_ECORRUPT,
		    "session %s: changed inside a "
		    "transaction",
		    s->public.s);
	bj->key = s->key;
	bj->out = (struct hf_begun){ .result = HF_BEGIN_OPEN,
		.session_row = s->id,
		.turn_row = t.id,
		.seq = t.seq,
		.fence = s->fence + 1,
		.session = s->public };
	return 0;
}

/* A turn of this session with the same request that still runs or waits. */
static int
same_live(struct hf_writer *w, const struct hf_session_row *s,
    const struct hf_begin *b, int64_t *row, struct hf_error *e)
{
	sqlite3_stmt *st = hf_db_bind(
	    &w->db, HF_SQL_TURN_SAME_LIVE, e, "id", s->id, b->request_digest);
	int rc;

	if (st == NULL)
		return e->code;
	while ((rc = hf_db_step(&w->db, st, e)) > 0) {
		struct hf_id public;

		hf_db_id(st, 3, &public);
		if (hf_writer_orphan(w, (unsigned)sqlite3_column_int64(st, 1),
			(uint64_t)sqlite3_column_int64(st, 2), public.s))
			continue;
		*row = sqlite3_column_int64(st, 0);
		hf_db_reset(st);
		return 0;
	}
	return rc;
}

/* 'joins' is the running turn of the same idempotency key; 0: none. */
static int
queue_turn(struct hf_writer *w, struct hf_session_row *s, struct begin_job *bj,
    int64_t joins, struct hf_error *e)
{
	struct hf_turn_row t;
	unsigned waiting;
	int rc = hf_lease_waiting(w, s, &waiting, e);

	if (rc < 0)
		return rc;
	if (waiting >= w->queue_limit)
		return hf_fail(
		    e, HF_ELIMIT, "session: %u turns wait already", waiting);
	if (joins == 0 && bj->b.has_request)
		rc = same_live(w, s, &bj->b, &joins, e);
	if (rc < 0)
		return rc;
	/* The turn that it joins stands for the key. */
	rc = insert_turn(w, s, &bj->b, HF_TURN_QUEUED,
	    bj->b.has_idem && joins == 0, zero, &t, e);
	if (rc == 0)
		rc = hf_row_add_blob(
		    w, &s->key, &t, HF_SEAL_REQUEST, bj->b.request, e);
	if (rc < 0)
		return rc;
	rc = hf_db_run(&w->db, HF_SQL_SESSION_QUEUED, e, "iii", s->id, t.seq,
	    hf_wall_us());
	if (rc < 0)
		return rc;
	bj->out = (struct hf_begun){ .result = HF_BEGIN_QUEUED,
		.session_row = s->id,
		.turn_row = t.id,
		.seq = t.seq,
		.session = s->public,
		.joins_row = joins };
	return 0;
}

static void
say_moved(const struct hf_session_row *s, struct begin_job *bj)
{
	bj->out = (struct hf_begun){ .result = HF_BEGIN_MOVED,
		.session_row = s->id,
		.turn_row = bj->b.turn_row,
		.fence = bj->b.fence,
		.session = s->public };
}

/* What the idempotency key says, if there is one.  *joins: the turn that runs
 * for it.  *moved: it has been answered, or belongs to another session. */
static int
check_idem(struct hf_writer *w, const struct hf_begin *b, int64_t session,
    int64_t *joins, bool *moved, struct hf_error *e)
{
	struct hf_turn_row t = { 0 };
	sqlite3_stmt *st;
	int rc;

	if (!b->has_idem)
		return 0;
	st = hf_db_bind(&w->db, HF_SQL_TURN_BY_IDEM, e, "d", b->idem);
	if (st == NULL)
		return e->code;
	rc = hf_db_step(&w->db, st, e);
	if (rc <= 0)
		return rc;
	t.id = sqlite3_column_int64(st, 0);
	t.session = sqlite3_column_int64(st, 1);
	t.state = sqlite3_column_int(st, 2);
	hf_db_reset(st);
	if (t.state == HF_TURN_COMPLETE || t.session != session)
		*moved = true;
	else if (t.state < HF_TURN_COMPLETE)
		*joins = t.id;
	else /* ended without an answer: the key moves on */
		rc = hf_db_run(&w->db, HF_SQL_TURN_DROP_IDEM, e, "i", t.id);
	return rc < 0 ? rc : 0;
}

/* A queued turn of ours that was granted the lease. */
static int
open_granted(struct hf_writer *w, struct begin_job *bj, struct hf_error *e)
{
	const struct hf_begin *b = &bj->b;
	uint8_t before[HF_DIGEST_SIZE], after[HF_DIGEST_SIZE];
	struct hf_session_row s;
	struct hf_turn_row t;
	int64_t joins = 0; /* can only be this turn itself: it runs now */
	bool moved = false;
	int rc =
	    hf_row_held(w, b->session_row, b->turn_row, b->fence, &s, &t, e);

	if (rc < 0)
		return rc;
	if (t.state != HF_TURN_QUEUED)
		return hf_fail(
		    e, HF_EINVAL, "turn %lld: begun already", (long long)t.seq);
	rc = check_idem(w, b, s.id, &joins, &moved, e);
	if (rc < 0)
		return rc;
	if (s.rev != b->rev || moved) {
		say_moved(&s, bj);
		return 0;
	}
	if (b->has_idem && joins == 0 &&
	    hf_db_run(&w->db, HF_SQL_TURN_SET_IDEM, e, "id", t.id, b->idem) < 0)
		return e->code;
	rc = parent_chain(w, &s, b->parent_row, before, e);
	if (rc == 0)
		rc = check_anchors(w, &s, b, e);
	if (rc < 0)
		return rc;
	memcpy(after, before, sizeof(after));
	chain_ahead(&s.key, b, after);
	rc = hf_db_run(&w->db, HF_SQL_TURN_OPEN, e, "iiiitiiddddi", t.id,
	    b->parent_row, b->retry_of_row, (int64_t)b->stream,
	    b->route.p == NULL ? HF_STR("") : b->route, (int64_t)b->n_item,
	    b->view_items, after, b->view, b->lead_digest, b->input_digest,
	    hf_wall_us());
	if (rc < 0)
		return rc;
	memcpy(t.chain, before, sizeof(before));
	rc = add_contents(w, &s.key, &t, b, e);
	if (rc == 0)
		rc = hf_row_drop_request(w, t.id, e);
	if (rc < 0)
		return rc;
	rc = hf_db_run(&w->db, HF_SQL_SESSION_OPENED, e, "iiiiiii", s.id,
	    (int64_t)w->slot, (int64_t)w->inc, (int64_t)b->fence, s.rev, t.id,
	    hf_wall_us());
	if (rc < 0)
		return rc;
	bj->key = s.key;
	bj->out = (struct hf_begun){ .result = HF_BEGIN_OPEN,
		.session_row = s.id,
		.turn_row = t.id,
		.seq = t.seq,
		.fence = b->fence,
		.session = s.public };
	return 0;
}

static int
create_session(struct hf_writer *w, const struct hf_begin *b, int64_t tenant,
    struct hf_session_row *s, struct hf_error *e)
{
	uint8_t wrapped[HF_WRAPPED_SIZE];
	int rc;

	memset(s, 0, sizeof(*s));
	s->public = b->session;
	s->key.digest = b->key;
	s->key.tenant = tenant;
	hf_seal_derive(&s->key);
	hf_seal_wrap(w->seal, &b->key, tenant, &b->session, wrapped);
	rc = hf_db_run(&w->db, HF_SQL_SESSION_ADD, e, "zitibi", b->session.s,
	    tenant, b->name.size == 0 ? HF_STR_NONE : b->name, w->seal->key_id,
	    (struct hf_str){ (char *)wrapped, sizeof(wrapped) }, hf_wall_us());
	if (rc < 0)
		return rc;
	s->id = sqlite3_last_insert_rowid(w->db.h);
	s->key.session = s->id;
	w->created++;
	return 0;
}

/* 1: 's' is the session that is meant.  0: there is none. */
static int
find_session(struct hf_writer *w, const struct hf_begin *b, int64_t *tenant,
    struct hf_session_row *s, struct hf_error *e)
{
	int rc;

	if (b->session_found)
		return hf_row_session(w, b->session_row, s, e);
	rc = hf_row_tenant_add(w, b->tenant, tenant, e);
	if (rc < 0 || b->name.size == 0)
		return rc < 0 ? rc : 0;
	return hf_row_session_named(w, *tenant, b->name, s, e);
}

static int
run_begin(struct hf_writer *w, struct hf_job *j, struct hf_error *e)
{
	struct begin_job *bj = hf_container_of(j, struct begin_job, job);
	const struct hf_begin *b = &bj->b;
	struct hf_session_row s = { 0 };
	int64_t tenant = 0, joins = 0;
	bool moved = false;
	int rc;

	if (b->turn_row != 0)
		return open_granted(w, bj, e);
	rc = find_session(w, b, &tenant, &s, e);
	if (rc < 0)
		return rc;
	if (rc == 0 && b->session_found) {
		say_moved(&s, bj); /* it is gone */
		return 0;
	}
	if (rc == 0) {
		rc = check_idem(w, b, 0, &joins, &moved, e);
		if (rc < 0 || moved) {
			say_moved(&s, bj);
			return rc;
		}
		rc = create_session(w, b, tenant, &s, e);
		return rc < 0 ? rc : open_turn(w, &s, bj, e);
	}
	rc = hf_lease_tidy(w, &s, e);
	if (rc == 0)
		rc = check_idem(w, b, s.id, &joins, &moved, e);
	if (rc < 0 || moved) {
		say_moved(&s, bj);
		return rc;
	}
	/* The order of arrival counts, whatever the caller knew of the head:
	 * a turn that waits is aligned again when it is granted. */
	if (s.owner_inc != 0)
		return queue_turn(w, &s, bj, joins, e);
	if (!b->session_found || s.rev != b->rev) {
		say_moved(&s, bj);
		return 0;
	}
	return open_turn(w, &s, bj, e);
}

/* --- after the commit -------------------------------------------------- */

static void
read_begun(struct hf_writer *w, struct hf_job *j)
{
	struct begin_job *bj = hf_container_of(j, struct begin_job, job);
	struct hf_error ignored; /* whoever asks again is told */

	if (bj->out.result != HF_BEGIN_OPEN || !bj->b.read_history ||
	    bj->b.view_items > READ_ITEMS_MAX)
		return;
	if (hf_history_read(&w->db, &bj->key, bj->out.turn_row, true,
		&bj->reading, &bj->history, &ignored) == 0)
		bj->out.history = &bj->history;
}

/* --- on the loop thread ------------------------------------------------ */

static void
done_begin(struct hf_job *j)
{
	struct begin_job *bj = hf_container_of(j, struct begin_job, job);

	bj->cb(bj->arg, j->rc, j->rc < 0 ? &j->err : NULL, &bj->out);
}

static void
free_begin(struct hf_job *j)
{
	struct begin_job *bj = hf_container_of(j, struct begin_job, job);

	hf_arena_free(&bj->arena);
	hf_arena_free(&bj->reading);
	free(bj);
}

static bool
copy_begin(struct begin_job *bj, const struct hf_begin *from)
{
	struct hf_begin *b = &bj->b;
	struct hf_str tenant = hf_str(from->tenant);

	*b = *from;
	if (!hf_store_copy_str(&bj->arena, &tenant) ||
	    !hf_store_copy_str(&bj->arena, &b->name) ||
	    !hf_store_copy_str(&bj->arena, &b->params) ||
	    !hf_store_copy_str(&bj->arena, &b->request) ||
	    !hf_store_copy_str(&bj->arena, &b->route) ||
	    !hf_store_copy_str(&bj->arena, &b->target))
		return false;
	b->tenant = tenant.p;
	return hf_store_copy_items(&bj->arena, &b->item, b->n_item) &&
	    hf_store_copy_heard(&bj->arena, &b->heard, b->n_heard);
}

int
hf_store_begin(struct hf_store *st, const struct hf_begin *b, hf_begun_fn cb,
    void *arg, struct hf_error *e)
{
	struct begin_job *bj;

	if (b->tenant == NULL || b->tenant[0] == '\0' ||
	    (b->name.size > 0 && memchr(b->name.p, '\0', b->name.size) != NULL))
		return hf_fail(e, HF_EINVAL,
		    "session: a NUL in its name, or "
		    "no tenant");
	bj = calloc(1, sizeof(*bj));
	if (bj == NULL)
		return hf_fail(e, HF_ENOMEM, "begin");
	bj->job = (struct hf_job){ .step = HF_JOB_T1,
		.run = run_begin,
		.after = read_begun,
		.done = done_begin,
		.free = free_begin,
		.must = b->turn_row != 0 };
	hf_arena_init(&bj->arena, 0);
	hf_arena_init(&bj->reading, READ_BYTES_MAX);
	bj->cb = cb;
	bj->arg = arg;
	if (!copy_begin(bj, b)) {
		free_begin(&bj->job);
		return hf_fail(e, HF_ENOMEM, "begin");
	}
	return hf_queue_put(st->queue, &bj->job, e);
}
