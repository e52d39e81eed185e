/*
 * A suite: conversations, each with a fact planted in it, a probe that asks
 * for the fact, and the failure that the first provider produces on the
 * probe's turn.  Made from a seed, or read from a published set.  Immutable
 * once made; the caller owns it.
 */
#ifndef HF_BENCH_SUITE_H
#define HF_BENCH_SUITE_H

#include <jansson.h>

#include "base/err.h"
#include "base/hf.h"
#include "bench/manifest.h"
#include "bench/words.h"

#define HF_CONV_ID 41	/* with its NUL */
#define HF_MAX_TURNS 32 /* user messages of a conversation */

struct hf_conv {
	char id[HF_CONV_ID];		/* "p001"; letters, digits, _ and - */
	const struct hf_template *tmpl; /* NULL: of a published set */
	const char *fact_type;
	char *fact;
	const char *mark;	  /* in no other conversation's mouth:
				   * where it turns up there is bleed */
	char *user[HF_MAX_TURNS]; /* what the caller says, in order; the
				   * last is the probe */
	const char *assistant[HF_MAX_TURNS]; /* what a faithful provider says
					      * to each but the probe */
	unsigned n_user;
	unsigned n_messages;	    /* 2 * n_user - 1 */
	enum hf_fault_kind failure; /* of the first target on the probe */
};

/*
 * What a faithful provider of a published set goes by: look-ups over the set,
 * because its wording follows no grammar that could be parsed.
 */
struct hf_lore {
	json_t *reply; /* user text -> assistant text */
	json_t *fact;  /* probe -> {text that states it: fact} */
};

struct hf_suite {
	const char *name;
	uint64_t seed;
	struct hf_lore *lore; /* NULL: made from templates */
	json_t *source;	      /* owns texts of a published set */
	struct hf_conv *conv;
	unsigned n_conv;
};

struct hf_suite_kind {
	const char *name;
	const char *help;
	struct hf_suite *(*make)(uint64_t seed);
};
extern const struct hf_suite_kind hf_suite_kinds[];
extern const unsigned hf_n_suite_kinds;

/* NULL: no suite of that name. */
struct hf_suite *hf_suite_make(const char *name, uint64_t seed) HF_MUST_CHECK;
void hf_suite_free(struct hf_suite *s);
const struct hf_conv *hf_suite_find(const struct hf_suite *s, struct hf_str id);
/* Index of the user message with this text, or -1. */
int hf_conv_turn(const struct hf_conv *c, struct hf_str text);
/* Rows that make provider 'primary' fail on every probe. */
void hf_suite_manifest(const struct hf_suite *s, struct hf_manifest *m);

#define HF_CANARY_SIZE 16
/* "CB-" and 12 characters that belong to one play (system, run,
 * conversation) and to nothing else. */
void hf_suite_canary(const struct hf_suite *s, unsigned system, unsigned run,
    unsigned conv, char out[HF_CANARY_SIZE]);
/* The system message of a play, holding its canary; caller frees. */
char *hf_suite_system(const char *canary) HF_MUST_CHECK;

struct hf_suite *hf_suite_paper(uint64_t seed) HF_MUST_CHECK;

/*
 * A published set: conversations and, for each, the failure of its probe's
 * turn.  What is wrong with a file is told with file, conversation and
 * member.  'seed' fixes canaries only.
 */
int hf_suite_published(struct hf_suite **out, const char *conversations,
    const char *manifest, uint64_t seed, struct hf_error *e) HF_MUST_CHECK;

#endif
