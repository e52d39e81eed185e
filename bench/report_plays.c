/*
 * The part of the report that others can count again: every play with its
 * times, and with what was asked and answered.  And some streams that broke off
 * and were gone on with, each way once.
 */
#include <config.h>

#include "bench/report.h"

#include "base/check.h"

static json_t *
ms_or_null(bool there, double ms)
{
	return there ? json_real(ms) : json_null();
}

/* --- plays ---------------------------------------------------------------- */

static const char *
decided_by(const struct hf_report *r, const struct hf_play *p, unsigned turn)
{
	if (turn >= p->n_answered)
		return "error";
	if (r->judge == NULL)
		return "exact";
	return hf_verdict_name(p->verdict[turn]);
}

static json_t *
probe(const struct hf_report *r, const struct hf_play *p, unsigned turn)
{
	json_t *o;

	o = json_pack("{s:i,s:s,s:s,s:s?,s:b,s:s}", "turn", (int)turn,
	    "expected", p->c->asks[turn], "probe", p->c->user[turn], "answer",
	    turn < p->n_answered ? p->answer[turn] : NULL, "right",
	    hf_play_right(p, turn), "by", decided_by(r, p, turn));
	HF_CHECK(o != NULL);
	if (turn < p->n_answered && p->calls[turn] != NULL)
		json_object_set(o, "calls", p->calls[turn]);
	if (p->reason[turn] != NULL)
		json_object_set_new(o, "reason", json_string(p->reason[turn]));
	return o;
}

static json_t *
play(const struct hf_report *r, const struct hf_play *p)
{
	unsigned at = p->c->probe;
	bool answered = p->n_answered > at;
	json_t *probes = json_array(), *o;

	for (unsigned k = 0; k < p->c->n_user; k++)
		if (p->c->asks[k] != NULL)
			json_array_append_new(probes, probe(r, p, k));
	o = json_pack("{s:s,s:s,s:i,s:s,s:i,s:s,s:b,s:s,s:o,s:o,s:o}", "id",
	    p->user, "system", r->conf->system[p->system].name, "run",
	    (int)p->run + 1, "conversation", p->c->id, "messages",
	    (int)p->c->n_messages, "failure", hf_failure_name(p->c->failure),
	    "preserved", p->preserved, "blame",
	    hf_blame_name((enum hf_blame)p->blame), "probe_ms",
	    ms_or_null(answered, p->turn_ms[at]), "first_ms",
	    ms_or_null(answered && p->first_ms[at] >= 0, p->first_ms[at]),
	    "probes", probes);
	HF_CHECK(o != NULL);
	return o;
}

json_t *
hf_report_plays(const struct hf_report *r)
{
	json_t *out = json_array();

	for (unsigned i = 0; i < r->plays->n_play; i++)
		json_array_append_new(out, play(r, &r->plays->play[i]));
	return out;
}

/* --- seams ---------------------------------------------------------------- */

/* The first failure within a stream of this play, or NULL. */
static const struct hf_conv_fault *
first_break(const struct hf_conv *c)
{
	for (unsigned i = 0; i < c->n_fault; i++)
		if (hf_fault_in_stream(c->fault[i].fault.kind))
			return &c->fault[i];
	return NULL;
}

static json_t *
seam(const struct hf_report *r, const struct hf_play *p,
    const struct hf_conv_fault *f)
{
	json_t *o;

	o = json_pack("{s:s,s:i,s:s,s:s,s:i,s:s,s:s,s:s,s:s,s:s?}", "system",
	    r->conf->system[p->system].name, "run", (int)p->run + 1,
	    "conversation", p->c->id, "user", p->user, "turn", (int)f->turn,
	    "failure", hf_fault_name(f->fault.kind), "place",
	    hf_phase_name(f->fault.phase), "said", p->c->user[f->turn],
	    "answer", p->answer[f->turn], "expected", p->c->exact[f->turn]);
	HF_CHECK(o != NULL);
	if (p->calls[f->turn] != NULL)
		json_object_set(o, "calls", p->calls[f->turn]);
	return o;
}

json_t *
hf_report_seams(const struct hf_report *r)
{
	bool seen[HF_FAULT_COUNT][HF_PHASE_COUNT] = { { false } };
	json_t *out = json_array();

	for (unsigned i = 0; i < r->plays->n_play; i++) {
		const struct hf_play *p = &r->plays->play[i];
		const struct hf_play_system *s = &r->conf->system[p->system];
		const struct hf_conv_fault *f = first_break(p->c);

		if (f == NULL || f->turn >= p->n_answered || s->stateless ||
		    s->control || p->blame != HF_BLAME_NOBODY ||
		    seen[f->fault.kind][f->fault.phase])
			continue;
		seen[f->fault.kind][f->fault.phase] = true;
		json_array_append_new(out, seam(r, p, f));
	}
	return out;
}
