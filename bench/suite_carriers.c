/*
 * The suite "carriers": the fact was not said by the caller.  It stands in the
 * system message, was the result of a tool, or was said by the assistant, and
 * the first provider fails when it is said, when it is asked for, or both.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/rules.h"
#include "bench/suite_make.h"

#define N_CONV 120
#define MAX_CONV 2000 /* facts are dealt once */

enum { SYSTEM, TOOL, ASSISTANT, CARRIERS };
static const char *const carriers[CARRIERS] = { "system message",
	"tool's result", "assistant" };

enum { AT_PROBE, AT_FACT, AT_BOTH, TIMES };
static const char *const times[TIMES] = { "at the probe", "at the fact",
	"at both" };

/* Each: the turns up to the fact, and the probe; the turn with the fact. */

static unsigned
in_system(struct hf_conv *c, unsigned n)
{
	(void)n;
	c->system =
	    hf_format("%s%s%s", c->tmpl->before, c->fact, c->tmpl->after);
	return 0;
}

/* The assistant's number is made of what it is asked; that is the fact. */
static unsigned
by_assistant(struct hf_conv *c, unsigned n)
{
	char *text = hf_format(HF_ASK_TICKET "number %u, %s.", 1 + n, c->fact);
	unsigned turn = hf_conv_say(c, text, NULL);

	c->more[c->n_more++] = c->fact;
	c->fact = hf_ticket(hf_str(text));
	c->exact[turn] = hf_format("Your ticket is %s.", c->fact);
	return turn;
}

static unsigned
ask(struct hf_conv *c, unsigned carrier)
{
	if (carrier == SYSTEM)
		return hf_conv_probe(c, c->tmpl, c->fact);
	if (carrier == TOOL)
		return hf_conv_ask(c, hf_xstrdup(HF_RESULT_PROBE),
		    hf_format("It said: there is %s in it.", c->fact));
	return hf_conv_ask(c, hf_xstrdup(HF_TICKET_PROBE),
	    hf_format("I gave you: %s.", c->fact));
}

static void
make_conv(struct hf_suite *s, unsigned i, struct hf_dealer *d, struct hf_rng *r)
{
	static unsigned (*const say[CARRIERS])(struct hf_conv *,
	    unsigned) = { in_system, hf_conv_look_up, by_assistant };
	unsigned carrier = i % CARRIERS, when = i / CARRIERS % TIMES, said;
	unsigned *talk = hf_permutation(r, hf_n_fillers);
	unsigned n = i / (CARRIERS * TIMES), asked;
	struct hf_conv *c = &s->conv[i];

	snprintf(c->id, sizeof(c->id), "c%04u", i + 1);
	hf_deal_fact(d, c, r);
	hf_conv_small_talk(c, &hf_fillers[talk[0]]);
	said = say[carrier](c, i);
	c->mark = c->fact;
	hf_conv_small_talk(c, &hf_fillers[talk[1]]);
	hf_conv_small_talk(c, &hf_fillers[talk[2]]);
	asked = ask(c, carrier);
	c->asks[asked] = c->fact;
	c->probe = when == AT_FACT ? said : asked;
	c->failure = hf_conv_fails(c, c->probe, n);
	if (when == AT_BOTH)
		hf_conv_fails(c, said, n + 1);
	c->route = n % 2;
	hf_conv_label(c, 0, "%s", carriers[carrier]);
	hf_conv_label(c, 1, "%s", times[when]);
	hf_conv_label(c, 2, "%s", hf_failure_name(c->failure));
	hf_conv_label(c, 3, "%s", hf_direction(c->route));
	free(talk);
}

struct hf_suite *
hf_suite_carriers(uint64_t seed, unsigned n)
{
	static const char *const axis[] = { "carrier", "failure comes",
		"failure", "dialects" };
	struct hf_suite *s;

	if (n > MAX_CONV)
		return NULL;
	s = hf_suite_new("carriers", seed, n == 0 ? N_CONV : n);
	hf_suite_frame(s, axis, hf_countof(axis));
	hf_suite_fill(s, seed, make_conv);
	return s;
}
