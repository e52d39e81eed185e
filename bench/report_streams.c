/*
 * The part of the report that is about streams: what failed, how it was gone
 * on with, what came of it, and what is wrong with the texts.
 */
#include <config.h>

#include "bench/report.h"

#include "base/check.h"

#define LABEL 26
#define COLUMN 16

/* --- JSON ----------------------------------------------------------------- */

typedef const char *(*name_fn)(unsigned i);

static const char *
kind_name(unsigned i)
{
	return hf_fault_name((enum hf_fault_kind)i);
}

static const char *
phase_name(unsigned i)
{
	return hf_phase_name((enum hf_cut_phase)i);
}

static const char *
join_name(unsigned i)
{
	return hf_join_name((enum hf_join)i);
}

static const char *
outcome_name(unsigned i)
{
	return hf_outcome_name((enum hf_outcome)i);
}

static const char *
blame_name(unsigned i)
{
	return hf_blame_name((enum hf_blame)i);
}

/* {"name": count, ...}; 'all': with those that are 0. */
static json_t *
counted(const unsigned *n, unsigned size, name_fn name, bool all)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < size; i++)
		if (all || n[i] > 0)
			json_object_set_new(
			    o, name(i), json_integer((json_int_t)n[i]));
	return o;
}

static json_t *
texts(const struct hf_tally *t)
{
	const struct hf_seam *w = &t->words;

	return json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "compared",
	    (int)t->texts, "duplicated", (int)w->duplicated, "missing",
	    (int)w->missing, "glued", (int)w->glued, "split", (int)w->split,
	    "added", (int)w->added, "spaces", (int)w->spaces, "calls_wrong",
	    (int)t->calls_wrong, "differing", (int)t->differing);
}

static json_t *
marks(const struct hf_tally *t)
{
	return json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "streams",
	    (int)t->streams, "roles", (int)t->marks.roles, "finishes",
	    (int)t->marks.finishes, "dones", (int)t->marks.dones, "ids",
	    (int)t->marks.ids, "models", (int)t->marks.models, "bad",
	    (int)t->bad_marks);
}

json_t *
hf_report_streams(const struct hf_tally *t)
{
	return json_pack("{s:{s:i,s:o,s:o},s:o,s:o,s:o,s:o}", "failures", "n",
	    (int)t->failures, "by_kind",
	    counted(t->by_kind, HF_FAULT_COUNT, kind_name, false), "by_place",
	    counted(t->by_phase, HF_PHASE_COUNT, phase_name, false), "joins",
	    counted(t->joins, HF_JOIN_COUNT, join_name, true), "outcomes",
	    counted(t->outcomes, HF_OUTCOME_COUNT, outcome_name, true), "texts",
	    texts(t), "marks", marks(t));
}

json_t *
hf_report_blames(const struct hf_tally *t)
{
	return counted(t->blames, HF_BLAME_COUNT, blame_name, false);
}

/* --- text ----------------------------------------------------------------- */

/* The counts at 'group' (and 'sub' in it) of each system, a line a name. */
static void
put_counts(FILE *f, json_t *systems, const char *title, const char *group,
    const char *sub)
{
	json_t *names = json_object(), *s, *o, *v;
	const char *name;

	json_object_foreach(systems, name, s)
	{
		o = json_object_get(json_object_get(s, "streams"), group);
		json_object_update_missing(
		    names, sub == NULL ? o : json_object_get(o, sub));
	}
	fprintf(f, "  %s:\n", title);
	json_object_foreach(names, name, v)
	{
		const char *system;

		fprintf(f, "    %-*s", LABEL - 4, name);
		json_object_foreach(systems, system, s)
		{
			o = json_object_get(
			    json_object_get(s, "streams"), group);
			if (sub != NULL)
				o = json_object_get(o, sub);
			fprintf(f, "  %*d", COLUMN,
			    (int)json_integer_value(json_object_get(o, name)));
		}
		fputc('\n', f);
	}
	json_decref(names);
}

void
hf_report_streams_text(FILE *f, json_t *systems)
{
	json_t *s = json_object_iter_value(json_object_iter(systems));
	const char *name;

	if (json_object_get(s, "streams") == NULL)
		return;
	fprintf(f, "\n%-*s", LABEL, "failures and answers");
	json_object_foreach(systems, name, s) fprintf(f, "  %*s", COLUMN, name);
	fputc('\n', f);
	put_counts(f, systems, "what providers did", "failures", "by_kind");
	put_counts(f, systems, "where, within streams", "failures", "by_place");
	put_counts(f, systems, "how the next one went on", "joins", NULL);
	put_counts(f, systems, "what the client got", "outcomes", NULL);
	put_counts(f, systems, "texts, and wrong words", "texts", NULL);
	if (json_integer_value(json_object_get(
		json_object_get(json_object_get(s, "streams"), "marks"),
		"streams")) > 0)
		put_counts(f, systems, "marks of streams", "marks", NULL);
}
