/*
 * An incremental server-sent-events parser by the WHATWG rules (HTML living
 * standard, 9.2.6): LF, CR and CRLF, one BOM at the start, comments, the
 * fields data, event, id, retry.  Linear; pure; any split of the bytes gives
 * the same events.  An unfinished event at the end is not dispatched.
 */
#ifndef HF_GATEWAY_UPSTREAM_SSE_H
#define HF_GATEWAY_UPSTREAM_SSE_H

#include "base/buf.h"
#include "base/hf.h"

struct hf_sse_event {
	struct hf_str type; /* "message" unless named */
	struct hf_str data; /* valid during the call only */
	struct hf_str id;   /* last id seen */
};

typedef void (*hf_sse_fn)(void *arg, const struct hf_sse_event *ev);

struct hf_sse {
	struct hf_buf line, data, type, id;
	hf_sse_fn fn;
	void *arg;
	bool started, last_cr, have_data, failed, stopped;
	uint64_t comments; /* lines that were comments */
	int64_t retry_ms;  /* -1: none */
};

/* 'max' caps a line and an event; over it the parser fails. */
void hf_sse_init(struct hf_sse *s, size_t max, hf_sse_fn fn, void *arg);
/* False once a cap was passed or a NUL byte was seen. */
bool hf_sse_feed(struct hf_sse *s, struct hf_str bytes);
/* Unfinished data at the end of the stream (without its blank line), for the
 * few servers that forget it; size 0 if none. */
struct hf_str hf_sse_rest(struct hf_sse *s);
/* From inside 'fn': ignore everything that follows. */
void hf_sse_stop(struct hf_sse *s);
void hf_sse_free(struct hf_sse *s);

#endif
