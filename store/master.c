/*
 * Reading and making the master key.
 */
#include <config.h>

#include "store/master.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"

#define HEX_SIZE (2 * HF_MASTER_SIZE)

static int
parse_key(const char *path, const char *text, size_t size,
    uint8_t key[HF_MASTER_SIZE], struct hf_error *e)
{
	size_t n = 0;

	while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
		size--;
	if (size != HEX_SIZE ||
	    sodium_hex2bin(key, HF_MASTER_SIZE, text, size, NULL, &n, NULL) !=
		0 ||
	    n != HF_MASTER_SIZE)
		return hf_fail(e, HF_EPERM,
		    "master key %s: not a key "
		    "(%d hex digits are expected)",
		    path, HEX_SIZE);
	return 0;
}

/* HF_ENOTFOUND when there is no file. */
static int
read_key(
    const char *path, bool own, uint8_t key[HF_MASTER_SIZE], struct hf_error *e)
{
	char text[HEX_SIZE + 8];
	struct stat sb;
	ssize_t n;
	int fd, rc;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return hf_fail(
		    e, HF_ENOTFOUND, "master key %s: no such file", path);
	if (fd < 0 || fstat(fd, &sb) < 0) {
		hf_fail(
		    e, HF_EPERM, "master key %s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return HF_EPERM;
	}
	if (own && (sb.st_mode & 077) != 0) {
		close(fd);
		return hf_fail(e, HF_EPERM,
		    "master key %s: mode %04o lets "
		    "others read it; make it 0600",
		    path, (unsigned)sb.st_mode & 07777);
	}
	n = read(fd, text, sizeof(text));
	close(fd);
	if (n < 0)
		return hf_fail(
		    e, HF_EPERM, "master key %s: %s", path, strerror(errno));
	rc = parse_key(path, text, (size_t)n, key, e);
	sodium_memzero(text, sizeof(text));
	return rc;
}

static int
sync_folder(const char *path, struct hf_error *e)
{
	char copy[PATH_MAX];
	int fd, rc = 0;

	snprintf(copy, sizeof(copy), "%s", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		rc = hf_fail_errno(e, "folder of %s", path);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int
write_new(
    const char *path, const uint8_t key[HF_MASTER_SIZE], struct hf_error *e)
{
	char text[HEX_SIZE + 2];
	int fd, rc = 0;

	sodium_bin2hex(text, sizeof(text), key, HF_MASTER_SIZE);
	text[HEX_SIZE] = '\n';
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, HEX_SIZE + 1) != HEX_SIZE + 1 ||
	    fsync(fd) < 0)
		rc = hf_fail_errno(e, "master key %s", path);
	if (fd >= 0)
		close(fd);
	sodium_memzero(text, sizeof(text));
	return rc;
}

/*
 * Make the file under a name of its own and link it, so that the final name
 * never holds half a key and never replaces one.  A link that exists is
 * another process's key: read that.
 */
static int
make_key(const char *path, struct hf_error *e)
{
	uint8_t key[HF_MASTER_SIZE];
	char temp[PATH_MAX];
	int rc;

	if ((size_t)snprintf(temp, sizeof(temp), "%s.%d.new", path,
		(int)getpid()) >= sizeof(temp))
		return hf_fail(e, HF_EINVAL, "master key: path too long");
	randombytes_buf(key, sizeof(key));
	unlink(temp); /* of an earlier life of this pid */
	rc = write_new(temp, key, e);
	sodium_memzero(key, sizeof(key));
	if (rc == 0 && link(temp, path) < 0 && errno != EEXIST)
		rc = hf_fail_errno(e, "master key %s", path);
	unlink(temp);
	if (rc == 0)
		rc = sync_folder(path, e);
	return rc;
}

static int
read_any(const struct hf_store_conf *c, uint8_t key[HF_MASTER_SIZE],
    struct hf_error *e)
{
	if (c->key_credential != NULL)
		return read_key(c->key_credential, false, key, e);
	if (c->key_file != NULL)
		return read_key(c->key_file, true, key, e);
	return hf_fail(e, HF_EINVAL,
	    "master key: neither a file nor a "
	    "credential is named");
}

/* Is there a probe, and does the key in 's' open it? */
static int
check_probe(struct hf_seal *s, struct hf_db *db, bool *any, struct hf_error *e)
{
	sqlite3_stmt *st = hf_db_bind(db, HF_SQL_MASTER_KEY_NEWEST, e, "");
	bool ok;
	int rc;

	*any = false;
	if (st == NULL)
		return e->code;
	rc = hf_db_step(db, st, e);
	if (rc <= 0)
		return rc;
	*any = true;
	s->key_id = sqlite3_column_int64(st, 0);
	ok = hf_seal_probe_ok(s, hf_db_str(st, 1));
	hf_db_reset(st);
	if (!ok)
		return hf_fail(e, HF_EPERM,
		    "master key: it does not open "
		    "this database; another key sealed it");
	return 0;
}

int
hf_master_load(struct hf_seal *s, const struct hf_store_conf *c,
    struct hf_db *db, struct hf_error *e)
{
	uint8_t key[HF_MASTER_SIZE];
	bool any;
	int rc = read_any(c, key, e);

	if (rc == HF_ENOTFOUND)
		rc = HF_EPERM; /* the text says what is missing */
	if (rc < 0) {
		e->code = rc;
		return rc;
	}
	hf_seal_init(s, key);
	sodium_memzero(key, sizeof(key));
	rc = check_probe(s, db, &any, e);
	if (rc == 0 && !any)
		rc = hf_fail(e, HF_ECONFLICT,
		    "database: no master key yet; "
		    "the keeper makes it at first start");
	if (rc < 0)
		hf_seal_clear(s);
	return rc;
}

static int
add_probe(struct hf_seal *s, struct hf_db *db, struct hf_error *e)
{
	uint8_t probe[HF_PROBE_SIZE];
	int rc;

	s->key_id = 1;
	hf_seal_probe(s, probe);
	rc = hf_db_run(db, HF_SQL_MASTER_KEY_ADD, e, "ibi", s->key_id,
	    (struct hf_str){ (char *)probe, sizeof(probe) }, hf_wall_us());
	return rc < 0 ? rc : 0;
}

int
hf_master_load_or_make(struct hf_seal *s, const struct hf_store_conf *c,
    struct hf_db *db, struct hf_error *e)
{
	uint8_t key[HF_MASTER_SIZE];
	sqlite3_stmt *st;
	bool any;
	int rc;

	st = hf_db_bind(db, HF_SQL_MASTER_KEY_NEWEST, e, "");
	if (st == NULL)
		return e->code;
	rc = hf_db_step(db, st, e);
	if (rc < 0)
		return rc;
	any = rc == 1;
	hf_db_reset(st);
	rc = read_any(c, key, e);
	if (rc == HF_ENOTFOUND && !any && c->key_credential == NULL) {
		rc = make_key(c->key_file, e);
		if (rc == 0)
			rc = read_key(c->key_file, true, key, e);
	}
	if (rc == HF_ENOTFOUND) {
		/* Never a new key for a database that has one. */
		rc = HF_EPERM;
		e->code = rc;
	}
	if (rc < 0)
		return rc;
	hf_seal_init(s, key);
	sodium_memzero(key, sizeof(key));
	rc = any ? check_probe(s, db, &any, e) : add_probe(s, db, e);
	if (rc < 0)
		hf_seal_clear(s);
	return rc;
}
