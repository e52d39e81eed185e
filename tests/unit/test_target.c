/*
 * What workers share of a target: the breaker's states, leases of probes,
 * calls in flight, and the pace, by one process and by several at once.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/target.h"

#define SEC ((int64_t)1000000)
#define PROCESSES 4

static struct hf_shm shm;

static const struct hf_conf_call calm = {
	.connect_ms = 1000,
	.first_token_ms = 3000,
	.total_ms = 60000,
	.breaker_failures = 3,
	.breaker_open_ms = 10000,
	.breaker_ramp = 4,
	.rpm_window_ms = 3000,
};

static int
setup(void **state)
{
	struct hf_error e;

	(void)state;
	if (hf_shm_create(&shm, NULL, &e) < 0)
		return -1;
	shm.self = 1;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	hf_shm_unmap(&shm);
	return 0;
}

static struct hf_target_row *
row(void)
{
	return hf_target_row(&shm, "p/m");
}

/* One call at 'now'; false: it was not let through. */
static bool
begin(struct hf_ticket *k, bool forced, int64_t now)
{
	struct hf_claim none = { 0 };

	return hf_target_take(&shm, row(), &calm, forced, now, &none, k) ==
	    HF_ADMIT_CALL;
}

static bool
call(enum hf_health v, int64_t now)
{
	struct hf_ticket k;

	if (!begin(&k, false, now))
		return false;
	hf_target_end(&shm, &k, &calm, v, now);
	return true;
}

static enum hf_breaker_state
state_now(void)
{
	return hf_breaker_view(&row()->breaker).state;
}

static void
open_it(int64_t now)
{
	for (int i = 0; i < 3; i++)
		assert_true(call(HF_HEALTH_FAILED, now));
	assert_int_equal(state_now(), HF_BREAKER_OPEN);
}

static void
opens_after_failures_in_a_row(void **state)
{
	(void)state;
	assert_true(call(HF_HEALTH_FAILED, SEC));
	assert_true(call(HF_HEALTH_FAILED, SEC));
	assert_true(call(HF_HEALTH_ANSWERED, SEC));
	assert_true(call(HF_HEALTH_FAILED, SEC));
	assert_true(call(HF_HEALTH_FAILED, SEC));
	for (int i = 0; i < 50; i++)
		assert_true(call(HF_HEALTH_NEUTRAL, SEC));
	assert_int_equal(hf_target_opens_us(row(), SEC), 0);
	assert_true(call(HF_HEALTH_FAILED, SEC));
	assert_false(call(HF_HEALTH_ANSWERED, SEC));
	assert_int_equal(hf_target_opens_us(row(), SEC), 11 * SEC);
	assert_int_equal(hf_target_opens_us(row(), 11 * SEC), 0);
	assert_int_equal(hf_target_in_flight(row()), 0);
}

/* What was in flight when it opened says nothing of what comes later. */
static void
late_words_are_not_heard(void **state)
{
	struct hf_ticket old, probe;

	(void)state;
	assert_true(begin(&old, false, SEC));
	open_it(2 * SEC);
	assert_true(begin(&probe, false, 12 * SEC));
	hf_target_end(&shm, &probe, &calm, HF_HEALTH_ANSWERED, 12 * SEC);
	assert_int_equal(state_now(), HF_BREAKER_RAMP);
	hf_target_end(&shm, &old, &calm, HF_HEALTH_FAILED, 13 * SEC);
	assert_int_equal(state_now(), HF_BREAKER_RAMP);
}

static void
probe_then_ramp(void **state)
{
	struct hf_ticket probe, k[4];

	(void)state;
	open_it(SEC);
	assert_true(begin(&probe, false, 11 * SEC));
	assert_int_equal(state_now(), HF_BREAKER_PROBED);
	assert_false(call(HF_HEALTH_ANSWERED, 11 * SEC));
	assert_true(hf_target_opens_us(row(), 11 * SEC) == INT64_MAX);
	hf_target_answers(&probe, &calm, 12 * SEC);
	assert_int_equal(state_now(), HF_BREAKER_RAMP);
	/* One at a time, which is the probe; then one more with each answer. */
	assert_false(begin(&k[0], false, 12 * SEC));
	hf_target_end(&shm, &probe, &calm, HF_HEALTH_ANSWERED, 12 * SEC);
	assert_true(begin(&k[0], false, 12 * SEC));
	assert_true(begin(&k[1], false, 12 * SEC));
	assert_false(begin(&k[2], false, 12 * SEC));
	for (int i = 0; i < 2; i++)
		hf_target_end(&shm, &k[i], &calm, HF_HEALTH_ANSWERED, 13 * SEC);
	for (int i = 0; i < 4; i++)
		assert_true(begin(&k[i], false, 13 * SEC));
	hf_target_end(&shm, &k[0], &calm, HF_HEALTH_ANSWERED, 14 * SEC);
	assert_int_equal(state_now(), HF_BREAKER_CLOSED);
	for (int i = 1; i < 4; i++)
		hf_target_end(&shm, &k[i], &calm, HF_HEALTH_NEUTRAL, 14 * SEC);
}

static void
failed_probe_and_failed_ramp(void **state)
{
	(void)state;
	open_it(SEC);
	assert_true(call(HF_HEALTH_FAILED, 11 * SEC));
	assert_int_equal(hf_target_opens_us(row(), 11 * SEC), 21 * SEC);
	assert_true(call(HF_HEALTH_ANSWERED, 21 * SEC));
	assert_int_equal(state_now(), HF_BREAKER_RAMP);
	assert_true(call(HF_HEALTH_FAILED, 22 * SEC));
	assert_int_equal(hf_target_opens_us(row(), 22 * SEC), 32 * SEC);
}

/* A client that leaves, a worker that dies, a probe that hangs: the next turn
 * probes. */
static void
probe_never_wedges(void **state)
{
	struct hf_ticket k;

	(void)state;
	open_it(SEC);
	assert_true(begin(&k, false, 11 * SEC));
	hf_target_end(&shm, &k, &calm, HF_HEALTH_NEUTRAL, 12 * SEC);
	assert_int_equal(hf_target_opens_us(row(), 12 * SEC), 0);

	assert_true(begin(&k, false, 12 * SEC));
	assert_false(call(HF_HEALTH_ANSWERED, 12 * SEC));
	hf_breaker_died(&row()->breaker, 2, 12 * SEC);
	assert_false(call(HF_HEALTH_ANSWERED, 12 * SEC));
	hf_breaker_died(&row()->breaker, 1, 12 * SEC);
	assert_int_equal(hf_target_opens_us(row(), 12 * SEC), 0);
	hf_target_end(&shm, &k, &calm, HF_HEALTH_FAILED, 12 * SEC);
	assert_int_equal(state_now(), HF_BREAKER_OPEN);

	assert_true(begin(&k, false, 12 * SEC));
	/* connect_ms, first_token_ms and a second. */
	assert_false(call(HF_HEALTH_ANSWERED, 16 * SEC));
	assert_true(call(HF_HEALTH_ANSWERED, 17 * SEC));
	assert_int_equal(state_now(), HF_BREAKER_RAMP);
	/* Its first owner has nothing to say any more. */
	hf_target_end(&shm, &k, &calm, HF_HEALTH_FAILED, 16 * SEC);
}

static void
forced_probe_is_one(void **state)
{
	struct hf_ticket a, b;

	(void)state;
	open_it(SEC);
	assert_false(begin(&a, false, 2 * SEC));
	assert_true(begin(&a, true, 2 * SEC));
	assert_false(begin(&b, true, 2 * SEC));
	hf_target_end(&shm, &a, &calm, HF_HEALTH_ANSWERED, 2 * SEC);
	assert_int_equal(state_now(), HF_BREAKER_RAMP);
}

static void
death_leaks_no_call(void **state)
{
	struct hf_ticket k;

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		shm.self = 1 + i % 4;
		atomic_store(&shm.h->slot[shm.self].inc, 1000 + i);
		assert_true(begin(&k, false, SEC));
		assert_true(begin(&k, false, SEC));
		assert_int_equal(hf_target_in_flight(row()), 2);
		hf_shm_retire(&shm, shm.self);
		assert_int_equal(hf_target_in_flight(row()), 0);
	}
}

static void
max_in_flight(void **state)
{
	struct hf_conf_call c = calm;
	struct hf_claim none = { 0 };
	struct hf_ticket k[4];

	(void)state;
	c.max_in_flight = 3;
	for (int i = 0; i < 3; i++) {
		shm.self = 1 + (unsigned)i;
		assert_int_equal(
		    hf_target_take(&shm, row(), &c, false, SEC, &none, &k[i]),
		    HF_ADMIT_CALL);
	}
	assert_int_equal(
	    hf_target_take(&shm, row(), &c, false, SEC, &none, &k[3]),
	    HF_ADMIT_WAIT);
	assert_false(hf_target_has_room(row(), &c, SEC));
	hf_target_end(&shm, &k[2], &c, HF_HEALTH_ANSWERED, SEC);
	assert_int_equal(
	    hf_target_take(&shm, row(), &c, false, SEC, &none, &k[3]),
	    HF_ADMIT_CALL);
}

/* --- pace ----------------------------------------------------------------- */

static bool
take(struct hf_pace *p, const struct hf_pace_limits *l, int64_t now,
    int64_t latest, int64_t *at)
{
	uint64_t place;

	return hf_pace_take(p, l, 0, now, latest, &place, at);
}

static int
ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* No more than 'n' of the admissions in any window. */
static void
check_windows(const int64_t *at, int n_at, int n, int64_t window)
{
	for (int i = n; i < n_at; i++)
		assert_true(at[i] - at[i - n] >= window);
}

static void
as_many_as_fit(void **state)
{
	struct hf_pace *p = &row()->pace;
	const struct hf_pace_limits l = { .n = 15, .window_ms = 3000 };
	int64_t at[100];

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_true(take(p, &l, SEC + i, 1000 * SEC, &at[i]));
	assert_int_equal(at[14], SEC + 14);
	check_windows(at, 100, 15, 3 * SEC);
	/* The quota's own minimum is six windows. */
	assert_in_range(at[99] - at[0], 18 * SEC, 18 * SEC * 115 / 100);
	/* After a pause the whole burst is there again. */
	assert_true(take(p, &l, 100 * SEC, 100 * SEC, &at[0]));
	assert_true(hf_pace_peek_us(p, &l, 100 * SEC) == 100 * SEC);
	/* What is too late is not reserved. */
	for (int i = 0; i < 14; i++)
		assert_true(take(p, &l, 100 * SEC, 100 * SEC, &at[0]));
	for (int i = 0; i < 3; i++)
		assert_false(take(p, &l, 100 * SEC, 102 * SEC, &at[0]));
	assert_true(take(p, &l, 104 * SEC, 104 * SEC, &at[0]));
}

static void
large_quotas_are_spread(void **state)
{
	struct hf_pace *p = &row()->pace;
	const struct hf_pace_limits l = { .n = 6000, .window_ms = 60000 };
	static int64_t at[7000];

	(void)state;
	for (int i = 0; i < 7000; i++)
		assert_true(take(p, &l, SEC, 1000 * SEC, &at[i]));
	check_windows(at, 7000, 6000, 60 * SEC);
	assert_true(at[999] == SEC);
	assert_true(at[6999] - SEC < 80 * SEC);
}

static void
a_hint_holds_for_all(void **state)
{
	struct hf_ticket k;
	struct hf_pace_limits l = { .n = 15, .window_ms = 3000 };
	int64_t at;

	(void)state;
	assert_true(begin(&k, false, SEC));
	hf_target_limited(&k, &calm, 5000, false, SEC);
	hf_target_limited(&k, &calm, 1000, false, SEC);
	hf_target_end(&shm, &k, &calm, HF_HEALTH_NEUTRAL, SEC);
	assert_int_equal(hf_target_opens_us(row(), 2 * SEC), 6 * SEC);
	assert_true(take(&row()->pace, &l, 2 * SEC, 9 * SEC, &at));
	assert_int_equal(at, 6 * SEC);
	l.n = 0;
	assert_false(take(&row()->pace, &l, 2 * SEC, 5 * SEC, &at));
	assert_int_equal(hf_target_opens_us(row(), 6 * SEC), 0);
}

/* Well is who has had no failure and no 429 for that long, and may be asked;
 * what was before the daemon began is not known. */
static void
health_is_counted(void **state)
{
	int64_t t0 = shm.h->started_us;
	struct hf_ticket k;

	(void)state;
	assert_false(
	    hf_target_is_healthy(&shm, NULL, 60000, t0 + 60 * SEC - 1));
	assert_true(hf_target_is_healthy(&shm, NULL, 60000, t0 + 60 * SEC));
	assert_true(hf_target_is_healthy(&shm, row(), 60000, t0 + 60 * SEC));
	t0 += 100 * SEC;
	assert_true(call(HF_HEALTH_FAILED, t0));
	assert_true(call(HF_HEALTH_ANSWERED, t0 + 2 * SEC));
	assert_true(call(HF_HEALTH_NEUTRAL, t0 + 3 * SEC));
	assert_false(hf_target_is_healthy(&shm, row(), 5000, t0 + 4 * SEC));
	assert_true(hf_target_is_healthy(&shm, row(), 5000, t0 + 5 * SEC));
	t0 += 100 * SEC;
	assert_true(begin(&k, false, t0));
	hf_target_limited(&k, &calm, -1, false, t0);
	hf_target_end(&shm, &k, &calm, HF_HEALTH_NEUTRAL, t0);
	assert_false(hf_target_is_healthy(&shm, row(), 5000, t0 + 4 * SEC));
	assert_true(hf_target_is_healthy(&shm, row(), 5000, t0 + 5 * SEC));
	t0 += 100 * SEC;
	for (int i = 0; i < calm.breaker_failures; i++)
		assert_true(call(HF_HEALTH_FAILED, t0));
	/* Open for 10 s: not before, and then a probe is asked for. */
	assert_false(hf_target_is_healthy(&shm, row(), 5000, t0 + 9 * SEC));
	assert_true(hf_target_is_healthy(&shm, row(), 5000, t0 + 11 * SEC));
	atomic_store(&row()->disabled, 1);
	assert_false(hf_target_is_healthy(&shm, row(), 5000, t0 + 11 * SEC));
}

/* A call that is nobody's turn: only where it is in nobody's way. */
static void
shadows_give_way(void **state)
{
	struct hf_conf_call c = calm;
	struct hf_shm other = shm;
	struct hf_ticket k;

	(void)state;
	other.self = 2;
	c.warm_in_flight = 2;
	assert_false(hf_target_shadow_take(&shm, NULL, &c, SEC));
	assert_true(hf_target_shadow_take(&shm, row(), &c, SEC));
	assert_true(hf_target_shadow_take(&other, row(), &c, SEC));
	assert_false(hf_target_shadow_take(&shm, row(), &c, SEC));
	/* A death gives its place back. */
	hf_shm_retire(&shm, 2);
	assert_true(hf_target_shadow_take(&shm, row(), &c, SEC));
	hf_target_shadow_end(&shm, row());
	hf_target_shadow_end(&shm, row());
	assert_true(hf_target_is_quiet(row()));
	assert_true(begin(&k, false, SEC));
	assert_false(hf_target_is_quiet(row()));
	assert_false(hf_target_shadow_take(&other, row(), &c, SEC));
	hf_target_end(&shm, &k, &calm, HF_HEALTH_ANSWERED, SEC);
	c.rpm = 2; /* the call that was just made counts */
	assert_true(hf_target_shadow_take(&shm, row(), &c, SEC));
	assert_false(hf_target_shadow_take(&shm, row(), &c, SEC));
	c.rpm = 0;
	for (int i = 0; i < calm.breaker_failures; i++)
		assert_true(call(HF_HEALTH_FAILED, 2 * SEC));
	assert_false(hf_target_shadow_take(&shm, row(), &c, 2 * SEC));
	/* It never probes. */
	assert_false(hf_target_shadow_take(&shm, row(), &c, 60 * SEC));
	assert_int_equal(atomic_load(&row()->shadows[1]), 1);
}

/* Processes that reserve at once get different places, and none too many. */
static void
many_processes(void **state)
{
	enum { EACH = 20000 };
	const struct hf_pace_limits l = { .n = 15, .window_ms = 3000 };
	const size_t size = PROCESSES * EACH * sizeof(int64_t);
	int64_t *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct hf_pace *p = &row()->pace;
	pid_t pid[PROCESSES];
	int n = 0;

	(void)state;
	assert_true(at != MAP_FAILED);
	for (int i = 0; i < PROCESSES; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (pid[i] == 0) {
			for (int k = 0; k < EACH; k++)
				if (!take(p, &l, SEC, INT64_MAX,
					&at[i * EACH + k]))
					_exit(1);
			_exit(0);
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	n = PROCESSES * EACH;
	qsort(at, (size_t)n, sizeof(*at), ascending);
	check_windows(at, n, 15, 3 * SEC);
	assert_int_equal(atomic_load(&p->next), n);
	munmap(at, size);
}

/* Nobody waits for one that died between taking a place and counting it. */
static void
half_a_reservation(void **state)
{
	struct hf_pace *p = &row()->pace;
	const struct hf_pace_limits l = { .n = 2, .window_ms = 3000 };
	int64_t at;

	(void)state;
	assert_true(take(p, &l, SEC, SEC, &at));
	atomic_store(&p->next, 0);
	assert_true(take(p, &l, SEC, SEC, &at));
	assert_false(take(p, &l, SEC, SEC, &at));
	assert_int_equal(atomic_load(&p->next), 2);
}

static void
rows_are_apart(void **state)
{
	char name[32];

	(void)state;
	open_it(SEC);
	for (int i = 0; i < HF_SHM_TARGETS - 1; i++) {
		snprintf(name, sizeof(name), "q/%d", i);
		assert_int_equal(
		    hf_target_opens_us(hf_target_row(&shm, name), SEC), 0);
	}
	assert_null(hf_target_row(&shm, "one/more"));
	assert_ptr_equal(hf_target_find(&shm, "p/m"), row());
	assert_int_equal(hf_target_opens_us(NULL, SEC), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(opens_after_failures_in_a_row),
		TEST(late_words_are_not_heard),
		TEST(probe_then_ramp),
		TEST(failed_probe_and_failed_ramp),
		TEST(probe_never_wedges),
		TEST(forced_probe_is_one),
		TEST(death_leaks_no_call),
		TEST(max_in_flight),
		TEST(as_many_as_fit),
		TEST(large_quotas_are_spread),
		TEST(a_hint_holds_for_all),
		TEST(health_is_counted),
		TEST(shadows_give_way),
		TEST(many_processes),
		TEST(half_a_reservation),
		TEST(rows_are_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
