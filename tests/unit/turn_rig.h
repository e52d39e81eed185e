/*
 * Turns without sockets: the real surface, turn machine, dialects, splice and,
 * if wanted, store, with a stand-in at either end.  A client is a sink that
 * keeps what it is given.  A provider is a function that sees a request and
 * says which bytes come back, in what pieces, and how they end.
 *
 * The rig defines the functions of front.h and upstream.h that surfaces and
 * turns call; the linker takes them instead of the library's.
 */
#ifndef HF_TESTS_TURN_RIG_H
#define HF_TESTS_TURN_RIG_H

#include "gateway/front/front.h"
#include "gateway/turn/turn.h"
#include "tests/unit/store_fixture.h"

/* What a provider answers with status 200. */
struct rig_answer {
	struct hf_buf bytes; /* of an event stream */
	size_t step;	     /* bytes of a piece; 0: all at once */
	bool cut;	     /* the connection breaks behind them */
};

/* 'url' and 'body' are those of the request. */
typedef void (*rig_provider_fn)(
    void *arg, struct hf_str url, struct hf_str body, struct rig_answer *out);

struct rig {
	struct event_base *base;
	struct hf_conf *conf;
	struct fx fx; /* its store of slot 1, if 'stored' */
	bool stored;
	struct hf_shm *shm;
	struct hf_turn_env env;
	struct event *store_ev;
	rig_provider_fn fn;
	void *arg;
	unsigned open; /* responses not finished */
};

/* A client: one request and what came back. */
struct hf_sink {
	struct rig *rig;
	struct hf_req rq;
	const char *session; /* name; NULL: none */
	struct hf_buf got;   /* the body */
	int status;
	bool started, ended;
	void (*sent)(void *arg, bool sent);
	void *sent_arg;
};

/* 'conf' is the text of a configuration. */
void rig_open(struct rig *r, const char *conf, bool stored, rig_provider_fn fn,
    void *arg);
void rig_close(struct rig *r);
/* Ask for a chat completion; 'c' and 'body' must stay until it ended, and 'c'
 * is to be freed by rig_forget(). */
void rig_ask(
    struct rig *r, struct hf_sink *c, const char *session, struct hf_str body);
void rig_forget(struct hf_sink *c);
/* Until all responses have ended and no turn is left. */
void rig_run(struct rig *r);
/* The text of the last item of a session, as it is on disk. */
void rig_stored(struct rig *r, const char *session, struct hf_buf *out);

#endif
