/*
 * Lock, listening sockets, control listener.
 */
#include <config.h>

#include "workers/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define BACKLOG 1024
#define LOCK_RETRY_MS 20

/* The folder that 'path' lies in, if it is missing (one level). */
static void
make_parent(const char *path, mode_t mode)
{
	char dir[4096];
	const char *slash = strrchr(path, '/');

	if (slash == NULL || slash == path ||
	    (size_t)(slash - path) >= sizeof(dir))
		return;
	memcpy(dir, path, (size_t)(slash - path));
	dir[slash - path] = '\0';
	/* If this fails, opening the file says why. */
	(void)mkdir(dir, mode);
}

/* --- the lock --------------------------------------------------------- */

static int
lock_taken(int fd, const char *path, struct hf_error *e)
{
	char text[16];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	long pid;

	text[n > 0 ? n : 0] = '\0';
	pid = strtol(text, NULL, 10);
	if (pid > 0)
		return hf_fail(e, HF_ECONFLICT,
		    "%s: another holdfast "
		    "(pid %ld) serves this database",
		    path, pid);
	return hf_fail(e, HF_ECONFLICT,
	    "%s: another process has locked "
	    "this database",
	    path);
}

static int
take_lock(int fd, const char *path, int wait_ms, struct hf_error *e)
{
	const struct timespec nap = { 0, (long)LOCK_RETRY_MS * 1000000 };
	int64_t end = hf_now_us() + (int64_t)wait_ms * 1000;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return hf_fail_errno(e, "%s", path);
		if (hf_now_us() >= end)
			return lock_taken(fd, path, e);
		nanosleep(&nap, NULL);
	}
	return 0;
}

int
hf_lock_database(const char *database, int wait_ms, struct hf_error *e)
{
	char path[4096], text[16];
	int fd, n, rc;

	n = snprintf(path, sizeof(path), "%s.lock", database);
	if (n < 0 || (size_t)n >= sizeof(path))
		return hf_fail(e, HF_ECONFIG, "database: path too long");
	make_parent(path, 0700);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		rc = errno == EACCES ? HF_EPERM : HF_ESYS;
		hf_fail_errno(e, "%s", path);
		return rc;
	}
	rc = take_lock(fd, path, wait_ms, e);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	/* The pid is for people only; the lock itself is what counts. */
	n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) < 0) {
		hf_fail_errno(e, "%s", path);
		close(fd);
		return HF_ESYS;
	}
	return fd;
}

/* --- TCP -------------------------------------------------------------- */

static int
set_options(int fd, struct hf_error *e)
{
	int on = 1, fl = fcntl(fd, F_GETFL);

	if (fl < 0 || fcntl(fd, F_SETFL, fl | O_NONBLOCK) < 0)
		return hf_fail_errno(e, "O_NONBLOCK");
	/* Accepted sockets inherit it. */
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return hf_fail_errno(e, "TCP_NODELAY");
	return 0;
}

/* The resolver takes an empty one as 0 and larger ones modulo 65536. */
static bool
is_port(const char *z)
{
	size_t n = strspn(z, "0123456789");

	return n >= 1 && n <= 5 && z[n] == '\0' && strtol(z, NULL, 10) <= 65535;
}

/* Split "host:port" or "[host]:port" and resolve it, numbers only. */
static int
resolve(const char *addr, struct addrinfo **ai, struct hf_error *e)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST |
		    AI_NUMERICSERV | AI_PASSIVE,
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM };
	const char *colon = strrchr(addr, ':');
	char host[HF_ADDR_SIZE];
	size_t n = colon == NULL ? 0 : (size_t)(colon - addr);

	if (n == 0 || n >= sizeof(host) || !is_port(colon + 1))
		goto bad;
	memcpy(host, addr, n);
	host[n] = '\0';
	if (host[0] == '[' && host[n - 1] == ']') {
		memmove(host, host + 1, n - 2);
		host[n - 2] = '\0';
	}
	if (getaddrinfo(host, colon + 1, &hints, ai) == 0)
		return 0;
bad:
	return hf_fail(e, HF_ECONFIG,
	    "listen: \"%s\" is not ADDRESS:PORT "
	    "with a numeric address",
	    addr);
}

static int
bind_error(const char *addr, struct hf_error *e)
{
	int rc = errno == EADDRINUSE ? HF_ECONFLICT :
	    errno == EACCES	     ? HF_EPERM :
	    errno == EADDRNOTAVAIL   ? HF_ECONFIG :
				       HF_ESYS;

	hf_fail_errno(e, "listen: %s", addr);
	return rc;
}

int
hf_listen_tcp(const char *addr, struct hf_error *e)
{
	struct addrinfo *ai;
	int fd, on = 1, rc;

	rc = resolve(addr, &ai, e);
	if (rc < 0)
		return rc;
	fd = socket(
	    ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		rc = hf_fail_errno(e, "listen: %s", addr);
	} else if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) <
		0 ||
	    (ai->ai_family == AF_INET6 &&
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) <
		    0) ||
	    bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 ||
	    listen(fd, BACKLOG) < 0) {
		rc = bind_error(addr, e);
	} else {
		rc = set_options(fd, e);
	}
	freeaddrinfo(ai);
	if (rc < 0) {
		if (fd >= 0)
			close(fd);
		return rc;
	}
	return fd;
}

int
hf_listen_adopt(int fd, bool *is_control, struct hf_error *e)
{
	int domain, type, listening, fl;
	socklen_t n = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &n) < 0)
		return hf_fail_errno(e,
		    "descriptor %d of the service "
		    "manager",
		    fd);
	if (type != SOCK_STREAM || !listening ||
	    (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6))
		return hf_fail(e, HF_ECONFIG,
		    "descriptor %d of the service "
		    "manager is no listening stream socket",
		    fd);
	*is_control = domain == AF_UNIX;
	if (!*is_control)
		return set_options(fd, e);
	fl = fcntl(fd, F_GETFL);
	if (fl < 0 || fcntl(fd, F_SETFL, fl | O_NONBLOCK) < 0)
		return hf_fail_errno(e, "O_NONBLOCK");
	return 0;
}

int
hf_listen_name(int fd, char out[HF_ADDR_SIZE], struct hf_error *e)
{
	struct sockaddr_storage ss;
	socklen_t n = sizeof(ss);
	char host[48], port[8];

	memset(&ss, 0, sizeof(ss));
	if (getsockname(fd, (void *)&ss, &n) < 0)
		return hf_fail_errno(e, "getsockname");
	if (getnameinfo((void *)&ss, n, host, sizeof(host), port, sizeof(port),
		NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return hf_fail(e, HF_ESYS, "getnameinfo failed");
	snprintf(out, HF_ADDR_SIZE,
	    ss.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	return 0;
}

bool
hf_listen_is_loopback(const char *name)
{
	struct addrinfo *ai;
	bool yes = false;

	if (resolve(name, &ai, NULL) < 0)
		return false;
	if (ai->ai_family == AF_INET) {
		const struct sockaddr_in *a = (const void *)ai->ai_addr;

		yes = ntohl(a->sin_addr.s_addr) >> 24 == 127;
	} else if (ai->ai_family == AF_INET6) {
		const struct sockaddr_in6 *a = (const void *)ai->ai_addr;

		yes = IN6_IS_ADDR_LOOPBACK(&a->sin6_addr);
	}
	freeaddrinfo(ai);
	return yes;
}

/* --- the control listener --------------------------------------------- */

/* Something is at 'path': may we take it away? */
static int
clear_stale(const char *path, const struct sockaddr_un *sun, struct hf_error *e)
{
	struct stat sb;
	int fd, rc = 0;

	if (lstat(path, &sb) < 0)
		return errno == ENOENT ? 0 :
					 hf_fail_errno(e, "control: %s", path);
	if (!S_ISSOCK(sb.st_mode))
		return hf_fail(e, HF_ECONFLICT,
		    "control: %s exists and is "
		    "no socket",
		    path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return hf_fail_errno(e, "control: socket");
	if (connect(fd, (const void *)sun, sizeof(*sun)) == 0 ||
	    errno == EAGAIN)
		rc = hf_fail(e, HF_ECONFLICT,
		    "control: %s is served by "
		    "another process",
		    path);
	else if (errno == ECONNREFUSED && unlink(path) < 0)
		rc = hf_fail_errno(e, "control: %s", path);
	close(fd);
	return rc;
}

int
hf_listen_control(const char *path, struct hf_error *e)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	mode_t old;
	int fd, rc;

	if (strlen(path) >= sizeof(sun.sun_path))
		return hf_fail(e, HF_ECONFIG,
		    "control: %s: longer than the "
		    "%zu bytes of a socket's path",
		    path, sizeof(sun.sun_path) - 1);
	memcpy(sun.sun_path, path, strlen(path));
	make_parent(path, 0755);
	rc = clear_stale(path, &sun, e);
	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return hf_fail_errno(e, "control: socket");
	old = umask(0177);
	rc = bind(fd, (const void *)&sun, sizeof(sun));
	umask(old);
	if (rc < 0 || listen(fd, 64) < 0) {
		rc = errno == EACCES ? HF_EPERM : HF_ESYS;
		hf_fail_errno(e, "control: %s", path);
		close(fd);
		return rc;
	}
	return fd;
}
