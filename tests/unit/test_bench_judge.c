/*
 * Who tests the test: the judge must see each way in which a gateway can get
 * a conversation wrong.  A log of right payloads is made, then broken in one
 * place at a time.  Also the strict reading of answers, and a whole play
 * against a provider in a child process.
 */
#include <config.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "bench/answer.h"
#include "bench/client.h"
#include "bench/judge.h"
#include "bench/providers.h"
#include "bench/report.h"

#define BASELINE 0
#define HOLDFAST 1

struct world {
	struct hf_suite *suite;
	struct hf_play_conf conf;
	struct hf_plays plays;
	struct hf_counts n;
	json_t *log; /* array of entries */
	json_t *examples;
};

static json_t *
message(const char *role, const char *text)
{
	return json_pack("{s:s,s:s}", "role", role, "text", text);
}

/* What provider 'fallback' or primary should be told on this turn. */
static json_t *
right_view(const struct hf_play *p, unsigned turn, bool last_only)
{
	json_t *v = json_array();

	if (!last_only)
		json_array_append_new(v, message("system", p->system_text));
	for (unsigned i = 0; i < turn && !last_only; i++) {
		json_array_append_new(v, message("user", p->c->user[i]));
		json_array_append_new(v, message("assistant", p->answer[i]));
	}
	json_array_append_new(v, message("user", p->c->user[turn]));
	return v;
}

static json_t *
entry(const struct hf_play *p, const char *provider, const char *fault,
    json_t *view)
{
	return json_pack("{s:s,s:s,s:s,s:o}", "provider", provider, "fault",
	    fault, "user", p->user, "messages", view);
}

static void
make_play(struct world *w, struct hf_play *p, unsigned system, unsigned conv)
{
	unsigned probe;

	memset(p, 0, sizeof(*p));
	p->system = system;
	p->conv = conv;
	p->c = &w->suite->conv[conv];
	hf_suite_canary(w->suite, system, 0, conv, p->canary);
	p->system_text = hf_suite_system(p->c, p->canary);
	snprintf(p->user, sizeof(p->user), "%s.r1.%s", p->c->id,
	    w->conf.system[system].name);
	probe = p->c->n_user - 1;
	for (unsigned k = 0; k < probe; k++) {
		p->answer[k] = hf_xstrdup(p->c->assistant[k]);
		json_array_append_new(w->log,
		    entry(p, "primary", "none", right_view(p, k, false)));
	}
	json_array_append_new(w->log,
	    entry(p, "primary", "silence", right_view(p, probe, false)));
	json_array_append_new(w->log,
	    entry(p, "fallback", "none",
		right_view(p, probe, system == BASELINE)));
	if (system == BASELINE)
		p->answer[probe] = hf_xstrdup(HF_ANSWER_UNKNOWN);
	else
		assert_true(asprintf(&p->answer[probe], "You told me: %s.",
				p->c->fact) > 0);
	p->n_answered = p->c->n_user;
	p->turn_ms[probe] = system == BASELINE ? 100 : 103;
}

static void
world_init(struct world *w)
{
	unsigned i = 0;

	memset(w, 0, sizeof(*w));
	w->suite = hf_suite_make("paper", 42, 0);
	w->log = json_array();
	w->examples = json_array();
	w->conf.suite = w->suite;
	w->conf.n_run = 1;
	w->conf.n_system = 2;
	w->conf.system[BASELINE] =
	    (struct hf_play_system){ "baseline", "baseline", true, false };
	w->conf.system[HOLDFAST] =
	    (struct hf_play_system){ "holdfast", "holdfast", false, false };
	w->plays.n_play = 2 * w->suite->n_conv;
	w->plays.play = calloc(w->plays.n_play, sizeof(*w->plays.play));
	assert_non_null(w->plays.play);
	for (unsigned c = 0; c < w->suite->n_conv; c++)
		for (unsigned s = 0; s < 2; s++)
			make_play(w, &w->plays.play[i++], s, c);
}

static void
world_judge(struct world *w)
{
	char path[] = "/tmp/hf-test-judge-XXXXXX";
	int fd = mkstemp(path);
	struct hf_error e;
	json_t *o;
	size_t i;

	assert_true(fd >= 0);
	json_array_foreach(w->log, i, o)
	{
		assert_int_equal(json_dumpfd(o, fd, JSON_COMPACT), 0);
		assert_int_equal(write(fd, "\n", 1), 1);
	}
	close(fd);
	hf_judge_answers(&w->conf, &w->plays, &w->n);
	assert_int_equal(
	    hf_judge_log(&w->conf, &w->plays, path, &w->n, w->examples, &e), 0);
	hf_judge_blame(&w->conf, &w->plays, true, &w->n);
	unlink(path);
}

static void
world_free(struct world *w)
{
	hf_plays_free(&w->plays);
	hf_suite_free(w->suite);
	json_decref(w->log);
	json_decref(w->examples);
}

static unsigned
preserved(const struct world *w, unsigned system)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->plays.n_play; i++)
		n += w->plays.play[i].system == system &&
		    w->plays.play[i].preserved;
	return n;
}

/* The log entry of play 'i' at the fallback, and its messages. */
static json_t *
fallback_entry(struct world *w, unsigned i)
{
	json_t *o;
	size_t k;

	json_array_foreach(w->log, k,
	    o) if (strcmp(json_string_value(json_object_get(o, "user")),
		       w->plays.play[i].user) == 0 &&
	    strcmp(json_string_value(json_object_get(o, "provider")),
		"fallback") == 0) return o;
	fail_msg("no entry");
	return NULL;
}

static json_t *
fallback_view(struct world *w, unsigned i)
{
	return json_object_get(fallback_entry(w, i), "messages");
}

static void
all_right(void **state)
{
	struct world w;
	json_t *report, *s;
	struct hf_report r = {
		.conf = &w.conf, .plays = &w.plays, .log_judged = true
	};

	(void)state;
	world_init(&w);
	world_judge(&w);
	assert_int_equal(preserved(&w, HOLDFAST), 150);
	assert_int_equal(preserved(&w, BASELINE), 0);
	assert_int_equal(w.n.payloads, json_array_size(w.log));
	assert_int_equal(w.n.bleed + w.n.bad_payloads + w.n.duplicates +
		w.n.refused + w.n.unattributed + w.n.answered_by_primary +
		w.n.not_failed_over + w.n.errors,
	    0);
	assert_int_equal(w.n.failed_over, 300);
	r.counts = w.n;
	r.examples = w.examples;
	report = hf_report_json(&r);
	s = json_object_get(json_object_get(report, "systems"), "holdfast");
	assert_int_equal(
	    json_integer_value(json_object_get(json_object_get(s, "cpr"), "k")),
	    150);
	assert_int_equal(
	    json_integer_value(json_object_get(
		json_object_get(
		    json_object_get(json_object_get(s, "by"), "length"), "7"),
		"n")),
	    44);
	s = json_object_get(report, "clo_ms");
	assert_int_equal(json_integer_value(json_object_get(s, "n")), 150);
	assert_true(json_number_value(json_object_get(s, "median")) == 3);
	json_decref(report);
	world_free(&w);
}

/* --- breaking one thing at a time -------------------------------------------
 */

/* 'i' is a play of system holdfast. */
static void
drop_last_exchange(struct world *w, unsigned i)
{
	json_t *v = fallback_view(w, i);

	json_array_remove(v, json_array_size(v) - 2);
	json_array_remove(v, json_array_size(v) - 2);
}

/* More is cut off than needed be. */
static void
drop_first_exchange(struct world *w, unsigned i)
{
	json_t *v = fallback_view(w, i);

	json_array_remove(v, 1);
	json_array_remove(v, 1);
}

/* What the caller had only begun to say. */
static void
keep_ghost(struct world *w, unsigned i)
{
	json_array_insert_new(
	    fallback_view(w, i), 3, message("user", "I would"));
}

static void
answer_stored_twice(struct world *w, unsigned i)
{
	json_t *v = fallback_view(w, i);

	json_array_insert(v, 3, json_array_get(v, 2));
}

static void
empty_answer(struct world *w, unsigned i)
{
	json_object_set_new(
	    json_array_get(fallback_view(w, i), 2), "text", json_string(""));
}

static void
call_invented(struct world *w, unsigned i)
{
	json_object_set_new(json_array_get(fallback_view(w, i), 2), "calls",
	    json_pack(
		"[{s:s,s:s,s:s}]", "id", "c1", "name", "f", "arguments", "{}"));
}

/* The next provider had the history and made nothing of it. */
static void
forget(struct world *w, unsigned i)
{
	struct hf_play *p = &w->plays.play[i];

	free(p->answer[p->c->n_user - 1]);
	p->answer[p->c->n_user - 1] = hf_xstrdup(HF_ANSWER_UNKNOWN);
}

static void
fail_at(struct world *w, unsigned i, int status)
{
	struct hf_play *p = &w->plays.play[i];

	p->n_answered--;
	free(p->answer[p->n_answered]);
	p->answer[p->n_answered] = NULL;
	p->status = status;
	snprintf(p->error, sizeof(p->error), "HTTP %d", status);
}

static void
tell_error(struct world *w, unsigned i)
{
	fail_at(w, i, 503);
}

static void
break_off(struct world *w, unsigned i)
{
	fail_at(w, i, 200);
}

static void
drop_system(struct world *w, unsigned i)
{
	json_array_remove(fallback_view(w, i), 0);
}

static void
say_twice(struct world *w, unsigned i)
{
	json_t *v = fallback_view(w, i);
	size_t n = json_array_size(v);

	json_array_append(v, json_array_get(v, n - 1));
}

static void
swap_messages(struct world *w, unsigned i)
{
	json_t *v = fallback_view(w, i), *a = json_array_get(v, 1);

	json_incref(a);
	json_array_set(v, 1, json_array_get(v, 3));
	json_array_set_new(v, 3, a);
}

static void
change_answer(struct world *w, unsigned i)
{
	json_object_set_new(json_array_get(fallback_view(w, i), 2), "text",
	    json_string("I said something else."));
}

static void
send_last_only(struct world *w, unsigned i)
{
	json_t *v = fallback_view(w, i);

	while (json_array_size(v) > 1)
		json_array_remove(v, 0);
}

static void
wrong_role(struct world *w, unsigned i)
{
	json_object_set_new(json_array_get(fallback_view(w, i), 2), "role",
	    json_string("user"));
}

static void
tell_stateless_all(struct world *w, unsigned i)
{
	json_object_set_new(fallback_entry(w, i - 1), "messages",
	    right_view(&w->plays.play[i - 1],
		w->plays.play[i - 1].c->n_user - 1, false));
}

static void
swap_sessions(struct world *w, unsigned i)
{
	json_t *a = json_deep_copy(fallback_view(w, i));

	json_array_clear(fallback_view(w, i));
	json_array_extend(fallback_view(w, i), fallback_view(w, i + 2));
	json_array_clear(fallback_view(w, i + 2));
	json_array_extend(fallback_view(w, i + 2), a);
	json_decref(a);
}

/* The same conversation of another run: only the canary tells. */
static void
other_canary(struct world *w, unsigned i)
{
	char canary[HF_CANARY_SIZE];
	char *text;

	hf_suite_canary(w->suite, HOLDFAST, 3, w->plays.play[i].conv, canary);
	text = hf_suite_system(w->plays.play[i].c, canary);
	json_object_set_new(
	    json_array_get(fallback_view(w, i), 0), "text", json_string(text));
	free(text);
}

static void
foreign_answer(struct world *w, unsigned i)
{
	struct hf_play *p = &w->plays.play[i];
	char *text;

	assert_true(asprintf(&text, "You told me: %s or %s.", p->c->fact,
			w->suite->conv[(p->conv + 1) % 150].fact) > 0);
	free(p->answer[p->c->n_user - 1]);
	p->answer[p->c->n_user - 1] = text;
}

static void
answer_twice(struct world *w, unsigned i)
{
	json_array_append(w->log, fallback_entry(w, i));
}

/* A turn of the history, with its answer, is there once more. */
static void
turn_twice(struct world *w, unsigned i)
{
	json_t *v = fallback_view(w, i);

	json_array_insert(v, 3, json_array_get(v, 1));
	json_array_insert(v, 4, json_array_get(v, 2));
}

/* The client needed a retry: then a second answer is none too many, ... */
static void
retried_answer(struct world *w, unsigned i)
{
	struct hf_play *p = &w->plays.play[i];

	p->retries[p->c->n_user - 1] = 1;
	json_array_append(w->log, fallback_entry(w, i));
}

/* ... a third is, ... */
static void
retried_too_often(struct world *w, unsigned i)
{
	retried_answer(w, i);
	json_array_append(w->log, fallback_entry(w, i));
}

/* ... and a retry of another turn is no excuse. */
static void
retried_another(struct world *w, unsigned i)
{
	w->plays.play[i].retries[0] = 1;
	json_array_append(w->log, fallback_entry(w, i));
}

static void
both_answer(struct world *w, unsigned i)
{
	json_t *o = json_deep_copy(fallback_entry(w, i));
	const struct hf_play *p = &w->plays.play[i];

	json_object_set_new(o, "messages", right_view(p, 1, false));
	json_array_append_new(w->log, o);
}

static void
primary_answers(struct world *w, unsigned i)
{
	json_object_set_new(
	    fallback_entry(w, i), "provider", json_string("primary"));
}

static void
nobody_asks(struct world *w, unsigned i)
{
	json_t *o;
	size_t k;

	json_array_foreach(
	    w->log, k, o) if (hf_str_is(hf_json_str(json_object_get(o, "user")),
				  w->plays.play[i].user) &&
	    hf_str_is(
		hf_json_str(json_object_get(o, "fault")), "silence")) break;
	assert_int_equal(json_array_remove(w->log, k), 0);
}

static void
nobody_answers(struct world *w, unsigned i)
{
	json_object_set_new(
	    fallback_entry(w, i), "fault", json_string("http_503"));
}

static void
refused(struct world *w, unsigned i)
{
	json_object_set_new(fallback_entry(w, i), "refused", json_string("no"));
}

static void
no_user(struct world *w, unsigned i)
{
	json_object_del(fallback_entry(w, i), "user");
}

/* Nor anything else that tells whose it is. */
static void
no_mark(struct world *w, unsigned i)
{
	drop_system(w, i);
	no_user(w, i);
}

static void
mutations(void **state)
{
	static const struct {
		const char *name;
		void (*breaks)(struct world *w, unsigned i);
		size_t counter; /* that must rise */
		unsigned by;
		unsigned preserved;
		enum hf_blame blame;
	} t[] = {
#define M(fn, counter, by, k, blame)                           \
	{ #fn, fn, offsetof(struct hf_counts, counter), by, k, \
		HF_BLAME_##blame }
		M(drop_last_exchange, bad_payloads, 1, 150, STORE),
		M(drop_first_exchange, bad_payloads, 1, 150, FIT),
		M(drop_system, bad_payloads, 1, 150, STORE),
		M(empty_answer, bad_payloads, 1, 150, STORE),
		M(keep_ghost, bad_payloads, 1, 150, RECONCILE),
		M(call_invented, bad_payloads, 1, 150, DIALECT),
		M(answer_stored_twice, bad_payloads, 1, 150, DUPLICATE),
		M(say_twice, bad_payloads, 1, 150, DUPLICATE),
		M(say_twice, doubled, 1, 150, DUPLICATE),
		M(turn_twice, doubled, 1, 150, DUPLICATE),
		M(retried_answer, repeated, 1, 150, NOBODY),
		M(retried_too_often, duplicates, 1, 150, DUPLICATE),
		M(retried_another, duplicates, 1, 150, DUPLICATE),
		M(swap_messages, bad_payloads, 1, 150, RECONCILE),
		M(change_answer, bad_payloads, 1, 150, RECONCILE),
		M(send_last_only, bad_payloads, 1, 150, STORE),
		M(wrong_role, bad_payloads, 1, 150, RECONCILE),
		M(tell_stateless_all, bad_payloads, 1, 150, NOBODY),
		/* a fact and a canary in each of two payloads */
		M(swap_sessions, bleed, 4, 148, FOREIGN),
		M(other_canary, bleed, 1, 149, FOREIGN),
		M(foreign_answer, bleed, 1, 149, FOREIGN),
		M(answer_twice, duplicates, 1, 150, DUPLICATE),
		M(both_answer, late, 1, 150, NOBODY),
		M(both_answer, duplicates, 0, 150, NOBODY),
		M(primary_answers, answered_by_primary, 1, 150, NOBODY),
		M(primary_answers, not_failed_over, 1, 150, NOBODY),
		M(nobody_answers, not_failed_over, 1, 150, NOBODY),
		M(nobody_asks, unasked, 1, 150, NOBODY),
		M(nobody_asks, not_failed_over, 0, 150, NOBODY),
		M(refused, refused, 1, 150, DIALECT),
		M(no_user, unattributed, 0, 150, NOBODY),
		M(no_user, not_failed_over, 0, 150, NOBODY),
		M(no_mark, unattributed, 1, 150, NOBODY),
		M(forget, bad_payloads, 0, 149, MODEL),
		M(tell_error, errors, 1, 149, ERROR),
		M(break_off, errors, 1, 149, STREAM),
#undef M
	};

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		struct world w;
		unsigned got;

		world_init(&w);
		t[i].breaks(&w, 2 * 17 + HOLDFAST);
		world_judge(&w);
		memcpy(&got, (const char *)&w.n + t[i].counter, sizeof(got));
		if (got != t[i].by)
			fail_msg(
			    "%s: %u instead of %u", t[i].name, got, t[i].by);
		if (preserved(&w, HOLDFAST) != t[i].preserved)
			fail_msg("%s: preserved %u", t[i].name,
			    preserved(&w, HOLDFAST));
		if (w.plays.play[2 * 17 + HOLDFAST].blame != t[i].blame)
			fail_msg("%s: blame %s", t[i].name,
			    hf_blame_name(
				(enum hf_blame)w.plays.play[2 * 17 + HOLDFAST]
				    .blame));
		world_free(&w);
	}
}

/* --- strict reading of answers -----------------------------------------------
 */

#define TEXT(t)                                                    \
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":" \
	"\"" t "\"},\"finish_reason\":null}]}\n\n"
#define FINISH                                           \
	"data: {\"choices\":[{\"index\":0,\"delta\":{}," \
	"\"finish_reason\":\"stop\"}]}\n\n"
#define DONE "data: [DONE]\n\n"

static void
reading(void **state)
{
	static const struct {
		bool stream;
		int status;
		const char *bytes, *answer, *error;
	} t[] = {
		{ true, 200, TEXT("a ") ": comment\n\n" TEXT("b") FINISH DONE,
		    "a b", NULL },
		{ true, 200,
		    "data:{\"choices\":[]}\r\n\r\n" TEXT("a") FINISH DONE, "a",
		    NULL },
		{ true, 200, TEXT("a") FINISH, NULL, "no [DONE]" },
		{ true, 200, TEXT("a") DONE, NULL, "no finish reason" },
		{ true, 200, TEXT("a"), NULL, "no finish reason" },
		{ true, 200, FINISH DONE, NULL, "no text" },
		{ true, 200, TEXT("a") FINISH TEXT("b") DONE, NULL,
		    "text after the finish reason" },
		{ true, 200, TEXT("a") FINISH DONE FINISH, NULL,
		    "an event after [DONE]" },
		{ true, 200,
		    TEXT("a") "data: {\"error\":{\"message\":\"x\"}}"
			      "\n\n",
		    NULL, "error: x" },
		{ true, 200, "data: {\n\n", NULL, "broken event: {" },
		{ true, 503, "{\"error\":{\"message\":\"all down\"}}", NULL,
		    "HTTP 503: error: all down" },
		{ false, 200,
		    "{\"choices\":[{\"message\":{\"content\":\"a\"},"
		    "\"finish_reason\":\"stop\"}]}",
		    "a", NULL },
		{ false, 200,
		    "{\"choices\":[{\"message\":{\"content\":\"a\"}"
		    "}]}",
		    NULL, "no finish reason" },
		{ false, 200, "{\"choices\":[{", NULL,
		    "broken body: {\"choices\":[{" },
		{ false, 502, "<html>", NULL, "HTTP 502: broken body: <html>" },
	};

	(void)state;
	for (unsigned i = 0; i < hf_countof(t); i++) {
		for (unsigned step = 1; step < 40; step += 19) {
			struct hf_answer_reader r;
			struct hf_str s = hf_str(t[i].bytes);
			char *got;

			hf_reader_init(&r, t[i].stream);
			for (size_t k = 0; k < s.size; k += step)
				hf_reader_data(&r,
				    (struct hf_str){ s.p + k,
					s.size - k < step ? s.size - k :
							    step });
			got = hf_reader_end(&r, t[i].status);
			if (t[i].answer != NULL) {
				assert_non_null(got);
				assert_string_equal(got, t[i].answer);
			} else {
				assert_null(got);
				assert_string_equal(r.error, t[i].error);
			}
			free(got);
			hf_reader_free(&r);
		}
	}
}

/* --- a whole play ------------------------------------------------------------
 */

static void
serve(const struct hf_suite *suite, const char *log, int ready)
{
	struct hf_manifest none;
	struct hf_providers_conf conf = { .base = event_base_new(),
		.suite = suite,
		.manifest = &none,
		.log = fopen(log, "we") };
	struct hf_providers *p = hf_providers_new(&conf);
	struct hf_error e;
	unsigned port;

	hf_manifest_init(&none);
	if (hf_providers_listen(p, "primary=127.0.0.1:0", &port, &e) == 0 &&
	    write(ready, &port, sizeof(port)) == sizeof(port))
		event_base_dispatch(conf.base);
	_exit(1);
}

static void
play(bool full, bool stream, unsigned want)
{
	char log[] = "/tmp/hf-test-play-XXXXXX", url[64];
	struct hf_play_conf c = { .n_system = 1,
		.n_run = 2,
		.concurrency = 40,
		.api_key = "k",
		.full_history = full,
		.stream = stream,
		.local = true,
		.timeout_ms = 20000,
		.progress = HF_PROGRESS_OFF };
	struct hf_plays plays;
	struct hf_counts n = { 0 };
	json_t *examples = json_array();
	struct hf_error e;
	unsigned port, k = 0;
	int fds[2], fd = mkstemp(log);
	pid_t pid;

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(pipe(fds), 0);
	c.suite = hf_suite_make("paper", 42, 0);
	c.system[0] = (struct hf_play_system){ "direct", "m", false, true };
	pid = fork();
	if (pid == 0)
		serve(c.suite, log, fds[1]);
	close(fds[1]);
	assert_int_equal(read(fds[0], &port, sizeof(port)), sizeof(port));
	close(fds[0]);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/v1", port);
	c.url = url;
	assert_int_equal(hf_play_all(&c, &plays, &e), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	hf_judge_answers(&c, &plays, &n);
	assert_int_equal(hf_judge_log(&c, &plays, log, &n, examples, &e), 0);
	unlink(log);
	for (unsigned i = 0; i < plays.n_play; i++)
		k += plays.play[i].preserved;
	assert_int_equal(k, want);
	assert_int_equal(n.errors, 0);
	assert_int_equal(n.bleed, 0);
	assert_int_equal(n.payloads, 2 * 754);
	/* Without a failure there is no failover, and that is noticed. */
	assert_int_equal(n.answered_by_primary, 300);
	/* A thin client's own requests are not the history. */
	assert_int_equal(n.bad_payloads, full ? 0 : 2 * (754 - 150));
	json_decref(examples);
	hf_plays_free(&plays);
	hf_suite_free((struct hf_suite *)(uintptr_t)c.suite);
}

static void
whole_plays(void **state)
{
	(void)state;
	play(true, false, 300);
	play(true, true, 300);
	play(false, false, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_right),
		cmocka_unit_test(mutations),
		cmocka_unit_test(reading),
		cmocka_unit_test(whole_plays),
	};

	return cmocka_run_group_tests_name("bench judge", tests, NULL, NULL);
}
