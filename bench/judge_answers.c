/*
 * Judging what clients were answered, and who is to blame for what is wrong.
 * Pure.
 */
#include <config.h>

#include "bench/judge.h"

#include "base/check.h"

const char *
hf_outcome_name(enum hf_outcome o)
{
	static const char *const name[] = {
#define X(id, text) text,
		HF_OUTCOMES(X)
#undef X
	};

	return name[o];
}

const char *
hf_join_name(enum hf_join j)
{
	static const char *const name[] = {
#define X(id, text) text,
		HF_JOINS(X)
#undef X
	};

	return name[j];
}

const char *
hf_blame_name(enum hf_blame b)
{
	static const char *const name[] = {
#define X(id, text) text,
		HF_BLAMES(X)
#undef X
	};

	return name[b];
}

void
hf_play_wrong(struct hf_play *p, unsigned turn)
{
	if (p->first_wrong < 0 || (int)turn < p->first_wrong)
		p->first_wrong = (int)turn;
}

/* --- one turn ------------------------------------------------------------- */

/* Was the answer to turn 'back' told again as far as the client heard it, and
 * not to its end? */
static bool
reads_back(const struct hf_play *p, unsigned turn, unsigned back)
{
	const char *full = p->c->exact[back], *heard = p->answer[back];
	const char *told = p->answer[turn];
	size_t n = strlen(told);

	while (n > 0 && told[n - 1] == ' ')
		n--;
	if (!p->left[back])
		return strcmp(told, full) == 0;
	return n < strlen(full) && memcmp(told, full, n) == 0 &&
	    strlen(heard) <= n + 1 && strncmp(told, heard, strlen(heard)) == 0;
}

/* Is the text only the beginning of what was to come? */
static bool
is_short(const struct hf_play *p, unsigned turn)
{
	const char *full = p->c->exact[turn];
	size_t n = strlen(p->answer[turn]);

	return full != NULL && n > 0 && n < strlen(full) &&
	    memcmp(full, p->answer[turn], n) == 0;
}

/* The text and the calls of an answer, where they are known beforehand. */
static enum hf_outcome
judge_text(struct hf_tally *n, struct hf_play *p, unsigned turn)
{
	const struct hf_conv *c = p->c;
	struct hf_seam seam;
	bool calls = hf_same_calls(c->calls[turn], p->calls[turn]), same;

	if (p->left[turn])
		return strncmp(p->answer[turn], c->exact[turn],
			   strlen(p->answer[turn])) == 0 ?
		    HF_OUTCOME_WHOLE :
		    HF_OUTCOME_OTHER;
	if (c->exact[turn] == NULL && c->reads_back[turn] == 0)
		return HF_OUTCOME_WHOLE;
	n->texts++;
	n->calls_wrong += !calls;
	p->wrong_calls += !calls;
	memset(&seam, 0, sizeof(seam));
	same = c->reads_back[turn] > 0 ?
	    reads_back(p, turn, c->reads_back[turn] - 1) :
	    hf_seam_compare(&seam, c->exact[turn], p->answer[turn]);
	if (same && calls)
		return HF_OUTCOME_WHOLE;
	p->wrong_texts++;
	p->short_texts += calls && is_short(p, turn);
	hf_play_wrong(p, turn);
	if (seam.other || (!same && c->reads_back[turn] > 0)) {
		p->other_texts++;
		return HF_OUTCOME_OTHER;
	}
	hf_seam_add(&n->words, &seam);
	return HF_OUTCOME_FLAWED;
}

static void
judge_marks(struct hf_tally *n, struct hf_play *p, unsigned turn)
{
	const struct hf_marks *m = &p->marks[turn];

	n->streams++;
	n->marks.roles += m->roles;
	n->marks.finishes += m->finishes;
	n->marks.dones += m->dones;
	n->marks.ids += m->ids;
	n->marks.models += m->models;
	if (m->roles == 1 && m->finishes == 1 && m->dones == 1 && m->ids == 1 &&
	    m->models == 1)
		return;
	n->bad_marks++;
	p->bad_marks++;
	hf_play_wrong(p, turn);
}

bool
hf_play_holds(const struct hf_play *p, unsigned turn, const char *fact)
{
	json_t *c;
	size_t i;

	if (strstr(p->answer[turn], fact) != NULL)
		return true;
	json_array_foreach(p->calls[turn], i, c)
	{
		const char *args =
		    json_string_value(json_object_get(c, "arguments"));

		if (args != NULL && strstr(args, fact) != NULL)
			return true;
	}
	return false;
}

bool
hf_play_right(const struct hf_play *p, unsigned turn)
{
	const struct hf_conv *c = p->c;

	if (turn >= p->n_answered)
		return false;
	if (c->denies[turn] != NULL && hf_play_holds(p, turn, c->denies[turn]))
		return false;
	return c->asks[turn] == NULL || p->verdict[turn] == HF_VERDICT_RIGHT ||
	    hf_play_holds(p, turn, c->asks[turn]);
}

/* --- a play --------------------------------------------------------------- */

static void
count_tries(const struct hf_play *p, struct hf_counts *n)
{
	for (unsigned k = 0; k < p->c->n_user; k++) {
		n->broken += p->broken[k];
		n->retries += p->retries[k];
		n->retried += p->retries[k] > 0;
		if (p->retries[k] > n->most_retries)
			n->most_retries = p->retries[k];
	}
}

static void
judge_play(
    const struct hf_play_conf *conf, struct hf_play *p, struct hf_tally *n)
{
	const struct hf_conv *c = p->c;

	p->first_wrong = -1;
	p->preserved = p->n_answered == c->n_user;
	for (unsigned k = 0; k < c->n_user; k++) {
		bool fails = hf_play_is_to_fail(conf, p, k);

		if (k < p->n_answered) {
			enum hf_outcome o = judge_text(n, p, k);

			n->outcomes[o] += fails;
			n->differing += p->differing[k];
			if (p->differing[k] > 0)
				hf_play_wrong(p, k);
			if (conf->stream && !c->plain && !p->left[k])
				judge_marks(n, p, k);
			if (!hf_play_right(p, k)) {
				p->preserved = false;
				hf_play_wrong(p, k);
			}
		} else if (k == p->n_answered) {
			n->outcomes[HF_OUTCOME_ERROR] += fails;
			hf_play_wrong(p, k);
		} else {
			n->outcomes[HF_OUTCOME_UNREACHED] += fails;
		}
	}
}

/* Is this call among the first n of these? */
static bool
is_among(json_t *call, json_t *calls, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		json_t *o = json_array_get(calls, k);

		if (json_equal(json_object_get(o, "name"),
			json_object_get(call, "name")) &&
		    json_equal(json_object_get(o, "arguments"),
			json_object_get(call, "arguments")))
			return true;
	}
	return false;
}

/* Is one of the calls of this turn there twice, and was not to be? */
static bool
calls_twice(const struct hf_play *p, unsigned turn)
{
	json_t *calls = p->calls[turn], *c;
	size_t i;

	if (json_array_size(calls) <= json_array_size(p->c->calls[turn]))
		return false;
	json_array_foreach(calls, i, c) if (is_among(c, calls, i)) return true;
	return false;
}

/* Is a call made again on a turn that was to have none?  Its client would run
 * the tool once more. */
static bool
calls_again(const struct hf_play *p, unsigned turn)
{
	json_t *c = json_array_get(p->calls[turn], 0);

	if (c == NULL || p->c->calls[turn] != NULL)
		return false;
	for (unsigned k = 0; k < turn; k++)
		if (is_among(c, p->calls[k], json_array_size(p->calls[k])))
			return true;
	return false;
}

/* Turns on which a client runs a tool once more than it was to. */
static unsigned
count_reexecuted(const struct hf_play *p)
{
	unsigned n = 0;

	for (unsigned k = 0; k < p->c->n_user; k++)
		n += (p->c->exact[k] != NULL && calls_twice(p, k)) ||
		    calls_again(p, k);
	return n;
}

void
hf_judge_answers(const struct hf_play_conf *conf, struct hf_plays *plays,
    struct hf_counts *n)
{
	struct hf_bleed *b = hf_bleed_new(conf->suite);

	for (unsigned i = 0; i < plays->n_play; i++) {
		struct hf_play *p = &plays->play[i];

		for (unsigned k = 0; k < p->n_answered; k++)
			p->foreign += hf_bleed_count(
			    b, hf_str(p->answer[k]), p->c, p->canary);
		n->errors += p->error[0] != '\0';
		n->bleed += p->foreign;
		count_tries(p, n);
		judge_play(conf, p, &n->tally[p->system]);
		if (!conf->system[p->system].stateless)
			n->reexecuted += count_reexecuted(p);
		p->preserved = p->preserved && p->foreign == 0;
	}
	hf_bleed_free(b);
}

/* --- blame ---------------------------------------------------------------- */

static bool
is_twice(const struct hf_play *p)
{
	for (unsigned k = 0; k < p->c->n_user; k++)
		if (p->differing[k] > 0 ||
		    (p->c->exact[k] != NULL && calls_twice(p, k)))
			return true;
	return p->twice > 0;
}

static enum hf_blame
blame(const struct hf_play_conf *conf, const struct hf_play *p, bool seen)
{
	bool stateless = conf->system[p->system].stateless;
	bool wrong = !p->preserved || p->wrong_texts > 0;

	if (p->foreign > 0)
		return HF_BLAME_FOREIGN;
	/* What comes of it is refused as well. */
	for (unsigned k = 0; k < p->n_answered; k++)
		if (calls_again(p, k))
			return HF_BLAME_DUPLICATE;
	if (p->refused > 0)
		return HF_BLAME_DIALECT;
	if (p->bad_payloads > 0)
		return (enum hf_blame)p->wrong;
	if (is_twice(p))
		return HF_BLAME_DUPLICATE;
	if (p->error[0] != '\0')
		return p->status == 200 ? HF_BLAME_STREAM : HF_BLAME_ERROR;
	if (p->bad_marks > 0 || p->short_texts > 0)
		return HF_BLAME_STREAM;
	if (!wrong)
		return HF_BLAME_NOBODY;
	if (stateless)
		return HF_BLAME_STATELESS;
	if (p->wrong_texts > p->other_texts || p->wrong_calls > 0)
		return HF_BLAME_SEAM;
	return seen ? HF_BLAME_MODEL : HF_BLAME_UNSEEN;
}

void
hf_judge_blame(const struct hf_play_conf *conf, struct hf_plays *plays,
    bool seen, struct hf_counts *n)
{
	for (unsigned i = 0; i < plays->n_play; i++) {
		struct hf_play *p = &plays->play[i];

		p->blame = blame(conf, p, seen);
		n->tally[p->system].blames[p->blame]++;
	}
}
