/*
 * Parameters of a chat completions request beside its messages: what is known
 * is checked and kept as it came, what cannot be served is refused, what is
 * unknown is left out, so that no provider ever sees it.
 */
#include <config.h>

#include "gateway/surface/chat_internal.h"

#include "base/check.h"

enum check {
	INT_POSITIVE,
	INT_ANY,
	RANGE_0_1,
	RANGE_0_2,
	RANGE_2,
	STRING,
	BOOL,
	OBJECT,
	STOP,
	TOOLS,
	TOOL_CHOICE,
	FORMAT
};

static const struct {
	const char *key;
	enum check check;
} known[] = {
	{ "max_tokens", INT_POSITIVE },
	{ "max_completion_tokens", INT_POSITIVE },
	{ "temperature", RANGE_0_2 },
	{ "top_p", RANGE_0_1 },
	{ "stop", STOP },
	{ "tools", TOOLS },
	{ "tool_choice", TOOL_CHOICE },
	{ "parallel_tool_calls", BOOL },
	{ "response_format", FORMAT },
	{ "reasoning_effort", STRING },
	{ "verbosity", STRING },
	{ "seed", INT_ANY },
	{ "frequency_penalty", RANGE_2 },
	{ "presence_penalty", RANGE_2 },
	{ "logit_bias", OBJECT },
	{ "user", STRING },
	{ "safety_identifier", STRING },
};

static bool
in_range(struct hf_json v, double lo, double hi)
{
	double d;

	return v.type == HF_JSON_NUMBER && hf_json_double(v, &d) && d >= lo &&
	    d <= hi;
}

static bool
is_bool(struct hf_json v)
{
	return v.type == HF_JSON_TRUE || v.type == HF_JSON_FALSE;
}

static int
wrong(struct hf_refusal *r, const char *param, const char *expected)
{
	return hf_refuse(
	    r, 400, "invalid_value", param, "%s: expected %s", param, expected);
}

static int
check_stop(struct hf_json v, struct hf_refusal *r)
{
	struct hf_json e;
	size_t pos = 0;
	unsigned n = 0;

	if (v.type == HF_JSON_STRING)
		return 0;
	if (v.type != HF_JSON_ARRAY)
		return wrong(r, "stop", "a string or an array of strings");
	while (hf_json_next_element(v, &pos, &e))
		if (e.type != HF_JSON_STRING || ++n > 4)
			return wrong(r, "stop", "at most four strings");
	return 0;
}

static int
check_tools(struct hf_json v, struct hf_refusal *r)
{
	struct hf_json e, f, type;
	char param[48];
	size_t pos = 0;
	unsigned n = 0;

	if (v.type != HF_JSON_ARRAY)
		return wrong(r, "tools", "an array");
	for (; hf_json_next_element(v, &pos, &e); n++) {
		snprintf(param, sizeof(param), "tools[%u]", n);
		type = hf_json_get(e, "type");
		f = hf_json_get(e, "function");
		if (type.type == HF_JSON_STRING &&
		    !hf_json_string_is(type, "function"))
			return hf_refuse(r, 400, "unsupported_value", param,
			    "%s.type: only \"function\" tools are supported",
			    param);
		if (f.type != HF_JSON_OBJECT ||
		    hf_json_get(f, "name").type != HF_JSON_STRING)
			return wrong(r, param,
			    "{\"type\":\"function\","
			    "\"function\":{\"name\":...}}");
	}
	return 0;
}

static int
check_tool_choice(struct hf_json v, struct hf_refusal *r)
{
	static const char *const word[] = { "none", "auto", "required" };

	for (size_t i = 0; i < hf_countof(word); i++)
		if (hf_json_string_is(v, word[i]))
			return 0;
	if (v.type == HF_JSON_OBJECT &&
	    hf_json_path(v, "function", "name", NULL).type == HF_JSON_STRING)
		return 0;
	return wrong(r, "tool_choice",
	    "\"none\", \"auto\", \"required\" or "
	    "{\"type\":\"function\",\"function\":{\"name\":...}}");
}

static int
check_value(
    const char *key, enum check check, struct hf_json v, struct hf_refusal *r)
{
	int64_t n;

	switch (check) {
	case INT_POSITIVE:
		return v.type == HF_JSON_NUMBER && hf_json_int(v, &n) && n > 0 ?
		    0 :
		    wrong(r, key, "a whole number above 0");
	case INT_ANY:
		return v.type == HF_JSON_NUMBER && hf_json_int(v, &n) ?
		    0 :
		    wrong(r, key, "a whole number");
	case RANGE_0_1:
		return in_range(v, 0, 1) ?
		    0 :
		    wrong(r, key, "a number from 0 to 1");
	case RANGE_0_2:
		return in_range(v, 0, 2) ?
		    0 :
		    wrong(r, key, "a number from 0 to 2");
	case RANGE_2:
		return in_range(v, -2, 2) ?
		    0 :
		    wrong(r, key, "a number from -2 to 2");
	case STRING:
		return v.type == HF_JSON_STRING ? 0 : wrong(r, key, "a string");
	case BOOL:
		return is_bool(v) ? 0 : wrong(r, key, "true or false");
	case OBJECT:
		return v.type == HF_JSON_OBJECT ? 0 :
						  wrong(r, key, "an object");
	case STOP:
		return check_stop(v, r);
	case TOOLS:
		return check_tools(v, r);
	case TOOL_CHOICE:
		return check_tool_choice(v, r);
	case FORMAT:
		return hf_json_get(v, "type").type == HF_JSON_STRING ?
		    0 :
		    wrong(r, key, "an object with a type");
	}
	return 0;
}

/* What this gateway cannot do is refused, not dropped: the answer would be
 * another one than was asked for. */
static int
refuse_unsupported(struct hf_json body, struct hf_refusal *r)
{
	static const char *const no[] = { "audio", "functions", "function_call",
		"web_search_options" };
	struct hf_json v = hf_json_get(body, "n");
	int64_t n;

	if (v.type != HF_JSON_NONE && v.type != HF_JSON_NULL &&
	    (v.type != HF_JSON_NUMBER || !hf_json_int(v, &n) || n != 1))
		return hf_refuse(
		    r, 400, "unsupported_value", "n", "n: only 1 is supported");
	if (hf_json_get(body, "logprobs").type == HF_JSON_TRUE)
		return hf_refuse(r, 400, "unsupported_parameter", "logprobs",
		    "logprobs: not supported");
	for (size_t i = 0; i < hf_countof(no); i++) {
		v = hf_json_get(body, no[i]);
		if (v.type != HF_JSON_NONE && v.type != HF_JSON_NULL)
			return hf_refuse(r, 400, "unsupported_parameter", no[i],
			    "%s: not supported%s", no[i],
			    i == 1 || i == 2 ? "; use tools" : "");
	}
	return 0;
}

static bool
is_absent(struct hf_json v)
{
	size_t pos = 0;
	struct hf_json e;

	return v.type == HF_JSON_NONE || v.type == HF_JSON_NULL ||
	    (v.type == HF_JSON_ARRAY && !hf_json_next_element(v, &pos, &e));
}

int
chat_params(struct hf_json body, struct hf_buf *out, struct hf_refusal *r)
{
	struct hf_json v;
	bool first = true;
	int rc;

	rc = refuse_unsupported(body, r);
	if (rc != 0)
		return rc;
	hf_buf_putc(out, '{');
	for (size_t i = 0; i < hf_countof(known); i++) {
		v = hf_json_get(body, known[i].key);
		if (is_absent(v))
			continue;
		rc = check_value(known[i].key, known[i].check, v, r);
		if (rc != 0)
			return rc;
		hf_buf_printf(out, "%s\"%s\":", first ? "" : ",", known[i].key);
		hf_json_put_repaired(out, v);
		first = false;
	}
	hf_buf_putc(out, '}');
	return 0;
}
