/*
 * What the reference proxy remembers of its sessions, and what it tells a
 * provider: the part of a gateway that most of the seeded bugs are in.
 * In memory only, one thread.
 *
 * A request that begins with a system message is taken as the whole
 * conversation as its client knows it, any other as what is new.
 */
#ifndef HF_BENCH_MEMORY_H
#define HF_BENCH_MEMORY_H

#include <jansson.h>

#include "base/hf.h"
#include "bench/bugs.h"
#include "bench/suite.h"

struct hf_memory;
struct hf_session;

struct hf_memory *hf_memory_new(enum hf_bug bug);
void hf_memory_free(struct hf_memory *m);

/* The session of that name, made if need be; the memory's. */
struct hf_session *hf_memory_session(struct hf_memory *m, struct hf_str name);
/* The owner's own, of a session; NULL at first. */
void **hf_session_slot(struct hf_session *s);

/* The conversation up to and with this request's messages, in the words of the
 * openai dialect; new. */
json_t *hf_session_begin(struct hf_session *s, json_t *messages);
/* The turn is answered: 'conversation' with this answer is what was said.
 * 'target': who answered, by its place in the route; or -1. */
void hf_session_end(
    struct hf_session *s, json_t *conversation, json_t *answer, int target);
/* The turn was dropped before anything of its answer was heard. */
void hf_session_drop(struct hf_session *s, json_t *conversation);

/* What target number 'target' of the route is told; 'later': another one
 * failed on this turn.  New. */
json_t *hf_session_tell(
    struct hf_session *s, json_t *conversation, unsigned target, bool later);

#endif
