/*
 * HTTP requests to providers from an event loop: curl's multi interface on
 * libevent.  Each has a connection of its own, so that a failure is one
 * request's and no library repeats it.  The loop's thread.
 */
#ifndef HF_BENCH_FETCH_H
#define HF_BENCH_FETCH_H

#include <event2/event.h>

#include "base/hf.h"

struct hf_fetcher;
struct hf_fetch;

struct hf_fetcher *hf_fetcher_new(struct event_base *base);
/* Whatever is under way ends without a word. */
void hf_fetcher_free(struct hf_fetcher *f);

struct hf_fetch_request {
	const char *url;
	struct hf_str body;  /* JSON; copied */
	unsigned connect_ms; /* to connect */
	unsigned idle_ms;    /* without a byte, from the start on */
	/* False: enough, it ends as if it broke off.  It may start or cancel
	 * nothing. */
	bool (*data)(void *arg, struct hf_str bytes);
	/* Once, and last.  'whole': the answer's framing is. */
	void (*end)(void *arg, int status, bool whole);
	void *arg;
};
struct hf_fetch *hf_fetch_start(
    struct hf_fetcher *f, const struct hf_fetch_request *rq);
/* Ends the connection; nothing is called for it any more. */
void hf_fetch_cancel(struct hf_fetch *x);

#endif
