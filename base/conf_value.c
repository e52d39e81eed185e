/*
 * Checks of single values.
 */
#include <config.h>

#include "base/conf_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

bool
hf_conf_printable(const char *value, size_t min, size_t max)
{
	size_t size = strlen(value);

	if (size < min || size > max)
		return false;
	for (const char *p = value; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
	return true;
}

bool
hf_conf_word_ok(const char *value, size_t max)
{
	size_t size = strlen(value);

	return size > 0 && size <= max &&
	    strspn(value,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		"._-") == size;
}

/* Decimal digits only: no sign, no octal, no space. */
static bool
number(const char *z, size_t size, int64_t *out)
{
	int64_t v = 0;

	if (size == 0 || size > 15)
		return false;
	for (size_t i = 0; i < size; i++) {
		if (z[i] < '0' || z[i] > '9')
			return false;
		v = v * 10 + (z[i] - '0');
	}
	*out = v;
	return true;
}

static bool
size_value(const char *z, int64_t *out)
{
	static const char units[] = "KMG";
	size_t size = strlen(z);
	const char *unit = size == 0 ? NULL : strchr(units, z[size - 1]);
	int64_t v;

	if (unit == NULL)
		return number(z, size, out);
	if (!number(z, size - 1, &v) || v > (int64_t)1 << 30)
		return false;
	*out = v << (10 * (unit - units + 1));
	return true;
}

static bool
port_ok(const char *z)
{
	int64_t v;

	return number(z, strlen(z), &v) && v <= 65535;
}

bool
hf_conf_listen_ok(const char *value)
{
	char host[INET6_ADDRSTRLEN + 1];
	const char *h = value, *end;
	struct in6_addr addr;
	size_t size;
	bool v6 = *value == '[';

	end = strchr(value, v6 ? ']' : ':');
	if (end == NULL || end[v6 ? 1 : 0] != ':')
		return false;
	if (v6)
		h++;
	size = (size_t)(end - h);
	if (size >= sizeof(host))
		return false;
	memcpy(host, h, size);
	host[size] = '\0';
	return inet_pton(v6 ? AF_INET6 : AF_INET, host, &addr) == 1 &&
	    port_ok(end + (v6 ? 2 : 1));
}

static bool
url_ok(const char *z)
{
	const char *host, *path, *port;
	int64_t v;
	size_t size;

	if (strncmp(z, "http://", 7) == 0)
		host = z + 7;
	else if (strncmp(z, "https://", 8) == 0)
		host = z + 8;
	else
		return false;
	for (const char *p = z; *p != '\0'; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f ||
		    strchr("?#\\\"<>", *p) != NULL)
			return false;
	path = host + strcspn(host, "/");
	size = (size_t)(path - host);
	if (size == 0 || memchr(host, '@', size) != NULL)
		return false;
	if (*host == '[') {
		port = memchr(host, ']', size);
		if (port == NULL || port == host + 1)
			return false;
		port++;
	} else {
		port = memchr(host, ':', size);
		if (port == host)
			return false;
	}
	if (port == NULL || port == path)
		return true;
	return *port == ':' &&
	    number(port + 1, (size_t)(path - port - 1), &v) && v >= 1 &&
	    v <= 65535;
}

static int
bad(const struct hf_param *p, struct hf_error *e, const char *value)
{
	char expected[160];

	hf_param_expected(p, expected, sizeof(expected));
	if (!hf_conf_printable(value, 1, 60))
		return hf_fail(
		    e, HF_ECONFIG, "unusable value; expected %s", expected);
	return hf_fail(
	    e, HF_ECONFIG, "unusable value '%s'; expected %s", value, expected);
}

static int
store_string(const struct hf_param *p, const char *value, void *base,
    struct hf_arena *a, struct hf_error *e)
{
	char **out = (void *)((char *)base + p->offset);
	size_t size = strlen(value);
	char *copy;

	copy = hf_arena_alloc(a, size + 1);
	if (copy == NULL)
		return hf_fail(e, HF_ENOMEM, "out of memory");
	memcpy(copy, value, size);
	/* Paths are appended to it. */
	while (p->type == HF_PARAM_URL && copy[size - 1] == '/')
		copy[--size] = '\0';
	*out = copy;
	return 0;
}

static bool
string_ok(const struct hf_param *p, const char *value)
{
	size_t min = (size_t)p->min, max = (size_t)p->max;

	switch ((int)p->type) {
	case HF_PARAM_TEXT:
		return hf_conf_printable(value, min, max);
	case HF_PARAM_PATH:
		return hf_conf_printable(value, min, max) && value[0] == '/' &&
		    value[strlen(value) - 1] != '/';
	case HF_PARAM_URL:
		return hf_conf_printable(value, min, max) && url_ok(value);
	case HF_PARAM_WORD:
		return hf_conf_word_ok(value, max);
	default:
		return false;
	}
}

int
hf_conf_value(const struct hf_param *p, const char *value, void *base,
    struct hf_arena *a, struct hf_error *e)
{
	char *at = (char *)base + p->offset;
	int64_t v;
	int i;

	switch (p->type) {
	case HF_PARAM_MS:
	case HF_PARAM_COUNT:
		if (!number(value, strlen(value), &v) || v < p->min ||
		    v > p->max)
			return bad(p, e, value);
		*(int *)(void *)at = (int)v;
		return 0;
	case HF_PARAM_SIZE:
		if (!size_value(value, &v) || v < p->min || v > p->max)
			return bad(p, e, value);
		*(int64_t *)(void *)at = v;
		return 0;
	case HF_PARAM_ENUM:
		i = hf_param_choice(p, value);
		if (i < 0)
			return bad(p, e, value);
		*(int *)(void *)at = i;
		return 0;
	case HF_PARAM_TEXT:
	case HF_PARAM_PATH:
	case HF_PARAM_URL:
	case HF_PARAM_WORD:
		if (!string_ok(p, value))
			return bad(p, e, value);
		return store_string(p, value, base, a, e);
	case HF_PARAM_SECRET_FILE:
	case HF_PARAM_SECRET_ENV:
	case HF_PARAM_SECRET_CRED:
		return hf_conf_secret(p, value, a, (char **)(void *)at, e);
	case HF_PARAM_LISTEN:
	case HF_PARAM_TARGETS:
	case HF_PARAM_ON_ERROR:
		break;
	}
	return hf_fail(e, HF_EINVAL, "%s is a list", p->key);
}
