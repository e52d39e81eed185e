/*
 * Names to addresses without blocking the loop: libevent's resolver, the
 * hosts file, a small cache.  Loop thread only; never libcurl's resolver,
 * whose thread is waited for when a lookup is cancelled.
 */
#ifndef HF_GATEWAY_UPSTREAM_RESOLVE_H
#define HF_GATEWAY_UPSTREAM_RESOLVE_H

#include <event2/event.h>

#include "base/err.h"

struct hf_resolver;
struct hf_resolve_wait; /* one caller that waits */

/* 'addresses': "192.0.2.1,[2001:db8::1]", valid during the call; NULL when
 * the name could not be resolved, then 'why' is a static text. */
typedef void (*hf_resolved_fn)(
    void *arg, const char *addresses, const char *why);

int hf_resolver_new(struct hf_resolver **out, struct event_base *base,
    struct hf_error *e) HF_MUST_CHECK;
/* Nobody may be waiting any more. */
void hf_resolver_free(struct hf_resolver *r);
/* Tests: ask only this server ("127.0.0.1:5353"). */
int hf_resolver_use(struct hf_resolver *r, const char *server,
    struct hf_error *e) HF_MUST_CHECK;

/* Addresses known now (fresh in the cache), or NULL. */
const char *hf_resolve_cached(struct hf_resolver *r, const char *host);
/* Look 'host' up; 'fn' runs once, later, unless cancelled. */
struct hf_resolve_wait *hf_resolve(struct hf_resolver *r, const char *host,
    hf_resolved_fn fn, void *arg) HF_MUST_CHECK;
void hf_resolve_cancel(struct hf_resolve_wait *w);

#endif
