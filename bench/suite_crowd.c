/*
 * The suite "crowd": all conversations at once, in the same words, and with
 * names of the same length that differ in one letter or two; the first
 * provider fails for all of them on the probe.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/suite_make.h"

#define N_CONV 500
#define N_LETTER 24
#define MAX_CONV (N_LETTER * N_LETTER * N_LETTER)

/* "Marten Lind?o??": a number in letters. */
static char *
make_name(unsigned i)
{
	static const char letters[N_LETTER + 1] = "abcdefghijklmnoprstuvwxy";

	return hf_format("Marten Lind%co%c%cd",
	    letters[i / N_LETTER / N_LETTER % N_LETTER],
	    letters[i / N_LETTER % N_LETTER], letters[i % N_LETTER]);
}

struct hf_suite *
hf_suite_crowd(uint64_t seed, unsigned n)
{
	static const char *const axis[] = { "failure", "dialects" };
	struct hf_suite *s;
	unsigned *name;
	struct hf_rng r;

	if (n > MAX_CONV)
		return NULL;
	s = hf_suite_new("crowd", seed, n == 0 ? N_CONV : n);
	hf_suite_frame(s, axis, hf_countof(axis));
	s->concurrency = s->n_conv;
	hf_rng_init(&r, seed);
	name = hf_permutation(&r, s->n_conv);
	for (unsigned i = 0; i < s->n_conv; i++) {
		struct hf_conv *c = &s->conv[i];

		snprintf(c->id, sizeof(c->id), "w%05u", i + 1);
		c->tmpl = &hf_templates[0];
		c->fact_type = hf_fact_type_name(c->tmpl->type);
		c->fact = make_name(name[i]);
		c->mark = c->fact;
		hf_conv_state(c, c->tmpl, c->fact, "");
		hf_conv_small_talk(c, &hf_fillers[0]);
		hf_conv_small_talk(c, &hf_fillers[1]);
		c->probe = hf_conv_probe(c, c->tmpl, c->fact);
		c->failure = hf_conv_fails(c, c->probe, i);
		c->route = i / 5 % 2;
		hf_conv_label(c, 0, "%s", hf_failure_name(c->failure));
		hf_conv_label(c, 1, "%s", hf_direction(c->route));
	}
	free(name);
	return s;
}
