/*
 * Responses.  Bytes of a stream gather until the end of the loop's pass and
 * leave as one chunk, with the head if that is new, in one write.  Loop thread.
 */
#include <config.h>

#include <stdlib.h>
#include <sys/socket.h>

#include <sodium.h>

#include "base/check.h"
#include "base/log.h"
#include "gateway/front/internal.h"

#define VALUE_MAX 4096			 /* bytes of a header value */
#define HF_REPLY_SMALL (HF_HOLD_OUT / 4) /* bytes that always fit */

struct hf_sink *
hf_sink_new(struct hf_conn *c, struct evhttp_request *ev)
{
	struct hf_sink *s = hf_xcalloc(1, sizeof(*s));

	s->front = c->front;
	s->conn = c;
	s->ev = ev;
	hf_buf_init(&s->said, HF_BUF_NOCAP);
	c->sink = s;
	c->front->in_flight++;
	LIST_INSERT_HEAD(&c->front->sinks, s, entry);
	return s;
}

static void
tell_sent(struct hf_sink *s, bool sent)
{
	void (*fn)(void *arg, bool sent) = s->sent;

	s->sent = NULL;
	if (fn != NULL)
		fn(s->sent_arg, sent);
}

void
hf_sink_on_sent(struct hf_sink *s, void (*fn)(void *arg, bool sent), void *arg)
{
	s->sent = fn;
	s->sent_arg = arg;
}

void
hf_sink_free(struct hf_sink *s)
{
	tell_sent(s, false);
	if (s->todo != 0)
		TAILQ_REMOVE(&s->front->sink_todo, s, todo_entry);
	if (s->leaving)
		TAILQ_REMOVE(&s->front->leavers, s, leaver_entry);
	if (s->conn != NULL)
		s->conn->sink = NULL;
	s->front->in_flight--;
	LIST_REMOVE(s, entry);
	hf_http_head_free(s->head);
	free(s->head);
	if (s->body != NULL)
		evbuffer_free(s->body);
	if (s->pending != NULL)
		evbuffer_free(s->pending);
	hf_buf_free(&s->said);
	hf_buf_free(&s->resumed_text);
	free(s->resumed);
	free(s->path);
	free(s);
}

void
hf_sink_queue(struct hf_sink *s, unsigned what)
{
	if (s->todo == 0)
		TAILQ_INSERT_TAIL(&s->front->sink_todo, s, todo_entry);
	s->todo |= what;
	if (!s->front->closing)
		event_active(s->front->work, 0, 0);
}

/* --- for a successor --- */

void
hf_sink_turn(struct hf_sink *s, const struct hf_id *turn)
{
	s->turn = *turn;
	hf_held_turn(s);
}

void
hf_sink_said(struct hf_sink *s, struct hf_str text)
{
	hf_buf_putstr(&s->said, text);
}

void
hf_sink_state(struct hf_sink *s, uint32_t state)
{
	s->state = state;
}

/* --- the connection's news --- */

void
hf_sink_hung(struct hf_sink *s)
{
	struct hf_front *f = s->front;
	const struct timeval now = { 0, 0 };

	if (s->finished || s->gone == NULL || s->leaving)
		return;
	s->leaving = true;
	TAILQ_INSERT_TAIL(&f->leavers, s, leaver_entry);
	if (!f->closing && !evtimer_pending(f->leave, NULL))
		evtimer_add(f->leave, &now);
}

/* Called from evhttp's frames, possibly: the connection is being freed. */
void
hf_sink_closed(struct hf_sink *s)
{
	/* evhttp lets go of a request that was not answered yet. */
	if (s->ev != NULL && evhttp_request_get_connection(s->ev) == NULL)
		evhttp_request_free(s->ev);
	s->ev = NULL;
	s->conn = NULL;
	if (s->finished)
		hf_sink_queue(s, HF_SINK_FREE);
	else
		hf_sink_hung(s);
}

/* evhttp wrote the whole response and is about to free the request. */
static void
completed(struct evhttp_request *ev, void *arg)
{
	struct hf_sink *s = arg;
	struct hf_conn *c = s->conn;

	s->ev = NULL;
	s->conn = NULL;
	tell_sent(s, true);
	hf_sink_queue(s, HF_SINK_FREE);
	if (c == NULL)
		return;
	hf_conn_next(c);
	/* evhttp closes where it sent Connection: close, but not after CONNECT
	 * nor if draining began within the response. */
	if (s->close || s->front->draining) {
		evhttp_add_header(evhttp_request_get_output_headers(ev),
		    "Connection", "close");
		hf_conn_queue(c, HF_CONN_CLOSE);
	}
}

void
hf_sink_watch(struct hf_sink *s, void (*gone)(void *arg),
    void (*drained)(void *arg), void *arg)
{
	s->gone = gone;
	s->drained = drained;
	s->arg = arg;
	if (s->conn == NULL || s->conn->hung)
		hf_sink_hung(s);
}

/* --- heads --- */

static const char *
phrase(int status)
{
	static const struct {
		int status;
		const char *text;
	} row[] = {
		{ 413, "Content Too Large" },
		{ 422, "Unprocessable Content" },
		{ 424, "Failed Dependency" },
		{ 425, "Too Early" },
		{ 429, "Too Many Requests" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 507, "Insufficient Storage" },
		{ 529, "Overloaded" },
	};

	for (size_t i = 0; i < hf_countof(row); i++)
		if (row[i].status == status)
			return row[i].text;
	return NULL; /* evhttp knows the others */
}

static void
add_header(struct hf_sink *s, const char *name, struct hf_str value)
{
	static struct hf_log_limit limit;
	char z[VALUE_MAX + 1] HF_UNINIT;

	if (value.size <= VALUE_MAX && hf_field_value_valid(value) &&
	    hf_token_valid(hf_str(name))) {
		if (value.size > 0)
			memcpy(z, value.p, value.size);
		z[value.size] = '\0';
		if (evhttp_add_header(
			evhttp_request_get_output_headers(s->ev), name, z) == 0)
			return;
	}
	hf_log_limited(&limit, 1000, HF_LOG_WARN,
	    "front: header-dropped name=%s size=%zu", name, value.size);
}

static void
add_headers(struct hf_sink *s, int status, const struct hf_header *h,
    unsigned n, const char *content_type)
{
	char allow[64];

	s->bodiless = s->rq.method == HF_HEAD || status == 204 || status == 304;
	if (content_type != NULL && status != 204)
		add_header(s, "Content-Type", hf_str(content_type));
	for (unsigned i = 0; i < n; i++)
		add_header(s, h[i].name, h[i].value);
	if (status == 405 && s->allow != 0) {
		hf_methods_print(s->allow, allow, sizeof(allow));
		add_header(s, "Allow", hf_str(allow));
	}
	if (s->close || s->front->draining || s->conn->hung)
		add_header(s, "Connection", HF_STR("close"));
}

static void
count_out(struct hf_sink *s, size_t n)
{
	hf_count(s->front->c.shm, HF_C_bytes_out, (int64_t)n);
}

/* Finishes 's' when its connection is gone or it was finished before. */
static bool
dead(struct hf_sink *s)
{
	if (s->finished)
		return true;
	if (s->conn != NULL)
		return false;
	s->finished = true;
	hf_sink_queue(s, HF_SINK_FREE);
	return true;
}

/* A predecessor has written it, and it must not be said twice. */
static void
drop_output(struct hf_sink *s, size_t n)
{
	struct evbuffer *out = bufferevent_get_output(s->conn->bev);

	/* It stands alone: what was there before is in the hold. */
	HF_CHECK(evbuffer_get_length(out) >= n);
	evbuffer_drain(out, n);
}

static uint64_t
hash(struct hf_str body)
{
	static const unsigned char key[crypto_shorthash_KEYBYTES];
	uint64_t h;

	crypto_shorthash(
	    (unsigned char *)&h, (const unsigned char *)body.p, body.size, key);
	return h;
}

/* A reply that may not fit into the hold at once can be made again; a part of
 * it that the client has already is not sent twice. */
static void
keep_reply(struct hf_sink *s, struct hf_str body, size_t size)
{
	struct hf_held_reply was;

	s->body_size = s->bodiless ? 0 : body.size;
	s->head_size = size - (size_t)s->body_size;
	if (s->resumed == NULL || !s->resumed->head) {
		if (s->body_size > HF_REPLY_SMALL) {
			s->reply = true;
			s->body_hash = hash(body);
		}
		return;
	}
	hf_held_reply(s, &was);
	if (was.any && was.size == s->body_size && was.hash == hash(body) &&
	    was.sent < s->body_size) {
		s->reply = true;
		s->body_hash = was.hash;
		drop_output(s, s->head_size + (size_t)was.sent);
		s->head_size = was.head;
		return;
	}
	hf_log(HF_LOG_ERROR, "front: resumed-reply-differs size=%llu",
	    (unsigned long long)s->body_size);
	s->finished = false;
	hf_sink_abort(s);
}

void
hf_sink_reply(struct hf_sink *s, int status, const struct hf_header *h,
    unsigned n, const char *content_type, struct hf_str body)
{
	struct evbuffer *out = NULL;
	size_t before;
	char size[24];

	HF_CHECK(!s->started);
	if (dead(s))
		return;
	add_headers(s, status, h, n, content_type);
	if (s->rq.method == HF_HEAD) {
		/* What GET would send; evhttp adds none for HEAD. */
		snprintf(size, sizeof(size), "%zu", body.size);
		add_header(s, "Content-Length", hf_str(size));
	} else if (!s->bodiless && body.size > 0) {
		out = evbuffer_new();
		HF_CHECK(
		    out != NULL && evbuffer_add(out, body.p, body.size) == 0);
		count_out(s, body.size);
	}
	s->finished = true;
	before = hf_conn_unsent(s->conn);
	evhttp_request_set_on_complete_cb(s->ev, completed, s);
	evhttp_send_reply(s->ev, status, phrase(status), out);
	if (out != NULL)
		evbuffer_free(out);
	keep_reply(s, body, hf_conn_unsent(s->conn) - before);
}

/* --- streams --- */

void
hf_sink_start(struct hf_sink *s, int status, const struct hf_header *h,
    unsigned n, const char *content_type)
{
	size_t before;

	HF_CHECK(!s->started);
	s->started = true;
	if (s->finished || s->conn == NULL)
		return;
	before = hf_conn_unsent(s->conn);
	s->chunked = s->head->minor > 0;
	if (!s->chunked) {
		/* The end of the connection is the end of the stream; evhttp
		 * would promise a Content-Length of 0 for keep-alive. */
		s->close = true;
		while (evhttp_remove_header(
			   evhttp_request_get_input_headers(s->ev),
			   "Connection") == 0)
			;
	}
	add_headers(s, status, h, n, content_type);
	if (s->bodiless)
		s->chunked = false;
	evhttp_request_set_on_complete_cb(s->ev, completed, s);
	evhttp_send_reply_start(s->ev, status, phrase(status));
	s->head_size = hf_conn_unsent(s->conn) - before;
	if (s->resumed != NULL && s->resumed->head)
		drop_output(s, s->head_size);
}

bool
hf_sink_started(const struct hf_sink *s)
{
	return s->started;
}

size_t
hf_sink_backlog(const struct hf_sink *s)
{
	size_t n = s->pending == NULL ? 0 : evbuffer_get_length(s->pending);

	if (s->conn != NULL)
		return n + hf_conn_unsent(s->conn);
	return n + s->lost;
}

void
hf_sink_write(struct hf_sink *s, struct hf_str bytes)
{
	HF_CHECK(s->started);
	if (s->conn == NULL)
		s->lost += bytes.size;
	if (s->finished || s->conn == NULL || s->bodiless || bytes.size == 0)
		return;
	if (s->pending == NULL) {
		s->pending = evbuffer_new();
		HF_CHECK(s->pending != NULL);
	}
	HF_CHECK(evbuffer_add(s->pending, bytes.p, bytes.size) == 0);
	count_out(s, bytes.size);
	if (hf_sink_backlog(s) >= HF_SINK_LOW)
		s->high = true;
	hf_conn_queue(s->conn, HF_CONN_WRITE);
}

/* Put what gathered into a frame. */
static void
frame(struct hf_sink *s)
{
	char size[24];
	size_t n = s->pending == NULL ? 0 : evbuffer_get_length(s->pending);

	if (n == 0 || !s->chunked)
		return;
	snprintf(size, sizeof(size), "%zx\r\n", n);
	HF_CHECK(evbuffer_prepend(s->pending, size, strlen(size)) == 0 &&
	    evbuffer_add(s->pending, "\r\n", 2) == 0);
}

void
hf_sink_gather(struct hf_sink *s)
{
	if (s->conn == NULL || s->pending == NULL ||
	    evbuffer_get_length(s->pending) == 0)
		return;
	frame(s);
	evbuffer_add_buffer(bufferevent_get_output(s->conn->bev), s->pending);
	hf_sink_progress(s);
}

void
hf_sink_progress(struct hf_sink *s)
{
	if (!s->high || s->finished || hf_sink_backlog(s) >= HF_SINK_LOW)
		return;
	s->high = false;
	if (s->drained != NULL)
		hf_sink_queue(s, HF_SINK_DRAINED);
}

void
hf_sink_end(struct hf_sink *s)
{
	HF_CHECK(s->started);
	if (dead(s))
		return;
	hf_sink_gather(s);
	s->finished = true;
	/* May complete at once and free the request and the connection. */
	evhttp_send_reply_end(s->ev);
}

void
hf_sink_abort(struct hf_sink *s)
{
	if (dead(s))
		return;
	s->finished = true;
	hf_sink_queue(s, HF_SINK_CUT);
}

/* What was said so far may still leave; then the chunked body ends without its
 * last chunk.  Where only a close marks the end, a reset tells the truth. */
static void
cut(struct hf_sink *s)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	struct hf_conn *c = s->conn;

	if (c == NULL)
		return;
	if (s->started && s->chunked)
		hf_conn_push(c);
	else
		/* evhttp would send a FIN; dissolving sends a RST first. */
		(void)connect(c->fd, &nowhere, sizeof(nowhere));
	hf_conn_close(c); /* comes back through hf_sink_closed() */
}

void
hf_sink_tell_gone(struct hf_sink *s)
{
	void (*gone)(void *) = s->gone;
	struct hf_conn *c = s->conn;

	TAILQ_REMOVE(&s->front->leavers, s, leaver_entry);
	s->leaving = false;
	if (s->finished)
		return; /* answered meanwhile */
	s->finished = true;
	if (c != NULL)
		hf_conn_close(c);
	else
		hf_sink_queue(s, HF_SINK_FREE);
	gone(s->arg);
}

void
hf_sink_work(struct hf_sink *s)
{
	unsigned todo = s->todo;

	s->todo = 0;
	if ((todo & HF_SINK_FREE) != 0) {
		hf_sink_free(s);
		return;
	}
	if ((todo & HF_SINK_CUT) != 0) {
		cut(s);
		return;
	}
	if (s->finished)
		return;
	if ((todo & HF_SINK_DRAINED) == 0 || s->finished)
		return;
	/* If it grew meanwhile, it is owed still: whoever stopped writing
	 * must hear of it. */
	if (hf_sink_backlog(s) < HF_SINK_LOW)
		s->drained(s->arg);
	else
		s->high = true;
}
