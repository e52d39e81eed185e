/*
 * The raw peer: see peer.h.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>

#include "tests/unit/peer.h"

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/util.h>

#include "base/check.h"

#define DEADLINE_S 10

int
peer_listen(int backlog, int *port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t size = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &size), 0);
	*port = ntohs(sin.sin_port);
	return fd;
}

static void
readable(evutil_socket_t fd, short what, void *arg)
{
	struct peer *p = arg;
	char buf[65536];
	ssize_t n = recv(fd, buf, sizeof(buf), 0);

	(void)what;
	if (n > 0) {
		hf_buf_put(&p->in, buf, (size_t)n);
		return;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	p->eof = true;
	p->error = n < 0 ? errno : 0;
	peer_read(p, false);
}

struct peer *
peer_adopt(struct event_base *base, int fd)
{
	struct peer *p = hf_xcalloc(1, sizeof(*p));

	p->base = base;
	p->fd = fd;
	hf_buf_init(&p->in, HF_BUF_NOCAP);
	evutil_make_socket_nonblocking(fd);
	p->ev = event_new(base, fd, EV_READ | EV_PERSIST, readable, p);
	peer_read(p, true);
	return p;
}

struct peer *
peer_dial(struct event_base *base, int port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return peer_adopt(base, fd);
}

static bool
can_accept(void *arg)
{
	int *fd = arg;

	fd[1] = accept4(fd[0], NULL, NULL, SOCK_CLOEXEC);
	return fd[1] >= 0;
}

struct peer *
peer_accept(struct event_base *base, int listen_fd)
{
	int fd[2] = { listen_fd, -1 };

	evutil_make_socket_nonblocking(listen_fd);
	peer_until(base, can_accept, fd, "a connection to accept");
	return peer_adopt(base, fd[1]);
}

void
peer_read(struct peer *p, bool on)
{
	if (on && !p->reading)
		event_add(p->ev, NULL);
	else if (!on && p->reading)
		event_del(p->ev);
	p->reading = on;
}

struct sending {
	struct peer *p;
	const char *bytes;
	size_t size;
};

static bool
all_sent(void *arg)
{
	struct sending *s = arg;
	ssize_t n = send(s->p->fd, s->bytes, s->size, MSG_NOSIGNAL);

	if (n > 0) {
		s->bytes += n;
		s->size -= (size_t)n;
	}
	return s->size == 0 || (n < 0 && errno != EAGAIN);
}

void
peer_send(struct peer *p, const char *bytes, size_t size)
{
	struct sending s = { p, bytes, size };

	peer_until(p->base, all_sent, &s, "bytes to be sent");
}

void
peer_puts(struct peer *p, const char *z)
{
	peer_send(p, z, strlen(z));
}

void
peer_half_close(struct peer *p)
{
	shutdown(p->fd, SHUT_WR);
}

void
peer_close(struct peer *p)
{
	event_free(p->ev);
	close(p->fd);
	hf_buf_free(&p->in);
	free(p);
}

void
peer_reset(struct peer *p)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	peer_close(p);
}

static void
tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(*(int *)arg)++;
}

/* The tick only lets conditions that no event announces be looked at again,
 * and ends a wait that would never end. */
void
peer_until(struct event_base *base, peer_cond cond, void *arg, const char *what)
{
	struct timeval tv = { 0, 2000 };
	int ticks = 0;
	struct event *t = event_new(base, -1, EV_PERSIST, tick, &ticks);

	event_add(t, &tv);
	while (!cond(arg) && ticks < DEADLINE_S * 500)
		event_base_loop(base, EVLOOP_ONCE);
	event_free(t);
	if (ticks >= DEADLINE_S * 500)
		fail_msg("no %s within %d s", what, DEADLINE_S);
}

static bool
at_eof(void *arg)
{
	return ((struct peer *)arg)->eof;
}

void
peer_until_eof(struct peer *p)
{
	peer_until(p->base, at_eof, p, "end of connection");
}

bool
peer_has(const struct peer *p, const char *text)
{
	return p->in.size > 0 &&
	    memmem(p->in.data, p->in.size, text, strlen(text)) != NULL;
}

struct wanted {
	struct peer *p;
	const char *text;
	size_t size;
};

static bool
text_came(void *arg)
{
	struct wanted *w = arg;

	return peer_has(w->p, w->text);
}

void
peer_until_text(struct peer *p, const char *text)
{
	struct wanted w = { p, text, 0 };

	peer_until(p->base, text_came, &w, text);
}

static bool
size_came(void *arg)
{
	struct wanted *w = arg;

	return w->p->in.size >= w->size;
}

void
peer_until_size(struct peer *p, size_t size)
{
	struct wanted w = { p, NULL, size };

	peer_until(p->base, size_came, &w, "bytes");
}

/* Size of the chunked body at 'b', 0 while it is incomplete. */
static size_t
chunked_size(const char *b, size_t size, struct hf_buf *body)
{
	size_t at = 0, n;
	char *end;

	for (;;) {
		const char *lf = memmem(b + at, size - at, "\r\n", 2);

		if (lf == NULL)
			return 0;
		n = strtoul(b + at, &end, 16);
		assert_ptr_equal(end, lf);
		at = (size_t)(lf - b) + 2;
		if (size - at < n + 2)
			return 0;
		if (body != NULL)
			hf_buf_put(body, b + at, n);
		at += n;
		assert_memory_equal(b + at, "\r\n", 2);
		at += 2;
		if (n == 0)
			return at;
	}
}

struct response {
	struct peer *p;
	bool head;
	struct hf_buf *body;
	int status;
	size_t size;
};

static bool
response_came(void *arg)
{
	struct response *r = arg;
	struct hf_buf *in = &r->p->in;
	char *end = in->size == 0 ? NULL :
				    memmem(in->data, in->size, "\r\n\r\n", 4),
	     *cl;
	size_t head, n;

	if (end == NULL)
		return false;
	head = (size_t)(end - in->data) + 4;
	r->status = atoi(in->data + 9);
	*end = '\0';
	cl = strcasestr(in->data, "\r\nContent-Length:");
	n = cl == NULL ? 0 : strtoul(cl + 17, NULL, 10);
	if (r->head || r->status == 204 || r->status == 304) {
		r->size = head;
	} else if (strcasestr(in->data, "\r\nTransfer-Encoding: chunked")) {
		if (r->body != NULL)
			hf_buf_reset(r->body);
		n = chunked_size(in->data + head, in->size - head, r->body);
		r->size = n == 0 ? 0 : head + n;
	} else if (cl != NULL) {
		r->size = in->size < head + n ? 0 : head + n;
		if (r->size > 0 && r->body != NULL)
			hf_buf_put(r->body, in->data + head, n);
	} else {
		r->size = r->p->eof ? in->size : 0;
		if (r->size > 0 && r->body != NULL)
			hf_buf_put(r->body, in->data + head, r->size - head);
	}
	*end = '\r';
	return r->size > 0;
}

int
peer_response(struct peer *p, bool head, struct hf_buf *body)
{
	struct response r = { p, head, body, 0, 0 };

	peer_until(p->base, response_came, &r, "whole response");
	hf_buf_consume(&p->in, r.size);
	return r.status;
}

void
peer_drop(struct peer *p)
{
	hf_buf_reset(&p->in);
}
