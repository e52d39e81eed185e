/*
 * Loading libcurl.
 */
#include <config.h>

#include "gateway/upstream/libcurl.h"

#include <dlfcn.h>
#include <stdarg.h>

/* The ABI of all releases since 2006. */
#define SONAME "libcurl.so.4"

struct hf_libcurl hf_libcurl;

static const struct {
	const char *name;
	void *to; /* where its address goes */
} function[] = {
#define HF_CURL(name) { "curl_" #name, &hf_libcurl.name },
#include "gateway/upstream/libcurl.def"
#undef HF_CURL
};

static int
look_up(void *so, struct hf_error *e)
{
	void *p;

	for (size_t i = 0; i < hf_countof(function); i++) {
		p = dlsym(so, function[i].name);
		if (p == NULL)
			return hf_fail(e, HF_ESYS, "%s", dlerror());
		memcpy(function[i].to, &p, sizeof(p));
	}
	return 0;
}

int
hf_libcurl_load(struct hf_error *e)
{
	static bool loaded;
	void *so;
	int rc;

	if (loaded)
		return 0;
	so = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	if (so == NULL)
		return hf_fail(e, HF_ESYS, "%s", dlerror());
	rc = look_up(so, e);
	loaded = rc == 0;
	return rc;
}

/* --- one further argument, of a type that the option tells ----------------
 */

/* Where the types of options begin: CURLOPTTYPE_LONG and so on. */
#define TYPE_OF(option) ((int)(option) / 10000 * 10000)

CURLcode(curl_easy_setopt)(CURL *h, CURLoption o, ...)
{
	CURLcode rc;
	va_list ap;

	va_start(ap, o);
	if (TYPE_OF(o) == CURLOPTTYPE_LONG)
		rc = hf_libcurl.easy_setopt(h, o, va_arg(ap, long));
	else if (TYPE_OF(o) == CURLOPTTYPE_OFF_T)
		rc = hf_libcurl.easy_setopt(h, o, va_arg(ap, curl_off_t));
	else
		rc = hf_libcurl.easy_setopt(h, o, va_arg(ap, void *));
	va_end(ap);
	return rc;
}

CURLMcode(curl_multi_setopt)(CURLM *m, CURLMoption o, ...)
{
	CURLMcode rc;
	va_list ap;

	va_start(ap, o);
	if (TYPE_OF(o) == CURLOPTTYPE_LONG)
		rc = hf_libcurl.multi_setopt(m, o, va_arg(ap, long));
	else if (TYPE_OF(o) == CURLOPTTYPE_OFF_T)
		rc = hf_libcurl.multi_setopt(m, o, va_arg(ap, curl_off_t));
	else
		rc = hf_libcurl.multi_setopt(m, o, va_arg(ap, void *));
	va_end(ap);
	return rc;
}

CURLcode(curl_easy_getinfo)(CURL *h, CURLINFO i, ...)
{
	CURLcode rc;
	va_list ap;

	va_start(ap, i);
	rc = hf_libcurl.easy_getinfo(h, i, va_arg(ap, void *));
	va_end(ap);
	return rc;
}
