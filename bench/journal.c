/*
 * A log of JSON lines.
 */
#include <config.h>

#include "bench/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "bench/dialect.h"

struct hf_journal {
	int fd;
};

/* Tells of each whole line; where the last of them ends, in *end. */
static int
read_back(FILE *f, const char *path, void (*fn)(void *arg, json_t *o),
    void *arg, off_t *end, struct hf_error *e)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t n;
	int rc = 0;

	while (rc == 0 && (n = getline(&line, &size, f)) > 0 &&
	    line[n - 1] == '\n') {
		json_t *o = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL);

		*end += n;
		if (o == NULL)
			rc = hf_fail(e, HF_ECORRUPT, "%s: a broken line", path);
		else
			fn(arg, o);
		json_decref(o);
	}
	free(line);
	return rc;
}

int
hf_journal_open(struct hf_journal **out, const char *path,
    void (*fn)(void *arg, json_t *o), void *arg, struct hf_error *e)
{
	int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	FILE *f = fopen(path, "re");
	off_t end = 0;
	int rc;

	*out = NULL;
	if (fd < 0 || f == NULL)
		rc = hf_fail_errno(e, "%s", path);
	else
		rc = read_back(f, path, fn, arg, &end, e);
	if (rc == 0 && ftruncate(fd, end) != 0)
		rc = hf_fail_errno(e, "%s", path);
	if (f != NULL)
		fclose(f);
	if (rc != 0) {
		if (fd >= 0)
			close(fd);
		return rc;
	}
	*out = hf_xcalloc(1, sizeof(**out));
	(*out)->fd = fd;
	return 0;
}

void
hf_journal_close(struct hf_journal *j)
{
	if (j == NULL)
		return;
	close(j->fd);
	free(j);
}

void
hf_journal_put(struct hf_journal *j, json_t *o)
{
	struct hf_buf b;
	size_t at = 0;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_json(&b, o);
	hf_buf_putc(&b, '\n');
	while (at < b.size) {
		ssize_t n = write(j->fd, b.data + at, b.size - at);

		if (n < 0 && errno != EINTR) {
			perror("continuitybench: journal");
			_exit(EXIT_FAILURE);
		}
		at += n > 0 ? (size_t)n : 0;
	}
	hf_buf_free(&b);
	json_decref(o);
}
