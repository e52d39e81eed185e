/*
 * The suite "bargein": callers who interrupt a long answer, that is, clients
 * that leave in the middle of a stream.  The rest was never heard: the next
 * provider, which is asked to read the answer back, must know it as far as the
 * caller does.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/suite_make.h"

#define N_CONV 60
#define MAX_CONV 2000 /* facts are dealt once */
#define CHUNK_MS 20   /* between words: as fast as speech, five times over */

static void
make_conv(struct hf_suite *s, unsigned i, struct hf_dealer *d, struct hf_rng *r)
{
	struct hf_conv *c = &s->conv[i];
	unsigned long_one, back, size, part = i % 3, n = i / 6;

	snprintf(c->id, sizeof(c->id), "b%04u", i + 1);
	c->full = i / 3 % 2 == 1;
	hf_deal_fact(d, c, r);
	hf_conv_state_fact(c, r);
	long_one = hf_conv_ask_at_length(c, "");
	size = (unsigned)strlen(c->exact[long_one]);
	c->asks[long_one] = NULL;
	c->manner[long_one] = HF_LEAVING;
	c->leave_at[long_one] =
	    size * (part + 1) / 5 + hf_rng_below(r, size / 10);
	back = hf_conv_say(c, hf_xstrdup(HF_ECHO_PROBE), NULL);
	c->reads_back[back] = 1 + long_one;
	c->asks[back] = "Gladly, here it is in full.";
	c->denies[back] = "That is all.";
	hf_conv_probe(c, c->tmpl, c->fact);
	c->probe = back;
	c->failure = hf_conv_fails(c, back, n);
	c->route = n % 2;
	hf_conv_label(c, 0, "heard %u/5", part + 1);
	hf_conv_label(c, 1, "%s", c->full ? "sends all" : "sends what is new");
	hf_conv_label(c, 2, "%s", hf_failure_name(c->failure));
	hf_conv_label(c, 3, "%s", hf_direction(c->route));
}

struct hf_suite *
hf_suite_bargein(uint64_t seed, unsigned n)
{
	static const char *const axis[] = { "part", "client", "failure",
		"dialects" };
	struct hf_suite *s;

	if (n > MAX_CONV)
		return NULL;
	s = hf_suite_new("bargein", seed, n == 0 ? N_CONV : n);
	hf_suite_frame(s, axis, hf_countof(axis));
	s->stream = true;
	s->chunk_ms = CHUNK_MS;
	hf_suite_fill(s, seed, make_conv);
	return s;
}
