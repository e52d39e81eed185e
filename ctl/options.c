/*
 * The command line.  Options may stand anywhere; the other words are the
 * command and its operand.
 */
#include <config.h>

#include "ctl/ctl.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/verbs.h"

static const struct {
	const char *verb, *words, *help;
	unsigned flags; /* enum hf_verb_flags */
} verbs[] = {
#define HF_VERB(verb, words, flags, help) { verb, words, help, flags },
#include "base/verbs.def"
#undef HF_VERB
};

const struct hf_ctl_command hf_ctl_commands[] = {
	{ "status", NULL, NULL, 0, 0, HF_CTL_DOC_STATUS },
	{ "check", NULL, NULL, 0, 0, HF_CTL_DOC_CHECK },
	{ "sessions.list", NULL, NULL,
	    HF_CTL_TENANT | HF_CTL_LIMIT | HF_CTL_BEFORE, 0,
	    HF_CTL_DOC_SESSIONS },
	{ "sessions.show", "key", "KEY",
	    HF_CTL_TENANT | HF_CTL_CONTENTS | HF_CTL_ATTEMPTS, 0,
	    HF_CTL_DOC_SESSION },
	{ "timeline", "key", "KEY [TURN]", HF_CTL_TENANT, 0,
	    HF_CTL_DOC_TIMELINE, "turn" },
	{ "sessions.verify", "key", "[KEY]", HF_CTL_TENANT | HF_CTL_ALL, 0,
	    HF_CTL_DOC_VERIFY },
	{ "locks.list", NULL, NULL, 0, 0, HF_CTL_DOC_LOCKS },
	{ "keys.create", NULL, NULL, HF_CTL_TENANT | HF_CTL_LABEL,
	    HF_CTL_TENANT, HF_CTL_DOC_KEY },
	{ "keys.list", NULL, NULL, 0, 0, HF_CTL_DOC_KEYS },
	{ "keys.revoke", "prefix", "PREFIX", 0, 0, HF_CTL_DOC_KEY },
	{ "providers.list", NULL, NULL, HF_CTL_WATCH, 0, HF_CTL_DOC_PROVIDERS },
	{ "providers.show", "name", "NAME", HF_CTL_WATCH, 0,
	    HF_CTL_DOC_PROVIDER },
	{ "providers.test", "name", "NAME", 0, 0, HF_CTL_DOC_TESTS },
	{ "providers.disable", "name", "NAME", 0, 0, HF_CTL_DOC_PROVIDERS },
	{ "providers.enable", "name", "NAME", 0, 0, HF_CTL_DOC_PROVIDERS },
	{ "providers.trip", "name", "NAME", HF_CTL_FOR, 0,
	    HF_CTL_DOC_PROVIDERS },
	{ "providers.reset", "name", "NAME", 0, 0, HF_CTL_DOC_PROVIDERS },
	{ "failovers.list", NULL, NULL,
	    HF_CTL_SINCE | HF_CTL_LIMIT | HF_CTL_BEFORE | HF_CTL_WATCH, 0,
	    HF_CTL_DOC_FAILOVERS },
	{ "failovers.summary", NULL, NULL, HF_CTL_SINCE | HF_CTL_WATCH, 0,
	    HF_CTL_DOC_FAILOVER_SUMMARY },
	{ "config.check", "file", "[FILE]", 0, 0, HF_CTL_DOC_WARNINGS },
	{ "config.show", NULL, NULL, 0, 0, HF_CTL_DOC_CONFIG },
	{ "config.explain", "key", "KEY", 0, 0, HF_CTL_DOC_EXPLAIN },
	{ "explain.errors", NULL, NULL, 0, 0, HF_CTL_DOC_ERRORS },
	{ "reload", NULL, NULL, 0, 0, HF_CTL_DOC_RELOAD },
	{ "drain", NULL, NULL, HF_CTL_WAIT, 0, HF_CTL_DOC_DRAIN },
};
const unsigned hf_ctl_n_commands = hf_countof(hf_ctl_commands);

enum {
	OPT_NO_HEADERS = 256,
	OPT_TIMEOUT,
	OPT_HELP,
	OPT_VERSION,
	OPT_OFFLINE,
	OPT_DATABASE,
	OPT_KEY_FILE,
	OPT_COMMAND = 512 /* + enum hf_ctl_opt */
};

static const struct option options[] = { { "socket", required_argument, NULL,
					     's' },
	{ "config", required_argument, NULL, 'c' },
	{ "output", required_argument, NULL, 'o' },
	{ "no-headers", no_argument, NULL, OPT_NO_HEADERS },
	{ "quiet", no_argument, NULL, 'q' },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "offline", no_argument, NULL, OPT_OFFLINE },
	{ "database", required_argument, NULL, OPT_DATABASE },
	{ "key-file", required_argument, NULL, OPT_KEY_FILE },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "tenant", required_argument, NULL, OPT_COMMAND + HF_CTL_TENANT },
	{ "label", required_argument, NULL, OPT_COMMAND + HF_CTL_LABEL },
	{ "limit", required_argument, NULL, OPT_COMMAND + HF_CTL_LIMIT },
	{ "before", required_argument, NULL, OPT_COMMAND + HF_CTL_BEFORE },
	{ "contents", no_argument, NULL, OPT_COMMAND + HF_CTL_CONTENTS },
	{ "attempts", no_argument, NULL, OPT_COMMAND + HF_CTL_ATTEMPTS },
	{ "all", no_argument, NULL, OPT_COMMAND + HF_CTL_ALL },
	{ "wait", required_argument, NULL, OPT_COMMAND + HF_CTL_WAIT },
	{ "since", required_argument, NULL, OPT_COMMAND + HF_CTL_SINCE },
	{ "for", required_argument, NULL, OPT_COMMAND + HF_CTL_FOR },
	{ "watch", required_argument, NULL, OPT_COMMAND + HF_CTL_WATCH },
	{ NULL, 0, NULL, 0 } };

static bool
integer(const char *z, int64_t min, int64_t max, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(z, &end, 10);
	return errno == 0 && end != z && *end == '\0' && *z >= '0' &&
	    *z <= '9' && *out >= min && *out <= max;
}

/* "90", "15m", "12h", "7d": seconds. */
static bool
duration(const char *z, int64_t max, int64_t *out)
{
	static const struct {
		char unit;
		int64_t s;
	} unit[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	size_t n = strspn(z, "0123456789");
	char digits[16];

	if (n == 0 || n >= sizeof(digits))
		return false;
	memcpy(digits, z, n);
	digits[n] = '\0';
	if (z[n] == '\0')
		return integer(digits, 1, max, out);
	for (size_t i = 0; i < hf_countof(unit); i++) {
		if (z[n] != unit[i].unit || z[n + 1] != '\0')
			continue;
		if (!integer(digits, 1, max / unit[i].s, out))
			return false;
		*out *= unit[i].s;
		return true;
	}
	return false;
}

/* Options whose argument is a time. */
static int
time_option(struct hf_ctl *ctl, unsigned opt, const char *arg, char *text)
{
	static const int64_t most = 100 * 366 * (int64_t)86400;
	int64_t *out = opt == HF_CTL_SINCE ? &ctl->since_s :
	    opt == HF_CTL_FOR		   ? &ctl->for_s :
					     &ctl->watch_s;

	if (duration(arg, opt == HF_CTL_SINCE ? most : 86400, out))
		return 0;
	snprintf(text, HF_CTL_TEXT,
	    "--%s: expected a time such as 90s, 15m, 12h%s",
	    opt == HF_CTL_SINCE	  ? "since" :
		opt == HF_CTL_FOR ? "for" :
				    "watch",
	    opt == HF_CTL_SINCE ? " or 7d" : ", at most 24h");
	return HF_EXIT_USAGE;
}

static int
command_option(struct hf_ctl *ctl, unsigned opt, const char *arg, char *text)
{
	ctl->given |= opt;
	switch ((enum hf_ctl_opt)opt) {
	case HF_CTL_TENANT:
		ctl->tenant = arg;
		return 0;
	case HF_CTL_LABEL:
		ctl->label = arg;
		return 0;
	case HF_CTL_BEFORE:
		ctl->before = arg;
		return 0;
	case HF_CTL_LIMIT:
		if (integer(arg, 1, 10000, &ctl->limit))
			return 0;
		snprintf(text, HF_CTL_TEXT,
		    "--limit: expected a number, 1 to 10000");
		return HF_EXIT_USAGE;
	case HF_CTL_WAIT:
		if (integer(arg, 1, 86400, &ctl->wait_s))
			return 0;
		snprintf(
		    text, HF_CTL_TEXT, "--wait: expected seconds, 1 to 86400");
		return HF_EXIT_USAGE;
	case HF_CTL_SINCE:
	case HF_CTL_FOR:
	case HF_CTL_WATCH:
		return time_option(ctl, opt, arg, text);
	case HF_CTL_CONTENTS:
	case HF_CTL_ATTEMPTS:
	case HF_CTL_ALL:
		return 0;
	}
	return HF_EXIT_USAGE;
}

static int
global_option(struct hf_ctl *ctl, int c, const char *arg, char *text)
{
	int64_t n;

	switch (c) {
	case 's':
		ctl->socket = arg;
		return 0;
	case 'c':
		ctl->config = arg;
		return 0;
	case 'o':
		ctl->json = strcmp(arg, "json") == 0;
		if (ctl->json || strcmp(arg, "table") == 0)
			return 0;
		snprintf(text, HF_CTL_TEXT, "-o: expected table or json");
		return HF_EXIT_USAGE;
	case 'q':
		ctl->quiet = true;
		return 0;
	case OPT_NO_HEADERS:
		ctl->no_headers = true;
		return 0;
	case OPT_TIMEOUT:
		if (!integer(arg, 1, 86400000, &n)) {
			snprintf(text, HF_CTL_TEXT,
			    "--timeout: expected "
			    "milliseconds, 1 to 86400000");
			return HF_EXIT_USAGE;
		}
		ctl->timeout_ms = (int)n;
		return 0;
	case OPT_OFFLINE:
		ctl->offline = true;
		return 0;
	case OPT_DATABASE:
		ctl->database = arg;
		return 0;
	case OPT_KEY_FILE:
		ctl->key_file = arg;
		return 0;
	case OPT_HELP:
		ctl->help = true;
		return 0;
	case OPT_VERSION:
		ctl->version = true;
		return 0;
	default:
		snprintf(text, HF_CTL_TEXT,
		    "unknown option, or one without "
		    "its argument; see holdfastctl --help");
		return HF_EXIT_USAGE;
	}
}

/* How many of the words on the command line are those of this command; 0 if
 * they are not. */
static int
matches(const char *words, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		size_t size = strcspn(words, " ");

		if (strlen(argv[i]) != size ||
		    memcmp(argv[i], words, size) != 0)
			return 0;
		if (words[size] == '\0')
			return i + 1;
		words += size + 1;
	}
	return 0;
}

static const struct hf_ctl_command *
command_of(const char *verb)
{
	for (unsigned i = 0; i < hf_ctl_n_commands; i++)
		if (strcmp(hf_ctl_commands[i].verb, verb) == 0)
			return &hf_ctl_commands[i];
	return NULL;
}

static const char *
option_name(unsigned bit)
{
	for (const struct option *o = options; o->name != NULL; o++)
		if (o->val == OPT_COMMAND + (int)bit)
			return o->name;
	return "?";
}

static int
check_given(const struct hf_ctl *ctl, const char *words, char *text)
{
	for (unsigned bit = 1; bit <= HF_CTL_LAST; bit <<= 1) {
		if ((ctl->given & bit) != 0 &&
		    (ctl->command->allowed & bit) == 0) {
			snprintf(text, HF_CTL_TEXT, "%s takes no --%s", words,
			    option_name(bit));
			return HF_EXIT_USAGE;
		}
		if ((ctl->given & bit) == 0 &&
		    (ctl->command->required & bit) != 0) {
			snprintf(text, HF_CTL_TEXT, "%s needs --%s", words,
			    option_name(bit));
			return HF_EXIT_USAGE;
		}
	}
	return 0;
}

/* What rules out what. */
static int
check_together(const struct hf_ctl *ctl, const char *words, char *text)
{
	bool all = (ctl->given & HF_CTL_ALL) != 0;

	if (ctl->offline && (ctl->flags & HF_VERB_OFFLINE) == 0)
		snprintf(
		    text, HF_CTL_TEXT, "%s cannot be done --offline", words);
	else if (!ctl->offline &&
	    (ctl->database != NULL || ctl->key_file != NULL))
		snprintf(text, HF_CTL_TEXT,
		    "--database and --key-file need "
		    "--offline");
	else if (ctl->offline && ctl->socket != NULL)
		snprintf(text, HF_CTL_TEXT, "--offline asks no --socket");
	else if ((ctl->command->allowed & HF_CTL_ALL) != 0 &&
	    all == (ctl->operand != NULL))
		snprintf(
		    text, HF_CTL_TEXT, "%s needs one session, or --all", words);
	else if (all && ctl->tenant != NULL)
		snprintf(text, HF_CTL_TEXT, "--tenant goes with one session");
	else
		return 0;
	return HF_EXIT_USAGE;
}

static int
command(struct hf_ctl *ctl, int argc, char **argv, char *text)
{
	const char *words = NULL;
	int n = 0, most, least, rc;

	for (size_t i = 0; i < hf_countof(verbs) && n == 0; i++) {
		n = matches(verbs[i].words, argc, argv);
		if (n > 0) {
			ctl->command = command_of(verbs[i].verb);
			ctl->flags = verbs[i].flags;
			words = verbs[i].words;
		}
	}
	if (ctl->command == NULL) {
		snprintf(text, HF_CTL_TEXT, "%s; see holdfastctl --help",
		    argc == 0 ? "a command is missing" : "unknown command");
		return HF_EXIT_USAGE;
	}
	least = ctl->command->operand == NULL || ctl->command->shown[0] == '[' ?
	    0 :
	    1;
	most = ctl->command->second != NULL ? 2 :
	    ctl->command->operand != NULL   ? 1 :
					      0;
	if (argc - n > most || argc - n < least) {
		snprintf(text, HF_CTL_TEXT,
		    most == 0	   ? "%s takes no other word" :
			most == 2  ? "%s needs one or two words after it" :
			least == 0 ? "%s takes one word after it" :
				     "%s needs one word after it",
		    words);
		return HF_EXIT_USAGE;
	}
	if (argc > n)
		ctl->operand = argv[n];
	if (argc > n + 1)
		ctl->second = argv[n + 1];
	rc = check_given(ctl, words, text);
	return rc != 0 ? rc : check_together(ctl, words, text);
}

int
hf_ctl_options(
    struct hf_ctl *ctl, int argc, char **argv, char text[HF_CTL_TEXT])
{
	int c, rc;

	*ctl = (struct hf_ctl){ 0 };
	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "s:c:o:q", options, NULL)) != -1) {
		rc = c > OPT_COMMAND ?
		    command_option(
			ctl, (unsigned)(c - OPT_COMMAND), optarg, text) :
		    global_option(ctl, c, optarg, text);
		if (rc != 0)
			return rc;
	}
	if (ctl->help || ctl->version)
		return 0;
	return command(ctl, argc - optind, argv + optind, text);
}

static void
usage_of(const struct hf_ctl_command *k)
{
	if (k->operand != NULL)
		printf(" %s", k->shown);
	for (const struct option *o = options; o->name != NULL; o++) {
		unsigned bit =
		    o->val < OPT_COMMAND ? 0 : (unsigned)(o->val - OPT_COMMAND);

		if ((k->allowed & bit) != 0)
			printf(
			    (k->required & bit) != 0 ? " --%s%s" : " [--%s%s]",
			    o->name, o->has_arg == no_argument ? "" : " ...");
	}
}

void
hf_ctl_usage(void)
{
	printf(
	    "usage: holdfastctl [-s SOCKET | -c CONFIG] [-o table|json] "
	    "[-q] [--no-headers]\n"
	    "                   [--timeout MS] COMMAND [OPTIONS]\n"
	    "       holdfastctl --offline [-c CONFIG | --database PATH "
	    "[--key-file PATH]]\n"
	    "                   [-o table|json] [-q] [--no-headers] COMMAND* "
	    "[OPTIONS]\n\n"
	    "Commands (those with * need no daemon with --offline):\n");
	for (size_t i = 0; i < hf_countof(verbs); i++) {
		printf("  %s", verbs[i].words);
		usage_of(command_of(verbs[i].verb));
		printf("%s\n      %s\n",
		    (verbs[i].flags & HF_VERB_OFFLINE) != 0 ? " *" : "",
		    verbs[i].help);
	}
	printf("\nExit codes: 0 ok, 1 failed or nothing found, 2 usage, 3 not "
	       "found or ambiguous,\n4 daemon unreachable, 5 permission, 6 "
	       "conflict, 7 data corrupt, 8 timeout,\n75 try later, 78 bad "
	       "configuration.  More in holdfastctl(1).\n");
}
