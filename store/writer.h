/*
 * What every writing function of the store works with: a connection inside a
 * write transaction, the sealer, and who "we" are.  One per store thread and
 * one in the keeper; used by one thread.
 */
#ifndef HF_STORE_WRITER_H
#define HF_STORE_WRITER_H

#include "base/buf.h"
#include "base/hold.h"
#include "base/shm.h"
#include "store/db.h"
#include "store/seal.h"
#include "store/store.h"

struct hf_writer {
	struct hf_db db;
	struct hf_seal *seal; /* borrowed */
	struct hf_seal_opened *opened;
	struct hf_shm *shm;	    /* borrowed */
	const struct hf_hold *hold; /* borrowed, or NULL */
	unsigned slot;		    /* this process in leases */
	uint64_t inc;
	int lock_timeout_ms;
	unsigned queue_limit;
	hf_make_body_fn make_body; /* NULL: not set */
	void *make_body_arg;
	/* Who counts as dead beside those whom the scoreboard does not know:
	 * recovery at a new boot: everybody; a reap: one named life. */
	bool all_dead;
	unsigned dead_slot;
	uint64_t dead_inc;
	/* Of the transaction under way; acted on after its commit. */
	bool wake[HF_SHM_SLOTS];
	int64_t created;	   /* sessions */
	int64_t interrupted, lost; /* turns, attempts settled */
	int checkpoint_at;	   /* frames */
	struct hf_buf scratch[2];  /* sealed values on their way in */
};

int hf_writer_open(struct hf_writer *w, const struct hf_store_conf *c,
    enum hf_db_mode mode, struct hf_seal *seal,
    struct hf_error *e) HF_MUST_CHECK;
void hf_writer_close(struct hf_writer *w);

/* Take the writer mutex, moving this slot's store heartbeat while waiting. */
int hf_writer_lock(struct hf_writer *w, struct hf_error *e) HF_MUST_CHECK;
void hf_writer_unlock(struct hf_writer *w);
/* Inside the mutex. */
int hf_writer_begin(struct hf_writer *w, struct hf_error *e) HF_MUST_CHECK;
int hf_writer_commit(struct hf_writer *w, struct hf_error *e) HF_MUST_CHECK;
void hf_writer_rollback(struct hf_writer *w);
bool hf_writer_checkpoint_due(const struct hf_writer *w);
int hf_writer_checkpoint(
    struct hf_writer *w, bool truncate, struct hf_error *e) HF_MUST_CHECK;
/* After a commit, outside the mutex: wake those who were granted a lease. */
void hf_writer_wake(struct hf_writer *w);

/* One whole transaction: lock, begin, fn, commit or roll back, unlock, wake.
 * For the keeper. */
typedef int (*hf_writer_fn)(struct hf_writer *w, void *arg, struct hf_error *e);
int hf_writer_run(struct hf_writer *w, hf_writer_fn fn, void *arg,
    struct hf_error *e) HF_MUST_CHECK;

/* Is the owner {slot, inc} of a lease or a queued turn gone? */
bool hf_writer_dead(const struct hf_writer *w, unsigned slot, uint64_t inc);
/* Is it, and will nobody take its turn (turn_...) over?  Then the turn may be
 * settled. */
bool hf_writer_orphan(
    const struct hf_writer *w, unsigned slot, uint64_t inc, const char *turn);

#endif
