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

/* The next line, without its end; false: there is none. */
static bool
take_line(struct hf_str *rest, struct hf_str *line)
{
	const char *eol;

	if (rest->size == 0)
		return false;
	eol = memchr(rest->p, '\n', rest->size);
	line->p = rest->p;
	line->size = eol == NULL ? rest->size : (size_t)(eol - rest->p);
	rest->p += line->size + (eol != NULL);
	rest->size -= line->size + (eol != NULL);
	return true;
}

struct hf_str
hf_header_find(struct hf_str headers, const char *name)
{
	size_t size = strlen(name);
	struct hf_str line;

	while (take_line(&headers, &line))
		if (line.size > size && line.p[size] == ':' &&
		    strncasecmp(line.p, name, size) == 0)
			return trim(line.p + size + 1, line.p + line.size);
	return HF_STR_NONE;
}

bool
hf_header_begins(struct hf_str headers, const char *prefix)
{
	size_t size = strlen(prefix);
	struct hf_str line;

	while (take_line(&headers, &line))
		if (line.size > size && strncasecmp(line.p, prefix, size) == 0)
			return true;
	return false;
}
