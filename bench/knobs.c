/*
 * The knobs of suites, as they are given: "quota=10,window-ms=2000".
 */
#include <config.h>

#include "bench/suite.h"
#include "bench/wall.h"

#include <errno.h>
#include <stdlib.h>

/* The knob that "NAME=..." is of, or NULL; its index. */
static const struct hf_knob *
find(const struct hf_suite_kind *k, const char *text, size_t size, unsigned *at)
{
	for (*at = 0; *at < k->n_knob; (*at)++)
		if (strlen(k->knob[*at].name) == size &&
		    memcmp(k->knob[*at].name, text, size) == 0)
			return &k->knob[*at];
	return NULL;
}

static bool
anybody_has(const char *text, size_t size)
{
	unsigned at;

	for (unsigned i = 0; i < hf_n_suite_kinds; i++)
		if (find(&hf_suite_kinds[i], text, size, &at) != NULL)
			return true;
	return false;
}

static int
set_one(const struct hf_suite_kind *k, const char *text, bool lenient,
    unsigned *value, struct hf_error *e)
{
	size_t size = strcspn(text, "=,");
	const struct hf_knob *knob;
	unsigned long v;
	unsigned at;
	char *end;

	knob = find(k, text, size, &at);
	if (knob == NULL && lenient && anybody_has(text, size))
		return 0;
	if (knob == NULL)
		return hf_fail(e, HF_EINVAL, "suite %s has no knob \"%.*s\"",
		    k->name, (int)size, text);
	errno = 0;
	v = text[size] == '=' ? strtoul(text + size + 1, &end, 10) : 0;
	if (text[size] != '=' || text[size + 1] < '0' || text[size + 1] > '9' ||
	    errno != 0 || (*end != '\0' && *end != ',') || v < knob->lo ||
	    v > knob->hi)
		return hf_fail(e, HF_EINVAL,
		    "knob %s: expected a number from %u to %u", knob->name,
		    knob->lo, knob->hi);
	value[at] = (unsigned)v;
	return 0;
}

int
hf_knobs_parse(const struct hf_suite_kind *k, const char *text, bool lenient,
    unsigned value[HF_MAX_KNOBS], struct hf_error *e)
{
	int rc = 0;

	for (unsigned i = 0; i < k->n_knob; i++)
		value[i] = k->knob[i].value;
	while (rc == 0 && text != NULL && *text != '\0') {
		rc = set_one(k, text, lenient, value, e);
		text += strcspn(text, ",");
		text += *text == ',';
	}
	return rc;
}

struct hf_suite *
hf_suite_make_with(const char *name, uint64_t seed, unsigned size,
    const char *knobs, bool lenient, struct hf_error *e)
{
	const struct hf_suite_kind *k = hf_suite_kind(name);
	unsigned value[HF_MAX_KNOBS];
	struct hf_suite *s;

	if (strcmp(name, "wall") == 0)
		return hf_suite_wall(seed, size);
	if (k == NULL) {
		hf_fail(e, HF_EINVAL, "no suite '%s'", name);
		return NULL;
	}
	if (hf_knobs_parse(k, knobs, lenient, value, e) != 0)
		return NULL;
	s = k->n_knob > 0 ? k->make_with(seed, size, value) :
			    k->make(seed, size);
	if (s == NULL)
		hf_fail(e, HF_EINVAL, "no suite '%s' of that size", name);
	return s;
}
