/*
 * The two halves of the anthropic dialect meet here.  Private to the room.
 */
#ifndef HF_GATEWAY_PROVIDER_ANTHROPIC_DECODE_H
#define HF_GATEWAY_PROVIDER_ANTHROPIC_DECODE_H

#include "gateway/provider/decoder.h"

struct hf_decoder *hf_anthropic_decoder_new(
    const struct hf_conf_target *t, bool stream, hf_event_fn fn, void *arg);

#endif
