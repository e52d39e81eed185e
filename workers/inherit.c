/*
 * The estate of the dead, as the master sees it: whether connections are held
 * at all, what children say of them, and who goes on with those of a worker
 * that died.  The table itself is in handover.c.
 */
#include <config.h>

#include "workers/master_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "workers/handover.h"
#include "workers/ipc.h"

#define AGAIN_US ((int64_t)5000) /* an heir's socketpair was full */
/* Descriptors that stay free: two generations of children, a reload, and the
 * table of a child, which is copied after the fork. */
#define SPARE_FILES 400

/* --- on or off ----------------------------------------------------------- */

static unsigned
most_held(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) < 0 || rl.rlim_cur <= SPARE_FILES)
		return 0;
	rl.rlim_cur -= SPARE_FILES;
	return rl.rlim_cur < HF_HOLD_SLOTS ? (unsigned)rl.rlim_cur :
					     HF_HOLD_SLOTS;
}

int
hf_inherit_open(struct hf_master *m, struct hf_error *e)
{
	int mode = m->first->gateway.handover, rc;
	struct hf_error why = { 0 };
	unsigned most = most_held();

	if (mode == HF_HANDOVER_OFF) {
		hf_log(HF_LOG_INFO, "handover: off reason=configured");
		return 0;
	}
	rc = hf_tcp_self_test(&why);
	if (rc == 0)
		rc = hf_hold_create(&m->hold, &m->hold_fd, &why);
	if (rc < 0 && mode == HF_HANDOVER_ON)
		return hf_fail(
		    e, HF_ECONFIG, "handover = on, but %s", why.text);
	if (rc < 0) {
		hf_log(HF_LOG_WARN,
		    "handover: off, a worker's death will cut its "
		    "connections reason=\"%s\"",
		    why.text);
		return 0;
	}
	m->handover = hf_handover_new(&m->hold, most);
	hf_log(HF_LOG_INFO, "handover: on connections=%u", most);
	return 0;
}

void
hf_inherit_close(struct hf_master *m)
{
	hf_handover_free(m->handover);
	m->handover = NULL;
	hf_hold_unmap(&m->hold);
	if (m->hold_fd >= 0)
		close(m->hold_fd);
	m->hold_fd = -1;
}

/* --- what workers say ----------------------------------------------------- */

static void
gauge(struct hf_master *m)
{
	hf_shm_master_set(&m->shm, HF_C_connections_held,
	    (int64_t)hf_handover_n_held(m->handover));
}

void
hf_inherit_record(
    struct hf_master *m, unsigned slot, const struct hf_ipc *r, int fd)
{
	static struct hf_log_limit limit;
	uint64_t inc = m->child[slot].inc;

	if (m->handover == NULL || slot == HF_SHM_KEEPER) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (r->type == HF_IPC_RELEASED)
		hf_handover_released(m->handover, inc, r->slot, (uint32_t)r->a);
	else if (fd < 0)
		hf_log_limited(&limit, 10000, HF_LOG_WARN,
		    "handover: no descriptor for a connection slot=%u", slot);
	else
		(void)hf_handover_held(
		    m->handover, inc, r->slot, (uint32_t)r->a, fd);
	gauge(m);
}

/* --- heirs ---------------------------------------------------------------- */

struct heirs {
	struct hf_master *m;
	struct hf_taker taker[HF_SHM_SLOTS];
	unsigned slot[HF_SHM_SLOTS];
	unsigned n;
	char whom[200]; /* "2:5,3:4": slot and how many */
};

/* Who serves; when the service ends, who still finishes something. */
static void
find_heirs(struct hf_master *m, struct heirs *h)
{
	enum hf_life life = m->phase.cur >= HF_PHASE_DRAINING ?
	    HF_LIFE_DRAINING :
	    HF_LIFE_READY;

	h->m = m;
	h->n = 0;
	for (unsigned i = 1; i < HF_SHM_SLOTS; i++) {
		const struct hf_child *c = &m->child[i];

		/* Who dies just now has no incarnation any more. */
		if (c->life.cur != (unsigned)life || c->fd < 0 ||
		    !hf_shm_alive(&m->shm, i, c->inc))
			continue;
		h->slot[h->n] = i;
		h->taker[h->n++] = (struct hf_taker){ .inc = c->inc,
			.generation = c->generation,
			.slow = hf_child_slow(m, i) };
	}
}

static int
send_adopt(
    void *arg, unsigned i, uint32_t slot, uint32_t epoch, bool poisoned, int fd)
{
	struct heirs *h = arg;
	const struct hf_child *c = &h->m->child[h->slot[i]];
	struct hf_ipc r = { .type = HF_IPC_ADOPT,
		.slot = slot,
		.inc = c->inc,
		.a = epoch,
		.b = poisoned };

	return hf_ipc_send_fd(c->fd, &r, fd);
}

static void
say_whom(struct heirs *h)
{
	size_t n = 0;

	h->whom[0] = '\0';
	for (unsigned i = 0; i < h->n && n < sizeof(h->whom); i++)
		if (h->taker[i].given > 0)
			n += (size_t)snprintf(h->whom + n, sizeof(h->whom) - n,
			    "%s%u:%u", n > 0 ? "," : "", h->slot[i],
			    h->taker[i].given);
	if (n == 0)
		snprintf(h->whom, sizeof(h->whom), "nobody");
}

/* Hand over what waits; returns how many connections were. */
static unsigned
pass(struct hf_master *m, struct heirs *h)
{
	unsigned given = 0, cut = 0;

	find_heirs(m, h);
	hf_handover_pass(m->handover, h->taker, h->n, send_adopt, h);
	for (unsigned i = 0; i < h->n; i++)
		given += h->taker[i].given;
	if (h->n == 0 && m->phase.cur >= HF_PHASE_DRAINING)
		cut = hf_handover_cut(m->handover);
	hf_shm_master_count(&m->shm, HF_C_handovers, given);
	hf_shm_master_count(&m->shm, HF_C_handovers_lost, cut);
	gauge(m);
	say_whom(h);
	return given;
}

void
hf_inherit_death(struct hf_master *m, unsigned slot, uint64_t inc, bool fault)
{
	struct hf_settled s;
	struct heirs h;
	unsigned given;

	if (m->handover == NULL || slot == HF_SHM_KEEPER)
		return;
	hf_handover_settle(m->handover, inc, fault, &s);
	if (s.orphans)
		hf_keeper_reap(m, 0, 0);
	hf_shm_master_count(
	    &m->shm, HF_C_handovers_lost, (int64_t)(s.lost + s.unheld));
	hf_shm_master_count(&m->shm, HF_C_handovers_poisoned, s.poisoned);
	if (s.waiting + s.lost + s.unheld == 0)
		return; /* what waits for others is the tick's */
	given = pass(m, &h);
	hf_log(s.lost + s.unheld + s.poisoned > 0 ? HF_LOG_WARN : HF_LOG_INFO,
	    "handover: slot=%u inc=%" PRIu64 " connections=%u given=%u to=%s "
	    "waiting=%u poisoned=%u lost=%u unheld=%u",
	    slot, inc, s.waiting + s.lost + s.unheld, given, h.whom,
	    hf_handover_n_waiting(m->handover), s.poisoned, s.lost, s.unheld);
}

int64_t
hf_inherit_tick(struct hf_master *m, int64_t now_us)
{
	struct heirs h;
	unsigned given;

	if (m->handover == NULL || hf_handover_n_waiting(m->handover) == 0)
		return INT64_MAX;
	given = pass(m, &h);
	if (given > 0)
		hf_log(HF_LOG_INFO, "handover: later given=%u to=%s waiting=%u",
		    given, h.whom, hf_handover_n_waiting(m->handover));
	return hf_handover_n_waiting(m->handover) > 0 && h.n > 0 ?
	    now_us + AGAIN_US :
	    INT64_MAX;
}
