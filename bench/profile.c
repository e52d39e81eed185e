/*
 * Reading profiles, and starting what they say.
 */
#include <config.h>

#include "bench/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "bench/client.h"
#include "bench/fill.h"
#include "bench/format.h"
#include "bench/resume.h"

#define START_MS 60000
#define LOOK_MS 20
#define PATIENT_MS 10000 /* as gateway_conf.c has it */
#define MAX_ARGS 24

/* --- reading -------------------------------------------------------------- */

/* Where a profile of this name is: by HF_BENCH_PROFILES, installed, or in the
 * sources that this program was built from; caller frees. */
static char *
find_file(const char *name)
{
	const char *at[] = { getenv("HF_BENCH_PROFILES"), HF_PROFILES_DIR,
		HF_SOURCE_DIR "/bench/profiles" };
	char *path;

	if (strchr(name, '/') != NULL)
		return hf_xstrdup(name);
	for (unsigned i = 0; i < hf_countof(at); i++) {
		if (at[i] == NULL)
			continue;
		path = hf_format("%s/%s.json", at[i], name);
		if (access(path, R_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

static bool
is_words(json_t *v)
{
	json_t *w;
	size_t i;

	if (v == NULL)
		return true;
	if (!json_is_array(v) || json_array_size(v) >= MAX_ARGS)
		return false;
	json_array_foreach(v, i, w) if (!json_is_string(w)) return false;
	return true;
}

static int
check(json_t *root, const char *path, struct hf_error *e)
{
	const char *name, *history, *url, *about = NULL, *ready, *model = NULL;
	json_t *install = NULL, *version = NULL, *files = NULL, *start;
	json_t *headers = NULL, *v;
	json_error_t je;
	const char *key;
	int user = 1;

	if (json_unpack_ex(root, &je, JSON_STRICT,
		"{s:s,s?s,s:s,s?o,s?o,s?o,s:o,s:s,s:s,s?o,s?s,s?b}", "name",
		&name, "about", &about, "history", &history, "install",
		&install, "version", &version, "files", &files, "start", &start,
		"ready", &ready, "url", &url, "headers", &headers, "model",
		&model, "user", &user) != 0)
		return hf_fail(e, HF_EINVAL, "%s: %s", path, je.text);
	json_object_foreach(
	    files, key, v) if (!json_is_string(v)) return hf_fail(e, HF_EINVAL,
	    "%s: files: %s: expected a name", path, key);
	if (!is_words(install) || !is_words(version) || !is_words(start) ||
	    !is_words(headers) || json_array_size(start) == 0 ||
	    json_array_size(headers) > HF_MAX_HEADERS)
		return hf_fail(e, HF_EINVAL,
		    "%s: install, version, start and headers are lists of "
		    "texts",
		    path);
	if (strcmp(history, "thin") != 0 && strcmp(history, "full") != 0)
		return hf_fail(e, HF_EINVAL, "%s: history: thin or full", path);
	return 0;
}

int
hf_profile_load(struct hf_profile *p, const char *name, struct hf_error *e)
{
	char *path = find_file(name), *slash;
	json_error_t je;
	int rc;

	memset(p, 0, sizeof(*p));
	if (path == NULL)
		return hf_fail(e, HF_EINVAL, "no profile '%s'", name);
	p->root = json_load_file(path, JSON_REJECT_DUPLICATES, &je);
	if (p->root == NULL)
		rc = hf_fail(e, HF_EINVAL, "%s:%d: %s", path, je.line, je.text);
	else
		rc = check(p->root, path, e);
	slash = strrchr(path, '/');
	*slash = '\0';
	p->dir = realpath(path, NULL);
	free(path);
	if (rc == 0 && p->dir == NULL)
		rc = hf_fail_errno(e, "%s", name);
	if (rc != 0)
		hf_profile_free(p);
	return rc;
}

void
hf_profile_free(struct hf_profile *p)
{
	json_decref(p->root);
	json_decref(p->scope);
	free(p->dir);
	free(p->version);
	memset(p, 0, sizeof(*p));
}

static const char *
text(const struct hf_profile *p, const char *key)
{
	return json_string_value(json_object_get(p->root, key));
}

const char *
hf_profile_name(const struct hf_profile *p)
{
	return text(p, "name");
}

bool
hf_profile_full_history(const struct hf_profile *p)
{
	return strcmp(text(p, "history"), "full") == 0;
}

void
hf_profile_endpoint(const struct hf_profile *p, struct hf_endpoint *out)
{
	json_t *headers = json_object_get(p->root, "headers"), *h;
	size_t i;

	json_array_foreach(headers, i, h) out->header[out->n_header++] =
	    json_string_value(h);
	out->model = text(p, "model");
	out->base = p->scope;
	out->no_user = json_is_false(json_object_get(p->root, "user"));
}

/* --- starting ------------------------------------------------------------- */

/* A port that is free now.  What is started does not tell which one the kernel
 * gave it, so that it must be told. */
static int
free_port(struct hf_error *e)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port;

	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&sa, &size) != 0)
		port = hf_fail_errno(e, "no port");
	else
		port = ntohs(sa.sin_port);
	if (fd >= 0)
		close(fd);
	return port;
}

/* What is installed stays there for the next run; caller frees. */
static char *
cache_dir(void)
{
	const char *at = getenv("HF_BENCH_CACHE"), *home = getenv("HOME");
	char *path, *p;

	if (at != NULL)
		path = hf_xstrdup(at);
	else
		path = hf_format(
		    "%s/.cache/continuitybench", home == NULL ? "/tmp" : home);
	for (p = strchr(path + 1, '/');; p = strchr(p + 1, '/')) {
		if (p != NULL)
			*p = '\0';
		mkdir(path, 0700); /* what fails is told by who needs it */
		if (p == NULL)
			return path;
		*p = '/';
	}
}

/* Targets that prefill, each once; new. */
static json_t *
prefills(json_t *routes)
{
	json_t *out = json_array(), *seen = json_object(), *r, *t;
	size_t i, k;

	json_array_foreach(routes, i, r)
	{
		json_array_foreach(json_object_get(r, "targets"), k, t)
		{
			char *key = hf_format("%s/%s/%s",
			    json_string_value(json_object_get(t, "listener")),
			    json_string_value(json_object_get(t, "dialect")),
			    json_string_value(json_object_get(t, "model")));

			if (json_is_true(json_object_get(t, "prefill")) &&
			    json_object_get(seen, key) == NULL)
				json_array_append(out, t);
			json_object_set_new(seen, key, json_true());
			free(key);
		}
	}
	json_decref(seen);
	return out;
}

/* What all templates of the profile may name; new. */
static json_t *
make_scope(const struct hf_profile *p, const struct hf_launch *l,
    const struct hf_suite *s, const struct hf_gateway_options *o, int port)
{
	const char *url[HF_MAX_LISTENERS] = { 0 };
	char *cache = cache_dir();
	char *program = hf_launch_program(o->program, "holdfast");
	json_t *scope, *routes;

	for (unsigned i = 0; i < s->n_listener; i++)
		url[i] = l->listener[i];
	routes = hf_endpoint_routes(s, url);
	scope = json_pack(
	    "{s:s,s:s,s:s,s:i,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:s,s:o,s:o,s:o}",
	    "profiles", p->dir, "cache", cache, "dir", l->dir, "port", port,
	    "program", program, "first_token_ms",
	    (int)(o->first_token_ms > s->first_token_ms ? o->first_token_ms :
							  s->first_token_ms),
	    "idle_ms", (int)o->idle_ms, "patient_ms", PATIENT_MS, "workers",
	    (int)o->workers, "backoff_ms", (int)s->backoff_ms, "retries",
	    (int)s->max_retries, "continue_text", HF_CONTINUE, "listeners",
	    hf_endpoint_listeners(s, url), "routes", routes, "prefills",
	    prefills(routes));
	HF_CHECK(scope != NULL);
	/* Waits that a suite is about. */
	HF_CHECK(json_object_update_new(scope,
		     json_pack("{s:b,s:i}", "storm", s->storm.quota > 0,
			 "deadline_ms", (int)s->deadline_ms)) == 0);
	free(cache);
	free(program);
	return scope;
}

/* argv of a list of templates, ended by NULL; words are to be freed. */
static void
make_argv(json_t *list, json_t *scope, char *argv[MAX_ARGS])
{
	json_t *w;
	size_t i;

	memset(argv, 0, MAX_ARGS * sizeof(*argv));
	json_array_foreach(list, i, w) argv[i] =
	    hf_fill_text(json_string_value(w), scope);
}

static void
free_argv(char *argv[MAX_ARGS])
{
	for (unsigned i = 0; argv[i] != NULL; i++)
		free(argv[i]);
}

/* A program that is waited for, if the profile has one under this key. */
static int
run_and_wait(const struct hf_profile *p, struct hf_launch *l, json_t *scope,
    const char *key, struct hf_error *e)
{
	json_t *list = json_object_get(p->root, key);
	char *argv[MAX_ARGS], log[40];
	int rc;

	if (list == NULL)
		return 0;
	snprintf(log, sizeof(log), "%s.log", key);
	make_argv(list, scope, argv);
	rc = hf_launch_and_wait(l, argv, log, e);
	free_argv(argv);
	return rc;
}

/* The last line that "version" said, without what leads to it in a path. */
static void
read_version(struct hf_profile *p, const struct hf_launch *l)
{
	char *path = hf_launch_path(l, "version.log"), line[200];
	FILE *f = fopen(path, "re");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\r\n")] = '\0';
		if (line[0] == '\0')
			continue;
		free(p->version);
		p->version = hf_xstrdup(line);
	}
	if (f != NULL)
		fclose(f);
	free(path);
}

static int
write_file(const struct hf_profile *p, const struct hf_launch *l, json_t *scope,
    const char *name, const char *from, struct hf_error *e)
{
	char *in = hf_format("%s/%s", p->dir, from), part[4096];
	char *to = hf_launch_path(l, name);
	FILE *f = fopen(in, "re");
	struct hf_buf raw, out;
	int rc = 0;
	size_t n;

	hf_buf_init(&raw, HF_BUF_NOCAP);
	hf_buf_init(&out, HF_BUF_NOCAP);
	while (f != NULL && (n = fread(part, 1, sizeof(part), f)) > 0)
		hf_buf_put(&raw, part, n);
	if (f == NULL || ferror(f))
		rc = hf_fail_errno(e, "%s", in);
	if (f != NULL)
		fclose(f);
	if (rc == 0) {
		hf_fill(&out, hf_buf_str(&raw), scope);
		f = fopen(to, "we");
		if (f == NULL || fwrite(out.data, 1, out.size, f) != out.size)
			rc = hf_fail_errno(e, "%s", to);
		if (f != NULL && fclose(f) != 0 && rc == 0)
			rc = hf_fail_errno(e, "%s", to);
	}
	hf_buf_free(&raw);
	hf_buf_free(&out);
	free(in);
	free(to);
	return rc;
}

static int
await(struct hf_launch *l, const char *ready, struct hf_error *e)
{
	int64_t end = hf_now_us() + START_MS * INT64_C(1000);
	struct timespec ts = { 0, LOOK_MS * 1000000L };

	while (hf_now_us() < end) {
		if (waitpid(l->gateway, NULL, WNOHANG) != 0) {
			l->gateway = 0;
			return hf_fail(e, HF_EUNREACH,
			    "the gateway ended at its start: see gateway.log");
		}
		if (hf_client_get(ready) != 0)
			return 0;
		nanosleep(&ts, NULL);
	}
	return hf_fail(e, HF_ETIMEOUT,
	    "the gateway did not answer in %d ms: see gateway.log", START_MS);
}

static int
start(const struct hf_profile *p, struct hf_launch *l, json_t *scope,
    struct hf_error *e)
{
	char *argv[MAX_ARGS], *url, *ready;
	struct hf_buf b;
	int rc;

	make_argv(json_object_get(p->root, "start"), scope, argv);
	url = hf_fill_text(text(p, "url"), scope);
	snprintf(l->url, sizeof(l->url), "%s", url);
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_fill(&b, HF_STR("http://127.0.0.1:{port}"), scope);
	hf_buf_puts(&b, text(p, "ready"));
	ready = hf_buf_take(&b, NULL);
	rc = hf_launch_child(
	    l, argv[0], argv, -1, "gateway.log", &l->gateway, e);
	if (rc == 0)
		rc = await(l, ready, e);
	free(ready);
	free(url);
	free_argv(argv);
	return rc;
}

int
hf_profile_start(struct hf_profile *p, struct hf_launch *l,
    const struct hf_suite *s, const struct hf_gateway_options *o,
    struct hf_error *e)
{
	json_t *files = json_object_get(p->root, "files"), *scope, *v;
	int port = free_port(e), rc;
	const char *name;

	if (port < 0)
		return port;
	scope = p->scope = make_scope(p, l, s, o, port);
	rc = run_and_wait(p, l, scope, "install", e);
	if (rc == 0)
		rc = run_and_wait(p, l, scope, "version", e);
	if (rc == 0)
		read_version(p, l);
	json_object_foreach(files, name, v) if (rc == 0) rc =
	    write_file(p, l, scope, name, json_string_value(v), e);
	if (rc == 0)
		rc = start(p, l, scope, e);
	if (rc != 0)
		l->keep = true; /* the logs tell why */
	return rc;
}
