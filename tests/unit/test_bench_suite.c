/*
 * The suites: their counts, that a seed fixes them, that no fact can be taken
 * for another, that answers come from the messages alone; and the manifest.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "bench/answer.h"
#include "bench/judge.h"
#include "bench/oblique.h"
#include "bench/rng.h"
#include "bench/rules.h"
#include "bench/suite.h"

/* digest() of suites with seed 42. */
#define PAPER_42 UINT64_C(0x39bb1a07afb5afaa)

/* full_digest() of the others. */
static const struct {
	const char *suite;
	uint64_t is;
} digests[] = {
	{ "midstream", UINT64_C(0x765588db6ed0d4d7) },
	{ "rolling", UINT64_C(0x9ee25ecde8ce9548) },
	{ "updates", UINT64_C(0x2e505877457159f3) },
	{ "carriers", UINT64_C(0x284e083836cdfba8) },
	{ "oblique", UINT64_C(0x7266d3481f7ac267) },
	{ "crowd", UINT64_C(0xb6f9949998353b7b) },
	{ "retries", UINT64_C(0xf7bbd54d4d40ac6f) },
	{ "bargein", UINT64_C(0xe40114605159d72) },
	{ "failback", UINT64_C(0xde32d5836d9e408c) },
	{ "kill", UINT64_C(0x9d3249c32293a610) },
	{ "ivr", UINT64_C(0xd6368ac118c9d55d) },
	{ "storm", UINT64_C(0x86a3858c8e34a564) },
	{ "window", UINT64_C(0x420fc8ce600af2ff) },
};

static struct hf_suite *
paper(void)
{
	struct hf_suite *s = hf_suite_make("paper", 42, 0);

	assert_non_null(s);
	return s;
}

static uint64_t
digest(const struct hf_suite *s)
{
	uint64_t h = 0;

	for (unsigned i = 0; i < s->n_conv; i++) {
		h = hf_rng_mix(h + s->conv[i].failure);
		for (unsigned k = 0; k < s->conv[i].n_user; k++)
			for (const char *p = s->conv[i].user[k]; *p; p++)
				h = hf_rng_mix(h * 31 + (unsigned char)*p);
	}
	return h;
}

/* The same with answers and failures. */
static uint64_t
full_digest(const struct hf_suite *s)
{
	uint64_t h = digest(s);

	for (unsigned i = 0; i < s->n_conv; i++) {
		const struct hf_conv *c = &s->conv[i];

		for (unsigned k = 0; k < c->n_user; k++)
			for (const char *p = c->exact[k]; p && *p; p++)
				h = hf_rng_mix(h * 31 + (unsigned char)*p);
		for (unsigned k = 0; k < c->n_fault; k++) {
			const struct hf_bench_fault *f = &c->fault[k].fault;

			h = hf_rng_mix(h + f->kind + 100u * f->phase +
			    10000u * f->at + c->fault[k].turn);
		}
		if (c->kill.victim != HF_KILL_NOBODY)
			h = hf_rng_mix(h + c->kill.victim +
			    10u * c->kill.moment + 100u * c->kill.phase +
			    10000u * c->kill.at + c->kill.turn +
			    (c->kill.point == NULL ? 0 :
						     strlen(c->kill.point)));
	}
	return h;
}

static void
counts(void **state)
{
	struct hf_suite *s = paper();
	unsigned type[HF_FACT_TYPES] = { 0 }, size[12] = { 0 };
	unsigned failure[HF_FAULT_COUNT] = { 0 };

	(void)state;
	assert_int_equal(s->n_conv, 150);
	for (unsigned i = 0; i < s->n_conv; i++) {
		const struct hf_conv *c = &s->conv[i];

		type[c->tmpl->type]++;
		assert_in_range(c->n_messages, 7, 11);
		size[c->n_messages]++;
		failure[c->failure]++;
		assert_int_equal(c->n_messages, 2 * c->n_user - 1);
		assert_string_equal(c->user[c->n_user - 1], c->tmpl->probe);
	}
	for (unsigned t = 0; t < HF_FACT_TYPES; t++)
		assert_int_equal(type[t], 30);
	assert_int_equal(size[7], 44);
	assert_int_equal(size[9], 58);
	assert_int_equal(size[11], 48);
	assert_int_equal(failure[HF_FAULT_SILENCE], 50);
	assert_int_equal(failure[HF_FAULT_HTTP_502], 50);
	assert_int_equal(failure[HF_FAULT_HTTP_429], 50);
	hf_suite_free(s);
}

static void
seeded(void **state)
{
	struct hf_suite *a = paper(), *b = paper();
	struct hf_suite *c = hf_suite_make("paper", 43, 0);

	(void)state;
	assert_true(digest(a) == digest(b));
	assert_true(digest(a) != digest(c));
	/* The suite of seed 42 as published: a change of wording or of the
	 * generator is a new suite and must be meant. */
	assert_int_equal(digest(a), PAPER_42);
	hf_suite_free(a);
	hf_suite_free(b);
	hf_suite_free(c);
	for (unsigned i = 0; i < hf_countof(digests); i++) {
		a = hf_suite_make(digests[i].suite, 42, 0);
		if (full_digest(a) != digests[i].is)
			fail_msg("%s: 0x%llx", digests[i].suite,
			    (unsigned long long)full_digest(a));
		hf_suite_free(a);
	}
	/* Another size is the beginning of it, or more of it. */
	assert_null(hf_suite_make("paper", 42, 54));
	assert_null(hf_suite_make("midstream", 42, 1000000));
	a = hf_suite_make("midstream", 42, 54);
	assert_int_equal(a->n_conv, 54);
	hf_suite_free(a);
	assert_null(hf_suite_make("no such suite", 42, 0));
}

/* A fact occurs in its own opening only: in no other text of any
 * conversation, and in no answer of the set. */
static void
facts_are_unique(void **state)
{
	struct hf_suite *s = paper();

	(void)state;
	for (unsigned i = 0; i < s->n_conv; i++) {
		const char *fact = s->conv[i].fact;

		for (unsigned j = 0; j < s->n_conv; j++) {
			const struct hf_conv *c = &s->conv[j];

			for (unsigned k = 0; k < c->n_user; k++) {
				bool own = i == j && k == 0;

				assert_true(
				    (strstr(c->user[k], fact) != NULL) == own);
				if (k + 1 < c->n_user)
					assert_null(
					    strstr(c->assistant[k], fact));
			}
		}
	}
	hf_suite_free(s);
}

/* A fact is in no conversation but its own: neither said nor answered. */
static void
facts_stay(const struct hf_suite *s)
{
	for (unsigned i = 0; i < s->n_conv; i++) {
		const char *fact = s->conv[i].fact;

		for (unsigned j = 0; j < s->n_conv; j++) {
			const struct hf_conv *c = &s->conv[j];

			if (i == j)
				continue;
			for (unsigned k = 0; k < c->n_user; k++) {
				assert_null(strstr(c->user[k], fact));
				assert_true(c->exact[k] == NULL ||
				    strstr(c->exact[k], fact) == NULL);
				for (unsigned n = 0; n < s->conv[i].n_more; n++)
					assert_null(strstr(
					    c->user[k], s->conv[i].more[n]));
			}
		}
	}
}

static json_t *
message(const char *role, const char *text)
{
	return json_pack("{s:s,s:s}", "role", role, "text", text);
}

static char *
answer_to(json_t *view)
{
	struct hf_answer a;

	hf_answer_make(&a, view, NULL, NULL);
	assert_null(a.calls);
	assert_non_null(a.text);
	return a.text;
}

/* With the whole history each probe is answered with its fact; with the
 * probe alone, or with another's history, it is not. */
static void
probes(void **state)
{
	struct hf_suite *s = paper();

	(void)state;
	for (unsigned i = 0; i < s->n_conv; i++) {
		const struct hf_conv *c = &s->conv[i];
		json_t *view = json_array(), *last = json_array();
		char *text;

		for (unsigned k = 0; k < c->n_user; k++) {
			json_array_append_new(
			    view, message("user", c->user[k]));
			if (k + 1 == c->n_user)
				break;
			text = answer_to(view);
			assert_string_equal(text, c->assistant[k]);
			json_array_append_new(view, message("assistant", text));
			free(text);
		}
		text = answer_to(view);
		assert_non_null(strstr(text, c->fact));
		free(text);
		json_array_append_new(last, message("user", c->tmpl->probe));
		text = answer_to(last);
		assert_string_equal(text, HF_ANSWER_UNKNOWN);
		free(text);
		/* What an assistant said is not what the caller stated. */
		json_array_insert_new(
		    last, 0, message("assistant", c->user[0]));
		text = answer_to(last);
		assert_string_equal(text, HF_ANSWER_UNKNOWN);
		free(text);
		json_decref(view);
		json_decref(last);
	}
	hf_suite_free(s);
}

/* Names of the tools that its requests declare, or NULL; new. */
static json_t *
declared(const struct hf_conv *c)
{
	json_t *tools, *out, *t;
	size_t i;

	if (c->tools == NULL)
		return NULL;
	tools = json_loads(c->tools, 0, NULL);
	out = json_array();
	assert_true(json_array_size(tools) > 0);
	json_array_foreach(tools, i, t) json_array_append(
	    out, json_object_get(json_object_get(t, "function"), "name"));
	json_decref(tools);
	return out;
}

/* With its own history each turn is answered as the suite says. */
static void
answers_hold(const struct hf_conv *c)
{
	json_t *view = json_array(), *tools = declared(c), *m;
	char *system = hf_suite_system(c, "CB-0");

	json_array_append_new(view, message("system", system));
	free(system);
	for (unsigned k = 0; k < c->n_user; k++) {
		struct hf_answer a;

		m = message(c->tool[k] ? "tool" : "user", c->user[k]);
		if (c->tool[k])
			json_object_set_new(m, "call_id", json_string("c1"));
		json_array_append_new(view, m);
		assert_int_equal(hf_conv_view_turn(c, view), k);
		hf_answer_make(&a, view, tools, NULL);
		if (c->exact[k] != NULL)
			assert_string_equal(
			    a.text == NULL ? "" : a.text, c->exact[k]);
		if (c->assistant[k] != NULL)
			assert_string_equal(a.text, c->assistant[k]);
		assert_int_equal(a.calls != NULL, c->calls[k] != NULL);
		if (a.calls != NULL)
			assert_true(json_equal(a.calls, c->calls[k]));
		if (c->asks[k] != NULL && a.text != NULL && a.calls == NULL)
			assert_non_null(strstr(a.text, c->asks[k]));
		if (c->denies[k] != NULL && c->reads_back[k] == 0)
			assert_null(strstr(a.text, c->denies[k]));
		m = message("assistant", a.text == NULL ? "" : a.text);
		if (a.calls != NULL) {
			json_object_set_new(json_array_get(a.calls, 0), "id",
			    json_string("c1"));
			json_object_set(m, "calls", a.calls);
		}
		json_array_append_new(view, m);
		hf_answer_free(&a);
	}
	json_decref(view);
	json_decref(tools);
}

/* Without three words in a row twice a seam can be told from the text. */
static void
no_three_twice(const char *text)
{
	const char *word[400];
	size_t size[400], n = 0;

	for (text += strspn(text, " \n"); *text != '\0';
	     text += strspn(text, " \n")) {
		word[n] = text;
		size[n] = strcspn(text, " \n");
		text += size[n++];
		assert_true(n < 400);
	}
	for (size_t i = 0; i + 3 <= n; i++) {
		size_t three = (size_t)(word[i + 2] - word[i]) + size[i + 2];

		for (size_t k = i + 1; k + 3 <= n; k++)
			assert_false(
			    (size_t)(word[k + 2] - word[k]) + size[k + 2] ==
				three &&
			    memcmp(word[i], word[k], three) == 0);
	}
}

/* Every place, way, target and pair of dialects, each once; of the first 54,
 * every place with every way. */
static void
midstream(void **state)
{
	struct hf_suite *s = hf_suite_make("midstream", 42, 0);
	unsigned refusing = 0, said = 0;

	(void)state;
	assert_int_equal(s->n_conv, 864);
	assert_true(s->stream);
	for (unsigned i = 0; i < s->n_conv; i++) {
		const struct hf_conv *c = &s->conv[i];
		const struct hf_route_plan *r = &s->route[c->route];
		unsigned same = 0, first = 0;

		for (unsigned k = 0; k < s->n_conv; k++) {
			const struct hf_conv *o = &s->conv[k];
			bool place = strcmp(o->label[0], c->label[0]) == 0 &&
			    strcmp(o->label[1], c->label[1]) == 0;

			first += place && k < 54;
			same += place &&
			    strcmp(o->label[2], c->label[2]) == 0 &&
			    strcmp(o->label[3], c->label[3]) == 0;
		}
		assert_int_equal(same, 1);
		assert_int_equal(first, 1);
		assert_int_equal(c->n_fault, 1);
		assert_int_equal(c->fault[0].turn, c->probe);
		assert_string_equal(c->fault[0].provider, "primary");
		assert_int_equal(r->n_target, 2);
		refusing += strstr(r->target[1].model, "-noprefill") != NULL;
		said +=
		    c->calls[c->probe] != NULL && c->exact[c->probe][0] != '\0';
		no_three_twice(c->exact[c->probe]);
		answers_hold(c);
	}
	assert_int_equal(refusing, 216);
	assert_in_range(said, 20, 76); /* of 96 that call */
	facts_stay(s);
	hf_suite_free(s);
}

static void
rolling(void **state)
{
	struct hf_suite *s = hf_suite_make("rolling", 42, 0);
	unsigned by[HF_MAX_LISTENERS] = { 0 }, within = 0;

	(void)state;
	assert_int_equal(s->n_conv, 144);
	assert_int_equal(s->n_listener, 4);
	for (unsigned i = 0; i < s->n_conv; i++) {
		const struct hf_conv *c = &s->conv[i];
		unsigned dead = 0;

		for (unsigned k = 0; k < c->n_fault; k++) {
			int l =
			    hf_suite_listener(s, hf_str(c->fault[k].provider));

			assert_in_range(l, 0, 3);
			by[l]++;
			within += hf_fault_in_stream(c->fault[k].fault.kind);
			dead += c->fault[k].turn == c->probe &&
			    c->fault[k].attempt == 0;
		}
		/* Who works is left, or who died comes back. */
		assert_in_range(dead, 0, 3);
		assert_false(hf_conv_is_to_fail(c, c->n_user - 1));
		assert_int_equal(s->route[c->route].n_target, 4);
		answers_hold(c);
	}
	assert_true(by[0] > by[1] && by[1] > by[2] && by[2] > by[3] && by[3]);
	assert_true(within > 400);
	facts_stay(s);
	hf_suite_free(s);
}

/* The other suites: each turn that is asked is known to the byte, needs its
 * history, and somebody fails. */
static void
others(void **state)
{
	static const struct {
		const char *name;
		unsigned n;
	} t[] = { { "updates", 160 }, { "carriers", 120 }, { "oblique", 120 },
		{ "crowd", 500 }, { "failback", 120 }, { "retries", 120 },
		{ "bargein", 60 }, { "kill", 96 }, { "ivr", 96 },
		{ "storm", 100 }, { "window", 108 } };

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		struct hf_suite *s = hf_suite_make(t[i].name, 42, 0);

		assert_int_equal(s->n_conv, t[i].n);
		assert_true(s->exact);
		for (unsigned k = 0; k < s->n_conv; k++) {
			const struct hf_conv *c = &s->conv[k];
			unsigned asks = 0;

			answers_hold(c);
			assert_true(hf_conv_is_to_fail(c, c->probe));
			for (unsigned n = 0; n < c->n_user; n++) {
				asks += c->asks[n] != NULL;
				assert_true(c->asks[n] == NULL ||
				    c->exact[n] != NULL ||
				    c->reads_back[n] > 0);
			}
			assert_true(asks > 0);
			for (unsigned n = 0; n < s->n_axis; n++)
				assert_true(c->label[n][0] != '\0');
		}
		facts_stay(s);
		hf_suite_free(s);
	}
}

/* What stands between the bars: messages "role: text". */
static void
expect(const char *talk, const char *answer)
{
	json_t *view = json_array();
	char *all = strdup(talk), *at = NULL, *line, *got;

	for (line = strtok_r(all, "|", &at); line != NULL;
	     line = strtok_r(NULL, "|", &at)) {
		char *colon = strchr(line, ':');

		assert_non_null(colon);
		*colon = '\0';
		json_array_append_new(view, message(line, colon + 2));
		if (strcmp(line, "tool") == 0)
			json_object_set_new(
			    json_array_get(view, json_array_size(view) - 1),
			    "call_id", json_string("c"));
	}
	got = answer_to(view);
	if (strcmp(got, answer) != 0)
		fail_msg("%s: \"%s\"", talk, got);
	free(got);
	free(all);
	json_decref(view);
}

#define SQUID "user: My daughter is allergic to tinned squid."
#define KIWI "user: My daughter is allergic to raw kiwi."
#define GATE "user: The driver needs the gate code 12 to get in."
#define ASK "user: What is my daughter allergic to?"
#define FORGET "user: " HF_RETRACT "What is my daughter allergic to?"

static void
rules(void **state)
{
	(void)state;
	expect(SQUID "|" FORGET, HF_ANSWER_FORGOTTEN);
	expect(SQUID "|" FORGET "|" ASK, HF_ANSWER_RETRACTED);
	expect(SQUID "|" FORGET "|" KIWI "|" ASK, "You told me: raw kiwi.");
	expect(SQUID "|user: " HF_RETRACT "What makes me ill?|" ASK,
	    "You told me: tinned squid.");
	expect("system: Hello. My daughter is allergic to raw kiwi.|" ASK,
	    "You told me: raw kiwi.");
	expect("assistant: My daughter is allergic to raw kiwi.|" ASK,
	    HF_ANSWER_UNKNOWN);
	expect(SQUID "|user: What could hurt the girl?",
	    "You told me: tinned squid.");
	/* A ticket is what the assistant said, a result what the tool did. */
	expect("assistant: Your ticket is T-1.|user: x|user: " HF_TICKET_PROBE,
	    "I gave you: T-1.");
	expect("user: Your ticket is T-1.|user: " HF_TICKET_PROBE,
	    HF_ANSWER_UNKNOWN);
	expect("tool: a|user: x|tool: b|user: " HF_RESULT_PROBE, "It said: b.");
	expect("user: a|assistant: Tool results: f = b.|user: " HF_RESULT_PROBE,
	    HF_ANSWER_UNKNOWN);
	/* By order. */
	expect(SQUID "|" GATE "|user: " HF_FIRST, "You told me: tinned squid.");
	expect(SQUID "|" GATE "|user: " HF_SECOND, "You told me: 12.");
	expect(SQUID "|user: " HF_SECOND, HF_ANSWER_UNKNOWN);
	expect(SQUID "|" GATE "|assistant: It is 12.|user: " HF_OTHER,
	    "You told me: tinned squid.");
	expect(SQUID "|" GATE "|user: " HF_OTHER, HF_ANSWER_UNKNOWN);
	expect(SQUID "|user: " HF_UNSAID, HF_ANSWER_UNKNOWN);
	expect("user: " HF_WEEK, HF_ANSWER_UNKNOWN);
	expect("user: The boiler inspection was agreed for 28 February 2027.|"
	       "user: " HF_WEEK,
	    "Then it is 7 March.");
	expect("user: The boiler inspection was agreed for 26 December 2027.|"
	       "user: " HF_WEEK,
	    "Then it is 2 January.");
}

static void
oblique(void **state)
{
	(void)state;
	assert_true(hf_oblique_shares("The Boiler is cold.", "a boiler!"));
	assert_true(hf_oblique_shares("at 4711, please", "It is 4711."));
	assert_false(hf_oblique_shares("What is that?", "That is what."));
	assert_false(hf_oblique_shares("boilers", "boiler"));
	assert_false(hf_oblique_shares("", "boiler"));
	/* No template's oblique probe shares one with its statements. */
	for (unsigned i = 0; i < hf_n_templates; i++) {
		const struct hf_template *t = &hf_templates[i];

		assert_false(hf_oblique_shares(t->oblique, t->before));
		assert_false(hf_oblique_shares(t->oblique, t->after));
	}
}

/* All marks of a conversation are looked for. */
static void
bleeding(void **state)
{
	struct hf_suite *s = hf_suite_make("updates", 42, 16);
	struct hf_bleed *b = hf_bleed_new(s);
	const struct hf_conv *c = &s->conv[3], *o = &s->conv[4];
	char canary[HF_CANARY_SIZE], other[HF_CANARY_SIZE], text[200];

	(void)state;
	hf_suite_canary(s, 0, 0, 3, canary);
	hf_suite_canary(s, 0, 0, 4, other);
	snprintf(text, sizeof(text), "%s %s %s %s CB-12-34 CB-short", c->fact,
	    c->more[0], c->more[1], canary);
	assert_int_equal(hf_bleed_count(b, hf_str(text), c, canary), 0);
	assert_int_equal(hf_bleed_count(b, hf_str(text), o, other), 4);
	hf_bleed_free(b);
	hf_suite_free(s);
}

static void
last_statement_wins(void **state)
{
	json_t *v = json_array();
	char *text;

	(void)state;
	json_array_append_new(
	    v, message("user", "My daughter is allergic to raw kiwi."));
	json_array_append_new(v,
	    message("user", "Sorry. My daughter is allergic to tinned squid."));
	json_array_append_new(
	    v, message("user", "What is my daughter allergic to?"));
	text = answer_to(v);
	assert_string_equal(text, "You told me: tinned squid.");
	free(text);
	json_decref(v);
}

static void
tools(void **state)
{
	json_t *names = json_pack("[s]", "look_up"), *v, *c;
	struct hf_answer a;

	(void)state;
	v = json_pack("[{s:s,s:s}]", "role", "user", "text",
	    "Please:\n"
	    "!call look_up {\"id\":1}\n!call other {}\n!call look_up nope\n"
	    "!call look_up {\"id\":2}");
	hf_answer_make(&a, v, names, NULL);
	assert_null(a.text);
	assert_int_equal(json_array_size(a.calls), 2);
	c = json_array_get(a.calls, 1);
	assert_string_equal(
	    json_string_value(json_object_get(c, "arguments")), "{\"id\":2}");
	hf_answer_free(&a);
	/* Without the declaration there is no call. */
	hf_answer_make(&a, v, NULL, NULL);
	assert_null(a.calls);
	hf_answer_free(&a);
	json_array_append_new(v,
	    json_pack("{s:s,s:s,s:[{s:s,s:s,s:s},{s:s,s:s,s:s}]}", "role",
		"assistant", "text", "", "calls", "id", "c1", "name", "look_up",
		"arguments", "{}", "id", "c2", "name", "look_down", "arguments",
		"{}"));
	json_array_append_new(v,
	    json_pack("{s:s,s:s,s:s}", "role", "tool", "text", "two", "call_id",
		"c2"));
	json_array_append_new(v,
	    json_pack("{s:s,s:s,s:s}", "role", "tool", "text", "one", "call_id",
		"c1"));
	hf_answer_make(&a, v, names, NULL);
	assert_string_equal(
	    a.text, "Tool results: look_down = two; look_up = one.");
	hf_answer_free(&a);
	json_decref(v);
	json_decref(names);
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void
canaries(void **state)
{
	enum { SYSTEMS = 2, RUNS = 5, CONVS = 150, N = SYSTEMS * RUNS * CONVS };
	struct hf_suite *s = paper();
	char(*all)[HF_CANARY_SIZE] = calloc(N, sizeof(*all));
	unsigned n = 0;

	(void)state;
	assert_non_null(all);
	for (unsigned i = 0; i < SYSTEMS; i++)
		for (unsigned r = 0; r < RUNS; r++)
			for (unsigned c = 0; c < CONVS; c++)
				hf_suite_canary(s, i, r, c, all[n++]);
	qsort(all, N, sizeof(*all), by_text);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(strlen(all[i]), HF_CANARY_SIZE - 1);
		if (i > 0)
			assert_string_not_equal(all[i - 1], all[i]);
	}
	free(all);
	hf_suite_free(s);
}

/* What is set of a suite, and what is not to be set so. */
static void
knobs(void **state)
{
	static const struct {
		const char *suite, *text;
		bool lenient, ok;
	} t[] = { { "storm", "quota=1", false, true },
		{ "storm", "quota=2,window-ms=500,paced=0", false, true },
		{ "storm", "", false, true }, { "paper", NULL, false, true },
		{ "paper", "quota=1", true, true },
		{ "paper", "quota=1", false, false },
		{ "storm", "quota=0", false, false },
		{ "storm", "quota", false, false },
		{ "storm", "quota=", false, false },
		{ "storm", "quota=-1", false, false },
		{ "storm", "quota=1x", false, false },
		{ "storm", "quota=99999999999999999999", false, false },
		{ "storm", "quotas=1", true, false },
		{ "no such suite", NULL, false, false } };
	struct hf_suite *s;
	struct hf_error e;

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		s = hf_suite_make_with(
		    t[i].suite, 42, 0, t[i].text, t[i].lenient, &e);
		if ((s != NULL) != t[i].ok)
			fail_msg("%s %s", t[i].suite, t[i].text);
		hf_suite_free(s);
	}
	s = hf_suite_make_with(
	    "storm", 42, 31, "quota=10,window-ms=500", false, &e);
	assert_int_equal(s->n_conv, 31);
	assert_int_equal(s->listener[1].rpm, 10);
	assert_int_equal(s->limit.fault.n, 10);
	assert_int_equal(hf_storm_least_ms(&s->storm, 31), 1500);
	assert_int_equal(hf_storm_least_ms(&s->storm, 30), 1000);
	assert_int_equal(hf_storm_least_ms(&s->storm, 1), 0);
	hf_suite_free(s);
}

/* --- the manifest -------------------------------------------------------- */

static int
load(struct hf_manifest *m, const char *text)
{
	json_t *root = json_loads(text, 0, NULL);
	struct hf_error e;
	int rc;

	assert_non_null(root);
	hf_manifest_init(m);
	rc = hf_manifest_parse(m, root, &e);
	json_decref(root);
	return rc;
}

static enum hf_fault_kind
match(const struct hf_manifest *m, const char *provider, const char *conv,
    int turn, int attempt, const char *text)
{
	struct hf_fault_query q = { .provider = hf_str(provider),
		.model = HF_STR("m"),
		.conversation = hf_str(conv),
		.last_user = hf_str(text),
		.turn = turn,
		.attempt = attempt };

	return hf_manifest_match(m, &q).kind;
}

static void
manifest_matches(void **state)
{
	struct hf_manifest m;

	(void)state;
	assert_int_equal(
	    load(&m,
		"{\"faults\":["
		"{\"provider\":\"primary\",\"conversation\":\"a\",\"turn\":2,"
		"\"attempt\":1,\"fault\":\"reset\"},"
		"{\"contains\":\"boom\",\"fault\":\"cut\",\"chunks\":3},"
		"{\"provider\":\"fallback\",\"fault\":\"http_429\","
		"\"retry_after_s\":7},"
		"{\"contains\":\"word\",\"fault\":\"garble\","
		"\"phase\":\"word\",\"at\":12},"
		"{\"contains\":\"end\",\"fault\":\"no_end\"},"
		"{\"model\":\"m\",\"turn\":9,\"fault\":\"html\"},"
		"{\"model\":\"n\",\"fault\":\"empty\"}]}"),
	    0);
	assert_int_equal(m.row[3].fault.kind, HF_FAULT_GARBLE);
	assert_int_equal(m.row[3].fault.phase, HF_PHASE_WORD);
	assert_int_equal(m.row[3].fault.at, 12);
	assert_int_equal(m.row[4].fault.phase, HF_PHASE_CONTENT);
	assert_int_equal(match(&m, "primary", "a", 2, 1, "x"), HF_FAULT_RESET);
	assert_int_equal(match(&m, "primary", "a", 2, 2, "x"), HF_FAULT_NONE);
	assert_int_equal(match(&m, "primary", "a", 1, 1, "x"), HF_FAULT_NONE);
	assert_int_equal(match(&m, "primary", "b", 2, 1, "x"), HF_FAULT_NONE);
	assert_int_equal(
	    match(&m, "primary", "", -1, 1, "a boom!"), HF_FAULT_CUT);
	assert_int_equal(
	    match(&m, "fallback", "a", 2, 1, "x"), HF_FAULT_HTTP_429);
	assert_int_equal(match(&m, "primary", "a", 9, 1, "x"), HF_FAULT_HTML);
	assert_int_equal(match(&m, "primary", "a", 8, 1, "x"), HF_FAULT_NONE);
	assert_int_equal(m.row[1].fault.chunks, 3);
	assert_int_equal(m.row[2].fault.retry_after_s, 7);
	hf_manifest_free(&m);
}

static void
manifest_refuses(void **state)
{
	static const char *const bad[] = {
		"{}",
		"{\"faults\":{}}",
		"{\"faults\":[{}]}",
		"{\"faults\":[{\"fault\":\"no such\"}]}",
		"{\"faults\":[{\"fault\":\"reset\",\"typo\":1}]}",
		"{\"faults\":[{\"fault\":\"reset\",\"turn\":\"1\"}]}",
		"{\"faults\":[{\"fault\":\"slow\",\"delay_ms\":-1}]}",
		"{\"faults\":[{\"fault\":\"reset\",\"provider\":"
		"\"a name that is far too long\"}]}",
		"{\"faults\":[{\"fault\":\"cut\",\"phase\":\"no such\"}]}",
		"{\"faults\":[{\"fault\":\"cut\",\"at\":-1}]}",
		"{\"faults\":[{\"fault\":\"http_429\",\"hint\":\"soon\"}]}",
		"{\"faults\":[{\"fault\":\"rate_limit\",\"n\":3}]}",
		"{\"faults\":[{\"fault\":\"reset\",\"for_ms\":-1}]}",
	};
	struct hf_manifest m;

	(void)state;
	for (unsigned i = 0; i < hf_countof(bad); i++) {
		assert_int_equal(load(&m, bad[i]), HF_EINVAL);
		hf_manifest_free(&m);
	}
}

static void
manifest_of_suite(void **state)
{
	struct hf_suite *s = paper();
	struct hf_manifest m;

	(void)state;
	hf_manifest_init(&m);
	hf_suite_manifest(s, &m);
	assert_int_equal(m.n_row, s->n_conv);
	for (unsigned i = 0; i < s->n_conv; i++) {
		const struct hf_conv *c = &s->conv[i];
		int probe = (int)c->n_user - 1;

		assert_int_equal(
		    match(&m, "primary", c->id, probe, 3, "x"), c->failure);
		assert_int_equal(match(&m, "primary", c->id, probe - 1, 1, "x"),
		    HF_FAULT_NONE);
		assert_int_equal(
		    match(&m, "fallback", c->id, probe, 1, "x"), HF_FAULT_NONE);
		assert_int_equal(
		    hf_conv_turn(c, hf_str(c->tmpl->probe)), probe);
	}
	hf_manifest_free(&m);
	hf_suite_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts),
		cmocka_unit_test(seeded),
		cmocka_unit_test(facts_are_unique),
		cmocka_unit_test(probes),
		cmocka_unit_test(midstream),
		cmocka_unit_test(rolling),
		cmocka_unit_test(others),
		cmocka_unit_test(rules),
		cmocka_unit_test(oblique),
		cmocka_unit_test(bleeding),
		cmocka_unit_test(last_statement_wins),
		cmocka_unit_test(tools),
		cmocka_unit_test(canaries),
		cmocka_unit_test(knobs),
		cmocka_unit_test(manifest_matches),
		cmocka_unit_test(manifest_refuses),
		cmocka_unit_test(manifest_of_suite),
	};

	return cmocka_run_group_tests_name("bench suite", tests, NULL, NULL);
}
