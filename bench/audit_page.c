/*
 * The page of an audit.  Without a script the text at its end is filled in by
 * hand; with one, by clicking.  Pure.
 */
#include <config.h>

#include "bench/audit.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/embedded.h"
#include "bench/html.h"

static void
put_words(struct hf_buf *b, const char *label, const char *text)
{
	hf_buf_printf(b, "<div class=\"say\"><div>%s</div>", label);
	hf_html_element(b, "div class=\"words\"", text);
	hf_buf_puts(b, "</div>\n");
}

static void
put_case(struct hf_buf *b, json_t *c, size_t i)
{
	static const char *const word[] = { "right", "wrong", "unsure" };
	char *calls;

	hf_buf_printf(b, "<fieldset><legend>Case %zu</legend>\n", i);
	put_words(b, "asked", hf_text(c, "probe"));
	put_words(b, "expected", hf_text(c, "expected"));
	put_words(b, "answered", hf_text(c, "answer"));
	if (hf_get(c, "calls") != NULL) {
		calls = json_dumps(hf_get(c, "calls"), JSON_INDENT(1));
		put_words(b, "with calls", calls);
		free(calls);
	}
	hf_buf_puts(b, "<p>");
	for (unsigned k = 0; k < hf_countof(word); k++)
		hf_buf_printf(b,
		    "<label><input type=\"radio\" name=\"case-%zu\" "
		    "value=\"%s\"> %s</label>",
		    i, word[k], word[k]);
	hf_buf_printf(b,
	    "</p>\n<p><label>Note <input name=\"note-%zu\" maxlength=\"150\">"
	    "</label></p></fieldset>\n",
	    i);
}

void
hf_audit_page(struct hf_buf *b, const struct hf_audit *a)
{
	json_t *c;
	size_t i;

	hf_html_begin(b, "ContinuityBench audit", hf_audit_js);
	hf_buf_printf(b,
	    "<h1>Audit: %u answers</h1>\n<p>For each: does the answer give "
	    "what "
	    "is expected, so that a person who asked would be served? <b>Right"
	    "</b> also if it says it in other words or in another notation; <b>"
	    "wrong</b> if a part is missing, another value stands in its "
	    "place, "
	    "or it is a refusal or an error. How it was judged before is not "
	    "shown.</p>\n<form class=\"ask\">\n",
	    a->cases);
	json_array_foreach(a->sample, i, c) put_case(b, c, i + 1);
	hf_buf_printf(b,
	    "<h2>The verdicts</h2>\n<p>Save this text, and read it back with "
	    "<code>continuitybench audit REPORT --verdicts FILE</code>. It can "
	    "be filled in by hand too: a word for each question mark.</p>\n"
	    "<p><textarea id=\"verdicts\" aria-label=\"verdicts\" "
	    "spellcheck=\"false\">continuitybench audit\nsample %s seed %lu "
	    "cases %u of %s\n",
	    a->digest, a->seed, a->cases, a->judged ? "judged" : "all");
	for (i = 1; i <= a->cases; i++)
		hf_buf_printf(b, "%zu ?\n", i);
	hf_buf_puts(b,
	    "</textarea></p>\n<p><button type=\"button\" id=\"save\" hidden>"
	    "Save</button> <span id=\"left\" class=\"dim\"></span></p>\n"
	    "</form>\n");
	hf_html_end(b, hf_audit_js);
}
