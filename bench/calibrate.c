/*
 * The gate: a judge that agrees with fewer than nine of ten labels judges
 * nothing.
 */
#include <config.h>

#include "bench/model_judge.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/embedded.h"
#include "bench/report.h"

#define GATE_PERCENT 90

static const char *
text(json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static int
check_case(json_t *c, size_t i, struct hf_error *e)
{
	static const char *const member[] = { "id", "kind", "expected_fact",
		"probe", "answer" };

	for (unsigned k = 0; k < hf_countof(member); k++)
		if (text(c, member[k]) == NULL)
			return hf_fail(e, HF_EINVAL,
			    "case %zu: %s: expected a string", i + 1,
			    member[k]);
	if (!json_is_boolean(json_object_get(c, "preserved")))
		return hf_fail(e, HF_EINVAL,
		    "case %zu: preserved: expected true or false", i + 1);
	return 0;
}

int
hf_calibration_load(json_t **out, const char *path, struct hf_error *e)
{
	json_error_t je;
	json_t *set, *c;
	size_t i;
	int rc = 0;

	if (path == NULL)
		set = json_loads(hf_calibration_json, 0, &je);
	else
		set = json_load_file(path, 0, &je);
	if (path == NULL)
		path = "calibration";
	if (set == NULL)
		return hf_fail(
		    e, HF_EINVAL, "%s: line %d: %s", path, je.line, je.text);
	if (json_array_size(set) == 0)
		rc = hf_fail(e, HF_EINVAL, "expected an array of cases");
	json_array_foreach(set, i, c) if (rc == 0) rc = check_case(c, i, e);
	if (rc != 0) {
		json_decref(set);
		return hf_error_prefix(e, path);
	}
	*out = set;
	return 0;
}

static json_t *
outcome(json_t *c, const struct hf_judgement *j, unsigned *agreed)
{
	bool label = json_is_true(json_object_get(c, "preserved"));
	bool agrees =
	    j->verdict == (label ? HF_VERDICT_RIGHT : HF_VERDICT_WRONG);
	const char *why = j->reason != NULL ? j->reason : j->error;

	*agreed += agrees;
	return json_pack("{s:O,s:O,s:b,s:s,s:b,s:s}", "id",
	    json_object_get(c, "id"), "kind", json_object_get(c, "kind"),
	    "preserved", label, "verdict",
	    j->verdict == HF_VERDICT_RIGHT     ? "preserved" :
		j->verdict == HF_VERDICT_WRONG ? "lost" :
						 "undecided",
	    "agrees", agrees, "reason", why);
}

static bool
silent(const struct hf_judgement *j, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (j[i].verdict != HF_VERDICT_UNDECIDED)
			return false;
	return true;
}

int
hf_calibrate(const struct hf_judge_conf *conf, json_t *cases,
    struct hf_progress *progress, json_t **out, struct hf_error *e)
{
	unsigned n = (unsigned)json_array_size(cases), k = 0;
	unsigned needed = (n * GATE_PERCENT + 99) / 100;
	struct hf_judgement *j = hf_xcalloc(n, sizeof(*j));
	struct hf_judge_calls calls = { 0 };
	json_t *list = json_array(), *c;
	size_t i;
	int rc;

	json_array_foreach(cases, i, c) j[i].q =
	    (struct hf_question){ text(c, "expected_fact"), text(c, "probe"),
		    text(c, "answer") };
	rc = hf_judge_ask(conf, j, n, &calls, progress, e);
	if (rc == 0 && silent(j, n))
		rc = hf_fail(e, HF_EUNREACH,
		    "the judge at %s gave no verdict at all: %s", conf->url,
		    j[0].error);
	json_array_foreach(cases, i, c)
	    json_array_append_new(list, outcome(c, &j[i], &k));
	*out = hf_report_ratio(k, n);
	json_object_update_new(*out,
	    json_pack("{s:i,s:b,s:o}", "needed", (int)needed, "passed",
		rc == 0 && k >= needed, "cases", list));
	hf_judgements_free(j, n);
	return rc;
}

void
hf_calibration_text(FILE *f, json_t *calibration)
{
	json_t *c;
	size_t i;

	fprintf(
	    f, "%-16s  %-24s  %-9s  %-9s\n", "case", "kind", "label", "judge");
	json_array_foreach(json_object_get(calibration, "cases"), i, c)
	{
		bool agrees = json_is_true(json_object_get(c, "agrees"));

		fprintf(f, "%-16s  %-24s  %-9s  %-9s%s%s\n", text(c, "id"),
		    text(c, "kind"),
		    json_is_true(json_object_get(c, "preserved")) ?
			"preserved" :
			"lost",
		    text(c, "verdict"), agrees ? "" : "  <- ",
		    agrees ? "" : text(c, "reason"));
	}
	fprintf(f,
	    "agrees with %lld of %lld (95 %%: %.0f to %.0f %%); %lld are "
	    "needed: %s\n",
	    json_integer_value(json_object_get(calibration, "k")),
	    json_integer_value(json_object_get(calibration, "n")),
	    100 * json_number_value(json_object_get(calibration, "lo")),
	    100 * json_number_value(json_object_get(calibration, "hi")),
	    json_integer_value(json_object_get(calibration, "needed")),
	    json_is_true(json_object_get(calibration, "passed")) ? "passed" :
								   "refused");
}
