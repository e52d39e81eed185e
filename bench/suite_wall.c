/*
 * The fault wall: sixteen ways in which a provider fails, of a public
 * yardstick for failover, re-made from its description, as conversations of
 * one turn.  Each is met by a client that streams and one that does not, with
 * a healthy provider to fall back on; some also with nobody (wall.h judges).
 *
 * It is no suite of the table: that its answers are whole is not all that is
 * asked, and of some there is to be none.  Its size is its clock: milliseconds
 * in each of the yardstick's seconds, 100 by itself.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/resume.h"
#include "bench/suite_make.h"
#include "bench/wall.h"

#define UNIT_MS 100
#define OUTAGE 15    /* calls during which s15 is down, */
#define CALLS 20     /* ... of so many, */
#define CALL_APART 4 /* ... so many of its seconds apart */
#define MAX_CONV (HF_WALL_SCENARIOS * 3 + CALLS)

/* With what is said before it the answer has sixty words. */
static const char prompt[] =
    "trust in a relay is earned on bad days; when the far end stalls, refuses "
    "or falls silent in the middle of a sentence, the caller should notice "
    "nothing but a short pause, what was said stays said, what is missing is "
    "fetched elsewhere, and whoever keeps the books can read later which "
    "voice spoke and which one failed";

enum way { STREAM, PLAIN, ALONE, OPEN };
static const char *const ways[] = { "stream", "plain", "alone", "open" };

/* Is scenario number n met so? */
static bool
is_met(unsigned n, enum way way)
{
	switch (way) {
	case PLAIN: /* what only a stream has, only a stream can lack */
		return n != 9 && n != 10;
	case ALONE:
		return hf_wall_is_met_alone(n);
	case OPEN: /* no [DONE], and no end either */
		return n == 10;
	case STREAM:
		break;
	}
	return true;
}

static void
make_route(
    struct hf_suite *s, const struct hf_conv *c, unsigned scenario, bool alone)
{
	struct hf_route_plan *r = &s->route[s->n_route++];
	const char *spare = scenario == 13 ? "spare" HF_MODEL_REFUSES :
	    scenario == 7		   ? "spare" HF_MODEL_PREFILLS :
					     "spare";

	snprintf(r->name, sizeof(r->name), "%s", c->id);
	r->continuation = "instruction";
	r->n_target = alone ? 1 : 2;
	r->target[0] = (struct hf_target_plan){ 0, "openai", "", false };
	/* One for each, because a gateway may think ill of it afterwards. */
	snprintf(r->target[0].model, sizeof(r->target[0].model), "m-%s",
	    scenario == 14 ? "s15" : c->id);
	r->target[1] = (struct hf_target_plan){ 1, "openai", "",
		scenario == 13 || scenario == 7 };
	snprintf(r->target[1].model, sizeof(r->target[1].model), "%s", spare);
}

/* How the first provider fails in scenario number n (from 0). */
static void
make_fault(struct hf_conv *c, unsigned n, unsigned unit)
{
	static const struct {
		enum hf_fault_kind kind;
		bool once;
		enum hf_cut_phase phase;
		unsigned chunks, delay; /* of its seconds */
	} rows[HF_WALL_SCENARIOS] = {
		{ HF_FAULT_HTTP_429, true, 0, 0, 2 },
		{ HF_FAULT_HTTP_429, false, 0, 0, 0 },
		{ HF_FAULT_HTTP_500, true, 0, 0, 0 },
		{ HF_FAULT_HTTP_503, false, 0, 0, 0 },
		{ HF_FAULT_RESET, true, 0, 0, 0 },
		{ HF_FAULT_SILENCE, false, 0, 0, 0 },
		{ HF_FAULT_LATE, false, 0, 0, 20 },
		{ HF_FAULT_CUT, false, HF_PHASE_CHUNKS, 40, 0 },
		{ HF_FAULT_STALL, false, HF_PHASE_CHUNKS, 20, 0 },
		{ HF_FAULT_BROKEN_EVENT, false, HF_PHASE_CHUNKS, 10, 0 },
		{ HF_FAULT_NO_END, false, HF_PHASE_FINISH, 0, 0 },
		{ HF_FAULT_CONTEXT, false, 0, 0, 0 },
		{ HF_FAULT_POLICY, false, 0, 0, 0 },
		{ HF_FAULT_CUT, false, HF_PHASE_CHUNKS, 40, 0 },
		{ HF_FAULT_HTTP_503, false, 0, 0, 0 },
		{ HF_FAULT_HTTP_503, false, 0, 0, 0 },
	};
	struct hf_conv_fault *f;

	f = hf_conv_add_fault(c, "wall", 0, rows[n].kind);
	f->attempt = rows[n].once ? 1 : 0;
	f->fault.phase = rows[n].phase;
	f->fault.chunks = rows[n].chunks;
	f->fault.delay_ms = rows[n].delay * unit;
	f->fault.retry_after_s = 0;
	if (n == 0) { /* 2 of its seconds */
		f->fault.delay_ms = 0;
		if (unit % 500 == 0)
			f->fault.retry_after_s = 2 * unit / 1000;
		else
			f->fault.retry_after_ms = 2 * unit;
	}
	c->failure = rows[n].kind;
}

static struct hf_conv *
add_conv(struct hf_suite *s, unsigned scenario, const char *how)
{
	struct hf_conv *c = &s->conv[s->n_conv++];

	snprintf(c->id, sizeof(c->id), "s%02u-%s", scenario + 1, how);
	c->fact_type = "text";
	c->fact = hf_xstrdup(c->id);
	c->mark = c->fact;
	hf_conv_ask(c, hf_format("%s: %s.", c->id, prompt),
	    hf_format("I heard: %s: %s.", c->id, prompt));
	c->route = s->n_route;
	hf_conv_label(c, 0, "s%02u", scenario + 1);
	return c;
}

static void
add_scenario(struct hf_suite *s, unsigned n, unsigned unit)
{
	for (enum way way = STREAM; way <= OPEN; way++) {
		struct hf_conv *c;

		if (!is_met(n, way))
			continue;
		c = add_conv(s, n, ways[way]);
		c->plain = way == PLAIN;
		make_fault(c, n, unit);
		if (way == OPEN)
			c->fault->fault.kind = c->failure = HF_FAULT_STALL;
		make_route(s, c, n, way == ALONE);
	}
}

/* Down for a minute, twenty calls, and up again: who calls while it is down
 * meets it down, as often as it is asked. */
static void
add_outage(struct hf_suite *s, unsigned n, unsigned unit)
{
	char how[16];

	for (unsigned i = 0; i < CALLS; i++) {
		struct hf_conv *c;

		snprintf(how, sizeof(how), "call%02u", i + 1);
		c = add_conv(s, n, how);
		c->start_ms = i * CALL_APART * unit;
		if (i < OUTAGE)
			make_fault(c, n, unit);
		make_route(s, c, n, false);
	}
}

struct hf_suite *
hf_suite_wall(uint64_t seed, unsigned size)
{
	unsigned unit = size == 0 ? UNIT_MS : size;
	struct hf_suite *s = hf_suite_new("wall", seed, MAX_CONV);

	s->n_conv = 0;
	s->stream = true;
	s->exact = true;
	s->unit_ms = unit;
	s->backoff_ms = unit;
	s->max_retries = 2;
	s->axis[0] = "scenario";
	s->n_axis = 1;
	s->listener[0] = (struct hf_listener_plan){ "wall", true };
	s->listener[1] = (struct hf_listener_plan){ "spare", false };
	s->n_listener = 2;
	s->route = hf_xcalloc(MAX_CONV, sizeof(*s->route));
	for (unsigned n = 0; n < HF_WALL_SCENARIOS; n++) {
		if (n == 14)
			add_outage(s, n, unit);
		else
			add_scenario(s, n, unit);
	}
	/* The outage's calls come when they are due. */
	s->concurrency = s->n_conv;
	return s;
}
