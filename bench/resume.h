/*
 * How a faithful provider goes on with an answer that broke off elsewhere: a
 * pure function of the messages that it received, like answer.h, of which
 * this is the front.
 *
 *   the assistant's message P stands last
 *	a model that prefills says what is missing, to the byte: its whole
 *	answer to the messages before P, without P
 *   P, then a user message that begins with HF_CONTINUE
 *	what is missing, without white space before it, behind the last 0, 4
 *	or 6 words of P once more, as real models do; which, P decides
 *   anything else
 *	the whole answer
 *
 * A P that is not the beginning of its own answer (white space at its end
 * aside) is told that: HF_ANSWER_LOST.
 */
#ifndef HF_BENCH_RESUME_H
#define HF_BENCH_RESUME_H

#include <jansson.h>

#include "bench/answer.h"

/* The words of the instruction; gateways that are started for a run are
 * configured with them. */
#define HF_CONTINUE                                                      \
	"Your last message broke off on its way. Go on with it exactly " \
	"where it stops; write nothing but what is missing."
#define HF_ANSWER_LOST "I did not say that, so I cannot go on with it."

/* The ends of model names that tell what a model does with an assistant's
 * message that stands last: go on with it, or refuse it by a 400. */
#define HF_MODEL_PREFILLS "-prefill"
#define HF_MODEL_REFUSES "-noprefill"
bool hf_model_prefills(struct hf_str model);
bool hf_model_refuses(struct hf_str model);

enum hf_asked { HF_ASKED_AFRESH, HF_ASKED_PREFILL, HF_ASKED_INSTRUCTION };
const char *hf_asked_name(enum hf_asked how);

struct hf_asked_view {
	enum hf_asked how;
	size_t n;	       /* messages of the view that are history */
	struct hf_str partial; /* P; .p NULL: afresh */
};
struct hf_asked_view hf_view_asked(json_t *view);

struct hf_resumed {
	struct hf_answer answer; /* to be freed */
	enum hf_asked asked;
	unsigned repeated; /* words of P said again */
};

/* As hf_answer_make(), by the rules above. */
void hf_answer_resume(struct hf_resumed *r, json_t *view, json_t *tools,
    const struct hf_lore *lore, struct hf_str model);

#endif
