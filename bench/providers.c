/*
 * The faithful providers at work: a request becomes a job, which is checked,
 * logged, and answered or failed as the manifest says.
 */
#include <config.h>

#include "bench/providers.h"

#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "bench/dialect.h"
#include "bench/server.h"

struct listener {
	struct hf_providers *p;
	struct hf_server *server;
	char name[16];
	struct listener *next;
};

struct hf_providers {
	struct hf_providers_conf conf;
	struct listener *listeners;
	json_t *attempts; /* "provider|user|turn" -> count */
	uint64_t serial;  /* of requests; makes ids unique */
};

/* One request being answered; freed when its answer ends. */
struct job {
	struct hf_providers *p;
	const struct hf_bench_dialect *d;
	struct hf_bench_fault fault;
	struct hf_stream stream;
	struct hf_buf plain;
	unsigned next; /* piece to send */
	bool streaming;
	char id[32];
};

static const struct hf_bench_dialect *const dialects[] = { &hf_bench_openai,
	&hf_bench_anthropic };

static void
job_free(struct hf_sreq *rq)
{
	struct job *j = rq->arg;

	rq->arg = NULL;
	if (j == NULL)
		return;
	hf_stream_free(&j->stream);
	hf_buf_free(&j->plain);
	free(j);
}

/* --- bad and good endings ------------------------------------------------ */

static void
send_refusal(struct hf_sreq *rq, const struct hf_refusal *r)
{
	struct job *j = rq->arg;
	char headers[160];
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	j->d->error(&b, r, j->id);
	snprintf(headers, sizeof(headers), "%s: req_%s\r\n",
	    j->d == &hf_bench_openai ? "x-request-id" : "request-id", j->id);
	if (j->fault.retry_after_s > 0)
		snprintf(headers + strlen(headers), 40, "Retry-After: %u\r\n",
		    j->fault.retry_after_s);
	job_free(rq);
	hf_sreq_reply(
	    rq, r->status, headers, "application/json", hf_buf_str(&b));
	hf_buf_free(&b);
}

static void
send_status(struct hf_sreq *rq)
{
	struct job *j = rq->arg;
	int status = hf_fault_status(j->fault.kind);
	struct hf_refusal r;

	if (status == 502) {
		job_free(rq);
		hf_sreq_reply(rq, 502, "", "text/html",
		    HF_STR("<html><head><title>502 Bad Gateway</title></head>"
			   "<body><center><h1>502 Bad Gateway</h1></center>"
			   "</body></html>\r\n"));
		return;
	}
	j->d->failure(status, &r);
	send_refusal(rq, &r);
}

static void
end_stream(struct hf_sreq *rq)
{
	struct job *j = rq->arg;
	enum hf_fault_kind kind = j->fault.kind;
	struct hf_refusal r;
	struct hf_buf b;

	if (kind == HF_FAULT_STALL)
		return;
	if (kind == HF_FAULT_CUT || kind == HF_FAULT_CUT_RESET) {
		job_free(rq);
		hf_sreq_close(rq, kind == HF_FAULT_CUT_RESET);
		return;
	}
	if (kind == HF_FAULT_STREAM_ERROR) {
		j->d->failure(j->d == &hf_bench_openai ? 500 : 529, &r);
		hf_buf_init(&b, HF_BUF_NOCAP);
		j->d->error_event(&b, &r);
		hf_sreq_chunk(rq, hf_buf_str(&b));
		hf_buf_free(&b);
	} else if (kind != HF_FAULT_NO_END) {
		hf_sreq_chunk(rq, hf_buf_str(&j->stream.tail));
	}
	job_free(rq);
	hf_sreq_end(rq);
}

static bool
cuts(const struct job *j)
{
	return j->fault.kind == HF_FAULT_CUT ||
	    j->fault.kind == HF_FAULT_CUT_RESET ||
	    j->fault.kind == HF_FAULT_STALL;
}

static unsigned
last_piece(const struct job *j)
{
	if ((cuts(j) || j->fault.kind == HF_FAULT_STREAM_ERROR) &&
	    j->fault.chunks < j->stream.n_piece)
		return j->fault.chunks;
	return j->stream.n_piece;
}

static void
send_pieces(struct hf_sreq *rq)
{
	struct job *j = rq->arg;
	unsigned last = last_piece(j);

	while (j->next < last) {
		hf_sreq_chunk(rq, hf_buf_str(&j->stream.piece[j->next++]));
		if (j->p->conf.chunk_ms > 0 && j->next < last) {
			hf_sreq_after(rq, j->p->conf.chunk_ms, send_pieces);
			return;
		}
	}
	end_stream(rq);
}

static void
send_plain(struct hf_sreq *rq)
{
	struct job *j = rq->arg;
	struct hf_buf plain = j->plain;
	struct hf_str body = hf_buf_str(&plain);
	struct hf_refusal r;

	hf_buf_init(&j->plain, 0);
	if (cuts(j)) {
		body.size /= 2;
		hf_sreq_start(rq, 200, "", "application/json");
		hf_sreq_chunk(rq, body);
		end_stream(rq);
	} else if (j->fault.kind == HF_FAULT_STREAM_ERROR) {
		j->d->failure(500, &r);
		send_refusal(rq, &r);
	} else {
		if (j->fault.kind == HF_FAULT_NO_END)
			body.size--;
		job_free(rq);
		hf_sreq_reply(rq, 200, "", "application/json", body);
	}
	hf_buf_free(&plain);
}

static void
send_answer(struct hf_sreq *rq)
{
	struct job *j = rq->arg;

	if (!j->streaming) {
		send_plain(rq);
		return;
	}
	hf_sreq_start(rq, 200, "Cache-Control: no-cache\r\n",
	    "text/event-stream; charset=utf-8");
	hf_sreq_chunk(rq, hf_buf_str(&j->stream.head));
	send_pieces(rq);
}

static void
act(struct hf_sreq *rq)
{
	struct job *j = rq->arg;

	switch (j->fault.kind) {
	case HF_FAULT_SILENCE:
		return;
	case HF_FAULT_HEADERS:
		hf_sreq_start(rq, 200, "",
		    j->streaming ? "text/event-stream; charset=utf-8" :
				   "application/json");
		return;
	case HF_FAULT_CLOSE:
	case HF_FAULT_RESET: {
		bool reset = j->fault.kind == HF_FAULT_RESET;

		job_free(rq);
		hf_sreq_close(rq, reset);
		return;
	}
	case HF_FAULT_SLOW:
		hf_sreq_after(rq, j->fault.delay_ms, send_answer);
		return;
	case HF_FAULT_GARBAGE:
		job_free(rq);
		hf_sreq_reply(rq, 200, "", "application/json",
		    HF_STR("{\"id\":\"chatcmpl-"));
		return;
	case HF_FAULT_HTTP_400:
	case HF_FAULT_HTTP_401:
	case HF_FAULT_HTTP_404:
	case HF_FAULT_HTTP_429:
	case HF_FAULT_HTTP_500:
	case HF_FAULT_HTTP_502:
	case HF_FAULT_HTTP_503:
	case HF_FAULT_HTTP_529:
		send_status(rq);
		return;
	case HF_FAULT_NONE:
	case HF_FAULT_CUT:
	case HF_FAULT_CUT_RESET:
	case HF_FAULT_STALL:
	case HF_FAULT_STREAM_ERROR:
	case HF_FAULT_NO_END:
	case HF_FAULT_COUNT:
		break;
	}
	send_answer(rq);
}

/* --- what the request is ------------------------------------------------- */

static unsigned
user_messages(json_t *view)
{
	json_t *m;
	size_t i;
	unsigned n = 0;

	json_array_foreach(view, i, m) n +=
	    hf_str_is(hf_json_str(json_object_get(m, "role")), "user");
	return n;
}

static const struct hf_conv *
find_conv(const struct hf_suite *s, json_t *view, struct hf_str user)
{
	const char *dot =
	    user.p == NULL ? NULL : memchr(user.p, '.', user.size);
	json_t *m;
	size_t i;

	if (s == NULL)
		return NULL;
	if (dot != NULL)
		return hf_suite_find(
		    s, (struct hf_str){ user.p, (size_t)(dot - user.p) });
	json_array_foreach(view, i,
	    m) for (unsigned k = 0; k < s->n_conv;
		    k++) if (hf_str_is(hf_json_str(json_object_get(m, "text")),
				 s->conv[k].user[0])) return &s->conv[k];
	return NULL;
}

static int
count_attempt(
    struct hf_providers *p, const char *provider, struct hf_str user, int turn)
{
	json_int_t n;
	struct hf_buf key;

	hf_buf_init(&key, HF_BUF_NOCAP);
	hf_buf_printf(&key, "%s|%d|", provider, turn);
	hf_buf_putstr(&key, user);
	n = json_integer_value(json_object_get(p->attempts, key.data)) + 1;
	json_object_set_new_nocheck(p->attempts, key.data, json_integer(n));
	hf_buf_free(&key);
	return (int)n;
}

static struct hf_bench_fault
choose_fault(struct hf_providers *p, const struct listener *l,
    struct hf_str user, json_t *view, json_t *entry)
{
	const struct hf_conv *c = find_conv(p->conf.suite, view, user);
	struct hf_fault_query q = {
		.provider = hf_str(l->name),
		.last_user = hf_view_last_user(view),
		.turn = (int)user_messages(view) - 1,
	};

	if (c != NULL) {
		int turn = hf_conv_turn(c, q.last_user);

		q.conversation = hf_str(c->id);
		if (turn >= 0)
			q.turn = turn;
	} else if (user.p != NULL) {
		const char *dot = memchr(user.p, '.', user.size);

		q.conversation = (struct hf_str){ user.p,
			dot == NULL ? user.size : (size_t)(dot - user.p) };
	}
	q.attempt = count_attempt(p, l->name,
	    user.p != NULL		 ? user :
		q.conversation.p != NULL ? q.conversation :
					   q.last_user,
	    q.turn);
	if (q.conversation.p != NULL)
		json_object_set_new(entry, "conversation",
		    json_stringn(q.conversation.p, q.conversation.size));
	json_object_set_new(entry, "turn", json_integer(q.turn));
	json_object_set_new(entry, "attempt", json_integer(q.attempt));
	return hf_manifest_match(p->conf.manifest, &q);
}

static void
write_log(struct hf_providers *p, json_t *entry)
{
	struct hf_buf b;

	if (p->conf.log == NULL)
		return;
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_json(&b, entry);
	hf_buf_putc(&b, '\n');
	HF_CHECK(hf_buf_ok(&b));
	fwrite(b.data, 1, b.size, p->conf.log);
	fflush(p->conf.log);
	hf_buf_free(&b);
}

/* --- answering ----------------------------------------------------------- */

static unsigned
tokens(struct hf_str s)
{
	return (unsigned)(s.size / 4 + 1);
}

static void
render(struct job *j, json_t *body, const struct hf_answer *a)
{
	json_t *opts = json_object_get(body, "stream_options");
	struct hf_reply r = {
		.id_tail = j->id,
		.model = json_string_value(json_object_get(body, "model")),
		.created_s = time(NULL),
		.answer = a,
		.usage = json_is_true(json_object_get(opts, "include_usage")),
		.output_tokens = tokens(hf_str(a->text)),
	};
	struct hf_buf in;

	hf_buf_init(&in, HF_BUF_NOCAP);
	hf_buf_json(&in, json_object_get(body, "messages"));
	r.input_tokens = tokens(hf_buf_str(&in));
	hf_buf_free(&in);
	if (j->streaming)
		j->d->stream(&j->stream, &r);
	else
		j->d->plain(&j->plain, &r);
}

static json_t *
text_or_null(const char *text)
{
	return text == NULL ? json_null() : json_string(text);
}

static void
answer(struct hf_providers *p, struct listener *l, struct hf_sreq *rq,
    json_t *body, json_t *entry)
{
	struct job *j = rq->arg;
	struct hf_str user = j->d->user(body);
	json_t *view = j->d->view(body), *tools = j->d->tools(body);
	struct hf_answer a = { 0 };
	int status;

	j->streaming = json_is_true(json_object_get(body, "stream"));
	json_object_set(entry, "model", json_object_get(body, "model"));
	json_object_set_new(entry, "stream", json_boolean(j->streaming));
	json_object_set_new(entry, "user",
	    user.p == NULL ? json_null() : json_stringn(user.p, user.size));
	j->fault = choose_fault(p, l, user, view, entry);
	hf_answer_make(&a, view, tools,
	    p->conf.suite == NULL ? NULL : p->conf.suite->lore);
	render(j, body, &a);
	status = hf_fault_status(j->fault.kind);
	json_object_set_new(
	    entry, "fault", json_string(hf_fault_name(j->fault.kind)));
	json_object_set_new(
	    entry, "status", json_integer(status > 0 ? status : 200));
	json_object_set(entry, "messages", view);
	json_object_set_new(entry, "answer",
	    text_or_null(j->fault.kind == HF_FAULT_NONE ||
			j->fault.kind == HF_FAULT_SLOW ?
		    a.text :
		    NULL));
	if (a.calls != NULL)
		json_object_set(entry, "calls", a.calls);
	hf_answer_free(&a);
	json_decref(view);
	json_decref(tools);
	write_log(p, entry);
	act(rq);
}

static void
on_call(
    struct listener *l, struct hf_sreq *rq, const struct hf_bench_dialect *d)
{
	struct hf_providers *p = l->p;
	struct hf_bench_headers h = {
		.authorization = hf_sreq_header(rq, "Authorization"),
		.x_api_key = hf_sreq_header(rq, "x-api-key"),
		.anthropic_version = hf_sreq_header(rq, "anthropic-version"),
		.content_type = hf_sreq_header(rq, "Content-Type"),
	};
	json_t *body = json_loadb(rq->body.p, rq->body.size,
	    JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	json_t *entry = json_pack("{s:I,s:s,s:s}", "t_us",
	    (json_int_t)hf_wall_us(), "provider", l->name, "dialect", d->name);
	struct job *j = hf_xcalloc(1, sizeof(*j));
	struct hf_refusal r;

	j->p = p;
	j->d = d;
	hf_stream_init(&j->stream);
	hf_buf_init(&j->plain, HF_BUF_NOCAP);
	snprintf(j->id, sizeof(j->id), "hf%llx%06llx",
	    (unsigned long long)time(NULL), (unsigned long long)++p->serial);
	rq->arg = j;
	rq->gone = job_free;
	if (d->check(&h, body, &r) != 0) {
		json_object_set_new(entry, "status", json_integer(r.status));
		json_object_set_new(entry, "refused", json_string(r.message));
		write_log(p, entry);
		send_refusal(rq, &r);
	} else {
		answer(p, l, rq, body, entry);
	}
	json_decref(entry);
	json_decref(body);
}

static void
on_request(void *arg, struct hf_sreq *rq)
{
	struct listener *l = arg;

	for (unsigned i = 0; i < hf_countof(dialects); i++) {
		if (!hf_str_is(rq->path, dialects[i]->path))
			continue;
		if (!hf_str_is(rq->method, "POST")) {
			hf_sreq_reply(rq, 405, "Allow: POST\r\n", "text/plain",
			    HF_STR("method not allowed\n"));
			return;
		}
		on_call(l, rq, dialects[i]);
		return;
	}
	if (hf_str_is(rq->path, "/v1/models")) {
		hf_sreq_reply(rq, 200, "", "application/json",
		    HF_STR(
			"{\"object\":\"list\",\"data\":[{\"id\":\"faithful\","
			"\"object\":\"model\",\"created\":1790000000,"
			"\"owned_by\":\"continuitybench\"}]}"));
		return;
	}
	hf_sreq_reply(rq, 404, "", "application/json",
	    HF_STR("{\"error\":{\"message\":\"Invalid URL\",\"type\":"
		   "\"invalid_request_error\",\"param\":null,\"code\":null}}"));
}

/* --- life ---------------------------------------------------------------- */

struct hf_providers *
hf_providers_new(const struct hf_providers_conf *c)
{
	struct hf_providers *p = hf_xcalloc(1, sizeof(*p));

	p->conf = *c;
	p->attempts = json_object();
	return p;
}

int
hf_providers_listen(struct hf_providers *p, const char *spec, unsigned *port,
    struct hf_error *e)
{
	const char *eq = strchr(spec, '=');
	struct listener *l;
	int rc;

	if (eq == NULL || eq == spec || (size_t)(eq - spec) >= sizeof(l->name))
		return hf_fail(
		    e, HF_EINVAL, "%s: expected NAME=ADDRESS:PORT", spec);
	l = hf_xcalloc(1, sizeof(*l));
	l->p = p;
	memcpy(l->name, spec, (size_t)(eq - spec));
	rc = hf_server_new(&l->server, p->conf.base, eq + 1, on_request, l, e);
	if (rc != 0) {
		free(l);
		return rc;
	}
	*port = hf_server_port(l->server);
	l->next = p->listeners;
	p->listeners = l;
	return 0;
}

void
hf_providers_free(struct hf_providers *p)
{
	struct listener *l;

	if (p == NULL)
		return;
	while ((l = p->listeners) != NULL) {
		p->listeners = l->next;
		hf_server_free(l->server);
		free(l);
	}
	json_decref(p->attempts);
	free(p);
}
