/*
 * The seeded bugs of the reference proxy, by table (bugs.def).
 */
#ifndef HF_BENCH_BUGS_H
#define HF_BENCH_BUGS_H

#include "base/hf.h"

enum hf_bug {
	HF_BUG_NONE,
#define HF_SEED(id, name, blame, suites, what) HF_BUG_##id,
#include "bench/bugs.def"
#undef HF_SEED
	HF_BUG_COUNT
};

struct hf_bug_row {
	const char *name, *blame;
	const char *suites; /* by spaces */
	const char *what;
};
/* By enumerator; that of NONE is empty. */
extern const struct hf_bug_row hf_bugs[HF_BUG_COUNT];

/* HF_BUG_COUNT: no bug of that name. */
enum hf_bug hf_bug_find(const char *name);
/* Is this suite one of those that must catch it? */
bool hf_bug_in_suite(enum hf_bug bug, const char *suite);

#endif
