/*
 * A model's judgement of what was played: which answers it is needed for, and
 * what it says of each.
 */
#include <config.h>

#include "bench/model_judge.h"

#include <stdlib.h>

#include "base/check.h"
#include "bench/judge.h"

struct docket {
	json_t *index; /* text of a question -> its number */
	struct hf_judgement *j;
	char **answer; /* of each, owned */
	unsigned n, size;
	unsigned substring, denied;
};

/* What the caller got: words, and the calls that stand for words. */
static char *
said(const struct hf_play *p, unsigned turn)
{
	struct hf_buf b;
	char *calls, *text;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_puts(&b, p->answer[turn]);
	if (p->calls[turn] != NULL) {
		calls = json_dumps(p->calls[turn], JSON_COMPACT);
		HF_CHECK(calls != NULL);
		hf_buf_printf(&b, "%s%s", b.size > 0 ? "\n" : "", calls);
		free(calls);
	}
	text = hf_xstrdup(b.size == 0 ? "" : b.data);
	hf_buf_free(&b);
	return text;
}

/* The number of this question, which is new or was asked before. */
static unsigned
file_question(struct docket *d, const struct hf_play *p, unsigned turn)
{
	struct hf_question q = { p->c->asks[turn], p->c->user[turn], NULL };
	char *answer = said(p, turn);
	struct hf_buf key;
	json_t *known;

	hf_buf_init(&key, HF_BUF_NOCAP);
	hf_buf_printf(&key, "%zu %zu %s%s%s", strlen(q.expected),
	    strlen(q.probe), q.expected, q.probe, answer);
	known = json_object_get(d->index, key.data);
	if (known != NULL) {
		free(answer);
		hf_buf_free(&key);
		return (unsigned)json_integer_value(known);
	}
	if (d->n == d->size) {
		d->size = d->size == 0 ? 64 : 2 * d->size;
		d->j = reallocarray(d->j, d->size, sizeof(*d->j));
		d->answer = reallocarray(d->answer, d->size, sizeof(char *));
		HF_CHECK(d->j != NULL && d->answer != NULL);
	}
	q.answer = answer;
	d->j[d->n] = (struct hf_judgement){ .q = q };
	d->answer[d->n] = answer;
	json_object_set_new(d->index, key.data, json_integer(d->n));
	hf_buf_free(&key);
	return d->n++;
}

/* Decides by the words alone where they say enough; else files a question.
 * 'number' (one a turn of a play) tells which. */
static void
sift(struct docket *d, struct hf_plays *plays, unsigned *number)
{
	for (unsigned i = 0; i < plays->n_play; i++) {
		struct hf_play *p = &plays->play[i];

		for (unsigned k = 0; k < p->n_answered; k++) {
			if (p->c->asks[k] == NULL)
				continue;
			if (p->c->denies[k] != NULL &&
			    hf_play_holds(p, k, p->c->denies[k])) {
				p->verdict[k] = HF_VERDICT_DENIED;
				d->denied++;
			} else if (hf_play_holds(p, k, p->c->asks[k])) {
				p->verdict[k] = HF_VERDICT_SUBSTRING;
				d->substring++;
			} else {
				p->verdict[k] = HF_VERDICT_UNDECIDED;
				number[i * HF_MAX_TURNS + k] =
				    file_question(d, p, k);
			}
		}
	}
}

/* What came of each question, to the answers that it was about; counts. */
static void
hand_down(const struct docket *d, struct hf_plays *plays,
    const unsigned *number, unsigned count[3])
{
	for (unsigned i = 0; i < plays->n_play; i++) {
		struct hf_play *p = &plays->play[i];

		for (unsigned k = 0; k < p->n_answered; k++) {
			const struct hf_judgement *j;

			if (p->c->asks[k] == NULL ||
			    p->verdict[k] != HF_VERDICT_UNDECIDED)
				continue;
			j = &d->j[number[i * HF_MAX_TURNS + k]];
			p->verdict[k] = j->verdict;
			count[0] += j->verdict == HF_VERDICT_RIGHT;
			count[1] += j->verdict == HF_VERDICT_WRONG;
			count[2] += j->verdict == HF_VERDICT_UNDECIDED;
			if (j->reason != NULL || j->error[0] != '\0')
				p->reason[k] = hf_xstrdup(
				    j->reason != NULL ? j->reason : j->error);
		}
	}
}

static const char *
form_name(enum hf_verdict_form f)
{
	return f == HF_FORM_SCHEMA ? "json_schema" :
	    f == HF_FORM_OBJECT	   ? "json_object" :
				     "plain";
}

int
hf_judge_plays(const struct hf_judge_conf *c, struct hf_plays *plays,
    struct hf_progress *progress, json_t **out, struct hf_error *e)
{
	unsigned *number =
	    hf_xcalloc((size_t)plays->n_play * HF_MAX_TURNS, sizeof(*number));
	struct docket d = { .index = json_object() };
	struct hf_judge_calls calls = { 0 };
	unsigned count[3] = { 0 };
	int rc;

	sift(&d, plays, number);
	rc = hf_judge_ask(c, d.j, d.n, &calls, progress, e);
	hand_down(&d, plays, number, count);
	*out = json_pack("{s:s,s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "url",
	    c->url, "model", c->model, "form", form_name(calls.form),
	    "substring", (int)d.substring, "denied", (int)d.denied, "asked",
	    (int)d.n, "right", (int)count[0], "wrong", (int)count[1],
	    "undecided", (int)count[2], "calls", (int)calls.calls, "retries",
	    (int)calls.retries);
	HF_CHECK(*out != NULL);
	for (unsigned i = 0; i < d.n; i++)
		free(d.answer[i]);
	free(d.answer);
	hf_judgements_free(d.j, d.n);
	json_decref(d.index);
	free(number);
	return rc;
}
