/*
 * A payload that is not the history: in which way, and so what in a gateway is
 * to blame.  Pure.
 */
#include <config.h>

#include "bench/judge.h"

#include <stdlib.h>

#include "base/check.h"
#include "bench/answer.h"

/* What the messages of a payload are. */
struct sorted {
	bool *seen;	 /* this message of the history */
	size_t n_seen;	 /* of those before the last */
	bool again;	 /* an answer that was there already, */
	bool twice;	 /* ... or what was said, or a result */
	bool unknown;	 /* one that is none of them */
	bool other_call; /* one of them with other calls */
	bool order;
};

/* The message of the history that number i of the view is, from 'from' on and
 * before 'to'; SIZE_MAX: none. */
static size_t
find(const struct hf_play *p, json_t *view, size_t i, size_t from, size_t to,
    bool loose)
{
	for (size_t k = from; k < to; k++)
		if (hf_is_message(view, i, p, k, loose))
			return k;
	return SIZE_MAX;
}

/* Nothing is left of it but its place. */
static bool
is_empty(json_t *m)
{
	return hf_view_text(m).size == 0 && json_object_get(m, "calls") == NULL;
}

static void
sort(struct sorted *s, const struct hf_play *p, json_t *view, size_t n,
    size_t want)
{
	size_t last = 0; /* behind the one before */

	for (size_t i = 0; i < n; i++) {
		json_t *m = json_array_get(view, i);
		size_t k = find(p, view, i, last, want, false);

		if (k == SIZE_MAX)
			k = find(p, view, i, 0, last, false);
		if (k == SIZE_MAX) {
			k = find(p, view, i, last, want, true);
			s->other_call |= k != SIZE_MAX;
		}
		if (k == SIZE_MAX) {
			s->unknown |= !is_empty(m);
			continue;
		}
		if (s->seen[k]) {
			s->again = true;
			s->twice |= !hf_view_has_role(m, "assistant");
		} else if (k < last)
			s->order = true;
		s->n_seen += !s->seen[k] && k > 0 && k + 1 < want;
		s->seen[k] = true;
		last = k < last ? last : k + 1;
	}
}

static bool
is_whole(const struct sorted *s, size_t want)
{
	for (size_t k = 0; k < want; k++)
		if (!s->seen[k])
			return false;
	return true;
}

/* Are just the oldest messages missing, behind the system message? */
static bool
is_cut(const struct sorted *s, size_t want)
{
	size_t k = 1;

	if (!s->seen[0] || s->n_seen == 0)
		return false;
	while (k < want && !s->seen[k])
		k++;
	while (k < want && s->seen[k])
		k++;
	return k == want;
}

struct hf_wrong
hf_judge_history(const struct hf_play *p, json_t *view, size_t n, size_t want)
{
	struct sorted s = { .seen = hf_xcalloc(want + 1, sizeof(bool)) };
	struct hf_wrong w;

	sort(&s, p, view, n, want);
	if (s.twice || (s.again && is_whole(&s, want)))
		w = (struct hf_wrong){ HF_BLAME_DUPLICATE,
			"a message is there twice" };
	else if (s.unknown)
		w = (struct hf_wrong){ HF_BLAME_RECONCILE,
			"a message that was not said or heard so" };
	else if (s.order)
		w = (struct hf_wrong){ HF_BLAME_RECONCILE,
			"messages are in another order" };
	else if (s.other_call)
		w = (struct hf_wrong){ HF_BLAME_DIALECT,
			"another call or result than was made" };
	else if (is_cut(&s, want))
		w = (struct hf_wrong){ HF_BLAME_FIT,
			"the oldest turns are missing" };
	else
		w = (struct hf_wrong){ HF_BLAME_STORE, "a message is missing" };
	w.ghost = s.unknown;
	free(s.seen);
	return w;
}
