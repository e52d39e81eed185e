/*
 * Held connections and their heirs.  See handover.h.
 */
#include <config.h>

#include "workers/handover.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"

struct entry {
	int fd;	      /* -1: not held */
	uint64_t inc; /* that was told to serve it */
	uint32_t epoch;
	bool waiting; /* 'inc' is dead and nobody was told yet */
	bool adopted; /* 'inc' is not its first owner */
	bool poisoned;
	uint32_t ended; /* epoch of the connection that was let go last */
};

struct hf_handover {
	struct hf_hold *hold;
	unsigned most, held, waiting;
	struct entry entry[HF_HOLD_SLOTS];
};

struct hf_handover *
hf_handover_new(struct hf_hold *hold, unsigned most)
{
	struct hf_handover *t = hf_xcalloc(1, sizeof(*t));

	t->hold = hold;
	t->most = most;
	for (uint32_t i = 0; i < HF_HOLD_SLOTS; i++)
		t->entry[i] = (struct entry){ .fd = -1 };
	return t;
}

/* The connection is not ours any more. */
static void
forget(struct hf_handover *t, struct entry *e)
{
	if (e->fd < 0)
		return;
	close(e->fd);
	t->held--;
	t->waiting -= e->waiting;
	*e = (struct entry){ .fd = -1, .ended = e->epoch };
}

void
hf_handover_free(struct hf_handover *t)
{
	if (t == NULL)
		return;
	for (uint32_t i = 0; i < HF_HOLD_SLOTS; i++)
		forget(t, &t->entry[i]);
	free(t);
}

static uint32_t
epoch_of(const struct hf_handover *t, uint32_t slot)
{
	return atomic_load(&hf_hold_slot(t->hold, slot)->epoch);
}

/* Is that connection in the slot, and that incarnation its owner? */
static bool
is_now(const struct hf_handover *t, uint64_t inc, uint32_t slot, uint32_t which)
{
	return atomic_load(hf_hold_owner(t->hold, slot)) == inc &&
	    epoch_of(t, slot) == which;
}

bool
hf_handover_held(
    struct hf_handover *t, uint64_t inc, uint32_t slot, uint32_t epoch, int fd)
{
	struct entry *e;

	if (fd < 0)
		return false;
	if (inc == 0 || slot >= HF_HOLD_SLOTS || !is_now(t, inc, slot, epoch)) {
		close(fd); /* released before we read this, or nonsense */
		return false;
	}
	e = &t->entry[slot];
	forget(t, e); /* whose end is still to be read */
	if (t->held >= t->most) {
		close(fd);
		return false;
	}
	*e = (struct entry){ .fd = fd, .inc = inc, .epoch = epoch };
	t->held++;
	return true;
}

void
hf_handover_released(
    struct hf_handover *t, uint64_t inc, uint32_t slot, uint32_t epoch)
{
	struct entry *e;

	if (slot >= HF_HOLD_SLOTS)
		return;
	e = &t->entry[slot];
	if (e->epoch == epoch && e->inc == inc)
		forget(t, e);
}

/* --- a death ----------------------------------------------------------- */

static void
settle_held(
    struct hf_handover *t, uint32_t slot, bool fault, struct hf_settled *out)
{
	struct hf_hold_slot *s = hf_hold_slot(t->hold, slot);
	const struct hf_hold_mark *m = hf_hold_mark(t->hold, slot);
	struct entry *e = &t->entry[slot];
	bool serving = (m->flags & HF_HOLD_SERVING) != 0;

	if ((m->flags & HF_HOLD_LOST) != 0) {
		out->lost++;
		out->orphans |= e->adopted;
		forget(t, e);
		hf_hold_give(t->hold, slot);
		return;
	}
	if (fault && serving)
		atomic_fetch_add(&s->faults, 1);
	e->poisoned = serving && atomic_load(&s->faults) >= HF_HANDOVER_FAULTS;
	e->waiting = true;
	t->waiting++;
	out->waiting++;
	out->poisoned += e->poisoned;
}

void
hf_handover_settle(
    struct hf_handover *t, uint64_t inc, bool fault, struct hf_settled *out)
{
	*out = (struct hf_settled){ 0 };
	for (uint32_t i = 0; i < HF_HOLD_SLOTS; i++) {
		struct entry *e = &t->entry[i];
		bool ours = e->fd >= 0 && e->inc == inc;

		if (ours && e->waiting)
			continue; /* settled before */
		if (atomic_load(hf_hold_owner(t->hold, i)) != inc) {
			/* Given back; the record of that died with it. */
			if (ours)
				forget(t, e);
		} else if (ours && is_now(t, inc, i, e->epoch)) {
			settle_held(t, i, fault, out);
		} else {
			/* Killed before it could tell us, or not heard; or
			 * between telling of its end and giving it back. */
			if (ours)
				forget(t, e);
			out->unheld += e->fd >= 0 || e->ended != epoch_of(t, i);
			hf_hold_give(t->hold, i);
		}
	}
}

/* --- the heirs ----------------------------------------------------------- */

static void
count_held(const struct hf_handover *t, struct hf_taker *taker, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		taker[k].given = taker[k].held = taker[k].refused = 0;
	for (uint32_t i = 0; i < HF_HOLD_SLOTS; i++)
		for (unsigned k = 0; k < n && t->entry[i].fd >= 0; k++)
			taker[k].held += t->entry[i].inc == taker[k].inc &&
			    !t->entry[i].waiting;
}

static bool
better(const struct hf_taker *a, const struct hf_taker *b)
{
	if (a->generation != b->generation)
		return a->generation > b->generation;
	if (a->slow != b->slow)
		return b->slow;
	return a->held < b->held;
}

static struct hf_taker *
choose(struct hf_taker *taker, unsigned n)
{
	struct hf_taker *best = NULL;

	for (unsigned k = 0; k < n; k++)
		if (taker[k].refused == 0 &&
		    (best == NULL || better(&taker[k], best)))
			best = &taker[k];
	return best;
}

/* The owner is moved before its heir hears of it, and back if it cannot be
 * told: at no time is the slot free. */
static bool
hand(struct hf_handover *t, uint32_t slot, struct hf_taker *taker, unsigned i,
    hf_handover_send_fn send, void *arg)
{
	_Atomic uint64_t *owner = hf_hold_owner(t->hold, slot);
	struct entry *e = &t->entry[slot];
	uint64_t dead = e->inc;

	if (!atomic_compare_exchange_strong(owner, &dead, taker->inc)) {
		forget(t, e); /* somebody scribbled: not ours to judge */
		return true;
	}
	if (send(arg, i, slot, e->epoch, e->poisoned, e->fd) != 0) {
		atomic_store(owner, e->inc);
		taker->refused = 1;
		return false;
	}
	e->inc = taker->inc;
	e->adopted = true;
	e->waiting = false;
	t->waiting--;
	taker->held++;
	taker->given++;
	return true;
}

unsigned
hf_handover_pass(struct hf_handover *t, struct hf_taker *taker, unsigned n,
    hf_handover_send_fn send, void *arg)
{
	struct hf_taker *to;

	if (t->waiting == 0)
		return 0;
	count_held(t, taker, n);
	for (uint32_t i = 0; i < HF_HOLD_SLOTS && t->waiting > 0; i++) {
		if (!t->entry[i].waiting)
			continue;
		while ((to = choose(taker, n)) != NULL)
			if (hand(t, i, to, (unsigned)(to - taker), send, arg))
				break;
		if (to == NULL)
			break;
	}
	return t->waiting;
}

unsigned
hf_handover_cut(struct hf_handover *t)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < HF_HOLD_SLOTS && t->waiting > 0; i++) {
		if (!t->entry[i].waiting)
			continue;
		forget(t, &t->entry[i]);
		hf_hold_give(t->hold, i);
		n++;
	}
	return n;
}

unsigned
hf_handover_n_held(const struct hf_handover *t)
{
	return t->held;
}

unsigned
hf_handover_n_waiting(const struct hf_handover *t)
{
	return t->waiting;
}
