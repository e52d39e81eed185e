/*
 * The part of the report that is about a storm: what came of all those who
 * failed over at once.
 */
#include <config.h>

#include "bench/report.h"

#include <stdlib.h>

#include "base/check.h"

/* The last of the answers, in milliseconds since they were all asked for. */
static double
drained_ms(const struct hf_report *r, unsigned system, unsigned *answered)
{
	double last = 0;

	*answered = 0;
	for (unsigned i = 0; i < r->plays->n_play; i++) {
		const struct hf_play *p = &r->plays->play[i];

		if (p->system != system || p->n_answered <= p->c->probe)
			continue;
		++*answered;
		if (p->turn_ms[p->c->probe] > last)
			last = p->turn_ms[p->c->probe];
	}
	return last;
}

json_t *
hf_report_storm(const struct hf_report *r, unsigned system)
{
	const struct hf_suite *s = r->conf->suite;
	const struct hf_tally *t = &r->counts.tally[system];
	unsigned least = hf_storm_least_ms(&s->storm, s->n_conv), answered;
	double drain = drained_ms(r, system, &answered);
	json_t *o;

	o = json_pack("{s:i,s:i,s:i,s:i,s:f,s:i}", "sessions",
	    (int)(s->n_conv * r->conf->n_run), "answered", (int)answered,
	    "quota", (int)s->storm.quota, "window_ms", (int)s->storm.window_ms,
	    "drain_ms", drain, "least_ms", (int)least);
	HF_CHECK(o != NULL);
	if (least > 0)
		json_object_set_new(o, "of_least", json_real(drain / least));
	json_object_set_new(
	    o, "of_least_most", json_real(s->storm.longest / 100.0));
	if (!r->log_judged)
		return o;
	json_object_set_new(
	    o, "calls", json_integer((json_int_t)t->storm_calls));
	json_object_set_new(
	    o, "refused", json_integer((json_int_t)t->storm_refused));
	if (answered > 0)
		json_object_set_new(o, "calls_per_answer",
		    json_real((double)t->storm_calls / answered));
	return o;
}

static double
number(json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

void
hf_report_storm_text(FILE *f, json_t *systems)
{
	const char *name;
	json_t *s, *o;
	bool head = false;

	json_object_foreach(systems, name, s)
	{
		o = json_object_get(s, "storm");
		if (o == NULL)
			continue;
		if (!head)
			fprintf(f, "\n%-14s %9s %9s %6s %8s %11s %9s %9s\n",
			    "storm", "sessions", "answered", "calls", "refused",
			    "per answer", "seconds", "of least");
		head = true;
		fprintf(f, "%-14s %9.0f %9.0f %6.0f %8.0f %11.2f %9.1f %9.2f\n",
		    name, number(o, "sessions"), number(o, "answered"),
		    number(o, "calls"), number(o, "refused"),
		    number(o, "calls_per_answer"), number(o, "drain_ms") / 1000,
		    number(o, "of_least"));
	}
}

bool
hf_storm_passed(json_t *storm)
{
	return number(storm, "answered") >= number(storm, "sessions") &&
	    number(storm, "calls_per_answer") <= HF_STORM_CALLS &&
	    number(storm, "of_least") <= number(storm, "of_least_most");
}
