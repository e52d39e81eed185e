/*
 * "continuitybench selftest": who tests the test?  The reference proxy without
 * a bug must score 100 % on every suite; each of its seeded bugs must be caught
 * by the suites that bugs.def names, and blamed as it says; and every suite
 * must catch one.
 */
#include <config.h>

#include "bench/cmd.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/bugs.h"
#include "bench/child.h"
#include "bench/launch.h"
#include "bench/suite.h"

static const char usage[] =
    "usage: continuitybench selftest [options]\n"
    "Play the suites against the reference proxy, without a bug and with each "
    "of\n"
    "its seeded bugs, and check that the benchmark finds what is wrong.\n"
    "\n"
    "  --quick        a little of each suite\n"
    "  --seed N       default 42\n"
    "  --jobs N       at a time, default 2\n"
    "  --bug NAME     this one only; \"none\": the proxy without a bug\n"
    "  --json FILE    write what was found\n"
    "  --keep DIR     keep reports and logs there\n"
    "\n"
    "Exits 1 unless all bugs were caught and named, the proxy without a bug\n"
    "scored 100 % and every suite caught a bug.\n";

#define PATIENCE_MS "700" /* the machine may be busy */

struct options {
	const char *seed, *json, *keep, *bug;
	unsigned long jobs;
	bool quick;
};

/* One bug on one suite. */
struct cell {
	enum hf_bug bug;
	const struct hf_suite_kind *suite;
	bool passed;
};

struct selftest {
	const struct options *o;
	struct cell *cell;
	struct hf_child *child;
	unsigned n;
};

/* --- what is played ------------------------------------------------------- */

/* A little of a suite, of those that need another size than most; the last row
 * is of all others. */
static const struct {
	const char *suite, *size, *knobs;
} quick[] = {
	{ "midstream", "54", NULL }, /* all places and ways */
	{ "kill", "8", NULL },	     /* one after the other */
	{ "storm", "18", "quota=9" },
	{ NULL, "18", NULL },
};

static void
add_quick(struct hf_child *c, const struct hf_suite_kind *k)
{
	unsigned i = 0;

	while (quick[i].suite != NULL && strcmp(quick[i].suite, k->name) != 0)
		i++;
	hf_child_arg(c, "--size");
	hf_child_arg(c, quick[i].size);
	if (quick[i].knobs == NULL)
		return;
	hf_child_arg(c, "--knobs");
	hf_child_arg(c, quick[i].knobs);
}

static void
add_cell(struct selftest *t, enum hf_bug bug, const struct hf_suite_kind *k)
{
	const struct options *o = t->o;
	struct hf_child *c = &t->child[t->n];

	t->cell[t->n++] = (struct cell){ bug, k, false };
	snprintf(c->name, sizeof(c->name), "%s-%s", k->name,
	    bug == HF_BUG_NONE ? "none" : hf_bugs[bug].name);
	hf_child_arg(c, "run");
	hf_child_arg(c, "--proxy");
	if (bug != HF_BUG_NONE) {
		hf_child_arg(c, "--bug");
		hf_child_arg(c, hf_bugs[bug].name);
	}
	hf_child_arg(c, "--suite");
	hf_child_arg(c, k->name);
	hf_child_arg(c, "--seed");
	hf_child_arg(c, o->seed);
	hf_child_arg(c, "--require");
	hf_child_arg(c, "1");
	hf_child_arg(c, "--first-token-ms");
	hf_child_arg(c, PATIENCE_MS);
	hf_child_arg(c, "--quiet");
	hf_child_arg(c, "--runs");
	hf_child_arg(c, "1");
	if (o->quick && k->sized)
		add_quick(c, k);
}

static void
make_cells(struct selftest *t)
{
	unsigned n = hf_n_suite_kinds * HF_BUG_COUNT;

	t->cell = hf_xcalloc(n, sizeof(*t->cell));
	t->child = hf_xcalloc(n, sizeof(*t->child));
	for (unsigned b = HF_BUG_NONE; b < HF_BUG_COUNT; b++) {
		const char *name = b == HF_BUG_NONE ? "none" : hf_bugs[b].name;

		if (t->o->bug != NULL && strcmp(t->o->bug, name) != 0)
			continue;
		for (unsigned i = 0; i < hf_n_suite_kinds; i++) {
			const struct hf_suite_kind *k = &hf_suite_kinds[i];

			if (b == HF_BUG_NONE ||
			    hf_bug_in_suite((enum hf_bug)b, k->name))
				add_cell(t, (enum hf_bug)b, k);
		}
	}
}

/* --- what was found ------------------------------------------------------- */

static json_t *
blames(const struct hf_child *c)
{
	return json_object_get(
	    json_object_get(json_object_get(c->report, "systems"), "proxy"),
	    "blame");
}

/* The blame that most of what is wrong has; NULL: nothing is. */
static const char *
main_blame(const struct hf_child *c)
{
	const char *name, *most = NULL;
	json_int_t n = 0;
	json_t *v;

	json_object_foreach(blames(c), name, v)
	{
		if (strcmp(name, "nobody") == 0 || json_integer_value(v) <= n)
			continue;
		most = name;
		n = json_integer_value(v);
	}
	return most;
}

static void
put_blames(const struct hf_child *c)
{
	const char *name;
	json_t *v;

	if (c->report == NULL)
		printf(" no report");
	json_object_foreach(blames(c), name, v)
	    printf(" %s=%d", name, (int)json_integer_value(v));
}

static void
on_done(void *arg, unsigned i)
{
	struct selftest *t = arg;
	struct cell *cell = &t->cell[i];
	const struct hf_child *c = &t->child[i];
	const struct hf_bug_row *bug = &hf_bugs[cell->bug];
	const char *found = main_blame(c);

	if (cell->bug == HF_BUG_NONE)
		cell->passed =
		    c->exit == HF_EXIT_OK && found == NULL && c->report != NULL;
	else
		cell->passed = c->exit == HF_EXIT_FAILED && found != NULL &&
		    strcmp(found, bug->blame) == 0;
	printf("%-18s %-10s %-10s %-6s",
	    cell->bug == HF_BUG_NONE ? "none" : bug->name, cell->suite->name,
	    cell->bug == HF_BUG_NONE ? "nobody" : bug->blame,
	    cell->passed ? "ok" : "FAILED");
	put_blames(c);
	if (!cell->passed)
		printf(" (exit %d)", c->exit);
	putchar('\n');
	fflush(stdout);
}

/* --- the verdict ---------------------------------------------------------- */

static bool
all_passed(const struct selftest *t, enum hf_bug bug)
{
	bool any = false;

	for (unsigned i = 0; i < t->n; i++) {
		if (t->cell[i].bug != bug)
			continue;
		if (!t->cell[i].passed)
			return false;
		any = true;
	}
	return any;
}

static bool
catches_one(const struct selftest *t, const struct hf_suite_kind *k)
{
	for (unsigned i = 0; i < t->n; i++)
		if (t->cell[i].suite == k && t->cell[i].bug != HF_BUG_NONE &&
		    t->cell[i].passed)
			return true;
	return false;
}

static json_t *
cells_json(const struct selftest *t)
{
	json_t *out = json_array();

	for (unsigned i = 0; i < t->n; i++) {
		const struct cell *c = &t->cell[i];

		json_array_append_new(out,
		    json_pack("{s:s,s:s,s:s,s:b,s:i,s:O*}", "bug",
			c->bug == HF_BUG_NONE ? "none" : hf_bugs[c->bug].name,
			"suite", c->suite->name, "expected",
			c->bug == HF_BUG_NONE ? "nobody" :
						hf_bugs[c->bug].blame,
			"passed", (int)c->passed, "exit", t->child[i].exit,
			"blame", blames(&t->child[i])));
	}
	return out;
}

/* Prints and writes it; the exit code. */
static int
conclude(const struct selftest *t)
{
	const struct options *o = t->o;
	unsigned bugs = 0, of_bugs = 0, suites = 0, of_suites = 0;
	unsigned right = 0, of_right = 0;
	json_t *out;
	bool ok;

	for (unsigned i = 0; i < t->n; i++) {
		of_right += t->cell[i].bug == HF_BUG_NONE;
		right += t->cell[i].bug == HF_BUG_NONE && t->cell[i].passed;
	}
	for (unsigned b = HF_BUG_NONE + 1; b < HF_BUG_COUNT; b++) {
		of_bugs +=
		    o->bug == NULL || strcmp(o->bug, hf_bugs[b].name) == 0;
		bugs += all_passed(t, (enum hf_bug)b);
	}
	for (unsigned i = 0; o->bug == NULL && i < hf_n_suite_kinds; i++) {
		bool catches = catches_one(t, &hf_suite_kinds[i]);

		of_suites++;
		suites += catches;
		if (!catches)
			printf(
			    "suite %s catches none\n", hf_suite_kinds[i].name);
	}
	ok = bugs == of_bugs && suites == of_suites && right == of_right;
	printf("\n%u of %u bugs caught and named; without a bug %u of %u "
	       "suites at 100 %%; %u of %u suites catch a bug\n",
	    bugs, of_bugs, right, of_right, suites, of_suites);
	if (o->json == NULL)
		return ok ? HF_EXIT_OK : HF_EXIT_FAILED;
	out = json_pack("{s:i,s:b,s:i,s:i,s:o}", "schema", 1, "passed", (int)ok,
	    "bugs", (int)of_bugs, "caught", (int)bugs, "cells", cells_json(t));
	if (json_dump_file(out, o->json, JSON_INDENT(1)) != 0) {
		fprintf(stderr, "continuitybench: cannot write %s\n", o->json);
		ok = false;
	}
	json_decref(out);
	return ok ? HF_EXIT_OK : HF_EXIT_FAILED;
}

/* -1: go on; else the exit code. */
static int
parse(struct options *o, int argc, char **argv)
{
	static const struct option longopts[] = { { "quick", no_argument, NULL,
						      'q' },
		{ "seed", required_argument, NULL, 's' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "bug", required_argument, NULL, 'b' },
		{ "json", required_argument, NULL, 'o' },
		{ "keep", required_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' }, { 0 } };
	bool ok = true;
	int c;

	while (ok && (c = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		switch (c) {
		case 'q':
			o->quick = true;
			break;
		case 's':
			o->seed = optarg;
			break;
		case 'j':
			o->jobs = strtoul(optarg, NULL, 10);
			ok = o->jobs > 0 && o->jobs <= 64;
			break;
		case 'b':
			o->bug = optarg;
			ok = strcmp(optarg, "none") == 0 ||
			    hf_bug_find(optarg) != HF_BUG_COUNT;
			break;
		case 'o':
			o->json = optarg;
			break;
		case 'k':
			o->keep = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return HF_EXIT_OK;
		default:
			ok = false;
			break;
		}
	}
	if (ok && optind == argc)
		return -1;
	fputs(usage, stderr);
	return HF_EXIT_USAGE;
}

int
hf_cmd_selftest(int argc, char **argv)
{
	struct options o = { .seed = "42", .jobs = 2 };
	struct selftest t = { .o = &o };
	struct hf_launch dir = { 0 };
	struct hf_error e;
	int rc = parse(&o, argc, argv);

	if (rc >= 0)
		return rc;
	make_cells(&t);
	rc = hf_launch_open(&dir, o.keep, &e);
	if (rc == 0) {
		printf("%-18s %-10s %-10s %-6s found\n", "bug", "suite",
		    "expected", "");
		rc = hf_children_run(
		    t.child, t.n, (unsigned)o.jobs, dir.dir, on_done, &t, &e);
	}
	if (rc != 0) {
		fprintf(stderr, "continuitybench: %s\n", e.text);
		rc = HF_EXIT_UNREACHABLE;
	} else {
		rc = conclude(&t);
	}
	hf_launch_close(&dir);
	hf_children_free(t.child, t.n);
	free(t.cell);
	return rc;
}
