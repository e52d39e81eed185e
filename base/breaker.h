/*
 * The breaker of a target, in one 64-bit word of shared memory that is moved
 * by compare-and-swap, so that it is the same for all workers and no death
 * leaves it half changed.
 *
 *   CLOSED --failures in a row--> OPEN --open_ms--> PROBED --answers--> RAMP
 *      ^                           ^                  |                  |
 *      |                           +--fails, is lost--+<-----fails-------+
 *      +-------------------------- 'ramp' answers -----------------------+
 *
 * The probe is a lease: it names the slot of its worker, it ends with that
 * worker (hf_breaker_died()) and at the latest when it expires.  In RAMP one
 * call more may be in flight with each answer.  What a call says that began
 * before the state did is not heard.  Any thread of any process.
 */
#ifndef HF_BASE_BREAKER_H
#define HF_BASE_BREAKER_H

#include <stdatomic.h>

#include "base/hf.h"

enum hf_breaker_state {
	HF_BREAKER_CLOSED,
	HF_BREAKER_OPEN,
	HF_BREAKER_PROBED,
	HF_BREAKER_RAMP
};

struct hf_breaker_limits {
	int failures; /* in a row; 0: never opens by itself */
	int open_ms;
	int lease_ms; /* of a probe */
	int ramp;     /* answers until it is closed; 0: the probe's */
};

struct hf_breaker_view {
	enum hf_breaker_state state;
	unsigned n;    /* CLOSED: failures; RAMP: answers */
	unsigned slot; /* PROBED: whose probe */
	int64_t at_us; /* OPEN, PROBED: until; RAMP, CLOSED: since */
};

/* How a call ended.  NEUTRAL says nothing about the target's health: rate
 * limits, clients that left. */
enum hf_health { HF_HEALTH_ANSWERED, HF_HEALTH_FAILED, HF_HEALTH_NEUTRAL };

/* What a call that was let through has to remember. */
struct hf_breaker_pass {
	bool probe;
	uint64_t word; /* the lease */
	int64_t begun_us;
};

struct hf_breaker_view hf_breaker_view(const _Atomic uint64_t *b);
/* When it lets the next call through: 0, now; INT64_MAX: that depends on
 * calls under way.  'in_flight' without the one that asks. */
int64_t hf_breaker_opens_us(
    const _Atomic uint64_t *b, int64_t in_flight, int64_t now_us);
/* May this call be made?  'in_flight' with it.  'forced': nobody else can be
 * asked; then an open one is probed before its time. */
bool hf_breaker_take(_Atomic uint64_t *b, const struct hf_breaker_limits *l,
    unsigned slot, int64_t in_flight, bool forced, int64_t now_us,
    struct hf_breaker_pass *pass);
/* At the end of that call; an answer that has begun may be told before. */
void hf_breaker_tell(_Atomic uint64_t *b, const struct hf_breaker_limits *l,
    const struct hf_breaker_pass *pass, enum hf_health v, int64_t now_us);
/* It failed, as too many did: CLOSED becomes OPEN. */
void hf_breaker_open(_Atomic uint64_t *b, const struct hf_breaker_limits *l,
    const struct hf_breaker_pass *pass, int64_t now_us);
/* The worker of 'slot' is dead: so is its probe. */
void hf_breaker_died(_Atomic uint64_t *b, unsigned slot, int64_t now_us);
/* By hand. */
void hf_breaker_trip(_Atomic uint64_t *b, int64_t until_us);
void hf_breaker_reset(_Atomic uint64_t *b, int64_t now_us);
/* As it was before a restart; not PROBED. */
void hf_breaker_put(_Atomic uint64_t *b, const struct hf_breaker_view *v);
const char *hf_breaker_name(enum hf_breaker_state s);

#endif
