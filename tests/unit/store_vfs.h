/*
 * A layer over the operating system's file calls of the database library:
 * who takes the locks of writers and checkpoints without the writer mutex,
 * and what happens when the n-th write or sync fails.
 */
#ifndef HF_TESTS_STORE_VFS_H
#define HF_TESTS_STORE_VFS_H

#include "base/shm.h"

struct vfs_watch {
	/* Not NULL: who locks for writing or a checkpoint must hold its
	 * writer mutex. */
	struct hf_shm_header *h;
	_Atomic int locks; /* such locks taken */
	_Atomic int naked; /* of them, without the mutex */
	_Atomic int writes;
	/* Counts down with each 2 KB written, sync and truncate; the one that
	 * reaches 0 fails with fail_code (and all later ones, if 'sticky').
	 * 0: none does. */
	_Atomic int fail_at;
	int fail_code;
	bool sticky;
	_Atomic int failed; /* calls that were made to fail */
};

extern struct vfs_watch vfs_watch;

/* Told of what goes to a file, before it does, and that a sync is done; any
 * thread.  'name' is that of the open call and lives as long as the file is
 * open.  NULL: nobody. */
struct vfs_recorder {
	void (*write)(
	    void *arg, const char *name, const void *p, int n, int64_t at);
	void (*truncate)(void *arg, const char *name, int64_t size);
	void (*sync)(void *arg, const char *name);
	void *arg;
};
extern const struct vfs_recorder *_Atomic vfs_recorder;

/* Before the first database is opened. */
void vfs_register(void);

#endif
