/*
 * Starting the reference proxy in a gateway's place.
 */
#include <config.h>

#include "bench/launch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "bench/format.h"

/* Its address, from the line that it prints. */
static int
read_address(struct hf_launch *l, int fd, struct hf_error *e)
{
	FILE *f = fdopen(fd, "r");
	char line[128], url[64];

	HF_CHECK(f != NULL);
	while (l->url[0] == '\0' && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "proxy %63s", url) == 1)
			snprintf(l->url, sizeof(l->url), "%s", url);
	fclose(f);
	if (l->url[0] == '\0')
		return hf_fail(
		    e, HF_EUNREACH, "the proxy did not start: see proxy.log");
	return 0;
}

#define MAX_ARGS (24 + 2 * HF_MAX_LISTENERS)

/* One more argument of its command line; 'arg' is taken. */
static void
add(struct hf_launch *l, unsigned *n, char *arg)
{
	HF_CHECK(*n + 1 < MAX_ARGS);
	l->proxy[(*n)++] = arg;
}

static void
add_pair(struct hf_launch *l, unsigned *n, const char *name, char *value)
{
	add(l, n, hf_xstrdup(name));
	add(l, n, value);
}

static void
make_command(struct hf_launch *l, const struct hf_suite *s,
    const struct hf_provider_options *o, unsigned patience_ms, const char *bug)
{
	unsigned n = 0;

	l->proxy = hf_xcalloc(MAX_ARGS, sizeof(*l->proxy));
	add(l, &n, hf_xstrdup("continuitybench"));
	add(l, &n, hf_xstrdup("proxy"));
	add(l, &n, hf_xstrdup("--with-parent"));
	add_pair(l, &n, "--suite", hf_xstrdup(o->suite));
	add_pair(l, &n, "--seed", hf_format("%lu", o->seed));
	add_pair(l, &n, "--size", hf_format("%lu", o->size));
	if (o->knobs != NULL)
		add_pair(l, &n, "--knobs", hf_xstrdup(o->knobs));
	add_pair(l, &n, "--patience-ms",
	    hf_format("%u",
		patience_ms > s->first_token_ms ? patience_ms :
						  s->first_token_ms));
	add_pair(l, &n, "--journal", hf_launch_path(l, "proxy.journal"));
	if (l->port != 0)
		add_pair(l, &n, "--listen", hf_format("127.0.0.1:%u", l->port));
	for (unsigned i = 0; i < s->n_listener; i++)
		add_pair(l, &n, "--provider",
		    hf_format("%s=%s", s->listener[i].name, l->listener[i]));
	if (bug != NULL)
		add_pair(l, &n, "--bug", hf_xstrdup(bug));
}

static int
start(struct hf_launch *l, struct hf_error *e)
{
	int fds[2], rc;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return hf_fail_errno(e, "pipe");
	rc = hf_launch_child(
	    l, "/proc/self/exe", l->proxy, fds[1], "proxy.log", &l->gateway, e);
	close(fds[1]);
	if (rc == 0)
		return read_address(l, fds[0], e);
	close(fds[0]);
	return rc;
}

int
hf_launch_proxy(struct hf_launch *l, const struct hf_suite *s,
    const struct hf_provider_options *o, unsigned patience_ms, const char *bug,
    struct hf_error *e)
{
	char *journal = hf_launch_path(l, "proxy.journal");
	int rc = s->kills ? hf_launch_reserve_port(l, e) : 0;

	unlink(journal); /* of another run */
	free(journal);
	if (rc != 0)
		return rc;
	make_command(l, s, o, patience_ms, bug);
	return start(l, e);
}
