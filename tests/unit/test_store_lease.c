/*
 * Leases: order of arrival, grants and wakes, dead owners, zombies.
 */
#include <config.h>

#include <poll.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/store_fixture.h"

static void
twenty_in_order_of_arrival(void **state)
{
	struct fx_one t[20];
	struct fx_grants g;
	char text[32], want[2048] = "";
	size_t n = 0;
	struct fx f;

	(void)state;
	fx_open(&f);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "u%u", i);
		/* Through four workers; only the first may run. */
		assert_int_equal(
		    fx_one_begin(&f, 1 + i % 4, &t[i], "s", text), 0);
		assert_int_equal(t[i].begun.result,
		    i == 0 ? HF_BEGIN_OPEN : HF_BEGIN_QUEUED);
		assert_int_equal(t[i].begun.seq, i + 1);
		assert_string_equal(t[i].begun.session.s, t[0].begun.session.s);
	}
	for (unsigned i = 0; i < 20; i++) {
		unsigned slot = 1 + i % 4;

		snprintf(text, sizeof(text), "u%u", i);
		if (i > 0) {
			assert_true(fx_woken(&f, slot));
			g = fx_granted(&f, slot);
			assert_int_equal(g.n, 1);
			assert_int_equal(g.turn[0], t[i].begun.turn_row);
			/* What it knew when it was queued is stale. */
			t[i].b.turn_row = g.turn[0];
			t[i].b.session_row = t[i].begun.session_row;
			t[i].b.fence = g.fence[0];
			assert_int_equal(
			    fx_begin(&f, slot, &t[i].b, &t[i].begun), 0);
			assert_int_equal(t[i].begun.result, HF_BEGIN_MOVED);
			assert_int_equal(fx_one_begin_granted(&f, slot, &t[i],
					     "s", text, g.fence[0]),
			    0);
			assert_int_equal(t[i].begun.result, HF_BEGIN_OPEN);
			assert_int_equal(t[i].begun.fence, g.fence[0]);
			assert_int_equal(fx_granted(&f, slot).n, 0);
		}
		snprintf(text, sizeof(text), "a%u", i);
		assert_int_equal(fx_one_finish(&f, slot, &t[i], text), 0);
		n += (size_t)snprintf(want + n, sizeof(want) - n,
		    "%suser:u%u|assistant:a%u", i == 0 ? "" : "|", i, i);
	}
	assert_string_equal(fx_history(&f, 1, "s"), want);
	assert_int_equal(fx_sql(&f,
			     "SELECT count(*) FROM turn_blob WHERE"
			     " kind = 2"),
	    0);
	assert_false(fx_head(&f, 1, "s").busy);
	for (unsigned i = 1; i <= 4; i++)
		assert_false(fx_woken(&f, i));
	fx_close(&f);
}

static void
queue_limit(void **state)
{
	struct fx_one t[4];
	struct fx f;

	(void)state;
	fx_open(&f);
	f.conf[1].queue_limit = 2;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(fx_one_begin(&f, 1, &t[i], "s", "x"), 0);
	assert_int_equal(fx_one_begin(&f, 1, &t[3], "s", "x"), HF_ELIMIT);
	/* Other sessions are not concerned. */
	assert_int_equal(fx_one_begin(&f, 1, &t[3], "other", "x"), 0);
	assert_int_equal(t[3].begun.result, HF_BEGIN_OPEN);
	fx_close(&f);
}

static void
cancelled_while_waiting(void **state)
{
	struct fx_one t[4];
	struct fx_grants g;
	struct fx f;

	(void)state;
	fx_open(&f);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(fx_one_begin(&f, 1 + i, &t[i], "s", "x"), 0);
	/* Not by another process; not twice. */
	assert_int_equal(fx_cancel(&f, 3, t[1].begun.turn_row), HF_EFENCED);
	assert_int_equal(fx_cancel(&f, 2, t[1].begun.turn_row), 0);
	assert_int_equal(fx_cancel(&f, 2, t[1].begun.turn_row), HF_EFENCED);
	assert_int_equal(fx_one_finish(&f, 1, &t[0], "a"), 0);
	/* Granted, but its client left before it began: passed on. */
	g = fx_granted(&f, 3);
	assert_int_equal(g.n, 1);
	assert_int_equal(fx_cancel(&f, 3, t[2].begun.turn_row), 0);
	assert_int_equal(fx_granted(&f, 3).n, 0);
	assert_true(fx_woken(&f, 4));
	g = fx_granted(&f, 4);
	assert_int_equal(g.n, 1);
	assert_int_equal(
	    fx_one_begin_granted(&f, 4, &t[3], "s", "last", g.fence[0]), 0);
	assert_int_equal(fx_one_finish(&f, 4, &t[3], "b"), 0);
	assert_string_equal(
	    fx_history(&f, 1, "s"), "user:x|assistant:a|user:last|assistant:b");
	assert_int_equal(fx_sql(&f,
			     "SELECT count(*) FROM turn WHERE"
			     " state = 7"),
	    2);
	fx_close(&f);
}

/* The next T1 settles what a dead owner left, text and all. */
static void
dead_owner_is_settled_by_t1(void **state)
{
	struct fx_one dead, next;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "s", "one", "1");
	assert_int_equal(fx_one_begin(&f, 1, &dead, "s", "two"), 0);
	assert_int_equal(fx_part(&f, 1, &dead.begun, 1, "2 i"), 0);
	assert_int_equal(fx_part(&f, 1, &dead.begun, 2, "s two"), 0);
	fx_kill(&f, 1);
	assert_false(fx_head(&f, 2, "s").busy);
	assert_int_equal(fx_one_begin(&f, 2, &next, "s", "three"), 0);
	/* Its head is another one now. */
	assert_int_equal(next.begun.result, HF_BEGIN_MOVED);
	assert_int_equal(fx_head(&f, 2, "s").head_state, HF_TURN_INTERRUPTED);
	assert_int_equal(fx_head(&f, 2, "s").view_items, 4);
	assert_int_equal(fx_one_begin(&f, 2, &next, "s", "three"), 0);
	assert_int_equal(next.begun.result, HF_BEGIN_OPEN);
	assert_int_equal(fx_one_finish(&f, 2, &next, "3"), 0);
	assert_string_equal(fx_history(&f, 2, "s"),
	    "user:one|assistant:1|"
	    "user:two|assistant:2 is two|user:three|assistant:3");
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM part"), 0);
	assert_int_equal(fx_sql(&f,
			     "SELECT count(*) FROM attempt WHERE"
			     " class = 'lost'"),
	    1);
	fx_close(&f);
}

static void
zombie_writes_nothing(void **state)
{
	struct hf_attempt_begin more = { .n = 2, .target = HF_STR("b/m") };
	struct fx_one zombie, next;
	int64_t fenced;
	struct fx f;

	(void)state;
	fx_open(&f);
	assert_int_equal(fx_one_begin(&f, 1, &zombie, "s", "one"), 0);
	fx_kill(&f, 1);
	assert_int_equal(fx_one_begin(&f, 2, &next, "s", "two"), 0);
	assert_int_equal(fx_one_begin(&f, 2, &next, "s", "two"), 0);
	assert_int_equal(next.begun.result, HF_BEGIN_OPEN);
	assert_true(next.begun.fence > zombie.begun.fence);
	fenced = hf_shm_sum(&f.shm[0], HF_C_fenced);
	assert_int_equal(fx_part(&f, 1, &zombie.begun, 1, "late"), HF_EFENCED);
	assert_int_equal(
	    fx_attempts(&f, 1, &zombie.begun, NULL, &more), HF_EFENCED);
	assert_int_equal(fx_one_finish(&f, 1, &zombie, "late"), HF_EFENCED);
	/* Nor with the right fence, since it is not the owner. */
	zombie.begun = next.begun;
	assert_int_equal(fx_one_finish(&f, 1, &zombie, "late"), HF_EFENCED);
	assert_int_equal(hf_shm_sum(&f.shm[0], HF_C_fenced), fenced + 4);
	assert_int_equal(fx_one_finish(&f, 2, &next, "2"), 0);
	assert_string_equal(
	    fx_history(&f, 2, "s"), "user:one|user:two|assistant:2");
	fx_close(&f);
}

/* The owner dies, then one that waits: the second in the queue gets it. */
static void
dead_in_the_queue(void **state)
{
	struct fx_one t[4];
	struct hf_recovered r;
	struct fx_grants g;
	uint64_t inc;
	struct fx f;

	(void)state;
	fx_open(&f);
	inc = hf_shm_self_inc(&f.shm[1]);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(fx_one_begin(&f, 1 + i, &t[i], "s", "x"), 0);
	fx_kill(&f, 1);
	fx_kill(&f, 2);
	assert_int_equal(
	    hf_keep_reap(f.keep, 1, inc, fx_make_body, NULL, &r, &f.e), 0);
	assert_int_equal(r.turns_interrupted, 2);
	assert_int_equal(r.attempts_lost, 1);
	assert_true(fx_woken(&f, 3));
	g = fx_granted(&f, 3);
	assert_int_equal(g.n, 1);
	/* A turn that came after them waits behind them. */
	assert_int_equal(fx_granted(&f, 4).n, 0);
	/* It dies as well, between its grant and its begin. */
	fx_kill(&f, 3);
	assert_int_equal(
	    hf_keep_reap(f.keep, 0, 0, fx_make_body, NULL, &r, &f.e), 0);
	assert_int_equal(r.turns_interrupted, 1);
	assert_true(fx_woken(&f, 4));
	g = fx_granted(&f, 4);
	assert_int_equal(g.n, 1);
	assert_int_equal(
	    fx_one_begin_granted(&f, 4, &t[3], "s", "y", g.fence[0]), 0);
	assert_int_equal(t[3].begun.result, HF_BEGIN_OPEN);
	assert_int_equal(fx_one_finish(&f, 4, &t[3], "z"), 0);
	assert_string_equal(
	    fx_history(&f, 4, "s"), "user:x|user:y|assistant:z");
	fx_close(&f);
}

/* The owner is dead and others wait: T1 passes the lease on and queues. */
static void
t1_serves_the_queue_first(void **state)
{
	struct fx_one t[3];
	struct fx_grants g;
	struct fx f;

	(void)state;
	fx_open(&f);
	assert_int_equal(fx_one_begin(&f, 1, &t[0], "s", "a"), 0);
	assert_int_equal(fx_one_begin(&f, 2, &t[1], "s", "b"), 0);
	fx_kill(&f, 1);
	assert_int_equal(fx_one_begin(&f, 3, &t[2], "s", "c"), 0);
	assert_int_equal(t[2].begun.result, HF_BEGIN_QUEUED);
	assert_true(fx_woken(&f, 2));
	g = fx_granted(&f, 2);
	assert_int_equal(g.n, 1);
	assert_int_equal(
	    fx_one_begin_granted(&f, 2, &t[1], "s", "b", g.fence[0]), 0);
	assert_int_equal(fx_one_finish(&f, 2, &t[1], "B"), 0);
	g = fx_granted(&f, 3);
	assert_int_equal(g.n, 1);
	assert_int_equal(
	    fx_one_begin_granted(&f, 3, &t[2], "s", "c", g.fence[0]), 0);
	assert_int_equal(fx_one_finish(&f, 3, &t[2], "C"), 0);
	assert_string_equal(fx_history(&f, 2, "s"),
	    "user:a|user:b|assistant:B|user:c|assistant:C");
	fx_close(&f);
}

/* A new life in the same slot is not the old owner. */
static void
same_slot_new_life(void **state)
{
	struct fx_one t, u;
	struct fx f;

	(void)state;
	fx_open(&f);
	assert_int_equal(fx_one_begin(&f, 1, &t, "s", "a"), 0);
	fx_respawn(&f, 1);
	assert_false(fx_head(&f, 1, "s").busy);
	assert_int_equal(fx_one_finish(&f, 1, &t, "A"), HF_EFENCED);
	assert_int_equal(fx_one_begin(&f, 1, &u, "s", "b"), 0);
	assert_int_equal(u.begun.result, HF_BEGIN_MOVED);
	assert_int_equal(fx_one_begin(&f, 1, &u, "s", "b"), 0);
	assert_int_equal(u.begun.result, HF_BEGIN_OPEN);
	fx_close(&f);
}

/* Without make_body a text cannot be settled; nothing is thrown away. */
static void
no_make_body_no_loss(void **state)
{
	struct fx_one t, u;
	struct hf_recovered r;
	struct fx f;

	(void)state;
	fx_open(&f);
	assert_int_equal(fx_one_begin(&f, 1, &t, "s", "a"), 0);
	assert_int_equal(fx_part(&f, 1, &t.begun, 1, "text"), 0);
	fx_kill(&f, 1);
	assert_int_equal(hf_store_open(&f.st[2], &f.conf[2], &f.e), 0);
	assert_int_equal(fx_one_begin(&f, 2, &u, "s", "b"), HF_EINVAL);
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM part"), 1);
	assert_int_equal(
	    hf_keep_reap(f.keep, 0, 0, fx_make_body, NULL, &r, &f.e), 0);
	assert_int_equal(r.turns_interrupted, 1);
	assert_string_equal(fx_history(&f, 2, "s"), "user:a|assistant:text");
	fx_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(twenty_in_order_of_arrival),
		cmocka_unit_test(queue_limit),
		cmocka_unit_test(cancelled_while_waiting),
		cmocka_unit_test(dead_owner_is_settled_by_t1),
		cmocka_unit_test(zombie_writes_nothing),
		cmocka_unit_test(dead_in_the_queue),
		cmocka_unit_test(t1_serves_the_queue_first),
		cmocka_unit_test(same_slot_new_life),
		cmocka_unit_test(no_make_body_no_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
