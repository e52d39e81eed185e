/*
 * "continuitybench providers": the faithful providers alone, for the runner
 * (which starts this as a child), for tests and for other gateways.
 */
#include <config.h>

#include "bench/cmd.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <event2/event.h>

#include "bench/option.h"
#include "bench/providers.h"

static const char usage[] =
    "usage: continuitybench providers [options]\n"
    "Serve the faithful providers until SIGTERM.  Each listener speaks the\n"
    "openai dialect at /v1/chat/completions, anthropic at /v1/messages and\n"
    "gemini at /v1beta/models/MODEL:generateContent (and the same streamed).\n"
    "Prints \"provider NAME http://ADDRESS:PORT\" for each, then \"ready\".\n"
    "\n"
    "  --listen NAME=ADDR:PORT  repeat; default: those of the suite "
    "(primary,\n"
    "                           fallback, ...) on free ports of 127.0.0.1\n"
    "  --suite NAME             whose failures to produce (default paper)\n"
    "  --seed N                 of the suite (default 42)\n"
    "  --size N                 of the suite (default: its own)\n"
    "  --knobs NAME=N,...       of the suite\n"
    "  --conversations FILE     a published set instead of a suite; its "
    "failures\n"
    "                           are in the file of --manifest\n"
    "  --manifest FILE          failures from a file instead of the suite\n"
    "  --no-faults              never fail\n"
    "  --log FILE               append each payload as a line of JSON\n"
    "  --chunk-ms N             pause between deltas of a stream (default 0)\n"
    "  --alarm-fd N             write where alarms of the manifest are there\n"
    "  --with-parent            end when the parent process ends\n";

struct options {
	const char *listen[8];
	unsigned n_listen;
	const char *suite, *conversations, *manifest, *log, *knobs;
	unsigned long seed, size, chunk_ms, alarm_fd;
	bool no_faults, with_parent;
};

enum {
	OPT_LISTEN = 256,
	OPT_SUITE,
	OPT_SEED,
	OPT_SIZE,
	OPT_KNOBS,
	OPT_MANIFEST,
	OPT_NO_FAULTS,
	OPT_CONVERSATIONS,
	OPT_LOG,
	OPT_CHUNK_MS,
	OPT_ALARM,
	OPT_WITH_PARENT,
	OPT_HELP
};

static const struct option longopts[] = { { "listen", required_argument, NULL,
					      OPT_LISTEN },
	{ "suite", required_argument, NULL, OPT_SUITE },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "knobs", required_argument, NULL, OPT_KNOBS },
	{ "conversations", required_argument, NULL, OPT_CONVERSATIONS },
	{ "manifest", required_argument, NULL, OPT_MANIFEST },
	{ "no-faults", no_argument, NULL, OPT_NO_FAULTS },
	{ "log", required_argument, NULL, OPT_LOG },
	{ "chunk-ms", required_argument, NULL, OPT_CHUNK_MS },
	{ "alarm-fd", required_argument, NULL, OPT_ALARM },
	{ "with-parent", no_argument, NULL, OPT_WITH_PARENT },
	{ "help", no_argument, NULL, OPT_HELP }, { 0 } };

/* -1: go on; else the exit code. */
static int
parse(struct options *o, int argc, char **argv)
{
	bool ok = true;
	int c;

	while (ok && (c = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		switch (c) {
		case OPT_LISTEN:
			ok = o->n_listen < hf_countof(o->listen);
			if (ok)
				o->listen[o->n_listen++] = optarg;
			break;
		case OPT_SUITE:
			o->suite = optarg;
			break;
		case OPT_SEED:
			ok = hf_option_number(optarg, 0, ULONG_MAX, &o->seed);
			break;
		case OPT_SIZE:
			ok = hf_option_number(optarg, 0, UINT32_MAX, &o->size);
			break;
		case OPT_KNOBS:
			o->knobs = optarg;
			break;
		case OPT_CONVERSATIONS:
			o->conversations = optarg;
			break;
		case OPT_MANIFEST:
			o->manifest = optarg;
			break;
		case OPT_NO_FAULTS:
			o->no_faults = true;
			break;
		case OPT_LOG:
			o->log = optarg;
			break;
		case OPT_CHUNK_MS:
			ok = hf_option_number(
			    optarg, 0, ULONG_MAX, &o->chunk_ms);
			break;
		case OPT_ALARM:
			ok = hf_option_number(optarg, 3, 1023, &o->alarm_fd);
			break;
		case OPT_WITH_PARENT:
			o->with_parent = true;
			break;
		case OPT_HELP:
			fputs(usage, stdout);
			return HF_EXIT_OK;
		default:
			ok = false;
			break;
		}
	}
	if (!ok || optind != argc) {
		fputs(usage, stderr);
		return HF_EXIT_USAGE;
	}
	return -1;
}

static void
on_signal(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(arg);
}

static int
listen_one(struct hf_providers *p, const char *spec)
{
	const char *eq = strchr(spec, '='), *colon = strrchr(spec, ':');
	struct hf_error e;
	unsigned port;

	if (hf_providers_listen(p, spec, &port, &e) != 0) {
		fprintf(stderr, "continuitybench: %s\n", e.text);
		return e.code == HF_EINVAL ? HF_EXIT_USAGE :
					     HF_EXIT_UNREACHABLE;
	}
	printf("provider %.*s http://%.*s:%u\n", (int)(eq - spec), spec,
	    (int)(colon - eq - 1), eq + 1, port);
	return 0;
}

static int
listen_all(struct hf_providers *p, const struct options *o,
    const struct hf_suite *suite)
{
	char spec[40];
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < o->n_listen; i++)
		rc = listen_one(p, o->listen[i]);
	for (unsigned i = 0;
	     rc == 0 && o->n_listen == 0 && i < suite->n_listener; i++) {
		snprintf(spec, sizeof(spec), "%s=127.0.0.1:0",
		    suite->listener[i].name);
		rc = listen_one(p, spec);
	}
	if (rc != 0)
		return rc;
	puts("ready");
	fflush(stdout);
	return 0;
}

static int
serve(const struct options *o, const struct hf_suite *suite,
    const struct hf_manifest *manifest, FILE *log)
{
	struct hf_providers_conf conf = { .suite = suite,
		.manifest = manifest,
		.log = log,
		.chunk_ms = (unsigned)o->chunk_ms,
		.alarm_fd = (int)o->alarm_fd };
	struct event *term, *intr;
	struct hf_providers *p;
	int rc;

	conf.base = event_base_new();
	term = evsignal_new(conf.base, SIGTERM, on_signal, conf.base);
	intr = evsignal_new(conf.base, SIGINT, on_signal, conf.base);
	event_add(term, NULL);
	event_add(intr, NULL);
	p = hf_providers_new(&conf);
	rc = listen_all(p, o, suite);
	if (rc == 0)
		event_base_dispatch(conf.base);
	hf_providers_free(p);
	event_free(term);
	event_free(intr);
	event_base_free(conf.base);
	return rc;
}

static int
prepare(const struct options *o, const struct hf_suite *suite,
    struct hf_manifest *m, FILE **log)
{
	struct hf_error e;

	if (o->manifest != NULL && o->conversations == NULL) {
		if (hf_manifest_load(m, o->manifest, &e) != 0) {
			fprintf(stderr, "continuitybench: %s\n", e.text);
			return HF_EXIT_USAGE;
		}
	} else if (!o->no_faults) {
		hf_suite_manifest(suite, m);
	}
	if (o->log != NULL) {
		*log = fopen(o->log, "ae");
		if (*log == NULL) {
			fprintf(stderr, "continuitybench: %s: %s\n", o->log,
			    strerror(errno));
			return HF_EXIT_USAGE;
		}
	}
	return 0;
}

/* NULL: told why. */
static struct hf_suite *
choose_suite(const struct options *o)
{
	struct hf_suite *s = NULL;
	struct hf_error e;

	if (o->conversations == NULL) {
		s = hf_suite_make_with(
		    o->suite, o->seed, (unsigned)o->size, o->knobs, true, &e);
		if (s == NULL)
			fprintf(stderr, "continuitybench: %s\n", e.text);
	} else if (o->manifest == NULL) {
		fputs("continuitybench: --conversations needs --manifest\n",
		    stderr);
	} else if (hf_suite_published(
		       &s, o->conversations, o->manifest, o->seed, &e) != 0) {
		fprintf(stderr, "continuitybench: %s\n", e.text);
	}
	return s;
}

int
hf_cmd_providers(int argc, char **argv)
{
	struct options o = { .suite = "paper", .seed = 42 };
	struct hf_suite *suite;
	struct hf_manifest manifest;
	FILE *log = NULL;
	int rc = parse(&o, argc, argv);

	if (rc >= 0)
		return rc;
	if (o.with_parent)
		prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGPIPE, SIG_IGN);
	suite = choose_suite(&o);
	if (suite == NULL)
		return HF_EXIT_USAGE;
	hf_manifest_init(&manifest);
	rc = prepare(&o, suite, &manifest, &log);
	if (rc == 0)
		rc = serve(&o, suite, &manifest, log);
	if (log != NULL)
		fclose(log);
	hf_manifest_free(&manifest);
	hf_suite_free(suite);
	return rc;
}
