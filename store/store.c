/*
 * Opening and closing the store of a worker.
 */
#include <config.h>

#include "store/store.h"

#include <sodium.h>
#include <stdlib.h>

#include "base/check.h"
#include "store/internal.h"
#include "store/master.h"
#include "store/migrate.h"

static int
open_all(struct hf_store *st, const struct hf_store_conf *c, struct hf_error *e)
{
	int rc = hf_db_open(&st->read, c->path, HF_DB_READ, c->sync_full, e);

	if (rc == 0)
		rc = hf_migrate_check(
		    &st->read, hf_migrations, hf_n_migrations, e);
	if (rc == 0)
		rc = hf_master_load(&st->seal, c, &st->read, e);
	if (rc == 0)
		rc = hf_writer_open(&st->writer, c, HF_DB_WRITE, &st->seal, e);
	if (rc == 0)
		rc = hf_queue_new(&st->queue, &st->writer, e);
	return rc;
}

int
hf_store_open(
    struct hf_store **out, const struct hf_store_conf *c, struct hf_error *e)
{
	struct hf_error local;
	struct hf_store *st;
	int rc;

	*out = NULL;
	e = e == NULL ? &local : e;
	HF_CHECK(c->shm != NULL);
	if (sodium_init() < 0)
		return hf_fail(e, HF_ESYS, "libsodium does not start");
	if (hf_shm_self_inc(c->shm) == 0)
		return hf_fail(e, HF_EINVAL,
		    "store: slot %u of the "
		    "scoreboard has no incarnation",
		    c->shm->self);
	st = hf_xcalloc(1, sizeof(*st));
	st->shm = c->shm;
	st->slot = c->shm->self;
	st->inc = hf_shm_self_inc(c->shm);
	st->opened = hf_seal_opened_new();
	rc = open_all(st, c, e);
	if (rc < 0) {
		hf_store_close(st);
		return rc;
	}
	*out = st;
	return 0;
}

void
hf_store_close(struct hf_store *st)
{
	if (st == NULL)
		return;
	hf_queue_free(st->queue);
	hf_writer_close(&st->writer);
	hf_db_close(&st->read);
	hf_seal_opened_free(st->opened);
	hf_seal_clear(&st->seal);
	free(st);
}

void
hf_store_set_make_body(struct hf_store *st, hf_make_body_fn fn, void *arg)
{
	/* The store thread looks at it only in a job, after this. */
	HF_CHECK(hf_queue_pending(st->queue) == 0);
	st->writer.make_body = fn;
	st->writer.make_body_arg = arg;
}

int
hf_store_event_fd(const struct hf_store *st)
{
	return hf_queue_event_fd(st->queue);
}

int
hf_read_begin(struct hf_store *st, struct hf_error *e)
{
	if (sqlite3_get_autocommit(st->read.h) == 0)
		return 0; /* of an earlier completion */
	return hf_db_run(&st->read, HF_SQL_BEGIN_READ, e, "") < 0 ? e->code : 0;
}

int
hf_read_end(struct hf_store *st, int rc, struct hf_error *e)
{
	if (rc == 0 && st->sharing)
		return 0;
	if (rc == 0 && hf_db_run(&st->read, HF_SQL_COMMIT, e, "") < 0)
		rc = e->code;
	hf_db_rollback(&st->read);
	return rc;
}

void
hf_store_dispatch(struct hf_store *st)
{
	/* The snapshot is made by the first read, after the completions were
	 * taken: none of them is newer. */
	st->sharing = true;
	hf_queue_dispatch(st->queue);
	st->sharing = false;
	if (sqlite3_get_autocommit(st->read.h) == 0 &&
	    hf_db_run(&st->read, HF_SQL_COMMIT, NULL, "") < 0)
		hf_db_rollback(&st->read);
}

void
hf_store_set_later(struct hf_store *st, void (*later)(void *arg), void *arg)
{
	hf_queue_set_later(st->queue, later, arg);
}

void
hf_store_submit(struct hf_store *st)
{
	hf_queue_submit(st->queue);
}

unsigned
hf_store_pending(const struct hf_store *st)
{
	return hf_queue_pending(st->queue);
}

bool
hf_store_copy_str(struct hf_arena *a, struct hf_str *s)
{
	if (s->p == NULL)
		return true;
	*s = hf_arena_dup(a, *s);
	return s->p != NULL;
}

bool
hf_store_copy_items(struct hf_arena *a, const struct hf_item **item, unsigned n)
{
	struct hf_item *to;
	bool ok = true;

	if (n == 0)
		return true;
	to = hf_arena_alloc(a, n * sizeof(*to));
	if (to == NULL)
		return false;
	memcpy(to, *item, n * sizeof(*to));
	for (unsigned i = 0; i < n; i++)
		ok = hf_store_copy_str(a, &to[i].body) &&
		    hf_store_copy_str(a, &to[i].heard) &&
		    hf_store_copy_str(a, &to[i].sidecar) &&
		    hf_store_copy_str(a, &to[i].sidecar_of) && ok;
	*item = to;
	return ok;
}

bool
hf_store_copy_heard(
    struct hf_arena *a, const struct hf_heard **heard, unsigned n)
{
	struct hf_heard *to;
	bool ok = true;

	if (n == 0)
		return true;
	to = hf_arena_alloc(a, n * sizeof(*to));
	if (to == NULL)
		return false;
	memcpy(to, *heard, n * sizeof(*to));
	for (unsigned i = 0; i < n; i++)
		ok = hf_store_copy_str(a, &to[i].body) && ok;
	*heard = to;
	return ok;
}
