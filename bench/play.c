/*
 * The scheduler of plays: keeps 'concurrency' conversations going, in the
 * order run, conversation, system, so that systems share the same minutes of
 * the machine; which of them begins alternates.  A turn is one request or
 * more, as its manner says.  A conversation whose turn got no answer ends
 * there.
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
#include "bench/endpoint.h"
#include "bench/fill.h"

struct stage {
	const struct hf_play_conf *conf;
	struct hf_plays *plays;
	struct hf_client *client;
	unsigned next; /* play to start */
	unsigned ended, errors;
	struct hf_progress progress;
	struct actor *killed;	/* whose turn the gateway is killed in */
	unsigned leaving;	/* that interrupted, and did not go on yet */
	struct actor *waiting;	/* for such a turn of their own, in order */
	struct actor *gathered; /* for the storm */
	unsigned n_gathered;	/* with those that will not come */
};

/* One caller. */
struct actor {
	struct stage *stage;
	struct hf_play *play;
	unsigned begun, pending; /* requests of this turn */
	bool heard, failed;	 /* an answer, or that there is none */
	unsigned leaving;   /* turns until what it interrupted is settled */
	struct actor *next; /* waiting */
};

/* Beginnings of its text that a turn with growing text is asked with, and how
 * long they are waited for. */
#define GROWTHS 2
#define GROWTH_MS 40

static void take_turn(struct actor *a);
static void ask(struct actor *a);
static bool is_storm(const struct stage *s);
static void gather(struct stage *s, struct actor *a);

unsigned
hf_play_index(
    const struct hf_play_conf *c, unsigned run, unsigned conv, unsigned system)
{
	return (run * c->suite->n_conv + conv) * c->n_system + system;
}

const char *
hf_verdict_name(enum hf_verdict v)
{
	static const char *const name[] = {
#define X(id, text) text,
		HF_VERDICTS(X)
#undef X
	};

	return name[v];
}

bool
hf_play_is_to_fail(
    const struct hf_play_conf *c, const struct hf_play *p, unsigned turn)
{
	return !c->system[p->system].control && hf_conv_is_to_fail(p->c, turn);
}

static void
tell(struct stage *s)
{
	char extra[48] = "";

	if (s->errors > 0)
		snprintf(extra, sizeof(extra), ", %u errors", s->errors);
	hf_progress_step(&s->progress, s->ended, s->plays->n_play, extra);
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

/* --- one turn ------------------------------------------------------------- */

/* Requests that the turn takes. */
static unsigned
requests(const struct hf_play *p)
{
	switch (p->c->manner[p->n_answered]) {
	case HF_AGAIN:
	case HF_TOGETHER:
		return 2;
	case HF_GROWING:
		return GROWTHS + 1;
	case HF_ONCE:
	case HF_LEAVING:
		break;
	}
	return 1;
}

/* The answer that counts; the turn's others must be the same. */
static void
hear(struct actor *a, const struct hf_call_result *r)
{
	struct hf_play *p = a->play;
	unsigned turn = p->n_answered;

	if (a->heard) {
		p->differing[turn] += strcmp(p->answer[turn], r->answer) != 0 ||
		    (p->calls[turn] != r->calls &&
			json_equal(p->calls[turn], r->calls) != 1);
		return;
	}
	a->heard = true;
	p->answer[turn] = hf_xstrdup(r->left ? r->text : r->answer);
	snprintf(p->model, sizeof(p->model), "%s", r->model);
	p->calls[turn] = json_incref(r->calls);
	p->left[turn] = r->left;
	p->turn_ms[turn] = r->total_ms;
	p->first_ms[turn] = r->first_ms;
	p->marks[turn] = r->marks;
	p->silence_ms[turn] = r->silence_ms;
}

static void
fail(struct actor *a, const struct hf_call_result *r)
{
	struct hf_play *p = a->play;

	a->failed = true;
	p->status = r->status;
	if (p->partial == NULL)
		p->partial = hf_xstrdup(r->text);
	p->turn_ms[p->n_answered] = r->total_ms;
	p->marks[p->n_answered] = r->marks;
	p->silent = r->silent;
	snprintf(p->error, sizeof(p->error), "turn %u: %.180s",
	    p->n_answered + 1, r->error);
}

/* Is the gateway to be killed in this turn? */
static bool
is_killed(const struct actor *a)
{
	const struct hf_kill_plan *k = &a->play->c->kill;

	return a->stage->conf->before != NULL && k->victim != HF_KILL_NOBODY &&
	    k->turn == a->play->n_answered;
}

static bool
leaves(const struct actor *a)
{
	return a->stage->conf->before != NULL &&
	    a->play->c->manner[a->play->n_answered] == HF_LEAVING;
}

/* The gateway is killed in one turn at a time, and in none that a client
 * leaves in.  'behind': who waits already comes first. */
static bool
must_wait(const struct actor *a, bool behind)
{
	const struct stage *s = a->stage;

	if (!is_killed(a) && !leaves(a))
		return false;
	return s->killed != NULL || (behind && s->waiting != NULL) ||
	    (is_killed(a) && s->leaving > 0);
}

static void
begin_turn(struct actor *a)
{
	struct stage *s = a->stage;

	if (is_killed(a)) {
		s->killed = a;
		s->conf->before(s->conf->kill_arg, a->play);
	} else if (leaves(a)) {
		a->leaving = 2; /* this turn and the next */
		s->leaving++;
	}
	ask(a);
}

/* What was on its way to a client that left is known to the gateway alone: it
 * is not killed before the next turn has shown that it has written it down. */
static void
settle(struct actor *a)
{
	struct stage *s = a->stage;

	if (s->killed == a) {
		s->conf->after(s->conf->kill_arg, a->play);
		s->killed = NULL;
	}
	if (a->leaving > 0 && --a->leaving == 0)
		s->leaving--;
	while (s->waiting != NULL && !must_wait(s->waiting, false)) {
		struct actor *next = s->waiting;

		s->waiting = next->next;
		begin_turn(next);
	}
}

static void
end_turn(struct actor *a)
{
	struct hf_play *p = a->play;

	if (a->failed && a->heard) {
		free(p->answer[p->n_answered]);
		json_decref(p->calls[p->n_answered]);
		p->answer[p->n_answered] = NULL;
		p->calls[p->n_answered] = NULL;
	}
	if (a->failed && a->leaving > 0)
		a->leaving = 1; /* its last */
	settle(a);
	if (!a->failed && ++p->n_answered < p->c->n_user) {
		take_turn(a);
		return;
	}
	a->stage->ended++;
	a->stage->errors += a->failed;
	tell(a->stage);
	if (is_storm(a->stage) && p->n_answered < p->c->probe)
		gather(a->stage, NULL);
	next_play(a);
}

static void next_request(struct actor *a);

static void
on_called(void *arg, const struct hf_call_result *r)
{
	struct actor *a = arg;
	struct hf_play *p = a->play;
	unsigned turn = p->n_answered;
	bool growing = p->c->manner[turn] == HF_GROWING && a->begun <= GROWTHS;

	a->pending--;
	p->broken[turn] += r->broken;
	p->retries[turn] += r->retries;
	if (!growing && (r->answer != NULL || r->left))
		hear(a, r);
	else if (!growing)
		fail(a, r);
	if (a->pending > 0)
		return;
	if (a->begun < requests(p) && !a->failed)
		next_request(a);
	else
		end_turn(a);
}

/* The headers of a gateway that is not ours; their count. */
static unsigned
fill_headers(const struct hf_endpoint *e, const struct hf_play *p, char **out)
{
	json_t *scope;

	if (e == NULL || e->n_header == 0)
		return 0;
	scope = hf_endpoint_scope(e, p);
	for (unsigned i = 0; i < e->n_header; i++)
		out[i] = hf_fill_text(e->header[i], scope);
	json_decref(scope);
	return e->n_header;
}

static void
next_request(struct actor *a)
{
	const struct hf_play_conf *conf = a->stage->conf;
	struct hf_play *p = a->play;
	unsigned turn = p->n_answered, n = a->begun++;
	char key[sizeof(p->session) + 16], *said = NULL;
	char *header[HF_MAX_HEADERS];
	struct hf_call_request rq = { .n_header = fill_headers(
					  conf->endpoint, p, header),
		.header = header,
		.leave_at = p->c->leave_at[turn],
		.full = p->c->tells,
		.plain = p->c->plain,
		.after_ms = turn == 0 && n == 0 ? p->c->start_ms : 0,
		.fn = on_called,
		.arg = a };
	struct hf_buf b;

	if (p->c->manner[turn] == HF_GROWING && n < GROWTHS) {
		said = hf_xstrndup(p->c->user[turn],
		    strlen(p->c->user[turn]) * (n + 1) / (GROWTHS + 1));
		rq.leave_ms = GROWTH_MS;
	}
	rq.retry = p->c->manner[turn] == HF_AGAIN && n > 0 && !p->c->keyed;
	if (rq.n_header == 0)
		rq.session = p->session;
	snprintf(key, sizeof(key), "%s.t%u", p->session, turn + 1);
	if ((conf->idempotency_key || p->c->keyed) && said == NULL)
		rq.key = key;
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_play_body(conf, p, said, &b);
	rq.body = hf_buf_str(&b);
	a->pending++;
	hf_client_call(a->stage->client, &rq);
	hf_buf_free(&b);
	for (unsigned i = 0; i < rq.n_header; i++)
		free(header[i]);
	free(said);
}

static void
ask(struct actor *a)
{
	a->begun = a->pending = 0;
	a->heard = a->failed = false;
	next_request(a);
	if (a->play->c->manner[a->play->n_answered] == HF_TOGETHER)
		next_request(a);
}

/* One more is there for the storm, or will not come; with the last it breaks
 * loose. */
static void
gather(struct stage *s, struct actor *a)
{
	if (a != NULL) {
		a->next = s->gathered;
		s->gathered = a;
	}
	if (++s->n_gathered < s->conf->suite->n_conv * s->conf->n_system)
		return;
	s->n_gathered = 0;
	while ((a = s->gathered) != NULL) {
		s->gathered = a->next;
		begin_turn(a);
	}
}

static bool
is_storm(const struct stage *s)
{
	return s->conf->suite->storm.quota > 0;
}

static void
take_turn(struct actor *a)
{
	struct stage *s = a->stage;
	struct actor **at = &s->waiting;

	if (is_storm(s) && a->play->n_answered == a->play->c->probe) {
		gather(s, a);
		return;
	}
	if (!must_wait(a, true)) {
		begin_turn(a);
		return;
	}
	while (*at != NULL)
		at = &(*at)->next;
	a->next = NULL;
	*at = a;
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
		/* The failures are chosen by what is before the first dot. */
		if (conf->system[p->system].control)
			snprintf(p->user, sizeof(p->user), "%s.%s.r%u",
			    conf->system[p->system].name, p->c->id, p->run + 1);
		else
			snprintf(p->user, sizeof(p->user), "%s.r%u.%s",
			    p->c->id, p->run + 1, conf->system[p->system].name);
		snprintf(p->session, sizeof(p->session), "bench-%llx-%s", nonce,
		    p->user);
	}
}

int
hf_play_all(
    const struct hf_play_conf *conf, struct hf_plays *out, struct hf_error *e)
{
	struct hf_client_conf cc = { conf->url, conf->api_key, conf->stream,
		conf->local, conf->timeout_ms, conf->retries,
		conf->suite->pause_ms };
	struct stage s = { .conf = conf, .plays = out };
	int64_t began = hf_now_us();
	char what[80];
	int rc;

	set_up(conf, out);
	snprintf(what, sizeof(what), "playing %s", conf->suite->name);
	hf_progress_begin(&s.progress, conf->progress, what, "conversations");
	s.client = hf_client_new(&cc);
	if (conf->tick != NULL)
		hf_client_tick(
		    s.client, conf->tick_ms, conf->tick, conf->tick_arg);
	if (conf->watch != NULL)
		hf_client_watch(
		    s.client, conf->watch_fd, conf->watch, conf->kill_arg);
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
			free(p->play[i].reason[k]);
			free(p->play[i].answer[k]);
			json_decref(p->play[i].calls[k]);
		}
	}
	free(p->play);
	p->play = NULL;
	p->n_play = 0;
}
