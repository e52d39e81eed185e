/*
 * What was heard: marks at the end of a turn and after it, and of a turn whose
 * process dies after its client left.
 */
#include <config.h>

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "store/inspect.h"
#include "tests/unit/store_fixture.h"

struct result {
	bool done;
	int rc;
};

static void
on_done(void *arg, int rc, const struct hf_error *e)
{
	struct result *r = arg;

	(void)e;
	r->done = true;
	r->rc = rc;
}

static int
note(struct fx *f, const struct hf_heard_note *n)
{
	struct result r = { 0 };

	assert_int_equal(hf_store_heard(f->st[1], n, on_done, &r, &f->e), 0);
	fx_drain(f, 1);
	assert_true(r.done);
	return r.rc;
}

static int
gone(struct fx *f, const struct hf_begun *b, uint64_t fence, int64_t heard)
{
	struct hf_heard_note n = { .session_row = b->session_row,
		.turn_row = b->turn_row,
		.heard = heard,
		.gone_us = 77 };
	struct result r = { 0 };

	assert_int_equal(
	    hf_store_gone(f->st[1], &n, fence, on_done, &r, &f->e), 0);
	fx_drain(f, 1);
	assert_true(r.done);
	return r.rc;
}

static int64_t
turn_number(struct fx *f, int64_t turn, const char *column)
{
	char sql[128];

	snprintf(sql, sizeof(sql), "SELECT %s FROM turn WHERE id = %lld",
	    column, (long long)turn);
	return fx_sql(f, sql);
}

/* The view of a head that says so. */
static void
assert_view(struct fx *f, const char *const *text, unsigned n)
{
	struct hf_head h = fx_head(f, 1, "s");
	uint8_t view[HF_DIGEST_SIZE] = { 0 }, d[HF_DIGEST_SIZE],
		next[HF_DIGEST_SIZE];

	for (unsigned i = 0; i < n; i++) {
		hf_store_digest(&h.key, hf_str(text[i]), d);
		hf_store_chain(&h.key, view, d, next);
		memcpy(view, next, sizeof(view));
	}
	assert_int_equal(h.view_items, n);
	assert_memory_equal(h.view, view, sizeof(view));
}

static void
on_finding(void *arg, const struct hf_finding *f)
{
	(void)arg;
	print_message("turn %d: %s: %s\n", (int)f->turn_seq, f->what, f->text);
}

static void
clean(struct fx *f)
{
	struct hf_verified sum = { 0 };
	struct hf_head h = fx_head(f, 1, "s");
	struct hf_inspect *in;

	assert_int_equal(hf_inspect_open(&in, &f->conf[0], &f->e), 0);
	assert_int_equal(
	    hf_verify_session(in, &h.session, on_finding, NULL, &sum, &f->e),
	    0);
	assert_int_equal(sum.corrupt + sum.odd, 0);
	hf_inspect_close(in);
}

/* A turn that ends with 'text', of which 'part' was heard. */
static struct hf_begun
cut_turn(struct fx *f, const char *user, const char *text, const char *part)
{
	struct hf_head h = fx_head(f, 1, "s");
	struct hf_item in, out;
	struct hf_begin b = fx_turn("s", &h, &in, user);
	struct hf_begun begun;
	struct hf_finish fin;

	assert_int_equal(fx_begin(f, 1, &b, &begun), 0);
	fin = fx_answer(&b, &begun, &h.key, &out, text);
	out.has_heard = true;
	out.heard = hf_str(part);
	memcpy(fin.view, b.view, sizeof(fin.view));
	fin.view_items = b.view_items;
	if (part[0] != '\0') {
		hf_store_digest(&h.key, out.heard, out.heard_digest);
		hf_store_chain(&h.key, b.view, out.heard_digest, fin.view);
		fin.view_items++;
	}
	fin.said = (int64_t)strlen(text);
	fin.heard = (int64_t)strlen(part);
	fin.gone_us = 5;
	assert_int_equal(fx_finish(f, 1, &fin), 0);
	return begun;
}

/* What hf_store_heard() is told when all of that answer was heard. */
static struct hf_heard_note
whole(struct fx *f, const struct hf_begun *b, const char *const *view,
    unsigned n, struct hf_heard *mark)
{
	struct hf_heard_note note = { .session_row = b->session_row,
		.turn_row = b->turn_row,
		.delivered = true,
		.mark = mark,
		.n_mark = 1,
		.view_items = n };
	struct hf_head h = fx_head(f, 1, "s");
	uint8_t d[HF_DIGEST_SIZE], next[HF_DIGEST_SIZE];

	for (unsigned i = 0; i < n; i++) {
		hf_store_digest(&h.key, hf_str(view[i]), d);
		hf_store_chain(&h.key, note.view, d, next);
		memcpy(note.view, next, sizeof(next));
	}
	note.heard = (int64_t)strlen(view[n - 1]);
	*mark = (struct hf_heard){ .item_row = b->turn_row << 20 | 1,
		.whole = true };
	return note;
}

static void
at_the_end(void **state)
{
	static const char *const one[] = { "one", "the ti" };
	static const char *const two[] = { "one", "the ti", "two" };
	struct hf_stored_answer s;
	struct hf_begun b;
	struct hf_arena a;
	struct fx f;

	(void)state;
	fx_open(&f);
	b = cut_turn(&f, "one", "the tide", "the ti");
	assert_string_equal(
	    fx_history(&f, 1, "s"), "user:one|assistant:the ti");
	assert_view(&f, one, 2);
	clean(&f);
	hf_arena_init(&a, 0);
	assert_int_equal(
	    hf_store_answer(f.st[1], b.session_row, b.turn_row, &a, &s, &f.e),
	    0);
	assert_int_equal(s.said, 8);
	assert_int_equal(s.heard, 6);
	assert_int_equal(s.n_item, 1);
	assert_true(s.item[0].has_heard);
	assert_true(hf_str_is(s.item[0].body, "the tide"));
	hf_arena_free(&a);
	b = cut_turn(&f, "two", "not heard at all", "");
	assert_string_equal(
	    fx_history(&f, 1, "s"), "user:one|assistant:the ti|user:two");
	assert_view(&f, two, 3);
	clean(&f);
	fx_close(&f);
}

/* Told again to the end: the mark goes, the head's view is another one, and
 * who has looked at it before aligns again. */
static void
told_again(void **state)
{
	static const char *const view[] = { "one", "the tide" };
	struct hf_heard_note n;
	struct hf_heard mark;
	struct hf_begun b, next;
	struct hf_begin late;
	struct hf_item in;
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	b = cut_turn(&f, "one", "the tide", "the ti");
	h = fx_head(&f, 1, "s");
	late = fx_turn("s", &h, &in, "two");
	n = whole(&f, &b, view, 2, &mark);
	assert_int_equal(note(&f, &n), 0);
	assert_string_equal(
	    fx_history(&f, 1, "s"), "user:one|assistant:the tide");
	assert_view(&f, view, 2);
	assert_int_equal(turn_number(&f, b.turn_row, "heard"), 8);
	assert_int_equal(turn_number(&f, b.turn_row, "gone_us"), 5);
	assert_true(turn_number(&f, b.turn_row, "delivered_us") > 0);
	clean(&f);
	assert_int_equal(fx_begin(&f, 1, &late, &next), 0);
	assert_int_equal(next.result, HF_BEGIN_MOVED);
	/* A word that comes late changes nothing. */
	n.delivered = false;
	n.heard = 3;
	n.gone_us = 6;
	mark.whole = false;
	assert_int_equal(note(&f, &n), 0);
	assert_int_equal(turn_number(&f, b.turn_row, "heard"), 8);
	assert_view(&f, view, 2);
	clean(&f);
	fx_close(&f);
}

/* A client that left after the answer was stored. */
static void
after_the_end(void **state)
{
	static const char *const view[] = { "one", "the tide" };
	static const char *const heard[] = { "one", "the" };
	struct hf_heard_note n;
	struct hf_heard mark;
	struct hf_begun b;
	struct hf_head h;
	struct fx f;

	(void)state;
	fx_open(&f);
	b.turn_row = fx_say(&f, 1, "s", "one", "the tide");
	h = fx_head(&f, 1, "s");
	b.session_row = h.session_row;
	n = whole(&f, &b, heard, 2, &mark);
	n.delivered = false;
	n.gone_us = 9;
	mark = (struct hf_heard){ .item_row = mark.item_row,
		.body = HF_STR("the") };
	hf_store_digest(&h.key, mark.body, mark.digest);
	/* As a fixture's turn says nothing of its size. */
	fx_sql(&f, "UPDATE turn SET said = 8");
	assert_int_equal(note(&f, &n), 0);
	assert_string_equal(fx_history(&f, 1, "s"), "user:one|assistant:the");
	assert_view(&f, heard, 2);
	assert_int_equal(turn_number(&f, b.turn_row, "heard"), 3);
	assert_int_equal(turn_number(&f, b.turn_row, "gone_us"), 9);
	assert_int_equal(turn_number(&f, b.turn_row, "delivered_us"), -1);
	clean(&f);
	n = whole(&f, &b, view, 2, &mark);
	assert_int_equal(note(&f, &n), 0);
	assert_view(&f, view, 2);
	clean(&f);
	fx_close(&f);
}

/* What a later turn was told stays; only the figures say more. */
static void
later_turn(void **state)
{
	static const char *const view[] = { "one", "the tide" };
	struct hf_heard_note n;
	struct hf_heard mark;
	struct hf_begun b;
	struct fx f;

	(void)state;
	fx_open(&f);
	b = cut_turn(&f, "one", "the tide", "the ti");
	fx_say(&f, 1, "s", "two", "2");
	n = whole(&f, &b, view, 2, &mark);
	assert_int_equal(note(&f, &n), 0);
	assert_string_equal(fx_history(&f, 1, "s"),
	    "user:one|assistant:the ti|user:two|assistant:2");
	assert_int_equal(turn_number(&f, b.turn_row, "heard"), 8);
	clean(&f);
	/* Of another session's turn, or of none. */
	n.session_row++;
	assert_int_equal(note(&f, &n), HF_ENOTFOUND);
	n.session_row--;
	n.turn_row += 100;
	assert_int_equal(note(&f, &n), HF_ENOTFOUND);
	fx_close(&f);
}

static void
owner_dies(void **state)
{
	static const struct {
		int64_t heard;
		const char *history;
		int64_t noted;
	} row[] = {
		{ 5, "user:one|assistant:the t", 5 },
		{ 0, "user:one", 0 },
		/* All that is on disk, though more had been heard. */
		{ 99, "user:one|assistant:the tide", 8 },
	};
	struct hf_recovered r;
	struct hf_begun begun;
	struct hf_begin b;
	struct hf_item in;
	struct hf_head h;
	struct fx f;

	(void)state;
	for (size_t i = 0; i < hf_countof(row); i++) {
		fx_open(&f);
		h = fx_head(&f, 1, "s");
		b = fx_turn("s", &h, &in, "one");
		assert_int_equal(fx_begin(&f, 1, &b, &begun), 0);
		assert_int_equal(fx_part(&f, 1, &begun, 0, "the t"), 0);
		assert_int_equal(
		    gone(&f, &begun, begun.fence + 1, 5), HF_EFENCED);
		assert_int_equal(
		    gone(&f, &begun, begun.fence, row[i].heard), 0);
		assert_int_equal(fx_part(&f, 1, &begun, 1, "ide"), 0);
		fx_kill(&f, 1);
		assert_int_equal(
		    hf_keep_reap(f.keep, 0, 0, fx_make_body, NULL, &r, &f.e),
		    0);
		assert_int_equal(r.turns_interrupted, 1);
		assert_string_equal(fx_history(&f, 1, "s"), row[i].history);
		assert_int_equal(turn_number(&f, begun.turn_row, "said"), 8);
		assert_int_equal(
		    turn_number(&f, begun.turn_row, "heard"), row[i].noted);
		assert_int_equal(
		    turn_number(&f, begun.turn_row, "gone_us"), 77);
		clean(&f);
		fx_close(&f);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_the_end),
		cmocka_unit_test(told_again),
		cmocka_unit_test(after_the_end),
		cmocka_unit_test(later_turn),
		cmocka_unit_test(owner_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
