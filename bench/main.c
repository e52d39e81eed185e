/*
 * continuitybench: does a conversation survive its provider's failure?
 * This file picks the verb; each verb is a file.
 */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "base/hf.h"
#include "bench/cmd.h"

static const struct {
	const char *name, *help;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{ "run", "play a suite against a gateway and judge it", hf_cmd_run },
	{ "providers", "serve the faithful providers alone", hf_cmd_providers },
	{ "compare", "play suites against several gateways, side by side",
	    hf_cmd_compare },
	{ "proxy", "serve the reference proxy, with a bug or without",
	    hf_cmd_proxy },
	{ "selftest", "does the benchmark catch and name seeded bugs?",
	    hf_cmd_selftest },
	{ "suites", "list the suites", hf_cmd_suites },
	{ "report", "make tables and a page of a run's JSON", hf_cmd_report },
	{ "calibrate", "is a model fit to judge?", hf_cmd_calibrate },
	{ "audit", "have a person check a sample of answers", hf_cmd_audit },
};

static void
usage(FILE *f)
{
	fputs("usage: continuitybench VERB [options]\n\nverbs:\n", f);
	for (unsigned i = 0; i < hf_countof(verbs); i++)
		fprintf(f, "  %-10s %s\n", verbs[i].name, verbs[i].help);
	fputs("\n\"continuitybench VERB --help\" tells more; "
	      "--version prints the version.\n"
	      "Exit codes: 0 ok, 1 a check failed, 2 usage, 4 a gateway or "
	      "provider did not come up.\n",
	    f);
}

int
main(int argc, char **argv)
{
	if (argc < 2) {
		usage(stderr);
		return HF_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("continuitybench " PACKAGE_VERSION);
		return HF_EXIT_OK;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		usage(stdout);
		return HF_EXIT_OK;
	}
	for (unsigned i = 0; i < hf_countof(verbs); i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	fprintf(stderr, "continuitybench: no verb '%s'\n", argv[1]);
	usage(stderr);
	return HF_EXIT_USAGE;
}
