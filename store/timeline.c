/*
 * What happened in a turn, event by event, from the times that its rows keep.
 */
#include <config.h>

#include "store/inspect_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/row.h"

/* Of one turn, in order of time. */
struct events {
	struct hf_arena arena; /* owns the texts */
	struct hf_event_info *event;
	size_t n, cap;
	bool failed; /* no memory */
};

static const char *
copy(struct events *l, sqlite3_stmt *st, int col)
{
	struct hf_str s = hf_db_str(st, col);

	if (s.p == NULL)
		return NULL;
	s = hf_arena_dup(&l->arena, s);
	l->failed = l->failed || s.p == NULL;
	return s.p;
}

/* Behind all that happened before it or at the same time. */
static void
add(struct events *l, const struct hf_event_info *event)
{
	struct hf_event_info *more;
	size_t at;

	if (l->n == l->cap) {
		size_t cap = l->cap == 0 ? 16 : l->cap * 2;

		more = realloc(l->event, cap * sizeof(*more));
		l->failed = l->failed || more == NULL;
		if (more == NULL)
			return;
		l->event = more;
		l->cap = cap;
	}
	for (at = l->n; at > 0 && l->event[at - 1].at_us > event->at_us; at--)
		l->event[at] = l->event[at - 1];
	l->event[at] = *event;
	l->n++;
}

/* --- attempts ------------------------------------------------------------- */

static const char *
how_ended(const char *cls)
{
	/* Classes that are no failure of the target. */
	static const char *const same[] = { "canceled", "hedged", "lost" };

	if (cls == NULL || strcmp(cls, "ok") == 0)
		return "answered";
	for (size_t i = 0; i < hf_countof(same); i++)
		if (strcmp(cls, same[i]) == 0)
			return same[i];
	return "failed";
}

static void
add_attempt(struct events *l, sqlite3_stmt *st)
{
	int64_t ended = sqlite3_column_int64(st, 6);
	int64_t called = sqlite3_column_int64(st, 7);
	int64_t first = sqlite3_column_int64(st, 8);
	int64_t from = sqlite3_column_int64(st, 10);
	struct hf_event_info e = { .bytes = -1, .of = -1 };

	e.attempt = sqlite3_column_int(st, 0);
	e.target = copy(l, st, 1);
	e.event = from > 0 ? "continued" : "called";
	e.at_us = called != 0 ? called : sqlite3_column_int64(st, 5);
	e.bytes = from > 0 ? from : -1;
	e.omitted_turns = sqlite3_column_int64(st, 11);
	e.omitted_items = sqlite3_column_int64(st, 12);
	/* One that was recorded and then not made has an end alone. */
	if (!hf_str_is(hf_db_str(st, 3), "not_called"))
		add(l, &e);
	e.bytes = -1;
	e.omitted_turns = e.omitted_items = 0;
	if (first > 0) {
		e.event = "first_token";
		e.at_us += first;
		add(l, &e);
	}
	if (ended == 0)
		return;
	e.cls = copy(l, st, 2);
	e.reason = copy(l, st, 3);
	e.status = sqlite3_column_int(st, 4);
	e.event = how_ended(e.cls);
	e.at_us = called != 0 ? called + sqlite3_column_int64(st, 9) : ended;
	add(l, &e);
}

static int
add_attempts(
    struct hf_inspect *in, struct events *l, int64_t turn, struct hf_error *e)
{
	sqlite3_stmt *st = hf_db_bind(&in->db, HF_SQL_TIMELINE_ATTEMPTS, e,
	    "ii", hf_row_child(turn, 0), hf_row_child(turn + 1, 0));
	int rc;

	if (st == NULL)
		return e->code;
	while ((rc = hf_db_step(&in->db, st, e)) > 0)
		add_attempt(l, st);
	return rc;
}

/* --- the turn ------------------------------------------------------------- */

static void
add_time(struct events *l, const char *event, int64_t at_us)
{
	struct hf_event_info e = {
		.event = event, .at_us = at_us, .bytes = -1, .of = -1
	};

	if (at_us > 0)
		add(l, &e);
}

static void
add_beginning(struct events *l, sqlite3_stmt *st)
{
	int64_t stored = sqlite3_column_int64(st, 4);

	add_time(l, "received", sqlite3_column_int64(st, 3));
	/* One that waits, or has waited and never began. */
	if (stored == 0)
		add_time(l, "queued", sqlite3_column_int64(st, 3));
	add_time(l, "stored", stored);
}

/* Before the attempts: what is canceled in the same moment is so because of
 * that. */
static void
add_leaving(struct events *l, sqlite3_stmt *st)
{
	struct hf_event_info e = { .event = "heard",
		.at_us = sqlite3_column_int64(st, 6),
		.of = sqlite3_column_int64(st, 7),
		.bytes = sqlite3_column_int64(st, 8) };
	bool delivered = sqlite3_column_int64(st, 9) > 0;

	add_time(l, "client_gone", e.at_us);
	if (e.at_us != 0 && !delivered && e.bytes >= 0)
		add(l, &e);
}

static void
add_end(struct events *l, sqlite3_stmt *st)
{
	struct hf_event_info e = { .of = sqlite3_column_int64(st, 7),
		.bytes = sqlite3_column_int64(st, 8) };
	int64_t delivered = sqlite3_column_int64(st, 9);

	if (delivered > 0) {
		e.event = "delivered";
		e.at_us = delivered;
		add(l, &e);
	}
	e.at_us = sqlite3_column_int64(st, 5);
	if (e.at_us == 0)
		return;
	e.event = "finished";
	e.bytes = e.of;
	e.of = -1;
	e.state = hf_inspect_state(sqlite3_column_int(st, 2));
	e.status = sqlite3_column_int(st, 10);
	e.reason = copy(l, st, 11);
	e.cls = copy(l, st, 12);
	add(l, &e);
}

/* Tell them from number at->b on.  1: 'cb' wants no more. */
static int
tell(const struct events *l, int64_t seq, struct hf_cursor *at, hf_event_fn cb,
    void *arg)
{
	for (size_t i = 0; i < l->n; i++) {
		struct hf_event_info *e = &l->event[i];

		e->turn_seq = seq;
		e->after_us = e->at_us - l->event[0].at_us;
		if ((int64_t)i < at->b)
			continue;
		at->b = (int64_t)i + 1;
		if (cb(arg, e) != 0)
			return 1;
	}
	return 0;
}

/* 1: told, there may be more turns.  0: there are none, or 'cb' wants none. */
static int
next_turn(struct hf_inspect *in, int64_t session, int64_t last,
    struct hf_cursor *at, hf_event_fn cb, void *arg, struct hf_error *e)
{
	struct events l = { 0 };
	sqlite3_stmt *st = hf_db_bind(
	    &in->db, HF_SQL_TIMELINE_TURN, e, "iii", session, at->a, last);
	int64_t id, seq;
	int rc;

	if (st == NULL)
		return e->code;
	rc = hf_db_step(&in->db, st, e);
	if (rc <= 0)
		return rc;
	hf_arena_init(&l.arena, 0);
	id = sqlite3_column_int64(st, 0);
	seq = sqlite3_column_int64(st, 1);
	if (seq != at->a)
		*at = (struct hf_cursor){ .a = seq };
	add_beginning(&l, st);
	add_leaving(&l, st);
	rc = add_attempts(in, &l, id, e);
	add_end(&l, st);
	hf_db_reset(st);
	if (rc == 0 && l.failed)
		rc = hf_fail(e, HF_ENOMEM, "events of a turn");
	if (rc == 0 && tell(&l, seq, at, cb, arg) == 0) {
		*at = (struct hf_cursor){ .a = seq + 1 };
		rc = 1;
	}
	hf_arena_free(&l.arena);
	free(l.event);
	return rc;
}

int
hf_inspect_timeline(struct hf_inspect *in, const struct hf_id *session,
    int64_t seq, struct hf_cursor *at, hf_event_fn cb, void *arg,
    struct hf_error *e)
{
	struct hf_error local;
	int64_t row;
	int rc;

	e = e == NULL ? &local : e;
	rc = hf_inspect_find(in, session, &row, NULL, e);
	if (seq != 0 && at->a == 0)
		at->a = seq;
	if (rc == 0)
		do
			rc = next_turn(in, row, seq != 0 ? seq : INT64_MAX, at,
			    cb, arg, e);
		while (rc > 0);
	return rc;
}

/* --- which turn ----------------------------------------------------------- */

/* The turn that the bound statement finds, if it is only one. */
static int
only(struct hf_inspect *in, sqlite3_stmt *st, const char *key, int64_t *seq,
    struct hf_error *e)
{
	int rc, n = 0;

	if (st == NULL)
		return e->code;
	while ((rc = hf_db_step(&in->db, st, e)) > 0) {
		*seq = sqlite3_column_int64(st, 0);
		n++;
	}
	if (rc < 0)
		return rc;
	if (n == 0)
		return hf_fail(e, HF_ENOTFOUND, "turn %s: not found", key);
	return n == 1 ?
	    0 :
	    hf_fail(e, HF_ECONFLICT, "turn %s: several ids begin so", key);
}

int
hf_inspect_turn_number(struct hf_inspect *in, const struct hf_id *session,
    const char *key, int64_t *seq, struct hf_error *e)
{
	struct hf_error local;
	char end[HF_ID_SIZE + 2];
	int64_t row, n;
	char *rest;
	int rc;

	e = e == NULL ? &local : e;
	rc = hf_inspect_find(in, session, &row, NULL, e);
	if (rc < 0)
		return rc;
	if (strncmp(key, "turn_", 5) == 0 && strlen(key) < HF_ID_SIZE) {
		snprintf(end, sizeof(end), "%s\x7f", key);
		return only(in,
		    hf_db_bind(
			&in->db, HF_SQL_TIMELINE_ID, e, "izz", row, key, end),
		    key, seq, e);
	}
	errno = 0;
	n = strtoll(key, &rest, 10);
	if (errno != 0 || *rest != '\0' || *key < '0' || *key > '9')
		n = 0;
	return only(in,
	    hf_db_bind(&in->db, HF_SQL_TIMELINE_SEQ, e, "ii", row, n), key, seq,
	    e);
}
