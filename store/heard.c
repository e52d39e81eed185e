/*
 * What was heard: how much of an answer was given to its client, which the
 * turn's row says, and the marks beside the answer's items, which the history
 * goes by.  Public functions run on the loop thread and copy; run_*() on the
 * store thread inside a transaction.
 */
#include <config.h>

#include "store/store.h"

#include <stdlib.h>

#include "base/clock.h"
#include "store/internal.h"
#include "store/queue.h"
#include "store/row.h"

struct heard_job {
	struct hf_job job;
	struct hf_arena arena; /* owns the marks */
	struct hf_heard_note n;
	uint64_t fence; /* of an open turn */
	hf_done_fn cb;
	void *arg;
};

static struct heard_job *
job_of(struct hf_job *j)
{
	return hf_container_of(j, struct heard_job, job);
}

/* --- in the transaction ----------------------------------------------- */

static int
run_gone(struct hf_writer *w, struct hf_job *j, struct hf_error *e)
{
	struct heard_job *hj = job_of(j);
	const struct hf_heard_note *n = &hj->n;
	struct hf_session_row s;
	struct hf_turn_row t;
	int rc =
	    hf_row_held(w, n->session_row, n->turn_row, hj->fence, &s, &t, e);

	if (rc < 0)
		return rc;
	rc = hf_db_run(
	    &w->db, HF_SQL_TURN_GONE, e, "iii", t.id, n->heard, n->gone_us);
	return rc < 0 ? rc : 0;
}

/* 1: a later turn goes on from this one.  Its history is what it is. */
static int
has_child(struct hf_writer *w, const struct hf_turn_row *t, struct hf_error *e)
{
	sqlite3_stmt *st = hf_db_bind(
	    &w->db, HF_SQL_TURN_CHILD, e, "iii", t->session, t->seq, t->id);
	int rc;

	if (st == NULL)
		return e->code;
	rc = hf_db_step(&w->db, st, e);
	if (rc > 0)
		hf_db_reset(st);
	return rc;
}

static int
set_marks(struct hf_writer *w, const struct hf_session_row *s,
    const struct hf_turn_row *t, const struct hf_heard_note *n,
    struct hf_error *e)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n->n_mark; i++)
		rc = hf_row_heard(w, &s->key, t->seq, &n->mark[i], e);
	if (rc < 0)
		return rc;
	rc = hf_db_run(
	    &w->db, HF_SQL_TURN_VIEW, e, "idi", t->id, n->view, n->view_items);
	if (rc >= 0)
		rc = hf_db_run(&w->db, HF_SQL_SESSION_REHEARD, e, "i", s->id);
	return rc < 0 ? rc : 0;
}

static int
run_heard(struct hf_writer *w, struct hf_job *j, struct hf_error *e)
{
	const struct hf_heard_note *n = &job_of(j)->n;
	int64_t now = hf_wall_us();
	struct hf_session_row s;
	struct hf_turn_row t;
	int rc = hf_row_session(w, n->session_row, &s, e);

	if (rc > 0)
		rc = hf_row_turn(w, n->turn_row, &t, e);
	if (rc == 0 || (rc > 0 && t.session != s.id))
		return hf_fail(e, HF_ENOTFOUND,
		    "heard: turn row %lld is not of this session",
		    (long long)n->turn_row);
	if (rc < 0)
		return rc;
	rc = hf_db_run(&w->db, HF_SQL_TURN_TOLD, e, "iiii", t.id,
	    n->delivered ? now : (int64_t)-1, n->heard, n->gone_us);
	if (rc <= 0 || n->n_mark == 0)
		return rc; /* 0: it was delivered whole before */
	rc = has_child(w, &t, e);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	return set_marks(w, &s, &t, n, e);
}

/* --- on the loop thread ------------------------------------------------ */

static void
done_heard(struct hf_job *j)
{
	struct heard_job *hj = job_of(j);

	if (hj->cb != NULL)
		hj->cb(hj->arg, j->rc, j->rc < 0 ? &j->err : NULL);
}

static void
free_heard(struct hf_job *j)
{
	struct heard_job *hj = job_of(j);

	hf_arena_free(&hj->arena);
	free(hj);
}

static struct heard_job *
new_job(int (*run)(struct hf_writer *, struct hf_job *, struct hf_error *),
    const struct hf_heard_note *n, hf_done_fn cb, void *arg)
{
	struct heard_job *hj = calloc(1, sizeof(*hj));

	if (hj == NULL)
		return NULL;
	hj->job = (struct hf_job){ .step = HF_JOB_OTHER,
		.must = true,
		.run = run,
		.done = done_heard,
		.free = free_heard };
	hf_arena_init(&hj->arena, 0);
	hj->n = *n;
	hj->cb = cb;
	hj->arg = arg;
	if (!hf_store_copy_heard(&hj->arena, &hj->n.mark, n->n_mark)) {
		free_heard(&hj->job);
		return NULL;
	}
	hj->job.weight = hj->arena.total;
	return hj;
}

int
hf_store_gone(struct hf_store *st, const struct hf_heard_note *n,
    uint64_t fence, hf_done_fn cb, void *arg, struct hf_error *e)
{
	struct heard_job *hj = new_job(run_gone, n, cb, arg);

	if (hj == NULL)
		return hf_fail(e, HF_ENOMEM, "store job");
	hj->fence = fence;
	return hf_queue_put(st->queue, &hj->job, e);
}

int
hf_store_heard(struct hf_store *st, const struct hf_heard_note *n,
    hf_done_fn cb, void *arg, struct hf_error *e)
{
	struct heard_job *hj = new_job(run_heard, n, cb, arg);

	if (hj == NULL)
		return hf_fail(e, HF_ENOMEM, "store job");
	return hf_queue_put(st->queue, &hj->job, e);
}
