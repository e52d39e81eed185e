/*
 * The part of the report that is about what was not seen: of how many it was
 * not, and how often it could happen all the same.  And continuity given that
 * the model is right without a failure.
 */
#include <config.h>

#include "bench/report.h"

#include "base/check.h"
#include "bench/stats.h"

/* What a count is out of. */
struct base {
	const char *of;
	unsigned n;
};

/* A rate: where nothing was seen, by the rule of three. */
static void
add(json_t *out, const char *name, unsigned k, struct base b)
{
	json_t *o = hf_report_ratio(k < b.n ? k : b.n, b.n);

	json_object_set_new(o, "of", json_string(b.of));
	json_object_set_new(
	    o, "rule", json_string(k == 0 ? "three" : "wilson"));
	if (k == 0)
		json_object_set_new(o, "hi", json_real(hf_rule_of_three(b.n)));
	json_object_set_new(out, name, o);
}

json_t *
hf_report_bounds(const struct hf_report *r)
{
	const struct hf_counts *n = &r->counts;
	struct base plays = { "conversations", r->plays->n_play };
	struct base turns = { "turns", 0 }, texts = { "texts", n->payloads };
	struct base payloads = { "payloads", n->payloads };
	struct base failures = { "turns with failures",
		n->failed_over + n->not_failed_over };
	json_t *out = json_object();

	for (unsigned i = 0; i < r->plays->n_play; i++)
		turns.n += r->plays->play[i].n_answered;
	texts.n += turns.n;
	add(out, "bleed", n->bleed, texts);
	add(out, "errors", n->errors, plays);
	add(out, "reexecuted", n->reexecuted, turns);
	if (!r->log_judged)
		return out;
	add(out, "ghosts", n->ghosts, payloads);
	add(out, "bad_payloads", n->bad_payloads, payloads);
	add(out, "doubled", n->doubled, payloads);
	add(out, "refused", n->refused, payloads);
	add(out, "unattributed", n->unattributed, payloads);
	add(out, "duplicates", n->duplicates, turns);
	add(out, "not_failed_over", n->not_failed_over, failures);
	add(out, "answered_by_primary", n->answered_by_primary, failures);
	return out;
}

/* --- continuity given the control ----------------------------------------- */

static json_t *
given(const struct hf_report *r, unsigned system, unsigned control)
{
	const struct hf_play *play = r->plays->play;
	unsigned n = 0, k = 0, gained = 0;
	json_t *o;

	for (unsigned run = 0; run < r->conf->n_run; run++) {
		for (unsigned i = 0; i < r->conf->suite->n_conv; i++) {
			bool with = play[hf_play_index(r->conf, run, i, system)]
					.preserved;
			bool without =
			    play[hf_play_index(r->conf, run, i, control)]
				.preserved;

			n += without;
			k += without && with;
			gained += with && !without;
		}
	}
	o = hf_report_ratio(k, n);
	json_object_set_new(o, "given", json_string("right without a failure"));
	json_object_set_new(
	    o, "right_only_with", json_integer((json_int_t)gained));
	return o;
}

json_t *
hf_report_conditional(const struct hf_report *r)
{
	const struct hf_play_conf *c = r->conf;
	unsigned control = 0;
	json_t *out;

	while (control < c->n_system && !c->system[control].control)
		control++;
	if (control == c->n_system)
		return json_null();
	out = json_object();
	for (unsigned i = 0; i < c->n_system; i++)
		if (i != control)
			json_object_set_new(
			    out, c->system[i].name, given(r, i, control));
	return out;
}

/* --- text ----------------------------------------------------------------- */

static double
number(json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static void
put_bounds(FILE *f, json_t *bounds)
{
	const char *name;
	json_t *o;

	fputs("\nseen and not seen, at 95 %\n", f);
	json_object_foreach(bounds, name, o) fprintf(f,
	    "  %-24s  %5.0f of %.0f %s: at most %.3g %%\n", name,
	    number(o, "k"), number(o, "n"),
	    json_string_value(json_object_get(o, "of")), 100 * number(o, "hi"));
}

static void
put_conditional(FILE *f, json_t *conditional)
{
	const char *name;
	json_t *o;

	fputs("\nright after a failover, of those right without\n", f);
	json_object_foreach(conditional, name, o) fprintf(f,
	    "  %-24s  %.0f/%.0f  %5.1f %% [%.1f, %.1f]; right only with: "
	    "%.0f\n",
	    name, number(o, "k"), number(o, "n"), 100 * number(o, "p"),
	    100 * number(o, "lo"), 100 * number(o, "hi"),
	    number(o, "right_only_with"));
}

static void
put_judge(FILE *f, json_t *judge)
{
	json_t *c = json_object_get(judge, "calibration");

	fprintf(f,
	    "\njudge %s: agrees with %.0f of %.0f labels; %.0f answers by "
	    "their words, %.0f asked:\n  %.0f right, %.0f wrong, %.0f without "
	    "a "
	    "verdict; %.0f calls\n",
	    json_string_value(json_object_get(judge, "model")), number(c, "k"),
	    number(c, "n"), number(judge, "substring"), number(judge, "asked"),
	    number(judge, "right"), number(judge, "wrong"),
	    number(judge, "undecided"), number(judge, "calls"));
}

void
hf_report_bounds_text(FILE *f, json_t *report)
{
	json_t *judge = json_object_get(report, "judge");
	json_t *conditional = json_object_get(report, "conditional");

	if (json_is_object(conditional))
		put_conditional(f, conditional);
	if (json_is_object(judge))
		put_judge(f, judge);
	put_bounds(f, json_object_get(report, "bounds"));
}
