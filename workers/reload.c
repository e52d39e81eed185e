/*
 * Configuration generations: the text is read and checked by the master,
 * frozen in a memfd, and read by the children of that generation.  A reload
 * starts a whole new generation of workers beside the old one and drains the
 * old one only when the new one is ready.
 */
#include <config.h>

#include "workers/master_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "workers/notify.h"

#define CONFIG_MAX ((size_t)4 * 1024 * 1024)

static int
read_file(const char *path, struct hf_buf *out, struct hf_error *e)
{
	char part[8192];
	ssize_t n;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		hf_fail_errno(e, "%s", path);
		return HF_ECONFIG;
	}
	while ((n = read(fd, part, sizeof(part))) > 0)
		hf_buf_put(out, part, (size_t)n);
	if (n < 0)
		hf_fail_errno(e, "%s", path);
	close(fd);
	if (n < 0)
		return HF_ECONFIG;
	if (!hf_buf_ok(out))
		return hf_fail(e, HF_ECONFIG, "%s: larger than %zu bytes", path,
		    CONFIG_MAX);
	if (out->size > 0 && memchr(out->data, '\0', out->size) != NULL)
		return hf_fail(e, HF_ECONFIG, "%s: holds a NUL byte", path);
	return 0;
}

static int
freeze(const struct hf_buf *text, struct hf_error *e)
{
	int fd =
	    memfd_create("holdfast-config", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return hf_fail_errno(e, "memfd_create");
	if (pwrite(fd, text->data, text->size, 0) != (ssize_t)text->size ||
	    fcntl(fd, F_ADD_SEALS,
		F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0) {
		hf_fail_errno(e, "configuration memfd");
		close(fd);
		return HF_ESYS;
	}
	return fd;
}

static unsigned
cores(void)
{
	cpu_set_t set;
	int n;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	n = CPU_COUNT(&set);
	return n < 1 ? 1 : (unsigned)n;
}

int
hf_generation_load(
    struct hf_master *m, struct hf_generation *g, struct hf_error *e)
{
	struct hf_buf text;
	int rc;

	*g = (struct hf_generation){ .fd = -1 };
	hf_buf_init(&text, CONFIG_MAX);
	hf_buf_put(&text, "", 0);
	rc = read_file(m->conf_path, &text, e);
	if (rc == 0)
		rc = hf_conf_parse(
		    m->conf_path, text.size == 0 ? "" : text.data, &g->conf, e);
	if (rc == 0) {
		g->fd = freeze(&text, e);
		rc = g->fd < 0 ? g->fd : 0;
	}
	hf_buf_free(&text);
	if (rc < 0) {
		hf_generation_free(m, g);
		return rc;
	}
	g->number = ++m->generations;
	g->workers = g->conf->gateway.workers > 0 ?
	    (unsigned)g->conf->gateway.workers :
	    cores();
	if (g->workers > HF_MASTER_WORKERS)
		g->workers = HF_MASTER_WORKERS;
	return 0;
}

void
hf_generation_free(struct hf_master *m, struct hf_generation *g)
{
	if (g->conf != m->first)
		hf_conf_free(g->conf);
	if (g->fd >= 0)
		close(g->fd);
	*g = (struct hf_generation){ .fd = -1 };
}

const struct hf_generation *
hf_generation_of(const struct hf_master *m, unsigned number)
{
	if (m->cur.conf != NULL && m->cur.number == number)
		return &m->cur;
	if (m->next.conf != NULL && m->next.number == number)
		return &m->next;
	return NULL;
}

/* --- reload ----------------------------------------------------------- */

static bool
same(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void
refuse_if(struct hf_master *m, bool changed, const char *key)
{
	size_t n = strlen(m->reload_note);

	if (!changed)
		return;
	hf_log(HF_LOG_WARN,
	    "reload: key=%s changed and needs a restart; the "
	    "old value stays",
	    key);
	snprintf(m->reload_note + n, sizeof(m->reload_note) - n, "%s%s",
	    n > 0 ? ", " : "", key);
}

/* What is fixed at the start stays: children are told those values by the
 * master, not by the new text. */
static void
refuse_fixed(struct hf_master *m, const struct hf_conf_gateway *old,
    const struct hf_conf_gateway *new)
{
	bool listen = old->n_listen != new->n_listen;

	m->reload_note[0] = '\0';
	for (unsigned i = 0; i < old->n_listen && !listen; i++)
		listen = !same(old->listen[i], new->listen[i]);
	refuse_if(m, listen, "listen");
	refuse_if(m, !same(old->database, new->database), "database");
	refuse_if(m, !same(old->control, new->control), "control");
	refuse_if(m, !same(old->master_key_file, new->master_key_file),
	    "master_key_file");
	refuse_if(m,
	    !same(old->master_key_credential, new->master_key_credential),
	    "master_key_credential");
	refuse_if(m, old->handover != new->handover, "handover");
}

/* Tell the service manager and who asked that the reload is over, however it
 * went. */
static void
reload_over(struct hf_master *m, const char *status, int rc, const char *why)
{
	hf_notify("READY=1\nSTATUS=%s", status);
	hf_keeper_reloaded(m, m->reload_taken, rc, why);
}

void
hf_reload_ask(struct hf_master *m, int64_t request)
{
	m->reload_asked = request;
	if (m->phase.cur >= HF_PHASE_DRAINING) {
		hf_reload_cancel(m);
		return;
	}
	hf_log(HF_LOG_INFO, "reload: asked for over the control socket");
	m->reload_wanted = true;
}

void
hf_reload_cancel(struct hf_master *m)
{
	m->reload_wanted = false;
	if (m->reload_asked > 0)
		hf_keeper_reloaded(
		    m, m->reload_asked, HF_EBUSY, "the daemon is stopping");
}

static void
begin(struct hf_master *m)
{
	struct hf_error e = { 0 };
	int rc;

	/* Leave room for two whole generations. */
	if (hf_children_alive(m) + HF_MASTER_WORKERS > HF_SHM_SLOTS - 1)
		return;
	m->reload_wanted = false;
	m->reload_taken = m->reload_asked;
	hf_notify("RELOADING=1\nMONOTONIC_USEC=%" PRId64, hf_now_us());
	rc = hf_generation_load(m, &m->next, &e);
	if (rc < 0) {
		hf_log(HF_LOG_ERROR,
		    "reload: refused, the old configuration "
		    "stays: %s",
		    e.text);
		reload_over(m, "Reload refused; the old configuration stays.",
		    rc, e.text);
		return;
	}
	refuse_fixed(m, &m->first->gateway, &m->next.conf->gateway);
	hf_log(HF_LOG_INFO, "reload: begins generation=%u workers=%u",
	    m->next.number, m->next.workers);
	for (unsigned i = 0; i < m->next.workers; i++)
		hf_child_start(m, hf_child_slot(m), m->next.number);
}

void
hf_reload_abandon(struct hf_master *m, const char *reason)
{
	char why[160];

	hf_log(HF_LOG_ERROR,
	    "reload: failed, the old configuration stays "
	    "generation=%u reason=%s",
	    m->next.number, reason);
	for (unsigned i = 1; i < HF_SHM_SLOTS; i++)
		if (m->child[i].generation == m->next.number)
			hf_child_stop(m, i);
	hf_generation_free(m, &m->next);
	snprintf(why, sizeof(why),
	    "the new workers do not start (%s); the "
	    "old configuration stays",
	    reason);
	reload_over(
	    m, "Reload failed; the old configuration stays.", HF_ESYS, why);
}

/* The new generation takes over. */
static void
promote(struct hf_master *m)
{
	int64_t drain_ms = m->cur.conf->gateway.drain_ms;
	unsigned old = m->cur.number;

	for (unsigned i = 1; i < HF_SHM_SLOTS; i++)
		if (m->child[i].generation == old)
			hf_child_drain(m, i, drain_ms);
	hf_generation_free(m, &m->cur);
	m->cur = m->next;
	m->next = (struct hf_generation){ .fd = -1 };
	m->retiring = true;
	atomic_store(&m->shm.h->config_generation, m->cur.number);
	hf_log_set_level((enum hf_log_level)m->cur.conf->gateway.log_level);
	hf_keeper_config(m);
	hf_log(HF_LOG_INFO,
	    "reload: serving generation=%u workers=%u "
	    "draining=%u",
	    m->cur.number, m->cur.workers,
	    hf_children_count(m, old, HF_LIFE_DRAINING));
	reload_over(m, "Serving.", 0, m->reload_note);
}

void
hf_reload_step(struct hf_master *m)
{
	if (m->next.conf != NULL &&
	    hf_children_count(m, m->next.number, HF_LIFE_READY) ==
		m->next.workers)
		promote(m);
	if (m->retiring && hf_children_count(m, 0, HF_LIFE_DRAINING) == 0 &&
	    hf_children_count(m, 0, HF_LIFE_STOPPING) == 0) {
		m->retiring = false;
		hf_log(HF_LOG_INFO, "reload: done generation=%u workers=%u",
		    m->cur.number, m->cur.workers);
	}
	if (m->next.conf == NULL && m->reload_wanted)
		begin(m);
}
