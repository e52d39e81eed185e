/*
 * curl's multi interface, driven by libevent.
 */
#include <config.h>

#include "bench/fetch.h"

#include <curl/curl.h>
#include <stdlib.h>

#include "base/check.h"

struct hf_fetch {
	struct hf_fetcher *f;
	CURL *easy;
	struct curl_slist *headers;
	struct event *timer; /* no byte for too long; or the end */
	struct timeval idle;
	struct hf_fetch_request rq;
	bool dead; /* cancelled, or too slow */
	struct hf_fetch *next, **prev;
};

struct hf_fetcher {
	struct event_base *base;
	CURLM *multi;
	struct event *timer;
	struct hf_fetch *all;
};

static void
fetch_free(struct hf_fetch *x)
{
	if (x->next != NULL)
		x->next->prev = x->prev;
	*x->prev = x->next;
	curl_multi_remove_handle(x->f->multi, x->easy);
	curl_easy_cleanup(x->easy);
	curl_slist_free_all(x->headers);
	event_free(x->timer);
	free(x);
}

/* --- curl and the loop ---------------------------------------------------- */

static void
collect(struct hf_fetcher *f)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(f->multi, &left)) != NULL) {
		struct hf_fetch *x;
		long status = 0;
		bool whole = m->data.result == CURLE_OK;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(
		    m->easy_handle, CURLINFO_PRIVATE, (char **)&x);
		curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
		if (x->dead)
			continue; /* its timer sees to it */
		x->rq.end(x->rq.arg, (int)status, whole);
		fetch_free(x);
	}
}

static void
on_socket(evutil_socket_t fd, short what, void *arg)
{
	struct hf_fetcher *f = arg;
	int running;
	int bits = (what & EV_READ ? CURL_CSELECT_IN : 0) |
	    (what & EV_WRITE ? CURL_CSELECT_OUT : 0);

	curl_multi_socket_action(f->multi, (curl_socket_t)fd, bits, &running);
	collect(f);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct hf_fetcher *f = arg;
	int running;

	(void)fd;
	(void)what;
	curl_multi_socket_action(f->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	collect(f);
}

static int
want_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *was)
{
	struct hf_fetcher *f = arg;
	struct event *ev = was;
	short bits = (short)((what & CURL_POLL_IN ? EV_READ : 0) |
	    (what & CURL_POLL_OUT ? EV_WRITE : 0));

	(void)easy;
	if (ev != NULL)
		event_free(ev);
	ev = NULL;
	if (what != CURL_POLL_REMOVE) {
		ev = event_new(f->base, (evutil_socket_t)fd,
		    (short)(bits | EV_PERSIST), on_socket, f);
		HF_CHECK(ev != NULL && event_add(ev, NULL) == 0);
	}
	curl_multi_assign(f->multi, fd, ev);
	return 0;
}

static int
want_timer(CURLM *multi, long ms, void *arg)
{
	struct hf_fetcher *f = arg;
	struct timeval tv = { ms / 1000, (ms % 1000) * 1000 };

	(void)multi;
	if (ms < 0)
		event_del(f->timer);
	else
		event_add(f->timer, &tv);
	return 0;
}

/* --- one request ---------------------------------------------------------- */

static size_t
on_data(char *p, size_t size, size_t n, void *arg)
{
	struct hf_fetch *x = arg;

	if (x->dead)
		return 0;
	event_add(x->timer, &x->idle);
	if (!x->rq.data(x->rq.arg, (struct hf_str){ p, size * n }))
		return 0;
	return size * n;
}

/* It was too slow, or is cancelled: not within curl's own callbacks. */
static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	struct hf_fetch *x = arg;

	(void)fd;
	(void)what;
	if (!x->dead)
		x->rq.end(x->rq.arg, 0, false);
	fetch_free(x);
}

void
hf_fetch_cancel(struct hf_fetch *x)
{
	struct timeval now = { 0, 0 };

	x->dead = true;
	event_add(x->timer, &now);
}

struct hf_fetch *
hf_fetch_start(struct hf_fetcher *f, const struct hf_fetch_request *rq)
{
	struct hf_fetch *x = hf_xcalloc(1, sizeof(*x));

	x->f = f;
	x->rq = *rq;
	x->idle.tv_sec = rq->idle_ms / 1000;
	x->idle.tv_usec = (suseconds_t)(rq->idle_ms % 1000) * 1000;
	x->timer = evtimer_new(f->base, on_late, x);
	x->easy = curl_easy_init();
	HF_CHECK(x->timer != NULL && x->easy != NULL);
	x->next = f->all;
	x->prev = &f->all;
	if (x->next != NULL)
		x->next->prev = &x->next;
	f->all = x;
	x->headers = curl_slist_append(NULL, "Content-Type: application/json");
	x->headers = curl_slist_append(x->headers, "Authorization: Bearer key");
	x->headers = curl_slist_append(x->headers, "Expect:");
	curl_easy_setopt(x->easy, CURLOPT_URL, rq->url);
	curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE, (long)rq->body.size);
	curl_easy_setopt(x->easy, CURLOPT_COPYPOSTFIELDS, rq->body.p);
	curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->headers);
	curl_easy_setopt(x->easy, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(x->easy, CURLOPT_WRITEDATA, x);
	curl_easy_setopt(x->easy, CURLOPT_PRIVATE, x);
	curl_easy_setopt(
	    x->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)rq->connect_ms);
	curl_easy_setopt(x->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(x->easy, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(x->easy, CURLOPT_FRESH_CONNECT, 1L);
	curl_easy_setopt(x->easy, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(x->easy, CURLOPT_PROXY, "");
	event_add(x->timer, &x->idle);
	HF_CHECK(curl_multi_add_handle(f->multi, x->easy) == CURLM_OK);
	return x;
}

/* --- life ----------------------------------------------------------------- */

struct hf_fetcher *
hf_fetcher_new(struct event_base *base)
{
	struct hf_fetcher *f = hf_xcalloc(1, sizeof(*f));

	HF_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
	f->base = base;
	f->multi = curl_multi_init();
	f->timer = evtimer_new(base, on_timer, f);
	HF_CHECK(f->multi != NULL && f->timer != NULL);
	curl_multi_setopt(f->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
	curl_multi_setopt(f->multi, CURLMOPT_SOCKETDATA, f);
	curl_multi_setopt(f->multi, CURLMOPT_TIMERFUNCTION, want_timer);
	curl_multi_setopt(f->multi, CURLMOPT_TIMERDATA, f);
	return f;
}

void
hf_fetcher_free(struct hf_fetcher *f)
{
	if (f == NULL)
		return;
	while (f->all != NULL)
		fetch_free(f->all);
	curl_multi_cleanup(f->multi);
	event_free(f->timer);
	curl_global_cleanup();
	free(f);
}
