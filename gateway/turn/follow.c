/*
 * Following a turn: a client whose own connection broke is told its answer
 * from where it stands, while the turn runs, in whatever process, and after.
 * What is told comes from disk: the parts of a stream under way, then the
 * answer.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/follow.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/turn/turn_internal.h"

/* Parts come every flush_ms; more often than this nobody needs them. */
#define LOOK_MIN_MS 10
#define LOOK_MAX_MS 50
#define LOOK_QUEUED_MS 200
#define PIECE ((size_t)64 * 1024) /* read at a time, and left unsent */
#define BEAT_MS 15000		  /* where the route asks for no other */

struct hf_follow {
	struct hf_turn_env *env;
	const struct hf_surface *surface;
	void *arg;
	struct hf_arena arena; /* owns what 's' points at */
	struct hf_stored_answer s;
	struct hf_answer answer;
	int64_t session_row, turn_row;
	uint64_t at;   /* bytes of text that the client has */
	uint64_t seen; /* bytes that were read */
	int64_t part;  /* the next one */
	bool begun;
	int64_t told_omitted; /* items, in the headers */
	int64_t told_us;
	struct event *timer;
};

static void
free_answer(struct hf_follow *f)
{
	hf_buf_free(&f->answer.text);
	hf_buf_free(&f->answer.refusal);
	free(f->answer.call);
	f->answer = (struct hf_answer){ 0 };
}

void
hf_follow_free(struct hf_follow *f)
{
	event_free(f->timer);
	free_answer(f);
	hf_arena_free(&f->arena);
	free(f);
}

static const char *
model_of(const struct hf_follow *f)
{
	const struct hf_conf_route *r = hf_conf_route(f->env->conf, f->s.route);
	const char *slash = strchr(f->s.target.p, '/');

	return r != NULL && r->reported_model != HF_REPORT_ROUTE &&
		slash != NULL ?
	    slash + 1 :
	    f->s.route.p;
}

static void
fill_info(const struct hf_follow *f, struct hf_turn_info *i)
{
	*i = (struct hf_turn_info){
		.told = { .session_row = f->session_row,
		    .turn_row = f->turn_row,
		    .again = true },
		.session = f->s.session.s,
		.turn = f->s.turn.s,
		.model = model_of(f),
		.target = f->s.target.p,
		.attempts = f->s.attempts,
		.last_resort =
		    f->s.n_item > 0 && f->s.item[0].origin == HF_ORIGIN_GATEWAY,
		.omitted_turns = (unsigned)f->s.omitted_turns,
		.omitted_items = (unsigned)f->s.omitted_items,
		.omitted_later =
		    f->begun && f->s.omitted_items != f->told_omitted,
		.created_s = f->s.created_us / 1000000,
	};
}

/* --- telling ---------------------------------------------------------------
 */

static void
begin(struct hf_follow *f)
{
	struct hf_turn_info info;

	if (f->begun)
		return;
	f->begun = true;
	f->told_us = hf_now_us();
	f->told_omitted = f->s.omitted_items;
	fill_info(f, &info);
	f->surface->start(f->arg, &info);
}

/* The last thing that it does: 'f' is gone. */
static void
fail_as(struct hf_follow *f, struct hf_turn_failure *how, const char *message)
{
	struct hf_turn_info info;

	fill_info(f, &info);
	how->message = hf_str(message);
	f->surface->fail(f->arg, &info, how);
	hf_follow_free(f);
}

static void
fail(struct hf_follow *f, int status, const char *type, const char *code,
    const char *param, const char *message)
{
	struct hf_turn_failure how = { .status = status,
		.type = type,
		.code = code,
		.param = hf_str(param),
		.retry_after_ms = -1,
		.final = status < 500 };

	fail_as(f, &how, message);
}

static void
fail_store(struct hf_follow *f, const struct hf_error *e)
{
	hf_log(HF_LOG_WARN,
	    "turn: follow_failed session=%s turn=%s detail=\"%s\"",
	    f->s.session.s, f->s.turn.s, e->text);
	fail(f, 503, "server_error", "storage_error", NULL,
	    "the storage of the gateway failed");
}

/* Text behind what was seen: the client gets what it has not.  False: 'f' is
 * gone. */
static bool
tell_text(struct hf_follow *f, struct hf_str text)
{
	struct hf_event ev = { .type = HF_EV_TEXT };
	uint64_t seen = f->seen;

	f->seen += text.size;
	if (f->seen <= f->at)
		return true;
	if (f->at > seen) {
		text.p += f->at - seen;
		text.size -= (size_t)(f->at - seen);
	}
	if (((unsigned char)text.p[0] & 0xc0) == 0x80) {
		fail(f, 400, "invalid_request_error", "invalid_position",
		    "after", "after: in the middle of a character");
		return false;
	}
	begin(f);
	f->at = f->seen;
	f->told_us = hf_now_us();
	ev.text = text;
	f->surface->event(f->arg, &ev);
	return true;
}

/* The turn has ended: what is left, and how. */
static void
tell_end(struct hf_follow *f)
{
	struct hf_turn_failure how;
	struct hf_turn_info info;
	struct hf_error e = { 0 };
	int rc;

	hf_arena_free(&f->arena);
	hf_arena_init(&f->arena, 0);
	rc = hf_store_answer(
	    f->env->store, f->session_row, f->turn_row, &f->arena, &f->s, &e);
	hf_buf_init(&f->answer.text, HF_BUF_NOCAP);
	hf_buf_init(&f->answer.refusal, HF_BUF_NOCAP);
	if (rc == 0)
		rc = answer_take(&f->answer, &f->s, &f->arena, &e);
	if (rc < 0) {
		fail_store(f, &e);
		return;
	}
	/* Of one that was interrupted the client may have more than the disk.
	 */
	if (f->s.state == HF_TURN_COMPLETE && f->at > f->answer.text.size) {
		fail(f, 400, "invalid_request_error", "invalid_position",
		    "after", "after: the answer has not so many bytes of text");
		return;
	}
	f->seen = 0;
	if (!tell_text(f, hf_buf_str(&f->answer.text)))
		return;
	if (f->s.state != HF_TURN_COMPLETE) {
		answer_failure(f->s.state, f->s.status, &how);
		fail_as(f, &how, "this turn ended without a whole answer");
		return;
	}
	begin(f);
	answer_tell_rest(&f->answer, f->surface, f->arg);
	fill_info(f, &info);
	f->surface->finish(f->arg, &info, &f->answer);
	hf_follow_free(f);
}

/* --- looking ----------------------------------------------------------------
 */

static void
again(struct hf_follow *f, enum hf_turn_state state)
{
	int64_t ms = f->env->conf->gateway.flush_ms / 2;
	struct timeval tv;

	if (ms < LOOK_MIN_MS)
		ms = LOOK_MIN_MS;
	if (ms > LOOK_MAX_MS)
		ms = LOOK_MAX_MS;
	if (state == HF_TURN_QUEUED)
		ms = LOOK_QUEUED_MS;
	tv = (struct timeval){ ms / 1000, ms % 1000 * 1000 };
	evtimer_add(f->timer, &tv);
}

static void
beat(struct hf_follow *f)
{
	const struct hf_conf_route *r = hf_conf_route(f->env->conf, f->s.route);
	int64_t ms =
	    r != NULL && r->heartbeat_ms > 0 ? r->heartbeat_ms : BEAT_MS;

	if (hf_now_us() - f->told_us < ms * 1000)
		return;
	f->told_us = hf_now_us();
	f->surface->beat(f->arg);
}

/* 1: it has ended.  0: not yet.  Negative: failed. */
static int
look(struct hf_follow *f, enum hf_turn_state *state, struct hf_buf *text,
    struct hf_error *e)
{
	int rc = hf_store_follow(f->env->store, f->session_row, f->turn_row,
	    &f->part, PIECE, state, text, e);

	return rc < 0 ? rc : *state >= HF_TURN_COMPLETE;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct hf_follow *f = arg;
	enum hf_turn_state state = HF_TURN_OPEN;
	struct hf_error e = { 0 };
	struct hf_buf text;
	bool here = true;
	int rc;

	(void)fd;
	(void)what;
	if (f->begun && f->surface->backlog(f->arg) > PIECE) {
		again(f, state); /* it reads slowly */
		return;
	}
	hf_buf_init(&text, HF_BUF_NOCAP);
	rc = look(f, &state, &text, &e);
	if (rc == 0 && text.size > 0)
		here = tell_text(f, hf_buf_str(&text));
	hf_buf_free(&text);
	if (!here)
		return;
	if (rc < 0) {
		fail_store(f, &e);
	} else if (rc > 0) {
		tell_end(f);
	} else {
		begin(f);
		beat(f);
		again(f, state);
	}
}

int
hf_follow_start(struct hf_follow **out, struct hf_turn_env *env,
    const struct hf_follow_input *in, const struct hf_surface *surface,
    void *arg, struct hf_error *e)
{
	struct hf_follow *f;
	struct hf_head head;
	struct timeval now = { 0, 0 };
	int64_t turn_row;
	int rc = hf_store_head(env->store, in->tenant, in->session, &head, e);

	*out = NULL;
	if (rc == 0 && !head.found)
		rc = hf_fail(e, HF_ENOTFOUND, "no such session");
	if (rc == 0)
		rc = hf_store_find_turn(
		    env->store, head.session_row, in->turn, &turn_row, e);
	if (rc < 0)
		return rc;
	f = hf_xcalloc(1, sizeof(*f));
	f->env = env;
	f->surface = surface;
	f->arg = arg;
	f->session_row = head.session_row;
	f->turn_row = turn_row;
	f->at = in->after;
	hf_arena_init(&f->arena, 0);
	f->timer = evtimer_new(env->base, on_timer, f);
	HF_CHECK(f->timer != NULL);
	rc = hf_store_answer(
	    env->store, f->session_row, f->turn_row, &f->arena, &f->s, e);
	if (rc < 0) {
		hf_follow_free(f);
		return rc;
	}
	evtimer_add(f->timer, &now);
	*out = f;
	return 0;
}
