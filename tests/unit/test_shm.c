/*
 * The scoreboard: mapping, incarnations, counters, wakes, the writer mutex.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/shm.h"

static void
create_and_map(void **state)
{
	struct hf_shm a, b;
	struct hf_error e;
	int fd, junk;

	(void)state;
	assert_int_equal(hf_shm_create(&a, &fd, &e), 0);
	assert_int_equal(a.h->n_slots, HF_SHM_SLOTS);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(hf_shm_map(&b, fd, 3, &e), 0);
	assert_int_equal(b.self, 3);
	assert_int_equal(b.wake_fd[5], HF_FD_WAKE0 + 5);
	/* Both see the same memory. */
	atomic_store(&a.h->slot[3].inc, 77);
	assert_int_equal(hf_shm_self_inc(&b), 77);
	for (unsigned i = 0; i < HF_SHM_SLOTS; i++)
		b.wake_fd[i] = -1; /* not really there in this test */
	hf_shm_unmap(&b);
	hf_shm_unmap(&a);
	assert_null(a.h);
	/* Another program's memory. */
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(hf_shm_map(&b, fd, 3, &e), HF_EPROTO);
	close(fd);
	junk = memfd_create("junk", MFD_CLOEXEC);
	assert_int_equal(ftruncate(junk, sizeof(struct hf_shm_header)), 0);
	assert_int_equal(hf_shm_map(&b, junk, 3, &e), HF_EPROTO);
	close(junk);
}

static void
alive(void **state)
{
	struct hf_shm s;
	struct hf_error e;

	(void)state;
	assert_int_equal(hf_shm_create(&s, NULL, &e), 0);
	atomic_store(&s.h->slot[2].inc, 42);
	assert_true(hf_shm_alive(&s, 2, 42));
	assert_false(hf_shm_alive(&s, 2, 41));
	assert_false(hf_shm_alive(&s, 3, 42));
	assert_false(hf_shm_alive(&s, 3, 0)); /* a free slot is nobody */
	assert_false(hf_shm_alive(&s, HF_SHM_SLOTS, 42));
	assert_false(hf_shm_alive(&s, 4000000000u, 42));
	hf_shm_unmap(&s);
}

static void
counters(void **state)
{
	struct hf_shm s, w;
	struct hf_error e;

	(void)state;
	assert_int_equal(hf_shm_create(&s, NULL, &e), 0);
	w = s;
	w.self = 4;
	hf_count(&s, HF_C_requests, 2);
	hf_count(&w, HF_C_requests, 3);
	hf_count(&w, HF_C_turns_in_flight, 7);
	assert_int_equal(hf_shm_sum(&s, HF_C_requests), 5);
	assert_int_equal(hf_shm_sum(&s, HF_C_turns_in_flight), 7);
	atomic_store(&s.h->slot[4].inc, 9);
	atomic_store(&s.h->slot[4].state, HF_SLOT_READY);
	/* Its death keeps what it counted and ends what it was doing. */
	hf_shm_retire(&s, 4);
	assert_int_equal(hf_shm_sum(&s, HF_C_requests), 5);
	assert_int_equal(hf_shm_sum(&s, HF_C_turns_in_flight), 0);
	assert_false(hf_shm_alive(&s, 4, 9));
	assert_int_equal(atomic_load(&s.h->slot[4].state), HF_SLOT_FREE);
	hf_count(&w, HF_C_requests, 1);
	assert_int_equal(hf_shm_sum(&s, HF_C_requests), 6);
	hf_shm_unmap(&s);
}

static void
wakes(void **state)
{
	struct pollfd p = { .events = POLLIN };
	struct hf_shm s;
	struct hf_error e;
	uint64_t n = 0;

	(void)state;
	assert_int_equal(hf_shm_create(&s, NULL, &e), 0);
	p.fd = s.wake_fd[5];
	assert_int_equal(poll(&p, 1, 0), 0);
	hf_shm_wake(&s, 5);
	hf_shm_wake(&s, 5);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(read(p.fd, &n, sizeof(n)), sizeof(n));
	assert_int_equal(n, 2);
	hf_shm_wake(&s, HF_SHM_SLOTS); /* a stored number may be anything */
	/* A full counter does not block. */
	n = UINT64_MAX - 1;
	assert_int_equal(write(p.fd, &n, sizeof(n)), sizeof(n));
	hf_shm_wake(&s, 5);
	hf_shm_unmap(&s);
}

static void
mutex_times_out(void **state)
{
	struct hf_shm s;
	struct hf_error e;
	int64_t start;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(hf_shm_create(&s, NULL, &e), 0);
	assert_int_equal(hf_shm_writer_lock(&s, 1000, &e), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		start = hf_now_us();
		if (hf_shm_writer_lock(&s, 30, &e) != HF_ETIMEOUT)
			_exit(1);
		_exit(hf_now_us() - start < 30000 ? 2 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	hf_shm_writer_unlock(&s);
	assert_int_equal(hf_shm_writer_lock(&s, 0, &e), 0);
	hf_shm_writer_unlock(&s);
	hf_shm_unmap(&s);
}

/* Whoever holds it may be killed; the next one gets it, again and again. */
static void
mutex_survives_its_holder(void **state)
{
	struct hf_shm s;
	struct hf_error e;
	int fds[2], status;
	pid_t pid;
	char c;

	(void)state;
	assert_int_equal(hf_shm_create(&s, NULL, &e), 0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(pipe(fds), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			if (hf_shm_writer_lock(&s, 5000, &e) < 0 ||
			    write(fds[1], "x", 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
		assert_int_equal(read(fds[0], &c, 1), 1);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(hf_shm_writer_lock(&s, 5000, &e), 0);
		hf_shm_writer_unlock(&s);
		close(fds[0]);
		close(fds[1]);
	}
	hf_shm_unmap(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(create_and_map),
		cmocka_unit_test(alive),
		cmocka_unit_test(counters),
		cmocka_unit_test(wakes),
		cmocka_unit_test(mutex_times_out),
		cmocka_unit_test(mutex_survives_its_holder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
