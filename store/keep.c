/*
 * The keeper's part of the store: opening with migrations, recovery, reaping,
 * checkpoints, API keys.  One thread, blocking calls, each write in one
 * transaction under the writer mutex.
 */
#include <config.h>

#include "store/keep.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "store/auth.h"
#include "store/lease.h"
#include "store/master.h"
#include "store/migrate.h"
#include "store/writer.h"

/* Turns settled per transaction: other writers get in between. */
#define SETTLE_BATCH 256
/* A WAL file is a header and frames of a page and its header. */
#define WAL_HEADER 32
#define WAL_FRAME (4096 + 24)

struct hf_keep {
	struct hf_writer w;
	struct hf_seal seal;
	char *wal_path;
};

static int
prepare(struct hf_writer *w, void *arg, struct hf_error *e)
{
	return hf_master_load_or_make(w->seal, arg, &w->db, e);
}

static int
migrate(struct hf_keep *k, struct hf_error *e)
{
	int rc = hf_writer_lock(&k->w, e);

	if (rc < 0)
		return rc;
	rc = hf_migrate_apply(&k->w.db, hf_migrations, hf_n_migrations, e);
	hf_writer_unlock(&k->w);
	return rc;
}

int
hf_keep_open(
    struct hf_keep **out, const struct hf_store_conf *c, struct hf_error *e)
{
	struct hf_store_conf conf = *c;
	struct hf_error local;
	struct hf_keep *k;
	size_t size = strlen(c->path) + sizeof("-wal");
	int rc;

	*out = NULL;
	e = e == NULL ? &local : e;
	HF_CHECK(c->shm != NULL);
	if (sodium_init() < 0)
		return hf_fail(e, HF_ESYS, "libsodium does not start");
	k = hf_xcalloc(1, sizeof(*k));
	k->wal_path = hf_xcalloc(1, size);
	snprintf(k->wal_path, size, "%s-wal", c->path);
	rc = hf_writer_open(&k->w, c, HF_DB_CREATE, &k->seal, e);
	if (rc == 0)
		rc = migrate(k, e);
	if (rc == 0)
		rc = hf_writer_run(&k->w, prepare, &conf, e);
	if (rc < 0) {
		hf_keep_close(k);
		return rc;
	}
	*out = k;
	return 0;
}

void
hf_keep_close(struct hf_keep *k)
{
	if (k == NULL)
		return;
	hf_writer_close(&k->w);
	hf_seal_clear(&k->seal);
	free(k->wal_path);
	free(k);
}

/* --- settling the dead ---------------------------------------------------- */

struct live {
	int64_t turn, session;
};

struct batch {
	struct live turn[SETTLE_BATCH];
	unsigned n;
	int64_t held; /* dead ones that are not to be settled */
};

static int
find_dead(struct hf_writer *w, struct batch *b, struct hf_error *e)
{
	sqlite3_stmt *st = hf_db_bind(&w->db, HF_SQL_TURN_LIVE, e, "");
	int rc;

	b->n = 0;
	b->held = 0;
	if (st == NULL)
		return e->code;
	while ((rc = hf_db_step(&w->db, st, e)) > 0) {
		unsigned slot = (unsigned)sqlite3_column_int64(st, 3);
		uint64_t inc = (uint64_t)sqlite3_column_int64(st, 4);
		struct hf_id public;

		if (!hf_writer_dead(w, slot, inc))
			continue;
		hf_db_id(st, 5, &public);
		if (!hf_writer_orphan(w, slot, inc, public.s)) {
			b->held++;
			continue;
		}
		b->turn[b->n].turn = sqlite3_column_int64(st, 0);
		b->turn[b->n++].session = sqlite3_column_int64(st, 1);
		if (b->n == SETTLE_BATCH) {
			hf_db_reset(st);
			return 0;
		}
	}
	return rc;
}

/* Settle the turn through its session's lease; what that does not reach (a
 * turn in the middle of the queue, a session that does not open) directly. */
static int
settle(struct hf_writer *w, const struct live *l, struct hf_error *e)
{
	struct hf_session_row s;
	struct hf_turn_row t;
	const struct hf_seal_key *key = NULL;
	int rc = hf_row_session(w, l->session, &s, e);

	if (rc > 0) {
		key = &s.key;
		rc = hf_lease_tidy(w, &s, e);
	}
	if (rc < 0 && rc != HF_ECORRUPT)
		return rc;
	rc = hf_row_turn(w, l->turn, &t, e);
	if (rc <= 0)
		return rc;
	if (t.state == HF_TURN_QUEUED)
		return hf_lease_dequeue(w, t.id, HF_TURN_INTERRUPTED, e);
	if (t.state == HF_TURN_OPEN)
		return hf_lease_interrupt(w, key, &t, e);
	return 0;
}

static int
settle_batch(struct hf_writer *w, void *arg, struct hf_error *e)
{
	struct batch *b = arg;
	int rc = find_dead(w, b, e);

	for (unsigned i = 0; rc == 0 && i < b->n; i++)
		rc = settle(w, &b->turn[i], e);
	return rc;
}

static int
settle_all(struct hf_keep *k, hf_make_body_fn make_body, void *arg,
    struct hf_recovered *r, struct hf_error *e)
{
	struct batch *b = hf_xcalloc(1, sizeof(*b));
	int rc;

	k->w.make_body = make_body;
	k->w.make_body_arg = arg;
	k->w.interrupted = 0;
	k->w.lost = 0;
	do
		rc = hf_writer_run(&k->w, settle_batch, b, e);
	while (rc == 0 && b->n > 0);
	if (r != NULL)
		*r = (struct hf_recovered){
			.turns_interrupted = k->w.interrupted,
			.attempts_lost = k->w.lost,
			.turns_held = b->held,
		};
	free(b);
	return rc;
}

static int
count_boot(struct hf_writer *w, void *arg, struct hf_error *e)
{
	uint64_t *boot = arg;
	sqlite3_stmt *st = hf_db_bind(&w->db, HF_SQL_META_GET, e, "z", "boot");
	int rc;

	if (st == NULL)
		return e->code;
	rc = hf_db_step(&w->db, st, e);
	if (rc == 0)
		return hf_fail(e, HF_ECORRUPT, "meta: no boot counter");
	if (rc < 0)
		return rc;
	*boot = (uint64_t)sqlite3_column_int64(st, 0) + 1;
	hf_db_reset(st);
	rc =
	    hf_db_run(&w->db, HF_SQL_META_SET, e, "zi", "boot", (int64_t)*boot);
	return rc < 0 ? rc : 0;
}

int
hf_keep_recover(struct hf_keep *k, hf_make_body_fn make_body, void *arg,
    uint64_t *boot, struct hf_recovered *r, struct hf_error *e)
{
	struct hf_error local;
	uint64_t n = 0;
	int rc;

	e = e == NULL ? &local : e;
	rc = hf_writer_run(&k->w, count_boot, &n, e);
	if (rc < 0)
		return rc;
	if (boot != NULL)
		*boot = n;
	k->w.all_dead = true;
	rc = settle_all(k, make_body, arg, r, e);
	k->w.all_dead = false;
	return rc;
}

int
hf_keep_reap(struct hf_keep *k, unsigned slot, uint64_t inc,
    hf_make_body_fn make_body, void *arg, struct hf_recovered *r,
    struct hf_error *e)
{
	struct hf_error local;
	int rc;

	k->w.dead_slot = slot;
	k->w.dead_inc = inc;
	rc = settle_all(k, make_body, arg, r, e == NULL ? &local : e);
	k->w.dead_inc = 0;
	return rc;
}

int
hf_keep_checkpoint(
    struct hf_keep *k, int min_frames, bool truncate, struct hf_error *e)
{
	struct hf_error local;
	struct stat sb;
	int rc;

	e = e == NULL ? &local : e;
	/* The file's size is the most that it can hold; asking for more would
	 * cost a transaction.  A checkpoint with nothing to do is cheap. */
	if (stat(k->wal_path, &sb) < 0 ||
	    (sb.st_size - WAL_HEADER) / WAL_FRAME < min_frames)
		return 0;
	rc = hf_writer_lock(&k->w, e);
	if (rc < 0)
		return rc;
	rc = hf_writer_checkpoint(&k->w, truncate, e);
	hf_writer_unlock(&k->w);
	return rc;
}

/* --- API keys ---------------------------------------------------------------
 */

struct new_key {
	const char *tenant, *label;
	struct hf_id *id;
	const char *secret;
};

static int
add_key(struct hf_writer *w, void *arg, struct hf_error *e)
{
	struct new_key *n = arg;
	uint8_t hash[HF_KEY_HASH_SIZE];
	int64_t tenant;
	int rc = hf_row_tenant_add(w, n->tenant, &tenant, e);

	if (rc < 0)
		return rc;
	hf_seal_key_hash(w->seal, hf_str(n->secret), hash);
	rc = hf_db_run(&w->db, HF_SQL_KEY_ADD, e, "zizbi", n->id->s, tenant,
	    n->label == NULL ? "" : n->label,
	    (struct hf_str){ (char *)hash, sizeof(hash) }, hf_wall_us());
	return rc < 0 ? rc : 0;
}

int
hf_keep_key_create(struct hf_keep *k, const char *tenant, const char *label,
    struct hf_id *id, char secret[HF_SECRET_SIZE], struct hf_error *e)
{
	struct new_key n = { tenant, label, id, secret };
	struct hf_error local;
	struct hf_id more[2];
	int rc;

	e = e == NULL ? &local : e;
	if (tenant == NULL || tenant[0] == '\0')
		return hf_fail(e, HF_EINVAL, "API key: no tenant");
	hf_id_make(id, HF_KEY_PREFIX);
	hf_id_make(&more[0], "");
	hf_id_make(&more[1], "");
	snprintf(secret, HF_SECRET_SIZE, HF_SECRET_PREFIX "%s_%s%.*s",
	    hf_id_random_part(id), more[0].s, HF_SECRET_RANDOM - HF_ID_RANDOM,
	    more[1].s);
	rc = hf_writer_run(&k->w, add_key, &n, e);
	if (rc < 0)
		sodium_memzero(secret, HF_SECRET_SIZE);
	sodium_memzero(more, sizeof(more));
	return rc;
}

struct old_key {
	const char *prefix;
	struct hf_id *id;
};

static int
revoke_key(struct hf_writer *w, void *arg, struct hf_error *e)
{
	struct old_key *o = arg;
	char end[HF_ID_SIZE + 2];
	sqlite3_stmt *st;
	int64_t row;
	int rc;

	snprintf(end, sizeof(end), "%.*s\x7f", HF_ID_SIZE, o->prefix);
	st = hf_db_bind(&w->db, HF_SQL_KEY_PREFIX, e, "zz", o->prefix, end);
	if (st == NULL)
		return e->code;
	rc = hf_db_step(&w->db, st, e);
	if (rc == 0)
		return hf_fail(e, HF_ENOTFOUND, "API key: no such id");
	if (rc < 0)
		return rc;
	row = sqlite3_column_int64(st, 0);
	hf_db_id(st, 1, o->id);
	rc = hf_db_step(&w->db, st, e);
	if (rc > 0) {
		hf_db_reset(st);
		return hf_fail(e, HF_ECONFLICT,
		    "API key: several ids begin "
		    "like that");
	}
	if (rc == 0)
		rc = hf_db_run(
		    &w->db, HF_SQL_KEY_REVOKE, e, "ii", row, hf_wall_us());
	return rc < 0 ? rc : 0;
}

int
hf_keep_key_revoke(
    struct hf_keep *k, const char *prefix, struct hf_id *id, struct hf_error *e)
{
	struct old_key o = { prefix, id };
	struct hf_error local;

	e = e == NULL ? &local : e;
	if (strncmp(prefix, HF_KEY_PREFIX, sizeof(HF_KEY_PREFIX) - 1) != 0 ||
	    strlen(prefix) >= HF_ID_SIZE)
		return hf_fail(e, HF_ENOTFOUND, "API key: no such id");
	return hf_writer_run(&k->w, revoke_key, &o, e);
}

/* --- what is disabled by hand --------------------------------------------- */

struct disabling {
	const char *name;
	bool disabled;
	int64_t uid;
};

static int
note_disabled(struct hf_writer *w, void *arg, struct hf_error *e)
{
	const struct disabling *d = arg;
	int rc = d->disabled ?
	    hf_db_run(&w->db, HF_SQL_DISABLED_ADD, e, "zii", d->name,
		hf_wall_us(), d->uid) :
	    hf_db_run(&w->db, HF_SQL_DISABLED_DROP, e, "z", d->name);

	return rc < 0 ? rc : 0;
}

int
hf_keep_disable(struct hf_keep *k, const char *name, bool disabled, int64_t uid,
    struct hf_error *e)
{
	struct disabling d = { name, disabled, uid };
	struct hf_error local;

	return hf_writer_run(&k->w, note_disabled, &d, e == NULL ? &local : e);
}
