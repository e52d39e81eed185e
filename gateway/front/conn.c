/*
 * One client connection: its life, deadlines, and the strict reading of its
 * bytes before evhttp parses them.  Loop thread.
 *
 *	FRESH --byte--> HEAD --empty line--> BODY --handler--> BUSY
 *	                 ^                                       |
 *	                 +-------byte------- IDLE <--response----+
 */
#include <config.h>

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/front/internal.h"

static void conn_timer(evutil_socket_t fd, short what, void *arg);
static void conn_closed(struct evhttp_connection *evcon, void *arg);
static void input_changed(
    struct evbuffer *b, const struct evbuffer_cb_info *info, void *arg);
static void output_changed(
    struct evbuffer *b, const struct evbuffer_cb_info *info, void *arg);

static void
enter(struct hf_conn *c, enum hf_conn_phase phase)
{
	c->phase = phase;
	c->since_us = hf_now_us();
	hf_conn_arm(c);
}

void
hf_conn_busy(struct hf_conn *c)
{
	c->moved_us = hf_now_us();
	enter(c, HF_CONN_BUSY);
}

/* evhttp asks for a bufferevent for a connection just accepted.  The socket
 * and evhttp's object follow later in its frame; adopt() takes them up. */
struct bufferevent *
hf_conn_make(struct event_base *base, void *front)
{
	struct hf_front *f = front;
	struct bufferevent *bev = bufferevent_socket_new(base, -1, 0);
	struct hf_conn *c;

	if (bev == NULL)
		return NULL;
	hf_conn_hold(f); /* the one before, if many are accepted in a row */
	c = hf_xcalloc(1, sizeof(*c));
	c->front = f;
	c->bev = bev;
	c->fd = -1;
	c->slot = HF_HOLD_NONE;
	bufferevent_incref(bev); /* until adopt() */
	LIST_INSERT_HEAD(&f->conns, c, entry);
	hf_conn_queue(c, HF_CONN_ADOPT);
	f->fresh = c;
	event_active(f->accepted, 0, 0);
	return bev;
}

void
hf_conn_queue(struct hf_conn *c, unsigned what)
{
	if (c->todo == 0)
		TAILQ_INSERT_TAIL(&c->front->conn_todo, c, todo_entry);
	c->todo |= what;
	if (!c->front->closing)
		event_active(c->front->work, 0, 0);
}

static bool
on_loopback_listener(const struct hf_front *f, int fd)
{
	struct sockaddr_storage ss;
	socklen_t size = sizeof(ss);
	const struct hf_listener *l;

	memset(&ss, 0, sizeof(ss));
	if (getsockname(fd, (struct sockaddr *)&ss, &size) < 0)
		return false;
	LIST_FOREACH (l, &f->listeners, entry)
		if (l->loopback && l->addr_size == size &&
		    memcmp(&l->addr, &ss, size) == 0)
			return true;
	return false;
}

/* evhttp has set the connection up, or failed and let go of it.  Its object
 * is the argument of the callbacks that it put on the bufferevent: 2.1 has no
 * other way to it before the first request. */
static struct evhttp_connection *
set_up(struct hf_conn *c)
{
	bufferevent_data_cb rd, wr;
	bufferevent_event_cb ev;
	void *arg;

	bufferevent_getcb(c->bev, &rd, &wr, &ev, &arg);
	c->fd = bufferevent_getfd(c->bev);
	return c->fd < 0 ? NULL : arg;
}

void
hf_conn_hold(struct hf_front *f)
{
	struct hf_conn *c = f->fresh;

	f->fresh = NULL;
	if (c != NULL && set_up(c) != NULL)
		hf_held_begin(c);
}

static void
adopt(struct hf_conn *c)
{
	struct bufferevent *bev = c->bev;
	struct evhttp_connection *evcon = set_up(c);
	struct hf_adoptee *a;
	bool fits = true;

	if (c->front->fresh == c)
		hf_conn_hold(c->front);
	if (evcon == NULL) {
		c->bev = NULL;
		LIST_REMOVE(c, entry);
		hf_conn_queue(c, HF_CONN_FREE);
		bufferevent_decref(bev);
		return;
	}
	c->evcon = evcon;
	bufferevent_decref(bev);
	evhttp_connection_set_closecb(c->evcon, conn_closed, c);
	bufferevent_set_timeouts(bev, NULL, NULL); /* ours hold */
	a = hf_held_adoptee(c->front, c->fd);
	if (a != NULL)
		fits = hf_held_adopt(c, a);
	c->loopback = on_loopback_listener(c->front, c->fd);
	hf_count(c->front->c.shm, HF_C_connections, 1);
	evbuffer_add_cb(bufferevent_get_input(bev), input_changed, c);
	evbuffer_add_cb(bufferevent_get_output(bev), output_changed, c);
	evtimer_assign(&c->timer, c->front->base, conn_timer, c);
	c->phase = HF_CONN_FRESH;
	c->since_us = hf_now_us();
	hf_conn_arm(c);
	hf_conn_open(c);
	if (!fits) {
		hf_conn_close(c);
		return;
	}
	if (c->adopted) {
		hf_conn_queue(c, HF_CONN_WRITE);
		hf_held_feed(c);
		if (c->evcon == NULL)
			return;
		if (c->phase == HF_CONN_FRESH)
			enter(c, HF_CONN_IDLE);
	}
	if (c->front->draining)
		hf_conn_drain(c);
}

void
hf_conn_work(struct hf_conn *c)
{
	unsigned todo = c->todo;

	c->todo = 0;
	if ((todo & HF_CONN_ADOPT) != 0)
		adopt(c);
	if ((todo & HF_CONN_WRITE) != 0 && c->bev != NULL)
		hf_conn_push(c);
	if ((todo & HF_CONN_READ) != 0)
		hf_conn_pull(c);
	if ((todo & HF_CONN_CLOSE) != 0)
		hf_conn_close(c);
	if ((todo & HF_CONN_FREE) != 0) {
		hf_http_head_free(c->head);
		free(c->head);
		free(c);
	}
}

/* evhttp is about to free its object; the socket is still open. */
static void
conn_closed(struct evhttp_connection *evcon, void *arg)
{
	struct hf_conn *c = arg;
	struct hf_front *f = c->front;

	(void)evcon;
	event_del(&c->io);
	if (c->sink != NULL)
		c->sink->lost = hf_conn_unsent(c);
	hf_held_end(c);
	if (c->adopted) {
		/* evhttp closes what stood for it. */
		shutdown(c->fd, SHUT_WR);
		close(c->fd);
	}
	evtimer_del(&c->timer);
	hf_count(f->c.shm, HF_C_connections, -1);
	LIST_REMOVE(c, entry);
	c->bev = NULL;
	c->evcon = NULL;
	if (c->sink != NULL)
		hf_sink_closed(c->sink);
	c->sink = NULL;
	hf_conn_queue(c, HF_CONN_FREE);
}

void
hf_conn_close(struct hf_conn *c)
{
	if (c->evcon != NULL)
		evhttp_connection_free(c->evcon);
}

/* evhttp calls from within hf_conn_pull(), or later for bytes that came with
 * the request before (pipelining, which hardly anybody does). */
struct hf_conn *
hf_conn_find(struct hf_front *f, struct evhttp_request *ev)
{
	struct evhttp_connection *evcon = evhttp_request_get_connection(ev);
	struct hf_conn *c = f->reading;

	if (c == NULL || c->evcon != evcon)
		LIST_FOREACH (c, &f->conns, entry)
			if (c->evcon == evcon)
				break;
	return c;
}

/* --- reading --- */

/* Feed the last 'size' bytes of the input to the head's reader. */
static void
feed(struct hf_conn *c, struct evbuffer *b, size_t size)
{
	struct evbuffer_iovec v[16];
	struct evbuffer_ptr at;
	size_t taken = 0;
	const size_t all = size;
	int n;

	evbuffer_ptr_set(
	    b, &at, evbuffer_get_length(b) - size, EVBUFFER_PTR_SET);
	while (size > 0 && !c->head->done) {
		size_t seen = 0;

		n = evbuffer_peek(b, (ev_ssize_t)size, &at, v, 16);
		n = n > 16 ? 16 : n;
		for (int i = 0; i < n && !c->head->done; i++) {
			size_t len = v[i].iov_len < size - seen ? v[i].iov_len :
								  size - seen;

			taken += hf_http_head_feed(
			    c->head, (struct hf_str){ v[i].iov_base, len });
			seen += len;
		}
		if (n <= 0 || seen == 0)
			break;
		size -= seen;
		evbuffer_ptr_set(b, &at, seen, EVBUFFER_PTR_ADD);
	}
	c->head_size += taken;
	if (c->head->done) {
		c->body_seen = (int64_t)(all - taken);
		enter(c, HF_CONN_BODY);
	}
}

static void
begin_head(struct hf_conn *c)
{
	if (c->head == NULL) {
		c->head = malloc(sizeof(*c->head));
		HF_CHECK(c->head != NULL);
	} else {
		hf_http_head_free(c->head);
	}
	hf_http_head_init(c->head);
	c->head_size = 0;
	enter(c, HF_CONN_HEAD);
}

void
hf_conn_deliver(struct hf_conn *c)
{
	c->front->reading = c;
	bufferevent_trigger(c->bev, EV_READ, 0);
	c->front->reading = NULL;
}

/* Bytes arrived; evhttp has not looked at them yet. */
static void
input_changed(
    struct evbuffer *b, const struct evbuffer_cb_info *info, void *arg)
{
	struct hf_conn *c = arg;

	if (info->n_added == 0 || c->bev == NULL)
		return;
	if (c->phase == HF_CONN_FRESH || c->phase == HF_CONN_IDLE)
		begin_head(c);
	if (c->phase == HF_CONN_HEAD)
		feed(c, b, info->n_added);
	else if (c->phase == HF_CONN_BODY)
		c->body_seen += (int64_t)info->n_added;
}

void
hf_conn_next(struct hf_conn *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);

	c->sink = NULL;
	c->last_size = c->head_size + (size_t)c->body_seen;
	enter(c, HF_CONN_IDLE);
	if (evbuffer_get_length(in) > 0) {
		begin_head(c);
		feed(c, in, evbuffer_get_length(in));
	}
	if (c->readable)
		hf_conn_queue(c, HF_CONN_READ);
}

/* Part of a request is here, or likely on its way. */
bool
hf_conn_reading(const struct hf_conn *c)
{
	return c->phase == HF_CONN_FRESH || c->phase == HF_CONN_HEAD ||
	    c->phase == HF_CONN_BODY;
}

/* An idle connection ends; a new one gets a second to send its request, which
 * will be answered with Connection: close. */
void
hf_conn_drain(struct hf_conn *c)
{
	int unread = 0;

	if (c->evcon == NULL)
		return; /* adopt() comes back here */
	if (c->phase == HF_CONN_IDLE &&
	    (ioctl(c->fd, FIONREAD, &unread) < 0 || unread == 0))
		hf_conn_close(c);
	else if (c->phase == HF_CONN_FRESH)
		hf_conn_arm(c);
}

/* --- writing --- */

static void
output_changed(
    struct evbuffer *b, const struct evbuffer_cb_info *info, void *arg)
{
	struct hf_conn *c = arg;

	(void)b;
	if (c->bev == NULL)
		return;
	if (info->orig_size == 0 && hf_conn_unsent(c) == info->n_added) {
		c->moved_us = hf_now_us();
		hf_conn_arm(c);
	}
	if (info->n_deleted > 0 && c->sink != NULL)
		hf_sink_progress(c->sink);
	if (info->n_added > 0 && (c->todo & HF_CONN_WRITE) == 0)
		hf_conn_queue(c, HF_CONN_WRITE);
}

/* --- deadlines --- */

/* When this connection must have moved on. */
static int64_t
deadline(const struct hf_conn *c)
{
	const struct hf_conf_gateway *gw = c->front->c.gw;
	int64_t ms = 0;

	switch (c->phase) {
	case HF_CONN_FRESH:
		ms = gw->header_timeout_ms;
		if (c->front->draining && ms > 1000)
			ms = 1000;
		break;
	case HF_CONN_HEAD:
		ms = gw->header_timeout_ms;
		break;
	case HF_CONN_BODY:
		ms = gw->body_timeout_ms;
		break;
	case HF_CONN_IDLE:
		ms = gw->keepalive_timeout_ms;
		break;
	case HF_CONN_BUSY:
		return c->moved_us + (int64_t)gw->write_timeout_ms * 1000;
	}
	return c->since_us + ms * 1000;
}

/* Has the client taken a byte since the timer last looked?  The kernel is
 * asked: it takes megabytes for a client that is slow, and then nothing more
 * from us for longer than a client may take nothing from it. */
static bool
client_takes(struct hf_conn *c, bool *waiting)
{
	uint64_t acked = c->acked;
	bool moved;

	if (!hf_tcp_acked(c->fd, &acked, waiting))
		*waiting = false;
	*waiting = *waiting || hf_conn_unsent(c) > 0;
	moved = acked != c->acked;
	c->acked = acked;
	return moved;
}

/* The deadline is here: does the client only take long? */
static bool
goes_on(struct hf_conn *c)
{
	bool waiting, moved;

	if (c->phase != HF_CONN_BUSY && c->phase != HF_CONN_IDLE)
		return false;
	moved = client_takes(c, &waiting);
	if (c->phase == HF_CONN_IDLE && (!waiting || !moved))
		return false;
	if (c->phase == HF_CONN_BUSY && waiting && !moved)
		return false;
	c->moved_us = hf_now_us();
	if (c->phase == HF_CONN_IDLE)
		c->since_us = c->moved_us; /* it still reads the last answer */
	return true;
}

/* The timer is moved only forward in time by itself: a deadline that became
 * later is found out when the earlier one fires. */
void
hf_conn_arm(struct hf_conn *c)
{
	int64_t due = deadline(c), wait;
	struct timeval tv;

	if (c->armed_us != 0 && c->armed_us <= due)
		return;
	wait = due - hf_now_us();
	if (wait < 0)
		wait = 0;
	tv = (struct timeval){ wait / 1000000, wait % 1000000 };
	c->armed_us = due;
	evtimer_add(&c->timer, &tv);
}

static void
conn_timer(evutil_socket_t fd, short what, void *arg)
{
	struct hf_conn *c = arg;
	int64_t due = deadline(c);

	(void)fd;
	(void)what;
	c->armed_us = 0;
	if (hf_now_us() < due || goes_on(c)) {
		hf_conn_arm(c);
		return;
	}
	if (c->phase != HF_CONN_IDLE)
		hf_log(HF_LOG_DEBUG, "front: deadline phase=%d", (int)c->phase);
	hf_conn_close(c);
}
