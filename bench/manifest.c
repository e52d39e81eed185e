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
	    k == HF_FAULT_GARBLE || k == HF_FAULT_NO_END;
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

static int
parse_row(struct hf_fault_row *r, json_t *o, struct hf_error *e)
{
	const char *provider = "", *conversation = "", *contains = "";
	const char *fault = NULL, *phase = NULL;
	json_error_t je;
	int delay = 0, chunks = 0, retry = 0, place = 0;

	memset(r, 0, sizeof(*r));
	r->turn = -1;
	if (json_unpack_ex(o, &je, JSON_STRICT,
		"{s?s s?s s?s s?i s?i s:s s?i s?i s?i s?s s?i}", "provider",
		&provider, "conversation", &conversation, "contains", &contains,
		"turn", &r->turn, "attempt", &r->attempt, "fault", &fault,
		"delay_ms", &delay, "chunks", &chunks, "retry_after_s", &retry,
		"phase", &phase, "at", &place) != 0)
		return hf_fail(e, HF_EINVAL, "manifest row: %s", je.text);
	if (hf_fault_parse(fault, &r->fault.kind) != 0)
		return hf_fail(e, HF_EINVAL,
		    "manifest row: unknown fault "
		    "'%s'",
		    fault);
	if (phase == NULL && r->fault.kind == HF_FAULT_NO_END)
		phase = "content";
	if (phase != NULL && hf_phase_parse(phase, &r->fault.phase) != 0)
		return hf_fail(
		    e, HF_EINVAL, "manifest row: unknown phase '%s'", phase);
	if (strlen(provider) >= sizeof(r->provider) ||
	    strlen(conversation) >= sizeof(r->conversation) ||
	    strlen(contains) >= sizeof(r->contains))
		return hf_fail(e, HF_EINVAL,
		    "manifest row: a value is too "
		    "long");
	if (delay < 0 || chunks < 0 || retry < 0 || place < 0 || r->attempt < 0)
		return hf_fail(e, HF_EINVAL,
		    "manifest row: a negative "
		    "number");
	memcpy(r->provider, provider, strlen(provider) + 1);
	memcpy(r->conversation, conversation, strlen(conversation) + 1);
	memcpy(r->contains, contains, strlen(contains) + 1);
	r->fault.delay_ms = (unsigned)delay;
	r->fault.chunks = (unsigned)chunks;
	r->fault.at = (unsigned)place;
	r->fault.retry_after_s = (unsigned)retry;
	return 0;
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

struct hf_bench_fault
hf_manifest_match(const struct hf_manifest *m, const struct hf_fault_query *q)
{
	for (unsigned i = 0; i < m->n_row; i++) {
		const struct hf_fault_row *r = &m->row[i];

		if (r->provider[0] != '\0' &&
		    !hf_str_is(q->provider, r->provider))
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
		return r->fault;
	}
	return (struct hf_bench_fault){ .kind = HF_FAULT_NONE };
}
