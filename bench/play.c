/*
 * The scheduler of plays: keeps 'concurrency' conversations going, in the
 * order run, conversation, system, so that systems share the same minutes of
 * the machine; which of them begins alternates.  A conversation whose turn
 * got no answer ends there.
 */
#include <config.h>

#include "bench/play.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "bench/client.h"
#include "bench/dialect.h"

struct stage {
	const struct hf_play_conf *conf;
	struct hf_plays *plays;
	struct hf_client *client;
	unsigned next; /* play to start */
	unsigned ended;
	int64_t told_us; /* of the last progress line */
};

struct actor {
	struct stage *stage;
	struct hf_play *play;
};

static void take_turn(struct actor *a);

unsigned
hf_play_index(
    const struct hf_play_conf *c, unsigned run, unsigned conv, unsigned system)
{
	return (run * c->suite->n_conv + conv) * c->n_system + system;
}

static json_t *
message(const char *role, const char *text)
{
	json_t *m = json_pack("{s:s,s:s}", "role", role, "content", text);

	HF_CHECK(m != NULL);
	return m;
}

const char *
hf_play_call_id(const struct hf_play *p, unsigned turn)
{
	const char *id = json_string_value(
	    json_object_get(json_array_get(p->calls[turn], 0), "id"));

	return id == NULL ? "" : id;
}

/* What is sent on a turn: said, or a tool's result. */
static json_t *
sent(const struct hf_play *p, unsigned turn)
{
	json_t *m;

	if (!p->c->tool[turn])
		return message("user", p->c->user[turn]);
	m = message("tool", p->c->user[turn]);
	json_object_set_new(m, "tool_call_id",
	    json_string(turn == 0 ? "" : hf_play_call_id(p, turn - 1)));
	return m;
}

/* What was answered, as it is sent back. */
static json_t *
answered(const struct hf_play *p, unsigned turn)
{
	json_t *m = message("assistant", p->answer[turn]), *calls, *c;
	size_t i;

	if (p->calls[turn] == NULL)
		return m;
	calls = json_array();
	json_array_foreach(p->calls[turn], i, c) json_array_append_new(calls,
	    json_pack("{s:O,s:s,s:{s:O,s:O}}", "id", json_object_get(c, "id"),
		"type", "function", "function", "name",
		json_object_get(c, "name"), "arguments",
		json_object_get(c, "arguments")));
	json_object_set_new(m, "tool_calls", calls);
	if (p->answer[turn][0] == '\0')
		json_object_set_new(m, "content", json_null());
	return m;
}

static json_t *
messages(const struct hf_play_conf *conf, const struct hf_play *p)
{
	unsigned turn = p->n_answered;
	json_t *out = json_array();

	if (turn == 0 || conf->full_history)
		json_array_append_new(out, message("system", p->system_text));
	for (unsigned i = 0; conf->full_history && i < turn; i++) {
		json_array_append_new(out, sent(p, i));
		json_array_append_new(out, answered(p, i));
	}
	json_array_append_new(out, sent(p, turn));
	return out;
}

/* On a terminal a line that counts up each second; elsewhere the end only. */
static void
progress(struct stage *s)
{
	bool end = s->ended == s->plays->n_play;
	int64_t now = hf_now_us();

	if (s->conf->quiet ||
	    (!end && (now - s->told_us < 1000000 || !isatty(STDERR_FILENO))))
		return;
	s->told_us = now;
	fprintf(stderr, "%s%u of %u conversations played%s",
	    isatty(STDERR_FILENO) ? "\r" : "", s->ended, s->plays->n_play,
	    end ? "\n" : "");
}

/* The play that is started as number i. */
static unsigned
nth(const struct hf_play_conf *conf, unsigned i)
{
	unsigned n = conf->n_system, pair = i / n;

	return pair % 2 == 0 ? i : pair * n + (n - 1 - i % n);
}

static void
next_play(struct actor *a)
{
	struct stage *s = a->stage;

	if (s->next == s->plays->n_play) {
		free(a);
		return;
	}
	a->play = &s->plays->play[nth(s->conf, s->next++)];
	take_turn(a);
}

static void
on_called(void *arg, const struct hf_call_result *r)
{
	struct actor *a = arg;
	struct hf_play *p = a->play;
	unsigned turn = p->n_answered;

	p->turn_ms[turn] = r->total_ms;
	p->first_ms[turn] = r->first_ms;
	p->broken[turn] = r->broken;
	p->retries[turn] = r->retries;
	p->marks[turn] = r->marks;
	p->silence_ms[turn] = r->silence_ms;
	if (r->answer == NULL) {
		p->partial = hf_xstrdup(r->text);
		snprintf(p->error, sizeof(p->error), "turn %u: %.180s",
		    turn + 1, r->error);
	} else {
		p->answer[turn] = hf_xstrdup(r->answer);
		p->calls[turn] = json_incref(r->calls);
		p->n_answered++;
		if (p->n_answered < p->c->n_user) {
			take_turn(a);
			return;
		}
	}
	a->stage->ended++;
	progress(a->stage);
	next_play(a);
}

/* "holdfast", or "holdfast-ROUTE". */
static void
route_name(
    const struct hf_play_conf *conf, const struct hf_play *p, struct hf_buf *b)
{
	const struct hf_play_system *s = &conf->system[p->system];
	const char *route = conf->suite->route[p->c->route].name;

	hf_buf_puts(b, s->model);
	if (!s->any_route && route[0] != '\0')
		hf_buf_printf(b, "-%s", route);
}

static void
take_turn(struct actor *a)
{
	const struct hf_play_conf *conf = a->stage->conf;
	struct hf_play *p = a->play;
	char key[sizeof(p->session) + 16];
	struct hf_buf b, route;
	json_t *body;

	hf_buf_init(&route, HF_BUF_NOCAP);
	route_name(conf, p, &route);
	body = json_pack("{s:s,s:o,s:s,s:b}", "model", route.data, "messages",
	    messages(conf, p), "user", p->user, "stream", conf->stream);
	HF_CHECK(body != NULL);
	if (p->c->tools != NULL)
		json_object_set_new(
		    body, "tools", json_loads(p->c->tools, 0, NULL));
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_json(&b, body);
	json_decref(body);
	snprintf(key, sizeof(key), "%s.t%u", p->session, p->n_answered + 1);
	hf_client_call(a->stage->client, p->session,
	    conf->idempotency_key ? key : NULL, hf_buf_str(&b), on_called, a);
	hf_buf_free(&b);
	hf_buf_free(&route);
}

static void
set_up(const struct hf_play_conf *conf, struct hf_plays *plays)
{
	/* An endpoint that remembers must not know our sessions already. */
	unsigned long long nonce =
	    (unsigned long long)time(NULL) << 20 ^ (unsigned long long)getpid();

	plays->n_play = conf->n_run * conf->suite->n_conv * conf->n_system;
	plays->play = hf_xcalloc(plays->n_play, sizeof(*plays->play));
	for (unsigned i = 0; i < plays->n_play; i++) {
		struct hf_play *p = &plays->play[i];

		p->system = i % conf->n_system;
		p->conv = i / conf->n_system % conf->suite->n_conv;
		p->run = i / conf->n_system / conf->suite->n_conv;
		p->c = &conf->suite->conv[p->conv];
		hf_suite_canary(
		    conf->suite, p->system, p->run, p->conv, p->canary);
		p->system_text = hf_suite_system(p->c, p->canary);
		snprintf(p->user, sizeof(p->user), "%s.r%u.%s", p->c->id,
		    p->run + 1, conf->system[p->system].name);
		snprintf(p->session, sizeof(p->session), "bench-%llx-%s", nonce,
		    p->user);
	}
}

int
hf_play_all(
    const struct hf_play_conf *conf, struct hf_plays *out, struct hf_error *e)
{
	struct hf_client_conf cc = { conf->url, conf->api_key, conf->stream,
		conf->local, conf->timeout_ms, conf->retries };
	struct stage s = { .conf = conf, .plays = out };
	int64_t began = hf_now_us();
	int rc;

	set_up(conf, out);
	s.client = hf_client_new(&cc);
	if (conf->tick != NULL)
		hf_client_tick(
		    s.client, conf->tick_ms, conf->tick, conf->tick_arg);
	for (unsigned i = 0; i < conf->concurrency && s.next < out->n_play;
	     i++) {
		struct actor *a = hf_xcalloc(1, sizeof(*a));

		a->stage = &s;
		next_play(a);
	}
	rc = hf_client_run(s.client, e);
	hf_client_free(s.client);
	out->wall_s = (double)(hf_now_us() - began) / 1e6;
	return rc;
}

void
hf_plays_free(struct hf_plays *p)
{
	for (unsigned i = 0; i < p->n_play; i++) {
		free(p->play[i].system_text);
		free(p->play[i].partial);
		for (unsigned k = 0; k < p->play[i].n_answered; k++) {
			free(p->play[i].answer[k]);
			json_decref(p->play[i].calls[k]);
		}
	}
	free(p->play);
	p->play = NULL;
	p->n_play = 0;
}
