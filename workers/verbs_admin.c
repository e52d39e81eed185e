/*
 * The control verbs for the daemon itself: check, configuration, reload,
 * drain.
 */
#include <config.h>

#include "workers/verbs_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/conf_show.h"
#include "workers/view.h"

/* --- check ------------------------------------------------------------ */

static HF_PRINTF(5, 6) int send_check(struct hf_reply *r, const char *name,
    bool ok, struct hf_error *e, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return hf_verb_send(r, "check",
	    json_pack("{s:s, s:b, s:o}", "name", name, "ok", ok, "text",
		hf_json_text(hf_str(text))),
	    e);
}

static int
check_workers(struct hf_verbs *v, struct hf_reply *r, struct hf_error *e)
{
	unsigned n[4] = { 0 };

	for (unsigned i = 1; i < HF_SHM_SLOTS; i++) {
		uint32_t s = atomic_load(&v->shm->h->slot[i].state);

		if (s < hf_countof(n))
			n[s]++;
	}
	return send_check(r, "workers", n[HF_SLOT_READY] > 0, e,
	    "%u ready, %u starting, %u draining", n[HF_SLOT_READY],
	    n[HF_SLOT_STARTING], n[HF_SLOT_DRAINING]);
}

static int
check_store(struct hf_verbs *v, struct hf_reply *r, struct hf_error *e)
{
	struct hf_store_stats st = { 0 };
	struct hf_error why = { 0 };
	int rc = hf_inspect_stats(v->inspect, &st, &why);

	rc = rc < 0 ? send_check(r, "readable", false, e, "%s: %s", v->database,
			  why.text) :
		      send_check(r, "readable", true, e, "%s, schema %d",
			  v->database, st.schema_version);
	if (rc < 0)
		return rc;
	why = (struct hf_error){ 0 };
	rc = hf_keep_probe(v->store, &why);
	return send_check(r, "writable", rc == 0, e, "%s",
	    rc == 0 ? "a transaction was committed" : why.text);
}

/* The file as it is now, read as this process would at a reload. */
static int
check_config(struct hf_verbs *v, struct hf_reply *r, struct hf_error *e)
{
	struct hf_error why = { 0 };
	struct hf_conf *c = NULL;
	char *text = NULL;
	bool same;
	int rc = hf_conf_read(v->config_path, &text, &why);

	if (rc == 0)
		rc = hf_conf_parse(v->config_path, text, &c, &why);
	same = rc == 0 && v->config_text != NULL &&
	    strcmp(text, v->config_text) == 0;
	hf_conf_free(c);
	free(text);
	return send_check(r, "config", rc == 0, e, "%s%s",
	    rc == 0 ? v->config_path : why.text,
	    rc != 0  ? "" :
		same ? " is valid" :
		       " is valid, and has changed since it was read: reload");
}

int
hf_verb_check(struct hf_verbs *v, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	const struct hf_shm_header *h = v->shm->h;
	int rc;

	(void)args;
	rc = hf_verb_send(reply, "daemon",
	    json_pack("{s:s, s:i, s:I}", "version", PACKAGE_VERSION, "pid",
		(int)getppid(), "boot", (json_int_t)atomic_load(&h->boot)),
	    e);
	if (rc == 0)
		rc = check_workers(v, reply, e);
	if (rc == 0)
		rc = check_store(v, reply, e);
	if (rc == 0)
		rc = check_config(v, reply, e);
	return rc;
}

/* --- the running configuration ------------------------------------------- */

int
hf_verb_conf(struct hf_verbs *v, struct hf_conf **out, struct hf_error *e)
{
	if (v->config_text == NULL)
		return hf_fail(e, HF_EBUSY,
		    "the running configuration is not "
		    "known");
	return hf_conf_parse_public(v->config_path, v->config_text, out, e);
}

struct show {
	struct hf_verbs *v;
	const struct hf_conf *c;
	struct hf_reply *reply;
	struct hf_error *e;
	bool listened; /* listen was told */
};

static int
send_setting(struct show *w, const struct hf_conf_setting *s, const char *value,
    const char *source)
{
	return hf_verb_send(w->reply, "setting",
	    json_pack("{s:s, s:o, s:s, "
		      "s:o, s:s, s:i, s:b}",
		"block", s->param->block, "title",
		hf_json_text(hf_str(s->title)), "key", s->param->key, "value",
		hf_json_text(hf_str(value)), "source", source, "line",
		strcmp(source, "file") == 0 ? s->line : 0, "restart",
		(s->param->flags & HF_P_RESTART) != 0),
	    w->e);
}

/* "127.0.0.1:0" is "127.0.0.1:" and some port. */
static bool
same_address(const char *conf, const char *real)
{
	const char *colon = strrchr(conf, ':');

	if (strcmp(conf, real) == 0)
		return true;
	return colon != NULL && strcmp(colon, ":0") == 0 &&
	    strncmp(conf, real, (size_t)(colon - conf) + 1) == 0;
}

/* The sockets are those of the start, or of the service manager. */
static int
show_listen(struct show *w, const struct hf_conf_setting *s)
{
	const struct hf_conf_gateway *g = &w->c->gateway;
	bool same = g->n_listen == w->v->n_listen;
	int rc = 0;

	for (unsigned i = 0; i < g->n_listen && same; i++)
		same = same_address(g->listen[i], w->v->listen[i]);
	if (same)
		return send_setting(
		    w, s, s->value, s->line == 0 ? "default" : "file");
	if (w->listened)
		return 0;
	w->listened = true;
	for (unsigned i = 0; i < w->v->n_listen && rc == 0; i++)
		rc = send_setting(w, s, w->v->listen[i], "start");
	return rc;
}

/* What was fixed at the start, or NULL. */
static const char *
fixed(const struct hf_verbs *v, const struct hf_param *p)
{
	if (strcmp(p->key, "database") == 0)
		return v->database;
	if (strcmp(p->key, "control") == 0)
		return v->control;
	if (strcmp(p->key, "master_key_file") == 0)
		return v->store->key_file;
	return NULL;
}

static int
on_setting(void *arg, const struct hf_conf_setting *s)
{
	struct show *w = arg;
	const char *value = NULL;

	if ((s->param->flags & HF_P_RESTART) != 0) {
		if (strcmp(s->param->key, "listen") == 0)
			return show_listen(w, s);
		value = fixed(w->v, s->param);
	}
	if (value != NULL && strcmp(value, s->value) != 0)
		return send_setting(w, s, value, "start");
	return send_setting(w, s, s->value, s->line == 0 ? "default" : "file");
}

int
hf_verb_config_show(struct hf_verbs *v, const json_t *args,
    struct hf_reply *reply, struct hf_error *e)
{
	struct show w = { .v = v, .reply = reply, .e = e };
	struct hf_conf *c = NULL;
	int rc = hf_verb_conf(v, &c, e);

	(void)args;
	w.c = c;
	if (rc == 0)
		rc = hf_verb_send(reply, "config",
		    json_pack("{s:o, s:i}", "file",
			hf_json_text(hf_str(v->config_path)), "generation",
			(int)atomic_load(&v->shm->h->config_generation)),
		    e);
	if (rc == 0)
		rc = hf_conf_settings(
		    v->config_path, v->config_text, on_setting, &w, e);
	hf_conf_free(c);
	return rc;
}

/* --- what the master does ------------------------------------------------- */

struct hf_waiter {
	struct hf_waiter *next, **prevp;
	struct hf_reply *reply;
	int64_t request; /* of a reload; 0: a drain */
};

static void
drop_waiter(void *state)
{
	struct hf_waiter *w = state;

	*w->prevp = w->next;
	if (w->next != NULL)
		w->next->prevp = w->prevp;
	free(w);
}

static int
wait_for_master(struct hf_verbs *v, struct hf_reply *reply, int64_t request,
    struct hf_error *e)
{
	struct hf_waiter *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return hf_fail(e, HF_ENOMEM, "out of memory");
	w->reply = reply;
	w->request = request;
	w->next = v->waiting;
	w->prevp = &v->waiting;
	if (w->next != NULL)
		w->next->prevp = &w->next;
	v->waiting = w;
	hf_reply_wait(reply, drop_waiter, w);
	return 0;
}

int
hf_verb_reload(struct hf_verbs *v, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	/* Rises over lives of the keeper too. */
	int64_t request = hf_now_us();

	(void)args;
	if (v->ask_reload(v->arg, request) < 0)
		return hf_fail(e, HF_EBUSY,
		    "the master process does not "
		    "listen");
	return wait_for_master(v, reply, request, e);
}

void
hf_verb_reloaded(struct hf_verbs *v, int64_t request, int rc, const char *text)
{
	struct hf_waiter *w, *next;

	for (w = v->waiting; w != NULL; w = next) {
		struct hf_error e = { 0 };
		int sent = rc;

		next = w->next;
		if (w->request == 0 || w->request > request)
			continue;
		if (rc < 0)
			hf_fail(&e, rc, "%s", text);
		else
			sent = hf_verb_send(w->reply, "reload",
			    json_pack("{s:i, s:o}", "generation",
				(int)atomic_load(&v->shm->h->config_generation),
				"restart_needed",
				hf_json_text(*text == '\0' ? HF_STR_NONE :
							     hf_str(text))),
			    &e);
		hf_reply_end(w->reply, sent, &e);
	}
}

static json_t *
drain_state(struct hf_verbs *v, const char *state)
{
	return json_pack("{s:s, s:I}", "state", state, "turns_in_flight",
	    (json_int_t)hf_shm_sum(v->shm, HF_C_turns_in_flight));
}

int
hf_verb_drain(struct hf_verbs *v, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	int rc;

	if (v->ask_end(v->arg) < 0)
		return hf_fail(e, HF_EBUSY,
		    "the master process does not "
		    "listen");
	rc = hf_verb_send(reply, "drain", drain_state(v, "draining"), e);
	if (rc < 0 || !json_is_true(json_object_get(args, "wait")))
		return rc;
	return wait_for_master(v, reply, 0, e);
}

void
hf_verb_drained(struct hf_verbs *v)
{
	struct hf_waiter *w, *next;

	for (w = v->waiting; w != NULL; w = next) {
		struct hf_error e = { 0 };
		int rc;

		next = w->next;
		if (w->request != 0)
			rc = hf_fail(&e, HF_EBUSY, "the daemon is stopping");
		else
			rc = hf_verb_send(
			    w->reply, "drain", drain_state(v, "drained"), &e);
		hf_reply_end(w->reply, rc, &e);
	}
}
