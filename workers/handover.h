/*
 * The master's table of held connections: beside each slot of the hold
 * (base/hold.h) a dup of the client's connection, so that it outlives the
 * worker that serves it; and what becomes of them when that worker dies.
 *
 * A worker tells of a connection (HELD) and of its end (RELEASED) over its
 * own socketpair, so records of two workers about one slot may come in either
 * order: an epoch names one connection in a slot, and a record that does not
 * fit what the hold says now is dropped.
 *
 * A dead worker's slots are settled in one go, after waitpid() and after its
 * socketpair was read to the end, and before its successor is started: then
 * nothing of it is taken for somebody else's.  Master, tests; no process,
 * clock or log in here.
 */
#ifndef HF_WORKERS_HANDOVER_H
#define HF_WORKERS_HANDOVER_H

#include "base/hf.h"
#include "base/hold.h"

struct hf_handover;

/* Owners that may die by their own fault over one request; then it is given
 * on with the word that it must not be tried again. */
#define HF_HANDOVER_FAULTS 2

/* 'hold' is borrowed.  At most 'most' descriptors are kept. */
struct hf_handover *hf_handover_new(struct hf_hold *hold, unsigned most);
/* Closes what it has. */
void hf_handover_free(struct hf_handover *t);

/* Incarnation 'inc' says that it serves a connection; 'fd' (-1: none came) is
 * the table's from now on.  False: it is not kept. */
bool hf_handover_held(
    struct hf_handover *t, uint64_t inc, uint32_t slot, uint32_t epoch, int fd);
/* ... that it has ended. */
void hf_handover_released(
    struct hf_handover *t, uint64_t inc, uint32_t slot, uint32_t epoch);

struct hf_settled {
	unsigned waiting;  /* connections that go on elsewhere */
	unsigned poisoned; /* of them: their request is not tried again */
	unsigned lost;	   /* cut, because the hold has not all of it */
	unsigned unheld;   /* cut, because we never got them */
	bool orphans;	   /* a cut one had come from an earlier death: its
			    * lease may be that owner's still */
};
/* Incarnation 'inc' is dead and said all that it had to say.  'fault': by its
 * own doing. */
void hf_handover_settle(
    struct hf_handover *t, uint64_t inc, bool fault, struct hf_settled *out);

/* A worker that may take connections over. */
struct hf_taker {
	uint64_t inc;
	unsigned generation; /* the newest are asked first */
	bool slow;	     /* its heartbeat stands: last of its generation */
	unsigned given;	     /* out */
	unsigned held, refused; /* used inside */
};
/* Tell taker number 'i' of a connection whose owner it is now; the descriptor
 * stays the table's.  Not 0: it cannot be told, ask another. */
typedef int (*hf_handover_send_fn)(void *arg, unsigned i, uint32_t slot,
    uint32_t epoch, bool poisoned, int fd);
/* Hand all that wait to those who hold least; returns how many wait still. */
unsigned hf_handover_pass(struct hf_handover *t, struct hf_taker *taker,
    unsigned n, hf_handover_send_fn send, void *arg);

/* Nobody will take over any more: cut what waits; returns how many. */
unsigned hf_handover_cut(struct hf_handover *t);

unsigned hf_handover_n_held(const struct hf_handover *t);
unsigned hf_handover_n_waiting(const struct hf_handover *t);

#endif
