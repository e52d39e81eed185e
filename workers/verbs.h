/*
 * What the control verbs of base/verbs.def do: over the store's inspect and
 * keep interfaces, the scoreboard, the running configuration and, for what
 * only the master can do, records to it.  verbs.c: sessions, locks, keys,
 * status; verbs_admin.c: check, configuration, reload, drain;
 * verbs_providers.c, verbs_test.c, verbs_failovers.c: what they say.
 */
#ifndef HF_WORKERS_VERBS_H
#define HF_WORKERS_VERBS_H

#include "base/buf.h"
#include "base/conf.h"
#include "base/shm.h"
#include "store/inspect.h"
#include "store/keep.h"
#include "workers/control.h"

struct hf_waiter;

struct hf_verbs { /* all borrowed */
	struct hf_keep *keep;
	struct hf_inspect *inspect;
	struct hf_shm *shm;
	const char *database;
	const char *const *listen; /* names of the sockets */
	unsigned n_listen;
	const struct hf_store_conf *store;
	/* The configuration that runs, and which file it came from; what was
	 * fixed at the start is told apart. */
	const char *config_path, *config_text;
	const char *control; /* path of the control socket */
	/* Ask the master; 'request' rises from one reload to the next. */
	int (*ask_reload)(void *arg, int64_t request);
	int (*ask_end)(void *arg);
	void *arg;
	struct hf_waiter *waiting; /* replies that wait for the master */
	struct event_base *base;   /* on which targets are tested */
	unsigned n_tests;	   /* calls under way */
};

int hf_verb_run(struct hf_verbs *v, const char *verb, const json_t *args,
    struct hf_reply *reply, struct hf_error *e) HF_MUST_CHECK;
/* The master says how the reload went that answers requests up to this. */
void hf_verb_reloaded(
    struct hf_verbs *v, int64_t request, int rc, const char *text);
/* The service has drained; this process is about to end. */
void hf_verb_drained(struct hf_verbs *v);

#endif
