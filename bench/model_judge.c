/*
 * The asking: 'concurrency' questions are under way at a time.  One thread.
 */
#include <config.h>

#include "bench/model_judge.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/client.h"
#include "bench/rng.h"

#define PAUSE_MS 200 /* before the first retry; doubled */
#define MAX_PAUSE_MS 30000

struct court {
	const struct hf_judge_conf *conf;
	struct hf_client *client;
	struct hf_judgement *judgement;
	unsigned n, next, ended;
	struct hf_judge_calls *calls;
	struct hf_progress *progress;
	struct hf_rng rng;
	bool hopeless;	 /* the endpoint answers none */
	char error[160]; /* ... because */
};

/* A question under way. */
struct inquiry {
	struct court *court;
	struct hf_judgement *j;
	unsigned tries; /* that were in vain */
	enum hf_verdict_form form;
};

/* What a call says about its question. */
enum sense {
	SAID,	   /* there is a verdict */
	AGAIN,	   /* there may be one next time */
	OTHERWISE, /* the form of the question was refused */
	NEVER	   /* key, model or address are wrong */
};

static void next_question(struct inquiry *q);
static void on_said(void *arg, const struct hf_call_result *r);

static void
ask(struct inquiry *q, unsigned after_ms)
{
	struct court *c = q->court;
	struct hf_call_request rq = {
		.after_ms = after_ms, .fn = on_said, .arg = q
	};
	struct hf_buf body;

	hf_buf_init(&body, HF_BUF_NOCAP);
	q->form = c->calls->form;
	hf_verdict_ask(&body, c->conf->model, q->form, &q->j->q);
	rq.body = hf_buf_str(&body);
	c->calls->calls++;
	hf_client_call(c->client, &rq);
	hf_buf_free(&body);
}

static enum sense
read_answer(struct hf_judgement *j, const struct hf_call_result *r)
{
	bool preserved;

	snprintf(j->error, sizeof(j->error), "%.150s", r->error);
	switch (r->status) {
	case 400:
	case 422:
		return OTHERWISE;
	case 401:
	case 403:
	case 404:
		return NEVER;
	default:
		break;
	}
	if (r->answer == NULL)
		return AGAIN;
	if (!hf_verdict_read(r->answer, &preserved, &j->reason)) {
		snprintf(j->error, sizeof(j->error),
		    "no verdict, or two, in: %.100s", r->answer);
		return AGAIN;
	}
	j->verdict = preserved ? HF_VERDICT_RIGHT : HF_VERDICT_WRONG;
	j->error[0] = '\0';
	return SAID;
}

/* Doubled each time, with up to as much on top, and never sooner than the
 * endpoint asks for. */
static unsigned
pause_ms(struct court *c, unsigned tries, int retry_after_s)
{
	unsigned ms = tries > 7 ? MAX_PAUSE_MS : PAUSE_MS << (tries - 1);

	if (retry_after_s > 0 && (unsigned)retry_after_s * 1000 > ms)
		ms = (unsigned)retry_after_s * 1000;
	return ms + hf_rng_below(&c->rng, PAUSE_MS);
}

/* Asks once more where that may help.  False: it may not. */
static bool
try_again(struct inquiry *q, enum sense s, const struct hf_call_result *r)
{
	struct court *c = q->court;

	if (s == OTHERWISE && q->form != HF_FORM_PLAIN) {
		/* Others may have found it out meanwhile. */
		if (c->calls->form == q->form)
			c->calls->form++;
		ask(q, 0);
		return true;
	}
	if (s != AGAIN || q->tries == c->conf->retries || c->hopeless)
		return false;
	c->calls->retries++;
	ask(q, pause_ms(c, ++q->tries, r->retry_after_s));
	return true;
}

static void
on_said(void *arg, const struct hf_call_result *r)
{
	struct inquiry *q = arg;
	struct court *c = q->court;
	enum sense s = read_answer(q->j, r);

	if (s != SAID && try_again(q, s, r))
		return;
	if (s == NEVER || s == OTHERWISE) {
		c->hopeless = true;
		memcpy(c->error, q->j->error, sizeof(c->error));
	}
	c->ended++;
	if (c->progress != NULL)
		hf_progress_step(c->progress, c->ended, c->n, "");
	next_question(q);
}

static void
next_question(struct inquiry *q)
{
	struct court *c = q->court;

	if (c->next == c->n || c->hopeless) {
		free(q);
		return;
	}
	q->j = &c->judgement[c->next++];
	q->tries = 0;
	ask(q, 0);
}

int
hf_judge_ask(const struct hf_judge_conf *conf, struct hf_judgement *j,
    unsigned n, struct hf_judge_calls *calls, struct hf_progress *progress,
    struct hf_error *e)
{
	struct hf_client_conf cc = { .url = conf->url,
		.api_key = conf->api_key,
		.timeout_ms = conf->timeout_ms };
	struct court c = { .conf = conf,
		.judgement = j,
		.n = n,
		.calls = calls,
		.progress = progress };
	int rc;

	for (unsigned i = 0; i < n; i++)
		j[i].verdict = HF_VERDICT_UNDECIDED;
	hf_rng_init(&c.rng, n);
	c.client = hf_client_new(&cc);
	for (unsigned i = 0; i < conf->concurrency && c.next < n; i++) {
		struct inquiry *q = hf_xcalloc(1, sizeof(*q));

		q->court = &c;
		next_question(q);
	}
	rc = hf_client_run(c.client, e);
	hf_client_free(c.client);
	for (unsigned i = 0; i < n; i++)
		if (j[i].verdict == HF_VERDICT_UNDECIDED &&
		    j[i].error[0] == '\0')
			memcpy(j[i].error, c.error, sizeof(c.error));
	if (rc == 0 && c.hopeless)
		rc = hf_fail(
		    e, HF_EINVAL, "the judge at %s: %s", conf->url, c.error);
	return rc;
}

void
hf_judgements_free(struct hf_judgement *j, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		free(j[i].reason);
	free(j);
}
