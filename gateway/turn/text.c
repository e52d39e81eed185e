/*
 * The text of an answer under way: what the client was given, byte for byte.
 *
 * A plain answer and a short one are in memory whole (answer.text).  Of a long
 * stream only the end is, so that its length costs no memory: 'text_base'
 * bytes before it were let go.  A stored turn has them on disk, in parts, from
 * which a continuation reads them and T2 makes the item.  A turn without a row
 * keeps its text to go on with for as long as all such turns of this worker
 * together stay below a bound; past it the text is let go, and an answer that
 * breaks off then ends with an error event.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/hold.h"

#define PIECE ((size_t)16 * 1024) /* is stored at once, not in a while */
/* No more is taken from the provider while so much is not on disk yet, or not
 * taken by the client: a successor finds both in the hold, and one read of the
 * provider's socket must still fit. */
#define BEHIND ((size_t)HF_HOLD_TEXT / 4)
#define BACKLOG ((size_t)HF_HOLD_OUT / 4)
#define TAIL ((size_t)64) /* stays: the seam looks at the end */
/* Of turns without a row: one that has more than this lets go ... */
#define LOOSE_ONE ((size_t)64 * 1024)
/* ... when all together have more than that. */
#define LOOSE_ALL ((size_t)4 * 1024 * 1024)
#define LOST ((size_t)4096) /* kept by one that did */

size_t
turn_text_size(const struct hf_turn *t)
{
	return t->text_base + t->answer.text.size;
}

static void
let_go(struct hf_turn *t, size_t size)
{
	struct hf_buf *text = &t->answer.text, rest;

	hf_buf_consume(text, size);
	t->text_base += size;
	if (text->cap <= BEHIND)
		return;
	/* It grew before it was known to be a long one, or by a burst. */
	hf_buf_init(&rest, text->max);
	hf_buf_putstr(&rest, hf_buf_str(text));
	hf_buf_free(text);
	*text = rest;
}

/* --- without a row ---------------------------------------------------------*/

static void
keep_loose(struct hf_turn *t, size_t added)
{
	struct hf_turn_env *env = t->env;

	if (!t->text_lost) {
		t->loose += added;
		env->loose += added;
		if (t->loose <= LOOSE_ONE || env->loose <= LOOSE_ALL)
			return;
		t->text_lost = true;
		turn_text_forget(t);
	}
	if (t->answer.text.size > LOST)
		let_go(t, t->answer.text.size - TAIL);
}

/* The memory of this turn's text is not counted any more. */
void
turn_text_forget(struct hf_turn *t)
{
	t->env->loose -= t->loose;
	t->loose = 0;
}

void
turn_text_add(struct hf_turn *t, struct hf_str text)
{
	hf_buf_putstr(&t->answer.text, text);
	if (t->in.stream && !t->durable && hf_buf_ok(&t->answer.text))
		keep_loose(t, text.size);
}

/* Nothing of it went to the client: the next attempt begins anew. */
void
turn_text_reset(struct hf_turn *t)
{
	HF_CHECK(t->text_base == 0 && t->flushed == 0);
	turn_text_forget(t);
	hf_buf_reset(&t->answer.text);
}

/* --- on disk -----------------------------------------------------------------
 */

struct part {
	struct hf_turn *t;
	size_t end; /* of the text, with this part */
};

static void
on_part(void *arg, int rc, const struct hf_error *e)
{
	struct part *p = arg;
	struct hf_turn *t = p->t;
	size_t end = p->end;

	free(p);
	/* They come back in order; behind one that failed none counts. */
	if (rc < 0)
		t->part_failed = true;
	else if (!t->part_failed) {
		t->stored = end;
		t->n_stored++;
	}
	if (turn_settled(t))
		return;
	/* What is not on disk must not look as if it were. */
	if (rc < 0 && t->sm.cur == TURN_STREAMING) {
		turn_cancel_attempt(t, HF_CLASS_GATEWAY, "storage");
		turn_fail_store(t, rc, e);
	}
	if (rc < 0)
		return;
	if (t->in.stream && t->stored >= t->text_base + PIECE + TAIL)
		let_go(t, t->stored - t->text_base - TAIL);
	turn_resume(t);
}

void
turn_flush(struct hf_turn *t)
{
	struct hf_buf *text = &t->answer.text;
	size_t from = t->flushed - t->text_base;
	struct hf_error e = { 0 };
	struct part *p;
	int rc;

	if ((t->sm.cur != TURN_STREAMING && t->sm.cur != TURN_ADOPTING) ||
	    from >= text->size)
		return;
	p = hf_xcalloc(1, sizeof(*p));
	p->t = t;
	p->end = turn_text_size(t);
	rc = hf_store_part(t->env->store, t->session_row, t->turn_row, t->fence,
	    t->part_seq++,
	    (struct hf_str){ text->data + from, text->size - from }, on_part, p,
	    &e);
	if (rc < 0) {
		free(p);
		t->part_failed = true;
		turn_cancel_attempt(t, HF_CLASS_GATEWAY, "storage");
		turn_fail_store(t, rc, &e);
		return;
	}
	t->pending++;
	t->flushed = turn_text_size(t);
}

void
turn_flush_later(struct hf_turn *t)
{
	int64_t ms = t->env->conf->gateway.flush_ms;
	bool now = turn_text_size(t) - t->flushed >= PIECE;
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	if (!t->started || !t->durable)
		return;
	if (now)
		tv = (struct timeval){ 0, 0 };
	if (now || !evtimer_pending(t->flush, NULL))
		evtimer_add(t->flush, &tv);
}

/* --- not faster than client and disk -----------------------------------------
 */

static bool
too_fast(const struct hf_turn *t)
{
	if (t->surface != NULL && t->surface->backlog(t->surface_arg) > BACKLOG)
		return true;
	return t->started && t->durable &&
	    turn_text_size(t) - t->stored > BEHIND;
}

void
turn_throttle(struct hf_turn *t)
{
	struct hf_attempt *a = t->attempt;

	if (a == NULL || a->call == NULL || t->paused || !too_fast(t))
		return;
	t->paused = true;
	hf_call_pause(a->call, true);
}

/* Client or disk caught up, perhaps: more may come. */
void
turn_resume(struct hf_turn *t)
{
	struct hf_attempt *a = t->attempt;

	if (!t->paused || too_fast(t))
		return;
	t->paused = false;
	if (a != NULL && a->call != NULL)
		hf_call_pause(a->call, false);
}
