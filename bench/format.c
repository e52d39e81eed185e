/*
 * A formatted text of its own.  Pure.
 */
#include <config.h>

#include "bench/format.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

char *
hf_format(const char *fmt, ...)
{
	va_list ap;
	char *text = NULL;

	va_start(ap, fmt);
	HF_CHECK(vasprintf(&text, fmt, ap) >= 0);
	va_end(ap);
	return text;
}
