/*
 * From a request that evhttp read whole to its handler: the strict check's
 * verdict, limits, the routing table, authorization.  Loop thread.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include <event2/http.h>
#include <event2/http_struct.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/front/internal.h"

static const struct {
	enum hf_method m;
	const char *name;
} method_name[] = {
	{ HF_GET, "GET" },
	{ HF_HEAD, "HEAD" },
	{ HF_POST, "POST" },
	{ HF_DELETE, "DELETE" },
};

void
hf_methods_print(unsigned methods, char *out, size_t size)
{
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; i < hf_countof(method_name) && n < size; i++)
		if ((methods & method_name[i].m) != 0)
			n += (size_t)snprintf(out + n, size - n, "%s%s",
			    n == 0 ? "" : ", ", method_name[i].name);
}

struct hf_str
hf_req_header(const struct hf_req *rq, const char *name)
{
	const struct hf_sink *s = rq->impl;

	return hf_http_head_find(s->head, name);
}

unsigned
hf_req_header_count(const struct hf_req *rq, const char *name)
{
	const struct hf_sink *s = rq->impl;

	return hf_http_head_count(s->head, name);
}

static void
refuse(struct hf_sink *s, int status, const char *code, const char *message)
{
	static struct hf_log_limit limit;
	struct hf_front *f = s->front;

	hf_count(f->c.shm, HF_C_requests_refused, 1);
	hf_log_limited(&limit, 1000, HF_LOG_INFO,
	    "front: refused status=%d reason=\"%s\"", status, message);
	f->c.refuse(f->c.arg, &s->rq, s, status, code, message);
}

/* How much of a row's path matches: SIZE_MAX for all of it, else the size of
 * its prefix, 0 for none. */
static size_t
match(const struct hf_path *p, struct hf_str path)
{
	size_t n = strlen(p->path);

	if (n > 0 && p->path[n - 1] == '*') {
		n--;
		return path.size >= n && memcmp(path.p, p->path, n) == 0 ? n :
									   0;
	}
	return hf_str_is(path, p->path) ? SIZE_MAX : 0;
}

/* The row that fits best; of several with the same path, the one with the
 * method.  *allow gets the methods of that path, 0: no such path. */
static const struct hf_path *
route(const struct hf_front *f, struct hf_str path, enum hf_method method,
    unsigned *allow, size_t *best)
{
	const struct hf_path *found = NULL;

	*allow = 0;
	*best = 0;
	for (unsigned i = 0; i < f->c.n_path; i++) {
		const struct hf_path *p = &f->c.path[i];
		size_t n = match(p, path);

		if (n == 0 || n < *best)
			continue;
		if (n > *best) {
			*best = n;
			*allow = 0;
			found = NULL;
		}
		*allow |= p->methods;
		if ((p->methods & (unsigned)method) != 0)
			found = p;
	}
	return found;
}

static enum hf_method
method_of(struct hf_str name)
{
	for (size_t i = 0; i < hf_countof(method_name); i++)
		if (hf_str_is(name, method_name[i].name))
			return method_name[i].m;
	return 0;
}

/* Take over what evhttp read, so that it lives as long as the sink. */
static void
take(struct hf_sink *s, struct hf_conn *c)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(s->ev);
	size_t n = evbuffer_get_length(in);

	s->rq.impl = s;
	s->rq.loopback = c->loopback;
	s->rq.received_us = hf_now_us();
	s->head = c->head;
	c->head = NULL;
	if (hf_held_body(c) != NULL) {
		s->rq.body = (struct hf_str){ hf_held_body(c), n };
	} else if (n > 0) {
		s->body = evbuffer_new();
		HF_CHECK(
		    s->body != NULL && evbuffer_add_buffer(s->body, in) == 0);
		s->rq.body.p = (const char *)evbuffer_pullup(s->body, -1);
		s->rq.body.size = n;
		HF_CHECK(s->rq.body.p != NULL);
	}
	s->rq.method = method_of(s->head->method);
	s->rq.query = s->head->query;
	hf_count(s->front->c.shm, HF_C_requests, 1);
	hf_count(s->front->c.shm, HF_C_bytes_in, (int64_t)n);
}

/* The strict verdict, and that both readers saw the same framing. */
static bool
check(struct hf_sink *s)
{
	const struct hf_http_head *h = s->head;
	const char *why = NULL;
	int status = 400;
	long n;

	if (!h->done) {
		why = "incomplete request header";
	} else if (h->status != 0) {
		why = h->why;
		status = h->status;
	} else if (s->rq.body.size !=
	    (h->body_size < 0 ? 0 : (size_t)h->body_size)) {
		why = "request body does not match its length";
	} else {
		s->path = malloc(h->path.size + 1);
		HF_CHECK(s->path != NULL);
		n = hf_path_decode(h->path, s->path);
		if (n < 0)
			why = "invalid path";
		else
			s->rq.path = (struct hf_str){ s->path, (size_t)n };
	}
	if (why == NULL) {
		s->close = h->close;
		return true;
	}
	s->close = true;
	s->rq.body = HF_STR_NONE;
	refuse(
	    s, status, status == 411 ? "length_required" : "bad_request", why);
	return false;
}

static void
dispatch(struct hf_sink *s)
{
	struct hf_front *f = s->front;
	const struct hf_path *p;
	size_t best;

	p = route(f, s->head->path, s->rq.method, &s->allow, &best);
	if (best == 0) {
		refuse(s, 404, "not_found", "no such path");
		return;
	}
	if (p == NULL) {
		refuse(s, 405, "method_not_allowed",
		    "method not allowed for this path");
		return;
	}
	if (best != SIZE_MAX)
		s->rq.rest = (struct hf_str){ s->rq.path.p + best,
			s->rq.path.size - best };
	if (!p->open && f->c.authorize != NULL &&
	    !f->c.authorize(f->c.arg, &s->rq, s, p)) {
		hf_count(f->c.shm, HF_C_requests_refused, 1);
		return;
	}
	p->fn(f->c.arg, &s->rq, s);
}

/* evhttp's callback for every request it could read. */
void
hf_front_request(struct evhttp_request *ev, void *front)
{
	struct hf_front *f = front;
	struct hf_conn *c = hf_conn_find(f, ev);
	struct hf_sink *s;

	if (c == NULL || c->head == NULL || c->sink != NULL) {
		/* Cannot be: a connection that was never adopted. */
		evhttp_send_error(ev, 500, NULL);
		return;
	}
	hf_conn_busy(c);
	s = hf_sink_new(c, ev);
	take(s, c);
	hf_held_resume(s);
	/* evhttp echoes the request's version, whatever it was. */
	ev->major = 1;
	ev->minor = s->head->status == 0 ? (char)s->head->minor : 1;
	if (!check(s))
		return;
	if (s->rq.body.size > (size_t)f->c.gw->body_soft)
		refuse(
		    s, 413, "request_too_large", "request body over the limit");
	else
		dispatch(s);
}
