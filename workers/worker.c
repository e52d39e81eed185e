/*
 * The worker: an event loop with the gateway on it and a store beside it.
 * It listens on inherited sockets, drains when told, and dies with its
 * master.
 */
#include <config.h>

#include "workers/proc.h"

#include <malloc.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/log.h"
#include "gateway/gateway.h"
#include "workers/tell.h"

/* Of events: nearly all have the second one, which is the default. */
#define N_PRIORITIES 2

struct worker {
	struct hf_proc proc;
	struct hf_store *store;
	struct hf_gateway *gateway;
	struct hf_tell *tell;
	bool draining;
};

static void
drained(void *arg)
{
	struct worker *w = arg;

	hf_log(HF_LOG_INFO, "worker: drained slot=%u", w->proc.opts->slot);
	event_base_loopbreak(w->proc.base);
}

static bool
tell_held(void *arg, uint32_t slot, uint32_t epoch, int fd)
{
	struct worker *w = arg;

	return hf_tell_held(w->tell, slot, epoch, fd);
}

/* A connection of a dead worker is ours now. */
static void
adopt(struct worker *w, const struct hf_ipc *r)
{
	uint32_t slot = r->slot, epoch = (uint32_t)r->a;
	int fd = w->proc.passed;

	if (w->proc.hold.map == NULL || slot >= HF_HOLD_SLOTS ||
	    atomic_load(hf_hold_owner(&w->proc.hold, slot)) != w->proc.inc ||
	    atomic_load(&hf_hold_slot(&w->proc.hold, slot)->epoch) != epoch) {
		hf_log(HF_LOG_ERROR,
		    "worker: adoption that is not ours "
		    "dropped hold_slot=%u",
		    slot);
		return;
	}
	if (fd < 0) { /* we have no descriptor left */
		hf_log(HF_LOG_ERROR,
		    "worker: adoption without a connection "
		    "dropped hold_slot=%u",
		    slot);
		hf_tell_held(w->tell, slot, epoch, -1);
		hf_hold_give(&w->proc.hold, slot);
		return;
	}
	w->proc.passed = -1;
	hf_gateway_adopt(w->gateway, fd, slot, epoch, r->b != 0);
}

static void
on_record(void *arg, const struct hf_ipc *r)
{
	struct worker *w = arg;

	if (r->type == HF_IPC_DRAIN && !w->draining) {
		w->draining = true;
		hf_log(
		    HF_LOG_DEBUG, "worker: drains slot=%u", w->proc.opts->slot);
		hf_gateway_drain(w->gateway, drained, w);
	} else if (r->type == HF_IPC_ADOPT) {
		adopt(w, r);
	} else if (r->type == HF_IPC_STOP) {
		/* As a crash would leave it: turns under way stay open on
		 * disk, and another worker goes on with them or the keeper
		 * marks them interrupted. */
		_exit(HF_EXIT_OK);
	}
}

/* One thread only ever touches the base: no locks in it. */
static int
make_base(struct worker *w, struct hf_error *e)
{
	struct event_config *cfg = event_config_new();

	if (cfg != NULL &&
	    event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK) == 0)
		w->proc.base = event_base_new_with_config(cfg);
	if (cfg != NULL)
		event_config_free(cfg);
	if (w->proc.base == NULL ||
	    event_base_priority_init(w->proc.base, N_PRIORITIES) < 0)
		return hf_fail(e, HF_ENOMEM, "event loop: cannot be made");
	return 0;
}

static int
start(struct worker *w, struct hf_error *e)
{
	struct hf_gateway_conf gc;
	int rc;

	rc = make_base(w, e);
	if (rc == 0)
		rc = hf_tell_new(
		    &w->tell, w->proc.base, HF_FD_PARENT, w->proc.inc, e);
	if (rc < 0)
		return rc;
	rc = hf_store_open(&w->store, &w->proc.store, e);
	if (rc < 0)
		return rc;
	hf_store_set_make_body(w->store, hf_gateway_make_body, NULL);
	gc = (struct hf_gateway_conf){ .base = w->proc.base,
		.conf = w->proc.conf,
		.store = w->store,
		.shm = &w->proc.shm,
		.hold = &w->proc.hold,
		.tell_held = tell_held,
		.tell_arg = w };
	rc = hf_gateway_new(&w->gateway, &gc, e);
	for (unsigned i = 0; rc == 0 && i < w->proc.opts->n_listen; i++)
		rc = hf_gateway_listen(w->gateway, HF_FD_LISTEN0 + (int)i, e);
	if (rc == 0)
		rc = hf_proc_attach(&w->proc, on_record, w, e);
	if (rc == 0)
		rc = hf_proc_tell(&w->proc, HF_IPC_READY, NULL);
	return rc;
}

/* Megabytes that one long answer needs for a moment go back to the system at
 * once; by itself the allocator would learn to keep them, for each thread. */
static void
bound_memory(void)
{
#ifdef M_MMAP_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, 256 * 1024);
	mallopt(M_TRIM_THRESHOLD, 2 * 1024 * 1024);
#endif
}

int
hf_worker_main(const struct hf_proc_opts *o)
{
	struct worker w = { 0 };
	struct hf_error e = { 0 };
	struct event_base *base;
	int rc;

	bound_memory();
	rc = hf_proc_init(&w.proc, o, &e);
	if (rc == 0)
		rc = start(&w, &e);
	if (rc == 0)
		event_base_dispatch(w.proc.base);
	else
		hf_log(HF_LOG_ERROR, "worker: cannot start slot=%u: %s",
		    o->slot, e.text);
	if (w.gateway != NULL)
		hf_gateway_free(w.gateway);
	if (w.store != NULL)
		hf_store_close(w.store);
	hf_tell_free(w.tell);
	base = w.proc.base;
	hf_proc_free(&w.proc);
	if (base != NULL)
		event_base_free(base);
	libevent_global_shutdown();
	return hf_exit_code(rc);
}
