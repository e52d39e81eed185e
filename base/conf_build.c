/*
 * Third step: from blocks of values to the structs of conf.h, with the checks
 * that need more than one value.  Everything is allocated in the arena of the
 * configuration.
 */
#include <config.h>

#include "base/conf_int.h"

struct build {
	const struct hf_conf_raw *raw;
	struct hf_conf *c;
	struct hf_arena *a;
	struct hf_error *e;
	enum hf_conf_depth depth;
};

static int
fail(struct build *b, const struct hf_conf_block *k, const char *key, int line,
    const char *what)
{
	return hf_conf_fail(b->e, b->raw->file, line,
	    k == NULL ? NULL : k->name, key, "%s", what);
}

static int
no_memory(struct build *b)
{
	return hf_fail(b->e, HF_ENOMEM, "no memory for the configuration");
}

static const struct hf_conf_set *
find_set(const struct hf_conf_block *k, const char *key)
{
	const struct hf_conf_set *s;

	for (s = k == NULL ? NULL : k->set; s != NULL; s = s->next)
		if (strcmp(s->param->key, key) == 0)
			return s;
	return NULL;
}

/* The next value of the same list. */
static const struct hf_conf_set *
next_set(const struct hf_conf_set *s)
{
	const struct hf_param *p = s->param;

	do
		s = s->next;
	while (s != NULL && s->param != p);
	return s;
}

static unsigned
count_sets(const struct hf_conf_set *s)
{
	unsigned n = 0;

	for (; s != NULL; s = next_set(s))
		n++;
	return n;
}

static unsigned
count_blocks(const struct build *b, const char *name)
{
	unsigned n = 0;

	for (const struct hf_conf_block *k = b->raw->block; k != NULL;
	     k = k->next)
		if (strcmp(k->name, name) == 0)
			n++;
	return n;
}

/* The next block of this name after 'k' (NULL: the first). */
static const struct hf_conf_block *
next_block(
    const struct build *b, const struct hf_conf_block *k, const char *name)
{
	for (k = k == NULL ? b->raw->block : k->next; k != NULL; k = k->next)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

/* Set one key of the struct at 'base': from the block (may be NULL), else
 * its default. */
static int
fill_key(struct build *b, const struct hf_conf_block *k,
    const struct hf_param *p, void *base)
{
	const struct hf_conf_set *s = find_set(k, p->key);
	struct hf_error detail = { 0 };
	int rc;

	if (s == NULL && (p->flags & HF_P_REQUIRED) != 0)
		return fail(b, k, p->key, k == NULL ? 1 : k->line,
		    "missing; it is required");
	if (hf_param_is_list(p) || (s == NULL && p->def == NULL) ||
	    (hf_param_is_secret(p) && b->depth != HF_CONF_WHOLE))
		return 0;
	rc = hf_conf_value(
	    p, s == NULL ? p->def : s->value, base, b->a, &detail);
	if (rc == HF_ENOMEM)
		return no_memory(b);
	if (rc != 0)
		return fail(b, k, p->key, s == NULL ? 1 : s->line, detail.text);
	return 0;
}

static int
fill(struct build *b, const struct hf_conf_block *k, const char *name,
    void *base)
{
	int rc = 0;

	for (unsigned i = 0; i < hf_n_params && rc == 0; i++)
		if (strcmp(hf_params[i].block, name) == 0)
			rc = fill_key(b, k, &hf_params[i], base);
	return rc;
}

static char *
dup(struct build *b, const char *z)
{
	size_t size = strlen(z);
	char *copy = hf_arena_alloc(b->a, size + 1);

	return copy == NULL ? NULL : memcpy(copy, z, size);
}

/* --- gateway ----------------------------------------------------------- */

static int
build_listen(struct build *b, const struct hf_conf_block *k)
{
	const struct hf_param *p = hf_param_find("gateway", "listen");
	const struct hf_conf_set *first = find_set(k, "listen"), *s;
	struct hf_conf_gateway *g = &b->c->gateway;
	unsigned n = count_sets(first);
	char expected[160];

	hf_param_expected(p, expected, sizeof(expected));
	if (n > (unsigned)p->max)
		return fail(b, k, p->key, first->line, "more than 16 of them");
	g->listen = hf_arena_alloc(b->a, (n + 1) * sizeof(*g->listen));
	if (g->listen == NULL)
		return no_memory(b);
	for (s = first; s != NULL; s = next_set(s)) {
		char *copy = dup(b, s->value);

		if (copy == NULL)
			return no_memory(b);
		if (!hf_conf_listen_ok(copy))
			return hf_conf_fail(b->e, b->raw->file, s->line,
			    k->name, p->key,
			    "unusable address%s%.60s%s; "
			    "expected %s",
			    *copy == '\0' ? "" : " '", copy,
			    *copy == '\0' ? "" : "'", expected);
		for (unsigned i = 0; i < g->n_listen; i++)
			if (strcmp(g->listen[i], copy) == 0 &&
			    strcmp(strrchr(copy, ':'), ":0") != 0)
				return fail(b, k, p->key, s->line,
				    "the same address twice");
		g->listen[g->n_listen++] = copy;
	}
	if (n == 0) {
		g->listen[0] = dup(b, p->def);
		if (g->listen[0] == NULL)
			return no_memory(b);
		g->n_listen = 1;
	}
	return 0;
}

static int
build_gateway(struct build *b)
{
	const struct hf_conf_block *k = next_block(b, NULL, "gateway");
	const struct hf_conf_block *again;
	const struct hf_conf_set *s;
	struct hf_conf_gateway *g = &b->c->gateway;
	size_t size;
	int rc;

	again = k == NULL ? NULL : next_block(b, k, "gateway");
	if (again != NULL)
		return hf_conf_fail(b->e, b->raw->file, again->line, "gateway",
		    NULL, "block given twice; first in line %d", k->line);
	rc = fill(b, k, "gateway", g);
	if (rc == 0)
		rc = build_listen(b, k);
	if (rc != 0)
		return rc;
	if (g->body_hard < g->body_soft) {
		s = find_set(k, "body_hard");
		if (s == NULL)
			s = find_set(k, "body_soft");
		return fail(b, k, "body_hard", s->line,
		    "less than body_soft; expected at least that");
	}
	if (g->master_key_file != NULL && g->master_key_credential != NULL)
		return fail(b, k, "master_key_credential",
		    find_set(k, "master_key_credential")->line,
		    "there is a master_key_file too; expected one of them");
	if (g->master_key_file == NULL) {
		size = strlen(g->database);
		g->master_key_file = hf_arena_alloc(b->a, size + 5);
		if (g->master_key_file == NULL)
			return no_memory(b);
		memcpy(g->master_key_file, g->database, size);
		memcpy(g->master_key_file + size, ".key", 4);
	}
	return 0;
}

/* --- providers and tenants --------------------------------------------- */

static int
check_secrets(struct build *b, const struct hf_conf_block *k)
{
	const struct hf_conf_set *first = NULL;

	for (const struct hf_conf_set *s = k->set; s != NULL; s = s->next) {
		if (strncmp(s->param->key, "api_key_", 8) != 0)
			continue;
		if (first != NULL)
			return hf_conf_fail(b->e, b->raw->file, s->line,
			    k->name, s->param->key,
			    "there is %s in line %d "
			    "too; expected one source of the secret",
			    first->param->key, first->line);
		first = s;
	}
	return 0;
}

static int
check_title(struct build *b, const struct hf_conf_block *k)
{
	if (hf_conf_word_ok(k->title, 64))
		return 0;
	return fail(b, k, NULL, k->line,
	    "unusable name; expected at most 64 "
	    "letters, digits and . _ -");
}

/* The messages API takes the message as it is or not at all. */
static int
check_prefill(struct build *b, const struct hf_conf_block *k,
    const struct hf_conf_provider *p, const struct hf_conf_call *call)
{
	const struct hf_conf_set *s = find_set(k, "prefill");

	if (s == NULL || p->dialect != HF_DIALECT_ANTHROPIC ||
	    call->prefill == HF_PREFILL_NONE ||
	    call->prefill == HF_PREFILL_PLAIN)
		return 0;
	return fail(b, k, "prefill", s->line,
	    "not for dialect anthropic; expected none or plain");
}

static int
build_provider(
    struct build *b, const struct hf_conf_block *k, struct hf_conf_provider *p)
{
	const struct hf_conf_set *s = find_set(k, "api_version");
	int rc = check_title(b, k);

	if (rc == 0)
		rc = check_secrets(b, k);
	if (rc == 0)
		rc = fill(b, k, "provider", p);
	if (rc == 0)
		rc = check_prefill(b, k, p, &p->call);
	if (rc != 0)
		return rc;
	if (s != NULL && p->dialect != HF_DIALECT_ANTHROPIC)
		return fail(b, k, "api_version", s->line,
		    "only dialect anthropic has one");
	if (s == NULL && p->dialect == HF_DIALECT_ANTHROPIC)
		p->api_version = dup(b, "2023-06-01");
	p->name = dup(b, k->title);
	if (p->name == NULL ||
	    (p->dialect == HF_DIALECT_ANTHROPIC && p->api_version == NULL))
		return no_memory(b);
	return 0;
}

static int
build_providers(struct build *b)
{
	unsigned n = count_blocks(b, "provider");
	const struct hf_conf_block *k = NULL;
	int rc = 0;

	b->c->provider =
	    hf_arena_alloc(b->a, (n + 1) * sizeof(*b->c->provider));
	if (b->c->provider == NULL)
		return no_memory(b);
	while (rc == 0 && (k = next_block(b, k, "provider")) != NULL)
		rc = build_provider(b, k, &b->c->provider[b->c->n_provider++]);
	return rc;
}

static int
build_tenants(struct build *b)
{
	unsigned n = count_blocks(b, "tenant");
	const struct hf_conf_block *k = NULL;
	struct hf_conf_tenant *t;
	int rc = 0;

	b->c->tenant = hf_arena_alloc(b->a, (n + 1) * sizeof(*b->c->tenant));
	if (b->c->tenant == NULL)
		return no_memory(b);
	while (rc == 0 && (k = next_block(b, k, "tenant")) != NULL) {
		t = &b->c->tenant[b->c->n_tenant++];
		rc = check_title(b, k);
		if (rc == 0)
			rc = fill(b, k, "tenant", t);
		t->name = dup(b, k->title);
		if (rc == 0 && t->name == NULL)
			rc = no_memory(b);
	}
	return rc;
}

/* --- routes and targets ------------------------------------------------- */

static const struct hf_conf_provider *
find_provider(const struct hf_conf *c, struct hf_str name)
{
	for (unsigned i = 0; i < c->n_provider; i++)
		if (hf_str_is(name, c->provider[i].name))
			return &c->provider[i];
	return NULL;
}

/* Why "provider/model" names no target, into 'e'; the provider otherwise. */
static const struct hf_conf_provider *
parse_target(struct build *b, const struct hf_conf_block *k, const char *key,
    int line, const char *value)
{
	const char *slash = strchr(value, '/'), *near = NULL;
	const struct hf_conf_provider *p;
	char name[65];
	size_t size;

	size = slash == NULL ? 0 : (size_t)(slash - value);
	if (size == 0 || size >= sizeof(name) || slash[1] == '\0' ||
	    !hf_conf_printable(value, 3, 200) || strchr(value, ' ') != NULL) {
		fail(b, k, key, line,
		    "unusable target; expected "
		    "provider/model");
		return NULL;
	}
	p = find_provider(b->c, (struct hf_str){ value, size });
	if (p != NULL)
		return p;
	memcpy(name, value, size);
	name[size] = '\0';
	for (unsigned i = 0; i < b->c->n_provider && near == NULL; i++)
		if (hf_conf_one_edit(b->c->provider[i].name, name))
			near = b->c->provider[i].name;
	if (near != NULL)
		hf_conf_fail(b->e, b->raw->file, line, k->name, key,
		    "there is no provider '%s'; did you mean %s?", name, near);
	else
		hf_conf_fail(b->e, b->raw->file, line, k->name, key,
		    "there is no provider '%s'; expected the name of a "
		    "provider block",
		    name);
	return NULL;
}

static struct hf_conf_target *
find_target(const struct hf_conf *c, const char *name)
{
	for (unsigned i = 0; i < c->n_target; i++)
		if (strcmp(c->target[i].name, name) == 0)
			return &c->target[i];
	return NULL;
}

static int
add_target(struct build *b, const struct hf_conf_provider *p, const char *name,
    struct hf_conf_target **out)
{
	struct hf_conf_target *t = find_target(b->c, name);

	*out = t;
	if (t != NULL)
		return 0;
	t = &b->c->target[b->c->n_target++];
	t->name = dup(b, name);
	t->model = dup(b, strchr(name, '/') + 1);
	if (t->name == NULL || t->model == NULL)
		return no_memory(b);
	t->provider = p;
	t->call = p->call;
	*out = t;
	return 0;
}

static int
build_route_targets(
    struct build *b, const struct hf_conf_block *k, struct hf_conf_route *r)
{
	const struct hf_conf_set *s = find_set(k, "targets");
	const struct hf_param *row = hf_param_find("route", "targets");
	const struct hf_conf_provider *p;
	unsigned n = count_sets(s);
	int rc;

	if (n > (unsigned)row->max)
		return fail(b, k, "targets", s->line, "more than 16 of them");
	r->target = hf_arena_alloc(b->a, n * sizeof(struct hf_conf_target *));
	if (r->target == NULL)
		return no_memory(b);
	for (; s != NULL; s = next_set(s)) {
		struct hf_conf_target **t = &r->target[r->n_target];

		p = parse_target(b, k, "targets", s->line, s->value);
		if (p == NULL)
			return HF_ECONFIG;
		rc = add_target(b, p, s->value, t);
		if (rc != 0)
			return rc;
		for (unsigned i = 0; i < r->n_target; i++)
			if (r->target[i] == *t)
				return fail(b, k, "targets", s->line,
				    "the same target twice");
		r->n_target++;
	}
	return 0;
}

/* "class=action", each class once. */
static int
build_on_error(
    struct build *b, const struct hf_conf_block *k, struct hf_conf_route *r)
{
	const struct hf_conf_set *s = find_set(k, "on_error");

	for (; s != NULL; s = next_set(s)) {
		const char *eq = strchr(s->value, '=');
		size_t size = eq == NULL ? 0 : (size_t)(eq - s->value);
		enum hf_class c =
		    hf_class_find((struct hf_str){ s->value, size });
		enum hf_action a = eq == NULL ? HF_ACTION_DEFAULT :
						hf_action_find(hf_str(eq + 1));

		if (c == HF_CLASS_NONE)
			return fail(b, k, "on_error", s->line,
			    "no error class; expected caller, policy, context, "
			    "auth, capacity, provider, network or gateway, "
			    "and =");
		if (a == HF_ACTION_DEFAULT)
			return fail(b, k, "on_error", s->line,
			    "unusable action; expected end, next or retry "
			    "after the =");
		if (r->on_error[c] != HF_ACTION_DEFAULT)
			return fail(b, k, "on_error", s->line,
			    "the same error class twice");
		r->on_error[c] = (unsigned char)a;
	}
	return 0;
}

static int
build_routes(struct build *b)
{
	const struct hf_conf_block *k = NULL;
	unsigned n = count_blocks(b, "route"), n_targets = 0;
	struct hf_conf_route *r;
	int rc = 0;

	while ((k = next_block(b, k, "route")) != NULL)
		n_targets += count_sets(find_set(k, "targets"));
	b->c->route = hf_arena_alloc(b->a, (n + 1) * sizeof(*b->c->route));
	b->c->target =
	    hf_arena_alloc(b->a, (n_targets + 1) * sizeof(*b->c->target));
	if (b->c->route == NULL || b->c->target == NULL)
		return no_memory(b);
	while (rc == 0 && (k = next_block(b, k, "route")) != NULL) {
		r = &b->c->route[b->c->n_route++];
		if (!hf_conf_printable(k->title, 1, 200))
			return fail(b, k, NULL, k->line,
			    "unusable name; "
			    "expected 1 to 200 printable bytes");
		r->name = dup(b, k->title);
		if (r->name == NULL)
			return no_memory(b);
		rc = fill(b, k, "route", r);
		if (rc == 0)
			rc = build_route_targets(b, k, r);
		if (rc == 0)
			rc = build_on_error(b, k, r);
	}
	return rc;
}

/* Overrides, after the routes have said which targets there are. */
static int
build_targets(struct build *b)
{
	const struct hf_conf_block *k = NULL;
	struct hf_conf_target *t;
	int rc = 0;

	while (rc == 0 && (k = next_block(b, k, "target")) != NULL) {
		if (parse_target(b, k, NULL, k->line, k->title) == NULL)
			return HF_ECONFIG;
		t = find_target(b->c, k->title);
		if (t == NULL)
			return fail(b, k, NULL, k->line,
			    "no route has this "
			    "target; expected one that a route names");
		rc = fill(b, k, "target", t);
		if (rc == 0)
			rc = check_prefill(b, k, t->provider, &t->call);
	}
	return rc;
}

int
hf_conf_build(const struct hf_conf_raw *raw, enum hf_conf_depth depth,
    struct hf_conf_own *own, struct hf_error *e)
{
	struct build b = {
		.raw = raw, .c = &own->c, .a = &own->a, .e = e, .depth = depth
	};
	int rc = build_gateway(&b);

	if (rc != 0 || depth == HF_CONF_GATEWAY)
		return rc;
	rc = build_providers(&b);
	if (rc == 0)
		rc = build_routes(&b);
	if (rc == 0)
		rc = build_targets(&b);
	if (rc == 0)
		rc = build_tenants(&b);
	return rc;
}
