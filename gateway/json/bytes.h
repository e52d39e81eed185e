/*
 * Byte work that the files of this folder share: long runs of plain string
 * bytes 16 (SSE2) or 8 at a time, UTF-8 sequences, escapes.  Private to
 * gateway/json.
 */
#ifndef HF_GATEWAY_JSON_BYTES_H
#define HF_GATEWAY_JSON_BYTES_H

#include "base/hf.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define HF_UTF8_BAD 0xfffdu /* replacement character */

/* A byte that may stand in a JSON string as it is and is ASCII. */
static inline bool
hf_json_plain_byte(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Eight bytes at a time, for machines without SSE2: a nonzero result has its
 * lowest set high bit in the first byte that is '"', '\\' or not in
 * 0x20..0x7f (bytes above it may be wrong, hence the byte loop after it). */
static inline uint64_t
hf_json_swar_odd(uint64_t v)
{
	const uint64_t ones = 0x0101010101010101ull;
	const uint64_t high = 0x8080808080808080ull;
	uint64_t quote = v ^ (ones * '"');
	uint64_t slash = v ^ (ones * '\\');
	uint64_t r;

	r = v | (v - ones * 0x20);
	r |= (quote - ones) & ~quote;
	r |= (slash - ones) & ~slash;
	return r & high;
}

static inline const char *
hf_json_skip_plain_swar(const char *p, const char *end)
{
	uint64_t v;

	while (end - p >= 8) {
		memcpy(&v, p, sizeof(v));
		if (hf_json_swar_odd(v) != 0)
			break;
		p += 8;
	}
	while (p < end && hf_json_plain_byte((unsigned char)*p))
		p++;
	return p;
}

/* First byte at or after 'p' that is '"', '\\', a control or not ASCII. */
static inline const char *
hf_json_skip_plain(const char *p, const char *end)
{
#if defined(__SSE2__)
	const __m128i quote = _mm_set1_epi8('"');
	const __m128i slash = _mm_set1_epi8('\\');
	const __m128i space = _mm_set1_epi8(0x20);
	__m128i v, odd;
	int mask;

	while (end - p >= 16) {
		memcpy(&v, p, sizeof(v));
		/* Signed: bytes from 0x80 on are negative, so they count. */
		odd = _mm_or_si128(_mm_cmplt_epi8(v, space),
		    _mm_or_si128(
			_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)));
		mask = _mm_movemask_epi8(odd);
		if (mask != 0)
			return p + __builtin_ctz((unsigned)mask);
		p += 16;
	}
	while (p < end && hf_json_plain_byte((unsigned char)*p))
		p++;
	return p;
#else
	return hf_json_skip_plain_swar(p, end);
#endif
}

/* Past the first quote at or after 'p' that ends a checked string: one behind
 * an even number of backslashes.  'open' is the first byte of the string. */
static inline const char *
hf_json_find_quote(const char *open, const char *p, const char *end)
{
	const char *quote, *s;

	for (; p < end; p = quote + 1) {
		quote = memchr(p, '"', (size_t)(end - p));
		if (quote == NULL)
			break;
		for (s = quote; s > open && s[-1] == '\\'; s--)
			;
		if ((quote - s) % 2 == 0)
			return quote + 1;
	}
	return end;
}

/* End of a checked string whose opening quote is at 'p': past the closing
 * one.  Keys and other short strings end within the first 16 bytes; *plain
 * says of such a one that it holds no escape, and is false otherwise. */
static inline const char *
hf_json_skip_short(const char *p, const char *end, bool *plain)
{
	const char *open = ++p;

	*plain = false;
#if defined(__SSE2__)
	if (end - p >= 16) {
		__m128i v;
		int quote, slash;

		memcpy(&v, p, sizeof(v));
		quote =
		    _mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')));
		slash =
		    _mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
		if (slash == 0 && quote != 0) {
			*plain = true;
			return p + __builtin_ctz((unsigned)quote) + 1;
		}
		if (slash == 0)
			p += 16;
	}
#endif
	return hf_json_find_quote(open, p, end);
}

static inline const char *
hf_json_skip_string(const char *p, const char *end)
{
	bool plain;

	return hf_json_skip_short(p, end, &plain);
}

static inline bool
hf_json_is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline const char *
hf_json_skip_space(const char *p, const char *end)
{
	while (p < end && hf_json_is_space(*p))
		p++;
	return p;
}

static inline int
hf_json_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Length of the well-formed UTF-8 sequence at 'p' (no overlong form, no
 * surrogate, nothing above U+10FFFF), or 0. */
static inline size_t
hf_utf8_size(const char *s, const char *end)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t left = (size_t)(end - s);
	unsigned char lo = 0x80, hi = 0xbf;

	if (left == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	/* Most of what is not ASCII. */
	if (left >= 3 && p[0] >= 0xe1 && p[0] <= 0xec &&
	    (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80)
		return 3;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	if (p[0] == 0xe0)
		lo = 0xa0;
	else if (p[0] == 0xed)
		hi = 0x9f;
	else if (p[0] == 0xf0)
		lo = 0x90;
	else if (p[0] == 0xf4)
		hi = 0x8f;
	if (left < 2 || p[1] < lo || p[1] > hi)
		return 0;
	if (p[0] < 0xe0)
		return 2;
	if (left < 3 || (p[2] & 0xc0) != 0x80)
		return 0;
	if (p[0] < 0xf0)
		return 3;
	return left < 4 || (p[3] & 0xc0) != 0x80 ? 0 : 4;
}

/* Encode a scalar value; returns the number of bytes. */
static inline size_t
hf_utf8_put(char out[4], uint32_t cp)
{
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xc0 | cp >> 6);
		out[1] = (char)(0x80 | (cp & 0x3f));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (char)(0xe0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
		out[2] = (char)(0x80 | (cp & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	out[3] = (char)(0x80 | (cp & 0x3f));
	return 4;
}

/*
 * The escape at 'p' (a backslash): bytes it takes and its character in *cp;
 * a surrogate pair is one escape of 12 bytes; a lone surrogate gives
 * HF_UTF8_BAD and *lone.  0: not an escape.
 */
size_t hf_json_escape(const char *p, const char *end, uint32_t *cp, bool *lone);

#endif
