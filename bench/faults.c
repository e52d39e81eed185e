/*
 * Failures that depend on time.
 */
#include <config.h>

#include "bench/faults.h"

#include <stdlib.h>

#include "base/check.h"

struct row_state {
	int64_t since_us; /* of the first match; 0: none yet */
	int64_t *at_us;	  /* a ring of the last n that were admitted */
	unsigned next;
};

struct hf_faults {
	const struct hf_manifest *manifest;
	struct row_state *row; /* made when first needed */
	unsigned n_row;
};

struct hf_faults *
hf_faults_new(const struct hf_manifest *m)
{
	struct hf_faults *f = hf_xcalloc(1, sizeof(*f));

	f->manifest = m;
	return f;
}

void
hf_faults_free(struct hf_faults *f)
{
	if (f == NULL)
		return;
	for (unsigned i = 0; i < f->n_row; i++)
		free(f->row[i].at_us);
	free(f->row);
	free(f);
}

static bool
has_passed(const struct hf_fault_row *r, struct row_state *s, int64_t now_us)
{
	if (s->since_us == 0)
		s->since_us = now_us;
	return r->for_ms > 0 &&
	    now_us - s->since_us >= r->for_ms * INT64_C(1000);
}

/* Admits it, or says when the next one will be. */
static struct hf_bench_fault
limit(struct hf_bench_fault fault, struct row_state *s, int64_t now_us)
{
	int64_t window = fault.window_ms * INT64_C(1000), *oldest;

	if (s->at_us == NULL)
		s->at_us = hf_xcalloc(fault.n, sizeof(*s->at_us));
	oldest = &s->at_us[s->next];
	if (*oldest == 0 || now_us - *oldest >= window) {
		*oldest = now_us;
		s->next = (s->next + 1) % fault.n;
		return (struct hf_bench_fault){ .kind = HF_FAULT_NONE };
	}
	if (fault.retry_after_s == 0 && fault.retry_after_ms == 0)
		fault.retry_after_ms =
		    (unsigned)((*oldest + window - now_us) / 1000) + 1;
	return fault;
}

struct hf_bench_fault
hf_faults_choose(
    struct hf_faults *f, const struct hf_fault_query *q, int64_t now_us)
{
	const struct hf_manifest *m = f->manifest;
	unsigned i = 0;

	if (f->row == NULL) {
		f->n_row = m->n_row;
		f->row = hf_xcalloc(m->n_row + 1, sizeof(*f->row));
	}
	for (;; i++) {
		i = hf_manifest_find(m, q, i);
		if (i == m->n_row)
			return (struct hf_bench_fault){ .kind = HF_FAULT_NONE };
		if (has_passed(&m->row[i], &f->row[i], now_us))
			continue;
		if (m->row[i].fault.kind != HF_FAULT_RATE_LIMIT)
			return m->row[i].fault;
		return limit(m->row[i].fault, &f->row[i], now_us);
	}
}
