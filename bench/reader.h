/*
 * The reading of one chat completion, plain or streamed, as a strict client
 * reads it, apart from its transport.  Pure.
 */
#ifndef HF_BENCH_READER_H
#define HF_BENCH_READER_H

#include <jansson.h>

#include "base/buf.h"
#include "base/hf.h"

/* What a stream has one of each of. */
struct hf_marks {
	unsigned roles, finishes, dones;
	unsigned ids, models; /* different ones */
};

struct hf_answer_reader {
	bool stream;
	struct hf_buf line; /* or the whole body */
	struct hf_buf text;
	json_t *calls; /* [{"id","name","arguments"}] or NULL */
	struct hf_marks marks;
	char finish[24]; /* the reason */
	bool finished, done, failed;
	char id[80], model[80];
	char error[200];
};
void hf_reader_init(struct hf_answer_reader *r, bool stream);
void hf_reader_free(struct hf_answer_reader *r);
/* True once text has been seen. */
bool hf_reader_data(struct hf_answer_reader *r, struct hf_str bytes);
/* The answer (caller frees; empty where there are only calls), or NULL with
 * 'error' set. */
char *hf_reader_end(struct hf_answer_reader *r, int status);

#endif
