/*
 * API keys as the gateway reads them.
 */
#include <config.h>

#include "store/auth.h"

#include <sodium.h>
#include <stdio.h>

#include "base/clock.h"
#include "store/internal.h"

#define ANY_KEY_US 1000000

int
hf_auth_parse(struct hf_str secret, struct hf_id *public)
{
	size_t prefix = sizeof(HF_SECRET_PREFIX) - 1;

	memset(public, 0, sizeof(*public));
	if (secret.size < prefix + HF_ID_RANDOM + 1 + HF_SECRET_RANDOM ||
	    memcmp(secret.p, HF_SECRET_PREFIX, prefix) != 0 ||
	    secret.p[prefix + HF_ID_RANDOM] != '_')
		return HF_EPERM;
	snprintf(public->s, sizeof(public->s), HF_KEY_PREFIX "%.*s",
	    HF_ID_RANDOM, secret.p + prefix);
	return hf_id_valid(hf_str(public->s), HF_KEY_PREFIX) ? 0 : HF_EPERM;
}

int
hf_store_any_key(struct hf_store *st, bool *any, struct hf_error *e)
{
	struct hf_error local;
	int64_t now = hf_now_us();
	sqlite3_stmt *q;
	int rc;

	e = e == NULL ? &local : e;
	/* What was made stays made, so a yes is for ever. */
	if (!st->any_key &&
	    (st->any_key_us == 0 || now - st->any_key_us >= ANY_KEY_US)) {
		q = hf_db_bind(&st->read, HF_SQL_KEY_ANY, e, "");
		if (q == NULL)
			return e->code;
		rc = hf_db_step(&st->read, q, e);
		if (rc < 0)
			return rc;
		if (rc > 0)
			hf_db_reset(q);
		st->any_key = rc > 0;
		st->any_key_us = now;
	}
	*any = st->any_key;
	return 0;
}

int
hf_store_authenticate(struct hf_store *st, struct hf_str secret, char *tenant,
    size_t size, struct hf_error *e)
{
	uint8_t want[HF_KEY_HASH_SIZE] = { 0 }, got[HF_KEY_HASH_SIZE];
	struct hf_error local;
	struct hf_id public;
	struct hf_str s;
	sqlite3_stmt *q;
	bool ok;
	int rc;

	e = e == NULL ? &local : e;
	if (size > 0)
		tenant[0] = '\0';
	if (hf_auth_parse(secret, &public) < 0)
		return hf_fail(e, HF_EPERM, "API key: unknown");
	q = hf_db_bind(&st->read, HF_SQL_KEY_FIND, e, "z", public.s);
	if (q == NULL)
		return e->code;
	rc = hf_db_step(&st->read, q, e);
	if (rc < 0)
		return rc;
	/* An unknown id costs the same hash and comparison. */
	hf_seal_key_hash(&st->seal, secret, got);
	s = rc > 0 ? hf_db_str(q, 0) : HF_STR_NONE;
	ok = s.size == sizeof(want);
	if (ok)
		memcpy(want, s.p, sizeof(want));
	ok = sodium_memcmp(want, got, sizeof(want)) == 0 && ok &&
	    sqlite3_column_int64(q, 1) == 0;
	if (ok) {
		s = hf_db_str(q, 2);
		ok = s.size < size;
	}
	if (ok) {
		memcpy(tenant, s.p, s.size);
		tenant[s.size] = '\0';
	}
	if (rc > 0)
		hf_db_reset(q);
	return ok ? 0 : hf_fail(e, HF_EPERM, "API key: unknown");
}
