/*
 * The two halves of the openai dialect meet here.  Private to the room.
 */
#ifndef HF_GATEWAY_PROVIDER_OPENAI_DECODE_H
#define HF_GATEWAY_PROVIDER_OPENAI_DECODE_H

#include "gateway/provider/decoder.h"

struct hf_decoder *hf_openai_decoder_new(
    const struct hf_conf_target *t, bool stream, hf_event_fn fn, void *arg);

#endif
