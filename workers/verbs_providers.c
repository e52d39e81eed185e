/*
 * The control verbs for providers and their targets: what they are and how
 * they do; disable, enable, trip, reset.  What is changed is changed in the
 * scoreboard, so that all workers go by it at once.
 */
#include <config.h>

#include "workers/verbs_int.h"

#include "base/clock.h"
#include "base/conf_show.h"
#include "base/target.h"
#include "workers/figures.h"
#include "workers/view.h"

#define NAME_MOST 512  /* bytes */
#define FOR_MOST 86400 /* seconds */

/* --- which ---------------------------------------------------------------- */

static int
arg_name(const json_t *args, const char **name, struct hf_error *e)
{
	int rc = hf_json_arg(args, "name", name, e);

	if (rc < 0)
		return rc;
	if (*name == NULL || **name == '\0' || strlen(*name) > NAME_MOST)
		return hf_fail(e, HF_EINVAL,
		    "args.name must name a provider, or a target as "
		    "provider/model");
	return 0;
}

static int
find_named(const struct hf_conf *c, struct hf_named *n, struct hf_error *e)
{
	for (unsigned i = 0; i < c->n_target; i++) {
		if (strcmp(c->target[i].name, n->name) == 0) {
			n->target = &c->target[i];
			n->provider = n->target->provider;
			return 0;
		}
	}
	for (unsigned i = 0; i < c->n_provider; i++) {
		if (strcmp(c->provider[i].name, n->name) == 0) {
			n->provider = &c->provider[i];
			return 0;
		}
	}
	return hf_fail(e, HF_ENOTFOUND,
	    "%.100s: no provider and no target of a route is called so",
	    n->name);
}

int
hf_verb_named(const struct hf_conf *c, const json_t *args, struct hf_named *n,
    struct hf_error *e)
{
	int rc;

	*n = (struct hf_named){ 0 };
	rc = arg_name(args, &n->name, e);
	return rc < 0 ? rc : find_named(c, n, e);
}

bool
hf_verb_is_named(const struct hf_named *n, const struct hf_conf_target *t)
{
	return n->target != NULL ? t == n->target : t->provider == n->provider;
}

/* --- showing -------------------------------------------------------------- */

/* What is told of a provider. */
struct telling {
	struct hf_verbs *v;
	const struct hf_conf *c;
	const struct hf_named *only; /* NULL: all its targets */
	bool settings;
};

static json_t *
routes_of(const struct hf_conf *c, const struct hf_conf_target *t)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < c->n_route; i++)
		for (unsigned k = 0; k < c->route[i].n_target; k++)
			if (c->route[i].target[k] == t)
				json_array_append_new(list,
				    hf_json_text(hf_str(c->route[i].name)));
	return list;
}

static json_t *
target_row(const struct telling *w, const struct hf_conf_target *t)
{
	json_t *o = json_pack("{s:o, s:o, s:i, s:i, s:i, s:i, s:o}", "name",
	    hf_json_text(hf_str(t->name)), "model",
	    hf_json_text(hf_str(t->model)), "connect_ms", t->call.connect_ms,
	    "first_token_ms", t->call.first_token_ms, "total_ms",
	    t->call.total_ms, "rpm", t->call.rpm, "routes", routes_of(w->c, t));

	if (o == NULL)
		return NULL;
	hf_figures_json(o, w->v->shm, t);
	if (w->settings)
		json_object_set_new(o, "settings", hf_settings_json(t));
	return o;
}

static json_t *
targets_of(const struct telling *w, const struct hf_conf_provider *p)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < w->c->n_target; i++) {
		const struct hf_conf_target *t = &w->c->target[i];

		if (t->provider == p &&
		    (w->only == NULL || hf_verb_is_named(w->only, t)))
			json_array_append_new(list, target_row(w, t));
	}
	return list;
}

static json_t *
provider_row(const struct telling *w, const struct hf_conf_provider *p)
{
	static const char *const dialect[] = {
		[HF_DIALECT_OPENAI] = "openai",
		[HF_DIALECT_ANTHROPIC] = "anthropic",
	};

	return json_pack("{s:o, s:s, s:o, s:b, s:o}", "name",
	    hf_json_text(hf_str(p->name)), "dialect", dialect[p->dialect],
	    "base_url", hf_json_text(hf_str(p->base_url)), "disabled",
	    hf_target_is_disabled_as(w->v->shm, p->name), "targets",
	    targets_of(w, p));
}

int
hf_verb_providers(struct hf_verbs *v, const json_t *args,
    struct hf_reply *reply, struct hf_error *e)
{
	struct hf_conf *c = NULL;
	struct telling w = { .v = v };
	int rc = hf_verb_conf(v, &c, e);

	(void)args;
	w.c = c;
	for (unsigned i = 0; rc == 0 && i < c->n_provider; i++)
		rc = hf_verb_send(
		    reply, "provider", provider_row(&w, &c->provider[i]), e);
	hf_conf_free(c);
	return rc;
}

/* Where the API key of a provider is kept, never the key. */
struct secret {
	const char *provider;
	json_t *row;
};

static int
on_setting(void *arg, const struct hf_conf_setting *s)
{
	struct secret *k = arg;

	if (strcmp(s->param->block, "provider") != 0 ||
	    strcmp(s->title, k->provider) != 0)
		return 0;
	if (hf_param_is_secret(s->param)) {
		json_object_set_new(
		    k->row, "api_key_key", json_string(s->param->key));
		json_object_set_new(
		    k->row, "api_key_from", hf_json_text(hf_str(s->value)));
	} else if (strcmp(s->param->key, "api_version") == 0) {
		json_object_set_new(
		    k->row, "api_version", hf_json_text(hf_str(s->value)));
	}
	return 0;
}

int
hf_verb_provider(struct hf_verbs *v, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	struct telling w = { .v = v, .settings = true };
	struct hf_conf *c = NULL;
	struct secret k = { 0 };
	struct hf_named n;
	int rc = hf_verb_conf(v, &c, e);

	w.c = c;
	w.only = &n;
	if (rc == 0)
		rc = hf_verb_named(c, args, &n, e);
	if (rc == 0) {
		k.provider = n.provider->name;
		k.row = provider_row(&w, n.provider);
		rc = k.row == NULL ?
		    hf_fail(e, HF_ENOMEM, "reply: out of memory") :
		    hf_conf_settings(
			v->config_path, v->config_text, on_setting, &k, e);
		if (rc == 0)
			rc = hf_verb_send(reply, "provider", k.row, e);
		else
			json_decref(k.row);
	}
	hf_conf_free(c);
	return rc;
}

/* --- changing ------------------------------------------------------------- */

static int
tell_changed(struct hf_verbs *v, const struct hf_conf *c,
    const struct hf_named *n, struct hf_reply *reply, struct hf_error *e)
{
	struct telling w = { .v = v, .c = c, .only = n };

	return hf_verb_send(
	    reply, "provider", provider_row(&w, n->provider), e);
}

struct known {
	const char *name;
	bool found;
};

static int
is_known(void *arg, const char *name, int64_t since_us, int64_t uid)
{
	struct known *k = arg;

	(void)since_us;
	(void)uid;
	k->found = k->found || strcmp(name, k->name) == 0;
	return 0;
}

/* What the configuration does not name any more can still be enabled. */
static int
enable_unnamed(struct hf_verbs *v, const char *name, struct hf_reply *reply,
    struct hf_error *e)
{
	struct hf_error why = *e;
	struct known k = { .name = name };
	int rc = hf_inspect_disabled(v->inspect, is_known, &k, e);

	if (rc == 0 && !k.found) {
		*e = why;
		return why.code;
	}
	if (rc == 0)
		rc = hf_keep_disable(v->keep, name, false, 0, e);
	if (rc == 0)
		rc = hf_target_disable(v->shm, name, false, e);
	if (rc == 0)
		rc = hf_verb_send(reply, "provider",
		    json_pack("{s:o, s:b, s:[]}", "name",
			hf_json_text(hf_str(name)), "disabled", 0, "targets"),
		    e);
	return rc;
}

/* On disk first: a flag that is told is one that a restart keeps. */
static int
disable(struct hf_verbs *v, const json_t *args, bool disabled,
    struct hf_reply *reply, struct hf_error *e)
{
	struct hf_conf *c = NULL;
	struct hf_named n = { 0 };
	int rc = hf_verb_conf(v, &c, e);

	if (rc == 0)
		rc = hf_verb_named(c, args, &n, e);
	if (rc == HF_ENOTFOUND && !disabled) {
		rc = enable_unnamed(v, n.name, reply, e);
		goto out;
	}
	if (rc == 0)
		rc = hf_keep_disable(
		    v->keep, n.name, disabled, hf_reply_peer(reply)->uid, e);
	if (rc == 0)
		rc = hf_target_disable(v->shm, n.name, disabled, e);
	if (rc == 0)
		rc = tell_changed(v, c, &n, reply, e);
out:
	hf_conf_free(c);
	return rc;
}

int
hf_verb_disable(struct hf_verbs *v, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	return disable(v, args, true, reply, e);
}

int
hf_verb_enable(struct hf_verbs *v, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	return disable(v, args, false, reply, e);
}

/* Seconds that a breaker is to be open; 0: as long as by itself. */
static int
arg_for(const json_t *args, int64_t *s, struct hf_error *e)
{
	const json_t *j = json_object_get(args, "for_s");

	*s = json_integer_value(j);
	if (j == NULL || json_is_null(j))
		return 0;
	if (json_is_integer(j) && *s >= 1 && *s <= FOR_MOST)
		return 0;
	return hf_fail(e, HF_EINVAL, "args.for_s must be 1 to %d", FOR_MOST);
}

/* 'trip_s' below 0: reset. */
static int
set_breakers(struct hf_verbs *v, const struct hf_conf *c,
    const struct hf_named *n, int64_t trip_s, struct hf_error *e)
{
	for (unsigned i = 0; i < c->n_target; i++) {
		const struct hf_conf_target *t = &c->target[i];
		int64_t now = hf_now_us();
		int64_t open_us = trip_s > 0 ?
		    trip_s * 1000000 :
		    (int64_t)t->call.breaker_open_ms * 1000;
		struct hf_target_row *r;

		if (!hf_verb_is_named(n, t))
			continue;
		r = hf_target_row(v->shm, t->name);
		if (r == NULL)
			return hf_fail(
			    e, HF_ELIMIT, "%s: has no breaker", t->name);
		if (trip_s < 0)
			hf_target_reset(r, now);
		else
			hf_breaker_trip(&r->breaker, now + open_us);
	}
	return 0;
}

static int
change_breakers(struct hf_verbs *v, const json_t *args, int64_t trip_s,
    struct hf_reply *reply, struct hf_error *e)
{
	struct hf_conf *c = NULL;
	struct hf_named n;
	int rc = hf_verb_conf(v, &c, e);

	if (rc == 0)
		rc = hf_verb_named(c, args, &n, e);
	if (rc == 0)
		rc = set_breakers(v, c, &n, trip_s, e);
	if (rc == 0)
		rc = tell_changed(v, c, &n, reply, e);
	hf_conf_free(c);
	return rc;
}

int
hf_verb_trip(struct hf_verbs *v, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	int64_t s;
	int rc = arg_for(args, &s, e);

	return rc < 0 ? rc : change_breakers(v, args, s, reply, e);
}

int
hf_verb_reset(struct hf_verbs *v, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	return change_breakers(v, args, -1, reply, e);
}
