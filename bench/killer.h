/*
 * Kills workers of the gateway that this program started, with SIGKILL, at
 * random.
 */
#ifndef HF_BENCH_KILLER_H
#define HF_BENCH_KILLER_H

#include <sys/types.h>

#include "base/hf.h"
#include "bench/rng.h"

struct hf_killer {
	pid_t gateway; /* the master: only its children die */
	struct hf_rng rng;
	unsigned kills;
};

void hf_killer_init(struct hf_killer *k, pid_t gateway, uint64_t seed);
/* Kills one worker, if one is there.  'arg' is the killer. */
void hf_killer_kill(void *arg);
/* Kills the worker that has a connection from this local port (0, or nobody
 * has it: any). */
void hf_killer_kill_worker(struct hf_killer *k, unsigned port);
void hf_killer_kill_master(struct hf_killer *k);
/* Kills the master and its children, and waits until they are gone; the
 * master stays to be waited for. */
void hf_killer_kill_tree(struct hf_killer *k);

#endif
