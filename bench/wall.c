/*
 * Verdicts on the fault wall, from what its clients got and its providers were
 * asked.
 */
#include <config.h>

#include "bench/wall.h"

#include <stdlib.h>

#include "base/check.h"
#include "bench/answer.h"
#include "bench/format.h"

#define SLACK_S 1.0 /* for a machine that others use too */

enum verdict { PASS, PARTIAL, SAFE, FAIL };
static const char *const verdicts[] = { "pass", "partial", "safe", "fail" };

/* What a scenario asks for. */
static const struct scenario {
	const char *name;
	double within;	/* of its seconds, for the whole answer, */
	double budget;	/* ... and for any end */
	unsigned calls; /* of the first provider, at most */
	bool alone;	/* also met with nobody to fall back on */
	bool refused;	/* no answer is to come */
} scenarios[HF_WALL_SCENARIOS] = {
	{ "429 with the time to wait, once", 3, 30, 2, true, false },
	{ "429 without, for good", 7, 30, 3, true, false },
	{ "500 once", 3, 30, 2, true, false },
	{ "503 for good", 7, 30, 3, true, false },
	{ "reset before headers, once", 3, 30, 2, true, false },
	{ "no response at all", 35, 100, 1, false, false },
	{ "headers at once, first token after 20 s", 15, 60, 1, false, false },
	{ "cut after 40 of 60 words", 5, 30, 1, true, false },
	{ "silence after 20 words", 45, 60, 1, false, false },
	{ "the tenth event is no JSON", 5, 30, 1, false, false },
	{ "no [DONE]", 8, 30, 1, false, false },
	{ "the context is too long", 3, 30, 1, true, false },
	{ "against the provider's policy", 3, 30, 1, true, true },
	{ "cut, and the fallback takes no prefill", 5, 30, 1, false, false },
	{ "down for a minute, twenty calls", 7, 30, 3, false, false },
	{ "who answered is told", 7, 30, 3, false, false },
};

/* What the providers saw of one play. */
struct seen {
	unsigned calls, fallbacks;
	bool served;   /* by the first, without a failure */
	double gap_ms; /* between its first two calls */
	int64_t first_us;
	char model[64]; /* that answered */
};

struct found {
	enum verdict verdict;
	const char *why;
};

bool
hf_wall_is_met_alone(unsigned n)
{
	return scenarios[n].alone;
}

/* --- what providers saw --------------------------------------------------- */

static void
see(struct seen *s, json_t *entry)
{
	bool wall =
	    hf_str_is(hf_json_str(json_object_get(entry, "provider")), "wall");
	int64_t at = json_integer_value(json_object_get(entry, "t_us"));
	struct hf_str model = hf_json_str(json_object_get(entry, "model"));

	if (json_object_get(entry, "refused") != NULL)
		return;
	if (json_is_string(json_object_get(entry, "answer")))
		snprintf(s->model, sizeof(s->model), "%.*s", HF_STR_ARG(model));
	if (!wall) {
		s->fallbacks++;
		return;
	}
	s->calls++;
	s->served |= json_is_string(json_object_get(entry, "answer"));
	if (s->calls == 1)
		s->first_us = at;
	else if (s->calls == 2)
		s->gap_ms = (double)(at - s->first_us) / 1000;
}

static int
read_log(struct seen *seen, const struct hf_plays *plays, const char *path,
    struct hf_error *e)
{
	json_t *index = json_object();
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	for (unsigned i = 0; i < plays->n_play; i++)
		json_object_set_new(
		    index, plays->play[i].user, json_integer(i));
	if (f == NULL) {
		json_decref(index);
		return hf_fail_errno(e, "%s", path);
	}
	while (getline(&line, &size, f) > 0) {
		json_t *entry = json_loads(line, JSON_ALLOW_NUL, NULL);
		const char *user =
		    json_string_value(json_object_get(entry, "user"));
		json_t *at = user == NULL ? NULL : json_object_get(index, user);

		if (at != NULL)
			see(&seen[json_integer_value(at)], entry);
		json_decref(entry);
	}
	free(line);
	fclose(f);
	json_decref(index);
	return 0;
}

/* --- one client ----------------------------------------------------------- */

/* The whole text, with an end that clients take as one. */
static bool
is_whole(const struct hf_play *p)
{
	const char *text = p->n_answered == 1 ? p->answer[0] : p->partial;

	return text != NULL && strcmp(text, p->c->exact[0]) == 0 &&
	    (p->n_answered == 1 || (p->silent && p->marks[0].finishes == 1));
}

static struct found
judge_refused(const struct hf_play *p, const struct seen *s)
{
	if (is_whole(p))
		return (struct found){ PARTIAL, "another was asked instead" };
	if (p->n_answered > 0 || p->silent)
		return (struct found){ FAIL, "an answer that is none" };
	if (s->calls > 1 || s->fallbacks > 0)
		return (struct found){ PARTIAL, "asked again in vain" };
	return strncmp(p->error, "turn 1: HTTP 400", 16) == 0 ?
	    (struct found){ PASS, "" } :
	    (struct found){ SAFE, "told otherwise than by its 400" };
}

static struct found
judge_client(
    const struct hf_play *p, const struct seen *s, unsigned n, double unit_s)
{
	const struct scenario *x = &scenarios[n];
	bool alone = strstr(p->c->id, "-alone") != NULL;
	double took = p->turn_ms[0] / 1000, slack = SLACK_S;
	double within = x->within + (alone ? 3 : 0);

	if (took > x->budget * unit_s + slack)
		return (struct found){ FAIL, "no end in time" };
	if (x->refused)
		return judge_refused(p, s);
	if (p->silent && !is_whole(p))
		return (struct found){ FAIL,
			"ended as if it were whole, but it is not" };
	if (p->n_answered == 1 && !is_whole(p))
		return (struct found){ FAIL, "another text" };
	if (!is_whole(p))
		/* Where nobody else is there, that is all there is to say. */
		return (struct found){ alone ? PASS : SAFE,
			alone ? "" : "told that it failed" };
	if (took > within * unit_s + slack)
		return (struct found){ PARTIAL, "late" };
	if (s->calls > x->calls)
		return (struct found){ PARTIAL, "too many calls" };
	if (n == 0 && s->calls > 1 && s->gap_ms < 2000 * unit_s * 0.95)
		return (struct found){ PARTIAL, "asked again too early" };
	if (n == 15 && strcmp(p->model, s->model) != 0)
		return (struct found){ PARTIAL, "another model is named" };
	return (struct found){ PASS, "" };
}

/* --- a scenario ----------------------------------------------------------- */

static json_t *
client_json(
    const struct found *f, const struct hf_play *p, const struct seen *s)
{
	return json_pack("{s:s,s:s,s:i,s:i,s:f,s:s}", "verdict",
	    verdicts[f->verdict], "why", f->why, "calls", (int)s->calls,
	    "fallbacks", (int)s->fallbacks, "took_s", p->turn_ms[0] / 1000,
	    "error", p->error);
}

/* The outage as a whole: is the first provider used again, and was it left
 * alone while it was down? */
static struct found
judge_outage(const struct hf_plays *plays, const struct seen *seen)
{
	unsigned calls = 0, met = 0, back = 0, after = 0;

	for (unsigned i = 0; i < plays->n_play; i++) {
		const struct hf_play *p = &plays->play[i];

		if (strncmp(p->c->id, "s15", 3) != 0)
			continue;
		if (p->c->n_fault > 0) {
			calls += seen[i].calls;
			met++;
		} else if (!seen[i].served) {
			back += back == after;
			after++;
		} else {
			after++;
		}
	}
	/* 4 of its seconds apart: 30 s are seven calls. */
	if (after > 0 && back > 7)
		return (struct found){ PARTIAL, "not used again" };
	/* Five failures, then a probe each ten of its seconds: 11. */
	if (calls > 11 && calls > met)
		return (struct found){ PARTIAL, "asked in vain too often" };
	return (struct found){ PASS, "" };
}

static json_t *
scenario_json(const struct hf_plays *plays, const struct seen *seen, unsigned n,
    double unit_s)
{
	struct found worst = { PASS, "" };
	json_t *clients = json_object();
	char id[8];

	snprintf(id, sizeof(id), "s%02u", n + 1);
	if (n == 14)
		worst = judge_outage(plays, seen);
	for (unsigned i = 0; i < plays->n_play; i++) {
		const struct hf_play *p = &plays->play[i];
		struct found f;

		if (strncmp(p->c->id, id, 3) != 0)
			continue;
		f = judge_client(p, &seen[i], n, unit_s);
		json_object_set_new(
		    clients, p->c->id + 4, client_json(&f, p, &seen[i]));
		if (f.verdict > worst.verdict)
			worst = f;
	}
	return json_pack("{s:s,s:s,s:s,s:s,s:o}", "scenario", id, "name",
	    scenarios[n].name, "verdict", verdicts[worst.verdict], "why",
	    worst.why, "clients", clients);
}

int
hf_wall_judge(json_t **out, const struct hf_play_conf *c,
    const struct hf_plays *plays, const char *log, struct hf_error *e)
{
	struct seen *seen = hf_xcalloc(plays->n_play, sizeof(*seen));
	int rc = read_log(seen, plays, log, e);

	*out = json_array();
	for (unsigned n = 0; rc == 0 && n < HF_WALL_SCENARIOS; n++)
		json_array_append_new(*out,
		    scenario_json(
			plays, seen, n, (double)c->suite->unit_ms / 1000));
	free(seen);
	return rc;
}

/* --- showing it ----------------------------------------------------------- */

unsigned
hf_wall_count(json_t *wall, const char *verdict)
{
	unsigned n = 0;
	json_t *s;
	size_t i;

	json_array_foreach(wall, i, s) n +=
	    hf_str_is(hf_json_str(json_object_get(s, "verdict")), verdict);
	return n;
}

void
hf_wall_text(FILE *f, json_t *wall)
{
	json_t *s, *c;
	const char *how;
	size_t i;

	fputs("\nfault wall\n", f);
	json_array_foreach(wall, i, s)
	{
		fprintf(f, "  %s  %-8s %s\n",
		    json_string_value(json_object_get(s, "scenario")),
		    json_string_value(json_object_get(s, "verdict")),
		    json_string_value(json_object_get(s, "name")));
		json_object_foreach(json_object_get(s, "clients"), how, c)
		{
			const char *why =
			    json_string_value(json_object_get(c, "why"));

			if (why[0] != '\0')
				fprintf(f,
				    "       %s: %s (%d calls, %d fallbacks, "
				    "%.1f s)\n",
				    how, why,
				    (int)json_integer_value(
					json_object_get(c, "calls")),
				    (int)json_integer_value(
					json_object_get(c, "fallbacks")),
				    json_number_value(
					json_object_get(c, "took_s")));
		}
	}
	fprintf(f, "  %u pass, %u partial, %u safe, %u fail\n",
	    hf_wall_count(wall, "pass"), hf_wall_count(wall, "partial"),
	    hf_wall_count(wall, "safe"), hf_wall_count(wall, "fail"));
}
