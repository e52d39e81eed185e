/*
 * What of a history the reference proxy tells a target whose context window is
 * too small for all of it.  It has a rough measure of its own, as a gateway
 * that does not have the provider's tokenizer.  Pure.
 */
#ifndef HF_BENCH_ROOM_H
#define HF_BENCH_ROOM_H

#include <jansson.h>

#include "base/hf.h"

/* Tokens of messages of the openai dialect, rather too many than too few. */
unsigned hf_room_tokens(json_t *messages);
/*
 * The messages without as many of the oldest turns, as a whole each, as must go
 * for 'window' tokens to hold them and an answer of 'output' (0: a quarter of
 * the window).  System messages at the beginning stay, and so does what is
 * asked last, whatever its size.  New.
 */
json_t *hf_room_fit(json_t *messages, unsigned window, unsigned output);
/* The window that a provider has told in refusing what is too long; 0: that is
 * not what this error says. */
unsigned hf_room_told(const char *error);

#endif
