/*
 * The front of every decoder: by status and by what the body begins with, a
 * response is an error, a stream, a whole answer or nothing that we know.
 */
#include <config.h>

#include "gateway/provider/decoder.h"

#include <stdlib.h>
#include <strings.h>

#include "base/check.h"
#include "base/clock.h"
#include "gateway/provider/headers.h"

static void on_sse(void *arg, const struct hf_sse_event *ev);

const struct hf_dialect *
hf_dialect(enum hf_conf_dialect d)
{
	switch (d) {
	case HF_DIALECT_OPENAI:
		return &hf_dialect_openai;
	case HF_DIALECT_ANTHROPIC:
		return &hf_dialect_anthropic;
	}
	return NULL;
}

struct hf_decoder *
hf_decode_new(const struct hf_decoder_ops *ops, hf_event_fn fn, void *arg)
{
	struct hf_decoder *d = hf_xcalloc(1, sizeof(*d));
	unsigned i;

	d->ops = ops;
	d->fn = fn;
	d->arg = arg;
	d->retry_after_ms = -1;
	for (i = 0; i < hf_countof(d->usage); i++)
		d->usage[i] = d->counted[i] = -1;
	hf_buf_init(&d->body, HF_DECODE_WHOLE);
	hf_buf_init(&d->scratch, HF_DECODE_WHOLE);
	hf_sse_init(&d->sse, HF_DECODE_EVENT, on_sse, d);
	return d;
}

void
hf_decoder_free(struct hf_decoder *d)
{
	if (d == NULL)
		return;
	hf_tools_free(d);
	hf_buf_free(&d->body);
	hf_buf_free(&d->scratch);
	hf_json_map_free(&d->map);
	hf_sse_free(&d->sse);
	free(d);
}

bool
hf_decoder_finished(const struct hf_decoder *d)
{
	return d->terminal;
}

/* --- emission ------------------------------------------------------------ */

static void
emit(struct hf_decoder *d, const struct hf_event *ev)
{
	if (!d->terminal)
		d->fn(d->arg, ev);
}

/* Nothing follows the event that is about to be emitted. */
static void
emit_last(struct hf_decoder *d, const struct hf_event *ev)
{
	if (d->terminal)
		return;
	d->terminal = true;
	hf_sse_stop(&d->sse);
	d->fn(d->arg, ev);
}

void
hf_decode_begin(struct hf_decoder *d)
{
	if (d->begun)
		return;
	d->begun = true;
	emit(d, &(struct hf_event){ .type = HF_EV_BEGIN });
}

void
hf_decode_text(
    struct hf_decoder *d, enum hf_event_type type, struct hf_json string)
{
	struct hf_event ev = { .type = type };

	if (string.type != HF_JSON_STRING || string.raw.size <= 2)
		return;
	if (hf_json_is_plain(string)) {
		ev.text =
		    (struct hf_str){ string.raw.p + 1, string.raw.size - 2 };
	} else {
		hf_buf_reset(&d->scratch);
		hf_json_decode(string, &d->scratch);
		if (!hf_buf_ok(&d->scratch)) {
			hf_decode_fail(d, HF_CLASS_PROVIDER, "too_large");
			return;
		}
		ev.text = hf_buf_str(&d->scratch);
	}
	hf_decode_begin(d);
	emit(d, &ev);
}

void
hf_decode_usage(struct hf_decoder *d)
{
	struct hf_event ev = { .type = HF_EV_USAGE };
	unsigned i;

	/* Nobody uses less than nothing. */
	for (i = 0; i < hf_countof(d->usage); i++)
		if (d->usage[i] < 0)
			d->usage[i] = -1;
	ev.usage.input = d->usage[0];
	ev.usage.output = d->usage[1];
	ev.usage.cached = d->usage[2];
	ev.usage.reasoning = d->usage[3];
	emit(d, &ev);
}

bool
hf_decode_finish(struct hf_decoder *d, enum hf_finish_reason f)
{
	struct hf_event ev = { .type = HF_EV_FINISH };

	if (d->finished || d->terminal)
		return !d->terminal;
	hf_decode_begin(d);
	if (!hf_tools_emit_rest(d, f))
		return false;
	if (f == HF_FINISH_STOP && d->n_tool_emitted > 0)
		f = HF_FINISH_TOOL_CALLS;
	else if (f == HF_FINISH_TOOL_CALLS && d->n_tool_emitted == 0)
		f = HF_FINISH_STOP;
	d->finished = true;
	ev.finish = f;
	emit(d, &ev);
	return true;
}

void
hf_decode_done(struct hf_decoder *d)
{
	emit_last(d, &(struct hf_event){ .type = HF_EV_DONE });
}

static void
fail_as(struct hf_decoder *d, enum hf_class cls, const char *reason,
    const struct hf_api_error *a)
{
	struct hf_event ev = { .type = HF_EV_ERROR };

	ev.error.cls = cls;
	ev.error.reason = reason;
	ev.error.http_status = d->status;
	ev.error.retry_after_ms = d->retry_after_ms >= 0 || a == NULL ?
	    d->retry_after_ms :
	    a->retry_after_ms;
	ev.error.message = ev.error.code = ev.error.type = ev.error.param =
	    HF_STR("");
	if (a != NULL) {
		ev.error.message = hf_buf_str(&a->message);
		ev.error.code = hf_buf_str(&a->code);
		ev.error.type = hf_buf_str(&a->type);
		ev.error.param = hf_buf_str(&a->param);
	}
	emit_last(d, &ev);
}

void
hf_decode_fail(struct hf_decoder *d, enum hf_class cls, const char *reason)
{
	fail_as(d, cls, reason, NULL);
}

static void
fail_by_table(struct hf_decoder *d, struct hf_api_error *a)
{
	const char *reason;
	enum hf_class cls = hf_api_error_class(a, d->ops->errors, &reason);

	fail_as(d, cls, reason, a);
	hf_api_error_free(a);
}

void
hf_decode_error_in(struct hf_decoder *d, struct hf_json v)
{
	struct hf_api_error a;

	hf_api_error_init(&a, d->status);
	hf_api_error_read(&a, v);
	fail_by_table(d, &a);
}

/* --- headers --------------------------------------------------------------*/

static bool
type_is(struct hf_str content_type, const char *z)
{
	size_t n = strlen(z);

	return content_type.size >= n && strncasecmp(content_type.p, z, n) == 0;
}

void
hf_decoder_headers(struct hf_decoder *d, int status, struct hf_str headers)
{
	struct hf_str type = hf_header_find(headers, "content-type");

	if (d->mode != HF_DECODE_NEW || d->terminal)
		return;
	d->status = status;
	d->retry_after_ms = hf_retry_hint(headers, hf_wall_us());
	if (d->retry_after_ms < 0 && status == 429)
		d->retry_after_ms = hf_reset_hint(headers, hf_wall_us());
	d->event_stream = type_is(type, "text/event-stream");
	if (status < 200 || status > 299)
		d->mode = HF_DECODE_ERROR;
	else if (type_is(type, "text/html"))
		hf_decode_fail(d, HF_CLASS_PROVIDER, "html");
	else
		d->mode = HF_DECODE_UNDECIDED;
}

/* --- bytes --------------------------------------------------------------- */

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool
is_blank(struct hf_str s)
{
	while (s.size > 0 && is_space(s.p[s.size - 1]))
		s.size--;
	return s.size == 0;
}

/* What was received is asked for many members, errors among them. */
static bool
read_json(struct hf_decoder *d, struct hf_str text, struct hf_json *v)
{
	hf_json_map_reset(&d->map);
	return hf_json_check_map(text, v, NULL, &d->map, NULL) == 0;
}

/* One event's data, from the stream or left over at its end. */
static void
stream_event(struct hf_decoder *d, const struct hf_sse_event *ev, bool leftover)
{
	struct hf_json v;

	if (d->terminal || is_blank(ev->data) || d->ops->marker(d, ev->data))
		return;
	if (!read_json(d, ev->data, &v)) {
		if (d->finished || leftover)
			return;
		hf_decode_fail(d, HF_CLASS_PROVIDER, "bad_json");
	} else if (hf_api_error_is(v)) {
		/* After the finish nothing can be wrong with the answer. */
		if (!d->finished)
			hf_decode_error_in(d, v);
	} else if (v.type != HF_JSON_OBJECT) {
		if (!d->finished)
			hf_decode_fail(d, HF_CLASS_PROVIDER, "bad_event");
	} else {
		d->ops->event(d, ev, v);
	}
}

static void
on_sse(void *arg, const struct hf_sse_event *ev)
{
	stream_event(arg, ev, false);
}

static void
feed_stream(struct hf_decoder *d, struct hf_str bytes)
{
	if (!hf_sse_feed(&d->sse, bytes))
		hf_decode_fail(d, HF_CLASS_PROVIDER, "bad_stream");
}

static void
keep(struct hf_decoder *d, struct hf_str bytes)
{
	hf_buf_putstr(&d->body, bytes);
	if (!hf_buf_ok(&d->body))
		hf_decode_fail(d, HF_CLASS_PROVIDER, "too_large");
}

/* The first byte that is not white space tells what a 2xx is, whatever its
 * content type claims. */
static void
decide(struct hf_decoder *d, struct hf_str bytes)
{
	size_t i = 0;
	char c;

	while (i < bytes.size && is_space(bytes.p[i]))
		i++;
	keep(d, bytes);
	if (i == bytes.size || d->terminal)
		return;
	c = bytes.p[i];
	if (c == '{' || c == '[') {
		d->mode = HF_DECODE_JSON;
	} else if (c == '<') {
		hf_decode_fail(d, HF_CLASS_PROVIDER, "html");
	} else if (d->event_stream ||
	    (c != '\0' && strchr(":deir\xef", c) != NULL)) {
		d->mode = HF_DECODE_SSE;
		feed_stream(d, hf_buf_str(&d->body));
		hf_buf_free(&d->body); /* streams need no such memory */
		hf_buf_init(&d->body, HF_DECODE_WHOLE);
	} else {
		hf_decode_fail(d, HF_CLASS_PROVIDER, "garbage");
	}
}

void
hf_decoder_data(struct hf_decoder *d, struct hf_str bytes)
{
	size_t room;

	if (d->terminal || bytes.size == 0)
		return;
	d->bytes += bytes.size;
	switch (d->mode) {
	case HF_DECODE_NEW:
		break;
	case HF_DECODE_ERROR:
		room = HF_DECODE_ERROR_BODY - d->body.size;
		if (bytes.size > room)
			bytes.size = room;
		hf_buf_putstr(&d->body, bytes);
		break;
	case HF_DECODE_UNDECIDED:
		decide(d, bytes);
		break;
	case HF_DECODE_SSE:
		if (d->bytes > HF_DECODE_STREAM)
			hf_decode_fail(d, HF_CLASS_PROVIDER, "too_large");
		else
			feed_stream(d, bytes);
		break;
	case HF_DECODE_JSON:
		keep(d, bytes);
		break;
	}
}

/* --- the end ------------------------------------------------------------- */

static void
end_error(struct hf_decoder *d)
{
	struct hf_api_error a;
	struct hf_json v;

	hf_api_error_init(&a, d->status);
	if (hf_json_check(hf_buf_str(&d->body), &v, NULL, NULL) == 0)
		hf_api_error_read(&a, v);
	fail_by_table(d, &a);
}

static void
end_whole(struct hf_decoder *d, bool clean)
{
	struct hf_json v;

	if (!read_json(d, hf_buf_str(&d->body), &v)) {
		if (clean)
			hf_decode_fail(d, HF_CLASS_PROVIDER, "bad_json");
		else
			hf_decode_fail(d, HF_CLASS_NETWORK, "eof");
	} else if (hf_api_error_is(v)) {
		hf_decode_error_in(d, v);
	} else {
		d->ops->whole(d, v);
	}
}

static void
end_stream(struct hf_decoder *d)
{
	struct hf_sse_event ev = { HF_STR("message"), HF_STR(""), HF_STR("") };

	/* A few servers forget the last blank line. */
	ev.data = hf_sse_rest(&d->sse);
	stream_event(d, &ev, true);
	if (!d->terminal && !d->ops->ended(d))
		hf_decode_fail(d, HF_CLASS_NETWORK, "eof");
}

void
hf_decoder_end(struct hf_decoder *d, bool clean)
{
	if (d->terminal)
		return;
	switch (d->mode) {
	case HF_DECODE_NEW:
		hf_decode_fail(d, HF_CLASS_NETWORK, "eof");
		break;
	case HF_DECODE_ERROR:
		end_error(d);
		break;
	case HF_DECODE_UNDECIDED:
		if (clean)
			hf_decode_fail(d, HF_CLASS_PROVIDER, "empty");
		else
			hf_decode_fail(d, HF_CLASS_NETWORK, "eof");
		break;
	case HF_DECODE_SSE:
		end_stream(d);
		break;
	case HF_DECODE_JSON:
		end_whole(d, clean);
		break;
	}
	/* Whatever a dialect did, an end is an end. */
	if (!d->terminal)
		hf_decode_fail(d, HF_CLASS_PROVIDER, "bad_answer");
}
