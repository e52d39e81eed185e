/*
 * The settings in force, with their lines.
 */
#include <config.h>

#include "base/conf_show.h"

#include <stdlib.h>

#include "base/conf_int.h"

struct show {
	struct hf_conf_raw raw;
	struct hf_arena a;
	hf_conf_setting_fn fn;
	void *arg;
};

bool
hf_conf_near(const char *a, const char *b)
{
	return hf_conf_one_edit(a, b);
}

static const struct hf_conf_set *
find(const struct hf_conf_block *k, const char *key)
{
	const struct hf_conf_set *s;

	for (s = k == NULL ? NULL : k->set; s != NULL; s = s->next)
		if (strcmp(s->param->key, key) == 0)
			return s;
	return NULL;
}

static int
tell(const struct show *w, const struct hf_conf_block *k,
    const struct hf_param *p, const char *value, int line)
{
	const struct hf_conf_setting s = { .param = p,
		.title = k == NULL ? "" : k->title,
		.value = value,
		.line = line };

	return w->fn(w->arg, &s);
}

/* A default that depends on other keys (as in conf_build.c); NULL: none. */
static const char *
derived(struct show *w, const struct hf_conf_block *k, const struct hf_param *p)
{
	const struct hf_conf_set *s;
	const char *path;
	char *out;

	if (strcmp(p->key, "api_version") == 0) {
		s = find(k, "dialect");
		return s != NULL && strcmp(s->value, "anthropic") == 0 ?
		    "2023-06-01" :
		    NULL;
	}
	if (strcmp(p->key, "master_key_file") != 0 ||
	    find(k, "master_key_credential") != NULL)
		return NULL;
	s = find(k, "database");
	path = s != NULL ? s->value : hf_param_find("gateway", "database")->def;
	out = hf_arena_alloc(&w->a, strlen(path) + 5);
	if (out == NULL)
		return NULL;
	memcpy(out, path, strlen(path));
	memcpy(out + strlen(path), ".key", 5);
	return out;
}

/* One block, or with 'k' NULL a block that is left out. */
static int
show_block(
    struct show *w, const struct hf_block *b, const struct hf_conf_block *k)
{
	for (unsigned i = 0; i < hf_n_params; i++) {
		const struct hf_param *p = &hf_params[i];
		const char *value = p->def;
		int rc = 0;

		if (strcmp(p->block, b->name) != 0)
			continue;
		if (find(k, p->key) == NULL) {
			if (value == NULL)
				value = derived(w, k, p);
			if (value != NULL)
				rc = tell(w, k, p, value, 0);
			if (rc != 0)
				return rc;
			continue;
		}
		for (const struct hf_conf_set *s = k->set; s != NULL;
		     s = s->next) {
			if (s->param == p)
				rc = tell(w, k, p, s->value, s->line);
			if (rc != 0)
				return rc;
		}
	}
	return 0;
}

static int
show_all(struct show *w)
{
	int rc = 0;

	for (unsigned i = 0; i < hf_n_blocks && rc == 0; i++) {
		const struct hf_block *b = &hf_blocks[i];
		bool any = false;

		for (const struct hf_conf_block *k = w->raw.block;
		     k != NULL && rc == 0; k = k->next) {
			if (strcmp(k->name, b->name) != 0)
				continue;
			any = true;
			rc = show_block(w, b, k);
		}
		if (!any && !b->titled && rc == 0)
			rc = show_block(w, b, NULL);
	}
	return rc;
}

int
hf_conf_settings(const char *name, const char *text, hf_conf_setting_fn fn,
    void *arg, struct hf_error *e)
{
	struct show w = { .fn = fn, .arg = arg };
	int rc;

	hf_arena_init(&w.a, HF_CONF_MAX_ARENA);
	rc = hf_conf_raw_parse(&w.raw, name, text, &w.a, e);
	if (rc == 0)
		rc = show_all(&w);
	hf_arena_free(&w.a);
	return rc;
}
