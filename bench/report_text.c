/*
 * The report as a table, from its JSON.
 */
#include <config.h>

#include "bench/report.h"

#define LABEL 26
#define COLUMN 30

static double
number(json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static int
integer(json_t *o, const char *key)
{
	return (int)json_integer_value(json_object_get(o, key));
}

/* Columns are padded only where another follows. */
static void
put_cell(FILE *f, const char *text, bool last)
{
	fprintf(f, "  %-*s", last ? 0 : COLUMN, text);
}

static void
put_ratio(FILE *f, json_t *o, bool last)
{
	char text[64], k_of_n[24];

	snprintf(
	    k_of_n, sizeof(k_of_n), "%d/%d", integer(o, "k"), integer(o, "n"));
	snprintf(text, sizeof(text), "%-7s %5.1f %% [%.1f, %.1f]", k_of_n,
	    100 * number(o, "p"), 100 * number(o, "lo"), 100 * number(o, "hi"));
	put_cell(f, text, last);
}

static void
put_row(FILE *f, json_t *systems, const char *axis, const char *label,
    const char *shown)
{
	size_t left = json_object_size(systems);
	const char *name;
	json_t *s;

	fprintf(f, "%-*s", LABEL, shown);
	json_object_foreach(systems, name, s) put_ratio(f,
	    axis == NULL ?
		json_object_get(s, "cpr") :
		json_object_get(
		    json_object_get(json_object_get(s, "by"), axis), label),
	    --left == 0);
	fputc('\n', f);
}

/* In the order of the first conversations; numbers in their own. */
static void
put_axis(FILE *f, json_t *systems, const char *axis)
{
	json_t *first = json_object_iter_value(json_object_iter(systems));
	json_t *rows = json_object_get(json_object_get(first, "by"), axis);
	const char *label, *worded = NULL;
	char shown[48];
	json_t *v;

	json_object_foreach(rows, label,
	    v) if (label[0] < '0' || label[0] > '9') worded = label;
	if (worded == NULL) {
		for (int n = 1; n < 1000; n++) {
			snprintf(shown, sizeof(shown), "%d", n);
			if (json_object_get(rows, shown) == NULL)
				continue;
			snprintf(shown, sizeof(shown), "  %s %d", axis, n);
			put_row(
			    f, systems, axis, shown + 3 + strlen(axis), shown);
		}
		return;
	}
	fprintf(f, "  %s:\n", axis);
	json_object_foreach(rows, label, v)
	{
		snprintf(shown, sizeof(shown), "    %.40s", label);
		put_row(f, systems, axis, label, shown);
	}
}

static void
put_summary(FILE *f, const char *label, json_t *s)
{
	fprintf(f, "  %-26s", label);
	if (integer(s, "n") == 0) {
		fputs("  -\n", f);
		return;
	}
	fprintf(f, "%5d %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f\n", integer(s, "n"),
	    number(s, "mean"), number(s, "median"), number(s, "p25"),
	    number(s, "p75"), number(s, "p95"), number(s, "p99"));
}

/* The bootstrap's intervals, under the columns of what they are of. */
static void
put_ci(FILE *f, json_t *summary)
{
	static const char *const of[] = { "mean", "median", "p95" };
	json_t *ci = json_object_get(summary, "ci");

	if (ci == NULL)
		return;
	fputs("    95 % by bootstrap:", f);
	for (unsigned i = 0; i < 3; i++) {
		json_t *o = json_object_get(ci, of[i]);

		fprintf(f, " %s [%.2f, %.2f]%s", of[i],
		    json_number_value(json_array_get(o, 0)),
		    json_number_value(json_array_get(o, 1)),
		    i < 2 ? "," : "\n");
	}
}

static void
put_times(FILE *f, json_t *report)
{
	json_t *systems = json_object_get(report, "systems"), *s, *o;
	json_t *clo = json_object_get(report, "clo_ms"), *v;
	const char *name;
	char label[64];

	fprintf(f, "\n%-28s%5s %9s %9s %9s %9s %9s %9s\n", "milliseconds", "n",
	    "mean", "median", "P25", "P75", "P95", "P99");
	json_object_foreach(systems, name, s)
	{
		snprintf(label, sizeof(label), "%s: quiet turns", name);
		put_summary(f, label, json_object_get(s, "quiet_turn_ms"));
		snprintf(label, sizeof(label), "%s: probe", name);
		put_summary(f, label, json_object_get(s, "latency_ms"));
		v = json_object_get(s, "silence_ms");
		snprintf(label, sizeof(label), "%s: longest pause", name);
		if (v != NULL)
			put_summary(f, label, v);
	}
	if (!json_is_object(clo))
		return;
	put_summary(f, "CLO, paired", clo);
	put_ci(f, clo);
	json_object_foreach(json_object_get(clo, "by_failure"), name, o)
	{
		snprintf(label, sizeof(label), "  %s", name);
		put_summary(f, label, o);
	}
}

static void
put_bad_payloads(FILE *f, json_t *payloads)
{
	json_t *m;
	size_t i;

	json_array_foreach(payloads, i, m) if (i < 10) fprintf(f,
	    "payload: %s: %s\n", json_string_value(json_object_get(m, "what")),
	    json_is_string(json_object_get(m, "user")) ?
		json_string_value(json_object_get(m, "user")) :
		"-");
}

void
hf_report_text(FILE *f, json_t *report)
{
	json_t *run = json_object_get(report, "run"), *v;
	json_t *suite = json_object_get(report, "suite");
	json_t *systems = json_object_get(report, "systems");
	const char *name;
	size_t left;

	fprintf(f,
	    "suite %s, seed %d: %d conversations, %d turns; runs %d, "
	    "%d at once, %s history, %s; played in %.1f s\n\n",
	    json_string_value(json_object_get(suite, "name")),
	    integer(suite, "seed"), integer(suite, "conversations"),
	    integer(suite, "turns"), integer(run, "runs"),
	    integer(run, "concurrency"),
	    json_string_value(json_object_get(run, "history")),
	    json_is_true(json_object_get(run, "stream")) ? "streams" :
							   "no streams",
	    number(run, "wall_s"));
	fprintf(f, "%-*s", LABEL, "context preserved");
	left = json_object_size(systems);
	json_object_foreach(systems, name, v) put_cell(f, name, --left == 0);
	fputc('\n', f);
	put_row(f, systems, NULL, NULL, "  all");
	v = json_object_get(
	    json_object_iter_value(json_object_iter(systems)), "by");
	json_object_foreach(v, name, run) put_axis(f, systems, name);
	hf_report_storm_text(f, systems);
	hf_report_streams_text(f, systems);
	put_times(f, report);
	hf_report_bounds_text(f, report);
	fputs("\nchecks:", f);
	json_object_foreach(json_object_get(report, "counts"), name, v)
	    fprintf(f, " %s=%d", name, (int)json_integer_value(v));
	fputs("\n", f);
	v = json_object_get(report, "verify");
	if (json_is_integer(v))
		fprintf(f, "holdfastctl sessions verify --all: exit %d\n",
		    (int)json_integer_value(v));
	hf_report_misses_text(f, report);
	put_bad_payloads(f, json_object_get(report, "bad_payloads"));
	fputs("\nIntervals are Wilson's at 95 %; of times, by 2000 resamples "
	      "of conversations; of what\nwas not seen, by the rule of three.  "
	      "The providers are deterministic: runs repeat the\nsame "
	      "conversations, so the pooled count is not that many "
	      "independent events.\n",
	    f);
}
