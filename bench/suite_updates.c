/*
 * The suite "updates": what the caller said first does not hold any more.  It
 * is corrected, corrected twice, taken back, or taken back and stated anew;
 * the first provider fails when that is said, when it is asked for, on both
 * turns, or in between, and is back for the others.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/rules.h"
#include "bench/suite_make.h"

#define N_CONV 160
#define MAX_CONV 2000 /* facts are dealt once */

enum { CORRECTED, TWICE, RETRACTED, RESTATED, UPDATES };
static const char *const updates[UPDATES] = { "corrected", "corrected twice",
	"taken back", "stated anew" };

enum { AT_UPDATE, AT_PROBE, AT_BOTH, BETWEEN, TIMES };
static const char *const times[TIMES] = { "at the update", "at the probe",
	"at both", "between them" };

static unsigned
retract(struct hf_conv *c)
{
	return hf_conv_say(
	    c, hf_format(HF_RETRACT "%s", c->tmpl->probe), HF_ANSWER_FORGOTTEN);
}

/* The turns that change what holds; the last of them, and what holds then
 * (NULL: nothing). */
static unsigned
update(struct hf_conv *c, unsigned how, const struct hf_filler *talk,
    const char **holds)
{
	unsigned turn;

	*holds = how == RETRACTED ? NULL : c->more[how == TWICE];
	if (how == RETRACTED || how == RESTATED)
		turn = retract(c);
	else
		turn = hf_conv_state(c, c->tmpl, c->more[0], "No, wait. ");
	if (how == RETRACTED || how == CORRECTED)
		return turn;
	hf_conv_small_talk(c, talk);
	if (how == TWICE)
		return hf_conv_state(
		    c, c->tmpl, c->more[1], "Sorry, I got that wrong again. ");
	return hf_conv_state(c, c->tmpl, c->more[0], "Now I know. ");
}

static void
make_conv(struct hf_suite *s, unsigned i, struct hf_dealer *d, struct hf_rng *r)
{
	unsigned how = i % UPDATES, when = i / UPDATES % TIMES, changed, asked;
	unsigned *talk = hf_permutation(r, hf_n_fillers), n = i / 16;
	struct hf_conv *c = &s->conv[i];
	const char *holds;

	snprintf(c->id, sizeof(c->id), "u%04u", i + 1);
	hf_deal_fact(d, c, r);
	for (unsigned k = 0; k < 2; k++)
		hf_deal_more(d, c, c->tmpl->type, r);
	hf_conv_state_fact(c, r);
	hf_conv_small_talk(c, &hf_fillers[talk[0]]);
	changed = update(c, how, &hf_fillers[talk[1]], &holds);
	hf_conv_small_talk(c, &hf_fillers[talk[2]]);
	asked = hf_conv_ask(c, hf_xstrdup(c->tmpl->probe),
	    holds == NULL ? hf_xstrdup(HF_ANSWER_RETRACTED) :
			    hf_format("You told me: %s.", holds));
	c->asks[asked] = holds == NULL ? HF_ANSWER_RETRACTED : holds;
	c->denies[asked] = c->fact;
	c->probe = when == AT_UPDATE ? changed :
	    when == BETWEEN	     ? changed + 1 :
				       asked;
	c->failure = hf_conv_fails(c, c->probe, n);
	if (when == AT_BOTH)
		hf_conv_fails(c, changed, n + 1);
	c->route = n % 2;
	hf_conv_label(c, 0, "%s", updates[how]);
	hf_conv_label(c, 1, "%s", times[when]);
	hf_conv_label(c, 2, "%s", hf_failure_name(c->failure));
	hf_conv_label(c, 3, "%s", hf_direction(c->route));
	free(talk);
}

struct hf_suite *
hf_suite_updates(uint64_t seed, unsigned n)
{
	static const char *const axis[] = { "update", "failure comes",
		"failure", "dialects" };
	struct hf_suite *s;

	if (n > MAX_CONV)
		return NULL;
	s = hf_suite_new("updates", seed, n == 0 ? N_CONV : n);
	hf_suite_frame(s, axis, hf_countof(axis));
	hf_suite_fill(s, seed, make_conv);
	return s;
}
