/*
 * What the files of the turn machine share: the turn and its attempts.
 *
 *  AUTHED -> RECONCILING -> BEGINNING -> REBUILDING -> CALLING -> STREAMING
 *                ^  ^          |  |          ^            |           |
 *                |  +--moved---+  v          |            v           v
 *                +---granted-- QUEUED     WAITING <---- (failed)   FINISHING
 *                                                                     |
 *  RECONCILING -> REPLAYING (the request was answered before) -------> DONE
 *  AUTHED -> ADOPTING (its process died) -> RECONCILING, QUEUED, REBUILDING
 *	or REPLAYING
 *  FAILED (from anywhere; closes the turn on disk) ------------------> DONE
 *
 * WAITING and a failed call lead back to REBUILDING, never straight to
 * CALLING: that every attempt's payload comes from disk is a missing edge.
 */
#ifndef HF_GATEWAY_TURN_TURN_INTERNAL_H
#define HF_GATEWAY_TURN_TURN_INTERNAL_H

#include "base/sm.h"
#include "base/target.h"
#include "gateway/turn/plan.h"
#include "gateway/turn/splice.h"
#include "gateway/turn/turn.h"

enum turn_state {
	TURN_AUTHED,
	TURN_ADOPTING,
	TURN_RECONCILING,
	TURN_BEGINNING,
	TURN_QUEUED,
	TURN_REBUILDING,
	TURN_CALLING,
	TURN_STREAMING,
	TURN_WAITING,
	TURN_FINISHING,
	TURN_REPLAYING,
	TURN_FAILED,
	TURN_DONE
};

/* What of the history a payload has, see window.c.  Tokens as the target will
 * count them, as far as that is known. */
struct fitted {
	bool known;	       /* it was looked at; else it has all */
	bool too_small;	       /* the target cannot hold what must be kept */
	int64_t window;	       /* the target's; 0: not known */
	int64_t room;	       /* of it for the history and what goes with it */
	int64_t estimated;     /* tokens of the payload, before correction */
	int64_t tokens;	       /* the same, corrected */
	int64_t least;	       /* tokens of what must be kept, corrected */
	unsigned turns, items; /* left out */
};

/* The history for one attempt, and what goes with it; nothing of it outlives
 * the call. */
struct payload {
	struct hf_arena arena;
	struct hf_payload_input in;
	struct fitted fit;
	unsigned items, items_of; /* of the history: in it, and all */
	bool unsayable;		  /* to that target, because: */
	struct hf_error why;
};

/* How an attempt ended; strings live in the attempt. */
struct outcome {
	enum hf_class cls;
	const char *reason;
	int http_status;
	int64_t retry_after_ms;
	bool timed_out;
	bool stale;    /* the pooled connection was dead: nobody's failure */
	int64_t holds; /* too long: fewer tokens than so many fit there */
	bool shrinks;  /* ... and it can be made shorter */
	bool uncalled; /* there was no call */
	struct hf_buf message, code, type, param;
};

/*
 * One call of a target.  It outlives its turn's interest in it for a moment,
 * so that a finished exchange leaves its connection in the pool: then 't' is
 * NULL and whatever still comes is dropped.
 */
struct hf_attempt {
	struct hf_attempt *next, **prevp; /* env->attempts */
	struct hf_turn_env *env;
	struct hf_turn *t; /* NULL: detached */
	unsigned n, target;
	struct hf_call *call; /* NULL: over */
	struct hf_decoder *decoder;
	struct event *timer; /* first token, total, linger */
	struct event *step;  /* act on what callbacks recorded */
	int64_t begun_us, first_us;
	int64_t share_us;    /* the end of its share of the turn's time */
	int64_t called_us;   /* begun_us as wall time */
	int64_t last_us;     /* the newest useful delta */
	int64_t window_us;   /* the rate window began */
	size_t window_chars; /* that came in it */
	bool prefill;	     /* goes on with a prefilled message */
	bool stream;	     /* a stream was asked for */
	bool useful;	     /* a useful delta arrived */
	bool unhedged;	     /* nobody may be called beside it */
	bool over;	     /* outcome is set */
	bool done;	     /* terminal marker seen */
	int64_t finish_us;   /* when the finish was said; 0: not yet */
	/* What it reports; the answer's when it has ended. */
	enum hf_finish_reason finish;
	int64_t tokens_in, tokens_out, tokens_cached, tokens_reasoning;
	struct outcome outcome;
	struct fitted fit;	   /* of its payload */
	struct hf_ticket ticket;   /* of the target's breaker */
	struct hf_quota_said said; /* in the response's headers */
	const struct hf_conf_call *ticket_call;
	enum hf_health verdict;	  /* what the breaker is told */
	bool judged;		  /* else it is cut */
	unsigned items, items_of; /* in its payload, and in the history */
	int64_t bytes_out, bytes_in;
};

/*
 * A second call beside one that is late.  Its row is opened while the first
 * call goes on, then it is made; the first useful delta of either decides.
 */
enum hedge_state {
	HEDGE_NONE,
	HEDGE_OPENING, /* its row is on its way to disk */
	HEDGE_OPEN     /* it has a row, and is called */
};

struct hedge {
	enum hedge_state state;
	unsigned n, target;
	struct hf_attempt *attempt; /* if OPEN */
};

struct hf_turn {
	struct hf_turn_env *env;
	struct hf_sm sm;
	struct hf_arena *arena;
	struct hf_turn_input in;
	const struct hf_surface *surface; /* NULL: the client is gone */
	void *surface_arg;

	/* identity */
	bool durable;	 /* has a row; else only in memory */
	struct hf_id id; /* turn_... */
	struct hf_id session;
	int64_t session_row, turn_row, seq;
	uint64_t fence;
	int64_t created_us; /* wall */
	int64_t wall_us;    /* wall time at the zero of hf_now_us(): times of
			     * one turn keep their order, whatever is done to
			     * the wall clock meanwhile */

	/* reconciling */
	struct hf_head head;
	const struct hf_history *read; /* by T1, inside its completion */
	enum hf_align_how how;
	uint8_t view[HF_DIGEST_SIZE];
	int64_t view_items;
	unsigned moved; /* times the head moved under us */
	bool opened;	/* T1 is done */
	bool adopted;	/* ... by a process that died */
	bool digested;	/* the next three are made */
	bool has_idem;
	uint8_t idem[HF_DIGEST_SIZE];
	uint8_t request_digest[HF_DIGEST_SIZE];
	int64_t joins_row;  /* waits behind the same request */
	int64_t replay_row; /* the turn whose answer is told */
	const char *replay_target;
	size_t told;   /* of the text that is told again */
	bool noted;    /* the surface knows our id */
	bool on_queue; /* in env->queued */
	struct hf_turn *next, **prevp;

	/* attempts */
	struct hf_plan plan;
	unsigned n_attempt;
	unsigned target; /* of the current or next attempt */
	bool has_home;	 /* the session stays with target ... */
	unsigned home;
	struct hf_attempt *attempt; /* current, or NULL */
	struct hf_attempt_end last; /* of the last attempt, to be closed */
	unsigned open_n;	    /* whose row is open; 0: none */
	struct hedge hedge;
	struct hf_claim claim;	 /* a place in the target's pace */
	struct hf_ticket ticket; /* of the call that is about to be made */
	bool redial;		 /* the next call has a connection of its own */
	struct hf_crowd *crowd;	 /* waits for room in this line */
	struct hf_turn *ahead, *behind;
	bool paced;			/* waited for that target */
	struct hf_target_row *waits_on; /* counted there, or NULL */
	bool resuming;			/* WAITING for it, with an open row */
	int64_t waits_until_us;		/* WAITING for whichever */
	/* Targets that can hold the least, a bit each; and what a target that
	 * refused a payload as too long is told at most, in tokens; 0: as
	 * much as its window holds. */
	uint32_t holds;
	int64_t limit[HF_PLAN_TARGETS];
	struct fitted fit;   /* of the payload that is being answered */
	unsigned n_unclosed; /* rows of race's losers whose closing is not
			      * known to be on disk */

	/* the answer */
	struct hf_answer answer;
	bool begun;	    /* the response has begun */
	bool started;	    /* content went to the client */
	int64_t told_us;    /* last time that something went */
	struct hf_buf held; /* came, but may not leave yet */
	enum hf_release_mode release;
	bool continuing;	 /* the attempt goes on with the text */
	struct hf_splice splice; /* if continuing */
	bool prefill_off;	 /* a target refused it in this turn */
	unsigned first_target;	 /* that the response headers name */
	unsigned told_omitted;	 /* items that they say are left out */
	bool paused;
	/* The text, see text.c; offsets count from its first byte. */
	size_t text_base; /* before what is in answer.text */
	size_t flushed;	  /* given to the store as parts */
	size_t stored;	  /* known to be on disk ... */
	int64_t n_stored; /* ... in so many parts */
	int64_t part_seq;
	bool part_failed;
	bool text_lost;	      /* the beginning is nowhere */
	size_t loose;	      /* bytes of it in env->loose */
	struct hf_buf before; /* what a continuation goes on from */
	struct event *flush;
	struct event *timer; /* deadline */
	struct event *later; /* waits, retries of closing */
	struct event *beat;  /* signs of life; NULL: none */
	int64_t deadline_us;

	/* the end */
	enum hf_turn_state final;
	bool gone;		   /* the client left */
	int64_t gone_us;	   /* wall time when it left; 0: not yet */
	struct hf_delivered given; /* to the client when it left */
	bool by_gateway;	   /* the answer is the last resort */
	bool drop;		   /* input refused: not in history */
	struct hf_turn_failure failure;
	const char *error_class;
	struct hf_buf message, param, code; /* of failure */
	unsigned close_tries;
	unsigned pending; /* store completions to come */
	int64_t first_token_us, total_us;
	struct hf_draft output;
};

/* turn.c */
void turn_move(struct hf_turn *t, enum turn_state to);
void turn_get_info(const struct hf_turn *t, struct hf_turn_info *i);
void turn_release(struct hf_turn *t);
/* WAITING for its target is over: is it let through now? */
void turn_again(struct hf_turn *t);
/* A store completion arrived.  True: nothing more is to be done with 't', the
 * turn is over or its client left meanwhile. */
bool turn_settled(struct hf_turn *t);
/* Why the store refused, as the client hears it. */
void turn_fail_store(struct hf_turn *t, int rc, const struct hf_error *e);
/* The client left: stop. */
void turn_client_left(struct hf_turn *t);
/* Its deadline has passed. */
void turn_late(struct hf_turn *t);
/* The target that the response names, or will when it begins. */
unsigned turn_first_target(const struct hf_turn *t);
/* Tell the surface the turn's id, if it is not told yet. */
void turn_note_id(struct hf_turn *t);
void turn_fail(struct hf_turn *t, int status, const char *type,
    const char *code, const char *fmt, ...) HF_PRINTF(5, 6);

/* reconcile.c */
void turn_reconcile(struct hf_turn *t);
void turn_enqueue(struct hf_turn *t); /* waits for a grant */
void turn_leave_queue(struct hf_turn *t);

/* shadow.c */
/* The turn is complete: what is done for the next one. */
void turn_shadow(const struct hf_turn *t);
/* A turn of that session has come. */
void turn_shadows_end(struct hf_turn_env *env, int64_t session_row);
/* A call is about to be made there. */
void turn_shadows_give_way(
    struct hf_turn_env *env, const struct hf_conf_target *target);
void turn_shadows_cut(struct hf_turn_env *env);

/* stay.c */
/* Begin with the target that the session stays with, or goes back to, as the
 * route says.  Before the first attempt. */
void turn_stay(struct hf_turn *t, int64_t session_row);
/* The turn was answered: has its session gone back to a preferred target? */
void turn_count_return(const struct hf_turn *t);

/* adopt.c */
void turn_adopt(struct hf_turn *t);

/* answer.c */
/* Append what is on disk of it; 'a' owns its calls. */
int answer_take(struct hf_answer *an, const struct hf_stored_answer *s,
    struct hf_arena *a, struct hf_error *e) HF_MUST_CHECK;
/* What is told in one go with the end. */
void answer_tell_rest(
    const struct hf_answer *an, const struct hf_surface *surface, void *arg);
/* How a turn that ended so is told to have failed; its message is not set. */
void answer_failure(
    enum hf_turn_state state, int status, struct hf_turn_failure *f);

/* replay.c */
/* Make the digests of the request, once. */
void turn_digest(struct hf_turn *t);
/* Read the answer of a turn that is complete, and become that turn. */
int turn_load_answer(struct hf_turn *t, int64_t session_row, int64_t row,
    struct hf_error *e) HF_MUST_CHECK;
/* REPLAYING: tell it, but for the 'told' bytes of text. */
void turn_tell_answer(struct hf_turn *t, int64_t row);
/* Is this request one that came before?  1: its answer is being told again,
 * or the turn has failed.  0: go on. */
int turn_check_earlier(struct hf_turn *t, struct hf_error *e) HF_MUST_CHECK;
int turn_check_head(struct hf_turn *t, struct hf_error *e) HF_MUST_CHECK;

/* continue.c */
/* May the answer that broke off be finished by another call? */
bool turn_may_continue(const struct hf_turn *t, enum hf_class cls);
/* How a target would go on, and whether it is given the partial answer as a
 * prefill (hidden: it says that again); false: it cannot. */
bool turn_continue_mode(const struct hf_turn *t,
    const struct hf_conf_target *target, enum hf_splice_mode *mode,
    bool *prefill);
/* This target refuses to go on with an assistant message. */
void turn_no_prefill(
    struct hf_turn_env *env, const struct hf_conf_target *target);
/* Take text of the current attempt: through the seam and the gate. */
void turn_take_text(struct hf_turn *t, struct hf_str text);
/* The answer is whole (or a tool call follows): nothing is held any more. */
void turn_pass_all(struct hf_turn *t);
/* Forget the refusal and the calls: they were not told yet. */
void turn_forget_rest(struct hf_turn *t);
/* The attempt broke off: what was not delivered is forgotten. */
void turn_forget_held(struct hf_turn *t);

/* rebuild.c */
bool turn_upstream_stream(
    const struct hf_turn *t, const struct hf_conf_target *target);
/* The history that route's target 'i' is to hear in one attempt, as far as it
 * can hold it ('measured': all of it, and how long it is), and
 * what goes with it; to be freed in any case.  The store's error; what cannot
 * be said to that target shows when it is built. */
int payload_load(struct hf_turn *t, unsigned i, bool measured,
    struct payload *p, struct hf_error *e) HF_MUST_CHECK;
void payload_free(struct payload *p);
/* The request; HF_EINVAL: its dialect cannot say it. */
int payload_build(struct payload *p, struct hf_http_request *rq,
    struct hf_error *e) HF_MUST_CHECK;

/* window.c */
/* Is anything known of the windows of the route's targets? */
bool window_matters(const struct hf_turn *t);
/* Leave out of the payload for target 'i' what that cannot hold; 'measured':
 * nothing, but count. */
int window_fit(struct hf_turn *t, unsigned i, bool measured, struct payload *p,
    struct hf_error *e) HF_MUST_CHECK;
/* Does a target hold all of this, as far as its window is known? */
bool window_holds(
    const struct hf_turn_env *env, const struct hf_payload_input *in);
/* The attempt failed because its payload was too long: what that teaches. */
void window_refused(struct hf_attempt *a);
/* It was answered: the provider has counted the payload. */
void window_answered(struct hf_attempt *a);

/* admit.c */
/* For the plan: when target 'i' can be asked, see hf_target_opens_us(). */
int64_t turn_opens_us(void *arg, unsigned i, int64_t now_us);
int64_t turn_paced_us(void *arg, unsigned i, int64_t now_us);
/* For the plan: is it disabled by hand? */
bool turn_is_disabled(void *arg, unsigned i);
/* It waits for its target no more. */
void turn_waits_no_more(struct hf_turn *t);
/* May t->target be called now?  False: the turn waits for it, or has gone on
 * to another one.  True: t->ticket is that of the call. */
bool turn_admit(struct hf_turn *t);
/* The same for a second call, which does not wait. */
bool turn_admit_beside(struct hf_turn *t, unsigned i);
/* Its response begins. */
void attempt_heard(struct hf_attempt *a, int status, struct hf_str headers);
void attempt_judge(struct hf_attempt *a);     /* its outcome is known */
void attempt_give_back(struct hf_attempt *a); /* it is over */

/* crowd.c */
/* Does somebody else wait for room at this target?  NULL: no. */
bool turn_crowd_is_ahead(
    const struct hf_turn *t, const struct hf_target_row *r);
/* Wait for room; turn_again() when there may be some. */
void turn_crowd_join(struct hf_turn *t, const struct hf_target_row *r);
void turn_crowd_leave(struct hf_turn *t); /* if it waits */
/* There may be room now. */
void turn_crowd_look(struct hf_turn_env *env, const struct hf_target_row *r);

/* failover.c */
void turn_rebuild(struct hf_turn *t);	       /* begins REBUILDING */
void turn_attempt_ended(struct hf_attempt *a); /* acts on the outcome */
/* An attempt failed: count and log it; what the plan is told. */
void turn_note_failure(const struct hf_turn *t, const struct hf_attempt *a,
    const struct hf_attempt_end *end);
/* A wait for a target is over: call one, wait on, or give up. */
void turn_wait_over(struct hf_turn *t);
/* The target that was to be called may not be: go on with another one. */
void turn_skip(struct hf_turn *t);
/* The same: it cannot hold what must be kept. */
void turn_too_small(struct hf_turn *t, const struct fitted *f);
struct hf_plan_failure turn_plan_failure(const struct outcome *o);

/* hedge.c */
/* The turn makes its first call: its share of the route's budget. */
void hedge_pay(const struct hf_turn *t);
/* When somebody is to be called beside it; INT64_MAX: never. */
int64_t hedge_due(const struct hf_attempt *a);
/* That time has come. */
void hedge_start(struct hf_attempt *a);
/* This one has something to say: if there are two, the other one is ended. */
void hedge_decide(struct hf_attempt *winner);
/* An attempt is over.  True: the other one goes on alone, nothing is to be
 * done. */
bool hedge_ended(struct hf_attempt *a);
/* The turn ends: so does a second call. */
void hedge_cancel(struct hf_turn *t, const char *cls, const char *reason);

/* last_resort.c */
/* Nobody could answer: answer as the route says.  False: it says nothing, or it
 * is too late for that. */
bool turn_last_resort(struct hf_turn *t) HF_MUST_CHECK;
/* How much earlier than its deadline a turn gives up, so that this is told in
 * time. */
int64_t turn_reserve_us(const struct hf_conf_route *r);

/* call.c */
void turn_call(struct hf_turn *t); /* builds and calls */

/* attempt.c */
/* Build the request and call; *out is the attempt, known to the turn from then
 * on, whose outcome may be set. */
void attempt_start(struct hf_turn *t, unsigned n, unsigned target,
    struct payload *p, struct hf_attempt **out);
/* What the attempt's row will say. */
void attempt_end(const struct hf_attempt *a, struct hf_attempt_end *end);
/* The current attempt is over: so ends the last one of the turn. */
void turn_fill_end(struct hf_turn *t, const struct hf_attempt *a);
void turn_cancel_attempt(
    struct hf_turn *t, enum hf_class cls, const char *reason);
void turn_begin_response(struct hf_turn *t);
void turn_deliver(struct hf_turn *t, const struct hf_event *ev);
void attempt_arm(struct hf_attempt *a); /* its deadlines have changed */
void attempt_detach(struct hf_attempt *a);
void attempts_cut(struct hf_turn_env *env);

/* text.c */
size_t turn_text_size(const struct hf_turn *t);
void turn_text_add(struct hf_turn *t, struct hf_str text);
void turn_text_reset(struct hf_turn *t);
void turn_text_forget(struct hf_turn *t); /* before it is freed */
void turn_flush(struct hf_turn *t);	  /* store text so far as a part */
void turn_flush_later(struct hf_turn *t); /* within flush_ms */
void turn_throttle(struct hf_turn *t);	  /* read no more for now? */
void turn_resume(struct hf_turn *t);	  /* read again? */

/* heard.c */
/* The client left: mark the output with what it was given. */
int turn_mark_heard(struct hf_turn *t, struct hf_error *e) HF_MUST_CHECK;
/* What T2 says of it, and the view with the output. */
void turn_fill_heard(struct hf_turn *t, struct hf_finish *f);
/* The client left, and the turn goes on. */
void turn_note_gone(struct hf_turn *t);
/* Of an answer on disk: it was sent whole, or its client was given 'd'. */
int turn_report_heard(struct hf_turn_env *env, const struct hf_told *told,
    bool sent, const struct hf_delivered *d, hf_done_fn cb, void *arg,
    struct hf_error *e) HF_MUST_CHECK;

/* finish.c */
void turn_finish(struct hf_turn *t); /* answer complete */
/* To the client of a stream, right before its end: what is told with that. */
void turn_tell_rest(struct hf_turn *t);
void turn_close(struct hf_turn *t); /* FAILED: close on disk, tell */

#endif
