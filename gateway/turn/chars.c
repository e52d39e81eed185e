/*
 * UTF-8 decoding and the kinds of characters.
 */
#include <config.h>

#include "gateway/turn/chars.h"

#define BAD 0xfffdu

struct range {
	uint32_t from, to;
	enum hf_char_kind kind;
};

/* Above ASCII, in order; what is in none is a letter. */
static const struct range ranges[] = {
	{ 0x85, 0x85, HF_CHAR_SPACE },
	{ 0xa0, 0xa0, HF_CHAR_SPACE },
	{ 0xa1, 0xa9, HF_CHAR_PUNCT },
	{ 0xab, 0xb4, HF_CHAR_PUNCT },
	{ 0xb6, 0xb9, HF_CHAR_PUNCT },
	{ 0xbb, 0xbf, HF_CHAR_PUNCT },
	{ 0x60c, 0x60c, HF_CHAR_PUNCT },
	{ 0x61b, 0x61b, HF_CHAR_PUNCT },
	{ 0x61f, 0x61f, HF_CHAR_PUNCT },
	{ 0x964, 0x965, HF_CHAR_PUNCT },
	{ 0xe01, 0xeff, HF_CHAR_WIDE },	  /* Thai, Lao */
	{ 0x1000, 0x109f, HF_CHAR_WIDE }, /* Myanmar */
	{ 0x1780, 0x17ff, HF_CHAR_WIDE }, /* Khmer */
	{ 0x2000, 0x200a, HF_CHAR_SPACE },
	{ 0x2010, 0x2027, HF_CHAR_PUNCT },
	{ 0x2028, 0x2029, HF_CHAR_SPACE },
	{ 0x202f, 0x202f, HF_CHAR_SPACE },
	{ 0x2030, 0x205e, HF_CHAR_PUNCT },
	{ 0x205f, 0x205f, HF_CHAR_SPACE },
	{ 0x2e00, 0x2e7f, HF_CHAR_PUNCT },
	{ 0x2e80, 0x2fff, HF_CHAR_WIDE },
	{ 0x3000, 0x3000, HF_CHAR_SPACE },
	{ 0x3001, 0x3004, HF_CHAR_WIDE_PUNCT },
	{ 0x3005, 0x3007, HF_CHAR_WIDE },
	{ 0x3008, 0x3020, HF_CHAR_WIDE_PUNCT },
	{ 0x3021, 0x312f, HF_CHAR_WIDE }, /* kana, bopomofo */
	{ 0x3190, 0x9fff, HF_CHAR_WIDE }, /* ideographs */
	{ 0xf900, 0xfaff, HF_CHAR_WIDE },
	{ 0xfe30, 0xfe4f, HF_CHAR_WIDE_PUNCT },
	{ 0xff01, 0xff0f, HF_CHAR_WIDE_PUNCT },
	{ 0xff10, 0xff19, HF_CHAR_WIDE },
	{ 0xff1a, 0xff20, HF_CHAR_WIDE_PUNCT },
	{ 0xff21, 0xff3a, HF_CHAR_WIDE },
	{ 0xff3b, 0xff40, HF_CHAR_WIDE_PUNCT },
	{ 0xff41, 0xff5a, HF_CHAR_WIDE },
	{ 0xff5b, 0xff65, HF_CHAR_WIDE_PUNCT },
	{ 0xff66, 0xff9f, HF_CHAR_WIDE },
	{ 0x20000, 0x3ffff, HF_CHAR_WIDE },
};

static enum hf_char_kind
kind_of(uint32_t cp)
{
	if (cp < 0x80) {
		if (cp == ' ' || (cp >= '\t' && cp <= '\r'))
			return HF_CHAR_SPACE;
		if ((cp >= '0' && cp <= '9') ||
		    ((cp | 0x20) >= 'a' && (cp | 0x20) <= 'z') || cp == '_')
			return HF_CHAR_LETTER;
		return HF_CHAR_PUNCT;
	}
	for (size_t i = 0; i < hf_countof(ranges) && cp >= ranges[i].from; i++)
		if (cp <= ranges[i].to)
			return ranges[i].kind;
	return HF_CHAR_LETTER;
}

/* Bytes that a sequence with this first byte has; 0: none begins so. */
static uint32_t
sequence(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* May 'c' be the byte at 'i' (1 is the second) after 'first'? */
static bool
continues(unsigned char first, uint32_t i, unsigned char c)
{
	if (c < 0x80 || c > 0xbf)
		return false;
	if (i != 1)
		return true;
	return !(first == 0xe0 && c < 0xa0) && !(first == 0xed && c > 0x9f) &&
	    !(first == 0xf0 && c < 0x90) && !(first == 0xf4 && c > 0x8f);
}

/* How many of the bytes at 'p' go together as one sequence, up to 'want'. */
static uint32_t
fitting(const unsigned char *p, size_t left, uint32_t want)
{
	uint32_t n = 1;

	while (n < want && n < left && continues(p[0], n, p[n]))
		n++;
	return n;
}

struct hf_char
hf_char_at(struct hf_str s, size_t at)
{
	const unsigned char *p = (const unsigned char *)s.p + at;
	uint32_t want = sequence(*p);
	uint32_t cp;

	if (want == 0 || fitting(p, s.size - at, want) < want)
		return (struct hf_char){ BAD, 1, HF_CHAR_LETTER };
	cp = want == 1 ? *p : *p & (0x7fu >> want);
	for (uint32_t i = 1; i < want; i++)
		cp = cp << 6 | (p[i] & 0x3f);
	return (struct hf_char){ cp, want, kind_of(cp) };
}

struct hf_char
hf_char_before(struct hf_str s, size_t at)
{
	struct hf_str upto = { s.p, at };
	struct hf_char c;

	for (size_t n = at < 4 ? at : 4; n > 0; n--) {
		c = hf_char_at(upto, at - n);
		if (c.size == n)
			return c;
	}
	return (struct hf_char){ BAD, 1, HF_CHAR_LETTER };
}

size_t
hf_char_whole(struct hf_str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	uint32_t want;

	for (size_t n = 1; n <= 3 && n <= s.size; n++) {
		want = sequence(p[s.size - n]);
		if (want == 0)
			continue;
		if (want > n && fitting(p + s.size - n, n, want) == n)
			return s.size - n;
		break;
	}
	return s.size;
}
