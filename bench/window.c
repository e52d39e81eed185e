/*
 * Windows of faithful providers.  Pure.
 */
#include <config.h>

#include "bench/window.h"

#include <stdlib.h>

#define PER_MESSAGE 4
#define LETTERS 7
#define DIGITS 3

/* The number behind "-w" or "-u" at the end of the name; 0: there is none. */
static unsigned
number_at_end(struct hf_str model, char *kind)
{
	unsigned n = 0, place = 1;
	size_t i = model.size;

	while (i > 0 && model.p[i - 1] >= '0' && model.p[i - 1] <= '9' &&
	    place < 100000000) {
		i--;
		n += (unsigned)(model.p[i] - '0') * place;
		place *= 10;
	}
	if (i < 2 || model.p[i - 2] != '-' ||
	    (model.p[i - 1] != 'w' && model.p[i - 1] != 'u'))
		return 0;
	*kind = model.p[i - 1];
	return n;
}

unsigned
hf_model_window(struct hf_str model)
{
	char kind;

	return number_at_end(model, &kind);
}

bool
hf_model_window_is_told(struct hf_str model)
{
	char kind = '\0';

	return number_at_end(model, &kind) > 0 && kind == 'w';
}

/* --- counting ------------------------------------------------------------- */

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Bytes from 'at' on that are one token. */
static size_t
token_size(struct hf_str s, size_t at)
{
	bool letters = is_letter(s.p[at]);
	size_t most = letters ? LETTERS : is_digit(s.p[at]) ? DIGITS : 4;
	size_t n = 1;

	if ((unsigned char)s.p[at] >= 0x80) { /* a character */
		while (at + n < s.size &&
		    ((unsigned char)s.p[at + n] & 0xc0) == 0x80)
			n++;
		return n;
	}
	if (!letters && !is_digit(s.p[at]))
		return 1;
	while (n < most && at + n < s.size &&
	    (letters ? is_letter(s.p[at + n]) : is_digit(s.p[at + n])))
		n++;
	return n;
}

unsigned
hf_count_text(struct hf_str s)
{
	unsigned tokens = 0;

	for (size_t at = 0; at < s.size;) {
		if (s.p[at] == ' ' || s.p[at] == '\n' || s.p[at] == '\t' ||
		    s.p[at] == '\r') {
			at++;
			continue;
		}
		at += token_size(s, at);
		tokens++;
	}
	return tokens;
}

unsigned
hf_count_view(json_t *view)
{
	unsigned tokens = 0;
	json_t *m, *c;
	size_t i, k;

	json_array_foreach(view, i, m)
	{
		tokens += PER_MESSAGE + hf_count_text(hf_view_text(m));
		json_array_foreach(json_object_get(m, "calls"), k, c) tokens +=
		    hf_count_text(hf_json_str(json_object_get(c, "name"))) +
		    hf_count_text(hf_json_str(json_object_get(c, "arguments")));
	}
	return tokens;
}

/* --- refusing ------------------------------------------------------------- */

static unsigned
room_for_answer(json_t *body)
{
	json_t *n = json_object_get(body, "max_completion_tokens");

	if (!json_is_integer(n))
		n = json_object_get(body, "max_tokens");
	return json_is_integer(n) ? (unsigned)json_integer_value(n) : 0;
}

static unsigned
count_tools(json_t *body)
{
	json_t *tools = json_object_get(body, "tools");
	char *text = tools == NULL ? NULL : json_dumps(tools, JSON_COMPACT);
	unsigned n = hf_count_text(hf_str(text));

	free(text);
	return n;
}

static int
refuse_openai(
    struct hf_refusal *r, unsigned input, unsigned output, unsigned window)
{
	static const char type[] = "invalid_request_error";
	static const char code[] = "context_length_exceeded";

	if (output == 0)
		return hf_refuse(r, 400, type, code, "messages",
		    "This model's maximum context length is %u tokens. "
		    "However, your messages resulted in %u tokens. Please "
		    "reduce the length of the messages.",
		    window, input);
	return hf_refuse(r, 400, type, code, "messages",
	    "This model's maximum context length is %u tokens. However, you "
	    "requested %u tokens (%u in the messages, %u in the completion). "
	    "Please reduce the length of the messages or completion.",
	    window, input + output, input, output);
}

static int
refuse_anthropic(
    struct hf_refusal *r, unsigned input, unsigned output, unsigned window)
{
	static const char type[] = "invalid_request_error";

	if (input > window)
		return hf_refuse(r, 400, type, NULL, NULL,
		    "prompt is too long: %u tokens > %u maximum", input,
		    window);
	return hf_refuse(r, 400, type, NULL, NULL,
	    "input length and `max_tokens` exceed context limit: %u + %u > %u, "
	    "decrease input length or `max_tokens` and try again",
	    input, output, window);
}

static int
refuse_gemini(struct hf_refusal *r, unsigned input, unsigned window)
{
	return hf_refuse(r, 400, "INVALID_ARGUMENT", NULL, NULL,
	    "The input token count (%u) exceeds the maximum number of tokens "
	    "allowed (%u).",
	    input, window);
}

int
hf_window_check(const struct hf_bench_dialect *d, struct hf_str model,
    json_t *body, json_t *view, struct hf_refusal *r)
{
	unsigned window = hf_model_window(model);
	unsigned input, output = room_for_answer(body);

	if (window == 0)
		return 0;
	input = hf_count_view(view) + count_tools(body);
	if (input + output <= window)
		return 0;
	if (d == &hf_bench_openai)
		refuse_openai(r, input, output, window);
	else if (d == &hf_bench_anthropic)
		refuse_anthropic(r, input, output, window);
	else
		refuse_gemini(r, input, window);
	r->window = window;
	return -1;
}
