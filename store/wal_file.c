/*
 * The library writes each frame of the log by two calls, its header and its
 * page, which costs several times what the bytes do.  Here they are gathered
 * and written together.
 *
 * Nothing is held back that somebody else may read or that must survive:
 * the last frame of a commit (its header has the size of the database in it)
 * goes at once with all before it, before the library tells other connections
 * that it is there; a sync, a read, or a write anywhere else writes first what
 * is held.  Only appended frames are held back.  A rollback tells nobody, so
 * frames may not be written before their commit: db.c sets cache_spill off.
 * What fails is reported by the
 * write that completes the commit, and the transaction is rolled back.
 *
 * Used by one thread per connection, as the library uses the file.
 */
#include <config.h>

#include "store/wal_file.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hf.h"

#define FRAME_HEADER 24
#define HELD_MAX ((size_t)128 * 1024)

struct file {
	sqlite3_file base;  /* what the library sees */
	sqlite3_file *real; /* in the memory behind this struct */
	char *held;	    /* HELD_MAX bytes; NULL: none needed yet */
	size_t n_held;
	sqlite3_int64 end; /* where the last write ended; -1: nowhere */
	bool ends_commit;  /* the page that comes next does */
};

static sqlite3_vfs *real_vfs;
static sqlite3_vfs vfs;

static struct file *
file_of(sqlite3_file *f)
{
	return (struct file *)f;
}

static int
flush(struct file *f)
{
	size_t n = f->n_held;
	int rc;

	if (n == 0)
		return SQLITE_OK;
	f->n_held = 0;
	rc = f->real->pMethods->xWrite(
	    f->real, f->held, (int)n, f->end - (sqlite3_int64)n);
	if (rc != SQLITE_OK)
		f->end = -1;
	return rc;
}

/* False: no memory to hold it in. */
static bool
hold(struct file *f, const void *p, int n)
{
	if (f->held == NULL)
		f->held = malloc(HELD_MAX);
	if (f->held == NULL)
		return false;
	memcpy(f->held + f->n_held, p, (size_t)n);
	f->n_held += (size_t)n;
	return true;
}

static bool
is_commit(const void *p, int n)
{
	const unsigned char *h = p;

	return n == FRAME_HEADER && (h[4] | h[5] | h[6] | h[7]) != 0;
}

static int
do_write(sqlite3_file *base, const void *p, int n, sqlite3_int64 at)
{
	struct file *f = file_of(base);
	bool appends = at == f->end, completes = f->ends_commit;
	int rc = SQLITE_OK;

	f->ends_commit = is_commit(p, n);
	if (!appends || (size_t)n > HELD_MAX - f->n_held)
		rc = flush(f);
	if (rc != SQLITE_OK)
		return rc;
	if (appends && (size_t)n <= HELD_MAX && hold(f, p, n)) {
		f->end += n;
		return completes ? flush(f) : SQLITE_OK;
	}
	rc = f->real->pMethods->xWrite(f->real, p, n, at);
	f->end = rc == SQLITE_OK ? at + n : -1;
	return rc;
}

static int
do_read(sqlite3_file *base, void *p, int n, sqlite3_int64 at)
{
	struct file *f = file_of(base);
	int rc = flush(f);

	return rc != SQLITE_OK ? rc :
				 f->real->pMethods->xRead(f->real, p, n, at);
}

static int
do_truncate(sqlite3_file *base, sqlite3_int64 size)
{
	struct file *f = file_of(base);
	int rc = flush(f);

	f->end = -1;
	return rc != SQLITE_OK ? rc :
				 f->real->pMethods->xTruncate(f->real, size);
}

static int
do_sync(sqlite3_file *base, int flags)
{
	struct file *f = file_of(base);
	int rc = flush(f);

	return rc != SQLITE_OK ? rc : f->real->pMethods->xSync(f->real, flags);
}

static int
do_size(sqlite3_file *base, sqlite3_int64 *size)
{
	struct file *f = file_of(base);
	int rc = flush(f);

	return rc != SQLITE_OK ? rc :
				 f->real->pMethods->xFileSize(f->real, size);
}

/* What is held is of a transaction that did not commit. */
static int
do_close(sqlite3_file *base)
{
	struct file *f = file_of(base);

	free(f->held);
	f->held = NULL;
	return f->real->pMethods->xClose(f->real);
}

static int
do_lock(sqlite3_file *base, int how)
{
	struct file *f = file_of(base);

	return f->real->pMethods->xLock(f->real, how);
}

static int
do_unlock(sqlite3_file *base, int how)
{
	struct file *f = file_of(base);

	return f->real->pMethods->xUnlock(f->real, how);
}

static int
do_reserved(sqlite3_file *base, int *out)
{
	struct file *f = file_of(base);

	return f->real->pMethods->xCheckReservedLock(f->real, out);
}

static int
do_control(sqlite3_file *base, int op, void *arg)
{
	struct file *f = file_of(base);

	return f->real->pMethods->xFileControl(f->real, op, arg);
}

static int
do_sector(sqlite3_file *base)
{
	struct file *f = file_of(base);

	return f->real->pMethods->xSectorSize(f->real);
}

static int
do_device(sqlite3_file *base)
{
	struct file *f = file_of(base);

	return f->real->pMethods->xDeviceCharacteristics(f->real);
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = do_close,
	.xRead = do_read,
	.xWrite = do_write,
	.xTruncate = do_truncate,
	.xSync = do_sync,
	.xFileSize = do_size,
	.xLock = do_lock,
	.xUnlock = do_unlock,
	.xCheckReservedLock = do_reserved,
	.xFileControl = do_control,
	.xSectorSize = do_sector,
	.xDeviceCharacteristics = do_device,
};

/* Every other file is the real one's own. */
static int
do_open(sqlite3_vfs *self, const char *name, sqlite3_file *base, int flags,
    int *out)
{
	struct file *f = file_of(base);
	int rc;

	(void)self;
	if ((flags & SQLITE_OPEN_WAL) == 0)
		return real_vfs->xOpen(real_vfs, name, base, flags, out);
	memset(f, 0, sizeof(*f));
	f->end = -1;
	f->real = (sqlite3_file *)(void *)(f + 1);
	rc = real_vfs->xOpen(real_vfs, name, f->real, flags, out);
	f->base.pMethods = f->real->pMethods == NULL ? NULL : &methods;
	return rc;
}

static void
register_once(void)
{
	real_vfs = sqlite3_vfs_find(NULL);
	HF_CHECK(real_vfs != NULL);
	vfs = *real_vfs;
	vfs.zName = "holdfast";
	vfs.szOsFile = (int)sizeof(struct file) + real_vfs->szOsFile;
	vfs.xOpen = do_open;
	HF_CHECK(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
}

const char *
hf_wal_file_vfs(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_once);
	return vfs.zName;
}
