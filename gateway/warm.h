/*
 * Connections to providers that are kept warm (warm = connect): one of this
 * worker to each such provider is made when it starts and used at least every
 * warm_every_ms, so that no turn has to wait for a handshake.  Loop thread.
 */
#ifndef HF_GATEWAY_WARM_H
#define HF_GATEWAY_WARM_H

#include <event2/event.h>

#include "base/conf.h"
#include "base/shm.h"
#include "gateway/upstream/upstream.h"

struct hf_warm;

/* 'conf', 'upstream' and 'shm' are borrowed; NULL when there is no memory. */
struct hf_warm *hf_warm_new(struct event_base *base, const struct hf_conf *conf,
    struct hf_upstream *upstream, struct hf_shm *shm) HF_MUST_CHECK;
/* Before 'upstream'; NULL is fine. */
void hf_warm_free(struct hf_warm *w);

#endif
