/*
 * Helpers for building outbound requests.  Private to the room.
 */
#ifndef HF_GATEWAY_PROVIDER_REQUEST_H
#define HF_GATEWAY_PROVIDER_REQUEST_H

#include "gateway/provider/history.h"

/* Add "name: before+value"; nothing if 'value' is NULL or empty.  HF_EINVAL
 * if it holds control characters. */
int hf_request_header(struct hf_http_request *r, const char *name,
    const char *before, const char *value, struct hf_error *e) HF_MUST_CHECK;
/* The headers that every dialect sends. */
int hf_request_common(
    struct hf_http_request *r, bool stream, struct hf_error *e) HF_MUST_CHECK;
/* Base without its trailing slashes, then 'path'. */
void hf_request_url(
    struct hf_http_request *r, const char *base, const char *path);
/* HF_ELIMIT if any part outgrew its cap. */
int hf_request_check(
    const struct hf_http_request *r, struct hf_error *e) HF_MUST_CHECK;
/* HF_EINVAL, and why, if in->prefill asks for what this target cannot do with
 * these parameters, or the last line of 'l' is no assistant's text. */
int hf_prefill_check(const struct hf_payload_input *in,
    const struct hf_said_list *l, struct hf_error *e) HF_MUST_CHECK;

#endif
