/*
 * Applying and checking migrations.
 */
#include <config.h>

#include "store/migrate.h"

#include <sodium.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/fault.h"
#include "store/db.h"

static void
sum_of(const char *text, uint8_t out[crypto_hash_sha256_BYTES])
{
	crypto_hash_sha256(out, (const uint8_t *)text, strlen(text));
}

/* A program whose text and SUMS differ was built from an edited step. */
static int
check_text(const struct hf_migration *m, uint8_t sum[32], struct hf_error *e)
{
	char hex[2 * crypto_hash_sha256_BYTES + 1];

	sum_of(m->sql, sum);
	sodium_bin2hex(hex, sizeof(hex), sum, crypto_hash_sha256_BYTES);
	if (strcmp(hex, m->sum) != 0)
		return hf_fail(e, HF_ECORRUPT,
		    "migration %s: its text is "
		    "not the one in SUMS",
		    m->name);
	return 0;
}

static int
check_applied(struct hf_db *db, const struct hf_migration *m, int64_t version,
    struct hf_error *e)
{
	uint8_t want[crypto_hash_sha256_BYTES];
	struct hf_str got;
	sqlite3_stmt *st;
	int rc;

	if (m->step > version)
		return 0;
	rc = check_text(m, want, e);
	if (rc < 0)
		return rc;
	st = hf_db_bind(db, HF_SQL_MIGRATION_SUM, e, "i", (int64_t)m->step);
	if (st == NULL)
		return e->code;
	rc = hf_db_step(db, st, e);
	if (rc < 0)
		return rc;
	got = rc == 1 ? hf_db_str(st, 0) : HF_STR_NONE;
	rc =
	    got.size == sizeof(want) && memcmp(got.p, want, sizeof(want)) == 0 ?
	    0 :
	    hf_fail(e, HF_ECORRUPT,
		"migration %s: the database was made by "
		"another text of it",
		m->name);
	hf_db_reset(st);
	return rc;
}

/* Who made this file, and may a program with 'n' steps read it? */
static int
check_version(
    struct hf_db *db, unsigned n, int64_t *version, struct hf_error *e)
{
	int64_t app, tables, reader = 0;
	int rc;

	rc = hf_db_number(db, "PRAGMA user_version", version, e);
	if (rc == 0)
		rc = hf_db_number(db, "PRAGMA application_id", &app, e);
	if (rc == 0)
		rc = hf_db_number(
		    db, "SELECT count(*) FROM sqlite_schema", &tables, e);
	if (rc < 0)
		return rc;
	if (*version == 0 && tables == 0 && app == 0)
		return 0; /* new */
	if (app != HF_APPLICATION_ID || *version < 1)
		return hf_fail(e, HF_ECORRUPT,
		    "database: not made by "
		    "holdfast (application id %lld)",
		    (long long)app);
	rc = hf_db_number(db,
	    "SELECT num FROM meta WHERE name = "
	    "'min_reader'",
	    &reader, e);
	if (rc == 0 && reader > (int64_t)n)
		rc = hf_fail(e, HF_ETOONEW,
		    "database: version %lld can be "
		    "used by programs of version %lld or newer; this one is "
		    "version %u",
		    (long long)*version, (long long)reader, n);
	return rc;
}

static int
check_in_transaction(struct hf_db *db, const struct hf_migration *m, unsigned n,
    int64_t *version, struct hf_error *e)
{
	int rc = check_version(db, n, version, e);

	for (unsigned i = 0; rc == 0 && i < n; i++)
		rc = check_applied(db, &m[i], *version, e);
	return rc;
}

int
hf_migrate_check(struct hf_db *db, const struct hf_migration *m, unsigned n,
    struct hf_error *e)
{
	int64_t version = 0;
	int rc = hf_db_exec(db, "BEGIN DEFERRED", e);

	if (rc < 0)
		return rc;
	rc = check_in_transaction(db, m, n, &version, e);
	if (rc == 0 && version < (int64_t)n)
		rc = hf_fail(e, HF_ECONFLICT,
		    "database: version %lld, this "
		    "program needs %u; the keeper brings it there at start",
		    (long long)version, n);
	if (rc == 0)
		rc = hf_db_exec(db, "COMMIT", e);
	hf_db_rollback(db);
	return rc;
}

/* Statement by statement, so that tests can stop between any two. */
static int
run_text(struct hf_db *db, const char *text, struct hf_error *e)
{
	sqlite3_stmt *st;
	int rc;

	while (*text != '\0') {
		if (hf_fault("store.migrate.step"))
			return hf_fail(e, HF_EIO, "fault");
		rc = sqlite3_prepare_v2(db->h, text, -1, &st, &text);
		if (rc == SQLITE_OK && st == NULL)
			break; /* only comments are left */
		if (rc == SQLITE_OK) {
			do
				rc = sqlite3_step(st);
			while (rc == SQLITE_ROW);
			sqlite3_finalize(st);
		}
		if (rc != SQLITE_DONE)
			return hf_db_fail(db, rc, "migration", e);
	}
	return 0;
}

static int
record(struct hf_db *db, const struct hf_migration *m,
    const uint8_t sum[crypto_hash_sha256_BYTES], struct hf_error *e)
{
	char pragma[64];
	int rc = hf_db_run(db, HF_SQL_MIGRATION_ADD, e, "izbi",
	    (int64_t)m->step, m->name,
	    (struct hf_str){ (const char *)sum, crypto_hash_sha256_BYTES },
	    hf_wall_us());

	if (rc >= 0 && hf_fault("store.migrate.step"))
		rc = hf_fail(e, HF_EIO, "fault");
	snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %d", m->step);
	if (rc >= 0)
		rc = hf_db_exec(db, pragma, e);
	snprintf(pragma, sizeof(pragma), "PRAGMA application_id = %d",
	    HF_APPLICATION_ID);
	if (rc == 0)
		rc = hf_db_exec(db, pragma, e);
	if (rc == 0 && hf_fault("store.migrate.step"))
		rc = hf_fail(e, HF_EIO, "fault");
	return rc;
}

/* One step, in the transaction that is open. */
static int
apply(struct hf_db *db, const struct hf_migration *m, struct hf_error *e)
{
	uint8_t sum[crypto_hash_sha256_BYTES];
	int rc = check_text(m, sum, e);

	if (rc == 0)
		rc = run_text(db, m->sql, e);
	if (rc == 0)
		rc = record(db, m, sum, e);
	return rc;
}

int
hf_migrate_apply(struct hf_db *db, const struct hf_migration *m, unsigned n,
    struct hf_error *e)
{
	int64_t version = 0;
	int rc;

	do {
		/* The version is read only once nobody else can move it. */
		rc = hf_db_exec(db, "BEGIN IMMEDIATE", e);
		if (rc < 0)
			return rc;
		rc = check_in_transaction(db, m, n, &version, e);
		if (rc == 0 && version < (int64_t)n)
			rc = apply(db, &m[version], e);
		if (rc == 0)
			rc = hf_db_exec(db, "COMMIT", e);
		hf_db_rollback(db);
		if (rc < 0)
			return rc;
		if (hf_fault("store.migrate.step"))
			return hf_fail(e, HF_EIO, "fault");
	} while (version + 1 < (int64_t)n);
	return 0;
}
