/*
 * Group commit: who fails with whom, full disks, the WAL's bound.
 */
#include <config.h>

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "store/internal.h"
#include "tests/unit/store_fixture.h"

#define N 40

struct job {
	struct hf_head h;
	struct hf_item in, out;
	struct hf_begin b;
	struct hf_begun begun;
	struct hf_finish fin;
	int rc;
	bool done;
	unsigned order;
};

static unsigned completed;

static void
on_begun(void *arg, int rc, const struct hf_error *e, const struct hf_begun *b)
{
	struct job *j = arg;

	(void)e;
	assert_false(j->done);
	j->done = true;
	j->order = completed++;
	j->rc = rc;
	j->begun = *b;
}

static void
on_done(void *arg, int rc, const struct hf_error *e)
{
	struct job *j = arg;

	(void)e;
	assert_false(j->done);
	j->done = true;
	j->order = completed++;
	j->rc = rc;
}

static void
submit_begin(struct fx *f, struct job *j, const char *name)
{
	j->h = fx_head(f, 1, name);
	j->b = fx_turn(name, &j->h, &j->in, "x");
	j->done = false;
	assert_int_equal(
	    hf_store_begin(f->st[1], &j->b, on_begun, j, &f->e), 0);
}

/* Jobs that are submitted while another process holds the writer mutex are
 * one group. */
static void
submit_group(struct fx *f, struct job *j, unsigned n)
{
	char name[16];

	completed = 0;
	fx_store(f, 1);
	assert_int_equal(hf_shm_writer_lock(&f->shm[0], 1000, &f->e), 0);
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		submit_begin(f, &j[i], name);
	}
	assert_int_equal(hf_store_pending(f->st[1]), n);
	hf_shm_writer_unlock(&f->shm[0]);
	fx_drain(f, 1);
}

static void
one_commit_for_many(void **state)
{
	static struct job j[N];
	int64_t commits, jobs;
	struct fx f;

	(void)state;
	fx_open(&f);
	commits = hf_shm_sum(&f.shm[0], HF_C_store_commits);
	jobs = hf_shm_sum(&f.shm[0], HF_C_store_jobs);
	submit_group(&f, j, N);
	assert_int_equal(
	    hf_shm_sum(&f.shm[0], HF_C_store_commits), commits + 1);
	assert_int_equal(hf_shm_sum(&f.shm[0], HF_C_store_jobs), jobs + N);
	assert_int_equal(hf_shm_sum(&f.shm[0], HF_C_sessions_created), N);
	for (unsigned i = 0; i < N; i++) {
		assert_true(j[i].done);
		assert_int_equal(j[i].rc, 0);
		assert_int_equal(j[i].order, i);
		assert_int_equal(j[i].begun.result, HF_BEGIN_OPEN);
	}
	fx_close(&f);
}

static unsigned asked;

static void
ask(void *arg)
{
	(void)arg;
	asked++;
}

/* With somebody who submits, jobs wait for each other, but never more than
 * one commit takes. */
static void
kept_jobs_share_a_commit(void **state)
{
	static struct job j[70];
	int64_t commits;
	char name[16];
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_store(&f, 1);
	asked = 0;
	hf_store_set_later(f.st[1], ask, NULL);
	commits = hf_shm_sum(&f.shm[0], HF_C_store_commits);
	for (unsigned i = 0; i < 70; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		submit_begin(&f, &j[i], name);
		assert_int_equal(asked, i < 64 ? 1 : 2);
		assert_true(i >= 63 ||
		    hf_shm_sum(&f.shm[0], HF_C_store_commits) == commits);
	}
	/* 64 were handed over; the rest waits until it is submitted. */
	while (!j[63].done)
		fx_wait(&f, 1);
	assert_int_equal(
	    hf_shm_sum(&f.shm[0], HF_C_store_commits), commits + 1);
	assert_int_equal(hf_store_pending(f.st[1]), 6);
	assert_false(j[64].done);
	hf_store_submit(f.st[1]);
	fx_drain(&f, 1);
	assert_true(j[69].done);
	assert_int_equal(
	    hf_shm_sum(&f.shm[0], HF_C_store_commits), commits + 2);
	/* Nobody is asked in vain: without one each goes at once. */
	submit_begin(&f, &j[0], "kept");
	assert_int_equal(asked, 3);
	hf_store_set_later(f.st[1], NULL, NULL);
	fx_drain(&f, 1);
	assert_int_equal(j[0].rc, 0);
	submit_begin(&f, &j[1], "at once");
	fx_drain(&f, 1);
	assert_int_equal(j[1].rc, 0);
	assert_int_equal(asked, 3);
	fx_close(&f);
}

/* What a completion reads; see completions_share_a_snapshot(). */
static struct {
	struct fx *f;
	struct hf_history own[N];
	struct hf_arena arena;
	unsigned n;
	bool later_seen[N];
} seen;

static void
read_own(void *arg, int rc, const struct hf_error *e, const struct hf_begun *b)
{
	struct job *j = arg;
	struct hf_store *st = seen.f->st[1];
	struct hf_head h;

	(void)e;
	assert_int_equal(rc, 0);
	j->begun = *b;
	assert_int_equal(hf_store_history(st, b->session_row, b->turn_row,
			     &seen.arena, &seen.own[seen.n], &seen.f->e),
	    0);
	/* Somebody else commits between the first and the second. */
	if (seen.n == 0)
		fx_say(seen.f, 2, "later", "one", "1");
	assert_int_equal(
	    hf_store_head(st, "acme", HF_STR("later"), &h, &seen.f->e), 0);
	seen.later_seen[seen.n++] = h.found;
}

/* The completions of one dispatch read one state of the database, in which
 * each finds its own turn; the next dispatch reads a newer one. */
static void
completions_share_a_snapshot(void **state)
{
	static struct job j[N];
	char name[16];
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_store(&f, 1);
	fx_store(&f, 2);
	memset(&seen, 0, sizeof(seen));
	seen.f = &f;
	hf_arena_init(&seen.arena, 0);
	assert_int_equal(hf_shm_writer_lock(&f.shm[0], 1000, &f.e), 0);
	for (unsigned i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		j[i].h = fx_head(&f, 1, name);
		j[i].b = fx_turn(name, &j[i].h, &j[i].in, name);
		assert_int_equal(
		    hf_store_begin(f.st[1], &j[i].b, read_own, &j[i], &f.e), 0);
	}
	hf_shm_writer_unlock(&f.shm[0]);
	fx_wait(&f, 1);
	assert_int_equal(seen.n, N);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(seen.own[i].n, 1);
		snprintf(name, sizeof(name), "s%u", i);
		assert_true(hf_str_is(seen.own[i].item[0].body, name));
		assert_false(seen.later_seen[i]);
	}
	/* It is over with the dispatch. */
	assert_int_not_equal(sqlite3_get_autocommit(f.st[1]->read.h), 0);
	assert_true(fx_head(&f, 1, "later").found);
	hf_arena_free(&seen.arena);
	fx_close(&f);
}

/* The end of an answer, for whose writing nobody waits. */
static void
submit_unhurried(struct fx *f, struct job *j)
{
	j->fin = fx_answer(&j->b, &j->begun, &j->h.key, &j->out, "answer");
	j->fin.unhurried = true;
	j->done = false;
	assert_int_equal(
	    hf_store_finish(f->st[1], &j->fin, on_done, j, &f->e), 0);
}

/* What nobody waits for goes behind what came later, a few in each commit, but
 * not before what its own turn had submitted. */
static void
unhurried_jobs_go_last(void **state)
{
	static struct job j[N], part[N], late[5];
	char name[16];
	int64_t commits;
	struct fx f;

	(void)state;
	fx_open(&f);
	submit_group(&f, j, N);
	completed = 0;
	commits = hf_shm_sum(&f.shm[0], HF_C_store_commits);
	assert_int_equal(hf_shm_writer_lock(&f.shm[0], 1000, &f.e), 0);
	for (unsigned i = 0; i < 30; i++) {
		part[i].done = false;
		assert_int_equal(hf_store_part(f.st[1], j[i].begun.session_row,
				     j[i].begun.turn_row, j[i].begun.fence, 0,
				     HF_STR("text"), on_done, &part[i], &f.e),
		    0);
		submit_unhurried(&f, &j[i]);
	}
	for (unsigned i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "late%u", i);
		submit_begin(&f, &late[i], name);
	}
	hf_shm_writer_unlock(&f.shm[0]);
	fx_drain(&f, 1);
	for (unsigned i = 0; i < 30; i++) {
		assert_int_equal(part[i].rc, 0);
		assert_int_equal(part[i].order, i);
		assert_int_equal(j[i].rc, 0);
		assert_int_equal(j[i].order, 35 + i);
	}
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(late[i].order, 30 + i);
	/* 35 and 16 of them, then 14. */
	assert_int_equal(
	    hf_shm_sum(&f.shm[0], HF_C_store_commits), commits + 2);
	fx_close(&f);
}

#define BUSY 1200

static struct fx *busy_fx;
static struct job busy[BUSY];
static unsigned busy_next;

static void on_busy(
    void *arg, int rc, const struct hf_error *e, const struct hf_begun *b);

static void
keep_busy(void)
{
	struct job *j = &busy[busy_next];
	char name[16];

	snprintf(name, sizeof(name), "b%u", busy_next++);
	j->h = fx_head(busy_fx, 1, name);
	j->b = fx_turn(name, &j->h, &j->in, "x");
	assert_int_equal(
	    hf_store_begin(busy_fx->st[1], &j->b, on_busy, j, &busy_fx->e), 0);
}

static void
on_busy(void *arg, int rc, const struct hf_error *e, const struct hf_begun *b)
{
	on_begun(arg, rc, e, b);
	if (busy_next < BUSY)
		keep_busy();
}

/* Where the queue is never empty it has its turn too. */
static void
unhurried_jobs_have_their_turn(void **state)
{
	static struct job j;
	struct fx f;

	(void)state;
	fx_open(&f);
	submit_group(&f, &j, 1);
	completed = 0;
	busy_fx = &f;
	busy_next = 0;
	assert_int_equal(hf_shm_writer_lock(&f.shm[0], 1000, &f.e), 0);
	submit_unhurried(&f, &j);
	for (unsigned i = 0; i < 256; i++)
		keep_busy();
	hf_shm_writer_unlock(&f.shm[0]);
	fx_drain(&f, 1);
	assert_int_equal(j.rc, 0);
	assert_int_equal(completed, BUSY + 1);
	/* 8 groups go before it, then what waited when it was its turn. */
	assert_in_range(j.order, 1, 8 * 64 + 256 + 64);
	fx_close(&f);
}

static const struct hf_history *given;
static char given_text[600];

static void
on_begun_with_history(
    void *arg, int rc, const struct hf_error *e, const struct hf_begun *b)
{
	struct hf_history h;
	struct hf_arena a;
	struct fx *f = arg;
	size_t n = 0;

	(void)e;
	assert_int_equal(rc, 0);
	given = b->history;
	for (unsigned i = 0; given != NULL && i < given->n; i++)
		n += (size_t)snprintf(given_text + n, sizeof(given_text) - n,
		    "%.*s|", HF_STR_ARG(given->item[i].body));
	hf_arena_init(&a, 0);
	rc = hf_store_history(
	    f->st[1], b->session_row, b->turn_row, &a, &h, &f->e);
	assert_int_equal(given != NULL, rc == 0 && h.n <= 64);
	if (given != NULL)
		assert_int_equal(given->n, h.n);
	hf_arena_free(&a);
}

/* A second turn of the session, of 'n' items. */
static void
begin_with_history(struct fx *f, const char *name, unsigned n)
{
	static struct hf_item in, item[80];
	struct hf_head h = fx_head(f, 1, name);
	struct hf_begin b = fx_turn(name, &h, &in, "x");

	for (unsigned i = 0; i < n; i++)
		item[i] = in;
	b.item = item;
	b.n_item = n;
	b.view_items = h.view_items + n;
	b.read_history = true;
	given_text[0] = '\0';
	assert_int_equal(
	    hf_store_begin(f->st[1], &b, on_begun_with_history, f, &f->e), 0);
	fx_drain(f, 1);
}

/* T1 hands on the history that the turn's provider must hear, unless it is
 * long or does not verify: then whoever asks for it is told. */
static void
history_with_t1(void **state)
{
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "short", "one", "1");
	fx_say(&f, 1, "long", "one", "1");
	fx_say(&f, 1, "damaged", "one", "1");
	begin_with_history(&f, "short", 1);
	assert_non_null(given);
	assert_string_equal(given_text, "one|1|x|");
	begin_with_history(&f, "long", 70);
	assert_null(given);
	fx_sql(&f,
	    "UPDATE item SET digest = zeroblob(32) WHERE id ="
	    " (SELECT max(id) FROM item WHERE turn = 3)");
	begin_with_history(&f, "damaged", 1);
	assert_null(given);
	assert_string_equal(fx_history(&f, 1, "damaged"), "ECORRUPT");
	fx_close(&f);
}

/* A job that fails takes its own changes back, not its neighbours'. */
static void
one_bad_job(void **state)
{
	static struct job good, bad, late;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_store(&f, 1);
	completed = 0;
	assert_int_equal(hf_shm_writer_lock(&f.shm[0], 1000, &f.e), 0);
	submit_begin(&f, &good, "good");
	bad.h = fx_head(&f, 1, "bad");
	bad.b = fx_turn("bad", &bad.h, &bad.in, "x");
	bad.b.parent_row = 999; /* seen after the session is made */
	bad.done = false;
	assert_int_equal(
	    hf_store_begin(f.st[1], &bad.b, on_begun, &bad, &f.e), 0);
	submit_begin(&f, &late, "late");
	hf_shm_writer_unlock(&f.shm[0]);
	fx_drain(&f, 1);
	assert_int_equal(good.rc, 0);
	assert_int_equal(bad.rc, HF_EINVAL);
	assert_int_equal(late.rc, 0);
	assert_true(fx_head(&f, 1, "good").found);
	assert_true(fx_head(&f, 1, "late").found);
	assert_false(fx_head(&f, 1, "bad").found);
	assert_int_equal(hf_shm_sum(&f.shm[0], HF_C_sessions_created), 2);
	fx_close(&f);
}

struct counting {
	struct hf_job job;
	bool done;
};

static int
run_counting(struct hf_writer *w, struct hf_job *j, struct hf_error *e)
{
	(void)j;
	/* 1, the rows that changed, is no failure. */
	return hf_db_run(
	    &w->db, HF_SQL_META_SET, e, "zi", "min_reader", (int64_t)1);
}

static void
done_counting(struct hf_job *j)
{
	assert_true(j->rc >= 0);
	hf_container_of(j, struct counting, job)->done = true;
}

static void
keep_job(struct hf_job *j)
{
	(void)j;
}

/* Only what is negative is a failure, alone and in a group. */
static void
rows_are_no_failure(void **state)
{
	struct counting c = { .job = { .run = run_counting,
				  .done = done_counting,
				  .free = keep_job } };
	static struct job j;
	int64_t errors;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_store(&f, 1);
	errors = hf_shm_sum(&f.shm[0], HF_C_store_errors);
	fx_sql(&f, "UPDATE meta SET num = 0 WHERE name = 'min_reader'");
	assert_int_equal(hf_queue_put(f.st[1]->queue, &c.job, &f.e), 0);
	fx_drain(&f, 1);
	assert_true(c.done);
	assert_int_equal(
	    fx_sql(&f, "SELECT num FROM meta WHERE name = 'min_reader'"), 1);
	fx_sql(&f, "UPDATE meta SET num = 0 WHERE name = 'min_reader'");
	assert_int_equal(hf_shm_writer_lock(&f.shm[0], 1000, &f.e), 0);
	c.done = false;
	assert_int_equal(hf_queue_put(f.st[1]->queue, &c.job, &f.e), 0);
	submit_begin(&f, &j, "s");
	hf_shm_writer_unlock(&f.shm[0]);
	fx_drain(&f, 1);
	assert_true(c.done && j.done && j.rc == 0);
	assert_int_equal(
	    fx_sql(&f, "SELECT num FROM meta WHERE name = 'min_reader'"), 1);
	assert_int_equal(hf_shm_sum(&f.shm[0], HF_C_store_errors), errors);
	fx_close(&f);
}

/* In a process of its own: a group of which one job fails after it wrote more
 * than the cache of pages holds.  Then the process ends. */
static void
group_with_a_bad_job(struct fx *f, int fd)
{
	static struct job j[N];
	static const struct hf_heard bad = { .item_row = 12345 };
	static struct hf_item many[2000];
	static char big[20000];
	unsigned ok = 0;
	char name[16];

	memset(big, 'x', sizeof(big));
	fx_store(f, 1);
	if (hf_shm_writer_lock(&f->shm[0], 1000, &f->e) < 0)
		_exit(1);
	for (unsigned i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		j[i].h = fx_head(f, 1, name);
		j[i].b = fx_turn(name, &j[i].h, &j[i].in, "x");
		if (i == N / 2) { /* seen when its items are stored */
			j[i].in.body = (struct hf_str){ big, sizeof(big) };
			for (unsigned k = 0; k < hf_countof(many); k++)
				many[k] = j[i].in;
			j[i].b.item = many;
			j[i].b.n_item = hf_countof(many);
			j[i].b.heard = &bad;
			j[i].b.n_heard = 1;
		}
		if (hf_store_begin(f->st[1], &j[i].b, on_begun, &j[i], &f->e) <
		    0)
			_exit(1);
	}
	hf_shm_writer_unlock(&f->shm[0]);
	fx_drain(f, 1);
	for (unsigned i = 0; i < N; i++)
		ok += j[i].rc == 0;
	if (write(fd, &ok, sizeof(ok)) != sizeof(ok))
		_exit(1);
	kill(getpid(), SIGKILL); /* nothing is closed */
	_exit(1);
}

/* What was acknowledged in such a group is in the log for whoever reads it
 * from its beginning. */
static void
bad_job_and_recovery(void **state)
{
	unsigned ok = 0;
	int fd[2], status;
	struct fx f;
	pid_t pid;

	(void)state;
	fx_open(&f);
	hf_keep_close(f.keep);
	f.keep = NULL;
	assert_int_equal(pipe(fd), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		group_with_a_bad_job(&f, fd[1]);
	close(fd[1]);
	assert_int_equal(read(fd[0], &ok, sizeof(ok)), sizeof(ok));
	close(fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(ok, N - 1);
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM turn"), N - 1);
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM session"), N - 1);
	assert_int_equal(
	    fx_sql(&f, "SELECT count(*) FROM item WHERE idx = 0"), N - 1);
	fx_close(&f);
}

#ifdef HF_FAULTS
static void
failed_commit_fails_all(void **state)
{
	static struct job j[N];
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_store(&f, 1);
	fx_fault("store.t1.before_commit=fail");
	submit_group(&f, j, N);
	fx_fault(NULL);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(j[i].rc, HF_EIO);
	assert_int_equal(
	    fx_sql(&f,
		"SELECT (SELECT count(*) FROM session) +"
		" (SELECT count(*) FROM turn) + (SELECT count(*) FROM item)"),
	    0);
	/* And then it goes on. */
	fx_say(&f, 1, "s0", "one", "1");
	fx_close(&f);
}

/* The answer was not stored: the turn is open, its lease held, and the same
 * finish works once the trouble is over. */
static void
failed_t2_can_be_repeated(void **state)
{
	static struct job j;
	struct fx f;

	(void)state;
	fx_open(&f);
	submit_group(&f, &j, 1);
	j.fin = fx_answer(&j.b, &j.begun, &j.h.key, &j.out, "answer");
	fx_fault("store.t2.before_commit=fail");
	assert_int_equal(fx_finish(&f, 1, &j.fin), HF_EIO);
	fx_fault(NULL);
	assert_string_equal(fx_history(&f, 1, "s0"), "user:x");
	assert_true(fx_head(&f, 1, "s0").busy);
	assert_int_equal(fx_finish(&f, 1, &j.fin), 0);
	assert_string_equal(fx_history(&f, 1, "s0"), "user:x|assistant:answer");
	fx_close(&f);
}
#endif

/* Let the database grow by 'pages' more, -1: as it likes. */
static void
set_room(struct fx *f, int pages)
{
	struct hf_db *db = &f->st[1]->writer.db;
	char sql[80];
	int64_t n;

	/* The store thread is idle. */
	assert_int_equal(hf_store_pending(f->st[1]), 0);
	assert_int_equal(hf_db_number(db, "PRAGMA page_count", &n, NULL), 0);
	snprintf(sql, sizeof(sql), "PRAGMA max_page_count = %lld",
	    pages < 0 ? 1000000000LL : (long long)n + pages);
	assert_int_equal(hf_db_number(db, sql, &n, NULL), 0);
}

static void
full_disk(void **state)
{
	static char big[60000];
	static struct job j[N];
	unsigned failed = 0;
	struct job one;
	struct fx f;

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	fx_open(&f);
	fx_say(&f, 1, "s", "one", "1");
	memset(&one, 0, sizeof(one));
	submit_begin(&f, &one, "s");
	fx_drain(&f, 1);
	set_room(&f, 4);
	/* Too big for what is left: refused, nothing half-written. */
	one.fin = fx_answer(&one.b, &one.begun, &one.h.key, &one.out, big);
	assert_int_equal(fx_finish(&f, 1, &one.fin), HF_EFULL);
	assert_string_equal(
	    fx_history(&f, 1, "s"), "user:one|assistant:1|user:x");
	/* A small answer still ends the turn. */
	one.fin = fx_answer(&one.b, &one.begun, &one.h.key, &one.out, "2");
	assert_int_equal(fx_finish(&f, 1, &one.fin), 0);
	/* A group that does not fit fails or stands job by job, or whole. */
	set_room(&f, 0);
	submit_group(&f, j, N);
	for (unsigned i = 0; i < N; i++) {
		char name[16];

		snprintf(name, sizeof(name), "s%u", i);
		assert_true(j[i].rc == 0 || j[i].rc == HF_EFULL);
		assert_int_equal(fx_head(&f, 1, name).found, j[i].rc == 0);
		failed += j[i].rc < 0;
	}
	assert_true(failed > 0);
	assert_int_equal(fx_sql(&f,
			     "SELECT count(*) FROM item i LEFT JOIN"
			     " turn t ON t.id = i.turn WHERE t.id IS NULL"),
	    0);
	/* Room again: all is well. */
	set_room(&f, -1);
	fx_say(&f, 1, "s", "three", "3");
	assert_string_equal(fx_history(&f, 1, "s"),
	    "user:one|assistant:1|"
	    "user:x|assistant:2|user:three|assistant:3");
	fx_close(&f);
}

/* Somebody else sits on the mutex: a typed error, and service afterwards. */
static void
mutex_held_too_long(void **state)
{
	static struct job j;
	struct fx f;

	(void)state;
	fx_open(&f);
	f.conf[1].lock_timeout_ms = 50;
	fx_store(&f, 1);
	assert_int_equal(hf_shm_writer_lock(&f.shm[0], 1000, &f.e), 0);
	submit_begin(&f, &j, "s");
	fx_drain(&f, 1);
	assert_int_equal(j.rc, HF_ETIMEOUT);
	hf_shm_writer_unlock(&f.shm[0]);
	fx_say(&f, 1, "s", "one", "1");
	fx_close(&f);
}

/* What is queued when the store closes is committed and completed. */
static void
close_finishes_the_queue(void **state)
{
	static struct job j[N];
	char name[16];
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_store(&f, 1);
	for (unsigned i = 0; i < N; i++) {
		if (i == N / 2) /* the rest is not handed over yet */
			hf_store_set_later(f.st[1], ask, NULL);
		snprintf(name, sizeof(name), "s%u", i);
		submit_begin(&f, &j[i], name);
	}
	hf_store_close(f.st[1]);
	f.st[1] = NULL;
	for (unsigned i = 0; i < N; i++) {
		assert_true(j[i].done);
		assert_int_equal(j[i].rc, 0);
	}
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM turn"), N);
	fx_close(&f);
}

/* 64 turns with answers of 20 kB each, while histories are read. */
static void
busy_round(struct fx *f, const char *text)
{
	static struct job j[64];
	struct hf_history view;
	struct hf_arena a;

	submit_group(f, j, 64);
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(j[i].rc, 0);
		j[i].fin = fx_answer(
		    &j[i].b, &j[i].begun, &j[i].h.key, &j[i].out, text);
		j[i].done = false;
		assert_int_equal(
		    hf_store_finish(f->st[1], &j[i].fin, on_done, &j[i], &f->e),
		    0);
	}
	for (unsigned i = 0; i < 64; i++) {
		hf_arena_init(&a, 0);
		assert_int_equal(hf_store_view(f->st[1], j[i].begun.session_row,
				     j[i].begun.turn_row, &a, &view, &f->e),
		    0);
		hf_arena_free(&a);
	}
	fx_drain(f, 1);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(j[i].rc, 0);
}

static int64_t
wal_size(struct fx *f)
{
	char wal[400];
	struct stat sb;

	snprintf(wal, sizeof(wal), "%s-wal", f->db);
	assert_int_equal(stat(wal, &sb), 0);
	return (int64_t)sb.st_size;
}

/* The WAL is used again and again; it does not grow with what is written. */
static void
wal_stays_bounded(void **state)
{
	static char text[20000];
	struct fx f;

	(void)state;
	if (getenv("HF_VALGRIND") != NULL)
		skip(); /* readers never leave the WAL alone at that speed */
	memset(text, 'x', sizeof(text) - 1);
	fx_open(&f);
	f.conf[1].sync_full = false; /* only to be quick */
	/* Over 110 MB in all; under load some rounds pass between two looks
	 * at the log. */
	for (unsigned round = 0; round < 90; round++) {
		busy_round(&f, text);
		assert_true(wal_size(&f) < 64 * 1024 * 1024);
	}
	assert_true(hf_shm_sum(&f.shm[0], HF_C_checkpoints) >= 3);
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM turn"), 64 * 90);
	assert_int_equal(fx_head(&f, 1, "s0").view_items, 180);
	fx_close(&f);
}

/* A foreign reader sits on an old snapshot: turns go on, the WAL grows, and
 * is cut back when the reader is gone. */
static void
wal_recovers_from_a_long_reader(void **state)
{
	static char text[20000];
	struct hf_db reader;
	struct fx f;

	(void)state;
	if (getenv("HF_VALGRIND") != NULL)
		skip(); /* as above */
	memset(text, 'x', sizeof(text) - 1);
	fx_open(&f);
	f.conf[1].sync_full = false;
	assert_int_equal(hf_db_open(&reader, f.db, HF_DB_READ, true, &f.e), 0);
	assert_int_equal(
	    hf_db_exec(&reader, "BEGIN; SELECT * FROM meta;", &f.e), 0);
	for (unsigned round = 0; round < 26; round++)
		busy_round(&f, text);
	assert_true(wal_size(&f) > 36 * 1024 * 1024);
	hf_db_close(&reader);
	for (unsigned round = 0; round < 6; round++)
		busy_round(&f, text);
	assert_true(wal_size(&f) < 36 * 1024 * 1024);
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM turn"), 64 * 32);
	fx_close(&f);
}

/* Both heartbeats of the store: at work and idle. */
static void
heartbeat_moves(void **state)
{
	uint64_t was;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_store(&f, 1);
	was = atomic_load(&f.shm[0].h->slot[1].beat_store);
	fx_say(&f, 1, "s", "one", "1");
	assert_true(atomic_load(&f.shm[0].h->slot[1].beat_store) > was);
	was = atomic_load(&f.shm[0].h->slot[1].beat_store);
	for (int i = 0;
	     i < 200 && atomic_load(&f.shm[0].h->slot[1].beat_store) <= was + 1;
	     i++)
		poll(NULL, 0, 20);
	assert_true(atomic_load(&f.shm[0].h->slot[1].beat_store) > was + 1);
	fx_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_commit_for_many),
		cmocka_unit_test(kept_jobs_share_a_commit),
		cmocka_unit_test(completions_share_a_snapshot),
		cmocka_unit_test(unhurried_jobs_go_last),
		cmocka_unit_test(unhurried_jobs_have_their_turn),
		cmocka_unit_test(history_with_t1),
		cmocka_unit_test(one_bad_job),
		cmocka_unit_test(rows_are_no_failure),
		cmocka_unit_test(bad_job_and_recovery),
#ifdef HF_FAULTS
		cmocka_unit_test(failed_commit_fails_all),
		cmocka_unit_test(failed_t2_can_be_repeated),
#endif
		cmocka_unit_test(full_disk),
		cmocka_unit_test(mutex_held_too_long),
		cmocka_unit_test(close_finishes_the_queue),
		cmocka_unit_test(wal_stays_bounded),
		cmocka_unit_test(wal_recovers_from_a_long_reader),
		cmocka_unit_test(heartbeat_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
