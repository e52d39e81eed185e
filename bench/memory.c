/*
 * Sessions' histories, right, or wrong in the way of one seeded bug.
 */
#include <config.h>

#include "bench/memory.h"

#include <stdlib.h>

#include "base/check.h"
#include "bench/answer.h"
#include "bench/journal.h"

struct hf_session {
	struct hf_memory *m;
	char *name;
	json_t *history; /* what was said and heard */
	void *slot;
	/* the last whole answer, and what it answered: for repeats */
	json_t *answer, *asked;
	char *key;
	bool unsure; /* whether it arrived */
	/* for bugs: */
	json_t *dropped;	      /* messages of turns that were dropped */
	json_t *knew[HF_MAX_TARGETS]; /* what a target was told last */
};

struct hf_memory {
	enum hf_bug bug;
	json_t *index; /* name -> place in session[] */
	struct hf_session **session;
	size_t n_session;
	struct hf_session *last;    /* of which another target was told */
	struct hf_journal *journal; /* or NULL */
};

static bool
has(const struct hf_session *s, enum hf_bug bug)
{
	return s->m->bug == bug;
}

/* --- what it remembers ---------------------------------------------------- */

static void
append_all(json_t *to, json_t *from, size_t at, size_t end)
{
	for (; at < end && at < json_array_size(from); at++)
		json_array_append(to, json_array_get(from, at));
}

static struct hf_str
text_of(json_t *message)
{
	return hf_json_str(json_object_get(message, "content"));
}

/* Is 'part' the beginning of 'whole', and not all of it? */
static bool
is_part(struct hf_str part, struct hf_str whole)
{
	return part.size > 0 && part.size < whole.size &&
	    memcmp(part.p, whole.p, part.size) == 0;
}

/* Bug: what was made, instead of what the client heard of it. */
static void
put_said_for_heard(const struct hf_session *s, json_t *list)
{
	json_t *m;
	size_t i;

	json_array_foreach(list, i, m)
	{
		json_t *was = json_array_get(s->history, i);

		if (hf_view_has_role(m, "assistant") &&
		    is_part(text_of(m), text_of(was)))
			json_array_set(list, i, was);
	}
}

json_t *
hf_session_begin(struct hf_session *s, json_t *messages)
{
	size_t n = json_array_size(messages);
	json_t *out = json_array();

	bool whole = hf_view_has_role(json_array_get(messages, 0), "system");

	if (!whole)
		append_all(out, s->history, 0, SIZE_MAX);
	append_all(out, messages, 0, n - 1);
	if (has(s, HF_BUG_SAID))
		put_said_for_heard(s, out);
	if (has(s, HF_BUG_GHOST) && whole) {
		append_all(out, s->history, n - 1, SIZE_MAX);
		append_all(out, s->dropped, 0, SIZE_MAX);
	}
	append_all(out, messages, n - 1, n);
	return out;
}

json_t *
hf_session_repeat(
    struct hf_session *s, json_t *messages, const char *key, bool marked)
{
	bool same;

	if (s->answer == NULL || has(s, HF_BUG_DOUBLE))
		return NULL;
	if (key != NULL)
		same = s->key != NULL && strcmp(key, s->key) == 0;
	else
		same = (marked || s->unsure) && json_equal(messages, s->asked);
	return same ? s->answer : NULL;
}

static void
set(json_t **to, json_t *o)
{
	json_incref(o);
	json_decref(*to);
	*to = o;
}

/* The same, but not in the file. */
static void
end_turn(struct hf_session *s, const struct hf_turn_end *t)
{
	json_decref(s->history);
	s->history = json_copy(t->conversation);
	json_array_append(s->history, t->answer);
	json_array_clear(s->dropped);
	s->unsure = false;
	if (t->target < 0)
		return;
	set(&s->answer, t->answer);
	set(&s->asked, t->messages);
	free(s->key);
	s->key = t->key == NULL ? NULL : hf_xstrdup(t->key);
	json_decref(s->knew[t->target]);
	s->knew[t->target] = json_copy(s->history);
}

void
hf_session_end(struct hf_session *s, const struct hf_turn_end *t)
{
	json_t *o;

	end_turn(s, t);
	if (s->m->journal == NULL)
		return;
	o = json_pack("{s:s,s:O,s:O,s:s?,s:i}", "session", s->name, "messages",
	    t->messages, "answer", t->answer, "key", t->key, "target",
	    t->target);
	HF_CHECK(o != NULL);
	hf_journal_put(s->m->journal, o);
}

void
hf_session_drop(struct hf_session *s, json_t *conversation)
{
	size_t n = json_array_size(conversation);

	append_all(s->dropped, conversation, n - 1, n);
}

/* --- what it tells -------------------------------------------------------- */

/* Where the k-th last exchange before the last message begins; 0: there are
 * not so many. */
static size_t
exchange(json_t *list, unsigned k)
{
	size_t i = json_array_size(list) - 1;

	while (k > 0 && i > 1) {
		i--;
		k -= hf_view_has_role(json_array_get(list, i), "user");
	}
	return k == 0 ? i : 0;
}

/* The list without those from 'at' to 'end'. */
static json_t *
without(json_t *list, size_t at, size_t end)
{
	json_t *out = json_array();

	append_all(out, list, 0, at);
	append_all(out, list, end, SIZE_MAX);
	return out;
}

static json_t *
reordered(json_t *list)
{
	size_t first = exchange(list, 2), second = exchange(list, 1);
	json_t *out;

	if (first == 0)
		return json_incref(list);
	out = json_array();
	append_all(out, list, 0, first);
	append_all(out, list, second, json_array_size(list) - 1);
	append_all(out, list, first, second);
	append_all(out, list, json_array_size(list) - 1, SIZE_MAX);
	return out;
}

static json_t *
without_results(json_t *list)
{
	json_t *out = json_array(), *m;
	size_t i;

	json_array_foreach(list, i, m) if (!hf_view_has_role(m, "tool"))
	    json_array_append(out, m);
	return out;
}

/* Without a result that stands last, and the call before it. */
static json_t *
called_again(json_t *list)
{
	size_t n = json_array_size(list);

	if (n < 2 || !hf_view_has_role(json_array_get(list, n - 1), "tool"))
		return json_incref(list);
	return without(list, n - 2, n);
}

static json_t *
last_only(json_t *list)
{
	json_t *out = json_array();
	size_t n = json_array_size(list);

	while (n > 1 && !hf_view_has_role(json_array_get(list, n - 1), "user"))
		n--;
	append_all(out, list, n - 1, n);
	return out;
}

/* Another session's history, and this one's last message. */
static json_t *
swapped(const struct hf_session *s, json_t *list)
{
	const struct hf_session *other = s->m->last;
	json_t *out;

	if (other == NULL || other == s)
		return json_incref(list);
	out = json_copy(other->history);
	append_all(out, list, json_array_size(list) - 1, SIZE_MAX);
	return out;
}

/* What it knew when it answered last, and what comes now. */
static json_t *
stale(const struct hf_session *s, json_t *list, unsigned target)
{
	json_t *out;

	if (s->knew[target] == NULL)
		return json_incref(list);
	out = json_copy(s->knew[target]);
	append_all(out, list, json_array_size(s->history), SIZE_MAX);
	return out;
}

static json_t *
tell_later(struct hf_session *s, json_t *list)
{
	size_t from;
	json_t *out;

	switch (s->m->bug) {
	case HF_BUG_LAST_TURN:
		from = exchange(list, 1);
		return from == 0 ?
		    json_incref(list) :
		    without(list, from, json_array_size(list) - 1);
	case HF_BUG_TRIM:
		from = exchange(list, 2);
		return from == 0 ? json_incref(list) : without(list, 1, from);
	case HF_BUG_SWAP:
		out = swapped(s, list);
		s->m->last = s;
		return out;
	case HF_BUG_RERUN:
		return called_again(list);
	case HF_BUG_LAST_ONLY:
		return last_only(list);
	case HF_BUG_REORDER:
		return reordered(list);
	case HF_BUG_LOSE_RESULT:
		return without_results(list);
	case HF_BUG_NONE:
	case HF_BUG_STALE:
	case HF_BUG_SAID:
	case HF_BUG_GHOST:
	case HF_BUG_DOUBLE:
	case HF_BUG_FAKE_END:
	case HF_BUG_COUNT:
		break;
	}
	return json_incref(list);
}

json_t *
hf_session_tell(
    struct hf_session *s, json_t *conversation, unsigned target, bool later)
{
	if (has(s, HF_BUG_STALE))
		return stale(s, conversation, target);
	return later ? tell_later(s, conversation) : json_incref(conversation);
}

/* --- life ----------------------------------------------------------------- */

struct hf_memory *
hf_memory_new(enum hf_bug bug)
{
	struct hf_memory *m = hf_xcalloc(1, sizeof(*m));

	m->bug = bug;
	m->index = json_object();
	return m;
}

void **
hf_session_slot(struct hf_session *s)
{
	return &s->slot;
}

static struct hf_session *
new_session(struct hf_memory *m, const char *name)
{
	struct hf_session *s = hf_xcalloc(1, sizeof(*s));

	s->m = m;
	s->name = hf_xstrdup(name);
	s->history = json_array();
	s->dropped = json_array();
	m->session =
	    reallocarray(m->session, m->n_session + 1, sizeof(*m->session));
	HF_CHECK(m->session != NULL);
	json_object_set_new(
	    m->index, name, json_integer((json_int_t)m->n_session));
	m->session[m->n_session++] = s;
	return s;
}

struct hf_session *
hf_memory_session(struct hf_memory *m, struct hf_str name)
{
	char *key = hf_xstrndup(name.p, name.size);
	json_t *at = json_object_get(m->index, key);
	struct hf_session *s = at != NULL ? m->session[json_integer_value(at)] :
					    new_session(m, key);

	free(key);
	return s;
}

/* A turn that ended before this process began. */
static void
read_back(void *arg, json_t *o)
{
	struct hf_session *s =
	    hf_memory_session(arg, hf_json_str(json_object_get(o, "session")));
	struct hf_turn_end t = { .messages = json_object_get(o, "messages"),
		.answer = json_object_get(o, "answer"),
		.key = json_string_value(json_object_get(o, "key")),
		.target =
		    (int)json_integer_value(json_object_get(o, "target")) };

	t.conversation = hf_session_begin(s, t.messages);
	end_turn(s, &t);
	json_decref(t.conversation);
	s->unsure = t.target >= 0;
}

int
hf_memory_keep(struct hf_memory *m, const char *path, struct hf_error *e)
{
	return hf_journal_open(&m->journal, path, read_back, m, e);
}

void
hf_memory_free(struct hf_memory *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i < m->n_session; i++) {
		struct hf_session *s = m->session[i];

		free(s->name);
		free(s->key);
		json_decref(s->answer);
		json_decref(s->asked);
		json_decref(s->history);
		json_decref(s->dropped);
		for (unsigned k = 0; k < HF_MAX_TARGETS; k++)
			json_decref(s->knew[k]);
		free(s);
	}
	free(m->session);
	json_decref(m->index);
	hf_journal_close(m->journal);
	free(m);
}
