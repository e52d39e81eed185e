/*
 * Kills the gateway that this program started at the moments that a suite
 * names, one after the other, and starts it again where its master died.
 * The client loop's thread.
 */
#ifndef HF_BENCH_DIRECTOR_H
#define HF_BENCH_DIRECTOR_H

#include "bench/killer.h"
#include "bench/launch.h"
#include "bench/play.h"

struct hf_director {
	struct hf_launch *launch;
	struct hf_killer *killer;
	bool points; /* the daemon has them */
	/* the turn that is to be killed, or NULL */
	const struct hf_play *play;
	char *token; /* a file that is gone when a process died at a point */
	const char *point; /* that the daemon was started with, or NULL */
	bool done;	   /* it was killed */
	unsigned kills, restarts, missed;
	bool broken; /* the gateway does not start any more */
};

void hf_director_init(
    struct hf_director *d, struct hf_launch *l, struct hf_killer *k);
void hf_director_free(struct hf_director *d);

/* A turn with a plan begins; it has come to its end. */
void hf_director_before(struct hf_director *d, const struct hf_play *p);
void hf_director_after(struct hf_director *d, const struct hf_play *p);
/* Now and then. */
void hf_director_tick(struct hf_director *d);
/* A provider has told that it is at a moment: the descriptor can be read. */
void hf_director_alarm(struct hf_director *d);

#endif
