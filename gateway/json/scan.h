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
	const struct hf_json_node *node; /* its place in a map, or NULL */
};

/*
 * Where everything in a text is, noted while it was checked: whoever asks a
 * mapped value for its members or elements steps over what is between them
 * instead of reading it again.  In the order of the text; a member is a key
 * and its value.
 */
struct hf_json_node {
	uint32_t at;   /* bytes from the text's start */
	uint32_t size; /* bytes */
	uint32_t skip; /* nodes: this one and all inside it */
	uint8_t type;  /* enum hf_json_type */
	bool plain;    /* a string without an escape */
};
struct hf_json_map {
	struct hf_json_node *node;
	uint32_t n, cap;
};
#define HF_JSON_MAP_MAX (1u << 20) /* nodes; a text with more: no map */

/*
 * Check that 'text' is one JSON value (with white space around it) and return
 * it.  HF_EINVAL with "line L, column C: what" in 'e'; HF_ELIMIT when nested
 * deeper than HF_JSON_MAX_DEPTH.  Every other function below requires text
 * that has passed this check.  A lone surrogate escape is not an error here;
 * *repairs (may be NULL) counts them.  Strings are checked to be UTF-8.
 */
int hf_json_check(struct hf_str text, struct hf_json *out, unsigned *repairs,
    struct hf_error *e) HF_MUST_CHECK;

/*
 * The same, and the value is mapped: behind what 'map' holds already, so that
 * several texts can share one.  Values of a map die when it is freed or reset;
 * and since it may move while it grows, those of an earlier text must get
 * their node anew (hf_json_remap() with the map's 'n' from before their
 * check).  Without memory, or beyond the map's bound, the value is good but
 * not mapped; everything else works the same, only slower.
 */
int hf_json_check_map(struct hf_str text, struct hf_json *out,
    unsigned *repairs, struct hf_json_map *map,
    struct hf_error *e) HF_MUST_CHECK;
void hf_json_remap(
    struct hf_json *v, const struct hf_json_map *map, uint32_t first);
void hf_json_map_reset(struct hf_json_map *map); /* keeps the memory */
void hf_json_map_free(struct hf_json_map *map);

/* Iterate: start with pos = 0; false at the end.  Keys come raw, with quotes.
 * Linear over the whole iteration. */
bool hf_json_next_member(struct hf_json obj, size_t *pos, struct hf_json *key,
    struct hf_json *value);
bool hf_json_next_element(
    struct hf_json arr, size_t *pos, struct hf_json *value);
/* Elements of an array, up to 'most'; 0 if it is not mapped. */
unsigned hf_json_count(struct hf_json arr, unsigned most);

/* Member by (decoded) key; the last one wins, as in most parsers; type NONE
 * when absent or when 'obj' is not an object. */
struct hf_json hf_json_get(struct hf_json obj, const char *key);
/* The same for several keys in one walk; out[i] is for key[i]. */
void hf_json_get_all(struct hf_json obj, const struct hf_str *key, unsigned n,
    struct hf_json *out);
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
