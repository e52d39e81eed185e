/*
 * How many tokens a text is, without a tokenizer: runs of letters, digits,
 * white space and signs, each with what it costs in the vocabularies of today,
 * so that the estimate is rather too high than too low.  Pure; any thread.
 *
 * Its error, measured against cl100k_base and o200k_base (the greater of the
 * two is what it is meant for) on 25 texts of 400 bytes to 120 KB:
 *
 *   English prose, Markdown      +3 to +13 %
 *   C, Python, JavaScript        +11 to +18 %
 *   JSON, logs                   -3 to +13 %
 *   German, French               -1 to +18 %
 *   Chinese, Japanese, Korean    +3 to +13 %
 *   Russian                      +2 to +17 %
 *   a short message with emoji   -1 %
 *
 * Of languages that o200k_base has more words for it makes up to 1.9 times as
 * much as that does.  tests/unit/test_tokens.c holds samples.
 */
#ifndef HF_GATEWAY_TURN_TOKENS_H
#define HF_GATEWAY_TURN_TOKENS_H

#include "base/hf.h"
#include "store/store.h"

/* Tokens that 'text' is, as it stands in JSON: an escape counts as the
 * character that it is.  Of other text the same, but for its backslashes. */
int64_t hf_tokens(struct hf_str text);

/* Tokens of an item in a request: of what the history has of it (what was
 * heard of it), and of what stands around it on the wire. */
int64_t hf_tokens_item(const struct hf_item *item);

#endif
