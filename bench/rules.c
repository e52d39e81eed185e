/*
 * Our own wordings.  Pure.
 */
#include <config.h>

#include "bench/rules.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/answer.h"
#include "bench/format.h"
#include "bench/recital.h"
#include "bench/rng.h"

#define TICKET "Your ticket is "

static bool
begins_with(struct hf_str s, const char *start)
{
	size_t n = strlen(start);

	return s.size >= n && memcmp(s.p, start, n) == 0;
}

static bool
ends_in(struct hf_str s, const char *end)
{
	size_t n = strlen(end);

	return s.size >= n && memcmp(s.p + s.size - n, end, n) == 0;
}

/* The template whose probe this text ends in, or NULL. */
static const struct hf_template *
probed_at_end(struct hf_str text)
{
	for (unsigned i = 0; i < hf_n_templates; i++)
		if (ends_in(text, hf_templates[i].probe))
			return &hf_templates[i];
	return NULL;
}

/* --- facts ---------------------------------------------------------------- */

static bool
retracts(struct hf_str text, const struct hf_template *t)
{
	return begins_with(text, HF_RETRACT) && probed_at_end(text) == t;
}

struct hf_found
hf_find_fact(json_t *view, const struct hf_template *t)
{
	struct hf_found found = { HF_STR_NONE, false };
	struct hf_str text, f;
	json_t *m;
	size_t i;

	json_array_foreach(view, i, m)
	{
		text = hf_view_text(m);
		if (!hf_view_has_role(m, "user") &&
		    !hf_view_has_role(m, "system"))
			continue;
		f = hf_answer_fact(t, text);
		if (f.p != NULL)
			found = (struct hf_found){ f, false };
		else if (retracts(text, t))
			found = (struct hf_found){ HF_STR_NONE, true };
	}
	return found;
}

static char *
answer_fact(json_t *view, const struct hf_template *t)
{
	struct hf_found found = hf_find_fact(view, t);

	if (found.retracted)
		return hf_xstrdup(HF_ANSWER_RETRACTED);
	return hf_answer_told(found.fact);
}

static const struct hf_template *
oblique(struct hf_str text)
{
	for (unsigned i = 0; i < hf_n_templates; i++)
		if (hf_str_is(text, hf_templates[i].oblique))
			return &hf_templates[i];
	return NULL;
}

/* --- long answers --------------------------------------------------------- */

/* The template whose probe, perhaps behind other words, is to be answered at
 * length, or NULL. */
static const struct hf_template *
long_probe(struct hf_str text)
{
	static const char end[] = HF_AT_LENGTH;

	if (!ends_in(text, end))
		return NULL;
	text.size -= sizeof(end) - 1;
	return probed_at_end(text);
}

static char *
answer_at_length(json_t *view, const struct hf_template *t)
{
	struct hf_str fact = hf_find_fact(view, t).fact;
	unsigned n = 0;
	json_t *m;
	size_t i;

	if (fact.p == NULL)
		return hf_xstrdup(HF_ANSWER_UNKNOWN);
	json_array_foreach(view, i, m) n += hf_view_has_role(m, "user");
	return hf_recital(fact, n);
}

/* The last message of this role that begins so; .p NULL: none. */
static struct hf_str
last_of(json_t *view, const char *role, const char *start)
{
	for (size_t i = json_array_size(view); i > 0; i--) {
		json_t *m = json_array_get(view, i - 1);

		if (hf_view_has_role(m, role) &&
		    begins_with(hf_view_text(m), start))
			return hf_view_text(m);
	}
	return HF_STR_NONE;
}

/* before + text + after, or that it is not known. */
static char *
quote(struct hf_str text, const char *before, const char *after)
{
	if (text.p == NULL)
		return hf_xstrdup(HF_ANSWER_UNKNOWN);
	return hf_format("%s%.*s%s", before, HF_STR_ARG(text), after);
}

/* --- what others said ----------------------------------------------------- */

char *
hf_ticket(struct hf_str thing)
{
	static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	char number[11] = "T-";
	uint64_t h = 11;

	for (size_t i = 0; i < thing.size; i++)
		h = hf_rng_mix(h * 31 + (unsigned char)thing.p[i]);
	for (unsigned i = 2; i < 10; i++, h >>= 5)
		number[i] = alphabet[h & 31];
	return hf_xstrdup(number);
}

static char *
open_ticket(struct hf_str text)
{
	char *number = hf_ticket(text), *answer;

	answer = hf_format(TICKET "%s.", number);
	free(number);
	return answer;
}

static char *
answer_ticket(json_t *view)
{
	struct hf_str said = last_of(view, "assistant", TICKET);

	if (said.p != NULL) {
		said.p += sizeof(TICKET) - 1;
		said.size -= sizeof(TICKET) - 1;
	}
	return quote(said, "I gave you: ", "");
}

/* --- by their order ------------------------------------------------------- */

/* What the caller has stated, by templates in the order of their first. */
struct notes {
	const struct hf_template *t[8];
	struct hf_str fact[8];
	unsigned n;
};

static void
note(struct notes *notes, const struct hf_template *t, struct hf_str fact)
{
	unsigned i = 0;

	while (i < notes->n && notes->t[i] != t)
		i++;
	if (i == hf_countof(notes->t))
		return;
	notes->t[i] = t;
	notes->fact[i] = fact;
	notes->n += i == notes->n;
}

static void
take_notes(struct notes *notes, json_t *view)
{
	json_t *m;
	size_t i;

	memset(notes, 0, sizeof(*notes));
	json_array_foreach(view, i, m)
	{
		if (!hf_view_has_role(m, "user"))
			continue;
		for (unsigned k = 0; k < hf_n_templates; k++) {
			struct hf_str f =
			    hf_answer_fact(&hf_templates[k], hf_view_text(m));

			if (f.p != NULL)
				note(notes, &hf_templates[k], f);
		}
	}
}

static bool
was_said(json_t *view, struct hf_str fact)
{
	json_t *m;
	size_t i;

	json_array_foreach(view, i, m)
	{
		struct hf_str s = hf_view_text(m);

		if (hf_view_has_role(m, "assistant") && s.size > 0 &&
		    memmem(s.p, s.size, fact.p, fact.size) != NULL)
			return true;
	}
	return false;
}

/* The only one that was not said yet; .p NULL: there is not just one. */
static struct hf_str
unsaid(json_t *view, const struct notes *notes)
{
	struct hf_str found = HF_STR_NONE;
	unsigned n = 0;

	for (unsigned i = 0; i < notes->n; i++) {
		if (was_said(view, notes->fact[i]))
			continue;
		found = notes->fact[i];
		n++;
	}
	return n == 1 && notes->n > 1 ? found : HF_STR_NONE;
}

char *
hf_week_after(struct hf_str date)
{
	static const unsigned days[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30,
		31, 30, 31 };
	char text[40], month[16] = "";
	unsigned day, m = 0;

	snprintf(text, sizeof(text), "%.*s", HF_STR_ARG(date));
	if (date.p == NULL || sscanf(text, "%u %15s 2027", &day, month) != 2)
		return NULL;
	while (m < 12 && strcmp(hf_months[m], month) != 0)
		m++;
	if (m == 12)
		return NULL;
	day += 7;
	if (day > days[m]) {
		day -= days[m];
		m = (m + 1) % 12;
	}
	return hf_format("%u %s", day, hf_months[m]);
}

static char *
answer_week(const struct notes *notes)
{
	struct hf_str date = HF_STR_NONE;
	char *day, *answer;

	for (unsigned i = 0; i < notes->n && date.p == NULL; i++)
		if (notes->t[i]->type == HF_FACT_DATE)
			date = notes->fact[i];
	day = hf_week_after(date);
	answer = day == NULL ? hf_xstrdup(HF_ANSWER_UNKNOWN) :
			       hf_format("Then it is %s.", day);
	free(day);
	return answer;
}

static char *
answer_by_order(json_t *view, struct hf_str text)
{
	bool first = hf_str_is(text, HF_FIRST);
	bool second = hf_str_is(text, HF_SECOND);
	bool week = hf_str_is(text, HF_WEEK);
	struct notes notes;

	if (!first && !second && !week && !hf_str_is(text, HF_OTHER) &&
	    !hf_str_is(text, HF_UNSAID))
		return NULL;
	take_notes(&notes, view);
	if (week)
		return answer_week(&notes);
	if (first || second)
		return hf_answer_told(
		    notes.n > second ? notes.fact[second] : HF_STR_NONE);
	return hf_answer_told(unsaid(view, &notes));
}

/* --- the front ------------------------------------------------------------ */

char *
hf_rule_answer(json_t *view, struct hf_str text)
{
	const struct hf_template *t = hf_answer_probe(text);

	if (t == NULL)
		t = oblique(text);
	if (t != NULL)
		return answer_fact(view, t);
	t = long_probe(text);
	if (t != NULL)
		return answer_at_length(view, t);
	if (begins_with(text, HF_RETRACT) && probed_at_end(text) != NULL)
		return hf_xstrdup(HF_ANSWER_FORGOTTEN);
	if (begins_with(text, HF_ASK_TICKET))
		return open_ticket(text);
	if (hf_str_is(text, HF_TICKET_PROBE))
		return answer_ticket(view);
	if (hf_str_is(text, HF_RESULT_PROBE))
		return quote(last_of(view, "tool", ""), "It said: ", ".");
	if (hf_str_is(text, HF_ECHO_PROBE))
		return quote(
		    last_of(view, "assistant", HF_RECITAL_OPENING), "", "");
	return answer_by_order(view, text);
}
