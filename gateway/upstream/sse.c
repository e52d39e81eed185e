/*
 * Server-sent events, incrementally.  A line that lies whole in the bytes at
 * hand is handled in place; only a line cut by a read is copied.
 */
#include <config.h>

#include "gateway/upstream/sse.h"

void
hf_sse_init(struct hf_sse *s, size_t max, hf_sse_fn fn, void *arg)
{
	*s = (struct hf_sse){ .fn = fn, .arg = arg, .retry_ms = -1 };
	hf_buf_init(&s->line, max);
	hf_buf_init(&s->data, max);
	hf_buf_init(&s->type, max);
	hf_buf_init(&s->id, max);
}

void
hf_sse_free(struct hf_sse *s)
{
	hf_buf_free(&s->line);
	hf_buf_free(&s->data);
	hf_buf_free(&s->type);
	hf_buf_free(&s->id);
}

void
hf_sse_stop(struct hf_sse *s)
{
	s->stopped = true;
}

/* The data of the event under way, without the newline that each line of it
 * appended. */
static struct hf_str
event_data(const struct hf_sse *s)
{
	struct hf_str d = hf_buf_str(&s->data);

	if (d.size > 0)
		d.size--;
	return d;
}

static void
dispatch(struct hf_sse *s)
{
	struct hf_sse_event ev = { HF_STR("message"), HF_STR(""), HF_STR("") };

	if (s->have_data) {
		if (s->type.size > 0)
			ev.type = hf_buf_str(&s->type);
		if (s->id.size > 0)
			ev.id = hf_buf_str(&s->id);
		ev.data = event_data(s);
		s->fn(s->arg, &ev);
	}
	hf_buf_trim(&s->data);
	hf_buf_reset(&s->type);
	s->have_data = false;
}

static void
set(struct hf_sse *s, struct hf_buf *b, struct hf_str value)
{
	hf_buf_reset(b);
	hf_buf_putstr(b, value);
	s->failed |= !hf_buf_ok(b);
}

static void
add_data(struct hf_sse *s, struct hf_str value)
{
	s->have_data = true;
	hf_buf_putstr(&s->data, value);
	hf_buf_putc(&s->data, '\n');
	s->failed |= !hf_buf_ok(&s->data);
}

static void
set_retry(struct hf_sse *s, struct hf_str value)
{
	int64_t ms = 0;
	size_t i;

	for (i = 0; i < value.size; i++) {
		if (value.p[i] < '0' || value.p[i] > '9' || ms > INT32_MAX)
			return;
		ms = ms * 10 + (value.p[i] - '0');
	}
	if (value.size > 0)
		s->retry_ms = ms;
}

static void
field(struct hf_sse *s, struct hf_str line)
{
	const char *colon = memchr(line.p, ':', line.size);
	struct hf_str name = line, value = HF_STR("");

	if (colon != NULL) {
		name.size = (size_t)(colon - line.p);
		value.p = colon + 1;
		value.size = line.size - name.size - 1;
		if (value.size > 0 && value.p[0] == ' ') {
			value.p++;
			value.size--;
		}
	}
	if (hf_str_is(name, "data"))
		add_data(s, value);
	else if (hf_str_is(name, "event"))
		set(s, &s->type, value);
	else if (hf_str_is(name, "id"))
		set(s, &s->id, value);
	else if (hf_str_is(name, "retry"))
		set_retry(s, value);
}

/* A whole line without its end. */
static void
take_line(struct hf_sse *s, struct hf_str line)
{
	if (!s->started) {
		s->started = true;
		if (line.size >= 3 && memcmp(line.p, "\xef\xbb\xbf", 3) == 0) {
			line.p += 3;
			line.size -= 3;
		}
	}
	if (line.size == 0)
		dispatch(s);
	else if (line.p[0] == ':')
		s->comments++;
	else
		field(s, line);
}

/* A line ends at 'line' + its size; what came before it of the same line
 * waits in s->line. */
static void
end_line(struct hf_sse *s, struct hf_str line)
{
	if (s->line.size == 0) {
		if (line.size > s->line.max)
			s->failed = true;
		else
			take_line(s, line);
		return;
	}
	hf_buf_putstr(&s->line, line);
	if (!hf_buf_ok(&s->line)) {
		s->failed = true;
		return;
	}
	take_line(s, hf_buf_str(&s->line));
	hf_buf_trim(&s->line);
}

/* The first 'c' at or after 'p'; *hit caches the last answer, so that the
 * bytes are searched once for each of CR and LF. */
static const char *
next_at(const char **hit, const char *p, const char *end, int c)
{
	if (*hit < p) {
		*hit = memchr(p, c, (size_t)(end - p));
		if (*hit == NULL)
			*hit = end;
	}
	return *hit;
}

static void
feed(struct hf_sse *s, const char *p, const char *end)
{
	const char *cr = NULL, *lf = NULL, *eol;

	if (p < end && s->last_cr && *p == '\n')
		p++;
	s->last_cr = false;
	while (p < end && !s->failed && !s->stopped) {
		eol = next_at(&lf, p, end, '\n');
		if (next_at(&cr, p, end, '\r') < eol)
			eol = cr;
		if (eol == end) {
			hf_buf_put(&s->line, p, (size_t)(end - p));
			s->failed |= !hf_buf_ok(&s->line);
			return;
		}
		end_line(s, (struct hf_str){ p, (size_t)(eol - p) });
		p = eol + 1;
		if (*eol == '\r') {
			s->last_cr = p == end;
			if (p < end && *p == '\n')
				p++;
		}
	}
}

bool
hf_sse_feed(struct hf_sse *s, struct hf_str bytes)
{
	const char *nul;

	if (bytes.size == 0 || s->failed || s->stopped)
		return !s->failed;
	/* Whatever precedes a NUL byte is still taken, however it was cut. */
	nul = memchr(bytes.p, '\0', bytes.size);
	feed(s, bytes.p, nul == NULL ? bytes.p + bytes.size : nul);
	if (nul != NULL && !s->stopped)
		s->failed = true;
	return !s->failed;
}

struct hf_str
hf_sse_rest(struct hf_sse *s)
{
	struct hf_str line = hf_buf_str(&s->line);

	if (s->failed || s->stopped)
		return HF_STR("");
	if (line.size > 0) {
		/* The stream is over: its last line ended here. */
		take_line(s, line);
		hf_buf_reset(&s->line);
	}
	return s->failed || !s->have_data ? HF_STR("") : event_data(s);
}
