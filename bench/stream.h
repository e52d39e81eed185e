/*
 * A stream as a provider will send it, in parts, so that it can be broken off
 * anywhere.  Pure.
 */
#ifndef HF_BENCH_STREAM_H
#define HF_BENCH_STREAM_H

#include "base/buf.h"
#include "base/hf.h"
#include "bench/answer.h"
#include "bench/manifest.h"

/* The event of one delta. */
struct hf_piece {
	struct hf_buf bytes;
	bool call;  /* of a tool call, not of text */
	size_t end; /* where in the text, or in the arguments of the
		     * first call, it ends */
};

struct hf_stream {
	struct hf_buf head; /* before the first delta */
	struct hf_piece *piece;
	unsigned n_piece;
	struct hf_buf finish; /* up to the finish reason, */
	struct hf_buf tail;   /* ... and the terminal mark */
};

void hf_stream_init(struct hf_stream *s);
void hf_stream_free(struct hf_stream *s);
/* A new piece; its bytes are to be filled. */
struct hf_buf *hf_stream_add(struct hf_stream *s, bool call, size_t end);

/*
 * Where a failure wants a delta to end; 0: nowhere in particular.  In the text
 * (WORD), within a word; in the arguments of the first call (ARGS), between
 * characters.
 */
struct hf_split {
	size_t text, args;
};
struct hf_split hf_stream_split(
    const struct hf_answer *a, const struct hf_bench_fault *f);

/* What is sent of a stream that fails: whole pieces, then so many bytes of
 * the next. */
struct hf_cut {
	bool head, finish;
	unsigned pieces;
	size_t bytes;
	size_t text; /* bytes of text in those pieces */
};
/* 'split' as the stream was made with. */
struct hf_cut hf_stream_cut(const struct hf_stream *s,
    const struct hf_bench_fault *f, const struct hf_split *split);

/* Length of the next piece of a text from 'at' on: a word and the spaces
 * behind it, or up to 'split'. */
size_t hf_piece_size(const char *text, size_t at, size_t split);

#endif
