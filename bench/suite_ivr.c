/*
 * The suite "ivr": telephone calls by script, of clients that send only what
 * is new: a table is booked, a bill disputed, an outage told, tablets
 * refilled.  Tools are called, callers say nothing and are asked again, or
 * interrupt a long answer; a provider fails in mid-call, the gateway is killed
 * and started again in mid-call; and everything is asked back at the end.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/script.h"
#include "bench/suite_make.h"

#define N_CONV 96
#define MAX_CONV 2000 /* facts are dealt once */
#define CONCURRENCY 16
#define CHUNK_MS 5

enum { PLAIN, SILENT, BARGES, HABITS };
static const char *const habits[HABITS] = { "answers", "is silent once",
	"interrupts" };

/* Slots that hold what no other call has. */
static const struct {
	const char *slot;
	enum hf_fact_type type;
} facts[] = { { "code", HF_FACT_NUMBER }, { "name", HF_FACT_NAME },
	{ "date", HF_FACT_DATE }, { "case", HF_FACT_NUMBER },
	{ "phone", HF_FACT_NUMBER }, { "allergy", HF_FACT_CONSTRAINT } };

static const char *const hours[] = { "half past six", "seven",
	"a quarter to eight", "nine" };
static const char *const parties[] = { "two", "three", "four", "five", "six",
	"seven" };

static bool
has_slot(const struct hf_script *s, const char *slot)
{
	char *name = hf_format("{%s}", slot);
	bool found = false;

	for (const struct hf_script_line *l = s->line; l->says != NULL; l++)
		found |= strstr(l->says, name) != NULL;
	free(name);
	return found;
}

/* What this call is about; new. */
static json_t *
deal_slots(const struct hf_script *s, struct hf_conv *c, struct hf_dealer *d,
    struct hf_rng *r)
{
	json_t *slots = json_object();
	char amount[24];

	for (unsigned k = 0; k < hf_countof(facts); k++) {
		if (!has_slot(s, facts[k].slot))
			continue;
		if (c->fact == NULL) {
			c->fact = hf_deal_one(d, facts[k].type, r);
			c->mark = c->fact;
			json_object_set_new(
			    slots, facts[k].slot, json_string(c->fact));
			continue;
		}
		json_object_set_new(slots, facts[k].slot,
		    json_string(hf_deal_more(d, c, facts[k].type, r)));
	}
	c->fact_type = s->name;
	snprintf(amount, sizeof(amount), "%u.%02u", 100 + hf_rng_below(r, 800),
	    hf_rng_below(r, 100));
	json_object_set_new(slots, "amount", json_string(amount));
	json_object_set_new(slots, "hour",
	    json_string(hours[hf_rng_below(r, hf_countof(hours))]));
	json_object_set_new(slots, "left",
	    json_string(parties[hf_rng_below(r, hf_countof(parties))]));
	return slots;
}

/* The turn of a line, with its slots as they are now. */
static unsigned
add_line(struct hf_conv *c, const struct hf_script_line *l, json_t *slots)
{
	unsigned turn = hf_conv_say(c, hf_script_fill(l->says, slots), NULL);
	char *args;

	HF_CHECK(c->user[turn] != NULL);
	c->tool[turn] = l->tool;
	if (l->call == NULL) {
		c->exact[turn] = hf_script_fill(l->answer, slots);
		HF_CHECK(c->exact[turn] != NULL);
		c->asks[turn] = c->exact[turn];
		return turn;
	}
	c->exact[turn] = hf_xstrdup("");
	args = hf_script_fill(l->args, slots);
	HF_CHECK(args != NULL);
	c->calls[turn] =
	    json_pack("[{s:s,s:s}]", "name", l->call, "arguments", args);
	free(args);
	return turn;
}

static void
be_silent(struct hf_conv *c)
{
	const char *last = c->exact[c->n_user - 1];
	unsigned turn = hf_conv_say(c, hf_xstrdup(HF_SILENCE), NULL);

	c->exact[turn] = hf_script_again(hf_str(last));
	c->asks[turn] = c->exact[turn];
}

static bool
is_question(const struct hf_script_line *l)
{
	return l->answer != NULL && l->answer[strlen(l->answer) - 1] == '?';
}

/* The turns of a call; the one with the long answer. */
static unsigned
make_turns(struct hf_conv *c, const struct hf_script *s, unsigned habit,
    json_t *slots, struct hf_rng *r)
{
	unsigned people = hf_rng_below(r, hf_countof(parties) - 2), turn;
	unsigned longest = 0;
	bool asked = false;

	for (const struct hf_script_line *l = s->line; l->says != NULL; l++) {
		if (strstr(l->says, "{people}") != NULL)
			json_object_set_new(slots, "people",
			    json_string(parties[people++])); /* corrected */
		turn = add_line(c, l, slots);
		if (habit == SILENT && l->tool && is_question(l) && !asked) {
			asked = true;
			be_silent(c);
		}
		if (l->tool && !is_question(l))
			longest = turn;
	}
	return longest;
}

/* The gateway goes in mid-call: between two turns, or in one. */
static void
plan_kill(struct hf_conv *c, unsigned turn, unsigned n)
{
	c->kill = (struct hf_kill_plan){ .victim = HF_KILL_TREE,
		.turn = turn,
		.moment = n % 2 == 0 ? HF_AT_ANSWER : HF_AT_PROVIDER,
		.phase = HF_PHASE_FIRST };
}

static void
make_conv(struct hf_suite *s, unsigned i, struct hf_dealer *d, struct hf_rng *r)
{
	const struct hf_script *script = &hf_scripts[i % hf_n_scripts];
	unsigned n = i / hf_n_scripts, habit = n % HABITS, longest;
	bool killed = n / HABITS % 4 == 3;
	struct hf_conv *c = &s->conv[i];
	json_t *slots;

	snprintf(c->id, sizeof(c->id), "i%04u", i + 1);
	slots = deal_slots(script, c, d, r);
	c->tools = script->tools;
	longest = make_turns(c, script, habit, slots, r);
	json_decref(slots);
	/* In mid-call, and when all is asked back. */
	c->probe = 1 + i % (longest - 1);
	c->failure = hf_conv_fails(c, c->probe, n);
	hf_conv_fails(c, c->n_user - 1, i);
	hf_conv_fails(c, c->n_user - 3, i + 2);
	if (habit == BARGES) {
		c->manner[longest] = HF_LEAVING;
		c->leave_at[longest] = 60 + hf_rng_below(r, 120);
		c->asks[longest] = NULL;
	}
	if (killed)
		plan_kill(c, hf_rng_below(r, longest - 1), i);
	c->route = n % 2;
	hf_conv_label(c, 0, "%s", script->name);
	hf_conv_label(c, 1, "%s", habits[habit]);
	hf_conv_label(c, 2, "%s", killed ? "killed in mid-call" : "runs");
	hf_conv_label(c, 3, "%s", hf_direction(c->route));
}

struct hf_suite *
hf_suite_ivr(uint64_t seed, unsigned n)
{
	static const char *const axis[] = { "call", "caller", "gateway",
		"dialects" };
	struct hf_suite *s;

	if (n > MAX_CONV)
		return NULL;
	s = hf_suite_new("ivr", seed, n == 0 ? N_CONV : n);
	hf_suite_frame(s, axis, hf_countof(axis));
	s->stream = true;
	s->kills = true;
	s->kills_optional = true;
	s->alone = true;
	s->concurrency = CONCURRENCY;
	s->chunk_ms = CHUNK_MS;
	s->retries = 200;
	s->pause_ms = 100;
	for (unsigned k = 0; k < s->n_route; k++)
		s->route[k].continuation = "instruction";
	hf_suite_fill(s, seed, make_conv);
	return s;
}
