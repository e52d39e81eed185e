/*
 * The report of a run as JSON; the table is printed from it, so that the two
 * cannot differ.  Pure.
 */
#include <config.h>

#include "bench/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "bench/stats.h"

/* --- preserved or not, by axis -------------------------------------------- */

json_t *
hf_report_ratio(unsigned k, unsigned n)
{
	struct hf_wilson w = hf_wilson(k, n);

	return json_pack("{s:i,s:i,s:f,s:f,s:f}", "n", (int)n, "k", (int)k, "p",
	    w.p, "lo", w.lo, "hi", w.hi);
}

/* Of axis number i of the suite, or its run. */
static const char *
label(const struct hf_play *p, unsigned axis, char run[HF_MAX_LABEL])
{
	if (axis < HF_MAX_AXES)
		return p->c->label[axis];
	snprintf(run, HF_MAX_LABEL, "%u", p->run + 1);
	return run;
}

/* One axis: {"label": ratio, ...}, as they come. */
static json_t *
by_axis(const struct hf_report *r, unsigned system, unsigned axis)
{
	json_t *tally = json_object(), *out = json_object(), *v;
	const char *key, *name;
	char run[HF_MAX_LABEL];

	for (unsigned i = 0; i < r->plays->n_play; i++) {
		const struct hf_play *p = &r->plays->play[i];
		json_t *t;

		if (p->system != system)
			continue;
		name = label(p, axis, run);
		t = json_object_get(tally, name);
		if (t == NULL) {
			t = json_pack("[i,i]", 0, 0);
			json_object_set_new(tally, name, t);
		}
		json_integer_set(json_array_get(t, 0),
		    json_integer_value(json_array_get(t, 0)) + p->preserved);
		json_integer_set(json_array_get(t, 1),
		    json_integer_value(json_array_get(t, 1)) + 1);
	}
	json_object_foreach(tally, key, v) json_object_set_new(out, key,
	    hf_report_ratio((unsigned)json_integer_value(json_array_get(v, 0)),
		(unsigned)json_integer_value(json_array_get(v, 1))));
	json_decref(tally);
	return out;
}

/* --- times ------------------------------------------------------------------
 */

static json_t *
summary(double *v, size_t n)
{
	struct hf_summary s = hf_summarize(v, n);

	if (n == 0)
		return json_pack("{s:i}", "n", 0);
	return json_pack("{s:i,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "n", (int)n,
	    "mean", s.mean, "min", s.min, "p25", s.p25, "median", s.p50, "p75",
	    s.p75, "p95", s.p95, "p99", s.p99, "max", s.max);
}

enum which { PROBE, FIRST, QUIET, SILENCE };

static json_t *
latencies(const struct hf_report *r, unsigned system, enum which which)
{
	double *v = hf_xcalloc(r->plays->n_play * HF_MAX_TURNS, sizeof(*v));
	size_t n = 0;
	json_t *out;

	for (unsigned i = 0; i < r->plays->n_play; i++) {
		const struct hf_play *p = &r->plays->play[i];
		unsigned probe = p->c->probe;

		if (p->system != system)
			continue;
		for (unsigned k = 0; which == QUIET && k < p->n_answered; k++)
			if (!hf_play_is_to_fail(r->conf, p, k))
				v[n++] = p->turn_ms[k];
		if (p->n_answered <= probe)
			continue;
		if (which == PROBE)
			v[n++] = p->turn_ms[probe];
		else if (which == FIRST && p->first_ms[probe] >= 0)
			v[n++] = p->first_ms[probe];
		else if (which == SILENCE)
			v[n++] = p->silence_ms[probe];
	}
	out = summary(v, n);
	free(v);
	return out;
}

static json_t *
interval(struct hf_interval i)
{
	return json_pack("[f,f]", i.lo, i.hi);
}

/* Latency of system b minus that of system a on the probe, pair by pair;
 * 'only': pairs of this failure (NONE: all).  The bootstrap draws
 * conversations, each with all its runs. */
static json_t *
overhead(
    const struct hf_report *r, unsigned a, unsigned b, enum hf_fault_kind only)
{
	unsigned n_conv = r->conf->suite->n_conv;
	double *v = hf_xcalloc(r->plays->n_play, sizeof(*v));
	size_t *from = hf_xcalloc(n_conv + 1, sizeof(*from)), n = 0;
	const struct hf_play *play = r->plays->play;
	struct hf_bootstrap ci = { 0 };
	json_t *out;

	for (unsigned i = 0; i < n_conv; i++) {
		for (unsigned run = 0; run < r->conf->n_run; run++) {
			const struct hf_play *pa, *pb;
			unsigned probe;

			pa = &play[hf_play_index(r->conf, run, i, a)];
			pb = &play[hf_play_index(r->conf, run, i, b)];
			probe = pa->c->probe;
			if (pa->n_answered > probe && pb->n_answered > probe &&
			    (only == HF_FAULT_NONE || pa->c->failure == only))
				v[n++] =
				    pb->turn_ms[probe] - pa->turn_ms[probe];
		}
		from[i + 1] = n;
	}
	if (n > 0)
		ci = hf_bootstrap(v, from, n_conv, r->conf->suite->seed);
	out = summary(v, n);
	if (n > 0)
		json_object_set_new(out, "ci",
		    json_pack("{s:o,s:o,s:o}", "mean", interval(ci.mean),
			"median", interval(ci.median), "p95",
			interval(ci.p95)));
	free(v);
	free(from);
	return out;
}

/* What the others are compared with: the first baseline; without one, the
 * control.  Equal to n_system: nothing. */
static unsigned
reference(const struct hf_play_conf *c)
{
	unsigned i = 0;

	while (i < c->n_system && !c->system[i].stateless)
		i++;
	for (unsigned k = 0; i == c->n_system && k < c->n_system; k++)
		if (c->system[k].control)
			return k;
	return i;
}

static json_t *
clo(const struct hf_report *r)
{
	unsigned a = reference(r->conf), b = 0, n = r->conf->n_system;
	json_t *out, *by;

	while (b < n &&
	    (r->conf->system[b].stateless || r->conf->system[b].control))
		b++;
	if (a == n || b == n)
		return json_null();
	out = overhead(r, a, b, HF_FAULT_NONE);
	by = json_object();
	for (unsigned k = 1; k < HF_FAULT_COUNT; k++) {
		json_t *o = overhead(r, a, b, (enum hf_fault_kind)k);

		if (json_integer_value(json_object_get(o, "n")) > 0)
			json_object_set(
			    by, hf_failure_name((enum hf_fault_kind)k), o);
		json_decref(o);
	}
	json_object_set_new(out, "of",
	    json_pack(
		"[s,s]", r->conf->system[b].name, r->conf->system[a].name));
	json_object_set_new(out, "by_failure", by);
	return out;
}

/* --- all of it --------------------------------------------------------------
 */

static json_t *
system_report(const struct hf_report *r, unsigned system)
{
	unsigned k = 0, n = 0;
	json_t *by = json_object(), *o;

	for (unsigned i = 0; i < r->plays->n_play; i++) {
		if (r->plays->play[i].system != system)
			continue;
		n++;
		k += r->plays->play[i].preserved;
	}
	json_object_set_new(by, "run", by_axis(r, system, HF_MAX_AXES));
	for (unsigned i = 0; i < r->conf->suite->n_axis; i++)
		json_object_set_new(
		    by, r->conf->suite->axis[i], by_axis(r, system, i));
	o = json_pack("{s:o,s:o,s:o,s:o,s:o}", "cpr", hf_report_ratio(k, n),
	    "by", by, "latency_ms", latencies(r, system, PROBE),
	    "first_text_ms", latencies(r, system, FIRST), "quiet_turn_ms",
	    latencies(r, system, QUIET));
	if (r->conf->system[system].stateless)
		json_object_set_new(o, "stateless", json_true());
	if (r->conf->system[system].control)
		json_object_set_new(o, "control", json_true());
	if (r->conf->stream)
		json_object_set_new(
		    o, "silence_ms", latencies(r, system, SILENCE));
	if (r->conf->suite->exact)
		json_object_set_new(
		    o, "streams", hf_report_streams(&r->counts.tally[system]));
	if (r->conf->suite->storm.quota > 0)
		json_object_set_new(o, "storm", hf_report_storm(r, system));
	json_object_set_new(
	    o, "blame", hf_report_blames(&r->counts.tally[system]));
	return o;
}

static json_t *
counts(const struct hf_report *r)
{
	const struct hf_counts *c = &r->counts;
	unsigned silent = 0;
	json_t *o;

	for (unsigned i = 0; i < r->plays->n_play; i++)
		silent += r->plays->play[i].silent;
	o = json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i}",
	    "plays", (int)r->plays->n_play, "errors", (int)c->errors, "silent",
	    (int)silent, "bleed", (int)c->bleed, "kills", (int)c->kills,
	    "restarts", (int)c->restarts, "missed_kills", (int)c->missed_kills,
	    "broken", (int)c->broken, "retries", (int)c->retries, "retried",
	    (int)c->retried, "most_retries", (int)c->most_retries, "reexecuted",
	    (int)c->reexecuted);

	if (r->log_judged)
		json_object_update_new(o,
		    json_pack(
			"{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,"
			"s:i,s:i,s:i}",
			"ghosts", (int)c->ghosts, "doubled", (int)c->doubled,
			"repeated", (int)c->repeated, "payloads",
			(int)c->payloads, "bad_payloads", (int)c->bad_payloads,
			"refused", (int)c->refused, "refused_prefills",
			(int)c->refused_prefills, "refused_windows",
			(int)c->refused_windows, "fitted", (int)c->fitted,
			"unattributed", (int)c->unattributed, "duplicates",
			(int)c->duplicates, "late", (int)c->late, "failed_over",
			(int)c->failed_over, "unasked", (int)c->unasked,
			"not_failed_over", (int)c->not_failed_over,
			"answered_by_primary", (int)c->answered_by_primary));
	return o;
}

/* What "holdfastctl sessions verify --all" said after kills. */
static json_t *
verify(const struct hf_report *r)
{
	return r->verified ? json_integer(r->verify_exit) : json_null();
}

static unsigned
suite_turns(const struct hf_suite *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n_conv; i++)
		n += s->conv[i].n_user;
	return n;
}

json_t *
hf_report_json(const struct hf_report *r)
{
	const struct hf_play_conf *c = r->conf;
	json_t *systems = json_object(), *out;
	char when[32];

	hf_wall_format(hf_wall_us(), when);
	for (unsigned i = 0; i < c->n_system; i++)
		json_object_set_new(
		    systems, c->system[i].name, system_report(r, i));
	out = json_pack("{s:i,s:{s:s,s:s,s:i,s:i,s:s,s:b,s:f},"
			"s:{s:s,s:I,s:i,s:i},s:o,s:o,s:o,s:o,s:o,s:O?,s:o,s:o,"
			"s:O,s:o,s:o}",
	    "schema", 1, "run", "ended", when, "version", PACKAGE_VERSION,
	    "runs", (int)c->n_run, "concurrency", (int)c->concurrency,
	    "history", c->full_history ? "full" : "thin", "stream", c->stream,
	    "wall_s", r->plays->wall_s, "suite", "name", c->suite->name, "seed",
	    (json_int_t)c->suite->seed, "conversations", (int)c->suite->n_conv,
	    "turns", (int)suite_turns(c->suite), "systems", systems, "clo_ms",
	    clo(r), "counts", counts(r), "bounds", hf_report_bounds(r),
	    "conditional", hf_report_conditional(r), "judge", r->judge,
	    "misses", hf_report_misses(r), "seams", hf_report_seams(r),
	    "bad_payloads", r->examples, "verify", verify(r), "plays",
	    hf_report_plays(r));
	HF_CHECK(out != NULL);
	return out;
}
