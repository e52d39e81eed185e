/*
 * Process limits and privileges.
 */
#include <config.h>

#include "workers/confine.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#define WANTED_FILES 65536
#define NEEDED_FILES 512 /* the descriptor table alone takes 140 */

static int
raise_files(struct hf_error *e)
{
	struct rlimit rl;
	rlim_t had;

	if (getrlimit(RLIMIT_NOFILE, &rl) < 0)
		return hf_fail_errno(e, "getrlimit");
	if (rl.rlim_max != RLIM_INFINITY && rl.rlim_max < NEEDED_FILES)
		return hf_fail(e, HF_ELIMIT,
		    "at most %llu open files are "
		    "allowed (RLIMIT_NOFILE); %d are needed",
		    (unsigned long long)rl.rlim_max, NEEDED_FILES);
	if (rl.rlim_cur >= WANTED_FILES)
		return 0;
	had = rl.rlim_cur;
	rl.rlim_cur = rl.rlim_max < WANTED_FILES ? rl.rlim_max : WANTED_FILES;
	/* A sandbox may forbid it; what we had is then all there is. */
	if (setrlimit(RLIMIT_NOFILE, &rl) < 0 && had < NEEDED_FILES)
		return hf_fail_errno(e, "setrlimit(RLIMIT_NOFILE)");
	return 0;
}

int
hf_confine(struct hf_error *e)
{
	const struct rlimit no_core = { 0, 0 };
	struct rlimit rl;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return hf_fail_errno(e, "PR_SET_NO_NEW_PRIVS");
	if ((getrlimit(RLIMIT_CORE, &rl) < 0 || rl.rlim_max > 0) &&
	    setrlimit(RLIMIT_CORE, &no_core) < 0)
		return hf_fail_errno(e, "setrlimit(RLIMIT_CORE)");
#ifndef __SANITIZE_ADDRESS__
	/* The leak checker traces its own process and needs this bit. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return hf_fail_errno(e, "PR_SET_DUMPABLE");
#endif
	return raise_files(e);
}
