/*
 * Which session a request belongs to: one canonical header, the aliases that
 * clients of other gateways send, and members of the body.  Two that differ
 * are refused: guessing could mix conversations.
 */
#include <config.h>

#include "gateway/surface/surface.h"

#include <stdio.h>

#include "base/check.h"

static const char *const header[] = {
	"X-Holdfast-Session",
	"X-Session-Id",
	"X-Conversation-Id",
	"X-Call-Id",
	"X-LiteLLM-Session-Id",
	"X-BF-Session-Id",
	"Helicone-Session-Id",
	"Agent-Session-Id",
	"X-Chat-ID",
};

/* Paths of keys in the body, up to two deep. */
static const struct {
	const char *key, *sub;
} member[] = {
	{ "session_id", NULL },
	{ "conversation_id", NULL },
	{ "conversation", NULL },
	{ "conversation", "id" },
	{ "metadata", "session_id" },
	{ "metadata", "call_id" },
	{ "metadata", "conversation_id" },
	{ "call", "id" },
	{ "litellm_session_id", NULL },
};

struct found {
	struct hf_str name;
	char where[48];
};

static int
take(struct found *f, struct hf_str name, const char *where,
    struct hf_refusal *r)
{
	if (name.size == 0)
		return 0;
	if (name.size > HF_SESSION_NAME_MAX)
		return hf_refuse(r, 400, "invalid_session", where,
		    "%s: a session name of %zu bytes; at most %d are allowed",
		    where, name.size, HF_SESSION_NAME_MAX);
	for (size_t i = 0; i < name.size; i++)
		if ((unsigned char)name.p[i] < 0x20 || name.p[i] == 0x7f)
			return hf_refuse(r, 400, "invalid_session", where,
			    "%s: a session name holds no control characters",
			    where);
	if (f->name.size > 0 && !hf_str_eq(f->name, name))
		return hf_refuse(r, 400, "session_conflict", where,
		    "%s and %s name different sessions", f->where, where);
	if (f->name.size == 0) {
		f->name = name;
		HF_CHECK(strlen(where) < sizeof(f->where));
		memcpy(f->where, where, strlen(where) + 1);
	}
	return 0;
}

static int
take_member(struct found *f, struct hf_json v, const char *where,
    struct hf_arena *a, struct hf_refusal *r)
{
	struct hf_buf text;
	struct hf_str name;

	if (v.type == HF_JSON_NONE || v.type == HF_JSON_NULL ||
	    v.type == HF_JSON_OBJECT)
		return 0; /* absent, or looked into by another row */
	if (v.type != HF_JSON_STRING)
		return hf_refuse(r, 400, "invalid_session", where,
		    "%s: expected a string that names the session", where);
	hf_buf_init(&text, HF_BUF_NOCAP);
	hf_json_decode(v, &text);
	name = hf_arena_dup(a, hf_buf_str(&text));
	hf_buf_free(&text);
	if (name.p == NULL)
		return hf_refuse(r, 500, "no_memory", NULL, "out of memory");
	return take(f, name, where, r);
}

int
hf_session_name(const struct hf_req *rq, struct hf_json body,
    struct hf_arena *a, struct hf_str *out, struct hf_refusal *r)
{
	struct found f = { .name = HF_STR_NONE };
	struct hf_str copy;
	char where[48];
	int rc;

	for (size_t i = 0; i < hf_countof(header); i++) {
		if (hf_req_header_count(rq, header[i]) > 1)
			return hf_refuse(r, 400, "session_conflict", header[i],
			    "%s: sent more than once", header[i]);
		rc = take(&f, hf_req_header(rq, header[i]), header[i], r);
		if (rc != 0)
			return rc;
	}
	for (size_t i = 0; i < hf_countof(member); i++) {
		struct hf_json v = hf_json_get(body, member[i].key);

		if (member[i].sub != NULL)
			v = hf_json_get(v, member[i].sub);
		if (v.type == HF_JSON_NONE)
			continue;
		snprintf(where, sizeof(where), "%s%s%s", member[i].key,
		    member[i].sub != NULL ? "." : "",
		    member[i].sub != NULL ? member[i].sub : "");
		rc = take_member(&f, v, where, a, r);
		if (rc != 0)
			return rc;
	}
	copy = f.name.size > 0 ? hf_arena_dup(a, f.name) : HF_STR_NONE;
	if (f.name.size > 0 && copy.p == NULL)
		return hf_refuse(r, 500, "no_memory", NULL, "out of memory");
	*out = copy;
	return 0;
}
