/*
 * Characters of UTF-8 text as the splice and the release gate see them: white
 * space, punctuation, letters (all that makes words, emoji included) and the
 * scripts that put no spaces between words.  Bytes that are not UTF-8 count
 * as letters of one byte.  Pure.
 */
#ifndef HF_GATEWAY_TURN_CHARS_H
#define HF_GATEWAY_TURN_CHARS_H

#include "base/hf.h"

enum hf_char_kind {
	HF_CHAR_SPACE,
	HF_CHAR_PUNCT,
	HF_CHAR_LETTER,
	HF_CHAR_WIDE,	   /* a letter of a script without spaces */
	HF_CHAR_WIDE_PUNCT /* its punctuation */
};

struct hf_char {
	uint32_t cp;
	uint32_t size; /* bytes, at least 1 */
	enum hf_char_kind kind;
};

/* The character at 'at', which is below s.size. */
struct hf_char hf_char_at(struct hf_str s, size_t at);
/* The one that ends at 'at', which is above 0. */
struct hf_char hf_char_before(struct hf_str s, size_t at);
/* s.size without a sequence at the end that lacks bytes. */
size_t hf_char_whole(struct hf_str s);

static inline bool
hf_char_is_wide(struct hf_char c)
{
	return c.kind == HF_CHAR_WIDE || c.kind == HF_CHAR_WIDE_PUNCT;
}

static inline bool
hf_char_is_line_end(struct hf_char c)
{
	return c.cp == '\n' || c.cp == '\r' || c.cp == 0x2028 || c.cp == 0x2029;
}

#endif
