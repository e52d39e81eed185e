/*
 * A report as a page: one file that loads nothing.
 */
#include <config.h>

#include "bench/report.h"

#include <stdio.h>

#include "bench/report_page.h"

static int
check_one(json_t *report, struct hf_error *e)
{
	if (hf_int(report, "schema") != 1)
		return hf_fail(e, HF_EINVAL, "no report of schema 1");
	if (json_is_object(hf_get(report, "systems")) &&
	    json_object_size(hf_get(report, "systems")) > 0 &&
	    json_is_object(hf_get(report, "suite")))
		return 0;
	return hf_fail(e, HF_EINVAL, "a report without systems");
}

int
hf_report_check(json_t *file, struct hf_error *e)
{
	json_t *all, *one;
	const char *title;
	int rc = 0;

	if (hf_int(file, "schema") != 1)
		return hf_fail(e, HF_EINVAL, "no report of schema 1");
	all = hf_report_each(file);
	json_object_foreach(all, title, one)
	{
		if (rc == 0 && check_one(one, e) != 0)
			rc = hf_error_prefix(e, title);
	}
	if (rc == 0 && json_object_size(all) == 0)
		rc = hf_fail(e, HF_EINVAL, "nothing is in it");
	json_decref(all);
	return rc;
}

/* Of one suite, against several targets. */
static void
add_targets(json_t *out, const char *suite, json_t *targets)
{
	const char *target;
	json_t *one;

	json_object_foreach(targets, target, one)
	{
		struct hf_buf title;

		if (json_is_null(one))
			continue; /* it was not played */
		hf_buf_init(&title, HF_BUF_NOCAP);
		hf_buf_puts(&title, suite);
		hf_buf_puts(&title, ": ");
		hf_buf_puts(&title, target);
		json_object_set(out, title.data, one);
		hf_buf_free(&title);
	}
}

json_t *
hf_report_each(json_t *file)
{
	json_t *out = json_object(), *suites = hf_get(file, "suites"), *one;
	const char *name;

	if (suites == NULL)
		json_object_set(
		    out, hf_text(hf_get(file, "suite"), "name"), file);
	json_object_foreach(suites, name, one)
	{
		if (hf_get(one, "schema") != NULL)
			json_object_set(out, name, one);
		else
			add_targets(out, name, one);
	}
	return out;
}

static void
put_meta(struct hf_buf *b, json_t *report)
{
	json_t *run = hf_get(report, "run"), *suite = hf_get(report, "suite");

	hf_buf_printf(b,
	    "<p class=\"dim\">Seed %lld: %d conversations, %d turns; %d %s, %d "
	    "at once, ",
	    json_integer_value(hf_get(suite, "seed")),
	    hf_int(suite, "conversations"), hf_int(suite, "turns"),
	    hf_int(run, "runs"), hf_int(run, "runs") == 1 ? "run" : "runs",
	    hf_int(run, "concurrency"));
	hf_html_text(b, hf_text(run, "history"));
	hf_buf_printf(b, " history, %s; played in ",
	    json_is_true(hf_get(run, "stream")) ? "streams" : "no streams");
	hf_html_number(b, hf_num(run, "wall_s"));
	hf_buf_puts(b, " s, ended ");
	hf_html_text(b, hf_text(run, "ended"));
	hf_buf_puts(b, ", version ");
	hf_html_text(b, hf_text(run, "version"));
	hf_buf_puts(b, ".</p>\n");
}

static void
put_suite(struct hf_buf *b, const char *title, json_t *report, unsigned i)
{
	hf_buf_printf(b, "<section id=\"suite-%u\">\n<h2>Suite ", i);
	hf_html_text(b, title);
	hf_buf_puts(b, "</h2>\n");
	put_meta(b, report);
	hf_page_cpr(b, report);
	hf_page_conditional(b, report);
	hf_page_times(b, report);
	hf_page_axes(b, report);
	hf_page_streams(b, report);
	hf_page_storm(b, report);
	hf_page_judge(b, report);
	hf_page_checks(b, report);
	hf_page_seams(b, report);
	hf_page_misses(b, report);
	hf_buf_puts(b, "</section>\n");
}

/* Bars of all suites: what there is, at a glance. */
static void
put_overview(struct hf_buf *b, json_t *all)
{
	const char *title, *name;
	json_t *report, *s;
	unsigned i = 0;

	hf_buf_puts(b, "<figure class=\"bars\">\n");
	json_object_foreach(all, title, report)
	{
		json_t *systems = hf_get(report, "systems");

		hf_buf_printf(b, "<div><a href=\"#suite-%u\">", i++);
		hf_html_text(b, title);
		hf_buf_puts(b, "</a></div>\n");
		json_object_foreach(systems, name, s) hf_page_bar(
		    b, hf_page_colour(systems, name), name, hf_get(s, "cpr"));
	}
	hf_page_bar_axis(b);
	hf_buf_puts(b,
	    "<figcaption>Conversations that kept their facts, with "
	    "Wilson&#39;s intervals at 95&nbsp;%.</figcaption>\n</figure>\n");
}

void
hf_report_html(struct hf_buf *b, json_t *file)
{
	json_t *all = hf_report_each(file), *one;
	const char *title;
	unsigned i = 0;

	hf_html_begin(b, "ContinuityBench report", NULL);
	hf_buf_puts(b,
	    "<h1>ContinuityBench</h1>\n<p class=\"dim\">Does a conversation "
	    "survive its provider&#39;s failure?</p>\n");
	if (json_object_size(all) > 1)
		put_overview(b, all);
	json_object_foreach(all, title, one) put_suite(b, title, one, i++);
	hf_html_end(b, NULL);
	json_decref(all);
}
