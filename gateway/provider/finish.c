/*
 * Names of finish reasons.
 */
#include <config.h>

#include "gateway/provider/provider.h"

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
