/*
 * What a worker tells the master of the connections that it serves.  Records
 * leave at once; while the socketpair is full they wait here, in order, so
 * that no end of a connection is ever lost.  Loop thread of a worker.
 */
#ifndef HF_WORKERS_TELL_H
#define HF_WORKERS_TELL_H

#include <event2/event.h>

#include "base/err.h"
#include "base/hf.h"

struct hf_tell;

/* 'fd' is our end of the socketpair, borrowed; 'inc' the own incarnation. */
int hf_tell_new(struct hf_tell **out, struct event_base *base, int fd,
    uint64_t inc, struct hf_error *e) HF_MUST_CHECK;
void hf_tell_free(struct hf_tell *t);

/* A connection is held from now on ('conn', which stays the caller's) or is
 * no longer (-1).  False, of the former only: the master is not told. */
bool hf_tell_held(struct hf_tell *t, uint32_t slot, uint32_t epoch, int conn);

#endif
