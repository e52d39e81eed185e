/*
 * The last resort: when nobody could answer, what the route says instead, as a
 * normal answer.  It is stored as the gateway's own, not as a model's words.
 * Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"

/* So much of a turn's time is kept for storing and telling it. */
#define RESERVE_US ((int64_t)250000)

static bool
has_one(const struct hf_conf_route *r)
{
	return r->last_resort_text != NULL || r->last_resort_tool != NULL;
}

int64_t
turn_reserve_us(const struct hf_conf_route *r)
{
	int64_t tenth = (int64_t)r->deadline_ms * 100;

	if (!has_one(r))
		return 0;
	return tenth < RESERVE_US ? tenth : RESERVE_US;
}

/* Did the client offer the route's tool? */
static bool
is_offered(const struct hf_turn *t)
{
	const char *tool = t->in.route->last_resort_tool;
	struct hf_json params, tools, one;
	size_t pos = 0;

	if (tool == NULL ||
	    hf_json_check(t->in.params, &params, NULL, NULL) < 0)
		return false;
	tools = hf_json_get(params, "tools");
	if (tools.type != HF_JSON_ARRAY)
		return false;
	while (hf_json_next_element(tools, &pos, &one))
		if (hf_json_string_is(
			hf_json_path(one, "function", "name", NULL), tool))
			return true;
	return false;
}

static bool
add_call(struct hf_turn *t)
{
	struct hf_answer *an = &t->answer;
	struct hf_answer_call *c = hf_xcalloc(1, sizeof(*c));
	struct hf_id id;

	hf_id_make(&id, "call_");
	c->id = hf_arena_dup(t->arena, hf_str(id.s));
	c->name = hf_str(t->in.route->last_resort_tool);
	c->arguments = HF_STR("{}");
	free(an->call);
	an->call = c;
	an->n_call = an->cap_call = 1;
	return c->id.p != NULL;
}

/* Only a turn that has its row (if it is to have one), and of whose answer the
 * client has nothing. */
static bool
is_possible(const struct hf_turn *t)
{
	return t->surface != NULL && !t->started &&
	    (!t->durable || t->opened) && t->sm.cur >= TURN_REBUILDING &&
	    t->sm.cur <= TURN_WAITING;
}

bool
turn_last_resort(struct hf_turn *t)
{
	const struct hf_conf_route *r = t->in.route;
	struct hf_answer *an = &t->answer;
	bool call;

	if (!has_one(r) || !is_possible(t))
		return false;
	call = is_offered(t);
	if (!call && r->last_resort_text == NULL)
		return false;
	turn_forget_rest(t);
	hf_buf_reset(&t->held);
	turn_text_reset(t);
	if (r->last_resort_text != NULL)
		hf_buf_puts(&an->text, r->last_resort_text);
	if (!hf_buf_ok(&an->text) || (call && !add_call(t)))
		return false;
	an->finish = HF_FINISH_STOP;
	an->tokens_in = an->tokens_out = -1;
	an->tokens_cached = an->tokens_reasoning = -1;
	t->by_gateway = true;
	t->fit = (struct fitted){ 0 };
	hf_count(t->env->shm, HF_C_last_resorts, 1);
	hf_log(HF_LOG_WARN, "turn: last_resort turn=%s route=%s attempts=%u",
	    t->id.s, r->name, t->n_attempt);
	turn_finish(t);
	return true;
}
