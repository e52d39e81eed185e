/*
 * Translating tool definitions and the choice among them.
 */
#include <config.h>

#include "gateway/provider/anthropic_tools.h"

#define TOOLS_MAX 1024

/* Does the set allowed by tool_choice hold a function of this name?  Without
 * such a set everything is allowed. */
static bool
is_allowed(struct hf_json allowed, struct hf_json name, struct hf_buf *tmp)
{
	struct hf_json t;
	size_t pos = 0;

	if (allowed.type != HF_JSON_ARRAY)
		return true;
	hf_buf_reset(tmp);
	hf_json_decode(name, tmp);
	hf_buf_putc(tmp, '\0');
	if (!hf_buf_ok(tmp))
		return false;
	while (hf_json_next_element(allowed, &pos, &t))
		if (hf_json_string_is(
			hf_json_path(t, "function", "name", NULL), tmp->data))
			return true;
	return false;
}

/* The top level must say that it is an object. */
static void
put_schema(struct hf_buf *b, struct hf_json parameters)
{
	struct hf_json k, v;
	size_t pos = 0;

	if (parameters.type != HF_JSON_OBJECT ||
	    !hf_json_next_member(parameters, &pos, &k, &v)) {
		hf_buf_puts(b, "{\"type\":\"object\",\"properties\":{}}");
	} else if (hf_json_get(parameters, "type").type != HF_JSON_NONE) {
		hf_buf_putstr(b, parameters.raw);
	} else {
		hf_buf_puts(b, "{\"type\":\"object\",");
		hf_buf_put(b, parameters.raw.p + 1, parameters.raw.size - 1);
	}
}

static void
put_tool(struct hf_buf *b, struct hf_json f)
{
	struct hf_json v = hf_json_get(f, "description");

	hf_buf_puts(b, "{\"name\":");
	hf_buf_putstr(b, hf_json_get(f, "name").raw);
	if (v.type == HF_JSON_STRING && v.raw.size > 2) {
		hf_buf_puts(b, ",\"description\":");
		hf_buf_putstr(b, v.raw);
	}
	hf_buf_puts(b, ",\"input_schema\":");
	put_schema(b, hf_json_get(f, "parameters"));
	if (hf_json_get(f, "strict").type == HF_JSON_TRUE)
		hf_buf_puts(b, ",\"strict\":true");
	hf_buf_putc(b, '}');
}

/* Returns how many were written, or a negative error. */
static int
put_offered(struct hf_buf *b, struct hf_json tools, struct hf_json allowed,
    struct hf_error *e)
{
	struct hf_json t, f, type;
	struct hf_buf tmp;
	size_t pos = 0;
	int n = 0, seen = 0, rc = 0;

	hf_buf_init(&tmp, HF_BUF_NOCAP);
	while (rc == 0 && hf_json_next_element(tools, &pos, &t)) {
		type = hf_json_get(t, "type");
		f = hf_json_get(t, "function");
		if ((type.type != HF_JSON_NONE &&
			!hf_json_string_is(type, "function")) ||
		    hf_json_get(f, "name").type != HF_JSON_STRING) {
			rc = hf_fail(e, HF_EINVAL,
			    "tools: only named functions can be offered");
		} else if (++seen > TOOLS_MAX) {
			rc = hf_fail(
			    e, HF_EINVAL, "tools: more than %d", TOOLS_MAX);
		} else if (is_allowed(allowed, hf_json_get(f, "name"), &tmp)) {
			hf_buf_puts(b, n++ == 0 ? ",\"tools\":[" : ",");
			put_tool(b, f);
		}
	}
	if (n > 0)
		hf_buf_putc(b, ']');
	hf_buf_free(&tmp);
	return rc == 0 ? n : rc;
}

/* Declare each function that the history calls; false if there is none. */
static bool
put_called(struct hf_buf *b, const struct hf_said_list *l)
{
	struct hf_str seen[64], name;
	unsigned i, k, n = 0;

	for (i = 0; i < l->n && n < hf_countof(seen); i++) {
		if (l->line[i].kind != HF_SAID_CALL)
			continue;
		name = l->line[i].name.raw;
		for (k = 0; k < n && !hf_str_eq(seen[k], name); k++)
			;
		if (k < n || name.size <= 2)
			continue;
		seen[n++] = name;
		hf_buf_puts(b, n == 1 ? ",\"tools\":[" : ",");
		hf_buf_puts(b, "{\"name\":");
		hf_buf_putstr(b, name);
		hf_buf_puts(b,
		    ",\"input_schema\":{\"type\":\"object\","
		    "\"properties\":{}}}");
	}
	if (n > 0)
		hf_buf_putc(b, ']');
	return n > 0;
}

static const char *
mode_type(struct hf_json mode)
{
	return hf_json_string_is(mode, "none")	? "none" :
	    hf_json_string_is(mode, "required") ? "any" :
	    hf_json_string_is(mode, "auto")	? "auto" :
						  NULL;
}

static int
put_choice(
    struct hf_buf *b, struct hf_json choice, bool parallel, struct hf_error *e)
{
	struct hf_json name = hf_json_path(choice, "function", "name", NULL);
	const char *type;

	if (hf_json_string_is(hf_json_get(choice, "type"), "allowed_tools"))
		choice = hf_json_path(choice, "allowed_tools", "mode", NULL);
	type = mode_type(choice);
	if (type == NULL && name.type == HF_JSON_STRING)
		type = "tool";
	if (type == NULL && choice.type != HF_JSON_NONE &&
	    choice.type != HF_JSON_NULL)
		return hf_fail(
		    e, HF_EINVAL, "tool_choice: only a function can be chosen");
	if (type == NULL && parallel)
		return 0;
	hf_buf_printf(b, ",\"tool_choice\":{\"type\":\"%s\"",
	    type == NULL ? "auto" : type);
	if (name.type == HF_JSON_STRING) {
		hf_buf_puts(b, ",\"name\":");
		hf_buf_putstr(b, name.raw);
	}
	if (!parallel && (type == NULL || strcmp(type, "none") != 0))
		hf_buf_puts(b, ",\"disable_parallel_tool_use\":true");
	hf_buf_putc(b, '}');
	return 0;
}

int
hf_anthropic_put_tools(struct hf_buf *b, const struct hf_said_list *l,
    struct hf_json params, struct hf_error *e)
{
	struct hf_json choice = hf_json_get(params, "tool_choice");
	bool parallel =
	    hf_json_get(params, "parallel_tool_calls").type != HF_JSON_FALSE;
	int n;

	n = put_offered(b, hf_json_get(params, "tools"),
	    hf_json_path(choice, "allowed_tools", "tools", NULL), e);
	if (n < 0)
		return n;
	if (n > 0)
		return put_choice(b, choice, parallel, e);
	if (put_called(b, l))
		hf_buf_puts(b, ",\"tool_choice\":{\"type\":\"none\"}");
	return 0;
}
