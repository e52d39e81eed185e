/*
 * GET /v1/sessions/{session}/turns/{turn}/stream: the answer of a turn as a
 * stream of chunks, from a position on.
 */
#include <config.h>

#include "gateway/surface/chat_internal.h"

#include <inttypes.h>

#include "base/log.h"

/* The value of a name in a query; it is not decoded. */
static struct hf_str
query_value(struct hf_str query, const char *name)
{
	size_t n = strlen(name);

	while (query.size > 0) {
		const char *amp = memchr(query.p, '&', query.size);
		size_t size =
		    amp == NULL ? query.size : (size_t)(amp - query.p);

		if (size > n && memcmp(query.p, name, n) == 0 &&
		    query.p[n] == '=')
			return (struct hf_str){ query.p + n + 1, size - n - 1 };
		query.p += size;
		query.size -= size;
		if (query.size > 0) {
			query.p++;
			query.size--;
		}
	}
	return HF_STR_NONE;
}

/* Nothing is 0. */
static bool
number(struct hf_str s, uint64_t *n)
{
	*n = 0;
	for (size_t i = 0; i < s.size; i++) {
		if (s.p[i] < '0' || s.p[i] > '9' || i > 15)
			return false;
		*n = *n * 10 + (uint64_t)(s.p[i] - '0');
	}
	return true;
}

/* "{session}/turns/{turn}/stream"; a session's name may hold slashes. */
static bool
split_path(struct hf_str rest, struct hf_str *session, struct hf_str *turn)
{
	static const char mid[] = "/turns/", end[] = "/stream";
	const size_t m = sizeof(mid) - 1, n = sizeof(end) - 1;

	if (rest.size < n || memcmp(rest.p + rest.size - n, end, n) != 0)
		return false;
	rest.size -= n;
	for (size_t at = rest.size; at-- > 1;) {
		if (rest.size - at <= m || memcmp(rest.p + at, mid, m) != 0)
			continue;
		*session = (struct hf_str){ rest.p, at };
		*turn = (struct hf_str){ rest.p + at + m, rest.size - at - m };
		return memchr(turn->p, '/', turn->size) == NULL;
	}
	return false;
}

/* Where the client is: the query says so, or the header with which browsers
 * take up a stream of events. */
static int
read_position(const struct hf_req *rq, uint64_t *after, struct hf_refusal *r)
{
	struct hf_str s = query_value(rq->query, "after");

	if (s.p == NULL)
		s = hf_req_header(rq, "Last-Event-ID");
	if (!number(s, after))
		return hf_refuse(r, 400, "invalid_value", "after",
		    "after: expected a number of bytes");
	return 0;
}

static void
refuse(struct hf_turn_env *env, struct hf_sink *sink, struct hf_refusal *r)
{
	hf_count(env->shm, HF_C_requests_refused, 1);
	hf_surface_refuse(sink, r, -1, r->status < 500);
}

void
hf_follow_serve(
    struct hf_turn_env *env, struct hf_req *rq, struct hf_sink *sink)
{
	struct hf_follow_input in = { .tenant = rq->tenant };
	struct hf_refusal r = { 0 };
	struct hf_error e = { 0 };
	bool usage;
	int rc;

	if (!split_path(rq->rest, &in.session, &in.turn)) {
		hf_refuse(&r, 404, "not_found", NULL, "there is nothing here");
		refuse(env, sink, &r);
		return;
	}
	if (read_position(rq, &in.after, &r) != 0) {
		refuse(env, sink, &r);
		return;
	}
	usage = hf_str_is(query_value(rq->query, "include_usage"), "true");
	rc = chat_follow(env, sink, &in, usage, rq->resumed, &e);
	if (rc == 0)
		return;
	if (rc == HF_ENOTFOUND) {
		hf_refuse(&r, 404, "turn_not_found", NULL,
		    "there is no such session, or no such turn in it");
	} else {
		hf_log(HF_LOG_WARN, "surface: follow_failed detail=\"%s\"",
		    e.text);
		hf_refuse(&r, 503, "storage_error", NULL,
		    "the storage of the gateway failed");
	}
	refuse(env, sink, &r);
}
