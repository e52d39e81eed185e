/*
 * How far something has come, on stderr: on a terminal one line that is written
 * over, several times a second; elsewhere a line every second, and only if that
 * was asked for.
 */
#ifndef HF_BENCH_PROGRESS_H
#define HF_BENCH_PROGRESS_H

#include "base/hf.h"

enum hf_progress_mode {
	HF_PROGRESS_AUTO, /* on a terminal only */
	HF_PROGRESS_ON,
	HF_PROGRESS_OFF
};

struct hf_progress {
	const char *what; /* "playing paper", borrowed */
	const char *unit; /* "conversations" */
	bool on, tty;
	int64_t began_us, told_us;
};

void hf_progress_begin(struct hf_progress *p, enum hf_progress_mode mode,
    const char *what, const char *unit);
/* 'extra': what else is to be known, or "".  The last one (done = total) is
 * always told. */
void hf_progress_step(
    struct hf_progress *p, unsigned done, unsigned total, const char *extra);

#endif
