/*
 * Reading a published set: a file of conversations and a file that says how
 * the first provider fails on the probe's turn of each.  Both are somebody
 * else's; nothing in them is trusted, and what is wrong is told with file,
 * conversation and member.
 */
#include <config.h>

#include "bench/suite_make.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/answer.h"

#define MAX_CONVS 10000

/* Where in the files the reading is. */
struct place {
	const char *file;
	char who[128]; /* "conversation x", "row 3" */
	struct hf_error *e;
};

static int HF_PRINTF(3, 4)
    wrong(const struct place *at, const char *member, const char *fmt, ...)
{
	char what[120];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return hf_fail(at->e, HF_EINVAL, "%s: %s: %s: %s", at->file, at->who,
	    member, what);
}

static json_t *
load(const char *path, struct hf_error *e)
{
	json_error_t je;
	json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &je);

	if (root == NULL) {
		hf_fail(
		    e, HF_EINVAL, "%s: line %d: %s", path, je.line, je.text);
		return NULL;
	}
	if (json_is_array(root) && json_array_size(root) > 0 &&
	    json_array_size(root) <= MAX_CONVS)
		return root;
	hf_fail(e, HF_EINVAL, "%s: expected an array of 1 to %d objects", path,
	    MAX_CONVS);
	json_decref(root);
	return NULL;
}

/* --- members ---------------------------------------------------------------
 */

static int
get_text(
    const struct place *at, json_t *o, const char *member, const char **out)
{
	json_t *v = json_object_get(o, member);

	if (v == NULL)
		return wrong(at, member, "missing");
	if (!json_is_string(v) || json_string_length(v) == 0)
		return wrong(at, member,
		    "expected a string that is not "
		    "empty");
	*out = json_string_value(v);
	return 0;
}

/* So that it can stand in ids, logs and tables. */
static int
get_word(
    const struct place *at, json_t *o, const char *member, const char **out)
{
	static const char ok[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "abcdefghijklmnopqrstuvwxyz0123456789_-";
	int rc = get_text(at, o, member, out);

	if (rc == 0 &&
	    (strlen(*out) >= HF_CONV_ID || (*out)[strspn(*out, ok)] != '\0'))
		return wrong(at, member,
		    "expected 1 to %d letters, digits, "
		    "_ and -",
		    HF_CONV_ID - 1);
	return rc;
}

static int
get_index(const struct place *at, json_t *o, const char *member, size_t *out)
{
	json_t *v = json_object_get(o, member);

	if (v == NULL)
		return wrong(at, member, "missing");
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return wrong(at, member, "expected an index of \"turns\"");
	*out = (size_t)json_integer_value(v);
	return 0;
}

/* --- conversations ---------------------------------------------------------
 */

/* Message number i: users at even places, assistants at odd ones. */
static int
read_turn(const struct place *at, struct hf_conv *c, json_t *turn, size_t i)
{
	const char *role, *text, *want = i % 2 == 0 ? "user" : "assistant";
	struct place in = *at;
	int rc;

	snprintf(in.who, sizeof(in.who), "%.72s: turns[%zu]", at->who, i);
	rc = get_text(&in, turn, "role", &role);
	if (rc == 0)
		rc = get_text(&in, turn, "content", &text);
	if (rc != 0)
		return rc;
	if (strcmp(role, want) != 0)
		return wrong(&in, "role", "expected \"%s\"", want);
	if (i % 2 == 1) {
		c->assistant[i / 2] = text;
		return 0;
	}
	if (hf_conv_turn(c, hf_str(text)) >= 0)
		return wrong(&in, "content",
		    "the same was said before in "
		    "this conversation");
	c->user[c->n_user++] = hf_xstrdup(text);
	return 0;
}

static int
read_turns(const struct place *at, struct hf_conv *c, json_t *turns)
{
	size_t n = json_array_size(turns), i;
	json_t *turn;
	int rc;

	if (!json_is_array(turns))
		return wrong(at, "turns", "expected an array");
	if (n % 2 == 0 || n < 3 || n > 2 * HF_MAX_TURNS - 1)
		return wrong(at, "turns",
		    "expected 3 to %d messages, the "
		    "last one the user's",
		    2 * HF_MAX_TURNS - 1);
	c->n_messages = (unsigned)n;
	json_array_foreach(turns, i, turn)
	{
		rc = read_turn(at, c, turn, i);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int
read_indexes(const struct place *at, struct hf_conv *c, json_t *o)
{
	size_t fact, probe;
	int rc = get_index(at, o, "fact_turn_index", &fact);

	if (rc == 0)
		rc = get_index(at, o, "probe_turn_index", &probe);
	if (rc != 0)
		return rc;
	if (probe + 1 != c->n_messages)
		return wrong(at, "probe_turn_index",
		    "is not the last of "
		    "\"turns\"");
	if (fact >= probe || fact % 2 != 0)
		return wrong(at, "fact_turn_index",
		    "is not a user message "
		    "before the probe");
	c->mark = c->user[fact / 2];
	if (strstr(c->mark, c->fact) == NULL)
		return wrong(at, "expected_fact",
		    "is not in the message at "
		    "fact_turn_index");
	return 0;
}

/* What a provider must know of this conversation. */
static int
learn(const struct place *at, struct hf_lore *lore, const struct hf_conv *c)
{
	const char *probe = c->user[c->n_user - 1];
	json_t *facts = json_object_get(lore->fact, probe), *known;

	for (unsigned i = 0; i + 1 < c->n_user; i++)
		if (json_object_get(lore->reply, c->user[i]) == NULL)
			json_object_set_new(lore->reply, c->user[i],
			    json_string(c->assistant[i]));
	if (facts == NULL) {
		facts = json_object();
		json_object_set_new(lore->fact, probe, facts);
	}
	known = json_object_get(facts, c->mark);
	if (known == NULL)
		json_object_set_new(facts, c->mark, json_string(c->fact));
	else if (strcmp(json_string_value(known), c->fact) != 0)
		return wrong(at, "expected_fact",
		    "another conversation of "
		    "equal words expects another");
	return 0;
}

static int
read_conv(struct place *at, struct hf_suite *s, json_t *o, size_t i)
{
	struct hf_conv *c = &s->conv[s->n_conv];
	const char *id, *fact;
	int rc;

	snprintf(at->who, sizeof(at->who), "conversation number %zu", i + 1);
	rc = get_word(at, o, "id", &id);
	if (rc != 0)
		return rc;
	snprintf(at->who, sizeof(at->who), "conversation %s", id);
	if (hf_suite_find(s, hf_str(id)) != NULL)
		return wrong(at, "id", "twice in the file");
	s->n_conv++; /* from here on hf_suite_free() frees it */
	snprintf(c->id, sizeof(c->id), "%s", id);
	rc = get_word(at, o, "fact_type", &c->fact_type);
	if (rc == 0)
		rc = get_text(at, o, "expected_fact", &fact);
	if (rc != 0)
		return rc;
	c->fact = hf_xstrdup(fact);
	if (strstr(HF_ANSWER_UNKNOWN, fact) != NULL)
		return wrong(at, "expected_fact", "is part of \"%s\"",
		    HF_ANSWER_UNKNOWN);
	rc = read_turns(at, c, json_object_get(o, "turns"));
	if (rc == 0)
		rc = read_indexes(at, c, o);
	return rc == 0 ? learn(at, s->lore, c) : rc;
}

/* --- failures --------------------------------------------------------------
 */

static int
read_row(struct place *at, struct hf_suite *s, json_t *o, size_t i)
{
	static const enum hf_fault_kind kinds[] = { HF_FAULT_SILENCE,
		HF_FAULT_HTTP_502, HF_FAULT_HTTP_429 };
	static const char *const modes[] = { "timeout", "api_error",
		"rate_limit" };
	const struct hf_conv *found;
	const char *id, *mode;
	struct hf_conv *c;
	size_t turn, k = 0;
	int rc;

	snprintf(at->who, sizeof(at->who), "row number %zu", i + 1);
	rc = get_word(at, o, "conversation_id", &id);
	if (rc != 0)
		return rc;
	snprintf(at->who, sizeof(at->who), "conversation %s", id);
	found = hf_suite_find(s, hf_str(id));
	if (found == NULL)
		return wrong(at, "conversation_id",
		    "no such conversation in "
		    "the other file");
	c = &s->conv[found - s->conv];
	if (c->failure != HF_FAULT_NONE)
		return wrong(at, "conversation_id", "twice in the file");
	rc = get_index(at, o, "failure_turn", &turn);
	if (rc == 0)
		rc = get_text(at, o, "mode", &mode);
	if (rc != 0)
		return rc;
	if (turn + 1 != c->n_messages)
		return wrong(at, "failure_turn", "is not the probe's turn");
	while (k < hf_countof(modes) && strcmp(modes[k], mode) != 0)
		k++;
	if (k == hf_countof(modes))
		return wrong(at, "mode",
		    "expected timeout, api_error or "
		    "rate_limit");
	o = json_object_get(o, "fallback_provider");
	if (o != NULL && !json_is_null(o))
		return wrong(at, "fallback_provider",
		    "expected null: there "
		    "is one fallback");
	hf_conv_fails_last(c, kinds[k]);
	return 0;
}

static int
read_failures(struct hf_suite *s, const char *path, struct hf_error *e)
{
	struct place at = { .file = path, .e = e };
	json_t *root = load(path, e), *o;
	int rc = root == NULL ? HF_EINVAL : 0;
	size_t i;

	json_array_foreach(root, i, o)
	{
		if (rc == 0)
			rc = read_row(&at, s, o, i);
	}
	for (i = 0; rc == 0 && i < s->n_conv; i++) {
		snprintf(
		    at.who, sizeof(at.who), "conversation %s", s->conv[i].id);
		if (s->conv[i].failure == HF_FAULT_NONE)
			rc = wrong(&at, "mode", "no row for it");
	}
	json_decref(root);
	return rc;
}

int
hf_suite_published(struct hf_suite **out, const char *conversations,
    const char *manifest, uint64_t seed, struct hf_error *e)
{
	struct place at = { .file = conversations, .e = e };
	struct hf_suite *s = hf_suite_new("published", seed, 0);
	int rc = 0;
	json_t *o;
	size_t i;

	hf_suite_paper_frame(s);
	s->lore = hf_xcalloc(1, sizeof(*s->lore));
	s->lore->reply = json_object();
	s->lore->fact = json_object();
	s->source = load(conversations, e);
	if (s->source == NULL) {
		hf_suite_free(s);
		return HF_EINVAL;
	}
	free(s->conv);
	s->conv = hf_xcalloc(json_array_size(s->source), sizeof(*s->conv));
	json_array_foreach(s->source, i, o)
	{
		if (rc == 0)
			rc = read_conv(&at, s, o, i);
	}
	if (rc == 0)
		rc = read_failures(s, manifest, e);
	if (rc != 0) {
		hf_suite_free(s);
		return rc;
	}
	*out = s;
	return 0;
}
