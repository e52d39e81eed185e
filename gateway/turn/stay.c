/*
 * Where a session stays: with failback other than turn, a turn begins with the
 * target that answered the session last, or with a preferred one that has been
 * well for long enough.  Who answered is known from disk, who is well from the
 * scoreboard.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include "base/clock.h"
#include "base/log.h"

/* The route's target of that name; -1: it has none (any more). */
static int
index_of(const struct hf_turn *t, struct hf_str name)
{
	for (unsigned i = 0; i < t->plan.n_target; i++)
		if (hf_str_is(name, t->in.route->target[i]->name))
			return (int)i;
	return -1;
}

/* Who is asked before 'home'. */
static unsigned
lead_of(const struct hf_turn *t, unsigned home, int64_t now)
{
	const struct hf_conf_route *r = t->in.route;
	unsigned i;

	if (r->failback != HF_FAILBACK_HEALTH)
		return home;
	for (i = 0; i < home; i++) {
		const struct hf_target_row *row =
		    hf_target_row(t->env->shm, r->target[i]->name);

		if (hf_target_is_healthy(
			t->env->shm, row, r->failback_after_ms, now))
			break;
	}
	return i;
}

void
turn_stay(struct hf_turn *t, int64_t session_row)
{
	static struct hf_log_limit limit;
	int64_t now = hf_now_us();
	struct hf_error e = { 0 };
	struct hf_str name;
	int home;

	if (t->in.route->failback == HF_FAILBACK_TURN)
		return;
	if (hf_store_answered_by(
		t->env->store, session_row, t->arena, &name, &e) < 0) {
		/* In the route's order, then.  If the disk is in trouble, the
		 * next read says so to the client. */
		hf_log_limited(&limit, 1000, HF_LOG_WARN,
		    "turn: home_unread session=%s detail=\"%s\"", t->session.s,
		    e.text);
		return;
	}
	home = index_of(t, name);
	if (home < 0)
		return;
	t->home = (unsigned)home;
	t->has_home = true;
	hf_plan_stay(&t->plan, t->home, lead_of(t, t->home, now));
	t->target = hf_plan_first(&t->plan, now).target;
}

void
turn_count_return(const struct hf_turn *t)
{
	if (!t->has_home || t->by_gateway || t->target >= t->home)
		return;
	hf_count(t->env->shm, HF_C_failbacks, 1);
	hf_log(HF_LOG_INFO, "turn: failback session=%s turn=%s from=%s to=%s",
	    t->session.s, t->id.s, t->in.route->target[t->home]->name,
	    t->in.route->target[t->target]->name);
}
