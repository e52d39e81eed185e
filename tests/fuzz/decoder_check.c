/*
 * What holds for every response of any provider, however it is cut.
 *
 * Input: one byte chooses the status, one the content type and whether the
 * end is clean, two the split; the rest is the body.
 */
#include <config.h>

#include "gateway/json/bytes.h"
#include "tests/fuzz/fuzz.h"

struct watch {
	struct hf_buf log;
	bool begun, finished, over;
	bool ok_status;
};

static void
put_text(struct watch *w, const char *what, struct hf_str s)
{
	const char *p = s.p, *end = s.size == 0 ? p : p + s.size;
	size_t n;

	for (; p < end; p += n) {
		n = hf_utf8_size(p, end);
		FUZZ_CHECK(n > 0);
	}
	hf_buf_printf(&w->log, "%s%zu:", what, s.size);
	hf_buf_putstr(&w->log, s);
}

static void
on_content(struct watch *w)
{
	FUZZ_CHECK(w->ok_status && w->begun && !w->finished);
}

static void
on_error(struct watch *w, const struct hf_event *ev)
{
	FUZZ_CHECK(ev->error.cls != HF_CLASS_NONE);
	FUZZ_CHECK(ev->error.reason != NULL && *ev->error.reason != '\0');
	FUZZ_CHECK(ev->error.retry_after_ms >= -1);
	hf_buf_printf(
	    &w->log, "error %d %s ", (int)ev->error.cls, ev->error.reason);
	put_text(w, "m", ev->error.message);
	put_text(w, "c", ev->error.code);
	put_text(w, "t", ev->error.type);
	put_text(w, "p", ev->error.param);
	w->over = true;
}

static void
on_event(void *arg, const struct hf_event *ev)
{
	struct watch *w = arg;

	FUZZ_CHECK(!w->over);
	switch (ev->type) {
	case HF_EV_BEGIN:
		FUZZ_CHECK(!w->begun && w->ok_status);
		w->begun = true;
		hf_buf_puts(&w->log, "begin ");
		break;
	case HF_EV_TEXT:
	case HF_EV_REFUSAL:
		on_content(w);
		FUZZ_CHECK(ev->text.size > 0);
		put_text(
		    w, ev->type == HF_EV_TEXT ? "text " : "refusal ", ev->text);
		break;
	case HF_EV_PROGRESS:
		on_content(w);
		hf_buf_puts(&w->log, ".");
		break;
	case HF_EV_TOOL_CALL:
		on_content(w);
		FUZZ_CHECK(ev->tool.name.size > 0);
		FUZZ_CHECK(ev->tool.arguments.size > 0);
		put_text(w, "id", ev->tool.native_id);
		put_text(w, "name", ev->tool.name);
		put_text(w, "args", ev->tool.arguments);
		break;
	case HF_EV_FINISH:
		on_content(w);
		w->finished = true;
		hf_buf_printf(&w->log, "%s ", hf_finish_name(ev->finish));
		break;
	case HF_EV_USAGE:
		FUZZ_CHECK(w->begun && ev->usage.input >= -1 &&
		    ev->usage.output >= -1 && ev->usage.cached >= -1 &&
		    ev->usage.reasoning >= -1);
		hf_buf_printf(&w->log, "usage %lld %lld ",
		    (long long)ev->usage.input, (long long)ev->usage.output);
		break;
	case HF_EV_DONE:
		FUZZ_CHECK(w->begun && w->finished);
		hf_buf_puts(&w->log, "done");
		w->over = true;
		break;
	case HF_EV_ERROR:
		on_error(w, ev);
		break;
	}
}

static void
run(const struct hf_dialect *dl, const uint8_t *p, size_t size, uint32_t seed,
    struct watch *w)
{
	static const int status[] = { 200, 200, 200, 200, 201, 204, 301, 400,
		401, 404, 413, 429, 500, 503, 529, 0 };
	static const char *const type[] = {
		"content-type: text/event-stream\r\n",
		"content-type: application/json\r\n", "",
		"content-type: text/html\r\nretry-after: 5\r\n"
	};
	struct hf_conf_target target = { 0 };
	struct hf_decoder *d = dl->decoder_new(&target, true, on_event, w);
	struct hf_str in = { (const char *)p + 4, size - 4 };
	char *piece;
	size_t n;

	hf_buf_init(&w->log, HF_BUF_NOCAP);
	w->ok_status = status[p[0] % 16] / 100 == 2;
	hf_decoder_headers(d, status[p[0] % 16], hf_str(type[p[1] % 4]));
	while (in.size > 0) {
		if (seed == 0) {
			hf_decoder_data(d, in);
			break;
		}
		piece = fuzz_piece(&seed, in.p, in.size, &n);
		hf_decoder_data(d, (struct hf_str){ piece, n });
		free(piece);
		in.p += n;
		in.size -= n;
	}
	FUZZ_CHECK(hf_decoder_finished(d) == w->over);
	hf_decoder_end(d, (p[1] & 4) != 0);
	FUZZ_CHECK(w->over && hf_decoder_finished(d));
	hf_decoder_free(d);
}

void
fuzz_decoder(enum hf_conf_dialect dialect, const uint8_t *p, size_t size)
{
	struct watch whole = { 0 }, split = { 0 };

	if (size < 4)
		return;
	run(hf_dialect(dialect), p, size, 0, &whole);
	run(hf_dialect(dialect), p, size,
	    1 + (uint32_t)p[2] + ((uint32_t)p[3] << 8), &split);
	FUZZ_CHECK(hf_str_eq(hf_buf_str(&whole.log), hf_buf_str(&split.log)));
	hf_buf_free(&whole.log);
	hf_buf_free(&split.log);
}
