/*
 * Finding a gateway's workers in /proc and killing one of them.
 */
#include <config.h>

#include "bench/killer.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_CHILDREN 64

void
hf_killer_init(struct hf_killer *k, pid_t gateway, uint64_t seed)
{
	k->gateway = gateway;
	k->kills = 0;
	hf_rng_init(&k->rng, seed);
}

/* The file's size, or 0. */
static size_t
read_file(const char *pid, const char *name, char *out, size_t size)
{
	char path[320];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, out, size - 1);
	close(fd);
	out[n < 0 ? 0 : n] = '\0';
	return n < 0 ? 0 : (size_t)n;
}

static pid_t
parent_of(const char *pid)
{
	char text[512], state;
	const char *p;
	int parent = 0;

	/* The name, in parentheses, may hold anything. */
	if (read_file(pid, "stat", text, sizeof(text)) == 0 ||
	    (p = strrchr(text, ')')) == NULL ||
	    sscanf(p + 1, " %c %d", &state, &parent) != 2)
		return 0;
	return parent;
}

static bool
is_worker(const char *pid)
{
	static const char role[] = "--role\0worker";
	char text[4096];
	size_t n = read_file(pid, "cmdline", text, sizeof(text));

	return memmem(text, n, role, sizeof(role)) != NULL;
}

/* The gateway's children, or its workers; their count. */
static unsigned
children(const struct hf_killer *k, bool workers, pid_t out[MAX_CHILDREN])
{
	struct dirent *d;
	unsigned n = 0;
	DIR *proc;

	if (k->gateway <= 0 || (proc = opendir("/proc")) == NULL)
		return 0;
	while (n < MAX_CHILDREN && (d = readdir(proc)) != NULL)
		if (d->d_name[0] >= '1' && d->d_name[0] <= '9' &&
		    parent_of(d->d_name) == k->gateway &&
		    (!workers || is_worker(d->d_name)))
			out[n++] = (pid_t)strtol(d->d_name, NULL, 10);
	closedir(proc);
	return n;
}

/* The socket of a connection from this port of the loopback, or 0. */
static unsigned long
inode_of(unsigned port)
{
	FILE *f = fopen("/proc/net/tcp", "re");
	unsigned long inode = 0, found = 0;
	unsigned local, state;
	char line[512];

	while (f != NULL && found == 0 && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line,
			" %*u: %*x:%x %*x:%*x %x %*x:%*x %*x:%*x %*x %*u %*u "
			"%lu",
			&local, &state, &inode) == 3 &&
		    local == port && state == TCP_ESTABLISHED)
			found = inode;
	if (f != NULL)
		fclose(f);
	return found;
}

static bool
has_socket(pid_t pid, unsigned long inode)
{
	char dir[40], path[320], want[40], is[40];
	struct dirent *d;
	bool found = false;
	DIR *fds;
	ssize_t n;

	snprintf(dir, sizeof(dir), "/proc/%d/fd", (int)pid);
	snprintf(want, sizeof(want), "socket:[%lu]", inode);
	if (inode == 0 || (fds = opendir(dir)) == NULL)
		return false;
	while (!found && (d = readdir(fds)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", dir, d->d_name);
		n = readlink(path, is, sizeof(is) - 1);
		is[n < 0 ? 0 : n] = '\0';
		found = strcmp(is, want) == 0;
	}
	closedir(fds);
	return found;
}

void
hf_killer_kill_worker(struct hf_killer *k, unsigned port)
{
	unsigned long inode = port == 0 ? 0 : inode_of(port);
	pid_t pid[MAX_CHILDREN];
	unsigned n = children(k, true, pid), i = 0;

	if (n == 0)
		return;
	while (i < n && !has_socket(pid[i], inode))
		i++;
	if (i == n)
		i = hf_rng_below(&k->rng, n);
	if (kill(pid[i], SIGKILL) == 0)
		k->kills++;
}

void
hf_killer_kill(void *arg)
{
	hf_killer_kill_worker(arg, 0);
}

void
hf_killer_kill_master(struct hf_killer *k)
{
	if (k->gateway > 0 && kill(k->gateway, SIGKILL) == 0)
		k->kills++;
}

/* Is it there and more than an entry of the table? */
static bool
lives(pid_t pid)
{
	char name[24], text[512];
	const char *p;

	snprintf(name, sizeof(name), "%d", (int)pid);
	return read_file(name, "stat", text, sizeof(text)) > 0 &&
	    (p = strrchr(text, ')')) != NULL && p[1] != '\0' && p[2] != 'Z' &&
	    p[2] != 'X';
}

void
hf_killer_kill_tree(struct hf_killer *k)
{
	struct timespec nap = { 0, 1000000 };
	pid_t pid[MAX_CHILDREN + 1];
	unsigned n = children(k, false, pid);

	if (k->gateway <= 0)
		return;
	pid[n++] = k->gateway;
	/* The master first: it would start others. */
	for (unsigned i = n; i > 0; i--)
		if (kill(pid[i - 1], SIGKILL) == 0)
			k->kills++;
	for (unsigned i = 0; i < n; i++)
		while (lives(pid[i]))
			nanosleep(&nap, NULL);
}
