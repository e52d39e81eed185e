/*
 * What gateways of others are told by templates; and what the reference proxy
 * tells its targets, without a bug and with each of those of its memory.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/answer.h"
#include "bench/endpoint.h"
#include "bench/fill.h"
#include "bench/memory.h"
#include "bench/profile.h"

/* --- templates ------------------------------------------------------------ */

static void
templates(void **state)
{
	static const struct {
		const char *text, *filled;
	} t[] = {
		{ "", "" },
		{ "nothing", "nothing" },
		{ "X-Session: {session}", "X-Session: s-1" },
		{ "{session}{session}", "s-1s-1" },
		{ "{port}", "8080" },
		{ "{unknown} {} { session } {Session}",
		    "{unknown} {} { session } {Session}" },
		{ "{\"a\":{\"b\":\"{session}\"}}", "{\"a\":{\"b\":\"s-1\"}}" },
		{ "[{#list}{comma}{name}{/list}]", "[a,b]" },
		{ "{#list}{name}={port}{#last};{/last} {/list}",
		    "a=1 b=8080; " },
		{ "{#list}{#more}{comma}{name}{port}{/more}|{/list}",
		    "x1,y1||" },
		{ "{#yes}on{/yes}{#no}on{/no}", "on" },
		{ "{^yes}off{/yes}{^no}off{/no}{^none}off{/none}", "offoff" },
		{ "{#session}has{/session}{#empty}has{/empty}", "has" },
		{ "{#port}n{/port}{#zero}n{/zero}", "n" },
		{ "{#list}not closed", "{#list}not closed" },
		{ "not opened{/list}", "not opened{/list}" },
		{ "{#none}{#none}x{/none}y{/none}z", "z" },
		{ "open {session", "open {session" },
	};
	json_t *scope =
	    json_pack("{s:s,s:i,s:b,s:b,s:s,s:i,s:[{s:s,s:i,s:[{s:s},{s:s}]},"
		      "{s:s,s:b,s:[]}]}",
		"session", "s-1", "port", 8080, "yes", 1, "no", 0, "empty", "",
		"zero", 0, "list", "name", "a", "port", 1, "more", "name", "x",
		"name", "y", "name", "b", "last", 1, "more");

	(void)state;
	assert_non_null(scope);
	for (unsigned i = 0; i < hf_countof(t); i++) {
		char *got = hf_fill_text(t[i].text, scope);

		assert_string_equal(got, t[i].filled);
		free(got);
	}
	json_decref(scope);
}

/* A request's scope has the route's targets with the addresses of their
 * providers, and what is in force besides. */
static void
endpoint(void **state)
{
	static const char *const url[] = { "http://127.0.0.1:1001",
		"http://127.0.0.1:1002" };
	struct hf_suite *s = hf_suite_make("midstream", 42, 54);
	struct hf_endpoint e = { .routes = hf_endpoint_routes(s, url),
		.base = json_pack("{s:i}", "patient_ms", 10000) };
	struct hf_play p = { .c = &s->conv[0], .run = 1 };
	json_t *scope, *targets, *second;
	char *got;

	(void)state;
	memcpy(p.session, "bench-1", sizeof("bench-1"));
	memcpy(p.user, "m0001.r2.x", sizeof("m0001.r2.x"));
	scope = hf_endpoint_scope(&e, &p);
	got = hf_fill_text(
	    "{session} {play} {conversation} {run} {turn} {patient_ms}: "
	    "{#targets}{comma}{listener}={url}:{port}{#later}+{/later}"
	    "{/targets}",
	    scope);
	assert_string_equal(got,
	    "bench-1 m0001.r2.x m0001 2 1 10000: "
	    "primary=http://127.0.0.1:1001:1001,"
	    "fallback=http://127.0.0.1:1002:1002+");
	free(got);
	targets = json_object_get(scope, "targets");
	second = json_array_get(targets, 1);
	assert_int_equal(json_array_size(targets), 2);
	assert_string_equal(json_string_value(json_object_get(second, "model")),
	    s->route[p.c->route].target[1].model);
	json_decref(scope);
	json_decref(e.routes);
	json_decref(e.base);
	hf_suite_free(s);
}

/* Those that come with the program are whole. */
static void
profiles(void **state)
{
	static const char *const names[] = { "holdfast", "nginx", "portkey" };

	(void)state;
	for (unsigned i = 0; i < hf_countof(names); i++) {
		struct hf_endpoint e = { 0 };
		struct hf_profile p;
		struct hf_error err;

		assert_int_equal(hf_profile_load(&p, names[i], &err), 0);
		assert_string_equal(hf_profile_name(&p), names[i]);
		hf_profile_endpoint(&p, &e);
		assert_true(e.n_header > 0);
		assert_non_null(e.model);
		assert_int_equal(hf_profile_full_history(&p), i > 0);
		hf_profile_free(&p);
	}
}

/* --- the proxy's memory ----------------------------------------------------
 */

/* "s uA aB uC": roles by their first letter, and texts. */
static void
assert_messages(json_t *list, const char *expected)
{
	struct hf_buf b;
	json_t *m;
	size_t i;

	hf_buf_init(&b, HF_BUF_NOCAP);
	json_array_foreach(list, i, m)
	{
		hf_buf_printf(&b, "%s%c%s", i > 0 ? " " : "",
		    json_string_value(json_object_get(m, "role"))[0],
		    json_string_value(json_object_get(m, "content")));
	}
	assert_string_equal(b.size == 0 ? "" : b.data, expected);
	hf_buf_free(&b);
	json_decref(list);
}

static json_t *
message(char role, const char *text)
{
	const char *name = role == 's' ? "system" :
	    role == 'u'		       ? "user" :
	    role == 't'		       ? "tool" :
					 "assistant";

	return json_pack("{s:s,s:s}", "role", name, "content", text);
}

/* As assert_messages() shows them; new. */
static json_t *
messages(const char *text)
{
	json_t *out = json_array();
	char word[32];

	while (*text != '\0') {
		size_t n = strcspn(text, " ");

		assert_true(n < sizeof(word));
		memcpy(word, text, n);
		word[n] = '\0';
		json_array_append_new(out, message(word[0], word + 1));
		text += n + (text[n] == ' ');
	}
	return out;
}

/* A turn of target number 'by': what was sent, and answered. */
static void
turn(struct hf_session *s, const char *sent, const char *answer, int by)
{
	json_t *list = messages(sent), *a = message('a', answer);
	struct hf_turn_end t = { list, hf_session_begin(s, list), a, NULL, by };

	hf_session_end(s, &t);
	json_decref(t.conversation);
	json_decref(list);
	json_decref(a);
}

/* What target number 'target' is told on the next turn. */
static json_t *
told(struct hf_session *s, const char *sent, unsigned target)
{
	json_t *list = messages(sent);
	json_t *conversation = hf_session_begin(s, list), *out;

	out = hf_session_tell(s, conversation, target, target > 0);
	json_decref(conversation);
	json_decref(list);
	return out;
}

static struct hf_session *
session(struct hf_memory *m, const char *name)
{
	struct hf_session *s = hf_memory_session(m, hf_str(name));

	turn(s, "sS u1", "2", 0);
	turn(s, "u3", "4", 0);
	turn(s, "u5", "6", 0);
	return s;
}

static void
remembers(void **state)
{
	struct hf_memory *m = hf_memory_new(HF_BUG_NONE);
	struct hf_session *s = session(m, "one"), *other = session(m, "two");
	json_t *dropped;

	(void)state;
	assert_ptr_equal(hf_memory_session(m, HF_STR("one")), s);
	assert_ptr_not_equal(s, other);
	for (unsigned k = 0; k < 2; k++)
		assert_messages(told(s, "u7", k), "sS u1 a2 u3 a4 u5 a6 u7");
	/* The whole list is what its client knows. */
	assert_messages(told(s, "sS u1 ahalf u7", 1), "sS u1 ahalf u7");
	dropped = messages("sS u1 a2 u3 a4 u5 a6 ubegun");
	hf_session_drop(s, dropped);
	json_decref(dropped);
	assert_messages(told(s, "u7", 0), "sS u1 a2 u3 a4 u5 a6 u7");
	hf_memory_free(m);
}

/* Each bug of the memory shows on a turn that another target answers, and on
 * no other. */
static void
forgets(void **state)
{
	static const struct {
		enum hf_bug bug;
		const char *next, *later;
	} t[] = {
		{ HF_BUG_LAST_TURN, "u7", "sS u1 a2 u3 a4 u7" },
		{ HF_BUG_TRIM, "u7", "sS u3 a4 u5 a6 u7" },
		{ HF_BUG_LAST_ONLY, "u7", "u7" },
		{ HF_BUG_REORDER, "u7", "sS u1 a2 u5 a6 u3 a4 u7" },
		{ HF_BUG_RERUN, "t7", "sS u1 a2 u3 a4 u5" },
		{ HF_BUG_LOSE_RESULT, "t7", "sS u1 a2 u3 a4 u5 a6" },
	};

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		struct hf_memory *m = hf_memory_new(t[i].bug);
		struct hf_session *s = session(m, "one");
		json_t *first = told(s, t[i].next, 0);

		assert_int_equal(json_array_size(first), 8);
		json_decref(first);
		assert_messages(told(s, t[i].next, 1), t[i].later);
		hf_memory_free(m);
	}
}

static void
swaps(void **state)
{
	struct hf_memory *m = hf_memory_new(HF_BUG_SWAP);
	struct hf_session *one = session(m, "one"), *two;

	(void)state;
	two = hf_memory_session(m, HF_STR("two"));
	turn(two, "sT u8", "9", 0);
	assert_messages(told(one, "u7", 1), "sS u1 a2 u3 a4 u5 a6 u7");
	assert_messages(told(two, "u7", 1), "sS u1 a2 u3 a4 u5 a6 u7");
	assert_messages(told(one, "u7", 1), "sT u8 a9 u7");
	hf_memory_free(m);
}

static void
is_stale(void **state)
{
	struct hf_memory *m = hf_memory_new(HF_BUG_STALE);
	struct hf_session *s = session(m, "one");

	(void)state;
	turn(s, "u7", "8", 1);
	assert_messages(told(s, "u9", 1), "sS u1 a2 u3 a4 u5 a6 u7 a8 u9");
	assert_messages(told(s, "u9", 0), "sS u1 a2 u3 a4 u5 a6 u9");
	hf_memory_free(m);
}

static void
keeps_too_much(void **state)
{
	struct hf_memory *m = hf_memory_new(HF_BUG_SAID);
	struct hf_session *s = hf_memory_session(m, HF_STR("one"));

	(void)state;
	turn(s, "sS u1", "whole", 0);
	assert_messages(told(s, "sS u1 awho u2", 0), "sS u1 awhole u2");
	hf_memory_free(m);
	m = hf_memory_new(HF_BUG_GHOST);
	s = session(m, "one");
	assert_messages(
	    told(s, "sS u1 a2 u3 a4 u55", 0), "sS u1 a2 u3 a4 u5 a6 u55");
	hf_memory_free(m);
}

/* The table's own rules. */
static void
bugs(void **state)
{
	(void)state;
	assert_int_equal(HF_BUG_COUNT - 1, 12);
	assert_int_equal(hf_bug_find("nothing"), HF_BUG_COUNT);
	for (unsigned b = HF_BUG_NONE + 1; b < HF_BUG_COUNT; b++) {
		bool any = false;

		assert_int_equal(hf_bug_find(hf_bugs[b].name), b);
		for (unsigned i = 0; i < hf_n_suite_kinds; i++)
			any |= hf_bug_in_suite(
			    (enum hf_bug)b, hf_suite_kinds[i].name);
		assert_true(any);
	}
	assert_false(hf_bug_in_suite(HF_BUG_TRIM, "pap"));
	assert_false(hf_bug_in_suite(HF_BUG_TRIM, "paper oblique"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(templates),
		cmocka_unit_test(endpoint),
		cmocka_unit_test(profiles),
		cmocka_unit_test(remembers),
		cmocka_unit_test(forgets),
		cmocka_unit_test(swaps),
		cmocka_unit_test(is_stale),
		cmocka_unit_test(keeps_too_much),
		cmocka_unit_test(bugs),
	};

	return cmocka_run_group_tests_name(
	    "bench any gateway", tests, NULL, NULL);
}
