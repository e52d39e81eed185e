/*
 * The text of an answer that a client has, of which two know a part: what is
 * on disk is a beginning of it, or more; of the 'told' bytes that were written
 * 'last' are the last.  Pure.
 */
#ifndef HF_GATEWAY_TURN_OVERLAP_H
#define HF_GATEWAY_TURN_OVERLAP_H

#include "base/buf.h"
#include "base/err.h"

/* Append the longer one of what is stored and what was told.  HF_ECORRUPT: the
 * two contradict each other, or there is a gap between them. */
int hf_overlap(struct hf_str stored, uint64_t told, struct hf_str last,
    struct hf_buf *out, struct hf_error *e) HF_MUST_CHECK;

#endif
