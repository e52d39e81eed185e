/*
 * The parameter table.
 */
#include <config.h>

#include "base/params.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/conf.h"

#define struct_gateway struct hf_conf_gateway
#define struct_provider struct hf_conf_provider
#define struct_target struct hf_conf_target
#define struct_route struct hf_conf_route
#define struct_tenant struct hf_conf_tenant

const struct hf_param hf_params[] = {
#define HF_BLOCK(name, titled, title, prose)
#define HF_PARAM(                                                          \
    block, key, type, member, min, max, def, choices, flags, prose)        \
	{ #block, #key, HF_PARAM_##type, offsetof(struct_##block, member), \
		min, max, def, choices, flags, prose },
#include "base/params.def"
#undef HF_PARAM
#undef HF_BLOCK
};
const unsigned hf_n_params = hf_countof(hf_params);

const struct hf_block hf_blocks[] = {
#define HF_BLOCK(name, titled, title, prose) { #name, titled, title, prose },
#define HF_PARAM(block, key, type, member, min, max, def, choices, flags, prose)
#include "base/params.def"
#undef HF_PARAM
#undef HF_BLOCK
};
const unsigned hf_n_blocks = hf_countof(hf_blocks);

const struct hf_param *
hf_param_find(const char *block, const char *key)
{
	for (unsigned i = 0; i < hf_n_params; i++)
		if (strcmp(hf_params[i].block, block) == 0 &&
		    strcmp(hf_params[i].key, key) == 0)
			return &hf_params[i];
	return NULL;
}

bool
hf_param_is_list(const struct hf_param *p)
{
	return p->type == HF_PARAM_LISTEN || p->type == HF_PARAM_TARGETS ||
	    p->type == HF_PARAM_ON_ERROR;
}

bool
hf_param_is_secret(const struct hf_param *p)
{
	return p->type == HF_PARAM_SECRET_FILE ||
	    p->type == HF_PARAM_SECRET_ENV || p->type == HF_PARAM_SECRET_CRED;
}

/* "a|b|c" as "a, b or c". */
static void
expected_choice(const char *choices, char *out, size_t size)
{
	const char *last = strrchr(choices, '|');
	size_t n = 0;

	if (size == 0)
		return;
	for (const char *c = choices; *c != '\0' && n + 5 < size; c++) {
		if (*c != '|') {
			out[n++] = *c;
		} else if (c == last) {
			memcpy(out + n, " or ", 4);
			n += 4;
		} else {
			memcpy(out + n, ", ", 2);
			n += 2;
		}
	}
	out[n] = '\0';
}

void
hf_param_expected(const struct hf_param *p, char *out, size_t size)
{
	switch (p->type) {
	case HF_PARAM_MS:
		snprintf(out, size,
		    "an integer number of milliseconds, "
		    "%" PRId64 " to %" PRId64,
		    p->min, p->max);
		break;
	case HF_PARAM_COUNT:
		snprintf(out, size, "an integer, %" PRId64 " to %" PRId64,
		    p->min, p->max);
		break;
	case HF_PARAM_SIZE:
		snprintf(out, size,
		    "a number of bytes, %" PRId64 " to %" PRId64
		    ", or one with K, M or G",
		    p->min, p->max);
		break;
	case HF_PARAM_ENUM:
		expected_choice(p->choices, out, size);
		break;
	case HF_PARAM_TEXT:
		snprintf(out, size, "printable text of %s%" PRId64 " bytes",
		    p->min > 0 ? "1 to " : "at most ", p->max);
		break;
	case HF_PARAM_PATH:
	case HF_PARAM_SECRET_FILE:
		snprintf(out, size,
		    "an absolute path of at most %" PRId64 " bytes", p->max);
		break;
	case HF_PARAM_URL:
		snprintf(out, size,
		    "http:// or https://, a host, and "
		    "perhaps a port and a path, no query");
		break;
	case HF_PARAM_WORD:
	case HF_PARAM_SECRET_CRED:
		snprintf(out, size,
		    "at most %" PRId64 " letters, digits and "
		    ". _ -",
		    p->max);
		break;
	case HF_PARAM_LISTEN:
		snprintf(out, size,
		    "a numeric address and a port, such as "
		    "127.0.0.1:8080 or [::1]:8080");
		break;
	case HF_PARAM_TARGETS:
		snprintf(out, size, "provider/model");
		break;
	case HF_PARAM_ON_ERROR:
		snprintf(out, size,
		    "an error class, = and end, next or retry, such as "
		    "capacity=next");
		break;
	case HF_PARAM_SECRET_ENV:
		snprintf(out, size, "the name of an environment variable");
		break;
	}
}

int
hf_param_choice(const struct hf_param *p, const char *value)
{
	size_t size = strlen(value);
	const char *c = p->choices;

	for (int i = 0; c != NULL; i++) {
		const char *bar = strchr(c, '|');
		size_t n = bar == NULL ? strlen(c) : (size_t)(bar - c);

		if (n == size && memcmp(c, value, n) == 0)
			return i;
		c = bar == NULL ? NULL : bar + 1;
	}
	return -1;
}
