/*
 * The service manager's protocols: readiness datagrams, watchdog, passed
 * sockets.
 */
#include <config.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "workers/notify.h"

static char dir[] = "/tmp/hf-notify-XXXXXX";
static char path[sizeof(dir) + 16];

static int
set_up(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/n", dir);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

/* A receiver; 'name' starting with '@' is abstract. */
static int
receiver(const char *name)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	memcpy(sun.sun_path, name, strlen(name));
	if (name[0] == '@')
		sun.sun_path[0] = '\0';
	assert_int_equal(
	    bind(fd, (void *)&sun,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) +
		    strlen(name))),
	    0);
	return fd;
}

static void
check_told(const char *name)
{
	char got[128];
	ssize_t n;
	int fd = receiver(name);

	setenv("NOTIFY_SOCKET", name, 1);
	assert_true(hf_notify("READY=1\nSTATUS=%s", "Serving."));
	n = recv(fd, got, sizeof(got) - 1, 0);
	assert_true(n > 0);
	got[n] = '\0';
	assert_string_equal(got, "READY=1\nSTATUS=Serving.");
	close(fd);
}

static void
test_notify_reaches_the_manager(void **state)
{
	char name[64];

	(void)state;
	check_told(path);
	snprintf(name, sizeof(name), "@hf-notify-%d", (int)getpid());
	check_told(name);
}

static void
test_notify_without_a_manager(void **state)
{
	char big[600];

	(void)state;
	unsetenv("NOTIFY_SOCKET");
	assert_false(hf_notify("READY=1"));
	setenv("NOTIFY_SOCKET", "", 1);
	assert_false(hf_notify("READY=1"));
	setenv("NOTIFY_SOCKET", "relative", 1);
	assert_false(hf_notify("READY=1"));
	setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
	assert_false(hf_notify("READY=1"));
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_false(hf_notify("STATUS=%s", big));
	unsetenv("NOTIFY_SOCKET");
}

static void
test_watchdog(void **state)
{
	char pid[16];

	(void)state;
	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
	assert_int_equal(hf_notify_watchdog_us(), 0);
	setenv("WATCHDOG_USEC", "30000000", 1);
	assert_int_equal(hf_notify_watchdog_us(), 30000000);
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(hf_notify_watchdog_us(), 0);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(hf_notify_watchdog_us(), 30000000);
	setenv("WATCHDOG_USEC", "soon", 1);
	assert_int_equal(hf_notify_watchdog_us(), 0);
	setenv("WATCHDOG_USEC", "-5", 1);
	assert_int_equal(hf_notify_watchdog_us(), 0);
}

/* Runs in a process of its own, whose descriptors 3 and 4 are ours. */
static int
take_fds(const char *fds, int pid_offset)
{
	char pid[16];
	unsigned n;

	if (dup2(0, 3) < 0 || dup2(0, 4) < 0)
		return 100;
	snprintf(pid, sizeof(pid), "%d", (int)getpid() + pid_offset);
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", fds, 1);
	setenv("LISTEN_FDNAMES", "a:b", 1);
	n = hf_notify_listen_fds();
	if (getenv("LISTEN_PID") != NULL || getenv("LISTEN_FDS") != NULL ||
	    getenv("LISTEN_FDNAMES") != NULL)
		return 101;
	if (n == 2 &&
	    ((fcntl(3, F_GETFD) & FD_CLOEXEC) == 0 ||
		(fcntl(4, F_GETFD) & FD_CLOEXEC) == 0))
		return 102;
	return (int)n;
}

static int
taken(const char *fds, int pid_offset)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(take_fds(fds, pid_offset));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
test_passed_sockets(void **state)
{
	(void)state;
	assert_int_equal(taken("2", 0), 2);
	assert_int_equal(taken("2", 1), 0); /* meant for another */
	assert_int_equal(taken("0", 0), 0);
	assert_int_equal(taken("-1", 0), 0);
	assert_int_equal(taken("2x", 0), 0);
	assert_int_equal(taken("1000000", 0), 0);
	unsetenv("LISTEN_PID");
	assert_int_equal(hf_notify_listen_fds(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notify_reaches_the_manager),
		cmocka_unit_test(test_notify_without_a_manager),
		cmocka_unit_test(test_watchdog),
		cmocka_unit_test(test_passed_sockets),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
