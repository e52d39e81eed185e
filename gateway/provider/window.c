/*
 * Context windows: the room that an answer takes of one, and what a provider
 * says about it when it refuses.  Pure.
 */
#include <config.h>

#include "gateway/provider/provider.h"

#include <string.h>

#define MAX_TOKENS 4096 /* if neither client nor target says */
/* No model has a smaller window: such a number is not believed, since all turns
 * would go by it. */
#define LEAST_WINDOW 512

int64_t
hf_output_room(
    const struct hf_conf_target *target, struct hf_json params, int64_t window)
{
	static const char *const name[] = { "max_completion_tokens",
		"max_tokens" };
	int64_t n = target->call.max_output_tokens, v;

	for (size_t i = 0; i < hf_countof(name); i++)
		if (hf_json_int(hf_json_get(params, name[i]), &v) && v > 0)
			return v;
	if (n <= 0)
		n = MAX_TOKENS;
	if (window > 0 && n > window / 4)
		n = window < 4 ? 1 : window / 4;
	return n;
}

/* --- refusals ------------------------------------------------------------- */

/* What stands before the numbers, in the words of several services. */
static const char *const before_window[] = {
	"maximum context length is ", /* OpenAI, vLLM, many others */
	"maximum context length of ",
	"tokens > ", /* Anthropic: "prompt is too long: N tokens > M" */
	"available context size (",	      /* llama.cpp */
	"maximum number of tokens allowed (", /* Gemini */
	"context window of ", "maximum prompt length is ",
	" > ", /* Anthropic: "exceed context limit: N + M > L" */
};
static const char *const before_sent[] = {
	"messages resulted in ", /* OpenAI */
	"prompt is too long: ",
	"request (",
	"input token count (",
	"input token count is ",
	"exceed context limit: ",
};

/* The number right behind one of these words; 0: there is none. */
static int64_t
number_behind(struct hf_str text, const char *const *words, size_t n_words)
{
	const char *at, *end = text.p + text.size;
	int64_t n;

	for (size_t i = 0; i < n_words; i++) {
		at = text.size == 0 ?
		    NULL :
		    memmem(text.p, text.size, words[i], strlen(words[i]));
		if (at == NULL)
			continue;
		n = 0;
		for (at += strlen(words[i]);
		     at < end && *at >= '0' && *at <= '9' && n < INT32_MAX;
		     at++)
			n = n * 10 + (*at - '0');
		if (n > 0 && n <= INT32_MAX)
			return n;
	}
	return 0;
}

/* "you requested N tokens (M in the messages, K in the completion)" */
static int64_t
in_messages(struct hf_str text)
{
	static const char word[] = " in the messages";
	const char *at = text.size == 0 ?
	    NULL :
	    memmem(text.p, text.size, word, sizeof(word) - 1);
	int64_t n = 0, place = 1;

	while (at != NULL && at > text.p && at[-1] >= '0' && at[-1] <= '9' &&
	    place < INT32_MAX) {
		at--;
		n += (*at - '0') * place;
		place *= 10;
	}
	return n <= INT32_MAX ? n : 0;
}

void
hf_window_refusal(struct hf_str message, int64_t *window, int64_t *sent)
{
	*window =
	    number_behind(message, before_window, hf_countof(before_window));
	if (*window < LEAST_WINDOW)
		*window = 0;
	*sent = in_messages(message);
	if (*sent == 0)
		*sent = number_behind(
		    message, before_sent, hf_countof(before_sent));
}
