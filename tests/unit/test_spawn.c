/*
 * fork+exec with the fixed descriptor table, records to the master, and the
 * things that are opened once: lock, listeners, control socket.  The test
 * program is its own child: "--child WHAT".
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/shm.h"
#include "workers/confine.h"
#include "workers/ipc.h"
#include "workers/listen.h"
#include "workers/spawn.h"

#define N_FDS 5 /* the child's table: 3..7 */

/* --- the child -------------------------------------------------------- */

/* What the parent is told: a bit for each thing that is as it must be. */
enum {
	OK_TABLE = 1,
	OK_CLOSED = 2,
	OK_NULL = 4,
	OK_SIGNALS = 8,
	OK_DEATHSIG = 16,
	OK_CONFINED = 32,
	OK_ALL = 63
};

static bool
table_right(void)
{
	eventfd_t v = 0;

	/* Entry 2 is an eventfd that holds 41. */
	return fcntl(3, F_GETFD) >= 0 && eventfd_read(5, &v) == 0 && v == 41;
}

static bool
rest_closed(void)
{
	for (int fd = HF_FD_SHM + N_FDS; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			return false;
	return true;
}

static bool
is_null(int fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat("/dev/null", &b) == 0 &&
	    a.st_rdev == b.st_rdev && S_ISCHR(a.st_mode);
}

static bool
signals_right(void)
{
	struct sigaction sa;
	sigset_t set;

	if (sigprocmask(SIG_SETMASK, NULL, &set) < 0 ||
	    sigismember(&set, SIGTERM) || sigismember(&set, SIGHUP))
		return false;
	return sigaction(SIGPIPE, NULL, &sa) == 0 && sa.sa_handler == SIG_DFL;
}

static bool
confined(void)
{
	struct hf_error e;
	struct rlimit rl;

	return hf_confine(&e) == 0 &&
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 &&
	    getrlimit(RLIMIT_CORE, &rl) == 0 && rl.rlim_max == 0 &&
	    getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur >= 512;
}

static int
child_main(const char *what)
{
	struct hf_ipc r = { .type = HF_IPC_READY, .sender = 7 };
	int sig = 0;

	if (strcmp(what, "wait") == 0) {
		r.a = getpid();
		if (hf_ipc_send(HF_FD_PARENT, &r) < 0)
			return 1;
		for (;;)
			pause();
	}
	r.a = table_right() ? OK_TABLE : 0;
	r.a |= rest_closed() ? OK_CLOSED : 0;
	r.a |= is_null(0) && is_null(6) ? OK_NULL : 0;
	r.a |= signals_right() ? OK_SIGNALS : 0;
	r.a |= prctl(PR_GET_PDEATHSIG, &sig) == 0 && sig == SIGKILL ?
	    OK_DEATHSIG :
	    0;
	r.a |= confined() ? OK_CONFINED : 0;
	return hf_ipc_send(HF_FD_PARENT, &r) < 0 ? 1 : 42;
}

/* --- helpers ---------------------------------------------------------- */

static char dir[] = "/tmp/hf-spawn-XXXXXX";

static int
make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) == NULL ? -1 : 0;
}

static int
drop_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

static const char *
in_dir(const char *name)
{
	static char path[4][256];
	static unsigned n;
	char *p = path[n++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static void
await_record(int fd, struct hf_ipc *r)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(hf_ipc_recv(fd, r), 1);
}

static pid_t
start_child(const char *what, int *parent)
{
	char prog[] = "test_spawn", child[] = "--child", arg[16];
	char *argv[] = { prog, child, arg, NULL };
	int fd[N_FDS], pair[2];
	struct hf_error e;
	pid_t pid;

	snprintf(arg, sizeof(arg), "%s", what);
	assert_int_equal(hf_ipc_pair(pair, &e), 0);
	/* Sources that collide with the targets in every way. */
	fd[0] = 1;
	fd[1] = pair[1];
	fd[2] = eventfd(41, EFD_CLOEXEC);
	fd[3] = -1;
	fd[4] = fd[2];
	pid = hf_spawn(argv, fd, N_FDS, &e);
	assert_true(pid > 0);
	close(pair[1]);
	close(fd[2]);
	*parent = pair[0];
	return pid;
}

/* --- spawn ------------------------------------------------------------ */

static void
test_child_sees_its_table_only(void **state)
{
	struct hf_ipc r = { 0 };
	sigset_t set, old;
	int fd, status, stray[64];
	pid_t pid;

	(void)state;
	if (getenv("HF_VALGRIND") != NULL)
		skip(); /* /proc/self/exe is valgrind's own program */
	for (unsigned i = 0; i < hf_countof(stray); i++)
		stray[i] = dup(0); /* not close-on-exec */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &old);
	signal(SIGPIPE, SIG_IGN);
	pid = start_child("report", &fd);
	await_record(fd, &r);
	assert_int_equal(r.type, HF_IPC_READY);
	assert_int_equal(r.sender, 7);
	assert_int_equal(r.a, OK_ALL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 42);
	assert_int_equal(hf_ipc_recv(fd, &r), 0);
	close(fd);
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGPIPE, SIG_DFL);
	for (unsigned i = 0; i < hf_countof(stray); i++)
		close(stray[i]);
}

/* A parent that is killed takes its child along. */
static void
test_child_dies_with_its_parent(void **state)
{
	struct pollfd p = { .events = POLLIN };
	struct hf_ipc r = { 0 };
	int relay[2], status;
	pid_t parent, child = 0;
	char byte;

	(void)state;
	if (getenv("HF_VALGRIND") != NULL)
		skip(); /* /proc/self/exe is valgrind's own program */
	assert_int_equal(pipe(relay), 0);
	parent = fork();
	assert_true(parent >= 0);
	if (parent == 0) {
		int fd;

		close(relay[0]);
		start_child("wait", &fd);
		await_record(fd, &r);
		child = (pid_t)r.a;
		if (write(relay[1], &child, sizeof(child)) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	close(relay[1]);
	assert_int_equal(read(relay[0], &child, sizeof(child)), sizeof(child));
	assert_true(child > 0);
	assert_int_equal(kill(child, 0), 0);
	/* The orphan is ours to wait for. */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, &status, 0), parent);
	p.fd = relay[0];
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(read(relay[0], &byte, 1), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	close(relay[0]);
}

/* --- records ---------------------------------------------------------- */

static void
test_bad_records_are_dropped(void **state)
{
	struct hf_ipc r = { .type = HF_IPC_REAP, .slot = 3, .inc = 99 }, got;
	struct hf_error e;
	int fd[2];
	char big[400] = { 0 };

	(void)state;
	assert_int_equal(hf_ipc_pair(fd, &e), 0);
	assert_int_equal(hf_ipc_recv(fd[0], &got), HF_EBUSY);
	assert_int_equal(send(fd[1], "x", 1, 0), 1);
	assert_int_equal(hf_ipc_recv(fd[0], &got), HF_EPROTO);
	assert_int_equal(send(fd[1], big, sizeof(big), 0), sizeof(big));
	assert_int_equal(hf_ipc_recv(fd[0], &got), HF_EPROTO);
	assert_int_equal(send(fd[1], big, sizeof(r), 0), sizeof(r));
	assert_int_equal(hf_ipc_recv(fd[0], &got), HF_EPROTO);
	r.type = 77;
	assert_int_equal(hf_ipc_send(fd[1], &r), 0);
	assert_int_equal(hf_ipc_recv(fd[0], &got), HF_EPROTO);
	r.type = HF_IPC_REAP;
	memset(r.text, 'x', sizeof(r.text)); /* no NUL */
	assert_int_equal(hf_ipc_send(fd[1], &r), 0);
	assert_int_equal(hf_ipc_recv(fd[0], &got), HF_EPROTO);
	memset(r.text, 0, sizeof(r.text));
	assert_int_equal(hf_ipc_send(fd[1], &r), 0);
	assert_int_equal(hf_ipc_recv(fd[0], &got), 1);
	assert_int_equal(got.slot, 3);
	assert_int_equal(got.inc, 99);
	close(fd[1]);
	assert_int_equal(hf_ipc_recv(fd[0], &got), 0);
	assert_int_equal(hf_ipc_send(fd[0], &r), HF_EUNREACH);
	close(fd[0]);
}

static unsigned
open_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void
test_descriptors_are_passed(void **state)
{
	struct hf_ipc r = { .type = HF_IPC_CONFIG, .a = 5 }, got;
	struct hf_error e;
	int fd[2], null, passed;
	unsigned n;

	(void)state;
	assert_int_equal(hf_ipc_pair(fd, &e), 0);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(null >= 0);
	n = open_fds();
	/* With one, without one, with one that nobody wants. */
	assert_int_equal(hf_ipc_send_fd(fd[1], &r, null), 0);
	assert_int_equal(hf_ipc_recv_fd(fd[0], &got, &passed), 1);
	assert_int_equal(got.a, 5);
	assert_true(passed >= 0 && passed != null);
	assert_int_equal(fcntl(passed, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(passed);
	assert_int_equal(hf_ipc_send(fd[1], &r), 0);
	assert_int_equal(hf_ipc_recv_fd(fd[0], &got, &passed), 1);
	assert_int_equal(passed, -1);
	assert_int_equal(hf_ipc_send_fd(fd[1], &r, null), 0);
	assert_int_equal(hf_ipc_recv(fd[0], &got), 1);
	r.type = 77;
	assert_int_equal(hf_ipc_send_fd(fd[1], &r, null), 0);
	assert_int_equal(hf_ipc_recv_fd(fd[0], &got, &passed), HF_EPROTO);
	assert_int_equal(passed, -1);
	assert_int_equal(open_fds(), n);
	close(null);
	close(fd[0]);
	close(fd[1]);
}

static void
test_full_pipe_does_not_block(void **state)
{
	struct hf_ipc r = { .type = HF_IPC_DRAIN };
	struct hf_error e;
	int fd[2], rc = 0, n = 0;

	(void)state;
	assert_int_equal(hf_ipc_pair(fd, &e), 0);
	while ((rc = hf_ipc_send(fd[1], &r)) == 0 && n < 1000000)
		n++;
	assert_int_equal(rc, HF_EBUSY);
	close(fd[0]);
	close(fd[1]);
}

/* --- lock ------------------------------------------------------------- */

static void
test_one_instance_per_database(void **state)
{
	const char *db = in_dir("a.db");
	struct hf_error e;
	char want[32];
	int fd, copy;

	(void)state;
	fd = hf_lock_database(db, 0, &e);
	assert_true(fd >= 0);
	assert_int_equal(hf_lock_database(db, 50, &e), HF_ECONFLICT);
	snprintf(want, sizeof(want), "pid %d", (int)getpid());
	assert_non_null(strstr(e.text, want));
	/* A child's copy holds it as well. */
	copy = dup(fd);
	close(fd);
	assert_int_equal(hf_lock_database(db, 0, &e), HF_ECONFLICT);
	close(copy);
	fd = hf_lock_database(db, 0, &e);
	assert_true(fd >= 0);
	close(fd);
	unlink(in_dir("a.db.lock"));
}

/* The restart right after a kill: the old tree still has the lock. */
static void
test_lock_waits_for_a_dying_tree(void **state)
{
	const char *db = in_dir("b.db");
	struct hf_error e;
	int fd, go[2], status;
	pid_t pid;
	char byte = 0;

	(void)state;
	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (hf_lock_database(db, 0, &e) < 0 ||
		    write(go[1], "x", 1) != 1)
			_exit(1);
		usleep(200000); /* what it still has to do */
		_exit(0);
	}
	assert_int_equal(read(go[0], &byte, 1), 1);
	fd = hf_lock_database(db, 5000, &e);
	assert_true(fd >= 0);
	close(fd);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	close(go[0]);
	close(go[1]);
	unlink(in_dir("b.db.lock"));
}

/* --- listeners -------------------------------------------------------- */

static void
test_port_zero_gets_a_name(void **state)
{
	char name[HF_ADDR_SIZE], again[HF_ADDR_SIZE];
	struct hf_error e;
	int fd = hf_listen_tcp("127.0.0.1:0", &e), other;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(hf_listen_name(fd, name, &e), 0);
	assert_memory_equal(name, "127.0.0.1:", 10);
	assert_string_not_equal(name, "127.0.0.1:0");
	assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
	/* Taken while it is open. */
	assert_int_equal(hf_listen_tcp(name, &e), HF_ECONFLICT);
	assert_non_null(strstr(e.text, name));
	close(fd);
	other = hf_listen_tcp(name, &e);
	assert_true(other >= 0);
	assert_int_equal(hf_listen_name(other, again, &e), 0);
	assert_string_equal(name, again);
	close(other);
}

static void
test_bad_addresses(void **state)
{
	static const char *const bad[] = { "", ":80", "8080", "127.0.0.1",
		"127.0.0.1:", "localhost:80", "127.0.0.1:http", "[::1:80",
		"300.0.0.1:80", "127.0.0.1:65536", "127.0.0.1:-1" };
	struct hf_error e;

	(void)state;
	for (size_t i = 0; i < hf_countof(bad); i++)
		assert_int_equal(hf_listen_tcp(bad[i], &e), HF_ECONFIG);
}

static void
test_loopback(void **state)
{
	(void)state;
	assert_true(hf_listen_is_loopback("127.0.0.1:80"));
	assert_true(hf_listen_is_loopback("127.9.9.9:0"));
	assert_true(hf_listen_is_loopback("[::1]:8080"));
	assert_false(hf_listen_is_loopback("0.0.0.0:80"));
	assert_false(hf_listen_is_loopback("10.0.0.1:80"));
	assert_false(hf_listen_is_loopback("[::]:80"));
	assert_false(hf_listen_is_loopback("nonsense"));
}

static void
test_control_replaces_only_the_stale(void **state)
{
	const char *path = in_dir("ctl/c.sock");
	struct hf_error e;
	struct stat sb;
	int fd, file;

	(void)state;
	fd = hf_listen_control(path, &e); /* its folder is made */
	assert_true(fd >= 0);
	assert_int_equal(stat(path, &sb), 0);
	assert_int_equal(sb.st_mode & 0777, 0600);
	assert_int_equal(hf_listen_control(path, &e), HF_ECONFLICT);
	close(fd);
	fd = hf_listen_control(path, &e); /* stale now */
	assert_true(fd >= 0);
	close(fd);
	unlink(path);
	file = open(path, O_CREAT | O_WRONLY, 0600);
	close(file);
	assert_int_equal(hf_listen_control(path, &e), HF_ECONFLICT);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
	rmdir(in_dir("ctl"));
}

static void
test_adopted_sockets(void **state)
{
	const char *path = in_dir("s.sock");
	struct hf_error e;
	bool is_control = false;
	int fd, plain;

	(void)state;
	fd = hf_listen_control(path, &e);
	assert_true(fd >= 0);
	assert_int_equal(hf_listen_adopt(fd, &is_control, &e), 0);
	assert_true(is_control);
	close(fd);
	unlink(path);
	fd = hf_listen_tcp("127.0.0.1:0", &e);
	assert_int_equal(hf_listen_adopt(fd, &is_control, &e), 0);
	assert_false(is_control);
	close(fd);
	plain = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(hf_listen_adopt(plain, &is_control, &e), HF_ECONFIG);
	close(plain);
	plain = open("/dev/null", O_RDONLY);
	assert_true(hf_listen_adopt(plain, &is_control, &e) < 0);
	close(plain);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child_sees_its_table_only),
		cmocka_unit_test(test_child_dies_with_its_parent),
		cmocka_unit_test(test_bad_records_are_dropped),
		cmocka_unit_test(test_descriptors_are_passed),
		cmocka_unit_test(test_full_pipe_does_not_block),
		cmocka_unit_test(test_one_instance_per_database),
		cmocka_unit_test(test_lock_waits_for_a_dying_tree),
		cmocka_unit_test(test_port_zero_gets_a_name),
		cmocka_unit_test(test_bad_addresses),
		cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_control_replaces_only_the_stale),
		cmocka_unit_test(test_adopted_sockets),
	};

	if (argc == 3 && strcmp(argv[1], "--child") == 0)
		return child_main(argv[2]);
	return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
