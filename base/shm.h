/*
 * The scoreboard: one memfd that the master makes and every child maps.
 * A header (magic, layout version, size, boot), one slot per child, the
 * budgets of hedges (budget.h), a row per target (target.h), and the writer
 * mutex, the only lock in shared memory.  Each slot is written by its child
 * only, except pid, inc and state, which only the master writes; budgets and
 * targets by all workers, atomically. The master trusts nothing in it but that
 * a heartbeat moved.
 *
 * Slot 0 is the keeper; workers are slots 1..n.  Incarnation numbers are
 * boot << 32 | spawn, never reused, so that a lease names one process life.
 */
#ifndef HF_BASE_SHM_H
#define HF_BASE_SHM_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/breaker.h"
#include "base/err.h"
#include "base/figures.h"
#include "base/hf.h"
#include "base/pace.h"
#include "base/quota.h"
#include "base/rate.h"

#define HF_SHM_SLOTS                           \
	66 /* keeper + up to 65 workers in two \
	    * generations during a reload */
#define HF_SHM_KEEPER 0

/* The fixed descriptor table after fork+exec. */
enum hf_fd {
	HF_FD_SHM = 3,	   /* scoreboard memfd */
	HF_FD_PARENT = 4,  /* SEQPACKET socketpair to the master */
	HF_FD_CONFIG = 5,  /* memfd with the checked config text */
	HF_FD_CONTROL = 6, /* control listener (keeper), else /dev/null */
	HF_FD_LOCK = 7,	   /* <database>.lock, flock()ed by the master: all
			    * children hold it too, so that a new master
			    * starts only when the whole old tree is gone */
	HF_FD_HOLD = 8,	   /* memfd of held connections, else /dev/null */
	HF_FD_WAKE0 = 9,   /* eventfd of slot 0; slot s is HF_FD_WAKE0+s */
	HF_FD_LISTEN0 = HF_FD_WAKE0 + HF_SHM_SLOTS /* listening sockets */
};

enum hf_slot_state {
	HF_SLOT_FREE,	  /* never used, or its child was reaped */
	HF_SLOT_STARTING, /* forked, not yet ready */
	HF_SLOT_READY,	  /* serves */
	HF_SLOT_DRAINING  /* finishes its turns and exits */
};

enum hf_counter {
#define HF_COUNTER(field, type, name, labels, help) HF_C_##field,
#include "base/counters.def"
#undef HF_COUNTER
	HF_C_COUNT
};

/* Answers that are complete on disk and not yet told, per child. */
#define HF_SHM_TELLING 512

struct hf_slot {
	_Atomic int32_t pid;
	_Atomic uint32_t state;	     /* enum hf_slot_state */
	_Atomic uint64_t inc;	     /* incarnation; 0: dead or free */
	_Atomic uint64_t beat_loop;  /* moved by the event loop */
	_Atomic uint64_t beat_store; /* moved by the store thread */
	_Atomic uint64_t worked;     /* requests served: "did any work" */
	_Atomic int64_t counters[HF_C_COUNT];
	char panic[256]; /* text of a failed check */
	/* Rows of turns whose end the child has not begun to write to the
	 * client, or knows not to have reached it.  0: free. */
	_Atomic int64_t telling[HF_SHM_TELLING];
};

/* What the hedges of a route owe.  Routes beyond so many names in the life of
 * a daemon are not hedged. */
#define HF_SHM_BUDGETS 256

struct hf_budget_cell {
	_Atomic uint64_t route; /* hash of its name; 0: free */
	_Atomic int64_t owed;	/* hundredths of a hedge */
};

/* The state of a target, see target.h.  Targets beyond so many names in the
 * life of a daemon have neither breaker nor pacing. */
#define HF_SHM_TARGETS 128

struct hf_target_row {
	_Atomic uint64_t key;			 /* hash of its name; 0: free */
	_Atomic uint64_t breaker;		 /* see breaker.h */
	_Atomic uint32_t disabled;		 /* by hand */
	_Atomic int32_t in_flight[HF_SHM_SLOTS]; /* written by that slot */
	_Atomic int32_t shadows[HF_SHM_SLOTS];	 /* likewise */
	_Atomic int32_t waiting[HF_SHM_SLOTS];	 /* turns; by that slot */
	_Atomic int64_t calls, failures, limited; /* since the daemon began */
	_Atomic int64_t trouble_us; /* last failure or 429; 0: none yet */
	struct hf_rate rate;	    /* of those that ended */
	struct hf_rate asking;	    /* those of which nothing was heard yet */
	struct hf_quota quota;
	struct hf_pace pace;
	/* What its provider has taught: tokens that it counts for a thousand
	 * that we estimate, and its window, if it is not configured; 0: not
	 * known.  The window holds until then. */
	_Atomic uint32_t token_ratio, window;
	_Atomic int64_t window_until_us;
	struct hf_figures figures;
};

struct hf_shm_header {
	uint32_t magic;
	uint32_t version;
	uint64_t size;
	_Atomic uint64_t boot; /* boot counter of the database; set by
				* the keeper before workers start */
	uint32_t n_slots;
	_Atomic uint32_t config_generation;
	_Atomic int64_t retired[HF_C_COUNT]; /* counts of dead children and
					      * of the master */
	int64_t started_wall_us;
	int64_t started_us;	/* monotonic */
	pthread_mutex_t writer; /* robust, process-shared */
	struct hf_budget_cell budget[HF_SHM_BUDGETS];
	struct hf_target_row target[HF_SHM_TARGETS];
	_Atomic uint32_t any_disabled; /* row of 'target' */
	struct hf_slot slot[HF_SHM_SLOTS];
};

struct hf_shm {
	struct hf_shm_header *h;
	unsigned self;		   /* own slot */
	int wake_fd[HF_SHM_SLOTS]; /* eventfds, -1: none */
};

/* Master, tests: make a scoreboard; returns the memfd in *fd (may be NULL:
 * then the descriptor is closed).  wake_fd[] are made too (EFD_NONBLOCK). */
int hf_shm_create(struct hf_shm *s, int *fd, struct hf_error *e) HF_MUST_CHECK;
/* Child: map the scoreboard at 'fd' and take HF_FD_WAKE0.. as wake_fd. */
int hf_shm_map(
    struct hf_shm *s, int fd, unsigned self, struct hf_error *e) HF_MUST_CHECK;
void hf_shm_unmap(struct hf_shm *s);

/* True while incarnation 'inc' of 'slot' lives (the master clears inc only
 * after waitpid, so no system call of a dead owner can still land). */
bool hf_shm_alive(const struct hf_shm *s, unsigned slot, uint64_t inc);
uint64_t hf_shm_self_inc(const struct hf_shm *s);
/* Wake another child's event loop (grants of leases); never blocks. */
void hf_shm_wake(const struct hf_shm *s, unsigned slot);

/* Own slot: the answer of turn 'row' is not told yet; is told (or was never).
 * A full table forgets: then a retry may be taken for a new request. */
void hf_shm_telling_add(struct hf_shm *s, int64_t row);
void hf_shm_telling_del(struct hf_shm *s, int64_t row);
/* Any slot. */
bool hf_shm_telling(const struct hf_shm *s, unsigned slot, int64_t row);

static inline void
hf_count(const struct hf_shm *s, enum hf_counter c, int64_t n)
{
	atomic_fetch_add_explicit(
	    &s->h->slot[s->self].counters[c], n, memory_order_relaxed);
}
/* The master has no slot: its counts and gauges stand with those of the dead.
 */
static inline void
hf_shm_master_count(const struct hf_shm *s, enum hf_counter c, int64_t n)
{
	atomic_fetch_add_explicit(&s->h->retired[c], n, memory_order_relaxed);
}
static inline void
hf_shm_master_set(const struct hf_shm *s, enum hf_counter c, int64_t n)
{
	atomic_store_explicit(&s->h->retired[c], n, memory_order_relaxed);
}
/* A name in the tables of budgets and targets; never 0. */
uint64_t hf_shm_key(const char *name);
int64_t hf_shm_sum(const struct hf_shm *s, enum hf_counter c);
/* Master, after waitpid: fold the counters of 'slot' into the header
 * (gauges are dropped), clear inc, then set HF_SLOT_FREE. */
void hf_shm_retire(struct hf_shm *s, unsigned slot);

/*
 * The writer mutex: held around every write transaction and checkpoint of
 * every process.  HF_ETIMEOUT after timeout_ms.  A holder that died leaves
 * it consistent: SQLite ignores uncommitted frames, nothing is to be done.
 * Blocks; call it from the store thread or the keeper, never from a loop.
 */
int hf_shm_writer_lock(
    struct hf_shm *s, int timeout_ms, struct hf_error *e) HF_MUST_CHECK;
void hf_shm_writer_unlock(struct hf_shm *s);

#endif
