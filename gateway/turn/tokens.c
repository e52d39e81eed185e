/*
 * Estimating tokens: runs of characters of one kind, each with what it costs
 * in the vocabularies of today.
 */
#include <config.h>

#include "gateway/turn/tokens.h"

/* What a character belongs to. */
enum run {
	RUN_NONE,
	RUN_WORD,  /* Latin letters */
	RUN_DIGIT, /* a token for up to three */
	RUN_SPACE, /* one before a word belongs to it */
	RUN_LINE,
	RUN_PUNCT,
	RUN_OTHER /* what is counted by the character */
};

/* Costs in hundredths of a token. */
enum {
	UNIT = 100,
	WORD = 100,	  /* a word's first letters */
	WORD_LETTERS = 6, /* so many of them */
	WORD_MORE = 23,	  /* each further letter */
	ACCENT = 30,	  /* a letter with an accent, besides */
	FOREIGN = 38,	  /* each further letter, where accents are usual */
	UPPER = 40,	  /* a capital behind the first letter, besides */
	SPACES = 80,	  /* a run of several */
	LINE = 70,
	PUNCT = 85,	 /* of a run, the first */
	PUNCT_MORE = 30, /* each further one */
	GREEK = 45,	 /* letters of Greek, Cyrillic */
	SCRIPT = 90,	 /* of other alphabets */
	KANA = 106,
	HANGUL = 106,
	HAN = 108,
	SIGN = 108, /* signs of several bytes */
	RARE = 300  /* emoji and the like */
};

struct counter {
	int64_t cost;
	enum run run;
	unsigned n; /* characters of the run so far */
	bool upper; /* the last one was a capital */
	/* Letters of words: all, those with an accent, and those behind the
	 * first of a word. */
	int64_t letters, accents, more;
};

/* What a character costs that is counted by itself. */
static unsigned
cost_of(uint32_t c)
{
	if (c >= 0x10000)
		return RARE;
	if (c >= 0x370 && c < 0x530)
		return GREEK;
	if (c >= 0x530 && c < 0x1100)
		return SCRIPT;
	if ((c >= 0x1100 && c < 0x1200) || (c >= 0xac00 && c < 0xd7b0))
		return HANGUL;
	if (c >= 0x3040 && c < 0x3100)
		return KANA;
	if ((c >= 0x2e80 && c < 0xac00) || (c >= 0xf900 && c < 0xfb00) ||
	    (c >= 0xff00 && c < 0xfff0))
		return HAN;
	return SIGN;
}

static bool
is_accented(uint32_t c)
{
	return (c >= 0xc0 && c < 0x250) || (c >= 0x1e00 && c < 0x1f00);
}

static enum run
run_of(uint32_t c)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_accented(c))
		return RUN_WORD;
	if (c >= '0' && c <= '9')
		return RUN_DIGIT;
	if (c == ' ')
		return RUN_SPACE;
	if (c == '\n' || c == '\r' || c == '\t')
		return RUN_LINE;
	return c < 0x80 ? RUN_PUNCT : RUN_OTHER;
}

/* A space before a word, or before punctuation, is a part of that. */
static void
end_spaces(struct counter *k, enum run next)
{
	if (k->run != RUN_SPACE)
		return;
	if (k->n > 1)
		k->cost += SPACES;
	else if (next != RUN_WORD && next != RUN_PUNCT)
		k->cost += SPACES / 2;
}

static void
add_letter(struct counter *k, uint32_t c)
{
	bool upper = c >= 'A' && c <= 'Z';

	/* A capital behind a small letter begins a word. */
	if (k->n > 1 && upper && !k->upper)
		k->n = 1;
	if (k->n == 1)
		k->cost += WORD;
	else if (k->n > WORD_LETTERS)
		k->more++;
	k->letters++;
	k->accents += c >= 0x80;
	if (k->n > 1 && upper)
		k->cost += UPPER;
	k->upper = upper;
}

static void
add_char(struct counter *k, uint32_t c)
{
	enum run run = run_of(c);

	if (run != k->run) {
		end_spaces(k, run);
		k->run = run;
		k->n = 0;
	}
	k->n++;
	switch (run) {
	case RUN_WORD:
		add_letter(k, c);
		break;
	case RUN_DIGIT:
		k->cost += k->n % 3 == 1 ? UNIT : 0;
		break;
	case RUN_LINE:
		k->cost += k->n == 1 ? LINE : 0;
		break;
	case RUN_PUNCT:
		k->cost += k->n == 1 ? PUNCT : PUNCT_MORE;
		break;
	case RUN_OTHER:
		k->cost += cost_of(c);
		break;
	case RUN_SPACE:
	case RUN_NONE:
		break;
	}
}

/* Long words are cheap in English, which vocabularies know best.  Where one
 * letter in ACCENTS has an accent, it is another language. */
#define ACCENTS 40

static int64_t
cost_of_words(const struct counter *k)
{
	int64_t foreign = k->accents * ACCENTS;

	if (k->letters == 0)
		return 0;
	if (foreign > k->letters)
		foreign = k->letters;
	return k->accents * ACCENT + k->more * WORD_MORE +
	    k->more * FOREIGN * foreign / k->letters;
}

/* --- characters ----------------------------------------------------------- */

static uint32_t
hex4(const unsigned char *p)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < 4; i++)
		v = v << 4 |
		    (uint32_t)(p[i] <= '9' ? p[i] - '0' :
					     (p[i] | 0x20) - 'a' + 10);
	return v;
}

/* The character of the escape at 'p', whose size goes to *n.  A surrogate is
 * half of a rare one. */
static uint32_t
escaped(const unsigned char *p, size_t left, size_t *n)
{
	uint32_t c = left > 1 ? p[1] : '\\';

	*n = left > 1 ? 2 : 1;
	if (c == 'u' && left >= 6) {
		*n = 6;
		c = hex4(p + 2);
		if (c >= 0xd800 && c < 0xdc00 && left >= 12 && p[6] == '\\') {
			*n = 12;
			c = 0x10000;
		}
		return c;
	}
	return c == 'n' || c == 'r' || c == 't' ? '\n' : c;
}

/* The character at 'p', of several bytes; ill-formed text is counted by its
 * bytes. */
static uint32_t
wide(const unsigned char *p, size_t left, size_t *n)
{
	size_t size = p[0] >= 0xf0 ? 4 :
	    p[0] >= 0xe0	   ? 3 :
	    p[0] >= 0xc0	   ? 2 :
				     1;
	uint32_t c = p[0] & (0xffu >> (size + 1));

	*n = 1;
	if (size == 1 || size > left)
		return 0x80;
	for (size_t i = 1; i < size; i++)
		c = c << 6 | (p[i] & 0x3f);
	*n = size;
	return c;
}

int64_t
hf_tokens(struct hf_str text)
{
	const unsigned char *p = (const unsigned char *)text.p;
	struct counter k = { 0 };
	size_t i = 0, n;
	uint32_t c;

	while (i < text.size) {
		n = 1;
		c = p[i];
		if (c == '\\')
			c = escaped(p + i, text.size - i, &n);
		else if (c >= 0x80)
			c = wide(p + i, text.size - i, &n);
		add_char(&k, c);
		i += n;
	}
	end_spaces(&k, RUN_NONE);
	return (k.cost + cost_of_words(&k) + UNIT - 1) / UNIT;
}

int64_t
hf_tokens_item(const struct hf_item *item)
{
	/* The names of the members stand for what is around it. */
	return hf_tokens(item->has_heard ? item->heard : item->body);
}
