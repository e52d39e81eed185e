/*
 * Records between the master and a child: fixed size, one per datagram of a
 * SEQPACKET socketpair that is made for each child, so that a record of an
 * earlier incarnation cannot be taken for one of a later one; the
 * incarnation in it is checked all the same.  What a child says is gossip:
 * anything short, unknown or stale is logged and dropped.
 */
#ifndef HF_WORKERS_IPC_H
#define HF_WORKERS_IPC_H

#include "base/err.h"
#include "base/hf.h"

enum hf_ipc_type {
	HF_IPC_READY = 1,    /* child: serves now; keeper: a = boot */
	HF_IPC_DRAIN = 2,    /* master: finish what you have, then exit */
	HF_IPC_STOP = 3,     /* master: exit in order, but now */
	HF_IPC_REAP = 4,     /* master to keeper: {slot, inc} is dead;
			      * inc 0: all who are not alive */
	HF_IPC_REAPED = 5,   /* keeper: {slot, inc} is settled; a = turns */
	HF_IPC_CONFIG = 6,   /* master: a = log level, b = generation; the
			      * memfd of its text comes with it */
	HF_IPC_RELOAD = 7,   /* keeper: read the configuration again; a =
			      * number of the request, rising */
	HF_IPC_RELOADED = 8, /* master: a = 0 or HF_E*, text: why not; b =
			      * the newest request that this answers */
	HF_IPC_END = 9,	     /* keeper: drain and stop, as on TERM */
	/* Slots of the hold (base/hold.h): slot, a = epoch. */
	HF_IPC_HELD = 10,     /* worker: a connection, which comes with it */
	HF_IPC_RELEASED = 11, /* worker: that one has ended */
	HF_IPC_ADOPT = 12,    /* master: a dead worker's is yours; b = 1:
			       * poisoned */
	HF_IPC_LAST = HF_IPC_ADOPT
};

struct hf_ipc {
	uint32_t magic;
	uint32_t type;
	uint32_t slot;
	uint32_t reserved;
	uint64_t sender; /* incarnation of the sending child */
	uint64_t inc;	 /* incarnation that it is about */
	int64_t a, b;
	char text[240]; /* NUL-terminated; most have none */
};

/* A pair, both ends non-blocking and close-on-exec. */
int hf_ipc_pair(int fd[2], struct hf_error *e) HF_MUST_CHECK;
/* Never blocks; HF_EBUSY when the peer does not read, HF_EUNREACH when it is
 * gone. */
int hf_ipc_send(int fd, const struct hf_ipc *r) HF_MUST_CHECK;
/* The same with a descriptor (-1: none), which stays the caller's. */
int hf_ipc_send_fd(int fd, const struct hf_ipc *r, int pass) HF_MUST_CHECK;
/* 1: a record; 0: end of file; HF_EBUSY: nothing now; HF_EPROTO: something
 * that is not a record (dropped); HF_ESYS.  A descriptor that comes with it
 * is closed. */
int hf_ipc_recv(int fd, struct hf_ipc *r) HF_MUST_CHECK;
/* The same; the descriptor is the caller's (-1: none came). */
int hf_ipc_recv_fd(int fd, struct hf_ipc *r, int *passed) HF_MUST_CHECK;

#endif
