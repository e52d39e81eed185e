/*
 * Reading a database that a daemon may be using, may have left or may have
 * died over, without writing.
 *
 * A plain read-only connection is not that: it makes -wal and -shm where they
 * are missing and, being the first, rebuilds the log's index in -shm.  So:
 *
 *   -shm is there     it is opened read-only.  While a daemon runs its locks
 *                     are used; when none does, the library builds the index
 *                     of the log in its own memory.
 *   it is not, and    nobody has the database open.  The log is read without
 *   -wal holds frames locks, its index in this process's memory.
 *   neither           the database file alone is all there is.
 *
 * Closing drops only locks of this process, which has no other connection.
 */
#include <config.h>

#include "store/inspect_int.h"

#include <ctype.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

#define BUSY_TIMEOUT_MS 5000
#define OPEN_TRIES 5

enum how { LIVE_INDEX, OWN_INDEX, NO_LOG };

static int64_t
size_of(const char *path, const char *suffix)
{
	char name[4200];
	struct stat sb;

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	return stat(name, &sb) < 0 ? -1 : (int64_t)sb.st_size;
}

static enum how
how_to_open(const char *path)
{
	int64_t wal = size_of(path, "-wal");

	if (wal < 0)
		return NO_LOG;
	if (size_of(path, "-shm") > 0)
		return LIVE_INDEX;
	return wal > 0 ? OWN_INDEX : NO_LOG;
}

/* The path as a URI, its odd bytes escaped. */
static void
put_uri(struct hf_buf *out, const char *path, enum how how)
{
	static const char *const options[] = {
		[LIVE_INDEX] = "?mode=ro&readonly_shm=1",
		[OWN_INDEX] = "?mode=ro&vfs=unix-none",
		[NO_LOG] = "?mode=ro&immutable=1",
	};

	hf_buf_puts(out, "file:");
	for (const char *p = path; *p != '\0'; p++) {
		if (isalnum((unsigned char)*p) || strchr("/._-", *p) != NULL)
			hf_buf_putc(out, *p);
		else
			hf_buf_printf(out, "%%%02x", (unsigned char)*p);
	}
	hf_buf_puts(out, options[how]);
	hf_buf_putc(out, '\0');
}

static int
configure(struct hf_db *db, enum how how, struct hf_error *e)
{
	int64_t n;
	int rc;

	sqlite3_extended_result_codes(db->h, 1);
	sqlite3_busy_timeout(db->h, BUSY_TIMEOUT_MS);
	sqlite3_db_config(db->h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	rc = how != OWN_INDEX ?
	    0 :
	    hf_db_exec(db, "PRAGMA locking_mode = EXCLUSIVE", e);
	if (rc == 0)
		rc = hf_db_exec(db,
		    "PRAGMA query_only = ON;"
		    "PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF;"
		    "PRAGMA temp_store = MEMORY;",
		    e);
	/* The first read: is it a database that can be read so? */
	if (rc == 0)
		rc = hf_db_number(
		    db, "SELECT count(*) FROM sqlite_schema", &n, e);
	return rc;
}

static int
try_open(struct hf_db *db, const char *path, struct hf_error *e)
{
	enum how how = how_to_open(path);
	struct hf_buf uri;
	int rc;

	/* .forks stays 0: for programs that never fork. */
	memset(db, 0, sizeof(*db));
	hf_buf_init(&uri, HF_BUF_NOCAP);
	put_uri(&uri, path, how);
	if (!hf_buf_ok(&uri))
		return hf_fail(e, HF_ENOMEM, "path of the database");
	rc = sqlite3_open_v2(uri.data, &db->h,
	    SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
	hf_buf_free(&uri);
	rc = rc != SQLITE_OK ? hf_db_fail(db, rc, path, e) :
			       configure(db, how, e);
	if (rc < 0)
		hf_db_close(db);
	return rc;
}

int
hf_offline_open(struct hf_db *db, const char *path, struct hf_error *e)
{
	int rc = HF_EBUSY;

	if (strlen(path) > 4000)
		return hf_fail(e, HF_EINVAL, "path of the database: too long");
	if (access(path, F_OK) < 0)
		return hf_fail(e, HF_ENOTFOUND, "%s: no such database", path);
	/* A daemon that starts or ends just now changes which way works. */
	for (int i = 0; i < OPEN_TRIES; i++) {
		rc = try_open(db, path, e);
		if (rc != HF_EREADONLY && rc != HF_EBUSY && rc != HF_EIO &&
		    rc != HF_ENOTFOUND)
			break;
		usleep(20000);
	}
	return rc;
}
