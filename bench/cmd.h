/*
 * The verbs of continuitybench: each parses its own arguments (argv[0] is the
 * verb) and returns the exit code of the program.
 */
#ifndef HF_BENCH_CMD_H
#define HF_BENCH_CMD_H

#include <jansson.h>

#include "base/hf.h"

enum hf_exit {
	HF_EXIT_OK = 0,
	HF_EXIT_FAILED = 1, /* ran, and a check failed */
	HF_EXIT_USAGE = 2,
	HF_EXIT_UNREACHABLE = 4 /* a gateway or provider did not come up */
};

int hf_cmd_run(int argc, char **argv);
int hf_cmd_providers(int argc, char **argv);
int hf_cmd_proxy(int argc, char **argv);
int hf_cmd_selftest(int argc, char **argv);
int hf_cmd_calibrate(int argc, char **argv);
int hf_cmd_report(int argc, char **argv);
int hf_cmd_audit(int argc, char **argv);
/* A report that "run --json" wrote, new; NULL: it is none, and why was told. */
json_t *hf_report_load(const char *path) HF_MUST_CHECK;
/* "-": standard output.  The exit code; tells why not. */
int hf_write_file(const char *path, struct hf_str text) HF_MUST_CHECK;

int hf_cmd_compare(int argc, char **argv);
int hf_cmd_suites(int argc, char **argv);

#endif
