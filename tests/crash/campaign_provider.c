/*
 * The campaign's provider: it looks at each request whether that is the whole
 * conversation and nothing else, and goes on where an answer was broken off.
 */
#include <config.h>

#include "tests/crash/campaign.h"

#include <event2/event.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "bench/answer.h"
#include "bench/server.h"

/* One answer on its way. */
struct saying {
	struct campaign_ask ask;
	struct hf_buf text; /* the whole answer */
	size_t at;	    /* how much of it is said */
};

static struct {
	unsigned long calls, continued, broken_off, violations;
} seen;

static void
violation(const char *what, struct hf_str text)
{
	if (seen.violations++ < 20)
		fprintf(stderr, "campaign: provider: %s: %.*s\n", what,
		    (int)(text.size > 2000 ? 2000 : text.size), text.p);
}

/* --- what it is told --------------------------------------------------------
 */

/* Earlier turns of the session stand in front, each once, each with its whole
 * answer; then this one's question, then what its client has of the answer.
 * A last instruction to go on is left out of account. */
struct listener {
	unsigned long conn;
	unsigned turn; /* whose question came last; 0: none */
	bool answered;
	struct campaign_ask ask;
};

static const char *
hear_user(struct listener *l, struct hf_str text, size_t *from)
{
	struct campaign_ask a;
	unsigned long conn;
	unsigned turn;

	if (!campaign_ask_parse(text, &a))
		return l->turn == 0 ? "no question" : NULL;
	if (!campaign_id_parse(a.id, &conn, &turn))
		return "bad id";
	if (l->turn > 0 && conn != l->conn)
		return "another session's question";
	if (turn != l->turn + 1)
		return "a turn is missing or doubled";
	if (l->turn > 0 && !l->answered)
		return "an answer is missing";
	*l = (struct listener){ .conn = conn, .turn = turn, .ask = a };
	*from = 0;
	return NULL;
}

static const char *
hear_assistant(struct listener *l, struct hf_str text, bool last, size_t *from)
{
	struct hf_buf want;
	bool prefix;

	if (l->turn == 0 || l->answered)
		return "an answer without a question";
	hf_buf_init(&want, HF_BUF_NOCAP);
	campaign_answer(&l->ask, &want);
	prefix =
	    text.size <= want.size && memcmp(text.p, want.data, text.size) == 0;
	l->answered = true;
	if (last)
		*from = text.size;
	else if (text.size < want.size)
		prefix = false;
	hf_buf_free(&want);
	return prefix ? NULL : "not the answer that was given";
}

static const char *
hear(json_t *messages, struct campaign_ask *ask, size_t *from)
{
	struct listener l = { 0 };
	const char *why = NULL;
	size_t i, n = json_array_size(messages);
	json_t *m;

	*from = 0;
	json_array_foreach(messages, i, m)
	{
		struct hf_str role = hf_json_str(json_object_get(m, "role"));
		struct hf_str text = hf_json_str(json_object_get(m, "content"));

		if (hf_str_is(role, "user"))
			why = hear_user(&l, text, from);
		else if (hf_str_is(role, "assistant"))
			why = hear_assistant(&l, text, i + 2 >= n, from);
		else
			why = "a role that nobody has";
		if (why != NULL)
			return why;
	}
	if (l.turn == 0)
		return "nothing is asked";
	*ask = l.ask;
	return NULL;
}

/* --- what it says ------------------------------------------------------------
 */

static void
say(struct hf_sreq *rq, struct hf_str text, const char *finish)
{
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_printf(&b,
	    "data: {\"id\":\"campaign\",\"object\":\"chat.completion.chunk\","
	    "\"created\":1700000000,\"model\":\"m\",\"choices\":[{\"index\":0,"
	    "\"delta\":{\"content\":\"%.*s\"},\"finish_reason\":%s}]}\n\n%s",
	    (int)text.size, text.p, finish == NULL ? "null" : finish,
	    finish == NULL ? "" : "data: [DONE]\n\n");
	hf_sreq_chunk(rq, hf_buf_str(&b));
	hf_buf_free(&b);
}

static void
saying_free(struct saying *s)
{
	hf_buf_free(&s->text);
	free(s);
}

static void
gone(struct hf_sreq *rq)
{
	seen.broken_off++;
	saying_free(rq->arg);
}

/* A word with the blank before it. */
static struct hf_str
next_word(struct saying *s)
{
	const char *p = s->text.data + s->at;
	size_t left = s->text.size - s->at, n = 1;

	while (n < left && p[n] != ' ')
		n++;
	s->at += n;
	return (struct hf_str){ p, n };
}

static void
go_on(struct hf_sreq *rq)
{
	struct saying *s = rq->arg;

	while (s->at < s->text.size) {
		say(rq, next_word(s), NULL);
		if (s->ask.pace_ms > 0) {
			hf_sreq_after(rq, s->ask.pace_ms, go_on);
			return;
		}
	}
	say(rq, HF_STR(""), "\"stop\"");
	rq->gone = NULL;
	hf_sreq_end(rq);
	saying_free(s);
}

static void
on_request(void *arg, struct hf_sreq *rq)
{
	json_t *o = json_loadb(rq->body.p, rq->body.size, 0, NULL);
	struct saying *s = hf_xcalloc(1, sizeof(*s));
	const char *why;

	(void)arg;
	hf_buf_init(&s->text, HF_BUF_NOCAP);
	why = o == NULL ? "no JSON" :
			  hear(json_object_get(o, "messages"), &s->ask, &s->at);
	json_decref(o);
	seen.calls++;
	seen.continued += s->at > 0;
	if (why != NULL) {
		violation(why, rq->body);
		hf_sreq_reply(rq, 400, "", "application/json",
		    HF_STR("{\"error\":{\"message\":\"violation\"}}"));
		saying_free(s);
		return;
	}
	campaign_answer(&s->ask, &s->text);
	rq->arg = s;
	rq->gone = gone;
	hf_sreq_start(rq, 200, "", "text/event-stream");
	go_on(rq);
}

static void
on_stdin(evutil_socket_t fd, short what, void *arg)
{
	char b[64];

	(void)what;
	if (read(fd, b, sizeof(b)) <= 0)
		event_base_loopbreak(arg);
}

int
campaign_provider(void)
{
	struct event_base *base = event_base_new();
	struct hf_server *server;
	struct hf_error e = { 0 };
	struct event *in;

	HF_CHECK(base != NULL);
	if (hf_server_new(&server, base, "127.0.0.1:0", on_request, NULL, &e) <
	    0) {
		fprintf(stderr, "campaign: %s\n", e.text);
		return 1;
	}
	in =
	    event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, on_stdin, base);
	HF_CHECK(in != NULL && event_add(in, NULL) == 0);
	printf("%u\n", hf_server_port(server));
	fflush(stdout);
	event_base_dispatch(base);
	printf("{\"calls\":%lu,\"continued\":%lu,\"broken_off\":%lu,"
	       "\"violations\":%lu}\n",
	    seen.calls, seen.continued, seen.broken_off, seen.violations);
	event_free(in);
	hf_server_free(server);
	event_base_free(base);
	libevent_global_shutdown();
	return 0;
}
