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
	struct hf_db read;	       /* loop thread's */
	struct hf_seal_opened *opened; /* loop thread's */
	bool sharing;		       /* reads share one snapshot */
	struct hf_shm *shm;	       /* borrowed */
	unsigned slot;
	uint64_t inc;
	/* Was any API key made?  Asked of the disk once a second until it
	 * says yes. */
	bool any_key;
	int64_t any_key_us; /* when it was asked; 0: never */
};

/* Around statements that must see one state of the database.  While
 * completions are dispatched all of them see the same one, which is at least
 * as new as what is completed: beginning anew costs locks and the whole cache
 * of pages.  hf_read_end() returns 'rc', or what went wrong. */
int hf_read_begin(struct hf_store *st, struct hf_error *e) HF_MUST_CHECK;
int hf_read_end(struct hf_store *st, int rc, struct hf_error *e) HF_MUST_CHECK;

/* Copy into 'a' what 's', or each of 'n' items, points at.  False: no
 * memory.  A NULL stays NULL. */
bool hf_store_copy_str(struct hf_arena *a, struct hf_str *s);
bool hf_store_copy_items(
    struct hf_arena *a, const struct hf_item **item, unsigned n);
bool hf_store_copy_heard(
    struct hf_arena *a, const struct hf_heard **heard, unsigned n);

#endif
