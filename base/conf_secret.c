/*
 * Secrets of the configuration: read from a file, the environment or a
 * systemd credential.  No message repeats the value of such a key: somebody
 * may have written the secret itself where its place was asked for.
 */
#include <config.h>

#include "base/conf_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "base/log.h"

#define MAX_SECRET 8192

/* A secret goes into an HTTP header: visible ASCII only, one line. */
static int
keep(const char *p, size_t size, struct hf_arena *a, char **out,
    struct hf_error *e)
{
	while (size > 0 && (p[size - 1] == '\n' || p[size - 1] == '\r'))
		size--;
	if (size == 0)
		return hf_fail(e, HF_ECONFIG, "the secret is empty");
	for (size_t i = 0; i < size; i++)
		if (p[i] <= 0x20 || p[i] >= 0x7f)
			return hf_fail(e, HF_ECONFIG,
			    "the secret holds a "
			    "space, a line break or another byte that no "
			    "API key has");
	*out = hf_arena_alloc(a, size + 1);
	if (*out == NULL)
		return hf_fail(e, HF_ENOMEM, "out of memory");
	memcpy(*out, p, size);
	return 0;
}

static int
read_all(int fd, char *buf, size_t *size, struct hf_error *e)
{
	ssize_t n;

	*size = 0;
	do {
		n = read(fd, buf + *size, MAX_SECRET - *size);
		if (n < 0)
			return hf_fail_errno(e, "the file cannot be read");
		*size += (size_t)n;
	} while (n > 0 && *size < MAX_SECRET);
	if (*size == MAX_SECRET)
		return hf_fail(e, HF_ECONFIG,
		    "the secret is longer than %d "
		    "bytes",
		    MAX_SECRET - 1);
	return 0;
}

static int
from_file(const char *path, bool warn, struct hf_arena *a, char **out,
    struct hf_error *e)
{
	char buf[MAX_SECRET];
	struct stat st;
	size_t size;
	int fd, rc;

	/* A FIFO must not hang the start. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return hf_fail_errno(e, "%s cannot be opened", path);
	if (fstat(fd, &st) != 0) {
		rc = hf_fail_errno(e, "%s", path);
	} else if (!S_ISREG(st.st_mode)) {
		rc = hf_fail(e, HF_ECONFIG, "%s is not a plain file", path);
	} else {
		if (warn && (st.st_mode & S_IROTH) != 0)
			hf_log(HF_LOG_WARN,
			    "conf: secret file %s can be read "
			    "by everybody; chmod o-r",
			    path);
		rc = read_all(fd, buf, &size, e);
		if (rc == 0)
			rc = keep(buf, size, a, out, e);
	}
	close(fd);
	sodium_memzero(buf, sizeof(buf));
	return rc;
}

static int
from_env(const char *name, struct hf_arena *a, char **out, struct hf_error *e)
{
	const char *value;

	if (*name == '\0' || (*name >= '0' && *name <= '9') ||
	    strspn(name,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789_") != strlen(name))
		return hf_fail(e, HF_ECONFIG,
		    "unusable value; expected the "
		    "name of an environment variable");
	value = getenv(name);
	if (value == NULL)
		return hf_fail(e, HF_ECONFIG,
		    "the environment variable is not "
		    "set");
	return keep(value, strlen(value), a, out, e);
}

static int
from_credential(
    const char *name, struct hf_arena *a, char **out, struct hf_error *e)
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	char path[4096];
	int n;

	if (!hf_conf_word_ok(name, 255) || name[0] == '.')
		return hf_fail(e, HF_ECONFIG,
		    "unusable value; expected the "
		    "name of a credential");
	if (dir == NULL)
		return hf_fail(e, HF_ECONFIG,
		    "CREDENTIALS_DIRECTORY is not "
		    "set; expected a start by systemd with LoadCredential=");
	n = snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= sizeof(path))
		return hf_fail(e, HF_ECONFIG,
		    "the path of the credential is "
		    "too long");
	return from_file(path, false, a, out, e);
}

int
hf_conf_secret(const struct hf_param *p, const char *value, struct hf_arena *a,
    char **out, struct hf_error *e)
{
	switch ((int)p->type) {
	case HF_PARAM_SECRET_FILE:
		if (*value != '/' ||
		    !hf_conf_printable(value, 1, (size_t)p->max))
			return hf_fail(e, HF_ECONFIG,
			    "unusable value; "
			    "expected the absolute path of a file");
		return from_file(value, true, a, out, e);
	case HF_PARAM_SECRET_ENV:
		return from_env(value, a, out, e);
	case HF_PARAM_SECRET_CRED:
		return from_credential(value, a, out, e);
	default:
		return hf_fail(e, HF_EINVAL, "%s is not a secret", p->key);
	}
}
