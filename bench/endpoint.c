/*
 * What templates for gateways of others may say.  Pure.
 */
#include <config.h>

#include "bench/endpoint.h"

#include <stdlib.h>

#include "base/check.h"

static int
port_of(const char *url)
{
	const char *colon = url == NULL ? NULL : strrchr(url, ':');

	return colon == NULL ? 0 : atoi(colon + 1);
}

static json_t *
listener(const struct hf_listener_plan *l, const char *url)
{
	json_t *o = json_pack("{s:s,s:s,s:i,s:b,s:i,s:i}", "listener", l->name,
	    "url", url == NULL ? "" : url, "port", port_of(url), "fails",
	    (int)l->fails, "rpm", (int)l->rpm, "rpm_window_ms",
	    (int)l->rpm_window_ms);

	HF_CHECK(o != NULL);
	return o;
}

json_t *
hf_endpoint_listeners(const struct hf_suite *s, const char *const *url)
{
	json_t *out = json_array();

	for (unsigned i = 0; i < s->n_listener; i++)
		json_array_append_new(out,
		    listener(&s->listener[i], url == NULL ? NULL : url[i]));
	return out;
}

static json_t *
target(const struct hf_suite *s, const struct hf_target_plan *t,
    const char *const *url, bool later)
{
	json_t *o = listener(
	    &s->listener[t->listener], url == NULL ? NULL : url[t->listener]);

	json_object_set_new(o, "dialect", json_string(t->dialect));
	json_object_set_new(o,
	    strcmp(t->dialect, "openai") == 0 ? "openai" : "anthropic",
	    json_true());
	json_object_set_new(o, "model", json_string(t->model));
	json_object_set_new(o, "prefill", json_boolean(t->prefill));
	json_object_set_new(o, "later", json_boolean(later));
	return o;
}

json_t *
hf_endpoint_routes(const struct hf_suite *s, const char *const *url)
{
	json_t *out = json_array();

	for (unsigned i = 0; i < s->n_route; i++) {
		const struct hf_route_plan *r = &s->route[i];
		json_t *targets = json_array(), *o;

		for (unsigned k = 0; k < r->n_target; k++)
			json_array_append_new(
			    targets, target(s, &r->target[k], url, k > 0));
		o = json_pack("{s:s,s:s,s:o}", "route", r->name, "continuation",
		    r->continuation == NULL ? "" : r->continuation, "targets",
		    targets);
		HF_CHECK(o != NULL);
		json_array_append_new(out, o);
	}
	return out;
}

json_t *
hf_endpoint_scope(const struct hf_endpoint *e, const struct hf_play *p)
{
	json_t *o = e->base == NULL ? json_object() : json_copy(e->base);

	json_object_update(o, json_array_get(e->routes, p->c->route));
	json_object_set_new(o, "session", json_string(p->session));
	json_object_set_new(o, "play", json_string(p->user));
	json_object_set_new(o, "conversation", json_string(p->c->id));
	json_object_set_new(o, "run", json_integer((json_int_t)p->run + 1));
	json_object_set_new(
	    o, "turn", json_integer((json_int_t)p->n_answered + 1));
	return o;
}
