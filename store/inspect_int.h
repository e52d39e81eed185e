/*
 * What the files behind inspect.h share.
 */
#ifndef HF_STORE_INSPECT_INT_H
#define HF_STORE_INSPECT_INT_H

#include "store/db.h"
#include "store/inspect.h"
#include "store/seal.h"

struct hf_inspect {
	struct hf_db db;
	struct hf_seal seal;
	/* Without the key everything but contents can still be seen. */
	struct hf_error no_key;	  /* code 0: the key is there */
	const struct hf_shm *shm; /* borrowed; NULL: offline */
	char *path;
};

/* Open for reading without writing anything: no file is made, no index of
 * the log is rebuilt on disk, whether a daemon runs, ended or was killed. */
int hf_offline_open(
    struct hf_db *db, const char *path, struct hf_error *e) HF_MUST_CHECK;

/* The boot counter in the database. */
int hf_inspect_boot(
    struct hf_inspect *in, uint64_t *boot, struct hf_error *e) HF_MUST_CHECK;
/* What is known of an owner; 'boot' is that of the database. */
enum hf_owner { HF_OWNER_ALIVE, HF_OWNER_DEAD, HF_OWNER_UNKNOWN };
enum hf_owner hf_inspect_owner(
    const struct hf_inspect *in, uint64_t boot, unsigned slot, uint64_t inc);

/* The row of a session and, with 'key' not NULL, what opens its contents. */
int hf_inspect_find(struct hf_inspect *in, const struct hf_id *session,
    int64_t *row, struct hf_seal_key *key, struct hf_error *e) HF_MUST_CHECK;
const char *hf_inspect_state(int state); /* its name */

#endif
