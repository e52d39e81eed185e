/*
 * Leases: passing on, settling the dead.
 */
#include <config.h>

#include "store/lease.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/parts.h"

struct owner {
	int64_t turn; /* 0: nobody */
	unsigned slot;
	uint64_t inc;
};

int
hf_lease_dequeue(struct hf_writer *w, int64_t turn, enum hf_turn_state state,
    struct hf_error *e)
{
	int rc = hf_db_run(&w->db, HF_SQL_TURN_DEQUEUE, e, "iii", turn,
	    (int64_t)state, hf_wall_us());

	if (rc == 0)
		return hf_fail(e, HF_EFENCED, "turn %lld: not queued any more",
		    (long long)turn);
	if (rc > 0)
		rc = hf_row_drop_request(w, turn, e);
	if (rc == 0 && state == HF_TURN_INTERRUPTED)
		w->interrupted++;
	return rc;
}

/* Of a row of TURN_QUEUE. */
static bool
is_orphan(struct hf_writer *w, sqlite3_stmt *st)
{
	struct hf_id public;

	hf_db_id(st, 3, &public);
	return hf_writer_orphan(w, (unsigned)sqlite3_column_int64(st, 1),
	    (uint64_t)sqlite3_column_int64(st, 2), public.s);
}

/* The first turn that waits for 'session', whoever owns it. */
static int
first_waiting(struct hf_writer *w, int64_t session, struct owner *o,
    bool *orphan, struct hf_error *e)
{
	sqlite3_stmt *st =
	    hf_db_bind(&w->db, HF_SQL_TURN_QUEUE, e, "ii", session, (int64_t)0);
	int rc;

	memset(o, 0, sizeof(*o));
	if (st == NULL)
		return e->code;
	rc = hf_db_step(&w->db, st, e);
	if (rc <= 0)
		return rc;
	o->turn = sqlite3_column_int64(st, 0);
	o->slot = (unsigned)sqlite3_column_int64(st, 1);
	o->inc = (uint64_t)sqlite3_column_int64(st, 2);
	*orphan = is_orphan(w, st);
	hf_db_reset(st);
	return 0;
}

static int
next_live(struct hf_writer *w, const struct hf_session_row *s, struct owner *o,
    struct hf_error *e)
{
	bool orphan;
	int rc;

	memset(o, 0, sizeof(*o));
	if (!s->waited)
		return 0;
	for (;;) {
		rc = first_waiting(w, s->id, o, &orphan, e);
		if (rc < 0 || o->turn == 0 || !orphan)
			return rc;
		rc = hf_lease_dequeue(w, o->turn, HF_TURN_INTERRUPTED, e);
		if (rc < 0)
			return rc;
	}
}

static int
set_owner(struct hf_writer *w, struct hf_session_row *s, const struct owner *to,
    int64_t head, int64_t rev_add, struct hf_error *e)
{
	int64_t now = hf_wall_us();
	uint64_t fence = s->fence + (to->turn != 0 ? 1 : 0);
	int rc = hf_db_run(&w->db, HF_SQL_SESSION_PASS, e, "iiiiiiiiiiiii",
	    s->id, (int64_t)s->owner_slot, (int64_t)s->owner_inc,
	    (int64_t)s->fence, s->lease_turn, head, rev_add, now,
	    (int64_t)to->slot, (int64_t)to->inc, (int64_t)fence,
	    to->turn != 0 ? now : (int64_t)0, to->turn);

	if (rc == 0)
		return hf_fail(
		    e, HF_EFENCED, "session %s: its lease moved", s->public.s);
	if (rc < 0)
		return rc;
	s->head = head;
	s->rev += rev_add;
	s->owner_slot = to->slot;
	s->owner_inc = to->inc;
	s->fence = fence;
	s->lease_turn = to->turn;
	if (to->turn != 0 && to->slot < HF_SHM_SLOTS)
		w->wake[to->slot] = true;
	return 0;
}

int
hf_lease_take_over(
    struct hf_writer *w, struct hf_session_row *s, struct hf_error *e)
{
	const struct owner self = { s->lease_turn, w->slot, w->inc };

	return set_owner(w, s, &self, s->head, 0, e);
}

int
hf_lease_pass(struct hf_writer *w, struct hf_session_row *s, int64_t head,
    int64_t rev_add, struct hf_error *e)
{
	struct owner to;
	int rc = next_live(w, s, &to, e);

	return rc < 0 ? rc : set_owner(w, s, &to, head, rev_add, e);
}

/* Make the parts of a dead owner's turn its output item.  *said gets the size
 * of their text, and t->heard is no more than that. */
static int
parts_to_item(struct hf_writer *w, const struct hf_seal_key *key,
    struct hf_turn_row *t, int64_t *said, struct hf_error *e)
{
	const struct hf_parts_text all = { .n = HF_PARTS_ALL,
		.heard = t->heard };
	size_t size;
	int rc = hf_parts_to_item(w, key, t, &all, &size, e);

	*said = (int64_t)size;
	if (t->heard > *said)
		t->heard = *said;
	if (rc == 0)
		rc = hf_db_run(&w->db, HF_SQL_PART_DROP, e, "ii",
		    hf_row_child(t->id, 0), hf_row_child(t->id + 1, 0));
	return rc < 0 ? rc : 0;
}

int
hf_lease_lost(
    struct hf_writer *w, const struct hf_turn_row *t, struct hf_error *e)
{
	int rc = hf_db_run(&w->db, HF_SQL_ATTEMPT_LOST, e, "iii",
	    hf_row_child(t->id, 0), hf_row_child(t->id + 1, 0), hf_wall_us());

	if (rc < 0)
		return rc;
	w->lost += rc;
	return 0;
}

int
hf_lease_interrupt(struct hf_writer *w, const struct hf_seal_key *key,
    struct hf_turn_row *t, struct hf_error *e)
{
	const int64_t unknown = -1; /* tokens */
	int64_t now = hf_wall_us(), said = -1;
	const char *class = NULL;
	int rc = key == NULL ? HF_ECORRUPT : parts_to_item(w, key, t, &said, e);

	if (rc == HF_ECORRUPT) {
		/* The parts stay for whoever looks into it; the session must
		 * not be locked for ever because of them. */
		hf_log(HF_LOG_ERROR,
		    "store: interrupted text is lost "
		    "turn_row=%lld: %s",
		    (long long)t->id,
		    key == NULL ? "the session's key does not open" : e->text);
		class = "gateway";
		said = t->heard = -1;
		rc = 0;
	}
	if (rc < 0)
		return rc;
	rc = hf_db_run(&w->db, HF_SQL_TURN_CLOSE, e, "iiiiddizziiiiiiii", t->id,
	    (int64_t)HF_TURN_INTERRUPTED, t->n_items, t->view_items, t->chain,
	    t->view, now, NULL, class, (int64_t)0, unknown, unknown, unknown,
	    unknown, said, t->heard, (int64_t)0);
	if (rc < 0)
		return rc;
	w->interrupted++;
	return hf_lease_lost(w, t, e);
}

/* The owner is dead: its turn waits for whoever takes it over, or ends. */
static int
settle_owner(struct hf_writer *w, struct hf_session_row *s, struct hf_error *e)
{
	struct hf_turn_row t;
	int64_t rev_add = 0;
	int rc = hf_row_turn(w, s->lease_turn, &t, e);

	if (rc > 0 && t.state < HF_TURN_COMPLETE &&
	    !hf_writer_orphan(w, s->owner_slot, s->owner_inc, t.public.s))
		return 0;
	if (rc > 0 && t.state == HF_TURN_OPEN) {
		rc = hf_lease_interrupt(w, &s->key, &t, e);
		rev_add = 1;
	} else if (rc > 0 && t.state == HF_TURN_QUEUED) {
		rc = hf_lease_dequeue(w, t.id, HF_TURN_INTERRUPTED, e);
	}
	if (rc < 0)
		return rc;
	return hf_lease_pass(w, s, s->head, rev_add, e);
}

int
hf_lease_tidy(struct hf_writer *w, struct hf_session_row *s, struct hf_error *e)
{
	struct owner to;
	int rc;

	if (s->owner_inc != 0 && hf_writer_dead(w, s->owner_slot, s->owner_inc))
		return settle_owner(w, s, e);
	if (s->owner_inc != 0)
		return 0;
	rc = next_live(w, s, &to, e);
	if (rc < 0 || to.turn == 0)
		return rc;
	return set_owner(w, s, &to, s->head, 0, e);
}

int
hf_lease_waiting(struct hf_writer *w, const struct hf_session_row *s,
    unsigned *n, struct hf_error *e)
{
	sqlite3_stmt *st = hf_db_bind(
	    &w->db, HF_SQL_TURN_QUEUE, e, "ii", s->id, s->lease_turn);
	int rc;

	*n = 0;
	if (st == NULL)
		return e->code;
	while ((rc = hf_db_step(&w->db, st, e)) > 0)
		if (!is_orphan(w, st))
			(*n)++;
	return rc;
}
