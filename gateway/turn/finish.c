/*
 * The end of a turn: T2, the commit after which the client may hear that the
 * answer is whole, and the closing of turns that got none.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/log.h"

/* --- what goes to disk --------------------------------------------------- */

static int
collect_output(struct hf_turn *t, struct hf_error *e)
{
	struct hf_answer *an = &t->answer;
	int rc;

	hf_draft_init(&t->output, t->arena);
	/* The text of a long answer is made an item by the store. */
	if (t->text_base == 0 &&
	    (an->text.size > 0 || an->refusal.size > 0 || an->n_call == 0)) {
		rc = hf_draft_answer_text(&t->output, hf_buf_str(&an->text),
		    hf_buf_str(&an->refusal), e);
		if (rc < 0)
			return rc;
	}
	for (unsigned i = 0; i < an->n_call; i++) {
		rc = hf_draft_answer_call(&t->output, an->call[i].id,
		    an->call[i].name, an->call[i].arguments, e);
		if (rc < 0)
			return rc;
	}
	for (unsigned i = 0; i < t->output.n && t->by_gateway; i++)
		t->output.item[i].origin = HF_ORIGIN_GATEWAY;
	hf_draft_digest(&t->output, &t->head.key);
	return turn_mark_heard(t, e);
}

/* The beginning of a long text is in parts on disk, the end in memory. */
static void
fill_long(const struct hf_turn *t, struct hf_finish *f)
{
	const struct hf_buf *text = &t->answer.text;
	size_t from = t->stored - t->text_base;

	f->from_parts = true;
	f->n_part = t->n_stored;
	f->text_size = turn_text_size(t);
	f->text_rest = (struct hf_str){ text->data + from, text->size - from };
	f->refusal = hf_buf_str(&t->answer.refusal);
}

static void
fill_finish(struct hf_turn *t, struct hf_finish *f)
{
	f->session_row = t->session_row;
	f->turn_row = t->turn_row;
	f->fence = t->fence;
	f->state = t->final;
	f->item = t->output.item;
	f->n_item = t->output.n;
	turn_fill_heard(t, f);
	f->tokens_in = t->answer.tokens_in;
	f->tokens_out = t->answer.tokens_out;
	f->tokens_cached = t->answer.tokens_cached;
	f->tokens_reasoning = t->answer.tokens_reasoning;
	if (t->open_n == 0)
		return;
	f->attempt = t->last;
	if (t->last.n != (int)t->open_n)
		f->attempt = (struct hf_attempt_end){ .n = (int)t->open_n,
			.cls = "gateway",
			.reason = "not_called",
			.tokens_in = -1,
			.tokens_out = -1 };
}

/* --- a whole answer ------------------------------------------------------ */

void
turn_tell_rest(struct hf_turn *t)
{
	if (t->surface == NULL)
		return;
	turn_begin_response(t);
	answer_tell_rest(&t->answer, t->surface, t->surface_arg);
}

/* The last resort comes whole: it is not said before it is on disk. */
static void
tell_last_resort(struct hf_turn *t)
{
	struct hf_event ev = { .type = HF_EV_TEXT };

	if (!t->by_gateway || t->surface == NULL)
		return;
	turn_begin_response(t);
	ev.text = hf_buf_str(&t->answer.text);
	if (ev.text.size > 0)
		t->surface->event(t->surface_arg, &ev);
}

static void
tell_finish(struct hf_turn *t)
{
	struct hf_turn_info info;

	if (t->in.stream)
		tell_last_resort(t);
	if (t->in.stream)
		turn_tell_rest(t);
	turn_get_info(t, &info);
	/* From the moment that the end is written, it counts as told, unless
	 * the surface says that it was not taken. */
	if (t->durable)
		hf_shm_telling_del(t->env->shm, t->turn_row);
	if (t->surface != NULL)
		t->surface->finish(t->surface_arg, &info, &t->answer);
	else if (t->durable)
		hf_turn_sent(t->env, &info.told, false, &t->given);
	t->surface = NULL;
	turn_shadow(t);
	turn_move(t, TURN_DONE);
}

static void
on_finished(void *arg, int rc, const struct hf_error *e)
{
	struct hf_turn *t = arg;

	if (turn_settled(t))
		return;
	if (rc < 0) {
		hf_shm_telling_del(t->env->shm, t->turn_row);
		turn_fail_store(t, rc, e);
		return;
	}
	(void)hf_fault("turn.t2.done");
	tell_finish(t);
}

/* Calls present means tool_calls, none means not, whatever was said. */
static void
settle_finish_reason(struct hf_answer *an)
{
	if (an->n_call > 0 && an->finish == HF_FINISH_STOP)
		an->finish = HF_FINISH_TOOL_CALLS;
	else if (an->n_call == 0 && an->finish == HF_FINISH_TOOL_CALLS)
		an->finish = HF_FINISH_STOP;
}

void
turn_finish(struct hf_turn *t)
{
	struct hf_finish f = { 0 };
	struct hf_error e = { 0 };
	int rc;

	settle_finish_reason(&t->answer);
	t->final = HF_TURN_COMPLETE;
	turn_move(t, TURN_FINISHING);
	if (!t->durable) {
		tell_finish(t);
		return;
	}
	rc = collect_output(t, &e);
	if (rc == 0) {
		if (t->text_base > 0)
			fill_long(t, &f);
		fill_finish(t, &f);
		f.finish_reason = hf_finish_name(t->answer.finish);
		f.status = 200;
		f.close_rest = t->n_unclosed > 0;
		rc = hf_store_finish(t->env->store, &f, on_finished, t, &e);
	}
	if (rc < 0) {
		turn_fail_store(t, rc, &e);
		return;
	}
	t->pending++;
	hf_shm_telling_add(t->env->shm, t->turn_row);
}

/* --- no whole answer ------------------------------------------------------ */

static void
tell_fail(struct hf_turn *t)
{
	struct hf_turn_info info;

	if (t->surface == NULL)
		return;
	/* What another process began goes on as what it is. */
	if (t->in.stream && t->in.resumed.begun)
		turn_begin_response(t);
	turn_get_info(t, &info);
	t->failure.message = hf_buf_str(&t->message);
	t->failure.param = hf_buf_str(&t->param);
	t->surface->fail(t->surface_arg, &info, &t->failure);
	t->surface = NULL;
}

static void
on_closed(void *arg, int rc, const struct hf_error *e)
{
	struct hf_turn *t = arg;
	static struct hf_log_limit limit;

	if (turn_settled(t))
		return;
	tell_fail(t);
	if (rc == 0 || rc == HF_EFENCED || rc == HF_ENOTFOUND) {
		turn_move(t, TURN_DONE);
		return;
	}
	/* The lease is still ours on disk: no later turn of this session can
	 * run before it is given back, so try for as long as it takes. */
	hf_log_limited(&limit, 1000, HF_LOG_ERROR,
	    "turn: not_closed "
	    "session=%s turn=%s tries=%u code=%s detail=\"%s\"",
	    t->session.s, t->id.s, t->close_tries, hf_err_name(rc),
	    e != NULL ? e->text : "");
	if (t->close_tries < 6)
		t->close_tries++;
	evtimer_add(
	    t->later, &(struct timeval){ .tv_usec = 10000L << t->close_tries });
}

static int
submit_close(struct hf_turn *t, struct hf_error *e)
{
	struct hf_finish f = { 0 };
	int rc;

	if (!t->opened) /* waits, or was granted and never began */
		return hf_store_cancel_queued(
		    t->env->store, t->turn_row, on_closed, t, e);
	t->output.n = 0;
	turn_forget_rest(t);
	/* A client that waits for a plain answer, or left before the first
	 * release, was given nothing of what there is. */
	if (t->started || (t->gone && t->answer.text.size > 0)) {
		rc = collect_output(t, e);
		if (rc < 0)
			return rc;
		if (t->text_base > 0)
			fill_long(t, &f);
	}
	fill_finish(t, &f);
	f.drop_from_history = t->drop;
	f.error_class = t->error_class;
	f.status = t->failure.status;
	f.unhurried = t->gone;
	return hf_store_finish(t->env->store, &f, on_closed, t, e);
}

/* FAILED: close the turn on disk, then tell the client, so that what it does
 * next does not wait behind this turn. */
void
turn_close(struct hf_turn *t)
{
	struct hf_error e = { 0 };
	int rc;

	if (t->turn_row == 0) {
		tell_fail(t);
		turn_move(t, TURN_DONE);
		return;
	}
	rc = submit_close(t, &e);
	if (rc == 0) {
		t->pending++;
		return;
	}
	t->pending++; /* on_closed() takes it back */
	on_closed(t, rc, &e);
}
