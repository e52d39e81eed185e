/*
 * Shared by the tests of the dialects.
 */
#include <config.h>

#include "tests/unit/wire_util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

struct hf_conf_provider wire_provider = {
	.name = (char *)(uintptr_t) "p",
	.base_url = (char *)(uintptr_t) "http://127.0.0.1:1/v1",
	.api_key = (char *)(uintptr_t) "sk-test",
};
struct hf_conf_target wire_target = {
	.name = (char *)(uintptr_t) "p/m",
	.model = (char *)(uintptr_t) "m",
	.provider = &wire_provider,
	.call = { .max_output_tokens = 512 },
};

static void
put_error(struct hf_buf *b, const struct hf_event *ev)
{
	hf_buf_printf(b, "error(%s,%s,%d,%lld,%.*s,%.*s,%.*s)",
	    hf_class_name(ev->error.cls), ev->error.reason,
	    ev->error.http_status, (long long)ev->error.retry_after_ms,
	    HF_STR_ARG(ev->error.message), HF_STR_ARG(ev->error.code),
	    HF_STR_ARG(ev->error.type));
}

void
wire_record(void *arg, const struct hf_event *ev)
{
	struct hf_buf *b = arg;

	if (ev->type == HF_EV_PROGRESS)
		return;
	if (b->size > 0)
		hf_buf_putc(b, ' ');
	switch (ev->type) {
	case HF_EV_BEGIN:
		hf_buf_puts(b, "begin");
		break;
	case HF_EV_TEXT:
	case HF_EV_REFUSAL:
		assert_true(ev->text.size > 0);
		hf_buf_puts(b, ev->type == HF_EV_TEXT ? "text(" : "refusal(");
		hf_buf_putstr(b, ev->text);
		hf_buf_putc(b, ')');
		break;
	case HF_EV_PROGRESS:
		break;
	case HF_EV_TOOL_CALL:
		hf_buf_puts(b, "tool(");
		hf_buf_putstr(b, ev->tool.native_id);
		hf_buf_putc(b, ',');
		hf_buf_putstr(b, ev->tool.name);
		hf_buf_putc(b, ',');
		hf_buf_putstr(b, ev->tool.arguments);
		hf_buf_putc(b, ')');
		break;
	case HF_EV_FINISH:
		hf_buf_printf(b, "finish(%s)", hf_finish_name(ev->finish));
		break;
	case HF_EV_USAGE:
		hf_buf_printf(b, "usage(%lld,%lld,%lld,%lld)",
		    (long long)ev->usage.input, (long long)ev->usage.output,
		    (long long)ev->usage.cached,
		    (long long)ev->usage.reasoning);
		break;
	case HF_EV_DONE:
		hf_buf_puts(b, "done");
		break;
	case HF_EV_ERROR:
		put_error(b, ev);
		break;
	}
}

/* Exact heap copies, so that ASan sees a read past the end or a use after
 * the call. */
static void
feed(struct hf_decoder *d, const char *p, size_t size)
{
	char *copy = malloc(size == 0 ? 1 : size);

	assert_non_null(copy);
	memcpy(copy, p, size);
	hf_decoder_data(d, (struct hf_str){ copy, size });
	free(copy);
}

void
wire_decode(const struct hf_dialect *dl, const struct wire_case *c,
    size_t first, size_t step, struct hf_buf *out)
{
	struct hf_decoder *d =
	    dl->decoder_new(&wire_target, true, wire_record, out);
	size_t at, n;

	hf_decoder_headers(d, c->status, hf_str(c->headers));
	if (first > c->body.size)
		first = c->body.size;
	if (first > 0)
		feed(d, c->body.p, first);
	for (at = first; at < c->body.size; at += n) {
		n = c->body.size - at < step ? c->body.size - at : step;
		feed(d, c->body.p + at, n);
	}
	hf_decoder_end(d, c->clean);
	assert_true(hf_decoder_finished(d));
	/* Nothing follows a terminal event. */
	n = out->size;
	feed(d, "data: {\"error\":\"x\"}\n\n", 21);
	hf_decoder_end(d, true);
	assert_int_equal(out->size, n);
	hf_decoder_free(d);
}

static void
check_split(const struct hf_dialect *dl, const struct wire_case *c,
    size_t first, size_t step)
{
	struct hf_buf out;

	hf_buf_init(&out, HF_BUF_NOCAP);
	wire_decode(dl, c, first, step, &out);
	if (!hf_str_is(hf_buf_str(&out), c->events))
		fail_msg("%s, cut %zu/%zu:\n got %s\nwant %s", c->name, first,
		    step, out.data, c->events);
	hf_buf_free(&out);
}

void
wire_check(const struct hf_dialect *dl, const struct wire_case *c)
{
	size_t cut;

	check_split(dl, c, 0, SIZE_MAX / 2);
	check_split(dl, c, 0, 1);
	for (cut = 1; cut < c->body.size && c->body.size < 4096; cut++)
		check_split(dl, c, cut, SIZE_MAX / 2);
}

struct hf_item
wire_message(enum hf_role role, const char *body)
{
	return (struct hf_item){ .kind = HF_ITEM_MESSAGE,
		.role = role,
		.turn_row = 1,
		.body = hf_str(body) };
}

struct hf_item
wire_call(int64_t turn, const char *body)
{
	return (struct hf_item){ .kind = HF_ITEM_TOOL_CALL,
		.role = HF_ROLE_ASSISTANT,
		.turn_row = turn,
		.body = hf_str(body) };
}

struct hf_item
wire_result(const char *body)
{
	return (struct hf_item){ .kind = HF_ITEM_TOOL_RESULT,
		.role = HF_ROLE_TOOL,
		.turn_row = 1,
		.body = hf_str(body) };
}

static int
build(const struct hf_dialect *dl, struct hf_payload_input *in,
    const char *params, struct hf_http_request *rq, struct hf_error *e)
{
	hf_http_request_init(rq);
	if (hf_json_check(hf_str(params), &in->params, NULL, e) != 0)
		fail_msg("params: %s", e->text);
	return dl->build(in, rq, e);
}

char *
wire_build_in(const struct hf_dialect *dl, struct hf_payload_input *in,
    const char *params)
{
	struct hf_http_request rq;
	struct hf_error e = { 0 };
	struct hf_json v;
	char *body;

	if (build(dl, in, params, &rq, &e) != 0)
		fail_msg("build: %s", e.text);
	if (hf_json_check(hf_buf_str(&rq.body), &v, NULL, &e) != 0)
		fail_msg("built body: %s: %s", e.text, rq.body.data);
	body = hf_buf_take(&rq.body, NULL);
	hf_http_request_free(&rq);
	return body;
}

char *
wire_build(const struct hf_dialect *dl, const struct hf_item *item, unsigned n,
    const char *params, bool stream)
{
	struct hf_payload_input in = { .item = item,
		.n_item = n,
		.target = &wire_target,
		.stream = stream };

	return wire_build_in(dl, &in, params);
}

void
wire_refused_in(const struct hf_dialect *dl, struct hf_payload_input *in,
    const char *params, const char *why)
{
	struct hf_http_request rq;
	struct hf_error e = { 0 };

	assert_int_equal(build(dl, in, params, &rq, &e), HF_EINVAL);
	assert_string_equal(e.text, why);
	hf_http_request_free(&rq);
}

int
wire_build_rc(const struct hf_dialect *dl, const struct hf_item *item,
    unsigned n, const char *params, struct hf_error *e)
{
	struct hf_payload_input in = {
		.item = item, .n_item = n, .target = &wire_target
	};
	struct hf_http_request rq;
	int rc = build(dl, &in, params, &rq, e);

	hf_http_request_free(&rq);
	return rc;
}

void
wire_expect(const struct hf_dialect *dl, const struct hf_item *item, unsigned n,
    const char *params, const char *member, const char *want)
{
	char *body = wire_build(dl, item, n, params, false);
	struct hf_json v;
	struct hf_str got;

	assert_int_equal(hf_json_check(hf_str(body), &v, NULL, NULL), 0);
	got = hf_json_get(v, member).raw;
	if (want == NULL ? got.size > 0 : !hf_str_is(got, want))
		fail_msg("%s:\n got %.*s\nwant %s", member, HF_STR_ARG(got),
		    want == NULL ? "(absent)" : want);
	free(body);
}

void
wire_limit(const struct hf_dialect *dl, const char *params, const char *want)
{
	struct hf_item item = wire_message(HF_ROLE_USER, "{\"content\":\"q\"}");
	struct hf_payload_input in = { .item = &item,
		.n_item = 1,
		.target = &wire_target,
		.max_tokens = 1 };
	char *body = wire_build_in(dl, &in, params);
	struct hf_json v, name, value;
	struct hf_buf got;
	size_t pos = 0;

	hf_buf_init(&got, 1000);
	assert_int_equal(hf_json_check(hf_str(body), &v, NULL, NULL), 0);
	while (hf_json_next_member(v, &pos, &name, &value))
		if (strncmp(name.raw.p, "\"max_", 5) == 0)
			hf_buf_printf(&got, "%.*s:%.*s", HF_STR_ARG(name.raw),
			    HF_STR_ARG(value.raw));
	assert_string_equal(got.data, want);
	hf_buf_free(&got);
	free(body);
}

void
wire_models(const struct hf_dialect *dl, const char *base, const char *url,
    const char *key_header)
{
	char *was = wire_provider.base_url;
	struct hf_http_request rq;
	struct hf_error e = { 0 };

	wire_provider.base_url = (char *)(uintptr_t)base;
	hf_http_request_init(&rq);
	assert_int_equal(dl->models(&wire_provider, &rq, &e), 0);
	assert_string_equal(rq.url.data, url);
	assert_non_null(strstr(rq.headers.data, key_header));
	assert_int_equal(rq.body.size, 0);
	hf_http_request_free(&rq);
	wire_provider.base_url = was;
}
