/*
 * Control protocol framing: 4 bytes length (big-endian, of the payload) and a
 * payload, which is one JSON object in UTF-8.
 *
 *   request  {"v":1,"id":N,"verb":"sessions.list","args":{...}}
 *   reply    zero or more {"v":1,"id":N,"data":{...}}, then exactly one of
 *            {"v":1,"id":N,"end":true}
 *            {"v":1,"id":N,"error":{"code":C,"name":"ENOTFOUND","message":M}}
 *            where C is the exit code that holdfastctl ends with.
 *
 * Pure; any thread.
 */
#ifndef HF_BASE_FRAME_H
#define HF_BASE_FRAME_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hf.h"

#define HF_FRAME_VERSION 1
#define HF_FRAME_HEADER 4
#define HF_FRAME_MAX_REQUEST ((size_t)64 * 1024)
#define HF_FRAME_MAX_REPLY ((size_t)64 * 1024 * 1024)

/* Bytes consumed with *payload set (points into 'in'); 0: more is needed;
 * HF_EPROTO: empty or longer than 'max'. */
ssize_t hf_frame_decode(struct hf_str in, size_t max, struct hf_str *payload,
    struct hf_error *e) HF_MUST_CHECK;
void hf_frame_encode(struct hf_buf *out, struct hf_str payload);

#endif
