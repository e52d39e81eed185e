/*
 * Two parts of one text.
 */
#include <config.h>

#include "gateway/turn/overlap.h"

int
hf_overlap(struct hf_str stored, uint64_t told, struct hf_str last,
    struct hf_buf *out, struct hf_error *e)
{
	uint64_t from, common;

	if (last.size > told)
		return hf_fail(e, HF_ECORRUPT, "%zu bytes are the last of %llu",
		    last.size, (unsigned long long)told);
	from = told - last.size; /* where 'last' begins */
	if (from > stored.size)
		return hf_fail(e, HF_ECORRUPT,
		    "of %llu bytes that were told, %zu are on disk and the "
		    "last %zu are known",
		    (unsigned long long)told, stored.size, last.size);
	common = (told < stored.size ? told : stored.size) - from;
	if (common > 0 && memcmp(stored.p + from, last.p, (size_t)common) != 0)
		return hf_fail(
		    e, HF_ECORRUPT, "what is on disk is not what was told");
	hf_buf_putstr(out, stored);
	last.p += common;
	last.size -= (size_t)common;
	hf_buf_putstr(out, last);
	return 0;
}
