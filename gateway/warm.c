/*
 * Connections that are kept warm: each provider's list of models is asked for,
 * which costs nothing, and what it says is not looked at.
 */
#include <config.h>

#include "gateway/warm.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"
#include "gateway/provider/provider.h"

struct line {
	struct hf_warm *w;
	const struct hf_conf_provider *provider;
	struct event *ev;     /* when to ask again */
	struct hf_call *call; /* NULL: none is under way */
};

struct hf_warm {
	struct hf_upstream *upstream;
	struct hf_shm *shm;
	unsigned n;
	struct line line[];
};

static void ask(struct line *l, bool fresh);

static void
count(const struct line *l, bool ok, const char *reason)
{
	hf_count(l->w->shm, ok ? HF_C_warm_ok : HF_C_warm_failed, 1);
	hf_log(HF_LOG_DEBUG, "warm: asked provider=%s reason=%s",
	    l->provider->name, reason);
}

static void
on_headers(void *arg, int status, struct hf_str headers)
{
	(void)arg;
	(void)status;
	(void)headers;
}

static void
on_data(void *arg, struct hf_str bytes)
{
	(void)arg;
	(void)bytes;
}

static void
on_done(void *arg, const struct hf_call_result *r)
{
	struct line *l = arg;

	l->call = NULL;
	if (r->stale)
		ask(l, true);
	else
		count(l, r->cls == HF_CLASS_NONE, r->reason);
}

static const struct hf_call_ops ops = {
	.headers = on_headers,
	.data = on_data,
	.done = on_done,
};

static void
ask(struct line *l, bool fresh)
{
	const struct hf_conf_provider *p = l->provider;
	struct hf_http_request rq;
	struct hf_error e;
	int rc;

	hf_http_request_init(&rq);
	rc = hf_dialect(p->dialect)->models(p, &rq, &e);
	if (rc == 0)
		rc = hf_upstream_start(l->w->upstream, &rq, p->call.connect_ms,
		    fresh, &ops, l, &l->call, &e);
	if (rc < 0)
		count(l, false, "not_started");
	hf_http_request_free(&rq);
}

static void
again_after(struct line *l, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	evtimer_add(l->ev, &tv);
}

static void
on_due(evutil_socket_t fd, short what, void *arg)
{
	struct line *l = arg;

	(void)fd;
	(void)what;
	if (l->call != NULL) {
		hf_call_cancel(l->call);
		l->call = NULL;
		count(l, false, "timeout");
	}
	ask(l, false);
	again_after(l, l->provider->call.warm_every_ms);
}

/* Is it, or a target of it, to be kept warm? */
static bool
is_wanted(const struct hf_conf *c, const struct hf_conf_provider *p)
{
	for (unsigned i = 0; i < c->n_target; i++)
		if (c->target[i].provider == p &&
		    c->target[i].call.warm != HF_WARM_NONE)
			return true;
	return false;
}

struct hf_warm *
hf_warm_new(struct event_base *base, const struct hf_conf *conf,
    struct hf_upstream *upstream, struct hf_shm *shm)
{
	struct hf_warm *w =
	    calloc(1, sizeof(*w) + conf->n_provider * sizeof(w->line[0]));

	if (w == NULL)
		return NULL;
	w->upstream = upstream;
	w->shm = shm;
	for (unsigned i = 0; i < conf->n_provider; i++) {
		struct line *l = &w->line[w->n];

		if (!is_wanted(conf, &conf->provider[i]))
			continue;
		l->w = w;
		l->provider = &conf->provider[i];
		l->ev = evtimer_new(base, on_due, l);
		if (l->ev == NULL) {
			hf_warm_free(w);
			return NULL;
		}
		w->n++;
		again_after(l, 0);
	}
	return w;
}

void
hf_warm_free(struct hf_warm *w)
{
	if (w == NULL)
		return;
	for (unsigned i = 0; i < w->n; i++) {
		if (w->line[i].call != NULL)
			hf_call_cancel(w->line[i].call);
		event_free(w->line[i].ev);
	}
	free(w);
}
