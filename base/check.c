/*
 * Checks that stay on in release builds, and allocation that cannot fail.
 */
#include <config.h>

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void (*panic_hook)(const char *text);

void
hf_check_set_hook(void (*hook)(const char *text))
{
	panic_hook = hook;
}

void
hf_check_failed(const char *expr, const char *file, int line)
{
	char text[256];
	int n;

	n = snprintf(
	    text, sizeof(text), "panic: %s:%d: %s\n", file, line, expr);
	if (n > 0 && write(STDERR_FILENO, text, strlen(text)) < 0)
		_exit(134);
	if (panic_hook != NULL)
		panic_hook(text);
	abort();
}

void *
hf_xcalloc(size_t n, size_t size)
{
	void *p = calloc(n == 0 ? 1 : n, size == 0 ? 1 : size);

	HF_CHECK(p != NULL);
	return p;
}

char *
hf_xstrdup(const char *z)
{
	return hf_xstrndup(z, strlen(z));
}

char *
hf_xstrndup(const char *p, size_t size)
{
	char *z = hf_xcalloc(1, size + 1);

	if (size > 0)
		memcpy(z, p, size);
	return z;
}
