/*
 * What the files of the upstream room share; nobody else includes it.
 */
#ifndef HF_GATEWAY_UPSTREAM_INTERNAL_H
#define HF_GATEWAY_UPSTREAM_INTERNAL_H

#include <sys/queue.h>

#include <event2/event_struct.h>

#include "gateway/upstream/libcurl.h"
#include "gateway/upstream/resolve.h"
#include "gateway/upstream/upstream.h"

enum hf_call_state {
	HF_CALL_RESOLVING, /* waits for the resolver */
	HF_CALL_QUEUED,	   /* will be given to libcurl by the work event */
	HF_CALL_RUNNING,   /* libcurl has it */
	HF_CALL_DEAD	   /* cancelled; libcurl may be on the stack */
};

struct hf_call {
	LIST_ENTRY(hf_call) entry; /* of calls or dead */
	TAILQ_ENTRY(hf_call) task; /* of tasks */
	bool tasked;
	struct hf_upstream *u;
	enum hf_call_state state;
	CURL *easy;
	struct curl_slist *header_list;
	struct curl_slist *address_list;
	struct hf_resolve_wait *wait;
	struct hf_http_request rq; /* owned */
	char *host;
	int port;
	struct event timer; /* resolve + connect */
	int connect_ms;
	bool fresh; /* not on a pooled connection */
	int64_t started_us, connected_us;
	int64_t resolved_us; /* its addresses were known; 0: not yet */
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} peer;		       /* tried last; family 0: none */
	struct hf_buf headers; /* of the response under way */
	int status;
	bool got_headers; /* the final ones, handed over */
	bool any_byte;
	bool repeated; /* libcurl tried to, and was stopped */
	bool pause;    /* wanted by the caller */
	bool paused;   /* libcurl was told so */
	const struct hf_call_ops *ops;
	void *arg;
	char detail[CURL_ERROR_SIZE];
};

/* libcurl's socket and its event. */
struct hf_upstream_sock {
	struct event ev;
	short armed; /* what 'ev' waits for; 0: not added */
	bool wanted; /* libcurl waits for it */
};

/* A URL that was called before. */
struct hf_upstream_url {
	char *text; /* NULL: free */
	char *host;
	int port;
	bool literal; /* an address: needs no resolver */
};

#define HF_UPSTREAM_SPARE 128 /* easy handles kept */

struct hf_upstream {
	struct event_base *base;
	CURLM *multi;
	struct hf_resolver *resolver;
	struct event *work;
	struct event timer;		/* libcurl's */
	struct hf_upstream_sock **sock; /* by descriptor */
	size_t n_sock;
	LIST_HEAD(, hf_call) calls;
	unsigned n_calls;
	/* For the work event, in order: to be given to libcurl or resumed. */
	TAILQ_HEAD(, hf_call) tasks;
	LIST_HEAD(, hf_call) dead; /* to be ended by it */
	CURL *spare[HF_UPSTREAM_SPARE];
	size_t n_spare;
	struct hf_upstream_url url[8];
	unsigned next_url; /* to be overwritten */
	unsigned depth;	   /* > 0: inside libcurl */
	unsigned telling;  /* > 0: inside a 'done' */
	bool due;	   /* libcurl's timer is to fire at once */
	bool closing;
};

/* upstream.c: libcurl reported this transfer as finished. */
void hf_call_finished(struct hf_call *c, CURLcode rc);
void hf_upstream_reap(struct hf_upstream *u);

/* handle.c: a handle for c->rq in c->easy; false when there is no memory. */
bool hf_handle_get(struct hf_call *c) HF_MUST_CHECK;
void hf_handle_put(struct hf_call *c); /* back, not in libcurl's use */
void hf_handles_free(struct hf_upstream *u);

/* loop.c */
int hf_upstream_loop_init(struct hf_upstream *u, struct hf_error *e);
void hf_upstream_loop_free(struct hf_upstream *u);
/* After any call into libcurl that may have finished transfers. */
void hf_upstream_collect(struct hf_upstream *u);
/* What libcurl wants to be done now, if anything. */
void hf_upstream_now(struct hf_upstream *u);
int hf_upstream_close_socket(void *upstream, curl_socket_t fd);

/* result.c: pure. */
void hf_call_classify(
    const struct hf_call *c, CURLcode rc, struct hf_call_result *r);

#endif
