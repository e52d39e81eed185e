/*
 * Taking over the turn of a worker that died: its client's connection lives on
 * with us.  hf_store_adopt() runs on the loop thread and copies; the rest runs
 * on the store thread inside a transaction.
 */
#include <config.h>

#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>

#include "store/internal.h"
#include "store/lease.h"
#include "store/queue.h"

struct adopt_job {
	struct hf_job job;
	struct hf_arena arena; /* owns what 'a' and 'out' point at */
	struct hf_adopt a;
	struct hf_adopted out;
	hf_adopted_fn cb;
	void *arg;
};

void
hf_nameless_session(const struct hf_id *turn, struct hf_id *session)
{
	snprintf(
	    session->s, sizeof(session->s), "ses_%s", hf_id_random_part(turn));
}

/* --- in the transaction ----------------------------------------------- */

/* The session of the turn that stands for the idempotency key. */
static int
session_of_key(struct hf_writer *w, const struct hf_adopt *a,
    struct hf_session_row *s, struct hf_error *e)
{
	sqlite3_stmt *st;
	int64_t id;
	int rc;

	if (!a->has_idem)
		return 0;
	st = hf_db_bind(&w->db, HF_SQL_TURN_BY_IDEM, e, "d", a->idem);
	if (st == NULL)
		return e->code;
	rc = hf_db_step(&w->db, st, e);
	if (rc <= 0)
		return rc;
	id = sqlite3_column_int64(st, 1);
	hf_db_reset(st);
	return hf_row_session(w, id, s, e);
}

/* 1: 's' is the session that the turn would be in. */
static int
find_session(struct hf_writer *w, const struct hf_adopt *a,
    struct hf_session_row *s, struct hf_error *e)
{
	struct hf_id id = { 0 };
	int64_t tenant;
	int rc = hf_row_tenant(w, a->tenant, &tenant, e);

	if (rc <= 0)
		return rc;
	if (a->name.size > 0) {
		rc = hf_row_session_named(w, tenant, a->name, s, e);
		if (rc == 0 && hf_id_valid(a->name, "ses_")) {
			memcpy(id.s, a->name.p, a->name.size);
			rc = hf_row_session_public(w, &id, s, e);
		}
	} else {
		rc = session_of_key(w, a, s, e);
		if (rc == 0) {
			hf_nameless_session(&a->turn, &id);
			rc = hf_row_session_public(w, &id, s, e);
		}
	}
	return rc > 0 && s->key.tenant != tenant ? 0 : rc;
}

/* The turn by its id; what of its row goes out is in 'out'. */
static int
find_turn(struct hf_writer *w, const struct hf_session_row *s,
    const struct hf_adopt *a, struct hf_turn_row *t, struct hf_adopted *out,
    struct hf_error *e)
{
	const int at = HF_ROW_TURN_COLUMNS;
	sqlite3_stmt *st =
	    hf_db_bind(&w->db, HF_SQL_TURN_PUBLIC, e, "iz", s->id, a->turn.s);
	int rc;

	if (st == NULL)
		return e->code;
	rc = hf_db_step(&w->db, st, e);
	if (rc <= 0)
		return rc;
	hf_row_turn_columns(st, 0, t);
	out->found = true;
	out->state = (enum hf_turn_state)t->state;
	out->session_row = s->id;
	out->turn_row = t->id;
	out->seq = t->seq;
	out->session = s->public;
	out->key = s->key.digest;
	out->view_items = t->view_items;
	memcpy(out->view, t->view, sizeof(out->view));
	out->stream = sqlite3_column_int(st, at) != 0;
	out->created_us = sqlite3_column_int64(st, at + 1);
	out->status = sqlite3_column_int(st, at + 2);
	hf_db_reset(st);
	return 1;
}

static int
read_attempts(struct hf_writer *w, const struct hf_turn_row *t,
    struct hf_arena *a, struct hf_adopted *out, struct hf_error *e)
{
	sqlite3_stmt *st = hf_db_bind(&w->db, HF_SQL_ATTEMPT_LAST, e, "ii",
	    hf_row_child(t->id, 0), hf_row_child(t->id + 1, 0));
	int rc;

	if (st == NULL)
		return e->code;
	rc = hf_db_step(&w->db, st, e);
	if (rc <= 0)
		return rc;
	out->attempts = (unsigned)sqlite3_column_int64(st, 0);
	out->target = hf_arena_dup(a, hf_db_str(st, 1));
	out->calling = sqlite3_column_int64(st, 2) == 0;
	out->called_us = sqlite3_column_int64(st, 3);
	hf_db_reset(st);
	return out->target.p == NULL ?
	    hf_fail(
		e, HF_ENOMEM, "turn %lld: its attempts", (long long)t->seq) :
	    0;
}

static int
read_parts(struct hf_writer *w, const struct hf_turn_row *t,
    struct hf_adopted *out, struct hf_error *e)
{
	int64_t from = hf_row_child(t->id, 0), to = hf_row_child(t->id + 1, 0);
	sqlite3_stmt *st;
	int rc;

	/* Of a plain answer nothing was told, so it begins again. */
	if (!out->stream) {
		rc = hf_db_run(&w->db, HF_SQL_PART_DROP, e, "ii", from, to);
		return rc < 0 ? rc : 0;
	}
	st = hf_db_bind(&w->db, HF_SQL_PART_COUNT, e, "ii", from, to);
	if (st == NULL)
		return e->code;
	rc = hf_db_step(&w->db, st, e);
	if (rc <= 0)
		return rc;
	out->parts = sqlite3_column_int64(st, 0);
	hf_db_reset(st);
	return 0;
}

static int
take_open(struct hf_writer *w, struct hf_session_row *s,
    const struct hf_turn_row *t, struct adopt_job *aj, struct hf_error *e)
{
	int rc = read_attempts(w, t, &aj->arena, &aj->out, e);

	if (rc == 0)
		rc = hf_lease_lost(w, t, e);
	if (rc == 0)
		rc = read_parts(w, t, &aj->out, e);
	return rc < 0 ? rc : hf_lease_take_over(w, s, e);
}

static int
take_queued(struct hf_writer *w, struct hf_session_row *s, bool leased,
    const struct hf_turn_row *t, struct adopt_job *aj, struct hf_error *e)
{
	sqlite3_stmt *st =
	    hf_db_bind(&w->db, HF_SQL_TURN_JOINED, e, "i", t->id);
	int rc;

	if (st == NULL)
		return e->code;
	rc = hf_db_step(&w->db, st, e);
	if (rc > 0) {
		aj->out.joins_row = sqlite3_column_int64(st, 0);
		hf_db_reset(st);
	}
	return rc >= 0 && leased ? hf_lease_take_over(w, s, e) : rc;
}

static int
fenced(const struct hf_turn_row *t, struct hf_error *e)
{
	return hf_fail(e, HF_EFENCED, "turn %lld: another process has it",
	    (long long)t->seq);
}

/* The owner may be ourselves: then this is the second try. */
static bool
may_take(const struct hf_writer *w, unsigned slot, uint64_t inc)
{
	return (slot == w->slot && inc == w->inc) ||
	    hf_writer_dead(w, slot, inc);
}

static int
run_adopt(struct hf_writer *w, struct hf_job *j, struct hf_error *e)
{
	struct adopt_job *aj = hf_container_of(j, struct adopt_job, job);
	struct hf_session_row s;
	struct hf_turn_row t;
	bool leased;
	int rc;

	aj->out = (struct hf_adopted){ 0 };
	rc = find_session(w, &aj->a, &s, e);
	if (rc > 0)
		rc = find_turn(w, &s, &aj->a, &t, &aj->out, e);
	if (rc <= 0 || t.state >= HF_TURN_COMPLETE)
		return rc < 0 ? rc : 0;
	leased = s.owner_inc != 0 && s.lease_turn == t.id;
	if (!may_take(w, t.owner_slot, t.owner_inc) ||
	    (leased && !may_take(w, s.owner_slot, s.owner_inc)) ||
	    (!leased && t.state == HF_TURN_OPEN))
		return fenced(&t, e);
	if (t.state == HF_TURN_OPEN)
		rc = take_open(w, &s, &t, aj, e);
	else
		rc = take_queued(w, &s, leased, &t, aj, e);
	aj->out.fence = leased ? s.fence : 0;
	if (rc >= 0)
		rc = hf_db_run(&w->db, HF_SQL_TURN_OWN, e, "iii", t.id,
		    (int64_t)w->slot, (int64_t)w->inc);
	return rc < 0 ? rc : 0;
}

/* --- on the loop thread ------------------------------------------------ */

static void
done_adopt(struct hf_job *j)
{
	struct adopt_job *aj = hf_container_of(j, struct adopt_job, job);

	aj->cb(aj->arg, j->rc, j->rc < 0 ? &j->err : NULL, &aj->out);
}

static void
free_adopt(struct hf_job *j)
{
	struct adopt_job *aj = hf_container_of(j, struct adopt_job, job);

	hf_arena_free(&aj->arena);
	free(aj);
}

int
hf_store_adopt(struct hf_store *st, const struct hf_adopt *a, hf_adopted_fn cb,
    void *arg, struct hf_error *e)
{
	struct adopt_job *aj = calloc(1, sizeof(*aj));
	struct hf_str tenant = hf_str(a->tenant);

	if (aj == NULL)
		return hf_fail(e, HF_ENOMEM, "adoption");
	aj->job = (struct hf_job){ .step = HF_JOB_ADOPT,
		.run = run_adopt,
		.done = done_adopt,
		.free = free_adopt,
		.must = true };
	hf_arena_init(&aj->arena, 0);
	aj->cb = cb;
	aj->arg = arg;
	aj->a = *a;
	if (!hf_store_copy_str(&aj->arena, &tenant) ||
	    !hf_store_copy_str(&aj->arena, &aj->a.name)) {
		free_adopt(&aj->job);
		return hf_fail(e, HF_ENOMEM, "adoption");
	}
	aj->a.tenant = tenant.p;
	return hf_queue_put(st->queue, &aj->job, e);
}
