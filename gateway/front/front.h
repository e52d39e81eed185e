/*
 * The front room: listens, limits, checks strictly, keeps deadlines and hands
 * whole requests to handlers of a routing table.  It is the only place that
 * sees evhttp; everybody else sees struct hf_req and struct hf_sink.
 * Loop thread only.
 */
#ifndef HF_GATEWAY_FRONT_FRONT_H
#define HF_GATEWAY_FRONT_FRONT_H

#include <event2/event.h>

#include "base/conf.h"
#include "base/err.h"
#include "base/hf.h"
#include "base/hold.h"
#include "base/id.h"
#include "base/shm.h"

struct hf_front;
struct hf_sink;

enum hf_method { HF_GET = 1, HF_HEAD = 2, HF_POST = 4, HF_DELETE = 8 };

/* What a worker that died left of the request that it served. */
struct hf_resumed {
	bool head;	    /* the response's head is with the client */
	bool poisoned;	    /* its owners keep dying by their own fault: do
			     * not try again, say that it failed */
	uint32_t state;	    /* the last hf_sink_state() that was written */
	struct hf_str turn; /* hf_sink_turn(); size 0: none */
	uint64_t text_size; /* bytes of text that were written */
	int64_t said_us;    /* hf_now_us() of the last; 0: none was */
	struct hf_str text; /* the last of them, at most HF_HOLD_TEXT */
};

/* A request that was read whole.  Everything in it lives until its sink is
 * finished (hf_sink_reply, hf_sink_end, or gone). */
struct hf_req {
	enum hf_method method;
	struct hf_str path;  /* decoded, without query */
	struct hf_str query; /* raw, without '?' */
	struct hf_str rest;  /* of the path after a prefix route */
	struct hf_str body;  /* during the handler's call only */
	bool loopback;	     /* came in over a loopback listener */
	int64_t received_us; /* monotonic: request line and headers
			      * and body complete, at whoever had it first */
	char tenant[64];     /* set by 'authorize' for the handler */
	const struct hf_resumed *resumed; /* NULL: a new request */
	const void *impl;
};

/* First value of a header, any case; .p NULL when absent. */
struct hf_str hf_req_header(const struct hf_req *rq, const char *name);
/* Number of headers of this name. */
unsigned hf_req_header_count(const struct hf_req *rq, const char *name);

struct hf_header {
	const char *name;
	struct hf_str value;
};

/*
 * The response sink: the only thing that surfaces write to.  Exactly one of
 * hf_sink_reply() or hf_sink_start()+hf_sink_end() per request.  A header
 * value with control characters is dropped and logged (never sent).  For HEAD
 * the body is left out.
 */
void hf_sink_reply(struct hf_sink *s, int status, const struct hf_header *h,
    unsigned n, const char *content_type, struct hf_str body);
/* A stream (chunked for HTTP/1.1, until close for 1.0); TCP_NODELAY. */
void hf_sink_start(struct hf_sink *s, int status, const struct hf_header *h,
    unsigned n, const char *content_type);
void hf_sink_write(struct hf_sink *s, struct hf_str bytes);
void hf_sink_end(struct hf_sink *s);
/*
 * For whoever takes the request over if this process dies (hf_resumed): the
 * turn that serves it, before that is on disk; the text that this pass's
 * writes carry; and a number of the surface's own.  What was said of a pass
 * and what was written in it become known together, when the pass ends, or
 * not at all: write in one pass what belongs together.
 *
 * When a resumed response's head is with the client, hf_sink_start() sends
 * none, and the stream goes on behind what was written before; hf_sink_reply()
 * of the same body sends what is missing of it, of another one it cuts the
 * connection.
 */
void hf_sink_turn(struct hf_sink *s, const struct hf_id *turn);
void hf_sink_said(struct hf_sink *s, struct hf_str text);
void hf_sink_state(struct hf_sink *s, uint32_t state);
/* Cut the connection: the stream did not end well and the protocol has no
 * other way to say so. */
void hf_sink_abort(struct hf_sink *s);
bool hf_sink_started(const struct hf_sink *s);
/* Bytes handed over and not yet taken by the kernel.  Once the connection is
 * gone, and inside 'gone' and the callback of hf_sink_on_sent(): what it never
 * took. */
size_t hf_sink_backlog(const struct hf_sink *s);
/* 'gone' fires once if the client's connection closes before the response is
 * finished (the sink is dead after it returns; do not touch it again);
 * 'drained' when a backlog of 16 KiB or more has shrunk below that. */
void hf_sink_watch(struct hf_sink *s, void (*gone)(void *arg),
    void (*drained)(void *arg), void *arg);

/* 'fn' runs exactly once, at the latest when the sink ends: sent is true if
 * the whole response was given to the kernel.  Set it before the response is
 * finished. */
void hf_sink_on_sent(
    struct hf_sink *s, void (*fn)(void *arg, bool sent), void *arg);

typedef void (*hf_handler_fn)(
    void *arg, struct hf_req *rq, struct hf_sink *sink);

/* One row of the routing table.  'path' ending in '*' matches a prefix. */
struct hf_path {
	const char *path;
	unsigned methods; /* enum hf_method bits */
	bool open;	  /* served without an API key */
	hf_handler_fn fn;
};

struct hf_front_conf {
	const struct hf_conf_gateway *gw; /* limits and deadlines */
	const struct hf_path *path;
	unsigned n_path;
	void *arg;	      /* for handlers */
	struct hf_shm *shm;   /* counters; borrowed */
	struct hf_hold *hold; /* borrowed; its map NULL: no handover */
	/* Tells the master of a held connection (fd, a dup is taken) or of
	 * its end (fd -1).  False: not now. */
	bool (*tell_held)(void *arg, uint32_t slot, uint32_t epoch, int fd);
	/* Authorizes a request before its handler runs: true to go on; else
	 * it has answered through the sink. */
	bool (*authorize)(void *arg, struct hf_req *rq, struct hf_sink *sink,
	    const struct hf_path *p);
	/* Answers an error in the protocol's shape (front's own refusals:
	 * bad HTTP, too large, unknown path, wrong method). */
	void (*refuse)(void *arg, struct hf_req *rq, struct hf_sink *sink,
	    int status, const char *code, const char *message);
};

int hf_front_new(struct hf_front **out, struct event_base *base,
    const struct hf_front_conf *c, struct hf_error *e) HF_MUST_CHECK;
/* Serve a listening socket (made by the master; not closed on free). */
int hf_front_listen(
    struct hf_front *f, int fd, struct hf_error *e) HF_MUST_CHECK;
/* Take over a connection that a dead worker held; 'fd' becomes ours.
 * 'poisoned': see hf_resumed. */
void hf_front_adopt(
    struct hf_front *f, int fd, uint32_t slot, uint32_t epoch, bool poisoned);
/* Stop accepting, answer with Connection: close, close idle connections. */
void hf_front_drain(struct hf_front *f);
unsigned hf_front_in_flight(const struct hf_front *f);
/* Closes every connection; 'gone' fires for responses not finished. */
void hf_front_free(struct hf_front *f);

#endif
