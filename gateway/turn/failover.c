/*
 * What a failed attempt means: the next target, a wait, or the end; and the
 * record of attempts on disk.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

static void
count_failure(const struct hf_turn *t, enum hf_class cls)
{
	static const enum hf_counter c[] = {
#define HF_CLASS(id, name, action, breaker, answer, all, meaning) \
	[HF_CLASS_##id] = HF_C_attempts_##name,
#define HF_ANSWER(id, status, type, code)
#include "base/class.def"
#undef HF_CLASS
#undef HF_ANSWER
	};

	hf_count(t->env->shm, c[cls], 1);
}

/* Tell the client in the provider's own words: the request was wrong.  What
 * clients match on is ours where dialects have other words. */
static void
fail_caller(
    struct hf_turn *t, const struct hf_answer_error *a, const struct outcome *o)
{
	bool own = a->status == 0;
	int status = !own				  ? a->status :
	    o->http_status >= 400 && o->http_status < 500 ? o->http_status :
							    400;
	const char *code = a->code;
	char text[480];

	hf_buf_reset(&t->code);
	hf_buf_putstr(&t->code, hf_buf_str(&o->code));
	if (own && t->code.size > 0 && hf_buf_ok(&t->code) &&
	    memchr(t->code.data, '\0', t->code.size) == NULL)
		code = t->code.data;
	snprintf(text, sizeof(text), "%.*s", (int)o->message.size,
	    o->message.size > 0 ? o->message.data : "");
	hf_buf_reset(&t->param);
	hf_buf_putstr(&t->param, hf_buf_str(&o->param));
	t->drop = true;
	turn_fail(t, status, a->type, code, "%s",
	    text[0] != '\0' ? text : "the provider refused the request");
}

static void
give_up(
    struct hf_turn *t, const struct hf_plan_step *s, const struct outcome *o)
{
	const struct hf_answer_error *a = hf_answer_error(s->answer);

	t->error_class = hf_class_name(o->cls);
	if (t->started) {
		turn_fail(t, 502, "server_error", "stream_interrupted",
		    "the provider's stream broke off and nobody could go on "
		    "with it (%u attempts, last: %s)",
		    t->n_attempt, o->reason);
		return;
	}
	if (s->answer == HF_ANSWER_WORDS || s->answer == HF_ANSWER_CONTENT ||
	    s->answer == HF_ANSWER_WINDOW) {
		fail_caller(t, a, o);
		return;
	}
	if (turn_last_resort(t))
		return;
	t->failure.retry_after_ms = s->retry_after_ms >= 0 ? s->retry_after_ms :
	    s->answer == HF_ANSWER_LATE			   ? -1 :
							     1000;
	if (s->answer == HF_ANSWER_LIMITED)
		turn_fail(t, a->status, a->type, a->code,
		    "every provider of this model is rate limited "
		    "(%u attempts)",
		    t->n_attempt);
	else if (s->answer == HF_ANSWER_LATE)
		turn_fail(t, a->status, a->type, a->code,
		    "no provider of this model answered in time "
		    "(%u attempts)",
		    t->n_attempt);
	else
		turn_fail(t, a->status, a->type, a->code,
		    "no provider of this model could answer "
		    "(%u attempts, last: %s)",
		    t->n_attempt, o->reason);
}

static void
on_recorded(void *arg, int rc, const struct hf_error *e)
{
	struct hf_turn *t = arg;

	if (turn_settled(t))
		return;
	if (rc < 0)
		turn_fail_store(t, rc, e);
	else if (t->sm.cur == TURN_REBUILDING && t->pending == 0)
		turn_call(t);
}

/* Close the last attempt's row and, when going on, open the next one's. */
static int
record(struct hf_turn *t, bool open, struct hf_error *e)
{
	struct hf_attempt_end end =
	    t->open_n != 0 ? t->last : (struct hf_attempt_end){ 0 };
	struct hf_attempt_begin begin = { 0 };
	int rc;

	if (open) {
		begin.n = (int)t->n_attempt;
		begin.target = hf_str(t->in.route->target[t->target]->name);
		begin.from_bytes = t->started ? (int64_t)turn_text_size(t) : 0;
	}
	rc = hf_store_attempts(t->env->store, t->session_row, t->turn_row,
	    t->fence, &end, &begin, on_recorded, t, e);
	if (rc < 0)
		return rc;
	t->pending++;
	t->open_n = open ? t->n_attempt : 0;
	return 0;
}

/* REBUILDING: the first attempt's row was made by T1; a later one is made
 * durable before its call, like everything that may cost money. */
void
turn_rebuild(struct hf_turn *t)
{
	struct hf_error e = { 0 };
	int rc;

	if (!t->durable) {
		t->n_attempt++;
		turn_call(t);
	} else if (t->open_n != 0 && t->last.n == 0) {
		turn_call(t);
	} else {
		t->n_attempt++;
		rc = record(t, true, &e);
		if (rc < 0)
			turn_fail_store(t, rc, &e);
	}
}

struct hf_plan_failure
turn_plan_failure(const struct outcome *o)
{
	return (struct hf_plan_failure){
		.cls = o->cls,
		.timed_out = o->timed_out,
		.limited = o->http_status == 429,
		.hint_ms = o->retry_after_ms,
		.holds = o->holds,
		.shrinks = o->shrinks,
		.uncalled = o->uncalled,
	};
}

static void
wait_on(struct hf_turn *t)
{
	int64_t left = t->waits_until_us - hf_now_us();
	struct timeval tv = { left / 1000000, left % 1000000 };

	if (left < 0)
		tv = (struct timeval){ 0 };
	evtimer_add(t->later, &tv);
}

static void
take_step(struct hf_turn *t, struct hf_plan_step s, const struct outcome *o)
{
	struct hf_error e = { 0 };
	int rc;

	switch (s.kind) {
	case HF_PLAN_CALL:
		t->target = s.target;
		turn_move(t, TURN_REBUILDING);
		turn_rebuild(t);
		break;
	case HF_PLAN_WAIT:
		hf_count(t->env->shm, HF_C_waits, 1);
		hf_log(HF_LOG_INFO,
		    "turn: waiting turn=%s wait_ms=%lld "
		    "attempts=%u",
		    t->id.s, (long long)s.wait_ms, t->n_attempt);
		if (t->sm.cur != TURN_WAITING)
			turn_move(t, TURN_WAITING);
		t->waits_until_us = hf_now_us() + s.wait_ms * 1000;
		wait_on(t);
		rc = t->durable && t->open_n != 0 ? record(t, false, &e) : 0;
		if (rc < 0)
			turn_fail_store(t, rc, &e);
		break;
	case HF_PLAN_GIVE_UP:
		give_up(t, &s, o);
		break;
	}
}

static void
plan_next(struct hf_turn *t, const struct outcome *o)
{
	const struct hf_plan_failure f = turn_plan_failure(o);

	take_step(t, hf_plan_failed(&t->plan, t->target, &f, hf_now_us()), o);
}

void
turn_wait_over(struct hf_turn *t)
{
	int64_t now = hf_now_us();
	const struct outcome o = { .cls = t->plan.target[t->target].last,
		.reason = "no_target",
		.retry_after_ms = -1 };

	/* Timers go by the time at which their loop began to turn, and a hint
	 * is a floor. */
	if (now < t->waits_until_us)
		wait_on(t);
	else
		take_step(t, hf_plan_resume(&t->plan, now), &o);
}

void
turn_skip(struct hf_turn *t)
{
	const struct outcome o = { .cls = HF_CLASS_CAPACITY,
		.reason = turn_is_disabled(t, t->target) ? "disabled" :
							   "not_admitted",
		.retry_after_ms = -1 };

	t->last = (struct hf_attempt_end){ .n = (int)t->n_attempt,
		.cls = "skipped",
		.reason = o.reason,
		.tokens_in = -1,
		.tokens_out = -1 };
	hf_log(HF_LOG_INFO, "turn: skipped turn=%s n=%u target=%s", t->id.s,
	    t->n_attempt, t->in.route->target[t->target]->name);
	t->redial = false;
	take_step(t, hf_plan_skipped(&t->plan, t->target, hf_now_us()), &o);
}

void
turn_too_small(struct hf_turn *t, const struct fitted *f)
{
	struct outcome o = { .cls = HF_CLASS_CONTEXT,
		.reason = "window_too_small",
		.retry_after_ms = -1,
		.holds = f->least > f->window ? f->least : f->window,
		.uncalled = true };
	const char *name = t->in.route->target[t->target]->name;

	hf_buf_init(&o.message, 512);
	hf_buf_init(&o.param, 16);
	hf_buf_puts(&o.param, "messages");
	hf_buf_printf(&o.message,
	    "what must be kept of this conversation has about %lld tokens, "
	    "and none of this model's providers has room for so many",
	    (long long)f->least);
	t->last = (struct hf_attempt_end){ .n = (int)t->n_attempt,
		.cls = "skipped",
		.reason = o.reason,
		.tokens_in = -1,
		.tokens_out = -1,
		.tokens_estimated = f->estimated };
	hf_count(t->env->shm, HF_C_window_skips, 1);
	hf_log(HF_LOG_INFO,
	    "turn: skipped turn=%s n=%u target=%s reason=%s least=%lld "
	    "room=%lld window=%lld",
	    t->id.s, t->n_attempt, name, o.reason, (long long)f->least,
	    (long long)f->room, (long long)f->window);
	plan_next(t, &o);
	hf_buf_free(&o.message);
	hf_buf_free(&o.param);
}

static bool
is_empty(const struct hf_turn *t, const struct hf_attempt *a)
{
	return turn_text_size(t) == 0 && t->held.size == 0 &&
	    t->answer.refusal.size == 0 && t->answer.n_call == 0 &&
	    a->finish == HF_FINISH_STOP;
}

void
turn_note_failure(const struct hf_turn *t, const struct hf_attempt *a,
    const struct hf_attempt_end *end)
{
	count_failure(t, a->outcome.cls);
	hf_log(HF_LOG_INFO,
	    "turn: attempt_failed turn=%s n=%d target=%s "
	    "class=%s reason=%s status=%d total_ms=%lld delivered=%zu",
	    t->id.s, end->n, t->in.route->target[a->target]->name, end->cls,
	    end->reason, end->http_status, (long long)end->total_us / 1000,
	    t->started ? turn_text_size(t) : (size_t)0);
}

/* Can another target be asked, or is one being asked? */
static bool
somebody_else(const struct hf_turn *t)
{
	return t->hedge.state != HEDGE_NONE ||
	    hf_plan_has_next(&t->plan, hf_now_us());
}

/* The same target once more.  Nothing of it was seen by anybody: not by the
 * plan, the breaker or the client; only the row of the attempt says so. */
static void
redial(struct hf_turn *t)
{
	hf_count(t->env->shm, HF_C_redials, 1);
	hf_log(HF_LOG_INFO, "turn: redialled turn=%s n=%u target=%s", t->id.s,
	    t->n_attempt, t->in.route->target[t->target]->name);
	t->redial = true; /* a fresh connection cannot be stale */
	turn_move(t, TURN_REBUILDING);
	turn_rebuild(t);
}

/* Go on after a failure: with the next target; with the same one, if it only
 * refused how it was asked; or not at all. */
static void
go_on(struct hf_turn *t, const struct outcome *o, bool prefill_refused,
    bool may_continue)
{
	/* What the client has must be on disk before a payload holds it. */
	if (t->started && t->durable)
		turn_flush(t);
	if (t->sm.cur >= TURN_FAILED)
		return;
	if (t->started && !may_continue) {
		t->error_class = t->last.cls;
		turn_fail(t, 502, "server_error", "stream_interrupted",
		    "the provider's stream broke off (%s)", o->reason);
	} else if (o->stale) {
		redial(t);
	} else if (prefill_refused) {
		t->prefill_off = true;
		turn_no_prefill(t->env, t->in.route->target[t->target]);
		turn_move(t, TURN_REBUILDING);
		turn_rebuild(t);
	} else {
		plan_next(t, o);
	}
}

/* The attempt is over: act on its outcome. */
void
turn_attempt_ended(struct hf_attempt *a)
{
	struct hf_turn *t = a->t;
	struct hf_buf *own[] = { &a->outcome.message, &a->outcome.code,
		&a->outcome.type, &a->outcome.param };
	bool refused, may;
	struct outcome o;

	if (t->hedge.state == HEDGE_OPENING)
		return; /* hedge.c looks again when that is settled */
	if (a->outcome.cls == HF_CLASS_NONE && is_empty(t, a) &&
	    somebody_else(t)) {
		/* Nothing was said. */
		a->outcome.cls = HF_CLASS_PROVIDER;
		a->outcome.reason = "empty_answer";
		attempt_judge(a);
	}
	if (a->outcome.cls == HF_CLASS_CONTEXT)
		window_refused(a);
	else if (a->outcome.cls == HF_CLASS_NONE)
		window_answered(a);
	if (hedge_ended(a))
		return;
	o = a->outcome;
	refused = a->prefill && o.cls == HF_CLASS_CALLER && !a->useful;
	may = turn_may_continue(t, o.cls);
	turn_fill_end(t, a);
	if (o.cls != HF_CLASS_NONE && !o.stale)
		turn_note_failure(t, a, &t->last);
	for (size_t i = 0; i < hf_countof(own); i++)
		*own[i] = (struct hf_buf){ 0 };
	attempt_detach(a);
	t->paused = false;
	if (o.cls == HF_CLASS_NONE) {
		turn_pass_all(t);
		evtimer_del(t->flush);
		turn_finish(t);
	} else {
		turn_forget_held(t);
		evtimer_del(t->flush);
		go_on(t, &o, refused, may);
	}
	hf_buf_free(&o.message);
	hf_buf_free(&o.code);
	hf_buf_free(&o.type);
	hf_buf_free(&o.param);
}
