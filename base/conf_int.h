/*
 * What the files of the configuration share.  The text goes through three
 * steps: conf_text.c blanks comments and checks quoting and braces, conf_raw.c
 * lets libConfuse parse it into blocks of {key, value, line}, conf_build.c
 * checks these and fills the structs of conf.h.
 *
 * libConfuse's lexer has global state: one parse at a time per process.
 */
#ifndef HF_BASE_CONF_INT_H
#define HF_BASE_CONF_INT_H

#include "base/arena.h"
#include "base/conf.h"
#include "base/params.h"

#define HF_CONF_MAX_TEXT ((size_t)256 * 1024)
#define HF_CONF_MAX_BLOCKS 4096
#define HF_CONF_MAX_ARENA ((size_t)64 * 1024 * 1024)

/* How much of the configuration is built. */
enum hf_conf_depth {
	HF_CONF_GATEWAY, /* look at no other block and no secret */
	HF_CONF_PUBLIC,	 /* everything but the secrets */
	HF_CONF_WHOLE
};

/* struct hf_conf as it is allocated: everything in it lives in the arena. */
struct hf_conf_own {
	struct hf_conf c;
	struct hf_arena a;
};

struct hf_conf_set { /* one value of one key */
	const struct hf_param *param;
	const char *value;
	int line;
	struct hf_conf_set *next; /* in order of the file */
};

struct hf_conf_block {
	const char *name;
	const char *title; /* "" if untitled */
	const void *cfg;   /* libConfuse's section; parsing only */
	int line;	   /* of its opening brace */
	struct hf_conf_set *set, **tail;
	struct hf_conf_block *next;
};

struct hf_conf_raw {
	const char *file;   /* name for messages; borrowed */
	struct hf_arena *a; /* borrowed; everything lives in it */
	struct hf_conf_block *block, **tail;
};

struct hf_conf_text {
	char *text;	 /* comments blanked */
	int *block_line; /* of each block's opening brace */
	unsigned n_block;
};

/* Everything in 'out' lives in 'a'. */
int hf_conf_clean(const char *file, const char *text, struct hf_arena *a,
    struct hf_conf_text *out, struct hf_error *e) HF_MUST_CHECK;
int hf_conf_raw_parse(struct hf_conf_raw *raw, const char *file,
    const char *text, struct hf_arena *a, struct hf_error *e) HF_MUST_CHECK;
int hf_conf_build(const struct hf_conf_raw *raw, enum hf_conf_depth depth,
    struct hf_conf_own *own, struct hf_error *e) HF_MUST_CHECK;

/* Check one value and store it at 'base' + the row's offset; strings are
 * copied into 'a'.  Not for lists. */
int hf_conf_value(const struct hf_param *p, const char *value, void *base,
    struct hf_arena *a, struct hf_error *e) HF_MUST_CHECK;
/* Only the checks, for elements of lists and titles. */
bool hf_conf_listen_ok(const char *value);
bool hf_conf_word_ok(const char *value, size_t max);
bool hf_conf_printable(const char *value, size_t min, size_t max);

/* Read a secret; the copy lives in 'a' and is to be wiped with it.  Texts of
 * errors say what was wrong, never any of the secret. */
int hf_conf_secret(const struct hf_param *p, const char *value,
    struct hf_arena *a, char **out, struct hf_error *e) HF_MUST_CHECK;

/* "FILE:LINE: block.key: ..." (key may be NULL, block too); HF_ECONFIG. */
int hf_conf_fail(struct hf_error *e, const char *file, int line,
    const char *block, const char *key, const char *fmt, ...) HF_PRINTF(6, 7);
/* Is 'b' one edit (insert, delete, replace, swap) away from 'a'? */
bool hf_conf_one_edit(const char *a, const char *b);

#endif
