/*
 * Turns without sockets: the real surface, turn machine, dialects, splice and,
 * if wanted, store, with a stand-in at either end.  A client is a sink that
 * keeps what it is given.  A provider is a function that sees a request and
 * says which bytes come back, in what pieces, and how they end.
 *
 * A rig can die: its loop stands still, and an heir with a loop and a store of
 * its own takes its clients over, from any of the points that a successor may
 * know them at.
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
	bool hang;	     /* nothing comes behind them */
};

/* 'url' and 'body' are those of the request. */
typedef void (*rig_provider_fn)(
    void *arg, struct hf_str url, struct hf_str body, struct rig_answer *out);

struct rig {
	struct event_base *base;
	struct hf_conf *conf;
	struct fx *fx; /* its store of 'slot', if 'stored' */
	struct fx own; /* ... of a rig that is no heir */
	unsigned slot;
	bool stored;
	struct hf_shm *shm;
	struct hf_turn_env env;
	struct event *store_ev;
	rig_provider_fn fn;
	void *arg;
	unsigned open; /* responses not finished */
};

/* How far a client is, as far as a successor can know. */
struct rig_mark {
	size_t got, said;
	uint32_t state;
	bool started;
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
	void (*gone)(void *arg);
	void *gone_arg;
	/* For a successor. */
	struct hf_id turn;
	struct hf_buf said;
	int64_t said_us;
	uint32_t state;
	struct rig_mark mark[256]; /* [0]: nothing yet */
	unsigned n_mark;
	struct hf_resumed resumed;
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

/* 'heir' has slot 'slot' of the same database. */
void rig_heir(struct rig *heir, struct rig *r, unsigned slot);
/* The process of 'r' is dead: nothing of it runs any more. */
void rig_kill(struct rig *r);
/* Its client is gone, at the end; then its leftovers go. */
void rig_lose(struct hf_sink *c);
void rig_bury(struct rig *r);
/* The request of 'was' again, from its mark 'at' on, of whose text the last
 * 'known' bytes are known. */
void rig_resume(struct rig *heir, struct hf_sink *c, const struct hf_sink *was,
    unsigned at, size_t known, bool poisoned);
/* Serve what is ready; sleep for a moment if nothing is. */
void rig_step(struct rig *r);
/* Store completions are not told any more. */
void rig_freeze(struct rig *r);

/* What a stream says. */
struct rig_heard {
	struct hf_buf text, error; /* code of the error event */
	unsigned role, finish, done, n_error, events, calls, refusals;
	int64_t created; /* of all chunks */
	char id[64], model[64];
};
void rig_hear(struct hf_str bytes, struct rig_heard *h);
void rig_unhear(struct rig_heard *h);
/* Until all responses have ended and no turn is left. */
void rig_run(struct rig *r);
/* The text of the last item of a session, as it is on disk. */
void rig_stored(struct rig *r, const char *session, struct hf_buf *out);

#endif
