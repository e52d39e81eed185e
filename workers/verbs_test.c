/*
 * The control verb that tests targets: one small real call each, made by this
 * process while it serves everybody else, told as each of them ends.
 */
#include <config.h>

#include "workers/verbs_int.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/target.h"
#include "gateway/gateway.h"
#include "workers/view.h"

#define CALLS_MOST 16 /* of one command */
#define ALL_MOST 32   /* at a time */

struct test;

struct one {
	struct test *test;
	struct hf_probe *probe; /* NULL: not under way */
};

struct test {
	struct hf_verbs *v;
	struct hf_reply *reply;
	struct hf_conf *conf; /* with its secrets, until the end */
	struct one call[CALLS_MOST];
	unsigned n, running;
};

static void
drop(void *state)
{
	struct test *w = state;

	for (unsigned i = 0; i < w->n; i++)
		if (w->call[i].probe != NULL)
			hf_probe_cancel(w->call[i].probe);
	w->v->n_tests -= w->running;
	hf_conf_free(w->conf);
	free(w);
}

static int
send_result(struct test *w, const struct hf_probe_result *r, struct hf_error *e)
{
	bool ok = r->cls == HF_CLASS_NONE;

	return hf_verb_send(w->reply, "test",
	    json_pack("{s:o, s:b, s:s, s:s, s:b, s:i, s:s, s:I, s:I, s:I, s:I, "
		      "s:I, s:I, s:o}",
		"target", hf_json_text(hf_str(r->target)), "ok", ok, "result",
		hf_class_name(r->cls), "reason", r->reason, "timed_out",
		r->timed_out, "status", r->http_status, "address", r->address,
		"resolved_us", (json_int_t)r->resolved_us, "connected_us",
		(json_int_t)r->connected_us, "secured_us",
		(json_int_t)r->secured_us, "first_token_us",
		(json_int_t)r->first_token_us, "total_us",
		(json_int_t)r->total_us, "retry_after_ms",
		(json_int_t)r->retry_after_ms, "text", hf_json_text(r->text)),
	    e);
}

static void
on_result(void *arg, const struct hf_probe_result *r)
{
	struct one *one = arg;
	struct test *w = one->test;
	struct hf_error e = { 0 };
	int rc = send_result(w, r, &e);

	one->probe = NULL;
	w->running--;
	w->v->n_tests--;
	if (rc < 0 || w->running == 0)
		hf_reply_end(w->reply, rc, &e);
}

/* A call more than the provider lets us would be refused, and cost a turn its
 * place. */
static bool
has_room(struct test *w, const struct hf_conf_target *t)
{
	return hf_target_slip_in(
	    hf_target_row(w->v->shm, t->name), &t->call, hf_now_us());
}

static int
start_one(struct test *w, const struct hf_conf_target *t, struct hf_error *e)
{
	struct one *one = &w->call[w->n];
	int rc;

	if (!has_room(w, t)) {
		const struct hf_probe_result r = { .target = t->name,
			.cls = HF_CLASS_CAPACITY,
			.reason = "no_room",
			.resolved_us = -1,
			.connected_us = -1,
			.secured_us = -1,
			.first_token_us = -1,
			.retry_after_ms = -1,
			.text = HF_STR("not called: its rpm, or what its "
				       "provider asked for, leaves no room "
				       "now") };

		return send_result(w, &r, e);
	}
	one->test = w;
	rc = hf_probe_start(w->v->base, t, on_result, one, &one->probe, e);
	if (rc < 0)
		return hf_error_prefix(e, t->name);
	w->n++;
	w->running++;
	w->v->n_tests++;
	return 0;
}

static int
start_all(struct test *w, const struct hf_named *n, struct hf_error *e)
{
	unsigned found = 0;
	int rc = 0;

	for (unsigned i = 0; i < w->conf->n_target; i++)
		found += hf_verb_is_named(n, &w->conf->target[i]);
	if (found == 0)
		return hf_fail(e, HF_ENOTFOUND,
		    "%.100s: no route names a target of it", n->name);
	if (found > CALLS_MOST)
		return hf_fail(e, HF_ELIMIT,
		    "%.100s has %u targets, and at most %d are tested at a "
		    "time: name one",
		    n->name, found, CALLS_MOST);
	if (w->v->n_tests + found > ALL_MOST)
		return hf_fail(e, HF_EBUSY, "too many tests are under way");
	for (unsigned i = 0; rc == 0 && i < w->conf->n_target; i++)
		if (hf_verb_is_named(n, &w->conf->target[i]))
			rc = start_one(w, &w->conf->target[i], e);
	return rc;
}

int
hf_verb_provider_test(struct hf_verbs *v, const json_t *args,
    struct hf_reply *reply, struct hf_error *e)
{
	struct test *w = calloc(1, sizeof(*w));
	struct hf_named n;
	int rc;

	if (w == NULL)
		return hf_fail(e, HF_ENOMEM, "out of memory");
	w->v = v;
	w->reply = reply;
	rc = v->config_text == NULL ?
	    hf_fail(e, HF_EBUSY, "the running configuration is not known") :
	    hf_conf_parse(v->config_path, v->config_text, &w->conf, e);
	if (rc == 0)
		rc = hf_verb_named(w->conf, args, &n, e);
	if (rc == 0)
		rc = start_all(w, &n, e);
	if (rc == 0 && w->running > 0)
		hf_reply_wait(reply, drop, w);
	else
		drop(w);
	return rc;
}
