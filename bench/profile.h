/*
 * Profiles: how a gateway of somebody else is installed, configured, started
 * and talked to.  A profile is a file of JSON,
 *
 *   {"name", "about",
 *    "history": "thin" or "full",     what its clients send
 *    "install": [argv],               does nothing if it was done
 *    "version": [argv],               prints it on its last line
 *    "files": {"NAME": "TEMPLATE"},   templates beside the profile, written to
 *                                     the run's directory before the start
 *    "start": [argv], "ready": "/path",
 *    "url": "http://127.0.0.1:{port}/v1",
 *    "headers": ["Name: value", ...], "model": T, "user": false}
 *
 * whose words are templates (fill.h) over
 *
 *   profiles, cache, dir     where profiles are, what is installed goes, and
 *                            the run's own files
 *   port                     one that was free
 *   program                  of "--holdfast", or the one beside this program
 *   first_token_ms, idle_ms  for targets that fail; patient_ms: for others
 *   workers, backoff_ms, retries, continue_text, deadline_ms, storm
 *   listeners, routes        endpoint.h
 *   prefills                 targets that are known to go on with the last
 *                            message, each once
 *
 * and headers and the model also over what endpoint.h says.
 */
#ifndef HF_BENCH_PROFILE_H
#define HF_BENCH_PROFILE_H

#include <jansson.h>

#include "base/err.h"
#include "bench/endpoint.h"
#include "bench/launch.h"
#include "bench/suite.h"

struct hf_profile {
	json_t *root;
	char *dir;     /* of the file */
	char *version; /* or NULL: not known */
	json_t *scope; /* of its templates, once it is started */
};

/* "NAME" of those that come with the program, or a path (it has a '/'). */
int hf_profile_load(
    struct hf_profile *p, const char *name, struct hf_error *e) HF_MUST_CHECK;
void hf_profile_free(struct hf_profile *p);

/* Its clients' manners; texts are the profile's. */
void hf_profile_endpoint(const struct hf_profile *p, struct hf_endpoint *out);
bool hf_profile_full_history(const struct hf_profile *p);
const char *hf_profile_name(const struct hf_profile *p);

/* Installs and starts it in front of the launch's providers, awaits it, and
 * fills the launch's url. */
int hf_profile_start(struct hf_profile *p, struct hf_launch *l,
    const struct hf_suite *s, const struct hf_gateway_options *o,
    struct hf_error *e) HF_MUST_CHECK;

#endif
