/*
 * A turn: one client request and what answers it.  A surface makes a
 * hf_turn_input, starts the turn and hears back through hf_surface; it never
 * sees providers, the store or retries.  Loop thread only.
 *
 * Invariants (each has a test): no provider is called before T1 is durable;
 * no end is told before T2 is durable; a stale fence changes nothing and
 * aborts the turn; every payload is built from what is on disk, for its
 * attempt, and is freed with it.
 */
#ifndef HF_GATEWAY_TURN_TURN_H
#define HF_GATEWAY_TURN_TURN_H

#include <event2/event.h>

#include "base/arena.h"
#include "base/conf.h"
#include "base/shm.h"
#include "gateway/provider/provider.h"
#include "gateway/turn/align.h"
#include "gateway/turn/items.h"
#include "gateway/upstream/upstream.h"
#include "store/store.h"

struct hf_turn;

/* What all turns of a worker share. */
/* Those that wait for room at a target, see crowd.c. */
struct hf_crowd {
	struct hf_turn *first, *last;
	struct hf_turn *going; /* was first, and is being let through */
};

struct hf_turn_env {
	struct event_base *base;
	const struct hf_conf *conf;
	struct hf_store *store;
	struct hf_shm *shm;
	struct hf_upstream *upstream;
	struct hf_turn *queued;	     /* list: wait for a grant */
	struct hf_attempt *attempts; /* list: calls in flight */
	unsigned n_turns;	     /* not yet freed */
	struct hf_shadow *shadows;   /* list, see shadow.c */
	unsigned n_shadows;
	bool draining; /* nothing is begun for later turns */
	struct hf_crowd crowd[HF_SHM_TARGETS];
	struct event *crowd_ev; /* NULL: nobody waited yet */
	/* Targets that refused to go on with an assistant message, whatever
	 * the configuration says. */
	const struct hf_conf_target *no_prefill[16];
	size_t loose; /* bytes of text kept of streams without a row */
	/* Turns whose answers were handed over, to be noted on disk soon. */
	struct event *sent_ev;
	int64_t sent[64];
	unsigned n_sent;
};

/* What a process that died left of the turn that served this request. */
struct hf_turn_resumed {
	struct hf_id turn;
	bool begun;	    /* the client has a beginning of the response */
	int first_target;   /* that it names; -1: not known */
	bool poisoned;	    /* processes died of it: do not try again */
	uint64_t text_size; /* bytes of text that were told */
	int64_t said_us;    /* hf_now_us() of the last; 0: none was */
	struct hf_str text; /* the last of them */
};

struct hf_turn_input {
	char tenant[64];
	struct hf_str session; /* name; size 0: stateless */
	enum hf_history_mode mode;
	const struct hf_conf_route *route;
	struct hf_draft draft;	       /* all items of the request */
	struct hf_str params;	       /* JSON object, see provider.h */
	struct hf_str request;	       /* raw body; kept if there is a session
					* or an idempotency key */
	struct hf_str idempotency_key; /* size 0: none */
	bool stream;		       /* the client wants a stream */
	bool sdk_retry;		       /* the SDK marks it as a retry */
	unsigned repairs;	       /* lone surrogates made U+FFFD */
	int64_t received_us;
	bool resumes; /* another process served it: 'resumed' says how far */
	struct hf_turn_resumed resumed;
	struct hf_arena *arena; /* owns all of the above; the turn
				 * takes the arena over */
};

struct hf_answer_call {
	struct hf_str id, name, arguments; /* id: ours */
};

struct hf_answer {
	struct hf_buf text; /* of a stream only what is not told yet, or more */
	struct hf_buf refusal;
	struct hf_answer_call *call;
	unsigned n_call, cap_call;
	enum hf_finish_reason finish;
	int64_t tokens_in, tokens_out, tokens_cached,
	    tokens_reasoning; /* -1: unknown */
};

/* How much of an answer a client was given. */
struct hf_delivered {
	size_t text;	/* bytes of its text, then of its refusal */
	unsigned calls; /* whole tool calls */
};

/* An answer that is being told, for hf_turn_sent(). */
struct hf_told {
	int64_t session_row, turn_row; /* 0: not stored */
	bool again;		       /* not for the first time */
};

/* For response headers and bodies. */
struct hf_turn_info {
	struct hf_told told;
	const char *session; /* ses_..., or NULL: stateless */
	const char *turn;    /* turn_... */
	const char *model;   /* what the answer says it is from */
	const char *target;  /* that answers, or of the last attempt */
	const char *history; /* what was assumed of the list; NULL:
			      * who knew it died */
	unsigned attempts;
	unsigned first_target; /* of the route: what headers and model name */
	bool last_resort;      /* nobody answered: it is the route's own */
	bool switched;	       /* the headers named another target */
	unsigned repairs;
	/* Turns and items of the history that the target was not told; in a
	 * stream also if that came about after the headers had left. */
	unsigned omitted_turns, omitted_items;
	bool omitted_later;
	int64_t created_s; /* wall time */
};

struct hf_turn_failure {
	int status;
	const char *type, *code;      /* in the words of chat; valid during the
				       * call */
	struct hf_str message, param; /* param size 0: null */
	int64_t retry_after_ms;	      /* -1: none */
	bool final;		      /* retrying at once is no use */
};

/* How a turn talks to its surface.  finish and fail are the last calls. */
struct hf_surface {
	/* The turn's id, before anything of it is on disk or told; again when
	 * an earlier turn's answer is told instead.  Whoever takes the request
	 * over if we die finds the turn by it. */
	void (*turn)(void *arg, const struct hf_id *id);
	/* Stream clients only: the first content, or the end, is about to
	 * come. */
	void (*start)(void *arg, const struct hf_turn_info *i);
	/* Stream clients only: TEXT as it comes, then, in one go with the
	 * finish, REFUSAL and TOOL_CALL; the id of a call is ours. */
	void (*event)(void *arg, const struct hf_event *ev);
	void (*finish)(
	    void *arg, const struct hf_turn_info *i, const struct hf_answer *a);
	void (*fail)(void *arg, const struct hf_turn_info *i,
	    const struct hf_turn_failure *f);
	/* Stream clients only, after start: a sign of life. */
	void (*beat)(void *arg);
	/* Bytes not yet taken by the client. */
	size_t (*backlog)(void *arg);
};

/* Has this turn a row on disk?  Else it lives in memory only. */
static inline bool
hf_turn_is_durable(const struct hf_conf *conf, const struct hf_turn_input *in)
{
	return in->session.size > 0 || in->idempotency_key.size > 0 ||
	    conf->gateway.stateless == HF_STATELESS_KEEP;
}

/* Takes over in->arena.  No callback runs before this returns. */
struct hf_turn *hf_turn_start(struct hf_turn_env *env,
    const struct hf_turn_input *in, const struct hf_surface *surface,
    void *arg);
/* Its first step, once: as soon as the surface is ready to hear of the end,
 * while the request is still in the processor's caches. */
void hf_turn_go(struct hf_turn *t);
/* The client left, and was given that much: the surface is gone after this. */
void hf_turn_client_gone(struct hf_turn *t, const struct hf_delivered *d);
/* The client's backlog has shrunk. */
void hf_turn_drained(struct hf_turn *t);

/* The whole answer of a stored turn was given to the kernel: the same request
 * is from now on a new turn; or its client left before and was given 'd': the
 * same request is told the answer again, and the history has what was heard.
 * Noted on disk within a moment. */
void hf_turn_sent(struct hf_turn_env *env, const struct hf_told *told,
    bool sent, const struct hf_delivered *d);

/* Cut all calls that are left; the turns themselves must have ended. */
void hf_turn_env_free(struct hf_turn_env *env);

/* The own wake-up fired: look for turns that were granted their lease. */
void hf_turn_grants(struct hf_turn_env *env);

#endif
