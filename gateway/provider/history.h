/*
 * The history as a provider may hear it: tool calls closed, results in their
 * places, ids legal.  The stored items are never changed.  Private to the
 * room.
 */
#ifndef HF_GATEWAY_PROVIDER_HISTORY_H
#define HF_GATEWAY_PROVIDER_HISTORY_H

#include "gateway/provider/provider.h"

/* What stands for the result of a call that nobody answered. */
#define HF_NO_RESULT "call interrupted, no result"

enum hf_said_kind { HF_SAID_MESSAGE, HF_SAID_CALL, HF_SAID_RESULT };

/* One line of the conversation. */
struct hf_said {
	enum hf_said_kind kind;
	enum hf_role role;
	bool lead;	     /* system or developer, before all others */
	bool joined;	     /* a call that belongs to the same assistant
			      * message as the line before it */
	struct hf_json body; /* NONE: a result that nobody gave */
	/* Members of the body; NONE: it has none. */
	struct hf_json content, refusal, name, arguments;
	struct hf_str id; /* calls and results: of [A-Za-z0-9_-] */
};

struct hf_said_list {
	struct hf_said *line; /* in 'arena'; bodies point into the items */
	unsigned n;
	struct hf_arena arena;
	struct hf_json_map map; /* of the bodies */
};

/*
 * Make the list; 'id_max' is the longest tool call id that the dialect takes.
 * Results stand directly behind their calls, in the order of the calls; a
 * call without result gets one (body NONE); a result without call is left
 * out.  Ids that are too long, not of the alphabet, used by an earlier call, or
 * of the form of a replacement are replaced by a hash, the same for the call
 * and its result, the same in every request.  HF_EINVAL when a body is not what
 * provider.h says.
 */
int hf_said_make(struct hf_said_list *out, const struct hf_payload_input *in,
    size_t id_max, struct hf_error *e) HF_MUST_CHECK;
void hf_said_free(struct hf_said_list *l);

/* Iterate over the text strings of a content (string, array or null); start
 * with pos = 0. */
bool hf_content_next(struct hf_json content, size_t *pos, struct hf_json *text);
/* True if no text of it has a byte (or, with 'blank', only white space). */
bool hf_content_empty(struct hf_json content, bool blank);
/* True if a string decodes to nothing but white space. */
bool hf_text_blank(struct hf_json string);
/* Append a string, with its quotes, without the white space at its end. */
void hf_text_put_stripped(struct hf_buf *b, struct hf_json string);

#endif
