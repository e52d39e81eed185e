/*
 * Error code to exit code.
 */
#include <config.h>

#include "base/exits.h"

#include "base/err.h"

int
hf_exit_code(int err)
{
	switch (err) {
	case HF_OK:
		return HF_EXIT_OK;
	case HF_EINVAL:
	case HF_EPROTO:
		return HF_EXIT_USAGE;
	case HF_ENOTFOUND:
		return HF_EXIT_NOTFOUND;
	case HF_EUNREACH:
		return HF_EXIT_UNREACHABLE;
	case HF_EPERM:
		return HF_EXIT_PERM;
	case HF_ECONFLICT:
	case HF_EEXIST:
	case HF_ETOONEW:
		return HF_EXIT_CONFLICT;
	case HF_ECORRUPT:
		return HF_EXIT_CORRUPT;
	case HF_ETIMEOUT:
		return HF_EXIT_TIMEOUT;
	case HF_EBUSY:
	case HF_EFULL:
	case HF_ELIMIT:
		return HF_EXIT_TRYLATER;
	case HF_ECONFIG:
		return HF_EXIT_CONFIG;
	default:
		return HF_EXIT_FAILED;
	}
}
