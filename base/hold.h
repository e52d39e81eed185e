/*
 * The hold: what must outlive a worker of the client connections it serves, so
 * that another one can go on at the exact byte.  One memfd that the master
 * makes and every worker maps, one slot per connection:
 *
 *	in	the bytes of the request being read or served.  The socket is
 *		read straight into it, so that the kernel's own count of
 *		consumed bytes says how many there are, whenever the worker dies
 *	out	a ring of what was written.  Bytes are here before the kernel
 *		can have them, and stay until it took them; the kernel's count
 *		says how many it took
 *	text	a ring of the last bytes of the answer's text that 'out' carries
 *	mark	everything else, in two copies: the spare one is filled and then
 *		made the current one by a single store, so that a reader sees a
 *		mark whole or not at all
 *
 * The master keeps a dup of each connection beside it (workers/handover.c).
 * A slot is written by its owner only; the owner changes when the master has
 * seen its death by waitpid().  Pages are touched only when used: the mapping
 * is large, the memory is not.
 */
#ifndef HF_BASE_HOLD_H
#define HF_BASE_HOLD_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/hf.h"
#include "base/id.h"

#define HF_HOLD_SLOTS 4096u
#define HF_HOLD_IN (4u * 1024 * 1024) /* a longer request is not held */
#define HF_HOLD_OUT (96u * 1024)
#define HF_HOLD_TEXT (64u * 1024)
#define HF_HOLD_NONE UINT32_MAX /* no slot */

enum hf_hold_flag {
	HF_HOLD_SERVING = 1,  /* the request at in_start was handed to its
			       * handler and is not answered yet */
	HF_HOLD_HEAD = 2,     /* its response's head is in 'out' */
	HF_HOLD_REPLY = 4,    /* ... of a plain reply of body_size bytes */
	HF_HOLD_CLOSE = 8,    /* close when 'out' has left */
	HF_HOLD_INTERIM = 16, /* an interim response (100) is in 'out' */
	HF_HOLD_LOST = 32     /* 'in', 'out' or 'text' could not take it all:
			       * not to be handed over */
};

struct hf_hold_mark {
	uint32_t flags;		/* enum hf_hold_flag */
	uint32_t state;		/* the surface's own, as of the last write */
	uint64_t in_base;	/* bytes consumed of the connection where 'in'
				 * begins */
	uint32_t in_start;	/* of 'in': the request being read or served */
	uint32_t head_size;	/* bytes of the response's head */
	uint64_t out_size;	/* bytes in 'out' since it was accepted */
	uint64_t response_from; /* out_size where the response began */
	uint64_t body_size;	/* of a plain reply */
	uint64_t body_hash;
	uint64_t text_size;    /* bytes of the answer's text in 'out' */
	int64_t since_us;      /* hf_now_us() when the request in service was
				* received, by whoever had it first */
	int64_t said_us;       /* ... when text was last added; 0: never */
	char turn[HF_ID_SIZE]; /* in service (hf_sink_turn()), or "" */
};

struct hf_hold_slot {
	_Atomic uint32_t epoch;	  /* moves with each connection */
	_Atomic uint32_t current; /* of mark[]: 0 or 1 */
	_Atomic uint32_t faults;  /* owners that died by their own fault
				   * while serving this request */
	struct hf_hold_mark mark[2];
};

/* One process's view. */
struct hf_hold {
	void *map; /* NULL: handover is off */
	uint64_t inc;
	uint32_t hint; /* where to look for a free slot */
};

/* Master, tests: make the memfd. */
int hf_hold_create(
    struct hf_hold *h, int *fd, struct hf_error *e) HF_MUST_CHECK;
/* Worker, keeper: map it; 'inc' is the own incarnation. */
int hf_hold_map(
    struct hf_hold *h, int fd, uint64_t inc, struct hf_error *e) HF_MUST_CHECK;
void hf_hold_unmap(struct hf_hold *h);

/* The incarnation that owns a slot; 0: free. */
_Atomic uint64_t *hf_hold_owner(const struct hf_hold *h, uint32_t slot);
struct hf_hold_slot *hf_hold_slot(const struct hf_hold *h, uint32_t slot);
char *hf_hold_in(const struct hf_hold *h, uint32_t slot);
char *hf_hold_out(const struct hf_hold *h, uint32_t slot);
char *hf_hold_text(const struct hf_hold *h, uint32_t slot);

/* Worker: take a free slot for a new connection (mark all zero, a new epoch),
 * HF_HOLD_NONE when there is none; give it back (its pages too). */
uint32_t hf_hold_take(struct hf_hold *h);
void hf_hold_give(struct hf_hold *h, uint32_t slot);
/* Forget what the pages of 'in' beyond 'keep' bytes hold. */
void hf_hold_trim_in(struct hf_hold *h, uint32_t slot, size_t keep);

/* The current mark; a copy of it to be changed; make the changed one current.
 */
const struct hf_hold_mark *hf_hold_mark(const struct hf_hold *h, uint32_t slot);
struct hf_hold_mark *hf_hold_change(const struct hf_hold *h, uint32_t slot);
void hf_hold_commit(const struct hf_hold *h, uint32_t slot);

/* Rings: write at a position, read [from, from + size). */
void hf_ring_put(char *ring, size_t cap, uint64_t at, const void *p, size_t n);
void hf_ring_get(
    const char *ring, size_t cap, uint64_t from, void *p, size_t n);

/* Does a connection that is held, or waits for its next owner, serve this
 * turn?  Then its lease is nobody else's, although its owner is dead.  Any
 * process; a scan over all slots. */
bool hf_hold_serves(const struct hf_hold *h, const char *turn);

/* --- what the kernel knows (Linux, TCP) ----------------------------------- */

/* Bytes that the kernel took from us since the connection began: sent once,
 * or still to be sent.  false: not a TCP socket, or it cannot say. */
bool hf_tcp_taken(int fd, uint64_t *n);
/* Bytes that the peer acknowledged, and whether the kernel holds more for it.
 */
bool hf_tcp_acked(int fd, uint64_t *n, bool *waiting);
/* Bytes that were read from it. */
bool hf_tcp_consumed(int fd, uint64_t *n);
/* Try both on a connection of our own over loopback: with a full window, a
 * partial write, a FIN.  HF_EPROTO when a count is not exact. */
int hf_tcp_self_test(struct hf_error *e) HF_MUST_CHECK;

#endif
