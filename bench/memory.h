/*
 * What the reference proxy remembers of its sessions, and what it tells a
 * provider: the part of a gateway that most of the seeded bugs are in.
 * In memory, and in a file if it is to outlive its process.  One thread.
 *
 * A request that begins with a system message is taken as the whole
 * conversation as its client knows it, any other as what is new.
 */
#ifndef HF_BENCH_MEMORY_H
#define HF_BENCH_MEMORY_H

#include <jansson.h>

#include "base/err.h"
#include "base/hf.h"
#include "bench/bugs.h"
#include "bench/suite.h"

struct hf_memory;
struct hf_session;

struct hf_memory *hf_memory_new(enum hf_bug bug);
void hf_memory_free(struct hf_memory *m);
/* Reads back what is in this file, and adds each turn that ends before
 * hf_session_end() returns.  Once, and first. */
int hf_memory_keep(
    struct hf_memory *m, const char *path, struct hf_error *e) HF_MUST_CHECK;

/* The session of that name, made if need be; the memory's. */
struct hf_session *hf_memory_session(struct hf_memory *m, struct hf_str name);
/* The owner's own, of a session; NULL at first. */
void **hf_session_slot(struct hf_session *s);

/* The answer to give once more, because these messages repeat those that it
 * answered: they have the same key (NULL: none), or are the same, and are
 * 'marked' as a retry, or nobody knows whether the first answer ever arrived,
 * since the process died.  NULL: they are no repeat.  The session's. */
json_t *hf_session_repeat(
    struct hf_session *s, json_t *messages, const char *key, bool marked);
/* The conversation up to and with this request's messages, in the words of the
 * openai dialect; new. */
json_t *hf_session_begin(struct hf_session *s, json_t *messages);

/* How a turn ended; all borrowed. */
struct hf_turn_end {
	json_t *messages;     /* of the request */
	json_t *conversation; /* hf_session_begin() of them */
	json_t *answer;	      /* as far as it was heard */
	const char *key;      /* or NULL */
	int target;	      /* who answered, by its place in the route; or -1:
			       * the client left in the middle of it */
};
/* What was said: the conversation with this answer. */
void hf_session_end(struct hf_session *s, const struct hf_turn_end *t);
/* The turn was dropped before anything of its answer was heard. */
void hf_session_drop(struct hf_session *s, json_t *conversation);

/* What target number 'target' of the route is told; 'later': another one
 * failed on this turn.  New. */
json_t *hf_session_tell(
    struct hf_session *s, json_t *conversation, unsigned target, bool later);

#endif
