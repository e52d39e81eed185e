/*
 * The parts of a report that are counted from plays: what is bounded by what,
 * and continuity given the control; and the writing of HTML and CSV.
 */
#include <config.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/check.h"
#include "bench/html.h"
#include "bench/report.h"
#include "bench/report_page.h"

#define CONVS 4
#define RUNS 2

struct world {
	struct hf_suite suite;
	struct hf_play_conf conf;
	struct hf_plays plays;
	struct hf_report r;
};

/* Systems 0 baseline, 1 holdfast, 2 control; 'preserved' by run and
 * conversation, then system. */
static void
world_init(struct world *w, const bool preserved[RUNS * CONVS][3])
{
	memset(w, 0, sizeof(*w));
	w->suite.n_conv = CONVS;
	w->conf.suite = &w->suite;
	w->conf.n_run = RUNS;
	w->conf.n_system = 3;
	w->conf.system[0] =
	    (struct hf_play_system){ "baseline", "b", true, false, false };
	w->conf.system[1] =
	    (struct hf_play_system){ "holdfast", "h", false, false, false };
	w->conf.system[2] =
	    (struct hf_play_system){ "control", "h", false, false, true };
	w->plays.n_play = RUNS * CONVS * 3;
	w->plays.play = hf_xcalloc(w->plays.n_play, sizeof(*w->plays.play));
	for (unsigned i = 0; i < w->plays.n_play; i++)
		w->plays.play[i].preserved = preserved[i / 3][i % 3];
	w->r = (struct hf_report){ .conf = &w->conf, .plays = &w->plays };
}

static void
conditional(void **state)
{
	/* By hand: the control has 5 of 8 right.  Of those 5, holdfast has 4
	 * and the baseline 1; holdfast has one more, where the control has
	 * not. */
	static const bool preserved[RUNS * CONVS][3] = {
		{ false, true, true },
		{ true, true, true },
		{ false, false, false },
		{ false, true, false },
		{ false, true, true },
		{ false, true, true },
		{ false, false, false },
		{ false, false, true },
	};
	struct world w;
	json_t *o, *h;

	(void)state;
	world_init(&w, preserved);
	o = hf_report_conditional(&w.r);
	assert_int_equal(json_object_size(o), 2);
	h = hf_get(o, "holdfast");
	assert_int_equal(hf_int(h, "n"), 5);
	assert_int_equal(hf_int(h, "k"), 4);
	assert_int_equal(hf_int(h, "right_only_with"), 1);
	/* Wilson's for 4 of 5, from the published formula by hand. */
	assert_true(fabs(hf_num(h, "lo") - 0.3755) < 1e-4);
	assert_true(fabs(hf_num(h, "hi") - 0.9638) < 1e-4);
	h = hf_get(o, "baseline");
	assert_int_equal(hf_int(h, "n"), 5);
	assert_int_equal(hf_int(h, "k"), 1);
	json_decref(o);
	w.conf.n_system = 2; /* no control: nothing to be given */
	o = hf_report_conditional(&w.r);
	assert_true(json_is_null(o));
	json_decref(o);
	free(w.plays.play);
}

static void
bounds(void **state)
{
	static const bool preserved[RUNS * CONVS][3] = { { false } };
	struct world w;
	json_t *o, *b;

	(void)state;
	world_init(&w, preserved);
	for (unsigned i = 0; i < w.plays.n_play; i++)
		w.plays.play[i].n_answered = 5;
	w.r.log_judged = true;
	w.r.counts.payloads = 180;
	w.r.counts.bad_payloads = 9;
	w.r.counts.failed_over = 24;
	o = hf_report_bounds(&w.r);
	b = hf_get(o, "bleed"); /* of 180 payloads and 24 * 5 answers */
	assert_int_equal(hf_int(b, "n"), 300);
	assert_int_equal(hf_int(b, "k"), 0);
	assert_string_equal(hf_text(b, "rule"), "three");
	assert_true(fabs(hf_num(b, "hi") - 0.01) < 1e-12);
	b = hf_get(o, "bad_payloads");
	assert_string_equal(hf_text(b, "rule"), "wilson");
	assert_string_equal(hf_text(b, "of"), "payloads");
	assert_true(fabs(hf_num(b, "p") - 0.05) < 1e-12);
	assert_true(hf_num(b, "hi") > 0.05);
	b = hf_get(o, "not_failed_over");
	assert_int_equal(hf_int(b, "n"), 24);
	assert_true(fabs(hf_num(b, "hi") - 0.125) < 1e-12);
	json_decref(o);
	w.r.log_judged = false; /* payloads were not seen: nothing is said */
	o = hf_report_bounds(&w.r);
	assert_null(hf_get(o, "bad_payloads"));
	assert_int_equal(hf_int(hf_get(o, "bleed"), "n"), 300);
	json_decref(o);
	free(w.plays.play);
}

static void
escapes(void **state)
{
	static const struct {
		const char *text, *html;
	} t[] = {
		{ "<b onclick='x'>\"&amp;",
		    "&lt;b onclick=&#39;x&#39;&gt;"
		    "&quot;&amp;amp;" },
		{ "a\nb\tc", "a\nb\tc" },
		{ "\x01\x1b[31m\x7f",
		    "\xef\xbf\xbd\xef\xbf\xbd[31m"
		    "\xef\xbf\xbd" },
		{ "\xc3\xa9\xf0\x9f\x98\x80", "\xc3\xa9\xf0\x9f\x98\x80" },
		{ "", "" },
	};
	struct hf_buf b;

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		hf_buf_init(&b, HF_BUF_NOCAP);
		hf_buf_puts(&b, "|");
		hf_html_text(&b, t[i].text);
		assert_string_equal(b.data + 1, t[i].html);
		hf_buf_free(&b);
	}
}

static void
numbers(void **state)
{
	static const struct {
		double v;
		const char *html;
	} t[] = {
		{ 0, "0" },
		{ -0.0, "0" },
		{ 1234.5, "1234" },
		{ 12.34, "12.3" },
		{ 1.236, "1.24" },
		{ 0.0304, "0.030" },
		{ -40.86,
		    "\xe2\x88\x92"
		    "40.9" },
		{ 0.000123, "0.00012" },
		{ -0.0000001, "0.00000" },
	};
	struct hf_buf b;

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		hf_buf_init(&b, HF_BUF_NOCAP);
		hf_html_number(&b, t[i].v);
		assert_string_equal(b.data, t[i].html);
		hf_buf_free(&b);
	}
}

static void
checks(void **state)
{
	static const struct {
		const char *text;
		bool good;
	} t[] = {
		{ "{\"schema\":1,\"suite\":{},\"systems\":{\"a\":{}}}", true },
		{ "{\"schema\":1,\"suites\":{\"paper\":{\"schema\":1,"
		  "\"suite\":{},\"systems\":{\"a\":{}}}}}",
		    true },
		/* Several targets, one of which was not played. */
		{ "{\"schema\":1,\"suites\":{\"paper\":{\"a\":null,\"b\":{"
		  "\"schema\":1,\"suite\":{},\"systems\":{\"a\":{}}}}}}",
		    true },
		{ "{\"schema\":1,\"suites\":{\"paper\":{\"a\":null}}}", false },
		{ "{\"schema\":2,\"suite\":{},\"systems\":{\"a\":{}}}", false },
		{ "{\"schema\":1,\"suite\":{},\"systems\":{}}", false },
		{ "{\"schema\":1,\"systems\":{\"a\":{}}}", false },
		{ "{\"schema\":1,\"suites\":{\"paper\":{\"schema\":1}}}",
		    false },
		{ "{\"schema\":1,\"suites\":{\"a\":{\"schema\":1,"
		  "\"suites\":{}}}}",
		    false },
		{ "[]", false },
	};
	struct hf_error e;

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		json_t *o = json_loads(t[i].text, 0, NULL);
		struct hf_buf b;

		assert_non_null(o);
		assert_int_equal(hf_report_check(o, &e) == 0, t[i].good);
		if (t[i].good) { /* little is in it: that must do */
			hf_buf_init(&b, HF_BUF_NOCAP);
			hf_report_html(&b, o);
			hf_report_csv(&b, o);
			assert_true(hf_buf_ok(&b));
			hf_buf_free(&b);
		}
		json_decref(o);
	}
}

/* What was compared is told under suite and target. */
static void
targets(void **state)
{
	json_t *o = json_loads("{\"schema\":1,\"suites\":{\"paper\":{"
			       "\"left\":{\"schema\":1,\"suite\":{},"
			       "\"systems\":{\"s\":{}}},\"gone\":null,"
			       "\"right\":{\"schema\":1,\"suite\":{},"
			       "\"systems\":{\"s\":{}}}}}}",
	    0, NULL);
	json_t *each = hf_report_each(o);

	(void)state;
	assert_int_equal(json_object_size(each), 2);
	assert_non_null(hf_get(each, "paper: left"));
	assert_non_null(hf_get(each, "paper: right"));
	json_decref(each);
	json_decref(o);
}

/* A system has the same colour whoever else is there. */
static void
colours(void **state)
{
	json_t *o = json_loads("{\"b\":{\"stateless\":true},\"h\":{},"
			       "\"c\":{\"control\":true},\"x\":{}}",
	    0, NULL);

	(void)state;
	assert_string_equal(hf_page_colour(o, "b"), "s0");
	assert_string_equal(hf_page_colour(o, "h"), "s1");
	assert_string_equal(hf_page_colour(o, "c"), "s5");
	assert_string_equal(hf_page_colour(o, "x"), "s2");
	json_object_del(o, "b");
	assert_string_equal(hf_page_colour(o, "h"), "s1");
	json_decref(o);
}

static void
csv(void **state)
{
	json_t *o =
	    json_loads("{\"schema\":1,\"suite\":{\"name\":\"a\\\"b,c\"},"
		       "\"systems\":{\"=1+1\":{\"cpr\":{\"n\":4,\"k\":1,"
		       "\"p\":0.25,\"lo\":0.1,\"hi\":0.5}}}}",
		0, NULL);
	struct hf_buf b;

	(void)state;
	assert_non_null(o);
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_report_csv(&b, o);
	assert_non_null(strstr(b.data,
	    "\r\n\"a\"\"b,c\",\"'=1+1\",\"cpr\",\"\",\"\",4,1,0.25,0.1,0.5,"));
	hf_buf_free(&b);
	json_decref(o);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conditional),
		cmocka_unit_test(bounds),
		cmocka_unit_test(escapes),
		cmocka_unit_test(numbers),
		cmocka_unit_test(checks),
		cmocka_unit_test(targets),
		cmocka_unit_test(colours),
		cmocka_unit_test(csv),
	};

	return cmocka_run_group_tests_name("bench report", tests, NULL, NULL);
}
