/*
 * First step: a pass over the text in libConfuse's lexical rules.  It blanks
 * comments (libConfuse 3.3 counts a line too many for each), and rejects what
 * libConfuse would let pass in silence: strings, comments and blocks that do
 * not end, variables that are not set, control characters.
 */
#include <config.h>

#include "base/conf_int.h"

#include <stdlib.h>

struct clean {
	const char *file;
	char *p; /* next byte */
	int line;
	int depth;     /* of braces */
	int open_line; /* of the outermost open brace */
	struct hf_conf_text *out;
	struct hf_error *e;
};

static int
fail(struct clean *c, int line, const char *what)
{
	return hf_conf_fail(c->e, c->file, line, NULL, NULL, "%s", what);
}

static void
blank_line(struct clean *c)
{
	while (*c->p != '\0' && *c->p != '\n')
		*c->p++ = ' ';
}

static int
blank_comment(struct clean *c)
{
	int line = c->line;
	char *end = strstr(c->p + 2, "*/");

	if (end == NULL)
		return fail(c, line, "comment does not end; expected */");
	for (; c->p < end + 2; c->p++) {
		if (*c->p == '\n')
			c->line++;
		else
			*c->p = ' ';
	}
	return 0;
}

/* At "${".  It must end on the same line and name a variable that is set or
 * has a default ("${NAME:-text}"). */
static int
variable(struct clean *c)
{
	char name[128];
	size_t n = strcspn(c->p, "}\"\n");
	const char *colon;

	if (c->p[n] != '}')
		return fail(c, c->line, "${ does not end; expected }");
	colon = memchr(c->p, ':', n);
	if (colon == NULL || colon[1] != '-') {
		if (n - 2 >= sizeof(name) || n == 2)
			return fail(c, c->line, "bad variable name in ${}");
		memcpy(name, c->p + 2, n - 2);
		name[n - 2] = '\0';
		if (getenv(name) == NULL)
			return hf_conf_fail(c->e, c->file, c->line, NULL, NULL,
			    "environment variable %s is not set; set it "
			    "or write ${%s:-default}",
			    name, name);
	}
	c->p += n + 1;
	return 0;
}

static int
quoted(struct clean *c)
{
	int line = c->line, rc;
	char quote = *c->p++;

	while (*c->p != quote) {
		bool escaped = *c->p == '\\' && c->p[1] != '\0';

		if (escaped)
			c->p++;
		if (*c->p == '\0')
			return fail(c, line,
			    "string does not end; expected "
			    "the closing quote");
		if (quote == '"' && !escaped && c->p[0] == '$' &&
		    c->p[1] == '{') {
			rc = variable(c);
			if (rc != 0)
				return rc;
			continue;
		}
		if (*c->p == '\n')
			c->line++;
		c->p++;
	}
	c->p++;
	return 0;
}

static int
word(struct clean *c)
{
	while (*c->p != '\0' && strchr(" #\"'\t\n\r={}()+,*", *c->p) == NULL) {
		if (c->p[0] == '$' && c->p[1] == '{')
			return fail(c, c->line,
			    "${} within a word; expected "
			    "the whole value in double quotes");
		c->p++;
	}
	return 0;
}

static int
open_brace(struct clean *c)
{
	if (c->depth++ == 0) {
		c->open_line = c->line;
		if (c->out->n_block == HF_CONF_MAX_BLOCKS)
			return fail(c, c->line, "too many blocks");
		c->out->block_line[c->out->n_block++] = c->line;
	}
	c->p++;
	return 0;
}

static int
token(struct clean *c)
{
	unsigned char ch = (unsigned char)*c->p;

	if (ch == '#' || (ch == '/' && c->p[1] == '/')) {
		blank_line(c);
		return 0;
	}
	if (ch == '/' && c->p[1] == '*')
		return blank_comment(c);
	if (ch == '"' || ch == '\'')
		return quoted(c);
	if (ch == '$' && c->p[1] == '{')
		return variable(c);
	if (ch == '{')
		return open_brace(c);
	if (strchr(" \t\n\r=}()+,*", ch) == NULL)
		return word(c);
	if (ch == '*')
		return fail(c, c->line, "stray '*'");
	if (ch == '\n')
		c->line++;
	if (ch == '}' && --c->depth < 0)
		return fail(c, c->line, "'}' without '{'");
	c->p++;
	return 0;
}

static int
check_bytes(struct clean *c)
{
	int line = 1;

	for (const char *p = c->p; *p != '\0'; p++) {
		if (*p == '\n')
			line++;
		else if (((unsigned char)*p < 0x20 && *p != '\t' &&
			     *p != '\r') ||
		    *p == 0x7f)
			return fail(c, line, "control character in the text");
	}
	return 0;
}

int
hf_conf_clean(const char *file, const char *text, struct hf_arena *a,
    struct hf_conf_text *out, struct hf_error *e)
{
	struct clean c = { .file = file, .line = 1, .out = out, .e = e };
	size_t size = strnlen(text, HF_CONF_MAX_TEXT + 1);
	char *copy;
	int rc;

	if (size > HF_CONF_MAX_TEXT)
		return hf_conf_fail(e, file, 1, NULL, NULL,
		    "text of more than %zu bytes", HF_CONF_MAX_TEXT);
	copy = hf_arena_alloc(a, size + 1);
	out->block_line = hf_arena_alloc(a, HF_CONF_MAX_BLOCKS * sizeof(int));
	if (copy == NULL || out->block_line == NULL)
		return hf_fail(e, HF_ENOMEM, "configuration too large");
	memcpy(copy, text, size);
	out->text = copy;
	out->n_block = 0;
	c.p = copy;
	rc = check_bytes(&c);
	while (rc == 0 && *c.p != '\0')
		rc = token(&c);
	if (rc == 0 && c.depth > 0)
		rc = fail(&c, c.open_line, "block is not closed; expected }");
	return rc;
}
