/*
 * Calls of providers: their life from hf_upstream_start() to 'done' or
 * hf_call_cancel().  Loop thread.
 *
 *	RESOLVING ---> QUEUED ---> RUNNING ---> done
 *	     \____________\___________\_______> DEAD (cancelled)
 *
 * No transfer is added or removed while libcurl is on the stack: such wishes
 * are kept in the call's state and carried out when it has returned.
 */
#include <config.h>

#include "gateway/upstream/upstream.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>

#include <event2/util.h>

#include "base/check.h"
#include "base/clock.h"
#include "gateway/upstream/internal.h"

#define EXPECT_SIZE (512 * 1024) /* libcurl's own bound is 1 MB */
#define HEADERS_MAX (256 * 1024) /* bytes of a response's headers */

static void work(evutil_socket_t fd, short what, void *arg);
static void connect_late(evutil_socket_t fd, short what, void *arg);
static void fail_call(struct hf_call *c, CURLcode rc, const char *detail);
static void forget_url(struct hf_upstream_url *x);

int
hf_upstream_new(
    struct hf_upstream **out, struct event_base *base, struct hf_error *e)
{
	struct hf_upstream *u;
	int rc = hf_libcurl_load(e);

	*out = NULL;
	if (rc < 0)
		return rc;
	u = hf_xcalloc(1, sizeof(*u));
	signal(SIGPIPE, SIG_IGN); /* CURLOPT_NOSIGNAL relies on it */
	curl_global_init(CURL_GLOBAL_DEFAULT);
	u->base = base;
	LIST_INIT(&u->calls);
	LIST_INIT(&u->dead);
	TAILQ_INIT(&u->tasks);
	u->work = event_new(base, -1, 0, work, u);
	if (u->work == NULL)
		rc = hf_fail(e, HF_ENOMEM, "upstream events");
	else
		rc = hf_upstream_loop_init(u, e);
	if (rc == 0)
		rc = hf_resolver_new(&u->resolver, base, e);
	if (rc < 0) {
		hf_upstream_free(u);
		return rc;
	}
	*out = u;
	return 0;
}

void
hf_upstream_free(struct hf_upstream *u)
{
	struct hf_call *c;

	if (u == NULL)
		return;
	u->closing = true;
	while ((c = LIST_FIRST(&u->calls)) != NULL)
		hf_call_cancel(c);
	hf_upstream_reap(u);
	hf_handles_free(u);
	for (unsigned i = 0; i < hf_countof(u->url); i++)
		forget_url(&u->url[i]);
	hf_upstream_loop_free(u);
	hf_resolver_free(u->resolver);
	if (u->work != NULL)
		event_free(u->work);
	free(u);
	curl_global_cleanup();
}

unsigned
hf_upstream_in_flight(const struct hf_upstream *u)
{
	return u->n_calls;
}

static void
call_free(struct hf_call *c)
{
	evtimer_del(&c->timer);
	hf_resolve_cancel(c->wait);
	hf_handle_put(c);
	curl_slist_free_all(c->header_list);
	curl_slist_free_all(c->address_list);
	hf_buf_free(&c->rq.url);
	if (c->rq.headers.data != NULL) /* holds the secret */
		explicit_bzero(c->rq.headers.data, c->rq.headers.cap);
	hf_buf_free(&c->rq.headers);
	hf_buf_free(&c->rq.body);
	hf_buf_free(&c->headers);
	free(c->host);
	free(c);
}

/* Leave the list and libcurl, then end.  Never while libcurl runs. */
static void
call_end(struct hf_call *c)
{
	HF_CHECK(c->u->depth == 0);
	LIST_REMOVE(c, entry);
	if (c->easy != NULL)
		curl_multi_remove_handle(c->u->multi, c->easy);
	call_free(c);
}

void
hf_upstream_reap(struct hf_upstream *u)
{
	struct hf_call *c;

	if (u->depth > 0)
		return;
	while ((c = LIST_FIRST(&u->dead)) != NULL)
		call_end(c);
}

static void
task_add(struct hf_call *c)
{
	if (!c->tasked)
		TAILQ_INSERT_TAIL(&c->u->tasks, c, task);
	c->tasked = true;
	event_active(c->u->work, 0, 0);
}

static void
task_del(struct hf_call *c)
{
	if (c->tasked)
		TAILQ_REMOVE(&c->u->tasks, c, task);
	c->tasked = false;
}

/* Nothing of the caller's is touched any more from here on. */
static void
call_dead(struct hf_call *c)
{
	LIST_REMOVE(c, entry);
	LIST_INSERT_HEAD(&c->u->dead, c, entry);
	task_del(c);
	c->state = HF_CALL_DEAD;
	c->ops = NULL;
	evtimer_del(&c->timer);
	hf_resolve_cancel(c->wait);
	c->wait = NULL;
	c->u->n_calls--;
}

void
hf_call_cancel(struct hf_call *c)
{
	struct hf_upstream *u = c->u;

	if (c->state == HF_CALL_DEAD)
		return;
	call_dead(c);
	if (u->closing)
		return;
	/* From a callback of ours or libcurl's the list may be being walked:
	 * the work event does it in the same pass of the loop. */
	event_active(u->work, 0, 0);
}

void
hf_call_pause(struct hf_call *c, bool pause)
{
	c->pause = pause;
	if (!pause && c->paused)
		task_add(c);
}

/* --- starting --- */

static struct curl_slist *
append(struct curl_slist *l, const char *z)
{
	struct curl_slist *n = curl_slist_append(l, z);

	HF_CHECK(n != NULL);
	return n;
}

/* "Name: value" lines to libcurl's list. */
static int
set_headers(struct hf_call *c, struct hf_error *e)
{
	struct hf_str rest = hf_buf_str(&c->rq.headers);
	struct curl_slist *l = NULL;
	bool encoding = false;

	/* libcurl would wait for a 100 before it sends a large body. */
	if (c->rq.body.size >= EXPECT_SIZE)
		l = append(l, "Expect:");

	while (rest.size > 0) {
		const char *lf = memchr(rest.p, '\n', rest.size);
		size_t n = lf == NULL ? rest.size : (size_t)(lf - rest.p);
		size_t skip = lf == NULL ? n : n + 1;
		char *z;

		while (n > 0 && rest.p[n - 1] == '\r')
			n--;
		for (size_t i = 0; i < n; i++) {
			if ((unsigned char)rest.p[i] >= 0x20 ||
			    rest.p[i] == '\t')
				continue;
			curl_slist_free_all(l);
			return hf_fail(
			    e, HF_EINVAL, "control byte in a request header");
		}
		if (n > 0) {
			z = hf_xstrndup(rest.p, n);
			encoding |= strncasecmp(z, "accept-encoding:", 16) == 0;
			l = append(l, z);
			explicit_bzero(z, n);
			free(z);
		}
		rest = (struct hf_str){ rest.p + skip, rest.size - skip };
	}
	if (!encoding)
		l = append(l, "Accept-Encoding: identity");
	c->header_list = l;
	curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, l);
	return 0;
}

/* Host and port of the URL; literals need no resolver. */
static int
parse_url(
    const struct hf_buf *text, struct hf_upstream_url *out, struct hf_error *e)
{
	CURLU *url = curl_url();
	char *host = NULL, *port = NULL;
	unsigned char addr[16];
	int rc = 0;

	HF_CHECK(url != NULL);
	if (text->size == 0 || strlen(text->data) != text->size ||
	    curl_url_set(url, CURLUPART_URL, text->data, 0) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) !=
		CURLUE_OK) {
		rc = hf_fail(e, HF_EINVAL, "malformed URL");
		goto out;
	}
	out->text = hf_xstrdup(text->data);
	out->host = hf_xstrdup(host);
	out->port = atoi(port);
	out->literal =
	    host[0] == '[' || evutil_inet_pton(AF_INET, host, addr) == 1;
out:
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(url);
	return rc;
}

static void
forget_url(struct hf_upstream_url *x)
{
	free(x->text);
	free(x->host);
	*x = (struct hf_upstream_url){ 0 };
}

static struct hf_upstream_url *
known_url(struct hf_upstream *u, struct hf_str text)
{
	for (unsigned i = 0; i < hf_countof(u->url); i++)
		if (u->url[i].text != NULL && hf_str_is(text, u->url[i].text))
			return &u->url[i];
	return NULL;
}

/* The same few URLs come again and again: the last ones are remembered. */
static int
find_url(struct hf_call *c, bool *literal, struct hf_error *e)
{
	struct hf_upstream *u = c->u;
	struct hf_upstream_url *x = known_url(u, hf_buf_str(&c->rq.url));
	int rc;

	if (x == NULL) {
		x = &u->url[u->next_url++ % hf_countof(u->url)];
		forget_url(x);
		rc = parse_url(&c->rq.url, x, e);
		if (rc < 0)
			return rc;
	}
	c->host = hf_xstrdup(x->host);
	c->port = x->port;
	*literal = x->literal;
	return 0;
}

static void
set_addresses(struct hf_call *c, const char *addresses)
{
	char entry[1400];

	snprintf(
	    entry, sizeof(entry), "+%s:%d:%s", c->host, c->port, addresses);
	c->address_list = append(NULL, entry);
	curl_easy_setopt(c->easy, CURLOPT_RESOLVE, c->address_list);
}

/* QUEUED to RUNNING. */
static void
give_to_curl(struct hf_call *c)
{
	CURLMcode rc;

	c->state = HF_CALL_RUNNING;
	rc = curl_multi_add_handle(c->u->multi, c->easy);
	if (rc != CURLM_OK)
		fail_call(c, CURLE_OUT_OF_MEMORY, curl_multi_strerror(rc));
}

static void
queue_call(struct hf_call *c)
{
	c->state = HF_CALL_QUEUED;
	c->resolved_us = hf_now_us();
	task_add(c);
}

static void
on_resolved(void *arg, const char *addresses, const char *why)
{
	struct hf_call *c = arg;

	c->wait = NULL;
	if (addresses == NULL) {
		fail_call(c, CURLE_COULDNT_RESOLVE_HOST, why);
		return;
	}
	set_addresses(c, addresses);
	queue_call(c);
}

/* The request's buffers move; the caller keeps empty ones. */
static void
take_request(struct hf_call *c, struct hf_http_request *rq)
{
	c->rq = *rq;
	hf_buf_init(&rq->url, c->rq.url.max);
	hf_buf_init(&rq->headers, c->rq.headers.max);
	hf_buf_init(&rq->body, c->rq.body.max);
}

int
hf_upstream_start(struct hf_upstream *u, struct hf_http_request *rq,
    int connect_ms, bool fresh, const struct hf_call_ops *ops, void *arg,
    struct hf_call **out, struct hf_error *e)
{
	struct timeval tv = { connect_ms / 1000, connect_ms % 1000 * 1000 };
	struct hf_call *c = hf_xcalloc(1, sizeof(*c));
	const char *known = NULL;
	bool literal = false;
	int rc;

	*out = NULL;
	c->u = u;
	c->ops = ops;
	c->arg = arg;
	c->connect_ms = connect_ms;
	c->fresh = fresh;
	c->started_us = hf_now_us();
	hf_buf_init(&c->headers, HEADERS_MAX);
	evtimer_assign(&c->timer, u->base, connect_late, c);
	take_request(c, rq);
	if (!hf_handle_get(c))
		rc = hf_fail(e, HF_ENOMEM, "curl_easy_init");
	else if ((rc = find_url(c, &literal, e)) == 0)
		rc = set_headers(c, e);
	if (rc < 0) {
		call_free(c);
		return rc;
	}
	LIST_INSERT_HEAD(&u->calls, c, entry);
	u->n_calls++;
	evtimer_add(&c->timer, &tv);
	if (!literal) {
		known = hf_resolve_cached(u->resolver, c->host);
		if (known != NULL)
			set_addresses(c, known);
		else
			c->wait =
			    hf_resolve(u->resolver, c->host, on_resolved, c);
	}
	if (c->wait == NULL)
		queue_call(c);
	*out = c;
	return 0;
}

/* --- ending --- */

void
hf_call_finished(struct hf_call *c, CURLcode rc)
{
	const struct hf_call_ops *ops = c->ops;
	struct hf_upstream *u = c->u;
	struct hf_call_result r;
	void *arg = c->arg;

	if (c->state == HF_CALL_DEAD)
		return; /* reaped by the caller */
	hf_call_classify(c, rc, &r);
	call_dead(c);
	/* A new call may start from here; this one ends right after. */
	u->telling++;
	ops->done(arg, &r);
	u->telling--;
	if (!u->closing)
		event_active(u->work, 0, 0);
}

static void
fail_call(struct hf_call *c, CURLcode rc, const char *detail)
{
	snprintf(c->detail, sizeof(c->detail), "%s", detail);
	hf_call_finished(c, rc);
}

static void
connect_late(evutil_socket_t fd, short what, void *arg)
{
	struct hf_call *c = arg;

	(void)fd;
	(void)what;
	fail_call(c, CURLE_OPERATION_TIMEDOUT,
	    c->state == HF_CALL_RESOLVING && c->wait != NULL ?
		"name not resolved in time" :
		"not connected in time");
}

static void
resume(struct hf_call *c)
{
	c->paused = false;
	c->u->depth++;
	curl_easy_pause(c->easy, CURLPAUSE_CONT); /* may deliver data */
	c->u->depth--;
}

static void
do_tasks(struct hf_upstream *u)
{
	struct hf_call *c;

	/* Callbacks may change the list: look again after each. */
	while ((c = TAILQ_FIRST(&u->tasks)) != NULL) {
		task_del(c);
		if (c->state == HF_CALL_QUEUED)
			give_to_curl(c);
		else if (c->paused && !c->pause)
			resume(c);
		hf_upstream_collect(u);
	}
}

static void
work(evutil_socket_t fd, short what, void *arg)
{
	struct hf_upstream *u = arg;

	(void)fd;
	(void)what;
	hf_upstream_reap(u);
	do_tasks(u);
}

void
hf_upstream_push(struct hf_upstream *u)
{
	if (u->depth > 0 || u->telling > 0 || TAILQ_EMPTY(&u->tasks))
		return;
	do_tasks(u);
	hf_upstream_now(u);
}
