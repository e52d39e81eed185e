/*
 * The generateContent protocol, from the server's side.  Pure.
 */
#include <config.h>

#include "bench/gemini.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/format.h"
#include "bench/rng.h"

bool
hf_gemini_path(struct hf_str path, struct hf_str *model, struct hf_str *action)
{
	static const char start[] = HF_GEMINI_PATH;
	size_t n = sizeof(start) - 1;
	const char *colon;

	if (path.size <= n || memcmp(path.p, start, n) != 0)
		return false;
	*model = (struct hf_str){ path.p + n, path.size - n };
	colon = memrchr(model->p, ':', model->size);
	if (colon == NULL || colon == model->p)
		return false;
	model->size = (size_t)(colon - model->p);
	*action = (struct hf_str){ colon + 1,
		(size_t)(path.p + path.size - colon) - 1 };
	return hf_str_is(*action, "generateContent") ||
	    hf_str_is(*action, "streamGenerateContent");
}

json_t *
hf_gemini_get(json_t *o, const char *name)
{
	json_t *v = json_object_get(o, name);
	struct hf_buf b;

	if (v != NULL)
		return v;
	hf_buf_init(&b, HF_BUF_NOCAP);
	for (const char *p = name; *p != '\0'; p++) {
		if (*p >= 'A' && *p <= 'Z')
			hf_buf_putc(&b, '_');
		hf_buf_putc(
		    &b, *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p);
	}
	v = json_object_get(o, b.data);
	hf_buf_free(&b);
	return v;
}

/* --- signatures ----------------------------------------------------------- */

bool
hf_gemini_signs(struct hf_str model)
{
	static const char start[] = "gemini-3";

	return model.size >= sizeof(start) - 1 &&
	    memcmp(model.p, start, sizeof(start) - 1) == 0;
}

void
hf_gemini_sign(json_t *call, char out[25])
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "abcdefghijklmnopqrstuvwxyz0123456789+/";
	char *args = json_dumps(
	    hf_gemini_get(call, "args"), JSON_COMPACT | JSON_SORT_KEYS);
	struct hf_str name = hf_json_str(json_object_get(call, "name"));
	uint64_t h = 3;

	for (size_t i = 0; i < name.size; i++)
		h = hf_rng_mix(h * 31 + (unsigned char)name.p[i]);
	for (const char *p = args == NULL ? "{}" : args; *p != '\0'; p++)
		h = hf_rng_mix(h * 31 + (unsigned char)*p);
	free(args);
	for (unsigned i = 0; i < 24; i++) {
		if (i % 8 == 0)
			h = hf_rng_mix(h + i);
		out[i] = alphabet[h >> 6 * (i % 8) & 63];
	}
	out[24] = '\0';
}

/* --- what was received ---------------------------------------------------- */

/* Texts of a content's parts, joined as those of other dialects are; thoughts
 * are not said.  Caller frees. */
static char *
text_of(json_t *content)
{
	json_t *said = json_array(), *p;
	char *text;
	size_t i;

	json_array_foreach(json_object_get(content, "parts"), i, p)
	{
		if (!json_is_true(json_object_get(p, "thought")))
			json_array_append(said, p);
	}
	text = hf_parts_text(said);
	json_decref(said);
	return text;
}

/* The id of call number k of content number i: its own, or its place. */
static json_t *
id_of(json_t *call, size_t i, size_t k)
{
	json_t *id = json_object_get(call, "id");
	char place[48];

	if (json_is_string(id))
		return json_incref(id);
	snprintf(place, sizeof(place), "call-%zu-%zu", i, k);
	return json_string(place);
}

static json_t *
calls_of(json_t *content, size_t i)
{
	json_t *out = json_array(), *p;
	size_t k;

	json_array_foreach(json_object_get(content, "parts"), k, p)
	{
		json_t *call = hf_gemini_get(p, "functionCall");
		struct hf_buf args;

		if (call == NULL)
			continue;
		hf_buf_init(&args, HF_BUF_NOCAP);
		hf_buf_json(&args, hf_gemini_get(call, "args"));
		json_array_append_new(out,
		    json_pack("{s:o,s:O,s:s}", "id",
			id_of(call, i, json_array_size(out)), "name",
			json_object_get(call, "name"), "arguments",
			args.size == 0 ? "{}" : args.data));
		hf_buf_free(&args);
	}
	return out;
}

/* What a result says: its only member where that is a string; else all of it.
 * Caller frees. */
static char *
result_text(json_t *response)
{
	static const char *const names[] = { "output", "result", "error" };
	char *text;

	for (unsigned i = 0; i < hf_countof(names); i++) {
		json_t *v = json_object_get(response, names[i]);

		if (json_object_size(response) == 1 && json_is_string(v))
			return hf_xstrdup(json_string_value(v));
	}
	text = json_dumps(response, JSON_COMPACT);
	HF_CHECK(text != NULL);
	return text;
}

/* Results are correlated by their ids, or by their order. */
static void
view_results(json_t *out, json_t *content, json_t *calls)
{
	json_t *p;
	size_t i, n = 0;

	json_array_foreach(json_object_get(content, "parts"), i, p)
	{
		json_t *r = hf_gemini_get(p, "functionResponse"), *id;
		char *text;

		if (r == NULL)
			continue;
		id = json_object_get(r, "id");
		if (id == NULL)
			id = json_object_get(json_array_get(calls, n), "id");
		n++;
		text = result_text(json_object_get(r, "response"));
		json_array_append_new(out,
		    json_pack("{s:s,s:s,s:O?}", "role", "tool", "text", text,
			"call_id", id));
		free(text);
	}
}

static void
view_add(json_t *out, const char *role, const char *text, json_t *calls)
{
	json_t *v = json_pack("{s:s,s:s}", "role", role, "text", text);

	HF_CHECK(v != NULL);
	if (json_array_size(calls) > 0)
		json_object_set(v, "calls", calls);
	json_array_append_new(out, v);
}

static json_t *
gemini_view(json_t *body)
{
	json_t *system = hf_gemini_get(body, "systemInstruction");
	json_t *out = json_array(), *c, *open = NULL;
	char *text;
	size_t i;

	if (system != NULL) {
		text = text_of(system);
		view_add(out, "system", text, NULL);
		free(text);
	}
	json_array_foreach(json_object_get(body, "contents"), i, c)
	{
		size_t before = json_array_size(out);
		json_t *calls = calls_of(c, i);
		bool model =
		    hf_str_is(hf_json_str(json_object_get(c, "role")), "model");

		view_results(out, c, open);
		text = text_of(c);
		/* Results alone are not a message of the user's. */
		if (text[0] != '\0' || json_array_size(out) == before)
			view_add(
			    out, model ? "assistant" : "user", text, calls);
		free(text);
		json_decref(open);
		open = calls;
	}
	json_decref(open);
	return out;
}

static json_t *
gemini_tools(json_t *body)
{
	json_t *tools = json_object_get(body, "tools"), *out, *t, *f;
	size_t i, k;

	if (tools == NULL)
		return NULL;
	out = json_array();
	json_array_foreach(tools, i, t)
	{
		json_t *all = hf_gemini_get(t, "functionDeclarations");

		json_array_foreach(all, k, f)
		    json_array_append(out, json_object_get(f, "name"));
	}
	return out;
}

/* The protocol has none. */
static struct hf_str
gemini_user(json_t *body)
{
	(void)body;
	return HF_STR_NONE;
}

/* --- errors --------------------------------------------------------------- */

static json_t *
details(const struct hf_refusal *r)
{
	json_t *out = json_array();

	if (r->code[0] != '\0')
		json_array_append_new(out,
		    json_pack("{s:s,s:s,s:s}", "@type",
			"type.googleapis.com/google.rpc.ErrorInfo", "reason",
			r->code, "domain", "googleapis.com"));
	if (r->status == 429)
		json_array_append_new(out,
		    json_pack("{s:s,s:[{s:s,s:s,s:s}]}", "@type",
			"type.googleapis.com/google.rpc.QuotaFailure",
			"violations", "quotaMetric",
			"generativelanguage.googleapis.com/"
			"generate_content_free_tier_requests",
			"quotaId",
			"GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
			"quotaValue", "15"));
	if (r->hint == HF_HINT_RETRY_INFO) {
		char delay[24];

		snprintf(delay, sizeof(delay), "%u.%03us", r->retry_ms / 1000,
		    r->retry_ms % 1000);
		json_array_append_new(out,
		    json_pack("{s:s,s:s}", "@type",
			"type.googleapis.com/google.rpc.RetryInfo",
			"retryDelay", delay));
	}
	return out;
}

static json_t *
error_object(const struct hf_refusal *r)
{
	json_t *more = details(r);
	json_t *o = json_pack("{s:{s:i,s:s,s:s}}", "error", "code", r->status,
	    "message", r->message, "status", r->type);

	HF_CHECK(o != NULL);
	if (json_array_size(more) > 0)
		json_object_set(json_object_get(o, "error"), "details", more);
	json_decref(more);
	return o;
}

static void
gemini_error(struct hf_buf *out, const struct hf_refusal *r, const char *id)
{
	json_t *o = error_object(r);

	(void)id;
	hf_buf_json(out, o);
	json_decref(o);
}

/* --- answers -------------------------------------------------------------- */

/* One event of a stream, or one element of the array that a stream is without
 * alt=sse; 'o' is taken. */
static void
put_chunk(struct hf_buf *out, bool array, bool first, json_t *o)
{
	HF_CHECK(o != NULL);
	hf_buf_puts(out, !array ? "data: " : first ? "[" : ",\r\n");
	hf_buf_json(out, o);
	hf_buf_puts(out, array ? "" : "\r\n\r\n");
	json_decref(o);
}

static void
gemini_error_event(struct hf_buf *out, const struct hf_refusal *r)
{
	put_chunk(out, false, false, error_object(r));
}

static json_t *
usage_object(const struct hf_reply *p, unsigned output)
{
	return json_pack("{s:i,s:i,s:i}", "promptTokenCount",
	    (int)p->input_tokens, "candidatesTokenCount", (int)output,
	    "totalTokenCount", (int)(p->input_tokens + output));
}

/* 'parts' is taken. */
static json_t *
response(const struct hf_reply *p, json_t *parts, const char *finish,
    unsigned output)
{
	json_t *candidate = json_pack("{s:i,s:{s:s,s:o}}", "index", 0,
	    "content", "role", "model", "parts", parts);

	HF_CHECK(candidate != NULL);
	if (finish != NULL)
		json_object_set_new(
		    candidate, "finishReason", json_string(finish));
	return json_pack("{s:[o],s:o,s:s,s:s}", "candidates", candidate,
	    "usageMetadata", usage_object(p, output), "modelVersion", p->model,
	    "responseId", p->id_tail);
}

/* Call number i as a part. */
static json_t *
call_part(const struct hf_reply *p, size_t i, json_t *c)
{
	struct hf_str a = hf_json_str(json_object_get(c, "arguments"));
	bool signs = hf_gemini_signs(hf_str(p->model));
	json_t *call =
	    json_pack("{s:O,s:o}", "name", json_object_get(c, "name"), "args",
		json_loadb(a.p, a.size, 0, NULL));
	json_t *part = json_object();
	char text[40];

	HF_CHECK(call != NULL);
	if (signs) { /* older ones give no ids either */
		snprintf(text, sizeof(text), "%.28s%02zu", p->id_tail, i);
		json_object_set_new(call, "id", json_string(text));
	}
	if (signs && i == 0) { /* of parallel calls the first has it */
		hf_gemini_sign(call, text);
		json_object_set_new(
		    part, "thoughtSignature", json_string(text));
	}
	json_object_set_new(part, "functionCall", call);
	return part;
}

static json_t *
text_part(const char *text, size_t size)
{
	return json_pack("{s:s%}", "text", text, size);
}

static void
gemini_plain(struct hf_buf *out, const struct hf_reply *p)
{
	const struct hf_answer *a = p->answer;
	json_t *parts = json_array(), *c, *o;
	size_t i;

	if (a->text != NULL)
		json_array_append_new(
		    parts, text_part(a->text, strlen(a->text)));
	json_array_foreach(a->calls, i, c)
	    json_array_append_new(parts, call_part(p, i, c));
	o = response(p, parts, "STOP", p->output_tokens);
	hf_buf_json(out, o);
	json_decref(o);
}

/* Calls come whole; a finish reason of their own they have not. */
static void
gemini_stream(struct hf_stream *out, const struct hf_reply *p)
{
	const struct hf_answer *a = p->answer;
	const char *text = a->text == NULL ? "" : a->text;
	json_t *c;
	size_t i;

	put_chunk(&out->head, p->array, true,
	    response(p, json_pack("[o]", text_part("", 0)), NULL, 0));
	for (size_t at = 0, n; text[at] != '\0'; at += n) {
		n = hf_piece_size(text, at, p->split.text);
		put_chunk(hf_stream_add(out, false, at + n), p->array, false,
		    response(
			p, json_pack("[o]", text_part(text + at, n)), NULL, 1));
	}
	json_array_foreach(a->calls, i, c)
	{
		size_t size =
		    json_string_length(json_object_get(c, "arguments"));

		put_chunk(hf_stream_add(out, true, size), p->array, false,
		    response(p, json_pack("[o]", call_part(p, i, c)), NULL, 1));
	}
	put_chunk(&out->finish, p->array, false,
	    response(p, json_pack("[o]", text_part("", 0)), "STOP",
		p->output_tokens));
	if (p->array)
		hf_buf_puts(&out->tail, "]");
}

static void
gemini_failure(int status, struct hf_refusal *r)
{
	static const struct {
		int status;
		const char *type, *code, *text;
	} t[] = {
		{ 400, "INVALID_ARGUMENT", NULL,
		    "Request contains an invalid argument." },
		/* A bad key is a bad request here. */
		{ 401, "INVALID_ARGUMENT", "API_KEY_INVALID",
		    "API key not valid. Please pass a valid API key." },
		{ 403, "PERMISSION_DENIED", NULL,
		    "The caller does not have permission" },
		{ 404, "NOT_FOUND", NULL, "the model is not found" },
		{ 429, "RESOURCE_EXHAUSTED", NULL,
		    "You exceeded your current quota." },
		{ 503, "UNAVAILABLE", NULL,
		    "The model is overloaded. Please try again later." },
		{ 504, "DEADLINE_EXCEEDED", NULL,
		    "The request timed out. Please try again." },
		{ 529, "UNAVAILABLE", NULL,
		    "The model is overloaded. Please try again later." },
	};

	for (unsigned i = 0; i < hf_countof(t); i++) {
		if (t[i].status == status) {
			hf_refuse(r,
			    status == 401     ? 400 :
				status == 529 ? 503 :
						status,
			    t[i].type, t[i].code, NULL, "Injected: %s",
			    t[i].text);
			return;
		}
	}
	hf_refuse(r, status, "INTERNAL", NULL, NULL,
	    "Injected: an internal error has occurred.");
}

/* --- the request line ----------------------------------------------------- */

static bool
gemini_is_path(struct hf_str path)
{
	struct hf_str model, action;

	return hf_gemini_path(path, &model, &action);
}

static struct hf_str
gemini_model(const struct hf_bench_headers *h, json_t *body)
{
	struct hf_str model, action;

	(void)body;
	return hf_gemini_path(h->path, &model, &action) ? model : HF_STR_NONE;
}

static bool
gemini_streams(const struct hf_bench_headers *h, json_t *body)
{
	struct hf_str model, action;

	(void)body;
	return hf_gemini_path(h->path, &model, &action) &&
	    hf_str_is(action, "streamGenerateContent");
}

const struct hf_bench_dialect hf_bench_gemini = {
	.name = "gemini",
	.is_path = gemini_is_path,
	.model = gemini_model,
	.streams = gemini_streams,
	.check = hf_gemini_check,
	.view = gemini_view,
	.tools = gemini_tools,
	.user = gemini_user,
	.error = gemini_error,
	.error_event = gemini_error_event,
	.plain = gemini_plain,
	.stream = gemini_stream,
	.failure = gemini_failure,
};
