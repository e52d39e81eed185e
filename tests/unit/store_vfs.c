#include <config.h>

#include "tests/unit/store_vfs.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

/* Lock bytes of the WAL index: the writer's and the checkpointer's. */
#define LOCK_WRITE 0
#define LOCK_CHECKPOINT 1
/* About half a page: a frame of the log has its header and its page. */
#define PIECE 2048

struct file {
	sqlite3_file base;  /* what the library sees */
	sqlite3_file *real; /* in the memory behind this struct */
	const char *name;   /* NULL: a temporary file */
};

struct vfs_watch vfs_watch;
const struct vfs_recorder *_Atomic vfs_recorder;

static sqlite3_vfs *real_vfs;

static sqlite3_file *
real(sqlite3_file *f)
{
	return ((struct file *)f)->real;
}

/* Who is to be told about this file; one look, since it may change. */
static const struct vfs_recorder *
recorder_of(sqlite3_file *f)
{
	return ((struct file *)f)->name == NULL ? NULL :
						  atomic_load(&vfs_recorder);
}

static const char *
name_of(sqlite3_file *f)
{
	return ((struct file *)f)->name;
}

static bool
fails(void)
{
	int left;

	if (atomic_load(&vfs_watch.fail_at) == 0)
		return false;
	left = atomic_fetch_sub(&vfs_watch.fail_at, 1) - 1;
	if (left > 0)
		return false;
	/* 1 again: so does the next one.  0: none any more. */
	atomic_store(&vfs_watch.fail_at, vfs_watch.sticky ? 1 : 0);
	atomic_fetch_add(&vfs_watch.failed, 1);
	return true;
}

static int
do_close(sqlite3_file *f)
{
	return real(f)->pMethods->xClose(real(f));
}

static int
do_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	return real(f)->pMethods->xRead(real(f), p, n, at);
}

/* A large write can fail at each of its pieces. */
static int
do_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	const struct vfs_recorder *r = recorder_of(f);

	atomic_fetch_add(&vfs_watch.writes, 1);
	for (int i = 0; i < n; i += PIECE) {
		int piece = n - i < PIECE ? n - i : PIECE;

		if (!fails())
			continue;
		/* What is before it got there, and half of it. */
		if (i + piece / 2 > 0)
			real(f)->pMethods->xWrite(
			    real(f), p, i + piece / 2, at);
		return vfs_watch.fail_code;
	}
	for (int i = 0; r != NULL && i < n; i += PIECE)
		r->write(r->arg, name_of(f), (const char *)p + i,
		    n - i < PIECE ? n - i : PIECE, at + i);
	return real(f)->pMethods->xWrite(real(f), p, n, at);
}

static int
do_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	const struct vfs_recorder *r = recorder_of(f);

	if (fails())
		return SQLITE_IOERR_TRUNCATE;
	if (r != NULL)
		r->truncate(r->arg, name_of(f), size);
	return real(f)->pMethods->xTruncate(real(f), size);
}

static int
do_sync(sqlite3_file *f, int flags)
{
	const struct vfs_recorder *r = recorder_of(f);
	int rc;

	if (fails())
		return SQLITE_IOERR_FSYNC;
	rc = real(f)->pMethods->xSync(real(f), flags);
	if (rc == SQLITE_OK && r != NULL)
		r->sync(r->arg, name_of(f));
	return rc;
}

static int
do_size(sqlite3_file *f, sqlite3_int64 *size)
{
	return real(f)->pMethods->xFileSize(real(f), size);
}

static int
do_lock(sqlite3_file *f, int how)
{
	return real(f)->pMethods->xLock(real(f), how);
}

static int
do_unlock(sqlite3_file *f, int how)
{
	return real(f)->pMethods->xUnlock(real(f), how);
}

static int
do_reserved(sqlite3_file *f, int *out)
{
	return real(f)->pMethods->xCheckReservedLock(real(f), out);
}

static int
do_control(sqlite3_file *f, int op, void *arg)
{
	return real(f)->pMethods->xFileControl(real(f), op, arg);
}

static int
do_sector(sqlite3_file *f)
{
	return real(f)->pMethods->xSectorSize(real(f));
}

static int
do_device(sqlite3_file *f)
{
	return real(f)->pMethods->xDeviceCharacteristics(real(f));
}

static int
do_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
	return real(f)->pMethods->xShmMap(real(f), page, size, extend, out);
}

/* Does this thread hold the writer mutex?  The C library's own field: there
 * is no call that tells. */
static bool
holds_mutex(void)
{
	return vfs_watch.h->writer.__data.__owner == (int)gettid();
}

static int
do_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
	if (vfs_watch.h != NULL && (flags & SQLITE_SHM_EXCLUSIVE) != 0 &&
	    (flags & SQLITE_SHM_LOCK) != 0 &&
	    (at == LOCK_WRITE || at == LOCK_CHECKPOINT)) {
		atomic_fetch_add(&vfs_watch.locks, 1);
		if (!holds_mutex())
			atomic_fetch_add(&vfs_watch.naked, 1);
	}
	return real(f)->pMethods->xShmLock(real(f), at, n, flags);
}

static void
do_shm_barrier(sqlite3_file *f)
{
	real(f)->pMethods->xShmBarrier(real(f));
}

static int
do_shm_unmap(sqlite3_file *f, int drop)
{
	return real(f)->pMethods->xShmUnmap(real(f), drop);
}

static const sqlite3_io_methods methods = {
	.iVersion = 2,
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
	.xShmMap = do_shm_map,
	.xShmLock = do_shm_lock,
	.xShmBarrier = do_shm_barrier,
	.xShmUnmap = do_shm_unmap,
};

static int
do_open(
    sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out)
{
	struct file *file = (struct file *)f;
	int rc;

	(void)vfs;
	file->real = (sqlite3_file *)(void *)(file + 1);
	file->name = name;
	rc = real_vfs->xOpen(real_vfs, name, file->real, flags, out);
	file->base.pMethods = file->real->pMethods == NULL ? NULL : &methods;
	return rc;
}

void
vfs_register(void)
{
	static sqlite3_vfs shim;

	real_vfs = sqlite3_vfs_find(NULL);
	shim = *real_vfs;
	shim.zName = "watched";
	shim.szOsFile = (int)sizeof(struct file) + real_vfs->szOsFile;
	shim.xOpen = do_open;
	sqlite3_vfs_register(&shim, 1);
}
