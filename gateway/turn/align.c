/*
 * Alignment of a client's list with the stored view.
 */
#include <config.h>

#include "gateway/turn/align.h"

#include "base/check.h"

struct walk {
	const struct hf_item *s, *c;
	uint32_t n, m; /* sizes of s and c */
	uint32_t i, j; /* positions in c and s */
	uint32_t *at;  /* at[j]: i when s[j] was reached */
	struct hf_align *out;
};

const char *
hf_align_name(enum hf_align_how how)
{
	static const char *const name[] = {
		[HF_ALIGN_FRESH] = "new",
		[HF_ALIGN_PREFIX] = "full",
		[HF_ALIGN_DELTA] = "delta",
		[HF_ALIGN_WINDOW] = "window",
		[HF_ALIGN_MERGED] = "merged",
		[HF_ALIGN_BRANCH] = "branch",
		[HF_ALIGN_RETRY] = "retry",
		[HF_ALIGN_REPLAY] = "replay",
	};

	return name[how];
}

bool
hf_item_unheard(const struct hf_item *i)
{
	static const uint8_t zero[HF_DIGEST_SIZE];

	return i->has_heard && memcmp(i->heard_digest, zero, sizeof(zero)) == 0;
}

static bool
same(const struct hf_item *s, const struct hf_item *c)
{
	return memcmp(hf_item_view_digest(s), c->digest, HF_DIGEST_SIZE) == 0;
}

/* Of an answer that was cut short the client has all the same the whole: it
 * was told it again, or reads faster than its connection was known to. */
static bool
same_whole(const struct hf_item *s, const struct hf_item *c)
{
	return s->has_heard &&
	    memcmp(s->digest, c->digest, HF_DIGEST_SIZE) == 0;
}

static bool
is_letter(unsigned char c)
{
	return (c >= '0' && c <= '9') ||
	    ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

bool
hf_align_grew(struct hf_str before, struct hf_str now)
{
	size_t n = before.size;

	return n > 0 && now.size > n && memcmp(before.p, now.p, n) == 0 &&
	    !(is_letter((unsigned char)now.p[n - 1]) &&
		is_letter((unsigned char)now.p[n]));
}

static bool
is_answer(const struct hf_item *i)
{
	return i->role == HF_ROLE_ASSISTANT;
}

static bool
is_answer_text(const struct hf_item *i)
{
	return is_answer(i) && i->kind == HF_ITEM_MESSAGE;
}

/* Does the list begin inside the stored view and cover the rest of it?  At
 * least one answer or two items must agree, so that a repeated "yes" is not
 * taken for history. */
static uint32_t
window(const struct walk *w)
{
	for (uint32_t j = 1; j < w->n; j++) {
		uint32_t k = w->n - j, i;
		bool answer = false;

		if (k > w->m)
			continue;
		for (i = 0; i < k &&
		     (same(&w->s[j + i], &w->c[i]) ||
			 same_whole(&w->s[j + i], &w->c[i]));
		     i++)
			answer = answer || is_answer(&w->c[i]);
		if (i == k && (answer || k >= 2))
			return k;
	}
	return 0;
}

/* Answers in front of the first stored item: a greeting that nobody here
 * made.  Only if the rest really is the stored beginning. */
static bool
greeting(const struct walk *w)
{
	uint32_t i = 0;

	while (
	    i < w->m && is_answer_text(&w->c[i]) && !same(&w->s[0], &w->c[i]))
		i++;
	return i > 0 && i + 1 < w->m && same(&w->s[0], &w->c[i]);
}

static void
heard(struct walk *w, uint32_t c)
{
	w->out->heard[w->out->n_heard].s = w->j;
	w->out->heard[w->out->n_heard++].c = c;
}

/* The window covers the last 'k' of the stored items: what of them the client
 * has whole after all. */
static void
heard_in_window(struct walk *w, uint32_t k)
{
	for (w->i = 0, w->j = w->n - k; w->i < k; w->i++, w->j++)
		if (!same(&w->s[w->j], &w->c[w->i]))
			heard(w, w->i);
}

/* One step where s[j] and c[i] differ; false: a branch begins at s[j]. */
static bool
step(struct walk *w)
{
	const struct hf_item *s = &w->s[w->j], *c = &w->c[w->i];

	bool next_matches = w->i + 1 < w->m && same(s, &w->c[w->i + 1]);

	if (s->kind != HF_ITEM_MESSAGE && s->kind != c->kind && !next_matches) {
		/* A client that hides tool steps from its own list: a shorter
		 * view never shortens the store. */
		w->j++;
		return true;
	}
	if (is_answer_text(c) && (next_matches || !is_answer(s))) {
		/* Nobody here made it; it stands before s[j]. */
		w->out->insert[w->out->n_insert].c = w->i++;
		w->out->insert[w->out->n_insert++].s = w->j;
		return true;
	}
	if (!is_answer_text(s) || (is_answer(c) && !is_answer_text(c)))
		return false;
	if (is_answer_text(c))
		heard(w, w->i++);
	else
		heard(w, HF_ALIGN_NONE);
	w->j++;
	return true;
}

/* A branch cannot begin inside a turn: go back to where the turn of s[j]
 * begins, and take the client's items from there as new. */
static void
branch(struct walk *w, uint32_t j)
{
	struct hf_align *o = w->out;
	uint32_t n = 0;

	while (j > 0 && w->s[j - 1].turn_row == w->s[j].turn_row)
		j--;
	for (uint32_t k = 0; k < j; k++) {
		/* What a later turn inserted is not on the parent's path. */
		if (w->s[k].anchor_row != 0)
			j = 0;
	}
	o->how = HF_ALIGN_BRANCH;
	o->keep = j;
	o->first_new = j == 0 ? 0 : w->at[j];
	for (uint32_t k = 0; k < o->n_heard; k++)
		if (o->heard[k].s < j)
			o->heard[n++] = o->heard[k];
	o->n_heard = n;
	n = 0;
	for (uint32_t k = 0; k < o->n_insert; k++)
		if (o->insert[k].s < j)
			o->insert[n++] = o->insert[k];
	o->n_insert = n;
}

static void
walk(struct walk *w)
{
	struct hf_align *o = w->out;
	bool branched = false;

	while (w->j < w->n && w->i < w->m && !branched) {
		w->at[w->j] = w->i;
		if (same(&w->s[w->j], &w->c[w->i])) {
			w->i++;
			w->j++;
		} else if (same_whole(&w->s[w->j], &w->c[w->i])) {
			heard(w, w->i++);
			w->j++;
		} else {
			branched = !step(w);
		}
	}
	if (branched) {
		branch(w, w->j);
	} else if (w->j < w->n) {
		/* The list ends inside the view: the turn whose input it ends
		 * with is to be answered again; after an answer, go on from
		 * there on a new branch. */
		if (w->j > 0 &&
		    (!is_answer(&w->c[w->m - 1]) ||
			w->s[w->j - 1].turn_row == w->s[w->j].turn_row)) {
			branch(w, w->j - 1);
		} else {
			w->at[w->j] = w->i;
			branch(w, w->j);
		}
	} else {
		o->how = o->n_heard + o->n_insert > 0 ? HF_ALIGN_MERGED :
							HF_ALIGN_PREFIX;
		o->keep = w->n;
		o->first_new = w->i;
	}
}

/* In auto mode: is this list a view of the stored conversation at all? */
static bool
is_view(struct walk *w)
{
	if (w->i > 0 || same_whole(&w->s[0], &w->c[0]))
		return w->m > 1; /* one item that was said before is
				  * said again: "yes" */
	return greeting(w);
}

int
hf_align(enum hf_history_mode mode, const struct hf_item *stored,
    uint32_t n_stored, const struct hf_item *client, uint32_t n_client,
    struct hf_arena *a, struct hf_align *out)
{
	struct walk w = { .s = stored,
		.c = client,
		.n = n_stored,
		.m = n_client,
		.out = out };
	uint32_t k;

	*out = (struct hf_align){ .how = HF_ALIGN_DELTA, .keep = n_stored };
	if (n_stored == 0) {
		out->how = HF_ALIGN_FRESH;
		return 0;
	}
	if (mode == HF_HISTORY_DELTA || n_client == 0)
		return 0;
	while (w.i < w.m && w.i < w.n && same(&stored[w.i], &client[w.i]))
		w.i++;
	if (w.i == w.n) {
		out->how = HF_ALIGN_PREFIX;
		out->first_new = w.n;
		return 0;
	}
	k = w.i == 0 ? window(&w) : 0;
	if (k == 0 && mode == HF_HISTORY_AUTO && !is_view(&w))
		return 0;
	w.at = hf_arena_alloc(a, (w.n + 1) * sizeof(*w.at));
	out->heard = hf_arena_alloc(a, w.n * sizeof(*out->heard));
	out->insert = hf_arena_alloc(a, w.m * sizeof(*out->insert));
	if (w.at == NULL || out->heard == NULL || out->insert == NULL)
		return HF_ENOMEM;
	if (k > 0) {
		out->how = HF_ALIGN_WINDOW;
		out->first_new = k;
		heard_in_window(&w, k);
		return 0;
	}
	w.j = w.i;
	for (k = 0; k <= w.j; k++)
		w.at[k] = k;
	walk(&w);
	return 0;
}
