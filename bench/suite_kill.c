/*
 * The suite "kill": the gateway's worker, its master, or all of its processes
 * die by SIGKILL at a named moment of a turn, and are started again where
 * nobody else does it; the client asks again.  What was acknowledged before is
 * asked for afterwards, with the first provider away.
 *
 * A point of the daemon's own (base/fault.h) is one where it is built with
 * them; else its conversations are killed when the provider has the request.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/suite_make.h"

#define N_CONV 96
#define MAX_CONV 2000 /* facts are dealt once */
#define CONCURRENCY 8
#define CHUNK_MS 2 /* between words: there is a middle to die in */

static const char *const victims[] = { "nobody", "worker", "master",
	"all processes" };

static const struct {
	const char *name, *point;
	enum hf_moment moment;
	enum hf_cut_phase phase;
} moments[] = {
	{ "request sent", NULL, HF_AT_SENT, HF_PHASE_CHUNKS },
	{ "request received", NULL, HF_AT_PROVIDER, HF_PHASE_RECEIVED },
	{ "first words", NULL, HF_AT_PROVIDER, HF_PHASE_FIRST },
	{ "mid-stream", NULL, HF_AT_PROVIDER, HF_PHASE_WORD },
	{ "last words", NULL, HF_AT_PROVIDER, HF_PHASE_CONTENT },
	{ "stream ended", NULL, HF_AT_PROVIDER, HF_PHASE_DONE },
	{ "answer received", NULL, HF_AT_ANSWER, HF_PHASE_CHUNKS },
#define POINT(name)                                           \
	{                                                     \
		name, name, HF_AT_PROVIDER, HF_PHASE_RECEIVED \
	}
	POINT("store.t1.before_commit"),
	POINT("store.t1.after_commit"),
	POINT("turn.t1.done"),
	POINT("turn.call"),
	POINT("store.part.before_commit"),
	POINT("store.part.after_commit"),
	POINT("store.t2.before_commit"),
	POINT("store.t2.after_commit"),
	POINT("turn.t2.done"),
#undef POINT
};

/* Failures (hf_conv_fails) that take no time: the next kill comes soon. */
static const unsigned quick[] = { 0, 2, 3, 4 };

enum { MOMENTS = hf_countof(moments), VICTIMS = 3, MARKS = 2 };

static void
make_conv(struct hf_suite *s, unsigned i, struct hf_dealer *d, struct hf_rng *r)
{
	unsigned moment = i % MOMENTS, victim = 1 + i / MOMENTS % VICTIMS;
	unsigned *talk = hf_permutation(r, hf_n_fillers), back;
	struct hf_conv *c = &s->conv[i];
	struct hf_kill_plan *k = &c->kill;

	snprintf(c->id, sizeof(c->id), "k%04u", i + 1);
	c->keyed = i / (MOMENTS * VICTIMS) % MARKS == 0;
	hf_deal_fact(d, c, r);
	hf_conv_state_fact(c, r);
	k->turn = hf_conv_ask_at_length(c, "");
	k->victim = (enum hf_victim)victim;
	k->moment = moments[moment].moment;
	k->phase = moments[moment].phase;
	k->point = moments[moment].point;
	k->at = (unsigned)strlen(c->exact[k->turn]) / 2;
	hf_conv_small_talk(c, &hf_fillers[talk[0]]);
	back = hf_conv_ask(
	    c, hf_xstrdup(HF_ECHO_PROBE), hf_xstrdup(c->exact[k->turn]));
	c->probe = hf_conv_probe(c, c->tmpl, c->fact);
	c->failure = hf_conv_fails(c, c->probe, quick[i / 2 % 4]);
	if (i % 2 == 1)
		hf_conv_fails(c, back, quick[i % 4]);
	c->route = i / (MOMENTS * VICTIMS) % 2;
	hf_conv_label(c, 0, "%s", victims[victim]);
	hf_conv_label(c, 1, "%s", moments[moment].name);
	hf_conv_label(c, 2, "%s", c->keyed ? "a key" : "nothing");
	hf_conv_label(c, 3, "%s", hf_direction(c->route));
	free(talk);
}

struct hf_suite *
hf_suite_kill(uint64_t seed, unsigned n)
{
	static const char *const axis[] = { "killed", "at", "marked by",
		"dialects" };
	struct hf_suite *s;

	if (n > MAX_CONV)
		return NULL;
	s = hf_suite_new("kill", seed, n == 0 ? N_CONV : n);
	hf_suite_frame(s, axis, hf_countof(axis));
	s->stream = true;
	s->kills = true;
	for (unsigned k = 0; k < s->n_route; k++)
		s->route[k].continuation = "instruction";
	s->concurrency = CONCURRENCY;
	s->chunk_ms = CHUNK_MS;
	s->retries = 200;
	s->pause_ms = 100;
	s->alone = true;
	hf_suite_fill(s, seed, make_conv);
	return s;
}
