/*
 * Aligned tables whose columns are members of JSON objects.
 */
#ifndef HF_CTL_TABLE_H
#define HF_CTL_TABLE_H

#include <stdio.h>

#include <jansson.h>

#include "base/buf.h"

enum hf_ctl_format {
	HF_CTL_TEXT_CELL, /* escaped */
	HF_CTL_INT_CELL,
	HF_CTL_SOME_CELL,     /* an integer; 0: none */
	HF_CTL_KNOWN_CELL,    /* an integer; below 0: not known */
	HF_CTL_MS_CELL,	      /* microseconds, as milliseconds; below 0:
			       * not known */
	HF_CTL_TIME_CELL,     /* wall clock in microseconds, as UTC */
	HF_CTL_DURATION_CELL, /* microseconds; 0: none */
	HF_CTL_BYTES_CELL,
	HF_CTL_BOOL_CELL, /* yes, or - */
	HF_CTL_INC_CELL	  /* boot.spawn */
};

struct hf_ctl_column {
	const char *head, *member;
	enum hf_ctl_format format;
};

/* One value as text; "-" for what is missing, null or of another type. */
void hf_ctl_put_cell(struct hf_buf *out, json_t *v, enum hf_ctl_format format);
/* Print 'rows' (an array of objects); -1 when memory is gone. */
int hf_ctl_table(const struct hf_ctl_column *column, unsigned n_column,
    json_t *rows, bool headers, FILE *out) HF_MUST_CHECK;

#endif
