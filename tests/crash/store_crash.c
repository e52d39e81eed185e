/*
 * Real deaths of processes that use the store, for the scripts beside it.
 *
 *   store_crash faults              0 if fault points are compiled in
 *   store_crash migrate DIR         open DIR/db as a keeper does
 *   store_crash kill DIR ROUNDS SEED
 *       Three processes write turns and say what was acknowledged to them;
 *       one after the other is killed, at random or at a fault point, and
 *       replaced.  Then: everything acknowledged is there, nothing is there
 *       in part, and what each fault point promises holds.
 *   store_crash write DIR SLOT SHM OUT LIFE   (one of those)
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "store/inspect.h"
#include "store/keep.h"
#include "store/store.h"

#define WRITERS 3
#define SESSIONS 4 /* per writer */
#define TEXT_SIZE 40
#define DEADLINE_MS 30000

static const char *program;

static void
die(const char *what, const struct hf_error *e)
{
	fprintf(
	    stderr, "store_crash: %s: %s\n", what, e == NULL ? "" : e->text);
	exit(1);
}

static struct hf_store_conf
make_conf(const char *dir, struct hf_shm *shm)
{
	static char db[512], key[512];

	snprintf(db, sizeof(db), "%s/db", dir);
	snprintf(key, sizeof(key), "%s/db.key", dir);
	return (struct hf_store_conf){
		.path = db, .key_file = key, .sync_full = true, .shm = shm
	};
}

static int
make_body(void *arg, struct hf_str text, struct hf_str refusal,
    struct hf_buf *body, struct hf_buf *norm)
{
	(void)arg;
	for (int i = 0; i < 2; i++) {
		struct hf_buf *b = i == 0 ? body : norm;

		if (b == NULL)
			continue;
		hf_buf_putstr(b, text);
		hf_buf_putstr(b, refusal);
	}
	return 0;
}

/* --- migrate ------------------------------------------------------------ */

static int
run_migrate(const char *dir)
{
	struct hf_store_conf c;
	struct hf_keep *k;
	struct hf_shm shm;
	struct hf_error e;

	if (hf_shm_create(&shm, NULL, &e) < 0)
		die("scoreboard", &e);
	c = make_conf(dir, &shm);
	if (hf_keep_open(&k, &c, &e) < 0)
		die("keeper", &e);
	hf_keep_close(k);
	hf_shm_unmap(&shm);
	return 0;
}

/* --- write -------------------------------------------------------------- */

struct waiting {
	bool done;
	int rc;
	struct hf_error e;
	struct hf_begun b;
};

static void
on_begun(void *arg, int rc, const struct hf_error *e, const struct hf_begun *b)
{
	struct waiting *w = arg;

	w->done = true;
	w->rc = rc;
	w->b = *b;
	if (rc < 0)
		w->e = *e;
}

static void
on_done(void *arg, int rc, const struct hf_error *e)
{
	struct waiting *w = arg;

	w->done = true;
	w->rc = rc;
	if (rc < 0)
		w->e = *e;
}

static void
wait_for(struct hf_store *st, struct waiting *w, const char *what)
{
	struct pollfd p = { .fd = hf_store_event_fd(st), .events = POLLIN };

	while (!w->done) {
		if (poll(&p, 1, DEADLINE_MS) != 1)
			die(what, NULL);
		hf_store_dispatch(st);
	}
	if (w->rc < 0)
		die(what, &w->e);
}

static void
say(int out, char kind, const char *name, int64_t seq, const char *text)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "%c %s %lld %s\n", kind, name,
	    (long long)seq, text);

	if (write(out, line, (size_t)n) != n)
		exit(1);
}

static struct hf_item
make_item(const struct hf_session_key *k, enum hf_role role, const char *text)
{
	struct hf_item it = { .kind = HF_ITEM_MESSAGE,
		.role = role,
		.origin = HF_ORIGIN_CLIENT,
		.body = hf_str(text) };

	hf_store_digest(k, it.body, it.digest);
	return it;
}

/* T1; a dead predecessor's turn may be settled first, which moves the head. */
static struct hf_begun
begin(struct hf_store *st, const char *name, const char *text,
    struct hf_begin *b, struct hf_head *h)
{
	struct hf_item in;
	struct hf_error e;

	for (;;) {
		struct waiting w = { 0 };

		if (hf_store_head(st, "t", hf_str(name), h, &e) < 0)
			die("head", &e);
		in = make_item(&h->key, HF_ROLE_USER, text);
		*b = (struct hf_begin){ .tenant = "t",
			.name = hf_str(name),
			.session_found = h->found,
			.session_row = h->session_row,
			.rev = h->rev,
			.key = h->key,
			.parent_row = h->head_turn_row,
			.item = &in,
			.n_item = 1,
			.view_items = h->view_items + 1,
			.target = HF_STR("a/model") };
		hf_id_make(&b->session, "ses_");
		hf_id_make(&b->turn, "turn_");
		hf_store_chain(&h->key, h->view, in.digest, b->view);
		if (hf_store_begin(st, b, on_begun, &w, &e) < 0)
			die("begin", &e);
		wait_for(st, &w, "begin");
		if (w.b.result == HF_BEGIN_OPEN)
			return w.b;
		if (w.b.result != HF_BEGIN_MOVED)
			die("begin: queued behind nobody", NULL);
	}
}

static void
one_turn(struct hf_store *st, int out, const char *name, const char *text,
    bool with_part)
{
	char answer[TEXT_SIZE + 2];
	struct waiting w = { 0 };
	struct hf_begun begun;
	struct hf_begin b;
	struct hf_head h;
	struct hf_item item;
	struct hf_finish f;
	struct hf_error e;

	say(out, 'I', name, 0, text);
	begun = begin(st, name, text, &b, &h);
	say(out, 'B', name, begun.seq, text);
	if (with_part) {
		if (hf_store_part(st, begun.session_row, begun.turn_row,
			begun.fence, 1, HF_STR("part"), on_done, &w, &e) < 0)
			die("part", &e);
		wait_for(st, &w, "part");
		w = (struct waiting){ 0 };
	}
	snprintf(answer, sizeof(answer), "A%s", text);
	item = make_item(&h.key, HF_ROLE_ASSISTANT, answer);
	f = (struct hf_finish){ .session_row = begun.session_row,
		.turn_row = begun.turn_row,
		.fence = begun.fence,
		.state = HF_TURN_COMPLETE,
		.item = &item,
		.n_item = 1,
		.view_items = b.view_items + 1,
		.attempt = { .n = 1, .cls = "ok" },
		.status = 200 };
	hf_store_chain(&h.key, b.view, item.digest, f.view);
	if (hf_store_finish(st, &f, on_done, &w, &e) < 0)
		die("finish", &e);
	wait_for(st, &w, "finish");
	say(out, 'F', name, begun.seq, text);
}

static HF_NORETURN void
run_write(const char *dir, unsigned slot, int shm_fd, int out, int life)
{
	char name[16], text[TEXT_SIZE];
	struct hf_store_conf c;
	struct hf_store *st;
	struct hf_shm shm;
	struct hf_error e;

	if (hf_shm_map(&shm, shm_fd, slot, &e) < 0)
		die("scoreboard", &e);
	/* The descriptors of the real process tree are not there. */
	for (unsigned i = 0; i < HF_SHM_SLOTS; i++)
		shm.wake_fd[i] = -1;
	c = make_conf(dir, &shm);
	if (hf_store_open(&st, &c, &e) < 0)
		die("store", &e);
	hf_store_set_make_body(st, make_body, NULL);
	for (int n = 0;; n++) {
		snprintf(name, sizeof(name), "w%u-%d", slot, n % SESSIONS);
		snprintf(text, sizeof(text), "%u.%d.%d", slot, life, n);
		one_turn(st, out, name, text, n % 3 == 0);
	}
}

/* --- kill --------------------------------------------------------------- */

struct lines {
	char (*line)[64];
	size_t n, cap;
};

static void
add_line(struct lines *l, const char *text)
{
	if (l->n == l->cap) {
		l->cap = l->cap == 0 ? 1024 : l->cap * 2;
		l->line = realloc(l->line, l->cap * sizeof(*l->line));
		HF_CHECK(l->line != NULL);
	}
	snprintf(l->line[l->n++], sizeof(*l->line), "%s", text);
}

static int
compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static bool
has_line(const struct lines *l, const char *text)
{
	char key[64];

	snprintf(key, sizeof(key), "%s", text);
	return bsearch(key, l->line, l->n, sizeof(*l->line), compare) != NULL;
}

/* Where a writer is told to die, and what must be on disk then of the turn it
 * was at: its input, its answer. */
static const struct {
	const char *point; /* NULL: killed at random */
	bool input, answer;
} deaths[] = {
	{ NULL, false, false },
	{ "store.t1.before_commit", false, false },
	{ NULL, false, false },
	{ "store.t1.after_commit", true, false },
	{ NULL, false, false },
	{ "store.t2.before_commit", true, false },
	{ NULL, false, false },
	{ "store.t2.after_commit", true, true },
};

struct writer {
	pid_t pid;
	int fd;		       /* of what it says */
	size_t death;	       /* row of deaths[] */
	char rest[128];	       /* half a line */
	char doing[TEXT_SIZE]; /* the turn it is at */
};

static struct writer writers[WRITERS];
static struct lines acked, present, absent;
static struct hf_shm shm;
static int shm_fd;
static uint64_t next_inc = (uint64_t)1 << 32;

static void
spawn(unsigned i, const char *dir, size_t death, unsigned at)
{
	static int life;
	char slot[16], shm_text[16], out[16], lives[16], fault[64], asan[512];
	char *argv[] = { (char *)(uintptr_t)program, (char[]){ "write" },
		(char *)(uintptr_t)dir, slot, shm_text, out, lives, NULL };
	char *envp[] = { fault, asan, NULL };
	struct writer *w = &writers[i];
	const char *options = getenv("ASAN_OPTIONS");
	int fds[2];

	HF_CHECK(pipe(fds) == 0);
	HF_CHECK(fcntl(fds[0], F_SETFD, FD_CLOEXEC) == 0);
	HF_CHECK(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
	*w = (struct writer){ .fd = fds[0], .death = death };
	snprintf(slot, sizeof(slot), "%u", i + 1);
	snprintf(shm_text, sizeof(shm_text), "%d", shm_fd);
	snprintf(out, sizeof(out), "%d", fds[1]);
	snprintf(lives, sizeof(lives), "%d", ++life);
	snprintf(fault, sizeof(fault), "HF_FAULT=%s=kill@%u",
	    deaths[death].point == NULL ? "none" : deaths[death].point, at);
	snprintf(asan, sizeof(asan), "ASAN_OPTIONS=%s",
	    options == NULL ? "" : options);
	atomic_store(&shm.h->slot[i + 1].inc, ++next_inc);
	w->pid = fork();
	HF_CHECK(w->pid >= 0);
	if (w->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execve(program, argv, envp);
		_exit(127);
	}
	close(fds[1]);
}

static void
heard_line(struct writer *w, const char *line)
{
	const char *text = strrchr(line, ' ');

	HF_CHECK(text != NULL);
	if (line[0] == 'I')
		snprintf(w->doing, sizeof(w->doing), "%s", text + 1);
	else
		add_line(&acked, line);
}

/* Read what a writer says; false at its end. */
static bool
listen_to(struct writer *w)
{
	char buf[4096], *nl, *p;
	size_t have = strlen(w->rest);
	ssize_t n;

	memcpy(buf, w->rest, have);
	n = read(w->fd, buf + have, sizeof(buf) - have - 1);
	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	buf[have + (size_t)n] = '\0';
	for (p = buf; (nl = strchr(p, '\n')) != NULL; p = nl + 1) {
		*nl = '\0';
		heard_line(w, p);
	}
	snprintf(w->rest, sizeof(w->rest), "%.*s", (int)sizeof(w->rest) - 1, p);
	return true;
}

/* Listen to all for 'ms', or until writer 'i' is gone (then true). */
static bool
listen_for(unsigned i, int ms)
{
	int64_t until = hf_now_us() + (int64_t)ms * 1000;
	struct pollfd p[WRITERS];
	bool gone = writers[i].fd < 0; /* its end was seen before */

	do {
		int64_t left = (until - hf_now_us()) / 1000;

		for (unsigned k = 0; k < WRITERS; k++)
			p[k] = (struct pollfd){ .fd = writers[k].fd,
				.events = POLLIN };
		if (poll(p, WRITERS, left < 0 ? 0 : (int)left) < 0)
			break;
		for (unsigned k = 0; k < WRITERS; k++) {
			bool end = p[k].revents != 0 && !listen_to(&writers[k]);

			gone = gone || (k == i && end);
			if (end && k != i &&
			    deaths[writers[k].death].point == NULL)
				die("a writer ended by itself", NULL);
			if (end)
				p[k].fd = writers[k].fd = -writers[k].fd;
		}
	} while (!gone && hf_now_us() < until);
	return gone;
}

/* The end of writer 'i': what it must have left goes to the lists. */
static void
bury(unsigned i)
{
	struct writer *w = &writers[i];
	char in[64], out[64];
	int status;

	HF_CHECK(waitpid(w->pid, &status, 0) == w->pid);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		die("a writer did not die of a kill", NULL);
	if (w->fd < 0)
		w->fd = -w->fd;
	while (listen_to(w))
		continue;
	close(w->fd);
	hf_shm_retire(&shm, i + 1);
	if (deaths[w->death].point == NULL)
		return;
	snprintf(in, sizeof(in), "in %s", w->doing);
	snprintf(out, sizeof(out), "out A%s", w->doing);
	add_line(deaths[w->death].input ? &present : &absent, in);
	add_line(deaths[w->death].answer ? &present : &absent, out);
}

/* --- what is on disk ------------------------------------------------------ */

struct survey {
	struct hf_inspect *in;
	struct hf_store *st;
	char name[16];
	struct lines found; /* sorted at the end */
	int64_t turns, sessions;
};

static int
on_turn(void *arg, const struct hf_turn_info *t)
{
	struct survey *s = arg;

	s->turns++;
	if (strcmp(t->state, "complete") != 0 &&
	    strcmp(t->state, "interrupted") != 0)
		die("a turn is in no final state", NULL);
	return 0;
}

static int
on_item(void *arg, const struct hf_item_info *i)
{
	struct survey *s = arg;
	char line[64];

	snprintf(line, sizeof(line), "%s %.*s", i->output ? "out" : "in",
	    HF_STR_ARG(i->body));
	add_line(&s->found, line);
	if (i->output && (i->body.size == 0 || i->body.p[0] != 'A'))
		return 0; /* an interrupted turn's text */
	snprintf(line, sizeof(line), "%c %s %lld %.*s", i->output ? 'F' : 'B',
	    s->name, (long long)i->turn_seq, (int)(i->body.size - i->output),
	    i->body.p + i->output);
	add_line(&s->found, line);
	return 0;
}

static int
on_session(void *arg, const struct hf_session_info *i)
{
	struct survey *s = arg;
	struct hf_history hist;
	struct hf_arena a;
	struct hf_error e;
	struct hf_head h;

	s->sessions++;
	snprintf(s->name, sizeof(s->name), "%s", i->name);
	if (hf_inspect_turns(
		s->in, &i->id, &(struct hf_cursor){ 0 }, on_turn, s, &e) < 0 ||
	    hf_inspect_items(
		s->in, &i->id, &(struct hf_cursor){ 0 }, on_item, s, &e) < 0)
		die("inspect", &e);
	/* Counts and chains over the whole path. */
	hf_arena_init(&a, 0);
	if (hf_store_head(s->st, "t", hf_str(i->name), &h, &e) < 0 ||
	    hf_store_history(
		s->st, h.session_row, h.head_turn_row, &a, &hist, &e) < 0)
		die("history", &e);
	if ((int64_t)hist.n != h.view_items)
		die("history: not as long as the view", NULL);
	hf_arena_free(&a);
	return 0;
}

static void
sort_lines(struct lines *l)
{
	if (l->n > 0)
		qsort(l->line, l->n, sizeof(*l->line), compare);
}

static bool
expect_line(const struct lines *found, const char *text, bool there)
{
	bool ok = has_line(found, text) == there;

	if (!ok)
		fprintf(stderr, "store_crash: %s: %s\n",
		    there ? "lost" : "should not be there", text);
	return ok;
}

static void
judge(const struct lines *found, unsigned rounds, int64_t turns)
{
	size_t lost = 0, ghosts = 0, twice = 0;

	for (size_t i = 0; i < acked.n; i++)
		lost += !expect_line(found, acked.line[i], true);
	for (size_t i = 0; i < present.n; i++)
		lost += !expect_line(found, present.line[i], true);
	for (size_t i = 0; i < absent.n; i++)
		ghosts += !expect_line(found, absent.line[i], false);
	for (size_t i = 1; i < found->n; i++)
		twice += found->line[i][0] != 'o' &&
		    strcmp(found->line[i], found->line[i - 1]) == 0;
	printf("kills=%u turns=%lld acknowledged=%zu lost=%zu ghosts=%zu "
	       "twice=%zu\n",
	    rounds, (long long)turns, acked.n, lost, ghosts, twice);
	if (lost + ghosts + twice > 0 || acked.n < rounds)
		exit(1);
}

static void
survey(const struct hf_store_conf *c, unsigned rounds)
{
	struct hf_session_filter all = { .limit = 1000 };
	struct survey s = { 0 };
	struct hf_error e;

	if (hf_inspect_open(&s.in, c, &e) < 0 ||
	    hf_store_open(&s.st, c, &e) < 0 ||
	    hf_inspect_sessions(
		s.in, &all, &(struct hf_cursor){ 0 }, on_session, &s, &e) < 0)
		die("survey", &e);
	hf_inspect_close(s.in);
	hf_store_close(s.st);
	sort_lines(&s.found);
	judge(&s.found, rounds, s.turns);
	free(s.found.line);
}

static void
start_keeper(struct hf_keep **k, const struct hf_store_conf *c)
{
	struct hf_recovered r;
	struct hf_error e;
	uint64_t boot;

	if (hf_keep_open(k, c, &e) < 0 ||
	    hf_keep_recover(*k, make_body, NULL, &boot, &r, &e) < 0)
		die("keeper", &e);
}

/* One death and its successor. */
static void
one_round(unsigned n, const char *dir, struct hf_keep *k)
{
	unsigned i = (unsigned)random() % WRITERS;
	bool own = deaths[writers[i].death].point != NULL;
	size_t next = n % hf_countof(deaths);
	struct hf_recovered r;
	struct hf_error e;

	if (!listen_for(i, own ? DEADLINE_MS : (int)(random() % 20)) && own)
		die("a fault point was not reached", NULL);
	if (!own)
		kill(writers[i].pid, SIGKILL);
	bury(i);
	/* The keeper settles, or the next T1 does; not where that T1 must be
	 * the one that is killed. */
	if ((n / hf_countof(deaths) % 2 == 0 || deaths[next].input) &&
	    hf_keep_reap(k, 0, 0, make_body, NULL, &r, &e) < 0)
		die("reap", &e);
#ifndef HF_FAULTS
	next = 0;
#endif
	spawn(i, dir, next, 1 + (unsigned)random() % 8);
}

static int
run_kill(const char *dir, unsigned rounds, unsigned seed)
{
	struct hf_store_conf c;
	struct hf_keep *k;
	struct hf_error e;

	srandom(seed);
	if (hf_shm_create(&shm, &shm_fd, &e) < 0)
		die("scoreboard", &e);
	HF_CHECK(fcntl(shm_fd, F_SETFD, 0) == 0);
	atomic_store(&shm.h->slot[0].inc, ++next_inc);
	c = make_conf(dir, &shm);
	start_keeper(&k, &c);
	for (unsigned i = 0; i < WRITERS; i++)
		spawn(i, dir, 0, 1);
	for (unsigned n = 0; n < rounds; n++)
		one_round(n, dir, k);
	for (unsigned i = 0; i < WRITERS; i++) {
		kill(writers[i].pid, SIGKILL);
		writers[i].death = 0;
		bury(i);
	}
	/* A commit that was cut between its last byte and its announcement in
	 * shared memory is seen by nobody until all have closed the database
	 * and it is opened again: so look as a new boot does. */
	hf_keep_close(k);
	start_keeper(&k, &c);
	hf_keep_close(k);
	survey(&c, rounds);
	hf_shm_unmap(&shm);
	close(shm_fd);
	free(acked.line);
	free(present.line);
	free(absent.line);
	return 0;
}

int
main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	program = argv[0];
	if (strcmp(verb, "faults") == 0) {
#ifdef HF_FAULTS
		return 0;
#else
		return 1;
#endif
	}
	if (strcmp(verb, "migrate") == 0 && argc == 3)
		return run_migrate(argv[2]);
	if (strcmp(verb, "write") == 0 && argc == 7)
		run_write(argv[2], (unsigned)atoi(argv[3]), atoi(argv[4]),
		    atoi(argv[5]), atoi(argv[6]));
	if (strcmp(verb, "kill") == 0 && argc == 5)
		return run_kill(
		    argv[2], (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
	fprintf(stderr,
	    "usage: store_crash faults | migrate DIR | "
	    "kill DIR ROUNDS SEED\n");
	return 2;
}
