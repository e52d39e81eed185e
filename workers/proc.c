/*
 * Common start of keeper and worker.
 */
#include <config.h>

#include "workers/proc.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/log.h"
#include "workers/confine.h"

static struct hf_slot *panic_slot;

/* Runs in a process that is about to abort: plain stores only. */
static void
keep_panic(const char *text)
{
	size_t i = 0;

	if (panic_slot == NULL)
		return;
	for (; text[i] != '\0' && i < sizeof(panic_slot->panic) - 1; i++)
		panic_slot->panic[i] = text[i];
	panic_slot->panic[i] = '\0';
}

static void
event_log(int severity, const char *msg)
{
	hf_log(severity >= EVENT_LOG_WARN ? HF_LOG_WARN : HF_LOG_DEBUG,
	    "event: %s", msg);
}

static void
event_fatal(int err)
{
	(void)err;
	hf_check_failed("libevent cannot go on", __FILE__, __LINE__);
}

/* The terminal and the service manager signal whole groups; what we do is
 * told by the master alone. */
static void
ignore_signals(void)
{
	static const int sigs[] = { SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT,
		SIGUSR1, SIGUSR2 };

	for (size_t i = 0; i < hf_countof(sigs); i++)
		signal(sigs[i], SIG_IGN);
}

static int
read_config(struct hf_proc *r, struct hf_error *e)
{
	struct stat sb;
	char *text;
	ssize_t n;
	int rc;

	if (fstat(HF_FD_CONFIG, &sb) < 0)
		return hf_fail_errno(e, "configuration");
	text = malloc((size_t)sb.st_size + 1);
	if (text == NULL)
		return hf_fail(e, HF_ENOMEM, "configuration: out of memory");
	n = pread(HF_FD_CONFIG, text, (size_t)sb.st_size, 0);
	if (n != (ssize_t)sb.st_size) {
		free(text);
		return hf_fail(e, HF_EIO, "configuration: cannot be read");
	}
	text[n] = '\0';
	rc = hf_conf_parse(r->opts->config, text, &r->conf, e);
	free(text);
	return rc;
}

static int
find_credential(struct hf_proc *r, struct hf_error *e)
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	struct hf_buf path;
	size_t size;

	if (r->opts->key_credential == NULL)
		return 0;
	if (dir == NULL)
		return hf_fail(e, HF_ECONFIG,
		    "master_key_credential: the "
		    "service manager passed no credentials");
	hf_buf_init(&path, 4096);
	hf_buf_printf(&path, "%s/%s", dir, r->opts->key_credential);
	if (!hf_buf_ok(&path)) {
		hf_buf_free(&path);
		return hf_fail(e, HF_ECONFIG,
		    "master_key_credential: path "
		    "too long");
	}
	r->credential = hf_buf_take(&path, &size);
	return 0;
}

int
hf_proc_init(
    struct hf_proc *r, const struct hf_proc_opts *o, struct hf_error *e)
{
	int rc;

	memset(r, 0, sizeof(*r));
	r->opts = o;
	hf_log_init(o->keeper ? "keeper" : "worker", HF_LOG_INFO);
	ignore_signals();
	rc = hf_confine(e);
	if (rc == 0)
		rc = hf_shm_map(&r->shm, HF_FD_SHM, o->slot, e);
	if (rc < 0)
		return rc;
	r->inc = hf_shm_self_inc(&r->shm);
	if (o->hold) {
		rc = hf_hold_map(&r->hold, HF_FD_HOLD, r->inc, e);
		if (rc < 0)
			return rc;
	}
	panic_slot = &r->shm.h->slot[o->slot];
	hf_check_set_hook(keep_panic);
	event_set_log_callback(event_log);
	event_set_fatal_callback(event_fatal);
	rc = read_config(r, e);
	if (rc == 0)
		rc = find_credential(r, e);
	if (rc < 0)
		return rc;
	hf_log_set_level((enum hf_log_level)r->conf->gateway.log_level);
	r->store = (struct hf_store_conf){ .path = o->database,
		.key_file = o->key_file,
		.key_credential = r->credential,
		.sync_full = r->conf->gateway.synchronous == HF_SYNC_FULL,
		.queue_limit = (unsigned)r->conf->gateway.queue_limit,
		.shm = &r->shm,
		.hold = &r->hold };
	return 0;
}

void
hf_proc_free(struct hf_proc *r)
{
	if (r->parent_event != NULL)
		event_free(r->parent_event);
	if (r->beat_event != NULL)
		event_free(r->beat_event);
	if (r->conf != NULL)
		hf_conf_free(r->conf);
	free(r->credential);
	panic_slot = NULL;
	hf_check_set_hook(NULL);
	hf_hold_unmap(&r->hold);
	if (r->shm.h != NULL)
		hf_shm_unmap(&r->shm);
}

/* --- on the loop ------------------------------------------------------ */

static void
on_parent(evutil_socket_t fd, short what, void *arg)
{
	static struct hf_log_limit limit;
	struct hf_proc *r = arg;
	struct hf_ipc rec;
	int rc;

	(void)what;
	while ((rc = hf_ipc_recv_fd(fd, &rec, &r->passed)) != HF_EBUSY) {
		if (rc == 1)
			r->record(r->arg, &rec);
		if (rc == 1 && r->passed >= 0)
			close(r->passed);
		if (rc == 1)
			continue;
		if (rc == HF_EPROTO)
			hf_log_limited(&limit, 1000, HF_LOG_WARN,
			    "proc: bad record of the master dropped");
		else
			_exit(1); /* the master is gone */
	}
}

static void
on_beat(evutil_socket_t fd, short what, void *arg)
{
	struct hf_proc *r = arg;

	(void)fd;
	(void)what;
	atomic_fetch_add_explicit(
	    &r->shm.h->slot[r->shm.self].beat_loop, 1, memory_order_relaxed);
	hf_count(&r->shm, HF_C_loop_beats, 1);
}

int
hf_proc_attach(struct hf_proc *r,
    void (*record)(void *arg, const struct hf_ipc *r), void *arg,
    struct hf_error *e)
{
	int ms = r->conf->gateway.heartbeat_ms / 8;
	struct timeval every;

	ms = ms < 10 ? 10 : ms > 1000 ? 1000 : ms;
	every.tv_sec = ms / 1000;
	every.tv_usec = ms % 1000 * 1000;
	r->record = record;
	r->arg = arg;
	r->parent_event = event_new(
	    r->base, HF_FD_PARENT, EV_READ | EV_PERSIST, on_parent, r);
	r->beat_event = event_new(r->base, -1, EV_PERSIST, on_beat, r);
	if (r->parent_event == NULL || r->beat_event == NULL ||
	    event_add(r->parent_event, NULL) < 0 ||
	    event_add(r->beat_event, &every) < 0)
		return hf_fail(e, HF_ENOMEM, "event loop: out of memory");
	on_beat(-1, 0, r);
	return 0;
}

int
hf_proc_tell(
    const struct hf_proc *r, enum hf_ipc_type type, const struct hf_ipc *about)
{
	struct hf_ipc rec = { 0 };

	if (about != NULL)
		rec = *about;
	rec.type = type;
	rec.sender = r->inc;
	return hf_ipc_send(HF_FD_PARENT, &rec);
}
