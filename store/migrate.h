/*
 * Migrations: numbered, append-only steps, embedded from migrations/.
 * Used by every opener of the database: the keeper applies, all others check.
 */
#ifndef HF_STORE_MIGRATE_H
#define HF_STORE_MIGRATE_H

#include "base/err.h"
#include "base/hf.h"

struct hf_db;

struct hf_migration {
	int step;	  /* 1, 2, ... */
	const char *name; /* file name */
	const char *sum;  /* SHA-256 of 'sql' in hex, from SUMS */
	const char *sql;
};

/* Generated: every step of this program. */
extern const struct hf_migration hf_migrations[];
extern const unsigned hf_n_migrations;

#define HF_APPLICATION_ID 0x68666462 /* "hfdb" */

/*
 * Apply the steps that the database lacks, each in one transaction that
 * reads the version only after it holds the write lock, so that any number
 * of processes may do this at once.  The caller holds the writer mutex if
 * there is one.  Errors as hf_migrate_check().
 */
int hf_migrate_apply(struct hf_db *db, const struct hf_migration *m, unsigned n,
    struct hf_error *e) HF_MUST_CHECK;
/*
 * Is this database one that a program with these steps may use?
 * HF_ETOONEW: its min_reader is above 'n'.  HF_ECORRUPT: not ours, or a step
 * whose text changed after it was applied.  HF_ECONFLICT: a step is missing.
 */
int hf_migrate_check(struct hf_db *db, const struct hf_migration *m, unsigned n,
    struct hf_error *e) HF_MUST_CHECK;

#endif
