/*
 * Connections that outlive us: what was read of a client and written to it is
 * kept in the hold (base/hold.h), and the master has the socket too.  The
 * other side is here as well: a connection that a dead worker held is taken
 * over and goes on at the exact byte.  Loop thread.
 *
 * How one goes on.  The kernel says how many bytes it took: the rest of 'out'
 * is sent.  The bytes of the request that was being read or served are given
 * to evhttp again, and through it to the same handler, which is told what the
 * client has already (struct hf_resumed).  evhttp makes the response's head a
 * second time; it is thrown away where the client has it.
 *
 * evhttp has no way to be given a connection that is older than itself: it
 * accepts one on a private socket, which stands for it.  Only the descriptor
 * of that one is evhttp's; the client's is ours anyway (socket.c).
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/front/internal.h"

#define IN_KEEP ((size_t)64 * 1024) /* more of 'in' is given back */

bool
hf_held(const struct hf_conn *c)
{
	return c->slot != HF_HOLD_NONE;
}

static struct hf_hold *
hold(const struct hf_conn *c)
{
	return c->front->c.hold;
}

static const struct hf_hold_mark *
mark(const struct hf_conn *c)
{
	return hf_hold_mark(hold(c), c->slot);
}

/* --- beginning and end ------------------------------------------------------
 */

/* Whose bytes the kernel counts. */
static bool
is_tcp(int fd)
{
	struct sockaddr_storage ss;
	socklen_t size = sizeof(ss);

	return getsockname(fd, (struct sockaddr *)&ss, &size) == 0 &&
	    (ss.ss_family == AF_INET || ss.ss_family == AF_INET6);
}

void
hf_held_begin(struct hf_conn *c)
{
	struct hf_front *f = c->front;

	c->slot = HF_HOLD_NONE;
	if (f->c.hold == NULL || f->c.hold->map == NULL || !is_tcp(c->fd))
		return;
	c->slot = hf_hold_take(f->c.hold);
	if (!hf_held(c))
		return;
	c->epoch = atomic_load(&hf_hold_slot(f->c.hold, c->slot)->epoch);
	if (f->c.tell_held(f->c.arg, c->slot, c->epoch, c->fd))
		return;
	hf_hold_give(f->c.hold, c->slot);
	c->slot = HF_HOLD_NONE;
}

void
hf_held_end(struct hf_conn *c)
{
	struct hf_front *f = c->front;

	if (!hf_held(c))
		return;
	/* In this order: a slot that is free is nobody's to hand over. */
	(void)f->c.tell_held(f->c.arg, c->slot, c->epoch, -1);
	hf_hold_give(f->c.hold, c->slot);
	c->slot = HF_HOLD_NONE;
}

/* --- input ------------------------------------------------------------------
 */

char *
hf_held_room(struct hf_conn *c, size_t *size)
{
	struct hf_hold_mark *m;

	if (!hf_held(c))
		return NULL;
	if (c->in_size < HF_HOLD_IN &&
	    c->consumed == mark(c)->in_base + c->in_size) {
		if (*size > HF_HOLD_IN - c->in_size)
			*size = HF_HOLD_IN - c->in_size;
		return hf_hold_in(hold(c), c->slot) + c->in_size;
	}
	if ((mark(c)->flags & HF_HOLD_LOST) == 0) {
		m = hf_hold_change(hold(c), c->slot);
		m->flags |= HF_HOLD_LOST;
		hf_hold_commit(hold(c), c->slot);
	}
	return NULL;
}

const char *
hf_held_body(const struct hf_conn *c)
{
	if (!hf_held(c) || (mark(c)->flags & HF_HOLD_LOST) != 0)
		return NULL;
	return hf_hold_in(hold(c), c->slot) + mark(c)->in_start + c->head_size;
}

/* --- output -----------------------------------------------------------------
 */

static void
mark_serving(const struct hf_sink *s, struct hf_hold_mark *m)
{
	m->flags |= HF_HOLD_SERVING;
	m->since_us = s->rq.received_us;
}

/* The request is answered: what follows it in 'in' is the next one. */
static void
mark_end(struct hf_conn *c, struct hf_hold_mark *m)
{
	const struct hf_sink *s = c->sink;
	int64_t body = s->head->body_size;
	size_t next =
	    m->in_start + c->head_size + (body > 0 ? (size_t)body : 0);

	/* What came behind a request too long to be kept is lost with us. */
	m->flags &= HF_HOLD_CLOSE |
	    (evbuffer_get_length(bufferevent_get_input(c->bev)) > 0 &&
			c->in_size < next ?
		    HF_HOLD_LOST :
		    0);
	if (s->close || s->front->draining)
		m->flags |= HF_HOLD_CLOSE;
	m->in_start = (uint32_t)next;
	if (next >= c->in_size) { /* nothing does; or it was too long */
		m->in_start = 0;
		m->in_base = c->consumed;
	}
	m->response_from = m->out_size;
	m->head_size = 0;
	m->state = 0;
	m->text_size = 0;
	m->since_us = m->said_us = 0;
	m->turn[0] = '\0';
	atomic_store(&hf_hold_slot(hold(c), c->slot)->faults, 0);
}

static void
mark_said(struct hf_conn *c, struct hf_hold_mark *m)
{
	struct hf_sink *s = c->sink;
	struct hf_str said = hf_buf_str(&s->said);

	m->state = s->state;
	if (said.size > 0)
		m->said_us = hf_now_us();
	if (said.size > HF_HOLD_TEXT) {
		m->text_size += said.size - HF_HOLD_TEXT;
		said.p += said.size - HF_HOLD_TEXT;
		said.size = HF_HOLD_TEXT;
	}
	hf_ring_put(hf_hold_text(hold(c), c->slot), HF_HOLD_TEXT, m->text_size,
	    said.p, said.size);
	m->text_size += said.size;
	hf_buf_reset(&s->said);
}

/* 'n' bytes of output have been added to 'out'; 'all' that there are. */
static void
mark_out(struct hf_conn *c, size_t n, bool all, bool lost)
{
	struct hf_hold_mark *m = hf_hold_change(hold(c), c->slot);
	struct hf_sink *s = c->sink;

	m->out_size += n;
	if (lost)
		m->flags |= HF_HOLD_LOST;
	if (s == NULL) {
		m->flags |= HF_HOLD_INTERIM; /* or evhttp's own refusal */
	} else {
		mark_serving(s, m);
		if (s->head_size > 0) {
			m->flags |= HF_HOLD_HEAD;
			m->head_size = (uint32_t)s->head_size;
		}
		if (s->reply) {
			m->flags |= HF_HOLD_REPLY;
			m->body_size = s->body_size;
			m->body_hash = s->body_hash;
		}
		if (all)
			mark_said(c, m);
		if (all && s->finished)
			mark_end(c, m);
	}
	hf_hold_commit(hold(c), c->slot);
	if (mark(c)->in_start == 0 && mark(c)->in_base == c->consumed) {
		if (c->in_size > IN_KEEP)
			hf_hold_trim_in(hold(c), c->slot, IN_KEEP);
		c->in_size = 0;
	}
}

/* Copy 'n' bytes of evhttp's output to the ring. */
static void
copy_out(struct hf_conn *c, struct evbuffer *from, size_t n)
{
	char *ring = hf_hold_out(hold(c), c->slot);
	uint64_t at = mark(c)->out_size;
	struct evbuffer_iovec v[32];
	size_t left = n;

	while (left > 0) {
		int k = evbuffer_peek(from, (ev_ssize_t)left, NULL, v, 32);
		size_t took = 0;

		for (int i = 0; i < k && i < 32 && left > 0; i++) {
			size_t size = v[i].iov_len < left ? v[i].iov_len : left;

			hf_ring_put(ring, HF_HOLD_OUT, at, v[i].iov_base, size);
			at += size;
			left -= size;
			took += size;
		}
		HF_CHECK(took > 0 && evbuffer_drain(from, took) == 0);
	}
}

/* What was written in one pass goes in as a whole, so that a successor knows
 * where it stands.  A plain reply may go in pieces: its successor makes it
 * again and knows where to go on. */
void
hf_held_log(struct hf_conn *c)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);
	const struct hf_sink *s = c->sink;
	size_t n = evbuffer_get_length(out), take = n;
	size_t room = HF_HOLD_OUT - (size_t)(mark(c)->out_size - c->out_sent);
	bool lost = (mark(c)->flags & HF_HOLD_LOST) != 0;

	if (n == 0)
		return;
	if (c->drop_interim) {
		c->drop_interim = false;
		evbuffer_drain(out, n);
		return;
	}
	if (n > room) {
		if (s != NULL && s->reply)
			take = room;
		else if (n > HF_HOLD_OUT || lost) {
			take = room;
			lost = true;
		} else {
			return; /* until it fits */
		}
	}
	if (take == 0)
		return;
	copy_out(c, out, take);
	mark_out(c, take, take == n, lost);
}

struct hf_str
hf_held_unsent(const struct hf_conn *c)
{
	size_t at = (size_t)(c->out_sent % HF_HOLD_OUT);
	uint64_t n = mark(c)->out_size - c->out_sent;

	if (n > HF_HOLD_OUT - at)
		n = HF_HOLD_OUT - at;
	return (struct hf_str){ hf_hold_out(hold(c), c->slot) + at, (size_t)n };
}

size_t
hf_held_backlog(const struct hf_conn *c)
{
	return (size_t)(mark(c)->out_size - c->out_sent);
}

void
hf_held_turn(struct hf_sink *s)
{
	struct hf_conn *c = s->conn;
	struct hf_hold_mark *m;

	if (c == NULL || !hf_held(c))
		return;
	m = hf_hold_change(hold(c), c->slot);
	mark_serving(s, m);
	snprintf(m->turn, sizeof(m->turn), "%s", s->turn.s);
	hf_hold_commit(hold(c), c->slot);
}

/* --- taking over ------------------------------------------------------------
 */

static void
let_go(struct hf_front *f, struct hf_adoptee *a)
{
	(void)f->c.tell_held(f->c.arg, a->slot, a->epoch, -1);
	hf_hold_give(f->c.hold, a->slot);
	close(a->fd);
	free(a);
}

/* Connect to ourselves, under a name that the accepted side can see. */
static int
knock(struct hf_front *f, struct hf_adoptee *a)
{
	struct sockaddr_un any = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	a->peer_size = sizeof(a->peer);
	if (fd >= 0 &&
	    bind(fd, (struct sockaddr *)&any, sizeof(any.sun_family)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&a->peer, &a->peer_size) == 0 &&
	    connect(fd, (struct sockaddr *)&f->inner_addr, f->inner_size) ==
		0) {
		close(fd); /* what was accepted lives on */
		return 0;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

void
hf_front_adopt(
    struct hf_front *f, int fd, uint32_t slot, uint32_t epoch, bool poisoned)
{
	struct hf_adoptee *a = hf_xcalloc(1, sizeof(*a));

	*a = (struct hf_adoptee){
		.fd = fd, .slot = slot, .epoch = epoch, .poisoned = poisoned
	};
	if (slot >= HF_HOLD_SLOTS ||
	    atomic_load(hf_hold_owner(f->c.hold, slot)) != f->c.hold->inc) {
		hf_log(HF_LOG_ERROR, "front: adoption-refused slot=%u", slot);
		close(fd);
		free(a);
		return;
	}
	if (f->inner == NULL || knock(f, a) < 0) {
		hf_log(HF_LOG_ERROR, "front: adoption-failed slot=%u errno=%d",
		    slot, errno);
		let_go(f, a);
		return;
	}
	TAILQ_INSERT_TAIL(&f->adoptees, a, entry);
}

struct hf_adoptee *
hf_held_adoptee(struct hf_front *f, int fd)
{
	struct sockaddr_un peer = { 0 };
	socklen_t size = sizeof(peer);
	struct hf_adoptee *a;

	if (TAILQ_EMPTY(&f->adoptees) ||
	    getpeername(fd, (struct sockaddr *)&peer, &size) < 0 ||
	    peer.sun_family != AF_UNIX)
		return NULL;
	TAILQ_FOREACH (a, &f->adoptees, entry) {
		if (a->peer_size != size || memcmp(&a->peer, &peer, size) != 0)
			continue;
		TAILQ_REMOVE(&f->adoptees, a, entry);
		return a;
	}
	return NULL;
}

/* Do the counts of the kernel and of the dead worker fit together? */
static bool
fits(struct hf_conn *c)
{
	const struct hf_hold_mark *m = mark(c);
	uint64_t taken, consumed;

	if ((m->flags & HF_HOLD_LOST) != 0 || !hf_tcp_taken(c->fd, &taken) ||
	    !hf_tcp_consumed(c->fd, &consumed))
		return false;
	if (taken > m->out_size || m->out_size - taken > HF_HOLD_OUT ||
	    consumed < m->in_base + m->in_start ||
	    consumed - m->in_base > HF_HOLD_IN || m->in_start > HF_HOLD_IN ||
	    m->response_from > m->out_size ||
	    memchr(m->turn, '\0', sizeof(m->turn)) == NULL) {
		hf_log(HF_LOG_ERROR,
		    "front: adoption-counts slot=%u taken=%llu out=%llu "
		    "consumed=%llu in_base=%llu in_start=%u",
		    c->slot, (unsigned long long)taken,
		    (unsigned long long)m->out_size,
		    (unsigned long long)consumed,
		    (unsigned long long)m->in_base, m->in_start);
		return false;
	}
	c->out_sent = taken;
	c->consumed = consumed;
	c->in_size = (size_t)(consumed - m->in_base);
	return true;
}

bool
hf_held_adopt(struct hf_conn *c, struct hf_adoptee *a)
{
	c->fd = a->fd;
	c->slot = a->slot;
	c->epoch = a->epoch;
	c->poisoned = a->poisoned;
	c->adopted = true;
	free(a);
	return fits(c);
}

/* Give evhttp what it would have read. */
void
hf_held_feed(struct hf_conn *c)
{
	const struct hf_hold_mark *m = mark(c);
	const char *in = hf_hold_in(hold(c), c->slot);

	c->resuming = (m->flags & HF_HOLD_SERVING) != 0;
	c->drop_interim = (m->flags & HF_HOLD_INTERIM) != 0;
	if ((m->flags & (HF_HOLD_CLOSE | HF_HOLD_SERVING)) == HF_HOLD_CLOSE) {
		/* Answered; only its last bytes are owed. */
		c->hung = true;
		if (hf_conn_unsent(c) == 0)
			hf_conn_queue(c, HF_CONN_CLOSE);
		return;
	}
	if (c->in_size <= m->in_start)
		return;
	HF_CHECK(
	    evbuffer_add_reference(bufferevent_get_input(c->bev),
		in + m->in_start, c->in_size - m->in_start, NULL, NULL) == 0);
	hf_conn_deliver(c);
}

/* What the handler of a request that was served before must know. */
void
hf_held_resume(struct hf_sink *s)
{
	struct hf_conn *c = s->conn;
	const struct hf_hold_mark *m;
	struct hf_resumed *r;
	size_t n;

	if (!c->resuming || !hf_held(c))
		return;
	c->resuming = false;
	m = mark(c);
	r = hf_xcalloc(1, sizeof(*r));
	r->head = (m->flags & HF_HOLD_HEAD) != 0;
	r->poisoned = c->poisoned;
	r->state = m->state;
	snprintf(s->turn.s, sizeof(s->turn.s), "%s", m->turn);
	r->turn = hf_str(s->turn.s);
	r->text_size = m->text_size;
	r->said_us = m->said_us;
	if (m->since_us != 0)
		s->rq.received_us = m->since_us;
	n = m->text_size < HF_HOLD_TEXT ? (size_t)m->text_size : HF_HOLD_TEXT;
	hf_buf_init(&s->resumed_text, HF_BUF_NOCAP);
	if (n > 0) {
		char *to = hf_buf_reserve(&s->resumed_text, n);

		HF_CHECK(to != NULL);
		hf_ring_get(hf_hold_text(hold(c), c->slot), HF_HOLD_TEXT,
		    m->text_size - n, to, n);
	}
	r->text = hf_buf_str(&s->resumed_text);
	s->state = m->state;
	s->resumed = r;
	s->rq.resumed = r;
}

void
hf_held_reply(const struct hf_sink *s, struct hf_held_reply *out)
{
	const struct hf_hold_mark *m = mark(s->conn);
	uint64_t sent = m->out_size - m->response_from;

	*out = (struct hf_held_reply){
		.any = (m->flags & HF_HOLD_REPLY) != 0 && sent >= m->head_size,
		.size = m->body_size,
		.hash = m->body_hash,
		.sent = sent - m->head_size,
		.head = m->head_size,
	};
}

/* --- the private socket ------------------------------------------------------
 */

int
hf_held_init(struct hf_front *f, struct hf_error *e)
{
	struct sockaddr_un any = { .sun_family = AF_UNIX };
	int fd;

	if (f->c.hold == NULL || f->c.hold->map == NULL)
		return 0;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	f->inner_size = sizeof(f->inner_addr);
	/* A name of the kernel's choice, which is no file. */
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&any, sizeof(any.sun_family)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&f->inner_addr, &f->inner_size) <
		0 ||
	    listen(fd, (int)HF_HOLD_SLOTS) < 0) {
		hf_fail_errno(e, "private socket");
		if (fd >= 0)
			close(fd);
		return HF_ESYS;
	}
	f->inner = evconnlistener_new(f->base, NULL, NULL,
	    LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE, 0, fd);
	if (f->inner == NULL) {
		close(fd);
		return hf_fail(e, HF_ENOMEM, "private socket");
	}
	if (evhttp_bind_listener(f->http, f->inner) == NULL) {
		evconnlistener_free(f->inner);
		f->inner = NULL;
		return hf_fail(e, HF_ENOMEM, "private socket");
	}
	return 0;
}

/* evhttp frees its listeners. */
void
hf_held_free(struct hf_front *f)
{
	struct hf_adoptee *a;

	while ((a = TAILQ_FIRST(&f->adoptees)) != NULL) {
		TAILQ_REMOVE(&f->adoptees, a, entry);
		let_go(f, a);
	}
}
