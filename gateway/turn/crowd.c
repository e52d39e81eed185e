/*
 * Turns of this worker that wait because as many calls as may be are on their
 * way to their target: in a line for each target, in order of arrival.  The
 * line is looked at when a call of this worker made room, and now and then,
 * because others make room, too.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include "base/check.h"
#include "base/clock.h"

#define LOOK_US 10000 /* calls of other workers */

static unsigned
line_of(const struct hf_turn_env *env, const struct hf_target_row *r)
{
	return (unsigned)(r - env->shm->h->target);
}

static const struct hf_conf_call *
call_of(const struct hf_turn *t)
{
	return &t->in.route->target[t->target]->call;
}

/* The first of the line as long as it may go; it comes back to where it was if
 * it may not after all. */
static void
look(struct hf_turn_env *env, unsigned line)
{
	struct hf_crowd *c = &env->crowd[line];
	struct hf_target_row *r = &env->shm->h->target[line];
	struct hf_turn *t;

	while ((t = c->first) != NULL &&
	    hf_target_has_room(r, call_of(t), hf_now_us())) {
		c->going = t;
		turn_crowd_leave(t);
		turn_again(t);
		c->going = NULL;
		if (c->first == t)
			break;
	}
}

static void
on_look(evutil_socket_t fd, short what, void *arg)
{
	struct hf_turn_env *env = arg;
	struct timeval soon = { 0, LOOK_US };
	bool any = false;

	(void)fd;
	(void)what;
	for (unsigned i = 0; i < HF_SHM_TARGETS; i++) {
		look(env, i);
		any = any || env->crowd[i].first != NULL;
	}
	if (any)
		evtimer_add(env->crowd_ev, &soon);
}

bool
turn_crowd_is_ahead(const struct hf_turn *t, const struct hf_target_row *r)
{
	const struct hf_crowd *c;

	if (r == NULL)
		return false;
	c = &t->env->crowd[line_of(t->env, r)];
	return c->first != NULL && c->going != t;
}

void
turn_crowd_join(struct hf_turn *t, const struct hf_target_row *r)
{
	struct hf_turn_env *env = t->env;
	struct hf_crowd *c = &env->crowd[line_of(env, r)];
	struct timeval soon = { 0, LOOK_US };
	bool front = c->going == t;

	if (env->crowd_ev == NULL)
		env->crowd_ev = evtimer_new(env->base, on_look, env);
	HF_CHECK(env->crowd_ev != NULL && t->crowd == NULL);
	t->crowd = c;
	t->ahead = front ? NULL : c->last;
	t->behind = front ? c->first : NULL;
	*(t->ahead != NULL ? &t->ahead->behind : &c->first) = t;
	*(t->behind != NULL ? &t->behind->ahead : &c->last) = t;
	if (!evtimer_pending(env->crowd_ev, NULL))
		evtimer_add(env->crowd_ev, &soon);
}

void
turn_crowd_leave(struct hf_turn *t)
{
	struct hf_crowd *c = t->crowd;

	if (c == NULL)
		return;
	*(t->ahead != NULL ? &t->ahead->behind : &c->first) = t->behind;
	*(t->behind != NULL ? &t->behind->ahead : &c->last) = t->ahead;
	t->crowd = NULL;
	t->ahead = t->behind = NULL;
}

void
turn_crowd_look(struct hf_turn_env *env, const struct hf_target_row *r)
{
	struct timeval now = { 0, 0 };

	if (env->crowd[line_of(env, r)].first != NULL)
		evtimer_add(env->crowd_ev, &now);
}
