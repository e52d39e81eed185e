/*
 * The splice and the release gate.  Any split of Q gives the same text.  What
 * goes out is the end of Q, perhaps after one space; what was cut of Q is
 * white space, an ellipsis, or something that the client has as the end of P.
 * Words are not glued, sequences not cut.
 *
 * Input: a byte for the mode, two for the split, P, a byte 1, Q.  They may be
 * any bytes, although decoders give UTF-8 only: a split never makes the
 * difference.
 */
#include <config.h>

#include "gateway/turn/chars.h"
#include "gateway/turn/splice.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "splice";

static void
run(enum hf_splice_mode mode, struct hf_str before, struct hf_str q,
    uint32_t seed, struct hf_buf *out)
{
	struct hf_splice s;
	char *piece;
	size_t n;

	hf_splice_init(&s, mode, before);
	while (q.size > 0) {
		if (seed == 0) {
			hf_splice_feed(&s, q, out);
			break;
		}
		if (seed == 1)
			piece = memcpy(malloc(1), q.p, n = 1);
		else
			piece = fuzz_piece(&seed, q.p, q.size, &n);
		hf_splice_feed(&s, (struct hf_str){ piece, n }, out);
		free(piece);
		q.p += n;
		q.size -= n;
	}
	hf_splice_end(&s, out);
	hf_splice_free(&s);
	FUZZ_CHECK(hf_buf_ok(out));
}

static bool
ends_with(struct hf_str s, struct hf_str end)
{
	return s.size >= end.size &&
	    (end.size == 0 ||
		memcmp(s.p + s.size - end.size, end.p, end.size) == 0);
}

/* White space folded, none at the end; an ellipsis at the front left out. */
static void
normal(struct hf_str s, bool lead, struct hf_buf *to)
{
	bool space = false;
	struct hf_char c;
	uint32_t dot = 0;
	size_t at, n = 0;

	for (at = 0; at < s.size; at += c.size) {
		c = hf_char_at(s, at);
		if (c.kind != HF_CHAR_SPACE)
			break;
	}
	for (size_t i = at; lead && i < s.size; i += c.size, n++) {
		c = hf_char_at(s, i);
		dot = n == 0 ? c.cp : dot;
		if (c.cp != dot || (dot != '.' && dot != 0x2026))
			break;
	}
	if (n >= (dot == '.' ? 3 : 1))
		at += n * (dot == '.' ? 1 : 3);
	for (; at < s.size; at += c.size) {
		c = hf_char_at(s, at);
		if (c.kind == HF_CHAR_SPACE) {
			space = true;
			continue;
		}
		if (space && to->size > 0)
			hf_buf_putc(to, ' ');
		space = false;
		hf_buf_put(to, s.p + at, c.size);
	}
}

static bool
is_valid(struct hf_str s)
{
	struct hf_char c;

	for (size_t at = 0; at < s.size; at += c.size) {
		c = hf_char_at(s, at);
		if (c.size == 1 && (unsigned char)s.p[at] >= 0x80)
			return false;
	}
	return true;
}

static bool
is_word_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* 'out' is what Q became after P. */
static void
check(struct hf_str p, struct hf_str q, struct hf_str out)
{
	struct hf_str end = out, cut;
	struct hf_buf whole, has, lost;

	if (!ends_with(q, end)) {
		FUZZ_CHECK(end.size > 0 && end.p[0] == ' ');
		end = (struct hf_str){ end.p + 1, end.size - 1 };
		FUZZ_CHECK(ends_with(q, end));
	}
	cut = (struct hf_str){ q.p, q.size - end.size };
	hf_buf_init(&whole, HF_BUF_NOCAP);
	hf_buf_init(&has, HF_BUF_NOCAP);
	hf_buf_init(&lost, HF_BUF_NOCAP);
	/* One dot of an ellipsis that begins P may begin an end of P. */
	normal(p, false, &whole);
	normal(p, true, &has);
	normal(cut, true, &lost);
	FUZZ_CHECK(ends_with(hf_buf_str(&whole), hf_buf_str(&lost)));
	if (p.size > 0 && out.size > 0 && is_word_byte(p.p[p.size - 1]) &&
	    is_word_byte(out.p[0]))
		FUZZ_CHECK(hf_str_eq(hf_buf_str(&has), hf_buf_str(&lost)));
	if (is_valid(p) && is_valid(q) && out.size > 0)
		FUZZ_CHECK(((unsigned char)out.p[0] & 0xc0) != 0x80);
	hf_buf_free(&whole);
	hf_buf_free(&has);
	hf_buf_free(&lost);
}

static bool
is_blank(struct hf_str s)
{
	struct hf_char c;

	for (size_t at = 0; at < s.size; at += c.size) {
		c = hf_char_at(s, at);
		if (c.kind != HF_CHAR_SPACE)
			return false;
	}
	return true;
}

/* Nothing is put between, and only what P has at its end is cut. */
static void
check_prefilled(struct hf_str p, struct hf_str q, struct hf_str out)
{
	struct hf_str cut = { q.p, q.size - out.size };

	FUZZ_CHECK(ends_with(q, out) && is_blank(cut));
	if (cut.size > 0)
		FUZZ_CHECK(p.size > 0 &&
		    hf_char_before(p, p.size).kind == HF_CHAR_SPACE);
}

static void
check_release(struct hf_str text, bool valid)
{
	size_t n, had = 0;

	for (int m = HF_RELEASE_CLAUSE; m >= HF_RELEASE_TOKEN; m--) {
		n = hf_release_pass((enum hf_release_mode)m, text);
		/* The more eager gate lets at least as much pass. */
		FUZZ_CHECK(n <= text.size && n >= had);
		had = n;
		if (valid && n < text.size)
			FUZZ_CHECK(((unsigned char)text.p[n] & 0xc0) != 0x80);
		FUZZ_CHECK(
		    hf_release_pass((enum hf_release_mode)m,
			(struct hf_str){ text.p + n, text.size - n }) == 0);
	}
	FUZZ_CHECK(text.size - had <= 3);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum hf_splice_mode mode;
	struct hf_buf whole, split;
	struct hf_str p, q;
	const char *sep;
	uint32_t seed;

	if (size < 3)
		return 0;
	mode = (enum hf_splice_mode)(data[0] % 3);
	seed = 2 + (uint32_t)data[1] + ((uint32_t)data[2] << 8);
	p = (struct hf_str){ (const char *)data + 3, size - 3 };
	sep = p.size == 0 ? NULL : memchr(p.p, 1, p.size);
	if (sep == NULL)
		return 0;
	q = (struct hf_str){ sep + 1, (size_t)(p.p + p.size - sep) - 1 };
	p.size = (size_t)(sep - p.p);
	check_release(q, is_valid(q));
	hf_buf_init(&whole, HF_BUF_NOCAP);
	hf_buf_init(&split, HF_BUF_NOCAP);
	run(mode, p, q, 0, &whole);
	run(mode, p, q, 1, &split);
	FUZZ_CHECK(hf_str_eq(hf_buf_str(&whole), hf_buf_str(&split)));
	hf_buf_reset(&split);
	run(mode, p, q, seed, &split);
	FUZZ_CHECK(hf_str_eq(hf_buf_str(&whole), hf_buf_str(&split)));
	if (mode == HF_SPLICE_PREFILL || p.size == 0)
		check_prefilled(p, q, hf_buf_str(&whole));
	else
		check(p, q, hf_buf_str(&whole));
	hf_buf_free(&whole);
	hf_buf_free(&split);
	return 0;
}
