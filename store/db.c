/*
 * Connections.  All settings of every connection are made and checked here.
 *
 * Automatic checkpoints are off and closing makes none: checkpoints run only
 * under the writer mutex, because a checkpoint that overlaps a commit which
 * restarts the log can lose committed pages (SQLite 3.7.0 to 3.51.2).
 */
#include <config.h>

#include "store/db.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "store/wal_file.h"

/* Counted up in every forked child: a connection must never cross a fork, and
 * asking the kernel who we are at every statement would cost more than most
 * statements do. */
static unsigned forks;

static void
forked(void)
{
	forks++;
}

static void
set_up_once(void)
{
	HF_CHECK(pthread_atfork(NULL, NULL, forked) == 0);
	/* Its counts of memory, that nobody reads, take a lock per malloc().
	 * Too late (another user of the library in this process): no harm. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/* Nobody should ever wait for a lock of the database itself, since writers
 * wait for the writer mutex; a foreign shell may still hold one. */
#define BUSY_TIMEOUT_MS 5000
/* The WAL file is cut back to this when it is reused: twice what the
 * checkpoint threshold lets it grow to (writer.c). */
#define WAL_SIZE_LIMIT "33554432"

static const char *const sql_text[HF_SQL_COUNT] = {
#define HF_SQL(name, text) [HF_SQL_##name] = text,
#include "store/sql.def"
#undef HF_SQL
};

const char *
hf_db_sql_text(enum hf_sql q)
{
	return sql_text[q];
}

static int
code_of(sqlite3 *h, int rc)
{
	int sys = h == NULL ? 0 : sqlite3_system_errno(h);

	if (rc == SQLITE_IOERR_NOMEM)
		return HF_ENOMEM;
	if (rc == SQLITE_CONSTRAINT_UNIQUE ||
	    rc == SQLITE_CONSTRAINT_PRIMARYKEY || rc == SQLITE_CONSTRAINT_ROWID)
		return HF_EEXIST;
	switch (rc & 0xff) {
	case SQLITE_FULL:
		return HF_EFULL;
	case SQLITE_READONLY:
		return HF_EREADONLY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_ERROR: /* our SQL is tested: the schema is not ours */
	case SQLITE_SCHEMA:
	case SQLITE_MISMATCH:
		return HF_ECORRUPT;
	case SQLITE_IOERR:
		return sys == ENOSPC || sys == EDQUOT ? HF_EFULL :
		    sys == EROFS		      ? HF_EREADONLY :
							HF_EIO;
	case SQLITE_CANTOPEN:
		return sys == ENOENT		  ? HF_ENOTFOUND :
		    sys == EACCES || sys == EPERM ? HF_EPERM :
		    sys == EROFS		  ? HF_EREADONLY :
		    sys == ENOSPC		  ? HF_EFULL :
						    HF_EIO;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
		return HF_EBUSY;
	case SQLITE_NOMEM:
		return HF_ENOMEM;
	case SQLITE_CONSTRAINT:
		return HF_EINVAL;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return HF_EPERM;
	case SQLITE_TOOBIG:
		return HF_ELIMIT;
	case SQLITE_INTERRUPT:
		return HF_ECANCELED;
	default:
		return HF_EIO;
	}
}

int
hf_db_fail(struct hf_db *db, int rc, const char *what, struct hf_error *e)
{
	int ext = rc, code;

	if (db->h != NULL && sqlite3_errcode(db->h) == (rc & 0xff))
		ext = sqlite3_extended_errcode(db->h);
	code = code_of(db->h, ext);
	hf_fail(e, code, "%s: %s (%d)", what,
	    db->h == NULL ? sqlite3_errstr(rc) : sqlite3_errmsg(db->h), ext);
	if (e != NULL)
		e->sys = ext;
	return code;
}

int
hf_db_exec(struct hf_db *db, const char *text, struct hf_error *e)
{
	int rc = sqlite3_exec(db->h, text, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : hf_db_fail(db, rc, "database", e);
}

void
hf_db_rollback(struct hf_db *db)
{
	if (sqlite3_get_autocommit(db->h) == 0)
		sqlite3_exec(db->h, "ROLLBACK", NULL, NULL, NULL);
}

int
hf_db_number(
    struct hf_db *db, const char *text, int64_t *out, struct hf_error *e)
{
	sqlite3_stmt *st;
	int rc = sqlite3_prepare_v2(db->h, text, -1, &st, NULL);

	if (rc != SQLITE_OK)
		return hf_db_fail(db, rc, "database", e);
	rc = sqlite3_step(st);
	*out = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		rc = hf_db_fail(db, rc, "database", e);
	else
		rc = 0;
	sqlite3_finalize(st);
	return rc;
}

/* Switching to WAL needs the file for oneself for a moment and does not wait
 * for it, so that several first starts at once must ask again. */
static int
set_wal(struct hf_db *db, struct hf_error *e)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000000 };
	int rc = 0;

	for (int i = 0; i < BUSY_TIMEOUT_MS / 10; i++) {
		rc = hf_db_exec(db, "PRAGMA journal_mode = WAL", e);
		if (rc != HF_EBUSY)
			break;
		nanosleep(&pause, NULL);
	}
	return rc;
}

static const struct {
	const char *set;
	const char *get;
	int64_t want;
	bool writers; /* of writing connections only */
} settings[] = {
	{ "PRAGMA foreign_keys = ON", "PRAGMA foreign_keys", 1, false },
	{ "PRAGMA wal_autocheckpoint = 0", "PRAGMA wal_autocheckpoint", 0,
	    false },
	{ "PRAGMA mmap_size = 0", "PRAGMA mmap_size", 0, false },
	{ "PRAGMA trusted_schema = OFF", "PRAGMA trusted_schema", 0, false },
	{ "PRAGMA temp_store = MEMORY", "PRAGMA temp_store", 2, false },
	{ "PRAGMA cache_size = -4096", "PRAGMA cache_size", -4096, false },
	/* Nothing reaches the log before its commit: what a rollback leaves
	 * held back (wal_file.c) would be written over what others commit. */
	{ "PRAGMA cache_spill = OFF", "PRAGMA cache_spill", 0, true },
	{ "PRAGMA journal_size_limit = " WAL_SIZE_LIMIT, NULL, 0, true },
};

static int
configure(
    struct hf_db *db, enum hf_db_mode mode, bool sync_full, struct hf_error *e)
{
	int64_t got, sync = sync_full ? 2 : 1;
	int on = 0, rc = 0;

	sqlite3_extended_result_codes(db->h, 1);
	sqlite3_busy_timeout(db->h, BUSY_TIMEOUT_MS);
	sqlite3_db_config(db->h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, &on);
	HF_CHECK(on == 1);
	sqlite3_db_config(db->h, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	sqlite3_db_config(db->h, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
	if (mode == HF_DB_CREATE)
		rc = set_wal(db, e);
	for (size_t i = 0; rc == 0 && i < hf_countof(settings); i++) {
		if (settings[i].writers && mode == HF_DB_READ)
			continue;
		rc = hf_db_exec(db, settings[i].set, e);
		if (rc < 0 || settings[i].get == NULL)
			continue;
		rc = hf_db_number(db, settings[i].get, &got, e);
		HF_CHECK(rc < 0 || got == settings[i].want);
	}
	if (rc < 0 || mode == HF_DB_READ)
		return rc;
	rc = hf_db_exec(db,
	    sync_full ? "PRAGMA synchronous = FULL" :
			"PRAGMA synchronous = NORMAL",
	    e);
	if (rc == 0)
		rc = hf_db_number(db, "PRAGMA synchronous", &got, e);
	HF_CHECK(rc < 0 || got == sync);
	return rc;
}

/* Is it in WAL mode?  A rollback journal would bypass all the above. */
static int
check_wal(struct hf_db *db, struct hf_error *e)
{
	sqlite3_stmt *st;
	bool wal;
	int rc =
	    sqlite3_prepare_v2(db->h, "PRAGMA journal_mode", -1, &st, NULL);

	if (rc != SQLITE_OK)
		return hf_db_fail(db, rc, "database", e);
	rc = sqlite3_step(st);
	wal = rc == SQLITE_ROW && hf_str_is(hf_db_str(st, 0), "wal");
	if (rc == SQLITE_ROW)
		rc = wal ? 0 :
			   hf_fail(e, HF_ECORRUPT, "database: not in WAL mode");
	else
		rc = hf_db_fail(db, rc, "database", e);
	sqlite3_finalize(st);
	return rc;
}

static int
note_frames(void *arg, sqlite3 *h, const char *schema, int frames)
{
	struct hf_db *db = arg;

	(void)h;
	(void)schema;
	db->wal_frames = frames;
	return SQLITE_OK;
}

int
hf_db_open(struct hf_db *db, const char *path, enum hf_db_mode mode,
    bool sync_full, struct hf_error *e)
{
	int fd, rc, flags = SQLITE_OPEN_NOMUTEX;
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_up_once);
	memset(db, 0, sizeof(*db));
	db->forks = forks;
	if (mode == HF_DB_CREATE) {
		/* Only to set its mode, and only when nobody can have it
		 * open: closing a database file by hand drops its locks. */
		fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
		if (fd >= 0)
			close(fd);
	}
	flags |=
	    mode == HF_DB_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
	rc = sqlite3_open_v2(
	    path, &db->h, flags, mode == HF_DB_READ ? NULL : hf_wal_file_vfs());
	if (rc != SQLITE_OK) {
		rc = hf_db_fail(db, rc, path, e);
		hf_db_close(db);
		return rc;
	}
	rc = configure(db, mode, sync_full, e);
	if (rc == 0)
		rc = check_wal(db, e);
	if (rc < 0) {
		hf_db_close(db);
		return rc;
	}
	sqlite3_wal_hook(db->h, note_frames, db);
	return 0;
}

void
hf_db_close(struct hf_db *db)
{
	for (int i = 0; i < HF_SQL_COUNT; i++)
		sqlite3_finalize(db->stmt[i]);
	HF_CHECK(db->h == NULL || db->forks == forks);
	HF_CHECK(sqlite3_close(db->h) == SQLITE_OK);
	memset(db, 0, sizeof(*db));
}

static int
bind_text(sqlite3_stmt *st, int i, struct hf_str s)
{
	if (s.p == NULL)
		return sqlite3_bind_null(st, i);
	return sqlite3_bind_text64(
	    st, i, s.p, s.size, SQLITE_STATIC, SQLITE_UTF8);
}

static int
bind_blob(sqlite3_stmt *st, int i, struct hf_str s)
{
	if (s.p == NULL)
		return sqlite3_bind_null(st, i);
	return sqlite3_bind_blob64(st, i, s.p, s.size, SQLITE_STATIC);
}

static int
bind_all(sqlite3_stmt *st, const char *types, va_list ap)
{
	const uint8_t *digest;
	int rc = SQLITE_OK;

	for (int i = 1; rc == SQLITE_OK && types[i - 1] != '\0'; i++) {
		switch (types[i - 1]) {
		case 'i':
			rc = sqlite3_bind_int64(st, i, va_arg(ap, int64_t));
			break;
		case 't':
			rc = bind_text(st, i, va_arg(ap, struct hf_str));
			break;
		case 'b':
			rc = bind_blob(st, i, va_arg(ap, struct hf_str));
			break;
		case 'z':
			rc = bind_text(st, i, hf_str(va_arg(ap, const char *)));
			break;
		case 'd':
			digest = va_arg(ap, const uint8_t *);
			rc = bind_blob(
			    st, i, (struct hf_str){ (const char *)digest, 32 });
			break;
		default:
			HF_BUG("type of a parameter");
		}
	}
	return rc;
}

static sqlite3_stmt *
bind_list(struct hf_db *db, enum hf_sql q, struct hf_error *e,
    const char *types, va_list ap)
{
	int rc;

	HF_CHECK(db->forks == forks);
	if (db->stmt[q] == NULL) {
		rc = sqlite3_prepare_v3(db->h, sql_text[q], -1,
		    SQLITE_PREPARE_PERSISTENT, &db->stmt[q], NULL);
		if (rc != SQLITE_OK) {
			hf_db_fail(db, rc, "prepare", e);
			return NULL;
		}
	}
	HF_CHECK(!sqlite3_stmt_busy(db->stmt[q]));
	rc = bind_all(db->stmt[q], types, ap);
	if (rc != SQLITE_OK) {
		hf_db_fail(db, rc, "bind", e);
		return NULL;
	}
	return db->stmt[q];
}

sqlite3_stmt *
hf_db_bind(
    struct hf_db *db, enum hf_sql q, struct hf_error *e, const char *types, ...)
{
	sqlite3_stmt *st;
	va_list ap;

	va_start(ap, types);
	st = bind_list(db, q, e, types, ap);
	va_end(ap);
	return st;
}

int
hf_db_step(struct hf_db *db, sqlite3_stmt *st, struct hf_error *e)
{
	int rc;

	if (!sqlite3_stmt_readonly(st))
		db->writes++;
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		return 1;
	if (rc == SQLITE_DONE)
		rc = 0;
	else
		rc = hf_db_fail(db, rc, "database", e);
	sqlite3_reset(st);
	return rc;
}

void
hf_db_reset(sqlite3_stmt *st)
{
	sqlite3_reset(st);
}

int
hf_db_run(
    struct hf_db *db, enum hf_sql q, struct hf_error *e, const char *types, ...)
{
	sqlite3_stmt *st;
	va_list ap;
	int rc;

	va_start(ap, types);
	st = bind_list(db, q, e, types, ap);
	va_end(ap);
	if (st == NULL)
		return e == NULL ? HF_EIO : e->code;
	rc = hf_db_step(db, st, e);
	HF_CHECK(rc <= 0);
	return rc < 0 ? rc : sqlite3_changes(db->h);
}

int
hf_db_checkpoint(struct hf_db *db, enum hf_ckpt how, int wait_ms, int *left,
    struct hf_error *e)
{
	static const int mode[] = {
		[HF_CKPT_PASSIVE] = SQLITE_CHECKPOINT_PASSIVE,
		[HF_CKPT_RESTART] = SQLITE_CHECKPOINT_RESTART,
		[HF_CKPT_TRUNCATE] = SQLITE_CHECKPOINT_TRUNCATE,
	};
	int frames = 0, moved = 0, rc;

	sqlite3_busy_timeout(db->h, wait_ms);
	rc = sqlite3_wal_checkpoint_v2(db->h, NULL, mode[how], &frames, &moved);
	sqlite3_busy_timeout(db->h, BUSY_TIMEOUT_MS);
	*left = frames > moved ? frames - moved : 0;
	/* Busy: a reader still needs some frames; the rest was moved. */
	if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_BUSY)
		return hf_db_fail(db, rc, "checkpoint", e);
	if (rc != SQLITE_OK && *left == 0)
		*left = 1;
	return 0;
}

struct hf_str
hf_db_str(sqlite3_stmt *st, int col)
{
	/* The pointer first: asking for it may convert, which sets the size. */
	const void *p = sqlite3_column_blob(st, col);

	return (struct hf_str){ p, (size_t)sqlite3_column_bytes(st, col) };
}

void
hf_db_id(sqlite3_stmt *st, int col, struct hf_id *out)
{
	struct hf_str s = hf_db_str(st, col);

	memset(out, 0, sizeof(*out));
	if (s.size > 0 && s.size < sizeof(out->s))
		memcpy(out->s, s.p, s.size);
}

bool
hf_db_digest(sqlite3_stmt *st, int col, uint8_t out[32])
{
	struct hf_str s = hf_db_str(st, col);

	if (s.size != 32) {
		memset(out, 0, 32);
		return false;
	}
	memcpy(out, s.p, 32);
	return true;
}
