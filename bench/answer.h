/*
 * What a faithful provider says: a pure function of the messages that it
 * received in this one request.  Rules, first match wins, on the last user
 * message (or on tool results, when those are last):
 *
 *   a line of a call         what script.h says
 *   tool results last      "Tool results: NAME = TEXT; NAME = TEXT."
 *   "!call NAME JSON" lines, each a declared tool: those calls, in parallel
 *   "!fetch NAME PROBE"    a call with the probe's fact in its arguments, or
 *                          with "unknown"
 *   "!say TEXT" before such lines: that text before the calls
 *   a probe                the fact, if a received user (or system) message
 *                          states it by the probe's template (the last one
 *                          wins), else "I don't have that information."
 *   the other wordings of rules.h
 *   a small-talk question  the set's own answer
 *   a statement of a fact  an acknowledgement
 *   anything else          "I heard: TEXT"
 *
 * Of a published set, whose wording has no templates, a probe is a text that
 * the set uses as one; a user message states its fact if it is, to the byte,
 * one by which the set plants a fact for that probe; and every other text of
 * the set is answered with the set's own next message.
 */
#ifndef HF_BENCH_ANSWER_H
#define HF_BENCH_ANSWER_H

#include <jansson.h>

#include "base/hf.h"
#include "bench/words.h"

struct hf_lore;

#define HF_ANSWER_UNKNOWN "I don't have that information."

/*
 * A view is the normal form of a request's messages, the same for every
 * dialect: [{"role":"system|user|assistant|tool","text":T,
 *   "calls":[{"id","name","arguments"}], "call_id":ID}], the last two only
 * where they apply.
 */
struct hf_answer {
	char *text;    /* comes before calls; NULL when there are only calls */
	json_t *calls; /* [{"name","arguments"}] or NULL */
};

/* 'tools': names that the request declares, or NULL.  'lore': of a published
 * set, or NULL. */
void hf_answer_make(struct hf_answer *a, json_t *view, json_t *tools,
    const struct hf_lore *lore);
void hf_answer_free(struct hf_answer *a);

/* The acknowledgement of a statement: a function of its text. */
const char *hf_answer_ack(struct hf_str statement);
/* The fact that 'text' states by template 't'; .p NULL: none. */
struct hf_str hf_answer_fact(const struct hf_template *t, struct hf_str text);
/* The template that this text is the probe of, or NULL. */
const struct hf_template *hf_answer_probe(struct hf_str text);
/* "You told me: F.", or, .p NULL, that nobody did; caller frees. */
char *hf_answer_told(struct hf_str fact);
/* What "!fetch" makes: {"fact":F,"note":N} for this fact; caller frees. */
char *hf_answer_arguments(struct hf_str fact);
/* The text of the last user message; .p NULL: none. */
struct hf_str hf_view_last_user(json_t *view);

static inline struct hf_str
hf_json_str(json_t *s)
{
	if (!json_is_string(s))
		return HF_STR_NONE;
	return (struct hf_str){ json_string_value(s), json_string_length(s) };
}

static inline bool
hf_view_has_role(json_t *message, const char *role)
{
	return hf_str_is(hf_json_str(json_object_get(message, "role")), role);
}

static inline struct hf_str
hf_view_text(json_t *message)
{
	return hf_json_str(json_object_get(message, "text"));
}

#endif
