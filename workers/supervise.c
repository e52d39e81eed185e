/*
 * The restart policy.
 */
#include <config.h>

#include "workers/supervise.h"

#include <signal.h>
#include <sys/wait.h>

#define FIRST_WAIT_MS 1000
#define LONGEST_WAIT_MS 60000
/* Who lived this long before failing starts at the first wait again. */
#define FORGIVE_US ((int64_t)60 * 1000000)

bool
hf_death_outside(int status)
{
	if (!WIFSIGNALED(status))
		return false;
	switch (WTERMSIG(status)) {
	case SIGKILL:
	case SIGTERM:
	case SIGINT:
	case SIGQUIT:
	case SIGHUP:
	case SIGUSR1:
	case SIGUSR2:
	case SIGALRM:
		return true;
	default:
		return false;
	}
}

bool
hf_death_own_fault(int status, bool blamed)
{
	if (blamed)
		return true;
	return !hf_death_outside(status) &&
	    !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void
restart_now(struct hf_decision *out, int64_t now_us, const char *reason)
{
	out->verdict = HF_RESTART_NOW;
	out->at_us = now_us;
	out->reason = reason;
}

/* A fault of its own before any work. */
static void
fault(const struct hf_death *d, int64_t now_us, hf_random_fn rnd, void *arg,
    struct hf_decision *out)
{
	unsigned n = d->up_us >= FORGIVE_US ? 0 : d->failures;

	if (d->starting && WIFEXITED(d->status) &&
	    WEXITSTATUS(d->status) != 0) {
		/* It said why; trying again would say the same. */
		out->verdict = HF_GIVE_UP;
		out->exit_code = WEXITSTATUS(d->status);
		out->reason = "cannot_start";
		return;
	}
	if (d->starting && n + 1 >= HF_SUPERVISE_START_TRIES) {
		out->verdict = HF_GIVE_UP;
		out->exit_code = 1;
		out->reason = "crashes_at_start";
		return;
	}
	out->verdict = HF_RESTART_AFTER;
	out->after_ms =
	    hf_backoff_ms(n, FIRST_WAIT_MS, LONGEST_WAIT_MS, 0, rnd, arg);
	out->at_us = now_us + out->after_ms * 1000;
	out->failures = n + 1;
	out->reason = "failed_before_work";
}

void
hf_supervise(const struct hf_death *d, int64_t now_us, hf_random_fn rnd,
    void *arg, struct hf_decision *out)
{
	bool outside = !d->blamed && hf_death_outside(d->status);

	*out = (struct hf_decision){ 0 };
	if (outside && (d->was_ready || d->worked)) {
		out->failures = d->failures;
		restart_now(out, now_us, "killed");
	} else if (outside && d->early_kills + 1 < HF_SUPERVISE_EARLY_KILLS) {
		out->failures = d->failures;
		out->early_kills = d->early_kills + 1;
		restart_now(out, now_us, "killed_early");
	} else if (d->worked) {
		restart_now(out, now_us, "failed_after_work");
	} else {
		out->early_kills = d->early_kills;
		fault(d, now_us, rnd, arg, out);
	}
}

void
hf_beat_reset(struct hf_beat *b)
{
	*b = (struct hf_beat){ 0 };
}

bool
hf_beat_stale(struct hf_beat *b, uint64_t value, int64_t now_us,
    int64_t step_us, int64_t limit_us)
{
	int64_t step;

	if (b->looked_us == 0 || value != b->last) {
		b->last = value;
		b->looked_us = now_us;
		b->stale_us = 0;
		return false;
	}
	step = now_us - b->looked_us;
	b->stale_us += step < step_us ? step : step_us;
	b->looked_us = now_us;
	return b->stale_us >= limit_us;
}
