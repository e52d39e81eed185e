/*
 * Errors: one negative code for the whole product and an optional text with
 * the detail.  Only the lowest layer that knows the detail writes it; upper
 * layers may prefix it with hf_error_prefix().
 */
#ifndef HF_BASE_ERR_H
#define HF_BASE_ERR_H

#include "base/hf.h"

enum hf_err {
	HF_OK = 0,
#define HF_ERR(name, num, retry, text) HF_##name = num,
#include "base/err.def"
#undef HF_ERR
};

struct hf_error {
	int code;	/* enum hf_err */
	int sys;	/* errno, SQLite or curl code, or 0 */
	char text[240]; /* what was wrong and where; no contents */
};

/* Fill 'e' (may be NULL) and return 'code', so that callers can write
 * "return hf_fail(e, HF_EINVAL, ...)". */
int hf_fail(struct hf_error *e, int code, const char *fmt, ...) HF_PRINTF(3, 4);
/* The same for a failed system call: appends strerror(errno); HF_ESYS. */
int hf_fail_errno(struct hf_error *e, const char *fmt, ...) HF_PRINTF(2, 3);
/* Put "prefix: " in front of the text of 'e' (may be NULL); returns its code.*/
int hf_error_prefix(struct hf_error *e, const char *prefix);
/* "ENOMEM" and "out of memory" for a code; never NULL. */
const char *hf_err_name(int code);
const char *hf_err_text(int code);
bool hf_err_retryable(int code);

#endif
