/*
 * Does the judge, exact or a model, judge as a person would?  A sample of a
 * report's answers is put on a page without the verdicts that were given; a
 * person's verdicts come back as lines of text.  Pure.
 */
#ifndef HF_BENCH_AUDIT_H
#define HF_BENCH_AUDIT_H

#include <jansson.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hf.h"

#define HF_AUDIT_DIGEST 33 /* with its NUL */

struct hf_audit {
	unsigned cases; /* wanted; fewer if there are not so many */
	unsigned long seed;
	bool judged;	/* only those that a model decided */
	json_t *sample; /* [{"id","expected","probe","answer","right","by"}] */
	char digest[HF_AUDIT_DIGEST]; /* of the sample */
};

/* Fills 'sample' and 'digest' by the others; fails if there is nothing. */
int hf_audit_sample(
    struct hf_audit *a, json_t *report, struct hf_error *e) HF_MUST_CHECK;
void hf_audit_free(struct hf_audit *a);
/* The page that a person fills in; its text is what hf_audit_read() reads. */
void hf_audit_page(struct hf_buf *out, const struct hf_audit *a);
/* What the first lines of such a text say was sampled; the sample itself is
 * not made. */
int hf_audit_header(
    struct hf_audit *a, const char *text, struct hf_error *e) HF_MUST_CHECK;
/* Compares the person's verdicts with those of the report; *out (new):
 * {"schema","digest","seed","agreement":{n,k,p,lo,hi},"unsure","unanswered",
 * "cases"}.  'a' with its sample. */
int hf_audit_read(const struct hf_audit *a, const char *text, json_t **out,
    struct hf_error *e) HF_MUST_CHECK;
void hf_audit_text(FILE *f, json_t *result);

#endif
