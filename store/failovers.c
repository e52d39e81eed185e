/*
 * Where turns changed targets: attempts that followed another one, from the
 * index that holds those alone, a piece at a time.
 */
#include <config.h>

#include <stdlib.h>

#include "base/check.h"
#include "base/hist.h"
#include "store/inspect_int.h"

#define PIECE 1000     /* rows that are looked at in one go */
#define MAX_GROUPS 512 /* then the rest is added up in one */
/* Rows are in order of arrival, give or take what lies between the request's
 * arrival and its row. */
#define SLACK_US ((int64_t)600 * 1000000)

static const char *
text(sqlite3_stmt *st, int col)
{
	return (const char *)sqlite3_column_text(st, col);
}

static void
take_row(sqlite3_stmt *st, struct hf_failover_info *f)
{
	int64_t called = sqlite3_column_int64(st, 4);
	int64_t first = sqlite3_column_int64(st, 5);

	*f = (struct hf_failover_info){
		.row = sqlite3_column_int64(st, 0),
		.n = sqlite3_column_int(st, 1),
		.to = text(st, 2),
		.outcome = text(st, 3),
		.from_bytes = sqlite3_column_int64(st, 6),
		.items = sqlite3_column_int64(st, 7),
		.items_of = sqlite3_column_int64(st, 8),
		.from = text(st, 9),
		.cls = text(st, 10),
		.reason = text(st, 11),
		.status = sqlite3_column_int(st, 12),
		.at_us = sqlite3_column_int64(st, 13),
		.turn_seq = sqlite3_column_int64(st, 15),
		.route = text(st, 16),
		.name = text(st, 19),
		.tenant = text(st, 20),
		.gap_us = -1,
	};
	hf_db_id(st, 14, &f->turn);
	hf_db_id(st, 18, &f->session);
	if (first > 0 && called > 0)
		f->gap_us = called + first - f->at_us;
	/* One that was called beside the other may have been the first. */
	if (first > 0 && f->gap_us < 0)
		f->gap_us = 0;
}

/* Of two calls side by side the first may have answered, or still be under
 * way: then nobody was left. */
static bool
was_left(const struct hf_failover_info *f)
{
	return f->cls != NULL && strcmp(f->cls, "ok") != 0;
}

int
hf_inspect_failovers(struct hf_inspect *in, const struct hf_failover_filter *f,
    struct hf_cursor *at, hf_failover_fn cb, void *arg, struct hf_error *e)
{
	struct hf_failover_info row;
	struct hf_error local;
	sqlite3_stmt *st;
	int rc;

	e = e == NULL ? &local : e;
	if (at->a == 0)
		at->a = f->before > 0 ? f->before : INT64_MAX;
	st = hf_db_bind(&in->db, HF_SQL_FAILOVERS, e, "i", at->a);
	if (st == NULL)
		return e->code;
	for (int looked = 0; (rc = hf_db_step(&in->db, st, e)) > 0; looked++) {
		int64_t created = sqlite3_column_int64(st, 17);

		if (created < f->since_us - SLACK_US) {
			rc = 0;
			break;
		}
		if (looked == PIECE)
			break;
		take_row(st, &row);
		at->a = row.row;
		if (created >= f->since_us && was_left(&row) &&
		    cb(arg, &row) != 0)
			break;
	}
	hf_db_reset(st);
	return rc;
}

/* --- added up ------------------------------------------------------------- */

struct group {
	char *target, *cls;
	struct hf_failover_group g;
	uint64_t gap[HF_HIST_CELLS]; /* milliseconds */
};

struct hf_failover_sum {
	struct hf_failover_filter filter;
	struct hf_cursor at;
	struct group *group[MAX_GROUPS];
	unsigned n;
};

struct hf_failover_sum *
hf_failover_sum_new(int64_t since_us)
{
	struct hf_failover_sum *s = hf_xcalloc(1, sizeof(*s));

	s->filter.since_us = since_us;
	return s;
}

void
hf_failover_sum_free(struct hf_failover_sum *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		free(s->group[i]->target);
		free(s->group[i]->cls);
		free(s->group[i]);
	}
	free(s);
}

static struct group *
group_of(struct hf_failover_sum *s, const char *target, const char *cls)
{
	struct group *g;

	if (s->n + 1 >= MAX_GROUPS)
		target = cls = "(others)";
	for (unsigned i = 0; i < s->n; i++)
		if (strcmp(s->group[i]->target, target) == 0 &&
		    strcmp(s->group[i]->cls, cls) == 0)
			return s->group[i];
	g = hf_xcalloc(1, sizeof(*g));
	g->target = hf_xstrdup(target);
	g->cls = hf_xstrdup(cls);
	s->group[s->n++] = g;
	return g;
}

static int
add(void *arg, const struct hf_failover_info *f)
{
	struct hf_failover_sum *s = arg;
	struct group *g = group_of(s, f->from, f->cls);

	g->g.failovers++;
	g->g.answered += f->outcome != NULL && strcmp(f->outcome, "ok") == 0;
	g->g.in_stream += f->from_bytes > 0;
	g->g.shortened += f->items < f->items_of;
	if (f->at_us > g->g.last_us)
		g->g.last_us = f->at_us;
	if (f->gap_us >= 0)
		g->gap[hf_hist_cell((f->gap_us + 500) / 1000)]++;
	return 0;
}

int
hf_failover_sum_more(
    struct hf_inspect *in, struct hf_failover_sum *s, struct hf_error *e)
{
	return hf_inspect_failovers(in, &s->filter, &s->at, add, s, e);
}

static int
by_number(const void *a, const void *b)
{
	const struct group *const *x = a, *const *y = b;
	int64_t m = (*x)->g.failovers, n = (*y)->g.failovers;
	int c = strcmp((*x)->target, (*y)->target);

	if (m != n)
		return m > n ? -1 : 1;
	return c != 0 ? c : strcmp((*x)->cls, (*y)->cls);
}

static int64_t
us_of(int64_t ms)
{
	return ms < 0 ? -1 : ms * 1000;
}

void
hf_failover_sum_tell(
    struct hf_failover_sum *s, hf_failover_group_fn cb, void *arg)
{
	qsort(s->group, s->n, sizeof(s->group[0]), by_number);
	for (unsigned i = 0; i < s->n; i++) {
		struct group *g = s->group[i];

		g->g.target = g->target;
		g->g.cls = g->cls;
		g->g.gap_p50_us = us_of(hf_hist_quantile(g->gap, 500));
		g->g.gap_p99_us = us_of(hf_hist_quantile(g->gap, 990));
		if (cb(arg, &g->g) != 0)
			return;
	}
}

/* --- what is disabled by hand --------------------------------------------- */

int
hf_inspect_disabled(
    struct hf_inspect *in, hf_disabled_fn cb, void *arg, struct hf_error *e)
{
	struct hf_error local;
	sqlite3_stmt *st;
	int rc;

	e = e == NULL ? &local : e;
	st = hf_db_bind(&in->db, HF_SQL_DISABLED_LIST, e, "");
	if (st == NULL)
		return e->code;
	while ((rc = hf_db_step(&in->db, st, e)) > 0) {
		if (cb(arg, text(st, 0), sqlite3_column_int64(st, 1),
			sqlite3_column_int64(st, 2)) != 0) {
			hf_db_reset(st);
			return 0;
		}
	}
	return rc;
}
