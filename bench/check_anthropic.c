/*
 * Strict checks of messages requests: what the real service answers with 400
 * or 401 is answered so here, in its words' shape.  Pure.
 */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "bench/dialect.h"
#include "bench/resume.h"

static int HF_PRINTF(2, 3) bad(struct hf_refusal *r, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return hf_refuse(
	    r, 400, "invalid_request_error", NULL, NULL, "%s", text);
}

static int
only(struct hf_refusal *r, json_t *o, const char *where,
    const char *const *known)
{
	const char *key = hf_unknown_key(o, known);

	if (key == NULL)
		return 0;
	return bad(r, "%s.%s: Extra inputs are not permitted", where, key);
}

static bool
blank(struct hf_str s)
{
	for (size_t i = 0; i < s.size; i++)
		if (strchr(" \t\r\n", s.p[i]) == NULL)
			return false;
	return true;
}

/* --- blocks ------------------------------------------------------------- */

static int
check_text(struct hf_refusal *r, json_t *b, const char *where)
{
	static const char *const keys[] = { "type", "text", "cache_control",
		"citations", NULL };
	json_t *text = json_object_get(b, "text");

	if (only(r, b, where, keys) != 0)
		return -1;
	if (!json_is_string(text))
		return bad(r, "%s.text: Field required", where);
	if (json_string_length(text) == 0)
		return bad(r,
		    "messages: text content blocks must be "
		    "non-empty");
	if (blank(hf_json_str(text)))
		return bad(r,
		    "messages: text content blocks must contain "
		    "non-whitespace text");
	return 0;
}

static int
check_use(struct hf_refusal *r, json_t *b, const char *where)
{
	static const char *const keys[] = { "type", "id", "name", "input",
		"cache_control", NULL };

	if (only(r, b, where, keys) != 0)
		return -1;
	if (!hf_is_token(hf_json_str(json_object_get(b, "id")), 256))
		return bad(r,
		    "%s.id: String should match pattern "
		    "'^[a-zA-Z0-9_-]+$'",
		    where);
	if (!hf_is_token(hf_json_str(json_object_get(b, "name")), 128))
		return bad(r,
		    "%s.name: String should match pattern "
		    "'^[a-zA-Z0-9_-]{1,128}$'",
		    where);
	if (!json_is_object(json_object_get(b, "input")))
		return bad(
		    r, "%s.input: Input should be a valid dictionary", where);
	return 0;
}

static int
check_result(struct hf_refusal *r, json_t *b, const char *where)
{
	static const char *const keys[] = { "type", "tool_use_id", "content",
		"is_error", "cache_control", NULL };
	json_t *c = json_object_get(b, "content"), *p;
	size_t i;

	if (only(r, b, where, keys) != 0)
		return -1;
	if (!hf_is_token(hf_json_str(json_object_get(b, "tool_use_id")), 256))
		return bad(r,
		    "%s.tool_use_id: String should match pattern "
		    "'^[a-zA-Z0-9_-]+$'",
		    where);
	if (c == NULL || json_is_string(c))
		return 0;
	if (!json_is_array(c))
		return bad(
		    r, "%s.content: Input should be a valid list", where);
	json_array_foreach(c, i, p)
	{
		struct hf_str type = hf_json_str(json_object_get(p, "type"));

		if (hf_str_is(type, "image") || hf_str_is(type, "document"))
			continue;
		if (!hf_str_is(type, "text"))
			return bad(r,
			    "%s.content.%zu: Input tag '%.*s' found "
			    "using 'type' does not match any of the expected "
			    "tags",
			    where, i, HF_STR_ARG(type));
		if (check_text(r, p, where) != 0)
			return -1;
	}
	return 0;
}

static int
check_block(struct hf_refusal *r, json_t *b, const char *where, bool user)
{
	struct hf_str type = hf_json_str(json_object_get(b, "type"));

	if (hf_str_is(type, "text"))
		return check_text(r, b, where);
	if (!user && hf_str_is(type, "tool_use"))
		return check_use(r, b, where);
	if (user && hf_str_is(type, "tool_result"))
		return check_result(r, b, where);
	if (user && (hf_str_is(type, "image") || hf_str_is(type, "document")))
		return 0;
	if (!user && hf_str_is(type, "thinking"))
		return bad(
		    r, "%s: Invalid `signature` in `thinking` block", where);
	return bad(r,
	    "%s: Input tag '%.*s' found using 'type' does not match "
	    "any of the expected tags",
	    where, HF_STR_ARG(type));
}

static int
check_content(struct hf_refusal *r, json_t *c, size_t i, bool user)
{
	char where[64];
	json_t *b;
	size_t k;

	if (json_is_string(c)) {
		if (json_string_length(c) == 0)
			return bad(r,
			    "messages.%zu: all messages must have "
			    "non-empty content except for the optional final "
			    "assistant message",
			    i);
		if (blank(hf_json_str(c)))
			return bad(r,
			    "messages: text content blocks must "
			    "contain non-whitespace text");
		return 0;
	}
	if (!json_is_array(c))
		return bad(r,
		    "messages.%zu.content: Input should be a valid "
		    "list",
		    i);
	if (json_array_size(c) == 0)
		return bad(r,
		    "messages.%zu: all messages must have non-empty "
		    "content except for the optional final assistant "
		    "message",
		    i);
	json_array_foreach(c, k, b)
	{
		snprintf(
		    where, sizeof(where), "messages.%zu.content.%zu", i, k);
		if (check_block(r, b, where, user) != 0)
			return -1;
	}
	return 0;
}

/* --- messages ----------------------------------------------------------- */

static bool
is_block(json_t *b, const char *type)
{
	return hf_str_is(hf_json_str(json_object_get(b, "type")), type);
}

static bool
same_role(json_t *a, json_t *b)
{
	return hf_str_eq(hf_json_str(json_object_get(a, "role")),
	    hf_json_str(json_object_get(b, "role")));
}

/*
 * The service merges neighbours of one role before it checks tools; so do
 * we: [{"user":bool,"blocks":[...]}], strings become text blocks.
 */
static json_t *
merged(json_t *messages)
{
	json_t *out = json_array(), *m, *last = NULL, *turn = NULL;
	size_t i;

	json_array_foreach(messages, i, m)
	{
		json_t *c = json_object_get(m, "content");

		if (last == NULL || !same_role(last, m)) {
			turn = json_pack("{s:b,s:[]}", "user",
			    hf_str_is(hf_json_str(json_object_get(m, "role")),
				"user"),
			    "blocks");
			json_array_append_new(out, turn);
		}
		last = m;
		if (json_is_array(c))
			json_array_extend(json_object_get(turn, "blocks"), c);
		else
			json_array_append_new(json_object_get(turn, "blocks"),
			    json_pack("{s:s,s:O}", "type", "text", "text", c));
	}
	return out;
}

/* Ids that blocks of 'type' carry under 'key'; 'leading': only before the
 * first block of another type. */
static json_t *
ids_of(json_t *blocks, const char *type, const char *key, bool leading)
{
	json_t *out = json_object(), *b;
	size_t i;

	json_array_foreach(blocks, i, b)
	{
		if (is_block(b, type))
			json_object_set_new(out,
			    json_string_value(json_object_get(b, key)),
			    json_true());
		else if (leading)
			break;
	}
	return out;
}

/* First key of 'a' that 'b' lacks, or NULL. */
static const char *
first_missing(json_t *a, json_t *b)
{
	const char *key;
	json_t *v;

	json_object_foreach(
	    a, key, v) if (json_object_get(b, key) == NULL) return key;
	return NULL;
}

static int
check_pair(struct hf_refusal *r, json_t *uses, json_t *blocks, size_t i)
{
	json_t *lead = ids_of(blocks, "tool_result", "tool_use_id", true);
	json_t *all = ids_of(blocks, "tool_result", "tool_use_id", false);
	const char *id;
	int rc = 0;

	if ((id = first_missing(all, uses)) != NULL)
		rc = bad(r,
		    "messages.%zu.content.0: unexpected `tool_use_id` "
		    "found in `tool_result` blocks: %s. Each `tool_result` "
		    "block must have a corresponding `tool_use` block in the "
		    "previous message.",
		    i, id);
	else if ((id = first_missing(uses, lead)) != NULL)
		rc = bad(r,
		    "messages.%zu: `tool_use` ids were found without "
		    "`tool_result` blocks immediately after: %s. Each "
		    "`tool_use` block must have a corresponding `tool_result` "
		    "block in the next message.",
		    i - 1, id);
	else if (json_object_size(all) != json_object_size(lead))
		rc = bad(r,
		    "messages.%zu: Did not find %zu `tool_result` "
		    "block(s) at the beginning of this message.",
		    i, json_object_size(all));
	json_decref(lead);
	json_decref(all);
	return rc;
}

static int
check_tool_order(struct hf_refusal *r, json_t *messages, bool tools)
{
	json_t *turns = merged(messages), *t, *uses = json_object();
	size_t i;
	int rc = 0;

	json_array_foreach(turns, i, t)
	{
		json_t *blocks = json_object_get(t, "blocks");

		rc = check_pair(r, uses, blocks, i);
		if (rc != 0)
			break;
		json_decref(uses);
		uses = ids_of(blocks, "tool_use", "id", false);
		if (json_object_size(uses) > 0 && !tools) {
			rc = bad(r,
			    "Requests which include `tool_use` or "
			    "`tool_result` blocks must define tools");
			break;
		}
	}
	if (rc == 0 && json_object_size(uses) > 0)
		rc = bad(r,
		    "messages.%zu: `tool_use` ids were found without "
		    "`tool_result` blocks immediately after: %s.",
		    json_array_size(turns) - 1, first_missing(uses, NULL));
	json_decref(uses);
	json_decref(turns);
	return rc;
}

/* An assistant's message at the end: most models take none. */
static int
check_prefill(struct hf_refusal *r, json_t *body)
{
	json_t *messages = json_object_get(body, "messages");
	json_t *last = json_array_get(messages, json_array_size(messages) - 1);
	char *text = hf_parts_text(json_object_get(last, "content"));
	size_t n = strlen(text);
	bool space = n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL;

	free(text);
	if (!hf_model_prefills(hf_json_str(json_object_get(body, "model")))) {
		bad(r,
		    "This model does not support assistant message prefill. "
		    "The conversation must end with a user message.");
		r->prefill = true;
		return -1;
	}
	return space ?
	    bad(r,
		"messages: final assistant content cannot end with trailing "
		"whitespace") :
	    0;
}

static int
check_messages(struct hf_refusal *r, json_t *body, bool tools)
{
	json_t *messages = json_object_get(body, "messages");
	static const char *const keys[] = { "role", "content", NULL };
	json_t *m;
	size_t i, n = json_array_size(messages);
	bool user = false;

	if (messages == NULL)
		return bad(r, "messages: Field required");
	if (!json_is_array(messages))
		return bad(r, "messages: Input should be a valid list");
	if (n == 0)
		return bad(r, "messages: at least one message is required");
	json_array_foreach(messages, i, m)
	{
		struct hf_str role = hf_json_str(json_object_get(m, "role"));
		char where[32];

		user = hf_str_is(role, "user");
		snprintf(where, sizeof(where), "messages.%zu", i);
		if (!user && !hf_str_is(role, "assistant"))
			return bad(r,
			    "messages: Unexpected role \"%.*s\". "
			    "Allowed roles are \"user\" or \"assistant\".",
			    HF_STR_ARG(role));
		if (i == 0 && !user)
			return bad(r,
			    "messages: first message must use the "
			    "\"user\" role");
		if (only(r, m, where, keys) != 0 ||
		    check_content(r, json_object_get(m, "content"), i, user) !=
			0)
			return -1;
	}
	if (!user && check_prefill(r, body) != 0)
		return -1;
	return check_tool_order(r, messages, tools);
}

/* --- parameters --------------------------------------------------------- */

static int
check_tools(struct hf_refusal *r, json_t *body)
{
	static const char *const keys[] = { "name", "description",
		"input_schema", "strict", "cache_control", "type", NULL };
	static const char *const ckeys[] = { "type", "name",
		"disable_parallel_tool_use", NULL };
	json_t *tools = json_object_get(body, "tools"), *t;
	json_t *choice = json_object_get(body, "tool_choice");
	struct hf_str type = hf_json_str(json_object_get(choice, "type"));
	size_t i;

	if (tools != NULL && !json_is_array(tools))
		return bad(r, "tools: Input should be a valid list");
	json_array_foreach(tools, i, t)
	{
		json_t *schema = json_object_get(t, "input_schema");

		if (only(r, t, "tools.0", keys) != 0)
			return -1;
		if (!hf_is_token(hf_json_str(json_object_get(t, "name")), 128))
			return bad(r,
			    "tools.%zu.name: String should match "
			    "pattern '^[a-zA-Z0-9_-]{1,128}$'",
			    i);
		if (!json_is_object(schema))
			return bad(r,
			    "tools.%zu.input_schema: Field "
			    "required",
			    i);
		if (!is_block(schema, "object"))
			return bad(r,
			    "tools.%zu.input_schema.type: Input "
			    "should be 'object'",
			    i);
	}
	if (choice == NULL)
		return 0;
	if (only(r, choice, "tool_choice", ckeys) != 0)
		return -1;
	if (!hf_str_is(type, "auto") && !hf_str_is(type, "any") &&
	    !hf_str_is(type, "none") && !hf_str_is(type, "tool"))
		return bad(r,
		    "tool_choice: Input tag does not match any of "
		    "the expected tags");
	if (json_array_size(tools) == 0)
		return bad(r,
		    "tool_choice may only be specified while "
		    "providing tools");
	return 0;
}

static int
check_system(struct hf_refusal *r, json_t *system)
{
	json_t *b;
	size_t i;

	if (system == NULL || json_is_string(system))
		return 0;
	if (!json_is_array(system))
		return bad(r, "system: Input should be a valid list");
	json_array_foreach(system, i, b)
	{
		if (!is_block(b, "text"))
			return bad(r,
			    "system.%zu: Input tag does not match "
			    "'text'",
			    i);
		if (json_string_length(json_object_get(b, "text")) == 0)
			return bad(r,
			    "system: text content blocks must be "
			    "non-empty");
	}
	return 0;
}

static int
check_sampling(struct hf_refusal *r, json_t *body)
{
	static const char *const meta[] = { "user_id", NULL };
	json_t *t = json_object_get(body, "temperature");
	json_t *p = json_object_get(body, "top_p"), *s;
	json_t *stop = json_object_get(body, "stop_sequences");
	json_t *id =
	    json_object_get(json_object_get(body, "metadata"), "user_id");
	size_t i;

	if (t != NULL &&
	    (!json_is_number(t) || json_number_value(t) < 0 ||
		json_number_value(t) > 1))
		return bad(r, "temperature: range: 0..1");
	if (p != NULL &&
	    (!json_is_number(p) || json_number_value(p) < 0 ||
		json_number_value(p) > 1))
		return bad(r, "top_p: range: 0..1");
	if (t != NULL && p != NULL)
		return bad(r,
		    "`temperature` and `top_p` cannot both be "
		    "specified for this model. Please use only one.");
	if (stop != NULL && !json_is_array(stop))
		return bad(r, "stop_sequences: Input should be a valid list");
	json_array_foreach(stop, i,
	    s) if (!json_is_string(s) || blank(hf_json_str(s))) return bad(r,
	    "stop_sequences: each stop sequence "
	    "must contain non-whitespace");
	if (only(r, json_object_get(body, "metadata"), "metadata", meta) != 0)
		return -1;
	if (id != NULL && !json_is_string(id))
		return bad(r,
		    "metadata.user_id: Input should be a valid "
		    "string");
	return 0;
}

static int
check_params(struct hf_refusal *r, json_t *body)
{
	static const char *const keys[] = { "model", "max_tokens", "messages",
		"system", "stop_sequences", "stream", "temperature", "top_p",
		"top_k", "tools", "tool_choice", "thinking", "output_config",
		"metadata", "cache_control", "service_tier", "speed",
		"inference_geo", "container", "diagnostics", NULL };
	const char *key = hf_unknown_key(body, keys);
	json_t *v;

	if (key != NULL)
		return bad(r, "%s: Extra inputs are not permitted", key);
	if (hf_json_str(json_object_get(body, "model")).size == 0)
		return bad(r, "model: Field required");
	v = json_object_get(body, "max_tokens");
	if (v == NULL)
		return bad(r, "max_tokens: Field required");
	if (!json_is_integer(v) || json_integer_value(v) < 1)
		return bad(r,
		    "max_tokens: Input should be greater than or "
		    "equal to 1");
	if (json_integer_value(v) > 64000)
		return bad(r,
		    "max_tokens: %lld > 64000, which is the maximum "
		    "allowed number of output tokens for this model",
		    (long long)json_integer_value(v));
	v = json_object_get(body, "stream");
	if (v != NULL && !json_is_boolean(v))
		return bad(r, "stream: Input should be a valid boolean");
	if (check_system(r, json_object_get(body, "system")) != 0 ||
	    check_sampling(r, body) != 0)
		return -1;
	return check_tools(r, body);
}

int
hf_anthropic_check(
    const struct hf_bench_headers *h, json_t *body, struct hf_refusal *r)
{
	if (h->x_api_key.size == 0 &&
	    (h->authorization.size <= 7 ||
		strncasecmp(h->authorization.p, "Bearer ", 7) != 0))
		return hf_refuse(r, 401, "authentication_error", NULL, NULL,
		    "x-api-key header is required");
	if (h->anthropic_version.p == NULL)
		return bad(r, "anthropic-version: header is required");
	if (!hf_str_is(h->anthropic_version, "2023-06-01"))
		return bad(r,
		    "anthropic-version: \"%.*s\" is not a valid "
		    "version",
		    HF_STR_ARG(h->anthropic_version));
	if (h->content_type.p == NULL || h->content_type.size < 16 ||
	    strncasecmp(h->content_type.p, "application/json", 16) != 0)
		return bad(r, "Unsupported content type");
	if (!json_is_object(body))
		return bad(r, "The request body is not valid JSON");
	if (check_params(r, body) != 0)
		return -1;
	return check_messages(
	    r, body, json_array_size(json_object_get(body, "tools")) > 0);
}
