/*
 * Records about held connections.  See tell.h.
 */
#include <config.h>

#include "workers/tell.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/check.h"
#include "base/hold.h"
#include "workers/ipc.h"

struct later {
	STAILQ_ENTRY(later) entry;
	struct hf_ipc r;
	int conn; /* a dup; -1 */
};

struct hf_tell {
	int fd;
	uint64_t inc;
	struct event *writable;
	STAILQ_HEAD(, later) queue;
	unsigned n;
};

static void
drop_first(struct hf_tell *t)
{
	struct later *l = STAILQ_FIRST(&t->queue);

	STAILQ_REMOVE_HEAD(&t->queue, entry);
	t->n--;
	if (l->conn >= 0)
		close(l->conn);
	free(l);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct hf_tell *t = arg;
	const struct later *l;

	(void)what;
	while ((l = STAILQ_FIRST(&t->queue)) != NULL) {
		if (hf_ipc_send_fd(fd, &l->r, l->conn) == HF_EBUSY) {
			event_add(t->writable, NULL);
			return;
		}
		drop_first(t); /* or the master is gone, and so are we soon */
	}
}

int
hf_tell_new(struct hf_tell **out, struct event_base *base, int fd, uint64_t inc,
    struct hf_error *e)
{
	struct hf_tell *t = hf_xcalloc(1, sizeof(*t));

	t->fd = fd;
	t->inc = inc;
	STAILQ_INIT(&t->queue);
	t->writable = event_new(base, fd, EV_WRITE, on_writable, t);
	if (t->writable == NULL) {
		free(t);
		return hf_fail(e, HF_ENOMEM, "event loop: out of memory");
	}
	*out = t;
	return 0;
}

void
hf_tell_free(struct hf_tell *t)
{
	if (t == NULL)
		return;
	while (!STAILQ_EMPTY(&t->queue))
		drop_first(t);
	event_free(t->writable);
	free(t);
}

/* A beginning may be refused, an end may not. */
static bool
queue(struct hf_tell *t, const struct hf_ipc *r, int conn)
{
	struct later *l;
	int copy = -1;

	if (conn >= 0) {
		if (t->n >= HF_HOLD_SLOTS)
			return false;
		copy = fcntl(conn, F_DUPFD_CLOEXEC, 0);
		if (copy < 0)
			return false;
	}
	l = hf_xcalloc(1, sizeof(*l));
	l->r = *r;
	l->conn = copy;
	STAILQ_INSERT_TAIL(&t->queue, l, entry);
	t->n++;
	event_add(t->writable, NULL);
	return true;
}

bool
hf_tell_held(struct hf_tell *t, uint32_t slot, uint32_t epoch, int conn)
{
	struct hf_ipc r = { .type = conn < 0 ? HF_IPC_RELEASED : HF_IPC_HELD,
		.slot = slot,
		.sender = t->inc,
		.a = epoch };
	int rc = HF_EBUSY;

	if (STAILQ_EMPTY(&t->queue))
		rc = hf_ipc_send_fd(t->fd, &r, conn);
	return rc == HF_EBUSY ? queue(t, &r, conn) : rc == 0;
}
