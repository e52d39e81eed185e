/*
 * The suite "midstream": one stream of each conversation breaks off, at the
 * first target.  Nine places, six ways, four kinds of next target, and both
 * dialects on both sides: 864 conversations, one for each.  The answer that
 * breaks off holds the fact, or its tool call does; the next turn makes the
 * provider read it back from its history, or asks for the fact once more.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/answer.h"
#include "bench/resume.h"
#include "bench/suite_make.h"

#define N_CONV 864
#define MAX_CONV 8000 /* facts are dealt once */

enum { PHASES = 9, KINDS = 6, WAYS = 4, PAIRS = 4 };

static const enum hf_cut_phase phases[PHASES] = { HF_PHASE_HEADERS,
	HF_PHASE_ROLE, HF_PHASE_FIRST, HF_PHASE_WORD, HF_PHASE_EVENT,
	HF_PHASE_CHAR, HF_PHASE_ARGS, HF_PHASE_CONTENT, HF_PHASE_FINISH };

static const enum hf_fault_kind kinds[KINDS] = { HF_FAULT_CUT,
	HF_FAULT_CUT_RESET, HF_FAULT_STALL, HF_FAULT_GARBLE,
	HF_FAULT_STREAM_ERROR, HF_FAULT_NO_END };

/* What the next target can, and how the gateway is to ask it. */
enum way { PREFILLS, IS_TOLD, REFUSES, HIDDEN };
static const struct {
	const char *name, *model, *continuation;
	bool prefill; /* as configured */
} ways[WAYS] = {
	[PREFILLS] = { "prefill", "model-b" HF_MODEL_PREFILLS, "instruction",
	    true },
	[IS_TOLD] = { "instruction", "model-b", "instruction", false },
	[REFUSES] = { "refused", NULL, "instruction", true },
	[HIDDEN] = { "hidden", "model-b", "hidden", false },
};

static const char *const dialects[] = { "openai", "anthropic" };

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"look_up\","
    "\"description\":\"Look something up.\",\"parameters\":{\"type\":"
    "\"object\",\"properties\":{\"fact\":{\"type\":\"string\"},\"note\":{"
    "\"type\":\"string\"}},\"required\":[\"fact\"]}}}]";

static struct hf_route_plan
make_route(const char *name, enum way way, unsigned pair)
{
	struct hf_route_plan r = { .n_target = 2,
		.continuation = ways[way].continuation };

	snprintf(r.name, sizeof(r.name), "%s", name);
	r.target[0] =
	    (struct hf_target_plan){ 0, dialects[pair / 2], "model-a", false };
	r.target[1] = (struct hf_target_plan){ 1, dialects[pair % 2], "",
		ways[way].prefill };
	if (ways[way].model != NULL)
		snprintf(r.target[1].model, sizeof(r.target[1].model), "%s",
		    ways[way].model);
	else
		snprintf(r.target[1].model, sizeof(r.target[1].model),
		    "model-%s" HF_MODEL_REFUSES, name);
	return r;
}

/* A route for each way and pair of dialects.  Those that refuse come one for
 * each conversation, because a gateway may learn from a refusal; those after
 * the first 864 share theirs. */
static unsigned
choose_route(struct hf_suite *s, unsigned i, enum way way, unsigned pair)
{
	char name[HF_CONV_ID + 8];

	if (way != REFUSES)
		return (unsigned)way * PAIRS + pair;
	if (i >= N_CONV)
		return s->conv[i - N_CONV].route;
	snprintf(name, sizeof(name), "refused-%s", s->conv[i].id);
	s->route[s->n_route] = make_route(name, way, pair);
	return s->n_route++;
}

static void
make_shared_routes(struct hf_suite *s)
{
	char name[HF_CONV_ID];

	for (unsigned i = 0; i < WAYS * PAIRS; i++) {
		unsigned pair = i % PAIRS;

		snprintf(name, sizeof(name), "%s-%c%c", ways[i / PAIRS].name,
		    dialects[pair / 2][0], dialects[pair % 2][0]);
		s->route[i] = make_route(name, (enum way)(i / PAIRS), pair);
	}
	s->n_route = WAYS * PAIRS;
}

/* The turns of a text that breaks off, and where. */
static void
make_text(struct hf_conv *c, struct hf_conv_fault *f, struct hf_rng *r)
{
	unsigned size;

	c->probe = hf_conv_ask_at_length(c, "");
	hf_conv_ask(
	    c, hf_xstrdup(HF_ECHO_PROBE), hf_xstrdup(c->exact[c->probe]));
	size = (unsigned)strlen(c->exact[c->probe]);
	f->turn = c->probe;
	f->fault.at = 5 + hf_rng_below(r, size - 25);
}

/* The turns of a tool call that breaks off; in half of them something is
 * said before it. */
static void
make_call(struct hf_conv *c, struct hf_conv_fault *f, struct hf_rng *r)
{
	static const char says[] = "I will look that up for you, one moment.";
	char *args = hf_answer_arguments(hf_str(c->fact));
	bool said = hf_rng_below(r, 2) == 0;

	c->tools = tools;
	c->probe = hf_conv_ask(c,
	    hf_format("%s%s%s!fetch look_up %s", said ? "!say " : "",
		said ? says : "", said ? "\n" : "", c->tmpl->probe),
	    hf_xstrdup(said ? says : ""));
	c->calls[c->probe] =
	    json_pack("[{s:s,s:s}]", "name", "look_up", "arguments", args);
	c->tool[hf_conv_ask(c,
	    hf_format("%s is on shelf %u", c->fact, 10 + hf_rng_below(r, 90)),
	    NULL)] = true;
	c->exact[c->n_user - 1] =
	    hf_format("Tool results: look_up = %s.", c->user[c->n_user - 1]);
	hf_conv_ask(c, hf_xstrdup(c->tmpl->probe),
	    hf_format("You told me: %s.", c->fact));
	f->turn = c->probe;
	f->fault.at = 1 + hf_rng_below(r, (unsigned)strlen(args) - 1);
	free(args);
}

static void
make_conv(struct hf_suite *s, unsigned i, struct hf_dealer *d, struct hf_rng *r)
{
	/* The first 54 have all places and ways to fail, each with some kind
	 * of next target; all 864 have each combination once. */
	unsigned phase = i % PHASES, kind = i / PHASES % KINDS;
	unsigned way = (i / (PHASES * KINDS) + phase + kind) % WAYS;
	unsigned pair =
	    (i / (PHASES * KINDS * WAYS) + phase + kind / 2) % PAIRS;
	struct hf_conv *c = &s->conv[i];
	struct hf_conv_fault *f;

	snprintf(c->id, sizeof(c->id), "m%04u", i + 1);
	hf_deal_fact(d, c, r);
	hf_conv_state_fact(c, r);
	hf_conv_small_talk(c, &hf_fillers[hf_rng_below(r, hf_n_fillers)]);
	f = hf_conv_add_fault(c, "primary", 0, kinds[kind]);
	f->fault.phase = phases[phase];
	c->failure = kinds[kind];
	if (phases[phase] == HF_PHASE_ARGS)
		make_call(c, f, r);
	else
		make_text(c, f, r);
	c->route = choose_route(s, i, (enum way)way, pair);
	hf_conv_label(c, 0, "%s", hf_phase_name(phases[phase]));
	hf_conv_label(c, 1, "%s", hf_fault_name(kinds[kind]));
	hf_conv_label(c, 2, "%s", ways[way].name);
	hf_conv_label(c, 3, "%s to %s", dialects[pair / 2], dialects[pair % 2]);
}

struct hf_suite *
hf_suite_midstream(uint64_t seed, unsigned n)
{
	static const char *const axis[] = { "place", "failure", "next target",
		"dialects" };
	struct hf_suite *s;

	if (n > MAX_CONV)
		return NULL;
	s = hf_suite_new("midstream", seed, n == 0 ? N_CONV : n);
	s->stream = true;
	s->exact = true;
	s->backoff_ms = 200;
	memcpy(s->axis, axis, sizeof(axis));
	s->n_axis = hf_countof(axis);
	s->listener[0] = (struct hf_listener_plan){ "primary", true };
	s->listener[1] = (struct hf_listener_plan){ "fallback", false };
	s->n_listener = 2;
	s->route = hf_xcalloc(WAYS * PAIRS + s->n_conv, sizeof(*s->route));
	make_shared_routes(s);
	hf_suite_fill(s, seed, make_conv);
	return s;
}
