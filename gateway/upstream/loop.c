/*
 * libcurl's multi socket interface on libevent: one event per socket, one
 * timer.  libcurl may close a socket before it says CURL_POLL_REMOVE, or
 * without saying so: the close callback owns the table and ends the event
 * first, so that a reused descriptor never meets a stale one.  Loop thread.
 */
#include <config.h>

#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "gateway/upstream/internal.h"

#define POOL_MAX 512L /* idle connections kept */

static void
forget(struct hf_upstream *u, curl_socket_t fd)
{
	if (fd < 0 || (size_t)fd >= u->n_sock || u->sock[fd] == NULL)
		return;
	if (u->sock[fd]->armed != 0)
		event_del(&u->sock[fd]->ev);
	free(u->sock[fd]);
	u->sock[fd] = NULL;
}

int
hf_upstream_close_socket(void *upstream, curl_socket_t fd)
{
	forget(upstream, fd);
	return close(fd);
}

static void
action(struct hf_upstream *u, curl_socket_t fd, int mask)
{
	int running;

	u->depth++;
	curl_multi_socket_action(u->multi, fd, mask, &running);
	u->depth--;
	hf_upstream_collect(u);
}

static void
sock_event(evutil_socket_t fd, short what, void *arg)
{
	struct hf_upstream *u = arg;
	struct hf_upstream_sock *s = u->sock[fd];
	int mask = 0;

	if (!s->wanted) {
		/* Something came on an idle connection, most likely its end;
		 * libcurl finds out before it uses it again. */
		event_del(&s->ev);
		s->armed = 0;
		return;
	}
	if ((what & EV_READ) != 0)
		mask |= CURL_CSELECT_IN;
	if ((what & EV_WRITE) != 0)
		mask |= CURL_CSELECT_OUT;
	action(u, fd, mask);
}

static struct hf_upstream_sock *
sock_at(struct hf_upstream *u, curl_socket_t fd)
{
	size_t n = (size_t)fd + 64;

	if ((size_t)fd >= u->n_sock) {
		u->sock =
		    realloc(u->sock, n * sizeof(struct hf_upstream_sock *));
		HF_CHECK(u->sock != NULL);
		memset(u->sock + u->n_sock, 0,
		    (n - u->n_sock) * sizeof(struct hf_upstream_sock *));
		u->n_sock = n;
	}
	if (u->sock[fd] == NULL)
		u->sock[fd] = hf_xcalloc(1, sizeof(*u->sock[fd]));
	return u->sock[fd];
}

static int
sock_changed(CURL *easy, curl_socket_t fd, int what, void *arg, void *sockp)
{
	struct hf_upstream *u = arg;
	struct hf_upstream_sock *s = sock_at(u, fd);
	short events = 0;

	(void)easy;
	(void)sockp;
	s->wanted = what != CURL_POLL_REMOVE;
	if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
		events |= EV_READ;
	if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
		events |= EV_WRITE;
	/* Between two requests nothing is changed: that would be two system
	 * calls for each. */
	if (s->armed == events || (!s->wanted && s->armed == EV_READ))
		return 0;
	if (s->armed != 0)
		event_del(&s->ev);
	s->armed = events;
	if (events == 0)
		return 0;
	event_assign(&s->ev, u->base, fd, events | EV_PERSIST, sock_event, u);
	event_add(&s->ev, NULL);
	return 0;
}

static void
timer_due(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	action(arg, CURL_SOCKET_TIMEOUT, 0);
}

void
hf_upstream_now(struct hf_upstream *u)
{
	if (u->due)
		action(u, CURL_SOCKET_TIMEOUT, 0);
}

static int
timer_changed(CURLM *multi, long ms, void *arg)
{
	struct hf_upstream *u = arg;
	struct timeval tv = { ms / 1000, (ms % 1000) * 1000 };

	(void)multi;
	u->due = ms == 0;
	if (ms < 0)
		evtimer_del(&u->timer);
	else
		evtimer_add(&u->timer, &tv);
	return 0;
}

void
hf_upstream_collect(struct hf_upstream *u)
{
	CURLMsg *m;
	int left;

	if (u->depth > 0)
		return;
	hf_upstream_reap(u);
	while ((m = curl_multi_info_read(u->multi, &left)) != NULL) {
		CURLcode rc = m->data.result;
		char *priv = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &priv);
		HF_CHECK(priv != NULL);
		hf_call_finished((struct hf_call *)(void *)priv, rc);
	}
	hf_upstream_reap(u);
}

int
hf_upstream_loop_init(struct hf_upstream *u, struct hf_error *e)
{
	evtimer_assign(&u->timer, u->base, timer_due, u);
	u->multi = curl_multi_init();
	if (u->multi == NULL)
		return hf_fail(e, HF_ENOMEM, "curl_multi_init");
	curl_multi_setopt(u->multi, CURLMOPT_SOCKETFUNCTION, sock_changed);
	curl_multi_setopt(u->multi, CURLMOPT_SOCKETDATA, u);
	curl_multi_setopt(u->multi, CURLMOPT_TIMERFUNCTION, timer_changed);
	curl_multi_setopt(u->multi, CURLMOPT_TIMERDATA, u);
	curl_multi_setopt(u->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
	/* Its own limit follows the transfers of the moment, so that a burst's
	 * connections are closed when it ends and opened by the next. */
	curl_multi_setopt(u->multi, CURLMOPT_MAXCONNECTS, POOL_MAX);
	return 0;
}

void
hf_upstream_loop_free(struct hf_upstream *u)
{
	if (u->multi != NULL)
		curl_multi_cleanup(u->multi);
	evtimer_del(&u->timer);
	for (size_t i = 0; i < u->n_sock; i++)
		forget(u, (curl_socket_t)i);
	free(u->sock);
}
