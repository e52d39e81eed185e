/*
 * The suite "retries": clients that ask again.  With an Idempotency-Key or
 * marked as SDKs do, after the answer or at the same time; and clients that
 * ask before their caller has finished speaking, and drop what they asked.
 * Whatever was asked twice is one turn, and what was dropped was never said.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/suite_make.h"

#define N_CONV 120
#define MAX_CONV 2000 /* facts are dealt once */

static const struct {
	const char *name;
	enum hf_manner manner;
	bool keyed, full;
} kinds[] = {
	{ "again, with a key", HF_AGAIN, true, false },
	{ "again, marked", HF_AGAIN, false, false },
	{ "twice at once", HF_TOGETHER, true, false },
	{ "growing text", HF_GROWING, false, true },
};

static void
make_conv(struct hf_suite *s, unsigned i, struct hf_dealer *d, struct hf_rng *r)
{
	unsigned kind = i % hf_countof(kinds), n = i / hf_countof(kinds);
	unsigned *talk = hf_permutation(r, hf_n_fillers), asked;
	struct hf_conv *c = &s->conv[i];

	snprintf(c->id, sizeof(c->id), "t%04u", i + 1);
	c->keyed = kinds[kind].keyed;
	/* A first request that grew cannot be told from one that goes on with
	 * the one before, unless the client says which it is. */
	c->full = c->tells = kinds[kind].full;
	hf_deal_fact(d, c, r);
	hf_conv_state(c, c->tmpl, c->fact, "");
	hf_conv_small_talk(c, &hf_fillers[talk[0]]);
	c->probe = hf_conv_probe(c, c->tmpl, c->fact);
	for (unsigned k = 0; k < c->n_user; k++)
		c->manner[k] = kinds[kind].manner;
	/* What has become of the history is asked for once. */
	asked = hf_conv_ask(c, hf_xstrdup(c->tmpl->oblique),
	    hf_format("You told me: %s.", c->fact));
	c->failure = hf_conv_fails(c, c->probe, n);
	hf_conv_fails(c, asked, n + 1);
	c->route = n % 2;
	hf_conv_label(c, 0, "%s", kinds[kind].name);
	hf_conv_label(c, 1, "%s", hf_failure_name(c->failure));
	hf_conv_label(c, 2, "%s", hf_direction(c->route));
	free(talk);
}

struct hf_suite *
hf_suite_retries(uint64_t seed, unsigned n)
{
	static const char *const axis[] = { "asked", "failure", "dialects" };
	struct hf_suite *s;

	if (n > MAX_CONV)
		return NULL;
	s = hf_suite_new("retries", seed, n == 0 ? N_CONV : n);
	hf_suite_frame(s, axis, hf_countof(axis));
	hf_suite_fill(s, seed, make_conv);
	return s;
}
