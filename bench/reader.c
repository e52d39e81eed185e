/*
 * Reading of a chat completion, plain or streamed, as a strict client does.
 * Pure.
 */
#include <config.h>

#include "bench/reader.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/answer.h"

#define MAX_ANSWER ((size_t)16 * 1024 * 1024)

void
hf_reader_init(struct hf_answer_reader *r, bool stream)
{
	memset(r, 0, sizeof(*r));
	r->stream = stream;
	hf_buf_init(&r->line, MAX_ANSWER);
	hf_buf_init(&r->text, MAX_ANSWER);
}

void
hf_reader_free(struct hf_answer_reader *r)
{
	hf_buf_free(&r->line);
	hf_buf_free(&r->text);
	json_decref(r->calls);
}

static void
fail(struct hf_answer_reader *r, const char *what, struct hf_str detail)
{
	if (r->failed)
		return;
	r->failed = true;
	snprintf(r->error, sizeof(r->error), "%s%.*s", what,
	    (int)(detail.size > 120 ? 120 : detail.size),
	    detail.p == NULL ? "" : detail.p);
	/* It may be anything, and goes into JSON. */
	for (char *p = r->error; *p != '\0'; p++)
		if (*p < 0x20 || *p > 0x7e)
			*p = '?';
}

static void
take_error(struct hf_answer_reader *r, json_t *error)
{
	fail(r, "error: ", hf_json_str(json_object_get(error, "message")));
}

/* Counts how many different ones came one after the other. */
static void
note(json_t *v, char *last, size_t size, unsigned *n)
{
	const char *text = json_string_value(v);

	if (text == NULL || (*n > 0 && strcmp(text, last) == 0))
		return;
	snprintf(last, size, "%s", text);
	++*n;
}

/* --- tool calls ----------------------------------------------------------- */

static void
set_once(struct hf_answer_reader *r, json_t *call, const char *key, json_t *v)
{
	json_t *was = json_object_get(call, key);

	if (!json_is_string(v))
		return;
	if (was != NULL && !json_equal(was, v))
		fail(r, "a tool call changed its ", hf_str(key));
	json_object_set(call, key, v);
}

static void
add_arguments(json_t *call, json_t *v)
{
	struct hf_str more = hf_json_str(v);
	struct hf_str was = hf_json_str(json_object_get(call, "arguments"));
	struct hf_buf b;

	hf_buf_init(&b, MAX_ANSWER);
	hf_buf_putstr(&b, was);
	hf_buf_putstr(&b, more);
	json_object_set_new(
	    call, "arguments", json_stringn(b.size == 0 ? "" : b.data, b.size));
	hf_buf_free(&b);
}

/* One call, or a fragment of it. */
static void
take_call(struct hf_answer_reader *r, json_t *o, size_t index)
{
	json_t *f = json_object_get(o, "function"), *call;

	if (r->finished)
		fail(r, "a tool call after the finish reason", HF_STR_NONE);
	if (r->calls == NULL)
		r->calls = json_array();
	if (index > json_array_size(r->calls)) {
		fail(r, "a tool call out of order", HF_STR_NONE);
		return;
	}
	if (index == json_array_size(r->calls))
		json_array_append_new(r->calls, json_object());
	call = json_array_get(r->calls, index);
	set_once(r, call, "id", json_object_get(o, "id"));
	set_once(r, call, "name", json_object_get(f, "name"));
	add_arguments(call, json_object_get(f, "arguments"));
}

static void
take_calls(struct hf_answer_reader *r, json_t *calls)
{
	json_t *o, *at;
	size_t i;

	json_array_foreach(calls, i, o)
	{
		at = json_object_get(o, "index");
		take_call(r, o,
		    json_is_integer(at) && json_integer_value(at) >= 0 ?
			(size_t)json_integer_value(at) :
			i);
	}
}

/* Whole, and told so by the finish reason? */
static void
check_calls(struct hf_answer_reader *r)
{
	json_t *o, *args;
	size_t i;

	json_array_foreach(r->calls, i, o)
	{
		struct hf_str a = hf_json_str(json_object_get(o, "arguments"));

		args = json_loadb(a.p == NULL ? "" : a.p, a.size, 0, NULL);
		if (args == NULL || json_object_get(o, "id") == NULL ||
		    json_object_get(o, "name") == NULL)
			fail(r, "a broken tool call: ", a);
		json_decref(args);
	}
	if ((r->calls != NULL) != (strcmp(r->finish, "tool_calls") == 0))
		fail(r, "calls do not go with the finish reason ",
		    hf_str(r->finish));
}

/* --- events --------------------------------------------------------------- */

static void
take_finish(struct hf_answer_reader *r, json_t *reason)
{
	if (!json_is_string(reason))
		return;
	r->finished = true;
	r->marks.finishes++;
	snprintf(r->finish, sizeof(r->finish), "%s", json_string_value(reason));
}

static void
take_event(struct hf_answer_reader *r, struct hf_str data)
{
	json_t *o, *choice, *delta, *text;

	if (hf_str_is(data, "[DONE]")) {
		r->done = true;
		r->marks.dones++;
		return;
	}
	o = json_loadb(data.p, data.size, 0, NULL);
	if (o == NULL) {
		fail(r, "broken event: ", data);
		return;
	}
	if (r->done)
		fail(r, "an event after [DONE]", HF_STR_NONE);
	if (json_object_get(o, "error") != NULL)
		take_error(r, json_object_get(o, "error"));
	note(json_object_get(o, "id"), r->id, sizeof(r->id), &r->marks.ids);
	note(json_object_get(o, "model"), r->model, sizeof(r->model),
	    &r->marks.models);
	choice = json_array_get(json_object_get(o, "choices"), 0);
	delta = json_object_get(choice, "delta");
	r->marks.roles += json_object_get(delta, "role") != NULL;
	text = json_object_get(delta, "content");
	if (json_is_string(text) && json_string_length(text) > 0) {
		if (r->finished)
			fail(r, "text after the finish reason", HF_STR_NONE);
		hf_buf_putstr(&r->text, hf_json_str(text));
	}
	take_calls(r, json_object_get(delta, "tool_calls"));
	take_finish(r, json_object_get(choice, "finish_reason"));
	json_decref(o);
}

static void
take_line(struct hf_answer_reader *r, struct hf_str line)
{
	if (line.size > 0 && line.p[line.size - 1] == '\r')
		line.size--;
	if (line.size < 5 || memcmp(line.p, "data:", 5) != 0)
		return; /* comments, blank lines, other fields */
	line.p += 5;
	line.size -= 5;
	if (line.size > 0 && line.p[0] == ' ') {
		line.p++;
		line.size--;
	}
	take_event(r, line);
}

bool
hf_reader_data(struct hf_answer_reader *r, struct hf_str bytes)
{
	size_t at = 0;

	hf_buf_putstr(&r->line, bytes);
	if (!r->stream)
		return r->line.size > 0;
	while (at < r->line.size) {
		const char *nl =
		    memchr(r->line.data + at, '\n', r->line.size - at);
		size_t size;

		if (nl == NULL)
			break;
		size = (size_t)(nl - (r->line.data + at));
		take_line(r, (struct hf_str){ r->line.data + at, size });
		at += size + 1;
	}
	hf_buf_consume(&r->line, at);
	return r->text.size > 0;
}

static void
take_body(struct hf_answer_reader *r)
{
	json_t *o = json_loadb(
	    r->line.data == NULL ? "" : r->line.data, r->line.size, 0, NULL);
	json_t *choice, *message, *text;

	if (o == NULL) {
		fail(r, "broken body: ", hf_buf_str(&r->line));
		return;
	}
	if (json_object_get(o, "error") != NULL)
		take_error(r, json_object_get(o, "error"));
	note(json_object_get(o, "model"), r->model, sizeof(r->model),
	    &r->marks.models);
	choice = json_array_get(json_object_get(o, "choices"), 0);
	message = json_object_get(choice, "message");
	text = json_object_get(message, "content");
	if (json_is_string(text))
		hf_buf_putstr(&r->text, hf_json_str(text));
	take_calls(r, json_object_get(message, "tool_calls"));
	take_finish(r, json_object_get(choice, "finish_reason"));
	r->done = true;
	json_decref(o);
}

char *
hf_reader_end(struct hf_answer_reader *r, int status)
{
	char code[48];

	if (!r->stream || status != 200)
		take_body(r);
	if (status != 200) {
		char was[sizeof(r->error)];

		snprintf(was, sizeof(was), "%s", r->error);
		snprintf(code, sizeof(code), "HTTP %d: ", status);
		r->failed = false;
		fail(r, code, hf_str(was));
	}
	if (!r->finished)
		fail(r, "no finish reason", HF_STR_NONE);
	if (!r->done)
		fail(r, "no [DONE]", HF_STR_NONE);
	if (r->text.size == 0 && r->calls == NULL)
		fail(r, "no text", HF_STR_NONE);
	check_calls(r);
	if (!hf_buf_ok(&r->text) || !hf_buf_ok(&r->line))
		fail(r, "too long", HF_STR_NONE);
	if (r->failed)
		return NULL;
	return hf_xstrndup(r->text.data, r->text.size);
}
