/*
 * Slots of held connections in shared memory.  See hold.h.
 */
#include <config.h>

#include "base/hold.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

#define HOLD_MAGIC 0x68666864u /* "hfhd" */
#define HOLD_VERSION 1
#define PAGE ((size_t)4096)

/* The file: what a scan looks at stands together, then come the areas, which
 * are holes until they are used. */
struct header {
	uint32_t magic, version;
	uint64_t size;
	_Atomic uint64_t owner[HF_HOLD_SLOTS];
	struct hf_hold_slot slot[HF_HOLD_SLOTS];
};

#define AREAS ((sizeof(struct header) + PAGE - 1) & ~(PAGE - 1))
#define STRIDE ((size_t)HF_HOLD_IN + HF_HOLD_OUT + HF_HOLD_TEXT)
#define SIZE (AREAS + HF_HOLD_SLOTS * STRIDE)

static int
map(struct hf_hold *h, int fd, struct hf_error *e)
{
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (p == MAP_FAILED)
		return hf_fail_errno(e, "held connections: mmap");
	/* What clients said is not for core files, nor are 17 GB of holes. */
	(void)madvise(p, SIZE, MADV_DONTDUMP);
	h->map = p;
	return 0;
}

int
hf_hold_create(struct hf_hold *h, int *out, struct hf_error *e)
{
	int fd = memfd_create("holdfast-hold", MFD_CLOEXEC);
	struct header *head;

	*h = (struct hf_hold){ 0 };
	if (fd < 0)
		return hf_fail_errno(e, "held connections: memfd_create");
	if (ftruncate(fd, (off_t)SIZE) < 0) {
		hf_fail_errno(e, "held connections: ftruncate");
		goto fail;
	}
	if (map(h, fd, e) < 0)
		goto fail;
	head = h->map;
	head->magic = HOLD_MAGIC;
	head->version = HOLD_VERSION;
	head->size = SIZE;
	*out = fd;
	return 0;
fail:
	close(fd);
	return HF_ESYS;
}

int
hf_hold_map(struct hf_hold *h, int fd, uint64_t inc, struct hf_error *e)
{
	const struct header *head;
	struct stat sb;

	*h = (struct hf_hold){ .inc = inc };
	if (fstat(fd, &sb) < 0)
		return hf_fail_errno(e, "held connections");
	if ((uint64_t)sb.st_size != SIZE)
		return hf_fail(
		    e, HF_EPROTO, "held connections of another program");
	if (map(h, fd, e) < 0)
		return HF_ESYS;
	head = h->map;
	if (head->magic == HOLD_MAGIC && head->version == HOLD_VERSION &&
	    head->size == SIZE)
		return 0;
	hf_hold_unmap(h);
	return hf_fail(e, HF_EPROTO, "held connections of another program");
}

void
hf_hold_unmap(struct hf_hold *h)
{
	if (h->map != NULL)
		munmap(h->map, SIZE);
	h->map = NULL;
}

/* --- places ----------------------------------------------------------------
 */

static struct header *
header(const struct hf_hold *h, uint32_t slot)
{
	HF_CHECK(h->map != NULL && slot < HF_HOLD_SLOTS);
	return h->map;
}

_Atomic uint64_t *
hf_hold_owner(const struct hf_hold *h, uint32_t slot)
{
	return &header(h, slot)->owner[slot];
}

struct hf_hold_slot *
hf_hold_slot(const struct hf_hold *h, uint32_t slot)
{
	return &header(h, slot)->slot[slot];
}

char *
hf_hold_in(const struct hf_hold *h, uint32_t slot)
{
	return (char *)header(h, slot) + AREAS + slot * STRIDE;
}

char *
hf_hold_out(const struct hf_hold *h, uint32_t slot)
{
	return hf_hold_in(h, slot) + HF_HOLD_IN;
}

char *
hf_hold_text(const struct hf_hold *h, uint32_t slot)
{
	return hf_hold_out(h, slot) + HF_HOLD_OUT;
}

/* --- taking and giving ------------------------------------------------------
 */

/* Holes again: the pages go back to the system. */
static void
punch(char *p, size_t size)
{
	(void)madvise(p, size, MADV_REMOVE);
}

uint32_t
hf_hold_take(struct hf_hold *h)
{
	if (h->map == NULL)
		return HF_HOLD_NONE;
	for (uint32_t i = 0; i < HF_HOLD_SLOTS; i++) {
		uint32_t slot = (h->hint + i) % HF_HOLD_SLOTS;
		_Atomic uint64_t *owner = hf_hold_owner(h, slot);
		struct hf_hold_slot *s;
		uint64_t nobody = 0;

		if (atomic_load_explicit(owner, memory_order_relaxed) != 0 ||
		    !atomic_compare_exchange_strong(owner, &nobody, h->inc))
			continue;
		s = hf_hold_slot(h, slot);
		h->hint = slot + 1;
		atomic_fetch_add(&s->epoch, 1);
		atomic_store(&s->faults, 0);
		atomic_store(&s->current, 0);
		s->mark[0] = (struct hf_hold_mark){ 0 };
		return slot;
	}
	return HF_HOLD_NONE;
}

void
hf_hold_give(struct hf_hold *h, uint32_t slot)
{
	struct hf_hold_slot *s = hf_hold_slot(h, slot);

	/* Whoever has it next is not taken for serving the same turn. */
	s->mark[0] = s->mark[1] = (struct hf_hold_mark){ 0 };
	punch(hf_hold_in(h, slot), HF_HOLD_IN + HF_HOLD_OUT + HF_HOLD_TEXT);
	if (slot < h->hint)
		h->hint = slot; /* low slots are used again first */
	atomic_store(hf_hold_owner(h, slot), 0);
}

void
hf_hold_trim_in(struct hf_hold *h, uint32_t slot, size_t keep)
{
	keep = (keep + PAGE - 1) & ~(PAGE - 1);
	if (keep < HF_HOLD_IN)
		punch(hf_hold_in(h, slot) + keep, HF_HOLD_IN - keep);
}

/* --- marks ------------------------------------------------------------------
 */

const struct hf_hold_mark *
hf_hold_mark(const struct hf_hold *h, uint32_t slot)
{
	struct hf_hold_slot *s = hf_hold_slot(h, slot);

	return &s->mark[atomic_load_explicit(
			    &s->current, memory_order_acquire) &
	    1];
}

struct hf_hold_mark *
hf_hold_change(const struct hf_hold *h, uint32_t slot)
{
	struct hf_hold_slot *s = hf_hold_slot(h, slot);
	uint32_t cur = atomic_load_explicit(&s->current, memory_order_relaxed);

	s->mark[(cur + 1) & 1] = s->mark[cur & 1];
	return &s->mark[(cur + 1) & 1];
}

void
hf_hold_commit(const struct hf_hold *h, uint32_t slot)
{
	struct hf_hold_slot *s = hf_hold_slot(h, slot);
	uint32_t cur = atomic_load_explicit(&s->current, memory_order_relaxed);

	/* Whatever the change says was written before it. */
	atomic_store_explicit(&s->current, (cur + 1) & 1, memory_order_release);
}

bool
hf_hold_serves(const struct hf_hold *h, const char *turn)
{
	if (h == NULL || h->map == NULL || turn[0] == '\0')
		return false;
	for (uint32_t i = 0; i < HF_HOLD_SLOTS; i++) {
		const struct hf_hold_mark *m;

		if (atomic_load_explicit(
			hf_hold_owner(h, i), memory_order_acquire) == 0)
			continue;
		m = hf_hold_mark(h, i);
		if ((m->flags & HF_HOLD_SERVING) != 0 &&
		    (m->flags & HF_HOLD_LOST) == 0 &&
		    strncmp(m->turn, turn, sizeof(m->turn)) == 0)
			return true;
	}
	return false;
}

/* --- rings ------------------------------------------------------------------
 */

void
hf_ring_put(char *ring, size_t cap, uint64_t pos, const void *p, size_t n)
{
	size_t from = (size_t)(pos % cap);
	size_t first = n < cap - from ? n : cap - from;

	HF_CHECK(n <= cap);
	if (n == 0)
		return;
	memcpy(ring + from, p, first);
	memcpy(ring, (const char *)p + first, n - first);
}

void
hf_ring_get(const char *ring, size_t cap, uint64_t pos, void *p, size_t n)
{
	size_t from = (size_t)(pos % cap);
	size_t first = n < cap - from ? n : cap - from;

	HF_CHECK(n <= cap);
	if (n == 0)
		return;
	memcpy(p, ring + from, first);
	memcpy((char *)p + first, ring, n - first);
}
