/*
 * The front room on real sockets: a raw client speaks to it over loopback,
 * all on one event loop.  After every insult a normal request must be served.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/log.h"
#include "gateway/front/front.h"
#include "tests/unit/peer.h"

#define H "Host: x\r\n"
#define PING "GET /ping HTTP/1.1\r\n" H "\r\n"

/* --- a small gateway --- */

struct world {
	struct event_base *base;
	struct hf_front *front;
	struct hf_shm shm;
	struct hf_conf_gateway gw;
	int listen_fd, port;
	struct hf_sink *held; /* of /hold, not finished yet */
	struct hf_req *held_rq;
	unsigned n_hold, n_gone, n_drained, n_handled;
	bool no_watch;
	bool loopback;
};

static void
gone(void *arg)
{
	struct world *w = arg;

	w->n_gone++;
	w->held = NULL;
}

static void
drained(void *arg)
{
	struct world *w = arg;

	w->n_drained++;
}

static void
on_ping(void *arg, struct hf_req *rq, struct hf_sink *s)
{
	struct world *w = arg;

	w->n_handled++;
	w->loopback = rq->loopback;
	hf_sink_reply(s, 200, NULL, 0, "text/plain", HF_STR("pong"));
}

static void
on_echo(void *arg, struct hf_req *rq, struct hf_sink *s)
{
	struct world *w = arg;
	struct hf_header h[2] = {
		{ "X-Seen", hf_req_header(rq, "x-seen") },
		{ "X-Rest", rq->rest },
	};

	w->n_handled++;
	hf_sink_reply(s, 200, h, 2, "text/plain", rq->body);
}

/* Writes its stream within the handler. */
static void
on_stream(void *arg, struct hf_req *rq, struct hf_sink *s)
{
	(void)arg;
	(void)rq;
	hf_sink_start(s, 200, NULL, 0, "text/event-stream");
	hf_sink_write(s, HF_STR("one "));
	hf_sink_write(s, HF_STR("two "));
	hf_sink_write(s, HF_STR("three"));
	hf_sink_end(s);
}

/* Leaves the answer to the test. */
static void
on_hold(void *arg, struct hf_req *rq, struct hf_sink *s)
{
	struct world *w = arg;

	w->n_hold++;
	w->held = s;
	w->held_rq = rq;
	if (!w->no_watch)
		hf_sink_watch(s, gone, drained, w);
}

static void
on_inject(void *arg, struct hf_req *rq, struct hf_sink *s)
{
	struct hf_header h[] = {
		{ "X-Good", HF_STR("fine") },
		{ "X-Crlf", HF_STR("a\r\nX-Evil: 1") },
		{ "X-Lf", HF_STR("a\nX-Evil: 1") },
		{ "X-Nul", HF_STR("a\0b") },
		{ "X-Ctl",
		    HF_STR("a\x01"
			   "b") },
		{ "X Bad", HF_STR("a") },
		{ "X-Bad\r\nX-Evil", HF_STR("a") },
	};

	(void)arg;
	(void)rq;
	hf_sink_reply(s, 200, h, hf_countof(h), "text/plain", HF_STR("ok"));
}

static void on_storm(void *arg, struct hf_req *rq, struct hf_sink *s);

static bool
authorize(
    void *arg, struct hf_req *rq, struct hf_sink *s, const struct hf_path *p)
{
	(void)arg;
	(void)p;
	if (!hf_str_is(hf_req_header(rq, "authorization"), "no"))
		return true;
	hf_sink_reply(s, 401, NULL, 0, "text/plain", HF_STR("who?"));
	return false;
}

static void
refuse(void *arg, struct hf_req *rq, struct hf_sink *s, int status,
    const char *code, const char *message)
{
	char text[200];

	(void)arg;
	(void)rq;
	snprintf(text, sizeof(text), "{\"code\":\"%s\",\"message\":\"%s\"}",
	    code, message);
	hf_sink_reply(s, status, NULL, 0, "application/json", hf_str(text));
}

static const struct hf_path paths[] = {
	{ "/ping", HF_GET | HF_HEAD, true, on_ping },
	{ "/echo", HF_POST, false, on_echo },
	{ "/echo", HF_DELETE, false, on_ping },
	{ "/echo/*", HF_POST | HF_GET, false, on_echo },
	{ "/echo/deep/*", HF_POST, false, on_ping },
	{ "/stream", HF_GET | HF_HEAD, false, on_stream },
	{ "/hold", HF_GET | HF_POST, false, on_hold },
	{ "/inject", HF_GET, false, on_inject },
	{ "/storm", HF_GET | HF_POST | HF_HEAD, false, on_storm },
};

static int
setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct hf_front_conf c = { .path = paths,
		.n_path = hf_countof(paths),
		.arg = w,
		.authorize = authorize,
		.refuse = refuse };
	struct hf_error e;

	hf_log_set_level(HF_LOG_ERROR);
	assert_non_null(w);
	assert_int_equal(hf_shm_create(&w->shm, NULL, &e), 0);
	w->gw = (struct hf_conf_gateway){ .body_soft = 100000,
		.body_hard = 200000,
		.header_timeout_ms = 10000,
		.body_timeout_ms = 10000,
		.keepalive_timeout_ms = 20000,
		.write_timeout_ms = 20000 };
	c.gw = &w->gw;
	c.shm = &w->shm;
	w->base = event_base_new();
	assert_int_equal(hf_front_new(&w->front, w->base, &c, &e), 0);
	w->listen_fd = peer_listen(128, &w->port);
	assert_int_equal(hf_front_listen(w->front, w->listen_fd, &e), 0);
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	hf_front_free(w->front);
	/* Every accepted connection was counted out again. */
	assert_int_equal(hf_shm_sum(&w->shm, HF_C_connections), 0);
	close(w->listen_fd);
	event_base_free(w->base);
	hf_shm_unmap(&w->shm);
	free(w);
	return 0;
}

static void
check_alive(struct world *w)
{
	struct peer *p = peer_dial(w->base, w->port);
	struct hf_buf body;

	hf_buf_init(&body, HF_BUF_NOCAP);
	peer_puts(p, PING);
	assert_int_equal(peer_response(p, false, &body), 200);
	assert_true(hf_str_is(hf_buf_str(&body), "pong"));
	hf_buf_free(&body);
	peer_close(p);
}

static bool
is_held(void *arg)
{
	return ((struct world *)arg)->held != NULL;
}

static bool
is_gone(void *arg)
{
	return ((struct world *)arg)->n_gone > 0;
}

/* --- the strict table --- */

struct insult {
	const char *name;
	int status;
	const char *bytes;
	size_t size;
};
#define I(name, status, z)                     \
	{                                      \
		name, status, z, sizeof(z) - 1 \
	}
#define POST "POST /echo HTTP/1.1\r\n"

static const struct insult insults[] = {
	I("no Host", 400, "GET /ping HTTP/1.1\r\n\r\n"),
	I("two Hosts", 400, "GET /ping HTTP/1.1\r\n" H H "\r\n"),
	I("different Content-Lengths", 400,
	    POST H "Content-Length: 1\r\nContent-Length: 2\r\n\r\nabc"),
	I("Content-Length +5", 400, POST H "Content-Length: +5\r\n\r\nabcde"),
	I("CL and TE", 400,
	    POST H "Content-Length: 5\r\n"
		   "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	I("chunked", 411,
	    POST H "Transfer-Encoding: chunked\r\n\r\n"
		   "5\r\nabcde\r\n0\r\n\r\n"),
	I("chunked with extension", 413,
	    POST H
	    "Transfer-Encoding: chunked\r\n\r\n5;x=1\r\nabcde\r\n0\r\n\r\n"),
	I("chunk size 0x5", 411,
	    POST H "Transfer-Encoding: chunked\r\n\r\n"
		   "0x5\r\nabcde\r\n0\r\n\r\n"),
	I("TE with a space", 400,
	    POST H "Transfer-Encoding : chunked\r\n\r\n"
		   "5\r\nabcde\r\n0\r\n\r\n" PING),
	I("gzip, chunked", 400,
	    POST H "Transfer-Encoding: gzip, chunked\r\n"
		   "\r\n5\r\nabcde\r\n0\r\n\r\n" PING),
	I("VT chunked", 400,
	    POST H "Transfer-Encoding: \x0b"
		   "chunked\r\n"
		   "\r\n5\r\nabcde\r\n0\r\n\r\n" PING),
	I("obs-fold", 400, "GET /ping HTTP/1.1\r\n" H "A: b\r\n c\r\n\r\n"),
	I("NUL in a value", 400, "GET /ping HTTP/1.1\r\n" H "A: b\0c\r\n\r\n"),
	I("space in the URI", 400, "GET /pi ng HTTP/1.1\r\n" H "\r\n"),
	I("%zz in the URI", 400, "GET /%zz HTTP/1.1\r\n" H "\r\n"),
	I("%00 in the URI", 400, "GET /echo/%00 HTTP/1.1\r\n" H "\r\n"),
	I(".. in the URI", 400, "GET /echo/../ping HTTP/1.1\r\n" H "\r\n"),
	I("%2e%2e in the URI", 400, "GET /echo/%2e%2e/x HTTP/1.1\r\n" H "\r\n"),
	I("//host/path", 400, "GET //h/ping HTTP/1.1\r\n" H "\r\n"),
	I("absolute URI", 400, "GET http://h/ping HTTP/1.1\r\n" H "\r\n"),
	I("bare LF", 400, "GET /ping HTTP/1.1\nHost: x\n\n"),
	I("HTTP/1.9", 400, "GET /ping HTTP/1.9\r\n" H "\r\n"),
	I("HTTP/3.0", 400, "GET /ping HTTP/3.0\r\n" H "\r\n"),
	I("bad header name", 400, "GET /ping HTTP/1.1\r\n" H "A b: c\r\n\r\n"),
	I("HEAD with a body", 400,
	    "HEAD /ping HTTP/1.1\r\n" H "Content-Length: 41\r\n\r\n" PING),
	I("unknown method", 501, "BREW /ping HTTP/1.1\r\n" H "\r\n"),
	I("CONNECT", 400, "CONNECT h:1 HTTP/1.1\r\n" H "\r\n"),
	I("garbage", 400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n"),
	I("empty line first", 400, "\r\n" PING),
	I("Expect of another kind", 417,
	    POST H "Expect: 200-ok\r\nContent-Length: 5\r\n\r\nabcde"),
};

static void
test_insults(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < hf_countof(insults); i++) {
		struct peer *p = peer_dial(w->base, w->port);
		unsigned before = w->n_handled;
		int status;

		peer_send(p, insults[i].bytes, insults[i].size);
		/* One answer, then the connection is closed: whatever was
		 * pipelined behind is not served. */
		peer_until_eof(p);
		status = p->in.size < 12 ? 0 : atoi(p->in.data + 9);
		if (status != insults[i].status)
			fail_msg("%s: %d\n%.300s", insults[i].name, status,
			    p->in.size == 0 ? "" : p->in.data);
		if (w->n_handled != before || peer_has(p, "pong"))
			fail_msg("%s: served", insults[i].name);
		peer_close(p);
		check_alive(w);
	}
}

/* The same bytes one at a time. */
static void
test_insults_dribbled(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < hf_countof(insults); i++) {
		struct peer *p = peer_dial(w->base, w->port);
		int status;

		for (size_t k = 0; k < insults[i].size && !p->eof; k++) {
			peer_send(p, insults[i].bytes + k, 1);
			event_base_loop(w->base, EVLOOP_NONBLOCK);
		}
		peer_until_eof(p);
		status = p->in.size < 12 ? 0 : atoi(p->in.data + 9);
		if (status != insults[i].status)
			fail_msg("%s: %d", insults[i].name, status);
		assert_false(peer_has(p, "pong"));
		peer_close(p);
	}
	check_alive(w);
}

/* --- routing --- */

static int
ask(struct world *w, const char *request, struct hf_buf *body)
{
	struct peer *p = peer_dial(w->base, w->port);
	int status;

	hf_buf_reset(body);
	peer_puts(p, request);
	status = peer_response(p, false, body);
	peer_close(p);
	return status;
}

static void
test_routes(void **state)
{
	struct world *w = *state;
	struct peer *p;
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	assert_int_equal(ask(w, PING, &b), 200);
	assert_true(w->loopback);
	assert_int_equal(ask(w, "GET /none HTTP/1.1\r\n" H "\r\n", &b), 404);
	assert_true(hf_str_is(hf_buf_str(&b),
	    "{\"code\":\"not_found\",\"message\":\"no such path\"}"));
	assert_int_equal(
	    ask(w, POST H "Content-Length: 3\r\n\r\nabc", &b), 200);
	assert_true(hf_str_is(hf_buf_str(&b), "abc"));
	assert_int_equal(ask(w,
			     POST H "Authorization: no\r\n"
				    "Content-Length: 3\r\n\r\nabc",
			     &b),
	    401);
	assert_int_equal(
	    ask(w, "GET /ping HTTP/1.1\r\n" H "Authorization: no\r\n\r\n", &b),
	    200); /* open */
	assert_int_equal(ask(w, "DELETE /echo HTTP/1.1\r\n" H "\r\n", &b), 200);
	/* The longest prefix wins. */
	assert_int_equal(
	    ask(w,
		"POST /echo/deep/x HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n",
		&b),
	    200);
	assert_true(hf_str_is(hf_buf_str(&b), "pong"));
	assert_int_equal(
	    ask(w, "GET /echo/deep/x HTTP/1.1\r\n" H "\r\n", &b), 405);
	/* Routed as written, decoded afterwards. */
	assert_int_equal(ask(w, "GET /%70ing HTTP/1.1\r\n" H "\r\n", &b), 404);
	p = peer_dial(w->base, w->port);
	peer_puts(p, "GET /echo/a%20b?q HTTP/1.1\r\n" H "\r\n");
	peer_until_text(p, "X-Rest: a b\r\n");
	peer_close(p);
	p = peer_dial(w->base, w->port);
	peer_puts(p, "PATCH /echo HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n");
	peer_until_text(p, "Allow: POST, DELETE\r\n");
	assert_int_equal(peer_response(p, false, NULL), 405);
	peer_close(p);
	hf_buf_free(&b);
}

/* HEAD says what GET would, without the body, and keeps the connection in
 * step. */
static void
test_head_then_get(void **state)
{
	struct world *w = *state;
	struct peer *p = peer_dial(w->base, w->port);
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	peer_puts(p, "HEAD /ping HTTP/1.1\r\n" H "\r\n");
	peer_until_text(p, "Content-Length: 4\r\n");
	assert_int_equal(peer_response(p, true, NULL), 200);
	peer_puts(p, "HEAD /stream HTTP/1.1\r\n" H "\r\n");
	assert_int_equal(peer_response(p, true, NULL), 200);
	peer_puts(p, PING);
	assert_int_equal(peer_response(p, false, &b), 200);
	assert_true(hf_str_is(hf_buf_str(&b), "pong"));
	assert_int_equal(p->in.size, 0);
	hf_buf_free(&b);
	peer_close(p);
}

static void
test_pipelining(void **state)
{
	struct world *w = *state;
	struct peer *p = peer_dial(w->base, w->port);
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	peer_puts(p,
	    POST H "Content-Length: 1\r\n\r\n1"
		   "GET /stream HTTP/1.1\r\n" H "\r\n" POST H
		   "Content-Length: 1\r\n\r\n3" PING);
	assert_int_equal(peer_response(p, false, &b), 200);
	assert_true(hf_str_is(hf_buf_str(&b), "1"));
	assert_int_equal(peer_response(p, false, &b), 200);
	assert_true(hf_str_is(hf_buf_str(&b), "one two three"));
	hf_buf_reset(&b);
	assert_int_equal(peer_response(p, false, &b), 200);
	assert_true(hf_str_is(hf_buf_str(&b), "3"));
	hf_buf_reset(&b);
	assert_int_equal(peer_response(p, false, &b), 200);
	assert_true(hf_str_is(hf_buf_str(&b), "pong"));
	/* An insult in the pipeline is found there too. */
	peer_puts(
	    p, PING "GET /ping HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n" PING);
	assert_int_equal(peer_response(p, false, NULL), 200);
	assert_int_equal(peer_response(p, false, NULL), 400);
	peer_until_eof(p);
	assert_int_equal(p->in.size, 0);
	hf_buf_free(&b);
	peer_close(p);
}

/* Bodies beyond evhttp's 4 KB are read ahead, each to its own end. */
static void
test_pipelined_bodies(void **state)
{
	static const size_t size[] = { 30000, 4096, 1, 70001 };
	struct world *w = *state;
	struct peer *p = peer_dial(w->base, w->port);
	struct hf_buf b, rq;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_init(&rq, HF_BUF_NOCAP);
	for (size_t i = 0; i < hf_countof(size); i++) {
		hf_buf_printf(
		    &rq, POST H "Content-Length: %zu\r\n\r\n", size[i]);
		for (size_t k = 0; k < size[i]; k++)
			hf_buf_putc(&rq, (char)('a' + i));
	}
	hf_buf_puts(&rq, PING);
	peer_puts(p, rq.data);
	for (size_t i = 0; i < hf_countof(size); i++) {
		hf_buf_reset(&b);
		assert_int_equal(peer_response(p, false, &b), 200);
		assert_int_equal(b.size, size[i]);
		assert_int_equal(b.data[0], 'a' + (int)i);
		assert_int_equal(b.data[b.size - 1], 'a' + (int)i);
	}
	assert_int_equal(peer_response(p, false, NULL), 200);
	hf_buf_free(&b);
	hf_buf_free(&rq);
	peer_close(p);
}

/* evhttp would call exit(1) here if reading were enabled while a handler is
 * pending. */
static void
test_pipelined_while_pending(void **state)
{
	struct world *w = *state;
	struct peer *p = peer_dial(w->base, w->port);

	peer_puts(p, "GET /hold HTTP/1.1\r\n" H "\r\n");
	peer_until(w->base, is_held, w, "held request");
	peer_puts(p, "G");
	check_alive(w);
	peer_puts(p, "ET /ping HTTP/1.1\r\n" H "\r\n");
	check_alive(w);
	assert_int_equal(w->n_gone, 0);
	hf_sink_start(w->held, 200, NULL, 0, "text/plain");
	hf_sink_write(w->held, HF_STR("a"));
	peer_until_text(p, "a\r\n");
	peer_puts(p, PING);
	check_alive(w);
	hf_sink_end(w->held);
	assert_int_equal(peer_response(p, false, NULL), 200);
	assert_int_equal(peer_response(p, false, NULL), 200);
	assert_int_equal(peer_response(p, false, NULL), 200);
	peer_close(p);
}

/* --- clients that leave --- */

static void
hold(struct world *w, struct peer **p, const char *request)
{
	w->held = NULL;
	*p = peer_dial(w->base, w->port);
	peer_puts(*p, request);
	peer_until(w->base, is_held, w, "held request");
}

static void
test_gone(void **state)
{
	struct world *w = *state;
	struct peer *p;

	/* FIN, RST and a half-close while nothing was sent yet. */
	hold(w, &p, "GET /hold HTTP/1.1\r\n" H "\r\n");
	peer_close(p);
	peer_until(w->base, is_gone, w, "gone after FIN");
	w->n_gone = 0;
	hold(w, &p, "GET /hold HTTP/1.1\r\n" H "\r\n");
	peer_reset(p);
	peer_until(w->base, is_gone, w, "gone after RST");
	w->n_gone = 0;
	hold(w, &p, "GET /hold HTTP/1.1\r\n" H "\r\n");
	peer_half_close(p);
	peer_until(w->base, is_gone, w, "gone after half-close");
	peer_until_eof(p);
	peer_close(p);
	/* In a stream. */
	w->n_gone = 0;
	hold(w, &p, "GET /hold HTTP/1.1\r\n" H "\r\n");
	hf_sink_start(w->held, 200, NULL, 0, "text/plain");
	hf_sink_write(w->held, HF_STR("a"));
	peer_until_text(p, "a\r\n");
	peer_reset(p);
	peer_until(w->base, is_gone, w, "gone in a stream");
	assert_int_equal(hf_front_in_flight(w->front), 0);
	check_alive(w);
	assert_int_equal(w->n_gone, 1);
}

/* Left before the handler watches. */
static void
test_gone_before_watch(void **state)
{
	struct world *w = *state;
	struct peer *p;

	w->no_watch = true;
	hold(w, &p, "GET /hold HTTP/1.1\r\n" H "\r\n");
	peer_reset(p);
	check_alive(w);
	check_alive(w);
	assert_int_equal(w->n_gone, 0);
	hf_sink_watch(w->held, gone, drained, w);
	peer_until(w->base, is_gone, w, "gone");
	/* Who never watches may answer into the void. */
	hold(w, &p, "GET /hold HTTP/1.1\r\n" H "\r\n");
	peer_reset(p);
	check_alive(w);
	hf_sink_reply(w->held, 200, NULL, 0, "text/plain", HF_STR("x"));
	check_alive(w);
	hold(w, &p, "GET /hold HTTP/1.1\r\n" H "\r\n");
	peer_reset(p);
	check_alive(w);
	hf_sink_start(w->held, 200, NULL, 0, "text/plain");
	hf_sink_write(w->held, HF_STR("x"));
	check_alive(w);
	hf_sink_write(w->held, HF_STR("x"));
	check_alive(w);
	hf_sink_end(w->held);
	check_alive(w);
	assert_int_equal(hf_front_in_flight(w->front), 0);
}

static void
count(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(*(unsigned *)arg)++;
}

/* A reset that nobody waits for must not keep the loop awake: libevent would
 * report it over and over to an event for EV_CLOSED that never fires. */
static void
test_no_spin(void **state)
{
	struct world *w = *state;
	struct timeval tv = { 0, 50000 };
	unsigned ticks = 0, turns = 0;
	struct event *t = event_new(w->base, -1, 0, count, &ticks);
	struct peer *p;

	w->no_watch = true;
	hold(w, &p, "GET /hold HTTP/1.1\r\n" H "\r\n");
	peer_reset(p);
	check_alive(w);
	event_add(t, &tv);
	for (; ticks == 0; turns++)
		event_base_loop(w->base, EVLOOP_ONCE);
	event_free(t);
	assert_true(turns < 10);
	hf_sink_abort(w->held);
	check_alive(w);
}

static void
test_half_close_answered(void **state)
{
	struct world *w = *state;
	struct peer *p;
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	w->no_watch = true;
	hold(w, &p, "GET /hold HTTP/1.1\r\n" H "\r\n");
	peer_half_close(p);
	check_alive(w);
	hf_sink_reply(w->held, 200, NULL, 0, "text/plain", HF_STR("late"));
	assert_int_equal(peer_response(p, false, &b), 200);
	assert_true(hf_str_is(hf_buf_str(&b), "late"));
	peer_until_eof(p);
	peer_close(p);
	p = peer_dial(w->base, w->port);
	peer_puts(p, PING);
	peer_half_close(p);
	assert_int_equal(peer_response(p, false, NULL), 200);
	peer_until_eof(p);
	peer_close(p);
	hf_buf_free(&b);
}

/* --- streams --- */

static void
test_stream(void **state)
{
	struct world *w = *state;
	struct peer *p;
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hold(w, &p, "GET /hold HTTP/1.1\r\n" H "\r\n");
	assert_false(hf_sink_started(w->held));
	hf_sink_start(w->held, 200, NULL, 0, "text/plain");
	assert_true(hf_sink_started(w->held));
	peer_until_text(p, "\r\n\r\n"); /* headers leave alone */
	assert_false(peer_has(p, "a\r\n"));
	hf_sink_write(w->held, HF_STR("a"));
	hf_sink_write(w->held, HF_STR("b"));
	peer_until_text(p, "2\r\nab\r\n"); /* one chunk of one pass */
	hf_sink_write(w->held, HF_STR("c"));
	peer_until_text(p, "1\r\nc\r\n");
	assert_int_equal(hf_sink_backlog(w->held), 0);
	hf_sink_write(w->held, HF_STR("d"));
	hf_sink_end(w->held);
	assert_int_equal(peer_response(p, false, &b), 200);
	assert_true(hf_str_is(hf_buf_str(&b), "abcd"));
	peer_puts(p, PING); /* kept alive */
	assert_int_equal(peer_response(p, false, NULL), 200);
	peer_close(p);
	hf_buf_free(&b);
}

static void
test_http10(void **state)
{
	struct world *w = *state;
	struct peer *p;
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	p = peer_dial(w->base, w->port);
	peer_puts(p, "GET /ping HTTP/1.0\r\n\r\n");
	peer_until_eof(p);
	assert_true(peer_has(p, "HTTP/1.0 200 OK") && peer_has(p, "pong"));
	peer_close(p);
	/* A stream ends with the connection, whatever was asked for. */
	p = peer_dial(w->base, w->port);
	peer_puts(p, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	assert_int_equal(peer_response(p, false, &b), 200);
	assert_true(hf_str_is(hf_buf_str(&b), "one two three"));
	peer_close(p);
	/* Kept alive where the length is known. */
	p = peer_dial(w->base, w->port);
	peer_puts(p, "GET /ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	assert_int_equal(peer_response(p, false, NULL), 200);
	peer_puts(p, "GET /ping HTTP/1.0\r\n\r\n");
	assert_int_equal(peer_response(p, false, NULL), 200);
	peer_until_eof(p);
	peer_close(p);
	/* Aborted: not a clean end, which would look complete. */
	hold(w, &p, "GET /hold HTTP/1.0\r\n\r\n");
	hf_sink_start(w->held, 200, NULL, 0, "text/plain");
	hf_sink_write(w->held, HF_STR("part"));
	peer_until_text(p, "part");
	hf_sink_abort(w->held);
	peer_until_eof(p);
	assert_int_equal(p->error, ECONNRESET);
	peer_close(p);
	hf_buf_free(&b);
}

static void
test_abort(void **state)
{
	struct world *w = *state;
	struct peer *p;

	hold(w, &p, "GET /hold HTTP/1.1\r\n" H "\r\n");
	hf_sink_start(w->held, 200, NULL, 0, "text/plain");
	hf_sink_write(w->held, HF_STR("first"));
	peer_until_text(p, "5\r\nfirst\r\n");
	hf_sink_write(w->held, HF_STR("last words"));
	hf_sink_abort(w->held);
	peer_until_eof(p);
	assert_true(peer_has(p, "a\r\nlast words\r\n"));
	assert_false(peer_has(p, "\r\n0\r\n"));
	peer_close(p);
	/* Before anything was sent. */
	hold(w, &p, "GET /hold HTTP/1.1\r\n" H "\r\n");
	hf_sink_abort(w->held);
	peer_until_eof(p);
	assert_int_equal(p->in.size, 0);
	peer_close(p);
	check_alive(w);
	assert_int_equal(w->n_gone, 0);
	assert_int_equal(hf_front_in_flight(w->front), 0);
}

static const char lump[65536];

static bool
pour(void *arg)
{
	struct world *w = arg;

	return w->n_drained > 0;
}

/* 200 MB to a client that reads only now and then: the producer stops when
 * the backlog passes 64 KiB and goes on when told. */
static void
test_back_pressure(void **state)
{
	struct world *w = *state;
	struct peer *p;
	const size_t total = 200u * 1000 * 1000;
	size_t sent = 0, worst = 0, got = 0;
	unsigned stalls = 0;

	hold(w, &p, "GET /hold HTTP/1.0\r\n\r\n");
	peer_read(p, false);
	hf_sink_start(w->held, 200, NULL, 0, "text/plain");
	while (sent < total) {
		while (sent < total && hf_sink_backlog(w->held) <= 65536) {
			size_t n = total - sent < sizeof(lump) ? total - sent :
								 sizeof(lump);

			w->n_drained = 0;
			hf_sink_write(w->held, (struct hf_str){ lump, n });
			sent += n;
			if (hf_sink_backlog(w->held) > worst)
				worst = hf_sink_backlog(w->held);
			event_base_loop(w->base, EVLOOP_NONBLOCK);
		}
		if (hf_sink_backlog(w->held) <= 65536)
			break;
		stalls++;
		peer_read(p, true);
		peer_until(w->base, pour, w, "drained");
		assert_true(hf_sink_backlog(w->held) < 16384);
		peer_read(p, false);
		got += p->in.size;
		peer_drop(p);
	}
	hf_sink_end(w->held);
	peer_read(p, true);
	peer_until_eof(p);
	got += p->in.size;
	assert_true(got > total && got < total + 500); /* and the head */
	assert_true(stalls > 1);
	assert_true(worst <= 2 * 65536);
	assert_int_equal(p->error, 0);
	peer_close(p);
}

/* --- limits and deadlines --- */

static void
post(struct peer *p, size_t size, const char *extra)
{
	char head[200], *body = malloc(size);

	assert_non_null(body);
	memset(body, 'x', size);
	snprintf(head, sizeof(head), POST H "%sContent-Length: %zu\r\n\r\n",
	    extra, size);
	peer_puts(p, head);
	peer_send(p, body, size);
	free(body);
}

static void
test_body_limits(void **state)
{
	struct world *w = *state;
	struct peer *p = peer_dial(w->base, w->port);
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	post(p, 100000, "");
	assert_int_equal(peer_response(p, false, &b), 200);
	assert_int_equal(b.size, 100000);
	hf_buf_reset(&b);
	post(p, 100001, "");
	assert_int_equal(peer_response(p, false, &b), 413);
	assert_non_null(strstr(b.data, "request_too_large"));
	post(p, 5, ""); /* still in step */
	assert_int_equal(peer_response(p, false, NULL), 200);
	post(p, 200001, ""); /* evhttp's own */
	assert_int_equal(peer_response(p, false, NULL), 413);
	peer_until_eof(p);
	peer_close(p);
	check_alive(w);
	hf_buf_free(&b);
}

static void
test_header_limit(void **state)
{
	struct world *w = *state;
	struct peer *p = peer_dial(w->base, w->port);
	char line[1024];

	memset(line, 'a', sizeof(line));
	line[1] = ':';
	memcpy(line + sizeof(line) - 3, "\r\n", 3);
	peer_puts(p, "GET /ping HTTP/1.1\r\n" H);
	for (int i = 0; i < 15; i++)
		peer_puts(p, line);
	peer_puts(p, "\r\n");
	assert_int_equal(peer_response(p, false, NULL), 200);
	peer_puts(p, "GET /ping HTTP/1.1\r\n" H);
	for (int i = 0; i < 17; i++)
		peer_puts(p, line);
	peer_puts(p, "\r\n");
	assert_int_equal(peer_response(p, false, NULL), 400);
	peer_close(p);
	check_alive(w);
}

static void
test_expect(void **state)
{
	struct world *w = *state;
	struct peer *p = peer_dial(w->base, w->port);

	peer_puts(
	    p, POST H "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
	peer_until_text(p, "HTTP/1.1 100 Continue\r\n\r\n");
	peer_drop(p);
	peer_puts(p, "abc");
	assert_int_equal(peer_response(p, false, NULL), 200);
	/* A stream after it is not cut short by what evhttp left behind. */
	w->held = NULL;
	peer_puts(p,
	    "POST /hold HTTP/1.1\r\n" H
	    "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
	peer_until_text(p, "HTTP/1.1 100 Continue\r\n\r\n");
	peer_drop(p);
	peer_puts(p, "abc");
	peer_until(w->base, is_held, w, "held request");
	assert_true(hf_str_is(w->held_rq->body, "abc"));
	hf_sink_start(w->held, 200, NULL, 0, "text/plain");
	for (int i = 0; i < 5; i++) {
		hf_sink_write(w->held, HF_STR("more"));
		check_alive(w);
	}
	hf_sink_end(w->held);
	assert_int_equal(peer_response(p, false, NULL), 200);
	peer_close(p);
}

static bool
dribble(void *arg)
{
	struct peer *p = arg;

	if (!p->eof)
		(void)!write(p->fd, "a", 1);
	return p->eof;
}

/* A byte now and then does not buy time. */
static void
test_slowloris(void **state)
{
	struct world *w = *state;
	struct peer *p = peer_dial(w->base, w->port);

	w->gw.header_timeout_ms = 100;
	peer_puts(p, "GET /ping HTTP/1.1\r\n" H "A: ");
	peer_until(w->base, dribble, p, "end of the slow head");
	peer_close(p);
	w->gw.header_timeout_ms = 10000;
	w->gw.body_timeout_ms = 100;
	p = peer_dial(w->base, w->port);
	peer_puts(p, POST H "Content-Length: 100000\r\n\r\n");
	peer_until(w->base, dribble, p, "end of the slow body");
	peer_close(p);
	/* One that says nothing at all. */
	w->gw.header_timeout_ms = 50;
	p = peer_dial(w->base, w->port);
	peer_until_eof(p);
	peer_close(p);
	w->gw.header_timeout_ms = 10000;
	/* One that is kept alive for nothing. */
	w->gw.keepalive_timeout_ms = 50;
	p = peer_dial(w->base, w->port);
	peer_puts(p, PING);
	assert_int_equal(peer_response(p, false, NULL), 200);
	peer_until_eof(p);
	assert_int_equal(p->in.size, 0);
	peer_close(p);
	check_alive(w);
}

/* A pending handler has no deadline here; a client that takes nothing has. */
static void
test_write_stall(void **state)
{
	struct world *w = *state;
	struct peer *p;

	w->gw.write_timeout_ms = 100;
	w->gw.header_timeout_ms = w->gw.body_timeout_ms = 50;
	hold(w, &p, "GET /hold HTTP/1.1\r\n" H "\r\n");
	peer_read(p, false);
	hf_sink_start(w->held, 200, NULL, 0, "text/plain");
	while (hf_sink_backlog(w->held) < 100000) {
		hf_sink_write(w->held, (struct hf_str){ lump, sizeof(lump) });
		event_base_loop(w->base, EVLOOP_NONBLOCK);
	}
	peer_until(w->base, is_gone, w, "gone after the stall");
	peer_close(p);
	check_alive(w);
}

/* --- headers, counters, draining --- */

static void
test_injection(void **state)
{
	struct world *w = *state;
	struct peer *p = peer_dial(w->base, w->port);

	peer_puts(p, "GET /inject HTTP/1.1\r\n" H "\r\n");
	peer_until_text(p, "ok");
	assert_true(peer_has(p, "X-Good: fine\r\n"));
	assert_false(peer_has(p, "Evil"));
	assert_false(peer_has(p, "X-Nul"));
	assert_false(peer_has(p, "X-Ctl"));
	assert_false(peer_has(p, "X Bad"));
	assert_int_equal(peer_response(p, false, NULL), 200);
	peer_close(p);
}

static void
test_counters(void **state)
{
	struct world *w = *state;
	struct peer *p = peer_dial(w->base, w->port);
	const struct hf_shm *m = &w->shm;

	peer_puts(p, POST H "Content-Length: 3\r\n\r\nabc");
	assert_int_equal(peer_response(p, false, NULL), 200);
	assert_int_equal(hf_shm_sum(m, HF_C_connections), 1);
	assert_int_equal(hf_shm_sum(m, HF_C_requests), 1);
	assert_int_equal(hf_shm_sum(m, HF_C_bytes_in), 3);
	assert_int_equal(hf_shm_sum(m, HF_C_bytes_out), 3);
	peer_puts(p, "GET /none HTTP/1.1\r\n" H "\r\n");
	assert_int_equal(peer_response(p, false, NULL), 404);
	assert_int_equal(hf_shm_sum(m, HF_C_requests_refused), 1);
	peer_close(p);
}

static void
test_drain(void **state)
{
	struct world *w = *state;
	struct peer *idle = peer_dial(w->base, w->port), *busy, *half, *late;

	peer_puts(idle, PING);
	assert_int_equal(peer_response(idle, false, NULL), 200);
	half = peer_dial(w->base, w->port);
	peer_puts(half, "GET /ping HTTP/1.1\r\n");
	hold(w, &busy, "GET /hold HTTP/1.1\r\n" H "\r\n");
	hf_sink_start(w->held, 200, NULL, 0, "text/plain");
	check_alive(w);
	assert_int_equal(hf_front_in_flight(w->front), 2);
	hf_front_drain(w->front);
	peer_until_eof(idle);
	/* What had begun is finished, then the connection ends. */
	peer_puts(half, H "\r\n");
	peer_until_text(half, "Connection: close\r\n");
	peer_until_eof(half);
	assert_true(peer_has(half, "pong"));
	hf_sink_write(w->held, HF_STR("whole"));
	hf_sink_end(w->held);
	peer_until_eof(busy);
	assert_true(peer_has(busy, "whole\r\n0\r\n\r\n"));
	assert_int_equal(hf_front_in_flight(w->front), 0);
	/* The listening socket is the master's: still open, not served. */
	late = peer_dial(w->base, w->port);
	peer_puts(late, PING);
	event_base_loop(w->base, EVLOOP_NONBLOCK);
	assert_int_equal(late->in.size, 0);
	assert_false(late->eof);
	peer_close(late);
	peer_close(idle);
	peer_close(busy);
	peer_close(half);
}

/* Freeing with everything under way leaks nothing and tells the handlers. */
static void
test_free_busy(void **state)
{
	struct world *w = *state;
	struct peer *p[4];

	p[0] = peer_dial(w->base, w->port); /* not accepted yet */
	hold(w, &p[1], "GET /hold HTTP/1.1\r\n" H "\r\n");
	hf_sink_start(w->held, 200, NULL, 0, "text/plain");
	hf_sink_write(w->held, HF_STR("x"));
	hold(w, &p[2],
	    "POST /hold HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc");
	p[3] = peer_dial(w->base, w->port);
	peer_puts(p[3], "GET /pi");
	check_alive(w);
	hf_front_free(w->front);
	w->front = NULL;
	assert_int_equal(w->n_gone, 2);
	for (int i = 0; i < 4; i++)
		peer_close(p[i]);
}

/* --- everything at once --- */

#define N_PEERS 24

/* A request that a stormy client made and that is not finished. */
struct pending {
	struct storm *storm;
	struct hf_sink *sink;
	unsigned slot;
};

struct storm {
	struct world *w;
	struct pending *pending[256];
	unsigned n_pending;
	uint64_t seed;
	unsigned n_begun, n_done;
};

static struct storm *storm; /* the handler of /hold reports here */

static unsigned
roll(struct storm *s, unsigned n)
{
	s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(s->seed >> 33) % n;
}

static void
drop_pending(struct pending *p)
{
	struct storm *s = p->storm;

	s->pending[p->slot] = s->pending[--s->n_pending];
	s->pending[p->slot]->slot = p->slot;
	s->n_done++;
	free(p);
}

static void
storm_gone(void *arg)
{
	drop_pending(arg);
}

static void
storm_drained(void *arg)
{
	struct pending *p = arg;

	hf_sink_write(p->sink, HF_STR("drained"));
}

static void
on_storm(void *arg, struct hf_req *rq, struct hf_sink *sink)
{
	struct storm *s = storm;
	struct pending *p;

	(void)arg;
	(void)rq;
	s->n_begun++;
	if (s->n_pending == hf_countof(s->pending) || roll(s, 4) == 0) {
		s->n_done++;
		hf_sink_reply(sink, 200, NULL, 0, "text/plain", HF_STR("x"));
		return;
	}
	p = calloc(1, sizeof(*p));
	assert_non_null(p);
	*p = (struct pending){ s, sink, s->n_pending };
	s->pending[s->n_pending++] = p;
	if (roll(s, 5) != 0)
		hf_sink_watch(sink, storm_gone, storm_drained, p);
}

/* Something happens on the server's side. */
static void
serve(struct storm *s)
{
	struct pending *p;
	struct hf_sink *k;

	if (s->n_pending == 0)
		return;
	p = s->pending[roll(s, s->n_pending)];
	k = p->sink;
	if (!hf_sink_started(k) && roll(s, 3) != 0) {
		if (roll(s, 2) == 0) {
			hf_sink_start(k, 200, NULL, 0, "text/plain");
			return;
		}
		drop_pending(p);
		hf_sink_reply(k, 200, NULL, 0, "text/plain", HF_STR("x"));
	} else if (!hf_sink_started(k) || roll(s, 20) == 0) {
		drop_pending(p);
		hf_sink_abort(k);
	} else if (roll(s, 4) == 0) {
		drop_pending(p);
		hf_sink_end(k);
	} else if (hf_sink_backlog(k) < 1000000) {
		hf_sink_write(k, (struct hf_str){ lump, roll(s, 65536) });
	}
}

/* Something happens on a client's side. */
static void
act(struct storm *s, struct peer **slot)
{
	static const char *const said[] = {
		PING,
		"GET /storm HTTP/1.1\r\n" H "\r\n",
		"POST /storm HTTP/1.1\r\n" H "Content-Length: 4\r\n\r\nabcd",
		"HEAD /storm HTTP/1.1\r\n" H "\r\n",
		"GET /storm HTTP/1.0\r\n\r\n",
		"GET /st",
		"\r\n",
		"CONNECT x:1 HTTP/1.1\r\n" H "\r\n",
		POST H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		POST H "Expect: 100-continue\r\nContent-Length: 4\r\n\r\n",
		POST H "Content-Length: 300000\r\n\r\nabc",
	};
	struct peer *p = *slot;
	const char *z = said[roll(s, hf_countof(said))];

	if (p == NULL) {
		*slot = peer_dial(s->w->base, s->w->port);
		return;
	}
	switch (roll(s, 30)) {
	case 0:
		peer_close(p);
		*slot = NULL;
		break;
	case 1:
		peer_reset(p);
		*slot = NULL;
		break;
	case 2:
		peer_half_close(p);
		break;
	case 3:
		if (!p->eof)
			peer_read(p, !p->reading);
		break;
	default:
		if (p->eof) {
			peer_close(p);
			*slot = NULL;
			break;
		}
		/* Now and then a piece too many. */
		if (roll(s, 8) == 0)
			(void)!send(p->fd, z, 1 + roll(s, (unsigned)strlen(z)),
			    MSG_NOSIGNAL);
		(void)!send(p->fd, z, strlen(z), MSG_NOSIGNAL);
		peer_drop(p);
	}
}

static bool
all_served(void *arg)
{
	struct storm *s = arg;

	while (s->n_pending > 0) {
		struct pending *p = s->pending[0];
		struct hf_sink *k = p->sink;

		drop_pending(p);
		hf_sink_abort(k);
	}
	return hf_front_in_flight(s->w->front) == 0;
}

/* Clients and handlers do anything in any order; the lifetimes hold (ASan),
 * every request that began is over in the end, and the front still serves. */
static void
test_storm(void **state)
{
	struct world *w = *state;
	struct storm s = { .w = w, .seed = 42 };
	struct peer *p[N_PEERS] = { NULL };

	storm = &s;
	for (int i = 0; i < 60000; i++) {
		if (roll(&s, 2) == 0)
			serve(&s);
		else
			act(&s, &p[roll(&s, N_PEERS)]);
		if (roll(&s, 3) == 0)
			event_base_loop(w->base, EVLOOP_NONBLOCK);
		if (i % 10000 == 0)
			check_alive(w);
	}
	for (int i = 0; i < N_PEERS; i++)
		if (p[i] != NULL)
			peer_close(p[i]);
	peer_until(w->base, all_served, &s, "end of the storm");
	assert_true(s.n_begun > 1000);
	assert_int_equal(s.n_begun, s.n_done);
	check_alive(w);
	storm = NULL;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_insults),
		TEST(test_insults_dribbled),
		TEST(test_routes),
		TEST(test_head_then_get),
		TEST(test_pipelining),
		TEST(test_pipelined_bodies),
		TEST(test_pipelined_while_pending),
		TEST(test_gone),
		TEST(test_gone_before_watch),
		TEST(test_no_spin),
		TEST(test_half_close_answered),
		TEST(test_stream),
		TEST(test_http10),
		TEST(test_abort),
		TEST(test_back_pressure),
		TEST(test_body_limits),
		TEST(test_header_limit),
		TEST(test_expect),
		TEST(test_slowloris),
		TEST(test_write_stall),
		TEST(test_injection),
		TEST(test_counters),
		TEST(test_drain),
		TEST(test_free_busy),
		TEST(test_storm),
	};

	return cmocka_run_group_tests_name("front", tests, NULL, NULL);
}
