/*
 * The control verbs.
 */
#include <config.h>

#include "workers/verbs.h"

#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

#define LIST_MOST	10000	/* sessions in one reply */
#define NAME_MOST	64	/* bytes of a tenant's name or a label */

/* A walk over rows: where the frames go, and how it ended. */
struct walk {
	struct hf_reply	*reply;
	struct hf_error	*e;
	int		 rc;
	bool		 contents;	/* items with their bodies */
	const struct hf_id *only;	/* keys: this one alone, or NULL */
	const char	*secret;	/* keys: shown with it, or NULL */
	struct hf_id	 session;	/* of the last session seen */
};

/* --- JSON ------------------------------------------------------------- */

/* Text from outside as a JSON string; bytes that are no UTF-8 become
 * question marks.  NULL is null. */
static json_t *
text(struct hf_str s)
{
	struct hf_buf b;
	json_t *j;

	if (s.p == NULL)
		return json_null();
	j = json_stringn(s.p, s.size);
	if (j != NULL)
		return j;
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_putstr(&b, s);
	for (size_t i = 0; hf_buf_ok(&b) && i < b.size; i++)
		if ((unsigned char)b.data[i] >= 0x80)
			b.data[i] = '?';
	j = hf_buf_ok(&b) ? json_stringn(b.data, b.size) : NULL;
	hf_buf_free(&b);
	return j;
}

static json_t *
ztext(const char *z)
{
	return text(hf_str(z));
}

/* Send {kind: row}; nonzero stops the walk. */
static int
send_row(struct walk *w, const char *kind, json_t *row)
{
	json_t *data = row == NULL ? NULL : json_pack("{s:o}", kind, row);

	w->rc = hf_reply_data(w->reply, data, w->e);
	return w->rc;
}

/* How a walk ended: by its own rows, or by the store. */
static int
ended(const struct walk *w, int rc)
{
	return w->rc < 0 ? w->rc : rc;
}

/* An optional string member; HF_EINVAL if it is something else. */
static int
arg_text(const json_t *args, const char *key, const char **out,
    struct hf_error *e)
{
	const json_t *j = json_object_get(args, key);

	/* The parser lets no string with a NUL in it through. */
	*out = json_string_value(j);
	if (j == NULL || json_is_null(j) || *out != NULL)
		return 0;
	return hf_fail(e, HF_EINVAL, "args.%s must be a string", key);
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
		json_array_append_new(list, json_pack("{s:i, s:s, s:i, s:I, "
		    "s:s, s:I, s:I}", "slot", (int)i, "role",
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
	struct walk w = { .reply = reply, .e = e };
	struct hf_store_stats st = { 0 };
	json_t *listen, *store;
	int rc;

	(void)args;
	rc = hf_inspect_stats(v->inspect, &st, e);
	if (rc < 0)
		return rc;
	listen = json_array();
	for (unsigned i = 0; i < v->n_listen; i++)
		json_array_append_new(listen, ztext(v->listen[i]));
	store = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i}",
	    "sessions", (json_int_t)st.sessions,
	    "turns", (json_int_t)st.turns, "items", (json_int_t)st.items,
	    "open_turns", (json_int_t)st.open_turns,
	    "queued_turns", (json_int_t)st.queued_turns,
	    "db_bytes", (json_int_t)st.db_bytes,
	    "wal_bytes", (json_int_t)st.wal_bytes,
	    "schema_version", st.schema_version);
	return send_row(&w, "status", json_pack("{s:s, s:i, s:I, s:I, s:I, "
	    "s:i, s:o, s:o, s:o, s:o, s:o}", "version", PACKAGE_VERSION,
	    "pid", (int)getppid(),
	    "started_us", (json_int_t)h->started_wall_us,
	    "uptime_ms", (json_int_t)(hf_wall_us() - h->started_wall_us) /
	    1000, "boot", (json_int_t)atomic_load(&h->boot),
	    "config_generation", (int)atomic_load(&h->config_generation),
	    "listen", listen, "database", ztext(v->database),
	    "processes", processes(v->shm), "store", store,
	    "counters", counters(v->shm)));
}

/* --- sessions --------------------------------------------------------- */

static int
send_session(void *arg, const struct hf_session_info *s)
{
	struct walk *w = arg;

	w->session = s->id;
	return send_row(w, "session", json_pack("{s:s, s:o, s:o, s:I, s:I, "
	    "s:I, s:o, s:o, s:b, s:i, s:I, s:I, s:I, s:I}", "id", s->id.s,
	    "tenant", ztext(s->tenant), "name", ztext(s->name),
	    "created_us", (json_int_t)s->created_us,
	    "updated_us", (json_int_t)s->updated_us,
	    "turns", (json_int_t)s->turns, "last_state",
	    ztext(s->last_state), "last_target", ztext(s->last_target),
	    "locked", s->locked, "owner_slot", (int)s->owner_slot,
	    "owner_inc", (json_int_t)s->owner_inc,
	    "fence", (json_int_t)s->fence,
	    "lock_since_us", (json_int_t)s->lock_since_us,
	    "queued", (json_int_t)s->queued));
}

static int
send_turn(void *arg, const struct hf_turn_info *t)
{
	return send_row(arg, "turn", json_pack("{s:s, s:I, s:I, s:I, s:o, "
	    "s:b, s:o, s:b, s:I, s:I, s:o, s:o, s:i, s:I, s:o, s:I, s:I}",
	    "id", t->id.s, "seq", (json_int_t)t->seq,
	    "parent_seq", (json_int_t)t->parent_seq,
	    "retry_of_seq", (json_int_t)t->retry_of_seq,
	    "state", ztext(t->state), "on_path", t->on_path,
	    "route", ztext(t->route), "stream", t->stream,
	    "started_us", (json_int_t)t->started_us,
	    "ended_us", (json_int_t)t->ended_us,
	    "finish_reason", ztext(t->finish_reason),
	    "error_class", ztext(t->error_class), "status", t->status,
	    "attempts", (json_int_t)t->attempts, "target", ztext(t->target),
	    "first_token_us", (json_int_t)t->first_token_us,
	    "total_us", (json_int_t)t->total_us));
}

static int
send_item(void *arg, const struct hf_item_info *i)
{
	struct walk *w = arg;
	json_t *row;

	row = json_pack("{s:I, s:I, s:o, s:o, s:o, s:b, s:b, s:b}",
	    "turn_seq", (json_int_t)i->turn_seq, "idx", (json_int_t)i->idx,
	    "kind", ztext(i->kind), "role", ztext(i->role),
	    "origin", ztext(i->origin), "output", i->output,
	    "lead", i->lead, "has_heard", i->has_heard);
	if (row != NULL && w->contents) {
		json_object_set_new(row, "body", text(i->body));
		json_object_set_new(row, "heard", i->has_heard ?
		    text(i->heard) : json_null());
	}
	return send_row(w, "item", row);
}

static int
send_attempt(void *arg, const struct hf_attempt_info *a)
{
	return send_row(arg, "attempt", json_pack("{s:I, s:i, s:o, s:o, s:o, "
	    "s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
	    "turn_seq", (json_int_t)a->turn_seq, "n", a->n,
	    "target", ztext(a->target), "cls", ztext(a->cls),
	    "reason", ztext(a->reason), "http_status", a->http_status,
	    "started_us", (json_int_t)a->started_us,
	    "first_token_us", (json_int_t)a->first_token_us,
	    "total_us", (json_int_t)a->total_us,
	    "bytes_out", (json_int_t)a->bytes_out,
	    "bytes_in", (json_int_t)a->bytes_in,
	    "tokens_in", (json_int_t)a->tokens_in,
	    "tokens_out", (json_int_t)a->tokens_out));
}

static int
verb_sessions_list(struct hf_verbs *v, const json_t *args,
    struct hf_reply *reply, struct hf_error *e)
{
	const json_t *limit = json_object_get(args, "limit");
	struct walk w = { .reply = reply, .e = e };
	struct hf_session_filter f = { 0 };
	int rc;

	rc = arg_text(args, "tenant", &f.tenant, e);
	if (rc == 0)
		rc = arg_text(args, "before", &f.before, e);
	if (rc < 0)
		return rc;
	if (limit != NULL && !json_is_null(limit)) {
		f.limit = json_integer_value(limit);
		if (!json_is_integer(limit) || f.limit < 1 ||
		    f.limit > LIST_MOST)
			return hf_fail(e, HF_EINVAL, "args.limit must be 1 "
			    "to %d", LIST_MOST);
	}
	rc = hf_inspect_sessions(v->inspect, &f, send_session, &w, e);
	return ended(&w, rc);
}

static int
verb_sessions_show(struct hf_verbs *v, const json_t *args,
    struct hf_reply *reply, struct hf_error *e)
{
	struct walk w = { .reply = reply, .e = e };
	const char *tenant, *key;
	int rc;

	rc = arg_text(args, "tenant", &tenant, e);
	if (rc == 0)
		rc = arg_text(args, "key", &key, e);
	if (rc < 0)
		return rc;
	if (key == NULL || *key == '\0')
		return hf_fail(e, HF_EINVAL, "args.key must name a session");
	w.contents = json_is_true(json_object_get(args, "contents"));
	rc = hf_inspect_session(v->inspect, tenant, key, send_session, &w, e);
	if (rc == 0 && w.rc == 0)
		rc = hf_inspect_turns(v->inspect, &w.session, send_turn, &w,
		    e);
	if (rc == 0 && w.rc == 0)
		rc = hf_inspect_items(v->inspect, &w.session, send_item, &w,
		    e);
	if (rc == 0 && w.rc == 0 &&
	    json_is_true(json_object_get(args, "attempts")))
		rc = hf_inspect_attempts(v->inspect, &w.session, send_attempt,
		    &w, e);
	return ended(&w, rc);
}

/* --- keys ------------------------------------------------------------- */

static int
send_key(void *arg, const struct hf_key_info *k)
{
	struct walk *w = arg;
	json_t *row;

	if (w->only != NULL && strcmp(w->only->s, k->id.s) != 0)
		return 0;
	row = json_pack("{s:s, s:o, s:o, s:I, s:I}", "id", k->id.s,
	    "tenant", ztext(k->tenant), "label", ztext(k->label),
	    "created_us", (json_int_t)k->created_us,
	    "revoked_us", (json_int_t)k->revoked_us);
	if (row != NULL && w->secret != NULL)
		json_object_set_new(row, "secret", ztext(w->secret));
	return send_row(w, "key", row);
}

static bool
plain_name(const char *z)
{
	size_t n = strspn(z, "abcdefghijklmnopqrstuvwxyz"
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
verb_keys_create(struct hf_verbs *v, const json_t *args,
    struct hf_reply *reply, struct hf_error *e)
{
	struct walk w = { .reply = reply, .e = e };
	char secret[HF_SECRET_SIZE];
	const char *tenant, *label;
	struct hf_id id;
	int rc;

	rc = arg_text(args, "tenant", &tenant, e);
	if (rc == 0)
		rc = arg_text(args, "label", &label, e);
	if (rc < 0)
		return rc;
	if (tenant == NULL || !plain_name(tenant))
		return hf_fail(e, HF_EINVAL, "args.tenant must be 1 to %d of "
		    "the characters A-Z a-z 0-9 . _ -", NAME_MOST);
	if (label != NULL && !plain_label(label))
		return hf_fail(e, HF_EINVAL, "args.label: at most %d bytes, "
		    "no control characters", NAME_MOST);
	rc = hf_keep_key_create(v->keep, tenant, label == NULL ? "" : label,
	    &id, secret, e);
	if (rc < 0)
		return rc;
	w.only = &id;
	w.secret = secret;
	rc = hf_inspect_keys(v->inspect, send_key, &w, e);
	explicit_bzero(secret, sizeof(secret));
	return ended(&w, rc);
}

static int
verb_keys_list(struct hf_verbs *v, const json_t *args,
    struct hf_reply *reply, struct hf_error *e)
{
	struct walk w = { .reply = reply, .e = e };
	int rc;

	(void)args;
	rc = hf_inspect_keys(v->inspect, send_key, &w, e);
	return ended(&w, rc);
}

static int
verb_keys_revoke(struct hf_verbs *v, const json_t *args,
    struct hf_reply *reply, struct hf_error *e)
{
	struct walk w = { .reply = reply, .e = e };
	const char *prefix;
	struct hf_id id;
	int rc;

	rc = arg_text(args, "prefix", &prefix, e);
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
	const char	*verb;
	int		(*run)(struct hf_verbs *v, const json_t *args,
			    struct hf_reply *reply, struct hf_error *e);
} table[] = {
	{ "status", verb_status },
	{ "sessions.list", verb_sessions_list },
	{ "sessions.show", verb_sessions_show },
	{ "keys.create", verb_keys_create },
	{ "keys.list", verb_keys_list },
	{ "keys.revoke", verb_keys_revoke }
};

/* Every verb that verbs.def names has a row here. */
#define HF_VERB(verb, words, change, help) + 1
_Static_assert(hf_countof(table) == 0
#include "base/verbs.def"
    , "verbs.def and this table differ");
#undef HF_VERB

int
hf_verb_run(struct hf_verbs *v, const char *verb, const json_t *args,
    struct hf_reply *reply, struct hf_error *e)
{
	for (size_t i = 0; i < hf_countof(table); i++)
		if (strcmp(table[i].verb, verb) == 0)
			return table[i].run(v, args, reply, e);
	return hf_fail(e, HF_EINVAL, "unknown verb");
}
