/*
 * What a provider must be told: message by message what this conversation has
 * said and heard.  Pure.
 */
#include <config.h>

#include "bench/judge.h"

#include "bench/resume.h"

#define SPACES " \t\r\n"

static bool
same_json(struct hf_str a, struct hf_str b)
{
	json_t *x = json_loadb(a.p == NULL ? "" : a.p, a.size, 0, NULL);
	json_t *y = json_loadb(b.p == NULL ? "" : b.p, b.size, 0, NULL);
	bool same = x != NULL && y != NULL && json_equal(x, y) == 1;

	json_decref(x);
	json_decref(y);
	return same;
}

bool
hf_same_calls(json_t *expected, json_t *calls)
{
	json_t *e;
	size_t i;

	if (json_array_size(expected) != json_array_size(calls))
		return false;
	json_array_foreach(expected, i, e)
	{
		json_t *c = json_array_get(calls, i);

		if (!json_equal(json_object_get(e, "name"),
			json_object_get(c, "name")) ||
		    !same_json(hf_json_str(json_object_get(e, "arguments")),
			hf_json_str(json_object_get(c, "arguments"))))
			return false;
	}
	return true;
}

static bool
says(json_t *m, const char *role, const char *text)
{
	return hf_str_is(hf_json_str(json_object_get(m, "role")), role) &&
	    hf_str_is(hf_json_str(json_object_get(m, "text")), text);
}

static bool
is_plain(json_t *m)
{
	return json_object_get(m, "calls") == NULL &&
	    json_object_get(m, "call_id") == NULL;
}

/* What was sent on a turn.  A result must go with the call before it. */
static bool
is_sent(
    json_t *view, size_t i, const struct hf_play *p, unsigned turn, bool loose)
{
	json_t *m = json_array_get(view, i), *calls, *id;

	if (!p->c->tool[turn])
		return says(m, "user", p->c->user[turn]) && is_plain(m);
	if (loose)
		return says(m, "tool", p->c->user[turn]);
	calls = json_object_get(json_array_get(view, i - 1), "calls");
	id = json_object_get(json_array_get(calls, 0), "id");
	return says(m, "tool", p->c->user[turn]) && json_is_string(id) &&
	    json_equal(id, json_object_get(m, "call_id"));
}

/* What the client heard of an answer that it interrupted, and perhaps what was
 * on its way; not the end. */
static bool
is_heard(json_t *m, const struct hf_play *p, unsigned turn)
{
	struct hf_str s = hf_json_str(json_object_get(m, "text"));
	const char *full = p->c->exact[turn], *heard = p->answer[turn];
	size_t n = strlen(heard);

	/* White space at the end may be lost on the way. */
	while (n > 0 && heard[n - 1] == ' ')
		n--;
	return hf_str_is(
		   hf_json_str(json_object_get(m, "role")), "assistant") &&
	    is_plain(m) && s.size >= n && s.size < strlen(full) &&
	    memcmp(s.p, full, s.size) == 0;
}

static bool
is_answer(json_t *m, const struct hf_play *p, unsigned turn, bool loose)
{
	if (p->left[turn])
		return is_heard(m, p, turn);
	return says(m, "assistant", p->answer[turn]) &&
	    json_object_get(m, "call_id") == NULL &&
	    (loose ||
		hf_same_calls(p->calls[turn], json_object_get(m, "calls")));
}

bool
hf_is_message(
    json_t *view, size_t i, const struct hf_play *p, size_t k, bool loose)
{
	json_t *m = json_array_get(view, i);
	unsigned turn = (unsigned)(k - 1) / 2;

	if (k == 0)
		return says(m, "system", p->system_text) && is_plain(m);
	if (k % 2 == 1)
		return is_sent(view, i, p, turn, loose);
	return is_answer(m, p, turn, loose);
}

/* Is what a provider is to go on with what the client has, so far? */
static bool
is_beginning(struct hf_str partial, const struct hf_play *p, unsigned turn)
{
	const char *has = turn < p->n_answered ? p->answer[turn] : p->partial;

	while (partial.size > 0 &&
	    memchr(SPACES, partial.p[partial.size - 1], 4) != NULL)
		partial.size--;
	return partial.size > 0 && has != NULL &&
	    strncmp(has, partial.p, partial.size) == 0;
}

/* The last thing that the caller said, and nothing else. */
static bool
is_last_only(const struct hf_play *p, unsigned turn, json_t *view, size_t n)
{
	bool lead = says(json_array_get(view, 0), "system", p->system_text);

	while (turn > 0 && p->c->tool[turn])
		turn--;
	return n == 1u + lead &&
	    says(json_array_get(view, n - 1), "user", p->c->user[turn]);
}

static bool
is_growing(json_t *m, const struct hf_play *p, unsigned turn)
{
	return hf_str_is(hf_json_str(json_object_get(m, "role")), "user") &&
	    hf_conv_grows(p->c, turn, hf_view_text(m));
}

static struct hf_wrong
reconcile(const char *what)
{
	return (struct hf_wrong){ HF_BLAME_RECONCILE, what };
}

struct hf_wrong
hf_judge_payload(const struct hf_play_conf *conf, const struct hf_play *p,
    unsigned turn, bool later, json_t *view)
{
	struct hf_asked_view v = hf_view_asked(view);
	size_t n = v.n, want = 2 + 2 * (size_t)turn;
	bool growing =
	    n > 0 && is_growing(json_array_get(view, n - 1), p, turn);

	if (turn > p->n_answered)
		return reconcile("a turn that was not played yet");
	if (v.partial.p != NULL && !is_beginning(v.partial, p, turn))
		return reconcile(
		    "to be gone on with what the client does not have");
	if (later && conf->system[p->system].stateless)
		return is_last_only(p, turn, view, n) || (growing && n <= 2) ?
		    (struct hf_wrong){ HF_BLAME_NOBODY, NULL } :
		    reconcile("more or less than the last user message");
	if (growing) { /* a beginning of what comes last */
		n--;
		want--;
	}
	for (size_t i = 0; i < n && i < want; i++)
		if (!hf_is_message(view, i, p, i, false))
			return hf_judge_history(p, view, n, want);
	if (n != want)
		return hf_judge_history(p, view, n, want);
	return (struct hf_wrong){ HF_BLAME_NOBODY, NULL };
}
