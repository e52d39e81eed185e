/*
 * The wording of the suites: statements that plant a fact, the probes that
 * ask for it, small talk with its answers, and the parts facts are made of.
 * Invented for this project; no real person, firm or number is meant.
 */
#ifndef HF_BENCH_WORDS_H
#define HF_BENCH_WORDS_H

#include "base/hf.h"

enum hf_fact_type {
	HF_FACT_NAME,
	HF_FACT_PREFERENCE,
	HF_FACT_DATE,
	HF_FACT_NUMBER,
	HF_FACT_CONSTRAINT,
	HF_FACT_TYPES
};
const char *hf_fact_type_name(enum hf_fact_type t);

/* A statement is before + fact + after; the probe asks for the fact and is
 * shared by every conversation that uses the template. */
struct hf_template {
	enum hf_fact_type type;
	const char *before;
	const char *after;
	const char *probe;
	/* Asks for the same without a word of content of the statement. */
	const char *oblique;
};
extern const struct hf_template hf_templates[];
extern const unsigned hf_n_templates;

/* Small talk: a question and the answer that the set gives to it. */
struct hf_filler {
	const char *question, *answer;
};
extern const struct hf_filler hf_fillers[];
extern const unsigned hf_n_fillers;

/* What is put before a statement, and what is answered to it. */
extern const char *const hf_openers[];
extern const unsigned hf_n_openers;
extern const char *const hf_acks[];
extern const unsigned hf_n_acks;

/* Parts of facts. */
#define HF_N_NAMES 30
#define HF_N_QUALITIES 10
#define HF_N_THINGS 12
extern const char *const hf_first_names[HF_N_NAMES];
extern const char *const hf_last_names[HF_N_NAMES];
extern const char *const hf_liked_qualities[HF_N_QUALITIES];
extern const char *const hf_liked_things[HF_N_THINGS];
extern const char *const hf_barred_qualities[HF_N_QUALITIES];
extern const char *const hf_barred_things[HF_N_THINGS];
extern const char *const hf_months[12];

#endif
