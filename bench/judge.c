/*
 * Judging what providers received, by their log.
 */
#include <config.h>

#include "bench/judge.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/resume.h"
#include "bench/window.h"

#define MAX_EXAMPLES 20

/* What the log says of one turn of one play. */
struct turn {
	unsigned answers[HF_MAX_LISTENERS]; /* by each provider */
	unsigned requests, failures;
	bool said;  /* text was sent before a failure */
	bool ended; /* with a finish reason, before a failure */
};

struct judge {
	const struct hf_play_conf *conf;
	struct hf_plays *plays;
	struct hf_counts *n;
	struct hf_bleed *bleed;
	json_t *by_user;   /* end user's id -> index of play */
	json_t *by_canary; /* the same by its mark */
	json_t *examples;
	struct turn (*turn)[HF_MAX_TURNS]; /* per play */
};

/* --- payloads ------------------------------------------------------------- */

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

/* Not the first target of the route. */
static bool
is_later(const struct judge *j, const struct hf_play *p, int provider)
{
	const struct hf_suite *s = j->conf->suite;

	return (unsigned)provider != s->route[p->c->route].target[0].listener;
}

static enum hf_join
join_of(json_t *entry, bool said)
{
	struct hf_str asked = hf_json_str(json_object_get(entry, "asked"));

	if (hf_str_is(asked, "prefill"))
		return HF_JOIN_PREFILL;
	if (hf_str_is(asked, "instruction"))
		return json_integer_value(json_object_get(entry, "repeated")) >
			0 ?
		    HF_JOIN_OVERLAP :
		    HF_JOIN_INSTRUCTION;
	return said ? HF_JOIN_HIDDEN : HF_JOIN_RESTART;
}

/* Counts how the request fails; false: it does not. */
static bool
count_failure(struct hf_tally *n, struct turn *t, json_t *entry)
{
	const char *name = json_string_value(json_object_get(entry, "fault"));
	const char *at = json_string_value(json_object_get(entry, "phase"));
	enum hf_fault_kind kind;
	enum hf_cut_phase phase;

	if (name == NULL || hf_fault_parse(name, &kind) != 0 ||
	    kind == HF_FAULT_NONE || kind == HF_FAULT_ALARM)
		return false;
	n->failures++;
	n->by_kind[kind]++;
	t->failures++;
	if (at != NULL && hf_phase_parse(at, &phase) == 0) {
		n->by_phase[phase]++;
		t->ended |= phase == HF_PHASE_FINISH;
	}
	t->said |= json_integer_value(json_object_get(entry, "sent")) > 0;
	return !hf_fault_is_harmless(kind);
}

/* A call of the provider that the storm is about. */
static void
count_storm(const struct judge *j, struct hf_tally *n, json_t *entry)
{
	const struct hf_fault_row *limit = &j->conf->suite->limit;

	if (limit->fault.kind != HF_FAULT_RATE_LIMIT ||
	    !hf_str_is(hf_json_str(json_object_get(entry, "provider")),
		limit->provider))
		return;
	n->storm_calls++;
	n->storm_refused += hf_str_is(
	    hf_json_str(json_object_get(entry, "fault")), "rate_limit");
}

static void
judge_turn(struct judge *j, struct hf_play *p, unsigned turn, unsigned provider,
    json_t *entry)
{
	struct turn *t = &j->turn[p - j->plays->play][turn];
	struct hf_tally *n = &j->n->tally[p->system];
	unsigned others = 0;

	count_storm(j, n, entry);
	if (t->requests++ > 0)
		n->joins[join_of(entry, t->said)]++;
	if (count_failure(n, t, entry))
		return;
	for (unsigned i = 0; i < HF_MAX_LISTENERS; i++)
		others += i == provider ? 0 : t->answers[i];
	/* A turn may be bought again by a retry that the client needed, or by
	 * whoever goes on for a worker that was killed: it cannot take up the
	 * dead one's call.  By nothing else. */
	if (t->answers[provider] > p->retries[turn] && j->n->kills == 0) {
		j->n->duplicates++;
		p->twice++;
		hf_play_wrong(p, turn);
		add_example(j, p, "asked and answered twice", entry);
	} else if (t->answers[provider] > 0) {
		j->n->repeated++;
	} else if (others > 0) {
		j->n->late++;
	}
	t->answers[provider]++;
}

/* Is this target there to refuse an assistant's message that stands last? */
static bool
is_to_refuse_prefill(json_t *entry)
{
	return json_object_get(entry, "asked") != NULL &&
	    hf_model_refuses(hf_json_str(json_object_get(entry, "model")));
}

/* The index of the play whose mark stands in the system message, or NULL: not
 * every protocol has a place for the end user's id. */
static json_t *
find_marked(struct judge *j, json_t *entry)
{
	json_t *first = json_array_get(json_object_get(entry, "messages"), 0);
	struct hf_str text = hf_view_text(first);
	char canary[HF_CANARY_SIZE] = "";
	const char *at;

	if (!hf_view_has_role(first, "system"))
		return NULL;
	at = memmem(
	    text.p, text.size, HF_CANARY_START, sizeof(HF_CANARY_START) - 1);
	if (at == NULL)
		return NULL;
	snprintf(canary, sizeof(canary), "%s", at);
	return json_object_get(j->by_canary, canary);
}

/* Is this target there to refuse what is too long, because nobody was told what
 * it holds? */
static bool
is_to_refuse_long(json_t *entry)
{
	struct hf_str model = hf_json_str(json_object_get(entry, "model"));

	return json_object_get(entry, "window") != NULL &&
	    !hf_model_window_is_told(model);
}

static bool
is_to_refuse(json_t *entry)
{
	return is_to_refuse_prefill(entry) || is_to_refuse_long(entry);
}

/* What is wrong with the payload, if its target may miss the oldest turns. */
static struct hf_wrong
judge_fit(struct judge *j, const struct hf_play *p, unsigned turn,
    json_t *entry, struct hf_wrong w)
{
	unsigned window =
	    hf_model_window(hf_json_str(json_object_get(entry, "model")));

	if (w.blame != HF_BLAME_FIT || window == 0)
		return w;
	w = hf_judge_fit(p, turn, json_object_get(entry, "messages"), window);
	j->n->fitted += w.what == NULL;
	return w;
}

/* The play that a request is of, or NULL. */
static struct hf_play *
find_play(struct judge *j, json_t *entry)
{
	struct hf_str user = hf_json_str(json_object_get(entry, "user"));
	json_t *index = user.p == NULL ? find_marked(j, entry) :
					 json_object_get(j->by_user, user.p);

	return index == NULL ? NULL :
			       &j->plays->play[json_integer_value(index)];
}

/* The turn that a payload is of, or -1.  A stateless gateway repeats the last
 * thing that the caller said also where a tool's result was sent. */
static int
turn_of(
    const struct judge *j, const struct hf_play *p, bool later, json_t *view)
{
	int turn = hf_conv_view_turn(p->c, view);
	unsigned next = (unsigned)turn + 1;

	if (turn >= 0 && later && j->conf->system[p->system].stateless &&
	    next < p->c->n_user && p->c->tool[next] &&
	    j->turn[p - j->plays->play][next].requests > 0)
		return (int)next;
	return turn;
}

/* The turn whose text this payload has a beginning of, or -1.  Several may
 * begin with the same words: then the one that comes behind so many messages.
 */
static int
growing_turn(const struct hf_play *p, json_t *view)
{
	struct hf_str text = hf_view_last_user(view);
	size_t n = json_array_size(view);
	int found = -1;

	for (unsigned k = 0; k < p->c->n_user; k++)
		if (hf_conv_grows(p->c, k, text) &&
		    (found < 0 || n == 2 + 2 * (size_t)k))
			found = (int)k;
	return found;
}

/* Our clients do not answer a call that was not to come: what a gateway makes
 * of that is its own business. */
static bool
off_script(const struct hf_play *p, unsigned turn)
{
	for (unsigned k = 0; k < turn && k < p->n_answered; k++)
		if (!hf_same_calls(p->c->calls[k], p->calls[k]))
			return true;
	return false;
}

static void
judge_entry(struct judge *j, json_t *entry)
{
	json_t *view = json_object_get(entry, "messages"), *m;
	struct hf_play *p = find_play(j, entry);
	int provider = hf_suite_listener(
	    j->conf->suite, hf_json_str(json_object_get(entry, "provider")));
	bool refused = json_object_get(entry, "refused") != NULL;
	struct hf_wrong wrong = { HF_BLAME_NOBODY, NULL };
	bool later, growing;
	unsigned foreign = 0;
	size_t i;
	int turn;

	j->n->payloads++;
	if (refused && !is_to_refuse(entry)) {
		j->n->refused++;
		if (p != NULL)
			p->refused++;
		add_example(j, NULL, "refused by a strict provider", entry);
		return;
	}
	if (p == NULL || provider < 0) {
		j->n->unattributed++;
		add_example(j, NULL, "of no conversation of ours", entry);
		return;
	}
	json_array_foreach(view, i, m) foreign += hf_bleed_count(
	    j->bleed, hf_json_str(json_object_get(m, "text")), p->c, p->canary);
	later = is_later(j, p, provider);
	turn = turn_of(j, p, later, view);
	growing = turn < 0;
	if (growing)
		turn = growing_turn(p, view);
	if (turn < 0)
		wrong = (struct hf_wrong){ HF_BLAME_RECONCILE,
			"the last message is not of this conversation" };
	else if (!off_script(p, (unsigned)turn))
		wrong = judge_fit(j, p, (unsigned)turn, entry,
		    hf_judge_payload(j->conf, p, (unsigned)turn, later, view));
	if (wrong.what != NULL) {
		if (p->bad_payloads++ == 0) {
			p->wrong = wrong.blame;
			p->wrong_what = wrong.what;
		}
		j->n->bad_payloads++;
		j->n->doubled += doubled(p, view);
		j->n->ghosts += wrong.ghost;
		if (turn >= 0)
			hf_play_wrong(p, (unsigned)turn);
	}
	p->foreign += foreign;
	j->n->bleed += foreign;
	if (wrong.what != NULL || foreign > 0)
		add_example(
		    j, p, wrong.what != NULL ? wrong.what : "bleed", entry);
	if (refused)
		*(is_to_refuse_long(entry) ? &j->n->refused_windows :
					     &j->n->refused_prefills) += 1;
	else if (turn >= 0 && !growing)
		judge_turn(j, p, (unsigned)turn, (unsigned)provider, entry);
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

/* A turn on which somebody was to fail: did another answer? */
static void
judge_failover(struct judge *j, const struct hf_play *p, unsigned turn)
{
	const struct turn *t = &j->turn[p - j->plays->play][turn];
	unsigned answers = 0, wrong = 0;

	for (unsigned i = 0; i < HF_MAX_LISTENERS; i++)
		answers += t->answers[i];
	for (unsigned i = 0; i < p->c->n_fault; i++) {
		const struct hf_conv_fault *f = &p->c->fault[i];

		if (f->turn == turn && f->attempt == 0)
			wrong += t->answers[hf_suite_listener(
			    j->conf->suite, hf_str(f->provider))];
	}
	/* With its finish reason an answer may be taken as one. */
	answers += t->ended;
	j->n->answered_by_primary += wrong > 0;
	if (answers > 0 && wrong == 0) {
		j->n->failed_over++;
		j->n->unasked += t->failures == 0;
	} else {
		j->n->not_failed_over++;
	}
}

static void
judge_failovers(struct judge *j, struct hf_play *p)
{
	const struct hf_play_system *s = &j->conf->system[p->system];

	for (unsigned k = 0; k < p->c->n_user; k++) {
		/* In the middle of a stream a stateless gateway does not. */
		bool told = j->conf->suite->stream && s->stateless &&
		    k >= p->n_answered;

		if (hf_play_is_to_fail(j->conf, p, k) && k <= p->n_answered &&
		    !told)
			judge_failover(j, p, k);
	}
	/* A payload with another's words spoils the play. */
	p->preserved = p->preserved && p->foreign == 0;
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
		.by_canary = json_object(),
		.examples = examples };
	int rc;

	j.turn = hf_xcalloc(plays->n_play, sizeof(*j.turn));
	for (unsigned i = 0; i < plays->n_play; i++) {
		json_object_set_new(
		    j.by_user, plays->play[i].user, json_integer(i));
		json_object_set_new(
		    j.by_canary, plays->play[i].canary, json_integer(i));
	}
	rc = read_log(&j, path, e);
	for (unsigned i = 0; rc == 0 && i < plays->n_play; i++)
		judge_failovers(&j, &plays->play[i]);
	free(j.turn);
	json_decref(j.by_user);
	json_decref(j.by_canary);
	hf_bleed_free(j.bleed);
	return rc;
}
