/*
 * Telephone calls by script, as lines with slots in braces: what the caller
 * says or a tool returns, and what is answered.  A faithful provider fills an
 * answer's slots from the messages that it received; the last that had one
 * wins.  Pure.
 */
#ifndef HF_BENCH_SCRIPT_H
#define HF_BENCH_SCRIPT_H

#include <jansson.h>

#include "base/hf.h"
#include "bench/answer.h"

/* The caller said nothing: the last question is asked again. */
#define HF_SILENCE "(silence)"
#define HF_SCRIPT_LINES 12

struct hf_script_line {
	const char *says;   /* NULL: the end of the script */
	bool tool;	    /* that is a tool's result */
	const char *answer; /* or NULL: */
	const char *call;   /* this tool is called, */
	const char *args;   /* ... with this */
};

struct hf_script {
	const char *name;
	const char *tools; /* JSON of what requests declare */
	struct hf_script_line line[HF_SCRIPT_LINES];
};
extern const struct hf_script hf_scripts[];
extern const unsigned hf_n_scripts;

/* False: the last message of the view is none of a script. */
bool hf_script_answer(struct hf_answer *a, json_t *view, json_t *tools);

/* The text with its slots filled from an object of strings; NULL: one is
 * missing.  Caller frees. */
char *hf_script_fill(const char *text, json_t *slots);
/* Sets the slots that 'text' has; false: it is not this line. */
bool hf_script_match(const char *line, struct hf_str text, json_t *slots);
/* What is said to a silence behind 'last'; caller frees. */
char *hf_script_again(struct hf_str last);

#endif
