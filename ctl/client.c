/*
 * The client's side of base/frame.h.  What comes from the socket is not
 * trusted: sizes are capped, every frame is checked.
 */
#include <config.h>

#include "ctl/client.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/frame.h"

#define REQUEST_ID 1

struct call {
	const char *path;
	int fd;
	int timeout_ms;
	int64_t deadline_us;
	struct hf_buf in;
	hf_ctl_data_fn fn;
	void *arg;
	bool ended;
	struct hf_ctl_fault *fault;
};

int
hf_ctl_fault(struct hf_ctl_fault *f, int code, const char *fmt, ...)
{
	va_list ap;

	f->exit = code;
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	return -1;
}

static int
timed_out(struct call *c)
{
	return hf_ctl_fault(c->fault, HF_EXIT_TIMEOUT,
	    "no answer from the "
	    "daemon at %s within %d ms",
	    c->path, c->timeout_ms);
}

static int
garbled(struct call *c, const char *what)
{
	return hf_ctl_fault(c->fault, HF_EXIT_UNREACHABLE,
	    "the answer at %s "
	    "is not one of holdfast: %s",
	    c->path, what);
}

static void
extend(struct call *c)
{
	c->deadline_us = hf_now_us() + (int64_t)c->timeout_ms * 1000;
}

static int
open_socket(struct call *c)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct timeval tv = { .tv_sec = c->timeout_ms / 1000,
		.tv_usec = c->timeout_ms % 1000 * 1000 };

	if (strlen(c->path) >= sizeof(sun.sun_path))
		return hf_ctl_fault(c->fault, HF_EXIT_USAGE,
		    "path of the socket is longer than %zu bytes",
		    sizeof(sun.sun_path) - 1);
	memcpy(sun.sun_path, c->path, strlen(c->path));
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* A full backlog makes connect() wait: not longer than we like. */
	if (c->fd < 0 ||
	    setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) != 0)
		return hf_ctl_fault(c->fault, HF_EXIT_UNREACHABLE, "socket: %s",
		    strerror(errno));
	if (connect(c->fd, (struct sockaddr *)&sun, sizeof(sun)) == 0)
		return 0;
	if (errno == EAGAIN)
		return timed_out(c);
	return hf_ctl_fault(c->fault,
	    errno == EACCES || errno == EPERM ? HF_EXIT_PERM :
						HF_EXIT_UNREACHABLE,
	    "cannot reach the daemon at %s: %s", c->path, strerror(errno));
}

static int
wait_for(struct call *c, short events)
{
	struct pollfd p = { .fd = c->fd, .events = events };
	int64_t left_us;
	int n;

	do {
		left_us = c->deadline_us - hf_now_us();
		if (left_us <= 0)
			return timed_out(c);
		n = poll(&p, 1, (int)(left_us / 1000) + 1);
	} while (n == 0 || (n < 0 && errno == EINTR));
	if (n < 0)
		return hf_ctl_fault(
		    c->fault, HF_EXIT_UNREACHABLE, "poll: %s", strerror(errno));
	return 0;
}

static int
send_all(struct call *c, const char *p, size_t size)
{
	ssize_t n;

	while (size > 0) {
		if (wait_for(c, POLLOUT) != 0)
			return -1;
		n = send(c->fd, p, size, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		/* Refused before it was read?  Then the reason is there. */
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return 0;
		if (n < 0)
			return hf_ctl_fault(c->fault, HF_EXIT_UNREACHABLE,
			    "cannot write to %s: %s", c->path, strerror(errno));
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

static int
send_request(struct call *c, const char *verb, json_t *args)
{
	json_t *root = json_pack("{s:i, s:i, s:s, s:O}", "v", HF_FRAME_VERSION,
	    "id", REQUEST_ID, "verb", verb, "args", args);
	char *text = root == NULL ? NULL : json_dumps(root, JSON_COMPACT);
	struct hf_buf out;
	int rc;

	hf_buf_init(&out, HF_FRAME_MAX_REQUEST + HF_FRAME_HEADER);
	if (text != NULL)
		hf_frame_encode(&out, hf_str(text));
	if (text == NULL || !hf_buf_ok(&out))
		rc = hf_ctl_fault(c->fault, HF_EXIT_USAGE,
		    "an argument is too long or not UTF-8");
	else
		rc = send_all(c, out.data, out.size);
	hf_buf_free(&out);
	free(text);
	json_decref(root);
	return rc;
}

static int
error_frame(struct call *c, json_t *error)
{
	const char *message =
	    json_string_value(json_object_get(error, "message"));
	const char *name = json_string_value(json_object_get(error, "name"));
	json_int_t code = json_integer_value(json_object_get(error, "code"));

	if (message == NULL)
		message = name == NULL ? "the daemon refused" : name;
	return hf_ctl_fault(c->fault,
	    code < 1 || code > 125 ? HF_EXIT_FAILED : (int)code, "%s", message);
}

static int
frame(struct call *c, json_t *root)
{
	json_t *data = json_object_get(root, "data");
	json_t *error = json_object_get(root, "error");
	json_t *v = json_object_get(root, "v");
	json_t *id = json_object_get(root, "id");

	if (!json_is_integer(v) || json_integer_value(v) != HF_FRAME_VERSION)
		return garbled(c, "another version of the protocol");
	/* An error may come before the request could be read: without id. */
	if (json_is_object(error))
		return error_frame(c, error);
	if (!json_is_integer(id) || json_integer_value(id) != REQUEST_ID)
		return garbled(c, "a frame of another request");
	if (json_is_object(data)) {
		if (c->fn(c->arg, data) != 0)
			return garbled(c, "unexpected data");
		return 0;
	}
	if (!json_is_true(json_object_get(root, "end")))
		return garbled(c, "a frame without data, end or error");
	c->ended = true;
	return 0;
}

/* All whole frames of the buffer. */
static int
frames(struct call *c)
{
	struct hf_error e = { 0 };
	struct hf_str payload;
	ssize_t n;
	json_t *root;
	int rc = 0;

	while (rc == 0 && !c->ended) {
		n = hf_frame_decode(
		    hf_buf_str(&c->in), HF_FRAME_MAX_REPLY, &payload, &e);
		if (n < 0)
			return garbled(c, e.text);
		if (n == 0)
			return 0;
		root = json_loadb(payload.p, payload.size,
		    JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
		if (!json_is_object(root))
			rc = garbled(c, "a frame that is not a JSON object");
		else
			rc = frame(c, root);
		json_decref(root);
		hf_buf_consume(&c->in, (size_t)n);
		extend(c);
	}
	return rc;
}

static int
receive(struct call *c)
{
	char chunk[65536];
	ssize_t n;

	while (!c->ended) {
		if (wait_for(c, POLLIN) != 0)
			return -1;
		n = recv(c->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return hf_ctl_fault(c->fault, HF_EXIT_UNREACHABLE,
			    "the daemon at %s hung up before its answer was "
			    "complete",
			    c->path);
		hf_buf_put(&c->in, chunk, (size_t)n);
		if (!hf_buf_ok(&c->in))
			return garbled(c, "too long");
		if (frames(c) != 0)
			return -1;
	}
	return 0;
}

int
hf_ctl_call(const char *path, int timeout_ms, const char *verb, json_t *args,
    hf_ctl_data_fn fn, void *arg, struct hf_ctl_fault *fault)
{
	struct call c = { .path = path,
		.fd = -1,
		.timeout_ms = timeout_ms,
		.fn = fn,
		.arg = arg,
		.fault = fault };
	int rc;

	hf_buf_init(&c.in, HF_FRAME_MAX_REPLY + HF_FRAME_HEADER + 65536);
	extend(&c);
	rc = open_socket(&c);
	if (rc == 0)
		rc = send_request(&c, verb, args);
	if (rc == 0)
		rc = receive(&c);
	if (c.fd >= 0)
		close(c.fd);
	hf_buf_free(&c.in);
	return rc;
}
