/*
 * Judging plays.  Reads the providers' log; everything else is pure.
 */
#include <config.h>

#include "bench/judge.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/answer.h"

#define MAX_EXAMPLES 20

struct judge {
	const struct hf_play_conf *conf;
	struct hf_plays *plays;
	struct hf_counts *n;
	struct hf_bleed *bleed;
	json_t *by_user; /* end user's id -> index of play */
	json_t *examples;
	struct answered {
		unsigned by[2];
	} (*answered)[HF_MAX_TURNS];
	/* per play and turn: how often the
	 * first and the second answered */
};

/* --- answers -------------------------------------------------------------- */

static void
count_tries(const struct hf_play *p, struct hf_counts *n)
{
	for (unsigned k = 0; k < p->c->n_user; k++) {
		n->broken += p->broken[k];
		n->retries += p->retries[k];
		n->retried += p->retries[k] > 0;
		if (p->retries[k] > n->most_retries)
			n->most_retries = p->retries[k];
	}
}

void
hf_judge_answers(const struct hf_play_conf *conf, struct hf_plays *plays,
    struct hf_counts *n)
{
	struct hf_bleed *b = hf_bleed_new(conf->suite);

	for (unsigned i = 0; i < plays->n_play; i++) {
		struct hf_play *p = &plays->play[i];

		for (unsigned k = 0; k < p->n_answered; k++)
			p->foreign += hf_bleed_count(
			    b, hf_str(p->answer[k]), p->c, p->canary);
		n->errors += p->error[0] != '\0';
		count_tries(p, n);
		n->bleed += p->foreign;
		p->preserved = p->n_answered == p->c->n_user &&
		    strstr(p->answer[p->c->n_user - 1], p->c->fact) != NULL &&
		    p->foreign == 0;
	}
	hf_bleed_free(b);
}

/* --- payloads ------------------------------------------------------------- */

static bool
says(json_t *m, const char *role, const char *text)
{
	return hf_str_is(hf_json_str(json_object_get(m, "role")), role) &&
	    hf_str_is(hf_json_str(json_object_get(m, "text")), text) &&
	    json_object_get(m, "calls") == NULL &&
	    json_object_get(m, "call_id") == NULL;
}

/* Message number i of the history up to user message 'turn'. */
static void
expected(
    const struct hf_play *p, unsigned i, const char **role, const char **text)
{
	*role = i == 0 ? "system" : i % 2 == 1 ? "user" : "assistant";
	if (i == 0)
		*text = p->system_text;
	else if (i % 2 == 1)
		*text = p->c->user[i / 2];
	else
		*text = p->answer[i / 2 - 1];
}

const char *
hf_judge_payload(const struct hf_play_conf *conf, const struct hf_play *p,
    unsigned turn, bool fallback, json_t *view)
{
	size_t n = json_array_size(view), want = 2 + 2 * (size_t)turn;
	const char *role, *text;

	if (turn > p->n_answered)
		return "a turn that was not played yet";
	if (fallback && conf->system[p->system].stateless) {
		bool lead =
		    says(json_array_get(view, 0), "system", p->system_text);

		if (n == 1u + lead &&
		    says(json_array_get(view, n - 1), "user", p->c->user[turn]))
			return NULL;
		return "more or less than the last user message";
	}
	for (unsigned i = 0; i < n && i < want; i++) {
		expected(p, i, &role, &text);
		if (!says(json_array_get(view, i), role, text))
			return "a message is missing, changed or misplaced";
	}
	if (n < want)
		return "the end of the history is missing";
	return n > want ? "more than the history" : NULL;
}

/* Is one of the caller's turns in this payload more than once? */
static bool
doubled(const struct hf_play *p, json_t *view)
{
	unsigned seen[HF_MAX_TURNS] = { 0 };
	json_t *m;
	size_t i;

	json_array_foreach(view, i, m)
	{
		int turn =
		    hf_str_is(hf_json_str(json_object_get(m, "role")), "user") ?
		    hf_conv_turn(
			p->c, hf_json_str(json_object_get(m, "text"))) :
		    -1;

		if (turn >= 0 && ++seen[turn] > 1)
			return true;
	}
	return false;
}

static void
add_example(
    struct judge *j, const struct hf_play *p, const char *what, json_t *entry)
{
	if (json_array_size(j->examples) >= MAX_EXAMPLES)
		return;
	json_array_append_new(j->examples,
	    json_pack("{s:s,s:s?,s:O}", "what", what, "user",
		p == NULL ? NULL : p->user, "payload", entry));
}

static void
judge_turn(struct judge *j, struct hf_play *p, unsigned turn, bool fallback,
    json_t *entry)
{
	bool fault =
	    !hf_str_is(hf_json_str(json_object_get(entry, "fault")), "none");
	struct answered *a = &j->answered[p - j->plays->play][turn];

	/* A turn may be bought again by a retry that the client needed, and
	 * by nothing else. */
	if (!fault && a->by[fallback] > p->retries[turn]) {
		j->n->duplicates++;
		add_example(j, p, "asked and answered twice", entry);
	} else if (!fault && a->by[fallback] > 0) {
		j->n->repeated++;
	} else if (!fault && a->by[!fallback] > 0) {
		j->n->late++;
	}
	a->by[fallback] += !fault;
	if (turn + 1 < p->c->n_user)
		return;
	if (fallback)
		p->fallback_answered += !fault;
	else if (fault)
		p->primary_failed++;
	else
		p->primary_answered++;
}

static void
judge_entry(struct judge *j, json_t *entry)
{
	struct hf_str user = hf_json_str(json_object_get(entry, "user"));
	json_t *view = json_object_get(entry, "messages"), *index, *m;
	bool fallback = !hf_str_is(
	    hf_json_str(json_object_get(entry, "provider")), "primary");
	const char *wrong;
	struct hf_play *p;
	unsigned foreign = 0;
	size_t i;
	int turn;

	j->n->payloads++;
	if (json_object_get(entry, "refused") != NULL) {
		j->n->refused++;
		add_example(j, NULL, "refused by a strict provider", entry);
		return;
	}
	index = user.p == NULL ? NULL : json_object_get(j->by_user, user.p);
	if (index == NULL) {
		j->n->unattributed++;
		add_example(j, NULL, "of no conversation of ours", entry);
		return;
	}
	p = &j->plays->play[json_integer_value(index)];
	json_array_foreach(view, i, m) foreign += hf_bleed_count(
	    j->bleed, hf_json_str(json_object_get(m, "text")), p->c, p->canary);
	turn = hf_conv_turn(p->c, hf_view_last_user(view));
	wrong = turn < 0 ?
	    "the last user message is not of this conversation" :
	    hf_judge_payload(j->conf, p, (unsigned)turn, fallback, view);
	if (wrong != NULL) {
		p->bad_payloads++;
		j->n->bad_payloads++;
		j->n->doubled += doubled(p, view);
	}
	p->foreign += foreign;
	j->n->bleed += foreign;
	if (wrong != NULL || foreign > 0)
		add_example(j, p, wrong != NULL ? wrong : "bleed", entry);
	if (turn >= 0)
		judge_turn(j, p, (unsigned)turn, fallback, entry);
}

static int
read_log(struct judge *j, const char *path, struct hf_error *e)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int rc = 0;

	if (f == NULL)
		return hf_fail_errno(e, "%s", path);
	while (rc == 0 && getline(&line, &size, f) > 0) {
		json_t *entry = json_loads(line, JSON_ALLOW_NUL, NULL);

		if (entry == NULL)
			rc = hf_fail(e, HF_ECORRUPT, "%s: a broken line", path);
		else
			judge_entry(j, entry);
		json_decref(entry);
	}
	free(line);
	fclose(f);
	return rc;
}

int
hf_judge_log(const struct hf_play_conf *conf, struct hf_plays *plays,
    const char *path, struct hf_counts *n, json_t *examples, struct hf_error *e)
{
	struct judge j = { .conf = conf,
		.plays = plays,
		.n = n,
		.bleed = hf_bleed_new(conf->suite),
		.by_user = json_object(),
		.examples = examples };
	int rc;

	j.answered = hf_xcalloc(plays->n_play, sizeof(*j.answered));
	for (unsigned i = 0; i < plays->n_play; i++)
		json_object_set_new(
		    j.by_user, plays->play[i].user, json_integer(i));
	rc = read_log(&j, path, e);
	for (unsigned i = 0; rc == 0 && i < plays->n_play; i++) {
		struct hf_play *p = &plays->play[i];
		bool over =
		    p->fallback_answered > 0 && p->primary_answered == 0;

		n->failed_over += over;
		n->unasked += over && p->primary_failed == 0;
		n->not_failed_over += !over;
		n->answered_by_primary += p->primary_answered > 0;
		/* A payload with another's words spoils the play. */
		p->preserved = p->preserved && p->foreign == 0;
	}
	free(j.answered);
	json_decref(j.by_user);
	hf_bleed_free(j.bleed);
	return rc;
}
