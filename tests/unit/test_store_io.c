/*
 * The store over files that are watched: every write and checkpoint is made
 * under the writer mutex, and every failing write or sync is a typed error
 * that leaves nothing half-written.
 */
#include <config.h>

#include <sqlite3.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/unit/store_fixture.h"
#include "tests/unit/store_vfs.h"

/* A turn with all that can be written in one. */
static void
long_turn(struct fx *f, unsigned slot, const char *name)
{
	struct hf_attempt_end end = {
		.n = 1, .cls = "network", .reason = "reset"
	};
	struct hf_attempt_begin next = { .n = 2, .target = HF_STR("b/model") };
	struct hf_head h = fx_head(f, slot, name);
	struct hf_item in, out;
	struct hf_begin b = fx_turn(name, &h, &in, "question");
	struct hf_begun begun;
	struct hf_finish fin;

	assert_int_equal(fx_begin(f, slot, &b, &begun), 0);
	assert_int_equal(fx_attempts(f, slot, &begun, &end, &next), 0);
	assert_int_equal(fx_part(f, slot, &begun, 1, "ans"), 0);
	fin = fx_answer(&b, &begun, &h.key, &out, "answer");
	fin.attempt.n = 2;
	assert_int_equal(fx_finish(f, slot, &fin), 0);
}

static void
no_write_without_the_mutex(void **state)
{
	struct hf_recovered r;
	char secret[HF_SECRET_SIZE];
	struct hf_begun begun;
	struct hf_item in;
	struct hf_begin b;
	struct hf_head h;
	struct hf_id id;
	uint64_t boot;
	struct fx f;

	(void)state;
	fx_open(&f);
	vfs_watch.h = f.shm[0].h;
	vfs_watch.locks = vfs_watch.naked = 0;
	fx_store(&f, 1);
	fx_store(&f, 2);
	long_turn(&f, 1, "s");
	long_turn(&f, 2, "s");
	h = fx_head(&f, 1, "s");
	b = fx_turn("s", &h, &in, "open");
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	b = fx_turn("s", &h, &in, "waits");
	assert_int_equal(fx_begin(&f, 2, &b, &begun), 0);
	assert_int_equal(fx_cancel(&f, 2, begun.turn_row), 0);
	assert_int_equal(
	    hf_keep_key_create(f.keep, "acme", "x", &id, secret, &f.e), 0);
	assert_int_equal(hf_keep_key_revoke(f.keep, id.s, &id, &f.e), 0);
	fx_kill(&f, 1);
	assert_int_equal(
	    hf_keep_reap(f.keep, 0, 0, fx_make_body, NULL, &r, &f.e), 0);
	assert_int_equal(
	    hf_keep_recover(f.keep, fx_make_body, NULL, &boot, &r, &f.e), 0);
	assert_int_equal(hf_keep_checkpoint(f.keep, 1, false, &f.e), 0);
	assert_int_equal(hf_keep_checkpoint(f.keep, 1, true, &f.e), 0);
	long_turn(&f, 2, "t");
	hf_keep_close(f.keep);
	assert_int_equal(hf_keep_open(&f.keep, &f.conf[0], &f.e), 0);
	hf_store_close(f.st[2]);
	f.st[2] = NULL;
	assert_true(vfs_watch.locks > 20);
	assert_int_equal(vfs_watch.naked, 0);
	/* Whoever does without is seen. */
	fx_sql(&f, "UPDATE meta SET num = num");
	assert_true(vfs_watch.naked > 0);
	vfs_watch.h = NULL;
	fx_close(&f);
}

/* Try a turn while the n-th write fails.  What was acknowledged. */
struct tried {
	int t1, t2;
	char text[16];
};

static struct tried
try_turn(struct fx *f, int n)
{
	struct tried t = { .t2 = HF_ECANCELED };
	struct hf_head h = fx_head(f, 1, "s");
	struct hf_item in, out;
	struct hf_begin b;
	struct hf_begun begun;
	struct hf_finish fin;

	snprintf(t.text, sizeof(t.text), "n%d", n);
	b = fx_turn("s", &h, &in, t.text);
	atomic_store(&vfs_watch.fail_at, n);
	t.t1 = fx_begin(f, 1, &b, &begun);
	if (t.t1 == 0) {
		fin = fx_answer(&b, &begun, &h.key, &out, "answer");
		t.t2 = fx_finish(f, 1, &fin);
		if (t.t2 < 0) {
			/* The trouble is over: the same end works. */
			atomic_store(&vfs_watch.fail_at, 0);
			assert_int_equal(fx_finish(f, 1, &fin), 0);
		}
	}
	atomic_store(&vfs_watch.fail_at, 0);
	return t;
}

static bool
is_typed(int rc)
{
	return rc == 0 || rc == HF_EFULL || rc == HF_EIO;
}

static void
failing_writes(struct fx *f, int code, bool sticky)
{
	unsigned failed = 0, quiet = 0, turns = 0;
	char want[8192] = "";
	size_t len = 0;

	vfs_watch.fail_code = code;
	vfs_watch.sticky = sticky;
	for (int n = 1; quiet < 3 && n < 200; n++) {
		struct tried t;
		int before = atomic_load(&vfs_watch.failed);

		t = try_turn(f, n);
		if (atomic_load(&vfs_watch.failed) == before)
			quiet++; /* a turn has not so many writes */
		assert_true(is_typed(t.t1));
		assert_true(is_typed(t.t2) || t.t1 < 0);
		failed += t.t1 < 0 || t.t2 < 0;
		if (t.t1 < 0)
			continue;
		len += (size_t)snprintf(want + len, sizeof(want) - len,
		    "%suser:%s|assistant:answer", turns++ == 0 ? "" : "|",
		    t.text);
		assert_true(len < sizeof(want));
	}
	assert_true(failed > 5);
	assert_int_equal(quiet, 3);
	/* What was refused is not there; what was acknowledged is. */
	assert_string_equal(fx_history(f, 1, "s"), want);
	assert_int_equal(fx_sql(f, "SELECT count(*) FROM turn"), turns);
	assert_int_equal(fx_sql(f, "SELECT count(*) FROM item"), 2 * turns);
	/* And a process that starts now sees the same. */
	hf_store_close(f->st[1]);
	f->st[1] = NULL;
	assert_string_equal(fx_history(f, 1, "s"), want);
	assert_int_equal(
	    fx_sql(f,
		"SELECT count(*) FROM"
		" pragma_integrity_check WHERE integrity_check = 'ok'"),
	    1);
}

static void
disk_full_at_every_write(void **state)
{
	struct fx f;

	(void)state;
	fx_open(&f);
	failing_writes(&f, SQLITE_FULL, false);
	fx_close(&f);
}

static void
disk_full_from_a_write_on(void **state)
{
	struct fx f;

	(void)state;
	fx_open(&f);
	failing_writes(&f, SQLITE_FULL, true);
	fx_close(&f);
}

static void
io_error_at_every_write(void **state)
{
	struct fx f;

	(void)state;
	fx_open(&f);
	failing_writes(&f, SQLITE_IOERR_WRITE, false);
	fx_close(&f);
}

/* A checkpoint that fails half-way harms nothing and is made up for. */
static void
failing_checkpoint(void **state)
{
	int rc = 0, n;
	struct fx f;

	(void)state;
	fx_open(&f);
	vfs_watch.fail_code = SQLITE_FULL;
	vfs_watch.sticky = false;
	for (n = 1; n < 100; n++) {
		int before = atomic_load(&vfs_watch.failed);

		fx_say(&f, 1, "s", "q", "a");
		atomic_store(&vfs_watch.fail_at, n);
		rc = hf_keep_checkpoint(f.keep, 1, n % 2 == 0, &f.e);
		atomic_store(&vfs_watch.fail_at, 0);
		assert_true(is_typed(rc));
		if (atomic_load(&vfs_watch.failed) == before)
			break;
	}
	assert_true(n > 5 && n < 100);
	assert_int_equal(fx_head(&f, 1, "s").view_items, 2 * n);
	assert_int_equal(hf_keep_checkpoint(f.keep, 1, true, &f.e), 0);
	assert_int_equal(fx_head(&f, 1, "s").view_items, 2 * n);
	fx_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_write_without_the_mutex),
		cmocka_unit_test(disk_full_at_every_write),
		cmocka_unit_test(disk_full_from_a_write_on),
		cmocka_unit_test(io_error_at_every_write),
		cmocka_unit_test(failing_checkpoint),
	};

	vfs_register();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
