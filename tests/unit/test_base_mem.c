/*
 * Buffers, arenas, ids, frames, backoff.
 */
#include <config.h>

#include <sodium.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/backoff.h"
#include "base/buf.h"
#include "base/frame.h"
#include "base/id.h"

static void
buf_grows_and_caps(void **state)
{
	struct hf_buf b;
	char *p;
	size_t n;

	(void)state;
	hf_buf_init(&b, 10);
	hf_buf_puts(&b, "12345");
	hf_buf_putc(&b, '6');
	hf_buf_put(&b, NULL, 0);
	assert_true(hf_buf_ok(&b));
	assert_string_equal(b.data, "123456");
	hf_buf_puts(&b, "78901"); /* one too many */
	assert_false(hf_buf_ok(&b));
	assert_int_equal(b.size, 6);
	hf_buf_putc(&b, 'x'); /* stays failed */
	assert_int_equal(b.size, 6);
	hf_buf_reset(&b);
	assert_true(hf_buf_ok(&b));
	hf_buf_puts(&b, "1234567890");
	assert_true(hf_buf_ok(&b));
	hf_buf_consume(&b, 4);
	assert_string_equal(b.data, "567890");
	hf_buf_consume(&b, 100);
	assert_int_equal(b.size, 0);
	hf_buf_puts(&b, "take");
	p = hf_buf_take(&b, &n);
	assert_int_equal(n, 4);
	assert_string_equal(p, "take");
	free(p);
	assert_null(b.data);
	assert_null(hf_buf_reserve(&b, SIZE_MAX));
	assert_false(hf_buf_ok(&b));
	hf_buf_free(&b);
}

static void
buf_trim(void **state)
{
	static const char big[20000];
	struct hf_buf b;

	(void)state;
	hf_buf_init(&b, sizeof(big));
	hf_buf_puts(&b, "small");
	hf_buf_trim(&b);
	assert_int_equal(b.size, 0);
	assert_non_null(b.data); /* is kept */
	hf_buf_put(&b, big, sizeof(big));
	hf_buf_trim(&b);
	assert_int_equal(b.size, 0);
	assert_null(b.data);
	hf_buf_put(&b, big, sizeof(big)); /* its cap is what it was */
	assert_true(hf_buf_ok(&b));
	hf_buf_putc(&b, 'x');
	assert_false(hf_buf_ok(&b));
	hf_buf_trim(&b);
	assert_true(hf_buf_ok(&b));
	hf_buf_free(&b);
}

static void
buf_printf_long_and_short(void **state)
{
	char big[1001];
	struct hf_buf b;

	(void)state;
	memset(big, 'y', 1000);
	big[1000] = '\0';
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_printf(&b, "%d-", 42);
	hf_buf_printf(&b, "%s!", big);
	assert_int_equal(b.size, 3 + 1000 + 1);
	assert_memory_equal(b.data, "42-yyy", 6);
	assert_int_equal(b.data[b.size - 1], '!');
	assert_int_equal(b.data[b.size], '\0');
	hf_buf_free(&b);
}

static void
arena_hands_out(void **state)
{
	struct hf_arena a;
	struct hf_str s;
	char *p, *last = NULL;

	(void)state;
	hf_arena_init(&a, 0);
	for (size_t i = 1; i < 3000; i += 7) {
		p = hf_arena_alloc(&a, i);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 16, 0);
		for (size_t k = 0; k < i; k++)
			assert_int_equal(p[k], 0);
		memset(p, 0xff, i);
		assert_ptr_not_equal(p, last);
		last = p;
	}
	p = hf_arena_alloc(&a, 100000);
	assert_non_null(p);
	p[99999] = 1;
	s = hf_arena_dup(&a, HF_STR("a\0b"));
	assert_int_equal(s.size, 3);
	assert_memory_equal(s.p, "a\0b\0", 4);
	s = hf_arena_dup(&a, HF_STR_NONE);
	assert_non_null(s.p);
	assert_int_equal(s.size, 0);
	assert_null(hf_arena_alloc(&a, SIZE_MAX));
	hf_arena_free(&a);
}

static void
arena_cap(void **state)
{
	struct hf_arena a;

	(void)state;
	hf_arena_init(&a, 1000);
	assert_non_null(hf_arena_alloc(&a, 900));
	assert_null(hf_arena_alloc(&a, 200));
	assert_non_null(hf_arena_alloc(&a, 50));
	hf_arena_free(&a);
	assert_non_null(hf_arena_alloc(&a, 900));
	hf_arena_free(&a);
}

static void
ids(void **state)
{
	struct hf_id a, b;

	(void)state;
	hf_id_make(&a, "turn_");
	hf_id_make(&b, "turn_");
	assert_string_not_equal(a.s, b.s);
	assert_int_equal(strlen(a.s), 5 + HF_ID_RANDOM);
	assert_true(hf_id_valid(hf_str(a.s), "turn_"));
	assert_false(hf_id_valid(hf_str(a.s), "ses_"));
	assert_string_equal(hf_id_random_part(&a), a.s + 5);
	a.s[10] = 'i'; /* not in the alphabet */
	assert_false(hf_id_valid(hf_str(a.s), "turn_"));
	assert_false(hf_id_valid(HF_STR("turn_short"), "turn_"));
	b.s[10] = '\0';
	assert_false(hf_id_valid((struct hf_str){ b.s, 31 }, "turn_"));
}

static void
frames(void **state)
{
	struct hf_str payload;
	struct hf_error e;
	struct hf_buf b;

	(void)state;
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_frame_encode(&b, HF_STR("{\"v\":1}"));
	assert_memory_equal(b.data, "\0\0\0\7{\"v\":1}", 11);
	hf_buf_puts(&b, "next");
	for (size_t n = 0; n < 11; n++)
		assert_int_equal(hf_frame_decode((struct hf_str){ b.data, n },
				     100, &payload, &e),
		    0);
	assert_int_equal(
	    hf_frame_decode(hf_buf_str(&b), 100, &payload, &e), 11);
	assert_true(hf_str_is(payload, "{\"v\":1}"));
	assert_int_equal(
	    hf_frame_decode(hf_buf_str(&b), 6, &payload, &e), HF_EPROTO);
	assert_int_equal(
	    hf_frame_decode(HF_STR("\0\0\0\0"), 6, &payload, &e), HF_EPROTO);
	assert_int_equal(hf_frame_decode(HF_STR("\xff\xff\xff\xff"),
			     HF_FRAME_MAX_REPLY, &payload, &e),
	    HF_EPROTO);
	hf_buf_free(&b);
}

static double
fixed(void *arg)
{
	return *(double *)arg;
}

static void
backoff(void **state)
{
	double u = 0.5;

	(void)state;
	assert_int_equal(hf_backoff_ms(0, 1000, 30000, 0, fixed, &u), 1500);
	assert_int_equal(hf_backoff_ms(3, 1000, 30000, 0, fixed, &u), 8500);
	assert_int_equal(hf_backoff_ms(5, 1000, 30000, 0, fixed, &u), 30000);
	assert_int_equal(
	    hf_backoff_ms(4000000000u, 1000, 30000, 0, fixed, &u), 30000);
	/* The provider's hint is a floor, with jitter above it. */
	assert_int_equal(
	    hf_backoff_ms(0, 1000, 30000, 20000, fixed, &u), 20500);
	assert_int_equal(
	    hf_backoff_ms(0, 1000, 30000, 90000, fixed, &u), 90500);
	for (int i = 0; i < 1000; i++) {
		double r = hf_backoff_random(NULL);

		assert_true(r >= 0 && r < 1);
	}
}

static int
start(void **state)
{
	(void)state;
	return sodium_init() < 0 ? -1 : 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buf_grows_and_caps),
		cmocka_unit_test(buf_trim),
		cmocka_unit_test(buf_printf_long_and_short),
		cmocka_unit_test(arena_hands_out),
		cmocka_unit_test(arena_cap),
		cmocka_unit_test(ids),
		cmocka_unit_test(frames),
		cmocka_unit_test(backoff),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
