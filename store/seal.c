/*
 * Sealing, wrapping and digests.  Every use of a key has a purpose text of
 * its own in the hash (BLAKE2b "personal"), so that no two can be confused.
 */
#include <config.h>

#include "store/seal.h"

#include <sodium.h>
#include <stdlib.h>

#include "base/check.h"

_Static_assert(HF_SEAL_OVERHEAD ==
	crypto_aead_xchacha20poly1305_ietf_NPUBBYTES +
	    crypto_aead_xchacha20poly1305_ietf_ABYTES,
    "overhead of sealing");
_Static_assert(HF_SEAL_NONCE == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
    "nonce size");
_Static_assert(crypto_generichash_blake2b_PERSONALBYTES == 16, "purpose");

/* Exactly 16 bytes each.  Stored results depend on them: never change. */
static const uint8_t for_digest[16] = "holdfast digest";
static const uint8_t for_chain[16] = "holdfast chain";
static const uint8_t for_seal[16] = "holdfast seal";
static const uint8_t for_api_key[16] = "holdfast api key";
static const uint8_t for_request[16] = "holdfast request";

static const uint8_t no_salt[crypto_generichash_blake2b_SALTBYTES];

static void
keyed_hash(const uint8_t key[32], const uint8_t purpose[16], const void *p,
    size_t size, uint8_t out[32])
{
	HF_CHECK(crypto_generichash_blake2b_salt_personal(
		     out, 32, p, size, key, 32, no_salt, purpose) == 0);
}

void
hf_store_digest(const struct hf_session_key *k, struct hf_str norm,
    uint8_t out[HF_DIGEST_SIZE])
{
	keyed_hash(k->k, for_digest, norm.p, norm.size, out);
}

void
hf_store_chain(const struct hf_session_key *k,
    const uint8_t prev[HF_DIGEST_SIZE], const uint8_t digest[HF_DIGEST_SIZE],
    uint8_t out[HF_DIGEST_SIZE])
{
	uint8_t both[2 * HF_DIGEST_SIZE];

	memcpy(both, prev, HF_DIGEST_SIZE);
	memcpy(both + HF_DIGEST_SIZE, digest, HF_DIGEST_SIZE);
	keyed_hash(k->k, for_chain, both, sizeof(both), out);
}

void
hf_store_new_session_key(struct hf_session_key *k)
{
	randombytes_buf(k->k, sizeof(k->k));
}

void
hf_seal_init(struct hf_seal *s, const uint8_t master[HF_MASTER_SIZE])
{
	memset(s, 0, sizeof(*s));
	memcpy(s->master, master, HF_MASTER_SIZE);
	randombytes_buf(s->nonce, sizeof(s->nonce));
}

void
hf_seal_clear(struct hf_seal *s)
{
	sodium_memzero(s->master, sizeof(s->master));
}

static void
make_nonce(struct hf_seal *s, uint8_t out[HF_SEAL_NONCE])
{
	uint64_t n =
	    atomic_fetch_add_explicit(&s->counter, 1, memory_order_relaxed);

	memcpy(out, s->nonce, 16);
	memcpy(out + 16, &n, 8);
}

static void
put64(uint8_t *to, int64_t n)
{
	uint64_t v = (uint64_t)n;

	for (int i = 0; i < 8; i++)
		to[i] = (uint8_t)(v >> (8 * i) & 0xff);
}

#define AD_SIZE (1 + 4 * 8)

static void
make_ad(const struct hf_seal_key *k, struct hf_seal_at at, uint8_t ad[AD_SIZE])
{
	ad[0] = (uint8_t)at.kind;
	put64(ad + 1, k->tenant);
	put64(ad + 9, k->session);
	put64(ad + 17, at.seq);
	put64(ad + 25, at.idx);
}

int
hf_seal_put(struct hf_seal *s, const struct hf_seal_key *k,
    struct hf_seal_at at, struct hf_str plain, struct hf_buf *out)
{
	uint8_t ad[AD_SIZE];
	uint8_t *to;

	hf_buf_reset(out);
	to = (uint8_t *)hf_buf_reserve(out, plain.size + HF_SEAL_OVERHEAD);
	if (to == NULL)
		return HF_ENOMEM;
	make_nonce(s, to);
	make_ad(k, at, ad);
	crypto_aead_xchacha20poly1305_ietf_encrypt(to + HF_SEAL_NONCE, NULL,
	    (const uint8_t *)plain.p, plain.size, ad, sizeof(ad), NULL, to,
	    k->seal);
	return 0;
}

int
hf_seal_open(const struct hf_seal_key *k, struct hf_seal_at at,
    struct hf_str sealed, struct hf_arena *a, struct hf_str *plain)
{
	const uint8_t *from = (const uint8_t *)sealed.p;
	uint8_t ad[AD_SIZE];
	char *to;

	*plain = HF_STR_NONE;
	if (sealed.size < HF_SEAL_OVERHEAD)
		return HF_ECORRUPT;
	to = hf_arena_bytes(a, sealed.size - HF_SEAL_OVERHEAD + 1);
	if (to == NULL)
		return HF_ENOMEM;
	to[sealed.size - HF_SEAL_OVERHEAD] = '\0';
	make_ad(k, at, ad);
	if (crypto_aead_xchacha20poly1305_ietf_decrypt((uint8_t *)to, NULL,
		NULL, from + HF_SEAL_NONCE, sealed.size - HF_SEAL_NONCE, ad,
		sizeof(ad), from, k->seal) != 0)
		return HF_ECORRUPT;
	*plain = (struct hf_str){ to, sealed.size - HF_SEAL_OVERHEAD };
	return 0;
}

void
hf_seal_derive(struct hf_seal_key *k)
{
	keyed_hash(k->digest.k, for_seal, NULL, 0, k->seal);
}

#define WRAP_AD_SIZE (1 + 8 + HF_ID_SIZE)

static void
make_wrap_ad(
    int64_t tenant, const struct hf_id *session, uint8_t ad[WRAP_AD_SIZE])
{
	ad[0] = 'W';
	put64(ad + 1, tenant);
	memcpy(ad + 9, session->s, HF_ID_SIZE);
}

void
hf_seal_wrap(struct hf_seal *s, const struct hf_session_key *k, int64_t tenant,
    const struct hf_id *session, uint8_t out[HF_WRAPPED_SIZE])
{
	uint8_t ad[WRAP_AD_SIZE];

	make_wrap_ad(tenant, session, ad);
	make_nonce(s, out);
	crypto_aead_xchacha20poly1305_ietf_encrypt(out + HF_SEAL_NONCE, NULL,
	    k->k, sizeof(k->k), ad, sizeof(ad), NULL, out, s->master);
}

static int
unwrap(const struct hf_seal *s, const uint8_t from[HF_WRAPPED_SIZE],
    int64_t tenant, const struct hf_id *session, struct hf_seal_key *k)
{
	uint8_t ad[WRAP_AD_SIZE];

	make_wrap_ad(tenant, session, ad);
	if (crypto_aead_xchacha20poly1305_ietf_decrypt(k->digest.k, NULL, NULL,
		from + HF_SEAL_NONCE, HF_WRAPPED_SIZE - HF_SEAL_NONCE, ad,
		sizeof(ad), from, s->master) != 0)
		return HF_ECORRUPT;
	k->tenant = tenant;
	hf_seal_derive(k);
	return 0;
}

/* --- keys unwrapped lately ----------------------------------------------- */

#define OPENED_MAX 256

struct opened {
	bool used;
	uint8_t wrapped[HF_WRAPPED_SIZE];
	struct hf_id session;
	int64_t tenant;
	struct hf_seal_key key;
};

struct hf_seal_opened {
	struct opened slot[OPENED_MAX];
};

struct hf_seal_opened *
hf_seal_opened_new(void)
{
	return hf_xcalloc(1, sizeof(struct hf_seal_opened));
}

void
hf_seal_opened_free(struct hf_seal_opened *o)
{
	if (o != NULL)
		sodium_memzero(o, sizeof(*o));
	free(o);
}

static bool
is_opened(const struct opened *o, const uint8_t wrapped[HF_WRAPPED_SIZE],
    int64_t tenant, const struct hf_id *session)
{
	return o->used && o->tenant == tenant &&
	    memcmp(o->wrapped, wrapped, HF_WRAPPED_SIZE) == 0 &&
	    memcmp(&o->session, session, sizeof(*session)) == 0;
}

int
hf_seal_unwrap(const struct hf_seal *s, struct hf_seal_opened *opened,
    struct hf_str wrapped, int64_t key_id, int64_t tenant,
    const struct hf_id *session, struct hf_seal_key *k)
{
	const uint8_t *from = (const uint8_t *)wrapped.p;
	struct opened *o;
	int rc;

	if (wrapped.size != HF_WRAPPED_SIZE || key_id != s->key_id)
		return HF_ECORRUPT;
	if (opened == NULL)
		return unwrap(s, from, tenant, session, k);
	/* Ciphertext is as good as a hash. */
	o = &opened->slot[from[HF_SEAL_NONCE] % OPENED_MAX];
	if (!is_opened(o, from, tenant, session)) {
		rc = unwrap(s, from, tenant, session, k);
		if (rc < 0)
			return rc;
		memcpy(o->wrapped, from, sizeof(o->wrapped));
		o->session = *session;
		o->tenant = tenant;
		o->key = *k;
		o->used = true;
	}
	*k = o->key;
	return 0;
}

static const uint8_t probe_text[16] = "holdfast probe";

void
hf_seal_probe(struct hf_seal *s, uint8_t out[HF_PROBE_SIZE])
{
	make_nonce(s, out);
	crypto_aead_xchacha20poly1305_ietf_encrypt(out + HF_SEAL_NONCE, NULL,
	    probe_text, sizeof(probe_text), (const uint8_t *)"P", 1, NULL, out,
	    s->master);
}

bool
hf_seal_probe_ok(const struct hf_seal *s, struct hf_str probe)
{
	const uint8_t *from = (const uint8_t *)probe.p;
	uint8_t text[sizeof(probe_text)];

	return probe.size == HF_PROBE_SIZE &&
	    crypto_aead_xchacha20poly1305_ietf_decrypt(text, NULL, NULL,
		from + HF_SEAL_NONCE, probe.size - HF_SEAL_NONCE,
		(const uint8_t *)"P", 1, from, s->master) == 0 &&
	    memcmp(text, probe_text, sizeof(text)) == 0;
}

void
hf_seal_request_hash(
    const struct hf_seal *s, struct hf_str bytes, uint8_t out[HF_DIGEST_SIZE])
{
	keyed_hash(s->master, for_request, bytes.p, bytes.size, out);
}

void
hf_seal_key_hash(const struct hf_seal *s, struct hf_str secret,
    uint8_t out[HF_KEY_HASH_SIZE])
{
	keyed_hash(s->master, for_api_key, secret.p, secret.size, out);
}
