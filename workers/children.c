/*
 * One child's life as the master sees it: start, ready, heartbeat, and the
 * end when it is asked for.  Its death is in deaths.c, its connections in
 * inherit.c, the restart policy in supervise.c, fork and exec in spawn.c.
 */
#include <config.h>

#include "workers/master_internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "workers/ipc.h"
#include "workers/spawn.h"

#define MS ((int64_t)1000)
#define STOP_US (2000 * MS)	    /* an orderly end may take */
#define STOP_KEEPER_US (10000 * MS) /* it checkpoints */
#define ABORT_US (1000 * MS)	    /* SIGABRT, then SIGKILL */
#define START_US                                           \
	(60000 * MS) /* a worker's start; the keeper's may \
		      * take as long as a migration does */
/* The keeper may wait for the writer mutex in between. */
#define KEEPER_GRACE_US (10000 * MS)
/* An idle store thread moves its heartbeat once a second or so. */
#define STORE_LEAST_US (3000 * MS)
#define NEVER INT64_MAX

static const struct hf_sm_state life_table[] = {
	[HF_LIFE_NONE] = { "none", HF_SM_BIT(HF_LIFE_STARTING) },
	[HF_LIFE_WAITING] = { "waiting",
	    HF_SM_BIT(HF_LIFE_STARTING) | HF_SM_BIT(HF_LIFE_NONE) },
	[HF_LIFE_STARTING] = { "starting",
	    HF_SM_BIT(HF_LIFE_READY) | HF_SM_BIT(HF_LIFE_WAITING) |
		HF_SM_BIT(HF_LIFE_STOPPING) | HF_SM_BIT(HF_LIFE_NONE) },
	[HF_LIFE_READY] = { "ready",
	    HF_SM_BIT(HF_LIFE_DRAINING) | HF_SM_BIT(HF_LIFE_STOPPING) |
		HF_SM_BIT(HF_LIFE_WAITING) | HF_SM_BIT(HF_LIFE_NONE) },
	[HF_LIFE_DRAINING] = { "draining",
	    HF_SM_BIT(HF_LIFE_STOPPING) | HF_SM_BIT(HF_LIFE_NONE) },
	[HF_LIFE_STOPPING] = { "stopping", HF_SM_BIT(HF_LIFE_NONE) }
};

const char *
hf_child_role(unsigned slot)
{
	return slot == HF_SHM_KEEPER ? "keeper" : "worker";
}

void
hf_children_init(struct hf_master *m)
{
	for (unsigned i = 0; i < HF_SHM_SLOTS; i++) {
		hf_sm_init(&m->child[i].life, life_table,
		    hf_countof(life_table), HF_LIFE_NONE);
		m->child[i].fd = -1;
	}
}

bool
hf_child_lives(const struct hf_child *c)
{
	return c->life.cur != HF_LIFE_NONE && c->life.cur != HF_LIFE_WAITING;
}

unsigned
hf_children_count(
    const struct hf_master *m, unsigned generation, enum hf_life life)
{
	unsigned n = 0;

	for (unsigned i = 1; i < HF_SHM_SLOTS; i++)
		if (m->child[i].life.cur == (unsigned)life &&
		    (generation == 0 || m->child[i].generation == generation))
			n++;
	return n;
}

unsigned
hf_children_alive(const struct hf_master *m)
{
	unsigned n = 0;

	for (unsigned i = 1; i < HF_SHM_SLOTS; i++)
		if (hf_child_lives(&m->child[i]))
			n++;
	return n;
}

unsigned
hf_child_slot(const struct hf_master *m)
{
	for (unsigned i = 1; i < HF_SHM_SLOTS; i++)
		if (m->child[i].life.cur == HF_LIFE_NONE)
			return i;
	return 0;
}

static void
set_state(struct hf_master *m, unsigned slot, enum hf_slot_state s)
{
	atomic_store(&m->shm.h->slot[slot].state, (uint32_t)s);
}

/* --- start ------------------------------------------------------------ */

static char *
text(const char *z)
{
	/* execv() takes char *const[] but changes nothing. */
	return (char *)(uintptr_t)z;
}

static pid_t
exec_child(struct hf_master *m, unsigned slot, int peer,
    const struct hf_generation *g, struct hf_error *e)
{
	const struct hf_conf_gateway *f = &m->first->gateway;
	bool keeper = slot == HF_SHM_KEEPER;
	char *argv[33 + 2 * HF_LISTEN_MAX], number[12];
	int fd[HF_SPAWN_FDS];
	unsigned n = 0, k = 0;

	snprintf(number, sizeof(number), "%u", slot);
	argv[n++] = text(keeper ? "holdfast: keeper" : "holdfast: worker");
	argv[n++] = text("--role");
	argv[n++] = text(hf_child_role(slot));
	argv[n++] = text("--slot");
	argv[n++] = number;
	argv[n++] = text("--config");
	argv[n++] = text(m->conf_path);
	argv[n++] = text("--database");
	argv[n++] = f->database;
	if (f->master_key_credential != NULL) {
		argv[n++] = text("--key-credential");
		argv[n++] = f->master_key_credential;
	} else if (f->master_key_file != NULL) {
		argv[n++] = text("--key-file");
		argv[n++] = f->master_key_file;
	}
	if (keeper && m->boot == 0)
		argv[n++] = text("--first");
	if (m->handover != NULL)
		argv[n++] = text("--hold");
	for (unsigned i = 0; i < m->n_listen; i++) {
		argv[n++] = text("--listen");
		argv[n++] = m->listen_name[i];
	}
	argv[n] = NULL;

	fd[k++] = m->shm_fd;
	fd[k++] = peer;
	fd[k++] = g->fd;
	fd[k++] = keeper ? m->control_fd : -1;
	fd[k++] = m->lock_fd;
	fd[k++] = m->hold_fd;
	for (unsigned i = 0; i < HF_SHM_SLOTS; i++)
		fd[k++] = m->shm.wake_fd[i];
	/* The keeper knows the listeners by name only: it must not keep them
	 * open when the service stops. */
	for (unsigned i = 0; i < m->n_listen && !keeper; i++)
		fd[k++] = m->listen_fd[i];
	return hf_spawn(argv, fd, k, e);
}

static void
prepare(struct hf_master *m, unsigned slot, unsigned generation)
{
	struct hf_child *c = &m->child[slot];
	struct hf_slot *sl = &m->shm.h->slot[slot];

	hf_sm_move(&c->life, HF_LIFE_STARTING);
	c->inc = m->boot << 32 | ++m->spawns;
	c->generation = generation;
	c->started_us = hf_now_us();
	c->deadline_us = c->abort_us = 0;
	c->was_ready = c->killed = false;
	hf_beat_reset(&c->loop);
	hf_beat_reset(&c->store);
	memset(sl->panic, 0, sizeof(sl->panic));
	atomic_store(&sl->beat_loop, 0);
	atomic_store(&sl->beat_store, 0);
	atomic_store(&sl->worked, 0);
	set_state(m, slot, HF_SLOT_STARTING);
	atomic_store(&sl->inc, c->inc);
}

void
hf_child_start(struct hf_master *m, unsigned slot, unsigned generation)
{
	struct hf_child *c = &m->child[slot];
	const struct hf_generation *g = hf_generation_of(m, generation);
	struct hf_error e = { 0 };
	int pair[2] = { -1, -1 };

	HF_CHECK(g != NULL);
	prepare(m, slot, generation);
	c->pid = -1;
	if (hf_ipc_pair(pair, &e) == 0)
		c->pid = exec_child(m, slot, pair[1], g, &e);
	if (pair[1] >= 0)
		close(pair[1]);
	if (c->pid > 0) {
		c->fd = pair[0];
		atomic_store(&m->shm.h->slot[slot].pid, (int32_t)c->pid);
		hf_log(HF_LOG_INFO,
		    "master: child started role=%s slot=%u "
		    "pid=%d inc=%" PRIu64 " generation=%u",
		    hf_child_role(slot), slot, (int)c->pid, c->inc, generation);
		return;
	}
	if (pair[0] >= 0)
		close(pair[0]);
	hf_log(HF_LOG_ERROR,
	    "master: cannot start a child role=%s slot=%u "
	    "error=\"%s\"",
	    hf_child_role(slot), slot, e.text);
	hf_shm_retire(&m->shm, slot);
	hf_sm_move(&c->life, HF_LIFE_WAITING);
	c->restart_us = hf_now_us() + 1000 * MS;
}

/* --- records ---------------------------------------------------------- */

static void
became_ready(struct hf_master *m, unsigned slot, const struct hf_ipc *r)
{
	struct hf_child *c = &m->child[slot];

	if (c->life.cur != HF_LIFE_STARTING)
		return;
	if (slot == HF_SHM_KEEPER && m->boot == 0) {
		if (r->a <= 0 || r->a > INT32_MAX) {
			hf_log(HF_LOG_ERROR,
			    "master: keeper's boot counter "
			    "is out of range boot=%" PRId64,
			    r->a);
			hf_master_fail(m, 7);
			return;
		}
		m->boot = (uint64_t)r->a;
	}
	hf_sm_move(&c->life, HF_LIFE_READY);
	c->was_ready = true;
	set_state(m, slot, HF_SLOT_READY);
	hf_log(HF_LOG_INFO,
	    "master: child ready role=%s slot=%u pid=%d "
	    "start_ms=%" PRId64,
	    hf_child_role(slot), slot, (int)c->pid,
	    (hf_now_us() - c->started_us) / MS);
}

/* 'fd' came with it (-1: none); what is not taken is closed. */
static void
handle(struct hf_master *m, unsigned slot, const struct hf_ipc *r, int fd)
{
	if (r->sender == m->child[slot].inc &&
	    (r->type == HF_IPC_HELD || r->type == HF_IPC_RELEASED)) {
		hf_inherit_record(m, slot, r, fd);
		return;
	}
	if (fd >= 0)
		close(fd);
	if (r->sender != m->child[slot].inc) {
		hf_log(HF_LOG_WARN,
		    "master: record of an old incarnation "
		    "dropped slot=%u type=%u",
		    slot, r->type);
		return;
	}
	switch (r->type) {
	case HF_IPC_READY:
		became_ready(m, slot, r);
		break;
	case HF_IPC_REAPED:
		hf_log(r->a > 0 ? HF_LOG_INFO : HF_LOG_DEBUG,
		    "master: leases of the dead settled "
		    "slot=%u inc=%" PRIu64 " turns=%" PRId64,
		    r->slot, r->inc, r->a);
		break;
	case HF_IPC_RELOAD:
		if (slot == HF_SHM_KEEPER)
			hf_reload_ask(m, r->a);
		break;
	case HF_IPC_END:
		if (slot == HF_SHM_KEEPER)
			hf_master_drain(m);
		break;
	default:
		hf_log(HF_LOG_WARN,
		    "master: unexpected record dropped "
		    "slot=%u type=%u",
		    slot, r->type);
		break;
	}
}

void
hf_child_receive(struct hf_master *m, unsigned slot)
{
	static struct hf_log_limit limit;
	struct hf_child *c = &m->child[slot];
	struct hf_ipc r;
	int fd;

	while (c->fd >= 0) {
		int rc = hf_ipc_recv_fd(c->fd, &r, &fd);

		if (rc == 1) {
			handle(m, slot, &r, fd);
		} else if (rc == HF_EPROTO) {
			hf_log_limited(&limit, 1000, HF_LOG_WARN,
			    "master: bad record dropped slot=%u", slot);
		} else if (rc == HF_EBUSY) {
			return;
		} else {
			/* It is dying; waitpid() tells how.  If it only shut
			 * its end it is killed a second from now. */
			close(c->fd);
			c->fd = -1;
			if (c->abort_us == 0)
				c->abort_us = hf_now_us();
		}
	}
}

static void
tell(struct hf_master *m, unsigned slot, enum hf_ipc_type type)
{
	struct hf_child *c = &m->child[slot];
	struct hf_ipc r = { .type = type, .slot = slot, .inc = c->inc };

	/* A child that does not read is stopped by its deadline. */
	if (c->fd >= 0 && hf_ipc_send(c->fd, &r) < 0)
		hf_log(HF_LOG_WARN,
		    "master: child does not listen slot=%u "
		    "pid=%d",
		    slot, (int)c->pid);
}

void
hf_keeper_reap(struct hf_master *m, unsigned slot, uint64_t inc)
{
	const struct hf_child *k = &m->child[HF_SHM_KEEPER];
	struct hf_ipc r = { .type = HF_IPC_REAP, .slot = slot, .inc = inc };

	/* A keeper that starts later looks for all the dead itself. */
	if (!hf_child_lives(k) || k->fd < 0)
		return;
	if (hf_ipc_send(k->fd, &r) < 0)
		m->reap_all = true;
}

void
hf_keeper_config(struct hf_master *m)
{
	const struct hf_child *k = &m->child[HF_SHM_KEEPER];
	struct hf_ipc r = { .type = HF_IPC_CONFIG,
		.a = m->cur.conf->gateway.log_level,
		.b = m->cur.number };

	if (k->fd >= 0 && hf_ipc_send_fd(k->fd, &r, m->cur.fd) < 0)
		hf_log(HF_LOG_WARN,
		    "master: keeper missed a new "
		    "configuration generation=%u",
		    m->cur.number);
}

void
hf_keeper_reloaded(
    struct hf_master *m, int64_t request, int rc, const char *text)
{
	const struct hf_child *k = &m->child[HF_SHM_KEEPER];
	struct hf_ipc r = { .type = HF_IPC_RELOADED, .a = rc, .b = request };

	snprintf(r.text, sizeof(r.text), "%s", text);
	if (k->fd >= 0 && hf_ipc_send(k->fd, &r) < 0)
		hf_log(HF_LOG_WARN, "master: keeper missed how a reload went");
}

/* --- the end, asked for ----------------------------------------------- */

void
hf_child_drain(struct hf_master *m, unsigned slot, int64_t ms)
{
	struct hf_child *c = &m->child[slot];

	if (c->life.cur != HF_LIFE_READY) {
		hf_child_stop(m, slot);
		return;
	}
	hf_sm_move(&c->life, HF_LIFE_DRAINING);
	c->deadline_us = hf_now_us() + ms * MS;
	set_state(m, slot, HF_SLOT_DRAINING);
	tell(m, slot, HF_IPC_DRAIN);
}

void
hf_child_stop(struct hf_master *m, unsigned slot)
{
	struct hf_child *c = &m->child[slot];

	if (c->life.cur == HF_LIFE_WAITING)
		hf_sm_move(&c->life, HF_LIFE_NONE);
	if (c->life.cur == HF_LIFE_NONE || c->life.cur == HF_LIFE_STOPPING)
		return;
	hf_sm_move(&c->life, HF_LIFE_STOPPING);
	c->deadline_us =
	    hf_now_us() + (slot == HF_SHM_KEEPER ? STOP_KEEPER_US : STOP_US);
	set_state(m, slot, HF_SLOT_DRAINING);
	tell(m, slot, HF_IPC_STOP);
}

/* --- time ------------------------------------------------------------- */

static void
send_signal(struct hf_master *m, unsigned slot, int sig, const char *why)
{
	struct hf_child *c = &m->child[slot];

	c->killed = true;
	hf_log(HF_LOG_WARN,
	    "master: signal sent role=%s slot=%u pid=%d "
	    "signal=%d reason=%s",
	    hf_child_role(slot), slot, (int)c->pid, sig, why);
	kill(c->pid, sig);
}

static int64_t
look_interval(const struct hf_master *m)
{
	int64_t us = m->cur.conf->gateway.heartbeat_ms * MS / 8;

	return us < 20 * MS ? 20 * MS : us > 1000 * MS ? 1000 * MS : us;
}

bool
hf_child_slow(const struct hf_master *m, unsigned slot)
{
	return m->child[slot].loop.stale_us > 2 * look_interval(m);
}

/* Stopped by a signal, a process takes no other than SIGKILL. */
static bool
is_stopped(pid_t pid)
{
	char path[32], text[512];
	const char *p;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	p = strrchr(text, ')'); /* the name may hold anything */
	return p != NULL && strncmp(p, ") T", 3) == 0;
}

static void
watch_beats(struct hf_master *m, unsigned slot, int64_t now)
{
	struct hf_child *c = &m->child[slot];
	const struct hf_slot *sl = &m->shm.h->slot[slot];
	int64_t limit = m->cur.conf->gateway.heartbeat_ms * MS;
	int64_t step = 2 * look_interval(m);
	uint64_t store = atomic_load(&sl->beat_store);
	const char *why = NULL;

	if (slot == HF_SHM_KEEPER)
		limit += KEEPER_GRACE_US;
	if (hf_beat_stale(
		&c->loop, atomic_load(&sl->beat_loop), now, step, limit))
		why = "loop_stands";
	else if (slot != HF_SHM_KEEPER &&
	    hf_beat_stale(&c->store, store, now, step,
		limit < STORE_LEAST_US ? STORE_LEAST_US : limit))
		why = "store_stands";
	if (why == NULL)
		return;
	send_signal(m, slot, is_stopped(c->pid) ? SIGKILL : SIGABRT, why);
	c->abort_us = now;
}

/* One living child: what is due now; returns when the next thing is. */
static int64_t
tick_living(struct hf_master *m, unsigned slot, int64_t now)
{
	struct hf_child *c = &m->child[slot];

	if (c->abort_us != 0) {
		if (now >= c->abort_us + ABORT_US) {
			send_signal(m, slot, SIGKILL, "does_not_end");
			c->abort_us = now;
		}
		return c->abort_us + ABORT_US;
	}
	if (c->deadline_us != 0 && now >= c->deadline_us) {
		if (c->life.cur == HF_LIFE_DRAINING) {
			hf_log(HF_LOG_WARN,
			    "master: drain took too long "
			    "slot=%u pid=%d",
			    slot, (int)c->pid);
			hf_child_stop(m, slot);
		} else {
			send_signal(m, slot, SIGKILL, "does_not_stop");
			c->deadline_us = now + STOP_US;
		}
	}
	if (c->life.cur == HF_LIFE_STARTING) {
		if (slot == HF_SHM_KEEPER)
			return NEVER;
		if (now < c->started_us + START_US)
			return c->started_us + START_US;
		send_signal(m, slot, SIGABRT, "not_ready_in_time");
		c->abort_us = now;
		return now + ABORT_US;
	}
	if (c->life.cur == HF_LIFE_STOPPING)
		return c->deadline_us;
	watch_beats(m, slot, now);
	now += look_interval(m);
	return c->deadline_us != 0 && c->deadline_us < now ? c->deadline_us :
							     now;
}

int64_t
hf_children_tick(struct hf_master *m, int64_t now_us)
{
	/* Connections that wait before processes that start. */
	int64_t next = hf_inherit_tick(m, now_us), at;

	if (m->reap_all) {
		m->reap_all = false;
		hf_keeper_reap(m, 0, 0);
		if (m->reap_all && now_us + 100 * MS < next)
			next = now_us + 100 * MS;
	}
	for (unsigned i = 0; i < HF_SHM_SLOTS; i++) {
		struct hf_child *c = &m->child[i];

		if (c->life.cur == HF_LIFE_WAITING && now_us >= c->restart_us)
			hf_child_start(m, i,
			    i == HF_SHM_KEEPER ? m->cur.number : c->generation);
		if (c->life.cur == HF_LIFE_WAITING)
			at = c->restart_us;
		else if (hf_child_lives(c))
			at = tick_living(m, i, now_us);
		else
			continue;
		if (at < next)
			next = at;
	}
	return next;
}
