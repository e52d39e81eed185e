/*
 * holdfastctl: what a command line asks for, and the commands there are.
 * One process, one thread, one request over the control socket.
 */
#ifndef HF_CTL_CTL_H
#define HF_CTL_CTL_H

#include "base/exits.h"
#include "base/hf.h"

/* Options that only some commands take. */
enum hf_ctl_opt {
	HF_CTL_TENANT = 1,
	HF_CTL_LABEL = 2,
	HF_CTL_LIMIT = 4,
	HF_CTL_BEFORE = 8,
	HF_CTL_CONTENTS = 16,
	HF_CTL_ATTEMPTS = 32,
	HF_CTL_ALL = 64,
	HF_CTL_WAIT = 128,
	HF_CTL_SINCE = 256,
	HF_CTL_FOR = 512,
	HF_CTL_WATCH = 1024,
	HF_CTL_LAST = HF_CTL_WATCH
};

/* What a reply becomes. */
enum hf_ctl_doc {
	HF_CTL_DOC_STATUS,   /* one object */
	HF_CTL_DOC_CHECK,    /* {ok, daemon, checks} */
	HF_CTL_DOC_SESSIONS, /* a list */
	HF_CTL_DOC_SESSION,  /* {session, turns, items, attempts} */
	HF_CTL_DOC_TIMELINE, /* a list */
	HF_CTL_DOC_VERIFY,   /* {findings, verified} */
	HF_CTL_DOC_LOCKS,
	HF_CTL_DOC_KEYS,
	HF_CTL_DOC_KEY,
	HF_CTL_DOC_PROVIDERS,
	HF_CTL_DOC_PROVIDER, /* one object */
	HF_CTL_DOC_TESTS,    /* a list */
	HF_CTL_DOC_FAILOVERS,
	HF_CTL_DOC_FAILOVER_SUMMARY, /* a list */
	HF_CTL_DOC_WARNINGS,	     /* {file, warnings} */
	HF_CTL_DOC_CONFIG,	     /* {config, settings} */
	HF_CTL_DOC_EXPLAIN,	     /* a list of keys */
	HF_CTL_DOC_ERRORS,	     /* a list of error classes */
	HF_CTL_DOC_RELOAD,
	HF_CTL_DOC_DRAIN
};

struct hf_ctl_command {
	const char *verb;	    /* of base/verbs.def */
	const char *operand;	    /* its member of "args"; NULL: none */
	const char *shown;	    /* how help calls it; in [] if it may
				     * be left out */
	unsigned allowed, required; /* enum hf_ctl_opt */
	enum hf_ctl_doc doc;
	const char *second; /* member of "args" for a second operand that
			     * may be left out; NULL: there is none */
};

extern const struct hf_ctl_command hf_ctl_commands[];
extern const unsigned hf_ctl_n_commands;

struct hf_ctl { /* strings are borrowed from argv */
	const struct hf_ctl_command *command; /* NULL: help or version */
	bool help, version;
	unsigned flags;		     /* enum hf_verb_flags of the command */
	const char *socket, *config; /* NULL: not given */
	bool offline;
	const char *database, *key_file; /* offline; NULL: not given */
	bool json, no_headers, quiet;
	int timeout_ms; /* 0: not given */
	unsigned given; /* enum hf_ctl_opt */
	const char *tenant, *label, *before, *operand, *second;
	int64_t limit, wait_s, since_s, for_s, watch_s;
};

#define HF_CTL_TEXT 512 /* a message with its NUL */

/* Read the command line.  0, or HF_EXIT_USAGE with a message in 'text'. */
int hf_ctl_options(struct hf_ctl *ctl, int argc, char **argv,
    char text[HF_CTL_TEXT]) HF_MUST_CHECK;
void hf_ctl_usage(void);

/* Run the command and print its result.  An exit code. */
int hf_ctl_run(const struct hf_ctl *ctl);

#endif
