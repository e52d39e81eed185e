/*
 * Loading, freeing and asking the configuration.
 */
#include <config.h>

#include "base/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sodium.h>

#include "base/conf_int.h"
#include "base/conf_show.h"

int
hf_conf_fail(struct hf_error *e, const char *file, int line, const char *block,
    const char *key, const char *fmt, ...)
{
	char what[sizeof(e->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	for (char *p = what; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	return hf_fail(e, HF_ECONFIG, "%s:%d: %s%s%s%s%s", file, line,
	    block == NULL ? "" : block, key == NULL ? "" : ".",
	    key == NULL ? "" : key, block == NULL && key == NULL ? "" : ": ",
	    what);
}

bool
hf_conf_one_edit(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b), i = 0;

	if (na > nb + 1 || nb > na + 1)
		return false;
	while (i < na && i < nb && a[i] == b[i])
		i++;
	if (na == nb)
		return i == na || strcmp(a + i + 1, b + i + 1) == 0 ||
		    (i + 1 < na && a[i] == b[i + 1] && a[i + 1] == b[i] &&
			strcmp(a + i + 2, b + i + 2) == 0);
	return na > nb ? strcmp(a + i + 1, b + i) == 0 :
			 strcmp(a + i, b + i + 1) == 0;
}

static int
parse(const char *name, const char *text, enum hf_conf_depth depth,
    struct hf_conf **out, struct hf_error *e)
{
	struct hf_conf_own *own;
	struct hf_conf_raw raw;
	struct hf_arena scratch;
	int rc;

	*out = NULL;
	own = calloc(1, sizeof(*own));
	if (own == NULL)
		return hf_fail(e, HF_ENOMEM, "no memory for the configuration");
	hf_arena_init(&own->a, HF_CONF_MAX_ARENA);
	hf_arena_init(&scratch, HF_CONF_MAX_ARENA);
	rc = hf_conf_raw_parse(&raw, name, text, &scratch, e);
	if (rc == 0)
		rc = hf_conf_build(&raw, depth, own, e);
	hf_arena_free(&scratch);
	if (rc != 0) {
		hf_conf_free(&own->c);
		return rc;
	}
	*out = &own->c;
	return 0;
}

int
hf_conf_parse(const char *name, const char *text, struct hf_conf **out,
    struct hf_error *e)
{
	return parse(name, text, HF_CONF_WHOLE, out, e);
}

int
hf_conf_parse_public(const char *name, const char *text, struct hf_conf **out,
    struct hf_error *e)
{
	return parse(name, text, HF_CONF_PUBLIC, out, e);
}

static int
read_file(const char *path, char *buf, struct hf_error *e)
{
	size_t size = 0;
	ssize_t n;
	int fd, rc = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return hf_fail(e, HF_ECONFIG, "%s: %s", path, strerror(errno));
	do {
		n = read(fd, buf + size, HF_CONF_MAX_TEXT + 1 - size);
		if (n > 0)
			size += (size_t)n;
	} while (
	    (n < 0 && errno == EINTR) || (n > 0 && size <= HF_CONF_MAX_TEXT));
	if (n < 0)
		rc = hf_fail(e, HF_ECONFIG, "%s: %s", path, strerror(errno));
	else if (size > HF_CONF_MAX_TEXT)
		rc = hf_conf_fail(e, path, 1, NULL, NULL,
		    "file of more than %zu bytes", HF_CONF_MAX_TEXT);
	else if (memchr(buf, '\0', size) != NULL)
		rc = hf_conf_fail(e, path, 1, NULL, NULL,
		    "not a text file: it holds a NUL byte");
	else
		buf[size] = '\0';
	close(fd);
	return rc;
}

int
hf_conf_read(const char *path, char **text, struct hf_error *e)
{
	int rc;

	*text = malloc(HF_CONF_MAX_TEXT + 2);
	if (*text == NULL)
		return hf_fail(e, HF_ENOMEM, "no memory for the configuration");
	rc = read_file(path, *text, e);
	if (rc != 0) {
		free(*text);
		*text = NULL;
	}
	return rc;
}

static int
load(const char *path, enum hf_conf_depth depth, struct hf_conf **out,
    struct hf_error *e)
{
	char *text;
	int rc;

	*out = NULL;
	rc = hf_conf_read(path, &text, e);
	if (rc == 0)
		rc = parse(path, text, depth, out, e);
	free(text);
	return rc;
}

int
hf_conf_load(const char *path, struct hf_conf **out, struct hf_error *e)
{
	return load(path, HF_CONF_WHOLE, out, e);
}

int
hf_conf_load_gateway(const char *path, struct hf_conf **out, struct hf_error *e)
{
	return load(path, HF_CONF_GATEWAY, out, e);
}

void
hf_conf_free(struct hf_conf *c)
{
	struct hf_conf_own *own;

	if (c == NULL)
		return;
	for (unsigned i = 0; i < c->n_provider; i++)
		if (c->provider[i].api_key != NULL)
			sodium_memzero(c->provider[i].api_key,
			    strlen(c->provider[i].api_key));
	own = hf_container_of(c, struct hf_conf_own, c);
	hf_arena_free(&own->a);
	free(own);
}

const struct hf_conf_route *
hf_conf_route(const struct hf_conf *c, struct hf_str model)
{
	for (unsigned i = 0; i < c->n_route; i++)
		if (hf_str_is(model, c->route[i].name))
			return &c->route[i];
	return NULL;
}
