/*
 * The turn machine: its table, its beginning and its end.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#define B(s) HF_SM_BIT(TURN_##s)

static const struct hf_sm_state states[] = {
	[TURN_AUTHED] = { "authed",
	    B(ADOPTING) | B(RECONCILING) | B(REBUILDING) | B(FAILED) },
	[TURN_ADOPTING] = { "adopting",
	    B(RECONCILING) | B(QUEUED) | B(REBUILDING) | B(REPLAYING) |
		B(FAILED) },
	[TURN_RECONCILING] = { "reconciling",
	    B(BEGINNING) | B(REPLAYING) | B(FAILED) },
	[TURN_BEGINNING] = { "beginning",
	    B(REBUILDING) | B(QUEUED) | B(RECONCILING) | B(FAILED) },
	[TURN_QUEUED] = { "queued", B(RECONCILING) | B(FAILED) },
	[TURN_REBUILDING] = { "rebuilding",
	    B(CALLING) | B(REBUILDING) | B(WAITING) | B(FINISHING) |
		B(FAILED) },
	[TURN_CALLING] = { "calling",
	    B(STREAMING) | B(REBUILDING) | B(WAITING) | B(FINISHING) |
		B(FAILED) },
	[TURN_STREAMING] = { "streaming",
	    B(REBUILDING) | B(WAITING) | B(FINISHING) | B(FAILED) },
	[TURN_WAITING] = { "waiting",
	    B(REBUILDING) | B(FINISHING) | B(FAILED) },
	[TURN_FINISHING] = { "finishing", B(DONE) | B(FAILED) },
	[TURN_REPLAYING] = { "replaying", B(DONE) | B(FAILED) },
	[TURN_FAILED] = { "failed", B(DONE) },
	[TURN_DONE] = { "done", 0 },
};

#undef B

static void log_turn(const struct hf_turn *t);

/* Is it known which target the response names that another process began? */
static bool
knows_first(const struct hf_turn *t)
{
	const struct hf_turn_resumed *r = &t->in.resumed;

	return r->begun && r->first_target >= 0 &&
	    (unsigned)r->first_target < t->in.route->n_target;
}

unsigned
turn_first_target(const struct hf_turn *t)
{
	if (t->begun)
		return t->first_target;
	return knows_first(t) ? (unsigned)t->in.resumed.first_target :
				t->target;
}

/* The same in every chunk of a stream. */
static const char *
reported_model(const struct hf_turn *t)
{
	const struct hf_conf_route *r = t->in.route;
	const char *slash;

	if (r->reported_model == HF_REPORT_ROUTE)
		return r->name;
	if (t->replay_target != NULL && !knows_first(t)) {
		slash = strchr(t->replay_target, '/'); /* provider/model */
		return slash != NULL ? slash + 1 : t->replay_target;
	}
	return r->target[turn_first_target(t)]->model;
}

/* Did the response begin with the name of another target? */
static bool
is_switched(const struct hf_turn *t, const char *target)
{
	if (!t->begun)
		return false;
	if (t->in.resumed.begun)
		return !knows_first(t) ||
		    strcmp(t->in.route->target[t->first_target]->name,
			target) != 0;
	return t->first_target != t->target;
}

void
turn_get_info(const struct hf_turn *t, struct hf_turn_info *i)
{
	const char *target = t->replay_target != NULL ?
	    t->replay_target :
	    t->in.route->target[t->target]->name;

	*i = (struct hf_turn_info){
		.told = { .session_row = t->session_row,
		    .turn_row =
			t->replay_row != 0 ? t->replay_row : t->turn_row,
		    .again = t->replay_row != 0 },
		.session = t->session.s[0] != '\0' ? t->session.s : NULL,
		.turn = t->id.s,
		.model = reported_model(t),
		.target = target,
		.history = t->adopted ? NULL : hf_align_name(t->how),
		.attempts = t->n_attempt,
		.first_target = turn_first_target(t),
		.last_resort = t->by_gateway,
		.switched = is_switched(t, target),
		.repairs = t->in.repairs,
		.omitted_turns = t->fit.turns,
		.omitted_items = t->fit.items,
		.omitted_later = t->begun && t->fit.items != t->told_omitted,
		.created_s = t->created_us / 1000000,
	};
}

static void
turn_free(struct hf_turn *t)
{
	HF_CHECK(t->pending == 0 && t->attempt == NULL && !t->on_queue &&
	    t->hedge.state == HEDGE_NONE);
	event_free(t->timer);
	event_free(t->later);
	event_free(t->flush);
	if (t->beat != NULL)
		event_free(t->beat);
	turn_text_forget(t);
	hf_buf_free(&t->answer.text);
	hf_buf_free(&t->before);
	hf_buf_free(&t->answer.refusal);
	hf_buf_free(&t->held);
	hf_splice_free(&t->splice);
	free(t->answer.call);
	hf_buf_free(&t->message);
	hf_buf_free(&t->param);
	hf_buf_free(&t->code);
	t->env->n_turns--;
	hf_draft_free(&t->in.draft);
	hf_arena_free(t->arena);
	free(t->arena);
	free(t);
}

/* The end of the turn, or of the last thing that it waited for: it is freed
 * from the loop, never from inside a callback of something it owns. */
void
turn_release(struct hf_turn *t)
{
	struct timeval now = { 0, 0 };

	if (t->sm.cur == TURN_DONE && t->pending == 0)
		evtimer_add(t->later, &now);
}

void
turn_late(struct hf_turn *t)
{
	turn_cancel_attempt(t, HF_CLASS_NETWORK, "deadline");
	if (turn_last_resort(t))
		return;
	turn_fail(t, 504, "server_error", "deadline_exceeded",
	    "no answer within the deadline of %d ms after %u attempts",
	    t->in.route->deadline_ms, t->n_attempt);
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct hf_turn *t = arg;

	(void)fd;
	(void)what;
	if (t->sm.cur == TURN_FINISHING || t->sm.cur >= TURN_FAILED)
		return;
	if (t->sm.cur == TURN_BEGINNING || t->pending > 0) {
		/* A store job is under way: its completion looks again. */
		struct timeval soon = { 0, 20000 };
		evtimer_add(t->timer, &soon);
		return;
	}
	turn_late(t);
}

void
turn_again(struct hf_turn *t)
{
	t->resuming = false;
	turn_move(t, TURN_REBUILDING);
	turn_call(t);
}

static void
on_later(evutil_socket_t fd, short what, void *arg)
{
	struct hf_turn *t = arg;

	(void)fd;
	(void)what;
	switch (t->sm.cur) {
	case TURN_AUTHED:
		turn_note_id(t);
		if (t->in.resumes) {
			turn_adopt(t);
		} else if (t->gone) {
			turn_client_left(t);
		} else if (t->durable) {
			turn_move(t, TURN_RECONCILING);
			turn_reconcile(t);
		} else {
			turn_move(t, TURN_REBUILDING);
			turn_rebuild(t);
		}
		break;
	case TURN_WAITING:
		if (t->resuming)
			turn_again(t);
		else
			turn_wait_over(t);
		break;
	case TURN_FAILED:
		turn_close(t);
		break;
	case TURN_DONE:
		turn_free(t);
		break;
	default:
		HF_BUG("timer in a state that has none");
	}
}

static void
on_flush(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	turn_flush(arg);
}

/* A sign of life where the route wants one: some platforms give up on a stream
 * that says nothing for a while.  The response begins with it, so that a later
 * failure can only be told as an event. */
static void
on_beat(evutil_socket_t fd, short what, void *arg)
{
	struct hf_turn *t = arg;
	int64_t every = (int64_t)t->in.route->heartbeat_ms * 1000;
	int64_t next = t->told_us + every - hf_now_us();
	struct timeval tv;

	(void)fd;
	(void)what;
	if (t->surface == NULL || t->sm.cur >= TURN_REPLAYING)
		return;
	if (t->sm.cur <= TURN_ADOPTING) {
		/* What the response begins with is not known yet. */
		next = every;
	} else if (next <= 0) {
		turn_begin_response(t);
		t->told_us = hf_now_us();
		t->surface->beat(t->surface_arg);
		next = every;
	}
	tv.tv_sec = next / 1000000;
	tv.tv_usec = next % 1000000;
	evtimer_add(t->beat, &tv);
}

static bool
somebody_goes_on(const struct hf_conf_route *r)
{
	bool any = r->continuation != HF_CONTINUE_OFF;

	for (unsigned i = 0; i < r->n_target; i++)
		any = any || r->target[i]->call.prefill != HF_PREFILL_NONE;
	return any && r->n_target > 1;
}

/* A stream is held back to word ends only where another target could go on
 * with it; for speech, whenever the route says so. */
static enum hf_release_mode
turn_release_mode(const struct hf_turn_input *in)
{
	const struct hf_conf_route *r = in->route;

	if (!in->stream)
		return HF_RELEASE_TOKEN;
	if (r->release == HF_CONF_RELEASE_CLAUSE)
		return HF_RELEASE_CLAUSE;
	return r->release == HF_CONF_RELEASE_WORD && somebody_goes_on(r) ?
	    HF_RELEASE_WORD :
	    HF_RELEASE_TOKEN;
}

struct hf_turn *
hf_turn_start(struct hf_turn_env *env, const struct hf_turn_input *in,
    const struct hf_surface *surface, void *arg)
{
	struct hf_turn *t = hf_xcalloc(1, sizeof(*t));
	struct timeval tv;
	int64_t left;

	t->env = env;
	t->in = *in;
	t->arena = in->arena;
	t->surface = surface;
	t->surface_arg = arg;
	t->durable = hf_turn_is_durable(env->conf, in);
	t->created_us = hf_wall_us();
	t->wall_us = t->created_us - hf_now_us();
	t->deadline_us = in->received_us +
	    (int64_t)in->route->deadline_ms * 1000 - turn_reserve_us(in->route);
	if (in->resumes)
		t->id = in->resumed.turn;
	else
		hf_id_make(&t->id, "turn_");
	hf_buf_init(&t->answer.text, HF_BUF_NOCAP);
	hf_buf_init(&t->answer.refusal, HF_BUF_NOCAP);
	hf_buf_init(&t->held, HF_BUF_NOCAP);
	t->release = turn_release_mode(in);
	hf_buf_init(&t->message, 4096);
	hf_buf_init(&t->param, 256);
	hf_buf_init(&t->code, 256);
	hf_sm_init(&t->sm, states, hf_countof(states), TURN_AUTHED);
	hf_plan_init(&t->plan, in->route, t->deadline_us);
	t->plan.opens = turn_opens_us;
	t->plan.is_disabled = turn_is_disabled;
	t->plan.paced = turn_paced_us;
	t->plan.opens_arg = t;
	t->target = hf_plan_first(&t->plan, hf_now_us()).target;
	t->timer = evtimer_new(env->base, on_deadline, t);
	t->later = evtimer_new(env->base, on_later, t);
	t->flush = evtimer_new(env->base, on_flush, t);
	HF_CHECK(t->timer != NULL && t->later != NULL && t->flush != NULL);
	if (in->stream && in->route->heartbeat_ms > 0) {
		t->beat = evtimer_new(env->base, on_beat, t);
		HF_CHECK(t->beat != NULL);
		t->told_us = in->received_us;
		on_beat(-1, 0, t);
	}
	env->n_turns++;
	hf_count(env->shm, HF_C_turns_in_flight, 1);
	if (!t->durable)
		hf_count(env->shm, HF_C_turns_stateless, 1);
	left = t->deadline_us - hf_now_us();
	if (left < 0)
		left = 0;
	tv.tv_sec = left / 1000000;
	tv.tv_usec = left % 1000000;
	evtimer_add(t->timer, &tv);
	return t;
}

void
hf_turn_go(struct hf_turn *t)
{
	on_later(-1, 0, t);
}

void
turn_move(struct hf_turn *t, enum turn_state to)
{
	hf_sm_move(&t->sm, to);
	if (to != TURN_WAITING)
		turn_waits_no_more(t);
	turn_crowd_leave(t);
	if (to != TURN_DONE)
		return;
	hf_target_unclaim(&t->claim);
	evtimer_del(t->timer);
	evtimer_del(t->later);
	evtimer_del(t->flush);
	if (t->beat != NULL)
		evtimer_del(t->beat);
	t->total_us = hf_now_us() - t->in.received_us;
	hf_count(t->env->shm, HF_C_turns_in_flight, -1);
	log_turn(t);
	turn_release(t);
}

static void
count_end(const struct hf_turn *t)
{
	enum hf_counter c = HF_C_turns_failed;

	if (t->final == HF_TURN_COMPLETE && t->replay_row != 0)
		c = HF_C_turns_replayed;
	else if (t->final == HF_TURN_COMPLETE)
		c = HF_C_turns_complete;
	else if (t->final == HF_TURN_INCOMPLETE)
		c = HF_C_turns_incomplete;
	else if (t->final == HF_TURN_CANCELED)
		c = HF_C_turns_canceled;
	hf_count(t->env->shm, c, 1);
	if (t->final != HF_TURN_COMPLETE || t->by_gateway)
		return;
	if (t->target != t->plan.order[0])
		hf_count(t->env->shm, HF_C_failovers, 1);
	turn_count_return(t);
}

static void
log_turn(const struct hf_turn *t)
{
	static const char *const name[] = {
		[HF_TURN_COMPLETE] = "complete",
		[HF_TURN_INCOMPLETE] = "incomplete",
		[HF_TURN_FAILED] = "failed",
		[HF_TURN_CANCELED] = "canceled",
	};

	count_end(t);
	hf_log(HF_LOG_INFO,
	    "turn: done session=%s turn=%s seq=%lld tenant=%s "
	    "route=%s target=%s attempts=%u history=%s state=%s status=%d "
	    "reason=%s first_token_ms=%lld total_ms=%lld bytes=%zu stream=%d",
	    t->session.s[0] != '\0' ? t->session.s : "-", t->id.s,
	    (long long)t->seq, t->in.tenant, t->in.route->name,
	    t->in.route->target[t->target]->name, t->n_attempt,
	    t->adopted ? "-" : hf_align_name(t->how), name[t->final],
	    t->final == HF_TURN_COMPLETE ? 200 : t->failure.status,
	    t->final == HF_TURN_COMPLETE ? hf_finish_name(t->answer.finish) :
		t->failure.code != NULL	 ? t->failure.code :
					   "client_gone",
	    t->first_token_us > 0 ? (long long)t->first_token_us / 1000 : -1LL,
	    (long long)t->total_us / 1000, turn_text_size(t), t->in.stream);
}

void
turn_fail(struct hf_turn *t, int status, const char *type, const char *code,
    const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	hf_buf_reset(&t->message);
	hf_buf_puts(&t->message, text);
	t->failure.status = status;
	t->failure.type = type;
	t->failure.code = code;
	t->failure.final = true;
	if (t->failure.retry_after_ms == 0)
		t->failure.retry_after_ms = -1;
	t->final = t->gone ? HF_TURN_CANCELED :
	    t->started	   ? HF_TURN_INCOMPLETE :
			     HF_TURN_FAILED;
	turn_leave_queue(t);
	evtimer_del(t->later); /* it may have been waiting */
	turn_move(t, TURN_FAILED);
	turn_close(t);
}

void
turn_fail_store(struct hf_turn *t, int rc, const struct hf_error *e)
{
	static const struct {
		int rc, status;
		const char *type, *code, *text;
	} row[] = {
		{ HF_EFULL, 507, "server_error", "storage_full",
		    "the disk of the gateway is full; nothing was stored" },
		{ HF_EREADONLY, 503, "server_error", "storage_read_only",
		    "the storage of the gateway is read-only" },
		{ HF_ECORRUPT, 500, "server_error", "history_corrupt",
		    "the stored history of this session does not verify" },
		{ HF_EBUSY, 503, "server_error", "storage_busy",
		    "the storage of the gateway is busy" },
		{ HF_ETIMEOUT, 503, "server_error", "storage_busy",
		    "the storage of the gateway is busy" },
		{ HF_EFENCED, 409, "conflict_error", "lease_lost",
		    "another process took this session over" },
		{ HF_ELIMIT, 429, "rate_limit_error", "session_queue_full",
		    "too many turns wait for this session" },
		{ HF_ENOTFOUND, 404, "invalid_request_error",
		    "session_not_found", "no such session" },
		{ HF_ECONFLICT, 409, "conflict_error", "session_busy",
		    "the session kept changing; try again" },
		{ 0, 503, "server_error", "storage_error",
		    "the storage of the gateway failed" },
	};
	size_t i = 0;

	while (row[i].rc != 0 && row[i].rc != rc)
		i++;
	hf_log(i < 2 || row[i].rc == 0 || rc == HF_ECORRUPT ? HF_LOG_ERROR :
							      HF_LOG_WARN,
	    "turn: store_failed session=%s turn=%s state=%s "
	    "code=%s detail=\"%s\"",
	    t->session.s, t->id.s, hf_sm_name(&t->sm), hf_err_name(rc),
	    e != NULL ? e->text : "");
	if (hf_err_retryable(rc) || rc == HF_ELIMIT)
		t->failure.retry_after_ms = 1000;
	t->error_class = "gateway";
	turn_fail(
	    t, row[i].status, row[i].type, row[i].code, "%s", row[i].text);
}

void
turn_note_id(struct hf_turn *t)
{
	if (t->noted || t->surface == NULL)
		return;
	t->noted = true;
	t->surface->turn(t->surface_arg, &t->id);
}

/* Nobody waits for what a provider still says.  What there is of an answer is
 * kept, though not all of it was delivered. */
static void
turn_hang_up(struct hf_turn *t)
{
	turn_pass_all(t);
	turn_cancel_attempt(t, HF_CLASS_NONE, "client_gone");
}

/* Stop for a client that left. */
void
turn_client_left(struct hf_turn *t)
{
	turn_hang_up(t);
	turn_fail(t, 499, "canceled", "client_gone", "the client left");
}

void
hf_turn_client_gone(struct hf_turn *t, const struct hf_delivered *d)
{
	t->surface = NULL;
	t->gone_us = hf_now_us() + t->wall_us;
	t->given = *d;
	/* The answer is made and kept all the same, where the route says so;
	 * a retry is told it. */
	if (t->in.route->on_disconnect == HF_DISCONNECT_FINISH && t->durable) {
		turn_note_gone(t);
		turn_resume(t); /* nobody is slow any more */
		return;
	}
	t->gone = true;
	if (t->sm.cur == TURN_AUTHED || t->sm.cur >= TURN_FINISHING)
		return; /* an answer that is whole is stored as such */
	/* What is under way in the store ends first: turn_settled().  The
	 * provider is not kept waiting for it. */
	if (t->pending == 0)
		turn_client_left(t);
	else
		turn_hang_up(t);
}

bool
turn_settled(struct hf_turn *t)
{
	t->pending--;
	if (t->sm.cur == TURN_DONE) {
		turn_release(t);
		return true;
	}
	if (t->gone && t->pending == 0 && t->sm.cur < TURN_FINISHING) {
		turn_client_left(t);
		return true;
	}
	return false;
}

void
hf_turn_drained(struct hf_turn *t)
{
	turn_resume(t);
}
