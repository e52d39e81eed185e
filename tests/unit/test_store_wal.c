/*
 * Frames of the log are gathered into few writes, and when a commit has
 * returned none of them is still held back: a process that ends right then
 * has lost nothing.
 */
#include <config.h>

#include <sqlite3.h>
#include <stdarg.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "store/internal.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/store_vfs.h"

/* --- in the child ------------------------------------------------------------
 */

static struct hf_db db;
static unsigned seed;

static unsigned
some(unsigned n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % n;
}

static void
run(const char *fmt, ...)
{
	char sql[256];
	struct hf_error e;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sql, sizeof(sql), fmt, ap);
	va_end(ap);
	if (hf_db_exec(&db, sql, &e) < 0) {
		fprintf(stderr, "%s: %s\n", sql, e.text);
		_exit(1);
	}
}

/* Rows of 0 to 9 kB; 'n' of them are more than the cache of pages holds when
 * it is over 20. */
static void
change(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		run("INSERT OR REPLACE INTO t VALUES (%u, randomblob(%u))",
		    some(400), some(9000));
	run("DELETE FROM t WHERE id %% 17 = %u", some(17));
}

static void
transaction(unsigned n)
{
	run("BEGIN IMMEDIATE");
	change(1 + some(n % 3 == 0 ? 60 : 4));
	if (n % 7 == 0) {
		run("ROLLBACK");
		run("BEGIN IMMEDIATE");
		change(1);
	}
	run("INSERT INTO log SELECT %u, count(*), total(length(b)) FROM t", n);
	run("COMMIT");
}

static void
write_and_end(struct fx *f, bool sync_full, unsigned n, int fd)
{
	struct hf_error e;
	int left;

	if (hf_db_open(&db, f->db, HF_DB_WRITE, sync_full, &e) < 0)
		_exit(1);
	run("PRAGMA cache_size = 20");
	run("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, b)");
	run("CREATE TABLE IF NOT EXISTS log (n INTEGER PRIMARY KEY, k, size)");
	for (unsigned i = 1; i <= n; i++) {
		transaction(i);
		if (i % 11 == 0 &&
		    hf_db_checkpoint(&db,
			i % 2 == 0 ? HF_CKPT_RESTART : HF_CKPT_TRUNCATE, 100,
			&left, &e) < 0)
			_exit(1);
	}
	if (write(fd, &n, sizeof(n)) != sizeof(n))
		_exit(1);
	kill(getpid(), SIGKILL); /* nothing is closed */
	_exit(1);
}

/* --- tests -------------------------------------------------------------- */

static void
ends_after(struct fx *f, bool sync_full, unsigned n)
{
	unsigned told = 0;
	int fd[2], status;
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		write_and_end(f, sync_full, n, fd[1]);
	close(fd[1]);
	assert_int_equal(read(fd[0], &told, sizeof(told)), sizeof(told));
	close(fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(told, n);
	/* Nobody else has it open: this reads the log from its beginning. */
	assert_int_equal(fx_sql(f, "SELECT max(n) FROM log"), n);
	assert_int_equal(
	    fx_sql(f,
		"SELECT (k, size) = (SELECT count(*),"
		" total(length(b)) FROM t) FROM log ORDER BY n DESC"),
	    1);
	assert_int_equal(
	    fx_sql(f,
		"SELECT count(*) FROM"
		" pragma_integrity_check WHERE integrity_check = 'ok'"),
	    1);
	fx_sql(f, "DROP TABLE t");
	fx_sql(f, "DROP TABLE log");
}

static void
nothing_is_held_after_a_commit(void **state)
{
	struct fx f;

	(void)state;
	fx_open(&f);
	hf_keep_close(f.keep); /* each run begins with the log it finds */
	f.keep = NULL;
	for (unsigned n = 1; n <= 36; n++) {
		seed = n;
		ends_after(&f, n % 2 == 0, n);
	}
	fx_close(&f);
}

struct begun {
	struct hf_item in;
	struct hf_begin b;
	bool done;
};

static void
on_begun(void *arg, int rc, const struct hf_error *e, const struct hf_begun *b)
{
	(void)e;
	(void)b;
	assert_int_equal(rc, 0);
	((struct begun *)arg)->done = true;
}

/* A group of turns is written by one call, or by one for each 128 kB. */
static void
one_write_for_a_commit(void **state)
{
	static struct begun j[40];
	struct hf_head h;
	char name[16];
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "first", "one", "1");
	assert_int_equal(hf_shm_writer_lock(&f.shm[0], 1000, &f.e), 0);
	for (unsigned i = 0; i < hf_countof(j); i++) {
		snprintf(name, sizeof(name), "s%u", i);
		h = fx_head(&f, 1, name);
		j[i].b = fx_turn(name, &h, &j[i].in, "x");
		assert_int_equal(
		    hf_store_begin(f.st[1], &j[i].b, on_begun, &j[i], &f.e), 0);
	}
	atomic_store(&vfs_watch.writes, 0);
	hf_shm_writer_unlock(&f.shm[0]);
	fx_drain(&f, 1);
	assert_true(j[39].done);
	assert_in_range(atomic_load(&vfs_watch.writes), 1, 2);
	fx_close(&f);
}

static void
exec(struct hf_db *d, const char *sql)
{
	struct hf_error e = { 0 };

	if (hf_db_exec(d, sql, &e) < 0)
		fail_msg("%s: %s", sql, e.text);
}

/* A transaction larger than the cache that was rolled back leaves nothing that
 * could be written over what another connection commits after it. */
static void
nothing_is_held_after_a_rollback(void **state)
{
	struct hf_db a = { 0 }, b = { 0 };
	struct hf_error e;
	struct fx f;
	int left;

	(void)state;
	fx_open(&f);
	assert_int_equal(hf_db_open(&a, f.db, HF_DB_WRITE, false, &e), 0);
	assert_int_equal(hf_db_open(&b, f.db, HF_DB_WRITE, false, &e), 0);
	exec(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY, b)");
	for (int i = 0; i < 3; i++) {
		/* With an empty log a rollback need not read it. */
		assert_true(hf_db_checkpoint(
				&b, HF_CKPT_TRUNCATE, 100, &left, &e) >= 0);
		exec(&a, "BEGIN IMMEDIATE");
		exec(&a,
		    "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
		    "FROM c WHERE i < 3000) INSERT OR REPLACE INTO t SELECT i, "
		    "randomblob(3000) FROM c");
		exec(&a, "ROLLBACK");
		exec(&b, "BEGIN IMMEDIATE");
		exec(&b,
		    "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
		    "FROM c WHERE i < 3000) INSERT OR REPLACE INTO t SELECT i, "
		    "zeroblob(3000) FROM c");
		exec(&b, "COMMIT");
		exec(&a, "BEGIN IMMEDIATE");
		exec(&a, "DELETE FROM t WHERE id = 1");
		exec(&a, "COMMIT");
		assert_int_equal(
		    fx_sql(
			&f, "SELECT count(*) FROM t WHERE b = zeroblob(3000)"),
		    2999);
		assert_int_equal(
		    fx_sql(&f,
			"SELECT count(*) FROM pragma_integrity_check "
			"WHERE integrity_check <> 'ok'"),
		    0);
	}
	exec(&a, "DROP TABLE t");
	hf_db_close(&a);
	hf_db_close(&b);
	fx_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_held_after_a_commit),
		cmocka_unit_test(one_write_for_a_commit),
		cmocka_unit_test(nothing_is_held_after_a_rollback),
	};

	vfs_register();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
