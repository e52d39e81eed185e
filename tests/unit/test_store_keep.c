/*
 * The keeper's verbs and the operators' views.
 */
#include <config.h>

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "store/migrate.h"
#include "store/inspect.h"
#include "tests/unit/store_fixture.h"

static struct hf_begun
begin(struct fx *f, unsigned slot, const char *name, const char *text)
{
	struct hf_head h = fx_head(f, slot, name);
	struct hf_item in;
	struct hf_begin b = fx_turn(name, &h, &in, text);
	struct hf_begun begun;

	assert_int_equal(fx_begin(f, slot, &b, &begun), 0);
	return begun;
}

/* A new boot: everything open is interrupted, every lease void. */
static void
recovery(void **state)
{
	struct hf_recovered r;
	struct hf_begun one, two;
	uint64_t boot, again;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "quiet", "hello", "hi");
	one = begin(&f, 1, "s", "one");
	assert_int_equal(fx_part(&f, 1, &one, 1, "1 is "), 0);
	two = begin(&f, 2, "s", "two");
	assert_int_equal(two.result, HF_BEGIN_QUEUED);
	begin(&f, 2, "t", "three");
	/* Even owners that the scoreboard thinks alive: it is of an earlier
	 * boot. */
	assert_int_equal(
	    hf_keep_recover(f.keep, fx_make_body, NULL, &boot, &r, &f.e), 0);
	assert_int_equal(boot, 2);
	assert_int_equal(r.turns_interrupted, 3);
	assert_int_equal(r.attempts_lost, 2);
	assert_string_equal(fx_history(&f, 3, "s"), "user:one|assistant:1 is ");
	assert_string_equal(fx_history(&f, 3, "t"), "user:three");
	assert_string_equal(
	    fx_history(&f, 3, "quiet"), "user:hello|assistant:hi");
	assert_int_equal(fx_head(&f, 3, "s").head_state, HF_TURN_INTERRUPTED);
	assert_int_equal(fx_sql(&f,
			     "SELECT count(*) FROM session WHERE"
			     " owner_inc <> 0"),
	    0);
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM part"), 0);
	fx_say(&f, 3, "s", "next", "ok");
	fx_say(&f, 3, "t", "next", "ok");
	assert_string_equal(fx_history(&f, 3, "s"),
	    "user:one|assistant:1 is |user:next|assistant:ok");
	assert_int_equal(
	    hf_keep_recover(f.keep, fx_make_body, NULL, &again, &r, &f.e), 0);
	assert_int_equal(again, boot + 1);
	assert_int_equal(r.turns_interrupted, 0);
	fx_close(&f);
}

/* More turns than one transaction of the keeper takes. */
static void
recovery_of_many(void **state)
{
	struct hf_recovered r;
	uint64_t boot;
	char name[16];
	struct fx f;

	(void)state;
	fx_open(&f);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		begin(&f, 1, name, "x");
	}
	assert_int_equal(
	    hf_keep_recover(f.keep, fx_make_body, NULL, &boot, &r, &f.e), 0);
	assert_int_equal(r.turns_interrupted, 300);
	assert_int_equal(fx_sql(&f,
			     "SELECT count(*) FROM turn WHERE state ="
			     " 6"),
	    300);
	fx_close(&f);
}

/* What cannot be opened must neither stop recovery nor lock a session. */
static void
recovery_of_damage(void **state)
{
	struct hf_recovered r;
	struct hf_begun one, two;
	uint64_t boot;
	struct fx f;

	(void)state;
	fx_open(&f);
	one = begin(&f, 1, "a", "one");
	assert_int_equal(fx_part(&f, 1, &one, 1, "text"), 0);
	two = begin(&f, 1, "b", "two");
	assert_int_equal(fx_part(&f, 1, &two, 1, "text"), 0);
	begin(&f, 1, "c", "three");
	fx_sql(&f,
	    "UPDATE part SET sealed = zeroblob(60) WHERE id ="
	    " (SELECT min(id) FROM part)");
	fx_sql(&f,
	    "UPDATE session SET wrapped = zeroblob(72) WHERE"
	    " name = 'b'");
	assert_int_equal(
	    hf_keep_recover(f.keep, fx_make_body, NULL, &boot, &r, &f.e), 0);
	assert_int_equal(r.turns_interrupted, 3);
	assert_string_equal(fx_history(&f, 2, "a"), "user:one");
	assert_string_equal(fx_history(&f, 2, "c"), "user:three");
	fx_say(&f, 2, "a", "next", "ok");
	/* The parts that did not open are kept. */
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM part"), 2);
	fx_close(&f);
}

/* A reap concerns the dead only. */
static void
reap_leaves_the_living(void **state)
{
	struct hf_begun mine, theirs;
	struct hf_recovered r;
	uint64_t inc;
	struct fx f;

	(void)state;
	fx_open(&f);
	inc = hf_shm_self_inc(&f.shm[1]);
	mine = begin(&f, 1, "a", "x");
	theirs = begin(&f, 2, "b", "y");
	fx_kill(&f, 1);
	assert_int_equal(
	    hf_keep_reap(f.keep, 1, inc, fx_make_body, NULL, &r, &f.e), 0);
	assert_int_equal(r.turns_interrupted, 1);
	assert_int_equal(fx_part(&f, 1, &mine, 1, "late"), HF_EFENCED);
	assert_int_equal(fx_part(&f, 2, &theirs, 1, "alive"), 0);
	assert_true(fx_head(&f, 2, "b").busy);
	fx_close(&f);
}

static void
api_keys(void **state)
{
	char one[HF_SECRET_SIZE], two[HF_SECRET_SIZE], wrong[HF_SECRET_SIZE];
	struct hf_id id1, id2, got;
	char tenant[32], small[3];
	struct hf_store *st;
	struct fx f;
	bool any;

	(void)state;
	fx_open(&f);
	st = fx_store(&f, 1);
	hf_clock_set(1000000, 0);
	assert_int_equal(hf_store_any_key(st, &any, &f.e), 0);
	assert_false(any);
	assert_int_equal(
	    hf_keep_key_create(f.keep, "acme", "ivr", &id1, one, &f.e), 0);
	assert_int_equal(
	    hf_keep_key_create(f.keep, "other", NULL, &id2, two, &f.e), 0);
	/* Seen within a second. */
	hf_clock_set(1999999, 0);
	assert_int_equal(hf_store_any_key(st, &any, &f.e), 0);
	assert_false(any);
	hf_clock_set(2000000, 0);
	assert_int_equal(hf_store_any_key(st, &any, &f.e), 0);
	assert_true(any);
	assert_int_equal(hf_store_authenticate(
			     st, hf_str(one), tenant, sizeof(tenant), &f.e),
	    0);
	assert_string_equal(tenant, "acme");
	assert_int_equal(hf_store_authenticate(
			     st, hf_str(two), tenant, sizeof(tenant), &f.e),
	    0);
	assert_string_equal(tenant, "other");
	assert_int_equal(
	    hf_store_authenticate(st, hf_str(two), small, sizeof(small), &f.e),
	    HF_EPERM);
	/* One character off; the right id with the other's secret. */
	memcpy(wrong, one, sizeof(wrong));
	wrong[strlen(wrong) - 1] ^= 1;
	assert_int_equal(hf_store_authenticate(
			     st, hf_str(wrong), tenant, sizeof(tenant), &f.e),
	    HF_EPERM);
	assert_string_equal(tenant, "");
	memcpy(wrong, one, sizeof(wrong));
	memcpy(wrong + 31, two + 31, sizeof(wrong) - 31);
	assert_int_equal(hf_store_authenticate(
			     st, hf_str(wrong), tenant, sizeof(tenant), &f.e),
	    HF_EPERM);
	assert_int_equal(hf_store_authenticate(st, HF_STR("Bearer"), tenant,
			     sizeof(tenant), &f.e),
	    HF_EPERM);
	/* Neither the secret nor a part of it is on disk. */
	assert_int_equal(fx_sql(&f,
			     "SELECT count(*) FROM api_key WHERE"
			     " length(hash) <> 32"),
	    0);
	assert_int_equal(
	    hf_keep_key_revoke(f.keep, "key_", &got, &f.e), HF_ECONFLICT);
	assert_int_equal(
	    hf_keep_key_revoke(f.keep, "nonsense", &got, &f.e), HF_ENOTFOUND);
	assert_int_equal(hf_keep_key_revoke(f.keep, id1.s, &got, &f.e), 0);
	assert_string_equal(got.s, id1.s);
	assert_int_equal(hf_store_authenticate(
			     st, hf_str(one), tenant, sizeof(tenant), &f.e),
	    HF_EPERM);
	assert_int_equal(hf_keep_key_revoke(f.keep, id2.s, &got, &f.e), 0);
	/* Revoking the last one opens no door. */
	hf_clock_set(4000000, 0);
	assert_int_equal(hf_store_any_key(st, &any, &f.e), 0);
	assert_true(any);
	fx_respawn(&f, 1);
	assert_int_equal(hf_store_any_key(f.st[1], &any, &f.e), 0);
	assert_true(any);
	hf_clock_set(0, 0);
	fx_close(&f);
}

/* --- inspect ----------------------------------------------------------------
 */

struct seen {
	unsigned n;
	char text[1024];
	struct hf_id id;
};

static void
note(struct seen *s, const char *fmt, ...)
{
	size_t n = strlen(s->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->text + n, sizeof(s->text) - n, fmt, ap);
	va_end(ap);
	s->n++;
}

static int
see_session(void *arg, const struct hf_session_info *i)
{
	struct seen *s = arg;

	s->id = i->id;
	note(s, "[%s/%s turns=%d %s %s%s q=%d]", i->tenant,
	    i->name == NULL ? "-" : i->name, (int)i->turns, i->last_state,
	    i->last_target == NULL ? "-" : i->last_target,
	    i->locked ? " locked" : "", (int)i->queued);
	return 0;
}

static int
see_turn(void *arg, const struct hf_turn_info *t)
{
	note(arg, "[%d<%d r%d %s%s %s %s %d a=%d %s]", (int)t->seq,
	    (int)t->parent_seq, (int)t->retry_of_seq, t->state,
	    t->on_path ? " path" : "", t->route,
	    t->finish_reason == NULL ? "-" : t->finish_reason, t->status,
	    (int)t->attempts, t->target == NULL ? "-" : t->target);
	return 0;
}

static int
see_item(void *arg, const struct hf_item_info *i)
{
	note(arg, "[%d.%d %s %s %s%s %.*s]", (int)i->turn_seq, (int)i->idx,
	    i->kind, i->role, i->origin, i->output ? " out" : "",
	    HF_STR_ARG(i->body));
	return 0;
}

static int
see_attempt(void *arg, const struct hf_attempt_info *a)
{
	note(arg, "[%d.%d %s %s %d %d/%d]", (int)a->turn_seq, a->n, a->target,
	    a->cls == NULL ? "-" : a->cls, a->http_status, (int)a->tokens_in,
	    (int)a->tokens_out);
	return 0;
}

static int
see_key(void *arg, const struct hf_key_info *k)
{
	note(arg, "[%s %s%s]", k->tenant, k->label,
	    k->revoked_us != 0 ? " revoked" : "");
	return 0;
}

static int
see_one(void *arg, const struct hf_session_info *i)
{
	see_session(arg, i);
	return 1;
}

static void
views(void **state)
{
	struct hf_session_filter all = { 0 },
				 acme = { .tenant = "acme", .limit = 1 };
	struct seen s = { 0 };
	char secret[HF_SECRET_SIZE];
	struct hf_store_stats stats;
	struct hf_inspect *in;
	struct hf_id id, key;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "s", "one", "1");
	fx_say(&f, 1, "s", "two", "2");
	begin(&f, 1, "busy", "now");
	begin(&f, 2, "busy", "later");
	assert_int_equal(
	    hf_keep_key_create(f.keep, "acme", "ivr", &key, secret, &f.e), 0);
	assert_int_equal(hf_inspect_open(&in, &f.conf[0], &f.e), 0);
	assert_int_equal(hf_inspect_sessions(in, &all, &(struct hf_cursor){ 0 },
			     see_session, &s, &f.e),
	    0);
	assert_string_equal(s.text,
	    "[acme/busy turns=2 queued - locked q=1]"
	    "[acme/s turns=2 complete a/model q=0]");
	id = s.id;
	memset(&s, 0, sizeof(s));
	assert_int_equal(hf_inspect_sessions(in, &acme,
			     &(struct hf_cursor){ 0 }, see_session, &s, &f.e),
	    0);
	assert_int_equal(s.n, 1);
	acme.before = s.id.s;
	memset(s.text, 0, sizeof(s.text));
	assert_int_equal(hf_inspect_sessions(in, &acme,
			     &(struct hf_cursor){ 0 }, see_session, &s, &f.e),
	    0);
	assert_string_equal(s.text, "[acme/s turns=2 complete a/model q=0]");
	acme.before = "ses_none";
	assert_int_equal(hf_inspect_sessions(in, &acme,
			     &(struct hf_cursor){ 0 }, see_session, &s, &f.e),
	    HF_ENOTFOUND);
	/* The callback may stop it. */
	memset(&s, 0, sizeof(s));
	assert_int_equal(hf_inspect_sessions(in, &all, &(struct hf_cursor){ 0 },
			     see_one, &s, &f.e),
	    0);
	assert_int_equal(s.n, 1);

	memset(&s, 0, sizeof(s));
	assert_int_equal(
	    hf_inspect_session(in, NULL, id.s, see_session, &s, &f.e), 0);
	assert_int_equal(
	    hf_inspect_session(in, "acme", "s", see_session, &s, &f.e), 0);
	id.s[20] = '\0';
	assert_int_equal(
	    hf_inspect_session(in, NULL, id.s, see_session, &s, &f.e), 0);
	assert_int_equal(s.n, 3);
	id = s.id;
	assert_int_equal(
	    hf_inspect_session(in, NULL, "ses_", see_session, &s, &f.e),
	    HF_ECONFLICT);
	assert_int_equal(
	    hf_inspect_session(in, "other", "s", see_session, &s, &f.e),
	    HF_ENOTFOUND);
	assert_int_equal(
	    hf_inspect_session(in, "other", id.s, see_session, &s, &f.e),
	    HF_ENOTFOUND);

	memset(&s, 0, sizeof(s));
	assert_int_equal(hf_inspect_turns(in, &id, &(struct hf_cursor){ 0 },
			     see_turn, &s, &f.e),
	    0);
	assert_string_equal(s.text,
	    "[1<0 r0 complete path route stop 200 a=1 a/model]"
	    "[2<1 r0 complete path route stop 200 a=1 a/model]");
	memset(&s, 0, sizeof(s));
	assert_int_equal(hf_inspect_items(in, &id, &(struct hf_cursor){ 0 },
			     see_item, &s, &f.e),
	    0);
	assert_string_equal(s.text,
	    "[1.0 message user client one]"
	    "[1.1 message assistant model out 1][2.0 message user client two]"
	    "[2.1 message assistant model out 2]");
	memset(&s, 0, sizeof(s));
	assert_int_equal(hf_inspect_attempts(in, &id, &(struct hf_cursor){ 0 },
			     see_attempt, &s, &f.e),
	    0);
	assert_string_equal(s.text,
	    "[1.1 a/model ok 200 3/4]"
	    "[2.1 a/model ok 200 3/4]");
	memset(&s, 0, sizeof(s));
	assert_int_equal(hf_inspect_keys(in, see_key, &s, &f.e), 0);
	assert_string_equal(s.text, "[acme ivr]");
	hf_id_make(&id, "ses_");
	assert_int_equal(hf_inspect_turns(in, &id, &(struct hf_cursor){ 0 },
			     see_turn, &s, &f.e),
	    HF_ENOTFOUND);

	assert_int_equal(hf_inspect_stats(in, &stats, &f.e), 0);
	assert_int_equal(stats.sessions, 2);
	assert_int_equal(stats.turns, 4);
	assert_int_equal(stats.items, 5);
	assert_int_equal(stats.open_turns, 1);
	assert_int_equal(stats.queued_turns, 1);
	assert_int_equal(stats.schema_version, hf_n_migrations);
	assert_int_equal(stats.boot, 1);
	assert_true(stats.wal_bytes > 0);
	hf_inspect_close(in);
	fx_close(&f);
}

/* Without the master key everything but contents can be seen. */
static void
views_without_key(void **state)
{
	struct hf_session_filter all = { 0 };
	struct seen s = { 0 };
	struct hf_inspect *in;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "s", "one", "1");
	f.conf[0].key_file = "/nonexistent/key";
	f.conf[0].shm = NULL;
	assert_int_equal(hf_inspect_open(&in, &f.conf[0], &f.e), 0);
	assert_int_equal(hf_inspect_sessions(in, &all, &(struct hf_cursor){ 0 },
			     see_session, &s, &f.e),
	    0);
	assert_int_equal(s.n, 1);
	assert_int_equal(hf_inspect_items(in, &s.id, &(struct hf_cursor){ 0 },
			     see_item, &s, &f.e),
	    HF_EPERM);
	hf_inspect_close(in);
	fx_close(&f);
}

static void
checkpoint(void **state)
{
	struct stat sb;
	char wal[400];
	struct fx f;

	(void)state;
	fx_open(&f);
	snprintf(wal, sizeof(wal), "%s-wal", f.db);
	for (int i = 0; i < 10; i++)
		fx_say(&f, 1, "s", "one", "1");
	assert_int_equal(stat(wal, &sb), 0);
	assert_true(sb.st_size > 50 * 4096);
	assert_int_equal(hf_keep_checkpoint(f.keep, 1000000, true, &f.e), 0);
	assert_int_equal(hf_shm_sum(&f.shm[0], HF_C_checkpoints), 0);
	assert_int_equal(hf_keep_checkpoint(f.keep, 1, true, &f.e), 0);
	assert_int_equal(hf_shm_sum(&f.shm[0], HF_C_checkpoints), 1);
	assert_int_equal(stat(wal, &sb), 0);
	assert_int_equal(sb.st_size, 0);
	assert_int_equal(fx_head(&f, 1, "s").view_items, 20);
	fx_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recovery),
		cmocka_unit_test(recovery_of_many),
		cmocka_unit_test(recovery_of_damage),
		cmocka_unit_test(reap_leaves_the_living),
		cmocka_unit_test(api_keys),
		cmocka_unit_test(views),
		cmocka_unit_test(views_without_key),
		cmocka_unit_test(checkpoint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
