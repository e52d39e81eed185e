/*
 * The control verbs over a real store: which members a reply has (clients
 * depend on each), what is refused, and that contents and secrets show only
 * where they were asked for.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/control_client.h"
#include "tests/unit/store_fixture.h"
#include "workers/control.h"
#include "workers/listen.h"
#include "workers/verbs.h"

struct fixture {
	struct fx fx;
	struct event_base *base;
	struct hf_control *control;
	struct hf_inspect *inspect;
	struct hf_verbs verbs;
	char path[320];
	int fd;
	struct hf_buf in;
};

static const char *const listen_names[] = { "127.0.0.1:8080", "[::1]:9" };

static int
on_verb(void *arg, const char *verb, const json_t *args, struct hf_reply *reply,
    struct hf_error *e)
{
	return hf_verb_run(arg, verb, args, reply, e);
}

static int
set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct hf_error e;
	int fd;

	fx_open(&f->fx);
	assert_int_equal(hf_inspect_open(&f->inspect, &f->fx.conf[0], &e), 0);
	f->verbs = (struct hf_verbs){ .keep = f->fx.keep,
		.inspect = f->inspect,
		.shm = &f->fx.shm[0],
		.database = f->fx.db,
		.listen = listen_names,
		.n_listen = hf_countof(listen_names) };
	f->base = event_base_new();
	snprintf(f->path, sizeof(f->path), "%s/ctl", f->fx.dir);
	fd = hf_listen_control(f->path, &e);
	assert_true(fd >= 0);
	assert_int_equal(
	    hf_control_new(&f->control, f->base, fd, on_verb, &f->verbs, &e),
	    0);
	f->fd = cc_dial(f->path);
	hf_buf_init(&f->in, HF_BUF_NOCAP);
	*state = f;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;

	close(f->fd);
	hf_buf_free(&f->in);
	hf_control_free(f->control);
	event_base_free(f->base);
	hf_inspect_close(f->inspect);
	fx_close(&f->fx);
	free(f);
	return 0;
}

/* --- asking ----------------------------------------------------------- */

/* All data of a reply as an array; the error's code in *code (0: none). */
static json_t *
ask(struct fixture *f, const char *verb, const char *args, json_int_t *code)
{
	json_t *all = json_array(), *j;
	char text[1024];

	snprintf(text, sizeof(text),
	    "{\"v\":1,\"id\":5,\"verb\":\"%s\","
	    "\"args\":%s}",
	    verb, args);
	cc_send(f->fd, text);
	for (;;) {
		json_t *data;

		j = cc_next(f->base, f->fd, &f->in);
		assert_non_null(j);
		data = json_object_get(j, "data");
		if (data == NULL)
			break;
		json_array_append(all, data);
		json_decref(j);
	}
	*code = cc_error_code(j);
	assert_true(*code != 0 || json_is_true(json_object_get(j, "end")));
	json_decref(j);
	return all;
}

static json_t *
ask_well(struct fixture *f, const char *verb, const char *args)
{
	json_int_t code;
	json_t *all = ask(f, verb, args, &code);

	assert_int_equal(code, 0);
	return all;
}

static void
refused(struct fixture *f, const char *verb, const char *args, json_int_t want)
{
	json_int_t code;
	json_t *all = ask(f, verb, args, &code);

	assert_int_equal(code, want);
	assert_int_equal(json_array_size(all), 0);
	json_decref(all);
}

/* The n-th row of a kind, or NULL. */
static json_t *
row(const json_t *all, const char *kind, size_t n)
{
	json_t *v;
	size_t i;

	json_array_foreach(all, i, v)
	{
		json_t *r = json_object_get(v, kind);

		if (r != NULL && n-- == 0)
			return r;
	}
	return NULL;
}

/* Exactly these members, no more and no fewer. */
static void
has_members(const json_t *o, const char *names)
{
	char copy[1024], *save = NULL;
	size_t n = 0;

	assert_non_null(o);
	snprintf(copy, sizeof(copy), "%s", names);
	for (char *p = strtok_r(copy, " ", &save); p != NULL;
	     p = strtok_r(NULL, " ", &save)) {
		if (json_object_get(o, p) == NULL)
			fail_msg("no member %s", p);
		n++;
	}
	assert_int_equal(json_object_size(o), n);
}

static const char *
str(const json_t *o, const char *member)
{
	return json_string_value(json_object_get(o, member));
}

static json_int_t
num(const json_t *o, const char *member)
{
	return json_integer_value(json_object_get(o, member));
}

/* --- cases ------------------------------------------------------------ */

#define SESSION                                                  \
	"id tenant name created_us updated_us turns last_state " \
	"last_target locked owner_slot owner_inc fence lock_since_us queued"
#define TURN                                                             \
	"id seq parent_seq retry_of_seq state on_path route stream "     \
	"started_us ended_us finish_reason error_class status attempts " \
	"target "                                                        \
	"first_token_us total_us said heard gone_us delivered_us"
#define ITEM "turn_seq idx kind role origin output lead has_heard"
#define ATTEMPT                                                            \
	"turn_seq n target cls reason http_status started_us "             \
	"called_us first_token_us total_us from_bytes bytes_out bytes_in " \
	"tokens_in tokens_out tokens_estimated omitted_turns "             \
	"omitted_items items items_of"
#define FIGURES                                                            \
	" state disabled disabled_as breaker breaker_since_us "            \
	"breaker_until_us failures_in_row ramp_answers in_flight waiting " \
	"quota_from quota_calls quota_tokens quota_window_ms admitted "    \
	"reserved limited_until_us calls answered failed "                 \
	"failed_by_class cut limited last_error last_error_status "        \
	"last_error_at_us first_tokens first_token_p50_us "                \
	"first_token_p99_us"
#define EVENT                                                            \
	"turn_seq at_us after_us event attempt target state cls reason " \
	"status bytes of omitted_turns omitted_items"
#define KEY "id tenant label created_us revoked_us"

static void
test_status(void **state)
{
	struct fixture *f = *state;
	struct hf_slot *s = &f->fx.shm[0].h->slot[3];
	json_t *all, *st, *p;

	fx_say(&f->fx, 1, "s", "hi", "hello");
	atomic_store(&s->pid, 4711);
	atomic_store(&s->state, HF_SLOT_DRAINING);
	atomic_store(&s->worked, 12);
	atomic_store(&s->counters[HF_C_turns_in_flight], 2);
	all = ask_well(f, "status", "{}");
	assert_int_equal(json_array_size(all), 1);
	st = row(all, "status", 0);
	has_members(st,
	    "version pid started_us uptime_ms boot "
	    "config_generation listen database processes store counters");
	assert_string_equal(str(st, "version"), PACKAGE_VERSION);
	assert_string_equal(str(st, "database"), f->fx.db);
	assert_int_equal(json_array_size(json_object_get(st, "listen")), 2);
	assert_string_equal(
	    json_string_value(json_array_get(json_object_get(st, "listen"), 1)),
	    "[::1]:9");
	has_members(json_object_get(st, "store"),
	    "sessions turns items "
	    "open_turns queued_turns db_bytes wal_bytes schema_version");
	assert_int_equal(num(json_object_get(st, "store"), "sessions"), 1);
	assert_int_equal(num(json_object_get(st, "store"), "items"), 2);
	assert_int_equal(
	    json_object_size(json_object_get(st, "counters")), HF_C_COUNT);
	assert_int_equal(
	    num(json_object_get(st, "counters"), "turns_in_flight"), 2);
	p = json_object_get(st, "processes");
	assert_int_equal(json_array_size(p), 1);
	p = json_array_get(p, 0);
	has_members(p, "slot role pid inc state worked in_flight");
	assert_int_equal(num(p, "slot"), 3);
	assert_int_equal(num(p, "pid"), 4711);
	assert_string_equal(str(p, "role"), "worker");
	assert_string_equal(str(p, "state"), "draining");
	assert_int_equal(num(p, "worked"), 12);
	assert_int_equal(num(p, "in_flight"), 2);
	json_decref(all);
	/* A child gone mad may write anything there. */
	atomic_store(&s->state, 99);
	all = ask_well(f, "status", "{}");
	assert_string_equal(
	    str(json_array_get(
		    json_object_get(row(all, "status", 0), "processes"), 0),
		"state"),
	    "unknown");
	json_decref(all);
}

static void
test_sessions_list(void **state)
{
	struct fixture *f = *state;
	json_t *all, *s;

	all = ask_well(f, "sessions.list", "{}");
	assert_int_equal(json_array_size(all), 0);
	json_decref(all);
	fx_say(&f->fx, 1, "first", "hi", "hello");
	fx_say(&f->fx, 1, "second", "hi", "hello");
	all = ask_well(f, "sessions.list", "{\"tenant\":null}");
	assert_int_equal(json_array_size(all), 2);
	s = row(all, "session", 0);
	has_members(s, SESSION);
	assert_string_equal(str(s, "name"), "second");
	assert_string_equal(str(s, "last_state"), "complete");
	assert_true(json_is_false(json_object_get(s, "locked")));
	json_decref(all);
	all = ask_well(f, "sessions.list", "{\"limit\":1}");
	assert_int_equal(json_array_size(all), 1);
	json_decref(all);
	all = ask_well(f, "sessions.list", "{\"tenant\":\"nobody\"}");
	assert_int_equal(json_array_size(all), 0);
	json_decref(all);
	refused(f, "sessions.list", "{\"limit\":0}", 2);
	refused(f, "sessions.list", "{\"limit\":10001}", 2);
	refused(f, "sessions.list", "{\"limit\":\"1\"}", 2);
	refused(f, "sessions.list", "{\"tenant\":7}", 2);
}

static void
test_sessions_show(void **state)
{
	struct fixture *f = *state;
	json_t *all;

	fx_say(&f->fx, 1, "s", "the secret word", "understood");
	all = ask_well(f, "sessions.show", "{\"key\":\"s\"}");
	has_members(row(all, "session", 0), SESSION);
	has_members(row(all, "turn", 0), TURN);
	has_members(row(all, "item", 0), ITEM);
	has_members(row(all, "item", 1), ITEM);
	assert_null(row(all, "attempt", 0));
	assert_int_equal(json_array_size(all), 4);
	json_decref(all);
	all = ask_well(f, "sessions.show",
	    "{\"key\":\"s\","
	    "\"contents\":true,\"attempts\":true}");
	has_members(row(all, "item", 0), ITEM " body heard");
	assert_string_equal(
	    str(row(all, "item", 0), "body"), "the secret word");
	assert_true(
	    json_is_null(json_object_get(row(all, "item", 0), "heard")));
	has_members(row(all, "attempt", 0), ATTEMPT);
	json_decref(all);
	refused(f, "sessions.show", "{\"key\":\"t\"}", 3);
	refused(f, "sessions.show", "{\"key\":\"\"}", 2);
	refused(f, "sessions.show", "{}", 2);
	/* Both ids begin so. */
	fx_say(&f->fx, 1, "other", "hi", "hello");
	refused(f, "sessions.show", "{\"key\":\"ses_\"}", 3);
}

static void
test_timeline(void **state)
{
	static const char *const want[] = { "received", "stored", "called",
		"first_token", "answered", "finished" };
	struct fixture *f = *state;
	struct hf_id first;
	json_t *all, *turns;
	char args[128];

	fx_say(&f->fx, 1, "s", "hi", "hello");
	fx_say(&f->fx, 1, "s", "and", "so on");
	all = ask_well(f, "timeline", "{\"key\":\"s\"}");
	assert_int_equal(json_array_size(all), 2 * hf_countof(want));
	for (unsigned i = 0; i < 2 * hf_countof(want); i++) {
		json_t *e = row(all, "event", i);

		has_members(e, EVENT);
		assert_string_equal(
		    str(e, "event"), want[i % hf_countof(want)]);
		assert_int_equal(
		    num(e, "turn_seq"), i < hf_countof(want) ? 1 : 2);
	}
	json_decref(all);
	turns = ask_well(f, "sessions.show", "{\"key\":\"s\"}");
	snprintf(
	    first.s, sizeof(first.s), "%s", str(row(turns, "turn", 0), "id"));
	json_decref(turns);
	snprintf(
	    args, sizeof(args), "{\"key\":\"s\",\"turn\":\"%s\"}", first.s);
	all = ask_well(f, "timeline", args);
	assert_int_equal(json_array_size(all), hf_countof(want));
	assert_int_equal(num(row(all, "event", 0), "turn_seq"), 1);
	json_decref(all);
	all = ask_well(f, "timeline", "{\"key\":\"s\",\"turn\":\"2\"}");
	assert_int_equal(json_array_size(all), hf_countof(want));
	assert_int_equal(num(row(all, "event", 5), "turn_seq"), 2);
	json_decref(all);
	refused(f, "timeline", "{\"key\":\"s\",\"turn\":\"3\"}", 3);
	refused(f, "timeline", "{\"key\":\"s\",\"turn\":\"2x\"}", 3);
	refused(f, "timeline", "{\"key\":\"s\",\"turn\":\"-1\"}", 3);
	refused(f, "timeline", "{\"key\":\"s\",\"turn\":\"turn_\"}", 3);
	refused(f, "timeline", "{\"key\":\"s\",\"turn\":2}", 2);
	refused(f, "timeline", "{\"key\":\"t\"}", 3);
	refused(f, "timeline", "{}", 2);
}

#define LOCK                                                    \
	"session tenant name owner_slot owner_inc owner fence " \
	"lock_since_us turn turn_seq turn_state queued"
#define VERIFIED "sessions turns items corrupt odd"

static void
test_sessions_verify(void **state)
{
	struct fixture *f = *state;
	json_t *all;

	fx_say(&f->fx, 1, "s", "hi", "hello");
	fx_say(&f->fx, 1, "s", "more", "well");
	fx_say(&f->fx, 1, "t", "hi", "hello");
	all = ask_well(f, "sessions.verify", "{\"key\":\"s\"}");
	assert_int_equal(json_array_size(all), 1);
	has_members(row(all, "verified", 0), VERIFIED);
	assert_int_equal(num(row(all, "verified", 0), "turns"), 2);
	json_decref(all);
	all = ask_well(f, "sessions.verify", "{\"all\":true}");
	assert_int_equal(num(row(all, "verified", 0), "sessions"), 2);
	assert_int_equal(num(row(all, "verified", 0), "items"), 6);
	assert_int_equal(num(row(all, "verified", 0), "corrupt"), 0);
	json_decref(all);
	fx_sql(&f->fx,
	    "DELETE FROM item WHERE id IN (SELECT max(id) FROM "
	    "item)");
	all = ask_well(f, "sessions.verify", "{\"all\":true}");
	has_members(row(all, "finding", 0),
	    "session severity what turn_seq "
	    "idx text");
	assert_string_equal(
	    str(row(all, "finding", 0), "what"), "item_missing");
	assert_string_equal(str(row(all, "finding", 0), "severity"), "corrupt");
	assert_true(num(row(all, "verified", 0), "corrupt") >= 1);
	json_decref(all);
	json_decref(ask_well(f, "sessions.verify", "{\"key\":\"s\"}"));
	refused(f, "sessions.verify", "{}", 2);
	refused(f, "sessions.verify", "{\"key\":\"none\"}", 3);
	refused(f, "sessions.verify", "{\"key\":\"s\",\"all\":true}", 2);
}

static void
test_locks_list(void **state)
{
	struct fixture *f = *state;
	json_t *all, *l;

	fx_say(&f->fx, 1, "s", "hi", "hello");
	all = ask_well(f, "locks.list", "{}");
	assert_int_equal(json_array_size(all), 0);
	json_decref(all);
	fx_sql(&f->fx,
	    "UPDATE session SET owner_slot = 1, owner_inc = 77, "
	    "lease_turn = head, lock_since = 5");
	all = ask_well(f, "locks.list", "{}");
	assert_int_equal(json_array_size(all), 1);
	l = row(all, "lock", 0);
	has_members(l, LOCK);
	assert_string_equal(str(l, "owner"), "dead");
	assert_string_equal(str(l, "turn_state"), "complete");
	assert_int_equal(num(l, "owner_inc"), 77);
	json_decref(all);
}

/* --- what the master does ------------------------------------------------ */

static int
ask_reload(void *arg, int64_t request)
{
	*(int64_t *)arg = request;
	return 0;
}

static int
ask_end(void *arg)
{
	*(int64_t *)arg = -1;
	return 0;
}

static int
ask_nobody(void *arg)
{
	(void)arg;
	return HF_EBUSY;
}

/* Send, and let the verb run until it waits. */
static void
ask_and_wait(struct fixture *f, const char *verb, const char *args)
{
	char text[200];

	snprintf(text, sizeof(text),
	    "{\"v\":1,\"id\":5,\"verb\":\"%s\","
	    "\"args\":%s}",
	    verb, args);
	cc_send(f->fd, text);
	for (int i = 0; i < 1000 && f->verbs.waiting == NULL; i++)
		cc_spin(f->base);
	assert_non_null(f->verbs.waiting);
}

static json_t *
next(struct fixture *f)
{
	json_t *j = cc_next(f->base, f->fd, &f->in);

	assert_non_null(j);
	return j;
}

static void
test_reload(void **state)
{
	struct fixture *f = *state;
	int64_t request = 0;
	json_t *j;

	f->verbs.ask_reload = ask_reload;
	f->verbs.arg = &request;
	ask_and_wait(f, "reload", "{}");
	assert_true(request > 0);
	/* The outcome of a reload from before answers nothing. */
	hf_verb_reloaded(&f->verbs, request - 1, 0, "");
	assert_non_null(f->verbs.waiting);
	hf_verb_reloaded(&f->verbs, request, 0, "listen");
	assert_null(f->verbs.waiting);
	j = next(f);
	assert_string_equal(
	    str(json_object_get(json_object_get(j, "data"), "reload"),
		"restart_needed"),
	    "listen");
	json_decref(j);
	json_decref(next(f));
	ask_and_wait(f, "reload", "{}");
	hf_verb_reloaded(&f->verbs, request + 5, HF_ECONFIG, "f:3: gateway.x");
	j = next(f);
	assert_int_equal(cc_error_code(j), 78);
	assert_string_equal(
	    str(json_object_get(j, "error"), "message"), "f:3: gateway.x");
	json_decref(j);
	/* The service ends while one waits. */
	ask_and_wait(f, "reload", "{}");
	hf_verb_drained(&f->verbs);
	j = next(f);
	assert_int_equal(cc_error_code(j), 75);
	json_decref(j);
}

static void
test_drain(void **state)
{
	struct fixture *f = *state;
	int64_t asked = 0;
	json_t *all, *j;

	f->verbs.ask_end = ask_end;
	f->verbs.arg = &asked;
	all = ask_well(f, "drain", "{}");
	assert_int_equal(asked, -1);
	has_members(row(all, "drain", 0), "state turns_in_flight");
	json_decref(all);
	ask_and_wait(f, "drain", "{\"wait\":true}");
	j = next(f);
	assert_string_equal(
	    str(json_object_get(json_object_get(j, "data"), "drain"), "state"),
	    "draining");
	json_decref(j);
	hf_verb_reloaded(&f->verbs, INT64_MAX, 0, "");
	assert_non_null(f->verbs.waiting);
	hf_verb_drained(&f->verbs);
	j = next(f);
	assert_string_equal(
	    str(json_object_get(json_object_get(j, "data"), "drain"), "state"),
	    "drained");
	json_decref(j);
	json_decref(next(f));
	f->verbs.ask_end = ask_nobody;
	refused(f, "drain", "{}", 75);
}

/* --- the running configuration -------------------------------------------- */

static void
test_running_config(void **state)
{
	struct fixture *f = *state;
	json_t *all, *v;
	size_t i;

	refused(f, "config.show", "{}", 75);
	f->verbs.config_path = "t.conf";
	f->verbs.config_text =
	    "gateway {\n workers = 3\n database = /other\n"
	    "listen = {\"127.0.0.1:8080\", \"[::1]:0\"} }\n"
	    "provider p { dialect = openai base_url = http://h\n"
	    " api_key_env = NOT_SET_ANYWHERE }\n"
	    "provider q { dialect = anthropic base_url = http://h }\n"
	    "route r { targets = {p/m} }\n";
	f->verbs.store = &f->fx.conf[0];
	f->verbs.control = "/c";
	all = ask_well(f, "config.show", "{}");
	has_members(row(all, "config", 0), "file generation");
	has_members(row(all, "setting", 0),
	    "block title key value source "
	    "line restart");
	json_array_foreach(all, i, v)
	{
		const json_t *s = json_object_get(v, "setting");
		const char *key = s == NULL ? "" : str(s, "key");

		if (strcmp(key, "workers") == 0) {
			assert_string_equal(str(s, "value"), "3");
			assert_int_equal(num(s, "line"), 2);
		} else if (strcmp(key, "database") == 0) {
			assert_string_equal(str(s, "value"), f->fx.db);
			assert_string_equal(str(s, "source"), "start");
		} else if (strcmp(key, "listen") == 0) {
			assert_string_equal(str(s, "source"), "file");
		} else if (strcmp(key, "api_version") == 0) {
			assert_string_equal(str(s, "value"), "2023-06-01");
		}
	}
	json_decref(all);
	all = ask_well(f, "providers.list", "{}");
	assert_int_equal(json_array_size(all), 2);
	has_members(
	    row(all, "provider", 0), "name dialect base_url disabled targets");
	v = json_array_get(
	    json_object_get(row(all, "provider", 0), "targets"), 0);
	has_members(v,
	    "name model connect_ms first_token_ms total_ms rpm routes" FIGURES);
	assert_int_equal(json_array_size(json_object_get(
			     row(all, "provider", 1), "targets")),
	    0);
	json_decref(all);
}

static const json_t *
only_target(const json_t *all)
{
	return json_array_get(
	    json_object_get(row(all, "provider", 0), "targets"), 0);
}

static void
test_providers(void **state)
{
	struct fixture *f = *state;
	json_t *all;

	f->verbs.config_path = "/nowhere/t.conf";
	f->verbs.config_text = "provider a { dialect = \"openai\" "
			       "base_url = \"http://127.0.0.1:9/v1\" "
			       "api_key_env = \"HF_NO_SUCH\" }\n"
			       "route m { targets = {\"a/x\"} }\n";
	f->verbs.base = f->base;
	all = ask_well(f, "providers.show", "{\"name\":\"a/x\"}");
	has_members(row(all, "provider", 0),
	    "name dialect base_url disabled targets api_key_key "
	    "api_key_from");
	has_members(only_target(all),
	    "name model connect_ms first_token_ms total_ms rpm routes "
	    "settings" FIGURES);
	assert_string_equal(str(only_target(all), "state"), "ok");
	assert_string_equal(str(only_target(all), "quota_from"), "none");
	assert_int_equal(num(only_target(all), "quota_calls"), -1);
	json_decref(all);
	all = ask_well(f, "providers.disable", "{\"name\":\"a\"}");
	assert_string_equal(str(only_target(all), "state"), "disabled");
	assert_string_equal(str(only_target(all), "disabled_as"), "provider");
	json_decref(all);
	all = ask_well(f, "providers.enable", "{\"name\":\"a\"}");
	assert_string_equal(str(only_target(all), "state"), "ok");
	json_decref(all);
	all = ask_well(f, "providers.trip", "{\"name\":\"a/x\",\"for_s\":60}");
	assert_string_equal(str(only_target(all), "state"), "open");
	assert_true(num(only_target(all), "breaker_until_us") > 0);
	json_decref(all);
	all = ask_well(f, "providers.reset", "{\"name\":\"a\"}");
	assert_string_equal(str(only_target(all), "state"), "ok");
	json_decref(all);
	refused(f, "providers.show", "{\"name\":\"b\"}", 3);
	refused(f, "providers.enable", "{\"name\":\"b\"}", 3);
	refused(f, "providers.disable", "{\"name\":\"\"}", 2);
	refused(f, "providers.reset", "{}", 2);
	refused(f, "providers.trip", "{\"name\":\"a\",\"for_s\":0}", 2);
	/* Its key is not there, so that no call can be made. */
	refused(f, "providers.test", "{\"name\":\"a/x\"}", 78);
	all = ask_well(f, "failovers.list", "{}");
	assert_int_equal(json_array_size(all), 0);
	json_decref(all);
	all = ask_well(f, "failovers.summary", "{\"since_s\":60}");
	assert_int_equal(json_array_size(all), 0);
	json_decref(all);
	refused(f, "failovers.list", "{\"before\":\"0\"}", 2);
	refused(f, "failovers.list", "{\"limit\":0}", 2);
	refused(f, "failovers.summary", "{\"since_s\":-1}", 2);
}

static void
test_check(void **state)
{
	struct fixture *f = *state;
	struct hf_store_conf gone = f->fx.conf[0];
	json_t *all, *v;
	unsigned bad = 0;
	size_t i;

	atomic_store(&f->fx.shm[0].h->slot[1].state, HF_SLOT_READY);
	f->verbs.config_path = "/nowhere/t.conf";
	f->verbs.store = &f->fx.conf[0];
	all = ask_well(f, "check", "{}");
	has_members(row(all, "daemon", 0), "version pid boot");
	json_array_foreach(all, i, v)
	{
		const json_t *c = json_object_get(v, "check");

		if (c == NULL)
			continue;
		has_members(c, "name ok text");
		if (!json_is_true(json_object_get(c, "ok"))) {
			assert_string_equal(str(c, "name"), "config");
			bad++;
		}
	}
	assert_int_equal(bad, 1);
	json_decref(all);
	gone.path = "/nowhere/db";
	f->verbs.store = &gone;
	atomic_store(&f->fx.shm[0].h->slot[1].state, HF_SLOT_STARTING);
	all = ask_well(f, "check", "{}");
	bad = 0;
	json_array_foreach(all, i, v) bad +=
	    json_is_false(json_object_get(json_object_get(v, "check"), "ok"));
	assert_int_equal(bad, 3); /* workers, writable, config */
	json_decref(all);
}

static void
test_bodies_that_are_no_text(void **state)
{
	struct fixture *f = *state;
	json_t *all;

	fx_say(&f->fx, 1, "s", "broken \xff\xfe bytes", "fine");
	all = ask_well(f, "sessions.show",
	    "{\"key\":\"s\","
	    "\"contents\":true}");
	assert_string_equal(
	    str(row(all, "item", 0), "body"), "broken ?? bytes");
	json_decref(all);
}

static void
test_keys(void **state)
{
	struct fixture *f = *state;
	char id[HF_ID_SIZE], args[128];
	json_t *all;

	all = ask_well(f, "keys.create",
	    "{\"tenant\":\"red\","
	    "\"label\":\"a \xc3\xa4\"}");
	assert_int_equal(json_array_size(all), 1);
	has_members(row(all, "key", 0), KEY " secret");
	assert_string_equal(str(row(all, "key", 0), "tenant"), "red");
	assert_string_equal(str(row(all, "key", 0), "label"), "a \xc3\xa4");
	assert_true(strlen(str(row(all, "key", 0), "secret")) > 40);
	snprintf(id, sizeof(id), "%s", str(row(all, "key", 0), "id"));
	json_decref(all);
	json_decref(ask_well(f, "keys.create", "{\"tenant\":\"blue\"}"));

	all = ask_well(f, "keys.list", "{}");
	assert_int_equal(json_array_size(all), 2);
	for (size_t i = 0; i < 2; i++) {
		has_members(row(all, "key", i), KEY);
		assert_int_equal(num(row(all, "key", i), "revoked_us"), 0);
	}
	json_decref(all);

	refused(f, "keys.revoke", "{\"prefix\":\"key_\"}", 3);
	refused(f, "keys.revoke", "{\"prefix\":\"key_none\"}", 3);
	refused(f, "keys.revoke", "{\"prefix\":\"\"}", 2);
	refused(f, "keys.revoke", "{}", 2);
	snprintf(args, sizeof(args), "{\"prefix\":\"%s\"}", id);
	all = ask_well(f, "keys.revoke", args);
	assert_int_equal(json_array_size(all), 1);
	has_members(row(all, "key", 0), KEY);
	assert_string_equal(str(row(all, "key", 0), "id"), id);
	assert_true(num(row(all, "key", 0), "revoked_us") > 0);
	json_decref(all);
}

static void
test_names_of_tenants(void **state)
{
	struct fixture *f = *state;

	refused(f, "keys.create", "{}", 2);
	refused(f, "keys.create", "{\"tenant\":\"\"}", 2);
	refused(f, "keys.create", "{\"tenant\":\"a b\"}", 2);
	refused(f, "keys.create", "{\"tenant\":\"a\\n\"}", 2);
	refused(f, "keys.create", "{\"tenant\":7}", 2);
	refused(f, "keys.create", "{\"tenant\":\"ok\",\"label\":\"a\\n\"}", 2);
	refused(f, "keys.create",
	    "{\"tenant\":\"xxxxxxxxxxxxxxxxxxxxxxxx"
	    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}",
	    2);
	refused(f, "nonsense", "{}", 2);
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_status),
		CASE(test_sessions_list),
		CASE(test_sessions_show),
		CASE(test_timeline),
		CASE(test_sessions_verify),
		CASE(test_locks_list),
		CASE(test_reload),
		CASE(test_drain),
		CASE(test_running_config),
		CASE(test_providers),
		CASE(test_check),
		CASE(test_bodies_that_are_no_text),
		CASE(test_keys),
		CASE(test_names_of_tenants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
