/*
 * The tables of error classes.
 */
#include <config.h>

#include "base/class.h"

static const struct hf_class_row rows[HF_N_CLASS] = {
	[HF_CLASS_NONE] = { .name = "ok" },
#define HF_CLASS(id, name, action, breaker, answer, all, meaning)            \
	[HF_CLASS_##id] = { #name, HF_ACTION_##action, HF_BREAKER_##breaker, \
		HF_ANSWER_##answer, HF_ANSWER_##all, meaning },
#define HF_ANSWER(id, status, type, code)
#include "base/class.def"
#undef HF_CLASS
#undef HF_ANSWER
};

static const struct hf_answer_error answers[HF_N_ANSWER] = {
#define HF_CLASS(id, name, action, breaker, answer, all, meaning)
#define HF_ANSWER(id, status, type, code) \
	[HF_ANSWER_##id] = { status, type, code },
#include "base/class.def"
#undef HF_CLASS
#undef HF_ANSWER
};

static const char *const actions[] = {
	[HF_ACTION_DEFAULT] = "default",
	[HF_ACTION_END] = "end",
	[HF_ACTION_NEXT] = "next",
	[HF_ACTION_RETRY] = "retry",
	[HF_ACTION_FIRST] = "first",
};

static const char *const counts[] = {
	[HF_BREAKER_NO] = "no",
	[HF_BREAKER_YES] = "yes",
	[HF_BREAKER_NEUTRAL] = "neutral",
};

const struct hf_class_row *
hf_class_row(enum hf_class c)
{
	return &rows[(size_t)c < hf_countof(rows) ? c : HF_CLASS_NONE];
}

const char *
hf_class_name(enum hf_class c)
{
	return (size_t)c < hf_countof(rows) ? rows[c].name : "unknown";
}

enum hf_class
hf_class_find(struct hf_str name)
{
	for (unsigned i = HF_CLASS_NONE + 1; i < HF_N_CLASS; i++)
		if (hf_str_is(name, rows[i].name))
			return (enum hf_class)i;
	return HF_CLASS_NONE;
}

const struct hf_answer_error *
hf_answer_error(enum hf_answer_id a)
{
	return &answers[a];
}

const char *
hf_action_name(enum hf_action a)
{
	return actions[a];
}

enum hf_action
hf_action_find(struct hf_str name)
{
	for (unsigned i = HF_ACTION_END; i <= HF_ACTION_RETRY; i++)
		if (hf_str_is(name, actions[i]))
			return (enum hf_action)i;
	return HF_ACTION_DEFAULT;
}

const char *
hf_breaker_count_name(enum hf_breaker_count b)
{
	return counts[b];
}
