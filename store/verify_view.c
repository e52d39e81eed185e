/*
 * Verification: the path from the root to the head, and the view.
 */
#include <config.h>

#include "store/verify_int.h"

#include <stdlib.h>

#define NONE ((size_t)-1)

/* --- the path ------------------------------------------------------------ */

/* The turn that was opened last; the head is it or, if it was refused and
 * left the history again, its parent. */
static const struct hf_vturn *
last_opened(const struct hf_verify *v)
{
	struct hf_vturn *t, *last = NULL;
	size_t n;

	t = hf_vturns(v, &n);
	for (size_t i = 0; i < n; i++)
		if (t[i].started_us != 0)
			last = &t[i];
	return last;
}

static void
check_head(struct hf_verify *v)
{
	const struct hf_vturn *last = last_opened(v);
	int64_t head = v->s.head;

	if (last == NULL) {
		if (head != 0)
			hf_verify_add(v, true, "head", 0, -1,
			    "its head is "
			    "turn row %lld, but no turn was begun",
			    (long long)head);
		return;
	}
	if (head == last->id ||
	    (head == last->parent && last->state == HF_TURN_FAILED))
		return;
	hf_verify_add(v, true, "head", last->seq, -1,
	    "its head is turn row "
	    "%lld, which is not the turn that was begun last",
	    (long long)head);
}

void
hf_verify_path(struct hf_verify *v)
{
	struct hf_vturn *t;
	int64_t id = v->s.head, below = INT64_MAX;

	check_head(v);
	while (id != 0) {
		t = hf_vturn_find(v, id);
		if (t == NULL || id >= below) {
			/* check_head() or the turn's own check says so. */
			v->broken = true;
			return;
		}
		t->on_path = true;
		below = id;
		id = t->parent;
	}
}

/* --- the view ------------------------------------------------------------ */

void
hf_verify_note_item(struct hf_verify *v, const struct hf_item *it, bool unheard)
{
	struct hf_vitem n = { .row = it->row,
		.anchor = it->anchor_row,
		.skip = it->lead || unheard,
		.next = NONE };

	memcpy(n.digest, it->has_heard ? it->heard_digest : it->digest,
	    sizeof(n.digest));
	hf_buf_put(&v->items, &n, sizeof(n));
}

static size_t
find_item(const struct hf_vitem *item, size_t n, int64_t row)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (item[mid].row == row)
			return mid;
		if (item[mid].row < row)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NONE;
}

/* Link the items in the order of the view: as stored, but one with an anchor
 * stands before that, behind others with the same one.  'before[i]' is the
 * place that names item i.  False: no memory. */
static bool
link_items(struct hf_vitem *item, size_t n, size_t *first)
{
	size_t **before = calloc(n, sizeof(size_t *)), *tail = first;

	*first = NONE;
	if (before == NULL)
		return false;
	for (size_t i = 0; i < n; i++) {
		size_t at = item[i].anchor == 0 ?
		    NONE :
		    find_item(item, i, item[i].anchor);
		size_t *place = tail;

		if (at != NONE) {
			place = before[at];
			before[at] = &item[i].next;
		} else {
			tail = &item[i].next;
		}
		before[i] = place;
		item[i].next = *place;
		*place = i;
	}
	free(before);
	return true;
}

/* A turn that was refused takes itself out of the history, but not what its
 * request said was heard of earlier answers; the head's view is then the one
 * from before. */
static bool
is_excused(const struct hf_verify *v, const struct hf_vturn *head)
{
	struct hf_vturn *t;
	size_t n;

	t = hf_vturns(v, &n);
	for (size_t i = 0; i < n; i++)
		if (t[i].seq > head->seq && t[i].parent == head->id &&
		    t[i].state == HF_TURN_FAILED)
			return true;
	return false;
}

void
hf_verify_view(struct hf_verify *v)
{
	const struct hf_vturn *head =
	    v->s.head == 0 ? NULL : hf_vturn_find(v, v->s.head);
	uint8_t view[HF_DIGEST_SIZE] = { 0 }, next[HF_DIGEST_SIZE];
	struct hf_vitem *item = (struct hf_vitem *)(void *)v->items.data;
	size_t n = v->items.size / sizeof(*item), i = NONE;
	int64_t count = 0;

	if (v->broken || head == NULL)
		return;
	if (n > 0 && !link_items(item, n, &i)) {
		hf_fail(v->e, HF_ENOMEM, "history of %zu items", n);
		return;
	}
	for (; i != NONE; i = item[i].next) {
		if (item[i].skip)
			continue;
		hf_store_chain(&v->s.key.digest, view, item[i].digest, next);
		memcpy(view, next, sizeof(view));
		count++;
	}
	if (count == head->view_items &&
	    memcmp(view, head->view, sizeof(view)) == 0)
		return;
	if (is_excused(v, head))
		return;
	hf_verify_add(v, true, "view", head->seq, -1,
	    "its path gives another "
	    "view than was stored with it (%lld items, stored: %lld)",
	    (long long)count, (long long)head->view_items);
}
