/*
 * Verification of one turn: its relations, its items, and what else it has.
 */
#include <config.h>

#include "store/verify_int.h"

#include "store/history.h"

static const uint8_t zero[HF_DIGEST_SIZE];

/* --- other turns ----------------------------------------------------- */

/* A second answer to the same request, both in the history.  Saying the same
 * twice is no duplicate; saying it again because the first answer never came
 * is one. */
static void
check_duplicate(
    struct hf_verify *v, const struct hf_vturn *t, const struct hf_vturn *first)
{
	bool retry = t->retry_of == first->id &&
	    memcmp(t->input, first->input, HF_DIGEST_SIZE) == 0;
	bool again = !first->delivered &&
	    memcmp(t->request, zero, HF_DIGEST_SIZE) != 0 &&
	    memcmp(t->request, first->request, HF_DIGEST_SIZE) == 0;

	if (t->on_path && first->on_path && t->state == HF_TURN_COMPLETE &&
	    first->state == HF_TURN_COMPLETE && (retry || again))
		hf_verify_add(v, false, "duplicate", t->seq, -1,
		    "it repeats "
		    "turn %lld, and both are complete and in the history",
		    (long long)first->seq);
}

/* What a turn says of other turns; its parent, or NULL. */
static const struct hf_vturn *
check_relations(struct hf_verify *v, const struct hf_vturn *t)
{
	const struct hf_vturn *p = NULL, *r;

	if (t->retry_of != 0) {
		r = hf_vturn_find(v, t->retry_of);
		if (r == NULL || r == t)
			hf_verify_add(v, true, "retry_of", t->seq, -1,
			    "the turn that it repeats is not in the session");
		else
			check_duplicate(v, t, r);
	}
	if (t->parent == 0)
		return NULL;
	p = hf_vturn_find(v, t->parent);
	if (p == NULL || t->parent >= t->id) {
		hf_verify_add(v, true, "parent_missing", t->seq, -1,
		    "the turn before it (row %lld) is not in the session",
		    (long long)t->parent);
		return NULL;
	}
	if (p->state < HF_TURN_COMPLETE)
		hf_verify_add(v, true, "parent_open", t->seq, -1,
		    "the turn "
		    "before it, %lld, has not ended",
		    (long long)p->seq);
	if (t->retry_of != p->id)
		check_duplicate(v, t, p);
	return p;
}

/* --- items ---------------------------------------------------------------- */

struct walk {
	struct hf_verify *v;
	const struct hf_vturn *t;
	int64_t idx; /* of the next item */
	int64_t inputs, outputs;
	uint8_t chain[HF_DIGEST_SIZE];
	bool chained; /* 'chain' is known */
	uint8_t lead[HF_DIGEST_SIZE], input[HF_DIGEST_SIZE];
	bool damaged; /* 'input' does not say anything */
	/* Of the text of the answer: sizes of what is stored. */
	int64_t text_size, heard_size;
	bool text_marked;
	bool sizeless; /* ... are not known */
};

static void
fold(const struct hf_verify *v, uint8_t chain[HF_DIGEST_SIZE],
    const uint8_t digest[HF_DIGEST_SIZE])
{
	uint8_t next[HF_DIGEST_SIZE];

	hf_store_chain(&v->s.key.digest, chain, digest, next);
	memcpy(chain, next, sizeof(next));
}

static void
check_chain(struct walk *w, int64_t idx, const struct hf_item *it,
    const uint8_t stored[HF_DIGEST_SIZE])
{
	if (w->chained) {
		fold(w->v, w->chain, it->digest);
		if (memcmp(w->chain, stored, HF_DIGEST_SIZE) != 0)
			hf_verify_add(w->v, true, "chain", w->t->seq, idx,
			    "the item does not follow what is before it");
	}
	memcpy(w->chain, stored, HF_DIGEST_SIZE);
	w->chained = true;
}

/* The item's place among its turn's. */
static void
check_place(struct walk *w, int64_t idx, bool output)
{
	if (idx > w->idx)
		hf_verify_add(w->v, true, "item_missing", w->t->seq, w->idx,
		    idx == w->idx + 1 ? "the item is missing" :
					"items %lld to %lld are missing",
		    (long long)w->idx, (long long)idx - 1);
	if (idx >= w->t->n_items)
		hf_verify_add(w->v, true, "item_extra", w->t->seq, idx,
		    "the turn has only %lld items", (long long)w->t->n_items);
	if (!output && w->outputs > 0)
		hf_verify_add(w->v, true, "item_order", w->t->seq, idx,
		    "an input item behind the answer");
	if (idx != w->idx) {
		w->chained = false;
		w->damaged = true;
	}
	w->idx = idx + 1;
}

static void
see_text(struct walk *w, const struct hf_item *it)
{
	w->text_size += (int64_t)it->body.size;
	w->heard_size += (int64_t)it->heard.size;
	w->text_marked = w->text_marked || it->has_heard;
}

/* A body is never smaller than the text in it.  What the client of a later
 * turn says was heard of this one replaces the mark, but not the figures. */
static const char *
wrong_mark(const struct walk *w, bool cut)
{
	const struct hf_vturn *t = w->t;

	if (w->damaged || w->sizeless)
		return NULL;
	if (t->said > w->text_size)
		return "what is stored of its answer is smaller";
	if (t->has_child)
		return NULL;
	if (cut != w->text_marked)
		return cut ? "the history has the whole" :
			     "the history has only a part";
	if (cut &&
	    (t->heard > w->heard_size ||
		(t->heard == 0) != (w->heard_size == 0)))
		return "the history has another part";
	return NULL;
}

/* How much was said and heard: can it be? */
static void
check_heard(struct walk *w)
{
	const struct hf_vturn *t = w->t;
	bool cut = t->heard >= 0 && t->heard < t->said;
	const char *what;

	if (t->state < HF_TURN_COMPLETE)
		return;
	if (t->said < -1 || t->heard < -1 || t->heard > t->said)
		what = "that cannot be";
	else if (cut && t->gone_us == 0)
		what = "its client never left";
	else
		what = wrong_mark(w, cut);
	if (what != NULL)
		hf_verify_add(w->v, true, "heard", t->seq, -1,
		    "%lld of %lld bytes are said to be heard, but %s",
		    (long long)t->heard, (long long)t->said, what);
}

static void
see_item(struct walk *w, sqlite3_stmt *st)
{
	struct hf_verify *v = w->v;
	uint8_t stored[HF_DIGEST_SIZE];
	struct hf_item it = { 0 };
	struct hf_arena a;
	int64_t idx = sqlite3_column_int64(st, 0) & (HF_ROW_MAX - 1);
	bool output = sqlite3_column_int(st, 1) != 0;

	check_place(w, idx, output);
	hf_arena_init(&a, 0);
	if (hf_item_columns(
		st, &v->s.key, w->t->seq, true, &a, &it, stored, v->e) < 0) {
		hf_verify_add(v, true, "item_sealed", w->t->seq, idx,
		    "what is stored of the item is not what was");
		it = (struct hf_item){ 0 };
		if (hf_item_columns(st, &v->s.key, w->t->seq, false, &a, &it,
			stored, v->e) < 0) {
			w->chained = false;
			w->damaged = v->broken = true;
			goto out;
		}
		w->sizeless = true;
	}
	check_chain(w, idx, &it, stored);
	if (it.lead)
		fold(v, w->lead, it.digest);
	else if (!output && it.anchor_row == 0)
		fold(v, w->input, it.digest);
	if (output && it.kind == HF_ITEM_MESSAGE)
		see_text(w, &it);
	if (output)
		w->outputs++;
	else
		w->inputs++;
	if (w->t->on_path)
		hf_verify_note_item(v, &it,
		    it.has_heard &&
			sqlite3_column_int64(st, 10) <= HF_SEAL_OVERHEAD);
	v->sum->items++;
out:
	hf_arena_free(&a);
}

static void
check_items_end(struct walk *w)
{
	struct hf_verify *v = w->v;
	const struct hf_vturn *t = w->t;

	if (w->idx < t->n_items) {
		hf_verify_add(v, true, "item_missing", t->seq, w->idx,
		    "the turn had %lld items, %lld are there",
		    (long long)t->n_items, (long long)w->idx);
		w->damaged = true;
	} else if (w->chained && t->state != HF_TURN_QUEUED &&
	    memcmp(w->chain, t->chain, HF_DIGEST_SIZE) != 0) {
		hf_verify_add(v, true, "turn_chain", t->seq, -1,
		    "the chain "
		    "in its row is not that of its items");
	}
	if (w->damaged) {
		v->broken = v->broken || t->on_path;
		return;
	}
	if (t->started_us != 0 &&
	    memcmp(w->input, t->input, HF_DIGEST_SIZE) != 0)
		hf_verify_add(v, true, "input_digest", t->seq, -1,
		    "its input "
		    "is not what its row says it was");
	if (memcmp(w->lead, zero, HF_DIGEST_SIZE) != 0 &&
	    memcmp(w->lead, t->lead, HF_DIGEST_SIZE) != 0)
		hf_verify_add(v, true, "lead_digest", t->seq, -1,
		    "its "
		    "instructions are not what its row says they were");
	if (t->state != HF_TURN_COMPLETE)
		return;
	if (w->outputs == 0)
		hf_verify_add(v, true, "no_output", t->seq, -1,
		    "the turn is "
		    "complete and has no answer");
	/* A list that ends with an answer has nothing new in it. */
	if (w->inputs == 0 && t->parent == 0)
		hf_verify_add(v, true, "no_input", t->seq, -1,
		    "the turn is "
		    "complete and nobody said anything");
}

static int
check_items(struct hf_verify *v, const struct hf_vturn *t,
    const struct hf_vturn *parent)
{
	struct walk w = {
		.v = v, .t = t, .chained = t->parent == 0 || parent != NULL
	};
	sqlite3_stmt *st = hf_db_bind(&v->in->db, HF_SQL_ITEM_READ, v->e, "ii",
	    hf_row_child(t->id, 0), hf_row_child(t->id + 1, 0));
	int rc;

	if (st == NULL)
		return v->e->code;
	if (parent != NULL)
		memcpy(w.chain, parent->chain, HF_DIGEST_SIZE);
	while ((rc = hf_db_step(&v->in->db, st, v->e)) > 0)
		see_item(&w, st);
	if (rc == 0) {
		check_items_end(&w);
		check_heard(&w);
	}
	return rc;
}

/* --- what else a turn has ------------------------------------------------- */

static void
check_sealed(struct hf_verify *v, const struct hf_vturn *t,
    enum hf_seal_kind kind, int64_t idx, sqlite3_stmt *st)
{
	struct hf_seal_at at = { kind, t->seq, kind == HF_SEAL_PART ? idx : 0 };
	struct hf_str plain;
	struct hf_arena a;

	hf_arena_init(&a, 0);
	if (hf_seal_open(&v->s.key, at, hf_db_str(st, 1), &a, &plain) < 0)
		hf_verify_add(v, true,
		    kind == HF_SEAL_PART       ? "part_sealed" :
			kind == HF_SEAL_PARAMS ? "params_sealed" :
						 "request_sealed",
		    t->seq, kind == HF_SEAL_PART ? idx : -1,
		    "what is stored is not what was");
	hf_arena_free(&a);
}

static void
see_part(struct hf_verify *v, const struct hf_vturn *t, sqlite3_stmt *st,
    int64_t *next)
{
	int64_t idx = sqlite3_column_int64(st, 0) & (HF_ROW_MAX - 1);

	if (*next == 0 && t->state != HF_TURN_OPEN)
		hf_verify_add(v, false, "parts", t->seq, idx,
		    "text of a "
		    "stream is left in a turn that is not open");
	if (idx != *next)
		hf_verify_add(v, true, "part_missing", t->seq, *next,
		    "text "
		    "before part %lld is missing",
		    (long long)idx);
	check_sealed(v, t, HF_SEAL_PART, idx, st);
	*next = idx + 1;
}

static void
see_blob(struct hf_verify *v, const struct hf_vturn *t, sqlite3_stmt *st,
    int64_t *next)
{
	int64_t idx = sqlite3_column_int64(st, 0) & (HF_ROW_MAX - 1);

	(void)next;
	if (idx == 1)
		check_sealed(v, t, HF_SEAL_PARAMS, idx, st);
	if (idx != 2)
		return;
	check_sealed(v, t, HF_SEAL_REQUEST, idx, st);
	if (t->state != HF_TURN_QUEUED)
		hf_verify_add(v, false, "request", t->seq, -1,
		    "the request "
		    "is kept though the turn does not wait");
}

static void
see_attempt(struct hf_verify *v, const struct hf_vturn *t, sqlite3_stmt *st,
    int64_t *next)
{
	int64_t n = sqlite3_column_int64(st, 0) & (HF_ROW_MAX - 1);

	if (n != *next + 1)
		hf_verify_add(v, true, "attempt_missing", t->seq, -1,
		    "attempt %lld is missing", (long long)*next + 1);
	if (sqlite3_column_int64(st, 1) == 0 && t->state != HF_TURN_OPEN)
		hf_verify_add(v, false, "attempt_open", t->seq, -1,
		    "attempt %lld has not ended, the turn has", (long long)n);
	*next = n;
}

static int
each(struct hf_verify *v, const struct hf_vturn *t, enum hf_sql q,
    void (*see)(
	struct hf_verify *, const struct hf_vturn *, sqlite3_stmt *, int64_t *),
    int64_t *last)
{
	sqlite3_stmt *st = hf_db_bind(&v->in->db, q, v->e, "ii",
	    hf_row_child(t->id, 0), hf_row_child(t->id + 1, 0));
	int rc;

	*last = 0;
	if (st == NULL)
		return v->e->code;
	while ((rc = hf_db_step(&v->in->db, st, v->e)) > 0)
		see(v, t, st, last);
	return rc;
}

int
hf_verify_turn(struct hf_verify *v, const struct hf_vturn *t)
{
	const struct hf_vturn *parent = check_relations(v, t);
	int rc = check_items(v, t, parent);
	int64_t last;

	if (rc == 0)
		rc = each(v, t, HF_SQL_PART_READ, see_part, &last);
	if (rc == 0)
		rc = each(v, t, HF_SQL_VERIFY_BLOBS, see_blob, &last);
	if (rc == 0)
		rc = each(v, t, HF_SQL_VERIFY_ATTEMPTS, see_attempt, &last);
	if (rc == 0 && last == 0 && t->state == HF_TURN_COMPLETE)
		hf_verify_add(v, true, "attempt_missing", t->seq, -1,
		    "the "
		    "turn was answered, and nobody was asked");
	v->sum->turns++;
	return rc;
}
