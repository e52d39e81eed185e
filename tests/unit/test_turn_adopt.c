/*
 * Turns taken over from a process that died, through the whole turn machine
 * (turn_rig.h): wherever it died, and however much of what it did in its last
 * moments is known, the client has the text once, with one beginning and one
 * end, and what is stored is what the client has.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/json/scan.h"
#include "gateway/turn/overlap.h"
#include "tests/unit/say.h"
#include "tests/unit/turn_rig.h"

static const char conf[] =
    "gateway { flush_ms = 5 }\n"
    "provider o { dialect = openai base_url = http://o prefill = plain }\n"
    "provider p { dialect = openai base_url = http://p prefill = plain }\n"
    "route m { targets = {\"o/x\", \"p/y\"} max_retries = 0 "
    "reported_model = target }\n"
    "route off { targets = {\"o/x\"} max_retries = 0 }\n"
    "route beats { targets = {\"o/x\"} heartbeat_ms = 100 }\n";

#define TEXT "Hello Zelmira, order 42 isn't late: it leaves today at noon."
#define BODY(rest)                                                       \
	"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":" \
	"\"hi\"}]" rest "}"
#define STREAM BODY(",\"stream\":true")

/* What the providers do; the first call is the dead worker's. */
struct world {
	struct rig old, heir;
	size_t cut;    /* of the first answer, which hangs then; 0: all */
	size_t second; /* if not 0: it breaks off, and the second one hangs
			* here */
	const char *first_wire; /* or this one */
	const char *next_wire;
	unsigned asked;
	char urls[8][64];
	struct hf_sink was, now;
};

static void
wire_of(struct hf_str text, struct hf_buf *out)
{
	const struct say s = { HF_DIALECT_OPENAI, "\n", false };

	say_stream(&s, text, out);
}

/* How much of TEXT the request says that it has. */
static size_t
has_already(struct hf_str body)
{
	struct hf_json v, list, m;
	struct hf_buf said;
	size_t pos = 0, n;

	hf_buf_init(&said, HF_BUF_NOCAP);
	assert_int_equal(hf_json_check(body, &v, NULL, NULL), 0);
	list = hf_json_get(v, "messages");
	while (hf_json_next_element(list, &pos, &m))
		if (hf_json_string_is(hf_json_get(m, "role"), "assistant"))
			hf_json_decode(hf_json_get(m, "content"), &said);
	n = said.size;
	assert_true(n < sizeof(TEXT));
	assert_memory_equal(said.size > 0 ? said.data : "", TEXT, n);
	hf_buf_free(&said);
	return n;
}

static void
provide(
    void *arg, struct hf_str url, struct hf_str body, struct rig_answer *out)
{
	struct world *w = arg;
	unsigned n = w->asked++;
	const char *wire = n == 0 ? w->first_wire : w->next_wire;
	size_t from = has_already(body);

	assert_true(n < hf_countof(w->urls));
	snprintf(w->urls[n], sizeof(w->urls[n]), "%.*s", HF_STR_ARG(url));
	if (wire != NULL)
		hf_buf_puts(&out->bytes, wire);
	else
		wire_of((struct hf_str){ &TEXT[from], strlen(TEXT) - from },
		    &out->bytes);
	if (n > (w->second > 0) || w->cut == 0)
		return;
	if (n == 1)
		w->cut = w->second;
	if (w->cut < out->bytes.size)
		out->bytes.size = w->cut;
	out->cut = n == 0 && w->second > 0;
	out->hang = !out->cut;
}

static void
open_world(struct world *w, bool stored)
{
	memset(w, 0, sizeof(*w));
	rig_open(&w->old, conf, stored, provide, w);
	rig_heir(&w->heir, &w->old, 2);
}

static void
close_world(struct world *w)
{
	rig_close(&w->heir);
	rig_lose(&w->was);
	rig_bury(&w->old);
	rig_forget(&w->was);
	rig_forget(&w->now);
	fx_close(w->old.fx);
	hf_conf_free(w->old.conf);
}

static int64_t
count(struct world *w, const char *sql)
{
	return fx_sql(w->old.fx, sql);
}

/* Let the first process serve until it hangs, with all or only a part of the
 * text on disk. */
static void
serve_until_it_hangs(struct world *w, bool flushed)
{
	while (w->asked == 0)
		rig_step(&w->old);
	rig_step(&w->old);
	if (!flushed || !w->old.stored || w->was.said.size == 0)
		return;
	while (hf_store_pending(w->old.env.store) == 0)
		rig_step(&w->old);
	fx_drain(w->old.fx, 1);
}

/* The bytes that the client got of both. */
static void
all_heard(struct world *w, unsigned at, struct rig_heard *h)
{
	struct hf_buf all;

	hf_buf_init(&all, HF_BUF_NOCAP);
	hf_buf_put(&all, w->was.got.data, w->was.mark[at].got);
	hf_buf_putstr(&all, hf_buf_str(&w->now.got));
	rig_hear(hf_buf_str(&all), h);
	hf_buf_free(&all);
}

static void
check_whole(struct world *w, unsigned at, const char *what)
{
	struct rig_heard h;
	struct hf_buf stored;
	char id[64];

	all_heard(w, at, &h);
	if (h.n_error > 0 || !hf_str_is(hf_buf_str(&h.text), TEXT))
		fail_msg("%s: '%.*s' error=%u", what,
		    HF_STR_ARG(hf_buf_str(&h.text)), h.n_error);
	assert_int_equal(h.role, 1);
	assert_int_equal(h.finish, 1);
	assert_int_equal(h.done, 1);
	assert_int_equal(w->now.status, 200);
	snprintf(id, sizeof(id), "chatcmpl-%s", w->was.turn.s + 5);
	assert_string_equal(h.id, id);
	rig_unhear(&h);
	if (!w->old.stored)
		return;
	hf_buf_init(&stored, HF_BUF_NOCAP);
	rig_stored(&w->heir, "s", &stored);
	assert_true(hf_str_is(hf_buf_str(&stored), TEXT));
	hf_buf_free(&stored);
	assert_int_equal(count(w, "SELECT count(*) FROM turn"), 1);
	assert_int_equal(count(w, "SELECT count(*) FROM part"), 0);
	assert_int_equal(
	    count(w, "SELECT count(*) FROM attempt WHERE ended_us = 0"), 0);
	assert_int_equal(
	    count(w, "SELECT count(*) FROM session WHERE owner_inc <> 0"), 0);
}

/* --- streams that broke off anywhere ---------------------------------------
 */

/* One death: behind 'cut' bytes of the provider's stream, known up to the mark
 * 'at' (from the end). */
static bool
die_and_go_on(size_t cut, unsigned back, bool stored, bool flushed)
{
	static struct world w;
	unsigned at;
	char what[96];

	open_world(&w, stored);
	w.cut = cut;
	rig_ask(&w.old, &w.was, stored ? "s" : NULL, HF_STR(STREAM));
	serve_until_it_hangs(&w, flushed);
	if (back >= w.was.n_mark) {
		w.now.ended = true;
		close_world(&w);
		return false;
	}
	at = w.was.n_mark - 1 - back;
	rig_kill(&w.old);
	rig_resume(&w.heir, &w.now, &w.was, at, HF_HOLD_TEXT, false);
	rig_run(&w.heir);
	snprintf(what, sizeof(what), "cut %zu back %u stored %d flushed %d",
	    cut, back, stored, flushed);
	check_whole(&w, at, what);
	assert_int_equal(w.asked, 2);
	/* The one that was answering goes on, not the next one. */
	assert_string_equal(w.urls[1], w.urls[0]);
	close_world(&w);
	return true;
}

static size_t
wire_size(void)
{
	struct hf_buf all;
	size_t n;

	hf_buf_init(&all, HF_BUF_NOCAP);
	wire_of(HF_STR(TEXT), &all);
	n = all.size;
	hf_buf_free(&all);
	return n;
}

static void
streams_go_on(void **state)
{
	size_t size = wire_size(), step = size / 23;
	unsigned runs = 0;

	(void)state;
	for (size_t cut = 1; cut < size - 20; cut += step)
		for (unsigned back = 0; back < 6; back += 1 + back) {
			runs += die_and_go_on(cut, back, true, false);
			runs += die_and_go_on(cut, back, true, true);
			/* Without a disk only the last mark is exact; with
			 * others it is as if that were all there was. */
			runs += die_and_go_on(cut, back, false, false);
		}
	print_message("%u deaths\n", runs);
	assert_true(runs > 100);
}

/* The stream broke off before, and the next target was going on with it: that
 * one goes on, and all chunks name the one that began. */
static void
second_target_goes_on(void **state)
{
	static struct world w;
	struct rig_heard h;
	unsigned at;

	(void)state;
	open_world(&w, true);
	w.cut = wire_size() / 2;
	w.second = wire_size() / 3;
	rig_ask(&w.old, &w.was, "s", HF_STR(STREAM));
	while (w.asked < 2)
		rig_step(&w.old);
	rig_step(&w.old);
	rig_kill(&w.old);
	at = w.was.n_mark - 1;
	rig_resume(&w.heir, &w.now, &w.was, at, HF_HOLD_TEXT, false);
	rig_run(&w.heir);
	check_whole(&w, at, "second");
	assert_int_equal(w.asked, 3);
	assert_string_not_equal(w.urls[1], w.urls[0]);
	assert_string_equal(w.urls[2], w.urls[1]);
	all_heard(&w, at, &h);
	assert_string_equal(h.model, "x");
	rig_unhear(&h);
	assert_non_null(strstr(w.now.got.data, ": holdfast target=p/y"));
	close_world(&w);
}

/* --- what is known is not enough -------------------------------------------
 */

static void
check_failed(struct world *w, unsigned at, const char *code)
{
	struct rig_heard h;

	all_heard(w, at, &h);
	assert_int_equal(h.n_error, 1);
	assert_true(hf_str_is(hf_buf_str(&h.error), code));
	assert_int_equal(h.finish + h.done, 0);
	rig_unhear(&h);
	assert_int_equal(
	    count(w, "SELECT count(*) FROM session WHERE owner_inc <> 0"), 0);
	assert_int_equal(
	    count(w, "SELECT count(*) FROM turn WHERE state <= 3"), 0);
}

static void
gaps_fail_loudly(void **state)
{
	static struct world w;

	(void)state;
	/* Only the last 4 bytes are known, and nothing is on disk. */
	for (unsigned stored = 0; stored < 2; stored++) {
		open_world(&w, stored != 0);
		w.cut = wire_size() / 2;
		rig_ask(&w.old, &w.was, stored ? "s" : NULL, HF_STR(STREAM));
		serve_until_it_hangs(&w, false);
		assert_int_equal(count(&w, "SELECT count(*) FROM part"), 0);
		rig_kill(&w.old);
		rig_resume(&w.heir, &w.now, &w.was, w.was.n_mark - 1, 4, false);
		rig_run(&w.heir);
		check_failed(&w, w.was.n_mark - 1, "handover_failed");
		assert_int_equal(w.asked, 1);
		close_world(&w);
	}
	/* What is on disk is something else. */
	open_world(&w, true);
	w.cut = wire_size() / 2;
	rig_ask(&w.old, &w.was, "s", HF_STR(STREAM));
	serve_until_it_hangs(&w, true);
	assert_true(count(&w, "SELECT count(*) FROM part") > 0);
	rig_kill(&w.old);
	w.was.said.data[2] ^= 1;
	rig_resume(
	    &w.heir, &w.now, &w.was, w.was.n_mark - 1, HF_HOLD_TEXT, false);
	rig_run(&w.heir);
	check_failed(&w, w.was.n_mark - 1, "handover_failed");
	close_world(&w);
}

static void
overlaps(void **state)
{
	static const struct {
		const char *stored, *last;
		uint64_t told;
		const char *all; /* NULL: refused */
	} row[] = {
		{ "", "", 0, "" },
		{ "abc", "", 0, "abc" },
		{ "", "abc", 3, "abc" },
		{ "abc", "abc", 3, "abc" },
		{ "abcd", "abc", 3, "abcd" },
		{ "ab", "abcd", 4, "abcd" },
		{ "ab", "cd", 4, "abcd" },
		{ "abc", "bcde", 5, "abcde" },
		{ "abcdef", "bc", 3, "abcdef" },
		{ "a", "cd", 4, NULL },
		{ "", "bc", 3, NULL },
		{ "abx", "bcde", 5, NULL },
		{ "abcdef", "bx", 3, NULL },
		{ "abc", "abcd", 3, NULL },
		{ "abc", "", 4, NULL },
		{ "abc", "", 3, "abc" },
	};

	(void)state;
	for (size_t i = 0; i < hf_countof(row); i++) {
		struct hf_error e;
		struct hf_buf b;
		int rc;

		hf_buf_init(&b, HF_BUF_NOCAP);
		rc = hf_overlap(hf_str(row[i].stored), row[i].told,
		    hf_str(row[i].last), &b, &e);
		assert_int_equal(rc, row[i].all == NULL ? HF_ECORRUPT : 0);
		if (rc == 0)
			assert_true(hf_str_is(hf_buf_str(&b), row[i].all));
		hf_buf_free(&b);
	}
}

/* --- at the other points of a turn's life -----------------------------------
 */

static void
begin_and_freeze(struct world *w, const char *body)
{
	rig_ask(&w->old, &w->was, "s", hf_str(body));
	rig_freeze(&w->old);
	while (count(w, "SELECT count(*) FROM turn") == 0)
		rig_step(&w->old);
	rig_kill(&w->old);
}

/* T1 is on disk, and nobody was asked. */
static void
begun_and_not_called(void **state)
{
	static struct world w;

	(void)state;
	open_world(&w, true);
	begin_and_freeze(&w, STREAM);
	rig_resume(&w.heir, &w.now, &w.was, 0, 0, false);
	rig_run(&w.heir);
	check_whole(&w, 0, "t1");
	assert_int_equal(w.asked, 1);
	assert_int_equal(
	    count(&w, "SELECT count(*) FROM attempt WHERE class = 'lost'"), 1);
	close_world(&w);
}

/* The process died before T1: there is only an id. */
static void
not_begun(void **state)
{
	static struct world w;

	(void)state;
	open_world(&w, true);
	w.was = (struct hf_sink){ .rig = &w.old,
		.session = "s",
		.rq.body = HF_STR(STREAM),
		.n_mark = 1,
		.ended = true };
	hf_id_make(&w.was.turn, "turn_");
	rig_kill(&w.old);
	rig_resume(&w.heir, &w.now, &w.was, 0, 0, false);
	rig_run(&w.heir);
	check_whole(&w, 0, "not begun");
	assert_string_equal(w.now.turn.s, w.was.turn.s);
	close_world(&w);
}

/* The response has begun, with a comment only. */
static void
begun_by_a_heartbeat(void **state)
{
	static struct world w;

	(void)state;
	open_world(&w, true);
	w.cut = 1;
	rig_ask(&w.old, &w.was, "s",
	    HF_STR("{\"model\":\"beats\",\"stream\":true,\"messages\":"
		   "[{\"role\":\"user\",\"content\":\"hi\"}]}"));
	while (w.was.got.size == 0)
		rig_step(&w.old);
	rig_kill(&w.old);
	w.was.mark[w.was.n_mark++] =
	    (struct rig_mark){ .got = w.was.got.size, .started = true };
	rig_resume(&w.heir, &w.now, &w.was, w.was.n_mark - 1, 0, false);
	rig_run(&w.heir);
	check_whole(&w, w.was.n_mark - 1, "beat");
	close_world(&w);

	/* And nobody answers then. */
	open_world(&w, true);
	w.cut = 1;
	w.next_wire = "data: {\"error\":{\"message\":\"no\"}}\n\n";
	rig_ask(&w.old, &w.was, "s",
	    HF_STR("{\"model\":\"beats\",\"stream\":true,\"messages\":"
		   "[{\"role\":\"user\",\"content\":\"hi\"}]}"));
	while (w.was.got.size == 0)
		rig_step(&w.old);
	rig_kill(&w.old);
	w.was.mark[w.was.n_mark++] =
	    (struct rig_mark){ .got = w.was.got.size, .started = true };
	rig_resume(&w.heir, &w.now, &w.was, w.was.n_mark - 1, 0, false);
	rig_run(&w.heir);
	check_failed(&w, w.was.n_mark - 1, "no_target");
	close_world(&w);
}

/* T2 is on disk and was not told: from each mark on. */
static void
answered_and_not_told(void **state)
{
	static struct world w;

	(void)state;
	for (unsigned back = 0;; back += 3) {
		unsigned at;

		open_world(&w, true);
		rig_ask(&w.old, &w.was, "s", HF_STR(STREAM));
		while (w.was.said.size < strlen(TEXT))
			rig_step(&w.old);
		rig_freeze(&w.old);
		while (
		    count(&w, "SELECT count(*) FROM turn WHERE state = 3") == 0)
			rig_step(&w.old);
		assert_false(w.was.ended);
		rig_kill(&w.old);
		if (back >= w.was.n_mark) {
			w.now.ended = true;
			close_world(&w);
			break;
		}
		at = w.was.n_mark - 1 - back;
		rig_resume(&w.heir, &w.now, &w.was, at, HF_HOLD_TEXT, false);
		rig_run(&w.heir);
		check_whole(&w, at, "answered");
		assert_int_equal(w.asked, 1);
		close_world(&w);
	}
}

#define CALLS                                                         \
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":" \
	"[{\"index\":0,\"id\":\"c1\",\"type\":\"function\","          \
	"\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},"      \
	"\"finish_reason\":null}]}\n\n"                               \
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":" \
	"[{\"index\":1,\"id\":\"c2\",\"type\":\"function\","          \
	"\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},"      \
	"\"finish_reason\":null}]}\n\n"
#define CALLS_END                                        \
	"data: {\"choices\":[{\"index\":0,\"delta\":{}," \
	"\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"
#define TOOLS                                                      \
	BODY(",\"stream\":true,\"tools\":[{\"type\":\"function\"," \
	     "\"function\":{\"name\":\"f\"}}]")

/* Whole calls that were not told are asked again. */
static void
calls_are_told_once(void **state)
{
	static struct world w;
	struct rig_heard h;

	(void)state;
	open_world(&w, true);
	w.first_wire = CALLS;
	w.cut = strlen(CALLS);
	w.next_wire = CALLS CALLS_END;
	rig_ask(&w.old, &w.was, "s", HF_STR(TOOLS));
	serve_until_it_hangs(&w, false);
	assert_int_equal(w.was.n_mark, 1);
	rig_kill(&w.old);
	rig_resume(&w.heir, &w.now, &w.was, 0, 0, false);
	rig_run(&w.heir);
	all_heard(&w, 0, &h);
	assert_int_equal(h.calls, 2);
	assert_int_equal(h.done, 1);
	rig_unhear(&h);
	assert_int_equal(
	    count(&w, "SELECT count(*) FROM item WHERE output"), 2);
	close_world(&w);
}

static void
plain_answers_begin_again(void **state)
{
	static struct world w;
	struct hf_buf stored;

	(void)state;
	open_world(&w, true);
	w.cut = wire_size() / 2;
	rig_ask(&w.old, &w.was, "s", HF_STR(BODY("")));
	serve_until_it_hangs(&w, true);
	assert_int_equal(w.was.n_mark, 1);
	rig_kill(&w.old);
	rig_resume(&w.heir, &w.now, &w.was, 0, 0, false);
	rig_run(&w.heir);
	assert_int_equal(w.now.status, 200);
	assert_non_null(strstr(w.now.got.data, TEXT));
	hf_buf_init(&stored, HF_BUF_NOCAP);
	rig_stored(&w.heir, "s", &stored);
	assert_true(hf_str_is(hf_buf_str(&stored), TEXT));
	hf_buf_free(&stored);
	assert_int_equal(count(&w, "SELECT count(*) FROM turn"), 1);
	close_world(&w);
}

/* The same body, whoever makes it: a client may have a part of it. */
static void
plain_answers_are_the_same(void **state)
{
	static struct world w;

	(void)state;
	open_world(&w, true);
	rig_ask(&w.old, &w.was, "s", HF_STR(BODY("")));
	rig_run(&w.old);
	rig_kill(&w.old);
	rig_resume(&w.heir, &w.now, &w.was, 0, 0, false);
	rig_run(&w.heir);
	assert_true(hf_str_eq(hf_buf_str(&w.was.got), hf_buf_str(&w.now.got)));
	assert_int_equal(w.asked, 1);
	close_world(&w);
}

/* Two turns of one session die with their process, one waits for the other;
 * they are taken over in the other order. */
static void
one_waits_for_the_other(bool same)
{
	static struct world w;
	struct hf_sink was2, now2;
	struct rig_heard h;

	open_world(&w, true);
	w.cut = wire_size() / 2;
	rig_ask(&w.old, &w.was, "s", HF_STR(STREAM));
	serve_until_it_hangs(&w, true);
	rig_ask(&w.old, &was2, "s",
	    same ? HF_STR(STREAM) : HF_STR(BODY(",\"stream\":true,\"n\":1")));
	while (count(&w, "SELECT count(*) FROM turn WHERE state = 1") == 0)
		rig_step(&w.old);
	fx_hold(w.old.fx, 1, &w.was.turn);
	fx_hold(w.old.fx, 1, &was2.turn);
	rig_kill(&w.old);
	rig_resume(&w.heir, &now2, &was2, 0, 0, false);
	for (unsigned i = 0; i < 20; i++)
		rig_step(&w.heir);
	assert_false(now2.started);
	assert_int_equal(w.asked, 1);
	rig_resume(
	    &w.heir, &w.now, &w.was, w.was.n_mark - 1, HF_HOLD_TEXT, false);
	while (!w.now.ended)
		rig_step(&w.heir);
	w.next_wire = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":"
		      "\"two\"},\"finish_reason\":null}]}\n\n"
		      "data: {\"choices\":[{\"index\":0,\"delta\":{},"
		      "\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
	while (!now2.ended) {
		hf_turn_grants(&w.heir.env); /* as its eventfd would */
		rig_step(&w.heir);
	}
	rig_run(&w.heir);
	rig_hear(hf_buf_str(&now2.got), &h);
	assert_true(hf_str_is(hf_buf_str(&h.text), same ? TEXT : "two"));
	assert_int_equal(h.done, 1);
	rig_unhear(&h);
	assert_int_equal(w.asked, same ? 2 : 3);
	assert_int_equal(count(&w, "SELECT count(*) FROM turn WHERE state = 3"),
	    same ? 1 : 2);
	rig_lose(&was2);
	close_world(&w);
	rig_forget(&was2);
	rig_forget(&now2);
}

static void
waiting_turns_wait_on(void **state)
{
	(void)state;
	one_waits_for_the_other(false);
}

/* The same request twice is one turn, whoever dies. */
static void
joined_turns_are_told_the_same(void **state)
{
	(void)state;
	one_waits_for_the_other(true);
}

/* --- deadlines go on, too ---------------------------------------------------
 */

/* A call begins anew with each death, so it would never be late: what it has
 * not said is counted over all of them. */
static void
silent_one(bool stored, bool told, unsigned silent_s, bool next)
{
	static struct world w;
	unsigned at, called_s = told ? silent_s + 60 : silent_s;
	char what[96];

	open_world(&w, stored);
	w.cut = told ? wire_size() / 2 : 1;
	rig_ask(&w.old, &w.was, stored ? "s" : NULL, HF_STR(STREAM));
	serve_until_it_hangs(&w, true);
	rig_kill(&w.old);
	at = w.was.n_mark - 1;
	if (told)
		w.was.said_us -= (int64_t)silent_s * 1000000;
	w.was.rq.received_us -= (int64_t)called_s * 1000000;
	if (stored) {
		snprintf(what, sizeof(what),
		    "UPDATE attempt SET started_us = started_us - %u000000",
		    called_s);
		fx_sql(w.old.fx, what);
	}
	rig_resume(&w.heir, &w.now, &w.was, at, HF_HOLD_TEXT, false);
	rig_run(&w.heir);
	snprintf(what, sizeof(what), "stored %d told %d silent %u", stored,
	    told, silent_s);
	check_whole(&w, at, what);
	assert_int_equal(w.asked, 2);
	assert_int_equal(strcmp(w.urls[1], w.urls[0]) != 0, next);
	close_world(&w);
}

static void
the_silent_are_left(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 4; how++) {
		silent_one(how & 1, how & 2, 10, false);
		silent_one(how & 1, how & 2, 20, true);
	}
}

/* Two targets in turn: calls of the one do not count for the other. */
static void
the_next_one_has_its_own_time(void **state)
{
	static struct world w;
	unsigned at;

	(void)state;
	open_world(&w, true);
	w.cut = wire_size() / 2;
	w.second = wire_size() / 3;
	rig_ask(&w.old, &w.was, "s", HF_STR(STREAM));
	while (w.asked < 2)
		rig_step(&w.old);
	rig_step(&w.old);
	rig_kill(&w.old);
	at = w.was.n_mark - 1;
	/* The first one's lost calls are old, and so is the text. */
	fx_sql(w.old.fx,
	    "UPDATE attempt SET started_us = started_us - 60000000,"
	    " class = 'lost' WHERE n = 1");
	w.was.said_us -= 50000000;
	rig_resume(&w.heir, &w.now, &w.was, at, HF_HOLD_TEXT, false);
	rig_run(&w.heir);
	check_whole(&w, at, "its own time");
	assert_string_not_equal(w.urls[1], w.urls[0]);
	assert_string_equal(w.urls[2], w.urls[1]);
	close_world(&w);
}

/* The turn's deadline counts from when it was received, by whoever. */
static void
one_deadline_for_all(void **state)
{
	static struct world w;

	(void)state;
	for (unsigned told = 0; told < 2; told++) {
		open_world(&w, true);
		w.cut = told ? wire_size() / 2 : 1;
		rig_ask(&w.old, &w.was, "s", HF_STR(STREAM));
		serve_until_it_hangs(&w, true);
		rig_kill(&w.old);
		w.was.rq.received_us -= 121000000;
		rig_resume(&w.heir, &w.now, &w.was, w.was.n_mark - 1,
		    HF_HOLD_TEXT, false);
		rig_run(&w.heir);
		if (told)
			check_failed(&w, w.was.n_mark - 1, "deadline_exceeded");
		else
			assert_int_equal(w.now.status, 504);
		close_world(&w);
	}
}

/* --- ends ------------------------------------------------------------------
 */

static void
poisoned_turns_end(void **state)
{
	static struct world w;

	(void)state;
	for (unsigned told = 0; told < 2; told++) {
		open_world(&w, true);
		w.cut = told ? wire_size() / 2 : 1;
		rig_ask(&w.old, &w.was, "s", HF_STR(STREAM));
		serve_until_it_hangs(&w, true);
		rig_kill(&w.old);
		rig_resume(&w.heir, &w.now, &w.was, w.was.n_mark - 1,
		    HF_HOLD_TEXT, true);
		rig_run(&w.heir);
		assert_int_equal(w.asked, 1);
		if (told) {
			check_failed(&w, w.was.n_mark - 1, "turn_crashed");
			assert_int_equal(count(&w, "SELECT state FROM turn"),
			    HF_TURN_INCOMPLETE);
		} else {
			assert_int_equal(w.now.status, 500);
			assert_non_null(strstr(w.now.got.data, "turn_crashed"));
			assert_int_equal(count(&w, "SELECT state FROM turn"),
			    HF_TURN_FAILED);
			/* No later turn hears of it. */
			assert_int_equal(
			    count(&w, "SELECT head FROM session"), 0);
		}
		close_world(&w);
	}
}

/* It failed on disk, and its client was not told. */
static void
failures_are_told(void **state)
{
	static struct world w;

	(void)state;
	open_world(&w, true);
	w.first_wire = "data: {\"error\":{\"message\":\"no\"}}\n\n";
	w.next_wire = w.first_wire;
	rig_ask(&w.old, &w.was, "s", HF_STR(STREAM));
	while (w.asked < 2)
		rig_step(&w.old);
	rig_freeze(&w.old);
	while (count(&w, "SELECT count(*) FROM turn WHERE state = 5") == 0)
		rig_step(&w.old);
	assert_false(w.was.ended);
	rig_kill(&w.old);
	rig_resume(&w.heir, &w.now, &w.was, 0, 0, false);
	rig_run(&w.heir);
	assert_int_equal(w.now.status, 503);
	assert_non_null(strstr(w.now.got.data, "no_target"));
	assert_int_equal(w.asked, 2);
	close_world(&w);
}

/* Half a JSON document cannot be joined. */
static void
json_is_not_joined(void **state)
{
	static struct world w;

	(void)state;
	open_world(&w, true);
	w.cut = wire_size() / 2;
	rig_ask(&w.old, &w.was, "s",
	    HF_STR(BODY(",\"stream\":true,\"response_format\":{\"type\":"
			"\"json_object\"}")));
	serve_until_it_hangs(&w, true);
	rig_kill(&w.old);
	rig_resume(
	    &w.heir, &w.now, &w.was, w.was.n_mark - 1, HF_HOLD_TEXT, false);
	rig_run(&w.heir);
	check_failed(&w, w.was.n_mark - 1, "stream_interrupted");
	assert_int_equal(w.asked, 1);
	close_world(&w);
}

/* The client left while nobody served it; what it had is kept. */
static void
client_gone_meanwhile(void **state)
{
	static struct world w;

	(void)state;
	open_world(&w, true);
	w.cut = wire_size() / 2;
	rig_ask(&w.old, &w.was, "s", HF_STR(STREAM));
	serve_until_it_hangs(&w, false);
	rig_kill(&w.old);
	rig_resume(
	    &w.heir, &w.now, &w.was, w.was.n_mark - 1, HF_HOLD_TEXT, false);
	rig_lose(&w.now);
	rig_run(&w.heir);
	assert_int_equal(w.asked, 1);
	assert_int_equal(count(&w, "SELECT state FROM turn"), HF_TURN_CANCELED);
	assert_int_equal(
	    count(&w, "SELECT count(*) FROM item WHERE output"), 1);
	assert_int_equal(
	    count(&w, "SELECT count(*) FROM session WHERE owner_inc <> 0"), 0);
	close_world(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overlaps),
		cmocka_unit_test(streams_go_on),
		cmocka_unit_test(second_target_goes_on),
		cmocka_unit_test(gaps_fail_loudly),
		cmocka_unit_test(begun_and_not_called),
		cmocka_unit_test(not_begun),
		cmocka_unit_test(answered_and_not_told),
		cmocka_unit_test(calls_are_told_once),
		cmocka_unit_test(plain_answers_begin_again),
		cmocka_unit_test(plain_answers_are_the_same),
		cmocka_unit_test(waiting_turns_wait_on),
		cmocka_unit_test(joined_turns_are_told_the_same),
		cmocka_unit_test(begun_by_a_heartbeat),
		cmocka_unit_test(the_silent_are_left),
		cmocka_unit_test(the_next_one_has_its_own_time),
		cmocka_unit_test(one_deadline_for_all),
		cmocka_unit_test(poisoned_turns_end),
		cmocka_unit_test(failures_are_told),
		cmocka_unit_test(json_is_not_joined),
		cmocka_unit_test(client_gone_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
