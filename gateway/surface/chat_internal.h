/*
 * What the files of the chat completions surface share.
 */
#ifndef HF_GATEWAY_SURFACE_CHAT_INTERNAL_H
#define HF_GATEWAY_SURFACE_CHAT_INTERNAL_H

#include <stdio.h>

#include "gateway/surface/surface.h"
#include "gateway/turn/follow.h"

/* Check the request's parameters and append the known ones to 'out' as one
 * JSON object. */
int chat_params(struct hf_json body, struct hf_buf *out,
    struct hf_refusal *r) HF_MUST_CHECK;

/* Tell the answer of a turn as a stream of chunks, whose text has its position
 * as the event's id.  HF_E* of hf_follow_start(): nothing was written. */
int chat_follow(struct hf_turn_env *env, struct hf_sink *sink,
    const struct hf_follow_input *in, bool include_usage,
    const struct hf_resumed *was, struct hf_error *e) HF_MUST_CHECK;

#endif
