/*
 * The tables of the failover paper, in its layout, from a report: the pooled
 * rate, the rate of each run, times of the last run, and the same by length.
 * A treatment is whatever is not the stateless baseline.
 */
#include <config.h>

#include "bench/report.h"

#include <stdlib.h>

#include "base/check.h"
#include "bench/stats.h"

#define LABEL 30
#define MAX_SYSTEMS 4
#define MAX_LENGTH 64

struct paper {
	FILE *f;
	json_t *report, *plays;
	const char *system[MAX_SYSTEMS];
	bool stateless[MAX_SYSTEMS], control[MAX_SYSTEMS];
	unsigned n_system;
	int runs;
};

/* Which plays are meant; 0: any run, any length. */
struct choice {
	const char *system;
	int run, length;
};

static int
integer(json_t *o, const char *key)
{
	return (int)json_integer_value(json_object_get(o, key));
}

static const char *
string(json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static bool
is_chosen(json_t *play, const struct choice *c)
{
	return strcmp(string(play, "system"), c->system) == 0 &&
	    (c->run == 0 || integer(play, "run") == c->run) &&
	    (c->length == 0 || integer(play, "messages") == c->length);
}

/* Preserved, of all that are chosen. */
static struct hf_wilson
rate(const struct paper *p, const struct choice *c, unsigned *k, unsigned *n)
{
	json_t *play;
	size_t i;

	*k = *n = 0;
	json_array_foreach(p->plays, i, play)
	{
		if (!is_chosen(play, c))
			continue;
		++*n;
		*k += json_is_true(json_object_get(play, "preserved"));
	}
	return hf_wilson(*k, *n);
}

static struct hf_summary
times(const struct paper *p, const struct choice *c)
{
	double *v = hf_xcalloc(json_array_size(p->plays) + 1, sizeof(*v));
	struct hf_summary s;
	json_t *play;
	size_t i, n = 0;

	json_array_foreach(p->plays, i, play)
	{
		json_t *ms = json_object_get(play, "probe_ms");

		if (is_chosen(play, c) && json_is_number(ms))
			v[n++] = json_number_value(ms);
	}
	s = hf_summarize(v, n);
	free(v);
	return s;
}

/* The time of this conversation in the last run, or NULL. */
static json_t *
time_of(const struct paper *p, const struct choice *c, const char *conversation)
{
	json_t *play, *ms;
	size_t i;

	json_array_foreach(p->plays, i, play)
	{
		if (!is_chosen(play, c) ||
		    strcmp(string(play, "conversation"), conversation) != 0)
			continue;
		ms = json_object_get(play, "probe_ms");
		return json_is_number(ms) ? ms : NULL;
	}
	return NULL;
}

/* Treatment less baseline, conversation by conversation. */
static struct hf_summary
paired(const struct paper *p, const struct choice *base,
    const struct choice *treatment)
{
	double *v = hf_xcalloc(json_array_size(p->plays) + 1, sizeof(*v));
	struct hf_summary s;
	json_t *play, *ms, *other;
	size_t i, n = 0;

	json_array_foreach(p->plays, i, play)
	{
		ms = json_object_get(play, "probe_ms");
		if (!is_chosen(play, treatment) || !json_is_number(ms))
			continue;
		other = time_of(p, base, string(play, "conversation"));
		if (other != NULL)
			v[n++] =
			    json_number_value(ms) - json_number_value(other);
	}
	s = hf_summarize(v, n);
	free(v);
	return s;
}

static void
title(const struct paper *p, unsigned i, char text[LABEL])
{
	snprintf(text, LABEL, "%s (%s)",
	    p->stateless[i]   ? "Baseline" :
		p->control[i] ? "Control" :
				"Treatment",
	    p->stateless[i] ? "stateless" : p->system[i]);
}

/* The width of a column, which is padded only where another follows. */
static int
pad(const struct paper *p, unsigned i, int width)
{
	return i + 1 < p->n_system ? width : 0;
}

static void
rule(const struct paper *p, unsigned n)
{
	while (n-- > 0)
		fputc('-', p->f);
	fputc('\n', p->f);
}

/* --- the tables -------------------------------------------------------------
 */

static void
pooled(const struct paper *p)
{
	json_t *suite = json_object_get(p->report, "suite");
	int n = integer(suite, "conversations");
	char label[LABEL], ratio[24];

	fprintf(p->f,
	    "Table 1. Pooled Continuity Preservation Rate across N = %d "
	    "failover events (%d runs x\n%d conversations).  95 %% Wilson "
	    "score intervals.\n\n%-*s %19s %9s   %s\n",
	    p->runs * n, p->runs, n, LABEL, "System", "Preserved / Total",
	    "CPR (%)", "95% CI");
	rule(p, 80);
	for (unsigned i = 0; i < p->n_system; i++) {
		struct choice c = { p->system[i], 0, 0 };
		unsigned k, of;
		struct hf_wilson w = rate(p, &c, &k, &of);

		title(p, i, label);
		snprintf(ratio, sizeof(ratio), "%u / %u", k, of);
		fprintf(p->f, "%-*s %19s %9.2f   [%.2f, %.2f]\n", LABEL, label,
		    ratio, 100 * w.p, 100 * w.lo, 100 * w.hi);
	}
}

/* A row of rates; run 0: pooled. */
static void
run_row(const struct paper *p, int run)
{
	if (run == 0)
		fprintf(p->f, "%-8s", "Pooled");
	else
		fprintf(p->f, "%-8d", run);
	for (unsigned i = 0; i < p->n_system; i++) {
		struct choice c = { p->system[i], run, 0 };
		unsigned k, n;
		struct hf_wilson w = rate(p, &c, &k, &n);
		char ratio[24], ci[24];

		snprintf(ratio, sizeof(ratio), "%u / %u", k, n);
		snprintf(
		    ci, sizeof(ci), "[%.1f, %.1f]", 100 * w.lo, 100 * w.hi);
		fprintf(p->f, " %11s %8.1f   %-*s", ratio, 100 * w.p,
		    pad(p, i, 14), ci);
	}
	fputc('\n', p->f);
}

static void
by_run(const struct paper *p)
{
	char label[LABEL];

	fprintf(p->f,
	    "\nTable 2. Per-run CPR stability across %d independent runs.\n\n"
	    "%-8s",
	    p->runs, "");
	for (unsigned i = 0; i < p->n_system; i++) {
		title(p, i, label);
		fprintf(p->f, "   %-*s", pad(p, i, 36), label);
	}
	fprintf(p->f, "\n%-8s", "Run");
	for (unsigned i = 0; i < p->n_system; i++)
		fprintf(p->f, " %11s %8s   %-*s", "Preserved", "CPR (%)",
		    pad(p, i, 14), "95% CI");
	fputc('\n', p->f);
	rule(p, 8 + 38 * p->n_system);
	for (int run = 1; run <= p->runs; run++)
		run_row(p, run);
	rule(p, 8 + 38 * p->n_system);
	run_row(p, 0);
}

static void
time_row(const struct paper *p, const char *label, const struct hf_summary *s,
    bool sign)
{
	double v[] = { s->mean, s->p50, s->p25, s->p75, s->p95, s->p99 };

	fprintf(p->f, "%-*s", LABEL, label);
	for (unsigned i = 0; i < hf_countof(v); i++)
		fprintf(p->f, sign ? " %+9.1f" : " %9.1f", v[i]);
	fputc('\n', p->f);
}

static void
latency(const struct paper *p)
{
	unsigned base = 0;
	size_t n = 0;
	char label[LABEL];

	for (unsigned i = 0; i < p->n_system; i++) {
		struct choice c = { p->system[i], p->runs, 0 };
		struct hf_summary s = times(p, &c);

		n = s.n > n ? s.n : n;
		base = p->stateless[i] ? i : base;
	}
	fprintf(p->f,
	    "\nTable 3. Latency distribution for failover events (run %d, n = "
	    "%zu).  CLO is paired,\nconversation by conversation.  "
	    "Milliseconds.\n\n%-*s %9s %9s %9s %9s %9s %9s\n",
	    p->runs, n, LABEL, "", "Mean", "Median", "P25", "P75", "P95",
	    "P99");
	rule(p, LABEL + 60);
	for (unsigned i = 0; i < p->n_system; i++) {
		struct choice c = { p->system[i], p->runs, 0 };
		struct hf_summary s = times(p, &c);

		title(p, i, label);
		time_row(p, label, &s, false);
	}
	rule(p, LABEL + 60);
	for (unsigned i = 0; i < p->n_system; i++) {
		struct choice a = { p->system[base], p->runs, 0 };
		struct choice b = { p->system[i], p->runs, 0 };
		struct hf_summary s;

		if (i == base)
			continue;
		s = paired(p, &a, &b);
		time_row(p, "CLO (paired)", &s, true);
	}
}

static void
length_row(const struct paper *p, int length)
{
	unsigned all = 0;

	for (unsigned i = 0; i < p->n_system; i++) {
		struct choice c = { p->system[i], p->runs, length };
		unsigned k, n;

		rate(p, &c, &k, &n);
		all += n;
	}
	if (all == 0)
		return;
	fprintf(p->f, "%-8d", length);
	for (unsigned i = 0; i < p->n_system; i++) {
		struct choice c = { p->system[i], p->runs, length };
		struct hf_summary s = times(p, &c);
		unsigned k, n;
		struct hf_wilson w = rate(p, &c, &k, &n);

		fprintf(p->f, " %6u %8.1f%% %12.1f%*s", n, 100 * w.p, s.p50,
		    pad(p, i, 6), "");
	}
	fputc('\n', p->f);
}

static void
by_length(const struct paper *p)
{
	char label[LABEL];

	fprintf(p->f,
	    "\nTable 4. CPR and latency by conversation length (run %d).  "
	    "Turns are messages of both.\n\n%-8s",
	    p->runs, "");
	for (unsigned i = 0; i < p->n_system; i++) {
		title(p, i, label);
		fprintf(p->f, "   %-*s", pad(p, i, 33), label);
	}
	fprintf(p->f, "\n%-8s", "Turns");
	for (unsigned i = 0; i < p->n_system; i++)
		fprintf(p->f, " %6s %9s %12s%*s", "n", "CPR", "Med. lat.",
		    pad(p, i, 6), "");
	fputc('\n', p->f);
	rule(p, 8 + 35 * p->n_system);
	for (int length = 1; length < MAX_LENGTH; length++)
		length_row(p, length);
}

int
hf_report_paper(FILE *f, json_t *report)
{
	struct paper p = { .f = f,
		.report = report,
		.plays = json_object_get(report, "plays"),
		.runs = integer(json_object_get(report, "run"), "runs") };
	json_t *counts = json_object_get(report, "counts"), *s;
	const char *name;

	if (json_object_get(json_array_get(p.plays, 0), "messages") == NULL)
		return -1;
	json_object_foreach(json_object_get(report, "systems"), name, s)
	{
		if (p.n_system == MAX_SYSTEMS)
			break;
		p.stateless[p.n_system] =
		    json_is_true(json_object_get(s, "stateless"));
		p.control[p.n_system] =
		    json_is_true(json_object_get(s, "control"));
		p.system[p.n_system++] = name;
	}
	pooled(&p);
	by_run(&p);
	latency(&p);
	by_length(&p);
	fprintf(f,
	    "\nEach failover is one that a provider made on the wire; workers "
	    "killed meanwhile: %d.\nWords of another conversation: %d; "
	    "payloads "
	    "that were not exactly the history: %d.\n",
	    integer(counts, "kills"), integer(counts, "bleed"),
	    integer(counts, "bad_payloads"));
	return 0;
}
