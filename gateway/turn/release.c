/*
 * The release gate: how much of the text that is held may go to the client.
 */
#include <config.h>

#include "gateway/turn/splice.h"

#include "gateway/turn/chars.h"

#define CLAUSE_MAX ((size_t)400)

static bool
is_one_of(uint32_t cp, const uint32_t *set, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (set[i] == cp)
			return true;
	return false;
}

/* Up to the last white space or the last character that is a word alone. */
static size_t
word(struct hf_str text)
{
	struct hf_char c;
	size_t end = 0;

	for (size_t at = 0; at < text.size; at += c.size) {
		c = hf_char_at(text, at);
		if (c.kind == HF_CHAR_SPACE || hf_char_is_wide(c))
			end = at + c.size;
	}
	return text.size - end > HF_RELEASE_WORD_MAX ? text.size : end;
}

/* Ends a clause if white space follows. */
static bool
ends_clause(struct hf_char c)
{
	static const uint32_t set[] = { '.', '!', '?', ';', ':', ',', 0x2026,
		0x60c, 0x61b, 0x61f, 0x964 };

	return is_one_of(c.cp, set, hf_countof(set));
}

/* Ends one whatever follows. */
static bool
ends_clause_alone(struct hf_char c)
{
	static const uint32_t set[] = { 0x3001, 0x3002, 0xff01, 0xff0c, 0xff1a,
		0xff1b, 0xff1f };

	return hf_char_is_line_end(c) || is_one_of(c.cp, set, hf_countof(set));
}

/* May stand between a clause's last mark and the white space: `he said." `. */
static bool
closes(struct hf_char c)
{
	static const uint32_t set[] = { '"', '\'', ')', ']', '}', 0xbb, 0x2019,
		0x201d };

	return is_one_of(c.cp, set, hf_countof(set));
}

static size_t
clause(struct hf_str text)
{
	bool ended = false;   /* a mark, and nothing after it but closers */
	bool passing = false; /* the end and the white space after it */
	struct hf_char c;
	size_t end = 0;

	for (size_t at = 0; at < text.size; at += c.size) {
		c = hf_char_at(text, at);
		if (ends_clause_alone(c) ||
		    (c.kind == HF_CHAR_SPACE && (ended || passing))) {
			passing = true;
			ended = false;
			end = at + c.size;
			continue;
		}
		passing = false;
		ended = ends_clause(c) || (ended && closes(c));
	}
	if (text.size - end <= CLAUSE_MAX)
		return end;
	return word(text);
}

size_t
hf_release_pass(enum hf_release_mode mode, struct hf_str text)
{
	text.size = hf_char_whole(text);
	switch (mode) {
	case HF_RELEASE_WORD:
		return word(text);
	case HF_RELEASE_CLAUSE:
		return clause(text);
	case HF_RELEASE_TOKEN:
		break;
	}
	return text.size;
}
