/*
 * Items in the making: bodies (the JSON that is stored and that dialects
 * read, see provider.h) and normal forms (the bytes that digests cover, in
 * which two ways to write the same thing are equal).  Pure; any thread.
 *
 * Normal form: one byte kind, one byte role, then fields, each as 8 bytes
 * length (big-endian) and bytes.
 *   message      decoded text of all parts joined, decoded refusal
 *   tool call    decoded id, decoded name, arguments without insignificant
 *                white space (as they are if they are no JSON)
 *   tool result  decoded id, decoded text of all parts joined
 */
#ifndef HF_GATEWAY_TURN_ITEMS_H
#define HF_GATEWAY_TURN_ITEMS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "gateway/json/scan.h"
#include "store/store.h"

struct hf_draft {
	struct hf_arena *arena; /* borrowed; owns all bytes */
	struct hf_item *item;	/* in the client's order */
	struct hf_str *norm;	/* of item[i] */
	struct hf_json *body;	/* of item[i], mapped; NONE: it is not */
	unsigned n, cap;
	unsigned n_lead; /* leading system/developer messages */
	unsigned n_pinned;
	bool no_norm;		/* nothing will be compared or stored:
				 * simple messages get no normal form */
	struct hf_json_map map; /* of what hf_draft_refer() was given */
};

void hf_draft_init(struct hf_draft *d, struct hf_arena *a);
/* Room for so many, if it is known. */
void hf_draft_room(struct hf_draft *d, unsigned n);
/* The map; all else is the arena's. */
void hf_draft_free(struct hf_draft *d);

/* Add one item.  Contents must have passed hf_json_check(): 'content' is a
 * string, an array of text or refusal parts, null or absent.  HF_EINVAL with
 * a text that starts with the place inside the message ("content[1].type:
 * ..."); HF_ENOMEM. */
int hf_draft_message(struct hf_draft *d, enum hf_role role,
    enum hf_origin origin, struct hf_json content, struct hf_json name,
    struct hf_json refusal, struct hf_error *e) HF_MUST_CHECK;
/* The same for a message of a client whose content is one string, where
 * nothing is to be repaired, compared or stored: nothing is copied.  'message'
 * is the whole object, of the draft's map; its text lives as long as the
 * arena. */
int hf_draft_refer(struct hf_draft *d, enum hf_role role,
    struct hf_json message, struct hf_error *e) HF_MUST_CHECK;
int hf_draft_tool_call(struct hf_draft *d, enum hf_origin origin,
    struct hf_json id, struct hf_json name, struct hf_json arguments,
    struct hf_error *e) HF_MUST_CHECK;
int hf_draft_tool_result(struct hf_draft *d, struct hf_json id,
    struct hf_json content, struct hf_error *e) HF_MUST_CHECK;

/* The same from decoded text, for what a model said. */
int hf_draft_answer_text(struct hf_draft *d, struct hf_str text,
    struct hf_str refusal, struct hf_error *e) HF_MUST_CHECK;
int hf_draft_answer_call(struct hf_draft *d, struct hf_str id,
    struct hf_str name, struct hf_str arguments,
    struct hf_error *e) HF_MUST_CHECK;

/* The decoded text of a message, given its normal form. */
struct hf_str hf_item_norm_text(struct hf_str norm);
/* The normal form of a message of which there is only the stored body. */
int hf_item_norm(const struct hf_item *item, struct hf_arena *a,
    struct hf_str *norm, struct hf_error *e) HF_MUST_CHECK;

/* The items from index 'from' on are pinned: their bodies say so, their normal
 * forms do not.  HF_ENOMEM. */
int hf_draft_pin(
    struct hf_draft *d, unsigned from, struct hf_error *e) HF_MUST_CHECK;
/* Is this body one of a pinned item? */
bool hf_item_is_pinned(struct hf_str body);

/* Fill in all digests under a session's key. */
void hf_draft_digest(struct hf_draft *d, const struct hf_session_key *k);

/* Body and normal form of an assistant message of plain text; either may be
 * NULL. */
void hf_item_text_body(struct hf_str text, struct hf_str refusal,
    struct hf_buf *body, struct hf_buf *norm);

/* An item that only a model makes: assistant message or tool call. */
static inline bool
hf_item_is_answer(const struct hf_item *i)
{
	return i->role == HF_ROLE_ASSISTANT;
}

#endif
