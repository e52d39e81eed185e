/*
 * sd_notify(3) and sd_listen_fds(3) as small as they are.
 */
#include <config.h>

#include "workers/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static bool
send_text(const char *path, const char *text, size_t size)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t n = strlen(path);
	socklen_t len;
	ssize_t w;
	int fd;

	if (n < 2 || n >= sizeof(sun.sun_path) ||
	    (path[0] != '/' && path[0] != '@'))
		return false;
	memcpy(sun.sun_path, path, n);
	if (path[0] == '@')
		sun.sun_path[0] = '\0';
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	do
		w = sendto(fd, text, size, MSG_NOSIGNAL, (void *)&sun, len);
	while (w < 0 && errno == EINTR);
	close(fd);
	return w == (ssize_t)size;
}

bool
hf_notify(const char *fmt, ...)
{
	const char *path = getenv("NOTIFY_SOCKET");
	char text[512];
	va_list ap;
	int n;

	if (path == NULL || *path == '\0')
		return false;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n <= 0 || (size_t)n >= sizeof(text))
		return false;
	return send_text(path, text, (size_t)n);
}

/* A decimal number that fills the variable; -1 if it is missing or not. */
static long long
env_number(const char *name)
{
	const char *v = getenv(name);
	char *end;
	long long n;

	if (v == NULL || *v < '0' || *v > '9')
		return -1;
	errno = 0;
	n = strtoll(v, &end, 10);
	return errno != 0 || *end != '\0' ? -1 : n;
}

int64_t
hf_notify_watchdog_us(void)
{
	long long us = env_number("WATCHDOG_USEC");
	long long pid = env_number("WATCHDOG_PID");

	if (us <= 0 || (pid >= 0 && pid != (long long)getpid()))
		return 0;
	return us;
}

unsigned
hf_notify_listen_fds(void)
{
	long long pid = env_number("LISTEN_PID");
	long long n = env_number("LISTEN_FDS");

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (pid != (long long)getpid() || n <= 0 || n > 64)
		return 0;
	for (int i = 0; i < (int)n; i++)
		if (fcntl(HF_LISTEN_FDS_START + i, F_SETFD, FD_CLOEXEC) < 0)
			return 0;
	return (unsigned)n;
}
