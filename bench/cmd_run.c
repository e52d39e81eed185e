/*
 * "continuitybench run": starts what is needed, plays, judges, reports.
 */
#include <config.h>

#include "bench/cmd.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/check.h"
#include "bench/judge.h"
#include "bench/launch.h"
#include "bench/play.h"
#include "bench/report.h"

static const char usage[] =
"usage: continuitybench run [options]\n"
"Play a suite through a gateway whose first provider fails on every probe,\n"
"and say how often the conversation survived.  By default the faithful\n"
"providers and the gateway are started for the run, with the systems\n"
"\"holdfast\" and \"baseline\" as two routes that differ in what the second\n"
"provider is told: everything, or the last message only.\n"
"\n"
"  --suite NAME           default paper; see \"continuitybench suites\"\n"
"  --runs N               default 5\n"
"  --concurrency N        conversations at once, default 100\n"
"  --seed N               default 42\n"
"  --history thin|full    clients send what is new, or all; default thin\n"
"  --stream               clients ask for streams\n"
"  --systems A,B          default baseline,holdfast\n"
"  --holdfast PATH        the daemon; default: beside this program\n"
"  --workers N            of the daemon, default 2\n"
"  --first-token-ms N     when the first provider is given up, default 500\n"
"  --target URL           play against this endpoint (\".../v1\") instead;\n"
"                         its providers are its own business: answers are\n"
"                         judged, payloads are not\n"
"  --model M              to ask the endpoint for, default holdfast\n"
"  --api-key-env VAR      variable with the endpoint's key\n"
"  --timeout-ms N         of one call, default 60000\n"
"  --require CPR          least rate for all but the baseline, 0 to 1\n"
"  --json FILE            write the report as JSON (\"-\": to stdout)\n"
"  --keep DIR             keep configuration, database and logs there\n"
"  --quiet                no progress\n"
"\n"
"Exits 1 when below --require, or when a check fails: words of another\n"
"conversation anywhere, a payload that is not exactly the history, a probe\n"
"that did not fail over.\n";

struct options {
	const char	*suite, *systems, *holdfast, *target, *model;
	const char	*api_key_env, *json, *keep;
	unsigned long	 runs, concurrency, seed, workers, first_token_ms;
	unsigned long	 timeout_ms;
	double		 require;
	bool		 full_history, stream, quiet;
};

enum { OPT_SUITE = 256, OPT_RUNS, OPT_CONCURRENCY, OPT_SEED, OPT_HISTORY,
	OPT_STREAM, OPT_SYSTEMS, OPT_HOLDFAST, OPT_WORKERS, OPT_FIRST,
	OPT_TARGET, OPT_MODEL, OPT_KEY, OPT_TIMEOUT, OPT_REQUIRE, OPT_JSON,
	OPT_KEEP, OPT_QUIET, OPT_HELP };

static const struct option longopts[] = {
	{ "suite", required_argument, NULL, OPT_SUITE },
	{ "runs", required_argument, NULL, OPT_RUNS },
	{ "concurrency", required_argument, NULL, OPT_CONCURRENCY },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "history", required_argument, NULL, OPT_HISTORY },
	{ "stream", no_argument, NULL, OPT_STREAM },
	{ "systems", required_argument, NULL, OPT_SYSTEMS },
	{ "holdfast", required_argument, NULL, OPT_HOLDFAST },
	{ "workers", required_argument, NULL, OPT_WORKERS },
	{ "first-token-ms", required_argument, NULL, OPT_FIRST },
	{ "target", required_argument, NULL, OPT_TARGET },
	{ "model", required_argument, NULL, OPT_MODEL },
	{ "api-key-env", required_argument, NULL, OPT_KEY },
	{ "timeout-ms", required_argument, NULL, OPT_TIMEOUT },
	{ "require", required_argument, NULL, OPT_REQUIRE },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "keep", required_argument, NULL, OPT_KEEP },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 }
};

static bool
number(const char *text, unsigned long lo, unsigned long hi,
    unsigned long *out)
{
	char *end;

	errno = 0;
	*out = strtoul(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && text[0] != '-' &&
	    *out >= lo && *out <= hi;
}

static bool
rate(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return end != text && *end == '\0' && *out >= 0 && *out <= 1;
}

static bool
history(const char *text, bool *full)
{
	*full = strcmp(text, "full") == 0;
	return *full || strcmp(text, "thin") == 0;
}

/* Options that are just kept; NULL: not one of them. */
static const char **
text_option(struct options *o, int c)
{
	switch (c) {
	case OPT_SUITE:
		return &o->suite;
	case OPT_SYSTEMS:
		return &o->systems;
	case OPT_HOLDFAST:
		return &o->holdfast;
	case OPT_TARGET:
		return &o->target;
	case OPT_MODEL:
		return &o->model;
	case OPT_KEY:
		return &o->api_key_env;
	case OPT_JSON:
		return &o->json;
	case OPT_KEEP:
		return &o->keep;
	default:
		return NULL;
	}
}

static bool
set_option(struct options *o, int c, const char *arg)
{
	const char **text = text_option(o, c);

	if (text != NULL) {
		*text = arg;
		return true;
	}
	switch (c) {
	case OPT_RUNS:
		return number(arg, 1, 1000, &o->runs);
	case OPT_CONCURRENCY:
		return number(arg, 1, 10000, &o->concurrency);
	case OPT_SEED:
		return number(arg, 0, UINT32_MAX, &o->seed);
	case OPT_HISTORY:
		return history(arg, &o->full_history);
	case OPT_STREAM:
		o->stream = true;
		return true;
	case OPT_WORKERS:
		return number(arg, 1, 32, &o->workers);
	case OPT_FIRST:
		return number(arg, 1, 600000, &o->first_token_ms);
	case OPT_TIMEOUT:
		return number(arg, 1, 3600000, &o->timeout_ms);
	case OPT_REQUIRE:
		return rate(arg, &o->require);
	case OPT_QUIET:
		o->quiet = true;
		return true;
	default:
		return false;
	}
}

/* -1: go on; else the exit code. */
static int
parse(struct options *o, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		if (c == OPT_HELP) {
			fputs(usage, stdout);
			return HF_EXIT_OK;
		}
		if (set_option(o, c, optarg))
			continue;
		if (c != '?')
			fprintf(stderr, "continuitybench: bad value '%s'\n",
			    optarg);
		fputs(usage, stderr);
		return HF_EXIT_USAGE;
	}
	if (optind != argc) {
		fputs(usage, stderr);
		return HF_EXIT_USAGE;
	}
	return -1;
}

static bool
choose_systems(const struct options *o, struct hf_play_conf *c)
{
	static const struct hf_play_system known[] = {
		{ "baseline", "baseline", true },
		{ "holdfast", "holdfast", false },
	};
	const char *p = o->systems;

	if (o->target != NULL) {
		c->system[0] = (struct hf_play_system){ "target", o->model,
		    false };
		c->n_system = 1;
		return true;
	}
	while (*p != '\0') {
		size_t n = strcspn(p, ","), i = 0;

		while (i < hf_countof(known) && (strlen(known[i].name) != n ||
		    memcmp(known[i].name, p, n) != 0))
			i++;
		if (i == hf_countof(known) || c->n_system == HF_MAX_SYSTEMS)
			return false;
		for (unsigned k = 0; k < c->n_system; k++)
			if (c->system[k].name == known[i].name)
				return false;
		c->system[c->n_system++] = known[i];
		p += n + (p[n] == ',');
	}
	return c->n_system > 0;
}

static int
launch(struct hf_launch *l, const struct options *o, struct hf_error *e)
{
	struct hf_gateway_options g = { o->holdfast, (unsigned)o->workers,
	    (unsigned)o->first_token_ms };
	int rc = hf_launch_open(l, o->keep, e);

	if (rc == 0)
		rc = hf_launch_providers(l, o->suite, o->seed, e);
	if (rc == 0)
		rc = hf_launch_gateway(l, &g, e);
	return rc;
}

static int
write_json(const char *path, json_t *report)
{
	int rc;

	if (strcmp(path, "-") == 0)
		rc = json_dumpf(report, stdout, JSON_INDENT(1)) == 0 &&
		    putchar('\n') != EOF ? 0 : -1;
	else
		rc = json_dump_file(report, path, JSON_INDENT(1));
	if (rc != 0)
		fprintf(stderr, "continuitybench: cannot write %s\n", path);
	return rc == 0 ? HF_EXIT_OK : HF_EXIT_FAILED;
}

/* False with a reason on stderr: the run does not count as passed. */
static bool
passed(const struct hf_report *r, json_t *report, double require)
{
	const struct hf_counts *n = &r->counts;
	const struct { unsigned count; const char *what; } bad[] = {
		{ n->bleed, "words of another conversation" },
		{ n->bad_payloads, "payloads that are not the history" },
		{ n->refused, "requests refused by a strict provider" },
		{ n->unattributed, "payloads of no conversation" },
		{ n->duplicates, "turns that one provider answered twice" },
		{ n->answered_by_primary, "probes that did not fail" },
		{ r->log_judged ? n->not_failed_over : 0,
		  "probes that did not fail over" },
	};
	json_t *systems = json_object_get(report, "systems");
	bool ok = true;

	for (unsigned i = 0; i < hf_countof(bad); i++) {
		if (bad[i].count == 0)
			continue;
		fprintf(stderr, "failed: %u %s\n", bad[i].count,
		    bad[i].what);
		ok = false;
	}
	for (unsigned i = 0; i < r->conf->n_system; i++) {
		const struct hf_play_system *s = &r->conf->system[i];
		double p = json_number_value(json_object_get(json_object_get(
		    json_object_get(systems, s->name), "cpr"), "p"));

		if (s->stateless || p >= require)
			continue;
		fprintf(stderr, "failed: %s preserved %.4f, required %.4f\n",
		    s->name, p, require);
		ok = false;
	}
	return ok;
}

static int
conclude(struct hf_report *r, const struct options *o)
{
	json_t *report = hf_report_json(r);
	int rc = HF_EXIT_OK;

	if (o->json == NULL || strcmp(o->json, "-") != 0)
		hf_report_text(stdout, report);
	if (o->json != NULL)
		rc = write_json(o->json, report);
	if (!passed(r, report, o->require))
		rc = HF_EXIT_FAILED;
	json_decref(report);
	return rc;
}

static int
play_and_judge(const struct options *o, struct hf_play_conf *c,
    struct hf_launch *l)
{
	struct hf_plays plays = { 0 };
	struct hf_report r = { .conf = c, .plays = &plays,
	    .examples = json_array(), .log_judged = o->target == NULL };
	struct hf_error e;
	int rc, status = 0;

	rc = hf_play_all(c, &plays, &e);
	if (rc == 0)
		hf_judge_answers(c, &plays, &r.counts);
	if (rc == 0 && r.log_judged) {
		char *log = hf_launch_path(l, "payloads.jsonl");

		status = hf_launch_stop_gateway(l);
		rc = hf_judge_log(c, &plays, log, &r.counts, r.examples, &e);
		free(log);
	}
	if (rc != 0) {
		fprintf(stderr, "continuitybench: %s\n", e.text);
		rc = HF_EXIT_FAILED;
	} else {
		rc = conclude(&r, o);
	}
	if (status != 0) {
		fprintf(stderr, "failed: the gateway did not end well "
		    "(%s %d)\n", WIFEXITED(status) ? "exit status" :
		    "signal", WIFEXITED(status) ? WEXITSTATUS(status) :
		    WTERMSIG(status));
		rc = HF_EXIT_FAILED;
	}
	json_decref(r.examples);
	hf_plays_free(&plays);
	return rc;
}

/* Each conversation under way needs a descriptor. */
static void
raise_limit(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) != 0)
		return;
	rl.rlim_cur = rl.rlim_max;
	setrlimit(RLIMIT_NOFILE, &rl);
}

int
hf_cmd_run(int argc, char **argv)
{
	struct options o = { .suite = "paper", .systems =
	    "baseline,holdfast", .model = "holdfast", .runs = 5,
	    .concurrency = 100, .seed = 42, .workers = 2,
	    .first_token_ms = 500, .timeout_ms = 60000 };
	struct hf_play_conf c = { 0 };
	struct hf_suite *suite;
	struct hf_launch l = { 0 };
	struct hf_error e;
	int rc = parse(&o, argc, argv);

	if (rc >= 0)
		return rc;
	suite = hf_suite_make(o.suite, o.seed);
	if (suite == NULL || !choose_systems(&o, &c)) {
		fprintf(stderr, "continuitybench: no such %s\n",
		    suite == NULL ? "suite" : "system");
		hf_suite_free(suite);
		return HF_EXIT_USAGE;
	}
	raise_limit();
	signal(SIGPIPE, SIG_IGN);
	c.suite = suite;
	c.n_run = (unsigned)o.runs;
	c.concurrency = (unsigned)o.concurrency;
	c.full_history = o.full_history;
	c.stream = o.stream;
	c.local = o.target == NULL;
	c.timeout_ms = (long)o.timeout_ms;
	c.quiet = o.quiet;
	c.api_key = o.api_key_env == NULL ? NULL : getenv(o.api_key_env);
	c.url = o.target;
	rc = o.target == NULL ? launch(&l, &o, &e) : 0;
	if (rc != 0) {
		fprintf(stderr, "continuitybench: %s\n", e.text);
		rc = HF_EXIT_UNREACHABLE;
	} else {
		if (o.target == NULL)
			c.url = l.url;
		rc = play_and_judge(&o, &c, &l);
	}
	hf_launch_close(&l);
	hf_suite_free(suite);
	return rc;
}
