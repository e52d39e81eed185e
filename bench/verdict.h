/*
 * What a model is asked when it judges an answer, and the reading of what it
 * says.  It is told the expected fact, the question and the answer, and nothing
 * else: not who answered, nor what anybody else thinks.  Pure.
 */
#ifndef HF_BENCH_VERDICT_H
#define HF_BENCH_VERDICT_H

#include "base/buf.h"
#include "base/hf.h"

struct hf_question {
	const char *expected, *probe, *answer;
};

/* How the form of the verdict is asked for; endpoints that refuse one are asked
 * with the next. */
enum hf_verdict_form {
	HF_FORM_SCHEMA, /* response_format json_schema, temperature 0 */
	HF_FORM_OBJECT, /* response_format json_object, temperature 0 */
	HF_FORM_PLAIN	/* by words alone */
};

/* The body of a chat completion request. */
void hf_verdict_ask(struct hf_buf *out, const char *model,
    enum hf_verdict_form form, const struct hf_question *q);
/*
 * The verdict in what the model said: the member "preserved" of a JSON object,
 * whatever stands around it.  False: there is none, or there are two that
 * differ.  *reason: its own words, caller frees, or NULL.
 */
bool hf_verdict_read(
    const char *text, bool *preserved, char **reason) HF_MUST_CHECK;

#endif
