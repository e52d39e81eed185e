/*
 * The power goes.  Everything that goes to the database's files is recorded;
 * at random moments the files are made anew as a disk may be found then: what
 * was synced is there, of the rest any sector in any of its versions, or not.
 * That copy is recovered as after a restart: everything that had been
 * acknowledged is in it, in order, and nothing is broken or unknown.
 *
 * And checkpoints that run into commits lose no row (the bug of SQLite 3.7.0
 * to 3.51.2 that the writer mutex keeps away).
 */
#include <config.h>

#include <pthread.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/check.h"
#include "store/inspect.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/store_vfs.h"

#define SECTOR ((size_t)512)
#define SESSIONS 3
#define SLOTS 3 /* workers, slots 1.. */

static unsigned
cuts_wanted(void)
{
	const char *n = getenv("HF_TEST_CUTS");

	if (n != NULL)
		return (unsigned)atoi(n);
	return getenv("HF_TEST_LONG") != NULL ? 10000 : 500;
}

/* --- the disk ----------------------------------------------------------------
 */

struct op {
	int64_t at; /* of a write; else the new size */
	size_t n;
	char *bytes; /* NULL: truncate */
};

struct disk_file {
	char *synced;
	size_t size;
	struct op *op;
	size_t n_op, cap;
};

enum { DB, WAL, FILES };

static struct {
	pthread_mutex_t lock;
	struct disk_file file[FILES];
	const char *db; /* path */
	unsigned every; /* a cut in so many calls */
	bool taken;	/* the image waits to be looked at */
	struct disk_file image[FILES];
	unsigned acked[SESSIONS]; /* at that moment */
} disk = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* What was acknowledged: turns of each session; the last may be half done. */
static _Atomic unsigned acked[SESSIONS];

static struct disk_file *
file_of(const char *name)
{
	size_t n = strlen(disk.db);

	if (strncmp(name, disk.db, n) != 0)
		return NULL;
	if (name[n] == '\0')
		return &disk.file[DB];
	return strcmp(name + n, "-wal") == 0 ? &disk.file[WAL] : NULL;
}

static void
need(struct disk_file *f, size_t size)
{
	if (size <= f->size)
		return;
	f->synced = realloc(f->synced, size);
	HF_CHECK(f->synced != NULL);
	memset(f->synced + f->size, 0, size - f->size);
	f->size = size;
}

static void
apply(struct disk_file *f, const struct op *op)
{
	if (op->bytes == NULL) {
		need(f, (size_t)op->at);
		f->size = (size_t)op->at;
		return;
	}
	need(f, (size_t)op->at + op->n);
	memcpy(f->synced + op->at, op->bytes, op->n);
}

/* Each sector of each write that was not synced is there or not, and of
 * several to one place any may be the last. */
static void
apply_some(struct disk_file *f, const struct disk_file *from)
{
	for (size_t i = 0; i < from->n_op * 2 && from->n_op > 0; i++) {
		const struct op *op = &from->op[(size_t)random() % from->n_op];

		if (op->bytes == NULL) {
			apply(f, op);
			continue;
		}
		for (size_t at = 0; at < op->n; at += SECTOR) {
			struct op part = { .at = op->at + (int64_t)at,
				.n = op->n - at < SECTOR ? op->n - at : SECTOR,
				.bytes = op->bytes + at };

			if (random() % 2 == 0)
				apply(f, &part);
		}
	}
}

static void
maybe_cut(void)
{
	if (disk.taken || (unsigned)random() % disk.every != 0)
		return;
	for (int i = 0; i < FILES; i++) {
		const struct disk_file *from = &disk.file[i];
		struct disk_file *f = &disk.image[i];

		f->size = 0;
		need(f, from->size);
		if (from->size > 0)
			memcpy(f->synced, from->synced, from->size);
		apply_some(f, from);
	}
	for (int i = 0; i < SESSIONS; i++)
		disk.acked[i] = atomic_load(&acked[i]);
	disk.taken = true;
}

static void
add_op(const char *name, const void *p, size_t n, int64_t at)
{
	struct disk_file *f = file_of(name);
	struct op *op;

	if (f == NULL)
		return;
	pthread_mutex_lock(&disk.lock);
	if (f->n_op == f->cap) {
		f->cap = f->cap == 0 ? 256 : f->cap * 2;
		f->op = realloc(f->op, f->cap * sizeof(*f->op));
		HF_CHECK(f->op != NULL);
	}
	op = &f->op[f->n_op++];
	*op = (struct op){ .at = at, .n = n };
	if (p != NULL) {
		op->bytes = malloc(n);
		HF_CHECK(op->bytes != NULL);
		memcpy(op->bytes, p, n);
	}
	maybe_cut();
	pthread_mutex_unlock(&disk.lock);
}

static void
on_write(void *arg, const char *name, const void *p, int n, int64_t at)
{
	(void)arg;
	add_op(name, p, (size_t)n, at);
}

static void
on_truncate(void *arg, const char *name, int64_t size)
{
	(void)arg;
	add_op(name, NULL, 0, size);
}

static void
forget_ops(struct disk_file *f)
{
	for (size_t i = 0; i < f->n_op; i++)
		free(f->op[i].bytes);
	f->n_op = 0;
}

static void
on_sync(void *arg, const char *name)
{
	struct disk_file *f = file_of(name);

	(void)arg;
	if (f == NULL)
		return;
	pthread_mutex_lock(&disk.lock);
	for (size_t i = 0; i < f->n_op; i++)
		apply(f, &f->op[i]);
	forget_ops(f);
	maybe_cut();
	pthread_mutex_unlock(&disk.lock);
}

static const struct vfs_recorder recorder = {
	.write = on_write, .truncate = on_truncate, .sync = on_sync
};

static void
load(struct disk_file *f, const char *path)
{
	FILE *in = fopen(path, "rb");
	struct stat sb;

	*f = (struct disk_file){ 0 };
	if (in == NULL)
		return;
	assert_int_equal(fstat(fileno(in), &sb), 0);
	need(f, (size_t)sb.st_size);
	assert_int_equal(fread(f->synced, 1, f->size, in), f->size);
	fclose(in);
}

static void
store_file(const struct disk_file *f, const char *path)
{
	FILE *out = fopen(path, "wb");

	assert_non_null(out);
	assert_int_equal(fwrite(f->synced, 1, f->size, out), f->size);
	assert_int_equal(fclose(out), 0);
}

/* What is on disk now counts as synced. */
static void
begin_recording(struct fx *f, unsigned every)
{
	char wal[320];

	snprintf(wal, sizeof(wal), "%s-wal", f->db);
	disk.db = f->db;
	disk.every = every;
	disk.taken = false;
	load(&disk.file[DB], f->db);
	load(&disk.file[WAL], wal);
	vfs_recorder = &recorder;
}

static void
end_recording(void)
{
	vfs_recorder = NULL;
	for (int i = 0; i < FILES; i++) {
		forget_ops(&disk.file[i]);
		free(disk.file[i].op);
		free(disk.file[i].synced);
		free(disk.image[i].synced);
		disk.file[i] = disk.image[i] = (struct disk_file){ 0 };
	}
}

/* --- after the power came back
 * ------------------------------------------------
 */

static void
on_finding(void *arg, const struct hf_finding *v)
{
	(void)arg;
	print_error("%s: %s\n", v->severity, v->text);
}

static void
verify_all(const struct hf_store_conf *c)
{
	struct hf_verified sum = { 0 };
	struct hf_cursor at = { 0 };
	struct hf_inspect *in;
	struct hf_error e;
	int rc;

	assert_int_equal(hf_inspect_open(&in, c, &e), 0);
	do
		rc = hf_verify_next(in, &at, on_finding, NULL, &sum, &e);
	while (rc > 0);
	assert_int_equal(rc, 0);
	assert_int_equal(sum.corrupt, 0);
	assert_int_equal(sum.odd, 0);
	hf_inspect_close(in);
}

/* The history of session 's' is what was acknowledged and at most one turn
 * more, whole or begun. */
static void
check_history(struct fx *f, unsigned s)
{
	unsigned n = disk.acked[s], k = 0;
	char name[16], want[64];
	const char *p;

	snprintf(name, sizeof(name), "s%u", s);
	p = fx_history(f, 1, name);
	if (strcmp(p, "ENOTFOUND") == 0) {
		assert_int_equal(n, 0);
		return;
	}
	for (; *p != '\0'; k++) {
		snprintf(
		    want, sizeof(want), "%suser:u%u", k == 0 ? "" : "|", k);
		if (strncmp(p, want, strlen(want)) != 0)
			fail_msg("session %u turn %u: %s", s, k, p);
		p += strlen(want);
		snprintf(want, sizeof(want), "|assistant:a%u", k);
		if (strncmp(p, want, strlen(want)) == 0)
			p += strlen(want);
		else if (*p != '\0' || k < n)
			fail_msg("session %u turn %u: %s", s, k, p);
	}
	if (k < n || k > n + 1)
		fail_msg("session %u: %u turns, %u acknowledged", s, k, n);
}

static void
make_folder(struct fx *f, const struct fx *beside, const char *kind)
{
	assert_true(snprintf(f->dir, sizeof(f->dir), "%.240s-%s", beside->dir,
			kind) < (int)sizeof(f->dir));
	assert_int_equal(mkdir(f->dir, 0700), 0);
	snprintf(f->db, sizeof(f->db), "%s/db", f->dir);
	snprintf(f->key, sizeof(f->key), "%s/db.key", f->dir);
}

static void
look_at_image(const struct fx *real)
{
	const struct vfs_recorder *was = vfs_recorder;
	char path[400];
	struct fx f;

	vfs_recorder = NULL;
	memset(&f, 0, sizeof(f));
	make_folder(&f, real, "cut");
	store_file(&disk.image[DB], f.db);
	snprintf(path, sizeof(path), "%s/db-wal", f.dir);
	store_file(&disk.image[WAL], path);
	assert_int_equal(link(real->key, f.key), 0);
	fx_reopen(&f);
	assert_int_equal(fx_sql(&f,
			     "SELECT count(*) FROM pragma_integrity_check "
			     "WHERE integrity_check <> 'ok'"),
	    0);
	for (unsigned s = 0; s < SESSIONS; s++)
		check_history(&f, s);
	verify_all(&f.conf[1]);
	fx_close(&f);
	vfs_recorder = was;
}

/* --- turns
 * ---------------------------------------------------------------------
 */

static void
one_turn(struct fx *f, unsigned s, unsigned k)
{
	char name[16], user[16], answer[16];

	snprintf(name, sizeof(name), "s%u", s);
	snprintf(user, sizeof(user), "u%u", k);
	snprintf(answer, sizeof(answer), "a%u", k);
	fx_say(f, 1 + s % SLOTS, name, user, answer);
	atomic_store(&acked[s], k + 1);
}

static void
test_power(void **state)
{
	unsigned cuts = cuts_wanted(), done = 0, k = 0;
	struct fx f;

	(void)state;
	srandom(7);
	fx_open(&f);
	for (unsigned s = 1; s <= SLOTS; s++)
		fx_store(&f, s);
	begin_recording(&f, 12);
	while (done < cuts) {
		for (unsigned s = 0; s < SESSIONS; s++) {
			one_turn(&f, s, k);
			if (k % 5 == 4)
				assert_int_equal(hf_keep_checkpoint(f.keep, 1,
						     (k / 5) % 2 == 0, &f.e),
				    0);
			if (!disk.taken)
				continue;
			look_at_image(&f);
			disk.taken = false;
			done++;
		}
		/* Sessions stay short, or most of the time goes into reading
		 * what was seen before. */
		if (++k < 30)
			continue;
		end_recording();
		fx_close(&f);
		fx_open(&f);
		for (unsigned s = 1; s <= SLOTS; s++)
			fx_store(&f, s);
		for (unsigned s = 0; s < SESSIONS; s++)
			atomic_store(&acked[s], 0);
		k = 0;
		begin_recording(&f, 12);
	}
	print_message("cuts=%u lost=0 corrupt=0\n", done);
	end_recording();
	fx_close(&f);
}

/* A disk that lies about syncs loses what was acknowledged: the check above
 * can fail. */
static void
test_lying_disk(void **state)
{
	struct fx f, g;

	(void)state;
	srandom(8);
	fx_open(&f);
	fx_store(&f, 1);
	for (unsigned s = 0; s < SESSIONS; s++)
		atomic_store(&acked[s], 0);
	begin_recording(&f, 1u << 30);
	for (unsigned k = 0; k < 10; k++)
		one_turn(&f, 0, k);
	/* The log never got there, only the file as it was before. */
	memset(&g, 0, sizeof(g));
	make_folder(&g, &f, "lie");
	vfs_recorder = NULL;
	store_file(&disk.file[DB], g.db);
	assert_int_equal(link(f.key, g.key), 0);
	fx_reopen(&g);
	assert_string_equal(fx_history(&g, 1, "s0"), "ENOTFOUND");
	fx_close(&g);
	end_recording();
	fx_close(&f);
}

/* --- checkpoints
 * --------------------------------------------------------------
 */

static _Atomic bool stop;

static void
pause_in_checkpoint(
    void *arg, const char *name, const void *p, int n, int64_t at)
{
	size_t len = strlen(name);

	(void)arg;
	(void)p;
	(void)n;
	(void)at;
	/* Pages reach the database's own file in checkpoints only. */
	if (len < 4 || strcmp(name + len - 4, "-wal") != 0)
		for (int i = 0; i < 20; i++)
			sched_yield();
}

static void
no_truncate(void *arg, const char *name, int64_t size)
{
	(void)arg;
	(void)name;
	(void)size;
}

static void
no_sync(void *arg, const char *name)
{
	(void)arg;
	(void)name;
}

static void *
checkpoints(void *arg)
{
	struct fx *f = arg;
	struct hf_error e;
	unsigned n = 0;

	while (!atomic_load(&stop))
		if (hf_keep_checkpoint(f->keep, 1, n++ % 2 == 0, &e) < 0)
			return (void *)(uintptr_t) "checkpoint failed";
	return NULL;
}

static void
test_checkpoints(void **state)
{
	static const struct vfs_recorder slow = { .write = pause_in_checkpoint,
		.truncate = no_truncate,
		.sync = no_sync };
	unsigned rounds = 100;
	pthread_t thread;
	void *failed;
	struct fx f;

	(void)state;
	fx_open(&f);
	for (unsigned s = 1; s <= SLOTS; s++)
		fx_store(&f, s);
	vfs_recorder = &slow;
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, checkpoints, &f), 0);
	for (unsigned k = 0; k < rounds; k++)
		for (unsigned s = 0; s < SESSIONS; s++)
			one_turn(&f, s, k);
	atomic_store(&stop, true);
	pthread_join(thread, &failed);
	vfs_recorder = NULL;
	assert_null(failed);
	assert_int_equal(
	    fx_sql(&f, "SELECT count(*) FROM turn"), rounds * SESSIONS);
	assert_int_equal(fx_sql(&f,
			     "SELECT count(*) FROM pragma_integrity_check "
			     "WHERE integrity_check <> 'ok'"),
	    0);
	verify_all(&f.conf[1]);
	fx_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_power),
		cmocka_unit_test(test_lying_disk),
		cmocka_unit_test(test_checkpoints),
	};

	/* The disk is simulated: a real one would only take time. */
	if (access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 1);
	vfs_register();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
