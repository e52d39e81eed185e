/*
 * The protocols that the faithful providers speak, from the server's
 * side: strict checks that refuse what the real service refuses, the view of
 * a request's messages, and the bytes of an answer.  Pure.
 */
#ifndef HF_BENCH_DIALECT_H
#define HF_BENCH_DIALECT_H

#include <jansson.h>

#include "base/buf.h"
#include "base/hf.h"
#include "bench/answer.h"
#include "bench/stream.h"

/* What is said to a request that the service does not take. */
struct hf_refusal {
	int status;
	char type[32];
	char code[40];	/* "": null */
	char param[80]; /* "": null */
	char message[256];
	bool prefill; /* it is the assistant's last message that is refused */
	enum hf_hint hint; /* how it is told when to ask again: ... */
	unsigned retry_ms; /* in so long; 0: not told */
	unsigned window;   /* it is too long for this; 0: that is not why */
};

/* Fills 'r' and returns -1.  'code' and 'param' may be NULL. */
int hf_refuse(struct hf_refusal *r, int status, const char *type,
    const char *code, const char *param, const char *fmt, ...) HF_PRINTF(6, 7);

/* What a check looks at beside the body; .p NULL: absent. */
struct hf_bench_headers {
	struct hf_str authorization, x_api_key, anthropic_version;
	struct hf_str content_type, x_goog_api_key;
	struct hf_str path, query;
};

struct hf_reply {
	const char *id_tail; /* unique; goes behind "chatcmpl-" */
	const char *model;
	int64_t created_s;
	const struct hf_answer *answer;
	bool usage; /* stream_options.include_usage */
	unsigned input_tokens, output_tokens;
	struct hf_split split; /* where deltas of a stream are to end */
	bool array;	       /* gemini's stream without alt=sse */
};

struct hf_bench_dialect {
	const char *name; /* "openai" */
	bool (*is_path)(struct hf_str path);
	/* What is asked for, and whether as a stream. */
	struct hf_str (*model)(const struct hf_bench_headers *h, json_t *body);
	bool (*streams)(const struct hf_bench_headers *h, json_t *body);
	/* 0, or -1 with 'r' filled.  Checks of headers come first. */
	int (*check)(const struct hf_bench_headers *h, json_t *body,
	    struct hf_refusal *r);
	json_t *(*view)(json_t *body);	     /* new reference */
	json_t *(*tools)(json_t *body);	     /* names; new, or NULL */
	struct hf_str (*user)(json_t *body); /* the end user's id, or none */
	void (*error)(struct hf_buf *out, const struct hf_refusal *r,
	    const char *id_tail);
	void (*error_event)(struct hf_buf *out, const struct hf_refusal *r);
	void (*plain)(struct hf_buf *out, const struct hf_reply *p);
	void (*stream)(struct hf_stream *out, const struct hf_reply *p);
	/* The error that stands for an HTTP status. */
	void (*failure)(int status, struct hf_refusal *r);
};
extern const struct hf_bench_dialect hf_bench_openai, hf_bench_anthropic,
    hf_bench_gemini;

int hf_openai_check(
    const struct hf_bench_headers *h, json_t *body, struct hf_refusal *r);
int hf_anthropic_check(
    const struct hf_bench_headers *h, json_t *body, struct hf_refusal *r);
int hf_gemini_check(
    const struct hf_bench_headers *h, json_t *body, struct hf_refusal *r);

/* --- help for all ------------------------------------------------------- */

/* Where the body tells it. */
struct hf_str hf_body_model(const struct hf_bench_headers *h, json_t *body);
bool hf_body_streams(const struct hf_bench_headers *h, json_t *body);

/* First key of 'o' that is not in the NULL-ended list, or NULL. */
const char *hf_unknown_key(json_t *o, const char *const *known);
/* [A-Za-z0-9_-]{1,max} */
bool hf_is_token(struct hf_str s, size_t max);
/* Append compact JSON; does not take the reference. */
void hf_buf_json(struct hf_buf *b, json_t *o);
/* Texts of "text" parts joined by a newline; a string is itself.  Caller
 * frees. */
char *hf_parts_text(json_t *content);
/* Fragments in which the arguments of call number 'i' are sent: where they
 * end, the last at 'size'; their count, at most HF_FRAGMENTS. */
#define HF_FRAGMENTS 3
unsigned hf_fragments(struct hf_str arguments, size_t i,
    const struct hf_split *split, size_t end[HF_FRAGMENTS]);

#endif
