/*
 * What all suites share: the table of them, look-ups, canaries.
 */
#include <config.h>

#include "bench/suite.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/rng.h"

const struct hf_suite_kind hf_suite_kinds[] = {
	{ "paper",
	    "150 conversations of 7, 9 or 11 messages, five kinds of "
	    "facts, the first target fails on the probe",
	    hf_suite_paper },
};
const unsigned hf_n_suite_kinds = hf_countof(hf_suite_kinds);

struct hf_suite *
hf_suite_make(const char *name, uint64_t seed)
{
	for (unsigned i = 0; i < hf_n_suite_kinds; i++)
		if (strcmp(hf_suite_kinds[i].name, name) == 0)
			return hf_suite_kinds[i].make(seed);
	return NULL;
}

void
hf_suite_free(struct hf_suite *s)
{
	if (s == NULL)
		return;
	for (unsigned i = 0; i < s->n_conv; i++) {
		free(s->conv[i].fact);
		for (unsigned j = 0; j < s->conv[i].n_user; j++)
			free(s->conv[i].user[j]);
	}
	free(s->conv);
	if (s->lore != NULL) {
		json_decref(s->lore->reply);
		json_decref(s->lore->fact);
		free(s->lore);
	}
	json_decref(s->source);
	free(s);
}

const struct hf_conv *
hf_suite_find(const struct hf_suite *s, struct hf_str id)
{
	for (unsigned i = 0; i < s->n_conv; i++)
		if (hf_str_is(id, s->conv[i].id))
			return &s->conv[i];
	return NULL;
}

int
hf_conv_turn(const struct hf_conv *c, struct hf_str text)
{
	for (unsigned i = 0; i < c->n_user; i++)
		if (hf_str_is(text, c->user[i]))
			return (int)i;
	return -1;
}

void
hf_suite_manifest(const struct hf_suite *s, struct hf_manifest *m)
{
	for (unsigned i = 0; i < s->n_conv; i++) {
		const struct hf_conv *c = &s->conv[i];
		struct hf_fault_row row = { .turn = (int)c->n_user - 1 };

		snprintf(row.provider, sizeof(row.provider), "primary");
		snprintf(
		    row.conversation, sizeof(row.conversation), "%s", c->id);
		row.fault.kind = c->failure;
		if (c->failure == HF_FAULT_HTTP_429)
			row.fault.retry_after_s = 1;
		hf_manifest_add(m, &row);
	}
}

void
hf_suite_canary(const struct hf_suite *s, unsigned system, unsigned run,
    unsigned conv, char out[HF_CANARY_SIZE])
{
	static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	/* The mixing function is a bijection: equal canaries would need equal
	 * inputs, or equal low 60 bits of 64. */
	uint64_t h = hf_rng_mix(hf_rng_mix(s->seed + 1) ^
	    ((uint64_t)system << 48 | (uint64_t)run << 24 | conv));

	memcpy(out, "CB-", 3);
	for (unsigned i = 3; i < HF_CANARY_SIZE - 1; i++, h >>= 5)
		out[i] = alphabet[h & 31];
	out[HF_CANARY_SIZE - 1] = '\0';
}

char *
hf_suite_system(const char *canary)
{
	char *text = NULL;

	HF_CHECK(
	    asprintf(&text,
		"You answer the telephone of Larkfield "
		"Services. The file of this call is %s. Keep answers short.",
		canary) > 0);
	return text;
}
