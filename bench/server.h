/*
 * A small HTTP/1.1 server on bufferevents for the faithful providers.  It is
 * not evhttp because providers must fail on the wire in ways that a correct
 * server does not: resets, silence, half an answer, a missing end.
 * One thread, the event loop's.
 */
#ifndef HF_BENCH_SERVER_H
#define HF_BENCH_SERVER_H

#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hf.h"

struct hf_server;

/* One request, read whole.  Valid until one of the ending calls below, or
 * until 'gone' was called because the client closed first. */
struct hf_sreq {
	struct hf_str method, path; /* path without query, */
	struct hf_str query;	    /* ... which is here; or none */
	struct hf_str body;
	void *arg;			  /* the handler's own */
	void (*gone)(struct hf_sreq *rq); /* or NULL */
};

/* Refuse connections for so long (0: for good), but keep the port; what is
 * open stays so. */
void hf_server_refuse(struct hf_server *s, unsigned ms);

/* The client's port, or 0. */
unsigned hf_sreq_port(struct hf_sreq *rq);
/* The value of a header in any case; .p NULL: absent. */
struct hf_str hf_sreq_header(struct hf_sreq *rq, const char *name);

typedef void (*hf_sreq_fn)(void *arg, struct hf_sreq *rq);

/* Listen at "ADDR:PORT" (IPv4 or [IPv6]; port 0: the kernel's choice). */
int hf_server_new(struct hf_server **out, struct event_base *base,
    const char *addr, hf_sreq_fn fn, void *arg,
    struct hf_error *e) HF_MUST_CHECK;
void hf_server_free(struct hf_server *s);
unsigned hf_server_port(const struct hf_server *s);

/* A whole answer.  'headers': "Name: value\r\n" lines or "". */
void hf_sreq_reply(struct hf_sreq *rq, int status, const char *headers,
    const char *content_type, struct hf_str body);
/* A chunked answer: start, chunks, and one ending. */
void hf_sreq_start(struct hf_sreq *rq, int status, const char *headers,
    const char *content_type);
void hf_sreq_chunk(struct hf_sreq *rq, struct hf_str bytes);
void hf_sreq_end(struct hf_sreq *rq);
/* Bad endings: after what was written has left, close by FIN or by RST. */
void hf_sreq_close(struct hf_sreq *rq, bool reset);
/* Run 'fn' once after 'ms' unless the request ends before; one at a time. */
void hf_sreq_after(
    struct hf_sreq *rq, unsigned ms, void (*fn)(struct hf_sreq *rq));

#endif
