/*
 * One request over the control socket.  Blocks; not longer than the timeout
 * without progress.
 */
#ifndef HF_CTL_CLIENT_H
#define HF_CTL_CLIENT_H

#include <jansson.h>

#include "ctl/ctl.h"

struct hf_ctl_fault {
	int exit;		/* enum hf_exit */
	char text[HF_CTL_TEXT]; /* may hold any bytes of the daemon */
};

/* One "data" member of the reply, borrowed.  Nonzero: it makes no sense. */
typedef int (*hf_ctl_data_fn)(void *arg, json_t *data);

/* Send 'verb' with 'args' (borrowed) and hand each data frame to 'fn'.
 * 0 after the end frame; else -1 with 'fault' filled. */
int hf_ctl_call(const char *path, int timeout_ms, const char *verb,
    json_t *args, hf_ctl_data_fn fn, void *arg,
    struct hf_ctl_fault *fault) HF_MUST_CHECK;
int hf_ctl_fault(struct hf_ctl_fault *f, int code, const char *fmt, ...)
    HF_PRINTF(3, 4);

#endif
