/*
 * A payload of a target that could not hold the whole history: what may be
 * missing, and what may not.  Pure.
 */
#include <config.h>

#include "bench/judge.h"

#include "bench/resume.h"
#include "bench/window.h"

/* Of what a window could hold, at least so much must be used, in hundredths:
 * the rest is for the answer, and for not knowing exactly. */
#define USED 50

static const struct hf_wrong right = { HF_BLAME_NOBODY, NULL };

static struct hf_wrong
fit(const char *what)
{
	return (struct hf_wrong){ HF_BLAME_FIT, what };
}

/* Tokens of the turn before 'turn', with all that goes with it. */
static unsigned
count_before(const struct hf_play *p, unsigned turn)
{
	unsigned n = 0;

	do {
		turn--;
		n += hf_count_text(hf_str(p->c->user[turn])) +
		    hf_count_text(hf_str(p->answer[turn])) + 8;
	} while (turn > 0 && p->c->tool[turn]);
	return n;
}

struct hf_wrong
hf_judge_fit(
    const struct hf_play *p, unsigned turn, json_t *view, unsigned window)
{
	size_t n = hf_view_asked(view).n, want = 2 + 2 * (size_t)turn, first;
	unsigned oldest;

	if (n < 2 || n >= want)
		return hf_judge_history(p, view, n, want);
	if (!hf_is_message(view, 0, p, 0, false))
		return fit("the system message is missing");
	first = want - (n - 1);
	for (size_t i = 1; i < n; i++)
		if (!hf_is_message(view, i, p, first + i - 1, false))
			return hf_judge_history(p, view, n, want);
	oldest = (unsigned)(first - 1) / 2;
	if (first % 2 == 0)
		return fit("an answer without its question");
	if (p->c->tool[oldest])
		return fit("a result without its call");
	if (hf_count_view(view) + count_before(p, oldest) <=
	    window / 100 * USED)
		return fit("more is left out than had to be");
	return right;
}
