/*
 * Turns of dead workers whose connections live: nobody settles them, one
 * process takes them over, the old owner writes nothing more.
 */
#include <config.h>

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "store/inspect.h"
#include "tests/unit/store_fixture.h"

struct got {
	bool done;
	int rc;
	struct hf_adopted a;
	char target[64];
};

static void
on_adopted(
    void *arg, int rc, const struct hf_error *e, const struct hf_adopted *a)
{
	struct got *g = arg;

	assert_false(g->done);
	assert_int_equal(rc < 0, e != NULL);
	g->done = true;
	g->rc = rc;
	g->a = *a;
	snprintf(g->target, sizeof(g->target), "%.*s", HF_STR_ARG(a->target));
}

static void
submit(struct fx *f, unsigned slot, const struct hf_adopt *a, struct got *g)
{
	*g = (struct got){ 0 };
	assert_int_equal(
	    hf_store_adopt(fx_store(f, slot), a, on_adopted, g, &f->e), 0);
}

static int
adopt(struct fx *f, unsigned slot, const char *name, const struct hf_id *turn,
    struct got *g)
{
	struct hf_adopt a = { .tenant = "acme", .name = hf_str(name) };

	a.turn = *turn;
	submit(f, slot, &a, g);
	fx_drain(f, slot);
	assert_true(g->done);
	return g->rc;
}

static struct hf_recovered
reap(struct fx *f, unsigned slot, uint64_t inc)
{
	struct hf_recovered r;

	assert_int_equal(
	    hf_keep_reap(f->keep, slot, inc, fx_make_body, NULL, &r, &f->e), 0);
	return r;
}

static void
verified(struct fx *f)
{
	struct hf_verified sum = { 0 };
	struct hf_cursor at = { 0 };
	struct hf_inspect *in;
	int rc;

	assert_int_equal(hf_inspect_open(&in, &f->conf[0], &f->e), 0);
	do
		rc = hf_verify_next(in, &at, NULL, NULL, &sum, &f->e);
	while (rc > 0);
	assert_int_equal(rc, 0);
	assert_int_equal(sum.corrupt + sum.odd, 0);
	hf_inspect_close(in);
}

/* The turn goes on in worker 'slot' as what 'g' says. */
static void
go_on(struct fx_one *t, const struct got *g)
{
	t->begun.session_row = g->a.session_row;
	t->begun.turn_row = g->a.turn_row;
	t->begun.fence = g->a.fence;
	t->h.key = g->a.key;
	memcpy(t->b.view, g->a.view, sizeof(t->b.view));
	t->b.view_items = g->a.view_items;
}

static void
held_turns_are_left_alone(void **state)
{
	struct hf_recovered r;
	struct fx_one t, next;
	uint32_t at;
	struct fx f;

	(void)state;
	fx_open(&f);
	assert_int_equal(fx_one_begin(&f, 1, &t, "s", "one"), 0);
	at = fx_hold(&f, 1, &t.b.turn);
	fx_kill(&f, 1);
	r = reap(&f, 0, 0);
	assert_int_equal(r.turns_interrupted, 0);
	assert_int_equal(r.turns_held, 1);
	/* The next turn waits for the one that will be gone on with. */
	assert_int_equal(fx_one_begin(&f, 2, &next, "s", "two"), 0);
	assert_int_equal(next.begun.result, HF_BEGIN_QUEUED);
	assert_int_equal(
	    fx_sql(&f, "SELECT count(*) FROM turn WHERE state = 2"), 1);
	/* Its connection ended, and nobody took it over. */
	hf_hold_give(&f.hold, at);
	r = reap(&f, 0, 0);
	assert_int_equal(r.turns_interrupted, 1);
	assert_int_equal(r.turns_held, 0);
	assert_true(fx_woken(&f, 2));
	assert_int_equal(fx_granted(&f, 2).n, 1);
	fx_close(&f);
}

static void
a_new_boot_settles_all(void **state)
{
	struct hf_recovered r;
	struct fx_one t;
	uint64_t boot;
	struct fx f;

	(void)state;
	fx_open(&f);
	assert_int_equal(fx_one_begin(&f, 1, &t, "s", "one"), 0);
	fx_hold(&f, 1, &t.b.turn);
	assert_int_equal(
	    hf_keep_recover(f.keep, fx_make_body, NULL, &boot, &r, &f.e), 0);
	assert_int_equal(r.turns_interrupted, 1);
	fx_close(&f);
}

static void
open_turn_goes_on(void **state)
{
	struct hf_attempt_begin more = { .n = 2, .target = HF_STR("b/m") };
	struct fx_one t, old;
	struct got g;
	int64_t rows;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "s", "zero", "0");
	t.h = fx_head(&f, 1, "s");
	t.b = fx_turn("s", &t.h, &t.in, "one");
	t.b.stream = true;
	t.b.created_us = 12345;
	assert_int_equal(fx_begin(&f, 1, &t.b, &t.begun), 0);
	assert_int_equal(fx_part(&f, 1, &t.begun, 0, "1 i"), 0);
	assert_int_equal(fx_part(&f, 1, &t.begun, 1, "s "), 0);
	old = t;
	fx_hold(&f, 1, &t.b.turn);
	fx_kill(&f, 1);

	assert_int_equal(adopt(&f, 2, "s", &t.b.turn, &g), 0);
	assert_true(g.a.found);
	assert_int_equal(g.a.state, HF_TURN_OPEN);
	assert_int_equal(g.a.turn_row, t.begun.turn_row);
	assert_int_equal(g.a.seq, 2);
	assert_string_equal(g.a.session.s, t.h.session.s);
	assert_int_equal(g.a.fence, t.begun.fence + 1);
	assert_int_equal(g.a.created_us, 12345);
	assert_int_equal(g.a.attempts, 1);
	assert_true(g.a.calling);
	assert_string_equal(g.target, "a/model");
	assert_true(g.a.stream);
	assert_int_equal(g.a.parts, 2);
	assert_int_equal(g.a.view_items, t.b.view_items);
	assert_memory_equal(g.a.view, t.b.view, HF_DIGEST_SIZE);
	assert_memory_equal(&g.a.key, &t.h.key, sizeof(g.a.key));
	assert_int_equal(
	    fx_sql(&f, "SELECT count(*) FROM attempt WHERE class = 'lost'"), 1);
	/* It lives: nobody settles it, hold or no hold. */
	assert_int_equal(reap(&f, 0, 0).turns_held, 0);

	/* What the old owner still does changes no row. */
	rows = fx_sql(&f, "SELECT total(id) FROM part");
	assert_int_equal(fx_part(&f, 1, &old.begun, 2, "late"), HF_EFENCED);
	assert_int_equal(
	    fx_attempts(&f, 1, &old.begun, NULL, &more), HF_EFENCED);
	assert_int_equal(fx_one_finish(&f, 1, &old, "late"), HF_EFENCED);
	assert_int_equal(fx_sql(&f, "SELECT total(id) FROM part"), rows);
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM attempt"), 2);

	go_on(&t, &g);
	assert_int_equal(fx_part(&f, 2, &t.begun, 2, "one"), 0);
	assert_int_equal(fx_attempts(&f, 2, &t.begun, NULL, &more), 0);
	t.fin = fx_answer(&t.b, &t.begun, &t.h.key, &t.out, "1 is one");
	t.fin.attempt.n = 2;
	assert_int_equal(fx_finish(&f, 2, &t.fin), 0);
	assert_string_equal(fx_history(&f, 2, "s"),
	    "user:zero|assistant:0|user:one|assistant:1 is one");
	verified(&f);
	fx_close(&f);
}

/* A plain answer begins again: what there is of its text is dropped. */
static void
plain_turn_begins_again(void **state)
{
	struct fx_one t;
	struct got g;
	struct fx f;

	(void)state;
	fx_open(&f);
	assert_int_equal(fx_one_begin(&f, 1, &t, "s", "one"), 0);
	assert_int_equal(fx_part(&f, 1, &t.begun, 0, "1 i"), 0);
	fx_hold(&f, 1, &t.b.turn);
	fx_kill(&f, 1);
	assert_int_equal(adopt(&f, 2, "s", &t.b.turn, &g), 0);
	assert_false(g.a.stream);
	assert_int_equal(g.a.parts, 0);
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM part"), 0);
	fx_close(&f);
}

/* Its place in the queue stays, and the grant finds the new owner. */
static void
queued_turn_keeps_its_place(void **state)
{
	struct fx_one t[4];
	struct fx_grants gr;
	struct got g;
	struct fx f;

	(void)state;
	fx_open(&f);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(fx_one_begin(&f, 1 + i, &t[i], "s", "x"), 0);
	fx_hold(&f, 3, &t[2].b.turn);
	fx_kill(&f, 2);
	fx_kill(&f, 3);
	assert_int_equal(reap(&f, 0, 0).turns_interrupted, 1);
	assert_int_equal(adopt(&f, 5, "s", &t[2].b.turn, &g), 0);
	assert_int_equal(g.a.state, HF_TURN_QUEUED);
	assert_int_equal(g.a.fence, 0);
	assert_int_equal(fx_cancel(&f, 3, t[2].begun.turn_row), HF_EFENCED);
	assert_int_equal(fx_one_finish(&f, 1, &t[0], "a"), 0);
	assert_true(fx_woken(&f, 5));
	assert_int_equal(fx_granted(&f, 4).n, 0);
	gr = fx_granted(&f, 5);
	assert_int_equal(gr.n, 1);
	assert_int_equal(
	    fx_one_begin_granted(&f, 5, &t[2], "s", "y", gr.fence[0]), 0);
	assert_int_equal(fx_one_finish(&f, 5, &t[2], "b"), 0);
	gr = fx_granted(&f, 4);
	assert_int_equal(gr.n, 1);
	assert_int_equal(
	    fx_one_begin_granted(&f, 4, &t[3], "s", "z", gr.fence[0]), 0);
	assert_int_equal(fx_one_finish(&f, 4, &t[3], "c"), 0);
	assert_string_equal(fx_history(&f, 4, "s"),
	    "user:x|assistant:a|user:y|assistant:b|user:z|assistant:c");
	verified(&f);
	fx_close(&f);
}

/* The lease comes to a turn whose owner is dead and not replaced yet. */
static void
granted_while_dead(void **state)
{
	struct fx_one t[2];
	struct got g;
	struct fx f;

	(void)state;
	fx_open(&f);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(fx_one_begin(&f, 1 + i, &t[i], "s", "x"), 0);
	fx_hold(&f, 2, &t[1].b.turn);
	fx_kill(&f, 2);
	assert_int_equal(fx_one_finish(&f, 1, &t[0], "a"), 0);
	assert_int_equal(reap(&f, 0, 0).turns_held, 1);
	assert_int_equal(adopt(&f, 3, "s", &t[1].b.turn, &g), 0);
	assert_int_equal(g.a.state, HF_TURN_QUEUED);
	assert_true(g.a.fence > t[0].begun.fence + 1);
	assert_int_equal(
	    fx_one_begin_granted(&f, 3, &t[1], "s", "y", g.a.fence), 0);
	assert_int_equal(t[1].begun.result, HF_BEGIN_OPEN);
	assert_int_equal(fx_one_finish(&f, 3, &t[1], "b"), 0);
	assert_string_equal(
	    fx_history(&f, 3, "s"), "user:x|assistant:a|user:y|assistant:b");
	verified(&f);
	fx_close(&f);
}

static void
ended_turns_are_described(void **state)
{
	struct fx_one t[2];
	struct got g;
	struct fx f;

	(void)state;
	fx_open(&f);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(fx_one_begin(&f, 1, &t[i], "s", "x"), 0);
		t[i].fin = fx_answer(
		    &t[i].b, &t[i].begun, &t[i].h.key, &t[i].out, "a");
		if (i == 1) {
			t[i].fin.state = HF_TURN_FAILED;
			t[i].fin.n_item = 0;
			t[i].fin.status = 429;
		}
		assert_int_equal(fx_finish(&f, 1, &t[i].fin), 0);
	}
	fx_kill(&f, 1);
	assert_int_equal(adopt(&f, 2, "s", &t[0].b.turn, &g), 0);
	assert_int_equal(g.a.state, HF_TURN_COMPLETE);
	assert_int_equal(g.a.turn_row, t[0].begun.turn_row);
	assert_int_equal(adopt(&f, 2, "s", &t[1].b.turn, &g), 0);
	assert_int_equal(g.a.state, HF_TURN_FAILED);
	assert_int_equal(g.a.status, 429);
	assert_int_equal(g.a.fence, 0);
	fx_close(&f);
}

static void
whose_it_is_not(void **state)
{
	struct hf_adopt a = { .tenant = "other", .name = HF_STR("s") };
	struct hf_id none;
	struct fx_one t;
	struct got g;
	struct fx f;

	(void)state;
	fx_open(&f);
	assert_int_equal(fx_one_begin(&f, 1, &t, "s", "x"), 0);
	/* The owner lives. */
	assert_int_equal(adopt(&f, 2, "s", &t.b.turn, &g), HF_EFENCED);
	fx_kill(&f, 1);
	/* There is no such turn, or not in that session. */
	hf_id_make(&none, "turn_");
	assert_int_equal(adopt(&f, 2, "s", &none, &g), 0);
	assert_false(g.a.found);
	assert_int_equal(adopt(&f, 2, "nowhere", &t.b.turn, &g), 0);
	assert_false(g.a.found);
	/* Another tenant, by name and by the session's id. */
	a.turn = t.b.turn;
	for (unsigned i = 0; i < 2; i++) {
		submit(&f, 2, &a, &g);
		fx_drain(&f, 2);
		assert_int_equal(g.rc, 0);
		assert_false(g.a.found);
		a.name = hf_str(t.begun.session.s);
		fx_sql(&f,
		    "INSERT OR IGNORE INTO tenant (name, created_us)"
		    " VALUES ('other', 1)");
	}
	/* Its own, by that id. */
	assert_int_equal(adopt(&f, 2, t.begun.session.s, &t.b.turn, &g), 0);
	assert_int_equal(g.a.state, HF_TURN_OPEN);
	/* And now that one lives. */
	assert_int_equal(adopt(&f, 3, "s", &t.b.turn, &g), HF_EFENCED);
	fx_close(&f);
}

/* Without a session's name: by the turn's id, or by the key. */
static void
nameless_turns_are_found(void **state)
{
	struct hf_adopt a = { .tenant = "acme" };
	struct hf_head none = { 0 };
	struct fx_one t, again;
	struct got g;
	struct fx f;

	(void)state;
	fx_open(&f);
	hf_store_new_session_key(&none.key);
	t.b = fx_turn("", &none, &t.in, "x");
	hf_nameless_session(&t.b.turn, &t.b.session);
	t.b.has_idem = true;
	memset(t.b.idem, 7, sizeof(t.b.idem));
	assert_int_equal(fx_begin(&f, 1, &t.b, &t.begun), 0);
	assert_int_equal(t.begun.result, HF_BEGIN_OPEN);
	fx_kill(&f, 1);
	assert_int_equal(adopt(&f, 2, "", &t.b.turn, &g), 0);
	assert_int_equal(g.a.state, HF_TURN_OPEN);
	assert_int_equal(g.a.turn_row, t.begun.turn_row);

	/* It failed; the next one of that key is in the same session. */
	go_on(&t, &g);
	t.fin = fx_answer(&t.b, &t.begun, &t.h.key, &t.out, "a");
	t.fin.state = HF_TURN_FAILED;
	t.fin.n_item = 0;
	t.fin.attempt.n = 0;
	assert_int_equal(fx_finish(&f, 2, &t.fin), 0);
	again.h = fx_head(&f, 2, t.begun.session.s);
	again.b = fx_turn(t.begun.session.s, &again.h, &again.in, "x");
	again.b.has_idem = true;
	memset(again.b.idem, 7, sizeof(again.b.idem));
	assert_int_equal(fx_begin(&f, 2, &again.b, &again.begun), 0);
	assert_int_equal(again.begun.result, HF_BEGIN_OPEN);
	fx_kill(&f, 2);
	assert_int_equal(adopt(&f, 3, "", &again.b.turn, &g), 0);
	assert_false(g.a.found);
	a.turn = again.b.turn;
	a.has_idem = true;
	memset(a.idem, 7, sizeof(a.idem));
	submit(&f, 3, &a, &g);
	fx_drain(&f, 3);
	assert_int_equal(g.rc, 0);
	assert_int_equal(g.a.turn_row, again.begun.turn_row);
	fx_close(&f);
}

/* The commit fails, or the adopter is not sure: it tries again. */
static void
tried_again(void **state)
{
	struct fx_one t;
	struct got g;
	struct fx f;

	(void)state;
	fx_open(&f);
	assert_int_equal(fx_one_begin(&f, 1, &t, "s", "x"), 0);
	fx_kill(&f, 1);
#ifdef HF_FAULTS
	fx_fault("store.adopt.before_commit=fail");
	assert_int_equal(adopt(&f, 2, "s", &t.b.turn, &g), HF_EIO);
	fx_fault(NULL);
	assert_int_equal(
	    fx_sql(&f, "SELECT count(*) FROM attempt WHERE ended_us = 0"), 1);
#endif
	assert_int_equal(adopt(&f, 2, "s", &t.b.turn, &g), 0);
	assert_int_equal(g.a.fence, t.begun.fence + 1);
	assert_int_equal(adopt(&f, 2, "s", &t.b.turn, &g), 0);
	assert_int_equal(g.a.fence, t.begun.fence + 2);
	/* It dies as well. */
	fx_kill(&f, 2);
	assert_int_equal(adopt(&f, 3, "s", &t.b.turn, &g), 0);
	assert_int_equal(g.a.fence, t.begun.fence + 3);
	fx_close(&f);
}

/* --- at the same time ------------------------------------------------------
 */

static void *
reaps(void *arg)
{
	struct fx *f = arg;
	struct hf_recovered r;

	return hf_keep_reap(f->keep, 0, 0, fx_make_body, NULL, &r, NULL) < 0 ?
	    f :
	    NULL;
}

/* The adopter, the keeper and another turn of the session, in any order. */
static void
race(bool held, unsigned *adopted)
{
	struct hf_adopt a = { .tenant = "acme", .name = HF_STR("s") };
	struct fx_one t, next;
	pthread_t keeper;
	void *failed;
	struct got g;
	struct fx f;
	int rc;

	fx_open(&f);
	assert_int_equal(fx_one_begin(&f, 1, &t, "s", "one"), 0);
	if (held)
		fx_hold(&f, 1, &t.b.turn);
	fx_store(&f, 2);
	fx_store(&f, 3);
	fx_kill(&f, 1);
	a.turn = t.b.turn;
	assert_int_equal(pthread_create(&keeper, NULL, reaps, &f), 0);
	submit(&f, 2, &a, &g);
	rc = fx_one_begin(&f, 3, &next, "s", "two");
	fx_drain(&f, 2);
	assert_int_equal(pthread_join(keeper, &failed), 0);
	assert_null(failed);
	assert_int_equal(rc, 0);
	assert_int_equal(g.rc, 0);
	assert_true(g.a.found);
	if (g.a.state == HF_TURN_OPEN) {
		(*adopted)++;
		assert_int_equal(next.begun.result, HF_BEGIN_QUEUED);
		go_on(&t, &g);
		t.fin = fx_answer(&t.b, &t.begun, &t.h.key, &t.out, "1");
		t.fin.attempt.n = 0;
		assert_int_equal(fx_finish(&f, 2, &t.fin), 0);
		assert_int_equal(fx_granted(&f, 3).n, 1);
	} else {
		assert_false(held);
		assert_int_equal(g.a.state, HF_TURN_INTERRUPTED);
		assert_int_not_equal(next.begun.result, HF_BEGIN_QUEUED);
	}
	verified(&f);
	fx_close(&f);
}

static void
races(void **state)
{
	unsigned held = 0, not_held = 0;

	(void)state;
	for (unsigned i = 0; i < 30; i++) {
		race(true, &held);
		race(false, &not_held);
	}
	assert_int_equal(held, 30);
	print_message("adopted without a hold: %u of 30\n", not_held);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_turns_are_left_alone),
		cmocka_unit_test(a_new_boot_settles_all),
		cmocka_unit_test(open_turn_goes_on),
		cmocka_unit_test(plain_turn_begins_again),
		cmocka_unit_test(queued_turn_keeps_its_place),
		cmocka_unit_test(granted_while_dead),
		cmocka_unit_test(ended_turns_are_described),
		cmocka_unit_test(whose_it_is_not),
		cmocka_unit_test(nameless_turns_are_found),
		cmocka_unit_test(tried_again),
		cmocka_unit_test(races),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
