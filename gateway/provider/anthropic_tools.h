/*
 * Tools and their choice in the words of the anthropic dialect.  Private to
 * the room.
 */
#ifndef HF_GATEWAY_PROVIDER_ANTHROPIC_TOOLS_H
#define HF_GATEWAY_PROVIDER_ANTHROPIC_TOOLS_H

#include "gateway/provider/history.h"

/*
 * Append "tools" and "tool_choice" members.  A history with tool calls needs
 * tools to be declared even when the client offers none: then those that were
 * called are, and none may be chosen.  HF_EINVAL: not a function.
 */
int hf_anthropic_put_tools(struct hf_buf *b, const struct hf_said_list *l,
    struct hf_json params, struct hf_error *e) HF_MUST_CHECK;

#endif
