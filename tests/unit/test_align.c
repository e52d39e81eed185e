/*
 * The alignment table of docs/design/sessions.md, one test a row.
 *
 * Items are written as words: U1 a user message, A1 an assistant message, C1
 * a tool call, R1 a tool result, S1 a system message in mid-conversation.
 * The stored side adds the turn after a colon ("U1:1 A1:1 U2:2 A2:2"), an
 * item that a later turn inserted is marked "A9:2^", one of which only A7 was
 * heard "A1:1/7".
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "gateway/turn/align.h"

#define MAX 32

static uint32_t
parse(const char *text, struct hf_item item[MAX])
{
	uint32_t n = 0;

	memset(item, 0, sizeof(*item) * MAX);
	for (const char *p = text; *p != '\0'; n++) {
		size_t len = strcspn(p, " ");
		size_t name = strcspn(p, ": ^");
		size_t slash = strcspn(p, " /");
		struct hf_item *i = &item[n];

		assert_true(n < MAX);
		i->kind = HF_ITEM_MESSAGE;
		i->role = p[0] == 'U' ? HF_ROLE_USER :
		    p[0] == 'S'	      ? HF_ROLE_SYSTEM :
					HF_ROLE_ASSISTANT;
		if (p[0] == 'C')
			i->kind = HF_ITEM_TOOL_CALL;
		if (p[0] == 'R') {
			i->kind = HF_ITEM_TOOL_RESULT;
			i->role = HF_ROLE_TOOL;
		}
		memcpy(i->digest, p, name < len ? name : len);
		if (name < len && p[name] == ':')
			i->turn_row = p[name + 1] - '0';
		if (slash < len) {
			i->has_heard = true;
			i->heard_digest[0] = (uint8_t)p[0];
			memcpy(i->heard_digest + 1, p + slash + 1,
			    len - slash - 1);
		}
		if (p[len - 1] == '^')
			i->anchor_row = 1;
		i->row = n + 1;
		p += len;
		p += strspn(p, " ");
	}
	return n;
}

struct row {
	const char *name;
	enum hf_history_mode mode;
	const char *stored, *client;
	enum hf_align_how how;
	uint32_t keep, first_new;
	const char *heard;  /* "s<c" pairs, c '-' for not at all */
	const char *insert; /* "c>s" pairs */
};

#define AUTO HF_HISTORY_AUTO
#define FULL HF_HISTORY_FULL
#define DELTA HF_HISTORY_DELTA

static const struct row rows[] = {
	{ "nothing stored: all is new", AUTO, "", "U1 A1 U2", HF_ALIGN_FRESH, 0,
	    0, "", "" },
	{ "whole stored list is a prefix: the tail is new", AUTO, "U1:1 A1:1",
	    "U1 A1 U2", HF_ALIGN_PREFIX, 2, 2, "", "" },
	{ "prefix with a tool result as tail", AUTO, "U1:1 C1:1 C2:1",
	    "U1 C1 C2 R1 R2", HF_ALIGN_PREFIX, 3, 3, "", "" },
	{ "nothing matches: all is new (thin client)", AUTO, "U1:1 A1:1", "U2",
	    HF_ALIGN_DELTA, 2, 0, "", "" },
	{ "thin client says again what was said first", AUTO,
	    "U1:1 A1:1 U2:2 A2:2", "U1", HF_ALIGN_DELTA, 4, 0, "", "" },
	{ "thin client says again what was said last", AUTO,
	    "U1:1 A1:1 U2:2 A2:2", "U2", HF_ALIGN_DELTA, 4, 0, "", "" },
	{ "thin client with a greeting of its own", AUTO, "U1:1 A1:1", "A9 U2",
	    HF_ALIGN_DELTA, 2, 0, "", "" },
	{ "client without messages", AUTO, "U1:1 A1:1", "", HF_ALIGN_DELTA, 2,
	    0, "", "" },
	{ "changed assistant text is what was heard", AUTO, "U1:1 A1:1",
	    "U1 A8 U2", HF_ALIGN_MERGED, 2, 2, "1<1", "" },
	{ "heard in the middle", AUTO, "U1:1 A1:1 U2:2 A2:2", "U1 A8 U2 A2 U3",
	    HF_ALIGN_MERGED, 4, 4, "1<1", "" },
	{ "missing assistant text was not heard", AUTO, "U1:1 A1:1 U2:2 A2:2",
	    "U1 U2 A2 U3", HF_ALIGN_MERGED, 4, 3, "1<-", "" },
	{ "missing last assistant text was not heard", AUTO, "U1:1 A1:1",
	    "U1 U2", HF_ALIGN_MERGED, 2, 1, "1<-", "" },
	{ "heard in part, and the client has that part", AUTO,
	    "U1:1 A1:1/7 U2:2 A2:2", "U1 A7 U2 A2 U3", HF_ALIGN_PREFIX, 4, 4,
	    "", "" },
	{ "heard in part, but the client has the whole", AUTO, "U1:1 A1:1/7",
	    "U1 A1 U2", HF_ALIGN_MERGED, 2, 2, "1<1", "" },
	{ "heard in part, the client has the whole, in the middle", AUTO,
	    "U1:1 A1:1/7 U2:2 A2:2", "U1 A1 U2 A2 U3", HF_ALIGN_MERGED, 4, 4,
	    "1<1", "" },
	{ "heard in part, and the client has another part", AUTO, "U1:1 A1:1/7",
	    "U1 A8 U2", HF_ALIGN_MERGED, 2, 2, "1<1", "" },
	{ "a greeting heard in part comes whole", AUTO, "A1:1/7 U1:1 A2:1",
	    "A1 U1 A2 U2", HF_ALIGN_MERGED, 3, 3, "0<0", "" },
	{ "changed user item is an edit: a new branch", AUTO,
	    "U1:1 A1:1 U2:2 A2:2", "U1 A1 U9", HF_ALIGN_BRANCH, 2, 2, "", "" },
	{ "edit of the first item (client says full)", FULL,
	    "U1:1 A1:1 U2:2 A2:2", "U9 A1 U2", HF_ALIGN_BRANCH, 0, 0, "", "" },
	{ "regeneration: ends with an input that was answered", AUTO,
	    "U1:1 A1:1 U2:2 A2:2", "U1 A1 U2", HF_ALIGN_BRANCH, 2, 2, "", "" },
	{ "regeneration of a turn with two inputs takes both again", AUTO,
	    "U1:1 A1:1 U2:2 U3:2 A2:2", "U1 A1 U2 U3", HF_ALIGN_BRANCH, 2, 2,
	    "", "" },
	{ "edit inside a turn begins where the turn begins", AUTO,
	    "U1:1 A1:1 U2:2 U3:2 A2:2", "U1 A1 U2 U9", HF_ALIGN_BRANCH, 2, 2,
	    "", "" },
	{ "goes on after an earlier answer", AUTO, "U1:1 A1:1 U2:2 A2:2",
	    "U1 A1", HF_ALIGN_BRANCH, 2, 2, "", "" },
	{ "greeting that nobody here made is inserted", AUTO, "U1:1 A1:1",
	    "A9 U1 A1 U2", HF_ALIGN_MERGED, 2, 3, "", "0>0" },
	{ "assistant item inserted in the middle", AUTO, "U1:1 A1:1 U2:2 A2:2",
	    "U1 A1 A9 U2 A2 U3", HF_ALIGN_MERGED, 4, 5, "", "2>2" },
	{ "inserted before an answer that matches", AUTO, "U1:1 A1:1",
	    "U1 A9 A1 U2", HF_ALIGN_MERGED, 2, 3, "", "1>1" },
	{ "assistant item of the client's own at the end", AUTO, "U1:1 A1:1",
	    "U1 A1 A9 U2", HF_ALIGN_PREFIX, 2, 2, "", "" },
	{ "a window of the newest items never shortens the store", AUTO,
	    "U1:1 A1:1 U2:2 A2:2", "A2 U3", HF_ALIGN_WINDOW, 4, 1, "", "" },
	{ "a wider window", AUTO, "U1:1 A1:1 U2:2 A2:2", "A1 U2 A2 U3",
	    HF_ALIGN_WINDOW, 4, 3, "", "" },
	{ "a window with the part that was heard", AUTO,
	    "U1:1 A1:1 U2:2 A2:2/7", "A7 U3", HF_ALIGN_WINDOW, 4, 1, "", "" },
	{ "a window with the whole of what was heard in part", AUTO,
	    "U1:1 A1:1/7 U2:2 A2:2/8", "A1 U2 A2 U3", HF_ALIGN_WINDOW, 4, 3,
	    "1<0 3<2", "" },
	{ "one repeated user item is no window", AUTO, "U1:1 A1:1 U2:2", "U2",
	    HF_ALIGN_DELTA, 3, 0, "", "" },
	{ "client that hides tool steps", AUTO, "U1:1 C1:1 R1:2 A1:2",
	    "U1 A1 U2", HF_ALIGN_PREFIX, 4, 2, "", "" },
	{ "changed tool result is an edit", AUTO, "U1:1 C1:1 R1:2 A1:2",
	    "U1 C1 R9", HF_ALIGN_BRANCH, 2, 2, "", "" },
	{ "delta: all is new, whatever matches", DELTA, "U1:1 A1:1", "U1 A1 U2",
	    HF_ALIGN_DELTA, 2, 0, "", "" },
	{ "full: the list is the truth", FULL, "U1:1 A1:1", "U9",
	    HF_ALIGN_BRANCH, 0, 0, "", "" },
	{ "same list, nothing new", AUTO, "U1:1 A1:1", "U1 A1", HF_ALIGN_PREFIX,
	    2, 2, "", "" },
	{ "branch below a later insertion copies the client's list", AUTO,
	    "A9:2^ U1:1 A1:1 U2:2 A2:2 U3:3 A3:3", "A9 U1 A1 U2 A2 U8",
	    HF_ALIGN_BRANCH, 0, 0, "", "" },
};

static void
check(const struct row *r, const struct hf_align *al)
{
	char heard[64] = "", insert[64] = "";

	for (uint32_t i = 0; i < al->n_heard; i++) {
		size_t at = strlen(heard);

		if (al->heard[i].c == HF_ALIGN_NONE)
			snprintf(heard + at, sizeof(heard) - at, "%s%u<-",
			    at > 0 ? " " : "", al->heard[i].s);
		else
			snprintf(heard + at, sizeof(heard) - at, "%s%u<%u",
			    at > 0 ? " " : "", al->heard[i].s, al->heard[i].c);
	}
	for (uint32_t i = 0; i < al->n_insert; i++) {
		size_t at = strlen(insert);

		snprintf(insert + at, sizeof(insert) - at, "%s%u>%u",
		    at > 0 ? " " : "", al->insert[i].c, al->insert[i].s);
	}
	assert_string_equal(hf_align_name(al->how), hf_align_name(r->how));
	assert_int_equal(al->keep, r->keep);
	assert_int_equal(al->first_new, r->first_new);
	assert_string_equal(heard, r->heard);
	assert_string_equal(insert, r->insert);
}

static void
test_row(void **state)
{
	const struct row *r = *state;
	struct hf_item stored[MAX], client[MAX];
	uint32_t n = parse(r->stored, stored), m = parse(r->client, client);
	struct hf_arena a;
	struct hf_align al;

	hf_arena_init(&a, 0);
	assert_int_equal(hf_align(r->mode, stored, n, client, m, &a, &al), 0);
	check(r, &al);
	hf_arena_free(&a);
}

/* What was heard earlier is what counts when the list comes again. */
static void
test_heard_counts(void **state)
{
	struct hf_item stored[MAX], client[MAX];
	uint32_t n = parse("U1:1 A1:1", stored), m = parse("U1 A8 U2", client);
	struct hf_arena a;
	struct hf_align al;

	(void)state;
	hf_arena_init(&a, 0);
	stored[1].has_heard = true;
	memcpy(stored[1].heard_digest, client[1].digest, HF_DIGEST_SIZE);
	assert_int_equal(hf_align(AUTO, stored, n, client, m, &a, &al), 0);
	assert_int_equal(al.how, HF_ALIGN_PREFIX);
	assert_int_equal(al.first_new, 2);
	hf_arena_free(&a);
}

/* Every pair of short lists: no crash, indexes in range, marks in order. */
static void
test_all_short_lists(void **state)
{
	static const char *const word[] = { "U1", "A1", "U2", "C1", "R1",
		"S1" };
	struct hf_item stored[MAX], client[MAX];
	struct hf_arena a;
	struct hf_align al;
	unsigned runs = 0;

	(void)state;
	for (unsigned code = 0; code < 6 * 6 * 6 * 6 * 6 * 6; code++) {
		char s[64] = "", c[64] = "";
		unsigned k = code;
		uint32_t n, m;

		for (unsigned i = 0; i < 6; i++, k /= 6) {
			char *to = i < 3 ? s : c;
			size_t at = strlen(to);

			snprintf(to + at, 64 - at, i < 3 ? "%s%s:%u" : "%s%s",
			    at > 0 ? " " : "", word[k % 6], i / 2 + 1);
		}
		n = parse(s, stored);
		m = parse(c, client);
		for (int mode = AUTO; mode <= DELTA; mode++) {
			hf_arena_init(&a, 0);
			assert_int_equal(hf_align((enum hf_history_mode)mode,
					     stored, n, client, m, &a, &al),
			    0);
			assert_true(al.keep <= n && al.first_new <= m);
			if (al.how != HF_ALIGN_BRANCH)
				assert_int_equal(al.keep, n);
			else if (al.keep > 0)
				assert_true(stored[al.keep - 1].turn_row !=
				    stored[al.keep].turn_row);
			for (uint32_t i = 0; i < al.n_heard; i++)
				assert_true(al.heard[i].s < al.keep &&
				    (i == 0 ||
					al.heard[i - 1].s < al.heard[i].s));
			for (uint32_t i = 0; i < al.n_insert; i++)
				assert_true(al.insert[i].s < n &&
				    al.insert[i].c < al.first_new);
			hf_arena_free(&a);
			runs++;
		}
	}
	assert_int_equal(runs, 3 * 46656);
}

/* A request that comes again with more words. */
static void
test_grew(void **state)
{
	static const struct {
		const char *before, *now;
		bool want;
	} row[] = {
		{ "I would", "I would like", true },
		{ "I would ", "I would like", true },
		{ "yes", "yes, please", true },
		{ "yes", "yes", false },
		{ "yes", "yesterday", false },
		{ "no 1", "no 12", false },
		{ "yes", "Yes, please", false },
		{ "yes, please", "yes", false },
		{ "I would like.", "I would like to", false },
		{ "", "yes", false },
		{ "\xe4\xbd\xa0", "\xe4\xbd\xa0\xe5\xa5\xbd", true },
		{ "a\nb", "a\nb c", true },
	};

	(void)state;
	for (size_t i = 0; i < hf_countof(row); i++)
		assert_int_equal(
		    hf_align_grew(hf_str(row[i].before), hf_str(row[i].now)),
		    row[i].want);
}

int
main(void)
{
	struct CMUnitTest t[hf_countof(rows) + 3];
	size_t n = 0;

	for (size_t i = 0; i < hf_countof(rows); i++)
		t[n++] = (struct CMUnitTest){ .name = rows[i].name,
			.test_func = test_row,
			.initial_state = (void *)(uintptr_t)&rows[i] };
	t[n++] = (struct CMUnitTest)cmocka_unit_test(test_heard_counts);
	t[n++] = (struct CMUnitTest)cmocka_unit_test(test_grew);
	t[n++] = (struct CMUnitTest)cmocka_unit_test(test_all_short_lists);
	return _cmocka_run_group_tests("align", t, n, NULL, NULL);
}
