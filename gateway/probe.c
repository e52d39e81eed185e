/*
 * One small real call of a target because an operator asks: by the same
 * dialects and with the same times as those of turns, on a connection of its
 * own, so that every step of it is made.  It is no part of a conversation, is
 * stored nowhere, and tells the breaker nothing.  Loop thread.
 */
#include <config.h>

#include "gateway/gateway.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "gateway/provider/provider.h"
#include "gateway/upstream/upstream.h"

#define ASKED "{\"content\":\"Reply with the word ok and nothing else.\"}"
#define TEXT_MAX 400	 /* bytes of an answer that are kept */
#define LONGEST_MS 60000 /* whatever the target's total_ms is */

struct hf_probe {
	const struct hf_conf_target *target; /* borrowed */
	struct hf_upstream *upstream;
	struct hf_call *call; /* NULL: over */
	struct hf_decoder *decoder;
	struct event *timer, *step;
	bool stream, over;
	int64_t begun_us;
	struct hf_buf text;
	struct hf_probe_result r;
	hf_probe_fn fn;
	void *arg;
};

/* The first word on how it ended holds. */
static void
end(struct hf_probe *p, enum hf_class cls, const char *reason)
{
	if (p->over)
		return;
	p->over = true;
	p->r.cls = cls;
	p->r.reason = reason;
	event_active(p->step, EV_TIMEOUT, 0);
}

static void
look(struct hf_probe *p)
{
	struct hf_call_times t;

	if (p->call == NULL)
		return;
	hf_call_times(p->call, &t);
	p->r.resolved_us = t.resolved_us;
	p->r.connected_us = t.connected_us;
	p->r.secured_us = t.secured_us;
	memcpy(p->r.address, t.address, sizeof(p->r.address));
}

/* --- what comes back ------------------------------------------------------ */

static void
keep(struct hf_probe *p, struct hf_str s)
{
	size_t room = TEXT_MAX - p->text.size;

	if (s.size > room)
		s.size = room;
	hf_buf_putstr(&p->text, s);
}

static void
useful(struct hf_probe *p)
{
	if (p->r.first_token_us < 0)
		p->r.first_token_us = hf_now_us() - p->begun_us;
}

static void
on_event(void *arg, const struct hf_event *ev)
{
	struct hf_probe *p = arg;

	if (p->over)
		return;
	switch (ev->type) {
	case HF_EV_TEXT:
	case HF_EV_REFUSAL:
		useful(p);
		keep(p, ev->text);
		break;
	case HF_EV_PROGRESS:
	case HF_EV_TOOL_CALL:
		useful(p);
		break;
	case HF_EV_ERROR:
		if (ev->error.http_status != 0)
			p->r.http_status = ev->error.http_status;
		p->r.retry_after_ms = ev->error.retry_after_ms;
		hf_buf_reset(&p->text);
		keep(p, ev->error.message);
		end(p, ev->error.cls, ev->error.reason);
		break;
	case HF_EV_DONE:
		/* The same would be a failure of a turn's attempt. */
		if (p->r.first_token_us < 0)
			end(p, HF_CLASS_PROVIDER, "empty_answer");
		else
			end(p, HF_CLASS_NONE, "ok");
		break;
	case HF_EV_BEGIN:
	case HF_EV_FINISH:
	case HF_EV_USAGE:
		break;
	}
}

static void
on_headers(void *arg, int status, struct hf_str headers)
{
	struct hf_probe *p = arg;

	if (p->over)
		return;
	look(p);
	p->r.http_status = status;
	hf_decoder_headers(p->decoder, status, headers);
}

static void
on_data(void *arg, struct hf_str bytes)
{
	struct hf_probe *p = arg;

	if (!p->over)
		hf_decoder_data(p->decoder, bytes);
}

static void
on_done(void *arg, const struct hf_call_result *r)
{
	struct hf_probe *p = arg;

	look(p);
	p->call = NULL;
	if (p->over)
		return;
	if (r->cls != HF_CLASS_NONE && !r->any_byte) {
		p->r.timed_out = strcmp(r->reason, "connect_timeout") == 0;
		keep(p, hf_str(r->detail));
		end(p, r->cls, r->reason);
		return;
	}
	hf_decoder_end(p->decoder, r->cls == HF_CLASS_NONE && r->clean);
	end(p, HF_CLASS_PROVIDER, "no_answer");
}

static const struct hf_call_ops call_ops = {
	.headers = on_headers,
	.data = on_data,
	.done = on_done,
};

/* --- its time ------------------------------------------------------------- */

static int64_t
due(const struct hf_probe *p, const char **reason)
{
	const struct hf_conf_call *c = &p->target->call;
	int64_t ms = c->total_ms < LONGEST_MS ? c->total_ms : LONGEST_MS;

	*reason = "total_timeout";
	if (p->stream && p->r.first_token_us < 0 && c->first_token_ms > 0 &&
	    c->first_token_ms < ms) {
		ms = c->first_token_ms;
		*reason = "first_token_timeout";
	}
	return p->begun_us + ms * 1000;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct hf_probe *p = arg;
	const char *reason;
	int64_t left = due(p, &reason) - hf_now_us();
	struct timeval tv = { left / 1000000, left % 1000000 };

	(void)fd;
	(void)what;
	if (left > 0) {
		evtimer_add(p->timer, &tv);
		return;
	}
	look(p);
	p->r.timed_out = true;
	end(p, HF_CLASS_NETWORK, reason);
}

/* --- life ----------------------------------------------------------------- */

/* Hang up, and free what a call needs. */
static void
clear(struct hf_probe *p)
{
	if (p->call != NULL)
		hf_call_cancel(p->call);
	hf_upstream_free(p->upstream);
	hf_decoder_free(p->decoder);
	if (p->timer != NULL)
		event_free(p->timer);
	if (p->step != NULL)
		event_free(p->step);
}

void
hf_probe_cancel(struct hf_probe *p)
{
	clear(p);
	hf_buf_free(&p->text);
	free(p);
}

/* The end, outside of all callbacks of what is freed. */
static void
on_step(evutil_socket_t fd, short what, void *arg)
{
	struct hf_probe *p = arg;

	(void)fd;
	(void)what;
	if (!p->over)
		return;
	p->r.total_us = hf_now_us() - p->begun_us;
	p->r.text = hf_buf_ok(&p->text) ? hf_buf_str(&p->text) : HF_STR_NONE;
	clear(p);
	p->fn(p->arg, &p->r); /* the target may be gone after this */
	hf_buf_free(&p->text);
	free(p);
}

static int
build(struct hf_probe *p, struct hf_http_request *rq, struct hf_error *e)
{
	const struct hf_item item = { .kind = HF_ITEM_MESSAGE,
		.role = HF_ROLE_USER,
		.origin = HF_ORIGIN_CLIENT,
		.body = HF_STR(ASKED) };
	struct hf_payload_input in = { .item = &item,
		.n_item = 1,
		.target = p->target,
		.stream = p->stream };
	int rc = hf_json_check(HF_STR("{}"), &in.params, NULL, e);

	if (rc == 0)
		rc =
		    hf_dialect(p->target->provider->dialect)->build(&in, rq, e);
	return rc;
}

static int
start(struct hf_probe *p, struct event_base *base, struct hf_error *e)
{
	const struct hf_conf_target *t = p->target;
	struct hf_http_request rq;
	int rc;

	p->timer = evtimer_new(base, on_timer, p);
	p->step = evtimer_new(base, on_step, p);
	p->decoder = hf_dialect(t->provider->dialect)
			 ->decoder_new(t, p->stream, on_event, p);
	if (p->timer == NULL || p->step == NULL || p->decoder == NULL)
		return hf_fail(e, HF_ENOMEM, "out of memory");
	rc = hf_upstream_new(&p->upstream, base, e);
	if (rc < 0)
		return rc;
	hf_http_request_init(&rq);
	rc = build(p, &rq, e);
	if (rc == 0)
		rc = hf_upstream_start(p->upstream, &rq, t->call.connect_ms,
		    true, &call_ops, p, &p->call, e);
	hf_http_request_free(&rq);
	if (rc == 0)
		on_timer(-1, 0, p);
	return rc;
}

int
hf_probe_start(struct event_base *base, const struct hf_conf_target *t,
    hf_probe_fn fn, void *arg, struct hf_probe **out, struct hf_error *e)
{
	struct hf_probe *p = hf_xcalloc(1, sizeof(*p));
	int rc;

	p->target = t;
	p->stream = t->call.upstream_stream == HF_STREAM_ALWAYS;
	p->begun_us = hf_now_us();
	p->fn = fn;
	p->arg = arg;
	p->r = (struct hf_probe_result){ .target = t->name,
		.resolved_us = -1,
		.connected_us = -1,
		.secured_us = -1,
		.first_token_us = -1,
		.retry_after_ms = -1 };
	hf_buf_init(&p->text, TEXT_MAX + 1);
	rc = start(p, base, e);
	if (rc < 0) {
		hf_probe_cancel(p);
		return rc;
	}
	*out = p;
	return 0;
}
