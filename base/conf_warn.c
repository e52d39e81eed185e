/*
 * What a configuration allows but hardly means.
 */
#include <config.h>

#include "base/conf_show.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/conf_int.h"

struct warn {
	const struct hf_conf_raw *raw;
	const struct hf_conf *c;
	hf_conf_warning_fn fn;
	void *arg;
};

static HF_PRINTF(3, 4) void say(
    const struct warn *w, int line, const char *fmt, ...)
{
	char what[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	w->fn(w->arg, line, what);
}

static const struct hf_conf_block *
block_of(const struct warn *w, const char *name, const char *title)
{
	for (const struct hf_conf_block *k = w->raw->block; k != NULL;
	     k = k->next)
		if (strcmp(k->name, name) == 0 &&
		    (title == NULL || strcmp(k->title, title) == 0))
			return k;
	return NULL;
}

/* The line of a key, or of its block; 0: neither is in the file. */
static int
line_of(
    const struct warn *w, const char *name, const char *title, const char *key)
{
	const struct hf_conf_block *k = block_of(w, name, title);

	for (const struct hf_conf_set *s = k == NULL ? NULL : k->set; s != NULL;
	     s = s->next)
		if (strcmp(s->param->key, key) == 0)
			return s->line;
	return k == NULL ? 0 : k->line;
}

/* Does this host (and what follows it) name this machine itself? */
static bool
is_loopback(const char *host)
{
	return strncmp(host, "127.", 4) == 0 ||
	    strncmp(host, "[::1]", 5) == 0 ||
	    (strncmp(host, "localhost", 9) == 0 &&
		strchr(":/", host[9]) != NULL);
}

static void
check_key_file(
    const struct warn *w, int line, const char *what, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && (st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		say(w, line,
		    "%s: %s can be used by others than its owner "
		    "(mode %03o)",
		    what, path, st.st_mode & 0777u);
}

static void
check_gateway(const struct warn *w)
{
	const struct hf_conf_gateway *g = &w->c->gateway;

	for (unsigned i = 0; i < g->n_listen; i++)
		if (!is_loopback(g->listen[i]))
			say(w, line_of(w, "gateway", NULL, "listen"),
			    "gateway.listen: %s is not a loopback address: "
			    "clients are served there without TLS, once an "
			    "API key exists",
			    g->listen[i]);
	if (g->master_key_credential == NULL)
		check_key_file(w,
		    line_of(w, "gateway", NULL, "master_key_file"),
		    "gateway.master_key_file", g->master_key_file);
	if (w->c->n_route == 0)
		say(w, 0, "there is no route: every request will be refused");
}

static bool
is_used(const struct warn *w, const struct hf_conf_provider *p)
{
	for (unsigned i = 0; i < w->c->n_target; i++)
		if (w->c->target[i].provider == p)
			return true;
	return false;
}

static void
check_provider(const struct warn *w, const struct hf_conf_provider *p)
{
	const struct hf_conf_block *k = block_of(w, "provider", p->name);
	bool has_key = false;

	for (const struct hf_conf_set *s = k == NULL ? NULL : k->set; s != NULL;
	     s = s->next) {
		if (strncmp(s->param->key, "api_key_", 8) != 0)
			continue;
		has_key = true;
		if (strcmp(s->param->key, "api_key_file") == 0)
			check_key_file(
			    w, s->line, "provider.api_key_file", s->value);
	}
	if (!is_used(w, p))
		say(w, k == NULL ? 0 : k->line,
		    "provider %s: no route has a target of it", p->name);
	if (strncmp(p->base_url, "http://", 7) == 0 &&
	    !is_loopback(p->base_url + 7))
		say(w, line_of(w, "provider", p->name, "base_url"),
		    "provider %s: conversations%s go to another machine "
		    "without TLS",
		    p->name, has_key ? " and the key" : "");
	if (strncmp(p->base_url, "https://", 8) == 0 && !has_key)
		say(w, k == NULL ? 0 : k->line,
		    "provider %s: there is no api_key_file, api_key_env or "
		    "api_key_credential",
		    p->name);
}

static void
check_route(const struct warn *w, const struct hf_conf_route *r)
{
	const char *name = r->name;

	if (r->n_target == 1)
		say(w, line_of(w, "route", name, "targets"),
		    "route %s: there is one target, so nothing to fail over "
		    "to",
		    name);
	for (unsigned i = 0; i < r->n_target; i++) {
		const struct hf_conf_call *c = &r->target[i]->call;

		if (c->total_ms > r->deadline_ms)
			say(w, line_of(w, "route", name, "deadline_ms"),
			    "route %s: an attempt of %s may take %d ms, the "
			    "whole turn only %d ms",
			    name, r->target[i]->name, c->total_ms,
			    r->deadline_ms);
		if (c->first_token_ms == 0 && r->n_target > 1)
			say(w, line_of(w, "route", name, "targets"),
			    "route %s: first_token_ms of %s is 0, so its "
			    "silence ends only after total_ms (%d)",
			    name, r->target[i]->name, c->total_ms);
	}
	if (r->failover_payload != HF_PAYLOAD_FULL)
		say(w, line_of(w, "route", name, "failover_payload"),
		    "route %s: later targets are not told the conversation; "
		    "this is for measurements",
		    name);
}

/* The line of a key of a target, or of its provider. */
static int
call_line(const struct warn *w, const struct hf_conf_target *t, const char *key)
{
	int line = line_of(w, "target", t->name, key);

	return line != 0 ? line :
			   line_of(w, "provider", t->provider->name, key);
}

static void
check_target(const struct warn *w, const struct hf_conf_target *t)
{
	const struct hf_conf_call *c = &t->call;

	if (c->first_token_ms >= c->total_ms)
		say(w, call_line(w, t, "first_token_ms"),
		    "target %s: first_token_ms (%d) is not below "
		    "total_ms (%d), which ends the attempt before",
		    t->name, c->first_token_ms, c->total_ms);
	if (c->first_token_ms > 0 && c->hedge_after_ms >= c->first_token_ms)
		say(w, call_line(w, t, "hedge_after_ms"),
		    "target %s: hedge_after_ms (%d) is not below "
		    "first_token_ms (%d), which ends the attempt before",
		    t->name, c->hedge_after_ms, c->first_token_ms);
	if (c->context_window > 0 &&
	    c->max_output_tokens > c->context_window / 4)
		say(w, call_line(w, t, "context_window"),
		    "target %s: of a context_window of %d a quarter is kept "
		    "for answers, which is less than max_output_tokens (%d)",
		    t->name, c->context_window, c->max_output_tokens);
}

int
hf_conf_warnings(const char *name, const char *text, hf_conf_warning_fn fn,
    void *arg, struct hf_error *e)
{
	struct hf_conf_raw raw;
	struct warn w = { .raw = &raw, .fn = fn, .arg = arg };
	struct hf_conf *c = NULL;
	struct hf_arena a;
	int rc;

	hf_arena_init(&a, HF_CONF_MAX_ARENA);
	rc = hf_conf_parse_public(name, text, &c, e);
	if (rc == 0)
		rc = hf_conf_raw_parse(&raw, name, text, &a, e);
	if (rc == 0) {
		w.c = c;
		check_gateway(&w);
		for (unsigned i = 0; i < c->n_provider; i++)
			check_provider(&w, &c->provider[i]);
		for (unsigned i = 0; i < c->n_target; i++)
			check_target(&w, &c->target[i]);
		for (unsigned i = 0; i < c->n_route; i++)
			check_route(&w, &c->route[i]);
	}
	hf_conf_free(c);
	hf_arena_free(&a);
	return rc;
}
