/*
 * The wordings of our own suites, and what a faithful provider says to them:
 * a function of the messages that it received (answer.h is the front).
 *
 *   a probe                  the fact that was stated last by its template, by
 *                            the caller or in the system message
 *   ... after HF_RETRACT     HF_ANSWER_RETRACTED, until it is stated anew
 *   a template's oblique     the same, in other words
 *   a probe + HF_AT_LENGTH   the same in a recital (recital.h), which the
 *                            number of received user messages varies
 *   HF_ECHO_PROBE            the last such recital of the assistant's
 *   HF_ASK_TICKET T          "Your ticket is N." with a number made of T
 *   HF_TICKET_PROBE          the last N that an assistant's message gave
 *   HF_RESULT_PROBE          the last result of a tool
 *   HF_FIRST, HF_SECOND      the facts in the order in which the caller stated
 *                            them
 *   HF_OTHER, HF_UNSAID      the only one that no answer has held yet
 *   HF_WEEK                  the day a week after the first date among them
 *
 * What was not received is not known: HF_ANSWER_UNKNOWN.  Pure.
 */
#ifndef HF_BENCH_RULES_H
#define HF_BENCH_RULES_H

#include <jansson.h>

#include "base/hf.h"
#include "bench/words.h"

#define HF_RETRACT "Please forget what I said about this: "
#define HF_ANSWER_FORGOTTEN "All right, that is forgotten."
#define HF_ANSWER_RETRACTED "You took that back."

#define HF_ASK_TICKET "Please open a ticket for "
#define HF_TICKET_PROBE "Which number did you give me for it?"
#define HF_RESULT_PROBE "What did the look-up say, word for word?"

/* Oblique: they share no word of content with what they ask for. */
#define HF_FIRST "Say it again, would you: how this conversation opened."
#define HF_SECOND "Repeat the second detail of mine to me."
#define HF_OTHER "And the other one?"
#define HF_UNSAID "Which of them have you not repeated yet?"
#define HF_WEEK "And seven days later?"

struct hf_found {
	struct hf_str fact; /* .p NULL: none */
	bool retracted;
};
struct hf_found hf_find_fact(json_t *view, const struct hf_template *t);

/* NULL: it is no wording of ours.  Caller frees. */
char *hf_rule_answer(json_t *view, struct hf_str text);

/* The number that is given for a thing; caller frees. */
char *hf_ticket(struct hf_str thing) HF_MUST_CHECK;
/* A week after "D MONTH 2027"; .p NULL in, or no date: NULL.  Caller frees. */
char *hf_week_after(struct hf_str date);

#endif
