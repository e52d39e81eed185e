/*
 * The line that says how far it is.
 */
#include <config.h>

#include "bench/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define TTY_EVERY_US 200000
#define LINE_EVERY_US 1000000

void
hf_progress_begin(struct hf_progress *p, enum hf_progress_mode mode,
    const char *what, const char *unit)
{
	int64_t now = hf_now_us();
	bool tty = isatty(STDERR_FILENO);

	*p = (struct hf_progress){ .what = what,
		.unit = unit,
		.tty = tty,
		.on =
		    mode == HF_PROGRESS_ON || (mode == HF_PROGRESS_AUTO && tty),
		.began_us = now,
		.told_us = now };
}

void
hf_progress_step(
    struct hf_progress *p, unsigned done, unsigned total, const char *extra)
{
	int64_t now = hf_now_us(), took = now - p->began_us;
	bool end = done == total;
	char left[48] = "";

	if (!p->on ||
	    (!end &&
		now - p->told_us < (p->tty ? TTY_EVERY_US : LINE_EVERY_US)))
		return;
	p->told_us = now;
	if (!end && done > 0)
		snprintf(left, sizeof(left), ", about %.0f s left",
		    (double)took / 1e6 * (total - done) / done);
	/* \033[K: what a longer line left behind. */
	fprintf(stderr, "%s%s: %u of %u %s (%.0f %%), %.0f s%s%s%s%s",
	    p->tty ? "\r" : "", p->what, done, total, p->unit,
	    total == 0 ? 100 : 100.0 * done / total, (double)took / 1e6, left,
	    extra, p->tty ? "\033[K" : "", p->tty && !end ? "" : "\n");
	fflush(stderr);
}
