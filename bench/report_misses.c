/*
 * The part of the report that is about what went wrong: which plays, who is to
 * blame, and what was said to whom.
 */
#include <config.h>

#include "bench/report.h"

#include <stdlib.h>

#include "base/check.h"
#include "bench/answer.h"

#define MAX_MISSES 200
#define MAX_BY_DESIGN 20 /* of a stateless system */
#define MAX_SHOWN 10

/* Turns of a play up to the one that went wrong. */
static json_t *
transcript(const struct hf_play *p, unsigned turn)
{
	json_t *out = json_array();

	for (unsigned k = 0; k <= turn && k < p->c->n_user; k++) {
		const char *got = k < p->n_answered ? p->answer[k] :
		    k == p->n_answered		    ? p->partial :
						      NULL;
		json_t *o =
		    json_pack("{s:s,s:s?}", p->c->tool[k] ? "tool" : "user",
			p->c->user[k], "answer", got);

		if (p->c->exact[k] != NULL)
			json_object_set_new(
			    o, "expected", json_string(p->c->exact[k]));
		if (p->calls[k] != NULL)
			json_object_set(o, "calls", p->calls[k]);
		json_array_append_new(out, o);
	}
	return out;
}

static json_t *
miss(const struct hf_report *r, const struct hf_play *p)
{
	unsigned turn =
	    p->first_wrong < 0 ? p->c->n_user - 1 : (unsigned)p->first_wrong;
	json_t *o;

	o = json_pack(
	    "{s:s,s:b,s:i,s:s,s:s,s:i,s:s,s:s,s:s?,s:s?,s:i,s:s,s:b,s:s?,s:o}",
	    "system", r->conf->system[p->system].name, "stateless",
	    r->conf->system[p->system].stateless, "run", (int)p->run + 1,
	    "conversation", p->c->id, "user", p->user, "turn", (int)turn,
	    "failure", hf_failure_name(p->c->failure), "expected", p->c->fact,
	    "answer", turn < p->n_answered ? p->answer[turn] : p->partial,
	    "error", p->error[0] ? p->error : NULL, "foreign", (int)p->foreign,
	    "blame", hf_blame_name((enum hf_blame)p->blame), "preserved",
	    p->preserved, "payload", p->wrong_what, "turns",
	    transcript(p, turn));
	HF_CHECK(o != NULL);
	return o;
}

json_t *
hf_report_misses(const struct hf_report *r)
{
	json_t *out = json_array();
	unsigned by_design = 0;

	for (unsigned i = 0; i < r->plays->n_play; i++) {
		const struct hf_play *p = &r->plays->play[i];
		bool stateless = r->conf->system[p->system].stateless;

		if (p->blame == HF_BLAME_NOBODY ||
		    json_array_size(out) >= MAX_MISSES ||
		    (stateless && p->foreign == 0 &&
			++by_design > MAX_BY_DESIGN))
			continue;
		json_array_append_new(out, miss(r, p));
	}
	return out;
}

/* --- what providers received ---------------------------------------------- */

/* This entry of the log to the miss or seam that it belongs to.  A seam is
 * well: it needs not the whole history. */
static void
give(json_t *by_user, json_t *entry)
{
	struct hf_str user = hf_json_str(json_object_get(entry, "user"));
	json_t *m = user.p == NULL ? NULL : json_object_get(by_user, user.p);

	if (m == NULL ||
	    !json_equal(
		json_object_get(m, "turn"), json_object_get(entry, "turn")))
		return;
	if (json_object_get(m, "place") != NULL)
		json_object_del(entry, "messages");
	json_array_append(json_object_get(m, "requests"), entry);
}

/* Each of these gets an empty list of requests. */
static void
await(json_t *by_user, json_t *list)
{
	json_t *m;
	size_t i;

	json_array_foreach(list, i, m)
	{
		json_object_set_new(m, "requests", json_array());
		json_object_set(
		    by_user, json_string_value(json_object_get(m, "user")), m);
	}
}

int
hf_report_transcripts(json_t *report, const char *log, struct hf_error *e)
{
	json_t *by_user = json_object();
	char *line = NULL;
	size_t size = 0;
	FILE *f = fopen(log, "re");

	if (f == NULL) {
		json_decref(by_user);
		return hf_fail_errno(e, "%s", log);
	}
	await(by_user, json_object_get(report, "seams"));
	await(by_user, json_object_get(report, "misses"));
	while (getline(&line, &size, f) > 0) {
		json_t *entry = json_loads(line, JSON_ALLOW_NUL, NULL);

		give(by_user, entry);
		json_decref(entry);
	}
	free(line);
	fclose(f);
	json_decref(by_user);
	return 0;
}

/* --- text ----------------------------------------------------------------- */

static const char *
text(json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s == NULL ? "-" : s;
}

static int
number(json_t *o, const char *key)
{
	return (int)json_integer_value(json_object_get(o, key));
}

/* Some of a text, around the place 'at', in whole characters. */
static void
put_excerpt(FILE *f, const char *label, const char *z, size_t at)
{
	size_t size = strlen(z), from = at > 60 ? at - 60 : 0, to = at + 60;

	to = to < size ? to : size;
	from = from < size ? from : size;
	while (from > 0 && ((unsigned char)z[from] & 0xc0) == 0x80)
		from--;
	while (to < size && ((unsigned char)z[to] & 0xc0) == 0x80)
		to++;
	fprintf(f, "      %s: %s%.*s%s\n", label, from > 0 ? "..." : "",
	    (int)(to - from), z + from, to < size ? "..." : "");
}

static void
put_request(FILE *f, json_t *r)
{
	char label[120];

	snprintf(label, sizeof(label), "%s (%s) %s, %s", text(r, "provider"),
	    text(r, "dialect"), text(r, "asked"),
	    json_object_get(r, "refused") != NULL ? "refused" :
						    text(r, "fault"));
	if (json_object_get(r, "phase") != NULL)
		snprintf(label + strlen(label), sizeof(label) - strlen(label),
		    " at %s after %d bytes", text(r, "phase"),
		    number(r, "sent"));
	put_excerpt(f, label, text(r, "would"), 0);
}

static void
put_miss(FILE *f, json_t *m)
{
	json_t *turns = json_object_get(m, "turns"), *turn, *r;
	const char *got = text(m, "answer"), *want;
	size_t at = 0, k;

	fprintf(f, "miss: %s run %d %s (%s): blame %s: fact \"%s\"%s%s\n",
	    text(m, "system"), number(m, "run"), text(m, "conversation"),
	    text(m, "failure"), text(m, "blame"), text(m, "expected"),
	    json_is_string(json_object_get(m, "error")) ? ", " : "",
	    json_is_string(json_object_get(m, "error")) ? text(m, "error") :
							  "");
	turn = json_array_get(turns, json_array_size(turns) - 1);
	if (json_object_get(turn, "expected") != NULL) {
		want = text(turn, "expected");
		while (want[at] != '\0' && want[at] == got[at])
			at++;
		put_excerpt(f, "to come", want, at);
	}
	put_excerpt(f, "got", got, at);
	json_array_foreach(json_object_get(m, "requests"), k, r)
	    put_request(f, r);
}

void
hf_report_misses_text(FILE *f, json_t *report)
{
	json_t *m, *misses = json_object_get(report, "misses");
	unsigned shown = 0;
	size_t i;

	json_array_foreach(misses, i, m)
	{
		if (json_is_true(json_object_get(m, "stateless")) &&
		    number(m, "foreign") == 0)
			continue; /* that is what it is for */
		if (shown++ == MAX_SHOWN) {
			fprintf(f, "... and more: %zu listed in the JSON\n",
			    json_array_size(misses));
			break;
		}
		put_miss(f, m);
	}
}
