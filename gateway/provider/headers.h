/*
 * Header fields in a block of received lines.  Private to the room.
 */
#ifndef HF_GATEWAY_PROVIDER_HEADERS_H
#define HF_GATEWAY_PROVIDER_HEADERS_H

#include "base/hf.h"

/* First field called 'name' (any case) in lines that end in CRLF or LF; its
 * value without white space around it points into 'headers'.  .p is NULL when
 * there is none. */
struct hf_str hf_header_find(struct hf_str headers, const char *name);
/* Is there a field whose name begins so (any case)? */
bool hf_header_begins(struct hf_str headers, const char *prefix);

#endif
