/*
 * What keeper and worker have in common after exec: the descriptor table,
 * the scoreboard, the frozen configuration, the pipe to the master and the
 * heartbeat of the event loop.
 */
#ifndef HF_WORKERS_PROC_H
#define HF_WORKERS_PROC_H

#include <event2/event.h>

#include "base/conf.h"
#include "base/err.h"
#include "base/hold.h"
#include "base/shm.h"
#include "store/store.h"
#include "workers/ipc.h"
#include "workers/listen.h"

/* What the master says on the command line; borrowed from argv. */
struct hf_proc_opts {
	bool keeper; /* else worker */
	bool first;  /* keeper: a new boot, recover */
	bool hold;   /* connections are held at HF_FD_HOLD */
	unsigned slot;
	const char *config; /* its name, for messages */
	const char *database, *key_file, *key_credential;
	const char *listen[HF_LISTEN_MAX]; /* names of the sockets */
	unsigned n_listen;
};

struct hf_proc {
	const struct hf_proc_opts *opts;
	struct hf_shm shm;
	struct hf_hold hold; /* its map NULL: handover is off */
	uint64_t inc;
	struct hf_conf *conf;
	struct hf_store_conf store;
	char *credential; /* path; store.key_credential */
	struct event_base *base;
	struct event *parent_event, *beat_event;
	void (*record)(void *arg, const struct hf_ipc *r);
	void *arg;
	int passed; /* came with the record; closed after
		     * record() unless it takes it (-1) */
};

/* Undone by hf_proc_free(), also after a failure. */
int hf_proc_init(struct hf_proc *r, const struct hf_proc_opts *o,
    struct hf_error *e) HF_MUST_CHECK;
void hf_proc_free(struct hf_proc *r);
/* Start the heartbeat and hear the master; when it is gone, so are we. */
int hf_proc_attach(struct hf_proc *r,
    void (*record)(void *arg, const struct hf_ipc *r), void *arg,
    struct hf_error *e) HF_MUST_CHECK;
int hf_proc_tell(
    const struct hf_proc *r, enum hf_ipc_type type, const struct hf_ipc *about);

/* The roles' main functions; they return the exit code. */
int hf_worker_main(const struct hf_proc_opts *o) HF_MUST_CHECK;
int hf_keeper_main(const struct hf_proc_opts *o) HF_MUST_CHECK;

#endif
