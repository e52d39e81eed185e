/*
 * The control verbs for sessions, locks, keys and status.
 */
#include <config.h>

#include "workers/verbs.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/verbs.h"
#include "workers/verbs_int.h"
#include "workers/view.h"

#define LIST_MOST 10000 /* sessions in one reply */
#define LIST_DEFAULT 50
#define NAME_MOST 64	    /* bytes of a tenant's name or a label */
#define STEP_US 20000	    /* how long others wait for one step */
#define PROGRESS_US 1000000 /* a client hears that it goes on */

/* A walk over rows: where the frames go, and how it ended.  The state of a
 * long reply too. */
struct walk {
	struct hf_verbs *v;
	struct hf_reply *reply;
	struct hf_error *e;
	int rc;
	bool stopped;		  /* the piece is full: there is more */
	const struct hf_id *only; /* keys: this one alone, or NULL */
	const char *secret;	  /* keys: shown with it, or NULL */
	/* Of long replies. */
	struct hf_cursor at;
	char *tenant, *before; /* owned, or NULL */
	int64_t left;	       /* sessions that may still be told */
	struct hf_id session;  /* of the last session seen */
	int phase;	       /* 0 turns, 1 items, 2 attempts */
	int64_t turn;	       /* timeline: of this alone; 0: all */
	bool contents, attempts;
	struct hf_verified sum;
	int64_t said_us; /* when the client heard of it last */
};

/* --- frames ----------------------------------------------------------- */

int
hf_verb_send(
    struct hf_reply *reply, const char *kind, json_t *row, struct hf_error *e)
{
	return hf_reply_data(
	    reply, row == NULL ? NULL : json_pack("{s:o}", kind, row), e);
}

/* Nonzero stops the walk: it failed, or this piece of the reply is full. */
static int
send_row(struct walk *w, const char *kind, json_t *row)
{
	w->rc = hf_verb_send(w->reply, kind, row, w->e);
	w->stopped = w->rc < 0 || hf_reply_full(w->reply);
	return w->stopped;
}

static int
send_view(struct walk *w, const struct hf_view *view, const void *row)
{
	return send_row(w, view->kind, hf_json_view(view, row));
}

/* How a walk ended: by its own rows, or by the store. */
static int
ended(const struct walk *w, int rc)
{
	return w->rc < 0 ? w->rc : rc;
}

static void
drop_walk(void *state)
{
	struct walk *w = state;

	free(w->tenant);
	free(w->before);
	free(w);
}

static struct walk *
new_walk(struct hf_verbs *v, struct hf_error *e)
{
	struct walk *w = calloc(1, sizeof(*w));

	if (w == NULL)
		hf_fail(e, HF_ENOMEM, "out of memory");
	else
		w->v = v;
	return w;
}

static void
resume(struct walk *w, struct hf_reply *r, struct hf_error *e)
{
	w->reply = r;
	w->e = e;
	w->stopped = false;
}

/* --- status ----------------------------------------------------------- */

static const char *
slot_state(uint32_t s)
{
	static const char *const name[] = { "free", "starting", "ready",
		"draining" };

	return s < hf_countof(name) ? name[s] : "unknown";
}

static json_t *
processes(const struct hf_shm *shm)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < HF_SHM_SLOTS && list != NULL; i++) {
		struct hf_slot *s = &shm->h->slot[i];
		uint32_t state = atomic_load(&s->state);

		if (state == HF_SLOT_FREE)
			continue;
		json_array_append_new(list,
		    json_pack("{s:i, s:s, s:i, s:I, "
			      "s:s, s:I, s:I}",
			"slot", (int)i, "role",
			i == HF_SHM_KEEPER ? "keeper" : "worker", "pid",
			(int)atomic_load(&s->pid), "inc",
			(json_int_t)atomic_load(&s->inc), "state",
			slot_state(state), "worked",
			(json_int_t)atomic_load(&s->worked), "in_flight",
			(json_int_t)atomic_load(
			    &s->counters[HF_C_turns_in_flight])));
	}
	return list;
}

static json_t *
counters(const struct hf_shm *shm)
{
	static const char *const name[] = {
#define HF_COUNTER(field, type, metric, labels, help) #field,
#include "base/counters.def"
#undef HF_COUNTER
	};
	json_t *o = json_object();

	for (unsigned i = 0; i < HF_C_COUNT && o != NULL; i++)
		json_object_set_new(o, name[i],
		    json_integer(hf_shm_sum(shm, (enum hf_counter)i)));
	return o;
}

static int
verb_status(struct hf_verbs *v, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	const struct hf_shm_header *h = v->shm->h;
	struct hf_store_stats st = { 0 };
	json_t *listen, *store;
	int rc;

	(void)args;
	rc = hf_inspect_stats(v->inspect, &st, e);
	if (rc < 0)
		return rc;
	listen = json_array();
	for (unsigned i = 0; i < v->n_listen; i++)
		json_array_append_new(
		    listen, hf_json_text(hf_str(v->listen[i])));
	store = hf_json_view(&hf_view_stats, &st);
	return hf_verb_send(reply, "status",
	    json_pack("{s:s, s:i, s:I, s:I, "
		      "s:I, s:i, s:o, s:o, s:o, s:o, s:o}",
		"version", PACKAGE_VERSION, "pid", (int)getppid(), "started_us",
		(json_int_t)h->started_wall_us, "uptime_ms",
		(json_int_t)(hf_wall_us() - h->started_wall_us) / 1000, "boot",
		(json_int_t)atomic_load(&h->boot), "config_generation",
		(int)atomic_load(&h->config_generation), "listen", listen,
		"database", hf_json_text(hf_str(v->database)), "processes",
		processes(v->shm), "store", store, "counters",
		counters(v->shm)),
	    e);
}

/* --- sessions --------------------------------------------------------- */

static int
send_session(void *arg, const struct hf_session_info *s)
{
	struct walk *w = arg;

	w->session = s->id;
	w->left--;
	return send_view(w, &hf_view_session, s);
}

static int
send_turn(void *arg, const struct hf_turn_info *t)
{
	return send_view(arg, &hf_view_turn, t);
}

static int
send_item(void *arg, const struct hf_item_info *i)
{
	struct walk *w = arg;
	struct hf_item_info seen = *i;

	if (!seen.has_heard)
		seen.heard = HF_STR_NONE;
	return send_view(
	    w, w->contents ? &hf_view_contents : &hf_view_item, &seen);
}

static int
send_attempt(void *arg, const struct hf_attempt_info *a)
{
	return send_view(arg, &hf_view_attempt, a);
}

static int
step_list(struct hf_reply *r, void *state, struct hf_error *e)
{
	struct walk *w = state;
	struct hf_session_filter f = {
		.tenant = w->tenant, .before = w->before, .limit = w->left
	};
	int rc;

	resume(w, r, e);
	if (w->left == 0)
		return 0;
	rc = hf_inspect_sessions(w->v->inspect, &f, &w->at, send_session, w, e);
	rc = ended(w, rc);
	return rc < 0 ? rc : w->stopped;
}

static int
verb_sessions_list(struct hf_verbs *v, const json_t *args,
    struct hf_reply *reply, struct hf_error *e)
{
	const json_t *limit = json_object_get(args, "limit");
	const char *tenant, *before;
	int64_t n = LIST_DEFAULT;
	struct walk *w;
	int rc;

	rc = hf_json_arg(args, "tenant", &tenant, e);
	if (rc == 0)
		rc = hf_json_arg(args, "before", &before, e);
	if (rc < 0)
		return rc;
	if (limit != NULL && !json_is_null(limit)) {
		n = json_integer_value(limit);
		if (!json_is_integer(limit) || n < 1 || n > LIST_MOST)
			return hf_fail(e, HF_EINVAL,
			    "args.limit must be 1 "
			    "to %d",
			    LIST_MOST);
	}
	w = new_walk(v, e);
	if (w == NULL)
		return HF_ENOMEM;
	w->left = n;
	w->tenant = tenant == NULL ? NULL : strdup(tenant);
	w->before = before == NULL ? NULL : strdup(before);
	hf_reply_go_on(reply, step_list, drop_walk, w);
	if ((tenant != NULL && w->tenant == NULL) ||
	    (before != NULL && w->before == NULL))
		return hf_fail(e, HF_ENOMEM, "out of memory");
	return 0;
}

static int
show_phase(struct walk *w, struct hf_error *e)
{
	struct hf_inspect *in = w->v->inspect;

	switch (w->phase) {
	case 0:
		return hf_inspect_turns(
		    in, &w->session, &w->at, send_turn, w, e);
	case 1:
		return hf_inspect_items(
		    in, &w->session, &w->at, send_item, w, e);
	default:
		return !w->attempts ? 0 :
				      hf_inspect_attempts(in, &w->session,
					  &w->at, send_attempt, w, e);
	}
}

static int
step_show(struct hf_reply *r, void *state, struct hf_error *e)
{
	struct walk *w = state;
	int rc;

	resume(w, r, e);
	for (; w->phase < 3; w->phase++) {
		rc = ended(w, show_phase(w, e));
		if (rc < 0)
			return rc;
		if (w->stopped)
			return 1;
		w->at = (struct hf_cursor){ 0 };
	}
	return 0;
}

/* args.key and args.tenant: the session that they name. */
static int
arg_session(
    struct walk *w, const json_t *args, hf_session_fn cb, struct hf_error *e)
{
	const char *tenant, *key;
	int rc;

	rc = hf_json_arg(args, "tenant", &tenant, e);
	if (rc == 0)
		rc = hf_json_arg(args, "key", &key, e);
	if (rc < 0)
		return rc;
	if (key == NULL || *key == '\0')
		return hf_fail(e, HF_EINVAL, "args.key must name a session");
	rc = hf_inspect_session(w->v->inspect, tenant, key, cb, w, e);
	return ended(w, rc);
}

static int
verb_sessions_show(struct hf_verbs *v, const json_t *args,
    struct hf_reply *reply, struct hf_error *e)
{
	struct walk *w = new_walk(v, e);

	if (w == NULL)
		return HF_ENOMEM;
	hf_reply_go_on(reply, step_show, drop_walk, w);
	resume(w, reply, e);
	w->contents = json_is_true(json_object_get(args, "contents"));
	w->attempts = json_is_true(json_object_get(args, "attempts"));
	return arg_session(w, args, send_session, e);
}

/* --- timeline ---------------------------------------------------------- */

static int
note_session(void *arg, const struct hf_session_info *s)
{
	struct walk *w = arg;

	w->session = s->id;
	return 0;
}

static int
send_event(void *arg, const struct hf_event_info *e)
{
	return send_view(arg, &hf_view_event, e);
}

static int
step_timeline(struct hf_reply *r, void *state, struct hf_error *e)
{
	struct walk *w = state;
	int rc;

	resume(w, r, e);
	rc = ended(w,
	    hf_inspect_timeline(
		w->v->inspect, &w->session, w->turn, &w->at, send_event, w, e));
	return rc < 0 ? rc : w->stopped;
}

static int
verb_timeline(struct hf_verbs *v, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	struct walk *w = new_walk(v, e);
	const char *turn;
	int rc;

	if (w == NULL)
		return HF_ENOMEM;
	hf_reply_go_on(reply, step_timeline, drop_walk, w);
	rc = hf_json_arg(args, "turn", &turn, e);
	if (rc == 0)
		rc = arg_session(w, args, note_session, e);
	if (rc == 0 && turn != NULL)
		rc = hf_inspect_turn_number(
		    v->inspect, &w->session, turn, &w->turn, e);
	return rc;
}

/* --- verification and locks --------------------------------------------- */

static void
send_finding(void *arg, const struct hf_finding *f)
{
	struct walk *w = arg;

	if (w->rc == 0)
		send_view(w, &hf_view_finding, f);
}

static int
send_verified(struct walk *w)
{
	send_view(w, &hf_view_verified, &w->sum);
	return w->rc;
}

static int
step_verify(struct hf_reply *r, void *state, struct hf_error *e)
{
	struct walk *w = state;
	int64_t until = hf_now_us() + STEP_US;
	int rc = 1;

	resume(w, r, e);
	while (rc > 0 && !w->stopped && hf_now_us() < until)
		rc = ended(w,
		    hf_verify_next(
			w->v->inspect, &w->at, send_finding, w, &w->sum, e));
	if (rc == 0)
		return send_verified(w);
	if (rc > 0 && until - w->said_us > PROGRESS_US) {
		w->said_us = until;
		send_row(
		    w, "progress", hf_json_view(&hf_view_verified, &w->sum));
	}
	return ended(w, rc);
}

static int
step_verify_one(struct hf_reply *r, void *state, struct hf_error *e)
{
	struct walk *w = state;
	int rc;

	resume(w, r, e);
	rc = ended(w,
	    hf_verify_session(
		w->v->inspect, &w->session, send_finding, w, &w->sum, e));
	return rc == 0 ? send_verified(w) : rc;
}

static int
verb_sessions_verify(struct hf_verbs *v, const json_t *args,
    struct hf_reply *reply, struct hf_error *e)
{
	bool all = json_is_true(json_object_get(args, "all"));
	struct walk *w = new_walk(v, e);

	if (w == NULL)
		return HF_ENOMEM;
	hf_reply_go_on(
	    reply, all ? step_verify : step_verify_one, drop_walk, w);
	if (all && json_object_get(args, "key") != NULL)
		return hf_fail(e, HF_EINVAL,
		    "args.key and args.all exclude "
		    "each other");
	return all ? 0 : arg_session(w, args, note_session, e);
}

static int
send_lock(void *arg, const struct hf_lock_info *l)
{
	return send_view(arg, &hf_view_lock, l);
}

static int
step_locks(struct hf_reply *r, void *state, struct hf_error *e)
{
	struct walk *w = state;
	int rc;

	resume(w, r, e);
	rc = ended(w, hf_inspect_locks(w->v->inspect, &w->at, send_lock, w, e));
	return rc < 0 ? rc : w->stopped;
}

static int
verb_locks_list(struct hf_verbs *v, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	struct walk *w = new_walk(v, e);

	(void)args;
	if (w == NULL)
		return HF_ENOMEM;
	hf_reply_go_on(reply, step_locks, drop_walk, w);
	return 0;
}

/* --- keys ------------------------------------------------------------- */

static int
send_key(void *arg, const struct hf_key_info *k)
{
	struct walk *w = arg;
	json_t *row;

	if (w->only != NULL && strcmp(w->only->s, k->id.s) != 0)
		return 0;
	row = hf_json_view(&hf_view_key, k);
	if (row != NULL && w->secret != NULL)
		json_object_set_new(row, "secret", json_string(w->secret));
	send_row(w, "key", row);
	return w->rc; /* a list of keys is short: all at once */
}

static bool
plain_name(const char *z)
{
	size_t n = strspn(z,
	    "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return n > 0 && n <= NAME_MOST && z[n] == '\0';
}

static bool
plain_label(const char *z)
{
	size_t n = strlen(z);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)z[i] < 0x20 || z[i] == 0x7f)
			return false;
	return n <= NAME_MOST;
}

static int
verb_keys_create(struct hf_verbs *v, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	struct walk w = { .reply = reply, .e = e };
	char secret[HF_SECRET_SIZE];
	const char *tenant, *label;
	struct hf_id id;
	int rc;

	rc = hf_json_arg(args, "tenant", &tenant, e);
	if (rc == 0)
		rc = hf_json_arg(args, "label", &label, e);
	if (rc < 0)
		return rc;
	if (tenant == NULL || !plain_name(tenant))
		return hf_fail(e, HF_EINVAL,
		    "args.tenant must be 1 to %d of "
		    "the characters A-Z a-z 0-9 . _ -",
		    NAME_MOST);
	if (label != NULL && !plain_label(label))
		return hf_fail(e, HF_EINVAL,
		    "args.label: at most %d bytes, "
		    "no control characters",
		    NAME_MOST);
	rc = hf_keep_key_create(
	    v->keep, tenant, label == NULL ? "" : label, &id, secret, e);
	if (rc < 0)
		return rc;
	w.only = &id;
	w.secret = secret;
	rc = hf_inspect_keys(v->inspect, send_key, &w, e);
	explicit_bzero(secret, sizeof(secret));
	return ended(&w, rc);
}

static int
verb_keys_list(struct hf_verbs *v, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	struct walk w = { .reply = reply, .e = e };
	int rc;

	(void)args;
	rc = hf_inspect_keys(v->inspect, send_key, &w, e);
	return ended(&w, rc);
}

static int
verb_keys_revoke(struct hf_verbs *v, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	struct walk w = { .reply = reply, .e = e };
	const char *prefix;
	struct hf_id id;
	int rc;

	rc = hf_json_arg(args, "prefix", &prefix, e);
	if (rc < 0)
		return rc;
	if (prefix == NULL || *prefix == '\0')
		return hf_fail(e, HF_EINVAL, "args.prefix must name a key");
	rc = hf_keep_key_revoke(v->keep, prefix, &id, e);
	if (rc < 0)
		return rc;
	w.only = &id;
	rc = hf_inspect_keys(v->inspect, send_key, &w, e);
	return ended(&w, rc);
}

/* --- dispatch --------------------------------------------------------- */

static const struct {
	const char *verb;
	hf_verb_fn *run;
} table[] = { { "status", verb_status }, { "check", hf_verb_check },
	{ "sessions.list", verb_sessions_list },
	{ "sessions.show", verb_sessions_show }, { "timeline", verb_timeline },
	{ "sessions.verify", verb_sessions_verify },
	{ "locks.list", verb_locks_list }, { "keys.create", verb_keys_create },
	{ "keys.list", verb_keys_list }, { "keys.revoke", verb_keys_revoke },
	{ "providers.list", hf_verb_providers },
	{ "providers.show", hf_verb_provider },
	{ "providers.test", hf_verb_provider_test },
	{ "providers.disable", hf_verb_disable },
	{ "providers.enable", hf_verb_enable },
	{ "providers.trip", hf_verb_trip },
	{ "providers.reset", hf_verb_reset },
	{ "failovers.list", hf_verb_failovers },
	{ "failovers.summary", hf_verb_failover_summary },
	{ "config.show", hf_verb_config_show }, { "reload", hf_verb_reload },
	{ "drain", hf_verb_drain } };

/* Every verb of the protocol that verbs.def names has a row here. */
#define HF_VERB(verb, words, flags, help) +(((flags)&HF_VERB_LOCAL) == 0)
_Static_assert(hf_countof(table) == 0
#include "base/verbs.def"
    ,
    "verbs.def and this table differ");
#undef HF_VERB

int
hf_verb_run(struct hf_verbs *v, const char *verb, const json_t *args,
    struct hf_reply *reply, struct hf_error *e)
{
	for (size_t i = 0; i < hf_countof(table); i++) {
		if (strcmp(table[i].verb, verb) == 0) {
			int rc = table[i].run(v, args, reply, e);

			hf_verb_audit(verb, args, reply, rc);
			return rc;
		}
	}
	return hf_fail(e, HF_EINVAL, "unknown verb");
}
