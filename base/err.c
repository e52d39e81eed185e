/*
 * Error codes and their texts.
 */
#include <config.h>

#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
	int code;
	int retry;
	const char *name;
	const char *text;
} errs[] = {
#define HF_ERR(name, num, retry, text) { num, retry, #name, text },
#include "base/err.def"
#undef HF_ERR
};

int
hf_fail(struct hf_error *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (e == NULL)
		return code;
	e->code = code;
	e->sys = 0;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return code;
}

int
hf_fail_errno(struct hf_error *e, const char *fmt, ...)
{
	int sys = errno;
	size_t n;
	va_list ap;

	if (e == NULL)
		return HF_ESYS;
	e->code = HF_ESYS;
	e->sys = sys;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof(e->text) - n, ": %s", strerror(sys));
	return HF_ESYS;
}

int
hf_error_prefix(struct hf_error *e, const char *prefix)
{
	char old[sizeof(e->text)];

	if (e == NULL)
		return HF_ESYS;
	memcpy(old, e->text, sizeof(old));
	/* Truncation of a long detail is all right. */
	if (snprintf(e->text, sizeof(e->text), "%s: %s", prefix, old) < 0)
		e->text[0] = '\0';
	return e->code;
}

const char *
hf_err_name(int code)
{
	for (size_t i = 0; i < hf_countof(errs); i++)
		if (errs[i].code == code)
			return errs[i].name;
	return code == 0 ? "OK" : "EUNKNOWN";
}

const char *
hf_err_text(int code)
{
	for (size_t i = 0; i < hf_countof(errs); i++)
		if (errs[i].code == code)
			return errs[i].text;
	return code == 0 ? "ok" : "unknown error";
}

bool
hf_err_retryable(int code)
{
	for (size_t i = 0; i < hf_countof(errs); i++)
		if (errs[i].code == code)
			return errs[i].retry != 0;
	return false;
}
