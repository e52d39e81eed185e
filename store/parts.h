/*
 * The text of a turn in parts, as it was stored while it streamed, and the
 * item that it becomes when the turn ends.
 */
#ifndef HF_STORE_PARTS_H
#define HF_STORE_PARTS_H

#include "store/row.h"

#define HF_PARTS_ALL HF_ROW_MAX

/* Append the text of the turn's first 'n' parts, in order.  HF_ECORRUPT: one
 * does not open. */
int hf_parts_read(struct hf_db *db, const struct hf_seal_key *key, int64_t turn,
    int64_t seq, int64_t n, struct hf_buf *text,
    struct hf_error *e) HF_MUST_CHECK;

/* The same from part *from on, as long as there are less than 'most' bytes;
 * *from moves on. */
int hf_parts_read_on(struct hf_db *db, const struct hf_seal_key *key,
    int64_t turn, int64_t seq, int64_t *from, size_t most, struct hf_buf *text,
    struct hf_error *e) HF_MUST_CHECK;

/* What becomes an item. */
struct hf_parts_text {
	int64_t n;	    /* parts, or HF_PARTS_ALL */
	struct hf_str rest; /* text behind them */
	struct hf_str refusal;
	int64_t heard; /* bytes of text, then of refusal; -1: all */
};

/* Make it the turn's next output item, marked if less than all was heard; chain
 * and view of 't' go on (the caller writes its row and drops the parts).  *size
 * is that of the text; when there is none, and no refusal, no item is made. */
int hf_parts_to_item(struct hf_writer *w, const struct hf_seal_key *key,
    struct hf_turn_row *t, const struct hf_parts_text *p, size_t *size,
    struct hf_error *e) HF_MUST_CHECK;

#endif
