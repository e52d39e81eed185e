/*
 * Retries: recognizing a request that came before, reading what it was
 * answered, and remembering which answers were handed over.
 */
#include <config.h>

#include "store/store.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "store/history.h"
#include "store/internal.h"
#include "store/queue.h"
#include "store/row.h"

void
hf_store_request_digest(const struct hf_store *st, const char *tenant,
    struct hf_str what, struct hf_str bytes, uint8_t out[HF_DIGEST_SIZE])
{
	uint8_t inner[HF_DIGEST_SIZE];
	struct hf_buf b;

	/* The bytes may be many: hash them where they are, then the rest. */
	hf_seal_request_hash(&st->seal, bytes, inner);
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_put(&b, tenant, strlen(tenant) + 1);
	hf_buf_put(&b, inner, sizeof(inner));
	hf_buf_putstr(&b, what);
	HF_CHECK(hf_buf_ok(&b));
	hf_seal_request_hash(&st->seal, hf_buf_str(&b), out);
	hf_buf_free(&b);
}

int
hf_store_earlier(struct hf_store *st, const uint8_t idem[HF_DIGEST_SIZE],
    const uint8_t request[HF_DIGEST_SIZE], struct hf_earlier *out,
    struct hf_error *e)
{
	struct hf_error local;
	uint8_t stored[HF_DIGEST_SIZE];
	struct hf_str public;
	sqlite3_stmt *q;
	int rc;

	e = e == NULL ? &local : e;
	memset(out, 0, sizeof(*out));
	q = hf_db_bind(&st->read, HF_SQL_TURN_BY_IDEM, e, "d", idem);
	if (q == NULL)
		return e->code;
	rc = hf_db_step(&st->read, q, e);
	if (rc <= 0)
		return rc;
	out->found = true;
	out->turn_row = sqlite3_column_int64(q, 0);
	out->session_row = sqlite3_column_int64(q, 1);
	out->state = (enum hf_turn_state)sqlite3_column_int(q, 2);
	out->same = hf_db_digest(q, 5, stored) &&
	    memcmp(stored, request, sizeof(stored)) == 0;
	public = hf_db_str(q, 6);
	if (public.size >= HF_ID_SIZE)
		rc = hf_fail(e, HF_ECORRUPT, "session: its id is damaged");
	else
		memcpy(out->session.s, public.p, public.size);
	hf_db_reset(q);
	return rc < 0 ? rc : 0;
}

/* --- what was answered --------------------------------------------------- */

static bool
copy_id(sqlite3_stmt *q, int col, struct hf_id *id)
{
	struct hf_str s = hf_db_str(q, col);

	if (s.size >= HF_ID_SIZE)
		return false;
	memcpy(id->s, s.p, s.size);
	return true;
}

static int
answer_row(sqlite3_stmt *q, struct hf_arena *a, struct hf_stored_answer *out,
    int64_t *n_items, struct hf_error *e)
{
	if (!copy_id(q, 0, &out->turn) || !copy_id(q, 1, &out->session))
		return hf_fail(e, HF_ECORRUPT, "turn: its id is damaged");
	out->seq = sqlite3_column_int64(q, 2);
	out->state = (enum hf_turn_state)sqlite3_column_int(q, 3);
	out->created_us = sqlite3_column_int64(q, 4);
	out->finish_reason = hf_arena_dup(a, hf_db_str(q, 5));
	out->tokens_in = sqlite3_column_int64(q, 6);
	out->tokens_out = sqlite3_column_int64(q, 7);
	out->tokens_cached = sqlite3_column_int64(q, 8);
	out->tokens_reasoning = sqlite3_column_int64(q, 9);
	*n_items = sqlite3_column_int64(q, 10);
	out->attempts = (unsigned)sqlite3_column_int64(q, 11);
	out->target = hf_arena_dup(a, hf_db_str(q, 12));
	out->said = sqlite3_column_int64(q, 13);
	out->heard = sqlite3_column_int64(q, 14);
	out->route = hf_arena_dup(a, hf_db_str(q, 15));
	out->status = sqlite3_column_int(q, 16);
	out->omitted_turns = sqlite3_column_int64(q, 17);
	out->omitted_items = sqlite3_column_int64(q, 18);
	if (out->finish_reason.p == NULL || out->target.p == NULL ||
	    out->route.p == NULL || *n_items < 0 || *n_items > HF_ROW_MAX)
		return hf_fail(e, HF_ECORRUPT, "turn %lld: its row is damaged",
		    (long long)out->seq);
	return 0;
}

static int
answer_items(struct hf_store *st, const struct hf_seal_key *key,
    int64_t turn_row, int64_t n_items, struct hf_arena *a,
    struct hf_stored_answer *out, struct hf_error *e)
{
	uint8_t chain[HF_DIGEST_SIZE];
	sqlite3_stmt *q;
	int64_t n = 0;
	int rc;

	out->item =
	    hf_arena_alloc(a, ((size_t)n_items + 1) * sizeof(*out->item));
	if (out->item == NULL)
		return hf_fail(
		    e, HF_ENOMEM, "answer of %lld items", (long long)n_items);
	q = hf_db_bind(&st->read, HF_SQL_ITEM_READ, e, "ii",
	    hf_row_child(turn_row, 0), hf_row_child(turn_row + 1, 0));
	if (q == NULL)
		return e->code;
	while ((rc = hf_db_step(&st->read, q, e)) > 0) {
		if (n++ == n_items) {
			rc = HF_ECORRUPT;
			break;
		}
		if (sqlite3_column_int(q, 1) == 0)
			continue; /* input */
		rc = hf_item_columns(q, key, out->seq, true, a,
		    &out->item[out->n_item], chain, e);
		if (rc < 0) {
			hf_db_reset(q);
			return rc;
		}
		out->n_item++;
	}
	hf_db_reset(q);
	if (rc == HF_ECORRUPT || (rc == 0 && n != n_items))
		return hf_fail(e, HF_ECORRUPT,
		    "turn %lld: an item is missing "
		    "or one too many",
		    (long long)out->seq);
	return rc;
}

int
hf_store_answer(struct hf_store *st, int64_t session_row, int64_t turn_row,
    struct hf_arena *a, struct hf_stored_answer *out, struct hf_error *e)
{
	struct hf_error local;
	struct hf_seal_key key;
	int64_t n_items = 0;
	sqlite3_stmt *q;
	int rc;

	e = e == NULL ? &local : e;
	memset(out, 0, sizeof(*out));
	q = hf_db_bind(
	    &st->read, HF_SQL_TURN_ANSWER, e, "ii", turn_row, session_row);
	if (q == NULL)
		return e->code;
	rc = hf_db_step(&st->read, q, e);
	if (rc == 0)
		return hf_fail(e, HF_ENOTFOUND, "turn row %lld: not found",
		    (long long)turn_row);
	if (rc < 0)
		return rc;
	rc = answer_row(q, a, out, &n_items, e);
	hf_db_reset(q);
	if (rc < 0 || out->state < HF_TURN_COMPLETE)
		return rc;
	rc = hf_store_session_key(st, session_row, &key, e);
	out->key = key.digest;
	return rc < 0 ? rc :
			answer_items(st, &key, turn_row, n_items, a, out, e);
}

/* --- what was handed over ------------------------------------------------ */

struct delivered_job {
	struct hf_job job;
	hf_done_fn cb; /* NULL: nobody waits */
	void *arg;
	unsigned n;
	int64_t row[];
};

static int
run_delivered(struct hf_writer *w, struct hf_job *j, struct hf_error *e)
{
	struct delivered_job *dj =
	    hf_container_of(j, struct delivered_job, job);
	int64_t now = hf_wall_us();
	int rc = 0;

	for (unsigned i = 0; rc >= 0 && i < dj->n; i++)
		rc = hf_db_run(
		    &w->db, HF_SQL_TURN_DELIVERED, e, "ii", dj->row[i], now);
	return rc < 0 ? rc : 0;
}

static void
done_delivered(struct hf_job *j)
{
	struct delivered_job *dj =
	    hf_container_of(j, struct delivered_job, job);

	if (dj->cb != NULL)
		dj->cb(dj->arg, j->rc, j->rc < 0 ? &j->err : NULL);
}

static void
free_delivered(struct hf_job *j)
{
	free(hf_container_of(j, struct delivered_job, job));
}

int
hf_store_delivered(struct hf_store *st, const int64_t *turn_row, unsigned n,
    hf_done_fn cb, void *arg, struct hf_error *e)
{
	struct delivered_job *dj =
	    calloc(1, sizeof(*dj) + n * sizeof(dj->row[0]));

	if (dj == NULL)
		return hf_fail(e, HF_ENOMEM, "store job");
	dj->job = (struct hf_job){ .step = HF_JOB_OTHER,
		.run = run_delivered,
		.done = done_delivered,
		.free = free_delivered };
	dj->cb = cb;
	dj->arg = arg;
	dj->n = n;
	memcpy(dj->row, turn_row, n * sizeof(dj->row[0]));
	return hf_queue_put(st->queue, &dj->job, e);
}
