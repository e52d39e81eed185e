/*
 * The inside of struct hf_store, for the files of store/ that implement
 * store.h, and for tests that play the disk full.
 */
#ifndef HF_STORE_INTERNAL_H
#define HF_STORE_INTERNAL_H

#include "store/queue.h"
#include "store/seal.h"
#include "store/writer.h"

struct hf_store {
	struct hf_seal seal;	 /* shared with the store thread */
	struct hf_writer writer; /* store thread's */
	struct hf_queue *queue;
	struct hf_db read;  /* loop thread's */
	struct hf_shm *shm; /* borrowed */
	unsigned slot;
	uint64_t inc;
	/* Was any API key made?  Asked of the disk once a second until it
	 * says yes. */
	bool any_key;
	int64_t any_key_us; /* when it was asked; 0: never */
};

/* Copy into 'a' what 's', or each of 'n' items, points at.  False: no
 * memory.  A NULL stays NULL. */
bool hf_store_copy_str(struct hf_arena *a, struct hf_str *s);
bool hf_store_copy_items(
    struct hf_arena *a, const struct hf_item **item, unsigned n);
bool hf_store_copy_heard(
    struct hf_arena *a, const struct hf_heard **heard, unsigned n);

#endif
