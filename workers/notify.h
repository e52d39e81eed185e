/*
 * The service manager's side protocols in a few lines: readiness messages to
 * $NOTIFY_SOCKET and sockets that it opened for us ($LISTEN_FDS).
 */
#ifndef HF_WORKERS_NOTIFY_H
#define HF_WORKERS_NOTIFY_H

#include "base/hf.h"

#define HF_LISTEN_FDS_START 3

/* "READY=1", "STATUS=...", several separated by newlines.  True if somebody
 * was told; without $NOTIFY_SOCKET nothing happens. */
bool hf_notify(const char *fmt, ...) HF_PRINTF(1, 2);
/* Microseconds between two WATCHDOG=1 that are expected; 0: none. */
int64_t hf_notify_watchdog_us(void);
/* How many descriptors, from HF_LISTEN_FDS_START on, were passed to this
 * process.  They are made close-on-exec and the variables removed, so that
 * children do not take them for theirs. */
unsigned hf_notify_listen_fds(void);

#endif
