/*
 * The store thread: group commit.
 *
 * The loop thread keeps its jobs back until it has no other event to serve:
 * else the first of them would wake the store thread, which, on a busy
 * processor, commits it alone, and the rest after it one by one.
 *
 * The store thread takes the writer mutex first and only then takes jobs from
 * the queue: what arrives while it waits joins the group, so that groups grow
 * by themselves when the disk or the mutex is slow.  After the commit, and not
 * before, owners of granted leases are woken and completions handed back.
 */
#include <config.h>

#include "store/queue.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fault.h"
#include "base/log.h"

/* Rows per second grow 3 to 4 times up to 16 jobs a commit, little past 64. */
#define GROUP_MAX 64
/* Bytes after which a group takes no more jobs, so that nobody waits long for
 * others' megabytes, in this process or for the mutex. */
#define GROUP_WEIGHT ((size_t)2 * 1024 * 1024)
/* Of those that nobody waits for, and how often others may go first. */
#define UNHURRIED_MAX 16
#define PASSED_MAX 8
/* Jobs not completed; beyond it new turns are refused (HF_EBUSY). */
#define QUEUE_MAX 4096
/* An idle store thread moves its heartbeat this often. */
#define IDLE_MS 500

struct list {
	struct hf_job *first, **last;
	unsigned n;
};

struct hf_queue {
	struct hf_writer *w; /* borrowed; store thread's */
	pthread_t thread;
	int fd; /* eventfd: completions wait */
	/* Loop thread's. */
	unsigned pending;
	bool closing;
	struct list kept;	  /* not handed over yet */
	void (*later)(void *arg); /* asks for hf_queue_submit() */
	void *later_arg;
	pthread_mutex_t lock; /* over what follows */
	pthread_cond_t cond;
	struct list todo, unhurried, done;
	unsigned passed; /* groups since an unhurried one was taken */
	bool stop;
};

static void
list_init(struct list *l)
{
	l->first = NULL;
	l->last = &l->first;
	l->n = 0;
}

static void
list_add(struct list *l, struct hf_job *j)
{
	j->next = NULL;
	*l->last = j;
	l->last = &j->next;
	l->n++;
}

static void
list_move(struct list *to, struct list *from)
{
	if (from->first == NULL)
		return;
	*to->last = from->first;
	to->last = from->last;
	to->n += from->n;
	list_init(from);
}

static struct hf_job *
list_take(struct list *l)
{
	struct hf_job *j = l->first;

	if (j == NULL)
		return NULL;
	l->first = j->next;
	if (l->first == NULL)
		l->last = &l->first;
	l->n--;
	return j;
}

/* Move jobs to 'group' until it has 'most' of them, or is heavy. */
static void
take_from(struct list *from, struct list *group, unsigned most, size_t *weight)
{
	struct hf_job *j;

	while (group->n < most && *weight < GROUP_WEIGHT &&
	    (j = list_take(from)) != NULL) {
		*weight += j->weight;
		list_add(group, j);
	}
}

/* Store thread: move a group of jobs from the queue to 'group'.  An unhurried
 * job is taken behind all others that there are, so that what its turn
 * submitted before it runs before it. */
static void
take_group(struct hf_queue *q, struct list *group)
{
	size_t weight = 0;
	unsigned most;

	list_init(group);
	pthread_mutex_lock(&q->lock);
	if (q->unhurried.first != NULL && q->passed >= PASSED_MAX) {
		list_move(&q->todo, &q->unhurried);
		q->passed = 0;
	}
	take_from(&q->todo, group, GROUP_MAX, &weight);
	if (q->todo.first == NULL) {
		most = group->n + UNHURRIED_MAX;
		take_from(&q->unhurried, group,
		    most < GROUP_MAX ? most : GROUP_MAX, &weight);
		q->passed = 0;
	} else {
		q->passed++;
	}
	pthread_mutex_unlock(&q->lock);
}

static void
give_back(struct hf_queue *q, struct list *group)
{
	uint64_t one = 1;
	struct hf_job *j;
	unsigned failed = 0, fenced = 0, n = group->n;
	ssize_t put;

	for (j = group->first; j != NULL; j = j->next) {
		failed += j->rc < 0;
		fenced += j->rc == HF_EFENCED;
	}
	hf_count(q->w->shm, HF_C_store_jobs, n);
	if (failed > 0)
		hf_count(q->w->shm, HF_C_store_errors, failed);
	if (fenced > 0)
		hf_count(q->w->shm, HF_C_fenced, fenced);
	pthread_mutex_lock(&q->lock);
	list_move(&q->done, group);
	pthread_mutex_unlock(&q->lock);
	put = write(q->fd, &one, sizeof(one));
	HF_CHECK(put == sizeof(one) || errno == EAGAIN);
}

static void
fail_all(struct list *group, const struct hf_error *e)
{
	for (struct hf_job *j = group->first; j != NULL; j = j->next) {
		j->rc = e->code;
		j->err = *e;
	}
}

static bool
has_step(const struct list *group, enum hf_job_step step)
{
	for (const struct hf_job *j = group->first; j != NULL; j = j->next)
		if (j->step == step)
			return true;
	return false;
}

/* Before and after the commit of each step. */
static const char *const fault_point[][2] = {
	[HF_JOB_T1] = { "store.t1.before_commit", "store.t1.after_commit" },
	[HF_JOB_ATTEMPTS] = { "store.attempts.before_commit",
	    "store.attempts.after_commit" },
	[HF_JOB_PART] = { "store.part.before_commit",
	    "store.part.after_commit" },
	[HF_JOB_T2] = { "store.t2.before_commit", "store.t2.after_commit" },
	[HF_JOB_ADOPT] = { "store.adopt.before_commit",
	    "store.adopt.after_commit" },
};

static bool
fault_at(const struct list *group, bool after)
{
	for (unsigned i = HF_JOB_T1; i < hf_countof(fault_point); i++)
		if (has_step(group, (enum hf_job_step)i) &&
		    hf_fault(fault_point[i][after]))
			return true;
	return false;
}

/* Worth a line in the log: trouble of the storage, not a refused job. */
static bool
is_trouble(int rc)
{
	return rc == HF_EFULL || rc == HF_EREADONLY || rc == HF_EIO ||
	    rc == HF_ECORRUPT || rc == HF_EBUSY || rc == HF_ETIMEOUT ||
	    rc == HF_ENOMEM;
}

/* The first job from 'j' on that fails after it began to write; NULL: the
 * transaction holds exactly what the others did.  One that is refused before
 * that has nothing to be taken back. */
static struct hf_job *
run_from(struct hf_writer *w, struct hf_job *j)
{
	static struct hf_log_limit limit;

	for (; j != NULL; j = j->next) {
		int64_t created = w->created;
		unsigned writes = w->db.writes;

		if (j->out)
			continue;
		j->rc = j->run(w, j, &j->err);
		if (j->rc >= 0)
			continue;
		w->created = created;
		j->out = true;
		if (is_trouble(j->rc))
			hf_log_limited(&limit, 1000, HF_LOG_ERROR,
			    "store: job failed error=%s: %s",
			    hf_err_name(j->rc), j->err.text);
		if (w->db.writes != writes ||
		    sqlite3_get_autocommit(w->db.h) != 0)
			break;
	}
	return j;
}

/* A job that fails is left out, with all that it did: everything is rolled
 * back and the others run again.  Savepoints would do the same for less, but
 * a commit after ROLLBACK TO does not survive the recovery of the log if pages
 * had left the cache before it (seen with SQLite 3.40.1: the checksums of the
 * frames that are overwritten are not those of their chain).  A transaction of
 * which anything was taken back is never committed. */
static int
run_jobs(struct hf_writer *w, struct list *group, struct hf_error *e)
{
	struct hf_job *j;

	while ((j = run_from(w, group->first)) != NULL) {
		hf_writer_rollback(w);
		if (group->n == 1) {
			*e = j->err;
			return j->rc;
		}
		if (hf_writer_begin(w, e) < 0)
			return e->code;
	}
	return 0;
}

static int
run_group(struct hf_writer *w, struct list *group, struct hf_error *e)
{
	int rc = hf_writer_begin(w, e);

	if (rc == 0)
		rc = run_jobs(w, group, e);
	if (rc == 0 && fault_at(group, false))
		rc = hf_fail(e, HF_EIO, "fault");
	if (rc == 0)
		rc = hf_writer_commit(w, e);
	else
		hf_writer_rollback(w);
	if (rc == 0 && fault_at(group, true))
		hf_log(HF_LOG_WARN, "store: fault after commit ignored");
	return rc;
}

/* The connection that wrote still has the pages that it wrote and read. */
static void
read_after(struct hf_writer *w, struct list *group)
{
	bool reading = false;

	for (struct hf_job *j = group->first; j != NULL; j = j->next) {
		if (j->after == NULL || j->rc < 0)
			continue;
		if (!reading &&
		    hf_db_run(&w->db, HF_SQL_BEGIN_READ, NULL, "") < 0)
			return;
		reading = true;
		j->after(w, j);
	}
	if (reading && hf_db_run(&w->db, HF_SQL_COMMIT, NULL, "") < 0)
		hf_db_rollback(&w->db);
}

static void
serve(struct hf_queue *q)
{
	static struct hf_log_limit limit;
	struct hf_writer *w = q->w;
	struct list group;
	struct hf_error e = { 0 }, ignored;
	int rc = hf_writer_lock(w, &e);
	bool locked = rc == 0;

	take_group(q, &group);
	if (rc == 0)
		rc = run_group(w, &group, &e);
	if (rc < 0) {
		fail_all(&group, &e);
		if (is_trouble(rc))
			hf_log_limited(&limit, 1000, HF_LOG_ERROR,
			    "store: commit failed jobs=%u error=%s: %s",
			    group.n, hf_err_name(rc), e.text);
	}
	atomic_fetch_add_explicit(
	    &w->shm->h->slot[w->slot].beat_store, 1, memory_order_relaxed);
	if (rc == 0 && hf_writer_checkpoint_due(w)) {
		/* Nobody in this group waits for the checkpoint. */
		hf_writer_wake(w);
		read_after(w, &group);
		give_back(q, &group);
		if (hf_writer_checkpoint(w, false, &ignored) < 0)
			hf_count(w->shm, HF_C_store_errors, 1);
		hf_writer_unlock(w);
		return;
	}
	if (locked)
		hf_writer_unlock(w);
	if (rc == 0) {
		hf_writer_wake(w);
		read_after(w, &group);
	}
	give_back(q, &group);
}

static bool
has_work(const struct hf_queue *q)
{
	return q->todo.first != NULL || q->unhurried.first != NULL;
}

/* False: stop. */
static bool
wait_for_work(struct hf_queue *q)
{
	struct timespec until;
	bool work, stop;

	pthread_mutex_lock(&q->lock);
	if (!has_work(q) && !q->stop) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += (long)IDLE_MS * 1000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&q->cond, &q->lock, &until);
	}
	work = has_work(q);
	stop = q->stop;
	pthread_mutex_unlock(&q->lock);
	if (work)
		serve(q);
	else
		atomic_fetch_add_explicit(
		    &q->w->shm->h->slot[q->w->slot].beat_store, 1,
		    memory_order_relaxed);
	return work || !stop;
}

static void *
thread_main(void *arg)
{
	struct hf_queue *q = arg;

	/* By this call and not by a file of /proc, as pthread_setname_np() of
	 * another thread does it: that file makes waitpid() of a killed process
	 * wait for the dying thread to drop it. */
	prctl(PR_SET_NAME, "store");
	while (wait_for_work(q))
		continue;
	return NULL;
}

static int
start_thread(struct hf_queue *q, struct hf_error *e)
{
	sigset_t all, old;
	int rc;

	/* Signals belong to the loop thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&q->thread, NULL, thread_main, q);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0)
		return hf_fail(e, HF_ESYS, "store thread: %s", strerror(rc));
	return 0;
}

int
hf_queue_new(struct hf_queue **out, struct hf_writer *w, struct hf_error *e)
{
	struct hf_queue *q = hf_xcalloc(1, sizeof(*q));
	pthread_condattr_t a;

	*out = NULL;
	q->w = w;
	list_init(&q->kept);
	list_init(&q->todo);
	list_init(&q->unhurried);
	list_init(&q->done);
	q->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (q->fd < 0) {
		hf_fail_errno(e, "eventfd");
		free(q);
		return HF_ESYS;
	}
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&a);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	pthread_cond_init(&q->cond, &a);
	pthread_condattr_destroy(&a);
	if (start_thread(q, e) < 0) {
		close(q->fd);
		free(q);
		return HF_ESYS;
	}
	*out = q;
	return 0;
}

void
hf_queue_free(struct hf_queue *q)
{
	if (q == NULL)
		return;
	q->closing = true;
	hf_queue_submit(q);
	pthread_mutex_lock(&q->lock);
	q->stop = true;
	pthread_cond_signal(&q->cond);
	pthread_mutex_unlock(&q->lock);
	pthread_join(q->thread, NULL);
	hf_queue_dispatch(q);
	HF_CHECK(q->pending == 0);
	pthread_cond_destroy(&q->cond);
	pthread_mutex_destroy(&q->lock);
	close(q->fd);
	free(q);
}

int
hf_queue_put(struct hf_queue *q, struct hf_job *j, struct hf_error *e)
{
	if (q->closing) {
		j->free(j);
		return hf_fail(e, HF_ECANCELED, "store: closing");
	}
	if (!j->must && q->pending >= QUEUE_MAX) {
		j->free(j);
		return hf_fail(e, HF_EBUSY,
		    "store: %d jobs wait for the "
		    "disk",
		    QUEUE_MAX);
	}
	q->pending++;
	list_add(&q->kept, j);
	if (q->later == NULL || q->kept.n >= GROUP_MAX)
		hf_queue_submit(q);
	else if (q->kept.n == 1)
		q->later(q->later_arg);
	return 0;
}

void
hf_queue_submit(struct hf_queue *q)
{
	struct hf_job *j;
	bool idle;

	if (q->kept.first == NULL)
		return;
	pthread_mutex_lock(&q->lock);
	idle = !has_work(q);
	while ((j = list_take(&q->kept)) != NULL)
		list_add(j->unhurried ? &q->unhurried : &q->todo, j);
	if (idle)
		pthread_cond_signal(&q->cond);
	pthread_mutex_unlock(&q->lock);
}

void
hf_queue_set_later(struct hf_queue *q, void (*later)(void *arg), void *arg)
{
	hf_queue_submit(q);
	q->later = later;
	q->later_arg = arg;
}

int
hf_queue_event_fd(const struct hf_queue *q)
{
	return q->fd;
}

void
hf_queue_dispatch(struct hf_queue *q)
{
	struct list done;
	struct hf_job *j;
	uint64_t n;

	if (read(q->fd, &n, sizeof(n)) < 0)
		HF_CHECK(errno == EAGAIN);
	list_init(&done);
	pthread_mutex_lock(&q->lock);
	list_move(&done, &q->done);
	pthread_mutex_unlock(&q->lock);
	while ((j = list_take(&done)) != NULL) {
		q->pending--;
		j->done(j);
		j->free(j);
	}
}

unsigned
hf_queue_pending(const struct hf_queue *q)
{
	return q->pending;
}
