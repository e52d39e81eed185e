/*
 * What operators are shown of a target: histograms, figures, who is disabled
 * and who waits.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/target.h"

#define SEC ((int64_t)1000000)

static void
cells_are_right_to_a_sixteenth(void **state)
{
	(void)state;
	assert_int_equal(hf_hist_cell(-5), 0);
	for (int64_t v = 0; v < 2000000; v += v < 5000 ? 1 : 997) {
		uint64_t n[HF_HIST_CELLS] = { 0 };
		int64_t seen;

		n[hf_hist_cell(v)] = 1;
		seen = hf_hist_quantile(n, 500);
		if (llabs(seen - v) * 16 > v)
			fail_msg("%lld is read as %lld", (long long)v,
			    (long long)seen);
		assert_true(hf_hist_cell(v + 1) >= hf_hist_cell(v));
	}
	assert_int_equal(hf_hist_cell(INT64_MAX), HF_HIST_CELLS - 1);
}

static void
quantiles(void **state)
{
	uint64_t n[HF_HIST_CELLS] = { 0 };

	(void)state;
	assert_int_equal(hf_hist_quantile(n, 500), -1);
	for (int v = 1; v <= 7; v++)
		n[hf_hist_cell(v)]++;
	assert_int_equal(hf_hist_quantile(n, 0), 1);
	assert_int_equal(hf_hist_quantile(n, 500), 4);
	assert_int_equal(hf_hist_quantile(n, 990), 7);
	assert_int_equal(hf_hist_quantile(n, 1000), 7);
	n[hf_hist_cell(3)] += 1000;
	assert_int_equal(hf_hist_quantile(n, 500), 3);
}

static uint64_t
counted(const struct hf_hist_window *w, int64_t now)
{
	uint64_t n[HF_HIST_CELLS], all = 0;

	hf_hist_read(w, now, n);
	for (unsigned i = 0; i < HF_HIST_CELLS; i++)
		all += n[i];
	return all;
}

static void
a_window_forgets(void **state)
{
	static struct hf_hist_window w;
	int64_t now = 1000 * SEC;

	(void)state;
	assert_int_equal(counted(&w, now), 0);
	hf_hist_add(&w, 5, now);
	hf_hist_add(&w, 5, now + 1);
	assert_int_equal(counted(&w, now + 299 * SEC), 2);
	hf_hist_add(&w, 5, now + 300 * SEC);
	assert_int_equal(counted(&w, now + 300 * SEC), 3);
	hf_hist_add(&w, 5, now + 600 * SEC);
	assert_int_equal(counted(&w, now + 600 * SEC), 2);
	assert_int_equal(counted(&w, now + 3600 * SEC), 0);
}

static void
ends_by_class(void **state)
{
	static struct hf_figures f;
	struct hf_last_error l = hf_figures_last(&f);
	int64_t wall = INT64_C(1795824000123456);

	(void)state;
	assert_int_equal(l.cls, HF_CLASS_NONE);
	hf_figures_ended(&f, HF_CLASS_PROVIDER, 503, wall);
	hf_figures_ended(&f, HF_CLASS_NONE, 200, wall + 5000000);
	l = hf_figures_last(&f);
	assert_int_equal(l.cls, HF_CLASS_PROVIDER);
	assert_int_equal(l.status, 503);
	assert_int_equal(l.at_us, wall / 1000 * 1000);
	hf_figures_ended(&f, HF_CLASS_NETWORK, 0, wall + 6000000);
	hf_figures_ended(&f, HF_CLASS_NETWORK, 99999, -1);
	l = hf_figures_last(&f);
	assert_int_equal(l.status, 0);
	assert_int_equal(l.at_us, 0);
	hf_figures_cut(&f);
	assert_int_equal(f.ended[HF_CLASS_NETWORK], 2);
	assert_int_equal(f.ended[HF_CLASS_NONE], 1);
	assert_int_equal(f.cut, 1);
}

static void
who_is_disabled(void **state)
{
	char name_p[] = "p", name_m[] = "p/m", name_n[] = "p/n";
	struct hf_conf_provider p = { .name = name_p };
	struct hf_conf_target m = { .name = name_m, .provider = &p };
	struct hf_conf_target n = { .name = name_n, .provider = &p };
	struct hf_error e;
	struct hf_shm s;

	(void)state;
	assert_int_equal(hf_shm_create(&s, NULL, &e), 0);
	s.self = 2;
	assert_false(hf_target_is_disabled(&s, &m));
	assert_int_equal(hf_target_disable(&s, "p/m", true, &e), 0);
	assert_true(hf_target_is_disabled(&s, &m));
	assert_false(hf_target_is_disabled(&s, &n));
	assert_int_equal(hf_target_disable(&s, "p", true, &e), 0);
	assert_int_equal(hf_target_disable(&s, "p/m", false, &e), 0);
	assert_true(hf_target_is_disabled(&s, &m));
	assert_true(hf_target_is_disabled(&s, &n));
	assert_int_equal(hf_target_disable(&s, "p", false, &e), 0);
	assert_false(hf_target_is_disabled(&s, &m));
	assert_int_equal(s.h->any_disabled, 0);
	for (int i = 0; i < HF_SHM_TARGETS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "more/%d", i);
		(void)hf_target_row(&s, name);
	}
	assert_int_equal(hf_target_disable(&s, "late", true, &e), HF_ELIMIT);
	hf_shm_unmap(&s);
}

static void
who_waits_ends_with_its_process(void **state)
{
	struct hf_target_row *r;
	struct hf_error e;
	struct hf_shm s;

	(void)state;
	assert_int_equal(hf_shm_create(&s, NULL, &e), 0);
	s.self = 2;
	r = hf_target_row(&s, "p/m");
	hf_target_wait(&s, r, true);
	hf_target_wait(&s, r, true);
	hf_target_wait(&s, r, false);
	hf_target_wait(&s, NULL, true);
	s.self = 3;
	hf_target_wait(&s, r, true);
	assert_int_equal(hf_target_waiting(r), 2);
	hf_shm_retire(&s, 2);
	assert_int_equal(hf_target_waiting(r), 1);
	hf_shm_unmap(&s);
}

static void
reset_forgets(void **state)
{
	struct hf_target_row *r;
	struct hf_error e;
	struct hf_shm s;

	(void)state;
	assert_int_equal(hf_shm_create(&s, NULL, &e), 0);
	r = hf_target_row(&s, "p/m");
	hf_breaker_trip(&r->breaker, 100 * SEC);
	hf_pace_block(&r->pace, 200 * SEC);
	assert_int_equal(hf_target_opens_us(r, SEC), 200 * SEC);
	hf_target_reset(r, SEC);
	assert_int_equal(hf_target_opens_us(r, SEC), 0);
	assert_false(hf_target_is_blocked(r, SEC));
	hf_shm_unmap(&s);
}

static void
places_in_the_window(void **state)
{
	static struct hf_pace p;
	const struct hf_pace_limits l = { .n = 2, .window_ms = 10000 };
	unsigned admitted, reserved;
	int64_t due[5];
	uint64_t place[5];

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_true(hf_pace_take(
		    &p, &l, 0, 100 * SEC, INT64_MAX, &place[i], &due[i]));
	hf_pace_go(&p, place[0], 100 * SEC);
	hf_pace_go(&p, place[1], 100 * SEC);
	hf_pace_count(&p, &l, 100 * SEC, &admitted, &reserved);
	assert_int_equal(admitted, 2);
	assert_int_equal(reserved, 3);
	/* One of them was refused, and does not count. */
	hf_pace_drop(&p, place[1]);
	hf_pace_count(&p, &l, 100 * SEC, &admitted, &reserved);
	assert_int_equal(admitted, 1);
	assert_int_equal(reserved, 3);
	hf_pace_go(&p, place[2], 113 * SEC);
	hf_pace_go(&p, place[3], 113 * SEC);
	hf_pace_count(&p, &l, 115 * SEC, &admitted, &reserved);
	assert_int_equal(admitted, 2);
	assert_int_equal(reserved, 1);
	hf_pace_count(&p, &l, 1000 * SEC, &admitted, &reserved);
	assert_int_equal(admitted + reserved, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_are_right_to_a_sixteenth),
		cmocka_unit_test(quantiles),
		cmocka_unit_test(a_window_forgets),
		cmocka_unit_test(ends_by_class),
		cmocka_unit_test(who_is_disabled),
		cmocka_unit_test(who_waits_ends_with_its_process),
		cmocka_unit_test(reset_forgets),
		cmocka_unit_test(places_in_the_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
