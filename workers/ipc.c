/*
 * Records between the master and its children.
 */
#include <config.h>

#include "workers/ipc.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define IPC_MAGIC	0x68666931u	/* "hfi1" */

_Static_assert(sizeof(struct hf_ipc) == 48, "the record has one size");

int
hf_ipc_pair(int fd[2], struct hf_error *e)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0, fd) < 0)
		return hf_fail_errno(e, "socketpair");
	return 0;
}

int
hf_ipc_send(int fd, const struct hf_ipc *r)
{
	struct hf_ipc out = *r;
	ssize_t n;

	out.magic = IPC_MAGIC;
	do
		n = send(fd, &out, sizeof(out), MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(out))
		return 0;
	if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
		return HF_EBUSY;
	return HF_EUNREACH;
}

int
hf_ipc_recv(int fd, struct hf_ipc *r)
{
	char raw[sizeof(*r) + 1];
	ssize_t n;

	do
		n = recv(fd, raw, sizeof(raw), MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return 0;
	if (n < 0)
		return errno == EAGAIN ? HF_EBUSY : HF_ESYS;
	if ((size_t)n != sizeof(*r))
		return HF_EPROTO;
	memcpy(r, raw, sizeof(*r));
	if (r->magic != IPC_MAGIC || r->type < HF_IPC_READY ||
	    r->type > HF_IPC_CONFIG)
		return HF_EPROTO;
	return 1;
}
