/*
 * Without the daemon: the database opened read-only, the same data that the
 * control verbs give.  This process has no other connection to it.
 */
#include <config.h>

#include "ctl/local.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/conf.h"
#include "store/inspect.h"

#define FAILOVERS_DEFAULT 50

struct offline {
	const struct hf_ctl *ctl;
	hf_ctl_data_fn fn;
	void *arg;
	bool failed;	      /* no memory */
	struct hf_id session; /* seen last */
	char database[4096], key_file[4096];
	struct hf_inspect *in;
	struct hf_verified sum;
	int64_t left; /* failovers to be told */
};

/* --- rows ----------------------------------------------------------------- */

static json_t *
string(struct hf_str s)
{
	struct hf_buf b;
	json_t *j;

	if (s.p == NULL)
		return json_null();
	j = json_stringn(s.p, s.size);
	if (j != NULL)
		return j;
	/* Not UTF-8. */
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
member(enum hf_field_type type, const void *at)
{
	switch (type) {
	case HF_FIELD_ID:
		return string(hf_str(((const struct hf_id *)at)->s));
	case HF_FIELD_TEXT:
		return string(hf_str(*(const char *const *)at));
	case HF_FIELD_STR:
		return string(*(const struct hf_str *)at);
	case HF_FIELD_INT:
		return json_integer(*(const int *)at);
	case HF_FIELD_UINT:
		return json_integer((json_int_t) * (const unsigned *)at);
	case HF_FIELD_I64:
		return json_integer((json_int_t) * (const int64_t *)at);
	case HF_FIELD_U64:
		return json_integer((json_int_t) * (const uint64_t *)at);
	case HF_FIELD_BOOL:
		return json_boolean(*(const bool *)at);
	}
	return NULL;
}

static int
put(struct offline *o, const struct hf_view *view, const void *row)
{
	json_t *data = json_object(), *j = json_object();

	for (size_t i = 0; i < view->n; i++)
		o->failed |=
		    json_object_set_new(j, view->field[i].name,
			member(view->field[i].type,
			    (const char *)row + view->field[i].offset)) != 0;
	o->failed |= json_object_set_new(data, view->kind, j) != 0;
	if (!o->failed)
		o->failed = o->fn(o->arg, data) != 0;
	json_decref(data);
	return o->failed;
}

static int
on_session(void *arg, const struct hf_session_info *s)
{
	struct offline *o = arg;

	o->session = s->id;
	return put(o, &hf_view_session, s);
}

static int
note_session(void *arg, const struct hf_session_info *s)
{
	struct offline *o = arg;

	o->session = s->id;
	return 0;
}

static int
on_turn(void *arg, const struct hf_turn_info *t)
{
	return put(arg, &hf_view_turn, t);
}

static int
on_item(void *arg, const struct hf_item_info *i)
{
	struct offline *o = arg;
	struct hf_item_info seen = *i;

	if (!seen.has_heard)
		seen.heard = HF_STR_NONE;
	return put(o,
	    (o->ctl->given & HF_CTL_CONTENTS) != 0 ? &hf_view_contents :
						     &hf_view_item,
	    &seen);
}

static int
on_attempt(void *arg, const struct hf_attempt_info *a)
{
	return put(arg, &hf_view_attempt, a);
}

static int
on_event(void *arg, const struct hf_event_info *e)
{
	return put(arg, &hf_view_event, e);
}

static int
on_key(void *arg, const struct hf_key_info *k)
{
	return put(arg, &hf_view_key, k);
}

static int
on_lock(void *arg, const struct hf_lock_info *l)
{
	return put(arg, &hf_view_lock, l);
}

/* Nonzero: enough. */
static int
on_failover(void *arg, const struct hf_failover_info *f)
{
	struct offline *o = arg;

	o->left--;
	return put(o, &hf_view_failover, f) || o->left == 0;
}

static int
on_group(void *arg, const struct hf_failover_group *g)
{
	return put(arg, &hf_view_failover_group, g);
}

static void
on_finding(void *arg, const struct hf_finding *f)
{
	put(arg, &hf_view_finding, f);
}

/* --- commands ------------------------------------------------------------ */

static int
status(struct offline *o, struct hf_error *e)
{
	struct hf_store_stats st;
	json_t *data;
	int rc = hf_inspect_stats(o->in, &st, e);

	if (rc < 0)
		return rc;
	data = json_pack("{s:b, s:o, s:I}", "offline", 1, "database",
	    string(hf_str(o->database)), "boot", (json_int_t)st.boot);
	o->failed |= data == NULL || o->fn(o->arg, data) != 0;
	json_decref(data);
	put(o, &hf_view_stats, &st);
	return 0;
}

static int
list(struct offline *o, struct hf_error *e)
{
	struct hf_session_filter f = { .tenant = o->ctl->tenant,
		.limit = o->ctl->limit,
		.before = o->ctl->before };
	struct hf_cursor at = { 0 };

	return hf_inspect_sessions(o->in, &f, &at, on_session, o, e);
}

/* A name that several things have is "not found" as well. */
static int
find(struct offline *o, hf_session_fn cb, struct hf_error *e)
{
	int rc = hf_inspect_session(
	    o->in, o->ctl->tenant, o->ctl->operand, cb, o, e);

	return rc == HF_ECONFLICT ? HF_ENOTFOUND : rc;
}

static int
show(struct offline *o, struct hf_error *e)
{
	struct hf_cursor at = { 0 };
	int rc = find(o, on_session, e);

	if (rc == 0)
		rc = hf_inspect_turns(o->in, &o->session, &at, on_turn, o, e);
	at = (struct hf_cursor){ 0 };
	if (rc == 0)
		rc = hf_inspect_items(o->in, &o->session, &at, on_item, o, e);
	at = (struct hf_cursor){ 0 };
	if (rc == 0 && (o->ctl->given & HF_CTL_ATTEMPTS) != 0)
		rc = hf_inspect_attempts(
		    o->in, &o->session, &at, on_attempt, o, e);
	return rc;
}

static int
timeline(struct offline *o, struct hf_error *e)
{
	struct hf_cursor at = { 0 };
	int64_t seq = 0;
	int rc = find(o, note_session, e);

	if (rc == 0 && o->ctl->second != NULL)
		rc = hf_inspect_turn_number(
		    o->in, &o->session, o->ctl->second, &seq, e);
	if (rc == HF_ECONFLICT)
		rc = HF_ENOTFOUND;
	return rc < 0 ?
	    rc :
	    hf_inspect_timeline(o->in, &o->session, seq, &at, on_event, o, e);
}

static int
verify(struct offline *o, struct hf_error *e)
{
	struct hf_cursor at = { 0 };
	int rc;

	if (o->ctl->operand != NULL) {
		rc = find(o, note_session, e);
		if (rc == 0)
			rc = hf_verify_session(
			    o->in, &o->session, on_finding, o, &o->sum, e);
	} else {
		do
			rc = hf_verify_next(
			    o->in, &at, on_finding, o, &o->sum, e);
		while (rc > 0 && !o->failed);
	}
	if (rc == 0)
		put(o, &hf_view_verified, &o->sum);
	return rc;
}

static int
locks(struct offline *o, struct hf_error *e)
{
	struct hf_cursor at = { 0 };

	return hf_inspect_locks(o->in, &at, on_lock, o, e);
}

static int64_t
since_us(const struct offline *o)
{
	return o->ctl->since_s == 0 ? 0 :
				      hf_wall_us() - o->ctl->since_s * 1000000;
}

static int
failovers(struct offline *o, struct hf_error *e)
{
	struct hf_failover_filter f = { .since_us = since_us(o) };
	const char *before = o->ctl->before;
	struct hf_cursor at = { 0 };
	int rc;

	if (before != NULL && (f.before = strtoll(before, NULL, 10)) <= 0)
		return hf_fail(
		    e, HF_EINVAL, "--before: expected the row of a failover");
	o->left = o->ctl->limit > 0 ? o->ctl->limit : FAILOVERS_DEFAULT;
	do
		rc = hf_inspect_failovers(o->in, &f, &at, on_failover, o, e);
	while (rc > 0 && !o->failed && o->left > 0);
	return rc < 0 ? rc : 0;
}

static int
failover_summary(struct offline *o, struct hf_error *e)
{
	struct hf_failover_sum *s = hf_failover_sum_new(since_us(o));
	int rc;

	do
		rc = hf_failover_sum_more(o->in, s, e);
	while (rc > 0);
	if (rc == 0)
		hf_failover_sum_tell(s, on_group, o);
	hf_failover_sum_free(s);
	return rc;
}

static int
keys(struct offline *o, struct hf_error *e)
{
	return hf_inspect_keys(o->in, on_key, o, e);
}

static const struct {
	const char *verb;
	int (*run)(struct offline *o, struct hf_error *e);
} table[] = {
	{ "status", status },
	{ "sessions.list", list },
	{ "sessions.show", show },
	{ "timeline", timeline },
	{ "sessions.verify", verify },
	{ "locks.list", locks },
	{ "keys.list", keys },
	{ "failovers.list", failovers },
	{ "failovers.summary", failover_summary },
};

/* --- where it is ---------------------------------------------------------- */

static int
find_paths(struct offline *o, struct hf_ctl_fault *fault)
{
	const struct hf_ctl *ctl = o->ctl;
	const char *config = ctl->config;
	struct hf_conf *conf = NULL;
	struct hf_error e = { 0 };
	const char *key;

	if (ctl->database != NULL) {
		snprintf(o->database, sizeof(o->database), "%s", ctl->database);
		snprintf(o->key_file, sizeof(o->key_file), "%s%s",
		    ctl->key_file != NULL ? ctl->key_file : ctl->database,
		    ctl->key_file != NULL ? "" : ".key");
		return 0;
	}
	if (config == NULL)
		config = HF_CTL_CONFIG;
	if (ctl->config == NULL && access(config, F_OK) != 0)
		return hf_ctl_fault(fault, HF_EXIT_USAGE,
		    "there is no %s: "
		    "--offline needs --database PATH or -c CONFIG",
		    config);
	if (hf_conf_load_gateway(config, &conf, &e) != 0)
		return hf_ctl_fault(fault, HF_EXIT_CONFIG,
		    "%s (--database "
		    "does without the configuration)",
		    e.text);
	snprintf(
	    o->database, sizeof(o->database), "%s", conf->gateway.database);
	key = ctl->key_file != NULL ? ctl->key_file :
				      conf->gateway.master_key_file;
	snprintf(
	    o->key_file, sizeof(o->key_file), "%s", key == NULL ? "" : key);
	hf_conf_free(conf);
	return 0;
}

static int
run(struct offline *o, struct hf_error *e)
{
	struct hf_store_conf c = { .path = o->database,
		.key_file = o->key_file };
	int rc = hf_inspect_open(&o->in, &c, e);

	if (rc < 0)
		return rc;
	rc = HF_EINVAL;
	for (size_t i = 0; i < hf_countof(table); i++)
		if (strcmp(table[i].verb, o->ctl->command->verb) == 0)
			rc = table[i].run(o, e);
	hf_inspect_close(o->in);
	return rc;
}

int
hf_ctl_offline(const struct hf_ctl *ctl, hf_ctl_data_fn fn, void *arg,
    struct hf_ctl_fault *fault)
{
	struct offline *o = calloc(1, sizeof(*o));
	struct hf_error e = { 0 };
	int rc;

	if (o == NULL)
		return hf_ctl_fault(fault, HF_EXIT_FAILED, "out of memory");
	o->ctl = ctl;
	o->fn = fn;
	o->arg = arg;
	rc = find_paths(o, fault);
	if (rc == 0) {
		rc = run(o, &e);
		if (rc == 0 && o->failed)
			rc = hf_fail(&e, HF_ENOMEM, "out of memory");
		if (rc < 0)
			rc = hf_ctl_fault(fault, hf_exit_code(rc), "%s",
			    e.text[0] != '\0' ? e.text : hf_err_text(rc));
	}
	free(o);
	return rc;
}
