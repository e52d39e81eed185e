/*
 * holdfast.conf(5) and the sample file say what params.def says.  The list
 * of keys in the manual, between its two marks, is exactly what is made here
 * from the table; when it differs, the right text is left in the build
 * directory (holdfast.conf.5.keys) to be copied over.
 */
#include <config.h>

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/conf.h"
#include "base/log.h"
#include "base/params.h"

#define MANUAL "docs/man/holdfast.conf.5"
#define SAMPLE "docs/examples/holdfast.conf"
#define BEGIN ".\\\" Keys begin.\n"
#define END ".\\\" Keys end.\n"

static void
read_file(const char *name, struct hf_buf *out)
{
	const char *top = getenv("HF_SRCDIR");
	char path[1000], part[4096];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", top == NULL ? "." : top, name);
	hf_buf_init(out, 1 << 20);
	f = fopen(path, "r");
	if (f == NULL)
		fail_msg("%s cannot be opened", path);
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		hf_buf_put(out, part, n);
	fclose(f);
	assert_true(hf_buf_ok(out) && out->size > 0);
}

/* A default as the documents show it: with the usual directories, not those
 * of this build. */
static void
put_default(struct hf_buf *out, const char *def)
{
	static const struct {
		const char *built, *shown;
	} dirs[] = {
		{ HF_LOCALSTATEDIR "/", "/var/" },
		{ HF_RUNSTATEDIR "/", "/run/" },
	};

	for (size_t i = 0; i < hf_countof(dirs); i++) {
		size_t n = strlen(dirs[i].built);

		/* /var/run is below /var: the longer one decides. */
		if (strncmp(def, dirs[i].built, n) == 0 &&
		    (i > 0 ||
			strncmp(def, HF_RUNSTATEDIR "/",
			    strlen(HF_RUNSTATEDIR "/")) != 0)) {
			hf_buf_printf(out, "%s%s", dirs[i].shown, def + n);
			return;
		}
	}
	hf_buf_puts(out, def);
}

/* Prose as roff text: a sentence begins a line, no line over 78 columns. */
static void
put_roff(struct hf_buf *out, const char *prose)
{
	size_t col = 0;

	while (*prose != '\0') {
		size_t n = strcspn(prose, " ");

		if (col > 0 && (col + 1 + n > 78 || prose[-2] == ' ')) {
			hf_buf_putc(out, '\n');
			col = 0;
		}
		if (col > 0)
			hf_buf_putc(out, ' ');
		else if (*prose == '.' || *prose == '\'')
			hf_buf_puts(out, "\\&");
		hf_buf_put(out, prose, n);
		col += n + 1;
		prose += n;
		prose += strspn(prose, " ");
	}
	hf_buf_putc(out, '\n');
}

/* Text of several words, in quotes; its sentences begin lines too. */
static void
put_words(struct hf_buf *out, const char *text)
{
	hf_buf_putc(out, '"');
	for (const char *p = text; *p != '\0'; p++)
		hf_buf_puts(out,
		    p[0] == '.' && p[1] == ' ' ? ". " : (char[2]){ *p, '\0' });
	hf_buf_putc(out, '"');
}

static void
put_key(struct hf_buf *out, const struct hf_param *p)
{
	struct hf_buf facts;
	char expected[160];

	hf_param_expected(p, expected, sizeof(expected));
	hf_buf_init(&facts, 1000);
	hf_buf_printf(&facts, "Value: %s%s.",
	    hf_param_is_list(p) ? "a list, each " : "", expected);
	if (p->def != NULL) {
		hf_buf_puts(&facts, "  Default: ");
		if (p->type == HF_PARAM_TEXT)
			put_words(&facts, p->def);
		else
			put_default(&facts, p->def);
		hf_buf_putc(&facts, '.');
	}
	if ((p->flags & HF_P_REQUIRED) != 0)
		hf_buf_puts(&facts, "  Required.");
	if ((p->flags & HF_P_RESTART) != 0)
		hf_buf_puts(&facts, "  A change needs a restart.");
	hf_buf_printf(out, ".It Ic %s\n", p->key);
	put_roff(out, p->prose);
	put_roff(out, facts.data);
	hf_buf_free(&facts);
}

static void
put_keys(struct hf_buf *out)
{
	for (unsigned i = 0; i < hf_n_blocks; i++) {
		const struct hf_block *b = &hf_blocks[i];

		hf_buf_printf(out, ".Ss %s%s%s\n", b->name,
		    b->titled ? " " : "", b->titled ? b->title : "");
		put_roff(out, b->prose);
		hf_buf_puts(out, ".Bl -tag -width Ds\n");
		for (unsigned k = 0; k < hf_n_params; k++)
			if (strcmp(hf_params[k].block, b->name) == 0)
				put_key(out, &hf_params[k]);
		hf_buf_puts(out, ".El\n");
	}
}

static void
leave(const struct hf_buf *text)
{
	const char *dir = getenv("HF_BUILDDIR");
	char path[1000];
	FILE *f;

	snprintf(path, sizeof(path), "%s/holdfast.conf.5.keys",
	    dir == NULL ? "." : dir);
	f = fopen(path, "w");
	if (f == NULL)
		return;
	fwrite(text->data, 1, text->size, f);
	fclose(f);
	fail_msg("the keys in " MANUAL " are not those of params.def; "
		 "the right text is in %s",
	    path);
}

static void
test_manual(void **state)
{
	struct hf_buf manual, keys;
	const char *begin, *end;

	(void)state;
	read_file(MANUAL, &manual);
	begin = strstr(manual.data, BEGIN);
	assert_non_null(begin);
	begin += strlen(BEGIN);
	end = strstr(begin, END);
	assert_non_null(end);
	hf_buf_init(&keys, 1 << 20);
	put_keys(&keys);
	assert_true(hf_buf_ok(&keys));
	if (!hf_str_eq(hf_buf_str(&keys),
		(struct hf_str){ begin, (size_t)(end - begin) }))
		leave(&keys);
	hf_buf_free(&keys);
	hf_buf_free(&manual);
}

/* --- the sample ------------------------------------------------------------
 */

static char dir[] = "/tmp/hf-test-docs-XXXXXX";
static const char *const secrets[] = { "openai.key", "anthropic.key" };

/* A line "key = value" of the sample, commented out ("#key = value", without
 * a space after the mark, which sets it apart from prose) or not. */
static bool
is_setting(const char *line, size_t size, char *key, const char **value)
{
	const char *p = line, *end = line + size;
	size_t n = 0;

	while (p < end && (*p == '\t' || *p == '#'))
		p++;
	while (p + n < end && (islower((unsigned char)p[n]) || p[n] == '_'))
		n++;
	if (n == 0 || n > 60 || (size_t)(end - p) < n + 3 ||
	    strncmp(p + n, " = ", 3) != 0)
		return false;
	memcpy(key, p, n);
	key[n] = '\0';
	*value = p + n + 3;
	return true;
}

/* The files of the sample's secrets are in a directory of ours here. */
static void
put_line(struct hf_buf *out, const char *line, size_t size)
{
	static const char where[] = "/etc/holdfast/";
	size_t n = sizeof(where) - 1;

	while (size > 0) {
		if (size >= n && memcmp(line, where, n) == 0) {
			hf_buf_printf(out, "%s/", dir);
			line += n;
			size -= n;
		} else {
			hf_buf_putc(out, *line++);
			size--;
		}
	}
	hf_buf_putc(out, '\n');
}

/* One of several sources of the same secret. */
static bool
is_alternative(const char *key)
{
	return strcmp(key, "api_key_env") == 0 ||
	    strcmp(key, "api_key_credential") == 0 ||
	    strcmp(key, "master_key_credential") == 0;
}

/* Copy the sample with every setting that is commented out put in force. */
static void
put_all_in_force(struct hf_buf *out, const char *text)
{
	const char *value, *line;
	char key[64];

	while (*text != '\0') {
		size_t n = strcspn(text, "\n");
		size_t tabs = strspn(text, "\t");

		line = text;
		if (tabs < n && text[tabs] == '#' && text[tabs + 1] != ' ' &&
		    !(is_setting(text, n, key, &value) &&
			is_alternative(key))) {
			line = text + tabs + 1;
			n -= tabs + 1;
		}
		put_line(out, line, n);
		text = line + n + (line[n] == '\n');
	}
}

static void
accepted(const char *what, const struct hf_buf *text)
{
	struct hf_conf *c = NULL;
	struct hf_error e = { 0 };

	if (hf_conf_parse(what, text->data, &c, &e) != 0)
		fail_msg("%s", e.text);
	assert_true(c->n_route > 0);
	hf_conf_free(c);
}

static void
test_sample_is_accepted(void **state)
{
	struct hf_buf sample, text;

	(void)state;
	read_file(SAMPLE, &sample);
	hf_buf_init(&text, 1 << 20);
	put_line(&text, sample.data, sample.size);
	accepted("sample", &text);
	hf_buf_reset(&text);
	put_all_in_force(&text, sample.data);
	accepted("sample with all settings", &text);
	hf_buf_free(&text);
	hf_buf_free(&sample);
}

/* Does a line of the sample that is commented out show the default? */
static void
check_default(const struct hf_param *p, const char *line, const char *value,
    const char *end)
{
	struct hf_buf def;

	if (p == NULL || p->def == NULL || line[strspn(line, "\t")] != '#')
		return;
	if (end - value > 1 && *value == '"' && end[-1] == '"') {
		value++;
		end--;
	}
	hf_buf_init(&def, 1000);
	put_default(&def, p->def);
	if (!hf_str_eq((struct hf_str){ value, (size_t)(end - value) },
		hf_buf_str(&def)))
		fail_msg(
		    "sample: %s.%s: default is %s", p->block, p->key, def.data);
	hf_buf_free(&def);
}

static void
test_sample_has_every_key(void **state)
{
	bool seen[200] = { false };
	struct hf_buf sample;
	const char *block = "", *value, *text;
	char key[64];

	(void)state;
	assert_true(hf_n_params <= hf_countof(seen));
	read_file(SAMPLE, &sample);
	for (text = sample.data; *text != '\0';) {
		size_t n = strcspn(text, "\n");
		const char *word = text + (*text == '#');

		for (unsigned i = 0; i < hf_n_blocks; i++) {
			size_t size = strlen(hf_blocks[i].name);

			if (strncmp(word, hf_blocks[i].name, size) == 0 &&
			    word[size] == ' ' && text[n - 1] == '{')
				block = hf_blocks[i].name;
		}
		if (is_setting(text, n, key, &value)) {
			const struct hf_param *p = hf_param_find(block, key);

			if (p == NULL)
				fail_msg("sample: no key %s.%s", block, key);
			else
				seen[p - hf_params] = true;
			check_default(p, text, value, text + n);
		}
		text += n + (text[n] == '\n');
	}
	for (unsigned i = 0; i < hf_n_params; i++)
		if (!seen[i])
			fail_msg("sample: %s.%s is missing", hf_params[i].block,
			    hf_params[i].key);
	hf_buf_free(&sample);
}

static int
setup(void **state)
{
	char path[100];

	(void)state;
	hf_log_init("test", HF_LOG_ERROR);
	if (mkdtemp(dir) == NULL)
		return -1;
	for (size_t i = 0; i < hf_countof(secrets); i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", dir, secrets[i]);
		f = fopen(path, "w");
		if (f == NULL)
			return -1;
		fputs("sk-test\n", f);
		fclose(f);
	}
	return 0;
}

static int
teardown(void **state)
{
	char path[100];

	(void)state;
	for (size_t i = 0; i < hf_countof(secrets); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, secrets[i]);
		unlink(path);
	}
	return rmdir(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_manual),
		cmocka_unit_test(test_sample_has_every_key),
		cmocka_unit_test(test_sample_is_accepted),
	};

	return cmocka_run_group_tests_name("docs", tests, setup, teardown);
}
