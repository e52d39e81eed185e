/*
 * Calls of providers against a scripted server on loopback: every way an
 * exchange can end, and that a POST is executed once per call.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/log.h"
#include "gateway/upstream/internal.h"
#include "tests/unit/peer.h"

struct world {
	struct event_base *base;
	struct hf_upstream *u;
	int listen_fd, port;
};

/* What a call reported. */
struct seen {
	struct world *w;
	struct hf_call *call;
	unsigned n_headers, n_data, n_done;
	int status;
	struct hf_buf headers, body;
	struct hf_call_result r;
	char detail[160];
	/* What to do from inside the callbacks. */
	bool cancel_in_headers, cancel_in_data, cancel_in_done;
	bool pause_in_data;
	struct seen *then; /* start this one from 'done' */
	bool fresh;	   /* not on a pooled connection */
};

static void start(
    struct seen *s, struct world *w, const char *host, const char *body);

static void
on_headers(void *arg, int status, struct hf_str headers)
{
	struct seen *s = arg;

	assert_int_equal(s->n_done, 0);
	s->n_headers++;
	s->status = status;
	hf_buf_putstr(&s->headers, headers);
	if (s->cancel_in_headers)
		hf_call_cancel(s->call);
}

static void
on_data(void *arg, struct hf_str bytes)
{
	struct seen *s = arg;

	assert_int_equal(s->n_headers, 1);
	assert_int_equal(s->n_done, 0);
	s->n_data++;
	hf_buf_putstr(&s->body, bytes);
	if (s->pause_in_data)
		hf_call_pause(s->call, true);
	if (s->cancel_in_data)
		hf_call_cancel(s->call);
}

static void
on_done(void *arg, const struct hf_call_result *r)
{
	struct seen *s = arg;

	s->n_done++;
	s->r = *r;
	if (s->cancel_in_done)
		hf_call_cancel(s->call);
	s->call = NULL;
	if (s->then != NULL)
		start(s->then, s->w, "127.0.0.1", "second");
}

static const struct hf_call_ops ops = { on_headers, on_data, on_done };

static void
fill(struct hf_http_request *rq, int port, const char *host, const char *body)
{
	hf_buf_init(&rq->url, 1000);
	hf_buf_init(&rq->headers, 1000);
	hf_buf_init(&rq->body, HF_BUF_NOCAP);
	hf_buf_printf(&rq->url, "http://%s:%d/v1/x", host, port);
	hf_buf_puts(&rq->headers,
	    "Content-Type: application/json\n"
	    "Authorization: Bearer k\n");
	if (body != NULL)
		hf_buf_puts(&rq->body, body);
}

static void
start_in(struct seen *s, struct world *w, const char *host, int port,
    const char *body, int connect_ms)
{
	struct hf_http_request rq;
	struct hf_error e;

	s->w = w;
	hf_buf_init(&s->headers, HF_BUF_NOCAP);
	hf_buf_init(&s->body, HF_BUF_NOCAP);
	fill(&rq, port, host, body);
	assert_int_equal(hf_upstream_start(w->u, &rq, connect_ms, s->fresh,
			     &ops, s, &s->call, &e),
	    0);
	/* The buffers moved, and nothing was reported yet. */
	assert_null(rq.body.data);
	assert_int_equal(s->n_headers + s->n_data + s->n_done, 0);
}

static void
start(struct seen *s, struct world *w, const char *host, const char *body)
{
	start_in(s, w, host, w->port, body, 5000);
}

static bool
is_done(void *arg)
{
	return ((struct seen *)arg)->n_done > 0;
}

static void
until_done(struct seen *s)
{
	peer_until(s->w->base, is_done, s, "end of the call");
	assert_int_equal(s->n_done, 1);
}

static bool
has_data(void *arg)
{
	return ((struct seen *)arg)->n_data > 0;
}

static bool
has_headers(void *arg)
{
	return ((struct seen *)arg)->n_headers > 0;
}

static void
forget(struct seen *s)
{
	hf_buf_free(&s->headers);
	hf_buf_free(&s->body);
	memset(s, 0, sizeof(*s));
}

static void
assert_failed(const struct seen *s, enum hf_class cls, const char *reason)
{
	assert_string_equal(s->r.reason, reason);
	assert_int_equal(s->r.cls, cls);
	assert_false(s->r.clean);
	assert_true(s->r.detail[0] != '\0');
}

static int
setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct hf_error e;

	hf_log_set_level(HF_LOG_ERROR);
	assert_non_null(w);
	/* Must be ignored. */
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("all_proxy", "http://127.0.0.1:1", 1);
	w->base = event_base_new();
	assert_int_equal(hf_upstream_new(&w->u, w->base, &e), 0);
	w->listen_fd = peer_listen(128, &w->port);
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	hf_upstream_free(w->u);
	/* What the resolver still owed. */
	event_base_loop(w->base, EVLOOP_NONBLOCK);
	close(w->listen_fd);
	event_base_free(w->base);
	free(w);
	return 0;
}

/* Wait for a whole request whose body is 'body'. */
static void
expect_request(struct peer *p, const char *body)
{
	char length[60];

	peer_until_text(p, "\r\n\r\n");
	snprintf(
	    length, sizeof(length), "Content-Length: %zu\r\n", strlen(body));
	assert_true(peer_has(p, length));
	peer_until_text(p, body);
}

/* --- exchanges that work --- */

static void
test_request_bytes(void **state)
{
	struct world *w = *state;
	struct seen s = { 0 };
	struct peer *p;
	char want[500];

	start(&s, w, "127.0.0.1", "{\"a\":1}");
	assert_int_equal(hf_upstream_in_flight(w->u), 1);
	p = peer_accept(w->base, w->listen_fd);
	expect_request(p, "{\"a\":1}");
	snprintf(want, sizeof(want),
	    "POST /v1/x HTTP/1.1\r\n"
	    "Host: 127.0.0.1:%d\r\nUser-Agent: holdfast/" PACKAGE_VERSION "\r\n"
	    "Accept: */*\r\nContent-Type: application/json\r\n"
	    "Authorization: Bearer k\r\nAccept-Encoding: identity\r\n"
	    "Content-Length: 7\r\n\r\n{\"a\":1}",
	    w->port);
	assert_string_equal(p->in.data, want);
	peer_puts(p,
	    "HTTP/1.1 100 Continue\r\nX-No: 1\r\n\r\n"
	    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
	    "HTTP/1.1 429 Too Many\r\nRetry-After: 3\r\nX-Two: 2\r\n"
	    "Content-Length: 4\r\n\r\nslow");
	until_done(&s);
	assert_int_equal(s.n_headers, 1);
	assert_int_equal(s.status, 429);
	assert_string_equal(s.headers.data,
	    "Retry-After: 3\r\nX-Two: 2\r\nContent-Length: 4\r\n");
	assert_string_equal(s.body.data, "slow");
	assert_int_equal(s.r.cls, HF_CLASS_NONE);
	assert_true(s.r.clean && s.r.any_byte && !s.r.reused);
	assert_true(s.r.bytes_out > 7 && s.r.bytes_in > 4);
	assert_int_equal(hf_upstream_in_flight(w->u), 0);
	forget(&s);
	peer_close(p);
}

static void
test_get(void **state)
{
	struct world *w = *state;
	struct seen s = { 0 };
	struct peer *p;

	start(&s, w, "127.0.0.1", NULL);
	p = peer_accept(w->base, w->listen_fd);
	peer_until_text(p, "\r\n\r\n");
	assert_true(peer_has(p, "GET /v1/x HTTP/1.1\r\n"));
	assert_false(peer_has(p, "Content-Length"));
	/* A redirect is an answer, not an order. */
	peer_puts(p,
	    "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
	    "Content-Length: 0\r\n\r\n");
	until_done(&s);
	assert_int_equal(s.status, 302);
	assert_int_equal(s.r.cls, HF_CLASS_NONE);
	forget(&s);
	peer_close(p);
}

static void
test_framings(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *head, *body;
		bool close;
	} row[] = {
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		    "3\r\nabc\r\n3\r\ndef\r\n0\r\nTrailer: x\r\n\r\n", false },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", "abcdef",
		    false },
		{ "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", "abcdef",
		    true },
		{ "HTTP/1.0 200 OK\r\n\r\n", "abcdef", true },
	};

	for (size_t i = 0; i < hf_countof(row); i++) {
		struct seen s = { 0 };
		struct peer *p;

		start(&s, w, "127.0.0.1", "q");
		p = peer_accept(w->base, w->listen_fd);
		expect_request(p, "q");
		peer_puts(p, row[i].head);
		peer_until(w->base, has_headers, &s, "headers");
		/* Byte by byte, as a slow provider would. */
		for (const char *c = row[i].body; *c != '\0'; c++) {
			peer_send(p, c, 1);
			event_base_loop(w->base, EVLOOP_NONBLOCK);
		}
		if (row[i].close)
			peer_half_close(p);
		until_done(&s);
		assert_int_equal(s.r.cls, HF_CLASS_NONE);
		assert_true(s.r.clean);
		assert_string_equal(s.body.data, "abcdef");
		assert_int_equal(s.n_headers, 1);
		/* So that the next round dials anew. */
		peer_close(p);
		forget(&s);
		event_base_loop(w->base, EVLOOP_NONBLOCK);
	}
}

static void
test_large(void **state)
{
	struct world *w = *state;
	struct seen s = { 0 };
	struct peer *p;
	size_t n = 3u << 20;
	char *big = malloc(n + 1);

	assert_non_null(big);
	memset(big, 'x', n);
	big[n] = '\0';
	start(&s, w, "127.0.0.1", big);
	p = peer_accept(w->base, w->listen_fd);
	peer_until_text(p, "Content-Length: 3145728\r\n\r\n");
	peer_until_size(
	    p, n + (size_t)(strstr(p->in.data, "\r\n\r\n") - p->in.data) + 4);
	assert_false(peer_has(p, "Expect"));
	peer_puts(p, "HTTP/1.1 200 OK\r\nContent-Length: 3145728\r\n\r\n");
	peer_send(p, big, n);
	until_done(&s);
	assert_int_equal(s.body.size, n);
	assert_memory_equal(s.body.data, big, n);
	forget(&s);
	peer_close(p);
	free(big);
}

static void
test_reuse(void **state)
{
	struct world *w = *state;
	struct seen a = { 0 }, b = { 0 };
	struct peer *p;

	a.then = &b; /* started from inside 'done' */
	start(&a, w, "127.0.0.1", "first");
	p = peer_accept(w->base, w->listen_fd);
	expect_request(p, "first");
	peer_drop(p);
	peer_puts(p, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
	until_done(&a);
	expect_request(p, "second");
	peer_puts(p, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb");
	until_done(&b);
	assert_false(a.r.reused);
	assert_true(b.r.reused && b.r.clean);
	forget(&a);
	forget(&b);
	peer_close(p);
}

/* --- exchanges that fail --- */

static void
test_refused(void **state)
{
	struct world *w = *state;
	struct seen s = { 0 };
	int port, fd = peer_listen(1, &port);

	close(fd);
	start_in(&s, w, "127.0.0.1", port, "q", 5000);
	until_done(&s);
	assert_failed(&s, HF_CLASS_NETWORK, "connect_refused");
	assert_false(s.r.any_byte);
	assert_int_equal(s.n_headers, 0);
	forget(&s);
}

static void
test_cut(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *bytes;
		bool reset;
		int cls;
		const char *reason;
		bool any;
	} row[] = {
		{ "", true, HF_CLASS_NETWORK, "reset", false },
		{ "", false, HF_CLASS_NETWORK, "eof", false },
		{ "HTTP/1.1 200 OK\r\nContent-Le", true, HF_CLASS_NETWORK,
		    "reset", true },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", false,
		    HF_CLASS_NETWORK, "eof", true },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", true,
		    HF_CLASS_NETWORK, "reset", true },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "3\r\nabc\r\n",
		    false, HF_CLASS_NETWORK, "eof", true },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "3\r\nabc\r\nzz\r\n",
		    false, HF_CLASS_PROVIDER, "bad_http", true },
		{ "\x15\x03\x03", false, HF_CLASS_PROVIDER, "bad_http", false },
	};

	for (size_t i = 0; i < hf_countof(row); i++) {
		struct seen s = { 0 };
		struct peer *p;

		start(&s, w, "127.0.0.1", "q");
		p = peer_accept(w->base, w->listen_fd);
		expect_request(p, "q");
		peer_puts(p, row[i].bytes);
		if (strstr(row[i].bytes, "abc") != NULL)
			peer_until(w->base, has_data, &s, "data");
		if (row[i].reset)
			peer_reset(p);
		else
			peer_close(p);
		until_done(&s);
		if (strcmp(s.r.reason, row[i].reason) != 0)
			fail_msg("row %zu: %s (%s)", i, s.r.reason, s.r.detail);
		assert_failed(&s, row[i].cls, row[i].reason);
		if (row[i].any)
			assert_true(s.r.any_byte);
		forget(&s);
	}
}

static void
test_tls_garbage(void **state)
{
	struct world *w = *state;
	struct seen s = { 0 };
	struct hf_http_request rq;
	struct hf_error e;
	struct peer *p;

	s.w = w;
	fill(&rq, w->port, "127.0.0.1", "q");
	hf_buf_reset(&rq.url);
	hf_buf_printf(&rq.url, "https://127.0.0.1:%d/", w->port);
	assert_int_equal(
	    hf_upstream_start(w->u, &rq, 5000, false, &ops, &s, &s.call, &e),
	    0);
	p = peer_accept(w->base, w->listen_fd);
	peer_puts(p, "HTTP/1.1 400 Bad Request\r\n\r\n");
	until_done(&s);
	assert_failed(&s, HF_CLASS_NETWORK, "tls");
	peer_close(p);
}

/* For what should take 100 ms, with room for a loaded machine. */
static int64_t
at_most_us(void)
{
	return getenv("HF_VALGRIND") == NULL ? 3000000 : 30000000;
}

/* The kernel accepts, the process never does: with TLS the handshake hangs,
 * which belongs to connecting. */
static void
test_connect_timeout(void **state)
{
	struct world *w = *state;
	struct seen s = { 0 };
	struct hf_http_request rq;
	struct hf_error e;

	s.w = w;
	fill(&rq, w->port, "127.0.0.1", "q");
	hf_buf_reset(&rq.url);
	hf_buf_printf(&rq.url, "https://127.0.0.1:%d/", w->port);
	assert_int_equal(
	    hf_upstream_start(w->u, &rq, 100, false, &ops, &s, &s.call, &e), 0);
	until_done(&s);
	assert_failed(&s, HF_CLASS_NETWORK, "connect_timeout");
	assert_true(s.r.total_us >= 90000 && s.r.total_us < at_most_us());
}

/* A listener whose queue is full lets SYNs go unanswered. */
static void
test_silent_connect(void **state)
{
	struct world *w = *state;
	struct seen s = { 0 };
	int port, fd = peer_listen(0, &port), fill_fd[8];
	struct sockaddr_in sin = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port) };

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 8; i++) {
		fill_fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(fill_fd[i], (struct sockaddr *)&sin, sizeof(sin));
	}
	start_in(&s, w, "127.0.0.1", port, "q", 100);
	until_done(&s);
	assert_failed(&s, HF_CLASS_NETWORK, "connect_timeout");
	assert_int_equal(s.r.bytes_out, 0);
	forget(&s);
	for (int i = 0; i < 8; i++)
		close(fill_fd[i]);
	close(fd);
}

/* One call that leaves its connection in the pool. */
static struct peer *
one_call(struct world *w)
{
	struct seen s = { 0 };
	struct peer *p;

	start(&s, w, "127.0.0.1", "one");
	p = peer_accept(w->base, w->listen_fd);
	expect_request(p, "one");
	peer_drop(p);
	peer_puts(p, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
	until_done(&s);
	assert_false(s.r.reused);
	assert_false(s.r.stale);
	forget(&s);
	return p;
}

/* Stale is only what died at once, without a byte, on a pooled connection. */
static void
test_what_is_stale(void **state)
{
	static const struct {
		const char *bytes;
		bool reset, late, fresh, want;
		const char *reason;
	} row[] = {
		{ "", false, false, false, true, "stale_connection" },
		{ "", true, false, false, true, "stale_connection" },
		{ "", false, true, false, false, "reset" },
		{ "", false, false, true, false, "eof" },
		{ "", true, false, true, false, "reset" },
		/* Less than a line of a response is none. */
		{ "H", false, false, false, true, "stale_connection" },
		{ "HTTP/1.1 200 OK\r\n", false, false, false, false, NULL },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", false,
		    false, false, false, "eof" },
	};
	struct world *w = *state;

	for (size_t i = 0; i < hf_countof(row); i++) {
		struct seen s = { .fresh = row[i].fresh };
		struct peer *pooled = one_call(w), *p = pooled;

		start(&s, w, "127.0.0.1", "two");
		if (row[i].fresh)
			p = peer_accept(w->base, w->listen_fd);
		expect_request(p, "two");
		if (row[i].late) /* as if it had been sent long ago */
			s.call->connected_us -= 60 * 1000000;
		peer_puts(p, row[i].bytes);
		if (row[i].reset)
			peer_reset(p);
		else
			peer_close(p);
		until_done(&s);
		assert_int_equal(s.r.stale, row[i].want);
		if (row[i].reason != NULL)
			assert_string_equal(s.r.reason, row[i].reason);
		assert_int_equal(s.r.reused, !row[i].fresh);
		if (row[i].fresh)
			peer_close(pooled);
		forget(&s);
	}
}

/* It dies while a large request is still being sent. */
static void
test_stale_in_sending(void **state)
{
	enum { SIZE = 16 * 1024 * 1024 };
	char *big = malloc(SIZE + 1);
	struct world *w = *state;

	assert_non_null(big);
	memset(big, 'x', SIZE);
	big[SIZE] = '\0';
	for (int reset = 0; reset < 2; reset++) {
		struct peer *p = one_call(w);
		struct seen s = { 0 };

		start(&s, w, "127.0.0.1", big);
		peer_until_size(p, 1000);
		peer_read(p, false); /* the rest fills the buffers */
		if (reset)
			peer_reset(p);
		else
			peer_close(p);
		until_done(&s);
		assert_failed(&s, HF_CLASS_NETWORK, "stale_connection");
		assert_true(s.r.stale);
		assert_int_equal(s.n_headers, 0);
		forget(&s);
	}
	free(big);
}

/* A pooled connection that dies after the request was read: the server has
 * executed it, so the library must not send it again. */
static void
test_stale_not_repeated(void **state)
{
	struct world *w = *state;
	struct seen s = { 0 };
	struct peer *p;
	unsigned executed = 0;
	int more;

	start(&s, w, "127.0.0.1", "one");
	p = peer_accept(w->base, w->listen_fd);
	expect_request(p, "one");
	executed++;
	peer_drop(p);
	peer_puts(p, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
	until_done(&s);
	forget(&s);
	start(&s, w, "127.0.0.1", "two");
	expect_request(p, "two");
	executed++;
	peer_close(p);
	until_done(&s);
	assert_failed(&s, HF_CLASS_NETWORK, "stale_connection");
	assert_true(s.r.reused);
	assert_true(s.r.stale);
	assert_false(s.r.any_byte);
	assert_int_equal(s.n_headers, 0);
	/* The library may have dialled again, but has sent nothing there. */
	more = accept4(w->listen_fd, NULL, NULL, 0);
	if (more >= 0) {
		char c[16];

		executed += recv(more, c, sizeof(c), 0) > 0;
		close(more);
	}
	assert_int_equal(executed, 2);
	forget(&s);
}

static void
test_bad_requests(void **state)
{
	struct world *w = *state;
	struct hf_http_request rq;
	struct hf_error e;
	struct hf_call *c = NULL;
	struct seen s = { .w = w };

	fill(&rq, w->port, "127.0.0.1", "q");
	hf_buf_reset(&rq.url);
	hf_buf_puts(&rq.url, "::not a url");
	assert_int_equal(
	    hf_upstream_start(w->u, &rq, 100, false, &ops, &s, &c, &e),
	    HF_EINVAL);
	assert_null(c);
	fill(&rq, w->port, "127.0.0.1", "q");
	hf_buf_puts(&rq.headers, "X-Bad: a\x01\n");
	assert_int_equal(
	    hf_upstream_start(w->u, &rq, 100, false, &ops, &s, &c, &e),
	    HF_EINVAL);
	fill(&rq, w->port, "127.0.0.1", "q");
	hf_buf_reset(&rq.url);
	hf_buf_puts(&rq.url, "file:///etc/hostname");
	assert_int_equal(
	    hf_upstream_start(w->u, &rq, 100, false, &ops, &s, &c, &e),
	    HF_EINVAL);
	assert_int_equal(hf_upstream_in_flight(w->u), 0);
}

/* --- names --- */

static void
test_localhost(void **state)
{
	struct world *w = *state;
	struct seen s = { 0 };
	struct peer *p;

	/* From the hosts file; our listener has IPv4 only. */
	start(&s, w, "localhost", "q");
	p = peer_accept(w->base, w->listen_fd);
	expect_request(p, "q");
	assert_true(peer_has(p, "Host: localhost:"));
	peer_puts(p, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
	until_done(&s);
	assert_true(s.r.clean);
	forget(&s);
	peer_close(p);
}

/* A name server of our own. */
struct dns {
	int fd;
	unsigned n_queries;
	enum { SILENT, UNKNOWN, LOOPBACK } mode;
	struct event *ev;
};

static void
dns_query(evutil_socket_t fd, short what, void *arg)
{
	/* name: pointer to the question, type A, class IN, TTL, 4 bytes */
	static const unsigned char rr[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60,
		0, 4, 127, 0, 0, 1 };
	struct dns *d = arg;
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	unsigned char q[600];
	ssize_t n = recvfrom(fd, q, 512, 0, (struct sockaddr *)&from, &size);
	size_t end = 12;

	(void)what;
	if (n < 17)
		return;
	d->n_queries++;
	if (d->mode == SILENT)
		return;
	while (end < (size_t)n && q[end] != 0)
		end += q[end] + 1u;
	end += 5;
	q[2] = 0x81; /* an answer, recursion available */
	q[3] = d->mode == UNKNOWN ? 0x83 : 0x80;
	q[6] = q[7] = q[8] = q[9] = q[10] = q[11] = 0;
	if (d->mode == LOOPBACK && q[end - 3] == 1) {
		q[7] = 1;
		memcpy(q + end, rr, sizeof(rr));
		end += sizeof(rr);
	}
	sendto(fd, q, end, 0, (struct sockaddr *)&from, size);
}

static void
dns_start(struct dns *d, struct world *w)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t size = sizeof(sin);
	struct hf_error e;
	char server[40];

	d->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(d->fd, (struct sockaddr *)&sin, size), 0);
	assert_int_equal(getsockname(d->fd, (struct sockaddr *)&sin, &size), 0);
	d->ev = event_new(w->base, d->fd, EV_READ | EV_PERSIST, dns_query, d);
	event_add(d->ev, NULL);
	snprintf(server, sizeof(server), "127.0.0.1:%d", ntohs(sin.sin_port));
	assert_int_equal(hf_resolver_use(w->u->resolver, server, &e), 0);
}

static void
dns_stop(struct dns *d)
{
	event_free(d->ev);
	close(d->fd);
}

static void
test_resolver(void **state)
{
	struct world *w = *state;
	struct dns d = { .mode = UNKNOWN };
	struct seen s = { 0 };
	struct peer *p = NULL;

	dns_start(&d, w);
	start(&s, w, "nobody.test", "q");
	until_done(&s);
	assert_failed(&s, HF_CLASS_NETWORK, "resolve");
	assert_int_equal(s.r.bytes_out, 0);
	forget(&s);
	/* The failure is remembered for a moment. */
	d.n_queries = 0;
	start(&s, w, "nobody.test", "q");
	until_done(&s);
	assert_failed(&s, HF_CLASS_NETWORK, "resolve");
	assert_int_equal(d.n_queries, 0);
	forget(&s);
	/* No answer: the connect deadline covers it. */
	d.mode = SILENT;
	start_in(&s, w, "silent.test", w->port, "q", 100);
	until_done(&s);
	assert_failed(&s, HF_CLASS_NETWORK, "connect_timeout");
	if (s.r.total_us < 90000 || s.r.total_us >= at_most_us())
		fail_msg("%lld us", (long long)s.r.total_us);
	forget(&s);
	/* An answer, asked for once. */
	d.mode = LOOPBACK;
	for (int i = 0; i < 2; i++) {
		if (i == 1)
			d.n_queries = 0;
		start(&s, w, "somebody.test", "q");
		p = peer_accept(w->base, w->listen_fd);
		expect_request(p, "q");
		assert_true(peer_has(p, "Host: somebody.test:"));
		peer_puts(p,
		    "HTTP/1.1 200 OK\r\nConnection: close\r\n"
		    "Content-Length: 1\r\n\r\na");
		until_done(&s);
		assert_true(s.r.clean);
		forget(&s);
		peer_close(p);
	}
	assert_int_equal(d.n_queries, 0);
	/* Cancelled while being looked up; freed meanwhile by teardown. */
	d.mode = SILENT;
	start(&s, w, "silent2.test", "q");
	event_base_loop(w->base, EVLOOP_NONBLOCK);
	hf_call_cancel(s.call);
	event_base_loop(w->base, EVLOOP_NONBLOCK);
	assert_int_equal(hf_upstream_in_flight(w->u), 0);
	forget(&s);
	dns_stop(&d);
}

/* --- cancelling and pausing --- */

static void
nothing_follows(struct seen *s, unsigned headers, unsigned data)
{
	for (int i = 0; i < 20; i++)
		event_base_loop(s->w->base, EVLOOP_NONBLOCK);
	assert_int_equal(s->n_headers, headers);
	assert_int_equal(s->n_data, data);
	assert_int_equal(s->n_done, 0);
	assert_int_equal(hf_upstream_in_flight(s->w->u), 0);
	forget(s);
}

static void
test_cancel(void **state)
{
	struct world *w = *state;
	struct seen s = { 0 };
	struct peer *p;
	static const char head[] =
	    "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n";

	/* Before the loop ran, before the answer, between head and body. */
	start(&s, w, "127.0.0.1", "q");
	hf_call_cancel(s.call);
	nothing_follows(&s, 0, 0);
	start(&s, w, "127.0.0.1", "q");
	p = peer_accept(w->base, w->listen_fd);
	expect_request(p, "q");
	hf_call_cancel(s.call);
	peer_until_eof(p);
	nothing_follows(&s, 0, 0);
	peer_close(p);
	start(&s, w, "127.0.0.1", "q");
	p = peer_accept(w->base, w->listen_fd);
	expect_request(p, "q");
	peer_puts(p, head);
	peer_until(w->base, has_headers, &s, "headers");
	hf_call_cancel(s.call);
	peer_until_eof(p);
	nothing_follows(&s, 1, 0);
	peer_close(p);
	/* From inside each callback. */
	for (int i = 0; i < 3; i++) {
		s.cancel_in_headers = i == 0;
		s.cancel_in_data = i == 1;
		s.cancel_in_done = i == 2;
		start(&s, w, "127.0.0.1", "q");
		p = peer_accept(w->base, w->listen_fd);
		expect_request(p, "q");
		peer_puts(p, head);
		peer_puts(p, "abcdef");
		if (i < 2) {
			peer_until_eof(p);
			nothing_follows(&s, 1, (unsigned)i);
		} else {
			until_done(&s);
			forget(&s);
		}
		peer_close(p);
	}
	/* While the name is being looked up. */
	start(&s, w, "localhost", "q");
	hf_call_cancel(s.call);
	nothing_follows(&s, 0, 0);
}

static void
test_pause(void **state)
{
	struct world *w = *state;
	struct seen s = { .pause_in_data = true };
	struct peer *p;
	const size_t total = 64u << 20;
	size_t sent = 0;
	char *lump = calloc(1, 1 << 16);
	unsigned full = 0;

	assert_non_null(lump);
	start(&s, w, "127.0.0.1", "q");
	p = peer_accept(w->base, w->listen_fd);
	expect_request(p, "q");
	peer_puts(p, "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n");
	while (sent < total && full < 1000) {
		size_t want = total - sent < 65536 ? total - sent : 65536;
		ssize_t n = send(p->fd, lump, want, MSG_DONTWAIT);

		full = n < 0 ? full + 1 : 0;
		sent += n < 0 ? 0 : (size_t)n;
		event_base_loop(w->base, EVLOOP_NONBLOCK);
	}
	/* One piece came; the rest stays with the server's kernel. */
	assert_true(sent < total);
	assert_int_equal(s.n_data, 1);
	/* Pausing twice, and going on and stopping again at once. */
	hf_call_pause(s.call, true);
	hf_call_pause(s.call, false);
	hf_call_pause(s.call, true);
	for (int i = 0; i < 20; i++)
		event_base_loop(w->base, EVLOOP_NONBLOCK);
	assert_int_equal(s.n_data, 1);
	hf_call_pause(s.call, false);
	while (s.n_data < 2)
		event_base_loop(w->base, EVLOOP_ONCE);
	for (int i = 0; i < 20; i++)
		event_base_loop(w->base, EVLOOP_NONBLOCK);
	assert_int_equal(s.n_data, 2); /* paused itself again */
	s.pause_in_data = false;
	hf_call_pause(s.call, false);
	while (sent < total) {
		size_t want = total - sent < 65536 ? total - sent : 65536;

		peer_send(p, lump, want);
		sent += want;
	}
	until_done(&s);
	assert_int_equal(s.body.size, total);
	assert_true(s.r.clean);
	forget(&s);
	/* Cancelled while paused. */
	s.pause_in_data = true;
	start(&s, w, "127.0.0.1", "r");
	peer_drop(p);
	expect_request(p, "r");
	peer_puts(p, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na");
	peer_until(w->base, has_data, &s, "data");
	peer_puts(p, "b");
	event_base_loop(w->base, EVLOOP_NONBLOCK);
	hf_call_pause(s.call, false);
	hf_call_cancel(s.call);
	peer_until_eof(p);
	nothing_follows(&s, 1, 1);
	peer_close(p);
	free(lump);
}

/* --- many --- */

#define MANY 100

static void
test_many(void **state)
{
	struct world *w = *state;
	struct seen *s = calloc(MANY, sizeof(*s));
	struct peer *p[MANY];
	char body[32], answer[100];

	assert_non_null(s);
	for (int i = 0; i < MANY; i++) {
		snprintf(body, sizeof(body), "<%d>", i);
		start(&s[i], w, "127.0.0.1", body);
	}
	for (int i = 0; i < MANY; i++)
		p[i] = peer_accept(w->base, w->listen_fd);
	/* Each server side answers with what it was asked, last first. */
	for (int i = MANY - 1; i >= 0; i--) {
		char *at;

		peer_until_text(p[i], "\r\n\r\n<");
		peer_until_text(p[i], ">");
		at = strstr(p[i]->in.data, "\r\n\r\n<") + 4;
		snprintf(answer, sizeof(answer),
		    "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
		    strlen(at), at);
		peer_puts(p[i], answer);
	}
	for (int i = 0; i < MANY; i++) {
		until_done(&s[i]);
		snprintf(body, sizeof(body), "<%d>", i);
		assert_string_equal(s[i].body.data, body);
		forget(&s[i]);
	}
	for (int i = 0; i < MANY; i++)
		peer_close(p[i]);
	free(s);
}

/* --- everything at once --- */

#define N_CALLS 32
#define N_SERVED 64

struct storm {
	struct world *w;
	uint64_t seed;
	struct seen call[N_CALLS];
	struct peer *peer[N_SERVED];
	unsigned n_started, n_ended, n_clean;
};

static unsigned
roll(struct storm *s, unsigned n)
{
	s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(s->seed >> 33) % n;
}

static void
end_call(struct storm *s, struct seen *c)
{
	s->n_ended++;
	s->n_clean += c->n_done > 0 && c->r.clean;
	forget(c);
}

static void
act(struct storm *s, struct seen *c)
{
	if (c->w == NULL) {
		c->cancel_in_headers = roll(s, 20) == 0;
		c->cancel_in_data = roll(s, 20) == 0;
		c->cancel_in_done = roll(s, 20) == 0;
		c->pause_in_data = roll(s, 4) == 0;
		s->n_started++;
		start_in(c, s->w, roll(s, 2) == 0 ? "localhost" : "127.0.0.1",
		    s->w->port, roll(s, 10) == 0 ? NULL : "<q>", 2000);
	} else if (c->n_done > 0 ||
	    (c->cancel_in_headers && c->n_headers > 0) ||
	    (c->cancel_in_data && c->n_data > 0)) {
		end_call(s, c);
	} else if (roll(s, 30) == 0) {
		hf_call_cancel(c->call);
		end_call(s, c);
	} else {
		c->pause_in_data = roll(s, 4) == 0;
		hf_call_pause(c->call, roll(s, 3) == 0);
	}
}

static void
serve(struct storm *s, struct peer **slot)
{
	static const char *const said[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		"3\r\nabc\r\n0\r\n\r\n",
		"HTTP/1.1 500 No\r\nConnection: close\r\n"
		"Content-Length: 0\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: b",
		"x",
	};
	struct peer *p = *slot;
	int fd;

	if (p == NULL) {
		fd = accept4(
		    s->w->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			*slot = peer_adopt(s->w->base, fd);
		return;
	}
	if (p->eof || roll(s, 20) == 0) {
		if (roll(s, 2) == 0)
			peer_close(p);
		else
			peer_reset(p);
		*slot = NULL;
	} else if (peer_has(p, "\r\n\r\n")) {
		const char *z =
		    said[roll(s, 4) > 0 ? roll(s, 2) :
					  roll(s, hf_countof(said))];

		peer_drop(p);
		(void)!send(p->fd, z, strlen(z), MSG_NOSIGNAL);
	}
}

static bool
calls_over(void *arg)
{
	struct storm *s = arg;

	for (int i = 0; i < N_SERVED; i++)
		if (s->peer[i] != NULL)
			serve(s, &s->peer[i]);
	return hf_upstream_in_flight(s->w->u) == 0;
}

/* Calls, pauses, cancels and a server that misbehaves, in any order: each call
 * ends exactly once, and lifetimes hold (ASan). */
static void
test_storm(void **state)
{
	struct world *w = *state;
	struct storm *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->w = w;
	s->seed = 42;
	evutil_make_socket_nonblocking(w->listen_fd);
	for (int i = 0; i < 30000; i++) {
		if (roll(s, 2) == 0)
			act(s, &s->call[roll(s, N_CALLS)]);
		else
			serve(s, &s->peer[roll(s, N_SERVED)]);
		if (roll(s, 3) == 0)
			event_base_loop(w->base, EVLOOP_NONBLOCK);
	}
	for (int i = 0; i < N_CALLS; i++) {
		struct seen *c = &s->call[i];

		if (c->w == NULL)
			continue;
		if (c->call != NULL && c->n_done == 0 &&
		    !(c->cancel_in_headers && c->n_headers > 0) &&
		    !(c->cancel_in_data && c->n_data > 0))
			hf_call_cancel(c->call);
		end_call(s, c);
	}
	peer_until(w->base, calls_over, s, "end of all calls");
	for (int i = 0; i < N_SERVED; i++)
		if (s->peer[i] != NULL)
			peer_close(s->peer[i]);
	assert_int_equal(s->n_started, s->n_ended);
	assert_true(s->n_clean > 200);
	free(s);
}

/* Freed with calls in every state: nobody is called, nothing leaks. */
static void
test_free_busy(void **state)
{
	struct world *w = *state;
	struct seen s[4] = { { 0 } };
	struct peer *p;

	start(&s[0], w, "127.0.0.1", "q");
	p = peer_accept(w->base, w->listen_fd);
	expect_request(p, "q");
	peer_puts(p, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
	peer_until(w->base, has_data, &s[0], "data");
	start(&s[1], w, "127.0.0.1", "q");
	start(&s[2], w, "localhost", "q");
	start(&s[3], w, "does-not-exist.invalid", "q");
	hf_upstream_free(w->u);
	w->u = NULL;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(s[i].n_done, 0);
		forget(&s[i]);
	}
	peer_close(p);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_request_bytes),
		TEST(test_get),
		TEST(test_framings),
		TEST(test_large),
		TEST(test_reuse),
		TEST(test_refused),
		TEST(test_cut),
		TEST(test_tls_garbage),
		TEST(test_connect_timeout),
		TEST(test_silent_connect),
		TEST(test_stale_not_repeated),
		TEST(test_what_is_stale),
		TEST(test_stale_in_sending),
		TEST(test_bad_requests),
		TEST(test_localhost),
		TEST(test_resolver),
		TEST(test_cancel),
		TEST(test_pause),
		TEST(test_many),
		TEST(test_free_busy),
		TEST(test_storm),
	};

	return cmocka_run_group_tests_name("upstream", tests, NULL, NULL);
}
