/*
 * What the master opens once and every child inherits: the lock of the
 * database, the listening sockets and the control listener.
 */
#ifndef HF_WORKERS_LISTEN_H
#define HF_WORKERS_LISTEN_H

#include "base/err.h"
#include "base/hf.h"

#define HF_LISTEN_MAX 64 /* sockets */
#define HF_ADDR_SIZE 64	 /* "[ipv6]:port" and NUL */

/*
 * Take <database>.lock, for up to 'wait_ms' while another process has it
 * (the tree of a killed master needs a moment to die).  Returns the
 * descriptor; the lock lives as long as any copy of it.  HF_ECONFLICT with
 * the holder's pid when taken.
 */
int hf_lock_database(
    const char *database, int wait_ms, struct hf_error *e) HF_MUST_CHECK;

/* A listening TCP socket on "ADDRESS:PORT" (numeric; "[v6]:PORT"; port 0:
 * any free one).  HF_ECONFLICT: taken; HF_ECONFIG: cannot be meant. */
int hf_listen_tcp(const char *addr, struct hf_error *e) HF_MUST_CHECK;
/* A socket that the service manager passed: set as we need it; *is_control
 * tells the control listener (unix) from the others. */
int hf_listen_adopt(int fd, bool *is_control, struct hf_error *e) HF_MUST_CHECK;
/* Its address as text, the chosen port filled in. */
int hf_listen_name(
    int fd, char out[HF_ADDR_SIZE], struct hf_error *e) HF_MUST_CHECK;
bool hf_listen_is_loopback(const char *name);

/* The control listener, mode 0600.  A socket that nobody serves is replaced;
 * one that is served is HF_ECONFLICT. */
int hf_listen_control(const char *path, struct hf_error *e) HF_MUST_CHECK;

#endif
