/*
 * Refusals: their status, their headers, and how they tell when to ask again.
 */
#include <config.h>

#include "bench/job.h"

#include <stdio.h>
#include <time.h>

#include "base/check.h"

/* "1.5s"; as limits that reset, and texts, have it. */
static void
put_seconds(struct hf_buf *b, unsigned ms)
{
	if (ms % 1000 == 0)
		hf_buf_printf(b, "%us", ms / 1000);
	else
		hf_buf_printf(b, "%u.%03us", ms / 1000, ms % 1000);
}

/* The time to ask again at, as HTTP or RFC 3339 has it. */
static void
put_time(struct hf_buf *b, bool http, unsigned ms)
{
	time_t at = time(NULL) + (ms + 999) / 1000;
	struct tm tm;
	char text[64];

	gmtime_r(&at, &tm);
	if (http)
		strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	else
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	hf_buf_puts(b, text);
}

static void
put_reset(struct hf_buf *b, const struct hf_bench_dialect *d, unsigned ms)
{
	if (d == &hf_bench_anthropic) {
		hf_buf_puts(b,
		    "anthropic-ratelimit-requests-limit: 50\r\n"
		    "anthropic-ratelimit-requests-remaining: 0\r\n"
		    "anthropic-ratelimit-requests-reset: ");
		put_time(b, false, ms);
	} else {
		hf_buf_puts(b,
		    "x-ratelimit-limit-requests: 50\r\n"
		    "x-ratelimit-remaining-requests: 0\r\n"
		    "x-ratelimit-reset-requests: ");
		put_seconds(b, ms);
	}
	hf_buf_puts(b, "\r\n");
}

static void
put_hint(struct hf_buf *b, const struct hf_bench_dialect *d,
    const struct hf_refusal *r)
{
	if (r->retry_ms == 0)
		return;
	switch (r->hint) {
	case HF_HINT_SECONDS:
		hf_buf_printf(
		    b, "Retry-After: %u\r\n", (r->retry_ms + 999) / 1000);
		break;
	case HF_HINT_DATE:
		hf_buf_puts(b, "Retry-After: ");
		put_time(b, true, r->retry_ms);
		hf_buf_puts(b, "\r\n");
		break;
	case HF_HINT_MS:
		hf_buf_printf(b, "retry-after-ms: %u\r\n", r->retry_ms);
		break;
	case HF_HINT_RESET:
		put_reset(b, d, r->retry_ms);
		break;
	case HF_HINT_DEFAULT:
	case HF_HINT_NONE:
	case HF_HINT_RETRY_INFO:
	case HF_HINT_TEXT:
	case HF_HINT_COUNT:
		break;
	}
}

void
hf_job_refuse(struct hf_sreq *rq, const struct hf_refusal *r)
{
	struct hf_job *j = rq->arg;
	struct hf_buf head, b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_init(&head, HF_BUF_NOCAP);
	hf_buf_puts(&head, "");
	j->d->error(&b, r, j->id);
	if (j->d != &hf_bench_gemini)
		hf_buf_printf(&head, "%s: req_%s\r\n",
		    j->d == &hf_bench_openai ? "x-request-id" : "request-id",
		    j->id);
	put_hint(&head, j->d, r);
	hf_job_free(rq);
	hf_sreq_reply(
	    rq, r->status, head.data, "application/json", hf_buf_str(&b));
	hf_buf_free(&head);
	hf_buf_free(&b);
}

/* How the fault wants it told, in the way of this dialect. */
static void
set_hint(const struct hf_job *j, struct hf_refusal *r)
{
	const struct hf_bench_fault *f = &j->fault;
	size_t n = strlen(r->message);
	struct hf_buf b;

	r->retry_ms = f->retry_after_s * 1000 + f->retry_after_ms;
	r->hint = f->hint;
	if (r->hint == HF_HINT_DEFAULT)
		r->hint = j->d == &hf_bench_gemini ? HF_HINT_RETRY_INFO :
		    f->retry_after_ms > 0	   ? HF_HINT_MS :
						     HF_HINT_SECONDS;
	if (r->hint != HF_HINT_TEXT || r->retry_ms == 0)
		return;
	hf_buf_init(&b, HF_BUF_NOCAP);
	put_seconds(&b, r->retry_ms);
	snprintf(r->message + n, sizeof(r->message) - n,
	    " Please try again in %s.", b.data);
	hf_buf_free(&b);
}

/* What is longer than a window, or not to be said, has words of its own. */
static void
reason(const struct hf_job *j, struct hf_refusal *r)
{
	bool context = j->fault.kind == HF_FAULT_CONTEXT;

	if (!context && j->fault.kind != HF_FAULT_POLICY)
		return;
	if (j->d == &hf_bench_openai)
		snprintf(r->code, sizeof(r->code), "%s",
		    context ? "context_length_exceeded" :
			      "content_policy_violation");
	snprintf(r->message, sizeof(r->message), "%s",
	    !context ? "Injected: the request was rejected by "
		       "the safety system." :
		j->d == &hf_bench_openai ?
		       "This model's maximum context length "
		       "is 8192 tokens. However, your "
		       "messages resulted in 9631 tokens." :
		j->d == &hf_bench_anthropic ?
		       "prompt is too long: 9631 tokens > "
		       "8192 maximum" :
		       "The input token count (9631) exceeds "
		       "the maximum number of tokens allowed "
		       "(8192).");
}

void
hf_job_fail(struct hf_sreq *rq)
{
	struct hf_job *j = rq->arg;
	int status = hf_fault_status(j->fault.kind);
	struct hf_refusal r;

	if (status == 502) {
		hf_job_free(rq);
		hf_sreq_reply(rq, 502, "", "text/html",
		    HF_STR("<html><head><title>502 Bad Gateway</title></head>"
			   "<body><center><h1>502 Bad Gateway</h1></center>"
			   "</body></html>\r\n"));
		return;
	}
	j->d->failure(status, &r);
	reason(j, &r);
	set_hint(j, &r);
	hf_job_refuse(rq, &r);
}
