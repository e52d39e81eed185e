/*
 * The control socket's server.
 */
#include <config.h>

#include "workers/control.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/exits.h"
#include "base/frame.h"
#include "base/log.h"

/* The reply to the request under way; one of a client at a time. */
struct hf_reply {
	struct client *client;
	struct evbuffer *out;
	json_int_t id;
	bool later;	       /* goes on after the verb's return */
	hf_reply_step_fn step; /* NULL: somebody else ends it */
	hf_reply_drop_fn drop;
	void *state;
};

struct client {
	LIST_ENTRY(client) link;
	struct hf_control *control;
	struct bufferevent *bev;
	struct event *again; /* a step that had nothing to say */
	struct hf_reply reply;
	struct hf_peer peer;
	bool closing; /* as soon as the reply is out */
};

struct hf_control {
	struct event_base *base;
	struct evconnlistener *listener;
	struct event *resume; /* accepting paused: out of fds */
	LIST_HEAD(, client) clients;
	unsigned n_clients;
	hf_control_fn fn;
	void *arg;
};

static struct hf_log_limit bad_limit;

/* --- frames out ------------------------------------------------------- */

/* Takes the reference of 'msg'. */
static int
put_frame(struct evbuffer *out, json_t *msg, struct hf_error *e)
{
	struct hf_buf b;
	char *text;
	int rc = 0;

	text = msg == NULL ? NULL : json_dumps(msg, JSON_COMPACT);
	json_decref(msg);
	if (text == NULL)
		return hf_fail(e, HF_ENOMEM, "reply: out of memory");
	if (evbuffer_get_length(out) + strlen(text) > HF_FRAME_MAX_REPLY) {
		free(text);
		return hf_fail(e, HF_ELIMIT, "reply: larger than %zu bytes",
		    HF_FRAME_MAX_REPLY);
	}
	hf_buf_init(&b, HF_FRAME_MAX_REPLY + HF_FRAME_HEADER);
	hf_frame_encode(&b, hf_str(text));
	free(text);
	if (!hf_buf_ok(&b) || evbuffer_add(out, b.data, b.size) < 0)
		rc = hf_fail(e, HF_ENOMEM, "reply: out of memory");
	hf_buf_free(&b);
	return rc;
}

int
hf_reply_data(struct hf_reply *r, json_t *data, struct hf_error *e)
{
	if (data == NULL)
		return hf_fail(e, HF_ENOMEM, "reply: out of memory");
	return put_frame(r->out,
	    json_pack("{s:i, s:I, s:o}", "v", HF_FRAME_VERSION, "id", r->id,
		"data", data),
	    e);
}

static json_t *
error_message(json_int_t id, int rc, const char *text)
{
	/* Of a verb's errors only an ambiguous name is a conflict. */
	int code = rc == HF_ECONFLICT ? HF_EXIT_NOTFOUND : hf_exit_code(rc);

	return json_pack("{s:i, s:I, s:{s:i, s:s, s:s%}}", "v",
	    HF_FRAME_VERSION, "id", id, "error", "code", code, "name",
	    hf_err_name(rc), "message", text, strlen(text));
}

static void
put_error(struct hf_reply *r, int rc, const struct hf_error *e)
{
	const char *text = e->text[0] != '\0' ? e->text : hf_err_text(rc);
	json_t *msg = error_message(r->id, rc, text);

	/* A text that is no UTF-8 quotes something from outside. */
	if (msg == NULL)
		msg = error_message(r->id, rc, hf_err_text(rc));
	if (put_frame(r->out, msg, NULL) < 0)
		hf_log_limited(&bad_limit, 1000, HF_LOG_WARN,
		    "control: no memory for a reply");
}

/* --- requests --------------------------------------------------------- */

static void
client_free(struct client *cl)
{
	LIST_REMOVE(cl, link);
	cl->control->n_clients--;
	if (cl->reply.later)
		cl->reply.drop(cl->reply.state);
	bufferevent_free(cl->bev);
	event_free(cl->again);
	free(cl);
}

static int
run_verb(struct hf_control *c, const json_t *req, struct hf_reply *r,
    struct hf_error *e)
{
	const json_t *verb = json_object_get(req, "verb");
	const json_t *args = json_object_get(req, "args");
	const json_t *id = json_object_get(req, "id");
	json_t *none;
	int rc;

	if (json_is_integer(id))
		r->id = json_integer_value(id);
	if (json_integer_value(json_object_get(req, "v")) != HF_FRAME_VERSION)
		return hf_fail(
		    e, HF_EPROTO, "request: v must be %d", HF_FRAME_VERSION);
	if (!json_is_integer(id) || !json_is_string(verb) ||
	    (args != NULL && !json_is_object(args)))
		return hf_fail(e, HF_EINVAL,
		    "request: needs an integer id, "
		    "a verb and, if any, an object of args");
	if (args != NULL)
		return c->fn(c->arg, json_string_value(verb), args, r, e);
	none = json_object();
	if (none == NULL)
		return hf_fail(e, HF_ENOMEM, "out of memory");
	rc = c->fn(c->arg, json_string_value(verb), none, r, e);
	json_decref(none);
	return rc;
}

/* The last frame of a reply. */
static void
put_end(struct hf_reply *r, int rc, const struct hf_error *e)
{
	static const struct hf_error none;
	struct hf_error local = { 0 };

	if (rc < 0)
		put_error(r, rc, e == NULL ? &none : e);
	else if (put_frame(r->out,
		     json_pack("{s:i, s:I, s:b}", "v", HF_FRAME_VERSION, "id",
			 r->id, "end", 1),
		     &local) < 0)
		put_error(r, local.code, &local);
}

const struct hf_peer *
hf_reply_peer(const struct hf_reply *r)
{
	return &r->client->peer;
}

bool
hf_reply_full(const struct hf_reply *r)
{
	return evbuffer_get_length(r->out) >= HF_CONTROL_PIECE;
}

void
hf_reply_go_on(struct hf_reply *r, hf_reply_step_fn step, hf_reply_drop_fn drop,
    void *state)
{
	r->later = true;
	r->step = step;
	r->drop = drop;
	r->state = state;
}

void
hf_reply_wait(struct hf_reply *r, hf_reply_drop_fn drop, void *state)
{
	hf_reply_go_on(r, NULL, drop, state);
}

void
hf_reply_end(struct hf_reply *r, int rc, const struct hf_error *e)
{
	r->later = false;
	put_end(r, rc, e);
	r->drop(r->state);
}

/* False: the client is to be closed. */
static bool
handle_frame(struct client *cl, struct hf_str payload)
{
	struct hf_reply *r = &cl->reply;
	struct hf_error e = { 0 };
	json_t *req =
	    json_loadb(payload.p, payload.size, JSON_REJECT_DUPLICATES, NULL);
	int rc;

	*r = (struct hf_reply){ .client = cl,
		.out = bufferevent_get_output(cl->bev) };
	if (!json_is_object(req)) {
		json_decref(req);
		hf_log_limited(&bad_limit, 1000, HF_LOG_WARN,
		    "control: client closed reason=bad_json");
		return false;
	}
	rc = run_verb(cl->control, req, r, &e);
	json_decref(req);
	if (r->later && rc < 0)
		hf_reply_end(r, rc, &e);
	else if (!r->later)
		put_end(r, rc, &e);
	return true;
}

/* One more piece of a long reply.  False: it is not known yet. */
static bool
go_on(struct client *cl)
{
	static const struct timeval soon = { 0 };
	struct hf_reply *r = &cl->reply;
	struct hf_error e = { 0 };
	int rc;

	if (r->step == NULL)
		return false;
	rc = r->step(r, r->state, &e);
	if (rc <= 0)
		hf_reply_end(r, rc, &e);
	else if (evbuffer_get_length(r->out) == 0)
		/* Others are served in between. */
		return event_add(cl->again, &soon) < 0;
	return true;
}

/* One request from what has been read.  False: there is none, or no client
 * any more. */
static bool
next_request(struct client *cl)
{
	struct evbuffer *in = bufferevent_get_input(cl->bev);
	struct hf_str payload, raw = { NULL, evbuffer_get_length(in) };
	struct hf_error e = { 0 };
	ssize_t n;

	if (raw.size == 0)
		return false;
	raw.p = (const char *)evbuffer_pullup(in, -1);
	n = raw.p == NULL ?
	    HF_ENOMEM :
	    hf_frame_decode(raw, HF_FRAME_MAX_REQUEST, &payload, &e);
	if (n == 0)
		return false;
	if (n < 0) {
		hf_log_limited(&bad_limit, 1000, HF_LOG_WARN,
		    "control: client closed reason=bad_frame");
		client_free(cl);
		return false;
	}
	if (!handle_frame(cl, payload)) {
		client_free(cl);
		return false;
	}
	evbuffer_drain(in, (size_t)n);
	return true;
}

/* Serve what has been read, as long as replies get away. */
static void
process(struct client *cl)
{
	struct evbuffer *out = bufferevent_get_output(cl->bev);

	while (evbuffer_get_length(out) == 0) {
		if (cl->reply.later) {
			if (!go_on(cl))
				break;
		} else if (cl->closing) {
			client_free(cl);
			return;
		} else if (!next_request(cl)) {
			return;
		}
	}
	/* Not read before it has taken its reply. */
	bufferevent_disable(cl->bev, EV_READ);
}

static void
on_read(struct bufferevent *bev, void *arg)
{
	(void)bev;
	process(arg);
}

static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	process(arg);
}

static void
on_written(struct bufferevent *bev, void *arg)
{
	struct client *cl = arg;

	if (!cl->closing && !cl->reply.later)
		bufferevent_enable(bev, EV_READ);
	process(cl);
}

static void
on_event(struct bufferevent *bev, short what, void *arg)
{
	struct client *cl = arg;

	/* Who only shut its sending side still wants the reply. */
	if ((what & BEV_EVENT_EOF) != 0 &&
	    (cl->reply.later ||
		evbuffer_get_length(bufferevent_get_output(bev)) > 0)) {
		cl->closing = true;
		return;
	}
	client_free(cl);
}

/* --- clients ---------------------------------------------------------- */

/* Say why and close; what the socket does not take at once is dropped. */
static void
refuse(int fd, int rc, const char *text)
{
	struct evbuffer *out = evbuffer_new();

	hf_log_limited(&bad_limit, 1000, HF_LOG_WARN,
	    "control: client refused reason=%s", hf_err_name(rc));
	if (out != NULL) {
		if (put_frame(out, error_message(0, rc, text), NULL) == 0 &&
		    send(fd, evbuffer_pullup(out, -1), evbuffer_get_length(out),
			MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			hf_log(HF_LOG_DEBUG, "control: refusal not taken");
		evbuffer_free(out);
	}
	close(fd);
}

static bool
may_connect(int fd, struct hf_peer *peer)
{
	struct ucred cr;
	socklen_t n = sizeof(cr);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cr, &n) < 0)
		return false;
	*peer = (struct hf_peer){ .uid = cr.uid, .pid = cr.pid };
	return cr.uid == 0 || cr.uid == geteuid();
}

static void
on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa,
    int len, void *arg)
{
	const struct timeval idle = { .tv_sec = HF_CONTROL_IDLE_S };
	struct hf_control *c = arg;
	struct hf_peer peer = { -1, -1 };
	struct client *cl;

	(void)l;
	(void)sa;
	(void)len;
	if (!may_connect(fd, &peer)) {
		refuse(fd, HF_EPERM,
		    "only root and the service's own user "
		    "may use the control socket");
		return;
	}
	if (c->n_clients >= HF_CONTROL_CLIENTS) {
		refuse(fd, HF_EBUSY, "too many control clients");
		return;
	}
	cl = calloc(1, sizeof(*cl));
	if (cl != NULL)
		cl->again = evtimer_new(c->base, on_again, cl);
	if (cl != NULL && cl->again != NULL)
		cl->bev =
		    bufferevent_socket_new(c->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (cl == NULL || cl->bev == NULL) {
		if (cl != NULL && cl->again != NULL)
			event_free(cl->again);
		free(cl);
		refuse(fd, HF_ENOMEM, "out of memory");
		return;
	}
	cl->control = c;
	cl->peer = peer;
	LIST_INSERT_HEAD(&c->clients, cl, link);
	c->n_clients++;
	bufferevent_setcb(cl->bev, on_read, on_written, on_event, cl);
	bufferevent_setwatermark(
	    cl->bev, EV_READ, 0, HF_FRAME_MAX_REQUEST + HF_FRAME_HEADER);
	bufferevent_set_timeouts(cl->bev, &idle, &idle);
	bufferevent_enable(cl->bev, EV_READ | EV_WRITE);
}

static void
on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct hf_control *c = arg;

	(void)fd;
	(void)what;
	evconnlistener_enable(c->listener);
}

/* Out of descriptors: accepting again at once would only spin. */
static void
on_accept_error(struct evconnlistener *l, void *arg)
{
	static const struct timeval pause = { .tv_sec = 1 };
	struct hf_control *c = arg;

	hf_log_limited(&bad_limit, 1000, HF_LOG_WARN,
	    "control: accept failed errno=%d", errno);
	evconnlistener_disable(l);
	event_add(c->resume, &pause);
}

int
hf_control_new(struct hf_control **out, struct event_base *base, int fd,
    hf_control_fn fn, void *arg, struct hf_error *e)
{
	struct hf_control *c = calloc(1, sizeof(*c));

	*out = NULL;
	if (c == NULL) {
		close(fd);
		return hf_fail(e, HF_ENOMEM, "control: out of memory");
	}
	LIST_INIT(&c->clients);
	c->base = base;
	c->fn = fn;
	c->arg = arg;
	c->resume = event_new(base, -1, 0, on_resume, c);
	/* Backlog 0: it listens already. */
	c->listener = evconnlistener_new(base, on_accept, c,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (c->listener == NULL)
		close(fd);
	if (c->resume == NULL || c->listener == NULL) {
		hf_control_free(c);
		return hf_fail(e, HF_ENOMEM, "control: out of memory");
	}
	evconnlistener_set_error_cb(c->listener, on_accept_error);
	*out = c;
	return 0;
}

/* What its socket takes at once: a last word before the end. */
static void
flush(struct client *cl)
{
	struct evbuffer *out = bufferevent_get_output(cl->bev);
	int fd = bufferevent_getfd(cl->bev);
	size_t size = evbuffer_get_length(out);

	if (size > 0 &&
	    send(fd, evbuffer_pullup(out, -1), size,
		MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		hf_log(HF_LOG_DEBUG, "control: the last word is not taken");
}

void
hf_control_free(struct hf_control *c)
{
	while (!LIST_EMPTY(&c->clients)) {
		flush(LIST_FIRST(&c->clients));
		client_free(LIST_FIRST(&c->clients));
	}
	if (c->listener != NULL)
		evconnlistener_free(c->listener);
	if (c->resume != NULL)
		event_free(c->resume);
	free(c);
}
