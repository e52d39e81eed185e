/*
 * The options of "continuitybench run".
 */
#include <config.h>

#include "bench/run.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/bugs.h"
#include "bench/cmd.h"

static const char usage[] =
    "usage: continuitybench run [options]\n"
    "Play a suite through a gateway whose providers fail as the suite says,\n"
    "and say how often the conversation survived.  By default the faithful\n"
    "providers and the gateway are started for the run, with the systems\n"
    "\"holdfast\" and \"baseline\" as two routes that differ in what the "
    "second\n"
    "provider is told: everything, or the last message only.\n"
    "\n"
    "  --suite NAME           default paper; see \"continuitybench suites\";\n"
    "                         all: one after the other\n"
    "  --conversations FILE   play this published set instead of a suite, "
    "with\n"
    "  --manifest FILE        the failure of each of its conversations\n"
    "  --size N               conversations of the suite; default: its own\n"
    "  --knobs NAME=N,...     what else can be set of the suite; \"suites\"\n"
    "                         lists it\n"
    "  --runs N               default 5 for paper, else 1\n"
    "  --concurrency N        conversations at once, default 100, or what the\n"
    "                         suite is about\n"
    "  --seed N               default 42\n"
    "  --history thin|full    clients send what is new, or all; default thin\n"
    "  --stream               clients ask for streams; always so in suites\n"
    "                         that are about streams\n"
    "  --systems A,B          default baseline,holdfast; also control: what\n"
    "                         holdfast does without failures\n"
    "  --holdfast PATH        the daemon; default: beside this program\n"
    "  --workers N            of the daemon, default 2\n"
    "  --first-token-ms N     when a provider that may fail is given up, "
    "default\n"
    "                         500\n"
    "  --idle-ms N            how long one may pause in its answer, default "
    "400\n"
    "  --target URL           play against this endpoint (\".../v1\") "
    "instead;\n"
    "                         its providers are its own business: answers are\n"
    "                         judged, payloads are not\n"
    "  --listen NAME=ADDR:PORT  with --target: serve the faithful provider "
    "NAME\n"
    "                         there, where the endpoint looks for it; then "
    "what it\n"
    "                         sends is judged too.  Once for each provider of "
    "the\n"
    "                         suite\n"
    "  --dialect openai       the endpoint's protocol\n"
    "  --header 'NAME: TEXT'  a header of each request instead of "
    "X-Holdfast-Session,\n"
    "                         with {session}, {play}, {route}, ... in it; "
    "repeat\n"
    "  --model M              to ask the endpoint for, default holdfast; "
    "\"{play}~M\"\n"
    "                         tells the providers how to fail where no end "
    "user's\n"
    "                         id is passed on\n"
    "  --control-model M      ask this one, which does not fail, the same "
    "things,\n"
    "                         and tell what was right of what is without "
    "failures\n"
    "  --no-user              send no end user's id\n"
    "  --profile NAME|FILE    start and talk to the gateway of this profile\n"
    "  --api-key-env VAR      variable with the endpoint's key\n"
    "  --proxy                play against the reference proxy instead\n"
    "  --bug NAME             ... with this bug; see \"continuitybench "
    "proxy\"\n"
    "  --timeout-ms N         of one call, default 60000\n"
    "  --retries N            clients repeat a request whose connection was\n"
    "                         refused or broke up to N times, default 0\n"
    "  --idempotency-key      a key of its own for each turn, sent with all\n"
    "                         its repeats; else nothing marks them\n"
    "  --kill-workers MS      kill -9 a random worker each MS milliseconds\n"
    "  --require CPR          least rate for all but the baseline, 0 to 1\n"
    "  --paper                print the failover paper's tables too, in its\n"
    "                         layout\n"
    "  --json FILE            write the report as JSON (\"-\": to stdout)\n"
    "  --keep DIR             keep configuration, database and logs there\n"
    "  --progress             progress also where there is no terminal\n"
    "  --quiet                no progress\n"
    "\n" HF_JUDGE_USAGE "\n"
    "Exits 1 when below --require, or when a check fails: words of another\n"
    "conversation anywhere, a payload that is not exactly the history, a "
    "failure\n"
    "that nobody answered, a turn that one provider answered more often than "
    "it\n"
    "was asked for, a stream that is not, to the byte, the text that was to "
    "come,\n"
    "a store that does not verify after kills.\n";

enum {
	OPT_SUITE = 256,
	OPT_SIZE,
	OPT_KNOBS,
	OPT_PAPER,
	OPT_RUNS,
	OPT_CONCURRENCY,
	OPT_SEED,
	OPT_HISTORY,
	OPT_STREAM,
	OPT_SYSTEMS,
	OPT_HOLDFAST,
	OPT_WORKERS,
	OPT_FIRST,
	OPT_IDLE,
	OPT_TARGET,
	OPT_MODEL,
	OPT_KEY,
	OPT_TIMEOUT,
	OPT_REQUIRE,
	OPT_JSON,
	OPT_KEEP,
	OPT_QUIET,
	OPT_HELP,
	OPT_CONVERSATIONS,
	OPT_MANIFEST,
	OPT_RETRIES,
	OPT_IDEMPOTENCY,
	OPT_KILL,
	OPT_LISTEN,
	OPT_DIALECT,
	OPT_HEADER,
	OPT_NO_USER,
	OPT_PROFILE,
	OPT_PROXY,
	OPT_BUG,
	OPT_CONTROL,
	OPT_PROGRESS
};

static const struct option longopts[] = { { "suite", required_argument, NULL,
					      OPT_SUITE },
	{ "conversations", required_argument, NULL, OPT_CONVERSATIONS },
	{ "manifest", required_argument, NULL, OPT_MANIFEST },
	{ "retries", required_argument, NULL, OPT_RETRIES },
	{ "idempotency-key", no_argument, NULL, OPT_IDEMPOTENCY },
	{ "kill-workers", required_argument, NULL, OPT_KILL },
	{ "control-model", required_argument, NULL, OPT_CONTROL },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "knobs", required_argument, NULL, OPT_KNOBS },
	{ "paper", no_argument, NULL, OPT_PAPER },
	{ "runs", required_argument, NULL, OPT_RUNS },
	{ "concurrency", required_argument, NULL, OPT_CONCURRENCY },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "history", required_argument, NULL, OPT_HISTORY },
	{ "stream", no_argument, NULL, OPT_STREAM },
	{ "systems", required_argument, NULL, OPT_SYSTEMS },
	{ "holdfast", required_argument, NULL, OPT_HOLDFAST },
	{ "workers", required_argument, NULL, OPT_WORKERS },
	{ "first-token-ms", required_argument, NULL, OPT_FIRST },
	{ "idle-ms", required_argument, NULL, OPT_IDLE },
	{ "target", required_argument, NULL, OPT_TARGET },
	{ "model", required_argument, NULL, OPT_MODEL },
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "dialect", required_argument, NULL, OPT_DIALECT },
	{ "header", required_argument, NULL, OPT_HEADER },
	{ "no-user", no_argument, NULL, OPT_NO_USER },
	{ "profile", required_argument, NULL, OPT_PROFILE },
	{ "proxy", no_argument, NULL, OPT_PROXY },
	{ "bug", required_argument, NULL, OPT_BUG },
	{ "api-key-env", required_argument, NULL, OPT_KEY },
	{ "timeout-ms", required_argument, NULL, OPT_TIMEOUT },
	{ "require", required_argument, NULL, OPT_REQUIRE },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "keep", required_argument, NULL, OPT_KEEP },
	{ "progress", no_argument, NULL, OPT_PROGRESS },
	{ "quiet", no_argument, NULL, OPT_QUIET }, HF_JUDGE_LONGOPTS,
	{ "help", no_argument, NULL, OPT_HELP }, { 0 } };

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
text_option(struct hf_run_options *o, int c)
{
	switch (c) {
	case OPT_SUITE:
		return &o->suite;
	case OPT_CONVERSATIONS:
		return &o->conversations;
	case OPT_MANIFEST:
		return &o->manifest;
	case OPT_KNOBS:
		return &o->knobs;
	case OPT_SYSTEMS:
		return &o->systems;
	case OPT_HOLDFAST:
		return &o->holdfast;
	case OPT_TARGET:
		return &o->target;
	case OPT_MODEL:
		return &o->model;
	case OPT_CONTROL:
		return &o->control_model;
	case OPT_KEY:
		return &o->api_key_env;
	case OPT_JSON:
		return &o->json;
	case OPT_KEEP:
		return &o->keep;
	case OPT_PROFILE:
		return &o->profile;
	case OPT_DIALECT:
		return &o->dialect;
	case OPT_BUG:
		return &o->bug;
	default:
		return NULL;
	}
}

/* One more of a list. */
static bool
add(const char **list, unsigned *n, unsigned max, const char *arg)
{
	if (*n == max)
		return false;
	list[(*n)++] = arg;
	return true;
}

/* Those about a gateway that is not ours. */
static bool
set_foreign(struct hf_run_options *o, int c, const char *arg)
{
	switch (c) {
	case OPT_LISTEN:
		return add(o->listen, &o->n_listen, HF_MAX_LISTENERS, arg);
	case OPT_HEADER:
		return strchr(arg, ':') != NULL &&
		    add(o->header, &o->n_header, HF_MAX_HEADERS, arg);
	case OPT_NO_USER:
		o->no_user = true;
		return true;
	case OPT_PROXY:
		o->proxy = true;
		return true;
	default:
		return false;
	}
}

static bool
set_option(struct hf_run_options *o, int c, const char *arg)
{
	const char **text = text_option(o, c);

	if (text != NULL) {
		*text = arg;
		return true;
	}
	switch (c) {
	case OPT_SIZE:
		return hf_option_number(arg, 1, 1000000, &o->size);
	case OPT_RUNS:
		return hf_option_number(arg, 1, 1000, &o->runs);
	case OPT_CONCURRENCY:
		return hf_option_number(arg, 1, 10000, &o->concurrency);
	case OPT_SEED:
		return hf_option_number(arg, 0, UINT32_MAX, &o->seed);
	case OPT_HISTORY:
		o->history_given = true;
		return history(arg, &o->full_history);
	case OPT_PAPER:
		o->paper = true;
		return true;
	case OPT_STREAM:
		o->stream = true;
		return true;
	case OPT_WORKERS:
		return hf_option_number(arg, 1, 32, &o->workers);
	case OPT_FIRST:
		return hf_option_number(arg, 1, 600000, &o->first_token_ms);
	case OPT_IDLE:
		return hf_option_number(arg, 1, 600000, &o->idle_ms);
	case OPT_RETRIES:
		return hf_option_number(arg, 0, 1000, &o->retries);
	case OPT_IDEMPOTENCY:
		o->idempotency_key = true;
		return true;
	case OPT_KILL:
		return hf_option_number(arg, 1, 3600000, &o->kill_ms);
	case OPT_TIMEOUT:
		return hf_option_number(arg, 1, 3600000, &o->timeout_ms);
	case OPT_REQUIRE:
		return rate(arg, &o->require);
	case OPT_QUIET:
		o->progress = HF_PROGRESS_OFF;
		return true;
	case OPT_PROGRESS:
		o->progress = HF_PROGRESS_ON;
		return true;
	default:
		return set_foreign(o, c, arg) ||
		    hf_judge_option(&o->judge, c, arg) > 0;
	}
}

/* The same of options about a gateway that is not ours. */
static const char *
inconsistent(const struct hf_run_options *o)
{
	unsigned others = (o->target != NULL) + (o->profile != NULL) + o->proxy;

	if (others > 1)
		return "one of --target, --profile and --proxy";
	if (o->dialect != NULL && strcmp(o->dialect, "openai") != 0)
		return "--dialect: openai is all that clients speak";
	if (o->bug != NULL && !o->proxy)
		return "--bug is the proxy's: with --proxy";
	if (o->bug != NULL && hf_bug_find(o->bug) == HF_BUG_COUNT)
		return "--bug: no such bug; see \"continuitybench proxy "
		       "--help\"";
	if (o->proxy && o->conversations != NULL)
		return "--proxy knows suites only, no --conversations";
	if (o->target == NULL &&
	    (o->n_header > 0 || o->n_listen > 0 || o->no_user))
		return "--header, --listen and --no-user go with --target";
	if (o->kill_ms > 0 && others > 0)
		return "--kill-workers kills what this program started: "
		       "not with --target, --profile or --proxy";
	return NULL;
}

/* What one option says about another. */
static bool
consistent(const struct hf_run_options *o)
{
	const char *wrong = hf_judge_options_wrong(&o->judge);

	if ((o->conversations == NULL) != (o->manifest == NULL))
		wrong = "--conversations and --manifest go together";
	else if (o->conversations != NULL && o->suite != NULL)
		wrong = "--suite or --conversations, not both";
	else if (o->conversations != NULL && o->size != 0)
		wrong = "--size is for suites, not for --conversations";
	else if (o->control_model != NULL && o->target == NULL)
		wrong = "--control-model goes with --target; else --systems "
			"has control";
	else if (wrong == NULL)
		wrong = inconsistent(o);
	if (wrong != NULL)
		fprintf(stderr, "continuitybench: %s\n", wrong);
	return wrong == NULL;
}

int
hf_run_options(struct hf_run_options *o, int argc, char **argv)
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
	return consistent(o) ? -1 : HF_EXIT_USAGE;
}
