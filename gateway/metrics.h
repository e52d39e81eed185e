/*
 * The counters of the scoreboard in Prometheus' text format, version 0.0.4,
 * summed over all processes.
 */
#ifndef HF_GATEWAY_METRICS_H
#define HF_GATEWAY_METRICS_H

#include "base/buf.h"
#include "base/shm.h"

void hf_metrics_print(const struct hf_shm *s, struct hf_buf *out);

#endif
