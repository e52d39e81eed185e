/*
 * "continuitybench compare": the same suites against several gateways, each
 * installed, started, played against and stopped in turn, side by side.
 */
#include <config.h>

#include "bench/cmd.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "bench/child.h"
#include "bench/compare.h"
#include "bench/format.h"
#include "bench/launch.h"
#include "bench/suite.h"

static const char usage[] =
    "usage: continuitybench compare [options]\n"
    "Play the same suites against several gateways, one after the other, and\n"
    "print what became of the conversations side by side.  Each is started "
    "from its\n"
    "profile for each suite, with the faithful providers behind it, and "
    "stopped.\n"
    "\n"
    "  --targets A,B,...  profiles: names or files, with \":thin\" or "
    "\":full\" "
    "behind\n"
    "                     for another history than the profile's; default\n"
    "                     holdfast,portkey,nginx\n"
    "  --suites A,B,...   default paper,midstream,rolling; \"wall\" is the "
    "fault wall\n"
    "  --runs N           default 1\n"
    "  --seed N           default 42\n"
    "  --size N           conversations of suites that have no size of their "
    "own\n"
    "  --wall-ms N        milliseconds in a second of the wall, default 1000\n"
    "  --concurrency N    conversations at once, default 25\n"
    "  --first-token-ms N when a provider that may fail is given up, default "
    "1000\n"
    "  --holdfast PATH    the daemon; default: beside this program\n"
    "  --json FILE        write all reports\n"
    "  --markdown FILE    write the tables\n"
    "  --keep DIR         keep reports and logs there\n"
    "\n"
    "Exits 1 if a suite could not be played; what gateways lose is no "
    "failure.\n";

#define MAX_NAMES 16

struct options {
	char *targets, *suites; /* cut at their commas */
	const char *target[MAX_NAMES], *suite[MAX_NAMES];
	unsigned n_target, n_suite;
	const char *runs, *seed, *size, *wall_ms, *concurrency, *first_ms;
	const char *holdfast, *json, *markdown, *keep;
};

/* False: too many, or none. */
static bool
split(char *list, const char **out, unsigned *n)
{
	char *save = NULL;

	for (char *p = strtok_r(list, ",", &save); p != NULL;
	     p = strtok_r(NULL, ",", &save)) {
		if (*n == MAX_NAMES)
			return false;
		out[(*n)++] = p;
	}
	return *n > 0;
}

static void
add_pair(struct hf_child *c, const char *name, const char *value)
{
	if (value == NULL)
		return;
	hf_child_arg(c, name);
	hf_child_arg(c, value);
}

/* One target on one suite. */
static void
make_child(struct hf_child *c, const struct options *o, const char *suite,
    char *target, unsigned number)
{
	const struct hf_suite_kind *k = hf_suite_kind(suite);
	bool wall = strcmp(suite, "wall") == 0;
	char *colon = strrchr(target, ':');

	snprintf(c->name, sizeof(c->name), "%s-%u", suite, number + 1);
	hf_child_arg(c, "run");
	if (colon != NULL) {
		*colon = '\0';
		add_pair(c, "--history", colon + 1);
	}
	add_pair(c, "--profile", target);
	add_pair(c, "--suite", suite);
	add_pair(c, "--seed", o->seed);
	add_pair(c, "--holdfast", o->holdfast);
	if (wall) {
		add_pair(c, "--size", o->wall_ms);
	} else {
		add_pair(c, "--runs", o->runs);
		add_pair(c, "--concurrency", o->concurrency);
		add_pair(c, "--first-token-ms", o->first_ms);
		add_pair(c, "--idle-ms", o->first_ms);
		if (k != NULL && k->sized)
			add_pair(c, "--size", o->size);
	}
	hf_child_arg(c, "--quiet");
}

struct comparison {
	const struct options *o;
	struct hf_child *child; /* suite by suite, target by target */
	unsigned n;
};

static void
on_done(void *arg, unsigned i)
{
	struct comparison *m = arg;
	const struct hf_child *c = &m->child[i];

	fprintf(stderr, "%s, %s: %s\n", m->o->suite[i / m->o->n_target],
	    m->o->target[i % m->o->n_target],
	    c->report != NULL ? "played" : "could not be played");
}

/* {"schema","ended","suites":{NAME:{TARGET:report or null}}}; new. */
static json_t *
collect(const struct comparison *m)
{
	const struct options *o = m->o;
	json_t *suites = json_object();
	char when[32];

	hf_wall_format(hf_wall_us(), when);
	for (unsigned s = 0; s < o->n_suite; s++) {
		json_t *targets = json_object();

		for (unsigned t = 0; t < o->n_target; t++) {
			json_t *r = m->child[s * o->n_target + t].report;

			json_object_set_new(targets, o->target[t],
			    r == NULL ? json_null() : json_incref(r));
		}
		json_object_set_new(suites, o->suite[s], targets);
	}
	return json_pack("{s:i,s:s,s:s,s:o}", "schema", 1, "ended", when,
	    "version", PACKAGE_VERSION, "suites", suites);
}

/* The exit code. */
static int
conclude(const struct comparison *m)
{
	const struct options *o = m->o;
	json_t *all = collect(m);
	int rc = HF_EXIT_OK;
	FILE *f;

	hf_compare_text(stdout, all);
	if (o->markdown != NULL) {
		f = fopen(o->markdown, "we");
		if (f != NULL)
			hf_compare_text(f, all);
		if (f == NULL || fclose(f) != 0)
			rc = HF_EXIT_FAILED;
	}
	if (o->json != NULL && json_dump_file(all, o->json, JSON_INDENT(1)))
		rc = HF_EXIT_FAILED;
	if (rc != HF_EXIT_OK)
		fputs("continuitybench: cannot write the comparison\n", stderr);
	json_decref(all);
	for (unsigned i = 0; i < m->n; i++)
		if (m->child[i].report == NULL)
			rc = HF_EXIT_FAILED;
	return rc;
}

static bool
set_option(struct options *o, int c, char *arg)
{
	const char **text[] = { &o->runs, &o->seed, &o->size, &o->wall_ms,
		&o->concurrency, &o->first_ms, &o->holdfast, &o->json,
		&o->markdown, &o->keep };

	if (c >= 256 && c < 256 + (int)hf_countof(text)) {
		*text[c - 256] = arg;
		return true;
	}
	if (c == 't') {
		free(o->targets);
		o->targets = hf_xstrdup(arg);
	} else if (c == 's') {
		free(o->suites);
		o->suites = hf_xstrdup(arg);
	}
	return c == 't' || c == 's';
}

/* -1: go on; else the exit code. */
static int
parse(struct options *o, int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "targets", required_argument, NULL, 't' },
		{ "suites", required_argument, NULL, 's' },
		{ "runs", required_argument, NULL, 256 },
		{ "seed", required_argument, NULL, 257 },
		{ "size", required_argument, NULL, 258 },
		{ "wall-ms", required_argument, NULL, 259 },
		{ "concurrency", required_argument, NULL, 260 },
		{ "first-token-ms", required_argument, NULL, 261 },
		{ "holdfast", required_argument, NULL, 262 },
		{ "json", required_argument, NULL, 263 },
		{ "markdown", required_argument, NULL, 264 },
		{ "keep", required_argument, NULL, 265 },
		{ "help", no_argument, NULL, 'h' }, { 0 }
	};
	bool ok = true;
	int c;

	while (ok && (c = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return HF_EXIT_OK;
		}
		ok = set_option(o, c, optarg);
	}
	if (ok && optind == argc &&
	    split(o->targets, o->target, &o->n_target) &&
	    split(o->suites, o->suite, &o->n_suite))
		return -1;
	fputs(usage, stderr);
	return HF_EXIT_USAGE;
}

static int
compare(struct options *o)
{
	struct comparison m = { .o = o, .n = o->n_suite * o->n_target };
	struct hf_launch dir = { 0 };
	struct hf_error e;
	char **name;
	int rc;

	m.child = hf_xcalloc(m.n, sizeof(*m.child));
	name = hf_xcalloc(m.n, sizeof(*name));
	for (unsigned i = 0; i < m.n; i++) {
		name[i] = hf_xstrdup(o->target[i % o->n_target]);
		make_child(&m.child[i], o, o->suite[i / o->n_target], name[i],
		    i % o->n_target);
	}
	rc = hf_launch_open(&dir, o->keep, &e);
	if (rc == 0)
		rc = hf_children_run(m.child, m.n, 1, dir.dir, on_done, &m, &e);
	if (rc != 0) {
		fprintf(stderr, "continuitybench: %s\n", e.text);
		rc = HF_EXIT_UNREACHABLE;
	} else {
		rc = conclude(&m);
		dir.keep = dir.keep || rc != HF_EXIT_OK;
		if (rc != HF_EXIT_OK)
			fprintf(stderr, "continuitybench: logs are in %s\n",
			    dir.dir);
	}
	hf_launch_close(&dir);
	hf_children_free(m.child, m.n);
	for (unsigned i = 0; i < m.n; i++)
		free(name[i]);
	free(name);
	return rc;
}

int
hf_cmd_compare(int argc, char **argv)
{
	struct options o = {
		.targets = hf_xstrdup("holdfast,portkey,nginx"),
		.suites = hf_xstrdup("paper,midstream,rolling"),
		.runs = "1",
		.seed = "42",
		.wall_ms = "1000",
		.concurrency = "25",
		.first_ms = "1000",
	};
	int rc = parse(&o, argc, argv);

	if (rc < 0)
		rc = compare(&o);
	free(o.targets);
	free(o.suites);
	return rc;
}
