/*
 * Answers: read from disk, and the part of them that is told with their end.
 * Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include <stdlib.h>

#include "base/check.h"

static int
decode(struct hf_arena *a, struct hf_json string, struct hf_str *out)
{
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	if (string.type == HF_JSON_STRING)
		hf_json_decode(string, &b);
	*out = hf_arena_dup(a, hf_buf_str(&b));
	if (!hf_buf_ok(&b))
		out->p = NULL;
	hf_buf_free(&b);
	return out->p == NULL ? HF_ENOMEM : 0;
}

static int
take_call(struct hf_answer *an, struct hf_json body, struct hf_arena *a)
{
	struct hf_answer_call *c = &an->call[an->n_call];

	if (decode(a, hf_json_get(body, "id"), &c->id) < 0 ||
	    decode(a, hf_json_get(body, "name"), &c->name) < 0 ||
	    decode(a, hf_json_get(body, "arguments"), &c->arguments) < 0)
		return HF_ENOMEM;
	an->n_call++;
	return 0;
}

static int
take_item(struct hf_answer *an, const struct hf_item *item, struct hf_arena *a,
    struct hf_error *e)
{
	struct hf_json body;
	int rc;

	rc = hf_json_check(item->body, &body, NULL, e);
	if (rc < 0)
		return hf_fail(e, HF_ECORRUPT, "an answer that is no JSON");
	if (item->kind == HF_ITEM_TOOL_CALL)
		return take_call(an, body, a);
	hf_json_decode(hf_json_get(body, "content"), &an->text);
	if (hf_json_get(body, "refusal").type == HF_JSON_STRING)
		hf_json_decode(hf_json_get(body, "refusal"), &an->refusal);
	return hf_buf_ok(&an->text) && hf_buf_ok(&an->refusal) ? 0 : HF_ENOMEM;
}

static enum hf_finish_reason
finish_of(struct hf_str name)
{
	static const enum hf_finish_reason all[] = { HF_FINISH_STOP,
		HF_FINISH_LENGTH, HF_FINISH_TOOL_CALLS,
		HF_FINISH_CONTENT_FILTER };

	for (size_t i = 0; i < hf_countof(all); i++)
		if (hf_str_is(name, hf_finish_name(all[i])))
			return all[i];
	return HF_FINISH_STOP;
}

int
answer_take(struct hf_answer *an, const struct hf_stored_answer *s,
    struct hf_arena *a, struct hf_error *e)
{
	int rc = 0;

	free(an->call);
	an->call = hf_xcalloc(s->n_item + 1, sizeof(*an->call));
	an->cap_call = s->n_item + 1;
	an->finish = finish_of(s->finish_reason);
	an->tokens_in = s->tokens_in;
	an->tokens_out = s->tokens_out;
	an->tokens_cached = s->tokens_cached;
	an->tokens_reasoning = s->tokens_reasoning;
	for (unsigned i = 0; rc == 0 && i < s->n_item; i++)
		rc = take_item(an, &s->item[i], a, e);
	return rc;
}

void
answer_tell_rest(
    const struct hf_answer *an, const struct hf_surface *surface, void *arg)
{
	struct hf_event ev = { .type = HF_EV_REFUSAL };

	ev.text = hf_buf_str(&an->refusal);
	if (ev.text.size > 0)
		surface->event(arg, &ev);
	ev.type = HF_EV_TOOL_CALL;
	for (unsigned i = 0; i < an->n_call; i++) {
		ev.tool.native_id = an->call[i].id;
		ev.tool.name = an->call[i].name;
		ev.tool.arguments = an->call[i].arguments;
		surface->event(arg, &ev);
	}
}

/* The end of a turn that got no answer, as its row knows it. */
void
answer_failure(enum hf_turn_state state, int status, struct hf_turn_failure *f)
{
	static const struct {
		int status;
		const char *type, *code;
	} row[] = {
		{ 429, "rate_limit_error", "rate_limit_exceeded" },
		{ 504, "server_error", "deadline_exceeded" },
		{ 503, "server_error", "no_target" },
		{ 502, "server_error", "stream_interrupted" },
		{ 400, "invalid_request_error", "invalid_request" },
		{ 0, "server_error", "turn_failed" },
	};
	bool known = status >= 400 && status < 600 && status != 499;
	size_t i = 0;

	while (row[i].status != 0 && row[i].status != status)
		i++;
	*f = (struct hf_turn_failure){ .status = known ? status : 500,
		.type = row[i].type,
		.code = row[i].code,
		.retry_after_ms = -1,
		.final = true };
	if (state == HF_TURN_CANCELED) {
		f->status = 409;
		f->type = "conflict_error";
		f->code = "turn_canceled";
	} else if (state == HF_TURN_INTERRUPTED) {
		f->code = "turn_interrupted";
	}
}
