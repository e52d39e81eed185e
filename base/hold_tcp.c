/*
 * The kernel's own counts of a TCP connection's bytes.
 *
 * Taken: what was handed to IP once (bytes_sent less what was sent again) and
 * what still waits in the socket (notsent), read in one call, so that the
 * parts belong together.  Consumed: what arrived in order, less what waits to
 * be read, less a FIN, which counts as a byte; two calls, so it is read until
 * two answers agree.
 */
#include <config.h>

#include "base/hold.h"

/* linux/tcp.h has the whole struct, netinet/tcp.h only its beginning. */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* States of the kernel's own list (include/net/tcp_states.h): those in which
 * the peer's FIN has arrived. */
enum { TIME_WAIT_ = 6, CLOSE_WAIT_ = 8, LAST_ACK_ = 9, CLOSING_ = 11 };

static bool
info(int fd, struct tcp_info *t)
{
	socklen_t size = sizeof(*t);

	memset(t, 0, sizeof(*t));
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, t, &size) == 0 &&
	    size >= offsetof(struct tcp_info, tcpi_bytes_retrans) +
		sizeof(t->tcpi_bytes_retrans);
}

bool
hf_tcp_taken(int fd, uint64_t *n)
{
	struct tcp_info t;

	if (!info(fd, &t))
		return false;
	*n = t.tcpi_bytes_sent - t.tcpi_bytes_retrans + t.tcpi_notsent_bytes;
	return true;
}

bool
hf_tcp_acked(int fd, uint64_t *n, bool *waiting)
{
	struct tcp_info t;

	if (!info(fd, &t))
		return false;
	*n = t.tcpi_bytes_acked;
	*waiting = t.tcpi_unacked > 0 || t.tcpi_notsent_bytes > 0;
	return true;
}

static bool
has_fin(const struct tcp_info *t)
{
	return t->tcpi_state == CLOSE_WAIT_ || t->tcpi_state == LAST_ACK_ ||
	    t->tcpi_state == CLOSING_ || t->tcpi_state == TIME_WAIT_;
}

bool
hf_tcp_consumed(int fd, uint64_t *n)
{
	struct tcp_info a, b;
	int waits;

	for (int i = 0; i < 1000; i++) {
		if (!info(fd, &a) || ioctl(fd, FIONREAD, &waits) < 0 ||
		    !info(fd, &b))
			return false;
		if (a.tcpi_bytes_received != b.tcpi_bytes_received ||
		    a.tcpi_state != b.tcpi_state)
			continue;
		*n = a.tcpi_bytes_received - (uint64_t)waits - has_fin(&a);
		return true;
	}
	return false;
}

/* --- the self-test ----------------------------------------------------------
 */

static int
make_pair(int fd[2], struct hf_error *e)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(a);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = 0;

	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fd[1] = -1;
	if (l < 0 || fd[0] < 0 || bind(l, (struct sockaddr *)&a, size) < 0 ||
	    listen(l, 1) < 0 ||
	    getsockname(l, (struct sockaddr *)&a, &size) < 0 ||
	    connect(fd[0], (struct sockaddr *)&a, size) < 0 ||
	    (fd[1] = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) < 0)
		rc = hf_fail_errno(e, "self-test: connection over loopback");
	if (l >= 0)
		close(l);
	return rc;
}

static int
expect(const char *what, bool (*count)(int fd, uint64_t *n), int fd,
    uint64_t want, struct hf_error *e)
{
	uint64_t got = 0;
	bool known = count(fd, &got);

	if (known && got == want)
		return 0;
	return hf_fail(e, HF_EPROTO,
	    "self-test: the kernel counts %llu bytes %s, %llu were",
	    known ? (unsigned long long)got : 0ULL, what,
	    (unsigned long long)want);
}

/* Fill the connection until the kernel takes no more, drain a part. */
static int
test_taken(int from, int to, struct hf_error *e)
{
	static const char bytes[30011];
	char sink[16384];
	uint64_t sent = 0;
	ssize_t k;
	int rc = 0;

	for (int round = 0; rc == 0 && round < 3; round++) {
		while ((k = send(from, bytes, sizeof(bytes),
			    MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
			sent += (uint64_t)k;
		rc = expect("taken", hf_tcp_taken, from, sent, e);
		while (recv(to, sink, sizeof(sink), MSG_DONTWAIT) > 0)
			;
	}
	return rc;
}

static int
test_consumed(int from, int to, struct hf_error *e)
{
	char b[1000] = { 0 };
	int rc;

	if (send(from, b, sizeof(b), MSG_NOSIGNAL) != (ssize_t)sizeof(b) ||
	    recv(to, b, 300, MSG_WAITALL) != 300)
		return hf_fail_errno(e, "self-test: bytes over loopback");
	rc = expect("consumed", hf_tcp_consumed, to, 300, e);
	shutdown(from, SHUT_WR);
	if (rc == 0 && recv(to, b, 400, MSG_WAITALL) != 400)
		return hf_fail_errno(e, "self-test: bytes over loopback");
	if (rc == 0)
		rc = expect("consumed", hf_tcp_consumed, to, 700, e);
	return rc;
}

int
hf_tcp_self_test(struct hf_error *e)
{
	int fd[2], rc = make_pair(fd, e);

	/* fd[1] was accepted, as the clients' are. */
	if (rc == 0)
		rc = test_consumed(fd[0], fd[1], e);
	if (rc == 0)
		rc = test_taken(fd[1], fd[0], e);
	for (int i = 0; i < 2; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	return rc;
}
