/*
 * Before a call: may its target be asked now?  The breaker and the pace of a
 * target are shared by all workers (base/target.h).  A turn that has to wait
 * does so in WAITING with its place reserved and its attempt's row open; one
 * that is refused goes on with the next target.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include "base/clock.h"
#include "base/log.h"

#define EARLY_US 1000 /* timers of a millisecond */

static const struct hf_conf_target *
target_of(const struct hf_turn *t, unsigned i)
{
	return t->in.route->target[i];
}

static bool
is_shared(const struct hf_conf_call *c)
{
	return c->breaker_failures > 0 || c->rpm > 0;
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

/* A place in the pace; or none, when another target can be asked instead. */
static enum hf_admit
reserve(struct hf_turn *t, struct hf_target_row *r, bool others, int64_t now,
    int64_t *due)
{
	const struct hf_conf_call *c = &target_of(t, t->target)->call;
	bool next = others && c->when_full == HF_FULL_NEXT;
	enum hf_admit how;

	if (t->reserved && !hf_target_is_blocked(r, now))
		return HF_ADMIT_CALL;
	how = hf_target_reserve(
	    r, c, now, next ? now + EARLY_US : t->deadline_us, due);
	t->reserved = how != HF_ADMIT_REFUSE;
	return how;
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

	if (!t->paced)
		hf_count(t->env->shm, HF_C_paced, 1);
	t->paced = true;
	t->resuming = true;
	turn_move(t, TURN_WAITING);
	t->waits_on = r;
	hf_target_wait(t->env->shm, r, true);
	evtimer_add(t->later, &tv);
}

bool
turn_admit(struct hf_turn *t)
{
	const struct hf_conf_target *target = target_of(t, t->target);
	struct hf_target_row *r = hf_target_row(t->env->shm, target->name);
	int64_t now = hf_now_us(), due = now;
	bool others = hf_plan_has_next(&t->plan, now);
	enum hf_admit how = HF_ADMIT_REFUSE;

	if (!hf_target_is_disabled(t->env->shm, target))
		how = reserve(t, r, others, now, &due);
	if (how == HF_ADMIT_CALL) {
		how = hf_target_take(t->env->shm, r, &target->call, !others,
		    now, &t->ticket, &due);
		if (how == HF_ADMIT_WAIT && others &&
		    target->call.when_full == HF_FULL_NEXT)
			how = HF_ADMIT_REFUSE;
	}
	switch (how) {
	case HF_ADMIT_CALL:
		t->reserved = t->paced = false;
		return true;
	case HF_ADMIT_WAIT:
		wait_until(t, r, due, now);
		return false;
	case HF_ADMIT_REFUSE:
		t->reserved = t->paced = false;
		hf_count(t->env->shm, HF_C_skips, 1);
		turn_skip(t);
		return false;
	}
	return false;
}

bool
turn_admit_beside(struct hf_turn *t, unsigned i)
{
	const struct hf_conf_target *target = target_of(t, i);
	struct hf_target_row *r = hf_target_row(t->env->shm, target->name);
	int64_t now = hf_now_us(), due;

	return !hf_target_is_disabled(t->env->shm, target) &&
	    hf_target_reserve(r, &target->call, now, now + EARLY_US, &due) !=
	    HF_ADMIT_REFUSE &&
	    hf_target_take(t->env->shm, r, &target->call, false, now,
		&t->ticket, &due) == HF_ADMIT_CALL;
}

/* --- while it goes on ------------------------------------------------------
 */

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

void
attempt_judge(struct hf_attempt *a)
{
	a->verdict =
	    a->outcome.stale ? HF_HEALTH_NEUTRAL : verdict_of(a->outcome.cls);
	a->judged = true;
	if (a->outcome.http_status == 429)
		hf_target_limited(&a->ticket,
		    is_shared(a->ticket_call) ? a->outcome.retry_after_ms : -1,
		    hf_now_us());
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
	if (a->ticket.row != NULL)
		count_end(a);
	hf_target_end(
	    a->env->shm, &a->ticket, a->ticket_call, a->verdict, hf_now_us());
}
