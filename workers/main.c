/*
 * holdfast: the command line.  With --role (given by the master only) this
 * process is a keeper or a worker, else it checks the configuration or
 * becomes the master.
 */
#include <config.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <string.h>

#include "base/conf.h"
#include "base/exits.h"
#include "workers/master.h"
#include "workers/proc.h"

#define DEFAULT_CONFIG HF_SYSCONFDIR "/holdfast/holdfast.conf"

enum {
	OPT_ROLE = 256,
	OPT_SLOT,
	OPT_FIRST,
	OPT_DATABASE,
	OPT_KEY_FILE,
	OPT_KEY_CREDENTIAL,
	OPT_LISTEN,
	OPT_HOLD,
	OPT_HELP
};

static const struct option longopts[] = { { "config", required_argument, NULL,
					      'c' },
	{ "test", no_argument, NULL, 't' },
	{ "version", no_argument, NULL, 'v' },
	{ "foreground", no_argument, NULL, 'f' },
	{ "help", no_argument, NULL, OPT_HELP },
	/* From the master to its children. */
	{ "role", required_argument, NULL, OPT_ROLE },
	{ "slot", required_argument, NULL, OPT_SLOT },
	{ "first", no_argument, NULL, OPT_FIRST },
	{ "database", required_argument, NULL, OPT_DATABASE },
	{ "key-file", required_argument, NULL, OPT_KEY_FILE },
	{ "key-credential", required_argument, NULL, OPT_KEY_CREDENTIAL },
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "hold", no_argument, NULL, OPT_HOLD }, { NULL, 0, NULL, 0 } };

static const char usage[] =
    "usage: holdfast [-c FILE] [-f]   serve, in the foreground\n"
    "       holdfast [-c FILE] -t     check the configuration and exit\n"
    "       holdfast -v               print the version\n"
    "Default FILE: " DEFAULT_CONFIG "\n";

struct cmdline {
	struct hf_proc_opts role;
	bool has_role, test, version, help;
};

static bool
parse_role(int c, struct hf_proc_opts *r)
{
	switch (c) {
	case OPT_ROLE:
		r->keeper = strcmp(optarg, "keeper") == 0;
		return r->keeper || strcmp(optarg, "worker") == 0;
	case OPT_SLOT:
		r->slot = (unsigned)strtoul(optarg, NULL, 10);
		return r->slot < HF_SHM_SLOTS;
	case OPT_FIRST:
		r->first = true;
		return true;
	case OPT_DATABASE:
		r->database = optarg;
		return true;
	case OPT_KEY_FILE:
		r->key_file = optarg;
		return true;
	case OPT_KEY_CREDENTIAL:
		r->key_credential = optarg;
		return true;
	case OPT_LISTEN:
		if (r->n_listen == HF_LISTEN_MAX)
			return false;
		r->listen[r->n_listen++] = optarg;
		return true;
	case OPT_HOLD:
		r->hold = true;
		return true;
	default:
		return false;
	}
}

static bool
parse(int argc, char **argv, struct cmdline *cl)
{
	int c;

	cl->role.config = DEFAULT_CONFIG;
	while ((c = getopt_long(argc, argv, "c:tvf", longopts, NULL)) != -1) {
		switch (c) {
		case 'c':
			cl->role.config = optarg;
			break;
		case 't':
			cl->test = true;
			break;
		case 'v':
			cl->version = true;
			break;
		case 'f': /* it always does */
			break;
		case OPT_HELP:
			cl->help = true;
			break;
		default:
			if (!parse_role(c, &cl->role))
				return false;
			cl->has_role |= c == OPT_ROLE;
			break;
		}
	}
	return optind == argc &&
	    (!cl->has_role ||
		(cl->role.database != NULL &&
		    cl->role.keeper == (cl->role.slot == HF_SHM_KEEPER)));
}

static int
check_config(const char *path)
{
	struct hf_error e = { 0 };
	struct hf_conf *conf;

	if (hf_conf_load(path, &conf, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		return HF_EXIT_CONFIG;
	}
	hf_conf_free(conf);
	printf("%s: configuration is valid\n", path);
	return fflush(stdout) == 0 ? HF_EXIT_OK : HF_EXIT_FAILED;
}

int
main(int argc, char **argv)
{
	struct cmdline cl = { 0 };

	if (!parse(argc, argv, &cl)) {
		fputs(usage, stderr);
		return HF_EXIT_USAGE;
	}
	if (cl.has_role) {
		/* Executed by a link of /proc, it would be called "exe". */
		prctl(PR_SET_NAME,
		    cl.role.keeper ? "holdfast-keeper" : "holdfast-worker");
		return cl.role.keeper ? hf_keeper_main(&cl.role) :
					hf_worker_main(&cl.role);
	}
	if (cl.help) {
		fputs(usage, stdout);
		return HF_EXIT_OK;
	}
	if (cl.version) {
#ifdef HF_FAULTS
		puts("holdfast " PACKAGE_VERSION " (faults)");
#else
		puts("holdfast " PACKAGE_VERSION);
#endif
		return HF_EXIT_OK;
	}
	if (cl.test)
		return check_config(cl.role.config);
	return hf_master_run(cl.role.config);
}
