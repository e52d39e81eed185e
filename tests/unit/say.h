/*
 * What a provider streams when it says a text, in either dialect.
 */
#ifndef HF_TESTS_SAY_H
#define HF_TESTS_SAY_H

#include "base/buf.h"
#include "base/conf.h"

struct say {
	enum hf_conf_dialect dialect;
	const char *eol; /* of the stream's lines: "\n", "\r\n", "\r" */
	bool escaped;	 /* what is not ASCII as \u escapes */
};

/* Append the whole stream: its beginning, the text in some ten pieces and
 * more, the end with usage. */
void say_stream(const struct say *s, struct hf_str text, struct hf_buf *out);

#endif
