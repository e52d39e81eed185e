/*
 * How a faithful provider's answer goes out, and how it fails on the way.
 */
#include <config.h>

#include "bench/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"

/* What was sent arrives before the failure does. */
#define BREATH_MS 10

static void
job_free(struct hf_sreq *rq)
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
	rq->gone = job_free;
	return j;
}

/* --- bad and good endings ------------------------------------------------ */

void
hf_job_refuse(struct hf_sreq *rq, const struct hf_refusal *r)
{
	struct hf_job *j = rq->arg;
	char headers[160];
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	j->d->error(&b, r, j->id);
	snprintf(headers, sizeof(headers), "%s: req_%s\r\n",
	    j->d == &hf_bench_openai ? "x-request-id" : "request-id", j->id);
	if (j->fault.retry_after_s > 0)
		snprintf(headers + strlen(headers), 40, "Retry-After: %u\r\n",
		    j->fault.retry_after_s);
	job_free(rq);
	hf_sreq_reply(
	    rq, r->status, headers, "application/json", hf_buf_str(&b));
	hf_buf_free(&b);
}

static void
send_status(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;
	int status = hf_fault_status(j->fault.kind);
	struct hf_refusal r;

	if (status == 502) {
		job_free(rq);
		hf_sreq_reply(rq, 502, "", "text/html",
		    HF_STR("<html><head><title>502 Bad Gateway</title></head>"
			   "<body><center><h1>502 Bad Gateway</h1></center>"
			   "</body></html>\r\n"));
		return;
	}
	j->d->failure(status, &r);
	hf_job_refuse(rq, &r);
}

/* --- streams -------------------------------------------------------------- */

static bool
fails(const struct hf_job *j)
{
	return hf_fault_in_stream(j->fault.kind);
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
	if (kind == HF_FAULT_CUT || kind == HF_FAULT_CUT_RESET) {
		job_free(rq);
		hf_sreq_close(rq, kind == HF_FAULT_CUT_RESET);
		return;
	}
	hf_buf_init(&b, HF_BUF_NOCAP);
	if (j->cut.bytes > 0 && kind == HF_FAULT_STREAM_ERROR)
		hf_buf_puts(&b, "\n\n"); /* ends the broken event */
	if (kind == HF_FAULT_STREAM_ERROR) {
		j->d->failure(j->d == &hf_bench_openai ? 500 : 529, &r);
		j->d->error_event(&b, &r);
	} else if (kind == HF_FAULT_GARBLE) {
		hf_buf_puts(&b, j->cut.bytes > 0 ? "" : "data: {\"id\":\"");
		hf_buf_puts(&b, "\xff\xfe<html>502\r\n\r\n\x01\x02");
	}
	hf_sreq_chunk(rq, hf_buf_str(&b));
	hf_buf_free(&b);
	job_free(rq);
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
	job_free(rq);
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
		job_free(rq);
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

	if (!j->streaming) {
		send_plain(rq);
		return;
	}
	hf_sreq_start(rq, 200, "Cache-Control: no-cache\r\n",
	    "text/event-stream; charset=utf-8");
	if (!fails(j) || j->cut.head)
		hf_sreq_chunk(rq, hf_buf_str(&j->stream.head));
	send_pieces(rq);
}

void
hf_job_run(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;

	switch (j->fault.kind) {
	case HF_FAULT_SILENCE:
		return;
	case HF_FAULT_HEADERS:
		hf_sreq_start(rq, 200, "",
		    j->streaming ? "text/event-stream; charset=utf-8" :
				   "application/json");
		return;
	case HF_FAULT_CLOSE:
	case HF_FAULT_RESET: {
		bool reset = j->fault.kind == HF_FAULT_RESET;

		job_free(rq);
		hf_sreq_close(rq, reset);
		return;
	}
	case HF_FAULT_SLOW:
		hf_sreq_after(rq, j->fault.delay_ms, send_answer);
		return;
	case HF_FAULT_GARBAGE:
		job_free(rq);
		hf_sreq_reply(rq, 200, "", "application/json",
		    HF_STR("{\"id\":\"chatcmpl-"));
		return;
	case HF_FAULT_HTTP_400:
	case HF_FAULT_HTTP_401:
	case HF_FAULT_HTTP_404:
	case HF_FAULT_HTTP_429:
	case HF_FAULT_HTTP_500:
	case HF_FAULT_HTTP_502:
	case HF_FAULT_HTTP_503:
	case HF_FAULT_HTTP_529:
		send_status(rq);
		return;
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
