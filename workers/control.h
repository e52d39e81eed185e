/*
 * The control socket's server: frames of base/frame.h in and out, one
 * request of a client at a time.  What the verbs do is none of its business.
 *
 * A bad frame or bad JSON closes that client and nothing else.  A client
 * that does not read its reply is not read either, and is closed when it
 * takes nothing for HF_CONTROL_IDLE_S.  A long reply is made in pieces, each
 * when the one before has got away, so that it takes no memory to speak of
 * and other clients are served in between.
 */
#ifndef HF_WORKERS_CONTROL_H
#define HF_WORKERS_CONTROL_H

#include <event2/event.h>
#include <jansson.h>

#include "base/err.h"
#include "base/hf.h"

#define HF_CONTROL_CLIENTS 32
#define HF_CONTROL_IDLE_S 30
#define HF_CONTROL_PIECE ((size_t)128 * 1024) /* of a long reply */

struct hf_control;
struct hf_reply;

/*
 * Run a verb: hand out data with hf_reply_data(), return 0 or an error code
 * with 'e' filled.  'args' is an object, possibly empty.  HF_ECONFLICT means
 * ambiguous here.  After hf_reply_go_on() or hf_reply_wait() 0 ends nothing.
 */
typedef int (*hf_control_fn)(void *arg, const char *verb, const json_t *args,
    struct hf_reply *reply, struct hf_error *e);

/* 'fd' is a listening unix socket, owned by the server from now on (closed
 * on failure too). */
int hf_control_new(struct hf_control **out, struct event_base *base, int fd,
    hf_control_fn fn, void *arg, struct hf_error *e) HF_MUST_CHECK;
void hf_control_free(struct hf_control *c);

/* Queue one data frame; takes the reference of 'data' (NULL: an error).  Not
 * 0 when the reply cannot grow: stop, and return that from the verb. */
int hf_reply_data(
    struct hf_reply *r, json_t *data, struct hf_error *e) HF_MUST_CHECK;

/* Whose request this is. */
struct hf_peer {
	int64_t uid, pid; /* as the kernel says; -1: it does not */
};
const struct hf_peer *hf_reply_peer(const struct hf_reply *r);

/* Enough for this piece: return 1 from the step. */
bool hf_reply_full(const struct hf_reply *r);
/* 1: call again when what was put has got away; 0: that was all; or an
 * error. */
typedef int (*hf_reply_step_fn)(
    struct hf_reply *r, void *state, struct hf_error *e);
typedef void (*hf_reply_drop_fn)(void *state);
/* The verb goes on in steps, the first of them soon.  'drop' is called once,
 * when the reply has ended or its client is gone. */
void hf_reply_go_on(struct hf_reply *r, hf_reply_step_fn step,
    hf_reply_drop_fn drop, void *state);
/* The verb goes on when somebody calls hf_reply_end(), unless the client has
 * gone before (then 'drop' was called). */
void hf_reply_wait(struct hf_reply *r, hf_reply_drop_fn drop, void *state);
void hf_reply_end(struct hf_reply *r, int rc, const struct hf_error *e);

#endif
