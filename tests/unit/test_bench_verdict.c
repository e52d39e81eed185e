/*
 * What a judge is told and how its word is read, whatever stands around it; and
 * the calibration set: what it must cover.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/html.h"
#include "bench/model_judge.h"

/* --- asking --------------------------------------------------------------- */

static json_t *
ask(enum hf_verdict_form form)
{
	struct hf_question q = { "a \"fact\"", "which?", "line\nline" };
	struct hf_buf b;
	json_t *o;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_verdict_ask(&b, "m", form, &q);
	o = json_loadb(b.data, b.size, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	hf_buf_free(&b);
	return o;
}

/* Expected fact, probe and answer, and nothing else of the run. */
static void
told(void **state)
{
	json_t *o = ask(HF_FORM_SCHEMA), *m = hf_get(o, "messages"), *data;

	(void)state;
	assert_string_equal(hf_text(o, "model"), "m");
	assert_int_equal(json_array_size(m), 2);
	assert_string_equal(hf_text(json_array_get(m, 0), "role"), "system");
	data = json_loads(hf_text(json_array_get(m, 1), "content"), 0, NULL);
	assert_int_equal(json_object_size(data), 3);
	assert_string_equal(hf_text(data, "expected_fact"), "a \"fact\"");
	assert_string_equal(hf_text(data, "probe"), "which?");
	assert_string_equal(hf_text(data, "answer"), "line\nline");
	json_decref(data);
	json_decref(o);
}

static void
forms(void **state)
{
	json_t *o = ask(HF_FORM_SCHEMA), *schema;

	(void)state;
	assert_string_equal(
	    hf_text(hf_get(o, "response_format"), "type"), "json_schema");
	schema = hf_get(
	    hf_get(hf_get(o, "response_format"), "json_schema"), "schema");
	assert_int_equal(json_array_size(hf_get(schema, "required")), 2);
	assert_true(json_is_false(hf_get(schema, "additionalProperties")));
	assert_string_equal(
	    hf_text(hf_get(hf_get(schema, "properties"), "preserved"), "type"),
	    "boolean");
	json_decref(o);
	o = ask(HF_FORM_OBJECT);
	assert_string_equal(
	    hf_text(hf_get(o, "response_format"), "type"), "json_object");
	json_decref(o);
	o = ask(HF_FORM_PLAIN);
	assert_null(hf_get(o, "response_format"));
	assert_null(hf_get(o, "temperature"));
	json_decref(o);
}

/* --- reading -------------------------------------------------------------- */

static void
verdicts(void **state)
{
	/* 1, 0; -1: none */
	static const struct {
		const char *said;
		int verdict;
		const char *reason;
	} t[] = {
		{ "{\"reason\": \"same day\", \"preserved\": true}", 1,
		    "same day" },
		{ "{\"preserved\":false}", 0, NULL },
		{ "```json\n{\"preserved\": true, \"reason\": \"x\"}\n```", 1,
		    "x" },
		{ "Sure. Here: {\"preserved\": false, \"reason\": \"\"} ok?", 0,
		    "" },
		{ "{\"result\": {\"preserved\": true}}", 1, NULL },
		{ "{\"preserved\": \"Yes\"}", 1, NULL },
		{ "{\"preserved\": \"FALSE\"}", 0, NULL },
		{ "a { b } {\"preserved\": true}", 1, NULL },
		{ "{\"preserved\": true} {\"preserved\": true}", 1, NULL },
		/* What it thought aloud is not its word. */
		{ "<think>{\"preserved\": true}?</think>{\"preserved\": false}",
		    0, NULL },
		{ "", -1, NULL },
		{ "true", -1, NULL },
		{ "The fact is preserved.", -1, NULL },
		{ "{\"preserved\": null}", -1, NULL },
		{ "{\"preserved\": 1}", -1, NULL },
		{ "{\"preserved\": \"maybe\"}", -1, NULL },
		{ "{\"preserved\": true", -1, NULL },
		/* Two minds. */
		{ "{\"preserved\": true, \"preserved\": false}", -1, NULL },
		{ "{\"preserved\": true} no: {\"preserved\": false}", -1,
		    NULL },
		/* A quotation of the answer is a string, no verdict. */
		{ "{\"reason\": \"it says {\\\"preserved\\\": true}\", "
		  "\"preserved\": false}",
		    0, "it says {\"preserved\": true}" },
	};

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		bool preserved = false;
		char *reason;
		bool read = hf_verdict_read(t[i].said, &preserved, &reason);

		if (read != (t[i].verdict >= 0) ||
		    (read && preserved != (t[i].verdict == 1)))
			fail_msg("'%s': %d %d", t[i].said, read, preserved);
		if (t[i].reason == NULL)
			assert_null(reason);
		else
			assert_string_equal(reason, t[i].reason);
		free(reason);
	}
}

/* --- calibration ---------------------------------------------------------- */

static bool
covers(json_t *cases, const char *kind)
{
	json_t *c;
	size_t i;

	json_array_foreach(
	    cases, i, c) if (strcmp(hf_text(c, "kind"), kind) == 0) return true;
	return false;
}

static void
calibration_set(void **state)
{
	static const char *const kinds[] = { "paraphrase", "partial date",
		"hallucinated substitute", "refusal", "error text",
		"reformatting" };
	struct hf_error e;
	json_t *cases, *c, *ids = json_object();
	unsigned right = 0;
	size_t i;

	(void)state;
	assert_int_equal(hf_calibration_load(&cases, NULL, &e), 0);
	assert_int_equal(json_array_size(cases), 20);
	for (i = 0; i < hf_countof(kinds); i++)
		assert_true(covers(cases, kinds[i]));
	json_array_foreach(cases, i, c)
	{
		bool label = json_is_true(hf_get(c, "preserved"));

		right += label;
		json_object_set(ids, hf_text(c, "id"), c);
		/* One that the words alone decide would test no judge. */
		assert_null(
		    strstr(hf_text(c, "answer"), hf_text(c, "expected_fact")));
	}
	assert_int_equal(json_object_size(ids), 20);
	/* A judge that always says the same must not get by. */
	assert_in_range(right, 8, 12);
	json_decref(ids);
	json_decref(cases);
}

static void
bad_sets(void **state)
{
	struct hf_error e;
	json_t *cases;

	(void)state;
	assert_int_not_equal(
	    hf_calibration_load(&cases, "/nonexistent/set", &e), 0);
	assert_non_null(strstr(e.text, "/nonexistent/set"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told),
		cmocka_unit_test(forms),
		cmocka_unit_test(verdicts),
		cmocka_unit_test(calibration_set),
		cmocka_unit_test(bad_sets),
	};

	return cmocka_run_group_tests_name("bench verdict", tests, NULL, NULL);
}
