/*
 * What the files of the chat completions surface share.
 */
#ifndef HF_GATEWAY_SURFACE_CHAT_INTERNAL_H
#define HF_GATEWAY_SURFACE_CHAT_INTERNAL_H

#include <stdio.h>

#include "gateway/surface/surface.h"

/* Check the request's parameters and append the known ones to 'out' as one
 * JSON object. */
int chat_params(struct hf_json body, struct hf_buf *out,
    struct hf_refusal *r) HF_MUST_CHECK;

#endif
