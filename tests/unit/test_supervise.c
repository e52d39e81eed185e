/*
 * The restart policy and the heartbeat watch, with a clock of our own.
 */
#include <config.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "workers/supervise.h"

#define NOW ((int64_t)5000000)
#define EXIT(n) ((n) << 8)
#define SEC ((int64_t)1000000)

static double
half(void *arg)
{
	(void)arg;
	return 0.5;
}

static struct hf_decision
decide(struct hf_death d)
{
	struct hf_decision out;

	hf_supervise(&d, NOW, half, NULL, &out);
	return out;
}

static void
test_fault_before_work_waits(void **state)
{
	/* min(60 s, 2^a + 0.5 s) */
	static const int64_t want[] = { 1500, 2500, 4500, 8500, 16500, 32500,
		60000, 60000 };
	struct hf_decision v = { 0 };

	(void)state;
	for (unsigned i = 0; i < hf_countof(want); i++) {
		v = decide((struct hf_death){ .status = SIGSEGV,
		    .was_ready = true,
		    .failures = v.failures });
		assert_int_equal(v.verdict, HF_RESTART_AFTER);
		assert_int_equal(v.after_ms, want[i]);
		assert_int_equal(v.at_us, NOW + want[i] * 1000);
		assert_int_equal(v.failures, i + 1);
	}
}

static void
test_whose_fault(void **state)
{
	(void)state;
	assert_true(hf_death_own_fault(SIGSEGV, false));
	assert_true(hf_death_own_fault(SIGABRT, false));
	assert_true(hf_death_own_fault(EXIT(1), false));
	assert_false(hf_death_own_fault(SIGKILL, false));
	assert_false(hf_death_own_fault(SIGTERM, false));
	assert_false(hf_death_own_fault(EXIT(0), false));
	/* Its heartbeat stood, so we killed it. */
	assert_true(hf_death_own_fault(SIGKILL, true));
}

static void
test_long_life_forgives(void **state)
{
	struct hf_decision v = decide((struct hf_death){
	    .status = SIGSEGV, .failures = 7, .up_us = 61 * SEC });

	(void)state;
	assert_int_equal(v.after_ms, 1500);
	assert_int_equal(v.failures, 1);
}

static void
test_after_work_at_once(void **state)
{
	struct hf_decision v = decide((struct hf_death){ .status = SIGABRT,
	    .worked = true,
	    .was_ready = true,
	    .failures = 4 });

	(void)state;
	assert_int_equal(v.verdict, HF_RESTART_NOW);
	assert_int_equal(v.at_us, NOW);
	assert_int_equal(v.failures, 0);
	v = decide((struct hf_death){ .status = EXIT(1), .worked = true });
	assert_int_equal(v.verdict, HF_RESTART_NOW);
}

static void
test_killed_from_outside_at_once(void **state)
{
	struct hf_decision v = decide((struct hf_death){
	    .status = SIGKILL, .was_ready = true, .failures = 2 });

	(void)state;
	assert_int_equal(v.verdict, HF_RESTART_NOW);
	assert_int_equal(v.failures, 2);
	/* Not if it was us, because its heartbeat stood. */
	v = decide((struct hf_death){ .status = SIGKILL,
	    .was_ready = true,
	    .blamed = true,
	    .failures = 2 });
	assert_int_equal(v.verdict, HF_RESTART_AFTER);
	assert_int_equal(v.failures, 3);
}

static void
test_killed_at_start_for_ever(void **state)
{
	struct hf_decision v = { 0 };
	unsigned i;

	(void)state;
	for (i = 0; i < 100; i++) {
		v = decide((struct hf_death){
		    .status = SIGKILL, .early_kills = v.early_kills });
		if (v.verdict != HF_RESTART_NOW)
			break;
	}
	assert_int_equal(i, HF_SUPERVISE_EARLY_KILLS - 1);
	assert_int_equal(v.verdict, HF_RESTART_AFTER);
}

static void
test_start_gives_up(void **state)
{
	struct hf_decision v =
	    decide((struct hf_death){ .status = EXIT(78), .starting = true });
	unsigned i;

	(void)state;
	assert_int_equal(v.verdict, HF_GIVE_UP);
	assert_int_equal(v.exit_code, 78);
	/* Later the same exit is only a fault. */
	v = decide((struct hf_death){ .status = EXIT(78) });
	assert_int_equal(v.verdict, HF_RESTART_AFTER);
	/* Crashes are tried again a few times. */
	v = (struct hf_decision){ 0 };
	for (i = 0; i < 100 && v.verdict != HF_GIVE_UP; i++)
		v = decide((struct hf_death){ .status = SIGSEGV,
		    .starting = true,
		    .failures = v.failures });
	assert_int_equal(i, HF_SUPERVISE_START_TRIES);
	assert_int_equal(v.exit_code, 1);
}

static void
test_exit_zero_unasked_is_a_fault(void **state)
{
	struct hf_decision v =
	    decide((struct hf_death){ .status = EXIT(0), .starting = true });

	(void)state;
	assert_int_equal(v.verdict, HF_RESTART_AFTER);
}

static void
test_which_signals_are_outside(void **state)
{
	(void)state;
	assert_true(hf_death_outside(SIGKILL));
	assert_true(hf_death_outside(SIGTERM));
	assert_false(hf_death_outside(SIGSEGV));
	assert_false(hf_death_outside(SIGABRT));
	assert_false(hf_death_outside(SIGBUS));
	assert_false(hf_death_outside(SIGSYS));
	assert_false(hf_death_outside(EXIT(9)));
}

static void
test_beat_stands(void **state)
{
	struct hf_beat b;
	int64_t t = NOW;

	(void)state;
	hf_beat_reset(&b);
	assert_false(hf_beat_stale(&b, 7, t, 2 * SEC, 3 * SEC));
	for (int i = 0; i < 10; i++)
		assert_false(hf_beat_stale(
		    &b, (uint64_t)(8 + i), t += SEC, 2 * SEC, 3 * SEC));
	assert_false(hf_beat_stale(&b, 17, t += SEC, 2 * SEC, 3 * SEC));
	assert_false(hf_beat_stale(&b, 17, t += SEC, 2 * SEC, 3 * SEC));
	assert_true(hf_beat_stale(&b, 17, t += SEC, 2 * SEC, 3 * SEC));
	/* It moved again. */
	assert_false(hf_beat_stale(&b, 18, t += SEC, 2 * SEC, 3 * SEC));
}

static void
test_paused_machine_is_no_death(void **state)
{
	struct hf_beat b;
	int64_t t = NOW;

	(void)state;
	hf_beat_reset(&b);
	assert_false(hf_beat_stale(&b, 1, t, SEC, 5 * SEC));
	/* We did not run for an hour, and so did nobody. */
	assert_false(hf_beat_stale(&b, 1, t += 3600 * SEC, SEC, 5 * SEC));
	assert_false(hf_beat_stale(&b, 1, t += SEC, SEC, 5 * SEC));
	assert_false(hf_beat_stale(&b, 1, t += SEC, SEC, 5 * SEC));
	assert_false(hf_beat_stale(&b, 1, t += SEC, SEC, 5 * SEC));
	assert_true(hf_beat_stale(&b, 1, t += SEC, SEC, 5 * SEC));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whose_fault),
		cmocka_unit_test(test_fault_before_work_waits),
		cmocka_unit_test(test_long_life_forgives),
		cmocka_unit_test(test_after_work_at_once),
		cmocka_unit_test(test_killed_from_outside_at_once),
		cmocka_unit_test(test_killed_at_start_for_ever),
		cmocka_unit_test(test_start_gives_up),
		cmocka_unit_test(test_exit_zero_unasked_is_a_fault),
		cmocka_unit_test(test_which_signals_are_outside),
		cmocka_unit_test(test_beat_stands),
		cmocka_unit_test(test_paused_machine_is_no_death),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
