/*
 * The queue between a worker's loop thread and its store thread, and that
 * thread.  Jobs go in on the loop thread, run in order inside group commits
 * on the store thread, and come back, completed, to the loop thread.  These
 * two lists are all that the threads share.
 */
#ifndef HF_STORE_QUEUE_H
#define HF_STORE_QUEUE_H

#include "base/err.h"
#include "store/writer.h"

enum hf_job_step {
	HF_JOB_OTHER,
	HF_JOB_T1,
	HF_JOB_ATTEMPTS,
	HF_JOB_PART,
	HF_JOB_T2,
	HF_JOB_ADOPT
};

/* Embedded in the job of each kind, which owns copies of all its input. */
struct hf_job {
	struct hf_job *next;
	enum hf_job_step step; /* which fault points it passes */
	bool must;	       /* accepted even when the queue is
				* full: ends what began */
	size_t weight;	       /* about how many bytes it writes */
	bool unhurried;	       /* nobody waits for it: jobs that came later
				* may run before it, those of its turn came
				* earlier */
	int rc;
	struct hf_error err;
	bool out; /* it failed: not run again with its group */
	/* Store thread, inside the transaction.  Negative: this job's changes
	 * are rolled back. */
	int (*run)(struct hf_writer *w, struct hf_job *j, struct hf_error *e);
	/* Store thread, after the commit and outside the writer mutex, in a
	 * transaction that reads: what the completion needs from the disk.
	 * NULL: nothing.  Not for jobs that failed. */
	void (*after)(struct hf_writer *w, struct hf_job *j);
	/* Loop thread: tell the caller.  Then the job is freed. */
	void (*done)(struct hf_job *j);
	void (*free)(struct hf_job *j);
};

struct hf_queue;

int hf_queue_new(struct hf_queue **out, struct hf_writer *w,
    struct hf_error *e) HF_MUST_CHECK;
/* Run what is queued, join the thread, complete everything. */
void hf_queue_free(struct hf_queue *q);
/* HF_EBUSY: full.  HF_ECANCELED: closing.  On failure the job is freed. */
int hf_queue_put(
    struct hf_queue *q, struct hf_job *j, struct hf_error *e) HF_MUST_CHECK;
/* See hf_store_set_later() and hf_store_submit(). */
void hf_queue_set_later(
    struct hf_queue *q, void (*later)(void *arg), void *arg);
void hf_queue_submit(struct hf_queue *q);
int hf_queue_event_fd(const struct hf_queue *q);
void hf_queue_dispatch(struct hf_queue *q);
unsigned hf_queue_pending(const struct hf_queue *q);

#endif
