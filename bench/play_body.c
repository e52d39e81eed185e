/*
 * What clients send.  Pure.
 */
#include <config.h>

#include "bench/play.h"

#include <jansson.h>

#include "base/check.h"
#include "bench/dialect.h"
#include "bench/endpoint.h"
#include "bench/fill.h"

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
messages(
    const struct hf_play_conf *conf, const struct hf_play *p, const char *said)
{
	unsigned turn = p->n_answered;
	bool full = conf->full_history || p->c->full;
	json_t *out = json_array();

	if (turn == 0 || full)
		json_array_append_new(out, message("system", p->system_text));
	for (unsigned i = 0; full && i < turn; i++) {
		json_array_append_new(out, sent(p, i));
		json_array_append_new(out, answered(p, i));
	}
	json_array_append_new(
	    out, said == NULL ? sent(p, turn) : message("user", said));
	return out;
}

/* "holdfast", or "holdfast-ROUTE"; or what the endpoint wants. */
static void
route_name(
    const struct hf_play_conf *conf, const struct hf_play *p, struct hf_buf *b)
{
	const struct hf_play_system *s = &conf->system[p->system];
	const char *route = conf->suite->route[p->c->route].name;
	json_t *scope;

	if (conf->endpoint != NULL && conf->endpoint->model != NULL &&
	    !s->control) {
		scope = hf_endpoint_scope(conf->endpoint, p);
		hf_fill(b, hf_str(conf->endpoint->model), scope);
		json_decref(scope);
		return;
	}

	hf_buf_puts(b, s->model);
	if (!s->any_route && route[0] != '\0')
		hf_buf_printf(b, "-%s", route);
}

void
hf_play_body(const struct hf_play_conf *conf, const struct hf_play *p,
    const char *said, struct hf_buf *out)
{
	struct hf_buf route;
	json_t *body;

	hf_buf_init(&route, HF_BUF_NOCAP);
	route_name(conf, p, &route);
	body = json_pack("{s:s,s:o,s:s,s:b}", "model", route.data, "messages",
	    messages(conf, p, said), "user", p->user, "stream",
	    conf->stream && !p->c->plain);
	HF_CHECK(body != NULL);
	if (conf->endpoint != NULL && conf->endpoint->no_user)
		json_object_del(body, "user");
	if (p->c->tools != NULL)
		json_object_set_new(
		    body, "tools", json_loads(p->c->tools, 0, NULL));
	hf_buf_json(out, body);
	json_decref(body);
	hf_buf_free(&route);
}
