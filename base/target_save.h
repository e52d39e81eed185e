/*
 * The rows of targets as text, so that open breakers, learned quotas, hints
 * and the places in the paces outlive the daemon.  Times are told by how far
 * they are from the moment of writing, and that by the wall clock, so that they
 * hold over a restart of the machine, too.  Calls in flight and reservations
 * end with the daemon and are not told; a probe that was under way is over.
 * What is disabled is in the database (store/inspect.h).
 */
#ifndef HF_BASE_TARGET_SAVE_H
#define HF_BASE_TARGET_SAVE_H

#include "base/buf.h"
#include "base/shm.h"

/* What is older than this is not believed. */
#define HF_TARGETS_STALE_S 86400

/* Changes whenever the text would, but for the time that has passed. */
uint64_t hf_targets_digest(const struct hf_shm *s);
void hf_targets_save(const struct hf_shm *s, int64_t now_us, int64_t wall_us,
    struct hf_buf *out);
/* Into rows that nobody uses yet.  The number of rows; -1: the text is not
 * whole, or stale, and nothing was taken from it. */
int hf_targets_load(
    struct hf_shm *s, struct hf_str text, int64_t now_us, int64_t wall_us);

#endif
