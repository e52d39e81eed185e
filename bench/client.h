/*
 * The callers: chat completion requests over HTTP, many at once, on one
 * thread (curl multi).  Answers are read strictly: one that lacks its finish
 * reason, or a stream its [DONE], is not an answer.
 */
#ifndef HF_BENCH_CLIENT_H
#define HF_BENCH_CLIENT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/hf.h"
#include "bench/reader.h"

struct hf_client;

struct hf_client_conf {
	const char *url;     /* of the endpoint, ".../v1" */
	const char *api_key; /* or NULL */
	bool stream;
	bool local;	   /* never through a proxy */
	long timeout_ms;   /* of one try of a call */
	unsigned retries;  /* of a call whose connection was
			    * refused or broke */
	unsigned pause_ms; /* at most before one; 0: a second */
};

struct hf_call_result {
	int status;	  /* 0: no HTTP answer */
	char *answer;	  /* NULL: none, or not a whole one */
	char error[200];  /* why not, "" with an answer */
	unsigned broken;  /* connections refused or broken */
	unsigned retries; /* times that it was sent again */
	double total_ms;  /* from the start of the first try */
	double first_ms;  /* to the first text; < 0: none */
	/* what was seen, whether it is an answer or not */
	int retry_after_s; /* as the server asks, or 0 */
	const char *text;  /* never NULL */
	json_t *calls;	   /* as in reader.h, or NULL */
	struct hf_marks marks;
	double silence_ms; /* the longest pause within the text */
	const char *model; /* that is said to have answered; never NULL */
	bool silent;	   /* no whole answer, but nothing tells so: the end
			    * of a stream is all that is missing */
	bool left;	   /* as the call asked to: not an error */
};

/* Runs inside hf_client_run(); may start further calls.  'r' and what is in
 * it is the client's and gone afterwards. */
typedef void (*hf_called_fn)(void *arg, const struct hf_call_result *r);

struct hf_client *hf_client_new(const struct hf_client_conf *c);
void hf_client_free(struct hf_client *c);
struct hf_call_request {
	struct hf_str body;
	const char *session; /* X-Holdfast-Session, or NULL */
	const char *key;     /* Idempotency-Key, or NULL */
	char *const *header; /* further ones, "Name: value" */
	unsigned n_header;
	bool full;	   /* say that the list is the whole history */
	bool retry;	   /* say that it is one, as SDKs do */
	bool plain;	   /* not as a stream, whatever others are */
	size_t leave_at;   /* leave when so much text came; 0: never */
	unsigned leave_ms; /* ... or after this time; 0: never */
	unsigned after_ms; /* start then; 0: at once */
	hf_called_fn fn;
	void *arg;
};
/* Start a call; all of it is copied. */
void hf_client_call(struct hf_client *c, const struct hf_call_request *rq);
/* Call 'fn' each 'ms' milliseconds while hf_client_run() runs; one only. */
void hf_client_tick(
    struct hf_client *c, unsigned ms, void (*fn)(void *), void *arg);
/* Call 'fn' when 'fd' can be read, while hf_client_run() runs; one only. */
void hf_client_watch(
    struct hf_client *c, int fd, void (*fn)(void *), void *arg);
/* Until no call is under way. */
int hf_client_run(struct hf_client *c, struct hf_error *e) HF_MUST_CHECK;
/* One GET, waited for: the status, or 0. */
int hf_client_get(const char *url);

#endif
