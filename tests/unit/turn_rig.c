#include <config.h>

#include "tests/unit/turn_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <strings.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "gateway/surface/surface.h"

/* --- the client's side ---------------------------------------------------- */

struct hf_str
hf_req_header(const struct hf_req *rq, const char *name)
{
	const struct hf_sink *c = rq->impl;

	return strcasecmp(name, "X-Holdfast-Session") == 0 ?
	    hf_str(c->session) :
	    HF_STR_NONE;
}

unsigned
hf_req_header_count(const struct hf_req *rq, const char *name)
{
	return hf_req_header(rq, name).p != NULL;
}

static void
mark(struct hf_sink *c)
{
	assert_true(c->n_mark < hf_countof(c->mark));
	c->mark[c->n_mark++] = (struct rig_mark){ .got = c->got.size,
		.said = c->said.size,
		.state = c->state,
		.started = c->started };
}

void
hf_sink_turn(struct hf_sink *c, const struct hf_id *turn)
{
	c->turn = *turn;
}

void
hf_sink_said(struct hf_sink *c, struct hf_str text)
{
	hf_buf_putstr(&c->said, text);
	c->said_us = hf_now_us();
	mark(c);
}

void
hf_sink_state(struct hf_sink *c, uint32_t state)
{
	c->state = state;
}

static void
finish(struct hf_sink *c)
{
	assert_false(c->ended);
	c->ended = true;
	c->rig->open--;
	if (c->sent != NULL)
		c->sent(c->sent_arg, true);
}

void
hf_sink_reply(struct hf_sink *c, int status, const struct hf_header *h,
    unsigned n, const char *content_type, struct hf_str body)
{
	(void)h;
	(void)n;
	(void)content_type;
	assert_false(c->started);
	c->status = status;
	hf_buf_putstr(&c->got, body);
	finish(c);
}

void
hf_sink_start(struct hf_sink *c, int status, const struct hf_header *h,
    unsigned n, const char *content_type)
{
	(void)h;
	(void)n;
	assert_string_equal(content_type, "text/event-stream; charset=utf-8");
	assert_false(c->started || c->ended);
	c->started = true;
	c->status = status;
}

void
hf_sink_write(struct hf_sink *c, struct hf_str bytes)
{
	assert_true(c->started && !c->ended);
	hf_buf_putstr(&c->got, bytes);
}

void
hf_sink_end(struct hf_sink *c)
{
	assert_true(c->started);
	finish(c);
}

bool
hf_sink_started(const struct hf_sink *c)
{
	return c->started;
}

size_t
hf_sink_backlog(const struct hf_sink *c)
{
	(void)c;
	return 0;
}

void
hf_sink_watch(struct hf_sink *c, void (*gone)(void *arg),
    void (*drained)(void *arg), void *arg)
{
	(void)drained; /* this client takes all at once */
	c->gone = gone;
	c->gone_arg = arg;
}

void
hf_sink_on_sent(struct hf_sink *c, void (*fn)(void *arg, bool sent), void *arg)
{
	c->sent = fn;
	c->sent_arg = arg;
}

/* --- the provider's side -------------------------------------------------- */

struct hf_upstream {
	struct rig *rig;
};

struct hf_call {
	struct hf_upstream *u;
	struct event *ev;
	const struct hf_call_ops *ops;
	void *arg;
	struct rig_answer answer;
	bool running, canceled;
};

static void
call_free(struct hf_call *c)
{
	event_free(c->ev);
	hf_buf_free(&c->answer.bytes);
	free(c);
}

/* All that the provider says, then its end. */
static void
on_call(evutil_socket_t fd, short what, void *arg)
{
	struct hf_call *c = arg;
	struct hf_str left = hf_buf_str(&c->answer.bytes);
	struct hf_call_result r = { .cls = HF_CLASS_NONE,
		.reason = "ok",
		.clean = true,
		.any_byte = true };
	size_t n = c->answer.step == 0 ? left.size : c->answer.step;

	(void)fd;
	(void)what;
	c->running = true;
	c->ops->headers(
	    c->arg, 200, HF_STR("Content-Type: text/event-stream\r\n"));
	while (left.size > 0 && !c->canceled) {
		n = n < left.size ? n : left.size;
		c->ops->data(c->arg, (struct hf_str){ left.p, n });
		left.p += n;
		left.size -= n;
	}
	if (c->answer.cut) {
		r.cls = HF_CLASS_NETWORK;
		r.reason = "eof";
		r.clean = false;
	}
	c->running = c->answer.hang && !c->canceled;
	if (c->running) {
		c->running = false;
		return; /* until it is canceled */
	}
	if (!c->canceled)
		c->ops->done(c->arg, &r);
	call_free(c);
}

int
hf_upstream_start(struct hf_upstream *u, struct hf_http_request *rq,
    int connect_ms, bool fresh, const struct hf_call_ops *ops, void *arg,
    struct hf_call **out, struct hf_error *e)
{
	struct hf_call *c = calloc(1, sizeof(*c));
	struct timeval now = { 0, 0 };

	(void)connect_ms;
	(void)fresh;
	(void)e;
	assert_non_null(c);
	c->u = u;
	c->ops = ops;
	c->arg = arg;
	hf_buf_init(&c->answer.bytes, HF_BUF_NOCAP);
	u->rig->fn(u->rig->arg, hf_buf_str(&rq->url), hf_buf_str(&rq->body),
	    &c->answer);
	c->ev = evtimer_new(u->rig->base, on_call, c);
	assert_non_null(c->ev);
	evtimer_add(c->ev, &now);
	*out = c;
	return 0;
}

void
hf_upstream_push(struct hf_upstream *u)
{
	(void)u; /* the loop does it */
}

void
hf_call_cancel(struct hf_call *c)
{
	if (c->running)
		c->canceled = true;
	else
		call_free(c);
}

void
hf_call_pause(struct hf_call *c, bool pause)
{
	(void)c;
	(void)pause;
	fail_msg("no client of the rig is slow");
}

/* --- the rig -------------------------------------------------------------- */

static void
on_store(evutil_socket_t fd, short what, void *arg)
{
	struct rig *r = arg;

	(void)fd;
	(void)what;
	hf_store_dispatch(r->env.store);
}

static int
make_body(void *arg, struct hf_str text, struct hf_str refusal,
    struct hf_buf *body, struct hf_buf *norm)
{
	(void)arg;
	hf_item_text_body(text, refusal, body, norm);
	return 0;
}

static void
open_store(struct rig *r)
{
	r->env.store = fx_store(r->fx, r->slot);
	hf_store_set_make_body(r->env.store, make_body, NULL);
	r->store_ev = event_new(r->base, hf_store_event_fd(r->env.store),
	    EV_READ | EV_PERSIST, on_store, r);
	assert_non_null(r->store_ev);
	event_add(r->store_ev, NULL);
}

static void
open_env(struct rig *r)
{
	r->base = event_base_new();
	assert_non_null(r->base);
	r->shm = &r->fx->shm[r->slot];
	r->env = (struct hf_turn_env){
		.base = r->base, .conf = r->conf, .shm = r->shm
	};
	r->env.upstream = calloc(1, sizeof(*r->env.upstream));
	assert_non_null(r->env.upstream);
	r->env.upstream->rig = r;
	if (r->stored)
		open_store(r);
}

void
rig_open(
    struct rig *r, const char *conf, bool stored, rig_provider_fn fn, void *arg)
{
	struct hf_error e = { 0 };

	*r = (struct rig){ .stored = stored, .fn = fn, .arg = arg, .slot = 1 };
	hf_log_set_level(HF_LOG_ERROR);
	if (hf_conf_parse("rig", conf, &r->conf, &e) < 0)
		fail_msg("%s", e.text);
	r->fx = &r->own;
	fx_open(r->fx);
	open_env(r);
}

static void
close_env(struct rig *r)
{
	assert_int_equal(r->env.n_turns, 0);
	hf_turn_env_free(&r->env);
	free(r->env.upstream);
	if (r->store_ev != NULL)
		event_free(r->store_ev);
	event_base_free(r->base);
}

void
rig_close(struct rig *r)
{
	close_env(r);
	if (r->fx != &r->own)
		return;
	fx_close(r->fx);
	hf_conf_free(r->conf);
}

void
rig_heir(struct rig *heir, struct rig *r, unsigned slot)
{
	*heir = (struct rig){ .stored = r->stored,
		.fn = r->fn,
		.arg = r->arg,
		.slot = slot,
		.conf = r->conf,
		.fx = r->fx };
	open_env(heir);
}
static void
ask(struct rig *r, struct hf_sink *c, const char *session, struct hf_str body,
    const struct hf_resumed *resumed, int64_t received_us)
{
	*c = (struct hf_sink){ .rig = r, .session = session };
	hf_buf_init(&c->got, HF_BUF_NOCAP);
	hf_buf_init(&c->said, HF_BUF_NOCAP);
	mark(c);
	c->rq = (struct hf_req){ .method = HF_POST,
		.path = HF_STR("/v1/chat/completions"),
		.body = body,
		.received_us = received_us != 0 ? received_us : hf_now_us(),
		.tenant = "acme",
		.resumed = resumed,
		.impl = c };
	r->open++;
	hf_chat_serve(&r->env, &c->rq, c);
}

void
rig_ask(
    struct rig *r, struct hf_sink *c, const char *session, struct hf_str body)
{
	ask(r, c, session, body, NULL, 0);
}

void
rig_resume(struct rig *heir, struct hf_sink *c, const struct hf_sink *was,
    unsigned at, size_t known, bool poisoned)
{
	const struct rig_mark *m = &was->mark[at];
	struct hf_resumed resumed = { .head = m->started,
		.poisoned = poisoned,
		.state = m->state,
		.turn = hf_str(was->turn.s),
		.text_size = m->said,
		.said_us = was->said_us };

	if (known > m->said)
		known = m->said;
	resumed.text =
	    (struct hf_str){ was->said.data + m->said - known, known };
	ask(heir, c, was->session, was->rq.body, &resumed, was->rq.received_us);
	c->state = m->state;
	c->turn = was->turn;
	c->resumed = resumed;
	c->rq.resumed = &c->resumed;
}

void
rig_kill(struct rig *r)
{
	fx_kill(r->fx, r->slot);
}

void
rig_step(struct rig *r)
{
	struct timeval moment = { 0, 2000 };

	event_base_loopexit(r->base, &moment);
	assert_true(event_base_loop(r->base, EVLOOP_ONCE) >= 0);
}

void
rig_freeze(struct rig *r)
{
	event_del(r->store_ev);
}

void
rig_bury(struct rig *r)
{
	if (r->store_ev != NULL)
		event_add(r->store_ev, NULL);
	while (r->env.n_turns > 0)
		rig_step(r);
	close_env(r);
}

void
rig_forget(struct hf_sink *c)
{
	assert_true(c->ended);
	hf_buf_free(&c->got);
	hf_buf_free(&c->said);
}

void
rig_lose(struct hf_sink *c)
{
	if (c->ended)
		return;
	c->ended = true;
	c->rig->open--;
	c->gone(c->gone_arg);
}

void
rig_run(struct rig *r)
{
	while (r->open > 0 || r->env.n_turns > 0)
		assert_int_equal(event_base_loop(r->base, EVLOOP_ONCE), 0);
}

void
rig_stored(struct rig *r, const char *session, struct hf_buf *out)
{
	struct hf_head head = fx_head(r->fx, r->slot, session);
	struct hf_history h;
	struct hf_json body;
	struct hf_arena a;

	hf_arena_init(&a, 0);
	assert_true(head.found);
	assert_int_equal(hf_store_history(r->env.store, head.session_row,
			     head.head_turn_row, &a, &h, &r->fx->e),
	    0);
	assert_true(h.n > 0);
	assert_int_equal(
	    hf_json_check(h.item[h.n - 1].body, &body, NULL, NULL), 0);
	hf_json_decode(hf_json_get(body, "content"), out);
	hf_arena_free(&a);
}

/* --- what the client heard ------------------------------------------------ */

static void
hear_delta(struct rig_heard *h, struct hf_json delta)
{
	struct hf_json s = hf_json_get(delta, "content");

	if (s.type == HF_JSON_STRING && s.raw.size > 2) {
		assert_int_equal(h->finish + h->calls, 0);
		hf_json_decode(s, &h->text);
	}
	h->role += hf_json_get(delta, "role").type != HF_JSON_NONE;
	h->calls += hf_json_get(delta, "tool_calls").type == HF_JSON_ARRAY;
	h->refusals += hf_json_get(delta, "refusal").type == HF_JSON_STRING;
}

static void
hear_identity(struct rig_heard *h, struct hf_json v)
{
	struct hf_json created = hf_json_get(v, "created");
	struct hf_buf id, model;
	int64_t n;

	hf_buf_init(&id, 64);
	hf_buf_init(&model, 64);
	hf_json_decode(hf_json_get(v, "id"), &id);
	hf_json_decode(hf_json_get(v, "model"), &model);
	assert_true(hf_json_int(created, &n));
	if (h->id[0] == '\0') {
		snprintf(h->id, sizeof(h->id), "%s", id.data);
		snprintf(h->model, sizeof(h->model), "%s", model.data);
		h->created = n;
	}
	assert_string_equal(h->id, id.data);
	assert_string_equal(h->model, model.data);
	assert_int_equal(h->created, n);
	hf_buf_free(&id);
	hf_buf_free(&model);
}

static void
hear_chunk(struct rig_heard *h, struct hf_str data)
{
	struct hf_json v, c, code;

	assert_int_equal(h->done + h->n_error, 0);
	h->events++;
	if (hf_str_is(data, "[DONE]")) {
		h->done++;
		return;
	}
	assert_int_equal(hf_json_check(data, &v, NULL, NULL), 0);
	code = hf_json_path(v, "error", "code", NULL);
	if (code.type == HF_JSON_STRING) {
		h->n_error++;
		hf_json_decode(code, &h->error);
		return;
	}
	hear_identity(h, v);
	c = hf_json_path(v, "choices", "0", NULL);
	hear_delta(h, hf_json_get(c, "delta"));
	h->finish += hf_json_get(c, "finish_reason").type == HF_JSON_STRING;
}

void
rig_hear(struct hf_str left, struct rig_heard *h)
{
	struct hf_str line;
	const char *eol;

	*h = (struct rig_heard){ 0 };
	hf_buf_init(&h->text, HF_BUF_NOCAP);
	hf_buf_init(&h->error, HF_BUF_NOCAP);
	while (left.size > 0) {
		eol = memchr(left.p, '\n', left.size);
		assert_non_null(eol);
		line = (struct hf_str){ left.p, (size_t)(eol - left.p) };
		left.size -= line.size + 1;
		left.p = eol + 1;
		if (line.size > 6 && memcmp(line.p, "data: ", 6) == 0)
			hear_chunk(
			    h, (struct hf_str){ line.p + 6, line.size - 6 });
		else
			assert_true(line.size == 0 || line.p[0] == ':');
	}
}

void
rig_unhear(struct rig_heard *h)
{
	hf_buf_free(&h->text);
	hf_buf_free(&h->error);
}
