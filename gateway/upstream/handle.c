/*
 * libcurl's easy handles: their callbacks and options.  A handle is set up
 * once and then kept for the next call, because making one and setting its
 * options costs as much as a short transfer.  Loop thread.
 *
 * libcurl repeats a request on a fresh connection when a pooled one dies
 * before a byte of the response came.  The provider may have acted on it all
 * the same, so that a repetition is ours to decide: neither a new socket nor
 * a second request of one call is allowed to it.
 */
#include <config.h>

#include <stdlib.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/clock.h"
#include "gateway/upstream/internal.h"

/* Idle connections older are not used.  Keep-alive holds them open on the way;
 * what is closed at the other end all the same is called again. */
#define POOL_AGE_S 110L

static size_t
on_header(char *p, size_t size, size_t n, void *arg)
{
	struct hf_call *c = arg;
	struct hf_str line = { p, size * n };

	c->any_byte = true;
	if (c->state == HF_CALL_DEAD)
		return 0;
	if (c->got_headers)
		return line.size; /* a trailer */
	if (line.size >= 5 && memcmp(p, "HTTP/", 5) == 0) {
		const char *sp = memchr(p, ' ', line.size);

		hf_buf_reset(&c->headers);
		c->status = sp == NULL ? 0 : atoi(sp + 1);
		return line.size;
	}
	if (line.size > 0 && p[0] != '\r' && p[0] != '\n') {
		hf_buf_putstr(&c->headers, line);
		return hf_buf_ok(&c->headers) ? line.size : 0;
	}
	if (c->status >= 100 && c->status < 200)
		return line.size; /* the real one follows */
	c->got_headers = true;
	c->ops->headers(c->arg, c->status, hf_buf_str(&c->headers));
	return c->state == HF_CALL_DEAD ? 0 : line.size;
}

static size_t
on_data(char *p, size_t size, size_t n, void *arg)
{
	struct hf_call *c = arg;

	c->any_byte = true;
	if (c->state == HF_CALL_DEAD)
		return CURL_WRITEFUNC_ERROR;
	if (c->pause) {
		c->paused = true;
		return CURL_WRITEFUNC_PAUSE; /* the same bytes come again */
	}
	c->ops->data(c->arg, (struct hf_str){ p, size * n });
	return c->state == HF_CALL_DEAD ? CURL_WRITEFUNC_ERROR : size * n;
}

/* The connection stands (TLS too) and the request is about to be sent; if it
 * was sent before, libcurl means to repeat it on another connection. */
static int
on_connected(void *arg, char *peer, char *self, int peer_port, int self_port)
{
	struct hf_call *c = arg;

	(void)peer;
	(void)self;
	(void)peer_port;
	(void)self_port;
	if (c->connected_us != 0) {
		c->repeated = true;
		return CURL_PREREQFUNC_ABORT;
	}
	c->connected_us = hf_now_us();
	evtimer_del(&c->timer);
	return c->state == HF_CALL_DEAD ? CURL_PREREQFUNC_ABORT :
					  CURL_PREREQFUNC_OK;
}

static curl_socket_t
on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct hf_call *c = arg;

	(void)purpose;
	if (c->connected_us != 0) {
		c->repeated = true;
		return CURL_SOCKET_BAD;
	}
	if (a->addrlen <= sizeof(c->peer))
		memcpy(&c->peer, &a->addr, a->addrlen);
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* What is the same for all calls. */
static void
set_up(CURL *h, struct hf_upstream *u)
{
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_PROXY, "");
	curl_easy_setopt(h, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(h, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
	curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(h, CURLOPT_USERAGENT, "holdfast/" PACKAGE_VERSION);
	curl_easy_setopt(h, CURLOPT_MAXAGE_CONN, POOL_AGE_S);
	curl_easy_setopt(h, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(h, CURLOPT_TCP_KEEPIDLE, 30L);
	curl_easy_setopt(h, CURLOPT_TCP_KEEPINTVL, 10L);
	curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, on_socket);
	curl_easy_setopt(
	    h, CURLOPT_CLOSESOCKETFUNCTION, hf_upstream_close_socket);
	curl_easy_setopt(h, CURLOPT_CLOSESOCKETDATA, u);
	curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, on_connected);
	curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_data);
}

static void
set_call(struct hf_call *c)
{
	CURL *h = c->easy;

	curl_easy_setopt(h, CURLOPT_PRIVATE, c);
	curl_easy_setopt(h, CURLOPT_URL, c->rq.url.data);
	curl_easy_setopt(h, CURLOPT_ERRORBUFFER, c->detail);
	/* The timer of ours is the deadline; this one only a fence. */
	curl_easy_setopt(
	    h, CURLOPT_CONNECTTIMEOUT_MS, (long)c->connect_ms + 5000);
	curl_easy_setopt(h, CURLOPT_FRESH_CONNECT, (long)c->fresh);
	curl_easy_setopt(h, CURLOPT_OPENSOCKETDATA, c);
	curl_easy_setopt(h, CURLOPT_PREREQDATA, c);
	curl_easy_setopt(h, CURLOPT_HEADERDATA, c);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, c);
	if (c->rq.body.size == 0) {
		curl_easy_setopt(h, CURLOPT_HTTPGET, 1L);
		return;
	}
	/* From memory, so that head and body leave in one packet. */
	curl_easy_setopt(h, CURLOPT_POST, 1L);
	curl_easy_setopt(
	    h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->rq.body.size);
	curl_easy_setopt(h, CURLOPT_POSTFIELDS, c->rq.body.data);
}

bool
hf_handle_get(struct hf_call *c)
{
	struct hf_upstream *u = c->u;

	if (u->n_spare > 0) {
		c->easy = u->spare[--u->n_spare];
	} else {
		c->easy = curl_easy_init();
		if (c->easy == NULL)
			return false;
		set_up(c->easy, u);
	}
	set_call(c);
	return true;
}

void
hf_handle_put(struct hf_call *c)
{
	struct hf_upstream *u = c->u;
	CURL *h = c->easy;

	if (h == NULL)
		return;
	c->easy = NULL;
	if (u->closing || u->n_spare == hf_countof(u->spare)) {
		curl_easy_cleanup(h);
		return;
	}
	/* Nothing of the call's stays behind. */
	curl_easy_setopt(h, CURLOPT_PRIVATE, NULL);
	curl_easy_setopt(h, CURLOPT_ERRORBUFFER, NULL);
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, NULL);
	curl_easy_setopt(h, CURLOPT_RESOLVE, NULL);
	curl_easy_setopt(h, CURLOPT_POSTFIELDS, NULL);
	curl_easy_setopt(h, CURLOPT_HTTPGET, 1L);
	u->spare[u->n_spare++] = h;
}

void
hf_handles_free(struct hf_upstream *u)
{
	while (u->n_spare > 0)
		curl_easy_cleanup(u->spare[--u->n_spare]);
}
