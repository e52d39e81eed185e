/*
 * Fitting a history into a window: by example, and what must hold for any
 * history and any room.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "gateway/turn/fit.h"

#define MOST 400

/* --- making histories ------------------------------------------------------
 */

struct list {
	struct hf_fit_item item[MOST];
	uint32_t n;
	int64_t turn;
};

static uint32_t
add(struct list *l, enum hf_item_kind kind, enum hf_role role, int64_t tokens)
{
	assert_true(l->n < MOST);
	l->item[l->n] = (struct hf_fit_item){ .kind = kind,
		.role = role,
		.tokens = tokens,
		.turn = l->turn,
		.call = HF_FIT_NONE };
	return l->n++;
}

static uint32_t
say(struct list *l, enum hf_role role, int64_t tokens)
{
	return add(l, HF_ITEM_MESSAGE, role, tokens);
}

static uint32_t
call(struct list *l, int64_t tokens)
{
	return add(l, HF_ITEM_TOOL_CALL, HF_ROLE_ASSISTANT, tokens);
}

static uint32_t
result(struct list *l, uint32_t of, int64_t tokens)
{
	uint32_t i = add(l, HF_ITEM_TOOL_RESULT, HF_ROLE_TOOL, tokens);

	l->item[i].call = of;
	return i;
}

/* A turn of question and answer. */
static uint32_t
turn(struct list *l, int64_t tokens)
{
	uint32_t i;

	l->turn++;
	i = say(l, HF_ROLE_USER, tokens / 2);
	say(l, HF_ROLE_ASSISTANT, tokens - tokens / 2);
	return i;
}

/* "1" for what is kept. */
static const char *
kept(const struct list *l)
{
	static char text[MOST + 1];

	for (uint32_t i = 0; i < l->n; i++)
		text[i] = l->item[i].keep ? '1' : '-';
	text[l->n] = '\0';
	return text;
}

static struct hf_fit
fit(struct list *l, int64_t room)
{
	struct hf_fit out;

	hf_fit(l->item, l->n, room, &out);
	return out;
}

/* --- by example ------------------------------------------------------------
 */

static void
test_all_fits(void **state)
{
	struct list l = { 0 };
	struct hf_fit f;

	(void)state;
	say(&l, HF_ROLE_SYSTEM, 10);
	turn(&l, 20);
	turn(&l, 20);
	f = fit(&l, 50);
	assert_true(f.fits);
	assert_string_equal(kept(&l), "11111");
	assert_int_equal(f.tokens, 50);
	assert_int_equal(f.items, 0);
	assert_int_equal(f.turns, 0);
}

static void
test_oldest_turns_go(void **state)
{
	struct list l = { 0 };
	struct hf_fit f;

	(void)state;
	say(&l, HF_ROLE_SYSTEM, 10);
	turn(&l, 20);
	turn(&l, 20);
	turn(&l, 20);
	l.turn++;
	say(&l, HF_ROLE_USER, 5);
	f = fit(&l, 74);
	assert_string_equal(kept(&l), "1--11111");
	assert_int_equal(f.tokens, 55);
	assert_int_equal(f.items, 2);
	assert_int_equal(f.turns, 1);
	f = fit(&l, 54);
	assert_string_equal(kept(&l), "1----111");
	f = fit(&l, 15);
	assert_true(f.fits);
	assert_string_equal(kept(&l), "1------1");
	assert_int_equal(f.minimum, 15);
	assert_int_equal(f.turns, 3);
	f = fit(&l, 14);
	assert_false(f.fits);
	assert_int_equal(f.minimum, 15);
}

/* No gap: an old small turn does not stay where a newer one has to go. */
static void
test_no_gap(void **state)
{
	struct list l = { 0 };

	(void)state;
	turn(&l, 2);
	turn(&l, 100);
	turn(&l, 10);
	l.turn++;
	say(&l, HF_ROLE_USER, 1);
	fit(&l, 50);
	assert_string_equal(kept(&l), "----111");
}

static void
test_pinned(void **state)
{
	struct list l = { 0 };
	struct hf_fit f;
	uint32_t c;

	(void)state;
	turn(&l, 20);
	l.item[turn(&l, 20)].pinned = true;
	l.turn++;
	say(&l, HF_ROLE_USER, 10);
	c = call(&l, 10);
	l.item[result(&l, c, 10)].pinned = true;
	say(&l, HF_ROLE_DEVELOPER, 3);
	say(&l, HF_ROLE_ASSISTANT, 10);
	l.turn++;
	say(&l, HF_ROLE_USER, 1);
	/* The result brings its call; the note is the operator's. */
	f = fit(&l, 34);
	assert_true(f.fits);
	assert_string_equal(kept(&l), "--1--111-1");
	assert_int_equal(f.minimum, 34);
	assert_int_equal(f.items, 5);
	assert_int_equal(f.turns, 3);
}

static void
test_groups_stay_together(void **state)
{
	struct list l = { 0 };
	uint32_t a, b;

	(void)state;
	l.turn = 1;
	say(&l, HF_ROLE_USER, 5);
	for (unsigned i = 0; i < 3; i++) {
		say(&l, HF_ROLE_ASSISTANT, 1);
		a = call(&l, 2);
		b = call(&l, 2);
		result(&l, a, 5);
		result(&l, b, 5);
	}
	/* Of the newest turn: its question and its newest steps. */
	fit(&l, 20);
	assert_string_equal(kept(&l), "1----------11111");
	fit(&l, 49);
	assert_string_equal(kept(&l), "1-----1111111111");
	assert_false(fit(&l, 19).fits);
}

/* The user speaks while a tool runs: all of that is one. */
static void
test_interposed(void **state)
{
	struct list l = { 0 };
	uint32_t a;

	(void)state;
	turn(&l, 10);
	l.turn++;
	say(&l, HF_ROLE_USER, 5);
	a = call(&l, 5);
	l.turn++;
	say(&l, HF_ROLE_USER, 5);
	result(&l, a, 5);
	say(&l, HF_ROLE_ASSISTANT, 5);
	l.turn++;
	say(&l, HF_ROLE_USER, 5);
	fit(&l, 29);
	assert_string_equal(kept(&l), "-------1");
	fit(&l, 30);
	assert_string_equal(kept(&l), "--111111");
}

/* A client's whole list comes as one turn, and is one of many. */
static void
test_list_of_one_turn(void **state)
{
	struct list l = { 0 };

	(void)state;
	say(&l, HF_ROLE_SYSTEM, 1);
	say(&l, HF_ROLE_ASSISTANT, 9);
	for (unsigned i = 0; i < 3; i++) {
		say(&l, HF_ROLE_USER, 5);
		say(&l, HF_ROLE_USER, 5);
		say(&l, HF_ROLE_ASSISTANT, 5);
	}
	say(&l, HF_ROLE_USER, 5);
	fit(&l, 40);
	/* The greeting goes with the first turn. */
	assert_string_equal(kept(&l), "1----1111111");
}

static void
test_nothing(void **state)
{
	struct list l = { 0 };

	(void)state;
	assert_true(fit(&l, 0).fits);
	assert_false(fit(&l, -1).fits);
	say(&l, HF_ROLE_ASSISTANT, 4);
	assert_true(fit(&l, 4).fits);
	assert_false(fit(&l, 3).fits);
}

/* --- whatever the history is ------------------------------------------------
 */

static uint64_t seed;

static unsigned
below(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

static void
random_calls(struct list *l)
{
	uint32_t id[4], n = 1 + below(3), i;

	if (below(2) == 0)
		say(l, HF_ROLE_ASSISTANT, 1 + below(20));
	for (i = 0; i < n; i++)
		id[i] = call(l, 1 + below(20));
	if (below(8) == 0) {
		l->turn += below(2);
		say(l, HF_ROLE_USER, 1 + below(20));
	}
	for (i = 0; i < n; i++)
		if (below(10) > 0) /* some get no result */
			result(l, id[n - 1 - i], 1 + below(60));
	if (below(12) == 0)
		result(l, HF_FIT_NONE, 1 + below(20));
}

static void
random_history(struct list *l)
{
	unsigned turns = 1 + below(12);

	memset(l, 0, sizeof(*l));
	if (below(3) > 0)
		say(l, HF_ROLE_SYSTEM, 1 + below(30));
	if (below(4) == 0)
		say(l, HF_ROLE_ASSISTANT, 1 + below(10));
	for (unsigned k = 0; k < turns; k++) {
		l->turn += below(6) > 0;
		if (below(10) > 0)
			say(l, HF_ROLE_USER, 1 + below(50));
		if (below(12) == 0)
			say(l, HF_ROLE_SYSTEM, 1 + below(10));
		for (unsigned s = below(4); s > 0; s--)
			random_calls(l);
		if (k + 1 < turns && below(8) > 0)
			say(l, HF_ROLE_ASSISTANT, below(80));
	}
	for (uint32_t i = 0; i < l->n; i++)
		l->item[i].pinned = below(25) == 0;
}

/* What is together in any case, found out in another way: by a closure over
 * pairs that must stay together. */
static void
check_groups(const struct list *l)
{
	for (uint32_t i = 0; i < l->n; i++) {
		const struct hf_fit_item *it = &l->item[i];

		if (it->call != HF_FIT_NONE)
			assert_int_equal(l->item[it->call].keep, it->keep);
		if (i > 0 && it->kind == HF_ITEM_TOOL_CALL &&
		    it[-1].kind == HF_ITEM_TOOL_CALL && it[-1].turn == it->turn)
			assert_int_equal(it[-1].keep, it->keep);
	}
}

static bool
is_user(const struct hf_fit_item *i)
{
	return i->kind == HF_ITEM_MESSAGE && i->role == HF_ROLE_USER;
}

static void
check_least(const struct list *l)
{
	uint32_t last = HF_FIT_NONE;

	for (uint32_t i = 0; i < l->n; i++) {
		const struct hf_fit_item *it = &l->item[i];

		if (it->pinned || it->role == HF_ROLE_SYSTEM)
			assert_true(it->keep);
		if (is_user(it))
			last = i;
	}
	assert_true(l->item[l->n - 1].keep);
	if (last != HF_FIT_NONE)
		assert_true(l->item[last].keep);
}

/* From some place on all is kept, and before it only what must be: with what
 * stands next before that place it would not fit. */
static void
check_newest(const struct list *l, const struct hf_fit *f, int64_t room)
{
	uint32_t from = l->n, i;
	int64_t more = 0;

	while (from > 0 && l->item[from - 1].keep)
		from--;
	if (from == 0)
		return;
	for (i = from; i > 0 && l->item[i - 1].unit == l->item[from - 1].unit;
	     i--)
		more += l->item[i - 1].keep ? 0 : l->item[i - 1].tokens;
	if (l->item[from - 1].unit != l->item[l->n - 1].unit)
		assert_true(f->tokens + more > room);
}

static void
test_any(void **state)
{
	static struct list l;
	unsigned left_out = 0, refused = 0;

	(void)state;
	for (seed = 1; seed < 20000; seed += 1) {
		uint64_t own = seed;
		int64_t all = 0, tokens = 0, room;
		struct hf_fit f;
		unsigned items = 0;

		do
			random_history(&l);
		while (l.n == 0);
		for (uint32_t i = 0; i < l.n; i++)
			all += l.item[i].tokens;
		room = (int64_t)below((unsigned)all + 40);
		f = fit(&l, room);
		for (uint32_t i = 0; i < l.n; i++) {
			tokens += l.item[i].keep ? l.item[i].tokens : 0;
			items += !l.item[i].keep;
		}
		assert_int_equal(tokens, f.tokens);
		assert_int_equal(items, f.items);
		assert_int_equal(f.fits, f.minimum <= room);
		assert_true(f.fits ? tokens <= room : tokens == f.minimum);
		assert_true(all <= room ? f.items == 0 : true);
		assert_true(f.turns <= f.items);
		check_least(&l);
		check_groups(&l);
		if (f.fits)
			check_newest(&l, &f, room);
		left_out += f.items > 0 && f.fits;
		refused += !f.fits;
		seed = own;
	}
	/* All of this was seen. */
	assert_true(left_out > 1000 && refused > 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_fits),
		cmocka_unit_test(test_oldest_turns_go),
		cmocka_unit_test(test_no_gap),
		cmocka_unit_test(test_pinned),
		cmocka_unit_test(test_groups_stay_together),
		cmocka_unit_test(test_interposed),
		cmocka_unit_test(test_list_of_one_turn),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
