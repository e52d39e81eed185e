/*
 * What the makers of suites share.
 */
#include <config.h>

#include "bench/suite_make.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/answer.h"

struct hf_suite *
hf_suite_new(const char *name, uint64_t seed, unsigned n)
{
	struct hf_suite *s = hf_xcalloc(1, sizeof(*s));

	s->name = name;
	s->seed = seed;
	s->n_conv = n;
	s->conv = hf_xcalloc(n, sizeof(*s->conv));
	return s;
}

void
hf_suite_two_targets(struct hf_suite *s)
{
	static const struct hf_target_plan a = { 0, "openai", "model-a",
		false };
	static const struct hf_target_plan b = { 1, "anthropic", "model-b",
		false };

	s->listener[0] = (struct hf_listener_plan){ "primary", true };
	s->listener[1] = (struct hf_listener_plan){ "fallback", false };
	s->n_listener = 2;
	s->route = hf_xcalloc(1, sizeof(*s->route));
	s->n_route = 1;
	s->route->target[0] = a;
	s->route->target[1] = b;
	s->route->n_target = 2;
}

void
hf_suite_paper_frame(struct hf_suite *s)
{
	static const char *const axis[] = { "length", "fact", "failure" };

	hf_suite_two_targets(s);
	memcpy(s->axis, axis, sizeof(axis));
	s->n_axis = hf_countof(axis);
}

void
hf_suite_frame(struct hf_suite *s, const char *const *axis, unsigned n_axis)
{
	hf_suite_two_targets(s);
	s->exact = true;
	s->backoff_ms = 200;
	s->route = reallocarray(s->route, 2, sizeof(*s->route));
	HF_CHECK(s->route != NULL);
	s->route[1] = s->route[0];
	s->n_route = 2;
	s->route[1].target[0].dialect = s->route[0].target[1].dialect;
	s->route[1].target[1].dialect = s->route[0].target[0].dialect;
	snprintf(s->route[0].name, sizeof(s->route[0].name), "oa");
	snprintf(s->route[1].name, sizeof(s->route[1].name), "ao");
	for (unsigned i = 0; i < n_axis; i++)
		s->axis[i] = axis[i];
	s->n_axis = n_axis;
}

const char *
hf_direction(unsigned route)
{
	return route == 0 ? "openai to anthropic" : "anthropic to openai";
}

enum hf_fault_kind
hf_conv_fails(struct hf_conv *c, unsigned turn, unsigned number)
{
	static const enum hf_fault_kind kinds[] = { HF_FAULT_HTTP_502,
		HF_FAULT_SILENCE, HF_FAULT_RESET, HF_FAULT_HTTP_429,
		HF_FAULT_STREAM_ERROR };
	struct hf_conv_fault *f = hf_conv_add_fault(
	    c, "primary", turn, kinds[number % hf_countof(kinds)]);

	/* In its stream, before anything was said. */
	if (f->fault.kind == HF_FAULT_STREAM_ERROR)
		f->fault.phase = HF_PHASE_ROLE;
	return f->fault.kind;
}

void
hf_conv_fails_last(struct hf_conv *c, enum hf_fault_kind kind)
{
	c->probe = c->n_user - 1;
	c->asks[c->probe] = c->fact;
	c->failure = kind;
	hf_conv_add_fault(c, "primary", c->probe, kind);
	hf_conv_label(c, 0, "%u", c->n_messages);
	hf_conv_label(c, 1, "%s", c->fact_type);
	hf_conv_label(c, 2, "%s", hf_failure_name(kind));
}

void
hf_conv_label(struct hf_conv *c, unsigned axis, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->label[axis], sizeof(c->label[axis]), fmt, ap);
	va_end(ap);
}

unsigned *
hf_permutation(struct hf_rng *r, unsigned n)
{
	unsigned *v = hf_xcalloc(n, sizeof(*v));

	for (unsigned i = 0; i < n; i++)
		v[i] = i;
	hf_rng_shuffle(r, v, n);
	return v;
}

const struct hf_template *
hf_pick_template(enum hf_fact_type type, struct hf_rng *r)
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

char *
hf_make_statement(
    const struct hf_template *t, const char *fact, struct hf_rng *r)
{
	return hf_format("%s%s%s%s", hf_openers[hf_rng_below(r, hf_n_openers)],
	    t->before, fact, t->after);
}

/* --- facts ---------------------------------------------------------------- */

#define N_DAYS 19 /* 10 to 28: no day is part of another */
#define N_COMBOS (HF_N_QUALITIES * HF_N_THINGS)
#define N_NUMBERS 9000

static const unsigned space[HF_FACT_TYPES] = {
	[HF_FACT_NAME] = HF_N_NAMES * HF_N_NAMES,
	[HF_FACT_PREFERENCE] = N_COMBOS,
	[HF_FACT_DATE] = N_DAYS * 12,
	[HF_FACT_NUMBER] = N_NUMBERS,
	[HF_FACT_CONSTRAINT] = N_COMBOS,
};

void
hf_dealer_init(struct hf_dealer *d, struct hf_rng *r)
{
	for (unsigned t = 0; t < HF_FACT_TYPES; t++) {
		d->order[t] = hf_permutation(r, space[t]);
		d->dealt[t] = 0;
	}
	d->next = 0;
}

void
hf_dealer_free(struct hf_dealer *d)
{
	for (unsigned t = 0; t < HF_FACT_TYPES; t++)
		free(d->order[t]);
}

/* Fact number i of a type. */
static char *
nth_fact(enum hf_fact_type type, unsigned i, struct hf_rng *r)
{
	int first, second;

	switch (type) {
	case HF_FACT_NAME:
		return hf_format("%s %s", hf_first_names[i % HF_N_NAMES],
		    hf_last_names[i / HF_N_NAMES]);
	case HF_FACT_PREFERENCE:
		return hf_format("%s %s", hf_liked_qualities[i / HF_N_THINGS],
		    hf_liked_things[i % HF_N_THINGS]);
	case HF_FACT_DATE:
		return hf_format(
		    "%u %s 2027", 10 + i % N_DAYS, hf_months[i / N_DAYS]);
	case HF_FACT_NUMBER:
		/* Unique by its digits; all are of one length. */
		first = (int)('A' + hf_rng_below(r, 26));
		second = (int)('A' + hf_rng_below(r, 26));
		return hf_format("%c%c-%04u-%02u", first, second, 1000 + i,
		    10 + hf_rng_below(r, 90));
	case HF_FACT_CONSTRAINT:
		return hf_format("%s %s", hf_barred_qualities[i / HF_N_THINGS],
		    hf_barred_things[i % HF_N_THINGS]);
	case HF_FACT_TYPES:
		break;
	}
	HF_CHECK(!"fact type");
	return NULL;
}

/* One of this type that was not dealt yet, or a number. */
static char *
deal(struct hf_dealer *d, enum hf_fact_type *type, struct hf_rng *r)
{
	if (d->dealt[*type] == space[*type])
		*type = HF_FACT_NUMBER;
	HF_CHECK(d->dealt[*type] < space[*type]);
	return nth_fact(*type, d->order[*type][d->dealt[*type]++], r);
}

char *
hf_deal_one(struct hf_dealer *d, enum hf_fact_type type, struct hf_rng *r)
{
	return deal(d, &type, r);
}

const char *
hf_deal_more(struct hf_dealer *d, struct hf_conv *c, enum hf_fact_type type,
    struct hf_rng *r)
{
	HF_CHECK(c->n_more < HF_MAX_MORE);
	c->more[c->n_more] = deal(d, &type, r);
	return c->more[c->n_more++];
}

void
hf_deal_fact(struct hf_dealer *d, struct hf_conv *c, struct hf_rng *r)
{
	unsigned type = d->next++ % HF_FACT_TYPES;

	if (d->dealt[type] == space[type])
		type = HF_FACT_NUMBER;
	HF_CHECK(d->dealt[type] < space[type]);
	c->tmpl = hf_pick_template((enum hf_fact_type)type, r);
	c->fact_type = hf_fact_type_name(c->tmpl->type);
	c->fact = nth_fact(c->tmpl->type, d->order[type][d->dealt[type]++], r);
	c->mark = c->fact;
}

/* --- turns ---------------------------------------------------------------- */

unsigned
hf_conv_say(struct hf_conv *c, char *text, const char *answer)
{
	HF_CHECK(c->n_user < HF_MAX_TURNS);
	c->user[c->n_user] = text;
	c->assistant[c->n_user] = answer;
	c->n_user++;
	c->n_messages = 2 * c->n_user - 1;
	return c->n_user - 1;
}

unsigned
hf_conv_ask(struct hf_conv *c, char *text, char *answer)
{
	unsigned turn = hf_conv_say(c, text, NULL);

	c->exact[turn] = answer;
	c->asks[turn] = c->fact;
	return turn;
}

void
hf_conv_state_fact(struct hf_conv *c, struct hf_rng *r)
{
	char *text = hf_make_statement(c->tmpl, c->fact, r);

	hf_conv_say(c, text, hf_answer_ack(hf_str(text)));
}

unsigned
hf_conv_state(struct hf_conv *c, const struct hf_template *t, const char *fact,
    const char *before)
{
	char *text = hf_format("%s%s%s%s", before, t->before, fact, t->after);

	return hf_conv_say(c, text, hf_answer_ack(hf_str(text)));
}

void
hf_conv_small_talk(struct hf_conv *c, const struct hf_filler *f)
{
	hf_conv_say(c, hf_xstrdup(f->question), f->answer);
}

unsigned
hf_conv_probe(struct hf_conv *c, const struct hf_template *t, const char *fact)
{
	unsigned turn =
	    hf_conv_ask(c, hf_xstrdup(t->probe), hf_answer_told(hf_str(fact)));

	c->asks[turn] = fact;
	return turn;
}

unsigned
hf_conv_ask_at_length(struct hf_conv *c, const char *before)
{
	unsigned said = 0;

	for (unsigned k = 0; k < c->n_user; k++)
		said += !c->tool[k];
	return hf_conv_ask(c,
	    hf_format("%s%s%s", before, c->tmpl->probe, HF_AT_LENGTH),
	    hf_recital(hf_str(c->fact), said + 1));
}

unsigned
hf_conv_look_up(struct hf_conv *c, unsigned n)
{
	static const char tools[] =
	    "[{\"type\":\"function\",\"function\":{\"name\":\"look_up\","
	    "\"description\":\"Look something up.\",\"parameters\":{\"type\":"
	    "\"object\",\"properties\":{\"shelf\":{\"type\":\"integer\"}}}}}]";
	char *args = hf_format("{\"shelf\":%u}", 10 + n % 90);
	unsigned call, turn;

	c->tools = tools;
	call = hf_conv_say(c, hf_format("!call look_up %s", args), NULL);
	c->exact[call] = hf_xstrdup("");
	c->calls[call] =
	    json_pack("[{s:s,s:s}]", "name", "look_up", "arguments", args);
	turn = hf_conv_say(c, hf_format("there is %s in it", c->fact), NULL);
	c->tool[turn] = true;
	c->exact[turn] =
	    hf_format("Tool results: look_up = %s.", c->user[turn]);
	free(args);
	return turn;
}

void
hf_suite_fill(struct hf_suite *s, uint64_t seed,
    void (*make)(
	struct hf_suite *s, unsigned i, struct hf_dealer *d, struct hf_rng *r))
{
	struct hf_dealer d;
	struct hf_rng r;

	hf_rng_init(&r, seed);
	hf_dealer_init(&d, &r);
	for (unsigned i = 0; i < s->n_conv; i++)
		make(s, i, &d, &r);
	hf_dealer_free(&d);
}
