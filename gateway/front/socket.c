/*
 * The sockets of clients.  evhttp parses requests and writes heads into its
 * bufferevent as ever, but that bufferevent is only a desk: once evhttp has
 * set a connection up, its descriptor is taken from the bufferevent (where
 * bufferevent_setfd(bev, -1) leaves two buffers and three callbacks), and the
 * socket is read and written here.  Loop thread.
 *
 * Why: evhttp switches reading and writing on and off around every request,
 * which costs six changes of the epoll set, and reads 4 KB a pass; whoever
 * writes must know what the kernel took; and a client that hung up must be
 * noticed while evhttp does not read.
 *
 * Each socket has one edge-triggered event for its whole life.  An edge is
 * remembered ('readable') until the kernel said that nothing is left; writing
 * goes on until the kernel takes no more, so that it owes an edge.
 *
 * Who hung up: EV_CLOSED tells of a FIN.  A reset is reported as EV_READ
 * alone (libevent 2.1 makes that of EPOLLERR), and told from pipelined bytes
 * by looking.
 */
#include <config.h>

#include <errno.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/front/internal.h"

#define READ_FIRST 4096 /* bytes; most requests are smaller */
#define READ_ROOM (2 * READ_FIRST)
#define READ_MOST (256 * 1024) /* bytes at a time of a long body */
#define READS_A_PASS 32	       /* then others get their turn */

static void ready(evutil_socket_t fd, short what, void *arg);

/* --- writing --- */

size_t
hf_conn_unsent(const struct hf_conn *c)
{
	size_t n = evbuffer_get_length(bufferevent_get_output(c->bev));

	return hf_held(c) ? n + hf_held_backlog(c) : n;
}

/* One write: bytes that left, 0: nothing waits, -1: not now, or never. */
static ssize_t
write_some(struct hf_conn *c)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);
	struct hf_str unsent;
	ssize_t n;

	if (!hf_held(c)) {
		if (evbuffer_get_length(out) == 0)
			return 0;
		do
			n = evbuffer_write(out, c->fd);
		while (n < 0 && errno == EINTR);
		return n;
	}
	hf_held_log(c);
	unsent = hf_held_unsent(c);
	if (unsent.size == 0)
		return 0;
	do
		n = send(
		    c->fd, unsent.p, unsent.size, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		c->out_sent += (uint64_t)n;
		if (c->sink != NULL)
			hf_sink_progress(c->sink);
	}
	return n;
}

/* Everything that waits leaves, as far as the kernel takes it. */
void
hf_conn_push(struct hf_conn *c)
{
	bool any = false;
	ssize_t n;

	if (c->sink != NULL)
		hf_sink_gather(c->sink);
	while ((n = write_some(c)) > 0)
		any = true;
	if (any) {
		c->moved_us = hf_now_us();
		hf_conn_arm(c);
	}
	if (n < 0 && errno != EAGAIN) {
		hf_conn_close(c);
		return;
	}
	if (!any || hf_conn_unsent(c) > 0)
		return;
	/* evhttp goes on, and may free its connection. */
	if ((bufferevent_get_enabled(c->bev) & EV_WRITE) != 0)
		bufferevent_trigger(c->bev, EV_WRITE, 0);
	if (c->bev != NULL && c->hung && c->phase != HF_CONN_BUSY)
		hf_conn_close(c);
}

/* --- reading --- */

/* What a request begins with: as much as the one before it had, where there is
 * room anyway, since a conversation grows by little. */
static size_t
first_appetite(const struct hf_conn *c)
{
	size_t most = READ_FIRST + (hf_held(c) ? c->last_size : 0);

	return most > READ_MOST ? READ_MOST : most;
}

/* How much to ask the kernel for: the rest of the body, so that it comes in
 * one piece and what follows it stays in the kernel. */
static size_t
appetite(const struct hf_conn *c)
{
	int64_t left;

	if (c->phase != HF_CONN_BODY || c->head->status != 0)
		return first_appetite(c);
	left = c->head->body_size - c->body_seen;
	if (left <= 0)
		return READ_FIRST;
	return left > READ_MOST ? READ_MOST : (size_t)left;
}

/* One read for evhttp's input: into the hold, if the connection is held; else
 * into the input itself.  Room beyond what is asked for lets libevent
 * join the first bytes of a body with the rest. */
static ssize_t
take(struct hf_conn *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	size_t most = appetite(c);
	char *held = hf_held_room(c, &most);
	struct evbuffer_iovec v = { held, most };
	ssize_t n;

	if (held == NULL &&
	    evbuffer_reserve_space(in,
		(ev_ssize_t)(most < READ_ROOM ? READ_ROOM : most), &v, 1) != 1)
		hf_check_failed("no memory", __FILE__, __LINE__);
	do
		n = recv(c->fd, v.iov_base, most, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN) {
		c->readable = false;
		return 0;
	}
	if (n <= 0)
		return -1;
	/* With a FIN behind them, the end is still to be read. */
	if ((size_t)n < most && !c->hung)
		c->readable = false;
	v.iov_len = (size_t)n;
	c->consumed += (uint64_t)n;
	if (held != NULL) {
		c->in_size += (size_t)n;
		HF_CHECK(evbuffer_add_reference(
			     in, held, (size_t)n, NULL, NULL) == 0);
	} else {
		HF_CHECK(evbuffer_commit_space(in, &v, 1) == 0);
	}
	return n;
}

/* No request can come any more; an answer of evhttp's own may still leave. */
static void
end_of_input(struct hf_conn *c)
{
	c->hung = true;
	c->readable = false;
	if (hf_conn_unsent(c) == 0)
		hf_conn_close(c);
}

static bool
may_read(const struct hf_conn *c)
{
	return c->bev != NULL && c->readable && c->phase != HF_CONN_BUSY &&
	    (bufferevent_get_enabled(c->bev) & EV_READ) != 0;
}

/* While a response is under way nothing is read: pipelined bytes are left to
 * the kernel until their turn comes. */
void
hf_conn_pull(struct hf_conn *c)
{
	ssize_t n;

	for (int i = 0; may_read(c); i++) {
		if (i == READS_A_PASS) {
			/* A new edge comes if anything is left. */
			event_del(&c->io);
			event_add(&c->io, NULL);
			return;
		}
		n = take(c);
		if (n < 0) {
			end_of_input(c);
			return;
		}
		if (n == 0)
			continue;
		hf_conn_deliver(c);
	}
}

/* --- the event --- */

static bool
ended(const struct hf_conn *c)
{
	char byte;
	ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* A half-close counts as leaving: it cannot be told from a full one before
 * something is sent.  Whoever watches nothing still answers into it. */
static void
ready(evutil_socket_t fd, short what, void *arg)
{
	struct hf_conn *c = arg;

	(void)fd;
	if ((what & (EV_READ | EV_CLOSED)) != 0)
		c->readable = true;
	if ((what & EV_CLOSED) != 0)
		c->hung = true;
	if (c->phase == HF_CONN_BUSY && !c->hung && (what & EV_READ) != 0)
		c->hung = ended(c);
	if (c->hung && c->sink != NULL)
		hf_sink_hung(c->sink);
	if ((what & EV_WRITE) != 0)
		hf_conn_push(c);
	hf_conn_pull(c);
}

/* Take the socket over from evhttp's bufferevent. */
void
hf_conn_open(struct hf_conn *c)
{
	const short what = EV_READ | EV_WRITE | EV_CLOSED | EV_PERSIST | EV_ET;

	HF_CHECK(bufferevent_setfd(c->bev, -1) == 0);
	if (event_assign(&c->io, c->front->base, c->fd, what, ready, c) != 0 ||
	    event_add(&c->io, NULL) != 0)
		hf_check_failed("no event for a client", __FILE__, __LINE__);
}
