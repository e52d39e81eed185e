/*
 * Turns that nothing disturbs: round trips, the head, view and history.
 */
#include <config.h>

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tests/unit/store_fixture.h"

static void
new_session_round_trip(void **state)
{
	struct fx f;
	struct hf_head h;

	(void)state;
	fx_open(&f);
	h = fx_head(&f, 1, "call-1");
	assert_false(h.found);
	assert_true(fx_say(&f, 1, "call-1", "hello", "hi there") > 0);
	h = fx_head(&f, 1, "call-1");
	assert_true(h.found);
	assert_int_equal(h.head_state, HF_TURN_COMPLETE);
	assert_int_equal(h.view_items, 2);
	assert_int_equal(h.rev, 2);
	assert_false(h.busy);
	assert_true(hf_id_valid(hf_str(h.session.s), "ses_"));
	fx_say(&f, 2, "call-1", "second", "answer two");
	assert_string_equal(fx_history(&f, 1, "call-1"),
	    "user:hello|"
	    "assistant:hi there|user:second|assistant:answer two");
	fx_close(&f);
}

/* Everything that an item carries comes back byte for byte. */
static void
item_round_trip(void **state)
{
	static const char body[] = "{\"a\":\"\\u0000 \xc3\xa9\"}\0tail";
	struct hf_item in, out;
	struct hf_history hist;
	struct hf_begun begun;
	struct hf_finish fin;
	struct hf_begin b;
	struct hf_arena a;
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	h = fx_head(&f, 1, "s");
	b = fx_turn("s", &h, &in, "x");
	in.body = (struct hf_str){ body, sizeof(body) - 1 };
	in.kind = HF_ITEM_TOOL_RESULT;
	in.role = HF_ROLE_TOOL;
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	assert_string_equal(begun.session.s, b.session.s);
	assert_int_equal(begun.seq, 1);
	fin = fx_answer(&b, &begun, &h.key, &out, "y");
	out.kind = HF_ITEM_TOOL_CALL;
	out.sidecar = HF_STR("sig\0nature");
	out.sidecar_of = HF_STR("anthropic");
	out.origin = HF_ORIGIN_GATEWAY;
	assert_int_equal(fx_finish(&f, 1, &fin), 0);
	hf_arena_init(&a, 0);
	assert_int_equal(hf_store_history(f.st[1], begun.session_row,
			     begun.turn_row, &a, &hist, &f.e),
	    0);
	assert_int_equal(hist.n, 2);
	assert_int_equal(hist.item[0].kind, HF_ITEM_TOOL_RESULT);
	assert_int_equal(hist.item[0].role, HF_ROLE_TOOL);
	assert_int_equal(hist.item[0].body.size, sizeof(body) - 1);
	assert_memory_equal(hist.item[0].body.p, body, sizeof(body) - 1);
	assert_memory_equal(hist.item[0].digest, in.digest, HF_DIGEST_SIZE);
	assert_int_equal(hist.item[0].turn_row, begun.turn_row);
	assert_true(hist.item[0].row != 0);
	assert_int_equal(hist.item[0].sidecar.size, 0);
	assert_int_equal(hist.item[1].kind, HF_ITEM_TOOL_CALL);
	assert_int_equal(hist.item[1].origin, HF_ORIGIN_GATEWAY);
	assert_true(hf_str_eq(hist.item[1].sidecar, out.sidecar));
	assert_true(hf_str_is(hist.item[1].sidecar_of, "anthropic"));
	assert_false(hist.item[1].has_heard);
	/* Nothing of it stands in the files in clear. */
	assert_int_equal(
	    fx_sql(&f,
		"SELECT count(*) FROM item WHERE"
		" instr(body_sealed, 'tail') OR instr(sidecar_sealed, 'sig')"),
	    0);
	hf_arena_free(&a);
	fx_close(&f);
}

/* A long answer is joined by the store: the parts that the caller knows to be
 * on disk, then the rest, as if it had come in one piece. */
static void
long_answer_from_parts(void **state)
{
	struct hf_begun begun;
	struct hf_finish fin, whole;
	struct hf_item in, text, call;
	uint8_t view[HF_DIGEST_SIZE];
	struct hf_begin b;
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	h = fx_head(&f, 1, "s");
	b = fx_turn("s", &h, &in, "go on at length");
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	assert_int_equal(fx_part(&f, 1, &begun, 0, "one two"), 0);
	assert_int_equal(fx_part(&f, 1, &begun, 1, " three"), 0);
	assert_int_equal(fx_part(&f, 1, &begun, 2, " four"), 0);
	whole = fx_answer(&b, &begun, &h.key, &text, "one two three four five");
	call = fx_item(&h.key, HF_ROLE_ASSISTANT, "call");
	call.kind = HF_ITEM_TOOL_CALL;
	hf_store_chain(&h.key, whole.view, call.digest, view);
	fin = whole;
	fin.item = &call;
	memset(fin.view, 0, sizeof(fin.view));
	fin.view_items = 0;
	fin.from_parts = true;
	fin.n_part = 2;
	fin.text_rest = HF_STR(" four five");
	fin.text_size = 23;
	assert_int_equal(fx_finish(&f, 1, &fin), 0);
	h = fx_head(&f, 1, "s");
	assert_int_equal(h.head_state, HF_TURN_COMPLETE);
	assert_int_equal(h.view_items, 3);
	assert_memory_equal(h.view, view, sizeof(view));
	assert_string_equal(fx_history(&f, 1, "s"),
	    "user:go on at length|assistant:one two three four five|"
	    "assistant:call");
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM part"), 0);
	fx_close(&f);
}

/* What is on disk is not what was said: nothing is written. */
static void
long_answer_of_another_size(void **state)
{
	struct hf_begun begun;
	struct hf_finish fin;
	struct hf_item in, text;
	struct hf_begin b;
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	h = fx_head(&f, 1, "s");
	b = fx_turn("s", &h, &in, "hello");
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	assert_int_equal(fx_part(&f, 1, &begun, 0, "one two"), 0);
	fin = fx_answer(&b, &begun, &h.key, &text, "one two three");
	fin.n_item = 0;
	fin.from_parts = true;
	fin.n_part = 1;
	fin.text_size = 13;
	assert_int_equal(fx_finish(&f, 1, &fin), HF_ECORRUPT);
	h = fx_head(&f, 1, "s");
	assert_int_equal(h.head_state, HF_TURN_OPEN);
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM part"), 1);
	fin.text_rest = HF_STR(" three");
	fin.refusal = HF_STR("!");
	assert_int_equal(fx_finish(&f, 1, &fin), 0);
	assert_string_equal(
	    fx_history(&f, 1, "s"), "user:hello|assistant:one two three!");
	fx_close(&f);
}

/* A turn of session "s" whose attempts end with these classes, the first at
 * a/model, the n-th at "t<n>"; it ends with the state. */
static void
turn_with(struct fx *f, const char *const *cls, enum hf_turn_state state)
{
	struct hf_attempt_end last = { 0 };
	char name[8] = "t1";
	struct fx_one t;

	assert_int_equal(fx_one_begin(f, 1, &t, "s", "hello"), 0);
	for (int n = 1; cls[n - 1] != NULL; n++) {
		bool more = cls[n] != NULL;
		struct hf_attempt_end end = { .n = n,
			.cls = cls[n - 1],
			.reason = "r",
			.tokens_in = -1,
			.tokens_out = -1 };
		struct hf_attempt_begin open = { .n = n + 1, .from_bytes = 0 };

		name[1] = (char)('1' + n);
		open.target = hf_str(name);
		if (more)
			assert_int_equal(
			    fx_attempts(f, 1, &t.begun, &end, &open), 0);
		last = end;
	}
	t.fin = fx_answer(&t.b, &t.begun, &t.h.key, &t.out, "hi");
	t.fin.state = state;
	t.fin.attempt = last;
	if (state != HF_TURN_COMPLETE)
		t.fin.n_item = 0;
	assert_int_equal(fx_finish(f, 1, &t.fin), 0);
}

static void
assert_answered_by(struct fx *f, const char *want)
{
	struct hf_head h = fx_head(f, 1, "s");
	struct hf_arena a;
	struct hf_str got;

	hf_arena_init(&a, 0);
	assert_int_equal(
	    hf_store_answered_by(f->st[1], h.session_row, &a, &got, &f->e), 0);
	assert_true(hf_str_is(got, want));
	hf_arena_free(&a);
}

/* Who answered last: not who failed, lost a race or was skipped. */
static void
who_answered(void **state)
{
	struct fx f;

	(void)state;
	fx_open(&f);
	turn_with(&f, (const char *const[]){ "network", NULL }, HF_TURN_FAILED);
	assert_answered_by(&f, "");
	turn_with(&f, (const char *const[]){ "network", "hedged", "ok", NULL },
	    HF_TURN_COMPLETE);
	assert_answered_by(&f, "t3");
	turn_with(&f, (const char *const[]){ "provider", "skipped", NULL },
	    HF_TURN_FAILED);
	assert_answered_by(&f, "t3");
	/* Who was hung up on because the client left was answering. */
	turn_with(&f, (const char *const[]){ "network", "canceled", NULL },
	    HF_TURN_CANCELED);
	assert_answered_by(&f, "t2");
	turn_with(&f, (const char *const[]){ "lost", "network", "ok", NULL },
	    HF_TURN_COMPLETE);
	assert_answered_by(&f, "t3");
	turn_with(&f, (const char *const[]){ "ok", NULL }, HF_TURN_COMPLETE);
	for (int i = 0; i < 15; i++)
		turn_with(&f, (const char *const[]){ "network", NULL },
		    HF_TURN_FAILED);
	assert_answered_by(&f, "a/model");
	turn_with(&f, (const char *const[]){ "network", NULL }, HF_TURN_FAILED);
	assert_answered_by(&f, "");
	fx_close(&f);
}

static void
names_belong_to_tenants(void **state)
{
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "shared name", "mine", "ok");
	assert_int_equal(
	    hf_store_head(f.st[1], "other", HF_STR("shared name"), &h, &f.e),
	    0);
	assert_false(h.found);
	fx_close(&f);
}

static void
nameless_is_always_new(void **state)
{
	struct hf_begun one, two;
	struct hf_item in;
	struct hf_begin b;
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	h = fx_head(&f, 1, "");
	assert_false(h.found);
	b = fx_turn("", &h, &in, "hello");
	assert_int_equal(fx_begin(&f, 1, &b, &one), 0);
	h = fx_head(&f, 1, "");
	assert_false(h.found);
	b = fx_turn("", &h, &in, "hello");
	assert_int_equal(fx_begin(&f, 1, &b, &two), 0);
	assert_int_equal(one.result, HF_BEGIN_OPEN);
	assert_int_equal(two.result, HF_BEGIN_OPEN);
	assert_true(one.session_row != two.session_row);
	fx_close(&f);
}

static void
moved_head_is_said(void **state)
{
	struct hf_head stale, fresh;
	struct hf_begun begun;
	struct hf_item in;
	struct hf_begin b;
	struct fx f;

	(void)state;
	fx_open(&f);
	fresh = fx_head(&f, 1, "s");
	fx_say(&f, 1, "s", "one", "1");
	/* The caller thought it new. */
	b = fx_turn("s", &fresh, &in, "two");
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	assert_int_equal(begun.result, HF_BEGIN_MOVED);
	/* The caller knew an older head. */
	stale = fx_head(&f, 1, "s");
	fx_say(&f, 2, "s", "two", "2");
	b = fx_turn("s", &stale, &in, "three");
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	assert_int_equal(begun.result, HF_BEGIN_MOVED);
	assert_string_equal(fx_history(&f, 1, "s"),
	    "user:one|assistant:1|user:two|assistant:2");
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM turn"), 2);
	fx_close(&f);
}

/* A refused input leaves the history; an open turn's input is in it. */
static void
drop_from_history(void **state)
{
	struct hf_begun begun;
	struct hf_finish fin;
	struct hf_item in;
	struct hf_begin b;
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	fx_say(&f, 1, "s", "one", "1");
	h = fx_head(&f, 1, "s");
	b = fx_turn("s", &h, &in, "poison");
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	assert_string_equal(
	    fx_history(&f, 1, "s"), "user:one|assistant:1|user:poison");
	assert_true(fx_head(&f, 1, "s").busy);
	fin = (struct hf_finish){ .session_row = begun.session_row,
		.turn_row = begun.turn_row,
		.fence = begun.fence,
		.state = HF_TURN_FAILED,
		.drop_from_history = true,
		.attempt = { .n = 1, .cls = "caller", .reason = "http_400" },
		.error_class = "caller",
		.status = 400 };
	assert_int_equal(fx_finish(&f, 1, &fin), 0);
	assert_string_equal(fx_history(&f, 1, "s"), "user:one|assistant:1");
	assert_int_equal(fx_head(&f, 1, "s").head_turn_row, h.head_turn_row);
	assert_true(fx_head(&f, 1, "s").rev > h.rev);
	fx_say(&f, 1, "s", "two", "2");
	assert_string_equal(fx_history(&f, 1, "s"),
	    "user:one|assistant:1|user:two|assistant:2");
	fx_close(&f);
}

/* An edit: the new turn hangs under an older one. */
static void
branch(void **state)
{
	struct hf_head h, at_one;
	struct hf_begun begun;
	struct hf_finish fin;
	struct hf_item in, out;
	struct hf_begin b;
	int64_t one, two;
	struct fx f;

	(void)state;
	fx_open(&f);
	one = fx_say(&f, 1, "s", "one", "1");
	at_one = fx_head(&f, 1, "s");
	two = fx_say(&f, 1, "s", "two", "2");
	h = fx_head(&f, 1, "s");
	assert_int_equal(h.head_parent_row, one);
	at_one.rev = h.rev;
	b = fx_turn("s", &at_one, &in, "two, edited");
	b.retry_of_row = two;
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	assert_int_equal(begun.result, HF_BEGIN_OPEN);
	fin = fx_answer(&b, &begun, &h.key, &out, "2b");
	assert_int_equal(fx_finish(&f, 1, &fin), 0);
	assert_string_equal(fx_history(&f, 1, "s"),
	    "user:one|assistant:1|user:two, edited|assistant:2b");
	assert_int_equal(
	    fx_sql(&f, "SELECT retry_of FROM turn WHERE seq = 3"), two);
	fx_close(&f);
}

static void
parent_must_be_ours(void **state)
{
	struct hf_begun begun;
	struct hf_item in;
	struct hf_begin b;
	struct hf_head h;
	int64_t other;
	struct fx f;

	(void)state;
	fx_open(&f);
	other = fx_say(&f, 1, "other", "secret", "kept");
	fx_say(&f, 1, "s", "one", "1");
	h = fx_head(&f, 1, "s");
	h.head_turn_row = other;
	b = fx_turn("s", &h, &in, "two");
	assert_int_equal(fx_begin(&f, 1, &b, &begun), HF_EINVAL);
	/* Nothing of it stays, and the lease is free. */
	assert_string_equal(fx_history(&f, 1, "s"), "user:one|assistant:1");
	assert_false(fx_head(&f, 1, "s").busy);
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM turn"), 2);
	fx_close(&f);
}

/* The newest group of leading messages is in force, in front; the view leaves
 * all of them out and is what the head's chain was made of. */
static void
lead_items(void **state)
{
	struct hf_item items[3];
	struct hf_begun begun;
	struct hf_history view;
	struct hf_finish fin;
	struct hf_item out;
	struct hf_begin b;
	struct hf_arena a;
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	h = fx_head(&f, 1, "s");
	b = fx_turn("s", &h, &items[2], "one");
	items[0] = fx_item(&h.key, HF_ROLE_SYSTEM, "be kind");
	items[1] = fx_item(&h.key, HF_ROLE_DEVELOPER, "be short");
	items[0].lead = items[1].lead = true;
	b.item = items;
	b.n_item = 3;
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	fin = fx_answer(&b, &begun, &h.key, &out, "1");
	assert_int_equal(fx_finish(&f, 1, &fin), 0);
	assert_string_equal(fx_history(&f, 1, "s"),
	    "system:be kind|"
	    "developer:be short|user:one|assistant:1");
	h = fx_head(&f, 1, "s");
	b = fx_turn("s", &h, &items[1], "two");
	items[0] = fx_item(&h.key, HF_ROLE_SYSTEM, "be rude");
	items[0].lead = true;
	b.item = items;
	b.n_item = 2;
	memset(b.lead_digest, 7, sizeof(b.lead_digest));
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	fin = fx_answer(&b, &begun, &h.key, &out, "2");
	assert_int_equal(fx_finish(&f, 1, &fin), 0);
	assert_string_equal(fx_history(&f, 1, "s"),
	    "system:be rude|"
	    "user:one|assistant:1|user:two|assistant:2");
	h = fx_head(&f, 1, "s");
	assert_int_equal(h.lead_digest[0], 7);
	hf_arena_init(&a, 0);
	assert_int_equal(hf_store_view(f.st[1], h.session_row, h.head_turn_row,
			     &a, &view, &f.e),
	    0);
	assert_int_equal(view.n, 4);
	assert_int_equal(view.n, h.view_items);
	assert_null(view.item[0].body.p);
	hf_arena_free(&a);
	fx_close(&f);
}

/* The chain over what hf_store_view() returns is the head's view. */
static void
assert_view(struct fx *f, const char *name)
{
	uint8_t chain[HF_DIGEST_SIZE] = { 0 }, next[HF_DIGEST_SIZE];
	struct hf_head h = fx_head(f, 1, name);
	struct hf_history view;
	struct hf_arena a;

	hf_arena_init(&a, 0);
	assert_int_equal(hf_store_view(fx_store(f, 1), h.session_row,
			     h.head_turn_row, &a, &view, &f->e),
	    0);
	assert_int_equal(view.n, h.view_items);
	for (unsigned i = 0; i < view.n; i++) {
		hf_store_chain(&h.key, chain,
		    view.item[i].has_heard ? view.item[i].heard_digest :
					     view.item[i].digest,
		    next);
		memcpy(chain, next, sizeof(chain));
	}
	assert_memory_equal(chain, h.view, sizeof(chain));
	hf_arena_free(&a);
}

static void
rechain(const struct hf_session_key *k, uint8_t view[HF_DIGEST_SIZE],
    const char *const *text, unsigned n)
{
	uint8_t digest[HF_DIGEST_SIZE], next[HF_DIGEST_SIZE];

	memset(view, 0, HF_DIGEST_SIZE);
	for (unsigned i = 0; i < n; i++) {
		hf_store_digest(k, hf_str(text[i]), digest);
		hf_store_chain(k, view, digest, next);
		memcpy(view, next, HF_DIGEST_SIZE);
	}
}

static int64_t
item_row(struct fx *f, int64_t turn, int idx)
{
	char sql[128];

	snprintf(sql, sizeof(sql),
	    "SELECT id FROM item WHERE turn = %lld"
	    " AND idx = %d",
	    (long long)turn, idx);
	return fx_sql(f, sql);
}

/* What was heard replaces what was said; nothing heard leaves it out. */
static void
heard(void **state)
{
	static const char *const one[] = { "one", "1 is a nu", "two" };
	static const char *const two[] = { "one", "1 is a nu", "two", "three" };
	struct hf_heard h1 = { .body = HF_STR("1 is a nu") }, h2 = { 0 };
	struct hf_begun begun;
	struct hf_finish fin;
	struct hf_item in, out;
	struct hf_begin b;
	struct hf_head h;
	int64_t turn;
	struct fx f;

	(void)state;
	fx_open(&f);
	turn = fx_say(&f, 1, "s", "one", "1 is a number");
	h = fx_head(&f, 1, "s");
	b = fx_turn("s", &h, &in, "two");
	h1.item_row = item_row(&f, turn, 1);
	hf_store_digest(&h.key, h1.body, h1.digest);
	b.heard = &h1;
	b.n_heard = 1;
	rechain(&h.key, b.view, one, 3);
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	turn = begun.turn_row;
	fin = fx_answer(&b, &begun, &h.key, &out, "unheard");
	assert_int_equal(fx_finish(&f, 1, &fin), 0);
	assert_string_equal(fx_history(&f, 1, "s"),
	    "user:one|assistant:1 is a nu|user:two|assistant:unheard");
	assert_view(&f, "s");
	h = fx_head(&f, 1, "s");
	b = fx_turn("s", &h, &in, "three");
	h2.item_row = item_row(&f, turn, 1);
	b.heard = &h2;
	b.n_heard = 1;
	rechain(&h.key, b.view, two, 4);
	b.view_items = 4;
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	assert_string_equal(fx_history(&f, 1, "s"),
	    "user:one|assistant:1 is a nu|user:two|user:three");
	assert_view(&f, "s");
	/* The full text stays for the record. */
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM item"), 5);
	/* A heard report for an item of another session is refused. */
	fin = fx_answer(&b, &begun, &h.key, &out, "3");
	assert_int_equal(fx_finish(&f, 1, &fin), 0);
	fx_say(&f, 1, "other", "x", "y");
	h = fx_head(&f, 1, "other");
	b = fx_turn("other", &h, &in, "z");
	b.heard = &h1;
	b.n_heard = 1;
	assert_int_equal(fx_begin(&f, 1, &b, &begun), HF_EINVAL);
	fx_close(&f);
}

/* A greeting that nobody here made stands where the client has it. */
static void
anchors(void **state)
{
	static const char *const text[] = { "greet A", "greet B", "one", "1",
		"two" };
	struct hf_item items[3];
	struct hf_begun begun;
	struct hf_begin b;
	struct hf_head h;
	int64_t turn;
	struct fx f;

	(void)state;
	fx_open(&f);
	turn = fx_say(&f, 1, "s", "one", "1");
	h = fx_head(&f, 1, "s");
	b = fx_turn("s", &h, &items[2], "two");
	items[0] = fx_item(&h.key, HF_ROLE_ASSISTANT, "greet A");
	items[1] = fx_item(&h.key, HF_ROLE_ASSISTANT, "greet B");
	items[0].anchor_row = items[1].anchor_row = item_row(&f, turn, 0);
	b.item = items;
	b.n_item = 3;
	b.view_items = 5;
	rechain(&h.key, b.view, text, 5);
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	assert_string_equal(fx_history(&f, 1, "s"),
	    "assistant:greet A|"
	    "assistant:greet B|user:one|assistant:1|user:two");
	assert_view(&f, "s");
	fx_close(&f);
}

static void
attempts_are_kept(void **state)
{
	struct hf_attempt_end end = {
		.n = 1, .cls = "network", .reason = "refused", .total_us = 5
	};
	struct hf_attempt_begin next = { .n = 2, .target = HF_STR("b/model") };
	struct hf_begun begun;
	struct hf_finish fin;
	struct hf_item in, out;
	struct hf_begin b;
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	h = fx_head(&f, 1, "s");
	b = fx_turn("s", &h, &in, "one");
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	assert_int_equal(fx_attempts(&f, 1, &begun, &end, &next), 0);
	/* Closing what is closed is an error and changes nothing. */
	assert_int_equal(fx_attempts(&f, 1, &begun, &end, NULL), HF_EINVAL);
	fin = fx_answer(&b, &begun, &h.key, &out, "1");
	fin.attempt.n = 2;
	fin.attempt.tokens_estimated = 3000;
	fin.attempt.omitted_turns = 12;
	fin.attempt.omitted_items = 345;
	assert_int_equal(fx_finish(&f, 1, &fin), 0);
	assert_int_equal(fx_sql(&f,
			     "SELECT count(*) FROM attempt WHERE"
			     " ended_us > 0"),
	    2);
	assert_int_equal(
	    fx_sql(&f,
		"SELECT sum(tokens_estimated * 1000000 + omitted_turns * 1000"
		" + omitted_items) FROM attempt"),
	    3000012345);
	assert_int_equal(
	    fx_sql(&f,
		"SELECT total_us FROM attempt WHERE"
		" class = 'network' AND reason = 'refused' AND n = 1"),
	    5);
	assert_int_equal(fx_sql(&f,
			     "SELECT tokens_out FROM attempt WHERE"
			     " target = 'b/model' AND n = 2"),
	    4);
	/* No lease, no write. */
	assert_int_equal(fx_attempts(&f, 1, &begun, NULL, &next), HF_EFENCED);
	assert_int_equal(fx_finish(&f, 1, &fin), HF_EFENCED);
	fx_close(&f);
}

static int64_t
not_recorded(struct fx *f)
{
	assert_int_equal(
	    fx_sql(f, "SELECT count(*) FROM attempt WHERE ended_us = 0"), 0);
	return fx_sql(f,
	    "SELECT count(*) FROM attempt WHERE"
	    " class = 'gateway' AND reason = 'not_recorded'");
}

/* The turn that could not record an attempt ends all the same, and no attempt
 * is left open in a turn that has ended. */
static void
attempts_left_open(void **state)
{
	struct hf_attempt_begin next = { .n = 2, .target = HF_STR("b/model") };
	struct hf_begun begun;
	struct hf_finish fin;
	struct hf_item in, out;
	struct hf_begin b;
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	h = fx_head(&f, 1, "s");
	b = fx_turn("s", &h, &in, "one");
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	assert_int_equal(fx_attempts(&f, 1, &begun, NULL, &next), 0);
	fin = fx_answer(&b, &begun, &h.key, &out, "1");
	/* An answer by an attempt that does not exist is a mistake. */
	fin.attempt.n = 3;
	fin.close_rest = true;
	assert_int_equal(fx_finish(&f, 1, &fin), HF_EINVAL);
	fin.attempt.n = 2;
	assert_int_equal(fx_finish(&f, 1, &fin), 0);
	assert_int_equal(not_recorded(&f), 1);
	assert_int_equal(fx_sql(&f,
			     "SELECT count(*) FROM attempt WHERE"
			     " class = 'ok' AND n = 2"),
	    1);
	h = fx_head(&f, 1, "s");
	b = fx_turn("s", &h, &in, "two");
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	assert_int_equal(fx_attempts(&f, 1, &begun, NULL, &next), 0);
	fin = fx_answer(&b, &begun, &h.key, &out, "2");
	fin.state = HF_TURN_FAILED;
	fin.n_item = 0;
	fin.attempt.n = 3;
	assert_int_equal(fx_finish(&f, 1, &fin), 0);
	assert_int_equal(not_recorded(&f), 3);
	fx_close(&f);
}

/* An answer is that of the attempt that ended well, whichever began last. */
static void
race_is_won(void **state)
{
	struct hf_attempt_begin next = { .n = 2, .target = HF_STR("b/model") };
	struct hf_attempt_end lost = { .cls = "hedged", .reason = "lost_race" };
	struct hf_stored_answer answer;
	struct hf_arena a;
	struct hf_begun begun;
	struct hf_finish fin;
	struct hf_item in, out;
	struct hf_begin b;
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	hf_arena_init(&a, 0);
	for (int loser = 1; loser <= 2; loser++) {
		h = fx_head(&f, 1, "s");
		b = fx_turn("s", &h, &in, "one");
		assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
		assert_int_equal(fx_attempts(&f, 1, &begun, NULL, &next), 0);
		lost.n = loser;
		assert_int_equal(fx_attempts(&f, 1, &begun, &lost, NULL), 0);
		fin = fx_answer(&b, &begun, &h.key, &out, "1");
		fin.attempt.n = 3 - loser;
		assert_int_equal(fx_finish(&f, 1, &fin), 0);
		assert_int_equal(not_recorded(&f), 0);
		assert_int_equal(
		    hf_store_answer(fx_store(&f, 1), begun.session_row,
			begun.turn_row, &a, &answer, &f.e),
		    0);
		assert_int_equal(answer.attempts, 2);
		assert_true(hf_str_is(
		    answer.target, loser == 1 ? "b/model" : "a/model"));
	}
	hf_arena_free(&a);
	fx_close(&f);
}

static void
parts_become_one_item(void **state)
{
	struct hf_begun begun;
	struct hf_finish fin;
	struct hf_item in, out;
	struct hf_begin b;
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	h = fx_head(&f, 1, "s");
	b = fx_turn("s", &h, &in, "one");
	assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
	assert_int_equal(fx_part(&f, 1, &begun, 1, "1 is"), 0);
	assert_int_equal(fx_part(&f, 1, &begun, 2, " one"), 0);
	assert_int_equal(fx_part(&f, 1, &begun, 2, " one"), HF_EEXIST);
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM part"), 2);
	fin = fx_answer(&b, &begun, &h.key, &out, "1 is one");
	assert_int_equal(fx_finish(&f, 1, &fin), 0);
	assert_int_equal(fx_sql(&f, "SELECT count(*) FROM part"), 0);
	assert_string_equal(
	    fx_history(&f, 1, "s"), "user:one|assistant:1 is one");
	fx_close(&f);
}

static void
bad_input_is_refused(void **state)
{
	struct hf_finish fin = { .state = HF_TURN_OPEN };
	struct hf_begun begun;
	struct hf_item in;
	struct hf_begin b;
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	h = fx_head(&f, 1, "s");
	b = fx_turn("s", &h, &in, "one");
	b.name = HF_STR("nul\0inside");
	assert_int_equal(fx_begin(&f, 1, &b, &begun), HF_EINVAL);
	assert_int_equal(fx_finish(&f, 1, &fin), HF_EINVAL);
	assert_int_equal(hf_store_pending(f.st[1]), 0);
	fx_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_session_round_trip),
		cmocka_unit_test(item_round_trip),
		cmocka_unit_test(long_answer_from_parts),
		cmocka_unit_test(long_answer_of_another_size),
		cmocka_unit_test(who_answered),
		cmocka_unit_test(names_belong_to_tenants),
		cmocka_unit_test(nameless_is_always_new),
		cmocka_unit_test(moved_head_is_said),
		cmocka_unit_test(drop_from_history),
		cmocka_unit_test(branch),
		cmocka_unit_test(parent_must_be_ours),
		cmocka_unit_test(lead_items),
		cmocka_unit_test(heard),
		cmocka_unit_test(anchors),
		cmocka_unit_test(attempts_are_kept),
		cmocka_unit_test(attempts_left_open),
		cmocka_unit_test(race_is_won),
		cmocka_unit_test(parts_become_one_item),
		cmocka_unit_test(bad_input_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
