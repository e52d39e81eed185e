/*
 * Shadow prefill (warm = prefill): after a turn, the session's history is sent
 * to a target that may have to answer the next one, for one token that nobody
 * reads, so that a local model has the conversation in its cache when the
 * others fail.  It gives way to everything: it waits until no call of any
 * worker is in flight there, ends when one is made or when the session's next
 * turn comes, and what comes of it is counted, and otherwise ignored: not by
 * the breaker, nor stored.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#define MOST 64				/* of a worker, with those that wait */
#define LOOK_MS 25			/* is it still wanted, is there room? */
#define PATIENCE_US ((int64_t)10000000) /* for room */
#define HISTORY_MAX ((size_t)256 * 1024 * 1024)

struct hf_shadow {
	struct hf_shadow *next, **prevp; /* env->shadows */
	struct hf_turn_env *env;
	int64_t session_row, turn_row; /* the head, as long as it is wanted */
	struct hf_id session;
	const struct hf_conf_target *target;
	struct hf_target_row *row; /* counted there while 'call' */
	char *params;
	struct hf_call *call; /* NULL: it waits */
	struct event *ev;
	int64_t until_us; /* when it is given up */
	int status;
};

static void
end(struct hf_shadow *s, enum hf_counter how, const char *reason)
{
	struct hf_turn_env *env = s->env;

	hf_count(env->shm, how, 1);
	hf_log(HF_LOG_DEBUG, "turn: shadow session=%s target=%s reason=%s",
	    s->session.s, s->target->name, reason);
	if (s->call != NULL) {
		hf_call_cancel(s->call);
		hf_target_shadow_end(env->shm, s->row);
	}
	event_free(s->ev);
	*s->prevp = s->next;
	if (s->next != NULL)
		s->next->prevp = s->prevp;
	env->n_shadows--;
	free(s->params);
	free(s);
}

static void
look_again(struct hf_shadow *s)
{
	evtimer_add(s->ev, &(struct timeval){ .tv_usec = LOOK_MS * 1000 });
}

/* --- the call --------------------------------------------------------------
 */

static void
on_headers(void *arg, int status, struct hf_str headers)
{
	struct hf_shadow *s = arg;

	(void)headers;
	s->status = status;
}

static void
on_data(void *arg, struct hf_str bytes)
{
	(void)arg;
	(void)bytes;
}

static void
on_done(void *arg, const struct hf_call_result *r)
{
	struct hf_shadow *s = arg;
	bool ok = r->cls == HF_CLASS_NONE && s->status == 200;

	s->call = NULL;
	hf_target_shadow_end(s->env->shm, s->row);
	end(s, ok ? HF_C_shadows_done : HF_C_shadows_failed,
	    ok				? "done" :
		r->cls == HF_CLASS_NONE ? "refused" :
					  r->reason);
}

static const struct hf_call_ops ops = {
	.headers = on_headers,
	.data = on_data,
	.done = on_done,
};

/* The history, and one user message behind it: servers that would go on with
 * an answer that stands last, or refuse one, have its end in the prompt, as
 * the next turn will. */
static int
build(const struct hf_shadow *s, struct hf_http_request *rq, struct hf_error *e)
{
	struct hf_payload_input in = {
		.target = s->target, .max_tokens = 1, .instruction = HF_STR(".")
	};
	struct hf_history h = { 0 };
	struct hf_arena arena;
	int rc;

	hf_arena_init(&arena, HISTORY_MAX);
	rc = hf_store_history(
	    s->env->store, s->session_row, s->turn_row, &arena, &h, e);
	if (rc == 0)
		rc = hf_json_check(hf_str(s->params), &in.params, NULL, e);
	in.item = h.item;
	in.n_item = h.n;
	/* What it would be told of a longer one changes with each turn. */
	if (rc == 0 && !window_holds(s->env, &in))
		rc = hf_fail(e, HF_ELIMIT, "its window cannot hold it");
	if (rc == 0)
		rc =
		    hf_dialect(s->target->provider->dialect)->build(&in, rq, e);
	hf_arena_free(&arena);
	return rc;
}

static int
call(struct hf_shadow *s, struct hf_error *e)
{
	const struct hf_conf_call *c = &s->target->call;
	struct hf_http_request rq;
	int rc;

	hf_http_request_init(&rq);
	rc = build(s, &rq, e);
	if (rc == 0)
		rc = hf_upstream_start(s->env->upstream, &rq, c->connect_ms,
		    false, &ops, s, &s->call, e);
	hf_http_request_free(&rq);
	return rc;
}

/* --- whether and when ------------------------------------------------------
 */

static bool
is_wanted(const struct hf_shadow *s)
{
	struct hf_error e = { 0 };
	bool idle = false;

	return hf_store_is_idle_at(s->env->store, s->session_row, s->turn_row,
		   &idle, &e) == 0 &&
	    idle;
}

static void
try_to_call(struct hf_shadow *s, int64_t now)
{
	const struct hf_conf_call *c = &s->target->call;
	struct hf_error e = { 0 };
	int rc;

	if (hf_target_is_disabled(s->env->shm, s->target) ||
	    !hf_target_shadow_take(s->env->shm, s->row, c, now)) {
		look_again(s);
		return;
	}
	rc = call(s, &e);
	if (rc < 0) {
		bool full = rc == HF_ELIMIT;

		hf_target_shadow_end(s->env->shm, s->row);
		end(s, full ? HF_C_shadows_skipped : HF_C_shadows_failed,
		    full ? "too_long" : "not_started");
		return;
	}
	s->until_us = now + (int64_t)c->total_ms * 1000;
	look_again(s);
}

static void
on_look(evutil_socket_t fd, short what, void *arg)
{
	struct hf_shadow *s = arg;
	int64_t now = hf_now_us();

	(void)fd;
	(void)what;
	if (s->call == NULL && now < s->until_us && !hf_target_is_quiet(s->row))
		look_again(s); /* nothing is read for nothing */
	else if (!is_wanted(s))
		end(s, HF_C_shadows_canceled, "next_turn");
	else if (s->call != NULL && !hf_target_is_quiet(s->row))
		end(s, HF_C_shadows_canceled, "gave_way");
	else if (now >= s->until_us)
		end(s,
		    s->call != NULL ? HF_C_shadows_failed :
				      HF_C_shadows_skipped,
		    s->call != NULL ? "timeout" : "no_room");
	else if (s->call == NULL)
		try_to_call(s, now);
	else
		look_again(s);
}

/* The first of the others, in the order in which they would be asked. */
static const struct hf_conf_target *
target_of(const struct hf_turn *t)
{
	for (unsigned k = 0; k < t->plan.n_target; k++) {
		unsigned i = t->plan.order[k];

		if (i != t->target &&
		    t->in.route->target[i]->call.warm == HF_WARM_PREFILL)
			return t->in.route->target[i];
	}
	return NULL;
}

void
turn_shadow(const struct hf_turn *t)
{
	const struct hf_conf_target *target = target_of(t);
	struct hf_turn_env *env = t->env;
	struct hf_target_row *row;
	struct hf_shadow *s;

	if (target == NULL || !t->durable || t->in.session.size == 0 ||
	    t->by_gateway || env->draining)
		return;
	turn_shadows_end(env, t->session_row);
	if (env->n_shadows >= MOST) {
		hf_count(env->shm, HF_C_shadows_skipped, 1);
		return;
	}
	row = hf_target_row(env->shm, target->name);
	if (row == NULL)
		return; /* nobody could count it */
	s = hf_xcalloc(1, sizeof(*s));
	s->env = env;
	s->session_row = t->session_row;
	s->turn_row = t->turn_row;
	s->session = t->session;
	s->target = target;
	s->row = row;
	s->params = hf_xstrndup(t->in.params.p, t->in.params.size);
	s->until_us = hf_now_us() + PATIENCE_US;
	s->ev = evtimer_new(env->base, on_look, s);
	HF_CHECK(s->ev != NULL);
	s->next = env->shadows;
	s->prevp = &env->shadows;
	if (s->next != NULL)
		s->next->prevp = &s->next;
	env->shadows = s;
	env->n_shadows++;
	look_again(s); /* behind what is to be told now */
}

/* --- giving way ------------------------------------------------------------
 */

void
turn_shadows_end(struct hf_turn_env *env, int64_t session_row)
{
	struct hf_shadow *s, *next;

	for (s = env->shadows; s != NULL; s = next) {
		next = s->next;
		if (s->session_row == session_row)
			end(s, HF_C_shadows_canceled, "next_turn");
	}
}

void
turn_shadows_give_way(
    struct hf_turn_env *env, const struct hf_conf_target *target)
{
	struct hf_shadow *s, *next;

	for (s = env->shadows; s != NULL; s = next) {
		next = s->next;
		if (s->target == target && s->call != NULL)
			end(s, HF_C_shadows_canceled, "gave_way");
	}
}

void
turn_shadows_cut(struct hf_turn_env *env)
{
	while (env->shadows != NULL)
		end(env->shadows, HF_C_shadows_canceled, "stopped");
}
