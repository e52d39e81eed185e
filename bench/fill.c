/*
 * Filling of templates.
 */
#include <config.h>

#include "bench/fill.h"

#include "base/check.h"
#include "bench/answer.h"

/* Scopes within scopes; the innermost is asked first. */
struct scope {
	json_t *object;
	const struct scope *outer;
};

struct tag {
	const char *at, *end; /* with its braces */
	char kind;	      /* '#', '^', '/', or ' ' */
	struct hf_str name;
};

static json_t *
look_up(const struct scope *s, struct hf_str name)
{
	char key[32];

	if (name.size >= sizeof(key))
		return NULL;
	memcpy(key, name.p, name.size);
	key[name.size] = '\0';
	for (; s != NULL; s = s->outer) {
		json_t *v = json_object_get(s->object, key);

		if (v != NULL)
			return v;
	}
	return NULL;
}

/* The next tag from 'at' on; false: none. */
static bool
next_tag(struct tag *t, const char *at, const char *end)
{
	for (; at < end; at++) {
		const char *p = at + 1, *from;

		if (*at != '{')
			continue;
		t->kind = p < end && strchr("#^/", *p) != NULL ? *p++ : ' ';
		from = p;
		while (p < end && ((*p >= 'a' && *p <= 'z') || *p == '_'))
			p++;
		if (p == from || p == end || *p != '}')
			continue;
		t->at = at;
		t->end = p + 1;
		t->name = (struct hf_str){ from, (size_t)(p - from) };
		return true;
	}
	return false;
}

/* Where the section that was opened by 'open' is closed; false: nowhere. */
static bool
find_close(struct tag *close, const struct tag *open, const char *end)
{
	unsigned depth = 1;
	const char *at = open->end;

	while (next_tag(close, at, end)) {
		at = close->end;
		if (!hf_str_eq(close->name, open->name) || close->kind == ' ')
			continue;
		depth += close->kind == '/' ? -1U : 1U;
		if (depth == 0)
			return true;
	}
	return false;
}

static bool
is_true(json_t *v)
{
	if (json_is_string(v))
		return json_string_length(v) > 0;
	if (json_is_array(v))
		return json_array_size(v) > 0;
	return json_is_true(v) || json_is_object(v) ||
	    (json_is_number(v) && json_number_value(v) != 0);
}

static void fill(
    struct hf_buf *out, const char *at, const char *end, const struct scope *s);

static void
fill_section(struct hf_buf *out, const struct tag *open, const char *end,
    const struct scope *s)
{
	json_t *v = look_up(s, open->name), *item;
	size_t i;

	if (open->kind == '^' || !json_is_array(v)) {
		if (is_true(v) == (open->kind == '#'))
			fill(out, open->end, end, s);
		return;
	}
	json_array_foreach(v, i, item)
	{
		json_t *first = json_pack("{s:s}", "comma", i == 0 ? "" : ",");
		struct scope comma = { first, s };
		struct scope inner = { item, &comma };

		fill(out, open->end, end, &inner);
		json_decref(first);
	}
}

static void
fill_value(struct hf_buf *out, const struct tag *t, const struct scope *s)
{
	json_t *v = look_up(s, t->name);

	if (json_is_string(v))
		hf_buf_putstr(out, hf_json_str(v));
	else if (json_is_integer(v))
		hf_buf_printf(out, "%lld", (long long)json_integer_value(v));
	else
		hf_buf_put(out, t->at, (size_t)(t->end - t->at));
}

static void
fill(struct hf_buf *out, const char *at, const char *end, const struct scope *s)
{
	struct tag t, close;

	while (next_tag(&t, at, end)) {
		hf_buf_put(out, at, (size_t)(t.at - at));
		at = t.end;
		if (t.kind == ' ') {
			fill_value(out, &t, s);
		} else if (t.kind != '/' && find_close(&close, &t, end)) {
			fill_section(out, &t, close.at, s);
			at = close.end;
		} else {
			hf_buf_put(out, t.at, (size_t)(t.end - t.at));
		}
	}
	hf_buf_put(out, at, (size_t)(end - at));
}

void
hf_fill(struct hf_buf *out, struct hf_str text, json_t *scope)
{
	struct scope s = { scope, NULL };

	fill(out, text.p, text.p + text.size, &s);
}

char *
hf_fill_text(const char *text, json_t *scope)
{
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_fill(&b, hf_str(text), scope);
	HF_CHECK(hf_buf_ok(&b));
	hf_buf_put(&b, "", 0);
	return b.data == NULL ? hf_xstrdup("") : hf_buf_take(&b, NULL);
}
