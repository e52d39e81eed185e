/*
 * Several gateways' reports as tables, from their JSON.  Pure.
 */
#include <config.h>

#include "bench/compare.h"

#include <string.h>

#include "base/hf.h"

#define LABEL 44
#define COLUMN 16

/* The only system of a report. */
static json_t *
system_of(json_t *report)
{
	return json_object_iter_value(
	    json_object_iter(json_object_get(report, "systems")));
}

static int
count(json_t *o, const char *key)
{
	return (int)json_integer_value(json_object_get(o, key));
}

static double
real(json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

/* --- cells ---------------------------------------------------------------- */

typedef void (*cell_fn)(char *out, size_t size, json_t *report);

static void
put_preserved(char *out, size_t size, json_t *report)
{
	json_t *c = json_object_get(system_of(report), "cpr");

	snprintf(out, size, "%d/%d %.1f %%", count(c, "k"), count(c, "n"),
	    100 * real(c, "p"));
}

static void
put_interval(char *out, size_t size, json_t *report)
{
	json_t *c = json_object_get(system_of(report), "cpr");

	snprintf(out, size, "%.1f to %.1f", 100 * real(c, "lo"),
	    100 * real(c, "hi"));
}

static void
put_count(char *out, size_t size, json_t *report, const char *key)
{
	snprintf(
	    out, size, "%d", count(json_object_get(report, "counts"), key));
}

static void
put_errors(char *out, size_t size, json_t *report)
{
	json_t *c = json_object_get(report, "counts");

	snprintf(out, size, "%d", count(c, "errors") - count(c, "silent"));
}

static void
put_silent(char *out, size_t size, json_t *report)
{
	put_count(out, size, report, "silent");
}

/* Answers that are not what was to come, though nothing said so. */
static void
put_wrong(char *out, size_t size, json_t *report)
{
	json_t *cpr = json_object_get(system_of(report), "cpr");

	snprintf(out, size, "%d",
	    count(cpr, "n") - count(cpr, "k") -
		count(json_object_get(report, "counts"), "errors"));
}

static void
put_bleed(char *out, size_t size, json_t *report)
{
	put_count(out, size, report, "bleed");
}

static void
put_refused(char *out, size_t size, json_t *report)
{
	put_count(out, size, report, "refused");
}

static void
put_bad(char *out, size_t size, json_t *report)
{
	put_count(out, size, report, "bad_payloads");
}

static void
put_requests(char *out, size_t size, json_t *report)
{
	put_count(out, size, report, "payloads");
}

static void
put_latency(char *out, size_t size, json_t *report)
{
	json_t *l = json_object_get(system_of(report), "latency_ms");

	if (count(l, "n") == 0)
		snprintf(out, size, "-");
	else
		snprintf(
		    out, size, "%.0f, %.0f", real(l, "median"), real(l, "p95"));
}

/* Of a storm: calls of who admits so many, for each answer. */
static void
put_storm_calls(char *out, size_t size, json_t *report)
{
	snprintf(out, size, "%.2f",
	    real(json_object_get(system_of(report), "storm"),
		"calls_per_answer"));
}

/* When the last of them was answered, and the least that it can take. */
static void
put_storm_time(char *out, size_t size, json_t *report)
{
	json_t *s = json_object_get(system_of(report), "storm");

	snprintf(out, size, "%.1f of %.1f", real(s, "drain_ms") / 1000,
	    real(s, "least_ms") / 1000);
}

static void
put_history(char *out, size_t size, json_t *report)
{
	const char *h = json_string_value(
	    json_object_get(json_object_get(report, "run"), "history"));

	snprintf(
	    out, size, "%s", strcmp(h, "full") == 0 ? "all" : "what is new");
}

/* --- tables --------------------------------------------------------------- */

static void
put_head(FILE *f, json_t *targets)
{
	const char *name;
	json_t *r;

	fprintf(f, "| %-*s", LABEL, "");
	json_object_foreach(targets, name, r)
	    fprintf(f, " | %-*s", COLUMN, name);
	fputs(" |\n|", f);
	for (unsigned i = 0; i < LABEL + 2; i++)
		fputc('-', f);
	json_object_foreach(targets, name, r)
	{
		fputc('|', f);
		for (unsigned i = 0; i < COLUMN + 2; i++)
			fputc('-', f);
	}
	fputs("|\n", f);
}

static void
put_row(FILE *f, json_t *targets, const char *label, cell_fn cell)
{
	const char *name;
	char text[80];
	json_t *r;

	fprintf(f, "| %-*s", LABEL, label);
	json_object_foreach(targets, name, r)
	{
		if (json_is_null(r))
			snprintf(text, sizeof(text), "not played");
		else
			cell(text, sizeof(text), r);
		fprintf(f, " | %-*s", COLUMN, text);
	}
	fputs(" |\n", f);
}

static bool
is_storm(json_t *targets)
{
	const char *name;
	json_t *r;

	json_object_foreach(targets, name,
	    r) if (json_object_get(system_of(r), "storm") != NULL) return true;
	return false;
}

static void
put_suite(FILE *f, json_t *targets)
{
	static const struct {
		const char *label;
		cell_fn cell;
	} rows[] = {
		{ "clients send", put_history },
		{ "conversations preserved", put_preserved },
		{ "Wilson's 95 % interval, %", put_interval },
		{ "ended by an error", put_errors },
		{ "broke off, and nothing told so", put_silent },
		{ "answered, but not rightly", put_wrong },
		{ "another's words (bleed)", put_bleed },
		{ "payloads that are not the history", put_bad },
		{ "payloads that a provider refuses", put_refused },
		{ "requests to providers", put_requests },
		{ "probe, ms: median, P95", put_latency },
	};

	put_head(f, targets);
	for (unsigned i = 0; i < hf_countof(rows); i++)
		put_row(f, targets, rows[i].label, rows[i].cell);
	if (!is_storm(targets))
		return;
	put_row(f, targets, "calls of the fallback for each answer",
	    put_storm_calls);
	put_row(
	    f, targets, "last answer after, s; least for all", put_storm_time);
}

/* The wall's scenario number i of this report. */
static json_t *
scenario(json_t *report, size_t i)
{
	return json_array_get(json_object_get(report, "wall"), i);
}

static void
put_wall(FILE *f, json_t *targets)
{
	static const char *const verdicts[] = { "pass", "partial", "safe",
		"fail" };
	json_t *any = NULL, *r, *s;
	const char *name;
	char label[80];

	json_object_foreach(targets, name, r) if (json_is_object(r)) any = r;
	put_head(f, targets);
	for (size_t i = 0; (s = scenario(any, i)) != NULL; i++) {
		snprintf(label, sizeof(label), "%s %s",
		    json_string_value(json_object_get(s, "scenario")),
		    json_string_value(json_object_get(s, "name")));
		fprintf(f, "| %-*s", LABEL, label);
		json_object_foreach(targets, name, r)
		{
			json_t *t = scenario(r, i);
			const char *v =
			    json_string_value(json_object_get(t, "verdict"));

			fprintf(f, " | %-*s", COLUMN, v == NULL ? "-" : v);
		}
		fputs(" |\n", f);
	}
	for (unsigned k = 0; k < hf_countof(verdicts); k++) {
		fprintf(f, "| %-*s", LABEL, verdicts[k]);
		json_object_foreach(targets, name, r)
		{
			int n = 0;

			for (size_t i = 0; (s = scenario(r, i)) != NULL; i++)
				n += strcmp(json_string_value(
						json_object_get(s, "verdict")),
					 verdicts[k]) == 0;
			fprintf(f, " | %-*d", COLUMN, n);
		}
		fputs(" |\n", f);
	}
}

/* What was not right on the wall, and why. */
static void
put_reasons(FILE *f, json_t *targets)
{
	const char *name, *how;
	json_t *r, *s, *c;

	json_object_foreach(targets, name, r)
	{
		for (size_t i = 0; (s = scenario(r, i)) != NULL; i++) {
			json_object_foreach(
			    json_object_get(s, "clients"), how, c)
			{
				const char *why = json_string_value(
				    json_object_get(c, "why"));

				if (why[0] == '\0')
					continue;
				fprintf(f,
				    "- %s, %s, %s: %s; %d calls, %d "
				    "fallbacks, %.1f s\n",
				    name,
				    json_string_value(
					json_object_get(s, "scenario")),
				    how, why, count(c, "calls"),
				    count(c, "fallbacks"), real(c, "took_s"));
			}
		}
	}
}

static void
put_versions(FILE *f, json_t *suites)
{
	json_t *seen = json_object(), *targets, *r, *g;
	const char *suite, *name, *version;

	json_object_foreach(suites, suite, targets)
	{
		json_object_foreach(targets, name, r)
		{
			g = json_object_get(r, "gateway");
			version =
			    json_string_value(json_object_get(g, "version"));
			if (version == NULL ||
			    json_object_get(seen, name) != NULL)
				continue;
			json_object_set_new(seen, name, json_true());
			fprintf(f, "- %s: %s\n", name, version);
		}
	}
	json_decref(seen);
}

void
hf_compare_text(FILE *f, json_t *all)
{
	json_t *suites = json_object_get(all, "suites"), *targets;
	const char *name;

	put_versions(f, suites);
	json_object_foreach(suites, name, targets)
	{
		fprintf(f, "\n## %s\n\n",
		    strcmp(name, "wall") == 0 ? "fault wall" : name);
		if (strcmp(name, "wall") != 0) {
			put_suite(f, targets);
			continue;
		}
		put_wall(f, targets);
		fputc('\n', f);
		put_reasons(f, targets);
	}
}
