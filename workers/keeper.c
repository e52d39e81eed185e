/*
 * The keeper: migrations and recovery before anything else starts, leases of
 * the dead, checkpoints, and the control socket.
 */
#include <config.h>

#include "workers/proc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exits.h"
#include "base/log.h"
#include "base/target.h"
#include "gateway/gateway.h"
#include "store/inspect.h"
#include "store/keep.h"
#include "workers/control.h"
#include "workers/targets.h"
#include "workers/verbs.h"

#define MAINTAIN_S 2
#define CHECKPOINT_FRAMES 1000
#define IDLE_US ((int64_t)10 * 1000000)

struct keeper {
	struct hf_proc proc;
	struct hf_keep *keep;
	struct hf_inspect *inspect;
	struct hf_control *control;
	struct hf_verbs verbs;
	char *config_text; /* that runs now */
	char control_path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
	struct event *timer;
	struct hf_targets_file targets;
	int64_t commits; /* as of the last look; -1: none */
	int64_t idle_since_us;
	bool shrunk;	 /* since the last commit */
	bool reap_again; /* a reap failed, or left turns to others */
};

/* --- start ------------------------------------------------------------ */

/* A revoked key counts too: revoking the last one opens no door. */
static int
saw_key(void *arg, const struct hf_key_info *k)
{
	bool *any = arg;

	(void)k;
	*any = true;
	return 1;
}

/* Without any API key only this machine is served. */
static int
check_exposure(struct keeper *k, struct hf_error *e)
{
	const struct hf_proc_opts *o = k->proc.opts;
	bool any = false;
	int rc;

	rc = hf_inspect_keys(k->inspect, saw_key, &any, e);
	if (rc < 0 || any)
		return rc;
	for (unsigned i = 0; i < o->n_listen; i++)
		if (!hf_listen_is_loopback(o->listen[i]))
			return hf_fail(e, HF_ECONFIG,
			    "listen %s: no API key "
			    "exists, so only loopback addresses are served; "
			    "make a key on a loopback listener first "
			    "(holdfastctl keys create TENANT)",
			    o->listen[i]);
	hf_log(HF_LOG_WARN,
	    "keeper: no API key exists; loopback clients are "
	    "served without one tenant=%s",
	    HF_TENANT_DEFAULT);
	return 0;
}

static int
recover(struct keeper *k, struct hf_recovered *rec, struct hf_error *e)
{
	struct hf_shm_header *h = k->proc.shm.h;
	uint64_t boot = 0;
	int rc;

	/* Restarted beside running workers: their turns must not be touched. */
	if (!k->proc.opts->first)
		return hf_keep_reap(
		    k->keep, 0, 0, hf_gateway_make_body, NULL, rec, e);
	rc = check_exposure(k, e);
	if (rc < 0)
		return rc;
	rc =
	    hf_keep_recover(k->keep, hf_gateway_make_body, NULL, &boot, rec, e);
	if (rc == 0)
		atomic_store(&h->boot, boot);
	return rc;
}

/* What was disabled by hand stays so. */
static int
on_disabled(void *arg, const char *name, int64_t since_us, int64_t uid)
{
	struct keeper *k = arg;
	struct hf_error e = { 0 };

	(void)since_us;
	(void)uid;
	if (hf_target_disable(&k->proc.shm, name, true, &e) < 0)
		hf_log(HF_LOG_ERROR, "keeper: cannot disable: %s", e.text);
	else
		hf_log(HF_LOG_WARN, "keeper: disabled name=%s", name);
	return 0;
}

/* --- duties ----------------------------------------------------------- */

static void
did_work(struct keeper *k)
{
	/* Only that it did any: a look at the status must not change it. */
	atomic_store(&k->proc.shm.h->slot[k->proc.shm.self].worked, 1);
	k->shrunk = false;
	k->idle_since_us = hf_now_us();
}

static void
reap(struct keeper *k, unsigned slot, uint64_t inc)
{
	struct hf_recovered rec = { 0 };
	struct hf_error e = { 0 };
	struct hf_ipc done = { .slot = slot, .inc = inc };

	did_work(k);
	if (hf_keep_reap(
		k->keep, slot, inc, hf_gateway_make_body, NULL, &rec, &e) < 0) {
		hf_log(HF_LOG_ERROR,
		    "keeper: leases of the dead are not "
		    "settled slot=%u inc=%" PRIu64 " error=\"%s\"",
		    slot, inc, e.text);
		k->reap_again = true;
		return;
	}
	/* Should nobody go on with them after all. */
	k->reap_again = k->reap_again || rec.turns_held > 0;
	done.a = rec.turns_interrupted;
	done.b = rec.attempts_lost;
	if (hf_proc_tell(&k->proc, HF_IPC_REAPED, &done) < 0)
		hf_log(HF_LOG_DEBUG, "keeper: master does not read");
}

static void
checkpoint(struct keeper *k, int frames, bool shrink)
{
	static struct hf_log_limit limit;
	struct hf_error e = { 0 };

	if (hf_keep_checkpoint(k->keep, frames, shrink, &e) < 0)
		hf_log_limited(&limit, 60000, HF_LOG_WARN,
		    "keeper: "
		    "checkpoint failed error=\"%s\"",
		    e.text);
}

static void
maintain(evutil_socket_t fd, short what, void *arg)
{
	struct keeper *k = arg;
	int64_t commits = hf_shm_sum(&k->proc.shm, HF_C_store_commits);
	int64_t now = hf_now_us();

	(void)fd;
	(void)what;
	if (k->reap_again) {
		k->reap_again = false;
		reap(k, 0, 0);
	}
	if (commits != k->commits) {
		k->commits = commits;
		k->idle_since_us = now;
		k->shrunk = false;
		checkpoint(k, CHECKPOINT_FRAMES, false);
	} else if (!k->shrunk && now - k->idle_since_us >= IDLE_US) {
		checkpoint(k, 1, true);
		k->shrunk = true;
	}
}

/* --- the configuration, for whoever asks ------------------------------- */

static void
note_config(struct keeper *k, int fd)
{
	struct stat sb;
	char *text = NULL;

	if (fstat(fd, &sb) == 0)
		text = calloc(1, (size_t)sb.st_size + 1);
	if (text == NULL ||
	    pread(fd, text, (size_t)sb.st_size, 0) != (ssize_t)sb.st_size) {
		hf_log(HF_LOG_WARN,
		    "keeper: the new configuration cannot be "
		    "read; control clients are told the old one");
		free(text);
		return;
	}
	free(k->config_text);
	k->config_text = text;
	k->verbs.config_text = text;
}

static void
find_control_path(struct keeper *k)
{
	struct sockaddr_un sun = { 0 };
	socklen_t n = sizeof(sun);

	if (getsockname(HF_FD_CONTROL, (struct sockaddr *)&sun, &n) == 0 &&
	    sun.sun_family == AF_UNIX)
		memcpy(k->control_path, sun.sun_path, sizeof(sun.sun_path));
}

static int
ask_reload(void *arg, int64_t request)
{
	struct keeper *k = arg;
	struct hf_ipc r = { .a = request };

	return hf_proc_tell(&k->proc, HF_IPC_RELOAD, &r);
}

static int
ask_end(void *arg)
{
	struct keeper *k = arg;

	return hf_proc_tell(&k->proc, HF_IPC_END, NULL);
}

static void
on_record(void *arg, const struct hf_ipc *r)
{
	struct keeper *k = arg;

	switch (r->type) {
	case HF_IPC_REAP:
		reap(k, r->slot, r->inc);
		break;
	case HF_IPC_DRAIN:
	case HF_IPC_STOP:
		hf_verb_drained(&k->verbs);
		event_base_loopbreak(k->proc.base);
		break;
	case HF_IPC_CONFIG:
		if (r->a >= HF_LOG_ERROR && r->a <= HF_LOG_DEBUG)
			hf_log_set_level((enum hf_log_level)r->a);
		if (k->proc.passed >= 0)
			note_config(k, k->proc.passed);
		break;
	case HF_IPC_RELOADED:
		hf_verb_reloaded(
		    &k->verbs, r->b, r->a < 0 ? (int)r->a : 0, r->text);
		break;
	default:
		break;
	}
}

static int
on_verb(void *arg, const char *verb, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	struct keeper *k = arg;

	did_work(k);
	return hf_verb_run(&k->verbs, verb, args, reply, e);
}

/* --- main ------------------------------------------------------------- */

static int
serve(struct keeper *k, struct hf_error *e)
{
	const struct timeval every = { .tv_sec = MAINTAIN_S };
	int rc;

	find_control_path(k);
	k->verbs = (struct hf_verbs){ .keep = k->keep,
		.inspect = k->inspect,
		.shm = &k->proc.shm,
		.database = k->proc.opts->database,
		.listen = k->proc.opts->listen,
		.n_listen = k->proc.opts->n_listen,
		.store = &k->proc.store,
		.config_path = k->proc.opts->config,
		.control = k->control_path[0] == '\0' ? NULL : k->control_path,
		.ask_reload = ask_reload,
		.ask_end = ask_end,
		.arg = k,
		.base = k->proc.base };
	note_config(k, HF_FD_CONFIG);
	rc = hf_control_new(
	    &k->control, k->proc.base, HF_FD_CONTROL, on_verb, k, e);
	if (rc < 0)
		return rc;
	k->commits = -1;
	k->idle_since_us = hf_now_us();
	k->timer = event_new(k->proc.base, -1, EV_PERSIST, maintain, k);
	if (k->timer == NULL || event_add(k->timer, &every) < 0)
		return hf_fail(e, HF_ENOMEM, "event loop: out of memory");
	return hf_proc_attach(&k->proc, on_record, k, e);
}

static int
start(struct keeper *k, struct hf_error *e)
{
	struct hf_recovered rec = { 0 };
	struct hf_ipc ready = { 0 };
	int64_t began = hf_now_us();
	int rc;

	k->proc.base = event_base_new();
	if (k->proc.base == NULL)
		return hf_fail(e, HF_ENOMEM, "event loop: cannot be made");
	rc = hf_keep_open(&k->keep, &k->proc.store, e);
	if (rc == 0)
		rc = hf_inspect_open(&k->inspect, &k->proc.store, e);
	if (rc == 0)
		rc = recover(k, &rec, e);
	if (rc == 0)
		rc = hf_targets_open(&k->targets, &k->proc.shm,
		    k->proc.opts->database, k->proc.opts->first, k->proc.base,
		    e);
	if (rc == 0)
		rc = hf_inspect_disabled(k->inspect, on_disabled, k, e);
	if (rc == 0)
		rc = serve(k, e);
	if (rc < 0)
		return rc;
	ready.a = (int64_t)atomic_load(&k->proc.shm.h->boot);
	hf_log(HF_LOG_INFO,
	    "keeper: ready boot=%" PRId64 " first=%s "
	    "turns_interrupted=%" PRId64 " attempts_lost=%" PRId64
	    " open_ms=%" PRId64,
	    ready.a, k->proc.opts->first ? "yes" : "no", rec.turns_interrupted,
	    rec.attempts_lost, (hf_now_us() - began) / 1000);
	return hf_proc_tell(&k->proc, HF_IPC_READY, &ready);
}

int
hf_keeper_main(const struct hf_proc_opts *o)
{
	struct keeper k = { 0 };
	struct hf_error e = { 0 };
	struct event_base *base;
	int rc;

	rc = hf_proc_init(&k.proc, o, &e);
	if (rc == 0)
		rc = start(&k, &e);
	if (rc == 0) {
		event_base_dispatch(k.proc.base);
		checkpoint(&k, 1, true);
	} else {
		hf_log(HF_LOG_ERROR, "keeper: cannot start: %s", e.text);
	}
	hf_targets_close(&k.targets);
	if (k.control != NULL)
		hf_control_free(k.control);
	free(k.config_text);
	if (k.timer != NULL)
		event_free(k.timer);
	if (k.inspect != NULL)
		hf_inspect_close(k.inspect);
	if (k.keep != NULL)
		hf_keep_close(k.keep);
	base = k.proc.base;
	hf_proc_free(&k.proc);
	if (base != NULL)
		event_base_free(base);
	libevent_global_shutdown();
	return hf_exit_code(rc);
}
