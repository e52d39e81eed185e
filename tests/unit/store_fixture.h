/*
 * A database in a private folder, a scoreboard, a keeper, and stores of
 * several "workers" in one process (each with a slot and incarnation of its
 * own), with blocking forms of the store's writes.
 */
#ifndef HF_TESTS_STORE_FIXTURE_H
#define HF_TESTS_STORE_FIXTURE_H

#include "store/keep.h"
#include "store/store.h"

#define FX_SLOTS 8

struct fx {
	char dir[256], db[300], key[300];
	struct hf_shm shm[FX_SLOTS]; /* one view per slot */
	struct hf_store_conf conf[FX_SLOTS];
	struct hf_hold hold;  /* no map before fx_hold() */
	struct hf_keep *keep; /* slot 0 */
	struct hf_store *st[FX_SLOTS];
	struct hf_error e; /* of the last failure */
};

void fx_open(struct fx *f); /* migrated, recovered, no store open */
/* The same with the files of f->dir, f->db and f->key as they are. */
void fx_reopen(struct fx *f);
void fx_close(struct fx *f); /* and remove the folder */
struct hf_store *fx_store(struct fx *f, unsigned slot);
/* The worker in 'slot' dies: its incarnation ends.  (Its struct hf_store
 * lives on, so that tests can see what a zombie may still do.) */
void fx_kill(struct fx *f, unsigned slot);
/* A new life in 'slot' with a store of its own. */
void fx_respawn(struct fx *f, unsigned slot);

/* Blocking writes: result of the completion (or of the submission). */
int fx_begin(struct fx *f, unsigned slot, const struct hf_begin *b,
    struct hf_begun *out);
int fx_finish(struct fx *f, unsigned slot, const struct hf_finish *fin);
int fx_part(struct fx *f, unsigned slot, const struct hf_begun *b, int64_t seq,
    const char *text);
int fx_attempts(struct fx *f, unsigned slot, const struct hf_begun *b,
    const struct hf_attempt_end *close, const struct hf_attempt_begin *open);
int fx_cancel(struct fx *f, unsigned slot, int64_t turn_row);
/* Dispatch the next completions of 'slot', or those until none is pending. */
void fx_wait(struct fx *f, unsigned slot);
void fx_drain(struct fx *f, unsigned slot);

/* A message whose normal form is its text. */
struct hf_item fx_item(
    const struct hf_session_key *k, enum hf_role role, const char *text);
/* 'h' plus one user message: what a thin client's turn looks like.  'item'
 * must outlive the begin. */
struct hf_begin fx_turn(const char *name, const struct hf_head *h,
    struct hf_item *item, const char *text);
/* The end of a turn that answers 'text'. */
struct hf_finish fx_answer(const struct hf_begin *b,
    const struct hf_begun *begun, const struct hf_session_key *k,
    struct hf_item *item, const char *text);
/* A whole quiet turn; its row. */
int64_t fx_say(struct fx *f, unsigned slot, const char *name, const char *user,
    const char *answer);
struct hf_head fx_head(struct fx *f, unsigned slot, const char *name);
/* "user:hi|assistant:hello", the bodies of a history. */
const char *fx_history(struct fx *f, unsigned slot, const char *name);

/* One turn through its life. */
struct fx_one {
	struct hf_head h;
	struct hf_item in, out;
	struct hf_begin b;
	struct hf_begun begun;
	struct hf_finish fin;
};
int fx_one_begin(struct fx *f, unsigned slot, struct fx_one *t,
    const char *name, const char *text);
/* Of a turn that waited: aligned with the head as it is now. */
int fx_one_begin_granted(struct fx *f, unsigned slot, struct fx_one *t,
    const char *name, const char *text, uint64_t fence);
int fx_one_finish(
    struct fx *f, unsigned slot, struct fx_one *t, const char *text);

/* What hf_store_granted() tells 'slot'. */
struct fx_grants {
	unsigned n;
	int64_t turn[8];
	uint64_t fence[8];
};
struct fx_grants fx_granted(struct fx *f, unsigned slot);
/* Was the worker in 'slot' woken since the last call? */
bool fx_woken(struct fx *f, unsigned slot);

/* The worker in 'slot' serves 'turn' on a connection that outlives it; where
 * that is held, for hf_hold_give(). */
uint32_t fx_hold(struct fx *f, unsigned slot, const struct hf_id *turn);

int fx_make_body(void *arg, struct hf_str text, struct hf_str refusal,
    struct hf_buf *body, struct hf_buf *norm);
/* Run SQL on a connection of its own; a number from its first row. */
int64_t fx_sql(struct fx *f, const char *sql);
/* Set HF_FAULT, in a position that no earlier call used (a point counts how
 * often it was reached, per position); NULL: unset. */
void fx_fault(const char *what);

#endif
