/*
 * One line per event: "TIME LEVEL role[pid] module: verb key=value ...".
 * error = an operator must act; warn = degraded or retried; info = lifecycle
 * and one line per turn; debug = the rest.  Contents, session names of
 * callers and secrets are never logged at any level.  Lines go to stderr in
 * one write each; safe from any thread.
 */
#ifndef HF_BASE_LOG_H
#define HF_BASE_LOG_H

#include "base/hf.h"

enum hf_log_level { HF_LOG_ERROR, HF_LOG_WARN, HF_LOG_INFO, HF_LOG_DEBUG };

void hf_log_init(const char *role, enum hf_log_level level);
void hf_log_set_level(enum hf_log_level level);
bool hf_log_enabled(enum hf_log_level level);
void hf_log(enum hf_log_level level, const char *fmt, ...) HF_PRINTF(2, 3);
/* At most one line per 'per_ms' for this call site; a line that follows
 * suppressed ones says how many ("suppressed=N"). */
struct hf_log_limit {
	int64_t last_us;
	unsigned suppressed;
};
void hf_log_limited(struct hf_log_limit *l, int per_ms, enum hf_log_level level,
    const char *fmt, ...) HF_PRINTF(4, 5);
int hf_log_level_parse(const char *name, enum hf_log_level *out) HF_MUST_CHECK;

#endif
