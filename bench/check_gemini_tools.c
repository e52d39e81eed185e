/*
 * Strict checks of generateContent requests: tools and settings.  Pure.
 */
#include <config.h>

#include <stdio.h>

#include "bench/gemini.h"

#define TOOLS "tools[0].function_declarations"

/* --- schemas --------------------------------------------------------------
 */

/* The subset of OpenAPI that "parameters" may use. */
static const char *const schema_keys[] = { "type", "format", "title",
	"description", "nullable", "enum", "maxItems", "minItems", "properties",
	"required", "minProperties", "maxProperties", "minLength", "maxLength",
	"pattern", "example", "anyOf", "propertyOrdering", "default", "items",
	"minimum", "maximum", NULL };

static int check_schema(struct hf_refusal *r, json_t *s, const char *where);

static int
check_properties(struct hf_refusal *r, json_t *s, const char *where)
{
	json_t *all = json_object_get(s, "properties"), *v, *name;
	const char *key;
	size_t i;

	json_object_foreach(all, key, v)
	{
		if (check_schema(r, v, where) != 0)
			return -1;
	}
	json_array_foreach(json_object_get(s, "required"), i, name)
	{
		if (!json_is_string(name) ||
		    json_object_get(all, json_string_value(name)) == NULL)
			return hf_gemini_bad(r,
			    "* GenerateContentRequest.%s.required[%zu]: "
			    "property is not defined",
			    where, i);
	}
	return 0;
}

static int
check_schema(struct hf_refusal *r, json_t *s, const char *where)
{
	static const char *const types[] = { "STRING", "NUMBER", "INTEGER",
		"BOOLEAN", "ARRAY", "OBJECT", "NULL", "string", "number",
		"integer", "boolean", "array", "object", "null" };
	struct hf_str type = hf_json_str(json_object_get(s, "type"));
	json_t *v;
	unsigned i = 0;
	size_t k;

	if (hf_gemini_only(r, s, where, schema_keys) != 0)
		return -1;
	while (i < hf_countof(types) && !hf_str_is(type, types[i]))
		i++;
	if (json_object_get(s, "type") != NULL && i == hf_countof(types))
		return hf_gemini_bad(r,
		    "Invalid value at '%s.type' "
		    "(type.googleapis.com/google.ai.generativelanguage.v1beta."
		    "Type)",
		    where);
	if (type.size == 6 && (type.p[0] | 32) == 'o' &&
	    json_object_get(s, "properties") != NULL &&
	    json_object_size(json_object_get(s, "properties")) == 0)
		return hf_gemini_bad(r,
		    "* GenerateContentRequest.%s.properties: should be "
		    "non-empty for OBJECT type",
		    where);
	if (type.size == 5 && (type.p[0] | 32) == 'a' &&
	    json_object_get(s, "items") == NULL)
		return hf_gemini_bad(r,
		    "* GenerateContentRequest.%s.items: missing field.", where);
	if (json_object_get(s, "items") != NULL &&
	    check_schema(r, json_object_get(s, "items"), where) != 0)
		return -1;
	json_array_foreach(hf_gemini_get(s, "anyOf"), k, v)
	{
		if (check_schema(r, v, where) != 0)
			return -1;
	}
	return check_properties(r, s, where);
}

/* --- tools -----------------------------------------------------------------
 */

static bool
is_name(struct hf_str s)
{
	static const char ok[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "abcdefghijklmnopqrstuvwxyz_0123456789.:-";

	if (s.size == 0 || s.size > 64)
		return false;
	for (size_t i = 0; i < s.size; i++) {
		const char *at = s.p[i] == '\0' ? NULL : strchr(ok, s.p[i]);

		if (at == NULL || (i == 0 && at - ok > 52))
			return false;
	}
	return true;
}

static int
check_function(struct hf_refusal *r, json_t *f, json_t *names, size_t i)
{
	static const char *const keys[] = { "name", "description", "parameters",
		"parametersJsonSchema", "response", "responseJsonSchema",
		"behavior", NULL };
	json_t *name = json_object_get(f, "name");
	json_t *schema = json_object_get(f, "parameters");
	char where[64];

	snprintf(where, sizeof(where), TOOLS "[%zu]", i);
	if (hf_gemini_only(r, f, where, keys) != 0)
		return -1;
	if (!is_name(hf_json_str(name)))
		return hf_gemini_bad(r,
		    "* GenerateContentRequest.%s.name: Invalid function name. "
		    "Must start with a letter or an underscore. Must be "
		    "alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), "
		    "colons (:), or dashes (-), with a maximum length of 64.",
		    where);
	if (json_object_get(names, json_string_value(name)) != NULL)
		return hf_gemini_bad(r,
		    "Duplicate function declaration found: %s",
		    json_string_value(name));
	json_object_set_new(names, json_string_value(name), json_true());
	if (schema != NULL && hf_gemini_get(f, "parametersJsonSchema") != NULL)
		return hf_gemini_bad(r,
		    "%s: parameters and parameters_json_schema are mutually "
		    "exclusive",
		    where);
	snprintf(where, sizeof(where), TOOLS "[%zu].parameters", i);
	return schema == NULL ? 0 : check_schema(r, schema, where);
}

/* Which of them a request may call. */
static int
check_choice(struct hf_refusal *r, json_t *body, json_t *names)
{
	static const char *const modes[] = { "MODE_UNSPECIFIED", "AUTO", "ANY",
		"NONE", "VALIDATED" };
	static const char *const keys[] = { "mode", "allowedFunctionNames",
		NULL };
	json_t *c = hf_gemini_get(
	    hf_gemini_get(body, "toolConfig"), "functionCallingConfig");
	json_t *allowed = hf_gemini_get(c, "allowedFunctionNames"), *v;
	struct hf_str mode = hf_json_str(json_object_get(c, "mode"));
	unsigned i = 0;
	size_t k;

	if (c == NULL)
		return 0;
	if (hf_gemini_only(r, c, "tool_config.function_calling_config", keys) !=
	    0)
		return -1;
	while (i < hf_countof(modes) && !hf_str_is(mode, modes[i]))
		i++;
	if (mode.p != NULL && i == hf_countof(modes))
		return hf_gemini_bad(r,
		    "Invalid value at "
		    "'tool_config.function_calling_config.mode'");
	if (json_object_size(names) == 0)
		return hf_gemini_bad(r,
		    "Function calling config is set without "
		    "function_declarations.");
	if (json_array_size(allowed) > 0 && !hf_str_is(mode, "ANY") &&
	    !hf_str_is(mode, "VALIDATED"))
		return hf_gemini_bad(r,
		    "allowed_function_names should only be set when the "
		    "function calling mode is ANY or VALIDATED.");
	json_array_foreach(allowed, k, v)
	{
		if (!json_is_string(v) ||
		    json_object_get(names, json_string_value(v)) == NULL)
			return hf_gemini_bad(r,
			    "allowed_function_names contains a function that "
			    "is not declared.");
	}
	return 0;
}

int
hf_gemini_check_tools(struct hf_refusal *r, json_t *body)
{
	static const char *const keys[] = { "functionDeclarations",
		"googleSearch", "codeExecution", "urlContext", NULL };
	static const char *const choice[] = { "functionCallingConfig",
		"retrievalConfig", NULL };
	json_t *tools = json_object_get(body, "tools"), *t, *f;
	json_t *names = json_object();
	size_t i, k;
	int rc = 0;

	if (tools != NULL && !json_is_array(tools))
		rc = hf_gemini_bad(r, "Invalid value at 'tools'");
	json_array_foreach(tools, i, t)
	{
		json_t *all = hf_gemini_get(t, "functionDeclarations");

		if (rc == 0)
			rc = hf_gemini_only(r, t, "tools[0]", keys);
		if (rc == 0 && json_object_size(t) == 0)
			rc = hf_gemini_bad(r,
			    "* GenerateContentRequest.tools[%zu].tool_type: "
			    "required one_of 'tool_type' must have one "
			    "initialized field",
			    i);
		json_array_foreach(all, k, f)
		{
			if (rc == 0)
				rc = check_function(r, f, names, k);
		}
	}
	if (rc == 0)
		rc = hf_gemini_only(r, hf_gemini_get(body, "toolConfig"),
		    "tool_config", choice);
	if (rc == 0)
		rc = check_choice(r, body, names);
	json_decref(names);
	return rc;
}

/* --- settings --------------------------------------------------------------
 */

static int
check_number(struct hf_refusal *r, json_t *o, const char *key, double lo,
    double hi, bool whole)
{
	json_t *v = hf_gemini_get(o, key);

	if (v == NULL)
		return 0;
	if (whole ? !json_is_integer(v) : !json_is_number(v))
		return hf_gemini_bad(r,
		    "Invalid value at 'generation_config.%s' (%s)", key,
		    whole ? "TYPE_INT32" : "TYPE_FLOAT");
	if (json_number_value(v) < lo || json_number_value(v) > hi)
		return hf_gemini_bad(r,
		    "* GenerateContentRequest.generation_config.%s: must be in "
		    "the range [%g, %g].",
		    key, lo, hi);
	return 0;
}

static int
check_thinking(struct hf_refusal *r, json_t *config)
{
	static const char *const keys[] = { "includeThoughts", "thinkingBudget",
		"thinkingLevel", NULL };
	json_t *t = hf_gemini_get(config, "thinkingConfig");

	if (t == NULL)
		return 0;
	if (hf_gemini_only(r, t, "generation_config.thinking_config", keys) !=
	    0)
		return -1;
	if (hf_gemini_get(t, "thinkingBudget") != NULL &&
	    hf_gemini_get(t, "thinkingLevel") != NULL)
		return hf_gemini_bad(r,
		    "You can only set one of thinking budget and thinking "
		    "level.");
	return 0;
}

static int
check_safety(struct hf_refusal *r, json_t *body)
{
	static const char *const keys[] = { "category", "threshold", "method",
		NULL };
	json_t *v;
	size_t i;

	json_array_foreach(hf_gemini_get(body, "safetySettings"), i, v)
	{
		if (hf_gemini_only(r, v, "safety_settings[0]", keys) != 0)
			return -1;
		if (hf_json_str(json_object_get(v, "category")).size == 0 ||
		    hf_json_str(json_object_get(v, "threshold")).size == 0)
			return hf_gemini_bad(
			    r, "Invalid value at 'safety_settings[%zu]'", i);
	}
	return 0;
}

int
hf_gemini_check_settings(struct hf_refusal *r, json_t *body)
{
	static const char *const keys[] = { "stopSequences", "responseMimeType",
		"responseSchema", "responseJsonSchema", "responseModalities",
		"candidateCount", "maxOutputTokens", "temperature", "topP",
		"topK", "seed", "presencePenalty", "frequencyPenalty",
		"responseLogprobs", "logprobs", "enableEnhancedCivicAnswers",
		"speechConfig", "thinkingConfig", "mediaResolution", NULL };
	json_t *c = hf_gemini_get(body, "generationConfig");
	struct hf_str mime = hf_json_str(hf_gemini_get(c, "responseMimeType"));

	if (c != NULL && !json_is_object(c))
		return hf_gemini_bad(r, "Invalid value at 'generation_config'");
	if (hf_gemini_only(r, c, "generation_config", keys) != 0 ||
	    check_number(r, c, "temperature", 0, 2, false) != 0 ||
	    check_number(r, c, "topP", 0, 1, false) != 0 ||
	    check_number(r, c, "topK", 1, 1000, true) != 0 ||
	    check_number(r, c, "maxOutputTokens", 1, 1 << 20, true) != 0 ||
	    check_number(r, c, "candidateCount", 1, 8, true) != 0 ||
	    check_number(r, c, "presencePenalty", -2, 2, false) != 0 ||
	    check_number(r, c, "frequencyPenalty", -2, 2, false) != 0 ||
	    check_thinking(r, c) != 0)
		return -1;
	if (json_array_size(hf_gemini_get(c, "stopSequences")) > 5)
		return hf_gemini_bad(r,
		    "The number of stop sequences must not be greater than "
		    "5.");
	if ((hf_gemini_get(c, "responseSchema") != NULL ||
		hf_gemini_get(c, "responseJsonSchema") != NULL) &&
	    (mime.p == NULL || hf_str_is(mime, "text/plain")))
		return hf_gemini_bad(r,
		    "Function calling or response schema with a response mime "
		    "type: 'text/plain' is unsupported");
	return check_safety(r, body);
}
