/*
 * The table of seeded bugs.
 */
#include <config.h>

#include "bench/bugs.h"

const struct hf_bug_row hf_bugs[HF_BUG_COUNT] = {
	{ "", "", "", "" },
#define HF_SEED(id, name, blame, suites, what) { name, blame, suites, what },
#include "bench/bugs.def"
#undef HF_SEED
};

enum hf_bug
hf_bug_find(const char *name)
{
	enum hf_bug b = HF_BUG_NONE + 1;

	while (b < HF_BUG_COUNT && strcmp(hf_bugs[b].name, name) != 0)
		b++;
	return b;
}

bool
hf_bug_in_suite(enum hf_bug bug, const char *suite)
{
	size_t size = strlen(suite);

	for (const char *p = hf_bugs[bug].suites; *p != '\0';
	     p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");

		if (n == size && memcmp(p, suite, n) == 0)
			return true;
		p += n;
	}
	return false;
}
