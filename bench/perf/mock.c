/*
 * perfmock: an upstream for measuring proxies.  It answers chat completions
 * on 127.0.0.1, plainly or as a stream, always with the same words, and does
 * as little else as possible: one thread, epoll, no parsing beyond the
 * request's length and whether it asks for a stream.  A plain answer is one
 * piece, without the time.
 *
 *   perfmock BEHAVIOUR ...      one listening port for each, for example
 *   perfmock fill=64 chunks=50,interval_ms=20
 *
 *     fill=N         bytes of filler in each answer and in each chunk (64)
 *     chunks=N       pieces of a streamed answer (50)
 *     interval_ms=N  between two pieces (20); 0: all at once
 *     delay_ms=N     before the answer or the first piece (0)
 *
 * The ports come from the kernel and are printed, one line each, before the
 * first connection is taken.  Every piece carries "#INDEX:NS;", NS being the
 * time of its sending on CLOCK_MONOTONIC, so that a client on the same
 * machine knows how long it was under way.  GET /stats tells how many
 * requests came: who measures can see that none was answered by another.
 */
#include <config.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define IN_MAX (8U << 20) /* a larger request closes its connection */
#define IN_STEP 65536U
#define FILL_MAX 4096
#define CHUNK_HEAD "\"object\":\"chat.completion.chunk\","
#define COMMON "\"created\":1700000000,\"model\":\"perf\",\"choices\":"

struct behaviour {
	int fd;
	long fill;
	long chunks;
	int64_t interval_ns;
	int64_t delay_ns;
	char *filler;
	char *plain; /* the whole answer, with its head */
	size_t plain_size;
	uint64_t n_requests;
	uint64_t n_streams;
};

struct conn {
	int fd;
	struct behaviour *how;
	bool listener;
	bool busy;   /* an answer is under way */
	bool stream; /* and it is a stream */
	bool timed;  /* linked into due_list */
	bool wants_out;
	long index; /* of the next piece */
	int64_t due_ns;
	TAILQ_ENTRY(conn) due_link;
	char *in;
	size_t in_size, in_cap;
	char *out;
	size_t out_off, out_size, out_cap;
};

/* In order of due_ns. */
static TAILQ_HEAD(due_list, conn) due_list = TAILQ_HEAD_INITIALIZER(due_list);
static int poller;

static void
die(const char *what)
{
	fprintf(stderr, "perfmock: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *
grown(void *p, size_t size)
{
	p = realloc(p, size);
	if (p == NULL)
		die("realloc");
	return p;
}

static void
watch(struct conn *c, bool wants_out)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };

	if (wants_out == c->wants_out)
		return;
	c->wants_out = wants_out;
	if (wants_out)
		ev.events |= EPOLLOUT;
	epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &ev);
}

/* Nearly always at the end: behaviours rarely differ in their interval. */
static void
set_due(struct conn *c, int64_t due_ns)
{
	struct conn *at;

	c->due_ns = due_ns;
	c->timed = true;
	TAILQ_FOREACH_REVERSE(at, &due_list, due_list, due_link)
	if (at->due_ns <= due_ns)
		break;
	if (at != NULL)
		TAILQ_INSERT_AFTER(&due_list, at, c, due_link);
	else
		TAILQ_INSERT_HEAD(&due_list, c, due_link);
}

static void
clear_due(struct conn *c)
{
	if (c->timed)
		TAILQ_REMOVE(&due_list, c, due_link);
	c->timed = false;
}

static void
drop(struct conn *c)
{
	clear_due(c);
	close(c->fd);
	free(c->in);
	free(c->out);
	free(c);
}

static void
put(struct conn *c, const char *s, size_t size)
{
	if (c->out_size + size > c->out_cap) {
		c->out_cap = 2 * (c->out_size + size);
		c->out = grown(c->out, c->out_cap);
	}
	memcpy(c->out + c->out_size, s, size);
	c->out_size += size;
}

/* Sends what it can; false when the connection is gone. */
static bool
flush(struct conn *c)
{
	ssize_t n;

	while (c->out_off < c->out_size) {
		n = send(c->fd, c->out + c->out_off, c->out_size - c->out_off,
		    MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN) {
			watch(c, true);
			return true;
		}
		if (n < 0)
			return false;
		c->out_off += (size_t)n;
	}
	c->out_off = c->out_size = 0;
	watch(c, false);
	return true;
}

static void
put_chunk(struct conn *c, const char *s, size_t size)
{
	char head[32];
	int n;

	n = snprintf(head, sizeof(head), "%zx\r\n", size);
	put(c, head, (size_t)n);
	put(c, s, size);
	put(c, "\r\n", 2);
}

static void
put_piece(struct conn *c)
{
	char s[FILL_MAX + 512];
	int n;

	n = snprintf(s, sizeof(s),
	    "data: {\"id\":\"chatcmpl-perf\"," CHUNK_HEAD COMMON
	    "[{\"index\":0,\"delta\":{%s\"content\":\"#%ld:%lld;%s\"},"
	    "\"finish_reason\":null}]}\n\n",
	    c->index == 0 ? "\"role\":\"assistant\"," : "", c->index,
	    (long long)now_ns(), c->how->filler);
	put_chunk(c, s, (size_t)n);
	c->index++;
}

static void
put_end(struct conn *c)
{
	static const char end[] =
	    "data: {\"id\":\"chatcmpl-perf\"," CHUNK_HEAD COMMON
	    "[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	    "data: [DONE]\n\n";

	put_chunk(c, end, sizeof(end) - 1);
	put(c, "0\r\n\r\n", 5);
	c->busy = false;
}

/* The next piece or, with no interval, all of them. */
static bool
stream_on(struct conn *c)
{
	static const char head[] = "HTTP/1.1 200 OK\r\n"
				   "Content-Type: text/event-stream\r\n"
				   "Cache-Control: no-cache\r\n"
				   "Transfer-Encoding: chunked\r\n\r\n";

	if (c->index == 0)
		put(c, head, sizeof(head) - 1);
	while (c->index < c->how->chunks) {
		put_piece(c);
		if (c->how->interval_ns > 0) {
			/* From the time it was due: no drift. */
			set_due(c, c->due_ns + c->how->interval_ns);
			return flush(c);
		}
	}
	put_end(c);
	return flush(c);
}

static bool
answer(struct conn *c)
{
	if (c->stream)
		return stream_on(c);
	put(c, c->how->plain, c->how->plain_size);
	c->busy = false;
	return flush(c);
}

static bool
answer_stats(struct conn *c)
{
	char s[256], body[128];
	int n;

	n = snprintf(body, sizeof(body), "{\"requests\":%llu,\"streams\":%llu}",
	    (unsigned long long)c->how->n_requests,
	    (unsigned long long)c->how->n_streams);
	n = snprintf(s, sizeof(s),
	    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	    "Content-Length: %d\r\n\r\n%s",
	    n, body);
	put(c, s, (size_t)n);
	return flush(c);
}

/* The value of the header "name" (with its colon), or NULL. */
static const char *
header(const char *head, size_t size, const char *name)
{
	size_t n = strlen(name);
	const char *at, *end = head + size, *eol;

	for (at = head; (eol = memchr(at, '\n', (size_t)(end - at))) != NULL;
	     at = eol + 1) {
		if ((size_t)(eol - at) > n && strncasecmp(at, name, n) == 0)
			return at + n;
	}
	return NULL;
}

static bool
asks_for_stream(const char *body, size_t size)
{
	static const char key[] = "\"stream\"";
	const char *at = memmem(body, size, key, sizeof(key) - 1);

	if (at == NULL)
		return false;
	for (at += sizeof(key) - 1; at < body + size; at++)
		if (*at != ' ' && *at != ':')
			break;
	return body + size - at >= 4 && memcmp(at, "true", 4) == 0;
}

/* Answers the requests that have come whole; false: hang up. */
static bool
serve(struct conn *c)
{
	const char *end, *v;
	size_t head, body;

	while (!c->busy && c->in_size > 0) {
		end = memmem(c->in, c->in_size, "\r\n\r\n", 4);
		if (end == NULL)
			return true;
		head = (size_t)(end - c->in) + 4;
		v = header(c->in, head, "content-length:");
		body = v != NULL ? strtoul(v, NULL, 10) : 0;
		if (body > IN_MAX)
			return false;
		if (c->in_size < head + body)
			return true;
		if (strncmp(c->in, "GET /stats ", 11) == 0) {
			if (!answer_stats(c))
				return false;
		} else {
			c->stream = asks_for_stream(c->in + head, body);
			c->how->n_requests++;
			c->how->n_streams += c->stream;
			c->busy = true;
			c->index = 0;
			c->due_ns = now_ns();
		}
		c->in_size -= head + body;
		memmove(c->in, c->in + head + body, c->in_size);
		if (c->busy && c->how->delay_ns > 0)
			set_due(c, c->due_ns + c->how->delay_ns);
		else if (c->busy && !answer(c))
			return false;
	}
	return true;
}

static bool
take_in(struct conn *c)
{
	ssize_t n;

	for (;;) {
		if (c->in_cap - c->in_size < IN_STEP + 1) {
			c->in_cap = c->in_size + 2 * IN_STEP;
			c->in = grown(c->in, c->in_cap);
		}
		n = recv(c->fd, c->in + c->in_size, IN_STEP, 0);
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0)
			return false;
		c->in_size += (size_t)n;
		c->in[c->in_size] = '\0';
		if (c->in_size > 2 * IN_MAX)
			return false;
		if ((size_t)n < IN_STEP)
			break;
	}
	return serve(c);
}

static void
take_connections(struct conn *listener)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct conn *c;
	int fd, one = 1;

	while ((fd = accept4(listener->fd, NULL, NULL,
		    SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		c = calloc(1, sizeof(*c));
		if (c == NULL)
			die("calloc");
		c->fd = fd;
		c->how = listener->how;
		ev.data.ptr = c;
		if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &ev) != 0)
			die("epoll_ctl");
	}
}

static void
read_behaviour(struct behaviour *b, char *words)
{
	char *word, *value, *rest = words;
	long n;

	b->fill = 64;
	b->chunks = 50;
	b->interval_ns = 20000000;
	while ((word = strsep(&rest, ",")) != NULL) {
		value = strchr(word, '=');
		n = value != NULL ? strtol(value + 1, NULL, 10) : -1;
		if (n >= 0 && n <= FILL_MAX && strncmp(word, "fill=", 5) == 0)
			b->fill = n;
		else if (n > 0 && strncmp(word, "chunks=", 7) == 0)
			b->chunks = n;
		else if (n >= 0 && strncmp(word, "interval_ms=", 12) == 0)
			b->interval_ns = n * 1000000;
		else if (n >= 0 && strncmp(word, "delay_ms=", 9) == 0)
			b->delay_ns = n * 1000000;
		else {
			fprintf(stderr, "perfmock: bad behaviour '%s'\n", word);
			exit(2);
		}
	}
}

static void
make_plain(struct behaviour *b)
{
	char *body;
	long i;
	int n;

	b->filler = grown(NULL, (size_t)b->fill + 1);
	for (i = 0; i < b->fill; i++)
		b->filler[i] = (char)(i % 7 == 6 ? ' ' : 'a' + i % 26);
	b->filler[b->fill] = '\0';
	n = asprintf(&body,
	    "{\"id\":\"chatcmpl-perf\",\"object\":\"chat.completion\"," COMMON
	    "[{\"index\":0,\"message\":{\"role\":\"assistant\","
	    "\"content\":\"#0:%s\"},\"finish_reason\":\"stop\"}],"
	    "\"usage\":{\"prompt_tokens\":42,\"completion_tokens\":16,"
	    "\"total_tokens\":58}}",
	    b->filler);
	if (n < 0)
		die("asprintf");
	n = asprintf(&b->plain,
	    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	    "Content-Length: %d\r\n\r\n%s",
	    n, body);
	if (n < 0)
		die("asprintf");
	b->plain_size = (size_t)n;
	free(body);
}

static void
open_port(struct behaviour *b)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(a);
	struct epoll_event ev = { .events = EPOLLIN };
	struct conn *c = calloc(1, sizeof(*c));

	if (c == NULL)
		die("calloc");
	b->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (b->fd < 0 || bind(b->fd, (struct sockaddr *)&a, size) != 0 ||
	    listen(b->fd, 4096) != 0 ||
	    getsockname(b->fd, (struct sockaddr *)&a, &size) != 0)
		die("listen");
	c->fd = b->fd;
	c->how = b;
	c->listener = true;
	ev.data.ptr = c;
	if (epoll_ctl(poller, EPOLL_CTL_ADD, b->fd, &ev) != 0)
		die("epoll_ctl");
	printf("%d\n", ntohs(a.sin_port));
}

/* May free connections: not while events of them are still unread. */
static void
run_due(void)
{
	int64_t now = now_ns();
	struct conn *c;

	while ((c = TAILQ_FIRST(&due_list)) != NULL && c->due_ns <= now) {
		clear_due(c);
		if (!answer(c) || !serve(c))
			drop(c);
	}
}

static int
wait_ms(void)
{
	const struct conn *c = TAILQ_FIRST(&due_list);
	int64_t ns;

	if (c == NULL)
		return -1;
	ns = c->due_ns - now_ns();
	return ns <= 0 ? 0 : (int)((ns + 999999) / 1000000);
}

int
main(int argc, char **argv)
{
	static struct epoll_event ev[512];
	struct behaviour *b;
	struct conn *c;
	bool alive;
	int i, n;

	if (argc < 2) {
		fprintf(stderr, "usage: perfmock BEHAVIOUR ...\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	poller = epoll_create1(EPOLL_CLOEXEC);
	b = calloc((size_t)argc, sizeof(*b));
	if (poller < 0 || b == NULL)
		die("start");
	for (i = 1; i < argc; i++) {
		read_behaviour(&b[i], argv[i]);
		make_plain(&b[i]);
		open_port(&b[i]);
	}
	fflush(stdout);
	for (;;) {
		run_due();
		n = epoll_wait(poller, ev, 512, wait_ms());
		for (i = 0; i < n; i++) {
			c = ev[i].data.ptr;
			if (c->listener) {
				take_connections(c);
				continue;
			}
			alive = true;
			if (ev[i].events & EPOLLOUT)
				alive = flush(c);
			if (alive && (ev[i].events & ~(unsigned)EPOLLOUT))
				alive = take_in(c);
			if (!alive)
				drop(c);
		}
	}
}
