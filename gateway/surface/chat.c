/*
 * Chat completions: from a turn's events to the bytes of a response, plain or
 * as a stream of chunks.  One object per request; it ends with the turn's
 * finish or fail, or when the client leaves.
 */
#include <config.h>

#include "gateway/surface/chat_internal.h"
#include "gateway/surface/progress.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"

#define EVENT_STREAM "text/event-stream; charset=utf-8"
#define N_HEADERS 12
/* How an answer that no model made is marked in a body. */
#define FINGERPRINT ",\"system_fingerprint\":\"holdfast-last-resort\""

struct chat {
	struct hf_turn_env *env;
	struct hf_sink *sink;
	struct hf_turn *turn;	  /* or: */
	struct hf_follow *follow; /* text events have ids then */
	bool stream, include_usage;
	bool last_resort;	     /* what is told is the route's own */
	int64_t created_s;	     /* wall time that all chunks say */
	bool first;		     /* 'out' begins with the first chunk */
	uint32_t state;		     /* for our successor, see below */
	struct hf_delivered told;    /* of the answer, so far */
	struct hf_progress progress; /* what the client has of it */
	struct hf_buf head;	     /* of every chunk, up to the delta */
	struct hf_buf out;	     /* scratch */
};

static void
chat_free(struct chat *c)
{
	hf_progress_free(&c->progress);
	hf_buf_free(&c->head);
	hf_buf_free(&c->out);
	free(c);
}

/*
 * What a successor must know of a stream that has begun, for hf_sink_state():
 * whether the first chunk, that of the role, has left, and what all chunks
 * say: the target that is named, and the time, of which the low bits will do
 * for some months.
 */
#define STATE_FIRST_SENT 0x80000000u
#define STATE_TARGET_SHIFT 26 /* number + 1 */
#define STATE_TARGET_MASK 0x1fu
#define STATE_TIME_MASK ((1u << STATE_TARGET_SHIFT) - 1)

static uint32_t
state_of(const struct hf_turn_info *i, int64_t created_s)
{
	return (i->first_target + 1) << STATE_TARGET_SHIFT |
	    ((uint32_t)created_s & STATE_TIME_MASK);
}

/* The one that is nearest to now. */
static int64_t
state_time(uint32_t state)
{
	int64_t now = hf_wall_us() / 1000000;
	int64_t ago = (now - (int64_t)state) & STATE_TIME_MASK;

	return ago <= STATE_TIME_MASK / 2 ? now - ago :
					    now - ago + STATE_TIME_MASK + 1;
}

static int
state_target(uint32_t state)
{
	return (int)(state >> STATE_TARGET_SHIFT & STATE_TARGET_MASK) - 1;
}

/* --- pieces ---------------------------------------------------------------*/

/* What all responses of a turn say in their headers. */
struct headers {
	struct hf_header h[N_HEADERS];
	unsigned n;
	char attempts[16], repairs[16], retry_s[24], retry_ms[24];
	char omitted[48];
};

static void
add_header(struct headers *h, const char *name, const char *value)
{
	HF_CHECK(h->n < N_HEADERS);
	h->h[h->n++] = (struct hf_header){ name, hf_str(value) };
}

static void
turn_headers(struct headers *h, const struct hf_turn_info *i)
{
	h->n = 0;
	if (i->session != NULL) {
		add_header(h, "X-Holdfast-Session", i->session);
		if (i->history != NULL)
			add_header(h, "X-Holdfast-History", i->history);
	}
	add_header(h, "X-Holdfast-Turn", i->turn);
	add_header(h, "X-Request-Id", i->turn);
	if (i->last_resort)
		add_header(h, "X-Holdfast-Last-Resort", "true");
	if (i->attempts > 0) {
		snprintf(h->attempts, sizeof(h->attempts), "%u", i->attempts);
		if (!i->last_resort)
			add_header(h, "X-Holdfast-Target", i->target);
		add_header(h, "X-Holdfast-Attempts", h->attempts);
	}
	if (i->repairs > 0) {
		snprintf(h->repairs, sizeof(h->repairs), "%u", i->repairs);
		add_header(h, "X-Holdfast-Repaired", h->repairs);
	}
	if (i->omitted_items > 0) {
		snprintf(h->omitted, sizeof(h->omitted), "turns=%u, items=%u",
		    i->omitted_turns, i->omitted_items);
		add_header(h, "X-Holdfast-Omitted", h->omitted);
	}
}

static void
put_identity(struct hf_buf *b, const struct hf_turn_info *i, int64_t created_s,
    const char *object)
{
	hf_buf_printf(b,
	    "{\"id\":\"chatcmpl-%s\",\"object\":\"%s\","
	    "\"created\":%lld,\"model\":",
	    i->turn + strlen("turn_"), object, (long long)created_s);
	hf_json_put_string(b, hf_str(i->model));
}

static void
put_usage(struct hf_buf *b, const struct hf_answer *a)
{
	hf_buf_printf(b,
	    "{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,"
	    "\"total_tokens\":%lld,\"prompt_tokens_details\":"
	    "{\"cached_tokens\":%lld},\"completion_tokens_details\":"
	    "{\"reasoning_tokens\":%lld}}",
	    (long long)a->tokens_in, (long long)a->tokens_out,
	    (long long)(a->tokens_in + a->tokens_out),
	    (long long)(a->tokens_cached < 0 ? 0 : a->tokens_cached),
	    (long long)(a->tokens_reasoning < 0 ? 0 : a->tokens_reasoning));
}

static bool
has_usage(const struct hf_answer *a)
{
	return a->tokens_in >= 0 && a->tokens_out >= 0;
}

static void
put_call(struct hf_buf *b, struct hf_str id, struct hf_str name,
    struct hf_str arguments)
{
	hf_buf_puts(b, "\"id\":");
	hf_json_put_string(b, id);
	hf_buf_puts(b, ",\"type\":\"function\",\"function\":{\"name\":");
	hf_json_put_string(b, name);
	hf_buf_puts(b, ",\"arguments\":");
	hf_json_put_string(b, arguments);
	hf_buf_puts(b, "}}");
}

/* --- what was handed over ------------------------------------------------- */

/* What is left of a chat once it is told: whether its end was handed over, and
 * if not, how much of it was. */
struct sent {
	struct hf_turn_env *env;
	struct hf_sink *sink;
	struct hf_told told;
	struct hf_progress progress;
};

static void
on_sent(void *arg, bool sent)
{
	struct sent *s = arg;
	struct hf_delivered d =
	    hf_progress_given(&s->progress, hf_sink_backlog(s->sink));

	hf_turn_sent(s->env, &s->told, sent, &d);
	hf_progress_free(&s->progress);
	free(s);
}

/* Right before the response is finished, which may be its end at once: the
 * progress goes from the chat to the watch. */
static void
watch_end(struct chat *c, const struct hf_turn_info *i)
{
	struct sent *s;

	if (i->told.turn_row == 0)
		return;
	s = hf_xcalloc(1, sizeof(*s));
	s->env = c->env;
	s->sink = c->sink;
	s->told = i->told;
	s->progress = c->progress;
	hf_progress_init(&c->progress);
	hf_sink_on_sent(c->sink, on_sent, s);
}

/* --- a stream ------------------------------------------------------------ */

static void
chunk_begin(struct chat *c)
{
	hf_buf_putstr(&c->out, hf_buf_str(&c->head));
}

static void
chunk_end(struct chat *c, const char *finish)
{
	hf_buf_puts(&c->out, ",\"logprobs\":null,\"finish_reason\":");
	if (finish != NULL)
		hf_buf_printf(&c->out, "\"%s\"}]%s", finish,
		    c->last_resort ? FINGERPRINT : "");
	else
		hf_buf_puts(&c->out, "null}]");
	hf_buf_puts(
	    &c->out, c->include_usage ? ",\"usage\":null}\n\n" : "}\n\n");
}

static void
send_bytes(struct chat *c, struct hf_str bytes)
{
	hf_sink_write(c->sink, bytes);
	hf_progress_add(
	    &c->progress, bytes.size, hf_sink_backlog(c->sink), &c->told);
}

static void
send_out(struct chat *c)
{
	if (hf_buf_ok(&c->out)) {
		send_bytes(c, hf_buf_str(&c->out));
		if (c->first)
			hf_sink_state(c->sink, c->state | STATE_FIRST_SENT);
		c->first = false;
	}
	hf_buf_trim(&c->out);
}

static void
chat_turn(void *arg, const struct hf_id *id)
{
	struct chat *c = arg;

	hf_sink_turn(c->sink, id);
}

static void
chat_start(void *arg, const struct hf_turn_info *i)
{
	struct chat *c = arg;
	struct headers h;

	turn_headers(&h, i);
	add_header(&h, "Cache-Control", "no-cache");
	hf_sink_start(c->sink, 200, h.h, h.n, EVENT_STREAM);
	hf_buf_puts(&c->head, "data: ");
	if (c->created_s == 0)
		c->created_s = i->created_s;
	c->first = (c->state & STATE_FIRST_SENT) == 0;
	if (c->first) {
		c->state = state_of(i, c->created_s);
		hf_sink_state(c->sink, c->state);
	}
	put_identity(&c->head, i, c->created_s, "chat.completion.chunk");
	hf_buf_puts(&c->head, ",\"choices\":[{\"index\":0,\"delta\":");
	if (!c->first)
		return;
	/* The role chunk leaves with the first content. */
	chunk_begin(c);
	hf_buf_puts(&c->out,
	    "{\"role\":\"assistant\",\"content\":\"\","
	    "\"refusal\":null}");
	chunk_end(c, NULL);
}

static void
chat_beat(void *arg)
{
	struct chat *c = arg;

	/* One comment of one line: a blank line behind it makes some clients
	 * see an empty event. */
	send_bytes(c, HF_STR(": hf\n"));
}

static void
chat_event(void *arg, const struct hf_event *ev)
{
	struct chat *c = arg;

	if (c->follow != NULL && ev->type == HF_EV_TEXT)
		hf_buf_printf(
		    &c->out, "id: %zu\n", c->told.text + ev->text.size);
	chunk_begin(c);
	if (ev->type == HF_EV_TOOL_CALL) {
		hf_buf_printf(&c->out, "{\"tool_calls\":[{\"index\":%u,",
		    c->told.calls++);
		put_call(&c->out, ev->tool.native_id, ev->tool.name,
		    ev->tool.arguments);
		hf_buf_puts(&c->out, "]}");
	} else {
		hf_buf_puts(&c->out,
		    ev->type == HF_EV_TEXT ? "{\"content\":" : "{\"refusal\":");
		hf_json_put_string(&c->out, ev->text);
		hf_buf_putc(&c->out, '}');
		c->told.text += ev->text.size;
	}
	chunk_end(c, NULL);
	send_out(c);
	if (ev->type == HF_EV_TEXT)
		hf_sink_said(c->sink, ev->text);
}

/* The headers came before the switch: the truth, as a comment of one line. */
static void
put_comment(struct hf_buf *b, const struct hf_turn_info *i)
{
	hf_buf_printf(
	    b, ": holdfast target=%s attempts=%u", i->target, i->attempts);
	if (i->omitted_items > 0)
		hf_buf_printf(b, " omitted_turns=%u omitted_items=%u",
		    i->omitted_turns, i->omitted_items);
	hf_buf_putc(b, '\n');
}

static void
finish_stream(
    struct chat *c, const struct hf_turn_info *i, const struct hf_answer *a)
{
	c->last_resort = i->last_resort;
	chunk_begin(c);
	hf_buf_puts(&c->out, "{}");
	chunk_end(c, hf_finish_name(a->finish));
	if (c->include_usage && has_usage(a)) {
		hf_buf_puts(&c->out, "data: ");
		put_identity(&c->out, i, c->created_s, "chat.completion.chunk");
		hf_buf_puts(&c->out, ",\"choices\":[],\"usage\":");
		put_usage(&c->out, a);
		hf_buf_puts(&c->out, "}\n\n");
	}
	if (i->last_resort)
		hf_buf_printf(&c->out, ": holdfast last_resort attempts=%u\n",
		    i->attempts);
	else if (i->switched || i->omitted_later)
		put_comment(&c->out, i);
	hf_buf_puts(&c->out, "data: [DONE]\n\n");
	send_out(c);
	watch_end(c, i);
	hf_sink_end(c->sink);
}

/* --- a plain answer --------------------------------------------------------*/

static void
put_message(struct hf_buf *b, const struct hf_answer *a)
{
	hf_buf_puts(b, "{\"role\":\"assistant\",\"content\":");
	if (a->text.size > 0 || (a->n_call == 0 && a->refusal.size == 0))
		hf_json_put_string(b, hf_buf_str(&a->text));
	else
		hf_buf_puts(b, "null");
	hf_buf_puts(b, ",\"refusal\":");
	if (a->refusal.size > 0)
		hf_json_put_string(b, hf_buf_str(&a->refusal));
	else
		hf_buf_puts(b, "null");
	for (unsigned i = 0; i < a->n_call; i++) {
		hf_buf_puts(b, i == 0 ? ",\"tool_calls\":[{" : ",{");
		put_call(
		    b, a->call[i].id, a->call[i].name, a->call[i].arguments);
	}
	hf_buf_puts(b, a->n_call > 0 ? "]}" : "}");
}

static void
finish_plain(
    struct chat *c, const struct hf_turn_info *i, const struct hf_answer *a)
{
	struct hf_buf *b = &c->out;
	struct headers h;

	put_identity(b, i, i->created_s, "chat.completion");
	hf_buf_puts(b, ",\"choices\":[{\"index\":0,\"message\":");
	put_message(b, a);
	hf_buf_printf(b, ",\"logprobs\":null,\"finish_reason\":\"%s\"}]%s",
	    hf_finish_name(a->finish), i->last_resort ? FINGERPRINT : "");
	if (has_usage(a)) {
		hf_buf_puts(b, ",\"usage\":");
		put_usage(b, a);
	}
	hf_buf_putc(b, '}');
	turn_headers(&h, i);
	watch_end(c, i);
	hf_sink_reply(
	    c->sink, 200, h.h, h.n, "application/json", hf_buf_str(b));
}

static void
chat_finish(void *arg, const struct hf_turn_info *i, const struct hf_answer *a)
{
	struct chat *c = arg;

	if (c->stream)
		finish_stream(c, i, a);
	else
		finish_plain(c, i, a);
	chat_free(c);
}

/* --- failures ----------------------------------------------------------- */

static void
fail_headers(struct headers *h, const struct hf_turn_failure *f)
{
	if (f->retry_after_ms >= 0) {
		snprintf(h->retry_s, sizeof(h->retry_s), "%lld",
		    (long long)(f->retry_after_ms + 999) / 1000);
		snprintf(h->retry_ms, sizeof(h->retry_ms), "%lld",
		    (long long)f->retry_after_ms);
		add_header(h, "Retry-After", h->retry_s);
		add_header(h, "Retry-After-Ms", h->retry_ms);
	}
	if (f->final)
		add_header(h, "X-Should-Retry", "false");
}

static void
chat_fail(
    void *arg, const struct hf_turn_info *i, const struct hf_turn_failure *f)
{
	struct chat *c = arg;
	struct headers h;

	if (hf_sink_started(c->sink)) {
		/* The protocol's error event; no finish, no [DONE]. */
		hf_buf_puts(&c->out, "data: ");
		hf_surface_error_body(
		    &c->out, f->type, f->code, f->param, f->message);
		hf_buf_puts(&c->out, "\n\n");
		send_out(c);
		hf_sink_end(c->sink);
	} else {
		hf_surface_error_body(
		    &c->out, f->type, f->code, f->param, f->message);
		turn_headers(&h, i);
		fail_headers(&h, f);
		hf_sink_reply(c->sink, f->status, h.h, h.n, "application/json",
		    hf_buf_str(&c->out));
	}
	chat_free(c);
}

static size_t
chat_backlog(void *arg)
{
	struct chat *c = arg;

	return hf_sink_backlog(c->sink);
}

static const struct hf_surface chat_surface = {
	.turn = chat_turn,
	.start = chat_start,
	.event = chat_event,
	.finish = chat_finish,
	.fail = chat_fail,
	.beat = chat_beat,
	.backlog = chat_backlog,
};

static void
on_gone(void *arg)
{
	struct chat *c = arg;
	struct hf_delivered d =
	    hf_progress_given(&c->progress, hf_sink_backlog(c->sink));

	if (c->follow != NULL)
		hf_follow_free(c->follow);
	else
		hf_turn_client_gone(c->turn, &d);
	chat_free(c);
}

static void
on_drained(void *arg)
{
	struct chat *c = arg;

	if (c->follow == NULL)
		hf_turn_drained(c->turn);
}

static struct chat *
chat_new(struct hf_turn_env *env, struct hf_sink *sink, bool stream,
    bool include_usage)
{
	struct chat *c = hf_xcalloc(1, sizeof(*c));

	c->env = env;
	c->sink = sink;
	c->stream = stream;
	c->include_usage = include_usage;
	hf_buf_init(&c->head, 4096);
	hf_buf_init(&c->out, HF_BUF_NOCAP);
	hf_progress_init(&c->progress);
	return c;
}

/* What was written before is one release: in doubt as much of its text has not
 * been taken as bytes have not, whole characters of it. */
static void
resume_progress(struct chat *c, const struct hf_turn_resumed *r)
{
	size_t left = hf_sink_backlog(c->sink);
	size_t at = left < r->text.size ? r->text.size - left : 0;

	while (at > 0 && at < r->text.size &&
	    ((unsigned char)r->text.p[at] & 0xc0) == 0x80)
		at--;
	c->told.text = (size_t)r->text_size;
	c->progress.given.text = (size_t)r->text_size - r->text.size + at;
	hf_progress_add(&c->progress, left, left, &c->told);
}

/* What is known of a turn that another process served. */
static void
resume(struct chat *c, struct hf_turn_input *in, const struct hf_resumed *was)
{
	struct hf_turn_resumed *r = &in->resumed;

	if (was == NULL || was->turn.size == 0)
		return; /* it had not come to a turn */
	HF_CHECK(was->turn.size < sizeof(r->turn.s));
	in->resumes = true;
	memcpy(r->turn.s, was->turn.p, was->turn.size);
	r->begun = was->head;
	r->poisoned = was->poisoned;
	r->text_size = was->text_size;
	r->said_us = was->said_us;
	r->text = hf_arena_dup(in->arena, was->text);
	if (r->text.p == NULL)
		r->text = HF_STR_NONE; /* it will not be gone on with */
	r->first_target = state_target(was->state);
	c->state = was->state;
	if (was->state != 0)
		c->created_s = state_time(was->state);
	resume_progress(c, r);
}

void
hf_chat_serve(struct hf_turn_env *env, struct hf_req *rq, struct hf_sink *sink)
{
	struct hf_turn_input in;
	struct hf_chat_options o = { 0 };
	struct hf_refusal r = { 0 };
	struct chat *c;

	if (hf_chat_parse(env->conf, rq, &in, &o, &r) != 0) {
		hf_count(env->shm, HF_C_requests_refused, 1);
		hf_surface_refuse(sink, &r, -1, true);
		return;
	}
	c = chat_new(env, sink, in.stream, o.include_usage);
	resume(c, &in, rq->resumed);
	c->turn = hf_turn_start(env, &in, &chat_surface, c);
	hf_sink_watch(sink, on_gone, on_drained, c);
	hf_turn_go(c->turn);
}

int
chat_follow(struct hf_turn_env *env, struct hf_sink *sink,
    const struct hf_follow_input *in, bool include_usage,
    const struct hf_resumed *was, struct hf_error *e)
{
	struct chat *c = chat_new(env, sink, true, include_usage);
	struct hf_follow_input from = *in;
	int rc;

	if (was != NULL) {
		from.after += was->text_size;
		c->state = was->state;
	}
	if (from.after > 0) /* the first chunk is where the text began */
		c->state |= STATE_FIRST_SENT;
	c->told.text = c->progress.given.text = (size_t)from.after;
	rc = hf_follow_start(&c->follow, env, &from, &chat_surface, c, e);
	if (rc < 0) {
		chat_free(c);
		return rc;
	}
	hf_sink_watch(sink, on_gone, on_drained, c);
	return 0;
}
