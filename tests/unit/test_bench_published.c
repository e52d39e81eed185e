/*
 * Published sets: reading one, what its faithful provider says, what bleed is
 * in it, and what is told of a malformed one.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/answer.h"
#include "bench/judge.h"
#include "bench/suite.h"

/* Two facts behind one probe, one fact planted twice, facts that are part of
 * other texts. */
static const char convs_text[] =
    "[{'id': 'c-1', 'turns': ["
    "  {'role': 'user', 'content': 'I always take tea.'},"
    "  {'role': 'assistant', 'content': 'Tea it is.'},"
    "  {'role': 'user', 'content': 'What is a reef?'},"
    "  {'role': 'assistant', 'content': 'A ridge in the sea.'},"
    "  {'role': 'user', 'content': 'What do I drink?'}],"
    " 'fact_turn_index': 0, 'probe_turn_index': 4, 'expected_fact': 'tea',"
    " 'fact_type': 'preference'},"
    "{'id': 'c-2', 'turns': ["
    "  {'role': 'user', 'content': 'I always take water.'},"
    "  {'role': 'assistant', 'content': 'Water, then.'},"
    "  {'role': 'user', 'content': 'What do I drink?'}],"
    " 'fact_turn_index': 0, 'probe_turn_index': 2, 'expected_fact': 'water',"
    " 'fact_type': 'preference'},"
    "{'id': 'c-3', 'turns': ["
    "  {'role': 'user', 'content': 'What is a reef?'},"
    "  {'role': 'assistant', 'content': 'A ridge in the sea.'},"
    "  {'role': 'user', 'content': 'I always take tea.'},"
    "  {'role': 'assistant', 'content': 'Tea it is.'},"
    "  {'role': 'user', 'content': 'What do I drink?'}],"
    " 'fact_turn_index': 2, 'probe_turn_index': 4, 'expected_fact': 'tea',"
    " 'fact_type': 'habit', 'remark': 'members that nobody knows are left "
    "alone'}]";

static const char rows_text[] =
    "[{'conversation_id': 'c-3', 'failure_turn': 4, 'mode': 'rate_limit',"
    "  'fallback_provider': null},"
    " {'conversation_id': 'c-1', 'failure_turn': 4, 'mode': 'timeout'},"
    " {'conversation_id': 'c-2', 'failure_turn': 2, 'mode': 'api_error',"
    "  'fallback_provider': null}]";

static char dir[] = "/tmp/hf-test-published-XXXXXX";
static char convs[64], rows[64];

static json_t *
parsed(const char *text)
{
	char *copy = strdup(text);
	json_t *o;

	assert_non_null(copy);
	for (char *p = copy; *p != '\0'; p++)
		if (*p == '\'')
			*p = '"';
	o = json_loads(copy, JSON_DECODE_ANY, NULL);
	assert_non_null(o);
	free(copy);
	return o;
}

static int
load(json_t *c, json_t *r, struct hf_suite **s, struct hf_error *e)
{
	assert_int_equal(json_dump_file(c, convs, JSON_ENCODE_ANY), 0);
	assert_int_equal(json_dump_file(r, rows, JSON_ENCODE_ANY), 0);
	json_decref(c);
	json_decref(r);
	return hf_suite_published(s, convs, rows, 42, e);
}

static struct hf_suite *
set(void)
{
	struct hf_suite *s = NULL;
	struct hf_error e;

	if (load(parsed(convs_text), parsed(rows_text), &s, &e) != 0)
		fail_msg("%s", e.text);
	return s;
}

static int
make_dir(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(convs, sizeof(convs), "%s/c.json", dir);
	snprintf(rows, sizeof(rows), "%s/m.json", dir);
	return 0;
}

static int
remove_dir(void **state)
{
	(void)state;
	unlink(convs);
	unlink(rows);
	return rmdir(dir);
}

static void
reads(void **state)
{
	struct hf_suite *s = set();
	struct hf_manifest m;

	(void)state;
	assert_int_equal(s->n_conv, 3);
	assert_string_equal(s->conv[0].id, "c-1");
	assert_int_equal(s->conv[0].n_messages, 5);
	assert_int_equal(s->conv[0].n_user, 3);
	assert_string_equal(s->conv[0].user[1], "What is a reef?");
	assert_string_equal(s->conv[0].assistant[1], "A ridge in the sea.");
	assert_string_equal(s->conv[0].user[2], "What do I drink?");
	assert_string_equal(s->conv[0].fact, "tea");
	assert_string_equal(s->conv[0].mark, "I always take tea.");
	assert_string_equal(s->conv[2].mark, "I always take tea.");
	assert_string_equal(s->conv[2].fact_type, "habit");
	assert_int_equal(s->conv[0].failure, HF_FAULT_SILENCE);
	assert_int_equal(s->conv[1].failure, HF_FAULT_HTTP_502);
	assert_int_equal(s->conv[2].failure, HF_FAULT_HTTP_429);
	hf_manifest_init(&m);
	hf_suite_manifest(s, &m);
	assert_int_equal(m.n_row, 3);
	assert_string_equal(m.row[1].conversation, "c-2");
	assert_int_equal(m.row[1].turn, 1);
	hf_manifest_free(&m);
	hf_suite_free(s);
}

/* What is said to these user messages, each answered with "So." before. */
static void
says(const struct hf_suite *s, const char *const *user, const char *want)
{
	struct hf_answer a;
	json_t *view = json_array();

	for (unsigned i = 0; user[i] != NULL; i++) {
		if (i > 0)
			json_array_append_new(view,
			    json_pack("{s:s,s:s}", "role", "assistant", "text",
				"So."));
		json_array_append_new(view,
		    json_pack("{s:s,s:s}", "role", "user", "text", user[i]));
	}
	hf_answer_make(&a, view, NULL, s->lore);
	assert_string_equal(a.text, want);
	hf_answer_free(&a);
	json_decref(view);
}

#define SAYS(s, want, ...) \
	says(s, (const char *const[]){ __VA_ARGS__, NULL }, want)

static void
answers(void **state)
{
	struct hf_suite *s = set();
	struct hf_answer a;
	json_t *view;

	(void)state;
	SAYS(s, "Tea it is.", "I always take tea.");
	SAYS(s, "A ridge in the sea.", "I always take tea.", "What is a reef?");
	SAYS(s, "You told me: tea.", "I always take tea.", "What is a reef?",
	    "What do I drink?");
	SAYS(s, "You told me: water.", "I always take water.",
	    "What do I drink?");
	/* The last word counts; a near miss does not. */
	SAYS(s, "You told me: water.", "I always take tea.",
	    "I always take water.", "What do I drink?");
	SAYS(s, HF_ANSWER_UNKNOWN, "What do I drink?");
	SAYS(s, HF_ANSWER_UNKNOWN, "I always take tea", "What do I drink?");
	SAYS(s, HF_ANSWER_UNKNOWN, "I always take tea.\n", "What do I drink?");
	SAYS(
	    s, HF_ANSWER_UNKNOWN, "tea", "What is a reef?", "What do I drink?");
	SAYS(s, "I heard: What do I eat?", "I always take tea.",
	    "What do I eat?");
	/* The grammar of our own suite has no say in a foreign one. */
	SAYS(s, "I heard: What must I never be served?",
	    "I must never be served raw eggs, not even a trace.",
	    "What must I never be served?");
	/* Only the caller's own words count, and whole ones. */
	view = json_pack("[{s:s,s:s},{s:s,s:s},{s:s,s:s%}]", "role",
	    "assistant", "text", "I always take tea.", "role", "user", "text",
	    "What do I drink?", "role", "user", "text", "What do I drink?\0",
	    (size_t)17);
	hf_answer_make(&a, view, NULL, s->lore);
	assert_memory_equal(a.text, "I heard: ", 9);
	hf_answer_free(&a);
	json_array_remove(view, 2);
	hf_answer_make(&a, view, NULL, s->lore);
	assert_string_equal(a.text, HF_ANSWER_UNKNOWN);
	hf_answer_free(&a);
	json_decref(view);
	hf_suite_free(s);
}

static void
bleeds(void **state)
{
	struct hf_suite *s = set();
	struct hf_bleed *b = hf_bleed_new(s);
	char own[HF_CANARY_SIZE], other[HF_CANARY_SIZE], *text;

	(void)state;
	hf_suite_canary(s, 0, 0, 0, own);
	hf_suite_canary(s, 0, 0, 1, other);
	/* The own statement, also where another plants the same one. */
	assert_int_equal(
	    hf_bleed_count(b, HF_STR("I always take tea."), &s->conv[0], own),
	    0);
	assert_int_equal(
	    hf_bleed_count(b, HF_STR("I always take water."), &s->conv[0], own),
	    1);
	/* c-1 and c-3 plant the same words: both are foreign to c-2. */
	assert_int_equal(hf_bleed_count(b, HF_STR("So: I always take tea."),
			     &s->conv[1], own),
	    2);
	/* A fact alone is a word of the language. */
	assert_int_equal(
	    hf_bleed_count(b, HF_STR("You told me: water."), &s->conv[0], own),
	    0);
	text = hf_suite_system(&s->conv[0], own);
	assert_int_equal(hf_bleed_count(b, hf_str(text), &s->conv[0], own), 0);
	assert_int_equal(
	    hf_bleed_count(b, hf_str(text), &s->conv[0], other), 1);
	free(text);
	hf_bleed_free(b);
	hf_suite_free(s);
}

/* --- malformed files --------------------------------------------------------
 */

struct fault {
	unsigned at;	  /* conversation or row */
	const char *turn; /* of this index, or NULL */
	const char *member;
	const char *value; /* JSON, ' for "; NULL: removed */
	const char *says;  /* behind "FILE: " */
};

static const struct fault conv_faults[] = {
	{ 0, NULL, "id", NULL, "conversation number 1: id: missing" },
	{ 1, NULL, "id", "7", "conversation number 2: id: expected a string" },
	{ 1, NULL, "id", "'a.b'", "conversation number 2: id: expected 1 to" },
	{ 1, NULL, "id", "'c-1'", "conversation c-1: id: twice" },
	{ 0, NULL, "turns", NULL,
	    "conversation c-1: turns: expected an array" },
	{ 0, NULL, "turns", "[]", "conversation c-1: turns: expected 3 to" },
	{ 0, NULL, "turns", "[1,2,3]",
	    "conversation c-1: turns[0]: role: missing" },
	{ 0, "2", "role", "'assistant'",
	    "conversation c-1: turns[2]: role: expected \"user\"" },
	{ 0, "3", "role", NULL, "conversation c-1: turns[3]: role: missing" },
	{ 0, "3", "content", NULL,
	    "conversation c-1: turns[3]: content: missing" },
	{ 0, "3", "content", "''",
	    "conversation c-1: turns[3]: content: expected a string" },
	{ 0, "2", "content", "'I always take tea.'",
	    "conversation c-1: turns[2]: content: the same was said" },
	{ 0, NULL, "fact_type", NULL, "conversation c-1: fact_type: missing" },
	{ 0, NULL, "expected_fact", "[]",
	    "conversation c-1: expected_fact: expected a string" },
	{ 0, NULL, "expected_fact", "'coffee'",
	    "conversation c-1: expected_fact: is not in the message" },
	{ 0, NULL, "expected_fact", "'a'",
	    "conversation c-1: expected_fact: is part of" },
	{ 2, NULL, "expected_fact", "'take tea'",
	    "conversation c-3: expected_fact: another conversation" },
	{ 0, NULL, "fact_turn_index", NULL,
	    "conversation c-1: fact_turn_index: missing" },
	{ 0, NULL, "fact_turn_index", "-1",
	    "conversation c-1: fact_turn_index: expected an index" },
	{ 0, NULL, "fact_turn_index", "1",
	    "conversation c-1: fact_turn_index: is not a user message" },
	{ 0, NULL, "fact_turn_index", "4",
	    "conversation c-1: fact_turn_index: is not a user message" },
	{ 0, NULL, "probe_turn_index", "2",
	    "conversation c-1: probe_turn_index: is not the last" },
	{ 0, NULL, "probe_turn_index", "1e3",
	    "conversation c-1: probe_turn_index: expected an index" },
};

static const struct fault row_faults[] = {
	{ 0, NULL, "conversation_id", NULL,
	    "row number 1: conversation_id: missing" },
	{ 0, NULL, "conversation_id", "'c-4'",
	    "conversation c-4: conversation_id: no such" },
	{ 1, NULL, "conversation_id", "'c-3'",
	    "conversation c-3: conversation_id: twice" },
	{ 0, NULL, "failure_turn", NULL,
	    "conversation c-3: failure_turn: missing" },
	{ 0, NULL, "failure_turn", "2",
	    "conversation c-3: failure_turn: is not the probe's" },
	{ 0, NULL, "mode", NULL, "conversation c-3: mode: missing" },
	{ 0, NULL, "mode", "'outage'", "conversation c-3: mode: expected" },
	{ 0, NULL, "fallback_provider", "'other'",
	    "conversation c-3: fallback_provider: expected null" },
};

static void
break_member(json_t *root, const struct fault *f)
{
	json_t *o = json_array_get(root, f->at);

	if (f->turn != NULL)
		o = json_array_get(
		    json_object_get(o, "turns"), strtoul(f->turn, NULL, 10));
	if (f->value == NULL)
		assert_int_equal(json_object_del(o, f->member), 0);
	else
		json_object_set_new(o, f->member, parsed(f->value));
}

static void
told(const char *file, const char *says, json_t *c, json_t *r)
{
	struct hf_suite *s = NULL;
	struct hf_error e;
	char want[256];

	snprintf(want, sizeof(want), "%s: %s", file, says);
	assert_int_equal(load(c, r, &s, &e), HF_EINVAL);
	assert_null(s);
	if (strncmp(e.text, want, strlen(want)) != 0)
		fail_msg("\"%s\", not \"%s\"", e.text, want);
}

static void
malformed(void **state)
{
	json_t *o;

	(void)state;
	for (unsigned i = 0; i < hf_countof(conv_faults); i++) {
		o = parsed(convs_text);
		break_member(o, &conv_faults[i]);
		told(convs, conv_faults[i].says, o, parsed(rows_text));
	}
	for (unsigned i = 0; i < hf_countof(row_faults); i++) {
		o = parsed(rows_text);
		break_member(o, &row_faults[i]);
		told(rows, row_faults[i].says, parsed(convs_text), o);
	}
	o = parsed(rows_text);
	json_array_remove(o, 0);
	told(rows, "conversation c-3: mode: no row", parsed(convs_text), o);
	told(convs, "expected an array", parsed("{}"), parsed(rows_text));
	told(convs, "expected an array", parsed("[]"), parsed(rows_text));
	told(convs, "conversation number 1: id: missing", parsed("[1]"),
	    parsed(rows_text));
	told(rows, "expected an array", parsed(convs_text), parsed("{}"));
}

static void
unreadable(void **state)
{
	struct hf_suite *s = NULL;
	struct hf_error e;
	FILE *f;

	(void)state;
	assert_int_equal(
	    hf_suite_published(&s, "/nonexistent/x", rows, 42, &e), HF_EINVAL);
	assert_memory_equal(e.text, "/nonexistent/x: ", 16);
	f = fopen(convs, "we");
	assert_non_null(f);
	fputs("[\n{\"id\": \"a\",\n}", f);
	fclose(f);
	assert_int_equal(
	    hf_suite_published(&s, convs, rows, 42, &e), HF_EINVAL);
	assert_non_null(strstr(e.text, "c.json: line 3: "));
	assert_null(s);
}

/* A long name of a file must not push out what is wrong. */
static void
tells_all(void **state)
{
	struct hf_suite *s = NULL;
	json_t *o = parsed(convs_text);
	char id[HF_CONV_ID];
	struct hf_error e;

	(void)state;
	memset(id, 'x', sizeof(id) - 1);
	id[sizeof(id) - 1] = '\0';
	json_object_set_new(json_array_get(o, 0), "id", json_string(id));
	json_object_set_new(
	    json_array_get(json_object_get(json_array_get(o, 0), "turns"), 4),
	    "role", json_string("system"));
	assert_int_equal(load(o, parsed(rows_text), &s, &e), HF_EINVAL);
	assert_non_null(strstr(e.text, id));
	assert_non_null(strstr(e.text, "turns[4]: role: expected \"user\""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads),
		cmocka_unit_test(answers),
		cmocka_unit_test(bleeds),
		cmocka_unit_test(malformed),
		cmocka_unit_test(unreadable),
		cmocka_unit_test(tells_all),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
