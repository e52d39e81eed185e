/*
 * The suite "oblique": the probe shares no word of content with what it asks
 * for, so nothing but the whole history helps.  By description, pronoun,
 * order, ellipsis, negation, and a date that is counted from another.
 */
#include <config.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/oblique.h"
#include "bench/rules.h"
#include "bench/suite_make.h"

#define N_CONV 120
#define MAX_CONV 1000 /* facts are dealt once */

enum { DESCRIPTION, PRONOUN, ORDINAL, ELLIPSIS, NEGATION, RELATIVE, WAYS };
static const char *const ways[WAYS] = { "description", "pronoun", "order",
	"ellipsis", "negation", "relative date" };

/* --- words of content ----------------------------------------------------- */

/* Words that every other sentence has. */
static const char *const empty_words[] = { "the", "and", "that", "this", "was",
	"for", "with", "you", "your", "what", "which", "when", "who", "whom",
	"how", "does", "did", "not", "are", "from", "has", "have", "had", "yet",
	"all", "our", "mine", "its", "them", "then", "there", "would", "must",
	"should", "could", "can", "will", "into", "again", "other", "some" };

static size_t
next_word(const char **at, char *word, size_t cap)
{
	size_t n = 0;

	while (**at != '\0' && !isalnum((unsigned char)**at))
		++*at;
	for (; isalnum((unsigned char)**at); ++*at)
		if (n + 1 < cap)
			word[n++] = (char)tolower((unsigned char)**at);
	word[n] = '\0';
	return n;
}

static bool
is_content(const char *word)
{
	for (unsigned i = 0; i < hf_countof(empty_words); i++)
		if (strcmp(empty_words[i], word) == 0)
			return false;
	return strlen(word) > 2;
}

bool
hf_oblique_shares(const char *a, const char *b)
{
	char x[40], y[40];

	while (next_word(&a, x, sizeof(x)) > 0) {
		const char *at = b;

		while (is_content(x) && next_word(&at, y, sizeof(y)) > 0)
			if (strcmp(x, y) == 0)
				return true;
	}
	return false;
}

/* --- conversations -------------------------------------------------------- */

/* Two facts; the first is a date where one is needed. */
static void
make_facts(struct hf_conv *c, unsigned way, const struct hf_template **other,
    struct hf_dealer *d, struct hf_rng *r)
{
	enum hf_fact_type type;

	do {
		free(c->fact);
		hf_deal_fact(d, c, r);
	} while (way == RELATIVE && c->tmpl->type != HF_FACT_DATE);
	type = c->tmpl->type == HF_FACT_NUMBER ? HF_FACT_NAME : HF_FACT_NUMBER;
	*other = hf_pick_template(type, r);
	hf_deal_more(d, c, type, r);
}

static unsigned
ask(struct hf_conv *c, const char *text, const char *fact)
{
	unsigned turn = hf_conv_ask(
	    c, hf_xstrdup(text), hf_format("You told me: %s.", fact));

	c->asks[turn] = fact;
	return turn;
}

static unsigned
ask_for_week(struct hf_conv *c)
{
	char *day = hf_week_after(hf_str(c->fact));
	unsigned turn;

	HF_CHECK(day != NULL);
	turn = hf_conv_ask(
	    c, hf_xstrdup(HF_WEEK), hf_format("Then it is %s.", day));
	c->asks[turn] = c->exact[turn] + strlen("Then it is ");
	free(day);
	return turn;
}

/* The probe; the caller's statements are the first and the second turn. */
static unsigned
make_probe(struct hf_conv *c, unsigned way, const struct hf_template *other)
{
	switch (way) {
	case DESCRIPTION:
		return ask(c, c->tmpl->oblique, c->fact);
	case PRONOUN:
		return ask(c, HF_FIRST, c->fact);
	case ORDINAL:
		return ask(c, HF_SECOND, c->more[0]);
	case ELLIPSIS:
		hf_conv_probe(c, other, c->more[0]);
		return ask(c, HF_OTHER, c->fact);
	case NEGATION:
		hf_conv_probe(c, other, c->more[0]);
		return ask(c, HF_UNSAID, c->fact);
	default:
		return ask_for_week(c);
	}
}

static void
make_conv(struct hf_suite *s, unsigned i, struct hf_dealer *d, struct hf_rng *r)
{
	unsigned *talk = hf_permutation(r, hf_n_fillers);
	unsigned way = i % WAYS, n = i / WAYS;
	const struct hf_template *other;
	struct hf_conv *c = &s->conv[i];

	snprintf(c->id, sizeof(c->id), "o%04u", i + 1);
	make_facts(c, way, &other, d, r);
	hf_conv_state(c, c->tmpl, c->fact, "");
	hf_conv_state(c, other, c->more[0], "");
	hf_conv_small_talk(c, &hf_fillers[talk[0]]);
	hf_conv_small_talk(c, &hf_fillers[talk[1]]);
	c->probe = make_probe(c, way, other);
	/* What the suite claims. */
	HF_CHECK(
	    !hf_oblique_shares(c->user[c->probe], c->user[way == ORDINAL]));
	c->failure = hf_conv_fails(c, c->probe, n);
	c->route = n % 2;
	hf_conv_label(c, 0, "%s", ways[way]);
	hf_conv_label(c, 1, "%s", hf_failure_name(c->failure));
	hf_conv_label(c, 2, "%s", hf_direction(c->route));
	free(talk);
}

struct hf_suite *
hf_suite_oblique(uint64_t seed, unsigned n)
{
	static const char *const axis[] = { "probe", "failure", "dialects" };
	struct hf_suite *s;

	if (n > MAX_CONV)
		return NULL;
	s = hf_suite_new("oblique", seed, n == 0 ? N_CONV : n);
	hf_suite_frame(s, axis, hf_countof(axis));
	hf_suite_fill(s, seed, make_conv);
	return s;
}
