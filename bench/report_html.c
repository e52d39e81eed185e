/*
 * A report as a page: one file that loads nothing.
 */
#include <config.h>

#include "bench/report.h"

#include <stdio.h>

#include "bench/report_page.h"

int
hf_report_check(json_t *report, struct hf_error *e)
{
	json_t *suites = hf_get(report, "suites"), *one;
	const char *name;

	if (hf_int(report, "schema") != 1)
		return hf_fail(e, HF_EINVAL, "no report of schema 1");
	if (suites == NULL) {
		if (json_is_object(hf_get(report, "systems")) &&
		    json_object_size(hf_get(report, "systems")) > 0 &&
		    json_is_object(hf_get(report, "suite")))
			return 0;
		return hf_fail(e, HF_EINVAL, "a report without systems");
	}
	json_object_foreach(suites, name, one)
	{
		if (hf_get(one, "suites") != NULL)
			return hf_fail(e, HF_EINVAL, "suites within suites");
		if (hf_report_check(one, e) != 0)
			return hf_error_prefix(e, "suites");
	}
	return 0;
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
put_suite(struct hf_buf *b, json_t *report, unsigned i)
{
	hf_buf_printf(b, "<section id=\"suite-%u\">\n<h2>Suite ", i);
	hf_html_text(b, hf_text(hf_get(report, "suite"), "name"));
	hf_buf_puts(b, "</h2>\n");
	put_meta(b, report);
	hf_page_cpr(b, report);
	hf_page_conditional(b, report);
	hf_page_times(b, report);
	hf_page_axes(b, report);
	hf_page_streams(b, report);
	hf_page_judge(b, report);
	hf_page_checks(b, report);
	hf_page_seams(b, report);
	hf_page_misses(b, report);
	hf_buf_puts(b, "</section>\n");
}

/* A line a suite: all that there is, at a glance. */
static void
put_overview(struct hf_buf *b, json_t *suites)
{
	const char *name, *system;
	json_t *report, *s;
	unsigned i = 0;

	hf_buf_puts(b,
	    "<div class=\"scroll\"><table><caption>Context "
	    "preserved</caption>\n"
	    "<tr><th>suite</th><th>system</th><th>conversations</th></tr>\n");
	json_object_foreach(suites, name, report)
	{
		unsigned k = 0;

		json_object_foreach(hf_get(report, "systems"), system, s)
		{
			hf_buf_puts(b, "<tr><td>");
			if (k == 0) {
				hf_buf_printf(b, "<a href=\"#suite-%u\">", i);
				hf_html_text(b, name);
				hf_buf_puts(b, "</a>");
			}
			hf_buf_printf(b,
			    "</td><td class=\"s%u\"><span class=\"key\">",
			    k % HF_N_COLOURS);
			hf_html_text(b, system);
			hf_buf_printf(b,
			    "</span></td><td class=\"s%u\">"
			    "<span class=\"figures\">",
			    k % HF_N_COLOURS);
			hf_page_figures(b, hf_get(s, "cpr"));
			hf_buf_puts(b, "</span>");
			hf_page_track(b, hf_get(s, "cpr"));
			hf_buf_puts(b, "</td></tr>\n");
			k++;
		}
		i++;
	}
	hf_buf_puts(b, "</table></div>\n");
}

void
hf_report_html(struct hf_buf *b, json_t *report)
{
	json_t *suites = hf_get(report, "suites"), *one;
	const char *name;
	unsigned i = 0;

	hf_html_begin(b, "ContinuityBench report", NULL);
	hf_buf_puts(b,
	    "<h1>ContinuityBench</h1>\n<p class=\"dim\">Does a conversation "
	    "survive its provider&#39;s failure?</p>\n");
	if (suites == NULL) {
		put_suite(b, report, 0);
	} else {
		put_overview(b, suites);
		json_object_foreach(suites, name, one) put_suite(b, one, i++);
	}
	hf_html_end(b, NULL);
}
