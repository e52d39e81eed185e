/*
 * Sampling, and the reading of what a person said.  Pure.
 */
#include <config.h>

#include "bench/audit.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/html.h"
#include "bench/report.h"
#include "bench/rng.h"

/* --- sampling ------------------------------------------------------------- */

static void
add_probes(
    json_t *all, const struct hf_audit *a, const char *suite, json_t *play)
{
	json_t *p, *o;
	size_t i;

	json_array_foreach(hf_get(play, "probes"), i, p)
	{
		if (!json_is_string(hf_get(p, "answer")) ||
		    (a->judged && strcmp(hf_text(p, "by"), "model") != 0))
			continue;
		o = json_pack("{s:s,s:s,s:i,s:O,s:O,s:O,s:b,s:s}", "suite",
		    suite, "id", hf_text(play, "id"), "turn", hf_int(p, "turn"),
		    "expected", hf_get(p, "expected"), "probe",
		    hf_get(p, "probe"), "answer", hf_get(p, "answer"), "right",
		    json_is_true(hf_get(p, "right")), "by", hf_text(p, "by"));
		if (o == NULL)
			continue; /* lacks a member */
		if (hf_get(p, "calls") != NULL)
			json_object_set(o, "calls", hf_get(p, "calls"));
		json_array_append_new(all, o);
	}
}

static void
add_suite(
    json_t *all, const struct hf_audit *a, const char *title, json_t *report)
{
	json_t *play;
	size_t i;

	json_array_foreach(hf_get(report, "plays"), i, play)
	    add_probes(all, a, title, play);
}

static void
make_digest(struct hf_audit *a)
{
	unsigned char hash[(HF_AUDIT_DIGEST - 1) / 2];
	char *text = json_dumps(a->sample, JSON_COMPACT | JSON_SORT_KEYS);

	HF_CHECK(text != NULL && sodium_init() >= 0);
	crypto_generichash(hash, sizeof(hash), (const unsigned char *)text,
	    strlen(text), NULL, 0);
	sodium_bin2hex(a->digest, sizeof(a->digest), hash, sizeof(hash));
	free(text);
}

int
hf_audit_sample(struct hf_audit *a, json_t *report, struct hf_error *e)
{
	json_t *all = json_array(), *each = hf_report_each(report), *one;
	unsigned *order, n;
	const char *title;
	struct hf_rng r;

	json_object_foreach(each, title, one) add_suite(all, a, title, one);
	json_decref(each);
	n = (unsigned)json_array_size(all);
	if (n == 0) {
		json_decref(all);
		return hf_fail(e, HF_ENOTFOUND,
		    a->judged ? "no answers that a model judged" :
				"no answers");
	}
	order = hf_xcalloc(n, sizeof(*order));
	for (unsigned i = 0; i < n; i++)
		order[i] = i;
	hf_rng_init(&r, a->seed);
	hf_rng_shuffle(&r, order, n);
	a->cases = a->cases < n ? a->cases : n;
	a->sample = json_array();
	for (unsigned i = 0; i < a->cases; i++)
		json_array_append(a->sample, json_array_get(all, order[i]));
	free(order);
	json_decref(all);
	make_digest(a);
	return 0;
}

void
hf_audit_free(struct hf_audit *a)
{
	json_decref(a->sample);
	a->sample = NULL;
}

/* --- reading -------------------------------------------------------------- */

int
hf_audit_header(struct hf_audit *a, const char *text, struct hf_error *e)
{
	const char *at = strstr(text, "sample ");
	char of[8];

	*a = (struct hf_audit){ 0 };
	if (at == NULL ||
	    sscanf(at, "sample %32s seed %lu cases %u of %7s", a->digest,
		&a->seed, &a->cases, of) != 4 ||
	    (strcmp(of, "all") != 0 && strcmp(of, "judged") != 0))
		return hf_fail(
		    e, HF_EINVAL, "no line that names a sample of an audit");
	a->judged = strcmp(of, "judged") == 0;
	return 0;
}

static const char *const words[] = { "right", "wrong", "unsure" };

/* "3 wrong  the day is missing"; false: no such line. */
static bool
read_line(const char *line, unsigned n, unsigned *number, unsigned *word,
    char note[200])
{
	char verdict[12];
	int used = 0;

	if (sscanf(line, "%u %11s%n", number, verdict, &used) != 2 ||
	    *number < 1 || *number > n)
		return false;
	for (*word = 0; *word < hf_countof(words); ++*word) {
		size_t size;

		if (strcmp(verdict, words[*word]) != 0)
			continue;
		line += used;
		line += strspn(line, " \t");
		size = strcspn(line, "\r\n");
		size = size < 199 ? size : 199;
		memcpy(note, line, size);
		note[size] = '\0';
		return true;
	}
	return false;
}

/* The person's word on each case, in its object. */
static int
take_lines(json_t *cases, const char *text, struct hf_error *e)
{
	unsigned n = (unsigned)json_array_size(cases), number, word;
	char note[200];

	for (const char *line = text; line != NULL && *line != '\0';
	     line = strchr(line, '\n')) {
		json_t *c;

		line += *line == '\n';
		if (!read_line(line, n, &number, &word, note))
			continue;
		c = json_array_get(cases, number - 1);
		if (hf_get(c, "person") != NULL)
			return hf_fail(
			    e, HF_EINVAL, "case %u has two verdicts", number);
		json_object_set_new(c, "person", json_string(words[word]));
		if (note[0] != '\0')
			json_object_set_new(c, "note", json_string(note));
	}
	return 0;
}

int
hf_audit_read(const struct hf_audit *a, const char *text, json_t **out,
    struct hf_error *e)
{
	unsigned n = 0, k = 0, unsure = 0, unanswered = 0;
	struct hf_audit said;
	json_t *cases, *c;
	size_t i;

	if (hf_audit_header(&said, text, e) != 0)
		return e->code;
	if (strcmp(said.digest, a->digest) != 0)
		return hf_fail(e, HF_EINVAL,
		    "these verdicts are on a sample of another report");
	cases = json_deep_copy(a->sample);
	if (take_lines(cases, text, e) != 0) {
		json_decref(cases);
		return e->code;
	}
	json_array_foreach(cases, i, c)
	{
		const char *word = hf_text(c, "person");
		bool right = json_is_true(hf_get(c, "right"));
		bool agrees = strcmp(word, right ? "right" : "wrong") == 0;

		unanswered += word[0] == '\0';
		unsure += strcmp(word, "unsure") == 0;
		if (word[0] == '\0' || strcmp(word, "unsure") == 0)
			continue;
		n++;
		k += agrees;
		json_object_set_new(c, "agrees", json_boolean(agrees));
	}
	*out = json_pack("{s:i,s:s,s:I,s:o,s:i,s:i,s:o}", "schema", 1, "digest",
	    a->digest, "seed", (json_int_t)a->seed, "agreement",
	    hf_report_ratio(k, n), "unsure", (int)unsure, "unanswered",
	    (int)unanswered, "cases", cases);
	HF_CHECK(*out != NULL);
	return 0;
}

void
hf_audit_text(FILE *f, json_t *result)
{
	json_t *agreement = hf_get(result, "agreement"), *c;
	size_t i;

	json_array_foreach(hf_get(result, "cases"), i, c)
	{
		if (!json_is_false(hf_get(c, "agrees")))
			continue;
		fprintf(f,
		    "case %zu: %s says %s, the person %s%s%s\n"
		    "  expected: %s\n  answer: %s\n",
		    i + 1, hf_text(c, "by"),
		    json_is_true(hf_get(c, "right")) ? "right" : "wrong",
		    hf_text(c, "person"),
		    hf_text(c, "note")[0] != '\0' ? ": " : "",
		    hf_text(c, "note"), hf_text(c, "expected"),
		    hf_text(c, "answer"));
	}
	fprintf(f,
	    "agreement %d of %d: %.1f %% [%.1f, %.1f]; %d unsure, %d not "
	    "answered\n",
	    hf_int(agreement, "k"), hf_int(agreement, "n"),
	    100 * hf_num(agreement, "p"), 100 * hf_num(agreement, "lo"),
	    100 * hf_num(agreement, "hi"), hf_int(result, "unsure"),
	    hf_int(result, "unanswered"));
}
