/*
 * The rest of a turn's life: attempts, parts, T2, and turns that stop
 * waiting.  Public functions run on the loop thread and copy; run_*() on the
 * store thread inside a transaction.
 */
#include <config.h>

#include "store/store.h"

#include <stdlib.h>

#include "base/clock.h"
#include "store/internal.h"
#include "store/lease.h"
#include "store/parts.h"
#include "store/queue.h"

/* One kind of job for all four; the unused members stay zero. */
struct turn_job {
	struct hf_job job;
	struct hf_arena arena; /* owns what the rest points at */
	int64_t session_row, turn_row;
	uint64_t fence;
	struct hf_attempt_end close;
	struct hf_attempt_begin open;
	int64_t part_seq;
	struct hf_str text;
	struct hf_finish f;
	hf_done_fn cb;
	void *arg;
};

/* --- in the transaction ----------------------------------------------- */

static struct turn_job *
job_of(struct hf_job *j)
{
	return hf_container_of(j, struct turn_job, job);
}

static int
close_attempt(struct hf_writer *w, int64_t turn, const struct hf_attempt_end *a,
    struct hf_error *e)
{
	int rc;

	if (a->n == 0)
		return 0;
	rc = hf_db_run(&w->db, HF_SQL_ATTEMPT_CLOSE, e, "iizziiiiiiiiiiiii",
	    hf_row_child(turn, a->n), hf_wall_us(), a->cls, a->reason,
	    (int64_t)a->http_status, a->first_token_us, a->total_us,
	    a->bytes_out, a->bytes_in, a->tokens_in, a->tokens_out,
	    a->called_us, a->tokens_estimated, a->omitted_turns,
	    a->omitted_items, a->items, a->items_of);
	if (rc == 0)
		return hf_fail(e, HF_EINVAL, "attempt %d: not open", a->n);
	return rc < 0 ? rc : 0;
}

/* T2: all attempts of the turn are closed. */
static int
close_attempts(struct hf_writer *w, int64_t turn, const struct hf_finish *f,
    struct hf_error *e)
{
	bool whole = f->state == HF_TURN_COMPLETE;
	int rc = close_attempt(w, turn, &f->attempt, e);

	if (rc == HF_EINVAL && !whole)
		rc = 0;
	if (rc < 0 || (whole && !f->close_rest))
		return rc;
	rc = hf_db_run(&w->db, HF_SQL_ATTEMPT_REST, e, "iii",
	    hf_row_child(turn, 0), hf_row_child(turn + 1, 0), hf_wall_us());
	return rc < 0 ? rc : 0;
}

static int
run_attempts(struct hf_writer *w, struct hf_job *j, struct hf_error *e)
{
	struct turn_job *tj = job_of(j);
	struct hf_session_row s;
	struct hf_turn_row t;
	int rc =
	    hf_row_held(w, tj->session_row, tj->turn_row, tj->fence, &s, &t, e);

	if (rc == 0)
		rc = close_attempt(w, t.id, &tj->close, e);
	if (rc < 0 || tj->open.n == 0)
		return rc;
	rc = hf_db_run(&w->db, HF_SQL_ATTEMPT_ADD, e, "itii",
	    hf_row_child(t.id, tj->open.n), tj->open.target, hf_wall_us(),
	    tj->open.from_bytes);
	return rc < 0 ? rc : 0;
}

static int
run_part(struct hf_writer *w, struct hf_job *j, struct hf_error *e)
{
	struct turn_job *tj = job_of(j);
	struct hf_seal_at at = { HF_SEAL_PART, 0, tj->part_seq };
	struct hf_session_row s;
	struct hf_turn_row t;
	int rc =
	    hf_row_held(w, tj->session_row, tj->turn_row, tj->fence, &s, &t, e);

	if (rc < 0)
		return rc;
	at.seq = t.seq;
	rc = hf_seal_put(w->seal, &s.key, at, tj->text, &w->scratch[0]);
	if (rc < 0)
		return hf_fail(e, rc, "part of %zu bytes", tj->text.size);
	rc = hf_db_run(&w->db, HF_SQL_PART_ADD, e, "ib",
	    hf_row_child(t.id, tj->part_seq), hf_buf_str(&w->scratch[0]));
	return rc < 0 ? rc : 0;
}

/* The message of a long answer, from its parts. */
static int
add_long(struct hf_writer *w, const struct hf_session_row *s,
    struct hf_turn_row *t, const struct hf_finish *f, struct hf_error *e)
{
	const struct hf_parts_text text = {
		.n = f->n_part,
		.rest = f->text_rest,
		.refusal = f->refusal,
		.heard = f->heard,
	};
	size_t size;
	int rc = hf_parts_to_item(w, &s->key, t, &text, &size, e);

	if (rc == 0 && size != f->text_size)
		return hf_fail(e, HF_ECORRUPT,
		    "turn %lld: %zu bytes of text are stored, %zu were said",
		    (long long)t->seq, size, f->text_size);
	return rc;
}

static int
add_output(struct hf_writer *w, const struct hf_session_row *s,
    struct hf_turn_row *t, const struct hf_finish *f, struct hf_error *e)
{
	int rc = f->from_parts ? add_long(w, s, t, f, e) : 0;

	if (rc == 0)
		rc = hf_row_add_items(
		    w, &s->key, t, f->item, f->n_item, true, e);
	if (rc < 0)
		return rc;
	/* The view goes on from what the turn's input left. */
	for (unsigned i = 0; f->from_parts && i < f->n_item; i++)
		hf_row_extend_view(&s->key, t, &f->item[i]);
	if (!f->from_parts && f->n_item > 0) {
		memcpy(t->view, f->view, sizeof(t->view));
		t->view_items = f->view_items;
	}
	return 0;
}

static int
run_finish(struct hf_writer *w, struct hf_job *j, struct hf_error *e)
{
	struct turn_job *tj = job_of(j);
	const struct hf_finish *f = &tj->f;
	struct hf_session_row s;
	struct hf_turn_row t;
	int rc =
	    hf_row_held(w, f->session_row, f->turn_row, f->fence, &s, &t, e);

	if (rc == 0)
		rc = add_output(w, &s, &t, f, e);
	if (rc == 0)
		rc = close_attempts(w, t.id, f, e);
	if (rc < 0)
		return rc;
	rc = hf_db_run(&w->db, HF_SQL_TURN_CLOSE, e, "iiiiddizziiiiiiii", t.id,
	    (int64_t)f->state, t.n_items, t.view_items, t.chain, t.view,
	    hf_wall_us(), f->finish_reason, f->error_class, (int64_t)f->status,
	    f->tokens_in, f->tokens_out, f->tokens_cached, f->tokens_reasoning,
	    f->said, f->heard, f->gone_us);
	if (rc == 0)
		return hf_fail(
		    e, HF_EINVAL, "turn %lld: not open", (long long)t.seq);
	if (rc < 0)
		return rc;
	if (t.has_parts)
		rc = hf_db_run(&w->db, HF_SQL_PART_DROP, e, "ii",
		    hf_row_child(t.id, 0), hf_row_child(t.id + 1, 0));
	if (rc < 0)
		return rc;
	return hf_lease_pass(w, &s,
	    f->drop_from_history && s.head == t.id ? t.parent : s.head, 1, e);
}

static int
run_cancel(struct hf_writer *w, struct hf_job *j, struct hf_error *e)
{
	struct turn_job *tj = job_of(j);
	struct hf_session_row s;
	struct hf_turn_row t;
	int rc = hf_row_turn(w, tj->turn_row, &t, e);

	if (rc < 0)
		return rc;
	if (rc == 0 || t.owner_slot != w->slot || t.owner_inc != w->inc)
		return hf_fail(e, HF_EFENCED,
		    "turn %lld: not a queued turn "
		    "of this process",
		    (long long)tj->turn_row);
	rc = hf_lease_dequeue(w, t.id, HF_TURN_CANCELED, e);
	if (rc == 0)
		rc = hf_row_session(w, t.session, &s, e);
	if (rc <= 0)
		return rc;
	if (s.lease_turn != t.id)
		return 0;
	return hf_lease_pass(w, &s, s.head, 0, e);
}

/* --- on the loop thread ------------------------------------------------ */

static void
done_turn(struct hf_job *j)
{
	struct turn_job *tj = job_of(j);

	tj->cb(tj->arg, j->rc, j->rc < 0 ? &j->err : NULL);
}

static void
free_turn(struct hf_job *j)
{
	struct turn_job *tj = job_of(j);

	hf_arena_free(&tj->arena);
	free(tj);
}

static struct turn_job *
new_job(int (*run)(struct hf_writer *, struct hf_job *, struct hf_error *),
    hf_done_fn cb, void *arg)
{
	struct turn_job *tj = calloc(1, sizeof(*tj));

	if (tj == NULL)
		return NULL;
	tj->job = (struct hf_job){ .step = HF_JOB_OTHER,
		.must = true,
		.run = run,
		.done = done_turn,
		.free = free_turn };
	hf_arena_init(&tj->arena, 0);
	tj->cb = cb;
	tj->arg = arg;
	return tj;
}

static bool
copy_z(struct hf_arena *a, const char **z)
{
	struct hf_str s = hf_str(*z);
	bool ok = hf_store_copy_str(a, &s);

	*z = s.p;
	return ok;
}

static int
submit(
    struct hf_store *st, struct turn_job *tj, bool copied, struct hf_error *e)
{
	if (!copied) {
		free_turn(&tj->job);
		return hf_fail(e, HF_ENOMEM, "store job");
	}
	tj->job.weight =
	    tj->arena.total + (tj->f.from_parts ? tj->f.text_size : (size_t)0);
	return hf_queue_put(st->queue, &tj->job, e);
}

int
hf_store_attempts(struct hf_store *st, int64_t session_row, int64_t turn_row,
    uint64_t fence, const struct hf_attempt_end *close,
    const struct hf_attempt_begin *open, hf_done_fn cb, void *arg,
    struct hf_error *e)
{
	struct turn_job *tj = new_job(run_attempts, cb, arg);
	bool ok = true;

	if (tj == NULL)
		return hf_fail(e, HF_ENOMEM, "store job");
	tj->job.step = HF_JOB_ATTEMPTS;
	tj->session_row = session_row;
	tj->turn_row = turn_row;
	tj->fence = fence;
	if (close != NULL) {
		tj->close = *close;
		ok = copy_z(&tj->arena, &tj->close.cls) &&
		    copy_z(&tj->arena, &tj->close.reason);
	}
	if (open != NULL) {
		tj->open = *open;
		ok = ok && hf_store_copy_str(&tj->arena, &tj->open.target);
	}
	return submit(st, tj, ok, e);
}

int
hf_store_part(struct hf_store *st, int64_t session_row, int64_t turn_row,
    uint64_t fence, int64_t part_seq, struct hf_str text, hf_done_fn cb,
    void *arg, struct hf_error *e)
{
	struct turn_job *tj;

	if (part_seq < 0 || part_seq >= HF_ROW_MAX)
		return hf_fail(e, HF_ELIMIT, "part %lld", (long long)part_seq);
	tj = new_job(run_part, cb, arg);
	if (tj == NULL)
		return hf_fail(e, HF_ENOMEM, "store job");
	tj->job.step = HF_JOB_PART;
	tj->session_row = session_row;
	tj->turn_row = turn_row;
	tj->fence = fence;
	tj->part_seq = part_seq;
	tj->text = text;
	return submit(st, tj, hf_store_copy_str(&tj->arena, &tj->text), e);
}

int
hf_store_finish(struct hf_store *st, const struct hf_finish *f, hf_done_fn cb,
    void *arg, struct hf_error *e)
{
	struct turn_job *tj;
	bool ok;

	if (f->state < HF_TURN_COMPLETE || f->state > HF_TURN_CANCELED)
		return hf_fail(e, HF_EINVAL, "finish: state %d is not an end",
		    (int)f->state);
	tj = new_job(run_finish, cb, arg);
	if (tj == NULL)
		return hf_fail(e, HF_ENOMEM, "store job");
	tj->job.step = HF_JOB_T2;
	tj->job.unhurried = f->unhurried;
	tj->f = *f;
	ok = hf_store_copy_items(&tj->arena, &tj->f.item, f->n_item) &&
	    hf_store_copy_str(&tj->arena, &tj->f.text_rest) &&
	    hf_store_copy_str(&tj->arena, &tj->f.refusal) &&
	    copy_z(&tj->arena, &tj->f.attempt.cls) &&
	    copy_z(&tj->arena, &tj->f.attempt.reason) &&
	    copy_z(&tj->arena, &tj->f.finish_reason) &&
	    copy_z(&tj->arena, &tj->f.error_class);
	return submit(st, tj, ok, e);
}

int
hf_store_cancel_queued(struct hf_store *st, int64_t turn_row, hf_done_fn cb,
    void *arg, struct hf_error *e)
{
	struct turn_job *tj = new_job(run_cancel, cb, arg);

	if (tj == NULL)
		return hf_fail(e, HF_ENOMEM, "store job");
	tj->turn_row = turn_row;
	return submit(st, tj, true, e);
}
