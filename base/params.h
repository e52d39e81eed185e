/*
 * The rows of params.def as a table, for the parser of the configuration and
 * for whoever explains it.  Constant data; any thread.
 */
#ifndef HF_BASE_PARAMS_H
#define HF_BASE_PARAMS_H

#include "base/hf.h"

enum hf_param_type {
	HF_PARAM_MS,	      /* int, milliseconds */
	HF_PARAM_COUNT,	      /* int */
	HF_PARAM_SIZE,	      /* int64_t, bytes */
	HF_PARAM_ENUM,	      /* int, index into choices */
	HF_PARAM_TEXT,	      /* char *, any printable text */
	HF_PARAM_PATH,	      /* char *, absolute */
	HF_PARAM_URL,	      /* char *, http or https, no query */
	HF_PARAM_WORD,	      /* char *, letters, digits and . _ - */
	HF_PARAM_LISTEN,      /* gateway.listen */
	HF_PARAM_TARGETS,     /* route.targets */
	HF_PARAM_ON_ERROR,    /* route.on_error */
	HF_PARAM_SECRET_FILE, /* char *, read from the file */
	HF_PARAM_SECRET_ENV,  /* char *, from the environment */
	HF_PARAM_SECRET_CRED  /* char *, from a systemd credential */
};

enum hf_param_flags {
	HF_P_REQUIRED = 1,
	HF_P_RESTART = 2 /* takes effect at the next start only */
};

struct hf_param {
	const char *block, *key;
	enum hf_param_type type;
	size_t offset; /* of the member in its block's struct */
	int64_t min, max;
	const char *def;     /* NULL: none */
	const char *choices; /* "a|b|c" of an ENUM, else NULL */
	unsigned flags;	     /* enum hf_param_flags */
	const char *prose;
};

struct hf_block {
	const char *name;
	bool titled;
	const char *title; /* what the title is */
	const char *prose;
};

extern const struct hf_param hf_params[];
extern const unsigned hf_n_params;
extern const struct hf_block hf_blocks[];
extern const unsigned hf_n_blocks;

/* The row of a key, or NULL. */
const struct hf_param *hf_param_find(const char *block, const char *key);
bool hf_param_is_list(const struct hf_param *p);
bool hf_param_is_secret(const struct hf_param *p);
/* What a value of this row must be, for messages: "an integer number of
 * milliseconds, 1 to 600000", "full or normal". */
void hf_param_expected(const struct hf_param *p, char *out, size_t size);
/* The index of 'value' among the choices of an ENUM, or -1. */
int hf_param_choice(const struct hf_param *p, const char *value);

#endif
