/*
 * "continuitybench run": starts what is needed, plays, judges, reports.
 */
#include <config.h>

#include "bench/cmd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/check.h"
#include "bench/director.h"
#include "bench/format.h"
#include "bench/gate.h"
#include "bench/judge.h"
#include "bench/killer.h"
#include "bench/launch.h"
#include "bench/play.h"
#include "bench/profile.h"
#include "bench/report.h"
#include "bench/run.h"
#include "bench/wall.h"

#define DEFAULT_RUNS 5 /* of a published set */
#define DEFAULT_CONCURRENCY 100
#define GRACE_MS 10000 /* of a client, beyond a suite's long deadline */

/* Is it another gateway than ours? */
static bool
foreign(const struct hf_run_options *o)
{
	return o->target != NULL || o->profile != NULL || o->proxy;
}

/* Is it one that we start, may kill and start again? */
static bool
mortal(const struct hf_run_options *o)
{
	return (o->proxy || !foreign(o)) && o->kill_ms == 0;
}

/* Are the providers? */
static bool
serves(const struct hf_run_options *o)
{
	return o->target == NULL || o->n_listen > 0;
}

static bool
choose_systems(const struct hf_run_options *o, struct hf_play_conf *c)
{
	static const struct hf_play_system known[] = {
		{ "baseline", "baseline", true, false },
		{ "holdfast", "holdfast", false, false },
		{ "control", "holdfast", false, false, true },
	};
	const char *p = o->systems;

	if (p == NULL)
		p = c->suite->alone ? "holdfast" : "baseline,holdfast";
	if (foreign(o)) {
		c->system[0] = (struct hf_play_system){ o->proxy ? "proxy" :
			    o->profile != NULL			 ? o->profile :
								   "target",
			o->proxy ? "proxy" : o->model, false, !o->proxy };
		c->n_system = 1;
		if (o->control_model != NULL)
			c->system[c->n_system++] =
			    (struct hf_play_system){ "control",
				    o->control_model, false, true, true };
		return true;
	}
	while (*p != '\0') {
		size_t n = strcspn(p, ","), i = 0;

		while (i < hf_countof(known) &&
		    (strlen(known[i].name) != n ||
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

/* NULL: told why. */
static struct hf_suite *
choose_suite(struct hf_run_options *o)
{
	struct hf_suite *s = NULL;
	struct hf_error e;

	if (o->conversations != NULL) {
		if (hf_suite_published(
			&s, o->conversations, o->manifest, o->seed, &e) != 0)
			fprintf(stderr, "continuitybench: %s\n", e.text);
		return s;
	}
	if (o->suite == NULL)
		o->suite = "paper";
	s = hf_suite_make_with(
	    o->suite, o->seed, (unsigned)o->size, o->knobs, o->all, &e);
	if (s == NULL)
		fprintf(stderr, "continuitybench: %s\n", e.text);
	return s;
}

/* The providers, and the gateway if it does not run already. */
static int
launch(struct hf_launch *l, const struct hf_suite *s,
    const struct hf_run_options *o, struct hf_profile *profile,
    struct hf_error *e)
{
	struct hf_gateway_options g = { o->holdfast, (unsigned)o->workers,
		(unsigned)o->first_token_ms, (unsigned)o->idle_ms };
	struct hf_provider_options p = { o->suite, o->conversations,
		o->manifest, o->seed, o->size, o->listen, o->n_listen,
		o->knobs };
	int rc = hf_launch_open(l, o->keep, e);

	/* The yardstick's limits, in its own seconds. */
	if (s->unit_ms > 0)
		g.first_token_ms = g.idle_ms = 10 * s->unit_ms;
	if (rc == 0)
		rc = hf_launch_providers(l, s, &p, e);
	if (rc != 0 || o->target != NULL)
		return rc;
	if (o->proxy)
		return hf_launch_proxy(l, s, &p, g.first_token_ms, o->bug, e);
	if (o->profile != NULL)
		return hf_profile_start(profile, l, s, &g, e);
	return hf_launch_gateway(l, s, &g, e);
}

static int
write_json(const char *path, json_t *report)
{
	int rc;

	if (strcmp(path, "-") == 0)
		rc = json_dumpf(report, stdout, JSON_INDENT(1)) == 0 &&
			putchar('\n') != EOF ?
		    0 :
		    -1;
	else
		rc = json_dump_file(report, path, JSON_INDENT(1));
	if (rc != 0)
		fprintf(stderr, "continuitybench: cannot write %s\n", path);
	return rc == 0 ? HF_EXIT_OK : HF_EXIT_FAILED;
}

/* The same of what only streams can get wrong. */
static bool
streams_passed(const struct hf_report *r)
{
	bool ok = true;

	for (unsigned i = 0; i < r->conf->n_system; i++) {
		const struct hf_play_system *s = &r->conf->system[i];
		const struct hf_tally *t = &r->counts.tally[i];
		unsigned wrong = t->outcomes[HF_OUTCOME_FLAWED] +
		    t->outcomes[HF_OUTCOME_OTHER] +
		    t->outcomes[HF_OUTCOME_ERROR];

		if (s->stateless || !r->conf->suite->exact)
			continue;
		if (wrong > 0)
			fprintf(stderr,
			    "failed: %s: %u answers on turns with failures "
			    "are not what was to come\n",
			    s->name, wrong);
		if (t->bad_marks > 0)
			fprintf(stderr,
			    "failed: %s: %u streams without just one role, "
			    "finish and end\n",
			    s->name, t->bad_marks);
		ok = ok && wrong == 0 && t->bad_marks == 0;
	}
	return ok;
}

/* Answers that the judge gave no verdict on. */
static unsigned
undecided(const struct hf_report *r)
{
	return (unsigned)json_integer_value(
	    json_object_get(r->judge, "undecided"));
}

/* A gateway that is told of the quota keeps to it, and makes the most of it. */
static bool
storm_passed(const struct hf_report *r, json_t *systems)
{
	const struct hf_suite *suite = r->conf->suite;
	const char *name;
	json_t *s;
	bool ok = true;

	if (suite->storm.quota == 0 || suite->listener[1].rpm == 0 ||
	    !r->log_judged)
		return true;
	json_object_foreach(systems, name, s)
	{
		if (hf_storm_passed(json_object_get(s, "storm")))
			continue;
		fprintf(stderr,
		    "failed: %s: the storm: all are to be answered, with at "
		    "most %g calls each, in at most %g of the least time\n",
		    name, HF_STORM_CALLS, suite->storm.longest / 100.0);
		ok = false;
	}
	return ok;
}

/* False with a reason on stderr: the run does not count as passed. */
static bool
passed(const struct hf_report *r, json_t *report, double require)
{
	const struct hf_counts *n = &r->counts;
	const struct {
		unsigned count;
		const char *what;
	} bad[] = {
		{ n->bleed, "words of another conversation" },
		{ n->bad_payloads, "payloads that are not the history" },
		{ n->refused, "requests refused by a strict provider" },
		{ n->unattributed, "payloads of no conversation" },
		{ n->duplicates, "turns that one provider answered twice" },
		{ n->answered_by_primary, "turns answered by who was to fail" },
		{ n->reexecuted, "turns that called a tool once too often" },
		{ n->missed_kills, "turns in which nobody was killed" },
		{ r->log_judged ? n->not_failed_over : 0,
		    "failures that nobody answered" },
		{ undecided(r), "answers without a verdict of the judge" },
	};
	json_t *systems = json_object_get(report, "systems");
	bool ok = true;

	for (unsigned i = 0; i < hf_countof(bad); i++) {
		if (bad[i].count == 0)
			continue;
		fprintf(stderr, "failed: %u %s\n", bad[i].count, bad[i].what);
		ok = false;
	}
	ok = streams_passed(r) && ok;
	if (r->verified && r->verify_exit != 0) {
		fprintf(stderr,
		    "failed: holdfastctl sessions verify --all: "
		    "exit %d\n",
		    r->verify_exit);
		ok = false;
	}
	ok = storm_passed(r, systems) && ok;
	for (unsigned i = 0; i < r->conf->n_system; i++) {
		const struct hf_play_system *s = &r->conf->system[i];
		double p = json_number_value(json_object_get(
		    json_object_get(json_object_get(systems, s->name), "cpr"),
		    "p"));

		/* What a real model does not know is no gateway's fault. */
		if (s->stateless || (s->control && !r->log_judged) ||
		    p >= require)
			continue;
		fprintf(stderr, "failed: %s preserved %.4f, required %.4f\n",
		    s->name, p, require);
		ok = false;
	}
	return ok;
}

/* The verdicts on the fault wall go before all other checks. */
static int
conclude_wall(struct hf_report *r, const struct hf_run_options *o,
    const char *log, json_t *report)
{
	struct hf_error e;
	json_t *wall;
	int rc = HF_EXIT_FAILED;

	if (log == NULL) {
		fputs("continuitybench: the wall needs providers of its own: "
		      "--listen\n",
		    stderr);
		return rc;
	}
	if (hf_wall_judge(&wall, r->conf, r->plays, log, &e) != 0) {
		fprintf(stderr, "continuitybench: %s\n", e.text);
	} else {
		if (o->json == NULL || strcmp(o->json, "-") != 0)
			hf_wall_text(stdout, wall);
		if (hf_wall_count(wall, "pass") == HF_WALL_SCENARIOS)
			rc = HF_EXIT_OK;
	}
	json_object_set_new(report, "wall", wall);
	return rc;
}

/* The report, new, and whether it passed.  'log': what the providers received,
 * or NULL. */
static int
conclude(struct hf_report *r, const struct hf_run_options *o, const char *log,
    json_t **out)
{
	json_t *report = hf_report_json(r);
	struct hf_error e;

	if (log != NULL && hf_report_transcripts(report, log, &e) != 0)
		fprintf(stderr, "continuitybench: %s\n", e.text);
	if (o->json == NULL || strcmp(o->json, "-") != 0) {
		hf_report_text(stdout, report);
		if (o->paper) {
			putchar('\n');
			HF_CHECK(hf_report_paper(stdout, report) == 0);
		}
	}
	*out = report;
	if (r->conf->suite->unit_ms > 0)
		return conclude_wall(r, o, log, report);
	return passed(r, report, o->require) ? HF_EXIT_OK : HF_EXIT_FAILED;
}

/* After kills: is what the store holds still sound? */
static void
verify(struct hf_launch *l, struct hf_report *r)
{
	int status = hf_launch_verify(l);

	if (status == -1) {
		fputs("continuitybench: holdfastctl has no \"sessions "
		      "verify\": not verified\n",
		    stderr);
		return;
	}
	r->verified = true;
	r->verify_exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	if (r->verify_exit != 0)
		l->keep = true;
}

static void
direct_before(void *arg, const struct hf_play *p)
{
	hf_director_before(arg, p);
}

static void
direct_after(void *arg, const struct hf_play *p)
{
	hf_director_after(arg, p);
}

static void
direct_tick(void *arg)
{
	hf_director_tick(arg);
}

static void
direct_alarm(void *arg)
{
	hf_director_alarm(arg);
}

/* What kills while it plays, if anything. */
static void
set_killers(struct hf_play_conf *c, const struct hf_run_options *o,
    struct hf_killer *killer, struct hf_director *d)
{
	if (o->kill_ms > 0) {
		c->tick = hf_killer_kill;
		c->tick_arg = killer;
		c->tick_ms = (unsigned)o->kill_ms;
	}
	if (!c->suite->kills || !mortal(o))
		return;
	hf_director_init(d, d->launch, killer);
	c->before = direct_before;
	c->after = direct_after;
	c->watch = direct_alarm;
	c->watch_fd = d->launch->alarm;
	c->tick = direct_tick;
	c->tick_ms = 1;
	c->kill_arg = c->tick_arg = d;
}

/* What answers hold where their words alone do not say it.  A judge that fails
 * now leaves answers without a verdict: the run fails, but its report is told.
 */
static void
ask_judge(
    const struct hf_run_options *o, struct hf_plays *plays, struct hf_report *r)
{
	struct hf_progress progress;
	struct hf_judge_conf conf;
	struct hf_error e;

	hf_judge_options_conf(&o->judge, &conf);
	hf_progress_begin(&progress, o->progress, "judging", "answers");
	if (hf_judge_plays(&conf, plays, &progress, &r->judge, &e) != 0)
		fprintf(stderr, "failed: %s\n", e.text);
	json_object_set(r->judge, "calibration", o->calibration);
}

static int
play_and_judge(const struct hf_run_options *o, struct hf_play_conf *c,
    struct hf_launch *l, json_t **out)
{
	struct hf_plays plays = { 0 };
	struct hf_report r = { .conf = c,
		.plays = &plays,
		.examples = json_array(),
		.log_judged = serves(o) };
	char *log = serves(o) ? hf_launch_path(l, "payloads.jsonl") : NULL;
	struct hf_director d = { .launch = l };
	struct hf_killer killer;
	struct hf_error e;
	int rc, status = 0;

	hf_killer_init(&killer, l->gateway, o->seed);
	set_killers(c, o, &killer, &d);
	rc = hf_play_all(c, &plays, &e);
	r.counts.kills = c->before != NULL ? d.kills : killer.kills;
	r.counts.restarts = d.restarts;
	r.counts.missed_kills = d.missed;
	hf_director_free(&d);
	if (rc == 0 && o->judge.url != NULL)
		ask_judge(o, &plays, &r);
	if (rc == 0)
		hf_judge_answers(c, &plays, &r.counts);
	if (rc == 0 && r.log_judged) {
		if (r.counts.kills > 0 && !o->proxy)
			verify(l, &r);
		status = hf_launch_stop_gateway(l);
		if (o->profile != NULL)
			status = 0; /* how it ends is its own business */
		rc = hf_judge_log(c, &plays, log, &r.counts, r.examples, &e);
	}
	if (rc != 0) {
		fprintf(stderr, "continuitybench: %s\n", e.text);
		rc = HF_EXIT_FAILED;
	} else {
		hf_judge_blame(c, &plays, r.log_judged, &r.counts);
		rc = conclude(&r, o, log, out);
	}
	if (status != 0) {
		fprintf(stderr,
		    "failed: the gateway did not end well "
		    "(%s %d)\n",
		    WIFEXITED(status) ? "exit status" : "signal",
		    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
		rc = HF_EXIT_FAILED;
	}
	free(log);
	json_decref(r.examples);
	json_decref(r.judge);
	hf_plays_free(&plays);
	return rc;
}

static unsigned
default_runs(const struct hf_run_options *o)
{
	const struct hf_suite_kind *k =
	    o->suite == NULL ? NULL : hf_suite_kind(o->suite);

	if (o->suite == NULL)
		return DEFAULT_RUNS;
	return k == NULL ? 1 : k->runs;
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

static void
configure(struct hf_play_conf *c, const struct hf_run_options *o,
    const struct hf_suite *suite)
{
	c->suite = suite;
	c->n_run = (unsigned)(o->runs != 0 ? o->runs : default_runs(o));
	c->concurrency = o->concurrency != 0 ? (unsigned)o->concurrency :
	    suite->concurrency != 0	     ? suite->concurrency :
					       DEFAULT_CONCURRENCY;
	if (suite->storm.quota > 0) /* all at once, or it is none */
		c->concurrency = suite->n_conv * c->n_system;
	c->full_history = o->full_history;
	c->stream = o->stream || suite->stream;
	c->retries = o->retries > 0 ? (unsigned)o->retries : suite->retries;
	c->idempotency_key = o->idempotency_key;
	c->local = serves(o);
	c->timeout_ms = (long)o->timeout_ms;
	if (suite->deadline_ms > 0 &&
	    c->timeout_ms < (long)suite->deadline_ms + GRACE_MS)
		c->timeout_ms = (long)suite->deadline_ms + GRACE_MS;
	if (suite->unit_ms > 0)
		c->timeout_ms = 110L * suite->unit_ms + 5000;
	c->progress = o->progress;
	c->api_key = o->api_key_env == NULL ? NULL : getenv(o->api_key_env);
	c->url = o->target;
}

/* How clients talk to a gateway that is not ours. */
static void
meet(struct hf_play_conf *c, struct hf_endpoint *e,
    const struct hf_run_options *o, const struct hf_profile *profile,
    const struct hf_launch *l)
{
	const char *url[HF_MAX_LISTENERS];

	if (o->target == NULL && o->profile == NULL)
		return;
	if (o->profile != NULL) {
		hf_profile_endpoint(profile, e);
		if (!o->history_given)
			c->full_history = hf_profile_full_history(profile);
	} else {
		e->model = o->model;
		e->no_user = o->no_user;
		e->n_header = o->n_header;
		memcpy(e->header, o->header, sizeof(e->header));
	}
	for (unsigned i = 0; i < HF_MAX_LISTENERS; i++)
		url[i] = l->listener[i];
	e->routes = hf_endpoint_routes(c->suite, url);
	c->endpoint = e;
}

/* Which gateway it was. */
static void
tell_gateway(json_t *report, const struct hf_run_options *o,
    const struct hf_profile *profile)
{
	if (report == NULL || o->profile == NULL)
		return;
	json_object_set_new(report, "gateway",
	    json_pack("{s:s,s:s?}", "profile", hf_profile_name(profile),
		"version", profile->version));
}

static int
play(struct hf_run_options *o, const struct hf_suite *suite,
    struct hf_profile *profile, json_t **report)
{
	struct hf_play_conf c = { 0 };
	struct hf_endpoint endpoint = { 0 };
	struct hf_launch l = { 0 };
	struct hf_error e;
	int rc;

	c.suite = suite;
	if (!choose_systems(o, &c)) {
		fputs("continuitybench: no such system\n", stderr);
		return HF_EXIT_USAGE;
	}
	if (o->profile != NULL)
		c.system[0].name = hf_profile_name(profile);
	configure(&c, o, suite);
	if (suite->kills && !suite->kills_optional && !mortal(o)) {
		fputs("continuitybench: the suite kills the daemon that this "
		      "program started, as it says: not with --target, "
		      "--profile or --kill-workers\n",
		    stderr);
		return HF_EXIT_USAGE;
	}
	rc = serves(o) ? launch(&l, suite, o, profile, &e) : 0;
	if (rc != 0) {
		fprintf(stderr, "continuitybench: %s\n", e.text);
		rc = HF_EXIT_UNREACHABLE;
	} else {
		if (o->target == NULL)
			c.url = l.url;
		meet(&c, &endpoint, o, profile, &l);
		rc = play_and_judge(o, &c, &l, report);
		tell_gateway(*report, o, profile);
	}
	json_decref(endpoint.routes);
	hf_launch_close(&l);
	return rc;
}

/* One suite; *report (new) stays NULL if there is none. */
static int
run_suite(struct hf_run_options *o, json_t **report)
{
	struct hf_profile profile = { 0 };
	struct hf_suite *suite;
	struct hf_error e;
	int rc = HF_EXIT_USAGE;

	if (o->profile != NULL &&
	    hf_profile_load(&profile, o->profile, &e) != 0) {
		fprintf(stderr, "continuitybench: %s\n", e.text);
		return HF_EXIT_USAGE;
	}
	suite = choose_suite(o);
	if (suite != NULL)
		rc = play(o, suite, &profile, report);
	hf_suite_free(suite);
	hf_profile_free(&profile);
	return rc;
}

/* All suites, one after the other; the worst of their exit codes. */
static int
run_all(const struct hf_run_options *o, json_t **out)
{
	json_t *suites = json_object(), *report;
	int rc = HF_EXIT_OK, one;

	for (unsigned i = 0; i < hf_n_suite_kinds; i++) {
		struct hf_run_options this = *o;
		char *keep = NULL;

		this.suite = hf_suite_kinds[i].name;
		this.all = true;
		if (!hf_suite_kinds[i].sized)
			this.size = 0;
		if (o->keep != NULL) {
			if (mkdir(o->keep, 0700) != 0 && errno != EEXIST)
				fprintf(stderr, "continuitybench: %s: %s\n",
				    o->keep, strerror(errno));
			keep = hf_format("%s/%s", o->keep, this.suite);
			this.keep = keep;
		}
		report = NULL;
		one = run_suite(&this, &report);
		if (o->json == NULL || strcmp(o->json, "-") != 0)
			printf("suite %s: exit %d\n\n", this.suite, one);
		if (report != NULL)
			json_object_set_new(suites, this.suite, report);
		rc = one > rc ? one : rc;
		free(keep);
	}
	*out = json_pack("{s:i,s:o}", "schema", 1, "suites", suites);
	return rc;
}

int
hf_cmd_run(int argc, char **argv)
{
	struct hf_run_options o = { .model = "holdfast",
		.seed = 42,
		.workers = 2,
		.first_token_ms = 500,
		.idle_ms = 400,
		.timeout_ms = 60000,
		.judge = HF_JUDGE_DEFAULTS };
	json_t *report = NULL;
	int rc = hf_run_options(&o, argc, argv);

	if (rc >= 0)
		return rc;
	raise_limit();
	signal(SIGPIPE, SIG_IGN);
	rc = o.judge.url == NULL ?
	    HF_EXIT_OK :
	    hf_gate(&o.judge, o.progress, &o.calibration);
	if (rc != HF_EXIT_OK) {
		if (o.calibration != NULL)
			hf_calibration_text(stderr, o.calibration);
		json_decref(o.calibration);
		return rc;
	}
	if (o.suite != NULL && strcmp(o.suite, "all") == 0)
		rc = run_all(&o, &report);
	else
		rc = run_suite(&o, &report);
	if (report != NULL && o.json != NULL &&
	    write_json(o.json, report) != HF_EXIT_OK)
		rc = HF_EXIT_FAILED;
	json_decref(report);
	json_decref(o.calibration);
	return rc;
}
