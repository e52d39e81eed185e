/*
 * Starting the reference proxy in a gateway's place.
 */
#include <config.h>

#include "bench/launch.h"

#include <errno.h>
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

int
hf_launch_proxy(struct hf_launch *l, const struct hf_suite *s,
    const struct hf_provider_options *o, unsigned patience_ms, const char *bug,
    struct hf_error *e)
{
	char self[] = "/proc/self/exe", seed[24], size[24], ms[24];
	char provider[] = "--provider", bug_option[] = "--bug";
	char *suite = hf_xstrdup(o->suite), *at[HF_MAX_LISTENERS];
	char *name = hf_xstrdup(bug == NULL ? "" : bug);
	char *argv[16 + 2 * HF_MAX_LISTENERS] = { (char[]){ "continuitybench" },
		(char[]){ "proxy" }, (char[]){ "--with-parent" },
		(char[]){ "--suite" }, suite, (char[]){ "--seed" }, seed,
		(char[]){ "--size" }, size, (char[]){ "--patience-ms" }, ms };
	unsigned n = 11;
	int fds[2], rc;

	snprintf(seed, sizeof(seed), "%lu", o->seed);
	snprintf(size, sizeof(size), "%lu", o->size);
	snprintf(ms, sizeof(ms), "%u", patience_ms);
	for (unsigned i = 0; i < s->n_listener; i++) {
		at[i] = hf_format("%s=%s", s->listener[i].name, l->listener[i]);
		argv[n++] = provider;
		argv[n++] = at[i];
	}
	if (bug != NULL) {
		argv[n++] = bug_option;
		argv[n++] = name;
	}
	if (pipe2(fds, O_CLOEXEC) != 0) {
		rc = hf_fail_errno(e, "pipe");
	} else {
		rc = hf_launch_child(
		    l, self, argv, fds[1], "proxy.log", &l->gateway, e);
		close(fds[1]);
		if (rc == 0)
			rc = read_address(l, fds[0], e);
		else
			close(fds[0]);
	}
	for (unsigned i = 0; i < s->n_listener; i++)
		free(at[i]);
	free(name);
	free(suite);
	return rc;
}
