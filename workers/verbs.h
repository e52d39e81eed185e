/*
 * What the control verbs of base/verbs.def do: one function each, over the
 * store's inspect and keep interfaces and the scoreboard.
 */
#ifndef HF_WORKERS_VERBS_H
#define HF_WORKERS_VERBS_H

#include "base/buf.h"
#include "base/shm.h"
#include "store/inspect.h"
#include "store/keep.h"
#include "workers/control.h"

struct hf_verbs {			/* all borrowed */
	struct hf_keep	*keep;
	struct hf_inspect *inspect;
	struct hf_shm	*shm;
	const char	*database;
	const char *const *listen;
	unsigned	 n_listen;
};

int	hf_verb_run(struct hf_verbs *v, const char *verb, const json_t *args,
	    struct hf_reply *reply, struct hf_error *e) HF_MUST_CHECK;

#endif
