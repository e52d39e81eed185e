/*
 * Which items of a history are told to a target whose window cannot hold all
 * of them.  Pure; any thread.
 *
 * Kept in any case: system and developer messages, pinned items, the last
 * message of the user, and what stands last.  Then the newest turns, whole,
 * as many as there is room for without a gap; if not even the newest one fits,
 * its newest steps.  A tool call is kept with its answer's other calls, the
 * text before them and all their results, or not at all.
 */
#ifndef HF_GATEWAY_TURN_FIT_H
#define HF_GATEWAY_TURN_FIT_H

#include "base/hf.h"
#include "store/store.h"

#define HF_FIT_NONE UINT32_MAX

struct hf_fit_item {
	int64_t tokens;
	int64_t turn; /* items of one turn have the same */
	enum hf_item_kind kind;
	enum hf_role role;
	uint32_t call; /* of a result: index of its call, or HF_FIT_NONE */
	bool pinned;
	bool keep; /* the answer */
	/* for hf_fit() itself */
	uint32_t group; /* index of the first item that is kept with it */
	uint32_t unit;	/* ... of its turn */
};

struct hf_fit {
	bool fits;	 /* even the least that must be kept does */
	int64_t minimum; /* tokens of that */
	int64_t tokens;	 /* of what is kept */
	unsigned items;	 /* left out */
	unsigned turns;	 /* before the newest, of which something is left out */
};

/*
 * Chooses among 'n' items, in the order of the history, for 'room' tokens.  A
 * turn begins with a message of the user that does not follow another one of
 * the same turn (a client's list comes as one turn).  If it does not fit, what
 * must be kept is marked all the same.
 */
void hf_fit(
    struct hf_fit_item *item, uint32_t n, int64_t room, struct hf_fit *out);

#endif
