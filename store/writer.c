/*
 * Write transactions under the writer mutex, checkpoints, wakes.
 */
#include <config.h>

#include "store/writer.h"

#include "base/clock.h"
#include "base/log.h"

/*
 * Frames in the WAL that make the next committer checkpoint.  A checkpoint
 * holds the writer mutex: about 11 ms for 1000 frames, 39 ms for 4000; but
 * pages that many turns touch are copied once per checkpoint, so fewer of
 * them cost less in sum and leave a better p99.  4000 frames are 16 MB.
 */
#define CHECKPOINT_FRAMES 4000
/* A reader can keep a checkpoint from finishing; do not try again at once. */
#define CHECKPOINT_RETRY 1000
/*
 * From here on (32 MB) a checkpoint waits for the readers, because with many
 * of them there may never be a moment without one, and the WAL would grow for
 * ever.  Reads are short (some ms), so the wait is.
 */
#define CHECKPOINT_INSIST 8000
#define CHECKPOINT_WAIT_MS 100
/* A WAL this long (64 MB) means that checkpoints do not get through. */
#define CHECKPOINT_ALARM 16000
/* Waiting for the mutex is not being stuck: the heartbeat moves meanwhile. */
#define LOCK_SLICE_MS 200
#define LOCK_DEFAULT_MS 5000
#define QUEUE_DEFAULT 32
/* Scratch memory above this is given back. */
#define SCRATCH_KEEP ((size_t)1 << 20)

int
hf_writer_open(struct hf_writer *w, const struct hf_store_conf *c,
    enum hf_db_mode mode, struct hf_seal *seal, struct hf_error *e)
{
	int rc;

	memset(w, 0, sizeof(*w));
	rc = hf_db_open(&w->db, c->path, mode, c->sync_full, e);
	if (rc < 0)
		return rc;
	w->seal = seal;
	w->opened = hf_seal_opened_new();
	w->shm = c->shm;
	w->hold = c->hold;
	w->slot = c->shm->self;
	w->inc = hf_shm_self_inc(c->shm);
	w->lock_timeout_ms =
	    c->lock_timeout_ms > 0 ? c->lock_timeout_ms : LOCK_DEFAULT_MS;
	w->queue_limit = c->queue_limit > 0 ? c->queue_limit : QUEUE_DEFAULT;
	w->checkpoint_at = CHECKPOINT_FRAMES;
	for (size_t i = 0; i < hf_countof(w->scratch); i++)
		hf_buf_init(&w->scratch[i], HF_BUF_NOCAP);
	return 0;
}

void
hf_writer_close(struct hf_writer *w)
{
	hf_db_close(&w->db);
	hf_seal_opened_free(w->opened);
	w->opened = NULL;
	for (size_t i = 0; i < hf_countof(w->scratch); i++)
		hf_buf_free(&w->scratch[i]);
}

int
hf_writer_lock(struct hf_writer *w, struct hf_error *e)
{
	int64_t start = hf_now_us();
	int left = w->lock_timeout_ms, rc;

	do {
		int slice = left < LOCK_SLICE_MS ? left : LOCK_SLICE_MS;

		atomic_fetch_add_explicit(&w->shm->h->slot[w->slot].beat_store,
		    1, memory_order_relaxed);
		rc = hf_shm_writer_lock(w->shm, slice, e);
		left -= slice;
	} while (rc == HF_ETIMEOUT && left > 0);
	hf_count(w->shm, HF_C_store_lock_wait_us, hf_now_us() - start);
	if (rc == HF_ETIMEOUT)
		hf_fail(e, rc,
		    "writer mutex: held by another process for "
		    "over %d ms",
		    w->lock_timeout_ms);
	return rc;
}

void
hf_writer_unlock(struct hf_writer *w)
{
	hf_shm_writer_unlock(w->shm);
}

static void
forget(struct hf_writer *w)
{
	memset(w->wake, 0, sizeof(w->wake));
	w->created = 0;
}

int
hf_writer_begin(struct hf_writer *w, struct hf_error *e)
{
	forget(w);
	return hf_db_run(&w->db, HF_SQL_BEGIN_WRITE, e, "") < 0 ? e->code : 0;
}

int
hf_writer_commit(struct hf_writer *w, struct hf_error *e)
{
	int64_t start = hf_now_us();

	if (hf_db_run(&w->db, HF_SQL_COMMIT, e, "") < 0) {
		hf_writer_rollback(w);
		return e->code;
	}
	hf_count(w->shm, HF_C_store_commits, 1);
	hf_count(w->shm, HF_C_store_commit_us, hf_now_us() - start);
	hf_count(w->shm, HF_C_sessions_created, w->created);
	for (size_t i = 0; i < hf_countof(w->scratch); i++)
		if (w->scratch[i].cap > SCRATCH_KEEP) {
			hf_buf_free(&w->scratch[i]);
			hf_buf_init(&w->scratch[i], HF_BUF_NOCAP);
		}
	return 0;
}

void
hf_writer_rollback(struct hf_writer *w)
{
	hf_db_rollback(&w->db);
	forget(w);
}

bool
hf_writer_checkpoint_due(const struct hf_writer *w)
{
	return w->db.wal_frames >= w->checkpoint_at;
}

int
hf_writer_checkpoint(struct hf_writer *w, bool truncate, struct hf_error *e)
{
	static struct hf_log_limit limit;
	int frames = w->db.wal_frames, left = 0, rc;
	enum hf_ckpt how = truncate	? HF_CKPT_TRUNCATE :
	    frames >= CHECKPOINT_INSIST ? HF_CKPT_RESTART :
					  HF_CKPT_PASSIVE;

	rc = hf_db_checkpoint(&w->db, how, CHECKPOINT_WAIT_MS, &left, e);
	hf_count(w->shm, HF_C_checkpoints, 1);
	if (rc == 0 && left == 0) {
		w->checkpoint_at = CHECKPOINT_FRAMES;
		w->db.wal_frames = 0; /* the next commit starts it over */
		return 0;
	}
	w->checkpoint_at = frames + CHECKPOINT_RETRY;
	if (frames >= CHECKPOINT_ALARM)
		hf_log_limited(&limit, 10000, HF_LOG_WARN,
		    "store: checkpoint does not get through frames=%d left=%d "
		    "error=%s",
		    frames, left, rc < 0 ? hf_err_name(rc) : "-");
	return rc;
}

void
hf_writer_wake(struct hf_writer *w)
{
	for (unsigned i = 0; i < HF_SHM_SLOTS; i++)
		if (w->wake[i])
			hf_shm_wake(w->shm, i);
	memset(w->wake, 0, sizeof(w->wake));
}

int
hf_writer_run(
    struct hf_writer *w, hf_writer_fn fn, void *arg, struct hf_error *e)
{
	int rc = hf_writer_lock(w, e);

	if (rc < 0)
		return rc;
	rc = hf_writer_begin(w, e);
	if (rc == 0)
		rc = fn(w, arg, e);
	if (rc == 0)
		rc = hf_writer_commit(w, e);
	else
		hf_writer_rollback(w);
	if (rc == 0 && hf_writer_checkpoint_due(w)) {
		struct hf_error ignored;

		/* It is tried again, and warned about if it stays so. */
		if (hf_writer_checkpoint(w, false, &ignored) < 0)
			hf_count(w->shm, HF_C_store_errors, 1);
	}
	hf_writer_unlock(w);
	if (rc == 0)
		hf_writer_wake(w);
	return rc;
}

bool
hf_writer_dead(const struct hf_writer *w, unsigned slot, uint64_t inc)
{
	if (w->all_dead)
		return true;
	if (w->dead_inc != 0 && slot == w->dead_slot && inc == w->dead_inc)
		return true;
	return !hf_shm_alive(w->shm, slot, inc);
}

bool
hf_writer_orphan(
    const struct hf_writer *w, unsigned slot, uint64_t inc, const char *turn)
{
	/* At a new boot nobody is there to take anything over. */
	return hf_writer_dead(w, slot, inc) &&
	    (w->all_dead || !hf_hold_serves(w->hold, turn));
}
