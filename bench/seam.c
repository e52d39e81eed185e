/*
 * Comparing by words: the longest common subsequence tells which words are in
 * both; what is between them on either side is looked at closer.
 */
#include <config.h>

#include "bench/seam.h"

#include <stdlib.h>

#include "base/check.h"

#define SPACES " \t\r\n"
#define MAX_WORDS ((size_t)4000)

struct text {
	struct hf_str *word;
	size_t n;
};

static void
split(struct text *t, const char *z)
{
	t->word = hf_xcalloc(MAX_WORDS, sizeof(*t->word));
	t->n = 0;
	for (z += strspn(z, SPACES); *z != '\0' && t->n < MAX_WORDS;
	     z += strspn(z, SPACES)) {
		size_t n = strcspn(z, SPACES);

		t->word[t->n++] = (struct hf_str){ z, n };
		z += n;
	}
}

/* How many of the words from 'from' on make up 'whole' when they are stuck
 * together; 0: none do. */
static size_t
made_of(struct hf_str whole, const struct text *t, size_t from, size_t to)
{
	size_t at = 0, n = 0;

	while (at < whole.size && from + n < to) {
		struct hf_str w = t->word[from + n];

		if (w.size > whole.size - at ||
		    memcmp(whole.p + at, w.p, w.size) != 0)
			return 0;
		at += w.size;
		n++;
	}
	return at == whole.size && n > 1 ? n : 0;
}

static bool
has(const struct text *t, struct hf_str w)
{
	for (size_t i = 0; i < t->n; i++)
		if (hf_str_eq(t->word[i], w))
			return true;
	return false;
}

/* One that is made of words i.. of 'parts' is among those of 'of'; drops both,
 * adds to *count. */
static void
take_made(struct text *parts, size_t *from, size_t to, struct text *of,
    size_t of_from, size_t of_to, bool *used, unsigned *count)
{
	for (size_t k = of_from; k < of_to; k++) {
		size_t n = used[k] ? 0 : made_of(of->word[k], parts, *from, to);

		if (n == 0)
			continue;
		used[k] = true;
		*from += n;
		*count += (unsigned)n - 1;
		return;
	}
}

/* Words a..a_to of 'e' and b..b_to of 'g' stand at the same place. */
static void
look_closer(struct hf_seam *s, struct text *e, size_t a, size_t a_to,
    struct text *g, size_t b, size_t b_to)
{
	bool *used_e = hf_xcalloc(e->n + 1, sizeof(*used_e));
	bool *used_g = hf_xcalloc(g->n + 1, sizeof(*used_g));

	for (size_t i = a, was; i < a_to; i += i == was) {
		was = i;
		take_made(e, &i, a_to, g, b, b_to, used_g, &s->glued);
		for (size_t k = was; k < i; k++)
			used_e[k] = true;
	}
	for (size_t i = b, was; i < b_to; i += i == was) {
		was = i;
		if (!used_g[i])
			take_made(g, &i, b_to, e, a, a_to, used_e, &s->split);
		for (size_t k = was; k < i; k++)
			used_g[k] = true;
	}
	for (size_t i = a; i < a_to; i++)
		s->missing += !used_e[i];
	for (size_t i = b; i < b_to; i++) {
		if (used_g[i])
			continue;
		if (has(e, g->word[i]))
			s->duplicated++;
		else
			s->added++;
	}
	free(used_e);
	free(used_g);
}

/* length[i * (g->n + 1) + k]: of the longest common subsequence of the words
 * from i and from k on. */
static unsigned short *
lengths(const struct text *e, const struct text *g)
{
	size_t w = g->n + 1;
	unsigned short *length = hf_xcalloc((e->n + 1) * w, sizeof(*length));

	for (size_t i = e->n; i-- > 0;) {
		for (size_t k = g->n; k-- > 0;) {
			unsigned short *at = &length[i * w + k];

			if (hf_str_eq(e->word[i], g->word[k]))
				*at = (unsigned short)(at[w + 1] + 1);
			else
				*at = at[w] > at[1] ? at[w] : at[1];
		}
	}
	return length;
}

bool
hf_seam_compare(struct hf_seam *s, const char *expected, const char *got)
{
	size_t i = 0, k = 0, a = 0, b = 0, w;
	unsigned short *length;
	struct text e, g;

	memset(s, 0, sizeof(*s));
	if (strcmp(expected, got) == 0)
		return true;
	split(&e, expected);
	split(&g, got);
	w = g.n + 1;
	length = lengths(&e, &g);
	s->other = 2 * (size_t)length[0] < e.n;
	while (i < e.n || k < g.n) {
		if (i < e.n && k < g.n && hf_str_eq(e.word[i], g.word[k])) {
			look_closer(s, &e, a, i, &g, b, k);
			a = ++i;
			b = ++k;
		} else if (k == g.n ||
		    (i < e.n &&
			length[(i + 1) * w + k] >= length[i * w + k + 1])) {
			i++;
		} else {
			k++;
		}
	}
	look_closer(s, &e, a, i, &g, b, k);
	s->spaces =
	    s->duplicated + s->missing + s->glued + s->split + s->added == 0;
	free(length);
	free(e.word);
	free(g.word);
	return false;
}

void
hf_seam_add(struct hf_seam *sum, const struct hf_seam *s)
{
	sum->duplicated += s->duplicated;
	sum->missing += s->missing;
	sum->glued += s->glued;
	sum->split += s->split;
	sum->added += s->added;
	sum->spaces += s->spaces;
}
