/*
 * The campaign's callers: one thread, poll().  Each connection asks one to
 * three turns of a session of its own, one after the other, and knows every
 * byte of their answers.
 */
#include <config.h>

#include "tests/crash/campaign.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "bench/client.h"
#include "bench/rng.h"

#define MS ((int64_t)1000)
#define PATIENCE_US (60000 * MS) /* nothing comes: broken */
#define SLOW_BYTES 700		 /* at a time ... */
#define SLOW_US (4 * MS)	 /* ... and how often */
#define SLOW_BUFFER 4096	 /* of the kernel */
#define MOST_TURNS 3

enum framing { IN_HEAD, IN_SIZE, IN_CHUNK, IN_CHUNK_END, IN_LAST, AT_END };

struct caller {
	int fd; /* -1: free */
	bool slow, sent;
	unsigned long number;
	unsigned turn, turns;
	struct campaign_ask ask;
	struct hf_buf want, request, head;
	size_t request_at;
	/* Of the answer that is being read. */
	enum framing framing;
	bool keep, bad_frame;
	int status;
	size_t chunk; /* bytes left of it */
	char size_line[32];
	struct hf_answer_reader reader;
	size_t told; /* of 'want' */
	int64_t asked_us, last_us, moved_us, next_read_us;
	int64_t first_us, gap_us;
};

static struct {
	const struct campaign_options *o;
	struct campaign_result *r;
	const _Atomic unsigned long *kills;
	struct hf_rng rng;
	struct caller *caller;
	unsigned long begun; /* turns */
	FILE *out;
} play;

const char *
campaign_fate_name(enum campaign_fate f)
{
	static const char *const name[N_FATES] = { "exact", "corrupt",
		"truncated", "error", "broken" };

	return name[f];
}

const char *
campaign_stage_name(enum campaign_stage s)
{
	static const char *const name[N_STAGES] = { "connect", "sent", "head",
		"text", "tail", "end" };

	return name[s];
}

static void
add_sample(struct campaign_samples *s, int64_t us)
{
	if (s->n == s->cap) {
		s->cap = s->cap > 0 ? 2 * s->cap : 1024;
		s->ms = realloc(s->ms, s->cap * sizeof(*s->ms));
		HF_CHECK(s->ms != NULL);
	}
	s->ms[s->n++] = (double)us / 1000;
}

/* --- asking ------------------------------------------------------------------
 */

static void
make_request(struct caller *c)
{
	char text[CAMPAIGN_ID + 64], body[256];
	unsigned mean = play.o->words;
	int n;

	c->ask.words = mean / 2 + hf_rng_below(&play.rng, mean + 1);
	if (c->ask.words == 0)
		c->ask.words = 1;
	c->ask.pace_ms = play.o->pace_ms;
	snprintf(c->ask.id, sizeof(c->ask.id), "c%lu.t%u", c->number, c->turn);
	campaign_ask_print(&c->ask, text, sizeof(text));
	hf_buf_reset(&c->want);
	campaign_answer(&c->ask, &c->want);
	n = snprintf(body, sizeof(body),
	    "{\"model\":\"m\",\"stream\":true,"
	    "\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}",
	    text);
	hf_buf_reset(&c->request);
	hf_buf_printf(&c->request,
	    "POST /v1/chat/completions HTTP/1.1\r\nHost: campaign\r\n"
	    "Content-Type: application/json\r\n"
	    "X-Holdfast-Session: %s-c%lu\r\nX-Holdfast-History: delta\r\n"
	    "Content-Length: %d\r\n\r\n%s",
	    play.o->prefix, c->number, n, body);
	HF_CHECK(hf_buf_ok(&c->request) && hf_buf_ok(&c->want));
}

static void
ask(struct caller *c)
{
	c->turn++;
	play.begun++;
	make_request(c);
	c->request_at = 0;
	c->sent = false;
	c->framing = IN_HEAD;
	c->keep = true;
	c->bad_frame = false;
	c->status = 0;
	c->told = 0;
	hf_buf_reset(&c->head);
	hf_reader_free(&c->reader);
	hf_reader_init(&c->reader, true);
	c->asked_us = c->last_us = c->moved_us = hf_now_us();
	c->first_us = c->gap_us = 0;
}

static bool
dial(struct caller *c)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons(play.o->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1, size = SLOW_BUFFER;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return false;
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (c->slow)
		setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	return connect(c->fd, (struct sockaddr *)&a, sizeof(a)) == 0 ||
	    errno == EINPROGRESS;
}

/* --- the end of a turn ---------------------------------------------------- */

static enum campaign_stage
stage(const struct caller *c)
{
	if (!c->sent)
		return STAGE_CONNECT;
	if (c->framing == IN_HEAD)
		return c->head.size == 0 ? STAGE_SENT : STAGE_HEAD;
	if (c->framing == AT_END)
		return STAGE_END;
	return c->told == 0	   ? STAGE_HEAD :
	    c->told < c->want.size ? STAGE_TEXT :
				     STAGE_TAIL;
}

static void
over(struct caller *c, enum campaign_fate fate, const char *why)
{
	static unsigned said;
	struct campaign_result *r = play.r;
	enum campaign_stage at = stage(c);

	r->turns++;
	r->fate[fate]++;
	if (fate == FATE_ERROR || fate == FATE_BROKEN)
		r->at[at]++;
	if (fate != FATE_EXACT && said++ < 40)
		fprintf(stderr,
		    "campaign: %s-%s %s at %s after %zu of %zu bytes, "
		    "%.0f ms: %s\n",
		    play.o->prefix, c->ask.id, campaign_fate_name(fate),
		    campaign_stage_name(at), c->told, c->want.size,
		    (double)(hf_now_us() - c->asked_us) / 1000, why);
	if (play.out != NULL)
		fprintf(play.out, "%s-c%lu\t%u\t%s\t%s\n", play.o->prefix,
		    c->number, c->turn, campaign_fate_name(fate),
		    campaign_stage_name(at));
	if (fate == FATE_EXACT && !c->slow) {
		add_sample(&r->first, c->first_us);
		add_sample(&r->gap, c->gap_us);
		add_sample(&r->silence,
		    c->first_us > c->gap_us ? c->first_us : c->gap_us);
	}
	if (fate == FATE_EXACT && c->keep && c->turn < c->turns) {
		ask(c);
		return;
	}
	close(c->fd);
	c->fd = -1;
}

/* --- reading
 * -------------------------------------------------------------------- */

static void
take_text(struct caller *c, struct hf_str bytes)
{
	int64_t now = hf_now_us(), gap = now - c->last_us;

	(void)hf_reader_data(&c->reader, bytes);
	if (c->reader.text.size == c->told)
		return;
	if (c->told == 0)
		c->first_us = gap;
	else if (gap > c->gap_us)
		c->gap_us = gap;
	c->told = c->reader.text.size;
	c->last_us = now;
}

static const char *
header(const struct caller *c, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = strstr(c->head.data, "\r\n"); p != NULL;
	     p = strstr(p, "\r\n")) {
		p += 2;
		if (strncasecmp(p, name, n) == 0 && p[n] == ':')
			return p + n + 1 + strspn(p + n + 1, " ");
	}
	return NULL;
}

/* The head is there. */
static void
take_head(struct caller *c)
{
	const char *te = header(c, "Transfer-Encoding");
	const char *length = header(c, "Content-Length");
	const char *connection = header(c, "Connection");

	if (sscanf(c->head.data, "HTTP/1.1 %d", &c->status) != 1)
		c->bad_frame = true;
	c->keep =
	    connection == NULL || strncasecmp(connection, "close", 5) != 0;
	if (te != NULL && strncasecmp(te, "chunked", 7) == 0) {
		c->framing = IN_SIZE;
		c->size_line[0] = '\0';
	} else if (length != NULL && c->status != 200) {
		c->chunk = strtoul(length, NULL, 10);
		c->framing = IN_LAST;
	} else {
		c->bad_frame = true;
	}
}

static bool
add_to_line(struct caller *c, char ch)
{
	size_t n = strlen(c->size_line);

	if (n + 1 >= sizeof(c->size_line)) {
		c->bad_frame = true;
		return false;
	}
	c->size_line[n] = ch;
	c->size_line[n + 1] = '\0';
	return n > 0 && ch == '\n' && c->size_line[n - 1] == '\r';
}

static void
take_size(struct caller *c, char ch)
{
	char *end;

	if (!add_to_line(c, ch))
		return;
	c->chunk = strtoul(c->size_line, &end, 16);
	if (end == c->size_line || *end != '\r')
		c->bad_frame = true;
	c->size_line[0] = '\0';
	c->framing = c->chunk > 0 ? IN_CHUNK : IN_LAST;
}

/* As many of the bytes as belong together; how many these are. */
static size_t
take_some(struct caller *c, struct hf_str s)
{
	size_t n = s.size < c->chunk ? s.size : c->chunk;

	switch (c->framing) {
	case IN_HEAD:
		hf_buf_put(&c->head, s.p, 1);
		n = c->head.size;
		if (n >= 4 && memcmp(c->head.data + n - 4, "\r\n\r\n", 4) == 0)
			take_head(c);
		return 1;
	case IN_SIZE:
		take_size(c, s.p[0]);
		return 1;
	case IN_CHUNK:
		take_text(c, (struct hf_str){ s.p, n });
		c->chunk -= n;
		if (c->chunk == 0)
			c->framing = IN_CHUNK_END;
		return n;
	case IN_CHUNK_END:
		if (add_to_line(c, s.p[0])) {
			c->bad_frame |= strcmp(c->size_line, "\r\n") != 0;
			c->size_line[0] = '\0';
			c->framing = IN_SIZE;
		}
		return 1;
	case IN_LAST:
		if (c->chunk > 0) { /* a plain body, of an error */
			(void)hf_reader_data(
			    &c->reader, (struct hf_str){ s.p, n });
			c->chunk -= n;
			if (c->chunk == 0)
				c->framing = AT_END;
			return n;
		}
		if (add_to_line(c, s.p[0])) {
			c->bad_frame |= strcmp(c->size_line, "\r\n") != 0;
			c->framing = AT_END;
		}
		return 1;
	case AT_END:
		c->bad_frame = true; /* nobody asked for more */
		return s.size;
	}
	return s.size;
}

static bool
right_so_far(const struct caller *c)
{
	return !c->bad_frame && c->reader.text.size <= c->want.size &&
	    (c->reader.text.size == 0 ||
		memcmp(c->reader.text.data, c->want.data,
		    c->reader.text.size) == 0);
}

/* Judge what there is of an answer; true: the turn is over. */
static bool
judge(struct caller *c)
{
	const struct hf_answer_reader *r = &c->reader;

	if (!right_so_far(c))
		over(c, FATE_CORRUPT,
		    c->bad_frame ? "framing" : r->text.data + 0);
	else if (c->framing != AT_END)
		return false;
	else if (c->status != 200)
		over(c, FATE_ERROR, c->head.data);
	else if (r->failed)
		over(c, FATE_ERROR, r->error);
	else if (!r->done || !r->finished || r->text.size < c->want.size)
		over(c, FATE_TRUNCATED, "the end came too early");
	else
		over(c, FATE_EXACT, "");
	return true;
}

static void
read_on(struct caller *c, int64_t now)
{
	char b[16384];
	ssize_t n =
	    recv(c->fd, b, c->slow ? SLOW_BYTES : sizeof(b), MSG_DONTWAIT);
	size_t at = 0;

	c->next_read_us = now + SLOW_US;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		over(c, FATE_BROKEN,
		    n == 0 ? "end of connection" : strerror(errno));
		return;
	}
	c->moved_us = now;
	while (at < (size_t)n && !c->bad_frame)
		at += take_some(c, (struct hf_str){ b + at, (size_t)n - at });
	(void)judge(c);
}

static void
write_on(struct caller *c)
{
	ssize_t n = send(c->fd, c->request.data + c->request_at,
	    c->request.size - c->request_at, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		over(c, FATE_BROKEN, strerror(errno));
		return;
	}
	if (n > 0)
		c->request_at += (size_t)n;
	c->sent = c->request_at == c->request.size;
}

/* --- the game
 * ------------------------------------------------------------------- */

static void
start_caller(struct caller *c)
{
	const struct campaign_options *o = play.o;

	c->number = ++play.r->connections;
	c->slow = o->slow > 0 && c->number % o->slow == 0;
	c->turn = 0;
	c->turns = 1 + hf_rng_below(&play.rng, MOST_TURNS);
	c->next_read_us = 0;
	ask(c);
	if (!dial(c))
		over(c, FATE_BROKEN, strerror(errno));
}

static int
wait_and_serve(struct pollfd *p)
{
	const struct campaign_options *o = play.o;
	int64_t now = hf_now_us(), until = now + 100 * MS;
	unsigned busy = 0;

	for (unsigned i = 0; i < o->connections; i++) {
		struct caller *c = &play.caller[i];
		bool rests = c->slow && c->next_read_us > now;

		p[i] = (struct pollfd){ .fd = c->fd };
		if (c->fd < 0)
			continue;
		busy++;
		p[i].events =
		    (short)((c->sent ? 0 : POLLOUT) | (rests ? 0 : POLLIN));
		if (rests && c->next_read_us < until)
			until = c->next_read_us;
	}
	if (busy == 0)
		return 0;
	now = until - now;
	if (poll(p, o->connections, now <= 0 ? 0 : (int)((now + 999) / MS)) < 0)
		return 1;
	now = hf_now_us();
	for (unsigned i = 0; i < o->connections; i++) {
		struct caller *c = &play.caller[i];

		if (c->fd < 0)
			continue;
		if ((p[i].revents & POLLOUT) != 0)
			write_on(c);
		else if (p[i].revents != 0)
			read_on(c, now);
		if (c->fd >= 0 && now - c->moved_us > PATIENCE_US)
			over(c, FATE_BROKEN, "nothing comes any more");
	}
	return 1;
}

static bool
wants_more(void)
{
	return play.begun < play.o->turns ||
	    atomic_load(play.kills) < play.o->kills;
}

void
campaign_play(const struct campaign_options *o,
    const _Atomic unsigned long *kills, struct campaign_result *r)
{
	struct pollfd *p = hf_xcalloc(o->connections, sizeof(*p));
	int64_t began = hf_now_us();

	memset(r, 0, sizeof(*r));
	play.o = o;
	play.r = r;
	play.kills = kills;
	play.out = o->out == NULL ? NULL : fopen(o->out, "we");
	hf_rng_init(&play.rng, o->seed);
	play.caller = hf_xcalloc(o->connections, sizeof(*play.caller));
	for (unsigned i = 0; i < o->connections; i++) {
		play.caller[i].fd = -1;
		hf_buf_init(&play.caller[i].want, HF_BUF_NOCAP);
		hf_buf_init(&play.caller[i].request, HF_BUF_NOCAP);
		hf_buf_init(&play.caller[i].head, HF_BUF_NOCAP);
	}
	do {
		for (unsigned i = 0; i < o->connections && wants_more(); i++)
			if (play.caller[i].fd < 0)
				start_caller(&play.caller[i]);
	} while (wait_and_serve(p) > 0 || wants_more());
	r->kills = atomic_load(kills);
	r->seconds = (double)(hf_now_us() - began) / 1e6;
	for (unsigned i = 0; i < o->connections; i++) {
		hf_buf_free(&play.caller[i].want);
		hf_buf_free(&play.caller[i].request);
		hf_buf_free(&play.caller[i].head);
		hf_reader_free(&play.caller[i].reader);
	}
	free(play.caller);
	free(p);
	if (play.out != NULL)
		fclose(play.out);
}
