/*
 * A kill campaign against a gateway.
 *
 *   campaign provider
 *       prints its port, serves until stdin ends, prints what it saw
 *   campaign play -p PORT -m PID [options]
 *       plays against the gateway on 127.0.0.1:PORT whose master is PID, and
 *       prints one JSON object
 *
 *     -t N      turns at least (1000)      -k N     kills at least (0)
 *     -c N      connections at a time (40) -K A-B   ms between kills (8-100)
 *     -w N      words of an answer (50)    -P MS    between two of them (8)
 *     -s N      every N-th reads slowly (4; 0: none)
 *     -S SEED   (1)                        -n NAME  before session names (r)
 *     -o FILE   a line for each turn: session, number, fate, stage
 */
#include <config.h>

#include "tests/crash/campaign.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench/rng.h"
#include "bench/stats.h"

#define MOST_CHILDREN 128

/* A thread of its own, so that no kill comes when callers have just done
 * something. */
struct killer {
	const struct campaign_options *o;
	struct hf_rng rng;
	_Atomic unsigned long kills;
};

static size_t
read_file(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	if (fd >= 0)
		close(fd);
	out[n < 0 ? 0 : n] = '\0';
	return n < 0 ? 0 : (size_t)n;
}

static bool
is_worker(pid_t pid)
{
	static const char role[] = "--role\0worker";
	char path[64], text[4096];
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	n = read_file(path, text, sizeof(text));
	return memmem(text, n, role, sizeof(role)) != NULL;
}

/* One of the workers there are now, ready or not. */
static bool
kill_one(struct killer *k)
{
	pid_t worker[MOST_CHILDREN];
	char path[64], text[4096], *p = text, *end;
	unsigned n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children",
	    (int)k->o->master, (int)k->o->master);
	read_file(path, text, sizeof(text));
	for (;;) {
		pid_t pid = (pid_t)strtol(p, &end, 10);

		if (end == p || n == MOST_CHILDREN)
			break;
		p = end;
		if (is_worker(pid))
			worker[n++] = pid;
	}
	return n > 0 && kill(worker[hf_rng_below(&k->rng, n)], SIGKILL) == 0;
}

static void *
killer_main(void *arg)
{
	struct killer *k = arg;
	unsigned span = k->o->kill_to_ms - k->o->kill_from_ms;

	while (atomic_load(&k->kills) < k->o->kills) {
		unsigned us = 1000 * k->o->kill_from_ms +
		    hf_rng_below(&k->rng, 1000 * span + 1);
		struct timespec ts = { us / 1000000, us % 1000000 * 1000L };

		nanosleep(&ts, NULL);
		if (kill_one(k))
			atomic_fetch_add(&k->kills, 1);
	}
	return NULL;
}

/* --- the report -------------------------------------------------------------
 */

static void
print_samples(const char *name, const struct campaign_samples *s)
{
	struct hf_summary m = hf_summarize(s->ms, s->n);

	if (s->n > 0)
		printf(",\"%s\":{\"n\":%zu,\"p50\":%.2f,\"p95\":%.2f,"
		       "\"p99\":%.2f,\"max\":%.2f}",
		    name, s->n, m.p50, m.p95, m.p99, m.max);
	free(s->ms);
}

static void
print_result(const struct campaign_result *r)
{
	const char *comma = "";

	printf("{\"turns\":%lu,\"connections\":%lu,\"kills\":%lu,"
	       "\"seconds\":%.1f",
	    r->turns, r->connections, r->kills, r->seconds);
	for (unsigned i = 0; i < N_FATES; i++)
		printf(",\"%s\":%lu", campaign_fate_name(i), r->fate[i]);
	printf(",\"at\":{");
	for (unsigned i = 0; i < N_STAGES; i++, comma = ",")
		printf("%s\"%s\":%lu", comma, campaign_stage_name(i), r->at[i]);
	printf("}");
	print_samples("first", &r->first);
	print_samples("gap", &r->gap);
	print_samples("silence", &r->silence);
	printf("}\n");
}

/* --- the command line
 * ------------------------------------------------------------ */

static int
usage(void)
{
	fprintf(stderr,
	    "usage: campaign provider\n"
	    "       campaign play -p PORT -m PID [-t TURNS] [-k KILLS] "
	    "[-c CONNECTIONS]\n"
	    "           [-K A-B] [-w WORDS] [-P MS] [-s N] [-S SEED] "
	    "[-n NAME] [-o FILE]\n");
	return 2;
}

static bool
set_option(struct campaign_options *o, int c, const char *v)
{
	unsigned long n = strtoul(v, NULL, 10);

	switch (c) {
	case 'p':
		o->port = (unsigned short)n;
		return n > 0 && n < 65536;
	case 'm':
		o->master = (pid_t)n;
		return n > 1;
	case 't':
		o->turns = n;
		return true;
	case 'k':
		o->kills = n;
		return true;
	case 'c':
		o->connections = (unsigned)n;
		return n > 0;
	case 'K':
		return sscanf(v, "%u-%u", &o->kill_from_ms, &o->kill_to_ms) ==
		    2 &&
		    o->kill_from_ms <= o->kill_to_ms;
	case 'w':
		o->words = (unsigned)n;
		return n > 0;
	case 'P':
		o->pace_ms = (unsigned)n;
		return true;
	case 's':
		o->slow = (unsigned)n;
		return true;
	case 'S':
		o->seed = n;
		return true;
	case 'n':
		o->prefix = v;
		return true;
	case 'o':
		o->out = v;
		return true;
	default:
		return false;
	}
}

int
main(int argc, char **argv)
{
	struct campaign_options o = { .prefix = "r",
		.turns = 1000,
		.connections = 40,
		.words = 50,
		.pace_ms = 8,
		.slow = 4,
		.kill_from_ms = 8,
		.kill_to_ms = 100,
		.seed = 1 };
	struct campaign_result r;
	struct killer k = { .o = &o };
	pthread_t thread;
	int c;

	signal(SIGPIPE, SIG_IGN);
	if (argc == 2 && strcmp(argv[1], "provider") == 0)
		return campaign_provider();
	if (argc < 2 || strcmp(argv[1], "play") != 0)
		return usage();
	optind = 2;
	while ((c = getopt(argc, argv, "p:m:t:k:c:K:w:P:s:S:n:o:")) != -1)
		if (!set_option(&o, c, optarg))
			return usage();
	if (optind != argc || o.port == 0 || (o.kills > 0 && o.master == 0))
		return usage();
	hf_rng_init(&k.rng, o.seed + 1);
	if (pthread_create(&thread, NULL, killer_main, &k) != 0)
		return 1;
	campaign_play(&o, &k.kills, &r);
	pthread_join(thread, NULL);
	print_result(&r);
	return 0;
}
