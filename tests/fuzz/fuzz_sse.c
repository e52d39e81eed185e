/*
 * The SSE parser: any split gives the same events, and they are those of a
 * slow parser that follows the text of the rules.
 */
#include <config.h>

#include "gateway/upstream/sse.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "sse";

#define CAP 512

static void
put_event(struct hf_buf *log, struct hf_str type, struct hf_str data,
    struct hf_str id)
{
	hf_buf_putstr(log, type);
	hf_buf_putc(log, '\1');
	hf_buf_putstr(log, data);
	hf_buf_putc(log, '\1');
	hf_buf_putstr(log, id);
	hf_buf_putc(log, '\2');
}

static void
on_event(void *arg, const struct hf_sse_event *ev)
{
	put_event(arg, ev->type, ev->data, ev->id);
}

/* Events, then the end state. */
static void
run(struct hf_str in, uint32_t seed, struct hf_buf *log)
{
	struct hf_sse s;
	struct hf_str rest;
	char *piece;
	size_t n;

	hf_sse_init(&s, CAP, on_event, log);
	while (in.size > 0) {
		if (seed == 0) {
			hf_sse_feed(&s, in);
			break;
		}
		piece = fuzz_piece(&seed, in.p, in.size, &n);
		hf_sse_feed(&s, (struct hf_str){ piece, n });
		free(piece);
		in.p += n;
		in.size -= n;
	}
	rest = hf_sse_rest(&s);
	hf_buf_printf(log, "%d %lld %llu ", s.failed, (long long)s.retry_ms,
	    (unsigned long long)s.comments);
	hf_buf_putstr(log, rest);
	hf_sse_free(&s);
}

/* --- the slow parser ------------------------------------------------------ */

struct slow {
	struct hf_buf data, type, id, *log;
};

static void
slow_line(struct slow *s, struct hf_str line)
{
	const char *colon = memchr(line.p, ':', line.size);
	struct hf_str name = line, value = HF_STR("");
	struct hf_buf *to;

	if (line.size == 0) {
		if (s->data.size > 0)
			put_event(s->log,
			    s->type.size > 0 ? hf_buf_str(&s->type) :
					       HF_STR("message"),
			    (struct hf_str){ s->data.data, s->data.size - 1 },
			    hf_buf_str(&s->id));
		hf_buf_reset(&s->data);
		hf_buf_reset(&s->type);
		return;
	}
	if (colon == line.p)
		return;
	if (colon != NULL) {
		name.size = (size_t)(colon - line.p);
		value = (struct hf_str){ colon + 1, line.size - name.size - 1 };
		if (value.size > 0 && *value.p == ' ')
			value = (struct hf_str){ value.p + 1, value.size - 1 };
	}
	to = hf_str_is(name, "event") ? &s->type :
	    hf_str_is(name, "id")     ? &s->id :
					NULL;
	if (to != NULL) {
		hf_buf_reset(to);
		hf_buf_putstr(to, value);
	} else if (hf_str_is(name, "data")) {
		hf_buf_putstr(&s->data, value);
		hf_buf_putc(&s->data, '\n');
	}
}

static void
slow_run(struct hf_str in, struct hf_buf *log)
{
	struct slow s = { .log = log };
	size_t from = 0, i;

	hf_buf_init(&s.data, HF_BUF_NOCAP);
	hf_buf_init(&s.type, HF_BUF_NOCAP);
	hf_buf_init(&s.id, HF_BUF_NOCAP);
	if (in.size >= 3 && memcmp(in.p, "\xef\xbb\xbf", 3) == 0)
		from = 3;
	for (i = from; i < in.size; i++) {
		if (in.p[i] != '\n' && in.p[i] != '\r')
			continue;
		slow_line(&s, (struct hf_str){ in.p + from, i - from });
		if (in.p[i] == '\r' && i + 1 < in.size && in.p[i + 1] == '\n')
			i++;
		from = i + 1;
	}
	hf_buf_free(&s.data);
	hf_buf_free(&s.type);
	hf_buf_free(&s.id);
}

static bool
starts_with(struct hf_str s, struct hf_str prefix)
{
	return s.size >= prefix.size &&
	    (prefix.size == 0 || memcmp(s.p, prefix.p, prefix.size) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t size)
{
	struct hf_buf whole, split, slow;
	struct hf_str in;
	uint32_t seed;

	if (size < 2)
		return 0;
	seed = 1 + (uint32_t)p[0] + ((uint32_t)p[1] << 8);
	in = (struct hf_str){ (const char *)p + 2, size - 2 };
	hf_buf_init(&whole, HF_BUF_NOCAP);
	hf_buf_init(&split, HF_BUF_NOCAP);
	hf_buf_init(&slow, HF_BUF_NOCAP);
	run(in, 0, &whole);
	run(in, seed, &split);
	FUZZ_CHECK(hf_str_eq(hf_buf_str(&whole), hf_buf_str(&split)));
	/* The slow one has no caps and takes NUL bytes. */
	if (in.size <= CAP &&
	    (in.size == 0 || memchr(in.p, '\0', in.size) == NULL)) {
		slow_run(in, &slow);
		FUZZ_CHECK(starts_with(hf_buf_str(&whole), hf_buf_str(&slow)));
		FUZZ_CHECK(memchr(whole.data + slow.size, '\2',
			       whole.size - slow.size) == NULL ||
		    memchr(in.p, '\2', in.size) != NULL);
	}
	hf_buf_free(&whole);
	hf_buf_free(&split);
	hf_buf_free(&slow);
	return 0;
}
