/*
 * The faithful providers at work: a request becomes a job, which is checked,
 * logged, and answered or failed as the manifest says.
 */
#include <config.h>

#include "bench/providers.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "bench/faults.h"
#include "bench/job.h"
#include "bench/resume.h"
#include "bench/window.h"

/* How long connections are refused after one was, unless it is told. */
#define REFUSED_MS 1000

struct listener {
	struct hf_providers *p;
	struct hf_server *server;
	char name[16];
	struct listener *next;
};

struct hf_providers {
	struct hf_providers_conf conf;
	struct listener *listeners;
	struct hf_faults *faults;
	json_t *attempts; /* "provider|user|turn" -> count */
	uint64_t serial;  /* of requests; makes ids unique */
};

static const struct hf_bench_dialect *const dialects[] = { &hf_bench_openai,
	&hf_bench_anthropic, &hf_bench_gemini };

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

/* Whose request it is: the end user's id, or, of gateways that do not pass it
 * on, what stands before '~' in the model's name. */
static struct hf_str
find_user(const struct hf_bench_dialect *d, json_t *body, json_t *asked)
{
	struct hf_str user = d->user(body), model = hf_json_str(asked);
	const char *mark = user.p != NULL || model.p == NULL ?
	    NULL :
	    memchr(model.p, '~', model.size);

	return mark == NULL ?
	    user :
	    (struct hf_str){ model.p, (size_t)(mark - model.p) };
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

/* Notes in 'entry' whose request this is, and finds how it fails; a request
 * that is refused is no attempt. */
static struct hf_bench_fault
choose_fault(struct hf_providers *p, const struct listener *l,
    struct hf_str user, json_t *view, bool refused, json_t *entry)
{
	const struct hf_conv *c = find_conv(p->conf.suite, view, user);
	struct hf_fault_query q = {
		.provider = hf_str(l->name),
		.model = hf_json_str(json_object_get(entry, "model")),
		.last_user = hf_view_last_user(view),
		.turn = (int)user_messages(view) - 1,
	};

	if (c != NULL) {
		int turn = hf_conv_view_turn(c, view);

		q.conversation = hf_str(c->id);
		if (turn >= 0)
			q.turn = turn;
	} else if (user.p != NULL) {
		const char *dot = memchr(user.p, '.', user.size);

		q.conversation = (struct hf_str){ user.p,
			dot == NULL ? user.size : (size_t)(dot - user.p) };
	}
	if (!refused)
		q.attempt = count_attempt(p, l->name,
		    user.p != NULL		 ? user :
			q.conversation.p != NULL ? q.conversation :
						   q.last_user,
		    q.turn);
	json_object_set_new(entry, "user",
	    user.p == NULL ? json_null() : json_stringn(user.p, user.size));
	if (q.conversation.p != NULL)
		json_object_set_new(entry, "conversation",
		    json_stringn(q.conversation.p, q.conversation.size));
	json_object_set_new(entry, "turn", json_integer(q.turn));
	json_object_set_new(entry, "attempt", json_integer(q.attempt));
	json_object_set(entry, "messages", view);
	if (refused)
		return (struct hf_bench_fault){ .kind = HF_FAULT_NONE };
	return hf_faults_choose(p->faults, &q, hf_now_us());
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
render(struct hf_job *j, json_t *body, json_t *view, const char *model,
    const struct hf_answer *a)
{
	static char nothing_text[] = "";
	static const struct hf_answer nothing = { nothing_text, NULL };
	json_t *opts = json_object_get(body, "stream_options");
	struct hf_reply r = {
		.id_tail = j->id,
		.model = model,
		.created_s = time(NULL),
		.answer = a,
		.usage = json_is_true(json_object_get(opts, "include_usage")),
		.output_tokens = tokens(hf_str(a->text)),
		.split = hf_stream_split(a, &j->fault),
		.array = j->array,
	};
	struct hf_buf in;

	if (j->fault.kind == HF_FAULT_EMPTY)
		r.answer = &nothing;
	hf_buf_init(&in, HF_BUF_NOCAP);
	hf_buf_json(&in, body);
	r.input_tokens = tokens(hf_buf_str(&in));
	hf_buf_free(&in);
	if (hf_model_window(hf_str(model)) > 0)
		r.input_tokens = hf_count_view(view);
	if (!j->streaming) {
		j->d->plain(&j->plain, &r);
		return;
	}
	j->d->stream(&j->stream, &r);
	j->cut = hf_stream_cut(&j->stream, &j->fault, &r.split);
}

static json_t *
text_or_null(const char *text)
{
	return text == NULL ? json_null() : json_string(text);
}

/* What is said, and how it fails. */
static void
log_answer(const struct hf_job *j, const struct hf_resumed *r, json_t *entry)
{
	int status = hf_fault_status(j->fault.kind);
	bool whole = hf_fault_is_harmless(j->fault.kind);

	json_object_set_new(
	    entry, "fault", json_string(hf_fault_name(j->fault.kind)));
	if (hf_fault_in_stream(j->fault.kind)) {
		json_object_set_new(
		    entry, "phase", json_string(hf_phase_name(j->fault.phase)));
		json_object_set_new(
		    entry, "sent", json_integer((json_int_t)j->cut.text));
	}
	json_object_set_new(
	    entry, "status", json_integer(status > 0 ? status : 200));
	json_object_set_new(
	    entry, "asked", json_string(hf_asked_name(r->asked)));
	json_object_set_new(
	    entry, "repeated", json_integer((json_int_t)r->repeated));
	json_object_set_new(entry, "would", text_or_null(r->answer.text));
	json_object_set_new(
	    entry, "answer", text_or_null(whole ? r->answer.text : NULL));
	if (r->answer.calls != NULL)
		json_object_set(entry, "calls", r->answer.calls);
}

static void
answer(struct hf_providers *p, struct listener *l, struct hf_sreq *rq,
    json_t *body, json_t *entry)
{
	struct hf_job *j = rq->arg;
	json_t *view = j->d->view(body), *tools = j->d->tools(body);
	json_t *model = json_object_get(entry, "model");
	struct hf_resumed r;

	j->streaming = json_is_true(json_object_get(entry, "stream"));
	j->array = j->d == &hf_bench_gemini &&
	    (rq->query.p == NULL ||
		memmem(rq->query.p, rq->query.size, "alt=sse", 7) == NULL);
	j->chunk_ms = p->conf.chunk_ms;
	j->alarm_fd = p->conf.alarm_fd;
	j->fault = choose_fault(
	    p, l, find_user(j->d, body, model), view, false, entry);
	if (j->fault.kind == HF_FAULT_REFUSED)
		hf_server_refuse(l->server,
		    j->fault.delay_ms > 0 ? j->fault.delay_ms : REFUSED_MS);
	hf_answer_resume(&r, view, tools,
	    p->conf.suite == NULL ? NULL : p->conf.suite->lore,
	    hf_json_str(model));
	render(j, body, view, json_string_value(model), &r.answer);
	log_answer(j, &r, entry);
	if (j->fault.kind == HF_FAULT_ALARM)
		snprintf(j->user, sizeof(j->user), "%.*s",
		    HF_STR_ARG(j->d->user(body)));
	hf_answer_free(&r.answer);
	json_decref(view);
	json_decref(tools);
	write_log(p, entry);
	hf_job_run(rq);
}

/* The request is not one that the real service takes. */
static void
refuse(struct hf_providers *p, struct listener *l, struct hf_sreq *rq,
    json_t *body, json_t *entry, const struct hf_refusal *r)
{
	struct hf_job *j = rq->arg;
	struct hf_str user =
	    find_user(j->d, body, json_object_get(entry, "model"));
	json_t *view;

	if (user.p != NULL)
		json_object_set_new(
		    entry, "user", json_stringn(user.p, user.size));
	json_object_set_new(entry, "status", json_integer(r->status));
	json_object_set_new(entry, "refused", json_string(r->message));
	if (r->prefill || r->window > 0) {
		/* Only its last message, or its size, is wrong: it is
		 * somebody's. */
		view = j->d->view(body);
		(void)choose_fault(p, l, user, view, true, entry);
		json_decref(view);
	}
	if (r->prefill)
		json_object_set_new(entry, "asked",
		    json_string(hf_asked_name(HF_ASKED_PREFILL)));
	if (r->window > 0)
		json_object_set_new(
		    entry, "window", json_integer((json_int_t)r->window));
	write_log(p, entry);
	hf_job_refuse(rq, r);
}

static bool
is_too_long(const struct hf_bench_dialect *d, struct hf_str model, json_t *body,
    struct hf_refusal *r)
{
	json_t *view = d->view(body);
	int rc = hf_window_check(d, model, body, view, r);

	json_decref(view);
	return rc != 0;
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
		.x_goog_api_key = hf_sreq_header(rq, "x-goog-api-key"),
		.path = rq->path,
		.query = rq->query,
	};
	json_t *body = json_loadb(rq->body.p, rq->body.size,
	    JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	json_t *entry = json_pack("{s:I,s:s,s:s}", "t_us",
	    (json_int_t)hf_wall_us(), "provider", l->name, "dialect", d->name);
	struct hf_str model = d->model(&h, body);
	struct hf_refusal r;

	hf_job_new(rq, d, ++p->serial);
	if (model.p != NULL)
		json_object_set_new(
		    entry, "model", json_stringn(model.p, model.size));
	json_object_set_new(
	    entry, "stream", json_boolean(d->streams(&h, body)));
	if (d->check(&h, body, &r) != 0 || is_too_long(d, model, body, &r))
		refuse(p, l, rq, body, entry, &r);
	else
		answer(p, l, rq, body, entry);
	json_decref(entry);
	json_decref(body);
}

static void
on_request(void *arg, struct hf_sreq *rq)
{
	struct listener *l = arg;

	for (unsigned i = 0; i < hf_countof(dialects); i++) {
		if (!dialects[i]->is_path(rq->path))
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
	p->faults = hf_faults_new(c->manifest);
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
	for (unsigned i = 0; i < p->conf.manifest->n_row; i++) {
		const struct hf_fault_row *r = &p->conf.manifest->row[i];

		if (hf_fault_row_is_dead(r) &&
		    (r->provider[0] == '\0' ||
			strcmp(r->provider, l->name) == 0))
			hf_server_refuse(l->server, 0);
	}
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
	hf_faults_free(p->faults);
	free(p);
}
