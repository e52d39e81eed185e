/*
 * holdfastctl: what a command line asks for, and the commands there are.
 * One process, one thread, one request over the control socket.
 */
#ifndef HF_CTL_CTL_H
#define HF_CTL_CTL_H

#include "base/hf.h"

/* How every program of holdfast ends. */
enum hf_ctl_exit {
	HF_CTL_OK = 0,
	HF_CTL_NOTHING = 1,	/* ran; a check failed or nothing was found */
	HF_CTL_USAGE = 2,
	HF_CTL_NOT_FOUND = 3,	/* or ambiguous */
	HF_CTL_UNREACHABLE = 4,
	HF_CTL_PERMISSION = 5,
	HF_CTL_CONFLICT = 6,
	HF_CTL_CORRUPT = 7,
	HF_CTL_TIMEOUT = 8,
	HF_CTL_TRY_LATER = 75,
	HF_CTL_CONFIG = 78
};

/* Options that only some commands take. */
enum hf_ctl_opt {
	HF_CTL_TENANT = 1,
	HF_CTL_LABEL = 2,
	HF_CTL_LIMIT = 4,
	HF_CTL_BEFORE = 8,
	HF_CTL_CONTENTS = 16,
	HF_CTL_ATTEMPTS = 32
};

/* What a reply becomes. */
enum hf_ctl_doc {
	HF_CTL_DOC_STATUS,	/* one object */
	HF_CTL_DOC_SESSIONS,	/* a list */
	HF_CTL_DOC_SESSION,	/* {session, turns, items, attempts} */
	HF_CTL_DOC_KEYS,
	HF_CTL_DOC_KEY
};

struct hf_ctl_command {
	const char	*verb;		/* of base/verbs.def */
	const char	*operand;	/* its member of "args"; NULL: none */
	unsigned	 allowed, required; /* enum hf_ctl_opt */
	enum hf_ctl_doc	 doc;
};

extern const struct hf_ctl_command hf_ctl_commands[];
extern const unsigned hf_ctl_n_commands;

struct hf_ctl {			/* strings are borrowed from argv */
	const struct hf_ctl_command *command; /* NULL: help or version */
	bool		 help, version;
	const char	*socket, *config; /* NULL: not given */
	bool		 json, no_headers, quiet;
	int		 timeout_ms;
	unsigned	 given;		/* enum hf_ctl_opt */
	const char	*tenant, *label, *before, *operand;
	int64_t		 limit;
};

#define HF_CTL_TEXT	512	/* a message with its NUL */

/* Read the command line.  0, or HF_CTL_USAGE with a message in 'text'. */
int	hf_ctl_options(struct hf_ctl *ctl, int argc, char **argv,
	    char text[HF_CTL_TEXT]) HF_MUST_CHECK;
void	hf_ctl_usage(void);

/* Run the command and print its result.  An exit code. */
int	hf_ctl_run(const struct hf_ctl *ctl);

#endif
