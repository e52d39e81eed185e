/*
 * The reference proxy: a small gateway with a memory, for testing the
 * benchmark itself.  It keeps sessions' histories, in memory and in a journal
 * from which it goes on after it was killed; tells each target all of it, or as
 * many whole turns as it can hold; goes to the next one when one fails, and
 * goes on with a stream that broke off by having the next one say it again,
 * hidden. Calls beyond a provider's quota wait.  It speaks chat completions on
 * both sides.  Without a bug it loses nothing that the suites ask for; with one
 * of bugs.def it loses just that.  The loop's thread.
 */
#ifndef HF_BENCH_PROXY_H
#define HF_BENCH_PROXY_H

#include <event2/event.h>

#include "base/err.h"
#include "bench/bugs.h"
#include "bench/suite.h"

struct hf_proxy;

struct hf_proxy_conf {
	struct event_base *base;	   /* borrowed */
	const struct hf_suite *suite;	   /* borrowed: its routes */
	const char *url[HF_MAX_LISTENERS]; /* of its listeners, without path;
					    * borrowed */
	unsigned patience_ms;		   /* with a target that may fail */
	const char *journal;		   /* a file, or NULL: in memory only */
	enum hf_bug bug;
};

/* Listens at "ADDRESS:PORT" (0: the kernel's choice, in *port). */
int hf_proxy_new(struct hf_proxy **out, const struct hf_proxy_conf *c,
    const char *listen, unsigned *port, struct hf_error *e) HF_MUST_CHECK;
void hf_proxy_free(struct hf_proxy *p);

/* --- what it says: proxy_out.c ---------------------------------------------
 */

struct hf_sreq;

/* One completion on its way to a client. */
struct hf_said {
	const char *id, *model;
	bool stream;
	bool begun; /* the head was sent */
};
void hf_said_text(struct hf_said *o, struct hf_sreq *rq, struct hf_str text);
/* The end of it: 'text' is what was not sent yet, or, not streamed, all. */
void hf_said_end(
    struct hf_said *o, struct hf_sreq *rq, struct hf_str text, json_t *calls);
void hf_said_error(struct hf_said *o, struct hf_sreq *rq);
/* The assistant's message, as clients send it back; new.  'calls' as in
 * reader.h. */
json_t *hf_said_message(struct hf_str text, json_t *calls);

#endif
