/*
 * The suite "storm": all conversations lose their provider at the same moment
 * and fail over onto one that admits so many calls in any window.  What comes
 * of it is measured: how many are answered, with how many calls, in which time.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/suite_make.h"

#define N_CONV 100
#define MAX_CONV 1000
#define GRACE_MS 30000 /* of a turn, beyond twice what the quota takes */

const struct hf_knob hf_storm_knobs[HF_STORM_KNOBS] = {
	{ "quota", 15, 1, 10000, "calls that the fallback admits in a window" },
	{ "window-ms", 3000, 100, 3600000, "the window" },
	{ "paced", 1, 0, 1, "whether the gateway is told of the quota" },
	{ "longest", 115, 100, 100000,
	    "if it is told: per cent of what the quota takes by itself" },
};

static void
make_conv(struct hf_suite *s, unsigned i, struct hf_dealer *d, struct hf_rng *r)
{
	unsigned *talk = hf_permutation(r, hf_n_fillers);
	struct hf_conv *c = &s->conv[i];

	snprintf(c->id, sizeof(c->id), "s%04u", i + 1);
	hf_deal_fact(d, c, r);
	hf_conv_state_fact(c, r);
	for (unsigned k = 0; k < i % 3; k++)
		hf_conv_small_talk(c, &hf_fillers[talk[k]]);
	c->probe = hf_conv_probe(c, c->tmpl, c->fact);
	c->failure = HF_FAULT_HTTP_503;
	hf_conv_add_fault(c, "primary", c->probe, c->failure);
	hf_conv_label(c, 0, "%s", c->fact_type);
	hf_conv_label(c, 1, "%u", c->n_messages);
	free(talk);
}

unsigned
hf_storm_least_ms(const struct hf_storm *s, unsigned n)
{
	return n == 0 ? 0 : ((n + s->quota - 1) / s->quota - 1) * s->window_ms;
}

struct hf_suite *
hf_suite_storm(uint64_t seed, unsigned n, const unsigned *knob)
{
	static const char *const axis[] = { "fact", "length" };
	struct hf_suite *s;

	if (n > MAX_CONV)
		return NULL;
	s = hf_suite_new("storm", seed, n == 0 ? N_CONV : n);
	hf_suite_two_targets(s);
	s->exact = true;
	s->alone = true;
	for (unsigned k = 0; k < hf_countof(axis); k++)
		s->axis[k] = axis[k];
	s->n_axis = hf_countof(axis);
	s->storm = (struct hf_storm){
		.quota = knob[0], .window_ms = knob[1], .longest = knob[3]
	};
	s->concurrency = s->n_conv;
	s->deadline_ms = 2 * hf_storm_least_ms(&s->storm, s->n_conv) + GRACE_MS;
	if (knob[2] != 0) {
		s->listener[1].rpm = s->storm.quota;
		s->listener[1].rpm_window_ms = s->storm.window_ms;
	}
	snprintf(s->limit.provider, sizeof(s->limit.provider), "fallback");
	s->limit.turn = -1;
	s->limit.fault = (struct hf_bench_fault){ .kind = HF_FAULT_RATE_LIMIT,
		.n = s->storm.quota,
		.window_ms = s->storm.window_ms };
	hf_suite_fill(s, seed, make_conv);
	return s;
}
