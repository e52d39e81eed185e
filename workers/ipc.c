/*
 * Records between the master and its children.
 */
#include <config.h>

#include "workers/ipc.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define IPC_MAGIC 0x68666931u /* "hfi1" */

_Static_assert(sizeof(struct hf_ipc) == 288, "the record has one size");

int
hf_ipc_pair(int fd[2], struct hf_error *e)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		0, fd) < 0)
		return hf_fail_errno(e, "socketpair");
	return 0;
}

/* Room for one descriptor. */
union control {
	struct cmsghdr h;
	char raw[CMSG_SPACE(sizeof(int))];
};

int
hf_ipc_send_fd(int fd, const struct hf_ipc *r, int pass)
{
	struct hf_ipc out = *r;
	struct iovec iov = { &out, sizeof(out) };
	union control c = { .raw = { 0 } };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	out.magic = IPC_MAGIC;
	if (pass >= 0) {
		m.msg_control = c.raw;
		m.msg_controllen = sizeof(c.raw);
		c.h.cmsg_level = SOL_SOCKET;
		c.h.cmsg_type = SCM_RIGHTS;
		c.h.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&c.h), &pass, sizeof(int));
	}
	do
		n = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(out))
		return 0;
	if (n < 0 &&
	    (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS))
		return HF_EBUSY;
	return HF_EUNREACH;
}

int
hf_ipc_send(int fd, const struct hf_ipc *r)
{
	return hf_ipc_send_fd(fd, r, -1);
}

static int
passed_fd(struct msghdr *m)
{
	struct cmsghdr *h = CMSG_FIRSTHDR(m);
	int fd = -1;

	if (h != NULL && h->cmsg_level == SOL_SOCKET &&
	    h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(h), sizeof(int));
	return fd;
}

int
hf_ipc_recv_fd(int fd, struct hf_ipc *r, int *passed)
{
	char raw[sizeof(*r) + 1] = { 0 };
	struct iovec iov = { raw, sizeof(raw) };
	union control c = { .raw = { 0 } };
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = c.raw,
		.msg_controllen = sizeof(c.raw) };
	ssize_t n;

	*passed = -1;
	/* A peer that died with records of ours unread is told of by a reset,
	 * once, and before what it had sent: that is still to come. */
	do
		n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n == 0)
		return 0;
	if (n < 0)
		return errno == EAGAIN ? HF_EBUSY : HF_ESYS;
	*passed = passed_fd(&m);
	memcpy(r, raw, sizeof(*r));
	if ((size_t)n == sizeof(*r) && r->magic == IPC_MAGIC &&
	    r->type >= HF_IPC_READY && r->type <= HF_IPC_LAST &&
	    memchr(r->text, '\0', sizeof(r->text)) != NULL)
		return 1;
	if (*passed >= 0)
		close(*passed);
	*passed = -1;
	return HF_EPROTO;
}

int
hf_ipc_recv(int fd, struct hf_ipc *r)
{
	int passed, rc = hf_ipc_recv_fd(fd, r, &passed);

	if (passed >= 0)
		close(passed);
	return rc;
}
