/*
 * Tool calls under way: arguments are collected, each byte once, and a call
 * is emitted when it is whole, so that a cut stream never delivers half of
 * one.
 */
#include <config.h>

#include "gateway/provider/decoder.h"

#include <stdlib.h>

#include "base/check.h"

void
hf_tools_free(struct hf_decoder *d)
{
	unsigned i;

	for (i = 0; i < d->n_tool; i++) {
		hf_buf_free(&d->tool[i].id);
		hf_buf_free(&d->tool[i].name);
		hf_buf_free(&d->tool[i].args);
	}
	free(d->tool);
	d->tool = NULL;
	d->n_tool = 0;
}

struct hf_tool *
hf_tool_add(struct hf_decoder *d, int64_t index)
{
	struct hf_tool *t;

	hf_decode_begin(d);
	if (d->n_tool == HF_DECODE_TOOLS) {
		hf_decode_fail(d, HF_CLASS_PROVIDER, "too_many_tool_calls");
		return NULL;
	}
	if (d->tool == NULL)
		d->tool = hf_xcalloc(HF_DECODE_TOOLS, sizeof(*d->tool));
	t = &d->tool[d->n_tool++];
	*t = (struct hf_tool){ .index = index };
	hf_buf_init(&t->id, HF_DECODE_EVENT);
	hf_buf_init(&t->name, HF_DECODE_EVENT);
	hf_buf_init(&t->args, HF_DECODE_ARGUMENTS);
	return t;
}

struct hf_tool *
hf_tool_find(struct hf_decoder *d, int64_t index)
{
	unsigned i;

	for (i = d->n_tool; i > 0; i--)
		if (d->tool[i - 1].index == index)
			return &d->tool[i - 1];
	return NULL;
}

static bool
is_blank(struct hf_str s)
{
	size_t i;

	for (i = 0; i < s.size; i++)
		if (s.p[i] != ' ' && s.p[i] != '\n' && s.p[i] != '\r' &&
		    s.p[i] != '\t')
			return false;
	return true;
}

void
hf_tool_arguments(struct hf_decoder *d, struct hf_tool *t, struct hf_json part)
{
	size_t before = t->args.size;

	if (d->terminal)
		return;
	if (part.type == HF_JSON_STRING) {
		if (t->emitted) {
			/* Only white space may follow a whole object. */
			hf_buf_reset(&d->scratch);
			hf_json_decode(part, &d->scratch);
			if (!is_blank(hf_buf_str(&d->scratch)))
				hf_decode_fail(
				    d, HF_CLASS_PROVIDER, "bad_tool_call");
			return;
		}
		hf_json_decode(part, &t->args);
	} else if (part.type == HF_JSON_OBJECT && !t->emitted) {
		hf_buf_reset(&t->args);
		hf_json_put_compact(&t->args, part);
		before = 0;
	}
	d->args_bytes += t->args.size - before;
	if (!hf_buf_ok(&t->args) || d->args_bytes > HF_DECODE_ARGUMENTS)
		hf_decode_fail(d, HF_CLASS_PROVIDER, "too_large");
	else
		d->fn(d->arg, &(struct hf_event){ .type = HF_EV_PROGRESS });
}

static bool
is_object(const struct hf_tool *t)
{
	struct hf_json v;

	return hf_json_check(hf_buf_str(&t->args), &v, NULL, NULL) == 0 &&
	    v.type == HF_JSON_OBJECT;
}

static void
emit(struct hf_decoder *d, struct hf_tool *t)
{
	struct hf_event ev = { .type = HF_EV_TOOL_CALL };

	ev.tool.native_id = hf_buf_str(&t->id);
	ev.tool.name = hf_buf_str(&t->name);
	ev.tool.arguments = is_blank(hf_buf_str(&t->args)) ?
	    HF_STR("{}") :
	    hf_buf_str(&t->args);
	t->emitted = true;
	d->n_tool_emitted++;
	d->fn(d->arg, &ev);
	/* Its bytes are not needed any more. */
	hf_buf_free(&t->args);
	hf_buf_init(&t->args, HF_DECODE_ARGUMENTS);
}

void
hf_tools_emit_whole(struct hf_decoder *d)
{
	struct hf_tool *t;
	unsigned i;

	for (i = 0; i < d->n_tool && !d->terminal; i++) {
		t = &d->tool[i];
		if (t->emitted)
			continue;
		/* Looked at once: servers that interleave calls would have
		 * their arguments parsed again at every delta. */
		if (t->tried || t->name.size == 0)
			return;
		t->tried = true;
		if (!is_object(t))
			return;
		emit(d, t);
	}
}

bool
hf_tools_emit_rest(struct hf_decoder *d, enum hf_finish_reason f)
{
	struct hf_tool *t;
	unsigned i;

	for (i = 0; i < d->n_tool && !d->terminal; i++) {
		t = &d->tool[i];
		if (t->emitted)
			continue;
		/* The token limit cut this call: it is not a call. */
		if (f == HF_FINISH_LENGTH && !is_object(t))
			continue;
		if (t->name.size == 0) {
			hf_decode_fail(d, HF_CLASS_PROVIDER, "bad_tool_call");
			return false;
		}
		emit(d, t);
	}
	return !d->terminal;
}
