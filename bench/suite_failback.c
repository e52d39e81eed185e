/*
 * The suite "failback": the first provider is away for some turns and comes
 * back.  What was stated, corrected or promised in the meantime it has never
 * heard, and is asked for it.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/rules.h"
#include "bench/suite_make.h"

#define N_CONV 120
#define MAX_CONV 2000 /* facts are dealt once */

enum { STATED, CORRECTED, PROMISED, EVENTS };
static const char *const events[EVENTS] = { "stated", "corrected", "promised" };

static const unsigned absences[] = { 1, 2, 4, 8 };

/* What happens on the first turn of the absence, and the probe for it. */
static void
happen(struct hf_conv *c, unsigned event, unsigned n)
{
	char *text;
	unsigned turn;

	switch (event) {
	case STATED:
		hf_conv_state(c, c->tmpl, c->fact, "");
		break;
	case CORRECTED:
		hf_conv_state(c, c->tmpl, c->fact, "I was wrong. ");
		break;
	default:
		text =
		    hf_format(HF_ASK_TICKET "number %u, %s.", 1 + n, c->fact);
		c->more[c->n_more++] = c->fact;
		c->fact = hf_ticket(hf_str(text));
		c->mark = c->fact;
		turn = hf_conv_say(c, text, NULL);
		c->exact[turn] = hf_format("Your ticket is %s.", c->fact);
		break;
	}
}

static void
ask(struct hf_conv *c, unsigned event)
{
	if (event == PROMISED)
		hf_conv_ask(c, hf_xstrdup(HF_TICKET_PROBE),
		    hf_format("I gave you: %s.", c->fact));
	else
		c->denies[hf_conv_probe(c, c->tmpl, c->fact)] =
		    event == CORRECTED ? c->more[0] : NULL;
}

static void
make_conv(struct hf_suite *s, unsigned i, struct hf_dealer *d, struct hf_rng *r)
{
	unsigned event = i % EVENTS, n = i / EVENTS;
	unsigned away = absences[n % hf_countof(absences)];
	unsigned *talk = hf_permutation(r, hf_n_fillers);
	struct hf_conv *c = &s->conv[i];

	snprintf(c->id, sizeof(c->id), "f%04u", i + 1);
	hf_deal_fact(d, c, r);
	if (event == CORRECTED)
		hf_conv_state(
		    c, c->tmpl, hf_deal_more(d, c, c->tmpl->type, r), "");
	hf_conv_small_talk(c, &hf_fillers[talk[0]]);
	c->probe = c->n_user;
	happen(c, event, i);
	for (unsigned k = 1; k < away; k++)
		hf_conv_small_talk(c, &hf_fillers[talk[k]]);
	for (unsigned k = 0; k < away; k++)
		hf_conv_fails(c, c->probe + k, n + k);
	c->failure = c->fault[0].fault.kind;
	ask(c, event);
	c->route = n / hf_countof(absences) % 2;
	hf_conv_label(c, 0, "%s", events[event]);
	hf_conv_label(c, 1, "%u", away);
	hf_conv_label(c, 2, "%s", hf_direction(c->route));
	free(talk);
}

struct hf_suite *
hf_suite_failback(uint64_t seed, unsigned n)
{
	static const char *const axis[] = { "meanwhile", "turns away",
		"dialects" };
	struct hf_suite *s;

	if (n > MAX_CONV)
		return NULL;
	s = hf_suite_new("failback", seed, n == 0 ? N_CONV : n);
	hf_suite_frame(s, axis, hf_countof(axis));
	hf_suite_fill(s, seed, make_conv);
	return s;
}
