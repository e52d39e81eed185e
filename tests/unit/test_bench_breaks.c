/*
 * Who tests the test, for streams that break off: right plays of the suite
 * "midstream" and their log are made, then one thing is broken at a time, and
 * the judge must see what, and who is to blame.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "bench/answer.h"
#include "bench/format.h"
#include "bench/judge.h"
#include "bench/report.h"
#include "bench/resume.h"

#define CONVS 54
#define CUT 30 /* bytes that the client had, of texts */

struct world {
	struct hf_suite *suite;
	struct hf_play_conf conf;
	struct hf_plays plays;
	struct hf_counts n;
	json_t *log, *examples;
	/* What a badly joined stream said, to whom, and was stored. */
	const char *seam;
	unsigned seam_conv;
};

static json_t *
message(const char *role, const char *text)
{
	return json_pack("{s:s,s:s}", "role", role, "text", text);
}

static json_t *
right_view(const struct hf_play *p, unsigned turn)
{
	json_t *v = json_array(), *m;

	json_array_append_new(v, message("system", p->system_text));
	for (unsigned k = 0; k <= turn; k++) {
		m = message(p->c->tool[k] ? "tool" : "user", p->c->user[k]);
		if (p->c->tool[k])
			json_object_set_new(m, "call_id", json_string("c1"));
		json_array_append_new(v, m);
		if (k == turn)
			break;
		m = message("assistant", p->answer[k]);
		if (p->calls[k] != NULL)
			json_object_set(m, "calls", p->calls[k]);
		json_array_append_new(v, m);
	}
	return v;
}

static json_t *
entry(const struct hf_play *p, unsigned turn, const char *provider,
    const char *fault, json_t *view)
{
	return json_pack("{s:i,s:s,s:s,s:s,s:s,s:s,s:o}", "turn", (int)turn,
	    "provider", provider, "fault", fault, "user", p->user, "asked",
	    "afresh", "model", "m", "messages", view);
}

/* The fallback is asked as the conversation's route says. */
static void
go_on(struct world *w, const struct hf_play *p, unsigned turn)
{
	const struct hf_route_plan *r = &w->suite->route[p->c->route];
	const char *model = r->target[1].model;
	json_t *e = entry(p, turn, "fallback", "none", right_view(p, turn));
	json_t *view = json_object_get(e, "messages");

	if (p->c->exact[turn][0] != '\0' &&
	    strcmp(r->continuation, "hidden") != 0) {
		json_array_append_new(view,
		    json_pack("{s:s,s:s%}", "role", "assistant", "text",
			p->answer[turn], (size_t)CUT));
		json_object_set_new(e, "asked", json_string("prefill"));
		json_object_set_new(e, "model", json_string(model));
		if (hf_model_refuses(hf_str(model))) {
			json_t *no = json_deep_copy(e);

			json_object_set_new(no, "refused", json_string("no"));
			json_array_append_new(w->log, no);
		}
		if (!hf_model_prefills(hf_str(model))) {
			json_array_append_new(
			    view, message("user", HF_CONTINUE " So."));
			json_object_set_new(
			    e, "asked", json_string("instruction"));
			json_object_set_new(e, "repeated", json_integer(4));
		}
	}
	json_array_append_new(w->log, e);
}

static void
make_play(struct world *w, struct hf_play *p, unsigned conv)
{
	memset(p, 0, sizeof(*p));
	p->conv = conv;
	p->c = &w->suite->conv[conv];
	hf_suite_canary(w->suite, 0, 0, conv, p->canary);
	p->system_text = hf_suite_system(p->c, p->canary);
	snprintf(p->user, sizeof(p->user), "%s.r1.holdfast", p->c->id);
	for (unsigned k = 0; k < p->c->n_user; k++) {
		const char *text = p->c->exact[k] != NULL ? p->c->exact[k] :
							    p->c->assistant[k];
		bool cut = k == p->c->probe;
		json_t *e = entry(
		    p, k, "primary", cut ? "cut" : "none", right_view(p, k));

		json_array_append_new(w->log, e);
		if (w->seam != NULL && conv == w->seam_conv && k >= p->c->probe)
			text = w->seam;
		p->answer[k] = hf_xstrdup(text);
		p->calls[k] = json_deep_copy(p->c->calls[k]);
		if (p->calls[k] != NULL)
			json_object_set_new(json_array_get(p->calls[k], 0),
			    "id", json_string("c1"));
		p->marks[k] = (struct hf_marks){ 1, 1, 1, 1, 1 };
		p->n_answered++;
		if (!cut)
			continue;
		json_object_set_new(e, "phase", json_string("word"));
		json_object_set_new(
		    e, "sent", json_integer(text[0] == '\0' ? 0 : CUT));
		go_on(w, p, k);
	}
}

static void
world_init(struct world *w, unsigned conv, const char *seam)
{
	memset(w, 0, sizeof(*w));
	w->suite = hf_suite_make("midstream", 42, CONVS);
	w->seam_conv = conv;
	w->seam = seam;
	w->log = json_array();
	w->examples = json_array();
	w->conf.suite = w->suite;
	w->conf.n_run = 1;
	w->conf.n_system = 1;
	w->conf.stream = true;
	w->conf.system[0] =
	    (struct hf_play_system){ "holdfast", "holdfast", false, false };
	w->plays.n_play = CONVS;
	w->plays.play = calloc(CONVS, sizeof(*w->plays.play));
	assert_non_null(w->plays.play);
	for (unsigned c = 0; c < CONVS; c++)
		make_play(w, &w->plays.play[c], c);
}

/* Judges; the log stays at 'path' for its reader. */
static void
world_judge(struct world *w, char path[])
{
	int fd = mkstemp(path);
	struct hf_error e;
	json_t *o;
	size_t i;

	assert_true(fd >= 0);
	json_array_foreach(w->log, i, o)
	{
		assert_int_equal(json_dumpfd(o, fd, JSON_COMPACT), 0);
		assert_int_equal(write(fd, "\n", 1), 1);
	}
	close(fd);
	hf_judge_answers(&w->conf, &w->plays, &w->n);
	assert_int_equal(
	    hf_judge_log(&w->conf, &w->plays, path, &w->n, w->examples, &e), 0);
	hf_judge_blame(&w->conf, &w->plays, true, &w->n);
}

static void
world_free(struct world *w)
{
	hf_plays_free(&w->plays);
	hf_suite_free(w->suite);
	json_decref(w->log);
	json_decref(w->examples);
}

static unsigned
preserved(const struct world *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->plays.n_play; i++)
		n += w->plays.play[i].preserved;
	return n;
}

/* The first play whose next target is of this kind (NULL: any), and that is or
 * is not about a tool call. */
static struct hf_play *
find(struct world *w, const char *way, bool call)
{
	for (unsigned i = 0; i < CONVS; i++) {
		struct hf_play *p = &w->plays.play[i];

		if ((way == NULL || strcmp(p->c->label[2], way) == 0) &&
		    (p->calls[p->c->probe] != NULL) == call &&
		    (!call || p->c->exact[p->c->probe][0] == '\0'))
			return p;
	}
	fail_msg("no such play");
	return NULL;
}

static json_t *
fallback_entry(struct world *w, const struct hf_play *p)
{
	json_t *o, *found = NULL;
	size_t k;

	json_array_foreach(w->log, k, o)
	{
		if (strcmp(json_string_value(json_object_get(o, "user")),
			p->user) == 0 &&
		    strcmp(json_string_value(json_object_get(o, "provider")),
			"fallback") == 0)
			found = o;
	}
	assert_non_null(found);
	return found;
}

static void
all_right(void **state)
{
	char path[] = "/tmp/hf-test-breaks-XXXXXX";
	const struct hf_tally *t;
	struct world w;
	unsigned whole = 0;

	(void)state;
	world_init(&w, 0, NULL);
	world_judge(&w, path);
	unlink(path);
	t = &w.n.tally[0];
	assert_int_equal(preserved(&w), CONVS);
	assert_int_equal(w.n.payloads, json_array_size(w.log));
	assert_int_equal(w.n.bleed + w.n.bad_payloads + w.n.duplicates +
		w.n.refused + w.n.unattributed + w.n.answered_by_primary +
		w.n.not_failed_over + w.n.errors + w.n.unasked + w.n.late,
	    0);
	assert_true(w.n.refused_prefills > 5);
	assert_int_equal(w.n.failed_over, CONVS);
	assert_int_equal(t->failures, CONVS);
	assert_int_equal(t->by_kind[HF_FAULT_CUT], CONVS);
	assert_int_equal(t->by_phase[HF_PHASE_WORD], CONVS);
	assert_int_equal(t->outcomes[HF_OUTCOME_WHOLE], CONVS);
	for (unsigned i = 0; i < HF_JOIN_COUNT; i++)
		whole += t->joins[i];
	assert_int_equal(whole, CONVS);
	assert_true(t->joins[HF_JOIN_PREFILL] > 5);
	assert_true(t->joins[HF_JOIN_OVERLAP] > 5);
	assert_true(t->joins[HF_JOIN_HIDDEN] > 5);
	assert_int_equal(t->joins[HF_JOIN_INSTRUCTION], 0);
	assert_int_equal(t->bad_marks + t->calls_wrong, 0);
	assert_int_equal(t->blames[HF_BLAME_NOBODY], CONVS);
	world_free(&w);
}

/* --- breaking one thing at a time -----------------------------------------
 */

static void
set_answer(struct hf_play *p, unsigned turn, char *text)
{
	free(p->answer[turn]);
	p->answer[turn] = text;
}

/* The client got something else than is stored. */
static struct hf_play *
say_otherwise(struct world *w)
{
	struct hf_play *p = find(w, "hidden", false);

	set_answer(
	    p, p->c->probe, hf_format("%s all.", p->c->exact[p->c->probe]));
	return p;
}

/* The next target had forgotten what it was told. */
static struct hf_play *
forget(struct world *w)
{
	struct hf_play *p = find(w, "hidden", false);

	set_answer(p, p->c->n_user - 1, hf_xstrdup(HF_ANSWER_UNKNOWN));
	return p;
}

static struct hf_play *
two_roles(struct world *w)
{
	struct hf_play *p = find(w, "instruction", false);

	p->marks[p->c->probe].roles = 2;
	return p;
}

static struct hf_play *
no_done(struct world *w)
{
	struct hf_play *p = find(w, "instruction", false);

	p->marks[p->c->probe].dones = 0;
	return p;
}

static struct hf_play *
end_early(struct world *w)
{
	struct hf_play *p = find(w, "prefill", false);

	for (unsigned k = p->c->probe; k < p->c->n_user; k++) {
		free(p->answer[k]);
		p->answer[k] = NULL;
	}
	p->n_answered = p->c->probe;
	p->partial = hf_xstrndup(p->c->exact[p->c->probe], CUT);
	snprintf(p->error, sizeof(p->error), "turn 3: error");
	return p;
}

static struct hf_play *
call_twice(struct world *w)
{
	struct hf_play *p = find(w, NULL, true);

	json_array_append_new(p->calls[p->c->probe],
	    json_deep_copy(json_array_get(p->calls[p->c->probe], 0)));
	return p;
}

static struct hf_play *
call_otherwise(struct world *w)
{
	struct hf_play *p = find(w, NULL, true);

	json_object_set_new(json_array_get(p->calls[p->c->probe], 0),
	    "arguments", json_string("{\"fact\":\"unknown\"}"));
	return p;
}

static struct hf_play *
go_on_with_other_words(struct world *w)
{
	struct hf_play *p = find(w, "instruction", false);
	json_t *view = json_object_get(fallback_entry(w, p), "messages");

	json_object_set_new(json_array_get(view, json_array_size(view) - 2),
	    "text", json_string("Gladly, there it was."));
	return p;
}

static struct hf_play *
go_on_without_history(struct world *w)
{
	struct hf_play *p = find(w, "prefill", false);
	json_t *view = json_object_get(fallback_entry(w, p), "messages");

	json_array_remove(view, 1);
	json_array_remove(view, 1);
	return p;
}

static struct hf_play *
refuse(struct world *w)
{
	struct hf_play *p = find(w, "instruction", false);

	json_object_set_new(fallback_entry(w, p), "refused", json_string("no"));
	return p;
}

static struct hf_play *
say_foreign_fact(struct world *w)
{
	struct hf_play *p = find(w, "prefill", false);
	const struct hf_conv *other = &w->suite->conv[(p->conv + 1) % CONVS];

	set_answer(p, 1, hf_format("You told me: %s.", other->fact));
	return p;
}

static struct hf_play *
ask_nobody(struct world *w)
{
	struct hf_play *p = find(w, "hidden", false);
	json_t *o = fallback_entry(w, p), *x;
	size_t k;

	json_array_foreach(w->log, k, x) if (x == o) break;
	json_array_remove(w->log, k);
	return p;
}

static void
mutations(void **state)
{
	static const struct {
		const char *name;
		struct hf_play *(*breaks)(struct world *w);
		enum hf_outcome outcome;
		enum hf_blame blame;
		size_t counter; /* that must rise, in struct hf_counts */
		unsigned by, preserved;
	} t[] = {
#define M(fn, outcome, blame, counter, by, k)              \
	{ #fn, fn, HF_OUTCOME_##outcome, HF_BLAME_##blame, \
		offsetof(struct hf_counts, counter), by, k }
#define T(counter) tally[0].counter
		M(say_otherwise, FLAWED, RECONCILE, T(words.duplicated), 1,
		    CONVS),
		M(forget, WHOLE, MODEL, T(outcomes[HF_OUTCOME_OTHER]), 0,
		    CONVS - 1),
		M(two_roles, WHOLE, STREAM, T(bad_marks), 1, CONVS),
		M(no_done, WHOLE, STREAM, T(bad_marks), 1, CONVS),
		M(end_early, ERROR, RECONCILE, errors, 1, CONVS - 1),
		M(call_twice, FLAWED, DUPLICATE, T(calls_wrong), 1, CONVS),
		M(call_otherwise, FLAWED, SEAM, T(calls_wrong), 1, CONVS - 1),
		M(go_on_with_other_words, WHOLE, RECONCILE, bad_payloads, 1,
		    CONVS),
		M(go_on_without_history, WHOLE, FIT, bad_payloads, 1, CONVS),
		M(refuse, WHOLE, DIALECT, refused, 1, CONVS),
		M(say_foreign_fact, WHOLE, FOREIGN, bleed, 1, CONVS - 1),
		M(ask_nobody, WHOLE, NOBODY, not_failed_over, 1, CONVS),
#undef T
#undef M
	};

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		char path[] = "/tmp/hf-test-breaks-XXXXXX";
		unsigned got, whole;
		struct hf_play *p;
		struct world w;

		world_init(&w, 0, NULL);
		p = t[i].breaks(&w);
		world_judge(&w, path);
		unlink(path);
		memcpy(&got, (const char *)&w.n + t[i].counter, sizeof(got));
		if (got != t[i].by)
			fail_msg(
			    "%s: %u instead of %u", t[i].name, got, t[i].by);
		whole = w.n.tally[0].outcomes[HF_OUTCOME_WHOLE];
		if (whole != CONVS - (t[i].outcome != HF_OUTCOME_WHOLE) ||
		    w.n.tally[0].outcomes[t[i].outcome] == 0)
			fail_msg("%s: %u whole", t[i].name, whole);
		if (p->blame != t[i].blame)
			fail_msg("%s: blame %s", t[i].name,
			    hf_blame_name((enum hf_blame)p->blame));
		if (preserved(&w) != t[i].preserved)
			fail_msg("%s: preserved %u", t[i].name, preserved(&w));
		world_free(&w);
	}
}

/* --- bad seams, which the history holds as the client got them -------------
 */

static void
bad_seams(void **state)
{
	static const struct {
		const char *name, *end; /* after "... That is" */
		size_t counter;
		unsigned by; /* in this text, and read back */
		enum hf_blame blame;
	} t[] = {
#define S(name, end, counter, by, blame)                           \
	{ name, end, offsetof(struct hf_tally, words.counter), by, \
		HF_BLAME_##blame }
		S("the end is missing", "", missing, 2, STREAM),
		S("a word is missing", " .", missing, 2, SEAM),
		S("one comes twice", " is all.", duplicated, 2, SEAM),
		S("words are glued", "all.", glued, 2, SEAM),
		S("a word is split", " a ll.", split, 2, SEAM),
		S("one is added", " really all.", added, 2, SEAM),
		S("white space is doubled", "  all.", spaces, 2, SEAM),
#undef S
	};
	struct world w;
	unsigned conv;

	(void)state;
	world_init(&w, 0, NULL);
	conv = find(&w, "instruction", false)->conv;
	world_free(&w);
	for (unsigned i = 0; i < hf_countof(t); i++) {
		char path[] = "/tmp/hf-test-breaks-XXXXXX";
		struct hf_suite *s = hf_suite_make("midstream", 42, CONVS);
		const char *full = s->conv[conv].exact[s->conv[conv].probe];
		char *text =
		    hf_format("%.*s%s", (int)strlen(full) - 5, full, t[i].end);
		const struct hf_tally *n;
		json_t *misses, *report;
		struct hf_error e;
		unsigned got;

		world_init(&w, conv, text);
		world_judge(&w, path);
		n = &w.n.tally[0];
		memcpy(&got, (const char *)n + t[i].counter, sizeof(got));
		if (got != t[i].by)
			fail_msg("%s: %u", t[i].name, got);
		assert_int_equal(n->outcomes[HF_OUTCOME_FLAWED], 1);
		assert_int_equal(n->outcomes[HF_OUTCOME_WHOLE], CONVS - 1);
		assert_int_equal(n->blames[t[i].blame], 1);
		assert_int_equal(n->blames[HF_BLAME_NOBODY], CONVS - 1);
		assert_int_equal(w.n.bad_payloads, 0);
		/* The miss comes with what was said to whom. */
		report = hf_report_json(&(struct hf_report){ .conf = &w.conf,
		    .plays = &w.plays,
		    .counts = w.n,
		    .examples = w.examples,
		    .log_judged = true });
		assert_int_equal(hf_report_transcripts(report, path, &e), 0);
		unlink(path);
		misses = json_object_get(report, "misses");
		assert_int_equal(json_array_size(misses), 1);
		misses = json_array_get(misses, 0);
		assert_string_equal(
		    json_string_value(json_object_get(misses, "blame")),
		    hf_blame_name(t[i].blame));
		assert_string_equal(
		    json_string_value(json_object_get(misses, "answer")), text);
		assert_int_equal(
		    json_array_size(json_object_get(misses, "requests")), 2);
		json_decref(report);
		free(text);
		hf_suite_free(s);
		world_free(&w);
	}
}

/* --- manners of asking ----------------------------------------------------
 */

/* A play of conversation 0 in which all was answered as the suite says. */
static struct hf_suite *
answered(const char *suite, unsigned conv, struct hf_play *p)
{
	struct hf_suite *s = hf_suite_make(suite, 42, 8);

	memset(p, 0, sizeof(*p));
	p->c = &s->conv[conv];
	p->system_text = hf_suite_system(p->c, "CB-1");
	for (unsigned k = 0; k < p->c->n_user; k++) {
		const char *text = p->c->exact[k] != NULL ? p->c->exact[k] :
							    p->c->assistant[k];

		p->answer[k] = hf_xstrdup(text == NULL ? "" : text);
		p->n_answered++;
	}
	return s;
}

static void
answered_free(struct hf_suite *s, struct hf_play *p)
{
	for (unsigned k = 0; k < p->n_answered; k++)
		free(p->answer[k]);
	free(p->system_text);
	hf_suite_free(s);
}

/* A caller interrupted after 100 bytes: is this what a provider may be told of
 * that answer, and may it tell it again so? */
static void
said_is_not_heard(void **state)
{
	static const struct {
		int size; /* of the answer that is told; < 0: another one */
		bool right;
	} t[] = { { 100, true }, { 130, true }, { 60, false }, { 9999, false },
		{ -1, false } };
	struct hf_play_conf conf = { .n_system = 1 };
	struct hf_counts n = { 0 };
	struct hf_suite *s;
	struct hf_play p;

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		struct hf_plays one = { .play = &p, .n_play = 1 };
		struct hf_wrong wrong;
		unsigned back;
		json_t *view;
		char *told;

		s = answered("bargein", 0, &p);
		conf.suite = s;
		back = p.c->reads_back[2] - 1;
		assert_int_equal(back, 1);
		told = t[i].size < 0 ?
		    hf_xstrdup("Gladly, there it was.") :
		    hf_format("%.*s", t[i].size, p.c->exact[back]);
		p.left[back] = true;
		p.answer[back][100] = '\0';
		view = right_view(&p, 2);
		json_object_set_new(
		    json_array_get(view, 4), "text", json_string(told));
		wrong = hf_judge_payload(&conf, &p, 2, false, view);
		assert_int_equal(wrong.what == NULL, t[i].right);
		assert_int_equal(wrong.blame,
		    t[i].right ? HF_BLAME_NOBODY : HF_BLAME_RECONCILE);
		set_answer(&p, 2, told);
		memset(&n, 0, sizeof(n));
		hf_judge_answers(&conf, &one, &n);
		assert_int_equal(
		    n.tally[0].outcomes[HF_OUTCOME_WHOLE] == 1, t[i].right);
		json_decref(view);
		answered_free(s, &p);
	}
}

/* Text that grew: its beginning may be asked for, and was never said. */
static void
dropped_is_not_said(void **state)
{
	struct hf_play_conf conf = { .n_system = 1 };
	struct hf_play p;
	struct hf_suite *s = answered("retries", 3, &p);
	json_t *view = right_view(&p, 1), *last;
	char *start = hf_xstrndup(p.c->user[1], 8);

	(void)state;
	conf.suite = s;
	assert_int_equal(p.c->manner[1], HF_GROWING);
	assert_null(hf_judge_payload(&conf, &p, 1, false, view).what);
	json_array_insert_new(view, 3, message("user", start));
	assert_non_null(hf_judge_payload(&conf, &p, 1, false, view).what);
	json_array_remove(view, 4);
	assert_true(hf_conv_grows(p.c, 1, hf_str(start)));
	assert_false(hf_conv_grows(p.c, 0, hf_str(start)));
	assert_null(hf_judge_payload(&conf, &p, 1, false, view).what);
	last = json_array_get(view, 1);
	json_object_set_new(last, "text", json_string("Something else."));
	assert_non_null(hf_judge_payload(&conf, &p, 1, false, view).what);
	json_decref(view);
	free(start);
	answered_free(s, &p);
}

/* What is judged of one payload of this play. */
static unsigned
bad_payloads(struct hf_suite *s, struct hf_play *p, unsigned turn, json_t *view)
{
	struct world w = { .suite = s,
		.conf = { .suite = s, .n_system = 1 },
		.plays = { .play = p, .n_play = 1 },
		.log = json_array(),
		.examples = json_array() };
	char path[] = "/tmp/hf-test-breaks-XXXXXX";

	json_array_append_new(
	    w.log, entry(p, turn, "primary", "none", json_incref(view)));
	world_judge(&w, path);
	unlink(path);
	json_decref(w.log);
	json_decref(w.examples);
	return w.n.bad_payloads;
}

/* Two turns that grow may begin with the same words: whose beginning it is, is
 * told by what is before it. */
static void
beginnings_are_shared(void **state)
{
	struct hf_play p;
	struct hf_suite *s = answered("retries", 3, &p);
	struct hf_conv *c = &s->conv[3];
	char *start = hf_xstrndup(c->user[1], 8);
	json_t *view;

	(void)state;
	snprintf(p.user, sizeof(p.user), "%s.r1.proxy", c->id);
	free(c->user[2]);
	assert_true(asprintf(&c->user[2], "%s other words", start) > 0);
	for (unsigned turn = 1; turn <= 2; turn++) {
		assert_true(hf_conv_grows(c, turn, hf_str(start)));
		view = right_view(&p, turn);
		json_array_remove(view, 1 + 2 * turn);
		json_array_append_new(view, message("user", start));
		assert_int_equal(bad_payloads(s, &p, turn, view), 0);
		/* Not everything is right now. */
		json_array_remove(view, 2);
		assert_int_equal(bad_payloads(s, &p, turn, view), 1);
		json_decref(view);
	}
	free(start);
	answered_free(s, &p);
}

/* The same request was answered in another way. */
static void
answers_differ(void **state)
{
	struct hf_play_conf conf = { .n_system = 1 };
	struct hf_counts n = { 0 };
	struct hf_play p;
	struct hf_suite *s = answered("retries", 0, &p);
	struct hf_plays one = { .play = &p, .n_play = 1 };

	(void)state;
	conf.suite = s;
	p.differing[1] = 1;
	hf_judge_answers(&conf, &one, &n);
	hf_judge_blame(&conf, &one, true, &n);
	assert_int_equal(n.tally[0].differing, 1);
	assert_int_equal(p.blame, HF_BLAME_DUPLICATE);
	assert_int_equal(p.first_wrong, 1);
	answered_free(s, &p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_right),
		cmocka_unit_test(mutations),
		cmocka_unit_test(bad_seams),
		cmocka_unit_test(said_is_not_heard),
		cmocka_unit_test(dropped_is_not_said),
		cmocka_unit_test(beginnings_are_shared),
		cmocka_unit_test(answers_differ),
	};

	return cmocka_run_group_tests_name("bench breaks", tests, NULL, NULL);
}
