/*
 * The charts of a report's page: bars of rates, and distributions of times.
 * Shapes stretch with the page; words do not, so they are HTML beside them.
 */
#include <config.h>

#include "bench/report_page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/stats.h"

/* --- rates ---------------------------------------------------------------- */

void
hf_page_track(struct hf_buf *b, json_t *ratio)
{
	double lo = 100 * hf_num(ratio, "lo"), hi = 100 * hf_num(ratio, "hi");

	hf_buf_printf(b,
	    "<div class=\"track\"><div class=\"fill\" style=\"width:%.2f%%\">"
	    "</div><div class=\"ci\" style=\"left:%.2f%%;width:%.2f%%\"></div>"
	    "</div>",
	    100 * hf_num(ratio, "p"), lo, hi - lo);
}

void
hf_page_figures(struct hf_buf *b, json_t *ratio)
{
	hf_buf_printf(b, "%d/%d &nbsp;%.1f&nbsp;%% [%.1f, %.1f]",
	    hf_int(ratio, "k"), hf_int(ratio, "n"), 100 * hf_num(ratio, "p"),
	    100 * hf_num(ratio, "lo"), 100 * hf_num(ratio, "hi"));
}

const char *
hf_page_colour(json_t *systems, const char *name)
{
	static const char *const class[] = { "s0", "s1", "s2", "s3", "s4",
		"s5" };
	const char *other;
	unsigned i = 1;
	json_t *s;

	if (json_is_true(hf_get(hf_get(systems, name), "stateless")))
		return class[0];
	if (json_is_true(hf_get(hf_get(systems, name), "control")))
		return class[5];
	json_object_foreach(systems, other, s)
	{
		if (strcmp(other, name) == 0)
			break;
		i += !json_is_true(hf_get(s, "stateless")) &&
		    !json_is_true(hf_get(s, "control"));
	}
	return class[i < 5 ? i : 1 + (i - 1) % 4];
}

static void
put_bar(struct hf_buf *b, const char *colour, bool small, const char *label,
    json_t *ratio)
{
	hf_buf_printf(b, "<div class=\"bar %s%s\"><div%s>", colour,
	    small ? " small" : "", small ? "" : " class=\"key\"");
	hf_html_text(b, label);
	hf_buf_puts(b, "</div>");
	hf_page_track(b, ratio);
	hf_buf_puts(b, "<div class=\"figures\">");
	hf_page_figures(b, ratio);
	hf_buf_puts(b, "</div></div>\n");
}

void
hf_page_bar(
    struct hf_buf *b, const char *colour, const char *label, json_t *ratio)
{
	put_bar(b, colour, false, label, ratio);
}

/* One run is the whole: it needs no bars of its own. */
static void
put_runs(struct hf_buf *b, const char *colour, json_t *runs)
{
	const char *run;
	char label[32];
	json_t *ratio;

	if (json_object_size(runs) < 2)
		return;
	json_object_foreach(runs, run, ratio)
	{
		snprintf(label, sizeof(label), "run %.20s", run);
		put_bar(b, colour, true, label, ratio);
	}
}

void
hf_page_bar_axis(struct hf_buf *b)
{
	hf_buf_puts(b,
	    "<div class=\"bar\" aria-hidden=\"true\"><div class=\"lone\"></div>"
	    "<div class=\"axis\">");
	for (unsigned p = 0; p <= 100; p += 25)
		hf_buf_printf(
		    b, "<span style=\"left:%u%%\">%u %%</span>", p, p);
	hf_buf_puts(b, "</div><div class=\"lone\"></div></div>\n");
}

void
hf_page_cpr(struct hf_buf *b, json_t *report)
{
	json_t *systems = hf_get(report, "systems"), *s;
	const char *name;

	hf_buf_puts(b, "<h3>Context preserved</h3>\n<figure class=\"bars\">\n");
	json_object_foreach(systems, name, s)
	{
		const char *colour = hf_page_colour(systems, name);

		put_bar(b, colour, false, name, hf_get(s, "cpr"));
		put_runs(b, colour, hf_get(hf_get(s, "by"), "run"));
	}
	hf_page_bar_axis(b);
	hf_buf_puts(b,
	    "<figcaption>Conversations that kept their facts; "
	    "whiskers are Wilson&#39;s intervals at 95&nbsp;%. Equal runs with "
	    "deterministic providers are not independent events.</figcaption>\n"
	    "</figure>\n");
}

/* --- times ---------------------------------------------------------------- */

#define BINS 48

struct scale {
	bool log;
	double lo, hi;
};

/* Where on the scale, 0 to 1; what lies outside is at its end. */
static double
place(const struct scale *s, double v)
{
	double at = s->log ?
	    (log(fmax(v, s->lo)) - log(s->lo)) / (log(s->hi) - log(s->lo)) :
	    (v - s->lo) / (s->hi - s->lo);

	return fmin(1, fmax(0, at));
}

static double *
values(json_t *report, const char *system, size_t *n)
{
	json_t *plays = hf_get(report, "plays"), *p;
	double *v = hf_xcalloc(json_array_size(plays) + 1, sizeof(*v));
	size_t i;

	*n = 0;
	json_array_foreach(
	    plays, i, p) if (strcmp(hf_text(p, "system"), system) == 0 &&
	    json_is_number(hf_get(p, "probe_ms"))) v[(*n)++] =
	    hf_num(p, "probe_ms");
	hf_sort_doubles(v, *n);
	return v;
}

/* Run and conversation of a play: what pairs go by. */
static char *
pair_key(json_t *p)
{
	struct hf_buf b;
	char *key;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_printf(&b, "%d ", hf_int(p, "run"));
	hf_buf_puts(&b, hf_text(p, "conversation"));
	key = hf_buf_take(&b, NULL);
	HF_CHECK(key != NULL);
	return key;
}

/* Of system 'b' less those of 'a', pair by pair. */
static double *
differences(json_t *report, const char *b, const char *a, size_t *n)
{
	json_t *plays = hf_get(report, "plays"), *first = json_object(), *p;
	double *v = hf_xcalloc(json_array_size(plays) + 1, sizeof(*v));
	char *key;
	size_t i;

	*n = 0;
	json_array_foreach(plays, i, p)
	{
		if (strcmp(hf_text(p, "system"), a) != 0 ||
		    !json_is_number(hf_get(p, "probe_ms")))
			continue;
		key = pair_key(p);
		json_object_set(first, key, hf_get(p, "probe_ms"));
		free(key);
	}
	json_array_foreach(plays, i, p)
	{
		json_t *other;

		if (strcmp(hf_text(p, "system"), b) != 0 ||
		    !json_is_number(hf_get(p, "probe_ms")))
			continue;
		key = pair_key(p);
		other = json_object_get(first, key);
		if (other != NULL)
			v[(*n)++] =
			    hf_num(p, "probe_ms") - json_number_value(other);
		free(key);
	}
	json_decref(first);
	hf_sort_doubles(v, *n);
	return v;
}

static void
put_tick(struct hf_buf *b, const struct scale *s, double v)
{
	hf_buf_printf(b, "<span style=\"left:%.2f%%\">%s%.6g</span>",
	    100 * place(s, v), v < 0 ? "\xe2\x88\x92" : "", fabs(v));
}

/* 1, 2 and 5 of each power of ten; fewer where they would be many. */
static void
put_log_ticks(struct hf_buf *b, const struct scale *s)
{
	static const double steps[] = { 1, 2, 5 };
	bool all = s->hi / s->lo < 300;

	for (int e = -3; e < 8; e++)
		for (unsigned i = 0; i < hf_countof(steps); i++) {
			double v = steps[i] * pow(10, e);

			if (v >= s->lo * 0.999 && v <= s->hi * 1.001 &&
			    (all || i == 0))
				put_tick(b, s, v);
		}
}

/* The round number next above a fifth of the range. */
static double
linear_step(const struct scale *s)
{
	double raw = (s->hi - s->lo) / 5, unit = pow(10, floor(log10(raw)));

	return raw <= unit  ? unit :
	    raw <= 2 * unit ? 2 * unit :
	    raw <= 5 * unit ? 5 * unit :
			      10 * unit;
}

static void
put_axis(struct hf_buf *b, const struct scale *s)
{
	hf_buf_puts(b, "<div class=\"axis\" aria-hidden=\"true\">");
	if (s->log) {
		put_log_ticks(b, s);
	} else {
		double step = linear_step(s);

		for (double v = ceil(s->lo / step) * step;
		     v <= s->hi + step / 1e6; v += step)
			put_tick(b, s, fabs(v) < step / 1e6 ? 0 : v);
	}
	hf_buf_puts(b, "</div>");
}

static void
put_line(struct hf_buf *b, const char *class, double at)
{
	hf_buf_printf(b,
	    "<line class=\"%s\" x1=\"%.2f\" x2=\"%.2f\" y1=\"0\" "
	    "y2=\"100\"/>",
	    class, at, at);
}

/* 'ci': an interval of the median, or NULL. */
static void
put_histogram(struct hf_buf *b, const struct scale *s, const double *v,
    size_t n, const char *what, json_t *ci)
{
	unsigned bin[BINS] = { 0 }, most = 1;

	for (size_t i = 0; i < n; i++) {
		unsigned k = (unsigned)(place(s, v[i]) * BINS);

		k = k < BINS ? k : BINS - 1;
		if (++bin[k] > most)
			most = bin[k];
	}
	hf_buf_puts(b, "<div class=\"hist\">");
	hf_buf_printf(b,
	    "<svg viewBox=\"0 0 %u 100\" preserveAspectRatio=\"none\" "
	    "role=\"img\" aria-label=\"",
	    BINS);
	hf_html_text(b, what);
	hf_buf_puts(b, "\">");
	if (ci != NULL) {
		double lo = place(s, json_number_value(json_array_get(ci, 0)));
		double hi = place(s, json_number_value(json_array_get(ci, 1)));

		hf_buf_printf(b,
		    "<rect class=\"band\" x=\"%.3f\" width=\"%.3f\" y=\"0\" "
		    "height=\"100\"/>",
		    BINS * lo, fmax(0.15, BINS * (hi - lo)));
	}
	for (unsigned k = 0; k < BINS; k++)
		if (bin[k] > 0) {
			double h = fmax(1.5, 96.0 * bin[k] / most);

			hf_buf_printf(b,
			    "<rect x=\"%.2f\" width=\".86\" y=\"%.1f\" "
			    "height=\"%.1f\"/>",
			    k + 0.07, 100 - h, h);
		}
	if (!s->log && s->lo < 0 && s->hi > 0)
		put_line(b, "zero", BINS * place(s, 0));
	put_line(b, "median", BINS * place(s, hf_quantile(v, n, 0.5)));
	hf_buf_puts(b, "</svg>");
	put_axis(b, s);
	hf_buf_puts(b, "</div>\n");
}

/* Scale that holds them all. */
static struct scale
common_scale(json_t *report)
{
	struct scale s = { true, HUGE_VAL, 0 };
	const char *name;
	json_t *system;

	json_object_foreach(hf_get(report, "systems"), name, system)
	{
		size_t n;
		double *v = values(report, name, &n);

		if (n > 0 && v[0] < s.lo)
			s.lo = v[0];
		if (n > 0 && v[n - 1] > s.hi)
			s.hi = v[n - 1];
		free(v);
	}
	s.lo = fmax(s.lo * 0.95, 0.01);
	s.hi = fmax(s.hi * 1.05, s.lo * 2);
	return s;
}

static void
put_system(
    struct hf_buf *b, json_t *report, const struct scale *s, const char *name)
{
	char what[160];
	size_t n;
	double *v = values(report, name, &n);

	if (n > 0) {
		hf_buf_printf(b, "<div class=\"%s\"><h4 class=\"key\">",
		    hf_page_colour(hf_get(report, "systems"), name));
		hf_html_text(b, name);
		hf_buf_puts(b, ", milliseconds</h4>\n");
		snprintf(what, sizeof(what), "%.80s: %zu turns, median %.2f ms",
		    name, n, hf_quantile(v, n, 0.5));
		put_histogram(b, s, v, n, what, NULL);
		hf_buf_puts(b, "</div>\n");
	}
	free(v);
}

/* The middle 98 % have a scale of their own; the rest is at its ends. */
static void
put_differences(struct hf_buf *b, json_t *report, json_t *clo)
{
	const char *of =
	    json_string_value(json_array_get(hf_get(clo, "of"), 0));
	const char *less =
	    json_string_value(json_array_get(hf_get(clo, "of"), 1));
	struct scale s = { false, 0, 0 };
	size_t n = 0;
	double *v;

	if (of == NULL || less == NULL)
		return;
	v = differences(report, of, less, &n);
	if (n > 0) {
		double margin;

		s.lo = fmin(0, hf_quantile(v, n, 0.01));
		s.hi = fmax(0, hf_quantile(v, n, 0.99));
		margin = fmax(0.05 * (s.hi - s.lo), 0.01);
		s.lo -= margin;
		s.hi += margin;
		hf_buf_puts(b, "<div class=\"s3\"><h4 class=\"key\">");
		hf_html_text(b, of);
		hf_buf_puts(b, " less ");
		hf_html_text(b, less);
		hf_buf_puts(b, ", pair by pair, milliseconds</h4>\n");
		put_histogram(b, &s, v, n, "paired differences",
		    hf_get(hf_get(clo, "ci"), "median"));
		hf_buf_puts(b,
		    "<p class=\"dim\">The line is the median, the band around "
		    "it its interval at 95&nbsp;% by bootstrap; what lies "
		    "beyond 1&nbsp;% and 99&nbsp;% stands in the outermost "
		    "bars.</p></div>\n");
	}
	free(v);
}

/* --- their tables ----------------------------------------------------------
 */

static const char *const columns[] = { "mean", "median", "p25", "p75", "p95",
	"p99" };

static void
put_times_row(struct hf_buf *b, const char *label, const char *what, json_t *s)
{
	if (hf_int(s, "n") == 0)
		return;
	hf_buf_puts(b, "<tr><td>");
	hf_html_text(b, label);
	hf_html_text(b, what);
	hf_buf_printf(b, "</td><td class=\"n\">%d</td>", hf_int(s, "n"));
	for (unsigned i = 0; i < hf_countof(columns); i++) {
		json_t *ci = hf_get(hf_get(s, "ci"), columns[i]);

		hf_buf_puts(b, "<td class=\"n\">");
		hf_html_number(b, hf_num(s, columns[i]));
		if (ci != NULL) {
			hf_buf_puts(b, "<br><span class=\"dim\">[");
			hf_html_number(
			    b, json_number_value(json_array_get(ci, 0)));
			hf_buf_puts(b, ", ");
			hf_html_number(
			    b, json_number_value(json_array_get(ci, 1)));
			hf_buf_puts(b, "]</span>");
		}
		hf_buf_puts(b, "</td>");
	}
	hf_buf_puts(b, "</tr>\n");
}

static void
put_times_table(struct hf_buf *b, json_t *report)
{
	json_t *clo = hf_get(report, "clo_ms"), *s;
	const char *name;

	hf_buf_puts(b,
	    "<div class=\"scroll\"><table><caption>Milliseconds</caption>\n"
	    "<tr><th></th><th class=\"n\">n</th>");
	for (unsigned i = 0; i < hf_countof(columns); i++)
		hf_html_element(b, "th class=\"n\"", columns[i]);
	hf_buf_puts(b, "</tr>\n");
	json_object_foreach(hf_get(report, "systems"), name, s)
	{
		put_times_row(
		    b, name, ": quiet turns", hf_get(s, "quiet_turn_ms"));
		put_times_row(
		    b, name, ": with the failure", hf_get(s, "latency_ms"));
		put_times_row(
		    b, name, ": longest pause in it", hf_get(s, "silence_ms"));
	}
	if (json_is_object(clo)) {
		put_times_row(b, "paired difference", "", clo);
		json_object_foreach(hf_get(clo, "by_failure"), name, s)
		    put_times_row(b, "\xe2\x80\x83", name, s);
	}
	hf_buf_puts(b, "</table></div>\n");
}

void
hf_page_times(struct hf_buf *b, json_t *report)
{
	struct scale s = common_scale(report);
	const char *name;
	json_t *system;

	hf_buf_puts(
	    b, "<h3>How long the turn with the failure took</h3>\n<figure>\n");
	if (s.hi > s.lo && s.hi < HUGE_VAL) {
		json_object_foreach(hf_get(report, "systems"), name, system)
		    put_system(b, report, &s, name);
		put_differences(b, report, hf_get(report, "clo_ms"));
	}
	hf_buf_puts(b, "</figure>\n");
	put_times_table(b, report);
}
