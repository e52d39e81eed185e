/*
 * Retries: the same request is one turn and one bill.  With an Idempotency-Key
 * the same key joins the turn that runs for it or is told its answer again.
 * Without one, the request that the session's head turn answered is told the
 * answer again if its end never reached the client or the SDK marks it as a
 * retry, and waits for it if it still runs; else it is a new turn, because
 * "yes" may be said twice.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"

/* --- telling an answer again ---------------------------------------------- */

static int
take_answer(
    struct hf_turn *t, const struct hf_stored_answer *s, struct hf_error *e)
{
	t->by_gateway = s->n_item > 0 && s->item[0].origin == HF_ORIGIN_GATEWAY;
	t->noted = t->noted && strcmp(t->id.s, s->turn.s) == 0;
	t->id = s->turn;
	t->session = s->session;
	t->seq = s->seq;
	t->created_us = s->created_us;
	t->n_attempt = s->attempts;
	t->replay_target = s->target.p;
	t->fit.turns = (unsigned)s->omitted_turns;
	t->fit.items = (unsigned)s->omitted_items;
	t->how = HF_ALIGN_REPLAY;
	return answer_take(&t->answer, s, t->arena, e);
}

/* For a stream client: what it would have got bit by bit, at once. */
static void
tell_events(struct hf_turn *t)
{
	const struct hf_answer *an = &t->answer;
	struct hf_event ev = { .type = HF_EV_TEXT };

	turn_begin_response(t);
	ev.text =
	    (struct hf_str){ an->text.data + t->told, an->text.size - t->told };
	if (ev.text.size > 0)
		t->surface->event(t->surface_arg, &ev);
	turn_tell_rest(t);
}

static void
tell(struct hf_turn *t)
{
	struct hf_turn_info info;

	turn_note_id(t);
	t->final = t->surface != NULL ? HF_TURN_COMPLETE : HF_TURN_CANCELED;
	if (t->surface != NULL && t->in.stream)
		tell_events(t);
	turn_get_info(t, &info);
	if (t->surface != NULL)
		t->surface->finish(t->surface_arg, &info, &t->answer);
	t->surface = NULL;
	turn_move(t, TURN_DONE);
}

static void
on_left_queue(void *arg, int rc, const struct hf_error *e)
{
	struct hf_turn *t = arg;

	if (turn_settled(t))
		return;
	if (rc < 0)
		turn_fail_store(t, rc, e);
	else
		tell(t);
}

/* Tell the stored answer.  A row of our own that waited behind that turn goes
 * first: it holds the lease by now. */
static int
replay(struct hf_turn *t, const struct hf_stored_answer *s, int64_t session_row,
    int64_t row, struct hf_error *e)
{
	int rc = take_answer(t, s, e);

	if (rc == 0 && t->turn_row != 0)
		rc = hf_store_cancel_queued(
		    t->env->store, t->turn_row, on_left_queue, t, e);
	if (rc < 0)
		return rc;
	t->session_row = session_row;
	if (t->turn_row == 0) {
		turn_tell_answer(t, row);
		return 1;
	}
	t->replay_row = row;
	turn_move(t, TURN_REPLAYING);
	t->pending++;
	return 1;
}

int
turn_load_answer(
    struct hf_turn *t, int64_t session_row, int64_t row, struct hf_error *e)
{
	struct hf_stored_answer s;
	int rc =
	    hf_store_answer(t->env->store, session_row, row, t->arena, &s, e);

	if (rc == 0 && s.state != HF_TURN_COMPLETE)
		return hf_fail(e, HF_ECORRUPT, "turn row %lld: not complete",
		    (long long)row);
	return rc < 0 ? rc : take_answer(t, &s, e);
}

void
turn_tell_answer(struct hf_turn *t, int64_t row)
{
	t->replay_row = row;
	turn_move(t, TURN_REPLAYING);
	tell(t);
}

/* If turn 'row' is complete, tell its answer. */
static int
replay_if_complete(
    struct hf_turn *t, int64_t session_row, int64_t row, struct hf_error *e)
{
	struct hf_stored_answer s;
	int rc =
	    hf_store_answer(t->env->store, session_row, row, t->arena, &s, e);

	if (rc < 0 || s.state != HF_TURN_COMPLETE)
		return rc;
	return replay(t, &s, session_row, row, e);
}

/* --- recognizing ------------------------------------------------------------
 */

static int
check_key(struct hf_turn *t, struct hf_error *e)
{
	struct hf_earlier was;
	struct hf_str id;
	int rc = hf_store_earlier(
	    t->env->store, t->idem, t->request_digest, &was, e);

	if (rc < 0 || !was.found)
		return rc;
	if (!was.same) {
		turn_fail(t, 409, "invalid_request_error",
		    "idempotency_key_reused",
		    "this Idempotency-Key was used "
		    "for another request");
		return 1;
	}
	if (was.state == HF_TURN_COMPLETE)
		return replay_if_complete(t, was.session_row, was.turn_row, e);
	if (t->in.session.size > 0)
		return 0;
	/* A request without a session has one by its key. */
	id = hf_arena_dup(t->arena, hf_str(was.session.s));
	if (id.p == NULL)
		return hf_fail(e, HF_ENOMEM, "no memory for a session's id");
	t->in.session = id;
	return 0;
}

void
turn_digest(struct hf_turn *t)
{
	struct hf_store *st = t->env->store;
	const struct hf_turn_input *in = &t->in;

	if (t->digested || in->request.size == 0)
		return;
	t->digested = true;
	hf_store_request_digest(
	    st, in->tenant, in->session, in->request, t->request_digest);
	t->has_idem = in->idempotency_key.size > 0;
	if (t->has_idem)
		hf_store_request_digest(st, in->tenant, HF_STR("key"),
		    in->idempotency_key, t->idem);
}

int
turn_check_earlier(struct hf_turn *t, struct hf_error *e)
{
	int64_t row = t->joins_row;

	turn_digest(t);
	t->joins_row = 0;
	if (row != 0) {
		int rc = replay_if_complete(t, t->session_row, row, e);

		if (rc != 0)
			return rc;
	}
	return t->has_idem ? check_key(t, e) : 0;
}

int
turn_check_head(struct hf_turn *t, struct hf_error *e)
{
	const struct hf_head *h = &t->head;

	if (t->has_idem || !h->found || h->head_turn_row == 0 ||
	    h->head_state != HF_TURN_COMPLETE || !h->has_request ||
	    memcmp(h->head_request, t->request_digest, HF_DIGEST_SIZE) != 0)
		return 0;
	if (h->head_delivered && !t->in.sdk_retry)
		return 0;
	return replay_if_complete(t, h->session_row, h->head_turn_row, e);
}

/* --- what was handed over ----------------------------------------------------
 */

static void
flush_sent(struct hf_turn_env *env)
{
	static struct hf_log_limit limit;
	struct hf_error e = { 0 };

	if (env->n_sent > 0 &&
	    hf_store_delivered(
		env->store, env->sent, env->n_sent, NULL, NULL, &e) < 0)
		hf_log_limited(&limit, 1000, HF_LOG_WARN,
		    "turn: deliveries_not_noted n=%u detail=\"%s\"",
		    env->n_sent, e.text);
	env->n_sent = 0;
}

static void
on_sent_due(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	flush_sent(arg);
}

struct missed {
	struct hf_shm *shm; /* outlives the turns' world */
	int64_t turn_row;
};

static void
on_missed_noted(void *arg, int rc, const struct hf_error *e)
{
	struct missed *m = arg;

	/* If that failed, the list in shared memory goes on saying so. */
	(void)e;
	if (rc == 0)
		hf_shm_telling_del(m->shm, m->turn_row);
	free(m);
}

static void
log_unnoted(const struct hf_told *told, const struct hf_error *e)
{
	static struct hf_log_limit limit;

	hf_log_limited(&limit, 1000, HF_LOG_WARN,
	    "turn: heard_not_noted turn_row=%lld detail=\"%s\"",
	    (long long)told->turn_row, e->text);
}

/* The client left before the end. */
static void
note_missed(struct hf_turn_env *env, const struct hf_told *told,
    const struct hf_delivered *d)
{
	struct missed *m = hf_xcalloc(1, sizeof(*m));
	struct hf_error e = { 0 };

	m->shm = env->shm;
	m->turn_row = told->turn_row;
	hf_shm_telling_add(env->shm, told->turn_row);
	if (turn_report_heard(env, told, false, d, on_missed_noted, m, &e) <
	    0) {
		log_unnoted(told, &e);
		free(m);
	}
}

/* Told again, and heard to its end: whatever was noted of the first time, or is
 * being noted now, all of it counts. */
static void
note_whole(struct hf_turn_env *env, const struct hf_told *told)
{
	struct hf_error e = { 0 };

	if (turn_report_heard(env, told, true, NULL, NULL, NULL, &e) < 0)
		log_unnoted(told, &e);
}

void
hf_turn_sent(struct hf_turn_env *env, const struct hf_told *told, bool sent,
    const struct hf_delivered *d)
{
	struct timeval soon = { 0, 20000 };

	if (!sent) {
		note_missed(env, told, d);
		return;
	}
	if (told->again) {
		note_whole(env, told);
		return;
	}
	if (env->sent_ev == NULL) {
		env->sent_ev = evtimer_new(env->base, on_sent_due, env);
		HF_CHECK(env->sent_ev != NULL);
	}
	env->sent[env->n_sent++] = told->turn_row;
	if (env->n_sent == hf_countof(env->sent))
		flush_sent(env);
	else if (!evtimer_pending(env->sent_ev, NULL))
		evtimer_add(env->sent_ev, &soon);
}

void
hf_turn_env_free(struct hf_turn_env *env)
{
	turn_shadows_cut(env);
	flush_sent(env);
	if (env->sent_ev != NULL)
		event_free(env->sent_ev);
	attempts_cut(env);
	if (env->crowd_ev != NULL)
		event_free(env->crowd_ev);
}
