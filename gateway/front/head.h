/*
 * The strict reader of a request's head.  evhttp parses requests too, but
 * leniently and without keeping the bytes; this one sees every byte of the
 * head before evhttp does and decides whether the request may be served.
 * Pure: no I/O, no allocation but its own buffer.
 */
#ifndef HF_GATEWAY_FRONT_HEAD_H
#define HF_GATEWAY_FRONT_HEAD_H

#include "base/buf.h"
#include "base/hf.h"

#define HF_HTTP_HEAD_MAX (32 * 1024) /* bytes; evhttp stops at 16 KiB */
#define HF_HTTP_HEAD_FIELDS 100

struct hf_http_head_field {
	struct hf_str name;
	struct hf_str value; /* without the white space around it */
};

struct hf_http_head {
	struct hf_buf raw; /* owns the bytes that the rest names */
	size_t line;	   /* where the unfinished line begins */
	bool done;	   /* the empty line was seen, or bad */
	int status;	   /* 0: good; else 400 or 411 */
	const char *why;   /* static text when status is set */
	struct hf_str method;
	struct hf_str path;  /* raw, always begins with one '/' */
	struct hf_str query; /* raw, without '?' */
	int minor;	     /* HTTP/1.minor, 0 or 1 */
	int64_t body_size;   /* Content-Length, -1: none */
	bool close;	     /* Connection: close */
	struct hf_http_head_field field[HF_HTTP_HEAD_FIELDS];
	unsigned n_field;
};

void hf_http_head_init(struct hf_http_head *h);
void hf_http_head_free(struct hf_http_head *h);
/* Take bytes up to the end of the head; returns how many were taken (all of
 * them unless the head ended).  Nothing is taken once 'done' is set. */
size_t hf_http_head_feed(struct hf_http_head *h, struct hf_str bytes);
/* First value of this name, any case; .p NULL when absent. */
struct hf_str hf_http_head_find(const struct hf_http_head *h, const char *name);
unsigned hf_http_head_count(const struct hf_http_head *h, const char *name);

/* Decode %XX into 'out', which has room for 'in.size' + 1 bytes; returns the
 * size, or -1 for a path that must not be served: a broken escape, a NUL, or
 * a segment "..". */
long hf_path_decode(struct hf_str in, char *out);

/* Bytes of a header name, and of a value that may be sent. */
bool hf_token_valid(struct hf_str s);
bool hf_field_value_valid(struct hf_str s);

#endif
