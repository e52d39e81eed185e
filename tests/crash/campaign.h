/*
 * The kill campaign: callers that know each byte they must get, a provider
 * that knows what it must be told, and somebody who kills workers.
 *
 * A turn has an id, "c7.t2": connection 7, its second turn.  It asks with
 * "say ID WORDS PACE" and is answered "ID.0 ID.1 ID.2 ...", so that one look
 * tells what is missing, doubled or another's.  A connection is a session.
 */
#ifndef HF_TESTS_CRASH_CAMPAIGN_H
#define HF_TESTS_CRASH_CAMPAIGN_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/hf.h"

#define CAMPAIGN_ID 32

struct campaign_ask {
	char id[CAMPAIGN_ID];
	unsigned words;
	unsigned pace_ms; /* between two words; 0: as fast as it goes */
};

/* The user message, and back; false: it is none. */
void campaign_ask_print(const struct campaign_ask *a, char *out, size_t size);
bool campaign_ask_parse(struct hf_str text, struct campaign_ask *a);
/* The whole answer. */
void campaign_answer(const struct campaign_ask *a, struct hf_buf *out);
/* "c7.t2": 7 and 2. */
bool campaign_id_parse(const char *id, unsigned long *conn, unsigned *turn);

/* --- the provider (campaign_provider.c) ---------------------------------- */

/* Listens on loopback, prints the port, and serves until stdin ends; then
 * prints what it saw as JSON.  The exit code. */
int campaign_provider(void);

/* --- the callers (campaign_client.c) -------------------------------------- */

struct campaign_options {
	unsigned short port;
	const char *prefix; /* of session names */
	unsigned long turns, kills;
	unsigned connections; /* at a time */
	unsigned words;	      /* of an answer, on average */
	unsigned pace_ms;
	unsigned slow; /* every so many connections reads slowly; 0: none */
	pid_t master;  /* whose workers are killed */
	unsigned kill_from_ms, kill_to_ms;
	unsigned long seed;
	const char *out; /* a line for each turn, or NULL */
};

/* How a turn ended, as its client saw it. */
enum campaign_fate {
	FATE_EXACT,
	FATE_CORRUPT,	/* a byte that is not the right one */
	FATE_TRUNCATED, /* ended in order, with too little */
	FATE_ERROR,	/* ended with an error that says so */
	FATE_BROKEN,	/* the connection broke, or nothing came any more */
	N_FATES
};
/* ... and where it stood then. */
enum campaign_stage {
	STAGE_CONNECT,
	STAGE_SENT, /* not a byte of the answer yet */
	STAGE_HEAD, /* no text yet */
	STAGE_TEXT,
	STAGE_TAIL, /* all the text, not the end */
	STAGE_END,
	N_STAGES
};

struct campaign_samples {
	double *ms;
	size_t n, cap;
};

struct campaign_result {
	unsigned long turns, kills, connections;
	unsigned long fate[N_FATES], at[N_STAGES]; /* of errors and breaks */
	double seconds;
	/* Of turns whose client reads at once: from the request to the first
	 * text, the longest time between two pieces, and the longer of both. */
	struct campaign_samples first, gap, silence;
};

/* Plays until both as many turns and as many kills are done; 'kills' counts
 * those of somebody else. */
void campaign_play(const struct campaign_options *o,
    const _Atomic unsigned long *kills, struct campaign_result *r);

const char *campaign_fate_name(enum campaign_fate f);
const char *campaign_stage_name(enum campaign_stage s);

#endif
