/*
 * Second step: libConfuse parses the text.  Every key is declared as a string
 * whose parse callback notes {key, value, line}; nothing is read from
 * libConfuse's own tree, so that each value keeps the line that it stood on.
 */
#include <config.h>

#include "base/conf_int.h"

#include <confuse.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"

struct parse {
	struct hf_conf_raw *raw;
	const struct hf_conf_text *text;
	struct hf_error *e;
	unsigned n_block; /* closed so far */
	int rc;		  /* first error */
};

/* libConfuse's callbacks have no argument. */
static struct parse *now;

static int
fail_at(int line, const char *block, const char *key, const char *what)
{
	if (now->rc == 0)
		now->rc = hf_conf_fail(
		    now->e, now->raw->file, line, block, key, "%s", what);
	return -1;
}

/* The block being parsed; made when its first key or its end is seen. */
static struct hf_conf_block *
block_of(cfg_t *cfg)
{
	struct hf_conf_raw *raw = now->raw;
	struct hf_conf_block *b;
	const char *title = cfg_title(cfg);

	if (raw->block != NULL) {
		b = hf_container_of(raw->tail, struct hf_conf_block, next);
		if (b->cfg == cfg)
			return b;
	}
	b = hf_arena_alloc(raw->a, sizeof(*b));
	if (b == NULL)
		return NULL;
	b->title = hf_arena_dup(raw->a, hf_str(title == NULL ? "" : title)).p;
	for (unsigned i = 0; i < hf_n_blocks; i++)
		if (strcmp(hf_blocks[i].name, cfg_name(cfg)) == 0)
			b->name = hf_blocks[i].name;
	if (b->title == NULL || b->name == NULL)
		return NULL;
	b->cfg = cfg;
	b->line = now->n_block < now->text->n_block ?
	    now->text->block_line[now->n_block] :
	    cfg->line;
	b->tail = &b->set;
	*raw->tail = b;
	raw->tail = &b->next;
	return b;
}

static const struct hf_conf_set *
find_set(const struct hf_conf_block *b, const struct hf_param *p)
{
	for (const struct hf_conf_set *s = b->set; s != NULL; s = s->next)
		if (s->param == p)
			return s;
	return NULL;
}

/* Called for each value, each element of a list too. */
static int
on_value(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
	const char **out = result;
	const struct hf_param *p =
	    hf_param_find(cfg_name(cfg), cfg_opt_name(opt));
	const struct hf_conf_set *old;
	struct hf_conf_block *b;
	struct hf_conf_set *s;
	char what[64];

	*out = "";
	if (p == NULL) /* a path such as "gateway|workers" */
		return fail_at(
		    cfg->line, NULL, NULL, "a key outside of its block");
	b = block_of(cfg);
	s = hf_arena_alloc(now->raw->a, sizeof(*s));
	if (b == NULL || s == NULL)
		return fail_at(cfg->line, p->block, p->key, "out of memory");
	old = find_set(b, p);
	/* One value so far: not the next element of a list. */
	if (old != NULL && cfg_opt_size(opt) <= 1) {
		snprintf(what, sizeof(what), "given twice; first in line %d",
		    old->line);
		return fail_at(cfg->line, p->block, p->key, what);
	}
	s->param = p;
	s->line = cfg->line;
	s->value = hf_arena_dup(now->raw->a, hf_str(value)).p;
	if (s->value == NULL)
		return fail_at(cfg->line, p->block, p->key, "out of memory");
	*b->tail = s;
	b->tail = &s->next;
	return 0;
}

/* Called when a block is closed. */
static int
on_block(cfg_t *cfg, cfg_opt_t *opt)
{
	cfg_t *sec = cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1);

	if (sec == NULL || block_of(sec) == NULL)
		return fail_at(
		    cfg->line, cfg_opt_name(opt), NULL, "out of memory");
	now->n_block++;
	return 0;
}

/* "workers" for "wokers"; NULL if nothing is that near. */
static const char *
suggestion(const char *block, const char *name)
{
	if (block == NULL) {
		for (unsigned i = 0; i < hf_n_blocks; i++)
			if (hf_conf_one_edit(hf_blocks[i].name, name))
				return hf_blocks[i].name;
		return NULL;
	}
	for (unsigned i = 0; i < hf_n_params; i++)
		if (strcmp(hf_params[i].block, block) == 0 &&
		    hf_conf_one_edit(hf_params[i].key, name))
			return hf_params[i].key;
	return NULL;
}

static void
unknown(int line, const char *block, const char *name)
{
	const char *near = suggestion(block, name);
	const char *kind = block == NULL ? "block" : "key";
	char what[160];

	if (near != NULL)
		snprintf(what, sizeof(what), "unknown %s; did you mean %s?",
		    kind, near);
	else
		snprintf(what, sizeof(what), "unknown %s", kind);
	fail_at(line, block == NULL ? name : block, block == NULL ? NULL : name,
	    what);
}

static HF_PRINTF(2, 0) void on_error(cfg_t *cfg, const char *fmt, va_list ap)
{
	const char *block =
	    strcmp(cfg_name(cfg), "root") == 0 ? NULL : cfg_name(cfg);
	char what[160];

	if (strcmp(fmt, "no such option '%s'") == 0) {
		unknown(cfg->line, block, va_arg(ap, const char *));
		return;
	}
	vsnprintf(what, sizeof(what), fmt, ap);
	fail_at(cfg->line, block, NULL, what);
}

/* The option arrays of all blocks, one after the other, each with its end
 * mark; libConfuse copies them. */
static void
declare(cfg_opt_t *keys, cfg_opt_t *blocks)
{
	static const cfg_opt_t end = CFG_END();
	unsigned n = 0;

	for (unsigned i = 0; i < hf_n_blocks; i++) {
		const struct hf_block *b = &hf_blocks[i];
		cfg_opt_t sec = CFG_SEC(b->name, keys + n,
		    CFGF_MULTI |
			(b->titled ? CFGF_TITLE | CFGF_NO_TITLE_DUPES : 0));

		for (unsigned k = 0; k < hf_n_params; k++) {
			const struct hf_param *p = &hf_params[k];
			cfg_opt_t str =
			    CFG_STR_CB(p->key, NULL, CFGF_NODEFAULT, on_value);

			if (strcmp(p->block, b->name) != 0)
				continue;
			if (hf_param_is_list(p))
				str.flags |= CFGF_LIST;
			keys[n++] = str;
		}
		keys[n++] = end;
		sec.validcb = on_block;
		blocks[i] = sec;
	}
	blocks[hf_n_blocks] = end;
}

int
hf_conf_raw_parse(struct hf_conf_raw *raw, const char *file, const char *text,
    struct hf_arena *a, struct hf_error *e)
{
	struct hf_conf_text clean = { NULL, NULL, 0 };
	struct parse parse = { .raw = raw, .text = &clean, .e = e };
	cfg_opt_t *keys = NULL, *blocks = NULL;
	cfg_t *cfg = NULL;
	int rc;

	*raw = (struct hf_conf_raw){ .file = file, .a = a };
	raw->tail = &raw->block;
	rc = hf_conf_clean(file, text, a, &clean, e);
	if (rc != 0)
		return rc;
	keys = hf_arena_alloc(a, (hf_n_params + hf_n_blocks) * sizeof(*keys));
	blocks = hf_arena_alloc(a, (hf_n_blocks + 1) * sizeof(*blocks));
	if (keys == NULL || blocks == NULL)
		return hf_fail(e, HF_ENOMEM, "no memory for the configuration");
	declare(keys, blocks);
	cfg = cfg_init(blocks, CFGF_NONE);
	if (cfg == NULL)
		return hf_fail(e, HF_ENOMEM, "no memory for the configuration");
	HF_CHECK(now == NULL);
	now = &parse;
	cfg_set_error_function(cfg, on_error);
	if (cfg_parse_buf(cfg, clean.text) != CFG_SUCCESS && parse.rc == 0)
		fail_at(cfg->line, NULL, NULL, "syntax error");
	now = NULL;
	cfg_free(cfg);
	return parse.rc;
}
