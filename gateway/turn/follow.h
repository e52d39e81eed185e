/*
 * Following a turn: its answer is told once more, or for the first time, from
 * a position on; while it runs, in whatever process, and after.  Loop thread.
 */
#ifndef HF_GATEWAY_TURN_FOLLOW_H
#define HF_GATEWAY_TURN_FOLLOW_H

#include "gateway/turn/turn.h"

struct hf_follow;

struct hf_follow_input {
	const char *tenant;
	struct hf_str session; /* name or id */
	struct hf_str turn;    /* number or id */
	uint64_t after;	       /* bytes of text that the client has */
};

/* HF_ENOTFOUND: the tenant has no such session, or it no such turn.  No
 * callback runs before this returns; of the surface's, start, event, beat,
 * backlog, and, as the last one, finish or fail are called: after that 'f' is
 * gone. */
int hf_follow_start(struct hf_follow **out, struct hf_turn_env *env,
    const struct hf_follow_input *in, const struct hf_surface *surface,
    void *arg, struct hf_error *e) HF_MUST_CHECK;
/* The client left. */
void hf_follow_free(struct hf_follow *f);

#endif
