/*
 * The control socket's server against clients that are clumsy, greedy, slow
 * or hostile.  One thread: the test drives the server's loop itself.
 */
#include <config.h>

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/frame.h"
#include "tests/unit/control_client.h"
#include "workers/control.h"
#include "workers/listen.h"

static char dir[] = "/tmp/hf-control-XXXXXX";
static char path[sizeof(dir) + 16];

struct fixture {
	struct event_base *base;
	struct hf_control *control;
	unsigned calls;
	/* Of long replies. */
	unsigned steps, drops;
	size_t most; /* put in one step, in bytes */
	struct hf_reply *waiting;
};

/* A reply in steps: 'n' rows of 1000 bytes; each second step says nothing;
 * row 'fail_at' fails (-1: none does). */
struct steps {
	struct fixture *f;
	json_int_t i, n, fail_at;
	bool quiet;
};

static int
step(struct hf_reply *r, void *state, struct hf_error *e)
{
	struct steps *s = state;
	char text[1000];
	size_t put = 0;

	s->f->steps++;
	s->quiet = !s->quiet;
	if (s->quiet)
		return 1;
	memset(text, 'x', sizeof(text));
	while (s->i < s->n && !hf_reply_full(r)) {
		int rc;

		if (s->i == s->fail_at)
			return hf_fail(e, HF_ECORRUPT, "row %d", (int)s->i);
		rc = hf_reply_data(r,
		    json_pack(
			"{s:I, s:s%}", "i", s->i++, "text", text, sizeof(text)),
		    e);
		if (rc < 0)
			return rc;
		put += sizeof(text);
	}
	if (put > s->f->most)
		s->f->most = put;
	return s->i < s->n;
}

static void
drop(void *state)
{
	struct steps *s = state;

	s->f->drops++;
	s->f->waiting = NULL;
	free(s);
}

/* The verbs of this test. */
static int
verb(void *arg, const char *name, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	struct fixture *f = arg;

	f->calls++;
	if (strcmp(name, "echo") == 0) {
		json_t *copy = json_deep_copy(args);

		return hf_reply_data(
		    reply, json_pack("{s:o}", "args", copy), e);
	}
	if (strcmp(name, "count") == 0) {
		json_int_t n = json_integer_value(json_object_get(args, "n"));

		for (json_int_t i = 0; i < n; i++) {
			int rc =
			    hf_reply_data(reply, json_pack("{s:I}", "i", i), e);
			if (rc < 0)
				return rc;
		}
		return 0;
	}
	if (strcmp(name, "big") == 0) {
		char *text = malloc(1 << 20);
		int rc = 0;

		memset(text, 'x', 1 << 20);
		for (int i = 0; i < 100 && rc == 0; i++)
			rc = hf_reply_data(reply,
			    json_pack("{s:s%}", "text", text, (size_t)1 << 20),
			    e);
		free(text);
		return rc;
	}
	if (strcmp(name, "steps") == 0 || strcmp(name, "wait") == 0) {
		struct steps *s = calloc(1, sizeof(*s));
		const json_t *fail_at = json_object_get(args, "fail_at");

		s->f = f;
		s->n = json_integer_value(json_object_get(args, "n"));
		s->fail_at = fail_at == NULL ? -1 : json_integer_value(fail_at);
		if (*name == 's')
			hf_reply_go_on(reply, step, drop, s);
		else
			hf_reply_wait(reply, drop, s);
		f->waiting = reply;
		/* An error after all, with the state already given away. */
		return json_object_get(args, "refuse") == NULL ?
		    0 :
		    hf_fail(e, HF_ENOTFOUND, "refused");
	}
	if (strcmp(name, "corrupt") == 0)
		return hf_fail(e, HF_ECORRUPT, "bad row \xff here");
	if (strcmp(name, "ambiguous") == 0)
		return hf_fail(e, HF_ECONFLICT, "two of them");
	return hf_fail(e, HF_EINVAL, "unknown verb");
}

static int
set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct hf_error e;
	int fd;

	snprintf(dir, sizeof(dir), "%s", "/tmp/hf-control-XXXXXX");
	if (f == NULL || mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/c", dir);
	f->base = event_base_new();
	fd = hf_listen_control(path, &e);
	if (fd < 0 || hf_control_new(&f->control, f->base, fd, verb, f, &e) < 0)
		return -1;
	*state = f;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;

	if (f->control != NULL)
		hf_control_free(f->control);
	event_base_free(f->base);
	free(f);
	unlink(path);
	return rmdir(dir);
}

/* --- what is expected ------------------------------------------------- */

static void
expect_end(struct fixture *f, int fd, struct hf_buf *in, json_int_t id)
{
	json_t *j = cc_next(f->base, fd, in);

	assert_non_null(j);
	assert_true(json_is_true(json_object_get(j, "end")));
	assert_int_equal(json_integer_value(json_object_get(j, "id")), id);
	json_decref(j);
}

static void
expect_error(struct fixture *f, int fd, struct hf_buf *in, json_int_t code)
{
	json_t *j = cc_next(f->base, fd, in);

	assert_non_null(j);
	assert_int_equal(cc_error_code(j), code);
	json_decref(j);
}

static void
expect_closed(struct fixture *f, int fd, struct hf_buf *in)
{
	assert_null(cc_next(f->base, fd, in));
	close(fd);
	hf_buf_free(in);
}

static void
expect_served(struct fixture *f)
{
	struct hf_buf in;
	int fd = cc_dial(path);

	hf_buf_init(&in, HF_BUF_NOCAP);
	cc_send(fd,
	    "{\"v\":1,\"id\":3,\"verb\":\"count\","
	    "\"args\":{\"n\":0}}");
	expect_end(f, fd, &in, 3);
	close(fd);
	hf_buf_free(&in);
}

/* --- cases ------------------------------------------------------------ */

static void
test_request_and_reply(void **state)
{
	struct fixture *f = *state;
	struct hf_buf in;
	int fd = cc_dial(path);
	json_t *j;

	hf_buf_init(&in, HF_BUF_NOCAP);
	cc_send(fd,
	    "{\"v\":1,\"id\":9,\"verb\":\"echo\","
	    "\"args\":{\"a\":\"\xc3\xa4\"}}");
	j = cc_next(f->base, fd, &in);
	assert_int_equal(json_integer_value(json_object_get(j, "v")), 1);
	assert_int_equal(json_integer_value(json_object_get(j, "id")), 9);
	assert_string_equal(
	    json_string_value(json_object_get(
		json_object_get(json_object_get(j, "data"), "args"), "a")),
	    "\xc3\xa4");
	json_decref(j);
	expect_end(f, fd, &in, 9);
	/* args may be missing; the connection goes on. */
	cc_send(fd, "{\"v\":1,\"id\":10,\"verb\":\"count\"}");
	expect_end(f, fd, &in, 10);
	close(fd);
	hf_buf_free(&in);
}

static void
test_pipelined_and_in_pieces(void **state)
{
	struct fixture *f = *state;
	struct hf_buf in, out;
	int fd = cc_dial(path);

	hf_buf_init(&in, HF_BUF_NOCAP);
	hf_buf_init(&out, HF_BUF_NOCAP);
	for (int i = 1; i <= 3; i++) {
		char text[64];

		snprintf(text, sizeof(text),
		    "{\"v\":1,\"id\":%d,\"verb\":"
		    "\"count\",\"args\":{\"n\":1}}",
		    i);
		hf_frame_encode(&out, hf_str(text));
	}
	for (size_t i = 0; i < out.size; i++) {
		cc_send_bytes(fd, out.data + i, 1);
		cc_spin(f->base);
	}
	for (int i = 1; i <= 3; i++) {
		json_decref(cc_next(f->base, fd, &in));
		expect_end(f, fd, &in, i);
	}
	close(fd);
	hf_buf_free(&in);
	hf_buf_free(&out);
}

static void
test_bad_requests_get_answers(void **state)
{
	static const char *const bad[] = { "{}",
		"{\"v\":2,\"id\":1,\"verb\":\"count\"}",
		"{\"v\":1,\"verb\":\"count\"}",
		"{\"v\":1,\"id\":\"x\",\"verb\":\"count\"}",
		"{\"v\":1,\"id\":1}", "{\"v\":1,\"id\":1,\"verb\":7}",
		"{\"v\":1,\"id\":1,\"verb\":\"count\",\"args\":[]}",
		"{\"v\":1,\"id\":1,\"verb\":\"nonsense\"}" };
	struct fixture *f = *state;
	struct hf_buf in;
	int fd = cc_dial(path);

	hf_buf_init(&in, HF_BUF_NOCAP);
	for (size_t i = 0; i < hf_countof(bad); i++) {
		cc_send(fd, bad[i]);
		expect_error(f, fd, &in, 2);
	}
	cc_send(fd, "{\"v\":1,\"id\":1,\"verb\":\"corrupt\"}");
	expect_error(f, fd, &in, 7);
	cc_send(fd, "{\"v\":1,\"id\":1,\"verb\":\"ambiguous\"}");
	expect_error(f, fd, &in, 3);
	close(fd);
	hf_buf_free(&in);
	assert_int_equal(f->calls, 3);
}

/* Rubbish ends the client that sent it, and nobody else. */
static void
test_rubbish_closes_that_client_only(void **state)
{
	static const struct {
		const char *p;
		size_t n;
	} bad[] = { { "\0\0\0\0", 4 },	   /* empty frame */
		{ "\xff\xff\xff\xff", 4 }, /* too long */
		{ "\0\1\0\1{", 5 },	   /* 65537 bytes */
		{ "\0\0\0\5hello", 9 },	   /* no JSON */
		{ "\0\0\0\2[]", 6 },	   /* no object */
		{ "\0\0\0\3{}x", 7 },
		{ "\0\0\0\15{\"a\":1,\"a\":2}", 17 }, /* member twice */
		{ "\0\0\0\11{\"a\":\"\xff\"}", 13 },  /* no UTF-8 */
		{ "GET / HTTP/1.1\r\n\r\n", 18 } };
	struct fixture *f = *state;
	struct hf_buf in, other;
	int good = cc_dial(path);

	hf_buf_init(&other, HF_BUF_NOCAP);
	for (size_t i = 0; i < hf_countof(bad); i++) {
		int fd = cc_dial(path);

		hf_buf_init(&in, HF_BUF_NOCAP);
		cc_send_bytes(fd, bad[i].p, bad[i].n);
		expect_closed(f, fd, &in);
	}
	cc_send(good, "{\"v\":1,\"id\":5,\"verb\":\"count\"}");
	expect_end(f, good, &other, 5);
	close(good);
	hf_buf_free(&other);
}

static void
test_deep_nesting(void **state)
{
	struct fixture *f = *state;
	struct hf_buf in, text;
	int fd = cc_dial(path);

	hf_buf_init(&in, HF_BUF_NOCAP);
	hf_buf_init(&text, HF_BUF_NOCAP);
	for (int i = 0; i < 60000; i++)
		hf_buf_putc(&text, '[');
	cc_send(fd, text.data);
	expect_closed(f, fd, &in);
	hf_buf_free(&text);
}

/* A frame that never gets whole ends with its client. */
static void
test_half_frame_then_gone(void **state)
{
	struct fixture *f = *state;
	int fd = cc_dial(path);

	cc_send_bytes(fd, "\0\0\0\20{\"v\"", 8);
	cc_spin(f->base);
	close(fd);
	cc_spin(f->base);
	cc_spin(f->base);
	expect_served(f);
}

/* Who shuts its sending side after the request gets the reply. */
static void
test_half_close(void **state)
{
	struct fixture *f = *state;
	struct hf_buf in;
	int fd = cc_dial(path);
	json_t *j;

	hf_buf_init(&in, HF_BUF_NOCAP);
	cc_send(fd,
	    "{\"v\":1,\"id\":1,\"verb\":\"count\","
	    "\"args\":{\"n\":20000}}");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	for (json_int_t i = 0; i < 20000; i++) {
		j = cc_next(f->base, fd, &in);
		assert_non_null(j);
		assert_int_equal(json_integer_value(json_object_get(
				     json_object_get(j, "data"), "i")),
		    i);
		json_decref(j);
	}
	expect_end(f, fd, &in, 1);
	expect_closed(f, fd, &in);
}

/* No reply is taken: no further request of that client is run, others are. */
static void
test_back_pressure(void **state)
{
	struct fixture *f = *state;
	struct hf_buf in;
	int fd = cc_dial(path);
	/* Far more than sockets hold; valgrind is slow. */
	int n = getenv("HF_VALGRIND") == NULL ? 50 : 3;

	hf_buf_init(&in, HF_BUF_NOCAP);
	for (int i = 0; i < n; i++)
		cc_send(fd,
		    "{\"v\":1,\"id\":1,\"verb\":\"count\","
		    "\"args\":{\"n\":20000}}");
	for (int i = 0; i < 200; i++)
		cc_spin(f->base);
	assert_int_equal(f->calls, 1);
	expect_served(f);
	assert_int_equal(f->calls, 2);
	/* Now it reads: everything comes, in order. */
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < 20000; k++)
			json_decref(cc_next(f->base, fd, &in));
		expect_end(f, fd, &in, 1);
	}
	assert_int_equal(f->calls, n + 1);
	close(fd);
	hf_buf_free(&in);
}

static void
expect_rows(struct fixture *f, int fd, struct hf_buf *in, json_int_t n)
{
	for (json_int_t i = 0; i < n; i++) {
		json_t *j = cc_next(f->base, fd, in);

		assert_non_null(j);
		assert_int_equal(json_integer_value(json_object_get(
				     json_object_get(j, "data"), "i")),
		    i);
		json_decref(j);
	}
}

/* 20 MB in pieces: no more than one of them waits for the client, who gets
 * all, whether or not it has shut its sending side; others are served. */
static void
test_long_reply(void **state)
{
	struct fixture *f = *state;
	struct hf_buf in;
	int fd = cc_dial(path);
	/* Far more than sockets hold; valgrind is slow. */
	int n = getenv("HF_VALGRIND") == NULL ? 20000 : 3000;
	char text[100];

	hf_buf_init(&in, HF_BUF_NOCAP);
	snprintf(text, sizeof(text),
	    "{\"v\":1,\"id\":1,\"verb\":\"steps\","
	    "\"args\":{\"n\":%d}}",
	    n);
	cc_send(fd, text);
	cc_send(fd,
	    "{\"v\":1,\"id\":2,\"verb\":\"steps\","
	    "\"args\":{\"n\":10}}");
	for (int i = 0; i < 200; i++)
		cc_spin(f->base);
	/* What the socket's buffers hold, and no further. */
	assert_true(f->steps > 1 && f->steps < 50);
	assert_int_equal(f->calls, 1);
	expect_served(f);
	expect_rows(f, fd, &in, n);
	expect_end(f, fd, &in, 1);
	assert_true(f->most < HF_CONTROL_PIECE + 2000);
	expect_rows(f, fd, &in, 10);
	expect_end(f, fd, &in, 2);
	assert_int_equal(f->drops, 2);
	cc_send(fd,
	    "{\"v\":1,\"id\":3,\"verb\":\"steps\","
	    "\"args\":{\"n\":1000}}");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	expect_rows(f, fd, &in, 1000);
	expect_end(f, fd, &in, 3);
	expect_closed(f, fd, &in);
	assert_int_equal(f->drops, 3);
}

static void
test_long_reply_that_fails(void **state)
{
	struct fixture *f = *state;
	struct hf_buf in;
	int fd = cc_dial(path);

	hf_buf_init(&in, HF_BUF_NOCAP);
	cc_send(fd,
	    "{\"v\":1,\"id\":1,\"verb\":\"steps\","
	    "\"args\":{\"n\":1000,\"fail_at\":700}}");
	expect_rows(f, fd, &in, 700);
	expect_error(f, fd, &in, 7);
	cc_send(fd,
	    "{\"v\":1,\"id\":2,\"verb\":\"steps\","
	    "\"args\":{\"n\":3,\"refuse\":1}}");
	expect_error(f, fd, &in, 3);
	assert_int_equal(f->drops, 2);
	cc_send(fd,
	    "{\"v\":1,\"id\":3,\"verb\":\"steps\","
	    "\"args\":{\"n\":0}}");
	expect_end(f, fd, &in, 3);
	assert_int_equal(f->drops, 3);
	close(fd);
	hf_buf_free(&in);
}

/* Clients that leave in the middle, or are there when the server goes. */
static void
test_long_reply_to_nobody(void **state)
{
	struct fixture *f = *state;
	int fd[2] = { cc_dial(path), cc_dial(path) };

	for (int i = 0; i < 2; i++)
		cc_send(fd[i],
		    "{\"v\":1,\"id\":1,\"verb\":\"steps\","
		    "\"args\":{\"n\":20000}}");
	for (int i = 0; i < 100; i++)
		cc_spin(f->base);
	close(fd[0]);
	for (int i = 0; i < 1000 && f->drops == 0; i++)
		cc_spin(f->base);
	assert_int_equal(f->drops, 1);
	expect_served(f);
	close(fd[1]);
}

/* A reply that somebody else ends: with a result, with an error, or not at
 * all because the client has gone before. */
static void
test_waiting(void **state)
{
	struct fixture *f = *state;
	struct hf_error e = { 0 };
	struct hf_buf in;
	int fd = cc_dial(path);

	hf_buf_init(&in, HF_BUF_NOCAP);
	cc_send(fd, "{\"v\":1,\"id\":1,\"verb\":\"wait\"}");
	cc_send(fd, "{\"v\":1,\"id\":2,\"verb\":\"wait\"}");
	for (int i = 0; i < 50; i++)
		cc_spin(f->base);
	assert_int_equal(f->calls, 1);
	expect_served(f);
	assert_int_equal(
	    hf_reply_data(f->waiting, json_pack("{s:i}", "i", 0), &e), 0);
	hf_reply_end(f->waiting, 0, NULL);
	expect_rows(f, fd, &in, 1);
	expect_end(f, fd, &in, 1);
	while (f->waiting == NULL)
		cc_spin(f->base);
	hf_reply_end(f->waiting, hf_fail(&e, HF_ECONFIG, "line 3"), &e);
	expect_error(f, fd, &in, 78);
	assert_int_equal(f->drops, 2);
	cc_send(fd, "{\"v\":1,\"id\":3,\"verb\":\"wait\"}");
	while (f->waiting == NULL)
		cc_spin(f->base);
	close(fd);
	hf_buf_free(&in);
	/* It is found out when the answer goes nowhere, if not before. */
	for (int i = 0; i < 50; i++)
		cc_spin(f->base);
	if (f->waiting != NULL)
		hf_reply_end(f->waiting, 0, NULL);
	for (int i = 0; i < 50; i++)
		cc_spin(f->base);
	assert_int_equal(f->drops, 3);
	expect_served(f);
}

/* The last word before the server ends reaches the client. */
static void
test_last_word(void **state)
{
	struct fixture *f = *state;
	struct hf_error e = { 0 };
	struct hf_buf in;
	int fd[2] = { cc_dial(path), cc_dial(path) };

	hf_buf_init(&in, HF_BUF_NOCAP);
	cc_send(fd[1], "{\"v\":1,\"id\":1,\"verb\":\"wait\"}");
	while (f->waiting == NULL)
		cc_spin(f->base);
	f->waiting = NULL;
	cc_send(fd[0], "{\"v\":1,\"id\":1,\"verb\":\"wait\"}");
	while (f->waiting == NULL)
		cc_spin(f->base);
	assert_int_equal(
	    hf_reply_data(f->waiting, json_pack("{s:i}", "i", 0), &e), 0);
	hf_reply_end(f->waiting, 0, NULL);
	hf_control_free(f->control); /* drops the one that still waits */
	f->control = NULL;
	assert_int_equal(f->drops, 2);
	expect_rows(f, fd[0], &in, 1);
	expect_end(f, fd[0], &in, 1);
	expect_closed(f, fd[0], &in);
	close(fd[1]);
}

static void
test_reply_over_the_cap(void **state)
{
	struct fixture *f = *state;
	struct hf_buf in;
	json_t *j;
	int fd = cc_dial(path), n = 0;

	hf_buf_init(&in, HF_BUF_NOCAP);
	cc_send(fd, "{\"v\":1,\"id\":1,\"verb\":\"big\"}");
	while ((j = cc_next(f->base, fd, &in)) != NULL &&
	    json_object_get(j, "data") != NULL) {
		json_decref(j);
		n++;
	}
	assert_non_null(j);
	assert_true(n > 50 && n < 65);
	assert_int_equal(cc_error_code(j), 75);
	json_decref(j);
	close(fd);
	hf_buf_free(&in);
}

static void
test_too_many_clients(void **state)
{
	struct fixture *f = *state;
	struct hf_buf in;
	int fd[HF_CONTROL_CLIENTS], more;
	json_t *j;

	hf_buf_init(&in, HF_BUF_NOCAP);
	for (unsigned i = 0; i < HF_CONTROL_CLIENTS; i++) {
		fd[i] = cc_dial(path);
		cc_spin(f->base);
	}
	more = cc_dial(path);
	j = cc_next(f->base, more, &in);
	assert_non_null(j);
	assert_int_equal(cc_error_code(j), 75);
	json_decref(j);
	expect_closed(f, more, &in);
	for (unsigned i = 0; i < HF_CONTROL_CLIENTS; i++)
		close(fd[i]);
	cc_spin(f->base);
	cc_spin(f->base);
	expect_served(f);
}

/* Another user, were it to get through the file's mode, is told no. */
static void
test_other_users_are_refused(void **state)
{
	struct fixture *f = *state;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(chmod(path, 0666), 0);
	pid = fork();
	if (pid == 0) {
		char got[512];
		ssize_t n = 0;
		struct pollfd p;
		int fd;

		if (setuid(65534) < 0)
			_exit(1);
		fd = cc_dial(path);
		p = (struct pollfd){ .fd = fd, .events = POLLIN };
		if (poll(&p, 1, 10000) == 1)
			n = recv(fd, got, sizeof(got) - 1, 0);
		got[n > 0 ? n : 0] = '\0';
		_exit(n > 4 && strstr(got + 4, "\"code\":5,") != NULL &&
			    strstr(got + 4, "\"EPERM\"") != NULL ?
			42 :
			2);
	}
	while (waitpid(pid, &status, WNOHANG) == 0)
		cc_spin(f->base);
	assert_int_equal(WEXITSTATUS(status), 42);
	assert_int_equal(f->calls, 0);
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_request_and_reply),
		CASE(test_pipelined_and_in_pieces),
		CASE(test_bad_requests_get_answers),
		CASE(test_rubbish_closes_that_client_only),
		CASE(test_deep_nesting),
		CASE(test_half_frame_then_gone),
		CASE(test_half_close),
		CASE(test_back_pressure),
		CASE(test_long_reply),
		CASE(test_long_reply_that_fails),
		CASE(test_long_reply_to_nobody),
		CASE(test_waiting),
		CASE(test_last_word),
		CASE(test_reply_over_the_cap),
		CASE(test_too_many_clients),
		CASE(test_other_users_are_refused),
	};

	signal(SIGPIPE, SIG_IGN); /* as keepers do */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
