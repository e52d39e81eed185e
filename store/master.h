/*
 * The master key file: 64 hex digits and a newline, mode 0600; or the same
 * text under the path of a credential that the service manager hands in.
 */
#ifndef HF_STORE_MASTER_H
#define HF_STORE_MASTER_H

#include "base/err.h"
#include "store/db.h"
#include "store/seal.h"

/*
 * Read the master key that 'c' names and check that it opens the database.
 * HF_EPERM with a text that says what to do: missing, readable by others,
 * not a key, or the key of another database.
 */
int hf_master_load(struct hf_seal *s, const struct hf_store_conf *c,
    struct hf_db *db, struct hf_error *e) HF_MUST_CHECK;
/*
 * Keeper, inside a write transaction: the same, but a database that no key
 * belongs to yet gets one (the key file is made if it is missing; it is
 * durable, with its directory, before the database can refer to it).
 */
int hf_master_load_or_make(struct hf_seal *s, const struct hf_store_conf *c,
    struct hf_db *db, struct hf_error *e) HF_MUST_CHECK;

#endif
