/*
 * Continuing an answer that broke off: who may, how they are asked, and the
 * path of text from a provider to the client: through the seam (what a
 * continuation repeats is cut) and the gate (what may leave already).
 * Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include "base/check.h"

#define SPACES " \t\r\n"

/* So few bytes are sooner said again than gone on with. */
#define SHORT ((size_t)20)

static bool
wants_json(const struct hf_turn *t)
{
	struct hf_json params, type;

	if (hf_json_check(t->in.params, &params, NULL, NULL) < 0)
		return false;
	type = hf_json_path(params, "response_format", "type", NULL);
	return type.type == HF_JSON_STRING && !hf_json_string_is(type, "text");
}

/* With tools offered nobody prefills: the model may want to call one. */
static bool
may_prefill(const struct hf_turn *t, const struct hf_conf_target *target)
{
	struct hf_json params;

	return hf_json_check(t->in.params, &params, NULL, NULL) == 0 &&
	    hf_prefill_refusal(target, params) == NULL &&
	    hf_json_get(params, "tools").type != HF_JSON_ARRAY;
}

/*
 * Text can be gone on with; half a JSON document cannot be joined, and what the
 * caller or its content is to blame for fails elsewhere too.  Tool calls and
 * refusals are told with the end only: none of a broken answer was delivered.
 */
bool
turn_may_continue(const struct hf_turn *t, enum hf_class cls)
{
	const struct hf_conf_route *r = t->in.route;

	return t->started && !t->text_lost && cls != HF_CLASS_POLICY &&
	    (cls != HF_CLASS_CALLER || t->continuing) &&
	    r->failover_payload == HF_PAYLOAD_FULL && !wants_json(t);
}

static bool
is_blank(struct hf_str s)
{
	while (s.size > 0 && strchr(SPACES, s.p[s.size - 1]) != NULL)
		s.size--;
	return s.size == 0;
}

bool
turn_continue_mode(const struct hf_turn *t, const struct hf_conf_target *target,
    enum hf_splice_mode *mode, bool *prefill)
{
	const struct hf_turn_env *env = t->env;
	bool can = !t->prefill_off && may_prefill(t, target) &&
	    (t->text_base > 0 || !is_blank(hf_buf_str(&t->answer.text)));

	for (size_t i = 0; i < hf_countof(env->no_prefill); i++)
		can = can && env->no_prefill[i] != target;
	*prefill = can;
	if (can) /* that one says again what it was given, however short */
		*mode = target->call.prefill == HF_PREFILL_MISTRAL ?
		    HF_SPLICE_HIDDEN :
		    HF_SPLICE_PREFILL;
	else
		*mode = t->in.route->continuation == HF_CONTINUE_HIDDEN ||
			turn_text_size(t) < SHORT ?
		    HF_SPLICE_HIDDEN :
		    HF_SPLICE_INSTRUCTION;
	return can || t->in.route->continuation != HF_CONTINUE_OFF;
}

void
turn_no_prefill(struct hf_turn_env *env, const struct hf_conf_target *target)
{
	for (size_t i = 0; i < hf_countof(env->no_prefill); i++) {
		if (env->no_prefill[i] == NULL)
			env->no_prefill[i] = target;
		if (env->no_prefill[i] == target)
			return;
	}
}

/* --- the path of text ----------------------------------------------------- */

static void
pass(struct hf_turn *t, size_t size)
{
	struct hf_event ev = { .type = HF_EV_TEXT };

	if (size == 0)
		return;
	ev.text = (struct hf_str){ t->held.data, size };
	turn_text_add(t, ev.text);
	turn_deliver(t, &ev);
	if (size < t->held.size)
		hf_buf_consume(&t->held, size);
	else
		hf_buf_trim(&t->held);
}

void
turn_take_text(struct hf_turn *t, struct hf_str text)
{
	if (t->continuing)
		hf_splice_feed(&t->splice, text, &t->held);
	else
		hf_buf_putstr(&t->held, text);
	if (hf_buf_ok(&t->held))
		pass(t, hf_release_pass(t->release, hf_buf_str(&t->held)));
}

void
turn_pass_all(struct hf_turn *t)
{
	if (t->continuing) {
		hf_splice_end(&t->splice, &t->held);
		hf_splice_free(&t->splice);
		hf_buf_free(&t->before);
		t->continuing = false;
	}
	if (hf_buf_ok(&t->held))
		pass(t, t->held.size);
}

void
turn_forget_rest(struct hf_turn *t)
{
	hf_buf_reset(&t->answer.refusal);
	t->answer.n_call = 0;
}

void
turn_forget_held(struct hf_turn *t)
{
	turn_forget_rest(t);
	hf_buf_reset(&t->held);
	hf_splice_free(&t->splice);
	hf_buf_free(&t->before);
	t->continuing = false;
}
