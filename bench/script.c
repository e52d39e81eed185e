/*
 * The engine of scripted calls.  Pure.
 */
#include <config.h>

#include "bench/script.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "bench/format.h"

#define AGAIN "I did not hear anything. "

/* The name of the slot that begins at 'p'; its size. */
static size_t
slot_size(const char *p)
{
	const char *end = strchr(p, '}');

	HF_CHECK(*p == '{' && end != NULL);
	return (size_t)(end - p) - 1;
}

/* A brace of JSON is followed by a quotation mark or by nothing. */
static bool
is_slot(const char *p)
{
	return *p == '{' && p[1] >= 'a' && p[1] <= 'z';
}

static size_t
literal_size(const char *p)
{
	size_t n = 0;

	while (p[n] != '\0' && !is_slot(p + n))
		n++;
	return n;
}

char *
hf_script_fill(const char *text, json_t *slots)
{
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_puts(&b, "");
	while (*text != '\0') {
		size_t n = literal_size(text);
		struct hf_str value;
		char *name;

		hf_buf_put(&b, text, n);
		text += n;
		if (*text == '\0')
			break;
		n = slot_size(text);
		name = hf_xstrndup(text + 1, n);
		value = hf_json_str(json_object_get(slots, name));
		free(name);
		if (value.p == NULL) {
			hf_buf_free(&b);
			return NULL;
		}
		hf_buf_putstr(&b, value);
		text += n + 2;
	}
	HF_CHECK(hf_buf_ok(&b));
	return hf_buf_take(&b, NULL);
}

bool
hf_script_match(const char *line, struct hf_str text, json_t *slots)
{
	const char *at = text.p, *end = text.p + text.size, *found;
	size_t n = literal_size(line), name;

	if (text.size < n || memcmp(at, line, n) != 0)
		return false;
	at += n;
	line += n;
	while (*line != '\0') {
		char *key;

		name = slot_size(line);
		key = hf_xstrndup(line + 1, name);
		line += name + 2;
		n = literal_size(line);
		found = n == 0 && *line == '\0' ?
		    end :
		    memmem(at, (size_t)(end - at), line, n);
		if (found != NULL && found > at)
			json_object_set_new(
			    slots, key, json_stringn(at, (size_t)(found - at)));
		free(key);
		if (found == NULL || found == at)
			return false;
		at = found + n;
		line += n;
	}
	return at == end;
}

char *
hf_script_again(struct hf_str last)
{
	size_t at = last.size;

	if (at == 0 || last.p[at - 1] != '?')
		return hf_xstrdup(HF_ANSWER_UNKNOWN);
	while (at > 1 && !(last.p[at - 1] == ' ' && last.p[at - 2] == '.'))
		at--;
	at = at > 1 ? at : 0;
	return hf_format(AGAIN "%.*s", (int)(last.size - at), last.p + at);
}

/* The line that a message is, or NULL; its slots. */
static const struct hf_script_line *
find_line(const struct hf_script *s, json_t *message, json_t *slots)
{
	bool tool = hf_view_has_role(message, "tool");

	if (!tool && !hf_view_has_role(message, "user"))
		return NULL;
	for (const struct hf_script_line *l = s->line; l->says != NULL; l++) {
		json_t *own = json_object();

		if (l->tool == tool &&
		    hf_script_match(l->says, hf_view_text(message), own)) {
			json_object_update(slots, own);
			json_decref(own);
			return l;
		}
		json_decref(own);
	}
	return NULL;
}

static bool
declares(json_t *tools, const char *name)
{
	json_t *t;
	size_t i;

	json_array_foreach(tools, i, t)
	{
		if (hf_str_is(hf_json_str(t), name))
			return true;
	}
	return false;
}

static void
answer_line(struct hf_answer *a, const struct hf_script_line *l, json_t *slots,
    json_t *tools)
{
	char *text =
	    hf_script_fill(l->call != NULL ? l->args : l->answer, slots);

	if (text == NULL || (l->call != NULL && !declares(tools, l->call))) {
		free(text);
		a->text = hf_xstrdup(HF_ANSWER_UNKNOWN);
	} else if (l->call != NULL) {
		a->calls = json_pack(
		    "[{s:s,s:s}]", "name", l->call, "arguments", text);
		free(text);
	} else {
		a->text = text;
	}
}

/* The last text of the assistant's. */
static struct hf_str
last_said(json_t *view)
{
	for (size_t i = json_array_size(view); i > 0; i--) {
		json_t *m = json_array_get(view, i - 1);

		if (hf_view_has_role(m, "assistant") &&
		    hf_view_text(m).size > 0)
			return hf_view_text(m);
	}
	return HF_STR_NONE;
}

static bool
answer_by(
    struct hf_answer *a, const struct hf_script *s, json_t *view, json_t *tools)
{
	const struct hf_script_line *l = NULL;
	json_t *slots = json_object(), *m;
	size_t i;

	json_array_foreach(view, i, m) l = find_line(s, m, slots);
	if (l != NULL)
		answer_line(a, l, slots, tools);
	json_decref(slots);
	return l != NULL;
}

bool
hf_script_answer(struct hf_answer *a, json_t *view, json_t *tools)
{
	json_t *last = json_array_get(
	    view, json_array_size(view) == 0 ? 0 : json_array_size(view) - 1);

	if (hf_view_has_role(last, "user") &&
	    hf_str_is(hf_view_text(last), HF_SILENCE)) {
		a->text = hf_script_again(last_said(view));
		return true;
	}
	for (unsigned i = 0; i < hf_n_scripts; i++)
		if (answer_by(a, &hf_scripts[i], view, tools))
			return true;
	return false;
}
