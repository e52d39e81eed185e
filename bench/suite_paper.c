/*
 * The suite "paper": the shape of the conversation set in the failover paper
 * (150 conversations, 44 of 7, 58 of 9 and 48 of 11 messages, five kinds of
 * facts with 30 each, the probe is the last message and the first target
 * fails on it), in our own words.  Three kinds of failures, 50 each.
 */
#include <config.h>

#include "bench/suite.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/answer.h"
#include "bench/rng.h"

#define N_CONV 150
#define PER_TYPE (N_CONV / HF_FACT_TYPES)
#define N_DAYS 19 /* 10 to 28: no day is part of another */
#define N_COMBOS (HF_N_QUALITIES * HF_N_THINGS)

/* A shuffled 0..n-1. */
static unsigned *
permutation(struct hf_rng *r, unsigned n)
{
	unsigned *v = hf_xcalloc(n, sizeof(*v));

	for (unsigned i = 0; i < n; i++)
		v[i] = i;
	hf_rng_shuffle(r, v, n);
	return v;
}

static char *HF_PRINTF(1, 2) format(const char *fmt, ...)
{
	va_list ap;
	char *text = NULL;

	va_start(ap, fmt);
	HF_CHECK(vasprintf(&text, fmt, ap) >= 0);
	va_end(ap);
	return text;
}

/* The facts of one type, each used once: 'a' and 'b' are permutations. */
static char *
make_fact(enum hf_fact_type type, unsigned a, unsigned b, struct hf_rng *r)
{
	switch (type) {
	case HF_FACT_NAME:
		return format("%s %s", hf_first_names[a], hf_last_names[b]);
	case HF_FACT_PREFERENCE:
		return format("%s %s", hf_liked_qualities[a / HF_N_THINGS],
		    hf_liked_things[a % HF_N_THINGS]);
	case HF_FACT_DATE:
		return format(
		    "%u %s 2027", 10 + a % N_DAYS, hf_months[a / N_DAYS]);
	case HF_FACT_NUMBER:
		/* Unique by its first two digits. */
		return format("%c%c-%02u%03u-%u",
		    (int)('A' + hf_rng_below(r, 26)),
		    (int)('A' + hf_rng_below(r, 26)), 10 + a,
		    hf_rng_below(r, 1000), 1 + hf_rng_below(r, 9));
	case HF_FACT_CONSTRAINT:
		return format("%s %s", hf_barred_qualities[a / HF_N_THINGS],
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

static const struct hf_template *
pick_template(enum hf_fact_type type, struct hf_rng *r)
{
	unsigned first = 0, n = 0;

	for (unsigned i = 0; i < hf_n_templates; i++) {
		if (hf_templates[i].type != type)
			continue;
		if (n++ == 0)
			first = i;
	}
	return &hf_templates[first + hf_rng_below(r, n)];
}

static void
make_turns(struct hf_conv *c, struct hf_rng *r)
{
	unsigned *fill = permutation(r, hf_n_fillers);

	c->user[0] =
	    format("%s%s%s%s", hf_openers[hf_rng_below(r, hf_n_openers)],
		c->tmpl->before, c->fact, c->tmpl->after);
	c->assistant[0] = hf_answer_ack(hf_str(c->user[0]));
	for (unsigned i = 1; i + 1 < c->n_user; i++) {
		c->user[i] = hf_xstrdup(hf_fillers[fill[i]].question);
		c->assistant[i] = hf_fillers[fill[i]].answer;
	}
	c->user[c->n_user - 1] = hf_xstrdup(c->tmpl->probe);
	free(fill);
}

struct hf_suite *
hf_suite_paper(uint64_t seed)
{
	static const enum hf_fault_kind failures[] = { HF_FAULT_SILENCE,
		HF_FAULT_HTTP_502, HF_FAULT_HTTP_429 };
	struct hf_suite *s = hf_xcalloc(1, sizeof(*s));
	struct hf_rng r;
	unsigned *type, *size, *failure;

	s->name = "paper";
	s->seed = seed;
	s->n_conv = N_CONV;
	s->conv = hf_xcalloc(N_CONV, sizeof(*s->conv));
	hf_rng_init(&r, seed);
	type = permutation(&r, N_CONV);
	size = permutation(&r, N_CONV);
	failure = permutation(&r, N_CONV);
	for (unsigned t = 0; t < HF_FACT_TYPES; t++) {
		unsigned space = fact_space((enum hf_fact_type)t);
		unsigned *a = permutation(&r, space);
		unsigned *b = permutation(&r, space);

		for (unsigned k = 0; k < PER_TYPE; k++) {
			unsigned i = t * PER_TYPE + k;
			struct hf_conv *c = &s->conv[type[i]];

			c->tmpl = pick_template((enum hf_fact_type)t, &r);
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
		c->failure = failures[failure[i] % hf_countof(failures)];
		make_turns(c, &r);
	}
	free(type);
	free(size);
	free(failure);
	return s;
}
