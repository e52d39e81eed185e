/*
 * Parts of which suites are made.
 */
#ifndef HF_BENCH_SUITE_MAKE_H
#define HF_BENCH_SUITE_MAKE_H

#include "bench/format.h"
#include "bench/recital.h"
#include "bench/rng.h"
#include "bench/suite.h"

/* An empty one with room for 'n' conversations. */
struct hf_suite *hf_suite_new(const char *name, uint64_t seed, unsigned n);
/* Two providers, "primary" and "fallback", of which the first fails; the
 * second speaks the other dialect.  One route. */
void hf_suite_two_targets(struct hf_suite *s);
/* The paper's shape: two targets, and the first fails on the last turn, which
 * is the probe; by length, kind of fact and failure. */
void hf_suite_paper_frame(struct hf_suite *s);
/* The same targets, and the other way round as a second route; answers are
 * known to the byte. */
void hf_suite_frame(
    struct hf_suite *s, const char *const *axis, unsigned n_axis);
/* "openai to anthropic" or the other way round. */
const char *hf_direction(unsigned route);
/* One of five kinds in turn, of the first target. */
enum hf_fault_kind hf_conv_fails(
    struct hf_conv *c, unsigned turn, unsigned number);
/* The paper's: for a conversation with all its turns. */
void hf_conv_fails_last(struct hf_conv *c, enum hf_fault_kind kind);
void hf_conv_label(struct hf_conv *c, unsigned axis, const char *fmt, ...)
    HF_PRINTF(3, 4);

/* A shuffled 0..n-1; caller frees. */
unsigned *hf_permutation(struct hf_rng *r, unsigned n);
const struct hf_template *hf_pick_template(
    enum hf_fact_type type, struct hf_rng *r);
/* "Hello there. " + before + fact + after; caller frees. */
char *hf_make_statement(
    const struct hf_template *t, const char *fact, struct hf_rng *r);

/* Deals facts of all types in turn, none twice and none that is part of
 * another; some thousand. */
struct hf_dealer {
	unsigned *order[HF_FACT_TYPES];
	unsigned dealt[HF_FACT_TYPES];
	unsigned next;
};
void hf_dealer_init(struct hf_dealer *d, struct hf_rng *r);
void hf_dealer_free(struct hf_dealer *d);
/* Sets tmpl, fact, fact_type and mark. */
void hf_deal_fact(struct hf_dealer *d, struct hf_conv *c, struct hf_rng *r);
/* A fact of this type (or a number, when all of them were dealt); caller
 * frees. */
char *hf_deal_one(
    struct hf_dealer *d, enum hf_fact_type type, struct hf_rng *r);
/* A further fact of the conversation, of this type (or a number, when all of
 * them were dealt); the conversation's. */
const char *hf_deal_more(struct hf_dealer *d, struct hf_conv *c,
    enum hf_fact_type type, struct hf_rng *r);

/* All conversations, one after the other, from one stream of numbers. */
void hf_suite_fill(struct hf_suite *s, uint64_t seed,
    void (*make)(
	struct hf_suite *s, unsigned i, struct hf_dealer *d, struct hf_rng *r));

/*
 * A further turn; its index.  'text' is taken over.  say: the answer is a text
 * of the tables, or NULL; ask: it is taken over and must hold the fact.
 */
unsigned hf_conv_say(struct hf_conv *c, char *text, const char *answer);
unsigned hf_conv_ask(struct hf_conv *c, char *text, char *answer);
void hf_conv_state_fact(struct hf_conv *c, struct hf_rng *r);
/* The same with another fact; its index. */
unsigned hf_conv_state(struct hf_conv *c, const struct hf_template *t,
    const char *fact, const char *before);
void hf_conv_small_talk(struct hf_conv *c, const struct hf_filler *f);
/* The probe of 't', answered with this fact. */
unsigned hf_conv_probe(
    struct hf_conv *c, const struct hf_template *t, const char *fact);
/* Two turns: a tool is called, and its result states the fact; the second's
 * index.  'n' chooses what is asked of it. */
unsigned hf_conv_look_up(struct hf_conv *c, unsigned n);
/* "before" + the probe, to be answered with a recital. */
unsigned hf_conv_ask_at_length(struct hf_conv *c, const char *before);

#endif
