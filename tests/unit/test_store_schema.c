/*
 * The schema, the statements, versions, connections and keys.
 */
#include <config.h>

#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "store/db.h"
#include "store/internal.h"
#include "store/migrate.h"
#include "store/inspect.h"
#include "tests/unit/store_fixture.h"

static void
every_statement_prepares(void **state)
{
	sqlite3_stmt *st;
	struct hf_db db;
	struct fx f;

	(void)state;
	fx_open(&f);
	assert_int_equal(hf_db_open(&db, f.db, HF_DB_WRITE, true, &f.e), 0);
	for (int i = 0; i < HF_SQL_COUNT; i++) {
		const char *text = hf_db_sql_text((enum hf_sql)i);

		if (sqlite3_prepare_v2(db.h, text, -1, &st, NULL) != SQLITE_OK)
			fail_msg("%s: %s", text, sqlite3_errmsg(db.h));
		sqlite3_finalize(st);
	}
	hf_db_close(&db);
	fx_close(&f);
}

/* The statements whose cost may grow with the database: operators' lists, and
 * what reads all live turns or a table of a few rows. */
static bool
may_scan(enum hf_sql q)
{
	static const enum hf_sql list[] = { HF_SQL_KEY_ANY, HF_SQL_KEY_LIST,
		HF_SQL_MASTER_KEY_NEWEST, HF_SQL_TURN_LIVE, HF_SQL_TURN_GRANTED,
		HF_SQL_INFO_LIST, HF_SQL_INFO_NAMED, HF_SQL_INFO_PREFIX,
		HF_SQL_INFO_STATS, HF_SQL_DISABLED_LIST };

	for (size_t i = 0; i < hf_countof(list); i++)
		if (list[i] == q)
			return true;
	return false;
}

static void
no_other_statement_scans(void **state)
{
	char sql[4096];
	sqlite3_stmt *st;
	struct hf_db db;
	struct fx f;

	(void)state;
	fx_open(&f);
	assert_int_equal(hf_db_open(&db, f.db, HF_DB_READ, true, &f.e), 0);
	for (int i = 0; i < HF_SQL_COUNT; i++) {
		if (may_scan((enum hf_sql)i))
			continue;
		snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s",
		    hf_db_sql_text((enum hf_sql)i));
		if (sqlite3_prepare_v2(db.h, sql, -1, &st, NULL) != SQLITE_OK)
			fail_msg("%s", sqlite3_errmsg(db.h));
		while (sqlite3_step(st) == SQLITE_ROW) {
			const char *d =
			    (const char *)sqlite3_column_text(st, 3);

			/* A path is walked, turn by turn. */
			if (strncmp(d, "SCAN", 4) == 0 &&
			    strcmp(d, "SCAN p") != 0 &&
			    strcmp(d, "SCAN path") != 0)
				fail_msg("%s: %s", d, sql);
		}
		sqlite3_finalize(st);
	}
	hf_db_close(&db);
	fx_close(&f);
}

static int64_t
pragma(struct hf_db *db, const char *name)
{
	char sql[64];
	int64_t n = -1;

	snprintf(sql, sizeof(sql), "PRAGMA %s", name);
	assert_int_equal(hf_db_number(db, sql, &n, NULL), 0);
	return n;
}

static void
connection_settings(void **state)
{
	struct hf_db *db[2];
	struct fx f;
	int on = 0;

	(void)state;
	fx_open(&f);
	fx_store(&f, 1);
	db[0] = &f.st[1]->read;
	db[1] = &f.st[1]->writer.db;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pragma(db[i], "wal_autocheckpoint"), 0);
		assert_int_equal(pragma(db[i], "mmap_size"), 0);
		assert_int_equal(pragma(db[i], "foreign_keys"), 1);
		assert_int_equal(pragma(db[i], "page_size"), 4096);
		sqlite3_db_config(
		    db[i]->h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, -1, &on);
		assert_int_equal(on, 1);
	}
	assert_int_equal(pragma(db[1], "synchronous"), 2);
	assert_int_equal(sqlite3_db_readonly(db[0]->h, "main"), 1);
	f.conf[2].sync_full = false;
	fx_store(&f, 2);
	assert_int_equal(pragma(&f.st[2]->writer.db, "synchronous"), 1);
	fx_close(&f);
}

/* A connection that went through a fork is a bug, and is told as one. */
static void
never_across_a_fork(void **state)
{
	struct hf_head h;
	struct fx f;
	int status, fd;
	pid_t pid;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "s", "one", "1");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		fd = open("/dev/null", O_WRONLY);
		dup2(fd, STDERR_FILENO);
		if (hf_store_head(f.st[1], "acme", HF_STR("s"), &h, NULL) < 0)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	fx_say(&f, 1, "s", "two", "2");
	fx_close(&f);
}

static void
files_are_private(void **state)
{
	static const char *const suffix[] = { "", "-wal", "-shm", ".key" };
	struct stat sb;
	char path[400];
	struct fx f;

	(void)state;
	fx_open(&f);
	for (size_t i = 0; i < hf_countof(suffix); i++) {
		snprintf(path, sizeof(path), "%s%s", f.db, suffix[i]);
		assert_int_equal(stat(path, &sb), 0);
		assert_int_equal(sb.st_mode & 07777, 0600);
	}
	fx_close(&f);
}

/* Closing writes nothing into the database file. */
static void
no_checkpoint_on_close(void **state)
{
	struct stat before, after;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "s", "one", "1");
	hf_keep_close(f.keep);
	f.keep = NULL;
	assert_int_equal(stat(f.db, &before), 0);
	hf_store_close(f.st[1]);
	f.st[1] = NULL;
	assert_int_equal(stat(f.db, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	assert_true(before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
	assert_string_equal(fx_history(&f, 1, "s"), "user:one|assistant:1");
	fx_close(&f);
}

/* --- migrations -------------------------------------------------------- */

#define MAX_STEPS 100

static const char one_more[] =
    "ALTER TABLE session ADD COLUMN extra_of_test INTEGER;\n"
    "UPDATE meta SET num = 2 WHERE name = 'min_reader';\n";

struct steps {
	struct hf_migration m[MAX_STEPS];
	unsigned n;
	char hex[65];
};

/* The real steps and one more. */
static void
list_with(struct steps *s, const char *sql)
{
	uint8_t sum[32];

	assert_true(hf_n_migrations < MAX_STEPS);
	s->n = hf_n_migrations + 1;
	memcpy(s->m, hf_migrations, hf_n_migrations * sizeof(s->m[0]));
	crypto_hash_sha256(sum, (const uint8_t *)sql, strlen(sql));
	sodium_bin2hex(s->hex, sizeof(s->hex), sum, sizeof(sum));
	s->m[s->n - 1] = (struct hf_migration){ .step = (int)s->n,
		.name = "one_more.sql",
		.sum = s->hex,
		.sql = sql };
}

static int
migrate(struct fx *f, const struct steps *s, bool apply)
{
	struct hf_db db;
	int rc = hf_db_open(&db, f->db, HF_DB_WRITE, true, &f->e);

	assert_int_equal(rc, 0);
	rc = apply ? hf_migrate_apply(&db, s->m, s->n, &f->e) :
		     hf_migrate_check(&db, s->m, s->n, &f->e);
	hf_db_close(&db);
	return rc;
}

static void
upgrade_keeps_everything(void **state)
{
	struct steps s;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "s", "one", "1");
	list_with(&s, one_more);
	assert_int_equal(migrate(&f, &s, false), HF_ECONFLICT);
	assert_int_equal(migrate(&f, &s, true), 0);
	assert_int_equal(migrate(&f, &s, true), 0);
	assert_int_equal(fx_sql(&f, "PRAGMA user_version"), s.n);
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM migration"), s.n);
	/* A connection that was open before goes on. */
	fx_say(&f, 1, "s", "two", "2");
	assert_string_equal(fx_history(&f, 1, "s"),
	    "user:one|assistant:1|user:two|assistant:2");
	fx_close(&f);
}

/* From each earlier version to this one. */
static void
upgrade_from_every_step(void **state)
{
	struct steps s;
	struct fx f;
	char db[400];

	(void)state;
	fx_open(&f);
	for (unsigned n = 1; n <= hf_n_migrations; n++) {
		struct hf_keep *k;
		struct hf_db h;

		snprintf(db, sizeof(db), "%s/db%u", f.dir, n);
		list_with(&s, one_more);
		assert_int_equal(
		    hf_db_open(&h, db, HF_DB_CREATE, true, &f.e), 0);
		assert_int_equal(hf_migrate_apply(&h, s.m, n, &f.e), 0);
		hf_db_close(&h);
		f.conf[0].path = db;
		assert_int_equal(hf_keep_open(&k, &f.conf[0], &f.e), 0);
		hf_keep_close(k);
	}
	f.conf[0].path = f.db;
	fx_close(&f);
}

static void
newer_database_is_refused(void **state)
{
	struct hf_inspect *in;
	struct hf_store *st;
	struct fx f;

	(void)state;
	fx_open(&f);
	/* A later step that older programs may still use... */
	fx_sql(&f, "PRAGMA user_version = 700");
	fx_say(&f, 1, "s", "one", "1");
	/* ...and one that they may not. */
	fx_sql(&f, "UPDATE meta SET num = 700 WHERE name = 'min_reader'");
	hf_keep_close(f.keep);
	assert_int_equal(hf_keep_open(&f.keep, &f.conf[0], &f.e), HF_ETOONEW);
	assert_null(f.keep);
	assert_non_null(strstr(f.e.text, "version 700"));
	assert_int_equal(hf_store_open(&st, &f.conf[2], &f.e), HF_ETOONEW);
	assert_int_equal(hf_inspect_open(&in, &f.conf[2], &f.e), HF_ETOONEW);
	fx_close(&f);
}

static void
changed_checksum_is_refused(void **state)
{
	struct hf_store *st;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_sql(&f, "UPDATE migration SET sum = zeroblob(32)");
	hf_keep_close(f.keep);
	assert_int_equal(hf_keep_open(&f.keep, &f.conf[0], &f.e), HF_ECORRUPT);
	assert_non_null(strstr(f.e.text, "0001_init.sql"));
	assert_int_equal(hf_store_open(&st, &f.conf[1], &f.e), HF_ECORRUPT);
	fx_close(&f);
}

/* A program built from an edited step says so before it changes anything. */
static void
edited_step_is_refused(void **state)
{
	struct steps s;
	struct fx f;

	(void)state;
	fx_open(&f);
	list_with(&s, one_more);
	s.m[s.n - 1].sql = "DROP TABLE item;";
	assert_int_equal(migrate(&f, &s, true), HF_ECORRUPT);
	assert_int_equal(fx_sql(&f, "PRAGMA user_version"), hf_n_migrations);
	fx_say(&f, 1, "s", "one", "1");
	list_with(&s, one_more);
	s.n = hf_n_migrations;
	assert_int_equal(migrate(&f, &s, false), 0);
	s.m[0].sql = "SELECT 1;";
	assert_int_equal(migrate(&f, &s, false), HF_ECORRUPT);
	fx_close(&f);
}

static void
failing_step_changes_nothing(void **state)
{
	struct steps s;
	struct fx f;

	(void)state;
	fx_open(&f);
	list_with(&s, "CREATE TABLE more (a) STRICT;");
	assert_true(migrate(&f, &s, true) < 0);
	list_with(&s,
	    "CREATE TABLE more (a INTEGER) STRICT;"
	    "INSERT INTO nowhere VALUES (1);");
	assert_true(migrate(&f, &s, true) < 0);
	assert_int_equal(fx_sql(&f, "PRAGMA user_version"), hf_n_migrations);
	assert_int_equal(fx_sql(&f,
			     "SELECT count(*) FROM sqlite_schema"
			     " WHERE name = 'more'"),
	    0);
	fx_close(&f);
}

static void
foreign_database_is_refused(void **state)
{
	struct hf_keep *k;
	sqlite3 *h;
	struct fx f;
	char path[400];

	(void)state;
	fx_open(&f);
	snprintf(path, sizeof(path), "%s/foreign", f.dir);
	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(
	    sqlite3_exec(h, "CREATE TABLE t (a)", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(h);
	f.conf[0].path = path;
	assert_int_equal(hf_keep_open(&k, &f.conf[0], &f.e), HF_ECORRUPT);
	f.conf[0].path = f.db;
	fx_close(&f);
}

static void
every_table_is_strict(void **state)
{
	struct fx f;

	(void)state;
	fx_open(&f);
	assert_int_equal(
	    fx_sql(&f,
		"SELECT count(*) FROM pragma_table_list"
		" WHERE type = 'table' AND schema = 'main' AND NOT strict AND"
		" name NOT LIKE 'sqlite%'"),
	    0);
	assert_int_equal(fx_sql(&f,
			     "SELECT count(*) FROM pragma_table_list"
			     " WHERE wr"),
	    0);
	assert_int_equal(
	    fx_sql(&f, "PRAGMA application_id"), HF_APPLICATION_ID);
	fx_close(&f);
}

/* --- master keys --------------------------------------------------------- */

static void
write_key(const char *path, const char *text, mode_t mode)
{
	FILE *fp = fopen(path, "w");

	assert_non_null(fp);
	fputs(text, fp);
	fclose(fp);
	assert_int_equal(chmod(path, mode), 0);
}

static void
wrong_key_is_refused(void **state)
{
	static const char other[] = "000102030405060708090a0b0c0d0e0f"
				    "101112131415161718191a1b1c1d1e1f\n";
	struct hf_store *st;
	struct hf_keep *k;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "s", "one", "1");
	write_key(f.key, other, 0600);
	assert_int_equal(hf_store_open(&st, &f.conf[2], &f.e), HF_EPERM);
	assert_non_null(strstr(f.e.text, "does not open this database"));
	assert_int_equal(hf_keep_open(&k, &f.conf[2], &f.e), HF_EPERM);
	write_key(f.key, "not hex\n", 0600);
	assert_int_equal(hf_store_open(&st, &f.conf[2], &f.e), HF_EPERM);
	assert_non_null(strstr(f.e.text, "not a key"));
	write_key(f.key, other, 0640);
	assert_int_equal(hf_store_open(&st, &f.conf[2], &f.e), HF_EPERM);
	assert_non_null(strstr(f.e.text, "0640"));
	/* Missing: never a new one for a database that has one. */
	assert_int_equal(unlink(f.key), 0);
	assert_int_equal(hf_store_open(&st, &f.conf[2], &f.e), HF_EPERM);
	assert_int_equal(hf_keep_open(&k, &f.conf[2], &f.e), HF_EPERM);
	assert_non_null(strstr(f.e.text, "no such file"));
	assert_int_equal(access(f.key, F_OK), -1);
	fx_close(&f);
}

static void
key_from_a_credential(void **state)
{
	char text[80], cred[400];
	struct hf_keep *k;
	struct hf_store *st;
	FILE *fp;
	struct fx f;

	(void)state;
	fx_open(&f);
	fp = fopen(f.key, "r");
	assert_non_null(fp);
	assert_non_null(fgets(text, sizeof(text), fp));
	fclose(fp);
	snprintf(cred, sizeof(cred), "%s/cred", f.dir);
	write_key(cred, text, 0444);
	f.conf[1].key_credential = cred;
	f.conf[1].key_file = NULL;
	fx_say(&f, 1, "s", "one", "1");
	/* A credential that is missing is not made. */
	snprintf(cred, sizeof(cred), "%s/none", f.dir);
	assert_int_equal(hf_store_open(&st, &f.conf[1], &f.e), HF_EPERM);
	assert_int_equal(hf_keep_open(&k, &f.conf[1], &f.e), HF_EPERM);
	assert_int_equal(access(cred, F_OK), -1);
	fx_close(&f);
}

static void
errors_are_translated(void **state)
{
	char dir[400];
	struct hf_store *st;
	struct hf_keep *k;
	struct fx f;

	(void)state;
	fx_open(&f);
	snprintf(dir, sizeof(dir), "%s/none/db", f.dir);
	f.conf[1].path = dir;
	assert_int_equal(hf_store_open(&st, &f.conf[1], &f.e), HF_ENOTFOUND);
	assert_int_equal(hf_keep_open(&k, &f.conf[1], &f.e), HF_ENOTFOUND);
	/* Not a database. */
	snprintf(dir, sizeof(dir), "%s/junk", f.dir);
	write_key(dir,
	    "this is not a database at all, not even nearly so, "
	    "and it is longer than a header of one hundred bytes is",
	    0600);
	assert_int_equal(hf_store_open(&st, &f.conf[1], &f.e), HF_ECORRUPT);
	assert_int_equal(hf_keep_open(&k, &f.conf[1], &f.e), HF_ECORRUPT);
	/* No incarnation, no leases. */
	fx_kill(&f, 3);
	assert_int_equal(hf_store_open(&st, &f.conf[3], &f.e), HF_EINVAL);
	fx_close(&f);
}

static int
start(void **state)
{
	(void)state;
	return sodium_init() < 0 ? -1 : 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_statement_prepares),
		cmocka_unit_test(no_other_statement_scans),
		cmocka_unit_test(connection_settings),
		cmocka_unit_test(never_across_a_fork),
		cmocka_unit_test(files_are_private),
		cmocka_unit_test(no_checkpoint_on_close),
		cmocka_unit_test(upgrade_keeps_everything),
		cmocka_unit_test(upgrade_from_every_step),
		cmocka_unit_test(newer_database_is_refused),
		cmocka_unit_test(changed_checksum_is_refused),
		cmocka_unit_test(edited_step_is_refused),
		cmocka_unit_test(failing_step_changes_nothing),
		cmocka_unit_test(foreign_database_is_refused),
		cmocka_unit_test(every_table_is_strict),
		cmocka_unit_test(wrong_key_is_refused),
		cmocka_unit_test(key_from_a_credential),
		cmocka_unit_test(errors_are_translated),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
