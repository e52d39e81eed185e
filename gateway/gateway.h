/*
 * The gateway as a worker sees it: create it on an event base, give it the
 * listening sockets, drain it.  Loop thread only.
 */
#ifndef HF_GATEWAY_GATEWAY_H
#define HF_GATEWAY_GATEWAY_H

#include <event2/event.h>

#include "base/buf.h"
#include "base/conf.h"
#include "base/err.h"
#include "base/hold.h"
#include "base/shm.h"
#include "store/store.h"

struct hf_gateway;

struct hf_gateway_conf {
	struct event_base *base;    /* borrowed */
	const struct hf_conf *conf; /* borrowed; outlives the gateway */
	struct hf_store *store;	    /* borrowed; its completions are
				     * dispatched by the gateway */
	struct hf_shm *shm;	    /* borrowed */
	struct hf_hold *hold;	    /* borrowed; its map NULL: no handover */
	/* The master is told of a connection that is held, or of its end (fd
	 * -1); false: it cannot be, so it is not held. */
	bool (*tell_held)(void *arg, uint32_t slot, uint32_t epoch, int fd);
	void *tell_arg;
};

int hf_gateway_new(struct hf_gateway **out, const struct hf_gateway_conf *c,
    struct hf_error *e) HF_MUST_CHECK;
int hf_gateway_listen(
    struct hf_gateway *g, int fd, struct hf_error *e) HF_MUST_CHECK;
/* Go on with a connection that a dead worker held; 'fd' becomes the
 * gateway's.  'poisoned': its request is not to be tried again. */
void hf_gateway_adopt(
    struct hf_gateway *g, int fd, uint32_t slot, uint32_t epoch, bool poisoned);
/* Stop accepting; 'done' runs once no request is in flight. */
void hf_gateway_drain(struct hf_gateway *g, void (*done)(void *arg), void *arg);
void hf_gateway_free(struct hf_gateway *g);

/* --- a call for an operator (probe.c) ------------------------------------- */

struct hf_probe;
struct hf_probe_result {
	const char *target;
	enum hf_class cls;  /* HF_CLASS_NONE: it answered */
	const char *reason; /* static */
	bool timed_out;
	int http_status;  /* 0: none came */
	char address[48]; /* that was called; "": none */
	/* Since the beginning; -1: that was not reached (secured: not
	 * needed, perhaps). */
	int64_t resolved_us, connected_us, secured_us, first_token_us;
	int64_t total_us;
	int64_t retry_after_ms; /* -1: no hint */
	struct hf_str text; /* the beginning of the answer, or the provider's
			     * or library's words about the error */
};
/* Called once; the probe is gone when it returns. */
typedef void (*hf_probe_fn)(void *arg, const struct hf_probe_result *r);
/* Ask 't' (borrowed until the end) for a word.  No callback runs before this
 * returns. */
int hf_probe_start(struct event_base *base, const struct hf_conf_target *t,
    hf_probe_fn fn, void *arg, struct hf_probe **out,
    struct hf_error *e) HF_MUST_CHECK;
/* No callback follows. */
void hf_probe_cancel(struct hf_probe *p);

/* The hf_make_body_fn that keep.h asks for: an assistant message's body and
 * normal form from plain text. */
int hf_gateway_make_body(void *arg, struct hf_str text, struct hf_str refusal,
    struct hf_buf *body, struct hf_buf *norm);

#endif
