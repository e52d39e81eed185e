/*
 * The store as the keeper sees it: migrations, recovery, leases of the dead,
 * checkpoints and API keys.  All calls block; keeper process only (tests
 * too).  Every write runs under the writer mutex of the scoreboard.
 */
#ifndef HF_STORE_KEEP_H
#define HF_STORE_KEEP_H

#include "store/store.h"

struct hf_keep;

/*
 * Open or create the database: migrations (BEGIN IMMEDIATE, then read
 * user_version inside, checksums compared, one transaction each), master key
 * made at first start (0600, fsynced, in its own file).  Refuses a database
 * whose min_reader is above this program (HF_ETOONEW), a changed checksum
 * (HF_ECORRUPT), and a key that does not open the database (HF_EPERM).
 */
int hf_keep_open(struct hf_keep **out, const struct hf_store_conf *c,
    struct hf_error *e) HF_MUST_CHECK;
void hf_keep_close(struct hf_keep *k);

/*
 * A new boot: count the boot counter up (returned in *boot; leases of an
 * earlier boot are void by that), mark open and queued turns interrupted with
 * the text stored so far (parts become the turn's output items: an assistant
 * message whose body is made by 'make_body' from the text), close open
 * attempts as lost, clear leases.  Idempotent.
 */
struct hf_recovered {
	int64_t turns_interrupted, attempts_lost;
	int64_t turns_held; /* left to whoever takes them over; if nobody
			     * does, a later reap settles them */
};
int hf_keep_recover(struct hf_keep *k, hf_make_body_fn make_body, void *arg,
    uint64_t *boot, struct hf_recovered *r, struct hf_error *e) HF_MUST_CHECK;

/* A child died (its inc is cleared in the scoreboard): settle its open turns
 * (interrupted, as in recovery), free or pass on its leases, wake the next.
 * inc 0: every owner that is not alive in the scoreboard (a keeper that was
 * restarted calls this instead of recover). */
int hf_keep_reap(struct hf_keep *k, unsigned slot, uint64_t inc,
    hf_make_body_fn make_body, void *arg, struct hf_recovered *r,
    struct hf_error *e) HF_MUST_CHECK;

/* Checkpoint under the writer mutex if the WAL holds at least 'min_frames';
 * 'truncate' also shrinks the file (idle times). */
int hf_keep_checkpoint(struct hf_keep *k, int min_frames, bool truncate,
    struct hf_error *e) HF_MUST_CHECK;

/* Can turns be stored now?  One real transaction on a connection of its own,
 * under the writer mutex.  (store/probe.c) */
int hf_keep_probe(
    const struct hf_store_conf *c, struct hf_error *e) HF_MUST_CHECK;

/* Note that a target or a provider is not to be asked, or is again ('disabled'
 * false).  Noting it again changes nothing. */
int hf_keep_disable(struct hf_keep *k, const char *name, bool disabled,
    int64_t uid, struct hf_error *e) HF_MUST_CHECK;

/* Make an API key of 'tenant'; 'secret' (shown once, never stored) gets the
 * text that clients present. */
#define HF_SECRET_SIZE 96
int hf_keep_key_create(struct hf_keep *k, const char *tenant, const char *label,
    struct hf_id *id, char secret[HF_SECRET_SIZE],
    struct hf_error *e) HF_MUST_CHECK;
/* 'prefix' is a unique prefix of the key's id; HF_ENOTFOUND, or HF_ECONFLICT
 * when ambiguous. */
int hf_keep_key_revoke(struct hf_keep *k, const char *prefix, struct hf_id *id,
    struct hf_error *e) HF_MUST_CHECK;

#endif
