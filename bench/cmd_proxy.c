/*
 * "continuitybench proxy": the reference proxy, with a bug or without, for
 * "continuitybench run --proxy" (which starts this as a child) and by hand.
 */
#include <config.h>

#include "bench/cmd.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include <event2/event.h>

#include "bench/option.h"
#include "bench/proxy.h"

static const char usage[] =
    "usage: continuitybench proxy --provider NAME=URL... [options]\n"
    "Serve the reference proxy until SIGTERM: a small gateway with a memory,\n"
    "for testing the benchmark.  It knows a suite's routes and asks its\n"
    "providers, which run already.  Prints \"proxy URL\", then \"ready\".\n"
    "\n"
    "  --provider NAME=URL  a listener of the suite, \"http://ADDR:PORT\"\n"
    "  --suite NAME         default paper; with --seed N, --size N, "
    "--knobs ...\n"
    "  --listen ADDR:PORT   default: a free port of 127.0.0.1\n"
    "  --patience-ms N      with a target that may fail, default 500\n"
    "  --journal FILE       write each turn down there, and go on from what "
    "it holds;\n"
    "                       default: remember in memory only\n"
    "  --bug NAME           have this bug:\n";

struct options {
	const char *suite, *knobs, *listen, *journal;
	const char *provider[HF_MAX_LISTENERS];
	unsigned n_provider;
	unsigned long seed, size, patience_ms;
	enum hf_bug bug;
	bool with_parent;
};

enum {
	OPT_SUITE = 256,
	OPT_SEED,
	OPT_SIZE,
	OPT_LISTEN,
	OPT_PROVIDER,
	OPT_PATIENCE,
	OPT_JOURNAL,
	OPT_KNOBS,
	OPT_BUG,
	OPT_WITH_PARENT,
	OPT_HELP
};

static const struct option longopts[] = { { "suite", required_argument, NULL,
					      OPT_SUITE },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "provider", required_argument, NULL, OPT_PROVIDER },
	{ "patience-ms", required_argument, NULL, OPT_PATIENCE },
	{ "journal", required_argument, NULL, OPT_JOURNAL },
	{ "knobs", required_argument, NULL, OPT_KNOBS },
	{ "bug", required_argument, NULL, OPT_BUG },
	{ "with-parent", no_argument, NULL, OPT_WITH_PARENT },
	{ "help", no_argument, NULL, OPT_HELP }, { 0 } };

static void
put_usage(FILE *f)
{
	fputs(usage, f);
	for (unsigned i = HF_BUG_NONE + 1; i < HF_BUG_COUNT; i++)
		fprintf(
		    f, "      %-18s %s\n", hf_bugs[i].name, hf_bugs[i].what);
	fputs("  --with-parent        end when the parent process ends\n", f);
}

static bool
set_option(struct options *o, int c, const char *arg)
{
	switch (c) {
	case OPT_SUITE:
		o->suite = arg;
		return true;
	case OPT_SEED:
		return hf_option_number(arg, 0, UINT32_MAX, &o->seed);
	case OPT_SIZE:
		return hf_option_number(arg, 0, UINT32_MAX, &o->size);
	case OPT_LISTEN:
		o->listen = arg;
		return true;
	case OPT_PROVIDER:
		if (o->n_provider == HF_MAX_LISTENERS)
			return false;
		o->provider[o->n_provider++] = arg;
		return true;
	case OPT_PATIENCE:
		return hf_option_number(arg, 0, UINT32_MAX, &o->patience_ms);
	case OPT_JOURNAL:
		o->journal = arg;
		return true;
	case OPT_KNOBS:
		o->knobs = arg;
		return true;
	case OPT_BUG:
		o->bug = hf_bug_find(arg);
		return o->bug != HF_BUG_COUNT;
	case OPT_WITH_PARENT:
		o->with_parent = true;
		return true;
	default:
		return false;
	}
}

static void
on_signal(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(arg);
}

/* False: not all of the suite's listeners, or others. */
static bool
choose_urls(struct hf_proxy_conf *c, const struct options *o)
{
	for (unsigned i = 0; i < o->n_provider; i++) {
		const char *eq = strchr(o->provider[i], '=');
		int at = eq == NULL ? -1 :
				      hf_suite_listener(c->suite,
					  (struct hf_str){ o->provider[i],
					      (size_t)(eq - o->provider[i]) });

		if (at < 0)
			return false;
		c->url[at] = eq + 1;
	}
	for (unsigned i = 0; i < c->suite->n_listener; i++)
		if (c->url[i] == NULL)
			return false;
	return true;
}

static int
serve(const struct options *o, struct hf_proxy_conf *c)
{
	const char *at = o->listen == NULL ? "127.0.0.1:0" : o->listen;
	struct event *term, *intr;
	struct hf_proxy *p;
	struct hf_error e;
	unsigned port;
	int rc = HF_EXIT_OK;

	c->base = event_base_new();
	term = evsignal_new(c->base, SIGTERM, on_signal, c->base);
	intr = evsignal_new(c->base, SIGINT, on_signal, c->base);
	event_add(term, NULL);
	event_add(intr, NULL);
	if (hf_proxy_new(&p, c, at, &port, &e) != 0) {
		fprintf(stderr, "continuitybench: %s\n", e.text);
		rc = HF_EXIT_UNREACHABLE;
	} else {
		printf("proxy http://%.*s:%u/v1\nready\n",
		    (int)(strrchr(at, ':') - at), at, port);
		fflush(stdout);
		event_base_dispatch(c->base);
	}
	hf_proxy_free(p);
	event_free(term);
	event_free(intr);
	event_base_free(c->base);
	return rc;
}

int
hf_cmd_proxy(int argc, char **argv)
{
	struct options o = { .suite = "paper", .seed = 42, .patience_ms = 500 };
	struct hf_proxy_conf c = { 0 };
	struct hf_suite *suite;
	struct hf_error e = { 0 };
	int opt, rc;

	while ((opt = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		if (opt == OPT_HELP) {
			put_usage(stdout);
			return HF_EXIT_OK;
		}
		if (!set_option(&o, opt, optarg)) {
			put_usage(stderr);
			return HF_EXIT_USAGE;
		}
	}
	if (o.with_parent)
		prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGPIPE, SIG_IGN);
	suite = hf_suite_make_with(
	    o.suite, o.seed, (unsigned)o.size, o.knobs, true, &e);
	c.suite = suite;
	c.journal = o.journal;
	c.patience_ms = (unsigned)o.patience_ms;
	c.bug = o.bug;
	if (suite == NULL || optind != argc || !choose_urls(&c, &o)) {
		fprintf(stderr, "continuitybench: proxy: %s\n",
		    suite == NULL ? e.text : "not the URLs of its providers");
		hf_suite_free(suite);
		return HF_EXIT_USAGE;
	}
	rc = serve(&o, &c);
	hf_suite_free(suite);
	return rc;
}
