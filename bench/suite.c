/*
 * What all suites share: the table of them, look-ups, canaries.
 */
#include <config.h>

#include "bench/suite.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/format.h"
#include "bench/resume.h"
#include "bench/rng.h"

const struct hf_suite_kind hf_suite_kinds[] = {
	{ "paper",
	    "150 conversations of 7, 9 or 11 messages, five kinds of "
	    "facts, the first target fails on the probe",
	    hf_suite_paper, 5, false },
	{ "midstream",
	    "864 streams that break off: nine places, six ways, four kinds of "
	    "next target, both dialects on both sides",
	    hf_suite_midstream, 1, true },
	{ "rolling",
	    "144 conversations in which target after target dies, in one turn "
	    "and over turns, and comes back",
	    hf_suite_rolling, 1, true },
	{ "updates",
	    "160 conversations in which a fact is corrected, once or twice, or "
	    "taken back, while providers fail",
	    hf_suite_updates, 1, true },
	{ "carriers",
	    "120 conversations whose fact is in the system message, in a "
	    "tool's result, or was said by the assistant",
	    hf_suite_carriers, 1, true },
	{ "oblique",
	    "120 conversations whose probe shares no word with the fact: by "
	    "description, pronoun, order, ellipsis, negation, date",
	    hf_suite_oblique, 1, true },
	{ "crowd",
	    "500 conversations at once, of the same words, with names that "
	    "differ in one letter",
	    hf_suite_crowd, 1, true },
	{ "retries",
	    "120 conversations with turns that are asked for again, twice at "
	    "once, or with growing text",
	    hf_suite_retries, 1, true },
	{ "bargein",
	    "60 callers who interrupt a long answer, and ask what was said",
	    hf_suite_bargein, 1, true },
	{ "failback",
	    "120 conversations whose first provider comes back and must know "
	    "what was said while it was away",
	    hf_suite_failback, 1, true },
	{ "kill",
	    "96 conversations in which a worker, the master or all processes "
	    "are killed, at 16 moments of a turn",
	    hf_suite_kill, 1, true },
	{ "ivr",
	    "96 telephone calls by script (booking, billing, outage, refill), "
	    "with tools, silence, interruptions and kills",
	    hf_suite_ivr, 1, true },
	{ "storm",
	    "100 conversations that fail over at once onto a provider that "
	    "admits 15 calls in any 3 s",
	    NULL, 1, true, hf_suite_storm, hf_storm_knobs, HF_STORM_KNOBS },
	{ "window",
	    "108 conversations that outgrow the next target's window of 1 to "
	    "32 thousand tokens",
	    hf_suite_window, 1, true },
};
const unsigned hf_n_suite_kinds = hf_countof(hf_suite_kinds);

const struct hf_suite_kind *
hf_suite_kind(const char *name)
{
	for (unsigned i = 0; i < hf_n_suite_kinds; i++)
		if (strcmp(hf_suite_kinds[i].name, name) == 0)
			return &hf_suite_kinds[i];
	return NULL;
}

struct hf_suite *
hf_suite_make(const char *name, uint64_t seed, unsigned size)
{
	struct hf_error e;

	return hf_suite_make_with(name, seed, size, NULL, false, &e);
}

static void
conv_free(struct hf_conv *c)
{
	free(c->fact);
	free(c->system);
	for (unsigned k = 0; k < c->n_more; k++)
		free(c->more[k]);
	for (unsigned k = 0; k < c->n_user; k++) {
		free(c->user[k]);
		free(c->exact[k]);
		json_decref(c->calls[k]);
	}
	free(c->fault);
}

void
hf_suite_free(struct hf_suite *s)
{
	if (s == NULL)
		return;
	for (unsigned i = 0; i < s->n_conv; i++)
		conv_free(&s->conv[i]);
	free(s->conv);
	free(s->route);
	if (s->lore != NULL) {
		json_decref(s->lore->reply);
		json_decref(s->lore->fact);
		free(s->lore);
	}
	json_decref(s->source);
	free(s);
}

/* --- look-ups ------------------------------------------------------------- */

const struct hf_conv *
hf_suite_find(const struct hf_suite *s, struct hf_str id)
{
	for (unsigned i = 0; i < s->n_conv; i++)
		if (hf_str_is(id, s->conv[i].id))
			return &s->conv[i];
	return NULL;
}

static int
find_turn(const struct hf_conv *c, struct hf_str text, bool tool)
{
	for (unsigned i = 0; i < c->n_user; i++)
		if (c->tool[i] == tool && hf_str_is(text, c->user[i]))
			return (int)i;
	return -1;
}

int
hf_conv_turn(const struct hf_conv *c, struct hf_str text)
{
	return find_turn(c, text, false);
}

bool
hf_conv_grows(const struct hf_conv *c, unsigned turn, struct hf_str text)
{
	return c->manner[turn] == HF_GROWING && text.size > 0 &&
	    text.size < strlen(c->user[turn]) &&
	    memcmp(c->user[turn], text.p, text.size) == 0;
}

int
hf_conv_view_turn(const struct hf_conv *c, json_t *view)
{
	size_t n = hf_view_asked(view).n;
	json_t *m = json_array_get(view, n == 0 ? 0 : n - 1);
	struct hf_str role = hf_json_str(json_object_get(m, "role"));

	if (!hf_str_is(role, "user") && !hf_str_is(role, "tool"))
		return -1;
	return find_turn(c, hf_json_str(json_object_get(m, "text")),
	    hf_str_is(role, "tool"));
}

int
hf_suite_listener(const struct hf_suite *s, struct hf_str name)
{
	for (unsigned i = 0; i < s->n_listener; i++)
		if (hf_str_is(name, s->listener[i].name))
			return (int)i;
	return -1;
}

/* --- failures ------------------------------------------------------------- */

struct hf_conv_fault *
hf_conv_add_fault(struct hf_conv *c, const char *provider, unsigned turn,
    enum hf_fault_kind kind)
{
	struct hf_conv_fault *f;

	f = reallocarray(c->fault, c->n_fault + 1, sizeof(*f));
	HF_CHECK(f != NULL);
	c->fault = f;
	f = &c->fault[c->n_fault++];
	*f = (struct hf_conv_fault){ .provider = provider, .turn = turn };
	f->fault.kind = kind;
	if (kind == HF_FAULT_HTTP_429)
		f->fault.retry_after_s = 1;
	return f;
}

bool
hf_conv_is_to_fail(const struct hf_conv *c, unsigned turn)
{
	for (unsigned i = 0; i < c->n_fault; i++)
		if (c->fault[i].turn == turn)
			return true;
	return false;
}

/* The provider tells when it is there, and is right otherwise. */
static void
add_alarm(struct hf_manifest *m, const struct hf_conv *c)
{
	const struct hf_kill_plan *k = &c->kill;
	struct hf_fault_row row = { .turn = (int)k->turn,
		.attempt = 1,
		.fault = {
		    .kind = HF_FAULT_ALARM, .phase = k->phase, .at = k->at } };

	if (k->victim == HF_KILL_NOBODY || k->moment != HF_AT_PROVIDER)
		return;
	snprintf(row.conversation, sizeof(row.conversation), "%s", c->id);
	hf_manifest_add(m, &row);
}

void
hf_suite_manifest(const struct hf_suite *s, struct hf_manifest *m)
{
	for (unsigned i = 0; i < s->n_conv; i++) {
		const struct hf_conv *c = &s->conv[i];

		for (unsigned k = 0; k < c->n_fault; k++) {
			const struct hf_conv_fault *f = &c->fault[k];
			struct hf_fault_row row = { .turn = (int)f->turn,
				.attempt = (int)f->attempt,
				.fault = f->fault };

			snprintf(row.provider, sizeof(row.provider), "%s",
			    f->provider);
			snprintf(row.conversation, sizeof(row.conversation),
			    "%s", c->id);
			hf_manifest_add(m, &row);
		}
		add_alarm(m, c);
	}
	if (s->limit.fault.kind != HF_FAULT_NONE)
		hf_manifest_add(m, &s->limit);
}

const char *
hf_failure_name(enum hf_fault_kind k)
{
	if (k == HF_FAULT_SILENCE)
		return "timeout";
	if (k == HF_FAULT_HTTP_502)
		return "api_error";
	if (k == HF_FAULT_HTTP_429)
		return "rate_limit";
	return hf_fault_name(k);
}

/* --- marks of a play ------------------------------------------------------ */

void
hf_suite_canary(const struct hf_suite *s, unsigned system, unsigned run,
    unsigned conv, char out[HF_CANARY_SIZE])
{
	static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	/* The mixing function is a bijection: equal canaries would need equal
	 * inputs, or equal low 60 bits of 64. */
	uint64_t h = hf_rng_mix(hf_rng_mix(s->seed + 1) ^
	    ((uint64_t)system << 48 | (uint64_t)run << 24 | conv));

	memcpy(out, HF_CANARY_START, 3);
	for (unsigned i = 3; i < HF_CANARY_SIZE - 1; i++, h >>= 5)
		out[i] = alphabet[h & 31];
	out[HF_CANARY_SIZE - 1] = '\0';
}

char *
hf_suite_system(const struct hf_conv *c, const char *canary)
{
	return hf_format("You answer the telephone of Larkfield Services. The "
			 "file of this call is %s. Keep answers short.%s%s",
	    canary, c->system == NULL ? "" : " ",
	    c->system == NULL ? "" : c->system);
}
