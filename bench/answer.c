/*
 * The rules by which faithful providers answer.  Pure.
 */
#include <config.h>

#include "bench/answer.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "bench/format.h"
#include "bench/recital.h"
#include "bench/rng.h"
#include "bench/rules.h"
#include "bench/script.h"
#include "bench/suite.h"

static char *
take_text(struct hf_buf *b)
{
	HF_CHECK(hf_buf_ok(b));
	return hf_buf_take(b, NULL);
}

const char *
hf_answer_ack(struct hf_str s)
{
	uint64_t h = 0;

	for (size_t i = 0; i < s.size; i++)
		h = hf_rng_mix(h * 31 + (unsigned char)s.p[i]);
	return hf_acks[h % hf_n_acks];
}

char *
hf_answer_told(struct hf_str fact)
{
	if (fact.p == NULL)
		return hf_xstrdup(HF_ANSWER_UNKNOWN);
	return hf_format("You told me: %.*s.", HF_STR_ARG(fact));
}

struct hf_str
hf_answer_fact(const struct hf_template *t, struct hf_str text)
{
	size_t n = strlen(t->before);
	const char *from, *to;

	if (text.size == 0)
		return HF_STR_NONE;
	from = memmem(text.p, text.size, t->before, n);
	if (from == NULL)
		return HF_STR_NONE;
	from += n;
	to = memmem(from, text.size - (size_t)(from - text.p), t->after,
	    strlen(t->after));
	if (to == NULL || to == from)
		return HF_STR_NONE;
	return (struct hf_str){ from, (size_t)(to - from) };
}

const struct hf_template *
hf_answer_probe(struct hf_str text)
{
	for (unsigned i = 0; i < hf_n_templates; i++)
		if (hf_str_is(text, hf_templates[i].probe))
			return &hf_templates[i];
	return NULL;
}

struct hf_str
hf_view_last_user(json_t *view)
{
	for (size_t i = json_array_size(view); i > 0; i--) {
		json_t *m = json_array_get(view, i - 1);

		if (hf_view_has_role(m, "user"))
			return hf_view_text(m);
	}
	return HF_STR_NONE;
}

/* The name of call 'id', looked for backwards from the end. */
static struct hf_str
call_name(json_t *view, struct hf_str id)
{
	for (size_t i = json_array_size(view); i > 0; i--) {
		json_t *calls =
		    json_object_get(json_array_get(view, i - 1), "calls");
		json_t *c;
		size_t k;

		json_array_foreach(calls, k,
		    c) if (hf_str_eq(hf_json_str(json_object_get(c, "id")),
			       id)) return hf_json_str(json_object_get(c,
		    "name"));
	}
	return HF_STR("unknown");
}

static char *
tool_results(json_t *view)
{
	size_t n = json_array_size(view), first = n;
	struct hf_buf b;

	while (first > 0 &&
	    hf_view_has_role(json_array_get(view, first - 1), "tool"))
		first--;
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_puts(&b, "Tool results: ");
	for (size_t i = first; i < n; i++) {
		json_t *m = json_array_get(view, i);

		if (i > first)
			hf_buf_puts(&b, "; ");
		hf_buf_putstr(&b,
		    call_name(
			view, hf_json_str(json_object_get(m, "call_id"))));
		hf_buf_puts(&b, " = ");
		hf_buf_putstr(&b, hf_view_text(m));
	}
	hf_buf_puts(&b, ".");
	return take_text(&b);
}

static bool
declared(json_t *tools, struct hf_str name)
{
	json_t *t;
	size_t i;

	json_array_foreach(
	    tools, i, t) if (hf_str_eq(hf_json_str(t), name)) return true;
	return false;
}

/* The rest of a line that begins with 'mark'; .p NULL: it does not. */
static struct hf_str
after(struct hf_str line, const char *mark)
{
	size_t n = strlen(mark);

	if (line.size <= n || memcmp(line.p, mark, n) != 0)
		return HF_STR_NONE;
	return (struct hf_str){ line.p + n, line.size - n };
}

/* Splits "NAME REST" of a declared tool. */
static bool
split_name(
    struct hf_str s, json_t *tools, struct hf_str *name, struct hf_str *rest)
{
	const char *space = s.p == NULL ? NULL : memchr(s.p, ' ', s.size);

	if (space == NULL)
		return false;
	*name = (struct hf_str){ s.p, (size_t)(space - s.p) };
	*rest = (struct hf_str){ space + 1, s.size - name->size - 1 };
	return declared(tools, *name);
}

static json_t *
make_call(struct hf_str name, struct hf_str arguments)
{
	return json_pack("{s:s%,s:s%}", "name", name.p, name.size, "arguments",
	    arguments.p, arguments.size);
}

/* "!call NAME JSON" on a line: the call, or NULL. */
static json_t *
parse_call(struct hf_str line, json_t *tools)
{
	struct hf_str name, args;
	json_t *parsed;

	if (!split_name(after(line, "!call "), tools, &name, &args))
		return NULL;
	parsed = json_loadb(args.p, args.size, 0, NULL);
	if (parsed == NULL)
		return NULL;
	json_decref(parsed);
	return make_call(name, args);
}

char *
hf_answer_arguments(struct hf_str fact)
{
	char *note = hf_recital_note(fact), *text;
	json_t *o =
	    json_pack("{s:s%,s:s}", "fact", fact.p, fact.size, "note", note);

	text = json_dumps(o, JSON_COMPACT);
	HF_CHECK(text != NULL);
	json_decref(o);
	free(note);
	return text;
}

/* "!fetch NAME PROBE" on a line: the call, or NULL. */
static json_t *
parse_fetch(struct hf_str line, json_t *view, json_t *tools)
{
	struct hf_str name, probe, fact;
	const struct hf_template *t;
	char *args;
	json_t *c;

	if (!split_name(after(line, "!fetch "), tools, &name, &probe))
		return NULL;
	t = hf_answer_probe(probe);
	if (t == NULL)
		return NULL;
	fact = hf_find_fact(view, t).fact;
	args = hf_answer_arguments(fact.p == NULL ? HF_STR("unknown") : fact);
	c = make_call(name, hf_str(args));
	free(args);
	return c;
}

/* Calls, and what is said before them, of the lines of 'text'. */
static void
find_calls(struct hf_answer *a, struct hf_str text, json_t *view, json_t *tools)
{
	struct hf_str said = HF_STR_NONE;
	size_t at = 0;

	while (at < text.size) {
		const char *end = memchr(text.p + at, '\n', text.size - at);
		size_t size = end == NULL ? text.size - at :
					    (size_t)(end - (text.p + at));
		struct hf_str line = { text.p + at, size };
		json_t *c = parse_call(line, tools);

		if (c == NULL)
			c = parse_fetch(line, view, tools);
		if (c != NULL) {
			if (a->calls == NULL)
				a->calls = json_array();
			json_array_append_new(a->calls, c);
		} else if (said.p == NULL) {
			said = after(line, "!say ");
		}
		at += size + 1;
	}
	if (a->calls != NULL && said.p != NULL)
		a->text = hf_xstrndup(said.p, said.size);
}

/* What a set says by a text; NULL: the text is not there. */
static json_t *
look_up(json_t *set, struct hf_str text)
{
	if (text.p == NULL || strlen(text.p) != text.size)
		return NULL; /* holds a NUL, as no set does */
	return json_object_get(set, text.p);
}

/* The last fact that the caller stated by one of the published 'facts'. */
static char *
answer_published(json_t *view, json_t *facts)
{
	struct hf_str fact = HF_STR_NONE, f;
	json_t *m;
	size_t i;

	json_array_foreach(view, i, m)
	{
		if (!hf_view_has_role(m, "user"))
			continue;
		f = hf_json_str(look_up(facts, hf_view_text(m)));
		if (f.p != NULL)
			fact = f;
	}
	return hf_answer_told(fact);
}

static const char *
fixed_answer(struct hf_str text, const struct hf_lore *lore)
{
	if (lore != NULL)
		return json_string_value(look_up(lore->reply, text));
	for (unsigned i = 0; i < hf_n_fillers; i++)
		if (hf_str_is(text, hf_fillers[i].question))
			return hf_fillers[i].answer;
	for (unsigned i = 0; i < hf_n_templates; i++)
		if (hf_answer_fact(&hf_templates[i], text).p != NULL)
			return hf_answer_ack(text);
	return NULL;
}

void
hf_answer_make(struct hf_answer *a, json_t *view, json_t *tools,
    const struct hf_lore *lore)
{
	size_t n = json_array_size(view);
	struct hf_str text = hf_view_last_user(view);
	const char *fixed;
	json_t *facts;

	a->text = NULL;
	a->calls = NULL;
	if (lore == NULL && hf_script_answer(a, view, tools))
		return;
	if (n > 0 && hf_view_has_role(json_array_get(view, n - 1), "tool")) {
		a->text = tool_results(view);
		return;
	}
	find_calls(a, text, view, tools);
	if (a->calls != NULL)
		return;
	if (lore == NULL) {
		a->text = hf_rule_answer(view, text);
	} else {
		facts = look_up(lore->fact, text);
		if (facts != NULL)
			a->text = answer_published(view, facts);
	}
	if (a->text != NULL)
		return;
	fixed = fixed_answer(text, lore);
	a->text = fixed != NULL ? hf_xstrdup(fixed) :
				  hf_format("I heard: %.*s", HF_STR_ARG(text));
}

void
hf_answer_free(struct hf_answer *a)
{
	free(a->text);
	json_decref(a->calls);
	a->text = NULL;
	a->calls = NULL;
}
