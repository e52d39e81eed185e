/*
 * Strict checks of generateContent requests: what the real service answers
 * with an error is answered so here, in its words' shape.  Where its two
 * services differ, as the stricter one does.  Pure.
 */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "bench/gemini.h"
#include "bench/resume.h"

int
hf_gemini_bad(struct hf_refusal *r, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return hf_refuse(r, 400, "INVALID_ARGUMENT", NULL, NULL, "%s", text);
}

int
hf_gemini_only(struct hf_refusal *r, json_t *o, const char *where,
    const char *const *known)
{
	const char *key;
	json_t *v, *got = json_object();
	int rc = 0;

	for (const char *const *k = known; *k != NULL; k++) {
		v = hf_gemini_get(o, *k);
		if (v != NULL)
			json_object_set(got, *k, v);
	}
	json_object_foreach(o, key, v)
	{
		bool found = false;

		for (const char *const *k = known; *k != NULL && !found; k++)
			found = json_object_get(got, *k) == v;
		if (found)
			continue;
		rc = hf_gemini_bad(r,
		    "Invalid JSON payload received. Unknown name \"%s\"%s%s%s: "
		    "Cannot find field.",
		    key, where[0] == '\0' ? "" : " at '", where,
		    where[0] == '\0' ? "" : "'");
		break;
	}
	json_decref(got);
	return rc;
}

/* --- parts ---------------------------------------------------------------- */

static int
check_call(struct hf_refusal *r, json_t *call, const char *where)
{
	static const char *const keys[] = { "id", "name", "args", NULL };
	json_t *args = json_object_get(call, "args");

	if (hf_gemini_only(r, call, where, keys) != 0)
		return -1;
	if (hf_json_str(json_object_get(call, "name")).size == 0)
		return hf_gemini_bad(r,
		    "* GenerateContentRequest.%s.function_call.name: Name "
		    "cannot be empty.",
		    where);
	if (args != NULL && !json_is_object(args))
		return hf_gemini_bad(r,
		    "Invalid value at '%s.function_call.args' "
		    "(type.googleapis.com/google.protobuf.Struct)",
		    where);
	return 0;
}

static int
check_response(struct hf_refusal *r, json_t *response, const char *where)
{
	static const char *const keys[] = { "id", "name", "response", "parts",
		"willContinue", "scheduling", NULL };

	if (hf_gemini_only(r, response, where, keys) != 0)
		return -1;
	if (hf_json_str(json_object_get(response, "name")).size == 0)
		return hf_gemini_bad(r,
		    "* GenerateContentRequest.%s.function_response.name: Name "
		    "cannot be empty.",
		    where);
	if (!json_is_object(json_object_get(response, "response")))
		return hf_gemini_bad(r,
		    "Invalid value at '%s.function_response.response' "
		    "(type.googleapis.com/google.protobuf.Struct)",
		    where);
	return 0;
}

/* A part is one of these. */
static const char *const data[] = { "text", "inlineData", "fileData",
	"functionCall", "functionResponse", "executableCode",
	"codeExecutionResult" };

static int
check_part(struct hf_refusal *r, json_t *p, const char *where, bool user)
{
	static const char *const keys[] = { "text", "inlineData", "fileData",
		"functionCall", "functionResponse", "executableCode",
		"codeExecutionResult", "thought", "thoughtSignature",
		"videoMetadata", NULL };
	json_t *text = json_object_get(p, "text"), *v;
	unsigned n = 0;

	if (hf_gemini_only(r, p, where, keys) != 0)
		return -1;
	for (unsigned i = 0; i < hf_countof(data); i++)
		n += hf_gemini_get(p, data[i]) != NULL;
	if (n != 1)
		return hf_gemini_bad(r,
		    "* GenerateContentRequest.%s.data: required oneof field "
		    "'data' must have one initialized field",
		    where);
	if (text != NULL && !json_is_string(text))
		return hf_gemini_bad(
		    r, "Invalid value at '%s.text' (TYPE_STRING)", where);
	if (text != NULL && json_string_length(text) == 0 &&
	    hf_gemini_get(p, "thoughtSignature") == NULL)
		return hf_gemini_bad(r,
		    "Unable to submit request because it must have a text "
		    "parameter: %s",
		    where);
	if ((v = hf_gemini_get(p, "functionCall")) != NULL)
		return user ? hf_gemini_bad(r,
				  "Please ensure that function call turns are "
				  "of the model: %s",
				  where) :
			      check_call(r, v, where);
	if ((v = hf_gemini_get(p, "functionResponse")) != NULL)
		return !user ? hf_gemini_bad(r,
				   "Please ensure that function response "
				   "turns are of the user: %s",
				   where) :
			       check_response(r, v, where);
	return 0;
}

static int
check_parts(struct hf_refusal *r, json_t *content, const char *where, bool user)
{
	static const char *const keys[] = { "role", "parts", NULL };
	json_t *parts = json_object_get(content, "parts"), *p;
	char at[96];
	size_t i;

	if (!json_is_object(content))
		return hf_gemini_bad(r,
		    "Invalid value at '%s' (type.googleapis.com/google.ai."
		    "generativelanguage.v1beta.Content)",
		    where);
	if (hf_gemini_only(r, content, where, keys) != 0)
		return -1;
	if (!json_is_array(parts) || json_array_size(parts) == 0)
		return hf_gemini_bad(r,
		    "* GenerateContentRequest.%s.parts: contents.parts must "
		    "not be empty.",
		    where);
	json_array_foreach(parts, i, p)
	{
		snprintf(at, sizeof(at), "%.50s.parts[%zu]", where, i);
		if (check_part(r, p, at, user) != 0)
			return -1;
	}
	return 0;
}

/* --- turns ---------------------------------------------------------------- */

static bool
is_model(json_t *content)
{
	return hf_str_is(
	    hf_json_str(json_object_get(content, "role")), "model");
}

/* Its parts of this kind; new. */
static json_t *
parts_of(json_t *content, const char *kind)
{
	json_t *out = json_array(), *p, *v;
	size_t i;

	json_array_foreach(json_object_get(content, "parts"), i, p)
	{
		v = hf_gemini_get(p, kind);
		if (v != NULL)
			json_array_append(out, v);
	}
	return out;
}

/* Ids decide where both have them, else the order. */
static bool
answers(json_t *response, json_t *calls, size_t i)
{
	json_t *id = json_object_get(response, "id"), *c;
	json_t *name = json_object_get(response, "name");
	size_t k;

	if (id == NULL)
		return json_equal(
		    name, json_object_get(json_array_get(calls, i), "name"));
	json_array_foreach(calls, k, c)
	{
		json_t *own = json_object_get(c, "id");

		if (json_equal(id, own) || (own == NULL && k == i))
			return json_equal(name, json_object_get(c, "name"));
	}
	return false;
}

/* 'calls' of the content before, which may be none. */
static int
check_results(struct hf_refusal *r, json_t *content, json_t *calls)
{
	json_t *results = parts_of(content, "functionResponse"), *v;
	size_t n = json_array_size(results), i;
	int rc = 0;

	if (n > 0 && json_array_size(calls) == 0)
		rc = hf_gemini_bad(r,
		    "Please ensure that function response turn comes "
		    "immediately after a function call turn.");
	else if (n != json_array_size(calls))
		rc = hf_gemini_bad(r,
		    "Please ensure that the number of function response parts "
		    "is equal to the number of function call parts of the "
		    "function call turn.");
	else if (n > 0 &&
	    n != json_array_size(json_object_get(content, "parts")))
		rc = hf_gemini_bad(r,
		    "Please ensure that function response turns have no "
		    "other parts.");
	json_array_foreach(results, i, v)
	{
		if (rc == 0 && !answers(v, calls, i))
			rc = hf_gemini_bad(r,
			    "Please ensure that function response parts have "
			    "the names of the function call parts, in their "
			    "order.");
	}
	json_decref(results);
	return rc;
}

/* Neighbours are of different roles; but a user may speak behind results. */
static bool
alternates(json_t *before, json_t *content)
{
	json_t *results;
	bool ok;

	if (is_model(before) != is_model(content))
		return true;
	results = parts_of(before, "functionResponse");
	ok = !is_model(content) && json_array_size(results) > 0;
	json_decref(results);
	return ok;
}

static int
check_turns(struct hf_refusal *r, json_t *contents)
{
	json_t *c, *before = NULL, *calls = json_array();
	size_t i;
	int rc = 0;

	json_array_foreach(contents, i, c)
	{
		if (i == 0 && is_model(c))
			rc = hf_gemini_bad(r,
			    "Please ensure that multiturn requests start with "
			    "a user role.");
		else if (i > 0 && json_array_size(calls) == 0 &&
		    !alternates(before, c))
			rc = hf_gemini_bad(r,
			    "Please ensure that multiturn requests alternate "
			    "between user and model.");
		if (rc == 0)
			rc = check_results(r, c, calls);
		if (rc != 0)
			break;
		json_decref(calls);
		calls = parts_of(c, "functionCall");
		before = c;
	}
	if (rc == 0 && json_array_size(calls) > 0)
		rc = hf_gemini_bad(r,
		    "Please ensure that function call turn is followed by a "
		    "function response turn.");
	json_decref(calls);
	return rc;
}

/* Some go on with the model's words when those stand last. */
static int
check_last(struct hf_refusal *r, json_t *contents, struct hf_str model)
{
	if (!is_model(
		json_array_get(contents, json_array_size(contents) - 1)) ||
	    hf_model_prefills(model))
		return 0;
	hf_gemini_bad(r,
	    "Please ensure that multiturn requests end with a user role or a "
	    "function response.");
	r->prefill = true;
	return -1;
}

/* --- signatures ----------------------------------------------------------- */

static int
check_signature(struct hf_refusal *r, json_t *part, size_t i)
{
	struct hf_str s = hf_json_str(hf_gemini_get(part, "thoughtSignature"));
	json_t *call = hf_gemini_get(part, "functionCall");
	char own[25];

	if (s.size == 0)
		return hf_gemini_bad(r,
		    "Function call is missing a thought_signature in "
		    "functionCall parts. This is required for tools to work "
		    "correctly. Function call `%.*s`, position %zu.",
		    HF_STR_ARG(hf_json_str(json_object_get(call, "name"))), i);
	hf_gemini_sign(call, own);
	if (hf_str_is(s, own) || hf_str_is(s, HF_GEMINI_FOREIGN) ||
	    hf_str_is(s, HF_GEMINI_FOREIGN64))
		return 0;
	return hf_gemini_bad(r, "Thought signature is not valid.");
}

/* The first call of each of the model's steps since the last words of the
 * user is signed. */
static int
check_signatures(struct hf_refusal *r, json_t *contents)
{
	size_t i = json_array_size(contents), k;
	json_t *p;

	while (i-- > 0) {
		json_t *c = json_array_get(contents, i);
		json_t *calls = parts_of(c, "functionCall");
		json_t *results = parts_of(c, "functionResponse");
		bool step = json_array_size(calls) > 0;
		bool user = !is_model(c) && json_array_size(results) == 0;

		json_decref(calls);
		json_decref(results);
		if (user)
			break;
		json_array_foreach(json_object_get(c, "parts"), k, p)
		{
			if (!step || hf_gemini_get(p, "functionCall") == NULL)
				continue;
			if (check_signature(r, p, i) != 0)
				return -1;
			break;
		}
	}
	return 0;
}

/* --- the whole ------------------------------------------------------------ */

static int
check_system(struct hf_refusal *r, json_t *system)
{
	json_t *p;
	size_t i;

	if (system == NULL)
		return 0;
	if (check_parts(r, system, "system_instruction", true) != 0)
		return -1;
	json_array_foreach(json_object_get(system, "parts"), i, p)
	{
		if (json_object_get(p, "text") == NULL)
			return hf_gemini_bad(
			    r, "System instruction supports text only.");
	}
	return 0;
}

int
hf_gemini_check_contents(
    struct hf_refusal *r, json_t *body, struct hf_str model)
{
	json_t *contents = json_object_get(body, "contents"), *c;
	char where[32];
	size_t i;

	if (!json_is_array(contents) || json_array_size(contents) == 0)
		return hf_gemini_bad(r,
		    "* GenerateContentRequest.contents: contents is not "
		    "specified");
	json_array_foreach(contents, i, c)
	{
		struct hf_str role = hf_json_str(json_object_get(c, "role"));

		snprintf(where, sizeof(where), "contents[%zu]", i);
		if (!hf_str_is(role, "user") && !hf_str_is(role, "model") &&
		    (role.p != NULL || json_array_size(contents) > 1))
			return hf_gemini_bad(
			    r, "Please use a valid role: user, model.");
		if (check_parts(r, c, where, !is_model(c)) != 0)
			return -1;
	}
	if (check_system(r, hf_gemini_get(body, "systemInstruction")) != 0 ||
	    check_turns(r, contents) != 0)
		return -1;
	if (hf_gemini_signs(model) && check_signatures(r, contents) != 0)
		return -1;
	return check_last(r, contents, model);
}

static int
check_headers(struct hf_refusal *r, const struct hf_bench_headers *h)
{
	struct hf_str model = HF_STR_NONE, action;
	bool key = h->x_goog_api_key.size > 0 ||
	    (h->query.size > 4 &&
		memmem(h->query.p, h->query.size, "key=", 4) != NULL);

	if (!key)
		return hf_refuse(r, 403, "PERMISSION_DENIED", NULL, NULL,
		    "Method doesn't allow unregistered callers (callers "
		    "without established identity). Please use API Key or "
		    "other form of API consumer identity to call this API.");
	if (!hf_gemini_path(h->path, &model, &action) ||
	    memchr(model.p, '/', model.size) != NULL)
		return hf_refuse(r, 404, "NOT_FOUND", NULL, NULL,
		    "models/%.*s is not found for API version v1beta, or is "
		    "not supported for generateContent.",
		    HF_STR_ARG(model));
	if (h->content_type.size < 16 ||
	    strncasecmp(h->content_type.p, "application/json", 16) != 0)
		return hf_gemini_bad(
		    r, "Invalid JSON payload received: content type");
	return 0;
}

int
hf_gemini_check(
    const struct hf_bench_headers *h, json_t *body, struct hf_refusal *r)
{
	static const char *const keys[] = { "contents", "systemInstruction",
		"tools", "toolConfig", "generationConfig", "safetySettings",
		"cachedContent", "model", "serviceTier", "store",
		"continuationToken", NULL };
	struct hf_str model, action;

	if (check_headers(r, h) != 0)
		return -1;
	if (!json_is_object(body))
		return hf_gemini_bad(
		    r, "Invalid JSON payload received. Expected an object.");
	hf_gemini_path(h->path, &model, &action);
	if (hf_gemini_only(r, body, "", keys) != 0 ||
	    hf_gemini_check_settings(r, body) != 0 ||
	    hf_gemini_check_tools(r, body) != 0)
		return -1;
	return hf_gemini_check_contents(r, body, model);
}
