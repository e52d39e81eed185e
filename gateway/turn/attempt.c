/*
 * Attempts: rebuild the conversation from disk, call a target, follow what
 * comes back, and decide what a failure means.  Loop thread.
 *
 * Callbacks of the provider's side only record; acting on it (which may free
 * the decoder or the call) happens in attempt_step(), one loop turn later.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"

#define LINGER_MS 1000 /* for the end of a finished exchange */
#define GRACE_MS 1000  /* from a finish to its terminal marker */

static void on_event(void *arg, const struct hf_event *ev);

/* --- one attempt's life ---------------------------------------------- */

static const struct hf_conf_target *
target_of(const struct hf_attempt *a)
{
	return a->t->in.route->target[a->target];
}

static void
arm(struct event *ev, int64_t us)
{
	struct timeval tv;

	if (us < 0)
		us = 0;
	tv.tv_sec = us / 1000000;
	tv.tv_usec = us % 1000000;
	evtimer_add(ev, &tv);
}

static void
attempt_free(struct hf_attempt *a)
{
	if (a->call != NULL)
		hf_call_cancel(a->call);
	hf_decoder_free(a->decoder);
	attempt_give_back(a);
	event_free(a->timer);
	event_free(a->step);
	hf_buf_free(&a->outcome.message);
	hf_buf_free(&a->outcome.code);
	hf_buf_free(&a->outcome.type);
	hf_buf_free(&a->outcome.param);
	*a->prevp = a->next;
	if (a->next != NULL)
		a->next->prevp = a->prevp;
	free(a);
}

static void
leave_turn(struct hf_attempt *a)
{
	if (a->t != NULL && a->t->attempt == a)
		a->t->attempt = NULL;
	if (a->t != NULL && a->t->hedge.attempt == a)
		a->t->hedge.attempt = NULL;
	a->t = NULL;
}

/* The turn needs it no more.  A whole answer's exchange may end by itself, so
 * that its connection can be used again; anything else is cut. */
void
attempt_detach(struct hf_attempt *a)
{
	leave_turn(a);
	attempt_give_back(a);
	if (a->call != NULL && !a->done) {
		hf_call_cancel(a->call);
		a->call = NULL;
	}
	if (a->call != NULL)
		arm(a->timer, LINGER_MS * 1000);
	else
		event_active(a->step, EV_TIMEOUT, 0);
}

/* The first word on how the attempt ended holds. */
static void
set_outcome(struct hf_attempt *a, enum hf_class cls, const char *reason)
{
	if (a->over)
		return;
	a->over = true;
	a->outcome.cls = cls;
	a->outcome.reason = reason;
	attempt_judge(a);
	event_active(a->step, EV_TIMEOUT, 0);
}

static void
on_step(evutil_socket_t fd, short what, void *arg)
{
	struct hf_attempt *a = arg;

	(void)fd;
	(void)what;
	if (a->t == NULL) {
		if (a->call == NULL)
			attempt_free(a);
		return;
	}
	if (a->over)
		turn_attempt_ended(a);
}

/* The provider said how the answer finished. */
static bool
is_said(const struct hf_attempt *a)
{
	return a->finish_us != 0;
}

/* A plain answer comes as a whole: only a stream has a first token. */
static int64_t
first_token_due(const struct hf_attempt *a)
{
	const struct hf_conf_call *c = &target_of(a)->call;

	if (a->useful || is_said(a) || !a->stream || c->first_token_ms <= 0)
		return INT64_MAX;
	return a->begun_us + (int64_t)c->first_token_ms * 1000;
}

static int64_t
total_due(const struct hf_attempt *a)
{
	const struct hf_conf_call *c = &target_of(a)->call;

	return c->total_ms <= 0 ? INT64_MAX :
				  a->begun_us + (int64_t)c->total_ms * 1000;
}

/* Nobody may use up the time of those who are to be asked next: a call that has
 * said nothing has an equal share of what is left of the turn's. */
static int64_t
share_due(const struct hf_attempt *a)
{
	return a->useful || is_said(a) ? INT64_MAX : a->share_us;
}

static int64_t
share_end(const struct hf_turn *t, int64_t now)
{
	unsigned left = hf_plan_left(&t->plan, now);

	return left == 0 ? INT64_MAX :
			   now + (t->deadline_us - now) / (left + 1);
}

/* Some servers say how the answer finished and then neither end the stream
 * nor close it.  No text is owed any more then. */
static int64_t
grace_due(const struct hf_attempt *a)
{
	return !is_said(a) ? INT64_MAX : a->finish_us + GRACE_MS * 1000;
}

/* The longest pause between useful deltas. */
static int64_t
idle_due(const struct hf_attempt *a)
{
	const struct hf_conf_call *c = &target_of(a)->call;

	if (!a->useful || is_said(a) || !a->stream || c->idle_ms <= 0)
		return INT64_MAX;
	return a->last_us + (int64_t)c->idle_ms * 1000;
}

/* The end of the window in which some text must come. */
static int64_t
window_due(const struct hf_attempt *a)
{
	const struct hf_conf_call *c = &target_of(a)->call;

	if (!a->useful || is_said(a) || !a->stream || c->min_chars_per_s <= 0)
		return INT64_MAX;
	return a->window_us + (int64_t)c->rate_window_ms * 1000;
}

void
attempt_arm(struct hf_attempt *a)
{
	int64_t all[] = { first_token_due(a), idle_due(a), window_due(a),
		total_due(a), grace_due(a), hedge_due(a), share_due(a) };
	int64_t due = INT64_MAX;

	for (size_t i = 0; i < hf_countof(all); i++)
		if (all[i] < due)
			due = all[i];
	if (due == INT64_MAX)
		evtimer_del(a->timer);
	else
		arm(a->timer, due - hf_now_us());
}

static void
too_late(struct hf_attempt *a, const char *reason)
{
	a->outcome.timed_out = true;
	set_outcome(a, HF_CLASS_NETWORK, reason);
}

/* A rate window is over: was it enough? */
static void
close_window(struct hf_attempt *a, int64_t now)
{
	const struct hf_conf_call *c = &target_of(a)->call;

	if ((int64_t)a->window_chars * 1000 <
	    (int64_t)c->min_chars_per_s * c->rate_window_ms) {
		too_late(a, "too_slow");
		return;
	}
	a->window_us = now;
	a->window_chars = 0;
	attempt_arm(a);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct hf_attempt *a = arg;
	int64_t now = hf_now_us();

	(void)fd;
	(void)what;
	if (a->t == NULL) {
		attempt_free(a);
	} else if (now >= total_due(a)) {
		too_late(a, "total_timeout");
	} else if (a->t->paused) {
		/* We do not read: nobody is late. */
		a->last_us = a->window_us = now;
		a->window_chars = 0;
		if (a->finish_us != 0)
			a->finish_us = now;
		attempt_arm(a);
	} else if (now >= grace_due(a)) {
		/* The dialect knows whether the answer is whole. */
		hf_decoder_end(a->decoder, false);
	} else if (now >= first_token_due(a)) {
		too_late(a, "first_token_timeout");
	} else if (now >= share_due(a)) {
		too_late(a, "share_timeout");
	} else if (now >= idle_due(a)) {
		too_late(a, "idle_timeout");
	} else if (now >= window_due(a)) {
		close_window(a, now);
	} else if (now >= hedge_due(a)) {
		hedge_start(a);
		attempt_arm(a);
	} else {
		attempt_arm(a);
	}
}

/* --- the provider's side ----------------------------------------------- */

static void
on_headers(void *arg, int status, struct hf_str headers)
{
	struct hf_attempt *a = arg;

	if (a->t == NULL || a->over)
		return;
	a->outcome.http_status = status;
	attempt_heard(a, status, headers);
	hf_decoder_headers(a->decoder, status, headers);
}

static void
on_data(void *arg, struct hf_str bytes)
{
	struct hf_attempt *a = arg;

	a->bytes_in += (int64_t)bytes.size;
	if (a->t == NULL || a->over)
		return;
	hf_decoder_data(a->decoder, bytes);
}

static void
on_done(void *arg, const struct hf_call_result *r)
{
	struct hf_attempt *a = arg;

	a->call = NULL;
	if (a->t == NULL) {
		event_active(a->step, EV_TIMEOUT, 0);
		return;
	}
	a->bytes_out = r->bytes_out;
	a->bytes_in = r->bytes_in;
	if (a->over)
		return;
	if (r->cls != HF_CLASS_NONE && !r->any_byte) {
		a->outcome.timed_out =
		    strcmp(r->reason, "connect_timeout") == 0;
		a->outcome.stale = r->stale;
		hf_buf_puts(&a->outcome.message, r->detail);
		set_outcome(a, r->cls, r->reason);
		return;
	}
	hf_decoder_end(a->decoder, r->cls == HF_CLASS_NONE && r->clean);
	/* The decoder always has a last word; this is its absence. */
	set_outcome(a, HF_CLASS_PROVIDER, "no_answer");
}

static const struct hf_call_ops call_ops = {
	.headers = on_headers,
	.data = on_data,
	.done = on_done,
};

/* A useful delta of 'chars' characters arrived. */
static void
useful(struct hf_attempt *a, size_t chars)
{
	struct hf_turn *t = a->t;

	a->last_us = hf_now_us();
	a->window_chars += chars;
	if (!a->useful) {
		a->useful = true;
		hf_target_answers(&a->ticket, a->ticket_call, a->last_us);
		a->first_us = a->last_us - a->begun_us;
		t->fit = a->fit;
		if (a->ticket.row != NULL)
			hf_figures_first_token(
			    &a->ticket.row->figures, a->first_us, a->last_us);
		a->window_us = a->last_us;
		hedge_decide(a);
		attempt_arm(a);
		turn_move(t, TURN_STREAMING);
	}
	if (t->first_token_us == 0)
		t->first_token_us = a->last_us - t->in.received_us;
}

void
turn_begin_response(struct hf_turn *t)
{
	struct hf_turn_info info;

	if (t->begun)
		return;
	turn_note_id(t);
	t->first_target = turn_first_target(t); /* before it is begun */
	t->told_omitted = t->in.resumed.begun ? 0 : t->fit.items;
	t->begun = true;
	turn_get_info(t, &info);
	t->surface->start(t->surface_arg, &info);
}

/* Text to the client of a stream; the first time, the stream begins. */
void
turn_deliver(struct hf_turn *t, const struct hf_event *ev)
{
	if (!t->in.stream)
		return;
	if (t->surface != NULL) {
		turn_begin_response(t);
		t->started = true;
		t->told_us = hf_now_us();
		t->surface->event(t->surface_arg, ev);
	}
	turn_flush_later(t);
	turn_throttle(t);
}

static size_t
count_chars(struct hf_str text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.size; i++)
		n += ((unsigned char)text.p[i] & 0xc0) != 0x80;
	return n;
}

static void
text_event(struct hf_attempt *a, const struct hf_event *ev)
{
	struct hf_turn *t = a->t;

	useful(a,
	    target_of(a)->call.min_chars_per_s > 0 ? count_chars(ev->text) : 0);
	if (ev->type == HF_EV_TEXT) {
		turn_take_text(t, ev->text);
	} else {
		turn_pass_all(t);
		hf_buf_putstr(&t->answer.refusal, ev->text);
	}
	if (!hf_buf_ok(&t->answer.text) || !hf_buf_ok(&t->held) ||
	    !hf_buf_ok(&t->answer.refusal))
		set_outcome(a, HF_CLASS_GATEWAY, "no_memory");
}

/* It waits for the end of the answer: what was not told can be asked again. */
static void
call_event(struct hf_attempt *a, const struct hf_event *ev)
{
	struct hf_turn *t = a->t;
	struct hf_answer *an = &t->answer;
	struct hf_answer_call *c;
	struct hf_id id;

	useful(a, ev->tool.arguments.size);
	turn_pass_all(t);
	if (an->n_call == an->cap_call) {
		unsigned cap = an->cap_call == 0 ? 4 : an->cap_call * 2;

		c = realloc(an->call, cap * sizeof(*c));
		if (c == NULL) {
			set_outcome(a, HF_CLASS_GATEWAY, "no_memory");
			return;
		}
		an->call = c;
		an->cap_call = cap;
	}
	/* The id that clients see is ours, whoever made the call, so that the
	 * conversation can go on anywhere. */
	hf_id_make(&id, "call_");
	c = &an->call[an->n_call];
	c->id = hf_arena_dup(t->arena, hf_str(id.s));
	c->name = hf_arena_dup(t->arena, ev->tool.name);
	c->arguments = hf_arena_dup(t->arena, ev->tool.arguments);
	if (c->id.p == NULL || c->name.p == NULL || c->arguments.p == NULL) {
		set_outcome(a, HF_CLASS_GATEWAY, "no_memory");
		return;
	}
	an->n_call++;
}

static void
error_event(struct hf_attempt *a, const struct hf_event *ev)
{
	struct outcome *o = &a->outcome;

	if (ev->error.http_status != 0)
		o->http_status = ev->error.http_status;
	o->retry_after_ms = ev->error.retry_after_ms;
	hf_buf_putstr(&o->message, ev->error.message);
	hf_buf_putstr(&o->code, ev->error.code);
	hf_buf_putstr(&o->type, ev->error.type);
	hf_buf_putstr(&o->param, ev->error.param);
	set_outcome(a, ev->error.cls, ev->error.reason);
}

static void
on_event(void *arg, const struct hf_event *ev)
{
	struct hf_attempt *a = arg;

	if (a->t == NULL || a->over)
		return;
	switch (ev->type) {
	case HF_EV_BEGIN:
		break;
	case HF_EV_TEXT:
	case HF_EV_REFUSAL:
		text_event(a, ev);
		break;
	case HF_EV_PROGRESS:
		useful(a, 1);
		break;
	case HF_EV_TOOL_CALL:
		call_event(a, ev);
		break;
	case HF_EV_FINISH:
		a->finish = ev->finish;
		a->finish_us = hf_now_us();
		attempt_arm(a);
		break;
	case HF_EV_USAGE:
		a->tokens_in = ev->usage.input;
		a->tokens_out = ev->usage.output;
		a->tokens_cached = ev->usage.cached;
		a->tokens_reasoning = ev->usage.reasoning;
		break;
	case HF_EV_DONE:
		a->done = true;
		set_outcome(a, HF_CLASS_NONE, "ok");
		break;
	case HF_EV_ERROR:
		error_event(a, ev);
		break;
	}
}

/* --- calling ------------------------------------------------------------ */

static struct hf_attempt *
attempt_new(struct hf_turn *t, unsigned n, unsigned target_idx)
{
	struct hf_turn_env *env = t->env;
	struct hf_attempt *a = hf_xcalloc(1, sizeof(*a));
	const struct hf_conf_target *target = t->in.route->target[target_idx];

	a->env = env;
	a->t = t;
	a->n = n;
	a->target = target_idx;
	a->ticket = t->ticket;
	a->ticket_call = &target->call;
	a->verdict = HF_HEALTH_NEUTRAL;
	a->said.calls = a->said.tokens = (struct hf_quota_count){ -1, -1, -1 };
	t->ticket = (struct hf_ticket){ 0 };
	a->stream = turn_upstream_stream(t, target);
	a->begun_us = hf_now_us();
	a->share_us = share_end(t, a->begun_us);
	a->called_us = a->begun_us + t->wall_us;
	a->finish = HF_FINISH_STOP;
	a->tokens_in = a->tokens_out = -1;
	a->tokens_cached = a->tokens_reasoning = -1;
	a->outcome.retry_after_ms = -1;
	hf_buf_init(&a->outcome.message, 2048);
	hf_buf_init(&a->outcome.code, 256);
	hf_buf_init(&a->outcome.type, 256);
	hf_buf_init(&a->outcome.param, 256);
	a->timer = evtimer_new(env->base, on_timer, a);
	a->step = evtimer_new(env->base, on_step, a);
	HF_CHECK(a->timer != NULL && a->step != NULL);
	a->decoder = hf_dialect(target->provider->dialect)
			 ->decoder_new(target, a->stream, on_event, a);
	HF_CHECK(a->decoder != NULL);
	a->next = env->attempts;
	a->prevp = &env->attempts;
	if (a->next != NULL)
		a->next->prevp = &a->next;
	env->attempts = a;
	return a;
}

/* From here on the attempt's text goes through a seam. */
static int
begin_continuing(struct hf_turn *t, struct hf_attempt *a, struct hf_error *e)
{
	enum hf_splice_mode mode;

	if (!turn_continue_mode(t, target_of(a), &mode, &a->prefill))
		return hf_fail(e, HF_EINVAL, "cannot go on");
	hf_splice_init(&t->splice, mode, hf_buf_str(&t->before));
	t->continuing = true;
	hf_count(t->env->shm, HF_C_continuations, 1);
	return 0;
}

/* The payload has not the whole history. */
static void
note_fitted(const struct hf_attempt *a)
{
	const struct hf_turn *t = a->t;

	hf_count(t->env->shm, HF_C_fitted, 1);
	hf_log(HF_LOG_INFO,
	    "turn: fitted turn=%s n=%u target=%s omitted_turns=%u "
	    "omitted_items=%u tokens=%lld room=%lld window=%lld",
	    t->id.s, a->n, target_of(a)->name, a->fit.turns, a->fit.items,
	    (long long)a->fit.tokens, (long long)a->fit.room,
	    (long long)a->fit.window);
}

void
attempt_start(struct hf_turn *t, unsigned n, unsigned target_idx,
    struct payload *p, struct hf_attempt **out)
{
	const struct hf_conf_target *target = t->in.route->target[target_idx];
	struct hf_error e = { 0 };
	struct hf_http_request rq;
	struct hf_attempt *a;
	bool fresh = t->redial;
	int rc;

	t->redial = false;
	hf_http_request_init(&rq);
	rc = payload_build(p, &rq, &e);
	*out = a = attempt_new(t, n, target_idx);
	a->fit = p->fit;
	a->items = p->items;
	a->items_of = p->items_of;
	if (rc == 0 && t->started)
		rc = begin_continuing(t, a, &e);
	hf_count(t->env->shm, HF_C_attempts, 1);
	if (a->fit.items > 0)
		note_fitted(a);
	if (rc == 0) {
		a->bytes_out = (int64_t)rq.body.size;
		turn_shadows_give_way(t->env, target);
		(void)hf_fault("turn.call");
		rc = hf_upstream_start(t->env->upstream, &rq,
		    target->call.connect_ms, fresh, &call_ops, a, &a->call, &e);
	}
	hf_http_request_free(&rq);
	if (rc < 0) {
		hf_buf_puts(&a->outcome.message, e.text);
		set_outcome(a, HF_CLASS_GATEWAY,
		    rc == HF_EINVAL ? "unsayable" : "not_started");
	} else {
		attempt_arm(a);
	}
}

void
attempt_end(const struct hf_attempt *a, struct hf_attempt_end *end)
{
	*end = (struct hf_attempt_end){
		.n = (int)a->n,
		.cls = hf_class_name(a->outcome.cls),
		.reason = a->outcome.reason,
		.http_status = a->outcome.http_status,
		.called_us = a->called_us,
		.first_token_us = a->first_us,
		.total_us = hf_now_us() - a->begun_us,
		.bytes_out = a->bytes_out,
		.bytes_in = a->bytes_in,
		.tokens_in = a->tokens_in,
		.tokens_out = a->tokens_out,
		.tokens_estimated = a->fit.known ? a->fit.estimated : 0,
		.omitted_turns = a->fit.turns,
		.omitted_items = a->fit.items,
		.items = a->items,
		.items_of = a->items_of,
	};
}

void
turn_fill_end(struct hf_turn *t, const struct hf_attempt *a)
{
	struct hf_answer *an = &t->answer;

	attempt_end(a, &t->last);
	t->fit = a->fit;
	an->finish = a->finish;
	an->tokens_in = a->tokens_in;
	an->tokens_out = a->tokens_out;
	an->tokens_cached = a->tokens_cached;
	an->tokens_reasoning = a->tokens_reasoning;
}

/* Stop the current call, if any: its row is closed with the turn. */
void
turn_cancel_attempt(struct hf_turn *t, enum hf_class cls, const char *reason)
{
	struct hf_attempt *a = t->attempt;

	hedge_cancel(
	    t, cls == HF_CLASS_NONE ? "canceled" : hf_class_name(cls), reason);
	if (a == NULL)
		return;
	a->outcome.cls = cls;
	a->outcome.reason = reason;
	a->over = true;
	a->done = false;
	turn_fill_end(t, a);
	if (cls == HF_CLASS_NONE)
		t->last.cls = "canceled";
	evtimer_del(t->flush);
	attempt_detach(a);
}

void
attempts_cut(struct hf_turn_env *env)
{
	while (env->attempts != NULL) {
		leave_turn(env->attempts);
		attempt_free(env->attempts);
	}
}
