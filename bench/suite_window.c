/*
 * The suite "window": conversations that the first provider holds and the next
 * one cannot.  Its window is from 1 to 32 thousand tokens; the gateway knows
 * it, or hears of it by a refusal, or there is a larger one behind it.  The
 * fact stands where a gateway can keep it: in the newest turns (half the
 * window), in a tool's result, in the system message, or, where a larger
 * target follows, in the oldest turn.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "bench/rules.h"
#include "bench/suite_make.h"

#define N_CONV 108
#define MAX_CONV 2000 /* facts are dealt once */

#define TURNS 14     /* before the probe */
#define TURN_PART 10 /* of the window: a turn */
#define DEEP 4	     /* turns from the fact to the probe, without a gap */

static const unsigned windows[] = { 1024, 2048, 4096, 8192, 16384, 32768 };

enum { TOLD, REFUSED, LARGER, WAYS };
static const char *const ways[] = { "configured", "told by a refusal",
	"a larger one follows" };

enum { NEWEST, RESULT, SYSTEM, OLDEST };
static const char *const places[] = { "newest turns", "tool's result",
	"system message", "oldest turn" };

/* Sentences of small talk, about so many tokens (of four bytes and a half), for
 * a turn to be long by. */
static char *
padding(unsigned tokens, struct hf_rng *r)
{
	size_t want = (size_t)tokens * 9 / 2;
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	while (b.size < want) {
		hf_buf_puts(
		    &b, hf_fillers[hf_rng_below(r, hf_n_fillers)].answer);
		hf_buf_putc(&b, ' ');
	}
	HF_CHECK(hf_buf_ok(&b));
	return hf_buf_take(&b, NULL);
}

/* A turn of this length; the answer is short. */
static void
talk(struct hf_conv *c, unsigned tokens, struct hf_rng *r)
{
	char *text = padding(tokens, r), *said, *ticket;
	unsigned turn;

	said = hf_format(HF_ASK_TICKET "number %u: %s", c->n_user + 1, text);
	turn = hf_conv_say(c, said, NULL);
	ticket = hf_ticket((struct hf_str){ said, strlen(said) });
	c->exact[turn] = hf_format("Your ticket is %s.", ticket);
	free(ticket);
	free(text);
}

static void
state(struct hf_conv *c, unsigned tokens, struct hf_rng *r)
{
	char *before = padding(tokens, r);

	hf_conv_state(c, c->tmpl, c->fact, before);
	free(before);
}

static void
make_turns(struct hf_conv *c, unsigned place, unsigned window, unsigned n,
    struct hf_rng *r)
{
	unsigned tokens = window / TURN_PART;
	unsigned at = place == OLDEST ? 0 : TURNS - DEEP;

	if (place == SYSTEM)
		c->system = hf_format(
		    "%s%s%s", c->tmpl->before, c->fact, c->tmpl->after);
	for (unsigned k = 0; k < TURNS; k++) {
		if (place == RESULT && k == at + 1)
			hf_conv_look_up(c, n);
		if ((place == NEWEST || place == OLDEST) && k == at)
			state(c, tokens, r);
		else
			talk(c, tokens, r);
	}
	if (place == RESULT)
		c->probe = hf_conv_ask(c, hf_xstrdup(HF_RESULT_PROBE),
		    hf_format("It said: there is %s in it.", c->fact));
	else
		c->probe = hf_conv_probe(c, c->tmpl, c->fact);
}

/* One for each, since a gateway remembers what it was told of a window. */
static void
make_route(struct hf_suite *s, unsigned i, unsigned way, unsigned window)
{
	static const char *const dialect[] = { "openai", "anthropic" };
	struct hf_route_plan *route = &s->route[i];
	unsigned n = i / hf_countof(windows) / WAYS,
		 direction = (n + n / 3) % 2;

	snprintf(route->name, sizeof(route->name), "%s", s->conv[i].id);
	route->target[0] = (struct hf_target_plan){
		.listener = 0, .dialect = dialect[direction], .model = "model-a"
	};
	route->target[1] = (struct hf_target_plan){ .listener = 1,
		.dialect = dialect[1 - direction],
		.window = way == TOLD ? window : 0,
		.max_output = window / 4 };
	snprintf(route->target[1].model, sizeof(route->target[1].model),
	    "model-%u-%c%u", i + 1, way == TOLD ? 'w' : 'u', window);
	route->target[2] = route->target[1];
	route->target[2].window = route->target[2].max_output = 0;
	snprintf(
	    route->target[2].model, sizeof(route->target[2].model), "model-b");
	route->n_target = way == LARGER ? 3 : 2;
	s->conv[i].route = i;
	hf_conv_label(&s->conv[i], 3, "%s", hf_direction(direction));
}

static void
make_conv(struct hf_suite *s, unsigned i, struct hf_dealer *d, struct hf_rng *r)
{
	unsigned window = windows[i % hf_countof(windows)];
	unsigned n = i / hf_countof(windows), way = n % WAYS;
	unsigned place = way == LARGER ? (unsigned)OLDEST : n / WAYS % 3;
	struct hf_conv *c = &s->conv[i];

	snprintf(c->id, sizeof(c->id), "x%04u", i + 1);
	hf_deal_fact(d, c, r);
	make_turns(c, place, window, i, r);
	c->failure = hf_conv_fails(c, c->probe, n);
	hf_conv_label(c, 0, "%u", window);
	hf_conv_label(c, 1, "%s", ways[way]);
	hf_conv_label(c, 2, "%s", places[place]);
	make_route(s, i, way, window);
}

struct hf_suite *
hf_suite_window(uint64_t seed, unsigned n)
{
	static const char *const axis[] = { "window", "known", "fact",
		"dialects" };
	struct hf_suite *s;

	if (n > MAX_CONV)
		return NULL;
	s = hf_suite_new("window", seed, n == 0 ? N_CONV : n);
	hf_suite_frame(s, axis, hf_countof(axis));
	free(s->route);
	s->route = hf_xcalloc(s->n_conv, sizeof(*s->route));
	s->n_route = s->n_conv;
	s->first_token_ms = 3000; /* large payloads take their time */
	hf_suite_fill(s, seed, make_conv);
	return s;
}
