/*
 * Exit codes of all programs, and which one an error ends with.  The control
 * protocol carries them too.
 */
#ifndef HF_BASE_EXITS_H
#define HF_BASE_EXITS_H

enum hf_exit {
	HF_EXIT_OK = 0,
	HF_EXIT_FAILED = 1, /* ran; failed, or nothing was found */
	HF_EXIT_USAGE = 2,
	HF_EXIT_NOTFOUND = 3, /* or ambiguous */
	HF_EXIT_UNREACHABLE = 4,
	HF_EXIT_PERM = 5,
	HF_EXIT_CONFLICT = 6,
	HF_EXIT_CORRUPT = 7,
	HF_EXIT_TIMEOUT = 8,
	HF_EXIT_TRYLATER = 75,
	HF_EXIT_CONFIG = 78
};

int hf_exit_code(int err);

#endif
