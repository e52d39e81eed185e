/*
 * Looking up header fields.
 */
#include <config.h>

#include "gateway/provider/headers.h"

#include <strings.h>

static struct hf_str
trim(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	while (
	    end > p && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	return (struct hf_str){ p, (size_t)(end - p) };
}

struct hf_str
hf_header_find(struct hf_str headers, const char *name)
{
	const char *p = headers.p, *end, *eol;
	size_t size = strlen(name);

	if (headers.size == 0)
		return HF_STR_NONE;
	for (end = p + headers.size; p < end; p = eol + 1) {
		eol = memchr(p, '\n', (size_t)(end - p));
		if (eol == NULL)
			eol = end;
		if ((size_t)(eol - p) > size && p[size] == ':' &&
		    strncasecmp(p, name, size) == 0)
			return trim(p + size + 1, eol);
		if (eol == end)
			break;
	}
	return HF_STR_NONE;
}
