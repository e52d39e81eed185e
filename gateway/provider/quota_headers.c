/*
 * What the headers of a response say of a target's limits.
 */
#include <config.h>

#include "gateway/provider/provider.h"

#include "gateway/provider/headers.h"
#include "gateway/provider/hint.h"

#define MOST ((int64_t)1000000000)

/* What is counted, and where it is said.  The first that is there counts. */
struct names {
	const char *limit, *left, *reset;
	bool date; /* reset is RFC 3339; else a duration */
};

static const struct names calls[] = {
	{ "x-ratelimit-limit-requests", "x-ratelimit-remaining-requests",
	    "x-ratelimit-reset-requests", false },
	{ "anthropic-ratelimit-requests-limit",
	    "anthropic-ratelimit-requests-remaining",
	    "anthropic-ratelimit-requests-reset", true },
};
static const struct names tokens[] = {
	{ "x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens",
	    "x-ratelimit-reset-tokens", false },
	{ "anthropic-ratelimit-tokens-limit",
	    "anthropic-ratelimit-tokens-remaining",
	    "anthropic-ratelimit-tokens-reset", true },
};

/* A whole number; -1: none. */
static int64_t
number(struct hf_str headers, const char *name)
{
	struct hf_str v = hf_header_find(headers, name);
	int64_t n = 0;

	if (v.p == NULL || v.size == 0)
		return -1;
	for (size_t i = 0; i < v.size; i++) {
		if (v.p[i] < '0' || v.p[i] > '9')
			return -1;
		if (n < MOST)
			n = n * 10 + (v.p[i] - '0');
	}
	return n < MOST ? n : MOST;
}

static int64_t
reset_ms(struct hf_str headers, const struct names *n, int64_t wall_us)
{
	struct hf_str v = hf_header_find(headers, n->reset);

	if (v.p == NULL)
		return -1;
	return n->date ? hf_hint_rfc3339(v, wall_us) : hf_hint_duration(v);
}

static void
read_limit(struct hf_str headers, const struct names n[2], int64_t wall_us,
    struct hf_quota_count *c)
{
	*c = (struct hf_quota_count){ -1, -1, -1 };
	for (unsigned i = 0; i < 2 && c->limit < 0; i++) {
		c->limit = number(headers, n[i].limit);
		c->left = number(headers, n[i].left);
		c->reset_ms = reset_ms(headers, &n[i], wall_us);
	}
}

void
hf_quota_headers(
    struct hf_str headers, int64_t wall_us, struct hf_quota_said *said)
{
	if (!hf_header_begins(headers, "x-ratelimit-") &&
	    !hf_header_begins(headers, "anthropic-ratelimit-"))
		headers = HF_STR_NONE; /* most do not say */
	read_limit(headers, calls, wall_us, &said->calls);
	read_limit(headers, tokens, wall_us, &said->tokens);
}
