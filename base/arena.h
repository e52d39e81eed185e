/*
 * A bump arena: many small allocations with one owner and one end of life.
 * A turn owns one and frees everything it allocated in one place.
 */
#ifndef HF_BASE_ARENA_H
#define HF_BASE_ARENA_H

#include "base/hf.h"

struct hf_arena {
	struct hf_arena_block *head;
	size_t total; /* bytes handed out */
	size_t max;   /* cap; 0 = none */
	size_t block; /* size of the next usual block; 0 = first */
};

void hf_arena_init(struct hf_arena *a, size_t max);
void hf_arena_free(struct hf_arena *a);
/* Zeroed, aligned to 16; NULL when over the cap or out of memory. */
void *hf_arena_alloc(struct hf_arena *a, size_t size) HF_MUST_CHECK;
/* The same, not zeroed. */
void *hf_arena_bytes(struct hf_arena *a, size_t size) HF_MUST_CHECK;
/* Copy with a NUL after the bytes; .p is NULL on failure. */
struct hf_str hf_arena_dup(struct hf_arena *a, struct hf_str s) HF_MUST_CHECK;

#endif
