/*
 * Before a call: may the target be asked, and with what.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include "base/clock.h"

/* Of a payload that is sent before others are read, since it would have left
 * the processor's caches afterwards.  Smaller ones are better sent in a row. */
#define PUSH_SIZE (16 * 1024)

/* Before a call: what the last one said is forgotten, but for the text that
 * the client has. */
static void
reset_answer(struct hf_turn *t)
{
	struct hf_answer *an = &t->answer;

	an->finish = HF_FINISH_STOP;
	an->tokens_in = an->tokens_out = -1;
	an->tokens_cached = an->tokens_reasoning = -1;
	turn_forget_rest(t);
	if (t->started)
		return;
	hf_buf_reset(&t->held);
	turn_text_reset(t);
	t->first_token_us = 0;
}

/* Where a window is known, what a target cannot hold is seen before it is
 * waited for.  True: it has been called, or the turn has gone on. */
static bool
look_before(struct hf_turn *t, struct payload *p, bool *loaded)
{
	struct hf_error e = { 0 };
	int rc;

	*loaded = (t->holds & 1u << t->target) == 0 && window_matters(t);
	if (!*loaded)
		return false;
	rc = payload_load(t, t->target, false, p, &e);
	if (rc < 0)
		turn_fail_store(t, rc, &e);
	else if (p->fit.too_small)
		turn_too_small(t, &p->fit);
	else
		t->holds |= 1u << t->target;
	return rc < 0 || p->fit.too_small;
}

static void
call_with(struct hf_turn *t, struct payload *p, bool loaded)
{
	const struct hf_conf_call *c = &t->in.route->target[t->target]->call;
	struct hf_error e = { 0 };
	int rc = 0;

	reset_answer(t);
	if (t->n_attempt == 1)
		hedge_pay(t);
	if (!loaded)
		rc = payload_load(t, t->target, false, p, &e);
	if (rc == 0 && !p->fit.too_small) {
		attempt_start(t, t->n_attempt, t->target, p, &t->attempt);
		turn_move(t, TURN_CALLING);
		if (t->attempt->bytes_out >= PUSH_SIZE)
			hf_upstream_push(t->env->upstream);
		return;
	}
	hf_target_end(
	    t->env->shm, &t->ticket, c, HF_HEALTH_NEUTRAL, hf_now_us());
	if (rc < 0)
		turn_fail_store(t, rc, &e);
	else
		turn_too_small(t, &p->fit);
}

void
turn_call(struct hf_turn *t)
{
	struct payload p = { 0 };
	bool loaded;

	if (!look_before(t, &p, &loaded) && turn_admit(t)) {
		call_with(t, &p, loaded);
		loaded = true;
	}
	if (loaded)
		payload_free(&p);
}
