/*
 * Reading a chat completions request into a turn input.
 */
#include <config.h>

#include "gateway/surface/chat_internal.h"

#include <stdlib.h>

#include "base/check.h"

#define ARENA_MAX ((size_t)512 * 1024 * 1024)
#define PINNED_MAX 64 /* items of a request */
#define ROOM_MAX 512  /* messages that room is made for at once */

/* The draft's errors begin with a place inside the message. */
static int
bad_message(struct hf_refusal *r, unsigned n, const struct hf_error *e)
{
	char param[64];
	const char *colon = strchr(e->text, ':');

	if (e->code == HF_ENOMEM)
		return hf_refuse(r, 500, "no_memory", NULL, "out of memory");
	snprintf(param, sizeof(param), "messages[%u].%.*s", n,
	    colon == NULL ? 0 : (int)(colon - e->text), e->text);
	return hf_refuse(
	    r, 400, "invalid_value", param, "messages[%u].%s", n, e->text);
}

static int
missing(
    struct hf_refusal *r, unsigned n, const char *what, const char *expected)
{
	char param[64];

	snprintf(param, sizeof(param), "messages[%u].%s", n, what);
	return hf_refuse(
	    r, 400, "invalid_value", param, "%s: expected %s", param, expected);
}

static int
read_calls(
    struct hf_draft *d, unsigned n, struct hf_json calls, struct hf_refusal *r)
{
	static const struct hf_json no_arguments = { .type = HF_JSON_STRING,
		.raw = { "\"{}\"", 4 } };
	struct hf_error e = { 0 };
	struct hf_json call, type, id, f, name, args;
	char what[48];
	size_t pos = 0;

	for (unsigned i = 0; hf_json_next_element(calls, &pos, &call); i++) {
		type = hf_json_get(call, "type");
		id = hf_json_get(call, "id");
		f = hf_json_get(call, "function");
		name = hf_json_get(f, "name");
		args = hf_json_get(f, "arguments");
		snprintf(what, sizeof(what), "tool_calls[%u]", i);
		if ((type.type != HF_JSON_NONE &&
			!hf_json_string_is(type, "function")) ||
		    id.type != HF_JSON_STRING || name.type != HF_JSON_STRING)
			return missing(r, n, what,
			    "a function call with id "
			    "and function.name");
		if (args.type == HF_JSON_NONE || args.type == HF_JSON_NULL ||
		    hf_json_string_is(args, ""))
			args = no_arguments;
		if (args.type != HF_JSON_STRING)
			return missing(r, n, what,
			    "function.arguments as a "
			    "string that holds JSON");
		if (hf_draft_tool_call(
			d, HF_ORIGIN_CLIENT, id, name, args, &e) < 0)
			return bad_message(r, n, &e);
	}
	return 0;
}

/* An empty text beside tool calls says nothing and is no item: some clients
 * write null there, some "", some leave it out. */
static bool
says_nothing(struct hf_json content, struct hf_json refusal)
{
	struct hf_json part;
	size_t pos = 0;

	if (refusal.type == HF_JSON_STRING)
		return false;
	return content.type == HF_JSON_NONE || content.type == HF_JSON_NULL ||
	    hf_json_string_is(content, "") ||
	    (content.type == HF_JSON_ARRAY &&
		!hf_json_next_element(content, &pos, &part));
}

/* The members of a message that mean something. */
enum member {
	ROLE,
	CONTENT,
	NAME,
	REFUSAL,
	TOOL_CALLS,
	TOOL_CALL_ID,
	PINNED,
	N_MEMBER
};

static void
get_members(struct hf_json m, struct hf_json v[N_MEMBER])
{
	static const struct hf_str key[N_MEMBER] = {
		[ROLE] = HF_STR("role"),
		[CONTENT] = HF_STR("content"),
		[NAME] = HF_STR("name"),
		[REFUSAL] = HF_STR("refusal"),
		[TOOL_CALLS] = HF_STR("tool_calls"),
		[TOOL_CALL_ID] = HF_STR("tool_call_id"),
		[PINNED] = HF_STR("pinned"),
	};

	hf_json_get_all(m, key, N_MEMBER, v);
}

/* What is not stored may stay where it is, unless something in it is to be
 * repaired. */
static int
add_message(struct hf_turn_input *in, enum hf_role role, struct hf_json m,
    const struct hf_json v[N_MEMBER], struct hf_error *e)
{
	static const struct hf_json none;

	if (in->draft.no_norm && in->repairs == 0 && m.node != NULL &&
	    v[CONTENT].type == HF_JSON_STRING)
		return hf_draft_refer(&in->draft, role, m, e);
	return hf_draft_message(&in->draft, role, HF_ORIGIN_CLIENT, v[CONTENT],
	    v[NAME], role == HF_ROLE_ASSISTANT ? v[REFUSAL] : none, e);
}

static int
read_assistant(struct hf_turn_input *in, unsigned n, struct hf_json m,
    const struct hf_json v[N_MEMBER], struct hf_refusal *r)
{
	struct hf_json calls = v[TOOL_CALLS], first;
	struct hf_error e = { 0 };
	size_t pos = 0;
	bool any = hf_json_next_element(calls, &pos, &first);

	if (calls.type != HF_JSON_NONE && calls.type != HF_JSON_NULL &&
	    calls.type != HF_JSON_ARRAY)
		return missing(r, n, "tool_calls", "an array");
	if ((!any || !says_nothing(v[CONTENT], v[REFUSAL])) &&
	    add_message(in, HF_ROLE_ASSISTANT, m, v, &e) < 0)
		return bad_message(r, n, &e);
	return any ? read_calls(&in->draft, n, calls, r) : 0;
}

static bool
read_role(struct hf_json v, enum hf_role *role)
{
	static const struct {
		const char *name;
		enum hf_role role;
	} roles[] = {
		{ "user", HF_ROLE_USER },
		{ "assistant", HF_ROLE_ASSISTANT },
		{ "system", HF_ROLE_SYSTEM },
		{ "tool", HF_ROLE_TOOL },
		{ "developer", HF_ROLE_DEVELOPER },
	};

	for (size_t i = 0; i < hf_countof(roles); i++)
		if (hf_json_string_is(v, roles[i].name)) {
			*role = roles[i].role;
			return true;
		}
	return false;
}

static int
read_said(struct hf_turn_input *in, unsigned n, struct hf_json m,
    const struct hf_json v[N_MEMBER], struct hf_refusal *r)
{
	struct hf_error e = { 0 };
	enum hf_role role;
	int rc;

	if (!read_role(v[ROLE], &role))
		return missing(r, n, "role",
		    "one of user, assistant, system, "
		    "developer, tool");
	if (role == HF_ROLE_ASSISTANT)
		return read_assistant(in, n, m, v, r);
	if (v[CONTENT].type != HF_JSON_STRING &&
	    v[CONTENT].type != HF_JSON_ARRAY)
		return missing(
		    r, n, "content", "a string or an array of parts");
	if (role == HF_ROLE_TOOL) {
		if (v[TOOL_CALL_ID].type != HF_JSON_STRING)
			return missing(r, n, "tool_call_id", "a string");
		rc = hf_draft_tool_result(
		    &in->draft, v[TOOL_CALL_ID], v[CONTENT], &e);
	} else {
		rc = add_message(in, role, m, v, &e);
	}
	return rc < 0 ? bad_message(r, n, &e) : 0;
}

/* A message that no target may be told the conversation without. */
static int
read_pin(struct hf_draft *d, unsigned n, unsigned from, struct hf_json pinned,
    struct hf_refusal *r)
{
	struct hf_error e = { 0 };

	if (pinned.type == HF_JSON_NONE || pinned.type == HF_JSON_NULL ||
	    pinned.type == HF_JSON_FALSE)
		return 0;
	if (pinned.type != HF_JSON_TRUE)
		return missing(r, n, "pinned", "true or false");
	if (hf_draft_pin(d, from, &e) < 0)
		return bad_message(r, n, &e);
	if (d->n_pinned > PINNED_MAX)
		return missing(r, n, "pinned", "not so many pinned messages");
	return 0;
}

static int
read_message(struct hf_turn_input *in, unsigned n, struct hf_json m,
    struct hf_refusal *r)
{
	struct hf_json v[N_MEMBER] HF_UNINIT;
	unsigned from = in->draft.n;
	int rc;

	get_members(m, v);
	rc = read_said(in, n, m, v, r);
	return rc == 0 ? read_pin(&in->draft, n, from, v[PINNED], r) : rc;
}

static int
read_messages(const struct hf_conf *conf, struct hf_turn_input *in,
    struct hf_json body, struct hf_refusal *r)
{
	struct hf_json list = hf_json_get(body, "messages"), m;
	size_t pos = 0;
	unsigned n = 0;
	int rc;

	in->draft.no_norm = !hf_turn_is_durable(conf, in);
	if (list.type == HF_JSON_NONE)
		return hf_refuse(r, 400, "missing_required_parameter",
		    "messages", "messages: missing");
	if (list.type != HF_JSON_ARRAY)
		return hf_refuse(r, 400, "invalid_type", "messages",
		    "messages: expected an array");
	hf_draft_room(&in->draft, hf_json_count(list, ROOM_MAX));
	while (hf_json_next_element(list, &pos, &m)) {
		rc = read_message(in, n++, m, r);
		if (rc != 0)
			return rc;
	}
	if (n == 0)
		return hf_refuse(r, 400, "empty_array", "messages",
		    "messages: expected at least one message");
	return 0;
}

static int
read_model(const struct hf_conf *conf, struct hf_json body,
    struct hf_turn_input *in, struct hf_refusal *r)
{
	struct hf_json model = hf_json_get(body, "model");
	struct hf_buf name;

	if (model.type == HF_JSON_NONE)
		return hf_refuse(r, 400, "missing_required_parameter", "model",
		    "model: missing");
	if (model.type != HF_JSON_STRING)
		return hf_refuse(r, 400, "invalid_type", "model",
		    "model: expected a string");
	hf_buf_init(&name, HF_BUF_NOCAP);
	hf_json_decode(model, &name);
	in->route = hf_conf_route(conf, hf_buf_str(&name));
	if (in->route == NULL)
		hf_refuse(r, 404, "model_not_found", "model",
		    "model: there is no route named \"%.*s\"",
		    name.size > 80 ? 80 : (int)name.size,
		    name.size > 0 ? name.data : "");
	hf_buf_free(&name);
	return in->route == NULL ? -1 : 0;
}

static int
read_stream(struct hf_json body, struct hf_turn_input *in,
    struct hf_chat_options *o, struct hf_refusal *r)
{
	struct hf_json stream = hf_json_get(body, "stream");

	if (stream.type != HF_JSON_NONE && stream.type != HF_JSON_NULL &&
	    stream.type != HF_JSON_TRUE && stream.type != HF_JSON_FALSE)
		return hf_refuse(r, 400, "invalid_type", "stream",
		    "stream: expected true or false");
	in->stream = stream.type == HF_JSON_TRUE;
	o->include_usage =
	    hf_json_path(body, "stream_options", "include_usage", NULL).type ==
	    HF_JSON_TRUE;
	return 0;
}

static int
read_idempotency_key(
    const struct hf_req *rq, struct hf_turn_input *in, struct hf_refusal *r)
{
	struct hf_str v = hf_req_header(rq, "Idempotency-Key");

	if (v.p == NULL)
		return 0;
	if (v.size == 0 || v.size > 255 ||
	    hf_req_header_count(rq, "Idempotency-Key") > 1)
		return hf_refuse(r, 400, "invalid_value", "Idempotency-Key",
		    "Idempotency-Key: expected one value of 1 to 255 bytes");
	in->idempotency_key = hf_arena_dup(in->arena, v);
	if (in->idempotency_key.p == NULL)
		return hf_refuse(r, 500, "no_memory", NULL, "out of memory");
	return 0;
}

static int
read_mode(
    const struct hf_req *rq, struct hf_turn_input *in, struct hf_refusal *r)
{
	struct hf_str v = hf_req_header(rq, "X-Holdfast-History");
	struct hf_str retry = hf_req_header(rq, "X-Stainless-Retry-Count");

	in->sdk_retry = retry.size > 0 && !hf_str_is(retry, "0");
	if (v.p == NULL || hf_str_is(v, "auto"))
		in->mode = HF_HISTORY_AUTO;
	else if (hf_str_is(v, "full"))
		in->mode = HF_HISTORY_FULL;
	else if (hf_str_is(v, "delta"))
		in->mode = HF_HISTORY_DELTA;
	else
		return hf_refuse(r, 400, "invalid_value", "X-Holdfast-History",
		    "X-Holdfast-History: expected "
		    "full, delta or auto");
	return 0;
}

static int
read_params(struct hf_json body, struct hf_turn_input *in, struct hf_refusal *r)
{
	struct hf_buf params;
	int rc;

	hf_buf_init(&params, HF_BUF_NOCAP);
	rc = chat_params(body, &params, r);
	if (rc == 0) {
		in->params = hf_arena_dup(in->arena, hf_buf_str(&params));
		if (!hf_buf_ok(&params) || in->params.p == NULL)
			rc = hf_refuse(
			    r, 500, "no_memory", NULL, "out of memory");
	}
	hf_buf_free(&params);
	return rc;
}

static int
read_body(const struct hf_req *rq, struct hf_turn_input *in,
    struct hf_json *body, struct hf_refusal *r)
{
	struct hf_error e = { 0 };

	if (rq->body.size == 0)
		return hf_refuse(r, 400, "invalid_json", NULL,
		    "the body is empty; expected a JSON object");
	in->request = hf_arena_dup(in->arena, rq->body);
	if (in->request.p == NULL)
		return hf_refuse(r, 500, "no_memory", NULL, "out of memory");
	if (hf_json_check_map(
		in->request, body, &in->repairs, &in->draft.map, &e) < 0)
		return hf_refuse(r, 400, "invalid_json", NULL,
		    "the body is no valid JSON: %s", e.text);
	if (body->type != HF_JSON_OBJECT)
		return hf_refuse(
		    r, 400, "invalid_type", NULL, "the body is no JSON object");
	return 0;
}

static int
read_request(const struct hf_conf *conf, const struct hf_req *rq,
    struct hf_turn_input *in, struct hf_chat_options *o, struct hf_refusal *r)
{
	struct hf_json body;
	int rc;

	rc = read_body(rq, in, &body, r);
	if (rc == 0)
		rc = read_model(conf, body, in, r);
	if (rc == 0)
		rc = read_stream(body, in, o, r);
	if (rc == 0)
		rc = read_mode(rq, in, r);
	if (rc == 0)
		rc = read_idempotency_key(rq, in, r);
	if (rc == 0)
		rc = hf_session_name(rq, body, in->arena, &in->session, r);
	if (rc == 0)
		rc = read_messages(conf, in, body, r);
	if (rc == 0)
		rc = read_params(body, in, r);
	return rc;
}

int
hf_chat_parse(const struct hf_conf *conf, const struct hf_req *rq,
    struct hf_turn_input *in, struct hf_chat_options *o, struct hf_refusal *r)
{
	*in = (struct hf_turn_input){ .received_us = rq->received_us };
	snprintf(in->tenant, sizeof(in->tenant), "%s", rq->tenant);
	in->arena = hf_xcalloc(1, sizeof(*in->arena));
	hf_arena_init(in->arena, ARENA_MAX);
	hf_draft_init(&in->draft, in->arena);
	if (read_request(conf, rq, in, o, r) == 0) {
		/* Kept for a turn that may have to wait; see store.h. */
		if (in->session.size == 0 && in->idempotency_key.size == 0)
			in->request = HF_STR_NONE;
		if (!in->draft.no_norm)
			hf_draft_free(&in->draft);
		return 0;
	}
	hf_draft_free(&in->draft);
	hf_arena_free(in->arena);
	free(in->arena);
	in->arena = NULL;
	return -1;
}
