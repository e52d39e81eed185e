/*
 * A gateway that is not ours: where it is, and how its clients tell it who
 * they are.  Headers and model names are templates (fill.h) over
 *
 *   session         a name that no other conversation has
 *   play            "CONVERSATION.rRUN.SYSTEM"; "PLAY~MODEL" as the name of a
 *                   model tells the faithful providers whose request it is
 *   conversation, run, turn (from 1), route
 *   targets         of the route, in order of preference: each with listener,
 *                   url (without path), port, dialect, model, fails, later
 *                   (all but the first)
 */
#ifndef HF_BENCH_ENDPOINT_H
#define HF_BENCH_ENDPOINT_H

#include <jansson.h>

#include "base/hf.h"
#include "bench/play.h"
#include "bench/suite.h"

#define HF_MAX_HEADERS 8

struct hf_endpoint {
	const char *header[HF_MAX_HEADERS]; /* "Name: value" */
	unsigned n_header;
	const char *model; /* NULL: as the system says */
	bool no_user;	   /* it passes no end user's id on: send none */
	json_t *routes;	   /* hf_endpoint_routes() */
	json_t *base;	   /* a scope that is in force besides, or NULL;
			    * borrowed */
};

/*
 * What there is to know of a suite's routes: [{"route","continuation",
 * "targets":[...]}].  'url': of its listeners, NULL: not known.  New.
 */
json_t *hf_endpoint_routes(
    const struct hf_suite *s, const char *const *url) HF_MUST_CHECK;
/* The same of its listeners: [{"listener","url","port","fails","rpm",
 * "rpm_window_ms"}]; new. */
json_t *hf_endpoint_listeners(
    const struct hf_suite *s, const char *const *url) HF_MUST_CHECK;
/* The scope of the next request of a play; new. */
json_t *hf_endpoint_scope(
    const struct hf_endpoint *e, const struct hf_play *p) HF_MUST_CHECK;

#endif
