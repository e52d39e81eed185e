/*
 * Random identifiers in Crockford's base32, lowercase.
 */
#include <config.h>

#include "base/id.h"

#include <sodium.h>

#include "base/check.h"

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

void
hf_id_make(struct hf_id *id, const char *prefix)
{
	/* One call of the system for many; no process forks with these. */
	static _Thread_local unsigned char pool[HF_ID_RANDOM * 32];
	static _Thread_local size_t left;
	unsigned char *raw;
	size_t n = strlen(prefix);

	HF_CHECK(n + HF_ID_RANDOM < HF_ID_SIZE);
	memset(id, 0, sizeof(*id));
	memcpy(id->s, prefix, n);
	if (left < HF_ID_RANDOM) {
		randombytes_buf(pool, sizeof(pool));
		left = sizeof(pool);
	}
	left -= HF_ID_RANDOM;
	raw = pool + left;
	for (size_t i = 0; i < HF_ID_RANDOM; i++)
		id->s[n + i] = alphabet[raw[i] & 31];
	sodium_memzero(raw, HF_ID_RANDOM); /* some become secrets */
}

const char *
hf_id_random_part(const struct hf_id *id)
{
	size_t n = strlen(id->s);

	HF_CHECK(n >= HF_ID_RANDOM);
	return id->s + n - HF_ID_RANDOM;
}

bool
hf_id_valid(struct hf_str s, const char *prefix)
{
	size_t n = strlen(prefix);

	if (s.size != n + HF_ID_RANDOM || memcmp(s.p, prefix, n) != 0)
		return false;
	for (size_t i = n; i < s.size; i++)
		if (s.p[i] == '\0' || strchr(alphabet, s.p[i]) == NULL)
			return false;
	return true;
}
