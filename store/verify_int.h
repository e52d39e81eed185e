/*
 * Verification of one session: what verify.c, verify_turn.c (one turn)
 * and verify_view.c (the path and what the client sees of it) share.
 */
#ifndef HF_STORE_VERIFY_INT_H
#define HF_STORE_VERIFY_INT_H

#include "base/buf.h"
#include "store/inspect_int.h"
#include "store/row.h"

struct hf_vturn {
	int64_t id, seq, parent, retry_of;
	int state;
	int64_t n_items, view_items, started_us;
	int64_t said, heard, gone_us;
	uint8_t chain[HF_DIGEST_SIZE], view[HF_DIGEST_SIZE];
	uint8_t lead[HF_DIGEST_SIZE], input[HF_DIGEST_SIZE];
	uint8_t request[HF_DIGEST_SIZE]; /* zero: none */
	uint64_t owner_inc;
	bool delivered; /* its answer reached the client */
	bool on_path;
	bool has_child; /* a later turn goes on from it */
};

/* An item on the path, as far as the view is made of it. */
struct hf_vitem {
	int64_t row, anchor;
	uint8_t digest[HF_DIGEST_SIZE]; /* heard, if it was */
	bool skip;
	size_t next; /* in the order of the view */
};

struct hf_verify {
	struct hf_inspect *in;
	hf_finding_fn cb;
	void *arg;
	struct hf_verified *sum;
	struct hf_error *e;
	unsigned n_found;
	uint64_t boot;
	struct hf_session_row s;
	struct hf_buf turns; /* of struct hf_vturn, by seq */
	struct hf_buf items; /* of struct hf_vitem, of the path */
	bool shuffled;	     /* row numbers do not rise with seq */
	bool broken;	     /* the view cannot be computed */
};

static inline struct hf_vturn *
hf_vturns(const struct hf_verify *v, size_t *n)
{
	*n = v->turns.size / sizeof(struct hf_vturn);
	return (struct hf_vturn *)(void *)v->turns.data;
}

/* The turn with that row number, or NULL. */
struct hf_vturn *hf_vturn_find(const struct hf_verify *v, int64_t id);
/* 'seq' 0 and 'idx' -1: of none. */
void hf_verify_add(struct hf_verify *v, bool corrupt, const char *what,
    int64_t seq, int64_t idx, const char *fmt, ...) HF_PRINTF(6, 7);

/* One turn's own rows.  0, or an error that is none of the data's. */
int hf_verify_turn(struct hf_verify *v, const struct hf_vturn *t) HF_MUST_CHECK;
/* The head, and which turns are on its path. */
void hf_verify_path(struct hf_verify *v);
/* After the items of all turns of the path were noted: does the head's view
 * say what they give? */
void hf_verify_view(struct hf_verify *v);
void hf_verify_note_item(
    struct hf_verify *v, const struct hf_item *it, bool unheard);

#endif
