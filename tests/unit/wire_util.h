/*
 * What the tests of the dialects share: events written as one line of text,
 * responses fed in every split, items and requests made from literals.
 */
#ifndef TESTS_UNIT_WIRE_UTIL_H
#define TESTS_UNIT_WIRE_UTIL_H

#include "gateway/provider/provider.h"

#define S(lit)                         \
	{                              \
		(lit), sizeof(lit) - 1 \
	}

/* A response and the events that must come of it:
 *   begin text(T) refusal(T) tool(ID,NAME,ARGS) finish(REASON)
 *   usage(IN,OUT,CACHED,REASONING) done
 *   error(CLASS,REASON,STATUS,RETRY_MS,MESSAGE,CODE,TYPE)
 * with a blank between two; progress is counted, not written. */
struct wire_case {
	const char *name;
	int status;
	const char *headers;
	struct hf_str body;
	bool clean;
	const char *events;
};

/* Writes an event; 'arg' is a struct hf_buf. */
void wire_record(void *arg, const struct hf_event *ev);
/* Feed the body in pieces of 'first', then 'step' bytes; 'out' gets the
 * line.  Checks what must hold for every response. */
void wire_decode(const struct hf_dialect *dl, const struct wire_case *c,
    size_t first, size_t step, struct hf_buf *out);
/* The case whole, in two pieces cut at every place (if short), in single
 * bytes. */
void wire_check(const struct hf_dialect *dl, const struct wire_case *c);

/* Items from literals. */
struct hf_item wire_message(enum hf_role role, const char *body);
struct hf_item wire_call(int64_t turn, const char *body);
struct hf_item wire_result(const char *body);

/* Build and return the body, to be freed; fails the test on an error. */
char *wire_build(const struct hf_dialect *dl, const struct hf_item *item,
    unsigned n, const char *params, bool stream);
/* The same of an input; its params come from the text. */
char *wire_build_in(const struct hf_dialect *dl, struct hf_payload_input *in,
    const char *params);
/* That it is refused, in these words. */
void wire_refused_in(const struct hf_dialect *dl, struct hf_payload_input *in,
    const char *params, const char *why);
int wire_build_rc(const struct hf_dialect *dl, const struct hf_item *item,
    unsigned n, const char *params, struct hf_error *e);
/* The value of one member ("messages") of a built body must be 'want'. */
void wire_expect(const struct hf_dialect *dl, const struct hf_item *item,
    unsigned n, const char *params, const char *member, const char *want);

/* The limit of a request that is to bring one token, whatever the parameters
 * say, must be 'want' ("{\"max_tokens\":1}"). */
void wire_limit(
    const struct hf_dialect *dl, const char *params, const char *want);
/* Where the provider's list of models is asked for, without a body. */
void wire_models(const struct hf_dialect *dl, const char *base, const char *url,
    const char *key_header);

extern struct hf_conf_provider wire_provider;
extern struct hf_conf_target wire_target;

#endif
