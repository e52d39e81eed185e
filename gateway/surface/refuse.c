/*
 * Answering with a refusal.
 */
#include <config.h>

#include "gateway/surface/surface.h"

#include <stdio.h>

void
hf_surface_refuse(struct hf_sink *sink, const struct hf_refusal *r,
    int64_t retry_after_ms, bool final)
{
	struct hf_header h[4];
	struct hf_id id;
	char seconds[24], ms[24];
	struct hf_buf body;
	unsigned n = 0;

	/* What users quote in their reports; turns have their own. */
	hf_id_make(&id, "req_");
	h[n++] = (struct hf_header){ "X-Request-Id", hf_str(id.s) };
	if (retry_after_ms >= 0) {
		snprintf(seconds, sizeof(seconds), "%lld",
		    (long long)(retry_after_ms + 999) / 1000);
		snprintf(ms, sizeof(ms), "%lld", (long long)retry_after_ms);
		h[n++] = (struct hf_header){ "Retry-After", hf_str(seconds) };
		h[n++] = (struct hf_header){ "Retry-After-Ms", hf_str(ms) };
	}
	if (final)
		h[n++] =
		    (struct hf_header){ "X-Should-Retry", HF_STR("false") };
	hf_buf_init(&body, 64 * 1024);
	hf_surface_error_body(
	    &body, r->type, r->code, hf_str(r->param), hf_str(r->message));
	hf_sink_reply(
	    sink, r->status, h, n, "application/json", hf_buf_str(&body));
	hf_buf_free(&body);
}
