/*
 * Commands that need no daemon: each hands its result over as data frames
 * would, and returns 0, or -1 with 'fault' filled.
 */
#ifndef HF_CTL_LOCAL_H
#define HF_CTL_LOCAL_H

#include "ctl/client.h"

#define HF_CTL_CONFIG HF_SYSCONFDIR "/holdfast/holdfast.conf"

int hf_ctl_config_check(const struct hf_ctl *ctl, hf_ctl_data_fn fn, void *arg,
    struct hf_ctl_fault *fault) HF_MUST_CHECK;
int hf_ctl_config_explain(const struct hf_ctl *ctl, hf_ctl_data_fn fn,
    void *arg, struct hf_ctl_fault *fault) HF_MUST_CHECK;
int hf_ctl_explain_errors(
    hf_ctl_data_fn fn, void *arg, struct hf_ctl_fault *fault) HF_MUST_CHECK;
/* The commands that can do without a daemon, from the database itself. */
int hf_ctl_offline(const struct hf_ctl *ctl, hf_ctl_data_fn fn, void *arg,
    struct hf_ctl_fault *fault) HF_MUST_CHECK;

#endif
