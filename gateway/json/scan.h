/*
 * A strict JSON scanner that yields spans instead of trees: request and
 * history bytes are passed on as raw slices, so that numbers, escapes and
 * unknown fields survive byte for byte.  The whole grammar of RFC 8259 is
 * checked, and UTF-8; pure functions, no state, any thread.
 */
#ifndef HF_GATEWAY_JSON_SCAN_H
#define HF_GATEWAY_JSON_SCAN_H

#include "base/buf.h"
#include "base/err.h"
#include "base/hf.h"

#define HF_JSON_MAX_DEPTH 64

enum hf_json_type {
	HF_JSON_NONE, /* absent */
	HF_JSON_NULL,
	HF_JSON_TRUE,
	HF_JSON_FALSE,
	HF_JSON_NUMBER,
	HF_JSON_STRING,
	HF_JSON_ARRAY,
	HF_JSON_OBJECT
};

/* A value: its type and its raw bytes (with quotes or brackets), which point
 * into the checked text and live as long as it does. */
struct hf_json {
	enum hf_json_type type;
	struct hf_str raw;
	const struct hf_json_index *index; /* of an object, or NULL */
};

/* An object's members, for those who ask one object for many keys; fewer than
 * the maximum. */
#define HF_JSON_INDEX_MAX 48
struct hf_json_member {
	struct hf_str key; /* raw, with quotes */
	bool plain;	   /* it holds no escape, surely */
	struct hf_json value;
};
struct hf_json_index {
	unsigned n;
	struct hf_json_member member[HF_JSON_INDEX_MAX];
};

/*
 * Check that 'text' is one JSON value (with white space around it) and return
 * it.  HF_EINVAL with "line L, column C: what" in 'e'; HF_ELIMIT when nested
 * deeper than HF_JSON_MAX_DEPTH.  Every other function below requires text
 * that has passed this check.  A lone surrogate escape is not an error here;
 * *repairs (may be NULL) counts them.  Strings are checked to be UTF-8.
 */
int hf_json_check(struct hf_str text, struct hf_json *out, unsigned *repairs,
    struct hf_error *e) HF_MUST_CHECK;

/* Iterate: start with pos = 0; false at the end.  Keys come raw, with quotes.
 * Linear over the whole iteration. */
bool hf_json_next_member(struct hf_json obj, size_t *pos, struct hf_json *key,
    struct hf_json *value);
bool hf_json_next_element(
    struct hf_json arr, size_t *pos, struct hf_json *value);

/* Member by (decoded) key; the last one wins, as in most parsers; type NONE
 * when absent or when 'obj' is not an object. */
struct hf_json hf_json_get(struct hf_json obj, const char *key);
/* Find the members of 'obj' once: hf_json_get() of it and of its copies then
 * asks 'index', which must live as long as they do, instead of walking over
 * all of the text.  An object with too many members stays as it is. */
void hf_json_index(struct hf_json *obj, struct hf_json_index *index);
/* Path of keys: hf_json_path(v, "choices", "0", NULL); digits index arrays.*/
struct hf_json hf_json_path(struct hf_json v, ...) __attribute__((sentinel));
bool hf_json_key_is(struct hf_json key, const char *z);

/* Append the decoded UTF-8 text of a string (a lone surrogate becomes
 * U+FFFD; \u0000 becomes a NUL byte). */
void hf_json_decode(struct hf_json string, struct hf_buf *out);
/* True if decoding would change nothing (no backslash): then the text is
 * raw.p+1 .. raw.size-2. */
bool hf_json_is_plain(struct hf_json string);
/* Compare the decoded text. */
bool hf_json_string_is(struct hf_json string, const char *z);
/* An integer number without fraction or exponent, in range; else false. */
bool hf_json_int(struct hf_json number, int64_t *out);
bool hf_json_double(struct hf_json number, double *out);

/* Append 'text' (any bytes; ill-formed UTF-8 becomes U+FFFD) as a JSON string
 * with quotes: only what must be escaped is. */
void hf_json_put_string(struct hf_buf *out, struct hf_str text);
/* Append the raw string with each lone surrogate escape made \ufffd. */
void hf_json_put_repaired(struct hf_buf *out, struct hf_json value);
/* Append 'v' without white space outside strings (one line, normal form). */
void hf_json_put_compact(struct hf_buf *out, struct hf_json v);

#endif
