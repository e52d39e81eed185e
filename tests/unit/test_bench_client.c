/*
 * The callers when connections break: what is sent again, how often, with
 * what, and that each is counted.  Providers and a server in child processes.
 */
#include <config.h>

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "bench/client.h"
#include "bench/judge.h"
#include "bench/killer.h"
#include "bench/providers.h"
#include "bench/server.h"

#define CONVS 40 /* of the suite are played */

/* --- plays against a provider that fails ---------------------------------- */

static void
serve(const struct hf_suite *suite, const char *faults, const char *log,
    int ready)
{
	struct hf_manifest m;
	struct hf_providers_conf conf = { .base = event_base_new(),
		.suite = suite,
		.manifest = &m,
		.log = fopen(log, "we") };
	struct hf_providers *p = hf_providers_new(&conf);
	json_t *root = json_loads(faults, 0, NULL);
	struct hf_error e;
	unsigned port;

	hf_manifest_init(&m);
	if (hf_manifest_parse(&m, root, &e) == 0 &&
	    hf_providers_listen(p, "primary=127.0.0.1:0", &port, &e) == 0 &&
	    write(ready, &port, sizeof(port)) == sizeof(port))
		event_base_dispatch(conf.base);
	_exit(1);
}

/* Reads the child's port; "http://127.0.0.1:PORT/v1" to 'url'. */
static void
await(int fds[2], char *url, size_t size)
{
	unsigned port;

	close(fds[1]);
	assert_int_equal(read(fds[0], &port, sizeof(port)), sizeof(port));
	close(fds[0]);
	snprintf(url, size, "http://127.0.0.1:%u/v1", port);
}

static void
end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static unsigned all_convs;

struct outcome {
	unsigned turns;
	struct hf_counts n;
	unsigned preserved;
	unsigned ticks;
};

static void
count_tick(void *arg)
{
	(*(unsigned *)arg)++;
}

/* The first conversations of the suite; '*turns': of all of them. */
static struct hf_suite *
some(unsigned *turns)
{
	struct hf_suite *s = hf_suite_make("paper", 42, 0);

	*turns = 0;
	for (unsigned i = 0; i < CONVS; i++)
		*turns += s->conv[i].n_user;
	all_convs = s->n_conv;
	s->n_conv = CONVS;
	return s;
}

static void
some_free(struct hf_suite *s)
{
	s->n_conv = all_convs;
	hf_suite_free(s);
}

static struct outcome
play(const char *faults, bool stream, unsigned retries)
{
	char log[] = "/tmp/hf-test-client-XXXXXX", url[64];
	struct outcome o = { 0 };
	struct hf_play_conf c = { .n_system = 1,
		.n_run = 1,
		.concurrency = CONVS,
		.api_key = "k",
		.full_history = true,
		.stream = stream,
		.local = true,
		.retries = retries,
		.timeout_ms = 20000,
		.progress = HF_PROGRESS_OFF,
		.tick = count_tick,
		.tick_arg = &o.ticks,
		.tick_ms = 1 };
	struct hf_suite *suite = some(&o.turns);
	struct hf_plays plays;
	json_t *examples = json_array();
	struct hf_error e;
	int fds[2], fd = mkstemp(log);
	pid_t pid;

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(pipe(fds), 0);
	c.suite = suite;
	c.system[0] = (struct hf_play_system){ "direct", "m", false, true };
	pid = fork();
	if (pid == 0)
		serve(suite, faults, log, fds[1]);
	await(fds, url, sizeof(url));
	c.url = url;
	assert_int_equal(hf_play_all(&c, &plays, &e), 0);
	end(pid);
	hf_judge_answers(&c, &plays, &o.n);
	assert_int_equal(hf_judge_log(&c, &plays, log, &o.n, examples, &e), 0);
	unlink(log);
	for (unsigned i = 0; i < plays.n_play; i++)
		o.preserved += plays.play[i].preserved;
	json_decref(examples);
	hf_plays_free(&plays);
	some_free(suite);
	return o;
}

/* Each way to lose a connection, on the first try of each turn: one retry for
 * each, and every one of them counted (no request is repeated in silence,
 * though most of these connections were used before). */
static void
once(void **state)
{
	static const char *const fault[] = { "close", "reset", "cut",
		"cut_reset" };
	char faults[160];

	(void)state;
	for (unsigned i = 0; i < 2 * hf_countof(fault); i++) {
		struct outcome o;

		snprintf(faults, sizeof(faults),
		    "{\"faults\":[{\"attempt\":"
		    "1,\"fault\":\"%s\",\"chunks\":1}]}",
		    fault[i / 2]);
		o = play(faults, i % 2 != 0, 3);
		assert_int_equal(o.preserved, CONVS);
		assert_int_equal(o.n.errors, 0);
		assert_int_equal(o.n.broken, o.turns);
		assert_int_equal(o.n.retries, o.turns);
		assert_int_equal(o.n.retried, o.turns);
		assert_int_equal(o.n.most_retries, 1);
		assert_int_equal(o.n.payloads, 2 * o.turns);
		assert_int_equal(o.n.bad_payloads, 0);
		assert_int_equal(o.n.doubled, 0);
		assert_true(o.ticks > 0);
	}
}

/* As often as was asked for, and not once more. */
static void
never(void **state)
{
	struct outcome o =
	    play("{\"faults\":[{\"fault\":\"close\"}]}", false, 2);

	(void)state;
	assert_int_equal(o.preserved, 0);
	assert_int_equal(o.n.errors, CONVS);
	assert_int_equal(o.n.broken, 3 * CONVS);
	assert_int_equal(o.n.retries, 2 * CONVS);
	assert_int_equal(o.n.retried, CONVS);
	assert_int_equal(o.n.most_retries, 2);
	assert_int_equal(o.n.payloads, 3 * CONVS);
}

/* An answer, though a bad one, is not a broken connection. */
static void
answered(void **state)
{
	struct outcome o =
	    play("{\"faults\":[{\"fault\":\"http_503\"}]}", false, 5);

	(void)state;
	assert_int_equal(o.n.errors, CONVS);
	assert_int_equal(o.n.broken, 0);
	assert_int_equal(o.n.retries, 0);
	assert_int_equal(o.n.payloads, CONVS);
}

static void
refused(void **state)
{
	struct hf_play_conf c = { .n_system = 1,
		.n_run = 1,
		.concurrency = CONVS,
		.local = true,
		.retries = 1,
		.timeout_ms = 20000,
		.progress = HF_PROGRESS_OFF };
	unsigned turns;
	struct hf_suite *suite = some(&turns);
	struct hf_plays plays;
	struct hf_counts n = { 0 };
	struct hf_error e;

	(void)state;
	c.suite = suite;
	c.system[0] = (struct hf_play_system){ "direct", "m", false, true };
	c.url = "http://127.0.0.1:1/v1"; /* tcpmux: nobody there */
	assert_int_equal(hf_play_all(&c, &plays, &e), 0);
	hf_judge_answers(&c, &plays, &n);
	assert_int_equal(n.errors, CONVS);
	assert_int_equal(n.broken, 2 * CONVS);
	assert_int_equal(n.retries, CONVS);
	hf_plays_free(&plays);
	some_free(suite);
}

/* --- what a retry looks like ------------------------------------------------
 */

struct record {
	FILE *f;
	unsigned n;
};

/* Notes who asked for what; hangs up on every second request. */
static void
on_request(void *arg, struct hf_sreq *rq)
{
	struct record *r = arg;
	struct hf_str s = hf_sreq_header(rq, "X-Holdfast-Session");
	struct hf_str key = hf_sreq_header(rq, "Idempotency-Key");

	fprintf(r->f, "%.*s|%.*s|%.*s\n", (int)s.size, s.p, (int)key.size,
	    key.p == NULL ? "" : key.p, (int)rq->body.size, rq->body.p);
	fflush(r->f);
	if (++r->n % 2 == 1) {
		hf_sreq_close(rq, false);
		return;
	}
	hf_sreq_reply(rq, 200, "", "application/json",
	    HF_STR("{\"choices\":[{\"message\":{\"content\":\"a\"},"
		   "\"finish_reason\":\"stop\"}]}"));
}

static void
record(const char *path, int ready)
{
	struct event_base *base = event_base_new();
	struct record r = { .f = fopen(path, "we") };
	struct hf_server *s;
	struct hf_error e;
	unsigned port;

	if (r.f == NULL ||
	    hf_server_new(&s, base, "127.0.0.1:0", on_request, &r, &e) != 0)
		_exit(1);
	port = hf_server_port(s);
	if (write(ready, &port, sizeof(port)) == sizeof(port))
		event_base_dispatch(base);
	_exit(1);
}

static void
on_called(void *arg, const struct hf_call_result *r)
{
	unsigned *left = arg;

	assert_int_equal(r->status, 200);
	assert_int_equal(r->retries, 1);
	assert_int_equal(r->broken, 1);
	assert_string_equal(r->answer, "a");
	(*left)--;
}

static void
same_again(void **state)
{
	char path[] = "/tmp/hf-test-record-XXXXXX", url[64], line[128];
	static const char *const want[] = { "s1|k1|{\"n\":1}\n",
		"s1|k1|{\"n\":1}\n", "s1||{\"n\":2}\n", "s1||{\"n\":2}\n" };
	struct hf_client_conf conf = {
		.url = url, .local = true, .timeout_ms = 20000, .retries = 5
	};
	struct hf_client *c;
	struct hf_error e;
	unsigned left = 2, i = 0;
	int fds[2], fd = mkstemp(path);
	pid_t pid;
	FILE *f;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0)
		record(path, fds[1]);
	await(fds, url, sizeof(url));
	c = hf_client_new(&conf);
	hf_client_call(c,
	    &(struct hf_call_request){ .session = "s1",
		.key = "k1",
		.body = HF_STR("{\"n\":1}"),
		.fn = on_called,
		.arg = &left });
	assert_int_equal(hf_client_run(c, &e), 0);
	hf_client_call(c,
	    &(struct hf_call_request){ .session = "s1",
		.body = HF_STR("{\"n\":2}"),
		.fn = on_called,
		.arg = &left });
	assert_int_equal(hf_client_run(c, &e), 0);
	hf_client_free(c);
	end(pid);
	assert_int_equal(left, 0);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		assert_true(i < hf_countof(want));
		assert_string_equal(line, want[i++]);
	}
	assert_int_equal(i, hf_countof(want));
	fclose(f);
	unlink(path);
}

/* --- the killer --------------------------------------------------------------
 */

/* A child of ours that waits, under this command line. */
static pid_t
child(const char *role)
{
	char script[] = "echo; read x", name[] = "sh", c[] = "-c";
	char opt[] = "--role", *value = hf_xstrdup(role), text[1];
	char *argv[] = { name, c, script, opt, value, NULL };
	int out[2], in[2];
	pid_t pid;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		dup2(in[0], 0);
		if (fcntl(in[1], F_SETFD, 0) == 0) /* never at its end */
			execv("/bin/sh", argv);
		_exit(127);
	}
	close(out[1]);
	close(in[0]);
	assert_int_equal(read(out[0], text, 1), 1); /* after exec */
	close(out[0]);
	close(in[1]);
	free(value);
	return pid;
}

static void
kills(void **state)
{
	pid_t keeper = child("keeper"), one = child("worker");
	pid_t two = child("worker"), got;
	struct hf_killer k;
	int status;

	(void)state;
	hf_killer_init(&k, getppid(), 1); /* not their parent */
	hf_killer_kill(&k);
	assert_int_equal(waitpid(-1, &status, WNOHANG), 0);
	hf_killer_init(&k, getpid(), 1);
	for (int i = 0; i < 2; i++) {
		hf_killer_kill(&k);
		got = waitpid(-1, &status, 0);
		assert_true(got == one || got == two);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGKILL);
	}
	assert_int_equal(k.kills, 2);
	hf_killer_kill(&k);
	assert_int_equal(k.kills, 2);
	assert_int_equal(waitpid(keeper, &status, WNOHANG), 0);
	end(keeper);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(once),
		cmocka_unit_test(never),
		cmocka_unit_test(answered),
		cmocka_unit_test(refused),
		cmocka_unit_test(same_again),
		cmocka_unit_test(kills),
	};

	return cmocka_run_group_tests_name("bench client", tests, NULL, NULL);
}
