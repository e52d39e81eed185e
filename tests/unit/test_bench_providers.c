/*
 * The faithful providers over real sockets: that each fault is what it says
 * on the wire, that a connection serves many requests, that payloads are
 * logged.  The providers run in a child process.
 */
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/dialect.h"
#include "bench/providers.h"

static const char manifest_text[] =
    "{\"faults\":["
    "{\"contains\":\"(silence)\",\"fault\":\"silence\"},"
    "{\"contains\":\"(headers)\",\"fault\":\"headers\"},"
    "{\"contains\":\"(close)\",\"fault\":\"close\"},"
    "{\"contains\":\"(reset)\",\"fault\":\"reset\"},"
    "{\"contains\":\"(slow)\",\"fault\":\"slow\",\"delay_ms\":80},"
    "{\"contains\":\"(cut)\",\"fault\":\"cut\",\"chunks\":2},"
    "{\"contains\":\"(cut_reset)\",\"fault\":\"cut_reset\",\"chunks\":1},"
    "{\"contains\":\"(stream_error)\",\"fault\":\"stream_error\","
    "\"chunks\":1},"
    "{\"contains\":\"(no_end)\",\"fault\":\"no_end\"},"
    "{\"contains\":\"(garbage)\",\"fault\":\"garbage\"},"
    "{\"contains\":\"(p-headers)\",\"fault\":\"cut\",\"phase\":\"headers\"},"
    "{\"contains\":\"(p-role)\",\"fault\":\"cut\",\"phase\":\"role\"},"
    "{\"contains\":\"(p-first)\",\"fault\":\"cut\",\"phase\":\"first\"},"
    "{\"contains\":\"(p-word)\",\"fault\":\"cut\",\"phase\":\"word\","
    "\"at\":4},"
    "{\"contains\":\"(p-event)\",\"fault\":\"cut\",\"phase\":\"event\","
    "\"at\":4},"
    "{\"contains\":\"(p-char)\",\"fault\":\"cut\",\"phase\":\"char\"},"
    "{\"contains\":\"(p-content)\",\"fault\":\"cut\",\"phase\":\"content\"},"
    "{\"contains\":\"(p-finish)\",\"fault\":\"cut\",\"phase\":\"finish\"},"
    "{\"contains\":\"(garble)\",\"fault\":\"garble\",\"phase\":\"first\"},"
    "{\"contains\":\"(half-garble)\",\"fault\":\"garble\","
    "\"phase\":\"event\",\"at\":4},"
    "{\"contains\":\"(half-error)\",\"fault\":\"stream_error\","
    "\"phase\":\"event\",\"at\":4},"
    "{\"contains\":\"(http_502)\",\"fault\":\"http_502\"},"
    "{\"contains\":\"(http_429)\",\"fault\":\"http_429\","
    "\"retry_after_s\":3},"
    "{\"model\":\"m-html\",\"fault\":\"html\"},"
    "{\"contains\":\"(hint-date)\",\"fault\":\"http_429\","
    "\"retry_after_s\":3,\"hint\":\"date\"},"
    "{\"contains\":\"(hint-ms)\",\"fault\":\"http_429\","
    "\"retry_after_ms\":1500},"
    "{\"contains\":\"(hint-reset)\",\"fault\":\"http_503\","
    "\"retry_after_ms\":1500,\"hint\":\"reset\"},"
    "{\"contains\":\"(hint-text)\",\"fault\":\"http_429\","
    "\"retry_after_ms\":1500,\"hint\":\"text\"},"
    "{\"contains\":\"(hint-none)\",\"fault\":\"http_429\","
    "\"retry_after_ms\":1500,\"hint\":\"none\"},"
    "{\"contains\":\"(error_200)\",\"fault\":\"error_200\"},"
    "{\"contains\":\"(empty)\",\"fault\":\"empty\"},"
    "{\"contains\":\"(context)\",\"fault\":\"context\"},"
    "{\"contains\":\"(policy)\",\"fault\":\"policy\"},"
    "{\"contains\":\"(dribble)\",\"fault\":\"dribble\",\"delay_ms\":20},"
    "{\"contains\":\"(broken)\",\"fault\":\"broken_event\","
    "\"chunks\":2},"
    "{\"contains\":\"(limited)\",\"fault\":\"rate_limit\",\"n\":2,"
    "\"window_ms\":60000},"
    "{\"contains\":\"(down)\",\"fault\":\"http_503\",\"for_ms\":300},"
    "{\"contains\":\"(refused)\",\"fault\":\"refused\","
    "\"delay_ms\":300,\"attempt\":1},"
    "{\"contains\":\"(once)\",\"attempt\":1,\"fault\":\"http_503\"}]}";

static unsigned port;
static pid_t child;
static char log_path[] = "/tmp/hf-test-bench-XXXXXX";

static void
serve(int ready)
{
	struct hf_providers_conf conf = { .base = event_base_new() };
	json_t *root = json_loads(manifest_text, 0, NULL);
	struct hf_suite *suite = hf_suite_make("paper", 42, 0);
	struct hf_manifest m;
	struct hf_providers *p;
	struct hf_error e;

	hf_manifest_init(&m);
	if (hf_manifest_parse(&m, root, &e) != 0)
		_exit(1);
	conf.suite = suite;
	conf.manifest = &m;
	conf.log = fopen(log_path, "we");
	p = hf_providers_new(&conf);
	if (hf_providers_listen(p, "primary=127.0.0.1:0", &port, &e) != 0 ||
	    write(ready, &port, sizeof(port)) != sizeof(port))
		_exit(1);
	event_base_dispatch(conf.base);
	_exit(1);
}

static int
start(void **state)
{
	int fds[2], fd = mkstemp(log_path);

	(void)state;
	if (fd < 0 || pipe(fds) != 0)
		return -1;
	close(fd);
	child = fork();
	if (child == 0)
		serve(fds[1]);
	close(fds[1]);
	if (read(fds[0], &port, sizeof(port)) != sizeof(port))
		return -1;
	close(fds[0]);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	unlink(log_path);
	return 0;
}

static int
dial(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	return fd;
}

static void
ask(int fd, const char *text, bool stream)
{
	char body[512], head[256];
	int n = snprintf(body, sizeof(body),
	    "{\"model\":\"m\",\"stream\":%s,"
	    "\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}",
	    stream ? "true" : "false", text);
	int h = snprintf(head, sizeof(head),
	    "POST /v1/chat/completions "
	    "HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer k\r\n"
	    "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n",
	    n);

	assert_int_equal(write(fd, head, (size_t)h), h);
	assert_int_equal(write(fd, body, (size_t)n), n);
}

/* Read until 'until' has been seen (true), or the end: *err is 0 for FIN,
 * an errno otherwise; EAGAIN after 'ms' without bytes. */
static bool
listen_for(int fd, struct hf_buf *b, const char *until, int ms, int *err)
{
	struct timeval tv = { ms / 1000, (ms % 1000) * 1000 };
	char buf[4096];

	hf_buf_init(b, HF_BUF_NOCAP);
	hf_buf_puts(b, "");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	for (;;) {
		ssize_t n;

		if (until != NULL && strstr(b->data, until) != NULL)
			return true;
		n = read(fd, buf, sizeof(buf));
		if (n <= 0) {
			*err = n == 0 ? 0 : errno;
			return false;
		}
		hf_buf_put(b, buf, (size_t)n);
	}
}

static void
expect(const char *text, bool stream, const char *has, const char *lacks,
    bool reset)
{
	int fd = dial(), err = -1;
	struct hf_buf b;

	ask(fd, text, stream);
	assert_false(listen_for(fd, &b, NULL, 5000, &err));
	assert_int_equal(err, reset ? ECONNRESET : 0);
	if (has == NULL)
		assert_int_equal(b.size, 0);
	else
		assert_non_null(strstr(b.data, has));
	if (lacks != NULL)
		assert_null(strstr(b.data, lacks));
	hf_buf_free(&b);
	close(fd);
}

static void
broken_connections(void **state)
{
	(void)state;
	expect("(close)", false, NULL, NULL, false);
	expect("(reset)", false, NULL, NULL, true);
	expect("(reset)", true, NULL, NULL, true);
	/* "I heard: (cut) a b" in words: two are sent */
	expect("(cut) a b", true, "heard:", "(cut)", false);
	expect("(cut_reset) a b", true, "\"I \"", "heard:", true);
	expect("(cut) a b", false, "chat.comp", "total_tokens", false);
}

/* "I heard: (p-...) \xc3\xa9" breaks off where it says. */
static void
places(void **state)
{
	(void)state;
	expect("(p-headers) x", true, "200 OK", "data:", false);
	expect("(p-role) x", true, "\"role\":\"assistant\"", "\"I \"", false);
	expect("(p-first) x", true, "\"I \"", "heard", false);
	expect("(p-word) x", true, "\"content\":\"he\"", "heard", false);
	expect("(p-word) x", true, "\"content\":\"he\"", "ard", false);
	expect("(p-event) x", true, "\"I \"", "heard", false);
	expect("(p-char) \xc3\xa9", true, "\xc3", "\xc3\xa9\"", false);
	expect("(p-content) x", true, "\"x\"", "finish_reason\":\"stop", false);
	expect("(p-finish) x", true, "finish_reason\":\"stop", "[DONE]", false);
}

static void
whole_answers(void **state)
{
	static const struct {
		const char *text;
		bool stream;
		const char *has;
		const char *lacks;
	} t[] = {
		{ "hello", false, "I heard: hello", NULL },
		{ "hello", true, "data: [DONE]\n\n", NULL },
		{ "(slow)", false, "I heard: (slow)", NULL },
		{ "(stream_error) a", true, "server_error", "[DONE]" },
		{ "(no_end)", true, "(no_end)", "finish_reason\":\"stop" },
		{ "(garbage)", false, "{\"id\":\"chatcmpl-", "choices" },
		{ "(garble) x", true, "data: {\"id\":\"\xff\xfe<html>",
		    "heard" },
		{ "(half-garble) x", true, "\xff\xfe<html>", "heard" },
		{ "(half-error) x", true, "\r\n\n\ndata: {\"error\"", "heard" },
		{ "(http_502)", false, "502 Bad Gateway\r\n", "{" },
		{ "(http_429)", true, "Retry-After: 3\r\n", "data:" },
		{ "(once)", false, "503 Service", NULL },
		{ "(once)", false, "I heard: (once)", NULL },
	};
	int fd = dial(), err;
	struct hf_buf b;

	/* Streams leave the connection usable for the next request. */
	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		bool chunked = t[i].stream && strstr(t[i].text, "429") == NULL;

		ask(fd, t[i].text, t[i].stream);
		assert_true(listen_for(
		    fd, &b, chunked ? "\r\n0\r\n\r\n" : t[i].has, 5000, &err));
		assert_non_null(strstr(b.data, t[i].has));
		if (t[i].lacks != NULL)
			assert_null(strstr(b.data, t[i].lacks));
		hf_buf_free(&b);
		if (!chunked) {
			close(fd);
			fd = dial();
		}
	}
	close(fd);
}

/* One request of its own connection: what comes until 'until'. */
static void
one(const char *text, bool stream, const char *has, const char *lacks)
{
	int fd = dial(), err;
	struct hf_buf b;

	ask(fd, text, stream);
	if (!listen_for(fd, &b, has, 5000, &err))
		fail_msg("%s: %s", text, b.data);
	if (lacks != NULL)
		assert_null(strstr(b.data, lacks));
	hf_buf_free(&b);
	close(fd);
}

static void
hints(void **state)
{
	(void)state;
	one("(hint-date)", false, " GMT\r\n", "retry-after-ms");
	one("(hint-ms)", false, "retry-after-ms: 1500\r\n", "Retry-After");
	one("(hint-reset)", false, "x-ratelimit-reset-requests: 1.500s\r\n",
	    "Retry-After");
	one("(hint-text)", false, "Please try again in 1.500s.", "Retry-After");
	one("(hint-none)", false, "rate_limit_exceeded", "etry");
}

static void
odd_answers(void **state)
{
	(void)state;
	one("(error_200)", false, "server_error", "502");
	one("(error_200)", false, "200 OK", "500");
	one("(error_200)", true, "data: {\"error\"", "choices");
	one("(empty)", false, "\"content\":\"\"", "heard");
	one("(empty)", true, "\"finish_reason\":\"stop\"", "heard");
	one("(context)", false, "context_length_exceeded", "Injected");
	one("(policy)", false, "content_policy_violation", NULL);
	/* The third word is lost in an event that is none. */
	one("(broken) a b", true, "data: [DONE]\n\n", "(broken)");
	one("(broken) a b", true, "\"a \"", NULL);
	one("(dribble) a", true, "data: [DONE]\n\n", NULL);
	one("(dribble) a", false, "\r\n0\r\n\r\n", NULL);
}

static int64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

/* Two in a minute; after its time the third would be admitted. */
static void
rate_limits(void **state)
{
	(void)state;
	one("(limited)", false, "I heard: (limited)", NULL);
	one("(limited)", true, "data: [DONE]\n\n", NULL);
	one("(limited)", false, "retry-after-ms: ", "heard");
	one("(limited)", false, "429 Too Many", "heard");
}

static void
failures_that_pass(void **state)
{
	int64_t end = now_ms() + 5000;
	struct timespec nap = { 0, 50000000 };
	struct hf_buf b;
	bool up = false;
	int err;

	(void)state;
	one("(down)", false, "503 Service", NULL);
	while (!up && now_ms() < end) {
		int fd = dial();

		nanosleep(&nap, NULL);
		ask(fd, "(down)", false);
		up = listen_for(fd, &b, "I heard: (down)", 200, &err);
		hf_buf_free(&b);
		close(fd);
	}
	assert_true(up);
}

static int
try_dial(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = connect(fd, (struct sockaddr *)&sin, sizeof(sin));

	close(fd);
	return rc;
}

static void
refused(void **state)
{
	int64_t end = now_ms() + 5000;

	(void)state;
	expect("(refused)", false, NULL, NULL, true);
	assert_int_equal(try_dial(), -1);
	assert_int_equal(errno, ECONNREFUSED);
	while (try_dial() != 0 && now_ms() < end)
		;
	one("(refused)", false, "I heard: (refused)", NULL);
}

/* Gemini's protocol at the same port: its path says model and way. */
static void
gemini(void **state)
{
	static const struct {
		const char *target, *text, *has, *lacks;
	} t[] = {
		{ "m:generateContent", "x", "\"text\":\"I heard: x\"",
		    "data:" },
		{ "m:streamGenerateContent?alt=sse", "x",
		    "\"finishReason\":\"STOP\"", "[DONE]" },
		{ "m:streamGenerateContent", "x", "]\r\n0\r\n", "data:" },
		{ "m:generateContent", "(hint-ms)", "\"retryDelay\":\"1.500s\"",
		    "retry-after" },
		{ "m-html:generateContent", "x", "It works.", "{" },
		{ "m:generateContent", "(cut) x", "\"role\":\"model\"",
		    "responseId" },
	};

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		int fd = dial(), err;
		char body[200];
		struct hf_buf b;

		snprintf(body, sizeof(body),
		    "{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":"
		    "\"%s\"}]}]}",
		    t[i].text);
		assert_true(
		    dprintf(fd,
			"POST /v1beta/models/%s HTTP/1.1\r\nHost: t\r\n"
			"x-goog-api-key: k\r\nContent-Type: "
			"application/json\r\nContent-Length: %zu\r\n\r\n%s",
			t[i].target, strlen(body), body) > 0);
		if (!listen_for(fd, &b, t[i].has, 5000, &err))
			fail_msg("%s: %s", t[i].target, b.data);
		if (strstr(b.data, t[i].lacks) != NULL)
			fail_msg("%s: %s", t[i].target, b.data);
		hf_buf_free(&b);
		close(fd);
	}
}

static void
silence(void **state)
{
	int fd = dial(), err = 0;
	struct hf_buf b;

	(void)state;
	ask(fd, "(silence)", false);
	assert_false(listen_for(fd, &b, NULL, 100, &err));
	assert_int_equal(err, EAGAIN);
	assert_int_equal(b.size, 0);
	hf_buf_free(&b);
	close(fd);
	fd = dial();
	ask(fd, "(headers)", true);
	assert_false(listen_for(fd, &b, NULL, 100, &err));
	assert_int_equal(err, EAGAIN);
	assert_non_null(strstr(b.data, "200 OK"));
	assert_null(strstr(b.data, "data:"));
	hf_buf_free(&b);
	close(fd);
}

static void
bad_http(void **state)
{
	static const char *const bad[] = {
		"nonsense\r\n\r\n",
		"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: x"
		"\r\n\r\n",
		"POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked"
		"\r\n\r\nzz\r\n",
	};
	int err;
	struct hf_buf b;

	(void)state;
	for (unsigned i = 0; i < hf_countof(bad); i++) {
		int fd = dial();
		size_t n = strlen(bad[i]);

		assert_int_equal(write(fd, bad[i], n), (ssize_t)n);
		assert_false(listen_for(fd, &b, NULL, 5000, &err));
		assert_int_equal(err, 0);
		assert_non_null(strstr(b.data, "400 Bad Request"));
		hf_buf_free(&b);
		close(fd);
	}
}

static void
chunked_request_and_log(void **state)
{
	static const char head[] =
	    "POST /v1/chat/completions HTTP/1.1\r\n"
	    "Authorization: Bearer k\r\nContent-Type: application/json\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n";
	static const char *const part[] = { "{\"model\":\"m\",\"user\":"
					    "\"p001.r1.x\",",
		"\"messages\":[{\"role\":\"user\",",
		"\"content\":\"chunk marker\"}]}" };
	int fd = dial(), err;
	bool found = false;
	struct hf_buf b;
	char line[8192];
	FILE *f;

	(void)state;
	assert_int_equal(write(fd, head, strlen(head)), strlen(head));
	for (unsigned i = 0; i < hf_countof(part); i++)
		assert_true(
		    dprintf(fd, "%zx\r\n%s\r\n", strlen(part[i]), part[i]) > 0);
	assert_true(dprintf(fd, "0\r\n\r\n") > 0);
	assert_true(listen_for(fd, &b, "I heard: chunk marker", 5000, &err));
	hf_buf_free(&b);
	close(fd);
	f = fopen(log_path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		json_t *o = json_loads(line, 0, NULL), *m;

		assert_non_null(o);
		m = json_array_get(json_object_get(o, "messages"), 0);
		if (hf_str_is(hf_json_str(json_object_get(m, "text")),
			"chunk marker")) {
			found = true;
			assert_string_equal(json_string_value(json_object_get(
						o, "conversation")),
			    "p001");
			assert_string_equal(
			    json_string_value(json_object_get(o, "answer")),
			    "I heard: chunk marker");
		}
		json_decref(o);
	}
	fclose(f);
	assert_true(found);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_answers),
		cmocka_unit_test(broken_connections),
		cmocka_unit_test(places),
		cmocka_unit_test(silence),
		cmocka_unit_test(hints),
		cmocka_unit_test(odd_answers),
		cmocka_unit_test(rate_limits),
		cmocka_unit_test(failures_that_pass),
		cmocka_unit_test(refused),
		cmocka_unit_test(gemini),
		cmocka_unit_test(bad_http),
		cmocka_unit_test(chunked_request_and_log),
	};

	return cmocka_run_group_tests_name(
	    "bench providers", tests, start, stop);
}
