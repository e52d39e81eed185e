/*
 * The gateway of one worker: ties front, surfaces, turns, store and upstream
 * together on one event base.  Loop thread only.
 */
#include <config.h>

#include "gateway/gateway.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "gateway/metrics.h"
#include "gateway/surface/surface.h"
#include "gateway/warm.h"

#define DRAIN_POLL_US 20000

struct hf_gateway {
	struct hf_gateway_conf c;
	struct hf_turn_env env;
	struct hf_front *front;
	struct hf_warm *warm;
	struct event *store_ev;	 /* completions wait */
	struct event *submit_ev; /* writes wait */
	struct event *wake_ev;	 /* leases were granted to us */
	struct event *drain_ev;
	void (*drained)(void *arg);
	void *drained_arg;
	bool draining;
};

/* --- a crash of ours ----------------------------------------------------- */

static bool
tell_held(void *arg, uint32_t slot, uint32_t epoch, int fd)
{
	struct hf_gateway *g = arg;

	return g->c.tell_held(g->c.tell_arg, slot, epoch, fd);
}

void
hf_gateway_adopt(
    struct hf_gateway *g, int fd, uint32_t slot, uint32_t epoch, bool poisoned)
{
	hf_front_adopt(g->front, fd, slot, epoch, poisoned);
}

/* --- who may ask -------------------------------------------------------- */

static void
refuse(void *arg, struct hf_req *rq, struct hf_sink *sink, int status,
    const char *code, const char *message)
{
	struct hf_gateway *g = arg;
	struct hf_refusal r = { 0 };

	(void)rq;
	hf_count(g->c.shm, HF_C_requests_refused, 1);
	hf_refuse(&r, status, code, NULL, "%s", message);
	hf_surface_refuse(sink, &r, -1, status != 429 && status < 500);
}

/* The key that the client presents: clients of the one protocol send it as a
 * bearer token, those of the other by itself. */
static struct hf_str
presented_key(const struct hf_req *rq)
{
	static const char scheme[] = "bearer ";
	struct hf_str v = hf_req_header(rq, "Authorization");
	size_t n = sizeof(scheme) - 1;

	if (v.p == NULL || v.size < n || strncasecmp(v.p, scheme, n) != 0)
		return hf_req_header(rq, "X-Api-Key");
	v.p += n;
	v.size -= n;
	while (v.size > 0 && v.p[0] == ' ') {
		v.p++;
		v.size--;
	}
	return v;
}

static bool
is_ours(struct hf_str key)
{
	size_t n = strlen(HF_SECRET_PREFIX);

	return key.size >= n && memcmp(key.p, HF_SECRET_PREFIX, n) == 0;
}

/* 0: rq->tenant is set.  HF_EPERM: *why says why not. */
static int
find_tenant(struct hf_gateway *g, struct hf_req *rq, const char **why,
    struct hf_error *e)
{
	struct hf_str key = presented_key(rq);
	bool any = true;
	int rc = 0;

	/* A key of ours is looked up even while none is known: the first one
	 * may have been made a moment ago. */
	if (!is_ours(key))
		rc = hf_store_any_key(g->c.store, &any, e);
	if (rc < 0)
		return rc;
	*why = "this API key is unknown or was revoked";
	if (any && key.size > 0)
		return hf_store_authenticate(
		    g->c.store, key, rq->tenant, sizeof(rq->tenant), e);
	*why = any ? "no API key was given: expected Authorization: Bearer "
		     "KEY or X-Api-Key: KEY" :
		     "no API key exists yet; make one first";
	/* As long as no key exists, whoever can reach a loopback listener is
	 * the default tenant; no other listener is served then. */
	if (any || !rq->loopback)
		return HF_EPERM;
	snprintf(rq->tenant, sizeof(rq->tenant), "%s", HF_TENANT_DEFAULT);
	return 0;
}

static bool
authorize(
    void *arg, struct hf_req *rq, struct hf_sink *sink, const struct hf_path *p)
{
	struct hf_gateway *g = arg;
	struct hf_error e = { 0 };
	const char *why = "";
	int rc;

	if (p->open)
		return true;
	rc = find_tenant(g, rq, &why, &e);
	if (rc == 0)
		return true;
	if (rc == HF_EPERM) {
		refuse(g, rq, sink, 401, "invalid_api_key", why);
		return false;
	}
	hf_log(HF_LOG_ERROR, "gateway: keys_unreadable code=%s detail=\"%s\"",
	    hf_err_name(rc), e.text);
	refuse(g, rq, sink, 503, "storage_error",
	    "the storage of the gateway failed");
	return false;
}

/* --- handlers ------------------------------------------------------------ */

static void
count_request(struct hf_gateway *g, const struct hf_req *rq)
{
	struct hf_slot *s = &g->c.shm->h->slot[g->c.shm->self];

	atomic_fetch_add_explicit(&s->worked, 1, memory_order_relaxed);
	hf_count(g->c.shm, HF_C_requests, 1);
	hf_count(g->c.shm, HF_C_bytes_in, (int64_t)rq->body.size);
}

static void
on_chat(void *arg, struct hf_req *rq, struct hf_sink *sink)
{
	struct hf_gateway *g = arg;

	count_request(g, rq);
	hf_chat_serve(&g->env, rq, sink);
}

static void
on_models(void *arg, struct hf_req *rq, struct hf_sink *sink)
{
	struct hf_gateway *g = arg;

	count_request(g, rq);
	hf_models_serve(g->c.conf, rq, sink);
}

static void
on_session(void *arg, struct hf_req *rq, struct hf_sink *sink)
{
	struct hf_gateway *g = arg;

	count_request(g, rq);
	hf_follow_serve(&g->env, rq, sink);
}

static void
on_livez(void *arg, struct hf_req *rq, struct hf_sink *sink)
{
	(void)arg;
	(void)rq;
	hf_sink_reply(sink, 200, NULL, 0, "text/plain", HF_STR("ok\n"));
}

/* Ready: this worker takes turns and can read its store. */
static void
on_readyz(void *arg, struct hf_req *rq, struct hf_sink *sink)
{
	struct hf_gateway *g = arg;
	struct hf_error e = { 0 };
	bool any;

	(void)rq;
	if (g->draining)
		hf_sink_reply(
		    sink, 503, NULL, 0, "text/plain", HF_STR("draining\n"));
	else if (hf_store_any_key(g->c.store, &any, &e) < 0)
		hf_sink_reply(
		    sink, 503, NULL, 0, "text/plain", HF_STR("storage\n"));
	else
		hf_sink_reply(
		    sink, 200, NULL, 0, "text/plain", HF_STR("ready\n"));
}

static void
on_metrics(void *arg, struct hf_req *rq, struct hf_sink *sink)
{
	struct hf_gateway *g = arg;
	struct hf_buf b;

	(void)rq;
	hf_buf_init(&b, 1 << 20);
	hf_metrics_print(g->c.shm, &b);
	hf_sink_reply(sink, 200, NULL, 0,
	    "text/plain; version=0.0.4; charset=utf-8", hf_buf_str(&b));
	hf_buf_free(&b);
}

/* Base URLs are configured with and without /v1, and sometimes with the whole
 * path already in them. */
static const struct hf_path paths[] = {
	{ "/v1/chat/completions", HF_POST, false, on_chat },
	{ "/chat/completions", HF_POST, false, on_chat },
	{ "/v1/v1/chat/completions", HF_POST, false, on_chat },
	{ "/v1/chat/completions/chat/completions", HF_POST, false, on_chat },
	{ "/v1/models", HF_GET | HF_HEAD, false, on_models },
	{ "/models", HF_GET | HF_HEAD, false, on_models },
	{ "/v1/models/*", HF_GET | HF_HEAD, false, on_models },
	{ "/models/*", HF_GET | HF_HEAD, false, on_models },
	{ "/v1/sessions/*", HF_GET, false, on_session },
	{ "/sessions/*", HF_GET, false, on_session },
	{ "/livez", HF_GET | HF_HEAD, true, on_livez },
	{ "/readyz", HF_GET | HF_HEAD, true, on_readyz },
	{ "/metrics", HF_GET | HF_HEAD, true, on_metrics },
};

/* --- events ---------------------------------------------------------------*/

static void
on_store(evutil_socket_t fd, short what, void *arg)
{
	struct hf_gateway *g = arg;

	(void)fd;
	(void)what;
	hf_store_dispatch(g->c.store);
}

/* Runs behind all events that are ready now. */
static void
submit_later(void *arg)
{
	struct hf_gateway *g = arg;

	event_active(g->submit_ev, EV_TIMEOUT, 0);
}

static void
on_submit(evutil_socket_t fd, short what, void *arg)
{
	struct hf_gateway *g = arg;

	(void)fd;
	(void)what;
	hf_store_submit(g->c.store);
}

static void
on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct hf_gateway *g = arg;
	uint64_t n;

	(void)what;
	if (read(fd, &n, sizeof(n)) < 0)
		return; /* somebody else's wake-up was first */
	hf_turn_grants(&g->env);
}

static void
on_drain(evutil_socket_t fd, short what, void *arg)
{
	struct hf_gateway *g = arg;
	struct timeval again = { 0, DRAIN_POLL_US };

	(void)fd;
	(void)what;
	if (hf_front_in_flight(g->front) > 0 || g->env.n_turns > 0) {
		evtimer_add(g->drain_ev, &again);
		return;
	}
	if (g->drained != NULL)
		g->drained(g->drained_arg);
}

/* --- life ---------------------------------------------------------------- */

static int
make_events(struct hf_gateway *g, struct hf_error *e)
{
	struct event_base *base = g->c.base;
	int wake = g->c.shm->wake_fd[g->c.shm->self];

	g->store_ev = event_new(base, hf_store_event_fd(g->c.store),
	    EV_READ | EV_PERSIST, on_store, g);
	g->wake_ev = event_new(base, wake, EV_READ | EV_PERSIST, on_wake, g);
	g->submit_ev = evtimer_new(base, on_submit, g);
	g->drain_ev = evtimer_new(base, on_drain, g);
	if (g->store_ev == NULL || g->submit_ev == NULL || g->wake_ev == NULL ||
	    g->drain_ev == NULL || event_add(g->store_ev, NULL) < 0 ||
	    event_add(g->wake_ev, NULL) < 0)
		return hf_fail(e, HF_ENOMEM, "events");
	hf_store_set_later(g->c.store, submit_later, g);
	return 0;
}

int
hf_gateway_new(struct hf_gateway **out, const struct hf_gateway_conf *c,
    struct hf_error *e)
{
	struct hf_gateway *g = hf_xcalloc(1, sizeof(*g));
	struct hf_front_conf fc = {
		.gw = &c->conf->gateway,
		.path = paths,
		.n_path = hf_countof(paths),
		.arg = g,
		.shm = c->shm,
		.hold = c->hold,
		.tell_held = tell_held,
		.authorize = authorize,
		.refuse = refuse,
	};
	int rc;

	g->c = *c;
	g->env = (struct hf_turn_env){ .base = c->base,
		.conf = c->conf,
		.store = c->store,
		.shm = c->shm };
	rc = hf_upstream_new(&g->env.upstream, c->base, e);
	if (rc == 0)
		rc = hf_front_new(&g->front, c->base, &fc, e);
	if (rc == 0)
		rc = make_events(g, e);
	if (rc == 0) {
		g->warm =
		    hf_warm_new(c->base, c->conf, g->env.upstream, c->shm);
		if (g->warm == NULL)
			rc = hf_fail(e, HF_ENOMEM, "warm connections");
	}
	if (rc < 0) {
		hf_gateway_free(g);
		return rc;
	}
	*out = g;
	return 0;
}

int
hf_gateway_listen(struct hf_gateway *g, int fd, struct hf_error *e)
{
	return hf_front_listen(g->front, fd, e);
}

void
hf_gateway_drain(struct hf_gateway *g, void (*done)(void *arg), void *arg)
{
	struct timeval now = { 0, 0 };

	g->draining = g->env.draining = true;
	g->drained = done;
	g->drained_arg = arg;
	hf_front_drain(g->front);
	hf_warm_free(g->warm);
	g->warm = NULL;
	evtimer_add(g->drain_ev, &now);
}

void
hf_gateway_free(struct hf_gateway *g)
{
	if (g == NULL)
		return;
	/* Turns end with their clients; what is left of calls is cut. */
	if (g->front != NULL)
		hf_front_free(g->front);
	hf_turn_env_free(&g->env);
	hf_warm_free(g->warm);
	if (g->env.upstream != NULL)
		hf_upstream_free(g->env.upstream);
	hf_store_set_later(g->c.store, NULL, NULL);
	if (g->store_ev != NULL)
		event_free(g->store_ev);
	if (g->submit_ev != NULL)
		event_free(g->submit_ev);
	if (g->wake_ev != NULL)
		event_free(g->wake_ev);
	if (g->drain_ev != NULL)
		event_free(g->drain_ev);
	free(g);
}

int
hf_gateway_make_body(void *arg, struct hf_str text, struct hf_str refusal,
    struct hf_buf *body, struct hf_buf *norm)
{
	(void)arg;
	hf_item_text_body(text, refusal, body, norm);
	return (body == NULL || hf_buf_ok(body)) &&
		(norm == NULL || hf_buf_ok(norm)) ?
	    0 :
	    HF_ENOMEM;
}
