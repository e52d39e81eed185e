/*
 * Text of strangers made fit for a terminal, and figures for people.
 */
#ifndef HF_CTL_ESCAPE_H
#define HF_CTL_ESCAPE_H

#include "base/buf.h"

/* Append 's' with everything that could steer a terminal or mislead its
 * reader written out: control characters and bytes that are not UTF-8 as
 * \xNN, bidirectional and invisible marks as \u{NNNN}, \ as \\. */
void hf_ctl_escape(struct hf_buf *out, struct hf_str s);
/* How many columns escaped text takes (one per character). */
size_t hf_ctl_width(struct hf_str s);

void hf_ctl_put_duration(struct hf_buf *out, int64_t us); /* "1.25s" */
void hf_ctl_put_bytes(struct hf_buf *out, int64_t n);	  /* "4.0M" */

#endif
