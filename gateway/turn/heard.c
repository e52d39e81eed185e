/*
 * What was heard of an answer: marks beside its items where the client was
 * given less than was generated, and the view with them.  The history of the
 * next turn goes by the marks; the answer is kept whole.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include <limits.h>

#include "base/clock.h"

#define HISTORY_MAX ((size_t)256 * 1024 * 1024)

/* --- marks -----------------------------------------------------------------
 */

/* The first 'given' bytes of a text, then of a refusal. */
static int
mark_text(struct hf_item *item, struct hf_str text, struct hf_str refusal,
    size_t given, const struct hf_session_key *k, struct hf_arena *a)
{
	struct hf_buf body, norm;
	bool ok;

	item->has_heard = given < text.size + refusal.size;
	item->heard = HF_STR("");
	memset(item->heard_digest, 0, sizeof(item->heard_digest));
	if (!item->has_heard || given == 0)
		return 0;
	refusal.size = given > text.size ? given - text.size : 0;
	text.size = given < text.size ? given : text.size;
	hf_buf_init(&body, HF_BUF_NOCAP);
	hf_buf_init(&norm, HF_BUF_NOCAP);
	hf_item_text_body(text, refusal, &body, &norm);
	ok = hf_buf_ok(&body) && hf_buf_ok(&norm);
	if (ok) {
		hf_store_digest(k, hf_buf_str(&norm), item->heard_digest);
		item->heard = hf_arena_dup(a, hf_buf_str(&body));
	}
	hf_buf_free(&body);
	hf_buf_free(&norm);
	return ok && item->heard.p != NULL ? 0 : HF_ENOMEM;
}

/* Mark the items of an answer of this text: whatever stood there before. */
static int
mark_items(struct hf_item *item, unsigned n, struct hf_str text,
    struct hf_str refusal, const struct hf_delivered *d,
    const struct hf_session_key *k, struct hf_arena *a, struct hf_error *e)
{
	unsigned calls = 0;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n; i++) {
		if (item[i].kind == HF_ITEM_MESSAGE) {
			rc = mark_text(&item[i], text, refusal, d->text, k, a);
		} else {
			item[i].has_heard = calls++ >= d->calls;
			item[i].heard = HF_STR("");
			memset(item[i].heard_digest, 0, HF_DIGEST_SIZE);
		}
	}
	return rc == 0 ? 0 : hf_fail(e, rc, "no memory for what was heard");
}

static void
fold(const struct hf_session_key *k, const struct hf_item *item,
    uint8_t view[HF_DIGEST_SIZE], int64_t *n)
{
	uint8_t next[HF_DIGEST_SIZE];

	if (hf_item_unheard(item))
		return;
	hf_store_chain(k, view, hf_item_view_digest(item), next);
	memcpy(view, next, sizeof(next));
	(*n)++;
}

/* --- at the end of a turn --------------------------------------------------
 */

/* The text of a long answer is marked where it is made an item: in the store.
 */
int
turn_mark_heard(struct hf_turn *t, struct hf_error *e)
{
	if (t->gone_us == 0)
		return 0;
	return mark_items(t->output.item, t->output.n,
	    hf_buf_str(&t->answer.text), hf_buf_str(&t->answer.refusal),
	    &t->given, &t->head.key, t->arena, e);
}

void
turn_fill_heard(struct hf_turn *t, struct hf_finish *f)
{
	size_t n = t->output.n > 0 || f->from_parts ?
	    turn_text_size(t) + t->answer.refusal.size :
	    0;

	f->said = (int64_t)n;
	f->heard = t->gone_us == 0 ? -1 :
	    t->given.text < n	   ? (int64_t)t->given.text :
				     (int64_t)n;
	f->gone_us = t->gone_us;
	memcpy(f->view, t->view, sizeof(f->view));
	f->view_items = t->view_items;
	for (unsigned i = 0; i < t->output.n; i++)
		fold(&t->head.key, &t->output.item[i], f->view, &f->view_items);
}

/* The answer is made all the same: what is on disk of it says by now how much
 * was heard, should this process not live to see its end. */
void
turn_note_gone(struct hf_turn *t)
{
	struct hf_heard_note n = { .session_row = t->session_row,
		.turn_row = t->turn_row,
		.heard = (int64_t)t->given.text,
		.gone_us = t->gone_us };

	if (!t->opened || t->sm.cur >= TURN_FINISHING)
		return;
	turn_flush(t);
	/* T2 says it again, should this fail. */
	if (t->sm.cur < TURN_FINISHING &&
	    hf_store_gone(t->env->store, &n, t->fence, NULL, NULL, NULL) < 0)
		return;
}

/* --- after the end ---------------------------------------------------------
 */

/* What is on disk of the answer, as text. */
static int
read_text(const struct hf_stored_answer *s, struct hf_buf *text,
    struct hf_buf *refusal, struct hf_error *e)
{
	struct hf_json body;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < s->n_item; i++) {
		if (s->item[i].kind != HF_ITEM_MESSAGE)
			continue;
		rc = hf_json_check(s->item[i].body, &body, NULL, e);
		if (rc < 0)
			return hf_fail(
			    e, HF_ECORRUPT, "an answer that is no JSON");
		if (hf_json_get(body, "content").type == HF_JSON_STRING)
			hf_json_decode(hf_json_get(body, "content"), text);
		if (hf_json_get(body, "refusal").type == HF_JSON_STRING)
			hf_json_decode(hf_json_get(body, "refusal"), refusal);
	}
	return hf_buf_ok(text) && hf_buf_ok(refusal) ?
	    0 :
	    hf_fail(e, HF_ENOMEM, "no memory for an answer");
}

/* Told again and not to its end: what was heard the first time counts too. */
static void
add_earlier(const struct hf_stored_answer *s, struct hf_delivered *d)
{
	unsigned calls = 0;

	if (s->heard < 0)
		return; /* it is the first time */
	if (d->text < (size_t)s->heard)
		d->text = (size_t)s->heard;
	for (unsigned i = 0; i < s->n_item; i++)
		calls += s->item[i].kind == HF_ITEM_TOOL_CALL &&
		    !s->item[i].has_heard;
	if (d->calls < calls)
		d->calls = calls;
}

static bool
any_mark(const struct hf_stored_answer *s)
{
	bool any = false;

	for (unsigned i = 0; i < s->n_item; i++)
		any = any || s->item[i].has_heard;
	return any;
}

/* The view up to the answer: the turn's output stands last in it. */
static int
view_before(struct hf_turn_env *env, const struct hf_told *told,
    const struct hf_stored_answer *s, struct hf_arena *a,
    struct hf_heard_note *n, struct hf_error *e)
{
	struct hf_history h;
	int rc = hf_store_view(
	    env->store, told->session_row, told->turn_row, a, &h, e);

	for (unsigned i = 0; rc == 0 && i < h.n; i++)
		if (h.item[i].turn_row != told->turn_row || s->n_item == 0 ||
		    h.item[i].row < s->item[0].row)
			fold(&s->key, &h.item[i], n->view, &n->view_items);
	return rc;
}

static int
fill_marks(const struct hf_stored_answer *s, struct hf_arena *a,
    struct hf_heard_note *n, struct hf_error *e)
{
	struct hf_heard *mark =
	    hf_arena_alloc(a, (s->n_item + 1) * sizeof(*mark));

	if (mark == NULL)
		return hf_fail(e, HF_ENOMEM, "no memory for what was heard");
	for (unsigned i = 0; i < s->n_item; i++) {
		mark[i] = (struct hf_heard){ .item_row = s->item[i].row,
			.whole = !s->item[i].has_heard,
			.body = s->item[i].heard };
		memcpy(mark[i].digest, s->item[i].heard_digest, HF_DIGEST_SIZE);
		fold(&s->key, &s->item[i], n->view, &n->view_items);
	}
	n->mark = mark;
	n->n_mark = s->n_item;
	return 0;
}

/* What 's' holds of the answer, marked anew: into 'n'. */
static int
fill_note(struct hf_turn_env *env, const struct hf_told *told,
    struct hf_stored_answer *s, struct hf_delivered *given, struct hf_arena *a,
    struct hf_heard_note *n, struct hf_error *e)
{
	struct hf_buf text, refusal;
	bool marked = n->delivered || any_mark(s);
	int rc;

	hf_buf_init(&text, HF_BUF_NOCAP);
	hf_buf_init(&refusal, HF_BUF_NOCAP);
	rc = read_text(s, &text, &refusal, e);
	if (rc == 0) {
		n->heard = (int64_t)(text.size + refusal.size);
		if (given->text < (size_t)n->heard)
			n->heard = (int64_t)given->text;
		rc = mark_items(s->item, s->n_item, hf_buf_str(&text),
		    hf_buf_str(&refusal), given, &s->key, a, e);
	}
	if (rc == 0 && (marked || any_mark(s))) {
		rc = view_before(env, told, s, a, n, e);
		if (rc == 0)
			rc = fill_marks(s, a, n, e);
	}
	hf_buf_free(&text);
	hf_buf_free(&refusal);
	return rc;
}

int
turn_report_heard(struct hf_turn_env *env, const struct hf_told *told,
    bool sent, const struct hf_delivered *d, hf_done_fn cb, void *arg,
    struct hf_error *e)
{
	struct hf_heard_note n = { .session_row = told->session_row,
		.turn_row = told->turn_row,
		.delivered = sent,
		.gone_us = sent ? 0 : hf_wall_us() };
	struct hf_delivered given =
	    sent ? (struct hf_delivered){ SIZE_MAX, UINT_MAX } : *d;
	struct hf_stored_answer s;
	struct hf_arena a;
	int rc;

	hf_arena_init(&a, HISTORY_MAX);
	rc = hf_store_answer(
	    env->store, told->session_row, told->turn_row, &a, &s, e);
	if (rc == 0) {
		add_earlier(&s, &given);
		rc = fill_note(env, told, &s, &given, &a, &n, e);
	}
	if (rc == 0)
		rc = hf_store_heard(env->store, &n, cb, arg, e);
	hf_arena_free(&a);
	return rc;
}
