/*
 * Text for terminals.
 */
#include <config.h>

#include "ctl/escape.h"

#include <inttypes.h>

/* Decode one character of UTF-8 at 'p'; its size, or 0 if it is none
 * (overlong forms and surrogates are none). */
static size_t
decode(const unsigned char *p, size_t left, uint32_t *out)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = p[0] < 0x80	  ? 1 :
	    (p[0] & 0xe0) == 0xc0 ? 2 :
	    (p[0] & 0xf0) == 0xe0 ? 3 :
	    (p[0] & 0xf8) == 0xf0 ? 4 :
				    0;
	uint32_t c;

	if (n == 0 || n > left)
		return 0;
	c = n == 1 ? p[0] : p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*out = c;
	return n;
}

/* Characters that move, hide or reorder others. */
static bool
is_mark(uint32_t c)
{
	return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	    (c >= 0x2060 && c <= 0x206f) || c == 0x061c || c == 0xfeff ||
	    (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);
}

void
hf_ctl_escape(struct hf_buf *out, struct hf_str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t n, i = 0;
	uint32_t c = 0;

	while (i < s.size) {
		n = decode(p + i, s.size - i, &c);
		if (n == 0) {
			hf_buf_printf(out, "\\x%02x", p[i]);
			n = 1;
		} else if (c == '\n') {
			hf_buf_puts(out, "\\n");
		} else if (c == '\\') {
			hf_buf_puts(out, "\\\\");
		} else if (c < 0x20 || (c >= 0x7f && c < 0xa0)) {
			hf_buf_printf(out, "\\x%02x", (unsigned)c);
		} else if (is_mark(c)) {
			hf_buf_printf(out, "\\u{%04x}", (unsigned)c);
		} else {
			hf_buf_put(out, p + i, n);
		}
		i += n;
	}
}

size_t
hf_ctl_width(struct hf_str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.size; i++)
		n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
	return n;
}

void
hf_ctl_put_duration(struct hf_buf *out, int64_t us)
{
	int64_t s = us / 1000000;

	if (us < 1000)
		hf_buf_printf(out, "%" PRId64 "us", us);
	else if (us < 1000000)
		hf_buf_printf(out, "%.1fms", (double)us / 1e3);
	else if (s < 60)
		hf_buf_printf(out, "%.2fs", (double)us / 1e6);
	else if (s < 3600)
		hf_buf_printf(out, "%dm%02ds", (int)(s / 60), (int)(s % 60));
	else if (s < 86400)
		hf_buf_printf(
		    out, "%dh%02dm", (int)(s / 3600), (int)(s % 3600 / 60));
	else
		hf_buf_printf(out, "%" PRId64 "d%02dh", s / 86400,
		    (int)(s % 86400 / 3600));
}

void
hf_ctl_put_bytes(struct hf_buf *out, int64_t n)
{
	static const char units[] = "KMGTPE";
	double v = (double)n;
	int u = -1;

	while (v >= 1024 && u < 5) {
		v /= 1024;
		u++;
	}
	if (u < 0)
		hf_buf_printf(out, "%" PRId64, n);
	else
		hf_buf_printf(out, "%.1f%c", v, units[u]);
}
