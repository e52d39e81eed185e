/*
 * Alignment: what a client's list of messages means against the stored view.
 * Some clients send everything each time, some only what is new, in the same
 * field; nobody tells which.  Pure; compares digests only.  The table in
 * docs/design/sessions.md has one row and one unit test for each case.
 */
#ifndef HF_GATEWAY_TURN_ALIGN_H
#define HF_GATEWAY_TURN_ALIGN_H

#include "base/arena.h"
#include "base/err.h"
#include "store/store.h"

enum hf_history_mode {
	HF_HISTORY_AUTO, /* guess from the digests */
	HF_HISTORY_FULL, /* the list is the whole conversation */
	HF_HISTORY_DELTA /* the list is only what is new */
};

enum hf_align_how {
	HF_ALIGN_FRESH,	 /* nothing stored: all is new */
	HF_ALIGN_PREFIX, /* the stored view is a prefix: the tail is new */
	HF_ALIGN_DELTA,	 /* nothing matches: all is new */
	HF_ALIGN_WINDOW, /* the list begins inside the stored view and
			  * covers its end: the tail is new */
	HF_ALIGN_MERGED, /* as prefix, with heard texts or insertions */
	HF_ALIGN_BRANCH, /* an edit or a regeneration: a new branch */
	HF_ALIGN_RETRY,	 /* repeats a turn that ended badly */
	HF_ALIGN_REPLAY	 /* repeats a turn that was answered */
};

/* "new", "full", "delta", "window", "merged", "branch", "retry",
 * "replay". */
const char *hf_align_name(enum hf_align_how how);

#define HF_ALIGN_NONE UINT32_MAX

struct hf_align {
	enum hf_align_how how;
	uint32_t keep;	    /* stored[0..keep) stays on the path */
	uint32_t first_new; /* client[first_new..n) is new */
	struct {
		uint32_t s, c;
	} * heard; /* stored[s] was heard as client[c] (which may be
		    * all of it); HF_ALIGN_NONE: not at all */
	uint32_t n_heard;
	struct {
		uint32_t c, s;
	} * insert; /* client[c] goes before stored[s] */
	uint32_t n_insert;
};

/*
 * 'stored' is the effective view of the head's path (no lead items, none that
 * was not heard at all), 'client' the request's items without lead ones.
 * HF_ENOMEM.
 */
int hf_align(enum hf_history_mode mode, const struct hf_item *stored,
    uint32_t n_stored, const struct hf_item *client, uint32_t n_client,
    struct hf_arena *a, struct hf_align *out) HF_MUST_CHECK;

/* Does 'now' say all of 'before' and more, from the end of a word on? */
bool hf_align_grew(struct hf_str before, struct hf_str now);

/* The digest that counts in the effective view. */
static inline const uint8_t *
hf_item_view_digest(const struct hf_item *i)
{
	return i->has_heard ? i->heard_digest : i->digest;
}

/* True if the item was not heard at all (all-zero heard digest). */
bool hf_item_unheard(const struct hf_item *i);

#endif
