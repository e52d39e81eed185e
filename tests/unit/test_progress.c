/*
 * How far a stream got, for every amount that may be left of it.
 */
#include <config.h>

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "gateway/surface/progress.h"

static struct hf_delivered
to(size_t text, unsigned calls)
{
	return (struct hf_delivered){ .text = text, .calls = calls };
}

static void
write_some(struct hf_progress *p, size_t size, size_t text, unsigned calls)
{
	struct hf_delivered d = to(text, calls);

	hf_progress_add(p, size, 0, &d);
}

static void
releases_count_when_whole(void **state)
{
	static const struct {
		size_t left, text;
		unsigned calls;
	} row[] = {
		{ 1000, 0, 0 }, /* a head that waits too */
		{ 160, 0, 0 },
		{ 151, 0, 0 },
		{ 150, 4, 0 }, /* the first of 10, to its last byte */
		{ 131, 4, 0 },
		{ 130, 9, 0 },
		{ 31, 9, 0 },
		{ 30, 9, 1 }, /* the call */
		{ 10, 9, 1 }, /* a sign of life */
		{ 9, 9, 1 },
		{ 0, 12, 1 },
	};

	(void)state;
	for (size_t i = 0; i < hf_countof(row); i++) {
		struct hf_progress p;
		struct hf_delivered d;

		hf_progress_init(&p);
		write_some(&p, 10, 4, 0);
		write_some(&p, 20, 9, 0);
		write_some(&p, 100, 9, 1);
		write_some(&p, 5, 9, 1);
		write_some(&p, 25, 12, 1);
		d = hf_progress_given(&p, row[i].left);
		assert_int_equal(d.text, row[i].text);
		assert_int_equal(d.calls, row[i].calls);
		/* What was given stays given. */
		d = hf_progress_given(&p, 1000);
		assert_int_equal(d.text, row[i].text);
		hf_progress_free(&p);
	}
}

static void
nothing_was_written(void **state)
{
	struct hf_progress p;

	(void)state;
	hf_progress_init(&p);
	assert_int_equal(hf_progress_given(&p, 0).text, 0);
	assert_int_equal(hf_progress_given(&p, 10).text, 0);
	hf_progress_free(&p);
}

/* A long stream to a reader that keeps up holds next to nothing; to one that
 * is behind, no more than what it is behind by. */
static void
memory_is_bounded(void **state)
{
	struct hf_progress p;
	struct hf_delivered d = { 0 };
	size_t most = 0;

	(void)state;
	hf_progress_init(&p);
	for (size_t i = 1; i <= 200000; i++) {
		d.text = i;
		hf_progress_add(&p, 100, i < 100000 ? 100 : 100000, &d);
		most = p.marks.size > most ? p.marks.size : most;
		if (i == 99999)
			assert_true(most < 16384);
	}
	assert_true(most < 131072);
	assert_int_equal(hf_progress_given(&p, 100000).text, 199000);
	assert_int_equal(hf_progress_given(&p, 50).text, 199999);
	assert_int_equal(hf_progress_given(&p, 0).text, 200000);
	hf_progress_free(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(releases_count_when_whole),
		cmocka_unit_test(nothing_was_written),
		cmocka_unit_test(memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
