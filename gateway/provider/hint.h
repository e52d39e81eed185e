/*
 * The forms in which providers say how long something takes.  Strict: what
 * does not match as a whole is -1.  In milliseconds, clamped to [0, 3600000].
 * Private to the room; pure.
 */
#ifndef HF_GATEWAY_PROVIDER_HINT_H
#define HF_GATEWAY_PROVIDER_HINT_H

#include "base/hf.h"

/* [-]digits[.digits] times 'unit' milliseconds. */
int64_t hf_hint_decimal(struct hf_str s, int64_t unit);
/* 6m0s, 20ms, 1.5s; a bare number is in seconds. */
int64_t hf_hint_duration(struct hf_str s);
/* 2024-06-01T00:00:10.5Z, as seen from 'wall_us'. */
int64_t hf_hint_rfc3339(struct hf_str s, int64_t wall_us);

#endif
