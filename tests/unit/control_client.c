/*
 * A client of the control socket for tests that run the server's loop in the
 * same thread.
 */
#include <config.h>

#include "tests/unit/control_client.h"

#include <errno.h>
#include <stdlib.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/frame.h"

int
cc_dial(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(sun.sun_path, path, strlen(path));
	assert_int_equal(connect(fd, (void *)&sun, sizeof(sun)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

void
cc_spin(struct event_base *base)
{
	event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

void
cc_send_bytes(int fd, const void *p, size_t n)
{
	assert_int_equal(send(fd, p, n, MSG_NOSIGNAL), n);
}

void
cc_send(int fd, const char *text)
{
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_frame_encode(&b, hf_str(text));
	cc_send_bytes(fd, b.data, b.size);
	hf_buf_free(&b);
}

json_t *
cc_next(struct event_base *base, int fd, struct hf_buf *in)
{
	int64_t end = hf_now_us() +
	    (getenv("HF_VALGRIND") == NULL ? INT64_C(20) : INT64_C(200)) *
		1000000;

	for (;;) {
		struct hf_str payload;
		struct hf_error e;
		char part[65536];
		ssize_t n;

		n = hf_frame_decode(
		    hf_buf_str(in), HF_FRAME_MAX_REPLY, &payload, &e);
		assert_true(n >= 0);
		if (n > 0) {
			json_t *j =
			    json_loadb(payload.p, payload.size, 0, NULL);

			assert_non_null(j);
			hf_buf_consume(in, (size_t)n);
			return j;
		}
		cc_spin(base);
		n = recv(fd, part, sizeof(part), 0);
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return NULL;
		if (n > 0)
			hf_buf_put(in, part, (size_t)n);
		assert_true(hf_now_us() < end);
	}
}

json_int_t
cc_error_code(const json_t *frame)
{
	return json_integer_value(
	    json_object_get(json_object_get(frame, "error"), "code"));
}
