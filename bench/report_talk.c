/*
 * Transcripts on a report's page: where streams broke off and were gone on
 * with, and what went wrong, as it was said.
 */
#include <config.h>

#include "bench/report_page.h"

#include <stdio.h>

/* A page is to be read: of more than this the rest is in the JSON only. */
#define MAX_TEXT 4000 /* bytes */
#define FIRST_SHOWN 4 /* messages of a request, */
#define LAST_SHOWN 8  /* ... and its last ones */

/* --- what was said -------------------------------------------------------- */

static void
put_clipped(struct hf_buf *b, const char *z)
{
	size_t size = strlen(z), shown = size;

	if (size > MAX_TEXT) {
		shown = MAX_TEXT;
		while (shown > 0 && ((unsigned char)z[shown] & 0xc0) == 0x80)
			shown--;
	}
	hf_html_part(b, z, shown);
	if (shown < size)
		hf_buf_printf(b,
		    " <span class=\"dim\">[%zu bytes more, in the JSON]</span>",
		    size - shown);
}

static void
say(struct hf_buf *b, const char *who, const char *class, json_t *text)
{
	hf_buf_puts(b, "<div class=\"say\"><div>");
	hf_html_text(b, who);
	if (json_is_string(text)) {
		hf_buf_printf(b, "</div><div class=\"words%s\">", class);
		put_clipped(b, json_string_value(text));
	} else {
		hf_buf_puts(b, "</div><div class=\"words none\">nothing");
	}
	hf_buf_puts(b, "</div></div>\n");
}

/* Calls as they are: JSON. */
static void
say_json(struct hf_buf *b, const char *who, json_t *o)
{
	char *text;
	json_t *s;

	if (o == NULL)
		return;
	text = json_dumps(o, JSON_INDENT(1) | JSON_ENCODE_ANY);
	s = json_string(text == NULL ? "" : text);
	say(b, who, "", s);
	json_decref(s);
	free(text);
}

/* Both texts from where they differ on. */
static void
say_apart(struct hf_buf *b, const char *want, const char *got)
{
	const char *text[] = { want, got };
	const char *who[] = { "was to come", "got" };
	size_t at = 0;

	while (want[at] != '\0' && want[at] == got[at])
		at++;
	while (at > 0 && ((unsigned char)want[at] & 0xc0) == 0x80)
		at--;
	for (unsigned i = 0; i < 2; i++) {
		hf_buf_printf(b,
		    "<div class=\"say\"><div>%s</div><div class=\"words\">",
		    who[i]);
		hf_html_part(b, text[i], at);
		if (text[i][at] != '\0')
			hf_html_element(b,
			    i == 0 ? "mark" : "mark class=\"wrong\"",
			    text[i] + at);
		hf_buf_puts(b, "</div></div>\n");
	}
}

/* --- requests ------------------------------------------------------------- */

static void
put_messages(struct hf_buf *b, json_t *messages)
{
	size_t n = json_array_size(messages), i;
	json_t *m;

	if (n == 0)
		return;
	hf_buf_printf(b,
	    "<details><summary>what it was sent: %zu messages</summary>\n", n);
	json_array_foreach(messages, i, m)
	{
		if (i >= FIRST_SHOWN && i + LAST_SHOWN < n) {
			if (i == FIRST_SHOWN)
				hf_buf_printf(b,
				    "<p class=\"dim\">... %zu more, in the "
				    "JSON ...</p>\n",
				    n - FIRST_SHOWN - LAST_SHOWN);
			continue;
		}
		say(b, hf_text(m, "role"), "", hf_get(m, "text"));
		say_json(b, "calls", hf_get(m, "calls"));
	}
	hf_buf_puts(b, "</details>\n");
}

/* "2. fallback (openai, MODEL), asked to go on; cut at word after 120 bytes" */
static void
put_request_line(struct hf_buf *b, json_t *r, size_t i)
{
	const char *fault = hf_text(r, "fault");

	hf_buf_printf(b, "<p><b>%zu. ", i + 1);
	hf_html_text(b, hf_text(r, "provider"));
	hf_buf_puts(b, "</b> <span class=\"dim\">(");
	hf_html_text(b, hf_text(r, "dialect"));
	hf_buf_puts(b, ", ");
	hf_html_text(b, hf_text(r, "model"));
	hf_buf_puts(b, ")</span> asked ");
	hf_html_text(b, hf_text(r, "asked"));
	hf_buf_puts(b, "; ");
	if (hf_get(r, "refused") != NULL) {
		hf_buf_puts(b, "<span class=\"bad\">refused</span>: ");
		hf_html_text(b, hf_text(r, "refused"));
	} else if (strcmp(fault, "none") == 0 || fault[0] == '\0') {
		hf_buf_puts(b, "<span class=\"good\">answered</span>");
	} else {
		hf_buf_puts(b, "<span class=\"bad\">");
		hf_html_text(b, fault);
		hf_buf_puts(b, "</span>");
	}
	if (hf_get(r, "phase") != NULL) {
		hf_buf_puts(b, " at ");
		hf_html_text(b, hf_text(r, "phase"));
		hf_buf_printf(b, " after %d bytes", hf_int(r, "sent"));
	}
	if (hf_int(r, "repeated") > 0)
		hf_buf_printf(
		    b, "; said %d bytes again first", hf_int(r, "repeated"));
	hf_buf_puts(b, "</p>\n");
}

static void
put_requests(struct hf_buf *b, json_t *requests)
{
	json_t *r;
	size_t i;

	if (json_array_size(requests) == 0)
		return;
	hf_buf_puts(b, "<h4>What providers were asked and did</h4>\n");
	json_array_foreach(requests, i, r)
	{
		put_request_line(b, r, i);
		if (json_is_string(hf_get(r, "would")))
			say(b, "its answer", "", hf_get(r, "would"));
		put_messages(b, hf_get(r, "messages"));
	}
}

/* --- seams ---------------------------------------------------------------- */

/* How much of 'answer' was said when provider 'r' broke off, if 'at' was
 * before it; 'at' if that cannot be told. */
static size_t
said_until(const char *answer, size_t at, json_t *r)
{
	const char *would = hf_text(r, "would");
	size_t sent = (size_t)hf_int(r, "sent");
	size_t again = (size_t)hf_int(r, "repeated");

	if (hf_get(r, "phase") == NULL || sent > strlen(would))
		return at;
	if (sent > at && strncmp(answer, would, sent) == 0)
		return sent; /* the whole, from the start */
	if (sent > again &&
	    strncmp(answer + at, would + again, sent - again) == 0)
		return at + sent - again;
	return at;
}

static void
put_seamed(struct hf_buf *b, json_t *seam)
{
	const char *answer = hf_text(seam, "answer");
	size_t at = 0, i;
	json_t *r;

	hf_buf_puts(b,
	    "<div class=\"say\"><div>the client got</div>"
	    "<div class=\"words\">");
	json_array_foreach(hf_get(seam, "requests"), i, r)
	{
		size_t until = said_until(answer, at, r);

		if (i + 1 == json_array_size(hf_get(seam, "requests")))
			break;
		/* A cut may be within a character. */
		while (
		    until > at && ((unsigned char)answer[until] & 0xc0) == 0x80)
			until--;
		hf_html_part(b, answer + at, until - at);
		hf_buf_puts(b, "<span class=\"seam\">");
		hf_html_text(b, hf_text(r, "fault"));
		hf_buf_puts(b, "</span>");
		at = until;
	}
	hf_html_text(b, answer + at);
	hf_buf_puts(b, "</div></div>\n");
}

static void
put_seam(struct hf_buf *b, json_t *seam)
{
	hf_buf_puts(b, "<details><summary>");
	hf_html_text(b, hf_text(seam, "failure"));
	hf_buf_puts(b, " at ");
	hf_html_text(b, hf_text(seam, "place"));
	hf_buf_puts(b, " <span class=\"dim\">");
	hf_html_text(b, hf_text(seam, "system"));
	hf_buf_puts(b, ", ");
	hf_html_text(b, hf_text(seam, "conversation"));
	hf_buf_printf(
	    b, ", turn %d</span></summary>\n", hf_int(seam, "turn") + 1);
	say(b, "the caller", "", hf_get(seam, "said"));
	put_seamed(b, seam);
	say_json(b, "calls", hf_get(seam, "calls"));
	put_requests(b, hf_get(seam, "requests"));
	hf_buf_puts(b, "</details>\n");
}

void
hf_page_seams(struct hf_buf *b, json_t *report)
{
	json_t *seams = hf_get(report, "seams"), *s;
	size_t i;

	if (json_array_size(seams) == 0)
		return;
	hf_buf_puts(b,
	    "<h3>Seams</h3>\n<p class=\"dim\">Streams that broke off and were "
	    "gone on with, each failure at each place once.</p>\n");
	json_array_foreach(seams, i, s) put_seam(b, s);
}

/* --- misses --------------------------------------------------------------- */

static void
put_turn(struct hf_buf *b, json_t *t)
{
	json_t *want = hf_get(t, "expected"), *got = hf_get(t, "answer");

	if (hf_get(t, "tool") != NULL)
		say(b, "tool result", "", hf_get(t, "tool"));
	else
		say(b, "the caller", "", hf_get(t, "user"));
	if (json_is_string(want) && json_is_string(got) &&
	    !json_equal(want, got))
		say_apart(b, json_string_value(want), json_string_value(got));
	else
		say(b, "was answered", "", got);
	say_json(b, "calls", hf_get(t, "calls"));
}

static void
put_miss(struct hf_buf *b, json_t *m)
{
	json_t *t;
	size_t i;

	hf_buf_puts(b, "<details><summary><b>");
	hf_html_text(b, hf_text(m, "system"));
	hf_buf_puts(b, "</b> ");
	hf_html_text(b, hf_text(m, "conversation"));
	hf_buf_printf(b, ", run %d, turn %d: blame <b>", hf_int(m, "run"),
	    hf_int(m, "turn") + 1);
	hf_html_text(b, hf_text(m, "blame"));
	hf_buf_puts(b, "</b>");
	if (json_is_true(hf_get(m, "stateless")))
		hf_buf_puts(b, " <span class=\"dim\">(by design)</span>");
	hf_buf_puts(b, "</summary>\n");
	say(b, "the fact", "", hf_get(m, "expected"));
	say(b, "the failure", "", hf_get(m, "failure"));
	if (json_is_string(hf_get(m, "error")))
		say(b, "the error", " bad", hf_get(m, "error"));
	if (json_is_string(hf_get(m, "payload")))
		say(b, "the payload", " bad", hf_get(m, "payload"));
	hf_buf_puts(b, "<h4>The conversation</h4>\n");
	json_array_foreach(hf_get(m, "turns"), i, t) put_turn(b, t);
	put_requests(b, hf_get(m, "requests"));
	hf_buf_puts(b, "</details>\n");
}

void
hf_page_misses(struct hf_buf *b, json_t *report)
{
	json_t *misses = hf_get(report, "misses"), *m;
	size_t i;

	hf_buf_puts(b, "<h3>Misses</h3>\n");
	if (json_array_size(misses) == 0) {
		hf_buf_puts(b, "<p class=\"good\">None.</p>\n");
		return;
	}
	hf_buf_puts(b,
	    "<p class=\"dim\">Of a stateless system, which loses by design, 20 "
	    "at most.</p>\n");
	json_array_foreach(misses, i, m) put_miss(b, m);
}
