/*
 * One database connection: its set-up, its prepared statements, and the
 * translation of the library's results into HF_E codes.  A connection belongs
 * to the thread that uses it and never crosses a fork (checked).
 */
#ifndef HF_STORE_DB_H
#define HF_STORE_DB_H

#include <sqlite3.h>

#include "base/err.h"
#include "base/hf.h"
#include "base/id.h"

enum hf_sql {
#define HF_SQL(name, text) HF_SQL_##name,
#include "store/sql.def"
#undef HF_SQL
	HF_SQL_COUNT
};

enum hf_db_mode {
	HF_DB_CREATE, /* writes; made (0600, WAL) if missing */
	HF_DB_WRITE,
	HF_DB_READ
};

struct hf_db {
	sqlite3 *h;
	sqlite3_stmt *stmt[HF_SQL_COUNT];
	unsigned forks;	 /* between main() and this process when
			  * it was opened */
	unsigned writes; /* statements that write, run so far */
	int wal_frames;	 /* in the WAL after the last commit
			  * of this connection */
};

int hf_db_open(struct hf_db *db, const char *path, enum hf_db_mode mode,
    bool sync_full, struct hf_error *e) HF_MUST_CHECK;
void hf_db_close(struct hf_db *db); /* no checkpoint; NULL members OK */

/* Text of a statement, for tests. */
const char *hf_db_sql_text(enum hf_sql q);

/*
 * Prepare (once) and bind.  'types' has a letter per parameter: i int64_t,
 * t struct hf_str as text (p NULL: NULL), b struct hf_str as blob (the same),
 * z const char * as text (NULL: NULL), d const uint8_t * of 32 bytes (NULL:
 * NULL).  What is bound is borrowed until the statement is done.  NULL on
 * failure.
 */
sqlite3_stmt *hf_db_bind(struct hf_db *db, enum hf_sql q, struct hf_error *e,
    const char *types, ...) HF_MUST_CHECK;
/* 1: a row is there.  0: done.  Negative: failed.  Done and failed statements
 * are reset; whoever stops at a row calls hf_db_reset(). */
int hf_db_step(
    struct hf_db *db, sqlite3_stmt *st, struct hf_error *e) HF_MUST_CHECK;
void hf_db_reset(sqlite3_stmt *st);
/* Bind and run a statement that returns no rows; rows changed, or negative. */
int hf_db_run(struct hf_db *db, enum hf_sql q, struct hf_error *e,
    const char *types, ...) HF_MUST_CHECK;
/* Plain text, for set-up and migrations only. */
int hf_db_exec(
    struct hf_db *db, const char *text, struct hf_error *e) HF_MUST_CHECK;
/* Roll back whatever transaction is open; a failed statement or commit may
 * have done so already. */
void hf_db_rollback(struct hf_db *db);
/* A number from a pragma or query without parameters. */
int hf_db_number(struct hf_db *db, const char *text, int64_t *out,
    struct hf_error *e) HF_MUST_CHECK;
/* Translate the library's result 'rc' and describe it. */
int hf_db_fail(struct hf_db *db, int rc, const char *what, struct hf_error *e);
/*
 * Move WAL frames into the database file (the caller holds the writer mutex);
 * *left gets the frames that remain to be moved.  HF_CKPT_RESTART also waits
 * up to 'wait_ms' for readers of older frames, so that the next commit starts
 * the WAL over; HF_CKPT_TRUNCATE cuts the file as well.
 */
enum hf_ckpt { HF_CKPT_PASSIVE, HF_CKPT_RESTART, HF_CKPT_TRUNCATE };
int hf_db_checkpoint(struct hf_db *db, enum hf_ckpt how, int wait_ms, int *left,
    struct hf_error *e) HF_MUST_CHECK;

/* Columns of the current row; spans are valid until the next step. */
struct hf_str hf_db_str(sqlite3_stmt *st, int col);
void hf_db_id(sqlite3_stmt *st, int col, struct hf_id *out);
/* False if the column is not 32 bytes; 'out' is zeroed then. */
bool hf_db_digest(sqlite3_stmt *st, int col, uint8_t out[32]);

#endif
