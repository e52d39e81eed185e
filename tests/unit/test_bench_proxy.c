/*
 * Parts of the reference proxy: its memory on disk, what of a history a window
 * holds, and its keeping to a quota.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "bench/answer.h"
#include "bench/memory.h"
#include "bench/throttle.h"
#include "bench/room.h"

static json_t *
message(const char *role, const char *text)
{
	return json_pack("{s:s,s:s}", "role", role, "content", text);
}

/* --- memory --------------------------------------------------------------- */

struct disk {
	char path[64];
	struct hf_memory *memory;
	struct hf_session *session;
};

static void
disk_open(struct disk *d, enum hf_bug bug)
{
	struct hf_error e;

	d->memory = hf_memory_new(bug);
	assert_int_equal(hf_memory_keep(d->memory, d->path, &e), 0);
	d->session = hf_memory_session(d->memory, HF_STR("s"));
}

static void
disk_init(struct disk *d)
{
	int fd;

	snprintf(d->path, sizeof(d->path), "/tmp/hf-journal-XXXXXX");
	fd = mkstemp(d->path);
	assert_true(fd >= 0);
	close(fd);
	disk_open(d, HF_BUG_NONE);
}

/* As if the process had died and another one had started. */
static void
disk_again(struct disk *d, enum hf_bug bug)
{
	hf_memory_free(d->memory);
	disk_open(d, bug);
}

static void
disk_free(struct disk *d)
{
	hf_memory_free(d->memory);
	unlink(d->path);
}

/* A turn of one message that nobody has asked before. */
static void
turn(struct disk *d, const char *says, const char *answer, const char *key,
    int target)
{
	json_t *messages = json_pack("[o]", message("user", says));
	json_t *a = message("assistant", answer);
	struct hf_turn_end t = { messages, NULL, a, key, target };

	assert_null(hf_session_repeat(d->session, messages, key, false));
	t.conversation = hf_session_begin(d->session, messages);
	hf_session_end(d->session, &t);
	json_decref(t.conversation);
	json_decref(messages);
	json_decref(a);
}

/* The texts of what goes to a provider with this message, with '|' between. */
static void
assert_told(struct disk *d, const char *says, const char *want)
{
	json_t *messages = json_pack("[o]", message("user", says));
	json_t *all = hf_session_begin(d->session, messages), *m;
	char text[256] = "";
	size_t i;

	json_array_foreach(all, i, m)
	{
		size_t n = strlen(text);

		snprintf(text + n, sizeof(text) - n, "%s%s", i > 0 ? "|" : "",
		    json_string_value(json_object_get(m, "content")));
	}
	assert_string_equal(text, want);
	json_decref(all);
	json_decref(messages);
}

/* Is this message taken for a repeat, and of what? */
static void
assert_repeat(struct disk *d, const char *says, const char *key, bool marked,
    const char *answer)
{
	json_t *messages = json_pack("[o]", message("user", says));
	json_t *a = hf_session_repeat(d->session, messages, key, marked);

	if (answer == NULL) {
		assert_null(a);
	} else {
		assert_non_null(a);
		assert_string_equal(
		    json_string_value(json_object_get(a, "content")), answer);
	}
	json_decref(messages);
}

static void
test_goes_on(void **state)
{
	struct disk d;

	(void)state;
	disk_init(&d);
	turn(&d, "one", "1", NULL, 0);
	turn(&d, "two", "2", NULL, 1);
	turn(&d, "three", "3, as far as", NULL, -1);
	disk_again(&d, HF_BUG_NONE);
	turn(&d, "four", "4", NULL, 0);
	disk_again(&d, HF_BUG_NONE);
	assert_told(&d, "five", "one|1|two|2|three|3, as far as|four|4|five");
	disk_free(&d);
}

static void
test_repeats(void **state)
{
	struct disk d;

	(void)state;
	disk_init(&d);
	turn(&d, "yes", "1", NULL, 0);
	/* A caller may say the same again; a library that retries says so. */
	assert_repeat(&d, "yes", NULL, false, NULL);
	assert_repeat(&d, "yes", NULL, true, "1");
	assert_repeat(&d, "no", NULL, true, NULL);
	/* Who knows whether it arrived, when we died? */
	disk_again(&d, HF_BUG_NONE);
	assert_repeat(&d, "yes", NULL, false, "1");
	assert_repeat(&d, "no", NULL, false, NULL);
	turn(&d, "no", "2", "k2", 0);
	assert_repeat(&d, "no", NULL, false, NULL);
	disk_again(&d, HF_BUG_NONE);
	assert_repeat(&d, "no", "k2", false, "2");
	assert_repeat(&d, "no", "k3", true, NULL);
	disk_again(&d, HF_BUG_DOUBLE);
	assert_repeat(&d, "no", "k2", false, NULL);
	disk_free(&d);
}

static void
write_to(const char *path, const char *text)
{
	FILE *f = fopen(path, "ae");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void
test_torn(void **state)
{
	struct hf_memory *m;
	struct hf_error e;
	struct disk d;

	(void)state;
	disk_init(&d);
	turn(&d, "one", "1", NULL, 0);
	/* It died while it wrote. */
	write_to(d.path, "{\"session\":\"s\",\"mess");
	disk_again(&d, HF_BUG_NONE);
	assert_told(&d, "two", "one|1|two");
	turn(&d, "two", "2", NULL, 0);
	disk_again(&d, HF_BUG_NONE);
	assert_told(&d, "three", "one|1|two|2|three");
	/* Nobody dies so. */
	write_to(d.path, "{\"session\":\n");
	m = hf_memory_new(HF_BUG_NONE);
	assert_int_equal(hf_memory_keep(m, d.path, &e), HF_ECORRUPT);
	hf_memory_free(m);
	disk_free(&d);
}

/* --- windows -------------------------------------------------------------- */

/* Messages by letters: s system, u user, a assistant, c a call, r its result;
 * of ten tokens each. */
static json_t *
history(const char *letters)
{
	json_t *out = json_array(), *m;

	for (const char *p = letters; *p != '\0'; p++) {
		m = message(*p == 's' ? "system" :
			*p == 'u'     ? "user" :
			*p == 'r'     ? "tool" :
					"assistant",
		    "twenty letters there");
		if (*p == 'c')
			json_object_set_new(m, "content", json_null());
		if (*p == 'c')
			json_object_set_new(m, "tool_calls",
			    json_pack("[{s:{s:s,s:s}}]", "function", "name",
				"ten_letter", "arguments", "ten_letter"));
		json_array_append_new(out, m);
	}
	return out;
}

/* What is left, as letters, where it stood. */
static void
assert_fits(
    const char *letters, unsigned window, unsigned output, const char *want)
{
	json_t *all = history(letters);
	json_t *out = hf_room_fit(all, window, output);
	size_t k = 0;

	for (size_t i = 0; letters[i] != '\0'; i++) {
		bool left = json_array_get(all, i) == json_array_get(out, k);

		assert_int_equal(want[i] != '.', left);
		k += left;
	}
	assert_int_equal(k, json_array_size(out));
	json_decref(out);
	json_decref(all);
}

static void
test_fits(void **state)
{
	json_t *all = history("sua");

	(void)state;
	assert_int_equal(hf_room_tokens(all), 30);
	json_decref(all);
	assert_fits("suauau", 70, 10, "suauau");
	assert_fits("suauau", 69, 10, "s..uau");
	assert_fits("suauau", 80, 0, "suauau"); /* a quarter is kept */
	assert_fits("suauau", 76, 0, "s..uau");
	/* Calls and results go with who asked for them. */
	assert_fits("sucrauau", 89, 10, "s....uau");
	assert_fits("sucraucr", 79, 10, "s....ucr");
	/* What is asked is not cut, nor is the system message. */
	assert_fits("ssuau", 20, 10, "ss..u");
	assert_fits("ua", 4, 1, "ua");
	assert_fits("u", 4, 8, "u");
}

static void
test_told(void **state)
{
	(void)state;
	assert_int_equal(
	    hf_room_told("HTTP 400: error: This model's maximum context length "
			 "is 4096 tokens. However, your messages resulted in"),
	    4096);
	assert_int_equal(hf_room_told("HTTP 400: error: 4096 tokens"), 0);
	assert_int_equal(hf_room_told(""), 0);
}

/* --- quotas --------------------------------------------------------------- */

#define CALLS 7
#define QUOTA 3
#define WINDOW_MS 40

struct paced {
	struct event_base *base;
	struct hf_throttle *throttle;
	struct hf_pass pass[CALLS];
	unsigned went[CALLS]; /* in this order */
	int64_t told_us[CALLS];
	unsigned n;
};

static void
on_go(void *arg)
{
	struct paced *p = arg;

	for (unsigned i = 0; i < CALLS; i++)
		if (p->pass[i].goes && p->pass[i].throttle != NULL &&
		    p->told_us[i] == 0) {
			p->told_us[i] = -1;
			p->went[p->n++] = i;
		}
}

static void
settle(struct paced *p, unsigned i)
{
	p->told_us[i] = hf_now_us();
	hf_throttle_settle(&p->pass[i]);
	hf_throttle_settle(&p->pass[i]);
}

static void
test_pace(void **state)
{
	struct paced p = { .base = event_base_new() };

	(void)state;
	p.throttle = hf_throttle_new(p.base, QUOTA, WINDOW_MS);
	for (unsigned i = 0; i < CALLS; i++) {
		p.pass[i] = (struct hf_pass){ .go = on_go, .arg = &p };
		hf_throttle_ask(p.throttle, &p.pass[i]);
	}
	/* The quota's, however long the provider takes to have them. */
	assert_int_equal(p.n, QUOTA);
	event_base_loop(p.base, EVLOOP_NONBLOCK);
	assert_int_equal(p.n, QUOTA);
	/* One that waits leaves. */
	hf_throttle_settle(&p.pass[4]);
	/* One comes up for each that was had, a window later. */
	for (unsigned k = 0; k < CALLS - 1; k++) {
		unsigned i = p.went[k];

		settle(&p, i);
		while (p.n < CALLS - 1 && p.n < QUOTA + k + 1)
			event_base_loop(p.base, EVLOOP_ONCE);
		if (QUOTA + k < CALLS - 1)
			assert_true(hf_now_us() - p.told_us[i] >=
			    WINDOW_MS * INT64_C(1000));
	}
	for (unsigned k = 0; k < CALLS - 1; k++)
		assert_int_equal(p.went[k], k < 4 ? k : k + 1);
	hf_throttle_free(p.throttle);
	event_base_free(p.base);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_repeats),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_fits),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_pace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
