/*
 * What becomes of the connections of a worker that died: the master's table
 * over a real hold, records that cross, heirs that cannot be told or die too,
 * and the records' way from worker to master.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "workers/handover.h"
#include "workers/ipc.h"
#include "workers/tell.h"

#define A ((uint64_t)1 << 32 | 1) /* incarnations */
#define B ((uint64_t)1 << 32 | 2)
#define C ((uint64_t)1 << 32 | 3)
#define D ((uint64_t)1 << 32 | 4)

/* --- a master and its workers, without processes ----------------------- */

static struct hf_hold hold; /* mapped once; 'inc' says who acts */
static struct hf_handover *table;

/* What heirs were told. */
static struct told {
	unsigned i;
	uint32_t slot, epoch;
	bool poisoned;
	uint64_t owner; /* at that moment */
} told[HF_HOLD_SLOTS];
static unsigned n_told;
static int refuse[8]; /* taker i answers this */

static int
send_adopt(
    void *arg, unsigned i, uint32_t slot, uint32_t epoch, bool poisoned, int fd)
{
	(void)arg;
	assert_true(fcntl(fd, F_GETFD) >= 0);
	if (refuse[i] != 0)
		return refuse[i];
	told[n_told++] = (struct told){ .i = i,
		.slot = slot,
		.epoch = epoch,
		.poisoned = poisoned,
		.owner = atomic_load(hf_hold_owner(&hold, slot)) };
	return 0;
}

static int
begin(void **state)
{
	struct hf_error e;
	int fd;

	(void)state;
	if (hf_hold_create(&hold, &fd, &e) < 0)
		return -1;
	close(fd);
	table = hf_handover_new(&hold, HF_HOLD_SLOTS);
	n_told = 0;
	memset(refuse, 0, sizeof(refuse));
	return 0;
}

static int
end(void **state)
{
	(void)state;
	hf_handover_free(table);
	hf_hold_unmap(&hold);
	return 0;
}

/* A connection: the client's end stays here, the other is the worker's. */
struct conn {
	uint64_t inc;
	uint32_t slot, epoch;
	int client, fd;
};

/* A worker accepts one and takes a slot. */
static struct conn
accepted(uint64_t inc)
{
	struct conn c = { .inc = inc };
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	c.client = pair[0];
	c.fd = pair[1];
	hold.inc = inc;
	c.slot = hf_hold_take(&hold);
	assert_int_not_equal(c.slot, HF_HOLD_NONE);
	c.epoch = atomic_load(&hf_hold_slot(&hold, c.slot)->epoch);
	return c;
}

/* ... and tells: what is passed to the master is a dup. */
static bool
tells(const struct conn *c)
{
	return hf_handover_held(table, c->inc, c->slot, c->epoch, dup(c->fd));
}

static struct conn
held(uint64_t inc)
{
	struct conn c = accepted(inc);

	assert_true(tells(&c));
	return c;
}

static void
serves(const struct conn *c, uint32_t flags, const char *turn)
{
	struct hf_hold_mark *m = hf_hold_change(&hold, c->slot);

	m->flags = flags;
	snprintf(m->turn, sizeof(m->turn), "%s", turn);
	hf_hold_commit(&hold, c->slot);
}

/* The worker's own descriptor is gone, as in its death or its close(). */
static void
worker_closes(struct conn *c)
{
	close(c->fd);
	c->fd = -1;
}

/* Does the client see the end of its connection? */
static bool
is_cut(const struct conn *c)
{
	char byte;

	return recv(c->client, &byte, 1, MSG_DONTWAIT) == 0;
}

static uint64_t
owner(const struct conn *c)
{
	return atomic_load(hf_hold_owner(&hold, c->slot));
}

static struct hf_settled
dies(uint64_t inc, bool fault)
{
	struct hf_settled s;

	hf_handover_settle(table, inc, fault, &s);
	return s;
}

static unsigned
pass_to(uint64_t inc)
{
	struct hf_taker t = { .inc = inc, .generation = 1 };

	return hf_handover_pass(table, &t, 1, send_adopt, NULL);
}

/* --- one death ----------------------------------------------------------- */

static void
test_goes_on(void **state)
{
	struct conn c = held(A), other = held(B);
	struct hf_settled s;

	(void)state;
	serves(&c, HF_HOLD_SERVING, "turn_1");
	worker_closes(&c);
	assert_false(is_cut(&c));
	s = dies(A, false);
	assert_int_equal(s.waiting, 1);
	assert_int_equal(s.lost + s.unheld + s.poisoned, 0);
	/* In between nobody else may settle its turn. */
	assert_int_equal(owner(&c), A);
	assert_true(hf_hold_serves(&hold, "turn_1"));
	assert_int_equal(pass_to(B), 0);
	assert_int_equal(n_told, 1);
	assert_int_equal(told[0].slot, c.slot);
	assert_int_equal(told[0].epoch, c.epoch);
	assert_false(told[0].poisoned);
	/* The heir owns it before it hears of it. */
	assert_int_equal(told[0].owner, B);
	assert_int_equal(owner(&c), B);
	assert_true(hf_hold_serves(&hold, "turn_1"));
	assert_false(is_cut(&c));
	/* The connection of who lives was left alone. */
	assert_int_equal(owner(&other), B);
	assert_int_equal(hf_handover_n_held(table), 2);
	/* It ends with its heir. */
	hf_handover_released(table, B, c.slot, c.epoch);
	assert_true(is_cut(&c));
}

/* The table's dup keeps a connection open that its worker has closed: the
 * client waits for the end of it until the master is told. */
static void
test_released(void **state)
{
	struct conn c = held(A);

	(void)state;
	worker_closes(&c);
	assert_false(is_cut(&c));
	hf_handover_released(table, B, c.slot, c.epoch); /* not its own */
	hf_handover_released(table, A, c.slot, c.epoch + 1);
	assert_false(is_cut(&c));
	hf_handover_released(table, A, c.slot, c.epoch);
	assert_true(is_cut(&c));
	assert_int_equal(hf_handover_n_held(table), 0);
	hf_handover_released(table, A, c.slot, c.epoch); /* again: nothing */
}

/* Killed between accept() and its record: the slot is free again, the client
 * sees the end. */
static void
test_never_told(void **state)
{
	struct conn c = accepted(A);
	struct hf_settled s;

	(void)state;
	serves(&c, HF_HOLD_SERVING, "turn_1");
	worker_closes(&c);
	s = dies(A, true);
	assert_int_equal(s.unheld, 1);
	assert_int_equal(s.waiting, 0);
	assert_int_equal(owner(&c), 0);
	assert_false(hf_hold_serves(&hold, "turn_1"));
	assert_true(is_cut(&c));
	/* Whoever has the slot next is not taken for serving that turn. */
	hold.inc = B;
	assert_int_equal(hf_hold_take(&hold), c.slot);
	assert_false(hf_hold_serves(&hold, "turn_1"));
}

/* Its worker had let it go, and died with the record unsent. */
static void
test_release_unsent(void **state)
{
	struct conn c = held(A), next;
	struct hf_settled s;

	(void)state;
	worker_closes(&c);
	hf_hold_give(&hold, c.slot);
	next = accepted(B); /* the slot is another's already */
	assert_int_equal(next.slot, c.slot);
	s = dies(A, false);
	assert_int_equal(s.waiting + s.lost + s.unheld, 0);
	assert_true(is_cut(&c));
	assert_int_equal(owner(&next), B);
	assert_true(tells(&next));
	assert_int_equal(hf_handover_n_held(table), 1);
}

/* Its worker told of its end and died before it gave the slot back: that is
 * no connection that was lost. */
static void
test_released_and_died(void **state)
{
	struct conn c = held(A);
	struct hf_settled s;

	(void)state;
	worker_closes(&c);
	hf_handover_released(table, A, c.slot, c.epoch);
	s = dies(A, false);
	assert_int_equal(s.waiting + s.lost + s.unheld, 0);
	assert_int_equal(owner(&c), 0);
	/* The next one in that slot is, if it was never told of. */
	c = accepted(B);
	s = dies(B, false);
	assert_int_equal(s.unheld, 1);
}

/* What the hold has not all of cannot go on: it is cut, not guessed. */
static void
test_lost(void **state)
{
	struct conn c = held(A);
	struct hf_settled s;

	(void)state;
	serves(&c, HF_HOLD_SERVING | HF_HOLD_LOST, "turn_1");
	worker_closes(&c);
	s = dies(A, false);
	assert_int_equal(s.lost, 1);
	assert_false(s.orphans);
	assert_int_equal(s.waiting, 0);
	assert_true(is_cut(&c));
	assert_int_equal(owner(&c), 0);
	/* The same at the second death: the lease may be the first owner's. */
	c = held(A);
	dies(A, false);
	pass_to(B);
	serves(&c, HF_HOLD_SERVING | HF_HOLD_LOST, "turn_1");
	s = dies(B, false);
	assert_int_equal(s.lost, 1);
	assert_true(s.orphans);
}

/* --- records that cross ----------------------------------------------------
 */

/* A's slot becomes B's, and the master reads B's socketpair first. */
static void
test_crossing(void **state)
{
	struct conn a = held(A), b;
	struct hf_settled s;

	(void)state;
	worker_closes(&a);
	hf_hold_give(&hold, a.slot);
	b = accepted(B);
	assert_int_equal(b.slot, a.slot);
	assert_true(tells(&b));
	assert_true(is_cut(&a));			 /* replaced */
	hf_handover_released(table, A, a.slot, a.epoch); /* too late */
	worker_closes(&b);
	assert_false(is_cut(&b));
	/* A's death does not touch it either. */
	s = dies(A, true);
	assert_int_equal(s.waiting + s.lost + s.unheld, 0);
	assert_false(is_cut(&b));
	assert_int_equal(owner(&b), B);
}

/* The beginning of a connection that has ended meanwhile. */
static void
test_stale_beginning(void **state)
{
	struct conn a = accepted(A), b;

	(void)state;
	hf_hold_give(&hold, a.slot);
	assert_false(tells(&a)); /* nobody's now */
	b = held(B);
	assert_int_equal(b.slot, a.slot);
	assert_false(tells(&a)); /* somebody else's */
	worker_closes(&a);
	assert_true(is_cut(&a));
	worker_closes(&b);
	assert_false(is_cut(&b));
	/* The same worker's, one connection later. */
	a = accepted(A);
	hf_hold_give(&hold, a.slot);
	b = accepted(A);
	assert_int_equal(b.slot, a.slot);
	assert_false(tells(&a));
	assert_true(tells(&b));
}

/* A worker's place in the scoreboard is not its incarnation: what its
 * successor took is not settled as the dead one's, and the dead one's slots
 * are not given to it before they are settled. */
static void
test_successor(void **state)
{
	struct conn a = held(A), b = held(B);
	struct hf_settled s;

	(void)state;
	assert_int_not_equal(a.slot, b.slot);
	s = dies(A, false);
	assert_int_equal(s.waiting, 1);
	assert_int_equal(owner(&b), B);
	s = dies(A, false); /* told twice: nothing new */
	assert_int_equal(s.waiting + s.lost + s.unheld, 0);
	assert_int_equal(pass_to(B), 0);
	assert_int_equal(n_told, 1);
}

/* Nonsense of a worker gone mad. */
static void
test_nonsense(void **state)
{
	struct conn c = held(A);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct hf_settled s;

	(void)state;
	assert_false(hf_handover_held(table, A, HF_HOLD_SLOTS, 1, dup(null)));
	assert_false(hf_handover_held(table, A, UINT32_MAX, 1, dup(null)));
	assert_false(hf_handover_held(table, 0, c.slot + 1, 0, dup(null)));
	assert_false(hf_handover_held(table, B, c.slot, c.epoch, dup(null)));
	assert_false(hf_handover_held(table, A, c.slot, c.epoch, -1));
	hf_handover_released(table, A, HF_HOLD_SLOTS, 1);
	hf_handover_released(table, 0, c.slot + 1, 0);
	assert_int_equal(hf_handover_n_held(table), 1);
	/* All copies that were handed in are closed. */
	assert_int_equal(dup(null), null + 1);
	close(null + 1);
	close(null);
	/* The owner is scribbled over while it waits for an heir: it is
	 * dropped, and we live on. */
	worker_closes(&c);
	s = dies(A, false);
	assert_int_equal(s.waiting, 1);
	atomic_store(hf_hold_owner(&hold, c.slot), 99);
	assert_int_equal(pass_to(B), 0);
	assert_int_equal(n_told, 0);
	assert_true(is_cut(&c));
}

/* More connections than we may have descriptors: the rest is not held. */
static void
test_most(void **state)
{
	struct conn c[3];
	struct hf_settled s;

	(void)state;
	hf_handover_free(table);
	table = hf_handover_new(&hold, 2);
	for (unsigned i = 0; i < 3; i++)
		c[i] = accepted(A);
	assert_true(tells(&c[0]));
	assert_true(tells(&c[1]));
	assert_false(tells(&c[2]));
	assert_int_equal(hf_handover_n_held(table), 2);
	worker_closes(&c[2]);
	s = dies(A, false);
	assert_int_equal(s.waiting, 2);
	assert_int_equal(s.unheld, 1);
	assert_true(is_cut(&c[2]));
}

/* --- heirs ------------------------------------------------------------------
 */

static void
test_nobody_ready(void **state)
{
	struct conn c = held(A);

	(void)state;
	serves(&c, HF_HOLD_SERVING, "turn_1");
	worker_closes(&c);
	dies(A, false);
	assert_int_equal(hf_handover_pass(table, NULL, 0, send_adopt, NULL), 1);
	assert_int_equal(hf_handover_n_waiting(table), 1);
	assert_false(is_cut(&c));
	assert_true(hf_hold_serves(&hold, "turn_1"));
	assert_int_equal(pass_to(B), 0);
	assert_int_equal(hf_handover_n_waiting(table), 0);
	assert_int_equal(owner(&c), B);
}

/* An heir that does not read is passed over; when all are full it waits, and
 * is still nobody's to settle. */
static void
test_full(void **state)
{
	struct hf_taker t[2] = { { .inc = B }, { .inc = C } };
	struct conn c = held(A);

	(void)state;
	serves(&c, HF_HOLD_SERVING, "turn_1");
	dies(A, false);
	refuse[0] = refuse[1] = HF_EBUSY;
	assert_int_equal(hf_handover_pass(table, t, 2, send_adopt, NULL), 1);
	assert_int_equal(owner(&c), A);
	assert_true(hf_hold_serves(&hold, "turn_1"));
	refuse[1] = 0;
	assert_int_equal(hf_handover_pass(table, t, 2, send_adopt, NULL), 0);
	assert_int_equal(n_told, 1);
	assert_int_equal(told[0].i, 1);
	assert_int_equal(owner(&c), C);
	assert_int_equal(t[0].given, 0);
	assert_int_equal(t[1].given, 1);
}

/* The heir dies before it read that it is one. */
static void
test_heir_dies(void **state)
{
	struct conn c = held(A);
	struct hf_settled s;

	(void)state;
	serves(&c, HF_HOLD_SERVING, "turn_1");
	worker_closes(&c);
	dies(A, false);
	assert_int_equal(pass_to(B), 0);
	s = dies(B, false);
	assert_int_equal(s.waiting, 1);
	assert_true(hf_hold_serves(&hold, "turn_1"));
	assert_int_equal(pass_to(C), 0);
	assert_int_equal(owner(&c), C);
	assert_int_equal(n_told, 2);
	assert_int_equal(told[1].epoch, c.epoch);
	assert_false(is_cut(&c));
	/* A late word of the first heir changes nothing. */
	hf_handover_released(table, B, c.slot, c.epoch);
	assert_false(is_cut(&c));
}

static void
test_spread(void **state)
{
	struct hf_taker t[3] = { { .inc = B, .generation = 1 },
		{ .inc = C, .generation = 1 },
		{ .inc = D, .generation = 1, .slow = true } };

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		held(A);
	for (unsigned i = 0; i < 6; i++)
		held(B);
	/* Those with the fewest first; who seems to hang only at need. */
	dies(A, false);
	assert_int_equal(hf_handover_pass(table, t, 3, send_adopt, NULL), 0);
	assert_int_equal(t[0].given, 2);
	assert_int_equal(t[1].given, 8);
	assert_int_equal(t[2].given, 0);
	/* The newest generation takes all. */
	dies(C, false);
	t[1] = (struct hf_taker){ .inc = A + 100, .generation = 2 };
	t[0].generation = t[2].generation = 1;
	assert_int_equal(hf_handover_pass(table, t, 3, send_adopt, NULL), 0);
	assert_int_equal(t[0].given, 0);
	assert_int_equal(t[1].given, 8);
	assert_int_equal(t[2].given, 0);
	/* Only who hangs is left. */
	dies(A + 100, false);
	assert_int_equal(
	    hf_handover_pass(table, &t[2], 1, send_adopt, NULL), 0);
	assert_int_equal(t[2].given, 8);
}

static void
test_cut(void **state)
{
	struct conn c = held(A), live = held(B);

	(void)state;
	serves(&c, HF_HOLD_SERVING, "turn_1");
	worker_closes(&c);
	worker_closes(&live);
	dies(A, false);
	assert_int_equal(hf_handover_cut(table), 1);
	assert_true(is_cut(&c));
	assert_false(is_cut(&live));
	assert_int_equal(owner(&c), 0);
	assert_false(hf_hold_serves(&hold, "turn_1"));
	assert_int_equal(hf_handover_n_waiting(table), 0);
	assert_int_equal(hf_handover_n_held(table), 1);
}

/* --- poison ------------------------------------------------------------------
 */

/* Its faults end with the request, which is front's to say. */
static void
test_poison(void **state)
{
	struct conn c = held(A), idle = held(A);
	struct hf_settled s;

	(void)state;
	serves(&c, HF_HOLD_SERVING, "turn_1");
	s = dies(A, true);
	assert_int_equal(s.waiting, 2);
	assert_int_equal(s.poisoned, 0);
	pass_to(B);
	/* Killed from outside: not the request's doing. */
	s = dies(B, false);
	assert_int_equal(s.poisoned, 0);
	pass_to(C);
	s = dies(C, true);
	assert_int_equal(s.waiting, 2);
	assert_int_equal(s.poisoned, 1);
	n_told = 0;
	pass_to(D);
	assert_int_equal(n_told, 2);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(told[i].poisoned, told[i].slot == c.slot);
	assert_int_equal(
	    atomic_load(&hf_hold_slot(&hold, idle.slot)->faults), 0);
	/* Not told yet when the next owner was killed: it still is. */
	s = dies(D, false);
	assert_int_equal(s.poisoned, 1);
	pass_to(A + 100);
	/* The next request on this connection is innocent. */
	atomic_store(&hf_hold_slot(&hold, c.slot)->faults, 0);
	serves(&c, HF_HOLD_SERVING, "turn_2");
	s = dies(A + 100, true);
	assert_int_equal(s.poisoned, 0);
}

/* --- the way of the records
 * ---------------------------------------------------- */

static int
child_type(int fd, uint32_t *slot, int *passed)
{
	struct hf_ipc r;
	int rc = hf_ipc_recv_fd(fd, &r, passed);

	*slot = r.slot;
	return rc == 1 ? (int)r.type : rc;
}

/* A worker that dies with records of ours unread resets the socketpair: what
 * it had said is still heard, all of it. */
static void
test_reset(void **state)
{
	struct hf_ipc r = { .type = HF_IPC_RELEASED };
	struct hf_error e;
	uint32_t slot;
	int pair[2], passed;

	(void)state;
	assert_int_equal(hf_ipc_pair(pair, &e), 0);
	for (r.slot = 1; r.slot <= 3; r.slot++)
		assert_int_equal(hf_ipc_send(pair[1], &r), 0);
	r.type = HF_IPC_ADOPT;
	assert_int_equal(hf_ipc_send(pair[0], &r), 0);
	close(pair[1]);
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(
		    child_type(pair[0], &slot, &passed), HF_IPC_RELEASED);
		assert_int_equal(slot, i);
	}
	assert_int_equal(child_type(pair[0], &slot, &passed), 0);
	close(pair[0]);
}

/* Read all records that are there; they must go on in order. */
static unsigned
read_in_order(int fd, unsigned next)
{
	uint32_t slot;
	int passed, type;

	while ((type = child_type(fd, &slot, &passed)) > 0) {
		/* Even ones begin, odd ones end the one before. */
		assert_int_equal(
		    type, next % 2 == 0 ? HF_IPC_HELD : HF_IPC_RELEASED);
		assert_int_equal(slot, next / 2);
		assert_int_equal(passed >= 0, next % 2 == 0);
		if (passed >= 0)
			close(passed);
		next++;
	}
	assert_int_equal(type, HF_EBUSY);
	return next;
}

/* While the master does not read, records wait: none is lost and none passes
 * another. */
static void
test_tell(void **state)
{
	const unsigned n = 4000;
	struct event_base *base = event_base_new();
	struct hf_tell *t;
	struct hf_error e;
	unsigned next = 0, looks = 0;
	int pair[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(hf_ipc_pair(pair, &e), 0);
	assert_int_equal(hf_tell_new(&t, base, pair[1], A, &e), 0);
	for (unsigned i = 0; i < n; i++)
		assert_true(hf_tell_held(t, i / 2, 1, i % 2 == 0 ? null : -1));
	while (next < n) {
		next = read_in_order(pair[0], next);
		event_base_loop(base, EVLOOP_NONBLOCK);
		assert_true(++looks < 1000);
	}
	assert_true(looks > 2); /* it was full */
	assert_int_equal(event_base_loop(base, EVLOOP_NONBLOCK), 1);
	hf_tell_free(t);
	close(pair[0]);
	close(pair[1]);
	close(null);
	event_base_free(base);
	libevent_global_shutdown();
}

/* A queue without end helps nobody: beginnings are refused, ends are not. */
static void
test_tell_limit(void **state)
{
	struct event_base *base = event_base_new();
	struct hf_tell *t;
	struct hf_error e;
	unsigned n = 0;
	int pair[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(hf_ipc_pair(pair, &e), 0);
	assert_int_equal(hf_tell_new(&t, base, pair[1], A, &e), 0);
	while (n < 3 * HF_HOLD_SLOTS && hf_tell_held(t, n % 7, 1, -1))
		n++;
	assert_int_equal(n, 3 * HF_HOLD_SLOTS);
	assert_false(hf_tell_held(t, 1, 2, null));
	/* A master that is gone is told nothing. */
	hf_tell_free(t);
	assert_int_equal(hf_tell_new(&t, base, pair[1], A, &e), 0);
	close(pair[0]);
	assert_false(hf_tell_held(t, 1, 3, null));
	hf_tell_free(t);
	close(pair[1]);
	close(null);
	event_base_free(base);
	libevent_global_shutdown();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_goes_on, begin, end),
		cmocka_unit_test_setup_teardown(test_released, begin, end),
		cmocka_unit_test_setup_teardown(test_never_told, begin, end),
		cmocka_unit_test_setup_teardown(
		    test_release_unsent, begin, end),
		cmocka_unit_test_setup_teardown(
		    test_released_and_died, begin, end),
		cmocka_unit_test_setup_teardown(test_lost, begin, end),
		cmocka_unit_test_setup_teardown(test_crossing, begin, end),
		cmocka_unit_test_setup_teardown(
		    test_stale_beginning, begin, end),
		cmocka_unit_test_setup_teardown(test_successor, begin, end),
		cmocka_unit_test_setup_teardown(test_nonsense, begin, end),
		cmocka_unit_test_setup_teardown(test_most, begin, end),
		cmocka_unit_test_setup_teardown(test_nobody_ready, begin, end),
		cmocka_unit_test_setup_teardown(test_full, begin, end),
		cmocka_unit_test_setup_teardown(test_heir_dies, begin, end),
		cmocka_unit_test_setup_teardown(test_spread, begin, end),
		cmocka_unit_test_setup_teardown(test_cut, begin, end),
		cmocka_unit_test_setup_teardown(test_poison, begin, end),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_tell),
		cmocka_unit_test(test_tell_limit),
	};

	return cmocka_run_group_tests_name("handover", tests, NULL, NULL);
}
