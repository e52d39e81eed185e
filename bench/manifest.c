/*
 * Failures by table: parsing and matching of manifests.  Pure but for
 * hf_manifest_load().
 */
#include <config.h>

#include "bench/manifest.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

static const struct {
	const char *name;
	int status;
} kinds[HF_FAULT_COUNT] = {
#define HF_FAULT_ROW(id, name, status) { name, status },
	HF_FAULT_KINDS(HF_FAULT_ROW)
#undef HF_FAULT_ROW
};

const char *
hf_fault_name(enum hf_fault_kind k)
{
	return kinds[k].name;
}

int
hf_fault_status(enum hf_fault_kind k)
{
	return kinds[k].status;
}

int
hf_fault_parse(const char *name, enum hf_fault_kind *out)
{
	for (unsigned i = 0; i < HF_FAULT_COUNT; i++) {
		if (strcmp(kinds[i].name, name) == 0) {
			*out = (enum hf_fault_kind)i;
			return 0;
		}
	}
	return HF_EINVAL;
}

static const char *const phases[HF_PHASE_COUNT] = {
#define HF_PHASE_NAME(id, name) name,
	HF_CUT_PHASES(HF_PHASE_NAME)
#undef HF_PHASE_NAME
};

const char *
hf_phase_name(enum hf_cut_phase p)
{
	return phases[p];
}

int
hf_phase_parse(const char *name, enum hf_cut_phase *out)
{
	for (unsigned i = 0; i < HF_PHASE_COUNT; i++) {
		if (strcmp(phases[i], name) == 0) {
			*out = (enum hf_cut_phase)i;
			return 0;
		}
	}
	return HF_EINVAL;
}

bool
hf_fault_in_stream(enum hf_fault_kind k)
{
	return k == HF_FAULT_CUT || k == HF_FAULT_CUT_RESET ||
	    k == HF_FAULT_STALL || k == HF_FAULT_STREAM_ERROR ||
	    k == HF_FAULT_GARBLE || k == HF_FAULT_NO_END ||
	    k == HF_FAULT_BROKEN_EVENT || k == HF_FAULT_ALARM;
}

bool
hf_fault_is_harmless(enum hf_fault_kind k)
{
	return k == HF_FAULT_NONE || k == HF_FAULT_SLOW ||
	    k == HF_FAULT_DRIBBLE || k == HF_FAULT_ALARM;
}

void
hf_manifest_init(struct hf_manifest *m)
{
	m->row = NULL;
	m->n_row = 0;
}

void
hf_manifest_free(struct hf_manifest *m)
{
	free(m->row);
	hf_manifest_init(m);
}

void
hf_manifest_add(struct hf_manifest *m, const struct hf_fault_row *r)
{
	struct hf_fault_row *row;

	row = reallocarray(m->row, m->n_row + 1, sizeof(*row));
	HF_CHECK(row != NULL);
	m->row = row;
	m->row[m->n_row++] = *r;
}

static const char *const hints[HF_HINT_COUNT] = {
#define HF_HINT_NAME(id, name) name,
	HF_HINTS(HF_HINT_NAME)
#undef HF_HINT_NAME
};

int
hf_hint_parse(const char *name, enum hf_hint *out)
{
	for (unsigned i = 1; i < HF_HINT_COUNT; i++) {
		if (strcmp(hints[i], name) == 0) {
			*out = (enum hf_hint)i;
			return 0;
		}
	}
	return HF_EINVAL;
}

/* The members of a row as they are read. */
struct raw_row {
	const char *provider, *model, *conversation, *contains;
	const char *fault, *phase, *hint;
	int turn, attempt, for_ms, delay_ms, chunks, at;
	int retry_after_s, retry_after_ms, n, window_ms;
};

static int
parse_names(
    struct hf_fault_row *r, const struct raw_row *raw, struct hf_error *e)
{
	const char *phase = raw->phase;

	if (hf_fault_parse(raw->fault, &r->fault.kind) != 0)
		return hf_fail(e, HF_EINVAL,
		    "manifest row: unknown fault "
		    "'%s'",
		    raw->fault);
	if (phase == NULL && r->fault.kind == HF_FAULT_NO_END)
		phase = "content";
	if (phase != NULL && hf_phase_parse(phase, &r->fault.phase) != 0)
		return hf_fail(
		    e, HF_EINVAL, "manifest row: unknown phase '%s'", phase);
	if (raw->hint != NULL && hf_hint_parse(raw->hint, &r->fault.hint) != 0)
		return hf_fail(
		    e, HF_EINVAL, "manifest row: unknown hint '%s'", raw->hint);
	if (strlen(raw->provider) >= sizeof(r->provider) ||
	    strlen(raw->model) >= sizeof(r->model) ||
	    strlen(raw->conversation) >= sizeof(r->conversation) ||
	    strlen(raw->contains) >= sizeof(r->contains))
		return hf_fail(
		    e, HF_EINVAL, "manifest row: a string is too long");
	snprintf(r->provider, sizeof(r->provider), "%s", raw->provider);
	snprintf(r->model, sizeof(r->model), "%s", raw->model);
	snprintf(
	    r->conversation, sizeof(r->conversation), "%s", raw->conversation);
	snprintf(r->contains, sizeof(r->contains), "%s", raw->contains);
	return 0;
}

static int
parse_numbers(
    struct hf_fault_row *r, const struct raw_row *raw, struct hf_error *e)
{
	struct hf_bench_fault *f = &r->fault;

	if (raw->attempt < 0 || raw->for_ms < 0 || raw->delay_ms < 0 ||
	    raw->chunks < 0 || raw->at < 0 || raw->retry_after_s < 0 ||
	    raw->retry_after_ms < 0 || raw->n < 0 || raw->window_ms < 0)
		return hf_fail(e, HF_EINVAL,
		    "manifest row: a negative "
		    "number");
	if (f->kind == HF_FAULT_RATE_LIMIT &&
	    (raw->n == 0 || raw->n > 100000 || raw->window_ms == 0))
		return hf_fail(e, HF_EINVAL,
		    "manifest row: rate_limit "
		    "needs n (1 to 100000) and window_ms");
	r->turn = raw->turn;
	r->attempt = raw->attempt;
	r->for_ms = (unsigned)raw->for_ms;
	f->delay_ms = (unsigned)raw->delay_ms;
	f->chunks = (unsigned)raw->chunks;
	f->at = (unsigned)raw->at;
	f->retry_after_s = (unsigned)raw->retry_after_s;
	f->retry_after_ms = (unsigned)raw->retry_after_ms;
	f->n = (unsigned)raw->n;
	f->window_ms = (unsigned)raw->window_ms;
	return 0;
}

static int
parse_row(struct hf_fault_row *r, json_t *o, struct hf_error *e)
{
	struct raw_row raw = { .provider = "",
		.model = "",
		.conversation = "",
		.contains = "",
		.turn = -1 };
	json_error_t je;
	int rc;

	memset(r, 0, sizeof(*r));
	if (json_unpack_ex(o, &je, JSON_STRICT,
		"{s?s s?s s?s s?s s?i s?i s?i s:s s?i s?i s?i s?i s?s s?s s?i "
		"s?i s?i}",
		"provider", &raw.provider, "model", &raw.model, "conversation",
		&raw.conversation, "contains", &raw.contains, "turn", &raw.turn,
		"attempt", &raw.attempt, "for_ms", &raw.for_ms, "fault",
		&raw.fault, "delay_ms", &raw.delay_ms, "chunks", &raw.chunks,
		"retry_after_s", &raw.retry_after_s, "retry_after_ms",
		&raw.retry_after_ms, "hint", &raw.hint, "phase", &raw.phase,
		"at", &raw.at, "n", &raw.n, "window_ms", &raw.window_ms) != 0)
		return hf_fail(e, HF_EINVAL, "manifest row: %s", je.text);
	rc = parse_names(r, &raw, e);
	return rc == 0 ? parse_numbers(r, &raw, e) : rc;
}

int
hf_manifest_parse(struct hf_manifest *m, json_t *root, struct hf_error *e)
{
	json_t *rows = json_object_get(root, "faults"), *o;
	struct hf_fault_row r;
	size_t i;

	if (!json_is_array(rows))
		return hf_fail(e, HF_EINVAL, "manifest: no array \"faults\"");
	json_array_foreach(rows, i, o)
	{
		int rc = parse_row(&r, o, e);

		if (rc != 0)
			return rc;
		hf_manifest_add(m, &r);
	}
	return 0;
}

int
hf_manifest_load(struct hf_manifest *m, const char *path, struct hf_error *e)
{
	json_error_t je;
	json_t *root;
	int rc;

	root = json_load_file(path, JSON_REJECT_DUPLICATES, &je);
	if (root == NULL)
		return hf_fail(
		    e, HF_EINVAL, "%s:%d: %s", path, je.line, je.text);
	rc = hf_manifest_parse(m, root, e);
	json_decref(root);
	return rc;
}

static bool
str_contains(struct hf_str s, const char *z)
{
	return memmem(s.p == NULL ? "" : s.p, s.size, z, strlen(z)) != NULL;
}

unsigned
hf_manifest_find(
    const struct hf_manifest *m, const struct hf_fault_query *q, unsigned from)
{
	for (unsigned i = from; i < m->n_row; i++) {
		const struct hf_fault_row *r = &m->row[i];

		if (r->provider[0] != '\0' &&
		    !hf_str_is(q->provider, r->provider))
			continue;
		if (r->model[0] != '\0' && !hf_str_is(q->model, r->model))
			continue;
		if (r->conversation[0] != '\0' &&
		    !hf_str_is(q->conversation, r->conversation))
			continue;
		if (r->turn >= 0 && r->turn != q->turn)
			continue;
		if (r->attempt > 0 && r->attempt != q->attempt)
			continue;
		if (r->contains[0] != '\0' &&
		    !str_contains(q->last_user, r->contains))
			continue;
		return i;
	}
	return m->n_row;
}

struct hf_bench_fault
hf_manifest_match(const struct hf_manifest *m, const struct hf_fault_query *q)
{
	unsigned i = hf_manifest_find(m, q, 0);

	if (i == m->n_row)
		return (struct hf_bench_fault){ .kind = HF_FAULT_NONE };
	return m->row[i].fault;
}

bool
hf_fault_row_is_dead(const struct hf_fault_row *r)
{
	return r->fault.kind == HF_FAULT_REFUSED && r->model[0] == '\0' &&
	    r->conversation[0] == '\0' && r->contains[0] == '\0' &&
	    r->turn < 0 && r->attempt == 0 && r->fault.delay_ms == 0;
}
