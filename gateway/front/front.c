/*
 * The front room's set-up: evhttp with its limits, listening sockets, draining
 * and the queue of deferred work.  Loop thread of a worker.
 */
#include <config.h>

#include "gateway/front/front.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "gateway/front/internal.h"

#define LEAVERS_A_PASS 8

/* Of every front of the process: accept_failed() gets no other handle. */
static LIST_HEAD(, hf_listener) listeners = LIST_HEAD_INITIALIZER(listeners);

static void work(evutil_socket_t fd, short what, void *arg);
static void leave(evutil_socket_t fd, short what, void *arg);
static void hold(evutil_socket_t fd, short what, void *arg);
static void accept_failed(struct evconnlistener *ev, void *arg);
static void accept_again(evutil_socket_t fd, short what, void *arg);
static void say(int severity, const char *text);
static void say_fatal(int code);

static int
set_up_http(struct hf_front *f, struct hf_error *e)
{
	if ((f->http = evhttp_new(f->base)) == NULL)
		return hf_fail(e, HF_ENOMEM, "evhttp");
	evhttp_set_max_headers_size(f->http, HF_FRONT_HEADERS_MAX);
	evhttp_set_max_body_size(f->http, f->c.gw->body_hard);
	/* A body over the hard limit is read and dropped before the 413, so
	 * that the client can hear it; the body deadline bounds that. */
	evhttp_set_flags(f->http, EVHTTP_SERVER_LINGERING_CLOSE);
	evhttp_set_default_content_type(f->http, NULL);
	/* All that evhttp knows is answered in the protocol's shape.  CONNECT
	 * too: evhttp would keep the connection after its own 501. */
	evhttp_set_allowed_methods(f->http,
	    EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
		EVHTTP_REQ_DELETE | EVHTTP_REQ_PUT | EVHTTP_REQ_PATCH |
		EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE | EVHTTP_REQ_CONNECT);
	evhttp_set_bevcb(f->http, hf_conn_make, f);
	evhttp_set_gencb(f->http, hf_front_request, f);
	return 0;
}

int
hf_front_new(struct hf_front **out, struct event_base *base,
    const struct hf_front_conf *c, struct hf_error *e)
{
	struct hf_front *f = hf_xcalloc(1, sizeof(*f));
	int rc;

	*out = NULL;
	/* A write to a client that left must be an error, not a signal. */
	signal(SIGPIPE, SIG_IGN);
	event_set_log_callback(say);
	event_set_fatal_callback(say_fatal);
	f->base = base;
	f->c = *c;
	LIST_INIT(&f->listeners);
	LIST_INIT(&f->conns);
	LIST_INIT(&f->sinks);
	TAILQ_INIT(&f->conn_todo);
	TAILQ_INIT(&f->sink_todo);
	TAILQ_INIT(&f->leavers);
	TAILQ_INIT(&f->adoptees);
	f->work = event_new(base, -1, 0, work, f);
	f->accepted = event_new(base, -1, 0, hold, f);
	f->leave = evtimer_new(base, leave, f);
	if (f->work == NULL || f->accepted == NULL || f->leave == NULL) {
		rc = hf_fail(e, HF_ENOMEM, "front events");
		goto fail;
	}
	/* Where the base has priorities, before everything else: who dies
	 * between accept() and telling the master takes the connection along.
	 */
	event_priority_set(f->accepted, 0);
	if ((rc = set_up_http(f, e)) < 0 || (rc = hf_held_init(f, e)) < 0)
		goto fail;
	*out = f;
	return 0;
fail:
	hf_front_free(f);
	return rc;
}

static bool
is_loopback(const struct sockaddr_storage *ss)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)ss;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;

	switch (ss->ss_family) {
	case AF_INET:
		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	case AF_INET6:
		return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
	default:
		return ss->ss_family == AF_UNIX;
	}
}

/* Accepted sockets inherit these from the listening one (Linux). */
static void
set_options(int fd)
{
	int on = 1, idle = 30, every = 10;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return; /* not TCP */
	/* A peer that vanished without a FIN is noticed by the kernel while
	 * nothing waits for it, else by conn_timer().  Not TCP_USER_TIMEOUT:
	 * it also resets a peer with a small window that reads all the time,
	 * if slowly. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
}

int
hf_front_listen(struct hf_front *f, int fd, struct hf_error *e)
{
	struct hf_listener *l = hf_xcalloc(1, sizeof(*l));

	l->front = f;
	l->addr_size = sizeof(l->addr);
	if (getsockname(fd, (struct sockaddr *)&l->addr, &l->addr_size) < 0) {
		free(l);
		return hf_fail_errno(e, "listening socket");
	}
	l->loopback = is_loopback(&l->addr);
	set_options(fd);
	if (evutil_make_socket_nonblocking(fd) < 0) {
		free(l);
		return hf_fail_errno(e, "listening socket");
	}
	/* No CLOSE_ON_FREE: the descriptor is the master's. */
	l->ev = evconnlistener_new(
	    f->base, NULL, NULL, LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (l->ev != NULL)
		l->bound = evhttp_bind_listener(f->http, l->ev);
	if (l->bound == NULL) {
		if (l->ev != NULL)
			evconnlistener_free(l->ev);
		free(l);
		return hf_fail(e, HF_ENOMEM, "listener");
	}
	evconnlistener_set_error_cb(l->ev, accept_failed);
	evtimer_assign(&l->retry, f->base, accept_again, l);
	LIST_INSERT_HEAD(&f->listeners, l, entry);
	LIST_INSERT_HEAD(&listeners, l, all_entry);
	return 0;
}

/* Out of descriptors: the socket stays readable, so rest instead of spinning.
 * 'arg' is evhttp's, which is why the listener is looked up. */
static void
accept_failed(struct evconnlistener *ev, void *arg)
{
	static struct hf_log_limit limit;
	struct timeval rest = { 0, 100000 };
	int err = errno;
	struct hf_listener *l;

	(void)arg;
	hf_log_limited(
	    &limit, 1000, HF_LOG_ERROR, "front: accept-failed errno=%d", err);
	if (err != EMFILE && err != ENFILE && err != ENOMEM && err != ENOBUFS)
		return;
	LIST_FOREACH (l, &listeners, all_entry) {
		if (l->ev != ev)
			continue;
		evconnlistener_disable(ev);
		evtimer_add(&l->retry, &rest);
	}
}

static void
accept_again(evutil_socket_t fd, short what, void *arg)
{
	struct hf_listener *l = arg;

	(void)fd;
	(void)what;
	evconnlistener_enable(l->ev);
}

/* Its address stays known: connections that were accepted before are told by
 * it whether they came in over loopback. */
static void
listener_stop(struct hf_listener *l)
{
	if (l->bound == NULL)
		return;
	evtimer_del(&l->retry);
	evhttp_del_accept_socket(l->front->http, l->bound);
	l->bound = NULL;
	l->ev = NULL;
}

static void
listener_free(struct hf_listener *l)
{
	listener_stop(l);
	LIST_REMOVE(l, entry);
	LIST_REMOVE(l, all_entry);
	free(l);
}

static void
work(evutil_socket_t fd, short what, void *arg)
{
	struct hf_front *f = arg;
	struct hf_conn *c;
	struct hf_sink *s;

	(void)fd;
	(void)what;
	while ((c = TAILQ_FIRST(&f->conn_todo)) != NULL ||
	    !TAILQ_EMPTY(&f->sink_todo)) {
		if (c != NULL) {
			TAILQ_REMOVE(&f->conn_todo, c, todo_entry);
			hf_conn_work(c);
		} else {
			s = TAILQ_FIRST(&f->sink_todo);
			TAILQ_REMOVE(&f->sink_todo, s, todo_entry);
			hf_sink_work(s);
		}
	}
}

/* Clients that left are let go a few a pass of the loop, since that may close
 * their providers' connections and more: when hundreds leave at once the
 * others must not wait for all of it.  A timer, unlike an event that is made
 * active, lets the loop look at its sockets in between. */
static void
leave(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval now = { 0, 0 };
	struct hf_front *f = arg;
	struct hf_sink *s;

	(void)fd;
	(void)what;
	for (int i = 0; i < LEAVERS_A_PASS || f->closing; i++) {
		s = TAILQ_FIRST(&f->leavers);
		if (s == NULL)
			return;
		hf_sink_tell_gone(s);
	}
	evtimer_add(f->leave, &now);
}

static void
hold(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	hf_conn_hold(arg);
}

void
hf_front_drain(struct hf_front *f)
{
	struct hf_listener *l;
	struct hf_conn *c, *next;

	f->draining = true;
	LIST_FOREACH (l, &f->listeners, entry)
		listener_stop(l);
	for (c = LIST_FIRST(&f->conns); c != NULL; c = next) {
		next = LIST_NEXT(c, entry);
		hf_conn_drain(c);
	}
}

unsigned
hf_front_in_flight(const struct hf_front *f)
{
	unsigned n = f->in_flight + !TAILQ_EMPTY(&f->adoptees);
	const struct hf_conn *c;

	LIST_FOREACH (c, &f->conns, entry)
		n += hf_conn_reading(c);
	return n;
}

/* Connections close as if their clients had left, so that whoever serves them
 * lets go; nothing is called after this returns. */
void
hf_front_free(struct hf_front *f)
{
	struct hf_listener *l;
	struct hf_conn *c, *next;
	struct hf_sink *s;

	if (f == NULL)
		return;
	f->closing = true;
	while ((l = LIST_FIRST(&f->listeners)) != NULL)
		listener_free(l);
	for (c = LIST_FIRST(&f->conns); c != NULL; c = next) {
		next = LIST_NEXT(c, entry);
		if ((c->todo & HF_CONN_ADOPT) != 0) {
			TAILQ_REMOVE(&f->conn_todo, c, todo_entry);
			hf_conn_work(c);
		}
		if (c->evcon != NULL)
			hf_conn_close(c);
	}
	leave(-1, 0, f);
	work(-1, 0, f);
	while ((s = LIST_FIRST(&f->sinks)) != NULL)
		hf_sink_free(s);
	hf_held_free(f);
	if (f->http != NULL)
		evhttp_free(f->http);
	if (f->work != NULL)
		event_free(f->work);
	if (f->accepted != NULL)
		event_free(f->accepted);
	if (f->leave != NULL)
		event_free(f->leave);
	free(f);
}

static void
say(int severity, const char *text)
{
	static struct hf_log_limit limit;

	if (severity >= EVENT_LOG_WARN)
		hf_log_limited(&limit, 1000, HF_LOG_WARN,
		    "front: libevent-says text=\"%s\"", text);
}

/* libevent's own answer would be exit(1), which hides the cause. */
static void
say_fatal(int code)
{
	(void)code;
	hf_check_failed("libevent gave up", __FILE__, __LINE__);
}
