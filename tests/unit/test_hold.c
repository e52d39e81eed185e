/*
 * Held connections: slots, marks that are whole or not there, rings, and what
 * the kernel says of a connection's bytes.
 */
#include <config.h>

#include <stdarg.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/hold.h"

static struct hf_hold
make(int *fd)
{
	struct hf_hold h;
	struct hf_error e;

	assert_int_equal(hf_hold_create(&h, fd, &e), 0);
	h.inc = 7;
	return h;
}

static void
test_slots(void **state)
{
	struct hf_hold h, other;
	struct hf_error e;
	uint32_t a, b, epoch;
	int fd;

	(void)state;
	h = make(&fd);
	assert_int_equal(hf_hold_map(&other, fd, 9, &e), 0);
	a = hf_hold_take(&h);
	b = hf_hold_take(&other);
	assert_true(a != b && a < HF_HOLD_SLOTS && b < HF_HOLD_SLOTS);
	assert_int_equal(atomic_load(hf_hold_owner(&other, a)), 7);
	assert_int_equal(atomic_load(hf_hold_owner(&h, b)), 9);
	epoch = atomic_load(&hf_hold_slot(&h, a)->epoch);
	memcpy(hf_hold_in(&h, a), "abc", 3);
	assert_memory_equal(hf_hold_in(&other, a), "abc", 3);
	hf_hold_give(&h, a);
	/* What the last one said is gone. */
	assert_int_equal(hf_hold_in(&other, a)[0], 0);
	assert_int_equal(hf_hold_take(&h), a);
	assert_int_equal(atomic_load(&hf_hold_slot(&h, a)->epoch), epoch + 1);
	for (uint32_t i = 2; i < HF_HOLD_SLOTS; i++)
		assert_int_not_equal(hf_hold_take(&h), HF_HOLD_NONE);
	assert_int_equal(hf_hold_take(&h), HF_HOLD_NONE);
	assert_int_equal(hf_hold_take(&other), HF_HOLD_NONE);
	hf_hold_give(&other, b);
	assert_int_equal(hf_hold_take(&h), b);
	hf_hold_unmap(&other);
	hf_hold_unmap(&h);
	assert_int_equal(hf_hold_take(&h), HF_HOLD_NONE);
	close(fd);
}

/* The areas do not overlap, and what is not used takes no memory. */
static void
test_areas(void **state)
{
	struct hf_hold h;
	struct stat sb;
	uint32_t a;
	int fd;

	(void)state;
	h = make(&fd);
	a = hf_hold_take(&h);
	memset(hf_hold_in(&h, a), 1, HF_HOLD_IN);
	memset(hf_hold_out(&h, a), 2, HF_HOLD_OUT);
	memset(hf_hold_text(&h, a), 3, HF_HOLD_TEXT);
	assert_int_equal(hf_hold_in(&h, a)[HF_HOLD_IN - 1], 1);
	assert_int_equal(hf_hold_out(&h, a)[HF_HOLD_OUT - 1], 2);
	if (a + 1 < HF_HOLD_SLOTS)
		assert_int_equal(hf_hold_in(&h, a + 1)[0], 0);
	hf_hold_trim_in(&h, a, 5000);
	assert_int_equal(hf_hold_in(&h, a)[4999], 1);
	assert_int_equal(hf_hold_in(&h, a)[8192], 0);
	hf_hold_give(&h, a);
	assert_int_equal(hf_hold_serves(&h, "turn_x"), 0);
	assert_int_equal(fstat(fd, &sb), 0);
	assert_true(sb.st_blocks * 512 < 256 * 1024);
	hf_hold_unmap(&h);
	close(fd);
}

static void
test_marks(void **state)
{
	struct hf_hold h;
	struct hf_hold_mark *m;
	uint32_t a;
	int fd;

	(void)state;
	h = make(&fd);
	a = hf_hold_take(&h);
	assert_int_equal(hf_hold_mark(&h, a)->flags, 0);
	m = hf_hold_change(&h, a);
	m->flags = HF_HOLD_SERVING;
	m->out_size = 99;
	snprintf(m->turn, sizeof(m->turn), "turn_x");
	/* Not yet. */
	assert_int_equal(hf_hold_mark(&h, a)->out_size, 0);
	assert_false(hf_hold_serves(&h, "turn_x"));
	hf_hold_commit(&h, a);
	assert_int_equal(hf_hold_mark(&h, a)->out_size, 99);
	assert_true(hf_hold_serves(&h, "turn_x"));
	assert_false(hf_hold_serves(&h, "turn_"));
	assert_false(hf_hold_serves(&h, ""));
	/* Whoever is lost is served by nobody. */
	m = hf_hold_change(&h, a);
	assert_int_equal(m->out_size, 99);
	m->flags |= HF_HOLD_LOST;
	hf_hold_commit(&h, a);
	assert_false(hf_hold_serves(&h, "turn_x"));
	hf_hold_give(&h, a);
	assert_int_equal(hf_hold_take(&h), a);
	assert_int_equal(hf_hold_mark(&h, a)->out_size, 0);
	hf_hold_unmap(&h);
	close(fd);
}

/* A writer that is killed at any moment leaves one whole mark. */
static void
test_marks_killed(void **state)
{
	struct hf_hold h;
	uint32_t a;
	int fd;

	(void)state;
	h = make(&fd);
	a = hf_hold_take(&h);
	for (int round = 0; round < 20; round++) {
		const struct hf_hold_mark *m;
		pid_t pid = fork();

		assert_true(pid >= 0);
		for (uint64_t i = 1; pid == 0; i++) {
			struct hf_hold_mark *w = hf_hold_change(&h, a);

			w->in_base = w->out_size = w->response_from = i;
			w->body_size = w->body_hash = w->text_size = i;
			hf_hold_commit(&h, a);
		}
		while (hf_hold_mark(&h, a)->out_size == 0)
			;
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		m = hf_hold_mark(&h, a);
		assert_true(m->in_base == m->out_size &&
		    m->out_size == m->response_from &&
		    m->response_from == m->body_size &&
		    m->body_size == m->body_hash &&
		    m->body_hash == m->text_size);
	}
	hf_hold_unmap(&h);
	close(fd);
}

static void
test_rings(void **state)
{
	char ring[16], out[16];

	(void)state;
	hf_ring_put(ring, sizeof(ring), 0, "0123456789", 10);
	hf_ring_put(ring, sizeof(ring), 10, "abcdefghij", 10);
	hf_ring_get(ring, sizeof(ring), 8, out, 12);
	assert_memory_equal(out, "89abcdefghij", 12);
	hf_ring_put(ring, sizeof(ring), 20, "", 0);
	hf_ring_get(ring, sizeof(ring), 4, out, 16);
	assert_memory_equal(out, "456789abcdefghij", 16);
}

static void
test_kernel(void **state)
{
	struct hf_error e = { 0 };
	uint64_t n;
	int fd[2];

	(void)state;
	if (hf_tcp_self_test(&e) != 0)
		fail_msg("%s", e.text);
	/* No such counts elsewhere. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_false(hf_tcp_taken(fd[0], &n));
	assert_false(hf_tcp_consumed(fd[0], &n));
	close(fd[0]);
	close(fd[1]);
}

static void
test_foreign(void **state)
{
	struct hf_hold h;
	struct hf_error e;
	int fd = memfd_create("junk", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(hf_hold_map(&h, fd, 1, &e), HF_EPROTO);
	assert_null(h.map);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_areas),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_marks_killed),
		cmocka_unit_test(test_rings),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_foreign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
