/*
 * The budget of hedges (a second call beside one that is late): on a route,
 * over all workers, at most a share of the recent turns and a small burst.  A
 * route's cell in the scoreboard holds what its hedges owe: each adds 100, each
 * turn takes the route's percentage off again.  It is found by the route's
 * name, so that both generations of a reload share it.  Lock-free; any thread.
 */
#ifndef HF_BASE_BUDGET_H
#define HF_BASE_BUDGET_H

#include "base/shm.h"

/* Hedges beyond the share that may be started one after the other. */
#define HF_BUDGET_BURST 5

/* A turn of 'route' makes its first call. */
void hf_budget_turn(struct hf_shm *s, const char *route, int percent);
/* May it start a hedge?  True: it is paid for. */
bool hf_budget_take(struct hf_shm *s, const char *route);

#endif
