/*
 * The file beside the database in which the rows of targets
 * (base/target_save.h) outlive the daemon.  It is written whole and put in its
 * place by a rename, so that a process killed at any moment leaves the old one
 * or the new one; what a loss of power leaves of it is taken only if it is
 * whole.  Keeper only.
 */
#ifndef HF_WORKERS_TARGETS_H
#define HF_WORKERS_TARGETS_H

#include <event2/event.h>

#include "base/shm.h"

struct hf_targets_file {
	struct hf_shm *shm;
	char *path, *new_path;
	uint64_t saved; /* digest of what is in the file */
	struct event *timer;
};

/* A new boot: take what is there.  Then it is kept up to date.  'database' is
 * copied.  Trouble with it is only logged, but for memory. */
int hf_targets_open(struct hf_targets_file *f, struct hf_shm *shm,
    const char *database, bool first, struct event_base *base,
    struct hf_error *e) HF_MUST_CHECK;
/* Written a last time. */
void hf_targets_close(struct hf_targets_file *f);

#endif
