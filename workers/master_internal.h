/*
 * The master's tables, shared by master.c (phases, signals), children.c (one
 * child's life), deaths.c (its end), inherit.c (its connections) and reload.c
 * (configurations).
 */
#ifndef HF_WORKERS_MASTER_INTERNAL_H
#define HF_WORKERS_MASTER_INTERNAL_H

#include <sys/types.h>

#include "base/conf.h"
#include "base/err.h"
#include "base/hold.h"
#include "base/shm.h"
#include "base/sm.h"
#include "workers/listen.h"
#include "workers/supervise.h"

/* Two generations share the worker slots during a reload. */
#define HF_MASTER_WORKERS ((HF_SHM_SLOTS - 1) / 2)

struct hf_handover;
struct hf_ipc;

enum hf_phase {
	HF_PHASE_KEEPER,  /* waits for the keeper's first ready */
	HF_PHASE_WORKERS, /* waits for the first workers */
	HF_PHASE_RUNNING,
	HF_PHASE_DRAINING, /* workers finish their turns */
	HF_PHASE_CLOSING,  /* the keeper finishes */
	HF_PHASE_DONE
};

enum hf_life {
	HF_LIFE_NONE,	 /* the slot is free */
	HF_LIFE_WAITING, /* dead; restarts at restart_us */
	HF_LIFE_STARTING,
	HF_LIFE_READY,
	HF_LIFE_DRAINING, /* told to finish; no restart afterwards */
	HF_LIFE_STOPPING  /* told to stop now; no restart afterwards */
};

/* A checked configuration and the memfd that children read it from. */
struct hf_generation {
	unsigned number;
	unsigned workers;
	struct hf_conf *conf;
	int fd;
};

struct hf_child {
	struct hf_sm life; /* enum hf_life */
	pid_t pid;
	uint64_t inc;
	int fd; /* our end of its socketpair; -1 */
	unsigned generation;
	int64_t started_us, restart_us;
	int64_t deadline_us; /* stop, then kill; 0: none */
	int64_t abort_us;    /* SIGABRT sent then; 0: not */
	unsigned failures, early_kills;
	bool was_ready;
	bool killed; /* SIGKILL sent by us */
	struct hf_beat loop, store;
};

struct hf_master {
	const char *conf_path;
	struct hf_sm phase; /* enum hf_phase */
	int exit_code;
	struct hf_shm shm;
	int shm_fd, lock_fd, control_fd, signal_fd;
	bool control_made; /* by us: unlink it at the end */
	int listen_fd[HF_LISTEN_MAX];
	char listen_name[HF_LISTEN_MAX][HF_ADDR_SIZE];
	unsigned n_listen;
	uint64_t boot;
	uint32_t spawns;
	struct hf_generation cur, next; /* next.conf NULL: no reload */
	unsigned generations;		/* numbers given so far */
	bool reload_wanted;
	/* Requests of the keeper: the newest one, and the newest one that the
	 * reload under way (or the last one) answers. */
	int64_t reload_asked, reload_taken;
	/* Keys that the newest reload could not change. */
	char reload_note[200];
	bool retiring;	  /* an old generation still drains */
	bool reap_all;	  /* the keeper missed a record */
	int64_t drain_us; /* deadline of HF_PHASE_DRAINING */
	int64_t watchdog_us, watchdog_next_us;
	struct hf_child child[HF_SHM_SLOTS];
	/* Connections that outlive their workers; NULL, -1: handover is off. */
	struct hf_hold hold;
	int hold_fd;
	struct hf_handover *handover;
	/* The first configuration: what needs a restart to change (sockets,
	 * files) is taken from it for as long as we live. */
	struct hf_conf *first;
};

/* children.c */
void hf_children_init(struct hf_master *m);
/* Start a process in a free slot; a failure is treated like its death. */
void hf_child_start(struct hf_master *m, unsigned slot, unsigned generation);
/* A free slot for a worker, or 0. */
unsigned hf_child_slot(const struct hf_master *m);
void hf_child_receive(struct hf_master *m, unsigned slot);
/* Deadlines, restarts and heartbeats; returns when to look again. */
int64_t hf_children_tick(struct hf_master *m, int64_t now_us);
/* Told to finish within 'ms' (drain) or to end in order at once (stop). */
void hf_child_drain(struct hf_master *m, unsigned slot, int64_t ms);
void hf_child_stop(struct hf_master *m, unsigned slot);
bool hf_child_lives(const struct hf_child *c);
/* Its event loop has not moved for longer than it usually takes. */
bool hf_child_slow(const struct hf_master *m, unsigned slot);
/* Workers of a generation (0: any) that are in that state of life. */
unsigned hf_children_count(
    const struct hf_master *m, unsigned generation, enum hf_life life);
unsigned hf_children_alive(const struct hf_master *m); /* workers */
const char *hf_child_role(unsigned slot);
/* To the keeper: the log level now; {slot, inc} is dead (0: look yourself). */
void hf_keeper_config(struct hf_master *m);
void hf_keeper_reap(struct hf_master *m, unsigned slot, uint64_t inc);
/* How the reload went that answers the requests up to this one. */
void hf_keeper_reloaded(
    struct hf_master *m, int64_t request, int rc, const char *text);

/* deaths.c */
/* waitpid() for all who died. */
void hf_children_reap(struct hf_master *m);

/* inherit.c */
/* Decides whether handover is on, and says so. */
int hf_inherit_open(struct hf_master *m, struct hf_error *e) HF_MUST_CHECK;
void hf_inherit_close(struct hf_master *m);
/* A worker told of a connection; takes 'fd' (-1: none came). */
void hf_inherit_record(
    struct hf_master *m, unsigned slot, const struct hf_ipc *r, int fd);
/* It died, its inc is cleared in the scoreboard, its last words were heard:
 * its connections go to others.  Before another takes its place. */
void hf_inherit_death(
    struct hf_master *m, unsigned slot, uint64_t inc, bool fault);
/* What could not be handed over yet; returns when to look again. */
int64_t hf_inherit_tick(struct hf_master *m, int64_t now_us);

/* reload.c */
int hf_generation_load(struct hf_master *m, struct hf_generation *g,
    struct hf_error *e) HF_MUST_CHECK;
void hf_generation_free(struct hf_master *m, struct hf_generation *g);
/* Begins a reload that is wanted, takes over when the new workers are ready,
 * says when the old ones are gone. */
void hf_reload_step(struct hf_master *m);
/* A new worker could not start: keep what runs. */
void hf_reload_abandon(struct hf_master *m, const char *reason);
/* The keeper was asked for one. */
void hf_reload_ask(struct hf_master *m, int64_t request);
/* The service ends: no reload will be done any more. */
void hf_reload_cancel(struct hf_master *m);
const struct hf_generation *hf_generation_of(
    const struct hf_master *m, unsigned number);

/* master.c */
void hf_master_fail(struct hf_master *m, int exit_code);
/* As on TERM. */
void hf_master_drain(struct hf_master *m);

#endif
