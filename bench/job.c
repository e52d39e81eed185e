/*
 * How a faithful provider's answer goes out, and how it fails on the way.
 */
#include <config.h>

#include "bench/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

/* What was sent arrives before the failure does. */
#define BREATH_MS 10
#define DRIBBLE_MS 1000 /* unless the manifest says */
#define DRIBBLE_PARTS 10
#define ALARM_MS 40

void
hf_job_free(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;

	rq->arg = NULL;
	if (j == NULL)
		return;
	hf_stream_free(&j->stream);
	hf_buf_free(&j->plain);
	free(j);
}

struct hf_job *
hf_job_new(
    struct hf_sreq *rq, const struct hf_bench_dialect *d, uint64_t serial)
{
	struct hf_job *j = hf_xcalloc(1, sizeof(*j));

	j->d = d;
	hf_stream_init(&j->stream);
	hf_buf_init(&j->plain, HF_BUF_NOCAP);
	snprintf(j->id, sizeof(j->id), "hf%llx%06llx",
	    (unsigned long long)time(NULL), (unsigned long long)serial);
	rq->arg = j;
	rq->gone = hf_job_free;
	return j;
}

/* --- streams -------------------------------------------------------------- */

static bool
fails(const struct hf_job *j)
{
	return hf_fault_in_stream(j->fault.kind) &&
	    j->fault.phase != HF_PHASE_DONE;
}

static void send_pieces(struct hf_sreq *rq);

/* Tells that it is at its place, and lets whoever hears it do something. */
static void
alarm_at(struct hf_sreq *rq, void (*then)(struct hf_sreq *rq))
{
	struct hf_job *j = rq->arg;
	char line[128];
	int n;

	n = snprintf(line, sizeof(line), "%s %u\n", j->user, hf_sreq_port(rq));
	if (j->alarm_fd > 0 && write(j->alarm_fd, line, (size_t)n) != n)
		j->alarm_fd = 0;
	if (then != NULL)
		hf_sreq_after(rq, ALARM_MS, then);
}

/* The rest, as if nothing had been. */
static void
go_on(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;
	struct hf_str s;

	if (j->cut.bytes > 0) {
		s = hf_buf_str(&j->stream.piece[j->cut.pieces].bytes);
		s.p += j->cut.bytes;
		s.size -= j->cut.bytes;
		hf_sreq_chunk(rq, s);
		j->next++;
	}
	if (!j->cut.head)
		hf_sreq_chunk(rq, hf_buf_str(&j->stream.head));
	j->fault.kind = HF_FAULT_NONE;
	send_pieces(rq);
}

/* An event that is none, in the place of one; the rest is right. */
static void
send_broken(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;

	hf_sreq_chunk(
	    rq, HF_STR("data: {\"choices\":[{\"delta\":{\"content\":\n\n"));
	j->fault.kind = HF_FAULT_NONE;
	j->next = j->cut.pieces + (j->cut.pieces < j->stream.n_piece);
	send_pieces(rq);
}

/* What comes instead of the rest of a stream that fails. */
static void
break_off(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;
	enum hf_fault_kind kind = j->fault.kind;
	struct hf_refusal r;
	struct hf_buf b;

	if (kind == HF_FAULT_STALL)
		return;
	if (kind == HF_FAULT_ALARM) {
		alarm_at(rq, go_on);
		return;
	}
	if (kind == HF_FAULT_BROKEN_EVENT) {
		send_broken(rq);
		return;
	}
	if (kind == HF_FAULT_CUT || kind == HF_FAULT_CUT_RESET) {
		hf_job_free(rq);
		hf_sreq_close(rq, kind == HF_FAULT_CUT_RESET);
		return;
	}
	hf_buf_init(&b, HF_BUF_NOCAP);
	if (j->cut.bytes > 0 && kind == HF_FAULT_STREAM_ERROR)
		hf_buf_puts(&b, "\n\n"); /* ends the broken event */
	if (kind == HF_FAULT_STREAM_ERROR) {
		j->d->failure(j->d == &hf_bench_anthropic ? 529 : 500, &r);
		j->d->error_event(&b, &r);
	} else if (kind == HF_FAULT_GARBLE) {
		hf_buf_puts(&b, j->cut.bytes > 0 ? "" : "data: {\"id\":\"");
		hf_buf_puts(&b, "\xff\xfe<html>502\r\n\r\n\x01\x02");
	}
	hf_sreq_chunk(rq, hf_buf_str(&b));
	hf_buf_free(&b);
	hf_job_free(rq);
	hf_sreq_end(rq);
}

static void
end_stream(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;

	if (!fails(j) || j->cut.finish)
		hf_sreq_chunk(rq, hf_buf_str(&j->stream.finish));
	if (fails(j)) {
		if (j->cut.bytes > 0) {
			struct hf_str s =
			    hf_buf_str(&j->stream.piece[j->cut.pieces].bytes);

			s.size = j->cut.bytes;
			hf_sreq_chunk(rq, s);
		}
		hf_sreq_after(rq, BREATH_MS, break_off);
		return;
	}
	hf_sreq_chunk(rq, hf_buf_str(&j->stream.tail));
	if (j->fault.kind == HF_FAULT_ALARM) /* the end follows at once */
		alarm_at(rq, NULL);
	hf_job_free(rq);
	hf_sreq_end(rq);
}

static void
send_pieces(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;
	unsigned last = fails(j) ? j->cut.pieces : j->stream.n_piece;

	while (j->next < last) {
		hf_sreq_chunk(
		    rq, hf_buf_str(&j->stream.piece[j->next++].bytes));
		if (j->chunk_ms > 0 && j->next < last) {
			hf_sreq_after(rq, j->chunk_ms, send_pieces);
			return;
		}
	}
	end_stream(rq);
}

/* --- whole answers -------------------------------------------------------- */

/* A little now and then. */
static void
dribble(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;
	size_t left = j->plain.size - j->sent;
	size_t n = j->plain.size / DRIBBLE_PARTS + 1;

	n = n < left ? n : left;
	hf_sreq_chunk(rq, (struct hf_str){ j->plain.data + j->sent, n });
	j->sent += n;
	if (j->sent < j->plain.size) {
		hf_sreq_after(rq, j->chunk_ms, dribble);
		return;
	}
	hf_job_free(rq);
	hf_sreq_end(rq);
}

/* 200, and in it an error. */
static void
send_error_200(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;
	struct hf_refusal r;
	struct hf_buf b;

	j->d->failure(500, &r);
	hf_buf_init(&b, HF_BUF_NOCAP);
	if (j->streaming) {
		j->d->error_event(&b, &r);
		hf_job_free(rq);
		hf_sreq_start(rq, 200, "", "text/event-stream");
		hf_sreq_chunk(rq, hf_buf_str(&b));
		hf_sreq_end(rq);
	} else {
		j->d->error(&b, &r, j->id);
		hf_job_free(rq);
		hf_sreq_reply(rq, 200, "", "application/json", hf_buf_str(&b));
	}
	hf_buf_free(&b);
}

/* One that is not a stream: half of it, and the same end. */
static void
send_plain(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;
	struct hf_buf plain = j->plain;
	struct hf_str body = hf_buf_str(&plain);
	struct hf_refusal r;

	hf_buf_init(&j->plain, 0);
	if (j->fault.kind == HF_FAULT_STREAM_ERROR) {
		j->d->failure(500, &r);
		hf_job_refuse(rq, &r);
	} else if (j->fault.kind == HF_FAULT_NO_END || !fails(j)) {
		if (fails(j))
			body.size--;
		hf_job_free(rq);
		hf_sreq_reply(rq, 200, "", "application/json", body);
	} else {
		body.size /= 2;
		hf_sreq_start(rq, 200, "", "application/json");
		hf_sreq_chunk(rq, body);
		hf_sreq_after(rq, BREATH_MS, break_off);
	}
	hf_buf_free(&plain);
}

static void
send_answer(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;

	if (j->fault.kind == HF_FAULT_DRIBBLE)
		j->chunk_ms =
		    j->fault.delay_ms > 0 ? j->fault.delay_ms : DRIBBLE_MS;
	if (!j->streaming && j->fault.kind == HF_FAULT_DRIBBLE) {
		hf_sreq_start(rq, 200, "", "application/json");
		dribble(rq);
		return;
	}
	if (!j->streaming) {
		send_plain(rq);
		return;
	}
	hf_sreq_start(rq, 200, "Cache-Control: no-cache\r\n",
	    j->array ? "application/json" : "text/event-stream; charset=utf-8");
	if (!fails(j) || j->cut.head)
		hf_sreq_chunk(rq, hf_buf_str(&j->stream.head));
	send_pieces(rq);
}

static void
send_headers(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;

	hf_sreq_start(rq, 200, "",
	    j->streaming ? "text/event-stream; charset=utf-8" :
			   "application/json");
}

/* The body, behind its headers. */
static void
send_late(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;
	struct hf_buf plain = j->plain;

	if (j->streaming) {
		send_pieces(rq);
		return;
	}
	hf_buf_init(&j->plain, 0);
	hf_job_free(rq);
	hf_sreq_chunk(rq, hf_buf_str(&plain));
	hf_sreq_end(rq);
	hf_buf_free(&plain);
}

static void
start_late(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;

	send_headers(rq);
	if (j->streaming)
		hf_sreq_chunk(rq, hf_buf_str(&j->stream.head));
	hf_sreq_after(rq, j->fault.delay_ms, send_late);
}

void
hf_job_run(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;

	switch (j->fault.kind) {
	case HF_FAULT_SILENCE:
		return;
	case HF_FAULT_HEADERS:
		send_headers(rq);
		return;
	case HF_FAULT_CLOSE:
	case HF_FAULT_RESET:
	case HF_FAULT_REFUSED: {
		bool reset = j->fault.kind != HF_FAULT_CLOSE;

		hf_job_free(rq);
		hf_sreq_close(rq, reset);
		return;
	}
	case HF_FAULT_ALARM:
		if (j->streaming && j->fault.phase != HF_PHASE_RECEIVED)
			break;
		j->fault.kind = HF_FAULT_NONE;
		alarm_at(rq, send_answer);
		return;
	case HF_FAULT_LATE:
		start_late(rq);
		return;
	case HF_FAULT_SLOW:
		hf_sreq_after(rq, j->fault.delay_ms, send_answer);
		return;
	case HF_FAULT_GARBAGE:
		hf_job_free(rq);
		hf_sreq_reply(rq, 200, "", "application/json",
		    HF_STR("{\"id\":\"chatcmpl-"));
		return;
	case HF_FAULT_HTML:
		hf_job_free(rq);
		hf_sreq_reply(rq, 200, "", "text/html",
		    HF_STR("<html><head><title>Welcome</title></head>"
			   "<body>It works.</body></html>\r\n"));
		return;
	case HF_FAULT_ERROR_200:
		send_error_200(rq);
		return;
	case HF_FAULT_HTTP_400:
	case HF_FAULT_HTTP_401:
	case HF_FAULT_HTTP_404:
	case HF_FAULT_HTTP_429:
	case HF_FAULT_HTTP_500:
	case HF_FAULT_HTTP_502:
	case HF_FAULT_HTTP_503:
	case HF_FAULT_HTTP_529:
	case HF_FAULT_HTTP_403:
	case HF_FAULT_HTTP_408:
	case HF_FAULT_HTTP_504:
	case HF_FAULT_CONTEXT:
	case HF_FAULT_POLICY:
	case HF_FAULT_RATE_LIMIT:
		hf_job_fail(rq);
		return;
	case HF_FAULT_EMPTY:
	case HF_FAULT_DRIBBLE:
	case HF_FAULT_BROKEN_EVENT:
	case HF_FAULT_NONE:
	case HF_FAULT_CUT:
	case HF_FAULT_CUT_RESET:
	case HF_FAULT_STALL:
	case HF_FAULT_STREAM_ERROR:
	case HF_FAULT_GARBLE:
	case HF_FAULT_NO_END:
	case HF_FAULT_COUNT:
		break;
	}
	send_answer(rq);
}
