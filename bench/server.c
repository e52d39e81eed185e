/*
 * HTTP/1.1 over bufferevents: keep-alive, Content-Length and chunked request
 * bodies, no pipelining.  A connection is freed by a deferred event, never
 * inside its own callback.
 */
#include <config.h>

#include "bench/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <event2/util.h>

#include "base/check.h"

#define BACKLOG 4096
#define LISTEN_FLAGS (LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC)
#define MAX_HEAD (64 * 1024)
#define MAX_BODY ((size_t)64 * 1024 * 1024)

enum reading {
	READ_HEAD,
	READ_BODY,
	READ_CHUNK_SIZE,
	READ_CHUNK,
	READ_CHUNK_END,
	READ_TRAILER,
	ANSWERING,
	CLOSING
};

struct conn {
	struct hf_sreq rq; /* first: see conn_of() */
	struct hf_server *server;
	struct bufferevent *bev;
	struct event *timer;  /* hf_sreq_after() */
	struct event *reaper; /* deferred free */
	void (*after)(struct hf_sreq *rq);
	enum reading reading;
	bool close_after; /* the client asked for it */
	bool reset;	  /* CLOSING: by RST */
	size_t need;	  /* of body or chunk */
	char *head;	  /* NUL-terminated, CRLF lines */
	struct hf_buf body;
	struct conn *next, **prev;
};

struct hf_server {
	struct event_base *base;
	struct evconnlistener *listener; /* NULL: refuses */
	struct event *resume;
	int fd; /* keeps the port meanwhile */
	struct sockaddr_storage addr;
	socklen_t addr_len;
	hf_sreq_fn fn;
	void *arg;
	unsigned port;
	struct conn *conns;
};

static struct conn *
conn_of(struct hf_sreq *rq)
{
	return hf_container_of(rq, struct conn, rq);
}

static void
conn_free(struct conn *c)
{
	if (c->next != NULL)
		c->next->prev = c->prev;
	*c->prev = c->next;
	if (c->reading == ANSWERING && c->rq.gone != NULL)
		c->rq.gone(&c->rq);
	if (c->bev != NULL)
		bufferevent_free(c->bev);
	event_free(c->timer);
	event_free(c->reaper);
	free(c->head);
	hf_buf_free(&c->body);
	free(c);
}

static void
on_reap(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	conn_free(arg);
}

static void
conn_finish(struct conn *c)
{
	int fd;
	struct linger hard = { .l_onoff = 1, .l_linger = 0 };

	if (c->bev == NULL)
		return;
	fd = bufferevent_getfd(c->bev);
	if (c->reset)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	bufferevent_disable(c->bev, EV_READ | EV_WRITE);
	event_del(c->timer);
	event_active(c->reaper, EV_TIMEOUT, 0);
	c->reading = CLOSING;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;

	(void)fd;
	(void)what;
	if (c->reading == ANSWERING)
		c->after(&c->rq);
}

void
hf_sreq_after(struct hf_sreq *rq, unsigned ms, void (*fn)(struct hf_sreq *rq))
{
	struct conn *c = conn_of(rq);
	struct timeval tv = { .tv_sec = ms / 1000,
		.tv_usec = (suseconds_t)(ms % 1000) * 1000 };

	c->after = fn;
	event_add(c->timer, &tv);
}

/* --- reading ------------------------------------------------------------ */

static struct hf_str
head_value(const char *head, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = strstr(head, "\r\n"); p != NULL;
	     p = strstr(p, "\r\n")) {
		const char *v, *end;

		p += 2;
		if (strncasecmp(p, name, n) != 0 || p[n] != ':')
			continue;
		v = p + n + 1;
		v += strspn(v, " \t");
		end = v + strcspn(v, "\r\n");
		while (end > v && (end[-1] == ' ' || end[-1] == '\t'))
			end--;
		return (struct hf_str){ v, (size_t)(end - v) };
	}
	return HF_STR_NONE;
}

unsigned
hf_sreq_port(struct hf_sreq *rq)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	if (getpeername(bufferevent_getfd(conn_of(rq)->bev),
		(struct sockaddr *)&ss, &len) != 0)
		return 0;
	return ss.ss_family == AF_INET6 ?
	    ntohs(((struct sockaddr_in6 *)&ss)->sin6_port) :
	    ntohs(((struct sockaddr_in *)&ss)->sin_port);
}

struct hf_str
hf_sreq_header(struct hf_sreq *rq, const char *name)
{
	return head_value(conn_of(rq)->head, name);
}

static void
refuse(struct conn *c, int status)
{
	c->reading = ANSWERING;
	c->close_after = true;
	hf_sreq_reply(
	    &c->rq, status, "", "text/plain", HF_STR("bad request\n"));
}

static void
hand_over(struct conn *c)
{
	c->reading = ANSWERING;
	c->rq.body = hf_buf_str(&c->body);
	if (c->rq.body.p == NULL)
		c->rq.body = HF_STR("");
	c->server->fn(c->server->arg, &c->rq);
}

/* "METHOD PATH HTTP/1.x"; false: refused. */
static bool
parse_head(struct conn *c)
{
	char *sp1 = strchr(c->head, ' ');
	char *sp2 = sp1 == NULL ? NULL : strchr(sp1 + 1, ' ');
	char *eol = strstr(c->head, "\r\n");
	struct hf_str v;

	if (sp2 == NULL || eol == NULL || sp2 > eol ||
	    strncmp(sp2 + 1, "HTTP/1.", 7) != 0)
		return false;
	c->rq.method = (struct hf_str){ c->head, (size_t)(sp1 - c->head) };
	c->rq.path = (struct hf_str){ sp1 + 1, strcspn(sp1 + 1, " ?") };
	c->rq.query = HF_STR_NONE;
	if (c->rq.path.p[c->rq.path.size] == '?')
		c->rq.query =
		    (struct hf_str){ c->rq.path.p + c->rq.path.size + 1,
			    strcspn(c->rq.path.p + c->rq.path.size + 1, " ") };
	v = head_value(c->head, "Connection");
	c->close_after =
	    (v.size == 5 && strncasecmp(v.p, "close", 5) == 0) || sp2[8] == '0';
	hf_buf_free(&c->body);
	hf_buf_init(&c->body, MAX_BODY);
	c->need = 0;
	v = head_value(c->head, "Expect");
	if (v.p != NULL && c->reading == READ_HEAD)
		bufferevent_write(c->bev, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	v = head_value(c->head, "Transfer-Encoding");
	if (v.p != NULL) {
		c->reading = READ_CHUNK_SIZE;
		return v.size == 7 && strncasecmp(v.p, "chunked", 7) == 0;
	}
	v = head_value(c->head, "Content-Length");
	if (v.p != NULL) {
		char *end;
		unsigned long long n = strtoull(v.p, &end, 10);

		if (end != v.p + v.size || n > MAX_BODY)
			return false;
		c->need = (size_t)n;
	}
	c->reading = READ_BODY;
	return true;
}

static bool
read_head(struct conn *c, struct evbuffer *in)
{
	struct evbuffer_ptr at = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	size_t size;

	if (at.pos < 0) {
		if (evbuffer_get_length(in) > MAX_HEAD)
			refuse(c, 431);
		return false;
	}
	size = (size_t)at.pos + 4;
	free(c->head);
	c->head = hf_xcalloc(1, size + 1);
	evbuffer_remove(in, c->head, size);
	if (strlen(c->head) != size || !parse_head(c)) {
		refuse(c, 400);
		return false;
	}
	return true;
}

static bool
read_bytes(struct conn *c, struct evbuffer *in)
{
	size_t have = evbuffer_get_length(in);
	size_t n = have < c->need ? have : c->need;
	char *to = hf_buf_reserve(&c->body, n);

	if (to == NULL) {
		refuse(c, 413);
		return false;
	}
	evbuffer_remove(in, to, n);
	c->need -= n;
	return c->need == 0;
}

static bool
read_chunk_line(struct conn *c, struct evbuffer *in)
{
	char *line = evbuffer_readln(in, NULL, EVBUFFER_EOL_CRLF_STRICT);
	bool ok = true;
	char *end;

	if (line == NULL)
		return false;
	if (c->reading == READ_CHUNK_END) {
		ok = line[0] == '\0';
		c->reading = READ_CHUNK_SIZE;
	} else if (c->reading == READ_TRAILER) {
		if (line[0] == '\0') {
			free(line);
			hand_over(c);
			return false;
		}
	} else {
		unsigned long long n = strtoull(line, &end, 16);

		ok = end != line && n <= MAX_BODY;
		c->need = (size_t)n;
		c->reading = n == 0 ? READ_TRAILER : READ_CHUNK;
	}
	free(line);
	if (!ok)
		refuse(c, 400);
	return ok;
}

static void
on_read(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	bool more = true;

	while (more) {
		switch (c->reading) {
		case READ_HEAD:
			more = read_head(c, in);
			break;
		case READ_BODY:
			if (!read_bytes(c, in))
				return;
			hand_over(c);
			return;
		case READ_CHUNK_SIZE:
		case READ_CHUNK_END:
		case READ_TRAILER:
			more = read_chunk_line(c, in);
			break;
		case READ_CHUNK:
			more = read_bytes(c, in);
			if (more)
				c->reading = READ_CHUNK_END;
			break;
		case ANSWERING:
		case CLOSING:
			return;
		}
	}
}

static void
on_event(struct bufferevent *bev, short what, void *arg)
{
	struct conn *c = arg;

	(void)bev;
	(void)what;
	if (c->reading == ANSWERING && c->rq.gone != NULL)
		c->rq.gone(&c->rq);
	conn_finish(c);
}

static void
on_written(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;

	(void)bev;
	if (c->reading == CLOSING)
		conn_finish(c);
}

static void
on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa,
    int len, void *arg)
{
	struct hf_server *s = arg;
	struct conn *c = hf_xcalloc(1, sizeof(*c));
	int one = 1;

	(void)l;
	(void)sa;
	(void)len;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->server = s;
	c->bev = bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE);
	c->timer = evtimer_new(s->base, on_timer, c);
	c->reaper = event_new(s->base, -1, 0, on_reap, c);
	HF_CHECK(c->bev != NULL && c->timer != NULL && c->reaper != NULL);
	c->next = s->conns;
	c->prev = &s->conns;
	if (c->next != NULL)
		c->next->prev = &c->next;
	s->conns = c;
	bufferevent_setcb(c->bev, on_read, on_written, on_event, c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

/* --- answering ---------------------------------------------------------- */

static const char *
status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} t[] = {
		{ 200, "OK" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 408, "Request Timeout" },
		{ 413, "Content Too Large" },
		{ 429, "Too Many Requests" },
		{ 500, "Internal Server Error" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
	};

	for (unsigned i = 0; i < hf_countof(t); i++)
		if (t[i].status == status)
			return t[i].text;
	return "Status";
}

/* The answer is complete: on to the next request of the connection. */
static void
answered(struct conn *c)
{
	event_del(c->timer);
	c->rq = (struct hf_sreq){ 0 };
	if (c->close_after) {
		hf_sreq_close(&c->rq, false);
		return;
	}
	c->reading = READ_HEAD;
	/* Bytes of the next request may be there already. */
	if (evbuffer_get_length(bufferevent_get_input(c->bev)) > 0)
		bufferevent_trigger(c->bev, EV_READ,
		    BEV_TRIG_DEFER_CALLBACKS | BEV_TRIG_IGNORE_WATERMARKS);
}

void
hf_sreq_reply(struct hf_sreq *rq, int status, const char *headers,
    const char *content_type, struct hf_str body)
{
	struct conn *c = conn_of(rq);
	struct evbuffer *out = bufferevent_get_output(c->bev);

	evbuffer_add_printf(out,
	    "HTTP/1.1 %d %s\r\n%sContent-Type: %s\r\n"
	    "Content-Length: %zu\r\n%s\r\n",
	    status, status_text(status), headers, content_type, body.size,
	    c->close_after ? "Connection: close\r\n" : "");
	if (c->rq.method.size != 4 || memcmp(c->rq.method.p, "HEAD", 4) != 0)
		evbuffer_add(out, body.p, body.size);
	answered(c);
}

void
hf_sreq_start(struct hf_sreq *rq, int status, const char *headers,
    const char *content_type)
{
	struct conn *c = conn_of(rq);

	evbuffer_add_printf(bufferevent_get_output(c->bev),
	    "HTTP/1.1 %d %s\r\n%sContent-Type: %s\r\n"
	    "Transfer-Encoding: chunked\r\n%s\r\n",
	    status, status_text(status), headers, content_type,
	    c->close_after ? "Connection: close\r\n" : "");
}

void
hf_sreq_chunk(struct hf_sreq *rq, struct hf_str bytes)
{
	struct evbuffer *out = bufferevent_get_output(conn_of(rq)->bev);

	if (bytes.size == 0)
		return;
	evbuffer_add_printf(out, "%zx\r\n", bytes.size);
	evbuffer_add(out, bytes.p, bytes.size);
	evbuffer_add(out, "\r\n", 2);
}

void
hf_sreq_end(struct hf_sreq *rq)
{
	struct conn *c = conn_of(rq);

	evbuffer_add(bufferevent_get_output(c->bev), "0\r\n\r\n", 5);
	answered(c);
}

void
hf_sreq_close(struct hf_sreq *rq, bool reset)
{
	struct conn *c = conn_of(rq);

	event_del(c->timer);
	c->reading = CLOSING;
	c->reset = reset;
	if (evbuffer_get_length(bufferevent_get_output(c->bev)) == 0)
		conn_finish(c);
}

/* --- life --------------------------------------------------------------- */

/* "ADDR:PORT"; libevent's parser does not take port 0. */
static bool
parse_addr(const char *addr, struct sockaddr_storage *ss, int *len)
{
	const char *colon = strrchr(addr, ':');
	char host[80], *end;
	unsigned long port;

	if (colon == NULL || colon[1] == '\0' ||
	    (size_t)(colon - addr) >= sizeof(host))
		return false;
	port = strtoul(colon + 1, &end, 10);
	memcpy(host, addr, (size_t)(colon - addr));
	host[colon - addr] = '\0';
	if (*end != '\0' || port > 65535 ||
	    evutil_parse_sockaddr_port(host, (struct sockaddr *)ss, len) != 0)
		return false;
	if (ss->ss_family == AF_INET6)
		((struct sockaddr_in6 *)ss)->sin6_port = htons((uint16_t)port);
	else
		((struct sockaddr_in *)ss)->sin_port = htons((uint16_t)port);
	return true;
}

static void
on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct hf_server *s = arg;

	(void)fd;
	(void)what;
	s->listener = evconnlistener_new(
	    s->base, on_accept, s, LISTEN_FLAGS, BACKLOG, s->fd);
	HF_CHECK(s->listener != NULL);
	s->fd = -1;
}

void
hf_server_refuse(struct hf_server *s, unsigned ms)
{
	struct timeval tv = { .tv_sec = ms / 1000,
		.tv_usec = (suseconds_t)(ms % 1000) * 1000 };
	int one = 1;

	if (s->listener != NULL) {
		evconnlistener_free(s->listener);
		s->listener = NULL;
		s->fd = socket(s->addr.ss_family,
		    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		HF_CHECK(s->fd >= 0);
		setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		/* Bound but not listening: nobody else gets the port. */
		HF_CHECK(
		    bind(s->fd, (struct sockaddr *)&s->addr, s->addr_len) == 0);
	}
	event_del(s->resume);
	if (ms > 0)
		event_add(s->resume, &tv);
}

int
hf_server_new(struct hf_server **out, struct event_base *base, const char *addr,
    hf_sreq_fn fn, void *arg, struct hf_error *e)
{
	struct sockaddr_storage ss;
	int len = sizeof(ss);
	socklen_t slen = sizeof(ss);
	struct hf_server *s;

	*out = NULL;
	if (!parse_addr(addr, &ss, &len))
		return hf_fail(e, HF_EINVAL, "%s: expected ADDRESS:PORT", addr);
	s = hf_xcalloc(1, sizeof(*s));
	s->base = base;
	s->fn = fn;
	s->arg = arg;
	s->fd = -1;
	s->listener = evconnlistener_new_bind(base, on_accept, s,
	    LISTEN_FLAGS | LEV_OPT_REUSEABLE, BACKLOG, (struct sockaddr *)&ss,
	    len);
	if (s->listener == NULL) {
		free(s);
		return hf_fail_errno(e, "listen at %s", addr);
	}
	if (getsockname(evconnlistener_get_fd(s->listener),
		(struct sockaddr *)&ss, &slen) == 0)
		s->port = ss.ss_family == AF_INET6 ?
		    ntohs(((struct sockaddr_in6 *)&ss)->sin6_port) :
		    ntohs(((struct sockaddr_in *)&ss)->sin_port);
	s->addr = ss;
	s->addr_len = slen;
	s->resume = evtimer_new(base, on_resume, s);
	HF_CHECK(s->resume != NULL);
	*out = s;
	return 0;
}

unsigned
hf_server_port(const struct hf_server *s)
{
	return s->port;
}

void
hf_server_free(struct hf_server *s)
{
	if (s == NULL)
		return;
	if (s->listener != NULL)
		evconnlistener_free(s->listener);
	else
		close(s->fd);
	event_free(s->resume);
	while (s->conns != NULL)
		conn_free(s->conns);
	free(s);
}
