/*
 * The parts of an outbound request that every dialect needs.
 */
#include <config.h>

#include "gateway/provider/request.h"

/* A whole history with its tools; far above any provider's own limit. */
#define BODY_MAX	((size_t)256 * 1024 * 1024)
#define HEADERS_MAX	((size_t)64 * 1024)

void
hf_http_request_init(struct hf_http_request *r)
{
	hf_buf_init(&r->url, HEADERS_MAX);
	hf_buf_init(&r->headers, HEADERS_MAX);
	hf_buf_init(&r->body, BODY_MAX);
}

void
hf_http_request_free(struct hf_http_request *r)
{
	/* The secret does not stay behind in freed memory. */
	if (r->headers.data != NULL)
		explicit_bzero(r->headers.data, r->headers.size);
	hf_buf_free(&r->url);
	hf_buf_free(&r->headers);
	hf_buf_free(&r->body);
}

/* True if 's' may stand in a header line. */
static bool
clean(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

int
hf_request_header(struct hf_http_request *r, const char *name,
    const char *before, const char *value, struct hf_error *e)
{
	if (value == NULL || *value == '\0')
		return 0;
	if (!clean(value))
		return hf_fail(e, HF_EINVAL,
		    "control character in the value of header %s", name);
	hf_buf_puts(&r->headers, name);
	hf_buf_puts(&r->headers, ": ");
	hf_buf_puts(&r->headers, before);
	hf_buf_puts(&r->headers, value);
	hf_buf_putc(&r->headers, '\n');
	return 0;
}

int
hf_request_common(struct hf_http_request *r, bool stream, struct hf_error *e)
{
	int rc;

	rc = hf_request_header(r, "Content-Type", "", "application/json", e);
	if (rc == 0)
		rc = hf_request_header(r, "Accept", "", stream ?
		    "text/event-stream" : "application/json", e);
	if (rc == 0)
		rc = hf_request_header(r, "Accept-Encoding", "", "identity",
		    e);
	return rc;
}

void
hf_request_url(struct hf_http_request *r, const char *base, const char *path)
{
	size_t n = base == NULL ? 0 : strlen(base);

	while (n > 0 && base[n - 1] == '/')
		n--;
	hf_buf_put(&r->url, base, n);
	hf_buf_puts(&r->url, path);
}

int
hf_request_check(const struct hf_http_request *r, struct hf_error *e)
{
	if (!hf_buf_ok(&r->url) || !hf_buf_ok(&r->headers) ||
	    !hf_buf_ok(&r->body))
		return hf_fail(e, HF_ELIMIT, "request is too large");
	return 0;
}
