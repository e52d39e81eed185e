/*
 * Strict check of HTTP/1.x request heads (RFC 9112, without its leniencies):
 * CRLF line ends only, no folding, no control bytes, token names, one Host,
 * one Content-Length of digits, no Transfer-Encoding.  Whatever two readers
 * could understand differently is refused.  Loop thread; calls nothing.
 */
#include <config.h>

#include "gateway/front/head.h"

#include <strings.h>

static void check_head(struct hf_http_head *h);

void
hf_http_head_init(struct hf_http_head *h)
{
	memset(h, 0, offsetof(struct hf_http_head, field));
	hf_buf_init(&h->raw, HF_HTTP_HEAD_MAX);
	h->n_field = 0;
	h->body_size = -1;
}

void
hf_http_head_free(struct hf_http_head *h)
{
	if (h != NULL)
		hf_buf_free(&h->raw);
}

static void
refuse(struct hf_http_head *h, int status, const char *why)
{
	h->done = true;
	h->status = status;
	h->why = why;
}

size_t
hf_http_head_feed(struct hf_http_head *h, struct hf_str bytes)
{
	size_t taken = 0;

	while (!h->done && taken < bytes.size) {
		const char *p = bytes.p + taken;
		const char *lf = memchr(p, '\n', bytes.size - taken);
		size_t n =
		    lf == NULL ? bytes.size - taken : (size_t)(lf - p) + 1;

		hf_buf_put(&h->raw, p, n);
		taken += n;
		if (!hf_buf_ok(&h->raw)) {
			refuse(h, 400, "request header too large");
			break;
		}
		if (lf == NULL)
			break;
		n = h->raw.size - h->line;
		if (n < 2 || h->raw.data[h->raw.size - 2] != '\r')
			refuse(h, 400, "line does not end with CRLF");
		else if (n == 2)
			check_head(h);
		h->line = h->raw.size;
	}
	return taken;
}

static bool
name_is(struct hf_str s, const char *name)
{
	return s.size == strlen(name) && strncasecmp(s.p, name, s.size) == 0;
}

struct hf_str
hf_http_head_find(const struct hf_http_head *h, const char *name)
{
	for (unsigned i = 0; i < h->n_field; i++)
		if (name_is(h->field[i].name, name))
			return h->field[i].value;
	return HF_STR_NONE;
}

unsigned
hf_http_head_count(const struct hf_http_head *h, const char *name)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->n_field; i++)
		n += name_is(h->field[i].name, name);
	return n;
}

static bool
is_alnum(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
	    (c >= 'a' && c <= 'z');
}

bool
hf_token_valid(struct hf_str s)
{
	for (size_t i = 0; i < s.size; i++)
		if (s.p[i] == '\0' ||
		    (!is_alnum((unsigned char)s.p[i]) &&
			strchr("!#$%&'*+-.^_`|~", s.p[i]) == NULL))
			return false;
	return s.size > 0;
}

bool
hf_field_value_valid(struct hf_str s)
{
	for (size_t i = 0; i < s.size; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

long
hf_path_decode(struct hf_str in, char *out)
{
	size_t n = 0, seg = 0;

	for (size_t i = 0; i < in.size; i++) {
		char c = in.p[i];

		if (c == '%') {
			int hi = i + 2 < in.size ? hex(in.p[i + 1]) : -1;
			int lo = i + 2 < in.size ? hex(in.p[i + 2]) : -1;

			if (hi < 0 || lo < 0 || (hi | lo) == 0)
				return -1;
			c = (char)(hi << 4 | lo);
			i += 2;
		}
		out[n++] = c;
	}
	out[n] = '\0';
	for (size_t i = 0; i <= n; i++) {
		if (i < n && out[i] != '/')
			continue;
		if (i - seg == 2 && out[seg] == '.' && out[seg + 1] == '.')
			return -1;
		seg = i + 1;
	}
	return (long)n;
}

static struct hf_str
cut(struct hf_str *s, char at)
{
	const char *p = s->size == 0 ? NULL : memchr(s->p, at, s->size);
	struct hf_str head;

	if (p == NULL)
		return HF_STR_NONE;
	head = (struct hf_str){ s->p, (size_t)(p - s->p) };
	*s = (struct hf_str){ p + 1, s->size - head.size - 1 };
	return head;
}

static bool
escapes_valid(struct hf_str s)
{
	for (size_t i = 0; i < s.size; i++)
		if (s.p[i] == '%' &&
		    (i + 2 >= s.size || hex(s.p[i + 1]) < 0 ||
			hex(s.p[i + 2]) < 0 ||
			(hex(s.p[i + 1]) | hex(s.p[i + 2])) == 0))
			return false;
	return true;
}

/* "METHOD SP origin-form SP HTTP/1.x": nothing else. */
static const char *
check_request_line(struct hf_http_head *h, struct hf_str line)
{
	struct hf_str target;

	h->method = cut(&line, ' ');
	target = cut(&line, ' ');
	if (!hf_token_valid(h->method) || target.size == 0)
		return "malformed request line";
	if (hf_str_is(line, "HTTP/1.1"))
		h->minor = 1;
	else if (!hf_str_is(line, "HTTP/1.0"))
		return "unsupported HTTP version";
	for (size_t i = 0; i < target.size; i++)
		if (target.p[i] <= 0x20 || target.p[i] == 0x7f ||
		    target.p[i] == '#')
			return "invalid byte in the request target";
	if (target.p[0] != '/' || (target.size > 1 && target.p[1] == '/'))
		return "request target must be a path";
	if (!escapes_valid(target))
		return "invalid escape in the request target";
	h->query = target;
	h->path = cut(&h->query, '?');
	if (h->path.p == NULL) {
		h->path = target;
		h->query = HF_STR_NONE;
	}
	return NULL;
}

static const char *
check_field(struct hf_http_head *h, struct hf_str line)
{
	struct hf_http_head_field *f = &h->field[h->n_field];

	if (line.p[0] == ' ' || line.p[0] == '\t')
		return "folded header line";
	if (h->n_field == HF_HTTP_HEAD_FIELDS)
		return "too many header fields";
	f->name = cut(&line, ':');
	if (!hf_token_valid(f->name))
		return "invalid header name";
	while (line.size > 0 && (line.p[0] == ' ' || line.p[0] == '\t'))
		line.p++, line.size--;
	while (line.size > 0 &&
	    (line.p[line.size - 1] == ' ' || line.p[line.size - 1] == '\t'))
		line.size--;
	if (!hf_field_value_valid(line))
		return "control byte in a header value";
	f->value = line;
	h->n_field++;
	return NULL;
}

static const char *
check_host(const struct hf_http_head *h)
{
	unsigned n = hf_http_head_count(h, "Host");
	struct hf_str v = hf_http_head_find(h, "Host");

	if (n > 1 || (n == 0 && h->minor > 0))
		return "exactly one Host header is required";
	for (size_t i = 0; i < v.size; i++)
		if (!is_alnum((unsigned char)v.p[i]) &&
		    (v.p[i] == '\0' || strchr(".-_:[]%~", v.p[i]) == NULL))
			return "invalid Host header";
	return n == 1 && v.size == 0 ? "empty Host header" : NULL;
}

static const char *
check_length(struct hf_http_head *h)
{
	unsigned n = hf_http_head_count(h, "Content-Length");
	struct hf_str v = hf_http_head_find(h, "Content-Length");

	if (n == 0)
		return NULL;
	if (n > 1 || v.size == 0 || v.size > 18)
		return "exactly one Content-Length is allowed";
	h->body_size = 0;
	for (size_t i = 0; i < v.size; i++) {
		if (v.p[i] < '0' || v.p[i] > '9')
			return "Content-Length must be digits";
		h->body_size = h->body_size * 10 + (v.p[i] - '0');
	}
	/* evhttp reads no body for HEAD: it would become the next request. */
	if (h->body_size > 0 && hf_str_is(h->method, "HEAD"))
		return "HEAD with a body";
	return NULL;
}

/* True if the comma-separated list holds this token. */
static bool
list_has(struct hf_str list, const char *token)
{
	while (list.size > 0) {
		struct hf_str rest = list, item = cut(&rest, ',');

		if (item.p == NULL)
			item = list, rest = HF_STR_NONE;
		while (item.size > 0 && (item.p[0] == ' ' || item.p[0] == '\t'))
			item.p++, item.size--;
		while (item.size > 0 &&
		    (item.p[item.size - 1] == ' ' ||
			item.p[item.size - 1] == '\t'))
			item.size--;
		if (name_is(item, token))
			return true;
		list = rest;
	}
	return false;
}

static void
check_fields(struct hf_http_head *h)
{
	struct hf_str te = hf_http_head_find(h, "Transfer-Encoding");
	const char *why;

	if ((why = check_host(h)) != NULL || (why = check_length(h)) != NULL) {
		refuse(h, 400, why);
	} else if (te.p != NULL) {
		/* Chunk framing is not visible here, so that two readers
		 * could differ about it; no client of ours needs it. */
		if (hf_http_head_count(h, "Transfer-Encoding") == 1 &&
		    h->body_size < 0 && h->minor > 0 && name_is(te, "chunked"))
			refuse(h, 411,
			    "chunked requests are not accepted; "
			    "send Content-Length");
		else
			refuse(h, 400, "invalid Transfer-Encoding");
	}
	for (unsigned i = 0; i < h->n_field; i++)
		if (name_is(h->field[i].name, "Connection") &&
		    list_has(h->field[i].value, "close"))
			h->close = true;
}

/* Every line in 'raw' ends with CRLF and the last one is empty. */
static void
check_head(struct hf_http_head *h)
{
	struct hf_str rest = hf_buf_str(&h->raw);
	const char *why = NULL;

	h->done = true;
	for (unsigned n = 0; why == NULL; n++) {
		struct hf_str line = cut(&rest, '\n');

		line.size--; /* the CR */
		if (line.size == 0 && n > 0)
			break;
		if (n == 0)
			why = check_request_line(h, line);
		else
			why = check_field(h, line);
	}
	if (why != NULL)
		refuse(h, 400, why);
	else
		check_fields(h);
}
