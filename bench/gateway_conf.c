/*
 * Writing the gateway's configuration.
 */
#include <config.h>

#include "bench/gateway_conf.h"

#include "bench/resume.h"

/* What works is not given up because the machine is slow. */
#define PATIENT_MS 10000
#define DEADLINE_MS 30000

static const char *const dialects[] = { "openai", "anthropic" };

static void
put_provider(FILE *f, const struct hf_gateway_conf *c, const struct hf_suite *s,
    unsigned listener, const char *dialect)
{
	const struct hf_listener_plan *l = &s->listener[listener];
	bool openai = strcmp(dialect, "openai") == 0;
	unsigned first_ms = c->first_token_ms > s->first_token_ms ?
	    c->first_token_ms :
	    s->first_token_ms;

	fprintf(f,
	    "provider %s-%s {\n"
	    "\tdialect = \"%s\"\n"
	    "\tbase_url = \"%s%s\"\n"
	    "\tapi_key_env = \"" HF_BENCH_KEY_ENV "\"\n"
	    "\tconnect_ms = 1000\n"
	    /* The first one fails in a row on purpose, and a 429 is meant
	     * for one conversation. */
	    "\tbreaker_failures = 0\n"
	    "\tslow_start = 0\n"
	    "\tfirst_token_ms = %u\n"
	    "\tidle_ms = %u\n"
	    "\ttotal_ms = %u\n",
	    l->name, dialect, dialect, c->url[listener], openai ? "/v1" : "",
	    l->fails ? first_ms : PATIENT_MS,
	    l->fails ? c->idle_ms : PATIENT_MS,
	    l->fails ? PATIENT_MS : 2 * PATIENT_MS);
	if (l->rpm > 0)
		fprintf(f, "\trpm = %u\n\trpm_window_ms = %u\n", l->rpm,
		    l->rpm_window_ms);
	fputs("}\n", f);
}

static void
put_target_name(
    FILE *f, const struct hf_suite *s, const struct hf_target_plan *t)
{
	fprintf(f, "\"%s-%s/%s\"", s->listener[t->listener].name, t->dialect,
	    t->model);
}

static bool
same_target(const struct hf_target_plan *a, const struct hf_target_plan *b)
{
	return a->listener == b->listener &&
	    strcmp(a->dialect, b->dialect) == 0 &&
	    strcmp(a->model, b->model) == 0;
}

/* Has an earlier route this target? */
static bool
known_target(
    const struct hf_suite *s, unsigned route, const struct hf_target_plan *t)
{
	for (unsigned i = 0; i < route; i++)
		for (unsigned k = 0; k < s->route[i].n_target; k++)
			if (same_target(&s->route[i].target[k], t))
				return true;
	return false;
}

static void
put_targets(FILE *f, const struct hf_suite *s)
{
	for (unsigned i = 0; i < s->n_route; i++) {
		for (unsigned k = 0; k < s->route[i].n_target; k++) {
			const struct hf_target_plan *t = &s->route[i].target[k];

			if ((!t->prefill && t->window == 0 &&
				t->max_output == 0) ||
			    known_target(s, i, t))
				continue;
			fputs("target ", f);
			put_target_name(f, s, t);
			fputs(" {\n", f);
			if (t->prefill)
				fputs("\tprefill = \"plain\"\n", f);
			if (t->window > 0)
				fprintf(
				    f, "\tcontext_window = %u\n", t->window);
			if (t->max_output > 0)
				fprintf(f, "\tmax_output_tokens = %u\n",
				    t->max_output);
			fputs("}\n", f);
		}
	}
}

static void
put_route(FILE *f, const struct hf_suite *s, const struct hf_route_plan *r,
    const char *system, const char *payload)
{
	fprintf(f, "route %s%s%s {\n\ttargets = {", system,
	    r->name[0] != '\0' ? "-" : "", r->name);
	for (unsigned k = 0; k < r->n_target; k++) {
		if (k > 0)
			fputs(", ", f);
		put_target_name(f, s, &r->target[k]);
	}
	fprintf(f, "}\n\tdeadline_ms = %u\n",
	    s->deadline_ms > 0 ? s->deadline_ms : DEADLINE_MS);
	if (s->backoff_ms > 0)
		fprintf(f, "\tbackoff_unit_ms = %u\n", s->backoff_ms);
	if (r->continuation != NULL)
		fprintf(f,
		    "\tcontinuation = \"%s\"\n"
		    "\tcontinuation_text = \"" HF_CONTINUE "\"\n",
		    r->continuation);
	fprintf(f, "\tfailover_payload = \"%s\"\n}\n", payload);
}

void
hf_gateway_conf_write(
    FILE *f, const struct hf_gateway_conf *c, const struct hf_suite *s)
{
	fprintf(f,
	    "# written by continuitybench: the two systems differ in one key\n"
	    "gateway {\n"
	    "\tlisten = {\"127.0.0.1:%u\"}\n"
	    "\tdatabase = \"%s/holdfast.db\"\n"
	    "\tcontrol = \"%s/control.sock\"\n"
	    "\tworkers = %u\n"
	    "%s"
	    "}\n",
	    c->port, c->dir, c->dir, c->workers,
	    /* Parts of short answers are written too. */
	    s->kills ? "\tflush_ms = 20\n" : "");
	for (unsigned i = 0; i < s->n_listener; i++)
		for (unsigned k = 0; k < hf_countof(dialects); k++)
			put_provider(f, c, s, i, dialects[k]);
	put_targets(f, s);
	for (unsigned i = 0; i < s->n_route; i++) {
		put_route(f, s, &s->route[i], "holdfast", "full");
		put_route(f, s, &s->route[i], "baseline", "last_user_message");
	}
}
