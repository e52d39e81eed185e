/*
 * Going on with the turn of a worker that died, whose client is with us now:
 * from where it stands on disk, as after a stream that broke off.  A turn that
 * never came on disk begins; one that waited waits on; one that was answered
 * is told from where the client's text ends; one that ended without an answer
 * is told so.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/turn/overlap.h"

/* --- what the client has --------------------------------------------------
 */

static void
contradicts(struct hf_turn *t, const struct hf_error *e)
{
	hf_log(HF_LOG_ERROR,
	    "turn: handover_failed session=%s turn=%s detail=\"%s\"",
	    t->session.s, t->id.s, e->text);
	t->error_class = "gateway";
	turn_fail(t, 500, "server_error", "handover_failed",
	    "the process that served this request died, and what it had told "
	    "is not known well enough to go on");
}

/* The answer's text so far, and how much of it is on disk.  False: the turn
 * has failed. */
static bool
take_text(struct hf_turn *t, struct hf_str stored)
{
	const struct hf_turn_resumed *r = &t->in.resumed;
	struct hf_event ev = { .type = HF_EV_TEXT };
	struct hf_error e = { 0 };
	struct hf_buf all;
	bool ok;

	hf_buf_init(&all, HF_BUF_NOCAP);
	ok = hf_overlap(stored, r->text_size, r->text, &all, &e) == 0 &&
	    hf_buf_ok(&all);
	turn_text_add(t, ok ? hf_buf_str(&all) : stored);
	hf_buf_free(&all);
	t->flushed = t->stored = stored.size;
	t->started = turn_text_size(t) > 0;
	if (!ok || !hf_buf_ok(&t->answer.text)) {
		contradicts(t, &e);
		return false;
	}
	if (stored.size > r->text_size) {
		ev.text = (struct hf_str){ stored.p + r->text_size,
			stored.size - (size_t)r->text_size };
		turn_deliver(t, &ev);
	}
	return true;
}

static bool
load_text(struct hf_turn *t)
{
	struct hf_error e = { 0 };
	struct hf_buf stored;
	bool ok = false;
	int rc;

	hf_buf_init(&stored, HF_BUF_NOCAP);
	rc = hf_store_text(
	    t->env->store, t->session_row, t->turn_row, t->seq, &stored, &e);
	if (rc < 0)
		turn_fail_store(t, rc, &e);
	else
		ok = take_text(t, hf_buf_str(&stored));
	hf_buf_free(&stored);
	return ok;
}

/* --- going on ------------------------------------------------------------- */

/* A call that is lost begins anew, and its deadlines with it: nobody may be
 * asked again and again, death after death, and never be late.  'called_us':
 * since when it is called. */
static bool
is_late(const struct hf_turn *t, const struct hf_conf_call *c,
    int64_t called_us, int64_t now)
{
	int64_t said_us = t->in.resumed.said_us;

	if (said_us > called_us)
		return c->idle_ms > 0 &&
		    now - said_us >= (int64_t)c->idle_ms * 1000;
	return c->first_token_ms > 0 &&
	    now - called_us >= (int64_t)c->first_token_ms * 1000;
}

/* With the target that was answering, since its call was lost by no fault of
 * its; unless it has said nothing for longer than it may. */
static void
begin_with(struct hf_turn *t, unsigned i, int64_t called_us)
{
	const struct hf_conf_call *c = &t->in.route->target[i]->call;
	int64_t now = hf_now_us();

	t->target =
	    hf_plan_begin(&t->plan, i, is_late(t, c, called_us, now), now)
		.target;
}

static void
choose_target(struct hf_turn *t, const struct hf_adopted *a)
{
	const struct hf_conf_route *r = t->in.route;

	for (unsigned i = 0; i < r->n_target && i < HF_PLAN_TARGETS; i++)
		if (hf_str_is(a->target, r->target[i]->name))
			begin_with(t, i, a->called_us - t->wall_us);
}

static void
go_on(struct hf_turn *t)
{
	if (t->started && !turn_may_continue(t, HF_CLASS_NONE)) {
		turn_fail(t, 502, "server_error", "stream_interrupted",
		    "the process that served this stream died, and an answer "
		    "of this kind cannot be gone on with");
		return;
	}
	/* What the client has must be on disk before a payload holds it. */
	if (t->started && t->durable)
		turn_flush(t);
	if (t->sm.cur >= TURN_FAILED)
		return;
	turn_move(t, TURN_REBUILDING);
	if (hf_now_us() >= t->deadline_us)
		turn_late(t);
	else
		turn_rebuild(t);
}

/* Its requests make workers die: it is not tried again, and nobody is to hear
 * of it in a later turn. */
static void
fail_poisoned(struct hf_turn *t)
{
	t->drop = !t->started;
	t->error_class = "gateway";
	turn_fail(t, 500, "server_error", "turn_crashed",
	    "the processes that served this request died of it");
}

/* The end of a turn that got no answer, as far as it is on disk. */
static void
tell_end(struct hf_turn *t, const struct hf_adopted *a)
{
	struct hf_turn_failure f;

	answer_failure(a->state, a->status, &f);
	turn_fail(t, f.status, f.type, f.code,
	    "this request failed before the process that served it died");
}

static void
wait_on(struct hf_turn *t)
{
	if (t->fence != 0) {
		turn_move(t, TURN_RECONCILING);
		turn_reconcile(t);
		return;
	}
	turn_move(t, TURN_QUEUED);
	turn_enqueue(t);
}

static void
begin_anew(struct hf_turn *t)
{
	struct hf_error e = { 0 };

	if (t->in.resumed.text_size > 0) {
		hf_fail(&e, HF_ECORRUPT, "text was told of no known turn");
		contradicts(t, &e);
		return;
	}
	turn_move(t, TURN_RECONCILING);
	turn_reconcile(t);
}

/* It was answered, and the answer was being told. */
static void
tell_on(struct hf_turn *t, int64_t row)
{
	const struct hf_turn_resumed *r = &t->in.resumed;
	struct hf_error e = { 0 };
	struct hf_buf all;
	int rc = turn_load_answer(t, t->session_row, row, &e);

	if (rc < 0) {
		turn_fail_store(t, rc, &e);
		return;
	}
	hf_buf_init(&all, HF_BUF_NOCAP);
	rc = hf_overlap(
	    hf_buf_str(&t->answer.text), r->text_size, r->text, &all, &e);
	if (rc == 0 && all.size != t->answer.text.size)
		rc = hf_fail(
		    &e, HF_ECORRUPT, "more was told than the answer has");
	hf_buf_free(&all);
	if (rc < 0) {
		contradicts(t, &e);
		return;
	}
	t->told = (size_t)r->text_size;
	turn_tell_answer(t, row);
}

/* --- taking over ---------------------------------------------------------- */

static void
take_open(struct hf_turn *t, const struct hf_adopted *a)
{
	t->opened = true;
	t->adopted = true;
	t->n_attempt = a->attempts;
	t->part_seq = t->n_stored = a->parts;
	t->view_items = a->view_items;
	memcpy(t->view, a->view, sizeof(t->view));
	t->head.key = a->key;
	turn_stay(t, a->session_row);
	if (a->calling)
		choose_target(t, a);
}

static void
take(struct hf_turn *t, const struct hf_adopted *a)
{
	t->session = a->session;
	t->session_row = a->session_row;
	t->seq = a->seq;
	t->created_us = a->created_us;
	if (a->state >= HF_TURN_COMPLETE)
		return;
	t->turn_row = a->turn_row;
	t->fence = a->fence;
	t->joins_row = a->joins_row;
	if (a->state == HF_TURN_OPEN)
		take_open(t, a);
}

static void
act(struct hf_turn *t, const struct hf_adopted *a)
{
	if (t->in.resumed.poisoned)
		fail_poisoned(t);
	else if (!a->found)
		begin_anew(t);
	else if (a->state == HF_TURN_QUEUED)
		wait_on(t);
	else if (a->state == HF_TURN_OPEN)
		go_on(t);
	else if (a->state == HF_TURN_COMPLETE)
		tell_on(t, a->turn_row);
	else
		tell_end(t, a);
}

static void
on_adopted(
    void *arg, int rc, const struct hf_error *e, const struct hf_adopted *a)
{
	struct hf_turn *t = arg;
	bool failed = false;

	if (rc == 0 && a->found) {
		take(t, a);
		failed = a->state == HF_TURN_OPEN && !load_text(t);
		hf_count(t->env->shm, HF_C_turns_adopted, 1);
	}
	hf_log(HF_LOG_INFO,
	    "turn: adopted session=%s turn=%s seq=%lld found=%d state=%d "
	    "attempts=%u told=%llu stored=%zu",
	    t->session.s[0] != '\0' ? t->session.s : "-", t->id.s,
	    (long long)t->seq, a->found, (int)a->state, t->n_attempt,
	    (unsigned long long)t->in.resumed.text_size, t->flushed);
	if (turn_settled(t) || failed)
		return;
	if (rc < 0)
		turn_fail_store(t, rc, e);
	else
		act(t, a);
}

/* A turn without a row: there is only what the client was told. */
static void
adopt_memory(struct hf_turn *t)
{
	if (!take_text(t, HF_STR_NONE))
		return;
	hf_count(t->env->shm, HF_C_turns_adopted, 1);
	if (t->gone)
		turn_client_left(t);
	else if (t->in.resumed.poisoned)
		fail_poisoned(t);
	else {
		begin_with(t, t->target, t->in.received_us);
		go_on(t);
	}
}

void
turn_adopt(struct hf_turn *t)
{
	struct hf_adopt a = {
		.tenant = t->in.tenant, .name = t->in.session, .turn = t->id
	};
	struct hf_error e = { 0 };
	int rc;

	if (!t->durable) {
		adopt_memory(t);
		return;
	}
	turn_digest(t);
	a.has_idem = t->has_idem;
	memcpy(a.idem, t->idem, sizeof(a.idem));
	turn_move(t, TURN_ADOPTING);
	rc = hf_store_adopt(t->env->store, &a, on_adopted, t, &e);
	if (rc < 0)
		turn_fail_store(t, rc, &e);
	else
		t->pending++;
}
