/*
 * The budget of hedges.
 */
#include <config.h>

#include "base/budget.h"

#define ONE 100 /* a hedge, in the unit of 'owed' */

/* The cell of a route, taken if it has none yet.  NULL: all are taken. */
static struct hf_budget_cell *
cell_of(struct hf_shm *s, const char *route)
{
	uint64_t key = hf_shm_key(route), seen;

	for (unsigned i = 0; i < HF_SHM_BUDGETS; i++) {
		struct hf_budget_cell *c =
		    &s->h->budget[(key + i) % HF_SHM_BUDGETS];

		seen = atomic_load_explicit(&c->route, memory_order_relaxed);
		if (seen == 0 &&
		    atomic_compare_exchange_strong_explicit(&c->route, &seen,
			key, memory_order_relaxed, memory_order_relaxed))
			return c;
		if (seen == key)
			return c;
	}
	return NULL;
}

void
hf_budget_turn(struct hf_shm *s, const char *route, int percent)
{
	struct hf_budget_cell *c = cell_of(s, route);
	int64_t owed, less;

	if (c == NULL)
		return;
	owed = atomic_load_explicit(&c->owed, memory_order_relaxed);
	do {
		if (owed <= 0)
			return;
		less = owed > percent ? owed - percent : 0;
	} while (!atomic_compare_exchange_weak_explicit(
	    &c->owed, &owed, less, memory_order_relaxed, memory_order_relaxed));
}

bool
hf_budget_take(struct hf_shm *s, const char *route)
{
	struct hf_budget_cell *c = cell_of(s, route);
	int64_t owed;

	if (c == NULL)
		return false;
	owed = atomic_load_explicit(&c->owed, memory_order_relaxed);
	do {
		if (owed + ONE > HF_BUDGET_BURST * ONE)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&c->owed, &owed,
	    owed + ONE, memory_order_relaxed, memory_order_relaxed));
	return true;
}
