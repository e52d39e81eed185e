/*
 * perfload: a client that measures a proxy on 127.0.0.1.  One thread, epoll.
 *
 *   perfload -m closed -p PORT -b FILE -c 64 -d 4     as fast as it goes
 *   perfload -m open -p PORT -b FILE -r 300 -d 4      one each 1/300 s
 *   perfload -m stream -p PORT -b FILE -c 100 -d 4    event streams
 *
 *     -b FILE    request body           -u PATH   (/v1/chat/completions)
 *     -H LINE    a header more          -w SECS   not counted at the start
 *     -g MS      connections of -m stream begin spread over this time
 *     -S PREFIX  each request is a turn of a session: PREFIX, the
 *                connection's number and a count, in X-Holdfast-Session
 *     -T N       turns of a session before the next one begins (5)
 *
 * In an open loop a latency counts from the time at which the request was
 * due, whether or not a connection was free (there are always more), so a
 * proxy that stalls is charged for all that waited.  Prints one JSON object;
 * times are in microseconds.  A request counts only if its status is 200 and
 * its body is what perfmock sent.
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
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "bench/perf/reader.h"

#define NS 1000000000LL
#define OPEN_MAX_CONNS 1024
#define GRACE_NS (5 * NS) /* for what is under way at the end */

enum mode { CLOSED, OPEN, STREAM };

struct conn {
	int fd;
	bool busy;
	bool wants_out;
	int number;
	unsigned turn;	  /* in the session */
	unsigned session; /* of this connection's sessions */
	int64_t start_ns; /* of the request, or when it was due */
	bool marked;	  /* a first piece came */
	char head[1024];
	size_t head_size;
	size_t sent;
	struct hf_reader reader;
};

struct samples {
	double *us;
	size_t n, cap;
};

struct counts {
	uint64_t ok, status, broken, wrong, redialled, chunks, unsent;
};

static struct {
	enum mode mode;
	int port;
	int n_conns;
	double rate;
	int64_t secs_ns, warm_ns, spread_ns;
	const char *path, *session;
	unsigned turns;
	char headers[512];
	char *body;
	size_t body_size;
} opt = { .n_conns = 1,
	.path = "/v1/chat/completions",
	.turns = 5,
	.secs_ns = 5 * NS };

static struct conn *conns;
static struct conn **idle; /* a stack of those that wait */
static int n_idle;
static int poller;
static int64_t begin_ns, count_from_ns, end_ns;
static struct samples latency, first, transit;
static struct counts counts;

static void
die(const char *what)
{
	fprintf(stderr, "perfload: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * NS + t.tv_nsec;
}

static void
add(struct samples *s, int64_t ns)
{
	if (s->n == s->cap) {
		s->cap = s->cap > 0 ? 2 * s->cap : 65536;
		s->us = realloc(s->us, s->cap * sizeof(*s->us));
		if (s->us == NULL)
			die("realloc");
	}
	s->us[s->n++] = (double)ns / 1e3;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
print_samples(const char *name, struct samples *s)
{
	static const struct {
		const char *name;
		double at;
	} points[] = { { "p50", .5 }, { "p90", .9 }, { "p99", .99 },
		{ "max", 1 } };
	size_t i;

	if (s->n == 0)
		return;
	qsort(s->us, s->n, sizeof(*s->us), by_value);
	printf(",\"%s\":{\"n\":%zu", name, s->n);
	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		printf(",\"%s\":%.1f", points[i].name,
		    s->us[(size_t)((double)(s->n - 1) * points[i].at)]);
	printf("}");
}

static void
watch(struct conn *c, int op, bool wants_out)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };

	if (op == EPOLL_CTL_MOD && wants_out == c->wants_out)
		return;
	c->wants_out = wants_out;
	if (wants_out)
		ev.events |= EPOLLOUT;
	if (epoll_ctl(poller, op, c->fd, &ev) != 0)
		die("epoll_ctl");
}

static void
dial(struct conn *c)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)opt.port) };
	int one = 1;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		die("socket");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(c->fd, (struct sockaddr *)&a, sizeof(a)) != 0 &&
	    errno != EINPROGRESS)
		die("connect");
	watch(c, EPOLL_CTL_ADD, true);
}

static void
hang_up(struct conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static void
make_head(struct conn *c)
{
	char session[128] = "";
	int n;

	if (opt.session != NULL) {
		if (c->turn++ == opt.turns) {
			c->turn = 1;
			c->session++;
		}
		snprintf(session, sizeof(session),
		    "X-Holdfast-Session: %s-%d-%u\r\n", opt.session, c->number,
		    c->session);
	}
	n = snprintf(c->head, sizeof(c->head),
	    "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	    "Content-Type: application/json\r\n%s%sContent-Length: %zu\r\n\r\n",
	    opt.path, opt.port, opt.headers, session, opt.body_size);
	if (n < 0 || (size_t)n >= sizeof(c->head)) {
		fprintf(stderr, "perfload: the head is too long\n");
		exit(2);
	}
	c->head_size = (size_t)n;
}

/* false: the connection is gone */
static bool
send_on(struct conn *c)
{
	size_t total = c->head_size + opt.body_size, off;
	struct iovec v[2];
	ssize_t n;

	while (c->sent < total) {
		off = c->sent < c->head_size ? c->sent : c->head_size;
		v[0].iov_base = c->head + off;
		v[0].iov_len = c->head_size - off;
		off = c->sent - off;
		v[1].iov_base = opt.body + off;
		v[1].iov_len = opt.body_size - off;
		n = writev(c->fd, v, 2);
		if (n < 0 && errno != EAGAIN && errno != ENOTCONN)
			return false;
		if (n < 0) {
			watch(c, EPOLL_CTL_MOD, true);
			return true;
		}
		c->sent += (size_t)n;
	}
	watch(c, EPOLL_CTL_MOD, false);
	return true;
}

static void
start(struct conn *c, int64_t start_ns)
{
	c->busy = true;
	c->marked = false;
	c->start_ns = start_ns;
	c->sent = 0;
	hf_reader_start(&c->reader);
	make_head(c);
	if (c->fd >= 0 && send_on(c))
		return;
	/* Closed while idle, or never open: nothing of this one was sent. */
	hang_up(c);
	counts.redialled++;
	dial(c);
}

static void
on_mark(void *arg, int64_t sent_ns)
{
	struct conn *c = arg;
	int64_t now = now_ns();

	counts.chunks++;
	if (now >= count_from_ns) {
		if (!c->marked)
			add(&first, now - c->start_ns);
		add(&transit, now - sent_ns);
	}
	c->marked = true;
}

static bool
answer_ok(const struct conn *c)
{
	const struct hf_reader *r = &c->reader;

	if (opt.mode != STREAM)
		return hf_reader_plain_ok(r);
	return r->done && r->expected > 0 && !r->jumbled;
}

/* The request of "c" is over; "whole" if its answer ended as it should. */
static void
finish(struct conn *c, bool whole)
{
	int64_t now = now_ns();

	if (!whole)
		counts.broken++;
	else if (c->reader.status != 200)
		counts.status++;
	else if (!answer_ok(c))
		counts.wrong++;
	else if (now >= count_from_ns && now <= end_ns)
		counts.ok++;
	if (whole && now >= count_from_ns)
		add(&latency, now - c->start_ns);
	if (!whole || !c->reader.keep)
		hang_up(c);
	c->busy = false;
	idle[n_idle++] = c;
}

static void
take_in(struct conn *c)
{
	static char s[262144];
	enum hf_reader_step step;
	size_t used;
	ssize_t n;

	n = recv(c->fd, s, sizeof(s), 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (!c->busy) {
		hang_up(c); /* closed, or answered what was not asked */
		return;
	}
	if (n <= 0) {
		finish(c, false);
		return;
	}
	step = hf_reader_take(&c->reader, s, (size_t)n, &used,
	    opt.mode == STREAM ? on_mark : NULL, c);
	if (step != HF_READER_MORE)
		finish(c, step == HF_READER_DONE && used == (size_t)n);
}

static void
on_event(struct conn *c, unsigned events)
{
	if (c->fd < 0)
		return;
	if ((events & EPOLLOUT) && c->busy && !send_on(c)) {
		finish(c, false);
		return;
	}
	if (events & ~(unsigned)EPOLLOUT)
		take_in(c);
	else if (!c->busy)
		watch(c, EPOLL_CTL_MOD, false);
}

/* Starts what is due; returns when to be called again, 0 for never. */
static int64_t
start_due(uint64_t *n_started, int64_t now)
{
	int64_t due = 0;

	while (n_idle > 0) {
		if (opt.mode == OPEN)
			due = begin_ns +
			    (int64_t)((double)*n_started * NS / opt.rate);
		else if (*n_started < (uint64_t)opt.n_conns)
			due = begin_ns +
			    opt.spread_ns * (int64_t)*n_started / opt.n_conns;
		else
			due = now;
		if (due > now)
			return due;
		(*n_started)++;
		start(idle[--n_idle], due);
	}
	if (opt.mode == OPEN)
		counts.unsent++; /* every connection is busy */
	return 0;
}

static void
set_timer(int timer, int64_t at_ns)
{
	struct itimerspec t = { .it_value.tv_sec = at_ns / NS,
		.it_value.tv_nsec = at_ns % NS };

	if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &t, NULL) != 0)
		die("timerfd_settime");
}

static void
run(void)
{
	static struct epoll_event ev[512];
	struct epoll_event te = { .events = EPOLLIN, .data.ptr = NULL };
	uint64_t n_started = 0, expired;
	int64_t now, at, armed = 0;
	int i, n, timer;

	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (timer < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, timer, &te) != 0)
		die("timerfd");
	for (;;) {
		now = now_ns();
		if (now < end_ns) {
			at = start_due(&n_started, now);
			if (at == 0 || at > end_ns)
				at = end_ns;
		} else if (n_idle == opt.n_conns || now > end_ns + GRACE_NS) {
			break;
		} else {
			at = end_ns + GRACE_NS + 1;
		}
		if (at != armed)
			set_timer(timer, at);
		armed = at;
		n = epoll_wait(poller, ev, 512, -1);
		for (i = 0; i < n; i++) {
			if (ev[i].data.ptr != NULL)
				on_event(ev[i].data.ptr, ev[i].events);
			else if (read(timer, &expired, sizeof(expired)) > 0)
				armed = 0;
		}
	}
}

static void
read_body(const char *path)
{
	FILE *f = fopen(path, "rb");
	long size;

	if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 0)
		die(path);
	rewind(f);
	opt.body = malloc((size_t)size + 1);
	opt.body_size = (size_t)size;
	if (opt.body == NULL ||
	    fread(opt.body, 1, opt.body_size, f) != opt.body_size)
		die(path);
	fclose(f);
}

static void
add_header(const char *line)
{
	size_t n = strlen(opt.headers);

	if (n + strlen(line) + 3 > sizeof(opt.headers)) {
		fprintf(stderr, "perfload: too many headers\n");
		exit(2);
	}
	snprintf(opt.headers + n, sizeof(opt.headers) - n, "%s\r\n", line);
}

static enum mode
mode_of(const char *name)
{
	if (strcmp(name, "closed") == 0)
		return CLOSED;
	if (strcmp(name, "open") == 0)
		return OPEN;
	if (strcmp(name, "stream") == 0)
		return STREAM;
	fprintf(stderr, "perfload: no mode '%s'\n", name);
	exit(2);
}

static int64_t
ns_of(const char *secs)
{
	return (int64_t)(strtod(secs, NULL) * (double)NS);
}

static void
read_options(int argc, char **argv)
{
	int o;

	while ((o = getopt(argc, argv, "m:p:b:c:d:r:u:H:w:g:S:T:")) != -1) {
		switch (o) {
		case 'm':
			opt.mode = mode_of(optarg);
			break;
		case 'p':
			opt.port = atoi(optarg);
			break;
		case 'b':
			read_body(optarg);
			break;
		case 'c':
			opt.n_conns = atoi(optarg);
			break;
		case 'd':
			opt.secs_ns = ns_of(optarg);
			break;
		case 'r':
			opt.rate = strtod(optarg, NULL);
			break;
		case 'u':
			opt.path = optarg;
			break;
		case 'H':
			add_header(optarg);
			break;
		case 'w':
			opt.warm_ns = ns_of(optarg);
			break;
		case 'g':
			opt.spread_ns = ns_of(optarg) / 1000;
			break;
		case 'S':
			opt.session = optarg;
			break;
		case 'T':
			opt.turns = (unsigned)atoi(optarg);
			break;
		default:
			exit(2);
		}
	}
	if (opt.mode == OPEN)
		opt.n_conns = OPEN_MAX_CONNS;
	if (opt.body == NULL || opt.port <= 0 || opt.n_conns <= 0 ||
	    opt.turns == 0 || (opt.mode == OPEN && opt.rate <= 0)) {
		fprintf(stderr,
		    "usage: perfload -m closed|open|stream -p PORT "
		    "-b FILE [-c N] [-r RATE] [-d SECS] ...\n");
		exit(2);
	}
}

static void
print_result(int64_t under_way)
{
	double secs = (double)(end_ns - count_from_ns) / NS;

	printf("{\"ok\":%llu,\"per_s\":%.1f,\"status\":%llu,\"broken\":%llu,"
	       "\"wrong\":%llu,\"under_way\":%lld,\"unsent\":%llu,"
	       "\"redialled\":%llu,\"chunks\":%llu",
	    (unsigned long long)counts.ok, (double)counts.ok / secs,
	    (unsigned long long)counts.status,
	    (unsigned long long)counts.broken, (unsigned long long)counts.wrong,
	    (long long)under_way, (unsigned long long)counts.unsent,
	    (unsigned long long)counts.redialled,
	    (unsigned long long)counts.chunks);
	print_samples("latency", &latency);
	print_samples("first", &first);
	print_samples("transit", &transit);
	printf("}\n");
}

int
main(int argc, char **argv)
{
	struct rlimit files;
	int i;

	signal(SIGPIPE, SIG_IGN);
	read_options(argc, argv);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	poller = epoll_create1(EPOLL_CLOEXEC);
	conns = calloc((size_t)opt.n_conns, sizeof(*conns));
	idle = calloc((size_t)opt.n_conns, sizeof(struct conn *));
	if (poller < 0 || conns == NULL || idle == NULL)
		die("start");
	for (i = opt.n_conns - 1; i >= 0; i--) {
		conns[i].fd = -1;
		conns[i].number = i;
		idle[n_idle++] = &conns[i];
	}
	begin_ns = now_ns();
	count_from_ns = begin_ns + opt.warm_ns;
	end_ns = begin_ns + opt.secs_ns + opt.warm_ns;
	run();
	print_result(opt.n_conns - n_idle);
	return 0;
}
