/*
 * Faithful providers with a window, and the judge of what they are told: only
 * whole oldest turns may be missing, and no more of them than had to be.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/check.h"
#include "bench/judge.h"
#include "bench/suite.h"
#include "bench/window.h"

static void
test_names(void **state)
{
	static const struct {
		const char *model;
		unsigned window;
		bool told;
	} t[] = { { "model-7-w4096", 4096, true },
		{ "model-7-u512", 512, false }, { "model-b", 0, false },
		{ "", 0, false }, { "4096", 0, false }, { "w4096", 0, false },
		{ "-w", 0, false }, { "x-v4096", 0, false } };

	(void)state;
	for (size_t i = 0; i < hf_countof(t); i++) {
		assert_int_equal(
		    hf_model_window(hf_str(t[i].model)), t[i].window);
		assert_int_equal(
		    hf_model_window_is_told(hf_str(t[i].model)), t[i].told);
	}
}

static void
test_counts(void **state)
{
	json_t *view = json_pack("[{s:s,s:s},{s:s,s:s,s:[{s:s,s:s}]}]", "role",
	    "user", "text", "one two", "role", "assistant", "text", "", "calls",
	    "name", "f", "arguments", "{}");

	(void)state;
	assert_int_equal(hf_count_text(HF_STR("")), 0);
	assert_int_equal(hf_count_text(HF_STR("one two, three.")), 5);
	assert_int_equal(hf_count_text(HF_STR("eightletters 12345")), 4);
	assert_int_equal(hf_count_text(HF_STR("\xe4\xb8\xad\xe6\x96\x87")), 2);
	assert_int_equal(hf_count_view(view), 4 + 2 + 4 + 0 + 1 + 2);
	json_decref(view);
}

static void
refusal(const struct hf_bench_dialect *d, const char *model, int max,
    const char *want)
{
	json_t *body = json_pack("{s:s,s:[{s:s,s:s}]}", "model", model,
	    "messages", "role", "user", "content", "one two three four five");
	json_t *view;
	struct hf_refusal r;

	if (max > 0)
		json_object_set_new(body, "max_tokens", json_integer(max));
	view = d->view(body);
	assert_int_equal(hf_window_check(d, hf_str(model), body, view, &r),
	    want == NULL ? 0 : -1);
	if (want != NULL) {
		assert_int_equal(r.status, 400);
		assert_non_null(strstr(r.message, want));
		assert_int_equal(r.window, hf_model_window(hf_str(model)));
	}
	json_decref(view);
	json_decref(body);
}

static void
test_refusals(void **state)
{
	(void)state;
	refusal(&hf_bench_openai, "m-w9", 0, NULL);
	refusal(&hf_bench_openai, "m-w8", 0,
	    "maximum context length is 8 tokens. However, your messages "
	    "resulted in 9 tokens");
	refusal(&hf_bench_openai, "m-u12", 4,
	    "requested 13 tokens (9 in the messages, 4 in the completion)");
	refusal(&hf_bench_openai, "m", 1000000, NULL);
	refusal(&hf_bench_anthropic, "m-w13", 4, NULL);
	refusal(&hf_bench_anthropic, "m-w12", 4, "limit: 9 + 4 > 12");
	refusal(&hf_bench_anthropic, "m-w8", 4, "9 tokens > 8 maximum");
}

/* --- the judge --------------------------------------------------------------
 */

struct world {
	struct hf_suite *suite;
	struct hf_play play;
	json_t *view; /* the whole history on the probe */
	unsigned turn, window;
};

/* A conversation of the suite, played to its probe; 'place' as its label. */
static void
world_init(struct world *w, const char *place)
{
	struct hf_play *p = &w->play;
	unsigned i = 0;

	memset(w, 0, sizeof(*w));
	w->suite = hf_suite_make("window", 42, 0);
	while (strcmp(w->suite->conv[i].label[2], place) != 0)
		i++;
	p->c = &w->suite->conv[i];
	p->system_text = hf_suite_system(p->c, "CB-TEST");
	w->turn = p->c->n_user - 1;
	w->window = (unsigned)strtoul(p->c->label[0], NULL, 10);
	w->view = json_array();
	json_array_append_new(w->view,
	    json_pack("{s:s,s:s}", "role", "system", "text", p->system_text));
	for (unsigned k = 0; k <= w->turn; k++) {
		const struct hf_conv *c = p->c;
		json_t *m = json_pack("{s:s,s:s}", "role",
		    c->tool[k] ? "tool" : "user", "text", c->user[k]);

		if (c->tool[k])
			json_object_set_new(m, "call_id", json_string("id"));
		json_array_append_new(w->view, m);
		if (k == w->turn)
			break;
		p->answer[k] = hf_xstrdup(
		    c->exact[k] != NULL ? c->exact[k] : c->assistant[k]);
		p->calls[k] = json_deep_copy(c->calls[k]);
		m = json_pack(
		    "{s:s,s:s}", "role", "assistant", "text", p->answer[k]);
		if (p->calls[k] != NULL) {
			json_object_set_new(json_array_get(p->calls[k], 0),
			    "id", json_string("id"));
			json_object_set(m, "calls", p->calls[k]);
		}
		json_array_append_new(w->view, m);
	}
	p->n_answered = w->turn;
}

static void
world_free(struct world *w)
{
	for (unsigned k = 0; k < w->turn; k++) {
		free(w->play.answer[k]);
		json_decref(w->play.calls[k]);
	}
	free(w->play.system_text);
	json_decref(w->view);
	hf_suite_free(w->suite);
}

/* Messages from number 'first' on, behind the system message. */
static json_t *
newest(const struct world *w, size_t first)
{
	json_t *v = json_array();

	json_array_append(v, json_array_get(w->view, 0));
	for (; first < json_array_size(w->view); first++)
		json_array_append(v, json_array_get(w->view, first));
	return v;
}

static struct hf_wrong
judge(const struct world *w, json_t *view)
{
	struct hf_wrong r = hf_judge_fit(&w->play, w->turn, view, w->window);

	json_decref(view);
	return r;
}

static void
wrong(const struct world *w, json_t *view, enum hf_blame blame)
{
	struct hf_wrong r = judge(w, view);

	assert_non_null(r.what);
	assert_int_equal(r.blame, blame);
}

static void
test_oldest(void **state)
{
	struct world w;
	unsigned right = 0;
	size_t n;

	(void)state;
	world_init(&w, "newest turns");
	n = json_array_size(w.view);
	/* As many turns as there is room for, from the question on. */
	for (size_t first = 2; first < n; first++) {
		struct hf_wrong r = judge(&w, newest(&w, first));

		if (first % 2 == 0) {
			assert_int_equal(r.blame, HF_BLAME_FIT);
			assert_non_null(r.what);
		} else if (r.what == NULL) {
			right++;
		} else {
			/* From here on too much is left out. */
			assert_true(first > n / 2);
			assert_int_equal(r.blame, HF_BLAME_FIT);
		}
	}
	assert_in_range(right, 6, 11);
	world_free(&w);
}

static void
test_else(void **state)
{
	struct world w;
	json_t *v;
	size_t n;

	(void)state;
	world_init(&w, "newest turns");
	n = json_array_size(w.view);
	/* The system message. */
	v = newest(&w, 9);
	json_array_remove(v, 0);
	wrong(&w, v, HF_BLAME_FIT);
	/* One in the middle, the newest, twice, in another order, changed. */
	v = newest(&w, 9);
	json_array_remove(v, 5);
	json_array_remove(v, 5);
	wrong(&w, v, HF_BLAME_STORE);
	v = newest(&w, 9);
	json_array_remove(v, n - 10);
	assert_non_null(judge(&w, v).what);
	v = newest(&w, 9);
	json_array_insert(v, 3, json_array_get(v, 1));
	json_array_insert(v, 4, json_array_get(v, 2));
	assert_non_null(judge(&w, v).what);
	v = newest(&w, 9);
	json_array_append(v, json_array_get(v, 1));
	json_array_remove(v, 1);
	assert_non_null(judge(&w, v).what);
	v = newest(&w, 9);
	json_array_set_new(
	    v, 2, json_pack("{s:s,s:s}", "role", "assistant", "text", "no"));
	wrong(&w, v, HF_BLAME_RECONCILE);
	/* And nothing else. */
	assert_null(judge(&w, newest(&w, 9)).what);
	world_free(&w);
}

static void
test_result(void **state)
{
	struct world w;
	unsigned k = 0;

	(void)state;
	world_init(&w, "tool's result");
	while (!w.play.c->tool[k])
		k++;
	assert_null(judge(&w, newest(&w, 2 * (k - 1) + 1)).what);
	wrong(&w, newest(&w, 2 * k + 1), HF_BLAME_DIALECT);
	world_free(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_oldest),
		cmocka_unit_test(test_else),
		cmocka_unit_test(test_result),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
