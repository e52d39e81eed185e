/*
 * What a finished call means to the failover policy: libcurl's codes to
 * classes and reasons.  Pure.
 */
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "gateway/upstream/internal.h"

/* A pooled connection that its peer has given up dies within a round trip; one
 * that dies later died of the request, or with its server. */
#define STALE_US ((int64_t)2000000)

struct meaning {
	CURLcode rc;
	enum hf_class cls;
	const char *reason;
};

static const struct meaning table[] = {
	{ CURLE_COULDNT_RESOLVE_HOST, HF_CLASS_NETWORK, "resolve" },
	{ CURLE_COULDNT_CONNECT, HF_CLASS_NETWORK, "connect_failed" },
	{ CURLE_OPERATION_TIMEDOUT, HF_CLASS_NETWORK, "connect_timeout" },
	/* The pooled connection died after the request was sent on it; we
	 * did not let the library send it again. */
	{ CURLE_SEND_FAIL_REWIND, HF_CLASS_NETWORK, "reset" },
	{ CURLE_PARTIAL_FILE, HF_CLASS_NETWORK, "eof" },
	{ CURLE_GOT_NOTHING, HF_CLASS_NETWORK, "eof" },
	{ CURLE_RECV_ERROR, HF_CLASS_NETWORK, "reset" },
	{ CURLE_SEND_ERROR, HF_CLASS_NETWORK, "reset" },
	{ CURLE_SSL_CONNECT_ERROR, HF_CLASS_NETWORK, "tls" },
	{ CURLE_PEER_FAILED_VERIFICATION, HF_CLASS_NETWORK, "tls" },
	{ CURLE_SSL_CERTPROBLEM, HF_CLASS_NETWORK, "tls" },
	{ CURLE_SSL_CIPHER, HF_CLASS_NETWORK, "tls" },
	{ CURLE_SSL_ISSUER_ERROR, HF_CLASS_NETWORK, "tls" },
	{ CURLE_SSL_INVALIDCERTSTATUS, HF_CLASS_NETWORK, "tls" },
	{ CURLE_SSL_CACERT_BADFILE, HF_CLASS_NETWORK, "tls" },
	{ CURLE_SSL_SHUTDOWN_FAILED, HF_CLASS_NETWORK, "tls" },
	{ CURLE_USE_SSL_FAILED, HF_CLASS_NETWORK, "tls" },
	{ CURLE_UNSUPPORTED_PROTOCOL, HF_CLASS_PROVIDER, "bad_http" },
	{ CURLE_WEIRD_SERVER_REPLY, HF_CLASS_PROVIDER, "bad_http" },
	{ CURLE_WRITE_ERROR, HF_CLASS_PROVIDER, "bad_http" },
	{ CURLE_BAD_CONTENT_ENCODING, HF_CLASS_PROVIDER, "bad_http" },
	{ CURLE_OUT_OF_MEMORY, HF_CLASS_GATEWAY, "memory" },
	{ CURLE_URL_MALFORMAT, HF_CLASS_GATEWAY, "bad_url" },
};

static const char *
connect_reason(long err)
{
	switch (err) {
	case ECONNREFUSED:
		return "connect_refused";
	case ETIMEDOUT:
		return "connect_timeout";
	case ENETUNREACH:
	case EHOSTUNREACH:
		return "unreachable";
	case ECONNRESET:
		return "reset";
	default:
		return "connect_failed";
	}
}

static void
name_failure(const struct hf_call *c, CURLcode rc, struct hf_call_result *r)
{
	long err = 0;

	r->cls = HF_CLASS_NETWORK;
	r->reason = "failed";
	for (size_t i = 0; i < hf_countof(table); i++) {
		if (table[i].rc == rc) {
			r->cls = table[i].cls;
			r->reason = table[i].reason;
		}
	}
	if (rc == CURLE_COULDNT_CONNECT) {
		curl_easy_getinfo(c->easy, CURLINFO_OS_ERRNO, &err);
		r->reason = connect_reason(err);
	} else if (rc == CURLE_OPERATION_TIMEDOUT && c->connected_us != 0) {
		r->reason = "timeout";
	} else if (rc == CURLE_RECV_ERROR &&
	    strcasestr(c->detail, "chunked-enco") != NULL) {
		/* The library says so for broken chunk framing as well. */
		r->cls = HF_CLASS_PROVIDER;
		r->reason = "bad_http";
	}
}

/* What the end of a connection looks like, without a byte of a response; the
 * library has a code of its own for none of them. */
static bool
is_end(CURLcode rc)
{
	return rc == CURLE_SEND_FAIL_REWIND || rc == CURLE_GOT_NOTHING ||
	    rc == CURLE_RECV_ERROR || rc == CURLE_SEND_ERROR;
}

void
hf_call_classify(const struct hf_call *c, CURLcode rc, struct hf_call_result *r)
{
	curl_off_t up = 0, down = 0;
	long connects = 0, sent = 0, head = 0;

	memset(r, 0, sizeof(*r));
	r->any_byte = c->any_byte;
	r->total_us = hf_now_us() - c->started_us;
	if (c->connected_us != 0)
		r->connect_us = c->connected_us - c->started_us;
	if (c->state == HF_CALL_RUNNING) {
		curl_easy_getinfo(c->easy, CURLINFO_NUM_CONNECTS, &connects);
		curl_easy_getinfo(c->easy, CURLINFO_SIZE_UPLOAD_T, &up);
		curl_easy_getinfo(c->easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
		curl_easy_getinfo(c->easy, CURLINFO_REQUEST_SIZE, &sent);
		curl_easy_getinfo(c->easy, CURLINFO_HEADER_SIZE, &head);
		r->reused = c->connected_us != 0 && connects == 0;
	}
	r->bytes_out = (int64_t)up + sent;
	r->bytes_in = (int64_t)down + head;
	if (rc == CURLE_OK && c->got_headers) {
		r->cls = HF_CLASS_NONE;
		r->clean = true;
		r->reason = "ok";
		return;
	}
	if (rc == CURLE_OK)
		rc = CURLE_WEIRD_SERVER_REPLY;
	if (c->repeated)
		rc = CURLE_SEND_FAIL_REWIND;
	name_failure(c, rc, r);
	if (rc == CURLE_SEND_FAIL_REWIND)
		r->reused = true;
	r->stale = r->reused && !r->any_byte && is_end(rc) &&
	    hf_now_us() - c->connected_us < STALE_US;
	if (r->stale)
		r->reason = "stale_connection";
	snprintf(r->detail, sizeof(r->detail), "%.159s",
	    c->repeated		     ? "the pooled connection died" :
		c->detail[0] != '\0' ? c->detail :
				       curl_easy_strerror(rc));
}

static int64_t
since_start(const struct hf_call *c, CURLINFO what)
{
	curl_off_t us = 0;

	if (c->easy == NULL || c->resolved_us == 0)
		return -1;
	curl_easy_getinfo(c->easy, what, &us);
	/* The library counts from when it was given the call. */
	return us <= 0 ? -1 : us + c->resolved_us - c->started_us;
}

void
hf_call_times(const struct hf_call *c, struct hf_call_times *t)
{
	const void *at = c->peer.sa.sa_family == AF_INET6 ?
	    (const void *)&c->peer.in6.sin6_addr :
	    (const void *)&c->peer.in.sin_addr;

	t->resolved_us =
	    c->resolved_us == 0 ? -1 : c->resolved_us - c->started_us;
	t->connected_us = since_start(c, CURLINFO_CONNECT_TIME_T);
	t->secured_us = since_start(c, CURLINFO_APPCONNECT_TIME_T);
	t->address[0] = '\0';
	if (c->peer.sa.sa_family != 0 &&
	    inet_ntop(c->peer.sa.sa_family, at, t->address,
		sizeof(t->address)) == NULL)
		t->address[0] = '\0';
}
