/*
 * Writing HTML.  Pure.
 */
#include <config.h>

#include "bench/html.h"

#include <math.h>
#include <stdio.h>

#include "bench/embedded.h"

void
hf_html_part(struct hf_buf *b, const char *p, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)p[i];

		switch (c) {
		case '&':
			hf_buf_puts(b, "&amp;");
			break;
		case '<':
			hf_buf_puts(b, "&lt;");
			break;
		case '>':
			hf_buf_puts(b, "&gt;");
			break;
		case '"':
			hf_buf_puts(b, "&quot;");
			break;
		case '\'':
			hf_buf_puts(b, "&#39;");
			break;
		case '\n':
		case '\t':
			hf_buf_putc(b, (char)c);
			break;
		default:
			if (c < 0x20 || c == 0x7f)
				hf_buf_puts(b, "\xef\xbf\xbd");
			else
				hf_buf_putc(b, (char)c);
		}
	}
}

void
hf_html_text(struct hf_buf *b, const char *z)
{
	if (z != NULL)
		hf_html_part(b, z, strlen(z));
}

void
hf_html_element(struct hf_buf *b, const char *tag, const char *text)
{
	hf_buf_printf(b, "<%s>", tag);
	hf_html_text(b, text);
	hf_buf_printf(b, "</%.*s>", (int)strcspn(tag, " "), tag);
}

void
hf_html_number(struct hf_buf *b, double v)
{
	double a = fabs(v);
	int places = a >= 100	  ? 0 :
	    a >= 10		  ? 1 :
	    a >= 1		  ? 2 :
	    a >= 0.0005 || a == 0 ? 3 :
				    5;
	char text[400];

	snprintf(text, sizeof(text), "%.*f", a == 0 ? 0 : places, a);
	/* A true minus; and no negative zero. */
	if (v < 0 && strspn(text, "0.") < strlen(text))
		hf_buf_puts(b, "\xe2\x88\x92");
	hf_buf_puts(b, text);
}

void
hf_html_begin(struct hf_buf *b, const char *title, const char *script)
{
	hf_buf_puts(b,
	    "<!doctype html>\n<html lang=\"en\">\n<head>\n"
	    "<meta charset=\"utf-8\">\n"
	    "<meta name=\"viewport\" content=\"width=device-width, "
	    "initial-scale=1\">\n"
	    "<meta http-equiv=\"Content-Security-Policy\" "
	    "content=\"default-src "
	    "'none'; style-src 'unsafe-inline'");
	if (script != NULL)
		hf_buf_puts(b, "; script-src 'unsafe-inline'");
	hf_buf_puts(b, "\">\n");
	hf_html_element(b, "title", title);
	hf_buf_puts(b, "\n<style>\n");
	hf_buf_puts(b, hf_report_css);
	hf_buf_puts(b, "</style>\n</head>\n<body>\n<main>\n");
}

void
hf_html_end(struct hf_buf *b, const char *script)
{
	hf_buf_puts(b, "</main>\n");
	if (script != NULL) {
		hf_buf_puts(b, "<script>\n");
		hf_buf_puts(b, script);
		hf_buf_puts(b, "</script>\n");
	}
	hf_buf_puts(b, "</body>\n</html>\n");
}
