/*
 * Held connections end to end: worker processes with a real front serve real
 * sockets and are killed all the time; this process plays the master and hands
 * their connections over.  Clients in processes of their own check every byte.
 *
 *	POST /say	body "N": a stream of N numbered lines, one a pass
 *	POST /big	a plain reply of 600 KB
 *	POST /echo	the body again
 *
 * Whoever is killed between accept and the master's knowing loses that
 * connection: the client says so and begins again with a new one.
 */
#include <config.h>

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/front/front.h"

#define WORKERS 3
#define CLIENTS 8
#define BIG 600000

/* --- what workers and the master say to each other --- */

struct word {
	uint32_t slot, epoch;
	bool held; /* else released; from the master: adopt */
};

static bool
say(int fd, const struct word *w, int pass)
{
	struct iovec iov = { (void *)(uintptr_t)w, sizeof(*w) };
	union {
		struct cmsghdr h;
		char raw[CMSG_SPACE(sizeof(int))];
	} c = { .raw = { 0 } };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (pass >= 0) {
		m.msg_control = c.raw;
		m.msg_controllen = sizeof(c.raw);
		c.h.cmsg_level = SOL_SOCKET;
		c.h.cmsg_type = SCM_RIGHTS;
		c.h.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&c.h), &pass, sizeof(int));
	}
	return sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)sizeof(*w);
}

static bool
hear(int fd, struct word *w, int *passed, int flags)
{
	struct iovec iov = { w, sizeof(*w) };
	union {
		struct cmsghdr h;
		char raw[CMSG_SPACE(sizeof(int))];
	} c = { .raw = { 0 } };
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = c.raw,
		.msg_controllen = sizeof(c.raw) };
	struct cmsghdr *h;

	*passed = -1;
	if (recvmsg(fd, &m, flags | MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(*w))
		return false;
	h = CMSG_FIRSTHDR(&m);
	if (h != NULL && h->cmsg_type == SCM_RIGHTS)
		memcpy(passed, CMSG_DATA(h), sizeof(int));
	return true;
}

/* --- a worker --- */

struct worker {
	struct event_base *base;
	struct hf_front *front;
	struct hf_shm shm;
	struct hf_hold hold;
	struct hf_conf_gateway gw;
	int fd; /* to the master */
};

struct stream {
	struct worker *w;
	struct hf_sink *sink;
	struct event *step;
	uint32_t n, k;
};

static void
stream_free(struct stream *st)
{
	event_free(st->step);
	free(st);
}

static size_t
line(char out[64], uint32_t k)
{
	return (size_t)snprintf(
	    out, 64, "line %u of a stream that goes on\n", k);
}

static void
on_step(evutil_socket_t fd, short what, void *arg)
{
	struct stream *st = arg;
	struct timeval soon = { 0, 200 };
	char text[64];
	size_t n;

	(void)fd;
	(void)what;
	if (hf_sink_backlog(st->sink) > 100000) {
		evtimer_add(st->step, &soon);
		return;
	}
	if (st->k < st->n) {
		n = line(text, st->k++);
		hf_sink_said(st->sink, (struct hf_str){ text, n });
		hf_sink_state(st->sink, st->k);
		hf_sink_write(st->sink, (struct hf_str){ text, n });
		evtimer_add(st->step, &soon);
		return;
	}
	hf_sink_write(st->sink, HF_STR("end\n"));
	hf_sink_end(st->sink);
	stream_free(st);
}

static void
on_gone(void *arg)
{
	stream_free(arg);
}

static void
on_say(void *arg, struct hf_req *rq, struct hf_sink *s)
{
	struct stream *st = hf_xcalloc(1, sizeof(*st));
	struct timeval now = { 0, 0 };
	char text[64];
	size_t n = 0;

	st->w = arg;
	st->sink = s;
	st->n = (uint32_t)strtoul(rq->body.p, NULL, 10);
	st->step = evtimer_new(st->w->base, on_step, st);
	if (rq->resumed != NULL) {
		st->k = rq->resumed->state;
		/* What was said and what was counted belong together. */
		for (uint32_t k = 0; k < st->k; k++)
			n += line(text, k);
		if (n != rq->resumed->text_size ||
		    (st->k > 0 && !rq->resumed->head))
			_exit(9);
		n = line(text, st->k - 1);
		if (st->k > 0 &&
		    memcmp(rq->resumed->text.p + rq->resumed->text.size - n,
			text, n) != 0)
			_exit(9);
	}
	hf_sink_start(s, 200, NULL, 0, "text/plain");
	hf_sink_watch(s, on_gone, NULL, st);
	evtimer_add(st->step, &now);
}

static void
on_big(void *arg, struct hf_req *rq, struct hf_sink *s)
{
	char *body = malloc(BIG);

	(void)arg;
	(void)rq;
	for (size_t i = 0; i < BIG; i++)
		body[i] = (char)('a' + i % 23);
	hf_sink_reply(
	    s, 200, NULL, 0, "text/plain", (struct hf_str){ body, BIG });
	free(body);
}

static void
on_echo(void *arg, struct hf_req *rq, struct hf_sink *s)
{
	(void)arg;
	hf_sink_reply(s, 200, NULL, 0, "text/plain", rq->body);
}

static void
refuse(void *arg, struct hf_req *rq, struct hf_sink *s, int status,
    const char *code, const char *message)
{
	(void)arg;
	(void)rq;
	(void)code;
	hf_sink_reply(s, status, NULL, 0, "text/plain", hf_str(message));
}

static bool
tell_held(void *arg, uint32_t slot, uint32_t epoch, int fd)
{
	struct worker *w = arg;
	const struct word word = { slot, epoch, fd >= 0 };

	return say(w->fd, &word, fd);
}

static void
on_master(evutil_socket_t fd, short what, void *arg)
{
	struct worker *w = arg;
	struct word word;
	int passed;

	(void)what;
	if (!hear(fd, &word, &passed, 0))
		_exit(0);
	hf_front_adopt(w->front, passed, word.slot, word.epoch, false);
}

static void
worker_main(int fd, int hold_fd, int listen_fd, uint64_t inc)
{
	static const struct hf_path path[] = {
		{ "/say", HF_POST, true, on_say },
		{ "/big", HF_POST, true, on_big },
		{ "/echo", HF_POST, true, on_echo },
	};
	struct worker w = { .fd = fd };
	struct hf_error e = { 0 };
	struct hf_front_conf c = { .gw = &w.gw,
		.path = path,
		.n_path = hf_countof(path),
		.arg = &w,
		.shm = &w.shm,
		.hold = &w.hold,
		.tell_held = tell_held,
		.refuse = refuse };
	struct event *ev;

	w.gw = (struct hf_conf_gateway){ .header_timeout_ms = 30000,
		.body_timeout_ms = 30000,
		.keepalive_timeout_ms = 30000,
		.write_timeout_ms = 30000,
		.body_soft = 8 << 20,
		.body_hard = 8 << 20 };
	w.base = event_base_new();
	if (hf_shm_create(&w.shm, NULL, &e) < 0 ||
	    hf_hold_map(&w.hold, hold_fd, inc, &e) < 0 ||
	    hf_front_new(&w.front, w.base, &c, &e) < 0 ||
	    hf_front_listen(w.front, listen_fd, &e) < 0)
		_exit(8);
	ev = event_new(w.base, fd, EV_READ | EV_PERSIST, on_master, &w);
	event_add(ev, NULL);
	event_base_dispatch(w.base);
	_exit(7);
}

/* --- a client --- */

struct tally {
	_Atomic unsigned exact, wrong, broken, done;
};

struct link {
	int fd;
	char buf[1 << 16];
	size_t from, to;
	bool slow;
};

static int
byte(struct link *l)
{
	ssize_t n;

	if (l->from < l->to)
		return (unsigned char)l->buf[l->from++];
	if (l->slow)
		poll(NULL, 0, 1);
	n = recv(l->fd, l->buf, l->slow ? 2000 : sizeof(l->buf), 0);
	if (n <= 0)
		return -1;
	l->from = 1;
	l->to = (size_t)n;
	return (unsigned char)l->buf[0];
}

static bool
read_line(struct link *l, char *out, size_t size)
{
	size_t n = 0;
	int c;

	while ((c = byte(l)) >= 0 && c != '\n')
		if (c != '\r' && n + 1 < size)
			out[n++] = (char)c;
	out[n] = '\0';
	return c == '\n';
}

/* Read a response's body; -1: broken off. */
static long
read_response(struct link *l, char *out, size_t size)
{
	char text[256];
	long length = -1, n = 0;
	bool chunked = false;
	int c;

	if (!read_line(l, text, sizeof(text)))
		return -1;
	if (strcmp(text, "HTTP/1.1 200 OK") != 0)
		return -2;
	while (read_line(l, text, sizeof(text)) && text[0] != '\0') {
		if (strncasecmp(text, "content-length:", 15) == 0)
			length = atol(text + 15);
		if (strncasecmp(text, "transfer-encoding: chunked", 26) == 0)
			chunked = true;
	}
	do {
		if (chunked) {
			if (!read_line(l, text, sizeof(text)))
				return -1;
			length = strtol(text, NULL, 16);
		}
		for (long i = 0; i < length; i++) {
			if ((c = byte(l)) < 0)
				return -1;
			if ((size_t)n < size)
				out[n++] = (char)c;
		}
		if (chunked && !read_line(l, text, sizeof(text)))
			return -1;
	} while (chunked && length > 0);
	return n;
}

static bool
post(struct link *l, const char *path, const char *body, size_t size)
{
	char head[200];
	int n = snprintf(head, sizeof(head),
	    "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", path,
	    size);

	return send(l->fd, head, (size_t)n, MSG_NOSIGNAL) == n &&
	    send(l->fd, body, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* One request: 1: exact, 0: broken, -1: wrong. */
static int
ask(struct link *l, unsigned kind, unsigned seed)
{
	static char out[1 << 20], want[1 << 20];
	size_t size = 0;
	long n;

	if (kind == 0) {
		char body[16];
		unsigned lines = 1 + seed % 200;

		for (unsigned k = 0; k < lines; k++)
			size += line(want + size, k);
		memcpy(want + size, "end\n", 4);
		size += 4;
		snprintf(body, sizeof(body), "%u ", lines);
		if (!post(l, "/say", body, strlen(body)))
			return 0;
	} else if (kind == 1) {
		for (size = 0; size < BIG; size++)
			want[size] = (char)('a' + size % 23);
		if (!post(l, "/big", "x", 1))
			return 0;
	} else {
		for (size = 0; size < seed % 300000 + 1; size++)
			want[size] = (char)('A' + (size * 7 + seed) % 26);
		if (!post(l, "/echo", want, size))
			return 0;
	}
	n = read_response(l, out, sizeof(out));
	if (n == -1)
		return 0;
	return n == (long)size && memcmp(out, want, size) == 0 ? 1 : -1;
}

static void
client_main(
    int port, unsigned seed, const _Atomic bool *stop, struct tally *tally)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)port) };
	static struct link l;

	srandom(seed);
	while (!atomic_load(stop)) {
		unsigned turns = 1 + (unsigned)random() % 3;

		l = (struct link){ .slow = random() % 4 == 0 };
		l.fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(l.fd, (struct sockaddr *)&a, sizeof(a)) < 0)
			_exit(6);
		while (turns-- > 0) {
			unsigned kind = (unsigned)random() % 4;
			int rc = ask(
			    &l, kind < 2 ? 0 : kind - 1, (unsigned)random());

			atomic_fetch_add(rc > 0 ? &tally->exact :
				rc == 0		? &tally->broken :
						  &tally->wrong,
			    1);
			if (rc <= 0)
				break;
		}
		close(l.fd);
	}
	atomic_fetch_add(&tally->done, 1);
	_exit(0);
}

/* --- the master --- */

struct child {
	pid_t pid;
	int fd;
	uint64_t inc;
};

struct held {
	int fd;
	uint32_t epoch;
	uint64_t inc;
};

static struct child child[WORKERS];
static struct held held[HF_HOLD_SLOTS];
static struct hf_hold hold;
static int hold_fd, listen_fd;
static unsigned handed;

static void
start(struct child *c)
{
	static uint64_t incs;
	int pair[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	c->inc = ++incs;
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (c->pid == 0) {
		/* What a worker inherits besides is the master's alone. */
		for (uint32_t i = 0; i < HF_HOLD_SLOTS; i++)
			if (held[i].fd > 0)
				close(held[i].fd);
		for (int i = 0; i < WORKERS; i++)
			if (&child[i] != c && child[i].fd > 0)
				close(child[i].fd);
		close(pair[0]);
		worker_main(pair[1], hold_fd, listen_fd, c->inc);
	}
	close(pair[1]);
	c->fd = pair[0];
}

static void
drop(struct held *h)
{
	if (h->fd > 0)
		close(h->fd);
	*h = (struct held){ 0 };
}

static void
receive(struct child *c)
{
	struct word w;
	int passed;

	while (hear(c->fd, &w, &passed, MSG_DONTWAIT)) {
		struct held *h = &held[w.slot];

		if (w.held) {
			drop(h);
			*h = (struct held){ passed, w.epoch, c->inc };
		} else if (h->epoch == w.epoch) {
			drop(h);
		}
	}
}

/* Dead: settle what it held, then a new one, then hand over. */
static void
bury(struct child *c)
{
	uint64_t dead = c->inc;
	struct child *to;

	receive(c);
	close(c->fd);
	c->fd = 0;
	start(c);
	to = &child[random() % WORKERS];
	for (uint32_t i = 0; i < HF_HOLD_SLOTS; i++) {
		struct held *h = &held[i];
		uint64_t was = dead;
		struct word w = { i, h->epoch, false };

		if (h->fd <= 0 || h->inc != dead) {
			if (h->fd <= 0)
				atomic_compare_exchange_strong(
				    hf_hold_owner(&hold, i), &was, 0);
			continue;
		}
		if (!atomic_compare_exchange_strong(
			hf_hold_owner(&hold, i), &was, to->inc)) {
			drop(h);
			continue;
		}
		h->inc = to->inc;
		assert_true(say(to->fd, &w, h->fd));
		handed++;
	}
}

static void
listen_here(int *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(a);

	listen_fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listen_fd, (struct sockaddr *)&a, size), 0);
	assert_int_equal(listen(listen_fd, 512), 0);
	getsockname(listen_fd, (struct sockaddr *)&a, &size);
	*port = ntohs(a.sin_port);
}

static void
serve_until(int64_t until_us)
{
	struct pollfd p[WORKERS];
	int64_t left;

	while ((left = until_us - hf_now_us()) > 0) {
		for (int i = 0; i < WORKERS; i++)
			p[i] = (struct pollfd){ child[i].fd, POLLIN, 0 };
		poll(p, WORKERS, (int)(left / 1000) + 1);
		for (int i = 0; i < WORKERS; i++)
			receive(&child[i]);
	}
}

static void
kill_one(void)
{
	struct child *c = &child[random() % WORKERS];
	int status;

	kill(c->pid, SIGKILL);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	/* It was us, not something that went wrong in it. */
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	bury(c);
}

static void
test_campaign(void **state)
{
	/* Under valgrind all is slower, and what is to be killed is, too. */
	unsigned slow = getenv("HF_VALGRIND") != NULL ? 8 : 1;
	unsigned kills = (getenv("HF_TEST_LONG") != NULL ? 5000 : 200) / slow;
	struct tally *tally = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	_Atomic bool *stop = (_Atomic bool *)(void *)((char *)tally + 2048);
	struct hf_error e;
	pid_t client[CLIENTS];
	int port, status;

	(void)state;
	hf_log_set_level(HF_LOG_ERROR);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(hf_hold_create(&hold, &hold_fd, &e), 0);
	listen_here(&port);
	for (int i = 0; i < WORKERS; i++)
		start(&child[i]);
	for (int i = 0; i < CLIENTS; i++) {
		client[i] = fork();
		if (client[i] == 0)
			client_main(port, (unsigned)i + 1, stop, tally);
	}
	srandom(1);
	for (unsigned i = 0; i < kills; i++) {
		serve_until(hf_now_us() + slow * (8000 + random() % 30000));
		kill_one();
	}
	atomic_store(stop, true);
	while (atomic_load(&tally->done) < CLIENTS)
		serve_until(hf_now_us() + 10000);
	for (int i = 0; i < CLIENTS; i++) {
		assert_int_equal(waitpid(client[i], &status, 0), client[i]);
		assert_int_equal(status, 0);
	}
	for (int i = 0; i < WORKERS; i++) {
		kill(child[i].pid, SIGKILL);
		waitpid(child[i].pid, &status, 0);
		close(child[i].fd);
	}
	print_message("kills=%u handed=%u exact=%u broken=%u wrong=%u\n", kills,
	    handed, atomic_load(&tally->exact), atomic_load(&tally->broken),
	    atomic_load(&tally->wrong));
	assert_true(handed > kills);
	assert_true(atomic_load(&tally->exact) > kills / 4);
	assert_int_equal(atomic_load(&tally->wrong), 0);
	/* Killed between accept and the master's knowing. */
	assert_true(atomic_load(&tally->broken) <= 1 + kills / 20);
	hf_hold_unmap(&hold);
	close(hold_fd);
	close(listen_fd);
	munmap(tally, 4096);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_campaign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
