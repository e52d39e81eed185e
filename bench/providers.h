/*
 * The faithful providers: listeners, each under a name that the manifest
 * uses, that speak both dialects, check strictly, answer by answer.h, fail by
 * the manifest and log every payload.  One thread, the event loop's.
 */
#ifndef HF_BENCH_PROVIDERS_H
#define HF_BENCH_PROVIDERS_H

#include <stdio.h>

#include <event2/event.h>

#include "base/err.h"
#include "base/hf.h"
#include "bench/manifest.h"
#include "bench/suite.h"

struct hf_providers;

struct hf_providers_conf {
	struct event_base *base;	    /* borrowed */
	const struct hf_suite *suite;	    /* borrowed: tells turns */
	const struct hf_manifest *manifest; /* borrowed */
	FILE *log;			    /* JSON lines, or NULL */
	unsigned chunk_ms;		    /* between deltas of a stream */
	int alarm_fd; /* "USER PORT" lines of alarms go there; 0: nowhere */
};

struct hf_providers *hf_providers_new(const struct hf_providers_conf *c);
/* "NAME=ADDR:PORT"; *port is the one in use. */
int hf_providers_listen(struct hf_providers *p, const char *spec,
    unsigned *port, struct hf_error *e) HF_MUST_CHECK;
void hf_providers_free(struct hf_providers *p);

/*
 * The log: one object a line, written before the answer is,
 *   {"t_us","provider","dialect","user","conversation","turn","attempt",
 *    "model","stream","fault","phase","sent":N,"status","messages":VIEW,
 *    "asked","repeated":N,"would":T|null,"answer":T|null,"calls":[...],
 *    "refused":T}
 * "conversation" is what stands before the first '.' of the end user's id
 * ("user", "metadata.user_id", or the model up to a '~'), else the one whose
 * opening was received. "would" is what it set out to say, "answer" the same if
 * it does not fail, "sent" how many bytes of that text it sends before it fails
 * in a stream.
 */

#endif
