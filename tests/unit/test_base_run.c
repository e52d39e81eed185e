/*
 * Errors, clocks, logs, state machines, checks, fault points.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/sm.h"

static void
errors(void **state)
{
	struct hf_error e;
	char big[400];

	(void)state;
	assert_int_equal(hf_fail(&e, HF_EFULL, "disk %d", 3), HF_EFULL);
	assert_int_equal(e.code, HF_EFULL);
	assert_string_equal(e.text, "disk 3");
	assert_int_equal(hf_error_prefix(&e, "store"), HF_EFULL);
	assert_string_equal(e.text, "store: disk 3");
	assert_int_equal(hf_fail(NULL, HF_EBUSY, "x"), HF_EBUSY);
	errno = ENOENT;
	assert_int_equal(hf_fail_errno(&e, "open %s", "f"), HF_ESYS);
	assert_int_equal(e.sys, ENOENT);
	assert_string_equal(e.text, "open f: No such file or directory");
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	hf_fail(&e, HF_EINVAL, "%s", big);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	hf_error_prefix(&e, big);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	assert_string_equal(hf_err_name(HF_EFENCED), "EFENCED");
	assert_string_equal(hf_err_text(HF_EFULL), "no space left");
	assert_string_equal(hf_err_name(12345), "EUNKNOWN");
	assert_string_equal(hf_err_name(0), "OK");
	assert_true(hf_err_retryable(HF_EBUSY));
	assert_false(hf_err_retryable(HF_ECORRUPT));
}

static void
clocks(void **state)
{
	char text[32];
	int64_t a, b;

	(void)state;
	a = hf_now_us();
	b = hf_now_us();
	assert_true(b >= a && a > 0);
	assert_true(hf_wall_us() > (int64_t)1600000000 * 1000000);
	hf_clock_set(5, 7);
	assert_int_equal(hf_now_us(), 5);
	assert_int_equal(hf_wall_us(), 7);
	hf_clock_set(0, 0);
	assert_true(hf_now_us() >= b);
	hf_wall_format((int64_t)951782400 * 1000000 + 123456, text);
	assert_string_equal(text, "2000-02-29T00:00:00.123Z");
}

/* What 'fn' writes to standard error. */
static size_t
captured(void (*fn)(void), char *out, size_t size)
{
	int fds[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	assert_true(saved >= 0);
	assert_true(dup2(fds[1], STDERR_FILENO) >= 0);
	close(fds[1]);
	fn();
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	n = read(fds[0], out, size - 1);
	close(fds[0]);
	assert_true(n >= 0);
	out[n] = '\0';
	return (size_t)n;
}

static void
write_lines(void)
{
	hf_log(HF_LOG_INFO, "turn: end id=%d text=%s", 7, "a\nb\x01");
	hf_log(HF_LOG_DEBUG, "not shown");
}

static void
write_many(void)
{
	static struct hf_log_limit limit;

	hf_clock_set(1000000, 0);
	for (int i = 0; i < 5; i++)
		hf_log_limited(&limit, 1000, HF_LOG_WARN, "many n=%d", i);
	hf_clock_set(1999999, 0);
	hf_log_limited(&limit, 1000, HF_LOG_WARN, "many n=5");
	hf_clock_set(2000000, 0);
	hf_log_limited(&limit, 1000, HF_LOG_WARN, "many n=6");
	hf_clock_set(0, 0);
}

static void
write_long(void)
{
	char big[3000];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	hf_log(HF_LOG_ERROR, "%s", big);
}

static unsigned
lines(const char *text)
{
	unsigned n = 0;

	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

static void
logs(void **state)
{
	enum hf_log_level level;
	char text[4096];

	(void)state;
	hf_log_init("tester", HF_LOG_INFO);
	captured(write_lines, text, sizeof(text));
	assert_int_equal(lines(text), 1);
	assert_non_null(strstr(text, " info tester["));
	assert_non_null(strstr(text, "turn: end id=7 text=a b \n"));
	captured(write_many, text, sizeof(text));
	assert_int_equal(lines(text), 2);
	assert_non_null(strstr(text, "many n=0\n"));
	assert_non_null(strstr(text, "many n=6 suppressed=5\n"));
	assert_true(captured(write_long, text, sizeof(text)) <= 1024);
	assert_int_equal(lines(text), 1);
	assert_int_equal(hf_log_level_parse("debug", &level), 0);
	assert_int_equal(level, HF_LOG_DEBUG);
	assert_int_equal(hf_log_level_parse("loud", &level), HF_EINVAL);
	hf_log_set_level(HF_LOG_ERROR);
	assert_false(hf_log_enabled(HF_LOG_WARN));
	hf_log_set_level(HF_LOG_INFO);
}

enum { IDLE, BUSY, DONE };

static const struct hf_sm_state machine[] = {
	[IDLE] = { "idle", HF_SM_BIT(BUSY) },
	[BUSY] = { "busy", HF_SM_BIT(IDLE) | HF_SM_BIT(DONE) },
	[DONE] = { "done", 0 },
};

static unsigned moves;

static void
on_move(struct hf_sm *sm, unsigned from, void *arg)
{
	(void)sm;
	(void)from;
	assert_ptr_equal(arg, &moves);
	moves++;
}

static void
machines(void **state)
{
	struct hf_sm sm;

	(void)state;
	hf_sm_init(&sm, machine, hf_countof(machine), IDLE);
	sm.moved = on_move;
	sm.arg = &moves;
	assert_string_equal(hf_sm_name(&sm), "idle");
	assert_true(hf_sm_may(&sm, BUSY));
	assert_false(hf_sm_may(&sm, DONE));
	assert_false(hf_sm_may(&sm, 31));
	hf_sm_move(&sm, BUSY);
	hf_sm_move(&sm, DONE);
	assert_int_equal(moves, 2);
	assert_string_equal(hf_sm_name(&sm), "done");
}

/* The signal that 'fn' ends a child of this process with. */
static int
death_of(void (*fn)(void))
{
	pid_t pid = fork();
	int status, fd;

	assert_true(pid >= 0);
	if (pid == 0) {
		fd = open("/dev/null", O_WRONLY);
		dup2(fd, STDERR_FILENO);
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void
bad_edge(void)
{
	struct hf_sm sm;

	hf_sm_init(&sm, machine, hf_countof(machine), IDLE);
	hf_sm_move(&sm, DONE);
}

static void
failed_check(void)
{
	HF_CHECK(moves > 1000);
}

static void
on_panic(const char *text)
{
	if (strstr(text, "moves > 1000") != NULL)
		_exit(0);
}

static void
hooked_check(void)
{
	hf_check_set_hook(on_panic);
	failed_check();
}

static void
bugs_abort(void **state)
{
	(void)state;
	assert_int_equal(death_of(bad_edge), SIGABRT);
	assert_int_equal(death_of(failed_check), SIGABRT);
	assert_int_equal(death_of(hooked_check), 0);
}

#ifdef HF_FAULTS
static void
killed_at_a_point(void)
{
	/* A position that was not counted in yet. */
	setenv("HF_FAULT", ",,,point=kill", 1);
	(void)hf_fault("point");
}

static void
fault_points(void **state)
{
	(void)state;
	unsetenv("HF_FAULT");
	assert_false(hf_fault("a"));
	setenv("HF_FAULT", "a=fail,bb=fail@3", 1);
	assert_false(hf_fault("b"));
	assert_true(hf_fault("a"));
	assert_false(hf_fault("a")); /* the first time only */
	assert_false(hf_fault("bb"));
	assert_false(hf_fault("bb"));
	assert_true(hf_fault("bb"));
	assert_false(hf_fault("bb"));
	unsetenv("HF_FAULT");
	assert_int_equal(death_of(killed_at_a_point), SIGKILL);
}

/* The token may come when the process has been there before. */
static void
fault_points_with_a_token(void **state)
{
	char path[] = "/tmp/hf-token-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	/* A position that was not counted in yet. */
	setenv("HF_FAULT", ",,,,,c=fail@2", 1);
	setenv("HF_FAULT_ONCE", path, 1);
	for (int i = 0; i < 4; i++)
		assert_false(hf_fault("c"));
	close(fd);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_true(hf_fault("c"));
	assert_int_not_equal(access(path, F_OK), 0);
	assert_false(hf_fault("c"));
	close(fd);
	unsetenv("HF_FAULT");
	unsetenv("HF_FAULT_ONCE");
}
#endif

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors),
		cmocka_unit_test(clocks),
		cmocka_unit_test(logs),
		cmocka_unit_test(machines),
		cmocka_unit_test(bugs_abort),
#ifdef HF_FAULTS
		cmocka_unit_test(fault_points),
		cmocka_unit_test(fault_points_with_a_token),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
