/*
 * A report as CSV (RFC 4180): a line for each measure, wide enough for all of
 * them, so that a spreadsheet or a few lines of a script can filter it.
 */
#include <config.h>

#include "bench/report.h"

#include "bench/html.h"

/* Where a line is of. */
struct place {
	const char *suite, *system, *table, *axis, *label;
};

static const char *const numbers[] = { "n", "k", "p", "lo", "hi", "mean",
	"median", "min", "p25", "p75", "p95", "p99", "max" };

/* What a spreadsheet would take for a formula gets a quote in front. */
static void
put_text(struct hf_buf *b, const char *z)
{
	if (z == NULL)
		z = "";
	hf_buf_putc(b, '"');
	if (z[0] != '\0' && strchr("=+-@\t\r", z[0]) != NULL)
		hf_buf_putc(b, '\'');
	for (; *z != '\0'; z++) {
		if (*z == '"')
			hf_buf_putc(b, '"');
		hf_buf_putc(b, *z);
	}
	hf_buf_putc(b, '"');
}

static void
put_line(struct hf_buf *b, const struct place *at, json_t *values)
{
	const char *text[] = { at->suite, at->system, at->table, at->axis,
		at->label };

	for (unsigned i = 0; i < hf_countof(text); i++) {
		put_text(b, text[i]);
		hf_buf_putc(b, ',');
	}
	for (unsigned i = 0; i < hf_countof(numbers); i++) {
		json_t *v = hf_get(values, numbers[i]);

		if (i > 0)
			hf_buf_putc(b, ',');
		if (json_is_integer(v))
			hf_buf_printf(b, "%lld", json_integer_value(v));
		else if (json_is_real(v))
			hf_buf_printf(b, "%.6g", json_real_value(v));
	}
	hf_buf_puts(b, "\r\n");
}

static void
put_counts(struct hf_buf *b, struct place at, json_t *counts)
{
	const char *name;
	json_t *v;

	json_object_foreach(counts, name, v)
	{
		json_t *o;

		if (!json_is_integer(v))
			continue;
		o = json_pack("{s:O}", "k", v);
		at.label = name;
		put_line(b, &at, o);
		json_decref(o);
	}
}

static void
put_streams(struct hf_buf *b, struct place at, json_t *streams)
{
	static const char *const group[] = { "outcomes", "joins", "texts",
		"marks" };

	for (unsigned i = 0; i < hf_countof(group); i++) {
		at.table = group[i];
		put_counts(b, at, hf_get(streams, group[i]));
	}
	at.table = "failures";
	at.axis = "by_kind";
	put_counts(b, at, hf_get(hf_get(streams, "failures"), at.axis));
	at.axis = "by_place";
	put_counts(b, at, hf_get(hf_get(streams, "failures"), at.axis));
}

static void
put_system(struct hf_buf *b, struct place at, json_t *s)
{
	static const char *const times[] = { "latency_ms", "first_text_ms",
		"quiet_turn_ms", "silence_ms" };
	json_t *rows, *v;

	at.table = "cpr";
	put_line(b, &at, hf_get(s, "cpr"));
	json_object_foreach(hf_get(s, "by"), at.axis, rows)
	    json_object_foreach(rows, at.label, v) put_line(b, &at, v);
	at.axis = at.label = NULL;
	for (unsigned i = 0; i < hf_countof(times); i++) {
		at.table = times[i];
		if (json_is_object(hf_get(s, times[i])))
			put_line(b, &at, hf_get(s, times[i]));
	}
	put_streams(b, at, hf_get(s, "streams"));
	at.table = "storm";
	put_counts(b, at, hf_get(s, "storm"));
	at.table = "blame";
	put_counts(b, at, hf_get(s, "blame"));
}

/* The bootstrap's intervals, each as a line with its own lo and hi. */
static void
put_clo(struct hf_buf *b, struct place at, json_t *clo)
{
	json_t *ci, *o, *v;

	if (!json_is_object(clo))
		return;
	at.system = json_string_value(json_array_get(hf_get(clo, "of"), 0));
	at.table = "clo_ms";
	put_line(b, &at, clo);
	at.axis = "failure";
	json_object_foreach(hf_get(clo, "by_failure"), at.label, v)
	    put_line(b, &at, v);
	at.axis = "ci";
	json_object_foreach(hf_get(clo, "ci"), at.label, ci)
	{
		o = json_pack("{s:O,s:O}", "lo", json_array_get(ci, 0), "hi",
		    json_array_get(ci, 1));
		put_line(b, &at, o);
		json_decref(o);
	}
}

static void
put_rates(struct hf_buf *b, struct place at, const char *table, json_t *rates)
{
	json_t *v;

	at.table = table;
	json_object_foreach(rates, at.label, v) put_line(b, &at, v);
}

static void
put_suite(struct hf_buf *b, const char *name, json_t *report)
{
	struct place at = { .suite = name };
	json_t *s;

	json_object_foreach(hf_get(report, "systems"), at.system, s)
	    put_system(b, at, s);
	at.system = NULL;
	put_clo(b, at, hf_get(report, "clo_ms"));
	put_rates(b, at, "conditional", hf_get(report, "conditional"));
	put_rates(b, at, "bound", hf_get(report, "bounds"));
	at.table = "count";
	put_counts(b, at, hf_get(report, "counts"));
}

void
hf_report_csv(struct hf_buf *b, json_t *file)
{
	json_t *all = hf_report_each(file), *one;
	const char *title;

	hf_buf_puts(b, "suite,system,table,axis,label");
	for (unsigned i = 0; i < hf_countof(numbers); i++)
		hf_buf_printf(b, ",%s", numbers[i]);
	hf_buf_puts(b, "\r\n");
	json_object_foreach(all, title, one) put_suite(b, title, one);
	json_decref(all);
}
