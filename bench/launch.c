/*
 * Starting, awaiting and ending of children.
 */
#include <config.h>

#include "bench/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "bench/client.h"
#include "bench/gateway_conf.h"

#define START_MS 20000 /* for a child to be ready */
#define STOP_MS 20000  /* for a child to end by TERM */
#define LOOK_MS 10     /* between looks at a child's log */

char *
hf_launch_path(const struct hf_launch *l, const char *name)
{
	char *path = NULL;

	HF_CHECK(asprintf(&path, "%s/%s", l->dir, name) > 0);
	return path;
}

static void
nap(void)
{
	struct timespec ts = { 0, LOOK_MS * 1000000L };

	nanosleep(&ts, NULL);
}

int
hf_launch_open(struct hf_launch *l, const char *keep_dir, struct hf_error *e)
{
	const char *tmp = getenv("TMPDIR");

	memset(l, 0, sizeof(*l));
	l->alarm = l->guard = -1;
	if (keep_dir != NULL) {
		l->keep = true;
		if (mkdir(keep_dir, 0700) != 0 && errno != EEXIST)
			return hf_fail_errno(e, "%s", keep_dir);
		l->dir = realpath(keep_dir, NULL);
		if (l->dir == NULL)
			return hf_fail_errno(e, "%s", keep_dir);
		return 0;
	}
	HF_CHECK(asprintf(&l->dir, "%s/continuitybench-XXXXXX",
		     tmp == NULL || tmp[0] == '\0' ? "/tmp" : tmp) > 0);
	if (mkdtemp(l->dir) == NULL) {
		int rc = hf_fail_errno(e, "%s", l->dir);

		free(l->dir);
		l->dir = NULL;
		return rc;
	}
	return 0;
}

/* --- children ------------------------------------------------------------- */

/* In the child: standard streams, then the program. */
static void
become(const char *program, char *const argv[], pid_t parent, int out, int err)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || null < 0 || dup2(null, 0) < 0 ||
	    dup2(out < 0 ? null : out, 1) < 0 || dup2(err, 2) < 0)
		_exit(127);
	execvp(program, argv);
	dprintf(2, "%s: %s\n", program, strerror(errno));
	_exit(127);
}

int
hf_launch_child(struct hf_launch *l, const char *program, char *const argv[],
    int out, const char *log, pid_t *pid, struct hf_error *e)
{
	char *path = hf_launch_path(l, log);
	pid_t parent = getpid();
	int fd, rc = 0;

	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0) {
		rc = hf_fail_errno(e, "%s", path);
		goto out;
	}
	*pid = fork();
	if (*pid == 0)
		become(program, argv, parent, out, fd);
	if (*pid < 0) {
		*pid = 0;
		rc = hf_fail_errno(e, "fork");
	}
	close(fd);
out:
	free(path);
	return rc;
}

int
hf_launch_and_wait(struct hf_launch *l, char *const argv[], const char *log,
    struct hf_error *e)
{
	char *path = hf_launch_path(l, log);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int rc, status = -1;
	pid_t pid;

	if (fd < 0) {
		rc = hf_fail_errno(e, "%s", path);
	} else {
		rc = hf_launch_child(l, argv[0], argv, fd, log, &pid, e);
		close(fd);
		if (rc == 0)
			waitpid(pid, &status, 0);
		if (rc == 0 && status != 0)
			rc = hf_fail(
			    e, HF_EUNREACH, "%s failed: see %s", argv[0], path);
	}
	free(path);
	return rc;
}

/* TERM, and KILL after a while; the status of waitpid(). */
static int
stop(pid_t *pid)
{
	int64_t end = hf_now_us() + STOP_MS * INT64_C(1000);
	int status = 0;

	if (*pid == 0)
		return 0;
	kill(*pid, SIGTERM);
	while (waitpid(*pid, &status, WNOHANG) == 0) {
		if (hf_now_us() > end) {
			kill(*pid, SIGKILL);
			waitpid(*pid, &status, 0);
			break;
		}
		nap();
	}
	*pid = 0;
	return status;
}

/* --- the providers -------------------------------------------------------- */

/* Reads lines from the child until "ready". */
static int
read_ready(
    struct hf_launch *l, const struct hf_suite *s, int fd, struct hf_error *e)
{
	FILE *f = fdopen(fd, "r");
	char line[256], name[16], url[64];
	bool ready = false;
	int i;

	HF_CHECK(f != NULL);
	while (!ready && fgets(line, sizeof(line), f) != NULL) {
		ready = strcmp(line, "ready\n") == 0;
		if (sscanf(line, "provider %15s %63s", name, url) != 2)
			continue;
		i = hf_suite_listener(s, hf_str(name));
		if (i >= 0)
			memcpy(l->listener[i], url, sizeof(url));
	}
	fclose(f);
	if (!ready)
		return hf_fail(e, HF_EUNREACH,
		    "the providers did not start: "
		    "see providers.log");
	return 0;
}

int
hf_launch_providers(struct hf_launch *l, const struct hf_suite *s,
    const struct hf_provider_options *o, struct hf_error *e)
{
	char seed[24], size[24], pause[24], fd[24], self[] = "/proc/self/exe";
	char listen[] = "--listen", knobs[] = "--knobs";
	char *log = hf_launch_path(l, "payloads.jsonl");
	bool made = o->suite != NULL;
	char *from = hf_xstrdup(made ? o->suite : o->conversations);
	char *with = hf_xstrdup(made ? "" : o->manifest);
	char *argv[20 + 2 * HF_MAX_LISTENERS] = { (char[]){ "continuitybench" },
		(char[]){ "providers" }, (char[]){ "--with-parent" },
		(char[]){ "--seed" }, seed, (char[]){ "--log" }, log,
		(char[]){ "--chunk-ms" }, pause, (char[]){ "--alarm-fd" }, fd,
		made ? (char[]){ "--suite" } : (char[]){ "--conversations" },
		from, made ? (char[]){ "--size" } : (char[]){ "--manifest" },
		made ? size : with };
	unsigned n = 15;
	int fds[2], alarm[2], rc;

	if (o->knobs != NULL) {
		argv[n++] = knobs;
		argv[n++] = (char *)(uintptr_t)o->knobs;
	}
	for (unsigned i = 0; i < o->n_listen && i < HF_MAX_LISTENERS; i++) {
		argv[n++] = listen;
		argv[n++] = (char *)(uintptr_t)o->listen[i];
	}
	snprintf(seed, sizeof(seed), "%lu", o->seed);
	snprintf(size, sizeof(size), "%lu", o->size);
	snprintf(pause, sizeof(pause), "%u", s->chunk_ms);
	unlink(log);
	if (pipe2(fds, O_CLOEXEC) != 0 || pipe(alarm) != 0) {
		rc = hf_fail_errno(e, "pipe");
		goto out;
	}
	fcntl(alarm[0], F_SETFD, FD_CLOEXEC);
	fcntl(alarm[0], F_SETFL, O_NONBLOCK);
	l->alarm = alarm[0];
	snprintf(fd, sizeof(fd), "%d", alarm[1]);
	rc = hf_launch_child(
	    l, self, argv, fds[1], "providers.log", &l->providers, e);
	close(alarm[1]);
	close(fds[1]);
	if (rc == 0)
		rc = read_ready(l, s, fds[0], e);
	else
		close(fds[0]);
out:
	free(with);
	free(from);
	free(log);
	return rc;
}

/* --- the gateway ---------------------------------------------------------- */

static int
write_config(struct hf_launch *l, const struct hf_suite *s,
    const struct hf_gateway_options *o, const char *path, struct hf_error *e)
{
	struct hf_gateway_conf c = { .dir = l->dir,
		.workers = o->workers,
		.port = l->port,
		.first_token_ms = o->first_token_ms,
		.idle_ms = o->idle_ms };
	FILE *f = fopen(path, "we");

	if (f == NULL)
		return hf_fail_errno(e, "%s", path);
	for (unsigned i = 0; i < s->n_listener; i++)
		c.url[i] = l->listener[i];
	hf_gateway_conf_write(f, &c, s);
	if (fclose(f) != 0)
		return hf_fail_errno(e, "%s", path);
	return 0;
}

static char *
find_program(const char *name)
{
	static const char *const at[] = { "", "../sbin/" };
	char self[4096], *path = NULL;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	for (unsigned i = 0; n > 0 && i < hf_countof(at); i++) {
		self[n] = '\0';
		HF_CHECK(asprintf(&path, "%.*s/%s%s",
			     (int)(strrchr(self, '/') - self), self, at[i],
			     name) > 0);
		if (access(path, X_OK) == 0)
			return path;
		free(path);
	}
	return hf_xstrdup(name);
}

char *
hf_launch_program(const char *given, const char *name)
{
	return given == NULL ? find_program(name) : hf_xstrdup(given);
}

/* The address in the last "listen: ready addr=" of the daemon's log. */
static bool
find_address(const char *log, char *addr, size_t size)
{
	static const char mark[] = "listen: ready addr=";
	char line[1024];
	bool found = false;
	FILE *f = fopen(log, "re");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		const char *p = strstr(line, mark);

		if (p == NULL || strchr(line, '\n') == NULL)
			continue;
		p += sizeof(mark) - 1;
		snprintf(addr, size, "%.*s", (int)strcspn(p, " \r\n"), p);
		found = true;
	}
	if (f != NULL)
		fclose(f);
	return found;
}

static int
await_gateway(struct hf_launch *l, const char *log, struct hf_error *e)
{
	int64_t end = hf_now_us() + START_MS * INT64_C(1000);
	char addr[64], ready[96];

	while (hf_now_us() < end) {
		if (waitpid(l->gateway, NULL, WNOHANG) != 0) {
			l->gateway = 0;
			return hf_fail(e, HF_EUNREACH,
			    "the gateway ended at "
			    "its start: see %s",
			    log);
		}
		if (find_address(log, addr, sizeof(addr))) {
			snprintf(
			    ready, sizeof(ready), "http://%s/readyz", addr);
			if (hf_client_get(ready) == 200) {
				snprintf(l->url, sizeof(l->url), "http://%s/v1",
				    addr);
				return 0;
			}
		}
		nap();
	}
	return hf_fail(e, HF_ETIMEOUT,
	    "the gateway was not ready in %d ms: "
	    "see %s",
	    START_MS, log);
}

/* Bound and never listening: while the gateway is down, nobody else gets its
 * port, and callers are refused. */
int
hf_launch_reserve_port(struct hf_launch *l, struct hf_error *e)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);
	int one = 1;

	l->guard = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (l->guard < 0 ||
	    setsockopt(l->guard, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) !=
		0 ||
	    bind(l->guard, (struct sockaddr *)&sin, len) != 0 ||
	    getsockname(l->guard, (struct sockaddr *)&sin, &len) != 0)
		return hf_fail_errno(e, "a port for the gateway");
	l->port = ntohs(sin.sin_port);
	return 0;
}

static int
start_gateway(struct hf_launch *l, struct hf_error *e)
{
	char *conf = hf_launch_path(l, "holdfast.conf");
	char *argv[] = { l->program, (char[]){ "-c" }, conf, NULL };
	int rc = hf_launch_child(
	    l, l->program, argv, -1, "holdfast.log", &l->gateway, e);

	free(conf);
	return rc;
}

int
hf_launch_gateway(struct hf_launch *l, const struct hf_suite *s,
    const struct hf_gateway_options *o, struct hf_error *e)
{
	char *conf = hf_launch_path(l, "holdfast.conf");
	char *log = hf_launch_path(l, "holdfast.log");
	int rc = 0;

	l->program = hf_launch_program(o->program, "holdfast");
	unlink(log);
	setenv(HF_BENCH_KEY_ENV, "bench-key-of-no-value", 1);
	if (s->kills)
		rc = hf_launch_reserve_port(l, e);
	if (rc == 0)
		rc = write_config(l, s, o, conf, e);
	if (rc == 0)
		rc = start_gateway(l, e);
	if (rc == 0)
		rc = await_gateway(l, log, e);
	if (rc != 0)
		l->keep = true; /* the logs tell why */
	free(conf);
	free(log);
	return rc;
}

bool
hf_launch_has_points(struct hf_launch *l)
{
	char *argv[] = { l->program, (char[]){ "-v" }, NULL };
	char *log = hf_launch_path(l, "version.log"), line[128];
	bool found = false;
	int fd = open(log, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	pid_t pid = 0;
	ssize_t n;

	if (fd >= 0 && l->program != NULL &&
	    hf_launch_child(
		l, l->program, argv, fd, "version.log", &pid, NULL) == 0) {
		waitpid(pid, NULL, 0);
		n = pread(fd, line, sizeof(line) - 1, 0);
		line[n < 0 ? 0 : n] = '\0';
		found = strstr(line, "(faults)") != NULL;
	}
	if (fd >= 0)
		close(fd);
	free(log);
	return found;
}

int
hf_launch_restart(struct hf_launch *l, const char *point, const char *token,
    struct hf_error *e)
{
	char *fault;
	int rc;

	if (l->gateway > 0)
		waitpid(l->gateway, NULL, 0);
	l->gateway = 0;
	if (l->proxy != NULL)
		return hf_launch_child(l, "/proc/self/exe", l->proxy, -1,
		    "proxy.log", &l->gateway, e);
	if (point != NULL) {
		HF_CHECK(asprintf(&fault, "%s=kill", point) > 0);
		setenv("HF_FAULT", fault, 1);
		setenv("HF_FAULT_ONCE", token, 1);
		free(fault);
	}
	rc = start_gateway(l, e);
	unsetenv("HF_FAULT");
	unsetenv("HF_FAULT_ONCE");
	return rc;
}

int
hf_launch_stop_gateway(struct hf_launch *l)
{
	return stop(&l->gateway);
}

/* Runs holdfastctl for its usage or to verify, its output to a new
 * DIR/verify.log; the status of waitpid(). */
static int
run_ctl(struct hf_launch *l, bool help)
{
	char *program = find_program("holdfastctl");
	char *conf = hf_launch_path(l, "holdfast.conf");
	char *log = hf_launch_path(l, "verify.log");
	char *verify[] = { program, (char[]){ "-c" }, conf,
		(char[]){ "sessions" }, (char[]){ "verify" },
		(char[]){ "--all" }, NULL };
	char *usage[] = { program, (char[]){ "--help" }, NULL };
	int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int status = -1;
	pid_t pid;

	if (fd >= 0) {
		if (hf_launch_child(l, program, help ? usage : verify, fd,
			"verify.log", &pid, NULL) == 0)
			waitpid(pid, &status, 0);
		close(fd);
	}
	free(program);
	free(conf);
	free(log);
	return status;
}

int
hf_launch_verify(struct hf_launch *l)
{
	char *log = hf_launch_path(l, "verify.log"), line[256];
	bool found = false;
	FILE *f;

	if (run_ctl(l, true) == 0 && (f = fopen(log, "re")) != NULL) {
		while (fgets(line, sizeof(line), f) != NULL)
			found |= strstr(line, "sessions verify") != NULL;
		fclose(f);
	}
	free(log);
	return found ? run_ctl(l, false) : -1;
}

static int
remove_one(const char *path, const struct stat *st, int what, struct FTW *at)
{
	(void)st;
	(void)what;
	(void)at;
	return remove(path);
}

void
hf_launch_close(struct hf_launch *l)
{
	stop(&l->gateway);
	stop(&l->providers);
	if (l->dir != NULL && !l->keep)
		nftw(l->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (l->alarm >= 0)
		close(l->alarm);
	if (l->guard >= 0)
		close(l->guard);
	for (unsigned i = 0; l->proxy != NULL && l->proxy[i] != NULL; i++)
		free(l->proxy[i]);
	free(l->proxy);
	free(l->program);
	free(l->dir);
	memset(l, 0, sizeof(*l));
	l->alarm = l->guard = -1;
}
