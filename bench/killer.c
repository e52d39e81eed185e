/*
 * Finding a gateway's workers in /proc and killing one of them.
 */
#include <config.h>

#include "bench/killer.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_WORKERS 64

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

void
hf_killer_kill(void *arg)
{
	struct hf_killer *k = arg;
	pid_t worker[MAX_WORKERS];
	unsigned n = 0;
	struct dirent *d;
	DIR *proc;

	if (k->gateway <= 0 || (proc = opendir("/proc")) == NULL)
		return;
	while (n < MAX_WORKERS && (d = readdir(proc)) != NULL)
		if (d->d_name[0] >= '1' && d->d_name[0] <= '9' &&
		    parent_of(d->d_name) == k->gateway && is_worker(d->d_name))
			worker[n++] = (pid_t)strtol(d->d_name, NULL, 10);
	closedir(proc);
	if (n > 0 && kill(worker[hf_rng_below(&k->rng, n)], SIGKILL) == 0)
		k->kills++;
}
