/*
 * "continuitybench suites": what can be played, how much of it, and what can
 * be set.
 */
#include <config.h>

#include <stdio.h>

#include "bench/cmd.h"
#include "bench/suite.h"

static unsigned
turns(const struct hf_suite *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n_conv; i++)
		n += s->conv[i].n_user;
	return n;
}

static void
put_knobs(const struct hf_suite_kind *k)
{
	for (unsigned i = 0; i < k->n_knob; i++)
		printf("%-10s   --knobs %s=%u: %s, %u to %u\n", "",
		    k->knob[i].name, k->knob[i].value, k->knob[i].help,
		    k->knob[i].lo, k->knob[i].hi);
}

int
hf_cmd_suites(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		fputs("usage: continuitybench suites\n", stderr);
		return HF_EXIT_USAGE;
	}
	for (unsigned i = 0; i < hf_n_suite_kinds; i++) {
		const struct hf_suite_kind *k = &hf_suite_kinds[i];
		struct hf_suite *s = hf_suite_make(k->name, 42, 0);

		printf("%-10s %s\n", k->name, k->help);
		printf("%-10s   %s%u: conversations, with %u turns; --runs "
		       "%u; concurrency %u\n",
		    "", k->sized ? "--size " : "size ", s->n_conv, turns(s),
		    k->runs, s->concurrency > 0 ? s->concurrency : 100);
		put_knobs(k);
		hf_suite_free(s);
	}
	return HF_EXIT_OK;
}
