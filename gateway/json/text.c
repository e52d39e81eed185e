/*
 * The text inside JSON strings: escapes, decoding, comparing, writing.
 */
#include <config.h>

#include "gateway/json/scan.h"

#include "gateway/json/bytes.h"

static int
hex4(const char *p, const char *end)
{
	int i, d, v = 0;

	if (end - p < 4)
		return -1;
	for (i = 0; i < 4; i++) {
		d = hf_json_hex(p[i]);
		if (d < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

static size_t
unicode_escape(const char *p, const char *end, uint32_t *cp, bool *lone)
{
	int hi = hex4(p + 2, end), lo = -1;

	if (hi < 0)
		return 0;
	*cp = (uint32_t)hi;
	if (hi < 0xd800 || hi > 0xdfff)
		return 6;
	if (hi < 0xdc00 && end - p >= 12 && p[6] == '\\' && p[7] == 'u')
		lo = hex4(p + 8, end);
	if (lo >= 0xdc00 && lo <= 0xdfff) {
		*cp = 0x10000 + ((uint32_t)(hi - 0xd800) << 10) +
		    (uint32_t)(lo - 0xdc00);
		return 12;
	}
	*cp = HF_UTF8_BAD;
	*lone = true;
	return 6;
}

size_t
hf_json_escape(const char *p, const char *end, uint32_t *cp, bool *lone)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *hit;

	*lone = false;
	if (end - p < 2)
		return 0;
	if (p[1] == 'u')
		return unicode_escape(p, end, cp, lone);
	hit = p[1] == '\0' ? NULL : strchr(from, p[1]);
	if (hit == NULL)
		return 0;
	*cp = (unsigned char)to[hit - from];
	return 2;
}

/* The text between the quotes. */
static struct hf_str
inside(struct hf_json s)
{
	if (s.type != HF_JSON_STRING || s.raw.size < 2)
		return HF_STR("");
	return (struct hf_str){ s.raw.p + 1, s.raw.size - 2 };
}

bool
hf_json_is_plain(struct hf_json string)
{
	struct hf_str s = inside(string);

	return s.size == 0 || memchr(s.p, '\\', s.size) == NULL;
}

/* The character of a two-byte escape, or 0. */
static char
short_escape(char c)
{
	switch (c) {
	case 'n':
		return '\n';
	case '"':
	case '\\':
	case '/':
		return c;
	case 't':
		return '\t';
	case 'r':
		return '\r';
	default:
		return 0; /* the rare ones: see hf_json_escape() */
	}
}

/* Nothing becomes longer: written in place, into room for all of it. */
void
hf_json_decode(struct hf_json string, struct hf_buf *out)
{
	struct hf_str s = inside(string);
	const char *p = s.p, *end = s.p + s.size, *slash;
	char *to;
	uint32_t cp;
	bool lone;
	size_t n;

	if (s.size == 0 || (to = hf_buf_reserve(out, s.size)) == NULL)
		return;
	if (string.node != NULL && string.node->plain) {
		memcpy(to, s.p, s.size);
		return;
	}
	while (p < end) {
		slash = memchr(p, '\\', (size_t)(end - p));
		n = (size_t)((slash == NULL ? end : slash) - p);
		memcpy(to, p, n);
		to += n;
		if (slash == NULL)
			break;
		if (end - slash >= 2 && (*to = short_escape(slash[1])) != 0) {
			to++;
			p = slash + 2;
			continue;
		}
		n = hf_json_escape(slash, end, &cp, &lone);
		if (n == 0)
			break; /* not checked text */
		to += hf_utf8_put(to, cp);
		p = slash + n;
	}
	out->size = (size_t)(to - out->data);
	out->data[out->size] = '\0';
}

bool
hf_json_string_is(struct hf_json string, const char *z)
{
	struct hf_str s = inside(string);
	const char *p = s.p, *end = s.p + s.size;
	size_t left = strlen(z), n, m;
	char utf8[4];
	uint32_t cp;
	bool lone;

	if (string.type != HF_JSON_STRING)
		return false;
	while (p < end) {
		if (*p != '\\') {
			if (left == 0 || *p != *z)
				return false;
			p++;
			z++;
			left--;
			continue;
		}
		n = hf_json_escape(p, end, &cp, &lone);
		if (n == 0)
			return false;
		m = hf_utf8_put(utf8, cp);
		if (m > left || memcmp(utf8, z, m) != 0)
			return false;
		p += n;
		z += m;
		left -= m;
	}
	return left == 0;
}

bool
hf_json_key_is(struct hf_json key, const char *z)
{
	return hf_json_string_is(key, z);
}

static void
put_escaped(struct hf_buf *out, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	char u[6] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };

	switch (c) {
	case '"':
		hf_buf_put(out, "\\\"", 2);
		break;
	case '\\':
		hf_buf_put(out, "\\\\", 2);
		break;
	case '\n':
		hf_buf_put(out, "\\n", 2);
		break;
	case '\r':
		hf_buf_put(out, "\\r", 2);
		break;
	case '\t':
		hf_buf_put(out, "\\t", 2);
		break;
	default:
		hf_buf_put(out, u, sizeof(u));
		break;
	}
}

void
hf_json_put_string(struct hf_buf *out, struct hf_str text)
{
	const char *p = text.p, *end, *run;
	size_t n;

	hf_buf_putc(out, '"');
	end = text.size == 0 ? p : p + text.size;
	while (p < end) {
		run = p;
		p = hf_json_skip_plain(p, end);
		while (p < end && (unsigned char)*p >= 0x80 &&
		    (n = hf_utf8_size(p, end)) > 0)
			p += n;
		hf_buf_put(out, run, (size_t)(p - run));
		if (p == end || p > run)
			continue;
		if ((unsigned char)*p >= 0x80)
			hf_buf_put(out, "\xef\xbf\xbd", 3);
		else
			put_escaped(out, (unsigned char)*p);
		p++;
	}
	hf_buf_putc(out, '"');
}

void
hf_json_put_repaired(struct hf_buf *out, struct hf_json value)
{
	const char *p = value.raw.p, *run = p, *end, *slash;
	uint32_t cp;
	bool lone;
	size_t n;

	if (value.raw.size == 0)
		return;
	if (value.node != NULL && value.node->plain) {
		hf_buf_putstr(out, value.raw);
		return;
	}
	end = p + value.raw.size;
	/* In checked text a backslash stands in strings only, and only what
	 * begins with \u can be a surrogate. */
	while ((slash = memchr(p, '\\', (size_t)(end - p))) != NULL) {
		if (end - slash < 2 || slash[1] != 'u') {
			p = end - slash < 2 ? end : slash + 2;
			continue;
		}
		n = hf_json_escape(slash, end, &cp, &lone);
		p = slash + (n == 0 ? 2 : n);
		if (n == 0 || !lone)
			continue;
		hf_buf_put(out, run, (size_t)(slash - run));
		hf_buf_put(out, "\\ufffd", 6);
		run = p;
	}
	hf_buf_put(out, run, (size_t)(end - run));
}

void
hf_json_put_compact(struct hf_buf *out, struct hf_json v)
{
	const char *p = v.raw.p, *end, *run = p;

	if (v.raw.size == 0)
		return;
	end = p + v.raw.size;
	while (p < end) {
		if (*p == '"') {
			p = hf_json_skip_string(p, end);
		} else if (hf_json_is_space(*p)) {
			hf_buf_put(out, run, (size_t)(p - run));
			p = hf_json_skip_space(p, end);
			run = p;
		} else {
			p++;
		}
	}
	if (end > run)
		hf_buf_put(out, run, (size_t)(end - run));
}
