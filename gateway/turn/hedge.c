/*
 * Hedging: when a call has brought no useful delta for its target's
 * hedge_after_ms, the next target is called beside it, with a payload of its
 * own from disk and its row on disk before the call.  The first useful delta
 * of the two decides; the loser is hung up on at once, and as nothing but a
 * useful delta ever reaches the answer, none of its bytes is in it.  If one of
 * them fails before, the other goes on alone.
 *
 * Only an answer that has not begun is hedged: a continuation is not.  While
 * the row is being opened the end of the first call waits
 * (turn_attempt_ended()), so that attempts are numbered without gaps.  Loop
 * thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include "base/budget.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

static const char *
name_of(const struct hf_turn *t, unsigned target)
{
	return t->in.route->target[target]->name;
}

static bool
is_hedged(const struct hf_conf_route *r)
{
	bool any = false;

	for (unsigned i = 0; i < r->n_target; i++)
		any = any || r->target[i]->call.hedge_after_ms > 0;
	return any && r->hedge_budget_percent > 0;
}

void
hedge_pay(const struct hf_turn *t)
{
	const struct hf_conf_route *r = t->in.route;

	if (is_hedged(r))
		hf_budget_turn(t->env->shm, r->name, r->hedge_budget_percent);
}

/* A plain answer comes as a whole: only a stream has a first delta; and none
 * is owed any more once the finish was said. */
int64_t
hedge_due(const struct hf_attempt *a)
{
	const struct hf_turn *t = a->t;
	const struct hf_conf_route *r = t->in.route;
	int64_t after_ms = r->target[a->target]->call.hedge_after_ms;

	if (after_ms <= 0 || r->hedge_budget_percent <= 0 || !a->stream ||
	    a->useful || a->finish_us != 0 || a->over || a->unhedged ||
	    t->started || t->attempt != a || t->hedge.state != HEDGE_NONE)
		return INT64_MAX;
	return a->begun_us + after_ms * 1000;
}

/* --- rows ----------------------------------------------------------------- */

static void
on_closed(void *arg, int rc, const struct hf_error *e)
{
	struct hf_turn *t = arg;

	/* If that failed, the turn's end closes the row; a lease that was lost
	 * is noticed by the turn's next write. */
	(void)e;
	if (rc == 0)
		t->n_unclosed--;
	(void)turn_settled(t);
}

static void
close_row(struct hf_turn *t, const struct hf_attempt_end *end)
{
	struct hf_error e = { 0 };

	if (!t->durable)
		return;
	t->n_unclosed++;
	if (hf_store_attempts(t->env->store, t->session_row, t->turn_row,
		t->fence, end, NULL, on_closed, t, &e) == 0)
		t->pending++;
}

/* --- how a race ends --------------------------------------------------------
 */

/* The second call, if it was made, is not wanted. */
static void
end_hedge(struct hf_turn *t, const char *cls, const char *reason)
{
	struct hf_attempt_end end = {
		.n = (int)t->hedge.n, .tokens_in = -1, .tokens_out = -1
	};
	struct hf_attempt *a = t->hedge.attempt;

	if (a != NULL) {
		attempt_end(a, &end);
		attempt_detach(a);
	}
	end.cls = cls;
	end.reason = reason;
	hf_plan_lost(&t->plan, t->hedge.target, false);
	t->hedge = (struct hedge){ 0 };
	close_row(t, &end);
}

/* The second call is the only one that is left. */
static void
take_over(struct hf_turn *t)
{
	struct hf_attempt *a = t->hedge.attempt;

	t->hedge = (struct hedge){ 0 };
	t->attempt = a;
	t->target = a->target;
	t->open_n = a->n;
}

static void
fail_beside(struct hf_turn *t, struct hf_attempt *a)
{
	const struct hf_plan_failure f = turn_plan_failure(&a->outcome);
	struct hf_attempt_end end;

	attempt_end(a, &end);
	if (a->outcome.stale) {
		/* Nobody's failure; should it be asked again, not so. */
		hf_plan_lost(&t->plan, a->target, false);
		t->redial = true;
	} else {
		turn_note_failure(t, a, &end);
		hf_plan_failed_beside(&t->plan, a->target, &f, hf_now_us());
	}
	attempt_detach(a);
	close_row(t, &end);
}

/* The first call lost. */
static void
end_first(struct hf_turn *t)
{
	struct hf_attempt *a = t->attempt;
	struct hf_attempt_end end;

	if (a->over && a->outcome.cls != HF_CLASS_NONE) {
		fail_beside(t, a); /* a moment before */
		return;
	}
	attempt_end(a, &end);
	end.cls = "hedged";
	end.reason = "lost_race";
	hf_plan_lost(&t->plan, a->target, true);
	attempt_detach(a);
	close_row(t, &end);
}

void
hedge_decide(struct hf_attempt *winner)
{
	struct hf_turn *t = winner->t;
	struct hf_attempt *second = t->hedge.attempt;

	if (second == NULL)
		return;
	hf_log(HF_LOG_INFO, "turn: race_over turn=%s n=%u target=%s", t->id.s,
	    winner->n, name_of(t, winner->target));
	if (winner == second) {
		hf_count(t->env->shm, HF_C_hedges_won, 1);
		end_first(t);
		take_over(t);
	} else if (second->over && second->outcome.cls != HF_CLASS_NONE) {
		fail_beside(t, second);
		t->hedge = (struct hedge){ 0 };
	} else {
		end_hedge(t, "hedged", "lost_race");
	}
}

/* Does the end of this one end the race? */
static bool
is_decisive(const struct hf_turn *t, const struct hf_attempt *a)
{
	const struct hf_plan_failure f = turn_plan_failure(&a->outcome);

	return f.cls == HF_CLASS_NONE ||
	    (a == t->attempt && !a->outcome.stale &&
		hf_plan_is_final(&t->plan, a->target, &f));
}

bool
hedge_ended(struct hf_attempt *a)
{
	struct hf_turn *t = a->t;
	bool first = a == t->attempt;

	if (t->hedge.state == HEDGE_NONE)
		return false;
	if (is_decisive(t, a)) {
		if (a->outcome.cls == HF_CLASS_NONE)
			hedge_decide(a);
		else
			end_hedge(t, "hedged", "not_needed");
		return false;
	}
	fail_beside(t, a);
	if (first)
		take_over(t);
	else
		t->hedge = (struct hedge){ 0 };
	attempt_arm(t->attempt);
	return true;
}

void
hedge_cancel(struct hf_turn *t, const char *cls, const char *reason)
{
	if (t->hedge.state != HEDGE_NONE)
		end_hedge(t, cls, reason);
}

/* --- how it begins ----------------------------------------------------------
 */

static void
call_second(struct hf_turn *t)
{
	struct hedge *h = &t->hedge;
	struct hf_error e = { 0 };
	struct payload p;

	h->state = HEDGE_OPEN;
	if (payload_load(t, h->target, false, &p, &e) < 0) {
		/* The history could not be read; the first call had it. */
		hf_log(HF_LOG_WARN, "turn: not_hedged turn=%s detail=\"%s\"",
		    t->id.s, e.text);
		t->attempt->unhedged = true;
		end_hedge(t, "gateway", "not_started");
	} else if (p.fit.too_small) {
		/* The plan knows it now: perhaps another one. */
		hf_count(t->env->shm, HF_C_window_skips, 1);
		end_hedge(t, "skipped", "window_too_small");
	} else if (!turn_admit_beside(t, h->target)) {
		t->attempt->unhedged = true;
		end_hedge(t, "hedged", "not_called");
	} else {
		attempt_start(t, h->n, h->target, &p, &h->attempt);
		hf_count(t->env->shm, HF_C_hedges, 1);
		hf_log(HF_LOG_INFO,
		    "turn: hedged turn=%s n=%u target=%s beside=%s", t->id.s,
		    h->n, name_of(t, h->target), name_of(t, t->target));
	}
	payload_free(&p);
}

/* There is no row, so there is no call. */
static void
forget(struct hf_turn *t, const struct hf_error *e)
{
	static struct hf_log_limit limit;

	hf_log_limited(&limit, 1000, HF_LOG_WARN,
	    "turn: not_hedged turn=%s detail=\"%s\"", t->id.s,
	    e != NULL ? e->text : "");
	hf_plan_lost(&t->plan, t->hedge.target, false);
	t->hedge = (struct hedge){ 0 };
	t->n_attempt--;
	t->attempt->unhedged = true;
}

static void
on_opened(void *arg, int rc, const struct hf_error *e)
{
	struct hf_turn *t = arg;
	struct hf_attempt *first = t->attempt;
	bool wanted = t->hedge.state == HEDGE_OPENING;

	if (wanted && rc < 0)
		forget(t, e);
	else if (wanted)
		t->hedge.state = HEDGE_OPEN;
	if (turn_settled(t) || !wanted)
		return;
	if (rc == 0) {
		if (first->useful || (first->over && is_decisive(t, first)))
			end_hedge(t, "hedged", "not_called");
		else
			call_second(t);
		attempt_arm(first);
	}
	if (first->over)
		event_active(first->step, EV_TIMEOUT, 0);
}

void
hedge_start(struct hf_attempt *a)
{
	struct hf_turn *t = a->t;
	struct hf_attempt_begin begin = { 0 };
	struct hf_error e = { 0 };
	int64_t now = hf_now_us();
	int rc;

	/* Nobody waits any more, or nobody is left to be asked. */
	a->unhedged = t->surface == NULL || !hf_plan_has_next(&t->plan, now);
	if (!a->unhedged && !hf_budget_take(t->env->shm, t->in.route->name)) {
		hf_count(t->env->shm, HF_C_hedges_refused, 1);
		a->unhedged = true;
	}
	if (a->unhedged)
		return;
	t->hedge.state = HEDGE_OPENING;
	t->hedge.n = ++t->n_attempt;
	t->hedge.target = (unsigned)hf_plan_beside(&t->plan, now);
	if (!t->durable) {
		call_second(t);
		return;
	}
	begin.n = (int)t->hedge.n;
	begin.target = hf_str(name_of(t, t->hedge.target));
	rc = hf_store_attempts(t->env->store, t->session_row, t->turn_row,
	    t->fence, NULL, &begin, on_opened, t, &e);
	if (rc < 0)
		forget(t, &e);
	else
		t->pending++;
}
