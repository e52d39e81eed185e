/*
 * Public identifiers: a prefix and 26 lowercase base32 characters
 * (0-9, a-z without i, l, o, u) that carry 130 random bits.
 */
#ifndef HF_BASE_ID_H
#define HF_BASE_ID_H

#include "base/hf.h"

#define HF_ID_RANDOM 26 /* characters after the prefix */
#define HF_ID_SIZE 32	/* prefix + 26 + NUL fits for every prefix */

struct hf_id {
	char s[HF_ID_SIZE];
};

/* 'prefix' is "ses_", "turn_", "att_", "key_", at most 5 characters. */
void hf_id_make(struct hf_id *id, const char *prefix);
/* The 26 characters after the prefix (points into 'id'). */
const char *hf_id_random_part(const struct hf_id *id);
/* True if 's' is prefix + 26 characters of the alphabet. */
bool hf_id_valid(struct hf_str s, const char *prefix);

#endif
