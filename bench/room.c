/*
 * Fitting a history into a context window.  Pure.
 */
#include <config.h>

#include "bench/room.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "bench/answer.h"

#define BYTES_PER_TOKEN 4 /* English has about four and a half */
#define PER_MESSAGE 4

static unsigned
tokens_of(json_t *message)
{
	size_t n = json_string_length(json_object_get(message, "content"));
	json_t *c;
	size_t i;

	json_array_foreach(json_object_get(message, "tool_calls"), i, c)
	{
		json_t *f = json_object_get(c, "function");

		n += json_string_length(json_object_get(f, "name")) +
		    json_string_length(json_object_get(f, "arguments"));
	}
	return PER_MESSAGE + (unsigned)(n / BYTES_PER_TOKEN) + 1;
}

unsigned
hf_room_tokens(json_t *messages)
{
	unsigned n = 0;
	json_t *m;
	size_t i;

	json_array_foreach(messages, i, m) n += tokens_of(m);
	return n;
}

/* Where the next turn begins, from 'at' on: with what a user says.  The last
 * one, which is asked, is no more than begun. */
static size_t
next_turn(json_t *messages, size_t at)
{
	size_t n = json_array_size(messages);

	while (
	    at < n && !hf_view_has_role(json_array_get(messages, at), "user"))
		at++;
	return at;
}

json_t *
hf_room_fit(json_t *messages, unsigned window, unsigned output)
{
	unsigned kept = output > 0 && output < window ? output : window / 4;
	unsigned room = window - kept;
	unsigned tokens = hf_room_tokens(messages);
	size_t head = 0, from, next;
	json_t *out = json_array();

	while (hf_view_has_role(json_array_get(messages, head), "system"))
		head++;
	from = head;
	while (tokens > room &&
	    (next = next_turn(messages, from + 1)) < json_array_size(messages))
		while (from < next)
			tokens -= tokens_of(json_array_get(messages, from++));
	for (size_t i = 0; i < json_array_size(messages); i++)
		if (i < head || i >= from)
			json_array_append(out, json_array_get(messages, i));
	return out;
}

unsigned
hf_room_told(const char *error)
{
	const char *at = strstr(error, "maximum context length is ");
	unsigned n = 0;

	return at != NULL &&
		sscanf(at, "maximum context length is %u tokens", &n) == 1 ?
	    n :
	    0;
}
