/*
 * Streams in the benchmark: how a faithful provider goes on with an answer
 * that broke off, at each place of it; where streams are cut; how texts are
 * compared; what a strict client counts.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "bench/dialect.h"
#include "bench/format.h"
#include "bench/reader.h"
#include "bench/recital.h"
#include "bench/resume.h"
#include "bench/seam.h"
#include "bench/suite.h"

#define PREFILLS "m" HF_MODEL_PREFILLS
#define STATEMENT "My daughter is allergic to raw kiwi."
#define PROBE "What is my daughter allergic to?" HF_AT_LENGTH

/* --- going on ------------------------------------------------------------- */

static void
add(json_t *view, const char *role, const char *text, size_t size)
{
	json_array_append_new(
	    view, json_pack("{s:s,s:s%}", "role", role, "text", text, size));
}

static void
say(json_t *view, const char *role, const char *text)
{
	add(view, role, text, strlen(text));
}

static json_t *
asked(void)
{
	json_t *view = json_array();

	say(view, "user", STATEMENT);
	say(view, "assistant", "Noted.");
	say(view, "user", PROBE);
	return view;
}

/* What is said after the first 'size' bytes of 'full'. */
static void
go_on(struct hf_resumed *r, const char *full, size_t size, bool told,
    const char *model)
{
	json_t *view = asked();

	add(view, "assistant", full, size);
	if (told)
		say(view, "user",
		    HF_CONTINUE " It ended with: \xc2\xab...\xc2\xbb");
	hf_answer_resume(r, view, NULL, NULL, hf_str(model));
	json_decref(view);
}

static bool
is_boundary(const char *text, size_t at)
{
	return ((unsigned char)text[at] & 0xc0) != 0x80;
}

static void
goes_on_anywhere(void **state)
{
	char *full = hf_recital(HF_STR("raw kiwi"), 2);
	size_t size = strlen(full);
	unsigned again = 0, exact = 0;
	struct hf_resumed r;

	(void)state;
	for (size_t at = 1; at <= size; at++) {
		size_t end = at;

		if (!is_boundary(full, at))
			continue;
		go_on(&r, full, at, false, PREFILLS);
		assert_int_equal(r.asked, HF_ASKED_PREFILL);
		assert_string_equal(r.answer.text, full + at);
		hf_answer_free(&r.answer);

		/* An end of the whole, behind what was said or a few words
		 * before. */
		go_on(&r, full, at, true, "m");
		assert_int_equal(r.asked, HF_ASKED_INSTRUCTION);
		end = size - strlen(r.answer.text);
		assert_string_equal(r.answer.text, full + end);
		if (r.repeated > 0) {
			again++;
			assert_true(end < at && r.repeated >= 4);
			assert_true(end > 0 && full[end - 1] <= ' ');
		} else {
			exact++;
			assert_true(end >= at);
			for (size_t k = at; k < end; k++)
				assert_non_null(strchr(" \n", full[k]));
		}
		hf_answer_free(&r.answer);
	}
	assert_true(again > 50 && exact > 50);
	free(full);
}

static void
is_told_otherwise(void **state)
{
	char *full = hf_recital(HF_STR("raw kiwi"), 2);
	struct hf_resumed r;
	json_t *view;

	(void)state;
	/* Not its own words, or too many of them. */
	go_on(&r, "Something else", 14, true, "m");
	assert_string_equal(r.answer.text, HF_ANSWER_LOST);
	hf_answer_free(&r.answer);
	go_on(&r, "Something else", 14, false, PREFILLS);
	assert_string_equal(r.answer.text, HF_ANSWER_LOST);
	hf_answer_free(&r.answer);
	/* White space at the end may be lost on the way. */
	go_on(&r, full, 7, false, PREFILLS);
	assert_int_equal(full[7], ' ');
	assert_string_equal(r.answer.text, full + 7);
	hf_answer_free(&r.answer);
	/* A model that does not prefill answers as if it was not there. */
	go_on(&r, full, 30, false, "m");
	assert_int_equal(r.asked, HF_ASKED_AFRESH);
	assert_string_equal(r.answer.text, full);
	hf_answer_free(&r.answer);
	/* Asked for the first time. */
	view = asked();
	hf_answer_resume(&r, view, NULL, NULL, HF_STR(PREFILLS));
	assert_int_equal(r.asked, HF_ASKED_AFRESH);
	assert_string_equal(r.answer.text, full);
	hf_answer_free(&r.answer);
	json_decref(view);
	free(full);
}

static void
goes_on_to_a_call(void **state)
{
	json_t *tools = json_pack("[s]", "look_up"), *view = json_array();
	struct hf_resumed r;

	(void)state;
	say(view, "user", STATEMENT);
	say(view, "assistant", "Noted.");
	say(view, "user",
	    "!say One moment, I will look.\n"
	    "!fetch look_up What is my daughter allergic to?");
	say(view, "assistant", "One moment, I ");
	say(view, "user", HF_CONTINUE);
	hf_answer_resume(&r, view, tools, NULL, HF_STR("m"));
	assert_int_equal(json_array_size(r.answer.calls), 1);
	assert_non_null(
	    strstr(json_string_value(json_object_get(
		       json_array_get(r.answer.calls, 0), "arguments")),
		"raw kiwi"));
	assert_non_null(strstr(r.answer.text, "will look."));
	hf_answer_free(&r.answer);
	json_decref(view);
	json_decref(tools);
}

/* --- places --------------------------------------------------------------- */

static char text[] = "Two words, caf\xc3\xa9 and tea.";

static struct hf_cut
cut(const struct hf_bench_dialect *d, const struct hf_answer *a,
    enum hf_cut_phase phase, unsigned at, struct hf_stream *s)
{
	struct hf_bench_fault f = {
		.kind = HF_FAULT_CUT, .phase = phase, .at = at
	};
	struct hf_reply r = { .id_tail = "1", .model = "m", .answer = a };

	r.split = hf_stream_split(a, &f);
	hf_stream_init(s);
	d->stream(s, &r);
	return hf_stream_cut(s, &f, &r.split);
}

static void
cuts(void **state)
{
	static const struct hf_bench_dialect *const d[] = { &hf_bench_openai,
		&hf_bench_anthropic };
	static const struct {
		enum hf_cut_phase phase;
		unsigned at;
		bool head, finish;
		unsigned pieces;
		bool half;
		size_t text;
	} t[] = {
		{ HF_PHASE_HEADERS, 0, false, false, 0, false, 0 },
		{ HF_PHASE_ROLE, 0, true, false, 0, false, 0 },
		{ HF_PHASE_FIRST, 0, true, false, 1, false, 4 },
		{ HF_PHASE_WORD, 1, true, false, 1, false, 1 },
		{ HF_PHASE_WORD, 3, true, false, 2, false, 5 },
		{ HF_PHASE_WORD, 99, true, false, 5, false, 23 },
		{ HF_PHASE_EVENT, 0, true, false, 0, true, 0 },
		{ HF_PHASE_EVENT, 13, true, false, 2, true, 11 },
		{ HF_PHASE_EVENT, 99, true, false, 4, true, 21 },
		{ HF_PHASE_CHAR, 0, true, false, 2, true, 11 },
		{ HF_PHASE_CHAR, 99, true, false, 2, true, 11 },
		{ HF_PHASE_CONTENT, 0, true, false, 5, false, 25 },
		{ HF_PHASE_FINISH, 0, true, true, 5, false, 25 },
	};
	struct hf_answer a = { .text = text };

	(void)state;
	for (unsigned i = 0; i < hf_countof(t) * hf_countof(d); i++) {
		unsigned k = i / hf_countof(d);
		struct hf_stream s;
		struct hf_cut c =
		    cut(d[i % hf_countof(d)], &a, t[k].phase, t[k].at, &s);
		const char *event;

		assert_int_equal(c.head, t[k].head);
		assert_int_equal(c.finish, t[k].finish);
		assert_int_equal(c.pieces, t[k].pieces);
		assert_int_equal(c.bytes > 0, t[k].half);
		assert_int_equal(c.text, t[k].text);
		if (t[k].phase == HF_PHASE_CHAR) {
			event = s.piece[c.pieces].bytes.data;
			assert_int_equal(
			    (unsigned char)event[c.bytes - 1], 0xc3);
		}
		hf_stream_free(&s);
	}
}

static void
cuts_of_calls(void **state)
{
	static const struct hf_bench_dialect *const d[] = { &hf_bench_openai,
		&hf_bench_anthropic };
	json_t *calls = json_pack(
	    "[{s:s,s:s}]", "name", "f", "arguments", "{\"city\":\"Oslo\"}");
	struct hf_answer a = { .text = text, .calls = calls };

	(void)state;
	for (unsigned i = 0; i < hf_countof(d); i++) {
		struct hf_stream s;
		struct hf_cut c = cut(d[i], &a, HF_PHASE_ARGS, 3, &s);

		/* five words, the call's name, and three bytes of it */
		assert_int_equal(c.pieces, 7);
		assert_int_equal(c.text, 25);
		assert_true(s.piece[6].call && s.piece[6].end == 3);
		assert_non_null(strstr(s.piece[6].bytes.data, "{\\\"c\""));
		assert_int_equal(s.n_piece, 9);
		hf_stream_free(&s);
		c = cut(d[i], &a, HF_PHASE_ARGS, 99, &s);
		assert_int_equal(c.pieces, 7);
		hf_stream_free(&s);
	}
	json_decref(calls);
}

/* --- seams ---------------------------------------------------------------- */

static void
seams(void **state)
{
	static const char full[] = "one two three four\n\nfive six seven";
	static const struct {
		const char *got;
		struct hf_seam is;
	} t[] = {
		{ full, { 0 } },
		{ "one two three four five six seven", { .spaces = 1 } },
		{ "one two  three four\n\nfive six seven", { .spaces = 1 } },
		{ "one two three three four\n\nfive six seven",
		    { .duplicated = 1 } },
		{ "one two three two three four\n\nfive six seven",
		    { .duplicated = 2 } },
		{ "one two four\n\nfive six seven", { .missing = 1 } },
		{ "one two three four\n\nfive", { .missing = 2 } },
		{ "one twothree four\n\nfive six seven", { .glued = 1 } },
		{ "one twothreefour\n\nfive six seven", { .glued = 2 } },
		{ "one two th ree four\n\nfive six seven", { .split = 1 } },
		{ "one two xyz three four\n\nfive six seven", { .added = 1 } },
		{ "one tw three four\n\nfive six seven",
		    { .missing = 1, .added = 1 } },
		{ "twothree three one two four\n\nfive six seven",
		    { .duplicated = 1, .missing = 1, .added = 1 } },
		{ "", { .missing = 7, .other = true } },
		{ "something quite different",
		    { .missing = 7, .added = 3, .other = true } },
	};
	struct hf_seam s;

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		bool same = hf_seam_compare(&s, full, t[i].got);

		assert_int_equal(same, i == 0);
		if (s.duplicated != t[i].is.duplicated ||
		    s.missing != t[i].is.missing || s.glued != t[i].is.glued ||
		    s.split != t[i].is.split || s.added != t[i].is.added ||
		    s.spaces != t[i].is.spaces || s.other != t[i].is.other)
			fail_msg("\"%s\": %u twice, %u missing, %u glued, "
				 "%u split, %u added, %u spaces, other %d",
			    t[i].got, s.duplicated, s.missing, s.glued, s.split,
			    s.added, s.spaces, s.other);
	}
}

/* --- a strict client ------------------------------------------------------ */

#define CHUNK(delta, finish)                                             \
	"data: {\"id\":\"a\",\"model\":\"m\",\"choices\":[{\"index\":0," \
	"\"delta\":{" delta "},\"finish_reason\":" finish "}]}\n\n"
#define ROLE CHUNK("\"role\":\"assistant\",\"content\":\"\"", "null")
#define TEXT CHUNK("\"content\":\"hi\"", "null")
#define CALL(index, more) \
	CHUNK("\"tool_calls\":[{\"index\":" index "," more "}]", "null")
#define OPENS "\"id\":\"c1\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}"
#define ARGS(text) "\"function\":{\"arguments\":\"" text "\"}"
#define STOP CHUNK("", "\"stop\"")
#define CALLS CHUNK("", "\"tool_calls\"")
#define DONE "data: [DONE]\n\n"

static void
reads(void **state)
{
	static const struct {
		const char *bytes, *error; /* NULL: an answer */
		struct hf_marks marks;
		unsigned calls;
	} t[] = {
		{ ROLE TEXT STOP DONE, NULL, { 1, 1, 1, 1, 1 }, 0 },
		{ ROLE TEXT ROLE TEXT STOP DONE, NULL, { 2, 1, 1, 1, 1 }, 0 },
		{ ROLE TEXT STOP STOP DONE, NULL, { 1, 2, 1, 1, 1 }, 0 },
		{ ROLE TEXT STOP DONE DONE, NULL, { 1, 1, 2, 1, 1 }, 0 },
		{ ROLE "data: "
		       "{\"id\":\"b\",\"model\":\"n\",\"choices\":[]}\n\n" TEXT
			   STOP DONE,
		    NULL, { 1, 1, 1, 3, 3 }, 0 },
		{ ROLE CALL("0", OPENS) CALL("0", ARGS("{\\\"a\\\":"))
			CALL("0", ARGS("1}")) CALLS DONE,
		    NULL, { 1, 1, 1, 1, 1 }, 1 },
		{ ROLE CALL("0", OPENS) CALL("0", ARGS("{}")) CALL("1", OPENS)
			CALL("1", ARGS("{}")) CALLS DONE,
		    NULL, { 1, 1, 1, 1, 1 }, 2 },
		{ ROLE CALL("0", OPENS) CALL("0", ARGS("{")) CALLS DONE,
		    "a broken tool call: {", { 1, 1, 1, 1, 1 }, 1 },
		{ ROLE CALL("0", OPENS) CALL("0", ARGS("{}")) STOP DONE,
		    "calls do not go with the finish reason stop",
		    { 1, 1, 1, 1, 1 }, 1 },
		{ ROLE TEXT CALLS DONE,
		    "calls do not go with the finish reason tool_calls",
		    { 1, 1, 1, 1, 1 }, 0 },
		{ ROLE CALL("0", OPENS) CALL("0", "\"id\":\"c2\"," ARGS("{}"))
			CALLS DONE,
		    "a tool call changed its id", { 1, 1, 1, 1, 1 }, 1 },
		{ ROLE CALL("1", OPENS) CALLS DONE, "a tool call out of order",
		    { 1, 1, 1, 1, 1 }, 0 },
	};

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		struct hf_answer_reader r;
		char *got;

		hf_reader_init(&r, true);
		hf_reader_data(&r, hf_str(t[i].bytes));
		got = hf_reader_end(&r, 200);
		if (t[i].error == NULL)
			assert_non_null(got);
		else
			assert_string_equal(r.error, t[i].error);
		assert_memory_equal(&r.marks, &t[i].marks, sizeof(r.marks));
		assert_int_equal(json_array_size(r.calls), t[i].calls);
		free(got);
		hf_reader_free(&r);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_on_anywhere),
		cmocka_unit_test(is_told_otherwise),
		cmocka_unit_test(goes_on_to_a_call),
		cmocka_unit_test(cuts),
		cmocka_unit_test(cuts_of_calls),
		cmocka_unit_test(seams),
		cmocka_unit_test(reads),
	};

	return cmocka_run_group_tests_name("bench streams", tests, NULL, NULL);
}
