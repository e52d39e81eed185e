/*
 * fork and exec of this very program with a fixed descriptor table.  Nothing
 * but stdout, stderr and the table reaches the child; it dies with us.
 */
#ifndef HF_WORKERS_SPAWN_H
#define HF_WORKERS_SPAWN_H

#include <sys/types.h>

#include "base/err.h"
#include "base/hf.h"

#define HF_SPAWN_FDS 160 /* entries of the table at most */

/*
 * Start /proc/self/exe with 'argv' (NULL-terminated).  Descriptor fd[i]
 * becomes HF_FD_SHM + i in the child; -1 stands for /dev/null.  Signals are
 * reset to their defaults and unblocked.  Returns the pid, or HF_ESYS.
 */
pid_t hf_spawn(char *const argv[], const int *fd, unsigned n,
    struct hf_error *e) HF_MUST_CHECK;

#endif
