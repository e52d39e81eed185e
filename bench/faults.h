/*
 * Which failure is due: the manifest, and what it needs to be remembered: when
 * a row matched first, and who was admitted in a window.  The event loop's
 * thread.
 */
#ifndef HF_BENCH_FAULTS_H
#define HF_BENCH_FAULTS_H

#include "bench/manifest.h"

struct hf_faults;

/* Borrows the manifest. */
struct hf_faults *hf_faults_new(const struct hf_manifest *m);
void hf_faults_free(struct hf_faults *f);
/*
 * The failure of the first row that matches and has not passed.  A rate limit
 * is HF_FAULT_NONE for those that it admits, and for others tells when one
 * more will be.
 */
struct hf_bench_fault hf_faults_choose(
    struct hf_faults *f, const struct hf_fault_query *q, int64_t now_us);

#endif
