/*
 * The search for what belongs to another conversation: the marks of all at
 * once, by their first two bytes, and canaries by theirs.  A mark that this
 * conversation uses itself (published sets plant some facts twice) is none.
 */
#include <config.h>

#include <stdlib.h>

#include "base/check.h"
#include "bench/judge.h"

struct mark {
	const struct hf_conv *conv;
	const char *text;
	unsigned next; /* as head[] */
};

struct hf_bleed {
	unsigned head[65536]; /* 1 + mark, by its first bytes; 0: none */
	struct mark *mark;
	unsigned n_mark;
};

static unsigned
slot_of(const char *p)
{
	return (unsigned)(unsigned char)p[0] << 8 | (unsigned char)p[1];
}

static void
add_mark(struct hf_bleed *b, const struct hf_conv *c, const char *text)
{
	unsigned slot = slot_of(text);

	b->mark[b->n_mark] = (struct mark){ c, text, b->head[slot] };
	b->head[slot] = ++b->n_mark;
}

struct hf_bleed *
hf_bleed_new(const struct hf_suite *s)
{
	struct hf_bleed *b = hf_xcalloc(1, sizeof(*b));

	b->mark =
	    hf_xcalloc((size_t)s->n_conv * (1 + HF_MAX_MORE), sizeof(*b->mark));
	for (unsigned i = 0; i < s->n_conv; i++) {
		const struct hf_conv *c = &s->conv[i];

		add_mark(b, c, c->mark);
		for (unsigned k = 0; k < c->n_more; k++)
			add_mark(b, c, c->more[k]);
	}
	return b;
}

void
hf_bleed_free(struct hf_bleed *b)
{
	if (b == NULL)
		return;
	free(b->mark);
	free(b);
}

static bool
says_itself(const struct hf_conv *own, const char *mark)
{
	for (unsigned i = 0; i < own->n_user; i++)
		if (strstr(own->user[i], mark) != NULL ||
		    (own->assistant[i] != NULL &&
			strstr(own->assistant[i], mark) != NULL))
			return true;
	return false;
}

/* "CB-" may also begin a fact. */
static bool
is_canary(const char *p)
{
	if (memcmp(p, "CB-", 3) != 0)
		return false;
	for (unsigned i = 3; i < HF_CANARY_SIZE - 1; i++)
		if (!((p[i] >= '0' && p[i] <= '9') ||
			(p[i] >= 'A' && p[i] <= 'Z')))
			return false;
	return true;
}

unsigned
hf_bleed_count(const struct hf_bleed *b, struct hf_str text,
    const struct hf_conv *own, const char *canary)
{
	unsigned n = 0;

	for (size_t i = 0; i + 1 < text.size; i++) {
		const char *p = text.p + i;
		size_t left = text.size - i;

		for (unsigned k = b->head[slot_of(p)]; k > 0;
		     k = b->mark[k - 1].next) {
			const struct mark *m = &b->mark[k - 1];
			size_t size = strlen(m->text);

			n += m->conv != own && size <= left &&
			    memcmp(p, m->text, size) == 0 &&
			    !says_itself(own, m->text);
		}
		if (left >= HF_CANARY_SIZE - 1 && is_canary(p))
			n += memcmp(p, canary, HF_CANARY_SIZE - 1) != 0;
	}
	return n;
}
