/*
 * Calls of providers: libcurl's multi interface on the event loop.  HTTP/1.1
 * only; no redirects, no proxy from the environment, no netrc; a POST is
 * never repeated by the library; names are resolved without blocking the
 * loop.  Loop thread only.
 */
#ifndef HF_GATEWAY_UPSTREAM_UPSTREAM_H
#define HF_GATEWAY_UPSTREAM_UPSTREAM_H

#include <event2/event.h>

#include "base/err.h"
#include "gateway/provider/provider.h"

struct hf_upstream; /* one per worker: connection pools, resolver */
struct hf_call;	    /* one call in flight */

struct hf_call_result {
	enum hf_class cls;  /* NONE: the exchange was complete on
			     * the wire (whatever its status) */
	const char *reason; /* static: "ok", "connect_refused",
			     * "connect_timeout", "connect_failed",
			     * "unreachable", "resolve", "tls",
			     * "reset", "eof" (closed too early),
			     * "stale_connection", "timeout",
			     * "bad_http", "failed", "bad_url",
			     * "memory" */
	bool clean;	    /* body ended as its framing says */
	bool any_byte;	    /* of the response arrived */
	bool reused;	    /* on a pooled connection */
	bool stale;	    /* ... which its peer gave up at about the time
			     * when it was taken: no byte came back, and that
			     * within STALE_US.  The provider may have read
			     * the request, or not. */
	int64_t connect_us, total_us;
	int64_t bytes_out, bytes_in;
	char detail[160]; /* library's text; no contents */
};

/* How far a call is. */
struct hf_call_times {
	/* Since it was started; -1: not yet, or, of secured (TLS), never. */
	int64_t resolved_us, connected_us, secured_us;
	char address[48]; /* of the other side, tried last; "": none */
};

struct hf_call_ops {
	/* Once, when the response's headers are complete. */
	void (*headers)(void *arg, int status, struct hf_str headers);
	void (*data)(void *arg, struct hf_str bytes);
	/* Last; the call is gone after it returns.  Not called after
	 * hf_call_cancel(). */
	void (*done)(void *arg, const struct hf_call_result *r);
};

int hf_upstream_new(struct hf_upstream **out, struct event_base *base,
    struct hf_error *e) HF_MUST_CHECK;
void hf_upstream_free(struct hf_upstream *u); /* cancels all */

/* Start a call; 'rq' is taken over (its buffers move).  'connect_ms' covers
 * name resolution and connecting; 'fresh': not on a pooled connection.  No
 * callback runs before this returns. */
int hf_upstream_start(struct hf_upstream *u, struct hf_http_request *rq,
    int connect_ms, bool fresh, const struct hf_call_ops *ops, void *arg,
    struct hf_call **out, struct hf_error *e) HF_MUST_CHECK;
/* Send at once what was started, where the loop would do it after others'
 * events: the request is still in the processor's caches.  Callbacks of any
 * call may run inside.  Nothing happens inside a callback. */
void hf_upstream_push(struct hf_upstream *u);
/* Close the connection now; no callback follows.  Allowed from inside the
 * call's own callbacks. */
void hf_call_cancel(struct hf_call *c);
/* Back-pressure: stop and go on reading from the provider. */
void hf_call_pause(struct hf_call *c, bool pause);
/* At any time before 'done' returns. */
void hf_call_times(const struct hf_call *c, struct hf_call_times *t);
unsigned hf_upstream_in_flight(const struct hf_upstream *u);

#endif
