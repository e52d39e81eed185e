/*
 * Names of error classes and finish reasons, from their tables.
 */
#include <config.h>

#include "gateway/provider/provider.h"

static const struct {
	const char *name;
	bool retry, next;
} classes[] = {
	[HF_CLASS_NONE] = { "ok", false, false },
#define HF_CLASS(id, name, retry, next, status) \
	[HF_CLASS_##id] = { name, retry, next },
#include "gateway/provider/class.def"
#undef HF_CLASS
};

const char *
hf_class_name(enum hf_class c)
{
	return (size_t)c < hf_countof(classes) ? classes[c].name : "unknown";
}

bool
hf_class_retry(enum hf_class c)
{
	return (size_t)c < hf_countof(classes) && classes[c].retry;
}

bool
hf_class_next(enum hf_class c)
{
	return (size_t)c < hf_countof(classes) && classes[c].next;
}

const char *
hf_finish_name(enum hf_finish_reason f)
{
	switch (f) {
	case HF_FINISH_STOP:
		return "stop";
	case HF_FINISH_LENGTH:
		return "length";
	case HF_FINISH_TOOL_CALLS:
		return "tool_calls";
	case HF_FINISH_CONTENT_FILTER:
		return "content_filter";
	}
	return "stop";
}
