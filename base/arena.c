/*
 * Bump arena.
 */
#include <config.h>

#include "base/arena.h"

#include <stdlib.h>

/* Each block is twice as large as the one before, up to a bound. */
#define BLOCK_FIRST ((size_t)4080)
#define BLOCK_LAST (16 * BLOCK_FIRST)

struct hf_arena_block {
	struct hf_arena_block *next;
	size_t used, size;
	char data[] __attribute__((aligned(16)));
};

void
hf_arena_init(struct hf_arena *a, size_t max)
{
	*a = (struct hf_arena){ .max = max };
}

void
hf_arena_free(struct hf_arena *a)
{
	struct hf_arena_block *b, *next;

	for (b = a->head; b != NULL; b = next) {
		next = b->next;
		free(b);
	}
	*a = (struct hf_arena){ .max = a->max };
}

static struct hf_arena_block *
add_block(struct hf_arena *a, size_t size)
{
	size_t usual = a->block == 0 ? BLOCK_FIRST : a->block;
	bool big = size > usual / 4;
	size_t want = big ? size : usual;
	struct hf_arena_block *b = malloc(sizeof(*b) + want);

	if (b == NULL)
		return NULL;
	b->used = 0;
	b->size = want;
	if (!big && usual < BLOCK_LAST)
		usual *= 2;
	a->block = usual;
	if (big && a->head != NULL) {
		/* A big one goes behind the head, which has room left. */
		b->next = a->head->next;
		a->head->next = b;
	} else {
		b->next = a->head;
		a->head = b;
	}
	return b;
}

void *
hf_arena_bytes(struct hf_arena *a, size_t size)
{
	struct hf_arena_block *b = a->head;
	void *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + 15) & ~(size_t)15;
	if (a->max != 0 && a->total + size > a->max)
		return NULL;
	if (b == NULL || b->size - b->used < size) {
		b = add_block(a, size);
		if (b == NULL)
			return NULL;
	}
	p = b->data + b->used;
	b->used += size;
	a->total += size;
	return p;
}

void *
hf_arena_alloc(struct hf_arena *a, size_t size)
{
	void *p = hf_arena_bytes(a, size);

	return p == NULL ? NULL : memset(p, 0, size);
}

struct hf_str
hf_arena_dup(struct hf_arena *a, struct hf_str s)
{
	char *p = s.size < SIZE_MAX ? hf_arena_bytes(a, s.size + 1) : NULL;

	if (p == NULL)
		return HF_STR_NONE;
	p[s.size] = '\0';
	if (s.size > 0)
		memcpy(p, s.p, s.size);
	return (struct hf_str){ p, s.size };
}
