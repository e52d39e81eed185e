/*
 * The scoreboard in shared memory.  See shm.h for who writes what.
 */
#include <config.h>

#include "base/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"

#define SHM_MAGIC 0x68667362u /* "hfsb" */
#define SHM_VERSION 6

_Static_assert(sizeof(struct hf_slot) % 8 == 0, "slots stay aligned");

/* Gauges belong to a living process; its death ends them. */
static const bool is_gauge[HF_C_COUNT] = {
#define counter false
#define gauge true
#define HF_COUNTER(field, type, name, labels, help) [HF_C_##field] = type,
#include "base/counters.def"
#undef HF_COUNTER
#undef counter
#undef gauge
};

static int
init_header(struct hf_shm_header *h, struct hf_error *e)
{
	pthread_mutexattr_t a;
	int rc;

	h->magic = SHM_MAGIC;
	h->version = SHM_VERSION;
	h->size = sizeof(*h);
	h->n_slots = HF_SHM_SLOTS;
	h->started_wall_us = hf_wall_us();
	h->started_us = hf_now_us();
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	rc = pthread_mutex_init(&h->writer, &a);
	pthread_mutexattr_destroy(&a);
	if (rc != 0)
		return hf_fail(e, HF_ESYS, "pthread_mutex_init: %d", rc);
	return 0;
}

int
hf_shm_create(struct hf_shm *s, int *out_fd, struct hf_error *e)
{
	void *p = MAP_FAILED;
	int fd;

	memset(s, 0, sizeof(*s));
	for (unsigned i = 0; i < HF_SHM_SLOTS; i++)
		s->wake_fd[i] = -1;
	fd = memfd_create("holdfast-scoreboard", MFD_CLOEXEC);
	if (fd < 0)
		return hf_fail_errno(e, "memfd_create");
	if (ftruncate(fd, sizeof(struct hf_shm_header)) < 0 ||
	    (p = mmap(NULL, sizeof(struct hf_shm_header),
		 PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED) {
		hf_fail_errno(e, "scoreboard");
		close(fd);
		return HF_ESYS;
	}
	s->h = p;
	if (init_header(s->h, e) < 0)
		goto fail;
	for (unsigned i = 0; i < HF_SHM_SLOTS; i++) {
		s->wake_fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (s->wake_fd[i] < 0) {
			hf_fail_errno(e, "eventfd");
			goto fail;
		}
	}
	if (out_fd != NULL)
		*out_fd = fd;
	else
		close(fd);
	return 0;
fail:
	close(fd);
	hf_shm_unmap(s);
	return HF_ESYS;
}

int
hf_shm_map(struct hf_shm *s, int fd, unsigned self, struct hf_error *e)
{
	struct stat sb;
	void *p;

	memset(s, 0, sizeof(*s));
	HF_CHECK(self < HF_SHM_SLOTS);
	if (fstat(fd, &sb) < 0)
		return hf_fail_errno(e, "scoreboard");
	if ((size_t)sb.st_size != sizeof(struct hf_shm_header))
		return hf_fail(e, HF_EPROTO, "scoreboard of another program");
	p = mmap(NULL, sizeof(struct hf_shm_header), PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return hf_fail_errno(e, "scoreboard");
	s->h = p;
	if (s->h->magic != SHM_MAGIC || s->h->version != SHM_VERSION ||
	    s->h->size != sizeof(*s->h)) {
		munmap(p, sizeof(*s->h));
		s->h = NULL;
		return hf_fail(e, HF_EPROTO, "scoreboard of another program");
	}
	s->self = self;
	for (unsigned i = 0; i < HF_SHM_SLOTS; i++)
		s->wake_fd[i] = HF_FD_WAKE0 + (int)i;
	return 0;
}

void
hf_shm_unmap(struct hf_shm *s)
{
	for (unsigned i = 0; i < HF_SHM_SLOTS; i++) {
		if (s->wake_fd[i] >= 0)
			close(s->wake_fd[i]);
		s->wake_fd[i] = -1;
	}
	if (s->h != NULL)
		munmap(s->h, sizeof(*s->h));
	s->h = NULL;
}

bool
hf_shm_alive(const struct hf_shm *s, unsigned slot, uint64_t inc)
{
	return inc != 0 && slot < HF_SHM_SLOTS &&
	    atomic_load_explicit(&s->h->slot[slot].inc, memory_order_acquire) ==
	    inc;
}

uint64_t
hf_shm_self_inc(const struct hf_shm *s)
{
	return atomic_load_explicit(
	    &s->h->slot[s->self].inc, memory_order_acquire);
}

void
hf_shm_wake(const struct hf_shm *s, unsigned slot)
{
	uint64_t one = 1;

	/* A full counter means that it is awake already. */
	if (slot < HF_SHM_SLOTS && s->wake_fd[slot] >= 0 &&
	    write(s->wake_fd[slot], &one, sizeof(one)) < 0)
		return;
}

static void
telling_change(struct hf_shm *s, int64_t from, int64_t to)
{
	_Atomic int64_t *t = s->h->slot[s->self].telling;

	for (unsigned i = 0; i < HF_SHM_TELLING; i++) {
		if (atomic_load_explicit(&t[i], memory_order_relaxed) == from) {
			atomic_store_explicit(&t[i], to, memory_order_release);
			return;
		}
	}
}

void
hf_shm_telling_add(struct hf_shm *s, int64_t row)
{
	telling_change(s, 0, row);
}

void
hf_shm_telling_del(struct hf_shm *s, int64_t row)
{
	telling_change(s, row, 0);
}

bool
hf_shm_telling(const struct hf_shm *s, unsigned slot, int64_t row)
{
	if (slot >= HF_SHM_SLOTS)
		return false;
	for (unsigned i = 0; i < HF_SHM_TELLING; i++)
		if (atomic_load_explicit(&s->h->slot[slot].telling[i],
			memory_order_acquire) == row)
			return true;
	return false;
}

uint64_t
hf_shm_key(const char *name)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *name != '\0'; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3;
	return h == 0 ? 1 : h;
}

int64_t
hf_shm_sum(const struct hf_shm *s, enum hf_counter c)
{
	int64_t sum =
	    atomic_load_explicit(&s->h->retired[c], memory_order_relaxed);

	for (unsigned i = 0; i < HF_SHM_SLOTS; i++)
		sum += atomic_load_explicit(
		    &s->h->slot[i].counters[c], memory_order_relaxed);
	return sum;
}

/* The calls of a dead worker are over, and so is its probe. */
static void
retire_calls(struct hf_shm_header *h, unsigned slot)
{
	for (unsigned i = 0; i < HF_SHM_TARGETS; i++) {
		struct hf_target_row *r = &h->target[i];

		if (atomic_load_explicit(&r->key, memory_order_relaxed) == 0)
			continue;
		atomic_store(&r->in_flight[slot], 0);
		atomic_store(&r->shadows[slot], 0);
		atomic_store(&r->waiting[slot], 0);
		hf_breaker_died(&r->breaker, slot, hf_now_us());
	}
}

void
hf_shm_retire(struct hf_shm *s, unsigned slot)
{
	struct hf_slot *sl = &s->h->slot[slot];

	for (unsigned c = 0; c < HF_C_COUNT; c++) {
		int64_t n = atomic_exchange_explicit(
		    &sl->counters[c], 0, memory_order_relaxed);
		if (!is_gauge[c])
			atomic_fetch_add_explicit(
			    &s->h->retired[c], n, memory_order_relaxed);
	}
	atomic_store_explicit(&sl->inc, 0, memory_order_release);
	retire_calls(s->h, slot);
	atomic_store(&sl->pid, 0);
	atomic_store(&sl->worked, 0);
	for (unsigned i = 0; i < HF_SHM_TELLING; i++)
		if (atomic_load_explicit(
			&sl->telling[i], memory_order_relaxed) != 0)
			atomic_store(&sl->telling[i], 0);
	atomic_store(&sl->state, HF_SLOT_FREE);
}

int
hf_shm_writer_lock(struct hf_shm *s, int timeout_ms, struct hf_error *e)
{
	struct timespec ts;
	int rc;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += timeout_ms / 1000;
	ts.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_sec++;
		ts.tv_nsec -= 1000000000;
	}
	rc = pthread_mutex_clocklock(&s->h->writer, CLOCK_MONOTONIC, &ts);
	if (rc == EOWNERDEAD) {
		pthread_mutex_consistent(&s->h->writer);
		return 0;
	}
	if (rc == ETIMEDOUT)
		return hf_fail(e, HF_ETIMEOUT,
		    "writer mutex: held by another "
		    "process for over %d ms",
		    timeout_ms);
	if (rc != 0)
		return hf_fail(e, HF_ESYS, "writer mutex: %s", strerror(rc));
	return 0;
}

void
hf_shm_writer_unlock(struct hf_shm *s)
{
	HF_CHECK(pthread_mutex_unlock(&s->h->writer) == 0);
}
