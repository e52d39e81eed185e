/*
 * holdfastctl without a socket: the command line, text made safe, figures.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "ctl/ctl.h"
#include "ctl/escape.h"

static const char *const verbs[] = {
#define HF_VERB(verb, words, flags, help) verb,
#include "base/verbs.def"
#undef HF_VERB
};

static void
test_every_verb_has_a_command(void **state)
{
	(void)state;
	assert_int_equal(hf_ctl_n_commands, hf_countof(verbs));
	for (size_t i = 0; i < hf_countof(verbs); i++) {
		unsigned n = 0;

		for (unsigned k = 0; k < hf_ctl_n_commands; k++)
			n += strcmp(hf_ctl_commands[k].verb, verbs[i]) == 0;
		assert_int_equal(n, 1);
	}
}

static int
parse(struct hf_ctl *ctl, char *text, const char *line)
{
	static char copy[512];
	static char prog[] = "holdfastctl";
	char *argv[32] = { prog }, *save = NULL;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *p = strtok_r(copy, " ", &save); p != NULL;
	     p = strtok_r(NULL, " ", &save))
		argv[argc++] = p;
	return hf_ctl_options(ctl, argc, argv, text);
}

static void
test_options(void **state)
{
	char text[HF_CTL_TEXT];
	struct hf_ctl ctl;

	(void)state;
	assert_int_equal(parse(&ctl, text,
			     "sessions show ses_1 -o json "
			     "--tenant acme --contents -s /x --timeout 5"),
	    0);
	assert_string_equal(ctl.command->verb, "sessions.show");
	assert_string_equal(ctl.operand, "ses_1");
	assert_string_equal(ctl.tenant, "acme");
	assert_string_equal(ctl.socket, "/x");
	assert_true(ctl.json);
	assert_int_equal(ctl.timeout_ms, 5);
	assert_int_equal(ctl.given, HF_CTL_TENANT | HF_CTL_CONTENTS);

	assert_int_equal(parse(&ctl, text, "-q sessions --limit 7 list"), 0);
	assert_string_equal(ctl.command->verb, "sessions.list");
	assert_true(ctl.quiet);
	assert_int_equal(ctl.limit, 7);
	assert_null(ctl.operand);
	assert_int_equal(parse(&ctl, text, "sessions show -- -dash"), 0);
	assert_string_equal(ctl.operand, "-dash");
	assert_int_equal(parse(&ctl, text,
			     "--offline sessions verify --all "
			     "--database /d --key-file /k"),
	    0);
	assert_true(ctl.offline);
	assert_string_equal(ctl.database, "/d");
	assert_string_equal(ctl.key_file, "/k");
	assert_null(ctl.operand);
	assert_int_equal(parse(&ctl, text, "sessions verify x"), 0);
	assert_string_equal(ctl.operand, "x");
	assert_int_equal(parse(&ctl, text, "config check"), 0);
	assert_null(ctl.operand);
	assert_int_equal(parse(&ctl, text, "config check f"), 0);
	assert_string_equal(ctl.operand, "f");
	assert_int_equal(parse(&ctl, text, "timeline s"), 0);
	assert_string_equal(ctl.operand, "s");
	assert_null(ctl.second);
	assert_int_equal(parse(&ctl, text, "timeline s --offline 2"), 0);
	assert_string_equal(ctl.second, "2");
	assert_int_equal(parse(&ctl, text, "drain --wait 30"), 0);
	assert_int_equal(ctl.wait_s, 30);
	assert_int_equal(parse(&ctl, text, "--help"), 0);
	assert_true(ctl.help);
}

static void
test_options_refused(void **state)
{
	static const struct {
		const char *line, *says;
	} wrong[] = {
		{ "", "a command is missing; see holdfastctl --help" },
		{ "sessions", "unknown command; see holdfastctl --help" },
		{ "sessions lis", "unknown command; see holdfastctl --help" },
		{ "list sessions", "unknown command; see holdfastctl --help" },
		{ "status now", "status takes no other word" },
		{ "sessions show", "sessions show needs one word after it" },
		{ "sessions show a b",
		    "sessions show needs one word after it" },
		{ "timeline", "timeline needs one or two words after it" },
		{ "timeline a b c",
		    "timeline needs one or two words after it" },
		{ "keys create", "keys create needs --tenant" },
		{ "sessions verify",
		    "sessions verify needs one session, or --all" },
		{ "sessions verify x --all",
		    "sessions verify needs one session, or --all" },
		{ "sessions verify --all --tenant a",
		    "--tenant goes with one session" },
		{ "sessions verify a b",
		    "sessions verify takes one word after it" },
		{ "config explain", "config explain needs one word after it" },
		{ "--offline reload", "reload cannot be done --offline" },
		{ "--offline keys revoke x",
		    "keys revoke cannot be done --offline" },
		{ "status --database /d",
		    "--database and --key-file need --offline" },
		{ "--offline -s /x status", "--offline asks no --socket" },
		{ "drain --wait 0", "--wait: expected seconds, 1 to 86400" },
		{ "status --wait 1", "status takes no --wait" },
		{ "status --tenant a", "status takes no --tenant" },
		{ "sessions list --contents",
		    "sessions list takes no --contents" },
		{ "sessions list --limit 0",
		    "--limit: expected a number, 1 to 10000" },
		{ "sessions list --limit 1x",
		    "--limit: expected a number, 1 to 10000" },
		{ "sessions list --limit -1",
		    "--limit: expected a number, 1 to 10000" },
		{ "status --timeout 0",
		    "--timeout: expected milliseconds, 1 to 86400000" },
		{ "status -o yaml", "-o: expected table or json" },
		{ "status --nonsense",
		    "unknown option, or one without its "
		    "argument; see holdfastctl --help" },
		{ "status -s",
		    "unknown option, or one without its argument; "
		    "see holdfastctl --help" },
	};
	char text[HF_CTL_TEXT];
	struct hf_ctl ctl;

	(void)state;
	for (size_t i = 0; i < hf_countof(wrong); i++) {
		assert_int_equal(
		    parse(&ctl, text, wrong[i].line), HF_EXIT_USAGE);
		assert_string_equal(text, wrong[i].says);
	}
}

static void
escaped(const char *bytes, size_t size, const char *expected)
{
	struct hf_buf b;

	hf_buf_init(&b, 1000);
	hf_ctl_escape(&b, (struct hf_str){ bytes, size });
	hf_buf_putc(&b, '\0');
	assert_true(hf_buf_ok(&b));
	assert_string_equal(b.data, expected);
	hf_buf_free(&b);
}

#define ESCAPED(lit, expected) escaped(lit, sizeof(lit) - 1, expected)

static void
test_escape(void **state)
{
	(void)state;
	ESCAPED("", "");
	ESCAPED("plain text", "plain text");
	ESCAPED("a\\b", "a\\\\b");
	ESCAPED("\033[31mred\007", "\\x1b[31mred\\x07");
	ESCAPED("a\nb\rc\td\0e", "a\\nb\\x0dc\\x09d\\x00e");
	ESCAPED("\x7f", "\\x7f");
	ESCAPED("Grüße, 東京 🙂", "Grüße, 東京 🙂");
	ESCAPED("\xc2\x9b"
		"31m",
	    "\\x9b31m"); /* C1: CSI */
	ESCAPED("\xe2\x80\xae"
		"x",
	    "\\u{202e}x"); /* right to left */
	ESCAPED("\xe2\x80\x8b", "\\u{200b}");
	ESCAPED("\xef\xbb\xbf", "\\u{feff}");
	ESCAPED("\xf3\xa0\x80\x81", "\\u{e0001}");
	ESCAPED("\xff\xc3", "\\xff\\xc3");
	ESCAPED("\xc3(", "\\xc3(");
	ESCAPED("\xc0\xaf", "\\xc0\\xaf");	    /* overlong */
	ESCAPED("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* surrogate */
	ESCAPED("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	assert_int_equal(hf_ctl_width(HF_STR("Grüße")), 5);
}

static void
figure(bool bytes, int64_t v, const char *expected)
{
	struct hf_buf b;

	hf_buf_init(&b, 1000);
	if (bytes)
		hf_ctl_put_bytes(&b, v);
	else
		hf_ctl_put_duration(&b, v);
	assert_true(hf_buf_ok(&b));
	assert_string_equal(b.data, expected);
	hf_buf_free(&b);
}

static void
test_figures(void **state)
{
	(void)state;
	figure(false, 1, "1us");
	figure(false, 1500, "1.5ms");
	figure(false, 1250000, "1.25s");
	figure(false, 61000000, "1m01s");
	figure(false, (int64_t)3720 * 1000000, "1h02m");
	figure(false, (int64_t)90000 * 1000000, "1d01h");
	figure(false, -5, "-5us");
	figure(true, 0, "0");
	figure(true, 1023, "1023");
	figure(true, 1024, "1.0K");
	figure(true, 5 * 1024 * 1024 + 512 * 1024, "5.5M");
	figure(true, INT64_MAX, "8.0E");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_verb_has_a_command),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_options_refused),
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_figures),
	};

	return cmocka_run_group_tests_name("ctl", tests, NULL, NULL);
}
