/*
 * Runs of this program as its own children.
 */
#include <config.h>

#include "bench/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "bench/format.h"

void
hf_child_arg(struct hf_child *c, const char *arg)
{
	HF_CHECK(c->n_arg + 4 < hf_countof(c->argv));
	c->argv[c->n_arg++] = arg;
}

static void
become(struct hf_child *c, const char *json, int log, pid_t parent)
{
	char *argv[hf_countof(c->argv) + 1] = { (char[]){ "continuitybench" } };

	for (unsigned i = 0; i < c->n_arg; i++)
		argv[1 + i] = (char *)(uintptr_t)c->argv[i];
	argv[1 + c->n_arg] = (char[]){ "--json" };
	argv[2 + c->n_arg] = (char *)(uintptr_t)json;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent && dup2(log, 1) >= 0 && dup2(log, 2) >= 0)
		execv("/proc/self/exe", argv);
	_exit(127);
}

static int
start(struct hf_child *c, const char *dir, struct hf_error *e)
{
	char *json = hf_format("%s/%s.json", dir, c->name);
	char *log = hf_format("%s/%s.log", dir, c->name);
	int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	pid_t parent = getpid();
	int rc = 0;

	unlink(json);
	if (fd < 0) {
		rc = hf_fail_errno(e, "%s", log);
	} else {
		c->pid = fork();
		if (c->pid == 0)
			become(c, json, fd, parent);
		if (c->pid < 0)
			rc = hf_fail_errno(e, "fork");
		close(fd);
	}
	free(json);
	free(log);
	return rc;
}

static void
finish(struct hf_child *c, int status, const char *dir)
{
	char *json = hf_format("%s/%s.json", dir, c->name);

	c->pid = 0;
	c->exit =
	    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	c->report = json_load_file(json, 0, NULL);
	free(json);
}

int
hf_children_run(struct hf_child *c, unsigned n, unsigned jobs, const char *dir,
    void (*done)(void *arg, unsigned i), void *arg, struct hf_error *e)
{
	unsigned next = 0, running = 0, i;
	int status, rc = 0;

	while (running > 0 || (rc == 0 && next < n)) {
		while (rc == 0 && running < jobs && next < n) {
			rc = start(&c[next], dir, e);
			running += rc == 0;
			next++;
		}
		if (running == 0)
			break;
		pid_t pid = wait(&status);

		if (pid < 0 && errno != EINTR)
			return hf_fail_errno(e, "wait");
		for (i = 0; i < n && c[i].pid != pid; i++)
			;
		if (pid <= 0 || i == n)
			continue;
		running--;
		finish(&c[i], status, dir);
		done(arg, i);
	}
	return rc;
}

void
hf_children_free(struct hf_child *c, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		json_decref(c[i].report);
	free(c);
}
