/*
 * Runs of this program as children of itself, some at a time: for the verbs
 * that play one suite after the other.  Each leaves its report as JSON and
 * what it said in files of a private directory.
 */
#ifndef HF_BENCH_CHILD_H
#define HF_BENCH_CHILD_H

#include <jansson.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/hf.h"

struct hf_child {
	const char *argv[40]; /* behind the program's name; ended by NULL */
	unsigned n_arg;
	char name[64]; /* of its files; unique */
	/* afterwards: */
	int exit;	/* its exit status, or 128 + signal */
	json_t *report; /* what it wrote, or NULL */
	pid_t pid;
};

void hf_child_arg(struct hf_child *c, const char *arg);
/*
 * Runs them all, 'jobs' at a time, in order of the array, with "--json" and
 * their files in 'dir'; tells 'done' of each that ends.
 */
int hf_children_run(struct hf_child *c, unsigned n, unsigned jobs,
    const char *dir, void (*done)(void *arg, unsigned i), void *arg,
    struct hf_error *e) HF_MUST_CHECK;
void hf_children_free(struct hf_child *c, unsigned n);

#endif
