/*
 * HF_CHECK aborts on a bug of ours, in release builds too: the supervisor and
 * the disk make that safe.  Input from outside can never reach it.
 */
#ifndef HF_BASE_CHECK_H
#define HF_BASE_CHECK_H

#include "base/hf.h"

#define HF_CHECK(e)                                              \
	do {                                                     \
		if (__builtin_expect(!(e), 0))                   \
			hf_check_failed(#e, __FILE__, __LINE__); \
	} while (0)

/* A place that cannot be reached. */
#define HF_BUG(text) hf_check_failed(text, __FILE__, __LINE__)

void hf_check_failed(const char *expr, const char *file, int line) HF_NORETURN;
/* Called once with the panic text before abort(); async-signal-safe only. */
void hf_check_set_hook(void (*hook)(const char *text));

/* Allocation of small fixed objects: abort when memory is gone.  Anything
 * whose size comes from outside uses malloc() or hf_buf with a cap. */
void *hf_xcalloc(size_t n, size_t size) HF_MUST_CHECK;
char *hf_xstrdup(const char *z) HF_MUST_CHECK;
char *hf_xstrndup(const char *p, size_t size) HF_MUST_CHECK;

#endif
