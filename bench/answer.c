/*
 * The rules by which faithful providers answer.  Pure.
 */
#include <config.h>

#include "bench/answer.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "bench/rng.h"
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

static bool
has_role(json_t *msg, const char *role)
{
	return hf_str_is(hf_json_str(json_object_get(msg, "role")), role);
}

static struct hf_str
text_of(json_t *msg)
{
	return hf_json_str(json_object_get(msg, "text"));
}

struct hf_str
hf_view_last_user(json_t *view)
{
	for (size_t i = json_array_size(view); i > 0; i--) {
		json_t *m = json_array_get(view, i - 1);

		if (has_role(m, "user"))
			return text_of(m);
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

	while (first > 0 && has_role(json_array_get(view, first - 1), "tool"))
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
		hf_buf_putstr(&b, text_of(m));
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

/* "!call NAME JSON" on a line: the call, or NULL. */
static json_t *
parse_call(struct hf_str line, json_t *tools)
{
	static const char mark[] = "!call ";
	const char *name = line.p + sizeof(mark) - 1, *args;
	struct hf_str n;
	json_t *parsed;

	if (line.size < sizeof(mark) ||
	    memcmp(line.p, mark, sizeof(mark) - 1) != 0)
		return NULL;
	args = memchr(name, ' ', line.size - (sizeof(mark) - 1));
	if (args == NULL)
		return NULL;
	n = (struct hf_str){ name, (size_t)(args - name) };
	args++;
	parsed = json_loadb(args, line.size - (size_t)(args - line.p), 0, NULL);
	if (parsed == NULL || !declared(tools, n)) {
		json_decref(parsed);
		return NULL;
	}
	json_decref(parsed);
	return json_pack("{s:s%,s:s%}", "name", n.p, n.size, "arguments", args,
	    line.size - (size_t)(args - line.p));
}

static json_t *
find_calls(struct hf_str text, json_t *tools)
{
	json_t *calls = NULL;
	size_t at = 0;

	while (at < text.size) {
		const char *end = memchr(text.p + at, '\n', text.size - at);
		size_t size = end == NULL ? text.size - at :
					    (size_t)(end - (text.p + at));
		json_t *c =
		    parse_call((struct hf_str){ text.p + at, size }, tools);

		if (c != NULL) {
			if (calls == NULL)
				calls = json_array();
			json_array_append_new(calls, c);
		}
		at += size + 1;
	}
	return calls;
}

/* What a set says by a text; NULL: the text is not there. */
static json_t *
look_up(json_t *set, struct hf_str text)
{
	if (text.p == NULL || strlen(text.p) != text.size)
		return NULL; /* holds a NUL, as no set does */
	return json_object_get(set, text.p);
}

/* A probe: 't', or one of a published set with 'facts' that it asks for. */
static char *
answer_probe(json_t *view, const struct hf_template *t, json_t *facts)
{
	struct hf_str fact = HF_STR_NONE;
	struct hf_buf b;
	json_t *m;
	size_t i;

	json_array_foreach(view, i, m)
	{
		struct hf_str f;

		if (!has_role(m, "user"))
			continue;
		f = t == NULL ? hf_json_str(look_up(facts, text_of(m))) :
				hf_answer_fact(t, text_of(m));
		if (f.p != NULL)
			fact = f;
	}
	if (fact.p == NULL)
		return hf_xstrdup(HF_ANSWER_UNKNOWN);
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_puts(&b, "You told me: ");
	hf_buf_putstr(&b, fact);
	hf_buf_puts(&b, ".");
	return take_text(&b);
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
	const struct hf_template *t = NULL;
	const char *fixed;
	json_t *facts = NULL;
	struct hf_buf b;

	a->text = NULL;
	a->calls = NULL;
	if (n > 0 && has_role(json_array_get(view, n - 1), "tool")) {
		a->text = tool_results(view);
		return;
	}
	a->calls = find_calls(text, tools);
	if (a->calls != NULL)
		return;
	if (lore == NULL)
		t = hf_answer_probe(text);
	else
		facts = look_up(lore->fact, text);
	if (t != NULL || facts != NULL) {
		a->text = answer_probe(view, t, facts);
		return;
	}
	fixed = fixed_answer(text, lore);
	if (fixed != NULL) {
		a->text = hf_xstrdup(fixed);
		return;
	}
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_puts(&b, "I heard: ");
	hf_buf_putstr(&b, text);
	a->text = take_text(&b);
}

void
hf_answer_free(struct hf_answer *a)
{
	free(a->text);
	json_decref(a->calls);
	a->text = NULL;
	a->calls = NULL;
}
