/*
 * The tables of a report's page.
 */
#include <config.h>

#include "bench/report_page.h"

#include <stdlib.h>

#include "base/check.h"

static void
begin_table(struct hf_buf *b, const char *caption)
{
	hf_buf_puts(b, "<div class=\"scroll\"><table><caption>");
	hf_html_text(b, caption);
	hf_buf_puts(b, "</caption>\n");
}

static void
end_table(struct hf_buf *b)
{
	hf_buf_puts(b, "</table></div>\n");
}

/* A head with a column for each system. */
static void
put_systems(
    struct hf_buf *b, json_t *systems, const char *first, const char *class)
{
	const char *name;
	json_t *s;

	hf_buf_puts(b, "<tr>");
	hf_html_element(b, "th", first);
	json_object_foreach(systems, name, s)
	{
		hf_buf_printf(b, "<th class=\"%s\"><span class=\"key %s\">",
		    class, hf_page_colour(systems, name));
		hf_html_text(b, name);
		hf_buf_puts(b, "</span></th>");
	}
	hf_buf_puts(b, "</tr>\n");
}

/* --- rates by axis -------------------------------------------------------- */

static void
put_row(struct hf_buf *b, json_t *systems, const char *axis, const char *label)
{
	const char *name;
	json_t *s;

	hf_buf_puts(b, "<tr>");
	hf_html_element(b, "td", label);
	json_object_foreach(systems, name, s)
	{
		json_t *ratio = hf_get(hf_get(hf_get(s, "by"), axis), label);

		hf_buf_printf(
		    b, "<td class=\"%s\">", hf_page_colour(systems, name));
		if (ratio != NULL) {
			hf_buf_puts(b, "<span class=\"figures\">");
			hf_page_figures(b, ratio);
			hf_buf_puts(b, "</span>");
			hf_page_track(b, ratio);
		}
		hf_buf_puts(b, "</td>");
	}
	hf_buf_puts(b, "</tr>\n");
}

/* Whole numbers by size, all else as it comes. */
static int
compare(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	char *x_end, *y_end;
	long i = strtol(x, &x_end, 10), k = strtol(y, &y_end, 10);

	if (*x == '\0' || *y == '\0' || *x_end != '\0' || *y_end != '\0')
		return 0;
	return (i > k) - (i < k);
}

static void
put_axis(struct hf_buf *b, json_t *systems, const char *axis)
{
	json_t *first = json_object_iter_value(json_object_iter(systems));
	json_t *rows = hf_get(hf_get(first, "by"), axis), *v;
	const char **label, *one;
	size_t n = 0;

	if (json_object_size(rows) == 0)
		return;
	label = hf_xcalloc(json_object_size(rows), sizeof(*label));
	json_object_foreach(rows, one, v) label[n++] = one;
	qsort(label, n, sizeof(*label), compare);
	begin_table(b, axis);
	put_systems(b, systems, "", "");
	for (size_t i = 0; i < n; i++)
		put_row(b, systems, axis, label[i]);
	end_table(b);
	free(label);
}

void
hf_page_axes(struct hf_buf *b, json_t *report)
{
	json_t *systems = hf_get(report, "systems"), *v;
	json_t *first = json_object_iter_value(json_object_iter(systems));
	const char *axis;

	hf_buf_puts(b, "<h3>By axis</h3>\n");
	/* Runs have bars of their own already. */
	json_object_foreach(hf_get(first, "by"), axis,
	    v) if (strcmp(axis, "run") != 0) put_axis(b, systems, axis);
}

/* --- streams -------------------------------------------------------------- */

static json_t *
group(json_t *system, const char *name, const char *sub)
{
	json_t *o = hf_get(hf_get(system, "streams"), name);

	return sub == NULL ? o : hf_get(o, sub);
}

static void
put_counts(struct hf_buf *b, json_t *systems, const char *caption,
    const char *name, const char *sub)
{
	json_t *names = json_object(), *s, *v;
	const char *key, *system;

	json_object_foreach(systems, system, s)
	    json_object_update_missing(names, group(s, name, sub));
	if (json_object_size(names) > 0) {
		begin_table(b, caption);
		put_systems(b, systems, "", "n");
		json_object_foreach(names, key, v)
		{
			hf_buf_puts(b, "<tr>");
			hf_html_element(b, "td", key);
			json_object_foreach(systems, system, s)
			    hf_buf_printf(b, "<td class=\"n\">%d</td>",
				hf_int(group(s, name, sub), key));
			hf_buf_puts(b, "</tr>\n");
		}
		end_table(b);
	}
	json_decref(names);
}

void
hf_page_streams(struct hf_buf *b, json_t *report)
{
	json_t *systems = hf_get(report, "systems");
	json_t *first = json_object_iter_value(json_object_iter(systems));

	if (hf_get(first, "streams") == NULL)
		return;
	hf_buf_puts(b, "<h3>Failures and answers</h3>\n<div class=\"grid\">\n");
	put_counts(b, systems, "What the client got", "outcomes", NULL);
	put_counts(b, systems, "How the next one went on", "joins", NULL);
	put_counts(b, systems, "What providers did", "failures", "by_kind");
	put_counts(b, systems, "Where, within streams", "failures", "by_place");
	put_counts(b, systems, "Texts, and wrong words", "texts", NULL);
	put_counts(b, systems, "Marks of streams", "marks", NULL);
	hf_buf_puts(b, "</div>\n");
}

/* --- storm ---------------------------------------------------------------- */

void
hf_page_storm(struct hf_buf *b, json_t *report)
{
	static const struct {
		const char *key, *head;
	} column[] = {
		{ "sessions", "sessions" },
		{ "answered", "answered" },
		{ "calls", "calls" },
		{ "refused", "refused" },
		{ "calls_per_answer", "calls per answer" },
		{ "drain_ms", "ms until all were" },
		{ "of_least", "of the least possible" },
	};
	json_t *systems = hf_get(report, "systems"), *s;
	json_t *first = json_object_iter_value(json_object_iter(systems));
	const char *name;

	if (hf_get(first, "storm") == NULL)
		return;
	hf_buf_puts(b, "<h3>Storm</h3>\n");
	begin_table(b, "All fail over at once, onto a quota");
	hf_buf_puts(b, "<tr><th></th>");
	for (unsigned i = 0; i < hf_countof(column); i++)
		hf_html_element(b, "th class=\"n\"", column[i].head);
	hf_buf_puts(b, "</tr>\n");
	json_object_foreach(systems, name, s)
	{
		hf_buf_puts(b, "<tr>");
		hf_html_element(b, "td", name);
		for (unsigned i = 0; i < hf_countof(column); i++) {
			json_t *v = hf_get(hf_get(s, "storm"), column[i].key);

			hf_buf_puts(b, "<td class=\"n\">");
			if (json_is_integer(v))
				hf_buf_printf(b, "%lld", json_integer_value(v));
			else if (json_is_real(v))
				hf_html_number(b, json_real_value(v));
			hf_buf_puts(b, "</td>");
		}
		hf_buf_puts(b, "</tr>\n");
	}
	end_table(b);
}

/* --- checks --------------------------------------------------------------- */

static void
put_bounds(struct hf_buf *b, json_t *bounds)
{
	const char *name;
	json_t *o;

	begin_table(b,
	    "What must not be, and how often it could be at most (95 %; by the "
	    "rule of three where nothing was seen)");
	hf_buf_puts(b,
	    "<tr><th></th><th class=\"n\">seen</th><th class=\"n\">of</th>"
	    "<th></th><th class=\"n\">at most</th></tr>\n");
	json_object_foreach(bounds, name, o)
	{
		bool seen = hf_int(o, "k") > 0;

		hf_buf_puts(b, "<tr>");
		hf_html_element(b, "td", name);
		hf_buf_printf(b,
		    "<td class=\"n %s\">%d</td><td class=\"n\">%d</td>",
		    seen ? "bad" : "good", hf_int(o, "k"), hf_int(o, "n"));
		hf_html_element(b, "td", hf_text(o, "of"));
		hf_buf_puts(b, "<td class=\"n\">");
		hf_html_number(b, 100 * hf_num(o, "hi"));
		hf_buf_puts(b, " %</td></tr>\n");
	}
	end_table(b);
}

static void
put_blames(struct hf_buf *b, json_t *systems)
{
	json_t *names = json_object(), *s, *v;
	const char *name, *system;

	json_object_foreach(systems, system, s)
	    json_object_update_missing(names, hf_get(s, "blame"));
	begin_table(b, "Who is to blame, by conversations");
	put_systems(b, systems, "", "n");
	json_object_foreach(names, name, v)
	{
		hf_buf_puts(b, "<tr>");
		hf_html_element(b, "td", name);
		json_object_foreach(systems, system, s)
		    hf_buf_printf(b, "<td class=\"n\">%d</td>",
			hf_int(hf_get(s, "blame"), name));
		hf_buf_puts(b, "</tr>\n");
	}
	end_table(b);
	json_decref(names);
}

void
hf_page_checks(struct hf_buf *b, json_t *report)
{
	json_t *verify = hf_get(report, "verify"), *v;
	const char *name;

	hf_buf_puts(b, "<h3>Checks</h3>\n");
	if (json_is_object(hf_get(report, "bounds")))
		put_bounds(b, hf_get(report, "bounds"));
	put_blames(b, hf_get(report, "systems"));
	hf_buf_puts(b, "<p class=\"dim\">All counts:");
	json_object_foreach(hf_get(report, "counts"), name, v)
	{
		hf_buf_puts(b, " ");
		hf_html_text(b, name);
		hf_buf_printf(b, "&nbsp;%d", (int)json_integer_value(v));
	}
	hf_buf_puts(b, "</p>\n");
	if (json_is_integer(verify))
		hf_buf_printf(b,
		    "<p>holdfastctl sessions verify --all: exit %d</p>\n",
		    (int)json_integer_value(verify));
}

/* --- real models ---------------------------------------------------------- */

void
hf_page_conditional(struct hf_buf *b, json_t *report)
{
	json_t *conditional = hf_get(report, "conditional"), *o;
	const char *name;

	if (!json_is_object(conditional))
		return;
	hf_buf_puts(b, "<h3>Given that it is right without a failure</h3>\n");
	begin_table(b,
	    "Conversations right after a failover, of those that the control, "
	    "without failures, had right");
	hf_buf_puts(b,
	    "<tr><th></th><th>right</th><th class=\"n\">right only with the "
	    "failure</th></tr>\n");
	json_object_foreach(conditional, name, o)
	{
		hf_buf_puts(b, "<tr>");
		hf_html_element(b, "td", name);
		hf_buf_printf(b, "<td class=\"%s\"><span class=\"figures\">",
		    hf_page_colour(hf_get(report, "systems"), name));
		hf_page_figures(b, o);
		hf_buf_puts(b, "</span>");
		hf_page_track(b, o);
		hf_buf_printf(b, "</td><td class=\"n\">%d</td></tr>\n",
		    hf_int(o, "right_only_with"));
	}
	end_table(b);
}

static void
put_calibration(struct hf_buf *b, json_t *calibration)
{
	json_t *c;
	size_t i;

	hf_buf_puts(b, "<details><summary>Calibration: agrees with ");
	hf_page_figures(b, calibration);
	hf_buf_puts(b, " of the labels</summary>\n");
	begin_table(b, "Cases that people have labelled");
	hf_buf_puts(b,
	    "<tr><th>case</th><th>kind</th><th>label</th><th>judge</th>"
	    "<th>why</th></tr>\n");
	json_array_foreach(hf_get(calibration, "cases"), i, c)
	{
		hf_buf_puts(b, "<tr>");
		hf_html_element(b, "td", hf_text(c, "id"));
		hf_html_element(b, "td", hf_text(c, "kind"));
		hf_html_element(b, "td",
		    json_is_true(hf_get(c, "preserved")) ? "preserved" :
							   "lost");
		hf_html_element(b,
		    json_is_true(hf_get(c, "agrees")) ? "td class=\"good\"" :
							"td class=\"bad\"",
		    hf_text(c, "verdict"));
		hf_html_element(b, "td", hf_text(c, "reason"));
		hf_buf_puts(b, "</tr>\n");
	}
	end_table(b);
	hf_buf_puts(b, "</details>\n");
}

void
hf_page_judge(struct hf_buf *b, json_t *report)
{
	json_t *judge = hf_get(report, "judge");

	if (!json_is_object(judge))
		return;
	hf_buf_puts(b,
	    "<h3>The judge</h3>\n<p>Answers that do not hold their "
	    "fact to the letter were judged by <b>");
	hf_html_text(b, hf_text(judge, "model"));
	hf_buf_puts(b, "</b> at <span class=\"words\">");
	hf_html_text(b, hf_text(judge, "url"));
	hf_buf_printf(b,
	    "</span>: %d right, %d wrong, %d without a verdict; %d different "
	    "questions, %d calls. %d needed no judge.</p>\n",
	    hf_int(judge, "right"), hf_int(judge, "wrong"),
	    hf_int(judge, "undecided"), hf_int(judge, "asked"),
	    hf_int(judge, "calls"),
	    hf_int(judge, "substring") + hf_int(judge, "denied"));
	put_calibration(b, hf_get(judge, "calibration"));
}
