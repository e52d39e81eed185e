/*
 * Questions and answers of the campaign.
 */
#include <config.h>

#include "tests/crash/campaign.h"

#include <stdio.h>
#include <stdlib.h>

void
campaign_ask_print(const struct campaign_ask *a, char *out, size_t size)
{
	snprintf(out, size, "say %s %u %u", a->id, a->words, a->pace_ms);
}

bool
campaign_ask_parse(struct hf_str text, struct campaign_ask *a)
{
	char z[CAMPAIGN_ID + 64];
	int end = 0;

	if (text.size >= sizeof(z))
		return false;
	snprintf(z, sizeof(z), "%.*s", (int)text.size, text.p);
	return sscanf(z, "say %31[c.t0-9] %u %u%n", a->id, &a->words,
		   &a->pace_ms, &end) == 3 &&
	    (size_t)end == text.size;
}

void
campaign_answer(const struct campaign_ask *a, struct hf_buf *out)
{
	for (unsigned i = 0; i < a->words; i++)
		hf_buf_printf(out, "%s%s.%u", i > 0 ? " " : "", a->id, i);
}

bool
campaign_id_parse(const char *id, unsigned long *conn, unsigned *turn)
{
	int end = 0;

	return sscanf(id, "c%lu.t%u%n", conn, turn, &end) == 2 &&
	    id[end] == '\0';
}
