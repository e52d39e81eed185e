/*
 * Leases of sessions and the queue behind them, inside a transaction.
 *
 *   free --T1--> held --T2--> free, or granted to the next live queued turn
 *   held, owner dead --settle--> as after T2, the turn interrupted
 */
#ifndef HF_STORE_LEASE_H
#define HF_STORE_LEASE_H

#include "store/row.h"

/* Give up the lease that 's' describes: grant it to the next live queued turn
 * (dead ones on the way become interrupted), else free it; the head becomes
 * 'head', rev grows by 'rev_add'.  The old lease turn's row is closed before.
 * HF_EFENCED if the row's lease is not the one in 's'.  's' is updated. */
int hf_lease_pass(struct hf_writer *w, struct hf_session_row *s, int64_t head,
    int64_t rev_add, struct hf_error *e) HF_MUST_CHECK;
/* Settle a dead owner, then grant a free lease to a turn that waits for it.
 * Afterwards s->owner_inc is 0 (free, nobody waits), a live owner, or a dead
 * one whose turn will be taken over. */
int hf_lease_tidy(struct hf_writer *w, struct hf_session_row *s,
    struct hf_error *e) HF_MUST_CHECK;
/* Take the lease over from the dead owner of its turn: the fence moves. */
int hf_lease_take_over(struct hf_writer *w, struct hf_session_row *s,
    struct hf_error *e) HF_MUST_CHECK;
/* Live turns that wait, not counting the one that was granted the lease. */
int hf_lease_waiting(struct hf_writer *w, const struct hf_session_row *s,
    unsigned *n, struct hf_error *e) HF_MUST_CHECK;
/* End a queued turn as 'state'. */
int hf_lease_dequeue(struct hf_writer *w, int64_t turn,
    enum hf_turn_state state, struct hf_error *e) HF_MUST_CHECK;
/* Close the attempts that a dead owner left open. */
int hf_lease_lost(struct hf_writer *w, const struct hf_turn_row *t,
    struct hf_error *e) HF_MUST_CHECK;
/* End an open turn whose owner died: its text so far becomes its output, its
 * attempts are lost.  'key' NULL: the session's key is gone, so keep the
 * parts and close the turn without them. */
int hf_lease_interrupt(struct hf_writer *w, const struct hf_seal_key *key,
    struct hf_turn_row *t, struct hf_error *e) HF_MUST_CHECK;

#endif
