/*
 * A client of the control socket for tests that run the server's loop in the
 * same thread.
 */
#ifndef HF_TESTS_CONTROL_CLIENT_H
#define HF_TESTS_CONTROL_CLIENT_H

#include <event2/event.h>
#include <jansson.h>

#include "base/buf.h"

int cc_dial(const char *path);	       /* non-blocking */
void cc_spin(struct event_base *base); /* one round of the server */
void cc_send_bytes(int fd, const void *p, size_t n);
void cc_send(int fd, const char *text); /* as a frame */
/* Let the server run until the client has a whole frame (the caller's), or
 * the connection's end: NULL.  'in' keeps what follows. */
json_t *cc_next(struct event_base *base, int fd, struct hf_buf *in);
json_int_t cc_error_code(const json_t *frame);

#endif
