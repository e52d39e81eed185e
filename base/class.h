/*
 * Error classes of attempts, from the tables of class.def.  Constant data; any
 * thread.
 */
#ifndef HF_BASE_CLASS_H
#define HF_BASE_CLASS_H

#include "base/hf.h"

enum hf_class {
	HF_CLASS_NONE = 0,
#define HF_CLASS(id, name, action, breaker, answer, all, meaning) HF_CLASS_##id,
#define HF_ANSWER(id, status, type, code)
#include "base/class.def"
#undef HF_CLASS
#undef HF_ANSWER
	HF_N_CLASS
};

/* What a failure of a class means for the turn. */
enum hf_action {
	HF_ACTION_DEFAULT, /* of a route: as the table says */
	HF_ACTION_END,
	HF_ACTION_NEXT,
	HF_ACTION_RETRY,
	HF_ACTION_FIRST
};

enum hf_breaker_count {
	HF_BREAKER_NO,	/* a sign of life */
	HF_BREAKER_YES, /* a failure */
	HF_BREAKER_NEUTRAL
};

/* What a client hears when nobody answered. */
struct hf_answer_error {
	int status; /* 0: the provider's own status, code and words */
	const char *type, *code;
};

enum hf_answer_id {
#define HF_CLASS(id, name, action, breaker, answer, all, meaning)
#define HF_ANSWER(id, status, type, code) HF_ANSWER_##id,
#include "base/class.def"
#undef HF_CLASS
#undef HF_ANSWER
	HF_N_ANSWER
};

struct hf_class_row {
	const char *name;
	enum hf_action action;
	enum hf_breaker_count breaker;
	enum hf_answer_id answer; /* when every target failed so */
	enum hf_answer_id all;	  /* when all were limited, or late, too */
	const char *meaning;
};

/* The row of a class; of NONE, one that is named "ok". */
const struct hf_class_row *hf_class_row(enum hf_class c);
const char *hf_class_name(enum hf_class c);
/* The class of a name; HF_CLASS_NONE: there is none. */
enum hf_class hf_class_find(struct hf_str name);
const struct hf_answer_error *hf_answer_error(enum hf_answer_id a);

const char *hf_action_name(enum hf_action a);
/* Of the actions that a route may choose; HF_ACTION_DEFAULT: no such name. */
enum hf_action hf_action_find(struct hf_str name);
const char *hf_breaker_count_name(enum hf_breaker_count b);

#endif
