/*
 * What every process of ours gives up or raises at its start.
 */
#ifndef HF_WORKERS_CONFINE_H
#define HF_WORKERS_CONFINE_H

#include "base/err.h"
#include "base/hf.h"

/* No new privileges, no core file, no ptrace or /proc reading by others (a
 * dump would hold contents and keys), and as many descriptors as allowed. */
int hf_confine(struct hf_error *e) HF_MUST_CHECK;

#endif
