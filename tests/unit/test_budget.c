/*
 * The budget of hedges: a burst, then a share of the turns, per route, over
 * all processes.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/budget.h"

#define PROCESSES 4
#define TURNS 5000

static struct hf_shm shm;

static int
setup(void **state)
{
	struct hf_error e;

	(void)state;
	return hf_shm_create(&shm, NULL, &e);
}

static int
teardown(void **state)
{
	(void)state;
	hf_shm_unmap(&shm);
	return 0;
}

/* How many of 'turns' turns that all want a hedge get one. */
static int
play(const char *route, int percent, int turns)
{
	int n = 0;

	for (int i = 0; i < turns; i++) {
		hf_budget_turn(&shm, route, percent);
		n += hf_budget_take(&shm, route);
	}
	return n;
}

static void
burst_then_share(void **state)
{
	(void)state;
	/* The first turns pay for a part of one more. */
	assert_int_equal(play("a", 10, HF_BUDGET_BURST), HF_BUDGET_BURST);
	assert_int_equal(play("a", 10, 5), 0);
	assert_int_equal(play("a", 10, 1), 1);
	assert_int_equal(play("a", 10, 1000), 100);
	assert_int_equal(play("b", 1, 1000), 5 + 9);
	assert_int_equal(play("c", 100, 1000), 1000);
}

/* Old turns count for no more than the burst. */
static void
only_recent(void **state)
{
	(void)state;
	for (int i = 0; i < 10000; i++)
		hf_budget_turn(&shm, "a", 10);
	for (int i = 0; i < HF_BUDGET_BURST; i++)
		assert_true(hf_budget_take(&shm, "a"));
	assert_false(hf_budget_take(&shm, "a"));
}

static void
routes_are_apart(void **state)
{
	(void)state;
	while (hf_budget_take(&shm, "a"))
		;
	assert_true(hf_budget_take(&shm, "b"));
	assert_true(hf_budget_take(&shm, ""));
	hf_budget_turn(&shm, "b", 100);
	assert_false(hf_budget_take(&shm, "a"));
}

static void
full_table(void **state)
{
	char name[16];

	(void)state;
	for (unsigned i = 0; i < HF_SHM_BUDGETS; i++) {
		snprintf(name, sizeof(name), "route-%u", i);
		assert_true(hf_budget_take(&shm, name));
	}
	hf_budget_turn(&shm, "one more", 100);
	assert_false(hf_budget_take(&shm, "one more"));
	assert_true(hf_budget_take(&shm, "route-17"));
}

static void
processes_share(void **state)
{
	int fd[2], n = 0, status, got = 0;
	struct hf_error e;
	struct hf_shm child;
	int shm_fd;

	(void)state;
	hf_shm_unmap(&shm);
	assert_int_equal(hf_shm_create(&shm, &shm_fd, &e), 0);
	assert_int_equal(pipe(fd), 0);
	for (int i = 0; i < PROCESSES; i++) {
		if (fork() != 0)
			continue;
		if (hf_shm_map(&child, shm_fd, 1 + (unsigned)i, &e) < 0)
			_exit(1);
		shm.h = child.h;
		n = play("a", 10, TURNS);
		_exit(write(fd[1], &n, sizeof(n)) != sizeof(n));
	}
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(read(fd[0], &n, sizeof(n)), sizeof(n));
		got += n;
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	/* What a turn pays when nothing is owed is lost; here each turn wants
	 * a hedge, so hardly any is. */
	assert_in_range(got, PROCESSES * TURNS / 10 - PROCESSES,
	    PROCESSES * TURNS / 10 + HF_BUDGET_BURST);
	close(fd[0]);
	close(fd[1]);
	close(shm_fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    burst_then_share, setup, teardown),
		cmocka_unit_test_setup_teardown(only_recent, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    routes_are_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(full_table, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    processes_share, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
