/*
 * A suite: conversations made from a seed, each with a fact planted in it, a
 * probe that asks for the fact, and the failure that the first provider
 * produces on the probe's turn.  Immutable once made; the caller owns it.
 */
#ifndef HF_BENCH_SUITE_H
#define HF_BENCH_SUITE_H

#include "base/hf.h"
#include "bench/manifest.h"
#include "bench/words.h"

struct hf_conv {
	char	 id[8];			/* "p001" */
	const struct hf_template *tmpl;
	char	*fact;
	char	*user[8];		/* what the caller says, in order; the
					 * last is the probe */
	const char *assistant[8];	/* what a faithful provider says to
					 * each but the probe */
	unsigned n_user;
	unsigned n_messages;		/* 2 * n_user - 1 */
	enum hf_fault_kind failure;	/* of the first target on the probe */
};

struct hf_suite {
	const char	*name;
	uint64_t	 seed;
	struct hf_conv	*conv;
	unsigned	 n_conv;
};

struct hf_suite_kind {
	const char	*name;
	const char	*help;
	struct hf_suite *(*make)(uint64_t seed);
};
extern const struct hf_suite_kind hf_suite_kinds[];
extern const unsigned hf_n_suite_kinds;

/* NULL: no suite of that name. */
struct hf_suite *hf_suite_make(const char *name, uint64_t seed) HF_MUST_CHECK;
void	 hf_suite_free(struct hf_suite *s);
const struct hf_conv *hf_suite_find(const struct hf_suite *s,
	    struct hf_str id);
/* Index of the user message with this text, or -1. */
int	 hf_conv_turn(const struct hf_conv *c, struct hf_str text);
/* Rows that make provider 'primary' fail on every probe. */
void	 hf_suite_manifest(const struct hf_suite *s, struct hf_manifest *m);

#define HF_CANARY_SIZE	16
/* "CB-" and 12 characters that belong to one play (system, run,
 * conversation) and to nothing else. */
void	 hf_suite_canary(const struct hf_suite *s, unsigned system,
	    unsigned run, unsigned conv, char out[HF_CANARY_SIZE]);
/* The system message of a play, holding its canary; caller frees. */
char	*hf_suite_system(const char *canary) HF_MUST_CHECK;

struct hf_suite *hf_suite_paper(uint64_t seed) HF_MUST_CHECK;

#endif
