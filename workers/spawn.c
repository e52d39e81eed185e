/*
 * Starting children.
 */
#include <config.h>

#include "workers/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/shm.h"

#define SELF_EXE "/proc/self/exe"

/* After fork: async-signal-safe calls only. */
static HF_NORETURN void
child_fail(const char *what)
{
	static const char head[] = "holdfast: cannot start a child: ";

	if (write(STDERR_FILENO, head, sizeof(head) - 1) < 0 ||
	    write(STDERR_FILENO, what, strlen(what)) < 0 ||
	    write(STDERR_FILENO, "\n", 1) < 0)
		_exit(126);
	_exit(127);
}

static void
reset_signals(void)
{
	struct sigaction sa;
	sigset_t none;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = SIG_DFL;
	for (int s = 1; s < NSIG; s++)
		if (s != SIGKILL && s != SIGSTOP)
			(void)sigaction(s, &sa, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static HF_NORETURN void
child_exec(char *const argv[], const int *fd, unsigned n, pid_t parent)
{
	int tmp[HF_SPAWN_FDS], top = HF_FD_SHM + (int)n, null;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		child_fail("prctl");
	if (getppid() != parent) /* it died before the line above */
		_exit(1);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		child_fail("/dev/null");
	/* First out of the way of every target number, then into place. */
	for (unsigned i = 0; i < n; i++) {
		tmp[i] = fcntl(fd[i] < 0 ? null : fd[i], F_DUPFD_CLOEXEC, top);
		if (tmp[i] < 0)
			child_fail("descriptor table");
	}
	if (dup2(null, STDIN_FILENO) < 0)
		child_fail("stdin");
	for (unsigned i = 0; i < n; i++)
		if (dup2(tmp[i], HF_FD_SHM + (int)i) < 0)
			child_fail("descriptor table");
	if (close_range((unsigned)top, ~0U, 0) < 0)
		for (int i = top; i < 65536; i++)
			close(i);
	reset_signals();
	execv(SELF_EXE, argv);
	child_fail("exec of " SELF_EXE);
}

pid_t
hf_spawn(char *const argv[], const int *fd, unsigned n, struct hf_error *e)
{
	pid_t self = getpid(), pid;

	HF_CHECK(n <= HF_SPAWN_FDS);
	pid = fork();
	if (pid < 0)
		return hf_fail_errno(e, "fork");
	if (pid == 0)
		child_exec(argv, fd, n, self);
	return pid;
}
