/*
 * The suites: their counts, that a seed fixes them, that no fact can be taken
 * for another, that answers come from the messages alone; and the manifest.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "bench/answer.h"
#include "bench/rng.h"
#include "bench/suite.h"

/* digest() of the suite "paper" with seed 42. */
#define PAPER_42 UINT64_C(0x39bb1a07afb5afaa)

static struct hf_suite *
paper(void)
{
	struct hf_suite *s = hf_suite_make("paper", 42);

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
	struct hf_suite *c = hf_suite_make("paper", 43);

	(void)state;
	assert_true(digest(a) == digest(b));
	assert_true(digest(a) != digest(c));
	/* The suite of seed 42 as published: a change of wording or of the
	 * generator is a new suite and must be meant. */
	assert_int_equal(digest(a), PAPER_42);
	hf_suite_free(a);
	hf_suite_free(b);
	hf_suite_free(c);
	assert_null(hf_suite_make("no such suite", 42));
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
	struct hf_fault_query q = { hf_str(provider), hf_str(conv),
		hf_str(text), turn, attempt };

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
		"\"retry_after_s\":7}]}"),
	    0);
	assert_int_equal(match(&m, "primary", "a", 2, 1, "x"), HF_FAULT_RESET);
	assert_int_equal(match(&m, "primary", "a", 2, 2, "x"), HF_FAULT_NONE);
	assert_int_equal(match(&m, "primary", "a", 1, 1, "x"), HF_FAULT_NONE);
	assert_int_equal(match(&m, "primary", "b", 2, 1, "x"), HF_FAULT_NONE);
	assert_int_equal(
	    match(&m, "primary", "", -1, 1, "a boom!"), HF_FAULT_CUT);
	assert_int_equal(
	    match(&m, "fallback", "a", 2, 1, "x"), HF_FAULT_HTTP_429);
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
		cmocka_unit_test(last_statement_wins),
		cmocka_unit_test(tools),
		cmocka_unit_test(canaries),
		cmocka_unit_test(manifest_matches),
		cmocka_unit_test(manifest_refuses),
		cmocka_unit_test(manifest_of_suite),
	};

	return cmocka_run_group_tests_name("bench suite", tests, NULL, NULL);
}
