/*
 * How far a stream got: which bytes of a response stand for how much of the
 * answer, so that what is left behind by a client that leaves can be told from
 * what it was given.  Loop thread.
 *
 * A release (one event of text or one call) counts as given when the kernel
 * has taken the last byte of it.  What a sink says is left includes the framing
 * of the transfer, so that in doubt a release counts as not given.
 */
#ifndef HF_GATEWAY_SURFACE_PROGRESS_H
#define HF_GATEWAY_SURFACE_PROGRESS_H

#include "gateway/turn/turn.h"

struct hf_progress {
	struct hf_buf marks; /* releases that may not have left yet */
	size_t most;	     /* bytes of marks that are worth a look */
	size_t written;	     /* bytes of the response so far */
	struct hf_delivered given;
};

void hf_progress_init(struct hf_progress *p);
void hf_progress_free(struct hf_progress *p);
/* 'size' more bytes were written to a sink with that backlog now; with them
 * the client has 'to' of the answer. */
void hf_progress_add(struct hf_progress *p, size_t size, size_t backlog,
    const struct hf_delivered *to);
/* What was given when 'left' of the bytes have not been taken. */
struct hf_delivered hf_progress_given(struct hf_progress *p, size_t left);

#endif
