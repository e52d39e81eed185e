/*
 * Before a call: may its target be asked now?  The breaker, the pace and the
 * quota of a target are shared by all workers (base/target.h).  A turn that has
 * to wait does so in WAITING with its place reserved and its attempt's row
 * open; one that is refused goes on with the next target.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/turn/tokens.h"

#define EARLY_US 1000 /* timers of a millisecond */

static const struct hf_conf_target *
target_of(const struct hf_turn *t, unsigned i)
{
	return t->in.route->target[i];
}

static bool
is_shared(const struct hf_conf_call *c)
{
	return c->breaker_failures > 0 || c->rpm > 0 || c->tpm > 0 ||
	    c->slow_start > 0;
}

int64_t
turn_opens_us(void *arg, unsigned i, int64_t now_us)
{
	const struct hf_turn *t = arg;
	const struct hf_conf_target *target = target_of(t, i);
	const struct hf_target_row *r =
	    hf_target_row(t->env->shm, target->name);

	if (hf_target_is_disabled(t->env->shm, target))
		return INT64_MAX;
	return hf_target_opens_us(r, now_us);
}

bool
turn_is_disabled(void *arg, unsigned i)
{
	const struct hf_turn *t = arg;

	return hf_target_is_disabled(t->env->shm, target_of(t, i));
}

int64_t
turn_paced_us(void *arg, unsigned i, int64_t now_us)
{
	const struct hf_turn *t = arg;
	const struct hf_conf_target *target = target_of(t, i);
	const struct hf_target_row *r =
	    hf_target_row(t->env->shm, target->name);

	return hf_target_paced_us(r, &target->call, now_us);
}

/* How long the client lets the answer be; 0: it does not say. */
static int64_t
answer_limit(const struct hf_turn *t)
{
	static const char *const name[] = { "max_completion_tokens",
		"max_tokens" };
	struct hf_json params;
	int64_t n;

	if (hf_json_check(t->in.params, &params, NULL, NULL) < 0)
		return 0;
	for (size_t i = 0; i < hf_countof(name); i++)
		if (hf_json_int(hf_json_get(params, name[i]), &n) && n > 0)
			return n;
	return 0;
}

/* The tokens that a call is counted by: of the payload, which is built for
 * that and thrown away, and of the answer as far as the client limits it.  -1:
 * nobody asks. */
static int64_t
tokens_of(struct hf_turn *t, const struct hf_conf_target *target)
{
	struct hf_http_request rq;
	struct hf_error e = { 0 };
	struct payload p;
	int64_t tokens = 0;

	if (target->call.tpm <= 0 || t->claim.row != NULL)
		return -1;
	hf_http_request_init(&rq);
	/* What cannot be built is no call. */
	if (payload_load(t, t->target, false, &p, &e) == 0 &&
	    payload_build(&p, &rq, &e) == 0)
		tokens = hf_tokens(hf_buf_str(&rq.body)) + answer_limit(t);
	payload_free(&p);
	hf_http_request_free(&rq);
	return tokens;
}

/* A place in the pace; or none, when another target can be asked instead.  Who
 * has one keeps it. */
static enum hf_admit
reserve(struct hf_turn *t, struct hf_target_row *r, bool others, int64_t now,
    int64_t *due)
{
	const struct hf_conf_target *target = target_of(t, t->target);
	bool next = others && t->claim.row != r &&
	    (target->call.when_full == HF_FULL_NEXT ||
		hf_target_paced_us(r, &target->call, now) > 0);

	return hf_target_reserve(r, &target->call, &t->claim,
	    tokens_of(t, target), now, next ? now + EARLY_US : t->deadline_us,
	    due);
}

static void
wait_here(struct hf_turn *t, struct hf_target_row *r)
{
	if (!t->paced)
		hf_count(t->env->shm, HF_C_paced, 1);
	t->paced = true;
	t->resuming = true;
	turn_move(t, TURN_WAITING);
	t->waits_on = r;
	hf_target_wait(t->env->shm, r, true);
}

void
turn_waits_no_more(struct hf_turn *t)
{
	hf_target_wait(t->env->shm, t->waits_on, false);
	t->waits_on = NULL;
}

static void
wait_until(struct hf_turn *t, struct hf_target_row *r, int64_t due, int64_t now)
{
	struct timeval tv = { (due - now) / 1000000, (due - now) % 1000000 };

	wait_here(t, r);
	evtimer_add(t->later, &tv);
}

static void
refuse(struct hf_turn *t)
{
	t->paced = false;
	hf_target_unclaim(&t->claim);
	hf_count(t->env->shm, HF_C_skips, 1);
	turn_skip(t);
}

bool
turn_admit(struct hf_turn *t)
{
	const struct hf_conf_target *target = target_of(t, t->target);
	struct hf_target_row *r = hf_target_row(t->env->shm, target->name);
	int64_t now = hf_now_us(), due = now;
	bool others = hf_plan_has_next(&t->plan, now);
	enum hf_admit how = HF_ADMIT_REFUSE;

	if (!hf_target_is_disabled(t->env->shm, target)) {
		how = reserve(t, r, others, now, &due);
		/* Its line is still there if the others fail. */
		if (how == HF_ADMIT_REFUSE && others)
			hf_plan_put_off(&t->plan, t->target, now);
	}
	if (how == HF_ADMIT_REFUSE) {
		refuse(t);
		return false;
	}
	if (how == HF_ADMIT_WAIT) {
		wait_until(t, r, due, now);
		return false;
	}
	how = turn_crowd_is_ahead(t, r) ?
	    HF_ADMIT_WAIT :
	    hf_target_take(t->env->shm, r, &target->call, !others, now,
		&t->claim, &t->ticket);
	if (how == HF_ADMIT_CALL) {
		t->paced = false;
		return true;
	}
	if (how == HF_ADMIT_REFUSE ||
	    (others && target->call.when_full == HF_FULL_NEXT)) {
		refuse(t);
	} else {
		wait_here(t, r);
		turn_crowd_join(t, r);
	}
	return false;
}

bool
turn_admit_beside(struct hf_turn *t, unsigned i)
{
	const struct hf_conf_target *target = target_of(t, i);
	struct hf_target_row *r = hf_target_row(t->env->shm, target->name);
	int64_t now = hf_now_us(), due;
	struct hf_claim claim = { 0 };
	bool may = !hf_target_is_disabled(t->env->shm, target) &&
	    hf_target_reserve(r, &target->call, &claim, -1, now, now + EARLY_US,
		&due) != HF_ADMIT_REFUSE &&
	    hf_target_take(t->env->shm, r, &target->call, false, now, &claim,
		&t->ticket) == HF_ADMIT_CALL;

	hf_target_unclaim(&claim);
	return may;
}

/* --- while it goes on ------------------------------------------------------
 */

void
attempt_heard(struct hf_attempt *a, int status, struct hf_str headers)
{
	int64_t now = hf_now_us();

	if (a->ticket.row == NULL)
		return;
	if (status >= 200 && status <= 299) {
		hf_target_admitted(&a->ticket, a->ticket_call);
		turn_crowd_look(a->env, a->ticket.row);
	}
	hf_quota_headers(headers, hf_wall_us(), &a->said);
	hf_target_said(&a->ticket, a->ticket_call, &a->said, now);
}

static enum hf_health
verdict_of(enum hf_class c)
{
	switch (hf_class_row(c)->breaker) {
	case HF_BREAKER_NO:
		return HF_HEALTH_ANSWERED;
	case HF_BREAKER_YES:
		return HF_HEALTH_FAILED;
	case HF_BREAKER_NEUTRAL:
		break;
	}
	return HF_HEALTH_NEUTRAL;
}

/* It was refused with a 429. */
static void
note_refusal(struct hf_attempt *a)
{
	static struct hf_log_limit limit;
	int64_t hint_ms =
	    is_shared(a->ticket_call) ? a->outcome.retry_after_ms : -1;
	int64_t now = hf_now_us();
	struct hf_pace_limits l = { 0 };

	hf_target_limited(
	    &a->ticket, a->ticket_call, hint_ms, a->said.calls.left > 0, now);
	if (a->ticket.row != NULL)
		(void)hf_target_limits(a->ticket.row, a->ticket_call, now, &l);
	hf_log_limited(&limit, 1000, HF_LOG_INFO,
	    "turn: limited target=%s hint_ms=%lld quota=%lld window_ms=%d",
	    a->t != NULL ? target_of(a->t, a->target)->name : "-",
	    (long long)hint_ms, (long long)l.n, l.window_ms);
}

void
attempt_judge(struct hf_attempt *a)
{
	a->verdict =
	    a->outcome.stale ? HF_HEALTH_NEUTRAL : verdict_of(a->outcome.cls);
	a->judged = true;
	if (a->outcome.stale)
		hf_target_unseen(&a->ticket);
	if (a->outcome.http_status == 429 &&
	    a->outcome.cls == HF_CLASS_CAPACITY)
		note_refusal(a);
}

static void
count_end(const struct hf_attempt *a)
{
	struct hf_figures *f = &a->ticket.row->figures;

	if (a->judged && !a->outcome.stale)
		hf_figures_ended(
		    f, a->outcome.cls, a->outcome.http_status, hf_wall_us());
	else
		hf_figures_cut(f);
}

void
attempt_give_back(struct hf_attempt *a)
{
	struct hf_target_row *r = a->ticket.row;

	if (r == NULL)
		return;
	count_end(a);
	if (a->tokens_in >= 0)
		hf_target_used(&a->ticket,
		    a->tokens_in + (a->tokens_out > 0 ? a->tokens_out : 0));
	hf_target_end(
	    a->env->shm, &a->ticket, a->ticket_call, a->verdict, hf_now_us());
	turn_crowd_look(a->env, r);
}
