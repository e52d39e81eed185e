/*
 * Time.  Deadlines and durations use the monotonic clock; wall time is only
 * for records that people read.  Tests may override both.
 */
#ifndef HF_BASE_CLOCK_H
#define HF_BASE_CLOCK_H

#include "base/hf.h"

int64_t hf_now_us(void);  /* CLOCK_MONOTONIC, microseconds */
int64_t hf_wall_us(void); /* CLOCK_REALTIME, microseconds since 1970 */
/* Tests: from now on the clocks stand at these values (0, 0: real again). */
void hf_clock_set(int64_t mono_us, int64_t wall_us);
/* RFC 3339 in UTC with milliseconds, e.g. 2026-11-29T12:00:00.123Z. */
void hf_wall_format(int64_t wall_us, char out[32]);

#endif
