/*
 * The master: start, signals, drain and end.  It opens no database, runs no
 * event library, starts no thread and reads no byte from outside, so that
 * there is little that could ever kill it; if it dies all children go too.
 */
#include <config.h>

#include "workers/master.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/exits.h"
#include "base/log.h"
#include "workers/confine.h"
#include "workers/master_internal.h"
#include "workers/notify.h"

#define LOCK_WAIT_MS 2000 /* the tree of a killed master needs to die */

static const struct hf_sm_state phase_table[] = {
	[HF_PHASE_KEEPER] = { "keeper",
	    HF_SM_BIT(HF_PHASE_WORKERS) | HF_SM_BIT(HF_PHASE_DRAINING) },
	[HF_PHASE_WORKERS] = { "workers",
	    HF_SM_BIT(HF_PHASE_RUNNING) | HF_SM_BIT(HF_PHASE_DRAINING) },
	[HF_PHASE_RUNNING] = { "running", HF_SM_BIT(HF_PHASE_DRAINING) },
	[HF_PHASE_DRAINING] = { "draining", HF_SM_BIT(HF_PHASE_CLOSING) },
	[HF_PHASE_CLOSING] = { "closing", HF_SM_BIT(HF_PHASE_DONE) },
	[HF_PHASE_DONE] = { "done", 0 }
};

/* --- start ------------------------------------------------------------ */

static int
add_listener(struct hf_master *m, int fd, struct hf_error *e)
{
	unsigned n = m->n_listen;

	if (fd < 0)
		return fd;
	if (n == HF_LISTEN_MAX) {
		close(fd);
		return hf_fail(e, HF_ELIMIT, "listen: more than %d sockets",
		    HF_LISTEN_MAX);
	}
	m->listen_fd[n] = fd;
	m->n_listen++;
	return hf_listen_name(fd, m->listen_name[n], e);
}

/* Sockets that the service manager opened come first; a kind that it brought
 * none of is opened as configured. */
static int
open_sockets(struct hf_master *m, struct hf_error *e)
{
	const struct hf_conf_gateway *g = &m->first->gateway;
	unsigned n = hf_notify_listen_fds();
	bool brought;
	int rc = 0;

	for (unsigned i = 0; i < n && rc == 0; i++) {
		int fd = HF_LISTEN_FDS_START + (int)i;
		bool is_control;

		rc = hf_listen_adopt(fd, &is_control, e);
		if (rc == 0 && is_control && m->control_fd < 0)
			m->control_fd = fd;
		else if (rc == 0 && !is_control)
			rc = add_listener(m, fd, e);
	}
	if (rc < 0)
		return rc;
	brought = m->n_listen > 0;
	for (unsigned i = 0; i < g->n_listen && !brought; i++) {
		rc = add_listener(m, hf_listen_tcp(g->listen[i], e), e);
		if (rc < 0)
			return rc;
	}
	if (m->control_fd >= 0)
		return 0;
	m->control_fd = hf_listen_control(g->control, e);
	m->control_made = m->control_fd >= 0;
	return m->control_made ? 0 : m->control_fd;
}

static int
open_signals(struct hf_master *m, struct hf_error *e)
{
	static const int wanted[] = { SIGCHLD, SIGTERM, SIGINT, SIGQUIT, SIGHUP,
		SIGUSR1, SIGUSR2 };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < hf_countof(wanted); i++)
		sigaddset(&set, wanted[i]);
	signal(SIGPIPE, SIG_IGN);
	/* Ignored by our parent, it would leave us no deaths to wait for. */
	signal(SIGCHLD, SIG_DFL);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return hf_fail_errno(e, "sigprocmask");
	m->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (m->signal_fd < 0)
		return hf_fail_errno(e, "signalfd");
	return 0;
}

static int
set_up(struct hf_master *m, struct hf_error *e)
{
	const struct hf_conf_gateway *g;
	int rc;

	rc = hf_generation_load(m, &m->cur, e);
	if (rc < 0)
		return rc;
	m->first = m->cur.conf;
	g = &m->first->gateway;
	hf_log_set_level((enum hf_log_level)g->log_level);
	rc = hf_confine(e);
	if (rc < 0)
		return rc;
	rc = open_signals(m, e);
	if (rc < 0)
		return rc;
	m->lock_fd = hf_lock_database(g->database, LOCK_WAIT_MS, e);
	if (m->lock_fd < 0)
		return m->lock_fd;
	rc = open_sockets(m, e);
	if (rc < 0)
		return rc;
	rc = hf_shm_create(&m->shm, &m->shm_fd, e);
	if (rc < 0)
		return rc;
	atomic_store(&m->shm.h->config_generation, m->cur.number);
	rc = hf_inherit_open(m, e);
	if (rc < 0)
		return rc;
	m->watchdog_us = hf_notify_watchdog_us() / 2;
	return 0;
}

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void
close_listeners(struct hf_master *m)
{
	for (unsigned i = 0; i < m->n_listen; i++)
		close_fd(&m->listen_fd[i]);
}

static void
tear_down(struct hf_master *m)
{
	close_listeners(m);
	/* We still hold the lock: the path is ours. */
	if (m->control_made)
		unlink(m->first->gateway.control);
	close_fd(&m->control_fd);
	close_fd(&m->signal_fd);
	hf_inherit_close(m);
	close_fd(&m->shm_fd);
	hf_shm_unmap(&m->shm);
	close_fd(&m->lock_fd);
	hf_generation_free(m, &m->next);
	hf_generation_free(m, &m->cur);
	if (m->first != NULL)
		hf_conf_free(m->first);
}

/* --- the end ---------------------------------------------------------- */

static void
begin_end(struct hf_master *m, bool at_once)
{
	int64_t ms = m->cur.conf->gateway.drain_ms;

	if (m->phase.cur < HF_PHASE_DRAINING) {
		hf_notify("STOPPING=1\nSTATUS=%s",
		    at_once ? "Stopping." : "Draining.");
		hf_log(HF_LOG_INFO, "master: %s workers=%u drain_ms=%" PRId64,
		    at_once ? "stopping" : "draining", hf_children_alive(m),
		    at_once ? 0 : ms);
		hf_sm_move(&m->phase, HF_PHASE_DRAINING);
		close_listeners(m);
		hf_reload_cancel(m);
	} else if (!at_once) {
		return;
	}
	for (unsigned i = 1; i < HF_SHM_SLOTS; i++) {
		if (at_once)
			hf_child_stop(m, i);
		else if (m->child[i].life.cur != HF_LIFE_DRAINING)
			hf_child_drain(m, i, ms);
	}
}

void
hf_master_fail(struct hf_master *m, int exit_code)
{
	if (m->exit_code == 0)
		m->exit_code = exit_code == 0 ? HF_EXIT_FAILED : exit_code;
	begin_end(m, true);
}

void
hf_master_drain(struct hf_master *m)
{
	hf_log(HF_LOG_INFO, "master: asked to drain over the control socket");
	begin_end(m, false);
}

/* --- phases ----------------------------------------------------------- */

static void
start_workers(struct hf_master *m)
{
	hf_sm_move(&m->phase, HF_PHASE_WORKERS);
	for (unsigned i = 0; i < m->cur.workers; i++)
		hf_child_start(m, hf_child_slot(m), m->cur.number);
}

static void
now_running(struct hf_master *m)
{
	hf_sm_move(&m->phase, HF_PHASE_RUNNING);
	for (unsigned i = 0; i < m->n_listen; i++)
		hf_log(HF_LOG_INFO, "listen: ready addr=%s", m->listen_name[i]);
	hf_log(HF_LOG_INFO, "master: ready workers=%u", m->cur.workers);
	hf_notify("READY=1\nSTATUS=Serving.");
}

/* Look at what happened and move on; called after every event. */
static void
step(struct hf_master *m)
{
	switch ((enum hf_phase)m->phase.cur) {
	case HF_PHASE_KEEPER:
		if (m->child[HF_SHM_KEEPER].life.cur == HF_LIFE_READY)
			start_workers(m);
		break;
	case HF_PHASE_WORKERS:
		if (hf_children_count(m, m->cur.number, HF_LIFE_READY) ==
		    m->cur.workers)
			now_running(m);
		break;
	case HF_PHASE_RUNNING:
		hf_reload_step(m);
		break;
	case HF_PHASE_DRAINING:
		if (hf_children_alive(m) > 0)
			break;
		hf_child_stop(m, HF_SHM_KEEPER);
		hf_sm_move(&m->phase, HF_PHASE_CLOSING);
		/* fall through */
	case HF_PHASE_CLOSING:
		if (!hf_child_lives(&m->child[HF_SHM_KEEPER]))
			hf_sm_move(&m->phase, HF_PHASE_DONE);
		break;
	case HF_PHASE_DONE:
		break;
	}
}

static void
handle_signals(struct hf_master *m)
{
	struct signalfd_siginfo si;

	while (read(m->signal_fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		switch (si.ssi_signo) {
		case SIGTERM:
		case SIGINT:
			hf_log(HF_LOG_INFO, "master: signal=%u", si.ssi_signo);
			/* Asked twice: no more waiting. */
			begin_end(m, m->phase.cur >= HF_PHASE_DRAINING);
			break;
		case SIGQUIT:
			hf_log(HF_LOG_INFO, "master: signal=%u", si.ssi_signo);
			begin_end(m, true);
			break;
		case SIGHUP:
			m->reload_wanted = m->phase.cur < HF_PHASE_DRAINING;
			break;
		default:
			break;
		}
	}
	hf_children_reap(m);
}

/* --- loop ------------------------------------------------------------- */

/* The watchdog of the service manager is fed by this loop, which itself
 * replaces children that stand. */
static int64_t
feed_watchdog(struct hf_master *m, int64_t now)
{
	if (m->watchdog_us == 0)
		return INT64_MAX;
	if (now >= m->watchdog_next_us) {
		hf_notify("WATCHDOG=1");
		m->watchdog_next_us = now + m->watchdog_us;
	}
	return m->watchdog_next_us;
}

static void
wait_events(struct hf_master *m, int64_t until_us)
{
	struct pollfd p[1 + HF_SHM_SLOTS];
	unsigned slot[1 + HF_SHM_SLOTS], n = 0;
	int64_t us = until_us - hf_now_us();
	struct timespec ts;

	p[n++] = (struct pollfd){ .fd = m->signal_fd, .events = POLLIN };
	for (unsigned i = 0; i < HF_SHM_SLOTS; i++) {
		if (m->child[i].fd < 0)
			continue;
		slot[n] = i;
		p[n++] =
		    (struct pollfd){ .fd = m->child[i].fd, .events = POLLIN };
	}
	if (us < 0)
		us = 0;
	ts.tv_sec = (time_t)(us / 1000000);
	ts.tv_nsec = (long)(us % 1000000) * 1000;
	if (ppoll(p, n, until_us == INT64_MAX ? NULL : &ts, NULL) < 0) {
		HF_CHECK(errno == EINTR || errno == ENOMEM);
		return;
	}
	for (unsigned i = 1; i < n; i++)
		if (p[i].revents != 0)
			hf_child_receive(m, slot[i]);
	if (p[0].revents != 0)
		handle_signals(m);
}

static void
run(struct hf_master *m)
{
	hf_child_start(m, HF_SHM_KEEPER, m->cur.number);
	for (;;) {
		int64_t now = hf_now_us(), next, dog;

		step(m);
		if (m->phase.cur == HF_PHASE_DONE)
			return;
		next = hf_children_tick(m, now);
		dog = feed_watchdog(m, now);
		wait_events(m, dog < next ? dog : next);
	}
}

int
hf_master_run(const char *conf_path)
{
	struct hf_master *m = hf_xcalloc(1, sizeof(*m));
	struct hf_error e = { 0 };
	int rc;

	hf_log_init("master", HF_LOG_INFO);
	m->conf_path = conf_path;
	m->shm_fd = m->lock_fd = m->control_fd = m->signal_fd = -1;
	m->hold_fd = -1;
	m->cur.fd = m->next.fd = -1;
	for (unsigned i = 0; i < HF_SHM_SLOTS; i++)
		m->shm.wake_fd[i] = -1;
	hf_sm_init(
	    &m->phase, phase_table, hf_countof(phase_table), HF_PHASE_KEEPER);
	hf_children_init(m);
	rc = set_up(m, &e);
	if (rc == 0) {
		hf_log(HF_LOG_INFO,
		    "master: started version=%s config=%s "
		    "database=%s",
		    PACKAGE_VERSION, conf_path, m->first->gateway.database);
		run(m);
		rc = m->exit_code;
	} else {
		hf_log(HF_LOG_ERROR, "master: cannot start: %s", e.text);
		rc = hf_exit_code(rc);
	}
	tear_down(m);
	if (m->phase.cur == HF_PHASE_DONE)
		hf_log(HF_LOG_INFO, "master: stopped exit=%d", rc);
	free(m);
	return rc;
}
