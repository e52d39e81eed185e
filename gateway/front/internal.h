/*
 * What the files of the front room share; nobody else includes it.
 *
 * Lives and ownership.  A connection (struct hf_conn) is ours beside evhttp's
 * own object: it is made when evhttp asks for a bufferevent, learns of its
 * end through evhttp's close callback, and is freed on a later turn of the
 * loop.  A sink (struct hf_sink) is one request; it outlives its connection
 * when the client leaves first, until the handler finishes it or was told.
 * Nothing is freed, and no callback of ours runs, from inside evhttp's frames:
 * such work is queued and done by the front's work event in the same pass.
 */
#ifndef HF_GATEWAY_FRONT_INTERNAL_H
#define HF_GATEWAY_FRONT_INTERNAL_H

#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "gateway/front/front.h"
#include "gateway/front/head.h"

#define HF_FRONT_HEADERS_MAX (16 * 1024) /* answered 400 by evhttp */
#define HF_SINK_LOW (16 * 1024) /* 'drained' is owed above, and paid below */

struct hf_listener {
	LIST_ENTRY(hf_listener) entry;
	LIST_ENTRY(hf_listener) all_entry;
	struct hf_front *front;
	struct evconnlistener *ev;
	struct evhttp_bound_socket *bound;
	struct event retry; /* after out of descriptors */
	struct sockaddr_storage addr;
	socklen_t addr_size;
	bool loopback;
};

enum hf_conn_phase {
	HF_CONN_FRESH, /* accepted, no byte yet */
	HF_CONN_HEAD,  /* a request's first bytes are here */
	HF_CONN_BODY,  /* head complete */
	HF_CONN_BUSY,  /* handed to a handler; response under way */
	HF_CONN_IDLE   /* kept alive, no byte of the next request */
};

/* Queued work. */
enum {
	HF_CONN_ADOPT = 1,
	HF_CONN_WRITE = 2,
	HF_CONN_READ = 4,
	HF_CONN_CLOSE = 8,
	HF_CONN_FREE = 16
};

struct hf_conn {
	LIST_ENTRY(hf_conn) entry;
	TAILQ_ENTRY(hf_conn) todo_entry;
	unsigned todo;
	struct hf_front *front;
	struct bufferevent *bev;	 /* evhttp's; NULL once closed */
	struct evhttp_connection *evcon; /* NULL once closed */
	int fd;		 /* ours to read and write; evhttp closes it */
	struct event io; /* of the socket, edge-triggered */
	bool readable;	 /* an edge came; not read dry since */
	enum hf_conn_phase phase;
	int64_t since_us; /* when the phase began */
	int64_t moved_us; /* the kernel, or the client, last took a byte */
	uint64_t acked;	  /* by the client, when the timer looked */
	int64_t armed_us; /* timer due then; 0: not set */
	struct event timer;
	struct hf_http_head *head; /* of the request being read */
	size_t head_size;	   /* bytes of it, as they came */
	int64_t body_seen;	   /* bytes of its body */
	size_t last_size;	   /* bytes of the request before it */
	struct hf_sink *sink;	   /* BUSY: its request */
	bool loopback;
	bool hung; /* the client sent FIN or RST */
	/* If held (held.c). */
	uint32_t slot; /* HF_HOLD_NONE: not held */
	uint32_t epoch;
	size_t in_size;	   /* bytes in 'in' */
	uint64_t consumed; /* bytes read since the connection began */
	uint64_t out_sent; /* of 'out', taken by the kernel */
	bool adopted;	   /* evhttp's descriptor is not the client's */
	bool resuming;	   /* its request was begun by another worker */
	bool drop_interim; /* evhttp will say once more what was said */
	bool poisoned;
};

/* A connection that waits for evhttp to make its object. */
struct hf_adoptee {
	TAILQ_ENTRY(hf_adoptee) entry;
	struct sockaddr_un peer; /* of the connection that stands for it */
	socklen_t peer_size;
	int fd;
	uint32_t slot, epoch;
	bool poisoned;
};

enum {
	HF_SINK_DRAINED = 1,
	HF_SINK_CUT = 2,
	HF_SINK_FREE = 4
}; /* queued work */

struct hf_sink {
	LIST_ENTRY(hf_sink) entry;
	TAILQ_ENTRY(hf_sink) todo_entry;
	unsigned todo;
	TAILQ_ENTRY(hf_sink) leaver_entry;
	bool leaving; /* in front->leavers */
	struct hf_front *front;
	struct hf_conn *conn;	   /* NULL once it closed */
	struct evhttp_request *ev; /* alive as long as 'conn' */
	struct hf_req rq;
	struct hf_http_head *head; /* owns what rq points into */
	struct evbuffer *body;	   /* the same */
	char *path;		   /* the same, decoded */
	struct evbuffer *pending;  /* not yet framed */
	struct hf_buf said;	   /* text that 'pending' carries */
	uint32_t state;		   /* the surface's */
	struct hf_id turn;
	size_t head_size; /* bytes of the response's head */
	bool reply;	  /* the response is one body */
	uint64_t body_size, body_hash;
	struct hf_resumed *resumed; /* NULL: a new request */
	struct hf_buf resumed_text; /* what it points to */
	unsigned allow;		    /* methods for a 405, or 0 */
	bool started, finished;
	bool bodiless; /* HEAD, 204, 304 */
	bool chunked;
	bool close;  /* after this response */
	bool high;   /* 'drained' is owed */
	size_t lost; /* left in the output when 'conn' closed */
	void (*gone)(void *arg);
	void (*drained)(void *arg);
	void *arg;
	void (*sent)(void *arg, bool sent);
	void *sent_arg;
};

struct hf_front {
	struct event_base *base;
	struct evhttp *http;
	struct hf_front_conf c;
	struct event *work;
	struct event *accepted; /* a connection is to be held: */
	struct hf_conn *fresh;	/* the last one that evhttp set up, or NULL */
	LIST_HEAD(, hf_listener) listeners;
	LIST_HEAD(, hf_conn) conns;
	LIST_HEAD(, hf_sink) sinks;
	TAILQ_HEAD(, hf_conn) conn_todo;
	TAILQ_HEAD(hf_sink_todo, hf_sink) sink_todo;
	TAILQ_HEAD(hf_leavers, hf_sink) leavers; /* 'gone' is to be told */
	struct event *leave;
	struct hf_conn *reading;      /* on whose behalf evhttp runs, or NULL */
	struct evconnlistener *inner; /* where adoptees come in */
	struct sockaddr_un inner_addr;
	socklen_t inner_size;
	TAILQ_HEAD(, hf_adoptee) adoptees;
	unsigned in_flight; /* sinks alive */
	bool draining;
	bool closing; /* being freed */
};

/* conn.c */
/* Bytes for evhttp's parser. */
void hf_conn_deliver(struct hf_conn *c);
struct bufferevent *hf_conn_make(struct event_base *base, void *front);
void hf_conn_work(struct hf_conn *c);
void hf_conn_hold(struct hf_front *f); /* the fresh one */
void hf_conn_queue(struct hf_conn *c, unsigned what);
/* Close now; not from inside evhttp's frames. */
void hf_conn_close(struct hf_conn *c);
void hf_conn_busy(struct hf_conn *c); /* its request is being served */
void hf_conn_arm(struct hf_conn *c);
/* A response was written whole; what is read from now on is the next
 * request. */
void hf_conn_next(struct hf_conn *c);
void hf_conn_drain(struct hf_conn *c);
bool hf_conn_reading(const struct hf_conn *c);
struct hf_conn *hf_conn_find(struct hf_front *f, struct evhttp_request *ev);

/* held.c */
bool hf_held(const struct hf_conn *c);
void hf_held_begin(struct hf_conn *c); /* a connection just accepted */
void hf_held_end(struct hf_conn *c);   /* it is about to be closed */
/* Room for bytes that are read; NULL: there is none, read elsewhere. */
char *hf_held_room(struct hf_conn *c, size_t *size);
/* Move output from evhttp's buffer to where it survives us, as far as that is
 * possible now; what is there may be sent. */
void hf_held_log(struct hf_conn *c);
struct hf_str hf_held_unsent(const struct hf_conn *c); /* contiguous */
size_t hf_held_backlog(const struct hf_conn *c);
/* The turn that will serve it. */
void hf_held_turn(struct hf_sink *s);
/* The body of the request, if it lies there in one piece. */
const char *hf_held_body(const struct hf_conn *c);
/* Take over what a dead worker held, if this is such a connection: false: it
 * cannot be gone on with. */
struct hf_adoptee *hf_held_adoptee(struct hf_front *f, int fd);
bool hf_held_adopt(struct hf_conn *c, struct hf_adoptee *a);
void hf_held_feed(struct hf_conn *c);
void hf_held_resume(struct hf_sink *s);
/* What is with the client of a plain reply that a predecessor began. */
struct hf_held_reply {
	bool any;
	uint64_t size, hash; /* of the body */
	uint64_t sent;	     /* bytes of the body */
	size_t head;	     /* bytes of the head */
};
void hf_held_reply(const struct hf_sink *s, struct hf_held_reply *out);
int hf_held_init(struct hf_front *f, struct hf_error *e) HF_MUST_CHECK;
void hf_held_free(struct hf_front *f);

/* socket.c; none of these from inside evhttp's frames */
void hf_conn_open(struct hf_conn *c);
/* Bytes for the client that the kernel has not taken. */
size_t hf_conn_unsent(const struct hf_conn *c);
void hf_conn_push(struct hf_conn *c);
void hf_conn_pull(struct hf_conn *c);

/* sink.c */
struct hf_sink *hf_sink_new(struct hf_conn *c, struct evhttp_request *ev);
void hf_sink_work(struct hf_sink *s);
void hf_sink_queue(struct hf_sink *s, unsigned what);
void hf_sink_gather(struct hf_sink *s); /* frame what waits for output */
void hf_sink_hung(struct hf_sink *s);	/* its client hung up */
void hf_sink_tell_gone(struct hf_sink *s);
void hf_sink_closed(struct hf_sink *s);	  /* its connection is closed */
void hf_sink_progress(struct hf_sink *s); /* output shrank */
void hf_sink_free(struct hf_sink *s);

/* route.c */
void hf_front_request(struct evhttp_request *ev, void *front);
void hf_methods_print(unsigned methods, char *out, size_t size);

#endif
