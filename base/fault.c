/*
 * Named fault points.
 */
#include <config.h>

#include "base/fault.h"

#ifdef HF_FAULTS
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static bool
is_once(void)
{
	return getenv("HF_FAULT_ONCE") != NULL;
}

/* Where a token is named, it is used up by the process that dies first. */
static bool
has_token(void)
{
	return !is_once() || unlink(getenv("HF_FAULT_ONCE")) == 0;
}

/* One countdown per position in the list is enough for tests. */
static _Atomic int seen[16];

bool
hf_fault(const char *point)
{
	const char *p = getenv("HF_FAULT");
	size_t n = strlen(point);

	for (unsigned i = 0; p != NULL && *p != '\0' && i < 16; i++) {
		const char *end = strchr(p, ',');
		const char *at = strchr(p, '@');
		size_t len = end == NULL ? strlen(p) : (size_t)(end - p);

		if (len > n && strncmp(p, point, n) == 0 && p[n] == '=') {
			long want = at != NULL && at < p + len ?
			    strtol(at + 1, NULL, 10) :
			    1;
			int nth = atomic_fetch_add(&seen[i], 1) + 1;

			/* With a token not only then, but from then on: it
			 * may come later than we do. */
			if ((nth == want || (nth > want && is_once())) &&
			    has_token()) {
				if (strncmp(p + n + 1, "kill", 4) == 0)
					kill(getpid(), SIGKILL);
				return true;
			}
		}
		p = end == NULL ? NULL : end + 1;
	}
	return false;
}
#else
typedef int hf_fault_unused;
#endif
