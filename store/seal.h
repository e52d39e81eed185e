/*
 * Sealing of contents: XChaCha20-Poly1305 under a key of the session, which
 * is itself kept wrapped under the master key.  The place of a value (tenant,
 * session, turn, index, column) is authenticated with it, so that a row that
 * was moved or swapped does not open.
 *
 * A struct hf_seal is read by the loop thread and the store thread; the only
 * thing that changes in it is an atomic counter.
 */
#ifndef HF_STORE_SEAL_H
#define HF_STORE_SEAL_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hf.h"
#include "base/id.h"
#include "store/store.h"

#define HF_MASTER_SIZE 32
#define HF_SEAL_NONCE 24
#define HF_SEAL_OVERHEAD (HF_SEAL_NONCE + 16)
#define HF_WRAPPED_SIZE (32 + HF_SEAL_OVERHEAD)
#define HF_PROBE_SIZE (16 + HF_SEAL_OVERHEAD)
#define HF_KEY_HASH_SIZE 32

struct hf_seal {
	uint8_t master[HF_MASTER_SIZE];
	int64_t key_id; /* row of master_key */
	/* Nonces: 16 random bytes per opener, then a counter. */
	uint8_t nonce[16];
	_Atomic uint64_t counter;
};

/* Which column a sealed value belongs to.  Stored: never renumber. */
enum hf_seal_kind {
	HF_SEAL_BODY = 1,
	HF_SEAL_HEARD = 2,
	HF_SEAL_SIDECAR = 3,
	HF_SEAL_PARAMS = 4,
	HF_SEAL_REQUEST = 5,
	HF_SEAL_PART = 6
};

/* What seals the rows of one session. */
struct hf_seal_key {
	struct hf_session_key digest; /* the session's key itself */
	uint8_t seal[32];	      /* derived from it */
	int64_t tenant, session;      /* rows */
};

/* The place of a value within its session. */
struct hf_seal_at {
	enum hf_seal_kind kind;
	int64_t seq; /* of the turn */
	int64_t idx;
};

void hf_seal_init(struct hf_seal *s, const uint8_t master[HF_MASTER_SIZE]);
void hf_seal_clear(struct hf_seal *s);

/* Seal 'plain' into 'out' (reset first); HF_ENOMEM. */
int hf_seal_put(struct hf_seal *s, const struct hf_seal_key *k,
    struct hf_seal_at at, struct hf_str plain,
    struct hf_buf *out) HF_MUST_CHECK;
/* Open 'sealed' into memory of 'a', with a NUL after it.  HF_ECORRUPT when it
 * is not what was sealed at this place, HF_ENOMEM. */
int hf_seal_open(const struct hf_seal_key *k, struct hf_seal_at at,
    struct hf_str sealed, struct hf_arena *a,
    struct hf_str *plain) HF_MUST_CHECK;

/* The key of a session, wrapped under the master key and bound to the
 * session's public id and tenant. */
void hf_seal_wrap(struct hf_seal *s, const struct hf_session_key *k,
    int64_t tenant, const struct hf_id *session, uint8_t out[HF_WRAPPED_SIZE]);
/* Keys that a thread unwrapped lately, each with all that it was unwrapped
 * from, since the same leads to the same.  Never fails. */
struct hf_seal_opened *hf_seal_opened_new(void);
void hf_seal_opened_free(struct hf_seal_opened *o); /* wiped; NULL OK */
/* Fills 'k' (all but .session); HF_ECORRUPT.  'opened' may be NULL. */
int hf_seal_unwrap(const struct hf_seal *s, struct hf_seal_opened *opened,
    struct hf_str wrapped, int64_t key_id, int64_t tenant,
    const struct hf_id *session, struct hf_seal_key *k) HF_MUST_CHECK;
/* Derive .seal from .digest. */
void hf_seal_derive(struct hf_seal_key *k);

/* A value by which a master key is recognized. */
void hf_seal_probe(struct hf_seal *s, uint8_t out[HF_PROBE_SIZE]);
bool hf_seal_probe_ok(const struct hf_seal *s, struct hf_str probe);

/* Keyed hash for recognizing requests and idempotency keys; the tenant and
 * what it is of are part of it. */
void hf_seal_request_hash(
    const struct hf_seal *s, struct hf_str bytes, uint8_t out[HF_DIGEST_SIZE]);

/* Keyed hash of an API key's secret. */
void hf_seal_key_hash(const struct hf_seal *s, struct hf_str secret,
    uint8_t out[HF_KEY_HASH_SIZE]);

#endif
