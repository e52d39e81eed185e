/*
 * The suite "rolling": four targets that die one after the other, in the
 * middle of their streams and before the first token, in one turn and over
 * turns, and come back.  Each turn asks for the fact, at length.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/resume.h"
#include "bench/suite_make.h"

#define N_CONV 144
#define MAX_CONV 4000 /* facts are dealt once */
#define N_TARGET 4
#define MAX_STEPS 6

/*
 * A letter for each target and a word for each turn: '-' it works, 'b' it
 * fails before its first token, 'm' in the middle of its stream.  Who fails in
 * the middle does so once in a turn, so that the gateway may come back to it.
 */
static const struct {
	const char *name, *step[MAX_STEPS];
} patterns[] = {
	{ "three in one turn", { "mmm-", "----" } },
	{ "before and within", { "bmb-", "m---", "mbm-", "----" } },
	{ "one more each turn", { "m---", "mm--", "mmm-", "----" } },
	{ "before the first token", { "bbb-", "bb--", "----" } },
	{ "all four, then back", { "mmmm", "----" } },
	{ "on and off", { "m---", "b---", "-m--", "bmm-", "----" } },
};

enum { PATTERNS = hf_countof(patterns), WAYS = 4, ARRANGEMENTS = 2 };

static const struct {
	const char *name, *continuation;
	bool prefill[N_TARGET];
} ways[WAYS] = {
	{ "prefill", "instruction", { true, true, true, true } },
	{ "instruction", "instruction", { false } },
	{ "mixed", "instruction", { false, true, false, true } },
	{ "hidden", "hidden", { false } },
};

static const char *const arrangements[ARRANGEMENTS][N_TARGET] = {
	{ "openai", "anthropic", "openai", "anthropic" },
	{ "anthropic", "openai", "anthropic", "openai" },
};

static const char *const names[N_TARGET] = { "primary", "second", "third",
	"fourth" };

static const enum hf_fault_kind before[] = { HF_FAULT_HTTP_502, HF_FAULT_CLOSE,
	HF_FAULT_SILENCE, HF_FAULT_HTTP_429, HF_FAULT_RESET, HF_FAULT_HEADERS,
	HF_FAULT_HTTP_529, HF_FAULT_GARBAGE, HF_FAULT_HTTP_503 };

static const enum hf_fault_kind within[] = { HF_FAULT_CUT, HF_FAULT_STALL,
	HF_FAULT_CUT_RESET, HF_FAULT_GARBLE, HF_FAULT_STREAM_ERROR,
	HF_FAULT_NO_END };

static const enum hf_cut_phase places[] = { HF_PHASE_WORD, HF_PHASE_EVENT,
	HF_PHASE_CHAR, HF_PHASE_FIRST, HF_PHASE_WORD };

/* What distinguishes the turns. */
static const char *const again[MAX_STEPS] = { "", "Once more. ",
	"Sorry, I missed that. ", "And again. ", "One last time. ",
	"The very last time. " };

static void
make_routes(struct hf_suite *s)
{
	s->route = hf_xcalloc(WAYS * ARRANGEMENTS, sizeof(*s->route));
	s->n_route = WAYS * ARRANGEMENTS;
	for (unsigned i = 0; i < s->n_route; i++) {
		struct hf_route_plan *r = &s->route[i];
		unsigned way = i % WAYS, order = i / WAYS;

		snprintf(r->name, sizeof(r->name), "%s-%c", ways[way].name,
		    arrangements[order][0][0]);
		r->continuation = ways[way].continuation;
		r->n_target = N_TARGET;
		for (unsigned k = 0; k < N_TARGET; k++) {
			bool can = ways[way].prefill[k];

			r->target[k] = (struct hf_target_plan){ k,
				arrangements[order][k], "", can };
			snprintf(r->target[k].model, sizeof(r->target[k].model),
			    "model-%c%s", (int)('a' + k),
			    can ? HF_MODEL_PREFILLS : "");
		}
	}
}

static void
make_failures(
    struct hf_conv *c, unsigned turn, const char *step, struct hf_rng *r)
{
	unsigned size = (unsigned)strlen(c->exact[turn]);

	for (unsigned k = 0; k < N_TARGET; k++) {
		struct hf_conv_fault *f;

		if (step[k] == '-')
			continue;
		if (step[k] == 'b') {
			hf_conv_add_fault(c, names[k], turn,
			    before[hf_rng_below(r, hf_countof(before))]);
			continue;
		}
		f = hf_conv_add_fault(c, names[k], turn,
		    within[hf_rng_below(r, hf_countof(within))]);
		f->attempt = 1;
		f->fault.phase = places[hf_rng_below(r, hf_countof(places))];
		/* A quarter of the text each, so that some is left. */
		f->fault.at = 5 + hf_rng_below(r, size / 4);
	}
}

static void
make_conv(struct hf_suite *s, unsigned i, struct hf_dealer *d, struct hf_rng *r)
{
	unsigned pattern = i % PATTERNS, way = (i / PATTERNS + pattern) % WAYS;
	unsigned order = (i / (PATTERNS * WAYS) + i) % ARRANGEMENTS;
	struct hf_conv *c = &s->conv[i];

	snprintf(c->id, sizeof(c->id), "r%04u", i + 1);
	hf_deal_fact(d, c, r);
	hf_conv_state_fact(c, r);
	for (unsigned k = 0; k < MAX_STEPS; k++) {
		const char *step = patterns[pattern].step[k];
		unsigned turn;

		if (step == NULL)
			break;
		if (k == 1)
			hf_conv_small_talk(
			    c, &hf_fillers[hf_rng_below(r, hf_n_fillers)]);
		turn = hf_conv_ask_at_length(c, again[k]);
		make_failures(c, turn, step, r);
		if (k == 0)
			c->probe = turn;
	}
	hf_conv_ask(
	    c, hf_xstrdup(HF_ECHO_PROBE), hf_xstrdup(c->exact[c->n_user - 1]));
	c->failure = c->fault[0].fault.kind;
	c->route = order * WAYS + way;
	hf_conv_label(c, 0, "%s", patterns[pattern].name);
	hf_conv_label(c, 1, "%s", ways[way].name);
	hf_conv_label(c, 2, "%s first", arrangements[order][0]);
}

struct hf_suite *
hf_suite_rolling(uint64_t seed, unsigned n)
{
	static const char *const axis[] = { "pattern", "next targets",
		"dialects" };
	struct hf_suite *s;

	if (n > MAX_CONV)
		return NULL;
	s = hf_suite_new("rolling", seed, n == 0 ? N_CONV : n);
	s->stream = true;
	s->exact = true;
	s->backoff_ms = 200;
	memcpy(s->axis, axis, sizeof(axis));
	s->n_axis = hf_countof(axis);
	for (unsigned k = 0; k < N_TARGET; k++)
		s->listener[k] = (struct hf_listener_plan){ names[k], true };
	s->n_listener = N_TARGET;
	make_routes(s);
	hf_suite_fill(s, seed, make_conv);
	return s;
}
