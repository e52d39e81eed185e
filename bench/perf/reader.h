/* Reads one HTTP answer as it comes, and what perfmock marked in it. */
#ifndef HF_BENCH_PERF_READER_H
#define HF_BENCH_PERF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hf_reader_step {
	HF_READER_MORE, /* the answer goes on */
	HF_READER_DONE, /* it is whole; what follows is another's */
	HF_READER_BAD,	/* this is no HTTP/1.1 answer of ours */
};

struct hf_reader {
	/* The head, and in an answer that is no stream the body too. */
	char text[16384];
	size_t size;
	bool in_body;
	bool chunked;
	bool keep; /* the connection outlives the answer */
	int status;
	int64_t left; /* of the body, or of the chunk */
	int chunk_at; /* place in the chunk grammar */
	int mark_at;  /* place in "#INDEX:NS;" */
	int done_at;  /* place in "[DONE]" */
	long index;   /* of the mark under way */
	int64_t sent_ns;
	long expected; /* index of the next mark */
	bool done;     /* [DONE] was read */
	bool jumbled;  /* a mark was missing, doubled or out of order */
};

/* Called for each mark, "sent_ns" being the time in it. */
typedef void hf_reader_mark_fn(void *arg, int64_t sent_ns);

void hf_reader_start(struct hf_reader *r);

/* Takes "size" bytes.  *used is how many of them were this answer's. */
enum hf_reader_step hf_reader_take(struct hf_reader *r, const char *s,
    size_t size, size_t *used, hf_reader_mark_fn *mark, void *arg);

/* Whether a whole plain answer holds perfmock's first piece. */
bool hf_reader_plain_ok(const struct hf_reader *r);

#endif
