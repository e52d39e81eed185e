/*
 * Rebuilding: the payload of one attempt, made from what is on disk, in that
 * target's dialect.  Nothing of it outlives the call.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include "base/check.h"

#define HISTORY_MAX	((size_t)256 * 1024 * 1024)

bool
turn_upstream_stream(const struct hf_turn *t)
{
	const struct hf_conf_target *target = t->in.route->target[t->target];

	return t->in.stream ||
	    target->call.upstream_stream == HF_STREAM_ALWAYS;
}

/* For measuring the stateless baseline only: what a gateway without memory
 * hands to its fallback. */
static void
last_user_message(struct hf_history *h)
{
	for (unsigned i = h->n; i > 0; i--) {
		if (h->item[i - 1].role == HF_ROLE_USER) {
			h->item = &h->item[i - 1];
			h->n = 1;
			return;
		}
	}
}

/* The history that this attempt's target must hear: from disk, or, for a
 * turn without a session, from the request. */
static int
load_history(struct hf_turn *t, struct hf_arena *a, struct hf_history *h,
    struct hf_error *e)
{
	int rc;

	if (t->durable) {
		rc = hf_store_history(t->env->store, t->session_row,
		    t->turn_row, a, h, e);
		if (rc < 0)
			return rc;
		hf_count(t->env->shm, HF_C_history_items_rebuilt, h->n);
	} else {
		h->item = t->in.draft.item;
		h->n = t->in.draft.n;
	}
	if (t->n_attempt > 1 &&
	    t->in.route->failover_payload == HF_PAYLOAD_LAST_USER)
		last_user_message(h);
	return 0;
}

int
turn_build(struct hf_turn *t, struct hf_http_request *rq, struct hf_error *e)
{
	const struct hf_conf_target *target = t->in.route->target[t->target];
	struct hf_payload_input in = { .target = target };
	struct hf_history h = { 0 };
	struct hf_arena arena;
	int rc;

	hf_arena_init(&arena, HISTORY_MAX);
	rc = load_history(t, &arena, &h, e);
	if (rc < 0) {
		hf_arena_free(&arena);
		return rc;
	}
	in.item = h.item;
	in.n_item = h.n;
	in.stream = turn_upstream_stream(t);
	rc = hf_json_check(t->in.params, &in.params, NULL, e);
	HF_CHECK(rc == 0);
	if (hf_dialect(target->provider->dialect)->build(&in, rq, e) < 0)
		rc = HF_EINVAL;
	hf_arena_free(&arena);
	return rc;
}
