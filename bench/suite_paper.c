/*
 * The suite "paper": the shape of the conversation set in the failover paper
 * (150 conversations, 44 of 7, 58 of 9 and 48 of 11 messages, five kinds of
 * facts with 30 each, the probe is the last message and the first target
 * fails on it), in our own words.  Three kinds of failures, 50 each.
 */
#include <config.h>

#include "bench/suite_make.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/answer.h"

#define N_CONV 150
#define PER_TYPE (N_CONV / HF_FACT_TYPES)
#define N_DAYS 19 /* 10 to 28: no day is part of another */
#define N_COMBOS (HF_N_QUALITIES * HF_N_THINGS)

/* The facts of one type, each used once: 'a' and 'b' are permutations. */
static char *
make_fact(enum hf_fact_type type, unsigned a, unsigned b, struct hf_rng *r)
{
	unsigned digits, digit;
	int first, second;

	switch (type) {
	case HF_FACT_NAME:
		return hf_format("%s %s", hf_first_names[a], hf_last_names[b]);
	case HF_FACT_PREFERENCE:
		return hf_format("%s %s", hf_liked_qualities[a / HF_N_THINGS],
		    hf_liked_things[a % HF_N_THINGS]);
	case HF_FACT_DATE:
		return hf_format(
		    "%u %s 2027", 10 + a % N_DAYS, hf_months[a / N_DAYS]);
	case HF_FACT_NUMBER:
		/* Unique by its first two digits.  The order in which the
		 * generator is asked is part of the suite. */
		digit = 1 + hf_rng_below(r, 9);
		digits = hf_rng_below(r, 1000);
		second = (int)('A' + hf_rng_below(r, 26));
		first = (int)('A' + hf_rng_below(r, 26));
		return hf_format(
		    "%c%c-%02u%03u-%u", first, second, 10 + a, digits, digit);
	case HF_FACT_CONSTRAINT:
		return hf_format("%s %s", hf_barred_qualities[a / HF_N_THINGS],
		    hf_barred_things[a % HF_N_THINGS]);
	case HF_FACT_TYPES:
		break;
	}
	HF_CHECK(!"fact type");
	return NULL;
}

static unsigned
fact_space(enum hf_fact_type type)
{
	switch (type) {
	case HF_FACT_PREFERENCE:
	case HF_FACT_CONSTRAINT:
		return N_COMBOS;
	case HF_FACT_DATE:
		return N_DAYS * 12;
	case HF_FACT_NUMBER:
		return 90;
	case HF_FACT_NAME:
	case HF_FACT_TYPES:
		break;
	}
	return HF_N_NAMES;
}

static void
make_turns(struct hf_conv *c, struct hf_rng *r)
{
	unsigned *fill = hf_permutation(r, hf_n_fillers);

	c->user[0] = hf_make_statement(c->tmpl, c->fact, r);
	c->assistant[0] = hf_answer_ack(hf_str(c->user[0]));
	for (unsigned i = 1; i + 1 < c->n_user; i++) {
		c->user[i] = hf_xstrdup(hf_fillers[fill[i]].question);
		c->assistant[i] = hf_fillers[fill[i]].answer;
	}
	c->user[c->n_user - 1] = hf_xstrdup(c->tmpl->probe);
	free(fill);
}

struct hf_suite *
hf_suite_paper(uint64_t seed, unsigned n)
{
	static const enum hf_fault_kind failures[] = { HF_FAULT_SILENCE,
		HF_FAULT_HTTP_502, HF_FAULT_HTTP_429 };
	struct hf_suite *s;
	struct hf_rng r;
	unsigned *type, *size, *failure;

	if (n != 0 && n != N_CONV)
		return NULL; /* its counts are the paper's */
	s = hf_suite_new("paper", seed, N_CONV);
	hf_suite_paper_frame(s);
	hf_rng_init(&r, seed);
	type = hf_permutation(&r, N_CONV);
	size = hf_permutation(&r, N_CONV);
	failure = hf_permutation(&r, N_CONV);
	for (unsigned t = 0; t < HF_FACT_TYPES; t++) {
		unsigned space = fact_space((enum hf_fact_type)t);
		unsigned *a = hf_permutation(&r, space);
		unsigned *b = hf_permutation(&r, space);

		for (unsigned k = 0; k < PER_TYPE; k++) {
			unsigned i = t * PER_TYPE + k;
			struct hf_conv *c = &s->conv[type[i]];

			c->tmpl = hf_pick_template((enum hf_fact_type)t, &r);
			c->fact_type = hf_fact_type_name(c->tmpl->type);
			c->fact =
			    make_fact((enum hf_fact_type)t, a[k], b[k], &r);
			c->mark = c->fact;
		}
		free(a);
		free(b);
	}
	for (unsigned i = 0; i < N_CONV; i++) {
		struct hf_conv *c = &s->conv[i];

		snprintf(c->id, sizeof(c->id), "p%03u", i + 1);
		c->n_messages = size[i] < 44 ? 7 : size[i] < 44 + 58 ? 9 : 11;
		c->n_user = (c->n_messages + 1) / 2;
		make_turns(c, &r);
		hf_conv_fails_last(
		    c, failures[failure[i] % hf_countof(failures)]);
	}
	free(type);
	free(size);
	free(failure);
	return s;
}
