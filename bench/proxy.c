/*
 * The reference proxy: requests, one turn at a time for each session, and its
 * attempts.
 */
#include <config.h>

#include "bench/proxy.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/dialect.h"
#include "bench/fetch.h"
#include "bench/memory.h"
#include "bench/throttle.h"
#include "bench/reader.h"
#include "bench/room.h"
#include "bench/server.h"

#define ROUNDS 4     /* through a route's targets */
#define PAUSE_MS 150 /* between them */
#define CONNECT_MS 1000
#define PATIENT_MS 10000 /* with a target that is not to fail */

/* One request of a client, and its way to an answer. */
struct turn {
	struct hf_proxy *p;
	struct hf_session *s;
	struct hf_sreq *rq; /* NULL: its client has gone */
	json_t *body;
	char *key;   /* Idempotency-Key, or NULL */
	bool marked; /* as a retry, by the client's library */
	const struct hf_route_plan *route;
	unsigned attempt;
	json_t *conversation; /* up to what is to be answered */
	struct hf_pass pass;  /* of a provider that has a quota */
	struct hf_fetch *call;
	struct hf_answer_reader reader;
	struct event *timer;
	struct hf_said out;
	size_t sent; /* bytes of text */
	char *said;  /* the same text, from earlier attempts */
	char id[40];
	struct turn *next; /* waits for the session, or for this very answer */
	struct turn *joined;
};

/* What a session's slot holds. */
struct desk {
	struct turn *running, *waiting;
	struct desk *next;
};

struct hf_proxy {
	struct hf_proxy_conf conf;
	struct hf_server *server;
	struct hf_fetcher *fetcher;
	struct hf_memory *memory;
	struct hf_throttle
	    *throttle[HF_MAX_LISTENERS]; /* NULL: it has no quota */
	json_t *windows; /* that refusals told: model -> tokens */
	struct desk *desks;
	unsigned serial;
};

static void start(struct turn *t);
static void attempt(struct turn *t);

static struct desk *
desk_of(const struct turn *t)
{
	return *hf_session_slot(t->s);
}

static void
turn_free(struct turn *t)
{
	if (t == NULL)
		return;
	json_decref(t->body);
	json_decref(t->conversation);
	hf_reader_free(&t->reader);
	hf_throttle_settle(&t->pass);
	if (t->call != NULL)
		hf_fetch_cancel(t->call);
	if (t->timer != NULL)
		event_free(t->timer);
	if (t->rq != NULL)
		t->rq->gone = NULL;
	free(t->key);
	free(t->said);
	free(t);
}

/* --- the end of a turn ---------------------------------------------------- */

/* Answer with what was said; gives the turn up. */
static void
reply(struct turn *t, json_t *answer, json_t *calls, size_t sent)
{
	struct hf_str text = hf_json_str(json_object_get(answer, "content"));
	struct hf_sreq *rq = t->rq;

	if (rq == NULL)
		return;
	t->rq = NULL;
	rq->gone = NULL;
	if (text.size > 0) {
		text.p += sent;
		text.size -= sent;
	}
	hf_said_end(&t->out, rq, text, calls);
}

static void
next_turn(struct desk *d)
{
	struct turn *t = d->waiting;

	if (t == NULL)
		return;
	d->waiting = t->next;
	t->next = NULL;
	start(t);
}

/* As the calls of an answer are kept: for repeats of it. */
static json_t *
calls_of(json_t *answer)
{
	json_t *calls = json_object_get(answer, "tool_calls"), *out, *c;
	size_t i;

	if (calls == NULL)
		return NULL;
	out = json_array();
	json_array_foreach(calls, i, c)
	{
		json_t *f = json_object_get(c, "function");

		json_array_append_new(out,
		    json_pack("{s:O,s:O,s:O}", "id", json_object_get(c, "id"),
			"name", json_object_get(f, "name"), "arguments",
			json_object_get(f, "arguments")));
	}
	return out;
}

static void
replay(struct turn *t, json_t *answer)
{
	json_t *calls = calls_of(answer);

	reply(t, answer, calls, 0);
	json_decref(calls);
	turn_free(t);
}

/* The turn is over, with this answer or, NULL, without. */
static void
conclude(struct turn *t, json_t *answer)
{
	struct desk *d = desk_of(t);
	struct turn *j;

	while ((j = t->joined) != NULL) {
		t->joined = j->next;
		if (answer != NULL) {
			replay(j, answer);
			continue;
		}
		j->rq->gone = NULL;
		hf_said_error(&j->out, j->rq);
		j->rq = NULL;
		turn_free(j);
	}
	d->running = NULL;
	turn_free(t);
	next_turn(d);
}

static unsigned
target_of(const struct turn *t)
{
	return t->attempt % t->route->n_target;
}

static json_t *
messages_of(const struct turn *t)
{
	return json_object_get(t->body, "messages");
}

/* Writes the turn down, with this answer of that target. */
static void
record(struct turn *t, json_t *answer, int target)
{
	struct hf_turn_end end = { messages_of(t), t->conversation, answer,
		t->key, target };

	hf_session_end(t->s, &end);
}

/* Whole, as far as its target goes.  It is on disk before the client can know
 * that it is whole. */
static void
succeed(struct turn *t, struct hf_str text, json_t *calls)
{
	json_t *answer = hf_said_message(text, calls);

	record(t, answer, (int)target_of(t));
	reply(t, answer, calls, t->sent);
	conclude(t, answer);
	json_decref(answer);
}

static void
give_up(struct turn *t)
{
	struct hf_sreq *rq = t->rq;

	if (rq != NULL) {
		rq->gone = NULL;
		t->rq = NULL;
		hf_said_error(&t->out, rq);
	}
	conclude(t, NULL);
}

/* The client left.  What it heard is what was said; if that is nothing, there
 * was no turn. */
static void
on_gone(struct hf_sreq *rq)
{
	struct turn *t = rq->arg, **at;
	struct desk *d = desk_of(t);
	json_t *heard;

	t->rq = NULL;
	if (d->running != t) {
		for (at = &d->waiting; *at != NULL && *at != t;
		     at = &(*at)->next)
			;
		if (*at == NULL && d->running != NULL)
			for (at = &d->running->joined; *at != NULL && *at != t;
			     at = &(*at)->next)
				;
		HF_CHECK(*at == t);
		*at = t->next;
		turn_free(t);
		return;
	}
	if (t->joined != NULL || t->p->conf.bug == HF_BUG_SAID)
		return; /* somebody else waits for it */
	if (t->sent == 0) {
		hf_session_drop(t->s, t->conversation);
	} else {
		heard =
		    hf_said_message((struct hf_str){ t->said, t->sent }, NULL);
		record(t, heard, -1);
		json_decref(heard);
	}
	conclude(t, NULL);
}

/* --- attempts ------------------------------------------------------------- */

static void
on_pause(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	attempt(arg);
}

static void
fail(struct turn *t)
{
	struct timeval tv = { 0, PAUSE_MS * 1000 };

	if (t->p->conf.bug == HF_BUG_FAKE_END && t->sent > 0) {
		succeed(t, (struct hf_str){ t->said, t->sent }, NULL);
		return;
	}
	t->attempt++;
	if (t->attempt == ROUNDS * t->route->n_target)
		give_up(t);
	else if (target_of(t) == 0)
		event_add(t->timer, &tv);
	else
		attempt(t);
}

/* Sends what the client has not got yet; false: what comes is not the answer
 * that it has begun to get. */
static bool
pass_on(struct turn *t)
{
	struct hf_str text = hf_buf_str(&t->reader.text);

	if (memcmp(text.p == NULL ? "" : text.p, t->said == NULL ? "" : t->said,
		text.size < t->sent ? text.size : t->sent) != 0)
		return false;
	if (text.size <= t->sent || !t->out.stream)
		return true;
	if (t->rq != NULL)
		hf_said_text(&t->out, t->rq,
		    (struct hf_str){ text.p + t->sent, text.size - t->sent });
	free(t->said);
	t->said = hf_xstrndup(text.p, text.size);
	t->sent = text.size;
	return true;
}

static bool
on_data(void *arg, struct hf_str bytes)
{
	struct turn *t = arg;

	hf_throttle_settle(&t->pass);
	hf_reader_data(&t->reader, bytes);
	t->reader.failed = t->reader.failed || !pass_on(t);
	return !t->reader.failed;
}

/* Is it whole? */
static bool
is_answered(struct turn *t, int status, bool whole)
{
	struct hf_answer_reader *r = &t->reader;
	char *plain;
	bool ok;

	if (t->out.stream && status == 200)
		return !r->failed && r->finished &&
		    (r->text.size > 0 || r->calls != NULL) &&
		    r->text.size >= t->sent;
	plain = whole && !r->failed ? hf_reader_end(r, status) : NULL;
	ok = plain != NULL;
	free(plain);
	return ok;
}

static const char *
model_of(const struct turn *t)
{
	return t->route->target[target_of(t)].model;
}

/* It was refused as longer than a window that nobody knew: now it is known. */
static bool
learns_window(struct turn *t)
{
	unsigned window = hf_room_told(t->reader.error);

	if (window == 0 || json_object_get(t->p->windows, model_of(t)) != NULL)
		return false;
	json_object_set_new(t->p->windows, model_of(t), json_integer(window));
	return true;
}

static void
on_end(void *arg, int status, bool whole)
{
	struct turn *t = arg;
	struct hf_answer_reader *r = &t->reader;

	t->call = NULL;
	hf_throttle_settle(&t->pass);
	if (is_answered(t, status, whole))
		succeed(t, hf_buf_str(&r->text), r->calls);
	else if (learns_window(t) && target_of(t) + 1 == t->route->n_target)
		attempt(t); /* no larger one follows: as much as it holds */
	else
		fail(t);
}

/* What a target is told: all, or what it can hold. */
static json_t *
tell(const struct turn *t)
{
	unsigned k = target_of(t);
	const struct hf_target_plan *target = &t->route->target[k];
	json_t *learnt = json_object_get(t->p->windows, target->model);
	unsigned window = target->window > 0 ?
	    target->window :
	    (unsigned)json_integer_value(learnt);
	json_t *all = hf_session_tell(t->s, t->conversation, k, t->attempt > 0);
	json_t *fitting;

	if (window == 0)
		return all;
	fitting = hf_room_fit(all, window, target->max_output);
	json_decref(all);
	return fitting;
}

/* What a target is asked. */
static void
make_body(struct turn *t, struct hf_buf *b)
{
	json_t *body = json_copy(t->body);

	json_object_set_new(body, "model", json_string(model_of(t)));
	json_object_set_new(body, "messages", tell(t));
	hf_buf_json(b, body);
	json_decref(body);
}

static unsigned
listener_of(const struct turn *t)
{
	return t->route->target[target_of(t)].listener;
}

static void
call(void *arg)
{
	struct turn *t = arg;
	const struct hf_proxy_conf *c = &t->p->conf;
	unsigned listener = listener_of(t);
	struct hf_fetch_request rq = { .connect_ms = CONNECT_MS,
		.idle_ms = c->suite->listener[listener].fails ? c->patience_ms :
								PATIENT_MS,
		.data = on_data,
		.end = on_end,
		.arg = t };
	char url[128];
	struct hf_buf b;

	snprintf(url, sizeof(url), "%s/v1/chat/completions", c->url[listener]);
	hf_buf_init(&b, HF_BUF_NOCAP);
	make_body(t, &b);
	rq.url = url;
	rq.body = hf_buf_str(&b);
	hf_reader_free(&t->reader);
	hf_reader_init(&t->reader, t->out.stream);
	t->call = hf_fetch_start(t->p->fetcher, &rq);
	hf_buf_free(&b);
}

/* Asks the next target, when its quota lets. */
static void
attempt(struct turn *t)
{
	struct hf_throttle *throttle = t->p->throttle[listener_of(t)];

	if (throttle == NULL)
		call(t);
	else
		hf_throttle_ask(throttle, &t->pass);
}

/* --- requests ------------------------------------------------------------- */

static void
start(struct turn *t)
{
	struct desk *d = desk_of(t);
	json_t *again =
	    hf_session_repeat(t->s, messages_of(t), t->key, t->marked);

	if (again != NULL) {
		replay(t, again);
		next_turn(d);
		return;
	}
	d->running = t;
	t->conversation = hf_session_begin(t->s, messages_of(t));
	attempt(t);
}

static void
enqueue(struct turn *t)
{
	struct desk *d = desk_of(t);
	struct turn **at = &d->waiting;

	if (d->running == NULL) {
		start(t);
		return;
	}
	if (t->key != NULL && d->running->key != NULL &&
	    strcmp(t->key, d->running->key) == 0 &&
	    t->p->conf.bug != HF_BUG_DOUBLE)
		at = &d->running->joined;
	while (*at != NULL)
		at = &(*at)->next;
	*at = t;
}

/* "NAME-ROUTE", or the only one. */
static const struct hf_route_plan *
find_route(const struct hf_suite *s, struct hf_str model)
{
	const char *dash =
	    model.p == NULL ? NULL : memchr(model.p, '-', model.size);
	struct hf_str name = HF_STR("");

	if (dash != NULL)
		name = (struct hf_str){ dash + 1,
			model.size - (size_t)(dash + 1 - model.p) };
	for (unsigned i = 0; i < s->n_route; i++)
		if (hf_str_is(name, s->route[i].name))
			return &s->route[i];
	return NULL;
}

static void
refuse(struct hf_sreq *rq, int status, const char *message)
{
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_printf(&b,
	    "{\"error\":{\"message\":\"%s\",\"type\":"
	    "\"invalid_request_error\",\"param\":null,\"code\":null}}",
	    message);
	hf_sreq_reply(rq, status, "", "application/json", hf_buf_str(&b));
	hf_buf_free(&b);
}

static struct hf_session *
find_session(struct hf_proxy *p, struct hf_str name)
{
	struct hf_session *s = hf_memory_session(p->memory, name);
	void **slot = hf_session_slot(s);
	struct desk *d;

	if (*slot == NULL) {
		d = hf_xcalloc(1, sizeof(*d));
		d->next = p->desks;
		p->desks = d;
		*slot = d;
	}
	return s;
}

/* A turn of this request; 'body' is taken. */
static struct turn *
make_turn(struct hf_proxy *p, struct hf_sreq *rq, struct hf_str session,
    json_t *body, const struct hf_route_plan *route)
{
	struct hf_str key = hf_sreq_header(rq, "Idempotency-Key");
	struct turn *t = hf_xcalloc(1, sizeof(*t));

	t->p = p;
	t->rq = rq;
	t->body = body;
	t->route = route;
	t->s = find_session(p, session);
	t->key = key.p == NULL ? NULL : hf_xstrndup(key.p, key.size);
	t->marked = hf_sreq_header(rq, "X-Stainless-Retry-Count").p != NULL;
	t->timer = evtimer_new(p->conf.base, on_pause, t);
	HF_CHECK(t->timer != NULL);
	t->pass = (struct hf_pass){ .go = call, .arg = t };
	snprintf(t->id, sizeof(t->id), "chatcmpl-proxy%08x", ++p->serial);
	t->out.id = t->id;
	t->out.model = json_string_value(json_object_get(body, "model"));
	t->out.stream = json_is_true(json_object_get(body, "stream"));
	hf_reader_init(&t->reader, t->out.stream);
	rq->arg = t;
	rq->gone = on_gone;
	return t;
}

static void
on_request(void *arg, struct hf_sreq *rq)
{
	struct hf_str session = hf_sreq_header(rq, "X-Holdfast-Session");
	const struct hf_route_plan *route;
	struct hf_proxy *p = arg;
	json_t *body;

	if (!hf_str_is(rq->path, "/v1/chat/completions") ||
	    !hf_str_is(rq->method, "POST")) {
		refuse(rq, 404, "not found");
		return;
	}
	body = json_loadb(rq->body.p, rq->body.size, JSON_ALLOW_NUL, NULL);
	route = find_route(
	    p->conf.suite, hf_json_str(json_object_get(body, "model")));
	if (json_array_size(json_object_get(body, "messages")) == 0 ||
	    route == NULL || session.p == NULL) {
		json_decref(body);
		refuse(rq, 400, "no messages, no such model, or no session");
		return;
	}
	enqueue(make_turn(p, rq, session, body, route));
}

/* --- life ----------------------------------------------------------------- */

int
hf_proxy_new(struct hf_proxy **out, const struct hf_proxy_conf *c,
    const char *listen, unsigned *port, struct hf_error *e)
{
	struct hf_proxy *p = hf_xcalloc(1, sizeof(*p));
	int rc = 0;

	*out = NULL;
	p->conf = *c;
	p->memory = hf_memory_new(c->bug);
	if (c->journal != NULL)
		rc = hf_memory_keep(p->memory, c->journal, e);
	if (rc == 0)
		rc = hf_server_new(
		    &p->server, c->base, listen, on_request, p, e);
	if (rc != 0) {
		hf_memory_free(p->memory);
		free(p);
		return rc;
	}
	*port = hf_server_port(p->server);
	p->fetcher = hf_fetcher_new(c->base);
	p->windows = json_object();
	for (unsigned i = 0; i < c->suite->n_listener; i++) {
		const struct hf_listener_plan *l = &c->suite->listener[i];

		if (l->rpm > 0)
			p->throttle[i] =
			    hf_throttle_new(c->base, l->rpm, l->rpm_window_ms);
	}
	*out = p;
	return 0;
}

void
hf_proxy_free(struct hf_proxy *p)
{
	struct desk *d;

	if (p == NULL)
		return;
	hf_server_free(p->server); /* every client goes, and so its turn */
	while ((d = p->desks) != NULL) {
		p->desks = d->next;
		turn_free(d->running);
		free(d);
	}
	hf_fetcher_free(p->fetcher);
	for (unsigned i = 0; i < HF_MAX_LISTENERS; i++)
		hf_throttle_free(p->throttle[i]);
	json_decref(p->windows);
	hf_memory_free(p->memory);
	free(p);
}
