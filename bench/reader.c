/*
 * Reading of a chat completion, plain or streamed, as a strict client does.
 * Pure.
 */
#include <config.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/answer.h"
#include "bench/client.h"

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
}

static void
take_error(struct hf_answer_reader *r, json_t *error)
{
	fail(r, "error: ", hf_json_str(json_object_get(error, "message")));
}

static void
take_event(struct hf_answer_reader *r, struct hf_str data)
{
	json_t *o, *choice, *text, *finish;

	if (hf_str_is(data, "[DONE]")) {
		r->done = true;
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
	choice = json_array_get(json_object_get(o, "choices"), 0);
	text = json_object_get(json_object_get(choice, "delta"), "content");
	finish = json_object_get(choice, "finish_reason");
	if (json_is_string(text) && json_string_length(text) > 0) {
		if (r->finished)
			fail(r, "text after the finish reason", HF_STR_NONE);
		hf_buf_putstr(&r->text, hf_json_str(text));
	}
	if (json_is_string(finish))
		r->finished = true;
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
	json_t *choice, *text;

	if (o == NULL) {
		fail(r, "broken body: ", hf_buf_str(&r->line));
		return;
	}
	if (json_object_get(o, "error") != NULL)
		take_error(r, json_object_get(o, "error"));
	choice = json_array_get(json_object_get(o, "choices"), 0);
	text = json_object_get(json_object_get(choice, "message"), "content");
	if (json_is_string(text))
		hf_buf_putstr(&r->text, hf_json_str(text));
	r->finished = json_is_string(json_object_get(choice, "finish_reason"));
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
	if (r->text.size == 0)
		fail(r, "no text", HF_STR_NONE);
	if (!hf_buf_ok(&r->text) || !hf_buf_ok(&r->line))
		fail(r, "too long", HF_STR_NONE);
	return r->failed ? NULL : hf_buf_take(&r->text, NULL);
}
